"""Graphs from one format to another: what each keeps, what is said where it does not, and the command that does it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import all_dags
from test_files_graphs import AWKWARD, NAMES

import vec2dag
from vec2dag import cpdag, datasets
from vec2dag.cli import main
from vec2dag.files.atomic import InputError
from vec2dag.files.graph_readers import load_graph
from vec2dag.files.graph_writers import FORMATS, as_bytes, format_of, lost
from vec2dag.files.graphs import read_graph, write_graph
from vec2dag.files.stated import FREE, KNOWN, Edge, settled

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(vec2dag.__file__).parents[1])}
FULL = [form for form, kind in FORMATS.items() if not kind.lacks]
NAMED = [form for form in FORMATS if form != "tetrad"]
MORE = (
    "()",
    "[]",
    "&#38;",
    "&amp;",
    " blanks ",
    "end.dot",
    "=1+1",
    "'-x",
    "#",
    "a\x85b",
    "\u202e",
    "a --> b",
    "x" * 10_000,
)


def put(folder, form, edges, nodes):
    """Write a graph in a format; the file."""
    file = folder / ("g" + FORMATS[form].endings[0])
    file.write_bytes(as_bytes(edges, nodes, form))
    return file


def random_edges(rng, nodes, both=0.3):
    """Edges of a random DAG, some with a weight, some known, some free, some of these both ways."""
    order = rng.permutation(len(nodes))
    edges = []
    for i in range(len(nodes)):
        for j in range(i + 1, len(nodes)):
            if rng.random() < 0.5:
                a, b = nodes[order[i]], nodes[order[j]]
                weight = None if rng.random() < 0.2 else float(rng.normal() * 10.0 ** rng.integers(-200, 200))
                direction = str(rng.choice(["oriented", KNOWN, FREE]))
                edges.append(Edge(a, b, weight, direction))
                if direction == FREE and rng.random() < both:
                    edges.append(Edge(b, a, None, FREE))
    return settled(edges, nodes)


def in_order(found, nodes):
    """Edges that were read, sorted as those that were written; the names are the same."""
    edges, names = found
    assert sorted(names) == sorted(nodes)
    return settled(edges, nodes)


@pytest.mark.parametrize("form", FULL)
def test_formats_that_lack_nothing_keep_everything(tmp_path, form):
    nodes = (*AWKWARD, *MORE)
    for seed in range(5):
        edges = random_edges(np.random.default_rng(seed), nodes)
        assert {edge.direction for edge in edges} == {"oriented", KNOWN, FREE}
        found = load_graph(put(tmp_path, form, edges, nodes)).stated()
        assert in_order(found, nodes) == edges
        assert lost(edges, form) == []
        if form != "edges":
            assert found == (edges, nodes), "also the order"


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), seed=st.integers(0, 9))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_survives_every_format(tmp_path, names, seed):
    edges = random_edges(np.random.default_rng(seed), names)
    for form in NAMED:
        found = in_order(load_graph(put(tmp_path, form, edges, names)).stated(), names)
        assert [edge[:2] for edge in found] == [edge[:2] for edge in edges], form
        if form in FULL:
            assert found == edges, form


def test_dot_keeps_directions_and_three_digits(tmp_path):
    nodes = (*AWKWARD, *MORE)
    edges = random_edges(np.random.default_rng(1), nodes)
    found = load_graph(put(tmp_path, "dot", edges, nodes)).stated()
    assert found[1] == nodes
    rounded = [e._replace(weight=None if e.weight is None else float(f"{e.weight:.3g}")) for e in edges]
    assert found[0] == rounded
    assert lost(edges, "dot") == ["more than three digits of the weights of edges"]
    assert lost(rounded, "dot") == []


def test_a_matrix_keeps_edges_and_those_that_go_both_ways(tmp_path):
    nodes = (*AWKWARD, *MORE)
    edges = random_edges(np.random.default_rng(2), nodes)
    ways = {edge[:2] for edge in edges}
    found, names = load_graph(put(tmp_path, "csv", edges, nodes)).stated()
    assert names == nodes
    assert found == [Edge(a, b, direction=FREE if (b, a) in ways else "oriented") for a, b in (e[:2] for e in edges)]


PLAIN = ("X1", "x.2", "größe", "-->", "f(x)", "温度", "#1", "1.")


def test_tetrad_keeps_directions_as_its_arrows(tmp_path):
    edges = random_edges(np.random.default_rng(3), PLAIN, both=0)
    found, names = load_graph(put(tmp_path, "tetrad", edges, PLAIN)).stated()
    assert names == PLAIN
    assert {edge[:2] for edge in found if edge.direction != FREE} == {e[:2] for e in edges if e.direction != FREE}
    free = {e[:2] for e in edges if e.direction == FREE}
    assert {edge[:2] for edge in found if edge.direction == FREE} == free | {(b, a) for a, b in free}
    both = settled([*edges, *(Edge(e.target, e.source) for e in edges if e.direction == FREE)], PLAIN)
    assert as_bytes(both, PLAIN, "tetrad").count(b" --- ") == len(free), "a line, not two"


def test_tetrads_text_is_as_tetrad_writes_it():
    edges = [Edge("X1", "X2"), Edge("X2", "X3", direction=FREE)]
    text = b"Graph Nodes:\nX1;X2;X3;X4\n\nGraph Edges:\n1. X1 --> X2\n2. X2 --- X3\n"
    assert as_bytes(edges, ("X1", "X2", "X3", "X4"), "tetrad") == text


@pytest.mark.parametrize("name", ["a b", "a;b", "a,b", "(a)", "[a]", "a\tb", " a", "a --> b", "a\u00a0b"])
def test_names_that_tetrad_would_misread_are_refused(name):
    with pytest.raises(InputError, match=r"Tetrad's text cannot hold the name\(s\) '.*choose another format"):
        as_bytes([], ("ok", name), "tetrad")


def test_causal_learn_reads_tetrads_text(tmp_path):
    pytest.importorskip("causallearn")
    from causallearn.utils.TXT2GeneralGraph import txt2generalgraph

    from vec2dag.interop import from_causal_learn, to_causal_learn

    C = cpdag([[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    edges = settled([Edge("abcd"[i], "abcd"[j]) for i, j in np.argwhere(C)], "abcd")
    graph = txt2generalgraph(str(put(tmp_path, "tetrad", edges, "abcd")))
    np.testing.assert_array_equal(graph.graph, to_causal_learn(C))
    (tmp_path / "theirs.txt").write_text(str(graph))
    A, names = read_graph(tmp_path / "theirs.txt")
    assert names == tuple("abcd")
    np.testing.assert_array_equal(A, C)
    np.testing.assert_array_equal(from_causal_learn(graph)[0], C)


def test_networkx_reads_our_gml_and_we_read_its(tmp_path):
    # networkx reads these two names as an empty tuple and an empty list
    nodes = tuple(name for name in (*AWKWARD, *MORE) if name not in ("()", "[]"))
    edges = random_edges(np.random.default_rng(4), nodes)
    graph = nx.read_gml(put(tmp_path, "gml", edges, nodes))
    assert tuple(graph.nodes) == nodes
    assert graph.is_directed()
    assert (
        settled((Edge(a, b, said.get("weight"), said["direction"]) for a, b, said in graph.edges(data=True)), nodes)
        == edges
    )
    nx.write_gml(graph, tmp_path / "theirs.gml")
    assert load_graph(tmp_path / "theirs.gml").stated() == (edges, nodes)


def test_gml_names_are_labels_or_names_or_ids(tmp_path):
    for inside, names in (
        ('node [id 0 label "a"] node [id 1 label "b"]', ("a", "b")),
        ('node [id 0 name "a"] node [id 1 name "b" label "c"]', ("a", "b")),
        ('node [id 5] node [id "q"]', ("5", "q")),
        ('node [id 0 label "&eacute;&#xe9;&nix;&#9999999;"] node [id 1 label 3]', ("éé&nix;&#9999999;", "3")),
    ):
        (tmp_path / "g.gml").write_text(f"graph [ {inside} ]")
        assert read_graph(tmp_path / "g.gml")[1] == names


def test_a_huge_gml_is_refused_before_it_fills_the_memory(tmp_path):
    (tmp_path / "g.gml").write_text("graph [ " + 'node [ id 1 label "a" ] ' * 100_000 + "]")
    start = time.perf_counter()
    with pytest.raises(InputError, match=r"would take .* GB allowed; --max-memory 1 allows it"):
        load_graph(tmp_path / "g.gml", max_memory=0.01)
    assert time.perf_counter() - start < 1
    with pytest.raises(InputError, match="two nodes have the same id"):
        load_graph(tmp_path / "g.gml")


def test_the_marks_of_an_archive_are_measured_before_they_are_read(tmp_path):
    file = put(tmp_path, "npz", [Edge("n0", "n1", 0.5, FREE)], [f"n{i}" for i in range(300)])
    with pytest.raises(InputError, match=r"the graph with its marks would take 0\.00216 GB"):
        load_graph(file, max_memory=0.001)
    assert load_graph(file, max_memory=0.003).stated()[0] == [Edge("n0", "n1", 0.5, FREE)]


def test_a_long_text_without_a_graph_is_refused_at_once(tmp_path):
    (tmp_path / "g.txt").write_bytes(b"\n" * 200_000 + b" " * 100_000)
    start = time.perf_counter()
    with pytest.raises(InputError, match="empty"):
        load_graph(tmp_path / "g.txt")
    assert time.perf_counter() - start < 5


def test_an_edge_list_for_everybody(tmp_path):
    pandas = pytest.importorskip("pandas")
    nodes = ("z", "b", "alone", "=c")
    edges = [Edge("z", "b", -0.5, FREE), Edge("z", "=c", None, KNOWN)]
    file = put(tmp_path, "edges", edges, nodes)
    assert file.read_text() == "source,target,direction,weight\nz,b,free,-0.5\nz,'=c,known,\nalone,,,\n"
    frame = pandas.read_csv(file).dropna(subset="target")
    assert list(zip(frame["source"], frame["target"], strict=True)) == [("z", "b"), ("z", "'=c")]
    A, names = read_graph(file)
    assert names == ("z", "b", "=c", "alone")
    assert A.tolist() == [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], "free: both ways"


def test_an_edge_list_of_nodes_with_the_names_of_its_columns(tmp_path):
    nodes = ("source", "target", "direction", "weight")
    edges = [Edge("target", "source"), Edge("direction", "source"), Edge("weight", "source")]
    assert in_order(load_graph(put(tmp_path, "edges", edges, nodes)).stated(), nodes) == settled(edges, nodes)


def test_blanks_that_were_typed_for_the_eye_are_no_part_of_a_name(tmp_path):
    (tmp_path / "g.csv").write_text("source , target , direction\na      , b      , free   \n")
    assert read_graph(tmp_path / "g.csv")[1] == ("a", "b")
    (tmp_path / "g.csv").write_text("from, to\na, b\n")
    assert read_graph(tmp_path / "g.csv")[1] == ("a", "b")


def test_weights_of_others(tmp_path):
    W = np.array([[0, 0.5, 0], [0, 0, -2], [0, 0, 0]])
    expected = [Edge("a", "b", 0.5), Edge("b", "c", -2.0)]
    np.savez(tmp_path / "g.npz", W=W, names=list("abc"), weights=np.ones(3), free="no")
    (tmp_path / "g.csv").write_text("a,b,c\n0,0.5,0\n0,0,-2\n0,0,0\n")
    (tmp_path / "e.csv").write_text("weight;child;parent\n0,5;b;a\n-2;c;b\n")
    (tmp_path / "g.dot").write_text('digraph { edge [color=red] a -> b [label="0.5"] b -> c [label=-2] }')
    nx.write_graphml(nx.relabel_nodes(nx.DiGraph(W), dict(enumerate("abc"))), tmp_path / "g.graphml")
    for file in ("g.npz", "g.csv", "e.csv", "g.dot", "g.graphml"):
        assert in_order(load_graph(tmp_path / file).stated(), "abc") == expected, file


def test_lines_without_arrowheads_in_dot(tmp_path):
    (tmp_path / "g.dot").write_text(
        "digraph { a -> b [arrowtail=none, arrowhead=none] edge [dir=none]; b -> c; c -> d }"
    )
    assert [edge.direction for edge in load_graph(tmp_path / "g.dot").stated()[0]] == [FREE, FREE, FREE]


# --- the command ---


@pytest.fixture
def run(capfdbinary):
    """Run the command in this process: exit code, bytes on standard output, text on standard error."""

    def run_main(*arguments):
        try:
            code = main(["convert", *map(str, arguments)])
        except SystemExit as end:
            code = end.code
        out, err = capfdbinary.readouterr()
        return SimpleNamespace(code=code, out=out, err=err.decode())

    return run_main


@pytest.fixture
def folder(tmp_path):
    """What discover writes: x - y - z in a chain, of which nothing is directed, and z -> w, which is known."""
    A = np.zeros((4, 4), int)
    A[0, 1] = A[1, 2] = A[2, 3] = 1
    free = np.zeros((4, 4), bool)
    free[0, 1] = free[1, 2] = True
    known = np.zeros((4, 4), bool)
    known[2, 3] = True
    write_graph(tmp_path / "out", A, "xyzw", weights=A * np.pi, free=free | free.T, known=known)
    return tmp_path / "out"


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_by_its_suffix_and_back(run, folder, tmp_path, form):
    for ending in FORMATS[form].endings:
        out = tmp_path / f"g{ending}"
        result = run(folder, out)
        assert result.code == 0
        assert result.out.decode() == f"4 nodes, 3 edges, 2 of free direction; written to {out}\n"
        said = [line.partition(": the format ")[2] for line in result.err.splitlines()]
        assert [line.removeprefix(f"{form} cannot hold ") for line in said] == lost(
            load_graph(folder / "graph.json").stated()[0], form
        )
        assert run(out, tmp_path / "back.json", "-q").out == b""
        if form in FULL:
            back = json.loads((tmp_path / "back.json").read_text())
            assert back["edges"] == json.loads((folder / "graph.json").read_text())["edges"]


def test_what_is_lost_is_said(run, folder, tmp_path):
    said = run(folder, tmp_path / "g.txt").err
    assert said == (
        "vec2dag: warning: the format tetrad cannot hold the weights of edges\n"
        "vec2dag: warning: the format tetrad cannot hold which directions were known beforehand\n"
        "vec2dag: warning: the format tetrad cannot hold which way edges of free direction go (--dag directs them)\n"
    )
    assert "which directions are free (--cpdag writes" in run(folder, tmp_path / "g.csv").err
    for kind in ("--dag", "--cpdag"):
        assert "free" not in run(folder, tmp_path / "g.csv", kind).err


def test_dag_and_cpdag(run, folder, tmp_path):
    out = tmp_path / "g.csv"
    run(folder, out, "--cpdag")
    assert out.read_bytes() == (folder / "cpdag.csv").read_bytes()
    run(folder, out, "--dag")
    assert out.read_bytes() == (folder / "adjacency.csv").read_bytes()
    run(folder / "cpdag.csv", tmp_path / "dag.json", "--dag")
    edges, _ = load_graph(tmp_path / "dag.json").stated()
    assert edges == [Edge("x", "y"), Edge("y", "z"), Edge("z", "w")]
    run(folder, tmp_path / "dag.txt", "--dag")
    assert "---" not in (tmp_path / "dag.txt").read_text()


def test_the_class_of_a_graph_without_marks_is_computed(run, tmp_path):
    out = tmp_path / "g.csv"
    result = run("sachs", out, "--cpdag")
    np.testing.assert_array_equal(read_graph(out)[0], cpdag(datasets.load_sachs().A))
    assert "so the 17 direction(s) that the Markov equivalence class leaves open" in result.err


def test_a_class_survives_every_format_and_all_have_a_dag(run, tmp_path):
    for A in all_dags(3):
        C = cpdag(A)
        edges = settled([Edge("abc"[i], "abc"[j]) for i, j in np.argwhere(C)], "abc")
        for form in ("json", "tetrad", "dot", "edges"):
            file = put(tmp_path, form, edges, "abc")
            assert in_order(load_graph(file).stated(), "abc") == edges
            assert run(file, tmp_path / "dag.csv", "--dag", "-q").code == 0
            B, names = read_graph(tmp_path / "dag.csv")
            order = [names.index(name) for name in "abc"]
            np.testing.assert_array_equal(cpdag(B[np.ix_(order, order)]), C)


@pytest.mark.parametrize("form", FORMATS)
def test_the_standard_output_gets_the_bytes_of_a_file(run, folder, tmp_path, form):
    edges, nodes = load_graph(folder / "graph.json").stated()
    result = run(folder, "-", "--to", form)
    assert result.out == as_bytes(edges, nodes, form)
    if os.path.isdir("/dev/fd"):
        ours, theirs = os.pipe()
        os.write(theirs, result.out)
        os.close(theirs)
        try:
            again = run(f"/dev/fd/{ours}", tmp_path / "g.json")
        finally:
            os.close(ours)
        assert (again.code, again.err) == (0, "")
        assert sorted(read_graph(tmp_path / "g.json")[1]) == sorted(nodes)


def test_from_process_to_process(folder, tmp_path):
    convert = shlex.join([sys.executable, "-m", "vec2dag.cli", "convert"])
    out = tmp_path / "g.json"
    command = f"{convert} {shlex.quote(str(folder))} - --to npz | {convert} - {shlex.quote(str(out))}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert done.stderr == ""
    assert json.loads(out.read_text()) == json.loads((folder / "graph.json").read_text())


def test_json_about_what_was_written(run, folder, tmp_path):
    result = run(folder, tmp_path / "g.txt", "--json", "--cpdag")
    told = json.loads(result.out)
    assert told == {
        "nodes": 4,
        "edges": 3,
        "free": 2,
        "format": "tetrad",
        "file": str(tmp_path / "g.txt"),
        "warnings": [
            "the format tetrad cannot hold the weights of edges",
            "the format tetrad cannot hold which directions were known beforehand",
        ],
    }


def test_a_folder_of_bootstrap(run, folder, tmp_path):
    (tmp_path / "boot").mkdir()
    folder.rename(tmp_path / "boot" / "consensus")
    assert run(tmp_path / "boot", tmp_path / "g.gml").code == 0
    assert read_graph(tmp_path / "g.gml")[1] == tuple("xyzw")


def test_a_matrix_without_names(run, tmp_path):
    np.save(tmp_path / "g.npy", np.triu(np.ones((3, 3)), 1))
    result = run(tmp_path / "g.npy", tmp_path / "g.json")
    assert "g.npy names no nodes: they are called x0, x1, ..." in result.err
    assert read_graph(tmp_path / "g.json")[1] == ("x0", "x1", "x2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{out}/graph.json", "{out}/graph.json"], "OUT is IN, .*, which stays as it is"),
        (["{out}", "{out}/graph.json"], "OUT is IN"),
        (["{out}/graph.json", "{out}/../link.json"], "OUT is IN"),
        (["{out}", "g.pdf"], "g.pdf: unknown format; a name that ends with .json, edges.csv,"),
        (["{out}", "-"], "--to must say in which format"),
        (["{out}", "-", "--to", "gml", "--json"], "--json would be mixed up"),
        (["{out}", "x", "--to", "xml"], "--to='xml' is unknown; allowed: 'json', 'edges', 'csv'"),
        (["{out}/..", "g.json"], "has no graph.json: a file, or a folder of vec2dag discover or bootstrap, is needed"),
        (["{out}/nothing.json", "g.json"], "no such file"),
        (["{out}/graph.json", "{out}/graph.json/g.gml"], "cannot write to the folder"),
        (["{out}", "{out}", "--to", "gml"], "cannot be written"),
        (["{out}/../cycle.csv", "g.json", "--dag"], "--dag: this is neither a DAG nor an equivalence class"),
        (["{out}/../cycle.csv", "g.json", "--cpdag"], "--cpdag: the graph has a directed cycle"),
        (["{out}/../blank.csv", "g.txt"], "Tetrad's text cannot hold the name"),
    ],
)
def test_what_is_refused(run, folder, arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.json").symlink_to(folder / "graph.json")
    (tmp_path / "cycle.csv").write_text("source,target\na,b\nb,c\nc,a\n")
    (tmp_path / "blank.csv").write_text("source,target\na 1,b\n")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    result = run(*(argument.format(out=folder) for argument in arguments))
    assert result.code == 2
    assert result.out == b""
    assert result.err.count("\n") == 1
    assert re.search(message, result.err)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_dag_or_cpdag_not_both(run, folder):
    assert run(folder, "g.json", "--dag", "--cpdag").code == 2


def test_a_full_disk_and_a_reader_that_leaves(folder):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    command = shlex.join([sys.executable, "-m", "vec2dag.cli", "convert", str(folder), "-", "--to", "json"])
    full = subprocess.run(f"{command} > /dev/full", shell=True, capture_output=True, text=True, env=ENVIRONMENT)
    assert (full.returncode, full.stderr) == (
        2,
        "vec2dag: standard output cannot be written: No space left on device\n",
    )
    left = subprocess.run(f"{command} | true", shell=True, capture_output=True, text=True, env=ENVIRONMENT)
    assert left.stderr == ""


def test_interrupted_while_it_waits_for_input(tmp_path):
    command = [sys.executable, "-m", "vec2dag.cli", "convert", "-", str(tmp_path / "g.json")]
    # a shell may have the signal ignored for what it starts in the background
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # taken at once: what reads is there
    process.stdin.write("x" * 200_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert process.stderr.read() == "vec2dag: interrupted; nothing written\n"
    assert list(tmp_path.iterdir()) == []


def test_the_format_of_a_name():
    assert [format_of(name) for name in ("a/B.GML", "edges.csv", "my-edges.csv", "a.csv", "x.gv", "t.txt")] == [
        "gml", "edges", "edges", "csv", "dot", "tetrad",
    ]  # fmt: skip
    assert format_of("x.json", "dot") == "dot"
