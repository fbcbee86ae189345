"""The estimator: the scikit-learn contract, names, bad input, and the graphs it finds."""

import inspect
import json
import math
import pickle
import time
import warnings
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import all_dags, graph_score, sine
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from vec2dag import (
    ALIAS,
    BIC,
    PPO,
    Conditional,
    DataWarning,
    GaussianPolicy,
    GaussianProcess,
    LeastSquares,
    Linear,
    Moments,
    Orders,
    Score,
    cpdag,
    effects,
    is_dag,
    metrics,
    simulate,
)
from vec2dag import prune as pruning
from vec2dag.confidence.shares import PairTable
from vec2dag.edges import EdgeTable, aligned
from vec2dag.files.graphs import read_graph
from vec2dag.prune import prune_bic, prune_cam, prune_ci, prune_linear
from vec2dag.scores.counts import ConditionalTable

# a -> c <- b, c -> d: the only member of its Markov equivalence class
TRUTH = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
CRITERIA = ("bic-nv", "bic-ev", "ls")


def quick(**parameters):
    """With the paper's criterion for unequal variances, which the oracles compute."""
    return ALIAS(**({"criterion": "bic-nv", "random_state": 0} | parameters))


def regressions(X, A):
    """Coefficients (d, d) of every column on its parents, by scikit-learn."""
    W = np.zeros(A.shape)
    for j in np.flatnonzero(A.any(axis=0)):
        parents = np.flatnonzero(A[:, j])
        W[parents, j] = LinearRegression().fit(X[:, parents], X[:, j]).coef_
    return W


@pytest.fixture
def X():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 400))
    c = a - b + rng.standard_normal(400)
    return np.column_stack([a, b, c, c + rng.standard_normal(400)])


@pytest.fixture
def dense():
    """Eight mixed columns, on which short searches end at different graphs."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((300, 8)) @ rng.standard_normal((8, 8))


@parametrize_with_checks([ALIAS(), ALIAS(criterion=BIC("equal"), algorithm=Conditional(n_steps=20))])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# --- what is found ---


@pytest.mark.parametrize("criterion", CRITERIA)
def test_finds_the_best_of_all_graphs(X, criterion):
    """The optimum over all 543 DAGs, by regressions on the data; the truth, as all noises have variance 1."""
    model = quick(criterion=criterion).fit(X)
    values = {A.tobytes(): graph_score(X, A, criterion) for A in all_dags(4)}
    assert model.score_ == pytest.approx(max(values.values()), rel=1e-10)
    assert model.score_ == pytest.approx(values[model.adjacency_raw_.tobytes()], rel=1e-10)
    np.testing.assert_array_equal(model.adjacency_matrix_, TRUTH)


def test_the_default_charges_for_many_columns(rng):
    """Independent columns: most of the chance edges that the paper's price lets in are kept out."""
    tables = rng.standard_normal((6, 100, 20))
    assert ALIAS().fit(tables[0]).criterion_ == BIC(gamma=1.0)
    default = sum(int(ALIAS(random_state=0).fit(noise).adjacency_matrix_.sum()) for noise in tables)
    plain = sum(int(quick().fit(noise).adjacency_matrix_.sum()) for noise in tables)
    assert plain > 30
    assert default < 0.2 * plain
    model = ALIAS(random_state=0).fit(tables[0, :, :2] @ [[1.0, 1.0], [0.0, 1.0]])
    assert model.free_.any(), "directions are as free as with the paper's price"


def test_attributes_describe_one_graph(X):
    names = ["north", "1", "c d", "größe"]
    model = quick().fit(pd.DataFrame(X, columns=names))
    A = model.adjacency_matrix_
    assert A.dtype == np.uint8
    graph = model.graph_
    assert isinstance(graph, nx.DiGraph)
    assert nx.is_directed_acyclic_graph(graph)
    assert list(graph.nodes) == names == model.feature_names_in_.tolist()
    np.testing.assert_array_equal(nx.to_numpy_array(graph, weight=None), A)
    position = np.argsort(model.causal_order_)
    assert all(position[i] < position[j] for i, j in np.argwhere(A))
    assert model.n_features_in_ == 4
    assert model.n_iter_ == len(model.history_["best_score"]) == len(model.history_["seconds"])
    assert model.history_["best_score"][-1] <= model.score_ + 1e-12
    np.testing.assert_allclose(model.weights_, regressions(X, A), rtol=1e-9)
    for u, v, data in graph.edges(data=True):
        assert data["weight"] == model.weights_[names.index(u), names.index(v)]


def test_directions_are_free_where_the_class_leaves_them_open(X):
    chain = X[:, [0, 2, 3]]
    model = quick().fit(chain)
    np.testing.assert_array_equal(model.cpdag_, cpdag(model.adjacency_matrix_))
    np.testing.assert_array_equal(model.free_, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert {data["direction"] for *_, data in model.graph_.edges(data=True)} == {"free"}
    v = quick().fit(X)
    assert not v.free_.any()
    assert {data["direction"] for *_, data in v.graph_.edges(data=True)} == {"oriented"}


@pytest.mark.parametrize("other", ["bic-ev", "ls", LeastSquares(0.5), lambda A: -float(np.sum(A))])
def test_another_score_drops_the_equivalence_class(X, other):
    model = quick().fit(X)
    assert hasattr(model, "cpdag_")
    model.set_params(criterion=other).fit(X)
    assert not hasattr(model, "cpdag_")
    assert model.free_.shape == (4, 4)
    assert not model.free_.any()
    assert hasattr(model.set_params(criterion=BIC()).fit(X), "cpdag_")
    reference = Score(X, Linear(reference=True))
    assert not hasattr(model.set_params(criterion=reference).fit(X), "cpdag_"), (
        "uncentred regressions tell members apart"
    )


def test_units_do_not_matter_to_unequal_variances(X):
    scale = np.array([1e-3, 5.0, 40.0, 1e4])
    with warnings.catch_warnings():
        # Scales mislead nobody who does not read them.
        warnings.simplefilter("error")
        model = quick().fit(X * scale)
    np.testing.assert_array_equal(model.adjacency_matrix_, TRUTH)
    with pytest.warns(DataWarning, match="different scales"):
        quick(criterion="bic-ev").fit(X * scale)
    plain = quick().fit(X)
    np.testing.assert_allclose(model.weights_, plain.weights_ / scale[:, None] * scale, rtol=1e-8)


def test_standardize_divides_by_standard_deviations(X):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = quick(standardize=True, criterion="bic-ev").fit(X)
    assert model.score_ == pytest.approx(graph_score(Z, model.adjacency_raw_, "bic-ev"), rel=1e-9)
    np.testing.assert_allclose(model.weights_, regressions(Z, model.adjacency_matrix_), rtol=1e-9)


def test_the_order_of_the_columns_does_not_decide_the_score(X):
    reached = quick().fit(X).score_
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(4)
        model = quick().fit(X[:, order])
        assert model.score_ == pytest.approx(reached, rel=1e-12)
        np.testing.assert_array_equal(model.cpdag_, TRUTH[np.ix_(order, order)])


# --- what goes in ---


def test_names_of_frames_are_kept(X):
    names = ["w", "x", "y", "z"]
    array = quick().fit(X)
    assert not hasattr(array, "feature_names_in_")
    assert list(array.graph_.nodes) == ["x0", "x1", "x2", "x3"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = quick().fit(frame)
        assert model.feature_names_in_.tolist() == list(model.graph_.nodes) == names
        np.testing.assert_array_equal(model.adjacency_matrix_, array.adjacency_matrix_)
    model.fit(X)
    assert list(model.graph_.nodes) == ["x0", "x1", "x2", "x3"], "no name of an earlier table stays"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ([10, 20, 30, 40], ["10", "20", "30", "40"]),
        (pd.RangeIndex(4), ["0", "1", "2", "3"]),
        (pd.MultiIndex.from_product([["a", "b"], [1, 2]]), ["('a', 1)", "('a', 2)", "('b', 1)", "('b', 2)"]),
    ],
)
def test_columns_that_are_no_strings_become_strings(X, columns, names):
    assert list(quick().fit(pd.DataFrame(X, columns=columns)).graph_.nodes) == names


def test_names_may_be_given(X):
    for data in (X, Moments.of(X), pd.DataFrame(X, columns=list("abcd"))):
        model = quick().fit(data, names=list("wxyz"))
        assert list(model.graph_.nodes) == model.feature_names_in_.tolist() == list("wxyz")
    with pytest.raises(ValueError, match=r"one entry per column \(4\), got 3"):
        quick().fit(X, names="abc")
    with pytest.raises(ValueError, match="duplicate column names: 'a'"):
        quick().fit(X, names="abca")


@pytest.mark.parametrize("parameters", [{}, {"criterion": "bic-ev"}, {"standardize": True}])
def test_moments_give_the_graph_of_the_array(X, dense, parameters):
    names = list("abcdefgh")
    one, other = quick(**parameters).fit(dense), quick(**parameters).fit(Moments.of(dense, names))
    np.testing.assert_array_equal(one.adjacency_matrix_, other.adjacency_matrix_)
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert list(other.graph_.nodes) == names
    chunks = Moments.of(X[:100]).merge(Moments.of(X[100:]))
    one, other = quick(**parameters).fit(X), quick(**parameters).fit(chunks)
    assert one.score_ == pytest.approx(other.score_, rel=1e-10)


def test_moments_too_small_are_refused(X):
    with pytest.raises(ValueError, match="200 and 1"):
        quick().fit(Moments.of(X[:200, :1]))
    with pytest.raises(ValueError, match="1 and 4"):
        quick().fit(Moments.of(X[:1]))
    with pytest.raises(ValueError, match="'x2' constant"):
        quick().fit(Moments.of(X * [1, 1, 0, 1]))


@pytest.mark.parametrize("parameters", [{}, {"standardize": True}, {"criterion": "bic-ev", "prune": "linear"}])
def test_inputs_are_not_modified(X, parameters):
    before = X.copy()
    init = TRUTH.copy()
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    moments = Moments.of(X)
    factor = moments.factor.copy()
    X.setflags(write=False)
    model = quick(init=init, **parameters).fit(X)
    for data in (frame, moments, np.asfortranarray(X)):
        quick(init=init, **parameters).fit(data)
    model.score(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(frame, before)
    np.testing.assert_array_equal(init, TRUTH)
    np.testing.assert_array_equal(moments.factor, factor)
    assert model.get_params()["init"] is init


def test_kinds_of_tables_give_the_same_graph(X):
    whole = np.round(X * 100)
    expected = quick().fit(whole).adjacency_matrix_
    for data in (whole.astype(int), whole.astype(np.float32), whole.tolist(), np.asfortranarray(whole)):
        np.testing.assert_array_equal(quick().fit(data).adjacency_matrix_, expected)


# --- bad tables ---


def test_columns_that_are_not_numeric_are_named(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    for values in (["u", "v"] * 200, pd.Categorical(["u", "v"] * 200)):
        with pytest.raises(ValueError, match=r"and of the columns 'b' are categories"):
            quick().fit(frame.assign(b=values))
    with pytest.raises(ValueError, match=r"not numeric: 'b' \(datetime64.*; days since the first are numbers\)$"):
        quick().fit(frame.assign(b=pd.date_range("2020", periods=400)))
    with pytest.raises(ValueError, match=r"and of the columns 'b', 'd' are categories"):
        quick().fit(pl.DataFrame(X, schema=list("abcd")).with_columns(b=pl.lit("u"), d=pl.lit("v")))


def test_bad_values_are_named(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"'b' \(400 NaN\), 'c' \(1 inf\)"):
        quick().fit(frame.assign(b=np.nan, c=np.r_[np.inf, X[1:, 2]]))
    with pytest.raises(ValueError, match=r"'d' \(1 NaN\)"):
        quick().fit(frame.assign(d=pd.array([pd.NA, *X[1:, 3]], dtype="Float64")))
    with pytest.raises(ValueError, match=r"constant.*'a'"):
        quick().fit(frame.assign(a=1.5))
    with pytest.raises(ValueError, match=r"duplicate column names: 'a' \(2 times\)"):
        quick().fit(frame.set_axis(list("abca"), axis=1))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_dependent_columns_are_named_and_the_fit_ends(X, criterion):
    duplicated = np.column_stack([X, X[:, 0]])
    with pytest.warns(DataWarning, match="Duplicated columns: 'x0' = 'x4'"):
        model = quick(criterion=criterion).fit(duplicated)
    assert is_dag(model.adjacency_matrix_)
    sum_of_two = np.column_stack([X, X[:, 0] + X[:, 1]])
    with pytest.warns(DataWarning, match="dependent.*'x4'|'x4'.*dependent"):
        model = quick(criterion=criterion).fit(sum_of_two)
    assert np.isfinite(model.score_)
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9, 1e-12])
def test_near_duplicates_keep_everything_finite(X, noise):
    near = np.column_stack([X, X[:, 0] + noise * np.random.default_rng(0).standard_normal(400)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = quick().fit(near)
    assert is_dag(model.adjacency_matrix_)
    assert np.isfinite(model.score_)
    assert np.isfinite(model.weights_).all()
    assert model.adjacency_matrix_[0, 4] + model.adjacency_matrix_[4, 0] == 1, "the copies are joined"


@pytest.mark.parametrize("rows", [2, 3, 7])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_fewer_rows_than_columns(dense, rows, criterion):
    with pytest.warns(DataWarning, match=f"{rows} rows for 8 columns"):
        model = quick(criterion=criterion).fit(dense[:rows])
    assert is_dag(model.adjacency_matrix_)
    assert np.isfinite(model.score_)
    assert np.isfinite(model.weights_).all()


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
        elements=st.one_of(
            st.floats(-1e3, 1e3), st.sampled_from([0.0, 1.0, 2.0, 1e-150, 1e150, 1e9]), st.floats(width=64)
        ),
    )
)
@settings(max_examples=200, deadline=None)
def test_any_table_is_refused_or_fitted(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            model = quick(algorithm=Orders(n_steps=2, batch_size=4)).fit(X)
        except ValueError:
            return
    assert is_dag(model.adjacency_matrix_)
    assert np.isfinite(model.score_)
    assert np.isfinite(model.weights_).all()


# --- scores, starts and pruning that users bring ---


def test_any_callable_can_be_the_score(X):
    target = np.triu(np.ones((4, 4)), 1)
    seen = []

    def closeness(A):
        seen.append((A.shape, is_dag(A)))
        return -metrics.shd(target, A)

    model = quick(criterion=closeness, algorithm=PPO(n_steps=200)).fit(X)
    np.testing.assert_array_equal(model.adjacency_matrix_, target)
    assert model.score_ == 0
    assert set(seen) == {((4, 4), True)}


def test_a_score_object_is_used_as_it_is(X):
    score = Score(X, "linear", LeastSquares(3.0))
    model = quick(criterion=score).fit(X)
    assert model.score_ == pytest.approx(graph_score(X, model.adjacency_raw_, "ls", lambda0=3.0), rel=1e-10)
    criterion = quick(criterion=LeastSquares(3.0)).fit(X)
    assert criterion.score_ == pytest.approx(model.score_, rel=1e-10)
    with pytest.raises(ValueError, match="for 4 nodes, d is 3"):
        quick(criterion=score).fit(X[:, :3])


def test_scores_that_are_no_numbers_are_refused(X):
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        quick(criterion=lambda A: float("nan")).fit(X)


def test_an_interrupted_fit_keeps_the_best_graph(X):
    calls = []

    def score(A):
        calls.append(A.copy())
        if len(calls) == 500:
            raise KeyboardInterrupt
        return -float(A.sum()) if len(calls) < 500 else 0.0

    with pytest.warns(UserWarning, match="interrupted"):
        model = quick(criterion=score, refine=False).fit(X)
    assert model.score_ == max(-float(A.sum()) for A in calls[:499])
    assert model.search_.stopped == "interrupted"


def test_pruning(X):
    weak = X.copy()
    weak[:, 3] = 0.1 * X[:, 2] + 0.01 * X[:, 3]
    for parameters, edges in (
        ({}, 3),
        ({"prune": None}, 3),
        ({"prune": "linear"}, 2),
        ({"prune": pruning.Threshold(0.05)}, 3),
    ):
        model = quick(**parameters).fit(weak)
        assert model.adjacency_raw_.sum() == 3
        assert model.adjacency_matrix_.sum() == edges
    equal = quick(criterion="bic-ev").fit(X)
    np.testing.assert_array_equal(equal.adjacency_matrix_, prune_linear(X, equal.adjacency_raw_, 0.3))


@pytest.mark.parametrize(
    ("parameters", "pruner", "explain"),
    [
        ({"prune": pruning.Threshold(0.8)}, partial(prune_linear, threshold=0.8), "coefficient"),
        (
            {"prune": pruning.Threshold(0.5, standardised=True)},
            partial(prune_linear, threshold=0.5, standardised=True),
            "standardised coefficient",
        ),
        ({"prune": "bic"}, prune_bic, "BIC gain"),
        ({"prune": pruning.CAM(alpha=0.01, n_basis=5)}, partial(prune_cam, alpha=0.01, n_basis=5), "p-value"),
        ({"prune": pruning.CI(0.2)}, partial(prune_ci, alpha=0.2), "p-value"),
        ({"prune": "ci"}, prune_ci, "p-value"),
        ({"prune": "auto", "regression": "gp"}, prune_cam, "p-value"),
    ],
)
def test_pruning_says_why_of_every_edge(rng, parameters, pruner, explain):
    x = rng.standard_normal(150)
    X = np.column_stack([x, x + 0.5 * rng.standard_normal(150), np.sin(2 * x) + 0.5 * rng.standard_normal(150)])
    model = quick(init=np.triu(np.ones((3, 3)), 1), **parameters).fit(X)
    table = {(v.source, v.target): v for v in model.prune_table_}
    assert sorted(map(list, table)) == np.argwhere(model.adjacency_raw_).tolist()
    np.testing.assert_array_equal(model.adjacency_matrix_, pruner(X, model.adjacency_raw_))
    assert {(v.kept, v.statistic) for v in table.values()} <= {(True, explain), (False, explain)}
    assert all(model.adjacency_matrix_[edge] == v.kept for edge, v in table.items())
    assert quick(prune=None).fit(X).prune_table_ == []


def test_any_callable_can_prune(X):
    def keep_first(data, A):
        np.testing.assert_array_equal(data, X)
        A[1:] = 0
        return A

    model = quick(prune=keep_first).fit(X)
    np.testing.assert_array_equal(model.adjacency_raw_, TRUTH)
    np.testing.assert_array_equal(model.adjacency_matrix_, TRUTH * [[1], [0], [0], [0]])
    np.testing.assert_array_equal(model.weights_ != 0, model.adjacency_matrix_)


@pytest.mark.parametrize(
    ("prune", "message"),
    [
        (lambda X, A: A[:2, :2], r"graph of shape \(4, 4\), got \(2, 2\)"),
        (lambda X, A: A.sum(axis=0), r"the result of prune must have shape"),
        (lambda X, A: np.ones((4, 4)) - np.eye(4), "may only remove edges; it has added 'x0' -> 'x1'"),
        (lambda X, A: A.T, "may only remove edges; it has added 'x2' -> 'x0'"),
        (lambda X, A: np.eye(4), "self-loops"),
    ],
)
def test_pruning_must_return_a_graph(X, prune, message):
    with pytest.raises(ValueError, match=message):
        quick(prune=prune).fit(X)


def test_the_search_starts_from_a_graph():
    """Among the DAGs of 12 nodes a single step from elsewhere would never meet this one."""
    rng = np.random.default_rng(0)
    target = np.triu(rng.random((12, 12)) < 0.3, 1).astype(int)
    order = rng.permutation(12)
    target = target[np.ix_(order, order)]
    short = PPO(n_steps=1, batch_size=2)
    model = quick(criterion=lambda A: -metrics.shd(target, A), algorithm=short, init=target, refine=False)
    model.fit(rng.standard_normal((50, 12)))
    np.testing.assert_array_equal(model.adjacency_matrix_, target)


def test_the_search_starts_from_an_order(X):
    np.testing.assert_array_equal(quick(init=[1, 0, 2, 3]).fit(X).adjacency_matrix_, TRUTH)
    for order in ([2, 0, 3, 1], np.array([1, 0, 2, 3]), [3.0, 2.0, 1.0, 0.0]):
        # a constant score has no gradient, so that the policy stays where it started
        model = quick(init=order, criterion=lambda A: 0.0, algorithm=PPO(n_steps=2), refine=False).fit(X)
        np.testing.assert_array_equal(np.argsort(model.search_.policy.mu[:4]), order)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("warm", "init='warm' is unknown; allowed: 'auto', 'random'"),
        (None, "'auto', 'random', 'score', an adjacency matrix"),
        ([0, 1, 1, 2], r"order of 4 columns, got \[0, 1, 1, 2\]"),
        ([1, 2, 3, 4], "order of 4 columns"),
        (np.zeros((3, 3)), "adjacency matrix"),
        (np.ones((4, 4)), "init has self-loops"),
        (np.ones((4, 4)) - np.eye(4), "init has a directed cycle"),
    ],
)
def test_bad_starts_are_refused(X, init, message):
    with pytest.raises(ValueError, match=message):
        quick(init=init).fit(X)


# --- options ---


@pytest.mark.parametrize(
    ("parameters", "allowed"),
    [
        ({"criterion": "aic"}, ["'bic-nv'", "'bic-ev'", "'ls'"]),
        ({"criterion": 3}, ["'bic-nv'", "'bic-ev'", "'ls'", "Score", "callable"]),
        ({"regression": "ridge"}, ["'linear'"]),
        ({"algorithm": "sgd"}, ["'auto'", "'ppo'", "'a2c'", "'reinforce'"]),
        ({"algorithm": 3}, ["'auto'", "'orders'", "PPO(n_steps=1000)"]),
        ({"init": "warm"}, ["'auto'", "'random'"]),
        ({"prune": "lasso"}, ["'auto'", "'linear'"]),
        ({"prune": 3}, ["'auto'", "'linear'", "None", "callable"]),
        ({"prune": pruning.CAM}, ["class", "calling"]),
        ({"time_budget": 0}, ["positive number"]),
        ({"n_jobs": 0}, ["None", "-1"]),
        ({"random_state": -1}, ["None", "at least 0", "Generator"]),
        ({"random_state": "seed"}, ["None", "at least 0", "Generator"]),
    ],
)
def test_impossible_options_name_themselves_and_what_is_allowed(X, parameters, allowed):
    with pytest.raises(ValueError, match=next(iter(parameters))) as caught:
        quick(**parameters).fit(X)
    assert all(value in str(caught.value) for value in allowed)


@pytest.mark.parametrize("seed", [lambda: 5, lambda: np.random.default_rng(5), lambda: np.random.RandomState(5)])
def test_the_same_seed_gives_the_same_answer(dense, seed):
    one, other = (quick(random_state=seed(), algorithm=Orders(n_steps=3)).fit(dense) for _ in range(2))
    np.testing.assert_array_equal(one.adjacency_matrix_, other.adjacency_matrix_)
    np.testing.assert_array_equal(one.history_["mean_reward"], other.history_["mean_reward"])
    another = quick(random_state=6, algorithm=Orders(n_steps=3)).fit(dense)
    assert not np.array_equal(one.history_["mean_reward"], another.history_["mean_reward"])


def test_the_global_random_state_is_left_alone(dense):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for seed in (0, None):
        quick(random_state=seed, algorithm=Orders(n_steps=3)).fit(dense)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_answer_does_not_depend_on_the_number_of_threads(criterion):
    X = np.random.default_rng(0).standard_normal((200, 20)).cumsum(axis=1)
    one, *others = (quick(criterion=criterion, n_jobs=jobs).fit(X) for jobs in (1, 2, 3, -1))
    for other in others:
        np.testing.assert_array_equal(one.adjacency_matrix_, other.adjacency_matrix_)
        np.testing.assert_array_equal(one.history_["mean_reward"], other.history_["mean_reward"])


def test_a_time_budget_ends_a_search_that_would_go_on(dense):
    endless = PPO(n_steps=10**9, patience=10**9)
    model = quick(criterion="bic-ev", algorithm=endless, time_budget=0.2).fit(dense)
    assert model.search_.stopped == "time"
    assert not model.search_.certified
    assert 0 < model.n_iter_ < 10**9
    assert model.run()["stopped"] == "time"
    assert is_dag(model.adjacency_matrix_)


def test_refine_and_standardize_have_their_effect(dense):
    """The gradient alone, cut short, ends below what refinement makes of it; without units scores are other numbers."""
    short = Conditional(n_steps=2)
    rough = quick(algorithm=short, refine=False).fit(dense)
    refined = quick(algorithm=short).fit(dense)
    assert rough.score_ < refined.score_
    assert (rough.search_.certified, refined.search_.certified) == (False, True)
    assert quick(standardize=True).fit(dense).score_ != pytest.approx(refined.score_)


# --- as scikit-learn uses it ---


def likelihood(train, test, A, regress):
    """Mean log density of the rows of ``test`` when every node is regressed on its parents in ``train``."""
    total = np.zeros(len(test))
    for j in range(len(A)):
        parents = np.flatnonzero(A[:, j])
        fitted = regress(train[:, parents], train[:, j]) if len(parents) else (lambda Z, j=j: train[:, j].mean())
        deviation = np.sqrt(((train[:, j] - fitted(train[:, parents])) ** 2).mean())
        total += norm.logpdf(test[:, j], fitted(test[:, parents]), deviation)
    return total.mean()


def line(Z, y):
    return LinearRegression().fit(Z, y).predict


@pytest.mark.parametrize("criterion", ["bic-nv", "ebic-nv", "bic-ev", LeastSquares(2.0)])
@pytest.mark.parametrize("standardize", [False, True])
def test_score_is_the_likelihood_of_rows_that_were_not_fitted(X, criterion, standardize):
    table = X * [1.0, 10.0, 0.1, 1.0] + 5.0
    model = quick(criterion=criterion, standardize=standardize).fit(table[:300])
    for test in (table[300:], table[:300], table[399:]):
        expected = likelihood(table[:300], test, model.adjacency_matrix_, line)
        assert model.score(test) == pytest.approx(expected, rel=1e-9)


def test_score_can_be_cross_validated_and_compares_models(X):
    values = cross_val_score(quick(), X, cv=2)
    assert values[1] == pytest.approx(likelihood(X[:200], X[200:], TRUTH, line), rel=1e-9)
    frame = pd.DataFrame(X[:300], columns=list("wxyz"))
    model = quick().fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.score(frame[list("zyxw")])
    independent = quick(prune=lambda X, A: 0 * A).fit(frame)
    assert independent.score(X[300:]) < model.score(X[300:])


def test_score_of_regressors_predicts_other_rows():
    data = sine(200)
    train, test = data[:150] * [1.0, 30.0, 1.0, 0.1] + 3.0, data[150:] * [1.0, 30.0, 1.0, 0.1] + 3.0
    tree = DecisionTreeRegressor(min_samples_leaf=10, random_state=0)
    model = quick(regression=tree, prune=None).fit(train)
    expected = likelihood(train, test, model.adjacency_matrix_, lambda Z, y: clone(tree).fit(Z, y).predict)
    assert model.score(test) == pytest.approx(expected, rel=1e-9)
    curved = quick(regression="gp", prune=None).fit(train)
    assert curved.score(test) > quick(prune=None).fit(train).score(test)


def test_score_refuses_criteria_without_regressions_of_other_rows(X):
    for criterion in (lambda A: -float(np.sum(A)), Score(X)):
        model = quick(criterion=criterion, refine=False).fit(X)
        with pytest.raises(ValueError, match=r"score\(X\) needs a criterion such as 'bic-nv'"):
            model.score(X)


def test_settings_are_parameters_of_the_estimator(X):
    model = quick(regression=GaussianProcess(), algorithm=PPO(), prune=pruning.CAM())
    model.set_params(regression__alpha=2.0, algorithm__n_steps=7, prune__alpha=0.5)
    assert (model.regression.alpha, model.algorithm.n_steps, model.prune.alpha) == (2.0, 7, 0.5)
    copy = clone(model)
    assert copy.regression == model.regression
    assert copy.regression is not model.regression
    search = GridSearchCV(quick(criterion=LeastSquares()), {"criterion__lambda0": [1.0, 1e6]}, cv=2).fit(X)
    # Edges that cost a million are worth nothing, on held out rows too.
    assert search.best_params_ == {"criterion__lambda0": 1.0}


@pytest.mark.parametrize(
    ("parameter", "axis"),
    [
        ("score", "criterion="),
        ("backend", "algorithm=vec2dag.sb3.PPO("),
        ("n_steps", "algorithm="),
        ("batch_size", "algorithm="),
        ("learning_rate", "algorithm="),
        ("entropy", "algorithm="),
        ("bound", "algorithm="),
        ("clip", "algorithm=PPO(clip="),
        ("stall", "algorithm=Orders(stall="),
        ("prune_threshold", "prune=vec2dag.prune.Threshold("),
        ("prune_alpha", "prune=vec2dag.prune.CAM("),
        ("threshold", "prune=prune.Threshold("),
        ("lambda0", "criterion=LeastSquares("),
        ("variances", "criterion=BIC("),
        ("gamma", "criterion=BIC("),
        ("discount", "criterion=BIC("),
        ("cv", "regression=SklearnRegression("),
        ("median_scale", "regression=GaussianProcess("),
        ("reference", "regression=Linear("),
    ],
)
def test_a_misplaced_parameter_is_sent_to_its_axis(parameter, axis):
    for refuse in (lambda: ALIAS(**{parameter: 1}), lambda: ALIAS().set_params(**{parameter: 1})):
        with pytest.raises(TypeError, match=f"ALIAS has no parameter '{parameter}'") as caught:
            refuse()
        assert axis in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_parameter_that_nobody_knows_is_python_s_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        ALIAS(nonsense=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        ALIAS().set_params(nonsense=1)


def test_there_are_no_more_parameters_than_these():
    assert list(inspect.signature(ALIAS).parameters) == [
        "criterion", "regression", "algorithm", "prune", "init", "refine", "standardize", "categorical", "missing",
        "knowledge", "time_budget", "checkpoint", "n_jobs", "random_state", "verbose",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "bad", [{"prune": lambda X, A: 1 / 0}, {"prune": lambda X, A: A.T}, {"criterion": "aic"}, {"regression": "ridge"}]
)
def test_a_failed_refit_leaves_the_estimator_as_it_was(X, dense, bad):
    model = quick().fit(pd.DataFrame(X, columns=list("wxyz")))
    before = dict(vars(model))
    good = {name: model.get_params()[name] for name in bad}
    model.set_params(**bad)
    with pytest.raises((ValueError, ZeroDivisionError)):
        model.fit(dense)
    model.set_params(**good)
    after = dict(vars(model))
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert list(model.graph_.nodes) == list("wxyz")


def test_a_fitted_model_tells_what_it_was_fitted_with(X):
    algorithm = PPO(n_steps=5)
    model = quick(algorithm=algorithm).fit(X)
    before, value = model.run(), model.score(X)
    algorithm.set_params(n_steps=9)
    model.set_params(criterion="ls", random_state=7, standardize=True)
    assert model.run() == before
    assert "n_steps=5" in repr(before["parameters"]["algorithm"])
    assert "bic-nv" in model.summary()
    assert model.score(X) == value


def test_notes_are_all_that_fit_has_warned_of(X):
    with pytest.warns(DataWarning) as caught:
        model = quick(criterion="bic-ev").fit(np.column_stack([X, X[:, 0]]))
    assert model.notes_ == [str(warning.message) for warning in caught]
    assert len(model.notes_) == 2


def test_an_interrupt_while_pruning_keeps_the_graph(X):
    def prune(data, A):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted while pruning"):
        model = quick(prune=prune).fit(X)
    np.testing.assert_array_equal(model.adjacency_matrix_, TRUTH)
    assert model.search_.stopped == "interrupted"
    assert "interrupted while pruning" in model.notes_[0]


def test_settings_of_a_name_cannot_be_set(X):
    model = quick()
    with pytest.raises(ValueError, match=r"algorithm__n_steps: algorithm='auto' is a name"):
        model.set_params(algorithm__n_steps=5)
    with pytest.raises(ValueError, match="n_steps must be"):
        model.set_params(refine=False, algorithm=PPO(), algorithm__n_steps=-1)
    assert (model.refine, model.algorithm) == (True, "auto")
    for parameter, value in (("criterion", BIC), ("algorithm", PPO), ("prune", pruning.CAM)):
        with pytest.raises(ValueError, match=f"{parameter}=.*is a class"):
            quick(**{parameter: value}).fit(X)


def test_settings_are_checked_where_they_are_used(X):
    for parameter, value, name, bad in (
        ("algorithm", PPO(), "n_steps", -5),
        ("criterion", BIC(), "variances", "ev"),
        ("regression", GaussianProcess(), "alpha", 0.0),
        ("prune", pruning.CAM(), "alpha", 2.0),
    ):
        setattr(value, name, bad)
        with pytest.raises(ValueError, match=name):
            quick(**{parameter: value}).fit(X)


def test_a_start_that_is_a_policy_is_used(X):
    policy = GaussianPolicy(np.concatenate([[3.0, 2.0, 1.0, 0.0], np.zeros(6)]), np.full(10, -9.0))
    assert quick(init=policy, algorithm=Orders(n_steps=1)).fit(X).search_.init == "given"
    with pytest.raises(ValueError, match="3 coordinates"):
        quick(init=GaussianPolicy(np.zeros(3), np.zeros(3))).fit(X)


def test_no_edges_is_said_to_be_the_score_s_wish_only_if_it_is(X):
    model = quick(criterion=lambda A: -float(A.sum()), algorithm=PPO(n_steps=50)).fit(X)
    assert model.summary().startswith("no edges were found before the search ended (")


def test_warnings_point_at_the_caller(X):
    with pytest.warns(DataWarning) as caught:
        quick(criterion="bic-ev").fit(np.column_stack([X, X[:, 0]]))
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}


# --- what a fitted model says ---


def test_edges_are_a_table(X):
    names = ["w", "x", "y", "z"]
    model = quick(prune="cam").fit(pd.DataFrame(X, columns=names))
    frame = pd.DataFrame(model.edges_)
    columns = ["source", "target", "direction", "coefficient", "error", "standardised", "p_value"]
    assert list(frame.columns) == columns
    assert pl.DataFrame(dict(model.edges_)).shape == frame.shape == (3, 7)
    assert frame["standardised"].abs().is_monotonic_decreasing
    verdicts = {(v.source, v.target): v.value for v in model.prune_table_}
    for row, again in zip(frame.to_dict("records"), model.edges_.rows, strict=True):
        i, j = names.index(row["source"]), names.index(row["target"])
        assert model.adjacency_matrix_[i, j] == 1
        assert row["coefficient"] == model.weights_[i, j]
        assert row["p_value"] == verdicts[i, j]
        assert row["direction"] == ("free" if model.free_[i, j] else "oriented")
        assert again == row
    assert "p_value" not in quick().fit(X).edges_
    assert "--> " in str(model.edges_)
    assert "---" in str(quick().fit(X[:, [0, 2]]).edges_)


def test_edges_have_the_errors_and_the_units_of_their_regressions(X):
    """c on a and b, against the formula of least squares; another unit changes all but the standardised one."""
    edges = quick().fit(X * [1, 10, 100, 1], names=list("abcd")).edges_
    row = next(row for row in edges.rows if (row["source"], row["target"]) == ("b", "c"))
    design = np.column_stack([np.ones(len(X)), X[:, 0], 10 * X[:, 1]])
    beta, (rss,), _, _ = np.linalg.lstsq(design, 100 * X[:, 2], rcond=None)
    error = np.sqrt(rss / (len(X) - 3) * np.linalg.inv(design.T @ design)[2, 2])
    assert row["coefficient"] == pytest.approx(beta[2])
    assert row["error"] == pytest.approx(error)
    assert row["standardised"] == pytest.approx(beta[2] * 10 * X[:, 1].std() / (100 * X[:, 2].std()))
    again = quick().fit(X, names=list("abcd")).edges_
    assert again["standardised"] == pytest.approx(edges["standardised"])
    assert again["target"] == edges["target"]


def test_errors_are_of_linear_regressions_only(X):
    curved = quick(regression="gp", prune=None).fit(X[:60])
    assert "error" not in curved.edges_
    assert "slope" in str(curved.edges_)
    with pytest.raises(ValueError, match="total effects are of linear graphs"):
        effects(curved, 0, 2)


def test_only_the_strongest_edges_are_shown(X):
    edges = quick().fit(X).edges_
    lines = edges.text(most=2).splitlines()
    assert lines[3] == "and 1 more that are weaker (edges_ and edges.csv have all)"
    assert lines[:3] == str(edges).splitlines()[:3]
    assert "more" not in str(edges)


def test_numbers_stand_below_each_other():
    assert aligned([12.5, -0.25, 1000, math.nan]) == ["12.5 ", "-0.25", "1000   ", "   "]


def test_the_summary_tells_what_was_found(X, rng):
    text = quick().fit(X).summary()
    assert text.splitlines()[0].split() == ["cause", "effect", "coefficient", "error", "standardised"]
    assert "400 rows, 4 columns, 3 edges, bic-nv" in text.splitlines()[-1]
    assert quick(prune=lambda X, A: 0 * A).fit(X).summary().startswith("no edges are left after pruning")
    assert quick().fit(rng.standard_normal((400, 2))).summary().startswith("no edges: the score prefers")
    pruned = quick(prune=pruning.Threshold(50)).fit(X).summary()
    assert "3 removed by pruning (coefficient; edges stay from 50; prune=None, or --prune none, keeps all):" in pruned
    assert "0 edges (3 more removed by pruning), bic-nv" in pruned.splitlines()[-1]


def test_a_model_is_saved_to_a_folder(X, tmp_path):
    model = quick(prune=pruning.Threshold(0.1)).fit(X, names=list("wxyz"))
    files = model.save(tmp_path / "new" / "folder", data="table.csv")
    assert sorted(file.name for file in files) == [
        "adjacency.csv", "cpdag.csv", "edges.csv", "graph.dot", "graph.graphml", "graph.json", "run.json",
    ]  # fmt: skip
    A, names = read_graph(tmp_path / "new" / "folder" / "graph.json")
    np.testing.assert_array_equal(A, model.adjacency_matrix_)
    assert names == tuple("wxyz")
    run = json.loads((tmp_path / "new" / "folder" / "run.json").read_text())
    assert next(iter(run)) == "data"
    assert (run["data"], run["rows"], run["columns"], run["edges"]) == ("table.csv", 400, 4, 3)
    assert run["parameters"]["prune"] == "Threshold(threshold=0.1, standardised=False)"
    assert run["certificate"] == "the best of all DAGs"
    assert run["seconds"] == pytest.approx(model.seconds_, abs=1e-3)
    assert run["score"] == model.score_


def test_names_beside_an_array_are_no_reason_to_warn(X):
    model = quick().fit(X, names=list("wxyz"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.score(X))


def test_frames_keep_their_names_on_every_way(X):
    frame = pd.DataFrame(X, columns=list("wxyz"))
    for named in (Moments.of(frame), Score(frame), Score(frame, LinearRegression()), Score(pl.from_pandas(frame))):
        assert named.names == tuple("wxyz")
    assert Moments.of(frame, list("abcd")).names == tuple("abcd")


def test_clone_and_pickle(X):
    model = quick(criterion="bic-ev", init=TRUTH).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.adjacency_matrix_, model.adjacency_matrix_)
    assert nx.utils.graphs_equal(copy.graph_, model.graph_)
    assert copy.score(X) == model.score(X)
    fresh = clone(model)
    assert not hasattr(fresh, "adjacency_matrix_")
    np.testing.assert_array_equal(fresh.fit(X).adjacency_matrix_, model.adjacency_matrix_)


def test_equal_variance_scores_warn_when_variances_sort_the_graph(rng):
    data = simulate.linear_gaussian(d=8, k=2, n=500, rng=rng)
    with pytest.warns(DataWarning, match="reads the scale of the columns"):
        raw = ALIAS(criterion="bic-ev", random_state=0).fit(data.X)
    assert raw.diagnostics_["varsortability"] == pytest.approx(metrics.varsortability(data.X, raw.adjacency_matrix_))
    assert raw.diagnostics_["r2_sortability"] == pytest.approx(metrics.r2_sortability(data.X, raw.adjacency_matrix_))
    assert raw.diagnostics_["varsortability"] > 0.9


def test_unit_free_scores_do_not_warn_about_scale(rng):
    data = simulate.linear_gaussian(d=8, k=2, n=500, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model = ALIAS(random_state=0).fit(data.X)
        assert 0 <= model.diagnostics_["varsortability"] <= 1
        empty = ALIAS(random_state=0).fit(rng.standard_normal((500, 3)))
    assert np.isnan(empty.diagnostics_["varsortability"])


@pytest.mark.parametrize("seed", range(6))
def test_standardised_columns_have_nothing_to_sort_by(seed):
    X = simulate.linear_gaussian(d=3, k=1, n=200, rng=np.random.default_rng(seed)).X
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model = ALIAS(criterion="bic-ev", standardize=True, prune=None, random_state=0).fit(X)
    assert model.diagnostics_["varsortability"] == 0.5 or not model.adjacency_matrix_.any()


def test_pruning_does_not_make_free_directions_determined(rng):
    """Dropping an edge of a complete triangle leaves a collider only in the member that happened to be found."""
    x = rng.standard_normal((2000, 3))
    x[:, 1] += 0.1 * x[:, 0]
    x[:, 2] += x[:, 0] + x[:, 1]

    def collider(X, A):
        """Without the edge between the two parents of the last node: what is left is a collider."""
        last = A.sum(axis=0).argmax()
        return A * (np.arange(3) == last)

    model = ALIAS(random_state=0, prune=collider).fit(x)
    assert model.adjacency_raw_.sum() == 3
    assert model.free_.sum() == 2 * model.adjacency_matrix_.sum() == 4


def test_a_score_holds_its_own_data(rng):
    X = rng.standard_normal((50, 3))
    with pytest.raises(ValueError, match="standardize=True has no effect on a Score"):
        ALIAS(criterion=Score(X), standardize=True).fit(X)


def test_pruning_keeps_to_the_budget(X):
    def slow(x, y, Z):
        time.sleep(0.3)
        return 0.0

    model = quick(prune=pruning.CI(test=slow), time_budget=0.5, n_jobs=1)
    with pytest.warns(UserWarning, match="the time was over before pruning had ended"):
        model.fit(np.hstack([X, X + np.random.default_rng(0).standard_normal(X.shape)]))
    assert model.search_.stopped == "time"
    assert np.array_equal(model.adjacency_matrix_, model.adjacency_raw_)
    assert model.run()["converged"] is False
    assert model.summary().endswith(f"; stopped after {model.seconds_:.0f} s, not converged")


def test_the_budget_left_for_pruning_is_used(X):
    model = quick(prune="cam", time_budget=60.0).fit(X)
    assert model.search_.converged
    assert model.run()["converged"] is True
    assert "converged" not in model.summary()
    assert model.prune_table_


def test_an_interrupt_before_a_first_graph_leaves_everything_as_it_was(X, monkeypatch):
    model = quick().fit(X)
    before = model.adjacency_matrix_

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("vec2dag.search.descent.Walk.advance", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyboardInterrupt, match="before a first graph was ready"):
            model.fit(np.hstack([X, X**3]))
    assert model.adjacency_matrix_ is before


def test_a_budget_that_ends_before_a_first_graph_says_so(rng):
    with pytest.warns(UserWarning, match="before a first graph was ready"):
        model = quick(time_budget=1e-6).fit(rng.standard_normal((300, 60)))
    assert model.search_.stopped == "time"
    assert not model.search_.ready
    assert "prefers the columns to be independent" not in model.summary()


def test_tables_say_what_an_arrow_means(X):
    text = quick(criterion="bic-ev").fit(X).summary()
    assert "--> : oriented by the score, if its assumptions hold" in text
    table = EdgeTable(
        source=["a\x1b[31m"],
        target=["b" * 500],
        direction=["oriented"],
        coefficient=[1.0],
        standardised=[1.0],
        p_value=[0.0],
    )
    assert "\x1b" not in str(table)
    assert "a\\x1b[31m" in str(table)
    assert "<1e-16" in str(table)
    assert "of the edge, not of its direction" in str(table)
    assert max(map(len, str(table).splitlines()[1:2])) < 120


def cells_before(line, text):
    """Cells of a terminal to the left of a text: of the letters here only the Chinese ones take two."""
    return sum(2 if "\u4e00" <= c <= "\u9fff" else 1 for c in line[: line.index(text)])


def test_wide_letters_do_not_shift_what_stands_beside_them():
    edges = EdgeTable(
        source=["\u8840\u5727", "age", "x"],
        target=["b", "\u4f53\u91cd\u6307\u6570", "b"],
        direction=["oriented"] * 3,
        coefficient=[1.0, 1.0, 1.0],
        standardised=[0.5, 0.5, 0.5],
    )
    lines = str(edges).splitlines()[1:4]
    for text in ("-->", "0.500"):
        assert len({cells_before(line, text) for line in lines}) == 1
    pairs = PairTable({"a": ["\u8840\u5727", "age"], "b": ["x", "\u4f53"], "share": [0.5, 0.5]})
    assert len({cells_before(line, "0.5") for line in str(pairs).splitlines()[1:]}) == 1
    halves = np.full((2, 2), 0.5)
    table = ConditionalTable("y", ("n", "j"), ("p",), [("\u8840",), ("no",)], np.ones((2, 2), int), halves)
    assert len({cells_before(line, "0.500") for line in str(table).splitlines()[1:]}) == 1
