"""Pictures of graphs: what holds for every layout, graphs whose best layout is known, and sizes."""

import time
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vec2dag.layout import Layout, layered


def random_dag(d, edges, rng):
    """A DAG with labels that say nothing of the order, and about as many edges."""
    A = np.triu(rng.random((d, d)) < edges / max(d * (d - 1) / 2, 1), 1)
    return A[np.ix_(*2 * [rng.permutation(d)])].astype(np.uint8)


def graph(d, *edges):
    A = np.zeros((d, d), np.uint8)
    for i, j in edges:
        A[i, j] = 1
    return A


def boxes(layout, widths, height=1.0):
    """Left, top, right and bottom of every node, each of shape (d,)."""
    x, y = layout.positions.T
    return x - widths / 2, y - height / 2, x + widths / 2, y + height / 2


def crossings(layout):
    """Pairs of edges that cross, by comparing the straight pieces between two rows two by two."""
    pieces = {}
    for route in layout.routes:
        for (x0, y0), (x1, y1) in list(pairwise(route))[1:-1:2]:
            pieces.setdefault((y0, y1), []).append((x0, x1))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0 for those in pieces.values() for k, a in enumerate(those) for b in those[:k]
    )


def check(A, layout, widths, height=1.0, gap=0.5):
    """Everything that is true of every layout."""
    assert isinstance(layout, Layout)
    edges = np.argwhere(A)
    assert layout.positions.shape == (len(A), 2)
    assert len(layout.routes) == len(edges)
    left, top, right, bottom = boxes(layout, widths, height)
    width, tall = layout.size
    assert (left >= -1e-6).all()
    assert (right <= width + 1e-6).all()
    assert (top >= 0).all()
    assert (bottom <= tall + 1e-6).all()
    # Causes above effects, and a row is a height.
    assert (layout.layers[edges[:, 0]] < layout.layers[edges[:, 1]]).all()
    assert len(np.unique(layout.positions[:, 1])) == len(np.unique(layout.layers)) == layout.layers.max(initial=-1) + 1
    for row in range(layout.layers.max(initial=-1) + 1):
        here = np.flatnonzero(layout.layers == row)
        here = here[np.argsort(left[here])]
        assert np.ptp(top[here]) == 0
        assert (left[here[1:]] - right[here[:-1]] >= gap - 1e-6).all()
    for (i, j), route in zip(edges, layout.routes, strict=True):
        assert (route[0] == layout.positions[i]).all()
        assert (route[-1] == layout.positions[j]).all()
        assert (np.diff(route[:, 1]) >= 0).all()
        assert (route >= -1e-6).all()
        assert (route[:, 0] <= width + 1e-6).all()
        # A way meets the heights of a box only at the side of it.
        others = np.setdiff1d(np.arange(len(A)), [i, j])
        for (x0, y0), (x1, y1) in pairwise(route):
            meets = others[(bottom[others] > y0 + 1e-9) & (top[others] < y1 - 1e-9)]
            assert x0 == x1 or not len(meets) or {y0, y1} & {layout.positions[i, 1], layout.positions[j, 1]}
            assert ((max(x0, x1) <= left[meets] + 1e-6) | (min(x0, x1) >= right[meets] - 1e-6)).all()
        # It leaves and enters the boxes of its own nodes below and above.
        assert left[i] <= route[1, 0] <= right[i]
        assert route[1, 1] == pytest.approx(bottom[i])
        assert left[j] <= route[-2, 0] <= right[j]
        assert route[-2, 1] == pytest.approx(top[j])


@given(st.integers(0, 25), st.floats(0, 60), st.integers(0, 2**32 - 1))
def test_every_edge_goes_down_and_nothing_overlaps(d, edges, seed):
    rng = np.random.default_rng(seed)
    A, widths = random_dag(d, edges, rng), rng.uniform(0.2, 6.0, d)
    check(A, layered(A, widths=widths), widths)


def test_units_are_free(rng):
    A, widths = random_dag(20, 30, rng), rng.uniform(1, 4, 20)
    one = layered(A, widths=widths)
    many = layered(A, widths=40 * widths, height=40.0, gap=20.0)
    check(A, many, 40 * widths, 40.0, 20.0)
    assert many.positions == pytest.approx(40 * one.positions)
    assert many.size == pytest.approx([40 * side for side in one.size])


def test_the_empty_graph_and_a_single_node():
    nothing = layered(np.zeros((0, 0)))
    assert nothing.positions.shape == (0, 2)
    assert (nothing.routes, nothing.size) == ([], (0.0, 0.0))
    one = layered([[0]], widths=[3.0])
    assert one.positions.tolist() == [[1.5, 0.5]]
    assert (one.routes, one.layers.tolist(), one.size) == ([], [0], (3.0, 1.0))


def test_a_chain_is_a_straight_line():
    layout = layered(np.eye(6, k=1))
    assert layout.layers.tolist() == [0, 1, 2, 3, 4, 5]
    assert layout.positions[:, 0] == pytest.approx(0.5)
    assert all(route[:, 0] == pytest.approx(0.5) for route in layout.routes)


def test_a_long_edge_goes_straight_beside_the_nodes_that_it_passes():
    A = np.eye(6, k=1)
    A[0, 5] = 1
    layout = layered(A)
    long = layout.routes[1]
    assert len(long) == 4 + 2 * 4
    assert np.ptp(long[2:-2, 0]) == pytest.approx(0.0, abs=1e-6)
    assert np.abs(long[2:-2, 0] - layout.positions[1, 0]).min() >= 0.5 + 0.25 - 1e-6


def test_long_edges_are_straight_between_their_ends():
    routes = [r for seed in range(5) for r in layered(random_dag(40, 60, np.random.default_rng(seed))).routes]
    # Between the rows that an edge passes; equal weights of all edges leave half of them straight.
    sideways = np.concatenate([np.abs(r[4:-3:2, 0] - r[3:-4:2, 0]) for r in routes if len(r) >= 8])
    assert len(sideways) > 80
    assert (sideways < 1e-6).mean() > 0.8


def test_edges_are_short():
    # The second cause of the last node is above it and not in the first row.
    layout = layered(graph(5, (0, 1), (1, 2), (2, 3), (4, 3)))
    assert layout.layers.tolist() == [0, 1, 2, 3, 2]


def test_a_parent_is_above_the_middle_of_its_children():
    layout = layered(graph(4, (0, 1), (0, 2), (0, 3)), widths=[1, 2, 1, 5])
    assert sorted(layout.positions[1:, 0])[1] == pytest.approx(layout.positions[0, 0])
    two = layered(graph(3, (0, 1), (0, 2)))
    assert two.positions[0, 0] == pytest.approx(two.positions[1:, 0].mean())


def tree(children, depth):
    edges, rows = [], [[0]]
    for _ in range(depth):
        nodes = range(rows[-1][-1] + 1, rows[-1][-1] + 1 + children * len(rows[-1]))
        edges += [(rows[-1][k // children], node) for k, node in enumerate(nodes)]
        rows.append([*nodes])
    return graph(rows[-1][-1] + 1, *edges)


LADDER = graph(
    12, *[(i, i + 1) for i in range(5)], *[(i, i + 1) for i in range(6, 11)], *[(i, i + 6) for i in range(6)]
)
LEAST = {
    "binary tree": (tree(2, 4), 0),
    "tree of three": (tree(3, 3), 0),
    "tree upside down": (tree(2, 4).T, 0),
    "ladder": (LADDER, 0),
    "K22": (graph(4, (0, 2), (0, 3), (1, 2), (1, 3)), 1),
    "K23": (graph(5, *[(i, j) for i in (0, 1) for j in (2, 3, 4)]), 3),
    "K33": (graph(6, *[(i, j) for i in (0, 1, 2) for j in (3, 4, 5)]), 9),
    "cube": (graph(8, *[(i, i | b) for i in range(8) for b in (1, 2, 4) if not i & b]), 2),
    "double diamond": (graph(7, (0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)), 0),
}


@pytest.mark.parametrize("name", LEAST)
@pytest.mark.parametrize("seed", range(3))
def test_small_graphs_have_as_few_crossings_as_possible(name, seed):
    A, least = LEAST[name]
    shuffled = A[np.ix_(*2 * [np.random.default_rng(seed).permutation(len(A))])]
    assert crossings(layered(shuffled)) == least


def fewest(rows, edges):
    """Crossings of the best of all orders of the nodes in two rows."""
    return min(
        sum((a.index(i) - a.index(k)) * (b.index(j) - b.index(m)) < 0 for (i, j), (k, m) in combinations(edges, 2))
        for a, b in product(permutations(rows[0]), permutations(rows[1]))
    )


@pytest.mark.parametrize("seed", range(10))
def test_two_rows_have_the_crossings_of_the_best_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    A = np.zeros((9, 9), np.uint8)
    A[:4, 4:] = rng.random((4, 5)) < 0.5
    layout = layered(A)
    assert crossings(layout) == fewest((range(4), range(4, 9)), np.argwhere(A).tolist())


def test_there_are_far_fewer_crossings_than_in_a_random_order(rng):
    A = random_dag(40, 60, rng)
    layout = layered(A)
    places = layout.positions[:, 0].copy()
    for row in range(layout.layers.max() + 1):
        here = layout.layers == row
        places[here] = rng.permutation(places[here])
    straight = [np.array([[places[i], layout.layers[i]], [places[j], layout.layers[j]]]) for i, j in np.argwhere(A)]

    def cross(a, b):
        """Whether two straight lines that go down cross, at the heights that both have."""
        low, high = max(a[0, 1], b[0, 1]), min(a[1, 1], b[1, 1])
        at = [[np.interp(y, line[:, 1], line[:, 0]) for y in (low, high)] for line in (a, b)]
        return low < high and (at[0][0] - at[1][0]) * (at[0][1] - at[1][1]) < 0

    at_random = sum(cross(a, b) for k, a in enumerate(straight) for b in straight[:k])
    assert crossings(layout) < at_random / 3


def test_nodes_without_edges_are_a_grid_below():
    A = np.zeros((120, 120), np.uint8)
    A[:10, :10] = np.eye(10, k=1)
    layout = layered(A)
    check(A, layout, np.ones(120))
    assert layout.positions[10:, 1].min() > layout.positions[:10, 1].max()
    assert layout.size[0] < 3 * layout.size[1]
    alone = layered(np.zeros((500, 500)))
    assert 0.5 < alone.size[0] / alone.size[1] < 3


def test_a_star_is_not_a_line():
    A = np.zeros((101, 101), np.uint8)
    A[0, 1:] = 1
    for star in (A, A.T):
        layout = layered(star)
        check(star, layout, np.ones(101))
        assert layout.size[0] < 3 * layout.size[1]
    few = np.zeros((7, 7), np.uint8)
    few[0, 1:] = 1
    assert layered(few).layers.tolist() == [0] + 6 * [1]


def test_parts_are_side_by_side_and_below_each_other():
    pairs = np.kron(np.eye(30), [[0, 1], [0, 0]]).astype(np.uint8)
    layout = layered(pairs)
    check(pairs, layout, np.ones(60))
    assert 0.7 < layout.size[0] / layout.size[1] < 3


def test_the_same_graph_has_the_same_layout_whatever_its_type_and_order_in_memory(rng):
    A, widths = random_dag(30, 45, rng), rng.uniform(1, 3, 30)
    before = A.copy(), widths.copy()
    first = layered(A, widths=widths)
    for other in (A, np.asfortranarray(A), A * -2.5, A.astype(bool), A.tolist()):
        again = layered(other, widths=widths)
        assert (again.positions == first.positions).all()
        assert all((a == b).all() for a, b in zip(again.routes, first.routes, strict=True))
    assert (before[0] == A).all()
    assert (before[1] == widths).all()


@pytest.mark.parametrize(("d", "edges", "seconds"), [(11, 20, 0.1), (107, 150, 0.5), (500, 1000, 3.0)])
def test_sizes(d, edges, seconds, rng):
    A, widths = random_dag(d, edges, rng), np.full(d, 2.5)
    layered(A[:3, :3])
    start = time.process_time()
    layout = layered(A, widths=widths)
    # three times as long as on an idle machine
    assert time.process_time() - start < 3 * seconds
    left, _, right, _ = boxes(layout, widths)
    for row in range(layout.layers.max() + 1):
        here = np.flatnonzero(layout.layers == row)
        here = here[np.argsort(left[here])]
        assert (left[here[1:]] - right[here[:-1]] >= 0.5 - 1e-6).all()
    assert layout.size[0] < 4 * layout.size[1]


@pytest.mark.slow
def test_a_dense_graph_comes_to_an_end(rng):
    A = random_dag(120, 1500, rng)
    check(A, layered(A), np.ones(120))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"A": [[0, 1], [1, 0]]}, "A has a directed cycle"),
        ({"A": [[1]]}, "A has self-loops"),
        ({"A": [0, 1]}, "A must have shape"),
        ({"widths": [1.0]}, "widths must be 2 positive numbers"),
        ({"widths": [1.0, 0.0]}, "widths must be 2 positive numbers"),
        ({"widths": [1.0, np.nan]}, "widths must be 2 positive numbers"),
        ({"height": 0}, "height must be a positive number"),
        ({"gap": -1}, "gap must be a positive number"),
    ],
)
def test_what_is_wrong_is_named(changes, words):
    arguments = {"A": [[0, 1], [0, 0]]} | changes
    with pytest.raises(ValueError, match=words):
        layered(arguments.pop("A"), **arguments)
