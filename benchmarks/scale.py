"""What large problems cost: processor seconds for rows, columns, nodes and samples on one core, and what follows.

``python -m benchmarks.scale``. Writes ``benchmarks/results/scale.md`` and ``scale.json``.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from vec2dag import ALIAS, Moments, bootstrap, simulate

from .tables import RESULTS, Part, Table, say, write

HOUR = 3600.0


def statistics(repeats: int) -> Part:
    """Seconds of a core for the statistics of rows, in memory and out of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, records = [], []
    for d, n in ((50, 400_000), (200, 200_000)):
        X = np.random.default_rng(0).standard_normal((n, d))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "table.parquet"
            parquet.write_table(pa.table({f"x{j}": X[:, j] for j in range(d)}), file)
            memory = min(_seconds(lambda X=X: Moments.of(X, n_jobs=1)) for _ in range(repeats))
            disk = min(_seconds(lambda file=file: Moments.from_parquet(file)) for _ in range(repeats))
        records.append({"columns": d, "rows": n, "memory": memory, "file": disk})
        hours = disk / n * 1e9 / HOUR
        rows.append([str(d), f"{memory / n * 1e9:.0f}", f"{disk / n * 1e9:.0f}", f"{hours:.1f}"])
        say(" | ".join(rows[-1]))
    columns = ("columns", "ns a row in memory", "ns a row of Parquet", "core hours for 10^9 rows of Parquet")
    note = f"Seconds of the processor, the least of {repeats}; the last column is the one before, multiplied."
    return Part([Table("Statistics of long tables", columns, rows, (note,))], records)


def samples(repeats: int) -> Part:
    """Seconds of a core for a sample of a bootstrap, by nodes."""
    rows, records = [], []
    for d in (100, 300, 1000):
        X = simulate.linear_gaussian(d=d, k=1, n=2000, rng=np.random.default_rng(0)).X
        one = _seconds(lambda X=X: bootstrap(ALIAS(), X, repeats, random_state=0, n_jobs=1)) / repeats
        records.append({"nodes": d, "seconds": one, "samples": repeats})
        rows.append([str(d), f"{one:.2f}", f"{one * 1e4 / HOUR:.1f}"])
        say(" | ".join(rows[-1]))
    columns = ("nodes", "seconds a sample", "core hours for 10,000 samples")
    note = (
        f"ER-1, 2,000 rows, default model, means of {repeats} samples; the last column is the one before, multiplied."
    )
    return Part([Table("Samples of a bootstrap", columns, rows, (note,))], records)


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


PARTS = {"statistics": statistics, "samples": samples}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    for name in args.parts or PARTS:
        part = PARTS[name](args.repeats)
        part.command = f"python -m benchmarks.scale {name}"
        for table in part.tables:
            print(table.markdown())
        write("scale", {name: part}, PARTS, args.results, "What large problems cost")


if __name__ == "__main__":
    main()
