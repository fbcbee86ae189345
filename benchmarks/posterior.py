"""Posteriors of DAGs: against enumeration, on 20 columns, how well they are calibrated, and the policy as one.

``python -m benchmarks.posterior enumerate | er2 | calibration | policy [--sets N]``, or ``all`` of them. Writes
``benchmarks/results/posterior.md`` and ``posterior.json``.
"""

import argparse
import hashlib
import math
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, invwishart
from sklearn.metrics import average_precision_score, roc_auc_score

from vec2dag import ALIAS, PPO, REINFORCE, Conditional, Score, bootstrap, cpdag, discover, metrics, simulate, vec2dag
from vec2dag.confidence import Posterior, posterior
from vec2dag.scores import BGe, Criterion

from .tables import RESULTS, Part, Table, say, write

Array = NDArray[np.float64]
Graphs = NDArray[np.uint8]


def score_of(X: Array, criterion: Criterion | str) -> Score:
    """A score of a table, whether the criterion has regressions of its own or not."""
    return Score(X, criterion.regression(), criterion) if isinstance(criterion, BGe) else Score(X, "linear", criterion)


@lru_cache
def all_dags(d: int) -> Graphs:
    """Every DAG of d nodes, for few of them."""
    pairs = np.array([(i, j) for i in range(d) for j in range(i)])
    states = np.array(np.meshgrid(*[[0, 1, 2]] * len(pairs), indexing="ij")).reshape(len(pairs), -1).T
    A = np.zeros((len(states), d, d), np.float32)
    A[:, pairs[:, 0], pairs[:, 1]], A[:, pairs[:, 1], pairs[:, 0]] = states == 1, states == 2
    power = A.copy()
    for _ in range(d - 1):
        power = np.minimum(power @ A, 1)
    return A[~power.any(axis=(1, 2))].astype(np.uint8)


def exact(score: Score) -> Array:
    """Edge probabilities (d, d) from all DAGs."""
    graphs = all_dags(score.d)
    logs = 0.5 * score.n * score.d * score(graphs)
    weights = np.exp(logs - logs.max())
    return np.clip(np.einsum("k,kij->ij", weights / weights.sum(), graphs.astype(float)), 0.0, 1.0)


@lru_cache
def _dags_with_outpoints(d: int) -> tuple[int, ...]:
    """Numbers of DAGs of d nodes of which k = 1, ..., d have no parents (Robinson 1973)."""
    counts = []
    for k in range(1, d + 1):
        rest = d - k
        ways = sum((2**k - 1) ** s * 2 ** (k * (rest - s)) * c for s, c in enumerate(_dags_with_outpoints(rest), 1))
        counts.append(math.comb(d, k) * (ways if rest else 1))
    return tuple(counts)


def uniform_dag(d: int, rng: np.random.Generator) -> Graphs:
    """One of all DAGs of d nodes, each with the same probability (Kuipers & Moffa 2015)."""

    def choose(weights: Sequence[int]) -> int:
        # Whole numbers beyond the range of floats: a share of 1 / 2^62 is exact enough.
        u = int(rng.integers(2**62)) * sum(weights) >> 62
        for k, weight in enumerate(weights):
            u -= weight
            if u < 0:
                return k
        raise AssertionError

    sizes = [choose(_dags_with_outpoints(d)) + 1]
    left = d - sizes[0]
    while left:
        k, counts = sizes[-1], _dags_with_outpoints(left)
        sizes.append(1 + choose([(2**k - 1) ** s * 2 ** (k * (left - s)) * c for s, c in enumerate(counts, 1)]))
        left -= sizes[-1]
    order, A, first = rng.permutation(d), np.zeros((d, d), np.uint8), 0
    for t in range(1, len(sizes)):
        above, here = first, first + sizes[t - 1]
        for j in order[here : here + sizes[t]]:
            A[order[:above], j] = rng.integers(0, 2, above)
            while not A[order[above:here], j].any():
                A[order[above:here], j] = rng.integers(0, 2, here - above)
        first = here
    return A


def from_prior(A: Graphs, n: int, rng: np.random.Generator, alpha_mu: float = 1.0) -> Array:
    """A table (n, d) of a DAG whose parameters are drawn from the prior of ``BGe(alpha_mu, mean=0)``."""
    d = len(A)
    alpha_w = d + alpha_mu + 1.0
    t = alpha_mu * (alpha_w - d - 1.0) / (alpha_mu + 1.0)
    X, left = np.zeros((n, d)), list(range(d))
    while left:
        i = next(i for i in left if not A[left, i].any())
        left.remove(i)
        parents = np.flatnonzero(A[:, i])
        k = len(parents)
        S = np.atleast_2d(invwishart(alpha_w - d + k + 1, t * np.eye(k + 1)).rvs(random_state=rng))
        weights = np.linalg.solve(S[:k, :k], S[:k, k])
        variance = S[k, k] - weights @ S[:k, k]
        intercept = rng.normal(0.0, math.sqrt(variance / alpha_mu))
        X[:, i] = intercept + X[:, parents] @ weights + rng.normal(0.0, math.sqrt(variance), n)
    return X


def quiet(score: Score, rng: np.random.Generator, **settings: Any) -> Posterior:
    """A posterior whose doubts are shown as numbers, not as warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return posterior(score, rng=rng, **settings)


def enumerate_part(sets: int) -> Part:
    """Edge probabilities beside those of all DAGs."""
    rows, records = [], []
    for d in (4, 5):
        for name, criterion in (("bic-nv", "bic-nv"), ("bge", BGe())):
            far = cells = 0
            worst, seconds = 0.0, 0.0
            for seed in range(sets):
                rng = np.random.default_rng([d, seed])
                score = score_of(simulate.linear_gaussian(d=d, k=1, n=50, rng=rng).standardise().X, criterion)
                truth, begin = exact(score), time.perf_counter()
                found = quiet(score, rng, n_samples=4000)
                seconds += time.perf_counter() - begin
                others = ~np.eye(d, dtype=bool)
                difference = np.abs(found.edge_probabilities - truth)[others]
                z = difference / np.sqrt(np.maximum(truth * (1 - truth) / found.edge_ess, 1e-300))[others]
                far, cells, worst = far + int((z > 3).sum()), cells + len(z), max(worst, float(difference.max()))
                records.append({"d": d, "criterion": name, "seed": seed, "z": z, "difference": difference})
            # What chance leaves beyond with a probability of 0.1 %.
            allowed = int(binom.ppf(0.999, cells, 0.0027))
            rows.append([f"{d}", name, f"{cells}", f"{far}", f"{allowed}", f"{worst:.3f}", f"{seconds / sets:.2f}"])
            say(" | ".join(rows[-1]))
    table = Table(
        "Edge probabilities against enumeration of all DAGs",
        ("nodes", "criterion", "cells", "beyond 3 errors", "chance allows", "largest difference", "seconds a table"),
        rows,
        (f"{sets} tables of 50 rows each, ER-1, 4,000 samples of 4 chains. Errors are those of the exact probability "
         "and the effective sample size. The first table of a process may include compilation.",),
    )  # fmt: skip
    return Part([table], records)


def edge_measures(truth: Graphs, probabilities: Array) -> dict[str, float]:
    """How good probabilities of edges are, against a graph."""
    others = ~np.eye(len(truth), dtype=bool)
    y, p = truth[others], probabilities[others]
    return {
        "auprc": float(average_precision_score(y, p)),
        "auroc": float(roc_auc_score(y, p)),
        "brier": float(np.mean((p - y) ** 2)),
        "expected_edges": float(p.sum()),
    }


def er2_part(sets: int, dibs: Path | None = None) -> Part:
    """Edges of ER-2 graphs with 20 nodes from 100 rows, beside a bootstrap, one graph, and DiBS if it is there."""
    tables = [
        simulate.linear_gaussian(d=20, k=2, n=100, rng=np.random.default_rng(seed)).standardise()
        for seed in range(sets)
    ]
    kinds: dict[str, Criterion | str] = {
        "bge, uniform": BGe(),
        "bge, gamma 1": BGe(gamma=1.0),
        "bic-nv": "bic-nv",
        "ebic-nv": "ebic-nv",
    }
    records = []
    for name, criterion in kinds.items():
        for seed, data in enumerate(tables):
            score, begin = score_of(data.X, criterion), time.perf_counter()
            found = quiet(score, np.random.default_rng(seed), n_samples=4000)
            record = {"method": f"posterior, {name}", "seconds": time.perf_counter() - begin}
            record |= {"r_hat": found.r_hat, "ess": found.ess, "beyond": float(found.beyond.sum())}
            record |= {"e_shd": float(metrics.shd(data.A, found.samples).mean())}
            records.append(record | edge_measures(data.A, found.edge_probabilities))
            say(f"{record['method']}, table {seed}: {record['seconds']:.1f} s")
    for seed, data in enumerate(tables):
        begin = time.perf_counter()
        samples = bootstrap(ALIAS(), data.X, 200, random_state=seed)
        probabilities = samples.directed + 0.5 * samples.free
        record = {"method": "bootstrap, ebic-nv, free edges 0.5", "seconds": time.perf_counter() - begin}
        record |= {"e_shd": float(metrics.shd(data.A, samples.graphs).mean())}
        records.append(record | edge_measures(data.A, probabilities))
        begin = time.perf_counter()
        class_ = cpdag(discover(Score(data.X, "linear", "ebic-nv"), rng=np.random.default_rng(seed)).A).astype(float)
        record = {"method": "one graph, ebic-nv, free edges 0.5", "seconds": time.perf_counter() - begin}
        records.append(record | edge_measures(data.A, np.where(class_ + class_.T == 2, 0.5, class_)))
    if dibs is not None:
        for data, (probabilities, seconds) in zip(tables, run_dibs([data.X for data in tables], dibs), strict=True):
            records.append({"method": "DiBS+, bge", "seconds": seconds} | edge_measures(data.A, probabilities))
    heads = {
        "auprc": "AUPRC", "auroc": "AUROC", "brier": "Brier", "e_shd": "E[SHD]", "expected_edges": "E[edges]",
        "beyond": "beyond", "r_hat": "worst R-hat", "ess": "least ESS", "seconds": "seconds",
    }  # fmt: skip
    digits = {"auprc": 3, "auroc": 3, "brier": 3, "r_hat": 3, "ess": 0}
    rows = []
    for method in dict.fromkeys(record["method"] for record in records):
        mine = [record for record in records if record["method"] == method]
        cells = [method]
        for key in heads:
            of = {"r_hat": max, "ess": min}.get(key, np.mean)
            values = [record[key] for record in mine if key in record]
            cells.append(f"{of(values):.{digits.get(key, 1)}f}" if values else "-")
        rows.append(cells)
    note = (
        f"Means of {sets} tables, 20 nodes, ER-2 ({np.mean([data.A.sum() for data in tables]):.1f} edges), 100 rows, "
        "standardised; directed edges; posteriors: 4,000 samples of 4 chains, bootstrap: 200 samples. `beyond` "
        "estimates the edges that columns beyond the candidates would add. No linear-Gaussian score can tell the "
        "directions within an equivalence class, which bounds all of these. DiBS (Lorch et al. 2021): an "
        "Erdos-Renyi prior with the true density, the settings of `benchmarks/run_dibs.py`, on the same machine."
    )
    return Part([Table("ER-2, 20 nodes, 100 rows", ("method", *heads.values()), rows, (note,))], records)


def run_dibs(tables: Sequence[Array], python: Path) -> list[tuple[Array, float]]:
    """Probabilities of edges, and seconds, by DiBS in an environment of its own; what it has found before is kept."""
    back = RESULTS / "dibs.npz"
    with TemporaryDirectory() as folder:
        there = Path(folder, "tables.npz")
        np.savez(there, **{f"table{k}": X for k, X in enumerate(tables)})
        subprocess.run([python, Path(__file__).with_name("run_dibs.py"), there, back], check=True)
    keys = [hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()[:16] for X in tables]
    with np.load(back) as file:
        return [(file[key], float(file[f"{key}_seconds"])) for key in keys]


def calibration_part(sets: int, d: int = 10, n: int = 100) -> Part:
    """Of the edges with some probability, how many are there; graphs and parameters drawn from the prior."""
    probabilities, truths, records = [], [], []
    others = ~np.eye(d, dtype=bool)
    for seed in range(sets):
        rng = np.random.default_rng([7, seed])
        A = uniform_dag(d, rng)
        found = quiet(score_of(from_prior(A, n, rng), BGe(mean=0.0)), rng, n_samples=4000)
        probabilities.append(found.edge_probabilities[others])
        truths.append(A[others])
        records.append(
            {"seed": seed, "p": probabilities[-1], "edge": truths[-1], "r_hat": found.r_hat, "ess": found.ess}
        )
        say(f"{seed} R-hat {found.r_hat:.3f}, ess {found.ess:.0f}")
    p, y = np.concatenate(probabilities), np.concatenate(truths)
    rows = []
    for low in np.arange(0.0, 1.0, 0.1):
        within = (p >= low) & (p < low + 0.1 if low < 0.85 else p <= 1.0)
        share, count = float(y[within].mean()), int(within.sum())
        rows.append(
            [f"{low:.1f} to {low + 0.1:.1f}", f"{count}", f"{p[within].mean():.3f}", f"{share:.3f}",
             f"{math.sqrt(share * (1 - share) / count):.3f}"]
        )  # fmt: skip
    note = (
        f"{sets} tables of {n} rows: DAGs of {d} nodes drawn uniformly from all, parameters from the prior of "
        f"`BGe(mean=0)`; 4,000 samples of 4 chains. Largest R-hat {max(r['r_hat'] for r in records):.3f}."
    )
    return Part(
        [Table("Calibration", ("probability", "edges", "mean probability", "share true", "error"), rows, (note,))],
        records,
    )


def policy_part(sets: int) -> Part:
    """The policy with an entropy bonus as a variational posterior, against enumeration."""
    rows, records = [], []
    for d in (4, 5):
        differences: dict[str, list[float]] = {}
        for seed in range(sets):
            rng = np.random.default_rng([d, seed])
            score = Score(simulate.linear_gaussian(d=d, k=1, n=50, rng=rng).standardise().X)
            truth, others, weight = exact(score), ~np.eye(d, dtype=bool), 1.0 / (score.n * d)
            methods: dict[str, Callable[[], Array]] = {
                "samples of the posterior": lambda score=score, rng=rng: (
                    quiet(score, rng, n_samples=4000).edge_probabilities
                )
            }
            for label, kind in (
                ("ppo", partial(PPO, normalise=False)),
                ("reinforce", REINFORCE),
                ("conditional", Conditional),
            ):
                for factor in (0, 1, 2):

                    def learned(
                        kind: Any = kind, factor: int = factor, score: Score = score, weight: float = weight
                    ) -> Array:
                        settings = kind(n_steps=3000, entropy=factor * weight, patience=10**6)
                        found = discover(
                            score, rng=np.random.default_rng(0), algorithm=settings, init="random", refine=False
                        )
                        z = found.policy.sample(4000, np.random.default_rng(1))
                        return vec2dag(z).mean(axis=0)

                    methods[f"{label}, entropy {factor} / (n d)"] = learned
            for label, method in methods.items():
                begin = time.perf_counter()
                difference = np.abs(method() - truth)[others]
                differences.setdefault(label, []).append(float(difference.mean()))
                records.append(
                    {"d": d, "seed": seed, "method": label, "mean": difference.mean(), "max": difference.max(),
                     "seconds": time.perf_counter() - begin}
                )  # fmt: skip
        for label, values in differences.items():
            mine = [r for r in records if r["d"] == d and r["method"] == label]
            rows.append(
                [f"{d}", label, f"{np.mean(values):.3f}", f"{np.mean([r['max'] for r in mine]):.3f}",
                 f"{np.median([r['seconds'] for r in mine]):.2f}"]
            )  # fmt: skip
            say(" | ".join(rows[-1]))
    note = (
        f"{sets} tables of 50 rows, ER-1, bic-nv: absolute differences of edge probabilities from those of all DAGs. "
        "The weight of a DAG is exp(n d score / 2), so that 2 / (n d) is the weight of the entropy with which a policy "
        "over DAGs would be a variational posterior. The entropy here is that of the vectors: it grows without end "
        "when they are all scaled, which changes no DAG, and says little about that of the DAGs. PPO is without "
        "normalised advantages, which would change the weight. "
        "3,000 steps, 4,000 sampled vectors."
    )
    heads = ("nodes", "method", "mean difference", "mean of the largest", "seconds")
    return Part([Table("The policy as a variational posterior", heads, rows, (note,))], records)


PARTS: dict[str, tuple[Callable[[int], Part], int]] = {
    "enumerate": (enumerate_part, 10),
    "er2": (er2_part, 5),
    "calibration": (calibration_part, 50),
    "policy": (policy_part, 3),
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posterior", description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--dibs", type=Path, metavar="PYTHON", help="an interpreter that has dibs-lib, for er2")
    parser.add_argument("--sets", type=int, help="tables of each kind")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    for name in PARTS if args.part == "all" else [args.part]:
        measure, sets = PARTS[name]
        sets = sets if args.sets is None else args.sets
        part = measure(sets, args.dibs) if name == "er2" else measure(sets)
        part.command = f"python -m benchmarks.posterior {name} --sets {sets}"
        for table in part.tables:
            print(table.markdown())
        write("posterior", {name: part}, PARTS, args.results, "Posteriors of DAGs")


if __name__ == "__main__":
    main()
