"""The paper's set-up: environments, the same updates and scores as the native engine, training that ends well."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from oracles import all_dags
from sklearn.base import clone

from vec2dag import A2C as NativeA2C
from vec2dag import (
    ALIAS,
    BIC,
    GaussianPolicy,
    Linear,
    Score,
    discover,
    is_dag,
    metrics,
    policy_gradient,
    simulate,
    vec2dag,
    vec_dim,
)
from vec2dag import PPO as NativePPO
from vec2dag.prune import prune_linear
from vec2dag.search.engines import Update, WholeGraph
from vec2dag.search.policy import Adam, RMSprop

EXTRA = 'needs torch, stable-baselines3 and gymnasium: pip install "vec2dag[sb3]"'
torch = pytest.importorskip("torch", reason=EXTRA)
gymnasium = pytest.importorskip("gymnasium", reason=EXTRA)
pytest.importorskip("stable_baselines3", reason=EXTRA)

from gymnasium.utils import env_checker  # noqa: E402
from stable_baselines3 import A2C, PPO, SAC  # noqa: E402
from stable_baselines3.common import env_checker as sb3_checker  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from vec2dag import sb3  # noqa: E402
from vec2dag.sb3 import ENV_ID, DagEnv, DagVecEnv, DagVectorEnv, gaussian  # noqa: E402

KINDS = {"ppo": sb3.PPO, "a2c": sb3.A2C}


def train(score, *, rng, algorithm="ppo", d=None, init=None, time_budget=None, callback=None, **settings):
    """Policy gradient with settings of an algorithm of Stable-Baselines3."""
    chosen = KINDS[algorithm](**settings) if isinstance(algorithm, str) else sb3.OnPolicy(algorithm, **settings)
    return policy_gradient(score, rng=rng, d=d, algorithm=chosen, init=init, time_budget=time_budget, callback=callback)


def reference(X, criterion):
    """The score of the released implementation."""
    return Score(X, Linear(reference=True), BIC(offset=1e-8) if criterion == "bic-nv" else criterion)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def score(rng):
    x = rng.standard_normal((300, 4))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1] - 2 * x[:, 3]
    return Score(x, "linear", "bic-ev")


# --- environments ---------------------------------------------------------------------------------------------


# Both checkers recommend actions in [-1, 1]; the paper's are in [-10, 10].
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")
@pytest.mark.filterwarnings("error::UserWarning")
def test_checkers_of_both_libraries_pass(score):
    env_checker.check_env(gymnasium.make(ENV_ID, score=score).unwrapped)
    sb3_checker.check_env(DagEnv(score))


def test_registered_environment(score):
    env = gymnasium.make("vec2dag.sb3:vec2dag/DAG-v0", score=score, bound=3.0)  # imports the module if need be
    assert isinstance(env.unwrapped, DagEnv)
    assert env.action_space == gymnasium.spaces.Box(-3, 3, (vec_dim(4),), np.float32)
    start, _ = env.reset(seed=0)
    action = env.action_space.sample()
    observation, reward, terminated, truncated, _ = env.step(action)
    assert observation == start
    assert reward == float(score(vec2dag(action)))
    assert terminated
    assert not truncated


def test_registered_vector_environment(score):
    env = gymnasium.make_vec("vec2dag/DAG-v0", num_envs=5, score=score)
    assert isinstance(env, DagVectorEnv)
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space
    actions = env.action_space.sample()
    assert actions.shape == (5, vec_dim(4))
    observations, rewards, terminated, truncated, info = env.step(actions)
    assert observations in env.observation_space
    assert np.array_equal(rewards, score(vec2dag(actions)))
    assert terminated.all()
    assert not truncated.any()
    assert info["_final_obs"].all()


def test_vectorised_equals_one_by_one(score, rng):
    actions = rng.normal(scale=4, size=(8, vec_dim(4))).astype(np.float32)
    several, loop = DagVecEnv(score, 8), DummyVecEnv([lambda: DagEnv(score)] * 8)
    assert np.array_equal(several.reset(), loop.reset())
    ours, theirs = several.step(actions), loop.step(actions)
    assert np.array_equal(ours[0], theirs[0])
    assert ours[1] == pytest.approx(theirs[1], rel=1e-6)  # theirs are float32
    assert np.array_equal(ours[2], theirs[2])
    assert np.array_equal(several.best_A, vec2dag(actions[ours[1].argmax()]))
    assert several.best_score == ours[1].max()


def test_actions_are_clipped_before_they_are_decoded(score):
    """Two potentials beyond the bound become equal, and equal potentials have no edge between them."""
    env = DagVecEnv(score, 1, bound=10.0)
    action = np.full((1, vec_dim(4)), -1.0)
    action[0, :5] = 11, 12, 0, 0, 1  # p_0 < p_1, and an edge between them
    env.step(action)
    assert vec2dag(action[0]).sum() == 1
    assert env.A.sum() == 0


def test_the_best_graph_is_remembered_and_not_overwritten(score):
    env = DagVecEnv(score, 16)
    seen = []
    for seed in range(5):
        env.step(np.random.default_rng(seed).normal(size=(16, vec_dim(4))))
        seen.append(env.rewards.max())
        assert env.best_score == max(seen)
        assert score(env.best_A) == env.best_score


def test_any_callable_is_an_environment():
    env = DagVecEnv(lambda A: -float(A.sum()), 3, d=3)
    rewards = env.step(np.ones((3, 6)) * np.arange(1, 7))[1]
    assert np.array_equal(rewards, [-3, -3, -3])
    with pytest.raises(ValueError, match="d is needed"):
        DagEnv(lambda A: 0.0)


# --- scores of the released implementation ---------------------------------------------------------------------

# Made by running a transcript of the linear branch of the class BIC of the released implementation
# (github.com/baosws/ALIAS, alias/DAGScore.py, commit 600bf08), variants "EV" and "NV", on `released_table()`.
RELEASED = {
    ("bic-ev", ()): -0.19221519821476585,
    ("bic-ev", ((0, 1), (2, 3))): 0.4969926389239183,
    ("bic-ev", ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))): 0.32505649595211544,
    ("bic-nv", ()): 0.04702009542842065,
    ("bic-nv", ((0, 1), (2, 3))): 0.5000454319028839,
    ("bic-nv", ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))): 0.3282704763253455,
}


def released_table():
    k, j = np.arange(1, 21)[:, None], np.arange(1, 5)
    X = np.sin(k * j) + 0.1 * j
    X[:, 1] += 2 * X[:, 0]
    X[:, 3] -= X[:, 2]
    return X


def released_score(X, A, criterion):
    """The formulas of the released implementation, regression by regression."""
    n, d = X.shape
    residual = np.empty(d)
    for j in range(d):
        P = np.flatnonzero(A[:, j])
        fit = X[:, P] @ np.linalg.lstsq(X[:, P], X[:, j], rcond=None)[0] if len(P) else X[:, j].mean()
        residual[j] = np.mean((X[:, j] - fit) ** 2)
    misfit = np.log(residual.mean()) if criterion == "bic-ev" else np.log(residual + 1e-8).mean()
    return -misfit - A.sum() * np.log(n) / (n * d)


@pytest.mark.parametrize(("criterion", "edges"), RELEASED)
def test_rewards_are_those_of_the_released_implementation(criterion, edges):
    X, A = released_table(), np.zeros((4, 4), np.uint8)
    for i, j in edges:
        A[i, j] = 1
    pairs = (A | A.T)[np.triu_indices(4, k=1)]
    action = np.concatenate([np.arange(4), np.where(pairs, 1, -1)]).astype(np.float32)
    reward = DagEnv(reference(X, criterion)).step(action)[1]
    assert reward == pytest.approx(RELEASED[criterion, edges], rel=1e-10)
    assert reward == pytest.approx(released_score(X, A, criterion), rel=1e-10)


@pytest.mark.parametrize("criterion", ["bic-ev", "bic-nv"])
def test_a_batch_is_scored_by_the_released_formulas(criterion, rng):
    X = rng.standard_normal((60, 6)) @ np.triu(rng.normal(size=(6, 6))) + 0.5
    env = DagVecEnv(reference(X, criterion), 40)
    rewards = env.step(rng.normal(size=(40, vec_dim(6))).astype(np.float32))[1]
    assert rewards == pytest.approx([released_score(X, A, criterion) for A in env.A], rel=1e-9)


# --- updates --------------------------------------------------------------------------------------------------


class Batches(BaseCallback):
    """Keeps the vectors and rewards of every batch that was sampled."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        buffer = self.model.rollout_buffer
        self.seen.append((buffer.actions[0].astype(float), buffer.rewards[0].astype(float)))


class Ascent:
    """Plain gradient ascent; unlike Adam's, its first step shows the length of the gradient."""

    def __init__(self, learning_rate):
        self.learning_rate = learning_rate

    def step(self, gradient):
        return self.learning_rate * gradient


def without_network(kind, score, **settings):
    """A model of Stable-Baselines3 in which the mean is a free parameter and the critic stays where it is."""
    kwargs = {"net_arch": [], **settings.pop("policy_kwargs", {})}
    model = kind("MlpPolicy", DagVecEnv(score, 32), n_steps=1, seed=0, vf_coef=0.0, policy_kwargs=kwargs, **settings)
    model.policy.action_net.weight.requires_grad_(False).zero_()  # the mean is the bias of the only layer
    with torch.no_grad():
        model.policy.action_net.bias.copy_(torch.linspace(-1, 1, vec_dim(4)))
        model.policy.log_std.copy_(torch.linspace(-0.5, 0.5, vec_dim(4)))
    return model


SGD = {"policy_kwargs": {"optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}}}
PPO_BATCH = {"batch_size": 32, "normalize_advantage": True}
STABLE = {"normalise": True, "max_grad_norm": 0.5}


@pytest.mark.parametrize(
    ("kind", "theirs", "ours", "optimiser", "rate", "updates"),
    [
        (PPO, {"n_epochs": 1, **PPO_BATCH, **SGD}, Update(clip=0.2, **STABLE), Ascent, 0.1, 1),
        (PPO, {"n_epochs": 6, **PPO_BATCH, **SGD}, Update(n_epochs=6, clip=0.2, **STABLE), Ascent, 0.3, 1),
        (PPO, {"n_epochs": 1, **PPO_BATCH}, None, Adam, 0.03, 15),
        (A2C, {"normalize_advantage": True, **SGD}, Update(**STABLE), Ascent, 0.1, 1),
        (A2C, {"normalize_advantage": True}, None, RMSprop, 0.03, 15),
        (A2C, {"normalize_advantage": True, "max_grad_norm": 1e6, **SGD}, Update(normalise=True), Ascent, 0.1, 1),
    ],
    ids=["ppo-sgd", "ppo-sgd-6-epochs", "ppo", "a2c-sgd", "a2c", "a2c-sgd-unclipped"],
)
def test_native_updates_are_those_of_stable_baselines(score, kind, theirs, ours, optimiser, rate, updates, rng):
    """From the same parameters and on the same batches; what differs is float32 and the code."""
    entropy = 0.02
    model = without_network(kind, score, learning_rate=rate, ent_coef=entropy, **theirs)
    native, start = gaussian(model.policy), gaussian(model.policy)
    batches = Batches()
    model.learn(updates * 32, callback=batches)
    settings = (NativePPO if kind is PPO else NativeA2C)(learning_rate=rate, batch_size=32, entropy=entropy)
    engine = settings.engine(score, native)
    if ours is None:
        assert isinstance(engine.optimiser, optimiser), "the defaults of the native algorithm"
    else:
        engine = WholeGraph(score, native, settings, ours, optimiser(rate))
    for z, rewards in batches.seen:
        assert rewards == pytest.approx(score(vec2dag(np.clip(z, -10, 10))), rel=1e-6)
        engine.ascend(z, rewards, rng)
    assert len(batches.seen) == updates
    there = gaussian(model.policy)
    for now, then, before in (
        (native.mu, there.mu, start.mu),
        (native.log_sigma, there.log_sigma, start.log_sigma),
    ):
        assert np.abs(then - before).max() > 0.1 * rate
        assert now - before == pytest.approx(then - before, rel=1e-3, abs=1e-5)


def test_the_clip_acted_in_the_comparison_of_several_epochs(score):
    """Otherwise that comparison would say nothing about it."""
    model = without_network(PPO, score, learning_rate=0.3, n_epochs=6, ent_coef=0.02, **PPO_BATCH, **SGD)
    model.learn(32)
    assert model.logger.name_to_value["train/clip_fraction"] > 0.1


# --- training -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", PPO])
def test_finds_the_exhaustive_optimum(score, algorithm, rng):
    found = train(score, algorithm=algorithm, rng=rng, n_steps=250, learning_rate=0.002)
    assert found.score == pytest.approx(score(all_dags(4)).max(), abs=1e-12)
    assert score(found.A) == pytest.approx(found.score, abs=1e-12)
    assert score(found.mode) == pytest.approx(found.mode_score, abs=1e-12)
    assert is_dag(found.A)
    assert np.array_equal(found.mode, vec2dag(found.policy.mu))
    assert found.algorithm == ("ppo" if algorithm is PPO else algorithm)
    mean = found.history["mean_reward"]
    assert mean[-20:].mean() > mean[:20].mean()


def test_result_is_that_of_the_native_search(score, rng):
    found = train(score, rng=rng, n_steps=7)
    assert set(found.history) == {"mean_reward", "max_reward", "best_score", "sigma", "edges", "seconds"}
    assert all(len(column) == 7 for column in found.history.values())
    assert (found.n_iter, found.stopped, found.init) == (7, "steps", "random")
    assert (np.diff(found.history["best_score"]) >= 0).all()
    assert found.history["sigma"][0] == pytest.approx(1.0)
    assert found.policy.mu.shape == found.policy.log_sigma.shape == (vec_dim(4),)


@pytest.mark.parametrize("seed", [0, 1])
def test_paper_settings_recover_ten_nodes(seed):
    """The first 600 of the 20,000 updates are enough here; the estimate is the decoded mean."""
    data = simulate.preset("regular-er2-d10", seed)
    X, truth = data.X, data.A
    score = reference(X, "bic-ev")
    found = train(score, rng=np.random.default_rng(0), n_steps=600)
    assert metrics.shd(truth, prune_linear(X, found.mode)) == 0


def test_defaults_are_those_of_the_paper(score, rng, monkeypatch):
    seen = {}

    def learn(self, total_timesteps, **options):
        seen.update(model=self, steps=total_timesteps)
        return self

    monkeypatch.setattr(PPO, "learn", learn)
    train(score, rng=rng)
    model = seen["model"]
    assert seen["steps"] == 20_000 * 64
    assert (model.n_envs, model.n_steps, model.batch_size, model.n_epochs) == (64, 1, 64, 1)
    assert (model.learning_rate, model.ent_coef, model.max_grad_norm) == (0.0003, 0.0, 0.5)
    assert model.normalize_advantage
    assert model.policy.net_arch == {"pi": [64, 64], "vf": [64, 64]}
    assert model.policy.activation_fn is torch.nn.Tanh
    assert model.action_space == gymnasium.spaces.Box(-10, 10, (10,), np.float32)


def test_same_seed_same_answer(score):
    runs = [train(score, rng=np.random.default_rng(seed), n_steps=10) for seed in (3, 3, 4)]
    assert np.array_equal(runs[0].policy.mu, runs[1].policy.mu)
    assert np.array_equal(runs[0].history["mean_reward"], runs[1].history["mean_reward"])
    assert not np.array_equal(runs[0].policy.mu, runs[2].policy.mu)


def test_global_random_states_are_left_alone(score):
    def draw():
        return random.random(), np.random.random(), float(torch.rand(()))  # noqa: NPY002

    def set_states():
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002
        torch.manual_seed(7)

    set_states()
    expected = draw()
    set_states()
    train(score, rng=np.random.default_rng(0), n_steps=3)
    assert draw() == expected
    set_states()
    with pytest.raises(RuntimeError, match="from the score"):
        train(_broken, d=4, rng=np.random.default_rng(0), n_steps=3)
    assert draw() == expected


def _broken(A):
    raise RuntimeError("from the score")


def test_reasons_to_stop(score):
    def run(**options):
        return train(score, rng=np.random.default_rng(0), **options)

    assert run(time_budget=1e-9).stopped == "time"
    assert run(time_budget=1e-9).n_iter == 1
    assert run(patience=3, n_steps=500).stopped == "settled"
    seen = []
    stopped = run(callback=lambda progress: seen.append(progress) or progress.step == 7)
    assert (stopped.stopped, stopped.n_iter, len(seen)) == ("callback", 7, 7)
    assert seen[-1].best_score == stopped.history["best_score"][-1]
    assert seen[-1].n_steps == 20_000


def test_interrupt_returns_the_best_so_far(score, rng):
    def interrupt(progress):
        if progress.step == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted: the best DAG so far"):
        found = train(score, rng=rng, callback=interrupt)
    assert found.stopped == "interrupted"
    assert found.score == score(found.A)


def test_init_is_used_and_not_modified(score, rng):
    start = GaussianPolicy(3 * rng.normal(size=vec_dim(4)), np.full(vec_dim(4), -3.0))
    mu = start.mu.copy()
    found = train(score, rng=rng, init=start, n_steps=1, learning_rate=1e-9)
    assert np.array_equal(start.mu, mu)
    assert found.init == "given"
    assert found.policy.mu == pytest.approx(mu, abs=1e-5)
    assert found.policy.log_sigma == pytest.approx(np.full(vec_dim(4), -3.0), abs=1e-5)
    with pytest.raises(ValueError, match=r"3 coordinates.*4 nodes"):
        train(score, rng=rng, init=GaussianPolicy(np.zeros(3), np.zeros(3)))


def test_options_reach_the_algorithm(score, rng):
    settled = train(score, rng=rng, n_steps=5, options={"policy_kwargs": {"log_std_init": -2.0}})
    assert settled.history["sigma"] == pytest.approx(np.full(5, np.exp(-2)), rel=0.01)


def test_algorithms_of_sb3_contrib(score, rng):
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    found = train(score, algorithm=contrib.TRPO, rng=rng, n_steps=40)
    assert found.algorithm == "trpo"
    assert found.score == pytest.approx(score(all_dags(4)).max(), abs=1e-12)
    with pytest.raises(ValueError, match=r"entropy=0.1: TRPO"):
        train(score, algorithm=contrib.TRPO, rng=rng, entropy=0.1)


def test_off_policy_algorithms_train_on_the_environment(score):
    env = DagVecEnv(score, 16)
    model = SAC("MlpPolicy", env, learning_starts=32, seed=0, policy_kwargs={"net_arch": [16]})
    model.learn(96)
    assert score(env.best_A) == env.best_score


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": SAC}, "SAC.*on-policy classes of Stable-Baselines3; others train on a DagVecEnv"),
        ({"algorithm": 3}, "algorithm=3: allowed are on-policy classes"),
        ({"n_steps": 0}, "n_steps must be a whole number of at least 1, got 0"),
        ({"batch_size": 1}, "batch_size must be at least 2"),
        ({"learning_rate": -1.0}, "learning_rate must be a positive number"),
        ({"bound": 0.0}, "bound must be a positive number"),
    ],
)
def test_bad_options_are_named(score, rng, options, message):
    with pytest.raises(ValueError, match=message):
        train(score, rng=rng, **options)


# --- the estimator --------------------------------------------------------------------------------------------


@pytest.fixture
def X(rng):
    x = rng.standard_normal((300, 4))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1] - 2 * x[:, 3]
    return x


@pytest.mark.filterwarnings("ignore::vec2dag.DataWarning")
@pytest.mark.parametrize("algorithm", [sb3.PPO(n_steps=5), sb3.A2C(n_steps=5), sb3.OnPolicy(PPO, n_steps=5)])
def test_estimate_of_the_paper_is_the_decoded_mean(X, algorithm):
    model = ALIAS.paper(algorithm=algorithm, random_state=0).fit(X)
    assert np.array_equal(model.adjacency_raw_, model.search_.mode)
    assert model.score_ == model.search_.mode_score
    assert model.search_.algorithm == ("a2c" if isinstance(algorithm, sb3.A2C) else "ppo")
    assert model.n_iter_ == 5
    again = clone(model).fit(X)
    assert np.array_equal(model.search_.policy.mu, again.search_.policy.mu)


@pytest.mark.filterwarnings("ignore::vec2dag.DataWarning")
def test_what_the_backend_finds_can_be_refined(X):
    model = ALIAS(criterion="bic-ev", algorithm=sb3.PPO(n_steps=3), random_state=0).fit(X)
    assert model.search_.certified
    assert model.score_ == pytest.approx(Score(X, "linear", "bic-ev")(all_dags(4)).max(), abs=1e-12)


@pytest.mark.filterwarnings("ignore::vec2dag.DataWarning")
def test_a_class_of_stable_baselines_is_an_algorithm(X, monkeypatch):
    """It would be trained for 20,000 updates, so that here it is only looked at which class would be."""
    seen = []

    def briefly(self, score, **options):
        seen.append(self.class_)
        return sb3.PPO(n_steps=2).search(score, **options)

    monkeypatch.setattr(sb3.OnPolicy, "search", briefly)
    ALIAS(criterion="bic-ev", algorithm=A2C, random_state=0).fit(X)
    assert seen == [A2C]
    with pytest.raises(ValueError, match=r"algorithm=.*SAC.*on-policy"):
        ALIAS(algorithm=SAC).fit(X)


def test_configuration_of_the_paper():
    model = ALIAS.paper(random_state=3)
    settings = model.algorithm
    assert isinstance(settings, sb3.PPO)
    assert (settings.n_steps, settings.batch_size, settings.learning_rate) == (20_000, 64, 0.0003)
    assert (settings.entropy, settings.bound, model.refine) == (0.0, 10.0, False)
    assert (model.criterion, model.init, model.random_state) == ("bic-ev", "random", 3)
    assert ALIAS.paper(algorithm=sb3.A2C()).algorithm == sb3.A2C()


def test_without_refinement_the_estimate_is_the_mean_and_with_it_the_best(score):
    rough, refined = (
        discover(score, rng=np.random.default_rng(0), algorithm=sb3.PPO(n_steps=3), refine=refine)
        for refine in (False, True)
    )
    assert np.array_equal(rough.A, rough.mode)
    assert rough.score == rough.mode_score
    best = float(score(all_dags(4)).max())
    assert rough.score < best
    assert refined.score == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("missing", ["torch", "stable_baselines3", "gymnasium"])
def test_error_names_the_extra(missing, tmp_path):
    (tmp_path / f"{missing}.py").write_text("raise ImportError", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", "import vec2dag.sb3"]
    failed = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.strip().endswith('gymnasium: pip install "vec2dag[sb3]"')


def test_actions_and_numbers_of_environments_are_checked():
    def score(A):
        return -float(A.sum())

    with pytest.raises(ValueError, match=r"6 numbers for 3 nodes, got shape \(3,\)"):
        DagEnv(score, d=3).step(np.zeros(3))
    for kind in (DagVecEnv, DagVectorEnv):
        with pytest.raises(ValueError, match="num_envs must be"):
            kind(score, 0, d=3)
