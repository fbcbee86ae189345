"""``vec2dag convert``: a graph in another format."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from .shared import DONE, add_memory_option, bundled, noting, say, show

__all__ = ["add_to", "run"]

STANDARD = "-"
# Where a folder has its graph: that of discover, or that of bootstrap.
GRAPHS = ("graph.json", "consensus/graph.json")

CONVERT = """\
Write a graph in another format.

IN is a graph in JSON, CSV (a matrix, or an edge list with columns source and target), NPY, NPZ, DOT, GraphML or GML, or
a TXT file of Tetrad or with the table that discover prints; a folder that discover or bootstrap has written; - for the
standard input; or the name of a bundled dataset (sachs). OUT is a file, or - for the standard output.

formats, by the end of OUT or by --to:
  json      .json         all that is known of the edges
  edges     edges.csv     the same as an edge list, with a line for every edge
  csv       .csv          the matrix, without weights
  graphml   .graphml      networkx, igraph, Gephi, Cytoscape, yEd
  gml       .gml          networkx, igraph, Gephi, DoWhy
  dot       .dot, .gv     Graphviz
  tetrad    .txt          Tetrad, causal-learn
  npz       .npz          NumPy

What a format cannot hold is named in a warning.
"""

EXAMPLES = """\
examples:
  vec2dag convert out graph.gml
  vec2dag convert out/graph.json edges.csv
  vec2dag convert out cpdag.txt --cpdag           Tetrad's text of the equivalence class
  vec2dag convert pc.txt - --to json --dag        one DAG of the class that another program found
"""


def add_to(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "convert",
        help="write a graph in another format",
        description=CONVERT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=run)
    p.add_argument("source", metavar="IN", help="a file, a folder, or the name of a bundled dataset")
    p.add_argument("target", metavar="OUT", help="the file to write")
    p.add_argument("--to", metavar="FORMAT", help="the format (default: by the end of OUT)")
    kind = p.add_mutually_exclusive_group()
    kind.add_argument("--dag", action="store_true", help="direct every edge as one DAG of the class does")
    kind.add_argument(
        "--cpdag",
        action="store_true",
        help="write edges of free direction both ways; of a DAG in which nothing is marked free or known, those that "
        "its Markov equivalence class leaves free",
    )
    p.add_argument("--json", action="store_true", help="print what was written as JSON")
    p.add_argument("--encoding", metavar="NAME", help="of a text file IN, as Python calls it (default: UTF-8)")
    add_memory_option(p)
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


def run(arguments: argparse.Namespace) -> int:
    """Read, convert, write."""
    from ..files.atomic import InputError, check_writable, write_atomically
    from ..files.graph_writers import as_bytes, format_of, lost

    to_standard = arguments.target == STANDARD
    if to_standard and arguments.to is None:
        raise InputError("--to must say in which format the standard output gets the graph")
    if to_standard and arguments.json:
        raise InputError("--json would be mixed up with the graph on the standard output: name a file as OUT")
    form = format_of(arguments.target, arguments.to)
    edges, nodes, notes = _load(arguments)
    if arguments.dag:
        edges = _as_dag(edges, nodes)
    elif arguments.cpdag:
        edges = _as_cpdag(edges, nodes, notes)
    content = as_bytes(edges, nodes, form)
    notes += [f"the format {form} cannot hold {what}" for what in lost(edges, form)]
    for note in notes:
        say(f"warning: {note}")
    if to_standard:
        _print(content)
        return DONE
    file = Path(arguments.target)
    check_writable(file.parent)
    write_atomically(file, content)
    joined = {frozenset(edge[:2]): edge.direction for edge in edges}
    counts = {"nodes": len(nodes), "edges": len(joined), "free": [*joined.values()].count("free")}
    written = f"written to {arguments.target}"
    if arguments.json:
        told = counts | {"format": form, "file": str(arguments.target), "warnings": notes}
        show(json.dumps(told, indent=2), f"; {written}")
    elif not arguments.quiet:
        free = f", {counts['free']} of free direction" if counts["free"] else ""
        show(f"{counts['nodes']} nodes, {counts['edges']} edges{free}; {written}", f"; {written}")
    return DONE


def _load(arguments: argparse.Namespace) -> tuple[list[Any], tuple[str, ...], list[str]]:
    """Edges, nodes, and what should be said about how they were read; OUT is none of the files read."""
    from ..files.atomic import InputError
    from ..files.graph_readers import LoadedGraph, load_graph
    from ..files.opening import shown_path

    notes: list[str] = []
    dataset = bundled(arguments.source)
    if dataset is not None:
        graph = LoadedGraph(dataset.A, dataset.names)
    else:
        file = _graph_in(arguments.source)
        if _same(file, arguments.target):
            raise InputError(f"OUT is IN, {shown_path(file)}, which stays as it is: name another file")
        with noting(notes):
            graph = load_graph(file, encoding=arguments.encoding, max_memory=arguments.max_memory)
    if not len(graph.A):
        raise InputError(f"{shown_path(arguments.source)}: the graph has no nodes")
    if graph.names is None:
        notes.append(f"{shown_path(arguments.source)} names no nodes: they are called x0, x1, ...")
    return *graph.stated(), notes


def _graph_in(source: str) -> str:
    """The file of a folder that has the graph; what is no folder is a file."""
    from ..files.atomic import InputError
    from ..files.opening import shown_path

    folder = Path(source)
    if source == STANDARD or not os.path.isdir(folder):
        return source
    found = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
    if found is None:
        raise InputError(
            f"{shown_path(folder)} has no graph.json: a file, or a folder of vec2dag discover or bootstrap, is needed"
        )
    return str(found)


def _same(source: str, target: str) -> bool:
    """Whether two names, neither of them standard, are of one file."""
    try:
        return STANDARD not in (source, target) and os.path.samefile(source, target)
    except (OSError, ValueError):
        return False


def _as_dag(edges: list[Any], nodes: tuple[str, ...]) -> list[Any]:
    """The edges, all of them directed; those that go both ways as one DAG of the class has them."""
    from ..files.atomic import InputError
    from ..files.stated import adjacency
    from ..graph import is_dag, one_dag

    A = adjacency(edges, nodes)
    if not is_dag(A):
        try:
            A = one_dag(A)
        except ValueError as error:
            raise InputError(
                "--dag: this is neither a DAG nor an equivalence class of DAGs: directing its edges would leave a "
                "cycle or make a new collider"
            ) from error
    position = {name: i for i, name in enumerate(nodes)}
    return [
        edge._replace(direction="oriented") if edge.direction == "free" else edge
        for edge in edges
        if A[position[edge.source], position[edge.target]]
    ]


def _as_cpdag(edges: list[Any], nodes: tuple[str, ...], notes: list[str]) -> list[Any]:
    """The edges, those of free direction both ways."""
    from ..files.atomic import InputError
    from ..files.stated import Edge, adjacency, settled
    from ..graph import cpdag, is_dag

    free = [edge for edge in edges if edge.direction == "free"]
    if all(edge.direction == "oriented" for edge in edges):
        A = adjacency(edges, nodes)
        if not is_dag(A):
            raise InputError("--cpdag: the graph has a directed cycle, and only DAGs have an equivalence class")
        C, position = cpdag(A), {name: i for i, name in enumerate(nodes)}
        free = [edge for edge in edges if C[position[edge.target], position[edge.source]]]
        if free:
            notes.append(
                f"nothing is marked as free or known, so the {len(free)} direction(s) that the Markov equivalence "
                "class leaves open are taken to be free"
            )
    # edges that are there, with their weights, come after those that are added
    return settled([*(Edge(edge.target, edge.source) for edge in free), *edges], nodes)


def _print(content: bytes) -> None:
    """The graph, byte for byte."""
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        raise OSError("standard output takes no bytes here: name a file as OUT")
    try:
        stream.write(content)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(f"standard output cannot be written: {error.strerror}") from error
