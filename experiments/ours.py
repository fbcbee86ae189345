"""This library, and the methods that need no package, as functions of a table and a generator."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import (
    A2C,
    ALIAS,
    BIC,
    PPO,
    GaussianPolicy,
    GaussianProcess,
    LeastSquares,
    Score,
    metrics,
    policy_gradient,
    prune,
    score_order,
)
from vec2dag import vec2dag as decode
from vec2dag.search import Progress, SearchResult, equal_variance_order
from vec2dag.search.descent import CompiledDescent

from .baselines import rcl_og

Array = NDArray[np.float64]
Graph = NDArray[np.uint8]
SNAPSHOTS = 25  # graphs kept along a run of the paper's algorithms


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def alias(
    X: Array,
    rng: np.random.Generator,
    *,
    gp: dict[str, Any] | None = None,
    bic: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """The estimator, not pruned: that is done to all methods alike.

    ``gp`` has settings of the Gaussian process, ``bic`` those of the criterion.
    """
    regression = {"regression": GaussianProcess(**gp)} if gp is not None else {}
    criterion = {"criterion": BIC(**bic)} if bic is not None else {}
    # In the units of the data, as in the paper; tables that it standardises come standardised.
    chosen = regression | criterion | settings
    model = ALIAS(**chosen, standardize=False, prune=None, n_jobs=1, random_state=_seed(rng)).fit(X)
    return {"A": model.adjacency_matrix_, "score": model.score_, "steps": model.n_iter_}


def _score(X: Array, lambda0: float | None = None) -> Score:
    # The price of an edge in the reward itself: divided by n d once more, as in the formula, the paper's prices from
    # 1e-6 to 1 would all be below that of BIC and act on nothing.
    n, d = X.shape
    return Score(X, "linear", "bic-ev" if lambda0 is None else LeastSquares(lambda0 * n * d), n_jobs=1)


def policy(
    X: Array,
    rng: np.random.Generator,
    *,
    algorithm: str,
    n_steps: int,
    learning_rate: float = 0.01,
    entropy: float = 0.0,
    lambda0: float | None = None,
) -> dict[str, Any]:
    """The paper's algorithms as they are: cold start, whole-graph reward, 64 graphs a step, the decoded mean.

    The score is BIC with equal variances, or least squares with the price ``lambda0`` of an edge.
    """
    chosen = {"ppo": PPO, "a2c": A2C}[algorithm](
        learning_rate=learning_rate, n_steps=n_steps, batch_size=64, entropy=entropy, patience=n_steps
    )
    curve = Curve(n_steps)
    return curve.result(policy_gradient(_score(X, lambda0), rng=rng, algorithm=chosen, callback=curve))


def stable_baselines(X: Array, rng: np.random.Generator, *, algorithm: str, n_steps: int) -> dict[str, Any]:
    """The paper's own set-up in Stable-Baselines3: a network for the mean, its default learning rate."""
    from vec2dag import sb3

    chosen = {"ppo": sb3.PPO, "a2c": sb3.A2C}[algorithm](n_steps=n_steps)
    curve = Curve(n_steps)
    return curve.result(policy_gradient(_score(X), rng=rng, algorithm=chosen, callback=curve))


class Curve:
    """Callback that keeps the decoded means and mean rewards at steps evenly spread on a logarithmic axis."""

    def __init__(self, n_steps: int) -> None:
        self.at = set(np.unique(np.geomspace(1, n_steps, SNAPSHOTS).astype(int)).tolist())
        self.steps: list[int] = []
        self.graphs: list[Graph] = []
        self.rewards: list[float] = []

    def __call__(self, progress: Progress) -> None:
        if progress.step in self.at:
            print(f"step {progress.step} of {progress.n_steps}", flush=True)
            self.steps.append(progress.step)
            self.graphs.append(progress.mode)
            self.rewards.append(progress.mean_reward)

    def result(self, found: SearchResult) -> dict[str, Any]:
        """What a run reports."""
        return {
            "A": found.mode,
            "score": found.mode_score,
            "steps": found.n_iter,
            "curve_steps": np.array(self.steps),
            "curve_graphs": np.array(self.graphs),
            "curve_rewards": np.array(self.rewards),
        }


def sortnregress(X: Array, rng: np.random.Generator, *, decreasing: bool = False) -> Graph:
    """Columns sorted by variance, each regressed on those before it."""
    return (metrics.sortnregress(X, decreasing) != 0).astype(np.uint8)


def equal_variance(X: Array, rng: np.random.Generator) -> Graph:
    """All edges along the greedy order of Chen, Drton and Wang (2019): pruning decides which stay."""
    d = X.shape[1]
    place = np.empty(d, dtype=int)
    place[equal_variance_order(Score(X, "linear", "bic-ev", n_jobs=1))] = np.arange(d)
    return (place[:, None] < place).astype(np.uint8)


def equal_variance_bic(X: Array, rng: np.random.Generator, *, criterion: str = "bic-ev") -> Graph:
    """Parents selected by a criterion with equal variances along the greedy order of Chen, Drton and Wang (2019).

    Single additions, removals and exchanges until none improves the score, and no search over orders. On many nodes
    BIC keeps some edges with small coefficients, which pruning takes away; ``"ebic-ev"`` keeps few of them.
    """
    score = Score(X - X.mean(axis=0), "linear", criterion, n_jobs=1)
    return CompiledDescent(score).select(equal_variance_order(score))


def score_cam(
    X: Array, rng: np.random.Generator, *, standardise: bool = False, preselect: int = 20, alpha: float = 0.001
) -> Graph:
    """SCORE (Rolland et al. 2022): the order of the density's score, all edges along it, then CAM pruning.

    The order reads the units of the columns; ``standardise`` takes them away. Of more than ``preselect`` predecessors
    those stay that matter most in a forest, the usual preliminary selection (Lachapelle et al. 2020).
    """
    order = score_order(X / X.std(axis=0) if standardise else X)
    A = np.zeros((len(order), len(order)), np.uint8)
    for place, node in enumerate(order):
        earlier = order[:place]
        if place > preselect:
            from sklearn.ensemble import ExtraTreesRegressor

            forest = ExtraTreesRegressor(200, min_samples_leaf=5, max_features=1 / 3, random_state=_seed(rng))
            worth = forest.fit(X[:, earlier], X[:, node]).feature_importances_
            earlier = earlier[np.argsort(-worth, kind="stable")[:preselect]]
        A[earlier, node] = 1
    return prune.prune_cam(X, A, alpha, n_jobs=1)


def rcl_og_gp(X: Array, rng: np.random.Generator, **settings: Any) -> Graph:
    """RCL-OG with the regressions of the nonlinear tables: complete orders, to be pruned like all others."""
    score = Score(X, "gp", "bic-nv", n_jobs=1)
    return rcl_og.rcl_og(X, rng, score=score, prune=lambda X, A: np.asarray(A, dtype=np.uint8), **settings)


def _milliseconds(draw: Any, count: int, seconds: float) -> dict[str, float]:
    """Median time of one DAG over repeated batches."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        draw()
        times.append((time.perf_counter() - start) / count)
    return {"ms": 1e3 * float(np.median(times))}


def sampling(X: Array, rng: np.random.Generator, *, count: int = 64, seconds: float = 1.0) -> dict[str, float]:
    """Milliseconds for a DAG from the policy: a Gaussian vector, decoded."""
    d = X.shape[1]
    start = GaussianPolicy.cold(d, rng)
    return _milliseconds(lambda: decode(start.sample(count, rng)), count, seconds)


def rcl_og_sampling(X: Array, rng: np.random.Generator, *, count: int = 64, seconds: float = 1.0) -> dict[str, float]:
    """Milliseconds for an order from an untrained network of RCL-OG."""
    d = X.shape[1]
    network = rcl_og.Network(d, 64, rng)
    return _milliseconds(lambda: rcl_og.sample_orders(network, d, count, 0.1, rng), count, seconds)
