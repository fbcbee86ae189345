"""``vec2dag simulate``: a table from a known graph."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from .shared import DONE, seed, show

__all__ = ["add_to", "run"]

SIMULATE = """\
Draw a table from a known graph: one of the settings of the paper.

The folder receives data.csv, the graph that made the data in truth/ (graph.json, adjacency.csv, graph.dot,
graph.graphml) and meta.json (how the data were made). The same preset and seed give the same bytes.
"""

SIMULATE_EXAMPLES = """\
examples:
  vec2dag simulate --list
  vec2dag simulate dense-er8 -o er8 --seed 1
  vec2dag discover er8/data.csv -o er8/found --criterion bic-ev
  vec2dag evaluate er8/truth/graph.json er8/found/graph.json
"""


def add_to(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "simulate",
        help="draw a table from a known graph",
        description=SIMULATE,
        epilog=SIMULATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=run)
    p.add_argument("preset", metavar="PRESET", help="which setting; --list names them all")
    p.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="folder to write to")
    p.add_argument("--seed", type=seed, default=0, metavar="N", help="another seed, other data (default: 0)")
    p.add_argument("--list", action=_ListPresets, help="print the names of the presets and exit")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


class _ListPresets(argparse.Action):
    """An option that ends the program, like --help, so that no other argument is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ..simulate import presets

        print("\n".join(presets()))
        parser.exit()


def run(arguments: argparse.Namespace) -> int:
    """Draw and write."""
    from .. import simulate
    from .._checks import brief
    from ..files.atomic import as_json, check_writable, write_together
    from ..files.graphs import graph_files
    from ..files.tables import table_file

    if arguments.preset not in simulate.presets():
        raise ValueError(f"no preset {brief(arguments.preset)}; there are {', '.join(simulate.presets())}")
    folder = check_writable(arguments.output)
    data = simulate.preset(arguments.preset, seed=arguments.seed)
    (n, d), edges = data.X.shape, int(data.A.sum())
    # standardised columns no longer have the coefficients that made them
    weights = None if data.meta.get("standardised") else data.meta.get("weights")
    truth = graph_files(data.A, data.names, weights=weights)
    meta = {key: value for key, value in data.meta.items() if key != "weights"}
    meta |= {"rows": n, "columns": d, "edges": edges, "vec2dag": __version__}
    files = {"data.csv": table_file(data.X, data.names)}
    files |= {f"truth/{name}": content for name, content in truth.items()}
    write_together(folder, files | {"meta.json": as_json(meta)})
    if not arguments.quiet:
        written = f"; written to {folder}"
        show(f"{n} rows, {d} columns, {edges} edges{written}", written)
    return DONE
