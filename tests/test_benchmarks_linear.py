"""The benchmarks of linear graphs: judgements by hand, runs that go on, methods that are not there, slopes."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from vec2dag import simulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.importorskip(
    "experiments", reason="the benchmarks are beside the package in a checkout, not in a source archive"
)
from benchmarks import growth, linear
from benchmarks.compare import bic_by_qr
from experiments.methods import METHODS
from experiments.process import Outcome


def small(seed=0):
    sample = simulate.linear_gaussian(d=6, k=1, n=200, rng=np.random.default_rng(seed))
    return sample.X, sample.A


def case(*entries, **settings):
    return linear.Case("small", small, entries or (linear.OURS,), **settings)


def bench(**settings):
    return linear.Bench(Path(sys.executable), (), 60.0, 1, **settings)


@pytest.fixture
def answers(monkeypatch):
    """Processes that answer at once with the truth; what they were asked for."""
    asked = []

    def execute(method, settings, seed, X, **limits):
        asked.append((method, settings, seed))
        if method == "flop" and settings["restarts"] == 7:
            return Outcome("failed", said="ModuleNotFoundError: No module named 'flopsearch'")
        return Outcome("ok", {"A": small(seed)[1]}, {"seconds": 0.5, "cpu_seconds": 0.25})

    monkeypatch.setattr(linear, "execute", execute)
    return asked


@pytest.mark.parametrize("price", [1.0, 2.0])
def test_scores_are_bic_with_every_price(price):
    X, truth = small()
    record = linear.judge(X + 3.0, truth, truth, price)
    n, edges = len(X), int(truth.sum())
    assert record["score"] == pytest.approx(bic_by_qr(X, truth) * X.size - (price - 1) * edges * np.log(n), rel=1e-9)
    assert record["score"] == record["score_truth"]
    assert (record["cpdag_shd"], record["edges"]) == (0, edges)


def test_classes_are_scored_by_a_member_and_cycles_are_refused(rng):
    X = rng.standard_normal((100, 3))
    chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.uint8)
    assert linear.judge(X, None, chain, 1.0)["edges"] == 2
    assert "problem" in linear.judge(X, None, np.roll(np.eye(3, dtype=np.uint8), 1, axis=1), 1.0)


def test_every_entry_names_a_method_and_prices_are_the_same():
    for source in (linear.simulated, linear.real):
        for quick in (True, False):
            assert all(entry.method in METHODS for case in source(quick) for entry in case.entries)
    assert linear._flop(10).settings(2.0)["lambda_bic"] == 2.0
    assert linear.OURS.settings(2.0) == {"bic": {"discount": 2.0}}
    assert all(entry.settings(2.0) == {"lambda_value": 1.0} for entry in linear.CAUSAL_LEARN)


def test_what_is_known_is_not_run_again(answers, tmp_path):
    first = bench()
    assert len(list(first.run(case(sets=2)))) == len(answers) == 2
    file = tmp_path / "linear.json"
    file.write_text(json.dumps({"real": {"records": first.records}}))
    assert linear.load(file, "simulated") == []
    assert list(bench(records=linear.load(file, "real")).run(case(sets=2))) == []
    # Of another version of the code: measured anew. Of others: kept.
    first.records[0]["code"] = "other"
    file.write_text(json.dumps({"real": {"records": [*first.records, {"method": "GES"}]}}))
    assert len(linear.load(file, "real")) == 2


def test_a_budget_is_the_time_of_the_method_named(answers):
    done = bench()
    assert len(list(done.run(case(linear.IN_TIME, sets=1)))) == 0
    assert len(list(done.run(case(linear._flop(100), linear.IN_TIME, sets=1)))) == 2
    assert answers[-1][1] == {"bic": {"discount": 1.0}, "time_budget": 0.5}


def test_methods_that_are_not_installed_are_left_out_and_slow_ones_run_less(answers, capsys):
    done = bench()
    records = list(done.run(case(linear._flop(7), *linear.CAUSAL_LEARN, sets=3)))
    assert [record["method"] for record in records] == ["BOSS", "GRaSP", "GES"]
    assert [method for method, *_ in answers].count("flop") == 1
    assert "FLOP, 7 restarts: not installed" in capsys.readouterr().err


def test_the_table_counts_what_is_missing_to_the_best():
    shown = case(linear.OURS, linear._flop(10), linear.DEFAULT)
    common = {"data": "small", "price": 1.0, "seconds": 1.0, "score_truth": 0.0, "edges": 3, "cpdag_shd": 1}
    scores = {"vec2dag": (10.0, 21.0), "FLOP, 10 restarts": (12.0, 20.0), "vec2dag, ebic-nv": (99.0, 99.0)}
    records = [common | {"method": m, "seed": s, "score": x} for m, two in scores.items() for s, x in enumerate(two)]
    ours, flop, default, truth = linear.table("", [shown], records, ()).rows
    assert ours[4:7] == ["1.00", "2.00", "1 of 2"]
    assert flop[4:7] == ["0.50", "1.00", "1 of 2"]
    assert default[3:7] == ["-", "-", "-", "- of 2"]
    assert truth[4:8] == ["16.50", "21.00", "0 of 2", "0.0"]


def test_slopes_are_exponents():
    assert growth.slope({size: 3.0 * size**2.5 for size in (10, 100, 1000)}) == pytest.approx(2.5)
    assert np.isnan(growth.slope({10: 1.0}))


def test_larger_sizes_are_left_out_after_a_problem_and_long_points_have_one_set():
    def record(size, seed=0, seconds=1.0, **more):
        return {"series": "nodes", "method": "FLOP", "size": size, "seed": seed, "seconds": seconds, **more}

    def left(records):
        return [(p.size, p.seed) for p in growth.missing("nodes", {"FLOP": (10, 30)}, records, 2)]

    assert left([]) == [(10, 0), (10, 1), (30, 0), (30, 1)]
    assert left([record(10)]) == [(10, 1), (30, 0), (30, 1)]
    assert left([record(10, seconds=20.0), record(30)]) == [(30, 1)]
    assert left([record(10, problem="over 120 s")]) == []


def test_statistics_of_chunks_are_those_of_the_table(monkeypatch):
    monkeypatch.setattr(growth, "CHUNK", 40)
    parts = list(growth.chunks(100, 0))
    assert [len(part) for part in parts] == [40, 40, 20]
    fitted = []
    monkeypatch.setattr(growth, "fit", fitted.append)
    growth.stream(100, 0)
    assert fitted[0].n == 100
    assert np.allclose(fitted[0].covariance, np.cov(np.concatenate(parts).T, bias=True))
