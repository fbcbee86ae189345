"""Graphs in the forms of other packages, and out of them; none of these packages is imported.

A graph is a fitted :class:`~vec2dag.ALIAS`, a networkx graph, or a matrix (d, d) with the names of its nodes: an entry
that is not zero is the weight of an edge from the row's node to the column's, and an edge in both directions is one of
free direction, as in a CPDAG.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_numbers, brief, check_names, default_names, listing, shown, warn
from .files.gml import to_gml
from .files.graph_readers import LoadedGraph
from .files.graph_writers import as_networkx
from .files.stated import FREE, Edge, adjacency, as_direction, as_weight
from .graph import as_adjacency, is_dag

if TYPE_CHECKING:
    import networkx

__all__ = [
    "from_causal_learn",
    "from_lingam",
    "from_pgmpy",
    "to_causal_learn",
    "to_dowhy",
    "to_dowhy_gml",
    "to_lingam",
    "to_pgmpy",
]

Named = tuple[NDArray[np.uint8], tuple[str, ...]]

# Of causal-learn's matrices: the mark at the end of an edge.
_TAIL, _ARROW = -1, 1


def to_causal_learn(graph: Any, names: Sequence[str] | None = None, free: ArrayLike | None = None) -> NDArray[np.int64]:
    """The matrix of a causal-learn ``GeneralGraph``, which is its attribute ``graph``.

    Parameters
    ----------
    graph : ALIAS, networkx graph or array-like of shape (d, d)
        The graph.
    names : sequence of str, optional
        Names of the d nodes of a matrix; x0, x1, ... if not given.
    free : array-like of shape (d, d), bool, optional
        Of a matrix: symmetric, True where a direction is free.

    Returns
    -------
    M : ndarray of shape (d, d), int
        For i -> j, ``M[i, j] = -1`` (a tail at i) and ``M[j, i] = 1`` (an arrowhead at j); both are -1 where the
        direction is free. Its nodes are in the order of the columns.
    """
    edges, nodes = _stated(graph, names, free)
    position = {name: i for i, name in enumerate(nodes)}
    M = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for edge in edges:
        i, j = position[edge.source], position[edge.target]
        M[i, j], M[j, i] = _TAIL, _TAIL if edge.direction == FREE else _ARROW
    return M


def from_causal_learn(graph: Any, names: Sequence[str] | None = None) -> Named:
    """The graph of a causal-learn ``GeneralGraph``, of what ``pc`` returns, or of such a matrix.

    Parameters
    ----------
    graph : GeneralGraph, CausalGraph or array-like of shape (d, d)
        With directed and undirected edges only.
    names : sequence of str, optional
        Names of the d nodes; without them those of the object, or x0, x1, ... for a matrix.

    Returns
    -------
    A : ndarray of shape (d, d), uint8
        Edges from row to column; an undirected edge goes both ways.
    names : tuple of str
    """
    found = getattr(graph, "G", graph)
    labels = [node.get_name() for node in found.nodes] if names is None and hasattr(found, "nodes") else names
    M = _square(getattr(found, "graph", found), "graph")
    nodes = default_names(len(M)) if labels is None else check_names(labels, len(M))
    directed, undirected = (M == _TAIL) & (M.T == _ARROW), (M == _TAIL) & (M.T == _TAIL)
    other = (M != 0) & ~(directed | directed.T | undirected)
    if other.any():
        i, j = np.argwhere(other)[0]
        raise ValueError(
            f"graph has an edge between '{shown(nodes[i])}' and '{shown(nodes[j])}' with the marks {M[i, j]:g} and "
            f"{M[j, i]:g}; only directed edges (-1 and 1) and undirected ones (-1 and -1) have a place in a CPDAG"
        )
    return (directed | undirected).astype(np.uint8), nodes


def to_lingam(graph: Any, names: Sequence[str] | None = None, free: ArrayLike | None = None) -> NDArray[np.float64]:
    """The matrix of coefficients that lingam calls ``adjacency_matrix_``.

    Parameters
    ----------
    graph : ALIAS, networkx graph or array-like of shape (d, d)
        A DAG whose edges have weights.
    names : sequence of str, optional
        Names of the d nodes of a matrix, for messages.
    free : array-like of shape (d, d), bool, optional
        As in :func:`to_dowhy`.

    Returns
    -------
    B : ndarray of shape (d, d)
        ``B[j, i]`` is the coefficient of i in the equation of j: x = B x + e.
    """
    edges, nodes = _dag(graph, names, free, "lingam")
    position = {name: i for i, name in enumerate(nodes)}
    B = np.zeros((len(nodes), len(nodes)))
    for edge in edges:
        if edge.weight is None:
            raise ValueError(f"graph has no weight for {_arrow(edge)}, and lingam's matrix is made of them")
        B[position[edge.target], position[edge.source]] = edge.weight
    return B


def from_lingam(model: Any) -> NDArray[np.float64]:
    """The weights (d, d) of a fitted lingam model, or of its matrix: ``W[i, j]`` is that of i -> j.

    Parameters
    ----------
    model : object with ``adjacency_matrix_``, or array-like of shape (d, d)
        ``B[j, i]`` is the coefficient of i in the equation of j.
    """
    B = _square(getattr(model, "adjacency_matrix_", model), "model")
    if not np.isfinite(B).all():
        j, i = np.argwhere(~np.isfinite(B))[0]
        raise ValueError(
            f"model has {B[j, i]} for the columns {i} and {j}: lingam says so that a hidden variable may cause both, "
            "which a DAG cannot hold"
        )
    return np.ascontiguousarray(B.T)


def to_pgmpy(
    graph: Any, names: Sequence[str] | None = None, free: ArrayLike | None = None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Edges and nodes for a network of pgmpy.

    Parameters
    ----------
    graph : ALIAS, networkx graph or array-like of shape (d, d)
        A DAG.
    names : sequence of str, optional
        Names of the d nodes of a matrix; x0, x1, ... if not given.
    free : array-like of shape (d, d), bool, optional
        As in :func:`to_dowhy`.

    Returns
    -------
    edges : list of (str, str)
        What ``DiscreteBayesianNetwork`` and ``LinearGaussianBayesianNetwork`` take.
    nodes : list of str
        For its ``add_nodes_from``: those that have no edges are not in the first.
    """
    edges, nodes = _dag(graph, names, free, "pgmpy")
    return [(edge.source, edge.target) for edge in edges], list(nodes)


def from_pgmpy(network: Any) -> Named:
    """The graph of a pgmpy network or ``PDAG``: of any object with ``nodes()`` and ``edges()``.

    Returns
    -------
    A : ndarray of shape (d, d), uint8
        Edges from row to column; an undirected edge goes both ways.
    names : tuple of str
        The nodes as text.
    """
    if not (callable(getattr(network, "nodes", None)) and callable(getattr(network, "edges", None))):
        raise ValueError(f"network must have nodes() and edges(), as pgmpy's have, got {brief(network)}")
    labels = list(network.nodes())
    names = check_names([str(label) for label in labels], len(labels))
    position = {label: i for i, label in enumerate(labels)}
    A = np.zeros((len(labels), len(labels)), dtype=np.uint8)
    for source, target in network.edges():
        A[position[source], position[target]] = 1
    return as_adjacency(A, "network"), names


def to_dowhy(graph: Any, names: Sequence[str] | None = None, free: ArrayLike | None = None) -> networkx.DiGraph:
    """A graph that DoWhy's ``CausalModel(graph=...)`` and ``gcm`` take: a DAG whose nodes are the names of columns.

    Parameters
    ----------
    graph : ALIAS, networkx graph or array-like of shape (d, d)
        A DAG; of one with edges in both directions, :func:`vec2dag.graph.one_dag` makes a DAG.
    names : sequence of str, optional
        Names of the d nodes of a matrix, as the data frame has them.
    free : array-like of shape (d, d), bool, optional
        Of a matrix: symmetric, True where a direction is free, though the DAG has one; a warning names these edges.

    Returns
    -------
    networkx.DiGraph
    """
    return as_networkx(*_dag(graph, names, free, "DoWhy"))


def to_dowhy_gml(graph: Any, names: Sequence[str] | None = None, free: ArrayLike | None = None) -> str:
    """As :func:`to_dowhy`, in GML: text that ``CausalModel(graph=...)`` takes too."""
    edges, nodes = _dag(graph, names, free, "DoWhy")
    if unfit := {"()", "[]"} & set(nodes):
        raise ValueError(f"networkx reads the name '{unfit.pop()}' in GML as an empty list: use to_dowhy, or rename it")
    # DoWhy takes text with these for DOT, or for the name of a file; in GML they can only be parts of names
    return re.sub(r"\{|\.(?=dot|gml|txt)", lambda match: f"&#{ord(match[0])};", to_gml(edges, nodes))


# --- what a graph may be ------------------------------------------------------------------------------------------


def _stated(graph: Any, names: Sequence[str] | None, free: ArrayLike | None) -> tuple[list[Edge], tuple[str, ...]]:
    """Edges and names of a model, a networkx graph or a matrix."""
    # a property of a class, so that a model that is not fitted says so
    if hasattr(type(graph), "graph_"):
        graph = graph.graph_
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        if names is not None or free is not None:
            raise ValueError("names and free belong to a matrix; this graph has its own")
        return _of_networkx(graph)
    values = _square(graph, "graph")
    if not np.isfinite(values).all():
        raise ValueError("graph contains NaN or infinity")
    A = as_adjacency(values, "graph")
    marks = {"weights": values}
    if free is not None:
        marks[FREE] = _square(free, "free")
        if marks[FREE].shape != A.shape or (marks[FREE] != marks[FREE].T).any():
            raise ValueError(f"free must be symmetric and have the shape of the graph, {A.shape}")
    nodes = default_names(len(A)) if names is None else check_names(names, len(A))
    return LoadedGraph(A, nodes, marks=marks).stated()


def _of_networkx(graph: Any) -> tuple[list[Edge], tuple[str, ...]]:
    nodes = list(graph.nodes)
    names = check_names(nodes, len(nodes))
    edges = [
        Edge(source, target, as_weight(said.get("weight")), as_direction(said.get("direction")))
        for source, target, said in graph.edges(data=True)
    ]
    if not graph.is_directed():
        edges += [Edge(edge.target, edge.source, edge.weight) for edge in edges]
    if loops := [edge for edge in edges if edge.source == edge.target]:
        raise ValueError(f"graph has a self-loop: {_arrow(loops[0])}")
    return LoadedGraph(np.empty((0, 0), np.uint8), names, edges=edges).stated()


def _dag(
    graph: Any, names: Sequence[str] | None, free: ArrayLike | None, package: str
) -> tuple[list[Edge], tuple[str, ...]]:
    """As :func:`_stated`; a graph that is no DAG is refused, and free directions are pointed out."""
    edges, nodes = _stated(graph, names, free)
    ways = {edge[:2] for edge in edges}
    if both := [edge for edge in edges if (edge.target, edge.source) in ways and edge.source < edge.target]:
        raise ValueError(
            f"graph has edges in both directions, {_arrows(both)}, and {package} needs a DAG: a model's own graph_ is "
            "one, and vec2dag.graph.one_dag(A) makes one of a CPDAG"
        )
    if not is_dag(adjacency(edges, nodes)):
        raise ValueError(f"graph has a directed cycle, and {package} needs a DAG")
    if undecided := [edge for edge in edges if edge.direction == FREE]:
        warn(
            f"{package} takes all directions for facts, but the data do not determine {_arrows(undecided)}; what "
            "follows from them may differ for an equally good graph."
        )
    return edges, nodes


def _square(matrix: Any, parameter: str) -> NDArray[np.float64]:
    values = as_numbers(matrix, parameter)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"{parameter} must be of shape (d, d), got {values.shape}")
    return values


def _arrow(edge: Edge) -> str:
    return f"'{shown(edge.source)}' -> '{shown(edge.target)}'"


def _arrows(edges: Sequence[Edge]) -> str:
    return listing((_arrow(edge) for edge in edges), 4)
