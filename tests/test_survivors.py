"""Decisions that the rest of the suite would not miss: each test fails if one line of the library is changed."""

import json
import math

import numpy as np
import pytest
from oracles import OnStatistics, sine
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from vec2dag import (
    ALIAS,
    BIC,
    PPO,
    Conditional,
    GaussianProcess,
    LocalSearch,
    Moments,
    Score,
    discover,
    estimator,
    insertion_search,
    is_dag,
    policy_gradient,
    simulate,
)
from vec2dag.cli import main
from vec2dag.edges import as_p_value, removed_edges
from vec2dag.files.tables import write_table
from vec2dag.graph import topological_order
from vec2dag.prune import Verdict
from vec2dag.scores.gp import _squared_distances
from vec2dag.search.budget import Budget
from vec2dag.search.certify import _edge_descent, _eliminate, certify
from vec2dag.search.descent import Candidate, LocalDescent, Walk
from vec2dag.search.gradient import Record
from vec2dag.search.start import find_start, policy_at, sparse_order

EMPTY = np.zeros((3, 3), np.uint8)


def linear_score(d=8, k=1.5, n=200, criterion="bic-nv", seed=0, **options):
    data = simulate.linear_gaussian(d, k, n, np.random.default_rng(seed))
    return Score(data.X, criterion=criterion, **options)


# --- patience -----------------------------------------------------------------------------------------------------


def test_a_search_settles_after_exactly_its_patience():
    found = policy_gradient(
        lambda A: 0.0, d=3, rng=np.random.default_rng(0), algorithm=PPO(patience=7, n_steps=50, batch_size=4)
    )
    assert (found.stopped, found.n_iter) == ("settled", 7)


def test_patience_counts_from_the_last_improvement():
    record = Record(linear_score(3, 1), None, 3, Budget())
    record.offer(EMPTY, 0.0)

    def stop():
        return record.stop(np.zeros(2), 1.0, 0.0, EMPTY)

    assert [stop(), stop()] == [None, None]
    record.offer(EMPTY, 1.0)
    record.offer(EMPTY, 1.0)
    assert [stop(), stop(), stop()] == [None, None, "settled"]


# --- prices under equal variances ---------------------------------------------------------------------------------


def test_selections_at_an_old_price_are_forgotten():
    # The price of an edge in units of residuals follows their total: what was selected before is no longer comparable.
    linear = linear_score(8, 1.5, 60, "bic-ev")
    score = Score(None, OnStatistics(linear.regression), "bic-ev")
    descent, order, none = LocalDescent(score), list(range(8)), np.zeros((8, 8), np.uint8)
    first = descent._choose(order, none)
    before = descent.price
    choices = descent._reprice(order, first, none)
    assert descent.price != pytest.approx(before, rel=0.01)
    A = none.copy()
    for node, choice in choices.items():
        A[sorted(choice.parents), node] = 1
    assert descent._value(choices) == pytest.approx(float(score(A)), abs=1e-10)


# --- Gaussian processes -------------------------------------------------------------------------------------------


@pytest.fixture
def far_rows():
    """Two thirds of the rows around 0 and a third around 1e8, each a few units wide."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, 150)
    far = np.arange(150) % 3 == 0
    return z, np.where(far, 1e8 + z, z), far


def test_distances_among_far_outliers_keep_their_digits(far_rows):
    _, z, far = far_rows
    found = _squared_distances(z[:, None], z[:, None])
    np.testing.assert_allclose(found, cdist(z[:, None], z[:, None], "sqeuclidean"), rtol=1e-12)
    assert found[np.ix_(far, far)].max() < 40


def test_a_process_sees_what_far_outliers_have_in_common(far_rows):
    near, z, far = far_rows
    y = 2 * np.sin(near) + 0.1 * np.random.default_rng(1).standard_normal(150)
    process = GaussianProcess(alpha=0.01, bounds=(1.0, 1.0))
    # Rows this far apart have nothing to say about each other: two processes, side by side.
    apart = [process.fit(near[rows, None], y[rows]).residual * rows.mean() for rows in (far, ~far)]
    assert process.fit(z[:, None], y).residual == pytest.approx(sum(apart), rel=1e-3)


def test_exact_search_is_not_begun_within_a_budget_where_regressions_cost():
    X = sine(40, 3)
    model = ALIAS("bic-nv", "gp", prune=None, random_state=0, n_jobs=1)
    assert model.fit(X).search_.exact
    model.set_params(time_budget=1000.0).fit(X)
    assert not model.search_.exact
    assert model.search_.certified
    # Linear regressions cost nothing: a budget changes nothing.
    assert ALIAS("bic-nv", time_budget=1000.0, random_state=0).fit(X).search_.exact


# --- options of the command line ----------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    """``vec2dag discover`` on a small table: what run.json says."""
    X = sine(60, 7)
    write_table(tmp_path / "table.csv", X, list("abcdefg"))

    def discover(*options):
        fixed = ("--no-refine", "--prune", "none", "--no-standardize", "--seed", "0", "--jobs", "1", "-q")
        assert main(["discover", str(tmp_path / "table.csv"), "-o", str(tmp_path / "out"), *fixed, *options]) == 0
        return json.loads((tmp_path / "out" / "run.json").read_text())

    discover.X = X
    return discover


def same_in_python(X, **settings):
    """The same in Python: the score that the command must reach."""
    fixed = {"refine": False, "prune": None, "standardize": False, "random_state": 0, "n_jobs": 1}
    return ALIAS(**(fixed | settings)).fit(X).score_


PPO_STEPS = ("--algorithm", "ppo", "--n-steps", "4", "--criterion", "bic-nv")


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (("--learning-rate", "0.9"), {"learning_rate": 0.9}),
        (("--batch-size", "3"), {"batch_size": 3}),
        (("--learning-rate", "0.5", "--batch-size", "5"), {"learning_rate": 0.5, "batch_size": 5}),
    ],
)
def test_options_of_the_algorithm_take_effect(run, options, settings):
    plain, changed = run(*PPO_STEPS), run(*PPO_STEPS, *options)
    for name, value in settings.items():
        assert f"{name}={value}" in str(changed["parameters"]["algorithm"])
    assert changed["score"] == same_in_python(run.X, criterion="bic-nv", algorithm=PPO(n_steps=4, **settings))
    assert plain["score"] == same_in_python(run.X, criterion="bic-nv", algorithm=PPO(n_steps=4))
    assert changed["score"] != plain["score"]


def test_the_median_scale_of_gp_takes_effect(run):
    gp = (*PPO_STEPS, "--batch-size", "2", "--regression", "gp", "--gp-alpha", "0.1")
    plain, changed = run(*gp), run(*gp, "--gp-median-scale")
    settings = {"criterion": "bic-nv", "algorithm": PPO(n_steps=4, batch_size=2)}
    scaled = GaussianProcess(alpha=0.1, median_scale=True)
    assert changed["score"] == same_in_python(run.X, regression=scaled, **settings)
    assert not math.isclose(changed["score"], plain["score"], rel_tol=1e-6)


# --- certification ------------------------------------------------------------------------------------------------


class Recorded:
    """A descent that only improves where parents are grown from none."""

    threads = False

    def __init__(self, better):
        self.better, self.warm = better, []

    def descend(self, order, floor=-np.inf, full=False, A=None, thorough=False):
        self.warm.append(A is not None)
        return (self.better if A is None else Candidate(EMPTY, -np.inf, order)), 0


def test_parents_grown_from_none_are_tried_before_a_certificate_is_given():
    score = linear_score(3, 1, 30)
    best = insertion_search(score, np.arange(3))
    descent = Recorded(best)
    found = certify(score, descent, Candidate(EMPTY, float(score(EMPTY)) - 1.0, np.arange(3)), Budget())
    assert found.score >= best.score - 1e-9
    assert descent.warm[:2] == [True, False]


def single_changes(A):
    """All DAGs with one edge more, less, or turned."""
    for i, j in np.ndindex(A.shape):
        if i != j:
            B = A.copy()
            B[i, j], B[j, i] = (1, 0) if not A[i, j] else (0, 1)
            yield B
            B = A.copy()
            B[i, j] ^= 1
            yield B


@pytest.mark.parametrize("seed", range(8))
def test_edge_descents_end_where_no_single_edge_improves_however_parents_are_priced(seed):
    # With exact prices of EBIC a parent costs the less the more there are.
    score = linear_score(7, 2, 25, BIC(gamma=3.0), seed)
    order = np.random.default_rng(seed).permutation(7)
    start = Candidate(np.zeros((7, 7), np.uint8), float(score(np.zeros((7, 7)))), order)
    *_, end = start, *_edge_descent(score, start, Budget())
    best = max(float(score(B)) for B in single_changes(end.A) if is_dag(B))
    assert best <= end.score + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_eliminations_end_where_no_removal_improves_however_parents_are_priced(seed):
    score = linear_score(7, 2, 25, BIC(gamma=3.0), seed)
    end = _eliminate(score, np.random.default_rng(seed).permutation(7))
    for i, j in np.argwhere(end.A):
        less = end.A.copy()
        less[i, j] = 0
        assert float(score(less)) <= end.score + 1e-9


def test_edge_descents_keep_the_order_where_it_still_fits():
    score = linear_score(7, 1.5, 200)
    best = insertion_search(score, np.arange(7)).A
    # the topological order that takes the largest index first: not the one that would be found for the graph alone
    order = 6 - topological_order(best[::-1, ::-1])
    assert not np.array_equal(order, topological_order(best))
    less = best.copy()
    less[tuple(np.argwhere(best)[0])] = 0
    *_, end = _edge_descent(score, Candidate(less, float(score(less)), order), Budget())
    assert np.array_equal(end.A, best)
    assert np.array_equal(end.order, order)


# --- starts -------------------------------------------------------------------------------------------------------


class Blankets:
    """Neighbourhoods as they are given."""

    def __init__(self, selected):
        self.blankets = lambda: selected.astype(np.uint8)


def minimum_degree(near):
    """Minimum-degree elimination, the first of equals, on sets."""
    around = {i: set(np.flatnonzero(row)) for i, row in enumerate(near)}
    last_first = []
    while around:
        node = min(around, key=lambda i: (len(around[i]), i))
        neighbours = around.pop(node)
        for i in neighbours:
            around[i] = (around[i] | neighbours) - {i, node}
        last_first.append(node)
    return last_first[::-1]


@pytest.mark.parametrize("seed", range(10))
def test_the_sparse_order_is_minimum_degree_elimination_with_fill_in(seed):
    selected = np.random.default_rng(seed).random((9, 9)) < 0.2
    np.fill_diagonal(selected, False)
    assert sparse_order(Blankets(selected)).tolist() == minimum_degree(selected | selected.T)


@pytest.mark.parametrize(("d", "probability"), [(10, 0.02), (400, 2 / 400)])
def test_policies_around_a_graph_sample_few_strange_parents(d, probability):
    policy = policy_at(np.zeros((d, d), np.uint8), np.arange(d), sigma=1.0)
    np.testing.assert_allclose(ndtr(policy.mu[d:] / policy.sigma[d:]), probability, rtol=1e-12)


def test_an_order_to_start_from_says_nothing_about_edges():
    start = find_start([2, 0, 1], linear_score(3, 1, 50), greedy=False)
    assert np.argsort(start.policy.mu[:3]).tolist() == [2, 0, 1]
    assert (start.policy.mu[3:] == 0).all()


@pytest.mark.parametrize(("init", "patience"), [("auto", 20), ("random", 50)])
def test_searches_from_a_good_start_settle_sooner(init, patience):
    score = linear_score(6, 1, 500, "bic-ev")
    found = discover(score, rng=np.random.default_rng(0), algorithm=Conditional(), init=init, refine=False)
    improved = np.flatnonzero(np.diff(found.history["best_score"]) > 0) + 1
    assert found.n_iter == (improved[-1] if len(improved) else 0) + patience


# --- iterated local search ----------------------------------------------------------------------------------------


def local(score, **settings):
    return discover(score, rng=np.random.default_rng(0), algorithm=LocalSearch(**settings), refine=False)


@pytest.mark.parametrize(("patience", "steps"), [(13, 13), (None, 60)])
def test_a_chain_that_finds_nothing_ends_after_exactly_its_patience(monkeypatch, patience, steps):
    goals, advance = [], Walk.advance

    def recorded(self, goal=0, **options):
        goals.append(goal)
        return advance(self, goal, **options)

    monkeypatch.setattr(Walk, "advance", recorded)
    # Independent columns and a high price: the first descent ends at the empty graph, and nothing is better.
    X = np.random.default_rng(0).standard_normal((200, 20))
    found = local(Score(X, criterion=BIC(discount=20.0), n_jobs=1), patience=patience, chains=1)
    assert not found.A.any()
    assert max(goals) == steps


def test_chains_agree_up_to_rounding(monkeypatch):
    begun, first = [], LocalSearch._first
    monkeypatch.setattr(LocalSearch, "_first", lambda self, *a: begun.append(1) or first(self, *a))
    for seed in range(12):
        begun.clear()
        local(linear_score(6, 1, 2000, seed=seed, n_jobs=1), agree=4, chains=12)
        # Strong effects: every chain ends in the same class, whose members have the same score but for the last digits.
        assert len(begun) == 4


def test_chains_that_were_cut_short_have_not_settled():
    assert local(linear_score(6, 1, 2000), n_steps=1, agree=2, chains=4).stopped == "steps"
    assert local(linear_score(6, 1, 2000), agree=2, chains=4).stopped == "settled"


@pytest.mark.filterwarnings("ignore:interrupted")
def test_what_chains_reach_before_an_interrupt_is_kept(monkeypatch):
    advance = Walk.advance

    def interrupted(self, goal=0, **options):
        advance(self, goal, **options)
        # the selection of neighbours makes no sweeps; a chain does
        if options.get("sweeps") is None:
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(Walk, "advance", interrupted)
    score = linear_score(6, 1, 2000, n_jobs=1)
    found = local(score)
    assert found.stopped == "interrupted"
    assert found.ready
    assert found.score > float(score(np.zeros((6, 6)))) + 0.1


# --- moments ------------------------------------------------------------------------------------------------------


def test_the_factor_of_moments_is_unique():
    X = np.random.default_rng(0).standard_normal((40, 5)) @ np.triu(np.ones((5, 5)))
    moments = Moments.of(X)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(moments.factor, np.linalg.cholesky(centred.T @ centred).T, atol=1e-12)
    merged = Moments.of(X[:7]).merge(Moments.of(X[7:]))
    np.testing.assert_allclose(merged.factor, moments.factor, atol=1e-12)


def test_standardised_moments_are_those_of_the_standardised_table():
    X = np.random.default_rng(0).standard_normal((40, 4)) * [1, 10, 0.1, 3] + [5, 0, -2, 1e3]
    found = Moments.of(X).standardised()
    expected = Moments.of((X - X.mean(axis=0)) / X.std(axis=0))
    assert found.n == 40
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.factor, expected.factor, atol=1e-10)


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prune", "share"), [("cam", 0.8), ("linear", 1.0), (None, 1.0)])
def test_tests_of_edges_have_a_share_of_the_time(monkeypatch, prune, share):
    asked = []

    def recorded(*args, **options):
        asked.append(options["time_budget"])
        return discover(*args, **options)

    monkeypatch.setattr(estimator, "discover", recorded)
    ALIAS("bic-nv", prune=prune, time_budget=100.0, random_state=0).fit(sine(40, 3))
    # What has passed since the start of fit is gone.
    assert 0 < asked[0] <= 100.0 * share
    assert asked[0] > 100.0 * (share - 0.19)


# --- edges for people ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "text"), [(0.0, "<1e-16"), (1e-300, "<1e-16"), (1e-16, "1e-16"), (0.0123, "0.012")])
def test_p_values_below_what_can_be_told_apart_are_a_bound(value, text):
    assert as_p_value(value) == text


def test_removed_edges_come_nearest_to_staying_first_and_the_rest_is_counted():
    names = [f"c{i}" for i in range(6)]
    p_values = {(0, 1): 0.9, (0, 2): 0.002, (0, 3): 0.5, (0, 4): 0.01, (0, 5): 1e-9}
    verdicts = [Verdict(i, j, p < 0.001, "p-value", p, 0.001) for (i, j), p in p_values.items()]
    heading, *lines = removed_edges(verdicts, names, most=3).split("\n")
    assert "p-value" in heading
    assert [line.split()[2] for line in lines[:3]] == ["c2", "c4", "c3"]
    assert len(lines) == 4
    assert "1 more" in lines[3]
    assert "more" not in removed_edges(verdicts, names, most=4)
    assert removed_edges(verdicts[-1:], names) == ""
