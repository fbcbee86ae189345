"""A Gaussian and the missing values of a table: its likelihood, the likeliest one, and draws from it.

With S the covariance, K its inverse, and a row whose values m are missing and o are there, the missing ones have the
conditional covariance ``K_mm^-1`` and the conditional mean ``mu_m - K_mm^-1 K_mo (x_o - mu_o)``. That takes a matrix
as large as what is missing of a row, and rows that miss the same columns share it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from .._checks import (
    DataWarning,
    as_numbers,
    as_table,
    check_values,
    generator,
    listing,
    names_of,
    number,
    quoted,
    warn,
    whole_number,
)
from .._conditioning import fill_rows
from .._parallel import one_blas_thread, out_of_time
from ..moments import Moments

__all__ = [
    "em",
    "em_of",
    "impute",
    "imputed",
    "likeliest",
    "log_density",
    "log_likelihood",
    "rows_counted",
    "rows_shared",
    "table_of",
]

Array = NDArray[np.float64]

# Residual variance of a column given the others, in units of its own, below which covariances count as singular; and
# what is then added to all variances.
SINGULAR = RIDGE = 1e-10


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Where values are missing: rows by pattern, as the compiled loop takes them.

    Attributes
    ----------
    columns : array
        What the first pattern misses, ascending, what the second does, and so on.
    column_ends : array of shape (P,)
        Where they end.
    rows : array
        Those of the first pattern, and so on.
    row_ends : array of shape (P,)
    """

    columns: NDArray[np.int64]
    column_ends: NDArray[np.int64]
    rows: NDArray[np.int64]
    row_ends: NDArray[np.int64]

    @classmethod
    def of(cls, missing: NDArray[np.bool_]) -> "_Gaps":
        """Of a table whose values are missing where ``missing`` (n, d) says so."""
        incomplete = np.flatnonzero(missing.any(axis=1))
        packed = np.packbits(missing[incomplete], axis=1)
        _, first, owner, counts = np.unique(packed, axis=0, return_index=True, return_inverse=True, return_counts=True)
        patterns = missing[incomplete[first]]
        rows = incomplete[np.argsort(owner.reshape(-1), kind="stable")]
        return cls(np.nonzero(patterns)[1], patterns.sum(axis=1).cumsum(), rows, counts.cumsum())

    def filled(self, Z: Array, K: Array, noise: Array | None = None) -> tuple[Array, Array, float]:
        """Rows with what is missing: its means given what is there, or draws.

        Parameters
        ----------
        Z : array of shape (n, d)
            Less the means of the columns, 0 where a value is missing.
        K : array of shape (d, d)
            Inverse covariance.
        noise : array of shape (n, d), optional
            Standard normal numbers that make draws of the means.

        Returns
        -------
        filled : array of shape (n, d)
        spread : array of shape (d, d)
            Sum over rows of the conditional covariances of what is missing.
        log_det : float
            Sum over rows of ``ln det K_mm``; nan if the covariance is singular.
        """
        filled, spread = Z.copy(), np.zeros_like(K)
        noise = np.empty((0, 0)) if noise is None else noise
        log_det = fill_rows(K, Z @ K, noise, self.columns, self.column_ends, self.rows, self.row_ends, filled, spread)
        return filled, spread + np.tril(spread, -1).T, log_det


def _log_likelihood(filled: Array, K: Array, log_det: float, log_det_K: float, there: int) -> float:
    """Of the values that are there: ``ln det S_oo = ln det S + ln det K_mm``, and the filled row has their distance."""
    distance = float(np.einsum("ri,ri->", filled @ K, filled))
    return -0.5 * (there * math.log(2.0 * math.pi) - len(filled) * log_det_K + log_det + distance)


def log_likelihood(X: ArrayLike, mean: ArrayLike, covariance: ArrayLike) -> float:
    """Log-likelihood of the values that are there under a Gaussian, summed over rows.

    Parameters
    ----------
    X : array of shape (n, d)
        NaN where a value is missing.
    mean : array of shape (d,)
    covariance : array of shape (d, d)
        Positive definite.
    """
    values, mu, S = as_numbers(X), as_numbers(mean, "mean"), as_numbers(covariance, "covariance")
    size = np.sqrt(np.diagonal(S))
    units = float((~np.isnan(values)).sum(axis=0) @ np.log(size))
    return log_density((values - mu) / size, *_inverse(S / np.outer(size, size))) - units


def log_density(Z: Array, K: Array, log_det_K: float) -> float:
    """The same of rows (n, d) less the mean, by the inverse covariance; nan if that is singular."""
    missing = np.isnan(Z)
    filled, _, log_det = _Gaps.of(missing).filled(np.where(missing, 0.0, Z), K)
    return _log_likelihood(filled, K, log_det, log_det_K, int((~missing).sum()))


def _inverse(S: Array) -> tuple[Array, float]:
    """Inverse of a covariance, and the logarithm of its determinant (of the inverse)."""
    L = np.linalg.cholesky(S)
    K, _ = linalg.lapack.dpotri(L, lower=True)
    return K + np.tril(K, -1).T, -2.0 * float(np.log(np.diagonal(L)).sum())


# --- greatest likelihood --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Likeliest:
    """What EM has reached, of columns less ``centre`` and divided by ``scale``.

    Attributes
    ----------
    centre, scale, mean : arrays of shape (d,)
    covariance : array of shape (d, d)
        Positive definite.
    history : list of float
        Log-likelihood at the beginning of every step, since there is a ridge.
    ridge : float
        Share of every variance that is added to it in every step, since they became singular; 0 if they did not.
    converged : bool
    """

    centre: Array
    scale: Array
    mean: Array
    covariance: Array
    history: list[float]
    ridge: float
    converged: bool

    def moments(self, names: tuple[str, ...], n: int) -> Moments:
        """In the units of the table, as of ``n`` rows."""
        factor = np.linalg.cholesky(self.covariance).T * (self.scale * math.sqrt(n))
        return Moments(n, self.centre + self.scale * self.mean, np.ascontiguousarray(factor), names)


def likeliest(X: Array, tol: float = 1e-9, max_iter: int = 1000) -> Likeliest:
    """Mean and covariance of greatest likelihood of a Gaussian, by EM with an exact expectation for every pattern.

    Every third step extrapolates, and is taken back if that is worse.

    Parameters
    ----------
    X : array of shape (n, d)
        Every column has two different values.
    tol : float
        Growth of the log-likelihood, as a share of it or for every value that is there, at which to stop.
    max_iter : int
        Steps at most; the time of :func:`vec2dag._parallel.until` ends it too.
    """
    X = np.ascontiguousarray(X[~np.isnan(X).all(axis=1)])
    missing = np.isnan(X)
    n, d = X.shape
    there = int(X.size - missing.sum())
    centre, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    Z = np.where(missing, 0.0, (X - centre) / scale)
    gaps = _Gaps.of(missing)

    def step(theta: Array) -> tuple[Array, float]:
        """The next parameters, mean and covariance below each other (d + 1, d), and the log-likelihood of these."""
        mean, S = theta[0], theta[1:]
        K, log_det_K = _inverse(S)
        filled, spread, log_det = gaps.filled(np.where(missing, 0.0, Z - mean), K)
        shift = filled.mean(axis=0)
        after = np.vstack([mean + shift, (filled.T @ filled + spread) / n - np.outer(shift, shift)])
        return after, _log_likelihood(filled, K, log_det, log_det_K, there)

    theta, ridge, converged = np.vstack([np.zeros(d), np.eye(d)]), 0.0, False
    history: list[float] = []
    trail: list[Array] = []
    # Where to go on if an extrapolation turns out to be worse.
    plain: Array | None = None
    with one_blas_thread():
        for _ in range(max_iter):
            try:
                after, reached = step(theta)
            except np.linalg.LinAlgError:
                after, reached = theta, -math.inf
            if plain is not None and not reached >= history[-1]:
                theta, plain = plain, None
                continue
            plain = None
            gain = reached - history[-1] if history else math.inf
            history.append(reached)
            # without a ridge it never falls, but for rounding
            converged = abs(gain) <= tol * max(abs(reached), there)
            if converged or out_of_time():
                break
            if not ridge and _singular(after[1:]):
                ridge, history = RIDGE, []
            trail.append(theta)
            theta = after
            theta[1:] += ridge * np.diag(np.diagonal(after[1:]))
            if len(trail) == 2:
                if not ridge:
                    plain, theta = theta, _extrapolated(trail[0], trail[1], theta)
                trail.clear()
    theta = theta if plain is None else plain
    return Likeliest(centre, scale, theta[0], theta[1:], history, ridge, converged)


def _extrapolated(first: Array, second: Array, third: Array) -> Array:
    """Where three steps lead to, if they go on like that (SQUAREM, Varadhan & Roland 2008): half as many are needed."""
    r = second - first
    v = third - second - r
    length = -np.linalg.norm(r) / max(float(np.linalg.norm(v)), 1e-300)
    return third if length >= -1 else first - 2 * length * r + length**2 * v


def _singular(S: Array) -> bool:
    """Whether a column is, but for rounding, a linear function of others."""
    try:
        K, _ = _inverse(S)
    except np.linalg.LinAlgError:
        return True
    return bool((np.diagonal(K) * np.diagonal(S)).max() > 1.0 / SINGULAR)


def em(X: Any, names: Sequence[str] | None = None, *, tol: float = 1e-9, max_iter: int = 1000) -> Moments:
    """Moments of greatest likelihood of a table with missing values, if its rows are draws of a Gaussian.

    By the EM algorithm (Dempster, Laird, Rubin 1977), with the exact expectation for every pattern of missing values,
    and extrapolation (Varadhan & Roland 2008).
    They are right for values that are missing at random: whether a value is missing may depend on those that are there,
    but not on itself.

    Parameters
    ----------
    X : array of shape (n, d), or data frame
        NaN, None or NA where a value is missing. Rows without any value do not count.
    names : sequence of str, optional
        Names of the d columns.
    tol : float, default 1e-9
        Growth of the log-likelihood in a step, as a share of it, at which to stop.
    max_iter : int, default 1000
        Steps at most.

    Returns
    -------
    Moments
        Of as many rows as two columns share on average, and not of all: as if all had been complete, edges would look
        surer than they are. Of a complete table exactly ``Moments.of(X)``.

    Examples
    --------
    >>> em([[0.0, 1.0], [2.0, 3.1], [4.0, 4.9], [6.0, float("nan")]]).mean.round(2)
    array([3.  , 3.97])
    """
    number("tol", tol, above=0)
    values, labels = table_of(X, names)
    return em_of(values, labels, tol, whole_number("max_iter", max_iter))


def em_of(values: Array, names: tuple[str, ...], tol: float = 1e-9, max_iter: int = 1000) -> Moments:
    """The same of a table that was checked."""
    if not np.isnan(values).any():
        return Moments.of(values, names)
    shared = rows_shared(values)
    apart = [f"{quoted([names[i]])} and {quoted([names[j]])}" for i, j in np.argwhere(np.triu(shared == 0))]
    if apart:
        warn(
            f"Columns that no row has both of: {listing(apart, 4)}; nothing in the table says how they depend on each "
            "other given the others, and EM takes one of many answers.",
            DataWarning,
        )
    found = likeliest(values, tol, max_iter)
    if found.ridge:
        K, _ = _inverse(found.covariance)
        tied = np.flatnonzero(np.diagonal(K) * np.diagonal(found.covariance) > 0.1 / SINGULAR)
        warn(
            f"Columns that are linear functions of others wherever they have values: {quoted(names[k] for k in tied)}; "
            f"EM has added {RIDGE:g} of its variance to every column. Edges among them are arbitrary: leave columns "
            "out, or get more rows.",
            DataWarning,
        )
    if not found.converged:
        warn(
            f"EM ended after {len(found.history)} steps before its estimate had settled: more values are missing than "
            "it can do without, or the time was over."
        )
    return found.moments(names, rows_counted(shared))


def rows_shared(values: Array) -> Array:
    """How many rows (d, d) have both of two columns."""
    there = (~np.isnan(values)).astype(np.float64)
    return there.T @ there


def rows_counted(shared: Array) -> int:
    """The number of rows as which moments of an incomplete table count: that which two columns share, on average."""
    return max(2, round(float(shared[np.triu_indices(len(shared), 1)].mean())))


def impute(X: Any, rng: np.random.Generator, names: Sequence[str] | None = None) -> Array:
    """A copy of a table with missing values drawn at random, given the others of their row.

    From the Gaussian that :func:`em` fits. One such table looks surer than it is: the graphs of several, as
    :func:`vec2dag.bootstrap` learns them with ``ALIAS(missing="impute")``, show what the missing values leave open.

    Parameters
    ----------
    X : array of shape (n, d), or data frame
    rng : numpy Generator
    names : sequence of str, optional
        Names of the d columns.

    Returns
    -------
    array of shape (n, d)
        Values that are there are as they were.
    """
    values, labels = table_of(X, names)
    return imputed(values, em_of(values, labels), generator(rng))


def imputed(values: Array, moments: Moments, rng: np.random.Generator) -> Array:
    """The rows (n, d) with missing values drawn given the others, from the Gaussian of these moments."""
    if not np.isnan(values).any():
        return values.copy()
    # In an order, and with signs, that are not those of the table, the same random numbers would be another draw.
    order = moments.canonical_order()
    m = moments.taken(order)
    size = np.sqrt(m.variances())
    size = np.where(m.factor[:, 0] @ m.factor < 0, -size, size)
    Z = (values[:, order] - m.mean) / size
    missing = np.isnan(Z)
    K, _ = _inverse(m.covariance / np.outer(size, size))
    with one_blas_thread():
        drawn, *_ = _Gaps.of(missing).filled(np.where(missing, 0.0, Z), K, rng.standard_normal(Z.shape))
    filled = np.empty_like(values)
    filled[:, order] = drawn * size + m.mean
    return np.where(np.isnan(values), filled, values)


def table_of(X: Any, names: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    """The table (n, d) and the names of its columns, refused if it cannot be learned from."""
    values = as_table(X, rows=2, missing=True)
    labels = names_of(names, values.shape[1], X)
    check_values(values, labels, missing=True)
    return values, labels
