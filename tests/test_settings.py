"""Settings: checked when they are made and when they are set, and as scikit-learn's tools expect them."""

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from vec2dag import (
    A2C,
    ALIAS,
    BIC,
    PPO,
    REINFORCE,
    Conditional,
    GaussianProcess,
    LeastSquares,
    Linear,
    NodeCredit,
    Orders,
    SklearnRegression,
    prune,
)

SETTINGS = [
    BIC("equal", offset=0.5),
    LeastSquares(2.0),
    Linear(reference=True),
    GaussianProcess(alpha=2.0, bounds=(0.1, 10.0)),
    SklearnRegression(Ridge(alpha=3.0), cv=4),
    Orders(n_steps=7),
    Conditional(n_steps=7),
    NodeCredit(n_steps=7),
    PPO(n_steps=7),
    A2C(n_steps=7),
    REINFORCE(n_steps=7),
    prune.Threshold(0.1),
    prune.BIC(),
    prune.CAM(0.01),
    prune.CI(0.01, test="kci"),
]
every_kind = pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: type(settings).__name__)

BAD = [
    (BIC(), "variances", "some"),
    (BIC(), "variances", None),
    (BIC(), "offset", -1e-9),
    (BIC(), "offset", np.nan),
    (BIC(), "offset", np.inf),
    (BIC(), "offset", "0"),
    (BIC(), "offset", True),
    (LeastSquares(), "lambda0", -1),
    (LeastSquares(), "lambda0", np.nan),
    (LeastSquares(), "lambda0", "ln n"),
    (GaussianProcess(), "alpha", 0),
    (GaussianProcess(), "bounds", (2.0, 1.0)),
    (GaussianProcess(), "offset", -1.0),
    (GaussianProcess(), "max_rows", 1),
    (SklearnRegression(Ridge()), "estimator", Ridge),
    (SklearnRegression(Ridge()), "estimator", None),
    (Orders(), "n_steps", 0),
    (Orders(), "batch_size", 2.5),
    (PPO(), "learning_rate", 0.0),
    (PPO(), "n_steps", True),
    (PPO(), "batch_size", 1),
    (Conditional(), "bound", 0.0),
    (prune.Threshold(), "threshold", -0.1),
    (prune.CAM(), "alpha", 1.0),
    (prune.CAM(), "n_basis", 1),
    (prune.CI(), "test", "hsic"),
]


@pytest.mark.parametrize(("good", "name", "value"), BAD)
def test_bad_values_are_refused_by_name(good, name, value):
    with pytest.raises(ValueError, match=rf"^{name}\b"):
        type(good)(**good.get_params(deep=False) | {name: value})
    settings = clone(good)
    before = dict(vars(settings))
    with pytest.raises(ValueError, match=rf"^{name}\b"):
        settings.set_params(**{name: value})
    assert vars(settings) == before


def test_of_several_values_all_are_set_or_none():
    criterion = BIC("equal", offset=0.5)
    for bad in ({"variances": "unequal", "offset": -1}, {"offset": -1, "variances": "unequal"}):
        with pytest.raises(ValueError, match="offset must be"):
            criterion.set_params(**bad)
        assert criterion == BIC("equal", offset=0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'price'"):
        criterion.set_params(offset=0.1, price=2)
    assert criterion == BIC("equal", offset=0.5)
    assert criterion.set_params(variances="unequal", offset=0.1) is criterion
    assert criterion == BIC("unequal", offset=0.1)


@every_kind
def test_parameters_are_those_of_the_constructor(settings):
    parameters = settings.get_params(deep=False)
    assert set(parameters) == {field.name for field in dataclasses.fields(settings)}
    assert type(settings)(**parameters) == settings
    # One object, set to the values of another, is equal to it.
    other = pickle.loads(pickle.dumps(settings))
    assert other.set_params(**parameters) == settings


@every_kind
def test_clones_are_equal_and_apart(settings):
    copy = clone(settings)
    assert copy is not settings
    assert type(copy) is type(settings)
    assert repr(copy) == repr(settings)
    for name, value in settings.get_params(deep=False).items():
        assert getattr(copy, name) is not value or not hasattr(value, "set_params")


def test_the_estimator_reaches_into_its_settings():
    model = ALIAS(regression=GaussianProcess(), criterion=LeastSquares(), prune=prune.CAM())
    assert model.get_params()["regression__alpha"] == 1.0
    copy = clone(model).set_params(regression__alpha=2.0, criterion__lambda0=3.0, prune__n_basis=5)
    assert copy.regression == GaussianProcess(alpha=2.0)
    assert copy.criterion == LeastSquares(3.0)
    assert copy.prune == prune.CAM(n_basis=5)
    assert model.regression == GaussianProcess(), "a clone has settings of its own"
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        copy.set_params(regression__bounds=(1.0, 2.0), regression__alpha=-1.0)
    assert copy.regression == GaussianProcess(alpha=2.0)
    deep = ALIAS(regression=SklearnRegression(Ridge())).set_params(regression__estimator__alpha=5.0)
    assert deep.regression.estimator.alpha == 5.0


@pytest.mark.filterwarnings("ignore::vec2dag.DataWarning")
def test_grid_search_tries_settings(rng):
    X = rng.standard_normal((60, 3)) @ np.triu(np.ones((3, 3)))
    grid, folds = {"criterion__lambda0": [0.0, 500.0]}, KFold(2)
    search = GridSearchCV(ALIAS(LeastSquares(), prune=None, random_state=0), grid, cv=folds).fit(X)
    edges = []
    for mean, lambda0 in zip(search.cv_results_["mean_test_score"], grid["criterion__lambda0"], strict=True):
        scores = []
        for train, test in folds.split(X):
            model = ALIAS(LeastSquares(lambda0), prune=None, random_state=0).fit(X[train])
            scores.append(model.score(X[test]))
            edges.append(int(model.adjacency_matrix_.sum()))
        assert mean == pytest.approx(np.mean(scores))
    assert edges == [3, 3, 0, 0], "the parameter has reached the search"
