"""Summaries of records, and the text that they become in a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Record = dict[str, Any]

# A difference of normalised scores below this is rounding.
RESOLUTION = 1e-9


def gain(records: Sequence[Record], over: str = "score_truth") -> list[float]:
    """Differences of scores; nothing for runs that failed."""
    return [r["score"] - r[over] for r in records if r.get("score") is not None]


def median(records: Sequence[Record], key: str = "seconds") -> float:
    """Median over the records that have the key."""
    values = [r[key] for r in records if r.get(key) is not None]
    return float(np.median(values)) if values else float("nan")


def mean(records: Sequence[Record], key: str) -> float:
    """Mean over the records that have the key."""
    values = [r[key] for r in records if r.get(key) is not None]
    return float(np.mean(values)) if values else float("nan")


def yes(met: bool) -> str:
    """A verdict on a target."""
    return "yes" if met else "NO"


def seconds_cell(seconds: float) -> str:
    """Three digits."""
    return "-" if np.isnan(seconds) else f"{seconds:.3g}"


def gain_cell(gains: Sequence[float]) -> str:
    """The smallest difference of scores, and how many are below zero."""
    if not gains:
        return "-"
    below = sum(g < -RESOLUTION for g in gains)
    worst = min(gains)
    return f"{0.0 if abs(worst) < RESOLUTION else worst:+.2g}" + (f" ({below} of {len(gains)} below)" if below else "")


def number(value: float, digits: int = 1) -> str:
    """A number, or a dash where there is none."""
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def stopped(records: Sequence[Record]) -> str:
    """The sign of a lower bound, if a run reached the limit of time."""
    return "> " if any(r.get("problem", "").startswith("over") for r in records) else ""


def time_cell(records: Sequence[Record]) -> str:
    """Median seconds; a run that was stopped is a lower bound."""
    return stopped(records) + seconds_cell(median(records))


def ratio_cell(theirs: Sequence[Record]) -> str:
    """Median of their seconds over ours on the same set."""
    ratios = [r["seconds"] / r["our_seconds"] for r in theirs if r.get("seconds") is not None]
    return stopped(theirs) + f"{np.median(ratios):.3g}" if ratios else "-"


def problems_cell(records: Sequence[Record]) -> str:
    """What went wrong, each kind once with its count."""
    kinds = [r["problem"] for r in records if r.get("problem")]
    return "; ".join(f"{kind} ({kinds.count(kind)} of {len(records)})" for kind in dict.fromkeys(kinds)) or "-"
