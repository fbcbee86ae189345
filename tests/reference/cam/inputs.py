"""Tables and graphs for mgcv.R: ``python inputs.py SHARED OUT``.

SHARED is the folder with the published sets ``gp`` and ``pnl_gp`` (data1.npy, DAG1.npy, ...). The simulated tables are
also stored beside this script, so that a checkout alone can compare; Sachs is part of the package. Graphs:

causal     every node with all its predecessors in a topological order of the true graph (no true parent missing)
reversed   the same with the order reversed: parents that are effects, all of them dependent
estimated  the best linear bic-nv graph
"""

import sys
from pathlib import Path

import numpy as np

from vec2dag import Score, exact_search, simulate, topological_order
from vec2dag.datasets import load_grandag, load_sachs
from vec2dag.simulate import Dataset

HERE = Path(__file__).parent


def simulated() -> dict[str, Dataset]:
    """Additive mechanisms, few rows, and columns of few values."""
    rng = np.random.default_rng(7)
    graph = simulate.erdos_renyi(8, 3, rng)
    additive = simulate.simulate(graph, simulate.additive_gaussian_process, simulate.gaussian, n=300, rng=rng)
    graph = simulate.erdos_renyi(6, 2, rng)
    short = simulate.simulate(graph, simulate.additive_gaussian_process, simulate.laplace, n=60, rng=rng)
    graph = simulate.erdos_renyi(6, 2, rng)
    rounded = simulate.simulate(graph, simulate.additive_gaussian_process, simulate.gaussian, n=250, rng=rng)
    return {"additive": additive, "short": short, "rounded": rounded}


def full(order: np.ndarray) -> np.ndarray:
    """The DAG in which every node has all its predecessors as parents."""
    position = np.argsort(order)
    return (position[:, None] < position[None, :]).astype(np.uint8)


def main(shared: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    sets = {f"{name}{k}": load_grandag(shared / name, k) for name in ("gp", "pnl_gp") for k in range(1, 6)}
    sets["sachs"] = load_sachs()
    sets |= simulated()
    with (out / "graphs.csv").open("w", encoding="utf-8") as file:
        file.write("dataset,graph,node,parent\n")
        for name, data in sets.items():
            X, digits = data.X, "%.17g"
            if name in ("additive", "short", "rounded"):
                X, digits = (np.round(X, 0) if name == "rounded" else X), "%.5g"
                np.savetxt(HERE / f"{name}.csv", X, fmt=digits, delimiter=",")
                X = np.loadtxt(HERE / f"{name}.csv", delimiter=",")
            np.savetxt(out / f"{name}.csv", X, fmt=digits, delimiter=",")
            order = topological_order(data.A)
            graphs = {"causal": full(order), "reversed": full(order[::-1]), "estimated": exact_search(Score(X)).A}
            for graph, A in graphs.items():
                file.writelines(f"{name},{graph},{j},{i}\n" for j, i in np.argwhere(A.T))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
