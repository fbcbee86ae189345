"""Causal discovery by policy gradient over vectors that all decode to DAGs."""

__version__ = "0.1.0"

from . import datasets, metrics, prune, simulate
from .estimator import ALIAS, DataWarning
from .graph import cpdag, dag2vec, is_dag, skeleton, topological_order, vec2dag, vec_dim
from .moments import Moments
from .refine import Refined, exact_search, insertion_search
from .scores import Score, bic_ev, bic_nv, least_squares
from .search import SearchResult, policy_gradient

__all__ = [
    "ALIAS",
    "DataWarning",
    "Moments",
    "Refined",
    "Score",
    "SearchResult",
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
