"""The search for the DAG with the highest score. It sees scores and graphs, never data."""

from .budget import Budget, Progress, Work
from .certify import Certificate, Refined, insertion_search
from .checkpoint import Checkpoint
from .discover import ALGORITHMS, discover
from .engines import A2C, PPO, REINFORCE, Conditional, NodeCredit, policy_gradient
from .exact import exact_search
from .gradient import SearchResult
from .local import LocalSearch
from .orders import Orders
from .policy import GaussianPolicy
from .relabel import Relabelling
from .start import STARTS, Start, equal_variance_order

__all__ = [
    "A2C",
    "ALGORITHMS",
    "PPO",
    "REINFORCE",
    "STARTS",
    "Budget",
    "Certificate",
    "Checkpoint",
    "Conditional",
    "GaussianPolicy",
    "LocalSearch",
    "NodeCredit",
    "Orders",
    "Progress",
    "Refined",
    "Relabelling",
    "SearchResult",
    "Start",
    "Work",
    "discover",
    "equal_variance_order",
    "exact_search",
    "insertion_search",
    "policy_gradient",
]
