"""``vec2dag evaluate``: an estimated graph beside the true one."""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

from .shared import DONE, say

__all__ = ["add_to", "run"]

EVALUATE = """\
Compare an estimated graph with the true one.

TRUE and EST are graphs in JSON, CSV (a matrix with or without names, or an edge list), NPY, NPZ, DOT or
GraphML; TRUE may also be the name of a bundled dataset (sachs). Nodes are matched by name, or by position
where a file has no names.
"""


def add_to(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "evaluate",
        help="compare an estimated graph with the true one",
        description=EVALUATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=run)
    p.add_argument("true", metavar="TRUE", help="a file, or the name of a bundled dataset")
    p.add_argument("estimate", metavar="EST", help="a file")
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")
    p.add_argument(
        "--adjustment",
        action="store_true",
        help='also the adjustment distances, among them SID: needs DAGs and pip install "vec2dag[metrics]"',
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare and print."""
    from .. import datasets, metrics
    from ..files.graphs import align, read_graph

    true_names: tuple[str, ...] | None
    if arguments.true in datasets.names() and not Path(arguments.true).exists():
        bundled = datasets.load(arguments.true)
        true, true_names = bundled.A, bundled.names
    else:
        true, true_names = read_graph(arguments.true)
    estimate, names = read_graph(arguments.estimate)
    estimate = align(true, true_names, estimate, names)
    if true_names is None or names is None:
        say("warning: not both files name their nodes; they are matched by position")
    values = metrics.evaluate(true, estimate, adjustment=arguments.adjustment)
    if arguments.json:
        counts = {"nodes": len(true), "true_edges": metrics.nnz(true, true)}
        defined = {name: None if math.isnan(value) else value for name, value in values.items()}
        print(json.dumps(counts | defined, indent=2))
        return DONE
    print(f"{len(true)} nodes, {metrics.nnz(true, true)} true edges, {values['nnz']} estimated\n")
    for name, value in values.items():
        text = str(value) if isinstance(value, int) else "-" if math.isnan(value) else f"{value:.4f}"
        summary = re.sub(r":func:`(\w+)`", r"\1", (getattr(metrics, name).__doc__ or "").partition("\n")[0])
        # the first phrase of the documentation says what is measured, the rest says how
        print(f"{name:<18}  {text:>8}  {re.split(r'[:;,] | [(]|[.]$', summary)[0]}")
    return DONE
