"""From a table to a graph with names, and what the data do not determine."""

from vec2dag import ALIAS, datasets, metrics

sachs = datasets.load_sachs()
model = ALIAS(random_state=0).fit(sachs.X, names=sachs.names)

for cause, effect, edge in model.graph_.edges(data=True):
    arrow = "-->" if edge["direction"] == "determined" else "---"
    print(f"{cause:>5} {arrow} {effect:<5} {edge['weight']:9.4g}")

print("skeleton recall against the consensus:", round(metrics.skeleton_recall(sachs.A, model.adjacency_matrix_), 2))
