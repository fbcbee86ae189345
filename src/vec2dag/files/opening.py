"""The bytes of a file, a pipe or the standard input: opened once, unpacked, and counted before they fill the memory."""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from .._checks import check_names, number, shown
from .atomic import InputError, PathLike

MAX_MEMORY = 4.0  # GB of 1e9 bytes
STANDARD_INPUT = "-"

HEAD = 1 << 16
_DESCRIPTOR = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/(self|\d+)/fd/\d+")
_GZIP = b"\x1f\x8b"
# What files begin with that are often called .csv, or come through a pipe.
_SIGNATURES = (
    (b"\x93NUMPY", "a NumPy array"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"%PDF", "a PDF document"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"\x89PNG", "an image"),
    (b"\x89HDF", "an HDF5 file"),
    (b"{\\rtf", "an RTF document"),
)


def shown_path(path: PathLike) -> str:
    """A path as a message may show it."""
    return shown(str(path), 300)


def reason(error: BaseException) -> str:
    """What another library says about an error, as a message may show it."""
    return shown(str(getattr(error, "strerror", None) or error), 300)


class TooLarge(InputError):
    """A file, or what is in it, takes more memory than is allowed."""


def check_memory(name: str, what: str, needed: float, max_memory: float) -> None:
    """Refuse what takes more bytes than are allowed."""
    if needed > 1e9 * max_memory:
        raise TooLarge(
            f"{name}: {what} would take {needed / 1e9:.3g} GB, more than the {max_memory:g} GB allowed; "
            f"--max-memory {math.ceil(needed / 1e9)} allows it"
        )


def checked_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names of columns or nodes, or an error that names the file too."""
    labels = list(names)
    try:
        return check_names(labels, len(labels))
    except ValueError as error:
        raise InputError(f"{name}: {shown(str(error), 800)}") from error


@dataclass
class Opened:
    """An open file.

    Attributes
    ----------
    name : str
        What messages call it.
    suffix : str
        Of its name, in lower case, without `.gz`; "" for a pipe, whose content tells what it is.
    head : bytes
        How it begins: the whole file, if it is shorter than 64 KB.
    stream : binary file
        All bytes, unpacked, from the first on.
    max_memory : float
        GB that its content may take.
    closing : ExitStack
        Closes with the file what was opened on top of it.
    size : int or None
        Bytes of the file, packed as it is; None for a pipe.
    packed : bool
        Whether gzip unpacks it.
    """

    name: str
    suffix: str
    head: bytes
    stream: BinaryIO
    max_memory: float
    closing: ExitStack
    size: int | None = None
    packed: bool = False

    def text(self, encoding: str) -> TextIO:
        """All bytes as text, with its line ends."""
        return self.closing.enter_context(io.TextIOWrapper(self.stream, encoding=encoding, newline=""))

    @property
    def kind(self) -> str | None:
        """What it is if its first bytes tell that it is no text, such as "a PDF document"."""
        for start, kind in _SIGNATURES:
            if self.head.startswith(start):
                return "an Excel workbook" if b"[Content_Types].xml" in self.head[:4096] else kind
        start = self.head[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else None

    def read(self) -> bytes:
        """All bytes."""
        return self.stream.read()

    def seekable(self) -> BinaryIO:
        """All bytes as a file in which one can go back."""
        return self.stream if self.stream.seekable() else io.BytesIO(self.read())


class _Counted(io.RawIOBase):
    """Bytes that were read already, then those of a stream; too many of them are refused."""

    def __init__(self, name: str, head: bytes, stream: BinaryIO | gzip.GzipFile, max_memory: float) -> None:
        self.name, self.max_memory = name, max_memory
        self._head, self._stream, self._count = head, stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if self._head:
            piece, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        self._count += len(piece)
        if self._count > 1e9 * self.max_memory:
            raise TooLarge(
                f"{self.name}: more than the {self.max_memory:g} GB allowed come out of it; "
                f"--max-memory {2 * self.max_memory:g} allows twice as much"
            )
        return len(piece)


@contextmanager
def opened(path: PathLike, suffixes: Iterable[str], max_memory: float) -> Iterator[Opened]:
    """Open a file with one of the suffixes, with or without `.gz`, or a pipe of any name.

    Parameters
    ----------
    path : str or path-like
        `-` is the standard input.
    suffixes : iterable of str
        Those that are allowed.
    max_memory : float
        GB that the content may take; infinite for what is never in memory as a whole.

    Yields
    ------
    Opened
        Valid inside of the context. Errors of reading it, there, become an `InputError`.
    """
    if max_memory != math.inf:
        number("max_memory", max_memory, above=0)
    name = "the standard input" if str(path) == STANDARD_INPUT else shown_path(path)
    try:
        suffix, size = ("", None) if str(path) == STANDARD_INPUT else _suffix_and_size(name, Path(path), suffixes)
        if size is not None:
            check_memory(name, "the file", size, max_memory)
        # a pipe can be opened once only: whoever opened it again would wait for ever
        with _raw(path) as raw, ExitStack() as closing:
            head = raw.read(HEAD)
            if size is None:
                stream = _buffered(_Counted(name, head, raw, max_memory))
            else:
                raw.seek(0)
                stream = raw
            packed = head.startswith(_GZIP)
            if packed:
                unpacked = closing.enter_context(gzip.GzipFile(fileobj=stream))
                head = unpacked.read(HEAD)
                stream = _buffered(_Counted(name, head, unpacked, max_memory))
            yield Opened(name, suffix, head, stream, max_memory, closing, size, packed)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{name}: damaged, or cut off; gzip cannot unpack it ({reason(error)})") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({reason(error)})") from error


def _raw(path: PathLike) -> AbstractContextManager[BinaryIO]:
    if str(path) != STANDARD_INPUT:
        return open(path, "rb")
    if sys.stdin is None:
        raise InputError("the standard input is closed")
    return nullcontext(sys.stdin.buffer)


def _buffered(stream: io.RawIOBase) -> BinaryIO:
    return io.BufferedReader(stream, HEAD)


def _suffix_and_size(name: str, path: Path, suffixes: Iterable[str]) -> tuple[str, int | None]:
    """Suffix in lower case, "" where the content decides, and the number of bytes, None for a pipe."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{name}: no such file") from error
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{name}: no name of a file ({reason(error)})") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{name} is a folder; a file is needed")
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower() or suffix
    if suffix in suffixes:
        return suffix, size
    if size is None or _DESCRIPTOR.fullmatch(str(path)):
        return "", size
    raise InputError(
        f"{name}: unknown suffix '{shown(path.suffix)}'; allowed are {', '.join(suffixes)}, and .gz after those of text"
    )
