"""The tables of the experiments with their true graphs, by name and seed."""

import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from vec2dag import datasets, simulate
from vec2dag.simulate import Dataset

# Five sets each, by Lachapelle et al. (2020): dataK.npy and DAGK.npy, K from 1.
STORED = {"gp": "gp", "pnl-gp": "pnl_gp", "standardised-gp": "gp"}
# Beyond the paper: "joint-gp-er4-d20" has 20 nodes, ER-4, functions of all parents together, noise N(0, 1), 1000 rows.
LARGE = re.compile(r"(joint|additive)-gp-er(\d+)-d(\d+)")
_MECHANISMS = {"joint": simulate.gaussian_process, "additive": simulate.additive_gaussian_process}
_PRUNINGS = {
    "gp": ("cam",),
    "pnl-gp": ("cam",),
    "mlp-er4": ("cam",),
    "standardised-gp": (),
    "sachs": ("cam", "ci"),
    "toy": ("linear", "cam", "ci"),
}


def prunings(name: str) -> tuple[str, ...]:
    """Prunings that graphs found in these data are shown with, besides none."""
    return ("cam",) if LARGE.fullmatch(name) else _PRUNINGS.get(name, ("linear",))


def load(name: str, seed: int, folder: Path | None = None) -> Dataset:
    """One set.

    Parameters
    ----------
    name : str
        A name of :func:`vec2dag.simulate.presets`; ``"gp"``, ``"pnl-gp"`` or ``"standardised-gp"`` (stored sets);
        ``"sachs"`` (standardised); ``"joint-gp-er4-d20"`` and the like (``LARGE``); ``"d50"`` and the like, noise that
        nothing is to be found in, for times that depend on the number of nodes alone; or ``"toy"``, five nodes and 80
        rows.
    seed : int
        Number of the set, from 0.
    folder : Path, optional
        Where the stored sets are, in ``gp/`` and ``pnl_gp/``.
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
