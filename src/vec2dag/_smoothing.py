"""The compiled loops of additive regression: plain functions of arrays, as in ``_kernels.py``, and independent of it.

A term is a smooth function of one parent, in a basis in which its penalty is diagonal (:mod:`vec2dag.scores.splines`).
The q coefficients of all terms stand one after the other; ``ends`` (p,) tells where each term ends. ``G`` (q, q) has
the inner products of the basis functions and ``c`` (q,) those with the target, which is centred and of length 1.
"""

import math
from typing import Any

import numpy as np

from ._compiled import compiled

_kernel: Any = compiled(nogil=True, error_model="numpy")

# Range of the logarithms of smoothing parameters: from no penalty to a straight line, in the units of the basis.
LOW, HIGH = -16.0, 16.0
# Start, about 3 degrees of freedom a term, and the longest step. Cross-validation has local minima: from here Newton
# steps reach those of mgcv most often.
START, LONGEST = -2.3, 5.0


@_kernel
def cross_validation(G, c, penalty, ends, n, rho):
    """Logarithm of RSS / (n - tr A)^2, gradient (p,) and Hessian (p, p) by ``rho`` (p,), RSS, and n - tr A (Wood 2008).

    With W_j the part of W = diag w of term j, M = (G + W)^-1 and b = Mc:  db / d rho_j = -M W_j b,
    d RSS / d rho_j = 2 b'W M W_j b,  d tr A / d rho_j = -tr(W_j K),  K = MGM.
    """
    q, p = len(c), len(ends)
    owner, w, S = np.empty(q, np.int64), np.empty(q), G.copy()
    a = 0
    for j in range(p):
        while a < ends[j]:
            owner[a], w[a] = j, math.exp(rho[j]) * penalty[a]
            S[a, a] += w[a]
            a += 1
    M = np.linalg.inv(S)
    b = M @ c
    rss, free = 1.0, n - 1.0 - q
    for a in range(q):
        rss -= c[a] * b[a] + w[a] * b[a] * b[a]
        free += w[a] * M[a, a]
    rss = max(rss, 1e-20)
    lift, K = M @ (w * b), M - (M * w) @ M
    pulls = np.zeros((p, q))
    for a in range(q):
        pulls[owner[a], a] = w[a] * b[a]
    db = -pulls @ M
    left_slope, left_bend = 2.0 * (pulls @ lift), 2.0 * (db @ G @ db.T)
    free_slope, free_bend = np.zeros(p), np.zeros((p, p))
    for a in range(q):
        i = owner[a]
        free_slope[i] += w[a] * K[a, a]
        for j in range(p):
            mixed = 2.0 * w[a] * lift[a] * db[j, a]
            left_bend[i, j] += mixed
            left_bend[j, i] += mixed
        for e in range(q):
            free_bend[i, owner[e]] -= 2.0 * w[a] * M[a, e] * K[a, e] * w[e]
    slope, bend = left_slope / rss - 2.0 * free_slope / free, np.empty((p, p))
    for i in range(p):
        left_bend[i, i] += left_slope[i]
        free_bend[i, i] += free_slope[i]
        for j in range(p):
            bend[i, j] = left_bend[i, j] / rss - left_slope[i] * left_slope[j] / rss**2
            bend[i, j] -= 2.0 * (free_bend[i, j] / free - free_slope[i] * free_slope[j] / free**2)
    return math.log(rss) - 2.0 * math.log(free), slope, bend, rss, free


@_kernel
def smoothing(G, c, penalty, ends, n):
    """Logarithms (p,) of the smoothing parameters at a local minimum of cross-validation; RSS and n - tr A there."""
    p = len(ends)
    x = np.full(p, START)
    value, slope, bend, rss, free = cross_validation(G, c, penalty, ends, n, x)
    for _ in range(100):
        # Absolute curvatures: away from a saddle, and far where it is flat.
        curvature, U = np.linalg.eigh(bend)
        curvature = np.abs(curvature)
        curvature = np.maximum(curvature, max(1e-7 * curvature.max(), 1e-12))
        step = -U @ ((U.T @ slope) / curvature)
        step *= LONGEST / max(np.abs(step).max(), LONGEST)
        there = np.minimum(np.maximum(x + step, LOW), HIGH)
        found = cross_validation(G, c, penalty, ends, n, there)
        for _ in range(29):
            if found[0] <= value:
                break
            step /= 2.0
            there = np.minimum(np.maximum(x + step, LOW), HIGH)
            found = cross_validation(G, c, penalty, ends, n, there)
        if not found[0] <= value:
            break
        gain, x = value - found[0], there
        value, slope, bend, rss, free = found
        if gain < 1e-9:
            break
    return x, rss, free
