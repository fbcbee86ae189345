"""Iterated local search over orders, for linear regressions: descend, disturb a neighbourhood, descend again."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import whole_number
from .._parallel import run_each
from .._settings import Settings
from ..scores import GraphScore, Score, needs_local
from .budget import Budget
from .checkpoint import Stateful
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
# Seconds after which a state that may be kept is reached within such a part.
TURN = 5.0


@dataclass
class LocalSearch(Settings):
    """Chains of perturbations: three nodes go to other places, and what that reaches descends again.

    The first chain starts from an order in which nodes have few predecessors that matter, the others from random
    orders. A perturbation moves a node and two in its neighbourhood; only nodes whose parents or children changed look
    for better places, so that its cost does not grow with the number of nodes. What is not worse is kept. A chain ends
    after ``patience`` perturbations without improvement; the search ends when ``agree`` chains have ended at the best
    score, or after ``chains`` of them. It needs linear regression, or a criterion of categories.

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
    continues: ClassVar[bool] = True

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
        if not scored.regression.has_costing:
            raise ValueError(
                "algorithm='local' needs regression='linear', or a criterion of categories; algorithm='orders' takes "
                "any regression"
            )
        d, least = scored.d, resolution(scored)
        patience = self.patience or PATIENCE + d // 2
        chains = self.chains or (CHAINS if d <= FEW else FEW_CHAINS if d <= MANY else 1)
        agree = self.agree or (AGREE_SMALL if d <= SMALL else AGREE)
        descent = CompiledDescent(scored, budget)
        record = Record(scored, None, math.inf, budget)
        at = _Chains(descent, empty(scored), ready=start.A is not None)
        pause = budget.memory.follow("chains", rng=rng, record=record, chains=at)
        reason: str | None = None
        with budget.guard(scored):
            at.best = _better(at.best, _given(scored, start))
            while len(at.ends) < chains and reason is None:
                if not at.walks:
                    for k in range(len(at.ends), min(len(at.ends) + TOGETHER, chains)):
                        order, A = self._first(descent, start, rng, k)
                        at.walks.append(descent.walk(order, A, int(rng.integers(2**63))))
                    self._aim(at.walks, patience)
                    if budget.over:
                        # The first order may have been cut short, and would be another one in a whole run.
                        budget.memory.close()
                while True:
                    _advance(at.walks, scored.local.n_jobs, budget, pause)
                    found = at.look()
                    record.offer(at.best.A, at.best.score)
                    rewards = np.array([candidate.score for candidate in found])
                    edges = float(np.mean([candidate.A.sum() for candidate in found]))
                    reason = record.stop(rewards, np.nan, edges, at.best.A)
                    if reason is not None or not self._aim(at.walks, patience):
                        break
                at.cut = at.cut or any(walk.stale < patience for walk in at.walks)
                at.ends += [candidate.score for candidate in found]
                at.walks = []
                if reason is None and sum(end >= max(at.ends) - least for end in at.ends) >= agree:
                    reason = "steps" if at.cut else "settled"
        # What chains have reached since the last look, if something has ended them.
        at.look()
        stopped = reason or budget.stopped or ("steps" if at.cut else "settled")
        own = start.order is None and start.policy is None and not start.wanted_random
        init = "sparse order" if own else start.name
        return ended(at.best, record, stopped, sigma=1.0, init=init, algorithm=self.name, ready=at.ready)

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

    def _aim(self, walks: list[Walk], patience: int) -> bool:
        """A part of the patience more for every chain that has not ended; False if all have."""
        part, most = max(1, patience // PARTS), math.inf if self.n_steps is None else self.n_steps
        going = [walk for walk in walks if walk.stale < patience and walk.steps < most]
        for walk in going:
            walk.goal = int(min(walk.steps + min(part, patience - walk.stale), most))
        return len(going) > 0


class _Chains(Stateful):
    """Where the chains are: the best of all of them, the scores of those that have ended, and the present ones."""

    STATE: ClassVar[tuple[str, ...]] = ("best", "ready", "ends", "cut", "walks")

    def __init__(self, descent: CompiledDescent, best: Candidate, ready: bool) -> None:
        self.descent, self.best, self.ready = descent, best, ready
        self.ends: list[float] = []
        self.cut = False
        self.walks: list[Walk] = []

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Take up a state, with walks from anywhere that take up theirs."""
        super().resume(dict(snapshot) | {"walks": []})
        for state in snapshot["walks"]:
            self.walks.append(self.descent.walk(np.arange(self.descent.score.d)))
            self.walks[-1].resume(state)

    def look(self) -> list[Candidate]:
        """What the present chains have reached."""
        found = [walk.candidate() for walk in self.walks]
        for candidate in found:
            self.best = _better(self.best, candidate)
        self.ready = self.ready or any(walk.ended for walk in self.walks)
        return found


def _advance(walks: list[Walk], n_jobs: int | None, budget: Budget, pause: Callable[[], None]) -> None:
    """All chains to their goals, unless the budget is over before; wherever they pause they can be taken up again."""
    there = False
    while not there:
        turn = Budget(TURN, outer=budget)
        there = all(run_each(partial(_advance_one, walks, turn), len(walks), n_jobs)) or budget.over
        pause()


def _advance_one(walks: list[Walk], budget: Budget, k: int) -> bool:
    return walks[k].advance(walks[k].goal, budget=budget)


def _better(best: Candidate, other: Candidate | None) -> Candidate:
    return best if other is None or other.score <= best.score else other


def _given(score: Score, start: Start) -> Candidate | None:
    """A given graph is a candidate too."""
    return None if start.A is None or start.order is None else Candidate(start.A, float(score(start.A)), start.order)
