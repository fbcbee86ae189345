"""Rows of text become numbers: whether the first holds names, what the cells mean, and what has no name."""

from __future__ import annotations

import itertools
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from .._checks import listing, shown
from .atomic import InputError
from .opening import Opened, check_memory
from .text import TRUTHS, Numbers, Row, has_marks, is_label

Refusal = Callable[[str], InputError]
# Column by column, a cell of text and its line.
Words = dict[int, tuple[int, str]]


class TextFound(InputError):
    """Columns that were read as numbers hold text, or true and false."""

    def __init__(self, sentence: str, words: Words) -> None:
        super().__init__(sentence)
        self.words = words


def how_marked(numbers: Numbers) -> str:
    """What to say about marks that were told from the cells."""
    if numbers.decimal == ".":
        return "commas are read as separators of thousands; --decimal , reads them as decimal marks"
    thousands = ", points as separators of thousands" if numbers.grouped else ""
    return f"commas are read as decimal marks{thousands}; --decimal . reads commas as separators of thousands"


def is_data(first: Sequence[str], above: Sequence[str], numbers: Numbers) -> bool:
    """Whether a first row is one of values, under a comment that can be its header."""
    return len(above) == len(first) and all(numbers.value(cell) is not None for cell in first[1:] or first)


def has_header(first: list[str], body: list[list[str]], numbers: Numbers, notes: list[str]) -> bool:
    """Whether the first row of a text file holds names; doubts are noted."""
    text = {i for i, cell in enumerate(first) if numbers.value(cell) is None}
    below = {i for i, cell in enumerate(body[0]) if numbers.value(cell) is None} if body else set()
    if text - below or len(text) == len(first) or not body:
        return bool(text)
    # what is left to tell: numbers above numbers, with or without row names at the left
    labels = [cell for i, cell in enumerate(first) if i not in text]
    cells = [[cell.strip() for i, cell in enumerate(row) if i not in text] for row in body]
    if not text and not labels[0]:
        # pandas numbers unnamed columns 0, 1, ... after an empty cell for the index
        return len(labels) > 2 and _counts_from_zero(labels[1:]) and cells[0][0] == "0"
    values = [int(cell) for cell in labels if re.fullmatch(r"\d{1,9}", cell)]
    rising = len(values) == len(labels) > 1 and all(a < b for a, b in itertools.pairwise(values))
    fractions = all(any(not is_whole(cell) for cell in row) for row in cells)
    if rising and fractions and _counts_from_zero(labels):
        return True
    shape = f"the first row ({listing(map(shown, labels), 4)})"
    if rising and (_is_years(values, cells) or (fractions and len(values) > 2 and _steps(values) == {1})):
        notes.append(f"{shape} is read as names; --no-header reads it as values")
        return True
    distinct = len(set(values)) == len(labels) > 1
    if (rising and len(values) > 2) or (distinct and fractions):
        notes.append(f"{shape} is read as values; --header reads it as names")
    return False


def has_row_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether two rows or more begin with text."""
    return len(rows) > 1 and all(cells[0].strip() and is_label(cells[0]) for cells in rows)


def names_rows(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether rows have a name or a number of their own left of ``width`` columns with names, as R writes them."""
    if len(rows) < 2 or width < 2 or any(len(cells) != width + 1 for cells in rows):
        return False
    if not any(cells[-1].strip() for cells in rows):  # delimiters at the ends of the lines
        return False
    first = [cells[0].strip() for cells in rows]
    return has_row_names(rows) or any(first == [str(start + i) for i in range(len(rows))] for start in (0, 1))


def _counts_from_zero(labels: Sequence[str]) -> bool:
    return len(labels) > 1 and list(labels) == [str(i) for i in range(len(labels))]


def _steps(values: Sequence[int]) -> set[int]:
    return {b - a for a, b in itertools.pairwise(values)}


def _is_years(values: Sequence[int], below: list[list[str]]) -> bool:
    """Whether these are years at regular steps above cells of which none is one."""
    years = all(1500 <= value < 2200 for value in values) and len(_steps(values)) == 1
    return years and not any(re.fullmatch(r"1[5-9]\d\d|2[01]\d\d", cell) for row in below for cell in row)


def is_whole(cell: str) -> bool:
    """Whether a cell is a number of digits only."""
    return cell.lstrip("+-").isdigit()


@dataclass
class Parser:
    """Rows of text become numbers."""

    file: Opened
    refusal: Refusal
    notes: list[str]
    header: list[str]
    keep: list[int]
    numbers: Numbers
    labelled: bool  # the first column holds row names
    times: int | None = None  # the column that may hold dates
    apart: int | None = None  # a column that is kept as text, beside the numbers
    cells: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # in which these stand
    books: dict[int, dict[str, int]] = field(default_factory=dict)  # of columns of categories, codes by text
    text: Words = field(default_factory=dict)  # of other columns the first text
    truths: Words = field(default_factory=dict)  # and the first true or false
    words: Words = field(default_factory=dict)  # of columns of categories the first cell that is no number
    comments: int = 0

    def parse(self, rows: Iterable[Row]) -> NDArray[np.float64]:
        """The values of the kept columns, shape (n, len(keep))."""
        (values,) = self.pieces(rows)
        return values

    def pieces(self, rows: Iterable[Row], most: float = math.inf, before: int = 0) -> Iterator[NDArray[np.float64]]:
        """The same, at most so many rows at a time, after so many before; text among them is an error at the end."""
        width, keep = len(self.header), self.keep
        pick: Callable[[list[str]], Sequence[str]] = itemgetter(*keep) if len(keep) > 1 else lambda row: [row[keep[0]]]
        subset = keep != list(range(width))
        point = self.numbers.decimal == "."
        limit = 1e9 * self.file.max_memory / 8
        values, n = array("d"), before
        full = most * len(keep)
        labels: set[str] = set()
        for line, cells in rows:
            if len(cells) != width and not self._fits(line, cells):
                continue
            n += 1
            if self.apart is not None:
                self.cells.append(cells[self.apart])
                self.lines.append(line)
            if self.labelled:
                labels.add(cells[0])
                if len(labels) < n:
                    raise self.found({0: (line, cells[0])}, ", which are no row names as they repeat")
            wanted = pick(cells) if subset else cells
            joined = "\x1f".join(wanted)
            try:
                if self.books:
                    raise ValueError
                row = [*map(float, wanted if point else joined.replace(",", ".").split("\x1f"))]
                if "_" in joined or (not point and ("." in joined or len(row) != len(wanted))):
                    row = self._slowly(line, wanted)
            except ValueError:
                row = self._slowly(line, wanted)
            if len(values) >= full:
                yield _matrix(values, len(keep))
                values = array("d")
            values.fromlist(row)
            if len(values) > limit:
                check_memory(self.file.name, f"the first {n} rows", 8 * len(values), self.file.max_memory)
        if not n:
            raise self.refusal("only column names, no rows")
        if self.text:
            raise self.found(self.text)
        if self.comments:
            self.notes.append(f"left out {self.comments} line(s) that begin with # between the rows")
        if self.labelled:
            named = f"'{shown(self.header[0])}'" if self.header[0] else "the first column"
            self.notes.append(f"took {named}, in which no text comes twice, for row names and left it out")
        yield _matrix(values, len(keep))

    def _slowly(self, line: int, cells: Sequence[str]) -> list[float]:
        """The values of a row, cell by cell."""
        found = []
        for i, cell in zip(self.keep, cells, strict=True):
            number = self.numbers.value(cell)
            if i in self.books and (number is None or not math.isnan(number)):
                book = self.books[i]
                if i not in self.words and not is_number(cell):
                    self.words[i] = line, cell
                number = float(book.setdefault(cell.strip(), len(book)))
            elif cell.strip().lower() in TRUTHS:
                self.truths.setdefault(i, (line, cell))
            if number is None and i == self.times:
                number = _seconds(cell)
            if number is None:
                self.text.setdefault(i, (line, cell))
            found.append(math.nan if number is None else number)
        return found

    def _fits(self, line: int, cells: list[str]) -> bool:
        """Make a row with another number of cells fit; False for a comment."""
        width = len(self.header)
        if len(cells) == width + 1 and not cells[-1].strip():
            cells.pop()
            return True
        if is_comment(cells, width):
            self.comments += 1
            return False
        end = "is the first line a title?" if width == 1 else "is it truncated?"
        raise self.refusal(f"line {line} has {len(cells)} cell(s), the first line {width}; {end}")

    def found(self, text: Words, more: str = "") -> TextFound:
        """Columns that hold text, and what to do about them."""
        label = {i: self.header[i] or f"column {i + 1}" for i in sorted(text)}
        found = listing(f"'{shown(label[i])}' ({_place(text[i])})" for i in label)
        advice = "name and exclude these columns, or encode them"
        named = [f"'{shown(self.header[i])}'" for i in label if self.header[i]]
        if named:
            columns = f"{' '.join(named[:8])}{' ...' if len(named) > 8 else ''}"
            advice = f"--exclude {columns} leaves out what is no number, --categorical {columns} reads it as categories"
        if any(has_marks(cell) for _, cell in text.values()):
            advice += ", and --decimal says whether points or commas are the decimal marks"
        sentence = f"non-numeric values in {found}{more}; {advice}{_without_comments(text)}"
        return TextFound(str(self.refusal(sentence)), text)

    def mixed(self, shares: dict[int, tuple[int, int]]) -> InputError:
        """Columns of numbers, so many of so many values, among which there is text."""
        text = {i: self.words[i] for i in shares}
        found = listing(f"'{shown(self.header[i])}' ({k} of {n}; {_place(text[i])})" for i, (k, n) in shares.items())
        columns = " ".join(f"'{shown(self.header[i])}'" for i in list(shares)[:8]) + " ..." * (len(shares) > 8)
        return self.refusal(
            f"most values are numbers and others are text in {found}; leave cells empty where a value is missing; "
            f"--categorical {columns} reads all as categories, --exclude leaves columns out{_without_comments(text)}"
        )


def is_comment(cells: list[str], width: int) -> bool:
    """Whether a row that has not as many cells as others is a remark."""
    return len(cells) != width and cells[0].lstrip().startswith("#")


def is_number(cell: str) -> bool:
    """Whether a cell is a number, of whatever marks, and not true or false."""
    return has_marks(cell) and cell.strip().lower() not in TRUTHS


def _place(word: tuple[int, str]) -> str:
    return f"line {word[0]}: '{shown(word[1], 40)}'"


def _without_comments(text: Words) -> str:
    """What to say where text might begin a comment."""
    marked = any(cell.lstrip().startswith("#") for _, cell in text.values())
    return ", and --comment '#' lines that begin so" if marked else ""


def _matrix(values: array[float], columns: int) -> NDArray[np.float64]:
    return np.frombuffer(values, dtype=np.float64).reshape(-1, columns)


def _seconds(cell: str) -> float | None:
    """Seconds since 1970 of a date, in UTC unless it says otherwise; None if it is none."""
    try:
        when = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


class Unnamed:
    """What has no name is left out: a count of the rows at the left, and columns without values.

    Parameters
    ----------
    header : list of str
        Names of all columns, "" where there is none.
    keep : list of int
        Those that are read.
    """

    def __init__(self, header: list[str], keep: list[int]) -> None:
        self.keep = [i for i in keep if header[i]]
        self._named = [k for k, i in enumerate(keep) if header[i]]
        # by place among those that are read: number of the column, whether it has no values, what it can count from
        self._others: dict[int, tuple[int, bool, tuple[int, ...]]] = {
            k: (i, True, (0, 1) if i == 0 else ()) for k, i in enumerate(keep) if not header[i]
        }
        self._rows = 0

    def without(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The named columns of the next rows."""
        rows = np.arange(self._rows, self._rows + len(X))
        self._rows += len(X)
        for k, (i, empty, starts) in self._others.items():
            counted = tuple(start for start in starts if np.array_equal(X[:, k], rows + start))
            self._others[k] = (i, empty and bool(np.isnan(X[:, k]).all()), counted)
        return np.ascontiguousarray(X[:, self._named]) if self._others else X

    def check(self, notes: list[str], refusal: Refusal) -> None:
        """Say what was left out, once all rows were seen; refuse what cannot be."""
        for i, empty, starts in self._others.values():
            if empty:
                notes.append(f"left out column {i + 1}, which has no name and no values")
            elif starts:
                notes.append("dropped the unnamed first column, which only counts the rows")
            elif i == 0:
                raise refusal("column 1 has an empty name and is no count of the rows; name it or remove it")
            else:
                raise refusal(f"column {i + 1} has an empty name; every column needs a name of its own")
        if not self.keep:
            raise refusal("no column has a name")
