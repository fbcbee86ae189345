"""Tables as text, RESULTS.md, and a page for every table under docs/results."""

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from . import figures
from .numbers import DIGITS, HEADINGS, formatted, grid, shown
from .store import Row, Store, problem
from .summary import THIN, Line, Number, lines, paper_name, verdicts
from .tables import TABLES, Run, Table

PRUNED = {
    "none": "no pruning",
    "linear": "coefficients below 0.3 pruned",
    "cam": "CAM pruning",
    "ci": "pruning by conditional independence",
}
# Cells where the mean SHD is above the paper's by more than its standard error, and why; the evidence is in the columns
# beside it, which are computed.
REASONS: dict[tuple[str, str, str], str] = {
    ("dense", "dense-er8", "linear"): "the score, not the search; these are not the paper's datasets",
    ("constraint", "dense-er8", "linear"): "the datasets of the table `dense`",
    ("samples-er8", "samples-er8-d20-n100", "linear"): "the score, not the search: with so few rows other graphs "
    "score higher than the true one",
    (
        "samples-er8",
        "samples-er8-d50-n100",
        "linear",
    ): "the search: with 100 rows for 400 edges it ends in other optima with other seeds",
    ("samples-sf8", "samples-sf8-d30-n500", "linear"): "the score, not the search",
    ("mlp", "mlp-er4", "none"): "the score, not the search; these are not the paper's datasets",
    ("mlp", "mlp-er4", "cam"): "the graphs of the row above, pruned",
    ("standardised", "standardised-er2", "linear"): "the threshold removes true edges of standardised columns",
}


def _row(line: Line, table: Table) -> list[str]:
    cells = []
    for metric in table.metrics:
        digits = DIGITS.get(metric, 2)
        paper = line.paper.get(metric)
        cells.append(formatted(line.here.get(metric), digits) + (f" [{formatted(paper, digits)}]" if paper else ""))
    thin = "\\*" if 0 < line.sets < min(THIN, table.seeds) else ""
    remarks = [line.remark.replace("|", "/").replace("\n", " ")] if line.remark else []
    if line.stale:
        remarks.append("made by earlier code" if line.stale == line.sets else f"{line.stale} made by earlier code")
    return [
        line.cell,
        line.name,
        *cells,
        shown(line, "seconds"),
        shown(line, "megabytes"),
        f"{line.sets}{thin}",
        "; ".join(remarks),
    ]


def without_rows(table: Table, found: list[Line]) -> list[str]:
    """Methods of a table that were tried on none of its data, in the order of the table."""
    names = dict.fromkeys([*(paper_name(run) for run in table.runs), *(line.name for line in found)])
    tried = {line.name for line in found if line.remark not in ("not run", "quoted")}
    return [name for name in names if name not in tried and name != "alias"]


def _collapsed(table: Table, name: str, found: list[Line], store: Store) -> str:
    """What there is to say about a method without rows: what the paper has, and what stopped it elsewhere."""
    metric = next((m for m in table.metrics if any(m in line.paper for line in found if line.name == name)), None)
    parts = []
    if metric is not None:
        quoted = [line for line in found if line.name == name and metric in line.paper]
        several = len({line.pruning for line in quoted}) > 1
        values = (
            f"{line.cell}{f' ({PRUNED[line.pruning]})' if several else ''} "
            + formatted(line.paper[metric], DIGITS.get(metric, 2))
            for line in quoted
        )
        parts.append(f"in the paper, {HEADINGS[metric]}: {', '.join(values)}")
    run = next((run for run in table.runs if run.name == name), None)
    stop = run and _stopped_elsewhere(run, store)
    if stop:
        parts.append(f"on {stop['data']} {problem(stop)}".replace("|", "/"))
    return "; ".join(parts)


def _stopped_elsewhere(run: Run, store: Store) -> Row | None:
    """A row of the same run on other data that its limit stopped, the one with the most progress to tell."""
    rows = [row for row in store.of(run.method, run.settings) if row["status"] == "timeout"]
    return max(rows, key=lambda row: (bool(row["progress"]), row["limit"]), default=None)


def text(table: Table, store: Store, level: int = 3) -> str:
    """Title, the lines of a table, one grid for every pruning, and what a reader has to know."""
    parts = [f"{'#' * level} {table.title} ({table.where}; `{table.name}`)"]
    header = ["data", "method", *(HEADINGS[m] for m in table.metrics), "seconds", "MB", "datasets", "remark"]
    found = list(lines(table, store))
    absent = without_rows(table, found)
    kept = [line for line in found if line.name not in absent]
    for pruning in table.prunings:
        if len(table.prunings) > 1:
            parts.append(f"{PRUNED[pruning][0].upper()}{PRUNED[pruning][1:]}:")
        rows = [_row(line, table) for line in kept if line.pruning == pruning]
        parts.append(grid(header, rows) if rows else "No runs yet.")
    if any(0 < line.sets < min(THIN, table.seeds) for line in kept):
        parts.append(f"\\* fewer than {THIN} datasets: an impression, not a result.")
    if absent:
        told = {name: _collapsed(table, name, found, store) for name in absent}
        plain = [name for name in absent if not told[name]]
        entries = [f"- {name}: {words}" for name, words in told.items() if words]
        parts.append("Not run on these data:")
        parts.append("\n".join([*entries, *([f"- {', '.join(plain)}"] if plain else [])]))
    if table.note:
        parts.append(table.note)
    return "\n\n".join(parts)


# --- what holds, where the paper is beaten, where not --------------------------------------------------------------


def _evidence(table: Table, line: Line, metric: str, store: Store) -> list[str]:
    """Sets on which the graph found scores at least as high as the truth; the mean over more sets; without pruning."""
    run = next(run for run in table.runs if run.name == "vec2dag")
    rows = [row for row in store.series(line.cell, run.method, run.settings) if row["status"] == "ok"]
    usual = [row for row in rows if row["seed"] < table.seeds]
    known = [row["reaches_truth"] for row in usual if "reaches_truth" in row]
    scores = f"{sum(known)} of {len(known)}" if known else "-"

    def mean(of: list[Row], pruning: str) -> Number:
        return Number.of([row["metrics"][pruning][metric] for row in of])

    more = f"{formatted(mean(rows, line.pruning), 1)} ({len(rows)})" if len(rows) > len(usual) else "-"
    bare = formatted(mean(usual, "none"), 1) if line.pruning != "none" else "-"
    return [scores, more, bare]


def _missed(store: Store) -> str:
    rows = [
        [
            f"[{table.name}](docs/results/{table.name}.md)",
            line.cell,
            PRUNED[line.pruning],
            formatted(line.here[metric], 1),
            formatted(line.paper[metric], 1),
            *_evidence(table, line, metric, store),
            REASONS.get((table.name, line.cell, line.pruning), ""),
        ]
        for table, line, metric, met in verdicts(store)
        if not met
    ]
    header = ["table", "data", "pruning", "vec2dag", "ALIAS, paper", "score", "more datasets", "not pruned", "why"]
    return grid(header, rows) if rows else ""


def is_below(line: Line, metric: str) -> bool:
    """Whether a mean is below the published one by more than both standard errors together."""
    here, paper = line.here[metric], line.paper[metric]
    return here.mean + (0.0 if math.isnan(here.se) else here.se) < paper.mean - (
        0.0 if math.isnan(paper.se) else paper.se
    )


def _beaten(store: Store) -> str:
    rows, judged = [], list(verdicts(store))
    for table in TABLES.values():
        found = [(line, metric, met) for of, line, metric, met in judged if of.name == table.name]
        if found:
            below = [line.cell for line, metric, _ in found if is_below(line, metric)]
            rows.append(
                [
                    f"[{table.name}](docs/results/{table.name}.md)",
                    str(len(found)),
                    str(sum(met for *_, met in found)),
                    str(len(below)),
                ]
            )
    return grid(["table", "cells", "at most the paper's", "clearly below"], rows)


def contests(store: Store) -> Iterator[tuple[Table, str, str, list[tuple[str, float]]]]:
    """Table, data, pruning and mean SHDs, over the sets that all have, of vec2dag and others on three sets or more."""
    seen = set()
    for table in TABLES.values():
        if "shd" not in table.metrics or table.slow:
            continue
        found = [line for line in lines(table, store) if "shd" in line.here and line.sets >= THIN]
        for pruning in table.prunings:
            for cell in table.cells:
                here = [line for line in found if (line.cell, line.pruning) == (cell, pruning)]
                common = set.intersection(*(set(line.shd) for line in here)) if here else set()
                if len(common) < THIN:
                    continue
                means = [(line.name, fmean(line.shd[seed] for seed in common)) for line in here]
                same = (cell, pruning, tuple(means))
                if "vec2dag" in dict(means) and len(means) > 1 and same not in seen:
                    seen.add(same)
                    yield table, cell, pruning, means


def _against_others(store: Store) -> str:
    found = list(contests(store))
    won, lost = [], []
    for table, cell, pruning, means in found:
        best = min(value for _, value in means)
        ours = dict(means)["vec2dag"]
        (won if ours <= best + 1e-9 else lost).append((table, cell, pruning, ours, best, means))
    others = {name for *_, means in found for name, _ in means} - {"vec2dag"}
    parts = [
        f"In {len(won)} of {len(found)} cells in which other methods ({', '.join(sorted(others))}) were run on at "
        f"least {THIN} datasets too, no mean SHD over the datasets of all is below that of vec2dag."
    ]
    if lost:
        rows = []
        for table, cell, pruning, ours, best, means in lost:
            names = ", ".join(name for name, value in means if value <= best + 1e-9)
            link = f"[{table.name}](docs/results/{table.name}.md)"
            rows.append([link, cell, PRUNED[pruning], f"{ours:.1f}", f"{best:.1f}", names])
        parts += ["The others:", grid(["table", "data", "pruning", "vec2dag", "lowest", "of"], rows)]
    return "\n\n".join(parts)


def _trust(store: Store) -> str:
    """How many rows there are, thin, stale, stopped and absent."""
    shown_lines = {
        (line.cell, line.name, line.pruning): (table, line) for table in TABLES.values() for line in lines(table, store)
    }
    ran = [(table, line) for table, line in shown_lines.values() if line.sets]
    own = [line for _, line in ran if line.name == "vec2dag"]
    thin = sum(line.sets < min(THIN, table.seeds) for table, line in ran)
    stopped = sum(not line.sets and line.remark not in ("not run", "quoted") for _, line in shown_lines.values())
    absent = sum(line.remark in ("not run", "quoted") for _, line in shown_lines.values())
    return (
        f"{len(store.rows):,} runs are behind {len(ran)} different lines of the tables; {thin} lines have fewer than "
        f"{THIN} datasets and are marked. {stopped} more were tried and stopped by a limit or an error, {absent} are "
        f"in the paper and were not run. {sum(not line.stale for line in own)} of {len(own)} lines of vec2dag, and "
        f"{sum(not line.stale for _, line in ran)} of all, were made by the present code; the others say so."
    )


INTRODUCTION = """# Results

Every table and figure of "Reinforcement Learning for Causal Discovery without Acyclicity Constraints" (TMLR 2025), made
again, in one page; [docs/results](docs/results/index.md) has every table with its numbers. `python -m experiments run
all` makes the runs, `python -m experiments report` writes these pages from the rows in `experiments/results`
([docs/experiments.md](docs/experiments.md)). SHD, the structural Hamming distance, counts the edges to add, remove or
turn until the graph found is the true one: 0 is perfect. Numbers are means ± standard errors over datasets."""

NOTES = """The simulated datasets are drawn anew with the paper's recipes (`vec2dag.simulate.preset`), so they are not
the paper's own (and have k d edges on average, where the generator that the paper used draws k (d - 1)); the
Gaussian-process and post-nonlinear datasets are the ones it used. Every method sees the table and nothing else; graphs
are pruned alike for all and compared with the truth outside the method's process. Settings are the paper's where it
states them; [docs/comparison.md](docs/comparison.md) says what each method is and which implementation was run. Seconds
are the median processor time of a run with one thread, imports not counted, on {machines}; rows from before that was
measured have seconds on the wall. A method that was stopped by its limit on one dataset was not tried on the others of
the same kind. The paper used servers with graphics cards."""

PAGE = """Numbers are means ± standard errors over datasets; those in brackets are the paper's. Seconds are the median
processor time of a run with one thread and MB its largest memory. [All results](index.md);
`python -m experiments run {name}` makes the runs."""


def _summary(store: Store) -> str:
    machines = {row["machine"] for row in store.rows.values() if "machine" in row}
    found = [met for *_, met in verdicts(store)]
    parts = [
        INTRODUCTION,
        "## Against the paper",
        f"In {sum(found)} of {len(found)} cells (a kind of data, with one way of pruning) the mean SHD of vec2dag is "
        "at most the published mean of ALIAS plus its standard error. Clearly below is by more than both standard "
        "errors together.",
        _beaten(store),
    ]
    missed = _missed(store)
    if missed:
        parts += [
            "Where it is above, and why. Score: the datasets on which the graph found, before pruning, scores at least "
            "as high as the true one, so that no better search of this score could be expected to find the truth. "
            "More datasets: the mean over all that were run, and how many.",
            missed,
        ]
    parts += [
        "## Against other methods",
        _against_others(store),
        "## What the numbers rest on",
        _trust(store),
        NOTES.format(machines=" and ".join(sorted(machines)) or "no machine yet"),
    ]
    return "\n\n".join(parts) + "\n"


def _index(drawn: dict[str, Path]) -> str:
    rows = [
        [f"[{table.name}]({table.name}.md)", table.where, table.title, "yes" if table.name in drawn else ""]
        for table in TABLES.values()
    ]
    names = "\n".join(TABLES)
    return (
        "---\norphan: true\n---\n\n# Tables and figures\n\n"
        "In the order of the paper; [the summary](../../RESULTS.md) says what they come to.\n\n"
        + grid(["name", "in the paper", "what", "figure"], rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )


def write(store: Store, folder: Path) -> list[Path]:
    """Write RESULTS.md, docs/results and the figures into a folder; the files."""
    drawn = figures.draw_all(store, folder / "docs" / "figures")
    pages = folder / "docs" / "results"
    pages.mkdir(parents=True, exist_ok=True)
    written = {folder / "RESULTS.md": _summary(store), pages / "index.md": _index(drawn)}
    for table in TABLES.values():
        parts = [text(table, store, level=1)]
        if table.name in drawn:
            parts.append(f"![{table.title}](../figures/{drawn[table.name].name})")
        parts.append(PAGE.format(name=table.name))
        written[pages / f"{table.name}.md"] = "\n\n".join(parts) + "\n"
    for file, content in written.items():
        file.write_text(content, encoding="utf-8")
    return [*written, *drawn.values()]
