"""Search over orders: insertion moves to a certified local optimum, a policy over orders, and the exact optimum.

Given an order, parents are selected among the predecessors by growing and shrinking; moving one node to another
place changes order and skeleton together, which single edges and the gradient cannot do.
"""

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from . import _kernels
from .engines import toggle_table
from .graph import as_adjacency, dag2vec, is_dag, topological_order
from .orders import Orders, Refined, descend_all, orders_of
from .policy import GaussianPolicy
from .scores import Linear, Score
from .search import Callback, Record, SearchResult, positive_int

__all__ = ["Refined", "exact_search", "insertion_search", "order_search"]

# Up to here the last pass over all insertions gives up no direction early; see docs/algorithms.md.
FULL_CERTIFICATE = 100
# Up to here the certificate includes a backward elimination from all edges of the order.
ELIMINATION = 60
# Batches without improvement after which the search over orders ends even if no two chains have agreed.
PATIENCE = 60


def insertion_search(score: Score, start: ArrayLike) -> Refined:
    """Improve a DAG until no insertion and no single edge improves it.

    Parameters
    ----------
    score : Score
    start : array of shape (d, d) or (d,)
        A DAG, or an order of the nodes. Not modified.

    Returns
    -------
    Refined
        At least as good as the start, with ``certified=True``.
    """
    values = np.asarray(start)
    orders = orders_of(score)
    if values.ndim == 1:
        if sorted(values.tolist()) != list(range(score.d)):
            raise ValueError(f"start must be an order of 0..{score.d - 1} or a DAG, got {values.tolist()[:20]}")
        best, _ = orders.descend(values)
    else:
        A = as_adjacency(values, "start")
        best = Refined(A, float(score(A)), topological_order(A))
    return certify(score, orders, best)


def certify(score: Score, orders: Orders, best: Refined, deadline: float = np.inf) -> Refined:
    """Alternate single edges and insertions until neither improves, or until the ``deadline``."""
    while time.perf_counter() < deadline:
        best = _edge_descent(score, best)
        found, _ = orders.descend(best.order, floor=best.score, full=score.d <= FULL_CERTIFICATE)
        if found.score <= best.score + score.resolution and _affords_elimination(score):
            found = _eliminate(score, best.order)
        if found.score > best.score + score.resolution:
            best = found
        elif time.perf_counter() < deadline:
            return Refined(best.A, best.score, best.order, certified=True)
    return best


def _affords_elimination(score: Score) -> bool:
    """Whether all predecessors can be parents at once: cheap regressions, and rows enough for them."""
    return isinstance(score.regression, Linear) and score.d <= ELIMINATION and score.n >= 2 * score.d


def _eliminate(score: Score, order: NDArray[np.int64]) -> Refined:
    """Backward elimination along an order, from all edges on: in dense graphs it ends higher than growing from none.

    In every round each node loses its worst parent, if that improves the score. Removals from different nodes gain at
    least as much together as one by one, under equal variances too: ``ln(1 + a + b) <= ln(1 + a) + ln(1 + b)``.
    """
    place = np.argsort(order)
    A = (place[:, None] < place).astype(np.uint8)
    nodes = np.arange(score.d)
    while True:
        links, table = toggle_table(score, A)
        gain = np.where(A, score.change(table.T, float(links.sum())) + score.penalty, -np.inf)
        worst = gain.argmax(axis=0)
        losing = gain[worst, nodes] > score.resolution
        if not losing.any():
            return Refined(A, float(score(A)), order)
        A[worst[losing], nodes[losing]] = 0


def _edge_descent(score: Score, start: Refined) -> Refined:
    """Add, remove or reverse single edges while that improves the score."""
    A, best, d = start.A.copy(), start.score, score.d
    while True:
        links, table = toggle_table(score, A)
        total = float(links.sum())
        on, reach = A.astype(bool), _reachable(A)
        # gain[j, i] of toggling j -> i; an edge may be added unless i reaches j.
        gain = score.change(table.T, total) - score.penalty * np.where(on, -1, 1)
        gain[(~on & reach.T) | np.eye(d, dtype=bool)] = -np.inf
        # Reversal of j -> i: remove it, add i -> j; possible unless another path leads from j to i.
        turn = score.change(table.T + table, total)
        turn[~on | _detour(A, reach)] = -np.inf
        better = np.argwhere(np.maximum(gain, turn) > score.resolution)
        better = better[np.argsort(-np.maximum(gain, turn)[tuple(better.T)], kind="stable")]
        before = best
        for j, i in better:
            # The first always fits; others may no longer, after those before them, and a gain may be rounding.
            changed = A.copy()
            changed[j, i] ^= 1
            if turn[j, i] > gain[j, i]:
                changed[i, j] ^= 1
            if is_dag(changed) and (value := float(score(changed))) > best + score.resolution:
                A, best = changed, value
        if best == before:
            # Of the orders of A the one nearest to the old: where they agree, insertions have been tried.
            order = start.order[topological_order(A[np.ix_(start.order, start.order)])]
            return Refined(A, best, order) if best > start.score else start


def _reachable(A: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """``reach[i, j]``: a directed path leads from i to j."""
    reach = np.zeros(A.shape, dtype=bool)
    for i in topological_order(A)[::-1]:
        children = np.flatnonzero(A[i])
        reach[i] = reach[children].any(axis=0)
        reach[i, children] = True
    return reach


def _detour(A: NDArray[np.uint8], reach: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[j, i]``: j -> i is an edge and another path leads from j to i, through another child of j."""
    out = np.zeros(A.shape, dtype=bool)
    for j in range(len(A)):
        children = np.flatnonzero(A[j])
        out[j, children] = reach[np.ix_(children, children)].any(axis=0)
    return out


def order_search(
    score: Score,
    *,
    rng: np.random.Generator,
    start: Refined | None = None,
    n_steps: int | None = None,
    batch_size: int | None = None,
    stall: int = 5,
    agree: int = 2,
    time_budget: float | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Policy over node potentials, rewarded with the refined score of what it samples.

    Potentials are drawn around the best order with a learned standard deviation, every sample descends by
    insertions to its local optimum, and that score is its reward. The mean moves to the best order, the logarithm
    of sigma along the score-function gradient of ranked rewards. A chain starts from random orders and ends after
    ``stall`` batches without improvement; the search ends when ``agree`` chains have ended at the best score, or
    after 60 batches without improvement.

    Parameters
    ----------
    score : Score
    rng : numpy Generator
    start : Refined, optional
        Where the first chain starts.
    n_steps : int, optional
        Batches at most, 150 by default.
    batch_size : int, optional
        Orders drawn for a batch, 8 by default.
    stall, agree : int, default 5 and 2
    time_budget, callback
        As in :func:`vec2dag.policy_gradient`.

    Returns
    -------
    SearchResult
    """
    n_steps = positive_int("n_steps", n_steps, 150)
    batch_size = positive_int("batch_size", batch_size, 8)
    d = score.d
    record = Record(n_steps, PATIENCE, time_budget, callback, score)
    agreed, stopped, chain = 0, "steps", _Chain(d, score.resolution, start)
    best = start or Refined(np.zeros((d, d), np.uint8), float(score(np.zeros((d, d), np.uint8))), np.arange(d))
    record.offer(best.A, best.score)
    deadline = np.inf if time_budget is None else time.perf_counter() + time_budget
    orders = orders_of(score, None if start is None else start.A, deadline)
    sigma = np.exp(chain.log_sigma)
    try:
        for _ in range(n_steps):
            batch = descend_all(orders, chain.sample(batch_size, rng), score.n_jobs, deadline)
            chain.learn(batch)
            assert chain.best is not None
            sigma = np.exp(chain.log_sigma)
            if chain.best.score > best.score + score.resolution:
                best, agreed = chain.best, 0
                record.offer(best.A, best.score)
            if chain.stalled >= stall:
                agreed += chain.best.score >= best.score - score.resolution
                chain = _Chain(d, score.resolution)
            rewards = np.array([found.score for found in batch])
            edges = float(np.mean([found.A.sum() for found in batch]))
            reason = record.stop(rewards, float(sigma), edges, best.A)
            if reason is not None or agreed >= agree:
                stopped = reason or "settled"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
        warnings.warn(f"interrupted after {len(record.rows)} batches: returning the best DAG so far", stacklevel=2)
    policy = policy_at(best.A, best.order, float(sigma) * 2.0 / d)
    return SearchResult(
        best.A, best.score, best.A, best.score, policy, record.history(), len(record.rows), stopped, "random", "orders"
    )


@dataclass
class _Chain:
    """One climb of the policy over orders, in units of places."""

    d: int
    resolution: float
    best: Refined | None = None
    stalled: int = 0
    log_sigma: float = field(init=False)
    tried: Any = ()
    SPREAD = 0.7  # standard deviation of log sigma within a batch
    RATE = 0.5

    def __post_init__(self) -> None:
        # A given start is close to the goal; from random orders a fifth of the length is the best first step.
        self.log_sigma = 0.0 if self.best is not None else float(np.log(max(0.2 * self.d, 1.0)))

    def sample(self, size: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Orders to descend from: random ones at first, then potentials drawn around the best order."""
        if self.best is None:
            return [rng.permutation(self.d) for _ in range(size)]
        mu = np.empty(self.d)
        mu[self.best.order] = np.arange(self.d)
        self.tried = self.log_sigma + self.SPREAD * rng.standard_normal(size)
        noise = rng.standard_normal((size, self.d))
        return [np.argsort(mu + np.exp(s) * e, kind="stable") for s, e in zip(self.tried, noise, strict=True)]

    def learn(self, batch: list[Refined]) -> None:
        """Move the mean to the best order and log sigma towards the deviations that were rewarded."""
        rewards = np.array([found.score for found in batch])
        top = batch[int(rewards.argmax())]
        if self.best is not None and np.ptp(rewards) > 0 and len(batch) == len(self.tried) > 1:
            advantage = np.argsort(np.argsort(rewards)) / (len(batch) - 1) - 0.5
            self.log_sigma += self.RATE * float(np.mean(advantage * (self.tried - self.log_sigma))) / self.SPREAD
            self.log_sigma = float(np.clip(self.log_sigma, np.log(0.5), np.log(self.d)))
        if self.best is None or top.score > self.best.score + self.resolution:
            self.best, self.stalled = top, 0
        else:
            self.stalled += 1


def policy_at(A: NDArray[np.uint8], order: NDArray[np.int64], sigma: float) -> GaussianPolicy:
    """A policy around a DAG and an order of it: potentials evenly in [-1, 1], edge potentials at 1 and -1."""
    d = len(order)
    mu = dag2vec(A)
    mu[order] = np.linspace(-1.0, 1.0, d)
    # An absent edge is sampled with probability 0.02, or less on large graphs: one or two strange parents a node.
    log_sigma = np.full_like(mu, np.log(-1.0 / ndtri(min(0.02, 2.0 / d))))
    log_sigma[:d] = np.log(sigma)
    return GaussianPolicy(mu, log_sigma)


def equal_variance_order(score: Score) -> NDArray[np.int64]:
    """Greedy order under equal noise variances: the least variance given those already taken comes next.

    Chen, Drton & Wang (2019); for scores with linear regression.
    """
    if not isinstance(score.regression, Linear):
        raise ValueError("the equal-variance order needs a score with linear regression")
    order = np.empty(score.d, np.int64)
    _kernels.equal_variance_order(score.regression.C, score.regression.scale, order)
    return order


def _residuals_of_sets(score: Score, node: int, masks: list[int]) -> NDArray[np.float64]:
    """Mean squared residuals of ``node`` given the sets of parents whose bits are set in ``masks``."""
    members = (np.array(masks)[:, None] >> np.arange(score.d) & 1).astype(np.uint8)
    if isinstance(score.regression, Linear):
        A = np.zeros((len(masks), score.d, score.d), np.uint8)
        A[:, :, node] = members
        return score.regression.residuals(A, n_jobs=1)[:, node]
    return score.local_batch([(node, np.flatnonzero(row)) for row in members])


def exact_search(score: Score, max_nodes: int = 12) -> Refined:
    """The DAG with the highest score of all, by dynamic programming over subsets (Silander & Myllymaki 2006).

    Parameters
    ----------
    score : Score
        A sum over nodes: ``bic-nv`` or ``ls``.
    max_nodes : int, default 12
        Refuse more: time and memory grow as ``d 2^d``.
    """
    d = score.d
    if not score.criterion.decomposable:
        raise ValueError("exact_search needs a score that is a sum over nodes: 'bic-nv' or 'ls'")
    if d > max_nodes:
        raise ValueError(f"exact_search is for at most max_nodes={max_nodes} nodes, got {d}")
    size = 1 << d
    edges = np.array([mask.bit_count() for mask in range(size)])
    price = score.penalty * d
    cost, chosen = np.empty((d, size)), np.empty((d, size), np.int64)
    for i in range(d):
        masks = [mask for mask in range(size) if not mask >> i & 1]
        local = score.link(_residuals_of_sets(score, i, masks))
        cost[i], chosen[i] = np.inf, np.arange(size)
        cost[i, masks] = local + price * edges[masks]
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
    return Refined(A, float(score(A)), np.array(order[::-1]), certified=True)
