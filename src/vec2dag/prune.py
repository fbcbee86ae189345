"""Pruning: remove edges that the data do not need. Every pruner is a function ``(X, A) -> A``."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .graph import as_adjacency
from .moments import Moments
from .scores import Linear

__all__ = ["prune_linear"]


def prune_linear(X: ArrayLike | Moments | Linear, A: ArrayLike, threshold: float = 0.3) -> NDArray[np.uint8]:
    """Keep the edges whose linear regression coefficient is at least ``threshold`` in absolute value.

    Coefficients are in the units of the data, so the threshold is too; the paper uses 0.3.

    Parameters
    ----------
    X : array of shape (n, d), Moments, or Linear
    A : array of shape (d, d)
        Adjacency matrix of a DAG. Not modified.
    threshold : float, default 0.3

    Returns
    -------
    A : array of shape (d, d), uint8
    """
    if not threshold >= 0:
        raise ValueError(f"threshold must be at least 0, got {threshold!r}")
    linear = X if isinstance(X, Linear) else Linear(X)
    adjacency = as_adjacency(A)
    if adjacency.shape != (linear.d, linear.d):
        raise ValueError(f"A must have shape {(linear.d, linear.d)} like the data, got {adjacency.shape}")
    return adjacency * (np.abs(linear.coefficients(adjacency)) >= threshold)
