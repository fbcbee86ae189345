"""The compiled loop over rows with missing values: a plain function of arrays, independent of ``_kernels.py``.

With K the inverse covariance of a Gaussian and m what a row misses, ``K_mm = L L'`` gives the conditional covariance
``L^-T L^-1`` of what is missing. Rows that miss the same columns, a pattern, share it.
"""

import math
from typing import Any

import numpy as np

from ._compiled import compiled

_kernel: Any = compiled(nogil=True, error_model="numpy")


@_kernel
def fill_rows(K, pull, noise, columns, column_ends, rows, row_ends, filled, spread):
    """Write means, or draws, of missing values into ``filled`` (n, d), less the means of the columns.

    ``pull`` (n, d) is Z K of the rows Z with 0 for what is missing; ``noise`` (n, d) is standard normal, or empty for
    means. Pattern p misses ``columns[column_ends[p - 1] : column_ends[p]]`` in ``rows[row_ends[p - 1] : row_ends[p]]``.
    Conditional covariances are added to the lower triangle of ``spread`` (d, d), once for every row. Returns the sum of
    ``ln det K_mm`` over rows, nan if one of these blocks is not positive definite.
    """
    d = K.shape[0]
    L, R, v = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    total = 0.0
    first_column = first_row = 0
    for p in range(column_ends.shape[0]):
        c, m = columns[first_column : column_ends[p]], column_ends[p] - first_column
        count = row_ends[p] - first_row
        log_det = 0.0
        for i in range(m):
            for j in range(i + 1):
                s = K[c[i], c[j]]
                for k in range(j):
                    s -= L[i, k] * L[j, k]
                if j < i:
                    L[i, j] = s / L[j, j]
                elif s > 0.0:
                    L[i, i] = math.sqrt(s)
                    log_det += math.log(s)
                else:
                    return math.nan
        # R = L^-1, its columns as rows, so that sums run along them
        for j in range(m):
            R[j, j] = 1.0 / L[j, j]
            for i in range(j + 1, m):
                s = 0.0
                for k in range(j, i):
                    s -= L[i, k] * R[j, k]
                R[j, i] = s / L[i, i]
        for i in range(m):
            for j in range(i + 1):
                s = 0.0
                for k in range(i, m):
                    s += R[i, k] * R[j, k]
                # columns of a pattern ascend
                spread[c[i], c[j]] += count * s
        for r in range(first_row, row_ends[p]):
            row = rows[r]
            for k in range(m):
                s = 0.0
                for j in range(k + 1):
                    s -= R[j, k] * pull[row, c[j]]
                v[k] = s + (noise[row, c[k]] if noise.shape[0] else 0.0)
            for j in range(m):
                s = 0.0
                for k in range(j, m):
                    s += R[j, k] * v[k]
                filled[row, c[j]] = s
        total += count * log_det
        first_column, first_row = column_ends[p], row_ends[p]
    return total
