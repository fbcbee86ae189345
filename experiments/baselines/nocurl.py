"""NOCURL: Yu, Gao, Yin and Ji, "DAGs with No Curl", ICML 2021.

The weights of a DAG are ``A = W * ReLU(grad p)``, ``(grad p)_ij = p_j - p_i``, for a potential ``p`` on the nodes.
A first stage lets cycles be penalised only, the potential is the curl-free part of what it finds, and a second
stage fits ``W`` with the potential fixed.

Both stages use the whole covariance, the first through L-BFGS-B and the second in closed form; the runs of the ALIAS
paper took Adam on batches of 64 rows instead, so its learning rate has no place here.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from vec2dag import is_dag
from vec2dag._parallel import one_blas_thread

Array = NDArray[np.float64]


def penalised_loss(W: Array, S: Array, penalty: float) -> tuple[float, Array]:
    """``|X - X W|^2 / (2 n) + penalty h(W)``, ``h(W) = tr (I + W * W / d)^d - d``, and its gradient.

    Parameters
    ----------
    W : array of shape (d, d)
    S : array of shape (d, d)
        Covariance of the data.
    penalty : float
        The weight of ``h``, which is zero exactly for DAGs.

    Returns
    -------
    value : float
    gradient : array of shape (d, d)
    """
    d = len(W)
    residual = np.eye(d) - W
    slope = S @ residual
    base = np.eye(d) + W * W / d
    power = np.linalg.matrix_power(base, d - 1)
    h = np.sum(power * base.T) - d
    # dh/dW = 2 W * ((I + W * W / d)^(d - 1))^T
    return 0.5 * float(np.sum(residual * slope)) + penalty * float(h), -slope + penalty * 2 * W * power.T


def relaxed_weights(S: Array, penalties: tuple[float, ...], l1: float, iterations: int) -> Array:
    """First stage: weights (d, d) that are nearly acyclic, each penalty started from the solution of the last.

    ``W = P - N`` with ``P, N >= 0`` makes ``l1 |W|_1`` smooth, so that L-BFGS-B applies. Its usual tolerances end it
    far too early on dense graphs, where variances differ by factors of millions.
    """
    d = len(S)
    split = np.zeros((2, d, d))
    bounds = [(0.0, 0.0 if i == j else None) for _ in range(2) for i in range(d) for j in range(d)]

    def objective(values: Array, penalty: float) -> tuple[float, Array]:
        positive, negative = values.reshape(2, d, d)
        value, gradient = penalised_loss(positive - negative, S, penalty)
        return value + l1 * float(values.sum()), np.concatenate([(l1 + gradient).ravel(), (l1 - gradient).ravel()])

    for penalty in penalties:
        found = minimize(
            objective,
            split.ravel(),
            args=(penalty,),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-14, "maxls": 100},
        )
        split = found.x.reshape(2, d, d)
    return split[0] - split[1]


def potential(W: Array, threshold: float) -> Array:
    """Potential (d,) of the curl-free part of the order that ``W`` (d, d) implies.

    With ``C_ij = 1`` where a path leads from i to j, the Hodge decomposition of ``Y = (C - C^T) / 2`` on the complete
    graph has the gradient part ``p = -L^+ div Y``; there ``L = d I - 1 1^T``, hence ``p_i = -sum_j Y_ij / d``. If
    edges larger than ``threshold`` form cycles, the smallest are left out until they do not.
    """
    edges = np.abs(W) > threshold
    for size in np.sort(np.abs(W[edges])):
        if is_dag(edges):
            break
        edges = np.abs(W) > size
    d = len(W)
    # The powers of (I + edges) reach every path after log2 d squarings.
    reach = edges | np.eye(d, dtype=bool)
    for _ in range(int(np.ceil(np.log2(max(d, 2))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    Y = (reach.astype(np.float64) - reach.T) / 2
    return -Y.sum(axis=1) / d


def refit(p: Array, X: Array) -> Array:
    """Second stage: the least-squares ``A = W * ReLU(grad p)`` (d, d), in closed form.

    ``W`` is free wherever ``p_j > p_i``, so every column of ``A`` is a regression on the nodes of lower potential.
    """
    A = np.zeros((len(p), len(p)))
    for j in range(len(p)):
        # Potentials are multiples of 1 / (2 d): what is closer is a tie.
        before = np.flatnonzero(p[j] - p > 0.25 / len(p))
        A[before, j] = np.linalg.lstsq(X[:, before], X[:, j], rcond=None)[0]
    return A


@one_blas_thread()
def nocurl(
    X: ArrayLike,
    rng: np.random.Generator,
    *,
    penalties: tuple[float, ...] = (10.0, 1000.0),
    l1: float = 0.007478648909986116,
    iterations: int = 5000,
    threshold: float = 0.3,
) -> NDArray[np.uint8]:
    """Graph of a linear model by NOCURL.

    Parameters
    ----------
    X : array of shape (n, d)
    rng : numpy Generator
        Not used: the method starts from zero and draws nothing.
    penalties : tuple of float, default (10, 1000)
        Of the first stage, one after the other; the two values of its paper.
    l1 : float
        Price of the weights in the first stage; the default is the strength that the ALIAS paper lists.
    iterations : int, default 5000
        Of the optimiser for each penalty.
    threshold : float, default 0.3
        Weights of at most this size are no edges.

    Returns
    -------
    A : array of shape (d, d), uint8
        ``A[i, j] = 1`` means i -> j.
    """
    values = np.asarray(X, dtype=np.float64)
    values = values - values.mean(axis=0)
    W = relaxed_weights(values.T @ values / len(values), penalties, l1, iterations)
    return (np.abs(refit(potential(W, threshold), values)) > threshold).astype(np.uint8)
