"""Means over sets, beside the published numbers."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from weakref import WeakKeyDictionary

from .code import stale
from .store import Row, Store, problem
from .tables import TABLES, Run, Table

PAPER = Path(__file__).with_name("paper.csv")
THIN = 3  # fewer datasets are an impression


@dataclass(frozen=True)
class Number:
    """A mean with its standard error; nan where there is none."""

    mean: float
    se: float = math.nan

    @classmethod
    def of(cls, values: Sequence[float]) -> "Number":
        """Over independent sets; one value has no standard error."""
        return cls(fmean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan)


@dataclass(frozen=True)
class Line:
    """One method on one kind of data.

    Attributes
    ----------
    cell, name, pruning : str
    here, paper : dict of Number
        By metric: measured, and published.
    shd : dict
        The distances by number of the set.
    sets : int
        Runs that ended with a graph that could be shown so.
    seconds, megabytes : float
        Median (of processor time, where it was measured) and largest over those.
    stale : int
        How many of those were made by code that has changed since.
    remark : str
        What stopped the others.
    """

    cell: str
    name: str
    pruning: str
    here: dict[str, Number]
    paper: dict[str, Number]
    shd: dict[int, float] = field(default_factory=dict)
    sets: int = 0
    seconds: float = math.nan
    megabytes: float = math.nan
    stale: int = 0
    remark: str = ""


@cache
def published() -> dict[tuple[str, str, str, str], dict[str, Number]]:
    """Numbers of the paper by table, cell, method and pruning, then by metric."""
    found: dict[tuple[str, str, str, str], dict[str, Number]] = {}
    with PAPER.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            key = (row["table"], row["cell"], row["method"], row["pruning"])
            se = float(row["se"]) if row["se"] else math.nan
            found.setdefault(key, {})[row["metric"]] = Number(float(row["mean"]), se)
    return found


def paper_name(run: Run) -> str:
    """Name of a run in ``paper.csv``."""
    return "alias" if run.name == "vec2dag" else run.name


def _published(table: Table, cell: str, name: str, pruning: str) -> dict[str, Number]:
    keys = ((table.paper or table.name, cell, name, p) for p in (pruning, ""))
    return next((published()[key] for key in keys if key in published()), {})


def _remark(rows: list[Row]) -> str:
    """Why there are fewer numbers than sets."""
    remarks = [problem(row) or ("" if row.get("dag", True) else "not a DAG") for row in rows]
    return "; ".join(dict.fromkeys(filter(None, remarks)))


def _line(table: Table, cell: str, run: Run, pruning: str, store: Store) -> Line:
    rows = [r for r in store.series(cell, run.method, run.settings) if r["seed"] < table.seeds]
    shown = run.pruning or pruning
    ended = [r for r in rows if r["status"] == "ok" and shown in r["metrics"]]
    graphs = [r["metrics"][shown] for r in ended]
    here = {m: Number.of([g[m] for g in graphs]) for m in table.metrics if graphs and all(m in g for g in graphs)}
    paper = _published(table, cell, paper_name(run), pruning)
    # One thread: processor time is what a run takes on a machine that does nothing else.
    seconds = [r.get("cpu_seconds", r["seconds"]) for r in ended if "seconds" in r]
    memory = [r["peak_mb"] for r in ended if r.get("peak_mb") is not None]
    return Line(
        cell,
        run.name,
        pruning,
        here,
        paper,
        {r["seed"]: g["shd"] for r, g in zip(ended, graphs, strict=True) if "shd" in g},
        len(ended),
        median(seconds) if seconds else math.nan,
        max(memory) if memory else math.nan,
        sum(bool(stale(r)) for r in ended),
        _remark(rows) or ("" if rows else "not run"),
    )


# Lines of a store by table, with the number of rows that they are of.
_FOUND: "WeakKeyDictionary[Store, dict[str, tuple[int, Table, list[Line]]]]" = WeakKeyDictionary()


def lines(table: Table, store: Store) -> list[Line]:
    """Lines of a table by pruning and cell: those run here, then those that are only quoted.

    A method that was not run and has no published number has no line.
    """
    known = _FOUND.setdefault(store, {})
    added, of, found = known.get(table.name, (-1, None, []))
    if added != store.added or of is not table:
        found = list(_lines(table, store))
        known[table.name] = (store.added, table, found)
    return found


def _lines(table: Table, store: Store) -> Iterator[Line]:
    for pruning in table.prunings:
        for cell in table.cells:
            for run in table.runs:
                line = _line(table, cell, run, pruning, store)
                if line.remark != "not run" or line.paper:
                    yield line
            named = {paper_name(run) for run in table.runs}
            for t, c, name, p in published():
                quoted = t == (table.paper or table.name) and c == cell and p in (pruning, "") and name not in named
                if quoted:
                    yield Line(cell, name, pruning, {}, _published(table, cell, name, pruning), remark="quoted")


def is_met(line: Line, metric: str) -> bool | None:
    """Whether a mean is at most the published one and its standard error; None where one of the two is missing."""
    if metric not in line.here or metric not in line.paper:
        return None
    paper = line.paper[metric]
    return line.here[metric].mean <= paper.mean + (0.0 if math.isnan(paper.se) else paper.se) + 1e-9


def verdicts(store: Store) -> Iterator[tuple[Table, Line, str, bool]]:
    """The library's mean SHD against the paper's, wherever all sets were run; a comparison made twice counts once."""
    seen = set()
    for table in TABLES.values():
        metric = next((m for m in table.metrics if m in ("shd", "skeleton_shd")), None)
        if metric is None:
            continue
        for line in lines(table, store):
            met = is_met(line, metric) if line.name == "vec2dag" and line.sets >= table.seeds else None
            same = (line.cell, line.pruning, metric, line.paper.get(metric))
            if met is not None and same not in seen:
                seen.add(same)
                yield table, line, metric, met
