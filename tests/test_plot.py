"""Pictures: what is drawn is what was found, letter by letter, and nothing else is changed."""

import builtins
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from vec2dag import ALIAS, Knowledge, Moments, bootstrap, metrics, simulate

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from vec2dag import plot  # noqa: E402
from vec2dag.confidence import Bootstrap, Sample, coefficients  # noqa: E402
from vec2dag.knowledge.constraints import Constraints  # noqa: E402

STRANGE = ("$x_1$", "_hidden", "<script>alert('1')</script>", "two\nlines", "right\u202eleft", "a" * 10_000)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    """Where other tests have imported pyplot, figures are its own."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def table():
    return simulate.linear_gaussian(d=8, k=2, n=300, rng=np.random.default_rng(5))


@pytest.fixture(scope="module")
def model(table):
    return ALIAS("bic-nv", random_state=0).fit(table.X)


@pytest.fixture(scope="module")
def samples(table):
    return bootstrap(ALIAS("bic-nv", random_state=0), table.X, 12, random_state=0)


def axes():
    return Figure(figsize=(6, 5)).add_subplot()


def drawn(ax, kind):
    """Artists by the nodes that their name ends with."""
    found = {}
    for artist in ax.get_children():
        name = str(artist.get_gid() or "")
        if name.startswith(f"{kind}-"):
            found[tuple(map(int, name.split("-")[1:]))] = artist
    return found


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


def is_dashed(patch):
    return patch.get_linestyle() not in ("-", "solid")


def rendered(ax):
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


# --- a graph --------------------------------------------------------------------------------------------------


def test_every_edge_is_drawn_as_it_was_found(model):
    ax = plot.graph(model)
    A = model.adjacency_matrix_
    lines, heads = drawn(ax, "edge"), drawn(ax, "head")
    assert set(lines) == {tuple(edge) for edge in np.argwhere(A).tolist()}
    assert {edge for edge, line in lines.items() if is_dashed(line)} == {e for e in lines if model.free_[e]}
    assert set(heads) == {edge for edge in lines if not model.free_[edge]}
    assert 0 < len(heads) < len(lines), "the example has both"
    assert len(drawn(ax, "node")) == 8


def test_width_is_the_standardised_coefficient_and_colour_the_sign(model):
    lines = drawn(plot.graph(model), "edge")
    strength = coefficients(model.moments_, model.adjacency_matrix_).standardised
    ranked = sorted(lines, key=lambda edge: abs(strength[edge]))
    widths = [lines[edge].get_linewidth() for edge in ranked]
    assert all(a < b or abs(strength[e]) >= 1 for (a, b), e in zip(pairwise(widths), ranked[1:], strict=True))
    colours = {edge: lines[edge].get_edgecolor() for edge in lines}
    positive = {colour for edge, colour in colours.items() if strength[edge] > 0}
    negative = {colour for edge, colour in colours.items() if strength[edge] < 0}
    assert len(positive) == len(negative) == 1
    assert positive != negative


def test_widths_do_not_depend_on_units(samples, table):
    scaled = replace(samples, moments=Moments.of(table.X * np.logspace(-2, 2, 8)))
    lines, same = (drawn(plot.graph(b), "edge") for b in (samples, scaled))
    assert set(lines) == set(same)
    for edge, line in lines.items():
        assert line.get_linewidth() == pytest.approx(same[edge].get_linewidth(), rel=1e-6)


def test_strength_has_an_end():
    W = np.zeros((4, 4))
    W[0, 1:] = 0.5, -1.0, 4.0
    lines = drawn(plot.graph(W), "edge")
    assert [lines[0, j].get_linewidth() for j in (1, 2, 3)] == sorted(line.get_linewidth() for line in lines.values())
    assert "coefficient 0.5 to 4" in texts(plot.graph(W))


def test_edges_end_at_the_boxes_of_their_nodes(model):
    ax = plot.graph(model)
    boxes = {k[0]: box.get_extents() for k, box in drawn(ax, "node").items()}
    to_screen = ax.transData
    for (i, j), line in drawn(ax, "edge").items():
        first, last = to_screen.transform(line.get_path().vertices[[0, -1]])
        assert boxes[i].x0 <= first[0] <= boxes[i].x1
        assert first[1] == pytest.approx(boxes[i].y0, abs=1.0)
        assert boxes[j].x0 <= last[0] <= boxes[j].x1
        if (i, j) in drawn(ax, "head"):
            tip = to_screen.transform(drawn(ax, "head")[i, j].get_xy())[0]
            assert tip[1] == pytest.approx(boxes[j].y1, abs=1.0)


def test_opacity_is_the_share_of_samples_that_have_the_edge_as_it_is_drawn(model, samples):
    ax = plot.graph(model, confidence=samples)
    lines = drawn(ax, "edge")
    shares = {e: (samples.adjacent if model.free_[e] else samples.directed)[e] for e in lines}
    ranked = sorted(lines, key=shares.get)
    assert shares[ranked[0]] < shares[ranked[-1]]
    alphas = [lines[e].get_alpha() for e in ranked]
    assert alphas == sorted(alphas)
    assert alphas[-1] <= 1.0
    sure = np.where(model.free_, samples.adjacent, samples.directed)
    again = drawn(plot.graph(model, confidence=sure), "edge")
    assert [again[e].get_alpha() for e in ranked] == alphas
    assert "in 0 to 100 % of the samples" in texts(ax)
    assert {line.get_alpha() for line in drawn(plot.graph(model), "edge").values()} == {1.0}


def test_a_bootstrap_is_drawn_as_its_consensus(samples):
    ax = plot.graph(samples)
    A = samples.consensus()
    lines = drawn(ax, "edge")
    assert set(lines) == {tuple(edge) for edge in np.argwhere(A).tolist()}
    assert {e for e, line in lines.items() if is_dashed(line)} == {e for e in lines if samples.doubtful(A)[e]}
    assert len({line.get_alpha() for line in lines.values()}) > 1


def test_what_is_known_has_a_mark(table):
    i, j = np.argwhere(table.A)[0]
    model = ALIAS("bic-nv", knowledge=Knowledge(required=[(f"x{i}", f"x{j}")]), random_state=0).fit(table.X)
    ax = plot.graph(model)
    assert set(drawn(ax, "known")) == {tuple(edge) for edge in np.argwhere(model.known_).tolist()}
    assert (i, j) in drawn(ax, "known")
    assert "known beforehand" in texts(ax)


def test_the_legend_explains_only_what_occurs():
    assert texts(plot.graph([[0, 1], [0, 0]])) == []
    assert texts(plot.graph([[0, 1], [1, 0]])) == ["direction free"]
    assert texts(plot.graph([[0, 2.0], [0, 0]])) == ["positive"]
    assert texts(plot.graph(np.zeros((3, 3)))) == []


def test_edges_both_ways_are_one_of_free_direction():
    # 0 - 1 -> 2 and 0 -> 2
    ax = plot.graph([[0, 1, 1], [1, 0, 1], [0, 0, 0]])
    lines = drawn(ax, "edge")
    assert len(lines) == 3
    assert sum(map(is_dashed, lines.values())) == 1


def test_only_the_strongest(model):
    ax = plot.graph(model, top=3)
    assert len(drawn(ax, "edge")) == 3
    names = {text.get_text() for text in drawn(ax, "name").values()}
    edges = model.edges_
    assert names == {*edges["source"][:3], *edges["target"][:3]}
    assert f"{len(edges['source']) - 3} weaker edges are not shown" in texts(ax)
    assert len(drawn(plot.graph(model, top=1000), "node")) == len(
        np.flatnonzero((model.adjacency_matrix_ | model.adjacency_matrix_.T).any(axis=0))
    )


def test_names_are_taken_letter_by_letter():
    A = np.zeros((6, 6))
    A[0, 1:] = 1
    ax = plot.graph(A, names=STRANGE)
    labels = [drawn(ax, "name")[(k,)] for k in range(6)]
    assert labels[0].get_text() == "$x_1$"
    assert labels[1].get_text() == "_hidden"
    assert labels[3].get_text() == "two\\nlines"
    assert "\\u202e" in labels[4].get_text()
    assert len(labels[5].get_text()) < 30
    assert all(not label.get_parse_math() and not label.get_usetex() for label in labels)
    rendered(ax)


def test_boxes_hold_their_names():
    names = ["i", "a name of two lines", "measurement_of_something", "Wm" * 8, "od280/od315_of_diluted_wines"]
    A = np.zeros((5, 5))
    A[0, 1:] = 1
    ax = plot.graph(A, names=names)
    rendered(ax)
    for k, label in drawn(ax, "name").items():
        inner, box = label.get_window_extent(), drawn(ax, "node")[k].get_window_extent()
        assert box.x0 < inner.x0 < inner.x1 < box.x1
        assert box.y0 < inner.y0 < inner.y1 < box.y1
    assert drawn(ax, "name")[(1,)].get_text() == "a name of\ntwo lines"
    assert drawn(ax, "name")[(3,)].get_text() == "WmWmWmWmWmWmWmWm"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("sixteen letters.", "sixteen letters."),
        ("withoutseparators", "withouts…arators"),
        ("temperature_outside_celsius_mean", "temperature_\noutside_…us_mean"),
        ("nonflavanoid_phenols", "nonflavanoid_\nphenols"),
    ],
)
def test_long_names_lose_their_middle(name, label):
    assert drawn(plot.graph([[0]], names=[name]), "name")[(0,)].get_text() == label


def test_long_names_stay_different():
    names = [f"{'a' * 500}{k}{'b' * 500}" for k in range(3)]
    ax = plot.graph(np.zeros((3, 3)), names=names)
    assert len({text.get_text() for text in drawn(ax, "name").values()}) == 3


def test_a_small_place_has_small_letters(model):
    figure = Figure(figsize=(8, 8))
    large, small = figure.add_axes((0, 0, 0.7, 0.7)), figure.add_axes((0.75, 0.75, 0.25, 0.25))
    sizes = [drawn(plot.graph(model, ax=ax), "name")[(0,)].get_size() for ax in (large, small)]
    assert sizes[0] / sizes[1] == pytest.approx(0.7 / 0.25)


def test_both_themes_have_contrast(model):
    """The share of the darkest and lightest pixels: letters on a background."""
    for theme, ground in (("light", 255), ("dark", 40)):
        picture = rendered(plot.graph(model, theme=theme))[..., :3].max(axis=-1)
        corner = int(picture[0, 0])
        assert abs(corner - ground) < 20
        assert np.ptp(picture.astype(int)) > 120


@pytest.mark.parametrize("d", [1, 5, 44, 107])
def test_graphs_of_every_size(d, rng):
    A = np.triu(rng.random((d, d)) < 3 / d, 1)
    ax = plot.graph(A)
    width, height = ax.figure.get_size_inches()
    assert len(drawn(ax, "edge")) == A.sum()
    assert width <= 16.01
    assert height <= 12.01
    assert drawn(ax, "name")[(0,)].get_size() > 4


# --- matrices -------------------------------------------------------------------------------------------------


def test_the_numbers_of_a_comparison_are_those_of_the_metrics(rng):
    truth, A = (np.triu(rng.random((9, 9)) < 0.4, 1)[:, rng.permutation(9)] for _ in range(2))
    truth, A = (np.triu(B, 1) for B in (truth, A))
    A[2, 5], A[5, 2] = 0, truth[2, 5]
    ax = plot.adjacency(A, truth)
    counts = {text.partition(" ")[2]: int(text.partition(" ")[0]) for text in texts(ax)}
    symbols = {
        str(artist.get_gid()): len(artist.get_offsets()) for artist in ax.collections if artist.get_gid() in counts
    }
    assert symbols == counts
    assert sum(count for kind, count in counts.items() if kind != "in both") == metrics.shd(truth, A)
    assert counts["in both"] == (truth & A).sum()
    assert counts["extra"] == (A & ~truth & ~truth.T).sum()
    assert counts["missing"] == (truth & ~A & ~A.T).sum()


def test_symbols_are_where_the_edges_are_and_differ_without_colour():
    truth = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    A = np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    ax = plot.adjacency(A, truth)
    places = {str(c.get_gid()): [tuple(p) for p in c.get_offsets().astype(int).tolist()] for c in ax.collections}
    assert places == {
        "in both": [(1, 0)],
        "in the other direction": [(1, 2)],
        "missing": [(2, 0)],
        "extra": [(2, 3)],
    }
    shapes = {artist.get_paths()[0].vertices.tobytes() for artist in ax.collections}
    assert len(shapes) == 4


def test_a_free_direction_against_a_directed_one_is_one_pair():
    free, directed = np.array([[0, 1], [1, 0]]), np.array([[0, 1], [0, 0]])
    assert texts(plot.adjacency(free, directed)) == ["1 in the other direction"]
    assert texts(plot.adjacency(free, free)) == ["1 in both"]


def test_a_heat_map_shows_the_values(model):
    W = np.array([[0, -2.0], [0, 0]])
    ax = plot.adjacency(W, names=["$a$", "_b"])
    image = ax.get_images()[0]
    assert (image.get_array() == W).all()
    assert image.get_clim() == (-2.0, 2.0)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["$a$", "_b"]
    assert not any(label.get_parse_math() for label in (*ax.get_xticklabels(), *ax.get_yticklabels()))
    fitted = plot.adjacency(model)
    strength = coefficients(model.moments_, model.adjacency_matrix_).standardised
    assert np.asarray(fitted.get_images()[0].get_array()) == pytest.approx(strength)
    assert plot.adjacency(np.zeros((70, 70))).get_xticklabels() == []


# --- searches -------------------------------------------------------------------------------------------------


def test_histories_show_what_there_is(table):
    runs = {
        algorithm: ALIAS(criterion, algorithm=algorithm, refine=False, random_state=0).fit(table.X)
        for criterion, algorithm in (("bic-nv", "conditional"), ("bic-nv", "local"), ("bic-nv", "orders"))
    }
    assert len(plot.history(runs["local"])) == 2, "local search has no sigma"
    panels = plot.history(*runs.values())
    assert len(panels) == 3
    for ax, column in zip(panels, ("best_score", "edges", "sigma"), strict=True):
        lines = [line for line in ax.lines if line.get_gid() == column]
        for line, run in zip(lines, runs.values(), strict=True):
            assert np.array_equal(line.get_ydata(), run.history_[column], equal_nan=True)
    assert texts(panels[0]) == ["conditional", "local", "orders"]
    assert texts(plot.history(runs["orders"])[0]) == []


def test_histories_of_results_and_arrays_with_labels(model):
    given = [axes() for _ in range(2)]
    history = {"best_score": [1.0, 2.0], "edges": [3.0]}
    panels = plot.history(model.search_.history, history, labels=["$one$", "_two"], axes=given)
    assert list(panels) == given
    assert texts(given[0]) == ["$one$", "_two"]
    assert not any(text.get_parse_math() for text in given[0].get_legend().get_texts())
    assert given[0].lines[2].get_ydata().tolist() == [1.0, 2.0]


# --- how sure -------------------------------------------------------------------------------------------------


def test_bars_are_the_shares(samples):
    ax = plot.confidence(samples, top=5)
    rows = list(samples.edges().rows)[:5]
    for column in ("forward", "backward", "free", "absent"):
        bars = [bar for bar in ax.patches if bar.get_gid() == column]
        assert [bar.get_width() for bar in bars] == pytest.approx([row[column] for row in rows])
    rights = [bar.get_x() + bar.get_width() for bar in ax.patches if bar.get_gid() == "absent"]
    assert rights == pytest.approx(np.ones(5))
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"{r['source']} → {r['target']}" for r in rows]
    assert "12 samples" in ax.get_xlabel()


def test_a_bootstrap_of_strange_names_and_one_without_edges(rng):
    moments = Moments.of(rng.standard_normal((50, 6)))
    edges = np.array([[0, 1], [2, 3]], np.int32)
    sample = Sample(0, edges, np.ones(2), np.array([False, True]), 0.0)
    found = Bootstrap(STRANGE, [sample], "resample", "rows", 1, "done", moments, Constraints.none(STRANGE))
    ax = plot.confidence(found)
    assert ax.get_yticklabels()[0].get_text() == "$x_1$ → _hidden"
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())
    assert texts(ax) == ["as written", "direction free"]
    rendered(ax)
    rendered(plot.graph(found))
    empty = Sample(0, edges[:0], np.ones(0), np.zeros(0, bool), 0.0)
    nothing = Bootstrap(STRANGE, [empty], "resample", "rows", 1, "done", moments, Constraints.none(STRANGE))
    rendered(plot.confidence(nothing))
    rendered(plot.graph(nothing))


# --- what an edge claims --------------------------------------------------------------------------------------


def parts(ax):
    curve = next(line for line in ax.lines if line.get_gid() == "curve")
    return curve.get_xydata(), np.asarray(ax.collections[0].get_offsets())


def test_the_curve_of_a_linear_regression_has_its_coefficient_as_slope(model, table):
    edges = model.edges_
    for ax, i, j, beta in zip(
        plot.pairs(model, table.X), edges["source"], edges["target"], edges["coefficient"], strict=False
    ):
        curve, points = parts(ax)
        assert (ax.get_xlabel(), ax.get_ylabel()) == (i, j)
        assert np.diff(curve[:, 1]) == pytest.approx(beta * np.diff(curve[:, 0]))
        # Partial residuals: their regression on the cause alone is the coefficient, and what is left the residual.
        assert np.polyfit(*points.T, 1)[0] == pytest.approx(beta)
        assert points[:, 0] == pytest.approx(table.X[:, int(i[1:])])
    assert len(plot.pairs(model, table.X)) == 6


def test_the_mean_of_the_table_lies_on_the_line(table):
    X = 100.0 + 7.0 * table.X
    model = ALIAS("bic-nv", standardize=True, random_state=0).fit(X)
    i, j = np.argwhere(model.adjacency_matrix_)[0].tolist()
    curve, points = parts(plot.pairs(model, X, [(i, j)])[0])
    assert np.interp(X[:, i].mean(), *curve.T) == pytest.approx(X[:, j].mean())
    assert points.mean(axis=0) == pytest.approx(X[:, [i, j]].mean(axis=0))


def test_curves_of_other_regressions(rng):
    x = rng.uniform(-2, 2, 150)
    X = np.column_stack([x, np.sin(2 * x) + 0.1 * rng.standard_normal(150)])
    model = ALIAS(regression="gp", prune=None, random_state=0, knowledge=Knowledge(required=[("x0", "x1")])).fit(X)
    curve, points = parts(plot.pairs(model, X)[0])
    inside = np.abs(curve[:, 0]) < 1.8
    assert np.abs(curve[inside, 1] - np.sin(2 * curve[inside, 0])).max() < 0.4
    # With one parent there is nothing to hold: the points are the table.
    assert points == pytest.approx(X)


def test_a_score_of_ones_own_has_lines(table):
    model = ALIAS(lambda A: float(A[0, 1]) - 0.1 * A.sum(), random_state=0).fit(table.X[:, :2])
    assert model.adjacency_matrix_[0, 1]
    curve, points = parts(plot.pairs(model, table.X[:, :2])[0])
    assert np.polyfit(*curve.T, 1)[0] == pytest.approx(np.polyfit(*points.T, 1)[0])


# --- everywhere -----------------------------------------------------------------------------------------------


def everything(model, samples, table, **settings):
    """All pictures, into axes of their own."""
    yield plot.graph(model, confidence=samples, ax=axes(), **settings)
    yield plot.adjacency(model, table.A, ax=axes(), **settings)
    yield plot.adjacency(model, ax=axes(), **settings)
    yield plot.confidence(samples, ax=axes(), **settings)
    yield from plot.history(model.history_, axes=[axes() for _ in plot.history(model)], **settings)
    yield from plot.pairs(
        model, table.X, [(model.edges_["source"][0], model.edges_["target"][0])], ax=axes(), **settings
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_picture_can_be_drawn_into_axes_and_has_no_title(model, samples, table, theme):
    for ax in everything(model, samples, table, theme=theme):
        assert ax.get_title() == ""
        rendered(ax)


def test_inputs_and_settings_are_as_they_were(model, samples, table):
    settings = dict(matplotlib.rcParams)
    X, A, W = table.X.copy(), model.adjacency_matrix_.copy(), model.weights_.copy()
    list(everything(model, samples, table))
    assert (table.X == X).all()
    assert (model.adjacency_matrix_ == A).all()
    assert (model.weights_ == W).all()
    assert dict(matplotlib.rcParams) == settings


def test_the_same_picture_twice(model):
    assert (rendered(plot.graph(model)) == rendered(plot.graph(model))).all()


def test_pyplot_has_the_figure_if_it_is_used_and_is_not_imported_otherwise(tmp_path):
    code = """
import sys, vec2dag.plot
ax = vec2dag.plot.graph([[0, 1], [0, 0]])
ax.figure.savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
import matplotlib.pyplot as plt
assert not plt.get_fignums()
ax = vec2dag.plot.graph([[0, 1], [0, 0]])
assert plt.gcf() is ax.figure
before = plt.gca()
vec2dag.plot.adjacency([[0, 1], [0, 0]], ax=ax)
assert len(plt.get_fignums()) == 1 and plt.gca() is before
"""
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "graph.png")], check=True, env=os.environ | {"MPLBACKEND": "Agg"}
    )


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.graph([[0]]),
        lambda: plot.adjacency([[0]]),
        lambda: plot.history({}),
        lambda: plot.confidence(None),
        lambda: plot.pairs(None, None),
    ],
)
def test_without_matplotlib_an_error_says_what_to_install(draw, monkeypatch):
    load = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "vec2dag\[plot\]"'):
        draw()


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda m, b, X: plot.graph(m, theme="blue"), "theme='blue' is unknown; allowed: 'light', 'dark'"),
        (lambda m, b, X: plot.graph(m, top=0), "top must be a whole number"),
        (lambda m, b, X: plot.graph(m, names=["a"]), "names are for arrays"),
        (lambda m, b, X: plot.graph([[0, 1], [0, 0]], names=["a"]), "names must have one entry per column"),
        (lambda m, b, X: plot.graph([[0, np.nan], [0, 0]]), "of must hold finite numbers"),
        (lambda m, b, X: plot.graph(np.eye(3, k=1) + np.eye(3, k=-2)), "A has a directed cycle"),
        (lambda m, b, X: plot.graph(np.zeros((2, 2, 2))), "of must be a fitted ALIAS"),
        (lambda m, b, X: plot.graph(m, confidence=np.full((8, 8), 2.0)), "confidence must be a Bootstrap, or shares"),
        (lambda m, b, X: plot.graph(m, confidence=[[0.5]]), "confidence must be a Bootstrap, or shares"),
        (lambda m, b, X: plot.graph(np.zeros((2, 2)), confidence=b), "confidence is of the columns"),
        (lambda m, b, X: plot.adjacency(m, [[0]]), "truth must have the shape of A"),
        (lambda m, b, X: plot.adjacency(m, names=["a"]), "names are for arrays"),
        (lambda m, b, X: plot.history(), "history needs a fitted model"),
        (lambda m, b, X: plot.history(3), "history is of fitted models"),
        (lambda m, b, X: plot.history({"best_score": []}), "nothing to draw"),
        (lambda m, b, X: plot.history(m, labels=["a", "b"]), "labels must have one entry per run"),
        (lambda m, b, X: plot.history(m, axes=[None]), "axes must have"),
        (lambda m, b, X: plot.confidence(m), "bootstrap must be a Bootstrap"),
        (lambda m, b, X: plot.pairs(ALIAS(), X), "model must be a fitted ALIAS"),
        (lambda m, b, X: plot.pairs(m, X[:, :3]), "X must have the 8 columns of the fit"),
        (lambda m, b, X: plot.pairs(m, X, [("x0", "x0")]), "the graph has no edge 'x0' -> 'x0'"),
        (lambda m, b, X: plot.pairs(m, X, [("x0", "y")]), "edges='y' is no column"),
        (lambda m, b, X: plot.pairs(m, X, ax=axes()), "ax must have 6 axes"),
    ],
)
def test_what_is_wrong_is_named(draw, words, model, samples, table):
    with pytest.raises(ValueError, match=re.escape(words)):
        draw(model, samples, table.X)


def test_columns_in_another_order_are_refused(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table.X, columns=list("abcdefgh"))
    model = ALIAS("bic-nv", random_state=0).fit(frame)
    assert len(plot.pairs(model, frame)) == 6
    with pytest.raises(ValueError, match="in this order"):
        plot.pairs(model, frame[list("hgfedcba")])


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (np.zeros((0, 0)), "d at least 1"),
        (np.array([[0, np.nan], [0, 0]]), "finite numbers"),
        (np.array([[0, 1e308], [0, 0]]), "finite numbers"),
        (ALIAS(), "must be fitted first"),
    ],
)
def test_what_is_no_graph_is_refused_alike(of, sentence):
    for draw in (plot.graph, plot.adjacency):
        with pytest.raises(ValueError, match=sentence):
            draw(of)
