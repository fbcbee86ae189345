"""BGe: the probability of a table given a graph, with the parameters of linear-Gaussian relations integrated out."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from .. import _kernels
from .._checks import brief, names_of, number
from .._settings import Settings
from ..moments import Moments
from .criteria import BIC, CRITERIA, Criterion
from .linear import Linear
from .local import LocalCache, LocalScores
from .regression import Regression

__all__ = ["BGe", "NormalWishart", "NormalWishartOnTable"]


@dataclass
class BGe(Criterion):
    """The Bayesian Gaussian score: twice the log of the marginal likelihood, less prices, divided by ``n d``.

    Geiger & Heckerman (2002), with the correction of Kuipers, Moffa & Heckerman (2014). Means and precisions of the
    columns have a normal-Wishart prior, ``W ~ Wishart(alpha_w, T^-1)`` and ``mu | W ~ N(mean, (alpha_mu W)^-1)``, with
    ``T = t I`` and ``t = alpha_mu (alpha_w - d - 1) / (alpha_mu + 1)``. Members of a Markov equivalence class have the
    same score. The prior reads units: columns that do not share one should be standardised.

    The logarithm of the probability of a node given its parents depends on more than a residual and the number of
    parents (:class:`NormalWishart` has it), so that the compiled searches do not know this criterion: searches use
    the general descent over local scores, exact search and :func:`vec2dag.posterior` use tables of them.

    Parameters
    ----------
    alpha_mu : float, default 1.0
        Rows that the prior is worth for the means.
    alpha_w : float, optional
        Degrees of freedom of the Wishart distribution, more than ``d + 1``; None is ``d + alpha_mu + 1``.
    mean : float, optional
        Prior mean, the same for all columns; None takes the means of the table.
    gamma : float, default 0.0
        0 makes all DAGs equally probable beforehand, so that dense ones, of which there are more, prevail. With 1 it is
        the numbers of parents of a node that are, in place of the sets, as in :class:`BIC`: ``k`` parents cost
        ``2 gamma ln C(d - 1, k)``.
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None
    mean: float | None = None
    gamma: float = 0.0

    def check(self) -> None:
        """Refuse impossible values."""
        NormalWishart(self.alpha_mu, self.alpha_w, self.mean)
        number("gamma", self.gamma, least=0)

    @property
    def name(self) -> str:
        """``"bge"``."""
        return "bge"

    @property
    def kind(self) -> int:
        """A sum of logarithms: of what :meth:`NormalWishartOnTable.residual` says in place of residuals."""
        return _kernels.BIC_NV

    def edge_price(self, n: int, d: int) -> float:
        """``2 gamma ln (d - 1)``: a marginal likelihood has charged for the parameters already."""
        return BIC(gamma=self.gamma, discount=0.0).edge_price(n, d)

    def prices(self, n: int, d: int) -> NDArray[np.float64]:
        """What k = 0, ..., d parents of a node cost, (d + 1,), in prices of a first one."""
        return BIC(gamma=self.gamma, discount=0.0).prices(n, d)

    def regression(self, regression: Any = "linear") -> Any:
        """The regression whose local numbers this criterion adds up, in place of the linear one that is asked for."""
        if isinstance(regression, NormalWishart | NormalWishartOnTable):
            return regression
        if regression != "linear" and not (isinstance(regression, Linear) and not regression.reference):
            raise ValueError(f"criterion='bge' is of linear regressions, got regression={brief(regression)}")
        return NormalWishart(self.alpha_mu, self.alpha_w, self.mean)


@dataclass
class NormalWishart(Settings):
    """Bayesian linear regressions that agree with each other, as :class:`BGe` adds them up.

    Parameters
    ----------
    alpha_mu, alpha_w, mean
        Of :class:`BGe`.
    """

    needs_rows: ClassVar[bool] = False
    reads_units: ClassVar[bool] = True

    alpha_mu: float = 1.0
    alpha_w: float | None = None
    mean: float | None = None

    def check(self) -> None:
        """Refuse impossible values."""
        number("alpha_mu", self.alpha_mu, above=0)
        if self.alpha_w is not None:
            number("alpha_w", self.alpha_w, above=0)
        if self.mean is not None:
            number("mean", self.mean)

    def bind(self, data: ArrayLike | Moments, names: Sequence[str] | None = None) -> "NormalWishartOnTable":
        """Join with a table (n, d) or its statistics."""
        moments = data if isinstance(data, Moments) else Moments.of(data, names)
        if isinstance(data, Moments) and names is not None:
            moments = replace(data, names=names_of(names, len(data.names)))
        return NormalWishartOnTable(moments, self)


class NormalWishartOnTable(Regression):
    """Bayesian linear regressions on the columns of a table, from its sufficient statistics alone.

    With ``k`` parents ``P``, ``a = alpha_w - d + k + 1``, and the posterior scatter
    ``R = T + sum_t (x_t - m)(x_t - m)' + n alpha_mu / (n + alpha_mu) (mean - m)(mean - m)'`` around the means ``m``,

    ``ln p(X_i | X_P) = ln (alpha_mu / (n + alpha_mu)) / 2 - n ln(pi) / 2 + ln G((n + a) / 2) - ln G(a / 2)
    + (a + k) / 2 ln t - (n + a) / 2 ln(det R_{P+i} / det R_P) - ln(det R_P) / 2``.

    Parameters
    ----------
    moments : Moments
    settings : NormalWishart

    Attributes
    ----------
    moments : Moments
        For whoever wants to look at least squares first.
    """

    cheap = True
    linear = True
    score_equivalent = True

    def __init__(self, moments: Moments, settings: NormalWishart) -> None:
        self.n, self.d, self.names, self.moments = moments.n, len(moments.names), moments.names, moments
        self.settings = settings
        moments.variances()  # refuses constant columns
        alpha_mu = settings.alpha_mu
        alpha_w = self.d + alpha_mu + 1.0 if settings.alpha_w is None else settings.alpha_w
        if not alpha_w > self.d + 1:
            raise ValueError(f"alpha_w must be above d + 1 = {self.d + 1}, got {brief(settings.alpha_w)}")
        t = alpha_mu * (alpha_w - self.d - 1.0) / (alpha_mu + 1.0)
        shift = np.zeros(self.d) if settings.mean is None else moments.mean - settings.mean
        R = moments.factor.T @ moments.factor + np.outer(shift, shift) * (self.n * alpha_mu / (self.n + alpha_mu))
        R[np.diag_indices(self.d)] += t
        size = np.sqrt(np.diagonal(R))
        # Of unit diagonal, so that units do not decide how many digits a factorisation has.
        self.C: NDArray[np.float64] = R / size / size[:, None]
        self.log_size = np.log(size)
        k = np.arange(self.d)
        a = alpha_w - self.d + k + 1.0
        self.exponent = self.n + a
        self.constant: NDArray[np.float64] = (
            0.5 * math.log(alpha_mu / (self.n + alpha_mu))
            - 0.5 * self.n * math.log(math.pi)
            + gammaln(0.5 * (self.n + a))
            - gammaln(0.5 * a)
            + 0.5 * (a + k) * math.log(t)
        )

    def evidence(self, nodes: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.float64]:
        """``ln p(X_i | X_P)`` (m,) of ``nodes`` (m,) given ``parents`` (m, k)."""
        k = parents.shape[1]
        members = np.column_stack([parents, nodes])
        try:
            L = np.linalg.cholesky(self.C[members[:, :, None], members[:, None, :]])
        except np.linalg.LinAlgError:
            raise ValueError(
                "columns depend on each other linearly, and the prior of 'bge' is too weak in these units to tell them "
                "apart: standardise the columns, or leave one of them out"
            ) from None
        logs = 2.0 * (np.log(np.diagonal(L, axis1=1, axis2=2)) + self.log_size[members])
        return self.constant[k] - 0.5 * self.exponent[k] * logs[:, k] - 0.5 * logs[:, :k].sum(axis=1)

    def taken(self, order: NDArray[np.int64]) -> "NormalWishartOnTable":
        """The same with the columns in another order."""
        return NormalWishartOnTable(self.moments.taken(order), self.settings)

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """``p(X_i | X_P)^(-2/n)``: what, as the mean squared residual of ``bic-nv``, makes the score of BGe."""
        given = np.array([sorted(parents)], dtype=np.int64).reshape(1, -1)
        return float(self.as_residuals(self.evidence(np.array([node]), given))[0])

    def as_residuals(self, evidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """``exp(-2 / n evidence)``, of the same shape."""
        return np.exp(-2.0 / self.n * evidence)

    def local(self, cache: LocalCache | None = None, n_jobs: int | None = None) -> LocalScores:
        """Local scores in batches of one size, which are not worth remembering."""
        return _Evidence(self, cache, n_jobs)


class _Evidence(LocalScores):
    """Local scores from factorisations of many small matrices at a time, nothing remembered or counted."""

    regression: NormalWishartOnTable

    def batch(self, wanted: Sequence[tuple[int, Iterable[int]]]) -> NDArray[np.float64]:
        """What stands for the mean squared residuals of several (node, parents)."""
        checked = [(int(node), sorted({int(p) for p in parents})) for node, parents in wanted]
        for node, parents in checked:
            self._key(node, parents)
        values, sizes = np.empty(len(checked)), np.array([len(parents) for _, parents in checked], np.int64)
        for k in np.unique(sizes):
            rows = np.flatnonzero(sizes == k)
            nodes = np.array([checked[row][0] for row in rows])
            sets = np.array([checked[row][1] for row in rows], np.int64).reshape(len(rows), k)
            values[rows] = self.regression.evidence(nodes, sets)
        return self.regression.as_residuals(values)

    def residuals(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The same (B, d) of every node of every graph ``A`` (B, d, d), once for each different set of parents."""
        out = np.empty(A.shape[:2])
        for node in range(A.shape[1]):
            different, inverse = np.unique(A[:, :, node], axis=0, return_inverse=True)
            out[:, node] = self.of_sets(node, different)[inverse.ravel()]
        return out

    def of_sets(self, node: int, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The same (m,) of ``node`` given the sets of parents that are the rows of ``members`` (m, d)."""
        values, sizes = np.empty(len(members)), members.sum(axis=1, dtype=np.int64)
        for k in np.unique(sizes):
            rows = np.flatnonzero(sizes == k)
            parents = np.nonzero(members[rows])[1].reshape(len(rows), k)
            values[rows] = self.regression.evidence(np.full(len(rows), node), parents)
        return self.regression.as_residuals(values)


CRITERIA["bge"] = BGe
