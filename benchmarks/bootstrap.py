"""Bootstraps: how fast, on how many workers, of how many rows, and what their shares mean.

``python -m benchmarks.bootstrap [workers rows chains calibration]``. Writes ``benchmarks/results/bootstrap.md`` and
``bootstrap.json``.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from joblib.externals.loky import get_reusable_executor

from vec2dag import ALIAS, DataWarning, simulate, skeleton
from vec2dag.confidence import bootstrap

from .tables import RESULTS, Part, Table, peak_memory_mb, say, write

KINDS = {
    "ER-1, unequal variances (default)": (1, ALIAS()),
    "ER-2, unequal variances (default)": (2, ALIAS()),
    "ER-2, equal variances (bic-ev)": (2, ALIAS("bic-ev")),
}


def processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def workers(repeats: int) -> Part:
    """200 samples of 50 nodes and 1000 rows on one worker and on two, by turns, the fastest of each."""
    rows, records = [], []
    for label, (k, model) in KINDS.items():
        X = simulate.linear_gaussian(d=50, k=k, n=1000, rng=np.random.default_rng(k)).X
        bootstrap(model, X, 1, random_state=0, n_jobs=1)
        seconds: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        for _ in range(repeats):
            for jobs in seconds:
                before, begin = processor_seconds(), time.perf_counter()
                found = bootstrap(model, X, 200, random_state=0, n_jobs=jobs)
                took = time.perf_counter() - begin
                # a later run must start its workers again, and the time of children counts when they have ended
                get_reusable_executor().shutdown(wait=True)
                seconds[jobs].append((took, processor_seconds() - before))
                record = {"data": label, "jobs": jobs, "seconds": took, "processor": seconds[jobs][-1][1]}
                records.append(record | {"samples": found.n_samples})
                say(f"{label}, {jobs} worker(s): {took:.1f} s, of processors {seconds[jobs][-1][1]:.1f} s")
        (one, alone), (two, both) = (np.min(seconds[jobs], axis=0) for jobs in (1, 2))
        cells = (one, two, one / two, alone, both, 2 * alone / both)
        rows.append([label, *(f"{cell:.1f}" if k % 3 < 2 else f"{cell:.2f}" for k, cell in enumerate(cells))])
    notes = (
        f"Whole runs, start of the processes included; the least of {repeats} by turns. Seconds of the processors are "
        "the measure that others on the machine disturb least: twice the one over the other is the speed-up that two "
        "free cores could give at most.",
    )
    columns = (
        "data", "1 worker: seconds", "2 workers: seconds", "speed-up",
        "1 worker: of processors", "2 workers: of processors", "possible speed-up",
    )  # fmt: skip
    return Part([Table("200 samples, 50 nodes, 1000 rows", columns, rows, notes)], records)


def long_tables(repeats: int) -> Part:
    """Preparation and cost of a sample by number of rows."""
    rows, records = [], []
    for n in (10_000, 100_000, 1_000_000, 10_000_000):
        X = simulate.linear_gaussian(d=20, k=1, n=n, rng=np.random.default_rng(0)).X
        times = {}
        for samples in (1, 201):
            begin = time.perf_counter()
            found = bootstrap(ALIAS(), X, samples, random_state=0, n_jobs=1)
            times[samples] = time.perf_counter() - begin
        each = (times[201] - times[1]) / 200
        records.append(
            {"rows": n, "drawn": found.drawn, "first": times[1], "each": each, "memory_mb": peak_memory_mb()}
        )
        rows.append([f"{n:,}", found.drawn, f"{times[1]:.2f}", f"{1000 * each:.0f}"])
        say(" | ".join(rows[-1]))
    columns = ("rows (20 columns)", "drawn", "one sample: seconds", "every other: ms")
    return Part([Table("Samples of long tables, one worker", columns, rows)], records)


def chains(repeats: int) -> Part:
    """What two chains a sample cost in shares, beside the up to 16 of a fit."""
    rows, records = [], []
    for k in (1, 2):
        X = simulate.linear_gaussian(d=50, k=k, n=1000, rng=np.random.default_rng(k)).X
        found = {
            name: bootstrap(ALIAS(algorithm=a), X, 60, random_state=0) for name, a in (("2", "auto"), ("16", "local"))
        }
        lower = np.mean([a.score < b.score - 1e-9 for a, b in zip(*(f.samples for f in found.values()), strict=True)])
        moved = np.abs(found["2"].directed - found["16"].directed)
        ever = (found["2"].adjacent + found["16"].adjacent) > 0
        record = {
            "k": k,
            "seconds": {name: f.seconds for name, f in found.items()},
            "lower_score": float(lower),
            "mean_change": float(moved[ever].mean()),
            "largest_change": float(moved.max()),
            "consensus_differs": int((found["2"].consensus() != found["16"].consensus()).sum()),
        }
        records.append(record)
        rows.append(
            [
                f"ER-{k}",
                *(f"{found[name].seconds:.1f}" for name in ("2", "16")),
                f"{lower:.2f}",
                f"{record['mean_change']:.4f}",
                f"{record['largest_change']:.3f}",
                str(record["consensus_differs"]),
            ]
        )
        say(" | ".join(rows[-1]))
    columns = (
        "data", "2 chains: seconds", "up to 16: seconds", "samples with a lower score", "mean change of a share",
        "largest", "entries of the consensus that differ",
    )  # fmt: skip
    notes = ("Shares of directions over all pairs that are ever adjacent; 60 samples, whose own noise is up to 0.065.",)
    return Part([Table("Chains a sample (50 nodes, 1000 rows, default criterion)", columns, rows, notes)], records)


def calibration(repeats: int) -> Part:
    """Of pairs, and directions, with a share in a tenth: how many are true."""
    edges = np.linspace(0, 1, 11)
    counts: dict[str, np.ndarray] = {}
    for method in ("resample", "subsample"):
        total = np.zeros((2, 2, 10))
        for table in range(50):
            rng = np.random.default_rng([table, 7])
            data = simulate.linear_gaussian(d=10, k=1, n=200, rng=rng).standardise()
            found = bootstrap(ALIAS(), data.X, 60, method, random_state=table)
            upper = np.triu_indices(10, 1)
            off = ~np.eye(10, dtype=bool)
            for which, (shares, truth) in enumerate(
                (
                    (found.adjacent[upper], skeleton(data.A)[upper]),
                    (found.directed[off], data.A[off]),
                )
            ):
                place = np.clip(np.digitize(shares, edges[1:-1]), 0, 9)
                np.add.at(total[which, 0], place, 1)
                np.add.at(total[which, 1], place, truth)
        counts[method] = total
        say(f"{method}: done")
    rows = []
    for tenth in range(10):
        row = [f"{edges[tenth]:.1f} to {edges[tenth + 1]:.1f}"]
        for method in counts:
            for which in range(2):
                n, true = counts[method][which, :, tenth]
                row.append(f"{true / n:.2f} ({int(n)})" if n else "-")
        rows.append(row)
    columns = ("share", *(f"{m}: {w}" for m in counts for w in ("pairs", "directions")))
    notes = (
        "Share of true ones, and in brackets how many pairs or directions had such a share. 50 tables of 10 "
        "standardised columns and 200 rows from ER-1 graphs, 60 samples each, default criterion. Directions that "
        "every graph of the equivalence class has are counted, free ones are not.",
    )
    records = [{"method": method, "counts": total} for method, total in counts.items()]
    return Part([Table("What shares mean", columns, rows, notes)], records)


PARTS: dict[str, Callable[[int], Part]] = {
    "workers": workers,
    "rows": long_tables,
    "chains": chains,
    "calibration": calibration,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bootstrap", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore", DataWarning)
    for name in args.parts or PARTS:
        part = PARTS[name](args.repeats)
        part.command = f"python -m benchmarks.bootstrap {name}"
        for table in part.tables:
            print(table.markdown())
        write("bootstrap", {name: part}, PARTS, args.results, "Bootstraps")


if __name__ == "__main__":
    main()
