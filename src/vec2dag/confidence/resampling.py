"""Tables from which samples are drawn: rows, sums over blocks of rows, or a Gaussian with the moments of the table.

A sample is a table, or its :class:`~vec2dag.Moments` where a fit asks for nothing else.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import is_constant, is_constant_by_moments, quoted
from .._parallel import one_blas_thread, run_lazily
from ..columns import Coded, Columns, rows_of
from ..files.streams import TableFile, rechunked
from ..interventions import Interventions
from ..moments import Moments

__all__ = ["Blocks", "Gaussian", "Rows", "RowsBySetting", "Table"]

# From so many rows on linear fits resample blocks, of which there are so many, on so many columns at most.
MANY_ROWS, BLOCKS, WIDEST = 20_000, 1_000, 400
# Numbers that the sums of all blocks may take, 64 MB, and the fewest blocks that say something about variances.
ROOM, FEWEST = 2**23, 200
# Share of the variance in the table below which that of a sample is rounding.
ROUNDING = 1e-13
# Difference of two readings of one table, in standard deviations, that rounding cannot explain.
CHANGED = 1e-3
# Rows at a time, and chunks at a time.
CHUNK, TOGETHER = 50_000, 4
# Draws until every column varies.
TRIES = 100
# Directions in which a standardised table varies less than this are rounding.
NEGLIGIBLE = 1e-13


class Table:
    """A table from which samples are drawn."""

    about: ClassVar[str]

    names: tuple[str, ...]

    def draw(self, method: str, rng: np.random.Generator) -> Any:
        """A sample in which every column varies: a table (m, d), or Moments."""
        for _ in range(TRIES):
            sample = self._draw(method, rng)
            constant = np.flatnonzero(self._constant(sample))
            if not len(constant):
                return sample
        raise ValueError(
            f"column(s) {quoted(self.names[k] for k in constant)} hardly vary: {TRIES} samples in a row had only one "
            "value there; leave them out"
        )

    def fit(self, model: Any, sample: Any) -> Any:
        """The model fitted to a sample."""
        return model.fit(sample) if isinstance(sample, Moments) else model.fit(sample, names=self.names)

    def _draw(self, method: str, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def _constant(self, sample: Any) -> NDArray[np.bool_]:
        """Columns (d,) of a sample that have only one value."""
        if isinstance(sample, Moments):
            return is_constant_by_moments(sample.mean, (sample.factor**2).sum(axis=0) / sample.n)
        return is_constant(sample) | np.isnan(sample).all(axis=0)

    def __sizeof__(self) -> int:
        # What engines ask before they send an object with every task, or once for all of them.
        arrays = (value for value in vars(self).values() if isinstance(value, np.ndarray))
        return object.__sizeof__(self) + sum(map(sys.getsizeof, arrays))


@dataclass(frozen=True, eq=False)
class Rows(Table):
    """The rows themselves.

    Attributes
    ----------
    values : array of shape (n, d)
    names : tuple of str
    whole : bool
        Whether fits need rows, and not only moments of them; they do if values are missing.
    columns : Columns, optional
        What the columns are, if some are categories.
    """

    about: ClassVar[str] = "rows"

    values: NDArray[np.float64]
    names: tuple[str, ...]
    whole: bool
    columns: Columns | None = None

    def _constant(self, sample: Any) -> NDArray[np.bool_]:
        return super()._constant(rows_of(sample))

    def _draw(self, method: str, rng: np.random.Generator) -> Any:
        n = len(self.values)
        chosen = rng.integers(0, n, n) if method == "resample" else rng.choice(n, n // 2, replace=False)
        rows = self.values[chosen]
        if self.columns is not None:
            return Coded(rows, self.columns)
        if self.whole or self._constant(rows).any():
            return rows
        return Moments.of(rows, self.names)


class Chosen(NamedTuple):
    """Rows (m, d) and what was set in them."""

    values: NDArray[np.float64]
    interventions: Interventions


@dataclass(frozen=True, eq=False)
class RowsBySetting(Table):
    """The rows themselves, drawn among those in which the same columns were set: no such setting is lost.

    Attributes
    ----------
    values : array of shape (n, d)
    interventions : Interventions
    """

    about: ClassVar[str] = "rows in which the same columns were set"

    values: NDArray[np.float64]
    interventions: Interventions

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Of the columns."""
        return self.interventions.names

    def fit(self, model: Any, sample: Chosen) -> Any:
        """The model fitted to a sample."""
        return model.fit(sample.values, names=self.names, interventions=sample.interventions)

    def _draw(self, method: str, rng: np.random.Generator) -> Chosen:
        chosen = []
        for k in range(len(self.interventions.patterns)):
            rows = np.flatnonzero(self.interventions.rows == k)
            # Half of the rows, but never none.
            many, again = (len(rows), True) if method == "resample" else (-(-len(rows) // 2), False)
            chosen.append(rng.choice(rows, many, replace=again))
        rows = np.concatenate(chosen)
        return Chosen(self.values[rows], self.interventions.of_rows(rows))

    def _constant(self, sample: Chosen) -> NDArray[np.bool_]:
        """Columns (d,) that have one value wherever they were not set."""
        told, still = sample.interventions.is_set[sample.interventions.rows], is_constant(sample.values)
        for j in np.flatnonzero(sample.interventions.learnable):
            still[j] |= is_constant(sample.values[~told[:, j], j : j + 1])[0]
        return still


@dataclass(frozen=True, eq=False)
class Blocks(Table):
    """Sums over blocks of rows, so that a sample costs the same however many rows there are.

    Rows are dealt to the blocks at random and blocks are drawn as rows would be. That is right where rows can be
    exchanged, as with every bootstrap of rows; with a thousand blocks the variances of samples are known to 5%.

    Statistics are of the table in directions in which it has unit variance and no correlation: there they lose no
    digits, however nearly dependent columns are. (Outliers of more than 1e8 standard deviations of the other rows do
    take digits of samples without them.)

    Attributes
    ----------
    sizes : array of shape (B,)
        Rows of every block.
    means : array of shape (B, r)
        Of the rows of every block.
    scatters : array of shape (B, r, r)
        About these means.
    back : array of shape (r, d)
        From those directions to the columns.
    mean : array of shape (d,)
    names : tuple of str
    """

    about: ClassVar[str] = "blocks of rows"

    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    scatters: NDArray[np.float64]
    back: NDArray[np.float64]
    mean: NDArray[np.float64]
    names: tuple[str, ...]

    @staticmethod
    def worth(n: int, d: int) -> bool:
        """Whether a table (n, d) is long and narrow enough."""
        return n > MANY_ROWS and d <= WIDEST

    @classmethod
    def of(
        cls,
        table: NDArray[np.float64] | TableFile,
        moments: Moments,
        rng: np.random.Generator,
        n_jobs: int | None = None,
    ) -> "Blocks":
        """Of a table (n, d) with these moments, in memory or in a file; ``rng`` deals the rows."""
        deviations = np.sqrt(moments.variances())
        _, s, V = np.linalg.svd(moments.factor / (deviations * np.sqrt(moments.n)), full_matrices=False)
        kept = s > NEGLIGIBLE * s[0]
        s, V = s[kept], V[kept]
        to = (V / s[:, None]).T / deviations[:, None]
        blocks = min(int(np.clip(ROOM // len(s) ** 2, FEWEST, BLOCKS)), moments.n)

        def part(seed: int, rows: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
            shuffled = np.random.default_rng(seed).permutation(len(rows))
            sizes = np.zeros(blocks, np.int64)
            means, scatters = np.zeros((blocks, len(s))), np.zeros((blocks, len(s), len(s)))
            with one_blas_thread():
                Y = (np.ascontiguousarray(rows)[shuffled] - moments.mean) @ to
                for b in range(min(blocks, len(Y))):
                    mine = Y[b::blocks]
                    sizes[b], means[b] = len(mine), mine.mean(axis=0)
                    mine -= means[b]
                    scatters[b] = mine.T @ mine
            return sizes, means, scatters

        totals = part(0, np.empty((0, len(deviations))))
        # Every chunk gives the same number of rows to every block, so that no period in the rows survives.
        with _chunks(table, max(1, CHUNK // blocks) * blocks) as chunks:
            # A few at a time, as all of them would not fit into memory; always in this order, as sums are rounded.
            while group := [(int(rng.integers(2**63)), rows) for rows in islice(chunks, TOGETHER)]:
                for parts in run_lazily(lambda k, group=group: part(*group[k]), len(group), n_jobs):  # type: ignore[misc]
                    totals = _merged(totals, parts)
        sizes, means, scatters = totals
        if sizes.sum() != moments.n:
            raise ValueError(f"the table had {moments.n} rows, and then {sizes.sum()}: it has changed meanwhile")
        found = cls(sizes, means, scatters, s[:, None] * V * deviations, moments.mean, moments.names)
        mean, scatter = found._pooled(np.ones(blocks, np.int64))
        # In these directions the table has mean 0 and unit variances.
        if np.abs(mean).max() > CHANGED or np.abs(scatter / moments.n - np.eye(len(s))).max() > CHANGED:
            raise ValueError("the rows of the table are not those of before: it has changed meanwhile")
        return found

    def _draw(self, method: str, rng: np.random.Generator) -> Moments:
        blocks = len(self.sizes)
        if method == "resample":
            times = np.bincount(rng.integers(0, blocks, blocks), minlength=blocks)
        else:
            times = np.bincount(rng.choice(blocks, blocks // 2, replace=False), minlength=blocks)
        n = int(times @ self.sizes)
        mean, scatter = self._pooled(times)
        values, vectors = np.linalg.eigh(scatter)
        rows = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T @ self.back
        return Moments(n, self.mean + mean @ self.back, _upper(rows), self.names)

    def _pooled(self, times: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean (r,) and scatter (r, r) of the blocks, each so many times."""
        rows = (times * self.sizes).astype(np.float64)
        mean = rows @ self.means / rows.sum()
        apart = self.means - mean
        return mean, np.tensordot(times.astype(np.float64), self.scatters, 1) + (apart.T * rows) @ apart

    def _constant(self, sample: Moments) -> NDArray[np.bool_]:
        """Columns (d,) whose variance in a sample is rounding of that in the table."""
        variances = (sample.factor**2).sum(axis=0) / sample.n
        return super()._constant(sample) | (variances < ROUNDING * (self.back**2).sum(axis=0))


def _merged(one: tuple[NDArray[Any], ...], other: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Sizes, means and scatters of blocks with the rows of both."""
    (n, m, S), (k, o, T) = one, other
    total, shift = n + k, o - m
    share = k / np.maximum(total, 1)
    between = np.einsum("b,bi,bj->bij", n * share, shift, shift)
    return total, m + share[:, None] * shift, S + T + between


@dataclass(frozen=True, eq=False)
class Gaussian(Table):
    """A normal distribution with the moments of a table, of which as many rows are drawn as the table had.

    No row is ever made: the scatter of ``n`` of them has a Wishart distribution. This is a parametric bootstrap, which
    knows nothing of tails, outliers and bends of the table.

    Attributes
    ----------
    moments : Moments
    names : tuple of str
    """

    about: ClassVar[str] = "a Gaussian with the moments of the table"

    moments: Moments
    names: tuple[str, ...]

    def _draw(self, method: str, rng: np.random.Generator) -> Moments:
        order = self.moments.canonical_order()
        m = self.moments.taken(order)
        # In the order of the table, and with its signs, the same random numbers would be another sample.
        signs = np.where(m.factor[:, 0] @ m.factor < 0, -1.0, 1.0)
        m = replace(m, factor=m.factor * signs).taken(np.arange(len(order)))
        r, dof = len(m.factor), max(int(m.n) - 1, 1)
        if dof >= r:
            # Bartlett: B'B has the Wishart distribution of identity scale.
            B = np.triu(rng.standard_normal((r, r)), 1)
            B[np.diag_indices(r)] = np.sqrt(rng.chisquare(dof - np.arange(r)))
        else:
            B = rng.standard_normal((dof, r))
        root = m.factor / np.sqrt(m.n)
        mean = m.mean + signs * (rng.standard_normal(r) @ root) / np.sqrt(m.n)
        return Moments(m.n, mean, _upper(B @ root) * signs, m.names).taken(np.argsort(order))


@contextmanager
def _chunks(table: NDArray[np.float64] | TableFile, size: int) -> Iterator[Iterator[NDArray[np.float64]]]:
    """Context with the rows of a table, ``size`` at a time."""
    if isinstance(table, TableFile):
        with table.opened() as stream:
            yield rechunked(stream.chunks(), size)
    else:
        yield (table[start : start + size] for start in range(0, len(table), size))


def _upper(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Triangular factor of rows (m, d)."""
    factor: NDArray[np.float64] = np.asarray(np.linalg.qr(rows, mode="r"))
    return factor
