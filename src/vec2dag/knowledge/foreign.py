"""Knowledge in the objects of other packages, by what these objects have and never by importing them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_names, default_names, listing, shown, warn
from .constraints import closure


def of_causal_learn(known: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """The constructor's arguments from causal-learn's ``BackgroundKnowledge``; its patterns are regular expressions."""
    said: dict[str, Any] = {}
    for key in ("required", "forbidden"):
        edges = {(a.get_name(), b.get_name()) for a, b in getattr(known, f"{key}_rules_specs")}
        for source, target in getattr(known, f"{key}_pattern_rules_specs", ()):
            columns = _needed(names, f"regular expression '{source}'")
            edges |= {(a, b) for a, b in permutations(columns, 2) if re.match(source, a) and re.match(target, b)}
        said[key] = sorted(edges)
    tiers = {number: sorted(node.get_name() for node in nodes) for number, nodes in known.tier_map.items()}
    closed = getattr(known, "forbidden_within_tiers", ())
    said["tiers"] = [tiers[number] for number in sorted(tiers)]
    said["within_tiers"] = [number not in closed for number in sorted(tiers)]
    return said


def of_pgmpy(known: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """The constructor's arguments from pgmpy's ``ExpertKnowledge``."""
    required, forbidden, space = (
        {(str(a), str(b)) for a, b in getattr(known, key, None) or ()}
        for key in ("required_edges", "forbidden_edges", "search_space")
    )
    if space:
        forbidden |= set(permutations(_needed(names, "search space"), 2)) - space
    tiers = [[str(name) for name in tier] for tier in getattr(known, "temporal_order", None) or ()]
    return {"required": sorted(required), "forbidden": sorted(forbidden), "tiers": tiers}


def of_lingam(matrix: ArrayLike, names: Sequence[str] | None) -> dict[str, Any]:
    """The constructor's arguments from lingam's matrix of prior knowledge."""
    try:
        values = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("prior knowledge of lingam must be a matrix of -1, 0 and 1") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"prior knowledge of lingam must have shape (d, d), got {values.shape}")
    d = len(values)
    known = default_names(d) if names is None else check_names(names, d)
    unknown = np.isnan(values) | (values == -1)
    if not (unknown | np.isin(values, (0, 1))).all():
        raise ValueError("prior knowledge of lingam must hold -1 (unknown), 0 (no path) and 1 (a path) only")
    if not unknown.any():
        raise ValueError(
            "prior knowledge of lingam has -1 where nothing is known, and this matrix has none: give the edges of an "
            "adjacency matrix as Knowledge(required=...)"
        )
    path, none = (values == 1).T, (values == 0).T
    for known_paths in (path, none):
        np.fill_diagonal(known_paths, False)
    both = np.argwhere(path & path.T)
    if len(both):
        a, b = (shown(known[k]) for k in both[0])
        raise ValueError(f"prior knowledge has a path from '{a}' to '{b}' and one back: no DAG has both")
    forbidden = none | path.T
    if path.any():
        pairs = listing((f"{shown(known[i])} ~> {shown(known[j])}" for i, j in np.argwhere(path)), 4)
        warn(f"Paths are not required, only edges back are forbidden: {pairs}; require edges to have them.")
    reach = closure(~forbidden & ~np.eye(d, dtype=bool))
    if (none & reach).any():
        pairs = listing((f"{shown(known[i])} ~> {shown(known[j])}" for i, j in np.argwhere(none & reach)), 4)
        warn(f"Only edges are forbidden; paths through other columns stay possible: {pairs}.")
    return {"forbidden": [(known[i], known[j]) for i, j in np.argwhere(forbidden)]}


def _needed(names: Sequence[str] | None, what: str) -> Sequence[str]:
    if names is None:
        raise ValueError(f"names of the columns are needed to read the {what}")
    return names
