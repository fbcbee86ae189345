"""Linear regression from sufficient statistics: compiled, and independent of the number of rows."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from .. import _kernels
from .._checks import names_of
from .._parallel import run_chunks
from .._settings import Settings
from ..moments import Moments
from .criteria import Criterion
from .local import LocalCache, LocalScores
from .regression import Regression

__all__ = ["Linear", "LinearOnTable", "LinearScores", "as_linear", "has_rows"]

# Below about 100 microseconds of work, so many entries of adjacency matrices, a thread costs more than it brings.
WORTH_A_THREAD = 20_000


@dataclass
class Linear(Settings):
    """Linear least squares with an intercept.

    Parameters
    ----------
    reference : bool, default False
        Regress as the released implementation of the paper does: without intercept on uncentred data, but on
        the mean where there are no parents.
    """

    needs_rows: ClassVar[bool] = False

    reference: bool = False

    def bind(self, data: ArrayLike | Moments, names: Sequence[str] | None = None) -> "LinearOnTable":
        """Join with a table (n, d) or its statistics."""
        moments = data if isinstance(data, Moments) else Moments.of(data, names)
        if isinstance(data, Moments) and names is not None:
            moments = replace(data, names=names_of(names, len(data.names)))
        return LinearOnTable(moments, reference=self.reference)


class LinearOnTable(Regression):
    """Linear regressions on the columns of a table, from its sufficient statistics alone.

    Regressions are one Cholesky of correlations each. Where a pivot shows that correlations have lost too many
    digits, the regression is redone on a triangular factor of the data; parents that depend linearly on earlier
    ones add nothing, and a residual variance never falls below ``1e-20`` of the variance.

    Parameters
    ----------
    moments : Moments
    reference : bool, default False
        As in :class:`Linear`.
    """

    cheap = True
    linear = True
    reads_units = False

    def __init__(self, moments: Moments, *, reference: bool = False) -> None:
        self.n, self.d, self.names = moments.n, len(moments.names), moments.names
        self.score_equivalent = not reference
        factor = moments.uncentred_factor() if reference else moments.factor
        self.base: NDArray[np.float64] = moments.variances()
        self.scale: NDArray[np.float64] = (factor**2).sum(axis=0) / self.n
        self.F: NDArray[np.float64] = np.ascontiguousarray((factor / np.sqrt(self.n * self.scale)).T)
        self.C: NDArray[np.float64] = self.F @ self.F.T
        np.fill_diagonal(self.C, 1.0)
        self.statistics = self._statistics()

    def _statistics(self) -> tuple[NDArray[Any], ...]:
        """Of one group of nodes."""
        return self.C[None], self.F[None], self.scale, self.base, np.zeros(self.d, np.int64), np.ones(1)

    def taken(self, order: NDArray[np.int64]) -> "LinearOnTable":
        """The same with the columns in another order."""
        other = copy(self)
        other.names = tuple(self.names[k] for k in order)
        other.base, other.scale, other.F = self.base[order], self.scale[order], self.F[order]
        other.C = np.ascontiguousarray(self.C[np.ix_(order, order)])
        other.statistics = other._statistics()
        return other

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` given ``parents``."""
        if len(parents) == 0:
            return float(self.base[node])
        p = np.asarray(parents, dtype=np.int64)
        L, Q = np.empty((self.d + 1, self.d)), np.empty((self.d + 1, self.F.shape[1]))
        return float(self.scale[node] * _kernels.residual_ratio(self.C, self.F, node, p, len(p), L, Q))

    def coefficients(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Regression weights ``W`` (d, d), ``W[i, j]`` of parent ``i`` for node ``j``, in the units of the data."""
        W = np.zeros((self.d, self.d))
        for j in range(self.d):
            parents = np.flatnonzero(A[:, j])
            if len(parents):
                W[parents, j] = self._regress(j, parents)
        size = np.sqrt(self.scale)
        return W * (size[None, :] / size[:, None])

    def forecast(self, node: int, parents: Sequence[int], new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) of ``node`` for rows ``new`` (m, k) of its parents, both less the means of the table."""
        if not self.score_equivalent:
            raise ValueError("regressions without intercept, Linear(reference=True), are for scores only")
        if len(parents) == 0:
            return np.zeros(len(new))
        p, size = np.asarray(parents, dtype=np.int64), np.sqrt(self.scale)
        return (new / size[p]) @ self._regress(node, p) * size[node]

    def _regress(self, node: int, parents: NDArray[np.int64]) -> NDArray[np.float64]:
        try:
            factor, lower = cho_factor(self.C[np.ix_(parents, parents)], lower=True, check_finite=False)
            if np.diagonal(factor).min() ** 2 > _kernels.ILL_CONDITIONED:
                return cho_solve((factor, lower), self.C[parents, node], check_finite=False)
        except np.linalg.LinAlgError:
            pass
        # Minimum norm where parents are linearly dependent.
        return np.linalg.lstsq(self.F[parents].T, self.F[node], rcond=None)[0]

    def local(self, cache: LocalCache | None = None, n_jobs: int | None = None) -> LocalScores:
        """Compiled local scores, which are not worth remembering."""
        return LinearScores(self, cache, n_jobs)


def as_linear(data: "ArrayLike | Moments | LinearOnTable") -> LinearOnTable:
    """Linear regressions on a table, if they are not that already."""
    return data if isinstance(data, LinearOnTable) else Linear().bind(data)


def has_rows(data: object) -> bool:
    """Whether the rows of the table are at hand, and not only statistics of them."""
    return not isinstance(data, Moments | LinearOnTable)


class LinearScores(LocalScores):
    """Local scores of regressions with ``statistics``: whole graphs at a time in the kernels, nothing remembered."""

    def batch(self, wanted: Sequence[tuple[int, Iterable[int]]]) -> NDArray[np.float64]:
        """Mean squared residuals of several (node, parents)."""
        checked = [(node, sorted({int(p) for p in parents})) for node, parents in wanted]
        for node, parents in checked:
            self._key(node, parents)
        return np.array([self.regression.residual(node, parents) for node, parents in checked])

    def residuals(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Mean squared residuals (B, d) of every node of every graph ``A`` (B, d, d)."""
        out = np.empty(A.shape[:2])

        def part(start: int, stop: int) -> None:
            _kernels.linear_residuals(A[start:stop], self.regression.statistics, out[start:stop])

        run_chunks(part, len(A), self.n_jobs if A.size > WORTH_A_THREAD else 1)
        return out

    def of_sets(self, node: int, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Mean squared residuals (m,) of ``node`` given the sets of parents that are the rows of ``members`` (m, d)."""
        A = np.zeros((*members.shape, self.regression.d), np.uint8)
        A[:, :, node] = members
        out = np.empty(A.shape[:2])
        _kernels.linear_residuals(A, self.regression.statistics, out)
        return out[:, node]

    def toggles(self, A: NDArray[np.uint8], criterion: Criterion) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Links (d,) of the nodes of ``A`` (d, d) and ``table[i, j]``, the change of link i when j -> i is toggled."""
        regression, table = self.regression, np.zeros(A.shape)
        compiled = criterion.compiled(regression.n, regression.d, regression.values)
        return _kernels.toggle_links(A, regression.statistics, compiled, table), table
