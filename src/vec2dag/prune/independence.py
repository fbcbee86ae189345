"""Tests of conditional independence ``x _||_ y | Z``: functions ``(x, y, Z) -> p`` of arrays (n,), (n,) and (n, k).

Kernel tests after Zhang, Peters, Janzing and Schoelkopf (UAI 2011): with the residuals of kernel ridge regressions on
``Z``, ``R = eps (K_Z + eps I)^-1``, the statistic ``tr(R K_xZ R R K_y R)`` is compared with a gamma distribution.
Kernels are Gaussian, their widths and ``eps`` those of the authors' program, which causal-learn follows too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.special import gammaincc

from ..scores.splines import smooth

__all__ = ["kci", "kernel_test"]

Array = NDArray[np.float64]

RIDGE = 1e-3
# More rows than this take low-rank kernels: the whole ones cost n^3 operations and n^2 memory.
MAX_EXACT = 1200
RANK = 300
# Basis of the functions of single variables among the regressors.
CURVES = 10
# Directions of a kernel with less than this share of the largest possible variance are dropped.
NEGLIGIBLE = 1e-6
# Rows against which the variance of the statistic is estimated where there are more.
MAX_PAIRS = 2000


def kci(x: Array, y: Array, Z: Array) -> float:
    """P-value of the KCI test of causal-learn, with its default settings."""
    try:
        from causallearn.utils.KCI.KCI import KCI_CInd, KCI_UInd
    except ImportError as error:
        raise ImportError("test='kci' needs causal-learn: pip install \"vec2dag[ci]\"; test='fast' does not") from error
    if Z.shape[1] == 0:
        return float(KCI_UInd().compute_pvalue(x[:, None], y[:, None])[0])
    return float(KCI_CInd().compute_pvalue(x[:, None], y[:, None], Z)[0])


def kernel_test(
    x: Array, y: Array, Z: Array, *, max_exact: int = MAX_EXACT, rank: int = RANK, curves: int = CURVES
) -> float:
    """P-value of the kernel test, without eigenvalues and, for many rows, without kernel matrices.

    Up to ``max_exact`` rows the result is that of :func:`kci`. Beyond, every kernel is replaced by its pivoted Cholesky
    factor of ``rank`` columns, so that time and memory are linear in the number of rows. So few columns cannot hold
    the functions of many variables, and what the regressions on ``Z`` leave would look like dependence: splines of
    each variable are regressors too. Nothing is random.

    Parameters
    ----------
    x, y : arrays of shape (n,)
    Z : array of shape (n, k)
        May have no columns: the test is then one of independence.
    max_exact, rank : int
    curves : int
        Size of the spline basis of each variable; 0 is none.
    """
    n, k = Z.shape
    x, y, Z = _standardised(x[:, None]), _standardised(y[:, None]), _standardised(Z)
    if k == 0:
        precision = _by_rows(n, 0.8, 0.5, 0.3) ** -2
        sides = x, y
    else:
        precision = _by_rows(n, 1.2, 0.7, 0.4) ** -2 / k
        sides = np.hstack([x, Z / 2]), y
    if n <= max_exact:
        return _exact(*sides, Z, precision)
    return _low_rank(*sides, Z, precision, rank, curves)


def _exact(x: Array, y: Array, Z: Array, precision: float) -> float:
    K, L = _centred(_gaussian(x, x, precision)), _centred(_gaussian(y, y, precision))
    n = len(K)
    if Z.shape[1] == 0:
        mean = np.trace(K) * np.trace(L) / n
        variance = 2 * np.vdot(K, K) * np.vdot(L, L) / n**2
    else:
        regularised = _centred(_gaussian(Z, Z, precision)) + RIDGE * np.eye(n)
        R = RIDGE * cho_solve(cho_factor(regularised), np.eye(n))
        K, L = R @ K @ R, R @ L @ R
        # The null distribution is a sum of chi2_1 weighted by the eigenvalues of K * L, elementwise: their sum is the
        # trace and the sum of their squares the Frobenius norm.
        product = K * L
        mean, variance = np.trace(product), 2 * np.vdot(product, product)
    return _gamma_tail(np.vdot(K, L), mean, variance)


def _low_rank(x: Array, y: Array, Z: Array, precision: float, rank: int, curves: int) -> float:
    B, C = (a - a.mean(axis=0) for a in (_factor(x, precision, rank), _factor(y, precision, rank)))
    n = len(B)
    if Z.shape[1] == 0:
        mean = np.vdot(B, B) * np.vdot(C, C) / n
        variance = 2 * np.sum((B.T @ B) ** 2) * np.sum((C.T @ C) ** 2) / n**2
    else:
        splines = [np.sqrt(n) * smooth(z, curves).Z for z in Z.T] if curves else []
        A = np.hstack([*splines, _factor(Z, precision, rank)])
        A = A - A.mean(axis=0)
        # R = I - A (A'A + eps I)^-1 A'
        ridge = cho_factor(A.T @ A + RIDGE * np.eye(A.shape[1]))
        B, C = (side - A @ cho_solve(ridge, A.T @ side) for side in (B, C))
        mean = np.sum(B**2, axis=1) @ np.sum(C**2, axis=1)
        some = np.linspace(0, n - 1, min(n, MAX_PAIRS)).round().astype(int)
        variance = sum(
            2 * n / len(some) * float(np.sum(((B @ B[rows].T) * (C @ C[rows].T)) ** 2))
            for rows in np.array_split(some, -(-len(some) // 200))
        )
    return _gamma_tail(np.sum((B.T @ C) ** 2), mean, variance)


def _gamma_tail(statistic: Any, mean: Any, variance: Any) -> float:
    """P(gamma > statistic) for the gamma distribution of this mean and variance; 1 where nothing is left to test."""
    if not variance > 0:
        return 1.0
    return float(gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))


def _factor(x: Array, precision: float, rank: int) -> Array:
    """Pivoted Cholesky factor (n, r) of the Gaussian kernel matrix of ``x`` (n, k), r at most ``rank``."""
    L = np.zeros((len(x), min(rank, len(x))))
    left = np.ones(len(x))
    for k in range(L.shape[1]):
        pivot = int(np.argmax(left))
        if left[pivot] < NEGLIGIBLE:
            return L[:, :k]
        column = _gaussian(x, x[pivot : pivot + 1], precision)[:, 0]
        L[:, k] = (column - L[:, :k] @ L[pivot, :k]) / np.sqrt(left[pivot])
        left = np.maximum(left - L[:, k] ** 2, 0.0)
    return L


def _gaussian(a: Array, b: Array, precision: float) -> Array:
    return np.exp(-0.5 * precision * cdist(a, b, "sqeuclidean"))


def _centred(K: Array) -> Array:
    means = K.mean(axis=0)
    return K - means[None, :] - means[:, None] + means.mean()


def _standardised(x: Array) -> Array:
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def _by_rows(n: int, few: float, some: float, many: float) -> float:
    return few if n < 200 else some if n < 1200 else many
