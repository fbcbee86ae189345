"""What a page says in sentences: what was found, what was assumed, and how to make it again."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._checks import shown
from ..estimator import ALIAS
from ..scores import CRITERIA, as_criterion
from .sources import Edge, Source

__all__ = ["again", "assumptions", "counted", "found", "known", "verdict"]

# Parameters that change how long a run takes or where it keeps things, but not its result.
WITHOUT_EFFECT = {"verbose", "n_jobs", "checkpoint", "knowledge"}


def counted(number: int, what: str) -> str:
    """``1 edge``, ``2 edges``, ``no edges``."""
    return f"{f'{number:,}' if number else 'no'} {what}{'s' * (number != 1)}"


def found(source: Source) -> str:
    """What was found, in one sentence."""
    edges = source.edges
    where = f"among {counted(len(source.nodes), 'column')}"
    if not edges:
        return f"No edges were found {where}."
    kinds = {kind: sum(edge["direction"] == kind for edge in edges) for kind in ("oriented", "known", "free")}
    whose = "most samples" if source.consensus else "the score"
    told = {"oriented": f"decided by {whose}", "known": "known beforehand", "free": "open"}
    parts = [f"{told[kind]} for {number:,}" for kind, number in kinds.items() if number]
    if len(parts) == 1:
        only = next(kind for kind, number in kinds.items() if number)
        directions = f"{'all directions are' if len(edges) > 1 else 'its direction is'} {told[only]}"
    else:
        directions = f"the direction is {', '.join(parts[:-1])} and {parts[-1]}"
    return f"{counted(len(edges), 'edge').capitalize()} {where}: {directions}."


def assumptions(source: Source) -> list[str]:
    """What must hold for the graph to mean what it seems to, one sentence or two each."""
    run, parameters = source.run, source.parameters
    equal, equivalent = _criterion(source)
    sentences = [
        "Nothing that is not in the table causes two of its columns (no hidden common causes).",
        "No column causes itself by way of others (no feedback), and rows are independent of each other and alike.",
    ]
    if source.linear:
        sentences.append("Every column is a weighted sum of its direct causes and of noise.")
    else:
        regression = shown(str(parameters.get("regression", "the regression that was given")), 120)
        how = "a smooth function (Gaussian process)" if regression == "gp" else f"a function ({regression})"
        sentences.append(f"Every column is {how} of its direct causes, plus noise that does not depend on them.")
    if equal:
        sentences.append(
            "The noises of all columns have the same variance. From this alone follow the directions: "
            "they change with the units of the columns."
        )
    elif equal is False:
        sentences.append("The noise of every column is Gaussian with a variance of its own; units do not matter.")
    else:
        sentences.append("What else the score assumes, only whoever gave it knows.")
    if equivalent:
        sentences.append(
            "Graphs with the same independences fit equally well, so that some directions stay open (dashed). Those "
            "that are drawn with an arrow hold if the independences in the data come from the graph and not by chance."
        )
    if run.get("standardized") is True:
        sentences.append("Columns were divided by their standard deviations first; coefficients are in those units.")
    sentences.append(_pruned(source))
    if search := _search(run):
        sentences.append(search)
    if source.consensus and isinstance(run.get("threshold"), float):
        sentences.append(
            f"The graph has the pairs that are connected in at least {run['threshold']:.0%} of {run.get('samples')} "
            "samples of the rows. An edge is dashed where fewer samples than that have its direction."
        )
    return sentences


def _criterion(source: Source) -> tuple[bool | None, bool]:
    """Whether variances are taken to be equal (None: unknown), and whether directions may be free."""
    told = source.summary.get("model", {})
    free = any(edge["direction"] == "free" for edge in source.edges)
    if told:
        return told.get("equal_variances"), bool(told.get("score_equivalent"))
    name = source.parameters.get("criterion")
    if name not in CRITERIA:
        return None, free
    criterion = as_criterion(name)
    return criterion.equal_variances, criterion.score_equivalent and source.linear


def _pruned(source: Source) -> str:
    verdicts = source.verdicts
    if not verdicts:
        return "Edges were not tested afterwards: the score itself has a price for each."
    first = verdicts[0]
    limit = f"{first.get('limit') or 0:g}"
    rules = {
        "coefficient": f"its coefficient is at least {limit} in size, in the units of the columns",
        "standardised coefficient": f"its standardised coefficient is at least {limit} in size",
        "p-value": f"the p-value of its test is below {limit}",
        "BIC gain": "it improves the linear BIC",
    }
    rule = rules.get(str(first.get("statistic")), "it passed the test")
    gone = sum(not v.get("kept") for v in verdicts)
    return f"After the search an edge stayed if {rule}: {len(verdicts) - gone:,} did, {gone:,} did not."


def _search(run: Mapping[str, Any]) -> str:
    if run.get("exact") is True:
        return "No other graph has a better score: all of them were compared."
    if run.get("converged") is False:
        return "The search was stopped before its own end: a longer one may find a better graph."
    if run.get("certified") is True:
        return (
            "No single change of an edge, and no move of a column in the order, improves the score. Of so many graphs "
            "there may still be a better one."
        )
    return ""


def verdict(edge: Edge | None) -> str:
    """Why pruning kept or removed an edge."""
    if edge is None:
        return ""
    stays = {"p-value": "below", "BIC gain": "above"}.get(str(edge.get("statistic")), "from")
    value, limit = edge.get("value"), edge.get("limit")
    numbers = f"{edge.get('statistic')} {_number(value)}, edges stay {stays} {_number(limit)}"
    why = f" ({shown(str(edge['reason']), 120)})" if edge.get("reason") else ""
    return f"{'kept' if edge.get('kept') else 'removed'}: {numbers}{why}"


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else "?"


def known(source: Source) -> list[str]:
    """What was known beforehand, a line each."""
    said = source.parameters.get("knowledge")
    if not isinstance(said, Mapping):
        return [] if said in (None, "Knowledge()") else [shown(str(said), 2000)]
    lines = []
    for what, value in said.items():
        text = "; ".join(map(_item, value)) if isinstance(value, list) else _item(value)
        lines.append(f"{what.replace('_', ' ')}: {shown(text, 2000)}")
    return lines


def _item(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def again(source: Source) -> str:
    """The command, or else the code, that makes the same graph again."""
    command = source.run.get("command")
    if isinstance(command, str):
        return command
    parameters = source.parameters
    if not parameters:
        return ""
    defaults = inspect.signature(ALIAS).parameters
    given = [
        f"{name}={_code(value)}"
        for name, value in parameters.items()
        if name in defaults and name not in WITHOUT_EFFECT and value != defaults[name].default
    ]
    if said := parameters.get("knowledge"):
        given.append(f"knowledge={_code(said)}")
    fit = f"ALIAS({', '.join(given)})"
    if not source.consensus:
        return f"from vec2dag import ALIAS\n\nmodel = {fit}.fit(X)"
    samples, method, seed = (source.run.get(key) for key in ("wanted", "method", "seed"))
    call = f"bootstrap({fit}, X, {samples}, {method!r}, random_state={seed!r})"
    return f"from vec2dag import ALIAS, bootstrap\n\nresult = {call}"


def _code(value: Any) -> str:
    """A parameter of run.json as code: objects are there as the text that makes them."""
    return value if isinstance(value, str) and re.match(r"[\w.]+\(", value) else repr(value)
