"""Local scores: their memory and its files, deadlines, workers, and what toggling an edge changes."""

import io
import math
import os
import sys
import time

import joblib
import numpy as np
import pytest
from oracles import OnStatistics, residual_ratio_in_long_double, sine
from sklearn.linear_model import LinearRegression

from vec2dag import ALIAS, BIC, GaussianProcess, LeastSquares, Linear, LocalCache, Moments, Score, _kernels
from vec2dag._parallel import OutOfTime
from vec2dag.scores import LinearOnTable, LocalScores
from vec2dag.scores.local import BYTES


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 4)) @ np.triu(rng.uniform(0.5, 1.5, (4, 4)))


def test_least_recently_used_goes_first():
    cache = LocalCache(max_bytes=2 * BYTES)
    cache.put((0, 1), 1.0)
    cache.put((0, 2), 2.0)
    assert cache.get((0, 1)) == 1.0
    cache.put((0, 4), 3.0)
    assert [cache.get((0, mask)) for mask in (1, 2, 4)] == [1.0, None, 3.0]
    assert (cache.hits, cache.misses, cache.bytes) == (3, 1, 2 * BYTES)
    assert cache.hit_rate == 0.75
    with pytest.raises(ValueError, match="max_bytes must be a whole number of at least"):
        LocalCache(max_bytes=10)


@pytest.mark.parametrize("d", [20, 200])
def test_an_entry_is_not_larger_than_counted(d):
    cache = LocalCache()
    rng = np.random.default_rng(0)
    for k in range(5000):
        cache.put((1000 + k, int.from_bytes(rng.bytes((d + 7) // 8), "little")), float(k))
    values = cache._values
    real = sys.getsizeof(values) + sum(sum(map(sys.getsizeof, (*key, key, value))) for key, value in values.items())
    assert real <= cache.bytes <= 2 * real


def test_a_full_cache_changes_nothing_but_the_number_of_fits(X):
    graphs = np.triu(np.random.default_rng(0).integers(0, 2, (30, 4, 4)), 1).astype(np.uint8)
    wide, narrow = Score(X, LinearRegression()), Score(X, LinearRegression(), cache=LocalCache(3 * BYTES))
    np.testing.assert_array_equal(wide(graphs), narrow(graphs))
    np.testing.assert_array_equal([wide(g) for g in graphs], [narrow(g) for g in graphs])
    assert len(narrow.local.cache) == 3
    assert wide.local.fits == len(wide.local.cache) < narrow.local.fits


def test_files_round_trip(tmp_path):
    cache, file = LocalCache(), tmp_path / "scores.npz"
    entries = {(3, 0): 0.5, (0, 1 << 150 | 5): 1e-9, (7, 127): 3.0}
    for key, value in entries.items():
        cache.put(key, value)
    cache.save(file, "mine")
    again = LocalCache()
    assert again.load(file, "mine") == 3
    assert dict(again._values) == entries
    assert LocalCache().load(tmp_path / "absent", "mine") == 0
    with pytest.raises(ValueError, match="other data or of another regression"):
        again.load(file, "theirs")
    whole = file.read_bytes()
    array = io.BytesIO()
    np.save(array, np.ones(3))
    for damaged in (whole[:50], whole[:-30], array.getvalue(), b"", b"text"):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            again.load(file, "mine")
    assert os.listdir(tmp_path) == ["scores.npz"]


def test_fingerprints_tell_data_and_options_apart(X):
    prints = [
        GaussianProcess().bind(X).fingerprint(),
        GaussianProcess(alpha=2.0).bind(X).fingerprint(),
        GaussianProcess().bind(X + 1e-9).fingerprint(),
        Score(X, LinearRegression()).regression.fingerprint(),
        Score(X, LinearRegression(fit_intercept=False)).regression.fingerprint(),
    ]
    assert len(set(prints)) == 5
    assert GaussianProcess().bind(X.copy()).fingerprint() == prints[0]


def test_a_refused_file_stays_as_it_is(X, tmp_path):
    file = tmp_path / "scores.npz"
    with Score(X, LinearRegression()).local.stored(file):
        pass
    before = file.read_bytes()
    other = Score(2 * X, LinearRegression())
    other.local(0, [1])
    with pytest.raises(ValueError, match="other data"), other.local.stored(file):
        pass
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_written_is_found_out_at_once(X, tmp_path, monkeypatch):
    model = ALIAS(regression=LinearRegression(), checkpoint=tmp_path / "missing" / "scores.npz")
    with pytest.raises(OSError, match=r"missing.scores\.npz cannot be written"):
        model.fit(X)
    with pytest.raises(ValueError, match="must be a path, got 5"):
        ALIAS(regression=LinearRegression(), checkpoint=5).fit(X)
    score = Score(X, LinearRegression())
    context = score.local.stored(tmp_path / "scores.npz")
    context.__enter__()
    value = score.local(0, [1])
    monkeypatch.setattr(LocalCache, "save", lambda *_: os.stat(tmp_path / "missing"))
    with pytest.warns(UserWarning, match="could not be written"):
        context.__exit__(None, None, None)
    assert value > 0


def test_files_are_written_while_a_batch_goes_on(X, tmp_path, monkeypatch):
    monkeypatch.setattr("vec2dag.scores.local.SAVE_EVERY", -1.0)
    file, seen = tmp_path / "scores.npz", []

    class Watching(LinearRegression):
        def predict(self, Z):
            seen.append(LocalCache().load(file, "print"))
            return super().predict(Z)

    monkeypatch.setattr("vec2dag.scores.regressors.OnRows.fingerprint", lambda _: "print")
    score = Score(X, Watching(), n_jobs=1)
    with score.local.stored(file):
        score.local.batch([(0, [1]), (0, [2]), (0, [3]), (1, [2])])
    assert seen == [0, 1, 2, 3]


def test_the_layout_in_memory_is_no_other_data(X, tmp_path):
    file = tmp_path / "scores.npz"
    for values in (X, np.asfortranarray(X)):
        model = ALIAS(regression=LinearRegression(), checkpoint=file, prune=None, random_state=0).fit(values)
    assert model.search_.fits == 0


def test_what_cannot_be_pickled_has_no_fingerprint(X):
    class Local(LinearRegression):
        pass

    with pytest.raises(ValueError, match="can be pickled, got"):
        Score(X, Local()).regression.fingerprint()


def test_a_repeated_run_fits_nothing_again(X, tmp_path):
    file = tmp_path / "scores.npz"

    def run():
        return ALIAS(regression=LinearRegression(), checkpoint=file, prune=None, random_state=0).fit(X)

    first, second = run(), run()
    assert first.search_.fits > 0
    assert second.search_.fits == 0
    assert first.score_ == second.score_
    np.testing.assert_array_equal(first.adjacency_matrix_, second.adjacency_matrix_)
    with pytest.raises(ValueError, match="other data"):
        ALIAS(regression=LinearRegression(), checkpoint=file).fit(X[:-1])
    with pytest.raises(ValueError, match="other data or of another regression"):
        ALIAS(checkpoint=file).fit(X)


class Interrupted(LinearRegression):
    """As if somebody pressed Ctrl-C during the fit with the number ``at``."""

    fitted, at = 0, -1

    def fit(self, X, y):
        type(self).fitted += 1
        if type(self).fitted == type(self).at:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_keeps_what_it_has_paid_for(rng, tmp_path, monkeypatch, jobs):
    X = rng.standard_normal((60, 8)) @ np.triu(rng.uniform(0.5, 1.5, (8, 8)))
    file, limit = tmp_path / "scores.npz", 60
    monkeypatch.setattr(Interrupted, "fitted", 0)
    monkeypatch.setattr(Interrupted, "at", limit)

    def run():
        model = ALIAS(regression=Interrupted(), checkpoint=file, prune=None, random_state=0, n_jobs=jobs)
        return model.fit(X)

    with pytest.raises(KeyboardInterrupt, match="before a first graph was ready"):
        run()
    moments = Moments.of(X)
    searched = (X - moments.mean)[:, moments.canonical_order()]
    paid = LocalCache().load(file, Score(searched, Interrupted()).regression.fingerprint())
    # Regressions without parents are not fitted; of a batch in flight the results after the interrupt are lost.
    assert limit - 1 - 6 * jobs <= paid
    second = run()
    assert second.search_.stopped == "settled"
    whole = ALIAS(regression=LinearRegression(), prune=None, random_state=0).fit(X)
    assert 0 < second.search_.fits == whole.search_.fits - paid
    np.testing.assert_array_equal(second.adjacency_matrix_, whole.adjacency_matrix_)


def test_an_error_keeps_what_was_paid_for(X, tmp_path):
    file = tmp_path / "scores.npz"
    score = Score(X, LinearRegression())
    with pytest.raises(ValueError, match="its own parent"), score.local.stored(file):
        score.local.batch([(0, [1])]) + score.local.batch([(0, [0])])
    again = Score(X, LinearRegression())
    with again.local.stored(file) as known:
        assert known == 1
        again.local(0, [1])
    assert again.local.fits == 0
    with pytest.raises(ValueError, match="those that take microseconds are not"), Score(X).local.stored(file):
        pass


# --- time


def test_an_inner_deadline_never_lifts_an_outer_one(X):
    local = Score(X, LinearRegression(), n_jobs=1).local
    past, far = time.perf_counter() - 1.0, time.perf_counter() + 1e6
    with local.until(past):
        with local.until(far), pytest.raises(OutOfTime):
            local(0, [1])
        # Leaving the inner one must restore the outer one, and not time without end.
        with pytest.raises(OutOfTime):
            local(0, [2])
    local(0, [3])
    assert local.deadline == math.inf


def test_an_inner_deadline_ends_with_its_context(X):
    local = Score(X, LinearRegression(), n_jobs=1).local
    past, far = time.perf_counter() - 1.0, time.perf_counter() + 1e6
    with local.until(far):
        with pytest.raises(OutOfTime), local.until(past):
            local(0, [1])
        assert local.deadline == far
        with local.until(far + 1.0):
            assert local.deadline == far
        local(0, [2])
    assert local.deadline == math.inf


def test_unhurried_lifts_the_deadline_for_a_while(X):
    local = Score(X, LinearRegression(), n_jobs=1).local
    past = time.perf_counter() - 1.0
    with local.until(past):
        with local.unhurried():
            local(0, [1])
            with local.until(past), pytest.raises(OutOfTime):
                local(0, [2])
            local(0, [3])
        with pytest.raises(OutOfTime):
            local(1, [0])
        with pytest.raises(ZeroDivisionError), local.unhurried():
            raise ZeroDivisionError
        assert local.deadline == past


def test_what_was_fitted_when_time_ended_is_known_afterwards(X):
    local = Score(X, LinearRegression(), n_jobs=1).local
    with local.until(time.perf_counter() - 1.0):
        with pytest.raises(OutOfTime):
            local.batch([(0, [1]), (0, [2])])
        assert local.fits == 1
        local(0, [1])  # costs nothing, and so needs no time
    assert local.fits == len(local.cache) == 1


# --- toggles

TOGGLED = {
    "bic-nv": BIC(),
    "bic-nv, offset": BIC(offset=1e-3),
    "bic-ev": BIC("equal"),
    "bic-ev, offset": BIC("equal", offset=1e-3),
    "ls": LeastSquares(),
}
every_criterion = pytest.mark.parametrize("criterion", TOGGLED.values(), ids=TOGGLED)


def random_graphs(rng, d, count=4):
    """From none to all edges that agree with an order."""
    order = rng.permutation(d)
    for density in np.linspace(0, 1, count):
        yield (np.triu(rng.random((d, d)) < density, 1)).astype(np.uint8)[np.ix_(order, order)]


@every_criterion
@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("n", [300, 5])
def test_compiled_toggles_are_the_general_ones(criterion, reference, n, rng):
    X = rng.standard_normal((n, 7)) @ np.triu(rng.normal(size=(7, 7))) * rng.uniform(0.1, 10, 7) + 1
    linear = Linear(reference=reference).bind(X)
    score = Score(None, linear, criterion)
    general = Score(None, OnStatistics(linear), criterion)
    assert type(general.local) is LocalScores is not type(score.local)
    for A in random_graphs(rng, 7):
        if n == 5:
            A[:, A.sum(axis=0) > 2] = 0  # more parents would fit every row and leave rounding
        for ours, theirs in zip(score.toggles(A), general.toggles(A), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def nearly_equal_columns(rng, noise):
    """``x1`` is ``x0`` and a trace of noise, ``x2`` is made of that trace, and ``x3`` of all of them."""
    trace = rng.standard_normal(400)
    x0 = rng.standard_normal(400)
    x2 = trace + 0.5 * rng.standard_normal(400)
    x3 = x0 + x2 + rng.standard_normal(400)
    x4 = rng.standard_normal(400)
    return np.column_stack([x0, x0 + noise * trace, x2, x3, x4])


def in_long_double(X, node, parents):
    return residual_ratio_in_long_double(X, node, sorted(parents))


def least_pivot(X, node, parents):
    """The least of the variances that a Cholesky factorisation of the parents and the node divides by."""
    columns = [*sorted(parents), node]
    return min(in_long_double(X, u, columns[:a]) for a, u in enumerate(columns))


@every_criterion
@pytest.mark.parametrize("noise", [1e-5, 1e-6])
def test_toggles_of_nearly_equal_parents_keep_their_digits(criterion, noise, rng):
    """Their pivots are below what correlations can tell, so that the kernel works on the factor of the data."""
    X = nearly_equal_columns(rng, noise)
    score, d, ill = Score(X, "linear", criterion), X.shape[1], 0
    for edges in (
        [(0, 2), (1, 2)],
        [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (4, 3)],
        [(1, 0), (4, 0), (3, 2), (1, 2), (0, 2), (4, 2)],
    ):
        A = np.zeros((d, d), np.uint8)
        A[tuple(np.array(edges).T)] = 1
        links, table = score.toggles(A)
        for i in range(d):
            variance, parents = X[:, i].var(), {j for j in range(d) if A[j, i]}
            if least_pivot(X, i, parents) > _kernels.ILL_FOR_SEARCH:
                continue
            own = float(criterion.link(variance * in_long_double(X, i, parents)))
            assert links[i] == pytest.approx(own, rel=1e-8)
            for j in set(range(d)) - {i}:
                toggled = float(criterion.link(variance * in_long_double(X, i, parents ^ {j})))
                assert table[i, j] == pytest.approx(toggled - own, rel=1e-8, abs=1e-8)
                ill += 1
    assert ill == 24


@pytest.mark.parametrize(("node", "parents", "added"), [(1, [], 0), (2, [0], 1)])
def test_a_parent_that_makes_a_regression_ill_conditioned_is_added_with_its_digits(node, parents, added, rng):
    """Columns that differ by 2e-6 of their standard deviation are not yet the same (``DEPENDENCE_TOLERANCE``)."""
    X = nearly_equal_columns(rng, 2e-6)
    A = np.zeros((5, 5), np.uint8)
    A[parents, node] = 1
    compiled = Score(X).toggles(A)[1][node, added]
    general = Score(None, OnStatistics(Linear().bind(X))).toggles(A)[1][node, added]
    expected = np.log(in_long_double(X, node, [*parents, added]) / in_long_double(X, node, parents))
    assert general == pytest.approx(expected, abs=1e-8)
    assert compiled == pytest.approx(expected, abs=1e-8)


def toggle_ratios(linear, node, parents, ill):
    """What the kernel writes, with scratch arrays of its own: ratios after toggles, and after the first parents."""
    d, r = linear.F.shape
    k, slots = len(parents), np.zeros(d + 1, np.int64)
    slots[:k] = parents
    toggled, prefix = np.empty(d), np.empty(d + 1)
    W, v, inverse, Q = np.empty((d + 1, d)), np.empty(d), np.empty((d, d)), np.empty((d + 2, r))
    _kernels.toggle_ratios(linear.C, linear.F, node, slots, k, ill, W, v, inverse, Q, toggled, prefix)
    assert slots[:k].tolist() == list(parents), "parents are left in their order"
    return np.delete(toggled, node), prefix[: k + 1]


def test_the_factor_and_correlations_agree_where_both_have_digits(rng):
    X = rng.standard_normal((100, 7)) @ np.triu(rng.normal(size=(7, 7)), 1) + rng.standard_normal((100, 7))
    linear = Linear().bind(X)
    for _ in range(20):
        node, *parents = rng.permutation(7)[: rng.integers(1, 8)].tolist()
        for one, other in zip(*(toggle_ratios(linear, node, parents, ill) for ill in (0.0, 2.0)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10)


def test_every_first_few_parents_leave_what_they_should(rng):
    """What the gradient asks of the same kernel, where its pivots are small too."""
    X = nearly_equal_columns(rng, 1e-6)
    linear = Linear().bind(X)
    for node, parents in ((2, [0, 1, 3, 4]), (3, [1, 2, 0, 4]), (4, [3, 1, 0, 2])):
        _, prefix = toggle_ratios(linear, node, parents, _kernels.ILL_FOR_GRADIENT)
        expected = [residual_ratio_in_long_double(X, node, parents[:a]) for a in range(len(parents) + 1)]
        np.testing.assert_allclose(prefix, expected, rtol=1e-8)


# --- workers


@pytest.mark.parametrize(("node", "parents"), [(0, [7]), (0, [-1]), (9, [1]), (-1, [0])])
@pytest.mark.parametrize("regression", ["linear", "gp"])
def test_nodes_that_do_not_exist_are_named(regression, node, parents):
    with pytest.raises(ValueError, match=r"there is no node -?\d; nodes are 0 to 3"):
        Score(sine(), regression).local(node, parents)


def test_other_workers_can_be_chosen():
    """A backend of joblib, here processes, gives the same local scores."""
    X = sine()
    wanted = [(3, [0]), (3, [0, 1]), (2, [0, 1]), (2, [])]
    with joblib.parallel_config("loky", n_jobs=2):
        by_processes = Score(X, "gp", n_jobs=2).local.batch(wanted)
    np.testing.assert_array_equal(by_processes, Score(X, "gp", n_jobs=1).local.batch(wanted))


def test_workers_of_a_joblib_context_are_those_it_asks_for(monkeypatch):
    asked = []
    monkeypatch.setattr(joblib.Parallel, "__init__", lambda self, n_jobs=None, **_: asked.append(n_jobs))
    monkeypatch.setattr(joblib.Parallel, "__call__", lambda self, tasks: (f(*args) for f, args, _ in tasks))
    with joblib.parallel_config("loky", n_jobs=3):
        Score(sine(), "gp").local(1, [0])
    assert asked == [None]


def test_linear_is_not_cached(rng):
    score = Score(sine())
    score.local(0, [1])
    assert isinstance(score.regression, LinearOnTable)
    assert (score.local.fits, len(score.local.cache)) == (0, 0)


def test_a_cache_belongs_to_one_table(X):
    cache = LocalCache()
    one = Score(X, LinearRegression(), cache=cache).local(0, [1])
    assert Score(X.copy(), LinearRegression(), "ls", cache=cache).local(0, [1]) == one
    assert cache.hits == 1
    with pytest.raises(ValueError, match="residuals of other data"):
        Score(3 * X, LinearRegression(), cache=cache)
