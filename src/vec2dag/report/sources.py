"""What a page is made of: a fitted model, or a folder that the command line has written."""

import csv
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import quoted, shown
from ..confidence.effects import coefficients
from ..confidence.shares import Bootstrap
from ..estimator import ALIAS
from ..files.atomic import InputError, PathLike
from ..files.graph_readers import load_graph
from ..files.opening import reason, shown_path
from ..files.tables import cell_text
from ..graph import topological_order
from ..missing import TREATMENTS
from ..moments import Moments
from .summaries import FORMAT, as_plain, of_table, summary

__all__ = ["Source", "of_folder", "of_graph", "of_model"]

Edge = dict[str, Any]

# Bytes of a file beside the graph at most: more is none of ours.
LARGEST = 200_000_000


@dataclass(frozen=True)
class Source:
    """A graph and what is known about it.

    Attributes
    ----------
    title : str
        The name of the table.
    label : str
        The name of the run, where two are compared.
    nodes : tuple of str
    edges : list of dict
        ``source`` and ``target`` by position, ``direction``, ``coefficient``, and where they are known ``error``,
        ``standardised``, ``p_value`` or ``p_value_given_graph``.
    made : datetime
    run : dict
        The content of ``run.json`` or ``bootstrap.json``.
    summary : dict
        What :func:`summary` returns, as far as it is there.
    pairs : list of dict
        The rows of ``bootstrap.csv``, ends by position; empty without a bootstrap.
    consensus : bool
        Whether the graph is that of a bootstrap.
    lacking : list of str
        Sentences: what is not there, and how to get it.
    """

    title: str
    label: str
    nodes: tuple[str, ...]
    edges: list[Edge]
    made: datetime
    run: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    pairs: list[Edge] = field(default_factory=list)
    consensus: bool = False
    lacking: list[str] = field(default_factory=list)

    @property
    def A(self) -> NDArray[np.uint8]:
        """The DAG (d, d)."""
        A = np.zeros((len(self.nodes), len(self.nodes)), np.uint8)
        for edge in self.edges:
            A[edge["source"], edge["target"]] = 1
        return A

    @property
    def linear(self) -> bool:
        """Whether coefficients are those of the regressions, and not only slopes of lines through them."""
        told = self.summary.get("model", {}).get("linear")
        return self.parameters.get("regression", "linear") == "linear" if told is None else bool(told)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those of the estimator, as they are in ``run.json``; empty if that has none."""
        parameters = self.run.get("parameters")
        return parameters if isinstance(parameters, Mapping) else {}

    @property
    def verdicts(self) -> list[Edge]:
        """What pruning found and decided of every edge of the search, ends by position."""
        if "pruning" in self.summary:
            return list(self.summary["pruning"])
        told = self.run.get("pruning")
        rows = [row for row in told if isinstance(row, dict)] if isinstance(told, list) else []
        return _by_position(self.nodes, rows)

    def with_table(self, X: NDArray[np.float64], what: str) -> "Source":
        """With what follows from the table (n, d) of the fit, whose columns are in the order of the nodes.

        ``what`` names the table in the error for one that cannot be that of the fit.
        """
        missing = bool(np.isnan(X).any())
        treatment = TREATMENTS.get(str(self.parameters.get("missing")), TREATMENTS["refuse"])
        if missing and treatment.draws:
            raise InputError(
                f"{what}: its missing values were drawn at random, which cannot be done again; discover --report makes "
                "the page together with the fit"
            )
        moments = treatment.moments(X, tuple(self.nodes)) if missing else Moments.of(X, self.nodes)
        if self.run.get("standardized") is True:
            moments = moments.standardised()
        fitted = coefficients(moments, self.A)
        edges = []
        for edge in self.edges:
            i, j = edge["source"], edge["target"]
            value = float(fitted.value[i, j])
            if not math.isclose(value, edge["coefficient"] or value, rel_tol=1e-6, abs_tol=1e-12):
                ends = f"{quoted([self.nodes[i]])} -> {quoted([self.nodes[j]])}"
                raise InputError(
                    f"{what} is not the table of {shown(self.label)}: there the coefficient of {ends} is "
                    f"{edge['coefficient']:.6g}, not {value:.6g}"
                )
            errors = {"error": fitted.error[i, j], "p_value_given_graph": fitted.p_value[i, j]} if self.linear else {}
            edges.append(as_plain({"standardised": fitted.standardised[i, j], **errors} | edge))
        return replace(self, edges=edges, summary=self.summary | of_table(X, moments))


def of_model(
    model: ALIAS, X: Any = None, bootstrap: Bootstrap | None = None, *, about: Mapping[str, Any] | None = None
) -> Source:
    """What is known of a fitted model, with the table (n, d) of the fit and a bootstrap of it, if given.

    ``about`` says more than the model knows, or instead of it, as in ``run.json``: ``data`` (a name, which becomes the
    title), ``command`` and ``warnings``.
    """
    check_is_fitted(model)
    told = summary(model, X)
    nodes = tuple(model.graph_.nodes)
    pairs: list[Edge] = []
    if bootstrap is not None:
        if set(bootstrap.names) != set(nodes):
            raise ValueError(
                f"bootstrap must be of the columns of the model, {quoted(nodes)}, got {quoted(bootstrap.names)}"
            )
        pairs = _by_position(nodes, list(bootstrap.edges().rows))
    run = as_plain(model.run() | dict(about or {}))
    title = run.get("data")
    source = Source(
        title=title if isinstance(title, str) else "",
        label="",
        nodes=nodes,
        edges=told["edges"],
        made=datetime.fromisoformat(told["made"]),
        run=run,
        summary=told,
        pairs=pairs,
    )
    return replace(source, lacking=_lacking(source, "DIR" if about else None))


def of_graph(A: NDArray[np.uint8], names: Sequence[str], label: str) -> Source:
    """A DAG (d, d) of which nothing else is known, to compare with."""
    edges = [
        {"source": int(i), "target": int(j), "direction": "oriented", "coefficient": None} for i, j in np.argwhere(A)
    ]
    return Source(title=label, label=label, nodes=tuple(names), edges=edges, made=datetime.now(UTC))


def of_folder(folder: PathLike) -> Source:
    """Read what ``vec2dag discover`` or ``vec2dag bootstrap`` has written; of both in one, the graph of discover.

    Raises
    ------
    InputError
        There is no graph, or a file is not what it should be.
    """
    path = Path(folder)
    consensus = not (path / "graph.json").is_file()
    file = path / "consensus" / "graph.json" if consensus else path / "graph.json"
    if not file.is_file():
        raise InputError(
            f"{shown_path(path)} has no graph.json: a folder of vec2dag discover, or of vec2dag bootstrap, is needed"
        )
    nodes, edges = _graph(file)
    record = "bootstrap.json" if consensus else "run.json"
    run, foreign = _mapping(path / record), False
    if not _agrees(run, len(nodes), None if consensus else len(edges)):
        run, foreign = {}, True
    told, stale = _summary(path, edges, len(nodes)) if not consensus else ({}, False)
    shares = _rows(path / "bootstrap.csv")
    title = run.get("data")
    source = Source(
        title=title if isinstance(title, str) else "",
        label=path.name or path.resolve().name,
        nodes=nodes,
        edges=_detailed(edges, told, nodes, _rows(path / "edges.csv") if not consensus else []),
        made=_made(told, file),
        run=run,
        summary=told,
        pairs=_by_position(nodes, shares),
        consensus=consensus,
    )
    lacking = []
    if foreign:
        lacking.append(f"{record} is of another graph and was not used.")
    elif not run:
        lacking.append(f"How the graph was found: {shown_path(path)} has no {record}.")
    if stale:
        lacking.append("summary.json is of another graph and was not used.")
    return replace(source, lacking=[*lacking, *_lacking(source, shown_path(path))])


def _lacking(source: Source, folder: str | None) -> list[str]:
    """What a source does not have, and how to get it: with the command line if it is of a folder, else with Python."""
    again, data = f"vec2dag report {folder}", shown(source.title) or "TABLE"
    sentences = []
    if source.summary.get("columns") is None and source.run.get("levels"):
        sentences.append("Distributions and correlations of the columns: they are shown of tables of numbers only.")
    elif source.summary.get("columns") is None:
        how = "report(model, X) has them" if folder is None else f"{again} --data {data} computes them from the table"
        sentences.append(f"Distributions and correlations of the columns: {how}.")
    if source.summary.get("history") is None and not source.consensus:
        sentences.append("The course of the search: there is no record of it.")
    if not source.pairs:
        how = f"vec2dag bootstrap {data} -o BOOT with the options of this fit, then {again} BOOT shows it"
        how = "report(model, X, bootstrap(model, X)) shows it" if folder is None else how
        sentences.append(f"How sure the edges are: {how}.")
    return sentences


def _graph(file: Path) -> tuple[tuple[str, ...], list[Edge]]:
    """Nodes, and edges in the order of the file."""
    graph = load_graph(file)
    if graph.names is None or not graph.names:
        raise InputError(f"{shown_path(file)}: the graph has no nodes")
    try:
        topological_order(graph.A)
    except ValueError as error:
        raise InputError(f"{shown_path(file)}: the graph has a cycle, and a page is about a DAG") from error
    place = {name: i for i, name in enumerate(graph.names)}
    edges = []
    for edge in json.loads(file.read_bytes())["edges"]:
        weight, direction = as_plain(edge.get("weight")), edge.get("direction")
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if weight is None and isinstance(edge.get("weight"), int):
            ends = f"{quoted([edge['source']])} -> {quoted([edge['target']])}"
            raise InputError(f"{shown_path(file)}: the weight of {ends} is beyond double precision")
        edges.append(
            {
                "source": place[edge["source"]],
                "target": place[edge["target"]],
                "direction": direction if direction in ("free", "known") else "oriented",
                "coefficient": float(weight) if number else None,
            }
        )
    return graph.names, list({(edge["source"], edge["target"]): edge for edge in edges}.values())


def _agrees(run: Mapping[str, Any], columns: int, edges: int | None) -> bool:
    """Whether ``run.json`` can be of a graph with so many columns and edges, as far as it says."""
    told = {"columns": columns, "edges": edges}
    return all(
        not isinstance(run.get(key), int) or isinstance(run[key], bool) or count in (None, run[key])
        for key, count in told.items()
    )


def _mapping(file: Path) -> dict[str, Any]:
    """The JSON object in a file, made plain; empty if there is no file."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{shown_path(file)}: not JSON ({reason(error)})") from error
    if not isinstance(content, dict):
        raise InputError(f"{shown_path(file)}: must hold a JSON object, got {type(content).__name__}")
    return dict(as_plain(content))


def _text(file: Path) -> str:
    try:
        if os.stat(file).st_size > LARGEST:
            raise InputError(f"{shown_path(file)}: more than {LARGEST / 1e6:g} MB, which no file of a run has")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{shown_path(file)} cannot be read: {reason(error)}") from error


def _summary(path: Path, edges: list[Edge], d: int) -> tuple[dict[str, Any], bool]:
    """The summary, and whether it had to be left out because it is of another graph."""
    told = _mapping(path / "summary.json")
    if not told:
        return {}, False
    if {key: told.get(key) for key in FORMAT} != FORMAT:
        raise InputError(f"{shown_path(path / 'summary.json')}: not a summary of version {FORMAT['version']}")
    try:
        same = {(e["source"], e["target"]) for e in told["edges"]} == {(e["source"], e["target"]) for e in edges}
        for key in ("columns", "correlations"):
            same &= told[key] is None or len(told[key]) == d
        for column in told["columns"] or ():
            _numbers(column["counts"])
            _numbers([column["low"], column["high"], column["mean"], column["deviation"]])
        for k, row in enumerate(told["correlations"] or ()):
            _numbers([r or 0.0 for r in row], k)
        if told["history"] is not None:
            _numbers(told["history"]["step"])
            for values in told["history"].values():
                _numbers([v or 0.0 for v in values], len(told["history"]["step"]))
        for row in (*told["edges"], *told["pruning"]):
            _edge(row, d)
        if not isinstance(told["model"], dict):
            raise TypeError("model")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{shown_path(path / 'summary.json')} is damaged ({reason(error)})") from error
    return (told, False) if same else ({}, True)


def _edge(row: Any, d: int) -> None:
    """Refuses what is no edge or verdict of a graph with d nodes."""
    if not all(isinstance(row[end], int) and 0 <= row[end] < d for end in ("source", "target")):
        raise ValueError("ends of edges must be columns")
    for key in ("coefficient", "error", "standardised", "p_value", "p_value_given_graph", "value", "limit"):
        if row.get(key) is not None:
            _numbers([row[key]])


def _numbers(values: Any, count: int | None = None) -> None:
    if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
        raise TypeError("numbers expected")
    if count is not None and len(values) != count:
        raise ValueError(f"{count} numbers expected")


def _rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file of edges or pairs, numbers as numbers and what is empty as None; none without a file."""
    if not file.is_file():
        return []
    try:
        rows = [dict(row) for row in csv.DictReader(io.StringIO(_text(file), newline=""), strict=True)]
        for row in rows:
            for key, cell in row.items():
                row[key] = cell_text(cell) if key in ("source", "target", "direction") else _number(cell)
    except (csv.Error, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{shown_path(file)}: not a table of edges ({reason(error)})") from error
    return rows


def _number(cell: str) -> float | None:
    value = float(cell) if cell else math.nan
    return value if math.isfinite(value) else None


def _by_position(nodes: tuple[str, ...], rows: list[dict[str, Any]]) -> list[Edge]:
    """Rows whose ends are nodes, by position."""
    place = {name: i for i, name in enumerate(nodes)}
    return [
        as_plain(row) | {"source": place[row["source"]], "target": place[row["target"]]}
        for row in rows
        if row.get("source") in place and row.get("target") in place
    ]


def _detailed(
    edges: list[Edge], told: Mapping[str, Any], nodes: tuple[str, ...], rows: list[dict[str, Any]]
) -> list[Edge]:
    """Edges with all that the summary, or else edges.csv, has on them; what graph.json says itself counts."""
    known = told.get("edges") or _by_position(nodes, rows)
    more = {(row["source"], row["target"]): row for row in known}
    return [dict(more.get((edge["source"], edge["target"]), {})) | edge for edge in edges]


def _made(told: Mapping[str, Any], file: Path) -> datetime:
    try:
        return datetime.fromisoformat(str(told.get("made")))
    except ValueError:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
