"""Additive spline regression with one significance test a term: what CAM pruning needs of R's mgcv.

``y = c + f_1(x_1) + ... + f_p(x_p) + noise`` with a thin-plate regression spline for every ``f_j`` (Wood, J. R. Stat.
Soc. B 65, 2003), smoothing parameters by generalised cross-validation (Wood, J. R. Stat. Soc. B 70, 2008), and the
test of ``f_j = 0`` of Wood (Biometrika 100, 2013).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, roots_jacobi

from ..scores.splines import Penalised, Smooth

__all__ = ["Terms", "additive_terms"]

Array = NDArray[np.float64]


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
    fit = Penalised.of(y, smooths)
    weights, M, b, rss = fit.solve(fit.smoothing()[0])
    F = np.eye(len(b)) - M * weights
    member = fit.member
    edf = member @ np.diagonal(F)
    # tr(2F - FF): the degrees of freedom that the data have spent, and not only those that smoothing has left
    df = member @ (2 * np.diagonal(F) - (F * F.T).sum(axis=1))
    free = fit.n - 1 - edf.sum()
    blocks = [np.flatnonzero(row) for row in member]
    tests = [
        _wald(b[block], M[np.ix_(block, block)] * (rss / free), rank, free)
        for block, rank in zip(blocks, df, strict=True)
    ]
    statistic, rank, pvalue = (np.array(column) for column in zip(*tests, strict=True))
    return Terms(pvalue, statistic / rank, edf, rank)


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
