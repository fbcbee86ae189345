"""Tables with missing values (NaN): what can be made of them, and what each way assumes."""

from .gaussian import em, impute, log_density, log_likelihood
from .pairs import pairwise
from .treatments import TREATMENTS, Treatment

__all__ = ["TREATMENTS", "Treatment", "em", "impute", "log_density", "log_likelihood", "pairwise"]
