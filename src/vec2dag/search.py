"""Policy gradient over vectors: sample, decode, reward, ascend.

The search sees a score and nothing else. ``policy_gradient`` is the paper's algorithm with a whole-graph reward,
for any callable.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from . import _kernels
from .graph import vec2dag, vec_dim
from .policy import Adam, GaussianPolicy, Optimiser, RMSprop
from .scores import Linear, Score, choose, run_chunks

__all__ = ["SearchResult", "policy_gradient"]

GraphScore = Callable[[Any], Any]
Callback = Callable[["Progress"], bool | None]


@dataclass(frozen=True)
class Settings:
    """What tells one algorithm from another; the loop is the same."""

    optimiser: Callable[[float], Optimiser]
    learning_rate: float
    n_steps: int
    batch_size: int = 64
    n_epochs: int = 1
    minibatches: int = 1
    clip: float | None = None
    normalise: bool = True
    max_grad_norm: float | None = 0.5


# Learning rates: see docs/algorithms.md for the sweep. They are larger than those of the paper (0.0003, 0.0007)
# because here they act on mu and log sigma themselves and not on the weights of a network that outputs them.
ALGORITHMS: dict[str, Settings] = {
    "ppo": Settings(Adam, learning_rate=0.01, n_steps=3000, clip=0.2),
    "a2c": Settings(RMSprop, learning_rate=0.01, n_steps=3000),
    "conditional": Settings(Adam, learning_rate=0.05, n_steps=1000, batch_size=16),
    "reinforce": Settings(Adam, learning_rate=0.02, n_steps=3000, normalise=False, max_grad_norm=None),
}


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every step; return True from it to stop the search."""

    step: int
    n_steps: int
    best_score: float
    mean_reward: float
    seconds: float


@dataclass(frozen=True)
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
        One entry a step: ``mean_reward``, ``max_reward``, ``best_score``, ``sigma`` (mean), ``edges`` (mean), ``seconds``.
    n_iter : int
        Steps made.
    stopped : str
        ``"steps"``, ``"settled"``, ``"time"``, ``"callback"`` or ``"interrupted"``.
    init : str
        Where the policy started.
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


@dataclass
class _Record:
    """Best graph so far, history, and the reasons to stop."""

    n_steps: int
    patience: int
    time_budget: float | None
    callback: Callback | None
    A: NDArray[np.uint8] | None = None
    score: float = -np.inf
    improved: int = 0
    start: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, ...]] = field(default_factory=list)

    def offer(self, A: NDArray[np.uint8], score: float, resolution: float = 0.0) -> None:
        if score > self.score + resolution:
            self.improved = len(self.rows)
        if score > self.score:
            self.A, self.score = A.copy(), float(score)

    def stop(self, rewards: NDArray[np.float64], sigma: float, edges: float) -> str | None:
        """Write a row of history; the reason to stop now, if there is one."""
        seconds = time.perf_counter() - self.start
        self.rows.append((rewards.mean(), rewards.max(), self.score, sigma, edges, seconds))
        step = len(self.rows)
        if self.callback is not None and self.callback(
            Progress(step, self.n_steps, self.score, float(rewards.mean()), seconds)
        ):
            return "callback"
        if self.time_budget is not None and seconds >= self.time_budget:
            return "time"
        return "settled" if step - self.improved >= self.patience else None

    def history(self) -> dict[str, NDArray[Any]]:
        names = ("mean_reward", "max_reward", "best_score", "sigma", "edges", "seconds")
        return dict(zip(names, np.array(self.rows).reshape(-1, len(names)).T, strict=True))


def policy_gradient(
    score: GraphScore,
    *,
    rng: np.random.Generator,
    d: int | None = None,
    algorithm: str = "ppo",
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
    """Search for the DAG with the highest score by policy gradient on a whole-graph reward.

    Parameters
    ----------
    score : Score or callable
        A :class:`Score`, or any function of one adjacency matrix (d, d) that returns a number; higher is better.
    rng : numpy Generator
    d : int, optional
        Number of nodes; needed unless ``score`` has an attribute ``d``.
    algorithm : {"ppo", "a2c", "reinforce"}
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
        on the best score for this many steps; the default is a fifth of ``n_steps``, at least 200.
    time_budget : float, optional
        Seconds after which the best DAG so far is returned.
    callback : callable, optional
        Called with a :class:`Progress` after every step; returning True ends the search.

    Returns
    -------
    SearchResult
        Also after ``KeyboardInterrupt``, with a warning.
    """
    settings = choose("algorithm", algorithm, ALGORITHMS)
    d = d if d is not None else getattr(score, "d", None)
    if d is None:
        raise ValueError("d is needed: the score has no attribute d")
    n_steps = positive_int("n_steps", n_steps, settings.n_steps)
    batch_size = positive_int("batch_size", batch_size, settings.batch_size)
    patience = positive_int("patience", patience, max(200, n_steps // 5))
    rate = settings.learning_rate if learning_rate is None else learning_rate
    if not rate > 0:
        raise ValueError(f"learning_rate must be positive, got {learning_rate!r}")
    reward = batched(score)
    if algorithm == "conditional":
        if not isinstance(score, Score):
            raise ValueError("algorithm='conditional' needs a Score: a callable has no local parts")
        policy = start_policy(d, init, GaussianPolicy.sparse, rng)
        engine: Engine = LinearConditional(score, policy, rate, batch_size, bound, entropy)
    else:
        policy = start_policy(d, init, GaussianPolicy.cold, rng)
        engine = WholeGraph(reward, policy, settings, rate, batch_size, bound, entropy)
    record = _Record(n_steps, patience, time_budget, callback)
    mode = policy.mode()
    record.offer(mode, mode_score := float(reward(mode[None])[0]))
    stopped = "steps"
    try:
        for _ in range(n_steps):
            batch = engine.step(rng)
            record.offer(batch.A, batch.score)
            if not np.array_equal(moved := policy.mode(), mode):
                mode = moved
                record.offer(mode, mode_score := float(reward(mode[None])[0]))
            reason = record.stop(batch.rewards, float(policy.sigma.mean()), batch.edges)
            if reason is not None:
                stopped = reason
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
        warnings.warn(f"interrupted after {len(record.rows)} steps: returning the best DAG so far", stacklevel=2)
    assert record.A is not None
    name = "random" if init is None else "given"
    history = record.history()
    return SearchResult(
        record.A, record.score, mode, mode_score, policy, history, len(record.rows), stopped, name
    )


@dataclass(frozen=True)
class Batch:
    """What a step of an engine saw: the rewards, the mean number of edges, and the best graph with its score."""

    rewards: NDArray[np.float64]
    edges: float
    A: NDArray[np.uint8]
    score: float


class Engine(Protocol):
    """Samples graphs from a policy and moves the policy uphill."""

    def step(self, rng: np.random.Generator) -> Batch: ...


class WholeGraph:
    """REINFORCE, A2C and PPO for one-step episodes: one reward teaches all coordinates of its vector."""

    def __init__(
        self,
        reward: Callable[[NDArray[np.uint8]], NDArray[np.float64]],
        policy: GaussianPolicy,
        settings: Settings,
        learning_rate: float,
        batch_size: int,
        bound: float,
        entropy: float,
    ) -> None:
        self.reward, self.policy, self.settings = reward, policy, settings
        self.batch_size, self.bound, self.entropy = batch_size, bound, entropy
        self.optimiser = settings.optimiser(learning_rate)

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, score, ascend."""
        z = self.policy.sample(self.batch_size, rng)
        A = vec2dag(np.clip(z, -self.bound, self.bound))
        rewards = self.reward(A)
        self.ascend(z, rewards, rng)
        top = int(rewards.argmax())
        return Batch(rewards, A.sum() / len(A), A[top], float(rewards[top]))

    def ascend(self, z: NDArray[np.float64], rewards: NDArray[np.float64], rng: np.random.Generator) -> None:
        """Move the policy uphill, given the rewards (B,) of the vectors ``z`` (B, m)."""
        settings, policy, batch = self.settings, self.policy, len(z)
        # There is one state, so its value is the mean reward; n / (n - 1) makes it the mean of the *other*
        # rewards, which leaves the gradient unbiased.
        advantage = (rewards - rewards.mean()) * (batch / max(batch - 1, 1))
        old_log_prob = policy.log_prob(z) if settings.clip is not None else np.zeros(batch)
        for _ in range(settings.n_epochs):
            whole = settings.minibatches == 1
            parts = [np.arange(batch)] if whole else np.array_split(rng.permutation(batch), settings.minibatches)
            for part in parts:
                weight = advantage[part]
                if settings.normalise and len(part) > 1:
                    weight = (weight - weight.mean()) / (weight.std(ddof=1) + 1e-8)
                if settings.clip is not None:
                    # min(r a, clip(r) a) is flat where the ratio r has gone too far in the direction of a.
                    ratio = np.exp(policy.log_prob(z[part]) - old_log_prob[part])
                    too_far = np.where(weight > 0, ratio > 1 + settings.clip, ratio < 1 - settings.clip)
                    weight = np.where(too_far, 0.0, weight * ratio)
                gradient = policy.log_prob_gradient(z[part], weight / len(part))
                gradient[1] += self.entropy  # d entropy / d log sigma = 1
                if settings.max_grad_norm is not None:
                    gradient *= min(1.0, settings.max_grad_norm / (np.linalg.norm(gradient) + 1e-6))
                step = self.optimiser.step(gradient)
                policy.mu += step[0]
                policy.log_sigma += step[1]


class LinearConditional:
    """The exact conditional gradient of every coordinate, for linear scores.

    Given all other coordinates the reward is piecewise constant in one, so its expectation over that coordinate
    and the gradient are exact: a Rao-Blackwellised policy gradient ("local expectation gradients", Titsias &
    Lazaro-Gredilla 2015). All the rewards it needs come from the regressions of the sampled graph itself.
    """

    # Partial sums in a fixed number of lanes, so that the result does not depend on the number of threads.
    LANES = 4
    SIGMA_RATE = 0.2  # learning rate of log sigma relative to that of mu

    def __init__(
        self, score: Score, policy: GaussianPolicy, learning_rate: float, batch_size: int, bound: float, entropy: float
    ) -> None:
        if not isinstance(score.regression, Linear):
            raise ValueError("algorithm='conditional' needs a score with linear regression")
        self.score, self.linear, self.policy = score, score.regression, policy
        self.batch_size, self.bound, self.entropy = batch_size, bound, entropy
        rates = np.array([[learning_rate], [self.SIGMA_RATE * learning_rate]])
        self.optimiser = Adam(rates, beta2=0.99, epsilon=1e-12)
        self.upper = np.triu_indices(score.d, k=1)

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, take the exact conditional advantages of every coordinate, ascend."""
        d, B = self.score.d, self.batch_size
        seeds = rng.integers(2**64, size=B, dtype=np.uint64)
        rewards, edges = np.empty(B), np.empty(B, np.int64)
        lanes = min(self.LANES, B)
        edge_gain, node_gradient = np.zeros((lanes, d, d)), np.zeros((lanes, 2, d))
        bounds = np.linspace(0, B, lanes + 1).astype(int)
        draw = self._draw()
        linear, criterion = self.linear, self.score.criterion

        def part(start: int, stop: int) -> None:
            for lane in range(start, stop):
                mine = slice(bounds[lane], bounds[lane + 1])
                _kernels.conditional_batch(
                    seeds[mine], *draw, linear.C, linear.F, linear.scale, linear.base, criterion.kind,
                    self.score.penalty, criterion.offset, edge_gain[lane], node_gradient[lane], rewards[mine], edges[mine],
                )

        run_chunks(part, lanes, self.score.n_jobs)
        self._ascend(edge_gain.sum(axis=0) / B, node_gradient.sum(axis=0) / B)
        top = int(rewards.argmax())
        p, A = np.empty(d), np.empty((d, d), np.uint8)
        _kernels.sample_graph(seeds[top], *draw, p, A)
        return Batch(rewards, float(edges.mean()), A, float(rewards[top]))

    def _draw(self) -> tuple[Any, ...]:
        """What the kernels need to sample: mean, deviation and bound of node potentials, probability of edges."""
        d, policy = self.score.d, self.policy
        on = np.zeros((d, d))
        on[self.upper] = ndtr(policy.mu[d:] / policy.sigma[d:])
        return policy.mu[:d].copy(), policy.sigma[:d].copy(), self.bound, on

    def _ascend(self, edge_gain: NDArray[np.float64], node_gradient: NDArray[np.float64]) -> None:
        d, policy = self.score.d, self.policy
        gradient = np.empty((2, len(policy.mu)))
        gradient[:, :d] = node_gradient
        x, sigma = policy.mu[d:] / policy.sigma[d:], policy.sigma[d:]
        # dJ/dmu = (R_on - R_off) phi(x) / sigma, dJ/dlog sigma = -(R_on - R_off) phi(x) x
        weight = edge_gain[self.upper] * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
        gradient[0, d:] = weight / sigma
        gradient[1, d:] = -weight * x
        gradient[1] += self.entropy
        step = self.optimiser.step(gradient)
        policy.mu += step[0]
        policy.log_sigma += step[1]


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


def batched(score: GraphScore) -> Callable[[NDArray[np.uint8]], NDArray[np.float64]]:
    """A function of a stack of graphs (B, d, d); refuses rewards that are not finite numbers."""
    if isinstance(score, Score):
        return score

    def rewards(A: NDArray[np.uint8]) -> NDArray[np.float64]:
        values = np.array([float(score(a)) for a in A])
        if not np.isfinite(values).all():
            worst = A[int(np.argmin(np.isfinite(values)))]
            raise ValueError(
                f"score must return finite numbers, got {values[~np.isfinite(values)][0]} "
                f"for the graph with the edges {np.argwhere(worst).tolist()}"
            )
        return values

    return rewards


def positive_int(parameter: str, value: int | None, default: int) -> int:
    """``value`` or the default, refused unless a whole number of at least 1."""
    if value is None:
        return default
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{parameter} must be a whole number of at least 1, got {value!r}")
    return int(value)
