"""The compiled loops: plain functions of arrays, without Python objects and without global state.

Every kernel releases the GIL; parallelism over graphs comes from outside (:func:`vec2dag.scores.run_chunks`).
Indices follow the package: ``A[b, i, j] = 1`` means ``i -> j`` in graph ``b``.

The linear statistics ``stats`` are four arrays, made by :class:`vec2dag.scores.Linear`:

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
from typing import Any

import numpy as np
from numba import njit

# Compilation is part of the user's time. It is kept short by plain loops instead of array functions, by the
# error model of numpy (no checks for division by zero) and by np.int64(0) where a literal would make numba compile
# the functions called with it a second time. All kernels stand in one file because the cache of a kernel is
# renewed when its own file changes, and only then.
_kernel: Any = njit(cache=True, nogil=True, error_model="numpy")
# Sums of products may be reordered and fused; NaN and infinity keep their meaning.
_fast: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

# A pivot below this share of the variance means that squaring (C = F F') has lost more than a third of the
# digits: the regression is redone on F, whose condition number is the square root of that of C.
ILL_CONDITIONED = 1e-6
# Squared norms relative to 1 that double precision cannot tell from linear dependence, for F as for C.
DEPENDENT = 1e-20
# Residual ratio given to a variable that its parents determine completely.
FLOOR = 1e-20

BIC_EV, BIC_NV, LS = 0, 1, 2


@_kernel
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


@_kernel
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


@_fast
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


@_fast
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


@_kernel
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


@_kernel
def linear_residuals(A, stats, out):
    """Mean squared residuals ``out`` (B, d) of every node of every graph ``A`` (B, d, d)."""
    C, F, scale, base = stats
    d = C.shape[0]
    L = np.empty((d + 1, d))
    Q = np.empty((d + 1, F.shape[1]))
    parents = np.empty(d, np.int64)
    count = np.empty(d, np.int64)
    lists = np.empty((d, d), np.int32)
    for b in range(A.shape[0]):
        for j in range(d):
            count[j] = 0
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


@_kernel
def combine_batch(residuals, edges, kind, penalty, offset, out):
    """:func:`combine` for every row."""
    for b in range(residuals.shape[0]):
        out[b] = combine(residuals[b], edges[b], kind, penalty, offset)


# --- one node against all others ----------------------------------------------------------------------------------


@_fast
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


@_fast
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


@_fast
def toggle_ratios(C, F, i, parents, k, ill, W, v, inverse, Q, toggled, prefix):
    """Residual ratios of node ``i`` when the parenthood of one other node is toggled.

    ``toggled[j]`` (d,) is the ratio without ``j`` if ``j`` is in ``parents[:k]``, and with ``j`` otherwise;
    ``prefix[a]`` is the ratio given the first ``a`` parents, ``a = 0..k``. Rows ``W[:k]`` and ``v`` are left for the
    caller. A pivot below ``ill`` moves the work to the factor ``F``.

    With ``c_j, v_j`` the residual covariance and variance of ``j`` given P:
    adding costs ``-c_j^2 / v_j``, removing ``beta_j^2 / [C_PP^-1]_jj``.
    """
    d = C.shape[0]
    for j in range(d):
        v[j] = 1.0
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


@_kernel
def link(residual, kind, offset):
    """What a criterion sums over nodes: ``ln r`` for bic-nv, ``r`` otherwise."""
    return math.log(residual + offset) if kind == BIC_NV else residual


@_kernel
def change(delta, total, d, kind):
    """Change of the criterion (without the price of edges) when the sum ``total`` of links grows by ``delta``."""
    if kind == BIC_EV:
        return -math.log(max(1.0 + delta / total, 1e-300))
    return -delta / d


@_kernel
def toggle_links(A, stats, kind, offset, ill, table):
    """``table[i, j]``: change of the link of node ``i`` when ``j -> i`` is toggled in ``A`` (d, d); returns links."""
    C, F, scale, base = stats
    d = C.shape[0]
    W = np.empty((d + 1, d))
    inverse = np.empty((d, d))
    Q = np.empty((d + 2, F.shape[1]))
    v, toggled, prefix = np.empty(d), np.empty(d), np.empty(d + 1)
    parents = np.empty(d + 1, np.int64)
    links = np.empty(d)
    for i in range(d):
        k = np.int64(0)
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


@_kernel
def random_bits(state):
    """SplitMix64: 64 random bits and the next state of the stream."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)), state


@_kernel
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


@_kernel
def sort_nodes(p, order):
    """Sort ``order`` (d,) by increasing potential ``p``; insertion, as it is nearly sorted from the last graph."""
    for t in range(1, p.shape[0]):
        node = order[t]
        s = t
        while s > 0 and p[order[s - 1]] > p[node]:
            order[s] = order[s - 1]
            s -= 1
        order[s] = node


@_kernel
def conditional_batch(
    seeds, mu, sigma, bound, on, stats, kind, penalty, offset, edge_gain, node_gradient, rewards, edges
):
    """Exact conditional advantages of every coordinate of every sampled graph.

    Adds ``R_on - R_off`` of the edge ``{i, j}`` (i < j) to ``edge_gain[i, j]``, and to ``node_gradient`` (2, d) the
    derivatives by ``mu_i`` and ``log sigma_i`` of the expected reward over the potential of node ``i`` alone:
    ``sum_q (R_q - R_{q-1}) phi(x_q) / sigma_i`` and ``sum_q (R_q - R_{q-1}) phi(x_q) x_q``, ``x_q`` the standardised
    potential of its q-th neighbour and ``R_q`` the reward with ``i`` placed after q of them.
    """
    C, F, scale, base = stats
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
    order = np.arange(d)
    for g in range(seeds.shape[0]):
        sample_graph(seeds[g], mu, sigma, bound, on, p, A)
        sort_nodes(p, order)
        count = 0
        total = 0.0
        for t in range(d):
            i = order[t]
            k = np.int64(0)
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


# --- search over orders ----------------------------------------------------------------------------------------------


@_kernel
def least_gain(left, price, kind):
    """By how much an edge must lower the residual ratio ``left`` to be worth its price.

    ``price`` is that amount, or for bic-nv its share of ``left``: ``ln(left / (left - gain)) > -ln(1 - price)``.
    """
    return price * left if kind == BIC_NV else price


@_fast
def grow(C, i, allowed, price, kind, W, v, c, parents, changes):
    """Forward selection of parents of ``i`` among ``allowed`` (d,), by residual reduction; returns their number.

    ``changes[j]`` tells whether the selection would differ if ``j`` changed sides, from allowed to not allowed or
    back: those selected, and those that would have been. Returns -1 where rounding could decide.
    """
    d = C.shape[0]
    for j in range(d):
        v[j] = 1.0
        c[j] = C[i, j]
        changes[j] = 0
    left = 1.0
    rounding = 2.0**-50
    k = np.int64(0)
    while True:
        most = least_gain(left, price, kind)
        if rounding > 0.05 * most:
            return np.int64(-1)
        best = np.int64(-1)
        for j in range(d):
            if allowed[j] and c[j] * c[j] > most * v[j]:
                if v[j] < 1e-11:
                    return np.int64(-1)
                most = c[j] * c[j] / v[j]
                best = j
        for j in range(d):
            if not allowed[j] and c[j] * c[j] > most * v[j] and j != i:
                changes[j] = 1
        if best < 0:
            return k
        # Dividing by the pivot magnifies the rounding of what is left of i.
        rounding += 2.0**-51 * (1.0 + left / v[best])
        parents[k] = best
        changes[best] = 1
        add_parent(C, best, k, W, v)
        s = W[k, i]
        row = W[k]
        for j in range(d):
            c[j] -= s * row[j]
        v[best] = 1.0
        c[best] = 0.0
        left = v[i]
        if left < 1e-13:
            return np.int64(-1)
        k += 1


@_fast
def grow_from_factor(F, i, allowed, price, kind, Y, parents, changes):
    """:func:`grow` on the factor: rows of ``Y`` (d, r) are residuals of the variables given the parents so far."""
    d, r = F.shape
    for j in range(d):
        changes[j] = 0
        for t in range(r):
            Y[j, t] = F[j, t]
    left = 1.0
    k = 0
    while True:
        best = -1
        most = max(least_gain(left, price, kind), FLOOR)
        for allow in range(1, -1, -1):
            for j in range(d):
                if j != i and allowed[j] == allow:
                    cross = 0.0
                    norm = 0.0
                    for t in range(r):
                        cross += Y[i, t] * Y[j, t]
                        norm += Y[j, t] * Y[j, t]
                    if norm > DEPENDENT and cross * cross > most * norm:
                        if allow:
                            most = cross * cross / norm
                            best = j
                        else:
                            changes[j] = 1
        if best < 0 or left <= FLOOR:
            return k
        norm = 0.0
        for t in range(r):
            norm += Y[best, t] * Y[best, t]
        norm = 1.0 / math.sqrt(norm)
        for t in range(r):
            Y[best, t] *= norm
        for j in range(d):
            if j != best:
                dot = 0.0
                for t in range(r):
                    dot += Y[best, t] * Y[j, t]
                for t in range(r):
                    Y[j, t] -= dot * Y[best, t]
        for t in range(r):
            Y[best, t] = 0.0
        left = 0.0
        for t in range(r):
            left += Y[i, t] * Y[i, t]
        parents[k] = best
        changes[best] = 1
        k += 1


@_fast
def shrink(F, i, parents, k, price, kind, exact, W, inverse, Q):
    """Backward elimination of ``parents[:k]``, cheapest first; returns how many stay and the residual ratio."""
    left = 1.0
    if exact:
        left = ratio_from_factor(F, i, parents, k, Q)
    else:
        for a in range(k):
            left -= W[a, i] * W[a, i]
        invert_triangle(W, parents, k, inverse)
        # Q[a, 0] becomes the coefficient of parent a, and then W[a, :k] row a of the inverse of C_PP.
        for a in range(k):
            beta = 0.0
            for b in range(a, k):
                beta += inverse[b, a] * W[b, i]
            Q[a, 0] = beta
        for a in range(k):
            for b in range(a + 1):
                s = 0.0
                for c in range(a, k):
                    s += inverse[c, a] * inverse[c, b]
                W[a, b] = s
                W[b, a] = s
    while k > 0:
        cheapest = -1
        least = np.inf
        for a in range(k):
            if exact:
                last, node = parents[k - 1], parents[a]
                parents[k - 1], parents[a] = node, last
                cost = ratio_from_factor(F, i, parents, k - 1, Q) - left
                parents[k - 1], parents[a] = last, node
            else:
                cost = Q[a, 0] * Q[a, 0] / W[a, a]
            if cost < least:
                least = cost
                cheapest = a
        if least > least_gain(left + least, price, kind):
            return k, left
        left += least
        if not exact:
            s = Q[cheapest, 0] / W[cheapest, cheapest]
            for a in range(k):
                Q[a, 0] -= s * W[cheapest, a]
            for a in range(k):
                if a != cheapest:
                    s = W[a, cheapest] / W[cheapest, cheapest]
                    for b in range(k):
                        if b != cheapest:
                            W[a, b] -= s * W[cheapest, b]
            for a in range(cheapest, k - 1):
                Q[a, 0] = Q[a + 1, 0]
                for b in range(k):
                    W[a, b] = W[a + 1, b]
            for a in range(k - 1):
                for b in range(cheapest, k - 1):
                    W[a, b] = W[a, b + 1]
        for a in range(cheapest, k - 1):
            parents[a] = parents[a + 1]
        k -= 1
    return 0, 1.0


@_kernel
def select(x, limit, toggled, toggle, stats, prices, kind, offset, place, space, parents, changes):
    """Parents of ``x`` among the nodes placed before ``limit``, with ``toggled`` allowed or not by ``toggle``.

    Leaves them in ``parents``; returns the link of the residual and the number of parents.
    """
    C, F, scale, base = stats
    W, v, c, inverse, Q, allowed = space
    for j in range(place.shape[0]):
        allowed[j] = place[j] < limit
    allowed[toggled] = toggle
    allowed[x] = 0
    k = grow(C, x, allowed, prices[x], kind, W, v, c, parents, changes)
    exact = k < 0
    if exact:
        k = grow_from_factor(F, x, allowed, prices[x], kind, Q, parents, changes)
    k, ratio = shrink(F, x, parents, k, prices[x], kind, exact, W, inverse, Q)
    return link(scale[x] * ratio if k > 0 else base[x], kind, offset), k


@_kernel
def insertion_descent(order, stats, kind, penalty, offset, sweeps, full, floor, resolution, A):
    """Move single nodes of ``order`` (d,) to better places until none improves.

    Parents are chosen by :func:`select` among the predecessors; ``order`` and ``A`` (d, d) are overwritten.
    Moving node x past node y changes the candidates of x and of y only, and ``changes`` tells beforehand whether
    that matters, so most places cost nothing. Unless ``full``, a direction is given up when even the best that the
    places further on can bring does not make up for what has been lost. A move must gain more than ``resolution``
    and lead above the score ``floor``.
    Returns the score and the number of moves.
    """
    C, F, scale, base = stats
    d = C.shape[0]
    space = (
        np.empty((d + 1, d)), np.empty(d), np.empty(d), np.empty((d, d)), np.empty((d + 1, F.shape[1])),
        np.empty(d, np.uint8),
    )  # fmt: skip
    parents = np.empty(d + 1, np.int64)
    changes = np.zeros((d, d), np.uint8)
    mine, scratch = np.empty(d, np.uint8), np.empty(d, np.uint8)
    links, sizes = np.empty(d), np.zeros(d, np.int64)
    prices = np.empty(d)
    crossing, rest = np.empty((2, d)), np.empty(d + 1)
    place = np.empty(d, np.int64)
    # Nodes for which something has changed since their places were last tried; only the last sweep tries all.
    dirty = np.ones(d, np.uint8)
    for t in range(d):
        place[order[t]] = t
    total = 0.0
    for i in range(d):
        total += base[i]
    score = -np.inf
    sweep = 0
    moves = 0
    yes, no = np.int64(1), np.int64(0)
    while True:
        # The price of an edge in units of a residual ratio (a share of it for bic-nv). Under equal variances it
        # follows the total, ln((T - gain) / T) = -penalty; the first total, of the variances, only starts it.
        for _ in range(4 if kind == BIC_EV and sweep == 0 else 1):
            for i in range(d):
                if kind == BIC_NV:
                    prices[i] = 1.0 - math.exp(-d * penalty)
                elif kind == LS:
                    prices[i] = d * penalty / scale[i]
                else:
                    prices[i] = total * (1.0 - math.exp(-penalty)) / scale[i]
            if kind == BIC_EV or sweep == 0:
                total = 0.0
                for i in range(d):
                    links[i], sizes[i] = select(
                        i, place[i], i, no, stats, prices, kind, offset, place, space, parents, changes[i]
                    )
                    total += links[i]
        count = 0
        for i in range(d):
            count += sizes[i]
        score = -(math.log(total / d + offset) if kind == BIC_EV else total / d) - penalty * count
        if sweep == sweeps:
            break
        sweep += 1
        price = penalty * (total if kind == BIC_EV else d)  # of an edge, in units of links
        moved = False
        skipped = False
        for x in range(d):
            if not dirty[x]:
                skipped = True
                continue
            dirty[x] = 0
            t = place[x]
            best = resolution + max(0.0, floor - score)
            target = t
            for direction in range(-1, 2, 2):
                end = 0 if direction < 0 else d - 1
                # What crossing y changes in y does not depend on how far x goes.
                hope = 0.0
                if direction < 0:
                    rest[0] = 0.0
                    for q in range(t):
                        y = order[q]
                        crossing[0, y], crossing[1, y] = 0.0, 0.0
                        if changes[y, x]:
                            to, k = select(y, q, x, yes, stats, prices, kind, offset, place, space, parents, scratch)
                            crossing[0, y], crossing[1, y] = to - links[y], k - sizes[y]
                        # the most that the places before q can bring
                        rest[q + 1] = rest[q] + max(0.0, -crossing[0, y] - price * crossing[1, y])
                elif t < d - 1 and not full:
                    to, k = select(x, d, x, no, stats, prices, kind, offset, place, space, parents, scratch)
                    hope = links[x] + price * sizes[x] - to - price * k
                for j in range(d):
                    mine[j] = changes[x, j]
                at, size = links[x], sizes[x]
                crossed, edges = 0.0, 0.0
                for q in range(t + direction, end + direction, direction):
                    y = order[q]
                    if direction > 0 and changes[y, x]:
                        to, k = select(y, q, x, no, stats, prices, kind, offset, place, space, parents, scratch)
                        crossed += to - links[y]
                        edges += k - sizes[y]
                        if not full and crossed + price * edges > 1.1 * hope:
                            break
                    elif direction < 0:
                        crossed += crossing[0, y]
                        edges += crossing[1, y]
                    if mine[y]:
                        limit = q if direction < 0 else q + 1
                        at, size = select(x, limit, x, no, stats, prices, kind, offset, place, space, parents, mine)
                    delta, more = crossed + at - links[x], edges + size - sizes[x]
                    gain = change(delta, total, d, kind) - penalty * more
                    if gain > best:
                        best = gain
                        target = q
                    if direction < 0 and not full and delta + price * more > 1.1 * rest[q]:
                        break
            if target == t:
                continue
            moved = True
            moves += 1
            score += best
            step = 1 if target > t else -1
            for q in range(t, target, step):
                order[q] = order[q + step]
                place[order[q]] = q
            order[target] = x
            place[x] = target
            for q in range(min(t, target), max(t, target) + 1):
                y = order[q]
                if y == x or changes[y, x]:
                    to, k = select(y, q, y, no, stats, prices, kind, offset, place, space, parents, changes[y])
                    total += to - links[y]
                    links[y], sizes[y] = to, k
                    for j in range(d):
                        if changes[y, j] or changes[j, y]:
                            dirty[j] = 1
                    dirty[y] = 1
        if not moved:
            if not skipped:
                break
            for x in range(d):
                dirty[x] = 1
    for i in range(d):
        for j in range(d):
            A[j, i] = 0
        to, k = select(i, place[i], i, no, stats, prices, kind, offset, place, space, parents, scratch)
        for a in range(k):
            A[parents[a], i] = 1
    return score, moves


@_kernel
def equal_variance_order(C, scale, order):
    """Greedy order for equal noise variances: next is the variable with the least variance given those taken.

    Chen, Drton & Wang (2019).
    """
    d = C.shape[0]
    W = np.empty((d + 1, d))
    v = np.ones(d)
    taken = np.zeros(d, np.uint8)
    for t in range(d):
        least = np.inf
        u = np.int64(-1)
        for j in range(d):
            if not taken[j] and v[j] * scale[j] < least:
                least = v[j] * scale[j]
                u = j
        order[t] = u
        taken[u] = 1
        add_parent(C, u, t, W, v)
