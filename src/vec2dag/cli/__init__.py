"""The command line: ``vec2dag discover DATA -o DIR``, and ``simulate`` and ``evaluate`` around it."""

import argparse
import os
import sys
from collections.abc import Sequence

from .. import __version__
from . import discover, evaluate, simulate
from .shared import BAD_INPUT, DONE, INTERRUPTED, say

__all__ = ["main"]

# The commands import the rest of the library where they use it, so that --help and a typing error answer at once.


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        # a terminal that cannot show a column's name is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments = parser().parse_args(argv)
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # whoever read the output has enough, as `| head` has; files are written before anything is printed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        say("interrupted before a first graph was ready; nothing written")
        return INTERRUPTED
    except (ValueError, OSError, ImportError, NotImplementedError) as error:
        say(" ".join(str(error).split()))
        return BAD_INPUT


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="vec2dag",
        description="Causal discovery from tables: every vector is a DAG, a policy finds the best one.",
    )
    parser.add_argument("--version", action="version", version=f"vec2dag {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (discover, simulate, evaluate):
        command.add_to(commands)
    return parser
