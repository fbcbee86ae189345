"""What interventions do for accuracy, beside GIES and IGSP: ``python -m benchmarks.interventions --peers PYTHON``.

The peers run in an environment of their own (``python -m venv``, ``pip install gies causaldag``), given by its
interpreter; without it there are only our rows.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vec2dag import ALIAS, Score, interventional_cpdag, simulate
from vec2dag.graph import one_dag

from .cells import Record, mean, median, number, seconds_cell
from .tables import RESULTS, Part, Table, say, write

NODES, DEGREE, ROWS, TARGETS = 10, 2, 1000, (0, 2, 5, 8, 10)
RUNNER = Path(__file__).parent / "run_interventions.py"
OURS = {"vec2dag, bic-nv": "bic-nv", "vec2dag, ebic-nv": "ebic-nv"}


def tables(sets: int) -> dict[str, tuple[simulate.Dataset, NDArray[np.int64]]]:
    """Tables in which rows are divided evenly among observation and interventions on 0, 2, ... of the nodes."""
    made = {}
    for seed in range(sets):
        rng = np.random.default_rng([seed, 21])
        order = rng.permutation(NODES)
        W = simulate.uniform_weights(simulate.erdos_renyi(NODES, DEGREE, rng), rng)
        for count in TARGETS:
            own = np.random.default_rng([seed, count, 21])
            targets = np.resize(np.array([-1, *order[:count]]), ROWS)
            said = [None if t < 0 else int(t) for t in targets]
            made[f"{seed}.{count}"] = (
                simulate.simulate(W, noise=simulate.unequal_gaussian, n=ROWS, rng=own, interventions=said),
                targets,
            )
    return made


def class_distance(true: NDArray[np.uint8], found: NDArray[np.uint8]) -> int:
    """Pairs of nodes that two essential graphs join differently."""
    differ = true != found
    return int(np.triu(differ | differ.T).sum())


def accuracy(sets: int, peers: str | None) -> Part:
    """Distances of classes, and scores, with interventions on more and more nodes."""
    data, records = tables(sets), []
    for key, (drawn, targets) in data.items():
        seed, count = map(int, key.split("."))
        for method, criterion in OURS.items():
            begin = time.process_time()
            said = drawn.meta["interventions"]
            model = ALIAS(criterion, random_state=seed, n_jobs=1).fit(drawn.X, interventions=said)
            seconds = time.process_time() - begin
            records.append(_record(key, method, drawn, targets, model.cpdag_, model.adjacency_matrix_, seconds))
        say(f"{count} targets, set {seed}")
    if peers is not None:
        records += _peers(peers, data)
    return Part([*_distances(records, sets), *_scores(records, sets)], records)


def _record(
    key: str,
    method: str,
    drawn: simulate.Dataset,
    targets: NDArray[np.int64],
    found: NDArray[np.uint8],
    A: NDArray[np.uint8],
    seconds: float,
) -> Record:
    seed, count = map(int, key.split("."))
    patterns = [() if t < 0 else (int(t),) for t in np.unique(targets)]
    said = drawn.meta["interventions"]
    score = Score(drawn.X, "linear", "bic-nv", interventions=said)
    return {
        "seed": seed,
        "targets": count,
        "method": method,
        "class": class_distance(interventional_cpdag(drawn.A, patterns), found),
        "shd": class_distance(drawn.A, A),
        "score": float(score(A)) * score.values / 2,
        "true score": float(score(drawn.A)) * score.values / 2,
        "seconds": seconds,
    }


def _peers(python: str, data: dict[str, tuple[simulate.Dataset, NDArray[np.int64]]]) -> list[Record]:
    """What others find, by another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "tables.npz", Path(folder) / "graphs.npz"
        arrays = {f"X{key}": drawn.X for key, (drawn, _) in data.items()}
        np.savez_compressed(given, **arrays, **{f"t{key}": targets for key, (_, targets) in data.items()})
        subprocess.run([python, str(RUNNER), str(given), str(found)], check=True)
        with np.load(found) as stored:
            graphs = dict(stored)
    records = []
    for name, C in graphs.items():
        key, method, *rest = name.split("|")
        if rest or np.isnan(C).any():
            continue
        drawn, targets = data[key]
        pattern = (C != 0).astype(np.uint8)
        A = one_dag(pattern)
        essential = interventional_cpdag(A, [() if t < 0 else (int(t),) for t in np.unique(targets)])
        seconds = float(graphs[f"{name}|seconds"])
        records.append(_record(key, method, drawn, targets, essential, A, seconds))
    return records


def _distances(records: list[Record], sets: int) -> list[Table]:
    rows = []
    for method in dict.fromkeys(r["method"] for r in records):
        row = [method]
        for what in ("class", "shd"):
            for count in TARGETS:
                own = [r for r in records if (r["method"], r["targets"]) == (method, count)]
                row.append(number(mean(own, what)) if own else "-")
        rows.append([*row, seconds_cell(median([r for r in records if r["method"] == method]))])
    columns = ["method", *(f"class, {k}" for k in TARGETS), *(f"SHD, {k}" for k in TARGETS), "seconds"]
    note = (
        f"ER-{DEGREE}, {NODES} nodes, {ROWS} rows divided evenly among observation and interventions on so many "
        f"nodes, one each, set to N(0, 1); noise variances from U(1, 2), weights +-U(0.5, 2), {sets} sets. Means of "
        "the distance between interventional essential graphs (pairs of nodes that are joined differently) and of the "
        "SHD of a DAG, which counts directions that are free; medians of seconds of one core. IGSP tests independence "
        "on observed rows alone, which become fewer here."
    )
    return [Table("Interventions", columns, rows, (note,))]


def _scores(records: list[Record], sets: int) -> list[Table]:
    best = {(r["seed"], r["targets"]): r["score"] for r in records if r["method"] == "vec2dag, bic-nv"}
    rows = []
    for method in dict.fromkeys(r["method"] for r in records):
        own = [r for r in records if r["method"] == method]
        behind = np.array([best[r["seed"], r["targets"]] - r["score"] for r in own])
        below = [r["score"] - r["true score"] for r in own]
        rows.append(
            [
                method,
                str(len(own)),
                f"{behind.mean():.2f}",
                str(int((behind > 1e-6).sum())),
                str(int((behind < -1e-6).sum())),
                str(int((np.array(below) < -1e-6).sum())),
            ]
        )
    columns = ["method", "tables", "nats behind, mean", "behind", "ahead", "below the true graph"]
    note = (
        "The bic-nv score of the DAG, n_i rows for node i and ln n for an edge, in units of the log-likelihood (half "
        "of what BIC counts), against that of vec2dag with bic-nv: on so many tables a method is behind it, or ahead."
    )
    return [Table("Scores", columns, rows, (note,))]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interventions", description=__doc__)
    parser.add_argument("--sets", type=int, default=10, help="simulated graphs (default 10)")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter of an environment with gies and causaldag")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of interventions.md and .json")
    args = parser.parse_args()
    part = accuracy(args.sets, args.peers)
    part.command = (
        f"python -m benchmarks.interventions --sets {args.sets}{' --peers PYTHON' * (args.peers is not None)}"
    )
    print(*(found.markdown() for found in part.tables), sep="\n")
    write("interventions", {"accuracy": part}, ["accuracy"], args.results, "Interventions")


if __name__ == "__main__":
    main()
