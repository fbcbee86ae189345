"""Baselines of the experiments: gradients against differences, known potentials and values, graphs that are found."""

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from vec2dag import Score, is_dag, metrics, simulate, vec2dag, vec_dim

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.importorskip(
    "experiments", reason="the experiments are beside the package in a checkout, not in a source archive"
)
from experiments.baselines import cosmo, nocurl, rcl_og, vec2dag_adam

# Fewer steps than the defaults: enough for five nodes.
METHODS = {
    "nocurl": (nocurl.nocurl, {}),
    "cosmo": (cosmo.cosmo, {"epochs": 300}),
    "cosmo-mlp": (cosmo.cosmo, {"hidden": 4, "epochs": 60, "learning_rate": 0.01}),
    "rcl-og": (rcl_og.rcl_og, {"steps": 1500, "samples": 100, "hidden": 32}),
    "vec2dag-adam": (vec2dag_adam.vec2dag_adam, {"learning_rate": 1e-2, "max_steps": 3000}),
}
LINEAR = ("nocurl", "cosmo", "rcl-og")
run = pytest.mark.parametrize("name", list(METHODS))


def easy(rng, d=5, n=800):
    """A linear model of ``d`` nodes with unit noises and weights of 0.8 to 2, and its graph."""
    A = np.triu(rng.random((d, d)) < 0.6, k=1).astype(np.uint8)
    order = rng.permutation(d)
    A = A[np.ix_(order, order)]
    W = simulate.uniform_weights(A, rng, 0.8, 2.0)
    return simulate.linear(W, simulate.gaussian(n, d, rng)), A


def differences(function, x, step=1e-6):
    """Central differences of a function of one array."""
    slope = np.empty_like(x)
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += step
        down[k] -= step
        slope[k] = (function(up) - function(down)) / (2 * step)
    return slope


# --- every method ---------------------------------------------------------------------------------------------


@run
def test_gives_a_dag_and_leaves_its_input(name, rng):
    method, settings = METHODS[name]
    X, _ = easy(rng)
    before = X.copy()
    X.flags.writeable = False
    A = method(X, np.random.default_rng(0), **settings)
    assert A.shape == (5, 5)
    assert A.dtype == np.uint8
    assert is_dag(A)
    np.testing.assert_array_equal(X, before)


@run
def test_same_generator_same_graph(name, rng):
    method, settings = METHODS[name]
    X, _ = easy(rng, d=4, n=300)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (method(X, np.random.default_rng(7), **settings) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("name", LINEAR)
def test_finds_an_easy_graph(name):
    method, settings = METHODS[name]
    wrong = []
    for seed in range(3):
        X, A = easy(np.random.default_rng(seed))
        wrong.append(int((method(X, np.random.default_rng(seed), **settings) != A).sum()))
    # COSMO ends after a fixed number of noisy steps: on some processors rounding leaves one edge too many on one graph.
    assert sum(wrong) <= (1 if name == "cosmo" else 0)


@run
def test_independent_columns_have_no_edges(name, rng):
    method, settings = METHODS[name]
    assert not method(rng.standard_normal((1000, 4)), rng, **settings).any()


# --- NOCURL ---------------------------------------------------------------------------------------------------


def test_nocurl_gradient(rng):
    X, _ = easy(rng)
    S, W = np.cov(X.T), rng.normal(size=(5, 5))
    _, gradient = nocurl.penalised_loss(W, S, 3.0)
    expected = differences(lambda w: nocurl.penalised_loss(w, S, 3.0)[0], W)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-5)


def test_nocurl_penalty_is_zero_exactly_for_dags(rng):
    S = np.zeros((5, 5))
    W = np.triu(rng.normal(size=(5, 5)), k=1)
    assert nocurl.penalised_loss(W, S, 1.0)[0] == pytest.approx(0.0, abs=1e-12)
    W[4, 0] = 0.5
    assert nocurl.penalised_loss(W, S, 1.0)[0] > 1e-4


def test_nocurl_potential_is_the_projection(rng):
    """Least squares over all potentials of the antisymmetric reachability, and edges go uphill."""
    for _ in range(20):
        d = int(rng.integers(2, 9))
        order = rng.permutation(d)
        W = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.4), k=1)[np.ix_(order, order)]
        p = nocurl.potential(W, 0.0)
        reach = np.linalg.inv(np.eye(d) - 0.5 * (W != 0)) > 1e-12
        Y = (reach.astype(float) - reach.T) / 2
        rows, columns = np.triu_indices(d, k=1)
        grad = np.zeros((len(rows), d))
        grad[np.arange(len(rows)), rows] = -1
        grad[np.arange(len(rows)), columns] = 1
        np.testing.assert_allclose(p, np.linalg.lstsq(grad, Y[rows, columns], rcond=None)[0], atol=1e-12)
        assert (p[np.nonzero(W)[1]] - p[np.nonzero(W)[0]] > 0.9 / d).all()


def test_nocurl_leaves_out_the_smallest_edge_of_a_cycle():
    W = np.array([[0, 2.0, 0], [0, 0, 1.5], [0.4, 0, 0]])
    p = nocurl.potential(W, 0.3)
    assert p[0] < p[1] < p[2]


def test_nocurl_refit_is_regression_on_lower_potentials(rng):
    X, _ = easy(rng)
    X = X - X.mean(axis=0)
    p = np.array([0.0, 0.4, 0.2, 0.2, 0.6])
    W = nocurl.refit(p, X)
    np.testing.assert_array_equal(W != 0, p[:, None] < p)
    residual = X - X @ W
    # Normal equations: residuals are orthogonal to every node of lower potential.
    assert np.abs((X.T @ residual)[p[:, None] < p]).max() < 1e-8 * len(X)


# --- COSMO ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [0, 3])
def test_cosmo_gradients(hidden, rng):
    X, _ = easy(rng, n=50)
    settings = cosmo.Settings(hidden=hidden, l1=0.02, l2=0.03, priority=0.05, shift=0.1)
    weights, p = cosmo.initial(5, hidden, rng), rng.normal(size=5)
    _, by_weights, by_p = cosmo.loss(weights, p, X, 0.7, settings)
    np.testing.assert_allclose(
        by_p, differences(lambda q: cosmo.loss(weights, q, X, 0.7, settings)[0], p), rtol=1e-6, atol=1e-6
    )
    for k, slope in enumerate(by_weights):
        expected = differences(
            lambda w, k=k: cosmo.loss([*weights[:k], w, *weights[k + 1 :]], p, X, 0.7, settings)[0], weights[k]
        )
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)


def test_cosmo_orientation_becomes_an_order(rng):
    p = rng.permutation(6) / 10
    np.testing.assert_allclose(cosmo.orientation(p, 1e-4, 0.01), p[:, None] < p, atol=1e-12)
    S = cosmo.orientation(p, 0.5, 0.0)
    off = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose((S + S.T)[off], 1.0)
    assert not np.diag(S).any()


def test_cosmo_anneals_from_hot_to_the_setting():
    t = np.array([cosmo.annealed(epoch, 50, 0.001) for epoch in range(50)])
    assert t[0] == pytest.approx(cosmo.HOT)
    assert t[-1] == pytest.approx(0.001)
    assert (np.diff(t) < 0).all()


def test_cosmo_settings(rng):
    assert cosmo.MLP.hidden == 10
    with pytest.raises(TypeError, match="colour"):
        cosmo.cosmo(rng.standard_normal((20, 3)), rng, colour="red")


def test_cosmo_mlp_finds_a_nonlinear_edge(rng):
    x = rng.uniform(-3, 3, 600)
    X = np.column_stack([2 * np.tanh(2 * x) + 0.3 * rng.standard_normal(600), x])
    A = cosmo.cosmo(X, rng, hidden=5, epochs=150, learning_rate=0.01)
    np.testing.assert_array_equal(A, [[0, 0], [1, 0]])


# --- RCL-OG ---------------------------------------------------------------------------------------------------


def test_rcl_og_gradient(rng):
    network = rcl_og.Network(4, 6, rng)
    states, actions = (rng.random((8, 4)) < 0.4).astype(float), rng.integers(4, size=8)
    # Both branches of the Huber loss.
    targets = rng.normal(size=8) * 3
    _, gradient = network.gradient(states, actions, targets)

    def loss(theta):
        network.theta = theta
        return network.gradient(states, actions, targets)[0]

    np.testing.assert_allclose(gradient, differences(loss, network.theta.copy()), atol=1e-7)


def test_rcl_og_values_of_states(rng):
    values = np.array([[0.3, -np.inf, 1.2], [-np.inf, -np.inf, -np.inf], [-800.0, -900.0, -np.inf]])
    expected = [0.1 * np.log(np.exp(3.0) + np.exp(12.0)), 0.0, -800.0]
    np.testing.assert_allclose(rcl_og.soft_value(values, 0.1), expected)


def test_rcl_og_draws_with_softmax_probabilities(rng):
    values = np.tile([0.0, 0.1, -np.inf], (20_000, 1))
    share = np.bincount(rcl_og.draw(values, 0.1, rng), minlength=3) / 20_000
    np.testing.assert_allclose(share, [1 / (1 + np.e), np.e / (1 + np.e), 0.0], atol=0.015)


@pytest.mark.parametrize("criterion", ["bic-ev", "bic-nv"])
def test_rcl_og_rewards_of_a_path_sum_to_its_score(criterion, rng):
    X, _ = easy(rng, d=4)
    score = Score(X, criterion=criterion)
    walk, gaps = rcl_og.OrderGraph(score), []
    for order in permutations(range(4)):
        walk.reset()
        total = sum(walk.step(node) for node in order)
        position = np.argsort(order)
        gaps.append(total - score(position[:, None] < position))
        np.testing.assert_array_equal(walk.state, 1.0)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-10)


def test_rcl_og_orders_are_permutations(rng):
    orders = rcl_og.sample_orders(rcl_og.Network(6, 8, rng), 6, 50, 0.1, rng)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(6), (50, 1)))
    assert len(np.unique(orders, axis=0)) > 10


def test_rcl_og_takes_any_score_and_pruning(rng):
    X, _ = easy(rng, d=3)
    score = Score(X, criterion="bic-nv")
    A = rcl_og.rcl_og(X, rng, score=score, prune=lambda X, A: A, steps=200, samples=20, hidden=8)
    assert is_dag(A)
    assert A.sum() == 3


# --- Vec2DAG with Adam ----------------------------------------------------------------------------------------


def test_vec2dag_adam_weights_are_those_of_vec2dag(rng):
    z = rng.standard_normal(vec_dim(5))
    A, _, _ = vec2dag_adam.weights(z, 5)
    # Every edge of the library's graph, with its potential as the weight; negative potentials are weights here.
    positive = np.concatenate([z[:5], np.abs(z[5:])])
    np.testing.assert_array_equal(A != 0, vec2dag(positive))
    np.testing.assert_array_equal(A > 0, vec2dag(z))


def test_vec2dag_adam_gradient(rng):
    X, _ = easy(rng)
    S, z = np.cov(X.T), rng.standard_normal(vec_dim(5))
    _, gradient = vec2dag_adam.loss(z, S, 0.01)
    expected = differences(lambda x: vec2dag_adam.loss(x, S, 0.01)[0], z)
    np.testing.assert_allclose(gradient[5:], expected[5:], rtol=1e-6, atol=1e-7)

    # The potentials: the loss with H replaced by H + (grad p - grad p0), whose slope at p0 is the estimator.
    _, E, H = vec2dag_adam.weights(z, 5)
    grad = z[:5] - z[:5, None]

    def surrogate(p):
        R = np.eye(5) - E * (H + (p - p[:, None]) - grad)
        return np.log(np.sum(R * (S @ R)) / 5) + 0.01 * np.abs(p).sum()

    np.testing.assert_allclose(gradient[:5], differences(surrogate, z[:5]), rtol=1e-6, atol=1e-7)


def test_vec2dag_adam_regresses_when_the_order_is_right(rng):
    """The convex part: with potentials far apart the weights become those of least squares."""
    X, A = easy(rng)
    order = np.argsort(np.argsort([len(np.flatnonzero(np.linalg.inv(np.eye(5) - A)[:, j] > 0.5)) for j in range(5)]))

    class Start:
        def standard_normal(self, m):
            return np.concatenate([1e4 * (order + 1.0), np.zeros(m - 5)])

    found = vec2dag_adam.vec2dag_adam(X, Start(), learning_rate=1e-2, lambda1=0.0, max_steps=5000)
    assert metrics.shd(A, found) == 0


def test_vec2dag_adam_has_the_twelve_settings():
    assert len({tuple(s.values()) for s in vec2dag_adam.SETTINGS}) == 12
