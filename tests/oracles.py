"""Slow, obvious versions of what the library computes fast."""

from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np


def sine(n: int = 150, d: int = 4, seed: int = 0) -> np.ndarray:
    """A chain x0 -> x1 -> ...: every column a sine of the one before, plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 1.5 * np.sin(2.0 * X[:, j - 1]) + 0.4 * X[:, j]
    return X - X.mean(axis=0)


@lru_cache
def _all_dags(d: int) -> np.ndarray:
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    graphs = []
    for states in product((0, 1, 2), repeat=len(pairs)):
        A = np.zeros((d, d), np.uint8)
        for (i, j), state in zip(pairs, states, strict=True):
            A[i, j], A[j, i] = state == 1, state == 2
        if acyclic(A):
            graphs.append(A)
    return np.array(graphs)


def all_dags(d: int) -> np.ndarray:
    """Every DAG of d nodes, by enumeration of all orientations of all pairs."""
    return _all_dags(d).copy()


def acyclic(A: np.ndarray) -> bool:
    """No closed walk of any length up to d."""
    walk = A = (np.asarray(A) != 0).astype(np.int64)
    for _ in range(len(A)):
        if np.trace(walk):
            return False
        walk = np.minimum(walk @ A, 1)
    return True


def markov_class(A: np.ndarray) -> tuple[bytes, frozenset]:
    """What the members of a Markov equivalence class share: skeleton and v-structures (Verma & Pearl 1990)."""
    adjacent = (A + A.T) > 0
    d = len(A)
    v = {(i, k, j) for i, k, j in product(range(d), repeat=3) if i < j and A[i, k] and A[j, k] and not adjacent[i, j]}
    return adjacent.tobytes(), frozenset(v)


def markov_equivalent(A: np.ndarray, B: np.ndarray) -> bool:
    """Same skeleton and same v-structures."""
    return markov_class(A) == markov_class(B)


def mean_squared_residual(X: np.ndarray, node: int, parents: list[int]) -> float:
    """Least squares with an intercept, on the data."""
    design = np.column_stack([np.ones(len(X)), X[:, parents]])
    fitted = design @ np.linalg.lstsq(design, X[:, node], rcond=None)[0]
    return float(np.mean((X[:, node] - fitted) ** 2))


def residual_ratio_in_long_double(X: np.ndarray, node: int, parents: list[int]) -> float:
    """What parents leave of the variance of a node: Gram-Schmidt, twice, in extended precision on the data."""
    Z = X.astype(np.longdouble)
    Z = Z - Z.mean(axis=0)
    Z = Z / np.sqrt((Z**2).sum(axis=0))
    basis: list[np.ndarray] = []
    for column in [*parents, node]:
        v = Z[:, column].copy()
        for _ in range(2):
            for q in basis:
                v -= (q @ v) * q
        norm = (v**2).sum()
        if column != node:
            basis.append(v / np.sqrt(norm))
    return float(norm)


def graph_score(X: np.ndarray, A: np.ndarray, criterion: str, lambda0: float | None = None) -> float:
    """The criteria of the paper, divided by n d, from regressions on the data."""
    n, d = X.shape
    ssr = np.array([n * mean_squared_residual(X, j, np.flatnonzero(A[:, j]).tolist()) for j in range(d)])
    edges, price = A.sum(), np.log(n)
    if criterion == "bic-ev":
        value = -(n * d * np.log(ssr.sum() / (n * d)) + edges * price)
    elif criterion == "bic-nv":
        value = -(n * np.log(ssr / n).sum() + edges * price)
    else:
        value = -(ssr.sum() + (price if lambda0 is None else lambda0) * edges)
    return float(value / (n * d))


def expected_reward(d: int, mu: np.ndarray, sigma: np.ndarray, reward: Callable[[np.ndarray], float]) -> float:
    """``E[R(vec2dag(z))]`` for d <= 3 by exact enumeration: orders by quadrature, edges by their probabilities."""
    from math import erf, sqrt

    from vec2dag import vec2dag

    # Integrate over the node potentials on a fine product grid of Gauss-Hermite nodes is inexact for steps, so
    # integrate the probability of each order as a one-dimensional integral instead.
    def phi(x: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)

    def cdf(x: np.ndarray) -> np.ndarray:
        return 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))

    def order_probability(order: tuple[int, ...]) -> float:
        x = np.linspace(-12, 12, 4001)
        if d == 2:
            i, j = order
            return float(0.5 * (1 + erf((mu[j] - mu[i]) / sqrt(2 * (sigma[i] ** 2 + sigma[j] ** 2)))))
        i, j, k = order  # p_i < p_j < p_k: integrate over p_j
        p = mu[j] + sigma[j] * x
        below, above = cdf((p - mu[i]) / sigma[i]), 1 - cdf((p - mu[k]) / sigma[k])
        return float(np.trapezoid(phi(x) * below * above, x))

    from itertools import permutations

    m = d * (d - 1) // 2
    on = cdf(mu[d:] / sigma[d:])
    total = 0.0
    for order in permutations(range(d)):
        weight = order_probability(order)
        for edges in product((0, 1), repeat=m):
            z = np.empty(d + m)
            z[list(order)] = np.arange(d)
            z[d:] = np.where(edges, 1.0, -1.0)
            total += weight * np.prod(np.where(edges, on, 1 - on)) * reward(vec2dag(z))
    return float(total)


class OnStatistics:
    """A regression that is linear without being ``Linear``: takes the general code paths."""

    def __init__(self, linear):
        self.n, self.d, self.names, self.linear = linear.n, linear.d, linear.names, linear

    def residual(self, node: int, parents: list[int]) -> float:
        return self.linear.residual(node, parents)
