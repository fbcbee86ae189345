"""What a page says in sentences: what was found, what was assumed, and what was known."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._checks import shown
from .again import settings, stated
from .sources import Edge, Source

__all__ = ["assumptions", "counted", "found", "known", "verdict"]


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
    run, equal, equivalent = source.run, *_criterion(source)
    sentences = [
        "Nothing that is not in the table causes two of its columns (no hidden common causes).",
        _rows(source),
        *_score(source, equal),
    ]
    if equivalent and not source.consensus:
        sentences.append(
            "Graphs with the same independences fit equally well, so that some directions stay open (dashed). Those "
            "that are drawn with an arrow hold if the independences in the data come from the graph and not by chance."
        )
    if run.get("standardized") is True:
        sentences.append("Columns were divided by their standard deviations first; coefficients are in those units.")
    sentences += [sentence for sentence in (_pruned(source, equal), _search(source)) if sentence]
    if source.consensus and isinstance(run.get("threshold"), float):
        sentences.append(
            f"The graph has the pairs that are connected in at least {run['threshold']:.0%} of {run.get('samples')} "
            "samples of the rows. An edge is dashed where fewer samples than that have its direction."
        )
    return sentences


def _rows(source: Source) -> str:
    nodes = set(source.nodes)
    past = [re.fullmatch(r"(.+)\[t-[0-9]+\]", name, re.DOTALL) for name in source.nodes]
    if any(match and match[1] in nodes for match in past):
        return (
            "Within one time no column causes itself by way of others (no feedback). What lies further back than the "
            "columns of the past has no effect of its own, and causes are the same at all times."
        )
    return "No column causes itself by way of others (no feedback), and rows are independent of each other and alike."


def _score(source: Source, equal: bool | None) -> list[str]:
    """What the score takes for granted; ``equal`` is whether variances are, None if nobody knows."""
    if "criterion" not in source.parameters and equal is None:
        return ["What the score assumes is not recorded here."]
    if equal is None:
        return ["What the score assumes of the columns, only whoever gave it knows."]
    levels = source.run.get("levels")
    categories = len(levels) if isinstance(levels, dict) else 0
    if categories == len(source.nodes):
        return [
            "Every column is a category whose probabilities depend on the levels of its direct causes, in any way: "
            "every combination of these has probabilities of its own."
        ]
    if categories:
        return [
            "Categories stand for indicators of their levels, and all columns of that wider table are taken to be "
            "Gaussian together: numbers are weighted sums of their direct causes and of noise, and a category shifts "
            "them."
        ]
    if source.linear:
        sentences = ["Every column is a weighted sum of its direct causes and of noise."]
    else:
        regression = shown(str(source.parameters.get("regression", "the regression that was given")), 120)
        how = "a smooth function (Gaussian process)" if regression == "gp" else f"a function ({regression})"
        sentences = [f"Every column is {how} of its direct causes, plus noise that does not depend on them."]
    if not equal:
        return [*sentences, "The noise of every column is Gaussian with a variance of its own; units do not matter."]
    end = " once the columns are divided by their standard deviations" if _standardized(source) else ""
    change = "" if end else ": they change with the units of the columns"
    noise = f"The noises of all columns have the same variance{end}. From this alone follow the directions{change}."
    return [*sentences, noise]


def _criterion(source: Source) -> tuple[bool | None, bool]:
    """Whether variances are taken to be equal (None: unknown), and whether directions may be free."""
    told = source.summary.get("model")
    if told:
        return told.get("equal_variances"), bool(told.get("score_equivalent"))
    name = source.parameters.get("criterion")
    criterion = settings("criterion", source.run.get("criterion", "ebic-nv") if name == "auto" else name)
    if criterion is None:
        return None, any(edge["direction"] == "free" for edge in source.edges)
    return criterion.equal_variances, criterion.score_equivalent and source.linear


def _standardized(source: Source) -> bool:
    return True in (source.run.get("standardized"), source.parameters.get("standardize"))


def _pruned(source: Source, equal: bool | None) -> str:
    """What was removed after the search, and why; ``equal`` is whether variances are, None if nobody knows."""
    if verdicts := source.verdicts:
        first, gone = verdicts[0], sum(not v.get("kept") for v in verdicts)
        rule = _rule(source, str(first.get("statistic")), first.get("limit"))
        return f"After the search an edge stayed if {rule}: {len(verdicts) - gone:,} did, {gone:,} did not."
    if "prune" not in source.parameters:
        return ""
    prune = source.parameters["prune"]
    if prune == "auto":
        # as the estimator decides
        prune = None if equal is None else "cam" if not source.linear else "linear" if equal else None
    if prune is None:
        price = "" if equal is None else ": the score itself has a price for each"
        return f"Edges were not tested afterwards{price}."
    pruner = settings("prune", prune)
    if pruner is None:
        return f"After the search edges were removed as whoever ran it decided ({shown(str(prune), 120)})."
    limit = getattr(pruner, "threshold", getattr(pruner, "alpha", None))
    size = "standardised coefficient" if getattr(pruner, "standardised", False) else "coefficient"
    statistic = {"linear": size, "bic": "BIC gain"}.get(pruner.name, "p-value")
    rule = _rule(source, statistic, limit)
    if source.consensus:
        return f"In every sample, after the search, an edge stayed if {rule}."
    return f"After the search an edge would have stayed if {rule}: none was tested."


def _rule(source: Source, statistic: str, limit: Any) -> str:
    least = _number(limit)
    units = "standard deviations of both columns" if _standardized(source) else "the units of the columns"
    rules = {
        "coefficient": f"its coefficient is at least {least} in size, in {units}",
        "standardised coefficient": f"its standardised coefficient is at least {least} in size",
        "p-value": f"the p-value of its test is below {least}",
        "BIC gain": "it improves the linear BIC",
    }
    return rules.get(statistic, "it passed the test")


def _search(source: Source) -> str:
    run = source.run
    agreeing = " that agrees with what is known" if known(source) else ""
    before = run.get("edges_before_pruning", run.get("edges")) != run.get("edges")
    if run.get("exact") is True:
        then = " had before pruning" if before else ""
        return f"No graph{agreeing} has a better score than this one{then}: all were compared."
    if run.get("converged") is False:
        return "The search was stopped before its own end: a longer one may find a better graph."
    if run.get("certified") is True:
        start = "Before pruning, no" if before else "No"
        return (
            f"{start} single change of an edge or move of a column in the order{agreeing} improves the score. "
            "Of so many graphs there may still be a better one."
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
    told = source.parameters.get("knowledge")
    said = stated(told)
    if said is None:
        return [shown(str(told), 2000)]
    lines = []
    for what, value in said.items():
        text = "; ".join(map(_item, value)) if isinstance(value, list) else _item(value)
        lines.append(f"{what.replace('_', ' ')}: {shown(text, 2000)}")
    return lines


def _item(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
