"""The estimator: one class over the pure functions of the package."""

import dataclasses
import functools
import inspect
import json
import math
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from . import prune as pruning
from ._checks import (
    DataWarning,
    as_numbers,
    brief,
    check_names,
    check_values,
    choose,
    collected_warnings,
    data_warnings,
    default_names,
    flag,
    frame_labels,
    listing,
    quoted,
    shown,
    warn,
)
from ._parallel import OutOfTime, effective_jobs, one_blas_thread, until
from .columns import Coded, Columns, coded_warnings, rows_of, warn_of_rounding
from .confidence.bootstrap import check_missing, no_targets, of_complete
from .confidence.effects import coefficients
from .edges import EdgeTable, removed_edges
from .files.atomic import PathLike, as_json, write_together
from .files.graphs import graph_files, to_networkx
from .files.tables import columns_file
from .graph import cpdag, interventional_cpdag, maximally_oriented, skeleton, topological_order
from .interventions import Interventions, without_targets
from .jacobian import score_order
from .knowledge import Knowledge
from .metrics import r2_scores, sortability
from .missing import TREATMENTS, log_density
from .moments import Moments
from .progress import ProgressLine, announce_compilation
from .prune.applied import as_pruner, pruned, pruned_by_regime
from .scores import (
    CRITERIA,
    REGRESSIONS,
    ConditionalTable,
    Criterion,
    GraphScore,
    Linear,
    LinearOnTable,
    Regimes,
    Regression,
    Score,
    SklearnRegression,
    as_criterion,
    as_score,
    describe,
    is_criterion,
    table_for,
)
from .search import ALGORITHMS, Budget, Checkpoint, Relabelling, SearchResult, Start, discover

if TYPE_CHECKING:
    import networkx

__all__ = ["ALIAS"]

# Share of causal pairs sorted by variance that is suspicious under a criterion that reads the variances.
SORTABLE = 0.9
# Share of the time budget that is left to tests of edges.
PRUNING = 0.2
# Share of the time of the search that may go into where it starts; and of all of it that missing values may take.
STARTING, MISSING = 0.5, 0.5
# Edges that a summary shows at most.
SHOWN = 40

# Parameters of earlier versions, and where they are now.
MOVED = {
    "score": "score is now called criterion: criterion='bic-nv'",
    "backend": "backend is gone: algorithm=vec2dag.sb3.PPO(...) or sb3.A2C(...) trains with Stable-Baselines3",
    "prune_threshold": "prune_threshold belongs to the pruning: prune=vec2dag.prune.Threshold(threshold=...)",
    "prune_alpha": "prune_alpha belongs to the pruning: prune=vec2dag.prune.CAM(alpha=...) or prune.CI(alpha=...)",
}
# The kinds of settings of each axis.
AXES: dict[str, tuple[type, ...]] = {
    "criterion": tuple({type(make()): None for make in CRITERIA.values()}),
    "regression": (*(type(make()) for make in REGRESSIONS.values()), SklearnRegression),
    "algorithm": tuple(type(make()) for make in ALGORITHMS.values()),
    "prune": tuple(type(make()) for make in pruning.PRUNERS.values()),
}


def where_it_belongs(parameter: str) -> str | None:
    """A sentence that names the axis to which a setting belongs; None if it is not known at all."""
    if parameter in MOVED:
        return MOVED[parameter]
    found = []
    for axis, kinds in AXES.items():
        room = "prune." if axis == "prune" else ""
        homes = [f"{room}{kind.__name__}" for kind in kinds if parameter in {f.name for f in dataclasses.fields(kind)}]
        if homes:
            others = f" (or {', '.join(homes[1:])})" if homes[1:] else ""
            found.append(f"{axis}={homes[0]}({parameter}=...){others}")
    return f"{parameter} is a setting: {' or '.join(found)}" if found else None


def _explains_moved(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that says of a parameter it does not have where that belongs."""
    own = inspect.signature(init).parameters

    @functools.wraps(init)
    def explained(self: Any, *args: Any, **parameters: Any) -> None:
        _refuse_moved([name for name in parameters if name not in own])
        init(self, *args, **parameters)

    return explained


def _refuse_moved(strange: Iterable[str]) -> None:
    for name in strange:
        if (sentence := where_it_belongs(name)) is not None:
            raise TypeError(f"ALIAS has no parameter {name!r}: {sentence}")


class ALIAS(BaseEstimator):
    """Causal discovery by policy gradient over vectors that all decode to DAGs.

    Four axes say what is done; each is a short name or a small object that holds settings.

    Parameters
    ----------
    criterion : str, Criterion, Score, or callable, default "auto"
        What to maximise. ``"auto"`` is ``"ebic-nv"`` for tables of numbers, ``"bdeu"`` for tables of categories, and
        ``"ebic-dg"`` for tables of both; ``criterion_`` says which.

        Of numbers: ``"bic-nv"`` and ``"ebic-nv"`` (unequal noise variances) with linear regression do not depend on the
        units of the columns; ``"bic-ev"``, ``"ebic-ev"`` and ``"ls"`` (equal noise variances) read the variances
        themselves; ``"bge"`` is Bayesian. The extended ones charge more for edges where there are many columns;
        ``"bic-nv"`` and ``"bic-ev"`` are the paper's. Settings of these are ``BIC``, ``LeastSquares`` and ``BGe``.
        Of categories: ``"bdeu"`` (``BDeu``) and ``"bic-cat"`` (``MultinomialBIC``). Of both: ``"bic-dg"`` and
        ``"ebic-dg"`` (``DegenerateGaussian``). A callable takes an adjacency matrix (d, d) and returns a number.
    regression : {"linear", "additive", "gp", "gp-auto"}, settings of these, or regressor, default "linear"
        How nodes are regressed on their parents: linearly; by sums of smooth functions; by Gaussian processes, the
        paper's (``"gp"``, ``GaussianProcess()``) or such that learn all they need from the table (``"gp-auto"``,
        ``LearnedProcess()``, for real tables); or by any estimator with ``fit`` and ``predict``.
    algorithm : {"auto", "local", "orders", "conditional", "credit", "ppo", "a2c", "reinforce"}, or settings
        How to search: ``PPO(n_steps=...)``, ``LocalSearch(chains=...)`` and so on; ``vec2dag.sb3.PPO(...)``,
        ``sb3.A2C(...)`` or any on-policy class of Stable-Baselines3. ``"auto"``, the default, is the conditional
        gradient for equal-variance criteria with linear regression and where ``refine`` is off. Otherwise, as the
        gradient alone stops short there, it is iterated local search for linear regression and the policy over orders
        for others; and PPO for callables.
    prune : {"auto", "linear", "bic", "cam", "ci", None}, settings or callable, default "auto"
        ``"linear"`` thresholds regression coefficients (``prune.Threshold``), ``"bic"`` removes edges while the linear
        BIC improves, ``"cam"`` tests every parent in an additive regression, ``"ci"`` tests conditional independence
        (:mod:`vec2dag.prune` has them all with their settings); a callable maps ``(X, A)`` to an adjacency matrix with
        fewer edges. ``"auto"`` is ``"cam"`` for regressions that are not linear, ``"linear"`` for linear equal-variance
        criteria, and nothing otherwise: ``"ebic-nv"`` has already selected, and a threshold on coefficients would
        depend on the units.
    init : {"auto", "random", "score"}, adjacency matrix (d, d), or order (d,), default "auto"
        Where the search starts; ``"auto"`` is the greedy equal-variance order for ``"bic-ev"`` and ``"ls"`` with linear
        regression and random otherwise, ``"random"`` is the paper's cold start. ``"score"`` is the order of
        :func:`vec2dag.score_order`, for functions that are not linear; columns are standardised for it, unless
        ``standardize=False`` or the criterion say that their units can be compared. ``search_.init`` says which it was.
    refine : bool, default True
        Continue with insertion search until no move of a node in the order and no change of an edge improves the
        score (``search_.certificate`` says what exactly was checked). Up to 12 columns (7 for regressions other than
        linear) the best of all DAGs is computed unless variances are equal (``search_.exact``). Arbitrary callables
        are not refined.
    standardize : bool or "auto", default "auto"
        Whether to divide the columns by their standard deviations first. ``"auto"`` does so for regressions that depend
        on units, as ``"gp"`` does, unless the criterion takes variances to be equal; ``standardized_`` says whether.
    categorical : "auto", None, or list of names and positions, default "auto"
        Which columns are categories: with ``"auto"`` those of truth values, of text, and of types made for it (pandas'
        and polars' Categorical, polars' Enum); a list names further ones, whole numbers for instance; None is none.
        Criteria that are for categories alone take columns of few different numbers for such.
    missing : {"refuse", "drop", "pairwise-complete", "em", "impute"}, default "refuse"
        What to do about missing values (NaN, None, NA): refuse the table; leave out rows that have one; take every
        covariance from the rows that have both columns; take means and covariances of greatest likelihood by EM; or
        draw them at random, anew for every sample of :func:`vec2dag.bootstrap`. :mod:`vec2dag.missing` says what each
        assumes, and so does a warning. Regressions that need rows take ``"drop"`` and ``"impute"``.
    knowledge : Knowledge, optional
        What is known of the graph, by the names of the columns: edges that are required or forbidden, tiers, limits
        (:class:`vec2dag.Knowledge`, or what :meth:`Knowledge.of` takes). Only graphs that agree with it are searched,
        and pruning keeps what is required.
    time_budget : float, optional
        Seconds after which the best graph so far is taken.
    checkpoint : path, optional
        A file in which the search is kept as it goes on. A run that was killed, interrupted or out of time, and is
        started again with the same table, parameters and seed, continues and ends in the same result; ``time_budget``
        is of each run, and ``random_state=None`` continues whatever the file has of these settings. With other settings
        of the search only local scores of regressions that are not linear are used again. A file of another table is
        refused, and so are algorithms of Stable-Baselines3 where there are no such scores.
    n_jobs : int, optional
        Threads; None uses every core. The result does not depend on it. A Score as the criterion keeps its own number.
    random_state : int, Generator, RandomState or None
    verbose : int, default 0
        1 shows on a terminal what the fit is doing.

    Attributes
    ----------
    adjacency_matrix_ : array of shape (d, d), uint8
        The estimated DAG after pruning; ``[i, j] = 1`` means that column i causes column j.
    adjacency_raw_ : array of shape (d, d), uint8
        The DAG with the best score, before pruning.
    cpdag_ : array of shape (d, d), uint8
        Only for linear ``"bic-nv"`` and ``"ebic-nv"`` and for criteria of categories, which cannot tell members of a
        Markov equivalence class apart: 1 in both directions where neither the data, with what was set in them, nor what
        is known determine the direction.
    edges_ : EdgeTable
        The edges with names, strongest first; ``pandas.DataFrame(model.edges_)`` is a frame of them.
    prune_table_ : list of Verdict
        Of every edge of ``adjacency_raw_`` what pruning found and decided; empty without pruning and for callables.
    weights_ : array of shape (d, d)
        Linear regression coefficients of every node on its estimated parents; NaN where one of the two is a category.
    causal_order_ : array of shape (d,)
    graph_ : networkx.DiGraph
        With the names of the columns, edge strengths, and whether the direction is determined.
    score_ : float
        Of ``adjacency_raw_``, divided by n d.
    diagnostics_ : dict
        ``varsortability`` and ``r2_sortability``: the shares of causal pairs of the estimated graph that variances,
        or R2, alone would order the same way (nan without edges). Near 1 under an equal-variance criterion, fit warns.
    history_ : dict of arrays
        One entry a step of the search.
    search_ : SearchResult
        All that the search returned.
    n_iter_ : int
    free_ : array of shape (d, d), bool
        Edges whose direction neither the score nor what is known determines.
    known_ : array of shape (d, d), bool
        Edges that are there, or are directed as they are, because of what is known.
    parameters_ : dict
        The parameters with which the model was fitted.
    notes_ : list of str
        What fit has warned of.
    seconds_ : float
        What fit has taken.
    regression_ : Regression or None
        The regressions on the table of ``fit``, in its order of columns, of which the criterion is made; None if that
        is a callable or a Score.
    standardized_ : bool
        Whether columns were divided by their standard deviations; ``weights_`` are then in those units.
    criterion_ : Criterion, Score or callable
        What was maximised: what a name, or ``"auto"``, stood for.
    tables_ : dict of ConditionalTable, if all columns are categories
        By the name of the column its probabilities given the estimated parents.
    columns_ : Columns
        Names of the columns, and the levels of those that are categories.
    moments_ : Moments
        Number of rows, mean and scatter of the table, in the units of ``weights_``; of categories those of their codes,
        which say nothing.
    interventions_ : Interventions or None
        Which columns were set in which rows.
    node_moments_ : list of d Moments
        Of the rows in which each node was not set: ``moments_`` where there are no interventions.
    missing_ : array of shape (d,)
        Missing values of every column of the table.
    n_samples_ : int
        Rows of the table that count.
    n_features_in_ : int
    feature_names_in_ : array of str, if the data had names

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(1000)
    >>> y = 2 * x + rng.standard_normal(1000)
    >>> model = ALIAS(criterion="bic-ev", random_state=0).fit(np.column_stack([x, y]))
    >>> model.adjacency_matrix_
    array([[0, 1],
           [0, 0]], dtype=uint8)
    >>> model.edges_["source"], model.edges_["target"]
    (['x0'], ['x1'])
    """

    cpdag_: NDArray[np.uint8]
    regression_: Regression | None

    @_explains_moved
    def __init__(
        self,
        criterion: str | Criterion | Score | Callable[[Any], float] = "auto",
        regression: Any = "linear",
        algorithm: Any = "auto",
        prune: Any = "auto",
        init: str | ArrayLike = "auto",
        refine: bool = True,
        standardize: bool | str = "auto",
        categorical: Any = "auto",
        missing: str = "refuse",
        knowledge: Any = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.regression = regression
        self.algorithm = algorithm
        self.prune = prune
        self.init = init
        self.refine = refine
        self.standardize = standardize
        self.categorical = categorical
        self.missing = missing
        self.knowledge = knowledge
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> "ALIAS":
        """Set parameters, those of settings as in ``algorithm__n_steps``; an error leaves all as they were."""
        before = self.get_params(deep=False)
        _refuse_moved(name for name in params if name.partition("__")[0] not in before)
        for name in params:
            axis, nested, _ = name.partition("__")
            if nested and isinstance(value := params.get(axis, before[axis]), str):
                raise ValueError(
                    f"{name}: {axis}={brief(value)} is a name; set {axis} to an object with settings first"
                )
        try:
            super().set_params(**params)
        except BaseException:
            self.__dict__.update(before)
            raise
        return self

    @classmethod
    def paper(cls, **parameters: Any) -> "ALIAS":
        """The paper's own configuration for linear data, trained by Stable-Baselines3 (an extra).

        PPO, 64 parallel one-step environments, 20,000 updates, learning rate 0.0003, whole-graph reward, the decoded
        mean without refinement, coefficients pruned at 0.3.

        Parameters
        ----------
        **parameters
            In place of the paper's, as in ``ALIAS.paper(algorithm=sb3.PPO(n_steps=1000))``. ``criterion=Score(X,
            Linear(reference=True), "bic-ev")`` also takes the formulas of the released implementation.
        """
        from . import sb3

        settings = {"criterion": "bic-ev", "algorithm": sb3.PPO(), "init": "random", "refine": False}
        return cls(**(settings | parameters))

    def fit(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None, interventions: Any = None) -> "ALIAS":
        """Estimate the causal DAG of a table.

        Parameters
        ----------
        X : array of shape (n, d), data frame, or Moments
            Not modified. Names of columns are kept.
        y : ignored
        names : sequence of str, optional
            Names of the columns of an array that has none.
        interventions : sequence of n entries, array of bool of shape (n, d), Interventions, or str, optional
            Which columns were set by somebody in every row, so that their causes did not act there: names or positions
            as :meth:`vec2dag.Interventions.of` takes them, None where nothing was set; or the label of the column of
            the data frame that holds them, which is then no variable. A node is regressed on the rows in which it was
            not set.

        Returns
        -------
        self
        """
        start = time.perf_counter()
        fitted = self._unfitted()
        X, interventions = without_targets(X, interventions)
        with one_blas_thread(), collected_warnings() as fitted.notes_, announce_compilation():
            fitted._fit(X, names, interventions, start)
        fitted.seconds_ = time.perf_counter() - start
        # Only now: a fit that fails leaves the estimator as it was.
        self.__dict__ = fitted.__dict__
        return self

    def _unfitted(self) -> "ALIAS":
        """A copy without anything learned."""
        fresh = copy(self)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(fresh, name)
        return fresh

    def _fit(self, X: Any, names: Sequence[str] | None, interventions: Any, start: float) -> None:
        self._check_parameters()
        # As they are now: settings may be shared, and changed later.
        self.parameters_ = {
            name: deepcopy(value) if isinstance(value, BaseEstimator) else value
            for name, value in self.get_params(deep=False).items()
        }
        rng = _generator(self.random_state)
        data = self._validate(X, names)
        if not isinstance(data, Moments) and self.missing_.any():
            if interventions is not None:
                told = Interventions.of(interventions, self._names, self.n_samples_)
                treatment = check_missing(self.get_params(deep=False), self.columns_)
                interventions = of_complete(told, rows_of(data), treatment, self.missing)
            data = self._without_missing(data, rng, start)
        self.interventions_ = self._interventions(interventions, data)
        moments = data if isinstance(data, Moments) else Moments.of(rows_of(data), self._names)
        self.standardized_ = self._standardises()
        self._units = moments.mean, np.sqrt(moments.variances()) if self.standardized_ else np.ones_like(moments.mean)
        if self.standardized_:
            moments = moments.standardised()
        self.moments_ = moments
        linear = self._linear_on(data, moments)
        score = self._make_score(data, moments)
        labels = Relabelling(self._columns)
        if self.knowledge is None:
            # A score may have brought its own.
            self._constraints = score.constraints.taken(labels.place)
        else:
            self._constraints = Knowledge.of(self.knowledge, self._names).bind(self._names)
        self._warn_of(data, score)
        pruner = as_pruner(self.prune, score, self.columns_)
        if isinstance(data, Moments) and hasattr(pruner, "explain") and getattr(pruner, "needs_rows", True):
            raise ValueError(
                f"prune={brief(self.prune)} needs the rows of the table, X is Moments; prune=None needs none"
            )
        # Tests of edges take their time too, where they look at rows.
        share = 1.0 if pruner is None or not getattr(pruner, "needs_rows", True) else 1.0 - PRUNING
        seconds = None if self.time_budget is None else share * self.time_budget
        with ProgressLine(bool(self.verbose), self.time_budget) as line:
            # Taken first: it is not in the time that is left to the search.
            begin = self._start(data, labels, math.inf if seconds is None else start + STARTING * seconds)
            found = discover(
                score,
                rng=rng,
                algorithm=self._algorithm(),
                init=begin,
                refine=self.refine,
                knowledge=None if self.knowledge is None else self._constraints.taken(self._columns),
                time_budget=None if seconds is None else max(start + seconds - time.perf_counter(), 1e-3),
                callback=line.callback,
                watch=line.watch,
                checkpoint=self._checkpoint(),
            )
            found = labels.restored(found)
            if not found.ready:
                if found.stopped == "interrupted":
                    raise KeyboardInterrupt("interrupted before a first graph was ready")
                warn(f"the search had to end ({found.stopped}) before a first graph was ready: this is a part of one")
            line.doing(f"pruning {int(found.A.sum())} edges")
            with until(math.inf if self.time_budget is None else start + self.time_budget):
                found, A = self._pruned_in_time(pruner, data, linear, found)
        self._describe(found, A, linear, score)
        self._diagnose(moments, score)

    def _interventions(self, interventions: Any, data: NDArray[np.float64] | Coded | Moments) -> Interventions | None:
        """What was set in which rows; None where nothing was."""
        if interventions is None:
            return None
        if isinstance(data, Moments):
            raise ValueError(
                "interventions need the rows of the table, X is Moments: those in which a column was set have to be "
                "told from the others"
            )
        if self.columns_.by_name:
            raise ValueError(no_targets(self.columns_))
        if not is_criterion(self.criterion):
            raise ValueError(
                f"interventions have no effect on criterion={brief(self.criterion)}, which has its own data, or none: "
                "give them to Score(X, ..., interventions=...)"
            )
        found = Interventions.of(interventions, self._names, self.n_samples_)
        for sentence in found.doubts():
            warn(sentence, DataWarning)
        return None if found.trivial else found

    def _linear_on(self, data: Any, moments: Moments) -> LinearOnTable | Regimes:
        """Linear regressions in the order of the table, of every node on the rows in which it was not set."""
        if self.interventions_ is None:
            self.node_moments_ = [moments] * len(moments.names)
            return LinearOnTable(moments)
        regimes = Regimes(self._prepared(data), Linear(), self.interventions_)
        self.node_moments_ = regimes.by_node()
        return regimes

    # The steps of fit, in the order of their use.

    def _check_parameters(self) -> None:
        Budget(self.time_budget)
        effective_jobs(self.n_jobs)
        named = is_criterion(self.criterion)
        if isinstance(self.criterion, str):
            as_criterion(self.criterion)
        elif isinstance(self.criterion, type):
            raise ValueError(f"criterion={brief(self.criterion)} is a class: settings are made by calling it")
        elif not named and not callable(self.criterion):
            raise ValueError(
                f"criterion={brief(self.criterion)}: allowed are 'auto', {', '.join(map(repr, CRITERIA))}, settings of "
                "these such as BIC(...), a Score, and callables A -> float"
            )
        plain = isinstance(self.regression, str) and self.regression == "linear"
        if not named and not plain:
            raise ValueError(
                f"regression={brief(self.regression)} has no effect on criterion={brief(self.criterion)}, which has "
                "its own: leave it out"
            )
        if hasattr(self.regression, "residual") and not hasattr(self.regression, "bind"):
            raise ValueError(
                f"regression={brief(self.regression)} holds its own data: "
                "give criterion=Score(None, regression, 'bic-nv')"
            )
        flag("refine", self.refine)
        choose("missing", self.missing, TREATMENTS)
        automatic = isinstance(self.standardize, str) and self.standardize == "auto"
        if not isinstance(self.standardize, bool | np.bool_) and not automatic:
            raise ValueError(f"standardize={brief(self.standardize)} is unknown; allowed: True, False, 'auto'")
        if self.standardize is True and getattr(self.criterion, "local", None) is not None:
            raise ValueError("standardize=True has no effect on a Score, which holds its own data: standardise those")

    def _validate(self, X: Any, names: Sequence[str] | None) -> NDArray[np.float64] | Coded | Moments:
        """Data that can be learned from, but for missing values; sets what is known of columns, and the criterion."""
        data = self._validated(X, names)
        warn_of_rounding(X, self.columns_)
        self.criterion_ = (
            as_criterion(self.criterion, self.columns_) if is_criterion(self.criterion) else self.criterion
        )
        return data

    def _validated(self, X: Any, names: Sequence[str] | None) -> NDArray[np.float64] | Coded | Moments:
        if isinstance(X, Moments):
            d = self.n_features_in_ = len(X.names)
            self.missing_ = np.zeros(d, np.int64)
            if d < 2 or X.n < 2:
                raise ValueError(f"2 rows and 2 columns are needed at least, X has {X.n} and {d}")
            self._names = X.names if names is None else check_names(names, d)
            self.feature_names_in_ = np.array(self._names, dtype=object)
            self.n_samples_ = X.n
            self.columns_ = Columns.numeric(self._names)
            return replace(X, names=self._names)
        if (table := table_for(self.criterion, X, self.categorical, names, self.regression)) is not None:
            self.columns_, self._names = table.columns, table.columns.names
            self.n_samples_, self.n_features_in_ = table.values.shape
            if names is not None or hasattr(X, "columns"):
                self.feature_names_in_ = np.array(self._names, dtype=object)
            check_values(table.values, self._names, missing=True)
            self.missing_ = np.isnan(table.values).sum(axis=0)
            return table if self.columns_.categorical.any() else table.values
        labels = frame_labels(X)
        if labels is None:
            X = as_numbers(X)
            if X.ndim != 2:
                raise ValueError(f"X must be a 2-D array (rows, columns), got shape {X.shape}")
        values: NDArray[np.float64] = validate_data(
            self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, ensure_min_features=2
        )
        self.n_samples_, d = values.shape
        if names is not None:
            self.feature_names_in_ = np.array(check_names(names, d), dtype=object)
        known = getattr(self, "feature_names_in_", labels)
        self._names = default_names(d) if known is None else check_names([str(name) for name in known], d)
        self.columns_ = Columns.numeric(self._names)
        check_values(values, self._names, missing=True)
        self.missing_ = np.isnan(values).sum(axis=0)
        return values

    def _without_missing(
        self, table: NDArray[np.float64] | Coded, rng: np.random.Generator, start: float
    ) -> NDArray[np.float64] | Coded | Moments:
        """The table with its missing values treated as asked, or its Moments; sets ``n_samples_``."""
        treatment = check_missing(self.get_params(deep=False), self.columns_)
        if treatment.draws and self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                f"checkpoint with missing={self.missing!r} needs a random_state, to draw the same values again"
            )
        deadline = math.inf if self.time_budget is None else start + MISSING * self.time_budget
        with ProgressLine(bool(self.verbose)) as line, until(deadline):
            line.doing("missing values")
            data = treatment(rows_of(table), self._names, rng.spawn(1)[0])
        self.n_samples_ = data.n if isinstance(data, Moments) else len(data)
        if not isinstance(data, Moments):
            check_values(data, self._names, rows=len(rows_of(table)))
            if isinstance(table, Coded):
                kept = Coded(data, self.columns_).trimmed()
                self.columns_ = kept.columns
                return kept
        return data

    def _standardises(self) -> bool:
        """Whether columns are divided by their standard deviations."""
        if hasattr(self, "columns_") and self.columns_.categorical.any():
            if self.standardize is True:
                raise ValueError("standardize=True has no effect on a table with categories: leave it out")
            return False
        if self.standardize != "auto":
            return bool(self.standardize)
        if not is_criterion(self.criterion) or as_criterion(self.criterion).equal_variances:
            return False
        regression = as_criterion(self.criterion).regression(self.regression)
        return bool(getattr(describe(regression), "reads_units", False))

    def _start(self, data: NDArray[np.float64] | Coded | Moments, labels: Relabelling, deadline: float) -> Any:
        """What ``init`` stands for, with the numbers that columns have in the score."""
        if not isinstance(self.init, str) or self.init != "score":
            return labels.init(self.init)
        if isinstance(data, Coded):
            raise ValueError(f"init='score' is for numbers, and {quoted(self.columns_.by_name)} are categories")
        if isinstance(data, Moments):
            raise ValueError("init='score' needs the rows of the table; Moments have only mean and scatter")
        if self.interventions_ is not None:
            raise ValueError("init='score' takes all rows to be of one distribution, which interventions change")
        comparable = is_criterion(self.criterion) and as_criterion(self.criterion).equal_variances
        units = np.ones(data.shape[1]) if self.standardize is False or comparable else data.std(axis=0)
        table, before = (data / units)[:, labels.order], self._constraints.taken(labels.order).before
        return Start.at(score_order(table, before, over=lambda: time.perf_counter() >= deadline), "score order")

    def _warn_of(self, data: NDArray[np.float64] | Coded | Moments, score: GraphScore) -> None:
        """Say what in the table will mislead the score."""
        asked = score.linear is False and score.local is not None and score.local.regression.reads_units
        reads_units = score.equal_variances or (asked and not self.standardized_)
        if isinstance(data, Moments):
            sentences = data.doubts(reads_units=reads_units)
        elif isinstance(data, Coded):
            sentences = coded_warnings(data)
        else:
            sentences = data_warnings(data, self._names, reads_units=reads_units)
        if score.local is not None and (doubt := score.local.regression.doubt()) is not None:
            sentences.append(doubt)
        for sentence in sentences:
            warn(sentence, DataWarning)

    def _make_score(self, data: Any, moments: Moments) -> GraphScore:
        """What is maximised; sets the order that columns have in it, and ``regression_``."""
        if not is_criterion(self.criterion_):
            self._columns, self.regression_ = np.arange(self.n_features_in_), None
            return as_score(self.criterion_, self.n_features_in_)
        # Searches end in other local optima if columns are in another order: they are always put in the same.
        self._columns = moments.canonical_order()
        score = self._score_by(self.criterion_, data, moments)
        # For whoever asks the same score something else, with the columns as they are in the table.
        self.regression_ = score.regression.taken(np.argsort(self._columns))
        return score

    def _score_by(self, criterion: str | Criterion, data: Any, moments: Moments) -> Score:
        """The score that a criterion makes of the table, with its columns in the order of the search."""
        if isinstance(data, Coded):
            return Score(data.taken(self._columns), self.regression, criterion, n_jobs=self.n_jobs)
        regression, targets = describe(self.regression), self.interventions_
        rows = getattr(regression, "needs_rows", True) and not isinstance(data, Moments)
        moments = moments.taken(self._columns)
        table = self._prepared(data)[:, self._columns] if rows or targets is not None else moments
        if targets is not None:
            targets = targets.taken(self._columns)
        return Score(table, regression, criterion, n_jobs=self.n_jobs, names=moments.names, interventions=targets)

    def _prepared(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A copy of a table as regressions get it: centred, and standardised if asked, by the table of fit."""
        mean, deviations = self._units
        return (np.ascontiguousarray(values) - mean) / deviations

    def _algorithm(self) -> Any:
        """Names and settings as they are; a class of Stable-Baselines3 as settings of it."""
        if not isinstance(self.algorithm, type) or self.algorithm in AXES["algorithm"]:
            return self.algorithm
        from . import sb3

        return sb3.OnPolicy(self.algorithm)

    def _checkpoint(self) -> Checkpoint | None:
        """The file of the search; without a seed of one's own the random numbers of the file are as good as any."""
        return None if self.checkpoint is None else Checkpoint(self.checkpoint, any_seed=self.random_state is None)

    def _pruned_in_time(
        self, pruner: Any, data: Any, linear: Any, found: SearchResult
    ) -> tuple[SearchResult, NDArray[np.uint8]]:
        """What was found, and its graph after pruning, or before it if that had to end; sets ``prune_table_``."""
        self.prune_table_: list[pruning.Verdict] = []
        if pruner is None:
            return found, found.A.copy()
        how = pruned if self.interventions_ is None else pruned_by_regime
        required = self._constraints.required
        not_pruned = "the graph is the one that the search found, not pruned"
        try:
            A, self.prune_table_ = how(pruner, data, linear, found.A, required, self._names, self.n_jobs)
            return found, A
        except OutOfTime:
            warn(f"the time was over before pruning had ended: {not_pruned}")
            return replace(found, stopped="time"), found.A.copy()
        except KeyboardInterrupt:
            warn(f"interrupted while pruning: {not_pruned}")
            return replace(found, stopped="interrupted"), found.A.copy()

    def _describe(
        self, found: SearchResult, A: NDArray[np.uint8], linear: LinearOnTable | Regimes, score: GraphScore
    ) -> None:
        self._criterion_name, self._linear = score.name, score.linear is not False
        self.adjacency_raw_, self.adjacency_matrix_ = found.A, A
        self.score_ = found.score
        self.search_ = found
        self.history_ = found.history
        self.n_iter_ = found.n_iter
        self.weights_ = linear.coefficients(A)
        if self.columns_.categorical.any():
            self._describe_categories(A)
        self.causal_order_ = topological_order(A)
        known = self._constraints
        self.known_ = A.astype(bool) & (known.required | ~known.allowed.T)
        if score.score_equivalent:
            # An edge that was free before pruning stays free: pruning must not create a collider.
            by_data = self._essential(self.adjacency_raw_)
            self.cpdag_ = maximally_oriented(by_data, known.required, known.allowed) * skeleton(A)
            self.known_ = A.astype(bool) & (known.required | (by_data & by_data.T & ~self.free_))

    def _essential(self, A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The class of graphs (d, d) that no score of this table can tell from ``A``."""
        if self.interventions_ is None:
            return cpdag(A)
        return interventional_cpdag(A, self.interventions_.patterns)

    def _describe_categories(self, A: NDArray[np.uint8]) -> None:
        """What there is in place of coefficients where columns are categories."""
        category = self.columns_.categorical
        self.weights_ = np.where(A.astype(bool) & (category[:, None] | category), np.nan, 0.0)
        self._gains = np.zeros(A.shape)
        # Gains need d^2 costs: a moment where these are compiled, and as long as a search where they are not.
        if self.regression_ is None or not self.regression_.has_costing:
            return
        self.weights_ = self.regression_.coefficients(A)
        score = Score(None, self.regression_, as_criterion(self.criterion_), n_jobs=self.n_jobs)
        links, changes = score.toggles(A)
        last = score.steps[A.sum(axis=0, dtype=np.int64) - 1]
        # From scores, which are divided by n d, to logarithms of probabilities, of which BIC has twice.
        lost = -score.change(changes.T, float(links.sum())) - last
        self._gains = np.where(A, 0.5 * score.n * score.d * lost, 0.0)

    def _diagnose(self, moments: Moments, score: GraphScore) -> None:
        """How well the scale of the columns alone would have sorted the estimated graph."""
        A = self.adjacency_matrix_
        if self.columns_.categorical.any():
            # Codes have no scale.
            self.diagnostics_ = {"varsortability": math.nan, "r2_sortability": math.nan}
            return
        # Equal up to rounding is a tie: standardised columns have nothing to sort by.
        self.diagnostics_ = {
            "varsortability": sortability(np.log(moments.variances()), A, tol=1e-9),
            "r2_sortability": sortability(r2_scores(moments.factor), A, tol=1e-9),
        }
        sorted_by_variance = self.diagnostics_["varsortability"]
        if score.equal_variances and sorted_by_variance > SORTABLE:
            warn(
                f"{score.name} assumes equal noise variances and reads the scale of the columns; sorting "
                f"by variance alone would order {sorted_by_variance:.0%} of the causal pairs of this graph alike. "
                "If the columns do not share one natural unit the directions may be an artefact of their units; "
                "criterion='bic-nv' with linear regression does not depend on units",
                DataWarning,
            )

    # What a fitted model says.

    def score(self, X: Any, y: Any = None, *, interventions: Any = None) -> float:
        """Average log-likelihood of the rows of ``X`` (m, d) under the estimated DAG; higher is better.

        With ``interventions``, as of :meth:`fit`, values that were set do not count: every node has its average over
        the rows in which it was not, and the averages add up.

        Regressions, and Gaussian noise of the variances that they left, are those of the rows of ``fit``: on other
        rows this is a held-out measure. Of categories it is the log probability. It is in the units of the table
        whatever the criterion was, so that models with different criteria, regressions and prunings can be compared. A
        Score or a callable as the criterion has regressions of its own, or none, and cannot be asked. Rows with missing
        values are refused or left out where ``missing`` says so; otherwise the density of the values that are there
        counts, for linear regressions.
        """
        check_is_fitted(self)
        if self.regression_ is None:
            raise ValueError(
                "score(X) needs a criterion such as 'bic-nv' and a regression that can be fitted to the table; "
                f"criterion={brief(self.parameters_['criterion'])} holds its own data, or has none"
            )
        X, interventions = without_targets(X, interventions)
        categories = self.columns_.categorical.any()
        if categories:
            values = self.columns_.encode(X)
            if not len(values):
                raise ValueError("score(X) needs at least one row, and X has none")
        else:
            with warnings.catch_warnings():
                # Names may have been given beside an array: that the next array has none is no surprise.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                values = validate_data(
                    self, X, reset=False, dtype=np.float64, ensure_min_samples=1, ensure_all_finite="allow-nan"
                )
        if np.isnan(values).any():
            treatment = TREATMENTS[self.parameters_["missing"]]
            if interventions is not None or self.interventions_ is not None:
                raise ValueError("score(X) with interventions needs rows without missing values: leave the others out")
            if not treatment.once:
                return self._score_of_some(values)
            values = np.asarray(treatment(values, self._names, np.random.default_rng(0)))
        values = values if categories else self._prepared(values)
        counted = np.ones(values.shape, dtype=bool)
        if interventions is not None:
            told = Interventions.of(interventions, self._names, len(values))
            counted = ~told.is_set[told.rows]
        if self.interventions_ is not None:
            # Of nodes that were set wherever it was fitted it knows nothing.
            counted[:, self.regression_.rows == 0] = False
        density, nodes = 0.0, np.flatnonzero(counted.any(axis=0))
        for node in nodes.tolist():
            parents, rows = np.flatnonzero(self.adjacency_matrix_[:, node]).tolist(), counted[:, node]
            own = values if rows.all() else values[rows]
            density += self.regression_.log_density(node, parents, own)
        return density - float(np.log(self._units[1][nodes]).sum())

    def _score_of_some(self, values: NDArray[np.float64]) -> float:
        """The same of rows (m, d) with missing values: the density of those that are there."""
        assert self.regression_ is not None
        if not self.regression_.linear:
            raise ValueError(
                "score(X) of rows with missing values needs columns of numbers and linear regressions: leave these "
                "rows out"
            )
        d = values.shape[1]
        # x = B'x + e with independent e of variances v: x has the inverse covariance (I - B) diag(1 / v) (I - B)'
        B, v = np.zeros((d, d)), np.empty(d)
        for node in range(d):
            parents = np.flatnonzero(self.adjacency_matrix_[:, node]).tolist()
            v[node] = self.regression_.residual(node, parents)
            B[parents, node] = self.regression_.forecast(node, parents, np.eye(len(parents)))
        rest = np.eye(d) - B
        total = log_density(self._prepared(values), rest / v @ rest.T, -float(np.log(v).sum()))
        if math.isnan(total):
            raise ValueError("score(X) of rows with missing values is not defined: columns depend on each other")
        there = ~np.isnan(values)
        units = float(there.sum(axis=0) @ np.log(self._units[1]))
        return (total - units) / max(1, int(there.any(axis=1).sum()))

    @property
    def free_(self) -> NDArray[np.bool_]:
        """Symmetric (d, d): edges whose direction the score does not determine."""
        check_is_fitted(self)
        if not hasattr(self, "cpdag_"):
            return np.zeros(self.adjacency_matrix_.shape, dtype=bool)
        return (self.cpdag_ & self.cpdag_.T).astype(bool)

    @property
    def graph_(self) -> "networkx.DiGraph":
        """The estimated DAG with names; edges have ``weight`` and ``direction`` ("oriented", "known" or "free")."""
        check_is_fitted(self)
        return to_networkx(
            self.adjacency_matrix_, self._names, weights=self.weights_, free=self.free_, known=self.known_
        )

    @property
    def edges_(self) -> EdgeTable:
        """The edges with names, strongest first."""
        check_is_fitted(self)
        if self.columns_.categorical.any():
            return EdgeTable.of(
                self._names,
                self.adjacency_matrix_,
                self.weights_,
                None,
                self.free_,
                known=self.known_,
                gain=self._gains,
            )
        fitted = coefficients(self.node_moments_, self.adjacency_matrix_)
        return EdgeTable.of(
            self._names,
            self.adjacency_matrix_,
            self.weights_,
            fitted.standardised,
            self.free_,
            error=fitted.error if self._linear else None,
            known=self.known_,
            verdicts=self.prune_table_,
        )

    @property
    def tables_(self) -> dict[str, ConditionalTable]:
        """By the name of the column its probabilities given the estimated parents; only if all are categories."""
        check_is_fitted(self)
        tables = None if self.regression_ is None else self.regression_.tables(self.adjacency_matrix_)
        if tables is None:
            numbers = [name for name in self._names if name not in self.columns_.by_name]
            why = f": {quoted(numbers)} are numbers" if numbers else ""
            raise AttributeError(f"tables_ are for tables of categories, with a criterion such as 'bdeu'{why}")
        return tables

    def summary(self) -> str:
        """What was found, as text: the edges, those that pruning removed, and one line about the fit."""
        check_is_fitted(self)
        edges = int(self.adjacency_matrix_.sum())
        if edges:
            parts = [self.edges_.text(SHOWN)]
        elif self.adjacency_raw_.any():
            parts = ["no edges are left after pruning"]
        elif self.search_.certified:
            among = "" if self._constraints.trivial else "of the graphs that agree with what is known "
            parts = [f"no edges: {among}the score prefers the columns to be independent"]
        else:
            parts = [f"no edges were found before the search ended ({self.search_.stopped})"]
        if removed := removed_edges(self.prune_table_, self._names):
            parts.append(removed)
        if self.standardized_ and self.parameters_["standardize"] == "auto":
            parts.append(
                "columns were divided by their standard deviations, as this score would depend on units "
                "(standardize=False, or --no-standardize, keeps them)"
            )
        if self.interventions_ is not None:
            told = listing(f"'{shown(name)}' in {rows:,}" for name, rows in self.interventions_.counts.items())
            parts.append(f"rows in which a column was set do not count for its causes: {told}")
        pruned = int(self.adjacency_raw_.sum()) - edges
        parts.append(
            f"{self.n_samples_:.10g} rows, {self.n_features_in_} columns, {edges} edge{'s' * (edges != 1)}"
            f"{f' ({pruned} more removed by pruning)' if pruned else ''}, "
            f"{self._criterion_name} {self.score_:.6f}, {self.seconds_:.1f} s{self._ended_early()}"
        )
        return "\n\n".join(parts)

    def _ended_early(self) -> str:
        """What to add where the search did not come to its own end."""
        if self.search_.converged:
            return ""
        whys = {
            "time": f"stopped after {self.seconds_:.0f} s",
            "callback": "stopped by the callback",
            "interrupted": "interrupted",
            "steps": f"stopped after {self.search_.n_iter} steps",
        }
        return f"; {whys[self.search_.stopped]}, not converged"

    def run(self) -> dict[str, Any]:
        """What was run, with which settings and versions, and how the search ended: the content of ``run.json``."""
        check_is_fitted(self)
        found = self.search_
        return {
            "rows": self.n_samples_,
            "columns": self.n_features_in_,
            "interventions": {} if self.interventions_ is None else self.interventions_.counts,
            "parameters": {
                name: getattr(value, "__qualname__", value)
                for name, value in self.parameters_.items()
                if name not in ("verbose", "knowledge")
            }
            | {"knowledge": Knowledge.of(self.parameters_["knowledge"], self._names).to_dict()},
            "seed": self.parameters_["random_state"],
            "criterion": self._criterion_name,
            "levels": self.columns_.by_name,
            "score": self.score_,
            "edges": int(self.adjacency_matrix_.sum()),
            "edges_before_pruning": int(self.adjacency_raw_.sum()),
            "pruning": [
                {**dataclasses.asdict(v), "source": self._names[v.source], "target": self._names[v.target]}
                for v in self.prune_table_
            ],
            "fits": found.fits,
            "steps": found.n_iter,
            "stopped": found.stopped,
            "converged": found.converged,
            "standardized": self.standardized_,
            "algorithm": found.algorithm,
            "init": found.init,
            "certified": found.certified,
            "certificate": None if found.certificate is None else str(found.certificate),
            "exact": found.exact,
            "seconds": round(self.seconds_, 3),
            "warnings": self.notes_,
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("vec2dag", "numpy", "scipy", "scikit-learn", "numba", "networkx")},
            },
        }

    def save(self, folder: PathLike, *, files: Mapping[str, bytes] | None = None, **about: Any) -> list[Path]:
        """Write the graph and how it was found to a folder, which is made if needed: all files or none.

        Parameters
        ----------
        folder : path
            Receives ``edges.csv`` (``edges_``), ``graph.json``, ``adjacency.csv``, ``cpdag.csv`` (free directions both
            ways), ``graph.dot``, ``graph.graphml`` and ``run.json``.
        files : mapping of str to bytes, optional
            What else to write, by the names of the files.
        **about
            What else ``run.json`` should say first, as in ``data="table.csv"``; the values can be written as JSON.

        Returns
        -------
        list of Path
            The files.
        """
        run = self.run()
        content = {key: value for key, value in about.items() if key not in run} | run | about
        graph = graph_files(
            self.adjacency_matrix_, self._names, weights=self.weights_, free=self.free_, known=self.known_
        )
        own = {"edges.csv": columns_file(self.edges_), "run.json": as_json(content)}
        if hasattr(self, "tables_"):
            own["tables.json"] = as_json({name: table.to_dict() for name, table in self.tables_.items()})
        written = graph | own | dict(files or {})
        return write_together(folder, written, stale=[name for name in _beside(Path(folder)) if name not in written])


def _beside(folder: Path) -> list[str]:
    """Files that show the graph of an earlier run in this folder, as it says itself: they would contradict another."""
    try:
        names = json.loads((folder / "run.json").read_bytes())["beside"]
    # whatever else this file may hold, it is not ours
    except Exception:
        return []
    ours = ("summary.json", "graph.png", "report.html")
    return [name for name in names if name in ours] if isinstance(names, list) else []


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={brief(random_state)}: allowed are None, whole numbers of at least 0, and numpy's "
            "Generator and RandomState"
        ) from error
