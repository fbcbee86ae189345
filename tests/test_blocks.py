"""The degenerate Gaussian score of numbers and categories together."""

import math
import warnings

import numpy as np
import pytest
from oracles import all_dags

from vec2dag import (
    ALIAS,
    BIC,
    DataWarning,
    DegenerateGaussian,
    Moments,
    Score,
    bootstrap,
    cpdag,
    effects,
    exact_search,
)
from vec2dag.columns import Coded, Columns, coded
from vec2dag.scores.blocks import BlocksOnTable, indicators

pandas = pytest.importorskip("pandas")


def mixed(n=400, seed=0):
    """A frame in which a -> drug -> dose -> cured, and sex -> cured."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(n)
    drug = np.where(a + 0.5 * rng.standard_normal(n) > 0.5, "x", np.where(rng.random(n) < 0.5, "y", "z"))
    dose = 2.0 * (drug == "x") - 1.0 * (drug == "y") + 0.5 * rng.standard_normal(n)
    sex = rng.choice(["f", "m"], n)
    cured = dose + (sex == "f") + 0.3 * rng.standard_normal(n) > 0.5
    return pandas.DataFrame({"a": a, "drug": drug, "dose": dose, "sex": sex, "cured": cured})


def test_of_numbers_alone_it_is_bic():
    X = np.random.default_rng(0).standard_normal((200, 4)) @ np.random.default_rng(1).standard_normal((4, 4))
    for gamma in (0.0, 1.0):
        gaussian, degenerate = Score(X, criterion=BIC(gamma=gamma)), Score(X, criterion=DegenerateGaussian(gamma=gamma))
        np.testing.assert_allclose(degenerate(all_dags(4)), gaussian(all_dags(4)), rtol=0, atol=1e-11)


def test_costs_are_log_determinants_of_conditional_blocks():
    table = coded(mixed())
    score = Score(table, criterion="bic-dg")
    wide, n = indicators(table), len(table.values)
    S = np.cov(wide.T, bias=True)
    blocks = [[0], [1, 2], [3], [4], [5]]

    def determinant(nodes):
        places = [k for node in nodes for k in blocks[node]]
        return np.linalg.slogdet(S[np.ix_(places, places)])[1] if places else 0.0

    for node, parents in ((0, []), (1, []), (1, [0]), (2, [1]), (4, [2, 3]), (1, [0, 2, 3, 4]), (0, [1, 2, 3, 4])):
        coefficients = len(blocks[node]) * sum(len(blocks[p]) for p in parents)
        expected = determinant([node, *parents]) - determinant(parents) + coefficients * math.log(n) / n
        assert score.local(node, parents) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_equivalent_graphs_have_the_same_score():
    score = Score(coded(mixed()).taken([0, 1, 2, 4]), criterion="ebic-dg")
    values = {}
    for A in all_dags(4):
        values.setdefault(cpdag(A).tobytes(), []).append(float(score(A)))
    assert max(np.ptp(same) for same in values.values()) < 1e-10


def test_neither_units_nor_the_order_of_levels_matter():
    X = mixed()
    score = Score(coded(X), criterion="bic-dg")
    other = X.assign(a=1000 * X["a"] - 3, drug=pandas.Categorical(X["drug"], categories=["z", "x", "y"]))
    again = Score(coded(other), criterion="bic-dg")
    A = np.zeros((5, 5), np.uint8)
    A[0, 1] = A[1, 2] = A[2, 4] = A[3, 4] = 1
    empty = np.zeros_like(A)
    assert float(score(A) - score(empty)) == pytest.approx(float(again(A) - again(empty)), abs=1e-11)


def test_auto_finds_the_graph_of_a_mixed_table():
    model = ALIAS(random_state=0).fit(mixed(2000))
    assert model.criterion_ == DegenerateGaussian(gamma=1.0)
    found = {frozenset(edge) for edge in model.graph_.edges}
    wanted = {("a", "drug"), ("drug", "dose"), ("dose", "cured"), ("sex", "cured")}
    assert {frozenset(edge) for edge in wanted} <= found
    assert model.search_.exact
    assert model.run()["levels"] == {"drug": ["x", "y", "z"], "sex": ["f", "m"], "cured": [False, True]}
    assert math.isnan(model.diagnostics_["varsortability"])


def test_coefficients_are_of_numbers_beside_the_other_causes():
    rng = np.random.default_rng(0)
    n = 300
    x, group = rng.standard_normal(n), rng.choice(["u", "v", "w"], n)
    y = 1.5 * x + 2.0 * (group == "v") - (group == "w") + 0.1 * rng.standard_normal(n)
    X = pandas.DataFrame({"x": x, "group": group, "y": y})
    A = np.zeros((3, 3), np.uint8)
    A[0, 2] = A[1, 2] = 1
    W = Score(coded(X), criterion="bic-dg").regression.coefficients(A)
    design = np.column_stack([np.ones(n), x, group == "v", group == "w"])
    assert W[0, 2] == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0][1], rel=1e-9)
    assert math.isnan(W[1, 2])


def test_score_of_other_rows_is_a_density():
    X = mixed(600)
    model = ALIAS(random_state=0).fit(X[:400])
    table = model.columns_.encode(X[400:])
    bound = model.regression_
    # probabilities of the levels of a category sum to 1 in every row
    drug, parents = 1, [0, 2]
    total = np.zeros(5)
    for row in range(5):
        for level in range(3):
            one = table[row : row + 1].copy()
            one[0, drug] = level
            total[row] += math.exp(bound.log_density(drug, parents, one))
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)
    # a number given a number is the Gaussian of its regression
    numbers = Score(X[["a", "dose"]][:400].to_numpy(), criterion="bic-nv").regression
    centred = X[["a", "dose"]][400:].to_numpy() - X[["a", "dose"]][:400].to_numpy().mean(axis=0)
    expected = numbers.log_density(1, [0], centred)
    assert bound.log_density(2, [0], table) == pytest.approx(expected, rel=1e-9)
    assert model.score(X[400:]) > ALIAS(random_state=0, knowledge={"max_parents": 0}).fit(X[:400]).score(X[400:])


def test_a_level_that_a_sample_lacks_is_no_obstacle():
    table = coded(mixed(200))
    rows = table.values[table.values[:, 1] != 2]
    score = Score(Coded(rows, table.columns), criterion="bic-dg")
    assert np.isfinite(exact_search(score).score)


def test_moments_of_the_wider_table_are_enough():
    table = coded(mixed())
    halves = [Moments.of(indicators(Coded(table.values[k::2], table.columns))) for k in range(2)]
    bound = BlocksOnTable(halves[0].merge(halves[1]), table.columns)
    whole = Score(table, criterion="bic-dg")
    A = all_dags(4)[-1]
    A = np.pad(A, (0, 1))
    assert float(Score(None, bound, "bic-dg")(A)) == pytest.approx(float(whole(A)), abs=1e-10)
    with pytest.raises(ValueError, match="with indicators"):
        BlocksOnTable(halves[0], Columns.numeric(("a", "b")))


def test_a_category_that_another_determines_is_told():
    rng = np.random.default_rng(0)
    town, size = rng.integers(0, 12, 400), rng.standard_normal(400)
    X = pandas.DataFrame({"town": [f"t{k}" for k in town], "country": [f"c{k // 4}" for k in town], "size": size})
    with pytest.warns(DataWarning, match="others determine: 'country' by 'town'; such pairs"):
        model = ALIAS(random_state=0).fit(X)
    assert np.isfinite(model.score_)
    X.loc[0, "country"] = "c1" if town[0] // 4 != 1 else "c2"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        ALIAS(random_state=0).fit(X)


def test_determinants_of_many_levels_are_no_obstacle():
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 300, 3000)
    X = pandas.DataFrame({"shop": [f"s{k}" for k in shop], "twice": 2.0 * (shop % 10) + rng.standard_normal(3000)})
    X["more"] = X["twice"] + rng.standard_normal(3000)
    # Towns are copies of shops but for a few: log determinants of 299 columns are far below those of any number.
    X["town"] = np.where(rng.random(3000) < 0.01, "s0", X["shop"])
    score = Score(coded(X), criterion="bic-dg")
    assert score.local(0, []) < -1000
    model = ALIAS(random_state=0).fit(X)
    assert np.isfinite(model.score_)
    assert {("more", "twice"), ("shop", "town")} <= {
        tuple(sorted(pair)) for pair in zip(model.edges_["source"], model.edges_["target"], strict=True)
    }


def test_nonsense_about_codes_is_not_said():
    X = mixed(50).assign(same=lambda X: X["drug"].map({"x": "p", "y": "q", "z": "r"}))
    with pytest.warns(DataWarning, match="the same up to the names") as caught:
        ALIAS(random_state=0).fit(X)
    said = " ".join(str(w.message) for w in caught)
    assert "'drug' = 'same'" in said
    assert "distinct values" not in said
    assert "scales" not in said


def test_total_effects_are_refused_by_the_names_of_the_categories():
    frame = mixed()
    model = ALIAS(random_state=0).fit(frame)
    samples = bootstrap(ALIAS(random_state=0), frame, 3, random_state=0)
    for of in (model, samples):
        with pytest.raises(ValueError, match="total effects are of graphs of numbers, and 'drug', 'sex', 'cured' are"):
            effects(of, "a", "dose")


def test_score_of_no_rows_is_refused():
    model = ALIAS(random_state=0).fit(mixed())
    with pytest.raises(ValueError, match="at least one row"):
        model.score(mixed().iloc[:0])


def test_hardly_any_rows_have_a_score_and_a_warning():
    frame = mixed(3, seed=1).assign(sex=["f", "m", "f"], drug=["x", "y", "x"])[["a", "drug", "dose", "sex"]]
    with pytest.warns(DataWarning, match="The table has 3 rows for 4 columns: nothing can be concluded"):
        model = ALIAS(random_state=0).fit(frame)
    assert abs(model.score_) < 100.0
    assert not model.adjacency_matrix_.any()


def test_columns_may_be_named_again_that_are_categories_already():
    table = coded(mixed())
    assert ALIAS(categorical=["drug"]).fit(table).get_params()["categorical"] == ["drug"]
    with pytest.raises(ValueError, match="no effect on a table that is coded"):
        ALIAS(categorical=["a"]).fit(table)
