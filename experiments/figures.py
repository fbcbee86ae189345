"""The figures of the paper, from finished runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .store import Store
from .summary import Number, lines, published
from .tables import TABLES

COLORS = {
    "vec2dag": "black",
    "dagma": "tab:blue",
    "notears": "tab:orange",
    "nocurl": "tab:green",
    "cosmo": "tab:red",
    "rl-bic": "tab:brown",
    "corl": "tab:pink",
    "rcl-og": "tab:purple",
    "sortnregress": "silver",
    "equal-variance": "gray",
}
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
    """Draw every figure into a folder; the files by table."""
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, (draw, size) in FIGURES.items():
        figure = pyplot.figure(figsize=size, layout="constrained")
        draw(store, figure)
        files[name] = folder / f"{name}.png"
        figure.savefig(files[name], dpi=110)
        pyplot.close(figure)
    return files


def _band(ax: Any, x: list[float], values: list[tuple[float, float]], name: str, **style: Any) -> None:
    """A line with its standard errors."""
    if not x:
        return
    order = np.argsort(x)
    at, (mean, se) = np.asarray(x)[order], np.asarray(values)[order].T
    color = style.pop("color", COLORS.get(name))
    ax.plot(at, mean, color=color, label=name, marker="o", markersize=3, **style)
    ax.fill_between(at, mean - np.nan_to_num(se), mean + np.nan_to_num(se), color=color, alpha=0.2, linewidth=0)


def _number_in(cell: str, letter: str) -> int:
    """Nodes (d) or rows (n) in a name like ``samples-er8-d30-n500``."""
    if cell == "highdim-er2":
        return 200
    return int(next(part[1:] for part in cell.split("-") if part[0] == letter and part[1:].isdecimal()))


def _by_size(
    store: Store, ax: Any, table: str, cells: list[str], metric: str, letter: str, title: str, **axis: Any
) -> None:
    """A metric of every method over the sizes of the cells."""
    series: dict[str, tuple[list[float], list[tuple[float, float]]]] = {}
    for line in lines(TABLES[table], store):
        if line.cell in cells and (metric == "seconds" or metric in line.here) and line.sets:
            x, y = series.setdefault(line.name, ([], []))
            x.append(_number_in(line.cell, letter))
            y.append((line.seconds, np.nan) if metric == "seconds" else (line.here[metric].mean, line.here[metric].se))
    for name, (x, y) in series.items():
        _band(ax, x, y, name)
    ax.set(title=title, **axis)


def _shd_axis(ax: Any) -> None:
    """Linear up to 1 and logarithmic beyond: zero has a place."""
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)


def _legend(figure: Any) -> None:
    entries: dict[str, Any] = {}
    for ax in figure.axes:
        entries |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=6, fontsize=8)


def _curves(store: Store, figure: Any) -> None:
    """SHD and reward by updates."""
    axes = figure.subplots(1, 3)
    for run in TABLES["curves"].runs:
        rows = [r for r in store.series("dense-er8", run.method, run.settings) if "curve" in r]
        if not rows:
            continue
        steps = rows[0]["curve"]["step"]
        panel = axes[2] if run.name.endswith("ls") else axes[1]
        for ax, what in ((axes[0], "shd"), (panel, "reward")):
            means = [Number.of(values) for values in zip(*(r["curve"][what] for r in rows), strict=True)]
            color = f"C{[r.name for r in TABLES['curves'].runs].index(run.name)}"
            _band(ax, steps, [(m.mean, m.se) for m in means], run.name, color=color)
    for name, style in (("dagma", "--"), ("corl", ":")):
        row = published()["learning-rate", "dense-er8", name, "linear"]["shd"]
        axes[0].axhline(row.mean, linestyle=style, color="gray", label=f"{name}, paper")
    axes[0].set(title="SHD", xscale="log", xlabel="updates")
    axes[1].set(title="mean reward, BIC", xscale="log", xlabel="updates")
    axes[2].set(title="mean reward, least squares", xscale="log", xlabel="updates", yscale="symlog", ylim=(None, 0))
    _legend(figure)


def _small(store: Store, figure: Any) -> None:
    for row, k in zip(figure.subplots(2, 3), (1, 2), strict=True):
        cells = [cell for cell in TABLES["small"].cells if f"er{k}" in cell]
        for ax, metric in zip(row, ("shd", "fdr", "tpr"), strict=True):
            _by_size(store, ax, "small", cells, metric, "d", f"ER-{k}: {metric.upper()}", xlabel="nodes")
        _shd_axis(row[0])
    _legend(figure)


def _samples(graph: str) -> Draw:
    def draw(store: Store, figure: Any) -> None:
        table = TABLES[f"samples-{graph}"]
        for ax, d in zip(figure.subplots(1, 3), (20, 30, 50), strict=True):
            cells = [cell for cell in table.cells if f"-d{d}-" in cell]
            title = f"{graph.upper()[:2]}-8, {d} nodes: SHD"
            _by_size(store, ax, table.name, cells, "shd", "n", title, xlabel="rows", xscale="log")
            paper = [published()[table.name, cell, "alias", "linear"]["shd"] for cell in cells]
            sizes = [_number_in(cell, "n") for cell in cells]
            _band(ax, sizes, [(p.mean, p.se) for p in paper], "ALIAS, paper", color="tab:red", linestyle="--")
            _shd_axis(ax)
        _legend(figure)

    return draw


def _runtime(store: Store, figure: Any) -> None:
    axes = figure.subplots(1, 2)
    cells = list(TABLES["runtime"].cells)
    _by_size(store, axes[0], "runtime", cells, "seconds", "d", "seconds", xlabel="nodes", xscale="log", yscale="log")
    _by_size(store, axes[1], "runtime", cells, "shd", "d", "SHD", xlabel="nodes", xscale="log")
    _shd_axis(axes[1])
    _legend(figure)


def _weights(store: Store, figure: Any) -> None:
    panels = [(weights, k) for weights in ("linear", "regular") for k in (1, 2)]
    for ax, (weights, k) in zip(figure.subplots(2, 2).flat, panels, strict=True):
        cells = [cell for cell in TABLES["weights"].cells if cell.startswith(f"{weights}-er{k}")]
        title = f"ER-{k}, weights of {'2 to 5' if weights == 'linear' else '0.5 to 2'}: SHD"
        _by_size(store, ax, "weights", cells, "shd", "d", title, xlabel="nodes")
        _shd_axis(ax)
    _legend(figure)


FIGURES: dict[str, tuple[Draw, tuple[float, float]]] = {
    "curves": (_curves, (11, 3.8)),
    "small": (_small, (11, 6)),
    "samples-er8": (_samples("er8"), (11, 3.8)),
    "runtime": (_runtime, (9, 4)),
    "samples-sf8": (_samples("sf8"), (11, 3.8)),
    "weights": (_weights, (9, 6)),
}
