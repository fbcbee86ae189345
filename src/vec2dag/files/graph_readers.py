"""Graphs out of files of every format, none of which can fill the memory or run a program."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import default_names, quoted, shown, warn
from .arrays import load_matrix
from .atomic import InputError, PathLike
from .dot import parse_dot
from .edgelists import find_ends, listed_edges, printed_edges
from .gml import parse_gml
from .opening import MAX_MEMORY, Opened, check_memory, checked_names, opened, reason
from .stated import FREE, KNOWN, ORIENTED, Edge, as_direction, as_weight, settled
from .tables import cell_text
from .tetrad import is_tetrad, parse_tetrad
from .text import read_rows, text_of

# Bytes of memory that a parser takes for a byte of text, and a list of strings for each of them, roughly.
_PARSED, _CELL = 30, 60


class LoadedGraph(NamedTuple):
    """A graph from a file.

    Attributes
    ----------
    A : ndarray of shape (d, d), uint8
        What `read_graph` returns: in a list of edges, one of free direction goes both ways.
    names : tuple of str or None
    listed : bool
        Whether the file can only name nodes that have edges.
    edges : sequence of Edge or None
        As the file has them, with weights and directions; None for a matrix.
    marks : mapping of str to ndarray of shape (d, d)
        What a matrix has besides: "weights", "free", "known".
    """

    A: NDArray[np.uint8]
    names: tuple[str, ...] | None
    listed: bool = False
    edges: Sequence[Edge] | None = None
    marks: Mapping[str, NDArray[np.float64]] = MappingProxyType({})

    def stated(self) -> tuple[list[Edge], tuple[str, ...]]:
        """All edges with their weights and directions, and the names of the nodes: x0, x1, ... if they have none."""
        names = default_names(len(self.A)) if self.names is None else self.names
        if self.edges is not None:
            return settled(self.edges, names), names
        weights, free, known = (self.marks.get(mark) for mark in ("weights", FREE, KNOWN))
        edges = []
        for i, j in np.argwhere(self.A).tolist():
            either = free is not None and (free[i, j] or free[j, i])
            direction = FREE if either else KNOWN if known is not None and known[i, j] else ORIENTED
            edges.append(Edge(names[i], names[j], None if weights is None else as_weight(weights[i, j]), direction))
        return settled(edges, names), names

    def completed(self, nodes: Sequence[str] | None) -> LoadedGraph:
        """With nodes that an edge list could not name, as they have no edges."""
        here = dict.fromkeys(self.names or ())
        more = [name for name in nodes or () if name not in here]
        if not self.listed or not more:
            return self
        return self._replace(A=np.pad(self.A, (0, len(more))), names=(*here, *more))


def load_graph(path: PathLike, *, encoding: str | None = None, max_memory: float = MAX_MEMORY) -> LoadedGraph:
    """As `read_graph`, with all that the file says about the edges, and whether it can name nodes without any."""
    with opened(path, _READERS, max_memory) as file:
        graph = _READERS[file.suffix or _sniffed(file)](file, encoding)
    loops = np.flatnonzero(np.diag(graph.A))
    if loops.size:
        nodes = quoted(str(i) if graph.names is None else graph.names[i] for i in loops)
        raise InputError(f"{file.name}: node(s) {nodes} have an edge to themselves")
    return graph


def _sniffed(file: Opened) -> str:
    """The suffix that what comes out of a pipe should have."""
    start = file.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if file.kind in ("a NumPy array", "a ZIP archive"):
        return ".npz"
    if re.match(rb"(strict\s+)?(di)?graph\b[^,;]*\{", start, re.IGNORECASE):
        return ".dot"
    if re.match(rb"((#|creator|version|comment)[^\n]*\n\s*)*graph\s*\[", start, re.IGNORECASE):
        return ".gml"
    return ".json" if start.startswith(b"{") else ".graphml" if start.startswith(b"<") else ".txt"


def _from_edges(file: Opened, names: Sequence[str], edges: Sequence[Edge], both_ways: bool = False) -> LoadedGraph:
    """Adjacency matrix of named edges, whose ends must be among the names; those of free direction may go both ways."""
    nodes = checked_names(file.name, names)
    _check_nodes(file, len(nodes))
    position = {name: i for i, name in enumerate(nodes)}
    A = np.zeros((len(nodes), len(nodes)), dtype=np.uint8)
    for edge in edges:
        for name in edge[:2]:
            if name not in position:
                raise InputError(
                    f"{file.name}: an edge names '{shown(name)}', which is no node; nodes are {quoted(nodes)}"
                )
        i, j = position[edge.source], position[edge.target]
        A[i, j] = 1
        if both_ways and edge.direction == FREE:
            A[j, i] = 1
    return LoadedGraph(A, nodes, edges=edges)


def _check_nodes(file: Opened, d: int) -> None:
    check_memory(file.name, f"a graph of {d} nodes", 8 * d * d, file.max_memory)


def _checked_text(file: Opened, encoding: str | None) -> str:
    """The whole text, unless taking it apart would fill the memory."""
    text = text_of(file, encoding)
    check_memory(file.name, f"a graph of {len(text)} characters", _PARSED * len(text), file.max_memory)
    return text


def _read_json(file: Opened, encoding: str | None) -> LoadedGraph:
    try:
        document = json.loads(_checked_text(file, encoding))
        if document.get("version", 1) != 1:
            version = shown(repr(document["version"]))
            raise InputError(f"{file.name}: version {version} of the format is not known, only 1 is")
        nodes = list(document["nodes"])
        edges = [
            Edge(edge["source"], edge["target"], as_weight(edge.get("weight")), as_direction(edge.get("direction")))
            for edge in document["edges"]
        ]
        if not all(isinstance(name, str) for name in [*nodes, *(name for edge in edges for name in edge[:2])]):
            raise TypeError("nodes must be strings")
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        expected = '{"nodes": [names], "edges": [{"source": name, "target": name}]}'
        raise InputError(
            f"{file.name}: not a graph in JSON ({shown(repr(error), 200)}); expected is {expected}"
        ) from error
    return _from_edges(file, nodes, edges)


def _read_txt(file: Opened, encoding: str | None) -> LoadedGraph:
    file = replace(file, stream=io.BytesIO(file.read()))
    text = _checked_text(file, encoding)
    if is_tetrad(text):
        return _from_edges(file, *parse_tetrad(text, file.name))
    edges = printed_edges(text)
    if edges:
        return _from_listed(file, edges)
    file.stream.seek(0)
    return _read_csv(file, encoding)


def _read_csv(file: Opened, encoding: str | None) -> LoadedGraph:
    table = read_rows(file, encoding=encoding)
    rows, n_cells = [], 0
    for _, cells in table.content:
        rows.append(cells)
        n_cells += len(cells)
        check_memory(file.name, f"a graph of {n_cells} cells and more", _CELL * n_cells, file.max_memory)
    table.note_comments()
    for note in table.lines.notes:
        warn(f"{file.name}: {note}")
    if not rows:
        raise InputError(f"{file.name}: the file is empty")
    header = [cell.strip().lower() for cell in rows[0]]
    ends = find_ends(file.name, header)
    if ends is not None and not _is_named_matrix(rows):
        return _from_listed(file, *listed_edges(file.name, header, ends, rows[1:]))
    return _from_matrix(file, rows)


def _from_listed(file: Opened, edges: list[Edge], alone: Sequence[str] = ()) -> LoadedGraph:
    nodes = list(dict.fromkeys([*(name for edge in edges for name in edge[:2]), *alone]))
    return _from_edges(file, nodes, edges, both_ways=True)._replace(listed=not alone)


def _is_named_matrix(rows: list[list[str]]) -> bool:
    """Whether variables have the names that headings of an edge list have: names are in the header and in the index."""
    names, index = [cell.strip() for cell in rows[0]], [cells[0].strip() for cells in rows[1:]]
    if sorted(index) != sorted(names if len(rows[-1]) == len(names) + 1 else names[1:]):
        return False
    return all(_is_number(cell) for cells in rows[1:] for cell in cells[1:])


def _from_matrix(file: Opened, rows: list[list[str]]) -> LoadedGraph:
    n_rows, width = len(rows), len(rows[-1])
    bare = n_rows == width and all(_is_number(cell) for cell in rows[0])
    indexed = n_rows == width and not bare
    # R leaves the corner out: then the header has one cell less than the rows below it
    labels = None if bare else rows[0][1:] if indexed and len(rows[0]) == width else rows[0]
    body = rows if bare else rows[1:]
    d = width - indexed
    if d != len(body) or d == 0 or any(len(cells) != width for cells in body) or len(labels or body) != d:
        raise InputError(
            f"{file.name}: {n_rows} lines of {width} cells are no graph; needed is a square matrix, with names in "
            "header and index, in the header or nowhere, or an edge list with columns source and target"
        )
    try:
        matrix = np.array([[float(cell) for cell in cells[indexed:]] for cells in body])
    except ValueError as error:
        raise InputError(f"{file.name}: the matrix holds something that is no number ({reason(error)})") from error
    if labels is None:
        return _from_array(file, matrix, None)
    names = checked_names(file.name, [cell_text(cell) for cell in labels])
    index = [cell_text(cells[0]) for cells in body]
    if not indexed or index in (list(names), [str(i) for i in range(d)]):
        return _from_array(file, matrix, names)
    if sorted(index) != sorted(names):
        raise InputError(f"{file.name}: the names in the index are not those in the header: {quoted(index)}")
    return _from_array(file, matrix[[index.index(name) for name in names]], names)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_array(file: Opened, matrix: NDArray[np.float64], names: tuple[str, ...] | None) -> LoadedGraph:
    """The graph of what is not zero; numbers besides 0 and 1 are weights."""
    if not np.isfinite(matrix).all():
        raise InputError(f"{file.name}: the matrix contains NaN or infinity")
    A = (matrix != 0).astype(np.uint8)
    return LoadedGraph(A, names, marks={} if (matrix == A).all() else {"weights": matrix})


def _read_numpy(file: Opened, _: str | None) -> LoadedGraph:
    file = replace(file, stream=file.seekable())
    graph = _from_array(file, *load_matrix(file, ("A", "B", "W"), square=True))
    marks, more = dict(graph.marks), _marks_in(file)
    check_memory(file.name, "the graph with its marks", 8 * graph.A.size * (1 + len(more)), file.max_memory)
    for mark in more:
        # what others call so may be something else
        with suppress(InputError):
            file.stream.seek(0)
            matrix, _names = load_matrix(file, (mark,), square=True)
            if matrix.shape == graph.A.shape:
                marks[mark] = matrix
    return graph._replace(marks=marks)


def _marks_in(file: Opened) -> list[str]:
    """What an archive that can be read has besides a graph."""
    if not file.head.startswith(b"PK"):
        return []
    with zipfile.ZipFile(file.stream) as archive:
        return [mark for mark in ("weights", FREE, KNOWN) if f"{mark}.npy" in archive.namelist()]


def _read_graphml(file: Opened, encoding: str | None) -> LoadedGraph:
    import networkx as nx

    # XML says its encoding itself
    text = file.read() if encoding is None else text_of(file, encoding).encode("utf-8")
    check_memory(file.name, f"a graph of {len(text)} characters", _PARSED * len(text), file.max_memory)
    _check_nodes(file, text.count(b"<node"))
    try:
        _refuse_declarations(file, text)
        graph = nx.read_graphml(io.BytesIO(text))
        # igraph numbers the nodes and keeps their names in an attribute
        attribute = dict(graph.nodes(data="name"))
        label = attribute if all(isinstance(name, str) for name in attribute.values()) else {n: n for n in graph}
        edges = [
            Edge(label[source], label[target], as_weight(said.get("weight")), as_direction(said.get("direction")))
            for source, target, said in graph.edges(data=True)
        ]
    except InputError:
        raise
    # the parser, networkx and its type conversions raise many types on a damaged file
    except Exception as error:
        raise InputError(f"{file.name}: not a graph in GraphML ({reason(error)})") from error
    if not graph.is_directed():
        edges += [Edge(edge.target, edge.source, edge.weight) for edge in edges]
    return _from_edges(file, list(label.values()), edges)


def _refuse_declarations(file: Opened, text: bytes) -> None:
    """Refuse XML that declares entities: a few lines of them can stand for gigabytes, or for other files."""
    from xml.parsers import expat

    def refuse(*_: Any) -> None:
        raise InputError(f"{file.name}: XML with a document type (<!DOCTYPE ...>) is not read; remove it")

    class Root(Exception):
        """The first element, before which all declarations stand."""

    def stop(*_: Any) -> None:
        raise Root

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    with suppress(Root):
        parser.Parse(text, True)


def _read_dot(file: Opened, encoding: str | None) -> LoadedGraph:
    return _from_edges(file, *parse_dot(_checked_text(file, encoding), file.name))


def _read_gml(file: Opened, encoding: str | None) -> LoadedGraph:
    return _from_edges(file, *parse_gml(_checked_text(file, encoding), file.name))


_READERS = {
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_txt,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".dot": _read_dot,
    ".gv": _read_dot,
    ".graphml": _read_graphml,
    ".gml": _read_gml,
}
