"""The estimated edges as a table for people and for data frames."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .prune import Verdict

__all__ = ["EdgeTable", "removed_edges"]


class EdgeTable(dict[str, list[Any]]):
    """Edges by column, strongest first: what ``pandas.DataFrame`` and ``polars.DataFrame`` take, and ``print`` shows.

    Columns are ``source``, ``target``, ``direction`` ("determined" or "free": the score does not tell it),
    ``coefficient`` (of the linear regression of the target on its parents) and, where pruning has tested edges,
    ``p_value``.
    """

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        A: NDArray[np.uint8],
        weights: NDArray[np.float64],
        free: NDArray[np.bool_],
        verdicts: Sequence[Verdict] = (),
    ) -> "EdgeTable":
        """Of a graph ``A``, with coefficients and free directions, each (d, d)."""
        edges = sorted(np.argwhere(A).tolist(), key=lambda e: -abs(weights[e[0], e[1]]))
        table = cls(
            source=[names[i] for i, _ in edges],
            target=[names[j] for _, j in edges],
            direction=["free" if free[i, j] else "determined" for i, j in edges],
            coefficient=[float(weights[i, j]) for i, j in edges],
        )
        tested = {(v.source, v.target): v.value for v in verdicts if v.statistic == "p-value"}
        if tested:
            table["p_value"] = [tested.get((i, j)) for i, j in edges]
        return table

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """The edges one by one."""
        return (dict(zip(self, values, strict=True)) for values in zip(*self.values(), strict=True))

    def __str__(self) -> str:
        tested = "p_value" in self
        cells = [
            (
                row["source"],
                "---" if row["direction"] == "free" else "-->",
                row["target"],
                f"{row['coefficient']:.4g}",
                "" if row.get("p_value") is None else f"{row['p_value']:.2g}",
            )
            for row in self.rows
        ]
        widths = [max(map(len, (head, *(row[c] for row in cells)))) for c, head in ((0, "cause"), (2, "effect"))]
        lines = [f"{'cause':<{widths[0]}}      {'effect':<{widths[1]}}  coefficient{'   p-value' if tested else ''}"]
        lines += [
            f"{a:<{widths[0]}}  {arrow} {b:<{widths[1]}}  {weight:>11}{p:>10}".rstrip()
            for a, arrow, b, weight, p in cells
        ]
        if "free" in self["direction"]:
            lines.append(
                "\n--- : the data do not determine the direction (a Markov equivalence class fits equally well)"
            )
        return "\n".join(lines)


def removed_edges(verdicts: Sequence[Verdict], names: Sequence[str], most: int = 20) -> str:
    """The edges that pruning removed, and why, as text; those that came nearest to staying first."""
    removed = [v for v in verdicts if not v.kept]
    if not removed:
        return ""
    removed.sort(key=lambda v: -v.margin)
    first = removed[0]
    lines = [f"removed by pruning ({first.statistic}; edges stay {first.side} {first.limit:g}):"]
    lines += [f"  {names[v.source]} --> {names[v.target]}  {v.value:.2g}  {v.reason}".rstrip() for v in removed[:most]]
    if len(removed) > most:
        lines.append(f"  and {len(removed) - most} more (prune_table_ and run.json have all)")
    return "\n".join(lines)
