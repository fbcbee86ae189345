"""The pictures of the documentation, in docs/img: ``python docs/pictures.py`` makes all of them in half a minute."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes

from vec2dag import ALIAS, PPO, Conditional, DataWarning, Knowledge, bootstrap, datasets, plot, simulate, vec2dag

FOLDER = Path(__file__).parent / "img"


def save(name: str, axes: Any) -> None:
    """The figure of the axes, the same bytes in every run."""
    figure = np.atleast_1d(axes)[0].figure
    # Lines as vectors; clouds of points as pixels.
    vector = name.endswith("svg")
    with matplotlib.rc_context({"svg.hashsalt": "vec2dag"}):
        figure.savefig(FOLDER / name, dpi=140, metadata={"Date": None} if vector else {"Software": None})


def decoding(theme: str) -> Any:
    """How a vector becomes a DAG: its numbers, the pairs that are joined, arrows from low to high potentials."""
    import matplotlib.pyplot as plt

    colours = plot.THEMES[theme]
    d, names = 4, "abcd"
    z = np.array([0.6, -0.9, 1.3, -0.2, 0.8, -0.5, -1.1, 0.4, 0.9, 0.7])
    potentials, (i, j), A = z[:d], np.triu_indices(d, 1), vec2dag(z)
    labels = [f"$p_{n}$" for n in names] + [f"$E_{{{names[a]}{names[b]}}}$" for a, b in zip(i, j, strict=True)]
    _, axes = plt.subplots(
        1, 3, figsize=(9.6, 2.9), width_ratios=(1.25, 1, 1), layout="constrained", facecolor=colours.background
    )
    bars = axes[0].barh(labels, z, color=[colours.positive if v > 0 else colours.negative for v in z])
    for bar in bars[:d]:
        bar.set_color(colours.other)
    axes[0].axvline(0, color=colours.soft, linewidth=0.8)
    axes[0].invert_yaxis()
    axes[0].set_title("a vector z of d (d + 1) / 2 numbers")
    x = np.array([0.0, 1.0, 2.0, 3.0])
    for axis, title in zip(axes[1:], ("pairs with E > 0 are joined", "arrows go from low p to high p"), strict=True):
        for a, b, e in zip(i, j, z[d:], strict=True):
            if e > 0:
                ends = (a, b) if A[a, b] else (b, a)
                style = {"arrowstyle": "-|>" if axis is axes[2] else "-", "color": colours.positive, "linewidth": 1.8}
                start, end = ((x[k], potentials[k]) for k in ends)
                axis.annotate("", end, start, arrowprops=style | {"shrinkA": 11, "shrinkB": 11, "mutation_scale": 15})
        axis.scatter(x, potentials, s=420, facecolor=colours.card, edgecolor=colours.soft, zorder=3)
        for k, name in enumerate(names):
            axis.text(x[k], potentials[k], name, color=colours.ink, ha="center", va="center", zorder=4)
        axis.set(xlim=(-0.6, 3.6), ylim=(1.8, -1.4), xticks=[], ylabel="potential p" if axis is axes[1] else "")
        axis.set_title(title)
    for axis in axes:
        axis.set_facecolor(colours.background)
        axis.title.set(color=colours.ink, fontsize=10.5)
        axis.yaxis.label.set_color(colours.soft)
        axis.tick_params(colors=colours.soft)
        axis.spines[:].set_visible(False)
    return axes


def main() -> None:
    """Fit, draw and write."""
    FOLDER.mkdir(exist_ok=True)
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", DataWarning)

    for theme in ("light", "dark"):
        save(f"vec2dag-{theme}.svg", decoding(theme))

    # The example of README.md.
    columns = {"age": "age", "bmi": "body mass", "bp": "blood pressure"}
    columns |= {"s5": "triglycerides", "s6": "glucose", "target": "progression"}
    table = load_diabetes(as_frame=True, scaled=False).frame[[*columns]].rename(columns=columns)
    patients = ALIAS(knowledge=Knowledge(tiers=[["age"], ["*"], ["progression"]]), random_state=0).fit(table)
    samples = bootstrap(patients, table, 100, random_state=0)
    for theme in ("light", "dark"):
        save(f"diabetes-{theme}.svg", plot.graph(patients, confidence=samples, theme=theme))

    sachs = datasets.load_sachs()
    model = ALIAS(random_state=0).fit(sachs.X, names=sachs.names)
    samples = bootstrap(model, sachs.X, 200, names=sachs.names, random_state=0)
    for theme in ("light", "dark"):
        save(f"sachs-{theme}.svg", plot.graph(model, confidence=samples, theme=theme))
    save("consensus.svg", plot.graph(sachs.A, names=sachs.names))
    save("confidence.png", plot.confidence(samples, top=15))
    save("adjacency.png", plot.adjacency(model, sachs.A))

    large = simulate.linear_gaussian(d=44, k=1.5, n=500, rng=np.random.default_rng(3))
    save("large.svg", plot.graph(ALIAS(random_state=0).fit(large.X)))

    linear = simulate.linear_gaussian(d=14, k=2, n=300, rng=np.random.default_rng(0))
    settings = {"criterion": "bic-ev", "init": "random", "refine": False, "random_state": 0}
    runs = [ALIAS(algorithm=algorithm, **settings).fit(linear.X) for algorithm in (Conditional(), PPO())]
    save("history.png", plot.history(*runs))

    rng = np.random.default_rng(1)
    curved = simulate.simulate(simulate.erdos_renyi(5, 1, rng), simulate.gaussian_process, n=300, rng=rng)
    nonlinear = ALIAS(regression="gp", random_state=0).fit(curved.X)
    save("pairs.png", plot.pairs(nonlinear, curved.X))


if __name__ == "__main__":
    main()
