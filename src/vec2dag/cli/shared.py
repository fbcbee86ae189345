"""What the commands share."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .words import in_options

__all__ = [
    "BAD_INPUT",
    "DONE",
    "INTERRUPTED",
    "TERMINATED",
    "add_memory_option",
    "add_output_options",
    "add_table_options",
    "bundled",
    "deliver",
    "flush",
    "load_data",
    "load_table",
    "noting",
    "say",
    "seed",
    "show",
    "telling",
    "untangled",
]

DONE, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 2, 130, 143
# GB that a table, or its text, takes from which on it is not read into memory where that is not needed.
LARGE = 0.5


def say(sentence: str) -> None:
    """One sentence for the person at the terminal, if there is one; nothing in it can steer the terminal."""
    try:
        from .._checks import shown

        text = shown(sentence, 4000)
    except Exception:  # an import that was interrupted half way fails when it is tried again
        text = ascii(sentence)[1:-1]
    if sys.stderr is not None:
        with suppress(OSError):
            line = f"vec2dag: {text}"
            if _has_colours(sys.stderr):
                line = line.replace("vec2dag: warning:", f"vec2dag: {_YELLOW}warning:{_PLAIN}", 1)
            print(line, file=sys.stderr)


def show(text: str, where: str = "") -> None:
    """Print a result; ``where`` else it is, is added to the error if it cannot be printed."""
    try:
        with _standard_output(where):
            print(text, flush=True)
    except KeyboardInterrupt:
        # everything is done but the printing, of which somebody has had enough
        raise SystemExit(INTERRUPTED) from None


def deliver(save: Callable[[], Any], text: str, arguments: argparse.Namespace) -> bool:
    """Write a result and print it as ``text``; whether it could be written.

    What may have taken hours is printed if it cannot be written, however quiet it was meant to be.
    """
    from ..files.atomic import InputError

    written = f"; written to {arguments.output}"
    try:
        save()
    except InputError as error:
        say(str(error))
        show(text if arguments.json else f"{text}; not written")
        return False
    if not arguments.quiet:
        show(text if arguments.json else _painted(f"{text}{written}"), written)
    return True


@contextmanager
def telling(notes: list[str]) -> Iterator[None]:
    """Context after which, whatever has happened, ``notes`` are said as warnings."""
    try:
        yield
    finally:
        for note in dict.fromkeys(notes):
            say(f"warning: {note}")


_BOLD, _DIM, _YELLOW, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"


def _has_colours(stream: Any) -> bool:
    """Whether a stream is a terminal with colours, which its owner has not said to do without (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _painted(summary: str) -> str:
    """A summary with its heading bold, and what stands below the first table dim, where there are colours."""
    if sys.stdout is None or not _has_colours(sys.stdout):
        return summary
    heading, end, rest = summary.partition("\n")
    table, gap, notes = rest.partition("\n\n")
    return f"{_BOLD}{heading}{_PLAIN}{end}{table}{gap}{_DIM}{notes}{_PLAIN}"


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
        help="refuse files whose content would take more, unless it need not be in memory (default: %(default)g)",
    )


def add_output_options(options: Any) -> None:
    """What is printed; :func:`deliver` prints it."""
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


class _Names(argparse.Action):
    """Names of columns, as many as follow the option; nothing parts them from ``what`` the command is about."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        self.what: argparse.Action = options.pop("what")
        super().__init__(option_strings, dest, nargs="+", metavar="NAME", **options)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        names = [*(getattr(namespace, self.dest) or ()), *values]
        setattr(namespace, self.dest, names)
        namespace.names_taken = [*getattr(namespace, "names_taken", ()), (self, values, len(names) - 1)]
        # untangled finds it among the names, or says that it is missing and why.
        self.what.required = False


def untangled(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments, with the table or folder of the command taken from the names of columns that stand before it.

    That is where it is if the last of these names, of one option only, is one of a file or of a bundled dataset.
    """
    taken = vars(arguments).pop("names_taken", [])
    what = taken[0][0].what if taken else None
    if what is None or getattr(arguments, what.dest) is not None:
        return arguments
    ends = [(option.dest, place) for option, names, place in taken if len(names) > 1 and _is_there(names[-1])]
    if len(ends) != 1:
        from .._checks import quoted

        said = " and ".join(f"{option.option_strings[0]} took {quoted(names)}" for option, names, _ in taken)
        order = f"vec2dag {arguments.command} {what.metavar} {taken[-1][0].option_strings[0]} NAME"
        raise ValueError(f"{what.metavar} is missing: {said} for names of columns; write it before them: {order}")
    ((dest, place),) = ends
    found = getattr(arguments, dest).pop(place)
    setattr(arguments, what.dest, what.type(found) if callable(what.type) else found)
    return arguments


def _is_there(name: str) -> bool:
    """Whether a command can be about this: a file, a folder, a pipe, or a bundled dataset."""
    from .. import datasets

    return name == "-" or Path(name).exists() or name in datasets.names()


def add_table_options(options: Any, what: argparse.Action) -> None:
    """What decides how a table is read; :func:`load_table` reads it. ``what`` is the argument without an option."""
    options.add_argument("--columns", action=_Names, what=what, help="use these columns only")
    options.add_argument("--exclude", action=_Names, what=what, default=[], help="leave these columns out")
    options.add_argument(
        "--index-col", dest="exclude", nargs=1, action="extend", metavar="NAME", help="the column that names the rows"
    )
    options.add_argument(
        "--categorical",
        action=_Names,
        what=what,
        help="columns of whole numbers that are categories; those of text, and of true and false, are anyway",
    )
    options.add_argument("--drop-constant", action="store_true", help="leave constant columns out instead of refusing")
    options.add_argument(
        "--missing",
        metavar="WHAT",
        default="refuse",
        help="what to do about missing values; refuse: say where they are (default); drop: leave out rows that have "
        "one; em: means and covariances of greatest likelihood; impute: draw them, anew in every bootstrap sample; "
        "pairwise-complete: covariances of the rows that have both columns",
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
    """Context whose warnings are added to ``notes``, in the words of the command line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [in_options(str(w.message)) for w in caught if issubclass(w.category, UserWarning)]


def bundled(name: str) -> Any:
    """The bundled dataset of this name; None if there is none, or a file of this name."""
    from .. import datasets

    return datasets.load(name) if name in datasets.names() and not Path(name).exists() else None


def load_table(arguments: argparse.Namespace) -> tuple[Any, tuple[str, ...], list[str]]:
    """The table, its names, and what should be said about how it was read."""
    from .._checks import is_constant, quoted
    from ..columns import Coded, Columns
    from ..files.tables import Apart, read_coded, select
    from ..interventions import Interventions

    notes: list[str] = []
    stilled: list[str] = []
    missing = "keep" if _whole(arguments) else arguments.missing
    dataset, time = bundled(arguments.data), getattr(arguments, "time", None)
    named = getattr(arguments, "interventions", None)
    apart = None if named is None else Apart(named)
    if time is not None and arguments.columns and time not in arguments.columns:
        arguments.columns = [*arguments.columns, time]
    if dataset is not None:
        if apart is not None:
            raise ValueError(f"--interventions: the table {arguments.data} has no column that says what was set")
        keep = select(arguments.data, dataset.names, arguments.columns, arguments.exclude)
        table = Coded(dataset.X, Columns.numeric(dataset.names)).taken(keep)
        select(arguments.data, table.columns.names, arguments.categorical)
        table = table.with_categories(arguments.categorical or ())
    else:
        with noting(notes):
            options = {option: getattr(arguments, option) for option in _READING} | {"missing": missing}
            categorical = getattr(arguments, "categorical", None) or "auto"
            options |= {"times": time, "apart": apart, "categorical": categorical, "stilled": stilled}
            table = read_coded(arguments.data, **options)
        if stilled and not arguments.drop_constant:
            raise ValueError(f"{arguments.data}: {stilled[0]}")
    if arguments.drop_constant and (constant := is_constant(table.values)).any():
        dropped = [name for name, out in zip(table.columns.names, constant, strict=True) if out]
        notes.append(f"left out because constant: {quoted(dropped)}")
        table = table.taken([k for k, out in enumerate(constant) if not out])
    if apart is not None:
        # Read here, where errors can still say where in the file they are.
        names = table.columns.names
        arguments.targets = Interventions.of(apart.cells, names, len(table.values), where=apart.where)
    # Tables of numbers stay what they are for whoever works with these.
    return table if table.columns.categorical.any() else table.values, table.columns.names, notes


# --- tables that need not be in memory ------------------------------------------------------------------------


def load_data(
    arguments: argparse.Namespace, parameters: Mapping[str, Any], *, again: bool = False
) -> tuple[Any, tuple[str, ...], list[str]]:
    """The same as :func:`load_table`, but of a large file only what a model with these ``parameters`` asks for.

    That is its moments; or, if the rows are to be read ``again``, a piece at a time, the file.
    """
    from ..files.opening import TooLarge

    arguments.targets = None
    if bundled(arguments.data) is not None:
        return load_table(arguments)
    why = _needs_rows(arguments, parameters)
    if not why and _is_large(arguments):
        return _streamed(arguments, again)
    try:
        return load_table(arguments)
    except TooLarge as error:
        if why:
            raise TooLarge(
                f"{error}; {why} needs all rows in memory, and CSV and Parquet files of any size are learned from "
                "without it"
            ) from error
        if not _can_be_streamed(arguments):
            raise TooLarge(f"{error}; CSV and Parquet files, but no pipes, may have any size") from error
        return _streamed(arguments, again)


def _needs_rows(arguments: argparse.Namespace, parameters: Mapping[str, Any]) -> str:
    """The option for which moments of a table are not enough, "" if there is none."""
    from ..confidence.bootstrap import needs_rows

    if arguments.lags is not None:
        return "--lags"
    if arguments.categorical:
        return "--categorical"
    if arguments.interventions is not None:
        return "--interventions"
    if _whole(arguments):
        return f"--missing {arguments.missing}"
    # Asked one by one, with the others at their defaults, which need none.
    asking = (name for name in ("criterion", "regression", "init", "prune") if needs_rows({name: parameters[name]}))
    return next((f"--{name} {getattr(arguments, name)}" for name in asking), "")


def _whole(arguments: argparse.Namespace) -> bool:
    """Whether what is done about missing values needs the whole table, and is not done as it is read."""
    from .._checks import choose
    from ..missing import TREATMENTS

    return not choose("--missing", arguments.missing, TREATMENTS).once


def _file(arguments: argparse.Namespace) -> Any:
    """The table as a file that is read piece by piece."""
    from ..files.streams import TableFile
    from ..files.tables import Options

    options = {option: getattr(arguments, option) for option in _READING if option not in ("missing", "max_memory")}
    return TableFile(arguments.data, Options(**options), arguments.missing)


def _can_be_streamed(arguments: argparse.Namespace) -> bool:
    from ..files.streams import STREAMED

    name = str(arguments.data).lower().removesuffix(".gz")
    return name.endswith(STREAMED) and bool(_file(arguments).rereadable)


def _is_large(arguments: argparse.Namespace) -> bool:
    """Whether a file is better not read into memory."""
    from .._checks import number

    most = min(LARGE, number("--max-memory", arguments.max_memory, above=0))
    return _can_be_streamed(arguments) and _file(arguments).size() > 1e9 * most


def _streamed(arguments: argparse.Namespace, again: bool) -> tuple[Any, tuple[str, ...], list[str]]:
    """What :func:`load_data` returns of a large file."""
    import numpy as np

    from .._checks import is_constant_by_moments, quoted
    from ..moments import Moments

    file = _file(arguments)
    notes = [
        f"{arguments.data}: large ({file.size() / 1e9:.2g} GB), so it is read piece by piece, and only means and "
        "covariances are kept; columns with few distinct values were not looked for"
    ]
    if again and not arguments.drop_constant:
        with file.opened() as stream:
            return file, stream.names, notes
    with noting(notes):
        moments = Moments.of_file(file, n_jobs=arguments.jobs)
    if arguments.drop_constant:
        constant = is_constant_by_moments(moments.mean, (moments.factor**2).sum(axis=0) / moments.n)
        dropped = [name for name, out in zip(moments.names, constant, strict=True) if out]
        if dropped:
            notes.append(f"left out because constant: {quoted(dropped)}")
            moments, file = moments.taken(np.flatnonzero(~constant)), file.without(dropped)
    return file if again else moments, moments.names, notes
