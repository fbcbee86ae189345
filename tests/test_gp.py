"""Gaussian processes as scores: against scikit-learn, closed forms, and slow definitions."""

import warnings

import numpy as np
import pytest
from conftest import shared_folder
from oracles import sine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from vec2dag import ALIAS, DataWarning, GaussianProcess, Score, metrics
from vec2dag._parallel import one_blas_thread
from vec2dag.datasets import load_grandag
from vec2dag.scores.gp import _climb, _grid


def reference(Z, y, alpha=1.0, bounds=(1.0, 1e5), restarts=3):
    """Scikit-learn's Gaussian process; restarts, because one climb may end at the upper bound."""
    kernel = RBF(length_scale_bounds=bounds)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        gp = GaussianProcessRegressor(kernel, alpha=alpha, n_restarts_optimizer=restarts, random_state=0).fit(Z, y)
    return gp.kernel_.length_scale, gp.log_marginal_likelihood_value_, float(((y - gp.predict(Z)) ** 2).mean())


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
    monkeypatch.setattr("vec2dag.scores.gp.SINGLE_PRECISION", 0.0)
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


def test_estimator_finds_a_chain_that_lines_cannot_see():
    X, truth = sine(300), np.eye(4, k=1, dtype=np.uint8)
    model = ALIAS("bic-nv", regression="gp", prune=None, standardize=False, random_state=0).fit(X + 10.0)
    assert metrics.shd(truth, model.adjacency_matrix_) == 0
    assert not hasattr(model, "cpdag_")
    assert model.score_ == pytest.approx(float(Score(X, "gp")(model.adjacency_raw_)), abs=1e-9)
    assert model.history_["fits"][-1] <= model.search_.fits
    assert 0 < model.history_["hit_rate"][-1] < 1


@pytest.mark.parametrize("scale", [1e-3, 1e3, [1.0, 1e-6, 1e6, 30.0]])
def test_units_do_not_matter_unless_asked(scale):
    X = sine(150)
    model = ALIAS(regression="gp", random_state=0).fit(X)
    rescaled = ALIAS(regression="gp", random_state=0).fit(X * scale)
    np.testing.assert_array_equal(model.adjacency_matrix_, rescaled.adjacency_matrix_)
    assert rescaled.score_ == pytest.approx(model.score_, rel=1e-6)
    assert rescaled.standardized_
    assert "columns were divided by their standard deviations" in rescaled.summary()
    assert rescaled.run()["standardized"]


def test_units_are_kept_where_they_are_meant():
    X = sine(100)
    for parameters in ({"criterion": "bic-ev"}, {"standardize": False}):
        model = ALIAS(regression="gp", prune=None, random_state=0, **parameters).fit(X)
        assert not model.standardized_
        assert "columns were divided by their standard deviations" not in model.summary()
    assert not ALIAS(random_state=0).fit(X).standardized_


def test_noise_far_above_the_columns_is_said():
    X = sine(60) * 1e-3
    with pytest.warns(DataWarning, match=r"noise of the Gaussian processes \(alpha=1\) is far above"):
        ALIAS("bic-ev", regression="gp", random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ALIAS(regression="gp", random_state=0).fit(X)


def test_predictions_are_those_of_scikit_learn():
    X = sine(120)
    Z, y, new = X[:80, :2], X[:80, 2], X[80:, :2]
    gp = GaussianProcess()
    kernel = RBF(gp.fit(Z, y).length_scale, "fixed")
    expected = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(Z, y).predict(new)
    np.testing.assert_allclose(gp.forecast(Z, y, new), expected, atol=1e-6)
    np.testing.assert_allclose(gp.forecast(Z[:, :0], y, new[:, :0]), y.mean())
    # With every row an inducing one the projection is the process itself.
    scale = gp.fit(Z, y).length_scale
    projected = GaussianProcess(max_rows=79, inducing=80, bounds=(scale, scale))
    np.testing.assert_allclose(projected.forecast(Z, y, new), expected, atol=1e-3)


def test_standardize_reaches_the_regression():
    X = sine(120) * [1.0, 50.0, 0.02, 1.0]
    model = ALIAS("bic-nv", regression="gp", prune=None, standardize=True, random_state=0).fit(X)
    assert model.score_ == pytest.approx(float(Score(X / X.std(axis=0), "gp")(model.adjacency_raw_)), abs=1e-9)


def test_same_answer_for_any_number_of_workers():
    X = sine(420)
    one, two = (ALIAS(regression="gp", prune=None, n_jobs=jobs, random_state=1).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.adjacency_raw_, two.adjacency_raw_)
    assert one.score_ == two.score_
    np.testing.assert_array_equal(one.history_["fits"], two.history_["fits"])


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
