"""Score, distance to the truth and time beside other searches for linear Gaussian graphs, all with the same prices.

``python -m benchmarks.linear [simulated real] [--quick] [--flop FOLDER]``. Writes ``benchmarks/results/linear.md`` and
``linear.json`` after every run, and goes on from them when it is started again: runs of other packages are kept, those
of vec2dag as long as its code is the same.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray

from experiments.code import digests
from experiments.evaluate import consistent_extension
from experiments.methods import METHODS
from experiments.process import PEERS_PYTHON, execute
from vec2dag import BIC, Score, is_dag, metrics, simulate

from .cells import Record, median, number, seconds_cell, time_cell
from .tables import RESULTS, Part, Table, say, write

Array = NDArray[np.float64]
Graph = NDArray[np.uint8]
PARTS = ("simulated", "real")
# Differences of scores in units of BIC up to this are rounding.
SAME = 1e-3
SLOW_LIMIT = 100.0  # seconds for one run of a slow method at most
MISSING = "not installed"


@dataclass(frozen=True)
class Entry:
    """A method as it is run here.

    Attributes
    ----------
    label : str
        What the tables call it.
    method : str
        A name of :data:`experiments.methods.METHODS`.
    settings : callable
        Of the price of an edge in units of ln n: the keyword arguments.
    scored : bool
        Whether it looks for the graph with the highest score at this price.
    like : str
        Label of the method whose seconds are its time budget.
    slow : bool
        Whether it is run on fewer sets, and for a shorter time.
    """

    label: str
    method: str
    settings: Callable[[float], dict[str, Any]]
    scored: bool = True
    like: str = ""
    slow: bool = False


def _flop(restarts: int, slow: bool = False) -> Entry:
    def settings(price: float) -> dict[str, Any]:
        return {"lambda_bic": price, "restarts": restarts}

    return Entry(f"FLOP, {restarts} restarts", "flop", settings, slow=slow)


OURS = Entry("vec2dag", "vec2dag", lambda price: {"bic": {"discount": price}})
DEFAULT = Entry("vec2dag, ebic-nv", "vec2dag", lambda price: {"criterion": "ebic-nv"}, scored=False)
# Not run: a row of the tables.
TRUTH = Entry("the true DAG", "data", lambda price: {})


def _in_time_of(other: Entry) -> Entry:
    return Entry(f"{OURS.label}, time of {other.label}", OURS.method, OURS.settings, like=other.label)


IN_TIME = _in_time_of(_flop(100))
# Half the factor of ln n: causal-learn maximises half of BIC.
CAUSAL_LEARN = tuple(
    Entry(label, method, lambda price: {"lambda_value": price / 2}, slow=True)
    for label, method in (("BOSS", "boss"), ("GRaSP", "grasp"), ("GES", "ges"))
)


@dataclass(frozen=True)
class Case:
    """Data of one kind, and who is run on them.

    Attributes
    ----------
    name : str
    draw : callable
        Of a seed: the table and the true DAG, or None where nobody knows it.
    entries : sequence of Entry
        In this order: a time budget is known when the method that sets it has been run.
    price : float
        Of an edge, in units of ln n.
    sets : int
        Data sets, or seeds of the methods where there is one table.
    """

    name: str
    draw: Callable[[int], tuple[Array, Graph | None]]
    entries: Sequence[Entry]
    price: float = 1.0
    sets: int = 3


def simulated(quick: bool) -> Iterator[Case]:
    """Standardised data, so that variances tell nothing about directions."""
    kinds = [(50, 2, 2000), (100, 2, 2000), (200, 2, 2000), (30, 8, 1000), (50, 8, 1000), (500, 2, 2000)]
    for d, k, n in [(20, 2, 500), (15, 4, 500)] if quick else kinds:

        def draw(seed: int, d: int = d, k: int = k, n: int = n) -> tuple[Array, Graph | None]:
            data = simulate.linear_gaussian(d=d, k=k, n=n, rng=np.random.default_rng(seed)).standardise()
            return data.X, data.A

        # Ten restarts of FLOP on 500 nodes take a quarter of an hour.
        flop = _flop(0 if d >= 500 else 10)
        entries = (flop, OURS, _in_time_of(flop), DEFAULT, *(CAUSAL_LEARN if d <= 50 else ()))
        yield Case(f"ER-{k}, d = {d}, n = {n}", draw, entries, sets=1 if d >= 500 or quick else 3)


def real(quick: bool) -> Iterator[Case]:
    """Tables of scikit-learn, of which nobody knows the graph."""
    for name in ("wine",) if quick else ("breast_cancer", "wine", "diabetes"):

        def draw(seed: int, name: str = name) -> tuple[Array, Graph | None]:
            X = getattr(sklearn.datasets, f"load_{name}")().data
            return (X - X.mean(axis=0)) / X.std(axis=0), None

        for price in (1.0, 2.0):
            entries = (_flop(100), _flop(1000, slow=True), OURS, IN_TIME, *CAUSAL_LEARN)
            yield Case(name, draw, entries, price, sets=1 if quick else 5)


@dataclass
class Bench:
    """Runs what has no record yet.

    Attributes
    ----------
    python : Path
        Interpreter that has the other packages.
    paths : tuple of Path
        Folders in which they are looked for besides.
    limit : float
        Seconds for one run, the start of its process included.
    slow_sets : int
        Sets on which slow methods are run.
    sets : int, optional
        Sets on which any method is run at most.
    records : list of dict
        What is known.
    missing : set of str
        Methods that are not installed.
    """

    python: Path
    paths: tuple[Path, ...]
    limit: float
    slow_sets: int
    sets: int | None = None
    records: list[Record] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    def known(self, case: Case, label: str, seed: int) -> Record | None:
        """The record of a run."""
        wanted = (case.name, case.price, label, seed)
        return next((r for r in self.records if (r["data"], r["price"], r["method"], r["seed"]) == wanted), None)

    def run(self, case: Case) -> Iterator[Record]:
        """The runs of a case that are not known, one by one."""
        for seed in range(min(case.sets, self.sets or case.sets)):
            for entry in case.entries:
                model = self.known(case, entry.like, seed) or {}
                absent = entry.method in self.missing or (entry.slow and seed >= self.slow_sets)
                if absent or (entry.like and "seconds" not in model) or self.known(case, entry.label, seed):
                    continue
                record = self.measure(case, entry, seed, model.get("seconds"))
                if record.get("problem") == MISSING:
                    self.missing.add(entry.method)
                    say(f"{entry.label}: {MISSING}, left out")
                    continue
                self.records.append(record)
                yield record

    def measure(self, case: Case, entry: Entry, seed: int, budget: float | None = None) -> Record:
        """One run in a process of its own, with a time budget or without."""
        X, truth = case.draw(seed)
        record: Record = {"data": case.name, "price": case.price, "method": entry.label, "seed": seed}
        settings = entry.settings(case.price)
        settings |= {} if budget is None else {"time_budget": budget}
        own = METHODS[entry.method].own
        limit = min(self.limit, SLOW_LIMIT) if entry.slow else self.limit
        outcome = execute(
            entry.method, settings, seed, X, timeout=limit, peers=self.python, paths=self.paths, careful=True
        )
        record |= {"code": code()} if own else {}
        if outcome.status == "timeout":
            return record | {"seconds": limit, "problem": f"over {limit:.0f} s"}
        if outcome.status == "failed":
            gone = "No module named" in outcome.said or MISSING in outcome.said
            return record | {"problem": MISSING if gone else f"failed: {outcome.said[:80]}"}
        times = {key: outcome.facts[key] for key in ("seconds", "cpu_seconds")}
        return record | judge(X, truth, outcome.found["A"], case.price) | times


@cache
def code() -> str:
    """A digest of the code of the library."""
    return digests("vec2dag", {}, "dense-er8")["library"]


def judge(X: Array, truth: Graph | None, found: Graph, price: float) -> Record:
    """Edges, score in units of BIC, and distance to the truth of a DAG or of a CPDAG."""
    A = (np.asarray(found) != 0).astype(np.uint8)
    dag = A if is_dag(A) else consistent_extension(A)
    if dag is None:
        return {"problem": "no DAG has these edges"}
    score = Score(X - X.mean(axis=0), "linear", BIC(discount=price), n_jobs=1)
    record: Record = {"edges": int(dag.sum()), "score": float(score(dag)) * X.size}
    if truth is not None:
        record |= {"cpdag_shd": int(metrics.cpdag_shd(truth, dag)), "score_truth": float(score(truth)) * X.size}
    return record


def table(title: str, cases: Sequence[Case], records: Sequence[Record], notes: Sequence[str]) -> Table:
    """A row for every method on every kind of data: medians, and what is below the best score that anybody found."""
    rows = []
    for case in cases:
        here = [r for r in records if (r["data"], r["price"]) == (case.name, case.price)]
        scored = {entry.label for entry in case.entries if entry.scored}
        # Without a truth all seeds have the same table.
        of = {r["seed"]: r["seed"] if "score_truth" in r else -1 for r in here}
        best: dict[int, float] = {}
        for r in here:
            if "score" in r and r["method"] in scored:
                best[of[r["seed"]]] = max(r["score"], r.get("score_truth", -np.inf), best.get(of[r["seed"]], -np.inf))
        truths = {r["seed"]: r["score_truth"] for r in here if "score_truth" in r}
        true = [{"score": score, "seed": seed, "cpdag_shd": 0, "method": TRUTH.label} for seed, score in truths.items()]
        for entry in (*case.entries, TRUTH):
            mine = [r for r in [*here, *true] if r["method"] == entry.label]
            if not mine:
                continue
            lost = [max(0.0, best[of[r["seed"]]] - r["score"]) for r in mine if "score" in r and entry.scored]
            rows.append(
                [
                    case.name,
                    f"{case.price:g} ln n" if entry.scored else "own",
                    entry.label,
                    number(median(mine, "score")) if entry.scored else "-",
                    number(float(np.median(lost)), 2) if lost else "-",
                    number(max(lost), 2) if lost else "-",
                    f"{sum(x <= SAME for x in lost)} of {len(mine)}" if entry.scored else f"- of {len(mine)}",
                    number(median(mine, "cpdag_shd")),
                    number(median(mine, "edges"), 0),
                    time_cell(mine),
                    seconds_cell(median(mine, "cpu_seconds")),
                ]
            )
    columns = ("data", "price", "method", "score", "below the best", "at worst", "best", "CPDAG", "edges", "s", "CPU s")
    return Table(title, columns, rows, notes)


NOTE = (
    "Medians over as many sets, or seeds of a method on one table, as the column `best` says. Scores are BIC, higher "
    "is better, of a DAG of the class that a method returned; `below the best` is what is missing to the best score "
    "that any method of the table, or the truth, has at this price on the same set; `best` counts the runs that "
    "reached it. One thread; compiled code is loaded before the clock starts. `CPU s` are processor seconds, without "
    "what else the machine was doing. `> ` marks runs that were stopped by the clock, after {limit:.0f} s or, of slow "
    "methods, {slow:.0f} s."
)
KINDS = {
    "simulated": (simulated, "Simulated, standardised"),
    "real": (real, "Tables without a known graph"),
}


def shared(records: Sequence[Record]) -> str:
    """How much of the machine the runs had, which limits and budgets by the clock depend on."""
    ratios = [r["seconds"] / r["cpu_seconds"] for r in records if r.get("cpu_seconds", 0.0) > 0.1]
    return f"By the clock runs took {np.median(ratios):.1f} times their processor seconds." if ratios else ""


def load(file: Path, part: str) -> list[Record]:
    """Records of before; those of this library only if its code is the same."""
    kept = json.loads(file.read_text()).get(part, {}).get("records", []) if file.exists() else []
    return [record for record in kept if record.get("code", code()) == code()]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: both")
    parser.add_argument("--quick", action="store_true", help="one small set of every kind; writes nothing")
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--flop", type=Path, help="folder of flopsearch, if the interpreter does not find it")
    python = PEERS_PYTHON if PEERS_PYTHON.exists() else Path(sys.executable)
    parser.add_argument("--peers-python", type=Path, default=python, help="interpreter that has the other packages")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one run (default 180)")
    parser.add_argument("--sets", type=int, help="sets or seeds at most (default: 3, 5 of tables without a graph)")
    parser.add_argument("--slow-sets", type=int, default=1, help="sets for slow methods (default 1)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of linear.md and linear.json")
    args = parser.parse_args()
    paths = () if args.flop is None else (args.flop.resolve(),)
    bench = Bench(args.peers_python, paths, args.limit, args.slow_sets, args.sets)
    for name in args.parts or PARTS:
        source, title = KINDS[name]
        cases = list(source(args.quick))
        bench.records = [] if args.fresh or args.quick else load(args.results / "linear.json", name)
        notes = [NOTE.format(limit=args.limit, slow=min(args.limit, SLOW_LIMIT))]

        def part(name: str = name, title: str = title, cases: list[Case] = cases, notes: list[str] = notes) -> Part:
            absent = f"Not installed: {', '.join(sorted(bench.missing))}." if bench.missing else ""
            found = table(title, cases, bench.records, [*notes, *filter(None, (shared(bench.records), absent))])
            return Part([found], bench.records, f"python -m benchmarks.linear {name}")

        for case in cases:
            for record in bench.run(case):
                say(", ".join(f"{key} {value}" for key, value in record.items() if key != "code"))
                if not args.quick:
                    write("linear", {name: part()}, PARTS, args.results, "Linear Gaussian graphs")
        print(part().tables[0].markdown())
        if not args.quick:
            write("linear", {name: part()}, PARTS, args.results, "Linear Gaussian graphs")


if __name__ == "__main__":
    main()
