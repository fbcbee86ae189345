"""RCL-OG: Yang, Yu, Wang, Wu and Guo, "Reinforcement causal structure learning on order graph", AAAI 2023.

Orders of the nodes are the paths of the order graph from the empty set to the full one: the state is the set of nodes
placed so far, an action places one more. Deep Q-learning finds the value of every transition, a softmax of the values
is the probability of the transition, and orders are sampled from it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vec2dag import Score
from vec2dag._parallel import one_blas_thread
from vec2dag.prune import prune_linear
from vec2dag.search.policy import Adam

Array = NDArray[np.float64]


class Network:
    """Values ``Q(s, .)`` of all actions: a perceptron with two hidden layers of rectified units.

    Parameters
    ----------
    d : int
        Nodes: the width of a state (1 for every node placed) and of the values.
    hidden : int
        Units of a hidden layer.
    rng : numpy Generator
    """

    def __init__(self, d: int, hidden: int, rng: np.random.Generator) -> None:
        self.shapes = [(d, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, d), (d,)]
        fan_in = (d, d, hidden, hidden, hidden, hidden)
        parts = [(rng.uniform(-1, 1, s) / np.sqrt(f)).ravel() for s, f in zip(self.shapes, fan_in, strict=True)]
        self.theta: Array = np.concatenate(parts)
        ends = np.cumsum([part.size for part in parts])
        self.slices = [slice(end - part.size, end) for part, end in zip(parts, ends.tolist(), strict=True)]

    def parts(self, flat: Array) -> list[Array]:
        """Weights and biases of the layers as views of one vector."""
        return [flat[where].reshape(shape) for where, shape in zip(self.slices, self.shapes, strict=True)]

    def __call__(self, states: Array, theta: Array | None = None) -> Array:
        """Values (B, d) of the actions in ``states`` (B, d); impossible ones have ``-inf``."""
        W1, b1, W2, b2, W3, b3 = self.parts(self.theta if theta is None else theta)
        values = np.maximum(np.maximum(states @ W1 + b1, 0.0) @ W2 + b2, 0.0) @ W3 + b3
        return np.where(states > 0, -np.inf, values)

    def gradient(self, states: Array, actions: NDArray[np.int64], targets: Array) -> tuple[float, Array]:
        """Huber loss of ``Q(s, a) - target``, averaged over the batch, and its gradient by ``theta``."""
        W1, b1, W2, b2, W3, b3 = self.parts(self.theta)
        first = np.maximum(states @ W1 + b1, 0.0)
        second = np.maximum(first @ W2 + b2, 0.0)
        rows = np.arange(len(states))
        error = (second @ W3 + b3)[rows, actions] - targets
        clipped = np.clip(error, -1.0, 1.0)
        by_values = np.zeros(states.shape)
        by_values[rows, actions] = clipped / len(states)
        by_second = (by_values @ W3.T) * (second > 0)
        by_first = (by_second @ W2.T) * (first > 0)
        slopes = (
            states.T @ by_first,
            by_first.sum(axis=0),
            first.T @ by_second,
            by_second.sum(axis=0),
            second.T @ by_values,
            by_values.sum(axis=0),
        )
        value = float(np.mean(clipped * (error - clipped / 2)))
        return value, np.concatenate([slope.ravel() for slope in slopes])


def soft_value(values: Array, temperature: float) -> Array:
    """``V(s) = T ln sum_a exp(Q(s, a) / T)`` of values (B, d); 0 where no action is left."""
    top = values.max(axis=1, keepdims=True)
    final = np.isneginf(top[:, 0])
    top[final] = 0.0
    total = np.exp((values - top) / temperature).sum(axis=1)
    total[final] = 1.0
    return top[:, 0] + temperature * np.log(total)


def draw(values: Array, temperature: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Actions (B,) with the probabilities ``softmax(Q / T)`` of values (B, d): the largest of Gumbel-perturbed ones."""
    return np.argmax(values / temperature + rng.gumbel(size=values.shape), axis=1)


class OrderGraph:
    """Walk over sets of nodes; the rewards of a whole path sum to its score up to a constant.

    Placing i after the set U leaves the mean squared residual ``r_i(U)``. The reward is the change of the part of the
    score that regressions decide: ``-ln r_i(U) / d`` for ``bic-nv``, ``-r_i(U) / d`` for ``ls``, and for ``bic-ev``
    ``ln C - ln (C + r_i(U))``, where ``C`` sums the residuals of the nodes in U (the first node: ``-ln r_i``).
    ``bic-ev`` is no sum over nodes, so ``C`` also depends on the path to U; the values average over paths.

    Parameters
    ----------
    score : Score
    """

    def __init__(self, score: Score) -> None:
        self.score = score
        self.reset()

    def reset(self) -> None:
        """Back to the empty set."""
        self.placed: list[int] = []
        self.state: Array = np.zeros(self.score.d)
        self.total = 0.0

    def step(self, node: int) -> float:
        """Place ``node``; its reward."""
        residual = self.score.local(node, self.placed)
        if self.score.criterion.decomposable:
            reward = -float(self.score.link(residual)) / self.score.d
        else:
            reward = (np.log(self.total) if self.placed else 0.0) - np.log(self.total + residual)
            self.total += residual
        self.placed.append(node)
        self.state = self.state.copy()
        self.state[node] = 1.0
        return float(reward)


def train(
    score: Score,
    rng: np.random.Generator,
    *,
    steps: int,
    batch: int,
    hidden: int,
    learning_rate: float,
    temperature: float,
    memory: int,
    sync: int,
) -> Network:
    """Soft Q-learning with replay and a target network; the parameters are those of :func:`rcl_og`."""
    d = score.d
    network = Network(d, hidden, rng)
    frozen = network.theta.copy()
    adam = Adam(learning_rate, epsilon=1e-8)
    states, nexts = np.zeros((memory, d)), np.zeros((memory, d))
    actions, rewards = np.zeros(memory, dtype=np.int64), np.zeros(memory)
    walk = OrderGraph(score)
    for step in range(steps):
        if len(walk.placed) == d:
            walk.reset()
        # All actions are random at first, one in twenty from the middle on.
        if rng.random() < max(0.05, 1.0 - 1.9 * step / steps):
            action = int(rng.choice(np.flatnonzero(walk.state == 0)))
        else:
            action = int(draw(network(walk.state[None]), temperature, rng)[0])
        slot = step % memory
        states[slot], actions[slot] = walk.state, action
        rewards[slot], nexts[slot] = walk.step(action), walk.state
        if step < batch:
            continue
        if step % sync == 0:
            frozen = network.theta.copy()
        sample = rng.integers(min(step + 1, memory), size=batch)
        targets = rewards[sample] + soft_value(network(nexts[sample], frozen), temperature)
        _, gradient = network.gradient(states[sample], actions[sample], targets)
        network.theta = network.theta - adam.step(gradient)
    return network


def sample_orders(
    network: Network, d: int, count: int, temperature: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Orders (count, d) that the transition probabilities generate, first node first."""
    states, orders = np.zeros((count, d)), np.empty((count, d), dtype=np.int64)
    for k in range(d):
        orders[:, k] = draw(network(states), temperature, rng)
        states[np.arange(count), orders[:, k]] = 1.0
    return orders


@one_blas_thread()
def rcl_og(
    X: ArrayLike,
    rng: np.random.Generator,
    *,
    score: Score | None = None,
    prune: Callable[[ArrayLike, ArrayLike], NDArray[np.uint8]] = prune_linear,
    steps: int = 40_000,
    batch: int = 32,
    samples: int = 1000,
    hidden: int = 64,
    learning_rate: float = 1e-3,
    temperature: float = 0.1,
    memory: int = 10_000,
    sync: int = 200,
) -> NDArray[np.uint8]:
    """Best-scoring DAG of the orders that RCL-OG samples.

    Parameters
    ----------
    X : array of shape (n, d)
    rng : numpy Generator
    score : Score, optional
        Of ``X``; the default is linear ``bic-ev``, as in the ALIAS paper for linear data.
    prune : callable (X, A) -> A, default prune_linear
        Selects the parents of each node among all nodes before it; the default keeps coefficients above 0.3.
    steps, batch, samples : int
        Training steps, size of a batch of transitions, and orders sampled: 40,000, 32 and 1,000 in the ALIAS paper.
    hidden, learning_rate, memory, sync : int, float, int, int
        Units of each hidden layer, rate of Adam, transitions remembered, and steps between copies of the network that
        gives the targets: usual values of deep Q-learning.
    temperature : float, default 0.1
        Of the softmax, in units of the score divided by ``n d``. Exact posterior probabilities have ``2 / (n d)``, far
        below the errors of the values; of 0.1 and 0.01, this one found graphs of higher score.

    Returns
    -------
    A : array of shape (d, d), uint8
        ``A[i, j] = 1`` means i -> j.
    """
    values = np.asarray(X, dtype=np.float64)
    if score is None:
        score = Score(values, criterion="bic-ev", n_jobs=1)
    network = train(
        score,
        rng,
        steps=steps,
        batch=batch,
        hidden=hidden,
        learning_rate=learning_rate,
        temperature=temperature,
        memory=memory,
        sync=sync,
    )
    orders = np.unique(sample_orders(network, score.d, samples, temperature, rng), axis=0)
    position = np.argsort(orders, axis=1)
    complete = (position[:, :, None] < position[:, None, :]).astype(np.uint8)
    graphs = np.stack([prune(values, A) for A in complete])
    return graphs[int(np.argmax(score(graphs)))]
