"""GML, the Graph Modelling Language, as networkx, igraph and Gephi write it, for names of any characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html.entities import name2codepoint

from .._checks import shown
from .atomic import InputError
from .stated import FREE, Edge, as_direction, as_weight

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
      | "(?P<string>[^"]*)"
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>[+-]?[\w.][\w.+-]*)
      | (?P<mark>[\[\]])""",
    re.VERBOSE | re.ASCII,
)
_REFERENCE = re.compile(r"&(?:\#(?P<number>\d{1,7})|\#x(?P<hex>[0-9A-Fa-f]{1,6})|(?P<name>[0-9A-Za-z]+));")
# Levels of brackets; drawings have four.
_DEEPEST = 50


def to_gml(edges: Iterable[Edge], nodes: Sequence[str]) -> str:
    """A directed graph in GML; names are labels, in which all but plain ASCII are character references."""
    position = {name: i for i, name in enumerate(nodes)}
    lines = ["graph [", "  directed 1"]
    for name, i in position.items():
        lines += ["  node [", f"    id {i}", f'    label "{_escaped(name)}"', "  ]"]
    for edge in edges:
        lines += ["  edge [", f"    source {position[edge.source]}", f"    target {position[edge.target]}"]
        if edge.weight is not None:
            lines.append(f"    weight {_real(edge.weight)}")
        lines += [f'    direction "{edge.direction}"', "  ]"]
    return "\n".join([*lines, "]", ""])


def _escaped(name: str) -> str:
    return re.sub('[^ -~]|[&"]', lambda match: f"&#{ord(match[0])};", name)


def _real(value: float) -> str:
    """A number to the last bit, with the decimal point that GML asks of reals."""
    mantissa, e, exponent = repr(value).upper().partition("E")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent


def parse_gml(text: str, source: str) -> tuple[list[str], list[Edge]]:
    """Nodes and edges of a graph in GML; an undirected edge appears in both directions.

    Parameters
    ----------
    text : str
        The content of a file.
    source : str
        What error messages call it.

    Returns
    -------
    nodes : list of str
        The labels of the nodes, or where not all have one their names, or else their ids.
    edges : list of Edge
        With `weight` and `direction`, where they are said.

    Raises
    ------
    InputError
        The text is not such a graph.
    """
    about, nodes, edges = _blocks(text, source)
    try:
        ids = [node["id"] for node in nodes]
        ends = [(edge["source"], edge["target"]) for edge in edges]
    except KeyError as error:
        raise InputError(f"{source}: not a graph in GML: a node or an edge has no {error}") from error
    key = next((key for key in ("label", "name") if all(key in node for node in nodes)), "id")
    label = {identity: node[key] for identity, node in zip(ids, nodes, strict=True)}
    if len(label) < len(ids):
        raise InputError(f"{source}: not a graph in GML: two nodes have the same id")
    for end in (end for pair in ends for end in pair):
        if end not in label:
            raise InputError(f"{source}: an edge names the node '{shown(end)}', which is not there")
    directed = about.get("directed") == "1"
    found = []
    for (a, b), edge in zip(ends, edges, strict=True):
        weight, direction = as_weight(edge.get("weight")), as_direction(edge.get("direction"))
        found.append(Edge(label[a], label[b], weight, direction if directed else FREE))
        if not directed:
            found.append(Edge(label[b], label[a], weight, FREE))
    return [label[identity] for identity in ids], found


def _blocks(text: str, source: str) -> tuple[dict[str, str], list[dict[str, str]], list[dict[str, str]]]:
    """Attributes of the graph, of its nodes and of its edges; what is nested in them is left out."""
    about: dict[str, str] = {}
    blocks: dict[str, list[dict[str, str]]] = {"node": [], "edge": []}
    path: list[str] = []
    graphs, key = 0, ""
    for kind, token in _tokens(text, source):
        if not key:
            if kind == "word":
                key = token
            elif path and (kind, token) == ("mark", "]"):
                path.pop()
            elif path or kind != "end":
                raise InputError(f"{source}: unexpected '{shown(token)}' in GML, where a key should be")
            continue
        if (kind, token) == ("mark", "["):
            path.append(key)
            graphs += key == "graph"
            if graphs > 1 or len(path) > _DEEPEST:
                what = "more than one graph" if graphs > 1 else f"more than {_DEEPEST} levels of brackets"
                raise InputError(f"{source}: {what} in one GML file; needed is one, without graphs inside of it")
            if path[:-1] == ["graph"] and key in blocks:
                blocks[key].append({})
        elif kind in ("mark", "end"):
            raise InputError(f"{source}: unexpected '{shown(token)}' in GML, where a value should be")
        elif path == ["graph"]:
            about[key] = token
        elif len(path) == 2 and path[0] == "graph" and path[1] in blocks:
            blocks[path[1]][-1][key] = token
        key = ""
    if not graphs:
        raise InputError(f"{source}: not a graph in GML; expected is 'graph [ directed 1 node [ id 0 label \"a\" ] ]'")
    return about, blocks["node"], blocks["edge"]


def _tokens(text: str, source: str) -> Iterator[tuple[str, str]]:
    """Pairs of kind (string, word, number, mark, end) and text."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise InputError(f"{source}: line {line}: unexpected {shown(repr(text[position : position + 10]))} in GML")
        kind = str(match.lastgroup)
        if kind != "blank":
            token = match[kind]
            yield kind, _REFERENCE.sub(_character, token) if kind == "string" else token
        position = match.end()
    yield "end", "the end of the file"


def _character(reference: re.Match[str]) -> str:
    """What a character reference stands for; itself, if that is nothing."""
    if reference["name"]:
        code = name2codepoint.get(reference["name"], -1)
    else:
        code = int(reference["number"] or reference["hex"], 10 if reference["number"] else 16)
    return chr(code) if 0 <= code < 0x110000 else reference[0]
