"""Which columns of a table were set by somebody, and in which rows.

An intervention is perfect and known: in its rows a column, its *target*, has values that somebody has given it and its
own causes have not. Such rows say nothing about these causes, and all the more about its effects.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import brief, check_names, listing, quoted, shown
from .moments import Moments

__all__ = ["Interventions", "without_targets"]

# Texts, in any case, that say that nothing was set, unless a column is called so.
NOTHING = ("", "none", "observational", "nan", "na", "null")
# Between the names of several targets.
SEPARATORS = "+;"
# Rows in which a column was not set, below which nothing is learned about its causes: a line fits two points.
FEWEST = 3


@dataclass(frozen=True, eq=False)
class Interventions:
    """The targets of every row; :meth:`Interventions.of` makes them of what people have.

    Attributes
    ----------
    names : tuple of str
        Of the d columns.
    patterns : tuple of tuples of int
        The different sets of targets, as positions of columns; ``()`` where nothing was set.
    rows : array of shape (n,)
        The pattern of every row.

    Examples
    --------
    >>> Interventions.of([None, "b", "a + b", "b"], ["a", "b", "c"])
    <Interventions in 4 rows: 'a' (1), 'b' (3)>
    """

    names: tuple[str, ...]
    patterns: tuple[tuple[int, ...], ...]
    rows: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        targets: Any,
        names: Sequence[str],
        n: int | None = None,
        *,
        where: Callable[[int], str] = "row {}".format,
    ) -> "Interventions":
        """Of the targets of every row.

        Parameters
        ----------
        targets : sequence of n entries, array of bool of shape (n, d), or Interventions
            An entry is the name or the position of a column, several in a tuple or, of names, in a text with ``+`` or
            ``;`` between them; None, NaN, ``""``, ``"none"`` and ``"observational"`` are rows in which nothing was set.
        names : sequence of d str
        n : int, optional
            Rows of the table.
        where : callable, optional
            What errors call a row, given its position; by default that, from 0 on.
        """
        labels = check_names(names, len(names))
        if isinstance(targets, cls):
            if targets.names != labels:
                raise ValueError(
                    f"interventions are of the columns {quoted(targets.names)}, the table has {quoted(labels)}"
                )
            entries: list[Any] = []
        elif isinstance(targets, np.ndarray) and targets.ndim == 2:
            if targets.dtype != np.bool_ or targets.shape[1] != len(labels):
                raise ValueError(
                    f"interventions as an array of two dimensions must be of bool, (n, {len(labels)}), got "
                    f"{targets.dtype} {targets.shape}"
                )
            entries = [tuple(np.flatnonzero(row).tolist()) for row in targets]
        elif isinstance(targets, str | bytes | Mapping) or not np.iterable(targets):
            raise ValueError(
                f"interventions={brief(targets)}: one entry for every row is needed, the column that was set or None"
            )
        else:
            entries = list(targets)
        rows = len(targets.rows) if isinstance(targets, cls) else len(entries)
        if n is not None and rows != n:
            raise ValueError(
                f"interventions have {rows} entries and the table has {n} rows: one for every row is needed"
            )
        return targets if isinstance(targets, cls) else cls._read(entries, labels, where)

    @classmethod
    def _read(cls, entries: list[Any], names: tuple[str, ...], where: Callable[[int], str]) -> "Interventions":
        known: dict[Any, tuple[int, ...]] = {}
        found = []
        for row, entry in enumerate(entries):
            key = tuple(entry) if isinstance(entry, list | np.ndarray) else entry
            try:
                # True would be found as 1
                pattern = known.get((type(key), key))
                if pattern is None:
                    pattern = known[type(key), key] = _targets(key, where(row), names)
            except TypeError:
                pattern = _targets(key, where(row), names)
            found.append(pattern)
        patterns = tuple(sorted(set(found)))
        place = {pattern: k for k, pattern in enumerate(patterns)}
        return cls(names, patterns, np.array([place[pattern] for pattern in found], np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        said = listing(f"'{shown(name)}' ({k:,})" for name, k in self.counts.items())
        return f"<Interventions in {len(self):,} rows: {said or 'none'}>"

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows (p,) of every pattern."""
        return np.bincount(self.rows, minlength=len(self.patterns))

    @cached_property
    def is_set(self) -> NDArray[np.bool_]:
        """``[p, j]``: pattern p sets column j."""
        found = np.zeros((len(self.patterns), len(self.names)), dtype=bool)
        for k, pattern in enumerate(self.patterns):
            found[k, list(pattern)] = True
        return found

    @property
    def counts(self) -> dict[str, int]:
        """In how many rows each column was set, for those that were."""
        rows = self.sizes @ self.is_set
        return {name: int(k) for name, k in zip(self.names, rows, strict=True) if k}

    @property
    def free(self) -> NDArray[np.int64]:
        """In how many rows (d,) each column was not set."""
        return self.sizes @ ~self.is_set

    @property
    def learnable(self) -> NDArray[np.bool_]:
        """Of which columns (d,) causes can be learned: there are three rows at least in which they were not set."""
        return self.free >= FEWEST

    @property
    def trivial(self) -> bool:
        """Whether nothing was ever set."""
        return not self.is_set.any()

    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Columns that were set in the same rows: of every column its group (d,), and the patterns of each (g, p).

        Patterns of a group are those that do not set its columns. Columns that were never set come first.
        """
        left_alone, group = np.unique(~self.is_set.T, axis=0, return_inverse=True)
        order = np.argsort(-left_alone.sum(axis=1), kind="stable")
        return np.argsort(order)[group.ravel()], left_alone[order]

    def taken(self, order: Sequence[int] | NDArray[np.int64]) -> "Interventions":
        """The same with the columns, all of them, in another order."""
        place = np.argsort(order)
        moved = [tuple(sorted(int(place[j]) for j in pattern)) for pattern in self.patterns]
        patterns = tuple(sorted(moved))
        rank = np.array([patterns.index(pattern) for pattern in moved], np.int64)
        return Interventions(tuple(self.names[k] for k in order), patterns, rank[self.rows])

    def of_rows(self, rows: NDArray[Any]) -> "Interventions":
        """Of these rows, given by positions or by a mask (n,), with the patterns that they have."""
        left, place = np.unique(self.rows[rows], return_inverse=True)
        return Interventions(self.names, tuple(self.patterns[k] for k in left), place.astype(np.int64))

    def moments(self, X: NDArray[np.float64]) -> list[Moments]:
        """Statistics of the rows of every pattern in a table (n, d)."""
        return [Moments.of(X[self.rows == k], self.names) for k in range(len(self.patterns))]

    def doubts(self) -> list[str]:
        """What cannot be learned, a sentence each."""
        if self.trivial:
            return ["interventions say that nothing was set in any row: this is a fit without any"]
        few = [self.names[j] for j in np.flatnonzero(~self.learnable)]
        if not few:
            return []
        whose, were = ("its", "was") if len(few) == 1 else ("their", "were")
        return [
            f"{quoted(few)} {were} set in all rows, or in all but one or two: nothing can be learned about {whose} "
            "causes, and the graph has none"
        ]


def without_targets(X: Any, interventions: Any) -> tuple[Any, Any]:
    """A data frame without the column that says what was set in every row, and what that column says.

    Anything but the label of a column is returned as it is.
    """
    if not isinstance(interventions, str):
        return X, interventions
    labels = getattr(X, "columns", None)
    if labels is None or interventions not in list(labels):
        known = "X has no names of columns" if labels is None else f"X has {quoted(map(str, labels), 20)}"
        raise ValueError(
            f"interventions={brief(interventions)} would be a column of a data frame that names what was set; {known}"
        )
    return X[[label for label in labels if label != interventions]], list(X[interventions])


def _targets(entry: Any, where: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """Positions of the columns that an entry names, in increasing order."""
    if (
        entry is None
        or (isinstance(entry, float | np.floating) and math.isnan(entry))
        or type(entry).__name__ == "NAType"
    ):
        return ()
    if isinstance(entry, str):
        text = entry.strip()
        if entry not in names and text not in names:
            if text.lower() in NOTHING:
                return ()
            return tuple(sorted({_target(part.strip(), where, names) for part in re.split(f"[{SEPARATORS}]", text)}))
        return (names.index(entry if entry in names else text),)
    if isinstance(entry, tuple | set | frozenset):
        return tuple(sorted({_target(one, where, names) for one in entry}))
    return (_target(entry, where, names),)


def _target(one: Any, where: str, names: tuple[str, ...]) -> int:
    if isinstance(one, str) and one in names:
        return names.index(one)
    if isinstance(one, int | np.integer | float | np.floating) and not isinstance(one, bool | np.bool_):
        if 0 <= one < len(names) and one == int(one):
            return int(one)
        raise ValueError(f"interventions: {where} has the position {brief(one)}; columns are 0 to {len(names) - 1}")
    raise ValueError(
        f"interventions: {where} names {brief(one)}, which is no column; there are {quoted(names, 20)}, and 'none' "
        "where nothing was set"
    )
