"""Delimited text: its encoding, its separators, its rows, and what a number looks like in it."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .._checks import brief, choose, shown, warn
from .atomic import InputError
from .opening import HEAD, Opened

Row = tuple[int, list[str]]

# Cells, in small letters, that hold no value.
MISSING = ("", "na", "n/a", "#n/a", "<na>", "null", "none", "?", ".")
# Texts that stand for a truth value.
TRUTHS = {"true": True, "false": False}
_WORDS = dict.fromkeys(MISSING, math.nan) | {word: float(truth) for word, truth in TRUTHS.items()}
# Between thousands, besides the mark that is not the decimal one; never between other digits.
_BLANKS = " \u00a0\u2009\u202f'\u2019"
_LEGACY = "cp1252"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "blank": " "}
_SAMPLE = 50


# --- numbers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """How numbers are written.

    Attributes
    ----------
    decimal : "." or ","
        The decimal mark.
    grouped : bool
        Whether the other mark stands between thousands.
    """

    decimal: str = "."
    grouped: bool = False

    def value(self, cell: str) -> float | None:
        """The value of a cell, NaN if it is missing, None if it is text."""
        text = cell.strip().replace("\u2212", "-")
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if self.decimal == "," and "." not in text:
            text = text.replace(",", ".", 1)
        elif self.decimal == ",":
            text = self._ungrouped(text) or "text"
        try:
            # Python reads 1_000 as a number; in a table it is a label
            return None if "_" in text else float(text)
        except ValueError:
            plain = self._ungrouped(cell.strip().replace("\u2212", "-"))
            return None if plain is None else float(plain)

    def _ungrouped(self, text: str) -> str | None:
        """A number without the separators of its thousands, None if it is no such number."""
        marks = _BLANKS + (("," if self.decimal == "." else ".") if self.grouped else "")
        match = re.fullmatch(
            rf"([+-]?[1-9]\d{{0,2}})((?P<mark>[{marks}])\d{{3}}(?:(?P=mark)\d{{3}})*)([{self.decimal}]\d*)?", text
        )
        if match is None:
            return None
        return match[1] + match[2].replace(match["mark"], "") + (match[4] or "").replace(",", ".")


def has_marks(cell: str) -> bool:
    """Whether a cell is a number for somebody who knows which mark is the decimal one."""
    return any(Numbers(decimal, True).value(cell) is not None for decimal in ".,")


def is_label(cell: str) -> bool:
    """Whether a cell can be the name of a row: text, and no amount either."""
    return not has_marks(cell.strip().strip("$€£¥%"))


def numbers_of(cells: Iterable[str], decimal: str | None) -> Numbers:
    """How these cells write numbers: as `decimal` says, or as they show without doubt, or else as Python does."""
    if decimal is not None:
        return Numbers(choose("decimal", decimal, {".": ".", ",": ","}), grouped=True)
    proofs = set()
    for cell in cells:
        if "," in cell or cell.count(".") > 1:
            point, comma = (Numbers(mark, True).value(cell) is not None for mark in ".,")
            if point != comma:
                proofs.add(Numbers("." if point else ",", grouped=not _once(cell)))
    marks = {proof.decimal for proof in proofs}
    if len(marks) != 1:
        return Numbers()
    return Numbers(marks.pop(), grouped=any(proof.grouped for proof in proofs))


def _once(cell: str) -> bool:
    return cell.count(",") + cell.count(".") == 1


# --- lines ----------------------------------------------------------------------------------------------------


@dataclass
class Lines:
    """The lines of a text file; `notes` says how they were read, where that was not obvious."""

    name: str
    encoding: str
    content: Iterator[str]
    first: list[str]  # some lines from the start, which `content` will give again
    notes: list[str] = field(default_factory=list)

    def size(self, count: int) -> int | None:
        """Bytes of the first lines of a UTF-8 file; None where they are not among those that are known."""
        if count > len(self.first):
            return None
        mark = len(codecs.BOM_UTF8) if self.encoding == "utf-8-sig" else 0
        return mark + len("".join(self.first[:count]).encode())

    def refusal(self, sentence: str) -> InputError:
        """An error that also says how the file was read."""
        return InputError(f"{self.name}: {'; '.join([sentence, *self.notes])}")


def text_of(file: Opened, encoding: str | None = None) -> str:
    """The whole text of a file, and a warning where its encoding had to be guessed."""
    name, note = _encoding(file, encoding)
    try:
        text = file.read().decode(name)
    except UnicodeDecodeError as error:
        raise _undecodable(file.name, name, error) from error
    if note:
        warn(f"{file.name}: {note}")
    return text.removeprefix("\ufeff")


def lines_of(file: Opened, encoding: str | None = None) -> Lines:
    """The lines of a file, as they are read."""
    name, note = _encoding(file, encoding)
    try:
        # a character that the sample cuts in two is left out
        sample = codecs.getincrementaldecoder(name)().decode(file.head)
    except UnicodeDecodeError as error:
        raise _undecodable(file.name, name, error) from error
    first = io.StringIO(sample.removeprefix("\ufeff"), newline="").readlines()
    if len(file.head) >= HEAD and len(first) > 1:
        first.pop()  # the last line may be cut off too
    return Lines(file.name, name, _stripped(file.text(name)), first, [note] if note else [])


def _stripped(lines: Iterable[str]) -> Iterator[str]:
    """The lines without the mark of byte order that some encodings leave."""
    rest = iter(lines)
    return itertools.chain((line.removeprefix("\ufeff") for line in itertools.islice(rest, 1)), rest)


def _encoding(file: Opened, encoding: str | None) -> tuple[str, str]:
    """The name of the encoding and what should be said about it; what is no text is refused."""
    if encoding is not None:
        try:
            # of the codecs that Python has, some turn text into text or bytes into bytes
            "".encode(encoding)
            return codecs.lookup(encoding).name, ""
        except LookupError as error:
            raise InputError(f"encoding={brief(encoding)} is unknown; utf-8, utf-16, latin-1 and cp1252 are") from error
    if file.kind is not None:
        raise InputError(f"{file.name}: this is {file.kind}, not text; a table must be saved as CSV, for instance")
    for mark, name in _BOMS:
        if file.head.startswith(mark):
            return name, ""
    if b"\0" in file.head:
        raise InputError(
            f"{file.name}: holds NUL bytes, so it is no plain text; --encoding utf-16-le reads UTF-16 without a mark"
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(file.head)
    except UnicodeDecodeError as error:
        byte = f"{file.head[error.start]:#04x}"
        try:
            file.head.decode(_LEGACY)
        except UnicodeDecodeError:
            raise InputError(f"{file.name}: not UTF-8 text (byte {byte}); --encoding says what it is") from error
        return _LEGACY, f"not UTF-8 text (byte {byte}), read as {_LEGACY}; --encoding names another"
    return "utf-8", ""


def _undecodable(name: str, encoding: str, error: UnicodeDecodeError) -> InputError:
    byte = f"{error.object[error.start]:#04x}"
    advice = "--encoding latin-1 reads Western European text" if encoding == "utf-8" else "--encoding names another"
    return InputError(f"{name}: not {encoding.upper()} text (byte {byte}); {advice}")


# --- rows -----------------------------------------------------------------------------------------------------


@dataclass
class Rows:
    """The rows of a delimited text file, blank lines and comments left out."""

    lines: Lines
    content: Iterator[Row]
    comments: list[str]  # above the first row
    above: list[str]  # cells of the last of them
    delimiter: str
    comment: str | None  # what lines begin with that are left out, if that was said
    skipped: int  # lines above the first row

    def note_comments(self, names: bool = False) -> None:
        """Say what became of the comments, the last of which may hold the names of the columns."""
        if names and self.comments[-1].lstrip().startswith("# "):
            self.lines.notes.append("took the names of the columns from the line above them that begins with #")
        left_out = len(self.comments) - names
        if left_out:
            self.lines.notes.append(f"left out {left_out} line(s) that begin with #")


def read_rows(
    file: Opened, *, delimiter: str | None = None, encoding: str | None = None, comment: str | None = None
) -> Rows:
    """Line numbers and cells of a delimited text file."""
    lines = lines_of(file, encoding)
    if comment is not None and (len(comment) != 1 or comment in "\"'\r\n"):
        raise InputError(f"comment must be one character, got {shown(repr(comment))}")
    mark = comment or "#"
    comments = list(itertools.takewhile(lambda line: _is_comment(line, mark) or not line.strip(), lines.first))
    sample = lines.first[len(comments) :]
    content = itertools.islice(lines.content, len(comments), None)
    skipped = len(comments)
    announced = re.fullmatch(r'"?sep=(.)"?\s*', sample[0]) if sample else None
    if announced:  # Excel says its separator in a line of its own
        content, skipped, sample = itertools.islice(content, 1, None), skipped + 1, sample[1:]
        delimiter = announced[1] if delimiter is None else delimiter
    if comment is not None:
        sample = [line for line in sample if not _is_comment(line, mark)]
    chosen = _delimiter(sample[:_SAMPLE], file.suffix) if delimiter is None else _checked_delimiter(delimiter)
    comments = [line for line in comments if line.strip() and comment is None]
    above = _above(comments[-1], mark, chosen) if comments else []
    return Rows(lines, _split(lines, content, chosen, skipped, comment), comments, above, chosen, comment, skipped)


def _is_comment(line: str, mark: str) -> bool:
    return line.lstrip().startswith(mark) and not line.lstrip().lower().startswith("#n/a")


def _above(line: str, mark: str, delimiter: str) -> list[str]:
    """The cells of a comment; a blank parts its mark from a name, and a name may begin with the mark too."""
    text = line.strip()
    return next(iter(_cells([text.removeprefix(mark) if text.startswith(f"{mark} ") else text], delimiter)), [])


def _split(lines: Lines, content: Iterator[str], delimiter: str, skipped: int, comment: str | None) -> Iterator[Row]:
    if comment is not None:
        # an empty line in its place keeps the count of lines
        content = ("\n" if _is_comment(line, comment) else line for line in content)
    if delimiter == " ":
        content = (line.strip() for line in content)
    reader = csv.reader(content, delimiter=delimiter, skipinitialspace=delimiter == " ")
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield reader.line_num + skipped, cells
    except UnicodeDecodeError as error:
        raise _undecodable(lines.name, lines.encoding, error) from error
    except csv.Error as error:
        line = reader.line_num + skipped
        raise lines.refusal(f"line {line} cannot be read ({error}); is a quote left open?") from error


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cells of a few lines, none where that is impossible."""
    stripped = [line.strip(" \r\n") for line in lines]
    try:
        return list(csv.reader(stripped, delimiter=delimiter, skipinitialspace=delimiter == " "))
    except csv.Error:
        return []


def _checked_delimiter(delimiter: str) -> str:
    character = _DELIMITERS.get(delimiter, delimiter)
    if len(character) != 1 or character in '"\r\n':
        raise InputError(f"delimiter must be one character, 'tab' or 'space', got {shown(repr(delimiter))}")
    return character


def _delimiter(sample: Sequence[str], suffix: str) -> str:
    """The character between the cells: the only candidate in the first line, or the one that parts numbers best."""
    candidates = {".csv": ",;\t|", ".tsv": "\t"}.get(suffix, "\t,;| ")
    unquoted = re.sub('"[^"]*"?', "quoted", sample[0]).strip(" \r\n") if sample else ""
    present = [candidate for candidate in candidates if candidate in unquoted]
    if len(present) == 1:
        return present[0]
    if not present:
        blanks = suffix == ".csv" and " " in unquoted and _parted(sample, " ") == (True, 1.0)
        return " " if blanks else candidates[0]
    return max(present, key=lambda candidate: _parted(sample, candidate))


def _parted(sample: Sequence[str], delimiter: str) -> tuple[bool, float]:
    """Whether all rows have the same number of cells, and the share of numbers below the first."""
    rows = [cells for cells in _cells(sample, delimiter) if cells]
    cells = [cell for row in rows[1:] or rows for cell in row]
    if not cells:
        return False, 0.0
    return len({*map(len, rows)}) == 1, sum(map(has_marks, cells)) / len(cells)
