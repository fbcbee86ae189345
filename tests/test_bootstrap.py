"""Bootstrap: shares that count, a consensus that agrees, the same result whoever does the work and however it ends."""

import csv
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest

from vec2dag import ALIAS, DataWarning, Knowledge, Moments, cpdag, is_dag, simulate, skeleton
from vec2dag.cli import main
from vec2dag.confidence import Bootstrap, Sample, bootstrap
from vec2dag.confidence.resampling import Blocks, Gaussian, Rows
from vec2dag.files.graphs import read_graph
from vec2dag.knowledge.constraints import Constraints

module = importlib.import_module("vec2dag.confidence.bootstrap")

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="module")
def X():
    return simulate.linear_gaussian(d=5, k=1, n=120, rng=np.random.default_rng(4)).X


def run(X, n_samples=8, *, model=None, **settings):
    settings = {"random_state": 3, "n_jobs": 1, "names": NAMES} | settings
    return bootstrap(ALIAS() if model is None else model, X, n_samples, **settings)


def same(one, other):
    """Whether two results are the same to the last digit."""
    return [s.index for s in one.samples] == [s.index for s in other.samples] and all(
        np.array_equal(getattr(a, part), getattr(b, part))
        for a, b in zip(one.samples, other.samples, strict=True)
        for part in ("edges", "weights", "free", "score")
    )


def of_graphs(graphs, free=None, method="resample", known=None):
    """The result of samples with these graphs (m, d, d)."""
    samples = []
    for k, A in enumerate(graphs):
        edges = np.argwhere(A).astype(np.int32)
        unsure = np.zeros(len(edges), bool) if free is None else free[k][tuple(edges.T)]
        samples.append(Sample(k, edges, np.ones(len(edges)), unsure, 0.0))
    d = len(graphs[0])
    names = tuple(f"x{k}" for k in range(d))
    moments = Moments.of(np.random.default_rng(0).standard_normal((50, d)), names)
    known = Constraints.none(names) if known is None else known.bind(names)
    return Bootstrap(names, samples, method, "rows", len(samples), "done", moments, known)


def random_dags(rng, m, d, p=0.4):
    A = np.triu(rng.random((m, d, d)) < p, 1).astype(np.uint8)
    orders = [rng.permutation(d) for _ in range(m)]
    return np.stack([a[np.ix_(order, order)] for a, order in zip(A, orders, strict=True)])


# --- shares ---------------------------------------------------------------------------------------------------


def test_shares_count_graphs(rng):
    graphs = random_dags(rng, 30, 6)
    free = np.stack([(c := cpdag(A)) & c.T for A in graphs]).astype(bool)
    result = of_graphs(graphs, free)
    assert np.allclose(result.directed, (graphs.astype(bool) & ~free).mean(axis=0))
    assert np.allclose(result.free, free.mean(axis=0))
    assert np.allclose(result.absent, 1 - skeleton(graphs).mean(axis=0))
    assert np.allclose(result.directed + result.directed.T + result.free + result.absent, 1)
    assert np.array_equal(result.graphs, graphs)


def test_the_table_has_every_pair_once_the_surest_first(rng):
    graphs = random_dags(rng, 20, 6)
    result = of_graphs(graphs)
    table = result.edges()
    pairs = [frozenset(pair) for pair in zip(table["source"], table["target"], strict=True)]
    assert len(set(pairs)) == len(pairs) == int(np.triu(skeleton(graphs).any(axis=0), 1).sum())
    assert table["adjacent"] == sorted(table["adjacent"], reverse=True)
    for row in table.rows:
        assert row["forward"] >= row["backward"]
        assert row["forward"] + row["backward"] + row["free"] + row["absent"] == pytest.approx(1)
    assert str(table).count("\n") == len(pairs)


def test_coefficients_are_of_the_samples_with_the_edge():
    A = np.zeros((4, 2, 2), np.uint8)
    A[:3, 0, 1] = 1
    result = of_graphs(A)
    for sample, weight in zip(result.samples[:3], (1.0, 2.0, 6.0), strict=True):
        sample.weights[:] = weight
    table = result.edges()
    assert table["coefficient"] == [3.0]
    assert table["deviation"] == [pytest.approx(np.std([1, 2, 6], ddof=1))]


def test_confidence_in_a_graph(X):
    result, model = run(X, 12), ALIAS(random_state=0).fit(X, names=NAMES)
    table = result.confidence(model)
    assert len(table["source"]) == model.adjacency_matrix_.sum()
    for row in table.rows:
        i, j = NAMES.index(row["source"]), NAMES.index(row["target"])
        has = [[i, j] in s.edges[~s.free].tolist() for s in result.samples]
        assert row["same"] == np.mean(has)
        assert row["adjacent"] == pytest.approx(row["same"] + row["reversed"] + row["free"])
    with pytest.raises(ValueError, match="graph must have shape"):
        result.confidence(np.zeros((2, 2)))


# --- consensus ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.7])
def test_the_consensus_is_a_dag_of_the_pairs_that_are_adjacent_often_enough(rng, threshold):
    for _ in range(20):
        result = of_graphs(random_dags(rng, 10, 6, 0.6))
        A = result.consensus(threshold)
        assert is_dag(A)
        out = np.zeros_like(A)
        for a, b in result.left_out(threshold):
            out[int(a[1]), int(b[1])] = 1
        assert np.array_equal(skeleton(A) | skeleton(out), result.adjacent >= threshold - 1e-9)
        assert not (skeleton(A) & skeleton(out)).any()
        assert (result.directed[A == 1] > 0).all()


def test_directions_follow_the_majority_unless_they_close_a_cycle():
    def edges(*pairs):
        A = np.zeros((3, 3), np.uint8)
        for i, j in pairs:
            A[i, j] = 1
        return A

    cycle = [edges((0, 1), (1, 2)), edges((1, 2), (2, 0)), edges((2, 0), (0, 1))]
    result = of_graphs(cycle)
    assert result.consensus().sum() == 2
    assert len(result.left_out()) == 1
    against = [*cycle, *cycle, *cycle, edges((0, 1), (0, 2))]
    result = of_graphs(against)
    assert not result.left_out()
    assert np.array_equal(result.consensus(), edges((0, 1), (1, 2), (0, 2)))
    assert result.doubtful(result.consensus())[0, 2]
    assert not result.doubtful(result.consensus())[0, 1]


def test_the_consensus_respects_what_is_known(rng):
    """Three parents, each in two of three samples, of a node that may have two."""
    graphs = np.zeros((3, 4, 4), np.uint8)
    for k in range(3):
        graphs[k, [i for i in range(3) if i != k], 3] = 1
    result = of_graphs(graphs, known=Knowledge(max_parents=2))
    assert result.consensus().sum() == 2
    assert len(result.left_out()) == 1
    free = np.zeros((3, 2, 2), bool)
    free[:, 0, 1] = free[:, 1, 0] = True
    A = np.zeros((3, 2, 2), np.uint8)
    A[:, 0, 1] = 1
    told = of_graphs(A, free, known=Knowledge(forbidden=[("x0", "x1")]))
    assert np.array_equal(told.consensus(), [[0, 0], [1, 0]])


def test_required_and_forbidden_edges_hold_in_every_sample(X):
    known = Knowledge(required=[("e", "a")], forbidden=[("a", "b"), ("b", "a")])
    result = run(X, model=ALIAS(knowledge=known))
    assert result.directed[4, 0] == 1
    assert result.absent[0, 1] == 1
    assert result.constraints.permits(result.consensus())


# --- stability selection --------------------------------------------------------------------------------------


def test_the_bound_on_false_selections(rng):
    graphs = random_dags(rng, 40, 6, 0.3)
    result = of_graphs(graphs, method="subsample")
    q, p = skeleton(graphs).sum(axis=(1, 2)).mean() / 2, 15
    assert result.false_selections(0.9) == pytest.approx(q**2 / (0.8 * p))
    assert result.false_selections(0.5) == np.inf
    for expected in (0.5, 1.0, 3.0, 100.0):
        stable = result.stability(expected)
        assert stable.expected_false <= expected * (1 + 1e-6)
        assert stable.selected == pytest.approx(q)
        often = np.triu(result.adjacent, 1) >= stable.threshold - 1e-9
        assert len(stable.pairs) == often.sum()
    with pytest.raises(ValueError, match="method='subsample'"):
        of_graphs(graphs).stability()


def test_required_pairs_are_no_selections():
    A = np.zeros((5, 3, 3), np.uint8)
    A[:, 0, 1] = 1
    result = of_graphs(A, method="subsample", known=Knowledge(required=[("x0", "x1")]))
    assert result.stability().pairs == []
    assert result.stability().selected == 0
    assert result.stability().candidates == 2


def test_noise_is_seldom_stable(rng):
    """Of independent columns hardly a pair is adjacent in most subsamples, and the bound says so."""
    result = run(rng.standard_normal((200, 5)), 20, method="subsample")
    stable = result.stability(1.0)
    assert len(stable.pairs) <= 1
    assert "stability:" in result.summary()


# --- samples --------------------------------------------------------------------------------------------------


def test_a_sample_is_the_fit_to_its_rows(X):
    result, before = run(X, 3), X.copy()
    for sample in result.samples:
        rng = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(sample.index,)))
        seed = rng.spawn(1)[0]
        model = ALIAS(random_state=seed, n_jobs=1).fit(X[rng.integers(0, 120, 120)])
        # Up to 12 columns the search is exact: the same score, and so the same class.
        assert model.score_ == pytest.approx(sample.score, abs=1e-12)
    assert np.array_equal(X, before)


def test_the_model_is_not_touched(X):
    model = ALIAS(n_jobs=2, verbose=1, random_state=7)
    run(X, 2, model=model)
    assert model.get_params() == ALIAS(n_jobs=2, verbose=1, random_state=7).get_params()
    assert not hasattr(model, "adjacency_matrix_")


def test_names_come_out_where_names_went_in(X):
    pandas = pytest.importorskip("pandas")
    result = run(pandas.DataFrame(X, columns=list("vwxyz")), 2, names=None)
    assert result.names == tuple("vwxyz")
    assert run(X, 2, names=None).names[0] == "x0"


def test_subsamples_are_halves(X):
    table, rng = Rows(X, NAMES, whole=True), np.random.default_rng(0)
    half = table.draw("subsample", rng)
    assert len(half) == 60
    assert len(np.unique(half, axis=0)) == 60
    whole = table.draw("resample", rng)
    assert len(whole) == 120
    assert 60 < len(np.unique(whole, axis=0)) < 100


def test_other_regressions_get_rows(X):
    result = run(X[:40, :3], 2, names=None, model=ALIAS(regression="gp", prune=None))
    assert result.n_samples == 2
    assert run(X, 2, model=ALIAS(prune="cam")).n_samples == 2


def test_columns_that_seldom_vary_vary_in_every_sample(rng):
    X = rng.standard_normal((30, 3))
    X[:, 0] = np.arange(30) == 3
    table = Rows(X, NAMES[:3], whole=False)
    assert all(table.draw("resample", rng).variances()[0] > 0 for _ in range(50))
    X[:, 0] = 1.0
    with pytest.raises(ValueError, match=r"column\(s\) 'a' hardly vary"):
        table.draw("resample", rng)


def test_more_samples_begin_with_the_same(X):
    few, many = run(X, 3), run(X, 6)
    few.samples.extend(many.samples[3:])
    assert same(few, many)


@pytest.mark.parametrize("random_state", [np.random.default_rng(5), np.random.RandomState(5), None])
def test_any_random_state(X, random_state):
    assert run(X, 2, random_state=random_state).n_samples == 2


# --- blocks and moments ---------------------------------------------------------------------------------------


def long_table(rng, n=21_000):
    Z = rng.standard_normal((n, 3))
    # the third is nearly the sum of the others
    return np.column_stack([Z[:, 0] + 3, Z[:, 0] + Z[:, 1], 2 * Z[:, 0] + Z[:, 1] + 1e-5 * Z[:, 2]]) * [1.0, 1e3, 1e-3]


def test_blocks_hold_the_table(rng):
    X = long_table(rng)
    moments = Moments.of(X, NAMES[:3])
    assert moments.mean == pytest.approx(X.mean(axis=0))
    assert moments.covariance == pytest.approx(np.cov(X.T, bias=True))
    blocks = Blocks.of(X, moments, rng)
    assert blocks.sizes.sum() == len(X)
    assert np.ptp(blocks.sizes) <= 1
    assert len(blocks.sizes) == 1000
    _, scatter = blocks._pooled(np.ones(len(blocks.sizes), np.int64))
    Y = scatter / len(X)
    assert pytest.approx(np.eye(3), abs=1e-6) == Y


def test_blocks_do_not_depend_on_threads(rng):
    X = rng.standard_normal((120_000, 2))
    moments = Moments.of(X, NAMES[:2])
    one, two = (Blocks.of(X, moments, np.random.default_rng(1), jobs) for jobs in (1, 2))
    assert np.array_equal(one.scatters, two.scatters)
    assert np.array_equal(moments.factor, Moments.of(X, NAMES[:2], n_jobs=2).factor)


def test_samples_of_blocks_vary_as_samples_of_rows(rng):
    """Means and covariances of 600 draws have the variances of statistics of n rows, up to a tenth."""
    X = long_table(rng)
    blocks = Blocks.of(X, Moments.of(X, NAMES[:3]), rng)
    draws = [blocks.draw("resample", rng) for _ in range(600)]
    deviation = np.std([draw.mean for draw in draws], axis=0)
    assert deviation == pytest.approx(X.std(axis=0) / np.sqrt(len(X)), rel=0.15)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    products = (Z[:, :, None] * Z[:, None]).std(axis=0) / np.sqrt(len(X))
    spread = np.std([draw.covariance / np.outer(X.std(axis=0), X.std(axis=0)) for draw in draws], axis=0)
    assert spread == pytest.approx(products, rel=0.2)


def test_samples_of_blocks_keep_digits(rng):
    """What is left of the third column given the others is 1e-10 of its variance, and known to a few percent."""
    X = long_table(rng)
    blocks = Blocks.of(X, Moments.of(X, NAMES[:3]), rng)
    for method, rows in (("resample", 21_000), ("subsample", 10_500)):
        draw = blocks.draw(method, rng)
        assert draw.n == pytest.approx(rows, rel=0.01)
        rest = np.linalg.qr(draw.factor / np.sqrt(draw.n), mode="r")[2, 2]
        assert abs(rest) == pytest.approx(1e-8, rel=0.05)


def test_long_tables_are_drawn_in_blocks(rng):
    X = long_table(rng)
    result = run(X, 3, names=None)
    assert result.drawn == "blocks of rows"
    assert run(X[:2000], 2, names=None).drawn == "rows"
    assert run(X, 1, names=None, model=ALIAS(prune=lambda X, A: A)).drawn == "rows"
    assert not Blocks.worth(10**7, 1000)


def test_what_misleads_is_said_once(X, monkeypatch):
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(DataWarning, match="^Duplicated columns: 'x0' = 'x5'") as caught:
        run(twice, 3, names=None)
    assert len(caught) == 1
    monkeypatch.setattr(module, "LOOKED_AT", 50)
    with pytest.warns(DataWarning, match="^In one row of 3: Duplicated columns"):
        run(twice, 1, names=None)


def test_the_parametric_bootstrap_draws_wishart_matrices(rng):
    X = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 3)) + 4
    table = Gaussian(Moments.of(X, NAMES[:3]), NAMES[:3])
    draws = [table.draw("parametric", rng) for _ in range(4000)]
    S, scatters = np.cov(X.T, bias=True), np.array([draw.n * draw.covariance for draw in draws])
    # of a Wishart matrix with 11 degrees of freedom and scale S
    assert scatters.mean(axis=0) == pytest.approx(11 * S, rel=0.1, abs=0.1)
    variance = 11 * (S**2 + np.outer(np.diagonal(S), np.diagonal(S)))
    assert scatters.var(axis=0) == pytest.approx(variance, rel=0.2)
    means = np.array([draw.mean for draw in draws])
    assert np.cov(means.T) == pytest.approx(S / 12, rel=0.15, abs=0.01)
    few = Gaussian(Moments.of(X[:3], NAMES[:3]), NAMES[:3]).draw("parametric", rng)
    assert np.linalg.matrix_rank(few.factor) == 2


def test_moments_are_for_the_parametric_bootstrap(X):
    result = run(Moments.of(X), 4, method="parametric")
    assert result.names == NAMES
    assert same(result, run(X, 4, method="parametric"))
    with pytest.raises(ValueError, match="method='resample' needs the rows of the table, X is Moments"):
        run(Moments.of(X), 4)
    with pytest.raises(ValueError, match="is for linear regression"):
        run(X, 4, method="parametric", model=ALIAS(regression="gp"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1, got 0"),
        ({"method": "jackknife"}, "method='jackknife' is unknown"),
        ({"model": ALIAS(criterion=lambda A: 0.0)}, "cannot be fitted to samples"),
        ({"model": 3}, "model must be an estimator"),
        ({"time_budget": -1}, "time_budget must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"checkpoint": 3}, "checkpoint must be a path"),
        ({"model": ALIAS(algorithm="magic")}, "the fit to sample 0 failed"),
    ],
)
def test_bad_settings(X, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(X, **settings)


# --- whoever does the work ------------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch):
    """Other processes are always worth starting."""
    monkeypatch.setattr(module, "_worth", lambda fastest, left, wanted: True)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing", "sequential"])
def test_every_backend_gives_the_same(X, backend):
    expected = run(X, 5)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert same(run(X, 5, n_jobs=None), expected)


@pytest.mark.usefixtures("eager")
def test_processes_give_the_same(X):
    assert same(run(X, 6, n_jobs=2), run(X, 6))


class Fragile:
    """A pruning of which one call, the first to see the mark, takes the process with it."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, X, A):
        if self.mark.exists():
            self.mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return A


@pytest.mark.usefixtures("eager")
def test_a_lost_process_costs_time_and_no_result(X, tmp_path):
    model = ALIAS(prune=Fragile(tmp_path / "mark"))
    expected = run(X, 6, model=model)
    (tmp_path / "mark").touch()
    assert same(run(X, 6, model=model, n_jobs=2), expected)
    assert not (tmp_path / "mark").exists()


# --- however it ends ------------------------------------------------------------------------------------------


def interrupting(monkeypatch, after):
    """Fits of which the one after so many is interrupted."""
    fits, fit = [], ALIAS.fit

    def counted(self, *arguments, **settings):
        fits.append(1)
        if len(fits) > after:
            raise KeyboardInterrupt
        return fit(self, *arguments, **settings)

    monkeypatch.setattr(ALIAS, "fit", counted)


def test_an_interrupt_returns_what_is_finished(X, monkeypatch):
    whole = run(X, 5)
    interrupting(monkeypatch, after=3)
    result = run(X, 5)
    assert result.stopped == "interrupted"
    assert "interrupted before all 5" in result.summary()
    whole.samples[3:] = []
    assert same(result, whole)


def test_an_interrupt_before_the_first_sample(X, monkeypatch):
    interrupting(monkeypatch, after=0)
    with pytest.raises(KeyboardInterrupt, match="before a first sample"):
        run(X, 5)


def test_time_ends_with_what_there_is(X):
    result = run(X, 100_000, time_budget=1.0)
    assert result.stopped == "time"
    assert 0 < result.n_samples < 100_000
    assert f"{result.n_samples} samples" in result.summary()
    assert "the time was over before all 100000" in result.summary()
    assert same(result, run(X, result.n_samples))


def test_no_time_at_all(X):
    with pytest.raises(ValueError, match=r"time_budget=1e-09 seconds were over before the first sample"):
        run(X, 5, time_budget=1e-9)


def test_a_sample_that_was_hurried_does_not_count(X, monkeypatch):
    """The second fit says that its time was over."""
    fits, fit = [], ALIAS.fit

    def hurried(self, *arguments, **settings):
        fits.append(self.time_budget)
        fitted = fit(self, *arguments, **settings)
        if len(fits) == 2:
            fitted.search_ = type("Found", (), {"stopped": "time"})
        return fitted

    monkeypatch.setattr(ALIAS, "fit", hurried)
    result = run(X, 5, time_budget=1000.0)
    assert result.n_samples == 1
    assert 900 < fits[0] <= 1000
    fits.clear()
    # the model's own budget is a setting like any other: such fits count
    assert run(X, 5, model=ALIAS(time_budget=500.0), time_budget=1000.0).n_samples == 5
    assert fits[0] == 500


# --- checkpoints ----------------------------------------------------------------------------------------------


def test_a_run_goes_on_from_its_checkpoint(X, tmp_path, monkeypatch):
    file, expected = tmp_path / "samples", run(X, 6)
    with monkeypatch.context() as patch:
        interrupting(patch, after=3)
        run(X, 6, checkpoint=file)
    assert same(run(X, 6, checkpoint=file), expected)
    interrupting(monkeypatch, after=0)
    assert same(run(X, 6, checkpoint=file), expected), "nothing is fitted again"
    assert same(run(X, 2, checkpoint=file), run_of(expected, 2))


def run_of(result, count):
    return Bootstrap(**(vars_of(result) | {"samples": result.samples[:count]}))


def vars_of(result):
    return {name: getattr(result, name) for name in result.__dataclass_fields__}


def test_a_checkpoint_cut_anywhere_is_as_good_as_its_whole_lines(X, tmp_path, rng):
    file, expected = tmp_path / "samples", run(X, 5, checkpoint=tmp_path / "samples")
    content = file.read_bytes()
    for cut in rng.integers(content.index(b"\n") + 1, len(content), 8):
        file.write_bytes(content[:cut])
        assert same(run(X, 5, checkpoint=file), expected)
    lines = content.splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], *lines[:0:-1], *lines[1:]]))
    assert same(run(X, 5, checkpoint=file), expected), "neither order nor repetition matters"
    file.write_bytes(content.replace(b'"weights": [', b'"weights": [1', 1))
    assert same(run(X, 5, checkpoint=file), expected), "a damaged line does not count"


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"random_state": 4}, "random_state"),
        ({"method": "subsample"}, "method"),
        ({"model": ALIAS("bic-nv")}, "model"),
        ({"model": ALIAS(knowledge=Knowledge(required=[("a", "b")]))}, "model"),
        ({"names": tuple("vwxyz")}, "table"),
        ({"scale": 2.0}, "table"),
    ],
)
def test_the_checkpoint_of_something_else_is_refused(X, tmp_path, other, what):
    file = tmp_path / "samples"
    run(X, 1, checkpoint=file)
    content = file.read_bytes()
    with pytest.raises(ValueError, match=rf"samples is the checkpoint of another bootstrap \(different: {what}\)"):
        run(X * other.pop("scale", 1.0), 1, checkpoint=file, **other)
    assert file.read_bytes() == content


def test_what_is_no_checkpoint_is_refused(X, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"table.csv is not a checkpoint of a bootstrap"):
        run(X, 1, checkpoint=file)
    with pytest.raises(OSError, match="the checkpoint"):
        run(X, 1, checkpoint=tmp_path)
    assert file.read_text() == "a,b\n1,2\n"


def test_without_a_seed_the_one_of_the_file_is_taken(X, tmp_path):
    file = tmp_path / "samples"
    first = run(X, 3, random_state=None, checkpoint=file)
    assert same(run(X, 3, random_state=None, checkpoint=file), first)
    run(X, 5, random_state=None, checkpoint=file)
    with pytest.raises(ValueError, match="random_state"):
        run(X, 5, random_state=1, checkpoint=file)


def test_the_seed_of_the_file_deals_the_rows(rng, tmp_path):
    X, file = long_table(rng), tmp_path / "samples"
    first = run(X, 2, names=None, random_state=None, checkpoint=file)
    again = run(X, 2, names=None, random_state=None, checkpoint=file)
    assert same(first, again)


def test_a_disk_that_is_full_is_no_reason_to_stop(X, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vec2dag.confidence.journal.os.write", full)
    journal = importlib.import_module("vec2dag.confidence.journal")
    monkeypatch.setattr(journal, "write_atomically", lambda file, content: file.write_bytes(content))
    with pytest.warns(UserWarning, match="could not be written: No space left on device"):
        assert run(X, 3, checkpoint=tmp_path / "samples").n_samples == 3


KILLED = """
import sys
import joblib
import numpy as np
from vec2dag import ALIAS
from vec2dag.confidence import bootstrap
# Asked for, processes start at once: the samples are too small to be worth them.
with joblib.parallel_config(backend=sys.argv[3], n_jobs=2):
    bootstrap(ALIAS(), np.load(sys.argv[1]), 12, random_state=3, checkpoint=sys.argv[2])
"""


def kill_when(X, folder, samples, backend):
    """Start a bootstrap and kill it when the file has so many samples, or shortly after."""
    file = folder / "samples"
    np.save(folder / "X.npy", X)
    command = [sys.executable, "-c", KILLED, str(folder / "X.npy"), str(file), backend]
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < 2 * samples):
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    process.wait()
    return file


@pytest.mark.parametrize(
    "samples", [2, 7, *(pytest.param(k % 12, marks=pytest.mark.slow) for k in range(18))], ids=lambda k: None
)
def test_killed_and_started_again(X, tmp_path, samples):
    file = kill_when(X, tmp_path, samples, ("sequential", "loky")[samples % 2])
    assert same(run(X, 12, names=None, checkpoint=file), run(X, 12, names=None))


# --- files and the command line -------------------------------------------------------------------------------


def test_what_is_saved(X, tmp_path):
    result = run(X, 10, method="subsample")
    files = result.save(tmp_path / "out", data="table.csv")
    assert {str(f.relative_to(tmp_path / "out")) for f in files} >= {"bootstrap.csv", "bootstrap.json"}
    A, names = read_graph(tmp_path / "out" / "consensus" / "graph.json")
    assert names == NAMES
    assert np.array_equal(A, result.consensus())
    C, _ = read_graph(tmp_path / "out" / "consensus" / "cpdag.csv")
    assert np.array_equal(C & C.T, result.doubtful(A))
    with open(tmp_path / "out" / "bootstrap.csv", newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["source"] for row in rows] == result.edges()["source"]
    assert [float(row["adjacent"]) for row in rows] == result.edges()["adjacent"]
    about = json.loads((tmp_path / "out" / "bootstrap.json").read_text())
    assert about["data"] == "table.csv"
    assert about["samples"] == 10
    assert about["parameters"]["criterion"] == "auto"
    assert about["stability"]["candidates"] == 10


@pytest.fixture
def table(X, tmp_path):
    np.savetxt(tmp_path / "table.csv", X, delimiter=",", header=",".join(NAMES), comments="")
    return tmp_path / "table.csv"


def test_the_command_line(X, table, tmp_path, capsys):
    options = ["--samples", "6", "--seed", "3", "--require", "a -> b", "--checkpoint", str(tmp_path / "samples")]
    assert main(["bootstrap", str(table), "-o", str(tmp_path / "out"), "--jobs", "1", *options]) == 0
    printed = capsys.readouterr().out
    assert "forward" in printed
    assert "6 samples (resample, of rows), 120 rows, 5 columns" in printed
    expected = run(X, 6, model=ALIAS(knowledge=Knowledge(required=["a -> b"])))
    assert expected.directed[0, 1] == 1
    A, _ = read_graph(tmp_path / "out" / "consensus" / "adjacency.csv")
    assert np.array_equal(A, expected.consensus())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--samples", "0"], "--samples must be"),
        (["--method", "all"], "--method all is unknown"),
        (["--threshold", "2"], "--threshold must be above 0 and at most 1"),
        (["--gp-alpha", "1"], "--gp-alpha is a setting of --regression gp"),
        (["--time-budget", "0"], "--time-budget must be"),
    ],
)
def test_bad_options(table, tmp_path, capsys, options, sentence):
    assert main(["bootstrap", str(table), "-o", str(tmp_path / "out"), *options]) == 2
    assert sentence in capsys.readouterr().err


def test_time_series_are_told_about(table, tmp_path, capsys):
    assert main(["bootstrap", str(table), "-o", str(tmp_path / "out"), "--samples", "2", "--lags", "1", "-q"]) == 0
    assert "rows of a time series" in capsys.readouterr().err


def test_a_cluster_needs_its_extra(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    arguments = ["bootstrap", str(table), "-o", str(tmp_path / "out"), "--scheduler", "localhost:1"]
    assert main(arguments) == 2
    assert 'pip install "vec2dag[cluster]"' in capsys.readouterr().err


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_cluster_gives_the_same(X, cluster, table, tmp_path):
    options = ["--samples", "8", "--seed", "3", "--scheduler", cluster.scheduler_address, "-q"]
    assert main(["bootstrap", str(table), "-o", str(tmp_path / "there"), *options]) == 0
    assert main(["bootstrap", str(table), "-o", str(tmp_path / "here"), *options[:4], "-q"]) == 0
    for name in ("bootstrap.csv", "consensus/graph.json"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_time_and_no_result(cluster):
    from distributed import Client

    table = simulate.linear_gaussian(d=40, k=2, n=1000, rng=np.random.default_rng(0)).X
    expected = run(table, 24, names=None)
    with Client(cluster) as client, joblib.parallel_config(backend="dask"):
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
        timer.start()
        found = run(table, 24, names=None, n_jobs=None)
        assert victim not in client.run(os.getpid).values()
    assert same(found, expected)
