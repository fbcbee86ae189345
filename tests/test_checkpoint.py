"""Checkpoints: whatever ends a run, another one continues it and ends in the result of a whole one."""

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from vec2dag import ALIAS, Score, discover, simulate
from vec2dag.scores import LocalCache
from vec2dag.scores import local as scores_local
from vec2dag.scores.local import Store
from vec2dag.search import A2C, PPO, REINFORCE, Checkpoint, Conditional, LocalSearch, NodeCredit, Orders
from vec2dag.search import budget as budget_module
from vec2dag.search import checkpoint as module
from vec2dag.search import local as local_search


@pytest.fixture(scope="module")
def X():
    return simulate.linear_gaussian(d=10, k=3, n=420, rng=np.random.default_rng(3)).X


@pytest.fixture(autouse=True)
def always_look(monkeypatch):
    """Every state is taken; the file is still written only at the end, unless a test wants it more often."""
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(module, "SHARE", np.inf)


def linear(criterion):
    return lambda X: Score(X, "linear", criterion)


class OnRows:
    """Least squares as if it took its time: remembered, searched on a part of the rows first, with a fingerprint."""

    def __init__(self, X):
        self.X, (self.n, self.d) = X, X.shape
        self.residual = Score(X).regression.residual

    def thinned(self, step):
        return OnRows(self.X[::step])

    def fingerprint(self):
        return module.digest(self.X)


def costly(criterion):
    return lambda X: Score(None, OnRows(X[:, :6]), criterion, n_jobs=1)


def function(X):
    """A callable that counts its calls in ``calls``."""
    inner = Score(X[:, :6], "linear", "bic-nv")

    def score(A):
        score.calls += 1
        return float(inner(A))

    score.calls, score.d = 0, 6
    return score


SMALL = {"n_steps": 40, "batch_size": 6}
SEARCHES = {
    "default": (linear("bic-nv"), "auto"),
    "default, equal variances": (linear("bic-ev"), "auto"),
    "local": (linear("ls"), LocalSearch(patience=20, chains=3)),
    "local, equal variances": (linear("bic-ev"), LocalSearch(patience=20, chains=3, n_steps=30)),
    "orders": (linear("bic-nv"), Orders(stall=2)),
    "orders, equal variances": (linear("bic-ev"), Orders(stall=2)),
    "orders, costly": (costly("bic-nv"), "auto"),
    "orders, costly, equal variances": (costly("bic-ev"), Orders(n_steps=4)),
    "conditional": (linear("bic-nv"), Conditional(n_steps=40)),
    "conditional, costly": (costly("bic-nv"), Conditional(n_steps=4, batch_size=2)),
    "credit": (linear("bic-nv"), NodeCredit(**SMALL)),
    "ppo": (linear("bic-nv"), PPO(**SMALL, n_epochs=2, minibatches=2)),
    "ppo, patience": (linear("bic-nv"), PPO(batch_size=6, patience=15)),
    "a2c": (linear("bic-nv"), A2C(**SMALL)),
    "reinforce": (linear("bic-nv"), REINFORCE(**SMALL)),
    "ppo, callable": (function, PPO(**SMALL)),
}
every_search = pytest.mark.parametrize("name", SEARCHES)


def run(name, X, seed=0, **options):
    make, algorithm = SEARCHES[name]
    return discover(make(X), rng=np.random.default_rng(seed), algorithm=algorithm, **options)


def assert_same(found, whole):
    """All but seconds, and but what regressions have cost: those of the file cost nothing."""
    for part in ("score", "mode_score", "n_iter", "stopped", "init", "algorithm", "ready", "certificate"):
        assert getattr(found, part) == getattr(whole, part), part
    for part in ("A", "mode"):
        np.testing.assert_array_equal(getattr(found, part), getattr(whole, part))
    np.testing.assert_array_equal(found.policy.mu, whole.policy.mu)
    np.testing.assert_array_equal(found.policy.log_sigma, whole.policy.log_sigma)
    assert found.history.keys() == whole.history.keys()
    for column in found.history.keys() - {"seconds", "fits", "hit_rate"}:
        np.testing.assert_array_equal(found.history[column], whole.history[column], err_msg=column)
    assert (np.diff(found.history["seconds"]) >= 0).all()


def steps_kept(file):
    """Rows of history in a file, of the search that was not finished."""
    with np.load(file, allow_pickle=False) as stored:
        sections = module.unpack(stored)["sections"]
    return sum(len(section["record"]["rows"]) for section in sections.values() if "record" in section)


@pytest.fixture(scope="module")
def whole(X):
    """Results of runs that nothing ends, and without a file."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = run(name, X)
        return known[name]

    return of


# --- every algorithm ------------------------------------------------------------------------------------------


@every_search
def test_a_file_changes_nothing_and_a_finished_search_is_not_repeated(name, X, whole, tmp_path):
    file, told = tmp_path / "run.npz", []
    assert_same(run(name, X, checkpoint=file), whole(name))
    again = run(name, X, checkpoint=str(file), callback=told.append)
    assert_same(again, whole(name))
    assert not told
    assert again.fits == 0


@every_search
@pytest.mark.parametrize("at", [1, 9])
def test_stopped_by_a_callback_and_continued(name, X, whole, tmp_path, at):
    file, told = tmp_path / "run.npz", []
    first = run(name, X, checkpoint=file, callback=lambda progress: progress.step == at)
    second = run(name, X, checkpoint=file, callback=lambda progress: told.append(progress.step))
    assert_same(second, whole(name))
    if first.cut_short:
        # The chains of local search are kept before they are looked at, the others after it.
        assert told[0] == (at if second.algorithm == "local" else at + 1)
    if "costly" in name:
        # What was found on a part of the rows is scored on all of them when it is returned.
        assert whole(name).fits <= first.fits + second.fits <= whole(name).fits + 6


@every_search
@pytest.mark.parametrize("at", [2, 17])
def test_interrupted_between_two_writes_and_continued(name, X, whole, tmp_path, monkeypatch, at):
    """Also in the middle of a chain of local search, which is kept at every look at the clock here."""
    monkeypatch.setattr(local_search, "TURN", 1e-9)
    file, calls = tmp_path / "run.npz", count(1)

    def interrupted(store):
        if next(calls) == at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save_if_due", interrupted)
        patch.setattr("vec2dag.search.gradient.warn", lambda sentence: None)
        # It is not caught where a finished search is written.
        with suppress(KeyboardInterrupt):
            run(name, X, checkpoint=file)
    assert_same(run(name, X, checkpoint=file), whole(name))


@every_search
def test_out_of_time_again_and_again(name, X, whole, tmp_path, monkeypatch):
    """By a clock that ticks whenever somebody looks at it; every run has a little more time than the last."""
    ticks = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)), monotonic=time.monotonic)
    monkeypatch.setattr(budget_module, "time", clock)
    monkeypatch.setattr(scores_local, "time", clock)
    file, budget, runs = tmp_path / "run.npz", 10.0, 0
    while True:
        found = run(name, X, checkpoint=file, time_budget=budget)
        budget, runs = 2.0 * budget, runs + 1
        if found.stopped != "time" and (found.certified or "callable" in name):
            break
    assert runs > 1
    monkeypatch.undo()
    # Costly regressions are not searched exactly within a budget.
    assert_same(run(name, X, checkpoint=file), whole(name))


@every_search
def test_an_error_in_the_middle_is_no_loss(name, X, whole, tmp_path):
    class Failure(Exception):
        pass

    def fail(progress):
        if progress.step == 3:
            raise Failure

    file, told = tmp_path / "run.npz", []
    if whole(name).n_iter >= 3:
        with pytest.raises(Failure):
            run(name, X, checkpoint=file, callback=fail)
    assert_same(run(name, X, checkpoint=file, callback=told.append), whole(name))
    assert len(told) < whole(name).n_iter or "costly" in name


def test_a_callable_is_not_asked_again(X, tmp_path):
    algorithm = PPO(n_steps=30, batch_size=6)

    def calls(**options):
        score = function(X)
        found = discover(score, rng=np.random.default_rng(0), algorithm=algorithm, **options)
        return found, score.calls

    whole, all_calls = calls()
    first, before = calls(checkpoint=tmp_path / "run.npz", callback=lambda progress: progress.step == 20)
    second, after = calls(checkpoint=tmp_path / "run.npz")
    assert_same(second, whole)
    assert (first.n_iter, second.n_iter) == (20, 30)
    # Twice three calls tell whose file it is, and the first run has scored the mean it ended with.
    assert all_calls < before + after <= all_calls + 2 * 3 + 1
    assert after <= 3 + 10 * (6 + 1) + 1


# --- kill -9 --------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import numpy as np
from vec2dag import Score, discover
from vec2dag.scores import local
from vec2dag.search import PPO, checkpoint

checkpoint.LOOK_EVERY, checkpoint.SHARE, local.SAVE_EVERY = 0.0, np.inf, -1.0
def kill(progress):
    if progress.step == 8:
        os.kill(os.getpid(), signal.SIGKILL)
X, file, ppo = np.load(sys.argv[1]), sys.argv[2], sys.argv[3] == "ppo"
algorithm = PPO(n_steps=40, batch_size=6, n_epochs=2, minibatches=2) if ppo else "auto"
discover(Score(X), rng=np.random.default_rng(0), algorithm=algorithm, checkpoint=file, callback=kill)
"""


@pytest.mark.parametrize("name", ["default", "ppo"])
def test_killed_and_started_again(name, X, whole, tmp_path):
    np.save(tmp_path / "X.npy", X)
    file, told = tmp_path / "run.npz", []
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "X.npy"), str(file), name]
    dead = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    found = run(name, X, checkpoint=file, callback=lambda progress: told.append(progress.step))
    assert_same(found, whole(name))
    assert told == list(range(8, whole(name).n_iter + 1))


# --- which file fits ------------------------------------------------------------------------------------------


def stopped_at(at, name, X, file, **options):
    return run(name, X, checkpoint=file, callback=lambda progress: progress.step == at, **options)


def test_a_file_of_other_data_is_refused_and_stays_as_it_is(X, tmp_path):
    file = tmp_path / "run.npz"
    stopped_at(5, "ppo", X, file)
    before = file.read_bytes()
    for name, values in (("ppo", X[:-1]), ("ppo", 2 * X), ("ppo, callable", X), ("orders, costly", X)):
        with pytest.raises(ValueError, match=r"run\.npz is a checkpoint of other data .* take another file, or remove"):
            run(name, values, checkpoint=file)
    assert file.read_bytes() == before
    other = tmp_path / "function.npz"
    stopped_at(5, "ppo, callable", X, other)
    with pytest.raises(ValueError, match="or of another regression or function"):
        run("ppo, callable", 1.5 * X, checkpoint=other)


def test_other_settings_and_seeds_begin_anew(X, whole, tmp_path):
    file, told = tmp_path / "run.npz", []
    stopped_at(20, "ppo", X, file)
    with pytest.warns(UserWarning, match="holds an unfinished search with other settings, another seed"):
        other = run("ppo", X, seed=1, checkpoint=file, callback=lambda progress: told.append(progress.step))
    assert told[0] == 1
    assert_same(other, run("ppo", X, seed=1))
    # A finished one of other settings is no loss, and nothing to warn of.
    assert_same(run("a2c", X, checkpoint=file), whole("a2c"))
    start = np.arange(10)
    assert_same(run("a2c", X, init=start, checkpoint=file), run("a2c", X, init=start))


def test_other_criteria_use_the_local_scores(X, tmp_path):
    file = tmp_path / "run.npz"
    first = run("orders, costly", X, checkpoint=file)
    again = discover(costly("ls")(X), rng=np.random.default_rng(0), checkpoint=file)
    plain = discover(costly("ls")(X), rng=np.random.default_rng(0))
    assert_same(again, plain)
    assert again.fits == 0 < plain.fits
    assert first.fits > 0


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_any_generator_goes_on_where_it_was(kind, X, tmp_path):
    def search(seed, **options):
        rng = np.random.Generator(getattr(np.random, kind)(seed))
        found = discover(linear("bic-nv")(X), rng=rng, algorithm=PPO(n_steps=6, batch_size=6), refine=False, **options)
        return found, rng.random()

    file = tmp_path / "run.npz"
    search(0, checkpoint=file, callback=lambda progress: progress.step == 3)
    (found, number), (whole, same) = search(0, checkpoint=file), search(0)
    assert_same(found, whole)
    assert number == same


def test_without_a_seed_that_of_the_file_is_taken(X, whole, tmp_path):
    file = tmp_path / "run.npz"
    stopped_at(20, "ppo", X, file)
    assert_same(run("ppo", X, seed=1, checkpoint=Checkpoint(file, any_seed=True)), whole("ppo"))
    # Random numbers of another kind cannot go on from there.
    rng = np.random.Generator(np.random.MT19937(0))
    told = []
    discover(linear("bic-nv")(X), rng=rng, algorithm=SEARCHES["ppo"][1], checkpoint=Checkpoint(file, any_seed=True),
             callback=told.append)  # fmt: skip
    assert len(told) == 40


def test_files_of_local_scores_from_before_are_read(X, tmp_path):
    file, score = tmp_path / "run.npz", costly("bic-nv")(X)
    values = {(j, parent): score.local(j, [parent]) for j in range(6) for parent in range(6) if parent != j}
    np.savez_compressed(
        file,
        fingerprint=np.array(score.regression.fingerprint()),
        nodes=np.array([j for j, _ in values]),
        parents=np.array([[1 << parent] for _, parent in values], np.uint8),
        residuals=np.array(list(values.values())),
    )
    found, plain = run("orders, costly", X, checkpoint=file), run("orders, costly", X)
    assert_same(found, plain)
    assert plain.fits - len(values) <= found.fits < plain.fits
    assert LocalCache().load(file, score.regression.fingerprint()) > len(values)


def test_who_cannot_be_continued_is_refused_unless_regressions_are_worth_keeping(X, tmp_path):
    class Foreign:
        name, descends, reports_mean, takes_start = "foreign", False, False, True

        def search(self, score, **parts):
            return PPO(n_steps=3, batch_size=4).search(score, **parts)

    file = tmp_path / "run.npz"
    for make in (linear("bic-nv"), function):
        with pytest.raises(ValueError, match=r"Foreign cannot be continued.* the algorithms that have a name can be"):
            discover(make(X), rng=np.random.default_rng(0), algorithm=Foreign(), checkpoint=file)
    assert not file.exists()
    found = [
        discover(costly("bic-nv")(X), rng=np.random.default_rng(0), algorithm=Foreign(), checkpoint=file)
        for _ in range(2)
    ]
    assert found[0].fits > found[1].fits == 0


def test_stable_baselines_is_refused(X, tmp_path):
    sb3 = pytest.importorskip("vec2dag.sb3", reason="needs the extra sb3", exc_type=ImportError)
    with pytest.raises(ValueError, match=r"vec2dag\.sb3\.PPO cannot be continued"):
        ALIAS(algorithm=sb3.PPO(n_steps=2), checkpoint=tmp_path / "run.npz").fit(X)


def test_a_regression_that_cannot_be_told_from_another_is_refused(X, tmp_path):
    regression = SimpleNamespace(n=50, d=4, residual=lambda node, parents: 1.0 / (1 + len(parents)))
    with pytest.raises(ValueError, match="needs a regression with a fingerprint"):
        discover(Score(None, regression), rng=np.random.default_rng(0), checkpoint=tmp_path / "run.npz")


# --- the file -------------------------------------------------------------------------------------------------


def test_nothing_is_pickled_and_nothing_else_is_left(X, tmp_path):
    stopped_at(5, "orders, costly", X, tmp_path / "run.npz")
    assert os.listdir(tmp_path) == ["run.npz"]
    with np.load(tmp_path / "run.npz", allow_pickle=False) as stored:
        assert {stored[name].dtype.kind for name in stored.files} <= set("uifU")


def test_damaged_files_are_refused(X, tmp_path):
    file = tmp_path / "run.npz"
    stopped_at(5, "ppo", X, file)
    content = file.read_bytes()
    for damaged in (content[:100], content[:-40], b"", b"text", content[:300] + b"!" + content[301:]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"run\.npz is not a checkpoint, or is damaged"):
            run("ppo", X, checkpoint=file)
        assert file.read_bytes() == damaged


@pytest.mark.parametrize("replaced", [b"{", b"[]", b'{"about": {}, "sections": {}}', "wrong state", "wrong shape"])
def test_archives_with_a_wrong_text_are_refused(X, tmp_path, replaced):
    file = tmp_path / "run.npz"
    stopped_at(5, "ppo", X, file)
    with np.load(file) as stored:
        arrays = dict(stored)
    if replaced == "wrong state":
        replaced = arrays["search"].tobytes().replace(b'"log_sigma"', b'"log_gamma"')
    if replaced == "wrong shape":
        replaced = arrays["search"].tobytes().replace(b'"mu": {"$array": 2}', b'"mu": {"$array": 0}')
    text = io.BytesIO()
    np.savez(text, **(arrays | {"search": np.frombuffer(replaced, np.uint8)}))
    file.write_bytes(text.getvalue())
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
    with pytest.raises(ValueError, match=r"run\.npz is not a checkpoint, or is damaged"):
        run("ppo", X, checkpoint=file)


def test_a_file_that_cannot_be_written_in_the_middle_is_a_warning(X, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(scores_local, "SAVE_EVERY", -1.0)
    write, calls = scores_local.write_atomically, count()

    def full(file, content):
        if next(calls) > 3:
            raise OSError(f"{file} cannot be written: no space left")
        write(file, content)

    monkeypatch.setattr(scores_local, "write_atomically", full)
    file = tmp_path / "run.npz"
    with pytest.warns(UserWarning, match="the checkpoint could not be written, and the run goes on without") as caught:
        found = run("ppo", X, checkpoint=file)
    assert len(caught) == 1
    assert next(calls) > 30
    assert_same(found, whole("ppo"))
    monkeypatch.setattr(scores_local, "write_atomically", write)
    assert steps_kept(file) == 3
    assert_same(run("ppo", X, checkpoint=file), whole("ppo"))


def test_a_file_that_cannot_be_written_at_all_is_found_out_at_once(X, tmp_path):
    with pytest.raises(OSError, match=r"the checkpoint .*run\.npz cannot be written"):
        run("ppo", X, checkpoint=tmp_path / "missing" / "run.npz")
    with pytest.raises(ValueError, match="checkpoint must be a path, got 5"):
        run("ppo", X, checkpoint=5)


def test_states_are_taken_and_written_now_and_then(X, tmp_path, monkeypatch):
    """At most 1 / 200 of the time is for taking states, and the same for writing."""
    clock, looks = SimpleNamespace(now=0.0), []
    monkeypatch.setattr(module, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(module, "SHARE", 0.005)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(scores_local, "time", SimpleNamespace(monotonic=lambda: clock.now))
    store = Store(tmp_path / "run.npz", LocalCache(), "mine")
    memory = module.Memory(store)

    class Slow(module.Stateful):
        def snapshot(self):
            looks.append(clock.now)
            clock.now += 0.02
            return {}

    def write(file, content):
        writes.append(clock.now)
        clock.now += 0.6

    writes = []
    monkeypatch.setattr(scores_local, "write_atomically", write)
    pause = memory.follow("slow", part=Slow())
    while clock.now < 400:
        clock.now += 0.01
        pause()
    assert 3.9 < np.diff(looks).min() < 5.0
    assert writes[0] < 5.0
    assert 119.0 < np.diff(writes).min() < 130.0


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -1.5, np.inf, "text", [], [1, [2.5, "a"]], {"a": {"b": None}}, 2**127, np.zeros((0, 3)),
     np.array(7, np.uint64), {"x": [np.arange(3), {"y": np.ones((2, 2), np.uint8)}]}],
)  # fmt: skip
def test_what_is_packed_comes_back(value):
    def same(a, b):
        if isinstance(a, np.ndarray):
            return a.dtype == b.dtype and np.array_equal(a, b)
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return a == b and type(a) is type(b)

    stored = io.BytesIO()
    np.savez(stored, **module.pack(module.freeze(value)))
    stored.seek(0)
    with np.load(stored, allow_pickle=False) as arrays:
        assert same(module.thaw(module.unpack(arrays)), value)


# --- the estimator --------------------------------------------------------------------------------------------


def test_the_estimator_continues(X, tmp_path, monkeypatch):
    """For tables and callables, with a seed and without."""
    file, calls = tmp_path / "run.npz", count(1)
    settings = {"algorithm": PPO(n_steps=30, batch_size=6), "prune": None}
    whole = ALIAS(random_state=0, **settings).fit(X)

    def interrupted(store):
        if next(calls) == 12:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save_if_due", interrupted)
        with pytest.warns(UserWarning, match="interrupted"):
            assert ALIAS(random_state=0, checkpoint=file, **settings).fit(X).n_iter_ == 12
    content = file.read_bytes()
    for seed in (0, None):
        file.write_bytes(content)
        model = ALIAS(random_state=seed, checkpoint=file, **settings).fit(X)
        assert_same(model.search_, whole.search_)
        np.testing.assert_array_equal(model.adjacency_matrix_, whole.adjacency_matrix_)
    score = function(X)
    path = str(tmp_path / "function.npz")
    models = [ALIAS(score, random_state=0, checkpoint=path, **settings).fit(X[:, :6]) for _ in range(2)]
    assert_same(models[1].search_, models[0].search_)
    assert score.calls < 3 + 3 + 31 * 7
