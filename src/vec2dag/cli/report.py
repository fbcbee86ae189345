"""``vec2dag report``: one page about a graph, to look at in a browser."""

import argparse
from pathlib import Path
from typing import Any

from .shared import DONE, add_table_options, load_table, say, show

__all__ = ["add_to", "run"]

REPORT = """\
Make one HTML file about a graph: the graph to explore, its edges, the data, what was assumed, and how it was made.

DIR is a folder that discover or bootstrap has written. With a second folder the two graphs are compared; if that one
is of bootstrap, and of the same columns, its samples say how sure the edges are. The file needs no network.
"""

EXAMPLES = """\
examples:
  vec2dag report out                            writes out/report.html
  vec2dag report out boot -o report.html        with the shares of samples in boot, a folder of bootstrap
  vec2dag report out --data table.csv           with distributions and correlations, if the folder has none
"""


def add_to(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "report",
        help="a page about a graph, to explore in a browser",
        description=REPORT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=run)
    folder = p.add_argument("folder", metavar="DIR", type=Path, help="a folder of discover or bootstrap")
    p.add_argument("other", metavar="OTHER_DIR", type=Path, nargs="?", help="another one, to compare with")
    p.add_argument("-o", "--output", metavar="FILE", type=Path, help="the page (default: DIR/report.html)")
    p.add_argument("--data", metavar="FILE", help="the table of the fit, or the name of a bundled dataset")
    add_table_options(p.add_argument_group("table of --data"), folder)
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


def run(arguments: argparse.Namespace) -> int:
    """Read, compose, write."""
    from ..files.atomic import check_writable, write_atomically
    from ..report import of_folder, page

    source = of_folder(arguments.folder)
    other = None if arguments.other is None else of_folder(arguments.other)
    if arguments.data is not None:
        source = _with_table(source, arguments)
    file = arguments.folder / "report.html" if arguments.output is None else arguments.output
    check_writable(file.parent)
    write_atomically(file, page(source, other).encode("utf-8"))
    if not arguments.quiet:
        show(f"written to {file}")
    return DONE


def _with_table(source: Any, arguments: argparse.Namespace) -> Any:
    """The source with what its table adds; columns that the graph does not have are left out."""
    from dataclasses import replace

    from .._checks import quoted
    from ..columns import Coded
    from ..files.atomic import InputError

    if not arguments.columns:
        arguments.columns = list(source.nodes)
    X, names, notes = load_table(arguments)
    for note in notes:
        say(f"warning: {note}")
    if isinstance(X, Coded):
        raise InputError(
            f"--data {arguments.data}: what a table adds to a page is for columns of numbers, and "
            f"{quoted(X.columns.by_name)} are categories; discover --report makes the page together with the fit"
        )
    if missing := [name for name in source.nodes if name not in names]:
        raise InputError(f"--data {arguments.data} lacks columns of the graph: {quoted(missing)}")
    told = source.with_table(X[:, [names.index(name) for name in source.nodes]], f"--data {arguments.data}")
    return replace(told, lacking=[sentence for sentence in told.lacking if "--data" not in sentence])
