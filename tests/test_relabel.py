"""Nodes under other numbers: what goes in and what comes out is in the old ones."""

import numpy as np
import pytest
from oracles import all_dags

from vec2dag import ALIAS, GaussianPolicy, Moments, Score, dag2vec, discover, vec2dag
from vec2dag.search import Relabelling


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_vectors_decode_to_the_graph_with_other_numbers(rng):
    order = rng.permutation(4)
    labels = Relabelling(order)
    for A in all_dags(4)[::7]:
        policy = labels.init(GaussianPolicy(dag2vec(A), np.zeros(10)))
        np.testing.assert_array_equal(policy.mode(), A[np.ix_(order, order)])
        np.testing.assert_array_equal(labels.init(A), A[np.ix_(order, order)])


def test_orders_are_of_the_same_nodes(rng):
    order, given = rng.permutation(6), rng.permutation(6)
    np.testing.assert_array_equal(order[Relabelling(order).init(given)], given)
    assert Relabelling(order).init("auto") == "auto"
    assert Relabelling(order).init([1, 2]) == [1, 2]


def test_what_is_found_comes_back(rng):
    X = rng.standard_normal((100, 5)) @ (np.eye(5) + np.triu(rng.normal(size=(5, 5)), 1))
    order = rng.permutation(5)
    found = discover(Score(X[:, order]), rng=np.random.default_rng(1))
    back = Relabelling(order).restored(found)
    assert float(Score(X)(back.A)) == pytest.approx(found.score, rel=1e-9)
    np.testing.assert_array_equal(back.policy.mode(), back.mode)


def test_the_canonical_order_follows_the_columns(rng):
    X = rng.standard_normal((80, 7)) @ rng.normal(size=(7, 7))
    order = Moments.of(X).canonical_order()
    shuffled = rng.permutation(7)
    other = Moments.of(X[:, shuffled] * rng.uniform(1e-3, 1e3, 7) + rng.normal(size=7)).canonical_order()
    np.testing.assert_array_equal(shuffled[other], order)
    taken = Moments.of(X).taken(order)
    np.testing.assert_allclose(taken.factor, Moments.of(X[:, order]).factor, atol=1e-10)
    assert taken.names == tuple(f"x{k}" for k in order)


@pytest.mark.parametrize("init", ["matrix", "order"])
def test_a_given_start_is_of_the_columns_as_they_are(rng, init):
    """With no step to make, what comes back is what was given."""
    X = rng.standard_normal((50, 4)) @ rng.normal(size=(4, 4))
    A = np.zeros((4, 4), np.uint8)
    A[3, 1] = A[1, 0] = A[0, 2] = 1
    given = A if init == "matrix" else np.array([3, 1, 0, 2])
    model = ALIAS("bic-nv", init=given, random_state=0).fit(X)
    assert model.search_.init == "given"
    np.testing.assert_array_equal(vec2dag(model.search_.policy.mu), model.search_.mode)


def test_histories_and_scores_of_regressors_are_of_the_right_columns(rng):
    from sklearn.linear_model import LinearRegression

    X = rng.standard_normal((60, 4)) @ (np.eye(4) + np.triu(rng.normal(size=(4, 4)), 1)) * [1.0, 5.0, 0.2, 3.0]
    linear = ALIAS("bic-nv", random_state=0, prune=None).fit(X)
    other = ALIAS("bic-nv", LinearRegression(), random_state=0, prune=None).fit(X)
    assert other.score_ == pytest.approx(linear.score_, rel=1e-9)
    assert other.score(X[:20]) == pytest.approx(linear.score(X[:20]), rel=1e-6)
