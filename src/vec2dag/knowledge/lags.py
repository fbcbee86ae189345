"""Time series as tables of present and past columns, with what time says about their edges."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import as_numbers, check_names, default_names, frame_labels, quoted, shown, warn, whole_number
from ..graph import as_adjacency
from .said import Knowledge

__all__ = ["Lagged", "lagged"]

# Steps of time that differ by this share of their size are equal: floats such as 0.1, 0.2, 0.3.
_SAME_STEP = 1e-6


class Lagged(NamedTuple):
    """A table of present and past columns.

    Attributes
    ----------
    X : array of shape (n - L, d * (L + 1))
        The columns of the present, then those of one step before, and so on.
    names : tuple of str
        Their names: ``x``, ``x[t-1]``, ``x[t-2]``, ...
    knowledge : Knowledge
        Past columns are given: no edges lead to them, neither from the present nor among themselves.
    variables : tuple of str
        The d columns of the series.
    """

    X: NDArray[np.float64]
    names: tuple[str, ...]
    knowledge: Knowledge
    variables: tuple[str, ...]

    def edges(self, A: ArrayLike, weights: ArrayLike | None = None) -> list[dict[str, Any]]:
        """The edges of a graph over the columns, by variable and lag.

        Parameters
        ----------
        A : array of shape (d * (L + 1), d * (L + 1))
            The graph, for example ``adjacency_matrix_``.
        weights : array of the same shape, optional
            A number for each edge, for example ``weights_``.

        Returns
        -------
        list of dict
            Rows of ``source``, ``lag`` (0 for the present), ``target`` and, if given, ``weight``, by target, lag and
            source; what ``pandas.DataFrame`` takes.
        """
        adjacency = as_adjacency(A)
        m, d = len(self.names), len(self.variables)
        if adjacency.shape != (m, m):
            raise ValueError(f"A must have shape {(m, m)}, one row for each lagged column, got {adjacency.shape}")
        values = None if weights is None else np.asarray(weights)
        if values is not None and values.shape != (m, m):
            raise ValueError(f"weights must have the shape of A, {(m, m)}, got {values.shape}")
        rows = []
        for i, j in sorted(np.argwhere(adjacency).tolist(), key=lambda edge: (edge[1], edge[0])):
            if j >= d:
                raise ValueError(f"A has the edge {self.names[i]} -> {self.names[j]}, which leads into the past")
            row = {"source": self.variables[i % d], "lag": i // d, "target": self.variables[j]}
            rows.append(row if values is None else row | {"weight": float(values[i, j])})
        return rows


def lagged(
    table: Any,
    lags: int = 2,
    names: Sequence[str] | None = None,
    time: Any = None,
    contemporaneous: bool = True,
) -> Lagged:
    """Put past values beside present ones, so that a graph over the columns is one over time.

    Parameters
    ----------
    table : array of shape (n, d) or data frame
        The series, one row for each time.
    lags : int, default 2
        How many steps back the past goes.
    names : sequence of str, optional
        Names of the columns; those of the frame, or x0, x1, ..., if not given.
    time : str or sequence of n times, optional
        The column that holds the times, which is then left out, or the times: numbers or dates, all different. Rows
        are sorted by them. Without times, rows are taken as they come.
    contemporaneous : bool, default True
        Whether edges among the columns of the present are allowed.

    Returns
    -------
    Lagged
        The table, names and knowledge: ``ALIAS(knowledge=series.knowledge).fit(series.X, names=series.names)``.

    Examples
    --------
    >>> series = lagged([[1, 5], [2, 6], [4, 7]], lags=1, names=["x", "y"])
    >>> series.names
    ('x', 'y', 'x[t-1]', 'y[t-1]')
    >>> series.X.tolist()
    [[2.0, 6.0, 1.0, 5.0], [4.0, 7.0, 2.0, 6.0]]
    """
    steps = whole_number("lags", lags)
    values, variables, times = _parts(table, names, time)
    n, d = values.shape
    if times is not None:
        values = values[_by_time(times, n)]
    if n <= steps:
        raise ValueError(f"lags={steps} needs at least {steps + 1} rows, got {n}")
    past = [tuple(f"{name}[t-{lag}]" for name in variables) for lag in range(1, steps + 1)]
    taken = [name for group in past for name in group if name in variables]
    if taken:
        raise ValueError(f"the columns {quoted(taken)} have names that past columns would get; rename them")
    columns = tuple(name for group in (variables, *past) for name in group)
    X = np.hstack([values[steps - lag : n - lag] for lag in range(steps + 1)])
    knowledge = Knowledge(
        tiers=[*reversed(past), variables],
        exogenous=columns[d:],
        sinks=() if contemporaneous else variables,
    )
    return Lagged(X, columns, knowledge, variables)


def _parts(
    table: Any, names: Sequence[str] | None, time: Any
) -> tuple[NDArray[np.float64], tuple[str, ...], NDArray[Any] | None]:
    """The values (n, d), the names of the columns, and the times, if any."""
    frame = hasattr(table, "columns")
    try:
        source: Any = table if frame else np.asarray(table)
    except ValueError:
        raise ValueError("table must have shape (n, d), got rows of different lengths") from None
    if len(source.shape) != 2:
        raise ValueError(f"table must have shape (n, d), got {source.shape}")
    labels = list(source.columns) if frame else list(range(source.shape[1]))
    if names is None:
        names = [str(label) for label in labels] if frame else default_names(len(labels))
    variables = check_names(names, len(labels))
    times = None if time is None or isinstance(time, str) else np.asarray(time)
    if isinstance(time, str):
        k = _column(time, variables)
        times = np.asarray(source[labels.pop(k)] if frame else source[:, labels.pop(k)])
        source = source[labels] if frame else source[:, labels]
        variables = variables[:k] + variables[k + 1 :]
    frame_labels(source)
    return as_numbers(source), variables, times


def _column(time: str, names: tuple[str, ...]) -> int:
    if time not in names:
        raise ValueError(f"time='{shown(time)}' is not a column; the columns are {quoted(names)}")
    if len(names) == 1:
        raise ValueError(f"the table has no column beside the time '{shown(time)}'")
    return names.index(time)


def _by_time(times: NDArray[Any], n: int) -> NDArray[np.intp]:
    """The order of the rows in time; warns where steps differ."""
    if times.shape != (n,):
        raise ValueError(f"time must hold one value for each of the {n} rows, got shape {times.shape}")
    values = _as_times(times)
    if (np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)).any():
        raise ValueError("time has missing or infinite values; every row needs its time")
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    step = np.diff(ordered)
    again = np.flatnonzero(step == step.dtype.type(0))
    if again.size:
        raise ValueError(
            f"time has the value {_text(ordered[again[0]])} more than once; lags need one row for each time"
        )
    if len(step) and not _equal(step) and not (ordered.dtype.kind == "M" and _equal(np.diff(ordered.astype("M8[M]")))):
        k = int(np.argmax(step))
        warn(
            f"The steps of time are unequal, from {_text(step.min())} to {_text(step[k])} (between {_text(ordered[k])} "
            f"and {_text(ordered[k + 1])}): a lag is one row, whatever the time between rows."
        )
    return order


def _as_times(times: NDArray[Any]) -> NDArray[Any]:
    """Times as float64 or datetime64; numbers and dates may come as text."""
    if times.dtype.kind == "M":
        return times
    for kind in ("f8", "M8[us]"):
        with suppress(TypeError, ValueError), warnings.catch_warnings():
            # numpy says that it turns times with a zone into those of Greenwich, which is what sorting needs
            warnings.simplefilter("ignore", UserWarning)
            return times.astype(kind)
    raise ValueError(f"time must hold numbers or dates such as 2024-01-31, got {shown(repr(times.tolist()[0]))}")


def _text(value: Any) -> str:
    """A time or a step of time for people: whole seconds, and days without hours where it is a day."""
    if isinstance(value, np.datetime64):
        return str(value.astype("M8[s]")).removesuffix("T00:00:00")
    return str(value.astype("m8[s]").item() if isinstance(value, np.timedelta64) else value)


def _equal(steps: NDArray[Any]) -> bool:
    """Whether steps are the same, but for rounding; none may be zero."""
    sizes = steps.astype(np.float64)
    return bool(sizes.min() > 0 and np.ptp(sizes) <= _SAME_STEP * sizes.max())
