"""An edge with all that a file can say about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ORIENTED, KNOWN, FREE = DIRECTIONS = ("oriented", "known", "free")


class Edge(NamedTuple):
    """`source` -> `target`, with a weight if there is one.

    Its `direction` is "oriented" by a score, "known" beforehand, or "free": neither.
    """

    source: str
    target: str
    weight: float | None = None
    direction: str = ORIENTED


def as_weight(value: Any) -> float | None:
    """A finite number as a weight; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return weight if math.isfinite(weight) else None


def as_direction(value: Any) -> str:
    """One of the three; what is none of them, or not said, is oriented."""
    return value if isinstance(value, str) and value in DIRECTIONS else ORIENTED


def settled(edges: Iterable[Edge], nodes: Sequence[str]) -> list[Edge]:
    """Every edge once, in the order of the nodes; one that goes both ways has a free direction."""
    position = {name: i for i, name in enumerate(nodes)}
    last = {(edge.source, edge.target): edge for edge in edges}
    return [
        last[ends]._replace(direction=FREE) if ends[::-1] in last else last[ends]
        for ends in sorted(last, key=lambda ends: (position[ends[0]], position[ends[1]]))
    ]


def adjacency(edges: Iterable[Edge], nodes: Sequence[str]) -> NDArray[np.uint8]:
    """The matrix (d, d) of the edges, whatever their direction is called."""
    position = {name: i for i, name in enumerate(nodes)}
    A = np.zeros((len(nodes), len(nodes)), dtype=np.uint8)
    for edge in edges:
        A[position[edge.source], position[edge.target]] = 1
    return A
