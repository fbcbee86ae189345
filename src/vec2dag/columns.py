"""What the columns of a table are: numbers, or categories with their levels.

A table of both becomes an array of numbers in which a category is the place of its level: 0, 1, ... in the order of the
levels, and NaN where it is missing.
"""

from __future__ import annotations

import itertools
import math
import numbers
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import (
    INEXACT,
    DataWarning,
    as_numbers,
    brief,
    check_names,
    data_warnings,
    default_names,
    listing,
    not_numeric,
    quoted,
    rounded_columns,
    shown,
    warn,
)

__all__ = [
    "Coded",
    "Columns",
    "Level",
    "as_level",
    "coded",
    "coded_warnings",
    "has_categories",
    "is_mixed",
    "level_text",
    "names_rows_of",
    "rows_of",
    "warn_of_rounding",
]

Level = str | bool | int | float

# Text of which more than half of the rows, and more than so many, have one of their own names rows: it is no category.
FEW_LEVELS = 10
# Where so many of the values are numbers, text among them is a mistake rather than a level.
MOSTLY_NUMBERS = 0.8
# Different numbers that a column may have to be taken for one of categories because all others are.
MOST_NUMBERS = 32
# Rows that a level should have on average.
ROWS_TO_A_LEVEL = 5
# Rows in which two categories are looked at first.
SOME_ROWS = 200
# Levels that codes can count.
MOST_LEVELS = 2**16 - 1


@dataclass(frozen=True)
class Columns:
    """Names of columns, and the levels of those that are categories.

    Attributes
    ----------
    names : tuple of str
    levels : tuple
        Of every column the levels, in the order of their codes, or None if it holds numbers.

    Examples
    --------
    >>> table = coded({"dose": [1.5, 2.0, 0.5], "drug": ["b", "a", "b"]}, names=["dose", "drug"])
    >>> table.columns.levels
    (None, ('a', 'b'))
    >>> table.values[:, 1].tolist()
    [1.0, 0.0, 1.0]
    """

    names: tuple[str, ...]
    levels: tuple[tuple[Level, ...] | None, ...]

    @classmethod
    def numeric(cls, names: Sequence[str]) -> Columns:
        """Columns of numbers."""
        return cls(tuple(names), (None,) * len(names))

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which are categories, (d,)."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)

    @property
    def by_name(self) -> dict[str, list[Level]]:
        """The levels of the categories, as JSON can hold them."""
        return {name: list(levels) for name, levels in zip(self.names, self.levels, strict=True) if levels is not None}

    def taken(self, order: Iterable[int]) -> Columns:
        """The same with the columns in another order, or with some of them."""
        places = [int(k) for k in order]
        return Columns(tuple(self.names[k] for k in places), tuple(self.levels[k] for k in places))

    def encode(self, X: Any) -> NDArray[np.float64]:
        """Another table (m, d) with these columns, in this order, as numbers and codes.

        A frame may have its columns in any order. A level that is not among those known is refused.
        """
        if isinstance(X, Coded):
            X = X.decoded()
        found = _columns_of(X)
        if found.labels is not None:
            missing = [name for name in self.names if name not in found.labels]
            if missing:
                raise ValueError(f"X has no column {quoted(missing)}; it has {quoted(map(str, found.labels), 20)}")
            found = replace(found, columns=[found.columns[found.labels.index(name)] for name in self.names])
        if len(found.columns) != len(self.names):
            raise ValueError(f"X has {len(found.columns)} features, but {len(self.names)} columns are known")
        values = np.empty((found.rows, len(self.names)))
        for k, (name, levels, column) in enumerate(zip(self.names, self.levels, found.columns, strict=True)):
            if levels is None:
                values[:, k] = as_numbers(_array(column), f"column '{shown(name)}'")
                continue
            place = {level: code for code, level in enumerate(levels)}
            cells = _cells(column)
            strange = {level_text(cell): None for cell in cells if cell is not None and cell not in place}
            if strange:
                raise ValueError(
                    f"column '{shown(name)}' has the level(s) {quoted(strange)}, which the table of fit did not have: "
                    f"nothing is known about them; it had {quoted(map(level_text, levels))}"
                )
            values[:, k] = [math.nan if cell is None else place[cell] for cell in cells]
        return values


@dataclass(frozen=True, eq=False)
class Coded:
    """A table of numbers and codes.

    Attributes
    ----------
    values : array of shape (n, d), float64
        Numbers, and in columns of categories codes of their levels; NaN where something is missing.
    columns : Columns
    """

    values: NDArray[np.float64]
    columns: Columns

    def taken(self, order: Iterable[int]) -> Coded:
        """The same with the columns in another order, or with some of them."""
        places = [int(k) for k in order]
        return Coded(self.values[:, places], self.columns.taken(places))

    def trimmed(self) -> Coded:
        """The same with levels that occur only."""
        values, levels = self.values.copy(), list(self.columns.levels)
        for k, own in enumerate(levels):
            if own is not None:
                values[:, k], occurring = _levels_of(values[:, k])
                levels[k] = tuple(own[int(code)] for code in occurring)
        return Coded(values, Columns(self.columns.names, tuple(levels)))

    def decoded(self) -> dict[str, list[Any]]:
        """The cells by column, levels in place of codes, and None where one is missing."""
        cells: dict[str, list[Any]] = {}
        for name, levels, column in zip(self.columns.names, self.columns.levels, self.values.T, strict=True):
            found = column.tolist()
            cells[name] = found if levels is None else [None if c != c else levels[int(c)] for c in found]
        return cells

    def as_numbers(self) -> Coded | None:
        """The same with numbers in place of categories, if all levels are numbers, or true and false; None if not."""
        values = self.values.copy()
        for k, levels in enumerate(self.columns.levels):
            if levels is None:
                continue
            if any(isinstance(level, str) for level in levels):
                return None
            codes, missing = values[:, k], np.isnan(values[:, k])
            values[:, k] = np.array([float(level) for level in levels])[np.where(missing, 0, codes).astype(np.int64)]
            values[missing, k] = np.nan
        return Coded(values, Columns.numeric(self.columns.names))

    def with_categories(self, names: Iterable[str]) -> Coded:
        """The same with categories in place of the numbers of some columns."""
        values, levels = self.values.copy(), list(self.columns.levels)
        for name in names:
            k = self.columns.names.index(name)
            values[:, k], levels[k] = _levels_of(values[:, k])
        return Coded(values, Columns(self.columns.names, tuple(levels)))

    def as_categories(self, most: int = MOST_NUMBERS) -> Coded:
        """The same with categories in place of numbers; columns with more than ``most`` different ones are refused."""
        values, levels = self.values.copy(), list(self.columns.levels)
        many = []
        for k, known in enumerate(levels):
            if known is None:
                codes, own = _levels_of(values[:, k])
                if len(own) > most:
                    many.append(f"'{shown(self.columns.names[k])}' ({len(own)})")
                values[:, k], levels[k] = codes, own
        if many:
            raise ValueError(
                f"more than {most} different numbers in {listing(many)}: these are no categories; cut them into "
                "intervals, or leave them out"
            )
        return Coded(values, Columns(self.columns.names, tuple(levels)))


def coded(X: Any, categorical: Any = "auto", names: Sequence[str] | None = None) -> Coded:
    """A table as numbers and codes.

    Parameters
    ----------
    X : array of shape (n, d), data frame, mapping of names to columns, or Coded
        Not modified.
    categorical : "auto", None, or sequence of str and int, default "auto"
        ``"auto"``: columns of truth values, of text, and of types made for categories (pandas' and polars' Categorical,
        polars' Enum) are categories; text that can all be read as numbers is numbers. A sequence names further columns,
        or gives their positions. None: all columns must be numbers.
    names : sequence of str, optional
        Of the columns, in place of those that the frame has.

    Returns
    -------
    Coded
        Levels are those that occur, in the order that the type of the column gives them, or sorted.
    """
    if isinstance(X, Coded):
        d = len(X.columns.names)
        labels = X.columns.names if names is None else check_names(names, d)
        if not X.columns.categorical[sorted(_listed(categorical, labels))].all():
            raise ValueError(f"categorical={brief(categorical)} has no effect on a table that is coded already")
        return Coded(X.values, replace(X.columns, names=labels))
    found = _columns_of(X)
    d = len(found.columns)
    labels = default_names(d) if found.labels is None else tuple(map(str, found.labels))
    labels = check_names(labels if names is None else names, d)
    listed = _listed(categorical, labels)
    values, levels = np.empty((found.rows, d)), []
    bad, unique, mixed = [], [], []
    for k, column in enumerate(found.columns):
        own: tuple[Level, ...] | None = None
        try:
            if k in listed or (categorical is not None and _is_category(column)):
                values[:, k], own = _levels_of(column)
                if k not in listed and (word := _word_among_numbers(column)):
                    mixed.append(f"'{shown(labels[k])}' ({word})")
                elif k not in listed and names_rows_of(own, found.rows):
                    unique.append(f"'{shown(labels[k])}' ({len(own)}, such as {brief(own[0])})")
            else:
                values[:, k] = as_numbers(_array(column))
        except (TypeError, ValueError):
            bad.append((labels[k], column))
        levels.append(own)
    if bad:
        what = "numeric" if categorical is None else "numbers or categories"
        raise ValueError(f"columns must be {what}; not {what}: {listing(not_numeric(*one) for one in bad)}")
    if mixed:
        raise ValueError(
            f"most values are numbers and others are text in {listing(mixed)}; give None or NaN where a value is "
            "missing, or list the columns in categorical"
        )
    if unique:
        raise ValueError(
            f"text that differs from row to row in {listing(unique)}: names, dates or numbers of rows are no "
            "categories; leave these columns out, or list them in categorical"
        )
    return Coded(values, Columns(labels, tuple(levels)))


def has_categories(X: Any, categorical: Any = "auto") -> bool:
    """Whether a table has columns that :func:`coded` takes for categories."""
    if isinstance(X, Coded):
        return bool(X.columns.categorical.any())
    if categorical is None:
        return False
    if not (isinstance(categorical, str) and categorical == "auto"):
        return not np.iterable(categorical) or isinstance(categorical, str) or any(True for _ in categorical)
    # a look at the type spares one at the cells
    if isinstance(X, np.ndarray) and X.dtype.kind not in "bOUS":
        return False
    if not _has_columns(X):
        return False
    return any(_is_category(column) for column in _columns_of(X).columns)


def warn_of_rounding(X: Any, columns: Columns) -> None:
    """Warn of whole numbers in a table of anything that become others as float64; levels of categories stay exact."""
    if isinstance(X, Coded) or (isinstance(X, np.ndarray) and X.dtype.kind not in "iuO") or not _has_columns(X):
        return
    cells = zip(columns.names, columns.categorical, _columns_of(X).columns, strict=True)
    if found := [name for name, category, column in cells if not category and _is_inexact(column)]:
        warn(rounded_columns(found), DataWarning)


def _has_columns(X: Any) -> bool:
    """Whether this is a table whose columns can be looked at one by one."""
    return not hasattr(X, "toarray") and (isinstance(X, np.ndarray | list | tuple | dict) or hasattr(X, "columns"))


def _is_inexact(column: Any) -> bool:
    """Whether a column has whole numbers that float64 cannot tell from others."""
    kind = str(getattr(column, "dtype", ""))
    if re.match(r"u?int\d", kind.lower()):
        # Asked of the column: one with missing values may be an array of float64 already.
        cells = [column.min(), column.max()]
    elif kind == "object":
        cells = _array(column).tolist()
    else:
        return False
    whole = (cell for cell in cells if isinstance(cell, numbers.Integral) and not isinstance(cell, bool))
    return any(abs(int(cell)) >= INEXACT for cell in whole)


def rows_of(data: NDArray[np.float64] | Coded) -> NDArray[np.float64]:
    """The rows (n, d) of a table, with codes in place of categories."""
    return data.values if isinstance(data, Coded) else data


def coded_warnings(table: Coded) -> list[str]:
    """Say what in a table with categories will mislead a score, one sentence each: nothing about codes as numbers."""
    names, category = table.columns.names, table.columns.categorical
    numeric, n = np.flatnonzero(~category), len(table.values)
    sentences = []
    if numeric.size < n <= len(names):
        sentences.append(
            f"The table has {n} rows for {len(names)} columns: nothing can be concluded from so few, several times as "
            "many rows as columns are needed."
        )
    if numeric.size:
        sentences += data_warnings(table.values[:, numeric], [names[k] for k in numeric], reads_units=False)
    same: dict[bytes, list[str]] = {}
    for k in np.flatnonzero(category):
        # numbered as they appear, so that other names of the levels make no difference
        _, first, codes = np.unique(table.values[:, k], return_index=True, return_inverse=True)
        same.setdefault(np.argsort(np.argsort(first))[codes].tobytes(), []).append(names[k])
    groups = [" = ".join(f"'{shown(name)}'" for name in group) for group in same.values() if len(group) > 1]
    if groups:
        sentences.append(
            f"Categories that are the same up to the names of their levels: {listing(groups, 5)}; no score can tell "
            "them apart, keep one of each."
        )
    if pairs := _determined(table):
        sentences.append(
            f"Categories that others determine: {listing(pairs, 5)}; such pairs are joined whatever the causes are: "
            "keep one of each."
        )
    many = [
        f"'{shown(name)}' ({len(levels)})"
        for name, levels in zip(names, table.columns.levels, strict=True)
        if levels is not None and n < ROWS_TO_A_LEVEL * len(levels)
    ]
    if many:
        sentences.append(
            f"Categories with many levels for {n} rows: {listing(many)}; little can be learned about them: merge rare "
            "levels, or leave them out."
        )
    return sentences


def _determined(table: Coded) -> list[str]:
    """Pairs of categories of which one has fewer levels, and is the same in all rows of a level of the other."""
    levels, n = table.columns.by_name, len(table.values)
    codes = {name: table.values[:, table.columns.names.index(name)].astype(np.int64) for name in levels}
    pairs = []
    for fine, coarse in itertools.permutations(levels, 2):
        width = len(levels[coarse])
        if not (width < len(levels[fine]) and n >= ROWS_TO_A_LEVEL * len(levels[fine])):
            continue
        # Most pairs show in a few rows already that neither determines the other.
        for rows in (min(n, SOME_ROWS), n):
            joint = codes[fine][:rows] * width + codes[coarse][:rows]
            if np.count_nonzero(np.bincount(joint)) > np.count_nonzero(np.bincount(codes[fine][:rows])):
                break
        else:
            pairs.append(f"'{shown(coarse)}' by '{shown(fine)}'")
    return pairs


def level_text(level: Any) -> str:
    """A level as results show it: whole numbers without a decimal point."""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


# --- columns of anything --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """The columns of a table, and their labels if it has any."""

    columns: list[Any]
    labels: list[Any] | None
    rows: int


def _columns_of(X: Any) -> _Found:
    """The columns of a frame, a mapping or an array."""
    if isinstance(X, dict):
        for name, column in X.items():
            if not hasattr(column, "__len__") or isinstance(column, str):
                raise ValueError(f"the columns of X must be lists or arrays of cells, {brief(name)} is {brief(column)}")
        return _Found([np.array(column, dtype=_kind(column)) for column in X.values()], list(X), _length(X.values()))
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, whose rows are not there yet: X.collect() makes a table of it")
    labels = getattr(X, "columns", None)
    if labels is not None and hasattr(X, "__getitem__"):
        listed = list(labels)
        if not listed:
            raise ValueError("X must have columns, got a data frame without any")
        if len(set(map(str, listed))) < len(listed):
            check_names([str(label) for label in listed], len(listed))
        return _Found([X[label] for label in listed], listed, len(X))
    values = X if type(X) is np.ndarray and X.dtype.kind in "bOUS" else _any_array(X)
    if values.ndim != 2:
        raise ValueError(f"X must be a 2-D array (rows, columns), got shape {values.shape}")
    return _Found(list(values.T), None, len(values))


def _any_array(X: Any) -> NDArray[Any]:
    """An array of what it is made of: numpy would turn numbers beside text into text."""
    try:
        values = np.asarray(X)
        if values.dtype.kind not in "US" or isinstance(X, np.ndarray):
            return values
        return np.array(X, dtype=object)
    except ValueError:
        return as_numbers(X)  # says what is wrong with it


def _kind(column: Any) -> Any:
    """The type for a list of cells; an array keeps its own."""
    plain = isinstance(column, np.ndarray) or not any(isinstance(cell, str) or cell is None for cell in column)
    return None if plain else object


def _length(columns: Iterable[Any]) -> int:
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise ValueError(f"the columns of X must have the same length, got {sorted(lengths)}")
    return lengths.pop()


def _listed(categorical: Any, names: Sequence[str]) -> set[int]:
    """Positions of the columns that are said to be categories."""
    if categorical is None or (isinstance(categorical, str) and categorical == "auto"):
        return set()
    if isinstance(categorical, str) or not np.iterable(categorical):
        raise ValueError(
            f"categorical={brief(categorical)}: allowed are 'auto', None, and a list of names or positions of columns"
        )
    places = set()
    for one in categorical:
        if isinstance(one, str) and one in names:
            places.add(names.index(one))
        elif isinstance(one, numbers.Integral) and not isinstance(one, bool) and 0 <= int(one) < len(names):
            places.add(int(one))
        else:
            raise ValueError(f"categorical: there is no column {brief(one)}; there are {quoted(names, 20)}")
    return places


def _array(column: Any) -> NDArray[Any]:
    """A column (n,) as an array of whatever it holds."""
    return np.asarray(column)


def _declared(column: Any) -> list[Level] | None:
    """The levels that the type of a column declares, in their order; None if it is no type for categories."""
    kind = getattr(column, "dtype", None)
    if type(kind).__name__ not in ("CategoricalDtype", "Categorical", "Enum"):
        return None
    declared = getattr(kind, "categories", None)
    # polars' Categorical has levels in no order of anybody's choice
    return [] if type(kind).__name__ == "Categorical" or declared is None else [*map(_declared_level, list(declared))]


def _is_category(column: Any) -> bool:
    """Whether the type of a column, or text in it, makes it one of categories."""
    if _declared(column) is not None:
        return True
    values = _array(column)
    if values.dtype.kind == "b":
        return True
    if values.dtype.kind not in "OUST":
        return False
    cells = [cell for cell in _cells(column) if cell is not None]
    if not all(isinstance(cell, str | numbers.Real) for cell in cells):
        return False
    if any(isinstance(cell, bool) for cell in cells):
        return True
    return any(isinstance(cell, str) and not _is_number(cell) for cell in cells)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _plain(cell: Any) -> Any:
    """A cell as Python's own type, None if it is missing."""
    if isinstance(cell, str):
        return str(cell)
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _cells(column: Any) -> list[Any]:
    """The cells of a column as Python's own types, None where they are missing."""
    declared = _declared(column)
    if declared is None:
        return [_plain(cell) for cell in _array(column).tolist()]
    codes = getattr(getattr(column, "cat", column), "codes", None)
    if codes is None:
        return [_declared_level(cell) for cell in list(column)]
    # Of pandas by their codes: beside missing cells the ends of intervals become other numbers.
    return [None if code < 0 else declared[code] for code in codes]


def _declared_level(cell: Any) -> Any:
    """A cell of a type for categories: intervals, dates and whatever else is no number as text."""
    plain = _plain(cell)
    return plain if plain is None or isinstance(plain, str | numbers.Real) else str(plain)


def _word_among_numbers(column: Any) -> str | None:
    """How many values are numbers, and the first that is none, where these are most and the others text."""
    if _declared(column) is not None or _array(column).dtype.kind == "b":
        return None
    cells = [(row, cell) for row, cell in enumerate(_cells(column)) if cell is not None]
    words = [(row, cell) for row, cell in cells if isinstance(cell, bool) or not _is_number(cell)]
    if not is_mixed(len(cells) - len(words), len(cells)):
        return None
    return f"{len(cells) - len(words)} of {len(cells)}; row {words[0][0]}: {brief(words[0][1])}"


def _levels_of(column: Any) -> tuple[NDArray[np.float64], tuple[Level, ...]]:
    """Codes (n,) of a column, NaN where it is missing, and the levels that occur in it."""
    declared, values = _declared(column), _array(column)
    if declared is None and values.dtype.kind in "mM":
        raise ValueError("dates are no categories")
    if values.dtype.kind in "biuf":
        distinct, inverse = np.unique(values, return_inverse=True)
        codes, levels = inverse.astype(np.float64), [_plain(value) for value in distinct.tolist()]
        if levels and levels[-1] is None:  # numpy puts NaN last, once
            codes[codes == len(levels) - 1] = np.nan
            levels.pop()
    else:
        cells = _cells(column)
        seen: dict[Any, int] = {}
        codes = np.array([math.nan if c is None else seen.setdefault(c, len(seen)) for c in cells])
        levels = list(seen)
        if not all(isinstance(level, str | numbers.Real) for level in levels):
            raise ValueError("neither text nor numbers")
    if any(isinstance(level, float) and math.isinf(level) for level in levels):
        raise ValueError("infinity is no level")
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"more than {MOST_LEVELS} levels")
    rank = {level: place for place, level in enumerate(declared or ())}
    order = sorted(range(len(levels)), key=lambda k: (rank.get(levels[k], 0), isinstance(levels[k], str), levels[k]))
    place = np.empty(len(levels) + 1)
    place[order] = np.arange(len(levels))
    place[-1] = np.nan
    sorted_levels = tuple(as_level(levels[k]) for k in order)
    return place[np.where(np.isnan(codes), len(levels), codes).astype(np.int64)], sorted_levels


def as_level(level: Any) -> Level:
    """A level as files hold it: whole numbers as such."""
    if isinstance(level, bool | str):
        return level
    return int(level) if float(level).is_integer() else float(level)


def is_mixed(numeric: int, values: int) -> bool:
    """Whether so many numbers among so many values are too many for a column of categories, and too few for numbers."""
    return MOSTLY_NUMBERS * values <= numeric < values


def names_rows_of(levels: Sequence[Level], rows: int) -> bool:
    """Whether levels are names, numbers or dates of rows, and no categories."""
    many = len(levels) > max(rows / 2, FEW_LEVELS) or len(levels) == rows > 4
    return many or (len(levels) > FEW_LEVELS and all(isinstance(level, str) and _is_date(level) for level in levels))


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True
