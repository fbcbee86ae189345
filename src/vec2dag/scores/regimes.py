"""Regressions of nodes on different rows of a table: those in which a node was not set by somebody."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import as_table, is_constant, is_constant_by_moments, quoted
from ..interventions import Interventions
from ..moments import Moments
from .linear import LinearScores
from .local import LocalCache, LocalScores
from .regression import Regression

__all__ = ["Regime", "Regimes"]


class Regime(NamedTuple):
    """Nodes with the same rows.

    Attributes
    ----------
    nodes : array of int
        Columns that were set in the same rows.
    rows : array of shape (n,), bool
        The other rows: those of which the regressions of these nodes are.
    part : Regression
        On these rows, and the columns that vary in them.
    columns : array of shape (c,)
        Which columns these are.
    moments : Moments
        Of all columns in these rows.
    """

    nodes: NDArray[np.int64]
    rows: NDArray[np.bool_]
    part: Regression
    columns: NDArray[np.int64]
    moments: Moments


class Regimes(Regression):
    """A regression for every group of nodes that were set in the same rows, joined with the other rows.

    A node that was set in all rows, or in all but two, has no regression: its residual is 1 whatever its parents are,
    and it has no rows, so that nothing speaks for a parent.

    Parameters
    ----------
    X : array of shape (n, d)
    settings : an object with ``bind``
        The regression. Each group has columns centred by their means in its rows.
    interventions : Interventions

    Attributes
    ----------
    n : int
        All rows of the table.
    rows : array of shape (d,)
        Those of every node.
    regimes : list of Regime
        Of the nodes that have rows.
    moments : Moments
        Of the table, for whoever wants to look at least squares first.
    """

    rows: NDArray[np.int64]

    def __init__(self, X: Any, settings: Any, interventions: Interventions) -> None:
        values = as_table(X, rows=2)
        self.n, self.d = values.shape
        self.names, self.interventions = interventions.names, interventions
        self.rows = np.where(interventions.learnable, interventions.free, 0)
        if not self.rows.any():
            raise ValueError("every column was set in all rows, or in all but two: there is nothing to learn from")
        group, patterns = interventions.groups()
        # One factor for the rows of each pattern, which are merged for each group.
        moments = interventions.moments(values)
        self.moments = Moments.together(moments)
        self.regimes: list[Regime] = []
        for g, own in enumerate(patterns):
            nodes = np.flatnonzero((group == g) & (self.rows > 0))
            if not len(nodes):
                continue
            rows = own[interventions.rows]
            together = Moments.together([m for m, mine in zip(moments, own, strict=True) if mine])
            varies = ~_constant(values[rows], together)
            if not varies[nodes].all():
                still = [self.names[j] for j in nodes[~varies[nodes]]]
                where = f"constant in those {int(rows.sum())} rows"
                raise ValueError(f"columns must vary where they were not set: {quoted(still)} {where}")
            columns = np.flatnonzero(varies)
            names = tuple(self.names[j] for j in columns)
            if getattr(settings, "needs_rows", True):
                data: Any = values[rows][:, columns] - together.mean[columns]
            else:
                data = together.taken(columns)
            part = settings.bind(data, names)
            self.regimes.append(Regime(nodes, rows, part, columns, together))
        self._look()

    def _look(self) -> None:
        """What follows from the regimes."""
        self.group = np.full(self.d, -1, np.int64)
        self.place = np.full((len(self.regimes), self.d), -1, np.int64)
        for g, regime in enumerate(self.regimes):
            self.group[regime.nodes] = g
            self.place[g, regime.columns] = np.arange(len(regime.columns))
        parts = [regime.part for regime in self.regimes]
        self.cheap = all(part.cheap for part in parts)
        self.linear = all(part.linear for part in parts)
        self.reads_units = any(part.reads_units for part in parts)
        self.score_equivalent = all(part.score_equivalent for part in parts)
        self.statistics = None if any(part.statistics is None for part in parts) else self._statistics()

    def _statistics(self) -> tuple[NDArray[Any], ...]:
        """Those of the parts, a group each, and of nodes without rows in a last one: columns that do not vary, and such
        nodes, have nothing to do with any other.
        """
        groups, d = len(self.regimes) + bool((self.rows == 0).any()), self.d
        C, F = np.zeros((groups, d, d)), np.zeros((groups, d, d))
        C[:] = np.eye(d)
        scale, base = np.ones(d), np.ones(d)
        weight = np.zeros(groups)
        for g, (nodes, _, part, columns, _) in enumerate(self.regimes):
            (own,), (factor,), scales, bases, _, _ = part.statistics
            C[g][np.ix_(columns, columns)] = own
            F[g][columns, : factor.shape[1]] = factor
            place = self.place[g, nodes]
            scale[nodes], base[nodes] = scales[place], bases[place]
            weight[g] = self.weights[nodes[0]]
        return C, F, scale, base, np.where(self.group < 0, groups - 1, self.group), weight

    def __repr__(self) -> str:
        return f"{self.regimes[0].part!r} and others, with {self.interventions!r}"

    def _of(self, node: int, parents: Iterable[int]) -> tuple[Regression, int, list[int]]:
        """The regression of a node, and the numbers that node and parents, as far as they vary, have there."""
        place = self.place[self.group[node]]
        inside = [int(place[p]) for p in parents if place[p] >= 0]
        return self.regimes[self.group[node]].part, int(place[node]), inside

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Mean squared residual of ``node`` given ``parents`` in the rows in which it was not set."""
        if self.group[node] < 0:
            return 1.0
        part, own, others = self._of(node, parents)
        return part.residual(own, others)

    def noise(self, node: int, parents: Sequence[int]) -> float:
        """Variance of the noise of ``node`` given ``parents`` in the rows in which it was not set."""
        if self.group[node] < 0:
            return 1.0
        part, own, others = self._of(node, parents)
        return part.noise(own, others)

    def forecast(self, node: int, parents: Sequence[int], new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (m,) of ``node`` for rows ``new`` (m, k) of its parents, both less the means of the table."""
        if self.group[node] < 0:
            return np.zeros(len(new))
        shift = self.regimes[self.group[node]].moments.mean - self.moments.mean
        part, own, others = self._of(node, parents)
        vary = [k for k, p in enumerate(parents) if self.place[self.group[node], p] >= 0]
        at = (new - shift[list(parents)])[:, vary]
        return part.forecast(own, others, at) + shift[node]

    def coefficients(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Regression weights ``W`` (d, d), ``W[i, j]`` of parent ``i`` for node ``j``, for linear parts."""
        W = np.zeros((self.d, self.d))
        for nodes, _, part, columns, _ in self.regimes:
            own = np.zeros_like(A)
            own[:, nodes] = A[:, nodes]
            inside = np.ix_(columns, columns)
            W[inside] += part.coefficients(own[inside])
        return W

    def by_node(self) -> list[Moments]:
        """Of every node the moments of its rows; where it has none, of all."""
        return [self.moments if g < 0 else self.regimes[g].moments for g in self.group]

    def taken(self, order: NDArray[np.int64]) -> "Regimes":
        """The same with the columns in another order."""
        other, place = copy(self), np.argsort(order)
        other.names = tuple(self.names[k] for k in order)
        other.interventions, other.rows = self.interventions.taken(order), self.rows[order]
        other.moments = self.moments.taken(order)
        other.regimes = []
        for nodes, rows, part, columns, moments in self.regimes:
            moved = np.argsort(place[columns])
            other.regimes.append(
                Regime(np.sort(place[nodes]), rows, part.taken(moved), np.sort(place[columns]), moments.taken(order))
            )
        other._look()
        return other

    def simpler(self) -> "Regimes | None":
        """See :meth:`Regression.simpler`."""
        return self._of_others(regime.part.simpler() for regime in self.regimes)

    def approximate(self) -> "Regimes | None":
        """See :meth:`Regression.approximate`."""
        return self._of_others(regime.part.approximate() for regime in self.regimes)

    def thinned(self, step: int) -> "Regimes | None":
        """See :meth:`Regression.thinned`."""
        return self._of_others(regime.part.thinned(step) for regime in self.regimes)

    def _of_others(self, parts: Iterable[Regression | None]) -> "Regimes | None":
        """The same with other parts; None if one is missing."""
        other, regimes = copy(self), []
        for regime, part in zip(self.regimes, parts, strict=True):
            if part is None:
                return None
            regimes.append(regime._replace(part=part))
        other.regimes = regimes
        other._look()
        return other

    def doubt(self) -> str | None:
        """What one of the regressions says of its rows."""
        return next((said for regime in self.regimes if (said := regime.part.doubt()) is not None), None)

    def fingerprint(self) -> str | None:
        """Those of the parts, and which nodes have them."""
        prints = [regime.part.fingerprint() for regime in self.regimes]
        if any(printed is None for printed in prints):
            return None
        return "+".join([*map(str, prints), *map(str, self.group)])

    def local(self, cache: LocalCache | None = None, n_jobs: int | None = None) -> LocalScores:
        """As the parts have them."""
        if self.statistics is not None:
            return LinearScores(self, cache, n_jobs)
        return _ByRegime(self, cache, n_jobs) if self.cheap else LocalScores(self, cache, n_jobs)


def _constant(rows: NDArray[np.float64], moments: Moments) -> NDArray[np.bool_]:
    """Columns (d,) that do not vary in these rows (m, d)."""
    variances = (moments.factor**2).sum(axis=0) / moments.n
    return is_constant(rows) | is_constant_by_moments(moments.mean, variances)


class _ByRegime(LocalScores):
    """Local scores that are cheap in batches, but not compiled: each part makes those of its nodes."""

    regression: Regimes

    def __init__(self, regression: Regimes, cache: LocalCache | None = None, n_jobs: int | None = None) -> None:
        super().__init__(regression, cache, n_jobs)
        self.parts = [regime.part.local(None, n_jobs) for regime in regression.regimes]

    def batch(self, wanted: Sequence[tuple[int, Iterable[int]]]) -> NDArray[np.float64]:
        """Mean squared residuals of several (node, parents)."""
        keys = [self._key(node, parents) for node, parents in wanted]
        values, group = np.ones(len(keys)), self.regression.group[[node for node, _ in keys]]
        for g, part in enumerate(self.parts):
            mine = np.flatnonzero(group == g)
            if len(mine):
                asked = (wanted[int(k)] for k in mine)
                values[mine] = part.batch([self.regression._of(node, sorted(set(given)))[1:] for node, given in asked])
        return values
