"""Methods of other packages behind one signature: ``name(X, rng, **settings) -> A``.

``X`` is the (n, d) table, which is never changed, ``rng`` a numpy generator from which all randomness comes, and ``A``
a uint8 array of shape (d, d) with ``A[i, j] = 1`` for the edge i -> j, and 1 in both directions for an undirected
edge. The graph is the one that the package returns with its own thresholds; pruning that is common to all methods is
not done here. The defaults are those of the linear experiments.

This module needs numpy alone, and nothing of vec2dag: each package is imported by the function that uses it, so that
one environment (``make peers``) can hold the packages and another the library. ``METHODS`` names the functions, with
the modules to import before a clock is started.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@contextmanager
def _session(rng: np.random.Generator) -> Iterator[int]:
    """One thread, and the global generators seeded from ``rng`` (the seed is yielded); restored at the end."""
    from threadpoolctl import threadpool_limits

    seed = int(rng.integers(2**31))
    # Looked up instead of imported: half of the packages do without it.
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if torch is not None:
        threads, state = torch.get_num_threads(), torch.get_rng_state()
        torch.set_num_threads(1)
        torch.manual_seed(seed)
    try:
        with threadpool_limits(1):
            yield seed
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        if torch is not None:
            torch.set_num_threads(threads)
            torch.set_rng_state(state)


def _table(X: Array) -> Array:
    """A copy in double precision: several packages centre the table in place."""
    return np.array(X, dtype=np.float64, order="C")


def _graph(W: Any) -> Array:
    """The nonzero entries."""
    return (np.asarray(W) != 0).astype(np.uint8)


def _cpdag(graph: Any) -> Array:
    """Causal-learn marks the tail of an edge with -1: at ``[i, j]`` for i -> j, at both places for i - j."""
    return (np.asarray(graph.graph) == -1).astype(np.uint8)


def _told(name: str, every: float = 5.0) -> Callable[[range], Iterator[int]]:
    """A stand-in for tqdm: a whole line on stderr every few seconds, so that a killed run tells how far it came."""

    def loop(steps: range) -> Iterator[int]:
        start = last = time.perf_counter()
        for done, step in enumerate(steps):
            now = time.perf_counter()
            if done == 1 or (done and now - last >= every):
                print(f"{name}: iteration {done} of {len(steps)}, {now - start:.1f} s", file=sys.stderr, flush=True)
                last = now
            yield step
        print(f"{name}: iteration {len(steps)} of {len(steps)}, {time.perf_counter() - start:.1f} s", file=sys.stderr)

    return loop


def notears(X: Array, rng: np.random.Generator, lambda1: float = 0.1, w_threshold: float = 0.3) -> Array:
    """NOTEARS of gcastle for linear models, with the squared loss.

    Weights up to ``w_threshold`` in absolute value are dropped; 0.3 is the default of the package.
    """
    from castle.algorithms import Notears

    with _session(rng):
        model = Notears(loss_type="l2", lambda1=lambda1, w_threshold=w_threshold)
        model.learn(_table(X))
    return _graph(model.causal_matrix)


def notears_mlp(
    X: Array,
    rng: np.random.Generator,
    hidden: int = 10,
    lambda1: float = 0.01,
    lambda2: float = 0.01,
    w_threshold: float = 0.3,
) -> Array:
    """NOTEARS-MLP of gcastle: one hidden layer of ``hidden`` sigmoid units, squared loss.

    The weight of an edge is the norm of its weights in the first layer; those up to ``w_threshold`` are dropped, and
    0.3 is the default of the package.
    """
    from castle.algorithms import NotearsNonlinear

    with _session(rng):
        model = NotearsNonlinear(
            model_type="mlp", hidden_layers=(hidden, 1), lambda1=lambda1, lambda2=lambda2, w_threshold=w_threshold
        )
        model.learn(_table(X))
    return _graph(model.causal_matrix)


# The two reinforcement learners of gcastle, with Gaussian processes: their rewards know 'GPR', but their constructors
# refuse it and the steps after the reward have no branch for it. So the learner is told 'LR', the reward (and the
# bounds that scale it) 'GPR', and the pruning by linear coefficients, which has no meaning then, is left out.


def rl_bic(
    X: Array,
    rng: np.random.Generator,
    regression: str = "LR",
    score: str = "BIC",
    batch_size: int = 64,
    steps: int = 20_000,
    update_every: int = 1000,
) -> Array:
    """RL-BIC, the ``RL`` of gcastle.

    Parameters
    ----------
    regression
        ``"LR"`` (linear), ``"QR"`` (quadratic) or ``"GPR"`` (Gaussian process, kernel width from the median distance).
    score
        ``"BIC"``, with equal variances, or ``"BIC_different_var"``.
    batch_size, steps
        Graphs in a batch, and batches.
    update_every
        After so many batches, and after the first, the package looks for its best graph and raises the price of
        cycles.

    Returns
    -------
    A
        The best graph. With ``"LR"`` the package itself drops the edges with a regression coefficient up to 0.3, with
        ``"QR"`` likewise; with ``"GPR"`` nothing is dropped. It may have cycles.
    """
    import castle.algorithms.gradient.rl.torch.rl as module

    d = X.shape[1]
    if d > 63:
        raise ValueError(f"RL of gcastle holds the parents of a node in 64 bits: at most 63 nodes, got {d}")

    class Actor(module.Actor):
        """The learner keeps these two of every batch, and with them the graph of their gradients: gigabytes."""

        def build_reward(self, reward_: Any) -> None:
            super().build_reward(reward_)
            self.log_softmax, self.graph_batch = self.log_softmax.detach(), self.graph_batch.detach()

    patches: dict[str, Any] = {"tqdm": _told("rl-bic"), "Actor": Actor}
    if regression == "GPR":
        bounds, reward = module.BIC_lambdas, module.get_Reward
        patches["BIC_lambdas"] = lambda table, *graphs_and_types: bounds(table, None, None, None, "GPR", score)
        patches["get_Reward"] = lambda *args: reward(*args[:8], "GPR", *args[9:])
        patches["graph_prunned_by_coef"] = lambda graph, table: graph
    with _session(rng) as seed, patch.multiple(module, **patches):
        model = module.RL(
            reg_type="LR" if regression == "GPR" else regression,
            score_type=score,
            batch_size=batch_size,
            nb_epoch=steps,
            lambda_iter_num=update_every,
            seed=seed,
        )
        model.learn(_table(X))
    return _graph(model.causal_matrix)


def corl(
    X: Array,
    rng: np.random.Generator,
    regression: str = "LR",
    score: str = "BIC",
    batch_size: int = 64,
    steps: int = 10_000,
) -> Array:
    """CORL of gcastle, with its default, episodic, reward.

    Parameters
    ----------
    regression
        ``"LR"`` (linear), ``"GPR"`` (Gaussian process, kernel width from the median distance, unit noise) or
        ``"GPR_learnable"`` (kernel fitted to each regression).
    score
        ``"BIC"``, with equal variances, or ``"BIC_different_var"``. The package has no penalty on edges: orders are
        compared by their complete graphs.
    batch_size, steps
        Orders in a batch, and batches. The package refuses batches smaller than the number of nodes, and looks for
        its best order every 500 batches and after the first.

    Returns
    -------
    A
        The graph of the best order. With ``"LR"`` the package drops the edges with a regression coefficient up to 0.3;
        otherwise nothing is dropped, and the graph is complete.
    """
    import castle.algorithms.gradient.corl.torch.corl as module

    patches: dict[str, Any] = {"tqdm": _told("corl")}
    if regression != "LR":
        reward = module.Reward
        patches["Reward"] = lambda **settings: reward(**{**settings, "regression_type": regression})
        patches["pruning_by_coef"] = lambda graph, table: graph
    with _session(rng) as seed, patch.multiple(module, **patches):
        model = module.CORL(
            reward_regression_type="LR",
            reward_score_type=score,
            batch_size=batch_size,
            iteration=steps,
            random_seed=seed,
        )
        model.learn(_table(X))
    return _graph(model.causal_matrix)


def pc(X: Array, rng: np.random.Generator, alpha: float = 0.05, variant: str = "original") -> Array:
    """PC of gcastle with Fisher's z test at level ``alpha``."""
    from castle.algorithms import PC

    with _session(rng):
        model = PC(variant=variant, alpha=alpha, ci_test="fisherz")
        model.learn(_table(X))
    return _graph(model.causal_matrix)


def dagma(X: Array, rng: np.random.Generator, lambda1: float = 0.03, w_threshold: float = 0.3) -> Array:
    """DAGMA for linear models, with the squared loss.

    Weights below ``w_threshold`` in absolute value are dropped. The two values are the defaults of ``fit``; the
    examples of its authors have ``lambda1=0.02``.
    """
    from dagma.linear import DagmaLinear

    with _session(rng):
        # The default of s is a list that fit changes when it retries: given here, so that no run depends on the last.
        W = DagmaLinear(loss_type="l2").fit(
            _table(X), lambda1=lambda1, w_threshold=w_threshold, s=[1.0, 0.9, 0.8, 0.7, 0.6]
        )
    return _graph(W)


def dagma_mlp(
    X: Array,
    rng: np.random.Generator,
    hidden: int = 10,
    lambda1: float = 0.02,
    lambda2: float = 0.005,
    w_threshold: float = 0.3,
    warm_iter: int = 50_000,
    max_iter: int = 80_000,
) -> Array:
    """DAGMA with one hidden layer of ``hidden`` sigmoid units.

    The package has one loss for these, the logarithm of the mean square. The weight of an edge is the norm of its
    weights in the first layer; those below ``w_threshold`` are dropped. Steps of Adam: ``warm_iter`` in each of three
    rounds and ``max_iter`` in the last. Every value is a default of the package.
    """
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear

    with _session(rng):
        model = DagmaMLP(dims=[X.shape[1], hidden, 1], bias=True)
        W = DagmaNonlinear(model).fit(
            _table(X),
            lambda1=lambda1,
            lambda2=lambda2,
            w_threshold=w_threshold,
            warm_iter=warm_iter,
            max_iter=max_iter,
        )
    return _graph(W)


def ges(X: Array, rng: np.random.Generator, lambda_value: float = 0.5) -> Array:
    """GES of causal-learn with the Gaussian BIC, as a CPDAG.

    The score of a parent is ``-n ln(r) / 2 - lambda_value ln(n)``: 1/2, the default of the package, is the usual BIC.
    """
    from causallearn.search.ScoreBased.GES import ges as search

    with _session(rng):
        return _cpdag(search(_table(X), "local_score_BIC", parameters={"lambda_value": lambda_value})["G"])


def grasp(X: Array, rng: np.random.Generator, lambda_value: float = 0.5) -> Array:
    """GRaSP of causal-learn with the Gaussian BIC, as a CPDAG.

    ``lambda_value=0.5`` is the usual BIC, the criterion of :func:`ges`; the default of the package is 2.
    """
    from causallearn.search.PermutationBased.GRaSP import grasp as search

    with _session(rng):
        return _cpdag(search(_table(X), parameters={"lambda_value": lambda_value}, verbose=False))


def boss(X: Array, rng: np.random.Generator, lambda_value: float = 0.5) -> Array:
    """BOSS of causal-learn with the Gaussian BIC, as a CPDAG.

    ``lambda_value=0.5`` is the usual BIC, the criterion of :func:`ges`; the default of the package is 2.
    """
    from causallearn.search.PermutationBased.BOSS import boss as search

    with _session(rng):
        return _cpdag(search(_table(X), parameters={"lambda_value": lambda_value}, verbose=False))


def flop(X: Array, rng: np.random.Generator, lambda_bic: float = 1.0, restarts: int = 20) -> Array:
    """FLOP of flopsearch with the Gaussian BIC, as a CPDAG.

    ``lambda_bic=1`` is the usual BIC, the criterion of :func:`ges`; its authors recommend 2. Its restarts are random
    and cannot be seeded: two runs may differ.
    """
    from flopsearch import flop as search

    with _session(rng):
        return _graph(search(_table(X), lambda_bic, restarts=restarts))


def _skeleton(graph: Any, d: int) -> Array:
    """The skeleton of a networkx graph over the nodes 0 to d - 1."""
    A = np.zeros((d, d), np.uint8)
    for i, j in graph.edges:
        A[i, j] = A[j, i] = 1
    return A


def _fisher_z(d: int, alpha: float | None) -> Callable[..., bool]:
    """The test of rcd, as ``test(i, j, given, X)``, at level ``alpha`` or its recommended 2 / d^2."""
    from rcd.utilities.ci_tests import fisher_z

    level = 2 / d**2 if alpha is None else alpha
    return lambda i, j, given, X: fisher_z(i, j, given, X, significance_level=level)


def marvel(X: Array, rng: np.random.Generator, alpha: float | None = None) -> Array:
    """MARVEL of rcd: the skeleton, as a graph in which every edge is undirected.

    Fisher's z test at level ``alpha``, by default 2 / d^2. Markov boundaries are found as the package does by default,
    from the precision matrix with a test at level 1 / d^2.
    """
    from rcd import marvel as method

    with _session(rng):
        return _skeleton(method.learn_and_get_skeleton(_fisher_z(X.shape[1], alpha), _table(X)), X.shape[1])


def rsl(X: Array, rng: np.random.Generator, alpha: float | None = None, clique_number: int | None = None) -> Array:
    """RSL of rcd: the skeleton, as a graph in which every edge is undirected.

    RSL-D, for graphs without diamonds, which needs no knowledge of the graph; with a ``clique_number`` RSL-W. Tests as
    in :func:`marvel`.
    """
    from rcd import rsl_d, rsl_w

    test = _fisher_z(X.shape[1], alpha)
    with _session(rng):
        if clique_number is None:
            graph = rsl_d.learn_and_get_skeleton(test, _table(X))
        else:
            graph = rsl_w.learn_and_get_skeleton(test, _table(X), clique_number)
    return _skeleton(graph, X.shape[1])


def lingam(X: Array, rng: np.random.Generator, measure: str = "pwling") -> Array:
    """DirectLiNGAM: the nonzero weights of the adaptive lasso that the package ends with, and no threshold."""
    from lingam import DirectLiNGAM

    with _session(rng) as seed:
        model = DirectLiNGAM(random_state=seed, measure=measure).fit(_table(X))
    # Its entry [i, j] is the weight of j -> i.
    return _graph(model.adjacency_matrix_.T)


@dataclass(frozen=True)
class Peer:
    """A method, and the modules to import before the clock starts."""

    function: Callable[..., Array]
    imports: tuple[str, ...]


METHODS: dict[str, Peer] = {
    "notears": Peer(notears, ("castle.algorithms",)),
    "notears-mlp": Peer(notears_mlp, ("castle.algorithms",)),
    "rl-bic": Peer(rl_bic, ("castle.algorithms",)),
    "corl": Peer(corl, ("castle.algorithms",)),
    "pc": Peer(pc, ("castle.algorithms",)),
    "dagma": Peer(dagma, ("dagma.linear",)),
    "dagma-mlp": Peer(dagma_mlp, ("dagma.nonlinear",)),
    "ges": Peer(ges, ("causallearn.search.ScoreBased.GES",)),
    "grasp": Peer(grasp, ("causallearn.search.PermutationBased.GRaSP",)),
    "boss": Peer(boss, ("causallearn.search.PermutationBased.BOSS",)),
    "flop": Peer(flop, ("flopsearch",)),
    "marvel": Peer(marvel, ("rcd",)),
    "rsl": Peer(rsl, ("rcd",)),
    "lingam": Peer(lingam, ("lingam",)),
}
