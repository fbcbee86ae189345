"""How close an estimated graph is to the true one, and how far the scale of the data alone would lead.

Graph metrics take ``(true, pred)``, arrays of shape (..., d, d) in which a nonzero entry ``[i, j]`` is the
edge ``i -> j``; ``[i, j]`` and ``[j, i]`` together are an undirected edge. Leading dimensions broadcast, so
one true graph can be compared with a batch of estimates; without leading dimensions the result is a Python
number.

For DAGs the values are those of gCastle's ``MetricsDAG``, except that where it divides zero by zero and
returns nan (precision of an empty estimate, F1 without a correct edge) the value here is 0. For estimates
with undirected edges that class counts such an edge as right, twice; here it differs from a directed one.
"""

import importlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr, solve_triangular, svd
from scipy.sparse import csr_array

from ._checks import as_numbers, as_real, as_table, brief, choose, flag, number
from .graph import as_adjacency, cpdag, is_dag, skeleton, topological_order

__all__ = [
    "ancestor_aid",
    "cpdag_shd",
    "evaluate",
    "f1",
    "fdr",
    "fpr",
    "nnz",
    "order_divergence",
    "parent_aid",
    "precision",
    "r2_sortability",
    "recall",
    "shd",
    "sid",
    "skeleton_f1",
    "skeleton_precision",
    "skeleton_recall",
    "skeleton_shd",
    "sortability",
    "sortnregress",
    "tpr",
    "varsortability",
]


def _pair(true: ArrayLike, pred: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    T, P = as_adjacency(true, "true"), as_adjacency(pred, "pred")
    if T.shape[-1] != P.shape[-1]:
        raise ValueError(f"true and pred must have equally many nodes, got shapes {T.shape} and {P.shape}")
    try:
        np.broadcast_shapes(T.shape, P.shape)
    except ValueError:
        raise ValueError(f"shapes of true {T.shape} and pred {P.shape} do not broadcast") from None
    return T.astype(bool), P.astype(bool)


def _plain(value: NDArray[Any]) -> Any:
    return value.item() if np.ndim(value) == 0 else value


def _edges(A: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.sum(A, axis=(-2, -1), dtype=np.int64)


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Any:
    """Quotient in which an empty denominator counts as 1, the convention for empty graphs."""
    return _plain(numerator / np.maximum(denominator, 1))


def shd(true: ArrayLike, pred: ArrayLike) -> Any:
    """Structural Hamming distance: additions, removals and reversals that turn one graph into the other.

    The number of node pairs whose edge differs, so a reversal counts 1, and so does an undirected edge
    against a directed one.

    Parameters
    ----------
    true, pred : arrays of shape (..., d, d)

    Returns
    -------
    distance : int, or int array of shape (...)
    """
    T, P = _pair(true, pred)
    differs = T != P
    return _plain(_edges(np.triu(differs | np.swapaxes(differs, -1, -2))))


def fdr(true: ArrayLike, pred: ArrayLike) -> Any:
    """False discovery rate: (reversed + extra edges) / estimated edges; 0 for an empty estimate."""
    T, P = _pair(true, pred)
    return _ratio(_edges(P & ~T), _edges(P))


def tpr(true: ArrayLike, pred: ArrayLike) -> Any:
    """True positive rate: correctly directed edges / true edges; 0 for an empty true graph."""
    T, P = _pair(true, pred)
    return _ratio(_edges(P & T), _edges(T))


def fpr(true: ArrayLike, pred: ArrayLike) -> Any:
    """False positive rate: (reversed + extra edges) / (d (d - 1) / 2 - true edges).

    A reversal is in the numerator although its pair is not among the negatives of the denominator, so the
    rate can exceed 1 on dense graphs.
    """
    T, P = _pair(true, pred)
    d = T.shape[-1]
    return _ratio(_edges(P & ~T), d * (d - 1) // 2 - _edges(T))


def precision(true: ArrayLike, pred: ArrayLike) -> Any:
    """Correctly directed edges / estimated edges; 0 for an empty estimate."""
    T, P = _pair(true, pred)
    return _ratio(_edges(P & T), _edges(P))


def recall(true: ArrayLike, pred: ArrayLike) -> Any:
    """Correctly directed edges / true edges: :func:`tpr` under its other name."""
    return tpr(true, pred)


def f1(true: ArrayLike, pred: ArrayLike) -> Any:
    """Harmonic mean of precision and recall, ``2 TP / (true + estimated edges)``; 0 when no edge is right."""
    T, P = _pair(true, pred)
    return _ratio(2 * _edges(P & T), _edges(T) + _edges(P))


def nnz(true: ArrayLike, pred: ArrayLike) -> Any:
    """Number of estimated edges; ``true`` fixes only the number of nodes."""
    T, P = _pair(true, pred)
    return _plain(_edges(np.broadcast_to(P, np.broadcast_shapes(T.shape, P.shape))))


def _skeletons(true: ArrayLike, pred: ArrayLike) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    T, P = _pair(true, pred)
    return np.triu(skeleton(T)), np.triu(skeleton(P))


def skeleton_shd(true: ArrayLike, pred: ArrayLike) -> Any:
    """Number of node pairs adjacent in one graph and not in the other, directions ignored."""
    return shd(*_skeletons(true, pred))


def skeleton_precision(true: ArrayLike, pred: ArrayLike) -> Any:
    """Correct adjacencies / estimated adjacencies, directions ignored; 0 for an empty estimate."""
    return precision(*_skeletons(true, pred))


def skeleton_recall(true: ArrayLike, pred: ArrayLike) -> Any:
    """Correct adjacencies / true adjacencies, directions ignored; 0 for an empty true graph."""
    return recall(*_skeletons(true, pred))


def skeleton_f1(true: ArrayLike, pred: ArrayLike) -> Any:
    """Harmonic mean of :func:`skeleton_precision` and :func:`skeleton_recall`."""
    return f1(*_skeletons(true, pred))


def _is_partially_directed(A: NDArray[np.bool_]) -> bool:
    return is_dag(A & ~A.T)


def _classes(A: NDArray[np.bool_], name: str) -> NDArray[np.uint8]:
    C = np.empty(A.shape, dtype=np.uint8)
    for index in np.ndindex(A.shape[:-2]):
        graph = A[index]
        if is_dag(graph):
            C[index] = cpdag(graph)
        elif _is_partially_directed(graph):
            C[index] = graph
        else:
            raise ValueError(f"{name} has a directed cycle: it must be a DAG or a CPDAG")
    return C


def cpdag_shd(true: ArrayLike, pred: ArrayLike) -> Any:
    """Structural Hamming distance between Markov equivalence classes: 0 exactly for equivalent DAGs.

    Parameters
    ----------
    true, pred : arrays of shape (..., d, d)
        DAGs, which are completed first, or CPDAGs (recognised by an undirected edge), taken as they are.

    Returns
    -------
    distance : int, or int array of shape (...)
        An edge that is directed in one class and undirected, or opposite, in the other counts 1.
    """
    T, P = _pair(true, pred)
    return shd(_classes(T, "true"), _classes(P, "pred"))


def _adjustment(measure: str, true: ArrayLike, pred: ArrayLike, normalised: bool, dags: bool) -> Any:
    flag("normalised", normalised)
    try:
        gadjid = importlib.import_module("gadjid")
    except ImportError as error:
        raise ImportError('adjustment distances need the package gadjid: pip install "vec2dag[metrics]"') from error
    T, P = _pair(true, pred)
    for name, graphs in (("true", T), ("pred", P)):
        for index in np.ndindex(graphs.shape[:-2]):
            if not (is_dag(graphs[index]) if dags else _is_partially_directed(graphs[index])):
                allowed = "a DAG" if dags else "a DAG or a CPDAG"
                raise ValueError(f"{name} has a directed cycle: it must be {allowed}")
    # int8, row to column, 1 for i -> j and 2 for an undirected edge.
    coded = [A.astype(np.int8) + (A & np.swapaxes(A, -1, -2)) for A in (T, P)]
    shape = np.broadcast_shapes(T.shape, P.shape)
    T8, P8 = (np.broadcast_to(A, shape) for A in coded)
    distances = np.zeros(shape[:-2], dtype=np.float64 if normalised else np.int64)
    # The library panics where there is no pair of nodes to be wrong about.
    for index in np.ndindex(shape[:-2]) if shape[-1] > 1 else ():
        pair = (np.ascontiguousarray(A[index]) for A in (T8, P8))
        share, mistakes = getattr(gadjid, measure)(*pair, edge_direction="from row to column")
        distances[index] = share if normalised else mistakes
    return _plain(distances)


def sid(true: ArrayLike, pred: ArrayLike, *, normalised: bool = False) -> Any:
    """Structural intervention distance between DAGs (Peters and Bühlmann, 2015), through ``gadjid``.

    The number of ordered pairs (i, j) for which adjusting for the parents of i in ``pred`` gives the wrong
    interventional distribution of j under do(i) in ``true``. Not symmetric.

    Parameters
    ----------
    true, pred : arrays of shape (..., d, d)
        DAGs.
    normalised : bool, default False
        Divide by d (d - 1).

    Returns
    -------
    distance : int (float if normalised), or array of shape (...)
    """
    return _adjustment("sid", true, pred, normalised, dags=True)


def parent_aid(true: ArrayLike, pred: ArrayLike, *, normalised: bool = False) -> Any:
    """Parent adjustment identification distance (Henckel, Würtzen, Weichwald, 2024) of DAGs or CPDAGs.

    Parameters and result as in :func:`sid`.
    """
    return _adjustment("parent_aid", true, pred, normalised, dags=False)


def ancestor_aid(true: ArrayLike, pred: ArrayLike, *, normalised: bool = False) -> Any:
    """Ancestor adjustment identification distance of DAGs or CPDAGs; parameters, result as in :func:`sid`."""
    return _adjustment("ancestor_aid", true, pred, normalised, dags=False)


def evaluate(true: ArrayLike, pred: ArrayLike, *, adjustment: bool = False) -> dict[str, float]:
    """All graph metrics of one estimate.

    Parameters
    ----------
    true, pred : arrays of shape (d, d)
    adjustment : bool, default False
        Add ``sid``, ``parent_aid`` and ``ancestor_aid``, which need the extra ``vec2dag[metrics]`` and DAGs.

    Returns
    -------
    values : dict
        ``shd, nnz, fdr, tpr, fpr, precision, recall, f1, skeleton_shd, skeleton_precision, skeleton_recall,
        skeleton_f1, cpdag_shd``; the last is nan when ``pred`` has a directed cycle and therefore no class.
    """
    T, P = _pair(true, pred)
    if T.ndim != 2 or P.ndim != 2:
        raise ValueError(f"true and pred must have shape (d, d), got {T.shape} and {P.shape}")
    flag("adjustment", adjustment)
    functions = [shd, nnz, fdr, tpr, fpr, precision, recall, f1]
    functions += [skeleton_shd, skeleton_precision, skeleton_recall, skeleton_f1]
    values: dict[str, float] = {function.__name__: function(T, P) for function in functions}
    values["cpdag_shd"] = cpdag_shd(T, P) if _is_partially_directed(P) else float("nan")
    if adjustment:
        values |= {function.__name__: function(T, P) for function in (sid, parent_aid, ancestor_aid)}
    return values


def order_divergence(order: ArrayLike, A: ArrayLike) -> Any:
    """Number of edges of ``A`` that point backwards in ``order``: edges no DAG with that order can contain.

    Parameters
    ----------
    order : int array of shape (..., d)
        Nodes from first to last, each exactly once.
    A : array of shape (..., d, d)

    Returns
    -------
    divergence : int, or int array of shape (...)
    """
    adjacency, nodes = as_adjacency(A), as_real(order, "order")
    d = adjacency.shape[-1]
    if nodes.ndim == 0 or nodes.shape[-1] != d or (np.sort(nodes, axis=-1) != np.arange(d)).any():
        raise ValueError(f"order must hold each node 0 to {d - 1} once along its last axis, got {brief(order)}")
    position = np.argsort(nodes, axis=-1)
    backwards = position[..., :, None] > position[..., None, :]
    return _plain(_edges(adjacency.astype(bool) & backwards))


def sortability(scores: ArrayLike, A: ArrayLike, tol: float = 0.0) -> float:
    """Share of causally ordered pairs of the DAG ``A`` in which the score grows from cause to effect.

    A pair (i, j) counts once for every length 1, 2, ..., d - 1 that a directed path from i to j can have
    (Reisach, Seiler, Weichwald, 2021). Reachability is boolean: how many such paths there are does not
    matter. 1 means that sorting by the score gives a causal order, 0 that sorting the other way does.

    Parameters
    ----------
    scores : array of shape (d,)
    A : array of shape (d, d)
        DAG.
    tol : float, default 0.0
        Scores at most this far apart are a tie and count one half.

    Returns
    -------
    value : float in [0, 1]; nan for a graph without edges
    """
    values = as_numbers(scores, "scores")
    adjacency = as_adjacency(A)
    topological_order(adjacency)  # a cycle has paths of every length: refuse it
    if values.shape != adjacency.shape[:1]:
        raise ValueError(f"A has {len(adjacency)} nodes, got scores (columns of X) of shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"scores must be finite numbers, got {brief(scores)}")
    tol = number("tol", tol, least=0)
    difference = values[None, :] - values[:, None]
    credit = ((difference >= -tol).astype(np.float64) + (difference > tol)) / 2
    edges = csr_array(adjacency.astype(np.int32))
    reach = adjacency.astype(bool)  # pairs joined by a path of the current length
    pairs, sorted_pairs = 0, 0.0
    while reach.any():
        pairs += int(reach.sum())
        sorted_pairs += float(credit[reach].sum())
        reach = (edges @ reach.astype(np.int32)) > 0
    return sorted_pairs / pairs if pairs else float("nan")


def varsortability(X: ArrayLike, A: ArrayLike, tol: float = 0.0) -> float:
    """:func:`sortability` by variance: near 1, the scales of the columns alone give the causal order.

    Parameters
    ----------
    X : array of shape (n, d)
    A : array of shape (d, d)
        DAG.
    tol : float, default 0.0
        Variances at most this far apart are a tie and count one half.

    Returns
    -------
    value : float in [0, 1]; nan for a graph without edges
    """
    return sortability(as_table(X, rows=2).var(axis=0), A, tol)


def r2_sortability(X: ArrayLike, A: ArrayLike, tol: float = 0.0) -> float:
    """:func:`sortability` by the R2 of each variable regressed on all others; does not depend on units.

    Parameters and result as in :func:`varsortability`.
    """
    return sortability(_r2(as_table(X, rows=2)), A, tol)


def _r2(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """R2 of every column of ``X`` (n, d) given all others: 1 - 1 / [C^-1]_jj with C the correlation matrix.

    From a QR of the data, not from C, whose condition is the square. A column that others determine has R2
    = 1 and a constant one R2 = 0.
    """
    Z = X - X.mean(axis=0)
    varies = np.sqrt((Z**2).sum(axis=0)) > 1e-13 * np.sqrt(len(X)) * np.abs(X).max(axis=0)
    return r2_scores(np.where(varies, Z, 0.0))


def r2_scores(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """R2 of every column given all others, from centred data (n, d) or a triangular factor of them."""
    norm = np.sqrt((Z**2).sum(axis=0))
    varies = norm > 0
    r2 = np.zeros(Z.shape[1])
    Z = Z[:, varies] / norm[varies]
    if Z.shape[1] == 0:
        return r2
    (R,) = qr(Z, mode="r", check_finite=False)
    R = R[: Z.shape[1]]
    smallest = 1e-13 * max(Z.shape)
    if len(R) == Z.shape[1] and np.abs(np.diag(R)).min() > smallest:
        # Z'Z = R'R = C, so [C^-1]_jj is the squared norm of row j of R^-1.
        vif = (solve_triangular(R, np.eye(len(R)), check_finite=False) ** 2).sum(axis=1)
    else:
        # The limit of ridge regularisation: infinite for a variable that takes part in a linear dependence.
        _, s, Vt = svd(R, check_finite=False)
        s = np.concatenate([s, np.zeros(len(Vt) - len(s))])
        null = s <= smallest
        vif = (Vt[~null] ** 2 / s[~null, None] ** 2).sum(axis=0)
        vif[(Vt[null] ** 2).sum(axis=0) > 1e-12] = np.inf
    r2[varies] = 1 - 1 / vif
    return r2


def sortnregress(
    X: ArrayLike, decreasing: bool = False, *, by: str = "variance", threshold: float = 0.0
) -> NDArray[np.float64]:
    """Baseline: sort the columns by a score and regress each on those before it (Reisach et al., 2021).

    The regressions are adaptive Lassos, weighted by the least-squares coefficients, the penalty chosen by
    BIC.

    Parameters
    ----------
    X : array of shape (n, d), n > d
    decreasing : bool, default False
        Start from the largest score instead of the smallest.
    by : {"variance", "r2"}, default "variance"
        Score of a column: its variance, or its R2 given all others.
    threshold : float, default 0.0
        Coefficients of at most this size are set to 0; the paper prunes every linear method at 0.3.

    Returns
    -------
    W : array of shape (d, d), float64
        Coefficients; ``W[i, j] != 0`` is the edge ``i -> j``.
    """
    from sklearn.linear_model import LassoLarsIC, LinearRegression

    values = as_table(X, rows=2)
    n, d = values.shape
    if n <= d:
        raise ValueError(f"X must have more rows than columns for least squares, got shape {values.shape}")
    choose("by", by, dict.fromkeys(("variance", "r2")))
    flag("decreasing", decreasing)
    number("threshold", threshold, least=0)
    scores = values.var(axis=0) if by == "variance" else _r2(values)
    order = np.argsort(-scores if decreasing else scores, kind="stable")
    W = np.zeros((d, d))
    for k in range(1, d):
        before, target = order[:k], values[:, order[k]]
        size = np.abs(LinearRegression().fit(values[:, before], target).coef_)
        W[before, order[k]] = LassoLarsIC(criterion="bic").fit(values[:, before] * size, target).coef_ * size
    return np.where(np.abs(W) > threshold, W, 0.0)
