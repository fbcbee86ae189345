"""Networks of categories beside pgmpy and causal-learn, and tables of numbers and categories.

``python -m benchmarks.discrete [PART ...] [--python PYTHON]``: ``numbers`` (BDeu of random graphs beside pgmpy's),
``networks`` (scores, distances and seconds of searches), ``mixed`` (which needs nobody else). PYTHON is an interpreter
that has pgmpy and causal-learn; ``make peers-discrete`` makes one. Writes ``benchmarks/results/discrete.md`` and
``discrete.json``; what other packages find is kept in ``build/discrete``, so that a run that was stopped goes on.
"""

import argparse
import json
import resource
import signal
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import ALIAS, BDeu, DataWarning, Score, cpdag, simulate, topological_order
from vec2dag.columns import Coded, Columns, coded

from .tables import RESULTS, ROOT, Part, Table, say, write

RUNNER = Path(__file__).with_name("run_discrete.py")
# Tables, and graphs that other packages found in them; without this folder everything is made anew.
KEPT = ROOT / "build" / "discrete"
PEERS = ("pgmpy HillClimb", "pgmpy GES", "causal-learn GES")
PRIOR = 10.0


class Networks:
    """Tables of networks, and what other packages find in them, which is kept: a run that was stopped goes on."""

    def __init__(self, python: Path, limit: float, names: list[str] | None) -> None:
        self.python, self.limit = python, limit
        self.file, self.found = KEPT / "networks.json", KEPT / "searches.jsonl"
        KEPT.mkdir(parents=True, exist_ok=True)
        if not self.file.exists():
            say("tables of the networks, and BDeu of random graphs by pgmpy")
            subprocess.run([python, RUNNER, "tables", self.file], check=True, capture_output=True)
        content = json.loads(self.file.read_text())
        self.content: dict[str, Any] = {name: content[name] for name in names or content}

    def table(self, name: str, rows: str) -> Coded:
        """Of a network, all columns categories."""
        names = self.content[name]["names"]
        X = np.array(self.content[name]["tables"][rows], dtype=object)
        return coded(X, range(len(names)), names)

    def search(self, name: str, rows: str, method: str) -> dict[str, Any]:
        """The graph that another package finds, and its seconds; why not if it does not."""
        key = [name, rows, method]
        lines = self.found.read_text().splitlines() if self.found.exists() else []
        for line in map(json.loads, lines):
            if line["key"] == key and ("edges" in line["run"] or line["limit"] >= self.limit):
                return dict(line["run"])
        if not self.limit:
            return {"problem": "not run"}
        run = self._run([self.python, RUNNER, "search", name, rows, method, self.file])
        with self.found.open("a") as out:
            out.write(json.dumps({"key": key, "limit": self.limit, "run": run}) + "\n")
        return run

    def _run(self, command: list[Any]) -> dict[str, Any]:
        limit = int(self.limit)
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"problem": f"over {limit} s"}
        if done.returncode < 0:
            raise RuntimeError(f"signal {-done.returncode} ended {command}")
        if done.returncode:
            return {"problem": done.stderr.strip().splitlines()[-1][:80]}
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def distance(A: NDArray[Any], B: NDArray[Any]) -> int:
    """Pairs whose edges differ between the equivalence classes of two DAGs."""
    P, Q = cpdag(A), cpdag(B)
    differ = (P != Q) | (P != Q).T
    return int(np.triu(differ, 1).sum())


def numbers(networks: Networks) -> Part:
    """BDeu of random graphs, ours and pgmpy's."""
    rows, records = [], []
    for name, content in networks.content.items():
        score = Score(networks.table(name, "1000"), criterion=BDeu(PRIOR))
        ours = [float(score(graph["A"])) * score.n * score.d / 2 for graph in content["graphs"]]
        theirs = [graph["bdeu"] for graph in content["graphs"]]
        apart = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
        records.append({"network": name, "graphs": len(ours), "relative": apart})
        rows.append([name, str(len(ours)), f"{apart:.1e}"])
        say(" | ".join(rows[-1]))
    note = f"Equivalent sample size {PRIOR:g}, 1,000 rows, up to 4 parents."
    title, columns = "BDeu of random graphs beside pgmpy's", ("network", "graphs", "largest relative difference")
    return Part([Table(title, columns, rows, (note,))], records)


def searches(networks: Networks) -> Part:
    """Scores, distances and seconds, side by side."""
    rows, records = [], []
    for name, content in networks.content.items():
        for n in content["tables"]:
            X, truth = networks.table(name, n), np.array(content["A"])
            score = Score(X, criterion=BDeu(PRIOR))
            scale = score.n * score.d / 2
            # Of a column that is constant in so few rows nothing can be said: it has no edges.
            varying = np.flatnonzero([len(levels or ()) > 1 for levels in X.columns.levels])
            found: dict[str, dict[str, Any]] = {}
            for label, criterion in (("vec2dag", BDeu(PRIOR)), ("vec2dag default", "auto")):
                begin, processor = time.perf_counter(), time.process_time()
                model = ALIAS(criterion, random_state=0).fit(X.taken(varying))
                edges = varying[np.argwhere(model.adjacency_matrix_)].tolist()
                seconds = time.perf_counter() - begin
                found[label] = {"edges": edges, "seconds": seconds, "processor": time.process_time() - processor}
            found |= {method: networks.search(name, n, method) for method in PEERS}
            cells = [name, n]
            for method, run in found.items():
                if "edges" in run:
                    A = np.zeros_like(truth)
                    A[tuple(np.array(run["edges"], dtype=int).reshape(-1, 2).T)] = 1
                    run |= {"score": float(score(A)) * scale, "distance": distance(truth, A), "count": int(A.sum())}
                    cells.append(f"{run['score']:.1f} / {run['distance']} / {run['processor']:.1f}")
                else:
                    cells.append(run["problem"])
                records.append({"network": name, "rows": int(n), "method": method} | run)
            best = max((found[method].get("score", -np.inf) for method in PEERS), default=-np.inf)
            cells.append("yes" if found["vec2dag"]["score"] >= best - 1e-6 else "NO")
            rows.append(cells)
            say(" | ".join(cells))
    columns = ("network", "rows", "vec2dag, prior 10", "vec2dag, default", *PEERS, "none above")
    notes = (
        "Log BDeu with a prior of 10 rows / pairs that differ from the CPDAG of the network / seconds of processor. "
        "The default has a prior of one row, and its score here is that of its graph under the prior of ten. The last "
        "column: no other score, of those that there are, is above that of the first.",
    )
    return Part([Table("Searches beside pgmpy and causal-learn", columns, rows, notes)], records)


def additive(parents: list[NDArray[np.float64]], sizes: list[int], rng: np.random.Generator) -> NDArray[np.float64]:
    """A sum of effects of parents (n,): a slope for a number, a shift for each level of a category."""
    total = np.zeros(len(parents[0]))
    for values, size in zip(parents, sizes, strict=True):
        if size == 1:
            total += rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) * values
        else:
            total += (rng.choice([-1, 1], size) * rng.uniform(0.5, 1.5, size))[values.astype(int)]
    return total


def lee_hastie(
    parents: list[NDArray[np.float64]], sizes: list[int], size: int, n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A column given its parents: a number is a sum of their effects and noise, a category a softmax of such sums."""
    if size == 1:
        mean = additive(parents, sizes, rng) if parents else np.zeros(n)
        return mean + rng.uniform(0.5, 1.0) * rng.standard_normal(n)
    logits = [2.0 * additive(parents, sizes, rng) if parents else np.zeros(n) for _ in range(size)]
    return np.argmax(np.array(logits) + rng.gumbel(size=(size, n)), axis=0).astype(np.float64)


def conditional_gaussian(
    parents: list[NDArray[np.float64]], sizes: list[int], size: int, n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A column given its parents: its regression, or its probabilities, differ with every configuration of categories.

    Parents that are numbers are cut into three intervals where the column is a category.
    """
    if not parents:
        return rng.standard_normal(n) if size == 1 else rng.integers(0, size, n).astype(np.float64)
    codes = [v if r > 1 else cut(v[:, None])[:, 0] for v, r in zip(parents, sizes, strict=True) if r > 1 or size > 1]
    _, which = np.unique(np.array(codes), axis=1, return_inverse=True) if codes else (None, np.zeros(n, int))
    which = which.ravel()
    out = np.empty(n)
    for configuration in range(which.max() + 1):
        rows = np.flatnonzero(which == configuration)
        if size > 1:
            out[rows] = rng.choice(size, len(rows), p=rng.dirichlet(np.full(size, 0.7)))
        else:
            out[rows] = rng.uniform(-1.5, 1.5) + rng.uniform(0.5, 1.0) * rng.standard_normal(len(rows))
            for values, r in zip(parents, sizes, strict=True):
                if r == 1:
                    out[rows] += rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) * values[rows]
    return out


SIMULATIONS = {"Lee & Hastie": lee_hastie, "conditional Gaussian": conditional_gaussian}


def mixed_table(kind: str, d: int, n: int, seed: int) -> tuple[Coded, NDArray[np.uint8]]:
    """A table of d columns, half of them categories of 2 to 4 levels, and its graph, ER-1; all levels occur."""
    rng = np.random.default_rng(seed)
    A = simulate.erdos_renyi(d, 1, rng)
    sizes = np.where(rng.permutation(d) < d // 2, rng.integers(2, 5, d), 1)
    values = np.zeros((n, d))
    for j in topological_order(A):
        given = np.flatnonzero(A[:, j])
        parents = [_standardised(values[:, p]) if sizes[p] == 1 else values[:, p] for p in given]
        values[:, j] = SIMULATIONS[kind](parents, [int(sizes[p]) for p in given], int(sizes[j]), n, rng)
    numeric = Coded(values, Columns.numeric([f"x{j}" for j in range(d)]))
    return numeric.with_categories([f"x{j}" for j in np.flatnonzero(sizes > 1)]), A


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (values - values.mean()) / values.std()


def cut(X: NDArray[np.float64], parts: int = 3) -> NDArray[np.float64]:
    """Columns (n, d) as numbers of intervals with equally many rows."""
    edges = np.quantile(X, np.arange(1, parts) / parts, axis=0)
    return (X[None] > edges[:, None]).sum(axis=0).astype(np.float64)


# Intervals with equally many rows that numbers are cut into, in place of a score of both.
CUTS = (2, 3, 4)


def mixed(seeds: int) -> Part:
    """F1 of the CPDAG beside treating codes as numbers, and beside discretising."""
    rows, records = [], []
    for kind in SIMULATIONS:
        for n in (500, 2000):
            scores: dict[str, list[float]] = {}
            for seed in range(seeds):
                table, A = mixed_table(kind, 20, n, seed)
                tables = {"degenerate Gaussian": table, "codes as numbers": table.values}
                category = table.columns.categorical
                for parts in CUTS:
                    cuts = table.values.copy()
                    cuts[:, ~category] = cut(table.values[:, ~category], parts)
                    tables[f"numbers cut in {parts}"] = coded(cuts, range(20))
                for label, X in tables.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", DataWarning)
                        model = ALIAS(random_state=0).fit(X)
                    value = f1(cpdag(A), model.cpdag_)
                    scores.setdefault(label, []).append(value)
                    records.append({"simulation": kind, "rows": n, "seed": seed, "method": label, "f1": value})
            rows.append([kind, str(n), *(f"{np.mean(values):.3f}" for values in scores.values())])
            say(" | ".join(rows[-1]))
    labels = [f"numbers cut in {parts} (bdeu)" for parts in CUTS]
    columns = ("simulation", "rows", "degenerate Gaussian (auto)", "codes as numbers (ebic-nv)", *labels)
    note = (
        "After the two simulations of Andrews, Ramsey & Cooper (2019): 20 columns, half of them categories of 2 to 4 "
        f"levels, ER-1; mean F1 of {seeds} tables, over pairs: right if both CPDAGs have the edge with the same "
        "direction, or free in both. In the second simulation slopes, and their signs, differ from level to level, "
        "which a degenerate Gaussian cannot see and tables of counts can: numbers are better cut into intervals there."
    )
    return Part([Table("Numbers and categories together", columns, rows, (note,))], records)


def f1(true: NDArray[np.uint8], found: NDArray[np.uint8]) -> float:
    """Of the pairs of two CPDAGs: right where there is an edge in both, with the same direction or none."""
    same = (true == found) & (true == found).T & ((true | true.T) == 1)
    right = int(np.triu(same, 1).sum())
    of_true, of_found = (int(np.triu(P | P.T, 1).sum()) for P in (true, found))
    return 2 * right / max(of_true + of_found, 1)


PARTS = ("numbers", "networks", "mixed")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discrete", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--python", type=Path, default=Path(".venv-discrete/bin/python"), help="has the other packages")
    parser.add_argument("--networks", nargs="+", metavar="NAME", help="these only")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=200.0, help="seconds for a search of a peer; 0: kept ones only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    for name in args.parts or PARTS:
        if name == "mixed":
            part = mixed(args.seeds)
        else:
            networks = Networks(args.python, args.limit, args.networks)
            part = numbers(networks) if name == "numbers" else searches(networks)
        part.command = f"python -m benchmarks.discrete {name}"
        for table in part.tables:
            print(table.markdown())
        write("discrete", {name: part}, PARTS, args.results, "Categories, and numbers and categories together")


if __name__ == "__main__":
    main()
