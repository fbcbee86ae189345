"""The algorithms of policy gradient: how a batch of sampled graphs moves the policy.

``PPO``, ``A2C`` and ``REINFORCE`` are the paper's, one reward for a whole graph; ``Conditional`` takes the exact
conditional expectation of every coordinate; ``NodeCredit`` stands between them. Each holds settings and owns its
defaults; the state of a search is in its engine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .. import _kernels
from .._checks import brief, choose, generator, number, whole_number
from .._parallel import run_each
from .._settings import Settings
from ..graph import vec2dag
from ..scores import GraphScore, Score, as_score, needs_local
from .budget import Budget, Callback
from .gradient import Batch, Engine, SearchResult, climb, told
from .policy import Adam, GaussianPolicy, Optimiser, RMSprop
from .start import Start, find_start

__all__ = ["A2C", "GRADIENTS", "PPO", "REINFORCE", "Conditional", "NodeCredit", "policy_gradient"]

# Steps without improvement after which the conditional gradient has settled, and from a start near the optimum.
PATIENCE, NEAR_PATIENCE = 50, 20


@dataclass
class PolicyGradient(Settings):
    """What the algorithms share: their settings, and a loop around their engine.

    Parameters
    ----------
    learning_rate : float
        Of the optimiser.
    n_steps : int
        Updates at most.
    batch_size : int
        Graphs sampled for each.
    entropy : float
        Weight of the policy's entropy in the objective.
    bound : float
        Vectors are clipped to ``[-bound, bound]`` before they are decoded.
    patience : int
        The policy has settled, and the search ends, when the best score has not improved for so many steps.
    """

    name: ClassVar[str]
    #: Whether the search ends where no insertion improves, so that refinement need not begin with a descent.
    descends: ClassVar[bool] = False
    #: Whether the estimate, if it is not refined, is the decoded mean of the policy and not the best DAG met.
    reports_mean: ClassVar[bool] = False
    #: Whether ``init="auto"`` may start it at the greedy order for equal variances.
    takes_start: ClassVar[bool] = True
    #: Whether a checkpoint can continue it.
    continues: ClassVar[bool] = True

    learning_rate: float = 0.01
    n_steps: int = 3000
    batch_size: int = 64
    entropy: float = 0.0
    bound: float = 10.0
    patience: int | None = 600

    def check(self) -> None:
        """Refuse values under which nothing could be learned."""
        number("learning_rate", self.learning_rate, above=0)
        whole_number("n_steps", self.n_steps)
        if whole_number("batch_size", self.batch_size) < self._least_batch:
            raise ValueError(
                f"batch_size must be at least {self._least_batch} for {self.name!r}: a reward is compared with others, "
                f"got {self.batch_size}"
            )
        number("entropy", self.entropy)
        number("bound", self.bound, above=0)
        if self.patience is not None:
            whole_number("patience", self.patience)

    _least_batch: ClassVar[int] = 2

    def engine(self, score: GraphScore, policy: GaussianPolicy) -> Engine:
        """The state of a search from a policy, which will be modified."""
        raise NotImplementedError

    def cold(self, d: int, rng: np.random.Generator) -> GaussianPolicy:
        """The policy to start from where nothing is known."""
        return GaussianPolicy.cold(d, rng)

    def search(self, score: GraphScore, *, rng: np.random.Generator, start: Start, budget: Budget) -> SearchResult:
        """Search for the DAG with the highest score."""
        policy = start.policy_for(score.d) or self.cold(score.d, rng)
        return climb(
            score,
            self.engine(score, policy),
            rng=rng,
            budget=budget,
            n_steps=self.n_steps,
            patience=self.patience_from(start),
            init=start.name,
            algorithm=self.name,
        )

    def patience_from(self, start: Start) -> int:
        """Steps without improvement after which a policy that started there has settled."""
        assert self.patience is not None
        return self.patience


def ascend(policy: GaussianPolicy, optimiser: Optimiser, gradient: NDArray[np.float64]) -> None:
    """One step uphill, by ``gradient`` (2, m): by mu, by log sigma."""
    step = optimiser.step(gradient)
    policy.mu += step[0]
    policy.log_sigma += step[1]


# --- whole-graph rewards --------------------------------------------------------------------------------------

# Learning rates and memories: docs/algorithms.md shows the sweeps. Those of the whole-graph algorithms are larger
# than in the paper (0.0003, 0.0007) because they act on mu and log sigma themselves and not on the weights of a
# network that outputs them.


@dataclass
class REINFORCE(PolicyGradient):
    """The plain score-function gradient with the mean reward as its baseline, by Adam.

    Parameters
    ----------
    learning_rate : float, default 0.02
    n_steps, batch_size, entropy, bound, patience
        As in :class:`PPO`.
    """

    name: ClassVar[str] = "reinforce"

    learning_rate: float = 0.02

    def engine(self, score: GraphScore, policy: GaussianPolicy) -> Engine:
        """The state of a search."""
        return WholeGraph(score, policy, self, Update(), Adam(self.learning_rate))


@dataclass
class A2C(PolicyGradient):
    """Advantage actor-critic for one-step episodes: one unclipped step a batch, by RMSprop.

    Parameters
    ----------
    learning_rate, n_steps, batch_size, entropy, bound, patience, normalise, max_grad_norm
        As in :class:`PPO`.
    """

    name: ClassVar[str] = "a2c"

    normalise: bool = True
    max_grad_norm: float | None = 0.5

    def check(self) -> None:
        """Refuse values under which nothing could be learned."""
        super().check()
        if self.max_grad_norm is not None:
            number("max_grad_norm", self.max_grad_norm, above=0)

    def engine(self, score: GraphScore, policy: GaussianPolicy) -> Engine:
        """The state of a search."""
        update = Update(normalise=self.normalise, max_grad_norm=self.max_grad_norm)
        return WholeGraph(score, policy, self, update, RMSprop(self.learning_rate))


@dataclass
class PPO(A2C):
    """Proximal policy optimisation for one-step episodes, by Adam.

    Parameters
    ----------
    learning_rate : float, default 0.01
    n_steps : int, default 3000
        Updates at most.
    batch_size : int, default 64
        Graphs sampled for each.
    entropy : float, default 0.0
        Weight of the policy's entropy in the objective.
    bound : float, default 10.0
        Vectors are clipped to ``[-bound, bound]`` before they are decoded.
    patience : int, default 600
        The policy has settled, and the search ends, when the best score has not improved for so many steps.
    normalise : bool, default True
        Divide advantages by their standard deviation.
    max_grad_norm : float or None, default 0.5
    n_epochs, minibatches : int, default 1
        Passes over a batch, and parts of it in each pass.
    clip : float, default 0.2
        The probability ratio to the sampling policy beyond which a sample teaches nothing more; it acts from the second
        epoch or minibatch on.
    """

    name: ClassVar[str] = "ppo"

    n_epochs: int = 1
    minibatches: int = 1
    clip: float = 0.2

    def check(self) -> None:
        """Refuse values under which nothing could be learned."""
        super().check()
        whole_number("n_epochs", self.n_epochs)
        whole_number("minibatches", self.minibatches)
        number("clip", self.clip, above=0)

    def engine(self, score: GraphScore, policy: GaussianPolicy) -> Engine:
        """The state of a search."""
        update = Update(self.n_epochs, self.minibatches, self.clip, self.normalise, self.max_grad_norm)
        return WholeGraph(score, policy, self, update, Adam(self.learning_rate))


@dataclass(frozen=True)
class Update:
    """How a batch becomes gradients: passes, parts of a pass, and what is done to advantages and gradients."""

    n_epochs: int = 1
    minibatches: int = 1
    clip: float | None = None
    normalise: bool = False
    max_grad_norm: float | None = None


class WholeGraph:
    """One reward teaches all coordinates of its vector."""

    def __init__(
        self, score: GraphScore, policy: GaussianPolicy, settings: PolicyGradient, update: Update, optimiser: Optimiser
    ) -> None:
        self.score, self.policy, self.update, self.optimiser = score, policy, update, optimiser
        self.batch_size, self.bound, self.entropy = settings.batch_size, settings.bound, settings.entropy

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, score, ascend."""
        z = self.policy.sample(self.batch_size, rng)
        A = vec2dag(np.clip(z, -self.bound, self.bound), constraints=self.score.constraints)
        rewards = self.score(A)
        self.ascend(z, rewards, rng)
        top = int(rewards.argmax())
        return Batch(rewards, A.sum() / len(A), A[top], float(rewards[top]))

    def ascend(self, z: NDArray[np.float64], rewards: NDArray[np.float64], rng: np.random.Generator) -> None:
        """Move the policy uphill, given the rewards (B,) of the vectors ``z`` (B, m)."""
        update, policy, batch = self.update, self.policy, len(z)
        # There is one state, so its value is the mean reward; n / (n - 1) makes it the mean of the *other*
        # rewards, which leaves the gradient unbiased.
        advantage = (rewards - rewards.mean()) * (batch / max(batch - 1, 1))
        old_log_prob = policy.log_prob(z) if update.clip is not None else np.zeros(batch)
        for _ in range(update.n_epochs):
            whole = update.minibatches == 1
            parts = [np.arange(batch)] if whole else np.array_split(rng.permutation(batch), update.minibatches)
            for part in parts:
                weight = advantage[part]
                if update.normalise and len(part) > 1:
                    weight = (weight - weight.mean()) / (weight.std(ddof=1) + 1e-8)
                if update.clip is not None:
                    # min(r a, clip(r) a) is flat where the ratio r has gone too far in the direction of a.
                    ratio = np.exp(policy.log_prob(z[part]) - old_log_prob[part])
                    too_far = np.where(weight > 0, ratio > 1 + update.clip, ratio < 1 - update.clip)
                    weight = np.where(too_far, 0.0, weight * ratio)
                gradient = policy.log_prob_gradient(z[part], weight / len(part))
                gradient[1] += self.entropy  # d entropy / d log sigma = 1
                if update.max_grad_norm is not None:
                    gradient *= min(1.0, update.max_grad_norm / (float(np.linalg.norm(gradient)) + 1e-6))
                ascend(policy, self.optimiser, gradient)


# --- rewards of parts -----------------------------------------------------------------------------------------


@dataclass
class Conditional(PolicyGradient):
    """The exact conditional gradient of every coordinate.

    Given all other coordinates the reward is piecewise constant in one, so its expectation over that coordinate
    and the gradient are exact: a Rao-Blackwellised policy gradient ("local expectation gradients", Titsias &
    Lazaro-Gredilla 2015).

    Parameters
    ----------
    learning_rate : float, default 0.1
        Of the means; that of log sigma is a fifth.
    n_steps : int, default 1000
    batch_size : int, default 8
    entropy, bound
        As in :class:`PPO`.
    patience : int, optional
        As in :class:`PPO`; None is 50 steps, and 20 from the greedy order for equal variances.
    """

    name: ClassVar[str] = "conditional"
    _least_batch: ClassVar[int] = 1

    learning_rate: float = 0.1
    n_steps: int = 1000
    batch_size: int = 8
    patience: int | None = None

    def cold(self, d: int, rng: np.random.Generator) -> GaussianPolicy:
        """A cold start that samples sparse graphs."""
        return GaussianPolicy.sparse(d, rng)

    def engine(self, score: GraphScore, policy: GaussianPolicy) -> Engine:
        """The state of a search."""
        local = needs_local(score, f"algorithm={self.name!r}")
        kind = LocalConditional if local.statistics is None else CompiledConditional
        return kind(local, policy, self)

    def patience_from(self, start: Start) -> int:
        """Fewer steps from a start that is known to be good."""
        return self.patience or (NEAR_PATIENCE if start.near else PATIENCE)


class ConditionalEngine:
    """The exact conditional gradient; subclasses deliver the rewards it needs."""

    SIGMA_RATE = 0.2  # learning rate of log sigma relative to that of mu

    def __init__(self, score: Score, policy: GaussianPolicy, settings: Conditional) -> None:
        self.score, self.policy = score, policy
        self.batch_size, self.bound, self.entropy = settings.batch_size, settings.bound, settings.entropy
        # A short memory: gradients fall by orders of magnitude as the large effects are settled, and a long memory of
        # their size would hold the small ones up.
        rates = np.array([[settings.learning_rate], [self.SIGMA_RATE * settings.learning_rate]])
        self.optimiser: Optimiser = Adam(rates, beta1=0.5, beta2=0.8, epsilon=1e-12)
        self.upper = np.triu_indices(score.d, k=1)

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, take the exact conditional advantages of every coordinate, ascend."""
        B = self.batch_size
        seeds = rng.integers(2**64, size=B, dtype=np.uint64)
        draw = self._draw()
        edge_gain, node_gradient, rewards, edges = self._advantages(seeds, draw)
        self._ascend(edge_gain[self.upper] / B, node_gradient / B)
        top = int(rewards.argmax())
        A = self._graph(seeds[top], draw).A
        # Scored anew: the rewards of the kernel have the precision of correlations.
        return Batch(rewards, float(edges.mean()), A, float(self.score(A)))

    def _draw(self) -> tuple[Any, ...]:
        """What the kernels need to sample: mean, deviation and bound of node potentials, probability of edges, what is
        known, and whether that is anything.
        """
        d, policy = self.score.d, self.policy
        on = np.zeros((d, d))
        on[self.upper] = ndtr(policy.mu[d:] / policy.sigma[d:])
        known = self.score.constraints
        return policy.mu[:d].copy(), policy.sigma[:d].copy(), self.bound, on, known.arrays, not known.trivial

    def _graph(self, seed: np.uint64, draw: tuple[Any, ...]) -> "_Sample":
        """What a seed stands for."""
        d = self.score.d
        p, rank, order = np.empty(d), np.empty(d), np.arange(d)
        bits, A = np.empty((d, d), np.uint8), np.empty((d, d), np.uint8)
        _kernels.sample_graph(seed, *draw, bits, p, order, rank, A)
        return _Sample(p, rank, order, bits.astype(bool), A)

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
        ascend(policy, self.optimiser, gradient)


class _Sample(NamedTuple):
    """Potentials (d,), ranks (d,) and order (d,) of nodes, signs of edge potentials (d, d), and the graph (d, d)."""

    p: NDArray[np.float64]
    rank: NDArray[np.float64]
    order: NDArray[np.int64]
    bits: NDArray[np.bool_]
    A: NDArray[np.uint8]


class CompiledConditional(ConditionalEngine):
    """Compiled: all rewards come from the regressions of the sampled graph itself, ``O(sum_i k_i^3 + d k_i^2)``."""

    # Partial sums in a fixed number of lanes, so that the result does not depend on the number of threads.
    LANES = 4

    def _advantages(self, seeds: NDArray[np.uint64], draw: tuple[Any, ...]) -> tuple[NDArray[Any], ...]:
        d, B = self.score.d, len(seeds)
        rewards, edges = np.empty(B), np.empty(B, np.int64)
        lanes = min(self.LANES, B)
        edge_gain, node_gradient = np.zeros((lanes, d, d)), np.zeros((lanes, 2, d))
        bounds = np.linspace(0, B, lanes + 1).astype(int)

        def one(lane: int) -> None:
            mine = slice(bounds[lane], bounds[lane + 1])
            _kernels.conditional_batch(
                seeds[mine], *draw, self.score.statistics, self.score.compiled,
                edge_gain[lane], node_gradient[lane], rewards[mine], edges[mine],
            )  # fmt: skip

        run_each(one, lanes, self.score.local.n_jobs)
        return edge_gain.sum(axis=0), node_gradient.sum(axis=0), rewards, edges


class LocalConditional(ConditionalEngine):
    """For any regression, through local residuals (which a score remembers)."""

    def _advantages(self, seeds: NDArray[np.uint64], draw: tuple[Any, ...]) -> tuple[NDArray[Any], ...]:
        d = self.score.d
        edge_gain, node_gradient = np.zeros((d, d)), np.zeros((2, d))
        rewards, edges = np.empty(len(seeds)), np.empty(len(seeds), np.int64)
        for b, seed in enumerate(seeds):
            sample = self._graph(seed, draw)
            edges[b] = sample.A.sum()
            rewards[b] = self.score(sample.A)
            links, table = self.score.toggles(sample.A)
            self._add_edges(sample, float(links.sum()), table, edge_gain)
            for t in range(d):
                self._add_node(t, sample, links, table, node_gradient)
        return edge_gain, node_gradient, rewards, edges

    def _add_edges(self, sample: _Sample, total: float, table: NDArray[Any], edge_gain: NDArray[Any]) -> None:
        """Add ``R_on - R_off`` of every pair that may have an edge."""
        score, known, sizes = self.score, self.score.constraints, sample.A.sum(axis=0, dtype=np.int64)
        for i, j in np.transpose(self.upper).tolist():
            parent, child = (i, j) if sample.rank[i] < sample.rank[j] else (j, i)
            if known.required[parent, child] or not known.allowed[parent, child]:
                continue
            gain, k = float(score.change(table[child, parent], total)), sizes[child]
            if sample.A[parent, child]:
                edge_gain[i, j] += -gain - score.steps[k - 1]
            elif k < known.max_parents[child]:
                edge_gain[i, j] += gain - score.steps[k]

    def _add_node(
        self, t: int, sample: _Sample, links: NDArray[Any], table: NDArray[Any], node_gradient: NDArray[Any]
    ) -> None:
        """Add the derivatives of the expected reward over the potential of the node at place ``t`` alone.

        It moves between the nearest nodes that must come before and after it.
        """
        score, known, A, total = self.score, self.score.constraints, sample.A, float(links.sum())
        order, i, sizes, d = sample.order, sample.order[t], sample.A.sum(axis=0, dtype=np.int64), self.score.d
        first = int(max([0, *(np.flatnonzero(known.before[order[:t], i]) + 1)]))
        last = int(min([d, *(np.flatnonzero(known.before[i, order[t + 1 :]]) + t + 1)]))
        places = np.array([s for s in range(first, last) if sample.bits[i, order[s]]], dtype=np.int64)
        near, behind = order[places], places < t
        parents = [order[s] for s in range(first) if A[order[s], i]]
        # After q neighbours: of those behind, which may be parents of i; of the others, which may be its children.
        takes = np.where(behind, A[near, i] > 0, known.allowed[near, i])
        gives = np.where(behind, known.allowed[i, near] & (sizes[near] < known.max_parents[near]), A[i, near] > 0)
        sets = [list(parents)]
        for j, taken in zip(near, takes, strict=True):
            room = len(sets[-1]) < known.max_parents[i]
            sets.append([*sets[-1], j] if taken and room else sets[-1])
        own = score.link(score.local.batch([(i, chosen) for chosen in sets]), i) - links[i]
        flips = np.where(behind, score.prices[sizes[near] + 1], score.prices[sizes[near] - 1])
        toggled, paid = gives * table[near, i], gives * (flips - score.prices[sizes[near]])
        counts = range(len(near) + 1)
        crossed = [_crossed(toggled, ~behind, q) for q in counts]
        prices = [_crossed(paid, ~behind, q) + score.prices[len(sets[q])] - score.prices[sizes[i]] for q in counts]
        steps = np.diff(score.change(own + crossed, total) - score.penalty * np.array(prices))
        x = (sample.p[near] - self.policy.mu[i]) / self.policy.sigma[i]
        steps *= np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
        node_gradient[0, i] += steps.sum() / self.policy.sigma[i]
        node_gradient[1, i] += steps @ x


def _crossed(values: NDArray[Any], children: NDArray[np.bool_], q: int) -> float:
    """Sum over the neighbours that a node has crossed when it stands after ``q`` of them."""
    return float(values[:q][children[:q]].sum() + values[q:][~children[q:]].sum())


@dataclass
class NodeCredit(PolicyGradient):
    """Score-function gradient in which a coordinate is credited only with the local scores that it can change.

    An edge potential changes the two nodes that it joins, a node potential the node and its neighbours; the rest
    of the reward is independent of the coordinate and would only be noise. It needs the local scores of the
    sampled graphs and no others, so it is the choice where a regression is too expensive for conditional rewards.

    Parameters
    ----------
    learning_rate : float, default 0.02
    n_steps, batch_size, entropy, bound, patience
        As in :class:`PPO`.
    """

    name: ClassVar[str] = "credit"

    learning_rate: float = 0.02

    def engine(self, score: GraphScore, policy: GaussianPolicy) -> Engine:
        """The state of a search."""
        local = needs_local(score, f"algorithm={self.name!r}")
        if not local.criterion.decomposable:
            raise ValueError("algorithm='credit' needs a score that is a sum over nodes: 'bic-nv' or 'ls'")
        return CreditEngine(local, policy, self)


class CreditEngine:
    """Samples, credits, ascends."""

    def __init__(self, score: Score, policy: GaussianPolicy, settings: NodeCredit) -> None:
        self.score, self.policy = score, policy
        self.batch_size, self.bound, self.entropy = settings.batch_size, settings.bound, settings.entropy
        self.optimiser: Optimiser = Adam(settings.learning_rate)
        self.upper = np.triu_indices(score.d, k=1)

    def step(self, rng: np.random.Generator) -> Batch:
        """Sample, score, ascend."""
        score, policy, B = self.score, self.policy, self.batch_size
        z = policy.sample(B, rng)
        A = vec2dag(np.clip(z, -self.bound, self.bound), constraints=self.score.constraints)
        part = -score.link(score.residuals(A)) / score.d - score.penalty * score.prices[A.sum(axis=1)]
        nodes = part + np.einsum("bij,bj->bi", self._affected(z, A), part)
        i, j = self.upper
        credit = np.concatenate([nodes, part[:, i] + part[:, j]], axis=1)
        advantage = (credit - credit.mean(axis=0)) * (B / max(B - 1, 1))
        x = (z - policy.mu) / policy.sigma
        gradient = np.stack([(advantage * x).mean(axis=0) / policy.sigma, (advantage * (x * x - 1)).mean(axis=0)])
        gradient[1] += self.entropy
        ascend(policy, self.optimiser, gradient)
        rewards = part.sum(axis=1)
        top = int(rewards.argmax())
        return Batch(rewards, A.sum() / B, A[top], float(rewards[top]))

    def _affected(self, z: NDArray[np.float64], A: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """``[b, i, j] = 1`` if the potential of node i may change the parents of another node j in graph b."""
        d, known = self.score.d, self.score.constraints
        near = A | A.swapaxes(1, 2)
        if known.trivial:
            return near
        # What cannot come before i may move with it; an edge that is not there may be there in the other direction.
        i, j = self.upper
        near[:, i, j] = near[:, j, i] = (z[:, d:] > 0) | (known.required | known.required.T)[i, j]
        itself = np.eye(d, dtype=bool)
        affected = (known.before | itself).astype(np.int64) @ (near | itself) > 0
        return (affected & ~itself).astype(np.uint8)


GRADIENTS: dict[str, Callable[[], PolicyGradient]] = {
    kind.name: kind for kind in (PPO, A2C, REINFORCE, Conditional, NodeCredit)
}


def as_algorithm(algorithm: Any, known: Mapping[str, Callable[[], Any]]) -> Any:
    """The settings that a name stands for, or the object itself if it can search."""
    if isinstance(algorithm, str):
        return choose("algorithm", algorithm, known)()
    if isinstance(algorithm, type):
        raise ValueError(f"algorithm={brief(algorithm)} is a class: settings are made by calling it")
    if not hasattr(algorithm, "search"):
        raise ValueError(
            f"algorithm={brief(algorithm)}: allowed are {', '.join(map(repr, known))}, and settings such as "
            "PPO(n_steps=1000)"
        )
    missing = [name for name in ("name", "descends", "reports_mean", "takes_start") if not hasattr(algorithm, name)]
    if missing:
        raise ValueError(f"algorithm={brief(algorithm)} cannot be used: it has no {', '.join(missing)}")
    if isinstance(algorithm, Settings):
        algorithm.check()
    return algorithm


def policy_gradient(
    score: Any,
    *,
    rng: np.random.Generator,
    d: int | None = None,
    algorithm: Any = "ppo",
    init: Any = None,
    time_budget: float | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Search for the DAG with the highest score by policy gradient alone; :func:`vec2dag.discover` does more.

    Parameters
    ----------
    score : Score or callable
        A :class:`Score`, or any function of one adjacency matrix (d, d) that returns a number; higher is better.
    rng : numpy Generator
    d : int, optional
        Number of nodes; needed unless ``score`` has an attribute ``d``.
    algorithm : {"ppo", "a2c", "reinforce", "conditional", "credit"} or settings, default "ppo"
        ``PPO(...)`` and so on, or those of :mod:`vec2dag.sb3`. ``"conditional"`` and ``"credit"`` need a
        :class:`Score`; the others take any callable.
    init : GaussianPolicy, adjacency matrix (d, d), or order (d,), optional
        Where to start; the default is the algorithm's own cold start. It is not modified.
    time_budget : float, optional
        Seconds after which the best DAG so far is returned.
    callback : callable, optional
        Called with a :class:`.Progress` after every step; returning True ends the search.

    Returns
    -------
    SearchResult
        Also after ``KeyboardInterrupt``, with a warning.
    """
    chosen = as_algorithm(algorithm, GRADIENTS)
    graph_score = as_score(score, d)
    start = find_start("random" if init is None else init, graph_score, greedy=False)
    return told(chosen.search(graph_score, rng=generator(rng), start=start, budget=Budget(time_budget, callback)))
