"""The command line as a user meets it: files, exit codes, and what is said on which stream."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from oracles import graph_score

import vec2dag
from vec2dag import ALIAS, cpdag, datasets, metrics, simulate
from vec2dag.cli import main, parser
from vec2dag.cli.words import OPTIONS, in_options
from vec2dag.edges import removed_edges
from vec2dag.files.graphs import read_graph, write_graph
from vec2dag.files.tables import read_table
from vec2dag.prune import PRUNERS, Verdict
from vec2dag.scores import CRITERIA, REGRESSIONS
from vec2dag.search import ALGORITHMS, STARTS

GRAPHS = ("graph.json", "adjacency.csv", "graph.dot", "graph.graphml")
NAMES = ("a", "b", "c", "d")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(vec2dag.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "vec2dag.cli")


def without_compilation(err):
    return "".join(line for line in err.splitlines(True) if "compiling the kernels" not in line)


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run_main(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=without_compilation(err))

    return run_main


@pytest.fixture
def refused(run):
    """Run what must be refused: exit code 2, nothing on standard output, one sentence on standard error.

    Before it may stand how the table was read.
    """

    def run_refused(*arguments):
        result = run(*arguments)
        assert result.code == 2
        assert result.out == ""
        assert result.err.startswith("vec2dag: ")
        *notes, last = result.err.splitlines()
        assert all(line.startswith("vec2dag: warning: ") for line in notes)
        return f"{last}\n"

    return run_refused


@pytest.fixture
def X():
    """a -> c <- b, c -> d: the class of this graph has one member, so every direction is determined."""
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 400))
    c = a - b + 0.5 * rng.standard_normal(400)
    return np.column_stack([a, b, c, c + 0.5 * rng.standard_normal(400)])


TRUTH = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


@pytest.fixture
def put(tmp_path):
    """Write a CSV file of numbers and return its path."""

    def put_file(X, names=NAMES, file="data.csv"):
        lines = [",".join(names), *(",".join(map(repr, row)) for row in np.asarray(X).tolist())]
        (tmp_path / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / file

    return put_file


def adjacency(folder):
    return read_graph(folder / "adjacency.csv")[0]


# --- discover ---


def test_discover_finds_the_graph_and_prints_it(run, put, X, tmp_path):
    result = run("discover", put(X), "-o", tmp_path / "out")
    assert result.code == 0
    assert result.err == "", "quiet when piped"
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0] == ["cause", "effect", "coefficient", "error", "standardised"]
    assert sorted(row[:3] for row in rows[1:4]) == [["a", "-->", "c"], ["b", "-->", "c"], ["c", "-->", "d"]]
    strengths = [abs(float(row[3])) for row in rows[1:4]]
    assert strengths == sorted(strengths, reverse=True)
    assert "400 rows, 4 columns, 3 edges, ebic-nv" in result.out
    np.testing.assert_array_equal(adjacency(tmp_path / "out"), TRUTH)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == sorted(
        [*GRAPHS, "cpdag.csv", "edges.csv", "run.json", "summary.json"]
    )


def test_directions_that_the_data_leave_open_have_no_arrowhead(run, put, X, tmp_path):
    result = run("discover", put(X[:, [0, 2]], "xy"), "-o", tmp_path / "out")
    assert result.out.splitlines()[1].split()[1] == "---"
    assert "does not tell the direction" in result.out
    edges = json.loads((tmp_path / "out" / "graph.json").read_text())["edges"]
    assert [edge["direction"] for edge in edges] == ["free"]
    assert "dir=none" in (tmp_path / "out" / "graph.dot").read_text()
    assert read_graph(tmp_path / "out" / "cpdag.csv")[0].tolist() == [[0, 1], [1, 0]]
    assert adjacency(tmp_path / "out").sum() == 1
    other = run("discover", put(X[:, [0, 2]], "xy"), "-o", tmp_path / "ev", "--criterion", "bic-ev")
    assert other.out.splitlines()[1].split()[1] == "-->", "equal variances determine every direction"


def test_independent_columns_give_no_edges(run, put, tmp_path):
    result = run("discover", put(np.eye(4).repeat(10, axis=0) * 2.0), "-o", tmp_path / "o")
    assert result.code == 0
    sparse = run("discover", put(np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]]), "xy"), "-o", tmp_path / "o")
    assert "no edges" in sparse.out
    assert not adjacency(tmp_path / "o").any()


def test_the_files_agree_with_each_other_and_with_the_data(run, put, X, tmp_path):
    rng = np.random.default_rng(3)
    mixed = np.column_stack([X, X[:, :1] + rng.standard_normal((400, 2))])
    names = ("größe, cm", 'the "b"', "c d", "温度", "back\\slash", "f")
    file = tmp_path / "data.npz"
    np.savez(file, X=mixed, names=names)
    out = tmp_path / "new" / "folder"
    assert run("discover", file, "-o", out).code == 0
    graphs = [read_graph(out / name) for name in GRAPHS]
    A = graphs[0][0]
    for other, other_names in graphs:
        assert other_names == names
        np.testing.assert_array_equal(other, A)
    both = cpdag(A)
    edges = json.loads((out / "graph.json").read_text(encoding="utf-8"))["edges"]
    assert len(edges) == A.sum() > 0
    for edge in edges:
        i, j = names.index(edge["source"]), names.index(edge["target"])
        parents = np.flatnonzero(A[:, j])
        design = np.column_stack([np.ones(400), mixed[:, parents]])
        coefficients = np.linalg.lstsq(design, mixed[:, j], rcond=None)[0][1:]
        assert edge["weight"] == pytest.approx(coefficients[list(parents).index(i)], rel=1e-8)
        assert edge["direction"] == ("free" if both[i, j] and both[j, i] else "oriented")
    graphml = nx.read_graphml(out / "graph.graphml")
    assert {(e["source"], e["target"]): (e["weight"], e["direction"]) for e in edges} == {
        (u, v): (data["weight"], data["direction"]) for u, v, data in graphml.edges(data=True)
    }


def test_run_json_says_what_was_run(run, put, X, tmp_path):
    file = put(X)
    arguments = ("--criterion", "bic-ev", "--seed", 5, "--prune", "none", "--jobs", 1)
    assert run("discover", file, "-o", tmp_path / "out", *arguments).code == 0
    text = (tmp_path / "out" / "run.json").read_text()
    found = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert found["data"] == str(file)
    assert (found["rows"], found["columns"]) == X.shape
    assert found["seed"] == found["parameters"]["random_state"] == 5
    assert found["parameters"]["criterion"] == "bic-ev"
    assert found["parameters"]["n_jobs"] == 1
    assert found["parameters"]["prune"] is None
    assert len(found["warnings"]) == 1
    assert "bic-ev assumes equal noise variances" in found["warnings"][0]
    assert found["versions"]["vec2dag"] == vec2dag.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert 0 <= found["seconds"] < 3600
    A = adjacency(tmp_path / "out")
    assert found["edges"] == found["edges_before_pruning"] == A.sum()
    assert found["score"] == pytest.approx(graph_score(X, A, "bic-ev"), rel=1e-9)


def test_pruning_options_are_used(run, put, X, tmp_path):
    weak = X.copy()
    weak[:, 3] = 0.1 * X[:, 2] + 0.01 * X[:, 3]
    for threshold, edges in ((0.3, 2), (0.05, 3)):
        arguments = ("--prune", "linear", "--prune-threshold", threshold)
        assert run("discover", put(weak), "-o", tmp_path / "out", *arguments).code == 0
        found = json.loads((tmp_path / "out" / "run.json").read_text())
        assert (found["edges"], found["edges_before_pruning"]) == (edges, 3)
        assert adjacency(tmp_path / "out").sum() == edges


def test_pruned_edges_are_shown_with_the_reason(run, put, X, tmp_path):
    weak = X.copy()
    weak[:, 3] = 0.1 * X[:, 2] + 0.01 * X[:, 3]
    result = run("discover", put(weak), "-o", tmp_path / "out", "--prune", "linear")
    assert re.search(
        r"1 removed by pruning \(coefficient; edges stay from 0\.3; .*\):\n  c --> d  0\.\d+\n", result.out
    )
    table = json.loads((tmp_path / "out" / "run.json").read_text())["pruning"]
    assert [(v["source"], v["target"]) for v in table if not v["kept"]] == [("c", "d")]
    assert len(table) == 3


def test_the_edges_nearest_to_staying_are_shown_first(run, put, X, tmp_path):
    noise = np.random.default_rng(0).standard_normal((60, 4))
    verdicts = [Verdict(0, j, False, "BIC gain", gain, 0.0) for j, gain in ((1, -5.0), (2, -2.0), (3, -9.0))]
    lines = removed_edges(verdicts, NAMES).splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["c", "b", "d"]
    assert "edges stay above 0" in lines[0]
    result = run("discover", put(noise + noise[:, :1]), "-o", tmp_path / "out", "--prune", "linear",
                 "--prune-threshold", 50)  # fmt: skip
    assert result.out.startswith("no edges are left after pruning")


def test_nonlinear_tables(run, refused, put, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    e, u, v = rng.standard_normal((3, 200))
    table = np.column_stack([x, np.cos(2 * x) + 0.2 * e, u, v])
    arguments = ("discover", put(table), "-o", tmp_path / "out", "--regression", "gp", "--gp-alpha", 0.1)
    kept = ("--checkpoint", tmp_path / "scores.npz")
    result = run(*arguments, *kept)
    assert result.code == 0
    assert re.search(r"cause +effect +slope +standardised +p-value\n", result.out)
    assert "of the edge, not of its direction" in result.out
    assert np.argwhere(adjacency(tmp_path / "out")).tolist() == [[0, 1]]
    first = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (first["fits"], first["exact"]) == (4 * 2**3, True)
    assert "alpha=0.1" in first["parameters"]["regression"]
    assert run(*arguments, *kept, "--gp-median-scale").code == 2
    assert run(*arguments, *kept).code == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["fits"] == 0
    sentence = refused("discover", put(table), "-o", tmp_path / "out", "--gp-alpha", 2)
    assert "--gp-alpha is a setting of --regression gp: with --regression linear it has no effect" in sentence
    assert "is a checkpoint of other data" in refused("discover", put(table), "-o", tmp_path / "out", *kept)


def test_quiet_prints_nothing_but_warnings(run, put, X, tmp_path):
    result = run("discover", put(X), "-o", tmp_path / "out", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    X[:, 3] = X[:, 0]
    result = run("discover", put(X), "-o", tmp_path / "out", "--quiet")
    assert (result.code, result.out) == (0, "")
    assert "warning" in result.err


def test_formats_give_the_same_graph(run, put, X, tmp_path):
    csv = put(X, ("x0", "x1", "x2", "x3"))
    (tmp_path / "data.tsv").write_text(csv.read_text().replace(",", "\t"))
    np.save(tmp_path / "data.npy", X)
    np.savez(tmp_path / "data.npz", X=X)
    for suffix in ("csv", "tsv", "npy", "npz"):
        assert run("discover", tmp_path / f"data.{suffix}", "-o", tmp_path / suffix).code == 0
    for suffix in ("tsv", "npy", "npz"):
        for name in GRAPHS:
            assert (tmp_path / suffix / name).read_bytes() == (tmp_path / "csv" / name).read_bytes()


def test_bundled_data_and_columns(run, refused, tmp_path):
    chosen = ("Mek", "Raf", "Erk")
    assert run("discover", "sachs", "-o", tmp_path, "--columns", *chosen).code == 0
    assert read_graph(tmp_path / "graph.json")[1] == chosen
    assert json.loads((tmp_path / "run.json").read_text())["rows"] == 853
    err = refused("discover", "sachs", "-o", tmp_path, "--columns", "Raf", "Rap")
    assert "'Rap'" in err
    assert "'Raf'" in err.split("it has")[1], "the error lists the columns there are"


def test_columns_of_a_file(run, put, X, tmp_path):
    assert run("discover", put(X), "-o", tmp_path / "o", "--columns", "c", "a").code == 0
    assert read_graph(tmp_path / "o" / "graph.json")[1] == ("c", "a")


def test_a_file_goes_before_a_bundled_name(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sachs").write_text("no table")
    assert "unknown suffix" in refused("discover", "sachs", "-o", "out")


def test_the_same_seed_gives_the_same_files(run, put, X, tmp_path):
    rng = np.random.default_rng(0)
    file = put(np.column_stack([X, rng.standard_normal((400, 4)) @ rng.standard_normal((4, 4))]), "abcdefgh")
    arguments = ("discover", file, "--seed", 11, "--criterion", "bic-ev")
    assert run(*arguments, "--jobs", 1, "-o", tmp_path / "one").code == 0
    assert run(*arguments, "--jobs", 2, "-o", tmp_path / "two").code == 0
    command = [*COMMAND, *map(str, arguments), "-o", str(tmp_path / "three")]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
    for folder in ("two", "three"):
        for name in GRAPHS:
            assert (tmp_path / folder / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_a_time_budget_ends_a_search_that_would_go_on(run, put, X, tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 30)).cumsum(axis=1)
    endless = ("--criterion", "bic-ev", "--algorithm", "ppo", "--n-steps", 10**8, "--learning-rate", 1e-6)
    file = put(X, [f"v{i}" for i in range(30)])
    result = run("discover", file, "-o", tmp_path / "o", "--time-budget", 0.3, *endless)
    assert result.code == 0
    found = json.loads((tmp_path / "o" / "run.json").read_text())
    assert (found["stopped"], found["certified"]) == ("time", False)
    assert found["steps"] < 10**8
    assert adjacency(tmp_path / "o").shape == (30, 30)


def test_options_of_the_search_have_their_effect(run, put, tmp_path):
    """What each leaves in run.json, or in the files, is what the estimator does with the same setting."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 8))
    names = tuple("abcdefgh")
    file = put(X, names)

    def found(*options):
        assert run("discover", file, "-o", tmp_path / "o", *options).code == 0
        return json.loads((tmp_path / "o" / "run.json").read_text())

    plain = found()
    assert plain["certified"]
    rough = found("--algorithm", "conditional", "--n-steps", 2, "--no-refine")
    assert (rough["certified"], rough["algorithm"], rough["steps"]) == (False, "conditional", 2)
    assert rough["score"] < plain["score"]
    standardised = found("--standardize")
    assert standardised["score"] == pytest.approx(ALIAS(standardize=True, random_state=0).fit(X).score_)
    assert standardised["score"] != pytest.approx(plain["score"])
    ev = ("--criterion", "bic-ev", "--algorithm", "ppo", "--n-steps", 20, "--no-refine")
    assert found(*ev)["init"] == "equal-variance order"
    assert found(*ev, "--init", "random")["init"] == "random"
    assert found(*ev, "--init", "score")["init"] == "score order"
    scores = {found(*ev, "--init", "random", *more)["score"] for more in ((), ("--batch-size", 3))}
    assert len(scores) == 2, "another batch size, another search"
    still = found(*ev, "--init", "random", "--learning-rate", 1e-9)
    moving = found(*ev, "--init", "random", "--learning-rate", 0.3)
    assert still["score"] != moving["score"]
    assert "learning_rate=0.3" in moving["parameters"]["algorithm"]
    assert found("--seed", 4)["seed"] == 4


def test_prices_have_their_effect(run, put, tmp_path):
    X = np.random.default_rng(0).standard_normal((100, 12)).cumsum(axis=1)
    X += 2 * np.random.default_rng(1).standard_normal((100, 12))
    file = put(X, "abcdefghijkl")
    edges = []
    plain = ("--criterion", "bic-nv")
    for options in (plain, (*plain, "--gamma", 1), (*plain, "--discount", 3), ("--criterion", "ebic-nv")):
        result = run("discover", file, "-o", tmp_path / "o", *options)
        edges.append(json.loads((tmp_path / "o" / "run.json").read_text())["edges"])
    assert "ebic-nv" in result.out
    assert edges[0] > max(edges[1:])


def test_settings_of_gaussian_processes_have_their_effect(run, put, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    file = put(np.column_stack([x, np.cos(2 * x) + 0.2 * rng.standard_normal(60)]), "xy")
    scores = set()
    for options in ((), ("--gp-alpha", 0.1), ("--gp-median-scale",)):
        assert run("discover", file, "-o", tmp_path / "o", "--regression", "gp", *options).code == 0
        scores.add(json.loads((tmp_path / "o" / "run.json").read_text())["score"])
    assert len(scores) == 3


# --- bad input ---


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b,c\n1,2,3\n,3,1\n4,nan,2\n5,NA,8\n", ["NaN", "'a' (1 NaN)", "'b' (2 NaN)"]),
        ("a,b,c\n1,2,3\n2,inf,1\n4,-inf,2\n5,1,8\n", ["'b' (2 inf)"]),
        ("a,b,c\n1,u,3\n2,v,1\n3,w,2\n4,x,5\n5,y,4\n", ["differs from row to row", "'b'", "--exclude"]),
        ("a,b,c\n1,7,3\n2,7,1\n4,7,2\n", ["constant", "'b'"]),
        ("a,b,c\n1,2,3\n", ["1 sample", "2"]),
        ("a\n1\n2\n3\n", ["1 feature", "2"]),
        ("a,b,a\n1,2,3\n2,3,1\n4,1,2\n", ["duplicate", "'a' (2 times)"]),
        ("a,,c\n1,2,3\n2,3,1\n4,1,2\n", ["column 2", "empty name"]),
        ("", ["empty"]),
        ("\n\n", ["empty"]),
        ("a,b,c\n", ["no rows"]),
        ("a,b,c\n1,2,3\n4,5", ["line 3", "truncated"]),
        ("a,b,c\n1,2,3\n4,5,6,7\n", ["line 3", "4 cell(s)"]),
        ("a,b,c\n1e200,2,3\n2,3,1\n4,1,2\n", ["'a'", "rescale"]),
    ],
)
def test_bad_tables_are_refused_by_name(refused, tmp_path, content, expected):
    (tmp_path / "t.csv").write_text(content)
    err = refused("discover", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert all(part in err for part in expected)
    assert not list((tmp_path / "out").iterdir())


def test_bad_files_are_refused(refused, tmp_path):
    out = ("-o", tmp_path / "out")
    assert "no such file" in refused("discover", tmp_path / "missing.csv", *out)
    assert "is a folder" in refused("discover", tmp_path, *out)
    (tmp_path / "t.xls").write_text("a")
    assert ".csv" in refused("discover", tmp_path / "t.xls", *out).split("allowed are")[1]
    (tmp_path / "t.csv").write_bytes(b"a,b\n\x81\xfe,1\n")
    assert "UTF-8" in refused("discover", tmp_path / "t.csv", *out)
    np.save(tmp_path / "whole.npy", np.ones((50, 3)))
    (tmp_path / "t.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:200])
    assert "not a readable NPY file" in refused("discover", tmp_path / "t.npy", *out)
    np.save(tmp_path / "t.npy", np.ones(5))
    assert "2-D" in refused("discover", tmp_path / "t.npy", *out)


def test_constant_columns_are_left_out_only_if_asked(run, refused, put, X, tmp_path):
    X[:, 1] = 3.0
    file = put(X)
    assert "'b'" in refused("discover", file, "-o", tmp_path / "out")
    result = run("discover", file, "-o", tmp_path / "out", "--drop-constant")
    assert result.code == 0
    assert "constant: 'b'" in result.err
    assert json.loads((tmp_path / "out" / "run.json").read_text())["warnings"] == ["left out because constant: 'b'"]
    assert read_graph(tmp_path / "out" / "graph.json")[1] == ("a", "c", "d")
    X[:, 2:] = 0
    assert "1 feature" in refused("discover", put(X), "-o", tmp_path / "out", "--drop-constant")


@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev", "ls"])
def test_duplicated_and_dependent_columns_are_named_and_the_run_ends(run, put, X, tmp_path, criterion):
    X[:, 3] = X[:, 0]
    table = np.column_stack([X, X[:, 1] - 2 * X[:, 2] + 1])
    result = run("discover", put(table, "abcde"), "-o", tmp_path / "out", "--criterion", criterion)
    assert result.code == 0
    duplicated, dependent = (line for line in result.err.splitlines() if "columns:" in line)
    assert "'a' = 'd'" in duplicated
    assert all(f"'{name}'" in dependent for name in "bce")
    assert "'d'" not in dependent
    found = json.loads((tmp_path / "out" / "run.json").read_text())
    assert np.isfinite(found["score"])
    assert result.err.splitlines() == [f"vec2dag: warning: {sentence}" for sentence in found["warnings"]]
    graph = nx.read_graphml(tmp_path / "out" / "graph.graphml")
    assert nx.is_directed_acyclic_graph(graph)


def test_fewer_rows_than_columns_works_with_a_warning(run, put, tmp_path):
    X = np.random.default_rng(0).standard_normal((5, 8))
    result = run("discover", put(X, "abcdefgh"), "-o", tmp_path / "out")
    assert result.code == 0
    assert "5 rows for 8 columns" in result.err
    assert nx.is_directed_acyclic_graph(nx.read_graphml(tmp_path / "out" / "graph.graphml"))


def test_wildly_different_scales_do_not_change_the_graph_and_are_named_where_they_would(run, put, X, tmp_path):
    table = put(X * [1e-9, 1, 1e6, 1])
    result = run("discover", table, "-o", tmp_path / "out")
    assert (result.code, result.err) == (0, "")
    np.testing.assert_array_equal(adjacency(tmp_path / "out"), TRUTH)
    result = run("discover", table, "-o", tmp_path / "out", "--criterion", "bic-ev")
    assert "different scales" in result.err
    assert all(f"'{name}'" in result.err for name in "ac")


def test_an_unwritable_folder_is_found_before_the_data_are_read(refused, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "out"):
        err = refused("discover", tmp_path / "missing.csv", "-o", folder)
        assert "cannot write to the folder" in err
        assert str(folder) in err
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything is writable for root")
def test_a_folder_without_permission_is_unwritable(refused, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "cannot write" in refused("discover", "sachs", "-o", tmp_path / "locked")


NAMES_OF_OPTIONS = {
    "--criterion": CRITERIA,
    "--algorithm": ("auto", *ALGORITHMS),
    "--init": STARTS,
    "--prune": ("auto", *PRUNERS, "none"),
    "--regression": REGRESSIONS,
}


@pytest.mark.parametrize("option", NAMES_OF_OPTIONS)
def test_unknown_option_values_list_the_allowed_ones(refused, tmp_path, option):
    sentence = refused("discover", "sachs", "-o", tmp_path / "out", option, "nonsense")
    assert f"{option}='nonsense' is unknown" in sentence
    assert all(repr(value) in sentence.split("allowed:")[1] for value in NAMES_OF_OPTIONS[option])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", NAMES_OF_OPTIONS)
def test_the_help_names_all_that_the_library_knows(run, option):
    text = run("discover", "--help").out
    start = text.index(f"  {option} NAME")
    described = text[start : text.index("\n  -", start + 1)]
    assert all(re.search(rf"\b{re.escape(value)}\b", described) for value in NAMES_OF_OPTIONS[option])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--n-steps", 5),
            "--n-steps is a setting of --algorithm local, orders, ppo, a2c, reinforce, conditional, credit",
        ),
        (("--learning-rate", 0.1, "--algorithm", "orders"), "with --algorithm orders it has no effect"),
        (("--prune-alpha", 0.1), "--prune-alpha is a setting of --prune cam, ci: name it"),
        (("--prune-threshold", 0.1, "--prune", "cam"), "--prune-threshold is a setting of --prune linear"),
        (("--prune-threshold", 0.1, "--prune", "none"), "with --prune none it has no effect"),
        (("--gp-median-scale",), "--gp-median-scale is a setting of --regression gp"),
        (("--criterion", "ls", "--gamma", 0.5), "--gamma is a setting of --criterion bic-nv, bic-ev, ebic-nv, ebic-ev"),
    ],
)
def test_options_without_effect_are_refused(refused, tmp_path, options, sentence):
    assert sentence in refused("discover", "sachs", "-o", tmp_path / "out", *options)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        (("--algorithm", "ppo", "--n-steps", 0), "--n-steps"),
        (("--algorithm", "ppo", "--batch-size", -3), "--batch-size"),
        (("--algorithm", "a2c", "--learning-rate", 0), "--learning-rate"),
        (("--time-budget", "nan"), "--time-budget"),
        (("--gamma", -1), "--gamma"),
        (("--discount", "inf"), "--discount"),
        (("--prune", "linear", "--prune-threshold", -1), "threshold"),
        (("--prune", "cam", "--prune-alpha", 1), "alpha"),
        (("--jobs", 0), "--jobs"),
    ],
)
def test_impossible_numbers_are_refused(refused, tmp_path, options, parameter):
    assert f"{parameter} must" in refused("discover", "sachs", "-o", tmp_path, *options)


def test_what_was_typed_is_repeated_in_short(run, tmp_path):
    result = run("discover", "sachs", "-o", tmp_path / "out", f"--batch-size=\x1b{'9' * 5000}")
    assert result.code == 2
    last = result.err.splitlines()[-1]
    assert "--batch-size" in last
    assert "\\x1b999" in last
    assert len(last) < 400
    assert last.isprintable()


def test_an_option_of_an_earlier_version_says_what_it_is_now(run, tmp_path):
    result = run("discover", "sachs", "-o", tmp_path / "out", "--score", "bic-ev")
    assert result.code == 2
    assert result.err.splitlines()[-1].endswith("--score is now called --criterion")


@pytest.mark.parametrize("command", [("discover", "sachs"), ("simulate", "sparse-er2")])
@pytest.mark.parametrize("seed", ["-1", "x", "1.5"])
def test_seeds_are_whole_numbers(run, tmp_path, command, seed):
    result = run(*command, "-o", tmp_path, f"--seed={seed}")
    assert result.code == 2
    assert result.err.splitlines()[-1].endswith(f"argument --seed: must be a whole number of at least 0, got '{seed}'")


@pytest.mark.parametrize("arguments", [(), ("guess",), ("discover",), ("discover", "sachs"), ("evaluate", "a")])
def test_incomplete_commands_are_refused(run, arguments):
    result = run(*arguments)
    assert result.code == 2
    assert "usage: vec2dag" in result.err
    assert "error: " in result.err.splitlines()[-1]


# --- the program itself ---


def program(*arguments):
    """Run the program in its own process, with its streams in pipes."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )


def test_version_and_help(run):
    assert run("--version").out == f"vec2dag {vec2dag.__version__}\n"
    top = run("--help")
    assert top.code == 0
    assert all(command in top.out for command in ("discover", "simulate", "evaluate"))
    discover = run("discover", "--help").out
    assert all(name in discover for name in (*GRAPHS, "run.json", "sachs", "exit codes", "130", "--criterion"))
    assert "--list" in run("simulate", "--help").out
    assert all(name in run("evaluate", "--help").out for name in ("GraphML", "DOT", "NPY", "--json"))


def test_the_examples_in_the_help_can_be_typed(run):
    found = 0
    for command in ("discover", "simulate"):
        for line in run(command, "--help").out.splitlines():
            if line.startswith("  vec2dag "):
                # an explanation may follow after a gap
                _, *arguments = re.split(r"\s{2,}", line.strip())[0].split()
                if "--list" not in arguments:
                    assert callable(parser().parse_args(arguments).run)
                found += 1
    assert found >= 5


def test_the_program_in_its_own_process(put, X, tmp_path):
    done = program("discover", put(X), "-o", tmp_path / "out")
    assert done.returncode == 0
    assert without_compilation(done.stderr) == ""
    assert "-->" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    np.testing.assert_array_equal(adjacency(tmp_path / "out"), TRUTH)
    bad = program("discover", tmp_path / "missing.csv", "-o", tmp_path / "out")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == f"vec2dag: {tmp_path / 'missing.csv'}: no such file\n"


def test_names_that_the_terminal_cannot_show_are_no_error(put, X, tmp_path):
    names = ("größe", "温度", "c", "d")
    command = [*COMMAND, "discover", str(put(X, names)), "-o", str(tmp_path / "out")]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True)
    assert rb"gr\xf6\xdfe" in done.stdout
    assert read_graph(tmp_path / "out" / "graph.json")[1] == names


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    write_graph(tmp_path, datasets.load_sachs().A, datasets.load_sachs().names)
    command = [*COMMAND, "evaluate", "sachs", str(tmp_path / "graph.json")]
    environment = ENVIRONMENT | {"PYTHONUNBUFFERED": ""}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_interruption_writes_the_best_graph_so_far(put, tmp_path):
    pty = pytest.importorskip("pty", reason="a terminal is needed to see the progress bar")
    import termios

    X = np.random.default_rng(0).standard_normal((300, 30)).cumsum(axis=1)
    names = [f"v{i}" for i in range(30)]
    arguments = ("discover", put(X, names), "-o", tmp_path / "out", "--algorithm", "ppo", "--n-steps", 10**8)
    arguments += ("--criterion", "bic-nv")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        # a shell starts background jobs with this signal ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    try:
        shown = b""
        while b"score" not in shown:  # the bar shows it once there is a graph
            assert select.select([ours], [], [], 60)[0], "no progress within a minute"
            shown += os.read(ours, 1024)
        process.send_signal(signal.SIGINT)
        try:
            while more := os.read(ours, 1024):
                shown += more
        except OSError:  # how Linux says that the other end of a terminal is closed
            pass
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"interrupted" in shown
    graphs = [read_graph(tmp_path / "out" / name) for name in GRAPHS]
    for A, found in graphs:
        assert found == tuple(names)
        np.testing.assert_array_equal(A, graphs[0][0])
    run_json = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run_json["stopped"] == "interrupted"
    assert run_json["score"] == pytest.approx(graph_score(X, graphs[0][0], "bic-nv"), rel=1e-8)


def test_interruption_before_a_first_graph_writes_nothing(run, put, X, tmp_path, monkeypatch):
    assert run("discover", put(X), "-o", tmp_path / "out").code == 0
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("vec2dag.search.descent.Walk.advance", interrupted)
    result = run("discover", put(X[:100]), "-o", tmp_path / "out")
    assert (result.code, result.out) == (130, "")
    assert "interrupted before a first graph was ready; nothing written" in result.err
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before


def test_interruption_before_the_search_has_its_exit_code(run, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("vec2dag.datasets.load", interrupted)
    result = run("discover", "sachs", "-o", tmp_path)
    assert (result.code, result.out) == (130, "")
    assert "interrupted" in result.err


# --- simulate ---


def test_simulate_writes_data_and_truth(run, tmp_path):
    result = run("simulate", "linear-er2-d10", "-o", tmp_path / "s", "--seed", 3)
    assert (result.code, result.err) == (0, "")
    data = simulate.preset("linear-er2-d10", seed=3)
    X, names = read_table(tmp_path / "s" / "data.csv")
    assert names == data.names
    np.testing.assert_array_equal(X, data.X)
    for name in GRAPHS:
        A, nodes = read_graph(tmp_path / "s" / "truth" / name)
        assert nodes == data.names
        np.testing.assert_array_equal(A, data.A)
    W = np.zeros(data.A.shape)
    for edge in json.loads((tmp_path / "s" / "truth" / "graph.json").read_text())["edges"]:
        W[names.index(edge["source"]), names.index(edge["target"])] = edge["weight"]
    np.testing.assert_array_equal(W, data.meta["weights"])
    meta = json.loads((tmp_path / "s" / "meta.json").read_text())
    assert (meta["preset"], meta["seed"]) == ("linear-er2-d10", 3)
    assert (meta["rows"], meta["columns"], meta["edges"]) == (*data.X.shape, data.A.sum())


def test_simulate_gives_the_same_bytes_for_the_same_seed(run, tmp_path):
    for folder, seed in (("one", 1), ("again", 1), ("two", 2)):
        assert run("simulate", "standardised-er2", "-o", tmp_path / folder, "--seed", seed, "-q").out == ""
    files = [file.relative_to(tmp_path / "one") for file in (tmp_path / "one").rglob("*") if file.is_file()]
    assert len(files) == 6
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "again" / f).read_bytes() for f in files)
    assert (tmp_path / "one" / "data.csv").read_bytes() != (tmp_path / "two" / "data.csv").read_bytes()
    edges = json.loads((tmp_path / "one" / "truth" / "graph.json").read_text())["edges"]
    assert {edge["weight"] for edge in edges} == {None}, "coefficients in other units than the data mislead"


def test_simulate_names_what_it_knows(run, refused, tmp_path):
    listed = run("simulate", "--list")
    assert (listed.code, listed.out.split()) == (0, simulate.presets())
    err = refused("simulate", "dense-er9", "-o", tmp_path / "s")
    assert "'dense-er9'" in err
    assert all(name in err for name in simulate.presets())
    assert not (tmp_path / "s").exists()
    (tmp_path / "file").touch()
    assert "cannot write to the folder" in refused("simulate", "dense-er8", "-o", tmp_path / "file")


# --- evaluate ---


@pytest.fixture
def pair():
    """A true graph and an estimate with one reversed, one missing and one extra edge."""
    A = np.array([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    B = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    return A, B


@pytest.mark.parametrize("name", GRAPHS)
def test_evaluate_aligns_nodes_by_name_in_every_format(run, tmp_path, pair, name):
    A, B = pair
    order = [2, 0, 3, 1]
    write_graph(tmp_path / "true", A, NAMES)
    write_graph(tmp_path / "est", B[np.ix_(order, order)], [NAMES[i] for i in order])
    result = run("evaluate", tmp_path / "true" / "graph.json", tmp_path / "est" / name, "--json")
    assert (result.code, result.err) == (0, "")
    values = json.loads(result.out)
    assert (values.pop("nodes"), values.pop("true_edges")) == (4, 3)
    assert values == metrics.evaluate(A, B)
    assert (values["shd"], values["precision"], values["recall"]) == (3, 1 / 3, 1 / 3)


def test_evaluate_prints_a_table(run, tmp_path, pair):
    for folder, A in zip(("true", "est"), pair, strict=True):
        write_graph(tmp_path / folder, A, NAMES)
    result = run("evaluate", tmp_path / "true" / "graph.dot", tmp_path / "est" / "adjacency.csv")
    assert result.code == 0
    first, blank, *lines = result.out.splitlines()
    assert first == "4 nodes, 3 true edges, 3 estimated"
    assert blank == ""
    table = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines}
    assert list(table) == list(metrics.evaluate(*pair))
    assert table["shd"] == ["3", "Structural Hamming distance"]
    assert table["fdr"] == ["0.6667", "False discovery rate"]
    assert not any("`" in line for line in lines)


def test_evaluate_matches_by_position_where_names_are_missing_and_says_so(run, tmp_path, pair):
    A, B = pair
    np.save(tmp_path / "est.npy", B * -0.7)
    write_graph(tmp_path, A, NAMES)
    result = run("evaluate", tmp_path / "graph.graphml", tmp_path / "est.npy", "--json")
    assert json.loads(result.out)["shd"] == 3
    assert "by position" in result.err


def test_evaluate_takes_bundled_truths(run, tmp_path):
    sachs = datasets.load_sachs()
    write_graph(tmp_path, sachs.A, sachs.names)
    values = json.loads(run("evaluate", "sachs", tmp_path / "graph.json", "--json").out)
    assert (values["shd"], values["f1"], values["nnz"], values["cpdag_shd"]) == (0, 1, 17, 0)


def test_evaluate_of_a_cyclic_estimate_is_json_too(run, tmp_path):
    (tmp_path / "true.csv").write_text("a,b,c\n0,1,0\n0,0,1\n0,0,0\n")
    (tmp_path / "est.csv").write_text("a,b,c\n0,1,0\n0,0,1\n1,0,0\n")
    files = (tmp_path / "true.csv", tmp_path / "est.csv")
    values = json.loads(run("evaluate", *files, "--json").out, parse_constant=pytest.fail)
    assert values["cpdag_shd"] is None
    assert values["shd"] == 1
    row = next(line for line in run("evaluate", *files).out.splitlines() if line.startswith("cpdag_shd"))
    assert row.split()[1] == "-"


def test_evaluate_refuses_what_cannot_be_compared(refused, tmp_path, pair):
    write_graph(tmp_path, pair[0], NAMES)
    truth = tmp_path / "graph.json"
    (tmp_path / "other.csv").write_text("a,b,c,z\n" + "0,0,0,0\n" * 4)
    err = refused("evaluate", truth, tmp_path / "other.csv")
    assert "lacks 'd'" in err
    assert "has 'z'" in err
    np.save(tmp_path / "small.npy", np.zeros((3, 3)))
    assert "4 and 3 nodes" in refused("evaluate", truth, tmp_path / "small.npy")
    assert "no such file" in refused("evaluate", truth, tmp_path / "missing.json")
    (tmp_path / "cut.json").write_text(truth.read_text()[:50])
    assert "not a graph in JSON" in refused("evaluate", truth, tmp_path / "cut.json")
    (tmp_path / "graph.bif").touch()
    assert ".graphml" in refused("evaluate", tmp_path / "graph.bif", truth).split("allowed are")[1]


def test_simulate_discover_evaluate(run, tmp_path):
    assert run("simulate", "regular-er1-d10", "-o", tmp_path / "s").code == 0
    found = tmp_path / "found"
    assert run("discover", tmp_path / "s" / "data.csv", "-o", found, "--criterion", "bic-ev").code == 0
    result = run("evaluate", tmp_path / "s" / "truth" / "graph.json", found / "graph.json", "--json")
    data = simulate.preset("regular-er1-d10")
    assert json.loads(result.out)["shd"] == metrics.shd(data.A, read_graph(found / "graph.json")[0])


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (
            "missing='drop' leaves 2 rows; missing='em' and 'impute' use all",
            "--missing drop leaves 2 rows; --missing em and impute use all",
        ),
        ("standardize=True removes them (standardize=False)", "--standardize removes them (--no-standardize)"),
        ("prune=None, or 'auto', leaves the graph", "--prune none, or auto, leaves the graph"),
        ("name them (categorical=[...]).", "name them (--categorical NAME ...)."),
        ("n_jobs must be None (every core), got 0", "--jobs must be None (every core), got 0"),
        ("lags=3 needs at least 4 rows, got 2", "--lags 3 needs at least 4 rows, got 2"),
        ("time='my day' is not a column", "--time 'my day' is not a column"),
        ("table.npy: decimal is for text", "table.npy: --decimal is for text"),
        # Options, names of columns, and what no option can say.
        ("--missing='magic' is unknown", "--missing='magic' is unknown"),
        ("no column 'missing must be', 'time=3'", "no column 'missing must be', 'time=3'"),
        ("criterion=BIC(gamma=0.5) and categorical=None", "criterion=BIC(gamma=0.5) and categorical=None"),
        ("missing='em', 'x' (3 NaN)", "--missing em, 'x' (3 NaN)"),
    ],
)
def test_sentences_of_the_library_name_options(said, heard):
    assert in_options(said) == heard
    assert in_options(heard) == heard


def test_options_that_sentences_name_exist():
    commands = next(action.choices for action in parser()._actions if action.dest == "command")
    known = {option for command in commands.values() for option in command._option_string_actions}
    assert set(OPTIONS.values()) <= known
    assert in_options("standardize=False") in known


def test_what_a_fit_says_is_said_in_options(run, refused, X, tmp_path):
    X[::2, 0], X[1::2, 1] = np.nan, np.nan
    file = tmp_path / "t.csv"
    np.savetxt(file, X, delimiter=",", header="a,b,c,d", comments="")
    err = refused("discover", file, "-o", tmp_path / "out", "--missing", "pairwise-complete")
    assert "--missing pairwise-complete needs" in err
    assert "'a' and 'b' (0): --missing em does without" in err
    assert "--jobs must be" in refused("discover", file, "-o", tmp_path / "out", "--missing", "em", "--jobs", "0")
    result = run("discover", file, "-o", tmp_path / "out", "--missing", "em")
    told = json.loads((tmp_path / "out" / "run.json").read_text())["warnings"]
    for text in (result.err, " ".join(told)):
        assert "(--missing em)" in text
        assert "missing='" not in text
