"""The engines of the search: how a batch of sampled graphs moves the policy.

``WholeGraph`` is the paper's (REINFORCE, A2C, PPO); ``Conditional`` computes the exact conditional expectation of
every coordinate; ``NodeCredit`` stands between them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from . import _kernels
from .graph import vec2dag
from .policy import Adam, GaussianPolicy, Optimiser, RMSprop
from .scores import Linear, Score
from .workers import run_each

GraphScore = Callable[[Any], Any]


@dataclass(frozen=True)
class Settings:
    """What tells one algorithm from another; the loop around them is the same."""

    optimiser: Callable[[float], Optimiser]
    learning_rate: float
    n_steps: int
    batch_size: int = 64
    n_epochs: int = 1
    minibatches: int = 1
    clip: float | None = None
    normalise: bool = True
    max_grad_norm: float | None = 0.5
    patience: int = 600


# Learning rates and memories: docs/algorithms.md shows the sweeps. Those of the whole-graph algorithms are larger
# than in the paper (0.0003, 0.0007) because they act on mu and log sigma themselves and not on the weights of a
# network that outputs them.
ALGORITHMS: dict[str, Settings] = {
    "ppo": Settings(Adam, learning_rate=0.01, n_steps=3000, clip=0.2),
    "a2c": Settings(RMSprop, learning_rate=0.01, n_steps=3000),
    "conditional": Settings(Adam, learning_rate=0.1, n_steps=1000, batch_size=8, patience=50),
    "credit": Settings(Adam, learning_rate=0.02, n_steps=3000),
    "reinforce": Settings(Adam, learning_rate=0.02, n_steps=3000, normalise=False, max_grad_norm=None),
}


@dataclass(frozen=True, eq=False)
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
                    gradient *= min(1.0, settings.max_grad_norm / (float(np.linalg.norm(gradient)) + 1e-6))
                step = self.optimiser.step(gradient)
                policy.mu += step[0]
                policy.log_sigma += step[1]


class LocalEngine:
    """What the engines share that look inside a score, at its local parts."""

    def __init__(
        self,
        score: Score,
        policy: GaussianPolicy,
        learning_rate: float,
        batch_size: int,
        bound: float,
        entropy: float,
    ) -> None:
        self.score, self.policy = score, policy
        self.batch_size, self.bound, self.entropy = batch_size, bound, entropy
        self.optimiser = self.make_optimiser(learning_rate)
        self.upper = np.triu_indices(score.d, k=1)

    def make_optimiser(self, learning_rate: float) -> Optimiser:
        """The optimiser of the engine's choice."""
        return Adam(learning_rate)


class Conditional(LocalEngine):
    """The exact conditional gradient of every coordinate.

    Given all other coordinates the reward is piecewise constant in one, so its expectation over that coordinate
    and the gradient are exact: a Rao-Blackwellised policy gradient ("local expectation gradients", Titsias &
    Lazaro-Gredilla 2015). Subclasses deliver the rewards it needs.
    """

    SIGMA_RATE = 0.2  # learning rate of log sigma relative to that of mu

    def make_optimiser(self, learning_rate: float) -> Optimiser:
        """Adam with a short memory.

        Gradients fall by orders of magnitude as the large effects are settled: a long memory of their size would hold
        the small ones up.
        """
        rates = np.array([[learning_rate], [self.SIGMA_RATE * learning_rate]])
        return Adam(rates, beta1=0.5, beta2=0.8, epsilon=1e-12)

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, take the exact conditional advantages of every coordinate, ascend."""
        B = self.batch_size
        seeds = rng.integers(2**64, size=B, dtype=np.uint64)
        draw = self._draw()
        edge_gain, node_gradient, rewards, edges = self._advantages(seeds, draw)
        self._ascend(edge_gain[self.upper] / B, node_gradient / B)
        top = int(rewards.argmax())
        _, A = self._graph(seeds[top], draw)
        # Scored anew: the rewards of the kernel have the precision of correlations.
        return Batch(rewards, float(edges.mean()), A, float(self.score(A)))

    def _draw(self) -> tuple[Any, ...]:
        """What the kernels need to sample: mean, deviation and bound of node potentials, probability of edges."""
        d, policy = self.score.d, self.policy
        on = np.zeros((d, d))
        on[self.upper] = ndtr(policy.mu[d:] / policy.sigma[d:])
        return policy.mu[:d].copy(), policy.sigma[:d].copy(), self.bound, on

    def _graph(self, seed: np.uint64, draw: tuple[Any, ...]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """The node potentials (d,) and the graph (d, d) that a seed stands for."""
        p, A = np.empty(self.score.d), np.empty((self.score.d, self.score.d), np.uint8)
        _kernels.sample_graph(seed, *draw, p, A)
        return p, A

    def _advantages(self, seeds: NDArray[np.uint64], draw: tuple[Any, ...]) -> tuple[NDArray[Any], ...]:
        """Sums over the graphs of ``R_on - R_off`` (d, d) and of node gradients (2, d); rewards, edges (B,)."""
        raise NotImplementedError

    def _ascend(self, edge_gain: NDArray[np.float64], node_gradient: NDArray[np.float64]) -> None:
        d, policy = self.score.d, self.policy
        gradient = np.empty((2, len(policy.mu)))
        gradient[:, :d] = node_gradient
        x, sigma = policy.mu[d:] / policy.sigma[d:], policy.sigma[d:]
        # dJ/dmu = (R_on - R_off) phi(x) / sigma, dJ/dlog sigma = -(R_on - R_off) phi(x) x
        weight = edge_gain * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
        gradient[0, d:] = weight / sigma
        gradient[1, d:] = -weight * x
        gradient[1] += self.entropy
        step = self.optimiser.step(gradient)
        policy.mu += step[0]
        policy.log_sigma += step[1]


class LinearConditional(Conditional):
    """Compiled: all rewards come from the regressions of the sampled graph itself, ``O(sum_i k_i^3 + d k_i^2)``."""

    # Partial sums in a fixed number of lanes, so that the result does not depend on the number of threads.
    LANES = 4

    def _advantages(self, seeds: NDArray[np.uint64], draw: tuple[Any, ...]) -> tuple[NDArray[Any], ...]:
        d, B = self.score.d, len(seeds)
        linear, criterion = self.score.regression, self.score.criterion
        assert isinstance(linear, Linear)
        rewards, edges = np.empty(B), np.empty(B, np.int64)
        lanes = min(self.LANES, B)
        edge_gain, node_gradient = np.zeros((lanes, d, d)), np.zeros((lanes, 2, d))
        bounds = np.linspace(0, B, lanes + 1).astype(int)

        def one(lane: int) -> None:
            mine = slice(bounds[lane], bounds[lane + 1])
            _kernels.conditional_batch(
                seeds[mine], *draw, linear.stats, criterion.kind, self.score.penalty, criterion.offset,
                edge_gain[lane], node_gradient[lane], rewards[mine], edges[mine],
            )  # fmt: skip

        run_each(one, lanes, self.score.n_jobs)
        return edge_gain.sum(axis=0), node_gradient.sum(axis=0), rewards, edges


class LocalConditional(Conditional):
    """For any regression, through local residuals (which a score remembers)."""

    def _advantages(self, seeds: NDArray[np.uint64], draw: tuple[Any, ...]) -> tuple[NDArray[Any], ...]:
        d, score = self.score.d, self.score
        edge_gain, node_gradient = np.zeros((d, d)), np.zeros((2, d))
        rewards, edges = np.empty(len(seeds)), np.empty(len(seeds), np.int64)
        for b, seed in enumerate(seeds):
            p, A = self._graph(seed, draw)
            links, table = toggle_table(score, A)
            total = float(links.sum())
            edges[b] = A.sum()
            rewards[b] = score.combine(score.residuals(A), edges[b])
            for i, j in np.transpose(self.upper).tolist():
                parent, child = (i, j) if p[i] < p[j] else (j, i)
                gain = float(score.change(table[child, parent], total))
                edge_gain[i, j] += -gain - score.penalty if A[parent, child] else gain - score.penalty
            for i in range(d):
                near = np.flatnonzero(A[i] | A[:, i])
                near = near[np.argsort(p[near])]
                own = score.link(score.local_batch([(i, near[:q]) for q in range(len(near) + 1)])) - links[i]
                # After q neighbours: those behind are children of i, those before its parents.
                toggled = table[near, i]
                children = A[i, near].astype(bool)
                crossed = [toggled[:q][children[:q]].sum() + toggled[q:][~children[q:]].sum() for q in range(len(own))]
                steps = np.diff(score.change(own + crossed, total))
                x = (p[near] - self.policy.mu[i]) / self.policy.sigma[i]
                steps *= np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
                node_gradient[0, i] += steps.sum() / self.policy.sigma[i]
                node_gradient[1, i] += steps @ x
        return edge_gain, node_gradient, rewards, edges


class NodeCredit(LocalEngine):
    """Score-function gradient in which a coordinate is credited only with the local scores that it can change.

    An edge potential changes the two nodes that it joins, a node potential the node and its neighbours; the rest
    of the reward is independent of the coordinate and would only be noise. It needs the local scores of the
    sampled graphs and no others, so it is the choice where a regression is too expensive for conditional rewards.
    """

    def __init__(self, score: Score, *rest: Any) -> None:
        if not score.criterion.decomposable:
            raise ValueError("algorithm='credit' needs a score that is a sum over nodes: 'bic-nv' or 'ls'")
        super().__init__(score, *rest)

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, score, ascend."""
        score, policy, B = self.score, self.policy, self.batch_size
        z = policy.sample(B, rng)
        A = vec2dag(np.clip(z, -self.bound, self.bound))
        part = -score.link(score.residuals(A)) / score.d - score.penalty * A.sum(axis=1)
        near = A | A.swapaxes(1, 2)
        nodes = part + np.einsum("bij,bj->bi", near, part)
        i, j = self.upper
        credit = np.concatenate([nodes, part[:, i] + part[:, j]], axis=1)
        advantage = (credit - credit.mean(axis=0)) * (B / max(B - 1, 1))
        x = (z - policy.mu) / policy.sigma
        gradient = np.stack([(advantage * x).mean(axis=0) / policy.sigma, (advantage * (x * x - 1)).mean(axis=0)])
        gradient[1] += self.entropy
        step = self.optimiser.step(gradient)
        policy.mu += step[0]
        policy.log_sigma += step[1]
        rewards = part.sum(axis=1)
        top = int(rewards.argmax())
        return Batch(rewards, A.sum() / B, A[top], float(rewards[top]))


def toggle_table(score: Score, A: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Links (d,) of the nodes of ``A`` and ``table[i, j]``, the change of link i when ``j -> i`` is toggled."""
    d = score.d
    table = np.zeros((d, d))
    if isinstance(score.regression, Linear):
        c = score.criterion
        links = _kernels.toggle_links(A, score.regression.stats, c.kind, c.offset, 1e-8, table)
        return links, table
    links = score.link(score.residuals(A))
    wanted: list[tuple[int, set[int]]] = []
    for i in range(d):
        parents = set(np.flatnonzero(A[:, i]).tolist())
        wanted += [(i, parents ^ {j}) for j in range(d) if j != i]
    table[~np.eye(d, dtype=bool)] = score.link(score.local_batch(wanted)) - np.repeat(links, d - 1)
    return links, table


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
