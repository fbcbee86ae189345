"""Interventions: what was set in which rows, the classes that remain, scores on the rows of each node, fits."""

import itertools
import math

import numpy as np
import pytest

from vec2dag import ALIAS, Interventions, Knowledge, Moments, Score, bootstrap, posterior, prune, simulate
from vec2dag._checks import DataWarning
from vec2dag.confidence.effects import effects
from vec2dag.graph import cpdag, interventional_cpdag, is_dag, skeleton
from vec2dag.search import exact_search

NAMES = ("a", "b", "c")


def all_dags(d):
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    for bits in itertools.product((0, 1), repeat=len(pairs)):
        A = np.zeros((d, d), np.uint8)
        for (i, j), bit in zip(pairs, bits, strict=True):
            A[i, j] = bit
        if not (A & A.T).any() and is_dag(A):
            yield A


def colliders(A):
    d = len(A)
    return {
        (i, k, j)
        for k in range(d)
        for i, j in itertools.combinations(np.flatnonzero(A[:, k]).tolist(), 2)
        if not (A[i, j] or A[j, i])
    }


def alike(A, targets):
    """What defines a class (Hauser & Buehlmann 2012, theorem 10): skeletons and colliders of all mutilated graphs."""
    told = []
    for one in targets:
        cut = A.copy()
        cut[:, list(one)] = 0
        told.append((skeleton(cut).tobytes(), frozenset(colliders(cut))))
    return tuple(told)


def table(rng, d=5, k=1.0, n=400, targets=None):
    """A linear-Gaussian table with interventions on ``targets`` (all nodes by default) in most rows."""
    chosen = rng.choice([-1, *(range(d) if targets is None else targets)], size=n)
    said = [None if t < 0 else int(t) for t in chosen]
    noise = lambda n, d, rng: 2.0 + simulate.gaussian(n, d, rng)  # noqa: E731
    return simulate.linear_gaussian(d, k, n, rng, interventions=said, do=noise), said


# --- what was set ---------------------------------------------------------------------------------------------------


def test_targets_are_read_in_all_the_forms_that_people_have():
    forms = [
        None,
        "b",
        ("a", "b"),
        2,
        "a+b",
        "b ; a",
        "",
        "None",
        "observational",
        float("nan"),
        ["c"],
        np.int64(1),
        2.0,
    ]
    found = Interventions.of(forms, NAMES, len(forms))
    said = [found.patterns[k] for k in found.rows]
    assert said == [(), (1,), (0, 1), (2,), (0, 1), (0, 1), (), (), (), (), (2,), (1,), (2,)]
    assert found.counts == {"a": 3, "b": 5, "c": 3}
    assert found.free.tolist() == [10, 8, 10]
    mask = np.zeros((len(forms), 3), bool)
    for row, targets in enumerate(said):
        mask[row, list(targets)] = True
    again = Interventions.of(mask, NAMES)
    assert again.patterns == found.patterns
    assert np.array_equal(again.rows, found.rows)
    assert Interventions.of(found, NAMES, len(forms)) is found


def test_a_name_wins_over_the_words_and_signs():
    found = Interventions.of(["none", "a+b", " a "], ["none", "a+b", "a"])
    assert [found.patterns[k] for k in found.rows] == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        (["a", "x", None], r"row 1 names 'x', which is no column; there are 'a', 'b', 'c'"),
        (["a+x", None, None], "row 0 names 'x'"),
        ([3, None, None], "row 0 has the position 3; columns are 0 to 2"),
        ([0.5, None, None], "position 0.5"),
        ([True, None, None], "row 0 names True"),
        ([None, None], "2 entries and the table has 3 rows"),
        ("a", "one entry for every row"),
        (7, "one entry for every row"),
        (np.zeros((3, 2), bool), r"\(n, 3\)"),
        (np.zeros((3, 3)), "must be of bool"),
        ([{"a": 1}, None, None], "no column"),
    ],
)
def test_nonsense_is_refused_by_row(targets, match):
    with pytest.raises(ValueError, match=match):
        Interventions.of(targets, NAMES, 3)


def test_other_orders_of_columns_say_the_same(rng):
    mask = rng.random((50, 4)) < 0.3
    found, order = Interventions.of(mask, "abcd"), np.array([2, 0, 3, 1])
    moved = found.taken(order)
    assert moved.names == ("c", "a", "d", "b")
    assert np.array_equal(moved.is_set[moved.rows], mask[:, order])
    few = found.of_rows(np.arange(10))
    assert np.array_equal(few.is_set[few.rows], mask[:10])
    assert few.sizes.min() > 0


# --- classes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_essential_graph_is_the_union_of_its_class(d, rng):
    dags = list(all_dags(d))
    families = [[()], [(), (0,)], [(), (0,), (1,)], [(), tuple(range(d - 1))], [(0,), (1,)]]
    families += [[tuple(np.flatnonzero(row)) for row in rng.random((3, d)) < 0.4] for _ in range(3)]
    for targets in families:
        if any(all(j in one for one in targets) for j in range(d)):
            continue  # a node that is set everywhere
        classes = {}
        for A in dags:
            classes.setdefault(alike(A, targets), []).append(A)
        for members in classes.values():
            union = np.bitwise_or.reduce(members)
            for A in members if d < 4 else members[:2]:
                assert np.array_equal(interventional_cpdag(A, targets), union)


def test_without_targets_it_is_the_cpdag(rng):
    for A in itertools.islice(all_dags(4), 0, None, 7):
        assert np.array_equal(interventional_cpdag(A, []), cpdag(A))
        assert np.array_equal(interventional_cpdag(A, [(j,) for j in range(4)]), A)


# --- scores ---------------------------------------------------------------------------------------------------------


def by_hand(X, said, A, price, equal=False):
    """The score of a graph by least squares on the rows of every node."""
    _n, d = X.shape
    sums, rows = [], []
    for j in range(d):
        own = np.array([t != j for t in said])
        Z = np.column_stack([np.ones(own.sum()), X[np.ix_(own, np.flatnonzero(A[:, j]))]])
        y = X[own, j]
        sums.append(((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2).sum())
        rows.append(own.sum())
    sums, rows = np.array(sums), np.array(rows)
    N = rows.sum()
    fit = N * math.log(sums.sum() / N) if equal else (rows * np.log(sums / rows)).sum()
    return -(fit + price * A.sum()) / N


@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev"])
def test_the_score_is_that_of_least_squares_on_the_rows_of_each_node(criterion, rng):
    data, said = table(rng)
    score = Score(data.X, "linear", criterion, interventions=said)
    for A in [data.A, np.zeros_like(data.A), np.triu(np.ones((5, 5), np.uint8), 1)]:
        expected = by_hand(data.X, said, A, math.log(len(said)), criterion == "bic-ev")
        assert float(score(A)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("criterion", ["bic-nv", "ebic-nv", "bge"])
def test_members_of_a_class_score_the_same_and_others_do_not(criterion, rng):
    data, said = table(rng, d=4, targets=[1, 2])
    said = [(1, 2) if t == 1 else t for t in said]
    score = Score(data.X, "linear", criterion, interventions=said)
    targets = score.regression.interventions.patterns
    classes = {}
    for A in all_dags(4):
        classes.setdefault(alike(A, targets), []).append(float(score(A)))
    assert max(np.ptp(values) for values in classes.values()) < 1e-10
    assert any(len(values) > 1 for values in classes.values())
    means = np.sort([values[0] for values in classes.values()])
    assert np.diff(means).min() > 0


def test_exact_search_finds_the_best_of_all(rng):
    data, said = table(rng, d=4, n=60)
    for criterion in ("bic-nv", "ls", "bge"):
        score = Score(data.X, "linear", criterion, interventions=said)
        best = max(float(score(A)) for A in all_dags(4))
        assert exact_search(score).score == pytest.approx(best, abs=1e-12)


def test_compiled_and_general_descents_agree_with_the_formula(rng):
    """What toggles, batches and whole graphs say of the same regressions, compiled and not."""
    data, said = table(rng, d=6)
    targets = Interventions.of(said, data.names)
    compiled = Score(data.X, "linear", "bic-nv", interventions=targets)
    assert len(compiled.statistics[0]) == 6
    links, changes = compiled.toggles(data.A)
    residuals = np.array([compiled.local(j, np.flatnonzero(data.A[:, j])) for j in range(6)])
    assert links == pytest.approx(compiled.weights * np.log(residuals), rel=1e-9)
    for i, j in itertools.permutations(range(6), 2):
        parents = set(np.flatnonzero(data.A[:, i]).tolist()) ^ {j}
        after = compiled.weights[i] * math.log(compiled.local(i, parents))
        assert changes[i, j] == pytest.approx(after - links[i], abs=1e-9)


@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev", "ls", "bge"])
@pytest.mark.parametrize("algorithm", ["auto", "orders", "conditional"])
def test_searches_end_at_the_best_graph(criterion, algorithm, rng):
    data, said = table(rng, d=5)
    model = ALIAS(criterion, algorithm=algorithm, random_state=0, prune=None).fit(data.X, interventions=said)
    score = Score(data.X - data.X.mean(axis=0), "linear", criterion, interventions=said)
    best = float(score(data.A)) if criterion == "bic-ev" else exact_search(score).score
    if criterion != "bge":  # which standardises
        assert model.score_ >= best - 1e-9
    assert np.array_equal(model.adjacency_matrix_, data.A)


def test_the_compiled_search_selects_as_the_general_one_does(rng):
    """Local search with groups of statistics against the general descent over the same local scores, 14 nodes."""
    data, said = table(rng, d=14, k=3, n=600)
    score = Score(data.X, "linear", "bic-nv", interventions=said)
    found = ALIAS("bic-nv", random_state=0).fit(data.X, interventions=said)
    assert found.score_ == pytest.approx(float(score(found.adjacency_matrix_)), abs=1e-12)
    assert found.score_ >= float(score(data.A)) - 1e-9
    assert found.search_.certified


def test_rows_in_which_nothing_was_ever_set_are_an_observational_table(rng):
    X = table(rng)[0].X
    first, second = ALIAS(random_state=0).fit(X), ALIAS(random_state=0).fit(X, interventions=[None] * len(X))
    assert first.score_ == second.score_
    assert second.interventions_ is None
    assert np.array_equal(first.weights_, second.weights_)
    assert np.array_equal(first.cpdag_, second.cpdag_)


# --- fits -----------------------------------------------------------------------------------------------------------


def test_targets_direct_what_the_rows_alone_leave_free(rng):
    n = 1000
    said = [None] * 500 + ["y"] * 500
    W = np.array([[0, 1.0], [0, 0]])
    data = simulate.simulate(W, n=n, rng=rng, names=("x", "y"), interventions=said)
    free = ALIAS(random_state=0).fit(data.X[:500], names=data.names)
    assert free.free_.all(where=~np.eye(2, dtype=bool))
    model = ALIAS(random_state=0).fit(data.X, names=data.names, interventions=said)
    assert np.array_equal(model.adjacency_matrix_, data.A)
    assert not model.free_.any()
    assert model.edges_["direction"] == ["oriented"]
    assert model.run()["interventions"] == {"y": 500}
    assert "'y' in 500" in model.summary()
    # In the rows of y, that is the first half; pooled, it would be about half of it.
    slope = np.polyfit(data.X[:500, 0], data.X[:500, 1], 1)[0]
    assert model.weights_[0, 1] == pytest.approx(slope, rel=1e-12)
    assert next(iter(model.edges_.rows))["coefficient"] == pytest.approx(slope, rel=1e-12)
    assert effects(model, "x", "y").value == pytest.approx(slope, rel=1e-9)


def test_means_that_differ_between_settings_are_no_relations(rng):
    """Everybody shifts x; what follows from pooled rows would be relations between what x causes and others."""
    said = ["x"] * 300 + [None] * 300
    W = np.array([[0, 1.0, 1.0], [0, 0, 0], [0, 0, 0]])
    shift = lambda n, d, rng: 10.0 + simulate.gaussian(n, d, rng)  # noqa: E731
    data = simulate.simulate(W, n=600, rng=rng, names=("x", "y", "z"), interventions=said, do=shift)
    model = ALIAS(random_state=0).fit(data.X, names=data.names, interventions=said)
    assert np.array_equal(model.adjacency_matrix_, data.A)


def test_the_answer_does_not_depend_on_the_order_of_columns_or_rows(rng):
    data, said = table(rng, d=7)
    names = data.names
    model = ALIAS(random_state=0).fit(
        data.X, names=names, interventions=[None if t is None else names[t] for t in said]
    )
    order, rows = rng.permutation(7), rng.permutation(len(said))
    other = ALIAS(random_state=0).fit(
        data.X[np.ix_(rows, order)],
        names=[names[k] for k in order],
        interventions=[None if said[r] is None else names[said[r]] for r in rows],
    )
    assert np.array_equal(other.adjacency_matrix_, model.adjacency_matrix_[np.ix_(order, order)])
    assert np.array_equal(other.cpdag_, model.cpdag_[np.ix_(order, order)])
    assert other.score_ == pytest.approx(model.score_, abs=1e-12)


def test_a_column_of_a_frame_names_the_targets(rng):
    pd = pytest.importorskip("pandas")
    data, said = table(rng)
    frame = pd.DataFrame(data.X, columns=list(data.names))
    frame["what"] = [math.nan if t is None else data.names[t] for t in said]
    model = ALIAS(random_state=0).fit(frame, interventions="what")
    plain = ALIAS(random_state=0).fit(data.X, interventions=said)
    assert model.feature_names_in_.tolist() == list(data.names)
    assert np.array_equal(model.adjacency_matrix_, plain.adjacency_matrix_)
    assert model.score_ == plain.score_
    assert model.score(frame, interventions="what") == plain.score(data.X, interventions=said)
    with pytest.raises(ValueError, match="interventions='who' would be a column of a data frame"):
        ALIAS().fit(frame, interventions="who")
    with pytest.raises(ValueError, match="X has no names of columns"):
        ALIAS().fit(data.X, interventions="what")
    pl = pytest.importorskip("polars")
    found = ALIAS(random_state=0).fit(pl.from_pandas(frame), interventions="what")
    assert np.array_equal(found.adjacency_matrix_, plain.adjacency_matrix_)


def test_a_column_that_was_always_set_has_no_causes_and_somebody_says_so(rng):
    said = ["b"] * 200
    W = np.array([[0, 0, 1.0], [0, 0, 1.0], [0, 0, 0]])
    data = simulate.simulate(W, n=200, rng=rng, names=NAMES, interventions=said)
    with pytest.warns(DataWarning, match="'b' was set in all rows.*nothing can be learned about its causes"):
        model = ALIAS("bic-nv", random_state=0).fit(data.X, names=NAMES, interventions=said)
    assert not model.adjacency_matrix_[:, 1].any()
    assert np.array_equal(model.adjacency_matrix_, data.A)
    assert not model.free_[1].any()
    assert math.isfinite(model.score(data.X, interventions=said))
    required = ALIAS("bic-nv", random_state=0, knowledge=Knowledge(required=["a -> b"]))
    with pytest.warns(DataWarning):
        assert required.fit(data.X, names=NAMES, interventions=said).adjacency_matrix_[0, 1] == 1
    with pytest.raises(ValueError, match="every column was set"):
        Score(data.X, interventions=[NAMES] * 200, names=NAMES)


def test_columns_that_do_not_vary_in_the_rows_of_others_are_no_parents(rng):
    """Clamped to one value in all rows but those of the other: neither can be a parent of the other."""
    said = ["a"] * 50 + ["b"] * 50
    X = rng.standard_normal((100, 3))
    X[:50, 0], X[50:, 1] = 3.0, 4.0
    X[:, 2] += X[:, 0]
    model = ALIAS("bic-nv", random_state=0).fit(X, names=NAMES, interventions=said)
    assert not model.adjacency_matrix_[0, 1]
    assert not model.adjacency_matrix_[1, 0]
    assert model.adjacency_matrix_[0, 2]
    forced = ALIAS("bic-nv", random_state=0, knowledge=Knowledge(required=["a -> b"]))
    assert forced.fit(X, names=NAMES, interventions=said).weights_[0, 1] == 0
    X[50:, 0] = 5.0
    with pytest.raises(ValueError, match="columns must vary where they were not set: 'a' constant in those 50 rows"):
        ALIAS().fit(X, names=NAMES, interventions=said)


def test_one_row_of_a_pattern_is_a_row(rng):
    data, _ = table(rng)
    said = [None] * 399 + [(0, 1)]
    model = ALIAS("bic-nv", random_state=0).fit(data.X, interventions=said)
    assert model.run()["interventions"] == {"x0": 1, "x1": 1}


def test_knowledge_and_interventions_go_together(rng):
    n = 1000
    said = [None] * 600 + ["a"] * 400
    W = np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]])
    data = simulate.simulate(W, n=n, rng=rng, names=NAMES, interventions=said)
    plain = ALIAS(random_state=0).fit(data.X, names=NAMES, interventions=said)
    assert np.array_equal(plain.cpdag_, data.A)  # a -> b shows, and b -> c follows as there is no collider
    known = ALIAS(random_state=0, knowledge=Knowledge(forbidden=["a -> b"]))
    assert not known.fit(data.X, names=NAMES, interventions=said).adjacency_matrix_[0, 1]


@pytest.mark.parametrize("regression", ["gp", "additive"])
def test_regressions_of_rows_have_the_rows_of_the_node(regression, rng):
    data, said = table(rng, d=3, n=120)
    own = np.array([t != 1 for t in said])
    whole = Score(data.X, regression, interventions=said)
    alone = Score(data.X[own] - data.X[own].mean(axis=0), regression)
    assert whole.local(1, [0, 2]) == pytest.approx(alone.local(1, [0, 2]), rel=1e-8)
    model = ALIAS(regression=regression, random_state=0).fit(data.X, interventions=said)
    assert len(model.prune_table_) == model.adjacency_raw_.sum()
    assert math.isfinite(model.score(data.X, interventions=said))
    assert not hasattr(model, "cpdag_")


@pytest.mark.parametrize("pruning", ["linear", "bic", "cam", prune.prune_cam])
def test_prunings_look_at_the_rows_of_the_node(pruning, rng):
    """Over all rows the edge hardly shows: the child is set in nine of ten, to large values."""
    said = [None] * 100 + ["b"] * 900
    W = np.array([[0, 1.0, 0], [0, 0, 0], [0, 0, 0]])
    loud = lambda n, d, rng: 100.0 * simulate.gaussian(n, d, rng)  # noqa: E731
    data = simulate.simulate(W, n=1000, rng=rng, names=NAMES, interventions=said, do=loud)
    model = ALIAS("bic-nv", prune=pruning, random_state=0).fit(data.X, names=NAMES, interventions=said)
    assert np.array_equal(model.adjacency_matrix_, data.A)


def test_scores_of_other_rows_leave_out_what_was_set(rng):
    data, said = table(rng, d=4)
    model = ALIAS("bic-nv", random_state=0, standardize=True).fit(data.X, interventions=said)
    expected = 0.0
    for j in range(4):
        own = np.array([t != j for t in said])
        parents = np.flatnonzero(model.adjacency_matrix_[:, j])
        Z = np.column_stack([np.ones(own.sum()), data.X[np.ix_(own, parents)]])
        y = data.X[own, j]
        variance = ((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2).mean()
        expected -= 0.5 * (math.log(2 * math.pi * variance) + 1.0)
    assert model.score(data.X, interventions=said) == pytest.approx(expected, rel=1e-9)


def test_bootstrap_draws_within_patterns(rng):
    data, said = table(rng, d=4, n=300, targets=[3])
    said[7] = 0  # one row, which every sample has
    result = bootstrap(ALIAS("bic-nv"), data.X, 12, random_state=0, n_jobs=1, interventions=said)
    assert result.n_samples == 12
    assert (result.directed + result.directed.T + result.free)[data.A.astype(bool)].mean() > 0.8
    assert result.settings["interventions"] == {"x0": 1, "x3": said.count(3)}
    halves = bootstrap(ALIAS("bic-nv"), data.X, 6, "subsample", random_state=0, n_jobs=1, interventions=said)
    assert halves.n_samples == 6
    with pytest.raises(ValueError, match="parametric"):
        bootstrap(ALIAS(), data.X, 5, "parametric", interventions=said)


def test_posterior_of_a_fitted_model_knows_what_was_set(rng):
    n = 400
    said = [None] * 200 + [1] * 200
    data = simulate.simulate(np.array([[0, 1.0], [0, 0]]), n=n, rng=rng, interventions=said)
    model = ALIAS("bic-nv", random_state=0).fit(data.X, interventions=said)
    found = posterior(model, rng=rng, n_samples=200, chains=2)
    assert found.edge_probabilities[0, 1] > 0.99
    assert found.scores.max() == pytest.approx(model.score_, abs=1e-9)


def test_moments_and_callables_are_refused(rng):
    X = rng.standard_normal((20, 3))
    with pytest.raises(ValueError, match="interventions need the rows of the table, X is Moments"):
        ALIAS().fit(Moments.of(X), interventions=[None] * 20)
    with pytest.raises(ValueError, match="interventions have no effect on criterion"):
        ALIAS(lambda A: -float(A.sum())).fit(X, interventions=["x0"] * 20)
    with pytest.raises(ValueError, match="need the rows"):
        Score(Moments.of(X), interventions=[None] * 20)


def test_rows_with_missing_values_go_with_their_targets(rng):
    data, said = table(rng, d=4, n=300)
    holes = data.X.copy()
    holes[rng.random(holes.shape) < 0.05] = np.nan
    whole = ~np.isnan(holes).any(axis=1)
    left = [t for t, stays in zip(said, whole, strict=True) if stays]
    plain = ALIAS(random_state=0).fit(holes[whole], interventions=left)
    with pytest.warns(UserWarning, match="left out"):
        model = ALIAS(random_state=0, missing="drop").fit(holes, interventions=said)
    assert model.score_ == plain.score_
    assert model.interventions_.counts == plain.interventions_.counts
    with pytest.warns(UserWarning, match="left out"):
        found = bootstrap(ALIAS(missing="drop"), holes, 2, random_state=0, n_jobs=1, interventions=said)
    assert found.settings["interventions"] == plain.interventions_.counts
    for name in ("em", "impute", "pairwise-complete"):
        with pytest.raises(ValueError, match="one distribution, which interventions change"):
            ALIAS(missing=name).fit(holes, interventions=said)
        with pytest.raises(ValueError, match="one distribution, which interventions change"):
            bootstrap(ALIAS(missing=name), holes, 2, interventions=said)


def test_a_checkpoint_of_other_targets_is_refused(tmp_path, rng):
    data, said = table(rng, d=4)
    file = tmp_path / "search.npz"
    ALIAS(random_state=0, checkpoint=file).fit(data.X, interventions=said)
    ALIAS(random_state=0, checkpoint=file).fit(data.X, interventions=said)
    with pytest.raises(ValueError, match="other data"):
        ALIAS(random_state=0, checkpoint=file).fit(data.X, interventions=said[::-1])


def test_merged_moments_are_those_of_the_stacked_rows(rng):
    X = rng.standard_normal((60, 4)) * [1, 10, 0.1, 1] + [1e6, 0, 3, -5]
    whole, parts = Moments.of(X), [Moments.of(X[k : k + 20]) for k in (0, 20, 40)]
    found = Moments.together(parts)
    assert found.n == 60
    assert found.mean == pytest.approx(whole.mean, rel=1e-12)
    assert found.covariance == pytest.approx(whole.covariance, rel=1e-8, abs=1e-10)


def test_simulated_interventions_cut_the_causes(rng):
    said = ["b"] * 4000 + [None] * 4000
    W = np.array([[0, 2.0, 0], [0, 0, 2.0], [0, 0, 0]])
    for mechanism in (simulate.linear, simulate.mlp):
        data = simulate.simulate(W, mechanism, n=8000, rng=rng, names=NAMES, interventions=said)
        assert data.meta["interventions"].counts == {"b": 4000}
        correlation = [np.corrcoef(part.T) for part in (data.X[:4000], data.X[4000:])]
        assert abs(correlation[0][0, 1]) < 0.06 < abs(correlation[1][0, 1])
        assert abs(correlation[0][1, 2]) > 0.2
    fewer = data.hide(1, np.random.default_rng(0))
    assert fewer.meta["interventions"].names == fewer.names


def test_interventions_that_set_nothing_are_said_to():
    X = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.warns(DataWarning, match="nothing was set in any row"):
        model = ALIAS(random_state=0).fit(X, interventions=[None] * 60)
    assert model.interventions_ is None


def test_samples_of_a_model_with_interventions_need_them_too():
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = ALIAS(random_state=0).fit(X, interventions=[0] * 20 + [None] * 40)
    with pytest.raises(ValueError, match="fitted with interventions, which its samples need too"):
        bootstrap(model, X, 2, random_state=0)
    assert bootstrap(model, X, 2, random_state=0, interventions=[0] * 20 + [None] * 40).n_samples == 2
