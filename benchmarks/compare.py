"""What comparisons need: other packages in their own processes, and a second opinion on BIC."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.process import execute

from .tables import say

# Causal-learn maximises -n ln(r) / 2 - lambda ln(n) for every parent, so lambda = 1/2 is the criterion of bic-nv. The
# default of its GRaSP and BOSS is 2, four times the price: those are run both ways.
VARIANTS = {
    "grasp-default": ("grasp", {"lambda_value": 2}),
    "boss-default": ("boss", {"lambda_value": 2}),
    "dagma": ("dagma", {"lambda1": 0.02}),  # of its authors' examples
}


@dataclass(frozen=True)
class PeerRun:
    """A graph (1 in both directions for an undirected edge) and its seconds, or the reason for there being none."""

    A: NDArray[np.uint8] | None = None
    seconds: float = float("nan")
    problem: str = ""


@dataclass(frozen=True)
class Peers:
    """Runs other packages with the interpreter that has them.

    Attributes
    ----------
    python : Path
        Interpreter of the environment of the peers.
    limit : float
        Seconds that one run may take, start of the process included.
    wanted : bool
        Whether they are to be run at all.
    """

    python: Path
    limit: float
    wanted: bool = True

    def run(self, method: str, X: ArrayLike) -> PeerRun:
        """One method on one table; problems are reported and not raised."""
        found = self._run(method, np.asarray(X, dtype=np.float64))
        say(f"  {method}: {found.problem or f'{found.seconds:.3g} s'}")
        return found

    def _run(self, method: str, X: NDArray[np.float64]) -> PeerRun:
        name, settings = VARIANTS.get(method, (method, {}))
        outcome = execute(name, settings, 0, X, timeout=self.limit, peers=self.python)
        if outcome.status == "timeout":
            return PeerRun(seconds=self.limit, problem=f"over {self.limit:.0f} s")
        if outcome.status == "failed":
            return PeerRun(problem=f"failed: {outcome.said[:80]}")
        return PeerRun(outcome.found["A"], outcome.facts["seconds"])


def bic_by_qr(X: ArrayLike, A: ArrayLike) -> float:
    """``bic-nv`` over ``n d`` from a QR of the data for every node: slow, and shares no code with the library.

    The squared last diagonal entry of the triangular factor of ``[X_parents, x]`` is the residual sum of squares,
    and forming no product ``X'X`` keeps the digits that one would lose.
    """
    values, adjacency = np.asarray(X, dtype=np.float64), np.asarray(A) != 0
    n, d = values.shape
    centred = values - values.mean(axis=0)
    total = 0.0
    for j in range(d):
        columns = np.column_stack([centred[:, adjacency[:, j]], centred[:, j]])
        R = np.asarray(np.linalg.qr(columns, mode="r"))
        total += np.log(R[-1, -1] ** 2 / n)
    return float(-(n * total + adjacency.sum() * np.log(n)) / (n * d))
