"""Tables in files, read without pandas."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import (
    INEXACT,
    brief,
    check_names,
    choose,
    default_names,
    is_constant,
    listing,
    quoted,
    rounded_columns,
    shown,
    still_columns,
    warn,
)
from ..columns import Coded, Columns, Level, as_level, coded, is_mixed, names_rows_of
from .arrays import load_matrix
from .atomic import InputError, PathLike, write_atomically
from .opening import MAX_MEMORY, Opened, check_memory, checked_names, opened, reason
from .parsing import (
    Parser,
    TextFound,
    Unnamed,
    has_header,
    has_row_names,
    how_marked,
    is_comment,
    is_data,
    is_number,
    is_whole,
    names_rows,
)
from .text import MISSING, TRUTHS, Numbers, Row, Rows, has_marks, numbers_of, read_rows

Table = tuple[NDArray[np.float64], tuple[str, ...]]

# Rows from which header, row names and decimal marks are told.
_SAMPLE = 200


@dataclass
class Apart:
    """A column that is read beside a table, as it stands, and is no variable of it.

    Attributes
    ----------
    name : str
    cells : list
        One for every row of the table, once that is read.
    numbers : list of int
        Of the lines of a text file in which they stand, or of the rows of another file, from 1 on.
    unit : "line" or "row"
    file : str
        What messages call it.
    """

    name: str
    cells: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    unit: str = "line"
    file: str = ""

    def where(self, row: int) -> str:
        """Where in the file a row of the table stands, as people count."""
        first = "" if self.unit == "line" else " (the first is 1)"
        return f"{self.unit} {self.numbers[row]}{first} of {self.file}"

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Leave out the cells of all rows but these (n,)."""
        self.cells = list(itertools.compress(self.cells, rows))
        self.numbers = list(itertools.compress(self.numbers, rows))


@dataclass(frozen=True)
class Options:
    """How to read a table: the keywords of `read_table`."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    comment: str | None = None
    times: str | None = None
    apart: Apart | None = None
    categorical: Any = None
    text: frozenset[int] = frozenset()  # positions of columns that are known to hold text

    @property
    def listed(self) -> set[Any]:
        """Names of the columns that are said to be categories."""
        return set() if self.categorical is None or isinstance(self.categorical, str) else set(self.categorical)

    @property
    def excluded(self) -> Sequence[str]:
        """Names of all columns that are no variables."""
        return self.exclude if self.apart is None else [*self.exclude, self.apart.name]

    def check_no_text(self, name: str) -> None:
        """Refuse what has no effect on a file that is no text."""
        for option in ("header", "delimiter", "decimal", "encoding", "comment"):
            if getattr(self, option) is not None:
                raise InputError(f"{name}: {option} is for text, and this is none")


def read_table(
    path: PathLike,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    missing: str = "keep",
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
    times: str | None = None,
    apart: Apart | None = None,
    max_memory: float = MAX_MEMORY,
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str or path-like
        `.csv`, `.tsv` or `.txt`, as it is or packed as `.gz`; `.npy`; `.npz` (key `X`, or its only 2-D numeric array;
        optional key `names`); `.parquet`, `.feather` or `.arrow` (extra `data`). `-` is the standard input; what comes
        out of it, or of another pipe, may be any of these.
    columns : sequence of str, optional
        Names of the columns to read, in this order. Other columns need not be numeric.
    exclude : sequence of str, default ()
        Names of columns to leave out.
    missing : {"keep", "drop", "refuse"}, default "keep"
        Missing values are NaN; or rows that have one are left out, with a warning; or the table is refused.
    header : bool, optional
        Whether the first row of a text file holds the names.
    delimiter : str, optional
        The character between the cells of a text file; also "tab" and "space".
    decimal : {".", ","}, optional
        The decimal mark of a text file; the other one may then stand between thousands.
    encoding : str, optional
        Of a text file, as Python calls it.
    comment : str, optional
        The character with which lines of a text file begin that are to be left out.
    times : str, optional
        Name of a column of a text file that may hold dates and times (ISO 8601): they become seconds since 1970.
    apart : Apart, optional
        A column that is no variable, and receives its cells as they stand; not of arrays, whose columns are numbers.
    max_memory : float, default 4
        GB (1e9 bytes) that the table may take, and the text from which it is read.

    Returns
    -------
    X : ndarray of shape (n, d), float64
        The values, at least one row and column. Empty cells and NA strings are NaN, true and false 1 and 0.
    names : tuple of str
        Names of the d columns; x0, x1, ... where the file has none.

    Raises
    ------
    InputError
        Whatever is wrong with the file. Where an option would help, it is named as on the command line.

    Notes
    -----
    What is not given is told from the file, and a warning says how it was read wherever that might surprise. The first
    row of a text file holds the names unless all its cells are numbers; the numbers 0, 1, 2, ... above decimal
    fractions, as pandas writes them, are names, and so are years above other numbers. Names lose surrounding blanks.
    Row names (a first column of text in which every cell is another one) and an unnamed first column that counts
    the rows (from 0 as in pandas, or from 1 as in R) are left out, and so are lines above the table that begin with
    `#`. Decimal commas and separators of thousands are read where the cells leave no doubt. Text that is not UTF-8 or
    UTF-16 is taken for cp1252.
    """
    table = read_coded(
        path,
        categorical=None,
        missing=missing,
        max_memory=max_memory,
        columns=columns,
        exclude=exclude,
        header=header,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        comment=comment,
        times=times,
        apart=apart,
    )
    return table.values, table.columns.names


def read_coded(
    path: PathLike,
    *,
    categorical: Any = "auto",
    missing: str = "keep",
    stilled: list[str] | None = None,
    max_memory: float = MAX_MEMORY,
    **options: Any,
) -> Coded:
    """Read a table of numbers and categories.

    Parameters
    ----------
    path : str or path-like
        As of `read_table`.
    categorical : "auto", None, or sequence of str, default "auto"
        Columns of text, and of true and false, are categories, and so are those that are named, whatever they hold.
        Text that differs from row to row, as names and dates do, and text among values of which most are numbers, are
        refused unless they are named. None refuses all text.
    missing : {"keep", "drop", "refuse"}, default "keep"
        As of `read_table`.
    stilled : list of str, optional
        Receives what there is to say of columns that are constant because rows were dropped, if there are any.
    max_memory : float, default 4
        As of `read_table`.
    **options
        The others of `read_table`.

    Returns
    -------
    Coded
        Empty cells and NA strings are NaN.
    """
    choose("missing", missing, dict.fromkeys(("keep", "drop", "refuse")))
    told = Options(**options, categorical=categorical)
    while True:
        with opened(path, _READERS, max_memory) as file:
            try:
                table = _read(file, told)
            except TextFound as found:
                # What a column holds may show below its first rows, and then it is read again, unless it is a pipe.
                new = found.words.keys() - told.text
                marked = any(is_number(cell) for _, cell in found.words.values())
                if categorical is None or file.size is None or marked or not new:
                    raise
                told = replace(told, text=told.text | new)
                continue
            if missing == "keep":
                return table
            if told.apart is not None and missing == "drop":
                told.apart.keep(np.logical_not(np.isnan(table.values).any(axis=1)))
            kept = _complete(file.name, table, missing == "drop")
            if stilled is not None and len(kept.values) > 1:
                lost = is_constant(kept.values) & ~is_constant(table.values)
                if lost.any():
                    names = itertools.compress(table.columns.names, lost)
                    stilled.append(still_columns(names, len(kept.values), len(table.values)))
            return kept


def _read(file: Opened, options: Options) -> Coded:
    """The table of an open file."""
    read = _READERS.get(file.suffix) or _READERS[_SIGNED.get(file.kind or "", ".csv")]
    table = read(file, options)
    listed = options.listed
    unknown = [name for name in listed if name not in table.columns.names]
    if unknown:
        raise InputError(f"{file.name}: no column {quoted(unknown)}; it has {quoted(table.columns.names, 20)}")
    table = table.with_categories(listed - table.columns.by_name.keys())
    levels, rows = table.columns.by_name, len(table.values)
    if unclear := [name for name, own in levels.items() if name not in listed and names_rows_of(own, rows)]:
        found = listing(f"'{shown(name)}' ({len(levels[name])})" for name in unclear)
        columns = " ".join(f"'{shown(name)}'" for name in unclear[:8]) + " ..." * (len(unclear) > 8)
        raise InputError(
            f"{file.name}: text that differs from row to row in {found}: names, dates or numbers of rows are no "
            f"categories; --exclude {columns} leaves them out, --categorical {columns} insists"
        )
    return table


def select(name: str, names: Sequence[str], columns: Sequence[str] | None, exclude: Sequence[str] = ()) -> list[int]:
    """Where the wanted columns stand among `names`; columns without a name cannot be wanted.

    Parameters
    ----------
    name : str
        What messages call the table.
    names : sequence of str
        Of all its columns.
    columns, exclude : sequences of str
        As in `read_table`.

    Returns
    -------
    list of int
        Positions, at least one.
    """
    for option, wanted in (("columns", columns), ("exclude", exclude)):
        if isinstance(wanted, str) or (option == "columns" and wanted is not None and not wanted):
            raise InputError(f"{name}: {option} must be a list of names, got {brief(wanted)}")
        unknown = [label for label in wanted or () if not label or label not in names]
        if unknown:
            raise InputError(f"{name}: no column {quoted(unknown)}; it has {quoted(names, 20)}")
    out = set(exclude)
    if columns is None:
        keep = [i for i, label in enumerate(names) if label not in out]
    else:
        both = [label for label in columns if label in out]
        if both:
            raise InputError(f"{name}: column(s) {quoted(both)} both wanted and excluded")
        checked_names(name, [label for label in names if label])
        keep = [names.index(label) for label in checked_names(name, columns)]
    if not keep:
        raise InputError(f"{name}: no column is left once {quoted(exclude)} are excluded")
    return keep


class Complete:
    """Rows without missing values; those that have some are counted, and refused unless they may be dropped."""

    def __init__(self, name: str, names: Sequence[str], drop: bool, *, numbers: bool = True) -> None:
        self.name, self.names, self.drop = name, names, drop
        # Other treatments are for tables of numbers.
        self.use = ", --missing em and impute use {}" if numbers else ""
        self.counts = np.zeros(len(names), np.int64)
        self.rows = self.left_out = 0

    def of(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The next rows (n, d), without those that have missing values."""
        self.rows += len(X)
        if not np.isnan(X.min(initial=0.0)):
            return X
        missing = np.isnan(X)
        rows = missing.any(axis=1)
        self.counts += missing.sum(axis=0)
        self.left_out += int(rows.sum())
        return X[~rows]

    def check(self) -> str | None:
        """What to say about rows that were left out, once all were seen; an error if they may not be."""
        if not self.left_out:
            return None
        counts = list(zip(self.names, self.counts.tolist(), strict=True))
        if empty := [f"'{shown(label)}'" for label, k in counts if k == self.rows]:
            columns = " ".join(empty[:8]) + " ..." * (len(empty) > 8)
            raise InputError(
                f"{self.name}: no value in any row of {listing(empty)}; --exclude {columns} leaves them out"
            )
        where = listing(f"'{shown(label)}' ({k} NaN)" for label, k in counts if k)
        if not self.drop:
            raise InputError(
                f"{self.name}: missing values in {where}; --missing drop leaves out the {self.left_out} row(s) of "
                f"{self.rows} that have one{self.use.format('them')}"
            )
        if self.left_out == self.rows:
            raise InputError(
                f"{self.name}: every row has a missing value, in {where}; --exclude leaves columns out"
                f"{self.use.format('such rows')}"
            )
        return f"left out {self.left_out} of {self.rows} rows, with missing values in {where}"


def _complete(name: str, table: Coded, drop: bool) -> Coded:
    """The rows without missing values; refused if they may not be dropped, or if none is left."""
    numbers = not table.columns.categorical.any()
    complete = Complete(name, table.columns.names, drop, numbers=numbers)
    kept = Coded(complete.of(table.values), table.columns)
    if note := complete.check():
        warn(f"{name}: {note}")
    return kept if numbers else kept.trimmed()


# --- text -----------------------------------------------------------------------------------------------------


@dataclass
class TextTable:
    """A table of text of which the head is understood, and the rest not read yet.

    Attributes
    ----------
    rows : Rows
    below : list of Row
        Those below the header that were looked at; `rows` go on after them.
    start : int
        Lines above them.
    parser : Parser
    unnamed : Unnamed
    """

    rows: Rows
    below: list[Row]
    start: int
    parser: Parser
    unnamed: Unnamed

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns that are read."""
        return checked_names(self.rows.lines.name, [self.parser.header[i] for i in self.unnamed.keep])

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which of the columns that are read hold whole numbers, as far as the first rows show."""
        cells = ([cells[i].strip() for _, cells in self.below if i < len(cells)] for i in self.unnamed.keep)
        return np.array([all(is_whole(cell) or cell.lower() in MISSING for cell in column) for column in cells])

    @property
    def content(self) -> Iterator[Row]:
        """All rows below the header, once."""
        return itertools.chain(self.below, self.rows.content)


def text_table(file: Opened, options: Options) -> TextTable:
    """What the head of a text file says about its table."""
    if re.match(rb'\s*(\{\s*"|\[\s*[\[{])', file.head):
        raise InputError(f"{file.name}: this is JSON, not a table; save it as CSV, for instance")
    rows = read_rows(file, delimiter=options.delimiter, encoding=options.encoding, comment=options.comment)
    lines = rows.lines
    sample = list(itertools.islice(rows.content, _SAMPLE))
    if not sample:
        raise lines.refusal("the file is empty")
    numbers = numbers_of((cell for _, cells in sample for cell in cells), options.decimal)
    if options.decimal is None and numbers != Numbers():
        lines.notes.append(how_marked(numbers))
    header, below = _header(rows, sample, options.header, numbers)
    keep = select(file.name, header, options.columns, options.excluded)
    labelled, times, apart = False, None, None
    if options.apart is not None:
        (apart,) = select(file.name, header, [options.apart.name])
    if options.times is not None:
        (times,) = select(file.name, header, [options.times])
    if options.columns is None:
        checked_names(file.name, [header[i] for i in keep if header[i]])
        first = keep[0] == 0 != times and len(keep) > 1
        labelled = first and has_row_names([cells for _, cells in below])
        if labelled and options.categorical is not None:
            distinct = len({cells[0] for _, cells in below}) == len(below)
            labelled = distinct and 0 not in options.text and header[0] not in options.listed
    parser = Parser(file, lines.refusal, lines.notes, header, keep[labelled:], numbers, labelled, times, apart)
    if options.categorical is not None:
        parser.books = {i: {} for i in parser.keep if i != times and _is_text(i, below, header[i], options, numbers)}
    start = rows.skipped if below is sample else sample[0][0]
    return TextTable(rows, below, start, parser, Unnamed(header, parser.keep))


def _is_text(i: int, rows: list[Row], name: str, options: Options, numbers: Numbers) -> bool:
    """Whether a column holds text, or true and false, as far as its first rows show; or is said or known to."""
    if i in options.text or name in options.listed:
        return True
    width = max((len(cells) for _, cells in rows), default=0)
    cells = [cells[i].strip() for _, cells in rows if i < len(cells) and not is_comment(cells, width)]
    values = [numbers.value(cell) for cell in cells]
    if None in values:
        # what somebody who knows the marks could read is no text
        return not all(map(has_marks, cells))
    return not TRUTHS.keys().isdisjoint(map(str.lower, cells))


# The same, where true or false stands in other rows.
_TRUTHS = TRUTHS | {"0": False, "1": True, "0.0": False, "1.0": True}


def _levels(book: dict[str, int], numbers: Numbers) -> tuple[list[int], tuple[Level, ...]]:
    """The place of every code among the levels, sorted, and these: truth values, numbers, or text."""
    words = set(map(str.lower, book))
    if words <= _TRUTHS.keys() and not words.isdisjoint(TRUTHS):
        cells: list[Any] = [_TRUTHS[text.lower()] for text in book]
    else:
        values = [numbers.value(text) for text in book]
        exact = (int(text) if is_whole(text) else value for text, value in zip(book, values, strict=True))
        cells = list(book) if None in values else [as_level(value) for value in exact]
    levels = sorted(set(cells))
    place = {level: k for k, level in enumerate(levels)}
    return [place[cell] for cell in cells], tuple(levels)


def _read_text(file: Opened, options: Options) -> Coded:
    table = text_table(file, options)
    lines = table.rows.lines
    X = table.unnamed.without(table.parser.parse(table.content))
    if options.apart is not None:
        options.apart.cells, options.apart.numbers = table.parser.cells, table.parser.lines
        options.apart.unit, options.apart.file = "line", file.name
    if options.categorical is not None and file.size is not None and table.parser.truths.keys() - {table.parser.times}:
        raise table.parser.found(table.parser.truths)
    table.unnamed.check(lines.notes, lines.refusal)
    for note in lines.notes:
        warn(f"{file.name}: {note}")
    _warn_of_rounding(file, X, table.names, table.whole)
    books = [table.parser.books.get(i) for i in table.unnamed.keep]
    levels: list[tuple[Level, ...] | None] = [None] * len(books)
    mixed = {}
    if any(book is not None for book in books):
        X = X.copy()
    for k, book in enumerate(books):
        if book is not None:
            places, own = _levels(book, table.parser.numbers)
            missing = np.isnan(X[:, k])
            codes = X[~missing, k].astype(np.int64)
            numeric = int(np.array([*map(is_number, book)], dtype=bool)[codes].sum())
            if table.names[k] not in options.listed and bool not in map(type, own) and is_mixed(numeric, len(codes)):
                mixed[table.unnamed.keep[k]] = numeric, len(codes)
            X[~missing, k], levels[k] = np.array(places)[codes], own
    if mixed:
        raise table.parser.mixed(mixed)
    return Coded(X, Columns(table.names, tuple(levels)))


def rounded(X: NDArray[np.float64], whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which columns (d,) of those that held ``whole`` numbers have some that were rounded; nothing missing is."""
    low, high = np.fmin.reduce(X, initial=0.0), np.fmax.reduce(X, initial=0.0)
    return whole & (np.maximum(-low, high) >= INEXACT)


def _warn_of_rounding(file: Opened, X: NDArray[np.float64], names: Sequence[str], whole: NDArray[np.bool_]) -> None:
    if (found := rounded(X, whole)).any():
        warn(f"{file.name}: {rounded_columns(itertools.compress(names, found))}")


def _header(rows: Rows, sample: list[Row], header: bool | None, numbers: Numbers) -> tuple[list[str], list[Row]]:
    """The names of the columns, "" where there is none, and the rows below them."""
    first, below = [cell.strip() for cell in sample[0][1]], [cells for _, cells in sample[1:]]
    above = header is None and bool(rows.above) and is_data(first, rows.above, numbers)
    rows.note_comments(names=above)
    if above:
        return [cell.strip() for cell in rows.above], sample
    if not (has_header(first, below, numbers, rows.lines.notes) if header is None else header):
        return list(default_names(len(first))), sample
    if not below:
        raise rows.lines.refusal("only column names, no rows")
    return ["", *first] if names_rows(below, len(first)) else first, sample[1:]


# --- other formats --------------------------------------------------------------------------------------------


def _numeric(X: NDArray[np.float64], names: Sequence[str]) -> Coded:
    return Coded(X, Columns.numeric(names))


def _read_numpy(file: Opened, options: Options) -> Coded:
    options.check_no_text(file.name)
    if options.apart is not None:
        raise InputError(f"{file.name}: an array has no column of text, as {brief(options.apart.name)} would be")
    X, labels = load_matrix(file, ("X",))
    names = labels or default_names(X.shape[1])
    if options.columns is None and not options.exclude:
        return _numeric(X, names)
    keep = select(file.name, names, options.columns, options.exclude)
    return _numeric(X[:, keep], [names[i] for i in keep])


@contextmanager
def readable(name: str, kind: str = "Parquet") -> Iterator[None]:
    """Context in which a file of this kind is read by pyarrow, whose errors become an `InputError`."""
    try:
        yield
    except InputError:
        raise
    # damaged files raise many types, from those of Arrow to those of the JSON that pandas puts into them
    except Exception as error:
        raise InputError(f"{name}: not a readable {kind} file ({reason(error)})") from error


def parquet_file(file: Opened, options: Options) -> tuple[Any, tuple[str, ...]]:
    """An open Parquet file of pyarrow, and the names of the wanted columns, which are all numeric."""
    options.check_no_text(file.name)
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(f'{file.name}: reading Parquet needs pyarrow: pip install "vec2dag[data]"') from error
    with readable(file.name):
        # a page at a time: by default pyarrow reads ahead until it has the whole file
        whole = parquet.ParquetFile(file.seekable(), pre_buffer=False, buffer_size=1 << 16)
        source = file.closing.enter_context(whole)
        return source, _numeric_names(file, options, source.schema_arrow, source.metadata.num_rows)


def _numeric_names(file: Opened, options: Options, schema: Any, n: int) -> tuple[str, ...]:
    """The names of the wanted columns of a table of ``n`` rows with a schema of pyarrow, which are all numeric."""
    from pyarrow import types

    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    # the index of a data frame is no variable; a range index is described in the metadata, not stored
    index = [key for key in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(key, str)]
    everything = schema.names if options.columns else [name for name in schema.names if name not in index]
    names = checked_names(
        file.name, [everything[i] for i in select(file.name, everything, options.columns, options.excluded)]
    )
    kinds = {name: schema.field(name).type for name in names}
    text = [name for name, kind in kinds.items() if not any(is_(kind) for is_ in numeric)]
    text = [name for name in text if options.categorical is None or not is_category(kinds[name])]
    if text:
        found = listing(f"'{shown(name)}' ({shown(str(kinds[name]))})" for name in text)
        leave = " ".join(f"'{shown(name)}'" for name in text[:8]) + " ..." * (len(text) > 8)
        raise InputError(f"{file.name}: non-numeric column(s) {found}; --exclude {leave} leaves them out")
    if not n or not names:
        raise InputError(f"{file.name}: the table is empty, shape ({n}, {len(names)})")
    return names


def is_category(kind: Any) -> bool:
    """Whether a type of pyarrow is one of text or of categories."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_category(kind.value_type) or bool(types.is_integer(kind.value_type))
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind))


def _from_arrow(table: Any, names: Sequence[str], options: Options) -> Coded:
    """A table of pyarrow."""
    # All text, also such as numbers could be read from, is a category by its type.
    categories = [name for name in names if options.categorical is not None and is_category(table[name].type)]
    if not categories:
        return _numeric(np.ascontiguousarray(arrow_columns((table[name] for name in names), len(table))), names)
    columns = {
        name: np.array(table[name].to_pylist(), dtype=object)
        if name in categories
        else arrow_columns([table[name]], len(table))[:, 0]
        for name in names
    }
    return coded(columns, categories)


def arrow_columns(columns: Iterable[Any], rows: int) -> NDArray[np.float64]:
    """Columns of pyarrow as an array (rows, d), column by column in memory; nulls are NaN."""
    import pyarrow as pa

    arrays = [column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for column in columns]
    X = np.empty((rows, len(arrays)), order="F")
    for k, values in enumerate(arrays):
        X[:, k] = values
    return X


def _read_parquet(file: Opened, options: Options) -> Coded:
    source, names = parquet_file(file, options)
    n, d = source.metadata.num_rows, len(names)
    check_memory(file.name, f"its table of shape {(n, d)}", 8 * n * d, file.max_memory)
    with readable(file.name):
        table = source.read(columns=[*names, *([] if options.apart is None else [options.apart.name])])
        _set_apart(file, options, table)
        found = _from_arrow(table, names, options)
    _warn_of_rounding(file, found.values, names, whole_columns(table.schema, names))
    return found


def whole_columns(schema: Any, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which columns of a schema of pyarrow hold whole numbers."""
    from pyarrow import types

    return np.array([bool(types.is_integer(schema.field(name).type)) for name in names])


def _read_feather(file: Opened, options: Options) -> Coded:
    options.check_no_text(file.name)
    try:
        from pyarrow import feather
    except ImportError as error:
        raise InputError(f'{file.name}: reading Feather needs pyarrow: pip install "vec2dag[data]"') from error
    with readable(file.name, "Feather"):
        table = feather.read_table(file.seekable(), memory_map=False)
        names = _numeric_names(file, options, table.schema, table.num_rows)
        check_memory(
            file.name, f"its table of shape {(len(table), len(names))}", 8 * len(table) * len(names), file.max_memory
        )
        _set_apart(file, options, table)
        found = _from_arrow(table, names, options)
    _warn_of_rounding(file, found.values, names, whole_columns(table.schema, names))
    return found


def _set_apart(file: Opened, options: Options, table: Any) -> None:
    """The column of a table of pyarrow that is read apart, if there is one."""
    if options.apart is not None:
        options.apart.cells = table[options.apart.name].to_pylist()
        options.apart.numbers = list(range(1, len(table) + 1))
        options.apart.unit, options.apart.file = "row", file.name


_READERS: dict[str, Callable[[Opened, Options], Coded]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".txt": _read_text,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".parquet": _read_parquet,
    ".feather": _read_feather,
    ".arrow": _read_feather,
}
# What comes out of a pipe says in its first bytes what it is.
_SIGNED = {
    "a NumPy array": ".npy", "a ZIP archive": ".npz", "a Parquet file": ".parquet", "an Arrow file": ".feather",
}  # fmt: skip


def write_table(file: Path, X: NDArray[np.float64], names: Sequence[str]) -> None:
    """Write a CSV file, atomically, from which `read_table` gets back the same numbers to the last bit."""
    write_atomically(file, table_file(X, names))


def table_file(X: NDArray[np.float64], names: Sequence[str]) -> bytes:
    """What :func:`write_table` writes. Names stand as they are: the table is for programs."""
    lines = (
        [_quoted_cell(name) for name in check_names(names, X.shape[1])],
        *(map(repr, row) for row in X.tolist()),
    )
    return "".join(",".join(cells) + "\n" for cells in lines).encode("utf-8")


def columns_file(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Columns of text and numbers as a CSV file for people and spreadsheets; what is not there is an empty cell."""
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(_any_cell, cells)) + "\n" for cells in lines).encode("utf-8")


def _any_cell(value: Any) -> str:
    if isinstance(value, str):
        return csv_cell(value)
    return "" if value is None or value != value else repr(value)


# What a spreadsheet takes for a formula, however it is quoted, begins with one of these; apostrophes in front of them
# are counted, so that every text comes back.
_FORMULA = re.compile("'*[=+@\t\r\n-]")


def csv_cell(text: str) -> str:
    """A cell of a CSV file that no spreadsheet runs as a formula; :func:`cell_text` gives back the text."""
    return _quoted_cell(f"'{text}" if _FORMULA.match(text) else text)


def cell_text(cell: str) -> str:
    """The text of a cell as it was before :func:`csv_cell`, once a reader has removed the double quotes."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _quoted_cell(text: str) -> str:
    """In double quotes where needed: readers may take any usual separator for the one that was meant, and # begins a
    comment. (The standard library's writer quotes neither, and forgets carriage returns.)"""
    return '"' + text.replace('"', '""') + '"' if re.search('[,;|\t"\r\n]|^#', text) else text
