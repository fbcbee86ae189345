"""The DOT language of Graphviz, as far as causal graphs need it, without Graphviz."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .._checks import shown
from .atomic import InputError
from .stated import FREE, KNOWN, ORIENTED, Edge, as_weight

Token = tuple[str, str]

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
      | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | (?P<word>-?(?:\.\d+|\d+(?:\.\d*)?)|[^\W\d]\w*)
      | (?P<mark>->|--|[{}\[\];,=])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def to_dot(edges: Iterable[Edge], nodes: Iterable[str]) -> str:
    """A directed graph in DOT; edges of free direction are dashed and have no arrowhead.

    Parameters
    ----------
    edges : iterable of Edge
        Of two that go both ways between the same nodes, the second is there and not drawn.
    nodes : iterable of str
        Names of all nodes.

    Returns
    -------
    str
        The text of the file.
    """
    body = []
    for name in nodes:
        # Graphviz keeps both backslashes in an identifier and reads them as one in a label only
        label = f" [label={_identifier(name)}]" if "\\" in name else ""
        body.append(f"  {_identifier(name)}{label};")
    any_free = False
    drawn: set[tuple[str, str]] = set()
    for edge in edges:
        # Graphviz takes `weight` as a layout force, non-negative; the label says it instead
        attributes = [] if edge.weight is None else [f'label="{edge.weight:.3g}"']
        if (edge.target, edge.source) in drawn:
            attributes += ["style=invis", "constraint=false"]
        elif edge.direction == FREE:
            any_free = True
            attributes += ["dir=none", "style=dashed"]
        elif edge.direction == KNOWN:
            attributes.append("style=bold")
        drawn.add((edge.source, edge.target))
        suffix = f" [{', '.join(attributes)}]" if attributes else ""
        body.append(f"  {_identifier(edge.source)} -> {_identifier(edge.target)}{suffix};")
    legend = ["  // dashed, no arrowhead: the data do not determine the direction"] if any_free else []
    return "\n".join(["digraph {", *legend, *body, "}", ""])


def _identifier(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse_dot(text: str, source: str) -> tuple[list[str], list[Edge]]:
    """Nodes and edges of a graph in DOT: plain statements, no subgraphs or ports.

    Of the attributes of an edge, a number as `label` is its weight, one without an arrowhead (`dir` or `arrowhead` is
    "none") has a free direction, and a bold one is known, as :func:`to_dot` draws them.

    Parameters
    ----------
    text : str
        The content of a file.
    source : str
        What error messages call it.

    Returns
    -------
    nodes : list of str
        In order of appearance.
    edges : list of Edge
        An undirected edge appears in both directions.

    Raises
    ------
    InputError
        The text is not such a graph.
    """
    tokens = _tokens(text, source)
    kinds = [token.lower() for kind, token in tokens[:2] if kind == "word"]
    opening = ("mark", "{")
    if not {"graph", "digraph"} & set(kinds) or opening not in tokens[:4]:
        raise InputError(f"{source}: not a graph in DOT; expected is 'digraph {{ a -> b; }}'")
    nodes: dict[str, None] = {}
    edges: list[Edge] = []
    usual: dict[str, str] = {}
    position = tokens.index(opening) + 1

    def take(*marks: str) -> str:
        """The next token if it is one of these marks, else ""; without marks it must be an identifier."""
        nonlocal position
        kind, token = tokens[position]
        if (kind == "mark" and token in marks) or (not marks and kind in ("quoted", "word")):
            position += 1
            return token
        if not marks:
            raise InputError(f"{source}: unexpected '{shown(token)}' in DOT; subgraphs and ports are not supported")
        return ""

    while not take("}"):
        if take(";", ","):
            continue
        kind, token = tokens[position]
        is_keyword = kind == "word" and token.lower() in ("graph", "node", "edge")
        ends = [take()]
        if take("="):
            take()
            continue
        arrows = []
        while arrow := take("->", "--"):
            arrows.append(arrow)
            ends.append(take())
        attributes = {}
        while take("["):
            while not take("]"):
                if not take(";", ","):
                    key = take()
                    attributes[key.lower()] = take() if take("=") else ""
        if not is_keyword:
            nodes.update(dict.fromkeys(ends))
        elif token.lower() == "edge":
            usual |= attributes
        for a, b, arrow in zip(ends, ends[1:], arrows, strict=False):
            weight, direction = _meaning(usual | attributes)
            edges.append(Edge(a, b, weight, direction if arrow == "->" else FREE))
            if arrow == "--":
                edges.append(Edge(b, a, weight, FREE))
    return list(nodes), edges


def _meaning(attributes: dict[str, str]) -> tuple[float | None, str]:
    """Weight and direction of an edge that is drawn with these."""
    drawn = {key: attributes.get(key, "").lower() for key in ("dir", "arrowhead", "style")}
    if drawn["dir"] == "none" or drawn["arrowhead"] == "none":
        direction = FREE
    else:
        direction = KNOWN if drawn["style"] == "bold" else ORIENTED
    return as_weight(attributes.get("label")), direction


def _tokens(text: str, source: str) -> list[Token]:
    """Pairs of kind (quoted, word, mark, end) and text."""
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise InputError(f"{source}: line {line}: unexpected {text[position : position + 10]!r} in DOT")
        kind = str(match.lastgroup)
        token = match[kind]
        if kind != "blank":
            tokens.append((kind, re.sub(r'\\([\\"])', r"\1", token) if kind == "quoted" else token))
        position = match.end()
    return [*tokens, ("end", "the end of the file")]
