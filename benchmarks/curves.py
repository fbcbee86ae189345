"""Learning curves of the paper's set-up beside the native PPO: ``python -m benchmarks.curves``.

Needs the extra ``sb3``, matplotlib, and the shared data sets.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import PPO, Linear, Score, metrics, policy_gradient, prune, sb3
from vec2dag.search import SearchResult

from .tables import RESULTS, ROOT, Part, Table, say, write

# Sets and updates: all of the paper's 20,000 for the first, a quarter for the second.
SETS = {"lin_er2_d10_n1000_s0": 20_000, "lin_er8_d30_n1000_s0": 5_000}
POINTS = 200  # rows of a curve in the file at most, each the mean over a window
COLORS = {"paper": "tab:blue", "native": "tab:orange"}
LABELS = {"paper": "Stable-Baselines3, network, 0.0003", "native": "native PPO, 0.01"}


def search(method: str, score: Score, n_steps: int, seed: int) -> SearchResult:
    """All steps from a cold start, 64 graphs each."""
    rng = np.random.default_rng(seed)
    algorithm = sb3.PPO(n_steps=n_steps) if method == "paper" else PPO(n_steps=n_steps, patience=n_steps)
    return policy_gradient(score, rng=rng, algorithm=algorithm)


def curve(found: SearchResult) -> dict[str, NDArray[np.float64]]:
    """The history, averaged over windows that are equally long on a logarithmic axis."""
    starts = np.unique(np.geomspace(1, found.n_iter, POINTS).astype(int)) - 1
    windows = np.split(np.arange(found.n_iter), starts[1:])
    means = {name: np.array([column[w].mean() for w in windows]) for name, column in found.history.items()}
    return {"step": np.array([w.mean() + 1 for w in windows]), **means}


def measure(name: str, method: str, data: Path, n_steps: int, seed: int) -> dict[str, Any]:
    """A run: what it found, and its curve."""
    with np.load(data / f"{name}.npz") as file:
        X, truth = file["X"], (file["B"] != 0).astype(np.uint8)
    score = Score(X, Linear(reference=True), "bic-ev")
    found = search(method, score, n_steps, seed)
    return {
        "set": name,
        "method": method,
        "updates": found.n_iter,
        "seconds": float(found.history["seconds"][-1]),
        "mode_gap": found.mode_score - float(score(truth)),
        "shd_mode": int(metrics.shd(truth, prune.prune_linear(X, found.mode))),
        "shd_best": int(metrics.shd(truth, prune.prune_linear(X, found.A))),
        "truth": float(score(truth)),
        "curve": curve(found),
    }


def write_csv(records: list[dict[str, Any]], file: Path) -> None:
    """One row a point of a curve."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["set", "method", *records[0]["curve"]])
        for record in records:
            for point in zip(*record["curve"].values(), strict=True):
                rows.writerow([record["set"], record["method"], *(f"{value:.6g}" for value in point)])


def draw(records: list[dict[str, Any]], file: Path) -> None:
    """Mean reward of a batch by updates, and the score of the true DAG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(record["set"] for record in records))
    figure, axes = plt.subplots(1, len(names), figsize=(5 * len(names), 3.5), squeeze=False, layout="constrained")
    for name, ax in zip(names, axes[0], strict=True):
        for record in (r for r in records if r["set"] == name):
            method, points = record["method"], record["curve"]
            ax.plot(points["step"], points["mean_reward"], color=COLORS[method], label=LABELS[method])
            truth = record["truth"]
        ax.axhline(truth, color="black", linestyle=":", label="the true DAG")
        ax.set(title=name, xlabel="updates of 64 graphs", ylabel="mean reward of the batch", xscale="log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(file, dpi=120)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the shared sets")
    parser.add_argument("--steps", type=int, help="updates at most (default: 20,000, and 5,000 for 30 nodes)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of curves.csv, .png, .md and .json")
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"there is no folder {args.data}: say where the shared sets are with --data")
    records = []
    for name, n_steps in SETS.items():
        for method in LABELS:
            say(f"{name}: {LABELS[method]}")
            records.append(measure(name, method, args.data, min(n_steps, args.steps or n_steps), args.seed))
    table = Table(
        "The paper's set-up and the native PPO",
        ("set", "PPO", "updates", "seconds", "score of the decoded mean - truth", "SHD, decoded mean", "SHD, best met"),
        [
            [
                r["set"],
                LABELS[r["method"]],
                f"{r['updates']:,}",
                f"{r['seconds']:.1f}",
                f"{r['mode_gap']:+.2g}",
                str(r["shd_mode"]),
                str(r["shd_best"]),
            ]
            for r in records
        ],
        (
            "`bic-ev` by the released formulas, 64 graphs an update, cold start, whole-graph reward; coefficients "
            "pruned at 0.3 before SHD. The last number of a name is the learning rate: 0.0003 moves the weights of a "
            "network, 0.01 the mean itself. Curves: curves.csv and curves.png.",
        ),
    )
    print(table.markdown())
    args.results.mkdir(parents=True, exist_ok=True)
    write_csv(records, args.results / "curves.csv")
    draw(records, args.results / "curves.png")
    slim = [{key: value for key, value in r.items() if key != "curve"} for r in records]
    part = Part([table], slim, "python -m benchmarks.curves")
    write("curves", {"curves": part}, ["curves"], args.results, "Learning curves")


if __name__ == "__main__":
    main()
