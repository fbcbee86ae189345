"""Causal discovery by policy gradient over vectors that all decode to DAGs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import datasets, metrics, prune, simulate
    from .cache import LocalCache
    from .engines import Settings
    from .estimator import ALIAS, DataWarning
    from .graph import cpdag, dag2vec, is_dag, skeleton, topological_order, vec2dag, vec_dim
    from .moments import Moments
    from .nonlinear import GaussianProcess, SklearnRegression
    from .policy import GaussianPolicy
    from .refine import Refined, exact_search, insertion_search
    from .scores import Criterion, Linear, Score, bic_ev, bic_nv, least_squares
    from .search import SearchResult, policy_gradient

__all__ = [
    "ALIAS",
    "Criterion",
    "DataWarning",
    "GaussianPolicy",
    "GaussianProcess",
    "Linear",
    "LocalCache",
    "Moments",
    "Refined",
    "Score",
    "SearchResult",
    "Settings",
    "SklearnRegression",
    "bic_ev",
    "bic_nv",
    "cpdag",
    "dag2vec",
    "datasets",
    "exact_search",
    "insertion_search",
    "is_dag",
    "least_squares",
    "metrics",
    "policy_gradient",
    "prune",
    "simulate",
    "skeleton",
    "topological_order",
    "vec2dag",
    "vec_dim",
]

# Names are loaded on first use (PEP 562), so that the command line answers --help and typing errors at once.
_HOMES = {
    "cache": ("LocalCache",),
    "estimator": ("ALIAS", "DataWarning"),
    "graph": ("cpdag", "dag2vec", "is_dag", "skeleton", "topological_order", "vec2dag", "vec_dim"),
    "engines": ("Settings",),
    "moments": ("Moments",),
    "nonlinear": ("GaussianProcess", "SklearnRegression"),
    "policy": ("GaussianPolicy",),
    "refine": ("Refined", "exact_search", "insertion_search"),
    "scores": ("Criterion", "Linear", "Score", "bic_ev", "bic_nv", "least_squares"),
    "search": ("SearchResult", "policy_gradient"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    else:
        try:
            value = import_module(f".{name}", __name__)
        except ModuleNotFoundError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
