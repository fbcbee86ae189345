"""The best of all DAGs, for few nodes."""

import numpy as np

from .._checks import whole_number
from ..scores import Score, needs_local
from .certify import Certificate, Refined

__all__ = ["exact_search"]


def exact_search(score: Score, max_nodes: int = 12) -> Refined:
    """The DAG with the highest score of all that are permitted, by dynamic programming over subsets.

    Silander & Myllymaki (2006).

    Parameters
    ----------
    score : Score
        A sum over nodes: ``bic-nv`` or ``ls``.
    max_nodes : int, default 12
        Refuse more: time and memory grow as ``d 2^d``.
    """
    d = needs_local(score, "exact_search").d
    if not score.criterion.decomposable:
        raise ValueError("exact_search needs a score that is a sum over nodes: 'bic-nv' or 'ls'")
    if d > whole_number("max_nodes", max_nodes):
        raise ValueError(f"exact_search is for at most max_nodes={max_nodes} nodes, got {d}")
    size, known = 1 << d, score.constraints
    edges = np.array([mask.bit_count() for mask in range(size)])
    price = score.penalty * d * score.prices[edges]
    cost, chosen = np.empty((d, size)), np.empty((d, size), np.int64)
    for i in range(d):
        masks = [mask for mask in range(size) if not mask >> i & 1]
        sets = (np.array(masks)[:, None] >> np.arange(d) & 1).astype(np.uint8)
        permitted = (sets <= known.allowed[:, i]).all(axis=1) & (sets >= known.required[:, i]).all(axis=1)
        permitted &= sets.sum(axis=1) <= known.max_parents[i]
        cost[i], chosen[i] = np.inf, np.arange(size)
        open_ = np.array(masks)[permitted]
        cost[i, open_] = score.link(score.local.of_sets(i, sets[permitted]), i) + price[open_]
        # The best parents within a set are those of the set itself or of the set without one of its members.
        for b in range(d):
            within = np.arange(size)[(np.arange(size) >> b & 1) == 1]
            better = cost[i, within ^ (1 << b)] < cost[i, within]
            target = within[better]
            cost[i, target], chosen[i, target] = cost[i, target ^ (1 << b)], chosen[i, target ^ (1 << b)]
    least, sink = np.zeros(size), np.zeros(size, np.int64)
    for mask in range(1, size):
        members = [i for i in range(d) if mask >> i & 1]
        totals = [least[mask ^ (1 << i)] + cost[i, mask ^ (1 << i)] for i in members]
        sink[mask] = members[int(np.argmin(totals))]
        least[mask] = min(totals)
    A, order, mask = np.zeros((d, d), np.uint8), [], size - 1
    while mask:
        i = int(sink[mask])
        mask ^= 1 << i
        order.append(i)
        A[[j for j in range(d) if chosen[i, mask] >> j & 1], i] = 1
    return Refined(
        A, float(score(A)), np.array(order[::-1]), Certificate(exact=True, known=not score.constraints.trivial)
    )
