"""P-values of causal-learn's KCI: ``python pvalues.py > pvalues.csv`` (made with causal-learn 0.1.4.8, a minute).

Edges of the full graphs over a causal order, ``causal`` of the table of the CAM reference.
"""

import csv
from pathlib import Path

import numpy as np
from causallearn.utils.KCI.KCI import KCI_CInd, KCI_UInd

HERE = Path(__file__).parent
CAM = HERE.parent / "cam"
SACHS = HERE.parents[2] / "src" / "vec2dag" / "data" / "sachs.csv"

parents: dict[tuple[str, int], list[int]] = {}
with (CAM / "pvalues.csv").open(encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["graph"] == "causal":
            parents.setdefault((row["dataset"], int(row["node"])), []).append(int(row["parent"]))

print("dataset,node,parent,p")
for (dataset, node), sources in parents.items():
    if dataset not in ("sachs", "additive", "short"):
        continue
    table = (
        np.loadtxt(SACHS, delimiter=",", skiprows=1)
        if dataset == "sachs"
        else np.loadtxt(CAM / f"{dataset}.csv", delimiter=",")
    )
    for parent in sources:
        others = [k for k in sources if k != parent]
        x, y = table[:, [parent]], table[:, [node]]
        test = (KCI_CInd(), (x, y, table[:, others])) if others else (KCI_UInd(), (x, y))
        print(f"{dataset},{node},{parent},{test[0].compute_pvalue(*test[1])[0]:.6g}")
