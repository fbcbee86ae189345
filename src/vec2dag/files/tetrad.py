"""The text in which Tetrad, and causal-learn after it, print a graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .._checks import quoted, shown
from .atomic import InputError
from .stated import FREE, Edge

_NODES, _EDGES = "Graph Nodes:", "Graph Edges:"
_IS_TETRAD = re.compile(rf"^[ \t]*{_NODES}[ \t\r]*$", re.MULTILINE)
# Tetrad takes a name in brackets for that of a hidden or a selection variable.
_BRACKETED = re.compile(r"^(?:\((.*)\)|\[(.*)\])$")


def is_tetrad(text: str) -> bool:
    """Whether a text has the heading of such a graph."""
    return _IS_TETRAD.search(text) is not None


def to_tetrad(edges: Iterable[Edge], nodes: Sequence[str]) -> str:
    """A graph as Tetrad reads it; an edge of free direction is a line without an arrowhead.

    Raises
    ------
    InputError
        Tetrad would not read a name as one: it has no quotes.
    """
    unfit = [name for name in nodes if re.search(r"[\s,;]", name) or _BRACKETED.fullmatch(name)]
    if unfit:
        raise InputError(
            f"Tetrad's text cannot hold the name(s) {quoted(unfit)}: blanks, commas, semicolons and brackets around a "
            "name mean something there; rename the columns, or choose another format"
        )
    lines: dict[frozenset[str], str] = {}
    for edge in edges:
        arrow = "---" if edge.direction == FREE else "-->"
        lines.setdefault(frozenset(edge[:2]), f"{edge.source} {arrow} {edge.target}")
    numbered = [f"{number}. {line}" for number, line in enumerate(lines.values(), start=1)]
    return "\n".join([_NODES, ";".join(nodes), "", _EDGES, *numbered, ""])


def parse_tetrad(text: str, source: str) -> tuple[list[str], list[Edge]]:
    """Nodes and edges of a graph as Tetrad prints it; an undirected edge appears in both directions.

    Parameters
    ----------
    text : str
        The content of a file.
    source : str
        What error messages call it.

    Raises
    ------
    InputError
        There are other edges than `-->`, `<--` and `---`, or the text is no such graph.
    """
    lines = [line.strip() for line in text.splitlines()]
    if _EDGES not in lines:
        raise InputError(f"{source}: '{_NODES}' without '{_EDGES}' is no graph of Tetrad")
    nodes = [name for line in _section(lines, _NODES) for name in re.split("[,;]", line)]
    edges = []
    for line in _section(lines, _EDGES):
        match re.sub(r"^\d+\.\s?", "", line).split()[:3]:
            case a, "-->", b:
                edges.append(Edge(a, b))
            case b, "<--", a:
                edges.append(Edge(a, b))
            case a, "---", b:
                edges += [Edge(a, b, direction=FREE), Edge(b, a, direction=FREE)]
            case _:
                raise InputError(f"{source}: only edges --> and --- can be read, not '{shown(line)}'")
    return [_BRACKETED.sub(r"\1\2", name.strip()) for name in nodes], edges


def _section(lines: list[str], heading: str) -> list[str]:
    """The lines from a heading to the next empty one."""
    below = lines[lines.index(heading) + 1 :]
    return below[: below.index("")] if "" in below else below
