"""Criteria: in Python as in the kernels, their formulas written out, and what they claim of themselves."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from oracles import OnStatistics, acyclic, all_dags, graph_score, markov_class, mean_squared_residual

from vec2dag import (
    BIC,
    BGe,
    DegenerateGaussian,
    LeastSquares,
    Linear,
    Score,
    _kernels,
    discover,
    exact_search,
    insertion_search,
    vec2dag,
    vec_dim,
)
from vec2dag.scores import CRITERIA


class ShiftedSquares(LeastSquares):
    """Least squares of residuals that have something added to them."""

    offset = 0.3


@dataclass
class Steep(BIC):
    """The second parent costs more than the first."""

    def prices(self, n, d):
        return np.arange(d + 1.0) ** 1.5


OBJECTS = {
    "bic-nv": BIC(),
    "bic-nv, offset": BIC(offset=0.3),
    "bic-ev": BIC("equal"),
    "bic-ev, offset": BIC("equal", offset=0.3),
    "ls": LeastSquares(),
    "ls, lambda0": LeastSquares(2.5),
    "ls, offset": ShiftedSquares(),
    "steep nv": Steep(),
    "steep ev": Steep("equal", offset=0.1),
}
every_criterion = pytest.mark.parametrize("criterion", OBJECTS.values(), ids=OBJECTS)
N, D = 80, 5


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, D)) @ (np.triu(rng.normal(size=(D, D)), 1) + np.eye(D)) * rng.uniform(0.3, 3, D) + 2


@pytest.fixture
def graphs(rng):
    return vec2dag(rng.standard_normal((20, vec_dim(D))))


def links_and_total(criterion, rng):
    links = criterion.link(rng.lognormal(size=D))
    return links, float(links.sum())


# --- once in Python, once compiled ----------------------------------------------------------------------------


@every_criterion
def test_links_are_those_of_the_kernels(criterion, rng):
    compiled = criterion.compiled(N, D)
    for residual in rng.lognormal(sigma=4, size=50):
        assert _kernels.link(residual, 1.0, compiled) == pytest.approx(float(criterion.link(residual)), rel=1e-14)


@every_criterion
def test_fits_are_those_of_the_kernels(criterion, rng):
    for _ in range(50):
        _, total = links_and_total(criterion, rng)
        ours = _kernels.unpriced(total, D, criterion.compiled(N, D))
        assert ours == pytest.approx(criterion.unpriced(total, D), rel=1e-14)


@every_criterion
def test_changes_are_those_of_the_kernels(criterion, rng):
    compiled = criterion.compiled(N, D)
    for _ in range(50):
        _, total = links_and_total(criterion, rng)
        # Down to below zero, where rounding may lead and a logarithm ends.
        delta = abs(total) * rng.uniform(-1.5, 3, 7)
        ours = [_kernels.change(step, total, D, compiled) for step in delta]
        np.testing.assert_allclose(ours, criterion.change(delta, total, D), rtol=1e-12)
        assert np.isfinite(ours).all()


@every_criterion
def test_scores_of_the_kernels_are_fits_minus_prices(criterion, rng):
    residuals, parents = rng.lognormal(size=(30, D)), rng.integers(0, D, (30, D))
    out = np.empty(30)
    _kernels.combine_batch(residuals, parents, np.ones(D), criterion.compiled(N, D), out)
    prices = criterion.prices(N, D)[parents].sum(axis=1)
    fits = np.array([criterion.unpriced(float(criterion.link(row).sum()), D) for row in residuals])
    np.testing.assert_allclose(out, fits - criterion.penalty(N, D) * prices, rtol=1e-12)


def test_numbers_of_parents_that_do_not_fit_the_residuals_are_refused(X, monkeypatch):
    # Not compiled: a compiled kernel would read and write beyond the arrays.
    monkeypatch.setattr(_kernels, "combine_batch", _kernels.combine_batch.py_func)
    score, residuals = Score(X), np.ones((2 * D, D))
    for parents in (np.zeros((D, D), int), np.zeros(2 * D, int)):
        with pytest.raises(ValueError, match="shape"):
            score.combine(residuals, parents)


# --- closed forms ---------------------------------------------------------------------------------------------


@every_criterion
def test_a_change_is_the_difference_of_two_fits(criterion, rng):
    for _ in range(50):
        links, total = links_and_total(criterion, rng)
        delta = criterion.link(rng.lognormal()) - links[0]
        difference = criterion.unpriced(total + delta, D) - criterion.unpriced(total, D)
        assert float(criterion.change(delta, total, D)) == pytest.approx(difference, rel=1e-9, abs=1e-12)


def by_the_docstring(criterion, r, edges):
    """The table of the class, without its prices of parents beyond the first."""
    r = r + criterion.offset
    if isinstance(criterion, LeastSquares):
        lambda0 = math.log(N) if criterion.lambda0 is None else criterion.lambda0
        value = -(N * r.sum() + lambda0 * edges)
    elif criterion.variances == "equal":
        value = -(N * D * np.log(r.sum() / D) + edges * np.log(N))
    else:
        value = -(N * np.log(r).sum() + edges * np.log(N))
    return value / (N * D)


@every_criterion
def test_the_score_of_a_graph_is_the_formula(criterion, X, graphs):
    expected = []
    for A in graphs:
        r = np.array([mean_squared_residual(X, j, np.flatnonzero(A[:, j]).tolist()) for j in range(D)])
        k = A.sum(axis=0)
        expected.append(by_the_docstring(criterion, r, (k**1.5).sum() if isinstance(criterion, Steep) else k.sum()))
    np.testing.assert_allclose(Score(X, "linear", criterion)(graphs), expected, rtol=1e-10)


@every_criterion
def test_one_toggle_changes_the_score_by_the_change_of_its_link(criterion, X, graphs):
    """The whole score and the change of one edge are two ways to the same number, whatever the offset."""
    score = Score(X, "linear", criterion)
    for A in graphs[:5]:
        links, table = score.toggles(A)
        sizes, total = A.sum(axis=0, dtype=int), float(links.sum())
        for i in range(D):
            for j in set(range(D)) - {i}:
                B = A.copy()
                B[j, i] ^= 1
                more = score.prices[B[:, i].sum()] - score.prices[sizes[i]]
                expected = float(score(B)) - float(score(A))
                assert float(score.change(table[i, j], total)) - score.penalty * more == pytest.approx(
                    expected, abs=1e-11
                )


@every_criterion
def test_prices_are_counted_in_first_parents(criterion):
    prices = criterion.prices(N, D)
    assert prices.shape == (D + 1,)
    assert prices[:2].tolist() == [0, 1]
    assert criterion.price(0, N, D) == 0
    assert criterion.price(1, N, D) == pytest.approx(criterion.penalty(N, D) * N * D)
    assert criterion.price(3, N, D) == pytest.approx(prices[3] * criterion.price(1, N, D))


def test_an_edge_costs_what_the_paper_says():
    assert BIC().price(1, N, D) == BIC("equal").price(1, N, D) == LeastSquares().price(1, N, D) == math.log(N)
    assert LeastSquares(2.5).price(2, N, D) == 5
    assert LeastSquares(0).penalty(N, D) == 0


# --- what criteria claim of themselves ------------------------------------------------------------------------


@every_criterion
def test_decomposable_criteria_are_sums_over_nodes(criterion, X):
    """What an edge to one node gains depends on an edge to another node exactly where the score is not a sum."""
    neither = np.zeros((D, D), np.uint8)
    one, other = neither.copy(), neither.copy()
    one[0, 3], other[1, 4] = 1, 1
    score = Score(X, "linear", criterion)
    mixed = float(score(one | other) - score(one) - score(other) + score(neither))
    assert (abs(mixed) < 1e-12) == criterion.decomposable
    assert abs(mixed) < 1e-12 or abs(mixed) > 1e-5


@every_criterion
def test_equal_variances_read_the_units(criterion, rng):
    """Of two dependent columns the one with the larger unit seems to be the effect."""
    x = rng.standard_normal(N)
    X = np.column_stack([x, x + rng.standard_normal(N)])
    forward, backward = np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]])
    preference = [
        float(score(forward) - score(backward))
        for score in (Score(X * unit, "linear", criterion) for unit in ([1, 100], [100, 1]))
    ]
    if criterion.equal_variances:
        assert preference[0] > 0.01
        assert preference[1] < -0.01
    elif criterion.offset == 0:
        assert preference == pytest.approx([0, 0], abs=1e-12)


@pytest.fixture(scope="module")
def classes():
    """The DAGs of four nodes by equivalence class: 185 of them (Gillispie & Perlman 2001)."""
    dags = all_dags(4)
    found = {}
    for k, A in enumerate(dags):
        found.setdefault(markov_class(A), []).append(k)
    assert len(found) == 185
    return dags, list(found.values())


def spread_within_classes(score, classes):
    dags, members = classes
    values = score(dags)
    return max(np.ptp(values[k]) for k in members)


@every_criterion
def test_score_equivalence_is_kept_or_not_claimed(criterion, X, classes):
    """Any price of a number of parents keeps it: reversing a covered edge swaps two of these numbers."""
    score = Score(X[:, :4], "linear", criterion)
    assert score.score_equivalent == criterion.score_equivalent
    spread = spread_within_classes(score, classes)
    assert spread < 1e-10 if criterion.score_equivalent else spread > 1e-3


def test_regressions_without_intercept_are_not_score_equivalent(X, classes):
    score = Score(X[:, :4], Linear(reference=True), BIC())
    assert not score.score_equivalent
    assert spread_within_classes(score, classes) > 1e-3


# --- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("bic-nv", BIC("unequal")),
        ("bic-ev", BIC("equal")),
        ("ebic-nv", BIC("unequal", gamma=1.0)),
        ("ebic-ev", BIC("equal", gamma=1.0)),
        ("ls", LeastSquares()),
        ("bge", BGe()),
        ("bic-dg", DegenerateGaussian()),
        ("ebic-dg", DegenerateGaussian(gamma=1.0)),
    ],
)
def test_names_stand_for_criteria(name, criterion, X):
    assert criterion.name == name
    assert Score(X, "linear", name).criterion == criterion
    assert name in CRITERIA
    # and those of categories alone
    assert len(CRITERIA) == 8 + 2


def test_a_name_stands_for_the_same_criterion_for_ever(X):
    before = float(Score(X)(np.zeros((D, D))))
    mine = Score(X).criterion
    try:
        mine.set_params(offset=1.0)
        assert float(Score(X)(np.zeros((D, D)))) == before
    finally:
        mine.set_params(offset=0.0)


def test_a_score_stays_what_it_was_when_its_criterion_is_changed(X, graphs):
    criterion = BIC()
    score = Score(X, "linear", criterion)
    value, links = score(graphs), score.toggles(graphs[0])[0]
    criterion.set_params(variances="equal", offset=2.0)
    np.testing.assert_array_equal(score(graphs), value)
    np.testing.assert_array_equal(score.toggles(graphs[0])[0], links)


# --- prices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 30])
@pytest.mark.parametrize(("gamma", "discount"), [(0.0, 1.0), (0.5, 1.0), (1.0, 2.0), (0.3, 0.0)])
def test_the_price_of_parents_is_the_formula(d, gamma, discount):
    n = 250
    criterion = BIC(gamma=gamma, discount=discount)
    for k in range(d):
        sets = math.comb(d - 1, min(k, max((d - 1) // 2, min(1, d - 1))))
        expected = discount * k * math.log(n) + 2 * gamma * math.log(sets)
        assert criterion.price(k, n, d) == pytest.approx(expected, abs=1e-9)
    assert (np.diff(criterion.prices(n, d)) >= -1e-12).all(), "a further parent is never paid for"
    constant = BIC(gamma=gamma, discount=discount, multiplicity="constant")
    assert constant.price(1, n, d) == pytest.approx(discount * math.log(n) + 2 * gamma * math.log(d))
    assert constant.prices(n, d) == pytest.approx(np.arange(d + 1))


def test_plain_bic_has_whole_prices():
    """Sums of them are exact, so that graphs do not depend on the order of summation."""
    for criterion in (BIC(), BIC("equal", discount=2.0), LeastSquares(0.3), LeastSquares(0.0)):
        assert np.array_equal(criterion.prices(100, 6), np.arange(7.0))


PRICED = [BIC(gamma=1.0), BIC(gamma=0.5, discount=2.0), BIC(gamma=1.0, multiplicity="constant"), BIC(discount=3.0)]


@pytest.mark.parametrize("criterion", PRICED)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_graphs_is_found_at_any_price(criterion, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 4)) @ (np.eye(4) + np.triu(rng.normal(size=(4, 4)), 1))
    score = Score(X, "linear", criterion)
    graphs = all_dags(4)
    best = max(
        graph_score(X, A, "bic-nv") + (A.sum() * math.log(40) - price_of(criterion, A, 40)) / 160 for A in graphs
    )
    assert float(score(graphs).max()) == pytest.approx(best, abs=1e-10)
    assert exact_search(score).score == pytest.approx(best, abs=1e-10)
    assert discover(score, rng=rng).score == pytest.approx(best, abs=1e-10)


def price_of(criterion, A, n):
    return sum(criterion.price(int(k), n, len(A)) for k in A.sum(axis=0))


@pytest.mark.parametrize("criterion", [*PRICED, BIC("equal", gamma=1.0), BIC("equal", discount=0.5)])
@pytest.mark.parametrize("general", [False, True])
def test_refined_graphs_are_local_optima_at_any_price(criterion, general):
    """Of compiled and of general descents: no single edge, added, removed or reversed, improves them."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 6)) @ (np.eye(6) + np.triu(rng.normal(size=(6, 6)), 1))
    score = Score(X, "linear", criterion)
    used = Score(None, OnStatistics(score.regression), criterion) if general else score
    found = insertion_search(used, rng.permutation(6))
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-10)
    for i in range(6):
        for j in range(6):
            for turned in (False, True):
                B = found.A.copy()
                if i == j or (turned and not B[i, j]):
                    continue
                B[i, j] ^= 1
                B[j, i] ^= turned
                if acyclic(B):
                    assert float(score(B)) <= found.score + 1e-8


def test_a_higher_price_leaves_fewer_edges():
    X = np.random.default_rng(0).standard_normal((80, 20))
    edges = [
        int(discover(Score(X, "linear", BIC(gamma=gamma)), rng=np.random.default_rng(0)).A.sum())
        for gamma in (0.0, 0.5, 1.0)
    ]
    assert edges[0] > edges[1] >= edges[2] == 0, "independent columns: all edges are chance"


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "1", None, True])
@pytest.mark.parametrize("parameter", ["gamma", "discount"])
def test_impossible_prices_are_refused_by_name(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter} must be"):
        BIC(**{parameter: value})


def test_prices_of_one_s_own_are_checked_before_anything_is_computed(X):
    class Nan(BIC):
        def edge_price(self, n, d):
            return math.nan

    class Short(BIC):
        def prices(self, n, d):
            return np.arange(3.0)

    for criterion in (Nan(), Short()):
        with pytest.raises(ValueError, match="must price an edge with a finite number"):
            Score(X, "linear", criterion)
