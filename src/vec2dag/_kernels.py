"""The compiled loops: plain functions of arrays, without Python objects and without global state.

Every kernel releases the GIL; parallelism over graphs comes from outside (:func:`vec2dag.scores.run_chunks`).
Indices follow the package: ``A[b, i, j] = 1`` means ``i -> j`` in graph ``b``.

The linear statistics are passed as four arrays, made by :class:`vec2dag.scores.Linear`:

``C`` (d, d)
    second moments scaled to a unit diagonal (correlations, when the data are centred);
``F`` (d, r)
    row ``j`` is column ``j`` of the triangular factor of the same scaled data, so ``C = F F'`` up to rounding;
``scale`` (d,)
    what a residual ratio is multiplied by to become a mean squared residual;
``base`` (d,)
    the mean squared residual of a node without parents.
"""

import math

import numpy as np
from numba import njit

# Sums of products may be reordered and fused; NaN and infinity keep their meaning.
_MATH = {"reassoc", "contract", "nsz"}

# A pivot below this share of the variance means that squaring (C = F F') has lost more than a third of the
# digits: the regression is redone on F, whose condition number is the square root of that of C.
ILL_CONDITIONED = 1e-6
# Squared norms relative to 1 that double precision cannot tell from linear dependence, for F as for C.
DEPENDENT = 1e-20
# Residual ratio given to a variable that its parents determine completely.
FLOOR = 1e-20

BIC_EV, BIC_NV, LS = 0, 1, 2


@njit(cache=True, nogil=True)
def decode(z, d, A):
    """Vec2DAG: ``A[b, i, j] = H(p_j - p_i) H(E_ij + E_ji)`` for every row ``b`` of ``z`` (B, d (d + 1) / 2)."""
    for b in range(z.shape[0]):
        e = d
        for i in range(d):
            A[b, i, i] = 0
            for j in range(i + 1, d):
                on = z[b, e] > 0.0
                A[b, i, j] = on and z[b, i] < z[b, j]
                A[b, j, i] = on and z[b, j] < z[b, i]
                e += 1


@njit(cache=True, nogil=True)
def kahn(A, order):
    """Topological order of ``A`` (d, d), smallest index first among the ready; returns how many were placed."""
    d = A.shape[0]
    missing = np.zeros(d, np.int64)
    for i in range(d):
        for j in range(d):
            missing[j] += A[i, j] != 0
    placed = 0
    for _ in range(d):
        node = -1
        for j in range(d):
            if missing[j] == 0:
                node = j
                break
        if node < 0:
            return placed
        missing[node] = -1
        order[placed] = node
        placed += 1
        for j in range(d):
            missing[j] -= A[node, j] != 0
    return placed


@njit(cache=True, nogil=True, fastmath=_MATH)
def ratio_from_factor(F, node, parents, k, Q):
    """Residual ratio of ``node`` given ``parents[:k]`` by Gram-Schmidt on rows of ``F``, applied twice."""
    r = F.shape[1]
    m = 0
    for a in range(k + 1):
        row = F[parents[a]] if a < k else F[node]
        norm = 0.0
        for t in range(r):
            Q[m, t] = row[t]
        for _ in range(2):
            for b in range(m):
                dot = 0.0
                for t in range(r):
                    dot += Q[b, t] * Q[m, t]
                for t in range(r):
                    Q[m, t] -= dot * Q[b, t]
        for t in range(r):
            norm += Q[m, t] * Q[m, t]
        if a == k:
            return max(norm, FLOOR)
        if norm > DEPENDENT:
            norm = 1.0 / math.sqrt(norm)
            for t in range(r):
                Q[m, t] *= norm
            m += 1
    return 1.0


@njit(cache=True, nogil=True, fastmath=_MATH)
def residual_ratio(C, F, node, parents, k, L, Q):
    """``1 - C_iP C_PP^-1 C_Pi``: what the parents leave of the node's variance, from one Cholesky.

    ``L`` (d + 1, d) and ``Q`` (d + 1, r) are scratch.
    """
    for a in range(k + 1):
        u = parents[a] if a < k else node
        left = 1.0
        for b in range(a):
            s = C[u, parents[b]]
            for c in range(b):
                s -= L[a, c] * L[b, c]
            s /= L[b, b]
            L[a, b] = s
            left -= s * s
        if left < ILL_CONDITIONED:
            return ratio_from_factor(F, node, parents, k, Q)
        if a == k:
            return left
        L[a, a] = math.sqrt(left)
    return 1.0


@njit(cache=True, nogil=True)
def combine(residuals, edges, kind, penalty, offset):
    """The criterion, divided by n d: ``residuals`` (d,) are mean squares, ``penalty`` is per edge."""
    d = residuals.shape[0]
    total = 0.0
    for i in range(d):
        total += math.log(residuals[i] + offset) if kind == BIC_NV else residuals[i]
    total /= d
    if kind == BIC_EV:
        total = math.log(total + offset)
    return -total - penalty * edges


@njit(cache=True, nogil=True)
def linear_residuals(A, C, F, scale, base, out):
    """Mean squared residuals ``out`` (B, d) of every node of every graph ``A`` (B, d, d)."""
    d = C.shape[0]
    L = np.empty((d + 1, d))
    Q = np.empty((d + 1, F.shape[1]))
    parents = np.empty(d, np.int64)
    count = np.empty(d, np.int64)
    lists = np.empty((d, d), np.int32)
    for b in range(A.shape[0]):
        count[:] = 0
        for i in range(d):
            for j in range(d):
                if A[b, i, j]:
                    lists[j, count[j]] = i
                    count[j] += 1
        for j in range(d):
            k = count[j]
            for a in range(k):
                parents[a] = lists[j, a]
            out[b, j] = scale[j] * residual_ratio(C, F, j, parents, k, L, Q) if k > 0 else base[j]


@njit(cache=True, nogil=True)
def combine_batch(residuals, edges, kind, penalty, offset, out):
    """:func:`combine` for every row."""
    for b in range(residuals.shape[0]):
        out[b] = combine(residuals[b], edges[b], kind, penalty, offset)
