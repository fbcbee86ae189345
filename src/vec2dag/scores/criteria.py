"""Criteria: how the mean squared residuals of the nodes and the numbers of their parents become one number."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from .. import _kernels
from .._checks import brief, choose, number, quoted
from .._settings import Settings
from ..columns import Coded, Columns, coded, has_categories

__all__ = ["BIC", "CRITERIA", "Criterion", "LeastSquares", "as_criterion", "is_criterion", "table_for"]

Array = NDArray[np.float64]


class Criterion(Settings):
    """How mean squared residuals ``r_i`` and the number ``|G|`` of edges become a score; higher is better.

    ================================= ======== ===============================================
    ``BIC(variances="unequal")``      bic-nv   ``-(n sum_i ln r_i + |G| ln n)``
    ``BIC(gamma=1)``                  ebic-nv  ``-(n sum_i ln r_i + |G| ln n + 2 sum_i ln C(d - 1, k_i))``
    ``BIC(variances="equal")``        bic-ev   ``-(n d ln(sum_i r_i / d) + |G| ln n)``
    ``LeastSquares(lambda0)``         ls       ``-(n sum_i r_i + lambda0 |G|)``
    ================================= ======== ===============================================

    All are divided by ``n d``. A criterion adds up a *link* of every node, turns the sum into a number, and
    subtracts the *price* of the parents. The three functions stand here and once more, compiled, in ``_kernels.py``.

    With interventions node i has ``n_i`` rows, those in which it was not set. ``n sum_i ln r_i`` is then
    ``sum_i n_i ln r_i``, ``sum_i n_i`` takes the place of ``n d``, and ``ln n`` stays that of all rows: with one for
    each node equivalent graphs would not score the same.
    """

    #: What columns may be.
    takes_numbers: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = False

    #: Added to every mean squared residual.
    offset: float = 0.0

    @property
    def name(self) -> str:
        """The short name under which results show it."""
        raise NotImplementedError

    @property
    def kind(self) -> int:
        """The code that the compiled kernels switch on."""
        raise NotImplementedError

    @property
    def decomposable(self) -> bool:
        """Whether the score is a sum over nodes; with equal variances BIC is the logarithm of a sum instead."""
        return self.kind != _kernels.BIC_EV

    @property
    def equal_variances(self) -> bool:
        """Whether the noises are taken to have one variance: the score then reads the units of the columns."""
        return self.kind not in (_kernels.BIC_NV, _kernels.COSTS)

    @property
    def score_equivalent(self) -> bool:
        """Whether linear regressions give the members of a Markov equivalence class the same score.

        They do for every table of prices: members have the same numbers of parents, though not at the same nodes.
        """
        return not self.equal_variances and self.offset == 0

    def regression(self, regression: Any) -> Any:
        """The regression whose residuals it adds up: the one that is asked for, unless it has one of its own."""
        return regression

    def edge_price(self, n: int, d: int) -> float:
        """What a first parent costs, before the division by ``n d``."""
        raise NotImplementedError

    def prices(self, n: int, d: int) -> Array:
        """What k = 0, ..., d parents of a node cost, (d + 1,), in prices of a first one: k itself for BIC."""
        return np.arange(d + 1.0)

    def price(self, k: int, n: int, d: int) -> float:
        """What ``k`` parents of a node cost, before the division by ``n d``."""
        return self.edge_price(n, d) * float(self.prices(n, d)[k])

    def penalty(self, n: int, d: int, values: float | None = None) -> float:
        """What a first parent costs, in the units of the score, which is divided by ``values``, by default ``n d``."""
        return self.edge_price(n, d) / (n * d if values is None else values)

    def compiled(self, n: int, d: int, values: float | None = None) -> tuple[int, float, float, Array]:
        """The criterion as the kernels take it; refuses prices that are none."""
        with np.errstate(all="ignore"):
            penalty, prices = float(self.penalty(n, d, values)), np.asarray(self.prices(n, d), dtype=np.float64)
        if not 0 <= penalty < math.inf or prices.shape != (d + 1,) or not np.isfinite(prices).all():
            raise ValueError(
                f"{brief(self)} must price an edge with a finite number of at least 0, and 0 to {d} parents with "
                f"finite numbers, got {brief(penalty * n * d)} and {brief(prices.tolist())}"
            )
        return self.kind, penalty, float(self.offset), prices

    def link(self, residuals: ArrayLike) -> Array:
        """What is summed over nodes: the logarithm of residuals for ``bic-nv``, residuals otherwise."""
        values = np.asarray(residuals, dtype=np.float64) + self.offset
        return np.log(values) if self.kind == _kernels.BIC_NV else values

    def unpriced(self, total: float, d: int) -> float:
        """The score without prices, from the sum ``total`` of the links of ``d`` nodes."""
        return -total / d if self.decomposable else -math.log(total / d)

    def change(self, delta: ArrayLike, total: float, d: int) -> Array:
        """Change of :meth:`unpriced` when ``total`` grows by ``delta``."""
        values = np.asarray(delta, dtype=np.float64)
        return -values / d if self.decomposable else -np.log(np.maximum(1.0 + values / total, _kernels.TINY))


@dataclass
class BIC(Criterion):
    """The Bayesian information criterion of Gaussian noises, and its extension to many columns.

    ``k`` parents of a node cost ``discount k ln n + 2 gamma ln C(d - 1, k)``. The second term is the extended criterion
    (EBIC, Chen & Chen 2008): the best of many candidates looks better than it is, and there are ``C(d - 1, k)`` sets of
    k candidates. Beyond half of the candidates, where sets become fewer again, it stays as it is.

    Parameters
    ----------
    variances : {"unequal", "equal"}, default "unequal"
        Of the noises. ``"unequal"`` with linear regression does not depend on the units of the columns and is the same
        for all members of a Markov equivalence class; ``"equal"`` reads the variances themselves.
    gamma : float, default 0.0
        Weight of the second term, usually from 0 to 1.
    discount : float, default 1.0
        Factor of the first term, as in Tetrad.
    multiplicity : {"exact", "constant"}, default "exact"
        ``"constant"`` takes ``k ln d`` for ``ln C(d - 1, k)``: every parent costs the same.
    offset : float, default 0.0
        Added to every mean squared residual; the released implementation of the paper has ``1e-8`` in ``bic-nv``.
    """

    variances: str = "unequal"
    gamma: float = 0.0
    discount: float = 1.0
    multiplicity: str = "exact"
    offset: float = 0.0

    def check(self) -> None:
        """Refuse impossible values."""
        choose("variances", self.variances, VARIANCES)
        number("gamma", self.gamma, least=0)
        number("discount", self.discount, least=0)
        choose("multiplicity", self.multiplicity, dict.fromkeys(("exact", "constant")))
        number("offset", self.offset, least=0)

    @property
    def name(self) -> str:
        """``"bic-nv"``, ``"bic-ev"``, ``"ebic-nv"`` or ``"ebic-ev"``."""
        return f"{'ebic' if self.gamma else 'bic'}-{VARIANCES[self.variances][1]}"

    @property
    def kind(self) -> int:
        """The code of the kernels."""
        return VARIANCES[self.variances][0]

    def edge_price(self, n: int, d: int) -> float:
        """``discount ln n + 2 gamma ln (d - 1)``."""
        return self.discount * math.log(n) + 2.0 * self.gamma * float(self._multiplicities(d)[1])

    def prices(self, n: int, d: int) -> Array:
        """What k = 0, ..., d parents of a node cost, (d + 1,), in prices of a first one."""
        k, first = np.arange(d + 1.0), self.edge_price(n, d)
        if self.gamma == 0 or first == 0 or self.multiplicity == "constant":
            return k
        return (self.discount * k * math.log(n) + 2.0 * self.gamma * self._multiplicities(d)) / first

    def _multiplicities(self, d: int) -> Array:
        """``ln C(d - 1, k)`` for k = 0, ..., d, or what stands for it."""
        k = np.arange(d + 1.0)
        if self.multiplicity == "constant":
            return k * math.log(d)
        m, k = d - 1.0, np.minimum(k, max((d - 1) // 2, min(1, d - 1)))
        return gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1)


VARIANCES = {"unequal": (_kernels.BIC_NV, "nv"), "equal": (_kernels.BIC_EV, "ev")}


@dataclass
class LeastSquares(Criterion):
    """Least squares with a price of edges.

    Parameters
    ----------
    lambda0 : float, optional
        Price of an edge; None is ``ln n``, which is BIC for noises of known variance 1. The paper's value is ``1e-6``,
        practically none: it leaves sparsity to the pruning.
    """

    lambda0: float | None = None

    def check(self) -> None:
        """Refuse impossible values."""
        if self.lambda0 is not None:
            number("lambda0", self.lambda0, least=0)

    @property
    def name(self) -> str:
        """``"ls"``."""
        return "ls"

    @property
    def kind(self) -> int:
        """The code of the kernels."""
        return _kernels.LS

    def edge_price(self, n: int, d: int) -> float:
        """``lambda0``, or ``ln n``."""
        return math.log(n) if self.lambda0 is None else float(self.lambda0)


CRITERIA: dict[str, Callable[[], Criterion]] = {
    "bic-nv": BIC,
    "bic-ev": partial(BIC, "equal"),
    "ebic-nv": partial(BIC, gamma=1.0),
    "ebic-ev": partial(BIC, "equal", gamma=1.0),
    "ls": LeastSquares,
}


def table_for(
    criterion: Any,
    X: Any,
    categorical: Any = "auto",
    names: Sequence[str] | None = None,
    regression: Any = "linear",
) -> Coded | None:
    """A table that has categories, as far as a criterion takes those; None if all columns are numbers.

    Parameters
    ----------
    criterion : str, Criterion, or anything else
        Criteria for numbers get those that levels are, criteria for categories alone take columns of few different
        numbers for such, and whatever is no criterion gets codes.
    X, categorical, names
        As of :func:`vec2dag.columns.coded`.
    regression : str, settings, regressor or Regression
        Where it is not linear, ``"auto"`` is a criterion for numbers.
    """
    automatic = isinstance(criterion, str) and criterion == "auto"
    curved = automatic and not (isinstance(regression, str) and regression == "linear")
    wanted = as_criterion(criterion) if is_criterion(criterion) and (curved or not automatic) else None
    counted = wanted is not None and not wanted.takes_numbers
    if not counted and not has_categories(X, categorical):
        return None
    table = coded(X, categorical, names)
    if counted:
        return table.as_categories()
    if wanted is None or wanted.takes_categories:
        return table
    # True and false, and levels that are numbers, are numbers to those who ask for them, unless said otherwise.
    numbers = table.as_numbers() if isinstance(categorical, str) else None
    if numbers is None:
        what, instead = f"criterion={brief(criterion)}", "criterion='auto'"
        if curved:
            what, instead = f"regression={brief(regression)}", "regression='linear'"
        raise ValueError(
            f"{what} is for numbers, and of the columns {quoted(table.columns.by_name)} are categories: {instead} "
            "takes both, or leave these columns out"
        )
    return numbers


# What "auto" stands for, by what the columns are.
AUTO = {"numbers": "ebic-nv", "categories": "bdeu", "both": "ebic-dg"}


def is_criterion(value: Any) -> TypeGuard[str | Criterion]:
    """Whether it is the name of a criterion, or one: what can be computed on any table."""
    return isinstance(value, str | Criterion)


def as_criterion(criterion: Any, columns: Columns | None = None) -> Criterion:
    """The criterion that a name stands for, or a copy of the object, which later changes of it do not reach.

    ``"auto"`` is the one for such ``columns``, or for numbers if nothing is said of them.
    """
    if isinstance(criterion, str) and criterion == "auto":
        categorical = np.zeros(1, dtype=bool) if columns is None else columns.categorical
        kind = "categories" if categorical.all() else "both" if categorical.any() else "numbers"
        return CRITERIA[AUTO[kind]]()
    if not isinstance(criterion, Criterion):
        return choose("criterion", criterion, CRITERIA | {"auto": BIC})()
    criterion.check()
    return copy(criterion)
