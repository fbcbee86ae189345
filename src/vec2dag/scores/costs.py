"""Local scores that compiled loops compute one by one, and remember: of counts, and of blocks of columns.

They are costs: what ``bic-nv`` has as the logarithm of a mean squared residual, with the price of parameters.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _kernels
from .._checks import brief
from .._parallel import run_chunks
from .criteria import BIC, Criterion
from .linear import Linear
from .local import LocalCache, LocalScores
from .regression import Regression

__all__ = ["Costed", "OfCosts", "memory", "ready"]

# Costs that a search remembers, 24 bytes each: of few nodes there are fewer sets.
REMEMBERED, REMEMBERED_SMALL, SMALL = 2**20, 2**16, 16
# Sets of parents below which a second thread is not worth it.
FEW = 64


def memory(d: int) -> tuple[NDArray[Any], ...]:
    """An empty memory of costs for ``d`` nodes: numbers that tell sets apart, and places."""
    salts = np.random.default_rng(0).integers(0, 2**64, (4, d), dtype=np.uint64)
    size = REMEMBERED_SMALL if d <= SMALL else REMEMBERED
    return salts, np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.zeros(size)


def ready() -> NDArray[np.uint64]:
    """Which parents were prepared: none yet."""
    return np.full(2, np.iinfo(np.uint64).max)


class OfCosts(Criterion):
    """What criteria share that add up costs, in which the parameters of a node are charged for already."""

    gamma: float
    #: Settings and tables that have its costs, and what they are called.
    costed: ClassVar[tuple[type, ...]]
    of: ClassVar[str]

    def settings(self) -> Any:
        """What has its costs, before a table is known."""
        raise NotImplementedError

    def regression(self, regression: Any = "linear") -> Any:
        """What has its costs, in place of the linear regression that is asked for."""
        if isinstance(regression, self.costed):
            return regression
        if regression != "linear" and not (isinstance(regression, Linear) and not regression.reference):
            raise ValueError(f"criterion={self.name!r} is of {self.of}, got regression={brief(regression)}")
        return self.settings()

    @property
    def kind(self) -> int:
        """A sum of costs."""
        return _kernels.COSTS

    def edge_price(self, n: int, d: int) -> float:
        """``2 gamma ln (d - 1)``."""
        return BIC(gamma=self.gamma, discount=0.0).edge_price(n, d)

    def prices(self, n: int, d: int) -> NDArray[np.float64]:
        """What k = 0, ..., d parents of a node cost, (d + 1,), in prices of a first one."""
        return BIC(gamma=self.gamma, discount=0.0).prices(n, d)


class Costed(Regression):
    """Regressions whose links, in place of residuals, a compiled loop computes from a :meth:`costing`."""

    score_equivalent = True
    # Sets of parents between two looks at the clock.
    together = 4096

    @property
    def has_costing(self) -> bool:
        """They do."""
        return True

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """The cost, which a criterion of costs adds up in place of logarithms of residuals."""
        members = np.zeros((1, self.d), np.uint8)
        members[0, list(parents)] = 1
        return float(self.costs(np.array([node]), members)[0])

    def costs(self, nodes: NDArray[np.int64], members: NDArray[np.uint8], costing: Any = None) -> NDArray[np.float64]:
        """Costs (m,) of ``nodes`` (m,) given the parents that the rows of ``members`` (m, d) mark."""
        out = np.empty(len(nodes))
        _kernels.costs_of_sets(self.costing() if costing is None else costing, nodes, members, out)
        return out

    def local(self, cache: LocalCache | None = None, n_jobs: int | None = None) -> LocalScores:
        """Compiled local scores, in batches, which are remembered."""
        return _CostScores(self, cache, n_jobs)


class _CostScores(LocalScores):
    """Local scores in batches on threads, each with a costing of its own."""

    regression: Costed

    def _evaluate(self, keys: list[tuple[int, int]]) -> Iterator[float]:
        d, most = self.regression.d, self.regression.together
        for start in range(0, len(keys), most):
            piece = keys[start : start + most]
            nodes = np.array([node for node, _ in piece], np.int64)
            size = (d + 7) // 8
            packed = np.frombuffer(b"".join(mask.to_bytes(size, "little") for _, mask in piece), np.uint8)
            members = np.unpackbits(packed.reshape(-1, size), axis=1, bitorder="little", count=d)
            # Those of one node with the same first parents next to each other.
            order = np.lexsort((*members.T[::-1], nodes))
            values = np.empty(len(piece))
            values[order] = self._costs(nodes[order], members[order])
            yield from values.tolist()

    def _costs(self, nodes: NDArray[np.int64], members: NDArray[np.uint8]) -> NDArray[np.float64]:
        out = np.empty(len(nodes))

        def part(start: int, stop: int) -> None:
            out[start:stop] = self.regression.costs(nodes[start:stop], members[start:stop])

        run_chunks(part, len(nodes), self.n_jobs if len(nodes) > FEW else 1)
        return out
