"""One run of one other package, in its own process and environment: ``python peers.py METHOD IN.npz OUT.npz``.

It imports nothing of vec2dag, so that the environment of the peers needs nothing but the peers. ``IN.npz`` holds
the table ``X``; ``OUT.npz`` receives the graph ``A`` (1 in both directions for an undirected edge) and the seconds
that the method took, imports not counted.

Causal-learn maximises ``-n ln(r) / 2 - lambda ln(n)`` for every parent, so ``lambda = 1/2`` is the criterion of
vec2dag's ``bic-nv`` and the default of its GES. The default of its GRaSP and BOSS is 2, four times the price: those
are run both ways, with the shared criterion and (``-default``) as their authors ship them.
"""

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SAME_CRITERION = {"lambda_value": 0.5}


def _cpdag(graph: Any) -> Array:
    """Causal-learn marks the tail of an edge with -1: at ``[i, j]`` for i -> j, at both places for i - j."""
    return (np.asarray(graph.graph) == -1).astype(np.uint8)


def ges(X: Array) -> Callable[[], Array]:
    from causallearn.search.ScoreBased.GES import ges

    return lambda: _cpdag(ges(X, "local_score_BIC", parameters=dict(SAME_CRITERION))["G"])


def grasp(X: Array) -> Callable[[], Array]:
    from causallearn.search.PermutationBased.GRaSP import grasp

    return lambda: _cpdag(grasp(X, parameters=dict(SAME_CRITERION), verbose=False))


def grasp_default(X: Array) -> Callable[[], Array]:
    from causallearn.search.PermutationBased.GRaSP import grasp

    return lambda: _cpdag(grasp(X, verbose=False))


def boss(X: Array) -> Callable[[], Array]:
    from causallearn.search.PermutationBased.BOSS import boss

    return lambda: _cpdag(boss(X, parameters=dict(SAME_CRITERION), verbose=False))


def boss_default(X: Array) -> Callable[[], Array]:
    from causallearn.search.PermutationBased.BOSS import boss

    return lambda: _cpdag(boss(X, verbose=False))


def dagma(X: Array) -> Callable[[], Array]:
    from dagma.linear import DagmaLinear

    # The settings of its authors' example; the threshold on weights is the 0.3 of every linear table.
    model = DagmaLinear(loss_type="l2", verbose=False)
    return lambda: (model.fit(X, lambda1=0.02, w_threshold=0.3) != 0).astype(np.uint8)


METHODS: dict[str, Callable[[Array], Callable[[], Array]]] = {
    "ges": ges,
    "grasp": grasp,
    "grasp-default": grasp_default,
    "boss": boss,
    "boss-default": boss_default,
    "dagma": dagma,
}


def main(method: str, source: str, target: str) -> None:
    """Run one method on one table."""
    # GRaSP and BOSS draw from the global generators.
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    run = METHODS[method](np.load(source)["X"])
    start = time.perf_counter()
    A = run()
    np.savez(target, A=A, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:4])
