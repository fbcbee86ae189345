"""Tables that are read piece by piece, so that they may be larger than the memory."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import INEXACT, LARGEST, choose, listing, rounded_columns, shown
from .atomic import InputError, PathLike
from .opening import STANDARD_INPUT, Opened, opened
from .tables import (
    Complete,
    Options,
    TextTable,
    arrow_columns,
    is_category,
    parquet_file,
    readable,
    rounded,
    text_table,
    whole_columns,
)
from .text import Numbers

__all__ = ["STREAMED", "Stream", "TableFile", "rechunked"]

# Suffixes of files that can be read so.
STREAMED = (".csv", ".tsv", ".txt", ".parquet")

# Rows of Parquet, rows of text, and bytes of text at a time.
_BATCH, _ROWS, _BYTES = 1 << 16, 1 << 14, 1 << 22
# Numbers as text are so many times as long as gzip leaves them, at most in general.
_UNPACKED = 4.0
# Cells that are missing, as far as pyarrow is told; whoever writes NuLL is understood by our own parser.
_MISSING = ["", "NA", "na", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "none", "NaN", "nan", "?", "."]

Chunk = NDArray[np.float64]


@dataclass
class Stream:
    """An open table.

    Attributes
    ----------
    name : str
        What messages call it.
    names : tuple of str
        Of its columns.
    notes : list of str
        How it was read, where that might surprise; complete when all chunks were read.
    """

    name: str
    names: tuple[str, ...]
    notes: list[str]
    _pieces: Iterator[Chunk]
    _drop: bool
    _whole: NDArray[np.bool_]  # columns of whole numbers

    def chunks(self) -> Iterator[Chunk]:
        """All rows (m, d), once, without missing values; those and infinite ones are an error at the end."""
        complete = Complete(self.name, self.names, self._drop)
        infinite = np.zeros(len(self.names), np.int64)
        inexact = np.zeros(len(self.names), bool)
        for piece in self._pieces:
            rows = complete.of(piece)
            largest = max(rows.max(initial=0.0), -rows.min(initial=0.0))
            if largest >= INEXACT:
                inexact |= rounded(rows, self._whole)
            if largest > LARGEST:
                infinite += (np.abs(rows) > LARGEST).sum(axis=0)
            # an error is certain, and has only to be counted
            if not infinite.any() and (self._drop or not complete.left_out):
                yield rows
        if note := complete.check():
            self.notes.append(note)
        if inexact.any():
            self.notes.append(rounded_columns(itertools.compress(self.names, inexact)))
        if infinite.any():
            counts = zip(self.names, infinite.tolist(), strict=True)
            found = listing(f"'{shown(label)}' ({k})" for label, k in counts if k)
            raise InputError(f"{self.name}: values that are infinite or beyond {LARGEST:g} in {found}; rescale them")


@dataclass(frozen=True)
class TableFile:
    """A table in a file: where it is and how to read it, as often as needed.

    Attributes
    ----------
    path : str or path-like
    options : Options
        As of `read_table`.
    missing : {"refuse", "drop"}
        What is done about rows with missing values.
    suffixes : tuple of str
        Of the kinds of files that are meant.
    """

    path: PathLike
    options: Options = field(default_factory=Options)
    missing: str = "refuse"
    suffixes: tuple[str, ...] = STREAMED

    def __post_init__(self) -> None:
        if self.missing in ("pairwise-complete", "em", "impute"):
            raise ValueError(
                f"missing={self.missing!r} needs the whole table in memory: read_table reads it so; here 'refuse' and "
                "'drop' are allowed"
            )
        choose("missing", self.missing, dict.fromkeys(("refuse", "drop")))

    def with_column(self, name: str | None) -> TableFile:
        """The same with one more column, unless all are read anyway."""
        columns = self.options.columns
        if name is None or columns is None or name in columns:
            return self
        return replace(self, options=replace(self.options, columns=[*columns, name]))

    def without(self, names: Sequence[str]) -> TableFile:
        """The same without some of its columns."""
        columns, out = self.options.columns, set(names)
        if columns is not None:
            columns = [name for name in columns if name not in out]
            return replace(self, options=replace(self.options, columns=columns))
        return replace(self, options=replace(self.options, exclude=[*self.options.exclude, *names]))

    @property
    def rereadable(self) -> bool:
        """Whether it is a file that can be read again, and not a pipe."""
        return str(self.path) != STANDARD_INPUT and os.path.isfile(self.path)

    def size(self) -> float:
        """Bytes that the table would take in memory, or the text of it if that is more; about.

        0 for pipes, and for Parquet files with categories, which are not read by pieces.
        """
        if not self.rereadable:
            return 0.0
        with opened(self.path, self.suffixes, math.inf) as file:
            if file.suffix != ".parquet":
                return (file.size or 0) * (_UNPACKED if file.packed else 1.0)
            source, names = parquet_file(file, replace(self.options, categorical="auto"))
            if any(is_category(source.schema_arrow.field(name).type) for name in names):
                return 0.0
            return 8.0 * source.metadata.num_rows * len(names)

    @contextmanager
    def opened(self) -> Iterator[Stream]:
        """Context with the open table."""
        with opened(self.path, self.suffixes, math.inf) as file:
            drop = self.missing == "drop"
            if file.suffix == ".parquet" or file.kind == "a Parquet file":
                source, names = parquet_file(file, self.options)
                whole = whole_columns(source.schema_arrow, names)
                yield Stream(file.name, names, [], _parquet_pieces(file.name, source, names), drop, whole)
                return
            table = text_table(file, self.options)
            if not table.unnamed.keep:
                raise table.rows.lines.refusal("no column has a name")
            pieces = self._text_pieces(file, table)
            yield Stream(file.name, table.names, table.rows.lines.notes, pieces, drop, table.whole)

    def _text_pieces(self, file: Opened, table: TextTable) -> Iterator[Chunk]:
        """Rows of text: by pyarrow as long as it understands them, and from there on by our own parser."""
        lines, read = table.rows.lines, 0
        start = _start(file, table)
        try:
            if start is None:
                raise _NotUnderstood
            for piece in _arrow_pieces(self.path, file.packed, start, table):
                read += len(piece)
                yield table.unnamed.without(piece)
        except _NotUnderstood:
            for piece in table.parser.pieces(itertools.islice(table.content, read, None), _ROWS, read):
                yield table.unnamed.without(piece)
        table.unnamed.check(lines.notes, lines.refusal)


def rechunked(pieces: Iterable[Chunk], size: int) -> Iterator[Chunk]:
    """The same rows, ``size`` at a time, and what is left of them."""
    chunk, filled = np.empty((0, 0)), 0
    for piece in pieces:
        taken = 0
        while taken < len(piece):
            if not filled:
                chunk = np.empty((size, piece.shape[1]), order="F")
            more = min(size - filled, len(piece) - taken)
            chunk[filled : filled + more] = piece[taken : taken + more]
            filled, taken = filled + more, taken + more
            if filled == size:
                yield chunk
                filled = 0
    if filled:
        yield chunk[:filled]


def _parquet_pieces(name: str, source: Any, names: tuple[str, ...]) -> Iterator[Chunk]:
    """Rows of a Parquet file."""
    with readable(name):
        batches = source.iter_batches(batch_size=_BATCH, columns=list(names))
    while True:
        with readable(name):
            batch = next(batches, None)
            if batch is None:
                return
            piece = arrow_columns((batch.column(label) for label in names), batch.num_rows)
        yield piece


# --- text by pyarrow ------------------------------------------------------------------------------------------


class _NotUnderstood(Exception):
    """Our own parser has to read what comes next."""


def _start(file: Opened, table: TextTable) -> int | None:
    """Where the rows of a plain text file begin, in bytes; None where pyarrow might understand something else.

    It is asked only for what it either reads as our own parser does or refuses: numbers in UTF-8 with decimal points,
    in two columns or more (in one, an empty line and an empty cell look alike). A pipe cannot be read again.
    """
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return None
    rows, parser = table.rows, table.parser
    plain = (
        file.size is not None
        and rows.lines.encoding in ("utf-8", "utf-8-sig")
        and rows.delimiter != " "
        and rows.delimiter.isascii()
        and rows.comment is None
        and parser.numbers == Numbers()
        and not parser.labelled
        and parser.times is None
        and len(parser.header) > 1
    )
    return rows.lines.size(table.start) if plain else None


def _arrow_pieces(path: PathLike, packed: bool, start: int, table: TextTable) -> Iterator[Chunk]:
    """Rows of a text file, as long as they are plain."""
    import pyarrow as pa
    from pyarrow import csv

    labels = [str(i) for i in range(len(table.parser.header))]
    wanted = [labels[i] for i in table.parser.keep]
    try:
        with pa.input_stream(str(path), compression="gzip" if packed else None) as stream:
            stream.read(start)
            reader = csv.open_csv(
                stream,
                csv.ReadOptions(column_names=labels, block_size=_BYTES),
                csv.ParseOptions(delimiter=table.rows.delimiter, newlines_in_values=True),
                csv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float64()), null_values=_MISSING
                ),
            )
            for batch in reader:
                yield arrow_columns(batch.columns, batch.num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise _NotUnderstood from error
