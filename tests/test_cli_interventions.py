"""The command line with a column that says what was set in every row."""

import json

import numpy as np
import pytest

from vec2dag import simulate
from vec2dag.cli import main
from vec2dag.files.tables import Apart, read_table

W = np.array([[0, 1.5, 0], [0, 0, -1.0], [0, 0, 0]])
SAID = ["", "b", "none", "a;c"] * 100


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    data = simulate.simulate(W, n=400, rng=rng, names=("a", "b", "c"), interventions=SAID)
    file = tmp_path / "table.csv"
    lines = ["a,what,b,c"]
    lines += [f"{x!r},{said},{y!r},{z!r}" for (x, y, z), said in zip(data.X.tolist(), SAID, strict=True)]
    file.write_text("\n".join(lines) + "\n")
    return file, data


def test_a_column_can_be_read_apart(table):
    file, data = table
    apart = Apart("what")
    X, names = read_table(file, apart=apart)
    assert names == ("a", "b", "c")
    assert np.array_equal(X, data.X)
    assert apart.cells == SAID


def test_rows_that_are_dropped_take_their_targets_along(table, tmp_path):
    lines = table[0].read_text().splitlines()
    lines[2] = ",b,1.0,2.0"
    file = tmp_path / "gaps.csv"
    file.write_text("\n".join(lines))
    apart = Apart("what")
    with pytest.warns(UserWarning, match="left out 1 of 400"):
        X, _ = read_table(file, apart=apart, missing="drop")
    assert len(X) == 399
    assert apart.cells == ["", *SAID[2:]]


def test_parquet_and_arrays(table, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = dict(zip("abc", table[1].X.T, strict=True)) | {"what": [None if s == "none" else s for s in SAID]}
    parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    apart = Apart("what")
    X, names = read_table(tmp_path / "table.parquet", apart=apart)
    assert names == ("a", "b", "c")
    assert np.array_equal(X, table[1].X)
    assert apart.cells[:4] == ["", "b", None, "a;c"]
    np.save(tmp_path / "table.npy", X)
    with pytest.raises(ValueError, match="no column of text"):
        read_table(tmp_path / "table.npy", apart=apart)


def test_discover_and_bootstrap(table, tmp_path, capsys):
    file, data = table
    assert main(["discover", str(file), "-o", str(tmp_path / "out"), "--interventions", "what", "--report"]) == 0
    said = capsys.readouterr()
    assert "rows in which a column was set do not count for its causes: 'a' in 100, 'b' in 100, 'c' in 100" in said.out
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["interventions"] == {"a": 100, "b": 100, "c": 100}
    assert run["columns"] == 3
    graph = json.loads((tmp_path / "out" / "graph.json").read_text())
    assert len(graph.get("edges", graph.get("links"))) == int(data.A.sum())
    options = ["--interventions", "what", "--samples", "4", "--jobs", "1"]
    assert main(["bootstrap", str(file), "-o", str(tmp_path / "many"), *options]) == 0


@pytest.mark.parametrize("command", ["discover", "bootstrap"])
def test_errors_say_where_in_the_file(table, tmp_path, command, capsys):
    lines = table[0].read_text().splitlines()
    lines[3] = "1.0,,,2.0"
    lines[5] = "1.0,who,1.0,2.0"
    lines.insert(2, "")
    file, out = tmp_path / "wrong.csv", str(tmp_path / "out")
    file.write_text("\n".join(lines))
    assert main([command, str(file), "-o", out, "--interventions", "what", "--missing", "drop"]) == 2
    said = capsys.readouterr().err
    # The empty line and the row that is left out are lines of the file all the same.
    assert f"interventions: line 7 of {file} names 'who', which is no column" in said
    assert file.read_text().splitlines()[7 - 1].split(",")[1] == "who"


def test_errors_say_where_in_a_file_without_lines(table, tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = dict(zip("abc", table[1].X.T, strict=True)) | {"what": ["b", "who", *SAID[2:]]}
    file = tmp_path / "wrong.parquet"
    parquet.write_table(pa.table(columns), file)
    assert main(["discover", str(file), "-o", str(tmp_path / "out"), "--interventions", "what"]) == 2
    assert f"interventions: row 2 (the first is 1) of {file} names 'who'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--interventions", "who"], "no column 'who'"),
        (["--interventions", "b"], "missing values in 'what'"),
        (["--interventions", "what", "--exclude", "b"], "names 'b', which is no column"),
        (["--interventions", "what", "--columns", "what", "a"], "both wanted and excluded"),
        (["--interventions", "what", "--lags", "1"], "--lags"),
    ],
)
def test_nonsense_is_one_sentence(table, tmp_path, options, sentence, capsys):
    assert main(["discover", str(table[0]), "-o", str(tmp_path / "out"), *options]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
