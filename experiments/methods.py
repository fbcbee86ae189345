"""Names of the methods, and where each is: found without importing vec2dag or any other package."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import peers

# f(X, rng, **settings) -> A, or -> a dict of arrays and numbers, of which "A" is the graph.
Function = Callable[..., Any]


@dataclass(frozen=True)
class Method:
    """A way to a graph.

    Attributes
    ----------
    where : str
        ``"module:function"`` in this package.
    imports : tuple of str
        Modules to load before the clock starts.
    peer : bool
        Whether it needs the environment of ``make peers``.
    own : bool
        Whether it is this library, and not a method that it is compared with.
    library : bool
        Whether its answer depends on how this library scores and searches.
    undirected : bool
        Whether 1 in both directions means an undirected edge: answers that are equivalence classes or skeletons.
    toy : dict
        Settings with which it ends at once, for a rehearsal.
    """

    where: str
    imports: tuple[str, ...] = ("vec2dag",)
    peer: bool = False
    own: bool = False
    library: bool = False
    undirected: bool = False
    toy: dict[str, Any] = field(default_factory=dict)

    def function(self) -> Function:
        """The function itself; imports its module."""
        module, name = self.where.split(":")
        found: Function = getattr(importlib.import_module(f"experiments.{module}"), name)
        return found


UNDIRECTED = ("pc", "ges", "grasp", "boss", "flop", "marvel", "rsl")
METHODS: dict[str, Method] = {
    "vec2dag": Method("ours:alias", own=True, library=True),
    "policy-gradient": Method("ours:policy", own=True, library=True, toy={"n_steps": 5}),
    "sb3": Method("ours:stable_baselines", ("vec2dag.sb3",), own=True, library=True, toy={"n_steps": 2}),
    "sampling": Method("ours:sampling", own=True, library=True, toy={"seconds": 0.01}),
    # Of the data themselves, the truth included: measured by the runner and in no process of its own.
    "data": Method("evaluate:data_measures", own=True),
    "sortnregress": Method("ours:sortnregress"),
    "equal-variance": Method("ours:equal_variance", library=True),
    "equal-variance-bic": Method("ours:equal_variance_bic", library=True),
    "score-cam": Method("ours:score_cam", ("vec2dag", "sklearn.ensemble"), library=True),
    "nocurl": Method("baselines.nocurl:nocurl", toy={"iterations": 20}),
    "cosmo": Method("baselines.cosmo:cosmo", toy={"epochs": 2}),
    "rcl-og": Method("baselines.rcl_og:rcl_og", library=True, toy={"steps": 40, "samples": 5}),
    "rcl-og-gp": Method("ours:rcl_og_gp", library=True, toy={"steps": 40, "samples": 5}),
    "rcl-og-sampling": Method("ours:rcl_og_sampling", toy={"seconds": 0.01}),
    "adam": Method("baselines.vec2dag_adam:vec2dag_adam", toy={"max_steps": 20}),
    **{
        name: Method(f"peers:{peer.function.__name__}", peer.imports, peer=True, undirected=name in UNDIRECTED)
        for name, peer in peers.METHODS.items()
    },
}
