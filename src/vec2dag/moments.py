"""Sufficient statistics of a table: number of rows, mean, and a triangular factor of the centred data.

The factor ``T`` satisfies ``T'T = sum_k (x_k - mean)(x_k - mean)'``. It holds what the covariance holds at the
square root of its condition number, so it keeps the digits that a covariance loses on nearly dependent columns.

Tables are cut into chunks of rows at the same places wherever they come from, and chunks are merged in their order: an
array, a CSV file and a Parquet file of the same numbers have the same statistics to the last bit, for any number of
threads.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from ._checks import (
    LARGEST,
    as_numbers,
    as_real,
    brief,
    choose,
    data_warnings,
    frame_labels,
    is_constant_by_moments,
    listing,
    names_of,
    quoted,
    shown,
    warn,
)
from ._parallel import effective_jobs, one_blas_thread
from .files.atomic import InputError, PathLike
from .files.streams import TableFile, rechunked
from .files.tables import Options

__all__ = ["Moments"]

Array = NDArray[np.float64]

# Rows of one factorisation, which stay in the cache, and numbers of a chunk (32 MB), which is the work of one thread.
BLOCK, CHUNK = 4096, 2**22


def _block(d: int) -> int:
    """Rows of a block: many more than the triangle below which they are stacked."""
    return max(BLOCK, 4 * d)


def _chunk(d: int) -> int:
    """Rows of a chunk: whole blocks."""
    return max(1, CHUNK // (d * _block(d))) * _block(d)


# A weight at most: beyond, rows cannot be counted in double precision.
HEAVIEST = 1e15


def _triangular(rows: Array) -> Array:
    """Triangular factor of ``rows`` (m, d) with at most d rows, diagonal not negative so that it is unique.

    ``rows`` may be overwritten.
    """
    with one_blas_thread():
        packed, *_ = lapack.dgeqrf(rows, lwork=64 * max(1, rows.shape[1]), overwrite_a=True)
    factor = np.triu(packed[: min(rows.shape)])
    return np.ascontiguousarray(factor * np.where(np.diagonal(factor) < 0, -1.0, 1.0)[:, None])


@dataclass(frozen=True, eq=False)
class _Centred:
    """Statistics about an origin near the mean, differences from which have all the digits that the values have.

    ``mean`` less ``origin`` is ``offset``; ``factor`` (m, d) may be rows that are not triangular yet.
    """

    n: float
    origin: Array
    offset: Array
    factor: Array

    def merge(self, other: "_Centred") -> "_Centred":
        """Of both tables, stacked."""
        n = self.n + other.n
        # Origins are values of the table: their difference is exact where they are close.
        shift = (other.origin - self.origin) + (other.offset - self.offset)
        # Scatter of the union = both scatters + n1 n2 / n shift shift'.
        between = math.sqrt(self.n * (other.n / n)) * shift
        factor = _triangular(np.vstack([self.factor, between, other.factor]))
        return _Centred(n, self.origin, self.offset + other.n / n * shift, factor)


def _centred(rows: NDArray[Any], weights: Array | None = None) -> _Centred | None:
    """Statistics of ``rows`` (m, d) of any real type, a block at a time; None if there is no row of positive weight."""
    if weights is not None and not weights.all():
        rows, weights = rows[weights > 0], weights[weights > 0]
    if not len(rows):
        return None
    origin = rows[0].astype(np.float64)
    total = None
    size = _block(rows.shape[1])
    for start in range(0, len(rows), size):
        # Always this layout: sums, and so the last digits, depend on it.
        block = np.array(rows[start : start + size], dtype=np.float64, order="F")
        block -= origin
        if weights is None:
            n, offset = float(len(block)), block.mean(axis=0)
            block -= offset
        else:
            w = weights[start : start + size]
            n = float(w.sum())
            offset = w @ block / n
            block -= offset
            block *= np.sqrt(w)[:, None]
        part = _Centred(n, origin, offset, block)
        total = replace(part, factor=_triangular(block)) if total is None else total.merge(part)
    return total


Weighted = tuple[NDArray[Any], Array | None]


def _folded(chunks: Iterable[Weighted], n_jobs: int | None = 1) -> _Centred | None:
    """Statistics of chunks, rows (m, d) and their weights (m,) or None, by threads, merged in their order."""
    workers = effective_jobs(n_jobs)
    total: _Centred | None = None
    if workers == 1:
        with one_blas_thread():
            for chunk in chunks:
                total = _merged(total, _centred(*chunk))
        return total
    with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="vec2dag") as pool:
        waiting: deque[Future[_Centred | None]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_centred, *chunk))
                # No more chunks in memory than threads can work on.
                if len(waiting) > workers:
                    total = _merged(total, waiting.popleft().result())
            while waiting:
                total = _merged(total, waiting.popleft().result())
        finally:
            for unwanted in waiting:
                unwanted.cancel()
    return total


def _merged(first: _Centred | None, second: _Centred | None) -> _Centred | None:
    """Of both tables, stacked, if there are two."""
    if first is None or second is None:
        return second if first is None else first
    return first.merge(second)


def _values(X: Any) -> NDArray[Any]:
    """``X`` as an array (n, d) of real numbers of any type, not copied if it is one."""
    values = as_real(X if frame_labels(X) is None else np.asarray(X), "X")
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 1:
        raise ValueError(f"X must have shape (n, d) with n >= 1 and d >= 1, got {values.shape}")
    return values


def _checked(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of an array, refused unless all their numbers can be summed."""
    if rows.dtype.kind == "f":
        if not np.isfinite(rows).all():
            raise ValueError("X contains NaN or infinity")
        # as Python's floats: the bound is beyond float32
        if max(float(rows.max()), -float(rows.min())) > LARGEST:
            raise ValueError(f"X has values beyond {LARGEST:g}, too large for double precision: rescale them")
    return rows


def _cut(values: NDArray[Any], weights: Array | None) -> Iterator[Weighted]:
    """Chunks of a table in memory."""
    size = _chunk(values.shape[1])
    for start in range(0, len(values), size):
        chunk = slice(start, start + size)
        yield _checked(values[chunk]), None if weights is None else weights[chunk]


def _parted(rows: NDArray[Any], weight: int | None, name: str) -> Weighted:
    """Rows without the column of their weights, and these."""
    if weight is None:
        return rows, None
    weights = np.ascontiguousarray(rows[:, weight], dtype=np.float64)
    if (weights < 0).any() or (weights > HEAVIEST).any():
        raise InputError(f"{name}: weights must be from 0 to {HEAVIEST:g}, got {weights.min():g} to {weights.max():g}")
    return np.delete(rows, weight, axis=1), weights


def _weights(weights: ArrayLike, n: int) -> Array:
    """Weights (n,) of rows, finite and not negative."""
    w = np.ascontiguousarray(as_numbers(weights, "weights"))
    if w.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), one for every row of X, got {w.shape}")
    strange = w[~((w >= 0) & (w <= HEAVIEST))]
    if len(strange):
        raise ValueError(f"weights must be from 0 to {HEAVIEST:g}, got {brief(float(strange[0]))}")
    return w


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """Mean and scatter of a table, mergeable chunk by chunk.

    Attributes
    ----------
    n : int or float
        Number of rows seen: the sum of their weights, which need not be whole, if they have any.
    mean : array of shape (d,)
    factor : array of shape (min(n, d), d)
        Upper trapezoidal, ``factor.T @ factor / n`` is the (maximum likelihood) covariance.
    names : tuple of str

    Examples
    --------
    >>> Moments.of([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]], ["a", "b"])
    <Moments of 3 rows and 2 columns: 'a', 'b'>
    """

    n: int
    mean: NDArray[np.float64]
    factor: NDArray[np.float64]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Moments of {self.n:,} rows and {len(self.names)} columns: {quoted(self.names, 4)}>"

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        *,
        n_jobs: int | None = 1,
    ) -> "Moments":
        """Statistics of a table.

        Parameters
        ----------
        X : array of shape (n, d), or data frame
            Finite numbers of any real type. They are summed in double precision, a chunk at a time: the table is never
            copied whole.
        names : sequence of str, optional
            Names of the d columns.
        weights : array of shape (n,), optional
            How many times every row counts: 2 is the row twice, 0 is none, 0.5 is half a row.
        n_jobs : int or None, default 1
            Threads; None uses every core. The result does not depend on it.
        """
        values = _values(X)
        labels = names_of(names, values.shape[1], X)
        w = None if weights is None else _weights(weights, len(values))
        return cls._of(_folded(_cut(values, w), n_jobs), labels)

    @classmethod
    def _of(cls, total: _Centred | None, names: tuple[str, ...]) -> "Moments":
        if total is None:
            raise ValueError("there is no row, or none of positive weight")
        n = int(total.n) if total.n.is_integer() else total.n
        return cls(n, total.origin + total.offset, total.factor, names)  # type: ignore[arg-type]

    @classmethod
    def of_file(cls, file: TableFile, weights: str | None = None, n_jobs: int | None = None) -> "Moments":
        """Statistics of a table in a file, of which only some chunks are in memory at a time.

        Parameters
        ----------
        file : TableFile
        weights : str, optional
            Name of the column that says how many times every row counts; it is no variable then.
        n_jobs : int, optional
            Threads; None uses every core. The result does not depend on it.
        """
        file = file.with_column(weights)
        with file.opened() as stream:
            at = (
                None
                if weights is None
                else choose("weights", weights, {name: k for k, name in enumerate(stream.names)})
            )
            names = tuple(name for name in stream.names if name != weights)
            if not names:
                raise InputError(f"{stream.name}: the column of weights is the only one")
            chunks = rechunked(stream.chunks(), _chunk(len(names)))
            total = _folded((_parted(chunk, at, stream.name) for chunk in chunks), n_jobs)
            for note in stream.notes:
                warn(f"{stream.name}: {note}")
        return cls._of(total, names)

    @classmethod
    def from_csv(
        cls,
        path: PathLike,
        *,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        missing: str = "refuse",
        weights: str | None = None,
        header: bool | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        comment: str | None = None,
        n_jobs: int | None = None,
    ) -> "Moments":
        """Statistics of a text file of any size, understood as by :func:`vec2dag.files.tables.read_table`.

        Parameters
        ----------
        path : str or path-like
            `.csv`, `.tsv` or `.txt`, as it is or packed as `.gz`; `-` is the standard input.
        columns, exclude, header, delimiter, decimal, encoding, comment
            As of `read_table`.
        missing : {"refuse", "drop"}, default "refuse"
            Rows with missing values: an error that counts them, or they are left out with a warning.
        weights, n_jobs
            As of :meth:`of_file`.
        """
        options = Options(columns, exclude, header, delimiter, decimal, encoding, comment)
        return cls.of_file(TableFile(path, options, missing, (".csv", ".tsv", ".txt")), weights, n_jobs)

    @classmethod
    def from_parquet(
        cls,
        path: PathLike,
        *,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        missing: str = "refuse",
        weights: str | None = None,
        n_jobs: int | None = None,
    ) -> "Moments":
        """Statistics of a Parquet file of any size; the parameters are those of :meth:`from_csv` (extra `data`)."""
        return cls.of_file(TableFile(path, Options(columns, exclude), missing, (".parquet",)), weights, n_jobs)

    @classmethod
    def from_dask(cls, X: Any, names: Sequence[str] | None = None, *, weights: str | None = None) -> "Moments":
        """Statistics of a Dask data frame or array (n, d): one task a partition, merged as a tree.

        Parameters
        ----------
        X : dask.dataframe.DataFrame or dask.array.Array
            Computed by whatever scheduler is active, a cluster for one.
        names : sequence of str, optional
            Names of the columns, x0, x1, ... if an array has none.
        weights : str, optional
            Name of the column that says how many times every row counts; it is no variable then.
        """
        try:
            import dask
        except ImportError as error:
            raise ImportError('Moments.from_dask needs Dask: pip install "vec2dag[cluster]"') from error
        if not hasattr(X, "to_delayed") or getattr(X, "ndim", None) != 2:
            raise ValueError(f"X must be a Dask data frame, or a Dask array (n, d), got {brief(X)}")
        if hasattr(X, "columns"):
            labels = names_of([str(label) for label in X.columns] if names is None else names, len(X.columns))
            partitions = X.to_delayed()
        else:
            labels = names_of(names, X.shape[1])
            partitions = X.rechunk({1: -1}).to_delayed().ravel().tolist()
        at = None if weights is None else choose("weights", weights, {name: k for k, name in enumerate(labels)})
        if len(labels) == 1 and at is not None:
            raise ValueError(f"weights={brief(weights)} is the only one of the columns: there is no variable beside it")
        parts = [dask.delayed(_of_partition)(partition, labels, at) for partition in partitions]
        while len(parts) > 1:
            pairs = [parts[k : k + 2] for k in range(0, len(parts), 2)]
            parts = [dask.delayed(_merged)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        (total,) = dask.compute(*parts)
        return cls._of(total, tuple(name for name in labels if name != weights))

    def merge(self, other: "Moments") -> "Moments":
        """Statistics of the two tables stacked; neither is modified."""
        if not isinstance(other, Moments):
            raise ValueError(f"other must be Moments, got {brief(other)}")
        if other.names != self.names:
            raise ValueError(f"columns differ: {brief(self.names)} and {brief(other.names)}")
        n = self.n + other.n
        shift = other.mean - self.mean
        # Scatter of the union = both scatters + n1 n2 / n shift shift'.
        between = np.sqrt(self.n * other.n / n) * shift
        factor = _triangular(np.vstack([self.factor, other.factor, between]))
        return Moments(n, self.mean + other.n / n * shift, factor, self.names)

    @classmethod
    def together(cls, parts: Sequence["Moments"]) -> "Moments":
        """Statistics of several tables with the same columns, stacked: :meth:`merge` of all of them at once."""
        n = sum(part.n for part in parts)
        mean = parts[0].mean + sum(part.n / n * (part.mean - parts[0].mean) for part in parts)
        # Scatter of the union = all scatters + sum_p n_p (m_p - m)(m_p - m)'.
        between = [np.sqrt(part.n) * (part.mean - mean) for part in parts]
        return cls(n, mean, _triangular(np.vstack([*(part.factor for part in parts), *between])), parts[0].names)

    def taken(self, order: NDArray[np.int64]) -> "Moments":
        """Statistics of the same table with its columns, or some of them, in another order."""
        names = tuple(self.names[k] for k in order)
        return Moments(self.n, self.mean[order], _triangular(self.factor[:, order]), names)

    def canonical_order(self) -> NDArray[np.int64]:
        """An order (d,) of the columns that depends neither on the one they are in nor on their units.

        By how much a column is correlated with all others; those that do not differ there stay as they are.
        """
        Z = self.factor / np.sqrt((self.factor**2).sum(axis=0))
        return np.argsort(np.round(((Z.T @ Z) ** 2).sum(axis=0), 9), kind="stable")

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Maximum likelihood covariance (d, d): the scatter divided by n."""
        return self.factor.T @ self.factor / self.n

    def uncentred_factor(self) -> NDArray[np.float64]:
        """Triangular factor of the data before centring: ``sum_k x_k x_k'``."""
        return _triangular(np.vstack([self.factor, np.sqrt(self.n) * self.mean]))

    def standardised(self) -> "Moments":
        """Statistics of the same table with every column centred and divided by its standard deviation."""
        return Moments(self.n, np.zeros_like(self.mean), self.factor / np.sqrt(self.variances()), self.names)

    def variances(self) -> NDArray[np.float64]:
        """Variances (d,) of the columns; refuses constant ones by name."""
        variances = (self.factor**2).sum(axis=0) / self.n
        constant = np.flatnonzero(is_constant_by_moments(self.mean, variances))
        if len(constant):
            raise ValueError(f"columns must vary: {quoted(self.names[j] for j in constant)} constant")
        return variances

    def doubts(self, *, reads_units: bool = False) -> list[str]:
        """What in the table will mislead a score, as far as moments tell: one sentence each.

        Parameters
        ----------
        reads_units : bool, default False
            Whether the score depends on the units of the columns.
        """
        self.variances()  # refuses constant columns
        r, d = self.factor.shape
        rows = 2 * d + 60
        directions = np.random.default_rng(0).standard_normal((rows, r))
        Q, _ = np.linalg.qr(directions - directions.mean(axis=0))
        # A table of arbitrary rows that has these moments, but for the mean.
        table = Q @ self.factor * math.sqrt(rows / self.n)
        return data_warnings(table, self.names, reads_units=reads_units, rows=self.n)


def _of_partition(partition: Any, names: tuple[str, ...], weight: int | None) -> _Centred | None:
    """Statistics of one partition of a Dask collection; None if it is empty."""
    if not len(partition):
        return None
    values = _values(partition)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        counts = (~np.isfinite(values)).sum(axis=0).tolist()
        where = listing(f"'{shown(name)}' ({k})" for name, k in zip(names, counts, strict=True) if k)
        raise ValueError(f"X contains NaN or infinity, in one partition in {where}; remove or impute these values")
    return _folded(_cut(*_parted(values, weight, "X")))
