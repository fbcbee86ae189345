"""Graphs through files: every name survives every format, and what is no graph is refused."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
        ({"weights": np.full((2, 2), np.nan)}, "weights must be finite"),
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
        ("digraph { a -> b -> c; }", "g.dot", "abc"),
        (DOT, "g.gv", "abc"),
        (JSON, "g.json", "abc"),
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


def test_variables_may_be_called_source_and_target(tmp_path):
    write_graph(tmp_path, [[0, 1], [0, 0]], ("source", "target"))
    assert read_graph(tmp_path / "adjacency.csv")[0].tolist() == [[0, 1], [0, 0]]


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
    start=st.sampled_from([b"", b"digraph { "]),
    suffix=st.sampled_from(["csv", "json", "dot", "graphml", "npy"]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_graph_or_an_input_error(tmp_path, content, start, suffix):
    path = tmp_path / f"g.{suffix}"
    path.write_bytes(start + content)
    try:
        A, names = read_graph(path)
    except InputError:
        return
    assert A.dtype == np.uint8
    assert A.shape[0] == A.shape[1] > 0
    assert names is None or len(names) == len(A)


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
