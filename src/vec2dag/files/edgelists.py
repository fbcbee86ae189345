"""Lists of edges: tables with a column for either end, and the text that `discover` prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._checks import quoted, shown
from .atomic import InputError

Edges = list[tuple[str, str]]

_HEADINGS = (("source", "target"), ("from", "to"), ("cause", "effect"), ("parent", "child"))
_DIRECTION = "direction"
_FREE = ("free", "undirected", "--", "---")
_ORIENTED = ("oriented", "known", "directed", "->", "-->", "==>")
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


def listed_edges(name: str, header: Sequence[str], ends: tuple[int, int], rows: Sequence[Sequence[str]]) -> Edges:
    """Edges of a table; one whose direction is free appears both ways.

    Parameters
    ----------
    name : str
        What messages call the file.
    header : sequence of str
        Headings, in lower case; `direction` may be among them.
    ends : (int, int)
        Positions of the columns with the ends.
    rows : sequence of sequences of str
        The cells below the header.
    """
    if any(len(cells) != len(header) for cells in rows):
        raise InputError(f"{name}: every line of an edge list needs {len(header)} cells, as its header has")
    direction = header.index(_DIRECTION) if _DIRECTION in header else None
    edges = []
    for cells in rows:
        source, target = (cells[end].strip() for end in ends)
        if not source or not target:
            raise InputError(f"{name}: an edge without a name at one end: {quoted(cells)}")
        edges.append((source, target))
        how = "oriented" if direction is None else cells[direction].strip().lower()
        if how in _FREE:
            edges.append((target, source))
        elif how not in _ORIENTED:
            raise InputError(
                f"{name}: the direction of an edge must be 'free', 'oriented' or 'known', got '{shown(how)}'"
            )
    return edges


def printed_edges(text: str) -> Edges:
    """Edges of lines such as `a --> b   0.53` and `a --- b`; the latter, of free direction, appear both ways."""
    edges = []
    for line in text.splitlines():
        if _REMOVED in line:
            break
        match = _PRINTED.fullmatch(line)
        if match:
            edges.append((match["source"], match["target"]))
            if match["arrow"] == "---":
                edges.append((match["target"], match["source"]))
    return edges
