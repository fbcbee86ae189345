"""The command line: ``python -m experiments list | run NAME | show NAME | report | judge | numbers FILE``."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vec2dag._parallel import dask_client

from .methods import METHODS
from .process import PEERS_PYTHON, ROOT
from .runner import Limits, jobs_of, judge, run_all, warm_up
from .store import RESULTS, Store
from .tables import TABLES, Run, Table, UsageError, select

SHARED = ROOT.parent / "shared" / "data"


def _wanted(names: list[str] | None, tables: list[Table]) -> Callable[[Run], bool]:
    """Runs by method, by the name in the table, or ``vec2dag`` for everything that is this library."""
    if not names:
        return lambda run: True

    def wanted(run: Run) -> bool:
        own = "vec2dag" in names and METHODS[run.method].own
        return own or run.method in names or run.name in names

    runs = [run for table in tables for run in table.runs]
    there = dict.fromkeys(name for run in runs for name in (run.method, run.name))
    for name in names:
        if name not in METHODS and name not in there:
            raise UsageError(f"--methods must be among {', '.join({**there, **METHODS})}; got {name!r}")
    if not any(map(wanted, runs)):
        raise UsageError(f"--methods: these tables have {', '.join(there)}; got {', '.join(names)}")
    return wanted


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="The tables and figures of the paper.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names of the tables, and of the methods")
    run = commands.add_parser("run", help="make the runs of a table that are missing")
    run.add_argument("names", metavar="NAME", nargs="+", help="tables, or all")
    run.add_argument("--methods", nargs="+", help="only these; vec2dag stands for every run of this library")
    run.add_argument("--seeds", type=int, help="sets of every kind (default: as in the paper)")
    run.add_argument("--jobs", type=int, help="runs at the same time (default: 2, or what the cluster can do)")
    run.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster that makes the runs")
    run.add_argument("--timeout", type=float, default=600.0, help="seconds that a run may take")
    run.add_argument("--memory", type=float, default=8.0, help="gigabytes that a run may take")
    run.add_argument("--peers", type=Path, default=PEERS_PYTHON, help="Python that has the other packages (make peers)")
    run.add_argument("--stale", action="store_true", help="also make runs that other code has made")
    run.add_argument("--again", action="store_true", help="also make runs that are done; the new ones count")
    run.add_argument("--toy", action="store_true", help="a rehearsal: five nodes and budgets that end at once")
    show = commands.add_parser("show", help="print a table")
    show.add_argument("names", metavar="NAME", nargs="+", help="tables, or all")
    report = commands.add_parser("report", help="write RESULTS.md, docs/results and the figures")
    report.add_argument("--out", type=Path, default=ROOT, help="folder of RESULTS.md and docs")
    judge = commands.add_parser("judge", help="prune and compare the graphs of all rows again; runs nothing")
    numbers = commands.add_parser("numbers", help="write the numbers of the rows into pages that ask for them")
    numbers.add_argument("files", metavar="FILE", nargs="+", type=Path, help="Markdown with markers")
    numbers.add_argument("--check", action="store_true", help="write nothing; 1 if a file has other numbers")
    for command in (run, judge):
        command.add_argument("--data", type=Path, help="folder with gp/, pnl_gp/ and networks/, the stored sets")
    for command in (run, show, report, judge, numbers):
        command.add_argument("--results", type=Path, help="folder of the finished runs (default: experiments/results)")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit status."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        return _COMMANDS[args.command](args)
    except (UsageError, ImportError) as error:
        parser.error(str(error))
    except BrokenPipeError:
        # The reader, head for instance, has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if args.command in ("list", "show") else 1


def _folder(args: argparse.Namespace) -> Path | None:
    """Folder of the stored sets; the one beside the checkout if there is one and no other is given."""
    if args.data is not None and not args.data.is_dir():
        raise UsageError(f"--data: there is no folder {args.data}")
    return args.data or (SHARED if SHARED.is_dir() else None)


def _finished(args: argparse.Namespace) -> Store:
    """The finished runs, of which there must be some."""
    folder = args.results or RESULTS
    store = Store(folder)
    if not store.rows:
        raise UsageError(f"--results: there are no finished runs in {folder}")
    return store


def _list(args: argparse.Namespace) -> int:
    for table in TABLES.values():
        print(f"{table.name:16} {table.where:25} {table.title}")
    print(f"\nmethods: {', '.join(METHODS)}")
    return 0


def _run(args: argparse.Namespace) -> int:
    for name in ("jobs", "seeds", "timeout", "memory"):
        value = getattr(args, name)
        if value is not None and not value > 0:
            raise UsageError(f"--{name} must be positive, got {value}")
    tables = [table.toy() if args.toy else table for table in select(args.names)]
    jobs = jobs_of(tables, args.seeds, _wanted(args.methods, tables))
    with _signals_like_the_keyboard(), TemporaryDirectory() as scratch, _cluster(args.scheduler) as client:
        at_once = args.jobs or (2 if client is None else sum(client.nthreads().values()))
        limits = Limits(args.timeout, args.memory, at_once, args.peers, _folder(args))
        # A rehearsal leaves nothing among the results.
        store = Store(args.results or (Path(scratch) if args.toy else RESULTS))
        if not args.toy and client is None:
            print("compiling, if this is the first run", flush=True)
            warm_up(limits)
        pool = None if client is None else client.get_executor(pure=False)
        done = run_all(jobs, store, limits, lambda line: print(line, flush=True), args.again, pool, args.stale)
    return 0 if done else 130


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Context with a client of a Dask cluster, if there is one."""
    if address is None:
        yield None
        return
    try:
        client = dask_client(address)
    except ValueError as error:
        raise UsageError(str(error)) from error
    with client:
        yield client


@contextmanager
def _signals_like_the_keyboard() -> Iterator[None]:
    """Children die and finished runs stay, whether a key or the end of a session stops the command."""
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _show(args: argparse.Namespace) -> int:
    from .report import text

    store = _finished(args)
    print("\n\n".join(text(table, store) for table in select(args.names)))
    return 0


def _report(args: argparse.Namespace) -> int:
    from .report import write

    for file in write(_finished(args), args.out):
        print(file)
    return 0


def _numbers(args: argparse.Namespace) -> int:
    from .numbers import outdated

    found = list(outdated(args.files, _finished(args)))
    for file, text in found:
        print(f"{file}: {'other numbers than the rows' if args.check else 'written'}")
        if not args.check:
            file.write_text(text, encoding="utf-8")
    return int(args.check and bool(found))


def _judge(args: argparse.Namespace) -> int:
    judge(_finished(args), _folder(args))
    return 0


_COMMANDS = {"list": _list, "run": _run, "show": _show, "report": _report, "judge": _judge, "numbers": _numbers}

if __name__ == "__main__":
    sys.exit(main())
