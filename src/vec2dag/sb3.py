"""The paper's own set-up: a one-step Gymnasium environment, trained by Stable-Baselines3.

Importing this module registers ``vec2dag/DAG-v0`` with Gymnasium: ``gymnasium.make("vec2dag/DAG-v0", score=score)``
and, scored a batch at a time, ``gymnasium.make_vec("vec2dag/DAG-v0", num_envs=64, score=score)``.
"""

import inspect
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import brief, number, whole_number
from ._settings import Settings
from .graph import vec2dag, vec_dim
from .scores import GraphScore, as_score
from .search import Budget, GaussianPolicy, SearchResult
from .search.gradient import Record
from .search.start import Start

# At import, unlike other extras: their classes are the bases of ours.
try:
    import gymnasium
    import stable_baselines3
    import torch
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError('vec2dag.sb3 needs torch, stable-baselines3 and gymnasium: pip install "vec2dag[sb3]"') from error

__all__ = ["A2C", "ENV_ID", "PPO", "DagEnv", "DagVecEnv", "DagVectorEnv", "OnPolicy"]

ENV_ID = "vec2dag/DAG-v0"

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

    def _prepare(self, score: Any, d: int | None, bound: float) -> tuple[Any, Any]:
        """Spaces of the observation and of the action."""
        self._score = as_score(score, d)
        self.d, self.bound = self._score.d, number("bound", bound, above=0)
        # Networks see the one state as the number 1 (one-hot), as in the released implementation.
        return spaces.Discrete(1), spaces.Box(-bound, bound, (vec_dim(self.d),), np.float32)

    def _play(self, actions: ArrayLike) -> NDArray[np.float64]:
        """Rewards (B,) of ``actions`` (B, m)."""
        vectors = np.asarray(actions)
        if vectors.ndim != 2 or vectors.shape[1] != vec_dim(self.d):
            raise ValueError(
                f"an action has {vec_dim(self.d)} numbers for {self.d} nodes, got shape {vectors.shape[1:]}"
            )
        self.A = vec2dag(np.clip(vectors, -self.bound, self.bound), constraints=self._score.constraints)
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
        A :class:`.Score`, or any function of one adjacency matrix (d, d) that returns a number; higher is better.
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

    def __init__(self, score: Any, d: int | None = None, bound: float = 10.0) -> None:
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

    def __init__(self, score: Any, num_envs: int = 64, d: int | None = None, bound: float = 10.0) -> None:
        VecEnv.__init__(self, whole_number("num_envs", num_envs), *self._prepare(score, d, bound))

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

    def __init__(self, score: Any, num_envs: int = 64, d: int | None = None, bound: float = 10.0) -> None:
        self.num_envs = whole_number("num_envs", num_envs)
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


@dataclass(kw_only=True)
class _Trained(Settings):
    """What the algorithms share: a network that is trained on one-step episodes of all environments."""

    descends: ClassVar[bool] = False
    #: The estimate of the paper is the decoded mean.
    reports_mean: ClassVar[bool] = True
    #: The paper's start is that of the network.
    takes_start: ClassVar[bool] = False

    n_steps: int = 20_000
    batch_size: int = 64
    learning_rate: float | None = None
    entropy: float = 0.0
    bound: float = 10.0
    patience: int | None = None
    device: str = "cpu"
    options: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse impossible values."""
        whole_number("n_steps", self.n_steps)
        if whole_number("batch_size", self.batch_size) < 2:
            raise ValueError("batch_size must be at least 2: a reward is compared with others")
        if self.learning_rate is not None:
            number("learning_rate", self.learning_rate, above=0)
        number("entropy", self.entropy)
        number("bound", self.bound, above=0)
        if self.patience is not None:
            whole_number("patience", self.patience)
        if self.entropy and "ent_coef" not in inspect.signature(self.class_).parameters:
            raise ValueError(f"entropy={self.entropy!r}: {self.class_.__name__} has no entropy in its objective")

    @property
    def class_(self) -> type:
        """The class of Stable-Baselines3."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The short name under which results show it."""
        return self.class_.__name__.lower()

    def _arguments(self) -> dict[str, Any]:
        """The paper's settings, as far as the algorithm has them: one pass over one batch of one-step episodes."""
        known = inspect.signature(self.class_).parameters
        settings: dict[str, Any] = {
            "policy": "MlpPolicy",
            "n_steps": 1,
            "batch_size": self.batch_size,
            "n_epochs": 1,
            "normalize_advantage": True,
            "ent_coef": self.entropy,
        }
        if self.learning_rate is not None:
            settings["learning_rate"] = self.learning_rate
        return {name: value for name, value in settings.items() if name in known} | self.options

    def search(self, score: GraphScore, *, rng: np.random.Generator, start: Start, budget: Budget) -> SearchResult:
        """Search for the DAG with the highest score; ``policy`` is the Gaussian that the network outputs."""
        env = DagVecEnv(score, self.batch_size, None, self.bound)
        first = start.policy_for(env.d)
        record = Record(score, self.n_steps, self.patience or self.n_steps + 1, budget)
        recorder = _Recorder(record)
        with _own_random_state():
            model = self.class_(env=env, seed=int(rng.integers(2**31)), device=self.device, **self._arguments())
            if first is not None:
                _move(model.policy, first)
            with budget.guard(score):
                model.learn(self.n_steps * env.num_envs, callback=recorder, log_interval=None)
            policy = gaussian(model.policy)
        return record.result(policy, recorder.stopped, init=start.name, algorithm=self.name)


@dataclass(kw_only=True)
class PPO(_Trained):
    """The paper's algorithm: PPO of Stable-Baselines3, with a network for the mean. Defaults are those of the paper.

    Parameters
    ----------
    n_steps : int, default 20,000
        Updates, each on one step of all environments.
    batch_size : int, default 64
        Environments: graphs sampled for every update.
    learning_rate : float, default 0.0003
    entropy : float, default 0.0
        Weight of the policy's entropy in the objective.
    bound : float, default 10.0
        Actions are clipped to ``[-bound, bound]``.
    patience : int, optional
        End after this many steps without improvement; None makes all steps.
    device : str, default "cpu"
        The networks are small: a graphics card does not pay.
    options : dict
        Further arguments of the class, as in ``{"n_epochs": 4}`` or ``{"policy_kwargs": {"net_arch": []}}``.
    """

    learning_rate: float | None = 0.0003

    @property
    def class_(self) -> type:
        """The class of Stable-Baselines3."""
        return stable_baselines3.PPO


@dataclass(kw_only=True)
class A2C(_Trained):
    """A2C of Stable-Baselines3, with a network for the mean.

    Parameters
    ----------
    learning_rate : float, default 0.0007
    n_steps, batch_size, entropy, bound, patience, device, options
        As in :class:`PPO`.
    """

    learning_rate: float | None = 0.0007

    @property
    def class_(self) -> type:
        """The class of Stable-Baselines3."""
        return stable_baselines3.A2C


@dataclass
class OnPolicy(_Trained):
    """Any on-policy algorithm of Stable-Baselines3 or sb3-contrib.

    Parameters
    ----------
    kind : class
    learning_rate : float, optional
        None is the algorithm's own.
    n_steps, batch_size, entropy, bound, patience, device, options
        As in :class:`PPO`.
    """

    kind: type

    def check(self) -> None:
        """Refuse what cannot be trained like this."""
        if not (isinstance(self.kind, type) and issubclass(self.kind, OnPolicyAlgorithm)):
            raise ValueError(
                f"algorithm={brief(self.kind)}: allowed are on-policy classes of Stable-Baselines3; others train on a "
                "DagVecEnv"
            )
        super().check()

    @property
    def class_(self) -> type:
        """The class of Stable-Baselines3."""
        return self.kind


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


class _Recorder(BaseCallback):
    """Keeps the best graph and the history, and ends the training when there is a reason to."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record
        self.stopped: str | None = None
        self.mode: NDArray[np.uint8] | None = None

    def _on_step(self) -> bool:
        env, policy = self.training_env, gaussian(self.model.policy)
        assert isinstance(env, DagVecEnv)
        assert env.best_A is not None
        self.record.offer(env.best_A, env.best_score)
        mode = policy.mode(env._score.constraints)
        if self.mode is None or not np.array_equal(mode, self.mode):
            self.mode = mode
            self.record.offer(mode, float(env._score(mode)))
        reason = self.record.stop(env.rewards, float(policy.sigma.mean()), env.A.sum() / len(env.A), mode)
        self.stopped = reason
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
