"""``vec2dag evaluate``: an estimated graph beside the true one."""

import argparse
import json
import math
import re
from typing import Any

from .shared import DONE, add_memory_option, bundled, noting, say

__all__ = ["add_to", "run"]

EVALUATE = """\
Compare an estimated graph with the true one.

TRUE and EST are graphs in JSON, CSV (a matrix with or without names, or an edge list with columns source and
target), NPY, NPZ, DOT, GML or GraphML, or a TXT file with Tetrad's text or the table that discover prints; TRUE may
also be the name of a bundled dataset (sachs), and one of them - for the standard input. Nodes are matched by name,
or by position where a file has no names; those that an edge list does not name have no edges in it.
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
    p.add_argument("--encoding", metavar="NAME", help="of text files, as Python calls it (default: UTF-8)")
    add_memory_option(p)


def run(arguments: argparse.Namespace) -> int:
    """Compare and print."""
    from .. import metrics

    true, estimate, notes = _load(arguments)
    for note in notes:
        say(f"warning: {note}")
    try:
        values = metrics.evaluate(true, estimate, adjustment=arguments.adjustment)
    except MemoryError as error:
        raise ValueError(f"graphs of {len(true)} nodes are too large to compare in the memory there is") from error
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


def _load(arguments: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """Both graphs (d, d), with their nodes in the same order, and what should be said about them."""
    from .._checks import quoted
    from ..files.atomic import InputError
    from ..files.graph_readers import LoadedGraph, load_graph
    from ..files.graphs import align

    if arguments.true == arguments.estimate == "-":
        raise InputError("only one of the graphs can come from the standard input")
    notes: list[str] = []
    settings = {"encoding": arguments.encoding, "max_memory": arguments.max_memory}
    dataset = bundled(arguments.true)
    with noting(notes):
        true = load_graph(arguments.true, **settings) if dataset is None else LoadedGraph(dataset.A, dataset.names)
        estimate = load_graph(arguments.estimate, **settings)
    graphs = {"TRUE": (true, true.completed(estimate.names)), "EST": (estimate, estimate.completed(true.names))}
    for which, (found, whole) in graphs.items():
        added = (whole.names or ())[len(found.names or ()) :]
        if added:
            notes.append(f"{which} is an edge list without {quoted(added)}, taken to have no edges there")
    true, estimate = (whole for _, whole in graphs.values())
    if not len(true.A):
        raise InputError("neither graph has a node")
    if true.names is None or estimate.names is None:
        notes.append("not both files name their nodes; they are matched by position")
    return true.A, align(*true[:2], *estimate[:2]), notes
