"""Graph scores: regressions, criteria, and the scores that they make together."""

from .additive import Additive, AdditiveOnTable
from .bge import BGe, NormalWishart, NormalWishartOnTable
from .blocks import Blocks, BlocksOnTable, DegenerateGaussian
from .costs import Costed
from .counts import BDeu, ConditionalTable, Counts, CountsOnTable, MultinomialBIC
from .criteria import AUTO, BIC, CRITERIA, Criterion, LeastSquares, as_criterion, is_criterion, table_for
from .gp import GaussianProcess
from .learned import LearnedProcess
from .linear import Linear, LinearOnTable
from .local import LocalCache, LocalScores
from .regimes import Regime, Regimes
from .regression import Regression
from .regressors import SklearnRegression
from .score import REGRESSIONS, FunctionScore, GraphScore, Score, as_score, describe, needs_local

__all__ = [
    "AUTO",
    "BIC",
    "CRITERIA",
    "REGRESSIONS",
    "Additive",
    "AdditiveOnTable",
    "BDeu",
    "BGe",
    "Blocks",
    "BlocksOnTable",
    "ConditionalTable",
    "Costed",
    "Counts",
    "CountsOnTable",
    "Criterion",
    "DegenerateGaussian",
    "FunctionScore",
    "GaussianProcess",
    "GraphScore",
    "LearnedProcess",
    "LeastSquares",
    "Linear",
    "LinearOnTable",
    "LocalCache",
    "LocalScores",
    "MultinomialBIC",
    "NormalWishart",
    "NormalWishartOnTable",
    "Regime",
    "Regimes",
    "Regression",
    "Score",
    "SklearnRegression",
    "as_criterion",
    "as_score",
    "describe",
    "is_criterion",
    "needs_local",
    "table_for",
]
