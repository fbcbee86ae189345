"""Tables as text, and RESULTS.md."""

import math
from pathlib import Path

from . import figures
from .data import load
from .evaluate import graph_of, reaches_truth
from .numbers import DIGITS, HEADINGS, formatted, grid
from .store import Store
from .summary import Line, lines, verdicts
from .tables import TABLES, Table

PRUNED = {
    "none": "no pruning",
    "linear": "coefficients below 0.3 pruned",
    "cam": "CAM pruning",
    "ci": "pruning by conditional independence",
}
# Cells where the mean SHD is above the paper's by more than its standard error, and why.
REASONS: dict[tuple[str, str, str], str] = {
    ("samples-er8", "samples-er8-d20-n100", "linear"): "the score, not the search: 28.2 with an earlier, weaker one",
    ("dense", "dense-er8", "linear"): "chance of these five sets: 0.40 ± 0.09 over sets 0 to 39",
    ("constraint", "dense-er8", "linear"): "the sets of the table `dense`",
    ("samples-sf8", "samples-sf8-d30-n500", "linear"): "the score, not the search: 1.03 ± 0.21 over sets 0 to 39",
    ("mlp", "mlp-er4", "none"): "the score, not the search; these are not the paper's sets",
    ("mlp", "mlp-er4", "cam"): "the graphs of the row above, pruned",
    ("standardised", "standardised-er2", "linear"): "the threshold removes true edges; without it 0.8 ± 0.2",
}


def _row(line: Line, table: Table) -> list[str]:
    cells = []
    for metric in table.metrics:
        digits = DIGITS.get(metric, 2)
        paper = line.paper.get(metric)
        cells.append(formatted(line.here.get(metric), digits) + (f" [{formatted(paper, digits)}]" if paper else ""))
    seconds = "-" if math.isnan(line.seconds) else f"{line.seconds:.3g}"
    memory = "-" if math.isnan(line.megabytes) else f"{line.megabytes:.0f}"
    remark = line.remark.replace("|", "/").replace("\n", " ")
    return [line.cell, line.name, *cells, seconds, memory, str(line.sets), remark]


def text(table: Table, store: Store) -> str:
    """Title, note and the lines of a table, one grid for every pruning."""
    parts = [f"### {table.title} ({table.where}; `{table.name}`)"]
    header = ["data", "method", *(HEADINGS[m] for m in table.metrics), "seconds", "MB", "sets", "remark"]
    found = list(lines(table, store))
    for pruning in table.prunings:
        if len(table.prunings) > 1:
            parts.append(f"{PRUNED[pruning][0].upper()}{PRUNED[pruning][1:]}:")
        parts.append(grid(header, [_row(line, table) for line in found if line.pruning == pruning]))
    absent = [run.name for run in table.runs if all(line.name != run.name for line in found)]
    if absent:
        parts.append(f"Not run: {', '.join(absent)}.")
    if table.note:
        parts.append(table.note)
    return "\n\n".join(parts)


def _against_the_paper(store: Store, folder: Path | None) -> str:
    found = list(verdicts(store))
    missed = [(table, line, metric) for table, line, metric, met in found if not met]
    parts = [
        f"In {len(found) - len(missed)} of {len(found)} cells the mean SHD of vec2dag is at most the published mean of "
        "ALIAS plus its standard error."
    ]
    if missed:
        rows = [
            [
                table.name,
                line.cell,
                PRUNED[line.pruning],
                formatted(line.here[metric], 1),
                formatted(line.paper[metric], 1),
                _sets_that_reach_the_truth(table, line.cell, store, folder),
                REASONS.get((table.name, line.cell, line.pruning), ""),
            ]
            for table, line, metric in missed
        ]
        header = ["table", "data", "pruning", "vec2dag", "ALIAS, paper", "scores >= truth's", "why"]
        parts += [
            "The others; `scores >= truth's` counts the sets on which the graph found, before pruning, scores at least "
            "as high as the true one, so that no better search of this score could be expected to find the truth:",
            grid(header, rows),
        ]
    return "\n\n".join(parts)


def _sets_that_reach_the_truth(table: Table, cell: str, store: Store, folder: Path | None) -> str:
    run = next(run for run in table.runs if run.name == "vec2dag")
    rows = [row for row in store.series(cell, run.method, run.settings) if row["seed"] < table.seeds]
    try:
        sets = [load(cell, row["seed"], folder) for row in rows]
        reached = [
            reaches_truth(one, run.settings, graph_of(row, len(one.A))) for one, row in zip(sets, rows, strict=True)
        ]
    except FileNotFoundError:
        return "-"
    return f"{sum(reached)} of {len(reached)}"


INTRODUCTION = """# Results

Every table and figure of "Reinforcement Learning for Causal Discovery without Acyclicity Constraints" (TMLR 2025), made
again: `python -m experiments run all`, then `python -m experiments report`, which writes this file from the rows in
`experiments/results`. Numbers are means ± standard errors over sets; those in brackets are the paper's. Seconds are the
median of a run and MB the largest, with one thread a run and imports not counted, on {machines}; up to {jobs} runs at a
time, and at times other work beside them. The paper used servers with graphics cards.

The simulated sets are drawn anew with the paper's recipes (`vec2dag.simulate.preset`), so they are not the paper's own
(and have k d edges on average, where the generator that the paper used draws k (d - 1)); the Gaussian-process and
post-nonlinear sets are the ones it used. Every method sees the table and nothing else; graphs
are pruned alike for all and compared with the truth outside the method's process. Settings are the paper's where it
states them. `docs/comparison.md` says what each method is and which implementation was run.

A method that was stopped by its limit of time on one set was not tried on those after it; the remark shows how far it
came. `quoted` rows are in the paper and were not run here."""


def write(store: Store, folder: Path, data: Path | None = None) -> list[Path]:
    """Write RESULTS.md and the figures into a folder; the files. ``data`` has the stored sets."""
    drawn = figures.draw_all(store, folder / "docs" / "figures")
    machines = {row["machine"] for row in store.rows.values() if "machine" in row}
    jobs = max((row["jobs"] for row in store.rows.values() if "jobs" in row), default=1)
    parts = [
        INTRODUCTION.format(machines=", ".join(sorted(machines)) or "no machine yet", jobs=jobs),
        "## Against the paper",
        _against_the_paper(store, data),
        "## Tables",
    ]
    for table in TABLES.values():
        parts.append(text(table, store))
        if table.name in drawn:
            parts.append(f"![{table.title}]({drawn[table.name].relative_to(folder).as_posix()})")
    file = folder / "RESULTS.md"
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return [file, *drawn.values()]
