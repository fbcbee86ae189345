"""Lists of edges: tables with a column for either end, and the text that `discover` prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._checks import quoted, shown
from .atomic import InputError
from .stated import FREE, KNOWN, ORIENTED, Edge, as_weight
from .tables import cell_text, csv_cell

_HEADINGS = (("source", "target"), ("from", "to"), ("cause", "effect"), ("parent", "child"))
_DIRECTION, _WEIGHTS = "direction", ("weight", "coefficient")
_WORDS = {
    FREE: ("free", "undirected", "--", "---"),
    KNOWN: ("known", "==>"),
    ORIENTED: ("oriented", "directed", "->", "-->"),
}
_MEANING = {word: direction for direction, words in _WORDS.items() for word in words}
# two blanks or more part the effect from the numbers after it: one may be part of a name
_PRINTED = re.compile(r"\s*(?P<source>\S.*?)\s+(?P<arrow>-->|---|==>)\s+(?P<target>\S.*?)(?:\s{2,}\S.*)?\s*")
_REMOVED = "removed by pruning ("


def find_ends(name: str, header: Sequence[str]) -> tuple[int, int] | None:
    """Positions of the two columns that name the ends of edges, None if there are no such columns.

    Parameters
    ----------
    name : str
        What messages call the file.
    header : sequence of str
        Headings, in lower case: source and target, or, if these are not there, from and to, cause and effect, or
        parent and child.
    """
    found = [pair for pair in _HEADINGS if set(pair) <= set(header)]
    if not found:
        return None
    if len(found) > 1 and found[0] != _HEADINGS[0]:
        pairs = " or ".join(" and ".join(pair) for pair in found)
        raise InputError(f"{name}: the ends of edges may be in {pairs}; call them source and target")
    source, target = found[0]
    return header.index(source), header.index(target)


def listed_edges(
    name: str, header: Sequence[str], ends: tuple[int, int], rows: Sequence[Sequence[str]]
) -> tuple[list[Edge], list[str]]:
    """Edges of a table, and the nodes without edges, which are sources without a target.

    Parameters
    ----------
    name : str
        What messages call the file.
    header : sequence of str
        Headings, in lower case; `direction`, and `weight` or `coefficient`, may be among them.
    ends : (int, int)
        Positions of the columns with the ends.
    rows : sequence of sequences of str
        The cells below the header.
    """
    if any(len(cells) != len(header) for cells in rows):
        raise InputError(f"{name}: every line of an edge list needs {len(header)} cells, as its header has")
    direction = header.index(_DIRECTION) if _DIRECTION in header else None
    weight = next((header.index(heading) for heading in _WEIGHTS if heading in header), None)
    edges, alone = [], []
    for cells in rows:
        said = ORIENTED if direction is None else cells[direction]
        # blanks around names are typed for the eye, and so are those around directions: where these have none, as in
        # files of this library, they are part of the name
        padded = direction is None or said != said.strip()
        source, target = (cell_text(cells[end].strip() if padded else cells[end]) for end in ends)
        if not source.strip():
            raise InputError(f"{name}: an edge without a name at one end: {quoted(cells)}")
        if not target.strip():
            alone.append(source)
            continue
        how = _MEANING.get(said.strip().lower())
        if how is None:
            raise InputError(
                f"{name}: the direction of an edge must be 'free', 'oriented' or 'known', got '{shown(said.strip())}'"
            )
        edges.append(Edge(source, target, None if weight is None else _number(cells[weight]), how))
    return edges, alone


def _number(cell: str) -> float | None:
    """A weight, with a decimal comma or point."""
    return as_weight(cell.replace(",", "."))


def to_edge_list(edges: Sequence[Edge], nodes: Sequence[str]) -> str:
    """A CSV file with a line for every edge, and one without a target for every node that has none."""
    ends = {name for edge in edges for name in edge[:2]}
    lines = ["source,target,direction,weight"]
    for edge in edges:
        weight = "" if edge.weight is None else repr(edge.weight)
        lines.append(f"{csv_cell(edge.source)},{csv_cell(edge.target)},{edge.direction},{weight}")
    lines += [f"{csv_cell(name)},,," for name in nodes if name not in ends]
    return "\n".join([*lines, ""])


def printed_edges(text: str) -> list[Edge]:
    """Edges of lines such as `a --> b   0.53` and `a --- b`; their numbers are rounded, and not read."""
    edges = []
    for line in text.splitlines():
        if _REMOVED in line:
            break
        match = _PRINTED.fullmatch(line)
        if match:
            edges.append(Edge(match["source"], match["target"], direction=_MEANING[match["arrow"]]))
    return edges
