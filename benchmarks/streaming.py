"""Tables larger than one wants in memory, from the shell: ``python -m benchmarks.streaming``.

Writes a Parquet and a CSV file, chunk by chunk, to a temporary folder (6 GB, deleted afterwards), and lets
``vec2dag discover`` learn from each in a process of its own. Writes ``benchmarks/results/streaming.md`` and
``streaming.json``. Needs the extra ``data``.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import metrics, simulate

from .cells import yes
from .tables import RESULTS, ROOT, Part, Table, say, write

Array = NDArray[np.float64]
CHUNK = 100_000  # rows that are made together
PARENTS = 2  # of a node on average


@dataclass(frozen=True)
class Case:
    """A file, and within how many seconds and GB its graph should be found."""

    suffix: str
    rows: int
    columns: int
    seconds: float
    gb: float | None = None


CASES = (Case(".parquet", 10_000_000, 50, 120.0, 1.5), Case(".csv", 1_000_000, 40, 30.0))


def chunks(case: Case, rows: int, weights: Array) -> Iterator[Array]:
    """Rows of a linear Gaussian model with ``weights`` (d, d) and unit noises, the same in every run."""
    rng = np.random.default_rng(case.columns)
    # x = x W + e, so x = e (I - W)^-1
    total = np.linalg.inv(np.eye(case.columns) - weights)
    for start in range(0, rows, CHUNK):
        yield rng.standard_normal((min(CHUNK, rows - start), case.columns)) @ total


def make(file: Path, names: list[str], pieces: Iterator[Array]) -> None:
    """Write a table, a chunk at a time."""
    import pyarrow as pa
    from pyarrow import csv as text
    from pyarrow import parquet

    schema = pa.schema([(name, pa.float64()) for name in names])
    kind: Any = parquet.ParquetWriter if file.suffix == ".parquet" else text.CSVWriter
    with kind(str(file), schema) as writer:
        for piece in pieces:
            writer.write_table(pa.table(dict(zip(names, piece.T, strict=True)), schema=schema))


def discover(file: Path, output: Path, *options: str) -> dict[str, float]:
    """Seconds by the clock and of the processors, and most GB in memory, of ``vec2dag discover`` on a file."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "vec2dag.cli", "discover", str(file), "-o", str(output), "-q", *options]
    load = os.getloadavg()[0]
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment)
    # Of this process alone; those of all children would be the largest of any so far.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    processor = usage.ru_utime + usage.ru_stime
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "processor_seconds": processor, "load_before": load, "gb": kilobytes * 1024 / 1e9}


def estimated(output: Path) -> NDArray[np.uint8]:
    """The adjacency matrix (d, d) that was written."""
    with (output / "adjacency.csv").open(newline="") as file:
        return np.array([row[1:] for row in csv.reader(file)][1:], dtype=float).astype(np.uint8)


def measure(case: Case, rows: int, folder: Path) -> dict[str, Any]:
    """Make the file, learn from it, delete it."""
    rng = np.random.default_rng([case.columns, 1])
    true = simulate.erdos_renyi(case.columns, PARENTS, rng)
    weights = simulate.uniform_weights(true, rng)
    file = folder / f"table{case.suffix}"
    start = time.perf_counter()
    make(file, [f"v{k}" for k in range(case.columns)], chunks(case, rows, weights))
    size = file.stat().st_size / 1e9
    say(f"{rows:,} x {case.columns} as {case.suffix}: {size:.2f} GB, made in {time.perf_counter() - start:.0f} s")
    try:
        # A short table would be read into memory.
        found = discover(file, folder / "out", *(() if rows == case.rows else ("--max-memory", "1e-6")))
    finally:
        file.unlink()
    distance = int(metrics.cpdag_shd(true, estimated(folder / "out")))
    table_gb = 8 * rows * case.columns / 1e9
    return {
        "file": case.suffix[1:],
        "rows": rows,
        "columns": case.columns,
        "file_gb": size,
        "table_gb": table_gb,
        **found,
        "cpdag_shd": distance,
        "edges": int(true.sum()),
    }


def row(case: Case, record: dict[str, Any]) -> list[str]:
    """Cells of a record."""
    met = record["seconds"] < case.seconds and (case.gb is None or record["gb"] < case.gb)
    target = f"{case.seconds:g} s" + ("" if case.gb is None else f", {case.gb:g} GB")
    return [
        record["file"],
        f"{record['rows']:,} x {record['columns']}",
        f"{record['table_gb']:.2f}",
        f"{record['file_gb']:.2f}",
        f"{record['seconds']:.1f}",
        f"{record['processor_seconds']:.1f}",
        f"{record['load_before']:.1f}",
        f"{record['gb']:.2f}",
        f"{record['cpdag_shd']} of {record['edges']}",
        f"{target}: {yes(met)}" if record["rows"] == case.rows else "-",
    ]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--rows", type=int, help="of every file, for a short run")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of streaming.md and streaming.json")
    args = parser.parse_args()
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            records.append(measure(case, args.rows or case.rows, Path(folder)))
            say(", ".join(f"{key} {value}" for key, value in records[-1].items()))
    columns = (
        "file",
        "shape",
        "GB as floats",
        "GB of file",
        "seconds",
        "processor seconds",
        "load before",
        "GB in memory",
        "CPDAG distance",
        "target",
    )
    notes = (
        "`vec2dag discover FILE -o DIR` as a process of its own, all cores: seconds by the clock from start to end and "
        "those of the processors, the load of the machine before (from the number of cores on, others make the clock "
        f"run longer), and the most memory that it had resident. ER-{PARENTS} graphs, Gaussian noises of unit "
        "variance; the distance is that of the CPDAGs of the true and the estimated graph, beside the number of true "
        "edges.",
    )
    table = Table("Streaming", columns, [row(c, r) for c, r in zip(CASES, records, strict=True)], notes)
    print(table.markdown())
    command = "python -m benchmarks.streaming" + (f" --rows {args.rows}" if args.rows else "")
    part = Part([table], records, command)
    write("streaming", {"streaming": part}, ("streaming",), args.results, "Tables larger than memory")


if __name__ == "__main__":
    main()
