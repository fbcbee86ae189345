"""What people look at, under attack: nothing is lost for a picture, and no page says what is not so."""

import html
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import vec2dag.report
from vec2dag import ALIAS
from vec2dag.cli import main

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def X(rng):
    """a -> b -> c, and d alone."""
    X = rng.standard_normal((300, 4))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return X


def written(file, X, names=NAMES):
    np.savetxt(file, X, delimiter=",", header=",".join(names), comments="", encoding="utf-8")
    return str(file)


@pytest.fixture
def table(tmp_path, X):
    return written(tmp_path / "table.csv", X)


# --- a graph that took hours is not lost for a picture of it ----------------------------------------------------


def test_a_graph_is_not_lost_because_matplotlib_is_missing(table, tmp_path, monkeypatch):
    fits = []
    fit = ALIAS.fit
    monkeypatch.setattr(ALIAS, "fit", lambda self, *args, **kwargs: fits.append(1) or fit(self, *args, **kwargs))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    main(["discover", table, "-o", str(tmp_path / "out"), "--plot"])
    assert not fits or (tmp_path / "out" / "graph.json").is_file()


def test_an_interrupt_while_the_page_is_made_leaves_the_graph(table, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(vec2dag.report, "page", interrupted)
    assert main(["discover", table, "-o", str(tmp_path / "out"), "--report"]) == 130
    assert (tmp_path / "out" / "graph.json").is_file()


def test_no_page_and_no_picture_of_an_earlier_graph_stay_beside_a_new_one(table, tmp_path, X):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert main(["discover", table, "-o", str(out), "--report", "--plot", "-q"]) == 0
    other = written(tmp_path / "other.csv", X[:, ::-1] ** 3, ("e", "f", "g", "h"))
    assert main(["discover", other, "-o", str(out), "-q"]) == 0
    assert not (out / "graph.png").exists()
    assert not (out / "report.html").exists() or "other.csv" in (out / "report.html").read_text(encoding="utf-8")


# --- what a page says is so -------------------------------------------------------------------------------------


def test_the_page_of_discover_has_its_warnings_and_its_command(table, tmp_path):
    text = Path(table).read_text().replace("\n", "\n# a remark\n", 1)
    Path(table).write_text(text)
    out = tmp_path / "out"
    assert main(["discover", table, "-o", str(out), "--report", "-q"]) == 0
    run, made = json.loads((out / "run.json").read_text()), (out / "report.html").read_text(encoding="utf-8")
    assert len(run["warnings"]) == 1
    assert html.escape(run["warnings"][0]) in made
    assert html.escape(run["command"]) in made


# --- letters that a font does not have --------------------------------------------------------------------------


def test_a_picture_of_names_beyond_the_font_says_nothing_of_its_own(tmp_path, X):
    pytest.importorskip("matplotlib")
    table = written(tmp_path / "table.csv", X, ("日本", "語の", "列名", "はこ"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert main(["discover", table, "-o", str(tmp_path / "out"), "--plot", "-q"]) == 0
    assert [str(w.message) for w in caught if issubclass(w.category, UserWarning)] == []
