"""The search: unbiased gradients, known optima, reasons to stop, determinism."""

import numpy as np
import pytest
from oracles import all_dags, expected_reward

from vec2dag import PPO, GaussianPolicy, Score, is_dag, metrics, policy_gradient, simulate, vec2dag, vec_dim
from vec2dag.prune import prune_linear
from vec2dag.search.discover import ALGORITHMS
from vec2dag.search.engines import Update, WholeGraph

WHOLE_GRAPH = ["a2c", "ppo", "reinforce"]
LOCAL = ["conditional", "credit"]


class Plain:
    """An optimiser whose step is the gradient itself, to look at what it is given."""

    def step(self, gradient):
        self.gradient = gradient.copy()
        return np.zeros_like(gradient)


def ascend(policy, optimiser, update, z, rewards, entropy, rng):
    WholeGraph(None, policy, PPO(batch_size=len(z), entropy=entropy), update, optimiser).ascend(z, rewards, rng)


def run(score, algorithm, *, rng, d=None, init=None, time_budget=None, callback=None, **settings):
    """Policy gradient with settings of an algorithm."""
    chosen = ALGORITHMS[algorithm](**settings)
    return policy_gradient(score, rng=rng, d=d, algorithm=chosen, init=init, time_budget=time_budget, callback=callback)


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
    settings = Update()
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
        ascend(policy, plain, Update(clip=clip, normalise=True, max_grad_norm=0.5), z, rewards, 0.0, rng)
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
    settings = Update(n_epochs=2, clip=0.2, normalise=True)
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
    settings = Update(normalise=True, max_grad_norm=0.5)
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
    settings = Update(n_epochs=3, minibatches=4, clip=0.2, normalise=True)
    ascend(policy, count, settings, rng.normal(size=(16, 6)), rng.normal(size=16), 0.0, rng)
    assert count.calls == 12


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, *LOCAL])
def test_finds_the_exhaustive_optimum(small_score, algorithm, rng):
    if algorithm == "credit":
        small_score = Score(None, small_score.regression, "ls")
    best = small_score(all_dags(4)).max()
    found = run(small_score, algorithm, rng=rng, n_steps=1500)
    assert found.score == pytest.approx(best, abs=1e-12)
    assert small_score(found.A) == pytest.approx(found.score, abs=1e-12)
    assert is_dag(found.A)


@pytest.mark.parametrize("algorithm", WHOLE_GRAPH)
def test_any_callable_can_be_searched(algorithm, rng):
    target = vec2dag(rng.standard_normal(vec_dim(4)))
    found = run(lambda A: -metrics.shd(target, A), algorithm, d=4, rng=rng, n_steps=1500)
    assert np.array_equal(found.A, target)
    assert found.score == 0


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, "conditional"])
@pytest.mark.parametrize("seed", range(5))
def test_cold_start_recovers_ten_nodes(algorithm, seed):
    data = simulate.preset("regular-er2-d10", seed)
    found = policy_gradient(Score(data.X, "linear", "bic-ev"), algorithm=algorithm, rng=np.random.default_rng(0))
    assert metrics.shd(data.A, prune_linear(data.X, found.A)) == 0


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, *LOCAL])
def test_same_seed_same_answer_for_any_number_of_threads(algorithm, rng):
    X = rng.standard_normal((100, 25)) @ np.triu(rng.normal(size=(25, 25)))
    runs = [
        run(Score(X, n_jobs=jobs), algorithm, rng=np.random.default_rng(3), n_steps=20, batch_size=64)
        for jobs in (1, 2, 3)
    ]
    for other in runs[1:]:
        assert np.array_equal(other.policy.mu, runs[0].policy.mu)
        assert np.array_equal(other.A, runs[0].A)
    assert set(runs[0].history) == {"mean_reward", "max_reward", "best_score", "sigma", "edges", "seconds"}
    assert all(len(column) == 20 for column in runs[0].history.values())


def test_settings_reach_the_search(small_score, rng):
    several = {"n_epochs": 4, "minibatches": 2}
    found = run(small_score, "ppo", rng=rng, n_steps=1000, learning_rate=0.02, **several)
    assert found.score == pytest.approx(small_score(all_dags(4)).max(), abs=1e-12)
    still = run(small_score, "ppo", rng=rng, n_steps=5, learning_rate=1e-12, **several)
    assert still.history["sigma"] == pytest.approx(np.ones(5))


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, "credit"])
def test_vectors_are_clipped_to_the_bound(algorithm, small_score):
    """Means far outside: where the clip ties potentials no edge joins them, and without it there would be six."""
    chain = vec_dim(4)
    start = GaussianPolicy(np.concatenate([[5.0, 6.0, 7.0, 8.0], np.full(chain - 4, 9.0)]), np.full(chain, -9.0))
    score = Score(None, small_score.regression, "ls") if algorithm == "credit" else small_score
    edges = [
        run(score, algorithm, rng=np.random.default_rng(0), init=start, bound=bound, n_steps=1).history["edges"][0]
        for bound in (10.0, 4.0)
    ]
    assert edges == [6.0, 0.0]


def test_reasons_to_stop(small_score):
    def stopped(**options):
        return run(small_score, "ppo", rng=np.random.default_rng(0), **options)

    assert stopped(n_steps=5).stopped == "steps"
    settled = stopped(patience=3, n_steps=3000)
    assert settled.stopped == "settled"
    # The best score is that of the start or of the step after which patience began to count, and of no later one.
    best = settled.history["best_score"]
    assert settled.n_iter - (1 + int(np.argmax(best == best[-1]))) in (2, 3)
    assert (best[-3:] == best[-1]).all()
    assert stopped(time_budget=1e-9).n_iter == 1
    assert stopped(time_budget=1e-9).stopped == "time"
    seen = []
    by_callback = stopped(callback=lambda progress: seen.append(progress) or progress.step == 7)
    assert (by_callback.stopped, by_callback.n_iter, len(seen)) == ("callback", 7, 7)
    assert seen[-1].best_score == by_callback.history["best_score"][-1]


def test_patience_counts_steps_without_improvement(rng):
    """A score that never improves on the start: exactly ``patience`` steps are made."""
    for patience in (1, 4):
        assert run(lambda A: 0.0, "ppo", d=3, rng=rng, patience=patience).n_iter == patience


def test_interrupt_returns_the_best_so_far(small_score, rng):
    def interrupt(progress):
        if progress.step == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted: the best DAG so far") as caught:
        found = policy_gradient(small_score, rng=rng, callback=interrupt)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert (found.stopped, found.n_iter) == ("interrupted", 4)
    assert found.score == small_score(found.A) == found.history["best_score"].max()


def test_init_is_used_and_not_modified(small_score, rng):
    start = GaussianPolicy(rng.normal(size=vec_dim(4)), np.full(vec_dim(4), -3.0))
    mu = start.mu.copy()
    found = run(small_score, "ppo", rng=rng, init=start, n_steps=3)
    assert np.array_equal(start.mu, mu)
    assert found.init == "given"
    assert found.history["sigma"][0] == pytest.approx(np.exp(-3.0), rel=0.05)
    with pytest.raises(ValueError, match=r"3 coordinates.*4 nodes"):
        policy_gradient(small_score, rng=rng, init=GaussianPolicy(np.zeros(3), np.zeros(3)))


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, *LOCAL])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_steps": 0}, "n_steps must be a whole number of at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number"),
        ({"learning_rate": -1.0}, "learning_rate must be a positive number"),
        ({"learning_rate": np.inf}, "learning_rate must be a positive number"),
        ({"entropy": np.nan}, "entropy must be a finite number"),
        ({"bound": 0.0}, "bound must be a positive number"),
        ({"patience": 0}, "patience must be a whole number"),
    ],
)
def test_bad_settings_are_named(algorithm, settings, message):
    with pytest.raises(ValueError, match=message):
        ALGORITHMS[algorithm](**settings)
    kept = ALGORITHMS[algorithm]()
    before = kept.get_params()
    with pytest.raises(ValueError, match=message):
        kept.set_params(**settings)
    assert kept.get_params() == before


@pytest.mark.parametrize("algorithm", [*WHOLE_GRAPH, "credit"])
def test_a_reward_needs_others_to_be_compared_with(algorithm):
    with pytest.raises(ValueError, match="batch_size must be at least 2"):
        ALGORITHMS[algorithm](batch_size=1)


def test_every_algorithm_owns_only_the_settings_that_it_uses():
    common = {"learning_rate", "n_steps", "batch_size", "entropy", "bound", "patience"}
    gradient = {"normalise", "max_grad_norm"}
    assert {name: set(kind().get_params()) for name, kind in ALGORITHMS.items()} == {
        "local": {"n_steps", "patience", "chains", "agree"},
        "orders": {"n_steps", "batch_size", "stall", "agree", "patience"},
        "ppo": common | gradient | {"n_epochs", "minibatches", "clip"},
        "a2c": common | gradient,
        "reinforce": common,
        "conditional": common,
        "credit": common,
    }


def test_bad_algorithms_and_scores_are_named(small_score, rng):
    with pytest.raises(ValueError, match=r"algorithm='sac'.*'ppo'"):
        policy_gradient(small_score, rng=rng, algorithm="sac")
    with pytest.raises(ValueError, match="d is needed"):
        policy_gradient(lambda A: 0.0, rng=rng)
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        policy_gradient(lambda A: np.nan, d=3, rng=rng)
    with pytest.raises(ValueError, match="for 4 nodes, d is 5"):
        policy_gradient(small_score, rng=rng, d=5)
    with pytest.raises(ValueError, match=r"algorithm='conditional' needs a Score"):
        policy_gradient(lambda A: 0.0, rng=rng, d=3, algorithm="conditional")


def test_functions_get_signed_numbers(rng):
    """In unsigned ones the score of the empty graph, zero, would be the lowest of all."""
    found = policy_gradient(lambda A: -A.sum(), d=3, rng=rng, algorithm=PPO(n_steps=300))
    assert (found.A.sum(), found.score) == (0, 0.0)
