"""The tables of the experiments with their true graphs, by name and seed."""

import importlib.util
import json
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from vec2dag import datasets, simulate, topological_order
from vec2dag.simulate import Dataset

# Five sets each, by Lachapelle et al. (2020): dataK.npy and DAGK.npy, K from 1.
STORED = {"gp": "gp", "pnl-gp": "pnl_gp", "standardised-gp": "gp"}
# Beyond the paper: "joint-gp-er4-d20" has 20 nodes, ER-4, functions of all parents together, noise N(0, 1), 1000 rows.
LARGE = re.compile(r"(joint|additive)-gp-er(\d+)-d(\d+)")
_MECHANISMS = {"joint": simulate.gaussian_process, "additive": simulate.additive_gaussian_process}
# Networks of biology with Gaussian variables, by the names of their files in pgmpy: Escherichia coli (Schaefer and
# Strimmer 2005), Arabidopsis thaliana (Opgen-Rhein and Strimmer 2007), wheat and rice (Scutari and others 2014).
NETWORKS = ("ecoli70", "magic-niab", "magic-irri", "arth150")
_PRUNINGS: dict[str, tuple[str, ...]] = {
    "gp": ("cam",),
    "pnl-gp": ("cam",),
    "mlp-er4": ("cam",),
    "standardised-gp": (),
    "sachs": ("cam", "ci"),
    "toy": ("linear", "cam", "ci"),
}


def prunings(name: str) -> tuple[str, ...]:
    """Prunings that graphs found in these data are shown with, besides none."""
    if network_of(name):
        return ()
    return ("cam",) if LARGE.fullmatch(name) else _PRUNINGS.get(name, ("linear",))


def network_of(name: str) -> tuple[str, int] | None:
    """Network and rows of a name like ``magic-niab-n200``, or None for other data."""
    network, _, rows = name.rpartition("-n")
    return (network, int(rows)) if network in NETWORKS and rows.isdecimal() else None


def network(file: Path, n: int, rng: np.random.Generator) -> Dataset:
    """A table of ``n`` rows from the Gaussian network of a JSON file of pgmpy, in its own units."""
    model = json.loads(file.read_text(encoding="utf-8"))
    place = {node: i for i, node in enumerate(model["nodes"])}
    A = np.zeros((len(place), len(place)), np.uint8)
    for source, target in model["arcs"]:
        A[place[source], place[target]] = 1
    X = np.zeros((n, len(place)))
    for j in topological_order(A):
        local = model["cpds"][model["nodes"][j]]
        X[:, j] = np.sqrt(local["variance"][0]) * rng.standard_normal(n)
        for term, (weight,) in local["coefficients"].items():
            X[:, j] += weight * (X[:, place[term]] if term in place else 1.0)
    return Dataset(X, A, tuple(model["nodes"]))


def networks(folder: Path | None) -> Path | None:
    """Where the files of the networks are: ``networks/`` of a folder, or an installed pgmpy (1.0), not imported."""
    if folder is not None and (folder / "networks").is_dir():
        return folder / "networks"
    found = importlib.util.find_spec("pgmpy")
    place = None if found is None or found.origin is None else Path(found.origin).parent / "utils" / "example_models"
    return place if place is not None and (place / f"{NETWORKS[0]}.json").exists() else None


def load(name: str, seed: int, folder: Path | None = None) -> Dataset:
    """One set.

    Parameters
    ----------
    name : str
        A name of :func:`vec2dag.simulate.presets`; ``"gp"``, ``"pnl-gp"`` or ``"standardised-gp"`` (stored sets);
        ``"sachs"`` (standardised); ``"joint-gp-er4-d20"`` and the like (``LARGE``); ``"magic-niab-n200"`` and the
        like, rows of a network of biology (``NETWORKS``); ``"d50"`` and the like, noise that nothing is to be found in,
        for times that depend on the number of nodes alone; or ``"toy"``, five nodes and 80 rows.
    seed : int
        Number of the set, from 0.
    folder : Path, optional
        Where the stored sets are, in ``gp/`` and ``pnl_gp/``, and the networks, in ``networks/``.
    """
    return _load(name, seed, folder)


@lru_cache(maxsize=8)
def _load(name: str, seed: int, folder: Path | None) -> Dataset:
    if name in STORED:
        part = STORED[name]
        if folder is None or not (folder / part).is_dir():
            raise FileNotFoundError(f"data {name!r} are stored sets: pass --data FOLDER, a folder that has {part}/")
        stored = datasets.load_grandag(folder / part, seed + 1)
        return stored.standardise() if name == "standardised-gp" else stored
    if name == "sachs":
        return datasets.load_sachs().standardise()
    rng = np.random.default_rng(seed)
    if (wanted := network_of(name)) is not None:
        place = networks(folder)
        if place is None:
            files = f"{wanted[0]}.json"
            raise FileNotFoundError(f"data {name!r} need networks/{files} in the folder of --data, or pgmpy 1.0")
        return network(place / f"{wanted[0]}.json", wanted[1], rng)
    if name == "toy":
        return simulate.linear_gaussian(5, 1, 80, rng)
    if (large := LARGE.fullmatch(name)) is not None:
        mechanism, k, d = large.groups()
        graph = simulate.erdos_renyi(int(d), int(k), rng)
        return simulate.simulate(graph, _MECHANISMS[mechanism], n=1000, rng=rng)
    if name[0] == "d" and name[1:].isdecimal():
        d = int(name[1:])
        return Dataset(rng.standard_normal((100, d)), np.zeros((d, d), np.uint8))
    return simulate.preset(name, seed)
