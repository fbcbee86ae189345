"""Searches that an approximation of the score guides: what it may rule out, and what is kept of it."""

import numpy as np
import pytest
from oracles import sine

from vec2dag import ALIAS, GaussianProcess, Knowledge, Score, discover, simulate
from vec2dag.scores import Regression
from vec2dag.scores.gp import _all_squares, _Likelihood, _Projected, _squared_distances
from vec2dag.search.descent import LocalDescent


def smooth(d=8, n=400, seed=0):
    """A table of sums of smooth functions."""
    return drawn(d, n, seed).X


def drawn(d=8, n=400, seed=0):
    """The same with its graph."""
    rng = np.random.default_rng(seed)
    return simulate.simulate(simulate.erdos_renyi(d, 1, rng), simulate.additive_gaussian_process, n=n, rng=rng)


class Costly(Regression):
    """Gaussian processes on landmarks as regressions of their own, with whatever approximates them."""

    def __init__(self, X, near=None):
        self.inner = GaussianProcess(landmarks=30).bind(X)
        self.n, self.d, self.names, self.near = self.inner.n, self.inner.d, self.inner.names, near
        self.made = []

    def residual(self, node, parents):
        self.made.append((node, tuple(parents)))
        return self.inner.residual(node, parents)

    def approximate(self):
        return self.near

    def fingerprint(self):
        return self.inner.fingerprint()


def test_projection_on_all_rows_is_the_process_itself():
    X = sine(80, 3)
    Z, y = X[:, :2], X[:, 2]
    squares = _squared_distances(Z, Z)
    projected, exact = _Projected(squares, squares, y, 0.5), _Likelihood(_all_squares(Z, np.float64), y, 0.5)
    for t in (-0.5, 0.0, 0.7, 2.0):
        assert projected(t)[0] == pytest.approx(exact(t)[0], abs=1e-4)
        assert projected(t)[1] == pytest.approx(exact(t)[1], abs=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"median_scale": True, "alpha": 0.1, "bounds": (0.05, 1e5)}, {"max_rows": 300}]
)
def test_landmarks_are_near_the_exact_process(options):
    X = sine(900, 3)
    exact = GaussianProcess(**options).fit(X[:, :2], X[:, 2])
    near = GaussianProcess(**options, landmarks=100).fit(X[:, :2], X[:, 2])
    assert near.residual == pytest.approx(exact.residual, rel=0.03)
    few = GaussianProcess(landmarks=900).fit(X[:, :2], X[:, 2])
    assert few == GaussianProcess().fit(X[:, :2], X[:, 2])


def test_forecasts_of_landmarks_follow_the_function():
    x = np.linspace(-3, 3, 500)[:, None]
    y = 3 * np.sin(2 * x[:, 0])
    near = GaussianProcess(alpha=0.1, landmarks=50)
    new = np.linspace(-2.9, 2.9, 31)[:, None]
    assert np.abs(near.forecast(x, y, new) - 3 * np.sin(2 * new[:, 0])).max() < 0.1


def test_a_score_has_one_approximation_where_rows_are_many():
    X = smooth()
    score = Score(X, GaussianProcess())
    assert score.approximation is score.approximation
    assert score.approximation.regression.method == GaussianProcess(landmarks=200)
    assert score.approximation.approximation is None
    assert Score(X[:399], GaussianProcess()).approximation is None
    assert Score(X).approximation is None
    # With next to no noise what landmarks leave says nothing of what the process leaves.
    assert Score(X, GaussianProcess(alpha=1e-8)).approximation is None
    known = Knowledge(forbidden=[("x0", "x1")])
    assert not score.under(known).approximation.constraints.allowed[0, 1]
    assert score.approximation.constraints.trivial


@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev", "ls"])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_approximation_that_is_exact_rules_out_nothing_that_improves(criterion, seed):
    X = smooth(seed=seed)
    alone, guided = Costly(X), Costly(X, Costly(X))
    order = np.random.default_rng(seed).permutation(8)
    one, other = (
        LocalDescent(Score(None, regression, criterion)).descend(order, thorough=True)[0]
        for regression in (alone, guided)
    )
    np.testing.assert_array_equal(one.A, other.A)
    assert one.score == other.score
    assert len(set(guided.made)) < len(set(alone.made))


def test_a_guided_search_reaches_the_score_of_the_truth_with_fewer_regressions(monkeypatch):
    data = drawn(n=420, seed=3)
    score = Score(data.X, "gp")
    guided = discover(score, rng=np.random.default_rng(0))
    monkeypatch.setattr(GaussianProcess, "approximate", lambda *_: None)
    alone = discover(Score(data.X, "gp"), rng=np.random.default_rng(0))
    assert guided.certificate.screened
    assert "approximation" in str(guided.certificate)
    assert guided.init == "approximation (simpler regressions)"
    assert not alone.certificate.screened
    assert guided.score >= float(score(data.A))
    assert guided.fits < alone.fits / 2


def test_a_checkpoint_keeps_the_regressions_of_the_approximation(tmp_path):
    X = smooth(n=420, seed=4)
    file = tmp_path / "c.npz"
    model = ALIAS(regression="gp", prune=None, random_state=0, checkpoint=file, standardize=False).fit(X)
    score = Score(model._prepared(X)[:, model._columns], "gp", "ebic-nv")
    alone = discover(score, rng=np.random.default_rng(1))
    score = Score(model._prepared(X)[:, model._columns], "gp", "ebic-nv")
    again = discover(score, rng=np.random.default_rng(1), checkpoint=file)
    # Another seed is another search, but regressions are the same.
    assert again.score == alone.score
    assert again.fits < alone.fits
    assert len(score.approximation.local.cache) > 100
    assert score.approximation.local.fits < len(score.approximation.local.cache) / 2


def test_whoever_watches_is_told_of_regressions():
    seen = []
    discover(Score(smooth(n=420), "gp"), rng=np.random.default_rng(0), watch=seen.append)
    roles = ["simpler", "approximate", ""]
    assert [work.role for work in seen] == sorted((work.role for work in seen), key=roles.index)
    for role in roles:
        made = [work.made for work in seen if work.role == role]
        assert made == sorted(made)
        assert made[-1] > 0
    assert min(work.to_come for work in seen) == 0
    assert seen[-1].known > 0
    with pytest.raises(ValueError, match="watch"):
        discover(Score(smooth(), "gp"), rng=np.random.default_rng(0), watch=3)


def test_an_interrupt_in_the_approximation_ends_in_its_graph():
    def stop(work):
        if work.role == "approximate" and work.made > 60:
            raise KeyboardInterrupt

    score = Score(smooth(n=420), "gp")
    with pytest.warns(UserWarning, match="interrupted: the best DAG so far is returned"):
        found = discover(score, rng=np.random.default_rng(0), watch=stop)
    assert found.stopped == "interrupted"
    assert found.score == pytest.approx(float(score(found.A)))
