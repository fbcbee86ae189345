"""Any regressor as a score: against scikit-learn and slow definitions, and searches where regressions are costly."""

import time

import numpy as np
import pytest
from oracles import all_dags, graph_score, sine
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from vec2dag import (
    ALIAS,
    BIC,
    PPO,
    GaussianProcess,
    LeastSquares,
    Moments,
    Orders,
    Score,
    SklearnRegression,
    discover,
    exact_search,
    insertion_search,
    simulate,
)
from vec2dag.search.descent import resolution


def test_linear_regression_is_the_linear_score(rng):
    X = simulate.linear_gaussian(d=5, k=2, n=200, rng=rng).X
    graphs = np.triu(rng.integers(0, 2, (6, 5, 5)), 1).astype(np.uint8)
    general, linear = Score(X, LinearRegression()), Score(X)
    np.testing.assert_allclose(general(graphs), linear(graphs), atol=1e-10)
    assert float(general(graphs[0])) == pytest.approx(graph_score(X, graphs[0], "bic-nv"), abs=1e-10)


@pytest.mark.parametrize("cv", [4, KFold(3)])
def test_cross_fitted_residuals_are_those_of_scikit_learn(cv):
    X = sine()
    tree = DecisionTreeRegressor(random_state=3)
    folds = KFold(4, shuffle=True, random_state=0) if cv == 4 else cv
    predicted = cross_val_predict(tree, X[:, [0, 2]], X[:, 1], cv=folds)
    value = SklearnRegression(tree, cv=cv).bind(X).residual(1, [0, 2])
    assert value == pytest.approx(((X[:, 1] - predicted) ** 2).mean(), rel=1e-12)


def test_cross_fitting_refuses_parents_that_explain_nothing():
    noise = np.random.default_rng(0).standard_normal((200, 2))
    tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
    edge = [[0, 1], [0, 0]]
    fitted, crossed = Score(noise, tree), Score(noise, SklearnRegression(tree, cv=5))
    assert fitted(edge) > fitted(np.zeros((2, 2)))
    assert crossed(edge) < crossed(np.zeros((2, 2)))


def test_fits_are_seeded_and_leave_the_estimator_alone():
    X = sine()
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=5))
    before = repr(forest.get_params())
    one, other = (Score(X, forest).local(2, [0, 1]) for _ in range(2))
    assert one == other
    assert repr(forest.get_params()) == before
    assert not hasattr(forest[-1], "estimators_")
    assert Score(X, SklearnRegression(forest, random_state=1)).local(2, [0, 1]) != one


class Faulty(RegressorMixin, BaseEstimator):
    def __init__(self, fault="raise"):
        self.fault = fault

    def fit(self, X, y):
        if self.fault == "raise":
            raise RuntimeError("out of luck")
        X += 1.0  # a regressor may spoil what it is given
        return self

    def predict(self, X):
        return {"nan": np.full(len(X), np.nan), "short": np.zeros(3), "text": ["a"] * len(X)}[self.fault]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise", "RuntimeError: out of luck"),
        ("nan", "a mean squared residual of nan"),
        ("short", r"predict returned an array of shape \(3,\) for 150 rows"),
        ("text", "could not convert"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_faults_name_the_node_and_its_parents(fault, message, jobs):
    X = sine()
    before = X.copy()
    score = Score(X, Faulty(fault), n_jobs=jobs, names=["p", "q", "r", "s"])
    with pytest.raises(ValueError, match=rf"regression of 'r' on \['p', 'q'\] .*{message}"):
        score.local.batch([(2, [0, 1]), (2, [])])
    np.testing.assert_array_equal(X, before)
    with pytest.raises(ValueError, match=r"regression of '.' on \['.'.*" + message):
        ALIAS(regression=Faulty(fault), n_jobs=jobs, random_state=0).fit(X, names=["p", "q", "r", "s"])


@pytest.mark.parametrize("bad", [LinearRegression, GaussianProcess, 5, object()])
def test_what_is_no_regression_is_refused(bad):
    with pytest.raises(ValueError, match=r"regression=|estimator must be"):
        Score(sine(), bad)


def test_a_regression_beside_a_score_of_its_own_is_refused():
    X = sine()
    for score in (Score(X), lambda A: 0.0):
        with pytest.raises(ValueError, match=r"regression='gp' has no effect"):
            ALIAS(criterion=score, regression="gp").fit(X)


@pytest.mark.parametrize("prune", ["cam", "ci"])
def test_pruning_that_needs_rows_is_refused_before_the_search(prune):
    with pytest.raises(ValueError, match=f"prune='{prune}' needs the rows"):
        ALIAS(prune=prune, time_budget=1e-9).fit(Moments.of(sine()))


def test_whole_numbers_of_any_kind_are_folds():
    X, tree = sine(), DecisionTreeRegressor(random_state=0)
    one, other = (SklearnRegression(tree, cv=cv).bind(X).residual(1, [0]) for cv in (3, np.int64(3)))
    assert one == other


def test_moments_have_no_rows():
    with pytest.raises(ValueError, match="needs the rows"):
        Score(Moments.of(sine()), "gp")
    with pytest.raises(ValueError, match="needs the rows"):
        ALIAS(regression="gp").fit(Moments.of(sine()))
    with pytest.raises(ValueError, match="holds its own data"):
        Score(sine(), GaussianProcess().bind(sine()))
    with pytest.raises(ValueError, match="X is needed"):
        Score(None, "gp")
    with pytest.raises(TypeError, match="reference"):
        GaussianProcess(reference=True)


# --- somebody's own regression


class Ridged:
    """The least that a regression is: its own data, and a mean squared residual."""

    def __init__(self, X, penalty=10.0):
        self.X, self.penalty = X, penalty
        self.n, self.d = X.shape

    def residual(self, node, parents):
        Z = self.X[:, parents]
        beta = np.linalg.solve(Z.T @ Z + self.penalty * np.eye(len(parents)), Z.T @ self.X[:, node])
        return np.mean((self.X[:, node] - Z @ beta) ** 2)


class FullRidged(Ridged):
    """With all that it may have."""

    names = ("p", "q", "r", "s")

    def thinned(self, step):
        return FullRidged(self.X[::step], self.penalty)

    def fingerprint(self):
        return f"ridge {self.penalty} {self.X.sum()!r}"


class Again(FullRidged):
    """For a second run: fits nothing."""

    def residual(self, node, parents):
        raise AssertionError("a regression was fitted again")


own_regressions = pytest.mark.parametrize("kind", [Ridged, FullRidged])


@own_regressions
@pytest.mark.parametrize("criterion", [BIC(offset=0.1), BIC("equal"), LeastSquares(3.0)], ids=lambda c: c.name)
def test_an_object_with_residual_is_a_regression(kind, criterion, rng):
    X = sine()
    mine, score = Ridged(X), Score(None, kind(X), criterion)
    for A in np.triu(rng.integers(0, 2, (4, 4, 4)), 1).astype(np.uint8):
        parents = [np.flatnonzero(A[:, j]).tolist() for j in range(4)]
        r = np.array([mine.residual(j, parents[j]) for j in range(4)])
        np.testing.assert_allclose(score.residuals(A), r, rtol=1e-12)
        links, table = score.toggles(A)
        np.testing.assert_allclose(links, criterion.link(r), rtol=1e-12)
        for i in range(4):
            assert table[i, i] == 0
            for j in set(range(4)) - {i}:
                toggled = mine.residual(i, sorted({*parents[i]} ^ {j}))
                expected = float(criterion.link(toggled)) - float(criterion.link(r[i]))
                assert table[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        fit = criterion.unpriced(float(links.sum()), 4)
        assert float(score(A)) == pytest.approx(fit - score.penalty * A.sum(), rel=1e-12)


@own_regressions
def test_an_object_with_residual_can_be_searched(kind):
    score = Score(None, kind(sine(400)), "bic-ev")
    found = discover(score, rng=np.random.default_rng(0))
    assert found.init == ("random" if kind is Ridged else "a part of the rows")
    assert found.score == pytest.approx(max(score(all_dags(4))), abs=1e-9)
    assert found.certified


def test_what_an_object_does_not_have_is_filled_in():
    X = sine()
    least, full = (Score(None, kind(X)).regression for kind in (Ridged, FullRidged))
    assert least.names == ("x0", "x1", "x2", "x3")
    assert full.names == ("p", "q", "r", "s")
    assert least.thinned(3) is least.fingerprint() is None
    assert full.thinned(3).n == 50
    assert full.thinned(3).residual(1, [0]) == Ridged(X[::3]).residual(1, [0])
    assert full.fingerprint() == FullRidged(X).fingerprint()
    for regression in (least, full):
        assert not regression.cheap
        assert not regression.linear
        assert not regression.score_equivalent
        assert regression.statistics is None


def test_an_object_says_more_of_itself_if_it_likes():
    mine = FullRidged(sine(), penalty=0.0)
    mine.cheap = mine.linear = mine.score_equivalent = True
    score = Score(None, mine)
    assert score.regression.linear
    assert score.local.cheap
    assert score.score_equivalent
    # Eight nodes are searched exactly only where regressions are cheap.
    wide = Ridged(simulate.linear_gaussian(d=8, k=1, n=60, rng=np.random.default_rng(0)).X)
    wide.cheap = True
    found = discover(Score(None, wide), rng=np.random.default_rng(0), algorithm=Orders(n_steps=1))
    assert found.exact


def test_an_object_without_its_data_is_refused():
    class Empty:
        d = 3

        def residual(self, node, parents):
            return 1.0

    with pytest.raises(ValueError, match=r"needs n, d and residual; .*Empty.* has no \['n'\]"):
        Score(None, Empty())
    twice = FullRidged(sine())
    twice.names = ("a", "b", "a", "c")
    with pytest.raises(ValueError, match="duplicate column names: 'a'"):
        Score(None, twice)
    with pytest.raises(ValueError, match="holds its own data"):
        Score(sine(), Ridged(sine()))


def test_an_object_with_a_fingerprint_can_be_kept_in_a_file(tmp_path):
    file, X = tmp_path / "scores.npz", sine()
    first, again = Score(None, FullRidged(X)), Score(None, Again(X))
    graphs = np.array([np.eye(4, k=1), np.triu(np.ones((4, 4)), 1)], dtype=np.uint8)
    with first.local.stored(file) as known:
        assert known == 0
        values = first(graphs)
    assert first.local.fits > 0
    with again.local.stored(file) as known:
        assert known == first.local.fits
        np.testing.assert_array_equal(again(graphs), values)
    assert again.local.fits == 0
    other = Score(None, FullRidged(X, penalty=1.0))
    with pytest.raises(ValueError, match="of other data or of another regression"), other.local.stored(file):
        pass


class Unprinted(Ridged):
    """Knows of fingerprints, and that it has none."""

    def fingerprint(self):
        return None


@pytest.mark.parametrize("kind", [Ridged, Unprinted])
def test_an_object_without_a_fingerprint_cannot_be_kept(kind, tmp_path):
    file, score = tmp_path / "scores.npz", Score(None, kind(sine()))
    with (
        pytest.raises(ValueError, match="a regression without a fingerprint cannot be told from another"),
        score.local.stored(file),
    ):
        pass
    assert not file.exists()


def test_a_score_stays_what_it_was_when_its_regression_is_changed():
    X, gp = sine(60), GaussianProcess()
    score = Score(X, gp)
    expected = Score(X, GaussianProcess()).local(1, [0])
    gp.set_params(alpha=0.01)
    assert score.local(1, [0]) == expected


# --- search


@pytest.mark.parametrize("criterion", ["bic-nv", "ls", "bic-ev"])
def test_search_finds_the_best_of_all_graphs(criterion):
    score = Score(sine(450), KernelRidge(kernel="rbf", alpha=0.5, gamma=0.5), criterion)
    found = discover(score, rng=np.random.default_rng(0))
    assert (found.algorithm, found.init, found.certified) == ("orders", "a part of the rows", True)
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)
    best = max(float(score(A)) for A in all_dags(4))
    assert found.score == pytest.approx(best, abs=1e-9)
    if criterion != "bic-ev":
        assert exact_search(score).score == pytest.approx(best, abs=1e-9)


def test_few_nodes_are_searched_exactly():
    data = simulate.linear_gaussian(d=7, k=2, n=300, rng=np.random.default_rng(2))
    score = Score(data.X, LinearRegression())
    found = discover(score, rng=np.random.default_rng(0))
    assert found.exact
    assert found.fits == score.local.fits == 7 * 2**6
    assert found.score == pytest.approx(exact_search(Score(data.X)).score, abs=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_fewer_regressions_than_there_are(seed):
    data = simulate.linear_gaussian(d=9, k=2, n=400, rng=np.random.default_rng(seed))
    score = Score(data.X, LinearRegression(), "bic-ev")
    found = discover(score, rng=np.random.default_rng(0))
    assert found.certified
    assert found.fits == score.local.fits < 9 * 2**8 / 2
    assert found.score >= float(score(data.A)) - 1e-9


@pytest.mark.parametrize("algorithm", ["auto", "conditional", "credit", "ppo"])
def test_a_budget_is_kept_between_fits(algorithm):
    class Slow:
        n, d, names = 100, 12, tuple("abcdefghijkl")

        def residual(self, node, parents):
            time.sleep(0.01)
            return 1.0 / (1 + len(parents))

    begin = time.perf_counter()
    found = discover(Score(None, Slow(), n_jobs=1), rng=np.random.default_rng(0), time_budget=0.3, algorithm=algorithm)
    # The first graph is scored in any case, and so is the last: 12 fits each.
    assert time.perf_counter() - begin < 0.3 + 0.9
    assert found.stopped == "time"
    assert not found.certified


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.2, 0.4])
def test_no_certificate_without_the_time_for_it(budget):
    X = simulate.linear_gaussian(d=8, k=2, n=100, rng=np.random.default_rng(0)).X

    class Slow(LinearRegression):
        def fit(self, X, y):
            time.sleep(0.0005)
            return super().fit(X, y)

    score = Score(X, Slow(), n_jobs=1)
    found = discover(score, rng=np.random.default_rng(0), algorithm=PPO(n_steps=1), time_budget=budget)
    if found.certified:
        better = insertion_search(score, found.A)
        assert better.score <= found.score + resolution(score)
    else:
        assert found.stopped == "time"


@pytest.mark.parametrize("at", [1, 5, 12, 20])
def test_an_interrupt_in_any_phase_returns_a_graph(at):
    X, fitted = sine(400), []

    class Interrupting(KernelRidge):
        def fit(self, Z, y):
            fitted.append(len(y))
            if fitted.count(400) == at and len(y) == 400:
                raise KeyboardInterrupt
            return super().fit(Z, y)

    score = Score(X, Interrupting(kernel="rbf"), "bic-ev", n_jobs=1)
    try:
        with pytest.warns(UserWarning, match="interrupted"):
            found = discover(score, rng=np.random.default_rng(0))
    except KeyboardInterrupt:
        pytest.fail("the interrupt has reached the caller")  # and would end the session
    assert found.stopped == "interrupted"
    assert found.score == pytest.approx(float(score(found.A)), abs=1e-12)


def test_what_is_constant_on_a_part_of_the_rows_is_searched_on_all():
    X = sine(400)
    X[:, 2] = 0.0
    X[1::100, 2] = 1.0
    X -= X.mean(axis=0)
    for regression in ("gp", SklearnRegression(LinearRegression(), cv=PredefinedSplit(np.arange(400) % 5))):
        assert discover(Score(X, regression), rng=np.random.default_rng(0)).exact
