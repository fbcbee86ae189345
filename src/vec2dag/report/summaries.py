"""What a page shows beyond the graph: small enough for a file beside it, with nothing that JSON cannot hold."""

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import as_table, brief, frame_labels, quoted
from ..confidence.effects import coefficients
from ..estimator import ALIAS
from ..moments import Moments
from ..scores import as_criterion, is_criterion

__all__ = ["FORMAT", "as_plain", "of_table", "summary", "table_of"]

FORMAT = {"format": "vec2dag-summary", "version": 1}
# Bars of a histogram, points of a curve, and columns up to which all correlations are kept.
BINS, POINTS, CORRELATED = 30, 500, 500


def summary(model: ALIAS, X: Any = None) -> dict[str, Any]:
    """What a page shows about a fit beyond the graph and ``run.json``, ready for JSON.

    Parameters
    ----------
    model : fitted ALIAS
    X : array of shape (n, d), data frame, or Moments, optional
        The table of the fit, of which histograms are made; correlations need only what the model keeps.

    Returns
    -------
    dict
        ``made`` (date and time), ``model`` (what the score assumes), ``edges`` (of every edge all that is in
        ``edges_``, ends by position), ``pruning`` (the verdicts likewise), ``history`` (at most 500 steps, ``step``
        says which), ``columns`` (of every column mean, deviation, range and a histogram of 30 bars; None without rows)
        and ``correlations`` (the lower triangle, row by row; None beyond 500 columns).

    Raises
    ------
    ValueError
        ``X`` is not the table of the fit.
    """
    check_is_fitted(model)
    names = tuple(model.graph_.nodes)
    place = {name: i for i, name in enumerate(names)}
    edges = [row | {"source": place[row["source"]], "target": place[row["target"]]} for row in model.edges_.rows]
    linear, categories = bool(model.edges_.linear), model.columns_.categorical
    if linear and not categories.any() and edges and "p_value" not in edges[0]:
        p = coefficients(model.node_moments_, model.adjacency_matrix_).p_value
        edges = [edge | {"p_value_given_graph": float(p[edge["source"], edge["target"]])} for edge in edges]
    return FORMAT | as_plain(
        {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "model": {
                "linear": linear,
                "equal_variances": _equal_variances(model),
                "score_equivalent": hasattr(model, "cpdag_"),
            },
            "edges": edges,
            "pruning": [dataclasses.asdict(verdict) for verdict in model.prune_table_],
            "history": _thinned(model.history_),
            **_of_table_of_fit(model, X),
        }
    )


def _of_table_of_fit(model: ALIAS, X: Any) -> dict[str, Any]:
    """What a summary says of the table of the fit; codes of categories have neither histograms nor correlations."""
    if model.columns_.categorical.any():
        return {"columns": None, "correlations": None}
    return of_table(model.moments_) if X is None else of_table(_table_of_fit(model, X), model.moments_)


def _equal_variances(model: ALIAS) -> bool | None:
    """Whether the criterion takes the variances of the noises to be equal; None if nobody knows."""
    criterion = model.parameters_["criterion"]
    known = as_criterion(criterion) if is_criterion(criterion) else criterion
    return getattr(known, "equal_variances", None)


def _table_of_fit(model: ALIAS, X: Any) -> NDArray[np.float64] | Moments:
    """The table (n, d), refused if it cannot be that of the fit."""
    names = tuple(model.graph_.nodes)
    data = table_of(X, names)
    if not isinstance(data, Moments) and np.isnan(data).any():
        if (np.isnan(data).sum(axis=0) != model.missing_).any():
            raise ValueError("X is not the table of the fit: that had other numbers of missing values")
        return data
    moments, fitted = data if isinstance(data, Moments) else Moments.of(data, names), model.moments_
    if moments.n != fitted.n:
        raise ValueError(f"X is not the table of the fit: that had {fitted.n:,} rows, X has {moments.n:,}")
    deviations = np.sqrt(fitted.variances())
    if model.standardized_:
        moments = moments.standardised()
    apart = np.abs(moments.covariance - fitted.covariance) / np.outer(deviations, deviations)
    i, j = np.unravel_index(np.argmax(apart), apart.shape)
    # summing in another order changes less
    if not apart[i, j] <= 1e-6:
        what = f"variance of {quoted([names[i]])}" if i == j else f"covariance of {quoted([names[i], names[j]])}"
        raise ValueError(
            f"X is not the table of the fit: there the {what} is {fitted.covariance[i, j]:.6g}, not "
            f"{moments.covariance[i, j]:.6g}"
        )
    return data


def table_of(X: Any, names: Sequence[str]) -> NDArray[np.float64] | Moments:
    """The table (n, d) with its columns in the order of ``names``."""
    if isinstance(X, Moments):
        labels: Sequence[Any] | None = X.names
    else:
        labels = frame_labels(X)
    if labels is not None:
        place = {str(label): i for i, label in enumerate(labels)}
        if missing := [name for name in names if name not in place]:
            raise ValueError(f"X lacks columns of the graph: {quoted(missing)}")
        order = np.array([place[name] for name in names], dtype=np.int64)
        return X.taken(order) if isinstance(X, Moments) else np.ascontiguousarray(as_table(X, missing=True)[:, order])
    values = as_table(X, missing=True)
    if values.shape[1] != len(names):
        raise ValueError(f"X must have the {len(names)} columns of the graph, got shape {values.shape}")
    return values


def of_table(data: NDArray[np.float64] | Moments, fitted: Moments | None = None) -> dict[str, Any]:
    """The entries ``columns`` and ``correlations`` of a summary, of a table (n, d) or of its moments.

    Of a table with missing values columns show those that are there, and correlations are of ``fitted``.
    """
    rows = None if isinstance(data, Moments) else data
    columns, correlations = None, None
    if rows is not None and fitted is not None and np.isnan(rows).any():
        moments = fitted
        means, deviations = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    else:
        moments = data if isinstance(data, Moments) else Moments.of(data)
        means, deviations = moments.mean, np.sqrt(moments.variances())
    if rows is not None:
        columns = [
            {"mean": float(mean), "deviation": float(deviation), **_histogram(column[~np.isnan(column)])}
            for mean, deviation, column in zip(means, deviations, rows.T, strict=True)
        ]
    if len(deviations) <= CORRELATED:
        F = moments.factor / np.sqrt(moments.variances())
        R = np.clip(F.T @ F / moments.n, -1.0, 1.0)
        # near 1 the digits that tell it from 1
        correlations = [[round(float(r), 3 if abs(r) < 0.99 else 9) for r in R[i, :i]] for i in range(len(R))]
    return as_plain({"columns": columns, "correlations": correlations})


def _histogram(column: NDArray[np.float64]) -> dict[str, Any]:
    low, high = float(column.min()), float(column.max())
    # as shares of the range: bars of a huge offset would have no width in double precision
    place = (column - low) / (high - low) if high > low else np.zeros(len(column))
    counts, _ = np.histogram(place, BINS, (0.0, 1.0))
    return {"low": low, "high": high, "counts": counts.tolist()}


def _thinned(history: Mapping[str, ArrayLike]) -> dict[str, list[Any]] | None:
    """Evenly spread steps, the first and the last among them; None if there are none."""
    steps = len(np.asarray(next(iter(history.values()), ())))
    if not steps:
        return None
    taken = np.unique(np.linspace(0, steps - 1, min(steps, POINTS)).round().astype(np.int64))
    thin = {name: [float(f"{v:.9g}") for v in np.asarray(values)[taken].tolist()] for name, values in history.items()}
    return {"step": (taken + 1).tolist(), **thin}


def as_plain(value: Any) -> Any:
    """A value that every reader of JSON takes: numbers that no double holds become None, and objects their text."""
    if isinstance(value, Mapping):
        return {str(key): as_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, int):
        return value if abs(value) <= sys.float_info.max else None
    if value is None or isinstance(value, str):
        return value
    try:
        return str(value)
    except Exception:  # whatever objects of others do
        return brief(value)
