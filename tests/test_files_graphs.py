"""Graphs through files: every name survives every format, and what is no graph is refused."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vec2dag import ALIAS
from vec2dag.files.atomic import InputError
from vec2dag.files.graphs import align, read_graph, to_networkx, write_graph

AWKWARD = (
    "plain",
    'q"uote',
    "two words",
    "größe 温度",
    "back\\slash",
    "end\\",
    "<b> & </b>",
    "graph",
    "a,b;c",
    "x\ny",
    "-1",
)
FILES = ("graph.json", "adjacency.csv", "graph.dot", "graph.graphml")


@pytest.fixture
def put(tmp_path):
    """Write a file and return its path."""

    def put_file(content, name="g.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return put_file


def _random_dag(rng, d):
    A = np.triu(rng.random((d, d)) < 0.4, 1).astype(np.uint8)
    order = rng.permutation(d)
    return A[np.ix_(order, order)]


@pytest.mark.parametrize("file", FILES)
def test_awkward_names_survive_every_format(tmp_path, file):
    rng = np.random.default_rng(0)
    A = _random_dag(rng, len(AWKWARD))
    free = np.zeros(A.shape, dtype=bool)
    free[tuple(np.argwhere(A)[0])] = True
    write_graph(tmp_path, A, AWKWARD, weights=rng.normal(size=A.shape), free=free | free.T)
    B, names = read_graph(tmp_path / file)
    assert names == AWKWARD
    assert B.dtype == np.uint8
    np.testing.assert_array_equal(A, B)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "cpdag.csv"]), (
        "no temporary file is left"
    )


CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")
NAMES = st.text(CHARACTERS | st.sampled_from("\t\n\r\\\"'"), min_size=1).filter(str.strip)


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), seed=st.integers(0, 9))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_survives_every_format(tmp_path, names, seed):
    A = _random_dag(np.random.default_rng(seed), len(names))
    for path in write_graph(tmp_path, A, names):
        B, found = read_graph(path)
        assert found == tuple(names), path.name
        np.testing.assert_array_equal(A, B)


def test_files_state_weights_and_directions(tmp_path):
    A = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    free = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    written = write_graph(tmp_path, A, "abc", weights=np.full((3, 3), -0.5), free=free)
    assert [path.name for path in written] == [*FILES, "cpdag.csv"]
    assert json.loads((tmp_path / "graph.json").read_text()) == {
        "format": "vec2dag-graph",
        "version": 1,
        "nodes": ["a", "b", "c"],
        "edges": [
            {"source": "a", "target": "b", "weight": -0.5, "direction": "free"},
            {"source": "b", "target": "c", "weight": -0.5, "direction": "oriented"},
        ],
    }
    dot = (tmp_path / "graph.dot").read_text()
    assert '"a" -> "b" [label="-0.5", dir=none, style=dashed];' in dot
    assert '"b" -> "c" [label="-0.5"];' in dot
    graph = nx.read_graphml(tmp_path / "graph.graphml")
    assert dict(graph.edges) == {
        ("a", "b"): {"weight": -0.5, "direction": "free"},
        ("b", "c"): {"weight": -0.5, "direction": "oriented"},
    }
    assert (tmp_path / "adjacency.csv").read_text() == ",a,b,c\na,0,1,0\nb,0,0,1\nc,0,0,0\n"
    assert (tmp_path / "cpdag.csv").read_text() == ",a,b,c\na,0,1,0\nb,1,0,1\nc,0,0,0\n"


def test_to_networkx_has_the_columns_as_nodes():
    graph = to_networkx([[0, 1], [0, 0]], ("z", "a"), weights=[[0, 2], [0, 0]])
    assert list(graph.nodes) == ["z", "a"]
    assert dict(graph.edges) == {("z", "a"): {"weight": 2.0, "direction": "oriented"}}
    assert nx.is_directed_acyclic_graph(graph)
    assert "weight" not in to_networkx([[0, 1], [0, 0]], "ab").edges["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": np.zeros((2, 3))}, "A must be a square"),
        ({"names": "abc"}, "one entry per column"),
        ({"names": "aa"}, "duplicate column names: 'a'"),
        ({"weights": np.zeros((3, 3))}, "weights must have the shape of A"),
        ({"weights": np.full((2, 2), np.inf)}, "weights must be finite"),
        ({"free": np.array([[0, 1], [0, 0]])}, "free must be symmetric"),
    ],
)
def test_a_graph_that_does_not_fit_is_not_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_graph(tmp_path, **({"A": np.array([[0, 1], [0, 0]]), "names": "ab"} | arguments))
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_an_input_error(put):
    with pytest.raises(InputError, match="cannot write to the folder"):
        write_graph(put("", "file"), [[0]], "a")


JSON = '{"nodes": ["a", "b", "c"], "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}]}'
DOT = 'strict digraph "g" {\n# c\n rankdir=LR node [shape=box] // x\n a; /* y */ "a"->b [w=-1.5];b->c}'
TETRAD = """
Graph Nodes:
a;b,(c)

Graph Edges:
1. a --> b
2. c <-- b dd nl

Graph Attributes:
BIC: -1.5
"""
GML = """Creator "somebody"
Version 1
graph
[
  comment "a -> b" directed 1 # and more
  node [ id 7 label "a" graphics [ x 1.5 y -2E3 fill "#FFF" ] ] node [ id 8 label "&#98;" ] node [ id 9 label "c" ]
  edge [ source 7 target 8 value +INF ] edge [ source 8 target 9 ]
]
"""


@pytest.mark.parametrize(
    ("content", "name", "nodes"),
    [
        ("0,1,0\n0,0,0.7\n0,0,0\n", "g.csv", None),
        ("0 1 0\n0 0 -2\n0 0 0\n", "g.txt", None),
        ("a,b,c\n0,1,0\n0,0,1\n0,0,0\n", "g.csv", "abc"),
        ("0,1,2\n0,1,0\n0,0,1\n0,0,0\n", "g.csv", "012"),
        ("a\tb\tc\n0\t1\t0\n0\t0\t1\n0\t0\t0\n", "g.tsv", "abc"),
        (",a,b,c\na,0,1,0\nb,0,0,1\nc,0,0,0\n", "g.csv", "abc"),
        (",a,b,c\nc,0,0,0\na,0,1,0\nb,0,0,1\n", "g.csv", "abc"),
        (",a,b,c\n0,0,1,0\n1,0,0,1\n2,0,0,0\n", "g.csv", "abc"),
        ('"a","b","c"\n"a",0,1,0\n"b",0,0,1\n"c",0,0,0\n', "g.csv", "abc"),
        ("source,target,weight\na,b,0.3\nb,c,1\n", "g.csv", "abc"),
        ("kind,Target,Source\nx,b,a\nx,c,b\n", "g.csv", "abc"),
        (",source,target,direction,coefficient\n0,a,b,oriented,0.3\n1,b,c,oriented,1\n", "g.csv", "abc"),
        ("from,to\na,b\nb,c\n", "g.csv", "abc"),
        ("Cause\tEffect\na\tb\nb\tc\n", "g.tsv", "abc"),
        ("weight;child;parent\n0,5;b;a\n1,5;c;b\n", "g.csv", "abc"),
        ("from,to,source,target\nx,y,a,b\nx,y,b,c\n", "g.csv", "abc"),
        ("a  --> b   0.53\nb --> c", "g.txt", "abc"),
        ("digraph { a -> b -> c; }", "g.dot", "abc"),
        (DOT, "g.gv", "abc"),
        (JSON, "g.json", "abc"),
        (TETRAD, "g.txt", "abc"),
        (GML, "g.gml", "abc"),
    ],
)
def test_graphs_as_others_write_them(put, content, name, nodes):
    A, names = read_graph(put(content, name))
    assert names == (None if nodes is None else tuple(nodes))
    assert A.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_an_edge_list_names_its_nodes_in_order_of_appearance(put):
    A, names = read_graph(put("target,source\nb,a\nc,b\n"))
    assert names == ("a", "b", "c")
    assert A.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_a_cpdag_may_be_read(put, tmp_path):
    both = [[0, 1], [1, 0]]
    assert read_graph(put("graph { a -- b }", "g.dot"))[0].tolist() == both
    assert read_graph(put("0,1\n1,0\n"))[0].tolist() == both
    nx.write_graphml(nx.Graph([("a", "b")]), tmp_path / "g.graphml")
    assert read_graph(tmp_path / "g.graphml")[0].tolist() == both
    nx.write_gml(nx.Graph([("a", "b")]), tmp_path / "g.gml")
    assert read_graph(tmp_path / "g.gml")[0].tolist() == both
    assert read_graph(put("Graph Nodes:\na;b\n\nGraph Edges:\n1. a --- b\n", "g.txt"))[0].tolist() == both


def test_comments_above_a_graph_are_left_out_with_a_note(put):
    with pytest.warns(UserWarning, match=r"left out 1 line\(s\) that begin with #"):
        assert read_graph(put("# by hand\nsource,target\na,b\n"))[1] == ("a", "b")


def test_a_free_direction_is_an_edge_both_ways(put):
    A, names = read_graph(put("source,target,direction\na,b,free\nb,c,oriented\n"))
    assert names == ("a", "b", "c")
    assert A.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]


def _chain(seed=0):
    """A model of a chain, no direction of which is determined, beside a variable of its own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    names = ("first", "body weight", "last", "alone")
    return ALIAS(random_state=0).fit(X, names=names), names


def test_what_a_model_prints_and_tabulates_is_read_again(tmp_path, put):
    pandas = pytest.importorskip("pandas")
    model, names = _chain()
    expected = model.cpdag_[:3, :3]
    assert (expected == expected.T).all()
    assert expected.sum() == 4
    for index in (True, False):
        pandas.DataFrame(model.edges_).to_csv(tmp_path / "edges.csv", index=index)
        for path in (tmp_path / "edges.csv", put(model.summary(), "edges.txt")):
            A, nodes = read_graph(path)
            assert set(nodes) == set(names[:3]), "a variable without edges is not in a list of edges"
            np.testing.assert_array_equal(align(expected, names[:3], A, nodes), expected)


def test_edges_that_pruning_removed_are_not_read(put):
    text = "cause      effect\na  --> b    0.5\n\n1 removed by pruning (p-value; edges stay below 1):\n  b --> c  0.2\n"
    assert read_graph(put(text, "g.txt"))[1] == ("a", "b")


@pytest.mark.parametrize("names", [("source", "target"), ("from", "to"), ("parent", "child", "other")])
def test_variables_may_be_called_source_and_target(tmp_path, put, names):
    A = np.triu(np.ones((len(names),) * 2, dtype=int), 1)
    write_graph(tmp_path, A, names)
    assert read_graph(tmp_path / "adjacency.csv")[0].tolist() == A.tolist()
    assert read_graph(tmp_path / "adjacency.csv")[1] == names
    no_corner = (tmp_path / "adjacency.csv").read_text().removeprefix(",")
    assert read_graph(put(no_corner))[1] == names


def test_graphs_in_arrays(tmp_path):
    B = np.array([[0, 0.5], [0, 0]])
    np.save(tmp_path / "g.npy", B)
    assert read_graph(tmp_path / "g.npy")[0].tolist() == [[0, 1], [0, 0]]
    np.savez(tmp_path / "g.npz", X=np.zeros((2, 2)), B=B, names=["u", "v"])
    A, names = read_graph(tmp_path / "g.npz")
    assert (A.tolist(), names) == ([[0, 1], [0, 0]], ("u", "v"))
    np.save(tmp_path / "g.npy", np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"a square 2-D array of numbers is needed, got float64 of shape \(2, 3\)"):
        read_graph(tmp_path / "g.npy")


def test_graphml_of_igraph_keeps_names_in_an_attribute(tmp_path):
    graph = nx.DiGraph([("n0", "n1")])
    nx.set_node_attributes(graph, {"n0": "cause", "n1": "effect"}, "name")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    A, names = read_graph(tmp_path / "g.graphml")
    assert (A.tolist(), names) == ([[0, 1], [0, 0]], ("cause", "effect"))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "g.csv", "empty"),
        ("a,b\n1,2\n3,4\n5,6\n", "g.csv", "4 lines of 2 cells are no graph"),
        ("a,b\n0,x\n0,0\n", "g.csv", "no number"),
        ("a,b\n0,nan\n0,0\n", "g.csv", "NaN"),
        ("a,a\n0,1\n0,0\n", "g.csv", "duplicate column names: 'a'"),
        (",a,b\na,0,1\nz,0,0\n", "g.csv", "index are not those in the header"),
        ("1,1\n0,0\n", "g.csv", r"node\(s\) '0' have an edge to themselves"),
        ("source,target\na\n", "g.csv", "needs 2 cells"),
        ("source,target\n", "g.csv", "no nodes"),
        ("source,target\n,a\n", "g.csv", "an edge without a name at one end: '', 'a'"),
        ("source,target,direction\na,b,up\n", "g.csv", "must be 'free', 'oriented' or 'known', got 'up'"),
        ("from,to,cause,effect\na,b,c,d\n", "g.csv", "from and to or cause and effect; call them source and target"),
        ("%PDF-1.4", "g.csv", "this is a PDF document"),
        ("digraph { a -> a }", "g.dot", r"node\(s\) 'a' have an edge to themselves"),
        ("digraph { a -> ", "g.dot", "unexpected 'the end of the file'"),
        ("digraph { a -> b", "g.dot", "unexpected 'the end of the file'"),
        ("digraph { a [x=", "g.dot", "unexpected 'the end of the file'"),
        ("digraph { {a b} -> c }", "g.dot", "subgraphs and ports are not supported"),
        ("digraph {\n a:n -> c }", "g.dot", "line 2: unexpected ':n"),
        ("hello", "g.dot", "not a graph in DOT"),
        ("[1]", "g.json", "not a graph in JSON"),
        ("{", "g.json", "not a graph in JSON"),
        ('{"version": 2}', "g.json", "version 2"),
        ('{"nodes": [1], "edges": []}', "g.json", "strings"),
        ('{"nodes": ["a"], "edges": [{"source": "a", "target": "b"}]}', "g.json", "'b', which is no node"),
        ("<graphml", "g.graphml", "not a graph in GraphML"),
        ("Graph Nodes:\na;b\n", "g.txt", "without 'Graph Edges:' is no graph of Tetrad"),
        ("Graph Nodes:\na;b\n\nGraph Edges:\n1. a o-> b", "g.txt", "only edges --> and --- can be read, not '1. a o->"),
        ("Graph Nodes:\na;b\n\nGraph Edges:\n1. a --> z", "g.txt", "'z', which is no node"),
        ("", "g.gml", "not a graph in GML; expected is"),
        ("creator [ ]", "g.gml", "not a graph in GML"),
        ("graph [ directed 1", "g.gml", "unexpected 'the end of the file' in GML, where a key should be"),
        ("graph [ directed", "g.gml", "unexpected 'the end of the file' in GML, where a value should be"),
        ("graph [ ] ]", "g.gml", r"unexpected '\]' in GML, where a key should be"),
        ("graph [ node ] ]", "g.gml", r"unexpected '\]' in GML, where a value should be"),
        ("graph [ node [ label 3 ] ]", "g.gml", "a node or an edge has no 'id'"),
        ("graph [ node [ id 1 ] node [ id 1 ] ]", "g.gml", "two nodes have the same id"),
        ("graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "g.gml", "names the node '2', which is not there"),
        ("graph [ ] graph [ ]", "g.gml", "more than one graph in one GML file"),
        ("graph [ node [ id 1 graph [ ] ] ]", "g.gml", "more than one graph in one GML file"),
        ("graph [ " + "a [ " * 100_000, "g.gml", "more than 50 levels of brackets"),
        ('graph [\n label "open\n', "g.gml", "line 2: unexpected"),
        ("x", "g.pdf", r"unknown suffix '\.pdf'"),
    ],
)
def test_bad_graphs_are_refused(put, content, name, message):
    with pytest.raises(InputError, match=message):
        read_graph(put(content, name))


PIECES = [
    "digraph {",
    "graph",
    "{",
    "}",
    "a",
    '"b"',
    "->",
    "--",
    "[",
    "]",
    "=",
    ";",
    "source",
    ",",
    "\n",
    "0",
    '"',
    "/*",
]


@given(
    content=st.binary(max_size=100) | st.lists(st.sampled_from(PIECES)).map(lambda pieces: " ".join(pieces).encode()),
    start=st.sampled_from([b"", b"digraph { ", b"graph [ node [ id 0 ", b"Graph Nodes:\na;b\n\nGraph Edges:\n1. "]),
    suffix=st.sampled_from(["csv", "txt", "json", "dot", "graphml", "gml", "npy", "npz"]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_graph_or_an_input_error(tmp_path, content, start, suffix):
    path = tmp_path / f"g.{suffix}"
    path.write_bytes(start + content)
    refusal = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            A, names = read_graph(path)
        except InputError as error:
            refusal = str(error)
    assert refusal.isprintable()
    assert len(refusal) < 2000
    if refusal:
        return
    assert A.dtype == np.uint8
    assert A.shape[0] == A.shape[1] > 0
    assert names is None or len(names) == len(A)


@pytest.mark.parametrize("name", ["g.json", "g.dot", "g.graphml", "g.csv", "g.txt", "g.gml"])
def test_the_number_of_nodes_is_looked_at_before_a_matrix_is_made(put, name):
    nodes = [f"n{i}" for i in range(30_000)]
    content = {
        "g.json": json.dumps({"nodes": nodes, "edges": []}),
        "g.dot": "digraph {" + ";".join(nodes) + "}",
        "g.graphml": "<graphml><graph>" + "".join(f'<node id="{n}"/>' for n in nodes) + "</graph></graphml>",
        "g.csv": "source,target\n" + "".join(f"{a},{b}\n" for a, b in itertools.pairwise(nodes)),
        "g.txt": "".join(f"{a} --> {b}\n" for a, b in itertools.pairwise(nodes)),
        "g.gml": "graph [" + "".join(f'node [id {i} label "{n}"]' for i, n in enumerate(nodes)) + "]",
    }[name]
    path = put(content, name)
    with pytest.raises(InputError, match=r"30000 nodes would take 7.2 GB, more than the 4 GB allowed; --max-memory 8 "):
        read_graph(path)
    with pytest.raises(InputError, match="GB allowed; --max-memory"):
        read_graph(path, max_memory=0.001)


def test_arrays_are_measured_before_they_are_read(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**6)})
    (tmp_path / "g.npy").write_bytes(header.getvalue() + bytes(100))
    with pytest.raises(InputError, match=r"its array of shape \(1000000, 1000000\) would take 8e\+03 GB"):
        read_graph(tmp_path / "g.npy")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_not_expanded(tmp_path, encoding):
    tenfold = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    text = f'<!DOCTYPE g [<!ENTITY e0 "e">{tenfold}]><graphml><graph><node id="&e9;"/></graph></graphml>'
    (tmp_path / "g.graphml").write_bytes(text.encode(encoding))
    with pytest.raises(InputError, match="XML with a document type"):
        read_graph(tmp_path / "g.graphml")
    external = (
        '<!DOCTYPE g [<!ENTITY e SYSTEM "/etc/hostname">]><graphml><graph><node id="a">&e;</node></graph></graphml>'
    )
    (tmp_path / "g.graphml").write_bytes(external.encode(encoding))
    with pytest.raises(InputError, match="XML with a document type"):
        read_graph(tmp_path / "g.graphml")


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "g.npz", A=np.array([[{}]], dtype=object))
    with pytest.raises(InputError, match="Python objects"):
        read_graph(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", A=np.eye(2)[::-1], notes=np.array([{}], dtype=object))
    assert read_graph(tmp_path / "g.npz")[0].tolist() == [[0, 1], [1, 0]], "beside a graph they do not matter"


@pytest.mark.parametrize("file", [*FILES, "edges.txt", "graph.npz", "graph.gml", "tetrad.txt"])
def test_graphs_out_of_pipes_and_packed(tmp_path, file):
    A, names = np.array([[0, 1], [0, 0]]), ("a", "b")
    write_graph(tmp_path, A, names)
    (tmp_path / "edges.txt").write_text("a --> b  0.5\n")
    np.savez(tmp_path / "graph.npz", A=A, names=names)
    nx.write_gml(nx.DiGraph([names]), tmp_path / "graph.gml")
    (tmp_path / "tetrad.txt").write_text("Graph Nodes:\na;b\n\nGraph Edges:\n1. a --> b\n")
    content = (tmp_path / file).read_bytes()
    if file != "graph.npz":
        (tmp_path / f"{file}.gz").write_bytes(gzip.compress(content))
        assert read_graph(tmp_path / f"{file}.gz")[1] == names
    if os.path.isdir("/dev/fd"):
        ours, theirs = os.pipe()
        os.write(theirs, content)
        os.close(theirs)
        try:
            found, labels = read_graph(f"/dev/fd/{ours}")
        finally:
            os.close(ours)
        assert (found.tolist(), labels) == (A.tolist(), names)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("a,b\n0,{evil}\n0,0\n", "g.csv"),
        ("source,target,direction\na,b,{evil}\n", "g.csv"),
        ("source,target\n{evil},{evil}\n", "g.csv"),
        ('{{"nodes": ["a"], "edges": [{{"source": "a", "target": "{evil}"}}]}}', "g.json"),
        ('{{"version": "{evil}"}}', "g.json"),
        ('digraph {{ "{evil}" "{evil}" -> {{ }}', "g.dot"),
        ("digraph {{ a -> {evil}: }}", "g.dot"),
        ("<{evil}", "g.graphml"),
        ('graph [ node [ id 1 ] edge [ source 1 target "{evil}" ] ]', "g.gml"),
        ("graph [ {evil}", "g.gml"),
        ("Graph Nodes:\na\n\nGraph Edges:\n1. a o-o {evil}", "g.txt"),
    ],
)
def test_names_cannot_steer_a_terminal(put, content, name):
    for start in ("\x1b[31m", "\x9b", "\r", "\u202e"):
        with pytest.raises(InputError) as caught:
            read_graph(put(content.format(evil=start + "n" * 5000), name))
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1500


def test_align_by_name():
    rng = np.random.default_rng(0)
    A = _random_dag(rng, 6)
    names = tuple("abcdef")
    order = rng.permutation(6)
    shuffled, shuffled_names = A[np.ix_(order, order)], tuple(names[i] for i in order)
    np.testing.assert_array_equal(align(A, names, shuffled, shuffled_names), A)
    np.testing.assert_array_equal(align(A, None, shuffled, shuffled_names), shuffled)
    np.testing.assert_array_equal(align(A, names, shuffled, None), shuffled)


def test_align_refuses_by_name():
    A = np.zeros((2, 2), dtype=np.uint8)
    with pytest.raises(InputError, match="lacks 'b' and has 'z' besides"):
        align(A, ("a", "b"), A, ("z", "a"))
    with pytest.raises(InputError, match="lacks 'c'"):
        align(np.zeros((3, 3)), ("a", "b", "c"), A, ("b", "a"))
    with pytest.raises(InputError, match="differ in size: 2 and 3 nodes"):
        align(A, None, np.zeros((3, 3)), None)
