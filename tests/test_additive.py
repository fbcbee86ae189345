"""Additive regressions: against the splines on the rows themselves, and what must not change a residual."""

import warnings

import numpy as np
import pytest

from vec2dag import ALIAS, Additive, Moments, Score, simulate
from vec2dag.scores.splines import Penalised, smooth


@pytest.fixture
def X(rng):
    x = rng.standard_normal((300, 4))
    x[:, 2] += np.sin(2 * x[:, 0]) + x[:, 1] ** 2
    x[:, 3] += np.tanh(x[:, 2])
    return x


@pytest.mark.parametrize("parents", [[0], [1, 0], [3, 0, 1]])
def test_residuals_are_those_of_the_splines_of_the_parents(X, parents):
    """The fit on the rows, with the smoothing that cross-validation chose."""
    smooths = [smooth(X[:, k], 10) for k in sorted(parents)]
    problem = Penalised.of(X[:, 2], smooths)
    Z = np.hstack([s.Z for s in smooths])
    b = problem.solve(problem.smoothing()[0])[2]
    y = (X[:, 2] - X[:, 2].mean()) / (X[:, 2].std() * np.sqrt(len(X)))
    expected = X[:, 2].var() * float(((y - Z @ b) ** 2).sum())
    assert Additive().bind(X).residual(2, parents) == pytest.approx(expected, rel=1e-6)


def test_units_rows_and_columns_do_not_matter(X, rng):
    plain = Additive().bind(X).residual(2, [0, 1])
    units = np.array([1e-6, 1e4, 7.0, 1.0])
    assert Additive().bind(X * units + [0, 1e3, 5, 0]).residual(2, [0, 1]) / 49 == pytest.approx(plain, rel=1e-6)
    assert Additive().bind(X[rng.permutation(300)]).residual(2, [1, 0]) == pytest.approx(plain, rel=1e-6)
    order = np.array([3, 2, 0, 1])
    assert Additive().bind(X).taken(order).residual(1, [2, 3]) == pytest.approx(plain, rel=1e-9)


def test_a_straight_line_costs_what_least_squares_leaves(X):
    """With two basis functions the regression is linear."""
    additive, linear = Additive(n_basis=2).bind(X), Score(X, "linear").regression
    for parents in ([0], [0, 1, 3]):
        assert additive.residual(2, parents) == pytest.approx(linear.residual(2, parents), rel=1e-6)


def test_forecasts_are_the_fit_and_straight_lines_beyond_it(X):
    bound = Additive().bind(X)
    inside = bound.forecast(2, [1, 0], X[:, [1, 0]])
    assert ((X[:, 2] - inside) ** 2).mean() == pytest.approx(bound.residual(2, [0, 1]), rel=1e-3)
    far = bound.forecast(2, [0], np.array([[10.0], [11.0], [12.0]]))
    assert far[2] - far[1] == pytest.approx(far[1] - far[0])
    assert bound.forecast(0, [], np.zeros((3, 0))) == pytest.approx([X[:, 0].mean()] * 3)


def test_columns_of_few_values_and_copies(X):
    table = np.column_stack([X, (X[:, 0] > 0).astype(float), X[:, 0]])
    bound = Additive().bind(table)
    assert 0 < bound.residual(2, [4]) < table[:, 2].var()
    assert bound.residual(2, [0, 5]) == pytest.approx(bound.residual(2, [0]), rel=1e-3)
    assert 0 < bound.residual(5, [0]) < 1e-6 * table[:, 5].var()
    assert np.isfinite(bound.forecast(2, [4], np.array([[0.0], [1.0], [0.5]]))).all()


@pytest.mark.parametrize("n", [5, 12, 40])
def test_few_rows_leave_something(rng, n):
    """As many basis functions as rows allow."""
    X = rng.standard_normal((n, 6))
    assert Additive().bind(X).residual(0, [1, 2, 3, 4, 5][: n // 3]) > 0


def test_what_is_refused(X):
    with pytest.raises(ValueError, match="n_basis must be a whole number of at least 2"):
        Additive(n_basis=1).bind(X)
    with pytest.raises(ValueError, match="price="):
        Additive(price="evidence").bind(X)
    with pytest.raises(ValueError, match="needs the rows of the table"):
        Additive().bind(Moments.of(X))


def test_directions_that_no_linear_score_can_tell(rng):
    """Nonlinear relations with additive noise determine them."""
    data = simulate.simulate(
        simulate.erdos_renyi(6, 1, rng, exact=True), simulate.additive_gaussian_process, n=600, rng=rng
    )
    model = ALIAS(regression="additive", random_state=0).fit(data.X)
    assert not model.free_.any()
    assert not model.standardized_
    np.testing.assert_array_equal(model.adjacency_matrix_, data.A)
    again = ALIAS(regression="additive", random_state=0, n_jobs=1).fit(data.X)
    np.testing.assert_array_equal(again.adjacency_matrix_, model.adjacency_matrix_)
    assert model.score(data.X) > ALIAS(random_state=0).fit(data.X).score(data.X)


def test_a_killed_search_goes_on(X, tmp_path):
    file = tmp_path / "search"
    first = ALIAS(regression="additive", random_state=0, checkpoint=file).fit(X)
    again = ALIAS(regression="additive", random_state=0, checkpoint=file).fit(X)
    assert again.search_.fits == 0
    np.testing.assert_array_equal(first.adjacency_matrix_, again.adjacency_matrix_)


def test_units_are_not_warned_of_where_they_do_not_matter(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ALIAS(regression="additive", prune=None, random_state=0).fit(X * [1e-4, 1, 1, 1e4])


def test_a_price_for_degrees_of_freedom(X):
    """A straight line has one, so that nothing changes; a curve has more, which BIC then charges for."""
    lines, priced = Additive(n_basis=2).bind(X), Additive(n_basis=2, price="freedom").bind(X)
    assert priced.residual(2, [0, 1]) == pytest.approx(lines.residual(2, [0, 1]), rel=1e-6)
    plain, priced = Additive().bind(X), Additive(price="freedom").bind(X)
    charged = 300 * np.log(priced.residual(2, [0, 1]) / plain.residual(2, [0, 1])) / np.log(300) + 2
    assert 5 < charged < 18
    assert priced.noise(2, [0, 1]) == plain.residual(2, [0, 1])
    assert priced.residual(2, []) == plain.residual(2, [])
    assert priced.fingerprint() != plain.fingerprint()
    # Of six columns of noise none is worth its freedom, though GCV bends some of them.
    noise = np.random.default_rng(0).standard_normal((300, 7))
    priced = Additive(price="freedom").bind(noise)
    assert all(np.log(priced.residual(0, [k]) / noise[:, 0].var()) + np.log(300) / 300 > 0 for k in range(1, 7))


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (4, 6), (6, 6), (8, 12)])
def test_parents_that_leave_no_row_for_the_noise_explain_nothing(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    bound = Additive().bind(X)
    n, d = shape
    for k in range(n - 1, d):
        assert bound.residual(0, list(range(1, 1 + k))) == X[:, 0].var()
    if n > 2:
        assert bound.residual(0, list(range(1, n - 1))) < X[:, 0].var()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ALIAS(regression="additive", prune=None, random_state=0).fit(X)
    assert model.adjacency_matrix_.sum(axis=0).max() < n - 1
