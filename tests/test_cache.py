"""The memory of local scores: bounds, counts, and files."""

import io
import os
import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from vec2dag.cache import BYTES, LocalCache

from vec2dag import ALIAS, GaussianProcess, Score


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
    with pytest.raises(ValueError, match="max_bytes must be at least"):
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
    assert len(narrow.cache) == 3
    assert wide.fits == len(wide.cache) < narrow.fits


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
    with Score(X, LinearRegression()).stored(file):
        pass
    before = file.read_bytes()
    other = Score(2 * X, LinearRegression())
    other.local(0, [1])
    with pytest.raises(ValueError, match="other data"), other.stored(file):
        pass
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_written_is_found_out_at_once(X, tmp_path, monkeypatch):
    model = ALIAS(regression=LinearRegression(), checkpoint=tmp_path / "missing" / "scores.npz")
    with pytest.raises(OSError, match=r"missing.scores\.npz cannot be written"):
        model.fit(X)
    with pytest.raises(ValueError, match="must be a path, got 5"):
        ALIAS(regression=LinearRegression(), checkpoint=5).fit(X)
    score = Score(X, LinearRegression())
    context = score.stored(tmp_path / "scores.npz")
    context.__enter__()
    value = score.local(0, [1])
    monkeypatch.setattr(LocalCache, "save", lambda *_: os.stat(tmp_path / "missing"))
    with pytest.warns(UserWarning, match="could not be written"):
        context.__exit__(None, None, None)
    assert value > 0


def test_files_are_written_while_a_batch_goes_on(X, tmp_path, monkeypatch):
    monkeypatch.setattr("vec2dag.scores.SAVE_EVERY", -1.0)
    file, seen = tmp_path / "scores.npz", []

    class Watching(LinearRegression):
        def predict(self, Z):
            seen.append(LocalCache().load(file, "print"))
            return super().predict(Z)

    monkeypatch.setattr("vec2dag.nonlinear.BoundRegression.fingerprint", lambda _: "print")
    score = Score(X, Watching(), n_jobs=1)
    with score.stored(file):
        score.local_batch([(0, [1]), (0, [2]), (0, [3]), (1, [2])])
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
    with pytest.raises(ValueError, match="regressions that are not linear"):
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

    with pytest.warns(UserWarning, match="interrupted"):
        first = run()
    assert first.search_.stopped == "interrupted"
    paid = LocalCache().load(file, Score(X - X.mean(axis=0), Interrupted()).regression.fingerprint())
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
    with pytest.raises(ValueError, match="its own parent"), score.stored(file):
        score.local_batch([(0, [1])]) + score.local_batch([(0, [0])])
    again = Score(X, LinearRegression())
    with again.stored(file) as known:
        assert known == 1
        again.local(0, [1])
    assert again.fits == 0
    with pytest.raises(ValueError, match="linear regressions take microseconds"), Score(X).stored(file):
        pass
