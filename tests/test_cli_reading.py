"""How the command line reads tables and graphs: its options, pipes, sizes, and what it says about them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vec2dag
from vec2dag import datasets
from vec2dag.cli import main
from vec2dag.files.graphs import read_graph, write_graph

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(vec2dag.__file__).parents[1])}
TRUE = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def _values():
    """a -> c <- b: rounded, so that few digits say all."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 60))
    return np.column_stack([a, b, a + b + 0.3 * rng.standard_normal(60)]).round(3)


def _text(header="a,b,c", delimiter=",", decimal="."):
    lines = [delimiter.join(f"{v:.3f}".replace(".", decimal) for v in row) for row in _values()]
    return "\n".join([header.replace(",", delimiter), *lines]) + "\n"


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run_main(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        err = "".join(line for line in err.splitlines(True) if "compiling the kernels" not in line)
        return SimpleNamespace(code=code, out=out, err=err)

    return run_main


@pytest.fixture
def refused(run):
    """Run what must be refused: exit code 2 and one printable sentence on standard error."""

    def run_refused(*arguments):
        result = run(*arguments)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("vec2dag: ")
        assert result.err.endswith("\n")
        assert result.err[:-1].isprintable()
        return result.err

    return run_refused


@pytest.fixture
def discover(run, tmp_path):
    """Learn from the text of a table: the names of its variables, the number of rows, and what was said."""

    def run_discover(content, *options, name="t.csv"):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        result = run("discover", tmp_path / name, "-o", tmp_path / "out", "-q", *options)
        assert result.code == 0, result.err
        found = json.loads((tmp_path / "out" / "run.json").read_text())
        assert [f"vec2dag: warning: {note}" for note in found["warnings"]] == result.err.splitlines()
        return read_graph(tmp_path / "out" / "graph.json")[1], found["rows"], result.err

    return run_discover


def test_every_option_of_tables_has_its_effect(discover):
    plain = (("a", "b", "c"), 60, "")
    assert discover(_text()) == plain
    assert discover(_text(delimiter=":"), "--delimiter", ":") == plain
    assert discover(_text(delimiter=";", decimal=","), "--decimal", ",") == plain
    assert discover(_text("größe,b,c").encode("cp1251", "replace"), "--encoding", "cp1251")[0][1:] == ("b", "c")
    assert discover("% x\n" + _text(), "--comment", "%") == plain
    assert discover(_text("5,6,7"), "--header")[:2] == (("5", "6", "7"), 60)
    assert discover(_text("2001,2002,2003"), "--no-header")[:2] == (("x0", "x1", "x2"), 61)
    assert discover(_text(), "--exclude", "a")[0] == ("b", "c")
    assert discover(_text(), "--columns", "c", "a")[0] == ("c", "a")
    assert discover(gzip.compress(_text().encode()), name="t.csv.gz") == plain
    assert discover(_text(), "--max-memory", "0.00001") == plain


def test_what_was_guessed_is_said_and_kept(discover):
    names, rows, err = discover(_text("2001,2002,2003", ";", ",").encode("utf-16"))
    assert (names, rows) == (("2001", "2002", "2003"), 60)
    assert "read as names; --no-header" in err
    assert "commas are read as decimal marks" in err
    names, _, err = discover(_text("größe,b,c").encode("latin-1"))
    assert names == ("größe", "b", "c")
    assert "--encoding" in err
    lines = _text().splitlines()
    labelled = "\n".join(["id," + lines[0], *(f"row {i},{line}" for i, line in enumerate(lines[1:]))])
    names, rows, err = discover(labelled)
    assert (names, rows) == (("a", "b", "c"), 60)
    assert "'id'" in err


def test_missing_values_are_refused_or_their_rows_left_out(discover, refused, tmp_path):
    text = _text() + "1,,2\nNA,1,1\n"
    assert discover(text, "--missing", "drop")[1] == 60
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert "'a' (1 NaN), 'b' (1 NaN); --missing drop leaves out the 2 row(s) of 62" in err
    assert "missing='guess' is unknown" in refused(
        "discover", tmp_path / "t.csv", "-o", tmp_path / "out", "--missing", "guess"
    )


def test_text_columns_are_named_with_what_to_do(refused, discover, tmp_path):
    text = "a,b,kind,c\n" + "".join(f"{a},{b},{'xy'[i % 2]},{c}\n" for i, (a, b, c) in enumerate(_values()))
    (tmp_path / "t.csv").write_text(text)
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out", "--criterion", "bic-nv")
    assert "--criterion bic-nv is for numbers, and of the columns 'kind' are categories" in err
    assert discover(text, "--exclude", "kind")[0] == ("a", "b", "c")
    assert discover(text)[0] == ("a", "b", "kind", "c")


def test_text_below_the_first_rows_is_named_with_what_to_do(refused, discover, tmp_path):
    text = "a,b,kind\n" + "".join(f"{k % 7},{k % 5 + 0.5},{k % 3}\n" for k in range(300)) + "1,2,other\n"
    (tmp_path / "t.csv").write_text(text)
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert "in 'kind' (300 of 301; line 302: 'other'); leave cells empty" in err
    assert "--categorical 'kind' reads all as categories" in err
    assert discover(text, "--categorical", "kind")[0] == ("a", "b", "kind")


def test_missing_values_of_categories_are_refused_or_their_rows_left_out(refused, discover, tmp_path):
    text = "a,kind\n" + "".join(f"{k % 7},{'' if k == 3 else 'xyz'[k % 3]}\n" for k in range(90))
    (tmp_path / "t.csv").write_text(text)
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert "missing values in 'kind' (1 NaN); --missing drop leaves out the 1 row(s) of 90 that have one\n" in err
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out", "--missing", "em")
    assert "--missing em is for columns of numbers, and 'kind' are categories: --missing drop leaves" in err
    assert discover(text, "--missing", "drop")[0] == ("a", "kind")


def test_parquet_and_a_first_column_of_text(run, tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"sex": ["f", "m", "m"] * 20, "bp": _values()[:, 0], "truth": [True, False] * 30})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.astype({"sex": "category"}).to_parquet(tmp_path / "d.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for file in ("t.parquet", "d.parquet", "t.csv"):
        assert run("discover", tmp_path / file, "-o", tmp_path / "out", "-q").code == 0
        levels = json.loads((tmp_path / "out" / "run.json").read_text())["levels"]
        assert levels == {"sex": ["f", "m"], "truth": [False, True]}


def test_a_column_without_values_is_named(refused, tmp_path):
    (tmp_path / "t.csv").write_text("a,empty,b\n" + "".join(f"{a},,{b}\n" for a, b, _ in _values()))
    for missing in ("refuse", "drop"):
        err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out", "--missing", missing)
        assert "no value in any row of 'empty'; --exclude 'empty' leaves them out" in err


def test_names_of_rows_are_no_categories(refused, discover, tmp_path):
    text = "a,who,b\n" + "".join(f"{k % 7},person {k},{k % 5}\n" for k in range(40))
    (tmp_path / "t.csv").write_text(text)
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert "differs from row to row in 'who' (40)" in err
    assert "--exclude 'who' leaves them out, --categorical 'who' insists" in err
    assert discover(text, "--exclude", "who")[0] == ("a", "b")


def test_bundled_data_are_selected_in_the_same_way(run, refused, tmp_path):
    sachs = datasets.load_sachs().names
    assert run("discover", "sachs", "-o", tmp_path, "--exclude", *sachs[3:], "-q").code == 0
    assert read_graph(tmp_path / "graph.json")[1] == sachs[:3]
    assert "sachs: no column 'Rap'; it has 'Raf'" in refused("discover", "sachs", "-o", tmp_path, "--exclude", "Rap")
    err = refused("discover", "sachs", "-o", tmp_path, "--exclude", "Raf", "--columns", "Raf", "Mek")
    assert "'Raf' both wanted and excluded" in err


def test_sizes_are_bounded(refused, tmp_path):
    (tmp_path / "t.csv").write_text(_text())
    out = ("-o", tmp_path / "out")
    few = ("--regression", "gp", "--max-memory", 1e-6)
    assert "--max-memory 1 allows it" in refused("discover", tmp_path / "t.csv", *out, *few)
    nodes = [f"n{i}" for i in range(30_000)]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "edges": []}))
    err = refused("evaluate", tmp_path / "g.json", tmp_path / "g.json")
    assert "30000 nodes would take 7.2 GB, more than the 4 GB allowed; --max-memory 8 allows it" in err


def _program(*arguments, stdin):
    command = [sys.executable, "-m", "vec2dag.cli", *map(str, arguments)]
    return subprocess.run(command, input=stdin, env=ENVIRONMENT, capture_output=True, timeout=120)


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="no /dev/stdin here")
def test_the_standard_input_by_each_of_its_names(tmp_path):
    write_graph(tmp_path, TRUE, "abc")
    for name, file in (("-", "graph.json"), ("/dev/stdin", "adjacency.csv")):
        done = _program("evaluate", tmp_path / "graph.dot", name, "--json", stdin=(tmp_path / file).read_bytes())
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["shd"] == 0


def test_a_table_comes_through_a_pipe(run, tmp_path):
    if not os.path.isdir("/dev/fd"):
        pytest.skip("no /dev/fd here")
    ours, theirs = os.pipe()
    os.write(theirs, _text().encode())
    os.close(theirs)
    try:
        assert run("discover", f"/dev/fd/{ours}", "-o", tmp_path, "-q").code == 0
    finally:
        os.close(ours)
    assert read_graph(tmp_path / "graph.json")[1] == ("a", "b", "c")


def test_only_one_graph_can_come_from_the_standard_input(refused):
    assert "only one of the graphs" in refused("evaluate", "-", "-")


def test_lists_of_edges_lack_nodes_without_edges(run, refused, tmp_path):
    write_graph(tmp_path, np.pad(TRUE, (0, 1)), "abcd")
    (tmp_path / "edges.csv").write_text(",source,target,direction\n0,a,b,oriented\n1,b,c,oriented\n")
    (tmp_path / "none.csv").write_text("source,target\n")
    graph = tmp_path / "graph.json"
    for pair, role in (((graph, tmp_path / "edges.csv"), "EST"), ((tmp_path / "edges.csv", graph), "TRUE")):
        result = run("evaluate", *pair, "--json")
        assert result.err == f"vec2dag: warning: {role} is an edge list without 'd', taken to have no edges there\n"
        values = json.loads(result.out)
        assert (values["nodes"], values["shd"]) == (4, 0)
    assert json.loads(run("evaluate", graph, tmp_path / "none.csv", "--json").out)["shd"] == 2
    (tmp_path / "edges.csv").write_text("source,target\na,B\n")
    assert "has 'B' besides" in refused("evaluate", graph, tmp_path / "edges.csv")
    assert "neither graph has a node" in refused("evaluate", tmp_path / "none.csv", tmp_path / "none.csv")


def test_nothing_steers_the_terminal(refused, run, tmp_path):
    evil = "\x1b[31m\x9b\r\u202e"
    out = ("-o", tmp_path / "out")
    err = refused("discover", tmp_path / f"{evil}.csv", *out)
    assert "\\x1b[31m\\x9b\\r\\u202e.csv: no such file" in err
    (tmp_path / "t.csv").write_text(f'a,"{evil}{"n" * 5000}"\n1,2\n', encoding="utf-8")
    assert len(refused("discover", tmp_path / "t.csv", *out)) < 2000
    assert "no column '\\x1b[31m" in refused("discover", "sachs", *out, "--exclude", evil)
    (tmp_path / "g.csv").write_text(f'source,target\na,"b{evil[1:]}"\n', encoding="utf-8")
    write_graph(tmp_path, TRUE, "abc")
    assert "has 'b[31m\\x9b" in refused("evaluate", tmp_path / "graph.json", tmp_path / "g.csv")
    names = ("a\u202e", "b\x9b", "c")
    (tmp_path / "t.csv").write_text(_text(",".join(names)), encoding="utf-8", newline="")
    result = run("discover", tmp_path / "t.csv", *out)
    assert all(line.isprintable() for line in (result.out + result.err).split("\n"))
    assert read_graph(tmp_path / "out" / "graph.json")[1] == names, "files keep names exact"


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        (["--exclude", "b", "ward"], ("a", "c")),
        (["--columns", "c", "a"], ("c", "a")),
        (["--exclude", "a", "--index-col", "ward", "--categorical", "b"], ("b", "c")),
    ],
)
def test_a_table_may_stand_behind_names_of_columns(options, nodes, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{text},{k % 3}" for k, text in enumerate(_text().splitlines()[1:])]
    Path("t.csv").write_text("\n".join(["a,b,c,ward", *rows]))
    assert run("discover", "-o", "out", *options, "t.csv").code == 0
    assert read_graph(Path("out", "graph.json"))[1] == nodes
    assert run("report", "--exclude", "b", "out").code == 0


def test_a_table_that_is_not_found_behind_names_of_columns_is_asked_for(run, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    err = refused("discover", "-o", "out", "--categorical", "ward", "t.csv")
    assert "DATA is missing: --categorical took 'ward', 't.csv' for names of columns" in err
    assert "write it before them: vec2dag discover DATA --categorical NAME" in err
    Path("t.csv").write_text(_text())
    # Nothing would be left for the option; and one of two would be a guess.
    assert "DATA is missing" in refused("discover", "-o", "out", "--exclude", "t.csv")
    assert "DATA is missing" in refused("bootstrap", "--exclude", "a", "t.csv", "-o", "out", "--columns", "b", "t.csv")
    assert "DIR is missing: --exclude took 'a', 'none'" in refused("report", "--exclude", "a", "none")
    assert "the following arguments are required: DATA, -o/--output" in run("discover").err


def test_run_json_has_the_columns_that_were_named_as_categories(tmp_path):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 3, 80), rng.standard_normal(80)])
    file = tmp_path / "t.csv"
    file.write_text("ward,x\n" + "\n".join(f"{int(a)},{b:.3f}" for a, b in table), encoding="utf-8")
    assert main(["discover", str(file), "-o", str(tmp_path / "o"), "--categorical", "ward", "--quiet"]) == 0
    run = json.loads((tmp_path / "o" / "run.json").read_text(encoding="utf-8"))
    assert run["parameters"]["categorical"] == ["ward"]
    assert main(["report", str(tmp_path / "o"), "--data", str(file), "--categorical", "ward"]) == 2
