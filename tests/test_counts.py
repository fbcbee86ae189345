"""Scores of categories: BDeu and multinomial BIC, their search, and their tables of probabilities."""

import itertools
import json
import math

import numpy as np
import pytest
from oracles import all_dags
from scipy.special import gammaln

from vec2dag import ALIAS, BDeu, Linear, MultinomialBIC, Score, bootstrap, cpdag, discover, exact_search, posterior
from vec2dag import prune as pruning
from vec2dag.columns import Coded, Columns, coded
from vec2dag.confidence.resampling import MANY_ROWS
from vec2dag.scores import costs
from vec2dag.search import LocalSearch


def table(n=300, levels=(2, 3, 2, 4), seed=0):
    """Codes (n, d) with dependence along the columns."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, len(levels)), np.int64)
    for j, r in enumerate(levels):
        X[:, j] = rng.integers(0, r, n) if j == 0 else (X[:, j - 1] + (rng.random(n) < 0.3) * rng.integers(0, r, n)) % r
    return X


def by_hand(X, node, parents, ess=None):
    """The log score of a node from the definition, cell by cell; without a prior the log-likelihood less its price."""
    n, levels = len(X), [len(np.unique(column)) for column in X.T]
    r, q = levels[node], math.prod(levels[p] for p in parents)
    total = 0.0
    for configuration in {tuple(row) for row in X[:, parents].tolist()}:
        rows = X[(X[:, parents] == configuration).all(axis=1)]
        counts = [int((rows[:, node] == level).sum()) for level in np.unique(X[:, node])]
        if ess is None:
            total += sum(k * math.log(k / len(rows)) for k in counts if k)
        else:
            total += gammaln(ess / q) - gammaln(ess / q + len(rows))
            total += sum(gammaln(ess / (q * r) + k) - gammaln(ess / (q * r)) for k in counts)
    return total if ess is not None else total - 0.5 * math.log(n) * q * (r - 1)


def log_score(score, node, parents):
    return -0.5 * score.n * score.local(node, parents)


@pytest.mark.parametrize("ess", [0.3, 1.0, 10.0, None])
def test_local_scores_are_those_of_the_definition(ess):
    X = table()
    score = Score(X, criterion=MultinomialBIC() if ess is None else BDeu(ess))
    for node in range(4):
        others = [j for j in range(4) if j != node]
        for k in range(4):
            for parents in itertools.combinations(others, k):
                expected = by_hand(X, node, list(parents), ess)
                assert log_score(score, node, parents) == pytest.approx(expected, rel=1e-11)


def test_tables_that_are_too_large_to_be_made_whole_are_counted_all_the_same(monkeypatch):
    X = table(400, (7, 9, 8, 11, 6), seed=1)
    expected = [by_hand(X, 4, [0, 1, 2, 3], 1.0), by_hand(X, 3, [0, 1, 2], 1.0), by_hand(X, 0, [4], 1.0)]
    for room in (2**16, 512, 400):
        monkeypatch.setattr("vec2dag.scores.counts.ROOM", room)
        score = Score(X, criterion=BDeu())
        found = [log_score(score, 4, [0, 1, 2, 3]), log_score(score, 3, [0, 1, 2]), log_score(score, 0, [4])]
        assert found == pytest.approx(expected, rel=1e-11)


def test_more_levels_than_bytes_can_count():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(np.arange(2000) % 300), rng.integers(0, 3, 2000)])
    score = Score(Coded(X.astype(float), Columns(("a", "b"), (tuple(range(300)), (0, 1, 2)))), criterion="bdeu")
    assert log_score(score, 1, [0]) == pytest.approx(by_hand(X, 1, [0], 1.0), rel=1e-11)
    assert log_score(score, 0, [1]) == pytest.approx(by_hand(X, 0, [1], 1.0), rel=1e-11)


@pytest.mark.parametrize("criterion", [BDeu(), BDeu(7.0, gamma=0.5), MultinomialBIC(), MultinomialBIC(gamma=1.0)])
def test_equivalent_graphs_have_the_same_score(criterion):
    score = Score(table(), criterion=criterion)
    assert score.score_equivalent
    values = {}
    for A in all_dags(4):
        values.setdefault(cpdag(A).tobytes(), []).append(float(score(A)))
    assert max(np.ptp(same) for same in values.values()) < 1e-12
    assert len({round(same[0], 9) for same in values.values()}) > 20


def test_the_score_of_a_graph_is_the_sum_over_its_nodes():
    X, rng = table(), np.random.default_rng(0)
    score = Score(X, criterion=BDeu(2.0))
    for _ in range(10):
        A = all_dags(4)[rng.integers(len(all_dags(4)))]
        expected = sum(by_hand(X, j, np.flatnonzero(A[:, j]).tolist(), 2.0) for j in range(4))
        assert float(score(A)) * score.n * score.d / 2 == pytest.approx(expected, rel=1e-11)


def test_the_search_finds_the_best_of_all_graphs():
    X = table(500, (2, 3, 2, 3, 2), seed=3)
    score = Score(X, criterion="bdeu")
    best = exact_search(score).score
    found = discover(score, rng=np.random.default_rng(0), algorithm=LocalSearch(chains=2), refine=False)
    assert found.score == pytest.approx(best, abs=1e-9)
    assert exact_search(Score(X[:, :4], criterion="bdeu")).score == pytest.approx(
        max(float(Score(X[:, :4], criterion="bdeu")(A)) for A in all_dags(4)), abs=1e-12
    )


def test_a_small_memory_changes_nothing(monkeypatch):
    X = table(300, (2, 3, 2, 3, 2, 3, 2, 2), seed=4)
    search = LocalSearch(chains=2)
    found = [discover(Score(X, criterion="bdeu"), rng=np.random.default_rng(0), algorithm=search, refine=False)]
    monkeypatch.setattr(costs, "REMEMBERED_SMALL", 2)
    found += [discover(Score(X, criterion="bdeu"), rng=np.random.default_rng(0), algorithm=search, refine=False)]
    np.testing.assert_array_equal(found[0].A, found[1].A)


def test_rows_and_names_of_levels_in_another_order_give_the_same_graph():
    X = table(300, seed=5)
    first = ALIAS("bdeu", random_state=0).fit(X)
    shuffled = X[np.random.default_rng(0).permutation(len(X))]
    again = ALIAS("bdeu", random_state=0, n_jobs=1).fit(shuffled)
    np.testing.assert_array_equal(first.adjacency_matrix_, again.adjacency_matrix_)
    assert first.score_ == again.score_
    texts = np.array(["ba", "dc", "fe", "hg"])[X]
    renamed = ALIAS("bdeu", random_state=0).fit(texts)
    assert renamed.score_ == pytest.approx(first.score_, abs=1e-12)


def test_auto_picks_by_the_columns_and_says_so():
    X = table()
    model = ALIAS(random_state=0).fit(X.astype(str).astype(object) + np.array("l", dtype=object))
    assert model.criterion_ == BDeu()
    assert model.run()["criterion"] == "bdeu"
    assert model.run()["levels"]["x0"] == ["0l", "1l"]
    assert "bdeu" in model.summary()
    assert "coefficient" not in model.summary()
    assert "gain" in model.edges_
    # numbers are numbers unless somebody says otherwise
    with pytest.warns(UserWarning, match="few distinct values"):
        assert ALIAS(random_state=0).fit(X).run()["criterion"] == "ebic-nv"
    assert ALIAS(random_state=0, categorical=range(4)).fit(X).run()["criterion"] == "bdeu"


def test_gains_are_what_the_score_loses_without_an_edge():
    X = table()
    model = ALIAS("bdeu", random_state=0).fit(X)
    score = Score(X, criterion="bdeu")
    for row in model.edges_.rows:
        A = model.adjacency_matrix_.copy()
        A[int(row["source"][1:]), int(row["target"][1:])] = 0
        lost = (model.score_ - float(score(A))) * score.n * score.d / 2
        assert row["gain"] == pytest.approx(lost, rel=1e-8)
    assert model.edges_["gain"] == sorted(model.edges_["gain"], reverse=True)


def test_tables_of_probabilities():
    X = table(300, (2, 3))
    model = ALIAS(BDeu(2.0), random_state=0).fit(X, names=["a", "b"])
    for name, of in model.tables_.items():
        assert of.name == name
        assert of.counts.sum() == 300
        np.testing.assert_allclose(of.probabilities.sum(axis=1), 1.0)
    child = next(of for of in model.tables_.values() if of.parents)
    other, own = "ab".index(child.parents[0]), "ab".index(child.name)
    for (level,), counts, probabilities in zip(child.given, child.counts, child.probabilities, strict=True):
        rows = X[X[:, other] == level, own]
        expected = [int((rows == value).sum()) for value in child.levels]
        assert counts.tolist() == expected
        prior = 2.0 / len(child.given)
        np.testing.assert_allclose(probabilities, (counts + prior / len(expected)) / (len(rows) + prior))
    assert child.name in str(child)
    assert json.loads(json.dumps(child.to_dict()))["parents"] == list(child.parents)


def test_numbers_have_no_tables():
    with pytest.raises(AttributeError, match="categories"):
        ALIAS(random_state=0).fit(np.random.default_rng(0).standard_normal((50, 2))).tables_  # noqa: B018


def test_score_of_other_rows_is_their_log_probability():
    X = table(400, (2, 3, 2), seed=6)
    model = ALIAS("bdeu", random_state=0).fit(X[:300])
    expected = 0.0
    for row in X[300:].tolist():
        for j, of in enumerate(model.tables_.values()):
            given = tuple(row[int(p[1:])] for p in of.parents)
            expected += math.log(of.probabilities[of.given.index(given), of.levels.index(row[j])])
    assert model.score(X[300:]) == pytest.approx(expected / 100, rel=1e-10)
    strange = X[300:].copy()
    strange[0, 1] = 9
    with pytest.raises(ValueError, match=r"column 'x1' has the level\(s\) '9'"):
        model.score(strange)


def test_a_configuration_that_was_never_seen_leaves_levels_equally_probable():
    X = np.array([[0, 0, 0], [1, 1, 1]] * 20)
    bound = Score(X, criterion="bdeu").regression
    new = np.array([[0.0, 1.0, 0.0]])
    assert bound.log_density(2, [0, 1], new) == pytest.approx(math.log(0.5))


def test_files_have_levels_and_tables(tmp_path):
    model = ALIAS("bdeu", random_state=0).fit(table())
    model.save(tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["levels"]["x3"] == [0, 1, 2, 3]
    assert set(json.loads((tmp_path / "tables.json").read_text())) == {"x0", "x1", "x2", "x3"}
    assert all(edge["weight"] is None for edge in json.loads((tmp_path / "graph.json").read_text())["edges"])


@pytest.mark.parametrize("bad", ["linear", "bic", "cam", "ci", pruning.Threshold()])
def test_prunings_of_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="is for numbers"):
        ALIAS("bdeu", prune=bad).fit(table())


def test_what_does_not_fit_is_refused():
    numbers = np.random.default_rng(0).standard_normal((100, 3))
    with pytest.raises(ValueError, match=r"more than 32 different numbers in 'x0' \(100\)"):
        ALIAS("bdeu").fit(numbers)
    with pytest.raises(ValueError, match="criterion='bic-nv' is for numbers, and of the columns 'x1' are categories"):
        ALIAS("bic-nv", categorical=["x1"]).fit(table())
    with pytest.raises(ValueError, match="is of tables of counts"):
        ALIAS("bdeu", regression="gp").fit(table())
    with pytest.raises(ValueError, match="no effect on a table with categories"):
        ALIAS("bdeu", standardize=True).fit(table())
    with pytest.raises(ValueError, match="constant column"):
        ALIAS("bdeu").fit(np.column_stack([table()[:, 0], np.ones(300, int)]))
    with pytest.raises(ValueError, match="equivalent_sample_size"):
        ALIAS(BDeu(0.0)).fit(table())


def test_curves_are_for_numbers():
    truth = table()[:, 0] > 0
    frame = {"yes": truth, "size": truth + np.random.default_rng(0).standard_normal(300)}
    assert ALIAS(regression="additive", random_state=0).fit(coded(frame)).criterion_.name == "ebic-nv"
    frame["word"] = np.where(truth, "a", "b")
    for learn in (ALIAS(regression="additive").fit, lambda X: bootstrap(ALIAS(regression="additive"), X, 2)):
        with pytest.raises(
            ValueError, match="regression='additive' is for numbers, and of the columns 'yes', 'word' are"
        ):
            learn(coded(frame))


def test_what_is_for_numbers_names_the_categories():
    X, columns = table().astype(float), Columns(tuple("abcd"), ((0, 1), (0, 1, 2), None, None))
    X[3, 0] = np.nan
    some = Coded(X, columns)
    for missing in ("em", "impute", "pairwise-complete"):
        for learn in (ALIAS(missing=missing).fit, lambda X, how=missing: bootstrap(ALIAS(missing=how), X, 2)):
            with pytest.raises(ValueError, match=f"missing='{missing}' is for columns of numbers, and 'a', 'b' are"):
                learn(some)
    whole = Coded(X[4:], columns)
    told = ["c" if row < 50 else None for row in range(len(whole.values))]
    for learn in (ALIAS().fit, lambda X, **more: bootstrap(ALIAS(), X, 2, **more)):
        with pytest.raises(ValueError, match="interventions are for columns of numbers, and 'a', 'b' are categories"):
            learn(whole, interventions=told)


def test_samples_of_many_rows_of_categories_are_rows_whatever_the_regression_is_called():
    X = table(MANY_ROWS + 1, (2, 3))
    named, made = (
        bootstrap(ALIAS("bdeu", regression=regression), X, 2, random_state=0, n_jobs=1)
        for regression in ("linear", Linear())
    )
    assert made.drawn == "rows"
    assert [s.score for s in made.samples] == [s.score for s in named.samples]


def test_bootstrap_and_posterior_take_categories():
    X = coded(table(200, (2, 3, 2), seed=7), categorical=[0, 1, 2])
    result = bootstrap(ALIAS(random_state=0), X, 5, random_state=0, n_jobs=1)
    assert result.adjacent[0, 1] == 1.0
    assert result.run()["levels"]["x1"] == [0, 1, 2]
    with pytest.raises(ValueError, match="parametric"):
        bootstrap(ALIAS(), X, 5, "parametric")
    sampled = posterior(ALIAS(random_state=0).fit(X), rng=np.random.default_rng(0))
    assert sampled.criterion == "bdeu"
    weights, adjacent = [], []
    score = Score(X, criterion="bdeu")
    for A in all_dags(3):
        weights.append(float(score(A)) * score.n * score.d / 2)
        adjacent.append(A[1, 2] | A[2, 1])
    weights = np.exp(np.array(weights) - max(weights))
    expected = float(weights @ np.array(adjacent) / weights.sum())
    P = sampled.edge_probabilities
    assert P[1, 2] + P[2, 1] == pytest.approx(expected, abs=0.05)
