"""The bundled table is the published one, and other people's files are read with their graphs."""

from __future__ import annotations

import hashlib
from importlib import resources

import networkx as nx
import numpy as np
import pytest

from vec2dag import datasets
from vec2dag.files.atomic import InputError


def test_sachs_has_the_published_shape_and_graph():
    sachs = datasets.load_sachs()
    assert sachs.X.shape == (853, 11)
    assert sachs.names == ("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk")
    # first and last row of the observational condition in the published table
    assert sachs.X[0].tolist() == [26.4, 13.2, 8.82, 18.3, 58.8, 6.61, 17.0, 414.0, 17.0, 44.9, 40.0]
    assert sachs.X[-1].tolist() == [46.6, 15.0, 8.51, 120.0, 22.3, 6.1, 20.0, 478.0, 20.9, 36.8, 9.65]
    assert sachs.A.sum() == 17
    graph = nx.from_numpy_array(sachs.A, create_using=nx.DiGraph)
    assert nx.is_directed_acyclic_graph(graph)
    parents = {name: {sachs.names[i] for i in np.flatnonzero(sachs.A[:, j])} for j, name in enumerate(sachs.names)}
    assert parents["Akt"] == {"Erk", "PKA"}
    assert parents["PIP2"] == {"Plcg", "PIP3"}
    assert parents["Raf"] == {"PKA", "PKC"}
    assert parents["PKC"] == set()
    assert sachs.meta["description"]


def test_the_readme_states_the_hash_of_the_file():
    folder = resources.files("vec2dag") / "data"
    digest = hashlib.sha256((folder / "sachs.csv").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text()


def test_registry():
    assert "sachs" in datasets.names()
    assert datasets.load("sachs").names == datasets.load_sachs().names
    with pytest.raises(InputError, match="no bundled data set 'iris'; there are 'sachs'"):
        datasets.load("iris")


def test_grandag_folder(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    B = np.array([[0, 0.5, 0], [0, 0, -2], [0, 0, 0]])
    np.save(tmp_path / "data2.npy", X)
    np.save(tmp_path / "DAG2.npy", B)
    loaded = datasets.load_grandag(tmp_path, 2)
    np.testing.assert_array_equal(loaded.X, X)
    np.testing.assert_array_equal(loaded.A, B != 0)
    with pytest.raises(InputError, match=r"no data1.npy with DAG1.npy; indices there: \[2\]"):
        datasets.load_grandag(tmp_path, 1)
    np.save(tmp_path / "DAG2.npy", np.zeros((4, 4)))
    with pytest.raises(InputError, match=r"3 columns, but DAG2\.npy has 4 nodes"):
        datasets.load_grandag(tmp_path, 2)


def test_csv_with_a_true_graph_is_aligned_by_name(tmp_path):
    data, graph = tmp_path / "data.csv", tmp_path / "graph.csv"
    data.write_text("a,b,c\n1,2,3\n4,5,7\n")
    graph.write_text("c,a,b\n0,0,1\n1,0,0\n0,0,0\n")
    loaded = datasets.load_csv(data, graph)
    assert loaded.names == ("a", "b", "c")
    assert loaded.A.tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    graph.write_text("0,1,0\n0,0,0\n0,0,0\n")
    assert datasets.load_csv(data, graph).A.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    graph.write_text("0,1\n0,0\n")
    with pytest.raises(InputError, match="has 2 nodes"):
        datasets.load_csv(data, graph)
    graph.write_text("c,a,z\n0,0,1\n1,0,0\n0,0,0\n")
    with pytest.raises(InputError, match="without a node: 'b', without a column: 'z'"):
        datasets.load_csv(data, graph)
