"""Other numbers for the same nodes: what a search does depends on the order of columns; what it finds should not."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import as_real
from .gradient import SearchResult
from .policy import GaussianPolicy

__all__ = ["Relabelling"]


class Relabelling:
    """Nodes in another order.

    Parameters
    ----------
    order : array of shape (d,)
        The old number of every new node.
    """

    def __init__(self, order: NDArray[np.int64]) -> None:
        self.order, self.place = order, np.argsort(order)

    def init(self, init: Any) -> Any:
        """A start, given in old numbers, in new ones; names as they are."""
        if isinstance(init, GaussianPolicy):
            return _policy(init, self.order)
        values = None if isinstance(init, str) else as_real(init, "init")
        d = len(self.order)
        if values is not None and values.shape == (d, d):
            return values[np.ix_(self.order, self.order)]
        if values is not None and sorted(values.ravel().tolist()) == list(range(d)):
            return self.place[values.astype(np.int64)]
        return init

    def restored(self, found: SearchResult) -> SearchResult:
        """What a search found, in old numbers."""
        back = np.ix_(self.place, self.place)
        policy = _policy(found.policy, self.place)
        return replace(found, A=found.A[back], mode=found.mode[back], policy=policy)


def _policy(policy: GaussianPolicy, order: NDArray[np.int64]) -> GaussianPolicy:
    return GaussianPolicy(_vector(policy.mu, order), _vector(policy.log_sigma, order))


def _vector(z: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Node and edge potentials (d (d + 1) / 2,) of the nodes in this order."""
    d = len(order)
    if len(z) != d * (d + 1) // 2:
        return z  # for whoever uses it to refuse
    upper = np.triu_indices(d, k=1)
    edges = np.zeros((d, d))
    edges[upper] = z[d:]
    edges += edges.T
    return np.concatenate([z[:d][order], edges[np.ix_(order, order)][upper]])
