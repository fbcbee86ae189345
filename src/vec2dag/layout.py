"""Where the nodes and edges of a DAG go in a picture: causes above effects, few crossings, short and straight edges.

The layered method of Sugiyama, Tagawa and Toda (1981), with the two linear programmes of Gansner, Koutsofios, North and
Vo (1993). Nodes are put into rows so that edges are short; an edge that passes rows gets a slot of its own in each of
them; the order within rows is changed while there are fewer crossings; and places within rows are those of the least
horizontal length of the edges.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog

from ._checks import as_real, number
from .graph import as_adjacency, topological_order

__all__ = ["Layout", "layered"]

# Width of a good picture in units of its height.
ASPECT = 1.6
# A row holds this many nodes of mean width, and more in a large graph, before others move to further rows.
ROW = 8
# Sweeps of the crossing reduction, and after how many without fewer crossings it ends.
SWEEPS, PATIENCE = 24, 6
# Sweeps times edges at most, so that dense graphs end as well.
EFFORT = 60_000
# Width of a picture in units of its widest row: more makes edges straighter.
SLACK = 1.3
# How much an edge is straightened that has no, one or two ends in the slots of long edges.
STRAIGHT = (1.0, 2.0, 8.0)


class Layout(NamedTuple):
    """Places in a picture, x to the right and y downwards, in the units of the widths and heights of the nodes.

    Attributes
    ----------
    positions : array of shape (d, 2)
        Centres of the nodes.
    routes : list of arrays of shape (k, 2)
        Of every edge, in the order of ``np.argwhere(A)``, points from the centre of the source to that of the target.
        The second point is where it leaves the box of the source and the last but one where it enters that of the
        target. A route crosses a row only vertically, where there is no box; whatever is drawn between two points and
        keeps between their heights meets no box either.
    layers : array of shape (d,)
        Rows of the nodes, from the top; rows have the same distances everywhere.
    size : (float, float)
        Width and height of the picture; its upper left corner is the origin.
    """

    positions: NDArray[np.float64]
    routes: list[NDArray[np.float64]]
    layers: NDArray[np.int64]
    size: tuple[float, float]


def layered(A: ArrayLike, *, widths: ArrayLike | None = None, height: float = 1.0, gap: float = 0.5) -> Layout:
    """Lay out a DAG in rows.

    Parameters
    ----------
    A : array of shape (d, d)
        The DAG.
    widths : array of shape (d,), optional
        Of the boxes of the nodes; 1 by default.
    height : float, default 1.0
        Of every box. Rows are two to four heights apart: further in a wide picture, whose edges would else be flat.
    gap : float, default 0.5
        Least space between boxes of a row; half of it is beside long edges that pass there.

    Returns
    -------
    Layout

    Examples
    --------
    >>> layered([[0, 1, 1], [0, 0, 0], [0, 0, 0]]).positions
    array([[1.25, 0.5 ],
           [0.5 , 2.5 ],
           [2.  , 2.5 ]])
    """
    adjacency = as_adjacency(A)
    topological_order(adjacency)
    height, gap = number("height", height, above=0), number("gap", gap, above=0)
    d = len(adjacency)
    wide = _widths(widths, d)
    connected = (adjacency | adjacency.T).any(axis=0)
    _, label = sparse.csgraph.connected_components(adjacency, directed=False) if d else (0, np.zeros(0, int))
    parts = [
        _laid_out(adjacency, np.flatnonzero(label == k), wide, height, gap) for k in dict.fromkeys(label[connected])
    ]
    parts = _packed(parts, height, gap)
    alone = np.flatnonzero(~connected)
    below = max((part.top + len(part.rows) for part in parts), default=0)
    room = max((part.left + part.width for part in parts), default=0.0)
    parts += _grid(alone, wide, below, max(room, np.sqrt(ASPECT * 2.0 * height * (wide[alone] + gap).sum())), gap)

    positions, layers = np.zeros((d, 2)), np.zeros(d, np.int64)
    for part in parts:
        for depth, row in enumerate(part.rows):
            for slot in row:
                if slot < len(part.nodes):
                    layers[part.nodes[slot]] = part.top + depth
                    positions[part.nodes[slot], 0] = part.left + part.x[slot]
    width = float(max((part.left + part.width for part in parts), default=0.0))
    rows = int(layers.max(initial=-1)) + 1
    pitch = float(np.clip(width / ASPECT / max(rows, 1), 2.0 * height, 4.0 * height))
    positions[:, 1] = pitch * layers + height / 2.0
    routes = {edge: route for part in parts for edge, route in _routes(part, height, pitch)}
    size = (width, pitch * (rows - 1) + height if rows else 0.0)
    return Layout(positions, [routes[i, j] for i, j in np.argwhere(adjacency).tolist()], layers, size)


def _widths(widths: ArrayLike | None, d: int) -> NDArray[np.float64]:
    if widths is None:
        return np.ones(d)
    values = np.asarray(as_real(widths, "widths"), np.float64)
    if values.shape != (d,) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"widths must be {d} positive numbers, one for each node of A, got {values}")
    return values


@dataclass
class _Part:
    """A connected part of the graph. Slots are its nodes, and then one for every row that a long edge passes."""

    nodes: NDArray[np.int64]
    rows: list[list[int]]
    edges: dict[tuple[int, int], list[int]]  # of nodes of the graph: the slots from source to target
    widths: list[float]
    x: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    width: float = 0.0
    left: float = 0.0
    top: int = 0


def _laid_out(
    A: NDArray[np.uint8], nodes: NDArray[np.int64], widths: NDArray[np.float64], height: float, gap: float
) -> _Part:
    inner, wide = A[np.ix_(nodes, nodes)], widths[nodes]
    area = 2.0 * height * (wide + gap).sum()
    layer = _layers(inner, wide + gap, max(1.2 * np.sqrt(ASPECT * area), ROW * (wide + gap).mean()))
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for node, depth in enumerate(layer):
        rows[depth].append(node)
    part = _Part(nodes, rows, {}, wide.tolist())
    for i, j in np.argwhere(inner).tolist():
        slots = [i, *range(len(part.widths), len(part.widths) + layer[j] - layer[i] - 1), j]
        for slot, depth in zip(slots[1:-1], range(layer[i] + 1, layer[j]), strict=True):
            rows[depth].append(slot)
            part.widths.append(0.0)
        part.edges[int(nodes[i]), int(nodes[j])] = slots
    _reduce_crossings(part)
    part.x = _places(part, gap)
    part.width = float((part.x + np.asarray(part.widths) / 2.0).max())
    return part


# --- rows -----------------------------------------------------------------------------------------------------


def _layers(A: NDArray[np.uint8], widths: NDArray[np.float64], most: float) -> list[int]:
    """Rows of the nodes of a connected DAG: short edges, and rows no wider than ``most`` where they can be split."""
    i, j = np.nonzero(A)
    incoming, outgoing = A.sum(axis=0, dtype=int), A.sum(axis=1, dtype=int)
    # min sum_ij (y_j - y_i) with y_j - y_i >= 1: totally unimodular, so that y is whole.
    best = linprog(incoming - outgoing, A_ub=_differences(i, j, len(A)), b_ub=-np.ones(len(i)), bounds=(0, len(A)))
    wished = np.rint(best.x).astype(int)

    parents, children = [np.flatnonzero(column) for column in A.T], [np.flatnonzero(row) for row in A]
    layer, filled = np.full(len(A), -1), np.zeros(2 * len(A) + 1)

    def put(node: int, places: range) -> None:
        """Move a node to the first of these rows that has room, if one has."""
        for place in places:
            if filled[place] == 0.0 or filled[place] + widths[node] <= most:
                if layer[node] >= 0:
                    filled[layer[node]] -= widths[node]
                filled[place] += widths[node]
                layer[node] = place
                return

    order = np.lexsort((np.arange(len(A)), -outgoing, wished)).tolist()
    for node in order:
        put(node, range(max(wished[node], layer[parents[node]].max(initial=-1) + 1), len(filled)))
    # Full rows have moved some nodes away from others, which follow.
    for node in order[::-1]:
        if outgoing[node] > incoming[node]:
            put(node, range(layer[children[node]].min() - 1, layer[node], -1))
    for node in order:
        if incoming[node] > outgoing[node]:
            put(node, range(layer[parents[node]].max() + 1, layer[node]))
    rows: list[int] = np.unique(layer, return_inverse=True)[1].tolist()
    return rows


def _differences(i: ArrayLike, j: ArrayLike, columns: int) -> sparse.csr_matrix:
    """Matrix whose rows take the differences ``x_i - x_j``."""
    i, j = np.asarray(i, int), np.asarray(j, int)
    row = np.arange(len(i))
    values = np.concatenate([np.ones(len(i)), -np.ones(len(i))])
    return sparse.csr_matrix((values, (np.tile(row, 2), np.concatenate([i, j]))), shape=(len(i), columns))


# --- crossings ------------------------------------------------------------------------------------------------


def _reduce_crossings(part: _Part) -> None:
    """Reorder the slots of the rows: sweeps by barycentres and exchanges of neighbours, the best order is kept."""
    slots = len(part.widths)
    up: list[list[int]] = [[] for _ in range(slots)]
    down: list[list[int]] = [[] for _ in range(slots)]
    for chain in part.edges.values():
        for u, v in pairwise(chain):
            down[u].append(v)
            up[v].append(u)
    depth = {slot: k for k, row in enumerate(part.rows) for slot in row}
    sweeps = min(SWEEPS, max(2, EFFORT // sum(map(len, down))))
    best, fewest = part.rows, -1
    for first in (part.rows[0], part.rows[-1]):
        rows: list[list[int]] = [[] for _ in part.rows]
        for slot in _depth_first(first, up, down):
            rows[depth[slot]].append(slot)
        since = 0
        for sweep in range(sweeps):
            crossings = _crossings(rows, down)
            since += 1
            if fewest < 0 or crossings < fewest:
                best, fewest, since = [row.copy() for row in rows], crossings, 0
            if fewest == 0 or since > PATIENCE:
                break
            _sweep(rows, up, down, downwards=sweep % 2 == 0, last_first=sweep % 4 > 1)
    part.rows = best


def _depth_first(first: list[int], up: list[list[int]], down: list[list[int]]) -> Iterator[int]:
    """All slots, each soon after a neighbour: what hangs together is side by side, and a tree has no crossings."""
    seen: set[int] = set()
    stack = first[::-1]
    while stack:
        slot = stack.pop()
        if slot not in seen:
            seen.add(slot)
            yield slot
            stack += up[slot][::-1] + down[slot][::-1]


def _crossings(rows: list[list[int]], down: list[list[int]]) -> int:
    """Pairs of edges that cross: of ends below, taken from left to right above, the pairs in the wrong order."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {slot: k for k, slot in enumerate(lower)}
        seen: list[int] = []
        for slot in upper:
            ends = sorted(place[end] for end in down[slot])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _sweep(
    rows: list[list[int]], up: list[list[int]], down: list[list[int]], *, downwards: bool, last_first: bool
) -> None:
    """Sort row after row by the means of the places of the neighbours in the row before; then exchange neighbours."""
    beside, order = (up, range(1, len(rows))) if downwards else (down, range(len(rows) - 2, -1, -1))
    for k in order:
        place = {slot: p for p, slot in enumerate(rows[k - 1 if downwards else k + 1])}
        movable = [slot for slot in rows[k] if beside[slot]]
        mean = {slot: sum(place[other] for other in beside[slot]) / len(beside[slot]) for slot in movable}
        # Slots without neighbours there stay; whether equal ones change their order alternates.
        sorted_ = iter(sorted(movable[::-1] if last_first else movable, key=mean.__getitem__))
        rows[k] = [next(sorted_) if beside[slot] else slot for slot in rows[k]]
    for k, row in enumerate(rows):
        above = {slot: p for p, slot in enumerate(rows[k - 1])} if k else {}
        below = {slot: p for p, slot in enumerate(rows[k + 1])} if k + 1 < len(rows) else {}
        ends = {
            slot: (sorted(above[other] for other in up[slot]), sorted(below[other] for other in down[slot]))
            for slot in row
        }
        _exchange(row, ends)


def _exchange(row: list[int], ends: dict[int, tuple[list[int], list[int]]]) -> None:
    """Exchange neighbours in a row while edges to the rows above and below then cross less."""
    k = 0
    while k < len(row) - 1:
        if sum(map(_excess, ends[row[k]], ends[row[k + 1]])) > 0:
            row[k], row[k + 1] = row[k + 1], row[k]
            k = max(k - 1, 0)
        else:
            k += 1


def _excess(a: list[int], b: list[int]) -> int:
    """Crossings of edges to the places ``a``, from the left, and ``b``, less those after an exchange."""
    return sum(bisect_left(b, end) - (len(b) - bisect_right(b, end)) for end in a)


# --- places ---------------------------------------------------------------------------------------------------


def _places(part: _Part, gap: float) -> NDArray[np.float64]:
    """Centres of the slots: the least weighted horizontal length of the edges that the order of the rows leaves."""
    widths = np.array([*part.widths, 0.0])
    wall = len(part.widths)  # a slot more, left of all rows, that holds them together
    u, v = np.array([pair for chain in part.edges.values() for pair in pairwise(chain)]).T
    weight = np.array(STRAIGHT)[(widths[u] == 0).astype(int) + (widths[v] == 0)]
    left, right = np.array([pair for row in part.rows for pair in pairwise([wall, *row, wall])]).T
    passing = (widths[left] == 0) | (widths[right] == 0)
    apart = (widths[left] + widths[right]) / 2.0 + np.where(passing, gap / 2.0, gap)
    apart[left == wall] -= gap / 2.0
    tight = max(widths[row].sum() + gap * (len(row) + (widths[row] > 0).sum()) / 2.0 for row in part.rows)

    def solve(lean: float, most: float) -> NDArray[np.float64]:
        """min sum weight |x_u - x_v| + lean sum x, x_right - x_left >= apart, and no row wider than ``most``.

        It is the dual of a flow of least cost, of which x are the prices, and that is found in a third of the time:
        f of -weight to weight along edges, g >= 0 from left to right, max apart g, and lean flows into each slot.
        """
        price = np.where(right == wall, apart - gap / 2.0 - most, apart)
        flow = sparse.hstack([_differences(right, left, wall + 1).T, _differences(u, v, wall + 1).T], format="csc")
        into = np.append(np.full(wall, lean), -lean * wall)
        bounds = np.concatenate([np.tile([0.0, np.inf], (len(left), 1)), np.column_stack([-weight, weight])])
        found = linprog(np.append(-price, np.zeros(len(u))), A_eq=flow, b_eq=into, bounds=bounds)
        x: NDArray[np.float64] = found.eqlin.marginals[wall] - found.eqlin.marginals[:wall]
        return x

    # Many places are equally good. The mean of those furthest to the left and to the right is one of them, and centred.
    lean = 0.1 / wall
    x = solve(lean, SLACK * tight)
    return (x + solve(-lean, float((x + widths[:wall] / 2.0).max()))) / 2.0


# --- the whole picture ----------------------------------------------------------------------------------------


def _packed(parts: list[_Part], height: float, gap: float) -> list[_Part]:
    """Parts side by side and, where that leaves room, below each other; the tallest first."""
    parts = sorted(parts, key=lambda part: (-len(part.rows), -part.width))
    area = sum((part.width + gap) * 2.0 * height * len(part.rows) for part in parts)
    most = max([len(part.rows) for part in parts] + [round(np.sqrt(area / ASPECT) / (2.0 * height))])
    taken = np.zeros(most)  # from the left, row by row
    for part in parts:
        tall = len(part.rows)
        lefts = [taken[top : top + tall].max() for top in range(most - tall + 1)]
        part.top = int(np.argmin(lefts))
        part.left = float(lefts[part.top])
        taken[part.top : part.top + tall] = part.left + part.width + 2.0 * gap
    return parts


def _grid(nodes: NDArray[np.int64], widths: NDArray[np.float64], top: int, room: float, gap: float) -> Iterator[_Part]:
    """Nodes without edges in rows that are as wide as there is room."""
    rows: list[list[int]] = []
    right = np.inf
    for node in nodes.tolist():
        if right + gap + widths[node] > room:
            rows.append([])
            right = -gap
        rows[-1].append(node)
        right += gap + widths[node]
    for depth, row in enumerate(rows):
        wide = widths[row]
        x = np.cumsum(wide + gap) - gap - wide / 2.0
        yield _Part(
            np.array(row), [[*range(len(row))]], {}, wide.tolist(), x, float(x[-1] + wide[-1] / 2.0), 0.0, top + depth
        )


def _routes(part: _Part, height: float, pitch: float) -> Iterator[tuple[tuple[int, int], NDArray[np.float64]]]:
    """The points of every edge. Those that leave a node, or enter it, do so side by side, sorted by where they go."""
    depth = {slot: part.top + k for k, row in enumerate(part.rows) for slot in row}
    x, chains = part.left + part.x, part.edges.values()
    leaving = _ports([(chain[0], chain[1]) for chain in chains], x, part.widths, height)
    entering = _ports([(chain[-1], chain[-2]) for chain in chains], x, part.widths, height)
    for (edge, chain), start, end in zip(part.edges.items(), leaving, entering, strict=True):
        across = np.repeat([start, *x[chain[1:-1]], end], 2)
        middle = np.array([pitch * depth[slot] + height / 2.0 for slot in chain])
        y = np.column_stack([middle - height / 2.0, middle + height / 2.0]).ravel()
        route = np.column_stack([across, y])
        route[0], route[-1] = (x[chain[0]], middle[0]), (x[chain[-1]], middle[-1])
        yield edge, route


def _ports(ends: list[tuple[int, int]], x: NDArray[np.float64], widths: list[float], height: float) -> list[float]:
    """Where edges from a node touch its box, for pairs of the node and the slot that an edge goes to."""
    places = [0.0] * len(ends)
    at: dict[int, list[int]] = {}
    for k, (node, _) in enumerate(ends):
        at.setdefault(node, []).append(k)
    for node, those in at.items():
        step = min(0.4 * height, 0.8 * widths[node] / len(those))
        for place, k in enumerate(sorted(those, key=lambda k: x[ends[k][1]])):
            places[k] = float(x[node]) + step * (place - (len(those) - 1) / 2.0)
    return places
