"""The command line: ``python -m experiments list | run NAME | show NAME | report``."""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from .methods import METHODS
from .process import PEERS_PYTHON, ROOT
from .runner import Limits, jobs_of, measure_data, run_all, warm_up
from .store import RESULTS, Store
from .tables import TABLES, Run, select

SHARED = ROOT.parent / "shared" / "data"


def _wanted(names: list[str] | None) -> Callable[[Run], bool]:
    """Runs by method, by the name in the table, or ``vec2dag`` for everything that is this library."""
    if not names:
        return lambda run: True
    known = set(METHODS) | {run.name for table in TABLES.values() for run in table.runs}
    for name in names:
        if name not in known:
            raise ValueError(f"--methods must be among {', '.join(METHODS)}; got {name!r}")
    return lambda run: run.method in names or run.name in names or ("vec2dag" in names and METHODS[run.method].own)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="The tables and figures of the paper.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names of the tables, and of the methods")
    run = commands.add_parser("run", help="make the runs of a table that are missing")
    run.add_argument("names", metavar="NAME", nargs="+", help="tables, or all")
    run.add_argument("--methods", nargs="+", help="only these; vec2dag stands for every run of this library")
    run.add_argument("--seeds", type=int, help="sets of every kind (default: as in the paper)")
    run.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    run.add_argument("--timeout", type=float, default=600.0, help="seconds that a run may take")
    run.add_argument("--memory", type=float, default=8.0, help="gigabytes that a run may take")
    run.add_argument("--peers", type=Path, default=PEERS_PYTHON, help="Python that has the other packages (make peers)")
    run.add_argument("--toy", action="store_true", help="a rehearsal: five nodes and budgets that end at once")
    show = commands.add_parser("show", help="print a table")
    show.add_argument("names", metavar="NAME", nargs="+", help="tables, or all")
    report = commands.add_parser("report", help="write RESULTS.md and the figures")
    report.add_argument("--out", type=Path, default=ROOT, help="folder of RESULTS.md and docs/figures")
    for command in (run, report):
        command.add_argument("--data", type=Path, default=SHARED, help="folder with gp/ and pnl_gp/, the stored sets")
    for command in (run, show, report):
        command.add_argument("--results", type=Path, default=RESULTS, help="folder of the finished runs")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit status."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        return _COMMANDS[args.command](args)
    except ValueError as error:
        parser.error(str(error))
    except BrokenPipeError:
        # The reader, head for instance, has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _folder(args: argparse.Namespace) -> Path | None:
    """Folder of the stored sets, if it is there."""
    return args.data if args.data.is_dir() else None


def _list(args: argparse.Namespace) -> int:
    for table in TABLES.values():
        print(f"{table.name:16} {table.where:25} {table.title}")
    print(f"\nmethods: {', '.join(METHODS)}")
    return 0


def _run(args: argparse.Namespace) -> int:
    for name in ("jobs", "seeds", "timeout", "memory"):
        value = getattr(args, name)
        if value is not None and not value > 0:
            raise ValueError(f"--{name} must be positive, got {value}")
    tables = [table.toy() if args.toy else table for table in select(args.names)]
    limits = Limits(args.timeout, args.memory, args.jobs, args.peers, _folder(args))
    store = Store(args.results)
    wanted = _wanted(args.methods)
    # Ended by a signal like by the keyboard: children die, finished runs stay.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not args.toy:
        print("compiling, if this is the first run")
        warm_up(limits)
    for table in tables:
        if not table.runs:
            measure_data(table, store, limits)
    done = run_all(jobs_of(tables, args.seeds, wanted), store, limits, lambda line: print(line, flush=True))
    return 0 if done else 130


def _show(args: argparse.Namespace) -> int:
    from .report import text

    store = Store(args.results)
    print("\n\n".join(text(table, store) for table in select(args.names)))
    return 0


def _report(args: argparse.Namespace) -> int:
    from .report import write

    for file in write(Store(args.results), args.out, _folder(args)):
        print(file)
    return 0


_COMMANDS = {"list": _list, "run": _run, "show": _show, "report": _report}

if __name__ == "__main__":
    sys.exit(main())
