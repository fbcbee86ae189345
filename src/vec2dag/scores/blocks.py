"""The degenerate Gaussian score of numbers and categories together: categories are blocks of indicators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from .. import _kernels
from .._checks import number
from .._settings import Settings
from ..columns import Coded, Columns, coded
from ..moments import Moments
from .costs import Costed, OfCosts, memory, ready
from .criteria import CRITERIA

__all__ = ["Blocks", "BlocksOnTable", "DegenerateGaussian", "indicators"]


@dataclass
class DegenerateGaussian(OfCosts):
    """BIC of numbers and categories: a category with ``r`` levels is a block of ``r - 1`` indicators.

    Andrews, Ramsey & Cooper (2019). All columns of the wider table are taken to be Gaussian together. A node costs
    ``n`` times the log determinant of what is left of the covariance of its block given those of its parents, and
    ``discount ln n`` for each coefficient, of which an edge between blocks of ``a`` and ``b`` columns has ``a b``. For
    numbers alone it is :class:`BIC`. Members of a Markov equivalence class have the same score, which depends neither
    on units nor on the order of levels.

    Parameters
    ----------
    gamma : float, default 0.0
        ``k`` parents of a node cost ``2 gamma ln C(d - 1, k)`` more, as in :class:`BIC`.
    discount : float, default 1.0
        Factor of the price of coefficients.
    """

    takes_categories: ClassVar[bool] = True
    of: ClassVar[str] = "linear regressions"

    gamma: float = 0.0
    discount: float = 1.0

    def check(self) -> None:
        """Refuse impossible values."""
        number("gamma", self.gamma, least=0)
        number("discount", self.discount, least=0)

    @property
    def name(self) -> str:
        """``"bic-dg"`` or ``"ebic-dg"``."""
        return "ebic-dg" if self.gamma else "bic-dg"

    def settings(self) -> "Blocks":
        """Regressions of blocks."""
        return Blocks(self.discount)


def indicators(table: Coded) -> NDArray[np.float64]:
    """The table (n, D) in which categories are indicators of all levels but the first."""
    parts = []
    for levels, column in zip(table.columns.levels, table.values.T, strict=True):
        parts.append(column[:, None] if levels is None else column[:, None] == np.arange(1, len(levels)))
    return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)


def _starts(columns: Columns) -> NDArray[np.int64]:
    """Where the blocks of columns begin in the wider table, and where the last ends: (d + 1,)."""
    widths = [1 if levels is None else len(levels) - 1 for levels in columns.levels]
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


@dataclass
class Blocks(Settings):
    """Linear regressions of blocks of columns on each other, as :class:`DegenerateGaussian` adds them up.

    Parameters
    ----------
    discount : float, default 1.0
        Factor of the price of a coefficient, ``ln n``.
    """

    needs_rows: ClassVar[bool] = True
    reads_units: ClassVar[bool] = False

    discount: float = 1.0

    def check(self) -> None:
        """Refuse impossible values."""
        number("discount", self.discount, least=0)

    def bind(self, data: ArrayLike | Moments | Coded, names: Sequence[str] | None = None) -> "BlocksOnTable":
        """Join with a table (n, d) of numbers and categories, or with the statistics of one of numbers."""
        if isinstance(data, Moments):
            return BlocksOnTable(data, Columns.numeric(data.names if names is None else names), self)
        table = coded(data, names=names)
        return BlocksOnTable(Moments.of(indicators(table)), table.columns, self)


class BlocksOnTable(Costed):
    """Regressions of blocks of columns, from the sufficient statistics of the wider table alone.

    Parameters
    ----------
    moments : Moments
        Of the table with indicators in place of categories (:func:`indicators`).
    columns : Columns
        What the columns of the table are.
    settings : Blocks, optional
    """

    cheap = True
    dense = False
    linear = None
    reads_units = False

    def __init__(self, moments: Moments, columns: Columns, settings: Blocks | None = None) -> None:
        self.moments, self.columns, self.settings = moments, columns, settings or Blocks()
        self.n, self.d, self.names = moments.n, len(columns.names), columns.names
        self.starts = _starts(columns)
        if self.starts[-1] != len(moments.mean):
            raise ValueError(
                f"the columns need {self.starts[-1]} with indicators in place of categories, moments have "
                f"{len(moments.mean)}"
            )
        variances = (moments.factor**2).sum(axis=0) / moments.n
        # A level that a sample of the rows lacks costs the same with all parents.
        variances[variances == 0] = 1.0
        self.size = np.sqrt(variances)
        scaled = moments.factor / (self.size * np.sqrt(moments.n))
        self.C: NDArray[np.float64] = scaled.T @ scaled
        np.fill_diagonal(self.C, 1.0)
        self.logs: NDArray[np.float64] = np.add.reduceat(np.log(variances), self.starts[:-1])

    def taken(self, order: NDArray[np.int64]) -> "BlocksOnTable":
        """The same with the columns in another order."""
        wide = np.concatenate([np.arange(self.starts[k], self.starts[k + 1]) for k in order])
        return BlocksOnTable(self.moments.taken(wide), self.columns.taken(order), self.settings)

    def costing(self) -> Any:
        """What compiled loops factorise, with a memory and scratch of its own."""
        D, widest = len(self.C), int(np.diff(self.starts).max())
        scratch = np.empty((D + 1, D)), np.empty((2 * widest, 2 * widest)), np.zeros(2), ready()
        return (
            (self.C, self.starts, self.logs, np.array([self.settings.discount, float(self.n)])),
            memory(self.d),
            scratch,
        )

    def _block(self, nodes: Sequence[int]) -> NDArray[np.int64]:
        """Places of the columns of nodes in the wider table."""
        parts = [np.arange(self.starts[k], self.starts[k + 1]) for k in nodes]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _regress(self, node: int, parents: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coefficients (k, r) of the standardised block of a node on those of its parents, and what is left (r, r)."""
        own, given = self._block([node]), self._block(parents)
        B = np.linalg.lstsq(self.C[np.ix_(given, given)], self.C[np.ix_(given, own)], rcond=_kernels.LEAST_PIVOT)[0]
        left: NDArray[np.float64] = self.C[np.ix_(own, own)] - self.C[np.ix_(own, given)] @ B
        return np.asarray(B, dtype=np.float64), left

    def coefficients(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """``W`` (d, d), coefficients of numbers for numbers, beside all other parents; NaN where one is a category."""
        W, category = np.zeros((self.d, self.d)), self.columns.categorical
        W[A.astype(bool) & (category[:, None] | category)] = np.nan
        for j in np.flatnonzero(~category & A.any(axis=0)):
            parents = np.flatnonzero(A[:, j]).tolist()
            B, _ = self._regress(int(j), parents)
            given = self._block(parents)
            for i in parents:
                if not category[i]:
                    at = int(np.flatnonzero(given == self.starts[i])[0])
                    W[i, j] = B[at, 0] * self.size[self.starts[j]] / self.size[self.starts[i]]
        return W

    def log_density(self, node: int, parents: Sequence[int], values: NDArray[np.float64]) -> float:
        """Mean log density, or log probability, of ``node`` given ``parents`` in rows ``values`` (m, d).

        The Gaussian of the indicators of a category is taken at the points that these can have, in proportion.
        """
        wide = (indicators(Coded(values, self.columns)) - self.moments.mean) / self.size
        B, left = self._regress(node, parents)
        own = self._block([node])
        expected = wide[:, self._block(parents)] @ B
        levels = self.columns.levels[node]
        if levels is None:
            variance = max(float(left[0, 0]), _kernels.LEAST_PIVOT)
            errors = wide[:, own] - expected
            density = -0.5 * (np.log(2.0 * np.pi * variance) + float((errors**2).mean()) / variance)
            return float(density - np.log(self.size[own[0]]))
        points = (np.vstack([np.zeros(len(own)), np.eye(len(own))]) - self.moments.mean[own]) / self.size[own]
        seen = values[:, node].astype(np.int64)
        precision = np.linalg.pinv(left, rcond=_kernels.LEAST_PIVOT, hermitian=True)
        logits = expected @ precision @ points.T - 0.5 * np.einsum("ra,ab,rb->r", points, precision, points)
        return float(log_softmax(logits, axis=1)[np.arange(len(seen)), seen].mean())


DegenerateGaussian.costed = (Blocks, BlocksOnTable)
CRITERIA["bic-dg"] = DegenerateGaussian
CRITERIA["ebic-dg"] = lambda: DegenerateGaussian(gamma=1.0)
