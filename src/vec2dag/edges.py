"""The estimated edges as a table for people and for data frames."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import laid_out, shown
from .prune import Verdict

__all__ = ["Columns", "EdgeTable", "removed_edges"]

# p-values below this are not told from each other.
LEAST_P = 1e-16
ARROWS = {"oriented": "-->", "known": "==>", "free": "---"}


class Columns(dict[str, list[Any]]):
    """A table by column."""

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows one by one."""
        return (dict(zip(self, values, strict=True)) for values in zip(*self.values(), strict=True))


class EdgeTable(Columns):
    """Edges by column, strongest first: what ``pandas.DataFrame`` and ``polars.DataFrame`` take, and ``print`` shows.

    Columns are ``source``, ``target``, ``direction`` ("oriented" by the score, "known" beforehand, or "free": neither),
    ``coefficient`` (of the linear regression of the target on its parents), ``error`` (its standard error given the
    graph; only where regressions are linear), ``standardised`` (the coefficient in standard deviations of both columns,
    by which the edges are sorted) and, where pruning has tested edges, ``p_value`` (of the edge, not of its direction).
    Where columns are categories there is ``gain`` in place of the last ones: what the score, as the logarithm of a
    probability, would lose without the edge.
    """

    # Where regressions are not linear, the coefficient is only the slope of a line through them.
    linear: bool = True

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        A: NDArray[np.uint8],
        weights: NDArray[np.float64],
        standardised: NDArray[np.float64] | None,
        free: NDArray[np.bool_],
        *,
        gain: NDArray[np.float64] | None = None,
        error: NDArray[np.float64] | None = None,
        known: NDArray[np.bool_] | None = None,
        verdicts: Sequence[Verdict] = (),
    ) -> "EdgeTable":
        """Of a graph ``A`` with coefficients, raw and standardised, and free directions, each (d, d).

        ``error`` has standard errors, if regressions are linear, and ``known`` the directions that are known. ``gain``
        stands in place of standardised coefficients where columns are categories.
        """
        strength = gain if standardised is None else standardised
        assert strength is not None
        edges = sorted(np.argwhere(A).tolist(), key=lambda e: -abs(strength[e[0], e[1]]))
        table = cls(
            source=[names[i] for i, _ in edges],
            target=[names[j] for _, j in edges],
            direction=[
                "free" if free[i, j] else "known" if known is not None and known[i, j] else "oriented" for i, j in edges
            ],
            coefficient=[float(weights[i, j]) for i, j in edges],
        )
        if error is not None:
            table["error"] = [float(error[i, j]) for i, j in edges]
        table["gain" if standardised is None else "standardised"] = [float(strength[i, j]) for i, j in edges]
        tested = {(v.source, v.target): v.value for v in verdicts if v.statistic == "p-value"}
        if tested:
            table["p_value"] = [tested.get((i, j)) for i, j in edges]
        table.linear = error is not None or standardised is None
        return table

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int | None = None) -> str:
        """As text, the ``most`` strongest of them, and what the columns and arrows mean."""
        total = len(self["source"])
        rows = list(itertools.islice(self.rows, most))
        columns = [
            ("cause", "<", [shown(row["source"]) for row in rows]),
            ("    effect", "<", [f"{ARROWS[row['direction']]} {shown(row['target'])}" for row in rows]),
        ]
        if any(not math.isnan(row["coefficient"]) for row in rows):
            head = "coefficient" if self.linear else "slope"
            columns.append((head, ">", aligned(row["coefficient"] for row in rows)))
        if "error" in self:
            columns.append(("error", ">", aligned((row["error"] for row in rows), digits=2)))
        if "standardised" in self:
            columns.append(("standardised", ">", [f"{row['standardised']:.3f}" for row in rows]))
        if "gain" in self:
            columns.append(("gain", ">", aligned(row["gain"] for row in rows)))
        if "p_value" in self:
            columns.append(("p-value", ">", [as_p_value(row["p_value"]) for row in rows]))
        filled = [(head, *cells) for head, _, cells in columns]
        lines = laid_out(list(zip(*filled, strict=True)), "".join(side for _, side, _ in columns))
        if total > len(rows):
            lines.append(f"and {total - len(rows)} more that are weaker (edges_ and edges.csv have all)")
        return "\n".join([*lines, "", *self._meanings()])

    def _meanings(self) -> Iterator[str]:
        if "free" in self["direction"]:
            yield "--- : the score does not tell the direction (a Markov equivalence class fits equally well)"
        if "oriented" in self["direction"]:
            yield (
                "--> : oriented by the score, if its assumptions hold; how sure that is, bootstrap(model, X) tells, or "
                "vec2dag bootstrap"
            )
        if "known" in self["direction"]:
            yield "==> : the edge, or its direction, is as it is because that is known"
        if "error" in self:
            yield "error: standard error of the coefficient, if this graph is the true one"
        if not self.linear:
            yield "slope: of a straight line through what is not one"
        if "standardised" in self:
            yield "standardised: in standard deviations of both columns"
        if "gain" in self:
            yield "gain: what the score, as the logarithm of a probability, would lose without the edge"
        if "p_value" in self:
            yield "p-value: of the edge, not of its direction"


def aligned(values: Iterable[float], digits: int = 4) -> list[str]:
    """Numbers as text with their decimal points below each other; empty where there is none."""
    cells = ["" if math.isnan(value) else f"{value:.{digits}g}" for value in values]
    behind = [len(cell.partition(".")[2]) + ("." in cell) for cell in cells]
    return [cell + " " * (max(behind) - after) for cell, after in zip(cells, behind, strict=True)]


def as_p_value(value: float | None) -> str:
    """Two digits, and never zero; empty where there is none."""
    if value is None:
        return ""
    return f"{value:.2g}" if value >= LEAST_P else f"<{LEAST_P:.0e}"


def removed_edges(verdicts: Sequence[Verdict], names: Sequence[str], most: int = 20) -> str:
    """The edges that pruning removed, and why, as text; those that came nearest to staying first."""
    removed = [v for v in verdicts if not v.kept]
    if not removed:
        return ""
    removed.sort(key=lambda v: -v.margin)
    first = removed[0]
    lines = [
        f"{len(removed)} removed by pruning ({first.statistic}; edges stay {first.side} {first.limit:g}; prune=None, "
        "or --prune none, keeps all):"
    ]
    lines += [
        f"  {shown(names[v.source])} --> {shown(names[v.target])}  {v.value:.2g}  {v.reason}".rstrip()
        for v in removed[:most]
    ]
    if len(removed) > most:
        lines.append(f"  and {len(removed) - most} more (prune_table_ and run.json have all)")
    return "\n".join(lines)
