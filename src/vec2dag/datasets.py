"""Real data with known graphs: the bundled table, and loaders for the folders and files others publish."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np

from ._checks import brief, default_names, quoted
from .files.atomic import InputError, PathLike
from .files.graphs import read_graph
from .files.tables import read_table
from .simulate import Dataset

# The consensus of the literature that Sachs et al. (2005) compare with, as causal discovery papers use it.
_SACHS_EDGES = {
    "Raf": ("Mek",),
    "Mek": ("Erk",),
    "Erk": ("Akt",),
    "Plcg": ("PIP2", "PIP3"),
    "PIP3": ("PIP2",),
    "PKA": ("Raf", "Mek", "Erk", "Akt", "P38", "Jnk"),
    "PKC": ("Raf", "Mek", "PKA", "P38", "Jnk"),
}


def load_sachs() -> Dataset:
    """The protein-signalling data of Sachs et al. (2005).

    Returns
    -------
    Dataset
        X (853, 11): the observational measurements, unscaled; A (11, 11): the consensus graph of 17 edges;
        names; meta with `name`, `description` and `citation`.
    """
    with resources.as_file(resources.files(__package__) / "data" / "sachs.csv") as file:
        X, names = read_table(file)
    A = np.zeros((len(names), len(names)), dtype=np.uint8)
    for source, targets in _SACHS_EDGES.items():
        for target in targets:
            A[names.index(source), names.index(target)] = 1
    meta = {
        "name": "sachs",
        "description": "11 proteins and phospholipids in 853 human immune cells; 17-edge consensus graph",
        "citation": "Sachs, Perez, Pe'er, Lauffenburger, Nolan. Science 308:523-529, 2005",
    }
    return Dataset(X=X, A=A, names=names, meta=meta)


def load_grandag(path: PathLike, index: int) -> Dataset:
    """One data set of a folder as published with GraN-DAG.

    Parameters
    ----------
    path : str or path-like
        The folder with data1.npy, DAG1.npy, data2.npy, ...
    index : int
        The number in the file names.

    Returns
    -------
    Dataset
        X (n, d); A (d, d), nonzero entries of the DAG file being edges from row to column; names x0, x1, ...

    Raises
    ------
    InputError
        A file is missing or unreadable, or the two do not fit.
    """
    folder = Path(path)
    data, graph = folder / f"data{index}.npy", folder / f"DAG{index}.npy"
    if not data.is_file() or not graph.is_file():
        present = sorted(int(file.stem[3:]) for file in folder.glob("DAG*.npy") if file.stem[3:].isdecimal())
        raise InputError(f"{folder} has no {data.name} with {graph.name}; indices there: {present or 'none'}")
    X, _ = read_table(data)
    A, _ = read_graph(graph)
    if X.shape[1] != len(A):
        raise InputError(f"{data.name} has {X.shape[1]} columns, but {graph.name} has {len(A)} nodes")
    return Dataset(X=X, A=A, names=default_names(len(A)), meta={"name": f"{folder.name}/{index}"})


def load_csv(data_path: PathLike, graph_path: PathLike) -> Dataset:
    """A table and its true graph from two files, as benchpress and Tetrad write them.

    Parameters
    ----------
    data_path : str or path-like
        Any file that `files.tables.read_table` reads.
    graph_path : str or path-like
        Any file that `files.graphs.read_graph` reads; a graph without names has the order of the columns.

    Returns
    -------
    Dataset
        X (n, d); A (d, d), with its nodes in the order of the columns; names.

    Raises
    ------
    InputError
        A file is unreadable, or columns and nodes have different names.
    """
    X, names = read_table(data_path)
    A, nodes = read_graph(graph_path)
    if nodes is None:
        if len(A) != len(names):
            raise InputError(f"{graph_path} has {len(A)} nodes, but {data_path} has {len(names)} columns")
    else:
        without_node = [name for name in names if name not in nodes]
        without_column = [name for name in nodes if name not in names]
        if without_node or without_column:
            raise InputError(
                f"{graph_path}: its nodes are not the columns of {data_path}; "
                f"without a node: {quoted(without_node) or 'none'}, "
                f"without a column: {quoted(without_column) or 'none'}"
            )
        order = [nodes.index(name) for name in names]
        A = A[np.ix_(order, order)]
    return Dataset(X=X, A=A, names=names, meta={"name": Path(data_path).stem})


_BUNDLED: dict[str, Callable[[], Dataset]] = {"sachs": load_sachs}


def names() -> tuple[str, ...]:
    """Names of the bundled data sets, as `load` and the command line take them."""
    return tuple(_BUNDLED)


def load(name: str) -> Dataset:
    """A bundled data set by its name.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Dataset
        The data, the true graph, and what they are.
    """
    if name not in _BUNDLED:
        raise InputError(f"no bundled data set {brief(name)}; there are {quoted(_BUNDLED)}")
    return _BUNDLED[name]()
