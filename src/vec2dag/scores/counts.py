"""Scores of categories, from counts: BDeu, and the BIC of multinomial distributions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _kernels
from .._checks import laid_out, number, shown
from .._settings import Settings
from ..columns import Coded, Columns, Level, coded, level_text
from ..moments import Moments
from .costs import Costed, OfCosts, memory, ready
from .criteria import CRITERIA

__all__ = ["BDeu", "ConditionalTable", "Counts", "CountsOnTable", "MultinomialBIC"]

# Cells of a table of counts that is made whole: beyond, only those that occur are numbered.
ROOM = 2**16
# Different rows up to which a local score takes microseconds, about.
FEW_ROWS = 20_000


class _OfCounts(OfCosts):
    """What criteria of categories share."""

    takes_numbers: ClassVar[bool] = False
    takes_categories: ClassVar[bool] = True
    of: ClassVar[str] = "tables of counts"


@dataclass
class BDeu(_OfCounts):
    """The Bayesian Dirichlet score of categories: twice the log of the marginal likelihood, less prices, over ``n d``.

    Heckerman, Geiger & Chickering (1995), with the uniform prior of Buntine (1991): the probabilities of the ``r``
    levels of a node, given each of the ``q`` configurations of its parents, have a Dirichlet prior of ``a / (q r)``
    each. Members of a Markov equivalence class have the same score.

    Parameters
    ----------
    equivalent_sample_size : float, default 1.0
        Rows ``a`` that the prior is worth. More of them make graphs denser.
    gamma : float, default 0.0
        ``k`` parents of a node cost ``2 gamma ln C(d - 1, k)``, as in :class:`BIC`.
    """

    equivalent_sample_size: float = 1.0
    gamma: float = 0.0

    def check(self) -> None:
        """Refuse impossible values."""
        number("equivalent_sample_size", self.equivalent_sample_size, above=0)
        number("gamma", self.gamma, least=0)

    @property
    def name(self) -> str:
        """``"bdeu"``."""
        return "bdeu"

    def settings(self) -> "Counts":
        """Counts with a prior."""
        return Counts(prior=self.equivalent_sample_size)


@dataclass
class MultinomialBIC(_OfCounts):
    """The BIC of categories: twice the log-likelihood of tables of probabilities, less ``ln n`` for each of these.

    A node with ``r`` levels, whose parents have ``q`` configurations, has ``(r - 1) q`` of them. Members of a Markov
    equivalence class have the same score.

    Parameters
    ----------
    discount : float, default 1.0
        Factor of the price of parameters.
    gamma : float, default 0.0
        ``k`` parents of a node cost ``2 gamma ln C(d - 1, k)`` more, as in :class:`BIC`.
    """

    discount: float = 1.0
    gamma: float = 0.0

    def check(self) -> None:
        """Refuse impossible values."""
        number("discount", self.discount, least=0)
        number("gamma", self.gamma, least=0)

    @property
    def name(self) -> str:
        """``"bic-cat"``."""
        return "bic-cat"

    def settings(self) -> "Counts":
        """Counts with a price."""
        return Counts(prior=None, discount=self.discount)


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """Probabilities of the levels of a column, given those of its parents.

    Attributes
    ----------
    name : str
    levels : tuple
        Of the column.
    parents : tuple of str
    given : list of tuples
        The configurations of the parents that occur, one level for each parent.
    counts : array of shape (c, r)
        Rows with each of these configurations and each level.
    probabilities : array of shape (c, r)
        Means of the Dirichlet posterior: of all rows, and of the prior.
    """

    name: str
    levels: tuple[Level, ...]
    parents: tuple[str, ...]
    given: list[tuple[Level, ...]]
    counts: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        rows = zip(self.given, self.counts.tolist(), self.probabilities.tolist(), strict=True)
        return {
            "levels": list(self.levels),
            "parents": list(self.parents),
            "rows": [{"given": list(g), "counts": c, "probabilities": p} for g, c, p in rows],
        }

    def __str__(self) -> str:
        heads = [*self.parents, "rows", *(f"{self.name} = {level_text(level)}" for level in self.levels)]
        lines = [heads]
        for given, counts, row in zip(self.given, self.counts, self.probabilities, strict=True):
            lines.append([*map(level_text, given), str(int(counts.sum())), *(f"{p:.3f}" for p in row)])
        return "\n".join(laid_out([[shown(cell) for cell in line] for line in lines], ">" * len(heads)))


@dataclass
class Counts(Settings):
    """Tables of counts of every node given its parents, as :class:`BDeu` and :class:`MultinomialBIC` add them up.

    Parameters
    ----------
    prior : float, optional
        Rows that a Dirichlet prior is worth; None has none, and prices parameters instead.
    discount : float, default 1.0
        Factor of that price, ``ln n`` for each.
    """

    needs_rows: ClassVar[bool] = True
    reads_units: ClassVar[bool] = False

    prior: float | None = 1.0
    discount: float = 1.0

    def check(self) -> None:
        """Refuse impossible values."""
        if self.prior is not None:
            number("prior", self.prior, above=0)
        number("discount", self.discount, least=0)

    def bind(self, data: ArrayLike | Moments | Coded, names: Sequence[str] | None = None) -> "CountsOnTable":
        """Join with a table (n, d), whose columns are categories, or have few different numbers."""
        if isinstance(data, Moments):
            raise ValueError("tables of counts need the rows of the table; Moments have only mean and scatter")
        table = coded(data, names=names).as_categories()
        if np.isnan(table.values).any():
            raise ValueError("X contains missing values")
        return CountsOnTable(table, self)


class CountsOnTable(Costed):
    """Tables of counts of the columns of a table, from its different rows and how often each occurs.

    Parameters
    ----------
    table : Coded
        All columns are categories.
    settings : Counts
    """

    linear = None
    dense = False

    def __init__(self, table: Coded, settings: Counts) -> None:
        values = np.ascontiguousarray(table.values.T.astype(np.uint16))
        rows, times = np.unique(values, axis=1, return_counts=True)
        self._set(np.ascontiguousarray(rows), times.astype(np.float64), table.columns, settings)

    def _set(self, codes: NDArray[np.uint16], times: NDArray[np.float64], columns: Columns, settings: Counts) -> None:
        self.codes, self.times, self.columns, self.settings = codes, times, columns, settings
        self.n, self.d, self.names = int(times.sum()), len(columns.names), columns.names
        self.levels = np.array([len(levels or ()) for levels in columns.levels], np.int64)
        self.cheap = len(times) <= FEW_ROWS
        self.together = int(np.clip(2e7 / len(times), 16, 4096))

    def taken(self, order: NDArray[np.int64]) -> "CountsOnTable":
        """The same with the columns in another order."""
        other = object.__new__(CountsOnTable)
        other._set(np.ascontiguousarray(self.codes[order]), self.times, self.columns.taken(order), self.settings)
        return other

    def fingerprint(self) -> str:
        """Of the counts and what is done with them."""
        return str(joblib.hash((self.codes, self.times, self.settings)))

    def costing(self) -> Any:
        """What compiled loops count, with a memory and scratch of its own."""
        m = len(self.times)
        size = 1 << max(ROOM, 2 * m).bit_length()
        kind = _kernels.MULTINOMIAL if self.settings.prior is None else _kernels.DIRICHLET
        alpha = self.settings.discount if self.settings.prior is None else self.settings.prior
        scratch = (
            np.empty(m, np.int64), np.empty(m, np.int64), np.empty(max(ROOM, m)),
            np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(2), ready(),
        )  # fmt: skip
        numbers = np.array([kind, alpha, self.n])
        return (self.codes, self.times, self.levels, numbers), memory(self.d), scratch

    def tally(self, node: int, parents: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The configurations (c, k) of the parents that occur, as codes, and counts (c, r) of the levels in each."""
        wanted = np.asarray(parents, dtype=np.int64)
        given, place = np.unique(self.codes[wanted], axis=1, return_inverse=True)
        counts = np.zeros((given.shape[1] if len(wanted) else 1, int(self.levels[node])))
        rows = place.ravel() if len(wanted) else np.zeros(len(self.times), np.int64)
        np.add.at(counts, (rows, self.codes[node].astype(np.int64)), self.times)
        return given.T.astype(np.int64) if len(wanted) else np.zeros((1, 0), np.int64), counts

    def probabilities(self, node: int, parents: Sequence[int], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the levels (c, r), from counts (c, r): Dirichlet posterior means, with one row where there is no prior."""
        prior = 1.0 if self.settings.prior is None else self.settings.prior
        q, r = math.prod(float(self.levels[p]) for p in parents), float(self.levels[node])
        return (counts + prior / (q * r)) / (counts.sum(axis=1, keepdims=True) + prior / q)

    def table(self, node: int, parents: Sequence[int]) -> ConditionalTable:
        """The probabilities of a node given its parents."""
        given, counts = self.tally(node, parents)
        levels = [self.columns.levels[p] or () for p in parents]
        return ConditionalTable(
            self.names[node],
            self.columns.levels[node] or (),
            tuple(self.names[p] for p in parents),
            [tuple(own[code] for own, code in zip(levels, row, strict=True)) for row in given.tolist()],
            counts.astype(np.int64),
            self.probabilities(node, parents, counts),
        )

    def tables(self, A: NDArray[np.uint8]) -> dict[str, ConditionalTable]:
        """By the names of nodes their probabilities given their parents in ``A`` (d, d)."""
        return {name: self.table(j, np.flatnonzero(A[:, j]).tolist()) for j, name in enumerate(self.names)}

    def log_density(self, node: int, parents: Sequence[int], values: NDArray[np.float64]) -> float:
        """Mean log probability of the codes of ``node`` given those of ``parents`` in rows ``values`` (m, d)."""
        given, counts = self.tally(node, parents)
        place = {tuple(row): k for k, row in enumerate(given.tolist())}
        # A configuration that was never seen leaves the prior, in which levels are equally probable.
        counts = np.vstack([counts, np.zeros_like(counts[:1])])
        logs = np.log(self.probabilities(node, parents, counts))
        rows = [place.get(tuple(row), len(given)) for row in values[:, list(parents)].astype(np.int64).tolist()]
        return float(logs[rows, values[:, node].astype(np.int64)].mean())


_OfCounts.costed = (Counts, CountsOnTable)
CRITERIA["bdeu"] = BDeu
CRITERIA["bic-cat"] = MultinomialBIC
