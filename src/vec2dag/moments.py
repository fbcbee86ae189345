"""Sufficient statistics of a table: number of rows, mean, and a triangular factor of the centred data.

The factor ``T`` satisfies ``T'T = sum_k (x_k - mean)(x_k - mean)'``. It holds what the covariance holds at the
square root of its condition number, so it keeps the digits that a covariance loses on nearly dependent columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from ._checks import as_table, brief, is_constant_by_moments, names_of, quoted
from ._parallel import one_blas_thread

__all__ = ["Moments"]


def _triangular(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Triangular factor of ``rows`` (m, d) with at most d rows, diagonal not negative so that it is unique."""
    with one_blas_thread():
        (factor,) = scipy.linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)
    factor = factor[: min(rows.shape)]
    return factor * np.where(np.diagonal(factor) < 0, -1.0, 1.0)[:, None]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and scatter of a table, mergeable chunk by chunk.

    Attributes
    ----------
    n : int
        Number of rows seen.
    mean : array of shape (d,)
    factor : array of shape (min(n, d), d)
        Upper trapezoidal, ``factor.T @ factor / n`` is the (maximum likelihood) covariance.
    names : tuple of str
    """

    n: int
    mean: NDArray[np.float64]
    factor: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, X: ArrayLike, names: Sequence[str] | None = None) -> "Moments":
        """Statistics of a table ``X`` (n, d) of finite numbers."""
        values = as_table(X)
        d = values.shape[1]
        mean = values.mean(axis=0)
        return cls(len(values), mean, _triangular(values - mean), names_of(names, d, X))

    def merge(self, other: "Moments") -> "Moments":
        """Statistics of the two tables stacked; neither is modified."""
        if not isinstance(other, Moments):
            raise ValueError(f"other must be Moments, got {brief(other)}")
        if other.names != self.names:
            raise ValueError(f"columns differ: {brief(self.names)} and {brief(other.names)}")
        n = self.n + other.n
        shift = other.mean - self.mean
        # Scatter of the union = both scatters + n1 n2 / n shift shift'.
        between = np.sqrt(self.n * other.n / n) * shift
        factor = _triangular(np.vstack([self.factor, other.factor, between]))
        return Moments(n, self.mean + other.n / n * shift, factor, self.names)

    def taken(self, order: NDArray[np.int64]) -> "Moments":
        """Statistics of the same table with its columns, or some of them, in another order."""
        names = tuple(self.names[k] for k in order)
        return Moments(self.n, self.mean[order], _triangular(self.factor[:, order]), names)

    def canonical_order(self) -> NDArray[np.int64]:
        """An order (d,) of the columns that depends neither on the one they are in nor on their units.

        By how much a column is correlated with all others; those that do not differ there stay as they are.
        """
        Z = self.factor / np.sqrt((self.factor**2).sum(axis=0))
        return np.argsort(np.round(((Z.T @ Z) ** 2).sum(axis=0), 9), kind="stable")

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Maximum likelihood covariance (d, d): the scatter divided by n."""
        return self.factor.T @ self.factor / self.n

    def uncentred_factor(self) -> NDArray[np.float64]:
        """Triangular factor of the data before centring: ``sum_k x_k x_k'``."""
        return _triangular(np.vstack([self.factor, np.sqrt(self.n) * self.mean]))

    def standardised(self) -> "Moments":
        """Statistics of the same table with every column centred and divided by its standard deviation."""
        return Moments(self.n, np.zeros_like(self.mean), self.factor / np.sqrt(self.variances()), self.names)

    def variances(self) -> NDArray[np.float64]:
        """Variances (d,) of the columns; refuses constant ones by name."""
        variances = (self.factor**2).sum(axis=0) / self.n
        constant = np.flatnonzero(is_constant_by_moments(self.mean, variances))
        if len(constant):
            raise ValueError(f"columns must vary: {quoted(self.names[j] for j in constant)} constant")
        return variances
