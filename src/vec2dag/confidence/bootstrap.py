"""How sure the edges of an estimate are: the same fit on many samples of the rows, on one machine or a cluster."""

import functools
import gc
import hashlib
import json
import math
import os
import re
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import (
    DataWarning,
    as_table,
    brief,
    check_names,
    check_values,
    choose,
    data_warnings,
    names_of,
    number,
    quoted,
    warn,
    whole_number,
)
from .._parallel import effective_jobs, one_blas_thread
from ..columns import Coded, Columns, coded_warnings, warn_of_rounding
from ..files.streams import TableFile
from ..interventions import Interventions, without_targets
from ..knowledge import Knowledge
from ..missing import TREATMENTS, Treatment
from ..moments import Moments
from ..prune import PRUNERS
from ..scores import as_criterion, describe, is_criterion, table_for
from ..search import LocalSearch
from .journal import Journal
from .resampling import WIDEST, Blocks, Gaussian, Rows, RowsBySetting, Table
from .shares import Bootstrap, Sample

__all__ = ["bootstrap", "check_missing", "needs_rows", "no_targets", "of_complete"]

METHODS = {"resample": "rows with replacement", "subsample": "half of the rows", "parametric": "a Gaussian"}
# Seconds of work for which other processes are worth starting; a single sample of so many is.
WORTH, LONG = 4.0, 2.0
# Rows that are looked at for what may mislead, up to twice as many.
LOOKED_AT = 50_000
# How often a lost worker may be replaced while nothing gets finished.
PATIENCE = 3
# Chains of a search on a sample: agreement of more of them, as in a fit, is not worth five times as long here.
CHAINS = 2


def bootstrap(
    model: Any,
    X: Any,
    n_samples: int = 100,
    method: str = "resample",
    *,
    names: Sequence[str] | None = None,
    interventions: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    time_budget: float | None = None,
    checkpoint: Any = None,
    verbose: int = 0,
) -> Bootstrap:
    """Fit a model to many samples of the rows of a table.

    Parameters
    ----------
    model : ALIAS
        Fitted or not; it is not changed. Every sample is given to a copy with the same parameters, and a seed of its
        own. Only where ``algorithm="auto"`` stands for iterated local search, samples are searched by two chains and
        not by up to 16 (``algorithm="local"`` insists on them).
    X : array of shape (n, d), data frame, Moments, or TableFile
        A :class:`vec2dag.files.streams.TableFile` is read twice, and is never in memory as a whole. Missing values are
        treated in every sample as ``ALIAS(missing=...)`` says: ``"impute"`` draws them anew for each, from a Gaussian
        fitted to the rows of the sample (multiple imputation, as Honaker & King 2010 do it).
    n_samples : int, default 100
    method : {"resample", "subsample", "parametric"}
        ``"resample"``: as many rows as there are, with replacement. ``"subsample"``: half of the rows, without; what
        :meth:`Bootstrap.stability` needs. Rows must be exchangeable: not those of a time series, nor repeated ones of
        the same individuals. ``"parametric"``: rows of a Gaussian with the moments of the table, the only method for
        ``Moments``, and only for linear models; it says nothing about what is not Gaussian in the table. Linear
        models of more than 20,000 rows draw from sums over a thousand blocks to which rows are dealt at random: the
        cost of a sample does not depend on the number of rows. A draw in which a column is constant is repeated.
    names : sequence of str, optional
        Names of the columns of an array that has none.
    interventions : sequence of n entries, or others, optional
        Which columns were set in every row, as of :meth:`vec2dag.ALIAS.fit`. Rows are then drawn among those in which
        the same columns were set.
    n_jobs : int, optional
        Workers; None uses every core. They are processes where there is work enough for them, or whatever
        ``joblib.parallel_config`` asks for, a Dask cluster for one. The result does not depend on them.
    random_state : int, Generator, RandomState or None
    time_budget : float, optional
        Seconds after which the samples that are finished are all.
    checkpoint : path, optional
        A file to which every finished sample is added. A run that was killed, and is started again with the same table,
        model and seed, ends in the same result; so does one with more samples. A file of something else is refused.
        Without a ``random_state`` that of the file is taken.
    verbose : int, default 0
        1 shows a progress bar on a terminal, with the time left.

    Returns
    -------
    Bootstrap
        Also after an interrupt, with what was finished.

    Examples
    --------
    >>> from vec2dag import ALIAS
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> table = np.column_stack([x, x + rng.standard_normal(500)])
    >>> result = bootstrap(ALIAS("bic-ev"), table, n_samples=20, names=["x", "y"], random_state=0)
    >>> result.directed[0, 1]
    np.float64(1.0)
    """
    start = time.perf_counter()
    n_samples = whole_number("n_samples", n_samples)
    choose("method", method, METHODS)
    if time_budget is not None:
        number("time_budget", time_budget, above=0)
    effective_jobs(n_jobs)
    prototype = _prototype(model)
    entropy = _entropy(random_state)
    X, interventions = without_targets(X, interventions)
    if interventions is None and getattr(model, "interventions_", None) is not None:
        raise ValueError("the model was fitted with interventions, which its samples need too: give interventions=...")
    names = _names_of_fit(model, X) if names is None else names
    given = X
    X, names, columns = _with_categories(prototype, X, names)
    rows = needs_rows(prototype.get_params(deep=False))
    values, moments = _checked(X, names, method, rows, n_jobs, prototype, columns)
    warn_of_rounding(given, columns or Columns.numeric(moments.names))
    if columns is not None:
        trimmed = Coded(np.asarray(values), columns).trimmed()
        values, columns = trimmed.values, trimmed.columns
    knowledge = Knowledge.of(prototype.get_params(deep=False).get("knowledge"), moments.names)
    targets = _targets(interventions, X, values, moments, method, prototype)
    journal = None
    if checkpoint is not None:
        about = {
            "table": _digest(values, moments, targets),
            "model": _described(prototype),
            "method": method,
            "version": version("vec2dag"),
        }
        journal = Journal(checkpoint, about, entropy, any_seed=random_state is None)
        entropy = journal.entropy
    if columns is not None and targets is not None:
        raise ValueError(no_targets(columns))
    table = _drawn_from(values, moments, method, rows, entropy, n_jobs, targets, columns)
    result = Bootstrap(
        table.names,
        [],
        method,
        table.about,
        n_samples,
        "done",
        moments,
        knowledge.bind(table.names),
        linear=not needs_rows(
            {"regression": prototype.get_params(deep=False).get("regression", "linear"), "prune": None}
        ),
        standardized=columns is None and bool(getattr(prototype, "_standardises", bool)()),
        columns=columns,
        settings={
            "parameters": _parameters(prototype),
            "interventions": {} if targets is None else targets.counts,
            "seed": entropy,
            "vec2dag": version("vec2dag"),
        },
    )
    deadline = math.inf if time_budget is None else time.time() + time_budget - (time.perf_counter() - start)
    task = _Task(prototype, table, method, entropy, deadline)
    samples = {} if journal is None else {k: s for k, s in journal.samples.items() if k < n_samples}
    stopped = _collect(task, samples, n_samples, n_jobs, journal, verbose)
    if journal is not None and journal.trouble is not None:
        warn(journal.trouble)
    if not samples and stopped == "interrupted":
        raise KeyboardInterrupt("interrupted before a first sample was finished")
    if not samples:
        raise ValueError(f"time_budget={time_budget:g} seconds were over before the first sample was finished")
    ordered = [samples[k] for k in sorted(samples)]
    return replace(result, samples=ordered, stopped=stopped, seconds=time.perf_counter() - start)


# --- what is fitted, and to what ------------------------------------------------------------------------------


def _prototype(model: Any) -> Any:
    """A copy of the model, unfitted, as samples get it."""
    if not all(hasattr(model, name) for name in ("get_params", "set_params", "fit")) or isinstance(model, type):
        raise ValueError(f"model must be an estimator such as ALIAS(), got {brief(model)}")
    copy = clone(model)
    parameters = copy.get_params(deep=False)
    if "criterion" in parameters and not is_criterion(parameters["criterion"]):
        raise ValueError(
            f"criterion={brief(parameters['criterion'])} is a function of the graph, with data of its own or none: it "
            "cannot be fitted to samples; name a criterion such as 'ebic-nv'"
        )
    quiet = {"n_jobs": 1, "verbose": 0, "checkpoint": None, "random_state": None}
    copy.set_params(**{name: value for name, value in quiet.items() if name in parameters})
    algorithm = parameters.get("algorithm")
    if isinstance(algorithm, str) and algorithm == "auto" and _searched_locally(parameters):
        copy.set_params(algorithm=LocalSearch(chains=CHAINS))
    return copy


def _with_categories(prototype: Any, X: Any, names: Sequence[str] | None) -> tuple[Any, Any, Columns | None]:
    """The table with codes in place of categories, and what its columns are; the prototype is told its criterion."""
    parameters = prototype.get_params(deep=False)
    if "criterion" not in parameters or isinstance(X, Moments | TableFile):
        return X, names, None
    categorical, regression = parameters.get("categorical", "auto"), parameters.get("regression", "linear")
    table = table_for(parameters["criterion"], X, categorical, names, regression)
    if table is None:
        return X, names, None
    prototype.set_params(categorical="auto", criterion=as_criterion(parameters["criterion"], table.columns))
    return table.values, table.columns.names, table.columns if table.columns.categorical.any() else None


def _searched_locally(parameters: dict[str, Any]) -> bool:
    """Whether ``algorithm="auto"`` is iterated local search."""
    regression = describe(parameters["regression"])
    linear = not getattr(regression, "needs_rows", True)
    return linear and bool(parameters["refine"]) and not as_criterion(parameters["criterion"]).equal_variances


def needs_rows(parameters: dict[str, Any]) -> bool:
    """Whether a fit needs the rows of a table, and not only their moments."""
    regression, criterion = parameters.get("regression", "linear"), parameters.get("criterion", "auto")
    if is_criterion(criterion) and isinstance(regression, str) and regression == "linear":
        regression = as_criterion(criterion).regression(regression)
    if getattr(describe(regression), "needs_rows", True):
        return True
    if isinstance(init := parameters.get("init"), str) and init == "score":
        return True
    prune = parameters.get("prune", "auto")
    if prune is None or (isinstance(prune, str) and prune == "auto"):
        return False
    if isinstance(prune, str) and prune in PRUNERS:
        prune = PRUNERS[prune]()
    return bool(getattr(prune, "needs_rows", True))


def no_targets(columns: Columns) -> str:
    """Why interventions are refused for columns some of which are categories."""
    return (
        f"interventions are for columns of numbers, and {quoted(columns.by_name)} are categories: leave these columns "
        "out, or all rows in which a column was set"
    )


def check_missing(parameters: dict[str, Any], columns: Columns | None = None) -> Treatment:
    """What a model does about missing values; refused where it makes moments of them and a fit needs rows."""
    name = parameters.get("missing", "refuse")
    treatment = choose("missing", name, TREATMENTS)
    if not treatment.once and columns is not None and (categories := columns.by_name):
        raise ValueError(
            f"missing={name!r} is for columns of numbers, and {quoted(categories)} are categories: missing='drop' "
            "leaves out rows, or fill in missing values before, those of categories by a level of their own"
        )
    if not treatment.gives_rows and needs_rows(parameters):
        which = "regression" if needs_rows(parameters | {"prune": None}) else "prune"
        raise ValueError(
            f"missing={name!r} makes means and covariances of a table, and {which}={brief(parameters[which])} needs "
            "its rows: missing='impute' and missing='drop' leave rows"
        )
    return treatment


def _checked(
    X: Any,
    names: Sequence[str] | None,
    method: str,
    rows: bool,
    n_jobs: int | None,
    model: Any,
    columns: Columns | None = None,
) -> tuple[NDArray[np.float64] | TableFile | None, Moments]:
    """The table (n, d), if there is one, and its moments; says what in it will mislead."""
    if method == "parametric" and columns is not None:
        raise ValueError("method='parametric' is for tables of numbers, and X has categories: method='resample'")
    if method == "parametric" and rows:
        raise ValueError("method='parametric' is for linear regression and pruning without rows: it has no rows")
    if isinstance(X, Moments):
        if method != "parametric":
            raise ValueError(
                f"method={method!r} needs the rows of the table, X is Moments: method='parametric' draws from a "
                "Gaussian with these moments"
            )
        return None, X if names is None else replace(X, names=check_names(names, len(X.names)))
    if isinstance(X, TableFile):
        return _checked_file(X, names, method, rows, n_jobs)
    values = as_table(X, rows=2, missing=True)
    labels = names_of(names, values.shape[1], X)
    check_values(values, labels, missing=True)
    if np.isnan(values).any():
        missing = check_missing(model.get_params(deep=False), columns)
        if not missing.once:
            return values, _moments_of_some(values, labels, method, missing)
        before, values = values, np.asarray(missing(values, labels, np.random.default_rng(0)))
        check_values(values, labels, rows=len(before))
    # These look at every number several times, and copy the table.
    step = 1 + len(values) // LOOKED_AT
    looked = values[::step]
    doubts = (
        data_warnings(looked, labels, reads_units=False) if columns is None else coded_warnings(Coded(looked, columns))
    )
    for sentence in doubts:
        warn(sentence if step == 1 else f"In one row of {step}: {sentence}", DataWarning)
    return values, Moments.of(values, labels, n_jobs=n_jobs)


def _moments_of_some(values: NDArray[np.float64], names: tuple[str, ...], method: str, missing: Treatment) -> Moments:
    """Moments that stand for a table (n, d) with missing values; says what is done about them."""
    whole = method == "parametric"
    missing.tell(
        values, ". Samples are of complete rows: they do not show what the missing values leave open" if whole else ""
    )
    moments = missing.moments(values, names)
    for sentence in moments.doubts():
        warn(sentence, DataWarning)
    return moments


def _names_of_fit(model: Any, X: Any) -> Sequence[str] | None:
    """The names that a fitted model has for the columns of an array of the same width, which has none of its own."""
    known = getattr(model, "feature_names_in_", None)
    if known is None or not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != len(known):
        return None
    return [str(name) for name in known]


def _checked_file(
    file: TableFile, names: Sequence[str] | None, method: str, rows: bool, n_jobs: int | None
) -> tuple[TableFile | None, Moments]:
    """The same of a table in a file."""
    if rows:
        raise ValueError("this model needs all rows in memory, X is a TableFile: read it with read_table")
    moments = Moments.of_file(file, n_jobs=n_jobs)
    if method != "parametric" and len(moments.names) > WIDEST:
        raise ValueError(
            f"method={method!r} of a table that is not in memory is for {WIDEST} columns at most, it has "
            f"{len(moments.names)}: method='parametric' has no such limit"
        )
    for sentence in moments.doubts():
        warn(sentence, DataWarning)
    if names is not None:
        moments = replace(moments, names=check_names(names, len(moments.names)))
    return None if method == "parametric" else file, moments


def of_complete(
    interventions: Interventions, values: NDArray[np.float64], missing: Treatment, name: str
) -> Interventions:
    """What was set in the rows of a table (n, d) without missing values; refused unless the others are left out."""
    if not missing.once:
        raise ValueError(
            f"missing={name!r} takes all rows to be of one distribution, which interventions change: missing='drop' "
            "leaves out rows with missing values"
        )
    return interventions.of_rows(np.flatnonzero(~np.isnan(values).any(axis=1)))


def _targets(
    interventions: Any,
    X: Any,
    values: NDArray[np.float64] | TableFile | None,
    moments: Moments,
    method: str,
    model: Any,
) -> Interventions | None:
    """What was set in every row; None where nothing was."""
    if interventions is None:
        return None
    if not isinstance(values, np.ndarray) or method == "parametric":
        raise ValueError(
            "interventions need the rows of the table, in memory: not for 'parametric', nor for a TableFile"
        )
    table = as_table(X, rows=2, missing=True)
    found = Interventions.of(interventions, moments.names, len(table))
    if np.isnan(table).any():
        parameters = model.get_params(deep=False)
        found = of_complete(found, table, check_missing(parameters), parameters["missing"])
    return None if found.trivial else found


def _drawn_from(
    values: NDArray[np.float64] | TableFile | None,
    moments: Moments,
    method: str,
    rows: bool,
    entropy: int,
    n_jobs: int | None,
    interventions: Interventions | None = None,
    columns: Columns | None = None,
) -> Table:
    """What samples are drawn from; ``columns`` are given if some are categories."""
    if columns is not None and isinstance(values, np.ndarray):
        return Rows(values, moments.names, whole=True, columns=columns)
    if interventions is not None and isinstance(values, np.ndarray):
        return RowsBySetting(values, interventions)
    if values is None or method == "parametric":
        return Gaussian(moments, moments.names)
    if isinstance(values, np.ndarray) and np.isnan(values).any():
        return Rows(values, moments.names, whole=True)
    if isinstance(values, TableFile) or (not rows and Blocks.worth(*values.shape)):
        return Blocks.of(values, moments, _rng(entropy, ()), n_jobs)
    return Rows(values, moments.names, rows)


def _entropy(random_state: Any) -> int:
    """The number from which all random numbers follow."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return whole_number("random_state", random_state, least=0)


def _rng(entropy: int, key: tuple[int, ...]) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def _parameters(model: Any) -> dict[str, Any]:
    """Of the model, as JSON that is the same in every process."""
    left_out = ("n_jobs", "verbose", "checkpoint", "random_state")
    return {name: _text(value) for name, value in sorted(model.get_params(deep=False).items()) if name not in left_out}


def _text(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Knowledge):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _described(model: Any) -> str:
    """Of all that decides a fit: texts may be cut, and functions of one name differ in what they do."""
    decisive = _parameters(model)
    values = {k: v for k, v in model.get_params(deep=True).items() if k.partition("__")[0] in decisive}
    told = [(name, _text(value), _code(value)) for name, value in sorted(values.items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _code(value: Any) -> str | None:
    """What a function does, as far as it shows."""
    code = getattr(value, "__code__", None)
    if code is None:
        return None
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    told = repr((code.co_names, code.co_varnames, value.__defaults__, [_text(cell) for cell in cells]))
    constants = [getattr(constant, "co_code", constant) for constant in code.co_consts]
    return hashlib.sha256(code.co_code + repr(constants).encode() + told.encode()).hexdigest()


def _digest(
    values: NDArray[np.float64] | TableFile | None, moments: Moments, interventions: Interventions | None = None
) -> str:
    content = hashlib.sha256(json.dumps([moments.n, *moments.names]).encode())
    for array in (values,) if isinstance(values, np.ndarray) else (moments.mean, moments.factor):
        content.update(np.ascontiguousarray(array).data)
    if interventions is not None:
        content.update(repr((interventions.patterns, interventions.rows.tolist())).encode())
    return content.hexdigest()


# --- samples --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Task:
    """Everything about the samples but which of them; ``deadline`` is of ``time.time``, as clusters have no other."""

    model: Any
    table: Table
    method: str
    entropy: int
    deadline: float

    def results(self, wanted: list[int], n_jobs: int | None) -> Generator[tuple[int, Sample | str], None, None]:
        """Samples by index in the order in which they are finished, or why one was not."""
        arguments = (self.model, self.table, self.method, self.entropy, self.deadline, os.getpid())
        chosen, jobs = _workers(n_jobs)
        left, fastest = list(wanted), math.inf
        # Alone at first: kernels are compiled once, and other processes may not be worth starting.
        while left and not chosen and (jobs == 1 or not _worth(fastest, len(left), len(wanted))):
            begin = time.perf_counter()
            yield _fit_sample(*arguments, left.pop(0))
            fastest = min(fastest, time.perf_counter() - begin)
        lost = 0
        while left:
            before = len(left)
            calls = [joblib.delayed(_fit_sample)(*arguments, k) for k in left]
            try:
                with closing(_in_parallel(calls, jobs)) as finished:
                    for k, found in finished:
                        left.remove(k)
                        yield k, found
            except Exception as error:
                lost = lost + 1 if len(left) == before else 0
                if not _is_loss(error) or lost >= PATIENCE:
                    raise


def _workers(n_jobs: int | None) -> tuple[bool, int | None]:
    """Whether somebody has chosen the workers by ``joblib.parallel_config``, and how many there are to be."""
    (hinted, _), (backend, configured) = (get_active_backend(prefer=hint) for hint in ("threads", "processes"))
    if type(hinted) is type(backend):
        return True, n_jobs
    return False, effective_jobs(configured if n_jobs is None else n_jobs)


def _in_parallel(calls: list[Any], jobs: int | None) -> Generator[Any, None, None]:
    """What calls return, as they are finished."""
    backend, _ = get_active_backend(prefer="processes")
    if getattr(backend, "supports_return_generator", False):
        parallel = joblib.Parallel(n_jobs=jobs, prefer="processes", return_as="generator_unordered")
        with closing(parallel(calls)) as finished:
            yield from finished
    else:
        parallel = joblib.Parallel(n_jobs=jobs, prefer="processes")
        size = 2 * max(1, backend.effective_n_jobs(parallel.n_jobs))
        for first in range(0, len(calls), size):
            yield from parallel(calls[first : first + size])


def _worth(fastest: float, left: int, wanted: int) -> bool:
    """Whether what is left is worth other processes; the first sample also takes what is needed only once."""
    told = left < wanted - 1 or LONG < fastest < math.inf
    return told and left > 1 and fastest * left > WORTH


def _is_loss(error: Exception) -> bool:
    """Whether a worker was lost, and not a sample wrong."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, BrokenExecutor | CancelledError) or bool(
        names & {"KilledWorker", "FutureCancelledError", "CommClosedError"}
    )


def _fit_sample(
    model: Any, table: Table, method: str, entropy: int, deadline: float, home: int, k: int
) -> tuple[int, Sample | str]:
    """The graph of the ``k``-th sample, or ``"time"`` or ``"interrupted"`` if it could not be finished."""
    with _silence(os.getpid() != home), one_blas_thread():
        rng = _rng(entropy, (k,))
        left = deadline - time.time()
        if left <= 0:
            return k, "time"
        copy = clone(model).set_params(random_state=rng.spawn(1)[0])
        own = copy.get_params(deep=False).get("time_budget")
        hurried = left < (math.inf if own is None else own)
        if hurried:
            copy.set_params(time_budget=left)
        sample = table.draw(method, rng)
        try:
            fitted = table.fit(copy, sample)
        except KeyboardInterrupt:
            return k, "interrupted"
        except ValueError as error:
            raise ValueError(f"the fit to sample {k} failed: {error}") from error
    if os.getpid() != home:
        _settle()
    stopped = fitted.search_.stopped
    if stopped == "interrupted" or (stopped == "time" and hurried):
        return k, stopped
    edges = np.argwhere(fitted.adjacency_matrix_).astype(np.int32)
    i, j = edges.T
    return k, Sample(k, edges, fitted.weights_[i, j], fitted.free_[i, j], float(fitted.score_))


@functools.cache
def _settle() -> None:
    """Once in a worker: joblib's collect garbage every second, and need not look at what was loaded before."""
    gc.freeze()


@contextmanager
def _silence(alone: bool) -> Iterator[None]:
    """Context without warnings of fits; where it is not ``alone`` in its process, somebody else sees to that."""
    if not alone:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _collect(
    task: _Task, samples: dict[int, Sample], n_samples: int, n_jobs: int | None, journal: Journal | None, verbose: int
) -> str:
    """Add all samples that are missing; returns why it ended."""
    from tqdm import tqdm

    wanted = [k for k in range(n_samples) if k not in samples]
    bar = tqdm(total=n_samples, initial=len(samples), unit="sample", leave=False, disable=None if verbose else True)
    try:
        with bar, _silence(True), one_blas_thread(), closing(task.results(wanted, n_jobs)) as results:
            for k, found in results:
                if isinstance(found, str):
                    return found
                samples[k] = found
                if journal is not None:
                    journal.add(found)
                bar.update()
    except KeyboardInterrupt:
        return "interrupted"
    return "done"
