"""Graphs in the forms of other packages: by their own rules, and where they are installed by their own code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from oracles import all_dags, markov_equivalent
from test_files_graphs import AWKWARD

from vec2dag import ALIAS, cpdag, interop
from vec2dag.files.graphs import to_networkx
from vec2dag.graph import one_dag

ROOT = Path(__file__).resolve().parents[1]
# a -> c <- b, c -> d: every direction is determined
COLLIDER = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
# x - y - z, of which nothing is determined
CHAIN = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.fixture(scope="module")
def table():
    """Rows of COLLIDER with known coefficients; shape (400, 4)."""
    rng = np.random.default_rng(7)
    a, b, noise, more = rng.standard_normal((4, 400))
    c = 1.5 * a - 2 * b + 0.5 * noise
    return np.column_stack([a, b, c, 0.8 * c + 0.5 * more])


@pytest.fixture(scope="module")
def model(table):
    return ALIAS(random_state=0).fit(table, names=tuple("abcd"))


def forms_of(model):
    """The same graph as a model, as a networkx graph and as a matrix with names."""
    return [(model,), (model.graph_,), (model.weights_, tuple("abcd"))]


# --- one DAG of a class ---


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_one_dag_is_a_member_of_every_class(d):
    for A in all_dags(d):
        C = cpdag(A)
        B = one_dag(C)
        assert markov_equivalent(A, B)
        np.testing.assert_array_equal(cpdag(A), C, "the input is not modified")
        np.testing.assert_array_equal(one_dag(A), A, "a DAG is its own member where nothing is free")


def test_one_dag_keeps_what_knowledge_has_directed():
    # x -> y is known: the class that agrees with it is x -> y -> z
    assert one_dag([[0, 0, 0], [1, 0, 1], [0, 1, 0]]).tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    "C", [[[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.ones((4, 4)) - np.eye(4) - np.eye(4)[[2, 3, 0, 1]]]
)
def test_one_dag_of_what_is_no_class(C):
    """A directed cycle, and an undirected one of four nodes without a chord."""
    with pytest.raises(ValueError, match="C is no equivalence class: the edges among its nodes 0, 1, 2"):
        one_dag(C)


def test_one_dag_of_a_large_class():
    C = cpdag(np.triu(np.ones((300, 300)), 1) - np.triu(np.ones((300, 300)), 4))
    np.testing.assert_array_equal(cpdag(one_dag(C)), C)


# --- what a graph may be ---


@pytest.mark.parametrize("to", [interop.to_causal_learn, interop.to_lingam, interop.to_pgmpy, interop.to_dowhy_gml])
def test_models_networks_and_matrices_are_the_same(model, to):
    expected = to(model)
    for form in forms_of(model):
        np.testing.assert_equal(to(*form), expected)
    assert nx.utils.graphs_equal(interop.to_dowhy(model), model.graph_)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interop.to_pgmpy(ALIAS()), "not fitted"),
        (lambda: interop.to_pgmpy(np.zeros((2, 3))), r"graph must be of shape \(d, d\), got \(2, 3\)"),
        (lambda: interop.to_pgmpy("sachs"), "graph must"),
        (lambda: interop.to_pgmpy(np.eye(2)), "self-loops"),
        (lambda: interop.to_pgmpy(np.full((2, 2), np.nan)), "graph contains NaN or infinity"),
        (lambda: interop.to_pgmpy(COLLIDER, "abc"), r"one entry per column \(4\), got 3"),
        (lambda: interop.to_pgmpy(nx.DiGraph([(0, 1)])), "names must be strings, got 0"),
        (lambda: interop.to_pgmpy(nx.DiGraph([("a", "a")])), "self-loop: 'a' -> 'a'"),
        (lambda: interop.to_pgmpy(nx.DiGraph([("a", "b")]), "ab"), "names and free belong to a matrix"),
        (lambda: interop.to_pgmpy(nx.DiGraph(["ab", "bc", "ca"])), "graph has a directed cycle, and pgmpy needs a DAG"),
        (lambda: interop.to_dowhy(COLLIDER, free=np.triu(np.ones((4, 4)))), "free must be symmetric"),
        (lambda: interop.to_dowhy(CHAIN, "xyz"), r"both directions, 'x' -> 'y', 'y' -> 'z', and DoWhy.*one_dag\(A\)"),
        (lambda: interop.to_dowhy(nx.path_graph("ab", nx.Graph)), "in both directions, 'a' -> 'b'"),
        (lambda: interop.to_lingam(nx.DiGraph(["ab"])), "graph has no weight for 'a' -> 'b'"),
        (lambda: interop.to_dowhy_gml([[0, 1], [0, 0]], ["()", "b"]), r"the name '\(\)' in GML as an empty list"),
        (lambda: interop.from_lingam([[0, np.nan], [np.nan, 0]]), "has nan for the columns 1 and 0: .* hidden"),
        (lambda: interop.from_causal_learn([[0, 1], [1, 0]]), "between 'x0' and 'x1' with the marks 1 and 1"),
        (lambda: interop.from_causal_learn([[0, -1], [0, 0]]), "with the marks -1 and 0"),
        (lambda: interop.from_pgmpy(3), r"network must have nodes\(\) and edges\(\)"),
    ],
)
def test_what_is_no_graph_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_free_directions_are_pointed_out():
    free = CHAIN.astype(bool)
    with pytest.warns(
        UserWarning, match="DoWhy takes all directions for facts, but the data do not determine 'x' -> 'y', "
    ):
        graph = interop.to_dowhy(np.triu(CHAIN), "xyz", free)
    assert list(graph.edges) == [("x", "y"), ("y", "z")]
    assert set(nx.get_edge_attributes(graph, "direction").values()) == {"free"}


# --- each package by its own rules ---


def test_causal_learn():
    M = interop.to_causal_learn(COLLIDER)
    assert M.tolist() == [[0, 0, -1, 0], [0, 0, -1, 0], [1, 1, 0, -1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(interop.to_causal_learn(CHAIN), -CHAIN)
    np.testing.assert_array_equal(interop.to_causal_learn(np.triu(CHAIN), free=CHAIN.astype(bool)), -CHAIN)
    for A in all_dags(3):
        C = cpdag(A)
        B, names = interop.from_causal_learn(interop.to_causal_learn(C, "abc"), "abc")
        np.testing.assert_array_equal(B, C)
        assert names == tuple("abc")


def test_lingam(model):
    B = interop.to_lingam(model)
    assert abs(B[2, 0] - 1.5) < 0.1
    assert abs(B[2, 1] + 2) < 0.1
    np.testing.assert_array_equal(B, model.weights_.T)
    np.testing.assert_array_equal(interop.from_lingam(B), model.weights_)


def test_pgmpy():
    edges, nodes = interop.to_pgmpy(np.pad(COLLIDER, (0, 1)), "abcde")
    assert edges == [("a", "c"), ("b", "c"), ("c", "d")]
    assert nodes == list("abcde"), "also those without edges"
    network = nx.DiGraph(edges)
    network.add_nodes_from(nodes)
    A, names = interop.from_pgmpy(network)
    order = [names.index(name) for name in "abcde"]
    np.testing.assert_array_equal(A[np.ix_(order, order)], np.pad(COLLIDER, (0, 1)))


DOWHY = (*AWKWARD, "a.dot", "b.gml", "c.txt", "graph {x}", "digraph { a -> b }")


def test_dowhy_text_has_nothing_that_it_would_take_for_another_format():
    """By the tests that DoWhy makes of the text, once it has put it on one line."""
    A = np.triu(np.ones((len(DOWHY),) * 2), 1)
    text = interop.to_dowhy_gml(A, DOWHY)
    line = text.replace("\n", " ")
    assert not re.match(r".*\.(txt|dot|gml)", text)
    assert not re.match(r".*\.(txt|dot|gml)", line)
    assert not re.match(r".*graph\s*\{.*\}\s*", line)
    assert re.match(r".*graph\s*\[.*\]\s*", line)
    graph = nx.DiGraph(nx.parse_gml(line))
    assert tuple(graph.nodes) == DOWHY
    assert set(graph.edges) == set(to_networkx(A, DOWHY).edges)


# --- and by their own code, where they are installed ---


@pytest.mark.slow
def test_causal_learn_takes_the_matrix():
    pytest.importorskip("causallearn")
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.graph.SHD import SHD
    from causallearn.utils.DAG2CPDAG import dag2cpdag

    def theirs(A):
        graph = GeneralGraph([GraphNode(name) for name in names])
        graph.graph = interop.to_causal_learn(A, names)
        graph.reconstitute_dpath(graph.get_graph_edges())
        return graph

    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(7)]
    for _ in range(10):
        A = np.triu(rng.random((7, 7)) < 0.4, 1).astype(np.uint8)
        dag = theirs(A)
        for i, j in np.argwhere(A):
            assert dag.is_directed_from_to(dag.nodes[i], dag.nodes[j])
        assert dag.is_ancestor_of(dag.nodes[0], dag.nodes[6]) == nx.has_path(nx.DiGraph(A), 0, 6)
        found, labels = interop.from_causal_learn(dag2cpdag(dag))
        assert labels == tuple(names)
        np.testing.assert_array_equal(found, cpdag(A))
        assert SHD(dag2cpdag(dag), theirs(cpdag(A))).get_shd() == 0


@pytest.mark.slow
def test_pc_of_causal_learn(table):
    pytest.importorskip("causallearn")
    from causallearn.search.ConstraintBased.PC import pc

    A, names = interop.from_causal_learn(pc(table, node_names=list("abcd"), show_progress=False))
    assert names == tuple("abcd")
    np.testing.assert_array_equal(A, cpdag(COLLIDER))


@pytest.mark.slow
def test_lingam_takes_the_matrix(table):
    lingam = pytest.importorskip("lingam")
    from lingam.utils import make_dot

    rng = np.random.default_rng(0)
    noise = rng.uniform(-1, 1, (2000, 4))
    B = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [1.5, -2, 0, 0], [0, 0, 0.8, 0]])
    X = noise @ np.linalg.inv(np.eye(4) - B).T  # x = B x + e
    fitted = lingam.DirectLiNGAM().fit(X)
    W = interop.from_lingam(fitted)
    np.testing.assert_allclose(W, B.T, atol=0.1)
    np.testing.assert_array_equal(W != 0, COLLIDER != 0)
    np.testing.assert_array_equal(interop.to_lingam(W), fitted.adjacency_matrix_)
    source = make_dot(interop.to_lingam(W), labels=list("abcd")).source
    assert re.findall(r"(\w) -> (\w)", source) == [("a", "c"), ("b", "c"), ("c", "d")]


@pytest.mark.slow
def test_pgmpy_takes_edges_and_nodes(model, table):
    pgmpy = pytest.importorskip("pgmpy")
    pandas = pytest.importorskip("pandas")
    from pgmpy.base import PDAG
    from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork

    edges, nodes = interop.to_pgmpy(np.pad(COLLIDER, (0, 1)), "abcde")
    for kind in (DiscreteBayesianNetwork, LinearGaussianBayesianNetwork):
        network = kind(edges)
        network.add_nodes_from(nodes)
        A, names = interop.from_pgmpy(network)
        order = [names.index(name) for name in nodes]
        np.testing.assert_array_equal(A[np.ix_(order, order)], np.pad(COLLIDER, (0, 1)), pgmpy.__name__)
    fitted = LinearGaussianBayesianNetwork(interop.to_pgmpy(model)[0])
    fitted.fit(pandas.DataFrame(table, columns=list("abcd")))
    (effect,) = (cpd for cpd in fitted.cpds if cpd.variable == "c")
    slopes = dict(zip(effect.evidence, list(effect.beta)[1:], strict=True))
    assert abs(slopes["a"] - model.weights_[0, 2]) < 1e-6
    assert abs(slopes["b"] - model.weights_[1, 2]) < 1e-6
    C, names = interop.from_pgmpy(PDAG(directed_ebunch=[("a", "b")], undirected_ebunch=[("b", "c")]))
    assert C[names.index("b"), names.index("c")] == C[names.index("c"), names.index("b")] == 1
    assert C[names.index("b"), names.index("a")] == 0


# --- the page ---


def test_the_code_and_commands_of_the_page_run(tmp_path):
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert {language for language, _ in blocks} == {"bash", "python"}
    bash, python = ("\n".join(block for kind, block in blocks if kind == language) for language in ("bash", "python"))
    command = f"{shlex.quote(sys.executable)} -m vec2dag.cli "
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    for code in (["sh", "-ec", bash.replace("vec2dag ", command)], [sys.executable, "-c", python]):
        done = subprocess.run(code, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
