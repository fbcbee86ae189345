"""Causal discovery by policy gradient over vectors that all decode to DAGs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from . import datasets, interop, metrics, missing, plot, prune, simulate
    from ._checks import DataWarning
    from .confidence.bootstrap import bootstrap
    from .confidence.effects import coefficients, effects
    from .confidence.posterior import Posterior, posterior
    from .confidence.shares import Bootstrap
    from .estimator import ALIAS
    from .graph import (
        cpdag,
        dag2vec,
        interventional_cpdag,
        is_dag,
        maximally_oriented,
        skeleton,
        topological_order,
        vec2dag,
        vec_dim,
    )
    from .interventions import Interventions
    from .jacobian import score_order
    from .knowledge import Knowledge, lagged
    from .moments import Moments
    from .scores import (
        BIC,
        Additive,
        BDeu,
        BGe,
        Criterion,
        DegenerateGaussian,
        GaussianProcess,
        LearnedProcess,
        LeastSquares,
        Linear,
        LocalCache,
        MultinomialBIC,
        Regression,
        Score,
        SklearnRegression,
    )
    from .search import (
        A2C,
        PPO,
        REINFORCE,
        Conditional,
        GaussianPolicy,
        LocalSearch,
        NodeCredit,
        Orders,
        Refined,
        SearchResult,
        exact_search,
        insertion_search,
        policy_gradient,
    )
    from .search.discover import discover

__all__ = [
    "A2C",
    "ALIAS",
    "BIC",
    "PPO",
    "REINFORCE",
    "Additive",
    "BDeu",
    "BGe",
    "Bootstrap",
    "Conditional",
    "Criterion",
    "DataWarning",
    "DegenerateGaussian",
    "GaussianPolicy",
    "GaussianProcess",
    "Interventions",
    "Knowledge",
    "LearnedProcess",
    "LeastSquares",
    "Linear",
    "LocalCache",
    "LocalSearch",
    "Moments",
    "MultinomialBIC",
    "NodeCredit",
    "Orders",
    "Posterior",
    "Refined",
    "Regression",
    "Score",
    "SearchResult",
    "SklearnRegression",
    "bootstrap",
    "coefficients",
    "cpdag",
    "dag2vec",
    "datasets",
    "discover",
    "effects",
    "exact_search",
    "insertion_search",
    "interop",
    "interventional_cpdag",
    "is_dag",
    "lagged",
    "maximally_oriented",
    "metrics",
    "missing",
    "plot",
    "policy_gradient",
    "posterior",
    "prune",
    "score_order",
    "simulate",
    "skeleton",
    "topological_order",
    "vec2dag",
    "vec_dim",
]

# Names are loaded on first use (PEP 562), so that the command line answers --help and typing errors at once.
_HOMES = {
    "_checks": ("DataWarning",),
    "confidence": ("Bootstrap", "Posterior", "bootstrap", "coefficients", "effects", "posterior"),
    "estimator": ("ALIAS",),
    "graph": (
        "cpdag",
        "dag2vec",
        "interventional_cpdag",
        "is_dag",
        "maximally_oriented",
        "skeleton",
        "topological_order",
        "vec2dag",
        "vec_dim",
    ),
    "interventions": ("Interventions",),
    "jacobian": ("score_order",),
    "knowledge": ("Knowledge", "lagged"),
    "moments": ("Moments",),
    "scores": (
        "BIC",
        "Additive",
        "BDeu",
        "BGe",
        "Criterion",
        "DegenerateGaussian",
        "GaussianProcess",
        "LearnedProcess",
        "LeastSquares",
        "Linear",
        "LocalCache",
        "MultinomialBIC",
        "Regression",
        "Score",
        "SklearnRegression",
    ),
    "search": (
        "A2C",
        "Conditional",
        "GaussianPolicy",
        "LocalSearch",
        "NodeCredit",
        "Orders",
        "PPO",
        "REINFORCE",
        "Refined",
        "SearchResult",
        "discover",
        "exact_search",
        "insertion_search",
        "policy_gradient",
    ),
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
