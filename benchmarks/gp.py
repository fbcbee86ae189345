"""Gaussian-process scores: speed and agreement with scikit-learn, approximation, workers, and the paper's data.

``python -m benchmarks.gp [fits rows workers searches sets sachs large]``; the sets of the paper are read from a folder
of their own.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from vec2dag import ALIAS, GaussianProcess, Score, datasets, discover, metrics, simulate
from vec2dag._parallel import one_blas_thread
from vec2dag.prune import prune_cam, prune_ci
from vec2dag.scores import Regression
from vec2dag.search.budget import Budget
from vec2dag.search.certify import certify
from vec2dag.search.descent import LocalDescent
from vec2dag.search.exact import exact_search

from .cells import Record, mean, median, yes
from .tables import RESULTS, ROOT, Part, Table, say, write

Sets = Iterator[tuple[int, NDArray[np.float64], NDArray[np.uint8]]]
# Of the paper: standardised, each set of parents divided by its median distance, hardly any noise.
SACHS = GaussianProcess(alpha=1e-8, median_scale=True)


def stored(folder: Path, name: str) -> Sets:
    """Number, table and true DAG of the sets of one kind."""
    for number in range(1, 6):
        data = datasets.load_grandag(folder / name, number)
        yield number, data.X, data.A


def simulated(preset: str) -> Sets:
    """The same from a preset of the simulator."""
    for seed in range(5):
        data = simulate.preset(preset, seed=seed)
        yield seed, data.X, data.A


def protein() -> Sets:
    """The bundled set of Sachs et al."""
    data = datasets.load_sachs()
    yield 0, data.X, data.A


# --- one fit --------------------------------------------------------------------------------------------------


def compare_fit(X: NDArray[np.float64], node: int, parents: list[int]) -> Record:
    """Ours and scikit-learn's on one set of parents, both on one thread, one after the other."""
    Z, y = X[:, parents], X[:, node]
    start = time.perf_counter()
    ours = GaussianProcess().fit(Z, y)
    middle = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GaussianProcessRegressor(RBF(length_scale_bounds=(1, 1e5)), alpha=1).fit(Z, y)
        residual = float(((y - theirs.predict(Z)) ** 2).mean())
    end = time.perf_counter()
    return {
        "parents": len(parents),
        "ours": middle - start,
        "theirs": end - middle,
        "ratio": (end - middle) / (middle - start),
        "error": ours.residual / residual - 1.0,
        "likelihood_gain": ours.log_likelihood - theirs.log_marginal_likelihood_value_,
    }


def fits(args: argparse.Namespace) -> Part:
    """Random sets of parents of the shared Gaussian-process data."""
    rng, sets = np.random.default_rng(1), list(stored(args.data, "gp"))
    records: list[Record] = []
    with one_blas_thread():
        for q in range(args.fits):
            say(f"fit {q + 1} of {args.fits}") if q % 20 == 0 else None
            number, X, _ = sets[q % 5]
            node, *parents = rng.permutation(10)[: rng.integers(2, 11)].tolist()
            records.append({"set": number, "node": node, **compare_fit(X, node, sorted(parents))})
    # Scikit-learn's only climb sometimes ends at the upper bound, with a lower likelihood: those are no reference.
    same = [r for r in records if r["likelihood_gain"] < 0.1]
    stuck = [r for r in records if r["likelihood_gain"] >= 0.1]
    error = max(abs(r["error"]) for r in same)
    ratio = median(records, "ratio")
    rows = [
        ["seconds a fit, ours (median)", f"{median(records, 'ours'):.4f}", ""],
        ["seconds a fit, scikit-learn (median)", f"{median(records, 'theirs'):.4f}", ""],
        ["ratio (median)", f"{ratio:.1f}", f"at least 10: {yes(ratio >= 10)}"],
        ["fits where scikit-learn reached our likelihood", f"{len(same)} of {len(records)}", ""],
        ["  largest difference of residuals there", f"{error:.2%}", f"at most 1%: {yes(error <= 0.01)}"],
        ["  median difference", f"{np.median([abs(r['error']) for r in same]):.4%}", ""],
        ["likelihood lost to scikit-learn, largest, nats", f"{-min(r['likelihood_gain'] for r in records):.3f}", ""],
        ["fits where it ended lower", f"{len(stuck)}", ""],
        ["  likelihood gained there, median, nats", f"{median(stuck, 'likelihood_gain'):.1f}", ""],
    ]
    note = (
        "n = 1000, one thread each, 1 to 9 random parents. Where scikit-learn ends lower its climb, which starts at "
        "length scale 1, has jumped to the bound of 1e5 and stayed there."
    )
    return Part([Table("One fit", ("", "measured", "target"), rows, (note,))], records)


def rows(args: argparse.Namespace) -> Part:
    """What the projection on inducing rows costs in accuracy and saves in time."""
    rng = np.random.default_rng(0)
    data = simulate.simulate(simulate.erdos_renyi(10, 4, rng), simulate.gaussian_process, n=args.rows, rng=rng)
    X = data.X - data.X.mean(axis=0)
    sets = [rng.permutation(10)[: k + 1].tolist() for k in (1, 2, 3, 5, 7) for _ in range(2)]
    records: list[Record] = []
    with one_blas_thread():
        for node, *parents in sets:
            say(f"rows: {len(parents)} parents")
            for inducing in (None, 250, 500, 1000, 2000):
                options = {"max_rows": 10**6} if inducing is None else {"inducing": inducing}
                start = time.perf_counter()
                residual = GaussianProcess(**options).fit(X[:, parents], X[:, node]).residual
                seconds = time.perf_counter() - start
                records.append(
                    {"parents": len(parents), "inducing": inducing, "residual": residual, "seconds": seconds}
                )
    exact = [r for r in records if r["inducing"] is None]
    lines = [["exact", f"{median(exact):.2f}", "", ""]]
    for inducing in (250, 500, 1000, 2000):
        mine = [r for r in records if r["inducing"] == inducing]
        errors = [r["residual"] / e["residual"] - 1.0 for r, e in zip(mine, exact, strict=True)]
        cells = [f"{median(mine):.2f}", f"{np.median(errors):+.2%}", f"{max(errors, key=abs):+.2%}"]
        lines.append([str(inducing), *cells])
    note = (
        f"n = {args.rows}; the length scale is learned from 2000 rows, the residuals are of all rows; 10 sets of 1 "
        "to 7 parents of simulated Gaussian-process data."
    )
    columns = ("inducing rows", "seconds a fit", "residual, median", "residual, worst")
    return Part([Table("Many rows", columns, lines, (note,))], records)


def workers(args: argparse.Namespace) -> Part:
    """The same batch of local scores with one worker and with two, in turn."""
    _, X, _ = next(stored(args.data, "gp"))
    wanted = [(i, [j for j in range(10) if j != i][:k]) for i in range(10) for k in (2, 4, 6, 8)]
    records: list[Record] = []
    for _ in range(4):
        for jobs in (1, 2):
            score = Score(X - X.mean(axis=0), "gp", n_jobs=jobs)
            with one_blas_thread():
                start = time.perf_counter()
                values = score.local.batch(wanted)
            records.append({"jobs": jobs, "seconds": time.perf_counter() - start, "sum": float(values.sum())})
    one, two = (median([r for r in records if r["jobs"] == jobs]) for jobs in (1, 2))
    same = len({r["sum"] for r in records}) == 1
    row = [f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}", yes(same)]
    columns = ("1 worker, s", "2 workers, s", "speed-up", "equal results")
    return Part([Table(f"{len(wanted)} local scores, n = 1000", columns, [row])], records)


# --- searches -------------------------------------------------------------------------------------------------


class Known(Regression):
    """Residuals that have been computed before, by node and bits of the parents (d, 2^d), of columns reordered."""

    def __init__(self, residuals: NDArray[np.float64], n: int, columns: NDArray[np.int64]) -> None:
        self.residuals, self.columns, self.n, self.d = residuals, columns.tolist(), n, len(columns)

    def residual(self, node: int, parents: Sequence[int]) -> float:
        """Look it up."""
        return float(self.residuals[self.columns[node], sum(1 << self.columns[p] for p in parents)])


def descended(score: Score, rng: np.random.Generator, thorough: bool) -> float:
    """The score that a descent from a random order ends at, certified."""
    descent = LocalDescent(score)
    end, _ = descent.descend(rng.permutation(score.d), thorough=thorough)
    return certify(score, descent, end, Budget()).score


SEARCHES: dict[str, Callable[[Score, np.random.Generator], float]] = {
    "one descent, parents selected anew at every place": partial(descended, thorough=True),
    "one descent, parents at hand": partial(descended, thorough=False),
    "chains of descents until two agree": lambda score, rng: discover(score, rng=rng).score,
}


def searches(args: argparse.Namespace) -> Part:
    """How often searches find the best of all DAGs, and with how many regressions, where all residuals are known."""
    records: list[Record] = []
    for kind, number in (("gp", 2), ("gp", 3), ("pnl_gp", 2), ("pnl_gp", 3)):
        say(f"searches: all residuals of {kind} {number}")
        X = datasets.load_grandag(args.data / kind, number).X
        n, d = X.shape
        sets = [(i, [j for j in range(d) if m >> j & 1]) for i in range(d) for m in range(2**d) if not m >> i & 1]
        values = Score(X - X.mean(axis=0), GaussianProcess(landmarks=150), "bic-nv").local.batch(sets)
        residuals = np.full((d, 2**d), np.nan)
        for (node, parents), value in zip(sets, values, strict=True):
            residuals[node, sum(1 << j for j in parents)] = value
        best = exact_search(Score(None, Known(residuals, n, np.arange(d)), "bic-nv")).score
        for seed, (name, search) in product(range(12), SEARCHES.items()):
            score = Score(None, Known(residuals, n, np.random.default_rng(seed).permutation(d)), "bic-nv", n_jobs=1)
            found = search(score, np.random.default_rng(seed))
            record = {"data": f"{kind} {number}", "seed": seed, "search": name}
            records.append(record | {"reached": bool(found > best - 1e-9), "fits": score.local.fits})
    lines = []
    for data, name in dict.fromkeys((r["data"], r["search"]) for r in records):
        mine = [r for r in records if (r["data"], r["search"]) == (data, name)]
        lines.append([data, name, f"{sum(r['reached'] for r in mine)} of {len(mine)}", f"{mean(mine, 'fits'):.0f}"])
    note = (
        "All 5,120 residuals of processes on 150 landmarks, `bic-nv`, columns and seeds in 12 random orders; no guide, "
        "the certificate included."
    )
    columns = ("data", "search", "best of all DAGs found", "regressions (mean)")
    return Part([Table("Searches", columns, lines, (note,))], records)


# --- the paper's data -----------------------------------------------------------------------------------------


def run(name: str, number: int, X: NDArray[np.float64], A: NDArray[np.uint8], **options: Any) -> Record:
    """One fit of the estimator, scored before and after pruning."""
    before = X.copy()
    start, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ALIAS(**{"criterion": "bic-nv", "regression": "gp", "prune": None, "random_state": 0, **options}).fit(X)
    middle, busy = time.perf_counter(), time.process_time() - busy
    pruned = prune_cam(X, model.adjacency_matrix_)
    seconds = time.perf_counter() - middle
    assert np.array_equal(X, before)
    record = {
        "data": name,
        "set": number,
        "shd": metrics.shd(A, model.adjacency_matrix_),
        "edges": int(model.adjacency_matrix_.sum()),
        "true_edges": int(A.sum()),
        "fits": model.search_.fits,
        "certified": model.search_.certified,
        "score": model.score_,
        "seconds": middle - start,
        "cpu": busy,
        "cam_shd": metrics.shd(A, pruned),
        "cam_fdr": metrics.fdr(A, pruned),
        "cam_edges": int(pruned.sum()),
        "cam_correct": int((A * pruned).sum()),
        "cam_seconds": seconds,
        "graph": model.adjacency_matrix_.tolist(),
    }
    say(f"{name} {number}: " + ", ".join(f"{k} {v}" for k, v in record.items() if k not in ("graph", "data", "set")))
    return record


def sets(args: argparse.Namespace) -> Part:
    """The nonlinear sets of the paper with its settings."""
    sources: dict[str, tuple[Callable[[], Sets], dict[str, Any], float | None]] = {
        "GP": (partial(stored, args.data, "gp"), {"standardize": False}, 0.8),
        "GP, standardised": (partial(stored, args.data, "gp"), {"standardize": True}, 1.4),
        "PNL-GP": (partial(stored, args.data, "pnl_gp"), {"standardize": False}, 6.8),
        "MLP, bic-ev": (partial(simulated, "mlp-er4"), {"criterion": "bic-ev"}, 0.8),
        "Sachs": (protein, {"standardize": True, "regression": SACHS}, None),
    }
    records: list[Record] = []
    lines = []
    for name, (source, options, target) in sources.items():
        if args.only and name not in args.only:
            continue
        found = [run(name, number, X, A, **options) for number, X, A in source()]
        records += found
        shd = mean(found, "shd")
        lines.append(
            [
                name,
                f"{shd:.1f}",
                "" if target is None else f"{target} {yes(shd <= target)}",
                f"{mean(found, 'fits'):.0f}",
                f"{median(found):.0f}",
                f"{median(found, 'cpu'):.0f}",
                f"{max(r['seconds'] for r in found):.0f}",
                f"{mean(found, 'cam_shd'):.1f}",
                f"{mean(found, 'cam_fdr'):.3f}",
                f"{mean(found, 'cam_seconds'):.2f}",
            ]
        )
    times = ("s, median", "CPU s, median", "s, most")
    columns = ("data", "SHD", "paper", "fits", *times, "SHD after CAM", "FDR after CAM", "s, CAM")
    notes = (
        "Five sets of 10 nodes and 1000 rows each, Sachs one of 11 and 853; `ALIAS(prune=None, random_state=0)`, all "
        "cores; means over sets. `fits` are distinct regressions on all rows; 10 nodes have 5120 of them, 11 have "
        "11264. SHD of Sachs before pruning counts a full order of 55 edges.",
    )
    return Part([Table("The paper's nonlinear data", columns, lines, notes)], records)


def sachs(args: argparse.Namespace) -> Part:
    """The protein data with the paper's settings, pruned in both of its ways."""
    data = datasets.load_sachs()
    records: list[Record] = []
    for seed in range(2):
        start = time.perf_counter()
        model = ALIAS("bic-nv", SACHS, standardize=True, prune=None, random_state=seed).fit(data.X)
        record = {"seed": seed, "score": model.score_, "edges": int(model.adjacency_matrix_.sum())}
        record |= {"fits": model.search_.fits, "seconds": time.perf_counter() - start}
        for name, pruner in {"cam": prune_cam, "ci": prune_ci}.items():
            start = time.perf_counter()
            pruned = pruner(data.X, model.adjacency_matrix_)
            record |= {f"{name}_shd": metrics.shd(data.A, pruned), f"{name}_edges": int(pruned.sum())}
            record |= {f"{name}_correct": int((data.A * pruned).sum()), f"{name}_seconds": time.perf_counter() - start}
        say(str(record))
        records.append(record | {"graph": model.adjacency_matrix_.tolist()})
    lines = [
        [
            str(r["seed"]),
            f"{r['score']:.5f}",
            str(r["edges"]),
            str(r["fits"]),
            f"{r['seconds']:.0f}",
            *(f"{r[f'{name}_shd']} ({r[f'{name}_correct']} of {r[f'{name}_edges']})" for name in ("cam", "ci")),
            *(f"{r[f'{name}_seconds']:.1f}" for name in ("cam", "ci")),
        ]
        for r in records
    ]
    columns = ("random_state", "score", "edges", "fits", "s", "SHD after CAM", "SHD after CI", "s, CAM", "s, CI")
    note = (
        "Standardised, parents divided by their median distance, alpha 1e-8, `bic-nv`; 11 nodes, 853 rows, 17 edges in "
        "the consensus graph, 11264 different regressions. In brackets: correct edges of those that stay at 0.001."
    )
    return Part([Table("Sachs", columns, lines, (note,))], records)


def large(args: argparse.Namespace) -> Part:
    """More nodes and more rows than the paper has."""

    def drawn(k: int, d: int, mechanism: Callable[..., Any], n: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        rng = np.random.default_rng(0)
        data = simulate.simulate(simulate.erdos_renyi(d, k, rng), mechanism, n=n, rng=rng)
        return data.X, data.A

    additive, joint = simulate.additive_gaussian_process, simulate.gaussian_process
    cells = {
        "20 nodes, ER-1, sums": (1, 20, additive, 1000),
        "20 nodes, ER-4, sums": (4, 20, additive, 1000),
        "20 nodes, ER-4, joint": (4, 20, joint, 1000),
        "50 nodes, ER-2, sums": (2, 50, additive, 1000),
        "50 nodes, ER-2, joint": (2, 50, joint, 1000),
        "10 nodes, ER-4, joint, 10,000 rows": (4, 10, joint, 10_000),
    }
    records: list[Record] = []
    lines = []
    for name, cell in cells.items():
        for regression in ("gp", "gp-auto"):
            if (args.only and name not in args.only) or (regression == "gp" and cell[1] == 50):
                continue
            X, A = drawn(*cell)
            r = run(name, 0, X, A, criterion="ebic-nv", regression=regression, standardize=True)
            r |= {"regression": regression, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
            records.append(r)
            numbers = (r["true_edges"], r["shd"], r["cam_shd"], r["fits"])
            times = (f"{r['seconds']:.0f}", f"{r['cpu']:.0f}", f"{r['memory']:.2f}")
            lines.append([name, regression, *map(str, numbers), *times])
    columns = ("data", "regression", "edges", "SHD", "SHD after CAM", "fits", "s", "CPU s", "GB")
    note = (
        "One table each of standardised columns, `ALIAS(regression=..., prune=None, random_state=0)`; sums of "
        "functions of single parents, or functions of all parents at once. Memory is the most that the process has "
        "had so far."
    )
    return Part([Table("More nodes, more rows", columns, lines, (note,))], records)


PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {
    "fits": fits,
    "rows": rows,
    "workers": workers,
    "searches": searches,
    "sets": sets,
    "sachs": sachs,
    "large": large,
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gp", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the shared sets")
    parser.add_argument("--fits", type=int, default=200, help="fits to compare (default 200)")
    parser.add_argument("--rows", type=int, default=4000, help="rows of the approximated problem (default 4000)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the sets")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of gp.md and gp.json")
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"there is no folder {args.data}: say where the shared sets are with --data")
    for name in args.parts or PARTS:
        part = PARTS[name](args)
        part.command = f"python -m benchmarks.gp {name}"
        print(*(table.markdown() for table in part.tables), sep="\n")
        write("gp", {name: part}, PARTS, args.results, "Gaussian-process scores")


if __name__ == "__main__":
    main()
