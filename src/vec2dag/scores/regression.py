"""What a score asks of a regression that has been joined with a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks import brief, check_names, default_names
from .local import LocalCache, LocalScores

if TYPE_CHECKING:
    from .counts import ConditionalTable

__all__ = ["Regression", "as_regression", "for_freedom"]


def for_freedom(residual: float, freedom: float, n: int, k: int) -> float:
    """The mean squared residual for which BIC, charging ``ln n`` for ``k`` parents, charges it for all of ``freedom``.

    ``n ln(r n^((f - k) / n)) + k ln n = n ln r + f ln n``.
    """
    return float(residual * n ** ((freedom - k) / n))


class Regression:
    """A regression joined with a table. A subclass says what its residuals are, and what else it can do.

    Attributes
    ----------
    n, d : int
        Rows and columns of the table.
    names : tuple of str
        Of the columns.
    cheap : bool
        Whether a residual takes microseconds: nothing is then remembered, and no search has to be sparing.
    dense : bool
        Whether all other columns can be the parents of one at once.
    linear : bool or None
        Whether a parent that matters has a linear coefficient, so that linear pruning can see it; None if the question
        makes no sense, as with categories.
    reads_units : bool
        Whether residuals, in units of the column, may depend on the units of the columns.
    score_equivalent : bool
        Whether residuals are those of linear regressions on centred columns, which criteria that promise it need to
        give equivalent graphs the same score.
    statistics : tuple of arrays, or None
        What the compiled kernels compute residuals from, if they can (:mod:`vec2dag._kernels`).
    rows : array of shape (d,), or None
        The rows of every node, where they are not all ``n`` rows.
    has_costing : bool
        Whether the compiled searches over orders know it, from its statistics or from a :meth:`costing`.
    """

    n: int
    d: int
    names: tuple[str, ...]
    cheap = False
    dense = True
    linear: bool | None = False
    reads_units = True
    score_equivalent = False
    statistics: Any = None
    rows: NDArray[np.int64] | None = None

    @property
    def values(self) -> float:
        """Values that the regressions explain: the rows of all nodes, ``n d`` where each has all."""
        return self.n * self.d if self.rows is None else float(self.rows.sum())

    @property
    def weights(self) -> NDArray[np.float64]:
        """What every node counts (d,), in proportion to its rows: 1 on average."""
        return np.ones(self.d) if self.rows is None else self.rows * (self.d / self.rows.sum())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} rows, {self.d} columns)"

    @property
    def has_costing(self) -> bool:
        return self.statistics is not None

    def costing(self) -> Any:
        """What a compiled search over orders computes costs from, one thread at a time; None if there is nothing."""
        return self.statistics

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``, or what a criterion gets in its place."""
        raise NotImplementedError

    def noise(self, node: int, parents: Sequence[int]) -> float:
        """Variance of the noise of ``node`` given ``parents``, for the density of other rows."""
        return self.residual(node, parents)

    def doubt(self) -> str | None:
        """A sentence that warns of using this regression on its table; None if there is none."""
        return None

    def forecast(self, node: int, parents: Sequence[int], new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) of ``node`` for rows ``new`` (m, k) of its parents."""
        raise NotImplementedError(f"{brief(self)} has no forecast, which scores of other rows need")

    def log_density(self, node: int, parents: Sequence[int], values: NDArray[np.float64]) -> float:
        """Mean log density of ``node`` given ``parents`` in rows ``values`` (m, d), with Gaussian noise.

        The regression and the variance that it leaves are those of the table.
        """
        variance = self.noise(node, parents)
        errors = values[:, node] - self.forecast(node, parents, values[:, list(parents)])
        return -0.5 * float(np.log(2.0 * np.pi * variance) + float((errors**2).mean()) / variance)

    def coefficients(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """``W`` (d, d), the linear coefficients of parents ``i`` for nodes ``j``; NaN where an edge has none."""
        return np.where(A.astype(bool), np.nan, 0.0)

    def tables(self, A: NDArray[np.uint8]) -> "dict[str, ConditionalTable] | None":
        """By the names of nodes their probabilities given their parents in ``A`` (d, d); None if it has no counts."""
        return None

    def taken(self, order: NDArray[np.int64]) -> "Regression":
        """The same regression with the columns, all of them, in another order."""
        raise NotImplementedError(f"the columns of {self!r} stand in an order of their own")

    def simpler(self) -> "Regression | None":
        """A regression of another kind on the same table that costs far less and finds similar graphs; None if none."""
        return None

    def approximate(self) -> "Regression | None":
        """A regression whose residuals are nearly these and cost far less, to see which are worth it; None if none."""
        return None

    def thinned(self, step: int) -> "Regression | None":
        """The same regression on one row of ``step``, a cheap picture of the problem; None if it has no rows."""
        return None

    def fingerprint(self) -> str | None:
        """A text that is equal where all residuals are equal; None if there is none, and no file can be kept."""
        return None

    def local(self, cache: LocalCache | None = None, n_jobs: int | None = None) -> LocalScores:
        """Local scores of this regression, with memory and workers."""
        return LocalScores(self, cache, n_jobs)


class _Foreign(Regression):
    """Somebody's object with ``n``, ``d`` and ``residual``, and whatever else of a regression it has."""

    def __init__(self, wrapped: Any) -> None:
        missing = [name for name in ("n", "d", "residual") if not hasattr(wrapped, name)]
        if missing:
            raise ValueError(
                f"a regression that holds its data needs n, d and residual; {brief(wrapped)} has no {missing}"
            )
        self.wrapped = wrapped
        self.n, self.d = int(wrapped.n), int(wrapped.d)
        names = getattr(wrapped, "names", None)
        self.names = default_names(self.d) if names is None else check_names(names, self.d)
        self.cheap = bool(getattr(wrapped, "cheap", False))
        self.linear = bool(getattr(wrapped, "linear", False))
        self.score_equivalent = bool(getattr(wrapped, "score_equivalent", False))

    def residual(self, node: int, parents: Sequence[int]) -> float:
        return float(self.wrapped.residual(node, parents))

    def thinned(self, step: int) -> Regression | None:
        thin = getattr(self.wrapped, "thinned", None)
        smaller = None if thin is None else thin(step)
        return None if smaller is None else as_regression(smaller)

    def fingerprint(self) -> str | None:
        own = getattr(self.wrapped, "fingerprint", None)
        printed = None if own is None else own()
        return None if printed is None else str(printed)


def as_regression(regression: Any) -> Regression:
    """The object itself, or what makes somebody else's answer all that a score asks."""
    if not isinstance(regression, Regression):
        return _Foreign(regression)
    if not hasattr(regression, "names"):
        regression.names = default_names(regression.d)
    return regression
