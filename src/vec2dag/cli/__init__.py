"""The command line: ``vec2dag discover DATA -o DIR``, and ``bootstrap``, ``report`` and so on."""

import argparse
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from .. import __version__
from . import bootstrap, convert, discover, evaluate, report, simulate
from .shared import BAD_INPUT, DONE, INTERRUPTED, TERMINATED, flush, say, untangled
from .words import in_options

__all__ = ["main"]

# The commands import the rest of the library where they use it, so that --help and a typing error answer at once.


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        # a terminal that cannot show a column's name is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    with _interrupted_by_termination() as terminations:
        try:
            try:
                arguments = parser().parse_args(argv)
                arguments.command_line = shlex.join(["vec2dag", *(sys.argv[1:] if argv is None else map(str, argv))])
                code = int(arguments.run(untangled(arguments)))
            finally:
                flush()
        except BrokenPipeError:
            code = DONE
        except KeyboardInterrupt as error:
            say(f"{error if error.args else 'interrupted'}; nothing written")
            code = INTERRUPTED
        except (ValueError, OSError, ImportError, NotImplementedError) as error:
            say(in_options(" ".join(str(error).split())))
            code = BAD_INPUT
        except MemoryError:
            say("there is not memory enough for this table: fewer --columns, or a larger machine")
            code = BAD_INPUT
    return TERMINATED if terminations and code == INTERRUPTED else code


@contextmanager
def _interrupted_by_termination() -> Iterator[list[int]]:
    """Context in which SIGTERM interrupts as Ctrl-C does, so that the best graph so far is written.

    Yields the list to which the signal is added. A second one ends the process at once.
    """
    received: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors, which repeat what was typed, are short and cannot steer the terminal."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        from .._checks import shown

        super().error(shown(message, 300))


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = _Parser(
        prog="vec2dag",
        description="Causal discovery from tables: every vector is a DAG, a policy finds the best one.",
    )
    parser.add_argument("--version", action="version", version=f"vec2dag {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (discover, bootstrap, report, convert, simulate, evaluate):
        command.add_to(commands)
    return parser
