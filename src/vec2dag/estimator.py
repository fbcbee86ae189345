"""The estimator: one class over the pure functions of the package."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .discover import discover
from .engines import ALGORITHMS
from .graph import as_adjacency, cpdag, is_dag, skeleton, topological_order
from .graphio import to_networkx
from .metrics import r2_scores, sortability
from .moments import Moments, one_blas_thread
from .nonlinear import BoundRegression
from .progress import progress_bar
from .prune import Verdict, explain_bic, explain_cam, explain_ci, explain_linear, kept
from .scores import CRITERIA, Criterion, Linear, Score, choose
from .search import Callback, SearchResult, check_options, policy_gradient
from .table import check_names, check_values, data_warnings, default_names, frame_labels
from .workers import effective_jobs

if TYPE_CHECKING:
    import networkx

__all__ = ["ALIAS", "DataWarning"]

# Scores that read the variances of the columns, and the share of causal pairs sorted by variance that is suspicious.
EQUAL_VARIANCE = ("bic-ev", "ls")
SORTABLE = 0.9


class DataWarning(UserWarning):
    """Something about the data that can mislead the reader of the graph."""


class _ScoreName(str):
    """The name of a score that can also be called on data: scikit-learn's ``score(X)``."""

    estimator: "ALIAS"

    def __call__(self, X: Any, y: Any = None) -> float:
        """Score of the estimated DAG on a table ``X`` (m, d), regressions refitted; higher is better."""
        model = self.estimator
        check_is_fitted(model)
        values = validate_data(model, X, reset=False, dtype=np.float64, ensure_min_samples=2)
        return float(Score(model._prepared(values), model.regression, str(self))(model.adjacency_matrix_))


class _ScoreParameter:
    """Lets ``score`` be a parameter of the constructor and, as scikit-learn expects, a method."""

    def __get__(self, model: "ALIAS | None", owner: type) -> Any:
        if model is None:
            return self
        value = model.__dict__["score"]
        if not isinstance(value, str):
            return value
        name = _ScoreName(value)
        name.estimator = model
        return name

    def __set__(self, model: "ALIAS", value: Any) -> None:
        model.__dict__["score"] = value


class ALIAS(BaseEstimator):
    """Causal discovery by policy gradient over vectors that all decode to DAGs.

    Parameters
    ----------
    score : {"bic-nv", "bic-ev", "ls"}, Criterion, Score, or callable, default "bic-nv"
        What to maximise. ``"bic-nv"`` (unequal noise variances) with linear regression does not depend on the units of
        the columns; ``"bic-ev"`` and ``"ls"`` (equal noise variances) read the variances themselves. A callable takes
        an adjacency matrix (d, d) and returns a number.
    regression : {"linear", "gp"}, GaussianProcess, SklearnRegression, or regressor, default "linear"
        How nodes are regressed on their parents: linearly, by Gaussian processes (``"gp"`` is ``GaussianProcess()``,
        the paper's), or by any estimator with ``fit`` and ``predict``.
    algorithm : {"auto", "conditional", "credit", "ppo", "a2c", "reinforce"}, default "auto"
        ``"auto"`` is the conditional gradient for equal-variance scores, the policy over orders for ``"bic-nv"``
        (for which the gradient alone stops short), and PPO for callables. With ``backend="sb3"``: ``"ppo"`` (also
        for ``"auto"``), ``"a2c"`` or any on-policy class of Stable-Baselines3.
    backend : {"native", "sb3"}, default "native"
        ``"sb3"`` is the paper's own set-up, a network trained by Stable-Baselines3 (an extra), and without
        ``refine`` its estimate is the decoded mean; :meth:`paper` has the paper's settings.
    n_steps, batch_size, learning_rate : optional
        Of the search; None takes the algorithm's own. The policy over orders, default for ``"bic-nv"``, has no use for
        the learning rate, ``entropy`` and ``bound``.
    entropy : float, default 0.0
        Weight of the entropy of the policy in the objective.
    bound : float, default 10.0
        Half the width of the cube of vectors.
    init : {"auto", "random"}, adjacency matrix (d, d), or order (d,), default "auto"
        Where the policy starts; ``"auto"`` is the greedy equal-variance order for ``"bic-ev"`` and ``"ls"`` and
        random otherwise, ``"random"`` is the paper's cold start. ``search_.init`` says which it was.
    refine : bool, default True
        Continue with insertion search until no move of a node in the order and no change of an edge improves the
        score (``search_.certified``). Up to 12 columns (7 for regressions other than linear) the best of all DAGs is
        computed for ``"bic-nv"`` and ``"ls"`` (``search_.exact``). Arbitrary callables are not refined.
    prune : {"auto", "linear", "bic", "cam", "ci", None} or callable, default "auto"
        ``"linear"`` thresholds regression coefficients, ``"bic"`` removes edges while the linear BIC improves,
        ``"cam"`` tests every parent in an additive regression, ``"ci"`` tests conditional independence
        (:mod:`vec2dag.prune` has them all with their options); a callable maps ``(X, A)`` to an adjacency matrix.
        ``"auto"`` is ``"cam"`` for regressions that are not linear, ``"linear"`` for linear equal-variance scores, and
        nothing otherwise: ``"bic-nv"`` has already selected, and a threshold on coefficients would depend on the
        units.
    prune_threshold : float, default 0.3
        Least coefficient for ``"linear"``.
    prune_alpha : float, default 0.001
        Significance level for ``"cam"`` and ``"ci"``.
    standardize : bool, default False
        Divide the columns by their standard deviations first.
    knowledge : None
    time_budget : float, optional
        Seconds after which the best graph so far is taken.
    checkpoint : path, optional
        A file in which the local scores of a regression that is not linear are kept: a run that is interrupted and
        started again, or repeated with other settings of the search, does not fit them again.
    n_jobs : int, optional
        Threads; None uses every core. The result does not depend on it.
    random_state : int, Generator, RandomState or None
    verbose : int, default 0
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    adjacency_matrix_ : array of shape (d, d), uint8
        The estimated DAG after pruning; ``[i, j] = 1`` means that column i causes column j.
    adjacency_raw_ : array of shape (d, d), uint8
        The DAG with the best score, before pruning.
    cpdag_ : array of shape (d, d), uint8
        Only for linear ``"bic-nv"``, which cannot tell members of a Markov equivalence class apart: 1 in both
        directions where the data do not determine the direction.
    prune_table_ : list of Verdict
        Of every edge of ``adjacency_raw_`` what pruning found and decided; empty without pruning and for callables.
    weights_ : array of shape (d, d)
        Linear regression coefficients of every node on its estimated parents.
    causal_order_ : array of shape (d,)
    graph_ : networkx.DiGraph
        With the names of the columns, edge strengths, and whether the direction is determined.
    score_ : float
        Of ``adjacency_raw_``, divided by n d.
    diagnostics_ : dict
        ``varsortability`` and ``r2_sortability``: the shares of causal pairs of the estimated graph that variances,
        or R2, alone would order the same way (nan without edges). Near 1 under an equal-variance score, fit warns.
    history_ : dict of arrays
        One entry a step of the search.
    search_ : SearchResult
        All that the search returned.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str, if the data had names

    Notes
    -----
    With a named score, ``model.score(X)`` is the score of the estimated DAG on a table, for cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(1000)
    >>> y = 2 * x + rng.standard_normal(1000)
    >>> ALIAS(score="bic-ev", random_state=0).fit(np.column_stack([x, y])).adjacency_matrix_
    array([[0, 1],
           [0, 0]], dtype=uint8)
    """

    score: Any = _ScoreParameter()
    cpdag_: NDArray[np.uint8]

    def __init__(
        self,
        score: str | Criterion | Score | Callable[[Any], float] = "bic-nv",
        regression: Any = "linear",
        algorithm: str | type = "auto",
        backend: str = "native",
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        entropy: float = 0.0,
        bound: float = 10.0,
        init: str | ArrayLike = "auto",
        refine: bool = True,
        prune: str | Callable[[Any, Any], Any] | None = "auto",
        prune_threshold: float = 0.3,
        prune_alpha: float = 0.001,
        standardize: bool = False,
        knowledge: Any = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.score = score
        self.regression = regression
        self.algorithm = algorithm
        self.backend = backend
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.entropy = entropy
        self.bound = bound
        self.init = init
        self.refine = refine
        self.prune = prune
        self.prune_threshold = prune_threshold
        self.prune_alpha = prune_alpha
        self.standardize = standardize
        self.knowledge = knowledge
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, **parameters: Any) -> "ALIAS":
        """The paper's own configuration for linear data, on the ``sb3`` backend.

        PPO, 64 parallel one-step environments, 20,000 updates, learning rate 0.0003, whole-graph reward, the decoded
        mean without refinement, coefficients pruned at 0.3.

        Parameters
        ----------
        **parameters
            In place of the paper's, as in ``ALIAS.paper(n_steps=1000)``. ``score=Score(X, "linear", "bic-ev",
            reference=True)`` also takes the formulas of the released implementation.
        """
        settings: dict[str, Any] = {
            "score": "bic-ev",
            "algorithm": "ppo",
            "backend": "sb3",
            "n_steps": 20_000,
            "batch_size": 64,
            "learning_rate": 0.0003,
            "init": "random",
            "refine": False,
        }
        return cls(**(settings | parameters))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the constructor, as they were given."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}

    def fit(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> "ALIAS":
        """Estimate the causal DAG of a table.

        Parameters
        ----------
        X : array of shape (n, d), data frame, or Moments
            Not modified. Names of columns are kept.
        y : ignored
        names : sequence of str, optional
            Names of the columns of an array that has none.

        Returns
        -------
        self
        """
        self._check_parameters()
        with one_blas_thread(), progress_bar(self.verbose) as callback:
            self._fit(X, names, callback)
        return self

    @property
    def _linear(self) -> bool:
        return isinstance(self.regression, str) and self.regression == "linear"

    def _prepared(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A copy of the table as regressions get it: centred, and standardised if asked."""
        # The sums of a mean depend on the layout in memory.
        values = np.ascontiguousarray(values)
        values = values - values.mean(axis=0)
        return values / values.std(axis=0) if self.standardize else values

    def _fit(self, X: Any, names: Sequence[str] | None, callback: Callback | None) -> None:
        data = self._validate(X, names)
        moments = data if isinstance(data, Moments) else Moments.of(data, self._names)
        if self.standardize:
            moments = moments.standardised()
        linear = Linear(moments)
        score = self._make_score(data, linear)
        method = self._pruning(score)
        if method in ("cam", "ci") and isinstance(data, Moments):
            raise ValueError(f"prune={self.prune!r} needs the rows of the table, X is Moments; prune=None needs none")
        with nullcontext() if self.checkpoint is None else score.stored(self.checkpoint):
            found = discover(
                score,
                d=linear.d,
                rng=_generator(self.random_state),
                algorithm=self.algorithm,
                search=_search(self.backend),
                init=self.init,
                refine=self.refine,
                n_steps=self.n_steps,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                entropy=self.entropy,
                bound=self.bound,
                time_budget=self.time_budget,
                callback=callback,
            )
        self.adjacency_raw_ = found.A
        self.score_ = found.score
        self._prune(data, linear, method)
        self._describe(found, linear, score)
        self._diagnose(moments, score)

    # The steps of fit, in the order of their use.

    def _check_parameters(self) -> None:
        known = choose("backend", self.backend, {"native": tuple(ALGORITHMS), "sb3": ("ppo", "a2c")})
        if isinstance(self.algorithm, str) or self.backend == "native":
            choose("algorithm", str(self.algorithm), dict.fromkeys(("auto", *known)))
        if self.knowledge is not None:
            raise NotImplementedError(
                f"knowledge={self.knowledge!r}: background knowledge is coming in a later version"
            )
        if isinstance(self.score, str):
            choose("score", self.score, CRITERIA)
        if isinstance(self.init, str):
            choose("init", self.init, {"auto": None, "random": None})
        if isinstance(self.prune, str):
            choose("prune", self.prune, dict.fromkeys(("auto", "linear", "bic", "cam", "ci")))
        elif self.prune is not None and not callable(self.prune):
            raise ValueError(
                f"prune={self.prune!r}: allowed are 'auto', 'linear', 'bic', 'cam', 'ci', None, and callables "
                "(X, A) -> A"
            )
        if not self.prune_threshold >= 0:
            raise ValueError(f"prune_threshold must be at least 0, got {self.prune_threshold!r}")
        if not 0 < self.prune_alpha < 1:
            raise ValueError(f"prune_alpha must be between 0 and 1, got {self.prune_alpha!r}")
        check_options(self.bound, self.entropy, self.time_budget)
        named = isinstance(self.score, str | Criterion)
        if not (named or self._linear):
            raise ValueError(
                f"regression={self.regression!r} has no effect on score={self.score!r}, which has its own: leave it out"
            )
        if self.checkpoint is not None and not isinstance(self.score, Score) and (self._linear or not named):
            raise ValueError(
                "checkpoint keeps the local scores of regressions that are not linear: regression='linear' takes "
                "microseconds each, and a callable score has none"
            )
        if self.standardize and isinstance(self.score, Score):
            raise ValueError("standardize=True has no effect on a Score, which holds its own data: standardise those")
        effective_jobs(self.n_jobs)

    def _validate(self, X: Any, names: Sequence[str] | None) -> NDArray[np.float64] | Moments:
        """Data that can be learned from; sets ``n_features_in_`` and the names."""
        if isinstance(X, Moments):
            d = self.n_features_in_ = len(X.names)
            if d < 2 or X.n < 2:
                raise ValueError(f"2 rows and 2 columns are needed at least, X has {X.n} and {d}")
            self._names = X.names if names is None else check_names(names, d)
            self.feature_names_in_ = np.array(self._names, dtype=object)
            return replace(X, names=self._names)
        labels = frame_labels(X)
        values: NDArray[np.float64] = validate_data(
            self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, ensure_min_features=2
        )
        d = values.shape[1]
        if names is not None:
            self.feature_names_in_ = np.array(check_names(names, d), dtype=object)
        known = getattr(self, "feature_names_in_", labels)
        self._names = default_names(d) if known is None else check_names([str(name) for name in known], d)
        check_values(values, self._names)
        for sentence in data_warnings(values, self._names):
            warnings.warn(sentence, DataWarning, stacklevel=3)
        return values

    def _make_score(self, data: NDArray[np.float64] | Moments, linear: Linear) -> Any:
        if isinstance(self.score, Score):
            if self.score.d != linear.d:
                raise ValueError(f"score is for {self.score.d} columns, X has {linear.d}")
            return self.score
        if isinstance(self.score, str | Criterion):
            if self._linear:
                return Score(None, linear, self.score, n_jobs=self.n_jobs)
            table = data if isinstance(data, Moments) else self._prepared(data)
            return Score(table, self.regression, self.score, n_jobs=self.n_jobs, names=self._names)
        if callable(self.score):
            return self.score
        raise ValueError(
            f"score={self.score!r}: allowed are 'bic-nv', 'bic-ev', 'ls', a Criterion, a Score, and "
            "callables A -> float"
        )

    def _pruning(self, score: Any) -> Any:
        """The method that ``prune`` stands for."""
        if not isinstance(self.prune, str) or self.prune != "auto":
            return self.prune
        if not isinstance(score, Score):
            return None
        if isinstance(score.regression, BoundRegression):
            return "cam"
        return "linear" if isinstance(score.regression, Linear) and score.criterion.name in EQUAL_VARIANCE else None

    def _prune(self, data: Any, linear: Linear, method: Any) -> None:
        A = self.adjacency_raw_
        self.prune_table_: list[Verdict] = []
        if callable(method):
            pruned = as_adjacency(method(data, A.copy()), "the result of prune")
            if pruned.shape != A.shape or not is_dag(pruned):
                problem = "a directed cycle" if pruned.shape == A.shape else f"shape {pruned.shape}"
                raise ValueError(f"prune must return a DAG of shape {A.shape}; the result has {problem}")
            self.adjacency_matrix_ = pruned
            return
        if method == "linear":
            self.prune_table_ = explain_linear(linear, A, self.prune_threshold)
        elif method == "bic":
            self.prune_table_ = explain_bic(linear, A)
        elif method == "cam":
            self.prune_table_ = explain_cam(data, A, self.prune_alpha, n_jobs=self.n_jobs)
        elif method == "ci":
            self.prune_table_ = explain_ci(data, A, self.prune_alpha, n_jobs=self.n_jobs)
        self.adjacency_matrix_ = kept(A, self.prune_table_)

    def _describe(self, found: SearchResult, linear: Linear, score: Any) -> None:
        A = self.adjacency_matrix_
        self.search_ = found
        self.history_ = found.history
        self.n_iter_ = found.n_iter
        self.weights_ = linear.coefficients(A)
        self.causal_order_ = topological_order(A)
        if hasattr(self, "cpdag_"):
            del self.cpdag_
        if (
            isinstance(score, Score)
            and score.criterion.name == "bic-nv"
            and isinstance(score.regression, Linear)
            and not score.regression.reference
        ):
            # An edge that was free before pruning stays free: pruning must not create a collider.
            self.cpdag_ = cpdag(self.adjacency_raw_) * skeleton(A)

    def _diagnose(self, moments: Moments, score: Any) -> None:
        """How well the scale of the columns alone would have sorted the estimated graph."""
        A = self.adjacency_matrix_
        # Equal up to rounding is a tie: standardised columns have nothing to sort by.
        self.diagnostics_ = {
            "varsortability": sortability(np.log(moments.variances()), A, tol=1e-9),
            "r2_sortability": sortability(r2_scores(moments.factor), A, tol=1e-9),
        }
        sorted_by_variance = self.diagnostics_["varsortability"]
        if isinstance(score, Score) and score.criterion.name in EQUAL_VARIANCE and sorted_by_variance > SORTABLE:
            warnings.warn(
                f"{score.criterion.name} assumes equal noise variances and reads the scale of the columns; sorting "
                f"by variance alone would order {sorted_by_variance:.0%} of the causal pairs of this graph alike. "
                "If the columns do not share one natural unit the directions may be an artefact of their units; "
                "score='bic-nv' with linear regression does not depend on units",
                DataWarning,
                stacklevel=4,
            )

    @property
    def free_(self) -> NDArray[np.bool_]:
        """Symmetric (d, d): edges whose direction the score does not determine."""
        check_is_fitted(self)
        if not hasattr(self, "cpdag_"):
            return np.zeros(self.adjacency_matrix_.shape, dtype=bool)
        return (self.cpdag_ & self.cpdag_.T).astype(bool)

    @property
    def graph_(self) -> "networkx.DiGraph":
        """The estimated DAG with names; edges have ``weight`` and ``direction`` ("determined" or "free")."""
        check_is_fitted(self)
        return to_networkx(self.adjacency_matrix_, self._names, weights=self.weights_, free=self.free_)


def _search(backend: str) -> Callable[..., SearchResult]:
    """What runs the algorithm."""
    if backend == "native":
        return policy_gradient
    from .sb3 import train

    return train


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r}: allowed are None, whole numbers of at least 0, and numpy's "
            "Generator and RandomState"
        ) from error
