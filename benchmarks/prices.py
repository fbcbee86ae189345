"""The price of an edge: how far the graphs of several prices are from the truth, on networks and on simulated data.

``python -m benchmarks.prices choose | report [--networks FOLDER] [--sets N]``. ``choose`` draws sets 0, 1, ... of
every kind, ``report`` others, on which nothing was chosen. Writes ``benchmarks/results/prices.md`` and ``prices.json``.

The networks MAGIC-NIAB and MAGIC-IRRI (Scutari, Howell, Balding, Mackay: Multiple quantitative trait analysis using
Bayesian networks, Genetics 198, 2014) come as JSON with the package pgmpy; FOLDER is ``utils/example_models`` in it.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.data import network, networks
from vec2dag import ALIAS, BIC, DataWarning, metrics, simulate

from .tables import RESULTS, Part, Table, say, write

PRICES = {
    "BIC": BIC(),
    "gamma 0.25": BIC(gamma=0.25),
    "gamma 0.5": BIC(gamma=0.5),
    "gamma 0.75": BIC(gamma=0.75),
    "gamma 1": BIC(gamma=1.0),
    "gamma 0.5, constant": BIC(gamma=0.5, multiplicity="constant"),
    "discount 2": BIC(discount=2.0),
}
NETWORKS = ("magic-niab", "magic-irri")
# Nodes, parents a node on average, rows.
SIMULATED = [
    *((10, k, n) for k in (1, 2) for n in (100, 500, 5000)),
    *((30, k, n) for k in (1, 2, 4) for n in (100, 500, 1000, 5000)),
    *((30, 8, n) for n in (500, 1000)),
    *((100, k, n) for k in (1, 2) for n in (200, 1000)),
]
# Seconds for one fit: prices are compared, not searches.
BUDGET = 10.0


Draw = Callable[[np.random.Generator], tuple[NDArray[np.float64], NDArray[np.uint8]]]


def _pair(data: simulate.Dataset) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    return data.X, data.A


def kinds(folder: Path | None) -> Iterator[tuple[str, Draw]]:
    """Names of the kinds of data, and functions of a generator that draw a table and its graph."""
    if folder is not None:
        for name in NETWORKS:
            for n in (200, 1000):
                yield f"{name}, n = {n}", lambda rng, file=folder / f"{name}.json", n=n: _pair(network(file, n, rng))
    for d, k, n in SIMULATED:

        def draw(
            rng: np.random.Generator, d: int = d, k: int = k, n: int = n
        ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
            return _pair(simulate.linear_gaussian(d=d, k=k, n=n, rng=rng).standardise())

        yield f"ER-{k}, d = {d}, n = {n}", draw


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prices", description=__doc__)
    parser.add_argument("part", choices=["choose", "report"])
    parser.add_argument("--networks", type=Path, default=networks(None), help="folder with magic-niab.json")
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    rows, records = [], []
    for label, draw in kinds(args.networks):
        distances: dict[str, list[float]] = {name: [] for name in PRICES}
        for seed in range(args.sets):
            X, A = draw(np.random.default_rng([seed, args.part == "report"]))
            for name, criterion in PRICES.items():
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    model = ALIAS(criterion, time_budget=BUDGET, random_state=0).fit(X)
                distance = metrics.cpdag_shd(A, model.adjacency_matrix_)
                distances[name].append(distance)
                records.append(
                    {
                        "data": label,
                        "seed": seed,
                        "price": name,
                        "cpdag_shd": distance,
                        "edges": int(model.adjacency_matrix_.sum()),
                        "true_edges": int(A.sum()),
                        "seconds": time.perf_counter() - start,
                    }
                )
        rows.append([label, str(int(A.sum())), *(f"{np.mean(values):.1f}" for values in distances.values())])
        say(" | ".join(rows[-1]))
    # Distances below 1 count as 1.
    values = np.maximum([[float(cell) for cell in row[2:]] for row in rows], 1.0)
    relative = (values / values.min(axis=1, keepdims=True)).mean(axis=0)
    rows.append(["mean of the ratio to the best price", "", *(f"{value:.2f}" for value in relative)])
    notes = (
        f"Mean CPDAG distance of {args.sets} sets; `ALIAS(criterion, time_budget={BUDGET:g}, random_state=0)`, columns "
        "standardised in simulated data. Edges are those of the last set. In the ratios distances below 1 count as 1.",
    )
    table = Table(f"Prices of edges, unequal variances ({args.part})", ("data", "edges", *PRICES), rows, notes)
    print(table.markdown())
    part = Part([table], records, command=f"python -m benchmarks.prices {args.part} --sets {args.sets}")
    write("prices", {args.part: part}, ("choose", "report"), args.results, "The price of an edge")


if __name__ == "__main__":
    main()
