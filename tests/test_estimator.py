"""The estimator: the scikit-learn contract, names, bad input, and the graphs it finds."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from vec2dag import ALIAS


@parametrize_with_checks([ALIAS(n_steps=20)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
