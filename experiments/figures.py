"""The figures of the paper, from finished runs.

Every method has one colour, one dash and one marker in all figures (Okabe and Ito's colours, which differ in lightness
too, so that a print in grey can be read), lines are named where they end, and bands are standard errors over datasets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .store import Store
from .summary import Number, lines, published
from .tables import TABLES


@dataclass(frozen=True)
class Style:
    """How a method is drawn, and what it is called there."""

    label: str
    color: str
    dash: Any = "-"
    marker: str = "o"
    width: float = 1.2


_DOTS, _DASHES, _MIXED = (0, (1, 1.5)), (0, (5, 2)), (0, (5, 1.5, 1, 1.5))
STYLES = {
    "vec2dag": Style("vec2dag", "#000000", width=2.0),
    "alias": Style("ALIAS, paper", "#000000", _DOTS, "s", 1.0),
    "dagma": Style("DAGMA", "#0072b2", "-", "^"),
    "notears": Style("NOTEARS", "#56b4e9", "-", "v"),
    "nocurl": Style("NOCURL", "#009e73", _DASHES, "D"),
    "cosmo": Style("COSMO", "#d55e00", _DASHES, "s"),
    "rl-bic": Style("RL-BIC", "#cc79a7", _MIXED, "<"),
    "corl": Style("CORL", "#cc79a7", _DOTS, ">"),
    "rcl-og": Style("RCL-OG", "#cc79a7", "-", "P"),
    "sortnregress": Style("sortnregress", "#999999", "-", "x"),
    "equal-variance": Style("equal variance, threshold", "#777777", _DOTS, "+"),
    "equal-variance-bic": Style("equal variance, BIC", "#555555", _DASHES, "+"),
    "pc": Style("PC", "#e69f00", "-", "1"),
    "ges": Style("GES", "#e69f00", _DASHES, "2"),
    "grasp": Style("GRaSP", "#e69f00", _DOTS, "3"),
    "boss": Style("BOSS", "#e69f00", _MIXED, "4"),
    "flop": Style("FLOP", "#b8860b", "-", "*"),
    "lingam": Style("DirectLiNGAM", "#7a3e9d", _MIXED, "h"),
    "ppo bic": Style("PPO, BIC", "#000000", width=1.8),
    "a2c bic": Style("A2C, BIC", "#d55e00", _DASHES),
    "ppo ls": Style("PPO, least squares", "#0072b2"),
    "a2c ls": Style("A2C, least squares", "#56b4e9", _DASHES),
    "ALIAS.paper()": Style("ALIAS.paper()", "#777777", "-"),
    "sb3 ppo bic": Style("PPO of Stable-Baselines3, BIC", "#777777", _DOTS),
}
_RC = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.hashsalt": "vec2dag",
}
_GAP = 8.5  # points between two names at least
Draw = Callable[[Store, Any], None]


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "vec2dag[plot]"') from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_all(store: Store, folder: Path) -> dict[str, Path]:
    """Draw every figure that has runs into a folder; the files by table."""
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, (draw, size) in FIGURES.items():
        with pyplot.rc_context(_RC):
            figure = pyplot.figure(figsize=size, layout="constrained")
            draw(store, figure)
            files[name] = folder / f"{name}.svg"
            # Without a date: the same rows give the same file.
            figure.savefig(files[name], metadata={"Date": None})
            pyplot.close(figure)
    return files


def _band(ax: Any, x: Sequence[float], values: Sequence[Number], name: str) -> None:
    """A line with its standard errors, the name kept for :func:`_names`."""
    order = np.argsort(x)
    at = np.asarray(x, dtype=float)[order]
    mean = np.array([value.mean for value in values])[order]
    se = np.nan_to_num(np.array([value.se for value in values]))[order]
    how = STYLES[name]
    crowded = len(at) > 10
    ax.plot(
        at,
        mean,
        color=how.color,
        linestyle=how.dash,
        linewidth=how.width,
        marker="" if crowded else how.marker,
        markersize=4,
        label=how.label,
        zorder=3 if name == "vec2dag" else 2,
    )
    ax.fill_between(at, mean - se, mean + se, color=how.color, alpha=0.15, linewidth=0)


def _names(ax: Any) -> None:
    """Write the name of every line beside its end, moved apart where they would overlap."""
    ends = [
        (line.get_xdata()[-1], line.get_ydata()[-1], line.get_label(), line.get_color())
        for line in ax.get_lines()
        if not line.get_label().startswith("_") and len(line.get_xdata())
    ]
    points = 72.0 / ax.figure.dpi
    places = sorted(((ax.transData.transform((x, y)) * points)[1], k) for k, (x, y, *_) in enumerate(ends))
    right = ax.get_xlim()[1]
    above = -np.inf
    for place, k in places:
        x, y, label, color = ends[k]
        above = max(place, above + _GAP)
        ax.annotate(
            label,
            (x, y),
            xytext=(ax.transData.transform((right, y))[0] * points + 4, above),
            textcoords=_absolute_points(ax),
            color=color,
            fontsize=7,
            va="center",
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 1},
            annotation_clip=False,
        )


def _absolute_points(ax: Any) -> Any:
    from matplotlib.transforms import Affine2D

    return Affine2D().scale(ax.figure.dpi / 72.0)


def _name_all(figure: Any) -> None:
    """Names beside the lines of the rightmost panel of every row, whose lines stand for those of the others."""
    figure.canvas.draw()  # the layout decides where the ends are
    figure.set_layout_engine("none")
    for ax in figure.axes:
        if ax.get_subplotspec().is_last_col():
            _names(ax)


def _room(figure: Any, share: float = 0.8) -> None:
    """Keep the right of a figure free for names."""
    figure.get_layout_engine().set(rect=(0, 0, share, 1))


def _number_in(cell: str, letter: str) -> int:
    """Nodes (d) or rows (n) in a name like ``samples-er8-d30-n500``."""
    if cell == "highdim-er2":
        return 200
    return int(next(part[1:] for part in cell.split("-") if part[0] == letter and part[1:].isdecimal()))


def _by_size(
    store: Store, ax: Any, table: str, cells: list[str], metric: str, letter: str, title: str, **axis: Any
) -> None:
    """A metric of every method over the sizes of the cells, where it was run at two sizes at least."""
    series: dict[str, tuple[list[float], list[Number]]] = {}
    for line in lines(TABLES[table], store):
        if line.cell in cells and (metric == "seconds" or metric in line.here) and line.sets:
            x, y = series.setdefault(line.name, ([], []))
            x.append(_number_in(line.cell, letter))
            y.append(Number(line.seconds) if metric == "seconds" else line.here[metric])
    for name, (x, y) in series.items():
        if len(x) > 1 and name in STYLES:
            _band(ax, x, y, name)
    ax.set(title=title, **axis)


def _shd_axis(ax: Any) -> None:
    """Linear up to 1 and logarithmic beyond: zero has a place."""
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)


def _curves(store: Store, figure: Any) -> None:
    """SHD and reward by updates."""
    axes = figure.subplots(1, 3)
    _room(figure)
    for run in TABLES["curves"].runs:
        rows = [r for r in store.series("dense-er8", run.method, run.settings) if "curve" in r]
        if not rows:
            continue
        steps = rows[0]["curve"]["step"]
        panel = axes[1] if run.name.endswith("ls") else axes[0]
        for ax, what in ((axes[2], "shd"), (panel, "reward")):
            _band(ax, steps, [Number.of(v) for v in zip(*(r["curve"][what] for r in rows), strict=True)], run.name)
    for name in ("dagma", "corl"):
        paper, how = published()["learning-rate", "dense-er8", name, "linear"]["shd"], STYLES[name]
        ends = axes[2].get_xlim() if axes[2].get_lines() else (1, 10)
        label = f"{how.label}, paper"
        axes[2].plot(ends, [paper.mean] * 2, color=how.color, linestyle=how.dash, linewidth=0.8, label=label)
    axes[0].set(title="mean reward, BIC", xscale="log", xlabel="updates")
    axes[1].set(title="mean reward, least squares", xscale="log", xlabel="updates", yscale="symlog", ylim=(None, -0.1))
    axes[2].set(title="SHD of the decoded mean", xscale="log", xlabel="updates")
    _name_all(figure)


def _small(store: Store, figure: Any) -> None:
    axes = figure.subplots(2, 3, sharex=True)
    _room(figure)
    for row, k in zip(axes, (1, 2), strict=True):
        cells = [cell for cell in TABLES["small"].cells if f"er{k}" in cell]
        for ax, metric in zip(row, ("tpr", "fdr", "shd"), strict=True):
            _by_size(store, ax, "small", cells, metric, "d", f"ER-{k}: {metric.upper()}")
            if metric == "shd":
                _shd_axis(ax)
            else:
                ax.set(ylim=(-0.03, 1.03))
    for ax in axes[1]:
        ax.set(xlabel="nodes")
    _name_all(figure)


def _samples(graph: str) -> Draw:
    def draw(store: Store, figure: Any) -> None:
        table = TABLES[f"samples-{graph}"]
        axes = figure.subplots(1, 3, sharey=True)
        _room(figure)
        for ax, d in zip(axes, (20, 30, 50), strict=True):
            cells = [cell for cell in table.cells if f"-d{d}-" in cell]
            title = f"{graph.upper()[:2]}-8, {d} nodes: SHD"
            _by_size(store, ax, table.name, cells, "shd", "n", title, xlabel="rows", xscale="log")
            paper = [published()[table.name, cell, "alias", "linear"]["shd"] for cell in cells]
            _band(ax, [_number_in(cell, "n") for cell in cells], paper, "alias")
        _shd_axis(axes[0])  # shared by all
        _name_all(figure)

    return draw


def _runtime(store: Store, figure: Any) -> None:
    axes = figure.subplots(1, 2)
    _room(figure, 0.76)
    cells = list(TABLES["runtime"].cells)
    _by_size(store, axes[0], "runtime", cells, "shd", "d", "SHD", xlabel="nodes", xscale="log")
    _by_size(store, axes[1], "runtime", cells, "seconds", "d", "seconds", xlabel="nodes", xscale="log", yscale="log")
    _shd_axis(axes[0])
    _name_all(figure)


def _weights(store: Store, figure: Any) -> None:
    panels = [(weights, k) for weights in ("linear", "regular") for k in (1, 2)]
    axes = figure.subplots(2, 2, sharex=True)
    _room(figure, 0.76)
    for ax, (weights, k) in zip(axes.flat, panels, strict=True):
        cells = [cell for cell in TABLES["weights"].cells if cell.startswith(f"{weights}-er{k}")]
        title = f"ER-{k}, weights of {'2 to 5' if weights == 'linear' else '0.5 to 2'}: SHD"
        _by_size(store, ax, "weights", cells, "shd", "d", title)
        _shd_axis(ax)
    for ax in axes[1]:
        ax.set(xlabel="nodes")
    _name_all(figure)


FIGURES: dict[str, tuple[Draw, tuple[float, float]]] = {
    "curves": (_curves, (9, 2.6)),
    "small": (_small, (9, 4.6)),
    "samples-er8": (_samples("er8"), (9, 2.6)),
    "runtime": (_runtime, (7.5, 2.8)),
    "samples-sf8": (_samples("sf8"), (9, 2.6)),
    "weights": (_weights, (7.5, 4.8)),
}
