"""Policy gradient over vectors: sample, decode, reward, ascend, until the policy has settled.

The search sees a score and nothing else.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .engines import (
    ALGORITHMS,
    Engine,
    GraphScore,
    LinearConditional,
    LocalConditional,
    NodeCredit,
    Settings,
    WholeGraph,
    batched,
)
from .graph import vec_dim
from .policy import GaussianPolicy
from .scores import Linear, OutOfTime, Score, choose

__all__ = ["SearchResult", "policy_gradient"]

Callback = Callable[["Progress"], bool | None]


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every step; return True from it to stop the search.

    ``mode`` (d, d) is the DAG that the mean of the policy decodes to; the best so far, for the policy over orders.
    """

    step: int
    n_steps: int
    best_score: float
    mean_reward: float
    seconds: float
    mode: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    A : array of shape (d, d), uint8
        The best DAG met, sampled or decoded from the mean.
    score : float
        Its score.
    mode, mode_score
        The DAG that the mean of the policy decodes to, and its score.
    policy : GaussianPolicy
        As it was at the end.
    history : dict of arrays
        One entry a step: ``mean_reward``, ``max_reward``, ``best_score``, ``sigma`` and ``edges`` (means), ``seconds``;
        for regressions other than linear also ``fits``, those made so far, and ``hit_rate``, the share of local scores
        that were already known.
    n_iter : int
        Steps made.
    stopped : str
        ``"steps"``, ``"settled"``, ``"time"``, ``"callback"`` or ``"interrupted"``.
    init : str
        Where the policy started: ``"random"``, ``"equal-variance order"``, ``"a quarter of the rows"`` or ``"given"``.
    algorithm : str
        What searched; ``"orders"`` is the policy over orders.
    certified : bool
        Whether no insertion of a node and no change of an edge improves the score.
    exact : bool
        Whether ``A`` is the best of all DAGs.
    fits : int
        Regressions on all rows that :func:`vec2dag.discover.discover` made, refinement included; linear ones, and those
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
    certified: bool = False
    exact: bool = False
    fits: int = 0


@dataclass
class Record:
    """Best graph so far, history, and the reasons to stop."""

    n_steps: int
    patience: int
    time_budget: float | None
    callback: Callback | None
    source: Any = None
    A: NDArray[np.uint8] | None = None
    score: float = -np.inf
    improved: int = 0
    start: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, ...]] = field(default_factory=list)

    def offer(self, A: NDArray[np.uint8], score: float) -> None:
        """Keep a graph if it is the best so far."""
        if score > self.score:
            self.A, self.score, self.improved = A.copy(), float(score), len(self.rows)

    def stop(self, rewards: NDArray[np.float64], sigma: float, edges: float, mode: NDArray[np.uint8]) -> str | None:
        """Write a row of history; the reason to stop now, if there is one."""
        seconds = time.perf_counter() - self.start
        row = (rewards.mean(), rewards.max(), self.score, sigma, edges, seconds)
        self.rows.append(row if self.source is None else (*row, self.source.fits, self.source.cache.hit_rate))
        step = len(self.rows)
        if self.callback is not None and self.callback(
            Progress(step, self.n_steps, self.score, float(rewards.mean()), seconds, mode)
        ):
            return "callback"
        if self.time_budget is not None and seconds >= self.time_budget:
            return "time"
        return "settled" if step - self.improved >= self.patience else None

    def __post_init__(self) -> None:
        # Linear regressions cost nothing, and an arbitrary score has no local parts to count.
        if not isinstance(self.source, Score) or isinstance(self.source.regression, Linear):
            self.source = None

    def history(self) -> dict[str, NDArray[Any]]:
        """The rows by name."""
        costs = () if self.source is None else ("fits", "hit_rate")
        names = ("mean_reward", "max_reward", "best_score", "sigma", "edges", "seconds", *costs)
        return dict(zip(names, np.array(self.rows).reshape(-1, len(names)).T, strict=True))


def policy_gradient(
    score: GraphScore,
    *,
    rng: np.random.Generator,
    d: int | None = None,
    algorithm: str = "ppo",
    settings: Settings | None = None,
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    entropy: float = 0.0,
    bound: float = 10.0,
    init: GaussianPolicy | None = None,
    patience: int | None = None,
    time_budget: float | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Search for the DAG with the highest score by policy gradient.

    Parameters
    ----------
    score : Score or callable
        A :class:`Score`, or any function of one adjacency matrix (d, d) that returns a number; higher is better.
    rng : numpy Generator
    d : int, optional
        Number of nodes; needed unless ``score`` has an attribute ``d``.
    algorithm : {"conditional", "credit", "ppo", "a2c", "reinforce"}
        ``"conditional"`` and ``"credit"`` need a :class:`Score`; the others take any callable.
    settings : Settings, optional
        In place of the algorithm's own: epochs, minibatches, clip, advantage normalisation, gradient norm, optimiser
        (``dataclasses.replace(vec2dag.engines.ALGORITHMS["ppo"], n_epochs=4)``).
    n_steps, batch_size : int, optional
        Updates at most, and graphs sampled for each; None takes the algorithm's own.
    learning_rate : float, optional
    entropy : float, default 0.0
        Weight of the policy's entropy in the objective.
    bound : float, default 10.0
        Vectors are clipped to ``[-bound, bound]`` before they are decoded.
    init : GaussianPolicy, optional
        Where to start; the default is the paper's cold start. It is not modified.
    patience : int, optional
        The policy has settled, and the search ends, when neither a sampled DAG nor the decoded mean has improved
        on the best score for this many steps; None takes the algorithm's own.
    time_budget : float, optional
        Seconds after which the best DAG so far is returned.
    callback : callable, optional
        Called with a :class:`Progress` after every step; returning True ends the search.

    Returns
    -------
    SearchResult
        Also after ``KeyboardInterrupt``, with a warning.
    """
    own = choose("algorithm", algorithm, ALGORITHMS)
    if settings is not None and algorithm in ("conditional", "credit"):
        raise ValueError(f"settings are for 'ppo', 'a2c' and 'reinforce': algorithm={algorithm!r} has none to set")
    settings = own if settings is None else settings
    check_options(bound, entropy, time_budget)
    d = d if d is not None else getattr(score, "d", None)
    if d is None:
        raise ValueError("d is needed: the score has no attribute d")
    n_steps = positive_int("n_steps", n_steps, settings.n_steps)
    batch_size = positive_int("batch_size", batch_size, settings.batch_size)
    if batch_size < 2 and algorithm != "conditional":
        raise ValueError(f"batch_size must be at least 2 for algorithm={algorithm!r}: a reward is compared with others")
    patience = positive_int("patience", patience, settings.patience)
    rate = settings.learning_rate if learning_rate is None else learning_rate
    if not rate > 0:
        raise ValueError(f"learning_rate must be positive, got {learning_rate!r}")
    reward = batched(score)
    policy = start_policy(d, init, GaussianPolicy.sparse if algorithm == "conditional" else GaussianPolicy.cold, rng)
    engine: Engine
    if algorithm in ("conditional", "credit"):
        if not isinstance(score, Score):
            raise ValueError(f"algorithm={algorithm!r} needs a Score: a callable has no local parts")
        linear = isinstance(score.regression, Linear)
        kind = NodeCredit if algorithm == "credit" else LinearConditional if linear else LocalConditional
        engine = kind(score, policy, rate, batch_size, bound, entropy)
    else:
        engine = WholeGraph(reward, policy, settings, rate, batch_size, bound, entropy)
    record = Record(n_steps, patience, time_budget, callback, score)
    mode = policy.mode()
    record.offer(mode, float(reward(mode[None])[0]))
    stopped = "steps"
    deadline = np.inf if time_budget is None else record.start + time_budget
    try:
        with score.until(deadline) if isinstance(score, Score) else nullcontext():
            for _ in range(n_steps):
                batch = engine.step(rng)
                record.offer(batch.A, batch.score)
                if not np.array_equal(moved := policy.mode(), mode):
                    mode = moved
                    record.offer(mode, float(reward(mode[None])[0]))
                reason = record.stop(batch.rewards, float(policy.sigma.mean()), batch.edges, mode)
                if reason is not None:
                    stopped = reason
                    break
    except OutOfTime:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        warnings.warn(f"interrupted after {len(record.rows)} steps: returning the best DAG so far", stacklevel=2)
    mode = policy.mode()
    mode_score = float(reward(mode[None])[0])
    if record.A is None:
        raise ValueError("score returned no finite number for any graph")
    name = "random" if init is None else "given"
    history = record.history()
    return SearchResult(
        record.A, record.score, mode, mode_score, policy, history, len(record.rows), stopped, name, algorithm
    )


def start_policy(
    d: int,
    init: GaussianPolicy | None,
    cold: Callable[[int, np.random.Generator], GaussianPolicy],
    rng: np.random.Generator,
) -> GaussianPolicy:
    """A policy that the search may modify: a cold start, or a copy of ``init``."""
    if init is None:
        return cold(d, rng)
    if len(init.mu) != vec_dim(d):
        raise ValueError(f"init has {len(init.mu)} coordinates; graphs of {d} nodes have {vec_dim(d)}")
    return GaussianPolicy(init.mu.copy(), init.log_sigma.copy())


def check_options(bound: float, entropy: float, time_budget: float | None) -> None:
    """Refuse values under which nothing could be learned."""
    if not bound > 0:
        raise ValueError(f"bound must be positive, got {bound!r}")
    if not np.isfinite(entropy):
        raise ValueError(f"entropy must be a finite number, got {entropy!r}")
    if time_budget is not None and not time_budget > 0:
        raise ValueError(f"time_budget must be a positive number of seconds or None, got {time_budget!r}")


def positive_int(parameter: str, value: int | None, default: int) -> int:
    """``value`` or the default, refused unless a whole number of at least 1."""
    if value is None:
        return default
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{parameter} must be a whole number of at least 1, got {value!r}")
    return int(value)
