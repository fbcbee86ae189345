"""The estimated edges as a table for people and for data frames."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import shown
from .prune import Verdict

__all__ = ["EdgeTable", "removed_edges"]

# p-values below this are not told from each other.
LEAST_P = 1e-16


class EdgeTable(dict[str, list[Any]]):
    """Edges by column, strongest first: what ``pandas.DataFrame`` and ``polars.DataFrame`` take, and ``print`` shows.

    Columns are ``source``, ``target``, ``direction`` ("oriented" by the score, "known" beforehand, or "free": neither),
    ``coefficient`` (of the linear regression of the target on its parents) and, where pruning has tested edges,
    ``p_value`` (of the edge, not of its direction).
    """

    # Where regressions are not linear, the coefficient is only the slope of a line through them.
    linear: bool = True

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        A: NDArray[np.uint8],
        weights: NDArray[np.float64],
        free: NDArray[np.bool_],
        verdicts: Sequence[Verdict] = (),
        linear: bool = True,
        known: NDArray[np.bool_] | None = None,
    ) -> "EdgeTable":
        """Of a graph ``A``, with coefficients, and free and known directions, each (d, d)."""
        edges = sorted(np.argwhere(A).tolist(), key=lambda e: -abs(weights[e[0], e[1]]))
        table = cls(
            source=[names[i] for i, _ in edges],
            target=[names[j] for _, j in edges],
            direction=[
                "free" if free[i, j] else "known" if known is not None and known[i, j] else "oriented" for i, j in edges
            ],
            coefficient=[float(weights[i, j]) for i, j in edges],
        )
        tested = {(v.source, v.target): v.value for v in verdicts if v.statistic == "p-value"}
        if tested:
            table["p_value"] = [tested.get((i, j)) for i, j in edges]
        table.linear = linear
        return table

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """The edges one by one."""
        return (dict(zip(self, values, strict=True)) for values in zip(*self.values(), strict=True))

    def __str__(self) -> str:
        tested, heading = "p_value" in self, "coefficient" if self.linear else "slope"
        cells = [
            (
                shown(row["source"]),
                {"free": "---", "known": "==>"}.get(row["direction"], "-->"),
                shown(row["target"]),
                f"{row['coefficient']:.4g}",
                "" if row.get("p_value") is None else as_p_value(row["p_value"]),
            )
            for row in self.rows
        ]
        widths = [max(map(len, (head, *(row[c] for row in cells)))) for c, head in ((0, "cause"), (2, "effect"))]
        lines = [f"{'cause':<{widths[0]}}      {'effect':<{widths[1]}}  {heading:>11}{'   p-value' if tested else ''}"]
        lines += [
            f"{a:<{widths[0]}}  {arrow} {b:<{widths[1]}}  {weight:>11}{p:>10}".rstrip()
            for a, arrow, b, weight, p in cells
        ]
        lines.append("")
        if "free" in self["direction"]:
            lines.append("--- : the score does not tell the direction (a Markov equivalence class fits equally well)")
        if "oriented" in self["direction"]:
            lines.append(
                "--> : oriented by the score, if its assumptions hold; how sure that is, bootstrap(model, X) tells, or "
                "vec2dag bootstrap"
            )
        if "known" in self["direction"]:
            lines.append("==> : the edge, or its direction, is as it is because that is known")
        if tested:
            lines.append("p-value: of the edge, not of its direction")
        if not self.linear:
            lines.append("slope: of a straight line through what is not one")
        return "\n".join(lines)


def as_p_value(value: float) -> str:
    """Two digits, and never zero."""
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
