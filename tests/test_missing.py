"""Missing values: likelihood, EM, pairs of columns, imputation, and what the estimator says about them."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from vec2dag import ALIAS, DataWarning, Moments, bootstrap, missing, simulate
from vec2dag._parallel import until
from vec2dag.cli import main
from vec2dag.files.tables import write_table
from vec2dag.missing.gaussian import imputed, likeliest
from vec2dag.missing.pairs import nearest_correlation

nan = np.nan


def holes(X, share, seed=0):
    """A copy with values missing completely at random."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, nan, X)


def chain(n=300, seed=0):
    """a -> b -> c -> d, and e alone."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    for k in (1, 2, 3):
        X[:, k] += 0.9 * X[:, k - 1]
    return X + np.array([10.0, 0.0, -3.0, 100.0, 0.0])


@pytest.fixture
def X():
    return holes(chain(), 0.15)


def density_of_what_is_there(X, mean, covariance):
    """Oracle: row by row, by scipy."""
    total = 0.0
    for row in X:
        o = ~np.isnan(row)
        if o.any():
            total += multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(row[o])
    return total


# --- likelihood and EM ----------------------------------------------------------------------------------------


def test_the_likelihood_is_that_of_the_values_that_are_there(X):
    rng = np.random.default_rng(1)
    B = rng.standard_normal((5, 5))
    covariance, mean = B @ B.T + np.eye(5), rng.standard_normal(5)
    X[7] = nan
    expected = density_of_what_is_there(X, mean, covariance)
    assert missing.log_likelihood(X, mean, covariance) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_em_maximises_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    X = holes(rng.standard_normal((30, 3)) @ rng.standard_normal((3, 3)) + [5, 0, -1], 0.25, seed)
    found = missing.em(X, tol=1e-14, max_iter=5000)
    lower = np.tril_indices(3)

    def loss(theta):
        L = np.zeros((3, 3))
        L[lower] = theta[3:]
        return -missing.log_likelihood(X, theta[:3], L @ L.T + 1e-9 * np.eye(3))

    start = np.concatenate([found.mean, np.linalg.cholesky(found.covariance)[lower]])
    elsewhere = np.concatenate([np.nanmean(X, axis=0), np.diag(np.nanstd(X, axis=0))[lower]])
    best = min((minimize(loss, t, method="BFGS") for t in (start, elsewhere)), key=lambda r: r.fun)
    reached = missing.log_likelihood(X, found.mean, found.covariance)
    assert reached >= -best.fun - 1e-6
    L = np.zeros((3, 3))
    L[lower] = best.x[3:]
    np.testing.assert_allclose(found.covariance, L @ L.T, rtol=1e-3, atol=1e-4)


def test_every_step_of_em_raises_the_likelihood(X):
    found = likeliest(holes(X, 0.3, seed=2), tol=1e-12)
    assert found.converged
    assert len(found.history) > 10
    assert (np.diff(found.history) > -1e-9 * abs(found.history[-1])).all()


def test_a_monotone_pattern_has_its_closed_form():
    # b is missing in some rows: its regression on a is that of the complete rows, and a counts in all (Anderson 1957)
    X = chain()[:, :2]
    X[200:, 1] = nan
    found = missing.em(X, tol=1e-15)
    a, (slope, intercept) = X[:, 0], np.polyfit(X[:200, 0], X[:200, 1], 1)
    rest = np.var(X[:200, 1] - slope * X[:200, 0] - intercept)
    expected = [[a.var(), slope * a.var()], [slope * a.var(), slope**2 * a.var() + rest]]
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-7)
    np.testing.assert_allclose(found.mean, [a.mean(), intercept + slope * a.mean()], atol=1e-7)
    assert found.n == 200


def test_of_a_complete_table_there_are_its_moments():
    X, plain = chain(), Moments.of(chain())
    for found in (missing.em(X), missing.pairwise(X)):
        assert found.n == plain.n
        np.testing.assert_array_equal(found.factor, plain.factor)
        np.testing.assert_array_equal(found.mean, plain.mean)
    np.testing.assert_array_equal(missing.impute(X, np.random.default_rng(0)), X)
    # and EM itself, which is not asked there, needs one step for them
    np.testing.assert_allclose(likeliest(X).moments(plain.names, 300).covariance, plain.covariance, rtol=1e-12)


def test_rows_without_values_do_not_count(X):
    padded = np.vstack([X, np.full((4, 5), nan)])
    one, other = missing.em(X), missing.em(padded)
    assert other.n == one.n
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-12)
    assert missing.log_likelihood(padded, one.mean, one.covariance) == pytest.approx(
        missing.log_likelihood(X, one.mean, one.covariance)
    )


def test_em_does_not_depend_on_units_order_layout_or_rows(X):
    plain = missing.em(X, tol=1e-13)
    order, size, shift = [3, 0, 4, 1, 2], np.array([1e6, 1.0, -1e-5, 3.0, 1.0]), np.array([0, 1e3, 0, 0, -5.0])
    other = missing.em(np.asfortranarray((X * size + shift)[::-1][:, order]), tol=1e-13)
    back = np.argsort(order)
    np.testing.assert_allclose(other.covariance[np.ix_(back, back)] / np.outer(size, size), plain.covariance, atol=1e-6)
    np.testing.assert_allclose((other.mean[back] - shift) / size, plain.mean, atol=1e-6)


def test_a_column_that_is_a_copy_gets_a_ridge_and_it_is_said(X):
    X = np.column_stack([X, np.where(np.random.default_rng(5).random(300) < 0.2, nan, 2 * X[:, 0])])
    with pytest.warns(DataWarning, match=r"linear functions of others.*'x0', 'x5'; EM has added 1e-10"):
        found = missing.em(X)
    C = found.covariance
    assert C[0, 5] / np.sqrt(C[0, 0] * C[5, 5]) > 1 - 1e-8
    assert likeliest(X).converged


def test_fewer_rows_than_columns_are_no_reason_to_crash():
    X = holes(np.random.default_rng(0).standard_normal((5, 8)), 0.2, 1)
    with pytest.warns(DataWarning, match="linear functions"):
        assert np.isfinite(missing.em(X).factor).all()


def test_a_pair_that_no_row_has_is_said(X):
    X[:150, 0], X[150:, 3] = nan, nan
    with pytest.warns(DataWarning, match="no row has both of: 'x0' and 'x3';"):
        missing.em(X)
    with pytest.raises(ValueError, match=r"'x0' and 'x3' \(0\): missing='em' does without"):
        missing.pairwise(X)


def test_em_that_ends_early_says_so(X):
    with pytest.warns(UserWarning, match="EM ended after 3 steps"):
        missing.em(X, max_iter=3)
    with pytest.warns(UserWarning, match="EM ended after 1 steps"), until(0.0):
        missing.em(X)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda X: X.__setitem__((slice(None), 2), nan), r"column\(s\) without any value, NaN in every row: 'c'"),
        (lambda X: X.__setitem__((0, 1), np.inf), r"'b' \(\d+ NaN, 1 inf\)|NaN or infinity"),
        (lambda X: X.__setitem__((~np.isnan(X[:, 3]), 3), 7.0), r"constant column\(s\): 'd'"),
        (lambda X: X.__setitem__((slice(1, None), 3), nan), r"constant column\(s\): 'd'"),
        (lambda X: X.__setitem__((0, 4), 1e80), r"1e\+60"),
    ],
)
@pytest.mark.parametrize("treatment", [missing.em, missing.pairwise])
def test_what_cannot_be_learned_from_is_refused_by_name(X, spoil, sentence, treatment):
    X[0] = 1.0
    spoil(X)
    with pytest.raises(ValueError, match=sentence):
        treatment(X, names=list("abcde"))
    with pytest.raises(ValueError, match=sentence):
        ALIAS(missing="em").fit(X, names=list("abcde"))


# --- pairs ----------------------------------------------------------------------------------------------------


def test_pairs_have_the_correlations_that_pandas_has(X):
    found = missing.pairwise(X)
    size = np.sqrt(np.diag(found.covariance))
    frame = pd.DataFrame(X)
    np.testing.assert_allclose(found.covariance / np.outer(size, size), frame.corr(), rtol=1e-12)
    np.testing.assert_allclose(size, frame.std(ddof=0), rtol=1e-12)
    np.testing.assert_allclose(found.mean, frame.mean(), rtol=1e-12)
    there = ~np.isnan(X)
    counts = [(there[:, i] & there[:, j]).sum() for i in range(5) for j in range(i)]
    assert found.n == missing.em(X).n == round(np.mean(counts))


def test_an_indefinite_matrix_is_mended_and_it_is_said_how_far_it_was():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(150)
    # every pair shares its own third of the rows, and there they are a = b, b = c, a = -c
    X = np.full((150, 3), nan)
    for k, (i, j, sign) in enumerate(((0, 1, 1), (1, 2, 1), (0, 2, -1))):
        rows = slice(50 * k, 50 * k + 50)
        X[rows, i] = x[rows]
        X[rows, j] = sign * x[rows] + 0.1 * rng.standard_normal(50)
    with pytest.warns(DataWarning, match=r"contradict each other \(their smallest eigenvalue is -0\.9\d+\)"):
        found = missing.pairwise(X)
    assert np.linalg.eigvalsh(found.covariance)[0] > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(4, 60), st.floats(0.05, 0.9))
def test_pairs_never_crash(seed, d, n, share):
    rng = np.random.default_rng(seed)
    X = holes(rng.standard_normal((n, d)) @ rng.standard_normal((d, d)).round(0), share, seed)
    if rng.random() < 0.3:
        X = X.round(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        there = ~np.isnan(X)
        low, high = np.fmin.reduce(X), np.fmax.reduce(X)
        if not (high > low).all() or ((there.T.astype(int) @ there) < 3).any():
            with pytest.raises(ValueError, match=r"rows that have both|constant column|without any value"):
                missing.pairwise(X)
            return
        found = missing.pairwise(X)
        size = np.sqrt(np.diag(found.covariance))
        assert there.all() or np.linalg.eigvalsh(found.covariance / np.outer(size, size))[0] > 0
        np.testing.assert_allclose(size, np.nanstd(X, axis=0), rtol=1e-9)
        if n > d > 2:
            ALIAS(missing="pairwise-complete", random_state=0, time_budget=2).fit(X)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_no_other_correlations_are_nearer(seed, d):
    rng = np.random.default_rng(seed)
    R = np.clip(np.eye(d) + np.tril(rng.uniform(-1, 1, (d, d)), -1), -1, 1)
    R = np.tril(R) + np.tril(R, -1).T
    found = nearest_correlation(R)
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert np.linalg.eigvalsh(found)[0] > 0
    distance = np.linalg.norm(found - R)
    for _ in range(20):
        B = rng.standard_normal((d, d))
        other = B @ B.T
        other /= np.sqrt(np.outer(np.diag(other), np.diag(other)))
        for share in (1.0, 0.1, 0.01):
            assert np.linalg.norm(share * other + (1 - share) * found - R) >= distance - 1e-4


# --- imputation -----------------------------------------------------------------------------------------------


def test_draws_have_the_conditional_distribution():
    X = chain(n=4000)[:, :3]
    gaps = X.copy()
    gaps[::2, 1] = nan
    m = missing.em(gaps)
    S, draws = m.covariance, [imputed(gaps, m, np.random.default_rng(k)) for k in range(40)]
    np.testing.assert_array_equal(draws[0][1::2], X[1::2])
    drawn = np.array([d[::2, 1] for d in draws])
    slope = np.linalg.solve(S[np.ix_([0, 2], [0, 2])], S[[0, 2], 1])
    mean = m.mean[1] + (X[::2][:, [0, 2]] - m.mean[[0, 2]]) @ slope
    variance = S[1, 1] - slope @ S[[0, 2], 1]
    error = (drawn - mean) / np.sqrt(variance)
    assert abs(error.mean()) < 4 / np.sqrt(error.size)
    assert abs(error.var() - 1) < 4 * np.sqrt(2 / error.size)
    # of different rows and draws they have nothing to do with each other
    assert abs(np.corrcoef(error)[0, 1]) < 4 / np.sqrt(error.shape[1])


def test_joint_draws_have_the_conditional_covariance():
    gaps = chain(n=6000)
    gaps[::2, 1:4] = nan
    m = missing.em(gaps)
    S, o, h = m.covariance, [0, 4], [1, 2, 3]
    slope = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, h)])
    drawn = np.concatenate([imputed(gaps, m, np.random.default_rng(k))[::2] for k in range(20)])
    error = drawn[:, h] - m.mean[h] - (drawn[:, o] - m.mean[o]) @ slope
    np.testing.assert_allclose(np.cov(error.T), S[np.ix_(h, h)] - S[np.ix_(h, o)] @ slope, atol=0.05)


def test_the_same_values_are_drawn_whatever_the_order_units_and_signs_of_columns(X):
    order, size = [3, 0, 4, 1, 2], np.array([1e3, -1.0, 1.0, -1e-4, 2.0])
    one = missing.impute(X, np.random.default_rng(0))
    other = missing.impute((X * size)[:, order], np.random.default_rng(0))
    np.testing.assert_allclose(other, (one * size)[:, order], rtol=1e-6, atol=1e-6)


# --- the estimator --------------------------------------------------------------------------------------------

TREATED = ("drop", "pairwise-complete", "em", "impute")


def fitted(X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return ALIAS(**({"random_state": 0} | parameters)).fit(X)


def test_missing_values_are_refused_by_default_and_the_choices_are_named(X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    sentence = (
        rf"'a' \({frame.a.isna().sum()} NaN\).*missing='drop' leaves out the {frame.isna().any(axis=1).sum()} of 300"
    )
    with pytest.raises(ValueError, match=sentence) as caught:
        ALIAS().fit(frame)
    assert all(name in str(caught.value) for name in TREATED)
    with pytest.raises(ValueError, match=r"missing='magic' is unknown; allowed: 'refuse', 'drop', 'pairwise-complete'"):
        ALIAS(missing="magic").fit(chain())


@pytest.mark.parametrize("treatment", TREATED)
def test_a_complete_table_is_taken_as_it_is(treatment):
    X = chain()
    one, other = ALIAS(random_state=0).fit(X), ALIAS(missing=treatment, random_state=0).fit(X)
    assert other.score_ == one.score_
    np.testing.assert_array_equal(other.weights_, one.weights_)
    assert not [note for note in other.notes_ if "issing" in note]
    assert not other.missing_.any()


@pytest.mark.parametrize("treatment", TREATED)
def test_the_graph_is_found_and_it_is_said_what_was_done(treatment):
    X = holes(chain(n=1000, seed=1), 0.15)
    before = X.copy()
    with pytest.warns(DataWarning, match=f"missing='{treatment}'") as caught:
        model = ALIAS(missing=treatment, random_state=0).fit(X)
    np.testing.assert_array_equal(X, before)
    expected = np.zeros((5, 5))
    expected[[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]] = 1
    np.testing.assert_array_equal(model.cpdag_, expected)
    said = [str(w.message) for w in caught]
    assert model.notes_ == said
    np.testing.assert_array_equal(model.missing_, np.isnan(X).sum(axis=0))
    gaps, rows = np.isnan(X).sum(), np.isnan(X).any(axis=1).sum()
    if treatment == "drop":
        assert any(f"left out {rows} of 1000 rows" in s and f"the {1000 - rows} rows" in s for s in said)
        assert model.n_samples_ == 1000 - rows
    else:
        assert any(f"{gaps} of 5000, in {rows} of 1000 rows and 5 of 5 columns" in s for s in said)
    assert any("at random" in s or "depends on nothing but" in s for s in said)


@pytest.mark.parametrize("treatment", ["em", "pairwise-complete"])
def test_a_fit_is_that_of_the_moments(X, treatment):
    moments = {"em": missing.em, "pairwise-complete": missing.pairwise}[treatment](X)
    one, other = fitted(X, missing=treatment), fitted(moments)
    assert one.score_ == other.score_
    assert one.n_samples_ == other.n_samples_ == moments.n
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_an_imputed_fit_depends_on_the_seed_and_on_nothing_else(X):
    one = fitted(X, missing="impute", random_state=1)
    for other in (
        fitted(X, missing="impute", random_state=1, n_jobs=2),
        fitted(X.copy(order="F"), missing="impute", random_state=np.random.default_rng(1)),
    ):
        assert other.score_ == one.score_
        np.testing.assert_array_equal(other.weights_, one.weights_)
    assert fitted(X, missing="impute", random_state=2).score_ != one.score_
    order = [2, 4, 0, 3, 1]
    other = fitted(X[:, order], missing="impute", random_state=1)
    np.testing.assert_array_equal(other.cpdag_, one.cpdag_[np.ix_(order, order)])
    assert other.score_ == pytest.approx(one.score_, rel=1e-9)


@pytest.mark.parametrize("treatment", ["em", "pairwise-complete"])
def test_what_needs_rows_says_which_treatments_leave_them(X, treatment):
    for parameters, which in (({"regression": "additive"}, "regression='additive'"), ({"prune": "cam"}, "prune='cam'")):
        for act in (lambda p: fitted(X, missing=treatment, **p), lambda p: bootstrap(ALIAS(missing=treatment, **p), X)):
            with pytest.raises(ValueError, match=f"{which} needs its rows: missing='impute' and missing='drop'"):
                act(parameters)


def test_regressions_that_need_rows_take_imputed_ones(X):
    model = fitted(X, missing="impute", regression="additive")
    assert model.n_samples_ == 300
    with pytest.raises(ValueError, match="needs columns of numbers and linear regressions"):
        model.score(X)


def test_too_few_complete_rows_are_refused():
    X = holes(np.random.default_rng(0).standard_normal((50, 20)), 0.4)
    with pytest.raises(ValueError, match=r"missing='drop' leaves 0 of 50 rows.*missing='em' and 'impute' use them all"):
        ALIAS(missing="drop").fit(X)
    Y = holes(chain(n=30), 0.4)
    left = (~np.isnan(Y)).all(axis=1).sum()
    assert 2 <= left <= 5
    with pytest.raises(ValueError, match=f"leaves {left} of 30 rows, too few for 5 columns"):
        ALIAS(missing="drop").fit(Y)
    Y = chain()
    Y[20:, 4], Y[:20, 0] = nan, 3.0
    why = r"constant column\(s\): 'x0', because rows with missing values were dropped: in the 20 of 300 that are left"
    with pytest.warns(DataWarning, match="left out 280 of 300"), pytest.raises(ValueError, match=why):
        ALIAS(missing="drop").fit(Y)
    with pytest.warns(DataWarning, match="left out 280 of 300"), pytest.raises(ValueError, match=why):
        bootstrap(ALIAS(missing="drop"), Y, 2)
    Y[:, 0] = 3.0
    with pytest.raises(ValueError, match="'x0'; a column that never varies"):
        ALIAS(missing="drop").fit(Y)


def test_kinds_of_missing_values():
    X = chain(n=60).round(0)
    X[::7, 1] = nan
    X[3::11, 2] = nan
    expected = fitted(X, missing="em")
    objects = np.where(np.isnan(X), None, X)
    nullable = pd.DataFrame(X, columns=list("abcde")).convert_dtypes()
    assert str(nullable.dtypes["b"]) == "Int64"
    frames = {
        "objects": objects,
        "NaN in a frame": pd.DataFrame(X),
        "pandas' own": nullable,
        "polars' null": pl.DataFrame({c: [None if v != v else int(v) for v in X[:, k]] for k, c in enumerate("abcde")}),
        "lists": objects.tolist(),
        "float32": X.astype(np.float32),
    }
    for kind, table in frames.items():
        found = fitted(table, missing="em")
        assert found.score_ == expected.score_, kind
        assert found.missing_.tolist() == expected.missing_.tolist(), kind


def test_a_score_of_other_rows_counts_the_values_that_are_there(X):
    model = fitted(X, missing="em")
    complete = chain(n=50, seed=9)
    assert model.score(complete) == pytest.approx(ALIAS.score(model, complete))
    # the same density, by the covariance that the graph implies
    gaps = holes(complete, 0.3, 4)
    B, units = model.weights_, model.moments_
    v = [model.regression_.residual(j, np.flatnonzero(model.adjacency_matrix_[:, j]).tolist()) for j in range(5)]
    inverse = np.linalg.inv(np.eye(5) - B)
    S = inverse.T @ np.diag(v) @ inverse
    assert model.score(gaps) == pytest.approx(density_of_what_is_there(gaps, units.mean, S) / 50, rel=1e-9)
    assert model.score(complete) == pytest.approx(density_of_what_is_there(complete, units.mean, S) / 50, rel=1e-9)
    standardised = fitted(X, missing="em", standardize=True)
    assert standardised.score(gaps) == pytest.approx(model.score(gaps), rel=1e-6)
    with pytest.raises(ValueError, match="missing='drop'"):
        fitted(complete).score(gaps)
    rows = ~np.isnan(gaps).any(axis=1)
    dropping = fitted(X, missing="drop")
    with pytest.warns(DataWarning, match="left out"):
        assert dropping.score(gaps) == dropping.score(gaps[rows])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_em_keeps_the_time_budget():
    X = holes(simulate.linear_gaussian(d=60, k=2, n=2000, rng=np.random.default_rng(0)).X, 0.4)
    with pytest.warns(UserWarning, match=r"EM ended after \d+ steps"):
        model = ALIAS(missing="em", time_budget=0.4, random_state=0).fit(X)
    assert model.seconds_ < 3


def test_a_checkpoint_of_an_imputed_fit_needs_a_seed(X, tmp_path):
    with pytest.raises(ValueError, match="needs a random_state"):
        ALIAS(missing="impute", checkpoint=tmp_path / "c").fit(X)
    model = fitted(X, missing="impute", checkpoint=tmp_path / "c")
    assert fitted(X, missing="impute", checkpoint=tmp_path / "c").score_ == model.score_


# --- bootstrap ------------------------------------------------------------------------------------------------


def bootstrapped(X, treatment, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return bootstrap(ALIAS(missing=treatment), X, **({"n_samples": 6, "random_state": 0} | settings))


@pytest.mark.parametrize("treatment", TREATED)
def test_a_bootstrap_treats_them_in_every_sample(X, treatment, tmp_path):
    one = bootstrapped(X, treatment, n_jobs=1, checkpoint=tmp_path / "log")
    assert one.adjacent[0, 1] > 0.8
    for other in (
        bootstrapped(X, treatment, n_jobs=2),
        bootstrapped(X, treatment, checkpoint=tmp_path / "log"),
        bootstrapped(pd.DataFrame(X, columns=one.names), treatment),
    ):
        assert [s.score for s in other.samples] == [s.score for s in one.samples]
    assert len(bootstrapped(X, treatment, method="subsample").samples) == 6
    assert len(bootstrapped(X, treatment, method="parametric").samples) == 6


def test_samples_draw_their_own_values(X):
    # with every row in every sample only the draws differ
    scores = {s.score for s in bootstrapped(X, "impute").samples}
    assert len(scores) == 6


def test_a_bootstrap_says_what_was_done(X):
    with pytest.warns(DataWarning, match=r"of 1500.*they are drawn at random from a Gaussian") as caught:
        bootstrap(ALIAS(missing="impute"), X, n_samples=2, random_state=0)
    assert not any("one draw of many" in str(w.message) for w in caught)
    with pytest.warns(DataWarning, match="Samples are of complete rows"):
        bootstrap(ALIAS(missing="em"), X, n_samples=2, method="parametric", random_state=0)
    with pytest.raises(ValueError, match="missing='drop' leaves out"):
        bootstrap(ALIAS(), X, n_samples=2)


def test_a_sample_without_a_value_of_a_column_is_drawn_again():
    X = chain(n=40)
    X[3:, 4] = nan
    assert len(bootstrapped(X, "em", n_samples=8).samples) == 8


# --- files and pages ------------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run_main(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run_main


@pytest.fixture
def messy(tmp_path, X):
    """A table as people have it, with gaps of many spellings."""
    spellings = ("", "NA", "n/a", "?", "null", "NaN")
    rows = [
        [spellings[(i + k) % 6] if np.isnan(v) else f"{v:.17g}" for k, v in enumerate(row)] for i, row in enumerate(X)
    ]
    file = tmp_path / "patients.csv"
    file.write_text("\n".join(["age;b;c;d;e", *(";".join(row) for row in rows)]) + "\n")
    return file


@pytest.mark.parametrize("treatment", ["pairwise-complete", "em", "impute"])
def test_the_command_line_does_what_the_library_does(run, messy, X, treatment, tmp_path):
    out = tmp_path / "out"
    code, _, err = run("discover", messy, "-o", out, "--missing", treatment, "--report", "-q")
    assert code == 0
    assert f"Missing values: {np.isnan(X).sum()} of 1500" in err
    told = json.loads((out / "run.json").read_text())
    assert told["parameters"]["missing"] == treatment
    assert any("Missing values" in note for note in told["warnings"])
    assert told["score"] == fitted(X, missing=treatment).score_
    columns = json.loads((out / "summary.json").read_text())["columns"]
    assert [sum(column["counts"]) for column in columns] == (~np.isnan(X)).sum(axis=0).tolist()
    assert [column["mean"] for column in columns] == pytest.approx(np.nanmean(X, axis=0).tolist())
    page = (out / "report.html").read_text()
    assert "Find out why values are missing" in page
    # and the page again, with the table beside the folder
    code, _, err = run("report", out, "--data", messy, "--missing", treatment, "-q")
    assert (code, "drawn at random" in err) == ((2, True) if treatment == "impute" else (0, False))


def test_dropping_and_refusing_go_on_as_before(run, messy, X, tmp_path):
    rows = np.isnan(X).any(axis=1).sum()
    code, _, err = run("discover", messy, "-o", tmp_path / "out")
    assert code == 2
    assert f"--missing drop leaves out the {rows} row(s) of 300 that have one, --missing em and impute use them" in err
    code, _, err = run("discover", messy, "-o", tmp_path / "out", "--missing", "drop", "-q")
    assert code == 0
    assert f"left out {rows} of 300 rows" in err
    code, _, err = run("discover", messy, "-o", tmp_path / "out", "--missing", "magic")
    assert code == 2
    assert "--missing='magic' is unknown; allowed: 'refuse', 'drop', 'pairwise-complete', 'em', 'impute'" in err


def test_columns_that_dropping_makes_constant_are_told_from_others(run, tmp_path):
    Y = chain()
    Y[20:, 4], Y[:20, 0] = nan, 3.0
    file, out = tmp_path / "still.csv", tmp_path / "out"
    write_table(file, Y, ("a", "b", "c", "d", "e"))
    code, _, err = run("discover", file, "-o", out, "--missing", "drop")
    assert code == 2
    assert "constant column(s): 'a', because rows with missing values were dropped: in the 20 of 300" in err
    assert "--missing em or impute" in err
    code, _, err = run("discover", file, "-o", out, "--missing", "drop", "--drop-constant", "-q")
    assert (code, "left out because constant: 'a'" in err) == (0, True)
    Y[:, 0] = 3.0
    write_table(file, Y, ("a", "b", "c", "d", "e"))
    code, _, err = run("discover", file, "-o", out, "--missing", "drop")
    assert (code, "'a'; a column that never varies" in err) == (2, True)


def test_a_bootstrap_on_the_command_line(run, messy, tmp_path):
    code, _, err = run("bootstrap", messy, "-o", tmp_path / "out", "--missing", "impute", "--samples", 3, "-q")
    assert code == 0
    assert "they are drawn at random" in err
    told = json.loads((tmp_path / "out" / "bootstrap.json").read_text())
    assert told["parameters"]["missing"] == "impute"


def test_what_a_file_in_pieces_cannot_do_is_said(run, messy, tmp_path):
    with pytest.raises(ValueError, match="missing='em' needs the whole table in memory"):
        Moments.from_csv(messy, missing="em")
    code, _, err = run("discover", messy, "-o", tmp_path / "out", "--missing", "em", "--max-memory", "0.000001")
    assert code == 2
    assert "--missing em needs all rows in memory" in err


def test_constant_columns_with_gaps_are_left_out_if_asked(run, tmp_path, X):
    X[~np.isnan(X[:, 4]), 4] = 2.0
    pd.DataFrame(X, columns=list("abcde")).to_csv(tmp_path / "t.csv", index=False)
    code, _, err = run(
        "discover", tmp_path / "t.csv", "-o", tmp_path / "out", "--missing", "em", "--drop-constant", "-q"
    )
    assert code == 0
    assert "left out because constant: 'e'" in err
