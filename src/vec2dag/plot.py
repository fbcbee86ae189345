"""Pictures of graphs, of how sure they are, of searches and of what an edge claims; with matplotlib, an extra.

Every function draws into axes, those that it is given or those of a new figure, and returns them. Titles are left to
the caller. Colour-blind eyes tell the colours apart, and what decides has a second mark: a dash, a symbol, a hatching.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import as_real, as_table, brief, check_names, choose, default_names, frame_labels, quoted, shown
from ._checks import whole_number as whole
from .confidence.effects import coefficients, column_at
from .confidence.shares import Bootstrap
from .graph import as_adjacency, topological_order
from .layout import Layout, layered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["adjacency", "confidence", "graph", "history", "pairs"]

# Of a graph in its natural size, in points: letters, boxes with one and two lines of them, the space between boxes.
FONT, SMALL, BOXES, GAP, MARGIN = 10.0, 9.0, (21.0, 33.0), 16.0, 8.0
# Letters of a line of a label.
LETTERS = 16
# Line widths of an edge without strength, of the weakest and of the strongest; the opacity of one that no sample has.
PLAIN, THIN, THICK, FAINT = 1.2, 0.8, 4.5, 0.12
# Largest figure that is made, in inches.
LARGEST = (16.0, 12.0)
# Names are shown letter by letter: a dollar sign begins no formula.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
# Columns beyond which a heat map has no names beside it.
NAMED = 60


@dataclass(frozen=True)
class _Theme:
    background: str
    card: str
    ink: str
    soft: str
    line: str
    positive: str
    negative: str
    other: str


THEMES = {
    "light": _Theme("#ffffff", "#f4f6f8", "#1c2733", "#5b6875", "#d5dbe1", "#0072b2", "#d55e00", "#8a6fb0"),
    "dark": _Theme("#14191f", "#222a33", "#e8edf2", "#9aa7b4", "#3a4551", "#56b4e9", "#f0953f", "#b79bdc"),
}


# --- a graph --------------------------------------------------------------------------------------------------


def graph(
    of: Any,
    *,
    names: Sequence[str] | None = None,
    confidence: Any = None,
    top: int | None = None,
    ax: "Axes | None" = None,
    theme: str = "light",
) -> "Axes":
    """Draw a graph in rows, causes above effects.

    The width of an edge is its standardised coefficient and the colour its sign; dashes without an arrowhead are
    edges of free direction, a diamond marks what was known beforehand. A legend explains what occurs.

    Parameters
    ----------
    of : fitted ALIAS, Bootstrap, or array of shape (d, d)
        Of a bootstrap the consensus is drawn, with a free direction where fewer than half of the samples have it. The
        values of an array are the coefficients, unless all are 0 or 1; an edge both ways has a free direction.
    names : sequence of str, optional
        Of the nodes of an array.
    confidence : Bootstrap, or array of shape (d, d), optional
        How sure the edges are, which their opacity shows: the share of samples that have the edge as it is drawn, so
        in this direction, or in any if it is free. A bootstrap that is drawn brings its own.
    top : int, optional
        Only the strongest edges, that many, and their nodes.
    ax : matplotlib Axes, optional
    theme : {"light", "dark"}, default "light"

    Returns
    -------
    matplotlib Axes
    """
    colours = _theme(theme)
    drawn = _with_confidence(_drawing(of, names), of if isinstance(of, Bootstrap) else None, confidence)
    whole_edges = int(drawn.A.sum())
    if top is not None:
        drawn = drawn.strongest(whole("top", top))
    labels = _labels(drawn.names)
    height = BOXES[any("\n" in label for label in labels)]
    widths = np.array([max(_text_width(line, FONT) for line in label.split("\n")) for label in labels]) + 2 * MARGIN
    layout = layered(drawn.A, widths=widths, height=height, gap=GAP)
    entries = list(_legend(drawn, whole_edges, colours))

    # One unit is a point of the natural size; a legend row below is part of it.
    column = max((_text_width(text, SMALL) for _, text in entries), default=0.0) + 50.0
    columns = max(1, min(len(entries), int(layout.size[0] // column)))
    below = 1.6 * SMALL * -(-len(entries) // columns) + 2 * MARGIN if entries else 0.0
    width = max(layout.size[0], column * columns, 100.0) + 2 * MARGIN
    tall = layout.size[1] + below + 2 * MARGIN
    if ax is None:
        shrink = min(1.0, LARGEST[0] * 72 / width, LARGEST[1] * 72 / tall)
        ax = _figure((shrink * width / 72, shrink * tall / 72), colours).add_axes((0, 0, 1, 1))
    middle = layout.size[0] / 2
    ax.set(xlim=(middle - width / 2, middle + width / 2), ylim=(tall - MARGIN, -MARGIN), aspect="equal")
    ax.axis("off")
    box = ax.get_window_extent()
    scale = min(box.width / width, box.height / tall) * 72 / ax.figure.dpi
    _draw_edges(ax, drawn, layout, colours, scale)
    _draw_nodes(ax, labels, layout, widths, height, colours, scale)
    if entries:
        _explain(ax, entries, colours, loc="lower center", ncols=columns, fontsize=scale * SMALL, borderaxespad=0.2)
    return ax


@dataclass(frozen=True, eq=False)
class _Drawing:
    """What is drawn of a graph ``A`` (d, d), a DAG; the other arrays have the same shape, or are None."""

    A: NDArray[np.uint8]
    names: tuple[str, ...]
    free: NDArray[np.bool_]
    known: NDArray[np.bool_]
    strength: NDArray[np.float64] | None = None
    unit: str = "standardised coefficient"
    most: float = 1.0  # strength from which on edges are equally wide
    doubt: str = "direction free"
    shares: NDArray[np.float64] | None = None

    def strongest(self, most: int) -> "_Drawing":
        """The strongest edges, and the nodes that they have."""
        worth = self.A if self.strength is None else np.abs(self.strength)
        edges = sorted(np.argwhere(self.A).tolist(), key=lambda e: -worth[e[0], e[1]])[:most]
        A = np.zeros_like(self.A)
        for i, j in edges:
            A[i, j] = 1
        nodes = np.flatnonzero((A | A.T).any(axis=0))
        part = np.ix_(nodes, nodes)
        return replace(
            self,
            A=A[part],
            names=tuple(self.names[k] for k in nodes),
            free=self.free[part],
            known=self.known[part],
            strength=None if self.strength is None else self.strength[part],
            shares=None if self.shares is None else self.shares[part],
        )


def _drawing(of: Any, names: Sequence[str] | None) -> _Drawing:
    """What there is to draw of a fitted model, a bootstrap or an array."""
    if names is not None and (isinstance(of, Bootstrap) or hasattr(of, "adjacency_matrix_")):
        raise ValueError("names are for arrays: a fitted model, or a bootstrap, has its own")
    if isinstance(of, Bootstrap):
        A = of.consensus()
        known = A.astype(bool) & of.constraints.required
        doubt = "direction in fewer than half of the samples"
        strength = coefficients(of.moments, A).standardised if of.columns is None else None
        return _Drawing(A, of.names, of.doubtful(A), known, strength, doubt=doubt)
    if hasattr(of, "adjacency_matrix_"):
        A = of.adjacency_matrix_
        strength = None if of.columns_.categorical.any() else coefficients(of.moments_, A).standardised
        return _Drawing(A, tuple(of.graph_.nodes), of.free_, of.known_, strength)
    pattern, values = _matrix(of, "of")
    free = pattern & pattern.T
    # Along an order of the other edges those of free direction close no cycle.
    place = np.argsort(topological_order(pattern & ~free))
    A = (pattern & (~free | (place[:, None] < place))).astype(np.uint8)
    plain = np.isin(values, (0.0, 1.0)).all()
    labels = default_names(len(A)) if names is None else check_names(names, len(A))
    return _Drawing(A, labels, free, np.zeros_like(free), None if plain else values, "coefficient", np.inf)


def _matrix(of: Any, parameter: str) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Where a graph (d, d) has edges, and its values."""
    if hasattr(of, "get_params"):
        raise ValueError(f"{parameter} must be fitted first, got {brief(of)}")
    pattern, values = as_adjacency(of, parameter).astype(bool), np.asarray(as_real(of, parameter), np.float64)
    if pattern.ndim != 2 or not len(pattern):
        raise ValueError(
            f"{parameter} must be a fitted ALIAS or an array of shape (d, d), d at least 1, got shape {pattern.shape}"
        )
    # the span of colours and widths would be infinite beyond
    if not (np.abs(values) < 1e300).all():
        raise ValueError(f"{parameter} must hold finite numbers, below 1e300, got {values.min():g} to {values.max():g}")
    return pattern, values


def _with_confidence(drawn: _Drawing, own: Bootstrap | None, confidence: Any) -> _Drawing:
    """The same with the shares of samples that have an edge as it is drawn."""
    given = own if confidence is None else confidence
    if given is None:
        return drawn
    if isinstance(given, Bootstrap):
        if given.names not in (drawn.names, default_names(len(drawn.names))):
            raise ValueError(f"confidence is of the columns {quoted(given.names)}, the graph of {quoted(drawn.names)}")
        return replace(drawn, shares=np.where(drawn.free, given.adjacent, given.directed))
    shares = np.asarray(as_real(given, "confidence"), np.float64)
    if shares.shape != drawn.A.shape or not ((shares >= 0) & (shares <= 1))[drawn.A != 0].all():
        raise ValueError(
            f"confidence must be a Bootstrap, or shares from 0 to 1 of shape {drawn.A.shape}, got {brief(confidence)}"
        )
    return replace(drawn, shares=shares)


def _line_widths(strength: NDArray[np.float64] | None, edges: NDArray[np.int64], most: float) -> NDArray[np.float64]:
    """Of every edge, in points: grows with the strength up to the strongest, or up to ``most``."""
    if strength is None:
        return np.full(len(edges), PLAIN)
    size = np.abs(strength[edges[:, 0], edges[:, 1]])
    largest = min(size.max(initial=0.0), most)
    return THIN + (THICK - THIN) * np.minimum(size / (largest if largest > 0 else 1.0), 1.0)


def _opacity(share: float) -> float:
    return FAINT + (1.0 - FAINT) * share


def _dashes(line: float) -> tuple[float, tuple[float, float]]:
    """As long on wide lines as on thin ones: matplotlib counts in line widths."""
    return 0.0, (6.0 / line, 3.5 / line)


def _draw_edges(ax: "Axes", drawn: _Drawing, layout: Layout, colours: _Theme, scale: float) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    edges = np.argwhere(drawn.A)
    lines = _line_widths(drawn.strength, edges, drawn.most)
    # The weakest first: what matters lies above.
    for k in np.argsort(lines, kind="stable"):
        (i, j), route, line = edges[k], layout.routes[k].copy(), lines[k]
        colour = colours.soft
        if drawn.strength is not None:
            colour = colours.positive if drawn.strength[i, j] >= 0 else colours.negative
        alpha = 1.0 if drawn.shares is None else _opacity(float(drawn.shares[i, j]))
        style = {"color": colour, "alpha": alpha, "gid": f"edge-{i}-{j}"}
        if not drawn.free[i, j]:
            long, wide = 5.0 + 1.2 * line, 2.2 + 0.8 * line
            x, y = route[-2]
            tip = [(x, y), (x - wide, y - long), (x + wide, y - long)]
            ax.add_patch(Polygon(tip, closed=True, lw=0, zorder=2, **(style | {"gid": f"head-{i}-{j}"})))
            route[-2, 1] -= 0.9 * long
        # Between two rows a curve that leaves and arrives vertically; across a row a vertical line.
        points, codes = [route[1]], [Path.MOVETO]
        for p, (a, b) in enumerate(pairwise(route[1:-1])):
            half = (a[1] + b[1]) / 2
            points += [(a[0], half), (b[0], half), b] if p % 2 == 0 else [b]
            codes += [Path.CURVE4] * 3 if p % 2 == 0 else [Path.LINETO]
        dashes = _dashes(line) if drawn.free[i, j] else "-"
        path = Path(np.array(points), codes)
        ax.add_patch(PathPatch(path, fill=False, lw=scale * line, linestyle=dashes, capstyle="butt", zorder=1, **style))
        if drawn.known[i, j]:
            x, y = _halfway(route)
            mark: dict[str, Any] = {"ms": scale * 6, "mew": scale, "mfc": colours.ink, "mec": colours.background}
            ax.plot(x, y, "D", zorder=2.5, gid=f"known-{i}-{j}", **mark)


def _halfway(route: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of the curve between the two rows in the middle of the way."""
    k = 1 + 2 * ((len(route) - 3) // 4)
    return (route[k] + route[k + 1]) / 2


def _draw_nodes(
    ax: "Axes",
    labels: Sequence[str],
    layout: Layout,
    widths: NDArray[np.float64],
    height: float,
    colours: _Theme,
    scale: float,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    for k, (label, (x, y)) in enumerate(zip(labels, layout.positions, strict=True)):
        ax.add_patch(
            FancyBboxPatch(
                (x - widths[k] / 2, y - height / 2),
                widths[k],
                height,
                boxstyle="round,pad=0,rounding_size=6",
                facecolor=colours.card,
                edgecolor=colours.soft,
                lw=scale * 0.8,
                zorder=3,
                gid=f"node-{k}",
            )
        )
        # One line stands on the same height in every box of a row: capitals are 0.72 of the size.
        low, anchor = (0.0, "center") if "\n" in label else (0.36 * FONT, "baseline")
        style: dict[str, Any] = {"size": scale * FONT, "color": colours.ink, "linespacing": 1.1} | LITERAL
        ax.text(x, y + low, label, ha="center", va=anchor, zorder=4, gid=f"name-{k}", **style)


def _legend(drawn: _Drawing, edges: int, colours: _Theme) -> Iterator[tuple[Any, str]]:
    """Handles and texts of what occurs in a drawing, which is of a graph with that many edges."""
    from matplotlib.lines import Line2D

    here = drawn.A != 0

    def line(**style: Any) -> Line2D:
        settings: dict[str, Any] = {"color": colours.soft, "lw": 2.0} | style
        return Line2D([], [], **settings)

    if drawn.strength is not None and here.any():
        values = drawn.strength[here]
        signs = {
            "positive": (colours.positive, (values >= 0).any()),
            "negative": (colours.negative, (values < 0).any()),
        }
        occur = {sign: colour for sign, (colour, occurs) in signs.items() if occurs}
        yield tuple(line(color=colour) for colour in occur.values()), ", ".join(occur)
        least, most = np.abs(values).min(), np.abs(values).max()
        if most > least:
            widths = _line_widths(np.array([[least, most]]), np.array([[0, 0], [0, 1]]), drawn.most)
            reach = f"{most:.2g}" if most <= drawn.most else f"{drawn.most:.2g} or more"
            steps = np.linspace(widths[0], widths[1], 3)
            yield tuple(line(lw=lw) for lw in steps), f"{drawn.unit} {least:.2g} to {reach}"
    if (drawn.free & here).any():
        yield line(linestyle=_dashes(2.0)), drawn.doubt
    if (drawn.known & here).any():
        yield line(lw=PLAIN, marker="D", ms=5, mfc=colours.ink, mec=colours.background), "known beforehand"
    if drawn.shares is not None and here.any():
        steps = np.array([_opacity(share) for share in (0.0, 0.5, 1.0)])
        yield tuple(line(color=colours.ink, alpha=alpha) for alpha in steps), "in 0 to 100 % of the samples"
    if (left_out := edges - int(here.sum())) > 0:
        yield line(lw=0), f"{left_out} weaker edges are not shown"


# --- matrices -------------------------------------------------------------------------------------------------


def adjacency(
    A: Any,
    truth: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    ax: "Axes | None" = None,
    theme: str = "light",
) -> "Axes":
    """Draw a graph as a matrix: causes are rows, effects columns.

    Parameters
    ----------
    A : fitted ALIAS, or array of shape (d, d)
        Of a model standardised coefficients are shown, of an array its values.
    truth : array of shape (d, d), optional
        The true graph: edges of both are told from those that are missing, extra, or have another direction, with
        their numbers (of pairs of nodes; all but the first sum to the structural Hamming distance).
    names : sequence of str, optional
        Of the nodes of an array.
    ax : matplotlib Axes, optional
    theme : {"light", "dark"}, default "light"

    Returns
    -------
    matplotlib Axes
    """
    colours = _theme(theme)
    fitted = hasattr(A, "adjacency_matrix_")
    if fitted and names is not None:
        raise ValueError("names are for arrays: a fitted model has its own")
    pattern, values = _matrix(A.adjacency_matrix_ if fitted else A, "A")
    d = len(pattern)
    labels = tuple(A.graph_.nodes) if fitted else default_names(d) if names is None else check_names(names, d)
    if ax is None:
        side = float(np.clip(0.32 * d, 3.5, 10.0))
        ax = _figure((side + 1.6, side + 0.9), colours, layout="constrained").add_subplot()
    _style(ax, colours)
    if truth is None and fitted and A.columns_.categorical.any():
        _heat_map(ax, values, "edge", 1.0, colours)
    elif truth is None and fitted:
        _heat_map(ax, coefficients(A.moments_, pattern).standardised, "standardised coefficient", 1.0, colours)
    elif truth is None:
        _heat_map(ax, values, "coefficient", np.inf, colours)
    else:
        other = as_adjacency(truth, "truth").astype(bool)
        if other.shape != pattern.shape:
            raise ValueError(f"truth must have the shape of A, {pattern.shape}, got {other.shape}")
        _compare(ax, pattern, other, colours)
    ax.set(xlim=(-0.5, d - 0.5), ylim=(d - 0.5, -0.5), aspect="equal", xlabel="effect", ylabel="cause")
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0, top=False, labeltop=d <= NAMED, bottom=False, labelbottom=False, labelleft=d <= NAMED)
    if d <= NAMED:
        size = float(np.clip(330.0 / d, 4.0, 9.0))
        short = [_short(name) for name in labels]
        ax.set_xticks(range(d), short, rotation=90, size=size, **LITERAL)
        ax.set_yticks(range(d), short, size=size, **LITERAL)
        ax.set_xticks(np.arange(d + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(d + 1) - 0.5, minor=True)
        ax.grid(which="minor", color=colours.line, lw=0.5)
        ax.tick_params(which="minor", length=0)
    else:
        ax.set(xticks=[], yticks=[])
    return ax


def _heat_map(ax: "Axes", values: NDArray[np.float64], unit: str, most: float, colours: _Theme) -> None:
    """Colours of coefficients, which stay the same from ``most`` on."""
    from matplotlib.colors import LinearSegmentedColormap

    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    end = min(largest, most)
    ramp = LinearSegmentedColormap.from_list("coefficients", [colours.negative, colours.background, colours.positive])
    image = ax.imshow(values, cmap=ramp, vmin=-end, vmax=end)
    if not np.isin(values, (0.0, 1.0)).all():
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, label=unit, extend="both" if largest > end else "neither")
        bar.outline.set_visible(False)
        bar.ax.tick_params(colors=colours.soft, labelsize=8)
        bar.ax.yaxis.label.set(color=colours.soft, size=SMALL)


def _compare(ax: "Axes", A: NDArray[np.bool_], truth: NDArray[np.bool_], colours: _Theme) -> None:
    """A symbol for every edge of either graph, and a legend with the numbers of pairs."""
    both = (A | A.T) & (truth | truth.T)
    same = both & (truth == A) & (truth.T == A.T)
    # Symbols are half as large as a cell.
    box = ax.get_window_extent()
    size = (0.5 * min(box.width, box.height) * 72 / ax.figure.dpi / max(len(A), 1)) ** 2
    entries = []
    for text, cells, marker, colour, filled in (
        ("in both", A & same, "s", colours.positive, True),
        ("in the other direction", A & both & ~same, "D", colours.other, True),
        ("missing", truth & ~both, "o", colours.soft, False),
        ("extra", A & ~both, "x", colours.negative, True),
    ):
        count = int(np.triu(cells | cells.T).sum())
        if count:
            i, j = np.nonzero(cells)
            paint: dict[str, Any] = {"c": colour} if filled else {"facecolors": "none", "edgecolors": colour}
            symbols = ax.scatter(j, i, s=size, marker=marker, linewidths=1.4, **paint)
            symbols.set_gid(text)
            entries.append((symbols, f"{count} {text}"))
    if entries:
        where = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.02), "ncols": 2}
        legend = _explain(ax, entries, colours, fontsize=SMALL, **where)
        for handle in legend.legend_handles:
            handle.set_sizes([45.0])


# --- searches -------------------------------------------------------------------------------------------------

# Panels of a history: what they show, and the columns, the first of which must be there.
PANELS = (
    ("best score (faint: mean reward)", ("best_score", "mean_reward")),
    ("edges of a graph", ("edges",)),
    ("sigma of the policy", ("sigma",)),
    ("regressions", ("fits",)),
)


def history(*runs: Any, labels: Sequence[str] | None = None, axes: Any = None, theme: str = "light") -> NDArray[Any]:
    """Draw how searches went on, step by step.

    Parameters
    ----------
    *runs : fitted ALIAS, SearchResult, or the history of one
    labels : sequence of str, optional
        What the runs are called; by default the algorithms.
    axes : sequence of matplotlib Axes, optional
        One for each panel there is something to draw in: scores, edges, sigma, and the number of regressions.
    theme : {"light", "dark"}, default "light"

    Returns
    -------
    array of matplotlib Axes
    """
    colours = _theme(theme)
    if not runs:
        raise ValueError("history needs a fitted model, a SearchResult or a history at least")
    histories = [_history(run) for run in runs]
    called = [_algorithm(run, k) for k, run in enumerate(runs)] if labels is None else [*map(str, labels)]
    if len(called) != len(runs):
        raise ValueError(f"labels must have one entry per run ({len(runs)}), got {len(called)}")
    panels = [
        (title, columns)
        for title, columns in PANELS
        if any(np.isfinite(run.get(columns[0], np.nan)).any() for run in histories)
    ]
    if not panels:
        raise ValueError("there is nothing to draw: the histories have no steps")
    axes = _several(axes, "axes", len(panels), colours, (3.6, 2.9))
    for ax, (title, columns) in zip(axes, panels, strict=True):
        _style(ax, colours)
        ax.set_xlabel("step", size=SMALL)
        ax.set_ylabel(title, size=SMALL)
        entries = []
        for k, run in enumerate(histories):
            style = {"color": _colour(k, colours), "ls": ("-", "--", "-.", ":")[k % 4], "lw": 1.6}
            for column, alpha in zip(columns, (1.0, 0.35), strict=False):
                values = np.asarray(run.get(column, []), np.float64)
                mark = "o" if len(values) == 1 else None
                lines = ax.plot(np.arange(1, len(values) + 1), values, **style, alpha=alpha, marker=mark, gid=column)
                entries += [(lines[0], called[k])] if column == columns[0] else []
        if len(runs) > 1 and ax is axes[0]:
            _explain(ax, entries, colours, fontsize=SMALL, loc="best")
    return axes


def _history(run: Any) -> dict[str, Any]:
    found = getattr(run, "history_", getattr(run, "history", run))
    if not isinstance(found, dict):
        raise ValueError(f"history is of fitted models, SearchResults and histories, got {brief(run)}")
    return found


def _algorithm(run: Any, k: int) -> str:
    return str(getattr(getattr(run, "search_", run), "algorithm", f"run {k + 1}"))


# --- how sure -------------------------------------------------------------------------------------------------


def confidence(bootstrap: Bootstrap, *, top: int = 30, ax: "Axes | None" = None, theme: str = "light") -> "Axes":
    """Draw for pairs of columns which share of the samples has which edge between them.

    Parameters
    ----------
    bootstrap : Bootstrap
    top : int, default 30
        Pairs, those that are adjacent most often.
    ax : matplotlib Axes, optional
    theme : {"light", "dark"}, default "light"

    Returns
    -------
    matplotlib Axes
    """
    colours = _theme(theme)
    if not isinstance(bootstrap, Bootstrap):
        raise ValueError(f"bootstrap must be a Bootstrap, as bootstrap(model, X) returns it, got {brief(bootstrap)}")
    table = bootstrap.edges()
    rows = list(table.rows)[: whole("top", top)]
    if ax is None:
        ax = _figure((6.4, 1.1 + 0.24 * max(len(rows), 3)), colours, layout="constrained").add_subplot()
    _style(ax, colours)
    left, entries = np.zeros(len(rows)), []
    for column, text, colour, hatch in (
        ("forward", "as written", colours.positive, None),
        ("free", "direction free", colours.other, "////"),
        ("backward", "the other way", colours.negative, None),
        ("absent", "no edge", colours.line, None),
    ):
        shares = np.array([row[column] for row in rows])
        bars = ax.barh(
            np.arange(len(rows)), shares, 0.72, left, color=colour, hatch=hatch, ec=colours.background, lw=0.6
        )
        for bar in bars:
            bar.set_gid(column)
        left += shares
        if shares.any():
            entries.append((bars, text))
    texts = [f"{_short(row['source'])} → {_short(row['target'])}" for row in rows]
    ax.set_yticks(range(len(rows)), texts, size=SMALL, **LITERAL)
    ax.set(xlim=(0, 1), ylim=(len(rows) - 0.4, -0.6))
    ax.set_xlabel(f"share of {bootstrap.n_samples} samples", size=SMALL)
    ax.tick_params(axis="y", length=0)
    if entries:
        _explain(ax, entries, colours, fontsize=SMALL, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    return ax


# --- what an edge claims --------------------------------------------------------------------------------------


def pairs(
    model: Any,
    X: Any,
    edges: Sequence[tuple[int | str, int | str]] | None = None,
    *,
    ax: Any = None,
    theme: str = "light",
) -> NDArray[Any]:
    """Draw what edges claim: the effect against the cause, with the other causes held at their means.

    The curve is the fitted regression along the cause, and the points are partial residuals: what the regression leaves
    unexplained of each row, added to the curve.

    Parameters
    ----------
    model : fitted ALIAS
    X : array of shape (n, d), or data frame
        The table of the fit, or other rows of the same columns.
    edges : sequence of (cause, effect), optional
        By name or position; by default the six strongest.
    ax : matplotlib Axes, or a sequence of them, optional
        One for each edge.
    theme : {"light", "dark"}, default "light"

    Returns
    -------
    array of matplotlib Axes
    """
    colours = _theme(theme)
    if not hasattr(model, "adjacency_matrix_"):
        raise ValueError(f"model must be a fitted ALIAS, got {brief(model)}")
    names = tuple(model.graph_.nodes)
    if model.columns_.categorical.any():
        raise ValueError(
            f"curves are for numbers, and {quoted(model.columns_.by_name)} are categories: model.tables_ has their "
            "probabilities where all are"
        )
    table = _like_fitted(X, names)
    if edges is None:
        edges = list(zip(model.edges_["source"], model.edges_["target"], strict=True))[:6]
    chosen = [(column_at(i, "edges", names), column_at(j, "edges", names)) for i, j in edges]
    for i, j in chosen:
        if not model.adjacency_matrix_[i, j]:
            raise ValueError(f"edges: the graph has no edge {quoted([names[i]])} -> {quoted([names[j]])}")
    axes = _several(ax, "ax", len(chosen), colours, (3.2, 2.8))
    for each, (i, j) in zip(axes, chosen, strict=True):
        _style(each, colours)
        at, curve, points = _partial(model, table, i, j)
        size = float(np.clip(5000.0 / len(table), 3.0, 16.0))
        each.scatter(table[:, i], points, s=size, color=colours.soft, alpha=0.45, lw=0, gid="residuals")
        each.plot(at, curve, color=colours.positive, lw=2, gid="curve")
        each.set_xlabel(_short(names[i]), size=SMALL, **LITERAL)
        each.set_ylabel(_short(names[j]), size=SMALL, **LITERAL)
    return axes


def _like_fitted(X: Any, names: tuple[str, ...]) -> NDArray[np.float64]:
    labels, table = frame_labels(X), as_table(X)
    if table.shape[1] != len(names):
        raise ValueError(f"X must have the {len(names)} columns of the fit, got {table.shape[1]}")
    if labels is not None and tuple(map(str, labels)) != names:
        raise ValueError(
            f"X must have the columns of the fit, {quoted(names)}, in this order, got {quoted(map(str, labels))}"
        )
    return table


def _partial(
    model: Any, table: NDArray[np.float64], i: int, j: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The regression of ``j`` along its parent ``i``, places and values, and the partial residuals (n,) of the rows."""
    parents = np.flatnonzero(model.adjacency_matrix_[:, j]).tolist()
    mean, deviation = model._units

    def forecast(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        if model.regression_ is None:
            return rows @ model.weights_[parents, j]
        return np.asarray(model.regression_.forecast(j, parents, rows))

    values = model._prepared(table)
    at = np.linspace(values[:, i].min(), values[:, i].max(), 120)
    held = np.tile(values[:, parents].mean(axis=0), (len(at) + len(values), 1))
    held[:, parents.index(i)] = np.concatenate([at, values[:, i]])
    along = forecast(held)
    points = along[len(at) :] + values[:, j] - forecast(values[:, parents])
    return at * deviation[i] + mean[i], along[: len(at)] * deviation[j] + mean[j], points * deviation[j] + mean[j]


# --- figures, letters and colours -----------------------------------------------------------------------------


def _theme(theme: str) -> _Theme:
    """The colours; this is also where every picture begins, and ends if there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('vec2dag.plot needs matplotlib: pip install "vec2dag[plot]"') from error
    return choose("theme", theme, THEMES)


def _figure(size: tuple[float, float], colours: _Theme, **settings: Any) -> Any:
    """A new figure: of pyplot if somebody uses that or can look at it, and otherwise one that nobody has to close."""
    if "matplotlib.pyplot" in sys.modules or "ipykernel" in sys.modules or hasattr(sys, "ps1"):
        from matplotlib.pyplot import figure

        return figure(figsize=size, facecolor=colours.background, **settings)
    from matplotlib.figure import Figure

    return Figure(figsize=size, facecolor=colours.background, **settings)


def _several(axes: Any, parameter: str, count: int, colours: _Theme, size: tuple[float, float]) -> NDArray[Any]:
    """The axes, or as many new ones in rows of three, of this size each."""
    if axes is None:
        columns = min(max(count, 1), 3)
        rows = -(-count // columns)
        figure = _figure((size[0] * columns, size[1] * max(rows, 1)), colours, layout="constrained")
        return np.array([figure.add_subplot(rows, columns, k + 1) for k in range(count)], dtype=object)
    given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(given) != count:
        raise ValueError(f"{parameter} must have {count} axes, one for each panel, got {len(given)}")
    return given


def _style(ax: "Axes", colours: _Theme) -> None:
    """Quiet axes in the colours of a theme."""
    ax.set_facecolor(colours.background)
    ax.tick_params(colors=colours.soft, labelsize=8)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(colours.line)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_color(colours.soft)


def _explain(ax: "Axes", entries: Sequence[tuple[Any, str]], colours: _Theme, **settings: Any) -> Any:
    """A legend of handles, or tuples of them, with texts that are taken letter by letter."""
    from matplotlib.legend_handler import HandlerTuple

    handles, texts = zip(*entries, strict=True)
    legend = ax.legend(
        handles,
        ["-"] * len(handles),  # for now: matplotlib leaves out texts that begin with an underscore
        frameon=False,
        labelcolor=colours.soft,
        handlelength=2.6,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.35)},
        **settings,
    )
    for artist, text in zip(legend.get_texts(), texts, strict=True):
        artist.set(text=text, **LITERAL)
    return legend


def _colour(k: int, colours: _Theme) -> str:
    """Of the k-th of several lines."""
    return (colours.positive, colours.negative, colours.other, colours.ink, colours.soft)[k % 5]


def _text_width(text: str, size: float) -> float:
    """In points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        # letters that the font does not have: whoever draws them says so
        warnings.simplefilter("ignore")
        return float(TextToPath().get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])


def _labels(names: Sequence[str]) -> list[str]:
    """Names on one line or two, without their middle if they are long, each still different from all others."""
    labels = [_wrapped(shown(name, 10 * len(name))) for name in names]
    twice = {label for label in labels if labels.count(label) > 1}
    return [f"{label} ({k})" if label in twice else label for k, label in enumerate(labels)]


def _wrapped(name: str) -> str:
    """On two lines, parted after a separator, if it is too long for one; what is too long for that has no middle."""
    cuts = [k + 1 for k, letter in enumerate(name[:LETTERS]) if letter in " _-./:"]
    if len(name) <= LETTERS or not cuts:
        return _elided(name, LETTERS)
    # The second line first: as little as possible is left out, and then lines are as equal as possible.
    cut = min(cuts, key=lambda k: (max(len(name) - k, LETTERS), abs(2 * k - len(name))))
    return f"{name[:cut].rstrip()}\n{_elided(name[cut:], LETTERS)}"


def _short(name: str) -> str:
    return _elided(shown(name, 10 * len(name)), LETTERS + 8)


def _elided(name: str, most: int) -> str:
    """Without its middle where it has more letters than that."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-((most - 1) // 2) :]}"
