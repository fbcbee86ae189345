"""Numbers of the finished runs for other pages: README.md and docs write none by hand.

A number has an address, ``TABLE/CELL/METHOD/WHAT``, for instance ``dense/dense-er8/vec2dag/shd``:

- TABLE is a name of ``python -m experiments list``, CELL one of its data sets and METHOD the name of a row;
- WHAT is a metric of the table (``shd``, ``fdr``, ``tpr``, ...: mean ± standard error), the same with ``paper-`` in
  front (the published number), or ``seconds`` (median of processor time), ``megabytes``, ``sets`` (how many there are);
- ``@PRUNING`` at the end chooses a pruning (``none``, ``linear``, ``cam``, ``ci``); the first of the table without.

``verdict/met`` and ``verdict/cells`` say in how many cells the library reaches the paper, and of how many.

In a Markdown file a number stands between markers, and so does a table, whose lines are CELLs times METHODs::

    <!-- number dense/dense-er8/vec2dag/shd -->0.8 ± 0.2<!-- /number -->

    <!-- table dense cells=dense-er8,highdim-er2 methods=vec2dag,dagma what=shd,paper-shd,seconds,sets -->
    | ... |
    <!-- /table -->

``python -m experiments numbers README.md docs/*.md`` writes what belongs between them, with ``--check`` it only says
which files are not as they should be (and exits with 1). In a test: ``assert refresh(text) == text``.

Several tables may be named, ``<!-- table dense,noise ... -->``; ``names=ER-8 with 30 nodes,ER-2 with 200 nodes`` (no
commas in a name) gives the cells other names.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from .store import Store
from .summary import Line, Number, lines, verdicts
from .tables import TABLES, UsageError

HEADINGS = {
    "shd": "SHD",
    "fdr": "FDR",
    "tpr": "TPR",
    "edges": "edges",
    "correct": "correct",
    "ms": "ms",
    "cpdag_shd": "CPDAG SHD",
    "skeleton_shd": "skeleton SHD",
    "skeleton_precision": "precision",
    "skeleton_recall": "recall",
    "skeleton_f1": "F1",
    "varsortability": "varsortability",
    "paths_in_denominator": "paths in the denominator",
    "seconds": "seconds",
    "megabytes": "MB",
    "sets": "datasets",
}
DIGITS = {"shd": 1, "cpdag_shd": 1, "skeleton_shd": 1, "edges": 0, "correct": 0, "ms": 3}
_NUMBER = re.compile(r"(<!-- number (\S+) -->).*?(<!-- /number -->)", re.DOTALL)
_TABLE = re.compile(r"(<!-- table (.+?) -->\n).*?(<!-- /table -->)", re.DOTALL)


def formatted(value: Number | None, digits: int) -> str:
    """Mean and standard error."""
    if value is None:
        return "-"
    mean = f"{value.mean:.{digits}f}"
    return mean if math.isnan(value.se) else f"{mean} ± {value.se:.{digits}f}"


def grid(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table that is also legible as text."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]

    def text(row: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

    return "\n".join([text(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(text, rows)])


def shown(line: Line, what: str) -> str:
    """One number of a line, ``-`` where there is none."""
    if what == "seconds":
        return (
            "-" if math.isnan(line.seconds) else f"{line.seconds:.2g}" if line.seconds < 100 else f"{line.seconds:.0f}"
        )
    if what == "megabytes":
        return "-" if math.isnan(line.megabytes) else f"{line.megabytes:.0f}"
    if what == "sets":
        return str(line.sets)
    metric = what.removeprefix("paper-")
    return formatted((line.here if metric == what else line.paper).get(metric), DIGITS.get(metric, 2))


class Numbers:
    """The numbers of a store, by address.

    Parameters
    ----------
    store : Store, optional
        The committed rows if not given.
    """

    def __init__(self, store: Store | None = None) -> None:
        self.store = Store() if store is None else store

    def line(self, table: str, cell: str, method: str, pruning: str | None = None) -> Line:
        """A row of a table, with the first of its prunings unless one is named."""
        if table not in TABLES:
            raise UsageError(f"there is no table {table!r}; tables: {', '.join(TABLES)}")
        wanted = pruning or TABLES[table].prunings[0]
        found = [line for line in lines(TABLES[table], self.store) if (line.cell, line.name) == (cell, method)]
        for line in found:
            if line.pruning == wanted:
                return line
        raise UsageError(f"table {table} has no row for {cell!r}, {method!r} and pruning {wanted!r}")

    def text(self, address: str) -> str:
        """The number at an address, as it is printed."""
        address, _, pruning = address.partition("@")
        parts = address.split("/")
        if parts[0] == "verdict":
            found = [met for *_, met in verdicts(self.store)]
            return str(sum(found) if parts[1] == "met" else len(found))
        if len(parts) != 4:
            raise UsageError(f"the address of a number is TABLE/CELL/METHOD/WHAT, got {address!r}")
        table, cell, method, what = parts
        return shown(self.line(table, cell, method, pruning or None), what)

    def table(self, request: str) -> str:
        """A Markdown table as its marker asks for it."""
        tables, *rest = re.split(r" (?=\w+=)", request)
        options = {name: value.split(",") for name, value in (part.split("=", 1) for part in rest)}
        names = tables.split(",")
        cells = options.get("cells", [cell for name in names for cell in TABLES[name].cells])
        labels = dict(zip(cells, options.get("names", cells), strict=True))
        what = options.get("what", ["shd", "seconds", "sets"])
        rows = []
        for cell in cells:
            table = next((name for name in names if cell in TABLES[name].cells), "")
            if not table:
                raise UsageError(f"no table of {tables} has the data {cell!r}")
            for method in options.get("methods", [run.name for run in TABLES[table].runs]):
                line = self.line(table, cell, method, options.get("pruning", [None])[0])
                rows.append([labels[cell], method, *(shown(line, one) for one in what)])
        heads = [HEADINGS[one.removeprefix("paper-")] + (", paper" if one.startswith("paper-") else "") for one in what]
        return grid(["data", "method", *heads], rows)

    def refresh(self, text: str) -> str:
        """A page with what belongs between its markers."""
        text = _NUMBER.sub(lambda match: match[1] + self.text(match[2]) + match[3], text)
        return _TABLE.sub(lambda match: f"{match[1]}\n{self.table(match[2])}\n\n{match[3]}", text)


def refresh(text: str, store: Store | None = None) -> str:
    """A page with what belongs between its markers, from the committed rows unless others are given."""
    return Numbers(store).refresh(text)


def outdated(files: list[Path], store: Store | None = None) -> Iterator[tuple[Path, str]]:
    """Files whose numbers are not those of the rows, with the text that they should have."""
    numbers = Numbers(store)
    for file in files:
        text = file.read_text(encoding="utf-8")
        wanted = numbers.refresh(text)
        if wanted != text:
            yield file, wanted
