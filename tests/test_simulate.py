"""Simulators against closed forms: counts, moments, covariances, kernels; and their reproducibility."""

import hashlib
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logit

from vec2dag import is_dag, simulate

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
FORK = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])  # two parents of node 2


def generator(seed=0):
    return np.random.default_rng(seed)


def test_erdos_renyi_expected_edges_and_uniform_order():
    d, k, draws = 8, 2.5, 4000
    graphs = np.array([simulate.erdos_renyi(d, k, generator(seed)) for seed in range(draws)])
    edges = graphs.sum(axis=(1, 2))
    p = 2 * k / (d - 1)
    variance = d * (d - 1) / 2 * p * (1 - p)
    assert edges.mean() == pytest.approx(k * d, abs=4 * np.sqrt(variance / draws))
    assert edges.var() == pytest.approx(variance, rel=0.1)
    # every ordered pair is equally likely, whatever the labels
    frequency = graphs.mean(axis=0)[~np.eye(d, dtype=bool)]
    assert frequency == pytest.approx(p / 2, abs=5 * np.sqrt(p / 2 / draws))
    # and so is every in-degree distribution
    assert graphs.sum(axis=1).mean(axis=0) == pytest.approx(k, abs=0.15)


@settings(deadline=None)  # the first call loads compiled code
@given(st.integers(1, 15), st.floats(0, 1), st.booleans(), st.integers(0, 999))
def test_erdos_renyi_is_a_dag_with_the_exact_count(d, share, exact, seed):
    k = share * (d - 1) / 2
    A = simulate.erdos_renyi(d, k, generator(seed), exact=exact)
    assert A.shape == (d, d)
    assert A.dtype == np.uint8
    assert is_dag(A)
    if exact:
        assert A.sum() == round(k * d)


def test_complete_and_empty_graphs():
    assert simulate.erdos_renyi(6, 2.5, generator()).sum() == 15
    assert simulate.erdos_renyi(6, 0, generator()).sum() == 0


@pytest.mark.parametrize(("d", "k"), [(2, 1), (10, 1), (30, 8), (9, 8)])
@pytest.mark.parametrize("orient", ["random", "attachment"])
def test_scale_free_counts(d, k, orient):
    A = simulate.scale_free(d, k, generator(), orient=orient)
    assert is_dag(A)
    assert A.sum() == k * (d - k)
    degree = (A + A.T).sum(axis=0)
    assert ((A + A.T) <= 1).all()
    assert degree.min() >= 1
    if orient == "attachment":  # the first k nodes have no parents, all others exactly k
        assert sorted(A.sum(axis=0)) == [0] * k + [k] * (d - k)


def test_scale_free_attachment_is_preferential():
    # d = 4, k = 1: three nodes make a path, whose middle has degree 2 of 4, so that the fourth completes a
    # star with probability 1/2; attachment without preference would give 1/3.
    draws = 3000
    stars = [(A + A.T).sum(axis=0).max() == 3 for A in (simulate.scale_free(4, 1, generator(s)) for s in range(draws))]
    assert np.mean(stars) == pytest.approx(1 / 2, abs=4 * np.sqrt(0.25 / draws))


def test_scale_free_labels_and_random_orientation():
    graphs = np.array([simulate.scale_free(6, 2, generator(s)) for s in range(3000)])
    assert graphs.mean(axis=0)[~np.eye(6, dtype=bool)] == pytest.approx(8 / 30, abs=0.04)
    # both ways of directing hubs: the largest in-degrees are as large as the largest out-degrees
    assert graphs.sum(axis=1).max(axis=1).mean() == pytest.approx(graphs.sum(axis=2).max(axis=1).mean(), abs=0.1)


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (2.0, 5.0)])
def test_uniform_weights(low, high):
    A = np.triu(np.ones((150, 150)), k=1)
    W = simulate.uniform_weights(A, generator(), low, high)
    assert ((W != 0) == (A != 0)).all()
    values = W[A != 0]
    assert stats.kstest(np.abs(values), stats.uniform(low, high - low).cdf).pvalue > 0.01
    assert np.mean(values > 0) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(len(values)))
    assert stats.kstest(values[values > 0], stats.uniform(low, high - low).cdf).pvalue > 0.01


NOISES = [
    (simulate.gaussian, stats.norm()),
    (partial(simulate.gaussian, scale=0.3), stats.norm(scale=0.3)),
    (simulate.exponential, stats.expon()),
    (simulate.gumbel, stats.gumbel_r()),
    (simulate.laplace, stats.laplace()),
    (simulate.uniform, stats.uniform(-1, 2)),
    (partial(simulate.exponential, scale=2.0), stats.expon(scale=2)),
    (partial(simulate.gumbel, scale=2.0), stats.gumbel_r(scale=2)),
    (partial(simulate.laplace, scale=2.0), stats.laplace(scale=2)),
    (partial(simulate.uniform, scale=2.0), stats.uniform(-2, 4)),
]


@pytest.mark.parametrize(("noise", "law"), NOISES)
def test_noise_has_the_moments_and_the_law(noise, law):
    n = 60_000
    E = noise(n, 2, generator(1))
    assert E.shape == (n, 2)
    mean, variance, _, kurtosis = (float(value) for value in law.stats("mvsk"))
    assert E.mean(axis=0) == pytest.approx(mean, abs=4 * np.sqrt(variance / n))
    assert E.var(axis=0) == pytest.approx(variance, abs=4 * variance * np.sqrt((kurtosis + 2) / n))
    assert stats.kstest(E[:, 0], law.cdf).pvalue > 0.005
    assert abs(np.corrcoef(E.T)[0, 1]) < 4 / np.sqrt(n)


def test_gaussian_variances_by_column():
    E = simulate.gaussian(40_000, 3, generator(), scale=[1.0, 2.0, 3.0])
    assert E.var(axis=0) == pytest.approx([1, 4, 9], rel=0.05)
    E = simulate.unequal_gaussian(2000, 300, generator(), low=1.0, high=3.0)
    # means over columns of a variance from U(1, 3): mean 2, variance 4/12 plus the sampling part 2 v^2 / n
    assert E.var(axis=0).mean() == pytest.approx(2, abs=0.12)
    assert E.var(axis=0).var() == pytest.approx(4 / 12 + 2 * (4 + 4 / 12) / 2000, rel=0.2)


def test_linear_solves_the_structural_equations(rng):
    W = simulate.uniform_weights(simulate.erdos_renyi(12, 3, rng), rng)
    E = rng.standard_normal((50, 12))
    kept = E.copy(), W.copy()
    X = simulate.linear(W, E)
    np.testing.assert_allclose(X - X @ W, E, atol=1e-9)
    assert (kept[0] == E).all()
    assert (kept[1] == W).all()
    assert simulate.linear(W, np.asfortranarray(E)).tobytes() == X.tobytes()
    assert (kept[0] == E).all()


def test_linear_population_covariance(rng):
    W = np.array([[0, 1.5, 0, -0.7], [0, 0, 0.8, 1.1], [0, 0, 0, -1.3], [0, 0, 0, 0]])
    shuffled = np.ix_(*[rng.permutation(4)] * 2)
    W, scale, n = W[shuffled], np.array([1.0, 0.5, 2.0, 1.5]), 100_000
    data = simulate.simulate(W, noise=partial(simulate.gaussian, scale=scale), n=n, rng=rng)
    inverse = np.linalg.inv(np.eye(4) - W)
    S = inverse.T @ np.diag(scale**2) @ inverse  # X = E (I - W)^-1
    # variance of a sample covariance of normal data: (S_ii S_jj + S_ij^2) / n
    error = np.sqrt((np.outer(np.diag(S), np.diag(S)) + S**2) / n)
    assert (np.abs(np.cov(data.X.T) - S) < 4.5 * error).all()
    assert (data.meta["weights"] == W).all()


def many_children(draws):
    """Two sources and many children of both without noise: every child is a draw of the random function."""
    A = np.zeros((draws + 2, draws + 2))
    A[:2, 2:] = 1
    E = np.zeros((6, draws + 2))
    E[:, :2] = generator(3).normal(size=(6, 2))
    return A, E


def kernel(X):
    return np.exp(-((X[:, None] - X[None, :]) ** 2).sum(axis=-1) / 2)


@pytest.mark.parametrize(
    ("mechanism", "covariance"),
    [
        (simulate.gaussian_process, kernel),
        (simulate.additive_gaussian_process, lambda X: kernel(X[:, :1]) + kernel(X[:, 1:])),
    ],
)
def test_gaussian_process_marginal_covariance(mechanism, covariance):
    A, E = many_children(2000)
    X = mechanism(A, E, generator())
    assert (X[:, :2] == E[:, :2]).all()
    f = X[:, 2:].T
    K = covariance(E[:, :2])
    error = np.sqrt((np.outer(np.diag(K), np.diag(K)) + K**2) / len(f))
    assert (np.abs(f.T @ f / len(f) - K) < 4.5 * error).all()
    assert (np.abs(f.mean(axis=0)) < 4.5 * np.sqrt(np.diag(K) / len(f))).all()


def test_gaussian_process_noise_is_additive():
    E = generator().standard_normal((30, 3))
    silent = E.copy()
    silent[:, 2] = 0
    difference = simulate.gaussian_process(FORK, E, generator(5)) - simulate.gaussian_process(
        FORK, silent, generator(5)
    )
    np.testing.assert_allclose(difference[:, 2], E[:, 2], atol=1e-12)


def test_post_nonlinear_is_the_sigmoid_of_a_process_plus_noise():
    A, E = many_children(2000)
    E[:, 2:] = generator(1).laplace(size=(6, 1))
    X = simulate.post_nonlinear(A, E, generator())
    assert X[:, :2].tolist() == expit(E[:, :2]).tolist()
    f = (logit(X[:, 2:]) - E[:, 2:]).T
    K = kernel(expit(E[:, :2]))
    assert (np.abs(f.T @ f / len(f) - K) < 4.5 * np.sqrt((1 + K**2) / len(f))).all()


def test_post_nonlinear_rescaled():
    E = generator().laplace(size=(60, 3))
    X = simulate.post_nonlinear(FORK, E, generator(), rescale=True)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert np.corrcoef(X[:, 0], expit(E[:, 0]))[0, 1] == pytest.approx(1)


def test_mlp_symmetry_and_moments():
    # sigmoid(-t) = 1 - sigmoid(t) and no biases: f(x) + f(-x) = sum of the outer weights = 2 f(0)
    x = np.array([[0.3, -1.2], [-0.3, 1.2], [0.0, 0.0], [1e9, 1e9]])
    E = np.column_stack([x, np.zeros(4)])
    f = np.array([simulate.mlp(FORK, E, generator(seed))[:, 2] for seed in range(2000)])
    np.testing.assert_allclose(f[:, 0] + f[:, 1], 2 * f[:, 2], atol=1e-9)
    # E w^2 = (0.5^2 + 0.5 * 2 + 2^2) / 3 = 1.75; at 0 every unit gives w / 2, far out w with probability 1/2
    assert f[:, 2].var() == pytest.approx(100 * 1.75 / 4, rel=0.12)
    assert f[:, 3].var() == pytest.approx(100 * 1.75 / 2, rel=0.12)
    assert f.mean(axis=0) == pytest.approx(0, abs=4 * np.sqrt(87.5 / 2000))
    few = np.array([simulate.mlp(FORK, E, generator(seed), hidden=1, low=3, high=3)[2, 2] for seed in range(50)])
    assert set(few) == {-1.5, 1.5}


def test_ancestral_takes_any_function(rng):
    E = rng.standard_normal((20, 3))
    kept = E.copy()
    X = simulate.ancestral(CHAIN, E, rng, lambda parents, _: parents.prod(axis=1) ** 2, link=np.tanh)
    x0 = np.tanh(E[:, 0])
    x1 = np.tanh(x0**2 + E[:, 1])
    np.testing.assert_allclose(X, np.column_stack([x0, x1, np.tanh(x1**2 + E[:, 2])]))
    assert (kept == E).all()


@pytest.mark.parametrize("mechanism", [simulate.gaussian_process, simulate.mlp])
def test_nodes_have_their_own_random_functions(mechanism):
    E = np.tile(generator().standard_normal((40, 1)), 3)
    E[:, 1:] = 0
    X = mechanism(np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]), E, generator())
    assert np.abs(X[:, 1] - X[:, 2]).max() > 0.01
    # the function of node 2 does not depend on whether node 1 drew one
    alone = mechanism(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]), E, generator())
    assert (alone[:, 2] == X[:, 2]).all()


def test_simulate_composes():
    graph = partial(simulate.erdos_renyi, 6, 2)
    data = simulate.simulate(graph, simulate.mlp, simulate.laplace, n=40, rng=generator(), names=tuple("abcdef"))
    assert data.X.shape == (40, 6)
    assert data.names == tuple("abcdef")
    assert data.meta == {"mechanism": "mlp", "noise": "laplace"}
    assert (graph(generator()) == data.A).all()
    with pytest.raises(ValueError, match="cycle"):
        simulate.simulate(CHAIN + CHAIN.T, rng=generator())


def test_linear_gaussian_is_graph_weights_noise():
    data = simulate.linear_gaussian(d=9, k=2, n=30, rng=generator(4), low=2, high=5)
    rng = generator(4)
    A = simulate.erdos_renyi(9, 2, rng)
    W = simulate.uniform_weights(A, rng, 2, 5)
    assert (data.A == A).all()
    assert data.X.tobytes() == simulate.linear(W, rng.standard_normal((30, 9))).tobytes()
    assert data.names == tuple(f"x{i}" for i in range(9))


def test_dataset_validates_and_does_not_compare_arrays():
    X = np.zeros((4, 3))
    data = simulate.Dataset(X.astype(int).tolist(), CHAIN * 0.7)
    assert data.X.dtype == np.float64
    assert data.A.dtype == np.uint8
    assert (data.A == CHAIN).all()
    assert data != simulate.Dataset(X, CHAIN)
    with pytest.raises(AttributeError):
        data.X = X
    for arguments, message in (
        ((X, np.zeros((2, 2))), "X must have shape"),
        ((X, CHAIN, ("a", "b")), "names must have one entry per column"),
        ((X, CHAIN, ("a", "b", "a")), "duplicate column names"),
    ):
        with pytest.raises(ValueError, match=message):
            simulate.Dataset(*arguments)


def test_hide_keeps_the_induced_graph():
    data = simulate.linear_gaussian(8, 2, 20, generator())
    kept_bytes = data.X.tobytes()
    hidden = data.hide(3, generator(1))
    index = [data.names.index(name) for name in hidden.names]
    assert len(index) == 5
    assert sorted([*hidden.names, *hidden.meta["hidden"]]) == sorted(data.names)
    assert (data.X[:, index] == hidden.X).all()
    assert (data.A[np.ix_(index, index)] == hidden.A).all()
    assert (hidden.meta["weights"] == data.meta["weights"][np.ix_(index, index)]).all()
    assert data.X.tobytes() == kept_bytes
    assert "hidden" not in data.meta
    # every variable is hidden equally often
    counts = np.zeros(8)
    for seed in range(2000):
        counts[[data.names.index(name) for name in data.hide(3, generator(seed)).meta["hidden"]]] += 1
    assert counts / 2000 == pytest.approx(3 / 8, abs=4 * np.sqrt(15 / 64 / 2000))


@pytest.mark.parametrize(("variance", "arguments"), [(0.1, {}), (1.0, {"variance": 1.0})])
def test_corrupt_changes_the_fraction_by_the_variance(variance, arguments):
    data = simulate.linear_gaussian(10, 2, 2000, generator())
    before = data.X.copy()
    noisy = data.corrupt(0.3, generator(1), **arguments)
    change = (noisy.X - data.X)[noisy.X != data.X]
    assert len(change) == 6000
    assert change.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / 6000))
    assert change.mean() == pytest.approx(0, abs=4 * np.sqrt(variance / 6000))
    assert (before == data.X).all()
    assert (data.corrupt(0, generator()).X == data.X).all()
    share = (noisy.X != data.X).mean(axis=0)  # spread over all columns
    assert share == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 2000))


def test_standardise():
    data = simulate.linear_gaussian(10, 2, 200, generator())
    flat = data.standardise()
    np.testing.assert_allclose(flat.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(flat.X.std(axis=0), 1)
    assert np.diag(np.corrcoef(flat.X.T, data.X.T)[:10, 10:]) == pytest.approx(1)
    assert flat.meta["standardised"]
    constant = simulate.Dataset(np.column_stack([np.arange(7), np.full(7, 0.1)]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"constant columns cannot be standardised: 'x1'$"):
        constant.standardise()


def digest(data):
    return hashlib.sha256(data.X.tobytes() + data.A.tobytes()).hexdigest()


def test_presets_are_reproducible_and_different():
    names = simulate.presets()
    assert {"dense-er8", "highdim-er2", "gp-er4", "mlp-er4", "pnl-er4", "hidden-er8-k4"} <= set(names)
    first = {name: digest(simulate.preset(name, seed=3)) for name in names}
    assert first == {name: digest(simulate.preset(name, seed=3)) for name in names}
    assert len(set(first.values())) == len(names)
    assert digest(simulate.preset("dense-er8", seed=4)) != first["dense-er8"]


@pytest.mark.parametrize(
    ("name", "n", "d", "k", "low", "high"),
    [
        ("dense-er8", 1000, 30, 8, 0.5, 2),
        ("highdim-er2", 1000, 200, 2, 0.5, 2),
        ("linear-er1-d30", 1000, 30, 1, 2, 5),
        ("samples-er8-d20-n100", 100, 20, 8, 0.5, 2),
        ("noise-gumbel", 1000, 30, 2, 2, 5),
        ("standardised-er2", 1000, 10, 2, 2, 5),
        ("noisy-er8-p5", 1000, 30, 8, 0.5, 2),
        ("hidden-er8-k2", 1000, 30, None, 0.5, 2),
        ("samples-sf8-d30-n500", 500, 30, None, 0.5, 2),
    ],
)
def test_linear_presets_are_what_their_names_say(name, n, d, k, low, high):
    sets = [simulate.preset(name, seed) for seed in range(20)]
    assert {data.X.shape for data in sets} == {(n, d)}
    weights = np.abs(np.concatenate([data.meta["weights"][data.A > 0] for data in sets]))
    assert low <= weights.min() < low + 0.1 * (high - low)
    assert high >= weights.max() > high - 0.1 * (high - low)
    if k:
        p = 2 * k / (d - 1)
        error = np.sqrt(d * (d - 1) / 2 * p * (1 - p) / 20)
        assert np.mean([data.A.sum() for data in sets]) == pytest.approx(k * d, abs=4 * error)
    assert sets[3].meta["preset"] == name
    assert sets[3].meta["seed"] == 3


def test_linear_presets_have_their_noise():
    laws = {"exponential": stats.expon, "gumbel": stats.gumbel_r, "laplace": stats.laplace}
    for name, law in laws.items():
        data = simulate.preset(f"noise-{name}")
        E = data.X - data.X @ data.meta["weights"]
        assert stats.kstest(E.ravel(), law.cdf).pvalue > 0.001
    data = simulate.preset("hidden-er8-k4")
    assert len(data.meta["hidden"]) == 4
    data = simulate.preset("noisy-er8-p10-v1")
    assert (data.meta["corrupted"], data.meta["corruption_variance"]) == (0.1, 1.0)


def test_gaussian_process_preset_has_the_scale_of_the_shared_sets():
    """Sources have variances in (1, 2); f has variance 1 over draws and the other noises 0.04 to 0.08."""
    for seed in range(5):
        data = simulate.preset("gp-er4", seed)
        assert data.X.shape == (1000, 10)
        sources = data.X.var(axis=0)[data.A.sum(axis=0) == 0]
        assert ((sources > 0.85) & (sources < 2.3)).all()
        assert data.X.var(axis=0).min() > 0.04


SCRIPT = """
import hashlib
from vec2dag import simulate
for name in ("dense-er8", "gp-er4", "mlp-er4"):
    data = simulate.preset(name)
    print(hashlib.sha256(data.X.tobytes() + data.A.tobytes()).hexdigest())
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_bytes_do_not_depend_on_the_process_or_its_threads(threads):
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
    }
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [digest(simulate.preset(name)) for name in ("dense-er8", "gp-er4", "mlp-er4")]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: simulate.erdos_renyi(5, 1, 0), ValueError, "rng must be a numpy Generator"),
        (lambda: simulate.erdos_renyi(5, 3, generator()), ValueError, "k must be between 0 and .* got 3"),
        (lambda: simulate.erdos_renyi(0, 0, generator()), ValueError, "d must be a whole number from 1 .* got 0"),
        (lambda: simulate.erdos_renyi(5.5, 1, generator()), ValueError, "d must be a whole number .* got 5.5"),
        (lambda: simulate.scale_free(5, 5, generator()), ValueError, "k must be less than d = 5"),
        (lambda: simulate.scale_free(5, 2, generator(), orient="up"), ValueError, "orient='up' is unknown"),
        (lambda: simulate.uniform_weights(CHAIN, generator(), 2, 1), ValueError, "low <= high .* got 2 and 1"),
        (lambda: simulate.unequal_gaussian(5, 2, generator(), 2, 1), ValueError, "low <= high"),
        (
            lambda: simulate.linear(CHAIN, np.zeros((4, 2))),
            ValueError,
            r"E must have shape \(n, d\) with d = 3",
        ),
        (lambda: simulate.simulate(CHAIN, n=0, rng=generator()), ValueError, "n must be a whole number from 1"),
        (lambda: simulate.preset("no-such"), ValueError, "name='no-such' is unknown; .*dense-er8"),
        (lambda: simulate.preset("dense-er8", -1), ValueError, "seed must be a whole number of at least 0"),
        (lambda: simulate.preset("gp-er4").hide(10, generator()), ValueError, "k must be less than"),
        (
            lambda: simulate.preset("dense-er8").corrupt(1.5, generator()),
            ValueError,
            r"p must be in \[0, 1\]",
        ),
        (lambda: simulate.preset("dense-er8").corrupt(0.1, generator(), -1), ValueError, "variance must be"),
        (lambda: simulate.gaussian(5, 2, 0), ValueError, "rng must be a numpy Generator"),
        (lambda: simulate.laplace(5.0, 2, generator()), ValueError, "n must be a whole number .* got 5.0"),
        (lambda: simulate.uniform(5, 2, generator(), [1, 2, 3]), ValueError, r"scale must be .* got \[1, 2, 3\]"),
        (lambda: simulate.gumbel(5, 2, generator(), -1), ValueError, "scale must be a number from 0 .* got -1"),
        (lambda: simulate.simulate(CHAIN, "linear", rng=generator()), ValueError, "mechanism must be a function"),
        (lambda: simulate.simulate(CHAIN, noise=1, rng=generator()), ValueError, "noise must be a function"),
        (lambda: simulate.mlp(CHAIN, np.ones((4, 3)), generator(), hidden=0), ValueError, "hidden must be"),
        (lambda: simulate.linear(np.eye(3), np.ones((4, 3))), ValueError, "W has self-loops"),
        (lambda: simulate.linear(CHAIN, np.full((4, 3), np.inf)), ValueError, "E must hold finite numbers"),
    ],
)
def test_refusals_name_the_parameter(call, error, message):
    with pytest.raises(error, match=message):
        call()
