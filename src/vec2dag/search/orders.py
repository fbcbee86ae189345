"""The policy over orders: potentials of nodes, rewarded with the score of the local optimum that they descend to."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import whole_number
from .._settings import Settings
from ..graph import topological_order
from ..scores import GraphScore, Score, needs_local
from .budget import Budget
from .checkpoint import Stateful
from .descent import Candidate, descend_all, descent_of, resolution
from .gradient import SIGMA, Record, SearchResult
from .start import Start, policy_at

__all__ = ["Orders"]

# Costly regressions that have no simpler ones are searched on one row of THIN first, if that leaves FEWEST rows.
THIN, FEWEST = 4, 100
# Up to so many nodes such a guide is sought until two chains agree.
FEW_NODES = 12
# Shares of the time for such a guide, and for an approximation of the score.
GUIDED, APPROXIMATE = 0.25, 0.6


@dataclass
class Orders(Settings):
    """Policy over node potentials, rewarded with the refined score of what it samples.

    Potentials are drawn around the best order with a learned standard deviation, every sample descends by
    insertions to its local optimum, and that score is its reward. The mean moves to the best order, the logarithm
    of sigma along the score-function gradient of ranked rewards. A chain starts from random orders and ends after
    ``stall`` batches without improvement; the search ends when ``agree`` chains have ended at the best score.

    Where regressions take their time, restarts are made with simpler ones (additive regressions guide Gaussian
    processes), or on a quarter of the rows, and one chain with the regressions themselves on all rows.

    Parameters
    ----------
    n_steps : int, default 150
        Batches at most.
    batch_size : int, optional
        Orders drawn for a batch; None is 8; where regressions take their time, 2, and 4 with all rows up to 12 nodes.
    stall : int, optional
        None is 5; where regressions take their time, 2 on a part of the rows and 3 on all of them.
    agree : int, optional
        None is 2; where regressions take their time, 2 on a part of the rows and 1 on all of them.
    patience : int, default 60
        Batches without improvement after which the search ends even if no chains have agreed.
    """

    name: ClassVar[str] = "orders"
    descends: ClassVar[bool] = True
    reports_mean: ClassVar[bool] = False
    takes_start: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    n_steps: int = 150
    batch_size: int | None = None
    stall: int | None = None
    agree: int | None = None
    patience: int = 60

    def check(self) -> None:
        """Refuse impossible values."""
        for parameter, value in self.get_params().items():
            if value is not None:
                whole_number(parameter, value)

    def search(self, score: GraphScore, *, rng: np.random.Generator, start: Start, budget: Budget) -> SearchResult:
        """Search for the DAG with the highest score."""
        scored = needs_local(score, "algorithm='orders'")
        cheap = scored.local.cheap
        policy = start.policy_for(scored.d)
        if start.order is None and policy is not None:
            start = replace(start, order=np.argsort(policy.mu[: scored.d], kind="stable"))
        if start.order is not None:
            chain = self if cheap else self._last(scored.d)
            return chain.climb(scored, rng, _descended(scored, start, budget), budget, start.name)
        return self.climb(scored, rng, None, budget) if cheap else self._sparing(scored, rng, budget)

    def filled(self, batch_size: int, stall: int, agree: int) -> "Orders":
        """With these values where none are given."""
        return replace(
            self,
            batch_size=self.batch_size or batch_size,
            stall=self.stall or stall,
            agree=self.agree or agree,
        )

    def _last(self, d: int) -> "Orders":
        """The one chain where regressions take their time."""
        return self.filled(4 if d <= FEW_NODES else 2, 3, 1)

    def _sparing(self, score: Score, rng: np.random.Generator, budget: Budget) -> SearchResult:
        """Restarts with simpler regressions or on a part of the rows, one chain with those of the score on all rows."""
        if (near := score.approximation) is not None:
            return self._approximated(score, near, rng, budget)
        # On many nodes chains hardly ever agree, and a guide need not be the best there is.
        restarts = self.filled(2, 2, 2) if score.d <= FEW_NODES else self.filled(2, 1, 1)
        guide = None
        name, cheaper = "simpler regressions", score.regression.simpler()
        if cheaper is None and score.n >= THIN * FEWEST:
            name, cheaper = "a part of the rows", score.regression.thinned(THIN)
        if cheaper is not None:
            guiding = score.guided_by(cheaper, "simpler")
            # What cannot be regressed on a part, a dummy variable for instance, may well be on the whole.
            with suppress(ValueError):
                guide = budget.memory.once(
                    "guide", rng, lambda: restarts.climb(guiding, rng, None, budget.part(GUIDED))
                )
        if guide is None:
            return self.filled(2, 2, 2).climb(score, rng, None, budget)
        start = Start(name, topological_order(guide.A), guide.A)
        if budget.cancelled:
            return _valued(guide, score, start.name)
        return self._last(score.d).climb(score, rng, _descended(score, start, budget), budget, start.name)

    def _approximated(self, score: Score, near: Score, rng: np.random.Generator, budget: Budget) -> SearchResult:
        """The whole search with an approximation of the score, and a descent with the score itself from there."""
        found = budget.memory.once(
            "approximation", rng, lambda: self.search(near, rng=rng, start=Start(), budget=budget.part(APPROXIMATE))
        )
        start = Start(f"approximation ({found.init})", topological_order(found.A), found.A)
        if budget.cancelled:
            return _valued(found, score, start.name)
        best = _descended(score, start, budget)
        record = Record(score, None, self.patience, budget)
        record.offer(best.A, best.score)
        sigma = float(found.history["sigma"][-1]) if found.n_iter else 1.0
        reason = record.stop(np.array([best.score]), sigma, float(best.A.sum()), best.A)
        stopped = reason or budget.stopped or ("steps" if found.stopped == "steps" else "settled")
        return ended(best, record, stopped, sigma=sigma, init=start.name, algorithm=self.name)

    def climb(
        self, score: Score, rng: np.random.Generator, first: Candidate | None, budget: Budget, init: str = "random"
    ) -> SearchResult:
        """Chains until enough of them agree; the first starts from ``first``, a local optimum, the others anywhere."""
        settings = self.filled(8, 5, 2)
        batch_size, stall, agree = (int(value or 1) for value in (settings.batch_size, settings.stall, settings.agree))
        d, least = score.d, resolution(score)
        record = Record(score, self.n_steps, self.patience, budget)
        at = _Climb(first or empty(score), _Chain(d, least, first))
        descent = descent_of(score, None if first is None else first.A, budget)
        if first is not None and budget.over:
            # It may have been cut short, and would be another one in a whole run.
            budget.memory.close()
        pause = budget.memory.follow("orders", rng=rng, record=record, descent=descent, climb=at)
        record.offer(at.best.A, at.best.score)
        reason = record.reason()
        with budget.guard(score):
            while reason is None and at.agreed < agree and len(record.rows) < self.n_steps and not budget.cancelled:
                batch = descend_all(descent, at.chain.sample(batch_size, rng), score.local.n_jobs, budget)
                whole = not budget.over
                at.chain.learn(batch)
                assert at.chain.best is not None
                sigma = float(np.exp(at.chain.log_sigma))
                if at.chain.best.score > at.best.score + least:
                    at.best, at.agreed = at.chain.best, 0
                    record.offer(at.best.A, at.best.score)
                if at.chain.stalled >= stall:
                    at.agreed += at.chain.best.score >= at.best.score - least
                    at.chain = _Chain(d, least)
                rewards = np.array([found.score for found in batch])
                edges = float(np.mean([found.A.sum() for found in batch]))
                reason = record.stop(rewards, sigma, edges, at.best.A)
                if whole:
                    pause()
        sigma = record.rows[-1][SIGMA] if record.rows else float(np.exp(at.chain.log_sigma))
        ready = first is not None or len(record.rows) > 0
        stopped = reason or budget.stopped or ("settled" if at.agreed >= agree else "steps")
        return ended(at.best, record, stopped, sigma=sigma, init=init, algorithm=self.name, ready=ready)


def empty(score: Score) -> Candidate:
    """The graph without edges, except those that are required."""
    A = score.constraints.required.astype(np.uint8)
    return Candidate(A, float(score(A)), score.constraints.extend(np.arange(score.d)))


def ended(best: Candidate, record: Record, stopped: str, *, sigma: float, **about: Any) -> SearchResult:
    """What a search over orders found: a policy around the best order, with a standard deviation in places."""
    return SearchResult(
        A=best.A,
        score=best.score,
        mode=best.A,
        mode_score=best.score,
        policy=policy_at(best.A, best.order, sigma * 2.0 / len(best.order)),
        history=record.history(),
        n_iter=len(record.rows),
        stopped=stopped,
        **about,
    )


def _valued(guide: SearchResult, score: Score, init: str) -> SearchResult:
    """What a guide has found, with the value of the score itself."""
    with score.local.unhurried():
        value = float(score(guide.A))
    return replace(guide, score=value, mode_score=value, init=init)


def _descended(score: Score, start: Start, budget: Budget) -> Candidate:
    """The local optimum that a start descends to, or the start itself if that is better."""
    assert start.order is not None
    given = score.constraints.required.astype(np.uint8) if start.A is None else start.A
    found: list[Candidate] = []
    with budget.guard(score):
        found.append(Candidate(given, float(score(given)), start.order))
        if not budget.cancelled:
            found += descend_all(descent_of(score, start.A, budget), [start.order], 1, budget)
    if not found:
        with score.local.unhurried():
            found.append(Candidate(given, float(score(given)), start.order))
    return max(found, key=lambda candidate: candidate.score)


@dataclass
class _Chain(Stateful):
    """One climb of the policy over orders, in units of places."""

    STATE: ClassVar[tuple[str, ...]] = ("best", "stalled", "log_sigma")

    d: int
    resolution: float
    best: Candidate | None = None
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

    def learn(self, batch: list[Candidate]) -> None:
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


@dataclass
class _Climb(Stateful):
    """Where the chains are: the best of all of them, the present one, and how many have ended at the best."""

    STATE: ClassVar[tuple[str, ...]] = ("best", "chain", "agreed")

    best: Candidate
    chain: _Chain
    agreed: int = 0
