"""The compiled loops of posterior sampling: plain functions of arrays, as in ``_kernels.py``, and independent of it.

The ``tables`` of a posterior are five arrays, made by :mod:`vec2dag.confidence.posterior`. A set of candidates of a
node is a number whose bit b stands for candidate b; required parents are in every set and have no bit.

``candidates`` (d, K)
    the nodes that a node may have as parents, beside those that are required; -1 beyond the last;
``required`` (d, d), bool
    ``required[i, j]``: node j must have the parent i;
``weights`` (d, 2^K)
    the logarithm of the weight of every set, -inf for sets that are not permitted;
``sums`` (d, 2^K)
    the logarithm of the summed weights of all subsets of a set;
``ranked`` (d, 2^K)
    the sets from the heaviest to the lightest.

A DAG has exactly one partition into levels: the level of a node is the length of the longest path that ends in it, so
that parents are on lower levels and, but on level 0, at least one of them is on the level just below.
"""

import math
from typing import Any

import numpy as np

from ._compiled import compiled

_kernel: Any = compiled(nogil=True, error_model="numpy")

# Sums that differ by a smaller share are equal up to rounding. What such a difference would weigh against the rest is
# as small a share of the posterior.
EQUAL = 1e-13
# Random numbers that a step takes for every node.
PER_NODE = 8


@_kernel
def log_difference(whole, part):
    """``ln(e^whole - e^part)``, -inf where nothing is left but rounding."""
    if whole == -math.inf:
        return -math.inf
    share = -math.expm1(part - whole)
    return whole + math.log(share) if share > EQUAL else -math.inf


@_kernel
def below(i, limit, v, level, tables):
    """The set of candidates of ``i`` on levels below ``limit``, without ``v``; -1 if a required parent is not there."""
    candidates, required = tables[0], tables[1]
    for j in range(level.shape[0]):
        if required[j, i] and j != v and level[j] >= limit:
            return -1
    found = 0
    for b in range(candidates.shape[1]):
        j = candidates[i, b]
        if j < 0:
            break
        if j != v and level[j] < limit:
            found |= 1 << b
    return found


@_kernel
def place_weight(i, inside, outside, tables):
    """Log weight of all sets of parents of ``i`` within ``inside`` but not within ``outside``; -1 has no sets."""
    if inside < 0:
        return -math.inf
    sums = tables[3]
    if outside < 0:
        return sums[i, inside]
    if inside == outside:
        return -math.inf
    return log_difference(sums[i, inside], sums[i, outside])


@_kernel
def draw_set(i, inside, outside, u, tables):
    """A set of parents of ``i`` within ``inside`` but not within ``outside``, by its weight; u is uniform."""
    weights, ranked = tables[2], tables[4]
    left = u
    total = place_weight(i, inside, outside, tables)
    last = np.int64(-1)
    for t in range(ranked.shape[1]):
        s = ranked[i, t]
        if (s & ~inside) != 0 or (outside >= 0 and (s & ~outside) == 0):
            continue
        if weights[i, s] == -math.inf:
            break
        last = s
        left -= math.exp(weights[i, s] - total)
        if left <= 0.0:
            break
    return last


@_kernel
def set_parents(i, s, tables, A):
    """Give ``i`` the required parents and those in the set ``s``, and no others."""
    candidates, required = tables[0], tables[1]
    for j in range(A.shape[0]):
        A[j, i] = required[j, i]
    for b in range(candidates.shape[1]):
        if s >> b & 1:
            A[candidates[i, b], i] = 1


@_kernel
def chosen_set(i, tables, A):
    """The set of candidates that are parents of ``i``."""
    candidates = tables[0]
    found = 0
    for b in range(candidates.shape[1]):
        if candidates[i, b] >= 0 and A[candidates[i, b], i]:
            found |= 1 << b
    return found


@_kernel
def log_weight(tables, A):
    """Logarithm of the weight of the DAG ``A``."""
    total = 0.0
    for i in range(A.shape[0]):
        total += tables[2][i, chosen_set(i, tables, A)]
    return total


@_kernel
def levels_of(A, level):
    """The level of every node of a DAG: the longest path that ends in it. Returns the number of levels."""
    d = A.shape[0]
    missing = np.zeros(d, np.int64)
    ready = np.empty(d, np.int64)
    count = 0
    for j in range(d):
        level[j] = 0
        for i in range(d):
            missing[j] += A[i, j]
        if missing[j] == 0:
            ready[count] = j
            count += 1
    most = 0
    for t in range(d):
        i = ready[t]
        most = max(most, level[i])
        for j in range(d):
            if A[i, j]:
                level[j] = max(level[j], level[i] + 1)
                missing[j] -= 1
                if missing[j] == 0:
                    ready[count] = j
                    count += 1
    return most + 1


@_kernel
def can_be_parent(v, i, tables):
    """The bit of ``v`` among the candidates of ``i``; 0 if it is required, -1 if it can be no parent at all."""
    if tables[1][v, i]:
        return 0
    for b in range(tables[0].shape[1]):
        if tables[0][i, b] == v:
            return 1 << b
    return -1


@_kernel
def relocate(v, u, level, count, tables, space):
    """Take node ``v`` out of the levels and put it back, on a level or between two, by the weight of all DAGs.

    A draw from the exact conditional distribution of the place of ``v`` given the partition of the others, u uniform.
    Returns the number of levels.
    """
    d = level.shape[0]
    stays, after, just_after, alone, own, places = space
    alone_before = True
    old = level[v]
    for i in range(d):
        if i != v and level[i] == old:
            alone_before = False
    if alone_before:
        for i in range(d):
            if i != v and level[i] > old:
                level[i] -= 1
        count -= 1
    for k in range(count + 1):
        stays[k] = after[k] = just_after[k] = alone[k] = 0.0
        # v comes just above level k - 1
        inside = below(v, k, v, level, tables)
        outside = below(v, k - 1, v, level, tables) if k > 0 else -1
        own[k] = place_weight(v, inside, outside, tables)
    for i in range(d):
        if i == v:
            continue
        k = level[i]
        bit = can_be_parent(v, i, tables)
        needed = bit == 0
        # without v, and without asking for v
        inside = below(i, k, v, level, tables)
        outside = below(i, k - 1, v, level, tables) if k > 0 else np.int64(-1)
        if needed:
            with_v, out_with_v = inside, outside
            inside = outside = np.int64(-1)
        else:
            extra = max(bit, 0)
            with_v = inside | extra if inside >= 0 else inside
            out_with_v = outside | extra if outside >= 0 else outside
        # v on this level or above: not a parent
        stays[k] += place_weight(i, inside, outside, tables)
        # v on a lower level than the one below
        if k > 0:
            after[k] += place_weight(i, with_v, out_with_v, tables)
            # v on the level below, with others
            just_after[k] += place_weight(i, with_v, outside, tables)
        # v alone on the level below
        if bit < 0:
            alone[k] = -math.inf
        else:
            alone[k] += place_weight(i, with_v, inside, tables)
    # The weight of the nodes on levels k and higher where v is on a lower level than k - 1.
    rest = 0.0
    for k in range(count, -1, -1):
        # v alone between the levels k - 1 and k
        places[2 * k] = own[k] + rest + (alone[k] if k < count else 0.0)
        if k < count:
            rest += after[k]
    rest = 0.0
    for k in range(count - 1, -1, -1):
        # v on level k: level k + 1 is just after, those above are after
        places[2 * k + 1] = own[k] + rest + (just_after[k + 1] if k + 1 < count else 0.0)
        if k + 1 < count:
            rest += after[k + 1]
    first = 0.0
    most = -math.inf
    for k in range(count + 1):
        places[2 * k] += first
        most = max(most, places[2 * k])
        if k < count:
            first += stays[k]
            places[2 * k + 1] += first
            most = max(most, places[2 * k + 1])
    chosen = -1
    if most > -math.inf:
        total = 0.0
        for c in range(2 * count + 1):
            total += math.exp(places[c] - most)
        left = u * total
        for c in range(2 * count + 1):
            if places[c] > -math.inf:
                chosen = c
                left -= math.exp(places[c] - most)
                if left <= 0.0:
                    break
    if chosen < 0:
        # Nowhere: only from a start whose weight is rounding. Back to where it was.
        chosen = 2 * old + (0 if alone_before else 1)
    k = chosen // 2
    if chosen % 2 == 0:
        for i in range(d):
            if i != v and level[i] >= k:
                level[i] += 1
        count += 1
    level[v] = k
    return count


@_kernel
def draw_graph(level, u, tables, A):
    """A DAG with these levels, by its weight, in place of ``A``; as it was if it is of no weight at all."""
    d = level.shape[0]
    nobody = np.int64(-1)
    for i in range(d):
        inside = below(i, level[i], nobody, level, tables)
        outside = below(i, level[i] - 1, nobody, level, tables) if level[i] > 0 else nobody
        if place_weight(i, inside, outside, tables) == -math.inf:
            return False
    for i in range(d):
        inside = below(i, level[i], nobody, level, tables)
        outside = below(i, level[i] - 1, nobody, level, tables) if level[i] > 0 else nobody
        set_parents(i, draw_set(i, inside, outside, u[i], tables), tables, A)
    return True


@_kernel
def mark_descendants(i, j, A, marks, stack):
    """``marks[k] = 1`` for ``i`` and its descendants on paths that do not go through ``j``."""
    d = A.shape[0]
    for k in range(d):
        marks[k] = 0
    marks[i] = 1
    stack[0] = i
    size = 1
    while size > 0:
        size -= 1
        k = stack[size]
        for c in range(d):
            if A[k, c] and not marks[c] and c != j:
                marks[c] = 1
                stack[size] = c
                size += 1


@_kernel
def unmarked(i, first, second, both, tables):
    """The candidates of ``i`` not marked in ``first``, nor, with ``both``, in ``second``; -1 if a required one is."""
    candidates, required = tables[0], tables[1]
    for j in range(first.shape[0]):
        if required[j, i] and (first[j] or (both and second[j])):
            return -1
    found = 0
    for b in range(candidates.shape[1]):
        j = candidates[i, b]
        if j < 0:
            break
        if not first[j] and not (both and second[j]):
            found |= 1 << b
    return found


@_kernel
def redraw_pair(i, j, u, tables, A, marks, stack):
    """Draw the parents of ``i`` and of ``j`` anew, together, given those of all others; u (3,) is uniform.

    With D the descendants of a node, and itself, where neither of the two has parents: the graph has no cycle unless
    parents of i are in D_i, those of j in D_j, or some of i in D_j and some of j in D_i.
    """
    mark_descendants(i, j, A, marks[0], stack)
    mark_descendants(j, i, A, marks[1], stack)
    free_i = unmarked(i, marks[0], marks[1], True, tables)
    free_j = unmarked(j, marks[1], marks[0], True, tables)
    all_i = unmarked(i, marks[0], marks[1], False, tables)
    all_j = unmarked(j, marks[1], marks[0], False, tables)
    nothing = np.int64(-1)
    apart_i = place_weight(i, free_i, nothing, tables)
    apart_j = place_weight(j, free_j, nothing, tables)
    apart = apart_i + apart_j
    i_later = place_weight(i, all_i, free_i, tables) + apart_j
    j_later = place_weight(j, all_j, free_j, tables) + apart_i
    most = max(apart, max(i_later, j_later))
    if most == -math.inf:
        return
    w_apart, w_i, w_j = math.exp(apart - most), math.exp(i_later - most), math.exp(j_later - most)
    left = u[0] * (w_apart + w_i + w_j)
    if left < w_i:
        s_i, s_j = draw_set(i, all_i, free_i, u[1], tables), draw_set(j, free_j, nothing, u[2], tables)
    elif left < w_i + w_j:
        s_i, s_j = draw_set(i, free_i, nothing, u[1], tables), draw_set(j, all_j, free_j, u[2], tables)
    else:
        s_i, s_j = draw_set(i, free_i, nothing, u[1], tables), draw_set(j, free_j, nothing, u[2], tables)
    set_parents(i, s_i, tables, A)
    set_parents(j, s_j, tables, A)


@_kernel
def sample_dags(A, u, thin, tables, samples, logs):
    """Go on from the DAG ``A`` (d, d), in place, and keep every ``thin``-th: ``samples`` (m, d, d), ``logs`` (m,).

    A step takes every place of the partition anew for d nodes at random, draws a DAG with these levels, and draws the
    parents of d pairs of nodes anew. Each leaves the posterior as it is. ``u`` (m thin, 8 d) are uniform numbers.
    """
    d = A.shape[0]
    level, stack = np.empty(d, np.int64), np.empty(d, np.int64)
    marks = np.empty((2, d), np.uint8)
    space = (np.empty(d + 1), np.empty(d + 1), np.empty(d + 1), np.empty(d + 1), np.empty(d + 1), np.empty(2 * d + 1))
    for step in range(u.shape[0]):
        if d > 1:
            row = u[step]
            count = levels_of(A, level)
            for t in range(d):
                count = relocate(np.int64(row[t] * d), row[d + t], level, count, tables, space)
            draw_graph(level, row[2 * d : 3 * d], tables, A)
            for t in range(3 * d, 8 * d, 5):
                i, j = np.int64(row[t] * d), np.int64(row[t + 1] * (d - 1))
                redraw_pair(i, j + (j >= i), row[t + 2 : t + 5], tables, A, marks, stack)
        if (step + 1) % thin == 0:
            samples[step // thin] = A
            logs[step // thin] = log_weight(tables, A)
