"""What comparisons need: other packages in their own processes, one DAG of a class, and a second opinion on BIC."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tables import ROOT, say

PEERS_PYTHON = ROOT / ".venv-peers" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@dataclass(frozen=True)
class PeerRun:
    """A graph (1 in both directions for an undirected edge) and its seconds, or the reason for there being none."""

    A: NDArray[np.uint8] | None = None
    seconds: float = float("nan")
    problem: str = ""


@dataclass(frozen=True)
class Peers:
    """Runs the methods of ``peers.py`` with the interpreter that has them.

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
        if not self.python.exists():
            return PeerRun(problem="not installed (make peers)")
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
            np.savez(source, X=X)
            # -I: nothing of this environment may reach the other one.
            command = [str(self.python), "-I", str(Path(__file__).with_name("peers.py")), method]
            try:
                done = subprocess.run(
                    [*command, str(source), str(target)],
                    timeout=self.limit,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return PeerRun(seconds=self.limit, problem=f"over {self.limit:.0f} s")
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                return PeerRun(problem=f"failed: {last[:80]}")
            with np.load(target) as found:
                return PeerRun(found["A"], float(found["seconds"]))


def consistent_extension(C: ArrayLike) -> NDArray[np.uint8] | None:
    """A DAG with the edges and v-structures of a partially directed graph (Dor & Tarsi 1992), or None.

    Parameters
    ----------
    C : array of shape (d, d)
        1 at ``[i, j]`` alone for ``i -> j``, at both places for an undirected edge.
    """
    left = np.array(C) != 0
    directed = left & ~left.T
    A = directed.copy()
    nodes = list(range(len(left)))
    while nodes:
        for x in nodes:
            around = np.flatnonzero(left[x] | left[:, x])
            free = np.flatnonzero(left[x] & left[:, x])
            adjacent = left[np.ix_(free, around)] | left[np.ix_(around, free)].T | (free[:, None] == around)
            if not (left[x] & ~left[:, x]).any() and adjacent.all():
                A[free, x] = True
                left[x] = left[:, x] = False
                nodes.remove(x)
                break
        else:
            return None
    return A.astype(np.uint8)


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
