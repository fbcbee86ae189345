"""Scoring throughput, cost of a search step, peak memory: ``python -m benchmarks.throughput``."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import PPO, Conditional, Score, policy_gradient, simulate, vec2dag, vec_dim

from .tables import RESULTS, Part, Table, machine, peak_memory_mb, say, write

# Nodes: graphs in a batch (dense, sparse) and steps (ppo, conditional), so that every repeat takes about 0.1 to 1 s.
SIZES: dict[int, tuple[int, int, int, int]] = {
    10: (20_000, 20_000, 200, 200),
    30: (2_000, 5_000, 100, 100),
    100: (64, 500, 10, 50),
    200: (16, 150, 3, 50),
}
PPO_BATCH = 64


def median_seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median time of ``work``, after one call that is not counted: kernels are compiled or loaded in it."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def graphs_per_second(score: Score, A: NDArray[np.uint8], repeats: int) -> float:
    """Throughput of ``score`` on a batch ``A`` (B, d, d)."""
    return len(A) / median_seconds(lambda: score(A), repeats)


def step_ms(score: Score, algorithm: PPO | Conditional, repeats: int) -> float:
    """Median cost of a step from a cold start, in milliseconds."""
    steps: list[NDArray[np.float64]] = []

    def search() -> None:
        found = policy_gradient(score, rng=np.random.default_rng(0), algorithm=algorithm)
        steps.append(np.diff(found.history["seconds"], prepend=0.0))

    search()
    steps.clear()
    for _ in range(repeats):
        search()
    return 1000 * float(np.median(np.concatenate(steps)))


def measure(d: int, repeats: int) -> dict[str, float]:
    """All numbers for graphs of ``d`` nodes."""
    rng = np.random.default_rng(0)
    dense, sparse, ppo_steps, conditional_steps = SIZES[d]
    score = Score(simulate.linear_gaussian(d=d, k=2, n=1000, rng=rng).X, "linear", "bic-ev")
    vectors = vec2dag(rng.standard_normal((dense, vec_dim(d))))
    er2 = np.stack([simulate.erdos_renyi(d, 2, rng) for _ in range(sparse)])
    # patience: no run may stop early, so that both are timed over the steps that are named.
    ppo = PPO(n_steps=ppo_steps, batch_size=PPO_BATCH, patience=ppo_steps)
    conditional = Conditional(n_steps=conditional_steps, patience=conditional_steps)
    return {
        "d": d,
        "graphs_per_second_dense": graphs_per_second(score, vectors, repeats),
        "graphs_per_second_er2": graphs_per_second(score, er2, repeats),
        "ppo_step_ms": step_ms(score, ppo, repeats),
        "conditional_step_ms": step_ms(score, conditional, repeats),
        "peak_memory_mb": peak_memory_mb(),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="the medians are over this many (default 5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of throughput.md and .json")
    args = parser.parse_args()
    records = []
    for d in SIZES:
        say(f"d = {d}")
        records.append(measure(d, args.repeats))
    table = Table(
        "Scoring and search",
        (
            "nodes",
            "graphs/s, decoded from N(0, I)",
            "graphs/s, ER-2",
            f"ms/step, ppo ({PPO_BATCH} graphs)",
            "ms/step, conditional",
            "peak memory so far, MB",
        ),
        [
            [
                str(r["d"]),
                f"{r['graphs_per_second_dense']:,.0f}",
                f"{r['graphs_per_second_er2']:,.0f}",
                f"{r['ppo_step_ms']:.2f}",
                f"{r['conditional_step_ms']:.2f}",
                f"{r['peak_memory_mb']:.0f}",
            ]
            for r in records
        ],
        (
            f"Linear regression, `bic-ev`, n = 1000, all cores; medians of {args.repeats} repeats after one that is "
            "not counted. Vectors from N(0, I) decode to graphs in which half of all pairs are joined. Steps are the "
            "first ones of a cold start, `conditional` with its own batch size.",
        ),
    )
    print(", ".join(f"{what} {value}" for what, value in machine().items()) + "\n")
    print(table.markdown())
    part = Part([table], records, "python -m benchmarks.throughput")
    write("throughput", {"throughput": part}, ["throughput"], args.results, "Throughput")


if __name__ == "__main__":
    main()
