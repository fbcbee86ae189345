"""Search over orders: certificates, exact optima, precision."""

from itertools import permutations

import numpy as np
import pytest
from oracles import OnStatistics, acyclic, all_dags, markov_equivalent

from vec2dag import Orders, Score, discover, exact_search, insertion_search, is_dag, metrics, simulate, vec2dag
from vec2dag.graph import topological_order
from vec2dag.search import certify, equal_variance_order
from vec2dag.search.descent import CompiledDescent, resolution

CRITERIA = ["bic-ev", "bic-nv", "ls"]


def problem(d, k, n, seed, criterion):
    data = simulate.linear_gaussian(d=d, k=k, n=n, rng=np.random.default_rng(seed))
    scales = np.random.default_rng(seed + 1).uniform(0.5, 2.0, d) if criterion == "bic-nv" else 1.0
    return Score(data.X * scales, "linear", criterion), data.A


def over_orders(score, *, rng, time_budget=None, callback=None, **settings):
    """The policy over orders alone."""
    return discover(
        score, rng=rng, algorithm=Orders(**settings), refine=False, time_budget=time_budget, callback=callback
    )


def select_slowly(score, node, allowed, price):
    """Grow and shrink, straight from the definition."""

    def link(parents):
        return float(score.link(score.local(node, sorted(parents))))

    parents = set()
    while allowed - parents:
        best = min(sorted(allowed - parents), key=lambda j: link(parents | {j}))
        if link(parents | {best}) + price >= link(parents):
            break
        parents |= {best}
    while parents:
        worst = min(sorted(parents), key=lambda j: link(parents - {j}))
        if link(parents - {worst}) - price >= link(parents):
            break
        parents -= {worst}
    return parents


def edge_neighbours(A):
    """Every DAG that differs by one added, removed or reversed edge."""
    d = len(A)
    for i in range(d):
        for j in range(d):
            if i == j:
                continue
            B = A.copy()
            B[i, j] ^= 1
            if not (B[i, j] and B[j, i]):
                yield B
            if A[i, j]:
                C = A.copy()
                C[i, j], C[j, i] = 0, 1
                yield C


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(6))
def test_certificate_is_true(criterion, seed):
    """No insertion (with parents selected anew) and no single edge improves what insertion_search returns."""
    score, _ = problem(7, 2, 200, seed, criterion)
    found = insertion_search(score, np.random.default_rng(seed).permutation(7))
    assert found.certified
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    assert all(float(score(B)) <= found.score + 1e-8 for B in edge_neighbours(found.A) if acyclic(B))
    price = score.penalty * 7
    if criterion == "bic-ev":
        price = float(score.residuals(found.A).sum()) * (1 - np.exp(-score.penalty))
    for node in range(7):
        rest = [other for other in found.order.tolist() if other != node]
        for q in range(7):
            order = [*rest[:q], node, *rest[q:]]
            A = np.zeros((7, 7), np.uint8)
            for t, child in enumerate(order):
                A[sorted(select_slowly(score, child, set(order[:t]), price)), child] = 1
            assert float(score(A)) <= found.score + 1e-8


@pytest.mark.parametrize("criterion", CRITERIA)
def test_selection_equals_the_definition(criterion):
    score, _ = problem(8, 3, 300, 1, criterion)
    order = np.random.default_rng(0).permutation(8)
    A = CompiledDescent(score).select(order)
    price = score.penalty * 8
    if criterion == "bic-ev":
        price = float(score.residuals(A).sum()) * (1 - np.exp(-score.penalty))
    for t, node in enumerate(order.tolist()):
        assert set(np.flatnonzero(A[:, node]).tolist()) == select_slowly(score, node, set(order[:t].tolist()), price)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(3))
def test_general_search_is_certified_too(criterion, seed):
    score, _ = problem(6, 2, 500, seed, criterion)
    general = Score(None, OnStatistics(score.regression), criterion)
    found = insertion_search(general, np.random.default_rng(seed).permutation(6))
    assert found.certified
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-10)
    assert all(float(score(B)) <= found.score + 1e-8 for B in edge_neighbours(found.A) if acyclic(B))
    # Neither descent can improve on where the other ended.
    fast = insertion_search(score, found.order)
    assert insertion_search(general, fast.order).score == pytest.approx(fast.score, abs=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_giving_up_early_misses_little(criterion):
    """Where a descent that gives up hopeless directions ends, one that tries every place hardly ever finds a move."""
    missed = []
    for seed in range(16):
        score, _ = problem(15, 2, 300, seed, criterion)
        descent = CompiledDescent(score)
        early, _ = descent.descend(np.random.default_rng(seed).permutation(15))
        late, moves = descent.descend(early.order, floor=early.score, full=True, A=early.A)
        assert late.score >= early.score - 1e-12
        missed.append(moves > 0)
    assert sum(missed) <= 2


def test_start_may_be_a_dag_and_is_never_made_worse():
    score, truth = problem(10, 2, 1000, 0, "bic-nv")
    before = truth.copy()
    found = insertion_search(score, truth)
    assert found.score >= float(score(truth))
    assert np.array_equal(truth, before)
    assert is_dag(found.A)
    position = np.argsort(found.order)
    assert all(position[i] < position[j] for i, j in np.argwhere(found.A))


def test_bad_starts_are_named():
    score, _ = problem(4, 1, 50, 0, "ls")
    with pytest.raises(ValueError, match=r"an order of 0\.\.3"):
        insertion_search(score, [0, 1, 2, 2])
    with pytest.raises(ValueError, match="cycle"):
        insertion_search(score, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("criterion", ["bic-nv", "ls"])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_exact_search_equals_enumeration(criterion, d):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((60, d)) @ (np.eye(d) + np.triu(rng.normal(size=(d, d)), 1))
    score = Score(X, "linear", criterion)
    found = exact_search(score)
    assert found.score == pytest.approx(float(score(all_dags(d)).max()), abs=1e-12)
    assert float(score(found.A)) == pytest.approx(found.score, abs=1e-12)
    position = np.argsort(found.order)
    assert all(position[i] < position[j] for i, j in np.argwhere(found.A))


def test_exact_search_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="sum over nodes"):
        exact_search(problem(3, 1, 50, 0, "bic-ev")[0])
    with pytest.raises(ValueError, match="at most max_nodes=12 nodes, got 13"):
        exact_search(problem(13, 1, 50, 0, "bic-nv")[0])


@pytest.mark.parametrize("criterion", ["bic-nv", "ls"])
def test_order_search_reaches_the_exact_optimum(criterion):
    reached = []
    for seed in range(10):
        score, _ = problem(8, 1 + seed % 3, 200, seed, criterion)
        found = over_orders(score, rng=np.random.default_rng(0))
        refined = insertion_search(score, found.A)
        reached.append(refined.score >= exact_search(score).score - 1e-9)
    assert sum(reached) >= 9


def test_order_search_does_not_depend_on_threads():
    X = simulate.linear_gaussian(d=12, k=3, n=200, rng=np.random.default_rng(0)).X
    runs = [over_orders(Score(X, n_jobs=jobs), rng=np.random.default_rng(5), n_steps=4) for jobs in (1, 2, 3)]
    assert all(np.array_equal(run.A, runs[0].A) for run in runs)
    assert all(np.array_equal(run.history["mean_reward"], runs[0].history["mean_reward"]) for run in runs)


def test_order_search_can_be_stopped():
    score, _ = problem(8, 2, 200, 0, "bic-nv")
    rng = np.random.default_rng(0)
    assert over_orders(score, rng=rng, time_budget=1e-9).stopped == "time"
    assert over_orders(score, rng=rng, callback=lambda progress: progress.step == 2).n_iter == 2

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted: the best DAG so far"):
        found = over_orders(score, rng=rng, callback=interrupt)
    assert found.score == pytest.approx(float(score(found.A)))


def test_equal_variance_order_by_definition():
    score, _ = problem(8, 2, 500, 0, "bic-ev")
    taken = []
    for _ in range(8):
        left = [j for j in range(8) if j not in taken]
        taken.append(min(left, key=lambda j: score.local(j, taken)))
    assert equal_variance_order(score).tolist() == taken
    with pytest.raises(ValueError, match="linear"):
        equal_variance_order(Score(None, OnStatistics(score.regression), "ls"))


def test_equal_variance_order_is_causal_on_large_samples():
    score, truth = problem(12, 2, 20_000, 3, "bic-ev")
    assert metrics.order_divergence(equal_variance_order(score), truth) == 0


def exact_score(X, A):
    """BIC-NV by QR of the data in extended precision."""
    n, d = X.shape
    Z = X.astype(np.longdouble)
    Z = Z - Z.mean(axis=0)
    total = np.longdouble(0)
    for j in range(d):
        basis = []
        for u in [*np.flatnonzero(A[:, j]).tolist(), j]:
            v = Z[:, u].copy()
            for _ in range(2):
                for q in basis:
                    v -= (q @ v) * q
            norm = v @ v
            if u == j:
                total += np.log(norm / n)
            else:
                basis.append(v / np.sqrt(norm))
    return float(-(n * total + A.sum() * np.log(n)) / (n * d))


@pytest.mark.parametrize("seed", range(5))
def test_no_gain_is_invented_on_ill_conditioned_data(shared_linear, seed):
    """Standardised dense sets: residual variances of 1e-8 of the variance, condition number 1e9."""
    X, truth = shared_linear("er8_d30", seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = Score(X)
    assert float(score(truth)) == pytest.approx(exact_score(X, truth), abs=1e-9)
    found = insertion_search(score, np.random.default_rng(seed).permutation(30))
    assert found.score == pytest.approx(exact_score(X, found.A), abs=1e-8)


def test_linearly_dependent_columns_end():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 4))
    X = np.column_stack([x, x[:, 0], x[:, 1] + x[:, 2]])
    for criterion in CRITERIA:
        found = insertion_search(Score(X, "linear", criterion), np.arange(6))
        assert np.isfinite(found.score)
        assert is_dag(found.A)


def test_more_columns_than_rows_end():
    score = Score(np.random.default_rng(0).standard_normal((10, 15)))
    assert np.isfinite(insertion_search(score, np.arange(15)).score)


def test_members_of_a_class_score_alike_after_refining():
    """Two starts that end in one Markov equivalence class have the same bic-nv."""
    score, _ = problem(6, 2, 2000, 4, "bic-nv")
    ends = [insertion_search(score, np.array(p)) for p in list(permutations(range(6)))[::90]]
    for a in ends:
        for b in ends:
            if markov_equivalent(a.A, b.A):
                assert a.score == pytest.approx(b.score, abs=1e-10)


def test_linear_statistics_are_not_modified():
    score, _ = problem(6, 2, 100, 0, "bic-nv")
    before = [part.copy() for part in score.statistics]
    insertion_search(score, np.arange(6))
    assert all(np.array_equal(a, b) for a, b in zip(before, score.statistics, strict=True))


@pytest.mark.parametrize("seed", range(40, 60))
def test_a_better_selection_for_the_same_order_is_taken(seed):
    rng = np.random.default_rng(seed)
    score = Score(rng.standard_normal((60, 6)) @ (np.eye(6) + np.triu(rng.normal(size=(6, 6)), 1)))
    found = insertion_search(score, vec2dag(rng.standard_normal(21)))
    again, _ = CompiledDescent(score).descend(found.order)
    assert again.score <= found.score + 1e-9


def remove_slowly(score, order):
    """Backward elimination from all edges of the order, with each node's parents on its own and no shared code."""
    d = len(order)
    A = np.zeros((d, d), np.uint8)
    for t, child in enumerate(order):
        A[order[:t], child] = 1
    while True:
        lower = A.copy()
        for child in range(d):
            trials = []
            for parent in np.flatnonzero(A[:, child]):
                B = A.copy()
                B[parent, child] = 0
                trials.append((float(score(B)), int(parent)))
            if trials and max(trials)[0] > float(score(A)) + resolution(score):
                lower[max(trials)[1], child] = 0
        if np.array_equal(lower, A):
            return A
        A = lower


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(4))
def test_elimination_equals_the_definition_and_its_graphs_are_considered(criterion, seed):
    score, _ = problem(8, 3, 60, seed, criterion)
    order = np.random.default_rng(seed).permutation(8)
    A = remove_slowly(score, order)
    assert np.array_equal(certify._eliminate(score, order).A, A)
    found = insertion_search(score, order)
    assert certify._eliminate(score, found.order).score <= found.score + resolution(score)


def test_elimination_finds_what_growing_misses():
    # 30 nodes with eight parents each, in units that are not told apart by their variances.
    better = []
    for seed in range(10):
        data = simulate.preset("dense-er8", seed)
        score, order = Score(data.X / data.X.std(axis=0)), topological_order(data.A)
        better.append(certify._eliminate(score, order).score - float(score(CompiledDescent(score).select(order))))
    assert max(better) > 0


def test_elimination_is_left_out_where_all_predecessors_are_too_many(rng):
    assert certify._affords_elimination(Score(rng.standard_normal((20, 10))))
    assert not certify._affords_elimination(Score(rng.standard_normal((19, 10))))
    assert not certify._affords_elimination(Score(rng.standard_normal((300, certify.ELIMINATION + 1))))
    assert not certify._affords_elimination(Score(rng.standard_normal((20, 3)), "gp"))
