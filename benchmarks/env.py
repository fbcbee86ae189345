"""Environment steps per second, one environment at a time and all at once: ``python -m benchmarks.env``.

Needs the extra ``sb3``.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from vec2dag import Score, dag2vec, simulate, vec_dim
from vec2dag.sb3 import DagEnv, DagVecEnv

from .cells import yes
from .tables import RESULTS, Part, Table, machine, say, write

ENVS = 64
TARGET = 5.0  # times the loop over the same score, at 30 nodes
SIZES = (10, 30, 100)


class NumpyScore:
    """BIC with equal variances as one writes it down first: a least-squares problem for every node."""

    def __init__(self, X: NDArray[np.float64]) -> None:
        self.n, self.d = X.shape
        centred = X - X.mean(axis=0)
        self.S = centred.T @ centred / self.n

    def __call__(self, A: NDArray[np.uint8]) -> float:
        """Score of one graph (d, d)."""
        total = 0.0
        for j in range(self.d):
            P = np.flatnonzero(A[:, j])
            total += self.S[j, j] - self.S[j, P] @ np.linalg.solve(self.S[np.ix_(P, P)], self.S[P, j])
        return float(-np.log(total / self.d) - A.sum() * np.log(self.n) / (self.n * self.d))


def steps_per_second(envs: dict[str, VecEnv], actions: NDArray[np.float32], repeats: int) -> dict[str, float]:
    """Environment steps in a second, over batches of actions (K, ENVS, m)."""
    seconds: dict[str, list[float]] = {name: [] for name in envs}
    # In turn, so that whatever else the machine does hits all alike; the first turn compiles and is not counted.
    for _ in range(repeats + 1):
        for name, env in envs.items():
            start = time.perf_counter()
            for batch in actions:
                env.step(batch)
            seconds[name].append(time.perf_counter() - start)
    return {name: actions.shape[0] * actions.shape[1] / float(np.median(times[1:])) for name, times in seconds.items()}


def environments(X: NDArray[np.float64]) -> dict[str, VecEnv]:
    """The contenders; all give the same rewards."""
    score, plain = Score(X, "linear", "bic-ev"), NumpyScore(X)

    def loop(any_score: Any) -> VecEnv:
        return DummyVecEnv([lambda: DagEnv(any_score)] * ENVS)

    return {"numpy_loop": loop(plain), "compiled_loop": loop(score), "vectorised": DagVecEnv(score, ENVS)}


def measure(d: int, repeats: int) -> list[dict[str, Any]]:
    """Steps per second of every contender at ``d`` nodes, on dense and on sparse graphs."""
    rng = np.random.default_rng(0)
    X = simulate.linear_gaussian(d=d, k=2, n=1000, rng=rng).X
    batches = max(2, 600 // d)
    dense = rng.standard_normal((batches, ENVS, vec_dim(d)))
    sparse = [dag2vec(simulate.erdos_renyi(d, 2, rng)) for _ in range(batches * ENVS)]
    records = []
    for graphs, actions in (("decoded from N(0, I)", dense), ("ER-2", np.reshape(sparse, dense.shape))):
        actions = actions.astype(np.float32)
        contenders = environments(X)
        rewards = [env.step(actions[0])[1] for env in contenders.values()]
        assert all(np.allclose(rewards[0], other, atol=1e-5) for other in rewards)
        records.append({"d": d, "graphs": graphs, **steps_per_second(contenders, actions, repeats)})
    return records


def row(record: dict[str, Any]) -> list[str]:
    """Cells of a record."""
    plain, compiled, vectorised = (record[name] for name in ("numpy_loop", "compiled_loop", "vectorised"))
    return [
        str(record["d"]),
        record["graphs"],
        f"{plain:,.0f}",
        f"{compiled:,.0f}",
        f"{vectorised:,.0f}",
        f"{vectorised / plain:.1f}",
        f"{vectorised / compiled:.1f}",
        yes(vectorised / compiled >= TARGET) if record["d"] == 30 else "-",
    ]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.env", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="the medians are over this many (default 5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of env.md and env.json")
    args = parser.parse_args()
    records = []
    for d in SIZES:
        say(f"d = {d}")
        records += measure(d, args.repeats)
    table = Table(
        "Environment steps per second",
        (
            "nodes",
            "graphs",
            "loop, numpy score",
            "loop, compiled score",
            "DagVecEnv",
            "times the numpy loop",
            "times the compiled loop",
            f"at least {TARGET:g}?",
        ),
        [row(record) for record in records],
        (
            f"{ENVS} environments, linear regression, `bic-ev`, n = 1000, all cores; medians of {args.repeats} repeats "
            f"after one that is not counted. A loop is Stable-Baselines3's `DummyVecEnv` over {ENVS} `DagEnv`. With a "
            "score written in numpy it is what one writes first; with `Score` every graph is already scored by "
            "compiled code, one at a time, and the target is against that one.",
        ),
    )
    print(", ".join(f"{what} {value}" for what, value in machine().items()) + "\n")
    print(table.markdown())
    write("env", {"env": Part([table], records, "python -m benchmarks.env")}, ["env"], args.results, "Environments")


if __name__ == "__main__":
    main()
