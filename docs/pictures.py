"""The pictures of the documentation, in docs/img: ``python docs/pictures.py`` makes all of them in half a minute."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from vec2dag import ALIAS, PPO, Conditional, DataWarning, bootstrap, datasets, plot, simulate

FOLDER = Path(__file__).parent / "img"


def save(name: str, axes: Any) -> None:
    """The figure of the axes, the same bytes in every run."""
    figure = np.atleast_1d(axes)[0].figure
    # Lines as vectors; clouds of points as pixels.
    vector = name.endswith("svg")
    with matplotlib.rc_context({"svg.hashsalt": "vec2dag"}):
        figure.savefig(FOLDER / name, dpi=140, metadata={"Date": None} if vector else {"Software": None})


def main() -> None:
    """Fit, draw and write."""
    FOLDER.mkdir(exist_ok=True)
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", DataWarning)

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
