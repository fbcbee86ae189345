"""The page: data, words, script and styles in one file of HTML that loads nothing and runs nothing but its own."""

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib import resources
from pathlib import PurePath
from string import Template
from typing import Any

import numpy as np

from .. import __version__
from .._checks import shown
from ..confidence.shares import Bootstrap
from ..estimator import ALIAS
from ..layout import layered
from . import words
from .advice import advice
from .again import again, obstacle
from .comparison import arrow, compared
from .sources import Edge, Source, of_model

__all__ = ["page", "report"]

# Pixels: of a box and of the row that it stands in, of a letter, and beside the label.
HEIGHT, ROW, LETTER, PADDING, GAP = 32.0, 38.0, 7.6, 22.0, 22.0
# Characters of a name in a box, and in tables.
LABEL, TEXT = 22, 120


def report(model: ALIAS, X: Any = None, bootstrap: Bootstrap | None = None) -> str:
    """A page about a fitted model, as HTML that needs no other file and no network.

    Parameters
    ----------
    model : fitted ALIAS
    X : array of shape (n, d), data frame, or Moments, optional
        The table of the fit, for the distributions of its columns.
    bootstrap : Bootstrap, optional
        Of the same columns; how sure the edges are.

    Returns
    -------
    str
        The page: ``pathlib.Path("report.html").write_text(page, encoding="utf-8")``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> X = np.column_stack([x, 2 * x + rng.standard_normal(100)])
    >>> report(ALIAS().fit(X), X).startswith("<!doctype html>")
    True
    """
    return page(of_model(model, X, bootstrap))


def page(source: Source, other: Source | None = None) -> str:
    """A page about a source and, if there is another, what they have in common.

    Shares of samples come from the source itself or else, for the same columns, from the other.
    """
    script, styles = _asset("script.js"), _asset("styles.css")
    title = _title(source)
    comparison = None if other is None else compared(source, other)
    allowed = f"script-src {_hash(script)}; style-src {_hash(styles)}"
    return Template(_asset("template.html")).substitute(
        policy=f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        styles=styles,
        script=script,
        data=_embedded(_content(source, other, comparison)),
        title=_html(title),
        over="Causal graph of" if source.title else "vec2dag",
        found=_html(words.found(source)),
        facts=_items(_facts(source)),
        notice=_notice(source),
        warnings=_warnings(source),
        lacking=_section("What this page lacks", _list(source.lacking)) if source.lacking else "",
        assumptions=_list(words.assumptions(source)),
        known=_known(source),
        removed=_removed(source),
        parameters=_table(_parameters(source)),
        versions=_table(_versions(source)),
        again=_again(source),
        comparison="" if comparison is None else comparison.html,
        compare_link='<li><a href="#compare">Compare</a></li>' if comparison is not None else "",
        version=_html(__version__),
    )


@cache
def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A hash by which a policy allows one inline script or style and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(content: Any) -> str:
    """JSON that cannot end the script element that it stands in, whatever the names in it are."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


# --- for the script ---------------------------------------------------------------------------------------------


def _content(source: Source, other: Source | None, comparison: Any) -> dict[str, Any]:
    """What the script draws; edges are in the order of ``np.argwhere(A)``."""
    labels = [_label(name) for name in source.nodes]
    widths = np.array([PADDING + _width(label) for label in labels])
    layout = layered(source.A, widths=widths, height=ROW, gap=GAP)
    edges = sorted(source.edges, key=lambda edge: (edge["source"], edge["target"]))
    shares = _shares(source) or (_shares(other, source.nodes) if other is not None else {})
    verdicts = {(v["source"], v["target"]): v for v in source.verdicts}
    nodes = [
        {"name": name, "text": shown(name, TEXT), "label": label, "w": float(w), "x": round(x, 1), "y": round(y, 1)}
        for name, label, w, (x, y) in zip(source.nodes, labels, widths, layout.positions.tolist(), strict=True)
    ]
    standardised = all(edge.get("standardised") is not None for edge in edges)
    return {
        "nodes": nodes,
        "edges": [
            _edge(edge, route.round(1).tolist(), verdicts, shares, comparison)
            for edge, route in zip(edges, layout.routes, strict=True)
        ],
        "size": [round(float(length), 1) for length in layout.size],
        "height": HEIGHT,
        "sampled": bool(shares),
        "consensus": source.consensus,
        "standardised": standardised,
        "coefficient": "coefficient" if source.linear else "slope",
        "tested": any(edge.get("p_value") is not None for edge in edges),
        "history": source.summary.get("history"),
        "columns": source.summary.get("columns"),
        "correlations": source.summary.get("correlations"),
        "other": None if other is None else comparison.names[1],
        "file": _file_name(source),
    }


def _edge(
    edge: Edge,
    route: list[Any],
    verdicts: Mapping[tuple[int, int], Edge],
    shares: Mapping[tuple[int, int], list[float]],
    comparison: Any,
) -> dict[str, Any]:
    ends = edge["source"], edge["target"]
    p_value = edge.get("p_value")
    return {
        "s": ends[0],
        "t": ends[1],
        "direction": edge["direction"],
        "coefficient": edge.get("coefficient"),
        "error": edge.get("error"),
        "standardised": edge.get("standardised"),
        "p": edge.get("p_value_given_graph") if p_value is None else p_value,
        "why": words.verdict(verdicts.get(ends)),
        "shares": shares.get(ends, [0.0, 0.0, 0.0, 1.0]) if shares else None,
        "beside": None if comparison is None else comparison.status.get(ends),
        "route": route,
    }


def _shares(source: Source, nodes: tuple[str, ...] | None = None) -> dict[tuple[int, int], list[float]]:
    """Shares of samples with this direction, the reverse, a free one and no edge, by edge, either way round.

    Ends are positions in ``nodes``; empty if these are not the nodes of the source.
    """
    nodes = source.nodes if nodes is None else nodes
    if set(nodes) != set(source.nodes):
        return {}
    place = {name: i for i, name in enumerate(nodes)}
    found = {}
    for row in source.pairs:
        i, j = (place[source.nodes[row[end]]] for end in ("source", "target"))
        forward, backward, free, absent = (float(row.get(k) or 0.0) for k in ("forward", "backward", "free", "absent"))
        found[i, j], found[j, i] = [forward, backward, free, absent], [backward, forward, free, absent]
    return found


def _label(name: str) -> str:
    """A name that fits into a box: long ones lose their middle."""
    safe = shown(name, 10**6)
    keep = LABEL - 1
    return safe if len(safe) <= LABEL else f"{safe[: keep - keep // 3]}…{safe[-(keep // 3) :]}"


def _width(text: str) -> float:
    """Of a text, roughly; capitals are wider, and letters of some scripts twice as wide."""
    wide = {"W": 1.8, "F": 1.8}
    return LETTER * sum(
        wide.get(unicodedata.east_asian_width(c), 1.7 if c in "MWmw@%—…" else 1.25 if c.isupper() else 1.0)
        for c in text
    )


# --- static parts -----------------------------------------------------------------------------------------------


def _html(text: str, most: int = 4000, *, lines: bool = False) -> str:
    """Text that is only text in HTML; control characters and changes of direction are escaped as well."""
    parts = text.split("\n") if lines else [text]
    return "\n".join(escape(shown(part, most)) for part in parts)


def _items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{_html(text)}</li>" for text in texts)


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{_items(texts)}</ul>"


def _section(heading: str, content: str) -> str:
    return f'<section class="block"><h3>{_html(heading)}</h3>{content}</section>'


def _table(rows: Iterable[tuple[str, Any]]) -> str:
    cells = "".join(f'<tr><th scope="row">{_html(name)}</th><td>{_html(_value(v), 500)}</td></tr>' for name, v in rows)
    return f"<table class=pairs><tbody>{cells}</tbody></table>" if cells else "<p>This folder does not say.</p>"


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def _title(source: Source) -> str:
    name = PurePath(source.title).name or source.title or source.label
    return shown(name, 80) if name else "Causal graph"


def _file_name(source: Source) -> str:
    """For downloads: letters and digits that every system takes."""
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in PurePath(source.title).stem)
    return f"{stem.strip('-')[:60] or 'graph'}-edges.csv"


def _facts(source: Source) -> Iterable[str]:
    rows = source.run.get("rows")
    if isinstance(rows, int):
        yield words.counted(rows, "row")
    yield words.counted(len(source.nodes), "column")
    samples = source.run.get("samples")
    if source.consensus and isinstance(samples, int):
        yield f"{words.counted(samples, 'sample')} of the rows"
    criterion = source.parameters.get("criterion")
    if isinstance(criterion, str):
        yield f"criterion {shown(criterion)}"
    yield f"{source.made.day} {source.made:%B %Y}"


def _notice(source: Source) -> str:
    notes = source.run.get("warnings")
    if not isinstance(notes, list) or not notes:
        return ""
    return f'<p class="notice"><a href="#warnings">{_html(words.counted(len(notes), "warning"))} about this run</a></p>'


def _warnings(source: Source) -> str:
    notes = source.run.get("warnings")
    if not isinstance(notes, list) or not notes:
        told = "There were none." if isinstance(notes, list) else "This folder does not say whether there were any."
        return f"<p>{told}</p>"
    items = []
    for note in map(str, notes):
        todo = advice(note)
        what = f'<p class="todo"><strong>What to do.</strong> {_html(todo)}</p>' if todo else ""
        items.append(f"<li><p>{_html(note)}</p>{what}</li>")
    return f'<ul class="warnings">{"".join(items)}</ul>'


def _removed(source: Source) -> str:
    removed = [v for v in source.verdicts if not v.get("kept")]
    if not removed:
        return ""
    name = [shown(node, TEXT) for node in source.nodes]
    lines = [
        f"<li>{arrow(name[v['source']], '→', name[v['target']])}, {_html(words.verdict(v))}</li>" for v in removed[:200]
    ]
    if len(removed) > len(lines):
        lines.append(f"<li>and {len(removed) - len(lines):,} more, which run.json has</li>")
    heading = f"{words.counted(len(removed), 'edge')} removed by pruning".capitalize()
    return f"<details><summary>{heading}</summary><ul>{''.join(lines)}</ul></details>"


def _known(source: Source) -> str:
    """What was known; names stand alone, so that those written from right to left turn no arrow around."""
    if not (lines := words.known(source)):
        return ""
    parts = (re.split("( -> |; |, |: )", line) for line in lines)
    items = ("".join(f"<bdi>{_html(p)}</bdi>" if k % 2 == 0 else _html(p) for k, p in enumerate(ps)) for ps in parts)
    return _section("What was known beforehand", f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")


def _again(source: Source) -> str:
    if not (code := again(source)):
        return f"<p>{_html(obstacle(source))}</p>"
    return f'<pre tabindex="0"><code>{_html(code, 20_000, lines=True)}</code></pre>'


def _parameters(source: Source) -> Iterable[tuple[str, Any]]:
    yield from ((name, value) for name, value in source.parameters.items() if name != "knowledge")
    for name in (
        "seed",
        "score",
        "algorithm",
        "init",
        "steps",
        "stopped",
        "certificate",
        "seconds",
        "method",
        "samples",
    ):
        if source.run.get(name) is not None:
            yield {"algorithm": "algorithm used", "init": "start used"}.get(name, name), source.run[name]


def _versions(source: Source) -> Iterable[tuple[str, Any]]:
    versions = source.run.get("versions")
    if isinstance(versions, Mapping):
        yield from versions.items()
    elif "vec2dag" in source.run:
        yield "vec2dag", source.run["vec2dag"]
