"""Pruning: agreement with mgcv and KCI, levels, accuracy and time: ``python -m benchmarks.prune``.

pygam, statsmodels and causal-learn take part where they are installed.
"""

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from vec2dag import metrics, prune, topological_order
from vec2dag.datasets import load_grandag, load_sachs
from vec2dag.prune.additive import additive_terms
from vec2dag.prune.independence import kci, kernel_test
from vec2dag.scores.splines import basis_size, smooth

from .tables import RESULTS, ROOT, Part, Table, say, write

Array = NDArray[np.float64]
# A candidate maps a node (n,) and its parents (n, p) to p-values (p,).
Candidate = Callable[[Array, Array], Any]

REFERENCE = ROOT / "tests" / "reference" / "cam"
SHARED = ROOT.parent / "shared" / "data"
SETS = [f"{name}{k}" for name in ("gp", "pnl_gp") for k in range(1, 6)]


def penalised(y: Array, X: Array) -> Array:
    """Thin-plate splines, cross-validation, Wood's test: what prune_cam does."""
    return additive_terms(y, _smooths(X)).p


def unpenalised(y: Array, X: Array) -> list[float]:
    """Exact F-tests of the same splines without penalty."""
    blocks = [s.Z for s in _smooths(X)]
    n = len(y)

    def rss(chosen: list[Array]) -> float:
        Z = np.column_stack([np.ones(n), *chosen])
        return float(np.sum((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2))

    whole, free = rss(blocks), n - 1 - sum(b.shape[1] for b in blocks)
    found = []
    for k, block in enumerate(blocks):
        q = block.shape[1]
        found.append(float(stats.f.sf((rss(blocks[:k] + blocks[k + 1 :]) - whole) / q / (whole / free), q, free)))
    return found


def pygam(y: Array, X: Array) -> list[float]:
    """LinearGAM with one smoothing parameter for all terms, chosen by its default grid search."""
    from pygam import LinearGAM, s

    terms = s(0, n_splines=10)
    for k in range(1, X.shape[1]):
        terms += s(k, n_splines=10)
    model = LinearGAM(terms).gridsearch(X, y, progress=False)
    return model.statistics_["p_values"][: X.shape[1]]


def statsmodels(y: Array, X: Array) -> list[float]:
    """GLMGam with cubic B-splines and penalties of 1; selecting them takes minutes a node."""
    from statsmodels.gam.api import BSplines, GLMGam

    p = X.shape[1]
    splines = BSplines(X, df=[10] * p, degree=[3] * p)
    model = GLMGam(y, exog=np.ones((len(y), 1)), smoother=splines, alpha=[1.0] * p).fit()
    return [float(model.test_significance(k).pvalue) for k in range(p)]


def _smooths(X: Array) -> list[Any]:
    size = basis_size(*X.shape, 10)
    return [smooth(x, size) for x in X.T]


def table(name: str) -> Array:
    """A table of the reference by its name."""
    if name == "sachs":
        return load_sachs().X
    if name in SETS:
        return load_grandag(SHARED / name[:-1], int(name[-1])).X
    return np.loadtxt(REFERENCE / f"{name}.csv", delimiter=",")


def regressions() -> Iterator[tuple[str, Array, Array, Array]]:
    """(dataset, node (n,), parents (n, p), p-values of mgcv (p,)) of the stored reference."""
    rows = defaultdict(list)
    with (REFERENCE / "pvalues.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["dataset"], row["graph"], int(row["node"])].append((int(row["parent"]), float(row["p"])))
    tables = {name: table(name) for name in {key[0] for key in rows} if SHARED.is_dir() or name not in SETS}
    for (name, _, node), found in rows.items():
        if name in tables:
            parents = [parent for parent, _ in found]
            yield name, tables[name][:, node], tables[name][:, parents], np.array([p for _, p in found])


def cam_agreement(seconds: float) -> Part:
    """Share of the decisions of mgcv at 0.001 that candidates reproduce."""
    records = []
    for candidate in (penalised, unpenalised, pygam, statsmodels):
        same, total, start = 0, 0, time.perf_counter()
        try:
            for _, y, X, p in regressions():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    same += int(np.sum((np.asarray(candidate(y, X)) < 0.001) == (p < 0.001)))
                total += len(p)
                if time.perf_counter() - start > seconds:
                    break
        except ImportError:
            say(f"{candidate.__name__} is not installed")
            continue
        spent = time.perf_counter() - start
        say(f"{candidate.__name__}: {same} of {total}, {spent:.0f} s")
        records.append({"candidate": candidate.__name__, "same": same, "edges": total, "seconds": spent})
    cells = [
        [r["candidate"], str(r["edges"]), f"{r['same'] / r['edges']:.2%}", f"{1000 * r['seconds'] / r['edges']:.1f}"]
        for r in records
    ]
    note = (
        f"Edges of tests/reference/cam, as many as a candidate tests in {seconds:.0f} s; threads of BLAS as they are."
    )
    return Part(
        [Table("Decisions of mgcv", ("candidate", "edges", "agreement", "ms an edge"), cells, (note,))], records
    )


def levels(repeats: int) -> Part:
    """How often parents that a node does not need are kept."""
    records = []
    cases: list[tuple[str, int, int, int]] = [("cam", 200, 2, 1), ("cam", 400, 2, 1), ("cam", 1000, 2, 4)]
    cases += [
        ("fast", 150, 2, 1),
        ("fast", 400, 2, 2),
        ("fast", 400, 6, 2),
        ("fast", 1500, 2, 10),
        ("fast", 1500, 6, 10),
    ]
    for test, n, k, fewer in cases:
        for dependent in (False, True):
            rng = np.random.default_rng(11)
            p = np.array([_null(test, rng, n, k, dependent) for _ in range(repeats // fewer)])
            rates = {f"{alpha}": float(np.mean(p < alpha)) for alpha in (0.05, 0.01, 0.001)}
            records.append({"test": test, "n": n, "k": k, "dependent": dependent, "repeats": len(p), **rates})
            say(str(records[-1]))
    cells = [
        [r["test"], str(r["n"]), str(r["k"]), "yes" if r["dependent"] else "no", str(r["repeats"])]
        + [f"{r[alpha]:.4f}" for alpha in ("0.05", "0.01", "0.001")]
        for r in records
    ]
    columns = ("test", "rows", "conditions", "dependent", "repeats", "at 0.05", "at 0.01", "at 0.001")
    return Part([Table("Rejections of superfluous parents", columns, cells)], records)


def _null(test: str, rng: np.random.Generator, n: int, k: int, dependent: bool) -> float:
    Z = rng.standard_normal((n, k))
    cause = np.sin(2 * Z[:, 0])
    x, y = rng.standard_normal((2, n)) + np.outer([float(dependent), 1.0], cause)
    if test == "cam":
        return float(additive_terms(y, [smooth(v, 10) for v in (x, *Z.T)]).p[0])
    return kernel_test(x, y, Z)


def recovery() -> Part:
    """Full graphs over a causal order, pruned: accuracy and time; and whether KCI decides alike."""
    methods: dict[str, Callable[[Array, Any], Any]] = {"cam": prune.prune_cam, "fast": prune.prune_ci}
    try:
        kci(np.arange(5.0), np.arange(5.0) ** 2, np.zeros((5, 0)))
        methods["kci"] = lambda X, A: prune.prune_ci(X, A, test="kci")
    except ImportError:
        say("causal-learn is not installed")
    records = []
    for name in ("sachs", *(SETS if SHARED.is_dir() else [])):
        data = load_sachs() if name == "sachs" else load_grandag(SHARED / name[:-1], int(name[-1]))
        position = np.argsort(topological_order(data.A))
        full = (position[:, None] < position[None, :]).astype(np.uint8)
        pruned = {}
        for method, function in methods.items():
            if method == "kci" and name[-1] in "345":
                continue  # a minute or two a set: two sets of a kind are enough to compare
            start = time.perf_counter()
            pruned[method] = function(data.X, full)
            seconds = time.perf_counter() - start
            found = {key: float(metrics.evaluate(data.A, pruned[method])[key]) for key in ("shd", "fdr", "tpr")}
            like = float(np.mean((pruned[method] == pruned["fast"])[full == 1])) if method == "kci" else None
            records.append({"set": name, "method": method, **found, "seconds": seconds, "as_fast": like})
            say(str(records[-1]))
    cells = []
    for r in records:
        like = "" if r["as_fast"] is None else f"{r['as_fast']:.1%}"
        numbers = [f"{r['shd']:.0f}", f"{r['fdr']:.3f}", f"{r['tpr']:.3f}", f"{r['seconds']:.1f}"]
        cells.append([r["set"], r["method"], *numbers, like])
    columns = ("set", "pruning", "SHD", "FDR", "TPR", "seconds", "decisions as fast")
    return Part([Table("Full graphs over a causal order, pruned at 0.001", columns, cells)], records)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prune", description=__doc__)
    parser.add_argument("parts", nargs="*", help="of: agreement, levels, recovery (default all)")
    parser.add_argument("--repeats", type=int, default=2000, help="of the levels (default 2000)")
    parser.add_argument("--seconds", type=float, default=120, help="for every candidate (default 120)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of prune.md and .json")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="Reading `.npy`")
    parts: dict[str, Callable[[], Part]] = {
        "agreement": lambda: cam_agreement(args.seconds),
        "levels": lambda: levels(args.repeats),
        "recovery": recovery,
    }
    for name in args.parts or parts:
        part = parts[name]()
        options = {"agreement": f" --seconds {args.seconds:.0f}", "levels": f" --repeats {args.repeats}"}
        part.command = f"python -m benchmarks.prune {name}{options.get(name, '')}"
        print(*(found.markdown() for found in part.tables), sep="\n")
        write("prune", {name: part}, list(parts), args.results, "Pruning")


if __name__ == "__main__":
    main()
