"""What pgmpy and causal-learn make of networks of categories, in an environment that has them.

``python benchmarks/run_discrete.py tables FILE``: tables of networks that pgmpy ships, their graphs, and pgmpy's BDeu
of random graphs. ``... search NETWORK ROWS METHOD FILE``: the graph that a method finds in one, and its seconds. The
environment needs nothing of ours (``pip install pgmpy causal-learn``): ``python -m benchmarks.discrete --python
PYTHON`` runs this.
"""

import json
import sys
import time
import warnings

import numpy as np
import pandas as pd

NETWORKS = ("asia", "cancer", "earthquake", "survey", "sachs", "child", "alarm", "insurance")
ROWS = (1000, 10_000)
# Rows that the prior is worth, pgmpy's default; random graphs of each network.
PRIOR, GRAPHS = 10, 200


def table(model, rows):
    """A table of a network, its columns in alphabetical order."""
    return model.simulate(rows, seed=rows, show_progress=False)[sorted(model.nodes())].astype(str)


def random_graph(d, rng, most=4):
    """A DAG (d, d) with at most so many parents of a node."""
    order, A = rng.permutation(d), np.zeros((d, d), int)
    for t in range(1, d):
        A[rng.choice(order[:t], min(t, int(rng.integers(0, most + 1))), replace=False), order[t]] = 1
    return A


def tables(file):
    """Write tables, graphs and numbers of pgmpy."""
    from pgmpy.structure_score import BDeu
    from pgmpy.utils import get_example_model

    rng, content = np.random.default_rng(0), {}
    for name in NETWORKS:
        model = get_example_model(name)
        names = sorted(model.nodes())
        A = np.zeros((len(names), len(names)), int)
        for cause, effect in model.edges():
            A[names.index(cause), names.index(effect)] = 1
        content[name] = {"names": names, "A": A.tolist(), "tables": {}}
        for rows in ROWS:
            content[name]["tables"][str(rows)] = table(model, rows).to_numpy().tolist()
        frame = table(model, ROWS[0])
        score, numbers = BDeu(frame, equivalent_sample_size=PRIOR), []
        for _ in range(GRAPHS):
            A = random_graph(len(names), rng)
            parents = [tuple(names[i] for i in np.flatnonzero(A[:, j])) for j in range(len(names))]
            value = sum(score.local_score(names[j], parents[j]) for j in range(len(names)))
            numbers.append({"A": A.tolist(), "bdeu": float(value)})
        content[name]["graphs"] = numbers
        print(name, flush=True)
    with open(file, "w") as out:
        json.dump(content, out)


def hill_climb(frame):
    """pgmpy's HillClimbSearch."""
    from pgmpy.estimators import HillClimbSearch

    return HillClimbSearch(frame).estimate(scoring_method="bdeu", show_progress=False).edges()


def ges(frame):
    """pgmpy's GES."""
    from pgmpy.estimators import GES

    return GES(frame).estimate(scoring_method="bdeu").to_dag().edges()


def causal_learn(frame):
    """The GES of causal-learn."""
    from causallearn.search.ScoreBased.GES import ges as search
    from pgmpy.base import PDAG

    codes = np.column_stack([np.unique(frame[name], return_inverse=True)[1] for name in frame.columns])
    G = search(codes, score_func="local_score_BDeu", parameters={"sample_prior": PRIOR, "structure_prior": 1})[
        "G"
    ].graph
    names = list(frame.columns)
    # [i, j] = -1 and [j, i] = 1 is i -> j; -1 both ways has no direction.
    there = [(names[i], names[j]) for i, j in np.argwhere((G == -1) & (G.T == 1))]
    free = [(names[i], names[j]) for i, j in np.argwhere((G == -1) & (G.T == -1)) if i < j]
    return PDAG(directed_ebunch=there, undirected_ebunch=free).to_dag().edges()


METHODS = {"pgmpy HillClimb": hill_climb, "pgmpy GES": ges, "causal-learn GES": causal_learn}


def search(network, rows, method, file):
    """Write the graph that a method finds in a table of the file, and its seconds."""
    with open(file) as given:
        content = json.load(given)[network]
    names = content["names"]
    frame = pd.DataFrame(content["tables"][rows], columns=names)
    # Seconds are those of the search: what it imports, and does once in a process, comes before.
    METHODS[method](frame.iloc[:100, :3])
    wall, processor = time.perf_counter(), time.process_time()
    edges = METHODS[method](frame)
    found = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    print(json.dumps(found | {"edges": [[names.index(i), names.index(j)] for i, j in edges]}))


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    {"tables": tables, "search": search}[sys.argv[1]](*sys.argv[2:])
