"""GIES and IGSP on tables in a file, in an environment that has them: ``pip install gies causaldag``.

``python benchmarks/run_interventions.py TABLES.npz GRAPHS.npz``: of every table ``X<k>`` (n, d) with targets ``t<k>``
(n,), -1 where nothing was set, the essential graphs (d, d) and the seconds of a core that each method takes go to the
other file. The environment needs nothing of ours: ``python -m benchmarks.interventions --peers PYTHON`` runs this with
another interpreter.

GIES runs twice: with its own score, which has an intercept for every setting, and with ours, which has one for all
rows of a node. IGSP is the greedy sparsest permutation with known targets (Wang et al. 2017); UT-IGSP extends it to
unknown ones.
"""

import sys
import time
from functools import partial

import gies
import numpy as np
from causaldag import igsp
from conditional_independence import (
    MemoizedCI_Tester,
    MemoizedInvarianceTester,
    gauss_invariance_suffstat,
    gauss_invariance_test,
    partial_correlation_suffstat,
    partial_correlation_test,
)
from gies.scores.gauss_int_l0_pen import GaussIntL0Pen

# Levels of both tests of IGSP, and random orders that it starts from.
LEVELS, RUNS = (1e-2, 1e-4), 5


class PooledScore(GaussIntL0Pen):
    """The score of GIES with covariances about the means over all rows of a node."""

    def __init__(self, data, interv):
        super().__init__(data, interv)
        for k in range(self.p):
            rows = np.vstack([env for env, targets in zip(data, interv, strict=True) if k not in targets])
            self.part_sample_cov[k] = np.cov(rows, rowvar=False, ddof=0)


def settings(X, targets):
    """Rows and targets of every setting."""
    values = np.unique(targets)
    return [X[targets == t] for t in values], [[] if t < 0 else [int(t)] for t in values]


def run_gies(X, targets):
    """As it comes."""
    data, interv = settings(X, targets)
    return gies.fit_bic(data, interv)[0]


def run_gies_pooled(X, targets):
    """With the score that vec2dag maximises."""
    data, interv = settings(X, targets)
    return gies.fit(PooledScore(data, interv))[0]


def run_igsp(X, targets, alpha):
    """The arrows (d, d) of its DAG."""
    data, interv = settings(X, targets)
    free = [rows for rows, one in zip(data, interv, strict=True) if not one]
    changed = [(rows, one) for rows, one in zip(data, interv, strict=True) if one]
    ci = MemoizedCI_Tester(partial_correlation_test, partial_correlation_suffstat(free[0]), alpha=alpha)
    suffstat = gauss_invariance_suffstat(free[0], [rows for rows, _ in changed])
    invariance = MemoizedInvarianceTester(gauss_invariance_test, suffstat, alpha=alpha)
    known = [{"interventions": one} for _, one in changed]
    dag = igsp(known, set(range(X.shape[1])), ci, invariance, nruns=RUNS)
    A = np.zeros((X.shape[1], X.shape[1]))
    for i, j in dag.arcs:
        A[i, j] = 1
    return A


METHODS = {"GIES": run_gies, "GIES, our score": run_gies_pooled}
METHODS |= {f"IGSP, {alpha:g}": partial(run_igsp, alpha=alpha) for alpha in LEVELS}


def main(tables, graphs):
    """Run all methods on all tables."""
    with np.load(tables) as stored:
        arrays = dict(stored)
    found = {}
    for name in [name for name in arrays if name.startswith("X")]:
        X, targets = arrays[name], arrays[f"t{name[1:]}"]
        for method, run in METHODS.items():
            begin = time.process_time()
            try:
                A = run(X, targets)
            except Exception as error:  # a peer that fails is a result too
                print(f"{name}, {method}: {type(error).__name__}: {error}", file=sys.stderr)
                A = np.full((X.shape[1], X.shape[1]), np.nan)
            found[f"{name[1:]}|{method}"] = A
            found[f"{name[1:]}|{method}|seconds"] = np.array(time.process_time() - begin)
    np.savez_compressed(graphs, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
