"""Pruning as a fit asks for it: what ``prune`` stands for, and what it leaves of a graph."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import brief, quoted
from .._settings import Settings
from ..columns import Columns, rows_of
from ..graph import as_adjacency
from ..scores import GraphScore, Regimes
from . import CAM, PRUNERS, Threshold, Verdict, kept

__all__ = ["as_pruner", "pruned", "pruned_by_regime"]


def as_pruner(prune: Any, score: GraphScore, columns: Columns) -> Any:
    """What ``prune`` stands for after a search for this score: settings, a callable, or None."""
    if isinstance(prune, Settings):
        prune.check()
    if isinstance(prune, type):
        raise ValueError(f"prune={brief(prune)} is a class: settings are made by calling it")
    automatic = isinstance(prune, str) and prune == "auto"
    if columns.categorical.any() and not (automatic or prune is None or callable(prune)):
        raise ValueError(
            f"prune={brief(prune)} is for numbers, and {quoted(columns.by_name)} are categories: "
            "prune=None, or 'auto', leaves the graph as the score has it"
        )
    if prune is None or hasattr(prune, "explain") or callable(prune):
        return prune
    if isinstance(prune, str) and prune in PRUNERS:
        return PRUNERS[prune]()
    if not automatic:
        raise ValueError(
            f"prune={brief(prune)}: allowed are 'auto', {', '.join(map(repr, PRUNERS))}, None, "
            "settings such as prune.CAM(alpha=0.01), and callables (X, A) -> A"
        )
    if score.linear is None:
        return None
    if not score.linear:
        return CAM()
    return Threshold() if score.equal_variances else None


def pruned(
    pruner: Any,
    data: Any,
    linear: Any,
    A: NDArray[np.uint8],
    required: NDArray[np.bool_],
    names: Sequence[str],
    n_jobs: int | None = None,
) -> tuple[NDArray[np.uint8], list[Verdict]]:
    """The graph after pruning, and the verdicts on its edges.

    Parameters
    ----------
    pruner : settings or callable
        As :func:`as_pruner` returns them.
    data : array of shape (n, d), Coded or Moments
    linear : LinearOnTable
        Of the same table, for settings that do not need rows.
    A : array of shape (d, d)
    required : array of shape (d, d), bool
        Edges that stay whatever the pruner says.
    names : sequence of str
        Of the columns, for error messages.
    n_jobs : int, optional
    """
    verdicts: list[Verdict] = []
    if hasattr(pruner, "explain"):
        rows = getattr(pruner, "needs_rows", True)
        more = {"required": required} if getattr(pruner, "takes_required", False) else {}
        verdicts = pruner.explain(data if rows else linear, A, n_jobs=n_jobs, **more)
        verdicts = [replace(v, kept=True, reason="required") if required[v.source, v.target] else v for v in verdicts]
        left = kept(A, verdicts)
    else:
        left = as_adjacency(pruner(rows_of(data), A.copy()), "the result of prune")
        if left.shape == A.shape:
            left = left | (A & required)
    if left.shape != A.shape:
        raise ValueError(f"prune must return a graph of shape {A.shape}, got {left.shape}")
    if (left > A).any():
        i, j = np.argwhere(left > A)[0]
        raise ValueError(f"prune may only remove edges; it has added {quoted([names[i]])} -> {quoted([names[j]])}")
    return left, verdicts


def pruned_by_regime(
    pruner: Any,
    data: Any,
    linear: Regimes,
    A: NDArray[np.uint8],
    required: NDArray[np.bool_],
    names: Sequence[str],
    n_jobs: int | None = None,
) -> tuple[NDArray[np.uint8], list[Verdict]]:
    """The same for the edges into the nodes of one regime after the other, on its rows and columns."""
    left, verdicts = A.copy(), []
    for nodes, rows, part, columns, _ in linear.regimes:
        own, inside = np.zeros_like(A), np.ix_(columns, columns)
        own[:, nodes] = A[:, nodes]
        inner = [names[k] for k in columns]
        stays, found = pruned(pruner, data[rows][:, columns], part, own[inside], required[inside], inner, n_jobs)
        own[inside] -= stays
        left -= own
        verdicts += [replace(v, source=int(columns[v.source]), target=int(columns[v.target])) for v in found]
    return left, sorted(verdicts, key=lambda v: (v.source, v.target))
