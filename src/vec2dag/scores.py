"""Graph scores: how well a regression of every node on its parents explains the data.

A score is a regression (what a node's parents leave unexplained) and a criterion (how the ``d`` mean squared
residuals and the number of edges become one number). All scores are divided by ``n d``; higher is better.
"""

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from . import _kernels
from .cache import LocalCache
from .graph import as_adjacency
from .moments import Moments, one_blas_thread
from .nonlinear import BoundRegression, GaussianProcess, SklearnRegression
from .workers import run_chunks, run_lazily

__all__ = ["Criterion", "Linear", "Regression", "Score", "bic_ev", "bic_nv", "least_squares"]


T = TypeVar("T")
# Seconds between writes of a file of local scores.
SAVE_EVERY = 30.0

# --- criteria -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """How mean squared residuals ``r_i`` and the number of edges ``|G|`` become a score.

    ======== ===============================================
    bic-ev   ``-(n d ln(sum_i r_i / d) + |G| ln n)``
    bic-nv   ``-(n sum_i ln r_i + |G| ln n)``
    ls       ``-(n sum_i r_i + lambda0 |G|)``
    ======== ===============================================

    Attributes
    ----------
    name : str
    kind : int
        The code that the compiled kernels switch on.
    lambda0 : float or None
        Price of an edge; None is ``ln n``.
    offset : float
        Added to the argument of the logarithm (only the released implementation of the paper does).
    """

    name: str
    kind: int
    lambda0: float | None = None
    offset: float = 0.0

    def penalty(self, n: int, d: int) -> float:
        """Price of one edge in the normalised score."""
        return (math.log(n) if self.lambda0 is None else self.lambda0) / (n * d)

    @property
    def decomposable(self) -> bool:
        """Whether the score is a sum over nodes; ``bic-ev`` is the logarithm of a sum instead."""
        return self.kind != _kernels.BIC_EV


bic_ev = Criterion("bic-ev", _kernels.BIC_EV)
bic_nv = Criterion("bic-nv", _kernels.BIC_NV)


def least_squares(lambda0: float | None = None) -> Criterion:
    """Least squares with an edge price; the default ``ln n`` is BIC for noises of known variance 1.

    The paper's value is ``1e-6``, practically none: it leaves sparsity to the pruning.
    """
    if lambda0 is not None and not 0 <= lambda0 < math.inf:
        raise ValueError(f"lambda0 must be a finite number of at least 0, got {lambda0!r}")
    return Criterion("ls", _kernels.LS, lambda0)


CRITERIA: dict[str, Criterion] = {"bic-ev": bic_ev, "bic-nv": bic_nv, "ls": least_squares()}


# --- regressions ----------------------------------------------------------------------------------------------


class Regression(Protocol):
    """What a score needs of a regression; ``n`` rows, ``d`` columns called ``names``."""

    @property
    def n(self) -> int: ...

    @property
    def d(self) -> int: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``."""
        ...


class Linear:
    """Linear least squares with an intercept, from the sufficient statistics alone.

    Regressions are one Cholesky of correlations each. Where a pivot shows that correlations have lost too many
    digits, the regression is redone on a triangular factor of the data; parents that depend linearly on earlier
    ones add nothing, and a residual variance never falls below ``1e-20`` of the variance.

    Parameters
    ----------
    data : array of shape (n, d) or Moments
    reference : bool, default False
        Regress as the released implementation of the paper does: without intercept on uncentred data, but on
        the mean where there are no parents.
    """

    def __init__(self, data: ArrayLike | Moments, *, reference: bool = False) -> None:
        moments = data if isinstance(data, Moments) else Moments.of(data)
        self.n, self.d, self.names = moments.n, len(moments.names), moments.names
        variance = moments.variances()
        self.reference = reference
        factor = moments.uncentred_factor() if reference else moments.factor
        self.scale: NDArray[np.float64] = (factor**2).sum(axis=0) / self.n
        self.base: NDArray[np.float64] = variance
        self.F: NDArray[np.float64] = np.ascontiguousarray((factor / np.sqrt(self.n * self.scale)).T)
        self.C: NDArray[np.float64] = self.F @ self.F.T
        np.fill_diagonal(self.C, 1.0)
        self.stats = (self.C, self.F, self.scale, self.base)

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` given ``parents``."""
        if len(parents) == 0:
            return float(self.base[node])
        p = np.asarray(parents, dtype=np.int64)
        L, Q = np.empty((self.d + 1, self.d)), np.empty((self.d + 1, self.F.shape[1]))
        return float(self.scale[node] * _kernels.residual_ratio(self.C, self.F, node, p, len(p), L, Q))

    def residuals(self, A: NDArray[np.uint8], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Mean squared residuals (B, d) of every node of every graph ``A`` (B, d, d)."""
        out = np.empty(A.shape[:2])

        def part(start: int, stop: int) -> None:
            _kernels.linear_residuals(A[start:stop], self.stats, out[start:stop])

        # Below about 100 microseconds of work a thread costs more than it brings.
        run_chunks(part, len(A), n_jobs if A.size > 20_000 else 1)
        return out

    def coefficients(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Regression weights ``W`` (d, d), ``W[i, j]`` of parent ``i`` for node ``j``, in the units of the data."""
        W = np.zeros((self.d, self.d))
        for j in range(self.d):
            parents = np.flatnonzero(A[:, j])
            if len(parents):
                W[parents, j] = self._regress(j, parents)
        size = np.sqrt(self.scale)
        return W * (size[None, :] / size[:, None])

    def _regress(self, node: int, parents: NDArray[np.int64]) -> NDArray[np.float64]:
        try:
            factor, lower = cho_factor(self.C[np.ix_(parents, parents)], lower=True, check_finite=False)
            if np.diagonal(factor).min() ** 2 > _kernels.ILL_CONDITIONED:
                return cho_solve((factor, lower), self.C[parents, node], check_finite=False)
        except np.linalg.LinAlgError:
            pass
        # Minimum norm where parents are linearly dependent.
        return np.linalg.lstsq(self.F[parents].T, self.F[node], rcond=None)[0]


# --- scores ---------------------------------------------------------------------------------------------------


class OutOfTime(Exception):
    """The time for regressions is over; those that are finished are remembered."""


class Score:
    """A graph score for a table.

    Parameters
    ----------
    X : array of shape (n, d), Moments, or None
        The data; None when ``regression`` is an object that already holds them.
    regression : {"linear", "gp"}, GaussianProcess, SklearnRegression, regressor, or Regression, default "linear"
        ``"gp"`` is ``GaussianProcess()``; a regressor has ``fit`` and ``predict``; a Regression already holds data.
    criterion : {"bic-nv", "bic-ev", "ls"} or Criterion, default "bic-nv"
    reference : bool, default False
        Compute linear scores exactly as the released implementation of the paper: uncentred, and with ``1e-8``
        inside the logarithm of ``bic-nv``.
    n_jobs : int or None, default None
        Workers for batches; None uses every core. They are threads, or for regressions other than linear whatever
        ``joblib.parallel_config`` asks for.
    cache : LocalCache, optional
        Where mean squared residuals of regressions other than linear are remembered; the default holds 256 MiB.
    names : sequence of str, optional
        Of the columns of ``X``, for error messages.

    Attributes
    ----------
    fits : int
        Regressions made so far, other than linear: what a search costs.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((500, 1))
    >>> X = np.hstack([x, x + 0.1])
    >>> score = Score(X + 0.01 * np.random.default_rng(1).standard_normal(X.shape))
    >>> bool(score([[0, 1], [0, 0]]) > score(np.zeros((2, 2))))
    True
    """

    def __init__(
        self,
        X: ArrayLike | Moments | None,
        regression: Any = "linear",
        criterion: str | Criterion = "bic-nv",
        *,
        reference: bool = False,
        n_jobs: int | None = None,
        cache: LocalCache | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if isinstance(criterion, str):
            criterion = choose("criterion", criterion, CRITERIA)
        if reference and regression != "linear":
            raise ValueError(f"reference=True is for regression='linear', got {regression!r}")
        if reference and criterion.kind == _kernels.BIC_NV:
            criterion = Criterion(criterion.name, criterion.kind, criterion.lambda0, offset=1e-8)
        self.regression: Regression = _bound(X, regression, reference, names)
        self.criterion = criterion
        self.n, self.d, self.names = self.regression.n, self.regression.d, self.regression.names
        self.penalty = criterion.penalty(self.n, self.d)
        self.n_jobs = n_jobs
        self.cache = LocalCache() if cache is None else cache
        self.fits = 0
        self.deadline = math.inf
        self._file: Path | None = None
        self._saved = 0.0

    def local(self, node: int, parents: Iterable[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``: the unit a criterion combines.

        Regressions other than linear are remembered by (node, set of parents).
        """
        return float(self.local_batch([(node, parents)])[0])

    def local_batch(self, wanted: Sequence[tuple[int, Iterable[int]]]) -> NDArray[np.float64]:
        """Mean squared residuals of several (node, parents); those not yet known are computed in parallel."""
        keys = [self._key(node, parents) for node, parents in wanted]
        if isinstance(self.regression, Linear):
            return np.array([self.regression.residual(node, _members(mask)) for node, mask in keys])
        known = {key: self.cache.get(key) for key in keys}
        missing = [key for key, value in known.items() if value is None]
        if missing:
            # As results arrive, so that neither an interrupt nor the end of the time loses any of them.
            for key, value in zip(missing, self._evaluate(missing), strict=True):
                known[key] = value
                self.fits += 1
                self.cache.put(key, value)
                if self._file is not None and time.monotonic() > self._saved + SAVE_EVERY:
                    self._save()
                if time.perf_counter() > self.deadline:
                    raise OutOfTime
        return np.array([known[key] for key in keys], dtype=np.float64)

    def _key(self, node: int, parents: Iterable[int]) -> tuple[int, int]:
        sources = {int(p) for p in parents}
        if node in sources:
            raise ValueError(f"node {node} cannot be its own parent")
        strange = [k for k in (int(node), *sorted(sources)) if not 0 <= k < self.d]
        if strange:
            raise ValueError(f"there is no node {strange[0]}; nodes are 0 to {self.d - 1}")
        return int(node), sum(1 << p for p in sources)

    def _evaluate(self, keys: list[tuple[int, int]]) -> Iterator[float]:
        backend, _ = get_active_backend(prefer="threads")
        if getattr(backend, "supports_sharedmem", False):
            # Threads of our own: joblib's take 10 to 30 ms a batch to start, as long as ten fits to a few hundred rows.
            with one_blas_thread():
                yield from run_lazily(lambda k: _fit(self.regression, keys[k]), len(keys), self.n_jobs)
        else:
            parallel = joblib.Parallel(self.n_jobs, return_as="generator")
            yield from parallel(joblib.delayed(_fit)(self.regression, key) for key in keys)

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Context in which regressions that are not linear end with :class:`OutOfTime` after ``deadline``."""
        self.deadline = deadline
        try:
            yield
        finally:
            self.deadline = math.inf

    @contextmanager
    def stored(self, file: str | Path) -> Iterator[int]:
        """Context in which local scores are kept in ``file``: read at first, written every half minute and at the end.

        Yields the number of local scores that the file had. It must be one of the same data and regression. Scores that
        ``cache`` has no room for are not kept.
        """
        if not isinstance(self.regression, BoundRegression):
            raise ValueError(
                "a file of local scores is for GaussianProcess, SklearnRegression and other regressors: linear "
                "regressions take microseconds, and a regression object of your own cannot be told from another"
            )
        if not isinstance(file, str | Path):
            raise ValueError(f"the file of local scores must be a path, got {file!r}")
        self._fingerprint = self.regression.fingerprint()
        known = self.cache.load(Path(file), self._fingerprint)
        self._file = Path(file)
        try:
            # Now, and not after an hour, is the time to find out that it cannot be written.
            self._save()
        except OSError as error:
            self._file = None
            raise OSError(f"the file of local scores {file} cannot be written: {error}") from error
        try:
            yield known
        finally:
            try:
                self._save()
            except OSError as error:
                warnings.warn(f"the local scores could not be written to {file}: {error}", stacklevel=2)
            self._file = None

    def _save(self) -> None:
        assert self._file is not None
        self.cache.save(self._file, self._fingerprint)
        self._saved = time.monotonic()

    def link(self, residuals: ArrayLike) -> NDArray[np.float64]:
        """What the criterion sums over nodes: the logarithm of residuals for ``bic-nv``, residuals otherwise."""
        values = np.asarray(residuals, dtype=np.float64)
        return np.log(values + self.criterion.offset) if self.criterion.kind == _kernels.BIC_NV else values

    def change(self, delta: ArrayLike, total: float) -> NDArray[np.float64]:
        """Change of the score, without the price of edges, when the sum ``total`` of links grows by ``delta``."""
        values = np.asarray(delta, dtype=np.float64)
        return -values / self.d if self.criterion.decomposable else -np.log(np.maximum(1.0 + values / total, 1e-300))

    def residuals(self, A: ArrayLike) -> NDArray[np.float64]:
        """Mean squared residuals (..., d) of the nodes of ``A`` (..., d, d)."""
        return self._residuals(self._checked(A))

    def _residuals(self, adjacency: NDArray[np.uint8]) -> NDArray[np.float64]:
        flat = np.ascontiguousarray(adjacency.reshape(-1, self.d, self.d))
        if isinstance(self.regression, Linear):
            out = self.regression.residuals(flat, self.n_jobs)
        else:
            out = self.local_batch([(j, np.flatnonzero(a[:, j])) for a in flat for j in range(self.d)])
        return out.reshape(adjacency.shape[:-1])

    def combine(self, residuals: NDArray[np.float64], edges: ArrayLike) -> NDArray[np.float64]:
        """The criterion divided by ``n d``, for mean squared residuals (..., d) and edge counts (...)."""
        lead = residuals.shape[:-1]
        out = np.empty(int(np.prod(lead, dtype=np.int64)))
        counts = np.broadcast_to(np.asarray(edges, dtype=np.int64), lead).reshape(-1)
        c = self.criterion
        _kernels.combine_batch(residuals.reshape(-1, self.d), counts, c.kind, self.penalty, c.offset, out)
        return out.reshape(lead)

    def __call__(self, A: ArrayLike) -> NDArray[np.float64]:
        """Score of every graph ``A`` (..., d, d), divided by ``n d``; shape (...), higher is better."""
        adjacency = self._checked(A)
        return self.combine(self._residuals(adjacency), adjacency.sum(axis=(-2, -1), dtype=np.int64))[()]

    @property
    def resolution(self) -> float:
        """Improvements up to this are not made: 1e-9 is rounding; beyond 300 nodes, 5% of the price of an edge."""
        return 1e-9 if self.d <= 300 else max(1e-9, 0.05 * self.penalty)

    def _checked(self, A: ArrayLike) -> NDArray[np.uint8]:
        adjacency = as_adjacency(A)
        if adjacency.shape[-1] != self.d:
            raise ValueError(f"A has {adjacency.shape[-1]} nodes, the data have {self.d} columns")
        return adjacency


def _bound(X: ArrayLike | Moments | None, regression: Any, reference: bool, names: Sequence[str] | None) -> Regression:
    """The regression with its data."""
    if isinstance(regression, str):
        choose("regression", regression, {"linear": None, "gp": None})
    elif isinstance(regression, type) or not any(hasattr(regression, name) for name in ("predict", "bind", "residual")):
        raise ValueError(
            f"regression={regression!r}: allowed are 'linear', 'gp', GaussianProcess(...), SklearnRegression(...), "
            "objects with fit and predict, and objects that hold data and have residual"
        )
    elif hasattr(regression, "predict"):
        regression = SklearnRegression(regression)
    elif not hasattr(regression, "bind"):
        if X is not None:
            raise ValueError("a regression object holds its own data: pass X=None")
        return regression
    if X is None:
        raise ValueError(f"X is needed: regression={regression!r} holds no data")
    if regression == "linear":
        return Linear(X if isinstance(X, Moments) else Moments.of(X, names), reference=reference)
    if isinstance(X, Moments):
        raise ValueError(f"regression={regression!r} needs the rows of the table; Moments have only mean and scatter")
    return (GaussianProcess() if regression == "gp" else regression).bind(X, names)


def _members(mask: int) -> list[int]:
    return [p for p in range(mask.bit_length()) if mask >> p & 1]


def _fit(regression: Regression, key: tuple[int, int]) -> float:
    """One local regression; whatever goes wrong names the node and its parents."""
    node, parents = key[0], _members(key[1])
    what = f"the regression of {regression.names[node]!r} on {[regression.names[p] for p in parents]}"
    try:
        value = float(regression.residual(node, parents))
    except Exception as error:
        raise ValueError(f"{what} failed: {type(error).__name__}: {error}") from error
    if not 0 < value < math.inf:
        hint = "; a regressor that fits every row needs SklearnRegression(..., cv=)" if value == 0 and parents else ""
        raise ValueError(f"{what} gave a mean squared residual of {value}; a positive number is needed{hint}")
    return value


def choose(parameter: str, value: str, allowed: dict[str, T]) -> T:
    """``allowed[value]``, or an error that lists what is allowed."""
    if value not in allowed:
        raise ValueError(f"{parameter}={value!r} is unknown; allowed: {', '.join(map(repr, allowed))}")
    return allowed[value]
