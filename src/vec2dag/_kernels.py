"""The compiled loops: plain functions of arrays, without Python objects and without global state.

Every kernel releases the GIL; parallelism over graphs comes from outside (:func:`vec2dag._parallel.run_chunks`).
Indices follow the package: ``A[b, i, j] = 1`` means ``i -> j`` in graph ``b``.

The linear statistics ``stats`` are six arrays, made by :class:`vec2dag.scores.linear.LinearOnTable` and, where nodes
are regressed on different rows of a table, by :class:`vec2dag.scores.regimes.Regimes`. Nodes with the same rows are a
group ``g``; without interventions there is one.

``C`` (groups, d, d)
    second moments scaled to a unit diagonal (correlations, when the data are centred);
``F`` (groups, d, r)
    row ``j`` is column ``j`` of the triangular factor of the same scaled data, so ``C = F F'`` up to rounding;
``scale`` (d,)
    what a residual ratio is multiplied by to become a mean squared residual;
``base`` (d,)
    the mean squared residual of a node without parents;
``group`` (d,)
    whose statistics the regressions of a node are from;
``weight`` (groups,)
    what the link of a node counts, by its rows: 1 on average over the nodes.

Where costs are not those of linear regressions, searches over orders get a *costing* in place of ``stats``, made by
:meth:`vec2dag.scores.regression.Regression.costing`: three tuples, the table, a memory of costs, and scratch.
:func:`prepare` and :func:`cost_with` are what kinds of tables differ in.

A ``criterion`` is four numbers and arrays, made by :meth:`vec2dag.scores.criteria.Criterion.compiled`:

``kind``
    one of the four codes below;
``penalty``
    the price of one edge, in the units of the score (divided by n d);
``offset``
    added to every mean squared residual;
``prices`` (d + 1,)
    what k = 0, ..., d - 1 parents of a node cost, in edges: k itself for BIC. (The last is there to be read, not used.)

What is ``known`` are four arrays, of :class:`vec2dag.knowledge.Constraints`:

``required``, ``allowed`` (d, d)
    edges that every graph has, and that a graph may have;
``before`` (d, d)
    what comes before what in every order, transitive;
``limits`` (d,)
    the most parents that each node may have.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ._compiled import compiled

# Compilation is part of the user's time. It is kept short by plain loops instead of array functions, by the
# error model of numpy (no checks for division by zero) and by np.int64(0) where a literal would make numba compile
# the functions called with it a second time. All kernels stand in one file because the cache of a kernel is
# renewed when its own file changes, and only then.
_kernel: Any = compiled(nogil=True, error_model="numpy")
# A named step of one kernel: becomes part of it before LLVM sees it, which would otherwise compile it once alone and
# once more inside.
_step: Any = compiled(cache=False, nogil=True, error_model="numpy", inline="always")
# Sums of products may be reordered and fused; NaN and infinity keep their meaning.
_fast: Any = compiled(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
# For numbers that are known to be finite.
_finite: Any = compiled(nogil=True, error_model="numpy", fastmath=True)

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
# Places are not tried where even so many times the gains and such a share of the losses that are known for single nodes
# would not make up for each other: in a first descent, and after a perturbation, of which there are many.
GAINS_TIMES, SHARE_OF_LOSSES = (2.0, 1.3), (0.5, 0.8)
# Relative differences that rounding could make: ties are resolved by index. A parent is exchanged for another that
# explains more by this share of what is left, and of what both explain. Differences of scores that are none.
TIE, EXCHANGE, ROUNDED, SAME_GAIN = 1e-9, 1e-7, 1e-12, 1e-11
# The least share of a variance that one more parent is thought to leave, and the least that a gain is taken for.
ALMOST_NOTHING, LEAST_NET = 1e-12, 1e-15
# Differences of costs, in units of links, that are none; the pivot of a correlation matrix below which a column depends
# on others; what sets of parents cost that are too many for the rows.
SAME_COST, LEAST_PIVOT, MOST_COST = 1e-12, 1e-10, 1e4
# Nodes that a perturbation moves.
PERTURBED = 3
# Places of the numbers that a search over orders keeps from call to call: what it has done, and what is left to do.
SELECTIONS, ROUNDS, NODE, SWEEPS, TURN, MOVED, SKIPPED, RESTING, STEPS, STALE, MOVES = range(11)
TOTAL, SCORE, BEST, PRICE = range(4)

# COSTS: of what a costing says in place of residuals, which may be below 0.
BIC_EV, BIC_NV, LS, COSTS = 0, 1, 2, 3
# Scores of counts: with a Dirichlet prior integrated out, or the likelihood with a price of parameters.
DIRICHLET, MULTINOMIAL = 0.0, 1.0


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
def link(residual, weight, criterion):
    """What a criterion sums over nodes: ``w ln r`` for bic-nv, ``w r`` otherwise, with the weight of the node."""
    kind, _, offset, _ = criterion
    return weight * (math.log(residual + offset) if kind == BIC_NV else residual + offset)


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
def combine_batch(residuals, parents, weight, criterion, out):
    """Scores ``out`` (B,) from mean squared residuals and numbers of parents, each (B, d), and weights (d,)."""
    d = residuals.shape[1]
    for b in range(residuals.shape[0]):
        total, paid = 0.0, 0.0
        for i in range(d):
            total += link(residuals[b, i], weight[i], criterion)
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
    C, F, scale, base, group, _ = stats
    _, d, r = F.shape
    L = np.empty((d + 1, d))
    Q = np.empty((d + 1, r))
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
            g = group[j]
            out[b, j] = scale[j] * residual_ratio(C[g], F[g], j, parents, k, L, Q) if k > 0 else base[j]


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
    C, F, scale, base, group, weight = stats
    _, d, r = F.shape
    W = np.empty((d + 1, d))
    inverse = np.empty((d, d))
    Q = np.empty((d + 2, r))
    v, toggled, prefix = np.empty(d), np.empty(d), np.empty(d + 1)
    parents = np.empty(d + 1, np.int64)
    links = np.empty(d)
    for i in range(d):
        k = np.int64(0)
        for j in range(d):
            if A[j, i]:
                parents[k] = j
                k += 1
        g = group[i]
        toggle_ratios(C[g], F[g], i, parents, k, ILL_FOR_SEARCH, W, v, inverse, Q, toggled, prefix)
        links[i] = link(scale[i] * prefix[k] if k > 0 else base[i], weight[g], criterion)
        for j in range(d):
            alone = k == 1 and A[j, i]
            table[i, j] = link(base[i] if alone else scale[i] * toggled[j], weight[g], criterion) - links[i]
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
def order_with_precedence(p, before, order):
    """Repeatedly the node of least potential ``p`` (d,) whose predecessors are placed; ties by index.

    ``before`` (d, d) is a strict partial order.
    """
    d = before.shape[0]
    waiting = np.zeros(d, np.int64)
    for i in range(d):
        for j in range(d):
            waiting[j] += before[i, j]
    for t in range(d):
        node = np.int64(-1)
        for j in range(d):
            if waiting[j] == 0 and (node < 0 or p[j] < p[node]):
                node = j
        order[t] = node
        waiting[node] = -1
        for j in range(d):
            waiting[j] -= before[node, j]


@_kernel
def sample_graph(seed, mu, sigma, bound, on, known, restricted, bits, p, order, rank, A):
    """Draw ``z`` from the policy in the stream ``seed``: potentials ``p`` (d,) and the graph ``A`` (d, d).

    Only the signs of the edge potentials matter, so edges are drawn directly: ``on[i, j]`` (i < j) is the
    probability of a positive potential, and ``bits`` (d, d) becomes 1 where it is. ``order`` (d,) becomes the order of
    the nodes, and ``rank`` (d,) increases along it. If ``restricted``, all are as what is known has it; of too many
    parents the most probable stay.
    """
    d = p.shape[0]
    state = seed
    for i in range(0, d, 2):
        low, state = random_bits(state)
        more, state = random_bits(state)
        radius = math.sqrt(-2.0 * math.log((np.float64(low >> np.uint64(11)) + 0.5) * 2.0**-53))
        angle = 2.0 * math.pi * np.float64(more >> np.uint64(11)) * 2.0**-53
        p[i] = mu[i] + sigma[i] * radius * math.cos(angle)
        if i + 1 < d:
            p[i + 1] = mu[i + 1] + sigma[i + 1] * radius * math.sin(angle)
    for i in range(d):
        p[i] = min(max(p[i], -bound), bound)
        rank[i] = p[i]
    if restricted:
        order_with_precedence(p, known[2], order)
        for t in range(d):
            rank[order[t]] = t
    else:
        sort_nodes(p, order)
    for i in range(d):
        A[i, i] = 0
        bits[i, i] = 0
        for j in range(i + 1, d):
            low, state = random_bits(state)
            edge = np.float64(low >> np.uint64(11)) * 2.0**-53 < on[i, j]
            # Potentials that the bound has made equal leave both without an edge.
            edge = edge and rank[i] != rank[j]
            bits[i, j] = edge
            bits[j, i] = edge
            A[i, j] = edge and rank[i] < rank[j]
            A[j, i] = edge and rank[j] < rank[i]
    if restricted:
        restrict(on, known, A)


@_kernel
def restrict(on, known, A):
    """Make a graph ``A`` (d, d) along an order that respects what is known one that is permitted."""
    required, allowed, _, limits = known
    d = A.shape[0]
    for j in range(d):
        count = np.int64(0)
        for i in range(d):
            A[i, j] = required[i, j] or (A[i, j] and allowed[i, j])
            count += A[i, j]
        while count > limits[j]:
            weakest, least = np.int64(-1), np.inf
            for i in range(d):
                if A[i, j] and not required[i, j] and on[min(i, j), max(i, j)] < least:
                    weakest, least = i, on[min(i, j), max(i, j)]
            A[weakest, j] = 0
            count -= 1


@_step
def local_changes(t, order, A, bits, stats, criterion, allowed, restricted, space, table, after):
    """What the regressions of the node at place ``t`` of ``order`` tell about the graph ``A``.

    Fills ``table[i, j]``, the change of the link of node i when ``j -> i`` is toggled, and ``after[i, q]``, its change
    when the parents of i are the first q of its neighbours, in order of potential, that may be parents. Returns its
    link and its number of parents.
    """
    i = order[t]
    g, scale, base = stats[4][i], stats[2][i], stats[3][i]
    C, F, weight = stats[0][g], stats[1][g], stats[5][g]
    W, v, inverse, Q, toggled, prefix, near = space
    d = C.shape[0]
    k = np.int64(0)
    for s in range(t):
        if A[order[s], i]:
            near[k] = order[s]
            k += 1
    toggle_ratios(C, F, i, near, k, ILL_FOR_GRADIENT, W, v, inverse, Q, toggled, prefix)
    own = link(scale * prefix[k] if k > 0 else base, weight, criterion)
    for j in range(d):
        table[i, j] = link(scale * toggled[j], weight, criterion) - own
    if k == 1:
        table[i, near[0]] = link(base, weight, criterion) - own
    after[i, 0] = link(base, weight, criterion) - own
    for a in range(1, k + 1):
        after[i, a] = link(scale * prefix[a], weight, criterion) - own
    m = k
    for s in range(t + 1, d):
        if bits[i, order[s]] and (not restricted or allowed[order[s], i]):
            near[m] = order[s]
            m += 1
    # The Cholesky factorisation of the parents goes on with those that would be next, in order of potential.
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
        after[i, a + 1] = link(scale * left, weight, criterion) - own
    return own, k


@_step
def add_edge_gains(rank, A, sizes, total, criterion, known, restricted, table, edge_gain):
    """Add ``R_on - R_off`` of every pair of nodes, ``sizes`` (d,) being the numbers of parents.

    Nothing for edges that are not allowed, that are required, and for which there is no room.
    """
    penalty, prices = criterion[1], criterion[3]
    required, allowed, _, limits = known
    d = rank.shape[0]
    for i in range(d):
        for j in range(i + 1, d):
            parent, child = (i, j) if rank[i] < rank[j] else (j, i)
            if restricted and (required[parent, child] or not allowed[parent, child]):
                continue
            gain = change(table[child, parent], total, d, criterion)
            k = sizes[child]
            if A[parent, child]:
                edge_gain[i, j] += -gain - penalty * (prices[k] - prices[k - 1])
            elif k < limits[child]:
                edge_gain[i, j] += gain - penalty * (prices[k + 1] - prices[k])


@_step
def add_node_gradient(
    t, order, p, A, bits, sizes, mu, sigma, total, criterion, known, restricted, table, after, node_gradient
):  # fmt: skip
    """Add the derivatives by ``mu_i`` and ``log sigma_i`` of the expected reward over the potential of node i alone.

    It is the one at place ``t``, and moves between the nearest nodes that must come before and after it. (Nodes that
    have to come after it would move with it; that they are taken to stay is an approximation.)
    """
    penalty, prices = criterion[1], criterion[3]
    _, allowed, before, limits = known
    d = p.shape[0]
    i = order[t]
    first, last = 0, d - 1
    if restricted:
        first, last = t, t
        while first > 0 and not before[order[first - 1], i]:
            first -= 1
        while last < d - 1 and not before[i, order[last + 1]]:
            last += 1
    k = np.int64(0)
    for s in range(first):
        k += A[order[s], i]
    # Crossing a parent makes i its parent, crossing a child takes i from its parents: the same toggle.
    crossed = 0.0
    paid = prices[k] - prices[sizes[i]]
    for s in range(first, t):
        j = order[s]
        if bits[i, j] and allowed[i, j] and sizes[j] < limits[j]:
            crossed += table[j, i]
            paid += prices[sizes[j] + 1] - prices[sizes[j]]
    value = change(crossed + after[i, k], total, d, criterion) - penalty * paid
    for s in range(first, last + 1):
        j = order[s]
        if not bits[i, j]:
            continue
        if A[j, i] or (s > t and allowed[j, i] and k < limits[i]):
            paid += prices[k + 1] - prices[k]
            k += 1
        if s > t and A[i, j]:
            crossed += table[j, i]
            paid += prices[sizes[j] - 1] - prices[sizes[j]]
        elif s < t and allowed[i, j] and sizes[j] < limits[j]:
            crossed -= table[j, i]
            paid -= prices[sizes[j] + 1] - prices[sizes[j]]
        earlier = value
        value = change(crossed + after[i, k], total, d, criterion) - penalty * paid
        x = (p[j] - mu[i]) / sigma[i]
        step = (value - earlier) * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
        node_gradient[0, i] += step / sigma[i]
        node_gradient[1, i] += step * x


@_kernel
def conditional_batch(
    seeds, mu, sigma, bound, on, known, restricted, stats, criterion, edge_gain, node_gradient, rewards, edges
):  # fmt: skip
    """Exact conditional advantages of every coordinate of every sampled graph.

    Adds ``R_on - R_off`` of the edge ``{i, j}`` (i < j) to ``edge_gain[i, j]``, and to ``node_gradient`` (2, d) the
    derivatives by ``mu_i`` and ``log sigma_i`` of the expected reward over the potential of node ``i`` alone:
    ``sum_q (R_q - R_{q-1}) phi(x_q) / sigma_i`` and ``sum_q (R_q - R_{q-1}) phi(x_q) x_q``, ``x_q`` the standardised
    potential of its q-th neighbour and ``R_q`` the reward with ``i`` placed after q of them.
    """
    _, d, r = stats[1].shape
    p, rank = np.empty(d), np.empty(d)
    A, bits = np.empty((d, d), np.uint8), np.empty((d, d), np.uint8)
    space = (
        np.empty((d + 1, d)), np.empty(d), np.empty((d, d)), np.empty((d + 2, r)), np.empty(d), np.empty(d + 1),
        np.empty(d + 1, np.int64),
    )  # fmt: skip
    table, after = np.empty((d, d)), np.empty((d, d + 1))
    order, sizes = np.arange(d), np.empty(d, np.int64)
    for g in range(seeds.shape[0]):
        sample_graph(seeds[g], mu, sigma, bound, on, known, restricted, bits, p, order, rank, A)
        count = 0
        total, paid = 0.0, 0.0
        for t in range(d):
            own, k = local_changes(t, order, A, bits, stats, criterion, known[1], restricted, space, table, after)
            sizes[order[t]] = k
            count += k
            paid += criterion[3][k]
            total += own
        rewards[g] = unpriced(total, d, criterion) - criterion[1] * paid
        edges[g] = count
        add_edge_gains(rank, A, sizes, total, criterion, known, restricted, table, edge_gain)
        for t in range(d):
            add_node_gradient(
                t, order, p, A, bits, sizes, mu, sigma, total, criterion, known, restricted, table, after, node_gradient
            )  # fmt: skip


# --- search over orders ----------------------------------------------------------------------------------------------


@_kernel
def worth_of_edges(criterion, total, d, weight, worth):
    """By how much parent number k + 1 must lower the link to be worth its price: ``worth[g, k]`` for the nodes of g.

    For bic-nv the share ``1 - exp(-d price / weight)`` of what is left of the variance. Under equal variances the
    amount follows the total of the links, ``ln((T - gain) / T) = -price``.
    """
    kind, penalty, _, prices = criterion
    for g in range(weight.shape[0]):
        for k in range(d):
            price = penalty * (prices[k + 1] - prices[k])
            if kind == BIC_NV:
                worth[g, k] = 1.0 - math.exp(-d * price / max(weight[g], TINY))
            elif kind != BIC_EV:
                worth[g, k] = d * price
            else:
                worth[g, k] = total * (1.0 - math.exp(-price))


@_kernel
def least_gain(left, worth, scale, kind):
    """The least gain of a parent that is worth its price, as a residual ratio, of which ``left`` is left."""
    return worth * left if kind == BIC_NV else worth / scale


@_finite
def largest(values):
    """The largest of non-negative numbers."""
    most = 0.0
    for j in range(values.shape[0]):
        most = max(most, values[j])
    return most


@_kernel
def first_near(values, most):
    """The first place of a value that cannot be told from ``most``: ties are resolved by index, not by rounding."""
    least = most * (1.0 - TIE)
    for j in range(values.shape[0]):
        if values[j] >= least:
            return np.int64(j)
    return np.int64(0)


@_kernel
def drop(nodes, k, a):
    """Remove place ``a`` of ``nodes[:k]``, and keep the order of the others."""
    for b in range(a, k - 1):
        nodes[b] = nodes[b + 1]


@_fast
def add_parent_on_factor(F, x, u, k, W, v, c, Y):
    """:func:`add_parent` on the factor: rows of ``Y`` (d + 1, r) are residuals of the variables given the parents.

    The last row is scratch. ``v`` and ``c`` (d,) become the variances and the covariances with ``x`` that are left.
    """
    d, r = F.shape
    # A parent that depends on the others, and has to stay, adds nothing.
    scale = 1.0 / math.sqrt(v[u]) if v[u] > DEPENDENT else 0.0
    direction, own = Y[d], Y[x]
    for t in range(r):
        direction[t] = Y[u, t] * scale
    for j in range(d):
        row = Y[j]
        dot = 0.0
        for t in range(r):
            dot += direction[t] * row[t]
        W[k, j] = dot
        left = 0.0
        for t in range(r):
            row[t] -= dot * direction[t]
            left += row[t] * row[t]
        v[j] = left
    for j in range(d):
        row = Y[j]
        dot = 0.0
        for t in range(r):
            dot += row[t] * own[t]
        c[j] = dot


@_step
def removal_costs(x, k, parents, required, W, inverse, beta, precision):
    """What each of ``parents[:k]`` explains beyond the others is ``beta^2 / precision``; the place of the least.

    The ``required`` ones, by a row of (d, d) for every node, stay; infinity if there are no others.
    """
    invert_triangle(W, parents, k, inverse)
    cheapest, least = np.int64(0), np.inf
    for a in range(k):
        if required[x, parents[a]]:
            continue
        beta[a], precision[a] = 0.0, 0.0
        for b in range(a, k):
            beta[a] += inverse[b, a] * W[b, x]
            precision[a] += inverse[b, a] * inverse[b, a]
        cost = beta[a] * beta[a] / precision[a]
        if cost < least * (1.0 - TIE):
            least, cheapest = cost, a
    return least, cheapest


@_step
def exchange_gains(a, k, W, v, c, inverse, beta, precision, row):
    """What each variable explains (d,) once parent number ``a`` has left; not meaningful for parents."""
    d = v.shape[0]
    for j in range(d):
        row[j] = 0.0
    for b in range(a, k):
        s, other = inverse[b, a], W[b]
        for j in range(d):
            row[j] += s * other[j]
    s, q = beta[a] / precision[a], 1.0 / precision[a]
    for j in range(d):
        covariance = c[j] + s * row[j]
        row[j] = covariance * covariance / max(v[j] + row[j] * row[j] * q, SMALL_VARIANCE)


@_kernel
def net_gain(more, left, worth, scale, weight, kind):
    """What is gained, in units of links and at least a little, when ``left`` changes by ``more`` for a price."""
    if kind == BIC_NV:
        return max(weight * (math.log(1.0 - worth) - math.log(max(1.0 + more / left, ALMOST_NOTHING))), LEAST_NET)
    return max(-more * scale - worth, LEAST_NET)


@_fast
def climb_parents(problem, x, allowed, exact, parents, k, gains, space):
    """Improve ``parents[:k]`` of ``x`` by single additions, removals and exchanges until none is worth it.

    Parents come from ``allowed`` (d,) only, and required ones, which are there, stay. ``gains`` (d,) becomes what the
    others have to do with the set: negative for parents, positive for variables that are not allowed here and would be
    taken if they were (and are not forbidden everywhere), zero for those that do not matter; the number is what is lost
    or gained if only that changes, in units of links and with the price. With
    ``exact`` everything is computed on the factor, otherwise from correlations. Returns the number of parents and what
    they leave of the variance; -1 and 1 where rounding could decide.
    """
    stats, criterion, worths, _, limits, (required, permitted, _, _), _ = problem
    g = stats[4][x]
    C, F, weight, worth = stats[0][g], stats[1][g], stats[5][g], worths[g]
    W, inverse, Y, reals, bytes_, _ = space
    v, c, row, alone, beta, precision = reals[0], reals[1], reals[2], reals[3], reals[4], reals[5]
    taken = bytes_[0]
    # What a residual ratio is in units of links, where these are no logarithms.
    kind, scale = criterion[0], stats[2][x] * weight
    d, r = F.shape
    for j in range(d):
        taken[j] = 0
    taken[x] = 1
    for a in range(k):
        taken[parents[a]] = 1
    built = np.int64(-1)
    rounding = 0.0
    # Where rounding decides a set could come back.
    turns = 4 * d + 8
    while True:
        turns -= 1
        # The regression on the parents, from the last one that is still in place.
        if built < 0:
            built = np.int64(0)
            rounding = 2.0**-50
            for j in range(d):
                v[j] = 1.0
                c[j] = C[x, j]
                if exact:
                    for t in range(r):
                        Y[j, t] = F[j, t]
        while built < k:
            u = parents[built]
            if exact:
                if v[u] <= DEPENDENT and not required[x, u]:
                    taken[u] = 0
                    drop(parents, k, built)
                    k -= 1
                    continue
                add_parent_on_factor(F, x, u, built, W, v, c, Y)
            else:
                if v[u] < UNSURE_VARIANCE:
                    return np.int64(-1), 1.0
                # Dividing by the pivot magnifies the rounding of what is left of x.
                rounding += 2.0**-51 * (1.0 + v[x] / v[u])
                add_parent(C, u, built, W, v)
                s, last = W[built, x], W[built]
                for j in range(d):
                    c[j] -= s * last[j]
            v[u] = 1.0
            c[u] = 0.0
            built += 1
        left = max(v[x], FLOOR)
        threshold = least_gain(left, worth[k], scale, kind)
        if not exact and (left < UNSURE_LEFT or rounding > UNSURE_SHARE * threshold):
            return np.int64(-1), 1.0
        # The best addition.
        for j in range(d):
            alone[j] = c[j] * c[j] / max(v[j], TINY)
        if exact:
            for j in range(d):
                alone[j] = alone[j] if v[j] > DEPENDENT else 0.0
        alone[x] = 0.0
        for j in range(d):
            row[j] = alone[j] if allowed[j] else 0.0
        most = largest(row)
        room = k < limits[x] and left > FLOOR
        if room and most > max(threshold, 0.0) and turns > 0:
            u = first_near(row, most)
            if not exact and v[u] < UNSURE_VARIANCE:
                return np.int64(-1), 1.0
            parents[k] = u
            taken[u] = 1
            k += 1
            continue
        # The cheapest removal.
        least, a = removal_costs(x, k, parents, required, W, inverse, beta, precision)
        if least < np.inf and turns > 0 and least <= least_gain(left + least, worth[k - 1], scale, kind):
            taken[parents[a]] = 0
            drop(parents, k, a)
            k -= 1
            built = np.int64(-1)
            continue
        # The best exchange; and what is not allowed, but would be exchanged or added if it were.
        for j in range(d):
            gains[j] = 0.0
            if room and not allowed[j] and permitted[x, j] and alone[j] > threshold:
                gains[j] = net_gain(-alone[j], left, worth[k], scale, weight, kind)
        leaves, u = np.int64(-1), np.int64(-1)
        most = 0.0
        # A node that its parents determine has nothing left that others could explain better.
        for a in range(k if left > FLOOR else 0):
            if required[x, parents[a]]:
                continue
            exchange_gains(a, k, W, v, c, inverse, beta, precision, row)
            cost = beta[a] * beta[a] / precision[a]
            least = EXCHANGE * left + ROUNDED * cost
            for j in range(d):
                if taken[j]:
                    row[j] = 0.0
                elif not allowed[j]:
                    if row[j] > cost + least and permitted[x, j]:
                        gains[j] = max(gains[j], net_gain(cost - row[j], left, 0.0, scale, weight, kind))
                    row[j] = 0.0
            best = largest(row) - cost
            if best > max(most + TIE * left, least):
                most = best
                leaves, u = a, first_near(row, best + cost)
        if leaves < 0 or turns <= 0:
            break
        taken[parents[leaves]] = 0
        taken[u] = 1
        drop(parents, k, leaves)
        parents[k - 1] = u
        built = np.int64(-1)
    for a in range(k):
        if required[x, parents[a]]:
            # Nobody asks what it is worth, but it matters.
            gains[parents[a]] = -LEAST_NET
        else:
            cost = beta[a] * beta[a] / precision[a]
            gains[parents[a]] = -net_gain(-cost, left + cost, worth[k - 1], scale, weight, kind)
    return k, left


@_kernel
def climb_linear(problem, x, allowed, parents, m, gains, space):
    """The link of ``x`` and the number of its parents after :func:`climb_parents`, on the factor where needed."""
    (_, _, scale, base, group, weight), criterion = problem[0], problem[1]
    start = space[5][0]
    for a in range(m):
        start[a] = parents[a]
    found, ratio = climb_parents(problem, x, allowed, np.int64(0), parents, m, gains, space)
    if found < 0:
        for a in range(m):
            parents[a] = start[a]
        found, ratio = climb_parents(problem, x, allowed, np.int64(1), parents, m, gains, space)
    return link(scale[x] * ratio if found > 0 else base[x], weight[group[x]], criterion), found


# --- costs that are computed one by one, and remembered ---------------------------------------------------------------


@_kernel
def relabel(keys, most, slots, held):
    """Number the different ``keys`` (m,), which are from 0 to ``most`` - 1, in the order of their appearance, in place.

    Returns how many there are. ``slots`` and ``held`` are scratch, of a power of two above 2 m entries.
    """
    size = slots.shape[0]
    found = np.int64(0)
    if most <= size:
        for k in range(most):
            slots[k] = -1
        for t in range(keys.shape[0]):
            key = keys[t]
            if slots[key] < 0:
                slots[key] = found
                found += 1
            keys[t] = slots[key]
        return found
    for k in range(size):
        slots[k] = -1
    for t in range(keys.shape[0]):
        key = keys[t]
        # Fibonacci hashing: the high bits of a product with 2^64 / golden ratio.
        k = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)
        while slots[k] >= 0 and held[k] != key:
            k = (k + 1) & (size - 1)
        if slots[k] < 0:
            slots[k] = found
            held[k] = key
            found += 1
        keys[t] = slots[k]
    return found


@_kernel
def join_codes(ids, count, column, levels, slots, held):
    """Number the combinations of ``ids`` (m,), of which there are ``count``, and codes (m,); returns how many occur."""
    for t in range(ids.shape[0]):
        ids[t] = ids[t] * levels + column[t]
    return relabel(ids, count * levels, slots, held)


@_kernel
def sum_over_counts(counts, size, kind, alpha):
    """``sum ln G(N + alpha) - ln G(alpha)``, or ``sum N ln N``, over the counts that are not zero."""
    total = 0.0
    if kind == MULTINOMIAL:
        for k in range(size):
            if counts[k] > 0.0:
                total += counts[k] * math.log(counts[k])
        return total
    occupied = np.int64(0)
    for k in range(size):
        if counts[k] > 0.0:
            occupied += 1
            total += math.lgamma(counts[k] + alpha)
    return total - occupied * math.lgamma(alpha)


@_kernel
def prepare_counts(costing, parents, k, leaves):
    """Number the configurations of ``parents[:k]`` without number ``leaves``."""
    (codes, _, levels, _), _, (ids, _, _, slots, held, sizes, _) = costing
    for t in range(ids.shape[0]):
        ids[t] = 0
    count = np.int64(1)
    sizes[1] = 1.0
    for a in range(k):
        if a != leaves:
            p = parents[a]
            count = join_codes(ids, count, codes[p], levels[p], slots, held)
            sizes[1] *= levels[p]
    sizes[0] = count


@_kernel
def cost_with_counts(costing, x, joins):
    """``-2/n`` times the local score of ``x`` given the parents that were prepared, and ``joins`` unless it is -1."""
    (codes, weights, levels, settings), _, (ids, cells, counts, slots, held, sizes, _) = costing
    m, capacity = ids.shape[0], counts.shape[0]
    r, count = levels[x], np.int64(sizes[0])
    own = codes[x]
    # Configurations that there could be, occurring or not.
    configurations = sizes[1]
    if joins >= 0:
        configurations = min(configurations * levels[joins], 1e300)
    kind, alpha, n = settings[0], settings[1], settings[2]
    if joins >= 0 and count * levels[joins] * r <= capacity:
        other, width = codes[joins], levels[joins]
        count *= width
        for k in range(count * r):
            counts[k] = 0.0
        for t in range(m):
            counts[(ids[t] * width + other[t]) * r + own[t]] += weights[t]
        size = count * r
    else:
        for t in range(m):
            cells[t] = ids[t]
        if joins >= 0:
            count = join_codes(cells, count, codes[joins], levels[joins], slots, held)
        size = count * r
        if size > capacity:
            # Sums over configurations and over cells are apart, so that each needs its own numbers only.
            for k in range(count):
                counts[k] = 0.0
            for t in range(m):
                counts[cells[t]] += weights[t]
            given = sum_over_counts(counts, count, kind, max(alpha / configurations, TINY))
            size = join_codes(cells, count, own, r, slots, held)
            for k in range(size):
                counts[k] = 0.0
            for t in range(m):
                counts[cells[t]] += weights[t]
            score = sum_over_counts(counts, size, kind, max(alpha / (configurations * r), TINY)) - given
            return as_cost(score, kind, alpha, n, r, configurations)
        for k in range(size):
            counts[k] = 0.0
        for t in range(m):
            counts[cells[t] * r + own[t]] += weights[t]
    score = sum_over_counts(counts, size, kind, max(alpha / (configurations * r), TINY))
    for k in range(count):
        total = 0.0
        for level in range(r):
            total += counts[k * r + level]
        counts[k] = total
    score -= sum_over_counts(counts, count, kind, max(alpha / configurations, TINY))
    return as_cost(score, kind, alpha, n, r, configurations)


@_kernel
def as_cost(score, kind, alpha, n, r, configurations):
    """``-2/n`` times a log score, with the price of parameters if it is a likelihood."""
    cost = -2.0 * score / n
    if kind == MULTINOMIAL:
        cost += alpha * configurations * (r - 1.0) * math.log(n) / n
    return min(cost, MOST_COST)


@_kernel
def prepare_blocks(costing, parents, k, leaves):
    """Factorise the correlations of the columns of ``parents[:k]`` without number ``leaves``."""
    (C, starts, _, _), _, (W, _, sizes, _) = costing
    width = C.shape[0]
    rank = np.int64(0)
    sizes[1] = 0.0
    for a in range(k):
        if a == leaves:
            continue
        for u in range(starts[parents[a]], starts[parents[a] + 1]):
            sizes[1] += 1.0
            row = W[rank]
            for j in range(width):
                row[j] = C[u, j]
            for b in range(rank):
                s, other = W[b, u], W[b]
                for j in range(width):
                    row[j] -= s * other[j]
            pivot = row[u]
            # A column that depends on those before adds nothing.
            if pivot > LEAST_PIVOT:
                s = 1.0 / math.sqrt(pivot)
                for j in range(width):
                    row[j] *= s
                rank += 1
    sizes[0] = rank


@_kernel
def cost_with_blocks(costing, x, joins):
    """The log determinant of what is left of the columns of ``x``, and the price of the coefficients."""
    (C, starts, logs, settings), _, (W, block, sizes, _) = costing
    rank, given = np.int64(sizes[0]), sizes[1]
    before = np.int64(0)
    if joins >= 0:
        before = starts[joins + 1] - starts[joins]
    own = starts[x + 1] - starts[x]
    size = before + own
    cost = logs[x]
    for a in range(size):
        u = starts[joins] + a if a < before else starts[x] + a - before
        for b in range(a + 1):
            v = starts[joins] + b if b < before else starts[x] + b - before
            value = C[u, v]
            for t in range(rank):
                value -= W[t, u] * W[t, v]
            for t in range(b):
                value -= block[a, t] * block[b, t]
            if b < a:
                block[a, b] = value / block[b, b] if block[b, b] > 0.0 else 0.0
            elif a < before:
                block[a, a] = math.sqrt(value) if value > LEAST_PIVOT else 0.0
            else:
                value = max(value, LEAST_PIVOT)
                block[a, a] = math.sqrt(value)
                cost += math.log(value)
    n = settings[1]
    # With as many columns as rows nothing is left to explain.
    if given + before > 0.0 and given + before + own > n - 2.0:
        return MOST_COST
    return cost + settings[0] * own * (given + before) * math.log(n) / n


def prepare(costing, parents, k, leaves):
    """Get ready for costs given ``parents[:k]`` without number ``leaves``."""


def cost_with(costing, x, joins):
    """The cost of ``x`` given the parents that were prepared, and the node ``joins`` unless it is -1."""


def climb(problem, x, allowed, parents, m, gains, space):
    """The link of ``x`` and the number of its parents, which are improved by single changes."""


def _are_counts(costing):
    """Whether tables of a costing, a type of numba, are codes."""
    return isinstance(costing.types[0].types[0].dtype, types.Integer)


@overload(prepare, jit_options={"error_model": "numpy"})
def _prepare(costing, parents, k, leaves):
    kernel = prepare_counts if _are_counts(costing) else prepare_blocks
    return lambda costing, parents, k, leaves: kernel(costing, parents, k, leaves)


@overload(cost_with, jit_options={"error_model": "numpy"})
def _cost_with(costing, x, joins):
    kernel = cost_with_counts if _are_counts(costing) else cost_with_blocks
    return lambda costing, x, joins: kernel(costing, x, joins)


@overload(climb, jit_options={"error_model": "numpy"})
def _climb(problem, x, allowed, parents, m, gains, space):
    linear = isinstance(problem.types[0].types[0], types.Array)
    kernel = climb_linear if linear else climb_by_costs
    return lambda problem, x, allowed, parents, m, gains, space: kernel(problem, x, allowed, parents, m, gains, space)


@_kernel
def cost_of(costing, x, parents, k, leaves, joins):
    """The cost of ``x`` given ``parents[:k]`` without number ``leaves`` (or -1), and with ``joins`` (or -1).

    Costs are remembered at a place that the exclusive or of random numbers of the nodes says; a later one takes it.
    """
    salts, first, second, values = costing[1]
    ready = costing[2][-1]
    a, b = np.uint64(0), np.uint64(0)
    for t in range(k):
        if t != leaves:
            a ^= salts[0, parents[t]]
            b ^= salts[1, parents[t]]
    one, two = a ^ salts[2, x], b ^ salts[3, x]
    if joins >= 0:
        one ^= salts[0, joins]
        two ^= salts[1, joins]
    place = np.int64(one & np.uint64(values.shape[0] - 1))
    if first[place] == one and second[place] == two:
        return values[place]
    if ready[0] != a or ready[1] != b:
        prepare(costing, parents, k, leaves)
        ready[0], ready[1] = a, b
    cost = cost_with(costing, x, joins)
    first[place], second[place], values[place] = one, two, cost
    return cost


@_kernel
def costs_of_sets(costing, nodes, members, out):
    """Costs (m,) of ``nodes`` (m,) given the parents that the rows of ``members`` (m, d) mark."""
    parents = np.empty(members.shape[1], np.int64)
    for t in range(nodes.shape[0]):
        k = np.int64(0)
        for j in range(members.shape[1]):
            if members[t, j]:
                parents[k] = j
                k += 1
        # The last one joins the others: sets that follow each other often share those.
        joins = parents[k - 1] if k > 0 else np.int64(-1)
        out[t] = cost_of(costing, nodes[t], parents, max(k - 1, np.int64(0)), np.int64(-1), joins)


@_kernel
def climb_by_costs(problem, x, allowed, parents, k, gains, space):
    """Improve ``parents[:k]`` of ``x`` by single additions, removals and exchanges, as :func:`climb_parents` does.

    Costs are with prices. Returns the link and the number of parents.
    """
    costing, criterion, _, _, limits, (required, permitted, _, _), _ = problem
    taken = space[4][0]
    d = taken.shape[0]
    price, prices = criterion[1] * d, criterion[3]
    none = np.int64(-1)
    for j in range(d):
        taken[j] = 0
    taken[x] = 1
    for a in range(k):
        taken[parents[a]] = 1
    own = cost_of(costing, x, parents, k, none, none) + price * prices[k]
    turns = 4 * d + 8
    while True:
        turns -= 1
        room = k < limits[x]
        best, u, leaves = own - SAME_COST, none, none
        for j in range(d if room and turns > 0 else 0):
            if allowed[j] and not taken[j]:
                cost = cost_of(costing, x, parents, k, none, j) + price * prices[k + 1]
                if cost < best - SAME_COST:
                    best, u = cost, j
        if u >= 0:
            parents[k] = u
            taken[u] = 1
            k += 1
            own = best
            continue
        for a in range(k if turns > 0 else 0):
            if not required[x, parents[a]]:
                cost = cost_of(costing, x, parents, k, a, none) + price * prices[k - 1]
                if cost < best - SAME_COST:
                    best, leaves = cost, a
        if leaves >= 0:
            taken[parents[leaves]] = 0
            drop(parents, k, leaves)
            k -= 1
            own = best
            continue
        for j in range(d):
            gains[j] = 0.0
            if room and not allowed[j] and not taken[j] and permitted[x, j]:
                cost = cost_of(costing, x, parents, k, none, j) + price * prices[k + 1]
                gains[j] = max(own - cost, 0.0)
        for a in range(k):
            if required[x, parents[a]]:
                continue
            for j in range(d):
                if taken[j] or not permitted[x, j]:
                    continue
                cost = cost_of(costing, x, parents, k, a, j) + price * prices[k]
                if not allowed[j]:
                    gains[j] = max(gains[j], own - cost if own - cost > SAME_COST else 0.0)
                elif cost < best - SAME_COST:
                    best, leaves, u = cost, a, j
        if leaves < 0 or turns <= 0:
            break
        taken[parents[leaves]] = 0
        taken[u] = 1
        drop(parents, k, leaves)
        parents[k - 1] = u
        own = best
    for a in range(k):
        if required[x, parents[a]]:
            gains[parents[a]] = -LEAST_NET
        else:
            without = cost_of(costing, x, parents, k, a, none) + price * prices[k - 1]
            gains[parents[a]] = -max(without - own, LEAST_NET)
    return own - price * prices[k], k


@_step
def select(x, limit, toggled, toggle, parents, k, problem, place, space, gains, counts):
    """Parents of ``x`` among the nodes placed before ``limit``, with ``toggled`` allowed or not by ``toggle``.

    Climbs from those of ``parents[:k]`` that are allowed, see :func:`climb_parents`, and leaves there what it finds;
    returns the link of the residual and the number of parents.
    """
    permitted = problem[5][1][x]
    allowed = space[4][1]
    counts[SELECTIONS] += 1
    for j in range(place.shape[0]):
        allowed[j] = (place[j] < limit) & permitted[j]
    allowed[toggled] = toggle and permitted[toggled]
    allowed[x] = 0
    m = np.int64(0)
    for a in range(k):
        if allowed[parents[a]]:
            parents[m] = parents[a]
            m += 1
    return climb(problem, x, allowed, parents, m, gains, space)


@_step
def copy_row(table, y, k, parents):
    """Copy ``table[y, :k]`` to ``parents``; returns k."""
    for a in range(k):
        parents[a] = table[y, a]
    return k


@_step
def hope_of(x, price, problem, state, space, counts):
    """The most that node ``x`` can gain: what it costs now less what it costs with all others allowed."""
    _, place, links, sizes, _, _ = state
    bound, prices = problem[3], problem[1][3]
    if math.isnan(bound[x]):
        # Selected from what is required alone, and thus the same whenever it is asked for.
        none, parents, required = space[3][6], space[5][1], problem[5][0]
        k = np.int64(0)
        for j in range(place.shape[0]):
            if required[x, j]:
                parents[k] = j
                k += 1
        to, k = select(x, place.shape[0], x, np.int64(0), parents, k, problem, place, space, none, counts)
        bound[x] = to + price * prices[k]
    return max(0.0, links[x] + price * prices[sizes[x]] - bound[x])


@_kernel
def comes_first(x, y, step, before):
    """Whether ``x`` cannot go past ``y``, which is earlier (``step`` -1) or later (1)."""
    return before[y, x] if step < 0 else before[x, y]


@_kernel
def try_places(x, step, best, sums, full, problem, state, space, found, counts):
    """The place of node ``x`` before (``step`` -1) or after (1) its own that gains most, if any gains above ``best``.

    Moving x past y changes the candidates of x and of y only, and ``gains`` tells beforehand whether that matters, so
    most places cost nothing. Unless ``full``, a direction is given up when even the best that the places further on
    can bring does not make up for what has been lost. Returns the gain, the place and the number of parents there,
    which are left in ``found``.
    """
    order, place, links, sizes, gains, table = state
    criterion, total, price = problem[1], sums[TOTAL], sums[PRICE]
    penalty, prices = criterion[1], criterion[3]
    own, others, mine, none = space[5][2], space[5][3], space[3][7], space[3][6]
    d = order.shape[0]
    t = place[x]
    target, count = t, np.int64(0)
    later = min(counts[STEPS], 1)
    times, share = GAINS_TIMES[later], SHARE_OF_LOSSES[later]
    # The furthest place that is worth trying, and the most that others, or x itself, can gain on the way.
    end, hope, balance = t, 0.0, 0.0
    q = t + step
    while 0 <= q < d:
        y = order[q]
        if comes_first(x, y, step, problem[5][2]):
            break
        for one in (gains[x, y], gains[y, x]):
            balance += times * one if one > 0.0 else share * one
        if balance > 0.0 or full:
            end = q
        if step < 0:
            hope += times * gains[y, x]
        q += step
    if end == t:
        return best, target, count
    if step > 0:
        hope = hope_of(x, price, problem, state, space, counts)
    for j in range(d):
        mine[j] = gains[x, j]
    at, size = links[x], copy_row(table, x, sizes[x], own)
    crossed, paid = 0.0, 0.0
    q = t
    while q != end:
        q += step
        y = order[q]
        if gains[y, x] != 0.0:
            k = copy_row(table, y, sizes[y], others)
            to, k = select(y, q, x, np.int64(step < 0), others, k, problem, place, space, none, counts)
            crossed += to - links[y]
            paid += prices[k] - prices[sizes[y]]
            if step < 0:
                hope -= times * gains[y, x]
            elif not full and crossed + price * paid > HOPE * hope:
                break
        if mine[y] != 0.0:
            at, size = select(x, q + (step > 0), x, np.int64(0), own, size, problem, place, space, mine, counts)
        delta, more = crossed + at - links[x], paid + prices[size] - prices[sizes[x]]
        gain = change(delta, total, d, criterion) - penalty * more
        if gain > best + SAME_GAIN:
            best, target, count = gain, q, size
            for a in range(size):
                found[a] = own[a]
        if step < 0 and not full and delta + price * more > HOPE * hope:
            break
    return best, target, count


@_kernel
def put(x, target, parents, count, total, problem, state, space, marks, counts):
    """Put node ``x`` at place ``target`` and select anew where that matters; returns the new total of links.

    The selection for ``x`` starts from ``parents[:count]``, the others from what they had. ``marks`` are the nodes
    whose places are worth trying again, because parents or children of theirs changed, and those with a new selection.
    """
    order, place, links, sizes, gains, table = state
    dirty, touched = marks
    scratch = space[5][3]
    t = place[x]
    step = 1 if target > t else -1
    for q in range(t, target, step):
        order[q] = order[q + step]
        place[order[q]] = q
    order[target] = x
    place[x] = target
    dirty[x] = 1
    for q in range(min(t, target), max(t, target) + 1):
        y = order[q]
        if y != x and gains[y, x] == 0.0:
            continue
        k = copy_row(table, y, sizes[y], scratch)
        if y == x:
            k = count
            for a in range(count):
                scratch[a] = parents[a]
        to, k = select(y, q, y, np.int64(0), scratch, k, problem, place, space, gains[y], counts)
        total += to - links[y]
        links[y] = to
        touched[y] = 1
        for a in range(sizes[y]):
            if not is_among(table[y, a], scratch, k):
                dirty[table[y, a]] = 1
                dirty[y] = 1
        for a in range(k):
            if not is_among(scratch[a], table[y], sizes[y]):
                dirty[scratch[a]] = 1
                dirty[y] = 1
        sizes[y] = k
        for a in range(k):
            table[y, a] = scratch[a]
    return total


@_step
def copy_touched(source, target, touched):
    """Copy the order, and of the nodes that were touched everything, from one state to another."""
    d = touched.shape[0]
    for i in range(d):
        target[0][i] = source[0][i]
        target[1][i] = source[1][i]
        if touched[i]:
            touched[i] = 0
            target[2][i] = source[2][i]
            target[3][i] = source[3][i]
            for j in range(d):
                target[4][i, j] = source[4][i, j]
            for a in range(source[3][i]):
                target[5][i, a] = source[5][i, a]


@_kernel
def draw(n, stream):
    """A whole number below ``n``."""
    bits, stream[0] = random_bits(stream[0])
    return np.int64(np.float64(bits >> np.uint64(11)) * 2.0**-53 * n)


@_kernel
def draw_neighbour(x, gains, stream, pool):
    """One of the nodes that ``x`` has to do with: a parent, a child, or one that would be; any other if none does."""
    d, k = gains.shape[0], 0
    for j in range(d):
        if gains[x, j] != 0.0 or gains[j, x] != 0.0:
            pool[k] = j
            k += 1
    return pool[draw(k, stream)] if k > 0 else draw(d, stream)


@_step
def nearest_place(x, target, order, place, before):
    """The place on the way to ``target`` beyond which ``x`` cannot go."""
    q = place[x]
    step = 1 if target > q else -1
    while q != target and not comes_first(x, order[q + step], step, before):
        q += step
    return q


@_step
def perturb(total, problem, state, space, marks, stream, counts):
    """Move a node and two in its neighbourhood, each anywhere or next to what it has to do with."""
    order, place, _, sizes, gains, table = state
    d = order.shape[0]
    own, pool = space[5][2], space[5][1]
    x = draw(d, stream)
    for move in range(PERTURBED):
        if move > 0:
            x = draw_neighbour(x, gains, stream, pool)
        target = draw(d, stream)
        if draw(np.int64(2), stream) == 0:
            target = place[draw_neighbour(x, gains, stream, pool)]
        target = nearest_place(x, target, order, place, problem[5][2])
        if target != place[x]:
            k = copy_row(table, x, sizes[x], own)
            total = put(x, target, own, k, total, problem, state, space, marks, counts)
    return total


@_step
def price_of(sizes, prices):
    """What the parents of all nodes cost, in edges."""
    paid = 0.0
    for i in range(sizes.shape[0]):
        paid += prices[sizes[i]]
    return paid


@_step
def add_up(links):
    """Their sum."""
    total = 0.0
    for i in range(links.shape[0]):
        total += links[i]
    return total


@_step
def settle(problem, state, kept, touched, counts, sums, resolution):
    """Keep the local optimum that was reached, or, if a perturbation led to a worse one, go back to what was kept."""
    criterion = problem[1]
    fit = unpriced(sums[TOTAL], touched.shape[0], criterion)
    sums[SCORE] = fit - criterion[1] * price_of(state[3], criterion[3])
    if counts[STEPS] == 0 or sums[SCORE] >= sums[BEST] - SAME_GAIN:
        if counts[STEPS] == 0 or sums[SCORE] > sums[BEST] + resolution:
            counts[STALE] = 0
        sums[BEST] = sums[SCORE] if counts[STEPS] == 0 else max(sums[SCORE], sums[BEST])
        copy_touched(state, kept, touched)
    else:
        copy_touched(kept, state, touched)
        sums[TOTAL] = add_up(state[2])
        sums[SCORE] = sums[BEST]


@_step
def select_all(stop, problem, limits, state, space, touched, counts, sums):
    """Parents of all nodes, as often as ``counts`` asks for; whether that was done before ``stop`` selections.

    Under equal variances the worth of an edge follows the total, and the first worth, of variances, only starts it.
    """
    criterion, worth, bound = problem[1], problem[2], problem[3]
    kind, penalty, _, prices = criterion
    _, place, links, sizes, gains, table = state
    parents = space[5][4]
    d = place.shape[0]
    while counts[ROUNDS] > 0 and counts[SELECTIONS] < stop:
        if counts[NODE] == 0:
            worth_of_edges(criterion, sums[TOTAL], d, problem[6], worth)
            # Once the total has settled, what a node can gain at most hardly changes any more.
            for i in range(d if kind == BIC_EV and counts[SWEEPS] == 0 else 0):
                bound[i] = np.nan
        i = counts[NODE]
        k = copy_row(table, i, sizes[i], parents)
        links[i], k = select(i, limits[i], i, np.int64(0), parents, k, problem, place, space, gains[i], counts)
        sizes[i] = k
        for a in range(k):
            table[i, a] = parents[a]
        touched[i] = 1
        counts[NODE] += 1
        if counts[NODE] == d:
            counts[NODE] = 0
            counts[ROUNDS] -= 1
            sums[TOTAL] = add_up(links)
            sums[SCORE] = unpriced(sums[TOTAL], d, criterion) - penalty * price_of(sizes, prices)
            sums[PRICE] = penalty * (sums[TOTAL] if kind == BIC_EV else d)
    return counts[ROUNDS] == 0


@_step
def sweep(stop, least, full, problem, state, space, marks, counts, sums):
    """Try the places of all nodes that are marked; whether that was done before ``stop`` selections.

    A move must gain more than ``least`` (0) and lead ``least`` (0) above the score ``least`` (1).
    """
    place, dirty = state[1], marks[0]
    earlier, later = space[5][4], space[5][5]
    d = place.shape[0]
    while counts[TURN] < d and counts[SELECTIONS] < stop:
        x = counts[TURN]
        counts[TURN] += 1
        if not dirty[x]:
            counts[SKIPPED] = 1
            continue
        dirty[x] = 0
        t = place[x]
        first = least[0] + max(0.0, least[1] - sums[SCORE])
        best, target, k = try_places(x, np.int64(-1), first, sums, full, problem, state, space, earlier, counts)
        gain, other, size = try_places(x, np.int64(1), best, sums, full, problem, state, space, later, counts)
        if other != t:
            sums[TOTAL] = put(x, other, later, size, sums[TOTAL], problem, state, space, marks, counts)
        elif target != t:
            gain = best
            sums[TOTAL] = put(x, target, earlier, k, sums[TOTAL], problem, state, space, marks, counts)
        else:
            continue
        sums[SCORE] += gain
        counts[MOVED] += 1
        counts[MOVES] += 1
    return counts[TURN] == d


@_kernel
def search_orders(problem, limits, state, kept, space, marks, counts, sums, stream, rules):
    """Select parents, move single nodes to better places until none improves, perturb that, and so on.

    Whatever has been reached is in ``state`` when this returns, and the best local optimum in ``kept``: a call that
    ended because its share of selections was used up is continued by the next.

    Parameters
    ----------
    problem : statistics or costing, criterion, worth (groups, d), bound (d,), most (d,), known, weights (groups,)
        Of what is known the first two arrays are transposed: a row has the parents of a node. Parents that are required
        are there from the start, and the order respects what comes before what.
    limits : array (d,)
        The parents of node i are first selected among the nodes placed before ``limits[i]``: its own place.
    state, kept : ``order``, ``place``, ``links``, ``sizes`` (d,), ``gains`` (d, d), parents of every node (d, d)
    space : scratch
        Numbers (d + 1, d), (d, d), (d + 1, r), (8, d), bytes (2, d), whole numbers (6, d + 1).
    marks : two arrays (d,), see :func:`put`
    counts : array (11,)
        What has been done and what is left to do, see the constants.
    sums : array (4,)
        Total of the links, score, best score, and the price of an edge in units of links.
    stream : array (1,)
        State of the random numbers.
    rules : (sweeps, steps, full, floor, resolution, quota)
        At most so many sweeps, perturbations and selections; a move must gain more than ``resolution`` and lead above
        the score ``floor``.

    Returns
    -------
    bool
        Whether there is nothing left to do.
    """
    sweeps, steps, full, floor, resolution, quota = rules
    criterion, dirty = problem[1], marks[0]
    d = limits.shape[0]
    stop = counts[SELECTIONS] + quota
    while True:
        while counts[RESTING] == 0:
            if not select_all(stop, problem, limits, state, space, marks[1], counts, sums):
                return False
            if counts[SWEEPS] == sweeps:
                counts[RESTING] = 1
            else:
                if not sweep(stop, (resolution, floor), full, problem, state, space, marks, counts, sums):
                    return False
                counts[TURN] = 0
                counts[SWEEPS] += 1
                if counts[MOVED] > 0:
                    counts[ROUNDS] = criterion[0] == BIC_EV
                elif counts[SKIPPED] == 0 or counts[STEPS] > 0:
                    # After a perturbation only what it has reached is tried; otherwise the last sweep tries all.
                    counts[RESTING] = 1
                else:
                    for x in range(d):
                        dirty[x] = 1
                counts[MOVED], counts[SKIPPED] = 0, 0
            if counts[RESTING] == 1:
                settle(problem, state, kept, marks[1], counts, sums, resolution)
        if counts[STEPS] >= steps:
            return True
        counts[STEPS] += 1
        counts[STALE] += 1
        counts[SWEEPS], counts[RESTING] = 0, 0
        for x in range(d):
            dirty[x] = 0
        sums[TOTAL] = perturb(sums[TOTAL], problem, state, space, marks, stream, counts)
        sums[SCORE] = unpriced(sums[TOTAL], d, criterion) - criterion[1] * price_of(state[3], criterion[3])


@_kernel
def equal_variance_order(C, scale, before, order):
    """Greedy order for equal noise variances: next is the variable with the least variance given those taken.

    Chen, Drton & Wang (2019). Of those, that is, that need not wait for others.
    """
    d = C.shape[0]
    W = np.empty((d + 1, d))
    v = np.ones(d)
    waiting = np.zeros(d, np.int64)
    for i in range(d):
        for j in range(d):
            waiting[j] += before[i, j]
    for t in range(d):
        least = np.inf
        u = np.int64(-1)
        for j in range(d):
            if waiting[j] == 0 and v[j] * scale[j] < least:
                least = v[j] * scale[j]
                u = j
        order[t] = u
        waiting[u] = -1
        for j in range(d):
            waiting[j] -= before[u, j]
        add_parent(C, u, t, W, v)


# --- decoding with knowledge ------------------------------------------------------------------------------------------


@_kernel
def decode_constrained(z, required, allowed, before, limits, A):
    """Vec2DAG of a batch ``z`` (B, m) into ``A`` (B, d, d) under knowledge; see :func:`vec2dag.graph.vec2dag`."""
    d = required.shape[0]
    order = np.empty(d, np.int64)
    place, parents = np.empty(d, np.int64), np.empty(d, np.int64)
    strength = np.empty(d)
    for b in range(z.shape[0]):
        order_with_precedence(z[b, :d], before, order)
        for t in range(d):
            place[order[t]] = t
            parents[t] = 0
        e = d
        for i in range(d):
            A[b, i, i] = 0
            for j in range(i + 1, d):
                on = z[b, e] > 0.0
                first = place[i] < place[j]
                A[b, i, j] = required[i, j] or (on and first and allowed[i, j])
                A[b, j, i] = required[j, i] or (on and not first and allowed[j, i])
                parents[j] += A[b, i, j]
                parents[i] += A[b, j, i]
                e += 1
        for j in range(d):
            if parents[j] > limits[j]:
                keep_strongest_parents(z[b], required, limits[j], j, A[b], order, strength)


@_kernel
def keep_strongest_parents(z, required, limit, j, A, others, strength):
    """Thin the parents of ``j`` in ``A`` (d, d) to the required ones and those of largest edge potential.

    Ties by index. ``others`` and ``strength`` (d,) are for the parents that are not required, and their potentials.
    """
    d = A.shape[0]
    count = np.int64(0)
    room = limit
    for i in range(d):
        if required[i, j]:
            room -= 1
        elif A[i, j]:
            low, high = min(i, j), max(i, j)
            others[count] = i
            strength[count] = z[d + low * (2 * d - low - 1) // 2 + high - low - 1]
            A[i, j] = 0
            count += 1
    for _ in range(room):
        best = np.int64(0)
        for k in range(1, count):
            if strength[k] > strength[best]:
                best = k
        A[others[best], j] = 1
        strength[best] = -np.inf
