"""Gaussian-process regression that learns noise, amplitude and a length scale for every parent by itself."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from .._checks import choose, whole_number
from .._settings import Settings
from .additive import Additive
from .lapack import triangular_inverse
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
# Added to the kernel matrix of the landmarks, whose rows may be equal or nearly so; and the least noise over amplitude
# for every row, which keeps rounding of sums over rows, divided by both, below 1.
JITTER, LEAST = 1e-5, 1e-9
# The logarithms of length scales (in deviations, over the root of the number of parents) and of noise over amplitude
# are normal beforehand, so weakly that a handful of rows decides; without that length scales of parents that do not
# matter would go to infinity, and ten rows would be fitted without noise.
SCALE, NOISE, WIDTH = math.log(1.5), math.log(0.3), 2.0
# A climb ends where a step would gain less than this in -2 ln likelihood, on few rows and on all: ln n, the price of a
# parent, is far more.
FIRST_CLOSE, CLOSE = 0.5, 0.05
# The longest step, in logarithms.
LONGEST = 1.5


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
        """The process on few landmarks, without normal scores: a fifth of the work."""
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
        found = []
        for inputs in self.scales(Z):
            first = _Likelihood(inputs[few], y[few], min(landmarks, FIRST_LANDMARKS))
            top = _climb(first, first.centre, None, FIRST_CLOSE)
            last = _Likelihood(inputs[some], y[some], landmarks)
            found.append((last(top.t)[0], inputs, last, top))
        ranks = found[-1][0] < found[0][0]
        _, inputs, last, top = found[-int(ranks)]
        top = _climb(last, top.t, top.inverse * (len(few) / len(some)), self.close)
        scales, rho = np.exp(top.t[:-1]), _ratio(top.t, n)
        inputs = inputs / scales
        centres = inputs[_places(inputs, landmarks)]
        solved = _Solved.of(inputs, centres, y, rho)
        fitted = LearnedProcessFit(
            scales, ranks, rho, math.exp(solved.height / n), solved.left / n, solved.freedom, solved.quadratic * rho / n
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
    ranked = np.unique(np.argsort(inputs, axis=0, kind="stable")[spread(n, most // (2 * k))])
    others = np.setdiff1d(np.arange(n), ranked)
    return np.sort(np.concatenate([ranked, others[spread(len(others), most - len(ranked))]]))


def _kernel(P: Array, Q: Array, out: Array | None = None) -> Array:
    """``exp(-|p_i - q_j|^2 / 2)`` (m, n)."""
    p, q = (-0.5 * (A**2).sum(axis=1)[:, None] for A in (P, Q))
    exponents = np.matmul(np.hstack([P, p, np.ones_like(p)]), np.hstack([Q, np.ones_like(q), q]).T, out=out)
    # Less than exp(-40) is nothing; products of it would be denormal numbers, which are slow.
    np.clip(exponents, -40.0, 0.0, out=exponents)
    return np.exp(exponents, out=exponents)


def _blocks(n: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(n), -(-n // BLOCK))


@dataclass
class _Solved:
    """Least squares on the kernels ``C`` (n, m) of the landmarks, whose own kernels are ``K = L L'``.

    With ``B = I + L^-1 C'C L^-T / rho``: ``|Q + rho I| = rho^n |B|``, ``Q = C K^-1 C'``, and weights
    ``b = (rho K + C'C)^-1 C'y``.

    Attributes
    ----------
    height : float
        -2 ln likelihood, with the best amplitude, up to a constant.
    quadratic : float
        ``y'(Q + rho I)^-1 y``.
    left : float
        Sum of squared residuals.
    freedom : float
        ``tr Q (Q + rho I)^-1``.
    """

    K: Array
    inverse: Array  # (rho K + C'C)^-1
    root: Array  # L^-1
    weights: Array
    height: float
    quadratic: float
    left: float
    freedom: float

    @classmethod
    def of(cls, inputs: Array, centres: Array, y: Array, rho: float) -> "_Solved":
        """From the rows, a block at a time."""
        S, c = np.zeros((len(centres), len(centres))), np.zeros(len(centres))
        for rows in _blocks(len(y)):
            C = _kernel(inputs[rows], centres)
            S += C.T @ C
            c += C.T @ y[rows]
        return cls.from_products(_kernel(centres, centres), S, c, y, rho)

    @classmethod
    def from_products(cls, K: Array, S: Array, c: Array, y: Array, rho: float) -> "_Solved":
        """From ``C'C`` and ``C'y``."""
        n, m = len(y), len(c)
        jittered = K.copy()
        jittered.flat[:: m + 1] += JITTER
        root = triangular_inverse(np.linalg.cholesky(jittered))
        B = root @ S @ root.T / rho
        B.flat[:: m + 1] += 1.0
        factor = np.linalg.cholesky(B)
        half = triangular_inverse(factor) @ root
        inverse = half.T @ half / rho
        weights = inverse @ c
        # Few of the rows may all be equal.
        total = max(float(y @ y), 1e-12 * n)
        quadratic = max(total - float(c @ weights), 1e-12 * total) / rho
        left = max(total - 2.0 * float(c @ weights) + float(weights @ S @ weights), 1e-12 * total)
        height = n * math.log(quadratic * rho / n) + 2.0 * float(np.log(np.diagonal(factor)).sum())
        freedom = float((inverse * S).sum())
        return cls(jittered, inverse, root, weights, height, quadratic, left, freedom)


class _Likelihood:
    """``-2 ln p(y)`` less twice the logarithm of the prior, and its slope, by the logarithms of ``l`` and ``rho``."""

    def __init__(self, inputs: Array, y: Array, landmarks: int) -> None:
        self.inputs, self.y = inputs, y - y.mean()
        self.places = _places(inputs, landmarks)
        k = inputs.shape[1]
        self.centre = np.append(np.full(k, SCALE + 0.5 * math.log(k)), NOISE)
        # Kernels and, as a last column, residuals; and derivatives: fresh memory would cost more than what fills it.
        self.beside, self.slopes = np.empty((len(y), len(self.places) + 1)), np.empty((len(y), len(self.places)))

    def __call__(self, t: Array) -> tuple[float, Array]:
        """At ``t`` (k + 1,)."""
        y, n = self.y, len(self.y)
        rho = _ratio(t, n)
        Z = self.inputs / np.exp(t[:-1])
        centres = Z[self.places]
        C, K = _kernel(Z, centres, self.beside[:, :-1]), _kernel(centres, centres)
        solved = _Solved.from_products(K, C.T @ C, C.T @ y, y, rho)
        b, share = solved.weights, n / solved.quadratic
        # Derivatives by C and K, times C and K: d ln|rho K + C'C| = tr inverse (rho dK + 2 C'dC), and
        # d quadratic = -2 (y - C b)' dC b / rho + b' dK b.
        self.beside[:, -1] = y - C @ b
        by_C = np.matmul(self.beside, np.vstack([2.0 * solved.inverse, -2.0 * share / rho * b]), out=self.slopes)
        by_C *= C
        by_K = (rho * solved.inverse - solved.root.T @ solved.root + share * np.outer(b, b)) * K
        slope = np.empty(len(t))
        slope[:-1] = _stretch(Z, centres, by_C) + _stretch(centres, centres, by_K)
        slope[-1] = n - solved.freedom + share * (float(b @ solved.K @ b) - solved.quadratic)
        slope[-1] *= math.exp(t[-1]) / rho
        away = (t - self.centre) / WIDTH
        return solved.height + float(away @ away), slope + 2.0 * away / WIDTH


def _ratio(t: Array, n: int) -> float:
    """Noise over amplitude for the last of the numbers ``t``."""
    return math.exp(t[-1]) + LEAST * n


def _stretch(P: Array, Q: Array, W: Array) -> Array:
    """``sum_ij W_ij (p_ik - q_jk)^2`` (k,)."""
    return np.asarray(W.sum(axis=1) @ P**2 + W.sum(axis=0) @ Q**2 - 2.0 * (P * (W @ Q)).sum(axis=0))


class _Top(NamedTuple):
    t: Array
    height: float
    inverse: Array  # approximation of the inverse of the second derivatives


def _climb(f: _Likelihood, t: Array, inverse: Array | None, close: float) -> _Top:
    """The minimum next to ``t`` by steps of Broyden, Fletcher, Goldfarb and Shanno, each of them downhill."""
    height, slope = f(t)
    H = np.eye(len(t)) * (0.5 / max(float(np.abs(slope).max()), 0.5)) if inverse is None else inverse
    fresh = inverse is None
    for _ in range(60):
        step = -H @ slope
        step *= min(1.0, LONGEST / float(np.abs(step).max() or 1.0))
        gain = -float(step @ slope)
        if gain < close:
            break
        for _ in range(12):
            there, new_slope = f(t + step)
            if there <= height - 1e-4 * gain:
                break
            # The vertex of the parabola through both heights and the slope here.
            shrink = min(max(0.5 * gain / (there - height + gain), 0.1), 0.5)
            step, gain = step * shrink, gain * shrink
        else:
            break
        t, turn = t + step, new_slope - slope
        bend = float(step @ turn)
        if bend > 1e-9 * float(np.linalg.norm(step) * np.linalg.norm(turn)):
            if fresh:
                H, fresh = np.eye(len(t)) * (bend / float(turn @ turn)), False
            V = np.eye(len(t)) - np.outer(step, turn) / bend
            H = V @ H @ V.T + np.outer(step, step) / bend
        height, slope = there, new_slope
    return _Top(t, height, H)
