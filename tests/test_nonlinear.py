"""Gaussian processes and arbitrary regressors as scores: against scikit-learn, closed forms, and slow definitions."""

import time
import warnings

import joblib
import numpy as np
import pytest
from conftest import shared_folder
from oracles import all_dags, graph_score
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from vec2dag.discover import discover
from vec2dag.nonlinear import _climb, _grid

from vec2dag import (
    ALIAS,
    GaussianProcess,
    Linear,
    Moments,
    Score,
    SklearnRegression,
    exact_search,
    insertion_search,
    metrics,
    simulate,
)
from vec2dag.datasets import load_grandag
from vec2dag.moments import one_blas_thread


def sine(n=150, d=4, seed=0):
    """A chain x0 -> x1 -> ...: every column a sine of the one before, plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 1.5 * np.sin(2.0 * X[:, j - 1]) + 0.4 * X[:, j]
    return X - X.mean(axis=0)


def reference(Z, y, alpha=1.0, bounds=(1.0, 1e5), restarts=3):
    """Scikit-learn's Gaussian process; restarts, because one climb may end at the upper bound."""
    kernel = RBF(length_scale_bounds=bounds)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        gp = GaussianProcessRegressor(kernel, alpha=alpha, n_restarts_optimizer=restarts, random_state=0).fit(Z, y)
    return gp.kernel_.length_scale, gp.log_marginal_likelihood_value_, float(((y - gp.predict(Z)) ** 2).mean())


# --- Gaussian processes


@pytest.mark.parametrize(
    ("n", "k", "alpha", "bounds"),
    [
        (60, 1, 1.0, (1.0, 1e5)),
        (150, 3, 1.0, (1.0, 1e5)),
        (150, 2, 0.1, (0.05, 100.0)),
        (150, 2, 1e-3, (0.1, 1e5)),
        (500, 2, 1.0, (1.0, 1e5)),
        (500, 2, 1.0, (0.1, 10.0)),
    ],
)
def test_equals_scikit_learn(n, k, alpha, bounds):
    X = sine(n, k + 1, seed=n + k)
    fit = GaussianProcess(alpha=alpha, bounds=bounds).fit(X[:, :k], X[:, k])
    length_scale, likelihood, residual = reference(X[:, :k], X[:, k], alpha, bounds)
    assert fit.length_scale == pytest.approx(length_scale, rel=5e-3)
    assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-2)
    assert fit.residual == pytest.approx(residual, rel=2e-3)


def test_likelihood_and_residual_by_their_definitions():
    X = sine(50, 3)
    gp = GaussianProcess(alpha=0.5, bounds=(0.7, 0.7))
    fit = gp.fit(X[:, :2], X[:, 2])
    squares = ((X[:, None, :2] - X[None, :, :2]) ** 2).sum(axis=-1)
    K = np.exp(-squares / (2 * 0.7**2))
    noisy, y = K + 0.5 * np.eye(50), X[:, 2]
    residual = y - K @ np.linalg.solve(noisy, y)
    assert fit.length_scale == pytest.approx(0.7)
    assert fit.residual == pytest.approx((residual**2).mean(), rel=1e-4)
    by_definition = -0.5 * (y @ np.linalg.solve(noisy, y) + np.linalg.slogdet(2 * np.pi * noisy)[1])
    assert fit.log_likelihood == pytest.approx(by_definition, abs=1e-3)


def test_single_precision_stays_within_a_thousandth(monkeypatch):
    X = sine(600, 4)
    single = GaussianProcess().fit(X[:, :3], X[:, 3])
    monkeypatch.setattr("vec2dag.nonlinear.SINGLE_PRECISION", 0.0)
    double = GaussianProcess().fit(X[:, :3], X[:, 3])
    assert single.residual != double.residual
    assert single.residual == pytest.approx(double.residual, rel=1e-3)


def test_the_higher_of_two_maxima_is_found():
    """A slow trend with a fast wave: the likelihood has a maximum for each."""
    x = np.linspace(-10, 10, 300)
    y = 0.5 * x + 1.2 * np.sin(6 * x) + 0.1 * np.random.default_rng(0).standard_normal(300)
    gp = GaussianProcess(alpha=0.05, bounds=(0.01, 1e4))
    scan = [GaussianProcess(alpha=0.05, bounds=(t, t)).fit(x[:, None], y) for t in np.geomspace(0.01, 1e4, 80)]
    assert gp.fit(x[:, None], y).log_likelihood >= max(fit.log_likelihood for fit in scan) - 1e-3


def test_offset_and_no_parents():
    X = sine()
    n = len(X)
    plain, default = GaussianProcess(offset=0.0).bind(X), GaussianProcess().bind(X)
    assert plain.residual(2, []) == pytest.approx(X[:, 2].var())
    for parents in ([], [1], [0, 1]):
        assert default.residual(2, parents) == pytest.approx(plain.residual(2, parents) + 1 / n)


def test_does_not_depend_on_the_place_of_columns_or_rows():
    X = sine(120, 4)
    gp = GaussianProcess().bind(X)
    shifted = GaussianProcess().bind(X + np.array([5.0, -3.0, 100.0, 0.0]))
    backwards = GaussianProcess().bind(X[::-1])
    value = gp.residual(3, [0, 1, 2])
    assert gp.residual(3, [2, 0, 1]) == pytest.approx(value, rel=1e-5)
    assert shifted.residual(3, [0, 1, 2]) == pytest.approx(value, rel=1e-5)
    assert backwards.residual(3, [0, 1, 2]) == pytest.approx(value, rel=1e-5)


def test_median_scale_removes_the_unit_of_parents():
    X = sine(120, 3)
    gp = GaussianProcess(median_scale=True, alpha=1e-3)
    value = gp.fit(X[:, :2], X[:, 2]).residual
    assert gp.fit(1000 * X[:, :2], X[:, 2]).residual == pytest.approx(value, rel=1e-6)
    distances = np.sqrt(((X[:, None, :2] - X[None, :, :2]) ** 2).sum(-1))[np.tril_indices(120, -1)]
    scaled = X[:, :2] / np.median(distances)
    assert GaussianProcess(alpha=1e-3).fit(scaled, X[:, 2]).residual == pytest.approx(value, rel=1e-6)
    half_equal = np.where(np.arange(120) < 100, 0.0, X[:, 0])[:, None]
    assert np.isfinite(gp.fit(half_equal, X[:, 2]).residual)


def test_repeated_rows_and_constant_parents_are_no_problem():
    X = np.repeat(sine(40, 2), 3, axis=0)
    assert 0 < GaussianProcess(alpha=1e-6).fit(X[:, :1], X[:, 1]).residual < X[:, 1].var()
    constant = GaussianProcess().fit(np.ones((120, 1)), X[:, 1] - X[:, 1].mean())
    assert constant.residual == pytest.approx(X[:, 1].var(), rel=1e-3)


def test_a_hopeless_alpha_is_named():
    X = np.repeat(sine(40, 2), 3, axis=0)
    with pytest.raises(ValueError, match=r"regression of 'x1' on \['x0'\] failed: .*alpha=1e-300 is too small"):
        Score(X, GaussianProcess(alpha=1e-300, bounds=(1e3, 1e5)), names=["x0", "x1"]).local(1, [0])


def test_many_rows_are_projected():
    X = sine(900, 3)
    exact = GaussianProcess().fit(X[:, :2], X[:, 2])
    approximate = GaussianProcess(max_rows=450, inducing=200).fit(X[:, :2], X[:, 2])
    assert approximate.residual == pytest.approx(exact.residual, rel=0.02)
    # With every row a centre, and the length scale given, the projection is the process itself.
    at = (1.3, 1.3)
    full = GaussianProcess(bounds=at).fit(X[:, :2], X[:, 2])
    projected = GaussianProcess(bounds=at, max_rows=899, inducing=900).fit(X[:, :2], X[:, 2])
    assert projected.residual == pytest.approx(full.residual, rel=1e-4)


@pytest.mark.parametrize("peak", [0.0, 0.3, 2.7, 9.0])
def test_climb_finds_the_maximum(peak):
    def f(t):
        return -((t - peak) ** 2) * (1.0 + 0.1 * np.tanh(t - peak)), 3 * t

    found, height, second = _climb(f, 1.0, 0.0, 9.0)
    assert found == pytest.approx(peak, abs=0.011)
    assert height == pytest.approx(0.0, abs=1e-4)
    assert second == pytest.approx(3 * found, abs=1e-6)


def test_grid_covers_the_bounds():
    for low, high, diameter in ((0.0, 11.5, 2.0), (-4.6, 11.5, 2.0), (0.0, 0.1, 5.0), (1.0, 1.0, 0.0)):
        grid = _grid(low, high, diameter)
        assert (grid[0], grid[-1]) == (low, high)
        assert (np.diff(grid) > 0).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"alpha": "1"}, "alpha"),
        ({"bounds": (2.0, 1.0)}, "bounds"),
        ({"bounds": 5}, "bounds"),
        ({"offset": -1.0}, "offset"),
        ({"max_rows": 1}, "max_rows"),
        ({"inducing": 2.5}, "inducing"),
    ],
)
def test_options_are_checked(options, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        GaussianProcess(**options)


# --- any regressor


def test_linear_regression_is_the_linear_score(rng):
    X = simulate.linear_gaussian(d=5, k=2, n=200, rng=rng).X
    graphs = np.triu(rng.integers(0, 2, (6, 5, 5)), 1).astype(np.uint8)
    general, linear = Score(X, LinearRegression()), Score(X)
    np.testing.assert_allclose(general(graphs), linear(graphs), atol=1e-10)
    assert float(general(graphs[0])) == pytest.approx(graph_score(X, graphs[0], "bic-nv"), abs=1e-10)


@pytest.mark.parametrize("cv", [4, KFold(3)])
def test_cross_fitted_residuals_are_those_of_scikit_learn(cv):
    X = sine()
    tree = DecisionTreeRegressor(random_state=3)
    folds = KFold(4, shuffle=True, random_state=0) if cv == 4 else cv
    predicted = cross_val_predict(tree, X[:, [0, 2]], X[:, 1], cv=folds)
    value = SklearnRegression(tree, cv=cv).bind(X).residual(1, [0, 2])
    assert value == pytest.approx(((X[:, 1] - predicted) ** 2).mean(), rel=1e-12)


def test_cross_fitting_refuses_parents_that_explain_nothing():
    noise = np.random.default_rng(0).standard_normal((200, 2))
    tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
    edge = [[0, 1], [0, 0]]
    fitted, crossed = Score(noise, tree), Score(noise, SklearnRegression(tree, cv=5))
    assert fitted(edge) > fitted(np.zeros((2, 2)))
    assert crossed(edge) < crossed(np.zeros((2, 2)))


def test_fits_are_seeded_and_leave_the_estimator_alone():
    X = sine()
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=5))
    before = repr(forest.get_params())
    one, other = (Score(X, forest).local(2, [0, 1]) for _ in range(2))
    assert one == other
    assert repr(forest.get_params()) == before
    assert not hasattr(forest[-1], "estimators_")
    assert Score(X, SklearnRegression(forest, random_state=1)).local(2, [0, 1]) != one


class Faulty(RegressorMixin, BaseEstimator):
    def __init__(self, fault="raise"):
        self.fault = fault

    def fit(self, X, y):
        if self.fault == "raise":
            raise RuntimeError("out of luck")
        X += 1.0  # a regressor may spoil what it is given
        return self

    def predict(self, X):
        return {"nan": np.full(len(X), np.nan), "short": np.zeros(3), "text": ["a"] * len(X)}[self.fault]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise", "RuntimeError: out of luck"),
        ("nan", "a mean squared residual of nan"),
        ("short", r"predict returned an array of shape \(3,\) for 150 rows"),
        ("text", "could not convert"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_faults_name_the_node_and_its_parents(fault, message, jobs):
    X = sine()
    before = X.copy()
    score = Score(X, Faulty(fault), n_jobs=jobs, names=["p", "q", "r", "s"])
    with pytest.raises(ValueError, match=rf"regression of 'r' on \['p', 'q'\] .*{message}"):
        score.local_batch([(2, [0, 1]), (2, [])])
    np.testing.assert_array_equal(X, before)
    with pytest.raises(ValueError, match=r"regression of '.' on \['.'.*" + message):
        ALIAS(regression=Faulty(fault), n_jobs=jobs, random_state=0).fit(X, names=["p", "q", "r", "s"])


@pytest.mark.parametrize("bad", [LinearRegression, GaussianProcess, 5, object()])
def test_what_is_no_regression_is_refused(bad):
    with pytest.raises(ValueError, match=r"regression=|estimator must be"):
        Score(sine(), bad)


@pytest.mark.parametrize(("node", "parents"), [(0, [7]), (0, [-1]), (9, [1]), (-1, [0])])
@pytest.mark.parametrize("regression", ["linear", "gp"])
def test_nodes_that_do_not_exist_are_named(regression, node, parents):
    with pytest.raises(ValueError, match=r"there is no node -?\d; nodes are 0 to 3"):
        Score(sine(), regression).local(node, parents)


def test_a_regression_beside_a_score_of_its_own_is_refused():
    X = sine()
    for score in (Score(X), lambda A: 0.0):
        with pytest.raises(ValueError, match=r"regression='gp' has no effect"):
            ALIAS(score=score, regression="gp").fit(X)


@pytest.mark.parametrize("prune", ["cam", "ci"])
def test_pruning_that_needs_rows_is_refused_before_the_search(prune):
    with pytest.raises(ValueError, match=f"prune='{prune}' needs the rows"):
        ALIAS(prune=prune, time_budget=1e-9).fit(Moments.of(sine()))


def test_whole_numbers_of_any_kind_are_folds():
    X, tree = sine(), DecisionTreeRegressor(random_state=0)
    one, other = (SklearnRegression(tree, cv=cv).bind(X).residual(1, [0]) for cv in (3, np.int64(3)))
    assert one == other


def test_moments_have_no_rows():
    with pytest.raises(ValueError, match="needs the rows"):
        Score(Moments.of(sine()), "gp")
    with pytest.raises(ValueError, match="needs the rows"):
        ALIAS(regression="gp").fit(Moments.of(sine()))
    with pytest.raises(ValueError, match="holds its own data"):
        Score(sine(), GaussianProcess().bind(sine()))
    with pytest.raises(ValueError, match="X is needed"):
        Score(None, "gp")
    with pytest.raises(ValueError, match=r"reference=True is for regression='linear', got 'gp'"):
        Score(sine(), "gp", reference=True)


def test_tables_are_copied_and_checked():
    X = sine()
    bound = GaussianProcess().bind(X)
    value = bound.residual(1, [0])
    X[:] = 0
    assert bound.residual(1, [0]) == value
    for bad, message in ((np.zeros(3), "shape"), (np.full((3, 2), np.nan), "NaN")):
        with pytest.raises(ValueError, match=message):
            GaussianProcess().bind(bad)


# --- search


@pytest.mark.parametrize("criterion", ["bic-nv", "ls", "bic-ev"])
def test_search_finds_the_best_of_all_graphs(criterion):
    score = Score(sine(450), KernelRidge(kernel="rbf", alpha=0.5, gamma=0.5), criterion)
    found = discover(score, rng=np.random.default_rng(0))
    assert (found.algorithm, found.init, found.certified) == ("orders", "a quarter of the rows", True)
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    best = max(float(score(A)) for A in all_dags(4))
    assert found.score == pytest.approx(best, abs=1e-9)
    if criterion != "bic-ev":
        assert exact_search(score).score == pytest.approx(best, abs=1e-9)


def test_estimator_finds_a_chain_that_lines_cannot_see():
    X, truth = sine(300), np.eye(4, k=1, dtype=np.uint8)
    model = ALIAS(regression="gp", prune=None, random_state=0).fit(X + 10.0)
    assert metrics.shd(truth, model.adjacency_matrix_) == 0
    assert not hasattr(model, "cpdag_")
    assert model.score_ == pytest.approx(float(Score(X, "gp")(model.adjacency_raw_)), abs=1e-9)
    assert model.score(X) == pytest.approx(model.score_, abs=1e-9)
    assert model.history_["fits"][-1] <= model.search_.fits
    assert 0 < model.history_["hit_rate"][-1] < 1


def test_standardize_reaches_the_regression():
    X = sine(120) * [1.0, 50.0, 0.02, 1.0]
    model = ALIAS(regression="gp", prune=None, standardize=True, random_state=0).fit(X)
    assert model.score_ == pytest.approx(float(Score(X / X.std(axis=0), "gp")(model.adjacency_raw_)), abs=1e-9)


def test_same_answer_for_any_number_of_workers():
    X = sine(420)
    one, two = (ALIAS(regression="gp", prune=None, n_jobs=jobs, random_state=1).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.adjacency_raw_, two.adjacency_raw_)
    assert one.score_ == two.score_
    np.testing.assert_array_equal(one.history_["fits"], two.history_["fits"])


def test_other_workers_can_be_chosen():
    """A backend of joblib, here processes, gives the same local scores."""
    X = sine()
    wanted = [(3, [0]), (3, [0, 1]), (2, [0, 1]), (2, [])]
    with joblib.parallel_config("loky", n_jobs=2):
        by_processes = Score(X, "gp", n_jobs=2).local_batch(wanted)
    np.testing.assert_array_equal(by_processes, Score(X, "gp", n_jobs=1).local_batch(wanted))


def test_few_nodes_are_searched_exactly():
    data = simulate.linear_gaussian(d=7, k=2, n=300, rng=np.random.default_rng(2))
    score = Score(data.X, LinearRegression())
    found = discover(score, rng=np.random.default_rng(0))
    assert found.exact
    assert found.fits == score.fits == 7 * 2**6
    assert found.score == pytest.approx(exact_search(Score(data.X)).score, abs=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_fewer_regressions_than_there_are(seed):
    data = simulate.linear_gaussian(d=9, k=2, n=400, rng=np.random.default_rng(seed))
    score = Score(data.X, LinearRegression(), "bic-ev")
    found = discover(score, rng=np.random.default_rng(0))
    assert found.certified
    assert found.fits == score.fits < 9 * 2**8 / 3
    assert found.score >= float(score(data.A)) - 1e-9


@pytest.mark.parametrize("algorithm", ["auto", "conditional", "credit", "ppo"])
def test_a_budget_is_kept_between_fits(algorithm):
    class Slow:
        n, d, names = 100, 12, tuple("abcdefghijkl")

        def residual(self, node, parents):
            time.sleep(0.01)
            return 1.0 / (1 + len(parents))

    begin = time.perf_counter()
    found = discover(Score(None, Slow(), n_jobs=1), rng=np.random.default_rng(0), time_budget=0.3, algorithm=algorithm)
    # The first graph is scored in any case, and so is the last: 12 fits each.
    assert time.perf_counter() - begin < 0.3 + 0.9
    assert found.stopped == "time"
    assert not found.certified


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.2, 0.4])
def test_no_certificate_without_the_time_for_it(budget):
    X = simulate.linear_gaussian(d=8, k=2, n=100, rng=np.random.default_rng(0)).X

    class Slow(LinearRegression):
        def fit(self, X, y):
            time.sleep(0.0005)
            return super().fit(X, y)

    score = Score(X, Slow(), n_jobs=1)
    found = discover(score, rng=np.random.default_rng(0), algorithm="ppo", n_steps=1, time_budget=budget)
    if found.certified:
        better = insertion_search(score, found.A)
        assert better.score <= found.score + score.resolution
    else:
        assert found.stopped == "time"


@pytest.mark.parametrize("at", [1, 5, 12, 20])
def test_an_interrupt_in_any_phase_returns_a_graph(at):
    X, fitted = sine(400), []

    class Interrupting(KernelRidge):
        def fit(self, Z, y):
            fitted.append(len(y))
            if fitted.count(400) == at and len(y) == 400:
                raise KeyboardInterrupt
            return super().fit(Z, y)

    score = Score(X, Interrupting(kernel="rbf"), "bic-ev", n_jobs=1)
    with pytest.warns(UserWarning, match="interrupted"):
        found = discover(score, rng=np.random.default_rng(0))
    assert found.stopped == "interrupted"
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)


def test_what_is_constant_on_a_part_of_the_rows_is_searched_on_all():
    X = sine(400)
    X[:, 2] = 0.0
    X[1::100, 2] = 1.0
    X -= X.mean(axis=0)
    for regression in ("gp", SklearnRegression(LinearRegression(), cv=PredefinedSplit(np.arange(400) % 5))):
        assert discover(Score(X, regression), rng=np.random.default_rng(0)).exact


def test_far_outliers_cost_no_digits():
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, 150)
    y = 2 * np.sin(z) + 0.3 * rng.standard_normal(150)
    near = GaussianProcess(alpha=0.1).fit(z[:, None], y)
    z[0] = 1e11
    far = GaussianProcess(alpha=0.1).fit(z[:, None], y)
    assert far.length_scale == pytest.approx(near.length_scale, rel=0.1)
    assert far.residual == pytest.approx(near.residual, rel=0.1)
    assert np.isfinite(GaussianProcess().fit(z[:, None], 1e20 * y).residual)


def test_workers_of_a_joblib_context_are_those_it_asks_for(monkeypatch):
    asked = []
    monkeypatch.setattr(joblib.Parallel, "__init__", lambda self, n_jobs=None, **_: asked.append(n_jobs))
    monkeypatch.setattr(joblib.Parallel, "__call__", lambda self, tasks: (f(*args) for f, args, _ in tasks))
    with joblib.parallel_config("loky", n_jobs=3):
        Score(sine(), "gp").local(1, [0])
    assert asked == [None]


def test_linear_is_not_cached(rng):
    score = Score(sine())
    score.local(0, [1])
    assert isinstance(score.regression, Linear)
    assert (score.fits, len(score.cache)) == (0, 0)


# --- the shared sets of the paper


def test_residuals_of_the_shared_sets_are_those_of_scikit_learn(rng):
    for number in (1, 4):
        X = load_grandag(shared_folder() / "gp", number).X[:300]
        for _ in range(2):
            node, *parents = rng.permutation(10)[: rng.integers(2, 7)].tolist()
            fit = GaussianProcess().fit(X[:, parents], X[:, node])
            _, likelihood, residual = reference(X[:, parents], X[:, node])
            assert fit.log_likelihood >= likelihood - 0.05
            assert fit.residual == pytest.approx(residual, rel=0.01)
