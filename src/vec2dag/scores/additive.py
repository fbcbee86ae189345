"""Additive regression on smooth functions of the parents: the regressions of CAM (Buehlmann, Peters & Ernest 2014)."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import as_table, brief, choose, names_of, whole_number
from .._parallel import one_blas_thread, run_each
from .._settings import Settings
from ..moments import Moments
from .regression import Regression, for_freedom
from .splines import RIDGE, Penalised, basis_size, smooth

__all__ = ["Additive", "AdditiveOnTable"]

Array = NDArray[np.float64]

# To be raised when residuals change, so that files of local scores of before are not taken for those of now.
RESIDUALS = 2

# What a criterion gets, by the mean squared residual, its degrees of freedom, the rows and the number of parents.
PRICES: dict[str, Callable[[float, float, int, int], float]] = {
    "edges": lambda residual, freedom, n, k: residual,
    "freedom": for_freedom,
}


@dataclass
class Additive(Settings):
    """Sums of smooth functions of the parents, each a thin-plate regression spline.

    The model is ``y = c + f_1(x_1) + ... + f_k(x_k) + noise``.

    How smooth they are is decided by generalised cross-validation for every regression. Neither the units of the
    columns nor, once the table has been read, the number of rows matter: everything is computed from inner products of
    the basis functions of all columns. Functions of several parents at once (products, say) are seen only as far as
    sums can follow them.

    Parameters
    ----------
    n_basis : int, default 10
        Basis functions of a column, with the constant. There are fewer of them for columns of few values, and, as in
        CAM, where there would be less than three rows for each.
    price : {"edges", "freedom"}, default "edges"
        What a criterion gets: the mean squared residual ``r``, so that BIC charges ``ln n`` for each of ``k`` parents;
        or ``r n^((f - k) / n)``, so that it charges that for each of the ``f`` effective degrees of freedom, which
        leaves fewer edges to pruning, and loses more of the weak ones.

    Examples
    --------
    >>> x = np.linspace(-3, 3, 200)
    >>> additive = Additive().bind(np.column_stack([x, np.sin(2 * x)]))
    >>> additive.residual(1, [0]) < 0.01 < 0.4 < additive.residual(1, [])
    True
    """

    needs_rows: ClassVar[bool] = True
    reads_units: ClassVar[bool] = False

    n_basis: int = 10
    price: str = "edges"

    def check(self) -> None:
        """Refuse impossible values."""
        choose("price", self.price, PRICES)
        whole_number("n_basis", self.n_basis, least=2)

    def bind(self, data: ArrayLike | Moments, names: Sequence[str] | None = None) -> "AdditiveOnTable":
        """Join with a table (n, d)."""
        if isinstance(data, Moments):
            raise ValueError(
                f"regression={brief(self)} needs the rows of the table; Moments have only mean and scatter"
            )
        X = np.array(as_table(data, rows=2), order="C")
        return AdditiveOnTable(X, names_of(names, X.shape[1], data), self.n_basis, self.price)


class AdditiveOnTable(Regression):
    """Additive regressions on the columns of a table, from inner products of their basis functions.

    Parameters
    ----------
    X : array of shape (n, d)
        No column is constant.
    names : tuple of str
    n_basis : int
    price : {"edges", "freedom"}
    """

    reads_units = False

    def __init__(self, X: Array, names: tuple[str, ...], n_basis: int, price: str = "edges") -> None:
        self.X, self.names, self.n_basis, self.price = X, names, n_basis, price
        self.n, self.d = X.shape
        self.variances: Array = X.var(axis=0)
        with one_blas_thread():
            smooths = run_each(lambda j: smooth(X[:, j], basis_size(self.n, 1, n_basis)), self.d, None)
            self.Z: Array = np.hstack([s.Z for s in smooths])
            self.G: Array = self.Z.T @ self.Z + RIDGE * np.eye(self.Z.shape[1])
            self.C: Array = self.Z.T @ ((X - X.mean(axis=0)) / np.sqrt(self.n * self.variances))
        self.penalties = [s.penalty for s in smooths]
        ends = np.cumsum([len(penalty) for penalty in self.penalties])
        self.places = [np.arange(end - len(p), end) for end, p in zip(ends, self.penalties, strict=True)]

    def taken(self, order: NDArray[np.int64]) -> "AdditiveOnTable":
        """The same with the columns in another order; the inner products stay where they are."""
        other = copy(self)
        other.names = tuple(self.names[k] for k in order)
        other.X, other.variances = np.ascontiguousarray(self.X[:, order]), self.variances[order]
        other.C = self.C[:, order]
        other.penalties, other.places = ([rows[k] for k in order] for rows in (self.penalties, self.places))
        return other

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``, with its price."""
        left, freedom = self._left(node, parents)
        return PRICES[self.price](left, freedom, self.n, len(parents))

    def noise(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``."""
        return self._left(node, parents)[0]

    def _left(self, node: int, parents: Sequence[int]) -> tuple[float, float]:
        """Mean squared residual, and the degrees of freedom that it took beside the mean.

        Parents with which even straight lines would leave no row for the noise explain nothing.
        """
        if not 0 < len(parents) < self.n - 1:
            return float(self.variances[node]), 0.0
        _, share, free = self._penalised(node, parents)[0].smoothing()
        return float(self.variances[node]) * share, self.n - 1.0 - free

    def _penalised(self, node: int, parents: Sequence[int]) -> tuple[Penalised, NDArray[np.int64]]:
        """The least squares problem, and which of all basis functions it has: those that CAM has for so many rows."""
        most = basis_size(self.n, len(parents), self.n_basis) - 1
        places = [self.places[k][:most] for k in sorted(parents)]
        penalty = np.concatenate([self.penalties[k][:most] for k in sorted(parents)])
        which = np.concatenate(places)
        problem = Penalised(
            self.n, self.G[np.ix_(which, which)], self.C[which, node], penalty, np.cumsum([len(p) for p in places])
        )
        return problem, which

    def forecast(self, node: int, parents: Sequence[int], new: Array) -> Array:
        """Predictions (m,) of ``node`` for rows ``new`` (m, k) of its parents; straight lines beyond the table."""
        y = self.X[:, node]
        total = np.full(len(new), y.mean())
        if len(parents) == 0:
            return total
        problem, which = self._penalised(node, parents)
        b = problem.solve(problem.smoothing()[0])[2]
        at = {k: column for k, column in zip(parents, new.T, strict=True)}
        for k, end, width in zip(sorted(parents), problem.ends, np.diff(problem.ends, prepend=0), strict=True):
            term = slice(end - width, end)
            total += y.std() * np.sqrt(self.n) * _extended(self.X[:, k], self.Z[:, which[term]] @ b[term], at[k])
        return total

    def fingerprint(self) -> str:
        """Of the table and the settings: equal where all residuals are equal."""
        return str(joblib.hash((RESIDUALS, "additive", self.n_basis, self.price, self.X)))


def _extended(x: Array, f: Array, new: Array) -> Array:
    """Values at ``new`` (m,) of the natural spline through ``f`` (n,) at ``x`` (n,), straight beyond its ends."""
    from scipy.interpolate import CubicSpline

    knots, first = np.unique(x, return_index=True)
    spline = CubicSpline(knots, f[first], bc_type="natural")
    inside = np.clip(new, knots[0], knots[-1])
    slope = np.where(new < inside, *spline(knots[[0, -1]], 1))
    return np.asarray(spline(inside) + slope * (new - inside))
