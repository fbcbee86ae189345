"""BGe: against predictive densities row by row, on equivalent graphs, and as a score that searches can use."""

from math import comb

import numpy as np
import pytest
from oracles import all_dags, markov_class
from scipy.stats import multivariate_t

from vec2dag import Linear, Moments, Score, discover, exact_search
from vec2dag.scores import BGe


def table(rng, n=30, d=4):
    W = np.triu(rng.normal(size=(d, d)), 1)
    return rng.standard_normal((n, d)) @ np.linalg.inv(np.eye(d) - W) + rng.normal(size=d)


def score_of(X, criterion):
    return Score(X, criterion.regression(), criterion)


def log_predictive(X, columns, alpha_mu, alpha_w, mean):
    """The rows one by one, each from the predictive t distribution given those before it."""
    d, size = X.shape[1], len(columns)
    if size == 0:
        return 0.0
    T = np.eye(size) * alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1)
    kappa, nu, mu = alpha_mu, alpha_w - d + size, np.asarray(mean, float)[columns].copy()
    total = 0.0
    for x in X[:, columns]:
        freedom = nu - size + 1
        total += multivariate_t(mu, T * (kappa + 1) / (kappa * freedom), df=freedom).logpdf(x)
        T = T + kappa / (kappa + 1) * np.outer(x - mu, x - mu)
        mu = (kappa * mu + x) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    return total


@pytest.mark.parametrize(("alpha_mu", "alpha_w", "mean"), [(1.0, None, 0.0), (0.4, 7.5, 0.7), (2.0, None, None)])
def test_a_local_score_is_the_product_of_predictive_densities(rng, alpha_mu, alpha_w, mean):
    X = table(rng)
    n, d = X.shape
    local = BGe(alpha_mu, alpha_w, mean).regression().bind(X)
    freedom = d + alpha_mu + 1 if alpha_w is None else alpha_w
    prior = X.mean(axis=0) if mean is None else np.full(d, mean)
    for node, parents in [(0, []), (2, [0]), (1, [3, 0]), (3, [0, 1, 2])]:
        expected = log_predictive(X, [*parents, node], alpha_mu, freedom, prior)
        expected -= log_predictive(X, parents, alpha_mu, freedom, prior)
        found = local.evidence(np.array([node]), np.array([parents], np.int64).reshape(1, -1))[0]
        assert found == pytest.approx(expected, rel=1e-10)
        assert local.residual(node, parents) == pytest.approx(np.exp(-2 / n * expected), rel=1e-9)


def test_equivalent_graphs_have_the_same_score_and_others_have_not(rng):
    graphs = all_dags(4)
    score = score_of(table(rng), BGe())
    assert score.score_equivalent
    assert not score.equal_variances
    classes = {}
    for A, value in zip(graphs, score(graphs), strict=True):
        classes.setdefault(markov_class(A), []).append(value)
    assert len(classes) == 185
    assert max(np.ptp(values) for values in classes.values()) < 1e-12
    assert np.diff(np.sort([values[0] for values in classes.values()])).min() > 1e-12


def test_the_score_is_twice_the_log_marginal_likelihood_over_n_d(rng):
    X = table(rng)
    n, d = X.shape
    score = score_of(X, BGe(mean=0.0))
    complete = np.triu(np.ones((d, d), np.uint8), 1)
    whole = log_predictive(X, [0, 1, 2, 3], 1.0, d + 2.0, np.zeros(d))
    assert float(score(complete)) == pytest.approx(2 * whole / (n * d), rel=1e-10)
    assert score.name == "bge"


def test_gamma_charges_for_the_number_of_sets_of_so_many_parents(rng):
    X = table(rng, d=5)
    n, d = X.shape
    graphs = rng.permuted(np.triu(rng.integers(0, 2, (6, d, d)), 1), axis=2).astype(np.uint8)
    graphs = np.triu(graphs, 1)
    prices = np.log([comb(d - 1, min(k, 2)) for k in range(d)])
    charged = 0.5 * n * d * (score_of(X, BGe())(graphs) - score_of(X, BGe(gamma=0.5))(graphs))
    assert np.allclose(charged, 0.5 * prices[graphs.sum(axis=1)].sum(axis=1))
    assert graphs.sum(axis=(1, 2)).max() > 2


def test_batches_and_tables_of_sets_are_the_single_ones(rng):
    score = score_of(table(rng, d=5), BGe())
    sets = rng.integers(0, 2, (20, 5)).astype(np.uint8)
    sets[:, 2] = 0
    single = [score.regression.residual(2, np.flatnonzero(row).tolist()) for row in sets]
    assert np.allclose(score.local.of_sets(2, sets), single, rtol=1e-12)
    assert np.allclose(score.local.batch([(2, np.flatnonzero(row)) for row in sets]), single, rtol=1e-12)


def test_statistics_are_enough_and_merge(rng):
    X = table(rng, n=60)
    graphs = all_dags(4)[::50]
    halves = Moments.of(X[:25]).merge(Moments.of(X[25:]))
    criterion = BGe(mean=0.3)
    assert np.allclose(score_of(halves, criterion)(graphs), score_of(X, criterion)(graphs), rtol=1e-11)


def test_for_many_rows_it_prefers_what_bic_prefers(rng):
    X = table(rng, n=20_000)
    graphs = all_dags(4)
    n, d = X.shape
    bge = 0.5 * n * d * score_of(X, BGe())(graphs)
    bic = 0.5 * n * d * Score(X)(graphs)
    # The difference of the two, up to a constant, stays bounded as n grows: both are of the order of 10^4.
    assert np.ptp(bge - bic) < 60
    assert np.ptp(bic) > 1000


def test_searches_use_it(rng):
    score = score_of(table(rng, n=200), BGe())
    graphs = all_dags(4)
    best = score(graphs).max()
    assert exact_search(score).score == pytest.approx(best, abs=1e-12)
    assert discover(score, rng=rng).score == pytest.approx(best, abs=1e-12)
    wide = score_of(table(rng, n=100, d=14), BGe())
    found = discover(wide, rng=rng, time_budget=1)
    assert found.score > float(wide(np.zeros((14, 14))))


def test_what_is_impossible_is_refused(rng):
    X = table(rng)
    with pytest.raises(ValueError, match="alpha_mu must be"):
        BGe(alpha_mu=0)
    with pytest.raises(ValueError, match=r"alpha_w must be above d \+ 1 = 5, got 5"):
        score_of(X, BGe(alpha_w=5))
    with pytest.raises(ValueError, match="linear regressions, got regression='gp'"):
        BGe().regression("gp")
    with pytest.raises(ValueError, match="linear regressions, got"):
        BGe().regression(Linear(reference=True))
    with pytest.raises(ValueError, match="cannot be its own parent"):
        score_of(X, BGe()).local(1, [1])
    X[:, 2] = 1.0
    with pytest.raises(ValueError, match="columns must vary: 'x2'"):
        score_of(X, BGe())
    huge = np.repeat(rng.standard_normal((50, 1)), 3, axis=1) * 1e12
    with pytest.raises(ValueError, match="standardise"):
        score_of(huge, BGe())(np.triu(np.ones((3, 3)), 1))
