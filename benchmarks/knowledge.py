"""What knowledge does for accuracy, and time series beside others: ``python -m benchmarks.knowledge``.

lingam and tigramite take part where they are installed.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import ALIAS, Knowledge, lagged, metrics, simulate, topological_order

from .cells import Record, mean, median, number, seconds_cell
from .tables import RESULTS, Part, Table, say, write

Array = NDArray[np.float64]
# A graph over time: [lag, i, j] is nonzero where column i, so many rows before, is a cause of column j; lag 0 is a pair
# of adjacent columns, in both directions.
Links = NDArray[np.bool_]

NODES, DEGREE, ROWS = 20, 2, (200, 1000)
SHARES = (0.1, 0.3, 1.0)
VARIABLES, LAGS = 5, 2


# --- accuracy ----------------------------------------------------------------------------------------------------


def kinds(A: NDArray[np.uint8], rng: np.random.Generator) -> Iterator[tuple[str, Knowledge | None]]:
    """Knowledge about columns x0, x1, ... that the true graph ``A`` (d, d) agrees with."""
    d = len(A)
    yield "nothing", None
    present, absent = np.argwhere(A), np.argwhere((A == 0) & ~np.eye(d, dtype=bool))
    present, absent = present[rng.permutation(len(present))], absent[rng.permutation(len(absent))]

    def named(edges: NDArray[np.int64]) -> list[tuple[str, str]]:
        return [(f"x{i}", f"x{j}") for i, j in edges]

    for share in SHARES:
        yield f"{share:.0%} of the edges", Knowledge(required=named(present[: round(share * len(present))]))
    tiers = np.array_split(topological_order(A), 3)
    yield "3 tiers", Knowledge(tiers=[[f"x{i}" for i in tier] for tier in tiers])
    for share in SHARES[:2]:
        yield f"{share:.0%} of the absent edges", Knowledge(forbidden=named(absent[: round(share * len(absent))]))


def accuracy(sets: int) -> Part:
    """Distances to the true graph with true knowledge of several kinds."""
    records: list[Record] = []
    for n, seed in ((n, seed) for n in ROWS for seed in range(sets)):
        data = simulate.linear_gaussian(NODES, DEGREE, n, np.random.default_rng(seed))
        for criterion in ("ebic-nv", "bic-ev"):
            for kind, known in kinds(data.A, np.random.default_rng([seed, 1])):
                model = ALIAS(criterion, knowledge=known, random_state=seed).fit(data.X)
                records.append(
                    {
                        "rows": n,
                        "seed": seed,
                        "criterion": criterion,
                        "known": kind,
                        "shd": int(metrics.shd(data.A, model.adjacency_matrix_)),
                        "cpdag": int(metrics.cpdag_shd(data.A, model.adjacency_matrix_)),
                        "seconds": model.seconds_,
                    }
                )
        say(f"{n} rows, set {seed}")
    cells = []
    for criterion in ("ebic-nv", "bic-ev"):
        for kind in dict.fromkeys(r["known"] for r in records):
            row = [criterion, kind]
            for n in ROWS:
                found = [r for r in records if (r["criterion"], r["known"], r["rows"]) == (criterion, kind, n)]
                row += [number(mean(found, "shd")), number(mean(found, "cpdag")), seconds_cell(median(found))]
            cells.append(row)
    columns = ["criterion", "known", *(f"{what}, n {n}" for n in ROWS for what in ("SHD", "CPDAG", "seconds"))]
    note = (
        f"ER-{DEGREE}, {NODES} columns, equal noise variances, {sets} sets. Means of the SHD of the graph and of the "
        "distance of its class, medians of seconds. ebic-nv cannot tell members of a class apart: its SHD counts "
        "directions that are free."
    )
    return Part([Table("True knowledge", columns, cells, (note,))], records)


# --- time --------------------------------------------------------------------------------------------------------


def autoregression(n: int, rng: np.random.Generator, noise: Callable[..., Array]) -> tuple[Array, Links]:
    """A stationary series (n, d) of a sparse structural autoregression, and its links."""
    d = VARIABLES
    while True:
        order = rng.permutation(d)
        B = np.zeros((LAGS + 1, d, d))
        for lag, share in ((0, 0.2), (1, 0.2), (2, 0.1)):
            B[lag] = rng.uniform(0.2, 0.6, (d, d)) * rng.choice([-1, 1], (d, d)) * (rng.random((d, d)) < share)
        B[1][np.diag_indices(d)] = rng.uniform(0.2, 0.6, d)
        B[0][np.ix_(order, order)] = np.triu(rng.uniform(0.4, 0.9, (d, d)) * (rng.random((d, d)) < 0.3), 1)
        now = np.linalg.inv(np.eye(d) - B[0])
        companion = np.block([[B[1] @ now, np.eye(d)], [B[2] @ now, np.zeros((d, d))]])
        if np.abs(np.linalg.eigvals(companion)).max() < 0.9:
            break
    E = noise(n + 100, d, rng)
    X = np.zeros((n + 100, d))
    for t in range(LAGS, n + 100):
        X[t] = (X[t - 1] @ B[1] + X[t - 2] @ B[2] + E[t]) @ now
    return X[100:], _links(B)


def _links(B: Any) -> Links:
    """Of coefficients (lags + 1, d, d), ``[lag, i, j]`` from i to j: adjacent columns at lag 0, edges before."""
    links = np.asarray(B) != 0
    links[0] |= links[0].T
    return links


def ours(X: Array) -> Links:
    """A graph over present and past columns, with the knowledge that time gives; ebic-nv."""
    series = lagged(X, LAGS)
    model = ALIAS(knowledge=series.knowledge, random_state=0).fit(series.X, names=series.names)
    past = model.adjacency_matrix_[:, : X.shape[1]].reshape(LAGS + 1, X.shape[1], X.shape[1])
    return _links(past)


def var_lingam(X: Array) -> Links:
    """VAR-LiNGAM with two lags, coefficients pruned by its adaptive lasso."""
    from lingam import VARLiNGAM

    model = VARLiNGAM(lags=LAGS, criterion=None, prune=True, random_state=0).fit(X)
    # its matrices are [to, from]
    return _links(model.adjacency_matrices_[: LAGS + 1].swapaxes(1, 2))


def pcmci(X: Array) -> Links:
    """PCMCI with partial correlations at 0.01; lagged links only, as its contemporaneous ones have no direction."""
    graph = _pcmci(X).run_pcmci(tau_min=1, tau_max=LAGS, pc_alpha=None, alpha_level=0.01)["graph"]
    return _of_tigramite(graph)


def pcmci_plus(X: Array) -> Links:
    """PCMCI+ with partial correlations at 0.01: contemporaneous links too."""
    graph = _pcmci(X).run_pcmciplus(tau_min=0, tau_max=LAGS, pc_alpha=0.01)["graph"]
    return _of_tigramite(graph)


def _pcmci(X: Array) -> Any:
    from tigramite import data_processing
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    return PCMCI(dataframe=data_processing.DataFrame(X), cond_ind_test=ParCorr(), verbosity=0)


def _of_tigramite(graph: Any) -> Links:
    """Its graph (d, d, lags + 1) of texts such as "-->", from first to second."""
    links = np.moveaxis(np.asarray(graph) != "", 2, 0).copy()
    links[0] |= links[0].T
    return links


METHODS: dict[str, Callable[[Array], Links]] = {
    "vec2dag": ours,
    "VAR-LiNGAM": var_lingam,
    "PCMCI": pcmci,
    "PCMCI+": pcmci_plus,
}


def series(sets: int) -> Part:
    """Precision and recall of the links of simulated autoregressions, and seconds."""
    noises: dict[str, Callable[..., Array]] = {"Gaussian": simulate.gaussian, "uniform": simulate.uniform}
    methods = dict(_installed())
    records: list[Record] = []
    for noise, n, seed in ((noise, n, seed) for noise in noises for n in ROWS for seed in range(sets)):
        X, true = autoregression(n, np.random.default_rng([seed, n]), noises[noise])
        for method, find in methods.items():
            start = time.perf_counter()
            found = find(X)
            seconds = time.perf_counter() - start
            records.append(
                {"noise": noise, "rows": n, "seed": seed, "method": method, "seconds": seconds}
                | _agreement("lagged", true[1:], found[1:])
                | (_agreement("now", true[0], found[0]) if method != "PCMCI" else {})
            )
        say(f"{noise}, {n} rows, set {seed}")
    cells = []
    for noise, n, method in ((noise, n, method) for noise in noises for n in ROWS for method in methods):
        some = [r for r in records if (r["noise"], r["rows"], r["method"]) == (noise, n, method)]
        keys = ("lagged precision", "lagged recall", "now precision", "now recall")
        shares = [number(mean(some, key), 2) for key in keys]
        cells.append([noise, str(n), method, *shares, seconds_cell(median(some))])
    columns = ("noise", "rows", "method", "precision", "recall", "precision, lag 0", "recall, lag 0", "seconds")
    note = (
        f"{VARIABLES} columns, links at lags 0 to {LAGS}, {sets} sets; means, and medians of seconds. Lagged links by "
        "lag and direction; at lag 0 adjacent columns, as Gaussian noise does not tell their direction. VAR-LiNGAM "
        "assumes noise that is not Gaussian, and then tells directions at lag 0 as well, which is not counted; PCMCI "
        "assumes that there are no links at lag 0; PCMCI+ assumes neither. "
        "Significance levels and the like are as the functions of this file say, and were not tuned."
    )
    return Part([Table("Vector autoregressions", columns, cells, (note,))], records)


def _installed() -> Iterator[tuple[str, Callable[[Array], Links]]]:
    """The methods that can be imported, compiled and warm."""
    X, _ = autoregression(100, np.random.default_rng(0), simulate.gaussian)
    for method, find in METHODS.items():
        try:
            find(X)
        except ImportError:
            say(f"{method} is not installed")
            continue
        yield method, find


def _agreement(which: str, true: Links, found: Links) -> Record:
    """Precision (1 if nothing was found) and recall."""
    right = int((true & found).sum())
    return {
        f"{which} precision": right / int(found.sum()) if found.any() else 1.0,
        f"{which} recall": right / int(true.sum()) if true.any() else 1.0,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knowledge", description=__doc__)
    parser.add_argument("parts", nargs="*", help="of: accuracy, time (default all)")
    parser.add_argument("--sets", type=int, default=10, help="simulated sets of every kind (default 10)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of knowledge.md and .json")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    parts: dict[str, Callable[[int], Part]] = {"accuracy": accuracy, "time": series}
    for name in args.parts or parts:
        part = parts[name](args.sets)
        part.command = f"python -m benchmarks.knowledge {name} --sets {args.sets}"
        print(*(found.markdown() for found in part.tables), sep="\n")
        write("knowledge", {name: part}, list(parts), args.results, "Knowledge")


if __name__ == "__main__":
    main()
