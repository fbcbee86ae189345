"""Graphs as arrays: the Vec2DAG map and its inverse, orders, skeletons and equivalence classes.

``A[i, j] = 1`` means ``i -> j``. A vector ``z`` holds the ``d`` node potentials first and then the strictly
upper triangle of the edge potentials, row by row.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _kernels
from ._checks import as_numbers, as_real, brief, listing, number

if TYPE_CHECKING:
    from .knowledge import Constraints

__all__ = [
    "cpdag",
    "dag2vec",
    "interventional_cpdag",
    "is_dag",
    "maximally_oriented",
    "one_dag",
    "skeleton",
    "topological_order",
    "vec2dag",
    "vec_dim",
]


def vec_dim(d: int) -> int:
    """Length of the vectors that represent graphs of ``d`` nodes: ``d (d + 1) / 2``."""
    return d * (d + 1) // 2


def _nodes_of(length: int) -> int:
    d = int((np.sqrt(8 * length + 1) - 1) / 2)
    if length < 1 or vec_dim(d) != length:
        raise ValueError(f"z has length {length}, which is not d(d+1)/2 for any d (allowed: 1, 3, 6, 10, 15, ...)")
    return d


def as_adjacency(A: ArrayLike, name: str = "A") -> NDArray[np.uint8]:
    """Nonzero pattern of ``A`` (..., d, d) as a new uint8 array; refuses other shapes and self-loops."""
    values = as_real(A, name)
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        raise ValueError(f"{name} must have shape (..., d, d), got {values.shape}")
    pattern = (values != 0).astype(np.uint8)
    if np.diagonal(pattern, axis1=-2, axis2=-1).any():
        raise ValueError(f"{name} has self-loops: its diagonal must be zero")
    return pattern


def vec2dag(z: ArrayLike, dtype: Any = np.uint8, constraints: "Constraints | None" = None) -> NDArray[Any]:
    """Decode vectors into DAGs in one step.

    ``A[i, j] = 1`` if and only if the edge potential of ``{i, j}`` is positive and ``p_i < p_j``. Every vector
    gives a DAG and every DAG has vectors (:func:`dag2vec`).

    With constraints the same holds for the DAGs that they permit. Nodes are placed one by one, always the one of
    least potential (then of least index) among those whose predecessors are placed; ``A[i, j] = 1`` if and only if
    the edge is required, or it is allowed, its potential is positive and ``i`` is placed before ``j``. A node that
    has more parents than it may keeps the required ones and, of the others, those of largest edge potential.

    Parameters
    ----------
    z : array of shape (..., d * (d + 1) / 2)
        Node potentials ``p``, then the strictly upper triangle of the edge potentials.
    dtype : numpy dtype, default uint8
        Of the result; ``bool`` is the other usual choice.
    constraints : Constraints, optional
        What is known of the graph (:meth:`vec2dag.knowledge.Knowledge.bind`).

    Returns
    -------
    A : array of shape (..., d, d)
    """
    values, kind = as_numbers(z, "z"), _dtype(dtype)
    if values.ndim == 0:
        raise ValueError("z must have at least one dimension, got a scalar")
    d = _nodes_of(values.shape[-1])
    lead = values.shape[:-1]
    A = np.empty((int(np.prod(lead, dtype=np.int64)), d, d), dtype=np.uint8)
    rows = np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
    _check_constraints(constraints, d, "z")
    if constraints is None or constraints.trivial:
        _kernels.decode(rows, d, A)
    else:
        c = constraints
        _kernels.decode_constrained(rows, c.required, c.allowed, c.before, c.max_parents, A)
    return A.reshape(*lead, d, d).astype(kind, copy=False)


def _dtype(dtype: Any) -> np.dtype[Any]:
    """A numpy dtype, refused unless zeros and ones are numbers of it."""
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        kind = np.dtype(object)
    if kind.kind not in "buif":
        raise ValueError(f"dtype must be a numpy dtype of real numbers, got {brief(dtype)}")
    return kind


def dag2vec(A: ArrayLike, epsilon: float = 2.0, constraints: "Constraints | None" = None) -> NDArray[np.float64]:
    """A vector inside ``(-epsilon, epsilon)`` that decodes to ``A``: the constructive proof of the paper.

    Node potentials are the numbers of ancestors, scaled to ``[-epsilon / 2, epsilon / 2]``; edge potentials are
    ``+epsilon / 2`` where there is an edge and ``-epsilon / 2`` elsewhere. With constraints, nodes that come before
    a node in every order count as its ancestors, and the vector decodes to ``A`` under the same constraints.

    Parameters
    ----------
    A : array of shape (d, d)
        Adjacency matrix of a DAG.
    epsilon : float, default 2.0
        Half the width of the box that will contain the vector.
    constraints : Constraints, optional
        What is known of the graph; a DAG that they do not permit is refused.

    Returns
    -------
    z : array of shape (d * (d + 1) / 2,)
    """
    adjacency = as_adjacency(A)
    epsilon = number("epsilon", epsilon, above=0)
    d = len(adjacency)
    precedence = adjacency
    _check_constraints(constraints, d, "A")
    if constraints is not None:
        wrong = constraints.violations(adjacency)
        if wrong is not None:
            raise ValueError(f"A has no vector under these constraints: {wrong}")
        precedence = adjacency | constraints.before
    p = reachable(precedence).sum(axis=0).astype(np.float64)
    spread = p.max() - p.min()
    p = (p - p.min()) / spread * epsilon - epsilon / 2 if spread > 0 else np.zeros(d)
    edge = (adjacency + adjacency.T)[np.triu_indices(d, k=1)]
    return np.concatenate([p, np.where(edge > 0, epsilon / 2, -epsilon / 2)])


def _check_constraints(constraints: "Constraints | None", d: int, name: str) -> None:
    if constraints is None:
        return
    if not hasattr(constraints, "arrays"):
        raise ValueError(f"constraints must be Constraints, as Knowledge(...).bind(names), got {brief(constraints)}")
    known = len(constraints.required)
    if known != d:
        raise ValueError(f"{name} is of {d} nodes and the constraints of {known}")


def reachable(A: ArrayLike) -> NDArray[np.bool_]:
    """Transitive closure (d, d) of a DAG ``A`` (d, d): where there is a path ``i -> ... -> j``."""
    adjacency = as_adjacency(A)
    order = topological_order(adjacency)
    ancestors = np.zeros(adjacency.shape, dtype=bool)  # ancestors[j, i]: there is a path i -> ... -> j
    for j in order:
        parents = np.flatnonzero(adjacency[:, j])
        ancestors[j] = ancestors[parents].any(axis=0)
        ancestors[j, parents] = True
    return ancestors.T


def is_dag(A: ArrayLike) -> bool:
    """Whether the nonzero pattern of ``A`` (d, d) has no directed cycle (a self-loop is one)."""
    values = as_real(A, "A")
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"A must have shape (d, d), got {values.shape}")
    pattern = (values != 0).astype(np.uint8)
    return bool(_kernels.kahn(pattern, np.empty(len(pattern), np.int64)) == len(pattern))


def topological_order(A: ArrayLike) -> NDArray[np.int64]:
    """Order of the nodes of a DAG ``A`` (d, d), parents before children, smallest index first where free."""
    adjacency = as_adjacency(A)
    if adjacency.ndim != 2:
        raise ValueError(f"A must have shape (d, d), got {adjacency.shape}")
    order = np.empty(len(adjacency), np.int64)
    placed = _kernels.kahn(adjacency, order)
    if placed < len(order):
        stuck = sorted(set(range(len(order))) - set(order[:placed].tolist()))
        raise ValueError(f"A has a directed cycle among the nodes {stuck}")
    return order


def skeleton(A: ArrayLike) -> NDArray[np.uint8]:
    """Undirected version of ``A`` (..., d, d): symmetric, 1 where there is an edge in either direction."""
    adjacency = as_adjacency(A)
    return adjacency | np.swapaxes(adjacency, -1, -2)


def cpdag(A: ArrayLike) -> NDArray[np.uint8]:
    """Completed partially directed graph of the Markov equivalence class of the DAG ``A`` (d, d).

    The skeleton and the v-structures of the class, closed under the orientation rules of Meek (1995); his fourth
    rule acts only with background knowledge.

    Returns
    -------
    C : array of shape (d, d), uint8
        ``C[i, j] = 1, C[j, i] = 0`` for ``i -> j`` in every member of the class; both are 1 where members differ.
    """
    adjacency = as_adjacency(A)
    topological_order(adjacency)
    adjacent = skeleton(adjacency).astype(bool)
    # i -> k <- j with i, j apart: the parents of k that have a non-neighbour among the parents of k.
    directed = adjacency.astype(bool) & (_count(_apart(adjacent), adjacency) > 0)
    return _closed_by_rules(adjacent, directed)


def interventional_cpdag(A: ArrayLike, targets: Iterable[Iterable[int]]) -> NDArray[np.uint8]:
    """Essential graph of the DAGs that no data can tell from ``A`` (d, d), if some nodes were set by somebody.

    Hauser & Buehlmann (2012), for perfect interventions with known targets. In a setting in which the nodes ``I`` were
    set, edges into them are gone, so that the direction of every edge with one end in ``I`` shows. The class are the
    members of the Markov equivalence class of ``A`` that agree on these directions.

    Parameters
    ----------
    A : array of shape (d, d)
        Adjacency matrix of a DAG.
    targets : iterable of sets of int
        What was set, in each of the settings in which there are data; an empty set is one in which nothing was.

    Returns
    -------
    C : array of shape (d, d), uint8
        As of :func:`cpdag`, of which it is the case ``targets = [()]``.
    """
    adjacency = as_adjacency(A)
    told = np.zeros(adjacency.shape, dtype=bool)
    for one in targets:
        inside = np.zeros(len(adjacency), dtype=bool)
        inside[list(one)] = True
        told |= inside[:, None] != inside
    return maximally_oriented(cpdag(adjacency), adjacency & told)


def maximally_oriented(
    C: ArrayLike, required: ArrayLike | None = None, allowed: ArrayLike | None = None
) -> NDArray[np.uint8]:
    """Direct every edge of a Markov equivalence class that known directions settle.

    The four orientation rules of Meek (1995), which are complete: an edge is directed if and only if it has that
    direction in every member of the class that agrees with what is known.

    Parameters
    ----------
    C : array of shape (d, d)
        The class (:func:`cpdag`): ``C[i, j] = C[j, i] = 1`` where members differ.
    required : array of shape (d, d), optional
        Nonzero where the edge ``i -> j`` is known to be there.
    allowed : array of shape (d, d), optional
        Zero where there is no edge ``i -> j``. (Both are attributes of :class:`vec2dag.knowledge.Constraints`;
        its limits on the number of parents are not directions and play no part.)

    Returns
    -------
    M : array of shape (d, d), uint8
        As ``C``, with more edges directed.

    Raises
    ------
    ValueError
        No member of the class agrees with what is known.
    """
    pattern = as_adjacency(C, "C").astype(bool)
    if pattern.ndim != 2:
        raise ValueError(f"C must have shape (d, d), got {pattern.shape}")
    adjacent = pattern | pattern.T
    told = np.zeros_like(pattern) if required is None else _like(required, pattern, "required")
    if allowed is not None:
        told = told | (adjacent & ~_like(allowed, pattern, "allowed").T)
    _refuse(told & ~adjacent, "is required and its ends are not adjacent in C")
    _refuse(told & ~pattern, "is known and C has the other direction")
    _refuse(told & told.T, "and its reverse are both known")
    directed = (pattern & ~pattern.T) | told
    M = _closed_by_rules(adjacent, directed, fourth=True).astype(bool)
    directed = M & ~M.T
    _refuse(adjacent & ~M & ~M.T, "and its reverse both follow")
    if not is_dag(directed):
        raise ValueError("no member of the class C agrees with what is known: a directed cycle follows")
    collider = directed & (_count(_apart(adjacent), directed) > 0)
    _refuse(collider & pattern.T, "becomes part of a v-structure that C does not have")
    return M.astype(np.uint8)


def _like(known: ArrayLike, pattern: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
    values = as_real(known, name) != 0
    if values.shape != pattern.shape:
        raise ValueError(f"{name} must have the shape of C, {pattern.shape}, got {values.shape}")
    return values & ~np.eye(len(pattern), dtype=bool)


def _refuse(wrong: NDArray[np.bool_], why: str) -> None:
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(f"no member of the class C agrees with what is known: {i} -> {j} {why}")


def _apart(adjacent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return ~adjacent & ~np.eye(len(adjacent), dtype=bool)


def _closed_by_rules(
    adjacent: NDArray[np.bool_], directed: NDArray[np.bool_], fourth: bool = False
) -> NDArray[np.uint8]:
    """Directed and free edges once the rules of Meek (1995) find nothing more.

    Where they demand both directions of an edge, neither is in the result.
    """
    apart = _apart(adjacent)
    while True:
        free = adjacent & ~directed & ~directed.T
        found = free & (_count(directed.T, apart) > 0)  # a -> b - c, a and c apart: b -> c
        chain = _count(directed, directed) > 0
        found |= free & chain  # a -> b -> c and a - c: a -> c
        for a, b in np.argwhere(free & (_count(free, directed) > 1)):
            between = np.flatnonzero(free[a] & directed[:, b])  # a - c -> b, a - e -> b, c and e apart: a -> b
            found[a, b] |= apart[np.ix_(between, between)].any()
        if fourth:
            found |= free & (_count(free, chain & apart) > 0)  # a - c -> e -> b and a - b, c and b apart: a -> b
        if not found.any():
            return (directed | free).astype(np.uint8) & ~(directed & directed.T)
        directed |= found


def _count(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float32]:
    """Matrix product of 0/1 matrices in float32: exact up to 2^24 and through BLAS, unlike integers."""
    return left.astype(np.float32) @ right.astype(np.float32)


def one_dag(C: ArrayLike) -> NDArray[np.uint8]:
    """One DAG of the Markov equivalence class ``C``: free edges are directed without a new collider or a cycle.

    Sinks are removed one by one (Dor and Tarsi 1992), the last of those that qualify first, so that where the choice is
    free earlier columns cause later ones. All DAGs of the class fit the data equally well: nothing speaks for this one.

    Parameters
    ----------
    C : array-like of shape (d, d)
        ``C[i, j] = C[j, i] = 1`` for an edge of free direction (:func:`vec2dag.cpdag`).

    Returns
    -------
    A : ndarray of shape (d, d), uint8

    Raises
    ------
    ValueError
        There is no such DAG.
    """
    pattern = as_adjacency(C, "C").astype(bool)
    if pattern.ndim != 2:
        raise ValueError(f"C must have shape (d, d), got {pattern.shape}")
    adjacent, free = pattern | pattern.T, pattern & pattern.T
    A = pattern & ~pattern.T
    left = list(range(len(pattern)))
    while left:
        sink = next((x for x in reversed(left) if _can_be_last(x, left, A, free, adjacent)), None)
        if sink is None:
            raise ValueError(
                f"C is no equivalence class: the edges among its nodes {listing(map(str, left))} cannot be directed "
                "without a cycle or a new collider"
            )
        left.remove(sink)
        neighbours = [y for y in left if free[y, sink]]
        A[neighbours, sink] = True
    return A.astype(np.uint8)


def _can_be_last(
    x: int, left: list[int], A: NDArray[np.bool_], free: NDArray[np.bool_], adjacent: NDArray[np.bool_]
) -> bool:
    """Whether all free edges of x may point to it: it causes nothing, and would not join causes that are apart."""
    if A[x, left].any():
        return False
    around = [y for y in left if adjacent[x, y]]
    undecided = [y for y in around if free[x, y]]
    apart = ~adjacent[np.ix_(undecided, around)]
    return bool(apart.sum() == len(undecided))  # nobody is adjacent to itself
