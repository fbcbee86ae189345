"""Regressions that need the rows of a table: what they share, and any regressor with ``fit`` and ``predict``."""

import numbers
import pickle
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from .._checks import as_table, brief, names_of
from .._settings import Settings
from ..moments import Moments
from .regression import Regression

__all__ = ["OnRows", "RowRegression", "SklearnRegression", "spread"]

# To be raised when residuals change, so that files of local scores of before are not taken for those of now.
RESIDUALS = 3


def spread(n: int, most: int) -> NDArray[np.int64]:
    """Up to ``most`` of ``n`` rows, evenly spread: tables are often sorted, and the choice must not be random."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


class RowRegression:
    """A description of a regression without data: ``residual`` of a column given others, and ``bind`` to a table."""

    needs_rows: ClassVar[bool] = True
    # Whether residuals, in units of the column, depend on the units of the columns, and whether it is known that not.
    reads_units: ClassVar[bool] = False
    unit_free: ClassVar[bool] = False

    def residual(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        """Mean squared residual of ``y`` (n,) given parents ``Z`` (n, k), of which there may be none."""
        raise NotImplementedError

    def noise(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        """See :meth:`Regression.noise`, for ``y`` (n,) given parents ``Z`` (n, k)."""
        return self.residual(Z, y)

    def simpler(self, X: NDArray[np.float64], names: tuple[str, ...]) -> Regression | None:
        """See :meth:`Regression.simpler`, for the table ``X`` (n, d)."""
        return None

    def approximate(self, X: NDArray[np.float64], names: tuple[str, ...]) -> Regression | None:
        """See :meth:`Regression.approximate`, for the table ``X`` (n, d)."""
        return None

    def doubt(self, X: NDArray[np.float64]) -> str | None:
        """A sentence that warns of using this regression on the table ``X`` (n, d); None if there is none."""
        return None

    def forecast(self, Z: NDArray[np.float64], y: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) at ``new`` (m, k) after a regression of ``y`` (n,) on ``Z`` (n, k)."""
        raise NotImplementedError(f"{brief(self)} has no forecast, which scores of other rows need")

    def bind(self, data: ArrayLike | Moments, names: Sequence[str] | None = None) -> "OnRows":
        """Join with a table (n, d); it is copied."""
        if isinstance(data, Moments):
            raise ValueError(
                f"regression={brief(self)} needs the rows of the table; Moments have only mean and scatter"
            )
        values = np.array(as_table(data, rows=2), order="C")
        # A copy: what is remembered of residuals must stay true when somebody changes the settings.
        return OnRows(deepcopy(self), values, names_of(names, values.shape[1], data))


class OnRows(Regression):
    """A regression joined with the rows of a table.

    Parameters
    ----------
    method : RowRegression
    X : array of shape (n, d)
    names : tuple of str
    """

    def __init__(self, method: RowRegression, X: NDArray[np.float64], names: tuple[str, ...]) -> None:
        self.method, self.X, self.names = method, X, names
        self.n, self.d = X.shape
        self.reads_units = not method.unit_free

    def __repr__(self) -> str:
        return f"{self.method!r} on {self.n} rows, {self.d} columns"

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``."""
        return self.method.residual(self.X[:, list(parents)], self.X[:, node])

    def noise(self, node: int, parents: Sequence[int]) -> float:
        """Variance of the noise of ``node`` given ``parents``."""
        return self.method.noise(self.X[:, list(parents)], self.X[:, node])

    def doubt(self) -> str | None:
        """What the method says of this table."""
        return self.method.doubt(self.X)

    def forecast(self, node: int, parents: Sequence[int], new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) of ``node`` for rows ``new`` (m, k) of its parents."""
        return self.method.forecast(self.X[:, list(parents)], self.X[:, node], new)

    def taken(self, order: NDArray[np.int64]) -> "OnRows":
        """The same with the columns in another order."""
        return OnRows(self.method, np.ascontiguousarray(self.X[:, order]), tuple(self.names[k] for k in order))

    def simpler(self) -> Regression | None:
        """What the method has for this table."""
        return self.method.simpler(self.X, self.names)

    def approximate(self) -> Regression | None:
        """What the method has for this table."""
        return self.method.approximate(self.X, self.names)

    def thinned(self, step: int) -> "OnRows":
        """On one row of ``step``, evenly spread: a cheap picture of the same problem."""
        return OnRows(self.method, self.X[spread(self.n, self.n // step)], self.names)

    def fingerprint(self) -> str:
        """Of the table and the regression: equal where all residuals are equal."""
        try:
            return str(joblib.hash((RESIDUALS, self.X, self.method)))
        except pickle.PicklingError:
            raise ValueError(
                f"a file of local scores needs a regressor that can be pickled, got {self.method}"
            ) from None


@dataclass
class SklearnRegression(RowRegression, Settings):
    """Regression with any scikit-learn estimator, cloned for every fit.

    Parameters
    ----------
    estimator : object
        A regressor or pipeline with ``fit``, ``predict`` and ``get_params``. It is not fitted itself.
    cv : int or splitter, optional
        Residuals are of predictions for rows that were not fitted, in so many folds: a flexible learner otherwise
        explains noise, and every parent seems to help. An integer shuffles the rows with ``random_state``.
    random_state : int, default 0
        Given to every parameter ``random_state`` of the estimator that is None, so that a fit is repeatable.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> bound = SklearnRegression(LinearRegression()).bind(X)
    >>> bound.residual(0, [1, 2]) < bound.residual(0, [1])
    True
    """

    estimator: Any
    cv: Any = None
    random_state: int = 0

    def check(self) -> None:
        """Refuse what cannot be fitted."""
        missing = [name for name in ("fit", "predict") if not callable(getattr(self.estimator, name, None))]
        if missing or isinstance(self.estimator, type):
            raise ValueError(f"estimator must be an object with fit and predict, got {brief(self.estimator)}")

    def residual(self, Z: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        """Mean squared residual of ``y`` (n,) given parents ``Z`` (n, k); without parents, about the mean."""
        if Z.shape[1] == 0:
            return float(y.var())
        # Others get their own copies: a regressor that scales its input in place must not spoil the next fit.
        estimator, Z, y = self._seeded(), np.ascontiguousarray(Z), y.copy()
        if self.cv is None:
            predicted = estimator.fit(Z, y).predict(Z)
        else:
            from sklearn.model_selection import check_cv, cross_val_predict  # a third of a second, for few

            folds = check_cv(self.cv)
            if isinstance(self.cv, numbers.Integral):
                folds.shuffle, folds.random_state = True, self.random_state
            predicted = cross_val_predict(estimator, Z, y, cv=folds)
        return float(((y - _column(predicted, len(y))) ** 2).mean())

    def forecast(self, Z: NDArray[np.float64], y: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) at ``new`` (m, k) of the estimator fitted to all rows of ``Z`` (n, k) and ``y`` (n,)."""
        if Z.shape[1] == 0:
            return np.full(len(new), y.mean())
        fitted = self._seeded().fit(np.ascontiguousarray(Z), y.copy())
        return _column(fitted.predict(np.ascontiguousarray(new)), len(new))

    def _seeded(self) -> Any:
        estimator = clone(self.estimator)
        open_seeds = {
            name: self.random_state
            for name, value in estimator.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        return estimator.set_params(**open_seeds) if open_seeds else estimator


def _column(predicted: Any, n: int) -> NDArray[np.float64]:
    """What a regressor predicted, as one number for each of ``n`` rows."""
    values = np.asarray(predicted, dtype=np.float64)
    if values.shape not in ((n,), (n, 1)):
        raise ValueError(f"predict returned an array of shape {values.shape} for {n} rows")
    return values.reshape(-1)
