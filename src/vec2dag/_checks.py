"""One home for the question whether something is a name, a number, a choice or a table, and for warnings."""

from __future__ import annotations

import math
import numbers
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

# A column this close (in its own standard deviations) to the span of others counts as dependent on them. Its
# residual variance is then 1e-12 of its variance: sums rounded to float32 are caught, and beyond it the
# algebra of covariances in float64 has no digits left.
DEPENDENCE_TOLERANCE = 1e-6
SCALE_RATIO = 1e3
FEW_VALUES = 5
# Values of a column that differ by at most this share of their size differ by rounding: the column is constant.
CONSTANT = 1e-14
# Whole numbers from here on have neighbours that float64 cannot tell from them.
INEXACT = 2**53
# Beyond these squares vanish in float64, or fourth powers overflow: optimisers square rewards that are squares.
LARGEST, SMALLEST = 1e60, 1e-120

# Characters XML 1.0 cannot hold in any spelling, so that no GraphML file could carry the name.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


T = TypeVar("T")


class DataWarning(UserWarning):
    """Something about the data that can mislead the reader of the graph."""


_listeners: ContextVar[tuple[list[str], ...]] = ContextVar("listeners", default=())


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Context that also collects what :func:`warn` says while it is open."""
    heard: list[str] = []
    token = _listeners.set((*_listeners.get(), heard))
    try:
        yield heard
    finally:
        _listeners.reset(token)


def warn(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of whoever called the library, however deep inside of it this is."""
    for heard in _listeners.get():
        heard.append(sentence)
    # Context managers and decorators of the library have frames of the standard library between its own.
    inside = (__package__, "contextlib", "functools")
    frame, depth = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").partition(".")[0] in inside and frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(sentence, category, stacklevel=depth)


# --- parameters -----------------------------------------------------------------------------------------------


def brief(value: Any) -> str:
    """A value as an error shows it: what Python would print, on one line, and not too long."""
    try:
        text = repr(value)
    except Exception:  # whole numbers beyond 4300 digits, and whatever objects of others do
        text = f"an object of type {type(value).__name__}"
    return shown(re.sub(r"\s*\n\s*", " ", text), 100)


def choose(parameter: str, value: Any, allowed: Mapping[str, T]) -> T:
    """``allowed[value]``, or an error that lists what is allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{parameter}={brief(value)} is unknown; allowed: {listing(map(repr, allowed), 20)}")
    return allowed[value]


def flag(parameter: str, value: Any) -> bool:
    """``value`` as a bool, refused unless it is one."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{parameter} must be True or False, got {brief(value)}")
    return bool(value)


def function(parameter: str, value: Any, kind: str) -> Any:
    """``value``, refused unless it can be called; ``kind`` says what with. A class makes objects, and is none."""
    if not callable(value) or isinstance(value, type):
        raise ValueError(f"{parameter} must be a function {kind}, got {brief(value)}")
    return value


def whole_number(parameter: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """``value`` as an int, refused unless it is a whole number from ``least`` to ``most``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{parameter} must be a whole number {bounds}, got {brief(value)}")
    return int(value)


def number(parameter: str, value: Any, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """``value`` as a float, refused unless it is finite, greater than ``above`` and not less than ``least``."""
    try:
        real = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        real = False
    if not real or not value > above or not value >= least:
        kind = "a positive number" if above == 0 else "a finite number"
        bound = f" of at least {least:g}" if least > -math.inf else f" above {above:g}" if above > 0 else ""
        raise ValueError(f"{parameter} must be {kind}{bound}, got {brief(value)}")
    return float(value)


def generator(rng: Any) -> np.random.Generator:
    """``rng``, refused unless it is numpy's Generator."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator such as numpy.random.default_rng(0), got {brief(rng)}")
    return rng


def share(parameter: str, value: Any) -> float:
    """``value`` as a float, refused unless it is between 0 and 1, both excluded."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < value < 1:  # type: ignore[operator]
        raise ValueError(f"{parameter} must be between 0 and 1, got {brief(value)}")
    return float(value)


# --- names ----------------------------------------------------------------------------------------------------


def listing(items: Iterable[str], limit: int = 8) -> str:
    """Join items with commas, replacing all beyond `limit` by "and 12 more"."""
    all_items = list(items)
    # "and 1 more" would be as long as the item that it hides
    if len(all_items) <= limit + 1:
        return ", ".join(all_items)
    return f"{', '.join(all_items[:limit])} and {len(all_items) - limit} more"


def shown(name: str, most: int = 60) -> str:
    """A name as a terminal may show it: control characters and changes of direction escaped, and not too long."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    return safe if len(safe) <= most else f"{safe[: most - 4]} ..."


def quoted(names: Iterable[str], limit: int = 8) -> str:
    """Names in quotes, as one shortened list."""
    return listing((f"'{shown(name)}'" for name in names), limit)


def width(text: str) -> int:
    """Cells that a text takes in a terminal: two for a wide letter (Chinese, Japanese, Korean), none for an accent."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me") for c in text)


def laid_out(lines: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Lines of cells as text, every column as wide as its widest cell, to its side: ``<`` left, ``>`` right."""
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell + " " * (full - width(cell)) if side == "<" else " " * (full - width(cell)) + cell
            for cell, full, side in zip(line, widths, sides, strict=True)
        ).rstrip()
        for line in lines
    ]


def default_names(d: int) -> tuple[str, ...]:
    """Names of d unnamed columns: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(d))


def names_of(names: Sequence[str] | None, d: int, X: Any = None) -> tuple[str, ...]:
    """The names, checked; without any, those of the columns of the frame ``X``, or the default ones."""
    labels = frame_labels(X) if names is None else names
    return default_names(d) if labels is None else check_names([*map(str, labels)] if names is None else names, d)


# --- tables ---------------------------------------------------------------------------------------------------


def as_table(X: Any, rows: int = 1, *, missing: bool = False) -> NDArray[np.float64]:
    """``X`` as an array (n, d) of finite numbers with at least ``rows`` rows; not a copy if it is one.

    Numbers may be NaN where they may be ``missing``. In C order: sums, and with them the last digits of everything,
    depend on the layout in memory.
    """
    frame_labels(X)
    values = np.ascontiguousarray(as_numbers(X))
    if values.ndim != 2 or values.shape[0] < rows or values.shape[1] < 1:
        raise ValueError(f"X must have shape (n, d) with n >= {rows} and d >= 1, got {values.shape}")
    if not np.isfinite(values).all() and (not missing or np.isinf(values).any()):
        raise ValueError("X contains NaN or infinity")
    if max(np.fmax.reduce(values, axis=None), -np.fmin.reduce(values, axis=None)) > LARGEST:
        raise ValueError(f"X has values beyond {LARGEST:g}, too large for double precision: rescale them")
    return values


def as_numbers(X: Any, parameter: str = "X") -> NDArray[np.float64]:
    """``X`` as an array of float64, missing markers as NaN; what is no number is refused with a sentence."""
    if hasattr(X, "toarray"):
        raise TypeError(f"{parameter} is a sparse matrix and a dense one is needed: {parameter}.toarray()")
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        masked = int(np.ma.getmaskarray(X).sum())
        raise ValueError(f"{parameter} is a masked array with {masked} masked value(s): remove or impute them")
    try:
        values = np.asarray(X)
    except ValueError:
        raise ValueError(f"{parameter} must be an array of numbers, got rows of different lengths") from None
    if values.dtype.kind in "mM":
        raise ValueError(
            f"{parameter} holds dates or times ({values.dtype}): numbers are needed, days since the first for one"
        )
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported in {parameter}: give real and imaginary parts as columns each")
    try:
        # what is beyond float64 becomes infinite, and signalling NaNs quiet ones
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        places = np.ndindex(values.shape)
        flat = [_cell(cell, place, parameter) for cell, place in zip(values.flat, places, strict=True)]
        return np.array(flat).reshape(values.shape)


def as_real(X: Any, parameter: str) -> NDArray[Any]:
    """The array ``X`` as it is if it holds real numbers, and what :func:`as_numbers` makes of it if not."""
    plain = type(X) is np.ndarray and X.dtype.kind in "buif"
    return X if plain else as_numbers(X, parameter)


def _cell(value: Any, place: tuple[int, ...], parameter: str) -> float:
    """A number, NaN for a missing marker, or an error that says where there is neither."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            return math.nan
        where = ", ".join(f"{name} {k}" for name, k in zip(("row", "column"), place, strict=False))
        plain = value.item() if isinstance(value, np.generic) else value
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{parameter} must hold numbers, got {brief(plain)}{f' ({where})' if where else ''}: {shown(str(error))}"
        ) from None


def check_names(names: Sequence[str], d: int) -> tuple[str, ...]:
    """Refuse names that cannot identify the columns.

    Parameters
    ----------
    names : sequence of str
        One name per column.
    d : int
        The number of columns.

    Returns
    -------
    tuple of str
        The names.

    Raises
    ------
    ValueError
        No sequence; the number of names is not d; a name is empty, no string, or holds control characters; names
        repeat.
    """
    if not np.iterable(names):
        raise ValueError(f"names must be a sequence of strings, one for each column, got {brief(names)}")
    result = tuple(names)
    if len(result) != d:
        raise ValueError(f"names must have one entry per column ({d}), got {len(result)}")
    for position, name in enumerate(result, start=1):
        if not isinstance(name, str):
            raise ValueError(f"names must be strings, got {brief(name)} for column {position}")
        if not name.strip():
            raise ValueError(f"column {position} has an empty name; every column needs a name of its own")
        if _UNWRITABLE.search(name):
            raise ValueError(f"the name of column {position} holds a control character: '{shown(name)}'")
    if len(set(result)) < d:
        count = dict.fromkeys(result, 0)
        for name in result:
            count[name] += 1
        repeated = [f"'{shown(name)}' ({times} times)" for name, times in count.items() if times > 1]
        raise ValueError(f"duplicate column names: {listing(repeated)}; every column needs a name of its own")
    return result


def frame_labels(X: Any) -> list[Any] | None:
    """Labels of the columns of a data frame, None for anything else.

    Parameters
    ----------
    X : data frame or anything else
        A frame is what has `columns` and gives a column by its label.

    Returns
    -------
    list or None
        The labels, whatever their type.

    Raises
    ------
    ValueError
        There are none, labels repeat, or columns are not numeric; the message names them.
    """
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "__getitem__"):
        return None
    labels = list(columns)
    if not labels:
        raise ValueError("X must have columns, got a data frame without any")
    if len(set(map(str, labels))) < len(labels):
        check_names([str(label) for label in labels], len(labels))
    bad = []
    for label in labels:
        try:
            # numpy would turn dates into the nanoseconds since 1970
            numeric = np.asarray(X[label]).dtype.kind not in "mM"
            np.asarray(X[label], dtype=np.float64)
        except (TypeError, ValueError):
            numeric = False
        if not numeric:
            bad.append(not_numeric(str(label), X[label]))
    if bad:
        raise ValueError(f"columns must be numeric; not numeric: {listing(bad)}")
    return labels


def not_numeric(name: str, column: Any) -> str:
    """A column that holds no numbers, with its type and what to do about it."""
    values = np.asarray(column)
    kind, example = values.dtype.kind, next((cell for cell in values.tolist() if cell is not None), None)
    if kind == "M":
        what = f"{values.dtype}; days since the first are numbers"
    elif kind == "m":
        what = f"{values.dtype}; their seconds are numbers"
    elif kind == "c":
        what = f"{values.dtype}; give real and imaginary parts as columns each"
    else:
        what = f"{type(example).__name__}, such as {brief(example)}; leave it out"
    return f"'{shown(name)}' ({what})"


def is_constant(X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns, shape (d,), whose values, but for missing ones, differ by rounding at most; infinity does not count."""
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.fmin.reduce(X), np.fmax.reduce(X)
        size = np.maximum(np.abs(low), np.abs(high))
        constant: NDArray[np.bool_] = (high - low <= CONSTANT * size) & np.isfinite(size)
    return constant


def is_constant_by_moments(mean: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The same, as well as it can be told from means and variances, each of shape (d,)."""
    return variances <= (CONSTANT * mean) ** 2


def rounded_columns(names: Iterable[str]) -> str:
    """What to say of columns with whole numbers that float64 cannot hold."""
    return (
        f"whole numbers of 2^53 (about 9e15) or more in {quoted(names)} are rounded to float64, so that different ones "
        "may become equal; leave identifiers out, and count other numbers from a later start"
    )


def still_columns(names: Iterable[str], left: int = 0, rows: int = 0) -> str:
    """Why constant columns are refused: they always were, or they are in the rows that are ``left`` of so many."""
    if rows <= left:
        return (
            f"constant column(s): {quoted(names)}; a column that never varies has no place in a causal graph: drop it"
        )
    return (
        f"constant column(s): {quoted(names)}, because rows with missing values were dropped: in the {left} of {rows} "
        "that are left nothing varies there; leave these columns out, or use all rows of a table of numbers: "
        "missing='em' or 'impute'"
    )


def check_values(
    X: NDArray[np.float64], names: Sequence[str] | None = None, *, missing: bool = False, rows: int = 0
) -> None:
    """Refuse a table from which no graph can be learned.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64
        The data.
    names : sequence of str, optional
        Names of the columns for the messages; x0, x1, ... if not given.
    missing : bool, default False
        Whether values may be missing, NaN.
    rows : int, default 0
        How many there were, with no constant column, before some were dropped.

    Raises
    ------
    ValueError
        Fewer than 2 rows or columns, NaN that may not be or columns of nothing else, infinity, constant columns, or
        values whose squares leave the range of float64. The message names the columns.
    """
    if X.ndim != 2:
        raise ValueError(f"X must be a 2-D array (rows, columns), got shape {X.shape}")
    n, d = X.shape
    for count, what in ((n, "sample(s)"), (d, "feature(s)")):
        if count < 2:
            raise ValueError(f"X has {count} {what} (shape=({n}, {d})) while a minimum of 2 is required.")
    labels = names_of(names, d)

    if not np.isfinite(X).all():
        n_nan, n_inf = np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0)
        if n_inf.any() or not missing:
            found = []
            for i in np.flatnonzero(n_nan + n_inf):
                counts = [f"{k} {kind}" for k, kind in ((n_nan[i], "NaN"), (n_inf[i], "inf")) if k]
                found.append(f"'{shown(labels[i])}' ({', '.join(counts)})")
            raise ValueError(f"X contains NaN or infinity in {listing(found)}; remove or impute these values")
        if (n_nan == n).any():
            empty = quoted(labels[i] for i in np.flatnonzero(n_nan == n))
            raise ValueError(f"column(s) without any value, NaN in every row: {empty}; leave them out")
    constant = np.flatnonzero(is_constant(X))
    if constant.size:
        raise ValueError(still_columns((labels[i] for i in constant), n, rows))
    low, high = np.fmin.reduce(X), np.fmax.reduce(X)
    extreme = np.flatnonzero((np.maximum(-low, high) > LARGEST) | (high / 2 - low / 2 < SMALLEST))
    if extreme.size:
        raise ValueError(
            f"the variance of column(s) {quoted(labels[i] for i in extreme)} is too large or too small for "
            f"double precision (values beyond {LARGEST:g}, or differences below {SMALLEST:g}); rescale them"
        )


def drop_constant(
    X: NDArray[np.float64], names: Sequence[str]
) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
    """Leave constant columns out.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64
        The data, at least one row; not modified.
    names : sequence of str
        Names of the d columns.

    Returns
    -------
    X : ndarray of shape (n, d - k)
        The columns that vary.
    names : tuple of str
        Their names.
    dropped : tuple of str
        Names of the k columns left out.
    """
    constant = is_constant(X)
    kept = tuple(name for name, out in zip(names, constant, strict=True) if not out)
    dropped = tuple(name for name, out in zip(names, constant, strict=True) if out)
    return X[:, ~constant], kept, dropped


def data_warnings(
    X: NDArray[np.float64], names: Sequence[str], *, reads_units: bool = True, rows: float | None = None
) -> list[str]:
    """Say what in a valid table will mislead a score, one sentence each.

    Duplicated columns, linearly dependent columns (residual standard deviation below `DEPENDENCE_TOLERANCE`
    of the column's own), no more rows than columns, for scores that read units standard deviations that differ by
    more than a factor of `SCALE_RATIO`, and columns with at most `FEW_VALUES` distinct values.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64
        Data that passed `check_values`; not modified.
    names : sequence of str
        Names of the d columns.
    reads_units : bool, default True
        Whether the score depends on the units of the columns.
    rows : float, optional
        How many there are in truth, if ``X`` stands for another table.

    Returns
    -------
    list of str
        Plain sentences; empty when there is nothing to say.
    """
    n, d = X.shape if rows is None else (rows, X.shape[1])
    labels = check_names(names, d)
    sentences = []
    groups = _duplicates(X)
    if groups:
        sets = [" = ".join(f"'{shown(labels[i])}'" for i in group) for group in groups]
        sentences.append(f"Duplicated columns: {listing(sets, 5)}; no score can tell them apart, keep one of each.")
    deviations = X.std(axis=0)
    if n <= d:
        sentences.append(
            f"The table has {n:g} rows for {d} columns; with no more rows than columns every column is a "
            "linear combination of the others, dense graphs fit it perfectly, and nothing can be concluded: several "
            f"times as many rows as columns are needed, {5 * d} for instance, or fewer columns."
        )
    else:
        repeated = {i for group in groups for i in group[1:]}
        unique = [i for i in range(d) if i not in repeated]
        dependent = [
            f"'{shown(labels[unique[i]])}' (from {quoted((labels[unique[j]] for j in others), 4)})"
            for i, others in _dependencies(X[:, unique] if repeated else X, deviations[unique])
        ]
        if dependent:
            sentences.append(
                f"Linearly dependent columns: {listing(dependent, 5)}; edges among them are arbitrary, "
                "leave one column of each dependence out."
            )
    low, high = int(deviations.argmin()), int(deviations.argmax())
    if reads_units and deviations[high] > SCALE_RATIO * deviations[low]:
        sentences.append(
            f"The columns have wildly different scales: standard deviations from {deviations[low]:.3g} "
            f"('{shown(labels[low])}') to {deviations[high]:.3g} ('{shown(labels[high])}'); this score reads them "
            "as causal order: standardize=True removes them, and linear ebic-nv (the default) does not depend on them."
        )
    few = _few_valued(X)
    if few:
        counted = listing(f"'{shown(labels[i])}' ({k})" for i, k in few)
        sentences.append(
            f"Columns with very few distinct values: {counted}; they are treated as continuous numbers: trust the "
            "directions of their edges least, or name them as categories (categorical=[...])."
        )
    return sentences


def _duplicates(X: NDArray[np.float64]) -> list[list[int]]:
    """Groups of two or more equal columns."""
    groups: dict[bytes, list[int]] = {}
    # adding zero turns -0.0, which equals 0.0 but has other bytes, into 0.0
    for i, column in enumerate(X.T + 0.0):
        groups.setdefault(column.tobytes(), []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def _dependencies(X: NDArray[np.float64], deviations: NDArray[np.float64]) -> list[tuple[int, list[int]]]:
    """Columns that are linear functions of others, each with the columns it is made of.

    A pivoted Cholesky factorisation of the correlations orders the columns by what each adds to those before
    it; it costs a tenth of a pivoted QR of the data but squares the condition number. So its bound is a loose
    one, and the columns it suspects are judged by their residuals, recomputed from the data.
    """
    Z = (X - X.mean(axis=0)) / (deviations * np.sqrt(len(X)))
    correlation = Z.T @ Z
    factor, order, rank, _ = linalg.lapack.dpstrf(correlation, tol=100 * DEPENDENCE_TOLERANCE**2)
    basis, suspects = order[:rank] - 1, order[rank:] - 1
    if not suspects.size:
        return []
    triangle = (factor[:rank, :rank], False)
    coefficients = linalg.cho_solve(triangle, correlation[np.ix_(basis, suspects)])
    residuals = Z[:, suspects] - Z[:, basis] @ coefficients
    # one step of refinement gives back the digits that the normal equations lose
    correction = linalg.cho_solve(triangle, Z[:, basis].T @ residuals)
    residuals -= Z[:, basis] @ correction
    coefficients = np.abs(coefficients + correction)
    # a coefficient of rounding size names no column
    used = coefficients > 1e-5 * coefficients.max(axis=0)
    dependent = np.flatnonzero(linalg.norm(residuals, axis=0) < DEPENDENCE_TOLERANCE)
    return sorted((int(suspects[k]), sorted(basis[used[:, k]].tolist())) for k in dependent)


def _few_valued(X: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Columns with at most `FEW_VALUES` distinct values, ten rows or more for each, with that number."""
    n, d = X.shape
    limit = min(FEW_VALUES, n // 10)
    found = []
    for i in range(d):
        # most columns are cleared by their first rows, without sorting the rest
        if len(np.unique(X[:50, i])) <= limit:
            distinct = len(np.unique(X[:, i]))
            if distinct <= limit:
                found.append((i, distinct))
    return found
