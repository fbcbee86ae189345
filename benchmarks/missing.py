"""What missing values cost, and what each way of treating them gives back: ``python -m benchmarks.missing``."""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import ALIAS, Moments, bootstrap, cpdag, metrics, missing, simulate, topological_order

from .cells import Record, mean, number, seconds_cell
from .tables import RESULTS, Part, Table, say, write

Array = NDArray[np.float64]

NODES, DEGREE, ROWS, SHARE = 30, 2, 1000, 0.2
SAMPLES = 20


# --- how values get lost -----------------------------------------------------------------------------------------


def completely_at_random(X: Array, A: NDArray[np.uint8], rng: np.random.Generator) -> Array:
    """Every value with the same probability."""
    return np.where(rng.random(X.shape) < SHARE, np.nan, X)


def at_random(X: Array, A: NDArray[np.uint8], rng: np.random.Generator) -> Array:
    """Half of all values but those of the last column, in the rows where that, an effect of many, is high."""
    last = topological_order(A)[-1]
    lost = (X[:, last] > np.quantile(X[:, last], 1 - 2 * SHARE))[:, None] & (rng.random(X.shape) < 0.5)
    lost[:, last] = False
    return np.where(lost, np.nan, X)


MECHANISMS = {"completely at random": completely_at_random, "at random, by the last column": at_random}


# --- what is done about it ---------------------------------------------------------------------------------------


def all_rows(X: Array) -> Moments:
    """EM, with every row counted as if it were complete."""
    m = missing.em(X)
    return replace(m, n=len(X), factor=m.factor * np.sqrt(len(X) / m.n))


def with_means(X: Array) -> Array:
    """The mean of its column in place of every missing value."""
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def fitted(criterion: str, table: Any, seed: int, **parameters: Any) -> NDArray[np.uint8]:
    """The class of the graph, or the graph where directions are identified."""
    model = ALIAS(criterion, random_state=seed, n_jobs=1, **parameters).fit(table)
    return getattr(model, "cpdag_", model.adjacency_matrix_)


def consensus(criterion: str, table: Array, seed: int) -> NDArray[np.uint8]:
    """Of samples, each with values of its own."""
    model = ALIAS(criterion, missing="impute")
    found = bootstrap(model, table, SAMPLES, random_state=seed, n_jobs=1).consensus()
    return cpdag(found) if criterion == "ebic-nv" else found


METHODS: dict[str, Callable[[str, Array, Array, int], NDArray[np.uint8]]] = {
    "nothing missing": lambda c, full, X, seed: fitted(c, full, seed),
    "em": lambda c, full, X, seed: fitted(c, X, seed, missing="em"),
    "em, all rows counted": lambda c, full, X, seed: fitted(c, all_rows(X), seed),
    "impute": lambda c, full, X, seed: fitted(c, X, seed, missing="impute"),
    f"impute, consensus of {SAMPLES}": lambda c, full, X, seed: consensus(c, X, seed),
    "pairwise-complete": lambda c, full, X, seed: fitted(c, X, seed, missing="pairwise-complete"),
    "drop": lambda c, full, X, seed: fitted(c, X, seed, missing="drop"),
    "means in place": lambda c, full, X, seed: fitted(c, with_means(X), seed),
}


def accuracy(sets: int) -> Part:
    """F1 of what is found, by mechanism, criterion and method."""
    records: list[Record] = []
    for mechanism, lose in MECHANISMS.items():
        for seed in range(sets):
            data = simulate.linear_gaussian(NODES, DEGREE, ROWS, np.random.default_rng(seed))
            for criterion, unit in (("ebic-nv", data.X.std(axis=0)), ("bic-ev", 1.0)):
                full = data.X / unit
                X = lose(full, data.A, np.random.default_rng([seed, 1]))
                truth = cpdag(data.A) if criterion == "ebic-nv" else data.A
                for name, method in METHODS.items():
                    record = {"mechanism": mechanism, "seed": seed, "criterion": criterion, "method": name}
                    start = time.process_time()
                    try:
                        found = method(criterion, full, X, seed)
                    except ValueError as error:
                        record["problem"] = str(error)
                    else:
                        record |= {
                            "skeleton": float(metrics.skeleton_f1(truth, found)),
                            "f1": float(metrics.f1(truth, found)),
                            "edges": int(np.triu(found | found.T).sum()),
                            "seconds": time.process_time() - start,
                        }
                    records.append(record)
            say(f"{mechanism}, set {seed}")
    tables = [_table(records, mechanism, sets) for mechanism in MECHANISMS]
    return Part(tables, records)


def _table(records: list[Record], mechanism: str, sets: int) -> Table:
    cells = []
    for criterion in ("ebic-nv", "bic-ev"):
        whole = mean(_chosen(records, mechanism, criterion, "nothing missing"), "f1")
        for name in METHODS:
            found = _chosen(records, mechanism, criterion, name)
            refused = sum("problem" in r for r in found)
            f1 = mean(found, "f1")
            cells.append(
                [
                    criterion,
                    name + (f" ({refused} of {len(found)} refused)" if refused else ""),
                    number(mean(found, "skeleton"), 3),
                    number(f1, 3),
                    "-" if np.isnan(f1) else f"{f1 / whole:.0%}",
                    number(mean(found, "edges")),
                    seconds_cell(mean(found, "seconds")),
                ]
            )
    note = (
        f"ER-{DEGREE}, {NODES} columns, {ROWS} rows, {SHARE:.0%} of the values missing, means of {sets} sets. ebic-nv "
        "on standardised columns, F1 of the class (its skeleton; its edges, free ones both ways); bic-ev on columns as "
        "they are, F1 of the graph. Seconds of the processor."
    )
    columns = ["criterion", "missing values", "skeleton F1", "F1", "of that without", "edges", "seconds"]
    return Table(f"Missing {mechanism}", columns, cells, (note,))


def _chosen(records: list[Record], mechanism: str, criterion: str, method: str) -> list[Record]:
    return [r for r in records if (r["mechanism"], r["criterion"], r["method"]) == (mechanism, criterion, method)]


# --- bias --------------------------------------------------------------------------------------------------------


def bias(sets: int) -> Part:
    """How far means and correlations are from those of the whole table."""
    ways: dict[str, Callable[[Array, int], Moments]] = {
        "em": lambda X, seed: missing.em(X),
        "impute": lambda X, seed: Moments.of(missing.impute(X, np.random.default_rng(seed))),
        "pairwise-complete": lambda X, seed: missing.pairwise(X),
        "drop": lambda X, seed: Moments.of(X[~np.isnan(X).any(axis=1)]),
        "means in place": lambda X, seed: Moments.of(with_means(X)),
    }
    records: list[Record] = []
    for mechanism, lose in MECHANISMS.items():
        for seed in range(sets):
            data = simulate.linear_gaussian(NODES, DEGREE, ROWS, np.random.default_rng(seed))
            X = lose(data.X, data.A, np.random.default_rng([seed, 1]))
            whole = Moments.of(data.X)
            for name, way in ways.items():
                record = {"mechanism": mechanism, "seed": seed, "method": name}
                # no correlations without rows
                if name != "drop" or (~np.isnan(X).any(axis=1)).sum() > 2:
                    found = way(X, seed)
                    off = np.abs(_correlations(found) - _correlations(whole))[np.triu_indices(NODES, 1)]
                    record |= {
                        "means": float(np.mean(np.abs(found.mean - whole.mean) / np.sqrt(whole.variances()))),
                        "correlations": float(off.mean()),
                        "worst": float(off.max()),
                    }
                records.append(record)
    cells = []
    for mechanism in MECHANISMS:
        for name in ways:
            found = [r for r in records if (r["mechanism"], r["method"]) == (mechanism, name)]
            cells.append([mechanism, name, *(number(mean(found, k), 3) for k in ("means", "correlations", "worst"))])
    note = (
        f"ER-{DEGREE}, {NODES} columns, {ROWS} rows, {SHARE:.0%} of the values missing, means of {sets} sets: absolute "
        "differences to the table without missing values, of means in standard deviations, of correlations, and the "
        "largest of these. A dash: no two complete rows."
    )
    columns = ["missing", "method", "means", "correlations", "worst"]
    return Part([Table("Errors of means and correlations", columns, cells, (note,))], records)


def _correlations(moments: Moments) -> Array:
    S = moments.covariance
    size = np.sqrt(np.diagonal(S))
    return S / np.outer(size, size)


# --- time --------------------------------------------------------------------------------------------------------


def speed(sets: int) -> Part:
    """What EM takes."""
    records: list[Record] = []
    for n, d in ((1000, 30), (5000, 100)):
        for seed in range(min(sets, 3)):
            data = simulate.linear_gaussian(d, DEGREE, n, np.random.default_rng(seed))
            X = completely_at_random(data.X, data.A, np.random.default_rng([seed, 1]))
            start = time.process_time()
            missing.em(X)
            records.append({"rows": n, "columns": d, "seed": seed, "seconds": time.process_time() - start})
        say(f"{n} rows, {d} columns")
    sizes = dict.fromkeys((r["rows"], r["columns"]) for r in records)
    cells = [
        [str(n), str(d), seconds_cell(min(r["seconds"] for r in records if (r["rows"], r["columns"]) == (n, d)))]
        for n, d in sizes
    ]
    note = f"{SHARE:.0%} missing completely at random, so that nearly every row has a pattern of its own; the least."
    return Part([Table("EM", ["rows", "columns", "seconds of the processor"], cells, (note,))], records)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.missing", description=__doc__)
    parser.add_argument("parts", nargs="*", help="of: accuracy, bias, speed (default all)")
    parser.add_argument("--sets", type=int, default=5, help="simulated sets of every kind (default 5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of missing.md and .json")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    parts: dict[str, Callable[[int], Part]] = {"accuracy": accuracy, "bias": bias, "speed": speed}
    for name in args.parts or parts:
        part = parts[name](args.sets)
        part.command = f"python -m benchmarks.missing {name} --sets {args.sets}"
        print(*(found.markdown() for found in part.tables), sep="\n")
        write("missing", {name: part}, list(parts), args.results, "Missing values")


if __name__ == "__main__":
    main()
