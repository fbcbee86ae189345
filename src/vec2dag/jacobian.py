"""An order of the columns from the score of their density: SCORE (Rolland et al., ICML 2022).

This score is the gradient of log p(x), not the number that a graph gets. For ``x_j = f_j(parents) + noise`` with
Gaussian noise and functions that are not linear, the entry (j, j) of its Jacobian, the second derivative of log p by
x_j, is the same at every x exactly for leaves, nodes without children: there it is -1 / (variance of the noise). So the
column whose entry varies least is placed last, is removed, and so on with the others.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from ._checks import as_table, is_constant, number, whole_number
from ._parallel import one_blas_thread
from .scores.regressors import spread

__all__ = ["hessian_diagonal", "score_order"]

Array = NDArray[np.float64]

# The method's own ridge.
RIDGE = 1e-3
# Time grows with the cube of the number of rows: 1000 take about 0.06 s of a processor a column.
ROWS = 1000


def score_order(
    X: ArrayLike,
    before: ArrayLike | None = None,
    *,
    ridge: float = RIDGE,
    max_rows: int = ROWS,
    over: Callable[[], bool] = lambda: False,
) -> NDArray[np.int64]:
    """Causal order of the columns of a table, by the leaf that the density has, again and again.

    Parameters
    ----------
    X : array of shape (n, d)
        In units in which the columns can be compared: the entries of a column in other units, u times as large, vary
        u^-4 times as much. Where the noise of all columns is alike, their own units are best; otherwise standardise.
    before : array of shape (d, d), optional
        ``before[i, j]``: i comes before j, whatever the data say. Transitive, and without cycles.
    ridge : float, default 0.001
        As in ``hessian_diagonal``.
    max_rows : int, default 1000
        Rows that are used, spread evenly over the table.
    over : callable, optional
        Asked before every step whether time is over; the columns that are left are then sorted by the variances of the
        last step, and by nothing if there was none.

    Returns
    -------
    order : array of shape (d,), int64
        Causes first. Of columns that are worth the same the later one comes last.
    """
    table = as_table(X, rows=3)
    n, d = table.shape
    if (still := np.flatnonzero(is_constant(table))).size:
        raise ValueError(f"X: columns that do not vary have no place in an order: {still.tolist()}")
    number("ridge", ridge, above=0)
    table = table[spread(n, whole_number("max_rows", max_rows, least=3))]
    earlier = np.zeros((d, d), bool) if before is None else np.asarray(before, dtype=bool)
    if earlier.shape != (d, d):
        raise ValueError(f"before must have shape {(d, d)}, got {earlier.shape}")
    left, order, varies = np.arange(d), [], np.zeros(d)
    with one_blas_thread():
        squares = _squared_distances(table)
        while len(left):
            if len(left) > 1 and not over():
                varies[left] = _diagonal(table[:, left], squares, ridge).var(axis=0)
            free = left[~earlier[np.ix_(left, left)].any(axis=1)]
            if len(free) == 0:
                raise ValueError("before has a cycle: no column can be the last")
            leaf = free[::-1][np.argmin(varies[free[::-1]])]
            order.append(leaf)
            left = left[left != leaf]
            squares -= (table[:, leaf, None] - table[:, leaf]) ** 2
    return np.array(order[::-1], dtype=np.int64)


def hessian_diagonal(X: ArrayLike, *, ridge: float = RIDGE) -> Array:
    """Second derivatives of the logarithm of the density of the rows of ``X`` by each column, at each row.

    Parameters
    ----------
    X : array of shape (n, d)
        A sample of the density; n^2 numbers are held, and time is n^3.
    ridge : float, default 0.001
        What is added to the diagonal of the kernel matrix: the larger, the smoother are the derivatives, and the nearer
        to 0.

    Returns
    -------
    array of shape (n, d)
    """
    table = as_table(X, rows=3)
    number("ridge", ridge, above=0)
    with one_blas_thread():
        return _diagonal(table, _squared_distances(table), ridge)


def _diagonal(Z: Array, squares: Array, ridge: float) -> Array:
    """``hessian_diagonal``, of rows with these squared distances (n, n).

    Stein's identity, E[h(x) grad log p(x)'] = -E[grad h(x)], solved by ridge regression in the functions of the kernel
    k(x, y) = exp(-|x - y|^2 / 2 s^2) with s the median distance of two rows: with K (n, n) of all pairs,
    gradient G = -(K + ridge I)^-1 [sum_b d k(x_a, x_b) / d x_b]_a, and the same with second derivatives of k for
    those of p, divided by p, of which G^2 is subtracted: (log p)'' = p'' / p - ((log p)')^2.
    """
    n, d = Z.shape
    upper = squares[np.triu_indices(n, k=1)]
    # Rows of few values are often the same, and rounding leaves a little.
    apart = upper[upper > 1e-9 * upper.max()]
    width = float(np.median(apart)) if len(apart) else 1.0
    K = np.exp(squares / (-2.0 * width))
    total, KZ = K.sum(axis=1)[:, None], K @ Z
    slopes = (KZ - total * Z) / width
    bends = (K @ Z**2 - 2.0 * Z * KZ + total * Z**2) / width**2 - total / width
    K[np.diag_indices(n)] += ridge
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, np.hstack([slopes, bends]), overwrite_b=True, check_finite=False)
    curved: Array = solved[:, d:] - solved[:, :d] ** 2
    return curved


def _squared_distances(Z: Array) -> Array:
    """Of all pairs of rows (n, n)."""
    centred = Z - Z.mean(axis=0)
    lengths = (centred**2).sum(axis=1)
    return np.maximum(lengths[:, None] + lengths - 2.0 * centred @ centred.T, 0.0)
