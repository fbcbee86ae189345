"""Linear scores against regressions on the data, and what must hold of any score."""

import threading

import numpy as np
import pytest
from oracles import all_dags, graph_score, markov_equivalent, mean_squared_residual, residual_ratio_in_long_double

from vec2dag import BIC, GaussianProcess, LeastSquares, Linear, Moments, Score, vec2dag, vec_dim
from vec2dag._parallel import effective_jobs, one_blas_thread, run_chunks

CRITERIA = ["bic-ev", "bic-nv", "ls"]


@pytest.fixture
def X(rng):
    d = 6
    mixing = np.triu(rng.normal(size=(d, d)), 1) + np.eye(d)
    return rng.standard_normal((200, d)) @ mixing * rng.uniform(0.1, 10, d) + rng.normal(size=d) * 5


@pytest.fixture
def graphs(rng):
    return vec2dag(rng.standard_normal((40, vec_dim(6))))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equals_regressions_on_the_data(X, graphs, criterion):
    assert Score(X, "linear", criterion)(graphs) == pytest.approx(
        [graph_score(X, A, criterion) for A in graphs], rel=1e-10
    )


def test_lambda0_is_the_price_of_an_edge(X, graphs):
    for lambda0 in (0.0, 7.0):
        got = Score(X, "linear", LeastSquares(lambda0))(graphs)
        assert got == pytest.approx([graph_score(X, A, "ls", lambda0) for A in graphs], rel=1e-10)
    with pytest.raises(ValueError, match="lambda0"):
        LeastSquares(-1)


def test_local_is_the_mean_squared_residual(X):
    score = Score(X)
    for parents in ([], [0], [4, 1], [0, 1, 2, 4, 5]):
        assert score.local(3, parents) == pytest.approx(mean_squared_residual(X, 3, parents), rel=1e-10)


def test_local_residuals_combine_to_the_score(X, graphs):
    score = Score(X, "linear", "bic-ev")
    r = np.array([[score.local(j, np.flatnonzero(A[:, j])) for j in range(6)] for A in graphs])
    assert score.combine(r, graphs.sum(axis=1)) == pytest.approx(score(graphs), rel=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_relabelling_equivariance(X, graphs, rng, criterion):
    p = rng.permutation(6)
    permuted = Score(X[:, p], "linear", criterion)(graphs[:, p][:, :, p])
    assert permuted == pytest.approx(Score(X, "linear", criterion)(graphs), rel=1e-10)


def test_bic_nv_is_constant_on_equivalence_classes(X):
    dags = all_dags(4)
    scores = Score(X[:, :4])(dags)
    for k in range(0, len(dags), 37):
        same = [s for s, B in zip(scores, dags, strict=True) if markov_equivalent(dags[k], B)]
        assert same == pytest.approx([scores[k]] * len(same), abs=1e-12)


def test_bic_nv_differences_do_not_depend_on_units(X, graphs):
    a, b = Score(X)(graphs), Score(X * [1e-6, 1, 1e6, 1, 10, 3] + 100)(graphs)
    assert a - a[0] == pytest.approx(b - b[0], abs=1e-9)


def test_batch_shapes(X, graphs):
    score = Score(X)
    assert score(graphs[0]).shape == ()
    assert score(graphs.reshape(5, 8, 6, 6)).shape == (5, 8)
    assert score(graphs[0].astype(float) * 3.5) == score(graphs[0])
    assert score(graphs[:0]).shape == (0,)


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_same_scores_for_any_number_of_threads(rng, jobs):
    X = rng.standard_normal((50, 30))
    graphs = vec2dag(rng.standard_normal((50, vec_dim(30))))
    assert np.array_equal(Score(X, n_jobs=jobs)(graphs), Score(X, n_jobs=1)(graphs))


def test_moments_give_the_same_score(X, graphs):
    chunks = [Moments.of(part) for part in np.array_split(X, 7)]
    merged = chunks[0]
    for chunk in chunks[1:]:
        merged = merged.merge(chunk)
    assert merged.n == len(X)
    assert merged.mean == pytest.approx(X.mean(axis=0))
    assert merged.covariance == pytest.approx(np.cov(X.T, ddof=0))
    assert Score(merged)(graphs) == pytest.approx(Score(X)(graphs), rel=1e-10)


def test_moments_refuse_what_they_cannot_merge(X):
    with pytest.raises(ValueError, match="columns differ"):
        Moments.of(X).merge(Moments.of(X, list("abcdef")))
    with pytest.raises(ValueError, match="NaN"):
        Moments.of([[np.nan, 1.0]])


def test_reference_option_reproduces_the_released_formulas(X, graphs):
    """Uncentred without intercept, the mean where there are no parents, 1e-8 in the logarithm of bic-nv."""
    n, d = X.shape
    gram = X.T @ X

    def released(A, criterion):
        ssr = np.empty(d)
        for j in range(d):
            P = np.flatnonzero(A[:, j])
            b = np.linalg.solve(gram[np.ix_(P, P)], gram[P, j]) if len(P) else None
            ssr[j] = ((X[:, j] - (X[:, P] @ b if len(P) else X[:, j].mean())) ** 2).sum()
        penalty = np.log(n) / (n * d) * A.sum()
        if criterion == "bic-ev":
            return -np.log(ssr.sum() / (n * d)) - penalty
        return -np.log(ssr / n + 1e-8).sum() / d - penalty

    for criterion in (BIC("equal"), BIC(offset=1e-8)):
        got = Score(X, Linear(reference=True), criterion)(graphs)
        assert got == pytest.approx([released(A, criterion.name) for A in graphs], rel=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_dependent_columns_neither_raise_nor_give_nan(rng, criterion):
    x = rng.standard_normal((100, 4))
    X = np.column_stack([x, x[:, 0], x[:, 1] + x[:, 2], 1e-9 * x[:, 3]])
    graphs = vec2dag(rng.standard_normal((300, vec_dim(7))))
    values = Score(X, "linear", criterion)(graphs)
    assert np.isfinite(values).all()
    # a duplicated parent explains what one copy explains
    linear = Linear().bind(X)
    assert linear.residual(3, [0, 1, 4]) == pytest.approx(linear.residual(3, [0, 1]), rel=1e-9)


def test_more_columns_than_rows(rng):
    X = rng.standard_normal((8, 20))
    values = Score(X)(vec2dag(rng.standard_normal((20, vec_dim(20)))))
    assert np.isfinite(values).all()


def test_ill_conditioned_regressions_keep_their_digits(rng):
    """Residual variances of 1e-9 to 1e-13 of the variance: covariances have lost them, the factor has not."""
    base = rng.standard_normal((300, 5))
    for noise in (1e-3, 1e-4, 1e-5, 1e-6):
        X = np.column_stack([base, base @ rng.standard_normal((5, 4)) + noise * rng.standard_normal((300, 4))])
        linear = Linear().bind(X)
        for node, parents in ((8, [0, 1, 2, 3, 4]), (0, [5, 6, 7, 8, 1]), (4, [0, 5, 6, 7, 8, 1])):
            exact = residual_ratio_in_long_double(X, node, parents)
            assert linear.residual(node, parents) / linear.scale[node] / exact == pytest.approx(1.0, abs=1e-6)


def test_coefficients_are_regression_weights(X, graphs):
    A = graphs[0]
    W = Linear().bind(X).coefficients(A)
    for j in range(6):
        P = np.flatnonzero(A[:, j])
        design = np.column_stack([np.ones(len(X)), X[:, P]])
        assert W[P, j] == pytest.approx(np.linalg.lstsq(design, X[:, j], rcond=None)[0][1:], rel=1e-8)
    assert not W[A == 0].any()


def test_custom_regression_is_enough(X, graphs):
    class OnData:
        n, d, names = 200, 6, tuple("abcdef")

        def residual(self, node, parents):
            return mean_squared_residual(X, node, list(parents))

    assert Score(None, OnData(), BIC())(graphs) == pytest.approx(Score(X)(graphs), rel=1e-10)


def test_errors_list_what_is_allowed(X):
    with pytest.raises(ValueError, match=r"criterion='aic'.*'bic-nv', 'bic-ev', 'ebic-nv', 'ebic-ev', 'ls'"):
        Score(X, "linear", "aic")
    with pytest.raises(ValueError, match=r"regression='ridge'.*'linear'"):
        Score(X, "ridge")
    with pytest.raises(ValueError, match=r"4 nodes.*6 columns"):
        Score(X)(np.zeros((4, 4)))
    with pytest.raises(ValueError, match="'x1' constant"):
        Score(np.column_stack([X[:, 0], np.full(200, 0.1)]))
    with pytest.raises(ValueError, match="n_jobs"):
        effective_jobs(0)


def test_errors_in_threads_reach_the_caller(X):
    def fail(start, stop):
        raise RuntimeError(threading.current_thread().name)

    with pytest.raises(RuntimeError, match="vec2dag"):
        run_chunks(fail, 4, 2)


def test_inputs_are_not_modified(X, graphs):
    X_before, graphs_before = X.copy(), graphs.copy()
    Score(X)(graphs)
    Linear().bind(X).coefficients(graphs[0])
    assert np.array_equal(X, X_before)
    assert np.array_equal(graphs, graphs_before)


def test_graphs_are_checked_whatever_their_dtype(X):
    score = Score(X)
    with pytest.raises(ValueError, match="self-loops"):
        score(np.eye(6, dtype=np.uint8))
    A = np.zeros((6, 6), np.uint8)
    A[0, 1] = 255
    assert score(A) == score(A > 0)


def test_constant_columns_are_refused_before_standardising(rng):
    for value in (0.0, 0.1):
        moments = Moments.of(np.column_stack([rng.standard_normal(50), np.full(50, value)]))
        with pytest.raises(ValueError, match="'x1' constant"):
            moments.standardised()


def test_overlapping_contexts_restore_the_threads_of_blas():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_impossible_residuals_name_the_regression(value):
    class Broken:
        n, d, names = 100, 3, ("a", "b", "c")

        def residual(self, node, parents):
            return value

    with pytest.raises(ValueError, match=r"regression of 'c' on \['a', 'b'\] gave a mean squared residual of"):
        Score(None, Broken()).local(2, [1, 0, 0])


def test_repeated_parents_count_once(X):
    class OnData:
        n, d, names = 200, 6, tuple("abcdef")

        def residual(self, node, parents):
            return mean_squared_residual(X, node, list(parents))

    score = Score(None, OnData())
    assert score.local(0, [1, 1]) == score.local(0, [1])
    assert score.local(0, [2]) == pytest.approx(mean_squared_residual(X, 0, [2]))
    with pytest.raises(ValueError, match="its own parent"):
        score.local(0, [0])


def test_only_linear_regressions_have_coefficients_and_only_counts_have_tables(rng):
    X = rng.standard_normal((40, 3))
    A = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], np.uint8)
    linear, curved = (Score(X, regression).regression for regression in (Linear(), GaussianProcess()))
    slopes = [np.polyfit(X[:, 0], X[:, node], 1)[0] for node in (1, 2)]
    np.testing.assert_allclose(linear.coefficients(A)[0, 1:], slopes)
    np.testing.assert_array_equal(np.isnan(curved.coefficients(A)), A == 1)
    assert curved.coefficients(A)[A == 0].tolist() == [0.0] * 7
    assert linear.tables(A) is None
    assert curved.tables(A) is None
    counts = Score((X > 0).astype(int), criterion="bdeu", names=["a", "b", "c"]).regression
    assert {name: table.parents for name, table in counts.tables(A).items()} == {"a": (), "b": ("a",), "c": ("a",)}
