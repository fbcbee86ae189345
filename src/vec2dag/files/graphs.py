"""Graphs in files: JSON, CSV, DOT, GraphML, NPY and NPZ, with every column name surviving each of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_names, quoted
from .atomic import InputError, PathLike, check_writable, write_atomically
from .dot import parse_dot, to_dot
from .tables import checked_names, csv_cell, existing_file, load_matrix, read_rows

if TYPE_CHECKING:
    import networkx

Graph = tuple[NDArray[np.uint8], tuple[str, ...] | None]


def write_graph(
    directory: PathLike,
    A: ArrayLike,
    names: Sequence[str],
    *,
    weights: ArrayLike | None = None,
    free: ArrayLike | None = None,
) -> list[Path]:
    """Write a graph as graph.json, adjacency.csv, graph.dot and graph.graphml, each atomically.

    Where directions may be free, cpdag.csv has the edges with a free direction both ways.

    Parameters
    ----------
    directory : str or path-like
        The folder, created if needed.
    A : array-like of shape (d, d)
        Adjacency matrix; A[i, j] nonzero means i -> j.
    names : sequence of str
        Names of the d nodes.
    weights : array-like of shape (d, d), optional
        Strength of the edges, finite; the attribute `weight` in JSON and GraphML, the label in DOT.
    free : array-like of shape (d, d), bool, optional
        Symmetric; True where the data do not determine the direction. The attribute `direction` of an edge is
        "free" there and "oriented" elsewhere; DOT draws a free edge dashed and without an arrowhead.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ValueError
        Shapes or names do not fit.
    InputError
        The folder cannot be written.
    """
    edges, nodes = _edges(A, names, weights, free)
    content = {
        "graph.json": _to_json(edges, nodes),
        "adjacency.csv": _to_csv(edges, nodes),
        "graph.dot": to_dot(edges, nodes),
        "graph.graphml": _to_graphml(to_networkx(A, names, weights, free)),
    }
    if free is not None:
        back = [{"source": e["target"], "target": e["source"]} for e in edges if e["direction"] == "free"]
        content["cpdag.csv"] = _to_csv([*edges, *back], nodes)
    folder = check_writable(directory)
    for name, text in content.items():
        try:
            write_atomically(folder / name, text.encode("utf-8"))
        except OSError as error:
            raise InputError(f"cannot write {folder / name}: {error.strerror}") from error
    return [folder / name for name in content]


def to_networkx(
    A: ArrayLike, names: Sequence[str], weights: ArrayLike | None = None, free: ArrayLike | None = None
) -> networkx.DiGraph:
    """A networkx graph whose nodes are the column names, in their order, as DoWhy takes it.

    Parameters
    ----------
    A : array-like of shape (d, d)
        Adjacency matrix; A[i, j] nonzero means i -> j.
    names : sequence of str
        Names of the d nodes.
    weights : array-like of shape (d, d), optional
        Edge attribute `weight`.
    free : array-like of shape (d, d), bool, optional
        Edge attribute `direction`: "free" where True, "oriented" elsewhere.

    Returns
    -------
    networkx.DiGraph
        The graph.
    """
    import networkx as nx

    edges, nodes = _edges(A, names, weights, free)
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    for edge in edges:
        attributes = {key: edge[key] for key in ("weight", "direction") if edge[key] is not None}
        graph.add_edge(edge["source"], edge["target"], **attributes)
    return graph


def _edges(
    A: ArrayLike, names: Sequence[str], weights: ArrayLike | None, free: ArrayLike | None
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Edges as dictionaries with source, target, weight and direction, and the checked names."""
    adjacency = np.asarray(A)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"A must be a square matrix, got shape {adjacency.shape}")
    nodes = check_names(names, len(adjacency))
    W = None if weights is None else np.asarray(weights, dtype=np.float64)
    F = np.zeros(adjacency.shape, dtype=bool) if free is None else np.asarray(free, dtype=bool)
    for parameter, matrix in (("weights", W), ("free", F)):
        if matrix is not None and matrix.shape != adjacency.shape:
            raise ValueError(f"{parameter} must have the shape of A, {adjacency.shape}, got {matrix.shape}")
    if W is not None and not np.isfinite(W[adjacency != 0]).all():
        raise ValueError("weights must be finite on every edge")
    if (F != F.T).any():
        raise ValueError("free must be symmetric: a direction is determined for both ends or for neither")
    edges = [
        {
            "source": nodes[i],
            "target": nodes[j],
            "weight": None if W is None else float(W[i, j]),
            "direction": "free" if F[i, j] else "oriented",
        }
        for i, j in np.argwhere(adjacency != 0)
    ]
    return edges, nodes


def _to_json(edges: list[dict[str, Any]], nodes: tuple[str, ...]) -> str:
    document = {"format": "vec2dag-graph", "version": 1, "nodes": nodes, "edges": edges}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _to_csv(edges: list[dict[str, Any]], nodes: tuple[str, ...]) -> str:
    present = {(edge["source"], edge["target"]) for edge in edges}
    cell = {name: csv_cell(name) for name in nodes}
    rows = [[cell[source], *(str(int((source, target) in present)) for target in nodes)] for source in nodes]
    return "".join(",".join(row) + "\n" for row in [["", *cell.values()], *rows])


def _to_graphml(graph: networkx.DiGraph) -> str:
    import networkx as nx

    text = io.BytesIO()
    # the writer of the standard library, whether or not lxml is installed: the same bytes everywhere
    nx.write_graphml_xml(graph, text)
    return text.getvalue().decode("utf-8")


def read_graph(path: PathLike) -> Graph:
    """Read a graph; cycles and edges in both directions are allowed, as a CPDAG has them.

    Parameters
    ----------
    path : str or path-like
        `.json` (as `write_graph` writes it); `.csv`, `.tsv` or `.txt` (a square matrix, nonzero = edge, with
        names in header and index, in the header only, or without names; or an edge list with columns `source`
        and `target`, whose nodes are those that have edges); `.npy`; `.npz` (key `A`, `B` or `W`, or its only
        square array; optional key `names`); `.dot` or `.gv` (plain statements, no subgraphs or ports;
        attributes are not read); `.graphml`.

    Returns
    -------
    A : ndarray of shape (d, d), uint8
        Adjacency matrix; an undirected edge is 1 in both directions.
    names : tuple of str or None
        Names of the nodes, None where the file has none.

    Raises
    ------
    InputError
        Whatever is wrong with the file.
    """
    file = existing_file(path, _READERS)
    A, names = _READERS[file.suffix.lower()](file)
    loops = np.flatnonzero(np.diag(A))
    if loops.size:
        nodes = quoted(str(i) if names is None else names[i] for i in loops)
        raise InputError(f"{file}: node(s) {nodes} have an edge to themselves")
    return A, names


def align(
    A_true: NDArray[Any],
    names_true: Sequence[str] | None,
    A_est: NDArray[Any],
    names_est: Sequence[str] | None,
) -> NDArray[Any]:
    """Reorder the nodes of an estimate as those of the truth.

    Parameters
    ----------
    A_true : ndarray of shape (d, d)
        The true graph.
    names_true : sequence of str or None
        Its names.
    A_est : ndarray of shape (d, d)
        The estimate; not modified.
    names_est : sequence of str or None
        Its names. If either graph has none, the order is taken to be the same.

    Returns
    -------
    ndarray of shape (d, d)
        The estimate, node i being node i of the truth.

    Raises
    ------
    InputError
        Names are missing from one of the graphs, or sizes differ.
    """
    if names_true is not None and names_est is not None:
        in_true, in_est = set(names_true), set(names_est)
        missing = [name for name in names_true if name not in in_est]
        extra = [name for name in names_est if name not in in_true]
        if missing or extra:
            parts = [f"lacks {quoted(missing)}"] * bool(missing) + [f"has {quoted(extra)} besides"] * bool(extra)
            raise InputError(f"the graphs have different nodes: the estimate {' and '.join(parts)}")
    if A_true.shape != A_est.shape:
        raise InputError(f"the graphs differ in size: {len(A_true)} and {len(A_est)} nodes")
    if names_true is None or names_est is None:
        return A_est.copy()
    position = {name: i for i, name in enumerate(names_est)}
    order = [position[name] for name in names_true]
    return A_est[np.ix_(order, order)]


def _from_edges(file: Path, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> Graph:
    """Adjacency matrix of named edges; their ends must be among the names."""
    nodes = checked_names(file, names)
    if not nodes:
        raise InputError(f"{file}: the graph has no nodes")
    position = {name: i for i, name in enumerate(nodes)}
    A = np.zeros((len(nodes), len(nodes)), dtype=np.uint8)
    for source, target in edges:
        for name in (source, target):
            if name not in position:
                raise InputError(f"{file}: an edge names {name!r}, which is no node; nodes are {quoted(nodes)}")
        A[position[source], position[target]] = 1
    return A, nodes


def _read_json(file: Path) -> Graph:
    try:
        document = json.loads(_text(file))
        if document.get("version", 1) != 1:
            raise InputError(f"{file}: version {document['version']!r} of the format is not known, only 1 is")
        nodes = list(document["nodes"])
        edges = [(edge["source"], edge["target"]) for edge in document["edges"]]
        if not all(isinstance(name, str) for name in [*nodes, *(name for edge in edges for name in edge)]):
            raise TypeError("nodes must be strings")
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        expected = '{"nodes": [names], "edges": [{"source": name, "target": name}]}'
        raise InputError(f"{file}: not a graph in JSON ({error!r}); expected is {expected}") from error
    return _from_edges(file, nodes, edges)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error


def _read_csv(file: Path) -> Graph:
    rows = [cells for _, cells in read_rows(file)]
    if not rows:
        raise InputError(f"{file}: the file is empty")
    header = [cell.strip().lower() for cell in rows[0]]
    # an empty first cell is the corner of a named matrix, whatever the names
    if header[0] and {"source", "target"} <= set(header):
        return _read_edge_list(file, header, rows[1:])
    n_rows, width = len(rows), len(rows[-1])
    bare = n_rows == width and all(_is_number(cell) for cell in rows[0])
    indexed = n_rows == width and not bare
    # R leaves the corner out: then the header has one cell less than the rows below it
    labels = None if bare else rows[0][1:] if indexed and len(rows[0]) == width else rows[0]
    body = rows if bare else rows[1:]
    d = width - indexed
    if d != len(body) or d == 0 or any(len(cells) != width for cells in body) or len(labels or body) != d:
        raise InputError(
            f"{file}: {n_rows} lines of {width} cells are no graph; needed is a square matrix, with names in "
            "header and index, in the header or nowhere, or an edge list with columns source and target"
        )
    try:
        matrix = np.array([[float(cell) for cell in cells[indexed:]] for cells in body])
    except ValueError as error:
        raise InputError(f"{file}: the matrix holds something that is no number ({error})") from error
    A = _nonzero(file, matrix)
    if labels is None:
        return A, None
    names = checked_names(file, labels)
    index = [cells[0] for cells in body]
    if not indexed or index in (list(names), [str(i) for i in range(d)]):
        return A, names
    if sorted(index) != sorted(names):
        raise InputError(f"{file}: the names in the index are not those in the header: {quoted(index)}")
    return A[[index.index(name) for name in names]], names


def _read_edge_list(file: Path, header: list[str], rows: list[list[str]]) -> Graph:
    ends = header.index("source"), header.index("target")
    if any(len(cells) != len(header) for cells in rows):
        raise InputError(f"{file}: every line of an edge list needs {len(header)} cells, as its header has")
    edges = [(cells[ends[0]].strip(), cells[ends[1]].strip()) for cells in rows]
    return _from_edges(file, list(dict.fromkeys(name for edge in edges for name in edge)), edges)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _nonzero(file: Path, matrix: NDArray[np.float64]) -> NDArray[np.uint8]:
    if not np.isfinite(matrix).all():
        raise InputError(f"{file}: the matrix contains NaN or infinity")
    return (matrix != 0).astype(np.uint8)


def _read_numpy(file: Path) -> Graph:
    matrix, names = load_matrix(file, ("A", "B", "W"), square=True)
    return _nonzero(file, matrix), names


def _read_graphml(file: Path) -> Graph:
    import networkx as nx

    try:
        graph = nx.read_graphml(io.BytesIO(_text(file).encode("utf-8")))
        # igraph numbers the nodes and keeps their names in an attribute
        attribute = dict(graph.nodes(data="name"))
        label = attribute if all(isinstance(name, str) for name in attribute.values()) else {n: n for n in graph}
        edges = [(label[source], label[target]) for source, target in graph.edges()]
    except InputError:
        raise
    # the parser, networkx and its type conversions raise many types on a damaged file
    except Exception as error:
        raise InputError(f"{file}: not a graph in GraphML ({error})") from error
    if not graph.is_directed():
        edges += [(target, source) for source, target in edges]
    return _from_edges(file, list(label.values()), edges)


def _read_dot(file: Path) -> Graph:
    return _from_edges(file, *parse_dot(_text(file), str(file)))


_READERS = {
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".dot": _read_dot,
    ".gv": _read_dot,
    ".graphml": _read_graphml,
}
