"""Gaussian-process regression, the paper's."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from .._checks import brief, number, whole_number
from .._settings import Settings
from .additive import Additive
from .lapack import positive_solve
from .regression import Regression
from .regressors import RowRegression, spread

__all__ = ["GaussianProcess", "GaussianProcessFit"]

# Above this share of rows to noise the rounding of float32 could exceed 1e-3 of a residual; at 1000 it is 4e-5.
SINGLE_PRECISION = 1e4
# The length scale is sought on every fourth and every second row first, if that leaves more than so many.
FEW_ROWS = 200
# Distance, in the logarithm of the length scale, of the first points of the climb; and when a maximum is found.
STEP, CLOSE = 0.15, 0.01
# Landmarks of the process that guides the exact one, from so many rows on, unless the noise is a smaller share of the
# largest variance than this: then what others leave has little to do with what the exact process leaves.
GUIDING, GUIDED_ROWS, LEAST_NOISE = 200, 400, 1e-3
# Added to the variance of landmarks.
JITTER = 1e-8
# Rows of a kernel matrix that are made at a time: they stay in the cache.
STRIP = 64
# Length scales whose likelihood on a part of the rows is this many nats lower are tried on more rows too.
SLACK = 5.0
# Rows that are projected at a time.
BLOCK = 4096

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianProcessFit:
    """A fitted length scale.

    Attributes
    ----------
    length_scale : float
        The one with the highest marginal likelihood within the bounds.
    log_likelihood : float
        Logarithm of the marginal likelihood at it (of the rows that it was learned on).
    residual : float
        Mean squared residual of all rows, without ``offset``.
    """

    length_scale: float
    log_likelihood: float
    residual: float


@dataclass
class GaussianProcess(RowRegression, Settings):
    """Gaussian-process regression with an RBF kernel, unit amplitude, and a length scale learned for every fit.

    The model is ``y ~ N(0, K + alpha I)``, ``K_ij = exp(-|z_i - z_j|^2 / (2 l^2))``, so that the marginal
    likelihood is a function of ``l`` alone; its mean is zero, so columns should be centred (``ALIAS`` does that).
    Defaults are those of the paper.

    Parameters
    ----------
    alpha : float, default 1.0
        Variance of the noise.
    bounds : (float, float), default (1.0, 1e5)
        Least and greatest length scale.
    median_scale : bool, default False
        Divide every set of parents by its median pairwise distance first.
    offset : float, optional
        Added to every mean squared residual; None is ``1 / n`` as in the released implementation of the paper.
    max_rows : int, default 2000
        Exact up to so many rows. Beyond, the length scale is learned from ``max_rows`` rows spread evenly over the
        table, and the residuals of all rows are those of the projection on ``inducing`` of them (the subset of
        regressors), which costs ``O(n inducing^2)`` instead of ``O(n^3)`` and leaves somewhat larger residuals.
    inducing : int, default 1000
    landmarks : int, optional
        Everything from the projection on so many rows, the length scale too, whatever the number of rows: 200 of them
        cost a third of the exact process on 1,000 rows and leave residuals that are 4% larger on the paper's data
        (mean; up to a fifth where functions are rough). The exact process is guided by this one.

    Examples
    --------
    >>> x = np.linspace(-3, 3, 200)
    >>> gp = GaussianProcess().bind(np.column_stack([x, np.sin(2 * x)]))
    >>> gp.residual(1, [0]) < 0.02 < 0.4 < gp.residual(1, [])
    True
    """

    # The amplitude is one, whatever the units of a column are.
    reads_units: ClassVar[bool] = True

    alpha: float = 1.0
    bounds: tuple[float, float] = (1.0, 1e5)
    median_scale: bool = False
    offset: float | None = None
    max_rows: int = 2000
    inducing: int = 1000
    landmarks: int | None = None

    def check(self) -> None:
        """Refuse impossible values."""
        number("alpha", self.alpha, above=0)
        if not isinstance(self.bounds, tuple | list) or len(self.bounds) != 2:
            raise ValueError(f"bounds must be two positive numbers, the lower first, got {brief(self.bounds)}")
        if number("bounds", self.bounds[0], above=0) > number("bounds", self.bounds[1], above=0):
            raise ValueError(f"bounds must be two positive numbers, the lower first, got {brief(self.bounds)}")
        if self.offset is not None:
            number("offset", self.offset, least=0)
        whole_number("max_rows", self.max_rows, least=2)
        whole_number("inducing", self.inducing, least=2)
        if self.landmarks is not None:
            whole_number("landmarks", self.landmarks, least=2)

    def simpler(self, X: Array, names: tuple[str, ...]) -> Regression | None:
        """Additive regressions: on the paper's data their graphs are within a few edges of those of the processes.

        None where the noise is next to nothing: processes on a part of the rows are closer then.
        """
        return None if self._noiseless(X) else Additive().bind(X, names)

    def approximate(self, X: Array, names: tuple[str, ...]) -> Regression | None:
        """The process on landmarks, where that is less work and the noise is not next to nothing."""
        if self.landmarks is not None or len(X) < GUIDED_ROWS or self._noiseless(X):
            return None
        return replace(self, landmarks=GUIDING).bind(X, names)

    def _noiseless(self, X: Array) -> bool:
        """Whether next to nothing is left of a column when a process has been fitted to it."""
        return bool(self.alpha < LEAST_NOISE * X.var(axis=0).max())

    def doubt(self, X: Array) -> str | None:
        """A sentence if the noise is out of proportion to the columns of ``X`` (n, d); None if it is not."""
        largest = X.var(axis=0).max()
        if self.alpha <= 10.0 * largest:
            return None
        return (
            f"The noise of the Gaussian processes (alpha={self.alpha:g}) is far above the variance of every column "
            f"(at most {largest:.3g}), so that they explain next to nothing: rescale the columns (standardize=True) "
            "or give a smaller alpha."
        )

    def residual(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        """Mean squared residual, with the offset, of ``y`` (n,) given parents ``Z`` (n, k)."""
        offset = 1.0 / len(y) if self.offset is None else self.offset
        return (self.fit(Z, y).residual if Z.shape[1] else float(y.var())) + offset

    def fit(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> GaussianProcessFit:
        """Maximise the marginal likelihood of ``y`` (n,) given parents ``Z`` (n, k), k at least 1."""
        Z = Z - np.median(Z, axis=0)
        best, width = self._learn(Z, y)
        if len(y) <= self.max_rows:
            return best
        centres = self._centres(Z)
        weights = _projection(Z, centres, y, width, self.alpha)
        residual = float(((y - _smooth(Z, centres, width, weights)) ** 2).mean())
        return GaussianProcessFit(best.length_scale, best.log_likelihood, residual)

    def forecast(self, Z: Array, y: Array, new: Array) -> Array:
        """Predictions (m,) at ``new`` (m, k) of the process fitted to ``y`` (n,) given ``Z`` (n, k)."""
        if Z.shape[1] == 0:
            return np.full(len(new), y.mean())
        middle = np.median(Z, axis=0)
        Z, new = Z - middle, new - middle
        _, width = self._learn(Z, y)
        if len(y) > self.max_rows or self._on_landmarks(y):
            centres = self._centres(Z)
            return _smooth(new, centres, width, _projection(Z, centres, y, width, self.alpha))
        K = np.exp(_squared_distances(Z, Z) / -width)
        K.flat[:: len(y) + 1] += self.alpha
        solved = positive_solve(K, y)
        if solved is None:
            raise np.linalg.LinAlgError(f"the kernel matrix is singular; alpha={self.alpha} is too small")
        return _smooth(new, Z, width, solved[1])

    def _learn(self, Z: Array, y: Array) -> tuple[GaussianProcessFit, float]:
        """The best length scale, and ``2 l^2`` in the units of ``Z``."""
        rows = spread(len(y), self.max_rows)
        if self._on_landmarks(y):
            centres = self._centres(Z)
            squares, among = _squared_distances(Z[rows], centres), _squared_distances(centres, centres)
            scale = _median_square(among) if self.median_scale else 1.0
            likelihoods = [
                _Projected(squares[::k, ::m] / scale, among[::m, ::m] / scale, y[rows][::k], self.alpha)
                for k, m in ((1, 1), (4, 2))[: 2 if len(rows) > 4 * FEW_ROWS else 1]
            ]
            best = _maximise(likelihoods, float(squares.max()) / scale, self.bounds)
            return best, 2.0 * scale * best.length_scale**2
        Z, y = Z[rows], y[rows]
        single = len(y) <= SINGLE_PRECISION * self.alpha and np.abs(y).max() < 1e15
        squares = _all_squares(Z, np.float32 if single and not self.median_scale else np.float64)
        scale = 1.0
        if self.median_scale:
            scale = _median_square(squares)
            squares = (squares / scale).astype(np.float32 if single else np.float64)
        levels = [
            _Likelihood(np.ascontiguousarray(squares[::k, ::k]), y[::k], self.alpha) for k in (1, *_thinning(len(y)))
        ]
        best = _maximise(levels, float(squares.max()), self.bounds)
        return best, 2.0 * scale * best.length_scale**2

    def _on_landmarks(self, y: Array) -> bool:
        return self.landmarks is not None and len(y) > self.landmarks

    def _centres(self, Z: Array) -> Array:
        """The rows (m, k) on which others are projected."""
        return Z[spread(len(Z), self.inducing if self.landmarks is None else self.landmarks)]


def _squared_distances(P: NDArray[np.float64], Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """``|p_i - q_j|^2`` (m, n), as one matrix product: ``(-2p, |p|^2, 1) (q, 1, |q|^2)'``."""
    p, q = (P**2).sum(axis=1)[:, None], (Q**2).sum(axis=1)[:, None]
    if p.max() > 1e8 * np.median(p):
        # Beside far outliers the product would lose the digits of the other distances.
        return cdist(P, Q, "sqeuclidean")
    squares = np.hstack([-2.0 * P, p, np.ones_like(p)]) @ np.hstack([Q, np.ones_like(q), q]).T
    return np.maximum(squares, 0.0, out=squares)


def _all_squares(Z: Array, kind: Any) -> NDArray[Any]:
    """``|z_i - z_j|^2`` (n, n) of all rows, computed in double precision and kept as numbers of a ``kind``."""
    out = np.empty((len(Z), len(Z)), kind)
    with np.errstate(over="ignore"):
        for start in range(0, len(Z), STRIP):
            out[start : start + STRIP] = _squared_distances(Z[start : start + STRIP], Z)
    return out


def _median_square(squares: NDArray[np.float64]) -> float:
    """Square of the median distance between different rows; the mean square if half of the rows are equal."""
    pairs = np.concatenate([row[:i] for i, row in enumerate(squares)])
    middle = (len(pairs) - 1) // 2, len(pairs) // 2
    return float(np.sqrt(np.partition(pairs, middle)[list(middle)]).mean() ** 2 or pairs.mean() or 1.0)


def _maximise(
    levels: "Sequence[_Likelihood | _Projected]", diameter: float, bounds: tuple[float, float]
) -> GaussianProcessFit:
    """The length scale with the highest marginal likelihood, and what it leaves of ``y`` (n,)."""
    n = len(levels[0].y)
    low, high = math.log(bounds[0]), math.log(bounds[1])
    t = _scan(levels, _grid(low, high, 0.5 * math.log(diameter or 1.0)))
    found, height, log_residual = _climb(levels[0], t, low, high)
    return GaussianProcessFit(math.exp(found), height - 0.5 * n * math.log(2.0 * math.pi), math.exp(log_residual))


def _thinning(n: int) -> tuple[int, ...]:
    """Every how many rows to look at before all of them: a factorisation of half the rows costs an eighth."""
    return (2, 4) if n > 4 * FEW_ROWS else (2,) if n > 2 * FEW_ROWS else ()


def _scan(levels: "Sequence[_Likelihood | _Projected]", grid: list[float]) -> float:
    """Where to start climbing: the highest point of the grid, sought on few rows first and on all of them last.

    From level to level only points within ``SLACK`` nats of the highest stay, and their neighbours. All rows are asked
    only where far apart points remain.
    """
    points, level = list(range(len(grid))), len(levels) - 1
    while True:
        heights = np.full(len(grid), -math.inf)
        heights[points] = [levels[level](grid[k])[0] for k in points]
        if not np.isfinite(heights).any():
            alpha = levels[level].alpha
            raise np.linalg.LinAlgError(
                f"the kernel matrix is singular for every length scale; alpha={alpha} is too small"
            )
        best = int(heights.argmax())
        near = np.flatnonzero(heights >= heights[best] - SLACK)
        if level <= 1:
            break
        points, level = sorted({int(k) for i in near for k in (i - 1, i, i + 1) if 0 <= k < len(grid)}), level - 1
    starts: list[int] = []
    for k in near[np.argsort(-heights[near], kind="stable")]:
        # Maxima may be close to the lower bound and at it.
        if k == 0 or all(abs(grid[k] - grid[s]) >= 0.9 for s in starts):
            starts.append(int(k))
    start = max(starts, key=lambda s: levels[0](grid[s])[0]) if len(starts) > 1 else starts[0]
    around = slice(max(start - 1, 0), start + 2)
    if not 0 < start < len(grid) - 1 or not np.isfinite(heights[around]).all():
        return grid[start]
    x = np.array(grid[around]) - grid[start]
    return grid[start] + _vertex(polynomial.polyfit(x, heights[around], 2), x[0], x[2])


class _Likelihood:
    """Logarithm of the marginal likelihood (without its constant) and of the mean squared residual, by ln l."""

    def __init__(self, squares: NDArray[Any], y: NDArray[np.float64], alpha: float) -> None:
        self.squares, self.y, self.alpha = squares, y, alpha
        self.K = np.empty_like(squares)
        self.target = y.astype(squares.dtype)
        self.known: dict[float, tuple[float, float]] = {}

    def __call__(self, t: float) -> tuple[float, float]:
        if t not in self.known:
            self.known[t] = self._evaluate(t)
        return self.known[t]

    def _evaluate(self, t: float) -> tuple[float, float]:
        n, K = len(self.y), self.K
        factor = K.dtype.type(-0.5 * math.exp(-2.0 * t))
        for start in range(0, n, STRIP):
            # The factorisation reads one triangle only.
            part = K[start : start + STRIP, start:]
            np.multiply(self.squares[start : start + STRIP, start:], factor, out=part)
            # Less than exp(-40) is nothing beside alpha; its products would be denormal numbers, which are slow.
            np.exp(np.maximum(part, K.dtype.type(-40.0), out=part), out=part)
        K.flat[:: n + 1] = 1.0 + self.alpha
        solved = positive_solve(K, self.target)
        if solved is None:
            return -math.inf, math.inf
        log_determinant, a = solved
        # y - K a = alpha a, where (K + alpha I) a = y.
        residual = self.alpha**2 * float(a @ a) / n
        return -0.5 * float(self.y @ a + log_determinant), math.log(max(residual, 1e-300))


class _Projected:
    """The same where the process is that of its projection on landmarks, ``Q + alpha I`` with ``Q = C K^-1 C'``.

    ``det(Q + alpha I) = alpha^(n - m) det M / det K`` and ``y'(Q + alpha I)^-1 y = (y'y - b'M^-1 b) / alpha``, with
    ``M = alpha K + C'C`` and ``b = C'y``; ``C`` (n, m) is the kernel between rows and landmarks, ``K`` (m, m) among
    these.
    """

    def __init__(self, squares: Array, among: Array, y: Array, alpha: float) -> None:
        self.squares, self.among, self.y, self.alpha = np.ascontiguousarray(squares), among, y, alpha
        self.C = np.empty_like(self.squares)
        self.known: dict[float, tuple[float, float]] = {}

    def __call__(self, t: float) -> tuple[float, float]:
        if t not in self.known:
            self.known[t] = self._evaluate(t)
        return self.known[t]

    def _evaluate(self, t: float) -> tuple[float, float]:
        (n, m), alpha, factor, C = self.squares.shape, self.alpha, -0.5 * math.exp(-2.0 * t), self.C
        np.multiply(self.squares, factor, out=C)
        np.exp(np.maximum(C, -40.0, out=C), out=C)
        K = np.exp(np.maximum(factor * self.among, -40.0))
        # Landmarks nearly coincide where length scales are large.
        K.flat[:: m + 1] = 1.0 + JITTER
        M, b = C.T @ C, C.T @ self.y
        M += alpha * K
        inner, outer = positive_solve(K, b), positive_solve(M, b)
        if inner is None or outer is None:
            return -math.inf, math.inf
        a = outer[1]
        distance = float(self.y @ self.y - b @ a) / alpha
        residual = float(((self.y - C @ a) ** 2).mean())
        height = -0.5 * ((n - m) * math.log(alpha) + outer[0] - inner[0] + distance)
        return height, math.log(max(residual, 1e-300))


def _grid(low: float, high: float, diameter: float) -> list[float]:
    """Where to look for maxima: finely up to the diameter of the data, beyond it the likelihood hardly bends."""
    points, step = [low], 0.45
    while points[-1] + step < high:
        points.append(points[-1] + step)
        step *= 1.0 if points[-1] < diameter else 2.0
    return [*points, high] if high > low else points


def _climb(f: Callable[[float], tuple[float, float]], t: float, low: float, high: float) -> tuple[float, float, float]:
    """The maximum next to ``t`` of the first value of ``f``: where, how high, and the second value there.

    Interpolation through the up to four nearest points, safeguarded by the bracket. A derivative would need the
    inverse of the kernel matrix, three times the cost of a factorisation: further points are cheaper.
    """
    first = min(max(t, low + STEP), high)
    points = {p: f(p) for p in (max(first - STEP, low), first, min(first + STEP, high))}
    for _ in range(40):
        ts = np.array(sorted(points))
        heights = np.array([points[p][0] for p in ts])
        best = int(heights.argmax())
        if best == len(ts) - 1 and ts[best] < high:
            new = 2.0 * ts[best] - ts[0]
        elif best == 0 and ts[best] > low:
            new = 2.0 * ts[best] - ts[-1]
        else:
            near = np.sort(np.argsort(np.abs(ts - ts[best]), kind="stable")[:4])
            near = near[np.isfinite(heights[near])]
            x = ts[near] - ts[best]
            shape = polynomial.polyfit(x, heights[near] - heights[best], len(near) - 1)
            lower, upper = ts[max(best - 1, 0)], ts[min(best + 1, len(ts) - 1)]
            top = _vertex(shape, lower - ts[best], upper - ts[best])
            new = ts[best] + top
            gap = upper - lower
            if best in (0, len(ts) - 1) and top == 0.0 and gap > STEP / 2:
                # A maximum at a bound: three distant points may have stepped over one next to it.
                new = ts[best] + (gap if best == 0 else -gap) / 3
            elif np.abs(ts - new).min() < CLOSE:
                seconds = polynomial.polyfit(x, [points[p][1] for p in ts[near]], len(near) - 1)
                height = heights[best] + float(polynomial.polyval(top, shape))
                return float(new), height, float(polynomial.polyval(top, seconds))
        # Next to a bound is at the bound: rounding must not put two points there.
        new = low if new < low + CLOSE else high if new > high - CLOSE else float(new)
        points[new] = f(new)
    return float(ts[best]), *points[float(ts[best])]


def _vertex(coefficients: NDArray[np.float64], low: float, high: float) -> float:
    """Where in [low, high] a polynomial is highest among its stationary points and 0."""
    roots = polynomial.polyroots(polynomial.polyder(coefficients))
    real = roots[np.abs(roots.imag) < 1e-9].real
    options = np.concatenate([[0.0], real[(real > low) & (real < high)]])
    return float(options[int(np.argmax(polynomial.polyval(options, coefficients)))])


def _blocks(n: int) -> list[NDArray[np.int64]]:
    """All rows, so many at a time that memory stays small."""
    return np.array_split(np.arange(n), -(-n // BLOCK))


def _smooth(new: Array, centres: Array, width: float, weights: Array) -> Array:
    """Values (m,) at ``new`` (m, k) of the sum of kernels at ``centres`` with these weights."""
    return np.concatenate(
        [np.exp(_squared_distances(new[rows], centres) / -width) @ weights for rows in _blocks(len(new))]
    )


def _projection(Z: Array, centres: Array, y: Array, width: float, alpha: float) -> Array:
    """Weights of the subset of regressors, ``(C'C + alpha K)^-1 C'y``, in blocks of rows."""
    system = alpha * np.exp(_squared_distances(centres, centres) / -width)
    target = np.zeros(len(centres))
    for rows in _blocks(len(y)):
        C = np.exp(_squared_distances(Z[rows], centres) / -width)
        system += C.T @ C
        target += C.T @ y[rows]
    # Centres nearly coincide where length scales are large: a jitter of 1e-10 of the trace keeps it positive.
    system.flat[:: len(centres) + 1] += 1e-10 * np.trace(system) / len(centres)
    solved = positive_solve(system, target)
    if solved is None:
        raise np.linalg.LinAlgError(f"the projected kernel matrix is singular; alpha={alpha} is too small")
    return solved[1]
