"""Metrics against hand-worked values, slow definitions and the packages that define them."""

import json
import sys
from itertools import product

import networkx as nx
import numpy as np
import pytest
from oracles import all_dags, markov_equivalent
from sklearn.linear_model import LinearRegression

from vec2dag import cpdag, metrics, simulate

BASIC = ("shd", "nnz", "fdr", "tpr", "fpr", "precision", "recall", "f1")
SKELETON = ("skeleton_shd", "skeleton_precision", "skeleton_recall", "skeleton_f1")
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
COLLIDER = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])


def random_dag(d, p, rng):
    order = rng.permutation(d)
    return np.triu(rng.random((d, d)) < p, k=1).astype(int)[np.ix_(order, order)]


def random_pairs(count, seed=0, largest=12):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        d = int(rng.integers(2, largest + 1))
        yield random_dag(d, rng.random(), rng), random_dag(d, rng.random(), rng)


def gcastle(true, pred):
    """The definitions of gCastle's MetricsDAG, pair by pair; 0 where it divides 0 by 0.

    Equal to gcastle 1.0.4, ``castle.metrics.evaluation.MetricsDAG(pred, true).metrics``, to its 4 decimals on
    1,000 random pairs of DAGs.
    """
    d = len(true)
    right = extra = missing = reverse = 0
    for i in range(d):
        for j in range(i):
            t, p = (true[i, j], true[j, i]), (pred[i, j], pred[j, i])
            right += any(p) and t == p
            reverse += any(p) and any(t) and t != p
            extra += any(p) and not any(t)
            missing += any(t) and not any(p)
    edges, nnz = right + reverse + missing, right + reverse + extra
    precision, recall = right / max(nnz, 1), right / max(edges, 1)
    return {
        "shd": extra + missing + reverse,
        "nnz": nnz,
        "fdr": (reverse + extra) / max(nnz, 1),
        "tpr": recall,
        "fpr": (reverse + extra) / max(d * (d - 1) / 2 - edges, 1),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if right else 0,
    }


def test_basic_metrics_equal_the_definitions_on_1000_pairs():
    for true, pred in random_pairs(1000):
        expected = gcastle(true, pred)
        found = {name: getattr(metrics, name)(true, pred) for name in BASIC}
        assert found == pytest.approx(expected, abs=1e-12)


def test_skeleton_metrics_equal_the_basic_ones_on_upward_edges():
    for true, pred in random_pairs(200, seed=1):
        T, P = np.triu(true + true.T), np.triu(pred + pred.T)
        for name in ("shd", "precision", "recall", "f1"):
            expected = gcastle(T, P)[name]
            assert getattr(metrics, f"skeleton_{name}")(true, pred) == pytest.approx(expected, abs=1e-12)


def test_values_worked_by_hand():
    # true 0 -> 1 -> 2; estimated 0 -> 1, 2 -> 1 (reversed), 0 -> 2 (extra)
    pred = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]])
    values = metrics.evaluate(CHAIN, pred)
    assert values["shd"] == 2
    assert values["nnz"] == 3
    assert values["fdr"] == pytest.approx(2 / 3)
    assert values["tpr"] == values["recall"] == 0.5
    assert values["fpr"] == 2.0  # two wrong edges, one pair without a true edge
    assert values["precision"] == pytest.approx(1 / 3)
    assert values["f1"] == pytest.approx(0.4)
    assert values["skeleton_shd"] == 1
    assert values["skeleton_precision"] == pytest.approx(2 / 3)
    assert values["skeleton_recall"] == 1.0
    assert values["skeleton_f1"] == pytest.approx(0.8)
    assert values["cpdag_shd"] == 1  # both chain-like classes are undirected: only the extra edge differs
    assert metrics.shd(CHAIN, CHAIN.T) == 2
    assert metrics.shd(CHAIN, np.zeros((3, 3))) == 2
    assert tuple(values) == (*BASIC, *SKELETON, "cpdag_shd")
    json.dumps(values)


def test_empty_graphs_have_finite_metrics():
    empty = np.zeros((3, 3))
    assert set(metrics.evaluate(empty, empty).values()) == {0}
    assert metrics.precision(CHAIN, empty) == metrics.fdr(CHAIN, empty) == metrics.f1(CHAIN, empty) == 0


@pytest.mark.parametrize("name", [*BASIC, *SKELETON, "cpdag_shd"])
def test_leading_dimensions_broadcast(name, rng):
    metric = getattr(metrics, name)
    true = np.array([random_dag(6, 0.4, rng) for _ in range(4)])
    pred = np.array([[random_dag(6, 0.4, rng) for _ in range(4)] for _ in range(3)])
    batch = metric(true, pred)
    assert batch.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        assert batch[i, j] == metric(true[j], pred[i, j])
    assert isinstance(metric(true[0], pred[0, 0]), int | float)


@pytest.mark.parametrize("name", [*BASIC, *SKELETON, "cpdag_shd"])
def test_any_number_is_an_edge_and_inputs_stay(name, rng):
    metric = getattr(metrics, name)
    true, pred = random_dag(7, 0.5, rng), random_dag(7, 0.5, rng)
    weights = -pred * rng.uniform(0.1, 2, pred.shape)
    kept = weights.copy(), true.copy()
    assert metric(true.astype(bool), weights) == metric(true, pred)
    assert (weights == kept[0]).all()
    assert (true == kept[1]).all()


def test_relabelling_changes_nothing(rng):
    for true, pred in random_pairs(30, seed=2):
        p = rng.permutation(len(true))
        assert metrics.evaluate(true, pred) == metrics.evaluate(true[np.ix_(p, p)], pred[np.ix_(p, p)])


def test_cpdag_shd_is_zero_exactly_within_a_class():
    for A, B in product(all_dags(3), repeat=2):
        assert (metrics.cpdag_shd(A, B) == 0) == markov_equivalent(A, B)


def test_cpdag_shd_counts_lost_directions_and_takes_cpdags():
    assert metrics.cpdag_shd(COLLIDER, CHAIN) == 2  # both edges directed against both undirected
    for true, pred in random_pairs(50, seed=3, largest=7):
        distance = metrics.cpdag_shd(true, pred)
        assert metrics.cpdag_shd(cpdag(true), pred) == metrics.cpdag_shd(true, cpdag(pred)) == distance


def test_cyclic_estimate():
    cycle = np.roll(np.eye(3), 1, axis=1)
    assert np.isnan(metrics.evaluate(CHAIN, cycle)["cpdag_shd"])
    assert metrics.evaluate(CHAIN, cycle)["shd"] == 1
    with pytest.raises(ValueError, match="pred has a directed cycle"):
        metrics.cpdag_shd(CHAIN, cycle)


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        (CHAIN, np.zeros((4, 4)), r"true and pred .* \(3, 3\) and \(4, 4\)"),
        (CHAIN[:2], CHAIN, r"true must have shape"),
        (CHAIN, np.eye(3), r"pred has self-loops"),
        (np.zeros((2, 3, 3)), np.zeros((4, 3, 3)), "do not broadcast"),
    ],
)
def test_refusals_name_the_parameter(true, pred, message):
    with pytest.raises(ValueError, match=message):
        metrics.shd(true, pred)


def test_evaluate_takes_one_pair():
    with pytest.raises(ValueError, match=r"shape \(d, d\)"):
        metrics.evaluate(CHAIN, np.zeros((2, 3, 3)))


def intervention_mistakes(true, pred):
    """SID by its definition: adjustment for the parents in pred, judged by d-separation in the true graph."""
    G = nx.DiGraph([(int(i), int(j)) for i, j in np.argwhere(true)])
    G.add_nodes_from(range(len(true)))
    mistakes = 0
    for i, j in product(range(len(true)), repeat=2):
        if i == j:
            continue
        Z = set(np.flatnonzero(pred[:, i]).tolist())
        if j in Z:  # pred says that i has no effect on j
            mistakes += j in nx.descendants(G, i)
            continue
        causal = {k for k in nx.descendants(G, i) if k == j or j in nx.descendants(G, k)}
        forbidden = causal.union(*(nx.descendants(G, k) for k in causal))
        backdoor = G.copy()
        backdoor.remove_edges_from([(i, k) for k in causal])
        mistakes += bool(Z & forbidden) or not nx.is_d_separator(backdoor, {i}, {j}, Z)
    return mistakes


def test_sid_worked_by_hand():
    pytest.importorskip("gadjid", reason="adjustment distances need gadjid")
    edge, empty = np.array([[0, 1], [0, 0]]), np.zeros((2, 2))
    assert metrics.sid(edge, edge) == 0
    assert metrics.sid(edge, edge.T) == 2
    assert metrics.sid(edge, empty) == 1  # do(1) would be read off the regression of 0 on 1
    assert metrics.sid(empty, edge) == 0  # a superfluous parent does no harm
    assert metrics.sid(edge, edge.T, normalised=True) == 1.0


def test_sid_equals_its_definition():
    pytest.importorskip("gadjid", reason="adjustment distances need gadjid")
    for true, pred in random_pairs(60, seed=4, largest=6):
        assert metrics.sid(true, pred) == intervention_mistakes(true, pred)


def test_adjustment_distances_of_classes_and_batches(rng):
    gadjid = pytest.importorskip("gadjid", reason="adjustment distances need gadjid")
    pairs = list(random_pairs(30, seed=5))
    for true, pred in pairs:
        T, P = true.astype(np.int8), pred.astype(np.int8)
        for name in ("parent_aid", "ancestor_aid"):
            metric, reference = getattr(metrics, name), getattr(gadjid, name)
            assert metric(true, pred) == reference(T, P, edge_direction="from row to column")[1]
            assert metric(cpdag(true), cpdag(true)) == 0
        assert metrics.shd(true, pred) == gadjid.shd(T, P)[1]
    batch = np.array([random_dag(5, 0.5, rng) for _ in range(4)])
    assert metrics.sid(batch[0], batch).tolist() == [metrics.sid(batch[0], A) for A in batch]
    values = metrics.evaluate(batch[0], batch[1], adjustment=True)
    assert values["sid"] == metrics.sid(batch[0], batch[1])
    # An undirected edge identifies no effect; coded as two arrows it would be a cycle.
    assert metrics.parent_aid([[0, 1], [0, 0]], [[0, 1], [1, 0]]) == 2
    with pytest.raises(ValueError, match="pred has a directed cycle"):
        metrics.sid(CHAIN, np.roll(np.eye(3), 1, axis=1))


def test_one_node_is_at_no_distance():
    pytest.importorskip("gadjid", reason="adjustment distances need gadjid")
    assert metrics.sid([[0]], [[0]]) == 0
    assert metrics.sid(np.zeros((2, 1, 1)), [[0]], normalised=True).tolist() == [0.0, 0.0]
    assert metrics.evaluate([[0]], [[0]], adjustment=True)["parent_aid"] == 0


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gadjid", None)
    with pytest.raises(ImportError, match=r'pip install "vec2dag\[metrics\]"'):
        metrics.sid(CHAIN, CHAIN)


def test_order_divergence(rng):
    A = random_dag(8, 0.5, rng)
    orders = np.array([rng.permutation(8) for _ in range(20)])
    expected = [sum(A[o[b], o[a]] for a in range(8) for b in range(a, 8)) for o in orders]
    assert metrics.order_divergence(orders, A).tolist() == expected
    assert metrics.order_divergence([0, 1, 2], CHAIN) == 0
    assert metrics.order_divergence([2, 1, 0], CHAIN) == 2
    assert metrics.order_divergence([1, 2, 0], CHAIN) == 1
    for wrong in ([0, 1], [0, 1, 1], [1, 2, 3]):
        with pytest.raises(ValueError, match="order must hold each node"):
            metrics.order_divergence(wrong, CHAIN)


def path_sortability(scores, A):
    """Each pair once per length of a directed path, from an enumeration of all paths."""
    G = nx.DiGraph([(int(i), int(j)) for i, j in np.argwhere(A)])
    pairs = {(i, j, len(path)) for i, j in product(G, repeat=2) if i != j for path in nx.all_simple_paths(G, i, j)}
    credit = [0.5 * (scores[i] < scores[j]) + 0.5 * (scores[i] <= scores[j]) for i, j, _ in pairs]
    return np.mean(credit)


def test_sortability_equals_the_enumeration_of_paths(rng):
    for _ in range(40):
        A = random_dag(7, 0.6, rng)
        A[0, 1] |= not A.any()
        scores = rng.integers(0, 4, size=7)  # with ties
        assert metrics.sortability(scores, A) == pytest.approx(path_sortability(scores, A))
        assert metrics.sortability(-scores, A) == pytest.approx(1 - path_sortability(scores, A))


def test_sortability_worked_by_hand(rng):
    assert metrics.sortability([1, 3, 2], CHAIN) == pytest.approx(2 / 3)
    assert metrics.sortability([1, 1.5, 3], CHAIN, tol=0.6) == pytest.approx(2.5 / 3)
    assert np.isnan(metrics.sortability([1, 2], np.zeros((2, 2))))
    X = rng.standard_normal((100, 3)) * [3, 2, 1]
    assert metrics.varsortability(X, CHAIN) == 0
    assert metrics.varsortability(X[:, ::-1], CHAIN) == 1


def test_r2_sortability_uses_the_regression_on_all_others(rng):
    data = simulate.linear_gaussian(8, 2, 200, rng)
    r2 = np.empty(8)
    for j in range(8):
        others = np.delete(data.X, j, axis=1)
        r2[j] = LinearRegression().fit(others, data.X[:, j]).score(others, data.X[:, j])
    assert metrics.r2_sortability(data.X, data.A) == metrics.sortability(r2, data.A)
    units = 10.0 ** rng.integers(-6, 7, size=8)
    assert metrics.r2_sortability(data.X * units + 5, data.A) == metrics.sortability(r2, data.A)


def test_r2_of_degenerate_columns(rng):
    x, y = rng.standard_normal((2, 50))
    # 0 and 1 determine each other (R2 = 1), 2 is constant (R2 = 0), 3 is in between
    X = np.column_stack([x, 2 * x, np.full(50, 0.1), x + y])
    for i, j, value in ((3, 0, 1), (2, 3, 1), (2, 0, 1), (0, 1, 0.5), (1, 3, 0)):
        A = np.zeros((4, 4))
        A[i, j] = 1
        assert metrics.r2_sortability(X, A) == value, (i, j)
    wide = rng.standard_normal((5, 9))  # more columns than rows: every column is determined
    assert metrics.r2_sortability(wide, random_dag(9, 0.5, rng)) == 0.5


def test_sortabilities_equal_causaldisco_on_100_sets(rng):
    analytics = pytest.importorskip("CausalDisco.analytics", reason="the comparison needs CausalDisco")
    for _ in range(100):
        d = int(rng.integers(4, 20))
        data = simulate.linear_gaussian(d, rng.uniform(0.5, (d - 1) / 2), 200, rng)
        if data.A.any():
            A = data.A.astype(int)
            assert metrics.varsortability(data.X, A) == pytest.approx(analytics.var_sortability(data.X, A))
            assert metrics.r2_sortability(data.X, A) == pytest.approx(analytics.r2_sortability(data.X, A))


def slipped_varsortability(X, A):
    """Varsortability with the slip behind the paper's table.

    An integer adjacency makes the powers count paths: the denominator then holds every path, the numerator
    each pair once per length. The definition uses boolean powers in both.
    """
    increases = X.var(axis=0)[None, :] > X.var(axis=0)[:, None]
    paths = edges = A.astype(np.int64)
    every_path = sorted_pairs = 0
    while paths.any():
        every_path += paths.sum()
        sorted_pairs += ((paths > 0) & increases).sum()
        paths = paths @ edges
    return sorted_pairs / every_path


@pytest.mark.parametrize(
    ("k", "printed", "tolerance"),
    [(1, 0.97, 0.03), (2, 0.87, 0.10), (4, 0.35, 0.12), (6, 0.05, 0.02), (8, 0.01, 0.01)],
)
def test_dense_graphs_are_sortable_by_variance(k, printed, tolerance):
    """The paper's table of varsortability by density comes from the slip; by the definition all are near 1.

    Printed standard errors: 0.01, 0.03, 0.06, 0.01, 0.00; the paper's graphs have k (d - 1) edges, not k d.
    """
    sets = [simulate.preset(f"varsortability-er{k}", seed) for seed in range(40)]
    slipped = np.mean([slipped_varsortability(data.X, data.A) for data in sets])
    assert slipped == pytest.approx(printed, abs=tolerance)
    assert np.mean([metrics.varsortability(data.X, data.A) for data in sets]) > 0.95


@pytest.mark.parametrize(
    ("name", "printed"), [("er1_d30_w25", 0.99), ("er2_d30", 0.88), ("er4_d30", 0.35), ("er8_d30", 0.006)]
)
def test_varsortability_of_the_shared_sets(name, printed, shared_linear):
    sets = [shared_linear(name, seed) for seed in range(5)]
    assert np.mean([slipped_varsortability(X, A) for X, A in sets]) == pytest.approx(printed, abs=0.005)
    assert min(metrics.varsortability(X, A) for X, A in sets) > 0.96


@pytest.mark.slow
def test_sortnregress_on_the_shared_dense_sets(shared_linear):
    """The paper prints 88.2 for increasing and 360.2 for decreasing variances, on other draws."""
    sets = [shared_linear("er8_d30", seed) for seed in range(5)]
    truth = [A for _, A in sets]
    increasing = np.array([metrics.sortnregress(X) for X, _ in sets])
    decreasing = np.array([metrics.sortnregress(X, decreasing=True) for X, _ in sets])
    pruned = np.abs(increasing) > 0.3

    def within(low, high, estimates):
        return low < np.mean(metrics.shd(truth, estimates)) < high

    assert within(75, 105, increasing)
    assert within(75, 90, pruned)
    assert within(350, 395, decreasing)


def test_sortnregress_recovers_a_sorted_graph(rng):
    data = simulate.linear_gaussian(6, 1, 3000, rng, low=1.5, high=2.0)
    assert metrics.varsortability(data.X, data.A) == 1
    W = metrics.sortnregress(data.X)
    assert metrics.shd(data.A, metrics.sortnregress(data.X, threshold=0.3)) == 0
    np.testing.assert_allclose(W, data.meta["weights"], atol=0.2)
    order = np.argsort(data.X.var(axis=0))
    assert metrics.order_divergence(order, W) == 0
    assert metrics.order_divergence(order[::-1], metrics.sortnregress(data.X, decreasing=True)) == 0


def test_sortnregress_by_r2_ignores_units(rng):
    data = simulate.linear_gaussian(6, 2, 500, rng)
    units = 2.0 ** rng.integers(-5, 6, size=6)
    plain, scaled = (metrics.sortnregress(X, by="r2") for X in (data.X, data.X * units))
    assert metrics.shd(plain, scaled) == 0
    assert scaled == pytest.approx(plain * units[None, :] / units[:, None], rel=1e-6)
    assert metrics.shd(metrics.sortnregress(data.X), metrics.sortnregress(data.X * units)) > 0


def test_sortnregress_equals_causaldisco(rng):
    baselines = pytest.importorskip("CausalDisco.baselines", reason="the comparison needs CausalDisco")
    for _ in range(5):
        X = simulate.linear_gaussian(8, 2, 300, rng).X
        assert metrics.sortnregress(X) == pytest.approx(baselines.var_sort_regress(X))
        assert metrics.sortnregress(X, by="r2") == pytest.approx(baselines.r2_sort_regress(X))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.varsortability(np.zeros((5, 4)), CHAIN), "A has 3 nodes"),
        (lambda: metrics.varsortability(np.zeros(5), CHAIN), r"X must have shape \(n, d\)"),
        (lambda: metrics.varsortability(np.full((5, 3), np.nan), CHAIN), "X contains NaN"),
        (lambda: metrics.varsortability(np.zeros((5, 3)), CHAIN + CHAIN.T), "cycle"),
        (lambda: metrics.sortability([1, 2, 3], CHAIN, tol=-1), "tol must be a finite number of at least 0"),
        (lambda: metrics.sortnregress(np.zeros((3, 3))), "more rows than columns"),
        (lambda: metrics.sortnregress(np.zeros((9, 3)), by="size"), "by='size' is unknown; allowed: 'variance', 'r2'"),
        (
            lambda: metrics.sortnregress(np.zeros((9, 3)), threshold=-1),
            "threshold must be a finite number of at least 0",
        ),
    ],
)
def test_data_refusals_name_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()
