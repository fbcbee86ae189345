"""What a linear graph implies in numbers: coefficients with their errors, and total effects along its paths.

Both are conditional on the graph: they say what follows if it is the true one, relations are linear and nothing is
hidden. That is all that a graph and its regressions can say; to estimate effects under other assumptions is the work
of other libraries. Only :func:`effects` of a :class:`~vec2dag.confidence.Bootstrap` includes the doubt about the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.linalg import solve_triangular

from .._checks import brief, quoted, share
from ..columns import Columns
from ..graph import as_adjacency, topological_order
from ..moments import Moments

__all__ = ["Coefficients", "Effect", "coefficients", "effects", "total_effects"]

# A parent whose residual given the others is below this share of its own deviation is a function of them.
DEPENDENT = 1e-10


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Linear regressions of every node on its parents; 0 where there is no edge, NaN where there is no answer.

    Attributes
    ----------
    value : array of shape (d, d)
        ``value[i, j]`` of parent ``i`` for node ``j``, in the units of the table.
    error : array of shape (d, d)
        Standard errors, with ``n - k - 1`` degrees of freedom for ``k`` parents; NaN where there are none left, and
        where a parent is a linear function of the others.
    t, p_value : arrays of shape (d, d)
        Of the hypothesis that the coefficient is 0. The edges were chosen because they are not: for edges that the
        same rows have selected, p-values are too small.
    low, high : arrays of shape (d, d)
        Confidence interval.
    standardised : array of shape (d, d)
        ``value`` in standard deviations of both columns.
    covariances : list of d arrays of shape (k, k)
        Of the coefficients of every node, in the order of its parents; those of different nodes are independent.
    level : float
        Of the interval.
    """

    value: NDArray[np.float64]
    error: NDArray[np.float64]
    t: NDArray[np.float64]
    p_value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    standardised: NDArray[np.float64]
    covariances: list[NDArray[np.float64]]
    level: float


def coefficients(data: ArrayLike | Moments | list[Moments], A: ArrayLike, level: float = 0.95) -> Coefficients:
    """Regress every node of a DAG on its parents, with standard errors given the graph.

    Parameters
    ----------
    data : array of shape (n, d), Moments, or list of d Moments
        A list has the moments of the rows of each node, where these differ.
    A : array of shape (d, d)
        The DAG.
    level : float, default 0.95
        Of the confidence intervals.
    """
    by_node = data if isinstance(data, list) and isinstance(data[0], Moments) else None
    if by_node is None:
        moments = data if isinstance(data, Moments) else Moments.of(data)  # type: ignore[arg-type]
        moments.variances()  # refuses constant columns
        by_node = [moments] * len(moments.names)
    adjacency, level = as_adjacency(A), share("level", level)
    d = len(by_node)
    if adjacency.shape != (d, d):
        raise ValueError(f"A must have shape {(d, d)} for a table of {d} columns, got {adjacency.shape}")
    topological_order(adjacency)
    value, error, t, p, width, standardised = (np.zeros((d, d)) for _ in range(6))
    covariances = []
    for j, moments in enumerate(by_node):
        parents = np.flatnonzero(adjacency[:, j])
        if j == 0 or moments is not by_node[j - 1]:
            deviations = np.sqrt((moments.factor**2).sum(axis=0) / moments.n)
            # A parent may have one value where the node was not set.
            deviations = np.where(deviations > 0, deviations, 1.0)
            F = moments.factor / deviations
        dof = moments.n - len(parents) - 1
        units = deviations[j] / deviations[parents]
        beta, covariance = _least_squares(F[:, parents], F[:, j], dof)
        covariances.append(covariance * np.outer(units, units))
        value[parents, j] = beta * units
        standardised[parents, j] = value[parents, j] * deviations[parents] / deviations[j]
        error[parents, j] = np.sqrt(np.diagonal(covariances[j]))
        # dof is positive wherever the error is a number
        width[parents, j] = error[parents, j] * stats.t.ppf((1.0 + level) / 2.0, max(dof, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            t[parents, j] = value[parents, j] / error[parents, j]
        p[parents, j] = 2.0 * stats.t.sf(np.abs(t[parents, j]), max(dof, 1))
    return Coefficients(value, error, t, p, value - width, value + width, standardised, covariances, level)


def _least_squares(
    F: NDArray[np.float64], target: NDArray[np.float64], dof: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients (k,) and their covariance (k, k), from the rows of a factor of the centred data."""
    k = F.shape[1]
    unknown = np.full((k, k), np.nan)
    Q, R = np.linalg.qr(F) if k else (F, np.zeros((0, 0)))
    if R.shape != (k, k) or (np.abs(np.diagonal(R)) < DEPENDENT * np.linalg.norm(F, axis=0)).any():
        return np.asarray(np.linalg.lstsq(F, target, rcond=None)[0], np.float64), unknown
    beta = solve_triangular(R, Q.T @ target) if k else np.zeros(0)
    if dof < 1:
        return beta, unknown
    noise = float(((target - F @ beta) ** 2).sum()) / dof
    inverse = solve_triangular(R, np.eye(k)) if k else R
    return beta, noise * inverse @ inverse.T


def total_effects(W: ArrayLike) -> NDArray[np.float64]:
    """Total effects (d, d) of a linear DAG with coefficients ``W`` (d, d): ``T = (I - W)^-1``.

    ``T[i, j]`` is what a unit more of ``i`` does to ``j``, the sum over all directed paths of the products of their
    coefficients; 1 for a node on itself, and exactly 0 where there is no path.
    """
    weights = np.asarray(W, dtype=np.float64)
    order = topological_order((weights != 0).astype(np.uint8))
    T = np.eye(len(weights))
    for j in order:
        parents = np.flatnonzero(weights[:, j])
        T[:, j] += T[:, parents] @ weights[parents, j]
    return T


class Effect(NamedTuple):
    """A total effect and how sure it is.

    Attributes
    ----------
    value : float
        The sum over all directed paths; the median of the samples of a bootstrap.
    error : float
        Its standard error; the standard deviation of the samples.
    low, high : float
        The interval of confidence ``level``.
    level : float
    share : float
        Of the samples of a bootstrap that have a directed path at all; of one graph 1 or 0.
    """

    value: float
    error: float
    low: float
    high: float
    level: float
    share: float


def effects(of: Any, i: int | str, j: int | str, *, data: Any = None, level: float = 0.95) -> Effect:
    """The total effect of ``i`` on ``j`` that a linear graph implies.

    Parameters
    ----------
    of : Bootstrap, fitted ALIAS, or pair of arrays (A, W), each of shape (d, d)
        Of a bootstrap the interval holds percentiles of the effects in the graphs of all samples, 0 where there is no
        path: it includes the doubt about the graph, as far as samples differ in it. (Of directions that are free it has
        only those that the searches happened to return.) Otherwise the interval is the one given the graph, by the
        delta method.
    i, j : int or str
        Columns, by position or by name.
    data : array of shape (n, d), or Moments, optional
        The table; only for a pair (A, W). Coefficients and their errors are then those of the regressions on it, in
        place of ``W``, which has no errors.
    level : float, default 0.95

    Returns
    -------
    Effect

    Examples
    --------
    >>> W = np.array([[0, 2.0, 1.0], [0, 0, 3.0], [0, 0, 0]])
    >>> effects((W != 0, W), 0, 2).value
    7.0
    """
    share("level", level)
    if hasattr(of, "total_effects"):
        _refuse_data(data, "a bootstrap, which come from its samples")
        if not of.linear:
            raise ValueError("total effects are of linear graphs, and the regressions of this bootstrap are not linear")
        _refuse_categories(of.columns)
        a, b = column_at(i, "i", of.names), column_at(j, "j", of.names)
        return _over_samples(of.total_effects(a, b), level)
    A, W, names, moments = _graph(of, data)
    a, b = column_at(i, "i", names), column_at(j, "j", names)
    if moments is None:
        T = total_effects(W)
        return Effect(float(T[a, b]), np.nan, np.nan, np.nan, level, _has_path(A, a, b))
    fitted = coefficients(moments, A, level)
    T = total_effects(fitted.value)
    # dT_ij / dW_pk = T_ip T_kj, and coefficients of different nodes are independent.
    variance = 0.0
    for k in np.flatnonzero(T[:, b]):
        along = T[a, np.flatnonzero(A[:, k])]
        if (along != 0).any():
            variance += T[k, b] ** 2 * float(along @ fitted.covariances[k] @ along)
    value, error = float(T[a, b]), float(np.sqrt(variance))
    width = float(stats.norm.ppf((1.0 + level) / 2.0)) * error
    return Effect(value, error, value - width, value + width, level, _has_path(A, a, b))


def _has_path(A: NDArray[np.uint8], a: int, b: int) -> float:
    """1 if there is a directed path; effects along several may cancel."""
    return float(a == b or total_effects(A.astype(np.float64))[a, b] > 0)


def _over_samples(values: NDArray[np.float64], level: float) -> Effect:
    low, median, high = np.quantile(values, [(1.0 - level) / 2.0, 0.5, (1.0 + level) / 2.0]).tolist()
    error = float(values.std(ddof=1)) if len(values) > 1 else np.nan
    return Effect(median, error, low, high, level, float((values != 0).mean()))


def _graph(of: Any, data: Any) -> tuple[NDArray[np.uint8], NDArray[np.float64], tuple[str, ...] | int, Any]:
    """Graph, coefficients, names or their number, and the statistics of the table."""
    if hasattr(of, "adjacency_matrix_"):
        _refuse_data(data, "a fitted model, which come from the table of the fit")
        if not of.edges_.linear:
            raise ValueError("total effects are of linear graphs, and the regressions of this model are not linear")
        _refuse_categories(of.columns_)
        return of.adjacency_matrix_, of.weights_, of.moments_.names, of.node_moments_
    if not isinstance(of, tuple | list) or len(of) != 2:
        raise ValueError(f"effects are of a Bootstrap, a fitted ALIAS, or a pair (A, W), got {brief(of)}")
    A, W = as_adjacency(of[0]), np.asarray(of[1], dtype=np.float64)
    if A.ndim != 2 or W.shape != A.shape:
        raise ValueError(f"A and W must have the same shape (d, d), got {A.shape} and {W.shape}")
    if ((W != 0) & (A == 0)).any():
        raise ValueError("W must be 0 where A has no edge")
    moments = data if data is None or isinstance(data, Moments) else Moments.of(data)
    return A, W, len(A), moments


def _refuse_categories(columns: Columns | None) -> None:
    if columns is not None and columns.by_name:
        raise ValueError(
            f"total effects are of graphs of numbers, and {quoted(columns.by_name)} are categories; coefficients "
            "between numbers, with categories among the parents, are in edges_"
        )


def _refuse_data(data: Any, of: str) -> None:
    if data is not None:
        raise ValueError(f"data has no effect on the effects of {of}")


def column_at(which: int | str, parameter: str, names: Sequence[str] | int) -> int:
    """The position of a column; ``names``, or how many there are."""
    d = names if isinstance(names, int) else len(names)
    if isinstance(which, str):
        if isinstance(names, int) or which not in names:
            known = f"the names are {quoted(names)}" if not isinstance(names, int) else "arrays have no names"
            raise ValueError(f"{parameter}={brief(which)} is no column: {known}")
        return list(names).index(which)
    if not isinstance(which, int | np.integer) or isinstance(which, bool) or not 0 <= which < d:
        raise ValueError(f"{parameter} must be a name or a position from 0 to {d - 1}, got {brief(which)}")
    return int(which)
