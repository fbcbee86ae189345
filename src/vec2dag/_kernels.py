"""The compiled loops: plain functions of arrays, without Python objects and without global state.

Every kernel releases the GIL; parallelism over graphs comes from outside (:func:`vec2dag._parallel.run_chunks`).
Indices follow the package: ``A[b, i, j] = 1`` means ``i -> j`` in graph ``b``.

The linear statistics ``stats`` are four arrays, made by :class:`vec2dag.scores.linear.LinearOnTable`:

``C`` (d, d)
    second moments scaled to a unit diagonal (correlations, when the data are centred);
``F`` (d, r)
    row ``j`` is column ``j`` of the triangular factor of the same scaled data, so ``C = F F'`` up to rounding;
``scale`` (d,)
    what a residual ratio is multiplied by to become a mean squared residual;
``base`` (d,)
    the mean squared residual of a node without parents.

A ``criterion`` is four numbers and arrays, made by :meth:`vec2dag.scores.criteria.Criterion.compiled`:

``kind``
    one of the three codes below;
``penalty``
    the price of one edge, in the units of the score (divided by n d);
``offset``
    added to every mean squared residual;
``prices`` (d + 1,)
    what k = 0, ..., d - 1 parents of a node cost, in edges: k itself for BIC. (The last is there to be read, not used.)
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
# A named step of one kernel: becomes part of it before LLVM sees it, which would otherwise compile it once alone and
# once more inside.
_step: Any = njit(nogil=True, error_model="numpy", inline="always")
# Sums of products may be reordered and fused; NaN and infinity keep their meaning.
_fast: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

# A pivot below this share of the variance means that squaring (C = F F') has lost more than a third of the
# digits: the regression is redone on F, whose condition number is the square root of that of C.
ILL_CONDITIONED = 1e-6
# Squared norms relative to 1 that double precision cannot tell from linear dependence, for F as for C.
DEPENDENT = 1e-20
# Residual ratio given to a variable that its parents determine completely.
FLOOR = 1e-20
# Least argument of a logarithm, so that rounding below zero gives a number.
TINY = 1e-300
# The same for variances v that were updated downwards from 1 and have an error of about 1e-16 for every update: below
# ZERO_PIVOT a variable adds nothing as a parent, below SMALL_VARIANCE a gain c^2 / v has no digit that is sure.
ZERO_PIVOT, SMALL_VARIANCE = 1e-14, 1e-12
# Where one edge more or less is judged from correlations: a search decides by the gains, a gradient averages over them.
ILL_FOR_SEARCH, ILL_FOR_GRADIENT = 1e-8, 1e-10
# Forward selection from correlations ends, and begins again on F, where a variance or what is left of the node is so
# small, or the rounding so large a share of the least gain that counts, that rounding could decide.
UNSURE_VARIANCE, UNSURE_LEFT, UNSURE_SHARE = 1e-11, 1e-13, 0.05
# A direction of insertions is given up when what is lost exceeds the most that can still come by this factor: the most
# is an estimate, as selections further on start from other parents.
HOPE = 1.1

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


# --- the criterion: the same three functions are methods of vec2dag.scores.criteria.Criterion -----------------------


@_kernel
def link(residual, criterion):
    """What a criterion sums over nodes: ``ln r`` for bic-nv, ``r`` otherwise."""
    kind, _, offset, _ = criterion
    return math.log(residual + offset) if kind == BIC_NV else residual + offset


@_kernel
def unpriced(total, d, criterion):
    """The score without the price of edges, from the sum ``total`` of links."""
    return -math.log(total / d) if criterion[0] == BIC_EV else -total / d


@_kernel
def change(delta, total, d, criterion):
    """Change of :func:`unpriced` when the sum ``total`` of links grows by ``delta``."""
    if criterion[0] == BIC_EV:
        return -math.log(max(1.0 + delta / total, TINY))
    return -delta / d


@_kernel
def combine_batch(residuals, parents, criterion, out):
    """Scores ``out`` (B,) from mean squared residuals and numbers of parents, each (B, d)."""
    d = residuals.shape[1]
    for b in range(residuals.shape[0]):
        total, paid = 0.0, 0.0
        for i in range(d):
            total += link(residuals[b, i], criterion)
            paid += criterion[3][parents[b, i]]
        out[b] = unpriced(total, d, criterion) - criterion[1] * paid


# --- residuals of linear regressions --------------------------------------------------------------------------------


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
    s = 1.0 / math.sqrt(pivot) if pivot > ZERO_PIVOT else 0.0
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


@_kernel
def is_among(j, nodes, k):
    """Whether ``j`` is one of ``nodes[:k]``."""
    for a in range(k):  # noqa: SIM110 (numba compiles no generators here)
        if nodes[a] == j:
            return True
    return False


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
        gain = toggled[j] * toggled[j] / v[j] if v[j] > SMALL_VARIANCE else 0.0
        if j != i and (v[j] < ill or left - gain < ill) and not is_among(j, parents, k):
            parents[k] = j
            toggled[j] = ratio_from_factor(F, i, parents, k + 1, Q)
        else:
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
def toggle_links(A, stats, criterion, table):
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
        toggle_ratios(C, F, i, parents, k, ILL_FOR_SEARCH, W, v, inverse, Q, toggled, prefix)
        links[i] = link(scale[i] * prefix[k] if k > 0 else base[i], criterion)
        for j in range(d):
            alone = k == 1 and A[j, i]
            table[i, j] = link(base[i] if alone else scale[i] * toggled[j], criterion) - links[i]
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


@_step
def local_changes(t, order, A, stats, criterion, space, table, after):
    """What the regressions of the node at place ``t`` of ``order`` tell about the graph ``A``.

    Fills ``table[i, j]``, the change of the link of node i when ``j -> i`` is toggled, and ``after[i, q]``, its change
    when the parents of i are its first q neighbours in order of potential. Returns its link and its number of parents.
    """
    C, F, scale, base = stats
    W, v, inverse, Q, toggled, prefix, near = space
    d = C.shape[0]
    i = order[t]
    k = np.int64(0)
    for s in range(t):
        if A[order[s], i]:
            near[k] = order[s]
            k += 1
    toggle_ratios(C, F, i, near, k, ILL_FOR_GRADIENT, W, v, inverse, Q, toggled, prefix)
    own = link(scale[i] * prefix[k] if k > 0 else base[i], criterion)
    for j in range(d):
        table[i, j] = link(scale[i] * toggled[j], criterion) - own
    if k == 1:
        table[i, near[0]] = link(base[i], criterion) - own
    after[i, 0] = link(base[i], criterion) - own
    for a in range(1, k + 1):
        after[i, a] = link(scale[i] * prefix[a], criterion) - own
    m = k
    for s in range(t + 1, d):
        if A[i, order[s]]:
            near[m] = order[s]
            m += 1
    # The Cholesky factorisation of the parents goes on with the children, in order of potential.
    left = prefix[k]
    for a in range(k, m):
        u = near[a]
        pivot = 1.0
        for b in range(a):
            pivot -= W[b, u] * W[b, u]
        s = 1.0 / math.sqrt(pivot) if pivot > SMALL_VARIANCE else 0.0
        for c in range(a, m + 1):
            j = near[c] if c < m else i
            value = C[u, j]
            for b in range(a):
                value -= W[b, u] * W[b, j]
            W[a, j] = value * s
        left = max(left - W[a, i] * W[a, i], FLOOR)
        after[i, a + 1] = link(scale[i] * left, criterion) - own
    return own, k


@_step
def add_edge_gains(p, A, sizes, total, criterion, table, edge_gain):
    """Add ``R_on - R_off`` of every pair of nodes, ``sizes`` (d,) being the numbers of parents."""
    penalty, prices = criterion[1], criterion[3]
    d = p.shape[0]
    for i in range(d):
        for j in range(i + 1, d):
            parent, child = (i, j) if p[i] < p[j] else (j, i)
            gain = change(table[child, parent], total, d, criterion)
            k = sizes[child]
            if A[parent, child]:
                edge_gain[i, j] += -gain - penalty * (prices[k] - prices[k - 1])
            else:
                edge_gain[i, j] += gain - penalty * (prices[k + 1] - prices[k])


@_step
def add_node_gradient(i, order, p, A, sizes, mu, sigma, total, criterion, table, after, near, node_gradient):
    """Add the derivatives by ``mu_i`` and ``log sigma_i`` of the expected reward over the potential of ``i`` alone."""
    penalty, prices = criterion[1], criterion[3]
    d = p.shape[0]
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
    paid = prices[0] - prices[sizes[i]]
    for a in range(k):
        j = near[a]
        crossed += table[j, i]
        paid += prices[sizes[j] + 1] - prices[sizes[j]]
    before = change(crossed + after[i, 0], total, d, criterion) - penalty * paid
    for a in range(m):
        j = near[a]
        paid += prices[a + 1] - prices[a]
        if a >= k:
            crossed += table[j, i]
            paid += prices[sizes[j] - 1] - prices[sizes[j]]
        else:
            crossed -= table[j, i]
            paid -= prices[sizes[j] + 1] - prices[sizes[j]]
        value = change(crossed + after[i, a + 1], total, d, criterion) - penalty * paid
        x = (p[j] - mu[i]) / sigma[i]
        step = (value - before) * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
        node_gradient[0, i] += step / sigma[i]
        node_gradient[1, i] += step * x
        before = value


@_kernel
def conditional_batch(seeds, mu, sigma, bound, on, stats, criterion, edge_gain, node_gradient, rewards, edges):
    """Exact conditional advantages of every coordinate of every sampled graph.

    Adds ``R_on - R_off`` of the edge ``{i, j}`` (i < j) to ``edge_gain[i, j]``, and to ``node_gradient`` (2, d) the
    derivatives by ``mu_i`` and ``log sigma_i`` of the expected reward over the potential of node ``i`` alone:
    ``sum_q (R_q - R_{q-1}) phi(x_q) / sigma_i`` and ``sum_q (R_q - R_{q-1}) phi(x_q) x_q``, ``x_q`` the standardised
    potential of its q-th neighbour and ``R_q`` the reward with ``i`` placed after q of them.
    """
    d, r = stats[1].shape
    p = np.empty(d)
    A = np.empty((d, d), np.uint8)
    space = (
        np.empty((d + 1, d)), np.empty(d), np.empty((d, d)), np.empty((d + 2, r)), np.empty(d), np.empty(d + 1),
        np.empty(d + 1, np.int64),
    )  # fmt: skip
    table, after = np.empty((d, d)), np.empty((d, d + 1))
    order, sizes = np.arange(d), np.empty(d, np.int64)
    for g in range(seeds.shape[0]):
        sample_graph(seeds[g], mu, sigma, bound, on, p, A)
        sort_nodes(p, order)
        count = 0
        total, paid = 0.0, 0.0
        for t in range(d):
            own, k = local_changes(t, order, A, stats, criterion, space, table, after)
            sizes[order[t]] = k
            count += k
            paid += criterion[3][k]
            total += own
        rewards[g] = unpriced(total, d, criterion) - criterion[1] * paid
        edges[g] = count
        add_edge_gains(p, A, sizes, total, criterion, table, edge_gain)
        for t in range(d):
            add_node_gradient(
                order[t], order, p, A, sizes, mu, sigma, total, criterion, table, after, space[6], node_gradient
            )


# --- search over orders ----------------------------------------------------------------------------------------------


@_kernel
def worth_of_edges(criterion, total, d, worth):
    """By how much parent number k + 1 must lower the mean squared residual to be worth its price: ``worth`` (d,).

    For bic-nv the share ``1 - exp(-d price)`` of what is left. Under equal variances the amount follows the total of
    the residuals, ``ln((T - gain) / T) = -price``.
    """
    kind, penalty, _, prices = criterion
    for k in range(d):
        price = penalty * (prices[k + 1] - prices[k])
        if kind == BIC_NV:
            worth[k] = 1.0 - math.exp(-d * price)
        elif kind == LS:
            worth[k] = d * price
        else:
            worth[k] = total * (1.0 - math.exp(-price))


@_kernel
def least_gain(left, worth, scale, kind):
    """The least gain of a parent that is worth its price, as a residual ratio, of which ``left`` is left."""
    return worth * left if kind == BIC_NV else worth / scale


@_fast
def grow(C, i, allowed, worth, scale, kind, W, v, c, parents, changes):
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
        most = least_gain(left, worth[k], scale, kind)
        if rounding > UNSURE_SHARE * most:
            return np.int64(-1)
        best = np.int64(-1)
        for j in range(d):
            if allowed[j] and c[j] * c[j] > most * v[j]:
                if v[j] < UNSURE_VARIANCE:
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
        if left < UNSURE_LEFT:
            return np.int64(-1)
        k += 1


@_fast
def grow_from_factor(F, i, allowed, worth, scale, kind, Y, parents, changes):
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
        most = max(least_gain(left, worth[k], scale, kind), FLOOR)
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
def shrink(F, i, parents, k, worth, scale, kind, exact, W, inverse, Q):
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
        if least > least_gain(left + least, worth[k - 1], scale, kind):
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
def select(x, limit, toggled, toggle, problem, place, space, parents, changes):
    """Parents of ``x`` among the nodes placed before ``limit``, with ``toggled`` allowed or not by ``toggle``.

    ``problem`` is the statistics, the criterion and the worth of edges. Leaves the parents in ``parents``; returns the
    link of the residual and the number of parents.
    """
    stats, criterion, worth = problem
    C, F, scale, base = stats
    kind = criterion[0]
    W, v, c, inverse, Q, allowed = space
    for j in range(place.shape[0]):
        allowed[j] = place[j] < limit
    allowed[toggled] = toggle
    allowed[x] = 0
    k = grow(C, x, allowed, worth, scale[x], kind, W, v, c, parents, changes)
    exact = k < 0
    if exact:
        k = grow_from_factor(F, x, allowed, worth, scale[x], kind, Q, parents, changes)
    k, ratio = shrink(F, x, parents, k, worth, scale[x], kind, exact, W, inverse, Q)
    return link(scale[x] * ratio if k > 0 else base[x], criterion), k


@_step
def select_all(problem, state, space, parents):
    """Parents of every node among its predecessors; returns the sum of their links."""
    _, place, links, sizes, changes = state
    total = 0.0
    for i in range(place.shape[0]):
        links[i], sizes[i] = select(i, place[i], i, np.int64(0), problem, place, space, parents, changes[i])
        total += links[i]
    return total


@_step
def try_earlier(x, best, problem, state, space, parents, mine, total, price, full, crossing, rest):
    """The earlier place of node ``x`` that gains most, if any gains more than ``best``: that gain and that place.

    ``crossing`` (2, d) and ``rest`` (d + 1,) are scratch: what crossing a node changes in it does not depend on how far
    ``x`` goes, so that the most that further places can bring is known before the first step.
    """
    order, place, links, sizes, changes = state
    criterion = problem[1]
    penalty, prices = criterion[1], criterion[3]
    d = order.shape[0]
    t = place[x]
    target = t
    rest[0] = 0.0
    for q in range(t):
        y = order[q]
        crossing[0, y], crossing[1, y] = 0.0, 0.0
        if changes[y, x]:
            to, k = select(y, q, x, np.int64(1), problem, place, space, parents, mine)
            crossing[0, y], crossing[1, y] = to - links[y], prices[k] - prices[sizes[y]]
        rest[q + 1] = rest[q] + max(0.0, -crossing[0, y] - price * crossing[1, y])
    for j in range(d):
        mine[j] = changes[x, j]
    at, size = links[x], sizes[x]
    crossed, paid = 0.0, 0.0
    for q in range(t - 1, -1, -1):
        y = order[q]
        crossed += crossing[0, y]
        paid += crossing[1, y]
        if mine[y]:
            at, size = select(x, q, x, np.int64(0), problem, place, space, parents, mine)
        delta, more = crossed + at - links[x], paid + prices[size] - prices[sizes[x]]
        gain = change(delta, total, d, criterion) - penalty * more
        if gain > best:
            best = gain
            target = q
        if not full and delta + price * more > HOPE * rest[q]:
            break
    return best, target


@_step
def try_later(x, best, problem, state, space, parents, mine, total, price, full, scratch):
    """The later place of node ``x`` that gains most, if any gains more than ``best``: that gain and that place."""
    order, place, links, sizes, changes = state
    criterion = problem[1]
    penalty, prices = criterion[1], criterion[3]
    d = order.shape[0]
    t = place[x]
    target = t
    hope = 0.0
    if t < d - 1 and not full:
        # The most that x itself can gain: all other nodes before it.
        to, k = select(x, d, x, np.int64(0), problem, place, space, parents, scratch)
        hope = links[x] + price * prices[sizes[x]] - to - price * prices[k]
    for j in range(d):
        mine[j] = changes[x, j]
    at, size = links[x], sizes[x]
    crossed, paid = 0.0, 0.0
    for q in range(t + 1, d):
        y = order[q]
        if changes[y, x]:
            to, k = select(y, q, x, np.int64(0), problem, place, space, parents, scratch)
            crossed += to - links[y]
            paid += prices[k] - prices[sizes[y]]
            if not full and crossed + price * paid > HOPE * hope:
                break
        if mine[y]:
            at, size = select(x, q + 1, x, np.int64(0), problem, place, space, parents, mine)
        delta, more = crossed + at - links[x], paid + prices[size] - prices[sizes[x]]
        gain = change(delta, total, d, criterion) - penalty * more
        if gain > best:
            best = gain
            target = q
    return best, target


@_step
def move(x, target, total, problem, state, space, parents, dirty):
    """Put node ``x`` at place ``target`` and select anew where that matters; returns the new total of links.

    ``dirty`` (d,) marks the nodes whose places are worth trying again.
    """
    order, place, links, sizes, changes = state
    t = place[x]
    step = 1 if target > t else -1
    for q in range(t, target, step):
        order[q] = order[q + step]
        place[order[q]] = q
    order[target] = x
    place[x] = target
    for q in range(min(t, target), max(t, target) + 1):
        y = order[q]
        if y == x or changes[y, x]:
            to, k = select(y, q, y, np.int64(0), problem, place, space, parents, changes[y])
            total += to - links[y]
            links[y], sizes[y] = to, k
            for j in range(place.shape[0]):
                if changes[y, j] or changes[j, y]:
                    dirty[j] = 1
            dirty[y] = 1
    return total


@_kernel
def insertion_descent(order, stats, criterion, sweeps, full, floor, resolution, A):
    """Move single nodes of ``order`` (d,) to better places until none improves.

    Parents are chosen by :func:`select` among the predecessors; ``order`` and ``A`` (d, d) are overwritten.
    Moving node x past node y changes the candidates of x and of y only, and ``changes`` tells beforehand whether
    that matters, so most places cost nothing. Unless ``full``, a direction is given up when even the best that the
    places further on can bring does not make up for what has been lost. A move must gain more than ``resolution``
    and lead above the score ``floor``.
    Returns the score and the number of moves.
    """
    kind, penalty, _, prices = criterion
    d, r = stats[1].shape
    space = (
        np.empty((d + 1, d)), np.empty(d), np.empty(d), np.empty((d, d)), np.empty((d + 1, r)), np.empty(d, np.uint8),
    )  # fmt: skip
    worth = np.empty(d)
    problem = (stats, criterion, worth)
    place = np.empty(d, np.int64)
    links, sizes, changes = np.empty(d), np.zeros(d, np.int64), np.zeros((d, d), np.uint8)
    state = (order, place, links, sizes, changes)
    parents = np.empty(d + 1, np.int64)
    mine, scratch = np.empty(d, np.uint8), np.empty(d, np.uint8)
    crossing, rest = np.empty((2, d)), np.empty(d + 1)
    # Nodes for which something has changed since their places were last tried; only the last sweep tries all.
    dirty = np.ones(d, np.uint8)
    for t in range(d):
        place[order[t]] = t
    total = 0.0
    for i in range(d):
        total += link(stats[3][i], criterion)
    score = -np.inf
    sweep = 0
    moves = 0
    while True:
        # Under equal variances the worth of an edge follows the total; the first, of the variances, only starts it.
        for _ in range(4 if kind == BIC_EV and sweep == 0 else 1):
            worth_of_edges(criterion, total, d, worth)
            if kind == BIC_EV or sweep == 0:
                total = select_all(problem, state, space, parents)
        paid = 0.0
        for i in range(d):
            paid += prices[sizes[i]]
        score = unpriced(total, d, criterion) - penalty * paid
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
            least = resolution + max(0.0, floor - score)
            best, target = try_earlier(
                x, least, problem, state, space, parents, mine, total, price, full, crossing, rest
            )
            gain, later = try_later(x, best, problem, state, space, parents, mine, total, price, full, scratch)
            if later != t:
                best, target = gain, later
            if target == t:
                continue
            moved = True
            moves += 1
            score += best
            total = move(x, target, total, problem, state, space, parents, dirty)
        if not moved:
            if not skipped:
                break
            for x in range(d):
                dirty[x] = 1
    for i in range(d):
        for j in range(d):
            A[j, i] = 0
        _, k = select(i, place[i], i, np.int64(0), problem, place, space, parents, scratch)
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
