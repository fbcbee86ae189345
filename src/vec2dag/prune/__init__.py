"""Pruning: remove edges that the data do not need.

Every ``prune_...`` is a function ``(X, A) -> A`` and has an ``explain_...`` with the same parameters, which says of
every edge why it stays or goes; ``Threshold``, ``BIC``, ``CAM`` and ``CI`` hold their settings for the estimator.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import DEPENDENCE_TOLERANCE, as_table, brief, choose, flag, is_constant, number, share, whole_number
from .._parallel import one_blas_thread, run_each
from .._settings import Settings
from ..graph import as_adjacency
from ..moments import Moments
from ..scores import criteria
from ..scores.linear import LinearOnTable, as_linear, has_rows
from ..scores.splines import basis_size, smooth
from .additive import additive_terms
from .independence import kci, kernel_test

# fmt: off
__all__ = [
    "BIC", "CAM", "CI", "PRUNERS", "Threshold", "Verdict", "explain_bic", "explain_cam", "explain_ci", "explain_linear",
    "prune_bic", "prune_cam", "prune_ci", "prune_linear",
]
# fmt: on

Array = NDArray[np.float64]
Test = Callable[[Array, Array, Array], float]

TESTS: dict[str, Test] = {"fast": kernel_test, "kci": kci}


@dataclass(frozen=True)
class Verdict:
    """Why an edge stays or goes.

    Attributes
    ----------
    source, target : int
        The edge ``source -> target``.
    kept : bool
    statistic : {"coefficient", "standardised coefficient", "p-value", "BIC gain"}
        What was computed: coefficients stay from ``limit`` on in absolute value, p-values below it, gains above it.
    value, limit : float
    reason : str
        Where the value alone would not tell.
    """

    source: int
    target: int
    kept: bool
    statistic: str
    value: float
    limit: float
    reason: str = ""

    @property
    def side(self) -> str:
        """On which side of the limit edges stay: "from", "below" or "above" it."""
        return {"p-value": "below", "BIC gain": "above"}.get(self.statistic, "from")

    @property
    def margin(self) -> float:
        """How far the value is on that side; the less negative, the nearer was the edge to staying."""
        return {"below": self.limit - self.value, "above": self.value - self.limit}.get(
            self.side, abs(self.value) - self.limit
        )


# --- linear regression ----------------------------------------------------------------------------------------


def prune_linear(
    X: ArrayLike | Moments | LinearOnTable, A: ArrayLike, threshold: float = 0.3, *, standardised: bool = False
) -> NDArray[np.uint8]:
    """Keep the edges whose linear regression coefficient is at least ``threshold`` in absolute value.

    Coefficients are in the units of the data, so the threshold is too; the paper uses 0.3.

    Parameters
    ----------
    X : array of shape (n, d), Moments, or LinearOnTable
    A : array of shape (d, d)
        Adjacency matrix of a DAG. Not modified.
    threshold : float, default 0.3
    standardised : bool, default False
        Threshold ``b_ij sd_i / sd_j``, the coefficients of standardised columns, which have no units.

    Returns
    -------
    A : array of shape (d, d), uint8
    """
    return kept(A, explain_linear(X, A, threshold, standardised=standardised))


def explain_linear(
    X: ArrayLike | Moments | LinearOnTable, A: ArrayLike, threshold: float = 0.3, *, standardised: bool = False
) -> list[Verdict]:
    """What :func:`prune_linear` decides of every edge of ``A``, in row-major order."""
    number("threshold", threshold, least=0)
    flag("standardised", standardised)
    linear = as_linear(X)
    adjacency = _checked(A, linear.d)
    W = linear.coefficients(adjacency)
    name = "coefficient"
    if standardised:
        size = np.sqrt(linear.base)
        W, name = W * (size[:, None] / size[None, :]), "standardised coefficient"
    return [
        Verdict(int(i), int(j), bool(abs(W[i, j]) >= threshold), name, float(W[i, j]), float(threshold))
        for i, j in np.argwhere(adjacency)
    ]


def prune_bic(
    X: ArrayLike | Moments | LinearOnTable, A: ArrayLike, gamma: float = 0.0, discount: float = 1.0
) -> NDArray[np.uint8]:
    """Remove edges, the least useful of a node first, while that improves the linear ``bic-nv`` score.

    The edge ``i -> j`` gains ``n ln(r_without / r_with) - ln n``, r being the mean squared residual of j, or less where
    parents cost more (:class:`vec2dag.BIC`). This does not depend on units and has no threshold to choose.

    Parameters
    ----------
    X : array of shape (n, d), Moments, or LinearOnTable
    A : array of shape (d, d)
        Adjacency matrix of a DAG. Not modified.

    gamma, discount : float, default 0.0 and 1.0
        Prices, as in :class:`vec2dag.BIC`.

    Returns
    -------
    A : array of shape (d, d), uint8
    """
    return kept(A, explain_bic(X, A, gamma, discount))


def explain_bic(
    X: ArrayLike | Moments | LinearOnTable,
    A: ArrayLike,
    gamma: float = 0.0,
    discount: float = 1.0,
    required: ArrayLike | None = None,
) -> list[Verdict]:
    """What :func:`prune_bic` decides of every edge of ``A``, in row-major order; ``required`` (d, d) ones stay.

    The gain of a removed edge is that when it was removed, of a kept edge that in the pruned graph.
    """
    linear = as_linear(X)
    adjacency = _checked(A, linear.d)
    criterion = criteria.BIC(gamma=gamma, discount=discount)
    criterion.compiled(linear.n, linear.d)  # refuses prices that are none
    steps = criterion.edge_price(linear.n, linear.d) * np.diff(criterion.prices(linear.n, linear.d))
    stays = np.zeros(adjacency.shape, bool) if required is None else np.asarray(required, dtype=bool)
    verdicts = []
    for node in range(linear.d):
        parents = np.flatnonzero(adjacency[:, node]).tolist()
        while parents:
            gains = _bic_gains(linear, node, parents, float(steps[len(parents) - 1]))
            least = min((gain for i, gain in zip(parents, gains, strict=True) if not stays[i, node]), default=0.0)
            if least >= 0:
                verdicts += [Verdict(i, node, True, "BIC gain", g, 0.0) for i, g in zip(parents, gains, strict=True)]
                break
            # Of parents that are worth the same, such as copies, the first stays.
            equal = [k for k, i in enumerate(parents) if not stays[i, node] and gains[k] <= least + 1e-9 * linear.n]
            verdicts.append(Verdict(parents.pop(equal[-1]), node, False, "BIC gain", gains[equal[-1]], 0.0))
    return _row_major(verdicts)


def _bic_gains(linear: LinearOnTable, node: int, parents: list[int], price: float) -> list[float]:
    """What each parent adds to -n ln r, less the price of the last one."""
    whole = linear.residual(node, parents)
    without = (linear.residual(node, [p for p in parents if p != i]) for i in parents)
    return [linear.n * math.log(r / whole) - price for r in without]


# --- CAM ------------------------------------------------------------------------------------------------------


def prune_cam(
    X: ArrayLike, A: ArrayLike, alpha: float = 0.001, n_basis: int = 10, n_jobs: int | None = None
) -> NDArray[np.uint8]:
    """CAM pruning (Buehlmann, Peters, Ernest 2014): keep the parents that an additive regression finds significant.

    Every node is regressed on a smooth function of each of its parents, as by ``gam(y ~ s(x1, k=10) + ...)`` of R's
    mgcv, and a parent stays where the p-value of its function is below ``alpha``.

    Parameters
    ----------
    X : array of shape (n, d)
    A : array of shape (d, d)
        Adjacency matrix of a DAG. Not modified.
    alpha : float, default 0.001
    n_basis : int, default 10
        Basis functions for each parent with the constant; 2 is linear regression. There are fewer of them for
        parents of few values, and, as in CAM, where there would be less than three rows for each.
    n_jobs : int or None, default None
        Threads over nodes; None uses every core. The result does not depend on it.

    Returns
    -------
    A : array of shape (d, d), uint8

    Notes
    -----
    Parents and nodes that do not vary, and nodes with hardly more rows than parents, have the p-value 1: there is
    nothing that speaks for the edge. Of parents that are copies of each other (up to sign, scale and location) the
    first is tested, and the others have the p-value 1: they add nothing to it.
    """
    return kept(A, explain_cam(X, A, alpha, n_basis, n_jobs))


def explain_cam(
    X: ArrayLike, A: ArrayLike, alpha: float = 0.001, n_basis: int = 10, n_jobs: int | None = None
) -> list[Verdict]:
    """What :func:`prune_cam` decides of every edge of ``A``, in row-major order."""
    share("alpha", alpha)
    whole_number("n_basis", n_basis, least=2)
    values, adjacency = _rows(X, A, "prune_cam")
    n = len(values)
    nodes = _nodes(values, adjacency)
    sizes = [basis_size(n, len(node.tested), n_basis) if node.tested else 0 for node in nodes]
    wanted = sorted({(j, size) for node, size in zip(nodes, sizes, strict=True) for j in node.tested})

    def work(k: int) -> list[Verdict]:
        node = nodes[k]
        if not node.tested:
            return node.verdicts([], alpha)
        return node.verdicts(additive_terms(values[:, k], [smooths[j, sizes[k]] for j in node.tested]).p, alpha)

    with one_blas_thread():
        bases = run_each(lambda k: smooth(values[:, wanted[k][0]], wanted[k][1]), len(wanted), n_jobs)
        smooths = dict(zip(wanted, bases, strict=True))
        return _row_major(v for found in run_each(work, len(nodes), n_jobs) for v in found)


# --- conditional independence ---------------------------------------------------------------------------------


def prune_ci(
    X: ArrayLike, A: ArrayLike, alpha: float = 0.001, test: str | Test = "fast", n_jobs: int | None = None
) -> NDArray[np.uint8]:
    """Remove ``i -> j`` where X_i and X_j are independent given the other parents of j: p-value of at least ``alpha``.

    All edges are tested against the parents in ``A``, not against those that are left when their turn comes, so that
    the result does not depend on the order of the columns.

    Parameters
    ----------
    X : array of shape (n, d)
    A : array of shape (d, d)
        Adjacency matrix of a DAG. Not modified.
    alpha : float, default 0.001
    test : {"fast", "kci"} or callable, default "fast"
        ``"kci"`` is the kernel test of causal-learn (extra ``ci``), of which time grows with the cube of the number
        of rows. ``"fast"`` needs no other package: the same test up to 1200 rows, and low-rank kernels beyond. A
        callable takes x (n,), y (n,) and Z (n, k) and returns a p-value.
    n_jobs : int or None, default None
        Threads over edges; None uses every core. The result does not depend on it. A callable is called from one
        thread, in the order of the edges.

    Returns
    -------
    A : array of shape (d, d), uint8

    Notes
    -----
    Columns that do not vary and copies are treated as in :func:`prune_cam`. Kernel tests given many other parents
    reject independence more often than ``alpha`` says, so that edges stay: ``benchmarks/results/prune.md``.
    """
    return kept(A, explain_ci(X, A, alpha, test, n_jobs))


def explain_ci(
    X: ArrayLike, A: ArrayLike, alpha: float = 0.001, test: str | Test = "fast", n_jobs: int | None = None
) -> list[Verdict]:
    """What :func:`prune_ci` decides of every edge of ``A``, in row-major order."""
    function = _test(test)
    n_jobs = 1 if callable(test) else n_jobs
    share("alpha", alpha)
    values, adjacency = _rows(X, A, "prune_ci")
    nodes = _nodes(values, adjacency)
    edges = [(i, j) for i, j in np.argwhere(adjacency).tolist() if i in nodes[j].tested]

    def work(k: int) -> float:
        i, j = edges[k]
        found = function(values[:, i], values[:, j], values[:, [z for z in nodes[j].tested if z != i]])
        try:
            p = float(found)
        except (TypeError, ValueError):
            p = math.nan
        if not 0 <= p <= 1:
            raise ValueError(f"test must return a p-value between 0 and 1, got {brief(found)} for the edge {i} -> {j}")
        return p

    with one_blas_thread():
        p = dict(zip(edges, run_each(work, len(edges), n_jobs), strict=True))
    return _row_major(v for node in nodes for v in node.verdicts([p[i, node.index] for i in node.tested], alpha))


def _test(test: str | Test) -> Test:
    """The test that a name stands for."""
    if not isinstance(test, str) and (not callable(test) or isinstance(test, type)):
        raise ValueError(f"test={brief(test)}: allowed are 'fast', 'kci', and callables (x, y, Z) -> p-value")
    return choose("test", test, TESTS) if isinstance(test, str) else test


# --- settings -------------------------------------------------------------------------------------------------


@dataclass
class Threshold(Settings):
    """Keep edges with a linear coefficient of at least ``threshold``: :func:`prune_linear`.

    Parameters
    ----------
    threshold : float, default 0.3
        In the units of the data.
    standardised : bool, default False
        Threshold the coefficients of standardised columns, which have no units.
    """

    name: ClassVar[str] = "linear"
    needs_rows: ClassVar[bool] = False

    threshold: float = 0.3
    standardised: bool = False

    def check(self) -> None:
        """Refuse impossible values."""
        number("threshold", self.threshold, least=0)
        flag("standardised", self.standardised)

    def explain(self, X: Any, A: ArrayLike, n_jobs: int | None = None) -> list[Verdict]:
        """Of every edge of ``A`` why it stays or goes."""
        return explain_linear(X, A, self.threshold, standardised=self.standardised)


@dataclass
class BIC(Settings):
    """Remove edges while that improves the linear ``bic-nv`` score: :func:`prune_bic`.

    Parameters
    ----------
    gamma, discount : float, default 0.0 and 1.0
        Prices, as in :class:`vec2dag.BIC`.
    """

    name: ClassVar[str] = "bic"
    needs_rows: ClassVar[bool] = False
    # Parents are removed one after the other, so that it has to know which cannot be.
    takes_required: ClassVar[bool] = True

    gamma: float = 0.0
    discount: float = 1.0

    def check(self) -> None:
        """Refuse impossible values."""
        criteria.BIC(gamma=self.gamma, discount=self.discount)

    def explain(
        self, X: Any, A: ArrayLike, n_jobs: int | None = None, required: ArrayLike | None = None
    ) -> list[Verdict]:
        """Of every edge of ``A`` why it stays or goes."""
        return explain_bic(X, A, self.gamma, self.discount, required)


@dataclass
class CAM(Settings):
    """Keep parents that an additive regression finds significant: :func:`prune_cam`.

    Parameters
    ----------
    alpha : float, default 0.001
        Significance level.
    n_basis : int, default 10
        Basis functions for each parent.
    """

    name: ClassVar[str] = "cam"
    needs_rows: ClassVar[bool] = True

    alpha: float = 0.001
    n_basis: int = 10

    def check(self) -> None:
        """Refuse impossible values."""
        share("alpha", self.alpha)
        whole_number("n_basis", self.n_basis, least=2)

    def explain(self, X: Any, A: ArrayLike, n_jobs: int | None = None) -> list[Verdict]:
        """Of every edge of ``A`` why it stays or goes."""
        return explain_cam(X, A, self.alpha, self.n_basis, n_jobs)


@dataclass
class CI(Settings):
    """Remove edges between columns that are independent given the other parents: :func:`prune_ci`.

    Parameters
    ----------
    alpha : float, default 0.001
        Significance level.
    test : {"fast", "kci"} or callable, default "fast"
    """

    name: ClassVar[str] = "ci"
    needs_rows: ClassVar[bool] = True

    alpha: float = 0.001
    test: str | Test = "fast"

    def check(self) -> None:
        """Refuse impossible values."""
        share("alpha", self.alpha)
        _test(self.test)

    def explain(self, X: Any, A: ArrayLike, n_jobs: int | None = None) -> list[Verdict]:
        """Of every edge of ``A`` why it stays or goes."""
        return explain_ci(X, A, self.alpha, self.test, n_jobs)


PRUNERS: dict[str, Callable[[], Any]] = {kind.name: kind for kind in (Threshold, BIC, CAM, CI)}


# --- shared ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Node:
    """Parents of a node: those that can be tested, and why not the others."""

    index: int
    tested: list[int]
    reasons: dict[int, str]

    def verdicts(self, p: Iterable[float], alpha: float) -> list[Verdict]:
        """Verdicts on the edges to this node, given the p-values of the tested ones."""
        values = zip(self.tested, map(float, p), strict=True)
        tested = [Verdict(i, self.index, value < alpha, "p-value", value, alpha) for i, value in values]
        return tested + [
            Verdict(i, self.index, False, "p-value", 1.0, alpha, reason) for i, reason in self.reasons.items()
        ]


def _nodes(X: Array, A: NDArray[np.uint8]) -> list[_Node]:
    """What can be tested of the edges of ``A``."""
    n, d = X.shape
    varies = ~is_constant(X)
    spread = np.where(varies, X.std(axis=0), 1.0)
    unit = (X - X.mean(axis=0)) / (spread * np.sqrt(n))
    copies = np.abs(unit.T @ unit) > 1 - DEPENDENCE_TOLERANCE**2 / 2
    nodes = [_Node(j, [], {}) for j in range(d)]
    for i, j in np.argwhere(A).tolist():
        node = nodes[j]
        still = [k for k in (j, i) if not varies[k]]
        same = [k for k in node.tested if copies[i, k]]
        if still:
            node.reasons[i] = f"node {still[0]} does not vary"
        elif same:
            node.reasons[i] = f"a copy of node {same[0]}"
        else:
            node.tested.append(i)
    for node in nodes:
        if n < len(node.tested) + 2:
            node.reasons.update(dict.fromkeys(node.tested, f"{n} rows are too few for {len(node.tested)} parents"))
            node.tested.clear()
    return nodes


def _rows(X: ArrayLike, A: ArrayLike, name: str) -> tuple[Array, NDArray[np.uint8]]:
    if not has_rows(X):
        raise ValueError(
            f"{name} needs the rows of the table, got {type(X).__name__} as X, which has only their moments"
        )
    values = as_table(X, rows=2)
    return values, _checked(A, values.shape[1])


def _checked(A: ArrayLike, d: int) -> NDArray[np.uint8]:
    adjacency = as_adjacency(A)
    if adjacency.shape != (d, d):
        raise ValueError(f"A must have shape {(d, d)} like the data, got {adjacency.shape}")
    return adjacency


def _row_major(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda v: (v.source, v.target))


def kept(A: ArrayLike, verdicts: list[Verdict]) -> NDArray[np.uint8]:
    """A copy of ``A`` (d, d) without the edges that do not stay."""
    pruned = as_adjacency(A)
    for v in verdicts:
        pruned[v.source, v.target] = v.kept
    return pruned
