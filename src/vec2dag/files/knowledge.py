"""Background knowledge in Tetrad's text format: tiers, forbidden and required edges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._checks import shown
from .atomic import InputError

Edge = tuple[str, str]

_SECTIONS = {
    "addtemporal": "tiers",
    "addtemp": "tiers",
    "forbiddirect": "forbidden",
    "requiredirect": "required",
    "forbiddengroup": "forbidden group",
    "requiredgroup": "required group",
}
_TOKEN = re.compile(r'"([^"]*)"|(\S+)')
_ARROWS = ("->", "-->")
# 2, 2* (no edges within the tier), 2- (causes of the next tier only), or both marks
_TIER = re.compile(r"(\d+)([*-]*):?")
# Tetrad takes a blank for the end of a name, a quote for its limit, and such lines for comments and headings.
_UNWRITABLE = re.compile(r'[\s"]|^//|^(addtemporal|forbid|require)', re.IGNORECASE)


def parse_tetrad(text: str) -> dict[str, Any]:
    """What a knowledge file of Tetrad says.

    Parameters
    ----------
    text : str
        The content: the sections `addtemporal` (a tier number and the names of a tier on each line; `*` after the
        number forbids edges within the tier, `-` edges beyond the next one), `forbiddirect` and `requiredirect`
        (two names on each line), `forbiddengroup` and `requiredgroup` (two lines of names: from, to). The heading
        `/knowledge`, blank lines and comments (`//` or `#`) may be there or not; tiers may count from 0 or 1.

    Returns
    -------
    dict
        `required` and `forbidden` (lists of pairs), `tiers` (lists of names) and `within_tiers` (list of bool).

    Raises
    ------
    InputError
        A line that is none of these; the message says which.
    """
    edges: dict[str, list[Edge]] = {"required": [], "forbidden": []}
    tiers: dict[int, list[str]] = {}
    marks: dict[int, str] = {}
    section, sources = "", None
    for place, tokens in _lines(text):
        heading = _SECTIONS.get(tokens[0].lower()) if len(tokens) == 1 else None
        if heading and sources is not None:
            raise InputError(f"{place}: the group above has no second line")
        if heading:
            section = heading
        elif not section:
            raise InputError(
                f"{place}: '{shown(tokens[0])}' stands before any of addtemporal, forbiddirect and requiredirect"
            )
        elif section == "tiers":
            number, mark, names = _tier(tokens, place)
            tiers.setdefault(number, []).extend(names)
            marks[number] = marks.get(number, "") + mark
        elif section.endswith("group"):
            if sources is None:
                sources = tokens
            else:
                edges[section.split()[0]] += [(a, b) for a in sources for b in tokens if a != b]
                sources = None
        else:
            edges[section].append(_edge(tokens, place))
    if sources is not None:
        raise InputError("the last group has no second line")
    if not section:
        raise InputError("there is no knowledge: no line reads addtemporal, forbiddirect or requiredirect")
    numbers = [number for number in sorted(tiers) if tiers[number]]
    for k, number in enumerate(numbers):
        if "-" in marks[number]:
            far = [name for other in numbers[k + 1 :] if other > number + 1 for name in tiers[other]]
            edges["forbidden"] += [(a, b) for a in tiers[number] for b in far]
    within = ["*" not in marks[number] for number in numbers]
    return {**edges, "tiers": [tiers[number] for number in numbers], "within_tiers": within}


def tetrad_text(
    required: Sequence[Edge], forbidden: Sequence[Edge], tiers: Sequence[Sequence[str]], within: Sequence[bool]
) -> str:
    """The content of a knowledge file that Tetrad reads, old versions (tiers from 1) and new ones.

    Parameters
    ----------
    required, forbidden : sequences of pairs of names
        Edges, cause first.
    tiers : sequence of sequences of names
        Earlier tiers first.
    within : sequence of bool
        For each tier, whether edges within it are allowed.

    Returns
    -------
    str
        The text.

    Raises
    ------
    InputError
        A name that the format cannot hold.
    """
    for name in {name for group in (*required, *forbidden, *tiers) for name in group}:
        if _UNWRITABLE.search(name):
            raise InputError(f"the format of Tetrad cannot hold the name '{shown(name)}'; .json can")
    lines = ["/knowledge", "addtemporal", ""]
    lines += [
        " ".join([f"{number}{'' if inside else '*'}", *tier])
        for number, (tier, inside) in enumerate(zip(tiers, within, strict=True), start=1)
    ]
    lines += ["", "forbiddirect", "", *(" ".join(edge) for edge in forbidden)]
    lines += ["", "requiredirect", "", *(" ".join(edge) for edge in required)]
    return "\n".join(lines).rstrip() + "\n"


def _lines(text: str) -> Iterator[tuple[str, list[str]]]:
    """Where a line stands, and its words; without headings, comments and blank lines."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.strip()
        if not content or content.startswith(("//", "#")) or content.lower() == "/knowledge":
            continue
        plain = not any(mark in content for mark in ' \t"')
        words = content.split(",") if plain else [q or w.strip(",") for q, w in _TOKEN.findall(content)]
        tokens = [word for word in words if word]
        if tokens:
            yield f"line {number}", tokens


def _tier(tokens: list[str], place: str) -> tuple[int, str, list[str]]:
    match = _TIER.fullmatch(tokens[0])
    if match is None:
        raise InputError(f"{place}: a line of addtemporal begins with the number of its tier, not '{shown(tokens[0])}'")
    return int(match[1]), match[2], tokens[1:]


def _edge(tokens: list[str], place: str) -> Edge:
    ends = [token for k, token in enumerate(tokens) if k != 1 or len(tokens) != 3 or token not in _ARROWS]
    if len(ends) != 2:
        raise InputError(f"{place}: an edge is two names, cause and effect; got {len(ends)}: {shown(' '.join(tokens))}")
    return ends[0], ends[1]
