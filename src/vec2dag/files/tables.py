"""Tables in files, read without pandas."""

from __future__ import annotations

import csv
import itertools
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._checks import check_names, default_names, listing, quoted, warn
from .atomic import InputError, PathLike, write_atomically

Table = tuple[NDArray[np.float64], tuple[str, ...]]
Row = tuple[int, list[str]]

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "null", "none", "?", ".")
_WORDS = dict.fromkeys(_MISSING, math.nan) | {"true": 1.0, "false": 0.0}


def read_table(path: PathLike, *, columns: Sequence[str] | None = None) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str or path-like
        `.csv` (comma; semicolon or tab if the first line has no comma), `.tsv` (tab), `.txt` (tab, comma,
        semicolon or blanks, whichever the first line has), `.npy`, `.npz` (key `X`, or its only 2-D numeric
        array; optional key `names`) or `.parquet` (extra `data`).
    columns : sequence of str, optional
        Names of the columns to read, in this order. Other columns need not be numeric.

    Returns
    -------
    X : ndarray of shape (n, d), float64
        The values, at least one row and column. Empty cells and NA strings are NaN, true and false 1 and 0.
    names : tuple of str
        Names of the d columns; x0, x1, ... where the file has none.

    Raises
    ------
    InputError
        Whatever is wrong with the file.

    Notes
    -----
    The first row of a text file holds the names unless all its cells are numbers; the numbers 0, 1, 2, ...
    above decimal fractions, as pandas writes them, are names. Names lose surrounding blanks. An unnamed first
    column that counts the rows (from 0 as in pandas, or from 1 as in R) is dropped with a warning.
    """
    file = existing_file(path, _READERS)
    return _READERS[file.suffix.lower()](file, columns)


def existing_file(path: PathLike, suffixes: Iterable[str]) -> Path:
    """The path, if it is a file with one of the allowed suffixes."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a folder; a file is needed")
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    if file.suffix.lower() not in suffixes:
        raise InputError(f"{file}: unknown suffix '{file.suffix}'; allowed are {', '.join(suffixes)}")
    return file


def read_rows(file: Path) -> Iterator[Row]:
    """Line numbers and cells of a delimited text file, blank lines left out."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as lines:
            first = list(itertools.islice(lines, 1))
            delimiter = _delimiter("".join(first), file.suffix.lower())
            content: Iterable[str] = itertools.chain(first, lines)
            if delimiter == " ":
                content = (line.strip() for line in content)
            reader = csv.reader(content, delimiter=delimiter, skipinitialspace=delimiter == " ")
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield reader.line_num, cells
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{file}: line {reader.line_num} cannot be read ({error})") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error


def _delimiter(line: str, suffix: str) -> str:
    """The character between the cells of this first line."""
    candidates = {".csv": ",;\t", ".tsv": "\t"}.get(suffix, "\t,; ")
    unquoted = re.sub('"[^"]*"?', "", line).strip(" \r\n")
    return next((candidate for candidate in candidates if candidate in unquoted), candidates[0])


def _number(cell: str) -> float | None:
    """The value of a cell, NaN if it is missing, None if it is text."""
    try:
        # Python reads 1_000 as a number; in a table it is a label
        return None if "_" in cell else float(cell)
    except ValueError:
        return _WORDS.get(cell.strip().lower())


def _has_header(first: list[str], second: list[str]) -> bool:
    """Whether the first row of a text file holds names."""
    if any(_number(cell) is None for cell in first):
        return True
    # pandas numbers unnamed columns 0, 1, ... after an empty cell for the index, or without it
    labels = first if first[0] else first[1:]
    if len(labels) < 2 or labels != [str(i) for i in range(len(labels))] or not second:
        return False
    if not first[0]:
        return second[0] == "0"
    return any(not cell.strip().lstrip("+-").isdigit() for cell in second)


def _read_text(file: Path, columns: Sequence[str] | None) -> Table:
    rows = read_rows(file)
    head = list(itertools.islice(rows, 2))
    if not head:
        raise InputError(f"{file}: the file is empty")
    first = [cell.strip() for cell in head[0][1]]
    if _has_header(first, head[1][1] if len(head) > 1 else []):
        header = first
        if len(head) == 1:
            raise InputError(f"{file}: only column names, no rows")
        head = head[1:]
    else:
        header = list(default_names(len(first)))
    unnamed_first = len(header) > 1 and not header[0]
    if columns is None:
        checked_names(file, header[unnamed_first:])
        keep = list(range(len(header)))
    else:
        keep = _positions(file, header, columns)
    X = _parse(file, itertools.chain(head, rows), header, keep)
    if columns is None and unnamed_first:
        n = len(X)
        if not any(np.array_equal(X[:, 0], np.arange(start, start + n)) for start in (0, 1)):
            raise InputError(f"{file}: column 1 has an empty name and is no count of the rows; name it or remove it")
        warn(f"{file}: dropped the unnamed first column, which only counts the rows")
        X, keep = np.ascontiguousarray(X[:, 1:]), keep[1:]
    return X, tuple(header[i] for i in keep)


def _parse(file: Path, rows: Iterable[Row], header: list[str], keep: list[int]) -> NDArray[np.float64]:
    """The values of the kept columns, shape (n, len(keep))."""
    width, subset = len(header), len(keep) < len(header) or keep != sorted(keep)
    values = array("d")
    text: dict[int, str] = {}
    for line, cells in rows:
        if len(cells) != width:
            raise InputError(f"{file}: line {line} has {len(cells)} cell(s), the first line {width}; is it truncated?")
        if subset:
            cells = [cells[i] for i in keep]
        try:
            numbers = list(map(float, cells))
            plain = "_" not in "".join(cells)
        except ValueError:
            plain = False
        if not plain:
            numbers = []
            for i, cell in zip(keep, cells, strict=True):
                number = _number(cell)
                if number is None:
                    text.setdefault(i, f"'{header[i] or f'column {i + 1}'}' (line {line}: {_excerpt(cell)})")
                numbers.append(math.nan if number is None else number)
        values.extend(numbers)
    if text:
        found = listing(text[i] for i in sorted(text))
        raise InputError(f"{file}: non-numeric values in {found}; leave these columns out or encode them")
    return np.frombuffer(values, dtype=np.float64).reshape(-1, len(keep))


def _excerpt(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


def checked_names(file: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The names, or an error that names the file too."""
    try:
        return check_names(names, len(names))
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def _positions(file: Path, names: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Where the wanted columns stand; columns without a name cannot be wanted."""
    checked_names(file, [name for name in names if name])
    if isinstance(columns, str) or not columns:
        raise InputError(f"{file}: columns must be a list of names, got {columns!r}")
    unknown = [name for name in columns if not name or name not in names]
    if unknown:
        raise InputError(f"{file}: no column {quoted(unknown)}; the file has {quoted(names, 20)}")
    return [names.index(name) for name in checked_names(file, columns)]


def load_matrix(
    file: Path, keys: Sequence[str], *, square: bool = False
) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """A numeric 2-D array, and its column names if there are any, from an NPY or NPZ file.

    In an NPZ file it is the array under the first of `keys` that exists, or else its only numeric 2-D array
    (square, if asked).
    """
    labels = None
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            values = loaded
        else:
            with loaded:
                key = next((key for key in keys if key in loaded), None)
                values = loaded[key] if key else _only_matrix(file, dict(loaded), keys, square)
                labels = loaded.get("names")
    except InputError:
        raise
    # damaged files raise a dozen types, from EOFError to zlib.error and tokenize.TokenError
    except Exception as error:
        raise InputError(f"{file}: not a readable {file.suffix[1:].upper()} file ({error})") from error
    if not isinstance(values, np.ndarray) or not _is_matrix(values, square):
        kind = "square 2-D array of numbers" if square else "2-D array of numbers (rows, columns)"
        raise InputError(f"{file}: a {kind} is needed, got {_kind(values)}")
    if not values.size:
        raise InputError(f"{file}: the array is empty, shape {values.shape}")
    with np.errstate(over="ignore"):
        X = np.array(values, dtype=np.float64, order="C")
    if labels is None:
        return X, None
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "SU":
        raise InputError(f"{file}: names must be a 1-D array of strings, got {_kind(labels)}")
    if len(labels) != X.shape[1]:
        raise InputError(f"{file}: {len(labels)} names for {X.shape[1]} columns")
    try:
        return X, checked_names(file, labels.astype(str).tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: names must be text, got bytes beyond ASCII") from error


def _is_matrix(values: NDArray[np.generic], square: bool) -> bool:
    shape_fits = values.ndim == 2 and (not square or values.shape[0] == values.shape[1])
    return shape_fits and values.dtype.kind in "buif"


def _kind(values: object) -> str:
    return f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__


def _only_matrix(
    file: Path, arrays: dict[str, NDArray[np.generic]], keys: Sequence[str], square: bool
) -> NDArray[np.generic]:
    found = [values for values in arrays.values() if isinstance(values, np.ndarray) and _is_matrix(values, square)]
    if len(found) == 1:
        return found[0]
    inside = listing(f"'{key}' ({_kind(values)})" for key, values in arrays.items()) or "nothing"
    kind = "square 2-D" if square else "2-D"
    raise InputError(f"{file}: needs a key {quoted(keys)} or exactly one numeric {kind} array; it holds {inside}")


def _read_numpy(file: Path, columns: Sequence[str] | None) -> Table:
    X, labels = load_matrix(file, ("X",))
    names = labels or default_names(X.shape[1])
    if columns is None:
        return X, names
    keep = _positions(file, names, columns)
    return X[:, keep], tuple(names[i] for i in keep)


def _read_parquet(file: Path, columns: Sequence[str] | None) -> Table:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(f'{file}: reading Parquet needs pyarrow: pip install "vec2dag[data]"') from error
    try:
        with parquet.ParquetFile(file) as source:
            schema = source.schema_arrow
            # the index of a data frame is no variable; a range index is described in the metadata, not stored
            index = [key for key in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(key, str)]
            if columns is None:
                names = checked_names(file, [name for name in schema.names if name not in index])
            else:
                names = tuple(schema.names[i] for i in _positions(file, schema.names, columns))
            table = source.read(columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a readable Parquet file ({error})") from error
    is_number = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    text = [f"'{name}' ({table[name].type})" for name in names if not any(is_(table[name].type) for is_ in is_number)]
    if text:
        raise InputError(f"{file}: non-numeric column(s) {listing(text)}; leave them out or encode them as numbers")
    if not table.num_rows or not names:
        raise InputError(f"{file}: the table is empty, shape ({table.num_rows}, {len(names)})")
    values = [table[name].cast(pa.float64(), safe=False).to_numpy() for name in names]
    return np.column_stack(values), names


_READERS = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".txt": _read_text,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".parquet": _read_parquet,
}


def write_table(file: Path, X: NDArray[np.float64], names: Sequence[str]) -> None:
    """Write a CSV file, atomically, from which `read_table` gets back the same numbers to the last bit."""
    lines = (
        [csv_cell(name) for name in check_names(names, X.shape[1])],
        *(map(repr, row) for row in X.tolist()),
    )
    write_atomically(file, "".join(",".join(cells) + "\n" for cells in lines).encode("utf-8"))


def csv_cell(text: str) -> str:
    """A cell of a CSV file, quoted where needed; the standard library's writer forgets carriage returns."""
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else text
