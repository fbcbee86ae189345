"""Digests of what a row comes from, in parts, so that a change makes those rows stale that it concerns.

- ``library``: what vec2dag scores and searches with, for methods that use it.
- ``method``: the function of :mod:`experiments.ours` or :mod:`experiments.peers`, or the file of the baseline.
- ``judge``: what prunes a graph and compares it with the truth.
- ``data``: the table and the true graph themselves.

Comments and docstrings do not count, so that a better sentence makes nothing stale.
"""

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from vec2dag.simulate import Dataset

from .data import load, prunings
from .methods import METHODS

HERE = Path(__file__).parent
# Python 3.11 counts the depth of trees that two threads make at the same time together, and then fails.
_PARSING = Lock()
PACKAGE = HERE.parent / "src" / "vec2dag"

# Of the package, what decides which graph is found; files, command line, pictures, pages and confidence do not.
_SEARCH = (
    "estimator.py",
    "graph.py",
    "moments.py",
    "_kernels.py",
    "_sampling.py",
    "search/*.py",
    "scores/criteria.py",
    "scores/lapack.py",
    "scores/linear.py",
    "scores/local.py",
    "scores/regression.py",
    "scores/score.py",
)
_ADDITIVE = ("scores/additive.py", "scores/splines.py", "_smoothing.py")
# Besides, by the regression of the run; additive ones guide Gaussian processes.
_REGRESSIONS = {
    "linear": (),
    "gp": ("scores/gp.py", *_ADDITIVE),
    "gp-auto": ("scores/learned.py", "scores/regressors.py", "_processes.py", *_ADDITIVE),
    "additive": _ADDITIVE,
}
_JUDGE = ("metrics.py", "prune/__init__.py")
# Besides, by the prunings of the data.
_PRUNINGS = {"cam": ("prune/additive.py", "scores/splines.py"), "ci": ("prune/independence.py",)}


def _parsed(source: str) -> ast.Module:
    with _PARSING:
        return ast.parse(source)


def meaning(source: str) -> str:
    """Source without comments, docstrings and empty lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                assert first.end_lineno is not None
                lines[first.lineno - 1 : first.end_lineno] = [""] * (first.end_lineno - first.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


@cache
def _read(file: Path) -> str:
    return meaning(file.read_text(encoding="utf-8"))


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    code = hashlib.sha256()
    for name, text in parts:
        code.update(f"{name} {len(text)}\n{text}".encode())
    return code.hexdigest()[:12]


def _files(folder: Path, patterns: Iterable[str]) -> list[tuple[str, str]]:
    """Names and meanings of the files of a folder that match, in an order that no system changes."""
    found = {file.relative_to(folder).parts: file for pattern in patterns for file in folder.glob(pattern)}
    return [("/".join(parts), _read(found[parts])) for parts in sorted(found)]


def regression(settings: dict[str, Any]) -> str:
    """Name of the regression that settings of the estimator ask for."""
    return "gp" if "gp" in settings else str(settings.get("regression", "linear"))


def _function(where: str) -> tuple[str, str]:
    """``module:function`` and its source: the whole file of a baseline, one function of a collection."""
    module, name = where.split(":")
    file = HERE.joinpath(*module.split(".")).with_suffix(".py")
    text = _read(file)
    if module.startswith("baselines."):
        return where, text
    node = next(node for node in _parsed(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return where, ast.get_source_segment(text, node) or ""


def digests(method: str, settings: dict[str, Any], data: str) -> dict[str, str]:
    """Of the code that a run would have today, by part."""
    how = METHODS[method]
    judge = (*_JUDGE, *(pattern for name in prunings(data) for pattern in _PRUNINGS.get(name, ())))
    found = {
        "method": _digest([_function(how.where)]),
        "judge": _digest([*_files(PACKAGE, judge), ("evaluate.py", _read(HERE / "evaluate.py"))]),
    }
    if how.library:
        patterns = (*_SEARCH, *_REGRESSIONS.get(regression(settings), ("scores/*.py",)))
        found["library"] = _digest(_files(PACKAGE, patterns))
    return found


def table_digest(dataset: Dataset) -> str:
    """Of a table and its true graph; in single precision, because the last bits differ between machines."""
    parts = (np.ascontiguousarray(dataset.X, np.float32), np.ascontiguousarray(dataset.A, np.uint8))
    code = hashlib.sha256()
    for part in parts:
        code.update(f"{part.shape}\n".encode() + part.tobytes())
    return code.hexdigest()[:12]


@cache
def _today(method: str, settings: str, data: str) -> dict[str, str]:
    return digests(method, json.loads(settings), data)


@cache
def _table_of_today(data: str, seed: int, folder: Path | None) -> str | None:
    try:
        return table_digest(load(data, seed, folder))
    except FileNotFoundError:
        return None


def stale(row: dict[str, Any], folder: Path | None = None) -> tuple[str, ...]:
    """Parts that have changed since a row was made; ``("unknown",)`` for rows that do not tell.

    Stored sets count as they are if the ``folder`` that has them is not given.
    """
    if "code" not in row:
        return ("unknown",)
    today = _today(row["method"], json.dumps(row["settings"], sort_keys=True), row["data"])
    data = _table_of_today(row["data"], row["seed"], folder)
    now = today if data is None else today | {"data": data}
    return tuple(part for part, value in now.items() if row["code"].get(part) != value)
