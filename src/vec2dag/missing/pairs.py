"""Covariances of pairs of columns, each from the rows that have both."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import DataWarning, listing, quoted, warn
from .._parallel import one_blas_thread
from ..moments import Moments
from .gaussian import rows_counted, rows_shared, table_of

__all__ = ["nearest_correlation", "pairwise", "pairwise_of"]

Array = NDArray[np.float64]

# Rows that two columns must share for a correlation: two rows always have one of 1 or -1.
SHARED = 3
# Bounds of the smallest eigenvalue of correlations that were mended, and projections at most.
FLOOR, HIGHEST, PROJECTIONS = 1e-6, 0.5, 200


def pairwise(X: Any, names: Sequence[str] | None = None) -> Moments:
    """Moments of a table with missing values, each covariance from the rows that have both columns.

    They are right for values that are missing completely at random: whether a value is missing depends on nothing in
    the table. Means and variances are of all values of a column, correlations of the rows that a pair shares. Such
    correlations need not be those of any table. If they are not, the nearest that are (Higham 2002) take their place,
    with a warning; what was below 0 of the smallest eigenvalue is the size of errors, and so the mended ones have none
    that is smaller.

    Parameters
    ----------
    X : array of shape (n, d), or data frame
    names : sequence of str, optional
        Names of the d columns.

    Returns
    -------
    Moments
        Of as many rows as two columns share on average. Of a complete table exactly ``Moments.of(X)``.

    Raises
    ------
    ValueError
        Two columns share fewer than 3 rows.
    """
    return pairwise_of(*table_of(X, names))


def pairwise_of(values: Array, names: tuple[str, ...]) -> Moments:
    """Moments whose covariances are each of the rows (n, d) that have both columns, mended if they contradict."""
    missing = np.isnan(values)
    if not missing.any():
        return Moments.of(values, names)
    d = len(names)
    mean, size = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    N, M = rows_shared(values), (~missing).astype(np.float64)
    Z = np.where(missing, 0.0, (values - mean) / size)
    with one_blas_thread():
        # Of every pair, over the rows that it shares: sums of the first column, of its square, and of the product.
        sums, squares, products = Z.T @ M, (Z**2).T @ M, Z.T @ Z
    poor = [
        f"{quoted([names[i]])} and {quoted([names[j]])} ({int(N[i, j])})" for i, j in np.argwhere(np.triu(N < SHARED))
    ]
    if poor:
        raise ValueError(
            f"missing='pairwise-complete' needs {SHARED} rows that have both columns of every pair; too few have "
            f"{listing(poor, 4)}: missing='em' does without, or leave columns out"
        )
    variances = np.maximum(squares / N - (sums / N) ** 2, 0.0)
    spans = np.sqrt(variances * variances.T)
    # A column that does not vary in the rows that it shares with another has covariance 0 with it.
    R = np.divide(products / N - sums * sums.T / N**2, spans, out=np.zeros((d, d)), where=spans > 1e-14)
    R = np.clip((R + R.T) / 2, -1.0, 1.0)
    np.fill_diagonal(R, 1.0)
    least = float(np.linalg.eigvalsh(R)[0])
    if least < FLOOR:
        mended = nearest_correlation(R, min(max(FLOOR, -least), HIGHEST))
        warn(
            f"The correlations of pairs of columns contradict each other (their smallest eigenvalue is {least:.3g}); "
            f"the nearest that do not, different by up to {np.abs(mended - R).max():.2g}, take their place. "
            "missing='em' has no such trouble.",
            DataWarning,
        )
        R = mended
    n = rows_counted(N)
    return Moments(n, mean, np.ascontiguousarray(np.linalg.cholesky(R).T * (size * math.sqrt(n))), names)


def nearest_correlation(R: Array, least: float = FLOOR) -> Array:
    """The correlations (d, d) with no eigenvalue below ``least`` that are nearest to ``R`` in sum of squares.

    By alternating projections with Dykstra's correction (Higham 2002), `PROJECTIONS` at most, and a last step that
    makes sure of both properties.
    """
    Y, correction = R.copy(), np.zeros_like(R)
    for _ in range(PROJECTIONS):
        before, wanted = Y, Y - correction
        bounded = _bounded(wanted, least)
        correction = bounded - wanted
        Y = bounded.copy()
        np.fill_diagonal(Y, 1.0)
        if np.abs(Y - before).max() < 1e-9:
            break
    # Dividing by diagonals above 1 may take an eigenvalue below the bound; it stays above 0.
    Y = _bounded(Y, least)
    size = np.sqrt(np.diagonal(Y))
    return Y / np.outer(size, size)


def _bounded(S: Array, least: float) -> Array:
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.maximum(values, least)) @ vectors.T
