"""Graph scores: how well a regression of every node on its parents explains the data.

A score is a regression (what a node's parents leave unexplained) and a criterion (how the ``d`` mean squared
residuals and the numbers of parents become one number). All scores are divided by ``n d``; higher is better.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _kernels
from .._checks import as_numbers, as_table, brief, choose, default_names, names_of, whole_number
from .._settings import Settings
from ..columns import Coded
from ..graph import as_adjacency
from ..interventions import Interventions
from ..knowledge import Constraints, Knowledge
from ..moments import Moments
from .additive import Additive
from .criteria import Criterion, as_criterion
from .gp import GaussianProcess
from .learned import LearnedProcess
from .linear import Linear
from .local import LocalCache, LocalScores
from .regimes import Regimes
from .regression import Regression, as_regression
from .regressors import SklearnRegression

__all__ = ["REGRESSIONS", "FunctionScore", "GraphScore", "Score", "as_score", "bind", "describe", "needs_local"]

REGRESSIONS: dict[str, Callable[[], Any]] = {
    "linear": Linear,
    "additive": Additive,
    "gp": GaussianProcess,
    "gp-auto": LearnedProcess,
}


class GraphScore:
    """A number for every DAG: what a search maximises.

    Attributes
    ----------
    d : int
        Number of nodes.
    local : LocalScores or None
        The local parts of the score; None if it has none that could be looked at.
    """

    d: int
    local: LocalScores | None = None
    _constraints: Constraints | None = None
    _approximation: "Score | None" = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return default_names(self.d)

    @property
    def constraints(self) -> Constraints:
        """What is known of the graph: searches stay within what it permits."""
        if self._constraints is None:
            self._constraints = Constraints.none(self.names)
        return self._constraints

    def under(self, knowledge: Any) -> Self:
        """The same score for a search among the graphs that agree with what is known.

        Parameters
        ----------
        knowledge : Knowledge, Constraints, or what :meth:`vec2dag.Knowledge.of` takes
        """
        if not self.constraints.trivial:
            raise ValueError("the score has knowledge of its own: combine both with | and give them to the score alone")
        known = knowledge if isinstance(knowledge, Constraints) else Knowledge.of(knowledge, self.names)
        restricted = copy(self)
        restricted._constraints = known if isinstance(known, Constraints) else known.bind(self.names)
        restricted._approximation = None
        return restricted

    @property
    def name(self) -> str:
        """What results call its values."""
        return "score"

    @property
    def equal_variances(self) -> bool:
        """Whether it reads the units of the columns."""
        return False

    @property
    def score_equivalent(self) -> bool:
        """Whether all members of a Markov equivalence class have the same score."""
        return False

    @property
    def linear(self) -> bool | None:
        """Whether linear pruning can see the parents that matter; None if nobody can tell."""
        return None

    @property
    def has_greedy_order(self) -> bool:
        """Whether an order can be found greedily from the variances."""
        return False

    @property
    def approximation(self) -> "Score | None":
        """A score of nearly the same values that costs far less, if there is one."""
        return None

    def until(self, deadline: float) -> AbstractContextManager[Any]:
        """Context in which regressions end with :class:`OutOfTime` after ``deadline``, if they take their time."""
        return nullcontext()

    def __call__(self, A: ArrayLike) -> NDArray[np.float64]:
        """Score of every graph ``A`` (..., d, d); shape (...), higher is better."""
        raise NotImplementedError


class Score(GraphScore):
    """A graph score for a table.

    Parameters
    ----------
    X : array of shape (n, d), Moments, Coded, or None
        The data; None when ``regression`` is an object that already holds them.
    regression : {"linear", "additive", "gp", "gp-auto"}, settings of these, or others
        ``"gp"`` is ``GaussianProcess()``, ``"gp-auto"`` ``LearnedProcess()``; a regressor has ``fit`` and ``predict``;
        a Regression already holds data. ``"linear"`` by default.
    criterion : {"bic-nv", "bic-ev", "ebic-nv", "ebic-ev", "ls", "bge", "bdeu", ...} or Criterion, default "bic-nv"
        Those of categories take arrays, frames and :class:`vec2dag.columns.Coded`.
    n_jobs : int or None, default None
        Workers for batches; None uses every core. They are threads, or for regressions other than linear whatever
        ``joblib.parallel_config`` asks for.
    cache : LocalCache, optional
        Where mean squared residuals of regressions other than linear are remembered; the default holds 256 MiB.
    names : sequence of str, optional
        Of the columns of ``X``, for error messages.
    interventions : sequence of n entries, or Interventions, optional
        Which columns were set in every row of ``X``, as :meth:`vec2dag.Interventions.of` takes it: a node is then
        regressed on the rows in which it was not.

    Attributes
    ----------
    regression : Regression
        Joined with the data.
    criterion : Criterion
    local : LocalScores
        ``score.local(node, parents)`` is the mean squared residual of a node; regressions other than linear are
        remembered, and ``score.local.fits`` counts them.
    n, d : int
        Rows and columns.
    rows : array of shape (d,)
        Of every node: all, or those in which it was not set.
    values : float
        What the score is divided by: ``n d``, less the values that were set.
    weights : array of shape (d,)
        What every node counts, in proportion to the rows in which it was not set: 1 on average.
    names : tuple of str
    penalty : float
        Price of a first parent, in the units of the score.
    prices : array of shape (d + 1,)
        Price of k parents, in prices of a first one.
    steps : array of shape (d,)
        Price of parent number k + 1, in the units of the score.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((500, 1))
    >>> X = np.hstack([x, x + 0.1])
    >>> score = Score(X + 0.01 * np.random.default_rng(1).standard_normal(X.shape))
    >>> bool(score([[0, 1], [0, 0]]) > score(np.zeros((2, 2))))
    True
    """

    local: LocalScores
    #: What its regressions are to those of a score that it guides: "simpler", "approximate", or nothing.
    role: str = ""

    def __init__(
        self,
        X: ArrayLike | Moments | Coded | None,
        regression: Any = "linear",
        criterion: str | Criterion = "bic-nv",
        *,
        n_jobs: int | None = None,
        cache: LocalCache | None = None,
        names: Sequence[str] | None = None,
        interventions: Any = None,
    ) -> None:
        self.criterion = as_criterion(criterion)
        self.regression = bind(X, self.criterion.regression(regression), names, interventions)
        self.n, self.d = self.regression.n, self.regression.d
        self.values, self.weights = self.regression.values, self.regression.weights
        self.rows = np.full(self.d, self.n) if self.regression.rows is None else self.regression.rows
        self.local = self.regression.local(cache, n_jobs)
        self.compiled = self.criterion.compiled(self.n, self.d, self.values)
        _, self.penalty, _, self.prices = self.compiled
        self.steps = self.penalty * np.diff(self.prices)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return self.regression.names

    @property
    def statistics(self) -> Any:
        """What the compiled kernels compute residuals from; None if the regression is not one of theirs."""
        return self.regression.statistics

    @property
    def approximation(self) -> "Score | None":
        """A score of nearly the same values that costs far less; None if the regression has none.

        Always the same object, so that it remembers what has been asked.
        """
        if self._approximation is None and (nearly := self.regression.approximate()) is not None:
            self._approximation = self.guided_by(nearly, "approximate")
        return self._approximation

    def guided_by(self, regression: Regression, role: str) -> "Score":
        """The same score of another regression on the same table, to guide searches for this one."""
        guide = Score(None, regression, self.criterion, n_jobs=self.local.n_jobs)
        guide = guide if self.constraints.trivial else guide.under(self.constraints)
        guide.role = role
        return guide

    def until(self, deadline: float) -> AbstractContextManager[Any]:
        """See ``GraphScore.until``."""
        stack = ExitStack()
        stack.enter_context(self.local.until(deadline))
        if self._approximation is not None:
            stack.enter_context(self._approximation.local.until(deadline))
        return stack

    @property
    def name(self) -> str:
        """That of the criterion."""
        return self.criterion.name

    @property
    def equal_variances(self) -> bool:
        """Whether the noises are taken to have one variance."""
        return self.criterion.equal_variances

    @property
    def linear(self) -> bool | None:
        """Whether a parent that matters has a linear coefficient; None if the question makes no sense."""
        return self.regression.linear

    @property
    def has_greedy_order(self) -> bool:
        """Whether an order can be found greedily: variances that are taken to be equal, and one statistic to read."""
        return self.criterion.equal_variances and self.statistics is not None and len(self.statistics[0]) == 1

    @property
    def score_equivalent(self) -> bool:
        """Whether all members of a Markov equivalence class have the same score."""
        return self.criterion.score_equivalent and self.regression.score_equivalent

    def link(self, residuals: ArrayLike, nodes: Any = ...) -> NDArray[np.float64]:
        """What the criterion sums over nodes; ``residuals`` are of ``nodes``, by default (..., d) of all."""
        links = self.criterion.link(residuals)
        return links if self.regression.rows is None else self.weights[nodes] * links

    def change(self, delta: ArrayLike, total: float) -> NDArray[np.float64]:
        """Change of the score, without prices, when the sum ``total`` of links grows by ``delta``."""
        return self.criterion.change(delta, total, self.d)

    def toggles(self, A: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Links (d,) of the nodes of ``A`` (d, d) and ``table[i, j]``, the change of link i when j -> i is toggled."""
        return self.local.toggles(A, self.criterion)

    def residuals(self, A: ArrayLike) -> NDArray[np.float64]:
        """Mean squared residuals (..., d) of the nodes of ``A`` (..., d, d)."""
        return self._residuals(self._checked(A))

    def _residuals(self, adjacency: NDArray[np.uint8]) -> NDArray[np.float64]:
        flat = np.ascontiguousarray(adjacency.reshape(-1, self.d, self.d))
        return self.local.residuals(flat).reshape(adjacency.shape[:-1])

    def combine(self, residuals: ArrayLike, parents: ArrayLike) -> NDArray[np.float64]:
        """The score (...) for mean squared residuals and numbers of parents, both (..., d)."""
        values, wanted = as_numbers(residuals, "residuals"), as_numbers(parents, "parents")
        least = -math.inf if self.criterion.kind == _kernels.COSTS else 0.0
        if not (values >= least).all():
            raise ValueError(f"residuals must be numbers of at least {least:g}, got {brief(residuals)}")
        if not (wanted == np.floor(wanted)).all() or (np.abs(wanted) > self.d).any():
            raise ValueError(f"parents must be whole numbers from 0 to {self.d - 1}, got {brief(parents)}")
        counts = wanted.astype(np.int64)
        if values.shape[-1:] != (self.d,) or counts.shape != values.shape:
            raise ValueError(
                f"residuals and parents must both have shape (..., {self.d}), got {values.shape} and {counts.shape}"
            )
        if counts.size and not 0 <= counts.min() <= counts.max() < max(self.d, 1):
            raise ValueError(f"a node has 0 to {self.d - 1} parents, got {counts.min()} to {counts.max()}")
        return self._combine(np.ascontiguousarray(values), np.ascontiguousarray(counts))

    def _combine(self, residuals: NDArray[np.float64], parents: NDArray[np.int64]) -> NDArray[np.float64]:
        out = np.empty(residuals.shape[:-1])
        _kernels.combine_batch(
            residuals.reshape(-1, self.d), parents.reshape(-1, self.d), self.weights, self.compiled, out.reshape(-1)
        )
        return out

    def __call__(self, A: ArrayLike) -> NDArray[np.float64]:
        """Score of every graph ``A`` (..., d, d), divided by ``values``; shape (...), higher is better."""
        adjacency = self._checked(A)
        return self._combine(self._residuals(adjacency), adjacency.sum(axis=-2, dtype=np.int64))[()]

    def __repr__(self) -> str:
        return f"Score({self.regression!r}, {self.criterion!r})"

    def _checked(self, A: ArrayLike) -> NDArray[np.uint8]:
        adjacency = as_adjacency(A)
        if adjacency.shape[-1] != self.d:
            raise ValueError(f"A has {adjacency.shape[-1]} nodes, the data have {self.d} columns")
        return adjacency


class FunctionScore(GraphScore):
    """A function of one adjacency matrix as a score; refuses values that are not finite numbers."""

    def __init__(self, function: Callable[[Any], Any], d: int) -> None:
        self.function, self.d = function, d

    def __call__(self, A: ArrayLike) -> NDArray[np.float64]:
        """Score of every graph ``A`` (..., d, d); shape (...), higher is better."""
        graphs = np.asarray(A)
        # Of a signed type: in unsigned numbers -A.sum() would be huge and positive.
        flat = graphs.reshape(-1, self.d, self.d).astype(np.int64)
        values = np.array([self._value(a) for a in flat])
        if not np.isfinite(values).all():
            worst = flat[int(np.argmin(np.isfinite(values)))]
            raise ValueError(
                f"score must return finite numbers, got {values[~np.isfinite(values)][0]} "
                f"for the graph with the edges {brief(np.argwhere(worst).tolist())}"
            )
        return values.reshape(graphs.shape[:-2])

    def _value(self, a: NDArray[np.int64]) -> float:
        value = self.function(a)
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"score must return finite numbers, got {brief(value)}") from None


def as_score(score: Any, d: int | None = None) -> GraphScore:
    """A score as it is, or a function of one adjacency matrix made one; ``d`` is needed if it has no such attribute."""
    if d is not None:
        whole_number("d", d)
    if isinstance(score, GraphScore):
        if d is not None and d != score.d:
            raise ValueError(f"the score is for {score.d} nodes, d is {d}")
        return score
    if not callable(score) or isinstance(score, type):
        raise ValueError(f"a score is a Score or a function A -> float, got {brief(score)}")
    d = d if d is not None else getattr(score, "d", None)
    if d is None:
        raise ValueError("d is needed: the score has no attribute d")
    return FunctionScore(score, whole_number("d", d))


def needs_local(score: GraphScore, what: str) -> Score:
    """The score as one with local parts; without them an error says what needs them."""
    if not isinstance(score, Score):
        raise ValueError(f"{what} needs a Score: a callable has no local parts")
    return score


def describe(regression: Any) -> Any:
    """The regression that a name or a regressor stands for: what has ``bind``, or an object that holds data."""
    if isinstance(regression, str):
        return choose("regression", regression, REGRESSIONS)()
    if isinstance(regression, type) or not any(hasattr(regression, name) for name in ("predict", "bind", "residual")):
        raise ValueError(
            f"regression={brief(regression)}: allowed are {', '.join(map(repr, REGRESSIONS))}, Linear(...), "
            "Additive(...), GaussianProcess(...), LearnedProcess(...), SklearnRegression(...), objects with fit and "
            "predict, and objects that hold data and have residual"
        )
    if isinstance(regression, Settings):
        regression.check()
    return SklearnRegression(regression) if hasattr(regression, "predict") else regression


def bind(
    X: ArrayLike | Moments | Coded | None,
    regression: Any,
    names: Sequence[str] | None = None,
    interventions: Any = None,
) -> Regression:
    """The regression joined with the data, for every node with the rows in which it was not set."""
    described = describe(regression)
    if interventions is not None and (X is None or isinstance(X, Moments) or not hasattr(described, "bind")):
        raise ValueError(
            "interventions need the rows of the table, to tell those in which a column was set from the others"
        )
    if not hasattr(described, "bind"):
        if X is not None:
            raise ValueError("a regression object holds its own data: pass X=None")
        return as_regression(described)
    if X is None:
        raise ValueError(f"X is needed: regression={brief(regression)} holds no data")
    if interventions is None:
        return as_regression(described.bind(X, names))
    if isinstance(X, Coded):
        raise ValueError("interventions are for columns of numbers, and X has categories")
    values = as_table(X, rows=2)
    targets = Interventions.of(interventions, names_of(names, values.shape[1], X), len(values))
    return as_regression(described.bind(X, names)) if targets.trivial else Regimes(values, described, targets)
