"""How well a time budget is kept: seconds of whole fits beside those that were given.

``python -m benchmarks.budgets [--repeats N]``. Writes ``benchmarks/results/budgets.md`` and ``budgets.json``.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vec2dag import ALIAS, simulate

from .tables import RESULTS, Part, Table, say, write

# A fit may take this share and so many seconds more than it was given.
SHARE, SECONDS = 0.1, 1.0

Fit = Callable[[NDArray[np.float64], float, int], bool]


def estimator(**parameters: Any) -> Fit:
    """A fit of the estimator; whether it had to stop early."""

    def fit(X: NDArray[np.float64], budget: float, seed: int) -> bool:
        return not ALIAS(**parameters, time_budget=budget, random_state=seed).fit(X).search_.converged

    return fit


def resampled(X: NDArray[np.float64], budget: float, seed: int) -> bool:
    """A bootstrap that cannot be done in the time."""
    from vec2dag import bootstrap

    return len(bootstrap(ALIAS(), X, n_samples=10_000, time_budget=budget, random_state=seed).samples) < 10_000


def dense(d: int, n: int, k: int = 8) -> Callable[[np.random.Generator], NDArray[np.float64]]:
    """Tables of graphs with ``k`` parents a node, standardised; of dense ones, that take longer than any budget."""
    return lambda rng: simulate.linear_gaussian(d=d, k=k, n=n, rng=rng).standardise().X


def curved(d: int, n: int) -> Callable[[np.random.Generator], NDArray[np.float64]]:
    """Tables of Gaussian processes."""
    return lambda rng: simulate.simulate(simulate.erdos_renyi(d, 2, rng), simulate.gaussian_process, n=n, rng=rng).X


KINDS: dict[str, tuple[Callable[[np.random.Generator], NDArray[np.float64]], Fit]] = {
    "bic-nv, d = 50": (dense(50, 1000), estimator(criterion="bic-nv")),
    "bic-nv, d = 200": (dense(200, 1000), estimator(criterion="bic-nv")),
    "bic-nv, d = 500": (dense(500, 1000), estimator(criterion="bic-nv")),
    "bic-ev, d = 200": (dense(200, 1000), estimator(criterion="bic-ev")),
    "ppo, d = 50": (dense(50, 1000), estimator(criterion="bic-ev", algorithm="ppo")),
    "gp with CAM pruning, d = 10, n = 1000": (curved(10, 1000), estimator(regression="gp")),
    "gp with CAM pruning, d = 8, n = 5000": (curved(8, 5000), estimator(regression="gp")),
    "gp with CI pruning, d = 10, n = 1000": (curved(10, 1000), estimator(regression="gp", prune="ci")),
    "bootstrap, d = 30": (dense(30, 1000, k=2), resampled),
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budgets", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="tables of each kind")
    parser.add_argument("--budgets", type=float, nargs="+", default=[2.0, 5.0, 10.0], help="seconds")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    # Compiled before anything is measured.
    for criterion in ("bic-nv", "bic-ev"):
        ALIAS(criterion, random_state=0).fit(np.random.default_rng(0).standard_normal((50, 14)))
    rows, records = [], []
    for kind, (draw, fit) in KINDS.items():
        over = []
        for budget in args.budgets:
            for repeat in range(args.repeats):
                X = draw(np.random.default_rng([repeat, 7]))
                start = time.perf_counter()
                early = fit(X, budget, repeat)
                seconds = time.perf_counter() - start
                over.append(seconds - budget * (1.0 + SHARE) - SECONDS)
                records.append({"kind": kind, "budget": budget, "seconds": seconds, "stopped_early": early})
        mine = [r for r in records if r["kind"] == kind]
        late = np.array([r["seconds"] - r["budget"] for r in mine if r["stopped_early"]])
        rows.append(
            [
                kind,
                f"{len(late)} of {len(mine)}",
                "" if not len(late) else f"{np.median(late):.2f}",
                "" if not len(late) else f"{np.percentile(late, 95):.2f}",
                f"{sum(o <= 0 for o in over)} of {len(over)}",
            ]
        )
        say(" | ".join(rows[-1]))
    columns = ("kind", "stopped early", "s late, median", "s late, 95%", f"within {SHARE:.0%} + {SECONDS:g} s")
    notes = (
        f"Budgets of {', '.join(f'{b:g}' for b in args.budgets)} s, {args.repeats} tables each, all cores; a whole "
        "`fit` (validation, search, refinement, pruning) against `time_budget`. Late is counted for fits that had to "
        "stop.",
    )
    table = Table("Time budgets", columns, rows, notes)
    print(table.markdown())
    budgets = " ".join(f"{budget:g}" for budget in args.budgets)
    command = f"python -m benchmarks.budgets --repeats {args.repeats} --budgets {budgets}"
    part = Part([table], records, command=command)
    write("budgets", {"budgets": part}, ("budgets",), args.results, "Time budgets")


if __name__ == "__main__":
    main()
