"""From a score to a DAG: choices, budgets, interruption, consistency of what is returned."""

import time

import numpy as np
import pytest
from vec2dag.discover import discover

from vec2dag import Score, exact_search, simulate
from vec2dag import discover as module


def linear(d, k, n, seed, criterion):
    return Score(simulate.linear_gaussian(d=d, k=k, n=n, rng=np.random.default_rng(seed)).X, "linear", criterion)


@pytest.mark.parametrize(
    ("criterion", "refine", "algorithm", "init"),
    [
        ("bic-ev", True, "conditional", "equal-variance order"),
        ("ls", False, "conditional", "equal-variance order"),
        ("bic-nv", True, "orders", "random"),
        ("bic-nv", False, "conditional", "random"),
    ],
)
def test_automatic_choices(criterion, refine, algorithm, init):
    found = discover(linear(6, 1, 200, 0, criterion), rng=np.random.default_rng(0), refine=refine)
    assert (found.algorithm, found.init, found.certified) == (algorithm, init, refine)


def test_callables_are_searched_by_ppo_and_not_refined():
    found = discover(lambda A: -float(A.sum()), d=3, rng=np.random.default_rng(0), n_steps=300)
    assert (found.algorithm, found.certified, found.A.sum()) == ("ppo", False, 0)


@pytest.mark.parametrize("algorithm", ["auto", "conditional", "ppo"])
@pytest.mark.parametrize("criterion", ["bic-nv", "ls"])
def test_small_problems_are_solved_exactly(criterion, algorithm):
    score = linear(7, 2, 100, 3, criterion)
    found = discover(score, rng=np.random.default_rng(0), algorithm=algorithm, n_steps=30)
    assert found.exact
    assert found.score == pytest.approx(exact_search(score).score, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_reported_score_is_the_score_of_the_graph_on_nearly_dependent_columns(seed):
    rng = np.random.default_rng(seed)
    x, e = rng.standard_normal((2, 500))
    score = Score(np.column_stack([x, x + 1e-4 * e, e + 1e-3 * rng.standard_normal(500)]))
    for refine in (True, False):
        found = discover(score, rng=rng, algorithm="conditional", n_steps=100, refine=refine)
        assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    assert found.mode_score == pytest.approx(float(score(found.policy.mode())), abs=1e-12)


def test_budget_ends_the_refinement_too():
    score = linear(40, 4, 300, 0, "bic-ev")
    begin = time.perf_counter()
    found = discover(score, rng=np.random.default_rng(0), time_budget=0.01)
    assert found.stopped == "time"
    assert not found.certified
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    # One descent may be under way when the time is over; this is a bound on losing it, not on speed.
    assert time.perf_counter() - begin < 30


def test_a_callback_that_stops_the_search_stops_everything():
    found = discover(linear(15, 2, 200, 0, "bic-ev"), rng=np.random.default_rng(0), callback=lambda progress: True)
    assert (found.stopped, found.n_iter, found.certified) == ("callback", 1, False)


@pytest.mark.parametrize("where", ["order_search", "certify", "descend_all"])
def test_interruption_while_refining_returns_the_best_so_far(monkeypatch, where):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, where, interrupt)
    score = linear(15, 2, 200, 0, "bic-ev")
    with pytest.warns(UserWarning, match="interrupted while refining"):
        found = discover(score, rng=np.random.default_rng(0))
    assert (found.stopped, found.certified) == ("interrupted", False)
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": -1.0}, "bound must be positive"),
        ({"entropy": np.nan}, "entropy must be a finite number"),
        ({"time_budget": 0.0}, "time_budget must be a positive number"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"algorithm": "ppo", "batch_size": 1}, "batch_size must be at least 2"),
        ({"init": "greedy"}, "init='greedy'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        discover(linear(4, 1, 100, 0, "ls"), rng=np.random.default_rng(0), **options)
