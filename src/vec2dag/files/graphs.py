"""Graphs in files of many formats, with every column name surviving each of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import check_names, quoted
from .atomic import InputError, PathLike, write_together
from .dot import to_dot
from .graph_readers import load_graph
from .graph_writers import as_networkx, to_graphml, to_json, to_matrix
from .opening import MAX_MEMORY, shown_path
from .stated import FREE, KNOWN, ORIENTED, Edge

if TYPE_CHECKING:
    import networkx

Graph = tuple[NDArray[np.uint8], tuple[str, ...] | None]

CPDAG = "cpdag.csv"


def write_graph(
    directory: PathLike,
    A: ArrayLike,
    names: Sequence[str],
    *,
    weights: ArrayLike | None = None,
    free: ArrayLike | None = None,
    known: ArrayLike | None = None,
) -> list[Path]:
    """Write a graph as graph.json, adjacency.csv, graph.dot and graph.graphml: all of them, or none.

    Where directions may be free, cpdag.csv has the edges with a free direction both ways. Where not, the cpdag.csv of
    an earlier graph in the same folder is removed; one that does not follow from the graph.json beside it stays.

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
    known : array-like of shape (d, d), bool, optional
        True where an edge or its direction was known beforehand: its `direction` is "known", and DOT draws it bold.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ValueError
        Shapes or names do not fit.
    InputError
        The folder, or a file in it, cannot be written; then nothing has changed.
    """
    content = graph_files(A, names, weights=weights, free=free, known=known)
    return write_together(directory, content, stale=() if CPDAG in content else _stale(Path(directory)))


def graph_files(
    A: ArrayLike,
    names: Sequence[str],
    *,
    weights: ArrayLike | None = None,
    free: ArrayLike | None = None,
    known: ArrayLike | None = None,
) -> dict[str, bytes]:
    """What :func:`write_graph` writes, by the names of the files."""
    edges, nodes = _edges(A, names, weights, free, known)
    content = {
        "graph.json": to_json(edges, nodes),
        "adjacency.csv": to_matrix(edges, nodes),
        "graph.dot": to_dot(edges, nodes),
        "graph.graphml": to_graphml(edges, nodes),
    }
    if free is not None:
        content[CPDAG] = _to_cpdag(edges, nodes)
    return {name: text.encode("utf-8") for name, text in content.items()}


def _stale(folder: Path) -> tuple[str, ...]:
    """The cpdag.csv that was written with the graph.json in this folder, if there are both."""
    try:
        earlier = json.loads((folder / "graph.json").read_bytes())
        edges = [Edge(**edge) for edge in earlier["edges"]]
        belongs = (folder / CPDAG).read_bytes() == _to_cpdag(edges, earlier["nodes"]).encode("utf-8")
    # whatever else these files may hold, they are not ours
    except Exception:
        return ()
    return (CPDAG,) if belongs else ()


def to_networkx(
    A: ArrayLike,
    names: Sequence[str],
    weights: ArrayLike | None = None,
    free: ArrayLike | None = None,
    known: ArrayLike | None = None,
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
    known : array-like of shape (d, d), bool, optional
        Edge attribute `direction`: "known" where True.

    Returns
    -------
    networkx.DiGraph
        The graph.
    """
    return as_networkx(*_edges(A, names, weights, free, known))


def _edges(
    A: ArrayLike, names: Sequence[str], weights: ArrayLike | None, free: ArrayLike | None, known: ArrayLike | None
) -> tuple[list[Edge], tuple[str, ...]]:
    """Edges, and the checked names."""
    adjacency = np.asarray(A)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"A must be a square matrix, got shape {adjacency.shape}")
    nodes = check_names(names, len(adjacency))
    W = None if weights is None else np.asarray(weights, dtype=np.float64)
    F, K = (
        np.zeros(adjacency.shape, dtype=bool) if marks is None else np.asarray(marks, dtype=bool)
        for marks in (free, known)
    )
    for parameter, matrix in (("weights", W), ("free", F), ("known", K)):
        if matrix is not None and matrix.shape != adjacency.shape:
            raise ValueError(f"{parameter} must have the shape of A, {adjacency.shape}, got {matrix.shape}")
    if W is not None and np.isinf(W[adjacency != 0]).any():
        raise ValueError("weights must be finite on every edge, or NaN where there is none")
    if (F != F.T).any():
        raise ValueError("free must be symmetric: a direction is determined for both ends or for neither")
    edges = [
        Edge(
            nodes[i],
            nodes[j],
            weight=None if W is None or np.isnan(W[i, j]) else float(W[i, j]),
            direction=FREE if F[i, j] else KNOWN if K[i, j] else ORIENTED,
        )
        for i, j in np.argwhere(adjacency != 0)
    ]
    return edges, nodes


def _to_cpdag(edges: Sequence[Edge], nodes: Sequence[str]) -> str:
    back = [Edge(edge.target, edge.source) for edge in edges if edge.direction == FREE]
    return to_matrix([*edges, *back], nodes)


def read_graph(path: PathLike, *, encoding: str | None = None, max_memory: float = MAX_MEMORY) -> Graph:
    """Read a graph; cycles and edges in both directions are allowed, as a CPDAG has them.

    Parameters
    ----------
    path : str or path-like
        `.json` (as `write_graph` writes it); `.csv`, `.tsv` or `.txt` (a square matrix, nonzero = edge, with
        names in header and index, in the header only, or without names; or an edge list with columns `source`
        and `target`, or `from` and `to`, `cause` and `effect`, `parent` and `child`, whose nodes are those that have
        edges and sources without a target: where a column `direction` says "free" the edge goes both ways; `.txt` also
        the table that `discover` prints, and graphs of Tetrad); `.npy`; `.npz` (key `A`, `B` or `W`, or its only
        square array; optional key `names`); `.dot` or `.gv` (plain statements, no subgraphs or ports); `.graphml`;
        `.gml`. Text may be packed as `.gz`. `-` is the standard input; what comes out of it, or of another pipe, may
        be any of these.
    encoding : str, optional
        Of text, as Python calls it.
    max_memory : float, default 4
        GB (1e9 bytes) that the graph may take, at 8 bytes for every pair of nodes.

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
    graph = load_graph(path, encoding=encoding, max_memory=max_memory)
    if not len(graph.A):
        raise InputError(f"{shown_path(path)}: the graph has no nodes")
    return graph.A, graph.names


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
