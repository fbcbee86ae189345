"""COSMO: Massidda, Landolfi, Cinquini, Bacciu, "Constraint-Free Structure Learning with Smooth Acyclic Orientations".

The weights of a graph are ``A = H * S(p)``, ``S_ij = sigmoid((p_j - p_i - shift) / t)`` (ICLR 2024): an orientation by
the priorities ``p`` that becomes a DAG as the temperature ``t`` is annealed towards zero. Weights and priorities are
trained together by Adam on minibatches. In the nonlinear model every node is a perceptron of all others with one
hidden layer of sigmoid units, and ``S`` multiplies the weights of its inputs.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from vec2dag._parallel import one_blas_thread
from vec2dag.search.policy import Adam

Array = NDArray[np.float64]
# The temperature of the first epoch in the COSMO paper; that of the last is a setting.
HOT = 0.45


@dataclass(frozen=True)
class Settings:
    """What can be set; the defaults are those that the ALIAS paper lists for linear data.

    Attributes
    ----------
    hidden : int
        Hidden units of every node; 0 is the linear model.
    epochs, batch : int
    learning_rate : float
        Of Adam.
    l1, l2, priority : float
        Prices of ``|H|_1``, ``|H|_2^2`` (weights of the output included, where there are hidden units) and ``|p|_2^2``.
    temperature, shift : float
        Last temperature, and by how much priorities must differ for half an edge.
    threshold : float
        Weights of at most this size are no edges; with hidden units the weight of i -> j is the norm of the weights
        from input i.
    """

    hidden: int = 0
    epochs: int = 5000
    batch: int = 64
    learning_rate: float = 0.004424703475697184
    l1: float = 0.0007589315865487066
    l2: float = 0.029171977709975934
    priority: float = 0.0007604972601205271
    temperature: float = 0.0008407426566089702
    shift: float = 0.005860546462049756
    threshold: float = 0.3


LINEAR = Settings()
MLP = Settings(
    hidden=10,
    epochs=2000,
    learning_rate=0.0011606444486776536,
    l1=0.000999704401738756,
    l2=0.0011406751425196925,
    priority=0.0014549388704106592,
    temperature=0.0007651953117707655,
    shift=0.009324030532123762,
)


def orientation(p: Array, t: float, shift: float) -> Array:
    """Smooth orientation ``S`` (d, d) of the priorities ``p`` (d,) at temperature ``t``; its diagonal is zero."""
    S = expit((p - p[:, None] - shift) / t)
    np.fill_diagonal(S, 0.0)
    return S


def annealed(epoch: int, epochs: int, temperature: float) -> float:
    """Cosine from :data:`HOT` in the first epoch to ``temperature`` in the last."""
    return temperature + (HOT - temperature) * (1 + math.cos(math.pi * epoch / max(epochs - 1, 1))) / 2


def initial(d: int, hidden: int, rng: np.random.Generator) -> list[Array]:
    """Weights ``H`` (d, d); or those of the inputs (d, d, h), of the outputs (d, h), and the biases (d, h), (d,)."""
    if not hidden:
        return [rng.uniform(-1.0, 1.0, (d, d)) / math.sqrt(d)]
    shapes = [((d, d, hidden), d), ((d, hidden), hidden), ((d, hidden), d), ((d,), hidden)]
    return [rng.uniform(-1.0, 1.0, shape) / math.sqrt(fan_in) for shape, fan_in in shapes]


def linear_fit(weights: list[Array], S: Array, X: Array) -> tuple[float, list[Array], Array]:
    """``|X - X (H * S)|^2 / (2 n)`` for rows ``X`` (n, d), its gradients by the weights and by ``S``."""
    (H,) = weights
    residual = X - X @ (H * S)
    by_A = X.T @ residual / -len(X)
    return float(np.vdot(residual, residual)) / (2 * len(X)), [by_A * S], by_A * H


def mlp_fit(weights: list[Array], S: Array, X: Array) -> tuple[float, list[Array], Array]:
    """As :func:`linear_fit` for ``X_j = sum_k V_jk sigmoid(sum_i S_ij W_ijk X_i + b_jk) + c_j``."""
    W, V, b, c = weights
    n, (d, h) = len(X), V.shape
    masked = (W * S[:, :, None]).reshape(d, d * h)
    units = expit((X @ masked).reshape(n, d, h) + b)
    residual = X - (units * V).sum(axis=2) - c
    by_output = residual / -n
    by_units = by_output[:, :, None] * V * units * (1.0 - units)
    by_masked = (X.T @ by_units.reshape(n, d * h)).reshape(d, d, h)
    by_weights = [
        by_masked * S[:, :, None],
        (by_output[:, :, None] * units).sum(axis=0),
        by_units.sum(axis=0),
        by_output.sum(axis=0),
    ]
    return float(np.vdot(residual, residual)) / (2 * n), by_weights, (by_masked * W).sum(axis=2)


def loss(weights: list[Array], p: Array, X: Array, t: float, settings: Settings) -> tuple[float, list[Array], Array]:
    """Fit to the rows ``X`` (n, d) plus the prices of :class:`Settings`; gradients by the weights and by ``p``."""
    S = orientation(p, t, settings.shift)
    value, by_weights, by_S = (mlp_fit if settings.hidden else linear_fit)(weights, S, X)
    # dS/d(p_j - p_i) = S (1 - S) / t
    by_difference = by_S * S * (1.0 - S) / t
    by_p = by_difference.sum(axis=0) - by_difference.sum(axis=1) + 2 * settings.priority * p
    value += settings.l1 * float(np.abs(weights[0]).sum()) + settings.priority * float(p @ p)
    by_weights[0] += settings.l1 * np.sign(weights[0])
    for weight, slope in zip(weights[:2], by_weights[:2], strict=True):
        value += settings.l2 * float(np.vdot(weight, weight))
        slope += 2 * settings.l2 * weight
    return value, by_weights, by_p


@one_blas_thread()
def cosmo(X: ArrayLike, rng: np.random.Generator, **settings: Any) -> NDArray[np.uint8]:
    """Graph of a linear or a perceptron model by COSMO.

    Parameters
    ----------
    X : array of shape (n, d)
    rng : numpy Generator
        Draws the start and the batches.
    **settings
        Fields of :class:`Settings`. Those left out have the values that the ALIAS paper lists for linear data, or for
        nonlinear data if ``hidden`` is given and not 0 (:data:`LINEAR`, :data:`MLP`).

    Returns
    -------
    A : array of shape (d, d), uint8
        ``A[i, j] = 1`` means i -> j.
    """
    chosen = replace(MLP if settings.get("hidden") else LINEAR, **settings)
    values = np.asarray(X, dtype=np.float64)
    values = values - values.mean(axis=0)
    n, d = values.shape
    weights = initial(d, chosen.hidden, rng)
    # The differences of priorities then have the size of the shift.
    p = rng.standard_normal(d) * chosen.shift / math.sqrt(2)
    adams = [Adam(chosen.learning_rate, epsilon=1e-8) for _ in range(len(weights) + 1)]
    for epoch in range(chosen.epochs):
        t = annealed(epoch, chosen.epochs, chosen.temperature)
        order = rng.permutation(n)
        for start in range(0, n, chosen.batch):
            rows = values[order[start : start + chosen.batch]]
            _, by_weights, by_p = loss(weights, p, rows, t, chosen)
            p = p - adams[-1].step(by_p)
            weights = [w - adam.step(slope) for w, adam, slope in zip(weights, adams, by_weights, strict=False)]
    size = np.sqrt((weights[0] ** 2).sum(axis=2)) if chosen.hidden else np.abs(weights[0])
    # What the last temperature leaves of S on the wrong side of the priorities is no edge.
    S = np.where(p > p[:, None], orientation(p, chosen.temperature, chosen.shift), 0.0)
    return (size * S > chosen.threshold).astype(np.uint8)
