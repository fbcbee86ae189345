"""The loop of a policy gradient: sample, reward, ascend, until the policy has settled; and what a search returns."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..scores import GraphScore
from .budget import Budget, Progress
from .checkpoint import Stateful, storable
from .policy import GaussianPolicy, Optimiser

if TYPE_CHECKING:
    from .certify import Certificate

__all__ = ["SIGMA", "Batch", "Engine", "Record", "SearchResult", "climb", "told"]

# The columns of history; where regressions take their time the number of them and the hit rate follow.
COLUMNS = ("mean_reward", "max_reward", "best_score", "sigma", "edges", "seconds")
SIGMA, SECONDS, FITS = COLUMNS.index("sigma"), COLUMNS.index("seconds"), len(COLUMNS)


@storable
@dataclass(frozen=True, eq=False, kw_only=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    A : array of shape (d, d), uint8
        The best DAG met, or what refinement has made of it.
    score : float
        Its score.
    mode, mode_score
        The DAG that the mean of the policy decodes to, and its score.
    policy : GaussianPolicy
        As it was at the end.
    history : dict of arrays
        One entry a step: ``mean_reward``, ``max_reward``, ``best_score``, ``sigma`` and ``edges`` (means), ``seconds``;
        for regressions other than linear also ``fits``, those made so far, and ``hit_rate``, the share of local scores
        that were already known. Of a search that was continued the rows of all its runs.
    n_iter : int
        Steps made on all rows, before refinement; ``history`` has one entry for each.
    stopped : str
        ``"steps"``, ``"settled"``, ``"time"``, ``"callback"`` or ``"interrupted"``.
    init : str
        Where the search started: ``"random"``, ``"equal-variance order"``, ``"sparse order"``, ``"a part of the rows"``
        or ``"given"``.
    algorithm : str
        What searched; ``"local"`` is iterated local search, ``"orders"`` the policy over orders.
    ready : bool
        Whether the search came as far as a first graph worth the name: False if it had to end before.
    certificate : Certificate or None
        What has been checked of ``A``, and how closely; None if nothing was, or not to the end.
    fits : int
        Regressions on all rows that :func:`vec2dag.discover` made, refinement included; linear ones, and those
        on a part of the rows, do not count.
    """

    A: NDArray[np.uint8]
    score: float
    mode: NDArray[np.uint8]
    mode_score: float
    policy: GaussianPolicy
    history: dict[str, NDArray[Any]]
    n_iter: int
    stopped: str
    init: str
    algorithm: str
    ready: bool = True
    certificate: "Certificate | None" = None
    fits: int = 0

    @property
    def certified(self) -> bool:
        """Whether ``A`` is a local optimum of the kind that ``certificate`` describes."""
        return self.certificate is not None

    @property
    def converged(self) -> bool:
        """Whether the search came to its own end, and not to that of its time or steps."""
        return self.stopped == "settled" or (self.stopped == "steps" and self.exact)

    @property
    def cut_short(self) -> bool:
        """Whether the clock or a person has ended the search, which could have gone on."""
        return self.stopped not in ("settled", "steps")

    @property
    def exact(self) -> bool:
        """Whether ``A`` is the best of all DAGs."""
        return self.certificate is not None and self.certificate.exact


def told(found: SearchResult) -> SearchResult:
    """The same, with a warning if it was interrupted and there is something to return."""
    if found.stopped == "interrupted" and found.ready:
        warn("interrupted: the best DAG so far is returned")
    return found


@dataclass
class Record(Stateful):
    """Best graph so far, history, and the reasons to stop."""

    STATE: ClassVar[tuple[str, ...]] = ("A", "best", "improved")

    score: GraphScore
    n_steps: int | None
    patience: float
    budget: Budget
    A: NDArray[np.uint8] | None = None
    best: float = -np.inf
    improved: int = 0
    rows: list[tuple[float, ...]] = field(default_factory=list)
    start: float = field(default_factory=time.perf_counter)
    paid: float = 0.0

    def snapshot(self) -> dict[str, Any]:
        """The state, and the rows as one array."""
        return super().snapshot() | {"rows": np.array(self.rows)}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Go on: seconds, and regressions that were made, count from where the last run ended."""
        super().resume(snapshot)
        self.rows = [tuple(row) for row in snapshot["rows"].tolist()]
        if self.rows:
            self.start -= self.rows[-1][SECONDS]
            self.paid = self.rows[-1][FITS] if self._costs else 0.0

    def offer(self, A: NDArray[np.uint8], score: float) -> None:
        """Keep a graph if it is the best so far."""
        if score > self.best:
            self.A, self.best, self.improved = A.copy(), float(score), len(self.rows)

    def stop(self, rewards: NDArray[np.float64], sigma: float, edges: float, mode: NDArray[np.uint8]) -> str | None:
        """Write a row of history; the reason to stop now, if there is one."""
        seconds, mean = time.perf_counter() - self.start, float(rewards.mean())
        row: tuple[float, ...] = (mean, float(rewards.max()), self.best, sigma, edges, seconds)
        if self._costs:
            assert self.score.local is not None
            row += (self.paid + self.score.local.fits, self.score.local.cache.hit_rate)
        self.rows.append(row)
        self.budget.tell(Progress(len(self.rows), self.n_steps, self.best, mean, seconds, mode))
        return self.reason()

    def reason(self) -> str | None:
        """The reason to stop before the next step, if there is one; the first is always made."""
        if not self.rows:
            return None
        if self.budget.over:
            return self.budget.stopped
        return "settled" if len(self.rows) - self.improved >= self.patience else None

    @property
    def _costs(self) -> tuple[str, ...]:
        # Cheap regressions cost nothing, and an arbitrary score has no local parts to count.
        return () if self.score.local is None or self.score.local.cheap else ("fits", "hit_rate")

    def history(self) -> dict[str, NDArray[Any]]:
        """The rows by name."""
        names = (*COLUMNS, *self._costs)
        return dict(zip(names, np.array(self.rows).reshape(-1, len(names)).T, strict=True))

    def result(self, policy: GaussianPolicy, reason: str | None, *, init: str, algorithm: str) -> SearchResult:
        """What a search that has moved ``policy`` found; its decoded mean is one more candidate."""
        mode = policy.mode(self.score.constraints)
        mode_score = float(self.score(mode))
        self.offer(mode, mode_score)
        assert self.A is not None
        return SearchResult(
            A=self.A,
            score=self.best,
            mode=mode,
            mode_score=mode_score,
            policy=policy,
            history=self.history(),
            n_iter=len(self.rows),
            stopped=reason or self.budget.stopped or "steps",
            init=init,
            algorithm=algorithm,
            ready=len(self.rows) > 0,
        )


@dataclass(frozen=True, eq=False)
class Batch:
    """What a step of an engine saw: the rewards, the mean number of edges, and the best graph with its score."""

    rewards: NDArray[np.float64]
    edges: float
    A: NDArray[np.uint8]
    score: float


class Engine(Protocol):
    """Samples graphs from a policy and moves the policy uphill."""

    policy: GaussianPolicy
    optimiser: Optimiser

    def step(self, rng: np.random.Generator) -> Batch:
        """One batch of graphs, one move."""
        ...


def climb(
    score: GraphScore,
    engine: Engine,
    *,
    rng: np.random.Generator,
    budget: Budget,
    n_steps: int,
    patience: int,
    init: str,
    algorithm: str,
) -> SearchResult:
    """Let an engine move its policy uphill until it has settled or the budget is over.

    The policy has settled when neither a sampled DAG nor the decoded mean has improved on the best score for
    ``patience`` steps.
    """
    policy = engine.policy
    record = Record(score, n_steps, patience, budget)
    pause = budget.memory.follow("policy", rng=rng, record=record, policy=policy, optimiser=engine.optimiser)
    mode, reason = policy.mode(score.constraints), record.reason()
    with budget.guard(score):
        if not record.rows:
            record.offer(mode, float(score(mode)))
        while reason is None and len(record.rows) < n_steps:
            batch = engine.step(rng)
            record.offer(batch.A, batch.score)
            if not np.array_equal(moved := policy.mode(score.constraints), mode):
                mode = moved
                record.offer(mode, float(score(mode)))
            reason = record.stop(batch.rewards, float(policy.sigma.mean()), batch.edges, mode)
            pause()
    return record.result(policy, reason, init=init, algorithm=algorithm)
