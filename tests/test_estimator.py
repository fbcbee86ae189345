"""The estimator: the scikit-learn contract, names, bad input, and the graphs it finds."""

import pickle
import warnings
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import all_dags, graph_score
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from vec2dag import ALIAS, DataWarning, Moments, Score, bic_nv, cpdag, is_dag, least_squares, metrics, simulate
from vec2dag.prune import prune_bic, prune_cam, prune_ci, prune_linear

# a -> c <- b, c -> d: the only member of its Markov equivalence class
TRUTH = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
SCORES = ("bic-nv", "bic-ev", "ls")


def quick(**parameters):
    return ALIAS(**({"n_steps": 30, "random_state": 0} | parameters))


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


@parametrize_with_checks([ALIAS(n_steps=20)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# --- what is found ---


@pytest.mark.parametrize("score", SCORES)
def test_finds_the_best_of_all_graphs(X, score):
    """The optimum over all 543 DAGs, by regressions on the data; the truth, as all noises have variance 1."""
    model = quick(score=score, n_steps=100).fit(X)
    values = {A.tobytes(): graph_score(X, A, score) for A in all_dags(4)}
    assert model.score_ == pytest.approx(max(values.values()), rel=1e-10)
    assert model.score_ == pytest.approx(values[model.adjacency_raw_.tobytes()], rel=1e-10)
    np.testing.assert_array_equal(model.adjacency_matrix_, TRUTH)


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
    assert {data["direction"] for *_, data in v.graph_.edges(data=True)} == {"determined"}


@pytest.mark.parametrize("other", ["bic-ev", "ls", least_squares(0.5), lambda A: -float(np.sum(A))])
def test_another_score_drops_the_equivalence_class(X, other):
    model = quick().fit(X)
    assert hasattr(model, "cpdag_")
    model.set_params(score=other).fit(X)
    assert not hasattr(model, "cpdag_")
    assert model.free_.shape == (4, 4)
    assert not model.free_.any()
    assert hasattr(model.set_params(score=bic_nv).fit(X), "cpdag_")


def test_units_do_not_matter_to_unequal_variances(X):
    scale = np.array([1e-3, 5.0, 40.0, 1e4])
    with pytest.warns(DataWarning, match="different scales"):
        model = quick().fit(X * scale)
    np.testing.assert_array_equal(model.adjacency_matrix_, TRUTH)
    plain = quick().fit(X)
    np.testing.assert_allclose(model.weights_, plain.weights_ / scale[:, None] * scale, rtol=1e-8)


def test_standardize_divides_by_standard_deviations(X):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = quick(standardize=True, score="bic-ev").fit(X)
    assert model.score_ == pytest.approx(graph_score(Z, model.adjacency_raw_, "bic-ev"), rel=1e-9)
    np.testing.assert_allclose(model.weights_, regressions(Z, model.adjacency_matrix_), rtol=1e-9)
    assert model.score(X) == pytest.approx(graph_score(Z, model.adjacency_matrix_, "bic-ev"), rel=1e-9)


def test_the_order_of_the_columns_does_not_decide_the_score(X):
    reached = quick(n_steps=100).fit(X).score_
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(4)
        model = quick(n_steps=100).fit(X[:, order])
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


@pytest.mark.parametrize("parameters", [{}, {"score": "bic-ev"}, {"standardize": True}])
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


@pytest.mark.parametrize("parameters", [{}, {"standardize": True}, {"score": "bic-ev", "prune": "linear"}])
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
    for values in (["u", "v"] * 200, pd.date_range("2020", periods=400), pd.Categorical(["u", "v"] * 200)):
        with pytest.raises(ValueError, match=r"not numeric: 'b'$"):
            quick().fit(frame.assign(b=values))
    with pytest.raises(ValueError, match=r"not numeric: 'b', 'd'$"):
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


@pytest.mark.parametrize("score", SCORES)
def test_dependent_columns_are_named_and_the_fit_ends(X, score):
    duplicated = np.column_stack([X, X[:, 0]])
    with pytest.warns(DataWarning, match="Duplicated columns: 'x0' = 'x4'"):
        model = quick(score=score).fit(duplicated)
    assert is_dag(model.adjacency_matrix_)
    sum_of_two = np.column_stack([X, X[:, 0] + X[:, 1]])
    with pytest.warns(DataWarning, match="dependent.*'x4'|'x4'.*dependent"):
        model = quick(score=score).fit(sum_of_two)
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
@pytest.mark.parametrize("score", SCORES)
def test_fewer_rows_than_columns(dense, rows, score):
    with pytest.warns(DataWarning, match=f"{rows} rows for 8 columns"):
        model = quick(score=score).fit(dense[:rows])
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
            model = quick(n_steps=2, batch_size=4).fit(X)
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

    model = quick(score=closeness, n_steps=200).fit(X)
    np.testing.assert_array_equal(model.adjacency_matrix_, target)
    assert model.score_ == 0
    assert set(seen) == {((4, 4), True)}


def test_a_score_object_is_used_as_it_is(X):
    score = Score(X, "linear", least_squares(3.0))
    model = quick(score=score).fit(X)
    assert model.score_ == pytest.approx(graph_score(X, model.adjacency_raw_, "ls", lambda0=3.0), rel=1e-10)
    criterion = quick(score=least_squares(3.0)).fit(X)
    assert criterion.score_ == pytest.approx(model.score_, rel=1e-10)
    with pytest.raises(ValueError, match="4 columns, X has 3"):
        quick(score=score).fit(X[:, :3])


def test_scores_that_are_no_numbers_are_refused(X):
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        quick(score=lambda A: float("nan")).fit(X)


def test_an_interrupted_fit_keeps_the_best_graph(X):
    calls = []

    def score(A):
        calls.append(A.copy())
        if len(calls) == 500:
            raise KeyboardInterrupt
        return -float(A.sum()) if len(calls) < 500 else 0.0

    with pytest.warns(UserWarning, match="interrupted"):
        model = quick(score=score, refine=False).fit(X)
    assert model.score_ == max(-float(A.sum()) for A in calls[:499])
    assert model.search_.stopped == "interrupted"


def test_pruning(X):
    weak = X.copy()
    weak[:, 3] = 0.1 * X[:, 2] + 0.01 * X[:, 3]
    for parameters, edges in (
        ({}, 3),
        ({"prune": None}, 3),
        ({"prune": "linear"}, 2),
        ({"prune": "linear", "prune_threshold": 0.05}, 3),
    ):
        model = quick(**parameters).fit(weak)
        assert model.adjacency_raw_.sum() == 3
        assert model.adjacency_matrix_.sum() == edges
    equal = quick(score="bic-ev").fit(X)
    np.testing.assert_array_equal(equal.adjacency_matrix_, prune_linear(X, equal.adjacency_raw_, 0.3))


@pytest.mark.parametrize(
    ("parameters", "pruner", "explain"),
    [
        ({"prune": "linear", "prune_threshold": 0.8}, partial(prune_linear, threshold=0.8), "coefficient"),
        ({"prune": "bic"}, prune_bic, "BIC gain"),
        ({"prune": "cam", "prune_alpha": 0.01}, partial(prune_cam, alpha=0.01), "p-value"),
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
        (lambda X, A: A[:2, :2], r"DAG of shape \(4, 4\); the result has shape \(2, 2\)"),
        (lambda X, A: A.sum(axis=0), r"the result of prune must have shape"),
        (lambda X, A: np.ones((4, 4)) - np.eye(4), "directed cycle"),
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
    model = quick(score=lambda A: -metrics.shd(target, A), n_steps=1, batch_size=2, init=target, refine=False)
    model.fit(rng.standard_normal((50, 12)))
    np.testing.assert_array_equal(model.adjacency_matrix_, target)


def test_the_search_starts_from_an_order(X):
    np.testing.assert_array_equal(quick(init=[1, 0, 2, 3]).fit(X).adjacency_matrix_, TRUTH)
    for order in ([2, 0, 3, 1], np.array([1, 0, 2, 3]), [3.0, 2.0, 1.0, 0.0]):
        # a constant score has no gradient, so that the policy stays where it started
        model = quick(init=order, score=lambda A: 0.0, n_steps=2, refine=False).fit(X)
        np.testing.assert_array_equal(np.argsort(model.search_.policy.mu[:4]), order)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("warm", "init='warm' is unknown; allowed: 'auto', 'random'"),
        (None, "'auto', 'random', an adjacency matrix"),
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
        ({"score": "aic"}, ["'bic-nv'", "'bic-ev'", "'ls'"]),
        ({"score": 3}, ["'bic-nv'", "'bic-ev'", "'ls'", "Score", "callable"]),
        ({"regression": "ridge"}, ["'linear'"]),
        ({"algorithm": "sgd"}, ["'auto'", "'ppo'", "'a2c'", "'reinforce'"]),
        ({"backend": "jax"}, ["'native'", "'sb3'"]),
        ({"init": "warm"}, ["'auto'", "'random'"]),
        ({"prune": "lasso"}, ["'auto'", "'linear'"]),
        ({"prune": 3}, ["'auto'", "'linear'", "None", "callable"]),
        ({"n_steps": 0}, ["at least 1"]),
        ({"batch_size": 1.5}, ["whole number"]),
        ({"learning_rate": -1.0}, ["positive"]),
        ({"entropy": np.nan}, ["finite"]),
        ({"bound": 0.0}, ["positive"]),
        ({"prune_threshold": -0.1}, ["at least 0"]),
        ({"prune_alpha": 1.0}, ["between 0 and 1"]),
        ({"time_budget": 0}, ["positive", "None"]),
        ({"n_jobs": 0}, ["None", "-1"]),
        ({"random_state": -1}, ["None", "at least 0", "Generator"]),
        ({"random_state": "seed"}, ["None", "at least 0", "Generator"]),
    ],
)
def test_impossible_options_name_themselves_and_what_is_allowed(X, parameters, allowed):
    with pytest.raises(ValueError, match=next(iter(parameters))) as caught:
        quick(**parameters).fit(X)
    assert all(value in str(caught.value) for value in allowed)


@pytest.mark.parametrize(
    ("parameters", "coming"),
    [
        ({"knowledge": {"forbidden": []}}, "background knowledge"),
    ],
)
def test_parts_not_built_say_so(X, parameters, coming):
    with pytest.raises(NotImplementedError, match=coming) as caught:
        quick(**parameters).fit(X)
    assert str(caught.value).startswith(f"{next(iter(parameters))}=")


@pytest.mark.parametrize("seed", [lambda: 5, lambda: np.random.default_rng(5), lambda: np.random.RandomState(5)])
def test_the_same_seed_gives_the_same_answer(dense, seed):
    one, other = (quick(random_state=seed(), n_steps=3).fit(dense) for _ in range(2))
    np.testing.assert_array_equal(one.adjacency_matrix_, other.adjacency_matrix_)
    np.testing.assert_array_equal(one.history_["mean_reward"], other.history_["mean_reward"])
    another = quick(random_state=6, n_steps=3).fit(dense)
    assert not np.array_equal(one.history_["mean_reward"], another.history_["mean_reward"])


def test_the_global_random_state_is_left_alone(dense):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for seed in (0, None):
        quick(random_state=seed, n_steps=3).fit(dense)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("score", SCORES)
def test_the_answer_does_not_depend_on_the_number_of_threads(score):
    X = np.random.default_rng(0).standard_normal((200, 20)).cumsum(axis=1)
    one, *others = (quick(score=score, n_jobs=jobs, n_steps=5).fit(X) for jobs in (1, 2, 3, -1))
    for other in others:
        np.testing.assert_array_equal(one.adjacency_matrix_, other.adjacency_matrix_)
        np.testing.assert_array_equal(one.history_["mean_reward"], other.history_["mean_reward"])


def test_a_time_budget_ends_the_search(dense):
    model = quick(time_budget=0.2, n_steps=10**9).fit(dense)
    assert is_dag(model.adjacency_matrix_)
    assert model.n_iter_ < 10**9


# --- as scikit-learn uses it ---


def test_score_is_a_method_for_cross_validation(X):
    model = quick().fit(X[:300])
    expected = graph_score(X[300:], model.adjacency_matrix_, "bic-nv")
    assert model.score(X[300:]) == pytest.approx(expected, rel=1e-10)
    values = cross_val_score(quick(), X, cv=2)
    for value, test in zip(values, (X[:200], X[200:]), strict=True):
        assert value == pytest.approx(graph_score(test, TRUTH, "bic-nv"), rel=1e-10)


def test_score_is_a_parameter_too(X):
    model = quick(score="ls")
    assert model.score == model.get_params()["score"] == "ls"
    assert type(model.get_params()["score"]) is str
    assert "score='ls'" in repr(model)
    assert clone(model.set_params(score="bic-ev")).score == "bic-ev"


def test_clone_and_pickle(X):
    model = quick(score="bic-ev", init=TRUTH).fit(X)
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
        raw = ALIAS(score="bic-ev", random_state=0).fit(data.X)
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
        model = ALIAS(score="bic-ev", standardize=True, prune=None, random_state=0).fit(X)
    assert model.diagnostics_["varsortability"] == 0.5 or not model.adjacency_matrix_.any()


def test_pruning_does_not_make_free_directions_determined(rng):
    """Dropping an edge of a complete triangle leaves a collider only in the member that happened to be found."""
    x = rng.standard_normal((2000, 3))
    x[:, 1] += 0.1 * x[:, 0]
    x[:, 2] += x[:, 0] + x[:, 1]
    collider = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], np.uint8)
    model = ALIAS(random_state=0, prune=lambda X, A: collider * (A | A.T)).fit(x)
    assert model.adjacency_raw_.sum() == 3
    assert model.free_.sum() == 2 * model.adjacency_matrix_.sum() == 4


def test_a_score_holds_its_own_data(rng):
    X = rng.standard_normal((50, 3))
    with pytest.raises(ValueError, match="standardize=True has no effect on a Score"):
        ALIAS(score=Score(X), standardize=True).fit(X)
