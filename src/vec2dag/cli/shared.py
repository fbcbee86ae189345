"""What the commands share."""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = [
    "BAD_INPUT",
    "DONE",
    "INTERRUPTED",
    "TERMINATED",
    "add_memory_option",
    "add_table_options",
    "bundled",
    "flush",
    "load_table",
    "noting",
    "say",
    "seed",
    "show",
]

DONE, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 2, 130, 143


def say(sentence: str) -> None:
    """One sentence for the person at the terminal, if there is one; nothing in it can steer the terminal."""
    from .._checks import shown

    if sys.stderr is not None:
        with suppress(OSError):
            print(f"vec2dag: {shown(sentence, 4000)}", file=sys.stderr)


def show(text: str, where: str = "") -> None:
    """Print a result; ``where`` else it is, is added to the error if it cannot be printed."""
    try:
        with _standard_output(where):
            print(text, flush=True)
    except KeyboardInterrupt:
        # everything is done but the printing, of which somebody has had enough
        raise SystemExit(INTERRUPTED) from None


def flush() -> None:
    """Have all output taken."""
    with _standard_output():
        if sys.stdout is not None:
            sys.stdout.flush()


@contextmanager
def _standard_output(where: str = "") -> Iterator[None]:
    """Context that prints; a reader that leaves early, as ``| head`` does, is no error."""
    try:
        yield
    except OSError as error:
        # what is left would be an error again when the interpreter ends
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise OSError(f"standard output cannot be written: {error.strerror}{where}") from error


def seed(text: str) -> int:
    """The value of ``--seed``."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


# --- tables and graphs in files -------------------------------------------------------------------------------


_READING = ("columns", "exclude", "missing", "header", "delimiter", "decimal", "encoding", "comment", "max_memory")


def add_memory_option(options: Any) -> None:
    """The bound on what a file may hold."""
    options.add_argument(
        "--max-memory",
        type=float,
        default=4.0,
        metavar="GB",
        help="refuse files whose content would take more (default: %(default)g)",
    )


def add_table_options(options: Any) -> None:
    """What decides how a table is read; :func:`load_table` reads it."""
    options.add_argument("--columns", nargs="+", action="extend", metavar="NAME", help="use these columns only")
    options.add_argument(
        "--exclude", nargs="+", action="extend", default=[], metavar="NAME", help="leave these columns out"
    )
    options.add_argument("--drop-constant", action="store_true", help="leave constant columns out instead of refusing")
    options.add_argument(
        "--missing",
        metavar="WHAT",
        default="refuse",
        help="drop: leave out rows with missing values; refuse: say where they are (default)",
    )
    options.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the first row of a text file holds the names, or does not (default: as it looks)",
    )
    options.add_argument(
        "--delimiter", metavar="CHAR", help="between cells; tab and space by name (default: as it looks)"
    )
    options.add_argument("--decimal", metavar="MARK", help=". or , (default: as it looks)")
    options.add_argument(
        "--encoding", metavar="NAME", help="of text, as Python calls it (default: UTF-8, UTF-16 with a mark, or cp1252)"
    )
    options.add_argument("--comment", metavar="CHAR", help="leave out lines that begin with it")
    add_memory_option(options)


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Context whose warnings are added to ``notes``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def bundled(name: str) -> Any:
    """The bundled dataset of this name; None if there is none, or a file of this name."""
    from .. import datasets

    return datasets.load(name) if name in datasets.names() and not Path(name).exists() else None


def load_table(arguments: argparse.Namespace) -> tuple[Any, tuple[str, ...], list[str]]:
    """The table, its names, and what should be said about how it was read."""
    from .._checks import drop_constant, quoted
    from ..files.tables import read_table, select

    notes: list[str] = []
    dataset, time = bundled(arguments.data), getattr(arguments, "time", None)
    if time is not None and arguments.columns and time not in arguments.columns:
        arguments.columns = [*arguments.columns, time]
    if dataset is not None:
        keep = select(arguments.data, dataset.names, arguments.columns, arguments.exclude)
        X, names = dataset.X[:, keep], tuple(dataset.names[i] for i in keep)
    else:
        with noting(notes):
            options = {option: getattr(arguments, option) for option in _READING}
            X, names = read_table(arguments.data, **options, times=time)
    if arguments.drop_constant:
        X, names, dropped = drop_constant(X, names)
        if dropped:
            notes.append(f"left out because constant: {quoted(dropped)}")
    return X, names, notes
