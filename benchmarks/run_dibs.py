"""DiBS (Lorch et al. 2021) on tables in a file, in an environment that has it: ``pip install dibs-lib``.

``python benchmarks/run_dibs.py TABLES.npz EDGES.npz``: of every array (n, d) in the one file the probabilities of edges
(d, d) under DiBS+ go to the other, as they come; those that are there already are not computed again. The environment
needs nothing of ours: ``python -m benchmarks.posterior er2 --dibs PYTHON`` runs this with another interpreter.
"""

import hashlib
import sys
import time
from pathlib import Path

import jax
import numpy as np
from dibs.graph_utils import elwise_acyclic_constr_nograd
from dibs.inference import MarginalDiBS
from dibs.models import BGe, ErdosReniDAGDistribution

# Of the example that its authors give; their experiments had 30 particles and 3,000 steps, about five times the work.
PARTICLES, STEPS = 20, 1000


def edge_probabilities(X, seed):
    """Of all particles that are DAGs, weighted by their posterior (the DiBS+ mixture); NaN if none is."""
    d = X.shape[1]
    model = MarginalDiBS(
        x=jax.numpy.asarray(X),
        graph_model=ErdosReniDAGDistribution(n_vars=d, n_edges_per_node=2),
        likelihood_model=BGe(n_vars=d),
    )
    graphs = model.sample(key=jax.random.PRNGKey(seed), n_particles=PARTICLES, steps=STEPS)
    found = model.get_mixture(graphs)
    graphs, weights = np.asarray(found.g, dtype=float), np.exp(np.asarray(found.logp))
    dags = np.asarray(elwise_acyclic_constr_nograd(graphs, d)) == 0
    if not dags.any():
        return np.full((d, d), np.nan), 0
    return np.einsum("k,kij->ij", weights[dags] / weights[dags].sum(), graphs[dags]), int(dags.sum())


def main(tables, edges):
    """Read, sample, write; results are kept by the digest of their table."""
    results = dict(np.load(edges)) if Path(edges).exists() else {}
    with np.load(tables) as file:
        for seed, name in enumerate(file.files):
            key = hashlib.sha256(np.ascontiguousarray(file[name]).tobytes()).hexdigest()[:16]
            if key not in results:
                begin = time.perf_counter()
                results[key], dags = edge_probabilities(file[name], seed)
                results[f"{key}_seconds"] = time.perf_counter() - begin
                np.savez(edges, **results)
                print(
                    f"{name}: {dags} of {PARTICLES} particles are DAGs, {results[f'{key}_seconds']:.0f} s", flush=True
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
