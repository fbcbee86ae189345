"""Vec2DAG without reinforcement learning: the ablation "Role of RL" of the ALIAS paper.

The vector is a weighted DAG, ``A = (E + E^T) * H(grad p)``, ``(grad p)_ij = p_j - p_i``, and Adam minimises
``ln(|X - X A|^2 / (n d)) + lambda1 |z|_1``. The step ``H`` has no gradient; the straight-through estimator
differentiates ``grad p`` in its place.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vec2dag import vec_dim
from vec2dag._parallel import one_blas_thread
from vec2dag.search.policy import Adam

Array = NDArray[np.float64]
# The twelve settings of the paper's table.
SETTINGS = tuple(
    {"learning_rate": rate, "lambda1": price} for rate in (1e-2, 1e-3, 1e-4, 1e-5) for price in (1e-3, 1e-5, 1e-7)
)


@cache
def _places(d: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Rows and columns of the upper triangle, and the identity: the same at every step."""
    rows, columns = np.triu_indices(d, k=1)
    return rows, columns, np.eye(d)


def weights(z: Array, d: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """``A``, ``E + E^T`` and ``H(grad p)``, all (d, d), of a vector ``z``: potentials, then the upper triangle of E."""
    rows, columns, _ = _places(d)
    p, E = z[:d], np.zeros((d, d))
    E[rows, columns] = E[columns, rows] = z[d:]
    H = p > p[:, None]
    return E * H, E, H


def loss(z: Array, S: Array, lambda1: float) -> tuple[float, Array]:
    """Loss and its straight-through gradient.

    Parameters
    ----------
    z : array of shape (d * (d + 1) / 2,)
    S : array of shape (d, d)
        Covariance of the data.
    lambda1 : float

    Returns
    -------
    value : float
    gradient : array of shape (d * (d + 1) / 2,)
        Exact for the edges; for the potentials with ``dH/d(grad p) = 1``.
    """
    d = len(S)
    rows, columns, identity = _places(d)
    A, E, H = weights(z, d)
    residual = identity - A
    slope = S @ residual
    squares = float(np.vdot(residual, slope))
    by_A = slope * (-2.0 / squares)
    by_E, by_H = by_A * H, by_A * E
    gradient = lambda1 * np.sign(z)
    gradient[:d] += by_H.sum(axis=0) - by_H.sum(axis=1)
    gradient[d:] += by_E[rows, columns] + by_E[columns, rows]
    return math.log(squares / d) + lambda1 * float(np.abs(z).sum()), gradient


@one_blas_thread()
def vec2dag_adam(
    X: ArrayLike,
    rng: np.random.Generator,
    *,
    learning_rate: float = 1e-3,
    lambda1: float = 1e-7,
    scale: float = 0.01,
    tolerance: float = 1e-4,
    travel: float = 0.5,
    max_steps: int = 300_000,
    threshold: float = 0.3,
) -> NDArray[np.uint8]:
    """Graph of a linear model by Adam on the Vec2DAG vector.

    Parameters
    ----------
    X : array of shape (n, d)
    rng : numpy Generator
        Draws the start.
    learning_rate, lambda1 : float
        The defaults are the best of the paper's :data:`SETTINGS`.
    scale : float, default 0.01
        Standard deviation of the start. The paper does not say; the default is the cold start of the policy that Adam
        replaces.
    tolerance, travel : float
        Converged when the best loss has fallen by less than ``tolerance`` during ``travel / learning_rate`` steps,
        the time in which a coordinate can move by about ``travel``, and at least 1,000, the memory of Adam.
    max_steps : int, default 300,000
    threshold : float, default 0.3
        Weights of at most this size are no edges.

    Returns
    -------
    A : array of shape (d, d), uint8
        ``A[i, j] = 1`` means i -> j; of the vector with the smallest loss on the way.
    """
    values = np.asarray(X, dtype=np.float64)
    values = values - values.mean(axis=0)
    S, d = values.T @ values / len(values), values.shape[1]
    z = scale * rng.standard_normal(vec_dim(d))
    adam = Adam(learning_rate, epsilon=1e-8)
    best, best_z, reference = np.inf, z, np.inf
    patience = max(1000, math.ceil(travel / learning_rate))
    for step in range(1, max_steps + 1):
        value, gradient = loss(z, S, lambda1)
        if value < best:
            best, best_z = value, z
        if step % patience == 0:
            if best > reference - tolerance:
                break
            reference = best
        z = z - adam.step(gradient)
    A, _, _ = weights(best_z, d)
    return (np.abs(A) > threshold).astype(np.uint8)
