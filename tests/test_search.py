"""The search: unbiased gradients, known optima, reasons to stop, determinism."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import all_dags, expected_reward
from vec2dag.engines import ALGORITHMS, Settings, WholeGraph
from vec2dag.policy import Adam, GaussianPolicy

from vec2dag import Score, is_dag, metrics, policy_gradient, vec2dag, vec_dim
from vec2dag.prune import prune_linear

WHOLE_GRAPH = ["a2c", "ppo", "reinforce"]
LOCAL = ["conditional", "credit"]


class Plain:
    """An optimiser whose step is the gradient itself, to look at what it is given."""

    def step(self, gradient):
        self.gradient = gradient.copy()
        return np.zeros_like(gradient)


def ascend(policy, optimiser, settings, z, rewards, entropy, rng):
    engine = WholeGraph(None, policy, settings, 1.0, len(z), 10.0, entropy)
    engine.optimiser = optimiser
    engine.ascend(z, rewards, rng)


@pytest.fixture
def small_score(rng):
    x = rng.standard_normal((300, 4))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1] - 2 * x[:, 3]
    return Score(x, "linear", "bic-ev")


def test_gradient_is_unbiased(rng):
    """The mean of the estimator over many samples is the gradient of the enumerated expected reward."""
    d = 3
    mu, sigma = 0.5 * rng.normal(size=6), rng.uniform(0.5, 1.5, 6)
    values = {A.tobytes(): rng.normal() for A in all_dags(d)}
    reward = lambda A: values[A.tobytes()]  # noqa: E731

    exact = np.empty((2, 6))
    for k in range(6):
        for row in range(2):
            j = []
            for h in (1e-3, -1e-3):
                m, ls = mu.copy(), np.log(sigma)
                (m if row == 0 else ls)[k] += h
                j.append(expected_reward(d, m, np.exp(ls), reward))
            exact[row, k] = (j[0] - j[1]) / 2e-3

    policy, plain = GaussianPolicy(mu.copy(), np.log(sigma)), Plain()
    settings = Settings(Adam, 1.0, 1, normalise=False, max_grad_norm=None)
    estimates = []
    for _ in range(4000):
        z = policy.sample(16, rng)
        ascend(policy, plain, settings, z, np.array([reward(A) for A in vec2dag(z)]), 0.0, rng)
        estimates.append(plain.gradient)
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(np.mean(estimates, axis=0) - exact) < 4.5 * error)


def test_first_ppo_epoch_is_a2c_without_clipping(rng):
    """The ratio is 1 at first, so that the clip does not act and all whole-graph gradients agree."""
    z, rewards = rng.normal(size=(8, 6)), rng.normal(size=8)
    seen = []
    for clip in (None, 0.2):
        policy, plain = GaussianPolicy(np.zeros(6), np.zeros(6)), Plain()
        ascend(policy, plain, Settings(Adam, 1.0, 1, clip=clip), z, rewards, 0.0, rng)
        seen.append(plain.gradient)
    assert seen[0] == pytest.approx(seen[1])


def test_clipped_gradient_by_hand(rng):
    """In the second epoch: samples whose ratio has gone past 1 +- clip in the direction of their advantage drop out."""

    class Jump:
        def __init__(self):
            self.seen = []

        def step(self, gradient):
            self.seen.append(gradient.copy())
            move = np.zeros_like(gradient)
            move[0, 0] = 0.6 if len(self.seen) == 1 else 0.0
            return move

    z, rewards = rng.normal(size=(64, 3)), rng.normal(size=64)
    policy, jump = GaussianPolicy(np.zeros(3), np.zeros(3)), Jump()
    settings = Settings(Adam, 1.0, 1, n_epochs=2, clip=0.2, max_grad_norm=None)
    ascend(policy, jump, settings, z, rewards, 0.0, rng)
    advantage = (rewards - rewards.mean()) / rewards.std(ddof=1)
    ratio = np.exp(0.5 * z[:, 0] ** 2 - 0.5 * (z[:, 0] - 0.6) ** 2)
    kept = np.where(advantage > 0, ratio <= 1.2, ratio >= 0.8)
    assert (kept & (advantage > 0)).any()
    assert (~kept & (advantage > 0)).any()
    assert (~kept & (advantage < 0)).any()
    by_mu = (kept * advantage * ratio) @ (z - [0.6, 0, 0]) / 64
    assert jump.seen[1][0] == pytest.approx(by_mu, rel=1e-6)


def test_entropy_pushes_sigma_up_and_the_norm_is_clipped(rng):
    policy, plain = GaussianPolicy(np.zeros(6), np.zeros(6)), Plain()
    settings = Settings(Adam, 1.0, 1, max_grad_norm=0.5)
    ascend(policy, plain, settings, rng.normal(size=(8, 6)), np.zeros(8), 10.0, rng)
    assert np.linalg.norm(plain.gradient) == pytest.approx(0.5, rel=1e-4)
    assert plain.gradient[1] == pytest.approx(np.full(6, 0.5 / np.sqrt(6)), rel=1e-4)


def test_minibatches_cover_the_batch(rng):
    class Count:
        calls = 0

        def step(self, gradient):
            self.calls += 1
            return np.zeros_like(gradient)

    count = Count()
    policy = GaussianPolicy(np.zeros(6), np.zeros(6))
    settings = Settings(Adam, 1.0, 1, n_epochs=3, minibatches=4, clip=0.2)
    ascend(policy, count, settings, rng.normal(size=(16, 6)), rng.normal(size=16), 0.0, rng)
    assert count.calls == 12


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, *LOCAL])
def test_finds_the_exhaustive_optimum(small_score, algorithm, rng):
    if algorithm == "credit":
        small_score = Score(None, small_score.regression, "ls")
    best = small_score(all_dags(4)).max()
    found = policy_gradient(small_score, algorithm=algorithm, rng=rng, n_steps=1500)
    assert found.score == pytest.approx(best, abs=1e-12)
    assert small_score(found.A) == pytest.approx(found.score, abs=1e-12)
    assert is_dag(found.A)


@pytest.mark.parametrize("algorithm", WHOLE_GRAPH)
def test_any_callable_can_be_searched(algorithm, rng):
    target = vec2dag(rng.standard_normal(vec_dim(4)))
    found = policy_gradient(lambda A: -metrics.shd(target, A), d=4, algorithm=algorithm, rng=rng, n_steps=1500)
    assert np.array_equal(found.A, target)
    assert found.score == 0


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, "conditional"])
@pytest.mark.parametrize("seed", range(5))
def test_cold_start_recovers_ten_nodes(shared_linear, algorithm, seed):
    X, truth = shared_linear("er2_d10", seed)
    found = policy_gradient(Score(X, "linear", "bic-ev"), algorithm=algorithm, rng=np.random.default_rng(0))
    assert metrics.shd(truth, prune_linear(X, found.A)) == 0


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, *LOCAL])
def test_same_seed_same_answer_for_any_number_of_threads(algorithm, rng):
    X = rng.standard_normal((100, 25)) @ np.triu(rng.normal(size=(25, 25)))
    runs = [
        policy_gradient(
            Score(X, n_jobs=jobs), algorithm=algorithm, rng=np.random.default_rng(3), n_steps=20, batch_size=64
        )
        for jobs in (1, 2, 3)
    ]
    for run in runs[1:]:
        assert np.array_equal(run.policy.mu, runs[0].policy.mu)
        assert np.array_equal(run.A, runs[0].A)
    assert set(runs[0].history) == {"mean_reward", "max_reward", "best_score", "sigma", "edges", "seconds"}
    assert all(len(column) == 20 for column in runs[0].history.values())


def test_settings_replace_those_of_the_algorithm(small_score, rng):
    several = replace(ALGORITHMS["ppo"], n_epochs=4, minibatches=2, learning_rate=0.02)
    found = policy_gradient(small_score, settings=several, rng=rng, n_steps=1000)
    assert found.score == pytest.approx(small_score(all_dags(4)).max(), abs=1e-12)
    still = policy_gradient(small_score, settings=replace(several, learning_rate=1e-12), rng=rng, n_steps=5)
    assert still.history["sigma"] == pytest.approx(np.ones(5))


def test_reasons_to_stop(small_score):
    def run(**options):
        return policy_gradient(small_score, rng=np.random.default_rng(0), **options)

    assert run(n_steps=5).stopped == "steps"
    assert run(patience=3, n_steps=3000).stopped == "settled"
    assert run(time_budget=1e-9).n_iter == 1
    assert run(time_budget=1e-9).stopped == "time"
    seen = []
    stopped = run(callback=lambda progress: seen.append(progress) or progress.step == 7)
    assert (stopped.stopped, stopped.n_iter, len(seen)) == ("callback", 7, 7)
    assert seen[-1].best_score == stopped.history["best_score"][-1]


def test_interrupt_returns_the_best_so_far(small_score, rng):
    def interrupt(progress):
        if progress.step == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 4 steps"):
        found = policy_gradient(small_score, rng=rng, callback=interrupt)
    assert found.stopped == "interrupted"
    assert found.score == small_score(found.A)


def test_init_is_used_and_not_modified(small_score, rng):
    start = GaussianPolicy(rng.normal(size=vec_dim(4)), np.full(vec_dim(4), -3.0))
    mu = start.mu.copy()
    found = policy_gradient(small_score, rng=rng, init=start, n_steps=3)
    assert np.array_equal(start.mu, mu)
    assert found.init == "given"
    assert found.history["sigma"][0] == pytest.approx(np.exp(-3.0), rel=0.05)
    with pytest.raises(ValueError, match=r"3 coordinates.*4 nodes"):
        policy_gradient(small_score, rng=rng, init=GaussianPolicy(np.zeros(3), np.zeros(3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "sac"}, "algorithm='sac'.*'ppo'"),
        ({"n_steps": 0}, "n_steps must be a whole number of at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"learning_rate": -1.0}, "learning_rate must be positive"),
    ],
)
def test_bad_options_are_named(small_score, rng, options, message):
    with pytest.raises(ValueError, match=message):
        policy_gradient(small_score, rng=rng, **options)


def test_bad_scores_are_named(rng):
    with pytest.raises(ValueError, match="d is needed"):
        policy_gradient(lambda A: 0.0, rng=rng)
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        policy_gradient(lambda A: np.nan, d=3, rng=rng)
