"""Gaussian-process regression that learns noise, amplitude and a length scale for every parent by itself."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from .. import _processes
from .._checks import choose, whole_number
from .._settings import Settings
from .additive import Additive
from .regression import Regression, for_freedom
from .regressors import RowRegression, spread

__all__ = ["LearnedProcess", "LearnedProcessFit"]

Array = NDArray[np.float64]

# The first look is at so many rows and landmarks; the likelihood is climbed on so many rows at most.
FIRST_ROWS, FIRST_LANDMARKS, MAX_ROWS = 250, 60, 2000
# Rows whose kernels are held at a time.
BLOCK = 4096
# Landmarks of a glance, by which a descent judges what is worth a fit, and the rows from which on that pays.
GLANCE, GLANCED_ROWS = 40, 400
# A climb ends where a step would gain less than this in -2 ln likelihood, on few rows and on all: ln n, the price of a
# parent, is far more.
FIRST_CLOSE, CLOSE = 0.5, 0.05


class LearnedProcessFit(NamedTuple):
    """A fitted process.

    Attributes
    ----------
    length_scales : array of shape (k,)
        Of the parents, in their deviations or normal scores.
    ranks : bool
        Whether the process sees normal scores of the parents, and not the parents themselves.
    ratio : float
        Variance of the noise over the amplitude.
    evidence : float
        ``exp(-2 / n ln p)`` up to a factor that the parents do not change: 1 where they explain nothing.
    residual : float
        Mean squared residual, as a share of the variance.
    freedom : float
        Effective degrees of freedom, the trace of the smoother.
    noise : float
        Variance of the noise, as a share of the variance.
    """

    length_scales: Array
    ranks: bool
    ratio: float
    evidence: float
    residual: float
    freedom: float
    noise: float


@dataclass
class LearnedProcess(RowRegression, Settings):
    """Gaussian-process regression without anything to tune.

    ``y ~ N(0, s (K + rho I))`` with ``K_ij = exp(-sum_k (z_ik - z_jk)^2 / (2 l_k^2))``: the length scale of every
    parent, the amplitude ``s`` and the noise maximise the marginal likelihood of every regression, so that units do not
    matter, and parents that do not matter get long length scales. The process is that of ``landmarks`` rows, spread
    evenly over the table and over every parent (the subset of regressors). Up to 2000 rows the likelihood is that of
    all rows. Parents are measured in standard deviations, or, where that is likelier, by their normal scores, in which
    heavy tails do not stand out.

    Parameters
    ----------
    price : {"evidence", "freedom", "edges"}, default "evidence"
        What the criterion gets in place of a mean squared residual ``r``. ``"evidence"`` is the marginal likelihood,
        ``p^(-2/n)``: functions are integrated out, and what BIC charges for a parent is the price of its length scale.
        ``"freedom"`` is ``r n^((f - k) / n)``, which makes BIC charge ``ln n`` for each of the ``f`` effective degrees
        of freedom and not of the ``k`` parents; ``"edges"`` is ``r`` itself, as in the paper.
    landmarks : int, default 100
        For three parents or more; a function of one or two needs no more than 60 or 100.

    Examples
    --------
    >>> x = np.linspace(-3, 3, 200)
    >>> y = np.sin(2 * x) + 0.1 * np.random.default_rng(0).standard_normal(200)
    >>> process = LearnedProcess().bind(1e6 * np.column_stack([x, y]))
    >>> process.residual(1, [0]) < 0.2 * process.residual(1, [])
    True
    """

    unit_free: ClassVar[bool] = True
    close: ClassVar[float] = CLOSE

    price: str = "evidence"
    landmarks: int = 100

    def check(self) -> None:
        """Refuse impossible values."""
        choose("price", self.price, PRICES)
        whole_number("landmarks", self.landmarks, least=2)

    def simpler(self, X: Array, names: tuple[str, ...]) -> Regression:
        """Additive regressions."""
        return Additive().bind(X, names)

    def approximate(self, X: Array, names: tuple[str, ...]) -> Regression | None:
        """The process on few landmarks, without normal scores: an eighth of the work."""
        if self.landmarks <= GLANCE or len(X) < GLANCED_ROWS:
            return None
        return _Glance(self.price, GLANCE).bind(X, names)

    def residual(self, Z: Array, y: Array) -> float:
        """What stands for the mean squared residual of ``y`` (n,) given parents ``Z`` (n, k)."""
        variance = float(y.var())
        return variance * PRICES[self.price](self.fit(Z, y), *Z.shape) if Z.shape[1] else variance

    def noise(self, Z: Array, y: Array) -> float:
        """Variance of the noise of ``y`` (n,) given parents ``Z`` (n, k)."""
        return float(y.var()) * (self.fit(Z, y).noise if Z.shape[1] else 1.0)

    def scales(self, Z: Array) -> list[Array]:
        """Parents ``Z`` (n, k) as the process may see them."""
        return [_deviations(Z, Z), _normal_scores(Z)]

    def fit(self, Z: Array, y: Array) -> LearnedProcessFit:
        """Maximise the marginal likelihood of ``y`` (n,) given parents ``Z`` (n, k), k at least 1."""
        return self._learn(Z, y)[0]

    def forecast(self, Z: Array, y: Array, new: Array) -> Array:
        """Predictions (m,) at ``new`` (m, k) of the process fitted to ``y`` (n,) given ``Z`` (n, k)."""
        if Z.shape[1] == 0:
            return np.full(len(new), y.mean())
        fitted, weights, centres = self._learn(Z, y)
        inputs = _scores_at(Z, new) if fitted.ranks else _deviations(Z, new)
        inputs = inputs / fitted.length_scales
        smooth = [_kernel(inputs[rows], centres) @ weights for rows in _blocks(len(new))]
        return y.mean() + y.std() * np.concatenate(smooth)

    def _learn(self, Z: Array, y: Array) -> tuple[LearnedProcessFit, Array, Array]:
        """The process, its weights, and the landmarks in its units."""
        n, k = Z.shape
        y = (y - y.mean()) / y.std()
        landmarks = min(self.landmarks, 20 + 40 * k)
        few, some = spread(n, FIRST_ROWS), spread(n, MAX_ROWS)
        sides = []
        for inputs in self.scales(Z):
            first = _Rows(inputs[few], y[few], min(landmarks, FIRST_LANDMARKS))
            t, _, inverse = first.climb(_processes.before(k), np.zeros((k + 1, k + 1)), FIRST_CLOSE)
            sides.append((inputs, _Rows(inputs[some], y[some], landmarks), t, inverse))
        side = int(np.argmin([last.likelihood(t)[0] for _, last, t, _ in sides])) if len(sides) > 1 else 0
        inputs, last, t, inverse = sides[side]
        t, _, _ = last.climb(t, inverse * (len(few) / len(some)), self.close)
        scales, rho = np.exp(t[:-1]), _processes.ratio(t, n)
        places = last.places if len(some) == n else _places(inputs, landmarks)
        inputs = inputs / scales
        centres = inputs[places]
        solved = _solve(inputs, centres, y, rho)
        fitted = LearnedProcessFit(
            scales,
            side == 1,
            rho,
            math.exp(solved.height / n),
            solved.left / n,
            solved.freedom,
            solved.quadratic * rho / n,
        )
        return fitted, solved.weights, centres


@dataclass
class _Glance(LearnedProcess):
    """A first look at a regression."""

    close: ClassVar[float] = FIRST_CLOSE

    def approximate(self, X: Array, names: tuple[str, ...]) -> Regression | None:
        """None: it is one."""
        return None

    def scales(self, Z: Array) -> list[Array]:
        """Deviations alone."""
        return [_deviations(Z, Z)]


PRICES = {
    "evidence": lambda fitted, n, k: fitted.evidence,
    "freedom": lambda fitted, n, k: for_freedom(fitted.residual, fitted.freedom, n, k),
    "edges": lambda fitted, n, k: fitted.residual,
}


def _spreads(Z: Array) -> Array:
    """Standard deviations (k,); 1 of what is constant."""
    deviations = Z.std(axis=0)
    return np.where(deviations > 0, deviations, 1.0)


def _deviations(Z: Array, new: Array) -> Array:
    """Rows ``new`` (m, k) in standard deviations of the columns of ``Z`` (n, k)."""
    return (new - Z.mean(axis=0)) / _spreads(Z)


def _normal_scores(Z: Array) -> Array:
    """Normal quantiles of the ranks within each column of ``Z`` (n, k), of variance 1; ties have one value."""
    scores = ndtri((rankdata(Z, axis=0) - 0.5) / len(Z))
    return np.asarray(scores / _spreads(scores))


def _scores_at(Z: Array, new: Array) -> Array:
    """Normal scores (m, k) that ``new`` (m, k) would have among the rows of ``Z`` (n, k), by interpolation."""
    scores, out = _normal_scores(Z), np.empty(new.shape)
    for k, column in enumerate(Z.T):
        values, first = np.unique(column, return_index=True)
        out[:, k] = np.interp(new[:, k], values, scores[first, k])
    return out


def _places(inputs: Array, most: int) -> NDArray[np.int64]:
    """Which rows of ``inputs`` (n, k) are landmarks: half of them at even ranks of the parents, others evenly spread.

    The first reach the ends of every column, which rows spread over the table miss where tails are long.
    """
    n, k = inputs.shape
    if n <= most:
        return np.arange(n)
    taken = np.zeros(n, bool)
    taken[np.argsort(inputs, axis=0, kind="stable")[spread(n, most // (2 * k))]] = True
    others = np.flatnonzero(~taken)
    taken[others[spread(len(others), most - int(taken.sum()))]] = True
    return np.flatnonzero(taken)


def _kernel(P: Array, Q: Array) -> Array:
    """``exp(-|p_i - q_j|^2 / 2)`` (m, n)."""
    out = np.empty((len(P), len(Q)))
    _processes.kernels(np.ascontiguousarray(P), np.ascontiguousarray(Q), out)
    return out


def _blocks(n: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(n), -(-n // BLOCK))


class _Rows:
    """Rows from which a process on some of them is learned.

    Parameters
    ----------
    inputs : array of shape (n, k)
    y : array of shape (n,)
    landmarks : int
        At most.
    """

    def __init__(self, inputs: Array, y: Array, landmarks: int) -> None:
        self.places = _places(inputs, landmarks)
        self.arrays = np.ascontiguousarray(inputs), y - y.mean(), self.places

    def likelihood(self, t: Array) -> tuple[float, Array]:
        """See :func:`vec2dag._processes.likelihood`."""
        C, D = np.empty((2, len(self.arrays[1]), len(self.places)))
        height, slope = _processes.likelihood(*self.arrays, t, C, D)
        return float(height), slope

    def climb(self, t: Array, inverse: Array, close: float) -> tuple[Array, float, Array]:
        """See :func:`vec2dag._processes.climb`."""
        t, height, inverse = _processes.climb(*self.arrays, t, inverse, close)
        return t, float(height), inverse


class _Solved(NamedTuple):
    """The process of some landmarks: see :func:`vec2dag._processes.solve` and :func:`vec2dag._processes.height_of`."""

    weights: Array
    height: float
    quadratic: float
    left: float
    freedom: float


def _solve(inputs: Array, centres: Array, y: Array, rho: float) -> _Solved:
    """The process of landmarks at ``centres`` (m, k) for rows ``inputs`` (n, k), a block at a time."""
    S, c, left = np.zeros((len(centres), len(centres))), np.zeros(len(centres)), 0.0
    for rows in _blocks(len(y)):
        C = _kernel(inputs[rows], centres)
        S += C.T @ C
        c += C.T @ y[rows]
    _, _, weights, rough, log_det, freedom = _processes.solve(_kernel(centres, centres), S, c, rho)
    for rows in _blocks(len(y)):
        left += float(((y[rows] - _kernel(inputs[rows], centres) @ weights) ** 2).sum())
    height, quadratic = _processes.height_of(left, rough, log_det, float(y @ y), len(y), rho)
    return _Solved(weights, height, quadratic, left, freedom)
