"""Nonlinear regressions side by side: how far the graphs are from the truth, before and after pruning, and how long.

``python -m benchmarks.nonlinear [decisions choose report sachs rows speed]``. Prices were chosen on the sets of
``choose`` and the first sets of ``decisions``; the others played no part in it, but for the second GP set, on whose
likelihoods the places of landmarks were chosen. The sets of the paper are read from a folder of their own.
What is found is kept in ``nonlinear.json`` at once, and a run that was stopped goes on from there.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from vec2dag import ALIAS, Additive, GaussianProcess, LearnedProcess, Score, datasets, metrics, simulate
from vec2dag._parallel import one_blas_thread
from vec2dag.prune import prune_cam, prune_ci

from .cells import Record, mean, median
from .tables import RESULTS, ROOT, Part, Table, peak_memory_mb, say, write

Data = tuple[NDArray[np.float64], NDArray[np.uint8]]

REGRESSIONS: dict[str, Any] = {
    "gp": GaussianProcess(),
    "gp-auto": LearnedProcess(),
    "gp-auto, freedom": LearnedProcess("freedom"),
    "gp-auto, edges": LearnedProcess("edges"),
    "additive": Additive(),
    "additive, freedom": Additive(price="freedom"),
}


# --- data -----------------------------------------------------------------------------------------------------


def hill(A: NDArray[np.uint8], E: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Regulation as simulators of gene expression have it: products of Hill functions of the regulators, and noise.

    Every regulator activates or represses, with an exponent of 1 to 4 and half of the effect at its median; the
    deviation of the effect of all of them is twice that of the noise.
    """

    def draw(parents: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        rate = np.ones(len(parents))
        for x in parents.T:
            level, power = expit(x) / expit(np.median(x)), rng.uniform(1.0, 4.0)
            activation = level**power / (1.0 + level**power)
            rate *= activation if rng.random() < 0.7 else 1.0 - activation
        return 2.0 * (rate - rate.mean()) / (rate.std() or 1.0)

    return simulate.ancestral(A, E, rng, draw)


def drawn(mechanism: Callable[..., Any], seed: int, d: int = 10, k: float = 2, n: int = 1000) -> Data:
    """A table of a random graph of ``d`` nodes with ``k`` parents on average."""
    rng = np.random.default_rng(seed)
    data = simulate.simulate(simulate.erdos_renyi(d, k, rng), mechanism, n=n, rng=rng)
    return data.X, data.A


def stored(folder: Path, name: str, number: int) -> Data:
    """A set of the paper."""
    data = datasets.load_grandag(folder / name, number)
    return data.X, data.A


def preset(name: str, seed: int) -> Data:
    """A set of the simulator."""
    data = simulate.preset(name, seed=seed)
    return data.X, data.A


def choose_sets(folder: Path) -> Iterator[tuple[str, int, Data]]:
    """What defaults were chosen on."""
    yield "GP", 1, stored(folder, "gp", 1)
    yield "PNL-GP", 1, stored(folder, "pnl_gp", 1)
    yield "additive GP, ER-2", 100, drawn(simulate.additive_gaussian_process, 100)


def report_sets(folder: Path) -> Iterator[tuple[str, int, Data]]:
    """What they were not chosen on; one set of every kind after the other."""
    for q in range(4):
        yield "GP", q + 2, stored(folder, "gp", q + 2)
        yield "PNL-GP", q + 2, stored(folder, "pnl_gp", q + 2)
        yield "MLP, ER-4", q, preset("mlp-er4", q)
        yield "additive GP, ER-2", q, drawn(simulate.additive_gaussian_process, q)
        yield "GP, ER-2", q, drawn(simulate.gaussian_process, q)
        yield "Hill, ER-2", q, drawn(hill, q)


# --- parts ----------------------------------------------------------------------------------------------------


def decisions(args: argparse.Namespace) -> Iterator[Part]:
    """Single decisions at the true graph, a hundredth of a search: what would a score add, leave out, reverse?"""
    kinds: dict[str, Callable[[int], Data]] = {
        "GP": lambda q: stored(args.data, "gp", q + 1),
        "PNL-GP": lambda q: stored(args.data, "pnl_gp", q + 1),
        "MLP, ER-4": lambda q: preset("mlp-er4", q),
        "additive GP, ER-2": lambda q: drawn(simulate.additive_gaussian_process, q),
        "GP, ER-2": lambda q: drawn(simulate.gaussian_process, q),
        "Hill, ER-2": lambda q: drawn(hill, q),
    }
    labels = [label for label in REGRESSIONS if not args.only or label in args.only]
    records = known(args, "decisions")
    for number in range(args.sets):
        for name, draw in kinds.items():
            X, A = draw(number)
            for label in labels:
                if not any((r["data"], r["set"], r["regression"]) == (name, number, label) for r in records):
                    say(f"decisions: {name} {number}, {label}")
                    found = decide(X, A, REGRESSIONS[label], np.random.default_rng(number))
                    records.append({"data": name, "set": number, "regression": label, **found})
                    yield decided(records)
    yield decided(records)


def decide(X: NDArray[np.float64], A: NDArray[np.uint8], regression: Any, rng: np.random.Generator) -> Record:
    """Fifteen random nodes with a random parent, another node that is none of its descendants, and a reversed edge."""
    score = Score(X - X.mean(axis=0), regression, "bic-nv", n_jobs=1)
    n, d = X.shape
    below = np.linalg.matrix_power(np.eye(d) + A, d) > 0
    count = {f"{what}_{of}": 0 for what in ("added", "lost", "reversed") for of in ("wrong", "asked")}

    def price(node: int, parents: set[int]) -> float:
        return n * float(np.log(score.local(node, parents))) + len(parents) * float(np.log(n))

    def ask(what: str, wrong: bool) -> None:
        count[f"{what}_asked"] += 1
        count[f"{what}_wrong"] += wrong

    start = time.process_time()
    with one_blas_thread():
        for node in rng.integers(d, size=15).tolist():
            parents = set(np.flatnonzero(A[:, node]).tolist())
            whole = price(node, parents)
            if others := [v for v in range(d) if not below[node, v] and v not in parents]:
                ask("added", price(node, parents | {int(rng.choice(others))}) < whole)
            if parents:
                parent = int(rng.choice(sorted(parents)))
                without = price(node, parents - {parent})
                ask("lost", without < whole)
                theirs = set(np.flatnonzero(A[:, parent]).tolist())
                # Reversing makes no cycle if there is no other way from the parent to the node.
                if not any(below[parent, p] for p in parents - {parent}):
                    reverse = price(parent, theirs | {node}) - price(parent, theirs)
                    ask("reversed", without + reverse < whole)
    return count | {"fits": score.local.fits, "seconds": time.process_time() - start}


def decided(records: list[Record]) -> Part:
    """The sets that prices were chosen on, and the others."""
    first, others = ([r for r in records if (r["set"] > 0) == chosen] for chosen in (False, True))
    return Part([wrong("Sets that prices were chosen on", first), wrong("Other sets", others)], records)


def wrong(title: str, records: list[Record]) -> Table:
    """Wrong of asked, by data and regression."""
    rows = []
    for name in dict.fromkeys(r["data"] for r in records):
        for label in REGRESSIONS:
            mine = [r for r in records if r["data"] == name and r["regression"] == label]
            if mine:
                total = {key: sum(r[key] for r in mine) for key in mine[0] if key not in ("data", "set", "regression")}
                cells = [f"{total[f'{q}_wrong']} of {total[f'{q}_asked']}" for q in ("added", "lost", "reversed")]
                rows.append([name, str(len(mine)), label, *cells, f"{1e3 * total['seconds'] / total['fits']:.0f}"])
    columns = ("data", "sets", "regression", "false parent added", "true one lost", "edge reversed", "CPU ms a fit")
    notes = (
        "At the true parents of random nodes, by `bic-nv`: is a node that is no descendant worth its price, is a "
        "parent not, is its edge better reversed? Wrong decisions of those asked for.",
    )
    return Table(title, columns, rows, notes)


def run(X: NDArray[np.float64], A: NDArray[np.uint8], regression: Any, **options: Any) -> Record:
    """One fit of the estimator on one core, compared before and after pruning."""
    start = time.process_time()
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        model = ALIAS(**{"regression": regression, "prune": None, "random_state": 0, "n_jobs": 1, **options}).fit(X)
        seconds = time.process_time() - start
        G = model.adjacency_matrix_
        found = {"": G, "cam_": prune_cam(X, G), "ci_": prune_ci(X, G)}
    record: Record = {"true_edges": int(A.sum()), "fits": model.search_.fits, "seconds": seconds}
    for name, graph in found.items():
        record |= {f"{name}shd": metrics.shd(A, graph), f"{name}edges": int(graph.sum())}
        record[f"{name}correct"] = int((A * graph).sum())
    return record | {"graph": G.tolist()}


def known(args: argparse.Namespace, part: str) -> list[Record]:
    """What an earlier run found."""
    file = args.results / "nonlinear.json"
    return json.loads(file.read_text()).get(part, {}).get("records", []) if file.exists() else []


def compare(args: argparse.Namespace, part: str, sets: Iterator[tuple[str, int, Data]]) -> Iterator[Part]:
    """Every regression on every set, as a table after each."""
    records = known(args, part)
    done = {(r["data"], r["set"], r["regression"]) for r in records}
    for name, number, (X, A) in sets:
        for label, regression in REGRESSIONS.items():
            if (name, number, label) in done or (args.only and label not in args.only):
                continue
            records.append({"data": name, "set": number, "regression": label, **run(X, A, regression)})
            last = records[-1]
            say(f"{name} {number}, {label}: " + ", ".join(f"{k} {v}" for k, v in last.items() if k != "graph"))
            yield Part([compared(records)], records)
    yield Part([compared(records)], records)


def compared(records: list[Record]) -> Table:
    """Means over the sets of a kind that all of its regressions have seen."""
    rows = []
    for name in dict.fromkeys(r["data"] for r in records):
        mine = [r for r in records if r["data"] == name]
        labels = [label for label in REGRESSIONS if any(r["regression"] == label for r in mine)]
        seen = [{r["set"] for r in mine if r["regression"] == label} for label in labels]
        common = set.intersection(*seen)
        for label in labels:
            found = [r for r in mine if r["regression"] == label and r["set"] in common]
            if found:
                cells = [f"{mean(found, key):.1f}" for key in ("true_edges", "edges", "shd", "cam_shd", "ci_shd")]
                rows.append([name, str(len(common)), label, *cells, f"{mean(found, 'fits'):.0f}"])
                rows[-1].append(f"{median(found):.0f}")
    columns = ("data", "sets", "regression", "true edges", "edges", "SHD", "after CAM", "after CI", "fits", "CPU s")
    notes = (
        "`ALIAS(regression=..., prune=None, random_state=0)` with the default criterion, 10 nodes, 1000 rows; means "
        "over sets, medians of CPU seconds. Hill: products of Hill functions, as in simulators of gene expression.",
    )
    return Table("Regressions", columns, rows, notes)


def choose(args: argparse.Namespace) -> Iterator[Part]:
    """The sets that prices were chosen on."""
    yield from compare(args, "choose", choose_sets(args.data))


def report(args: argparse.Namespace) -> Iterator[Part]:
    """Other sets."""
    yield from compare(args, "report", report_sets(args.data))


def sachs(args: argparse.Namespace) -> Iterator[Part]:
    """The protein data, as they are and standardised, without settings."""
    data = datasets.load_sachs()
    records = known(args, "sachs")
    done = {(r["regression"], r["standardised"]) for r in records}
    for label in ("gp-auto", "additive", "additive, freedom", "gp-auto, freedom", "gp"):
        for standardised in (False, True):
            if (label, standardised) not in done and not (args.only and label not in args.only):
                X = data.X / data.X.std(axis=0) if standardised else data.X
                records.append(
                    {"regression": label, "standardised": standardised, **run(X, data.A, REGRESSIONS[label])}
                )
                say(", ".join(f"{k} {v}" for k, v in records[-1].items() if k != "graph"))
            rows = [
                [
                    r["regression"],
                    "yes" if r["standardised"] else "no",
                    *(f"{r[f'{q}shd']} ({r[f'{q}correct']} of {r[f'{q}edges']})" for q in ("", "cam_", "ci_")),
                    str(r["fits"]),
                    f"{r['seconds']:.0f}",
                ]
                for r in records
            ]
            columns = ("regression", "standardised", "SHD", "after CAM", "after CI", "fits", "CPU s")
            note = "17 edges in the consensus graph; in brackets correct edges of those found."
            yield Part([Table("Sachs, 853 rows", columns, rows, (note,))], records)


def rows(args: argparse.Namespace) -> Iterator[Part]:
    """Many rows: time and memory."""
    X, A = drawn(simulate.mlp, 0, n=10_000)
    record = {"n": len(X), **run(X, A, "gp-auto", n_jobs=2)}
    record["memory"] = peak_memory_mb()
    cells = [str(record[key]) for key in ("n", "true_edges", "shd", "cam_shd", "fits")]
    line = [*cells, f"{record['seconds']:.0f}", f"{record['memory']:.0f}"]
    columns = ("rows", "true edges", "SHD", "after CAM", "fits", "CPU s of all threads", "memory, MB")
    yield Part([Table("gp-auto on 10 nodes, MLP, ER-2", columns, [line])], [record])


def speed(args: argparse.Namespace) -> Iterator[Part]:
    """One regression, and how two threads share them."""
    X, _ = drawn(simulate.gaussian_process, 0)
    records: list[Record] = []
    for k in (1, 2, 3, 5, 8):
        sets = [(i, [(i + q) % 10 for q in range(1, k + 1)]) for i in range(10)]
        for label in ("gp", "gp-auto", "additive"):
            local = Score(X, REGRESSIONS[label], n_jobs=1).local
            start = time.process_time()
            local.batch(sets)
            records.append({"parents": k, "regression": label, "seconds": (time.process_time() - start) / 10})
    lines = [
        [str(k), *(f"{1e3 * r['seconds']:.1f}" for r in records if r["parents"] == k)]
        for k in dict.fromkeys(r["parents"] for r in records)
    ]
    note = "n = 1000, one thread, CPU time, means of ten regressions."
    yield Part([Table("Milliseconds a regression", ("parents", "gp", "gp-auto", "additive"), lines, (note,))], records)


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Part]]] = {
    "decisions": decisions,
    "choose": choose,
    "report": report,
    "sachs": sachs,
    "rows": rows,
    "speed": speed,
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the shared sets")
    parser.add_argument("--sets", type=int, default=3, help="of each kind, for decisions (default 3)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the regressions")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of nonlinear.md and nonlinear.json")
    args = parser.parse_args()
    for name in args.parts or PARTS:
        for part in PARTS[name](args):
            part.command = f"python -m benchmarks.nonlinear {name}"
            write("nonlinear", {name: part}, PARTS, args.results, "Nonlinear regressions")
        print(*(table.markdown() for table in part.tables), sep="\n")


if __name__ == "__main__":
    main()
