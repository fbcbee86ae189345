"""From a good DAG to one that neither single edges nor insertions improve, and what exactly has been checked."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import as_real
from ..graph import as_adjacency, is_dag, topological_order
from ..scores import Score, needs_local
from .budget import Budget
from .checkpoint import storable
from .descent import CLOSE, FEW_PLACES, Candidate, Descent, descent_of, resolution

__all__ = ["Certificate", "Refined", "certify", "insertion_search"]

# Up to here the last pass over all insertions gives up no direction early; see docs/algorithms.md.
FULL_CERTIFICATE = 100
# Up to here, and with so many rows for each column, a backward elimination from all edges of the order is tried too.
ELIMINATION, ROWS_FOR_ELIMINATION = 60, 2


@storable
@dataclass(frozen=True)
class Certificate:
    """What is known of a DAG.

    Attributes
    ----------
    exact : bool
        It is the best of all DAGs; the rest is then of no interest.
    screened : bool
        What an approximation of the score saw no hope for was not tried.
    known : bool
        Only DAGs that agree with what is known were looked at.
    all_places : bool
        Insertions of every node at every other place of the order were tried, with parents selected by single
        additions, removals and exchanges. Otherwise places were left out at which an estimate saw no hope.
    elimination : bool
        A backward elimination from all edges of the order was tried too.
    resolution : float
        Improvements of the score up to this do not count.
    """

    exact: bool = False
    all_places: bool = True
    elimination: bool = False
    resolution: float = 0.0
    known: bool = False
    screened: bool = False

    def __str__(self) -> str:
        what = " that agrees with what is known" if self.known else ""
        if self.exact:
            return f"the best of all DAGs{what.replace('agrees', 'agree')}"
        places = "at any place" if self.all_places else "at a place where an estimate saw hope"
        screened = ", of those that an approximation of the score does not rule out" if self.screened else ""
        elimination = " and no backward elimination along the order" if self.elimination else ""
        return (
            f"no addition, removal or reversal of an edge{what}, no insertion of a column elsewhere in the order with "
            f"parents selected step by step ({places}){elimination}{screened} was found to improve the score by more "
            f"than {self.resolution:.1e}"
        )


@dataclass(frozen=True, eq=False)
class Refined(Candidate):
    """A DAG after refinement.

    Attributes
    ----------
    A : array of shape (d, d), uint8
    score : float
    order : array of shape (d,)
        An order that ``A`` agrees with.
    certificate : Certificate or None
        What has been checked; None if the time was over before.
    """

    certificate: Certificate | None = None

    @property
    def certified(self) -> bool:
        """Whether the checks came to an end."""
        return self.certificate is not None


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
        At least as good as the start, with a certificate.
    """
    score, values = needs_local(score, "insertion_search"), as_real(start, "start")
    descent = descent_of(score)
    if values.ndim == 1:
        if sorted(values.tolist()) != list(range(score.d)):
            raise ValueError(f"start must be an order of 0..{score.d - 1} or a DAG, got {values.tolist()[:20]}")
        best, _ = descent.descend(values.astype(np.int64))
    else:
        A = as_adjacency(values, "start")
        if A.shape != (score.d, score.d):
            raise ValueError(f"start must be an order of 0..{score.d - 1} or a DAG, got shape {A.shape}")
        best = Candidate(A, float(score(A)), topological_order(A))
    return certify(score, descent, best, Budget())


def certify(score: Score, descent: Descent, best: Candidate, budget: Budget) -> Refined:
    """Alternate single edges and insertions until neither improves, or until the budget is over."""
    least, eliminate = resolution(score), _affords_elimination(score)
    all_places = score.d <= (FULL_CERTIFICATE if score.local.cheap else FEW_PLACES)
    certificate = None
    # What has been reached when the time is over, or somebody interrupts, stays.
    with budget.guard(score):
        while not budget.over:
            for better in _edge_descent(score, best, budget):
                best = better
            found, _ = descent.descend(best.order, best.score, all_places, best.A, thorough=True)
            if found.score <= best.score + least and not budget.over:
                # Parents that are grown from none may be better than those that were carried along.
                found, _ = descent.descend(best.order, best.score, all_places, thorough=True)
            if found.score <= best.score + least and eliminate:
                found = _eliminate(score, best.order)
            if found.score > best.score + least:
                best = found
            elif not budget.over:
                known, screened = not score.constraints.trivial, score.approximation is not None
                certificate = Certificate(False, all_places, eliminate, least, known, screened)
                break
    return Refined(best.A, best.score, best.order, certificate)


def _affords_elimination(score: Score) -> bool:
    """Whether all predecessors can be parents at once: cheap regressions, and rows enough for them."""
    can = score.local.cheap and score.regression.dense
    return can and score.d <= ELIMINATION and score.n >= ROWS_FOR_ELIMINATION * score.d


def _eliminate(score: Score, order: NDArray[np.int64]) -> Candidate:
    """Backward elimination along an order, from all edges on: in dense graphs it ends higher than growing from none.

    In every round each node loses its worst parent, if that improves the score. Removals from different nodes gain at
    least as much together as one by one, under equal variances too: ``ln(1 + a + b) <= ln(1 + a) + ln(1 + b)``.
    """
    place, known = np.argsort(order), score.constraints
    A = ((place[:, None] < place) & known.allowed).astype(np.uint8)
    nodes, least = np.arange(score.d), resolution(score)
    while True:
        links, table = score.toggles(A)
        sizes = A.sum(axis=0, dtype=np.int64)
        # A node without parents has no last one: what is looked up there is not used.
        last = score.steps[sizes - 1]
        gain = np.where(A & ~known.required, score.change(table.T, float(links.sum())) + last, -np.inf)
        worst = gain.argmax(axis=0)
        losing = (gain[worst, nodes] > least) | (sizes > known.max_parents)
        if not losing.any():
            return Candidate(A, float(score(A)), order)
        A[worst[losing], nodes[losing]] = 0


def _edge_descent(score: Score, start: Candidate, budget: Budget) -> Iterator[Candidate]:
    """Add, remove or reverse single edges while that improves the score and there is time; every better graph."""
    A, best, d, least = start.A.copy(), start.score, score.d, resolution(score)
    nodes = np.arange(d)
    known = score.constraints
    near = score.approximation
    while True:
        links, table = (near or score).toggles(A)
        total = float(links.sum())
        floor = turned = np.full((d, d), least)
        if near is not None:
            # It may be wrong about a node by as much as it is now, and by a part of the price of an edge.
            off = np.abs(links - score.link(score.residuals(A))) + CLOSE * d * score.penalty
            floor, turned = score.change(np.tile(off, (d, 1)), total), score.change(off + off[:, None], total)
        on, reach = A.astype(bool), _reachable(A)
        sizes = A.sum(axis=0, dtype=np.int64)
        following, last = score.steps[sizes], score.steps[sizes - 1]
        # gain[j, i] of toggling j -> i; an edge may be added unless i reaches j.
        gain = score.change(table.T, total) - np.where(on, -last, following)
        closed = ~known.allowed | (sizes >= known.max_parents)
        gain[(~on & (reach.T | closed)) | (on & known.required) | np.eye(d, dtype=bool)] = -np.inf
        # Reversal of j -> i: remove it, add i -> j; possible unless another path leads from j to i.
        turn = score.change(table.T + table, total) - (following[:, None] - last)
        turn[~on | known.required | closed.T | _detour(A, reach)] = -np.inf
        better = np.argwhere((gain > floor) | (turn > turned))
        better = better[np.argsort(-np.maximum(gain, turn)[tuple(better.T)], kind="stable")]
        if near is not None:
            # All at once, so that workers have enough to do.
            score.local.batch([(i, np.flatnonzero(A[:, i] ^ (nodes == j))) for j, i in better])
            score.local.batch(
                [(j, np.flatnonzero(A[:, j] ^ (nodes == i))) for j, i in better if turn[j, i] > gain[j, i]]
            )
        before = best
        for j, i in better:
            if budget.over:
                break
            # The first always fits; others may no longer, after those before them, and a gain may be rounding.
            changed = A.copy()
            changed[j, i] ^= 1
            if turn[j, i] > gain[j, i]:
                changed[i, j] ^= 1
            if is_dag(changed) and known.permits(changed) and (value := float(score(changed))) > best + least:
                A, best = changed, value
        if best == before:
            return
        # Of the orders of A the one nearest to the old: where they agree, insertions have been tried.
        fixed = (A | known.before)[np.ix_(start.order, start.order)]
        yield Candidate(A.copy(), best, start.order[topological_order(fixed)])


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
