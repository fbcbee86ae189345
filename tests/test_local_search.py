"""Iterated local search over orders: selections with exchanges, walks that can be interrupted, chains that agree."""

from dataclasses import replace

import numpy as np
import pytest

from vec2dag import ALIAS, BIC, LocalSearch, Moments, Score, discover, exact_search, is_dag, simulate
from vec2dag.graph import topological_order
from vec2dag.search.descent import CompiledDescent
from vec2dag.search.start import sparse_order

CRITERIA = [BIC(), BIC(gamma=1), BIC(discount=2), "ls"]


def sparse(d, seed, n=300, criterion="bic-nv", k=2, standardised=True):
    X = simulate.linear_gaussian(d=d, k=k, n=n, rng=np.random.default_rng(seed)).X
    return Score(X / X.std(axis=0) if standardised else X, "linear", criterion)


def collinear(rng, n=200, d=9):
    """Columns that are nearly combinations of a few others, as in tables of measurements of the same things."""
    factors = rng.standard_normal((n, 3))
    return factors @ rng.standard_normal((3, d)) + 0.05 * rng.standard_normal((n, d))


def local_search(score, seed=0, **settings):
    return discover(score, rng=np.random.default_rng(seed), algorithm=LocalSearch(**settings), refine=False)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(6))
def test_no_addition_removal_or_exchange_improves_a_selection(criterion, seed):
    rng = np.random.default_rng(seed)
    score = Score(collinear(rng), "linear", criterion)
    order = rng.permutation(score.d)
    A = CompiledDescent(score).select(order)
    best = float(score(A))
    for t, node in enumerate(order):
        allowed, parents = set(order[:t].tolist()), set(np.flatnonzero(A[:, node]).tolist())
        assert parents <= allowed
        others = [parents ^ {j} for j in allowed]
        others += [parents - {i} | {j} for i in parents for j in allowed - parents]
        for changed in others:
            B = A.copy()
            B[:, node] = 0
            B[list(changed), node] = 1
            # Exchanges must explain more by a share of 1e-7 of what is left.
            assert float(score(B)) <= best + 1e-7


@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev", "ls"])
def test_a_walk_is_the_same_however_often_it_pauses(criterion, monkeypatch):
    score = sparse(12, 0, criterion=criterion)
    order = np.random.default_rng(1).permutation(12)
    walks = [CompiledDescent(score).walk(order, seed=3) for _ in range(2)]
    walks[0].quota = 10**9
    assert walks[0].advance(20)
    monkeypatch.setattr(type(walks[1]), "PAUSE", 0.0)
    walks[1].quota = 1
    for step in range(21):
        assert walks[1].advance(step)
    assert np.array_equal(walks[0].counts, walks[1].counts)
    one, other = (walk.candidate() for walk in walks)
    assert one.score == other.score
    assert np.array_equal(one.A, other.A)
    assert np.array_equal(one.order, other.order)


def test_perturbations_never_end_lower(rng):
    score = sparse(25, 1, k=4)
    walk = CompiledDescent(score).walk(rng.permutation(25), seed=0)
    last = -np.inf
    for step in range(0, 60, 5):
        walk.advance(step)
        found = walk.candidate()
        assert is_dag(found.A)
        assert found.score >= last - 1e-9
        assert walk.sums[2] == pytest.approx(found.score, abs=1e-9)
        last = found.score


def test_a_walk_can_start_from_a_graph():
    score = sparse(10, 2)
    found = local_search(score)
    descent = CompiledDescent(score)
    again, moves = descent.descend(topological_order(found.A), A=found.A)
    assert moves == 0
    assert np.array_equal(again.A, found.A)


@pytest.mark.parametrize("criterion", ["bic-nv", "ebic-nv", "ls"])
def test_the_exact_optimum_is_reached(criterion):
    reached = []
    for seed in range(10):
        score = sparse(9, seed, n=200, criterion=criterion, k=1 + seed % 3)
        reached.append(local_search(score).score >= exact_search(score).score - 1e-9)
    assert sum(reached) >= 9


def test_threads_do_not_matter():
    X = simulate.linear_gaussian(d=30, k=3, n=300, rng=np.random.default_rng(3)).X
    found = [ALIAS("bic-nv", random_state=0, n_jobs=n_jobs, prune=None).fit(X) for n_jobs in (1, 2)]
    assert np.array_equal(found[0].adjacency_raw_, found[1].adjacency_raw_)
    assert found[0].score_ == found[1].score_


def test_memory_layout_does_not_matter(rng):
    X = collinear(rng, n=150, d=14)
    other = np.asfortranarray(X)
    one, two = Moments.of(X), Moments.of(other)
    assert np.array_equal(one.factor, two.factor)
    assert np.array_equal(one.mean, two.mean)
    fits = [ALIAS("bic-nv", random_state=0).fit(table) for table in (X, other, X[:, ::-1][:, ::-1])]
    assert all(np.array_equal(fits[0].adjacency_raw_, fit.adjacency_raw_) for fit in fits)


def test_ties_go_to_the_first_column(rng):
    """Columns that are copies explain the same: rounding must not choose among them."""
    x = rng.standard_normal((100, 1))
    X = np.hstack([x, x, x, x + rng.standard_normal((100, 1))])
    for scale in (1.0, 3.0, 1e-3):
        A = CompiledDescent(Score(X * [1, scale, 1 / scale, 1])).select(np.arange(4))
        assert np.flatnonzero(A[:, 3]).tolist() == [0]


def test_the_sparse_order_of_a_tree_needs_no_other_edges():
    rng = np.random.default_rng(0)
    d = 40
    A = np.zeros((d, d), np.uint8)
    for j in range(1, d):
        A[rng.integers(j), j] = 1
    score = Score(_tree_data(A, rng), "linear", "ebic-nv")
    descent = CompiledDescent(score)
    order = sparse_order(descent)
    assert sorted(order.tolist()) == list(range(d))
    skeleton = descent.select(order)
    assert np.array_equal(skeleton | skeleton.T, A | A.T)


def _tree_data(A, rng, n=5000):
    d = len(A)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] += 0.8 * X[:, np.flatnonzero(A[:, j])[0]]
    return X


def test_the_search_ends_when_chains_agree_or_have_been_tried():
    score = sparse(8, 0)
    assert local_search(score).stopped == "settled"
    assert local_search(score, chains=1, patience=3).stopped == "settled"
    one = local_search(score, n_steps=2, chains=1)
    assert (one.stopped, one.n_iter) == ("steps", 1)


def test_a_budget_ends_it_with_a_dag():
    score = sparse(120, 0, n=500, k=4)
    found = discover(score, rng=np.random.default_rng(0), time_budget=0.2)
    assert found.stopped == "time"
    assert is_dag(found.A)
    assert found.score >= float(score(np.zeros((120, 120), np.uint8)))


def test_what_is_given_is_where_it_starts():
    score = sparse(10, 4)
    best = local_search(score)
    again = discover(score, rng=np.random.default_rng(1), algorithm=LocalSearch(n_steps=1, chains=1), init=best.A)
    assert again.init == "given"
    assert again.score >= best.score
    inits = {"random": "random", "auto": "sparse order"}
    assert {init: discover(score, rng=np.random.default_rng(0), init=init).init for init in inits} == inits
    assert discover(score, rng=np.random.default_rng(0), init=best.policy, algorithm="local").init == "given"


def test_rows_bound_the_number_of_parents(rng):
    X = rng.standard_normal((6, 12))
    A = CompiledDescent(Score(X)).select(np.arange(12))
    assert A.sum(axis=0).max() <= 4


def test_other_regressions_are_refused(rng):
    score = Score(rng.standard_normal((30, 3)), "gp")
    with pytest.raises(ValueError, match=r"algorithm='local' needs regression='linear'"):
        discover(score, rng=rng, algorithm="local")


def test_bad_settings_are_named():
    for name in ("n_steps", "patience", "chains", "agree"):
        with pytest.raises(ValueError, match=name):
            replace(LocalSearch(), **{name: 0}).check()
