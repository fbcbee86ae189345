"""What was said of a graph, by the names of its nodes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import brief, check_names, listing, shown, warn, whole_number
from ..files.atomic import InputError, PathLike, write_atomically
from ..files.knowledge import parse_tetrad, tetrad_text
from ..files.opening import shown_path
from . import foreign
from .constraints import (
    EXOGENOUS,
    FORBIDDEN,
    OPEN,
    SINK,
    TIERS,
    WILD,
    WITHIN,
    Columns,
    Constraints,
    Edge,
    Stated,
    check,
    closest,
    consequences,
)

# With blanks around it an arrow divides names that have arrows of their own.
_ARROWS = (re.compile(r"\s+-{1,2}>\s+"), re.compile(r"\s*-{1,2}>\s*"))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Knowledge:
    """What is known of a graph, by the names of its nodes.

    Names may be shell patterns (``*``, ``?``, ``[abc]``; upper and lower case differ) that stand for all columns they
    match. A text that is itself the name of a column is that column; brackets that match nothing as a class are
    taken as they stand (``"*[t-1]"``).

    Parameters
    ----------
    required, forbidden : sequences of edges
        Edges that must, or must not, be in the graph: pairs ``("a", "b")`` or text ``"a -> b"``. Patterns stand for
        all edges between different columns that they match.
    tiers : sequence of sequences of names, earlier first
        No edge leads from a later tier to an earlier one. Columns in no tier are free: only edges are ruled out, so
        that a path from a later tier to an earlier one may lead through a free column. A column named in one tier is
        not taken by a pattern of another: ``[["age"], ["*"]]`` is "age first".
    exogenous : sequence of names
        Nodes without parents.
    sinks : sequence of names
        Nodes without children.
    max_parents : int or mapping of names to int, optional
        The most parents of every node, or of those named; a name outweighs a pattern, and the least of several
        patterns counts.
    within_tiers : bool or sequence of bool, default True
        Whether edges within tiers are allowed: in all of them, or one value for each.

    Examples
    --------
    >>> known = Knowledge(required=["smoking -> cancer"], tiers=[["age", "sex"], ["*"]])
    >>> known
    Knowledge(required=['smoking -> cancer'], tiers=[['age', 'sex'], ['*']])
    >>> known.bind(["cancer", "age", "sex", "smoking"])
    Constraints(4 columns, 1 edges required, 7 of 12 allowed, parents of 0 limited)
    """

    required: tuple[Edge, ...]
    forbidden: tuple[Edge, ...]
    tiers: tuple[tuple[str, ...], ...]
    exogenous: tuple[str, ...]
    sinks: tuple[str, ...]
    max_parents: int | dict[str, int] | None
    within_tiers: bool | tuple[bool, ...]

    def __init__(
        self,
        required: Iterable[Edge | str] = (),
        forbidden: Iterable[Edge | str] = (),
        tiers: Iterable[Iterable[str]] = (),
        exogenous: Iterable[str] = (),
        sinks: Iterable[str] = (),
        max_parents: int | Mapping[str, int] | None = None,
        within_tiers: bool | Sequence[bool] = True,
    ) -> None:
        if isinstance(tiers, str) or not isinstance(tiers, Iterable):
            raise ValueError(f"tiers must be a sequence of sequences of names, got {brief(tiers)}")
        every = [_names("tiers", tier) for tier in tiers]
        used = [(tier, inside) for tier, inside in zip(every, _flags(within_tiers, len(every)), strict=True) if tier]
        flags = tuple(inside for _, inside in used)
        values = {
            "required": _edges("required", required),
            "forbidden": _edges("forbidden", forbidden),
            "tiers": tuple(tier for tier, _ in used),
            "exogenous": _names("exogenous", exogenous),
            "sinks": _names("sinks", sinks),
            "max_parents": _limits(max_parents),
            "within_tiers": flags if len(set(flags)) > 1 else all(flags),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        # What contradicts itself whatever the columns are is refused at once.
        literal = dict.fromkeys(name for name in self._texts() if not WILD.search(name))
        check(self._stated(Columns(tuple(literal), partial=True)))

    # --- values -------------------------------------------------------------------------------------------------

    @property
    def _within(self) -> tuple[bool, ...]:
        return _flags(self.within_tiers, len(self.tiers))

    def _texts(self) -> list[str]:
        """All names and patterns."""
        groups = (*self.required, *self.forbidden, *self.tiers, self.exogenous, self.sinks)
        limited = self.max_parents if isinstance(self.max_parents, Mapping) else {}
        return [text for group in (*groups, limited) for text in group]

    def _key(self) -> tuple[Any, ...]:
        limits = self.max_parents
        return (
            frozenset(self.required),
            frozenset(self.forbidden),
            tuple(frozenset(tier) for tier in self.tiers),
            self._within,
            frozenset(self.exogenous),
            frozenset(self.sinks),
            frozenset(limits.items()) if isinstance(limits, Mapping) else limits,
        )

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Knowledge) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        said = []
        for key, value in self._said().items():
            if isinstance(value, list) and len(value) > 10:
                shortened = ", ".join(map(repr, value[:8]))
                said.append(f"{key}=[{shortened}, ... {len(value) - 8} more]")
            else:
                said.append(f"{key}={value!r}")
        return f"Knowledge({', '.join(said)})"

    def _said(self) -> dict[str, Any]:
        """What differs from saying nothing, as plain lists, numbers and text; keys are the constructor's."""
        said: dict[str, Any] = {
            "required": [_as_text(edge) for edge in self.required],
            "forbidden": [_as_text(edge) for edge in self.forbidden],
            "tiers": [list(tier) for tier in self.tiers],
            "exogenous": list(self.exogenous),
            "sinks": list(self.sinks),
        }
        said = {key: value for key, value in said.items() if value}
        if self.max_parents is not None:
            said["max_parents"] = self.max_parents
        if self.within_tiers is not True:
            said["within_tiers"] = self.within_tiers if self.within_tiers is False else list(self._within)
        return said

    def __or__(self, other: Knowledge) -> Knowledge:
        """Both: what either side says holds.

        One list of tiers cannot say what two lists say, so those of the right side (of the left one, if the names in
        the right one outweigh its patterns) become forbidden edges. Lists that order two names differently are refused.
        """
        if not isinstance(other, Knowledge):
            return NotImplemented
        first, second = self, other
        if first.tiers and second.tiers:
            if first._key()[2:4] == second._key()[2:4]:
                second = second._without_tiers(())
            else:
                _same_direction(first.tiers, second.tiers)
                if _outweighs(second.tiers):
                    first, second = second, first
                if _outweighs(second.tiers):
                    raise ValueError("tiers of both sides have names that patterns of theirs match: name all columns")
                second = second._without_tiers(_tier_edges(second.tiers, second._within))
        tiered = first if first.tiers else second
        return Knowledge(
            required=(*self.required, *other.required),
            forbidden=(*first.forbidden, *second.forbidden),
            tiers=tiered.tiers,
            exogenous=(*self.exogenous, *other.exogenous),
            sinks=(*self.sinks, *other.sinks),
            max_parents=_least(self.max_parents, other.max_parents),
            within_tiers=tiered.within_tiers,
        )

    def _without_tiers(self, forbidden: Iterable[Edge]) -> Knowledge:
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return Knowledge(**said | {"tiers": (), "within_tiers": True, "forbidden": (*self.forbidden, *forbidden)})

    # --- to arrays ----------------------------------------------------------------------------------------------

    def bind(self, names: Sequence[str], dropped: Sequence[str] = ()) -> Constraints:
        """The arrays for a table with these columns.

        Parameters
        ----------
        names : sequence of str
            The columns of the table.
        dropped : sequence of str, optional
            Columns that may be spoken of but were left out of the table; what was said of them has no effect.

        Returns
        -------
        Constraints

        Raises
        ------
        ValueError
            An unknown name, a pattern that matches nothing, or a contradiction; the message names the edges.
        """
        known = check_names([*names, *dropped], len(names) + len(dropped))
        stated = self._stated(Columns(known))
        d = len(names)
        lost = np.argwhere(stated.required)
        lost = lost[(lost >= d).any(axis=1)]
        if len(lost):
            edges = listing(f"{shown(known[i])} -> {shown(known[j])}" for i, j in lost)
            warn(f"Required edges of columns that were left out have no effect: {edges}.")
        kept = slice(None, d)
        stated = Stated(
            known[:d],
            stated.required[kept, kept],
            stated.why[kept, kept],
            np.minimum(stated.limits[kept], max(d - 1, 0)),
        )
        check(stated)
        return consequences(stated)

    def _stated(self, columns: Columns) -> Stated:
        """What is said of these columns, before anything follows from it."""
        required = columns.edges("required", self.required)
        # The first reason found is the one that messages give.
        why = np.where(columns.edges("forbidden", self.forbidden), FORBIDDEN, OPEN).astype(np.int8)
        level = columns.levels(self.tiers)
        tiered = (level[:, None] >= 0) & (level[None, :] >= 0)
        why[tiered & (level[:, None] > level[None, :]) & (why == OPEN)] = TIERS
        closed = np.isin(level, [k for k, open_ in enumerate(self._within) if not open_])
        why[(level[:, None] == level[None, :]) & closed[:, None] & (why == OPEN)] = WITHIN
        for name in self.exogenous:
            for j in columns.find("exogenous", name):
                why[why[:, j] == OPEN, j] = EXOGENOUS
        for name in self.sinks:
            for i in columns.find("sinks", name):
                why[i, why[i] == OPEN] = SINK
        np.fill_diagonal(why, FORBIDDEN)
        return Stated(columns.names, required, why, columns.limits(self.max_parents))

    # --- text and files -----------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """A mapping with the constructor's keys; what was not said is left out."""
        return self._said()

    def to_json(self) -> str:
        """JSON text with the constructor's keys; what was not said is left out."""
        return json.dumps(self._said(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Knowledge:
        """From JSON text: an object with the constructor's keys, edges as ``"a -> b"`` or ``["a", "b"]``."""
        try:
            said = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
        if not isinstance(said, dict):
            raise ValueError(
                f"knowledge in JSON must be an object with keys such as 'required', got {shown(repr(said))}"
            )
        return cls._of_mapping(said)

    @classmethod
    def read(cls, path: PathLike) -> Knowledge:
        """From a file: ``.json``, or ``.txt`` and ``.knowledge`` in the format of Tetrad.

        Raises
        ------
        InputError
            Whatever is wrong with the file.
        """
        file, suffix = _known_file(path)
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{shown_path(file)} is not text in UTF-8") from None
        except OSError as error:
            raise InputError(f"{shown_path(file)} cannot be read: {error.strerror}") from error
        try:
            return cls.from_json(text) if suffix == ".json" else cls(**parse_tetrad(text))
        except ValueError as error:
            raise InputError(f"{shown_path(file)}: {error}") from error

    def write(self, path: PathLike, names: Sequence[str] | None = None) -> None:
        """To a file: ``.json``, or ``.txt`` and ``.knowledge`` in the format of Tetrad.

        Parameters
        ----------
        path : str or path-like
            The file.
        names : sequence of str, optional
            The columns of the table. Tetrad knows neither patterns nor exogenous nodes nor sinks: with the names they
            are written edge by edge.

        Raises
        ------
        InputError
            What the format cannot hold.
        """
        file, suffix = _known_file(path)
        text = self.to_json() if suffix == ".json" else self._as_tetrad(names)
        write_atomically(file, text.encode())

    def _as_tetrad(self, names: Sequence[str] | None) -> str:
        if self.max_parents is not None:
            raise InputError("the format of Tetrad has no max_parents; .json has")
        if names is None:
            patterns = [text for text in self._texts() if WILD.search(text)]
            if patterns or self.exogenous or self.sinks:
                what = f"the pattern '{shown(patterns[0])}'" if patterns else "exogenous nodes and sinks"
                raise InputError(
                    f"the format of Tetrad has edges and tiers only: {what} can be written if names are given"
                )
            names = tuple(dict.fromkeys(self._texts()))
        columns = Columns(check_names(names, len(names)))
        known = columns.names
        stated = self._stated(columns)
        check(stated)
        level = columns.levels(self.tiers)
        np.fill_diagonal(stated.why, OPEN)
        by_tiers = np.isin(stated.why, (OPEN, TIERS, WITHIN))
        return tetrad_text(
            [(known[i], known[j]) for i, j in np.argwhere(stated.required)],
            [(known[i], known[j]) for i, j in np.argwhere(~by_tiers)],
            [[known[i] for i in np.flatnonzero(level == k)] for k in range(len(self.tiers))],
            self._within,
        )

    # --- from what others use -----------------------------------------------------------------------------------

    @classmethod
    def of(cls, known: Any, names: Sequence[str] | None = None) -> Knowledge:
        """Knowledge from whatever holds some.

        Parameters
        ----------
        known : object
            Knowledge; None; a mapping with the constructor's keys; the path of a file (:meth:`read`); a
            ``BackgroundKnowledge`` of causal-learn; an ``ExpertKnowledge`` of pgmpy; a matrix (d, d) of prior
            knowledge of lingam.
        names : sequence of str, optional
            The columns of the table: needed where the object speaks of columns by regular expression, by position,
            or by naming all edges that are possible.

        Returns
        -------
        Knowledge

        Notes
        -----
        The entry ``[i, j]`` of lingam's matrix is 0 if no directed path leads from column ``j`` to column ``i``, 1 if
        one does, and -1 if nothing is known. Paths are not edges, and what follows for edges is taken: where there is
        no path there is no edge, and where there is a path there is no edge back. A warning says what is lost: a path
        that is known is not required, and one that is ruled out may still lead through other columns.
        """
        if known is None:
            return cls()
        if isinstance(known, Knowledge):
            return known
        if isinstance(known, Mapping):
            return cls._of_mapping(known)
        if isinstance(known, str | os.PathLike):
            return cls.read(known)
        if hasattr(known, "required_rules_specs") and hasattr(known, "forbidden_rules_specs"):
            return cls(**foreign.of_causal_learn(known, names))
        if hasattr(known, "required_edges") and hasattr(known, "forbidden_edges"):
            return cls(**foreign.of_pgmpy(known, names))
        if hasattr(known, "__array__") or isinstance(known, list):
            return cls(**foreign.of_lingam(known, names))
        raise TypeError(
            "knowledge must be a Knowledge, a mapping, a file, a matrix of lingam, or an object of causal-learn or "
            f"pgmpy, got {type(known).__name__}"
        )

    @classmethod
    def _of_mapping(cls, said: Mapping[str, Any]) -> Knowledge:
        keys = [field.name for field in fields(cls)]
        for key in said:
            if key not in keys:
                raise ValueError(
                    f"knowledge has no '{shown(str(key))}'{closest(str(key), keys)}; allowed: {', '.join(keys)}"
                )
        return cls(**said)


def _known_file(path: PathLike) -> tuple[Path, str]:
    """The path and its suffix, refused unless it is one of a format that is known."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in (".json", ".txt", ".knowledge"):
        what = f"{shown_path(file)}: unknown suffix '{shown(file.suffix)}'"
        raise InputError(f"{what}; allowed for knowledge are .json, .txt, .knowledge")
    return file, suffix


# --- reading what was said ----------------------------------------------------------------------------------------


def _edges(parameter: str, edges: Any) -> tuple[Edge, ...]:
    if isinstance(edges, str):
        edges = [edges]
    if not isinstance(edges, Iterable):
        raise ValueError(f"{parameter} must be a sequence of edges, got {brief(edges)}")
    return tuple(dict.fromkeys(_edge(parameter, edge) for edge in edges))


def _edge(parameter: str, edge: Any) -> Edge:
    if isinstance(edge, str):
        for arrow in _ARROWS:
            ends = arrow.split(edge.strip())
            if len(ends) == 2 and all(ends):
                return ends[0], ends[1]
        raise ValueError(
            f"{parameter} has {brief(edge)}, which is not an edge 'a -> b'; a pair ('a', 'b') takes any names"
        )
    try:
        source, target = edge
    except (TypeError, ValueError):
        raise ValueError(f"{parameter} has {brief(edge)}; an edge is a pair ('a', 'b') or text 'a -> b'") from None
    return _name(parameter, source), _name(parameter, target)


def _names(parameter: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise ValueError(f"{parameter} must hold names of columns, got {brief(names)}")
    return tuple(dict.fromkeys(_name(parameter, name) for name in names))


def _name(parameter: str, name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{parameter} must hold names of columns, which are strings such as 'x0'; got {brief(name)}")
    return str(name)


def _flags(within: Any, tiers: int) -> tuple[bool, ...]:
    if isinstance(within, bool | np.bool_):
        return (bool(within),) * tiers
    if isinstance(within, str | Mapping) or not isinstance(within, Iterable):
        raise ValueError(f"within_tiers must be True, False, or one of them for each tier, got {brief(within)}")
    flags = tuple(within)
    if len(flags) != tiers or not all(isinstance(flag, bool | np.bool_) for flag in flags):
        raise ValueError(
            f"within_tiers must be True, False, or one of them for each of the {tiers} tiers, got {brief(within)}"
        )
    return tuple(bool(flag) for flag in flags)


def _limits(limits: Any) -> int | dict[str, int] | None:
    if limits is None:
        return None
    if isinstance(limits, Mapping):
        named = {
            _name("max_parents", name): whole_number(f"max_parents of {brief(name)}", limit, 0)
            for name, limit in limits.items()
        }
        return named or None
    return whole_number("max_parents", limits, 0)


def _as_text(edge: Edge) -> str | list[str]:
    """The edge as text where it is read back as the same edge, as a pair otherwise."""
    text = f"{edge[0]} -> {edge[1]}"
    try:
        return text if _edge("", text) == edge else list(edge)
    except ValueError:
        return list(edge)


# --- two at once ------------------------------------------------------------------------------------------------------


def _same_direction(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> None:
    """Refuse tiers that put two names in opposite orders."""
    one, two = ({name: k for k, tier in enumerate(tiers) for name in tier} for tiers in (first, second))
    both = [name for name in one if name in two]
    for a, b in permutations(both, 2):
        if one[a] < one[b] and two[a] > two[b]:
            raise ValueError(
                f"tiers contradict each other: '{shown(a)}' is before '{shown(b)}' in one and after in the other"
            )


def _outweighs(tiers: Sequence[Sequence[str]]) -> bool:
    """Whether a text of one tier is matched by a pattern of another, so that tiers say more than edges can."""
    return any(
        fnmatchcase(text, pattern)
        for one, other in permutations(tiers, 2)
        for pattern in one
        if WILD.search(pattern)
        for text in other
    )


def _tier_edges(tiers: Sequence[Sequence[str]], within: Sequence[bool]) -> list[Edge]:
    """The edges that tiers forbid."""
    later = [(b, a) for k, tier in enumerate(tiers) for a in tier for other in tiers[k + 1 :] for b in other]
    for tier, inside in zip(tiers, within, strict=True):
        if not inside:
            later += [(a, b) for a in tier for b in tier if a != b or WILD.search(a)]
    return later


def _least(
    first: int | Mapping[str, int] | None, second: int | Mapping[str, int] | None
) -> int | dict[str, int] | None:
    """The limits that hold where both do."""
    if first is None or second is None:
        return _limits(second if first is None else first)
    if isinstance(first, int) and isinstance(second, int):
        return min(first, second)
    one, two = ({"*": limits} if isinstance(limits, int) else dict(limits) for limits in (first, second))
    merged: dict[str, int] = {}
    for text in (*one, *two):
        # A name outweighs patterns, so it takes on what the patterns of the other side say of it.
        found = [limit for limits in (one, two) if (limit := _limit_of(limits, text)) is not None]
        merged[text] = min(found)
    return merged


def _limit_of(limits: Mapping[str, int], text: str) -> int | None:
    if text in limits or WILD.search(text):
        return limits.get(text)
    return min((limit for pattern, limit in limits.items() if fnmatchcase(text, pattern)), default=None)
