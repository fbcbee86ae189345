"""From what a method returned to numbers: pruning and comparison with the truth, outside the method's process."""

import contextlib
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import GaussianProcess, Score, is_dag, metrics, prune
from vec2dag.search.descent import resolution
from vec2dag.simulate import Dataset

from .data import prunings

Graph = NDArray[np.uint8]
# With one thread: runs are being timed meanwhile.
PRUNE = {
    "linear": prune.prune_linear,
    "cam": partial(prune.prune_cam, n_jobs=1),
    "ci": partial(prune.prune_ci, n_jobs=1),
}


def consistent_extension(C: Graph) -> Graph | None:
    """A DAG with the edges and v-structures of a partially directed graph (Dor & Tarsi 1992), or None.

    Parameters
    ----------
    C : array of shape (d, d)
        1 at ``[i, j]`` alone for ``i -> j``, at both places for an undirected edge.
    """
    left = np.array(C) != 0
    directed = left & ~left.T
    A = directed.copy()
    nodes = list(range(len(left)))
    while nodes:
        for x in nodes:
            around = np.flatnonzero(left[x] | left[:, x])
            free = np.flatnonzero(left[x] & left[:, x])
            adjacent = left[np.ix_(free, around)] | left[np.ix_(around, free)].T | (free[:, None] == around)
            if not (left[x] & ~left[:, x]).any() and adjacent.all():
                A[free, x] = True
                left[x] = left[:, x] = False
                nodes.remove(x)
                break
        else:
            return None
    return A.astype(np.uint8)


def compare(truth: Graph, A: Graph) -> dict[str, float]:
    """The numbers of the tables, of the directed graphs and of their skeletons."""
    skeleton = {
        "skeleton_shd": metrics.skeleton_shd(truth, A),
        "skeleton_precision": metrics.skeleton_precision(truth, A),
        "skeleton_recall": metrics.skeleton_recall(truth, A),
        "skeleton_f1": metrics.skeleton_f1(truth, A),
    }
    directed = {
        "shd": metrics.shd(truth, A),
        "fdr": metrics.fdr(truth, A),
        "tpr": metrics.tpr(truth, A),
        "edges": int(np.count_nonzero(A)),
        "correct": int(np.count_nonzero(np.asarray(A) & truth)),
    }
    # Undefined where a graph has a directed cycle.
    with contextlib.suppress(ValueError):
        directed["cpdag_shd"] = metrics.cpdag_shd(truth, A)
    return {name: round(float(value), 6) for name, value in (directed | skeleton).items()}


def evaluate(data: Dataset, name: str, found: dict[str, Any], undirected: bool = False) -> dict[str, Any]:
    """Fields of a row: edges, metrics by pruning, and the curve if there is one.

    Parameters
    ----------
    data : Dataset
    name : str
        Of the data, for the prunings that apply.
    found : dict
        What the method returned, ``"A"`` among it unless only a number was measured.
    undirected : bool, default False
        Whether 1 in both directions is an undirected edge, of which a DAG of the class chooses one, and no cycle.
    """
    row: dict[str, Any] = {k: np.asarray(found[k]).item() for k in ("score", "steps") if k in found}
    if "A" not in found:
        return row | {"metrics": {"none": {k: float(v) for k, v in found.items() if np.ndim(v) == 0}}}
    A = (np.asarray(found["A"]) != 0).astype(np.uint8)
    dag = A if is_dag(A) else consistent_extension(A) if undirected else None
    row |= stored(A)
    row["metrics"] = {"none": compare(data.A, A if dag is None else dag)}
    if dag is None:
        row["dag"] = False
    else:
        for pruning in prunings(name):
            row["metrics"][pruning] = compare(data.A, PRUNE[pruning](data.X, dag))
    if "curve_steps" in found:
        shd = [int(metrics.shd(data.A, prune.prune_linear(data.X, graph))) for graph in found["curve_graphs"]]
        rewards = np.round(np.asarray(found["curve_rewards"], dtype=float), 6).tolist()
        row["curve"] = {"step": np.asarray(found["curve_steps"]).tolist(), "shd": shd, "reward": rewards}
    return row


def stored(A: Graph) -> dict[str, Any]:
    """A graph as fields of a row: its edges, or the order of its nodes if that says all, as for a complete DAG."""
    d = len(A)
    order = np.argsort(-A.sum(axis=1, dtype=int), kind="stable")
    if d > 1 and np.array_equal(A[np.ix_(order, order)], np.triu(np.ones((d, d), np.uint8), 1)):
        return {"order": order.tolist()}
    return {"edges": np.argwhere(A).tolist()}


def graph_of(row: dict[str, Any], d: int) -> Graph:
    """The graph of a row, shape (d, d)."""
    A = np.zeros((d, d), np.uint8)
    if "order" in row:
        A[np.ix_(row["order"], row["order"])] = np.triu(np.ones((d, d), np.uint8), 1)
    else:
        A[[i for i, _ in row["edges"]], [j for _, j in row["edges"]]] = 1
    return A


def reaches_truth(data: Dataset, settings: dict[str, Any], found: Graph) -> bool:
    """Whether a graph that the estimator found with these settings scores at least as high as the true one."""
    regression = GaussianProcess(**settings["gp"]) if "gp" in settings else settings.get("regression", "linear")
    # Centred, as by the estimator.
    score = Score(data.X - data.X.mean(axis=0), regression, settings["criterion"])
    true, reached = score(np.stack([data.A, found]))
    return bool(reached >= true - resolution(score))


def data_measures(data: Dataset) -> dict[str, float]:
    """Varsortability, and what comes out when paths count with their multiplicity in the denominator only.

    With ``P_k[i, j]`` the number of directed paths of length k from i to j, the second is the sum over k of the pairs
    with ``P_k > 0`` and increasing variance, over the sum of all ``P_k``.
    """
    variance = data.X.var(axis=0)
    increasing = variance[:, None] < variance
    edges = data.A.astype(np.float64)
    paths, pairs, total = edges, 0.0, 0.0
    while paths.any():
        pairs += np.count_nonzero(increasing & (paths > 0))
        total += paths.sum()
        paths = paths @ edges
    return {
        "varsortability": float(metrics.varsortability(data.X, data.A)),
        "paths_in_denominator": pairs / total if total else float("nan"),
    }
