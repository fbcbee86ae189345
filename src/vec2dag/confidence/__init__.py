"""How sure the edges are."""

from .bootstrap import bootstrap
from .effects import Coefficients, Effect, coefficients, effects, total_effects
from .posterior import Posterior, posterior
from .shares import Bootstrap, PairTable, Sample, Stability

__all__ = [
    "Bootstrap",
    "Coefficients",
    "Effect",
    "PairTable",
    "Posterior",
    "Sample",
    "Stability",
    "bootstrap",
    "coefficients",
    "effects",
    "posterior",
    "total_effects",
]
