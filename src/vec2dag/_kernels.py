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


# --- one node against all others ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True, fastmath=_MATH)
def add_parent(C, u, k, W, v):
    """Extend the Cholesky rows ``W[:k]`` by the parent ``u``: ``W[k] = (C_u - sum_b W[b, u] W[b]) / sqrt(v_u)``.

    ``v`` (d,) holds the variance of every variable given the parents so far and is updated; a parent that depends
    on the earlier ones gets a zero row.
    """
    d = C.shape[0]
    row = W[k]
    for j in range(d):
        row[j] = C[u, j]
    for b in range(k):
        s = W[b, u]
        other = W[b]
        for j in range(d):
            row[j] -= s * other[j]
    pivot = v[u]
    s = 1.0 / math.sqrt(pivot) if pivot > 1e-14 else 0.0
    for j in range(d):
        row[j] *= s
        v[j] = max(v[j] - row[j] * row[j], 0.0)


@njit(cache=True, nogil=True, fastmath=_MATH)
def invert_triangle(W, parents, k, inverse):
    """``inverse[b, a] = (L^-1)_ba`` for ``L_ab = W[b, parents[a]]``, the Cholesky factor of ``C_PP``."""
    for a in range(k):
        diagonal = W[a, parents[a]]
        inverse[a, a] = 1.0 / diagonal if diagonal > 0.0 else 0.0
        for b in range(a + 1, k):
            s = 0.0
            for c in range(a, b):
                s -= W[c, parents[b]] * inverse[c, a]
            diagonal_b = W[b, parents[b]]
            inverse[b, a] = s / diagonal_b if diagonal_b > 0.0 else 0.0


@njit(cache=True, nogil=True, fastmath=_MATH)
def toggle_ratios(C, F, i, parents, k, ill, W, v, inverse, Q, toggled, prefix):
    """Residual ratios of node ``i`` when the parenthood of one other node is toggled.

    ``toggled[j]`` (d,) is the ratio without ``j`` if ``j`` is in ``parents[:k]``, and with ``j`` otherwise;
    ``prefix[a]`` is the ratio given the first ``a`` parents, ``a = 0..k``. Rows ``W[:k]`` and ``v`` are left for the
    caller. A pivot below ``ill`` moves the work to the factor ``F``.

    With ``c_j, v_j`` the residual covariance and variance of ``j`` given P:
    adding costs ``-c_j^2 / v_j``, removing ``beta_j^2 / [C_PP^-1]_jj``.
    """
    d = C.shape[0]
    v[:] = 1.0
    prefix[0] = 1.0
    smallest = 1.0
    for a in range(k):
        smallest = min(smallest, v[parents[a]])
        add_parent(C, parents[a], a, W, v)
        prefix[a + 1] = max(v[i], FLOOR)
    smallest = min(smallest, v[i])
    if smallest < ill:
        for a in range(1, k + 1):
            prefix[a] = ratio_from_factor(F, i, parents, a, Q)
        for j in range(d):
            toggled[j] = prefix[k]
        for j in range(d):
            if j != i:
                parents[k] = j
                toggled[j] = ratio_from_factor(F, i, parents, k + 1, Q)
        for a in range(k):
            last = parents[k - 1]
            node = parents[a]
            parents[k - 1], parents[a] = node, last
            toggled[node] = ratio_from_factor(F, i, parents, k - 1, Q)
            parents[k - 1], parents[a] = last, node
        return
    left = prefix[k]
    for j in range(d):
        toggled[j] = C[i, j]
    for a in range(k):
        s = W[a, i]
        row = W[a]
        for j in range(d):
            toggled[j] -= s * row[j]
    for j in range(d):
        gain = toggled[j] * toggled[j] / v[j] if v[j] > 1e-12 else 0.0
        toggled[j] = max(left - gain, FLOOR)
    invert_triangle(W, parents, k, inverse)
    for a in range(k):
        beta = 0.0
        diagonal = 0.0
        for b in range(a, k):
            beta += inverse[b, a] * W[b, i]
            diagonal += inverse[b, a] * inverse[b, a]
        toggled[parents[a]] = left + (beta * beta / diagonal if diagonal > 0.0 else 0.0)


@njit(cache=True, nogil=True)
def link(residual, kind, offset):
    """What a criterion sums over nodes: ``ln r`` for bic-nv, ``r`` otherwise."""
    return math.log(residual + offset) if kind == BIC_NV else residual


@njit(cache=True, nogil=True)
def change(delta, total, d, kind):
    """Change of the criterion (without the price of edges) when the sum ``total`` of links grows by ``delta``."""
    if kind == BIC_EV:
        return -math.log(max(1.0 + delta / total, 1e-300))
    return -delta / d


@njit(cache=True, nogil=True)
def toggle_links(A, C, F, scale, base, kind, offset, ill, table):
    """``table[i, j]``: change of the link of node ``i`` when ``j -> i`` is toggled in ``A`` (d, d); returns links."""
    d = C.shape[0]
    W = np.empty((d + 1, d))
    inverse = np.empty((d, d))
    Q = np.empty((d + 2, F.shape[1]))
    v, toggled, prefix = np.empty(d), np.empty(d), np.empty(d + 1)
    parents = np.empty(d + 1, np.int64)
    links = np.empty(d)
    for i in range(d):
        k = 0
        for j in range(d):
            if A[j, i]:
                parents[k] = j
                k += 1
        toggle_ratios(C, F, i, parents, k, ill, W, v, inverse, Q, toggled, prefix)
        links[i] = link(scale[i] * prefix[k] if k > 0 else base[i], kind, offset)
        for j in range(d):
            alone = k == 1 and A[j, i]
            table[i, j] = link(base[i] if alone else scale[i] * toggled[j], kind, offset) - links[i]
        table[i, i] = 0.0
    return links


# --- the conditional gradient --------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def random_bits(state):
    """SplitMix64: 64 random bits and the next state of the stream."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)), state


@njit(cache=True, nogil=True)
def sample_graph(seed, mu, sigma, bound, on, p, A):
    """Draw ``z`` from the policy in the stream ``seed``: potentials ``p`` (d,) and the graph ``A`` (d, d).

    Only the signs of the edge potentials matter, so edges are drawn directly: ``on[i, j]`` (i < j) is the
    probability of a positive potential.
    """
    d = p.shape[0]
    state = seed
    for i in range(0, d, 2):
        bits, state = random_bits(state)
        more, state = random_bits(state)
        radius = math.sqrt(-2.0 * math.log((np.float64(bits >> np.uint64(11)) + 0.5) * 2.0**-53))
        angle = 2.0 * math.pi * np.float64(more >> np.uint64(11)) * 2.0**-53
        p[i] = mu[i] + sigma[i] * radius * math.cos(angle)
        if i + 1 < d:
            p[i + 1] = mu[i + 1] + sigma[i + 1] * radius * math.sin(angle)
    for i in range(d):
        p[i] = min(max(p[i], -bound), bound)
    for i in range(d):
        A[i, i] = 0
        for j in range(i + 1, d):
            bits, state = random_bits(state)
            edge = np.float64(bits >> np.uint64(11)) * 2.0**-53 < on[i, j]
            A[i, j] = edge and p[i] < p[j]
            A[j, i] = edge and p[j] < p[i]


@njit(cache=True, nogil=True)
def conditional_batch(
    seeds, mu, sigma, bound, on, C, F, scale, base, kind, penalty, offset, edge_gain, node_gradient, rewards, edges
):
    """Exact conditional advantages of every coordinate of every sampled graph.

    Adds ``R_on - R_off`` of the edge ``{i, j}`` (i < j) to ``edge_gain[i, j]``, and to ``node_gradient`` (2, d) the
    derivatives by ``mu_i`` and ``log sigma_i`` of the expected reward over the potential of node ``i`` alone:
    ``sum_q (R_q - R_{q-1}) phi(x_q) / sigma_i`` and ``sum_q (R_q - R_{q-1}) phi(x_q) x_q``, ``x_q`` the standardised
    potential of its q-th neighbour and ``R_q`` the reward with ``i`` placed after q of them.
    """
    d = C.shape[0]
    p = np.empty(d)
    A = np.empty((d, d), np.uint8)
    W = np.empty((d + 1, d))
    inverse = np.empty((d, d))
    Q = np.empty((d + 2, F.shape[1]))
    v, toggled, prefix = np.empty(d), np.empty(d), np.empty(d + 1)
    near = np.empty(d + 1, np.int64)
    table = np.empty((d, d))
    after = np.empty((d, d + 1))
    links = np.empty(d)
    for g in range(seeds.shape[0]):
        sample_graph(seeds[g], mu, sigma, bound, on, p, A)
        order = np.argsort(p)
        count = 0
        total = 0.0
        for t in range(d):
            i = order[t]
            k = 0
            for s in range(t):
                if A[order[s], i]:
                    near[k] = order[s]
                    k += 1
            count += k
            toggle_ratios(C, F, i, near, k, 1e-10, W, v, inverse, Q, toggled, prefix)
            own = link(scale[i] * prefix[k] if k > 0 else base[i], kind, offset)
            links[i] = own
            total += own
            for j in range(d):
                table[i, j] = link(scale[i] * toggled[j], kind, offset) - own
            if k == 1:
                table[i, near[0]] = link(base[i], kind, offset) - own
            # after[i, q]: change of the link of i if its parents were its first q neighbours in order of potential.
            after[i, 0] = link(base[i], kind, offset) - own
            for a in range(1, k + 1):
                after[i, a] = link(scale[i] * prefix[a], kind, offset) - own
            m = k
            for s in range(t + 1, d):
                if A[i, order[s]]:
                    near[m] = order[s]
                    m += 1
            left = prefix[k]
            for a in range(k, m):
                u = near[a]
                pivot = 1.0
                for b in range(a):
                    pivot -= W[b, u] * W[b, u]
                s = 1.0 / math.sqrt(pivot) if pivot > 1e-12 else 0.0
                for c in range(a, m + 1):
                    j = near[c] if c < m else i
                    value = C[u, j]
                    for b in range(a):
                        value -= W[b, u] * W[b, j]
                    W[a, j] = value * s
                left = max(left - W[a, i] * W[a, i], FLOOR)
                after[i, a + 1] = link(scale[i] * left, kind, offset) - own
        rewards[g] = -(math.log(total / d + offset) if kind == BIC_EV else total / d) - penalty * count
        edges[g] = count
        for i in range(d):
            for j in range(i + 1, d):
                parent, child = (i, j) if p[i] < p[j] else (j, i)
                gain = change(table[child, parent], total, d, kind)
                edge_gain[i, j] += -gain - penalty if A[parent, child] else gain - penalty
        for t in range(d):
            i = order[t]
            m = 0
            k = 0
            for s in range(d):
                j = order[s]
                if A[j, i] or A[i, j]:
                    near[m] = j
                    m += 1
                    k += A[j, i]
            # Crossing a parent makes i its parent, crossing a child takes i from its parents: the same toggle.
            crossed = 0.0
            for a in range(k):
                crossed += table[near[a], i]
            before = change(crossed + after[i, 0], total, d, kind)
            for a in range(m):
                crossed += table[near[a], i] if a >= k else -table[near[a], i]
                value = change(crossed + after[i, a + 1], total, d, kind)
                x = (p[near[a]] - mu[i]) / sigma[i]
                step = (value - before) * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
                node_gradient[0, i] += step / sigma[i]
                node_gradient[1, i] += step * x
                before = value
