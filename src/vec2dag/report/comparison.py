"""Two graphs beside each other: edges in both, in one of them, and reversed."""

from dataclasses import dataclass, field
from html import escape

from .._checks import quoted, shown
from .sources import Source

__all__ = ["Comparison", "arrow", "compared"]

# Edges of a kind that are listed at most.
LISTED = 500


def arrow(cause: str, sign: str, effect: str) -> str:
    """An edge as HTML: names that are written from right to left do not turn it around."""
    return f"<bdi>{escape(cause)}</bdi> {sign} <bdi>{escape(effect)}</bdi>"


@dataclass(frozen=True)
class Comparison:
    """What two graphs have in common.

    Attributes
    ----------
    names : pair of str
        Of the two runs.
    groups : dict of lists of three str
        Edges, cause, arrow or line, and effect, by a heading that says where they are.
    status : dict
        By the ends of an edge of the first graph, where the second has it: "same", "free" (connected, but the
        direction is open in one of them), "reversed" or "absent".
    apart : list of str
        Sentences about columns that only one of the graphs has.
    """

    names: tuple[str, str]
    groups: dict[str, list[tuple[str, str, str]]]
    status: dict[tuple[int, int], str]
    apart: list[str] = field(default_factory=list)

    @property
    def html(self) -> str:
        """The section of the page."""
        one, two = (escape(name) for name in self.names)
        tiles = "".join(
            f"<li><strong>{len(edges):,}</strong> <span>{escape(heading)}</span></li>"
            for heading, edges in self.groups.items()
        )
        lists = "".join(
            f"<details><summary>{escape(heading)} ({len(edges):,})</summary><ul>"
            f"{''.join(f'<li>{arrow(*edge)}</li>' for edge in edges[:LISTED])}"
            f"{f'<li>and {len(edges) - LISTED:,} more</li>' if len(edges) > LISTED else ''}</ul></details>"
            for heading, edges in self.groups.items()
            if edges
        )
        apart = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.apart)
        return (
            f'<section id="compare" aria-labelledby="compare-title"><h2 id="compare-title">Compared with {two}</h2>'
            f'<p class="lead">The drawing shows the graph of {one}. Columns are matched by name.</p>'
            f'<ul class="tiles">{tiles}</ul>{apart}{lists}</section>'
        )


def compared(first: Source, second: Source) -> Comparison:
    """Match the edges of two graphs by the names of their ends."""
    one, two = _labels(first, second)
    theirs = {
        (second.nodes[edge["source"]], second.nodes[edge["target"]]): edge["direction"] == "free"
        for edge in second.edges
    }
    groups: dict[str, list[tuple[str, str, str]]] = {
        "in both": [],
        "in both, direction open in one or both": [],
        f"reversed in {two}": [],
        f"only in {one}": [],
        f"only in {two}": [],
    }
    kinds = dict(zip(("same", "free", "reversed", "absent"), groups, strict=False))
    status, matched = {}, set()
    for edge in first.edges:
        ends = first.nodes[edge["source"]], first.nodes[edge["target"]]
        there = ends if ends in theirs else ends[::-1] if ends[::-1] in theirs else None
        if there is None:
            kind = "absent"
        else:
            matched.add(there)
            free = edge["direction"] == "free" or theirs[there]
            kind = "free" if free else "same" if there == ends else "reversed"
        status[edge["source"], edge["target"]] = kind
        groups[kinds[kind]].append(_parts(ends, edge["direction"] == "free"))
    groups[f"only in {two}"] += [_parts(ends, free) for ends, free in theirs.items() if ends not in matched]
    apart = [
        f"Columns that only {who} has: {quoted(alone, 20)}."
        for who, alone in (
            (one, [name for name in first.nodes if name not in second.nodes]),
            (two, [name for name in second.nodes if name not in first.nodes]),
        )
        if alone
    ]
    return Comparison((one, two), groups, status, apart)


def _labels(first: Source, second: Source) -> tuple[str, str]:
    one, two = shown(first.label or "the first", 40), shown(second.label or "the second", 40)
    return (one, two) if one != two else (f"{one} (first)", f"{two} (second)")


def _parts(ends: tuple[str, str], free: bool) -> tuple[str, str, str]:
    return shown(ends[0], 120), "—" if free else "→", shown(ends[1], 120)
