"""Graphs out of files of every format, none of which can fill the memory or run a program."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import quoted, shown, warn
from .arrays import load_matrix
from .atomic import InputError, PathLike
from .dot import parse_dot
from .edgelists import find_ends, listed_edges, printed_edges
from .opening import MAX_MEMORY, Opened, check_memory, checked_names, opened, reason
from .tables import cell_text
from .text import read_rows, text_of

# Bytes of memory that a parser takes for a byte of text, and a list of strings for each of them, roughly.
_PARSED, _CELL = 30, 60


class LoadedGraph(NamedTuple):
    """A graph from a file; `listed` if the file can only name nodes that have edges."""

    A: NDArray[np.uint8]
    names: tuple[str, ...] | None
    listed: bool = False

    def completed(self, nodes: Sequence[str] | None) -> LoadedGraph:
        """With nodes that an edge list could not name, as they have no edges."""
        here = dict.fromkeys(self.names or ())
        more = [name for name in nodes or () if name not in here]
        if not self.listed or not more:
            return self
        return LoadedGraph(np.pad(self.A, (0, len(more))), (*here, *more), True)


def load_graph(path: PathLike, *, encoding: str | None = None, max_memory: float = MAX_MEMORY) -> LoadedGraph:
    """As `read_graph`, for those who have to know where nodes without edges may be missing."""
    with opened(path, _READERS, max_memory) as file:
        A, names, listed = _READERS[file.suffix or _sniffed(file)](file, encoding)
    loops = np.flatnonzero(np.diag(A))
    if loops.size:
        nodes = quoted(str(i) if names is None else names[i] for i in loops)
        raise InputError(f"{file.name}: node(s) {nodes} have an edge to themselves")
    return LoadedGraph(A, names, listed)


def _sniffed(file: Opened) -> str:
    """The suffix that what comes out of a pipe should have."""
    start = file.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if file.kind in ("a NumPy array", "a ZIP archive"):
        return ".npz"
    if re.match(rb"(strict\s+)?(di)?graph\b[^,;]*\{", start, re.IGNORECASE):
        return ".dot"
    return ".json" if start.startswith(b"{") else ".graphml" if start.startswith(b"<") else ".txt"


def _from_edges(file: Opened, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> LoadedGraph:
    """Adjacency matrix of named edges; their ends must be among the names."""
    nodes = checked_names(file.name, names)
    _check_nodes(file, len(nodes))
    position = {name: i for i, name in enumerate(nodes)}
    A = np.zeros((len(nodes), len(nodes)), dtype=np.uint8)
    for source, target in edges:
        for name in (source, target):
            if name not in position:
                raise InputError(
                    f"{file.name}: an edge names '{shown(name)}', which is no node; nodes are {quoted(nodes)}"
                )
        A[position[source], position[target]] = 1
    return LoadedGraph(A, nodes)


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
        edges = [(edge["source"], edge["target"]) for edge in document["edges"]]
        if not all(isinstance(name, str) for name in [*nodes, *(name for edge in edges for name in edge)]):
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
    edges = printed_edges(_checked_text(file, encoding))
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
        edges = listed_edges(file.name, header, ends, rows[1:])
        return _from_listed(file, [(cell_text(source), cell_text(target)) for source, target in edges])
    return _from_matrix(file, rows)


def _from_listed(file: Opened, edges: list[tuple[str, str]]) -> LoadedGraph:
    nodes = list(dict.fromkeys(name for edge in edges for name in edge))
    return _from_edges(file, nodes, edges)._replace(listed=True)


def _is_named_matrix(rows: list[list[str]]) -> bool:
    """Whether variables have the names that headings of an edge list have: names are in the header and in the index."""
    names, index = [cell.strip() for cell in rows[0]], [cells[0].strip() for cells in rows[1:]]
    return sorted(index) == sorted(names if len(rows[-1]) == len(names) + 1 else names[1:])


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
    A = _nonzero(file, matrix)
    if labels is None:
        return LoadedGraph(A, None)
    names = checked_names(file.name, [cell_text(cell) for cell in labels])
    index = [cell_text(cells[0]) for cells in body]
    if not indexed or index in (list(names), [str(i) for i in range(d)]):
        return LoadedGraph(A, names)
    if sorted(index) != sorted(names):
        raise InputError(f"{file.name}: the names in the index are not those in the header: {quoted(index)}")
    return LoadedGraph(A[[index.index(name) for name in names]], names)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _nonzero(file: Opened, matrix: NDArray[np.float64]) -> NDArray[np.uint8]:
    if not np.isfinite(matrix).all():
        raise InputError(f"{file.name}: the matrix contains NaN or infinity")
    return (matrix != 0).astype(np.uint8)


def _read_numpy(file: Opened, _: str | None) -> LoadedGraph:
    matrix, names = load_matrix(file, ("A", "B", "W"), square=True)
    return LoadedGraph(_nonzero(file, matrix), names)


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
        edges = [(label[source], label[target]) for source, target in graph.edges()]
    except InputError:
        raise
    # the parser, networkx and its type conversions raise many types on a damaged file
    except Exception as error:
        raise InputError(f"{file.name}: not a graph in GraphML ({reason(error)})") from error
    if not graph.is_directed():
        edges += [(target, source) for source, target in edges]
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
}
