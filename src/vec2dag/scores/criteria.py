"""Criteria: how the mean squared residuals of the nodes and the numbers of their parents become one number."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _kernels
from .._checks import choose, number
from .._settings import Settings

__all__ = ["BIC", "CRITERIA", "Criterion", "LeastSquares", "as_criterion"]

Array = NDArray[np.float64]


class Criterion(Settings):
    """How mean squared residuals ``r_i`` and the number ``|G|`` of edges become a score; higher is better.

    ================================= ======== ===============================================
    ``BIC(variances="unequal")``      bic-nv   ``-(n sum_i ln r_i + |G| ln n)``
    ``BIC(variances="equal")``        bic-ev   ``-(n d ln(sum_i r_i / d) + |G| ln n)``
    ``LeastSquares(lambda0)``         ls       ``-(n sum_i r_i + lambda0 |G|)``
    ================================= ======== ===============================================

    All are divided by ``n d``. A criterion adds up a *link* of every node, makes the sum a *fit*, and subtracts the
    *price* of the parents. The three functions stand here and once more, compiled, in ``_kernels.py``.
    """

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
        return self.kind != _kernels.BIC_NV

    @property
    def score_equivalent(self) -> bool:
        """Whether linear regressions give the members of a Markov equivalence class the same score.

        They do for every table of prices: members have the same numbers of parents, though not at the same nodes.
        """
        return self.kind == _kernels.BIC_NV and self.offset == 0

    def edge_price(self, n: int, d: int) -> float:
        """What a first parent costs, before the division by ``n d``."""
        raise NotImplementedError

    def prices(self, n: int, d: int) -> Array:
        """What k = 0, ..., d parents of a node cost, (d + 1,), in prices of a first one: k itself for BIC."""
        return np.arange(d + 1.0)

    def price(self, k: int, n: int, d: int) -> float:
        """What ``k`` parents of a node cost, before the division by ``n d``."""
        return self.edge_price(n, d) * float(self.prices(n, d)[k])

    def penalty(self, n: int, d: int) -> float:
        """What a first parent costs, in the units of the score."""
        return self.edge_price(n, d) / (n * d)

    def compiled(self, n: int, d: int) -> tuple[int, float, float, Array]:
        """The criterion as the kernels take it."""
        return self.kind, self.penalty(n, d), float(self.offset), self.prices(n, d)

    def link(self, residuals: ArrayLike) -> Array:
        """What is summed over nodes: the logarithm of residuals for ``bic-nv``, residuals otherwise."""
        values = np.asarray(residuals, dtype=np.float64) + self.offset
        return np.log(values) if self.kind == _kernels.BIC_NV else values

    def fit(self, total: float, d: int) -> float:
        """The score without prices, from the sum ``total`` of the links of ``d`` nodes."""
        return -total / d if self.decomposable else -math.log(total / d)

    def change(self, delta: ArrayLike, total: float, d: int) -> Array:
        """Change of :meth:`fit` when ``total`` grows by ``delta``."""
        values = np.asarray(delta, dtype=np.float64)
        return -values / d if self.decomposable else -np.log(np.maximum(1.0 + values / total, _kernels.TINY))


@dataclass
class BIC(Criterion):
    """The Bayesian information criterion of Gaussian noises.

    Parameters
    ----------
    variances : {"unequal", "equal"}, default "unequal"
        Of the noises. ``"unequal"`` with linear regression does not depend on the units of the columns and is the same
        for all members of a Markov equivalence class; ``"equal"`` reads the variances themselves.
    offset : float, default 0.0
        Added to every mean squared residual; the released implementation of the paper has ``1e-8`` in ``bic-nv``.
    """

    variances: str = "unequal"
    offset: float = 0.0

    def check(self) -> None:
        """Refuse impossible values."""
        choose("variances", self.variances, VARIANCES)
        number("offset", self.offset, least=0)

    @property
    def name(self) -> str:
        """``"bic-nv"`` or ``"bic-ev"``."""
        return f"bic-{VARIANCES[self.variances][1]}"

    @property
    def kind(self) -> int:
        """The code of the kernels."""
        return VARIANCES[self.variances][0]

    def edge_price(self, n: int, d: int) -> float:
        """``ln n``."""
        return math.log(n)


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
    "ls": LeastSquares,
}


def as_criterion(criterion: Any) -> Criterion:
    """The criterion that a name stands for, or a copy of the object, which later changes of it do not reach."""
    return copy(criterion) if isinstance(criterion, Criterion) else choose("criterion", criterion, CRITERIA)()
