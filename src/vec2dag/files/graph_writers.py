"""Graphs as files of every format, and what each format cannot hold."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import choose, shown
from .atomic import InputError
from .dot import to_dot
from .edgelists import to_edge_list
from .gml import to_gml
from .stated import FREE, KNOWN, Edge
from .tables import csv_cell
from .tetrad import to_tetrad

if TYPE_CHECKING:
    import networkx

Edges = Sequence[Edge]
Names = Sequence[str]


@dataclass(frozen=True)
class Format:
    """How a graph is written to a file.

    Attributes
    ----------
    write : function
        Of edges, in the order of the nodes, and nodes.
    endings : tuple of str
        What names of such files end with, in lower case.
    lacks : tuple of str
        What it cannot hold: "weights", "digits" of weights, "known" directions, "free" directions of edges that go one
        way, or the "way" that such an edge goes.
    """

    write: Callable[[Edges, Names], str | bytes]
    endings: tuple[str, ...]
    lacks: tuple[str, ...] = ()


def to_json(edges: Edges, nodes: Names) -> str:
    """The library's own format, which holds everything."""
    stated = [edge._asdict() for edge in edges]
    document = {"format": "vec2dag-graph", "version": 1, "nodes": nodes, "edges": stated}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def to_matrix(edges: Edges, nodes: Names) -> str:
    """The adjacency matrix as CSV, with names in header and index."""
    present = {edge[:2] for edge in edges}
    cell = {name: csv_cell(name) for name in nodes}
    rows = [[cell[source], *(str(int((source, target) in present)) for target in nodes)] for source in nodes]
    return "".join(",".join(row) + "\n" for row in [["", *cell.values()], *rows])


def as_networkx(edges: Edges, nodes: Names) -> networkx.DiGraph:
    """A networkx graph; its edges have `direction` and, where there is one, `weight`."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    for edge in edges:
        weight = {} if edge.weight is None else {"weight": edge.weight}
        graph.add_edge(edge.source, edge.target, **weight, direction=edge.direction)
    return graph


def to_graphml(edges: Edges, nodes: Names) -> str:
    """GraphML, an XML format that most programs that draw graphs read."""
    import networkx as nx

    text = io.BytesIO()
    # the writer of the standard library, whether or not lxml is installed: the same bytes everywhere
    nx.write_graphml_xml(as_networkx(edges, nodes), text)
    return text.getvalue().decode("utf-8")


def to_npz(edges: Edges, nodes: Names) -> bytes:
    """NumPy's archive: `A`, `names`, and if there are any `weights` (NaN where there is none), `free` and `known`."""
    position = {name: i for i, name in enumerate(nodes)}
    shape = (len(nodes), len(nodes))
    arrays: dict[str, Any] = {"A": np.zeros(shape, np.uint8)}
    if any(edge.weight is not None for edge in edges):
        arrays["weights"] = np.zeros(shape)
    arrays |= {mark: np.zeros(shape, bool) for mark in (FREE, KNOWN) if any(edge.direction == mark for edge in edges)}
    for edge in edges:
        i, j = position[edge.source], position[edge.target]
        arrays["A"][i, j] = 1
        if "weights" in arrays:
            arrays["weights"][i, j] = np.nan if edge.weight is None else edge.weight
        if edge.direction == KNOWN:
            arrays[KNOWN][i, j] = True
        elif edge.direction == FREE:
            arrays[FREE][i, j] = arrays[FREE][j, i] = True
    file = io.BytesIO()
    np.savez(file, **arrays, names=np.array(nodes, dtype=str))
    return file.getvalue()


FORMATS = {
    "json": Format(to_json, (".json",)),
    "edges": Format(to_edge_list, ("edges.csv",)),
    "csv": Format(to_matrix, (".csv",), lacks=("weights", "known", "free")),
    "graphml": Format(to_graphml, (".graphml",)),
    "gml": Format(to_gml, (".gml",)),
    "dot": Format(to_dot, (".dot", ".gv"), lacks=("digits",)),
    "tetrad": Format(to_tetrad, (".txt",), lacks=("weights", "known", "way")),
    "npz": Format(to_npz, (".npz",)),
}
_LACKING = {
    "weights": "the weights of edges",
    "digits": "more than three digits of the weights of edges",
    "known": "which directions were known beforehand",
    "free": "which directions are free (--cpdag writes these edges both ways)",
    "way": "which way edges of free direction go (--dag directs them)",
}


def format_of(file: str, to: str | None = None) -> str:
    """The name of the format that was asked for, or of that which a file's name ends like."""
    if to is not None:
        choose("--to", to, FORMATS)
        return to
    name = PurePath(file).name.lower()
    found = next((key for key, kind in FORMATS.items() if name.endswith(kind.endings)), None)
    if found is None:
        endings = ", ".join(ending for kind in FORMATS.values() for ending in kind.endings)
        raise InputError(f"{shown(file, 300)}: unknown format; a name that ends with {endings}, or --to, says which")
    return found


def as_bytes(edges: Edges, nodes: Names, form: str) -> bytes:
    """A graph in a format, UTF-8 where it is text."""
    content = FORMATS[form].write(edges, nodes)
    return content if isinstance(content, bytes) else content.encode("utf-8")


def lost(edges: Edges, form: str) -> list[str]:
    """What a graph has that a format cannot hold, in words."""
    ways = {edge[:2] for edge in edges}
    one_way = any(edge.direction == FREE and (edge.target, edge.source) not in ways for edge in edges)
    has = {
        "weights": any(edge.weight is not None for edge in edges),
        "digits": any(edge.weight is not None and float(f"{edge.weight:.3g}") != edge.weight for edge in edges),
        "known": any(edge.direction == KNOWN for edge in edges),
        "free": one_way,
        "way": one_way,
    }
    return [_LACKING[what] for what in FORMATS[form].lacks if has[what]]
