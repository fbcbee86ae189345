"""Errors of coefficients and total effects: closed forms, other libraries, and coverage."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import stats

from vec2dag import ALIAS, Moments, cpdag, simulate
from vec2dag._parallel import one_blas_thread
from vec2dag.confidence import Bootstrap, Sample, coefficients, effects, total_effects
from vec2dag.knowledge.constraints import Constraints


@pytest.fixture(autouse=True)
def one_thread():
    """Set once: for tables of a few columns that takes longer than what is done with them."""
    with one_blas_thread():
        yield


CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], np.uint8)
TRIANGLE = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.uint8)


@pytest.fixture
def data(rng):
    return simulate.linear_gaussian(d=7, k=2, n=200, rng=rng)


def test_one_parent_is_simple_regression(rng):
    X = rng.standard_normal((40, 2)) @ [[1.0, 0.7], [0.0, 2.0]] + [5.0, -3.0]
    found, expected = coefficients(X, [[0, 1], [0, 0]]), stats.linregress(*X.T)
    assert found.value[0, 1] == pytest.approx(expected.slope)
    assert found.error[0, 1] == pytest.approx(expected.stderr)
    assert found.p_value[0, 1] == pytest.approx(expected.pvalue)
    width = stats.t.ppf(0.975, 38) * expected.stderr
    assert found.low[0, 1] == pytest.approx(expected.slope - width)
    assert found.high[0, 1] == pytest.approx(expected.slope + width)
    assert found.standardised[0, 1] == pytest.approx(expected.rvalue)


def test_errors_are_those_of_the_normal_equations(data):
    X, A = data.X, data.A
    found = coefficients(X, A)
    for j in range(7):
        parents = np.flatnonzero(A[:, j])
        design = np.column_stack([np.ones(len(X)), X[:, parents]])
        beta, rss, *_ = np.linalg.lstsq(design, X[:, j], rcond=None)
        covariance = rss[0] / (len(X) - len(parents) - 1) * np.linalg.inv(design.T @ design)
        assert found.value[parents, j] == pytest.approx(beta[1:])
        assert found.error[parents, j] == pytest.approx(np.sqrt(np.diagonal(covariance)[1:]))
        assert found.covariances[j] == pytest.approx(covariance[1:, 1:])
    absent = A == 0
    assert not found.value[absent].any()
    assert not found.error[absent].any()


def test_a_table_and_its_moments_say_the_same(data):
    table, moments = (coefficients(X, data.A) for X in (data.X, Moments.of(data.X)))
    assert np.array_equal(table.error, moments.error)


def test_units_change_values_and_not_what_they_say(data, rng):
    units = 10.0 ** rng.uniform(-6, 6, 7)
    plain, scaled = coefficients(data.X, data.A), coefficients(data.X * units, data.A)
    assert scaled.value == pytest.approx(plain.value * units / units[:, None], rel=1e-6)
    for same in ("t", "p_value", "standardised"):
        assert getattr(scaled, same) == pytest.approx(getattr(plain, same), rel=1e-6)
    Z = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    assert plain.standardised == pytest.approx(coefficients(Z, data.A).value)


def test_intervals_cover(rng):
    """Of 600 intervals of each of three coefficients 95% hold the true one, up to four standard errors."""
    W, inside = np.array([[0, 1.5, -0.5], [0, 0, 0.8], [0, 0, 0]]), np.zeros((3, 3))
    for _ in range(600):
        X = rng.standard_normal((15, 3)) @ np.linalg.inv(np.eye(3) - W)
        found = coefficients(X, TRIANGLE)
        inside += (found.low <= W) & (found.high >= W)
    assert np.abs(inside[TRIANGLE == 1] / 600 - 0.95).max() < 4 * np.sqrt(0.95 * 0.05 / 600)


def test_no_error_where_there_is_none(rng):
    X = rng.standard_normal((50, 3))
    X[:, 1] = 2 * X[:, 0]
    A = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert np.isnan(coefficients(X, A).error[:2, 2]).all()
    assert np.isfinite(coefficients(X, A).value).all()
    few = coefficients(rng.standard_normal((3, 3)), TRIANGLE)
    assert np.isnan(few.error[:2, 2]).all()
    assert np.isfinite(few.error[0, 1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[0, 1], [0, 0]],), "A must have shape"),
        (([[0, 1, 0], [1, 0, 0], [0, 0, 0]],), "cycle"),
        ((CHAIN, 1.0), "level must be between 0 and 1"),
    ],
)
def test_bad_coefficients(arguments, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        coefficients(rng.standard_normal((9, 3)), *arguments)


def over_paths(W, i, j):
    """Sum over all directed paths of the products of their coefficients."""
    inner = [k for k in range(len(W)) if k not in (i, j)]
    paths = ((i, *between, j) for m in range(len(W) - 1) for between in permutations(inner, m))
    return sum(np.prod([W[a, b] for a, b in pairwise(path)]) for path in paths)


def test_total_effects_are_sums_over_paths(rng):
    order = rng.permutation(6)
    W = (np.triu(rng.standard_normal((6, 6)), 1) * (rng.random((6, 6)) < 0.6))[np.ix_(order, order)]
    T = total_effects(W)
    assert pytest.approx(np.linalg.inv(np.eye(6) - W)) == T
    for i in range(6):
        for j in range(6):
            if i != j:
                assert T[i, j] == pytest.approx(over_paths(W, i, j))
    assert T[5, 0] == 0 or T[0, 5] == 0


def test_the_error_of_a_chain(rng):
    X = rng.standard_normal((100, 3)) @ np.linalg.inv(np.eye(3) - 0.7 * CHAIN)
    found, W = effects((CHAIN, coefficients(X, CHAIN).value), 0, 2, data=X), coefficients(X, CHAIN)
    a, b = W.value[0, 1], W.value[1, 2]
    assert found.value == pytest.approx(a * b)
    assert found.error == pytest.approx(np.sqrt((a * W.error[1, 2]) ** 2 + (b * W.error[0, 1]) ** 2))
    assert found.low < found.value < found.high


def test_the_effect_of_a_cause_with_all_paths_is_its_slope(rng):
    """In a triangle the total effect of the first on the last is the slope of the regression on it alone."""
    X = rng.standard_normal((2000, 3)) @ np.linalg.inv(np.eye(3) - TRIANGLE)
    found, alone = effects((TRIANGLE, 1.0 * TRIANGLE), 0, 2, data=X), stats.linregress(X[:, 0], X[:, 2])
    assert found.value == pytest.approx(alone.slope)
    assert found.error == pytest.approx(alone.stderr, rel=0.05)


def test_intervals_of_effects_cover(rng):
    W, inside = 0.8 * TRIANGLE, 0
    truth = total_effects(W)[0, 2]
    for _ in range(500):
        X = rng.standard_normal((150, 3)) @ np.linalg.inv(np.eye(3) - W)
        found = effects((TRIANGLE, W), 0, 2, data=X)
        inside += found.low <= truth <= found.high
    assert abs(inside / 500 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 500)


@pytest.mark.filterwarnings("ignore::vec2dag.DataWarning")
def test_effects_of_a_fitted_model(data):
    model = ALIAS("bic-ev", random_state=0).fit(data.X, names=list("abcdefg"))
    i, j = np.argwhere(model.adjacency_matrix_)[0]
    found = effects(model, int(i), "abcdefg"[j])
    assert found.value == pytest.approx(total_effects(model.weights_)[i, j])
    assert found.error > 0
    assert found == effects((model.adjacency_matrix_, model.weights_), i, j, data=data.X)
    with pytest.raises(ValueError, match="data has no effect on the effects of a fitted model"):
        effects(model, int(i), int(j), data=data.X)


def test_there_is_no_effect_without_a_path(rng):
    X = rng.standard_normal((30, 3))
    assert effects((CHAIN, 2.0 * CHAIN), 2, 0) == pytest.approx((0, np.nan, np.nan, np.nan, 0.95, 0), nan_ok=True)
    assert effects((CHAIN, 2.0 * CHAIN), 2, 0, data=X) == (0, 0, 0, 0, 0.95, 0)


def test_a_bootstrap_includes_graphs_without_the_path(rng):
    """Eight of ten samples have a path, with effects 1, ..., 8."""
    edge = np.array([[0, 1]], np.int32)
    samples = [
        Sample(k, edge[: int(k > 1)], np.full(int(k > 1), k - 1.0), np.zeros(int(k > 1), bool), 0.0) for k in range(10)
    ]
    moments = Moments.of(rng.standard_normal((20, 2)), ["a", "b"])
    result = Bootstrap(("a", "b"), samples, "resample", "rows", 10, "done", moments, Constraints.none(["a", "b"]))
    found = effects(result, "a", "b", level=0.8)
    values = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert found[:4] == pytest.approx((3.5, np.std(values, ddof=1), *np.quantile(values, [0.1, 0.9])))
    assert found.share == 0.8
    assert effects(result, "b", "a").share == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((3, 0, 1), "effects are of a Bootstrap"),
        (((CHAIN, CHAIN.T), 0, 1), "W must be 0 where A has no edge"),
        (((CHAIN, np.eye(2)), 0, 1), "same shape"),
        (((CHAIN, CHAIN), 0, 3), "j must be a name or a position from 0 to 2, got 3"),
        (((CHAIN, CHAIN), "x", 1), "i='x' is no column: arrays have no names"),
    ],
)
def test_bad_effects(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        effects(*arguments)


def test_equivalent_graphs_imply_different_effects(rng):
    """The reason why the interval of one graph is not the last word."""
    X = rng.standard_normal((100, 2)) @ [[1.0, 2.0], [0.0, 1.0]]
    forth, back = np.array([[0, 1], [0, 0]], np.uint8), np.array([[0, 0], [1, 0]], np.uint8)
    assert np.array_equal(cpdag(forth), cpdag(back))
    assert effects((forth, forth), 0, 1, data=X).low > 1
    assert effects((back, back), 0, 1, data=X).value == 0
