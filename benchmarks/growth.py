"""How seconds and memory grow with the number of nodes and with the number of rows: ``python -m benchmarks.growth``.

Every point is a process of its own on one thread. Writes ``benchmarks/results/growth.md``, ``growth.json`` and
``growth.png``; points that are there already are kept, those of vec2dag as long as its code is the same. Needs
matplotlib.
"""

import argparse
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import ALIAS, BIC, Moments, simulate

from .cells import Record, median, number, stopped, time_cell
from .linear import MISSING, code, load
from .tables import RESULTS, ROOT, Part, Table, peak_memory_mb, say, write

Array = NDArray[np.float64]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
PARENTS, ROWS, NODES = 2, 2000, 30  # of a node on average; of the tables with more nodes, and the other way round
CHUNK = 100_000  # rows that are in memory together
LEAST = 0.3  # seconds that the calls of a point take together at least
SETS, LONG = 3, 10.0  # data sets of a point, and the seconds above which one is enough
OURS, EQUAL, STREAM, FLOP, FLOP_ROWS = "vec2dag", "vec2dag, bic-ev", "vec2dag, Moments", "FLOP", "FLOP, whole table"
PATIENCE = 3  # by the clock a point may take so many times its processor seconds
LIMITS = {FLOP: 120.0, FLOP_ROWS: 120.0}
# What grows: the methods, and their sizes.
NODE_SIZES, ROW_SIZES = (10, 30, 100, 300, 1000, 2000), tuple(10**k for k in range(2, 8))
SERIES: dict[str, dict[str, tuple[int, ...]]] = {
    "nodes": {OURS: NODE_SIZES, EQUAL: NODE_SIZES[:-1], FLOP: NODE_SIZES},
    "rows": {STREAM: ROW_SIZES, FLOP_ROWS: ROW_SIZES},
}
COLORS = {OURS: "black", EQUAL: "tab:blue", STREAM: "black", FLOP: "tab:orange", FLOP_ROWS: "tab:orange"}
# Slopes are fitted from these sizes on: below them it is the fixed costs that are seen.
FROM = {"nodes": 100, "rows": 10**5}


@dataclass(frozen=True)
class Point:
    """A method on data of one size."""

    series: str
    method: str
    size: int
    seed: int = 0

    @property
    def limit(self) -> float:
        """Processor seconds that it may take, the start of its process included."""
        return LIMITS.get(self.method, 180.0)


# --- in the process of a point --------------------------------------------------------------------------------


def chunks(n: int, seed: int) -> Iterator[Array]:
    """Rows of one linear model, made when they are asked for."""
    rng = np.random.default_rng(seed)
    W = simulate.uniform_weights(simulate.erdos_renyi(NODES, PARENTS, rng), rng)
    for start in range(0, n, CHUNK):
        yield simulate.simulate(W, n=min(CHUNK, n - start), rng=rng).X


def fit(X: Any, criterion: str = "ebic-nv") -> None:
    """The estimator on one thread."""
    ALIAS(criterion, prune=None, n_jobs=1, random_state=0).fit(X)


def flop(X: Array) -> None:
    """One descent of FLOP, with the price that ebic-nv has for a first parent."""
    from flopsearch import flop as search

    n, d = X.shape
    search(np.ascontiguousarray(X), BIC(gamma=1.0).edge_price(n, d) / math.log(n), restarts=0)


def stream(n: int, seed: int) -> float:
    """Seconds for the statistics and the search, the making of rows not counted."""
    seconds, moments = 0.0, None
    for X in chunks(n, seed):
        start = time.process_time()
        part = Moments.of(X)
        moments = part if moments is None else moments.merge(part)
        seconds += time.process_time() - start
    start = time.process_time()
    fit(moments)
    return seconds + time.process_time() - start


def repeated(run: Callable[[], float]) -> float:
    """Mean of as many calls as take ``LEAST``: in a process with a limit the clock may go by ticks of milliseconds."""
    times = [run()]
    while sum(times) < LEAST and len(times) < 1000:
        times.append(run())
    return float(np.mean(times))


def clocked(run: Callable[[Array], None], X: Array) -> float:
    """Processor seconds of a call: on one thread those of the clock, without what else the machine was doing."""
    start = time.process_time()
    run(X)
    return time.process_time() - start


def measure(point: Point) -> Record:
    """Seconds, and the largest memory of this process before the data were made and at the end."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (int(point.limit), int(point.limit) + 10))
    table = next(chunks(100, 0))
    if point.method.startswith("vec2dag"):
        # Compiled code is loaded before the clock starts.
        fit(table, "bic-ev" if point.method == EQUAL else "ebic-nv")
        fit(Moments.of(table))
    else:
        flop(table)
    before = peak_memory_mb()
    if point.series == "rows":
        if point.method == STREAM:
            seconds = repeated(lambda: stream(point.size, point.seed))
        else:
            rows = np.empty((point.size, NODES))
            for k, X in enumerate(chunks(point.size, point.seed)):
                rows[k * CHUNK : k * CHUNK + len(X)] = X
            seconds = repeated(lambda: clocked(flop, rows))
    else:
        rng = np.random.default_rng(point.seed)
        data = simulate.linear_gaussian(d=point.size, k=PARENTS, n=ROWS, rng=rng)
        runs = {OURS: fit, EQUAL: lambda X: fit(X, "bic-ev"), FLOP: flop}
        X = data.X if point.method == EQUAL else data.standardise().X
        seconds = repeated(lambda: clocked(runs[point.method], X))
    return {"seconds": seconds, "mb": peak_memory_mb(), "mb_before": before}


# --- around it ------------------------------------------------------------------------------------------------


def run(point: Point, paths: list[str]) -> Record:
    """Measure a point in a process of its own; problems are told and not raised."""
    record = asdict(point) | ({"code": code()} if point.method.startswith("vec2dag") else {})
    places = [str(ROOT), *filter(None, sys.path), *paths]
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "benchmarks.growth", "--point", json.dumps(asdict(point))]
    over = record | {"seconds": point.limit, "problem": f"over {point.limit:.0f} s"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * point.limit, env=environment)
    except subprocess.TimeoutExpired:
        return over
    if done.returncode == -signal.SIGXCPU:
        return over
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"])[-1]
        return record | {"problem": MISSING if "No module named" in said else f"failed: {said[:80]}"}
    return record | json.loads(done.stdout.splitlines()[-1])


def missing(series: str, sizes: dict[str, tuple[int, ...]], records: list[Record], sets: int) -> Iterator[Point]:
    """The points without a record; after a problem a method is not asked for larger sizes."""
    for method, wanted in sizes.items():
        for size in wanted:
            for seed in range(sets):
                mine = [r for r in records if (r["series"], r["method"]) == (series, method)]
                here = [r for r in mine if r["size"] == size]
                if any("problem" in r for r in mine) or any(r["seconds"] > LONG for r in here):
                    break
                if all(r["seed"] != seed for r in here):
                    yield Point(series, method, size, seed)


def medians(records: list[Record], series: str, method: str, key: str) -> dict[int, float]:
    """By size, of the runs that ended."""
    mine = [r for r in records if (r["series"], r["method"]) == (series, method) and "problem" not in r]
    return {size: median([r for r in mine if r["size"] == size], key) for size in sorted({r["size"] for r in mine})}


def slope(values: dict[int, float]) -> float:
    """Of a line through the logarithms, NaN for fewer than two points."""
    if len(values) < 2:
        return float("nan")
    return float(np.polyfit(np.log(list(values)), np.log(list(values.values())), 1)[0])


def table(series: str, records: list[Record]) -> Table:
    """A row for every method and size; a slope is that of the line from the size before."""
    rows = []
    for method in SERIES[series]:
        seconds, memory = (medians(records, series, method, key) for key in ("seconds", "mb"))
        before = medians(records, series, method, "mb_before")
        for size in SERIES[series][method]:
            here = [r for r in records if (r["series"], r["method"], r["size"]) == (series, method, size)]
            if not here:
                continue
            if any(r.get("problem") and not stopped([r]) for r in here):
                rows.append([method, f"{size:,}", here[0]["problem"], "-", "-", "-"])
                continue
            smaller = max((s for s in seconds if s < size), default=size)
            local = slope({s: seconds[s] for s in (smaller, size) if s in seconds}) if smaller < size else math.nan
            added = memory[size] - before[size] if size in memory else math.nan
            most = number(memory.get(size, math.nan), 0)
            rows.append([method, f"{size:,}", time_cell(here), number(local, 2), most, number(added, 0)])
        large = {size: value for size, value in seconds.items() if size >= FROM[series]}
        if len(large) > 1:
            rows.append([method, f"from {FROM[series]:,}", "", number(slope(large), 2), "", ""])
    columns = ("method", series, "seconds", "slope", "MB at most", "MB added")
    return Table(f"By number of {series}", columns, rows, NOTES[series])


NOTES = {
    "nodes": (
        f"ER-{PARENTS}, {ROWS:,} rows, one thread, processor seconds. `vec2dag` has its defaults and standardised "
        "columns, `bic-ev` raw units; FLOP makes one descent without restarts, on standardised columns, at the price "
        f"that `ebic-nv` has for a first parent. Medians of {SETS} sets, one where it took more than {LONG:.0f} s. "
        "`slope` is that of the logarithms from the size before, and in the last line of a method of all sizes from "
        "there on. `MB added` is the largest memory less that of the process with its packages and before its data.",
    ),
    "rows": (
        f"{NODES} nodes, ER-{PARENTS}, raw units; `vec2dag` merges the statistics of chunks of {CHUNK:,} rows, which "
        "are made on the fly (not counted in seconds, but in memory); FLOP, the same as above, has the whole table.",
    ),
}


def draw(records: list[Record], file: Path) -> None:
    """Seconds and memory on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(SERIES), figsize=(9, 6.5), squeeze=False, layout="constrained")
    for column, (series, methods) in enumerate(SERIES.items()):
        for ax, key, label in zip(axes[:, column], ("seconds", "mb"), ("seconds", "MB at most"), strict=True):
            for method in methods:
                points = medians(records, series, method, key)
                if points:
                    ax.plot(list(points), list(points.values()), "o-", ms=4, color=COLORS[method], label=method)
            ax.set(xscale="log", yscale="log", xlabel=series, ylabel=label)
            ax.grid(alpha=0.3)
        axes[0, column].legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, print, write, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("series", nargs="*", choices=[*SERIES, []], help="default: both")
    parser.add_argument("--flop", type=Path, help="folder of flopsearch, if it is not installed")
    parser.add_argument("--most", type=int, help="largest size, for a short run")
    parser.add_argument("--sets", type=int, default=SETS, help=f"data sets of a point (default {SETS})")
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of growth.md, .json and .png")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        print(json.dumps(measure(Point(**json.loads(args.point)))))
        return
    paths = [] if args.flop is None else [str(args.flop.resolve())]
    everything: list[Record] = []
    for series in SERIES:
        known = [] if args.fresh else load(args.results / "growth.json", series)
        records = [record for record in known if record.get("problem") != MISSING]
        if series in (args.series or SERIES):
            sizes = {m: tuple(s for s in all_ if s <= (args.most or s)) for m, all_ in SERIES[series].items()}
            for point in missing(series, sizes, records, args.sets):
                records.append(run(point, paths))
                say(", ".join(f"{key} {value}" for key, value in records[-1].items() if key != "code"))
                part = Part([table(series, records)], records, f"python -m benchmarks.growth {series}")
                write("growth", {series: part}, SERIES, args.results, "Growth of time and memory")
            print(table(series, records).markdown())
        everything += records
    draw(everything, args.results / "growth.png")


if __name__ == "__main__":
    main()
