"""From a score to a DAG: choices, starts, budgets, interruption, consistency of what is returned."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from oracles import OnStatistics, all_dags
from sklearn.linear_model import LinearRegression

from vec2dag import A2C, BIC, PPO, Conditional, Orders, Score, discover, exact_search, metrics, simulate
from vec2dag.search import Budget

module = sys.modules["vec2dag.search.discover"]


class Half:
    """An algorithm that does not say all that is asked of one."""

    name, search = "half", None


def linear(d, k, n, seed, criterion):
    return Score(simulate.linear_gaussian(d=d, k=k, n=n, rng=np.random.default_rng(seed)).X, "linear", criterion)


@pytest.mark.parametrize(
    ("criterion", "refine", "algorithm", "init"),
    [
        ("bic-ev", True, "conditional", "equal-variance order"),
        ("ls", False, "conditional", "equal-variance order"),
        ("bic-nv", True, "local", "sparse order"),
        ("bic-nv", False, "conditional", "random"),
    ],
)
def test_automatic_choices(criterion, refine, algorithm, init):
    found = discover(linear(6, 1, 200, 0, criterion), rng=np.random.default_rng(0), refine=refine)
    assert (found.algorithm, found.init, found.certified) == (algorithm, init, refine)


def test_callables_are_searched_by_ppo_and_not_refined():
    target = np.triu(np.ones((3, 3), int), 1)
    found = discover(lambda A: -metrics.shd(target, A), d=3, rng=np.random.default_rng(0))
    assert (found.algorithm, found.certified) == ("ppo", False)
    assert np.array_equal(found.A, target)


@pytest.mark.parametrize("algorithm", ["auto", Conditional(n_steps=30), PPO(n_steps=30), A2C(n_steps=30), Orders()])
@pytest.mark.parametrize("criterion", ["bic-nv", "ls"])
def test_small_problems_are_solved_exactly(criterion, algorithm):
    score = linear(7, 2, 100, 3, criterion)
    found = discover(score, rng=np.random.default_rng(0), algorithm=algorithm)
    assert found.exact
    assert str(found.certificate) == "the best of all DAGs"
    assert found.score == pytest.approx(exact_search(score).score, abs=1e-9)


@pytest.mark.parametrize("init", ["auto", "random"])
def test_every_algorithm_takes_a_given_start_and_stays_what_it_is(init):
    score = linear(5, 2, 200, 1, "bic-nv")
    truth = simulate.linear_gaussian(d=5, k=2, n=200, rng=np.random.default_rng(1)).A
    plain = discover(score, rng=np.random.default_rng(0), init=init)
    for given in (truth, np.arange(5)):
        found = discover(score, rng=np.random.default_rng(0), init=given)
        assert (found.init, found.algorithm) == ("given", plain.algorithm)
        assert found.score == pytest.approx(plain.score, abs=1e-12)


def test_a_given_start_costs_no_more_regressions_than_none():
    """With the conditional gradient it would cost d^2 of them for every sampled graph."""
    data = simulate.linear_gaussian(d=9, k=1, n=200, rng=np.random.default_rng(0))
    fits = []
    for init in ("auto", data.A, np.arange(9)):
        score = Score(None, OnStatistics(Score(data.X).regression))
        fits.append(discover(score, rng=np.random.default_rng(0), init=init).fits)
    assert fits[1] <= fits[0]
    assert fits[2] <= fits[0]


def test_the_search_starts_at_the_given_graph():
    """One batch of one order: only from there is an optimum of this dense graph reached."""
    score = Score(simulate.preset("dense-er8", 0).standardise().X)
    good = discover(score, rng=np.random.default_rng(0), refine=False, algorithm=Orders(n_steps=5))
    short = Orders(n_steps=1, batch_size=1)
    again = discover(score, rng=np.random.default_rng(9), refine=False, algorithm=short, init=good.A)
    assert again.score >= good.score - 1e-12
    elsewhere = discover(score, rng=np.random.default_rng(9), refine=False, algorithm=short)
    assert elsewhere.score < good.score - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_reported_score_is_the_score_of_the_graph_on_nearly_dependent_columns(seed):
    rng = np.random.default_rng(seed)
    x, e = rng.standard_normal((2, 500))
    score = Score(np.column_stack([x, x + 1e-4 * e, e + 1e-3 * rng.standard_normal(500)]))
    for refine in (True, False):
        found = discover(score, rng=rng, algorithm=Conditional(n_steps=100), refine=refine)
        assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    assert found.mode_score == pytest.approx(float(score(found.policy.mode())), abs=1e-12)


@pytest.mark.parametrize("criterion", ["bic-ev", "bic-nv"])
def test_budget_ends_the_refinement_too(criterion, monkeypatch):
    """The search settles at once; then the clock jumps past the end, and no certificate may be given."""
    score = linear(15, 2, 300, 0, criterion)
    budget_module = sys.modules["vec2dag.search.budget"]
    real = budget_module.time.perf_counter
    jump = []
    monkeypatch.setattr(budget_module.time, "perf_counter", lambda: real() + 1e6 * len(jump))
    certify = module.certify

    def late(*arguments):
        jump.append(1)
        return certify(*arguments)

    monkeypatch.setattr(module, "certify", late)
    found = discover(score, rng=np.random.default_rng(0), time_budget=1e5)
    assert jump
    assert found.stopped == "time"
    assert not found.certified
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    jump.clear()
    monkeypatch.setattr(module, "certify", certify)
    assert discover(score, rng=np.random.default_rng(0), time_budget=1e5).certified


def test_a_callback_that_stops_the_search_stops_everything():
    found = discover(linear(15, 2, 200, 0, "bic-ev"), rng=np.random.default_rng(0), callback=lambda progress: True)
    assert (found.stopped, found.n_iter, found.certified) == ("callback", 1, False)


@pytest.mark.parametrize("where", ["_restarts", "certify", "descend_all"])
def test_interruption_while_refining_returns_the_best_so_far(monkeypatch, where):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    score = linear(15, 2, 200, 0, "bic-ev")
    before = discover(score, rng=np.random.default_rng(0), refine=False)
    monkeypatch.setattr(module, where, interrupt)
    with pytest.warns(UserWarning, match="interrupted: the best DAG so far") as caught:
        found = discover(score, rng=np.random.default_rng(0))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (found.stopped, found.certified) == ("interrupted", False)
    assert found.score >= before.score
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)


def test_an_interrupt_of_a_costly_search_keeps_what_it_has(monkeypatch):
    """On the part of the rows, and on all of them: the graph is the best so far, scored on all rows."""
    data = simulate.linear_gaussian(d=8, k=2, n=800, rng=np.random.default_rng(0))

    class Sometimes:
        """Least squares on rows; somebody presses Ctrl-C at the fit with a certain number."""

        def __init__(self, X, counter, at):
            self.X, self.counter, self.at = X, counter, at
            self.n, self.d = X.shape

        def thinned(self, step):
            return Sometimes(self.X[::step], self.counter, self.at)

        def residual(self, node, parents):
            self.counter.append(self.n)
            if len(self.counter) == self.at:
                raise KeyboardInterrupt
            Z = np.column_stack([np.ones(self.n), self.X[:, list(parents)]])
            return float(np.mean((self.X[:, node] - Z @ np.linalg.lstsq(Z, self.X[:, node], rcond=None)[0]) ** 2))

    whole = []
    complete = discover(Score(None, Sometimes(data.X, whole, -1), n_jobs=1), rng=np.random.default_rng(0))
    assert {200, 800} == set(whole), "some regressions on a quarter of the rows, some on all"
    assert complete.init == "a part of the rows"
    first_on_all = whole.index(800)
    for at in (3 * first_on_all // 4, (first_on_all + len(whole)) // 2):
        score = Score(None, Sometimes(data.X, [], at), n_jobs=1)
        with pytest.warns(UserWarning, match="interrupted"):
            found = discover(score, rng=np.random.default_rng(0))
        assert found.stopped == "interrupted"
        assert not found.certified
        assert found.score == pytest.approx(float(Score(data.X)(found.A)), abs=1e-9)
        assert found.score > float(Score(data.X)(np.zeros((8, 8))))


def test_a_costly_search_keeps_its_budget_and_what_it_has_reached():
    """Every regression takes a millisecond, the whole search some hundreds of them."""
    import time

    statistics = Score(simulate.linear_gaussian(d=10, k=2, n=200, rng=np.random.default_rng(0)).X)

    class Slow(OnStatistics):
        def residual(self, node, parents):
            time.sleep(1e-3)
            return super().residual(node, parents)

    score = Score(None, Slow(statistics.regression), n_jobs=1)
    found = discover(score, rng=np.random.default_rng(0), time_budget=0.15)
    assert found.stopped == "time"
    assert not found.certified
    assert 20 < score.local.fits < 400, "it ended early, though not before it had begun"
    assert found.score > float(statistics(np.zeros((10, 10))))
    assert found.score == pytest.approx(float(statistics(found.A)), abs=1e-9)


def test_a_callback_that_stops_on_a_part_of_the_rows_costs_no_descent_on_all():
    data = simulate.linear_gaussian(d=8, k=2, n=800, rng=np.random.default_rng(0))
    score = Score(data.X, LinearRegression())
    found = discover(score, rng=np.random.default_rng(0), callback=lambda progress: True)
    assert (found.stopped, found.init) == ("callback", "a part of the rows")
    assert found.fits <= 8, "those of the graph that is returned"
    assert found.score == pytest.approx(float(score(found.A)))


def test_refinement_keeps_what_it_has_reached_when_time_is_over():
    """An algorithm that brings nothing: single edges then make the graph, and the clock stops them half way."""

    class Nothing:
        name, descends, reports_mean, takes_start = "nothing", True, False, False

        def search(self, score, *, rng, start, budget):
            return replace(Orders(n_steps=1).search(statistics, rng=rng, start=start, budget=Budget()), **EMPTY)

    statistics = Score(simulate.linear_gaussian(d=14, k=2, n=200, rng=np.random.default_rng(0)).X)
    empty = np.zeros((14, 14), np.uint8)
    EMPTY = {"A": empty, "score": float(statistics(empty))}

    class Counted(OnStatistics):
        left = 500

        def residual(self, node, parents):
            Counted.left -= 1
            if Counted.left == 0:
                raise KeyboardInterrupt
            return super().residual(node, parents)

    score = Score(None, Counted(statistics.regression), n_jobs=1)
    with pytest.warns(UserWarning, match="interrupted"):
        found = discover(score, rng=np.random.default_rng(0), algorithm=Nothing())
    assert found.stopped == "interrupted"
    assert found.score > EMPTY["score"]
    assert found.score == pytest.approx(float(statistics(found.A)), abs=1e-9)


def test_the_certificate_says_what_was_checked():
    small = discover(linear(15, 1, 200, 0, "bic-nv"), rng=np.random.default_rng(0)).certificate
    assert (small.exact, small.all_places, small.elimination, small.resolution) == (False, True, True, 1e-9)
    assert str(small) == (
        "no addition, removal or reversal of an edge, no insertion of a column elsewhere in the order with parents "
        "selected step by step (at any place) and no backward elimination along the order was found to improve the "
        "score by more than 1.0e-09"
    )
    wide = discover(linear(101, 1, 150, 0, "bic-ev"), rng=np.random.default_rng(0)).certificate
    assert (wide.all_places, wide.elimination) == (False, False)
    assert "estimate saw hope" in str(wide)


def test_settings_and_criteria_may_be_objects():
    X = simulate.linear_gaussian(d=4, k=1, n=300, rng=np.random.default_rng(0)).X
    score = Score(X, "linear", BIC("equal"))
    found = discover(score, rng=np.random.default_rng(0), algorithm=Conditional())
    assert found.score == pytest.approx(float(score(all_dags(4)).max()), abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_budget": 0.0}, "time_budget must be a positive number"),
        ({"init": "greedy"}, "init='greedy'"),
        ({"algorithm": "sgd"}, "algorithm='sgd' is unknown; allowed: 'auto', 'local', 'orders'"),
        ({"algorithm": PPO}, "is a class: settings are made by calling it"),
        ({"algorithm": Half()}, "has no descends, reports_mean, takes_start"),
        ({"rng": 0}, "rng must be a numpy Generator"),
        ({"algorithm": 3}, "algorithm=3: allowed are 'auto', 'local', 'orders'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        discover(linear(4, 1, 100, 0, "ls"), **({"rng": np.random.default_rng(0)} | options))


def test_prices_do_not_drown_the_links_of_a_table_of_many_sizes():
    """With the price of an edge at 1e26 a sum of costs has no digits for a link of 1.5."""
    X = np.array([[0.0, -3.0], [0.0, 0.0], [1e-2, -6e13]])
    score = Score(X - X.mean(axis=0), LinearRegression(), "bic-ev")
    found = discover(score, rng=np.random.default_rng(0))
    assert np.isfinite(found.score)
    assert found.score == pytest.approx(max(float(score(A)) for A in all_dags(2)), rel=1e-12)
