"""Gaussian processes that learn all they need: against dense algebra, scikit-learn, and what must not matter."""

import warnings

import numpy as np
import pytest
from oracles import sine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from vec2dag import ALIAS, LearnedProcess, Moments, Score, discover, simulate
from vec2dag._parallel import one_blas_thread
from vec2dag._processes import JITTER, inverse_root, kernels
from vec2dag.scores.learned import _kernel, _places, _Rows, _solve


@pytest.fixture
def X(rng):
    x = rng.standard_normal((150, 4))
    x[:, 2] = np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * x[:, 2]
    return x


def test_the_algebra_of_landmarks_is_that_of_the_dense_matrix(X):
    inputs, y, rho = X[:, :2], X[:, 2] - X[:, 2].mean(), 0.2
    centres = inputs[::5]
    solved = _solve(inputs, centres, y, rho)
    C, K = _kernel(inputs, centres), _kernel(centres, centres) + JITTER * np.eye(30)
    Q = C @ np.linalg.solve(K, C.T)
    noisy = Q + rho * np.eye(150)
    quadratic = y @ np.linalg.solve(noisy, y)
    assert solved.quadratic == pytest.approx(quadratic, rel=1e-6)
    assert solved.height == pytest.approx(150 * np.log(quadratic / 150) + np.linalg.slogdet(noisy)[1], rel=1e-6)
    assert solved.freedom == pytest.approx(np.trace(np.linalg.solve(noisy, Q)), rel=1e-6)
    assert solved.left == pytest.approx(((y - Q @ np.linalg.solve(noisy, y)) ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize("noise", [0.3, 1e-2, 1e-4, 0.0])
def test_where_little_is_left_it_is_not_rounding(rng, noise):
    a, e = rng.standard_normal((2, 300))
    fitted = LearnedProcess().fit(a[:, None], a**2 + noise * e)
    # noise = residual + rho b'Kb
    assert fitted.noise >= fitted.residual > 1e-11
    assert fitted.evidence > 1e-6


@pytest.mark.parametrize("m", [1, 2, 50])
def test_inverses_of_roots(rng, m):
    R = rng.standard_normal((m, m + 1))
    A = R @ R.T
    inverse, log_det = inverse_root(A.copy())
    np.testing.assert_allclose(inverse @ A @ inverse.T, np.eye(m), atol=1e-8)
    np.testing.assert_array_equal(inverse, np.tril(inverse))
    assert log_det == pytest.approx(np.linalg.slogdet(A)[1])
    assert np.isnan(inverse_root(A - 1.01 * np.linalg.eigvalsh(A)[-1] * np.eye(m))[1])


def test_kernels_have_twelve_digits(rng):
    P, Q = 3.0 * rng.standard_normal((40, 3)), 3.0 * rng.standard_normal((30, 3))
    out = np.empty((40, 30))
    kernels(P, Q, out)
    squares = ((P[:, None] - Q) ** 2).sum(axis=2)
    assert squares.max() > 80.0
    np.testing.assert_allclose(out, np.exp(np.maximum(-0.5 * squares, -40.0)), rtol=1e-12)


def test_slopes_are_differences(X):
    f, t = _Rows(X[:, :2], X[:, 2], 30).likelihood, np.array([0.1, -0.3, -1.0])
    # Heights are rounded to 1e-9 or so: shorter steps would measure that.
    steps = 2e-4 * np.eye(3)
    differences = [(f(t + step)[0] - f(t - step)[0]) / 4e-4 for step in steps]
    np.testing.assert_allclose(f(t)[1], differences, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_as_likely_as_scikit_learn(rng, k):
    """Its climb, with a constant and white noise, on standardised columns; ours has a weak prior beside it."""
    Z = rng.standard_normal((60, k))
    y = np.sin(2 * Z[:, 0]) + Z[:, -1] + 0.2 * rng.standard_normal(60)
    Z, y = (Z - Z.mean(axis=0)) / Z.std(axis=0), (y - y.mean()) / y.std()
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(np.ones(k), (1e-2, 1e4)) + WhiteKernel(0.3, (1e-6, 10))
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=0).fit(Z, y)
    ours = LearnedProcess().fit(Z, y)
    likelihood = -0.5 * 60 * (np.log(2 * np.pi * ours.evidence) + 1.0)
    assert likelihood > theirs.log_marginal_likelihood_value_ - 2.0
    if not ours.ranks:
        assert likelihood < theirs.log_marginal_likelihood_value_ + 0.1
        assert ours.noise == pytest.approx(theirs.kernel_.k2.noise_level, rel=0.5)


def test_noise_and_freedom_are_those_of_the_data(rng):
    x = rng.standard_normal((1000, 2))
    y = np.sin(2 * x[:, 0]) + 0.5 * rng.standard_normal(1000)
    bound = LearnedProcess().bind(np.column_stack([x, y]))
    assert bound.noise(2, [0]) == pytest.approx(0.25, rel=0.1)
    fitted = LearnedProcess().fit(x, y)
    assert fitted.length_scales[1] > 5 * fitted.length_scales[0]
    assert 5 < fitted.freedom < 20
    # A parent that does not matter changes the evidence by less than the price of a parent, one that does by far more.
    gain = 1000 * np.log(bound.residual(2, [0]) / bound.residual(2, [0, 1]))
    assert abs(gain) < np.log(1000) < 100 < 1000 * np.log(bound.residual(2, [1]) / bound.residual(2, [0, 1]))


def test_prices_are_of_one_fit(X):
    Z, y = X[:, :2], X[:, 2]
    fitted = LearnedProcess().fit(Z, y)
    of = {price: LearnedProcess(price).residual(Z, y) / y.var() for price in ("evidence", "freedom", "edges")}
    assert of["edges"] == pytest.approx(fitted.residual)
    assert 150 * np.log(of["freedom"] / of["edges"]) == pytest.approx((fitted.freedom - 2) * np.log(150))
    assert of["edges"] < of["evidence"] == pytest.approx(fitted.evidence)


def test_units_layout_and_places_do_not_matter(X):
    plain = LearnedProcess().bind(X)
    expected = plain.residual(2, [0, 1, 3])
    units = np.array([1e-6, 1e6, 8.0, 3.0])
    other = LearnedProcess().bind(np.asfortranarray(X * units + [0, 1e6, 5, -3]))
    assert other.residual(2, [0, 1, 3]) / 64 == pytest.approx(expected, rel=1e-4)
    assert plain.taken(np.array([3, 2, 0, 1])).residual(1, [0, 2, 3]) == pytest.approx(expected, rel=1e-4)
    assert LearnedProcess().bind(np.asfortranarray(X)).residual(2, [0, 1, 3]) == expected
    assert LearnedProcess().bind(np.asfortranarray(X)).fingerprint() == plain.fingerprint()


def test_forecasts_are_the_fit(X):
    y = X[:, 2]
    bound = LearnedProcess("edges").bind(X)
    inside = bound.forecast(2, [1, 0], X[:, [1, 0]])
    assert ((y - inside) ** 2).mean() == pytest.approx(bound.residual(2, [1, 0]), rel=1e-6)
    far = bound.forecast(2, [0, 1], np.full((2, 2), 1e9))
    assert np.isfinite(far).all()
    assert bound.forecast(0, [], np.zeros((3, 0))) == pytest.approx([X[:, 0].mean()] * 3)


def test_heavy_tails_are_seen_by_their_ranks(rng):
    x = rng.standard_normal(400)
    y = np.sin(2 * x) + 0.2 * rng.standard_normal(400)
    fitted = LearnedProcess().fit(np.exp(3 * x)[:, None], y)
    assert fitted.ranks
    assert fitted.residual * y.var() < 0.06
    forecast = LearnedProcess().bind(np.column_stack([np.exp(3 * x), y])).forecast(1, [0], np.exp([[3.0], [-1.5]]))
    assert forecast == pytest.approx(np.sin([2.0, -1.0]), abs=0.2)


def test_landmarks_reach_the_ends_of_every_parent(rng):
    inputs = rng.standard_normal((500, 3)) ** 3
    for most in (2, 3, 20, 100, 499):
        places = _places(inputs, most)
        assert len(np.unique(places)) == len(places) == most
    for ends in (inputs.argmin(axis=0), inputs.argmax(axis=0)):
        assert set(ends) <= set(_places(inputs, 20))
    np.testing.assert_array_equal(_places(inputs[:10], 20), np.arange(10))


@pytest.mark.parametrize(
    "damage",
    [
        lambda X: np.column_stack([X, X[:, 0]]),
        lambda X: np.column_stack([X, X[:, 0] + 1e-9 * X[:, 3]]),
        lambda X: np.column_stack([X, X[:, 0] > 0]),
        lambda X: np.column_stack([X, np.arange(len(X)) == 77]),
        lambda X: np.column_stack([X, np.where(np.arange(len(X)) == 7, 1e9, X[:, 0])]),
        lambda X: np.column_stack([X, np.round(X[:, 0])])[np.arange(len(X)) // 3],
    ],
)
def test_copies_ties_outliers_and_repeated_rows(X, damage):
    bound = LearnedProcess().bind(damage(X).astype(float))
    for node, parents in ((2, [0, 1, 4]), (2, [4]), (4, [0]), (4, [0, 1, 2, 3])):
        assert 0 < bound.residual(node, parents) < 1.1 * bound.X[:, node].var()
        assert np.isfinite(bound.forecast(node, parents, bound.X[:, parents])).all()


@pytest.mark.parametrize("n", [2, 3, 10, 40])
def test_few_rows(rng, n):
    X = rng.standard_normal((n, 10))
    assert 0 < LearnedProcess().bind(X).residual(0, [1, 2, 3, 4, 5, 6, 7, 8, 9]) < np.inf


def test_many_rows_in_blocks(rng):
    x = rng.standard_normal((10_000, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1] + 0.5 * rng.standard_normal(10_000)
    assert LearnedProcess().bind(np.column_stack([x, y])).noise(2, [0, 1]) == pytest.approx(0.25, rel=0.05)


def test_what_is_refused(X):
    with pytest.raises(ValueError, match="price='free'"):
        LearnedProcess("free").bind(X)
    with pytest.raises(ValueError, match="landmarks must be a whole number of at least 2"):
        LearnedProcess(landmarks=1).bind(X)
    with pytest.raises(ValueError, match="needs the rows of the table"):
        LearnedProcess().bind(Moments.of(X))


def test_the_estimator_finds_a_chain_in_any_units():
    X = sine(200, 4)
    chain = np.eye(4, k=1)
    for units in (1.0, np.array([1e-6, 1.0, 1e6, 1e3])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ALIAS(regression="gp-auto", random_state=0).fit(X * units)
        np.testing.assert_array_equal(model.adjacency_matrix_, chain)
        np.testing.assert_array_equal(model.adjacency_raw_, chain)
        assert not model.standardized_
    assert model.score(X * units) > ALIAS(random_state=0).fit(X * units).score(X * units)


def test_the_same_for_any_number_of_workers(rng):
    data = simulate.simulate(simulate.erdos_renyi(5, 1, rng), simulate.gaussian_process, n=300, rng=rng)
    wanted = [(i, [j for j in range(5) if j != i][:k]) for i in range(5) for k in (1, 2, 4)]
    one, two = (Score(data.X, "gp-auto", n_jobs=jobs).local.batch(wanted) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_regression_that_fails_is_named(X):
    X = np.column_stack([X, np.zeros(len(X))])
    X[0, 4] = 1e-200
    with pytest.raises(ValueError, match=r"the regression of 'x4' on \['x0'\] "):
        Score(X, "gp-auto").local(4, [0])


def test_a_glance_guides_a_search_that_ends_as_high_with_fewer_fits(monkeypatch):
    rng = np.random.default_rng(5)
    data = simulate.simulate(simulate.erdos_renyi(8, 1, rng), simulate.gaussian_process, n=420, rng=rng)
    score, alone = Score(data.X, "gp-auto"), Score(data.X, "gp-auto")
    assert Score(data.X[:399], "gp-auto").approximation is None
    assert Score(data.X, LearnedProcess(landmarks=40)).approximation is None
    assert score.approximation.approximation is None
    guided = discover(score, rng=np.random.default_rng(0))
    monkeypatch.setattr(LearnedProcess, "approximate", lambda *_: None)
    other = discover(alone, rng=np.random.default_rng(0))
    assert guided.score >= max(other.score - 1e-9, float(score(data.A)))
    assert guided.fits < other.fits / 2
    assert guided.certificate.screened


def test_a_glance_tells_the_same_sets_of_parents_apart(rng):
    x = rng.standard_normal((450, 4))
    x[:, 2] = np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * x[:, 2]
    score = Score(x, "gp-auto")
    for local in (score.local, score.approximation.local):
        none, one, both, more = (np.log(local(2, parents)) for parents in ([], [0], [0, 1], [0, 1, 3]))
        assert both < one - 0.2 < none - 0.1
        # Not worth ln n, the price of a parent.
        assert more > both - np.log(450) / 450
