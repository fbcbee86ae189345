"""The paper's own set-up: a one-step Gymnasium environment, trained by Stable-Baselines3.

Importing this module registers ``vec2dag/DAG-v0`` with Gymnasium: ``gymnasium.make("vec2dag/DAG-v0", score=score)``
and, scored a batch at a time, ``gymnasium.make_vec("vec2dag/DAG-v0", num_envs=64, score=score)``.
"""

import inspect
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .engines import GraphScore, batched
from .graph import vec2dag, vec_dim
from .policy import GaussianPolicy
from .scores import choose
from .search import Callback, Record, SearchResult, check_options, positive_int

# At import, unlike other extras: their classes are the bases of ours.
try:
    import gymnasium
    import torch
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from stable_baselines3 import A2C, PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError('vec2dag.sb3 needs torch, stable-baselines3 and gymnasium: pip install "vec2dag[sb3]"') from error

__all__ = ["ENV_ID", "DagEnv", "DagVecEnv", "DagVectorEnv", "train"]

ENV_ID = "vec2dag/DAG-v0"
ALGORITHMS: dict[str, type] = {"ppo": PPO, "a2c": A2C}

# --- environments ---------------------------------------------------------------------------------------------


class _Scored:
    """What the environments share: actions are clipped and decoded, graphs scored in one call, the best one kept.

    Attributes
    ----------
    A : array of shape (B, d, d), uint8
        The graphs of the latest step.
    rewards : array of shape (B,)
        Their scores.
    best_A, best_score
        The best DAG met so far, and its score.
    """

    A: NDArray[np.uint8]
    rewards: NDArray[np.float64]
    best_A: NDArray[np.uint8] | None = None
    best_score: float = -np.inf

    def _prepare(self, score: GraphScore, d: int | None, bound: float) -> tuple[Any, Any]:
        """Spaces of the observation and of the action."""
        d = d if d is not None else getattr(score, "d", None)
        if d is None:
            raise ValueError("d is needed: the score has no attribute d")
        check_options(bound, 0.0, None)
        self.d, self.bound, self._score = int(d), float(bound), batched(score)
        # Networks see the one state as the number 1 (one-hot), as in the released implementation.
        return spaces.Discrete(1), spaces.Box(-bound, bound, (vec_dim(self.d),), np.float32)

    def _play(self, actions: ArrayLike) -> NDArray[np.float64]:
        """Rewards (B,) of ``actions`` (B, m)."""
        vectors = np.asarray(actions)
        if vectors.ndim != 2 or vectors.shape[1] != vec_dim(self.d):
            raise ValueError(
                f"an action has {vec_dim(self.d)} numbers for {self.d} nodes, got shape {vectors.shape[1:]}"
            )
        self.A = vec2dag(np.clip(vectors, -self.bound, self.bound))
        self.rewards = self._score(self.A)
        top = int(self.rewards.argmax())
        if self.rewards[top] > self.best_score:
            self.best_A, self.best_score = self.A[top].copy(), float(self.rewards[top])
        return self.rewards


class DagEnv(_Scored, gymnasium.Env):
    """One-step environment: the action is a vector, the reward the score of the DAG that it decodes to.

    Parameters
    ----------
    score : Score or callable
        A :class:`Score`, or any function of one adjacency matrix (d, d) that returns a number; higher is better.
    d : int, optional
        Number of nodes; needed unless ``score`` has an attribute ``d``.
    bound : float, default 10.0
        Actions live in ``[-bound, bound]^(d (d + 1) / 2)``.

    Attributes
    ----------
    best_A, best_score
        The best DAG (d, d) met so far, and its score, whatever algorithm plays.

    Examples
    --------
    >>> import numpy as np
    >>> env = DagEnv(lambda A: -float(A.sum()), d=3)
    >>> observation, info = env.reset(seed=0)
    >>> env.step(np.array([0, 1, 2, 1, 1, -1], np.float32))[1:4]
    (-2.0, True, False)
    >>> env.best_A
    array([[0, 1, 1],
           [0, 0, 0],
           [0, 0, 0]], dtype=uint8)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, score: GraphScore, d: int | None = None, bound: float = 10.0) -> None:
        self.observation_space, self.action_space = self._prepare(score, d, bound)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The only observation."""
        super().reset(seed=seed)
        return np.int64(0), {}

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Score the DAG of one vector (m,); the episode ends."""
        return np.int64(0), float(self._play(np.asarray(action)[None])[0]), True, False, {}


class DagVecEnv(_Scored, VecEnv):
    """``num_envs`` copies of :class:`DagEnv` for Stable-Baselines3, scored by one call a step.

    Parameters
    ----------
    score, d, bound
        As in :class:`DagEnv`.
    num_envs : int, default 64
        Graphs in a step.
    """

    render_mode = None

    def __init__(self, score: GraphScore, num_envs: int = 64, d: int | None = None, bound: float = 10.0) -> None:
        VecEnv.__init__(self, positive_int("num_envs", num_envs, 64), *self._prepare(score, d, bound))

    def reset(self) -> NDArray[np.int64]:
        """Observations (num_envs,)."""
        self._reset_seeds()
        self._reset_options()
        return np.zeros(self.num_envs, np.int64)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take vectors (num_envs, m)."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards and ends (num_envs,), and what else there is to know: nothing."""
        n = self.num_envs
        # The observation that ends an episode is the one that starts the next, so it is not repeated in the infos.
        return np.zeros(n, np.int64), self._play(self._actions).copy(), np.ones(n, bool), [{} for _ in range(n)]

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute, as many times as asked for: the copies are one object."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set for all copies."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refused: the copies are one object and have no methods of their own."""
        raise NotImplementedError(f"{method_name}: the copies of a DagVecEnv are one object, call it directly")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No copy is wrapped."""
        return [False for _ in self._get_indices(indices)]


class DagVectorEnv(_Scored, gymnasium.vector.VectorEnv):
    """``num_envs`` copies of :class:`DagEnv` for Gymnasium (``make_vec``), scored by one call a step.

    Episodes last one step and restart in the same step.

    Parameters
    ----------
    score, d, bound
        As in :class:`DagEnv`.
    num_envs : int, default 64
        Graphs in a step.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, score: GraphScore, num_envs: int = 64, d: int | None = None, bound: float = 10.0) -> None:
        self.num_envs = positive_int("num_envs", num_envs, 64)
        self.single_observation_space, self.single_action_space = self._prepare(score, d, bound)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Observations (num_envs,)."""
        super().reset(seed=seed)
        return np.zeros(self.num_envs, np.int64), {}

    def step(self, actions: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Score the DAGs of vectors (num_envs, m); every episode ends."""
        n = self.num_envs
        observations, ends = np.zeros(n, np.int64), np.ones(n, bool)
        info = {"final_obs": observations.copy(), "_final_obs": ends.copy()}
        return observations, self._play(actions).copy(), ends, np.zeros(n, bool), info


gymnasium.register(ENV_ID, entry_point=f"{__name__}:DagEnv", vector_entry_point=f"{__name__}:DagVectorEnv")

# --- training -------------------------------------------------------------------------------------------------


def train(
    score: GraphScore,
    *,
    rng: np.random.Generator,
    d: int | None = None,
    algorithm: str | type = "ppo",
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    entropy: float = 0.0,
    bound: float = 10.0,
    init: GaussianPolicy | None = None,
    patience: int | None = None,
    time_budget: float | None = None,
    callback: Callback | None = None,
    device: str = "cpu",
    **options: Any,
) -> SearchResult:
    """Search for the DAG with the highest score as the paper does, with a network trained by Stable-Baselines3.

    The defaults are those of the paper. It takes the place of :func:`vec2dag.policy_gradient`; the estimate of the
    paper is the ``mode`` of the result.

    Parameters
    ----------
    score, d, entropy, bound, time_budget
        As in :func:`vec2dag.policy_gradient`.
    rng : numpy Generator
        Draws the seed of Stable-Baselines3. The global states of ``random``, numpy and torch are left as they were.
    algorithm : {"ppo", "a2c"} or class, default "ppo"
        Or any on-policy algorithm class of Stable-Baselines3 or sb3-contrib.
    n_steps : int, default 20,000
        Updates, each on one step of all environments.
    batch_size : int, default 64
        Environments: graphs sampled for every update.
    learning_rate : float, optional
        None is the algorithm's own: 0.0003 for PPO, 0.0007 for A2C.
    init : GaussianPolicy, optional
        Where to start; the default is the initialisation of Stable-Baselines3. It is not modified.
    patience : int, optional
        End after this many steps without improvement; None makes all steps.
    callback : callable, optional
        Called with a :class:`Progress` before the update of every step; returning True ends the search.
    device : str, default "cpu"
        The networks are small: a graphics card does not pay.
    **options
        Of the algorithm, as in ``n_epochs=4`` or ``policy_kwargs={"net_arch": []}``.

    Returns
    -------
    SearchResult
        Also after ``KeyboardInterrupt``, with a warning. ``policy`` is the Gaussian that the network outputs.
    """
    check_options(bound, entropy, time_budget)
    kind = choose("algorithm", algorithm, ALGORITHMS) if isinstance(algorithm, str) else algorithm
    if not (isinstance(kind, type) and issubclass(kind, OnPolicyAlgorithm)):
        raise ValueError(
            f"algorithm={algorithm!r}: allowed are 'ppo', 'a2c' and on-policy classes; others train on a DagVecEnv"
        )
    n_steps = positive_int("n_steps", n_steps, 20_000)
    env = DagVecEnv(score, positive_int("batch_size", batch_size, 64), d, bound)
    if env.num_envs < 2:
        raise ValueError("batch_size must be at least 2: a reward is compared with others")
    if learning_rate is not None and not learning_rate > 0:
        raise ValueError(f"learning_rate must be positive, got {learning_rate!r}")
    if init is not None and len(init.mu) != vec_dim(env.d):
        raise ValueError(f"init has {len(init.mu)} coordinates; graphs of {env.d} nodes have {vec_dim(env.d)}")
    settings = _settings(kind, env.num_envs, learning_rate, entropy) | options
    record = Record(n_steps, positive_int("patience", patience, n_steps + 1), time_budget, callback, score)
    recorder = _Recorder(record)
    with _own_random_state():
        model = kind(env=env, seed=int(rng.integers(2**31)), device=device, **settings)
        if init is not None:
            _move(model.policy, init)
        try:
            model.learn(n_steps * env.num_envs, callback=recorder, log_interval=None)
        except KeyboardInterrupt:
            recorder.stopped = "interrupted"
            warnings.warn(f"interrupted after {len(record.rows)} steps: returning the best DAG so far", stacklevel=2)
        policy = gaussian(model.policy)
    mode = policy.mode()
    mode_score = float(env._score(mode[None])[0])
    record.offer(mode, mode_score)
    if record.A is None:
        raise ValueError("score returned no finite number for any graph")
    return SearchResult(
        record.A,
        record.score,
        mode,
        mode_score,
        policy,
        record.history(),
        len(record.rows),
        recorder.stopped,
        "random" if init is None else "given",
        algorithm if isinstance(algorithm, str) else kind.__name__.lower(),
    )


def gaussian(policy: Any) -> GaussianPolicy:
    """The Gaussian that an actor-critic policy of Stable-Baselines3 outputs at the only observation."""
    with torch.no_grad():
        normal = policy.get_distribution(torch.zeros(1, dtype=torch.int64, device=policy.device)).distribution
        mu, sigma = normal.mean[0].double().cpu().numpy(), normal.stddev[0].double().cpu().numpy()
    return GaussianPolicy(mu, np.log(sigma))


def _move(policy: Any, start: GaussianPolicy) -> None:
    """Make the network output ``start``: the bias of its last layer takes up the difference."""
    with torch.no_grad():
        policy.action_net.bias += torch.as_tensor(start.mu - gaussian(policy).mu).to(policy.action_net.bias)
        policy.log_std.copy_(torch.as_tensor(start.log_sigma))


def _settings(kind: type, batch_size: int, learning_rate: float | None, entropy: float) -> dict[str, Any]:
    """The paper's settings, as far as the algorithm has them: one pass over one batch of one-step episodes."""
    known = inspect.signature(kind).parameters
    if entropy and "ent_coef" not in known:
        raise ValueError(f"entropy={entropy!r}: {kind.__name__} has no entropy in its objective")
    settings: dict[str, Any] = {
        "policy": "MlpPolicy",
        "n_steps": 1,
        "batch_size": batch_size,
        "n_epochs": 1,
        "normalize_advantage": True,
        "ent_coef": entropy,
    }
    if learning_rate is not None:
        settings["learning_rate"] = learning_rate
    return {name: value for name, value in settings.items() if name in known}


class _Recorder(BaseCallback):
    """Keeps the best graph and the history, and ends the training when there is a reason to."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record, self.stopped = record, "steps"
        self.mode: NDArray[np.uint8] | None = None

    def _on_step(self) -> bool:
        env, policy = self.training_env, gaussian(self.model.policy)
        assert isinstance(env, DagVecEnv)
        assert env.best_A is not None
        self.record.offer(env.best_A, env.best_score)
        mode = policy.mode()
        if self.mode is None or not np.array_equal(mode, self.mode):
            self.mode = mode
            self.record.offer(mode, float(env._score(mode[None])[0]))
        reason = self.record.stop(env.rewards, float(policy.sigma.mean()), env.A.sum() / len(env.A), mode)
        self.stopped = reason or self.stopped
        return reason is None


@contextmanager
def _own_random_state() -> Iterator[None]:
    """Stable-Baselines3 seeds the global generators of Python, numpy and torch: put back what they were."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
