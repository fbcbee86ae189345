"""Iterated local search over orders, for linear regressions: descend, disturb a neighbourhood, descend again."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import whole_number
from .._parallel import run_each
from .._settings import Settings
from ..scores import GraphScore, Score, needs_local
from .budget import Budget
from .descent import MANY, Candidate, CompiledDescent, Walk, resolution
from .gradient import Record, SearchResult
from .orders import empty, ended
from .start import Start, sparse_order

__all__ = ["LocalSearch"]

# Chains that have to agree; more on few nodes.
AGREE, AGREE_SMALL, SMALL = 2, 4, 20
# Chains side by side, whatever the number of threads.
TOGETHER = 2
# Chains at most, up to so many nodes: on larger graphs they hardly ever agree.
CHAINS, FEW_CHAINS, FEW = 16, 2, 100
# A chain ends after so many perturbations without improvement, and one more for every two nodes.
PATIENCE = 50
# Perturbations of a chain between two looks at it: so many parts of its patience.
PARTS = 5


@dataclass
class LocalSearch(Settings):
    """Chains of perturbations: three nodes go to other places, and what that reaches descends again.

    The first chain starts from an order in which nodes have few predecessors that matter, the others from random
    orders. A perturbation moves a node and two in its neighbourhood; only nodes whose parents or children changed look
    for better places, so that its cost does not grow with the number of nodes. What is not worse is kept. A chain ends
    after ``patience`` perturbations without improvement; the search ends when ``agree`` chains have ended at the best
    score, or after ``chains`` of them. It needs linear regression.

    Parameters
    ----------
    n_steps : int, optional
        Perturbations of a chain at most; None is no limit.
    patience : int, optional
        None is 50 and one more for every two nodes.
    chains : int, optional
        None is 16, 2 on more than 100 nodes, and 1 on more than 300, where chains hardly ever agree.
    agree : int, optional
        None is 2, and 4 on up to 20 nodes, where a chain takes milliseconds.
    """

    name: ClassVar[str] = "local"
    descends: ClassVar[bool] = True
    reports_mean: ClassVar[bool] = False
    takes_start: ClassVar[bool] = True

    n_steps: int | None = None
    patience: int | None = None
    chains: int | None = None
    agree: int | None = None

    def check(self) -> None:
        """Refuse impossible values."""
        for parameter, value in self.get_params().items():
            if value is not None:
                whole_number(parameter, value)

    def search(self, score: GraphScore, *, rng: np.random.Generator, start: Start, budget: Budget) -> SearchResult:
        """Search for the DAG with the highest score."""
        scored = needs_local(score, "algorithm='local'")
        if scored.statistics is None:
            raise ValueError("algorithm='local' needs regression='linear'; algorithm='orders' takes any regression")
        d, least = scored.d, resolution(scored)
        patience = self.patience or PATIENCE + d // 2
        chains = self.chains or (CHAINS if d <= FEW else FEW_CHAINS if d <= MANY else 1)
        agree = self.agree or (AGREE_SMALL if d <= SMALL else AGREE)
        descent = CompiledDescent(scored, budget)
        record = Record(scored, None, math.inf, budget)
        best = empty(scored)
        ends: list[float] = []
        reason: str | None = None
        ready = start.A is not None
        walks: list[Walk] = []
        cut = False
        with budget.guard(scored):
            best = _better(best, _given(scored, start))
            while len(ends) < chains and reason is None:
                walks = []
                for k in range(len(ends), min(len(ends) + TOGETHER, chains)):
                    order, A = self._first(descent, start, rng, k)
                    walks.append(descent.walk(order, A, int(rng.integers(2**63))))
                while reason is None and any(not self._ended(walk, patience) for walk in walks):
                    self._advance(walks, patience, scored.local.n_jobs, budget)
                    found = [walk.candidate() for walk in walks]
                    ready = ready or any(walk.ended for walk in walks)
                    for candidate in found:
                        best = _better(best, candidate)
                    record.offer(best.A, best.score)
                    rewards = np.array([candidate.score for candidate in found])
                    edges = float(np.mean([candidate.A.sum() for candidate in found]))
                    reason = record.stop(rewards, np.nan, edges, best.A)
                ends += [walk.candidate().score for walk in walks]
                cut = cut or any(walk.stale < patience for walk in walks)
                if reason is None and sum(end >= max(ends) - least for end in ends) >= agree:
                    reason = "steps" if cut else "settled"
        # What chains have reached since the last look, if something has ended them.
        for walk in walks:
            best, ready = _better(best, walk.candidate()), ready or walk.ended
        stopped = reason or budget.stopped or ("steps" if cut else "settled")
        own = start.order is None and start.policy is None and not start.wanted_random
        init = "sparse order" if own else start.name
        return ended(best, record, stopped, sigma=1.0, init=init, algorithm=self.name, ready=ready)

    def _first(
        self, descent: CompiledDescent, start: Start, rng: np.random.Generator, chain: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
        """Where a chain starts: an order, and edges along it."""
        d = descent.score.d
        if chain > 0 or start.wanted_random:
            return rng.permutation(d), None
        if start.order is not None:
            return start.order, start.A
        policy = start.policy_for(d)
        return (sparse_order(descent) if policy is None else np.argsort(policy.mu[:d], kind="stable")), None

    def _ended(self, walk: Walk, patience: int) -> bool:
        return walk.stale >= patience or (self.n_steps is not None and walk.steps >= self.n_steps)

    def _advance(self, walks: list[Walk], patience: int, n_jobs: int | None, budget: Budget) -> None:
        """A part of the patience more for every chain that has not ended."""
        part = max(1, patience // PARTS)

        def one(k: int) -> None:
            walk = walks[k]
            if not self._ended(walk, patience):
                goal = walk.steps + min(part, patience - walk.stale)
                walk.advance(goal if self.n_steps is None else min(goal, self.n_steps), budget=budget)

        run_each(one, len(walks), n_jobs)


def _better(best: Candidate, other: Candidate | None) -> Candidate:
    return best if other is None or other.score <= best.score else other


def _given(score: Score, start: Start) -> Candidate | None:
    """A given graph is a candidate too."""
    return None if start.A is None or start.order is None else Candidate(start.A, float(score(start.A)), start.order)
