"""Additive spline regression with one significance test a term: what CAM pruning needs of R's mgcv.

``y = c + f_1(x_1) + ... + f_p(x_p) + noise`` with a thin-plate regression spline for every ``f_j`` (Wood, J. R. Stat.
Soc. B 65, 2003), smoothing parameters by generalised cross-validation (Wood, J. R. Stat. Soc. B 70, 2008), and the
test of ``f_j = 0`` of Wood (Biometrika 100, 2013).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import fdtrc, roots_jacobi

from .splines import Smooth

__all__ = ["Terms", "additive_terms"]

Array = NDArray[np.float64]

# Range of the logarithms of smoothing parameters: from no penalty to a straight line, in the units of Smooth.
BOUNDS = (-16.0, 16.0)
# Start, about 3 degrees of freedom a term, and the longest step. Cross-validation has local minima: from here Newton
# steps reach those of mgcv most often.
START, LONGEST = -2.3, 5.0
# Penalty on every coefficient relative to its information: decides only where parents determine each other.
RIDGE = 1e-9


class Terms(NamedTuple):
    """Tests of the p terms of an additive regression.

    Attributes
    ----------
    p : array of shape (p,)
        P-values of the hypotheses that a term is zero.
    F : array of shape (p,)
        Wald statistics divided by their degrees of freedom ``df``.
    edf, df : arrays of shape (p,)
        Effective degrees of freedom of the terms, and those of their tests.
    """

    p: Array
    F: Array
    edf: Array
    df: Array


def additive_terms(y: Array, smooths: Sequence[Smooth]) -> Terms:
    """Fit ``y`` (n,) by the sum of smooth functions and test each of them.

    There must be more rows than coefficients, and ``y`` must vary.
    """
    fit = _Fit(y, smooths)
    weights, M, b, rss = fit.solve(_minimum(fit.gcv, np.full(fit.p, START)))
    F = np.eye(len(b)) - M * weights
    edf = fit.member @ np.diagonal(F)
    # tr(2F - FF): the degrees of freedom that the data have spent, and not only those that smoothing has left
    df = fit.member @ (2 * np.diagonal(F) - (F * F.T).sum(axis=1))
    free = fit.n - 1 - edf.sum()
    blocks = [np.flatnonzero(row) for row in fit.member]
    tests = [
        _wald(b[block], M[np.ix_(block, block)] * (rss / free), rank, free)
        for block, rank in zip(blocks, df, strict=True)
    ]
    statistic, rank, pvalue = (np.array(column) for column in zip(*tests, strict=True))
    return Terms(pvalue, statistic / rank, edf, rank)


class _Fit:
    """Penalised least squares as a function of the logarithms ``rho`` (p,) of the smoothing parameters.

    ``member`` (p, q) tells which of the q coefficients belong to which term; ``y`` is centred and has length 1.
    """

    def __init__(self, y: Array, smooths: Sequence[Smooth]) -> None:
        self.n, self.p = len(y), len(smooths)
        self.owner = np.repeat(np.arange(self.p), [len(s.penalty) for s in smooths])
        self.member = (self.owner == np.arange(self.p)[:, None]).astype(np.float64)
        self.penalty = np.concatenate([s.penalty for s in smooths])
        Z = np.hstack([s.Z for s in smooths])
        self.G = Z.T @ Z + RIDGE * np.eye(len(self.owner))
        self.c = Z.T @ ((y - y.mean()) / (y.std() * np.sqrt(self.n)))

    def solve(self, rho: Array) -> tuple[Array, Array, Array, float]:
        """Penalties w = diag W, M = (G + W)^-1, coefficients b = Mc, and the residual sum of squares."""
        w = np.exp(rho)[self.owner] * self.penalty
        M = cho_solve(cho_factor(self.G + np.diag(w)), np.eye(len(w)))
        b = M @ self.c
        return w, M, b, max(1.0 - self.c @ b - w @ b**2, 1e-20)

    def gcv(self, rho: Array) -> tuple[float, Array, Array]:
        """Logarithm of RSS / (n - tr A)^2, its gradient (p,) and its Hessian (p, p) (Wood 2008)."""
        w, M, b, rss = self.solve(rho)
        free = self.n - 1 - len(w) + w @ np.diagonal(M)
        # With W_j the part of W of term j:  db / d rho_j = -M W_j b,  d RSS / d rho_j = 2 b'W M W_j b,
        # d tr A / d rho_j = -tr(W_j K),  K = MGM.
        pulls, lift = self.member * (w * b), M @ (w * b)
        db = -pulls @ M
        K = M - (M * w) @ M
        rss_1 = 2 * pulls @ lift
        mixed = self.member @ ((w * lift)[:, None] * db.T)
        rss_2 = 2 * (db @ self.G @ db.T + mixed + mixed.T) + np.diag(rss_1)
        free_1 = self.member @ (w * np.diagonal(K))
        free_2 = np.diag(free_1) - 2 * (self.member * w) @ (M * K) @ (self.member * w).T
        slope = rss_1 / rss - 2 * free_1 / free
        bend = rss_2 / rss - np.outer(rss_1, rss_1) / rss**2
        bend -= 2 * (free_2 / free - np.outer(free_1, free_1) / free**2)
        return float(np.log(rss) - 2 * np.log(free)), slope, bend


def _minimum(function: Callable[[Array], tuple[float, Array, Array]], x: Array) -> Array:
    """Local minimum of a function that returns value, gradient and Hessian, by Newton steps inside ``BOUNDS``."""
    value, slope, bend = function(x)
    for _ in range(100):
        # Absolute curvatures: away from a saddle, and far where it is flat.
        curvature, U = np.linalg.eigh(bend)
        curvature = np.maximum(np.abs(curvature), max(1e-7 * np.abs(curvature).max(), 1e-12))
        step = -U @ ((U.T @ slope) / curvature)
        step *= LONGEST / max(np.abs(step).max(), LONGEST)
        for _ in range(30):
            there = np.clip(x + step, *BOUNDS)
            found = function(there)
            if found[0] <= value:
                break
            step /= 2
        else:
            return x
        gain = value - found[0]
        x, (value, slope, bend) = there, found
        if gain < 1e-9:
            return x
    return x


def _wald(b: Array, V: Array, rank: float, free: float) -> tuple[float, float, float]:
    """Statistic, rank and p-value of ``b'V^-b`` with a pseudo-inverse of fractional rank (Wood 2013, section 2.2).

    The last two of the ceil(rank) leading eigenvectors share ``1 + nu`` degrees of freedom. Their cross term changes
    sign with the arbitrary sign of an eigenvector: as in mgcv, the p-value is the mean of both.
    """
    rank = min(max(rank, 1.0), float(len(b)))
    variances, U = np.linalg.eigh(V)
    scores = (U.T @ b)[::-1] / np.sqrt(np.maximum(variances[::-1], 1e-300))
    k = int(rank)
    nu = rank - k
    if nu < 1e-6 or k == len(b):
        total = float(scores[:k] @ scores[:k])
        return total, float(k), float(fdtrc(k, free, total / k))
    sure = scores[:k] @ scores[:k] + nu * scores[k] ** 2
    cross = 2 * np.sqrt(nu * (1 - nu) / 2) * scores[k - 1] * scores[k]
    spread = np.sqrt(1 - nu**2)
    shares = (1 + nu + spread) / 2, (1 + nu - spread) / 2
    tail = [_tail(float(t), k - 1, *shares, free) for t in (sure + cross, sure - cross)]
    return float(sure), rank, min(1.0, sum(tail) / 2)


def _tail(t: float, m: int, first: float, second: float, free: float) -> float:
    """P(chi2_m + first chi2_1 + second chi2_1 > t chi2_free / free).

    On the sphere of m + 2 independent normals the left side is chi2_{m+2} times a weight w that only depends on the
    direction, so that the probability is the mean of an F tail over directions: no cancellation however small it is.
    """
    angle = (np.arange(24) + 0.5) * (np.pi / 48)
    inside = first * np.cos(angle) ** 2 + second * np.sin(angle) ** 2
    if m == 0:
        share, mass = np.ones(1), np.ones(1)
    else:
        # squared length of the last two coordinates: Beta(1, m/2)
        node, mass = roots_jacobi(24, m / 2 - 1, 0)
        share = (node + 1) / 2
    w = 1 - share[:, None] * (1 - inside)
    tails = fdtrc(m + 2, free, t / ((m + 2) * w)).mean(axis=1)
    return float(tails @ mass / mass.sum())
