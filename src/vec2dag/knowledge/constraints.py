"""What was said, as arrays about columns, and everything that follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .. import _kernels
from .._checks import listing, quoted, shown
from ..graph import as_adjacency, is_dag, reachable

Edge = tuple[str, str]

#: What makes a text a pattern, unless a column is called so.
WILD = re.compile(r"[*?\[]")

# Why an edge is not allowed.
OPEN, FORBIDDEN, TIERS, WITHIN, EXOGENOUS, SINK, CYCLE, FULL = range(8)
_WHY = (
    "",
    "it is forbidden",
    "the tiers have '{target}' before '{source}'",
    "edges within the tier of both are forbidden",
    "'{target}' is exogenous",
    "'{source}' is a sink",
    "required edges lead from '{target}' to '{source}'",
    "the required parents of '{target}' are all that it may have",
)


@dataclass(frozen=True, eq=False, repr=False)
class Constraints:
    """Knowledge about ``d`` columns, as arrays for a search.

    Attributes
    ----------
    names : tuple of str
        The columns.
    required : array of shape (d, d), bool
        ``required[i, j]``: the edge ``i -> j`` is in every permitted DAG.
    allowed : array of shape (d, d), bool
        ``allowed[i, j]``: the edge ``i -> j`` is in some permitted DAG. False where it is forbidden, by itself or by
        a tier and the like, where it would close a cycle with required edges, and where the required parents of
        ``j`` are all that it may have. Required edges are allowed.
    before : array of shape (d, d), bool
        ``before[i, j]``: ``i`` comes before ``j`` in every order that the decoder uses; transitive. These are the
        paths of required edges, and the pairs for which allowed edges lead from ``i`` to ``j`` and none lead back.
        Every permitted DAG has a topological order that respects all of them, so that nothing is lost.
    max_parents : array of shape (d,), int64
        The most parents that each node may have, ``d - 1`` where there is no limit.
    why : array of shape (d, d), int8
        Why an edge is not allowed, as a code for messages; 0 where it is.
    """

    names: tuple[str, ...]
    required: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    before: NDArray[np.bool_]
    max_parents: NDArray[np.int64]
    why: NDArray[np.int8]

    def __repr__(self) -> str:
        d = len(self.names)
        limited = int((self.max_parents < d - 1).sum())
        return (
            f"Constraints({d} columns, {self.required.sum()} edges required, {self.allowed.sum()} of {d * (d - 1)} "
            f"allowed, parents of {limited} limited)"
        )

    @classmethod
    def none(cls, names: Sequence[str]) -> Constraints:
        """Those of somebody who knows nothing: every DAG is permitted."""
        d = len(names)
        why = np.diag(np.full(d, FORBIDDEN, np.int8))
        nothing = np.zeros((d, d), bool)
        return cls(tuple(names), nothing, why == OPEN, nothing, np.full(d, max(d - 1, 0)), why)

    def taken(self, order: NDArray[np.int64]) -> Constraints:
        """The same about the columns in another order."""
        both = np.ix_(order, order)
        return Constraints(
            tuple(self.names[k] for k in order),
            np.ascontiguousarray(self.required[both]),
            np.ascontiguousarray(self.allowed[both]),
            np.ascontiguousarray(self.before[both]),
            self.max_parents[order],
            self.why[both],
        )

    @property
    def arrays(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """What the compiled kernels ask for (:mod:`vec2dag._kernels`)."""
        return self.required, self.allowed, self.before, self.max_parents

    def respects(self, order: NDArray[np.int64]) -> bool:
        """Whether everything stands in ``order`` (d,) after what must come before it."""
        place = np.argsort(order)
        return not (self.before & (place[:, None] > place)).any()

    def extend(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """The order (d,) itself, changed where something stands in it before what must come before that."""
        if self.respects(order):
            return order
        extended = np.empty(len(order), np.int64)
        _kernels.order_with_precedence(np.argsort(order).astype(np.float64), self.before, extended)
        return extended

    @cached_property
    def trivial(self) -> bool:
        """Whether every DAG is permitted."""
        d = len(self.names)
        free = int(self.allowed.sum()) == d * (d - 1) and bool((self.max_parents >= d - 1).all())
        return free and not self.required.any()

    def permits(self, A: ArrayLike) -> bool:
        """Whether a DAG ``A`` (d, d) agrees with what is known."""
        return self.violations(A) is None

    def violations(self, A: ArrayLike) -> str | None:
        """What in a DAG ``A`` (d, d) contradicts what is known, in one sentence; None if nothing does."""
        adjacency = as_adjacency(A).astype(bool)
        if adjacency.shape != self.required.shape:
            raise ValueError(f"A must have shape {self.required.shape}, as the constraints, got {adjacency.shape}")
        found = [f"the required edge {self._edge(i, j)} is missing" for i, j in np.argwhere(self.required & ~adjacency)]
        found += [
            f"{self._edge(i, j)} is not allowed ({self._reason(i, j)})"
            for i, j in np.argwhere(adjacency & ~self.allowed)
        ]
        parents = adjacency.sum(axis=0)
        found += [
            f"'{shown(self.names[j])}' has {parents[j]} parents and may have {self.max_parents[j]}"
            for j in np.flatnonzero(parents > self.max_parents)
        ]
        return listing(found, 3) if found else None

    def _edge(self, i: int, j: int) -> str:
        return f"{shown(self.names[i])} -> {shown(self.names[j])}"

    def _reason(self, i: int, j: int) -> str:
        return _WHY[self.why[i, j]].format(source=shown(self.names[i]), target=shown(self.names[j]))


class Columns:
    """The columns that names and patterns stand for; ``partial`` columns are only some, and what is not one is none."""

    def __init__(self, names: tuple[str, ...], partial: bool = False) -> None:
        self.names, self.partial = names, partial
        self.position = {name: k for k, name in enumerate(names)}

    def find(self, parameter: str, text: str) -> list[int]:
        """Positions of the column of this name, or of those that the pattern matches."""
        if text in self.position:
            return [self.position[text]]
        if self.partial:
            return []
        if not WILD.search(text):
            raise ValueError(
                f"{parameter} names the column '{shown(text)}', which is not there{closest(text, self.names)}"
            )
        # Brackets that are no class of characters stand for themselves.
        for pattern in (text, text.replace("[", "[[]")):
            found = [k for k, name in enumerate(self.names) if fnmatchcase(name, pattern)]
            if found:
                return found
        raise ValueError(f"{parameter} has the pattern '{shown(text)}', which matches no column")

    def edges(self, parameter: str, edges: Sequence[Edge]) -> NDArray[np.bool_]:
        """The edges (d, d) between different columns that pairs of names and patterns stand for."""
        found = np.zeros((len(self.names),) * 2, bool)
        for edge in edges:
            sources, targets = (self.find(parameter, text) for text in edge)
            # One pattern on both sides means all edges within a group, and a group may be small.
            if sources == targets and len(sources) == 1 and (edge[0] != edge[1] or edge[0] in self.position):
                raise ValueError(f"{parameter} has an edge from '{shown(self.names[sources[0]])}' to itself")
            for i in sources:
                found[i, targets] = True
        np.fill_diagonal(found, False)
        return found

    def levels(self, tiers: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """The tier (d,) of each column, -1 for none; names outweigh patterns."""
        level = np.full(len(self.names), -1)
        for by_name in (True, False):
            taken = level >= 0
            for k, tier in enumerate(tiers):
                for text in tier:
                    if (text in self.position) is not by_name:
                        continue
                    for column in self.find("tiers", text):
                        if taken[column]:
                            continue
                        if level[column] not in (-1, k):
                            name = shown(self.names[column])
                            raise ValueError(f"tiers have '{name}' twice, in tier {level[column] + 1} and tier {k + 1}")
                        level[column] = k
        return level

    def limits(self, max_parents: int | Mapping[str, int] | None) -> NDArray[np.int64]:
        """The most parents (d,) of each column."""
        d = len(self.names)
        if not isinstance(max_parents, Mapping):
            return np.full(d, max(d - 1, 0) if max_parents is None else min(max_parents, d))
        limits = np.full(d, max(d - 1, 0))
        for by_name in (False, True):
            for text, limit in max_parents.items():
                if (text in self.position) is by_name:
                    found = self.find("max_parents", text)
                    limits[found] = limit if by_name else np.minimum(limits[found], limit)
        return limits


def closest(name: str, names: Sequence[str]) -> str:
    """The end of a message about an unknown name: those most like it, or some that there are."""
    folded = {known.casefold(): known for known in names}
    near = [folded[key] for key in get_close_matches(name.casefold(), list(folded), 3)]
    if near:
        return f" (closest: {quoted(near)})"
    return f" (there are: {quoted(names, 5)})" if names else ""


class Stated(NamedTuple):
    """What is said of columns: required (d, d), why an edge is not allowed (d, d), most parents (d,)."""

    names: tuple[str, ...]
    required: NDArray[np.bool_]
    why: NDArray[np.int8]
    limits: NDArray[np.int64]


def check(stated: Stated) -> None:
    """Refuse what no DAG can satisfy."""
    names, required, why, limits = stated
    if not is_dag(required):
        cycle = [names[k] for k in _cycle(required)]
        first = cycle.index(min(cycle))
        walk = " -> ".join(map(shown, [*cycle[first:], *cycle[: first + 1]]))
        raise ValueError(f"required edges make a cycle: {walk}")
    for i, j in np.argwhere(required & (why != OPEN))[:1]:
        a, b = shown(names[i]), shown(names[j])
        raise ValueError(f"the edge {a} -> {b} is required, but {_WHY[why[i, j]].format(source=a, target=b)}")
    parents = required.sum(axis=0)
    for j in np.flatnonzero(parents > limits)[:1]:
        edges = listing(f"{shown(names[i])} -> {shown(names[j])}" for i in np.flatnonzero(required[:, j]))
        raise ValueError(f"max_parents of '{shown(names[j])}' is {limits[j]}, but {parents[j]} are required: {edges}")


def _cycle(A: NDArray[np.bool_]) -> list[int]:
    """The nodes of a directed cycle, in its direction, of a graph that has one."""
    left = np.ones(len(A), bool)
    while True:  # what neither begins nor ends at a node without parents or children
        inner = left & A[left].any(axis=0) & A[:, left].any(axis=1)
        if (inner == left).all():
            break
        left = inner
    walk = [int(np.flatnonzero(left)[0])]
    while walk[-1] not in walk[:-1]:
        walk.append(int(np.flatnonzero(A[walk[-1]] & left)[0]))
    return walk[walk.index(walk[-1]) : -1]


def consequences(stated: Stated) -> Constraints:
    """Everything that follows for edges and orders from what is said."""
    names, required, limits = stated.names, stated.required, stated.limits
    why = stated.why.copy()
    paths = reachable(required)
    why[paths.T & (why == OPEN)] = CYCLE
    full = required.sum(axis=0) >= limits
    why[full[None, :] & ~required & (why == OPEN)] = FULL
    allowed = why == OPEN
    # Nodes that allowed edges join in both directions can stand in either order; other nodes that they join cannot.
    forward = closure(allowed)
    before = paths | (forward & ~forward.T)
    # One layout in memory, so that kernels are compiled once.
    arrays = (np.ascontiguousarray(array) for array in (required, allowed, before, limits.astype(np.int64), why))
    return Constraints(names, *arrays)


def closure(A: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Transitive closure (d, d) of any graph ``A`` (d, d), from its strongly connected components."""
    count, component = connected_components(csr_array(A), directed=True, connection="strong")
    between = np.zeros((count, count), bool)
    sources, targets = np.nonzero(A)
    between[component[sources], component[targets]] = True
    cyclic = np.diagonal(between).copy()
    np.fill_diagonal(between, False)
    closed = reachable(between) | np.diag(cyclic)
    return closed[np.ix_(component, component)]
