"""The posterior of DAGs: against enumeration, move by move and as a whole; knowledge, diagnostics, files, endings."""

import csv
import json
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from oracles import acyclic, all_dags, sine

from vec2dag import ALIAS, Knowledge, Score, _sampling, simulate
from vec2dag.confidence import posterior
from vec2dag.confidence.posterior import Posterior, _Chains, _effective_size, _split_r_hat
from vec2dag.graph import reachable
from vec2dag.scores import BGe
from vec2dag.search import Budget

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.importorskip("benchmarks", reason="the benchmarks are beside the package in a checkout, not in a source archive")
from benchmarks import posterior as benchmark

KNOWN = {
    "nothing": None,
    "required": Knowledge(required=[("x0", "x2"), ("x2", "x3")], forbidden=[("x1", "x0")]),
    "limits": Knowledge(max_parents=1),
    "tiers": Knowledge(tiers=[["x3"], ["x0", "x1", "x2"]], max_parents={"x1": 2}),
}


def table(seed, n=60, d=4):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(d, d)), 1) * (rng.random((d, d)) < 0.6)
    order = rng.permutation(d)
    return (rng.standard_normal((n, d)) @ np.linalg.inv(np.eye(d) - W))[:, order]


def bge(X, **settings):
    criterion = BGe(**settings)
    return Score(X, criterion.regression(), criterion)


@lru_cache
def dags(d):
    """Every DAG of d nodes: the orientations of pairs, of which no power of the matrix has a trace."""
    pairs = np.array([(i, j) for i in range(d) for j in range(i)])
    states = np.array(np.meshgrid(*[[0, 1, 2]] * len(pairs), indexing="ij")).reshape(len(pairs), -1).T
    A = np.zeros((len(states), d, d), np.float32)
    A[:, pairs[:, 0], pairs[:, 1]], A[:, pairs[:, 1], pairs[:, 0]] = states == 1, states == 2
    power = A.copy()
    for _ in range(d - 1):
        power = np.minimum(power @ A, 1)
    return A[~power.any(axis=(1, 2))].astype(np.uint8)


def test_the_enumeration_has_every_dag():
    assert [len(dags(d)) for d in (2, 3, 4, 5)] == [3, 25, 543, 29281]
    assert {A.tobytes() for A in dags(4)} == {A.tobytes() for A in all_dags(4)}


def enumerated(score):
    """All permitted DAGs and their posterior probabilities."""
    graphs = dags(score.d)
    known = score.constraints
    graphs = graphs[
        (graphs >= known.required).all(axis=(1, 2))
        & (graphs <= known.allowed).all(axis=(1, 2))
        & (graphs.sum(axis=1) <= known.max_parents).all(axis=1)
    ]
    logs = 0.5 * score.n * score.d * score(graphs)
    weights = np.exp(logs - logs.max())
    return graphs, weights / weights.sum()


def tables_of(score):
    chains = _Chains(score, 1, [np.random.default_rng(0)])
    chains.start(score.d, 1, Budget())
    return chains.tables


def levels(A):
    level = np.empty(len(A), np.int64)
    return _sampling.levels_of(A, level), level


def outliers(found, score):
    """How many of the probabilities are three Monte Carlo errors away from those of the enumeration, and of how many.

    Probabilities of which less than one case is to be expected have no normal distribution: they are to be small.
    """
    graphs, weights = enumerated(score)
    exact = np.clip(np.einsum("k,kij->ij", weights, graphs.astype(float)), 0.0, 1.0)
    d = score.d
    cells = ~np.eye(d, dtype=bool)
    rare = cells & (np.minimum(exact, 1 - exact) * found.edge_ess < 5)
    assert np.abs(found.edge_probabilities - exact)[rare].max(initial=0) < 20 / found.ess
    error = np.sqrt(exact * (1 - exact) / found.edge_ess)
    far = np.abs(found.edge_probabilities - exact)[cells & ~rare] > 3 * error[cells & ~rare]
    return int(far.sum()), int(cells.sum())


@pytest.mark.parametrize("d", [4, 5])
def test_edge_probabilities_are_those_of_all_dags_enumerated(d):
    far = cells = 0
    for seed in range(10):
        score = Score(table(seed, d=d)) if seed % 2 else bge(table(seed, d=d))
        found = posterior(score, rng=np.random.default_rng(seed), n_samples=1600)
        assert found.r_hat < 1.05
        more, of = outliers(found, score)
        far, cells = far + more, cells + of
    assert cells == 10 * d * (d - 1)
    assert far <= 3


@pytest.mark.parametrize("known", list(KNOWN)[1:])
@pytest.mark.parametrize("make", [Score, bge], ids=["bic", "bge"])
def test_what_is_known_holds_in_every_sample_and_the_rest_is_as_enumerated(known, make):
    score = make(table(3))
    found = posterior(score, knowledge=KNOWN[known], rng=np.random.default_rng(0), n_samples=2000)
    score = score.under(KNOWN[known])
    assert all(score.constraints.permits(A) for A in np.unique(found.samples, axis=0))
    assert outliers(found, score)[0] <= 1


@pytest.mark.parametrize("known", KNOWN)
def test_a_node_is_relocated_by_the_exact_conditional_distribution(known):
    score = Score(table(1, n=15)).under(KNOWN[known])
    tables, space = tables_of(score), (*(np.empty(5) for _ in range(5)), np.empty(9))
    graphs, weights = enumerated(score)
    mass = {}
    for A, weight in zip(graphs, weights, strict=True):
        key = tuple(levels(A)[1])
        mass[key] = mass.get(key, 0.0) + weight
    grid = (np.arange(500) + 0.5) / 500
    rng = np.random.default_rng(0)
    for key in [list(mass)[k] for k in rng.integers(len(mass), size=8)]:
        for v in range(4):
            reached = {}
            for u in grid:
                level = np.array(key)
                count = _sampling.relocate(v, u, level, max(key) + 1, tables, space)
                assert count == level.max() + 1
                reached[tuple(level)] = reached.get(tuple(level), 0.0) + 1 / len(grid)
            others = [i for i in range(4) if i != v]
            same = lambda other, key=key, others=others: (  # noqa: E731
                np.unique([other[i] for i in others], return_inverse=True)[1].tolist()
                == np.unique([key[i] for i in others], return_inverse=True)[1].tolist()
            )
            total = sum(weight for other, weight in mass.items() if same(other))
            assert set(reached) <= {other for other in mass if same(other)}
            for other, weight in mass.items():
                if same(other):
                    assert reached.get(other, 0.0) == pytest.approx(weight / total, abs=1 / len(grid) + 1e-9)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("move", ["levels", "pairs"])
def test_each_kind_of_move_alone_leaves_the_posterior_as_it_is(known, move):
    score = Score(table(2, n=12)).under(KNOWN[known])
    tables, rng = tables_of(score), np.random.default_rng(5)
    graphs, weights = enumerated(score)
    before = graphs[rng.choice(len(graphs), 10_000, p=weights)]
    after, marks, stack = before.copy(), np.empty((2, 4), np.uint8), np.empty(4, np.int64)
    for A in after:
        if move == "levels":
            _sampling.draw_graph(levels(A)[1], rng.random(4), tables, A)
        else:
            i, j = rng.choice(4, 2, replace=False)
            _sampling.redraw_pair(i, j, rng.random(3), tables, A, marks, stack)
    assert (after != before).any(axis=(1, 2)).mean() > 0.05
    place = {A.tobytes(): k for k, A in enumerate(graphs)}
    counts = np.bincount([place[A.tobytes()] for A in after], minlength=len(graphs))
    expected = weights * len(after)
    common = expected > 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    freedom = common.sum()
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_paths_blankets_and_the_best_dag_are_those_of_the_samples():
    score = Score(table(0, d=5))
    found = posterior(score, rng=np.random.default_rng(1), n_samples=300)
    paths = np.mean([reachable(A) for A in found.samples], axis=0)
    assert np.allclose(found.path_probabilities, paths)

    def blanket(A):
        return [[i != j and bool(A[i, j] or A[j, i] or (A[i] & A[j]).any()) for j in range(5)] for i in range(5)]

    assert np.allclose(found.markov_blanket_probabilities, np.mean([blanket(A) for A in found.samples], axis=0))
    assert all(acyclic(A) for A in found.samples)
    assert np.allclose(found.scores, score(found.samples))
    assert np.allclose(found.log_scores, 0.5 * score.n * score.d * found.scores)
    assert float(score(found.best)) == pytest.approx(found.scores.max())


def test_the_same_for_any_number_of_threads_and_another_seed_is_another_sample():
    score = Score(table(4, d=6))
    first, second = (posterior(score, rng=np.random.default_rng(7), n_samples=400, n_jobs=n) for n in (1, 3))
    assert np.array_equal(first.samples, second.samples)
    other = posterior(score, rng=np.random.default_rng(8), n_samples=400)
    assert not np.array_equal(first.samples, other.samples)


def test_candidates_that_are_fewer_than_all_hold_what_matters():
    data = simulate.linear_gaussian(d=9, k=1, n=300, rng=np.random.default_rng(2)).standardise()
    score, others = Score(data.X, "linear", "ebic-nv"), ~np.eye(9, dtype=bool)
    whole = posterior(score, rng=np.random.default_rng(0), n_samples=2000)
    assert whole.candidates.all()
    assert not whole.beyond.any()
    few = posterior(score, rng=np.random.default_rng(0), n_samples=2000, candidates=6)
    assert (few.candidates & others).sum() == 9 * 6
    assert not few.edge_probabilities[~few.candidates].any()
    assert not few.beyond[few.candidates].any()
    # What is beyond is about what the whole has there, and the rest is about the same.
    missing = whole.edge_probabilities[~few.candidates].sum()
    assert 0.3 * missing < few.beyond.sum() < 3 * missing
    assert missing < 0.08 * whole.edge_probabilities.sum()
    assert np.abs(whole.edge_probabilities - few.edge_probabilities).max() < 0.15
    with pytest.warns(UserWarning, match="edges more on average"):
        posterior(Score(data.X, "linear", "ls"), rng=np.random.default_rng(0), n_samples=2000, candidates=1)


def test_regressions_that_are_not_linear_have_a_posterior_too():
    score = Score(sine(60, 3), "gp")
    found = posterior(score, rng=np.random.default_rng(0), n_samples=800)
    assert outliers(found, score)[0] <= 1
    assert score.local.fits <= 12


def test_a_fitted_model_brings_its_score_and_what_it_knows():
    X = table(6)
    model = ALIAS("bic-nv", knowledge={"required": [["a", "b"]]}, random_state=0).fit(X, names=list("abcd"))
    found = posterior(model, rng=np.random.default_rng(0), n_samples=200)
    assert found.names == ("a", "b", "c", "d")
    assert found.edge_probabilities[0, 1] == 1
    assert found.criterion == "bic-nv"
    own = ALIAS(Score(X), random_state=0).fit(X)
    assert posterior(own, rng=np.random.default_rng(0), n_samples=200).criterion == "bic-nv"


def test_r_hat_and_effective_sample_size_of_known_series():
    rng = np.random.default_rng(0)
    independent = rng.standard_normal((4, 2000, 1))
    assert _split_r_hat(independent)[0] == pytest.approx(1.0, abs=0.005)
    assert _effective_size(independent)[0] == pytest.approx(8000, rel=0.15)
    rho, correlated = 0.8, np.zeros((4, 4000, 1))
    noise = rng.standard_normal(correlated.shape)
    for t in range(1, correlated.shape[1]):
        correlated[:, t] = rho * correlated[:, t - 1] + noise[:, t]
    # An autoregression has (1 - rho) / (1 + rho) independent values a sample.
    assert _effective_size(correlated)[0] == pytest.approx(16_000 * (1 - rho) / (1 + rho), rel=0.2)
    apart = independent + 3.0 * np.arange(4)[:, None, None]
    assert _split_r_hat(apart)[0] > 2
    assert _effective_size(apart)[0] < 20
    constant = np.ones((4, 100, 1))
    assert _split_r_hat(constant)[0] == 1
    assert _effective_size(constant)[0] == 400
    assert _split_r_hat(constant + np.arange(4)[:, None, None])[0] == np.inf


@pytest.mark.filterwarnings("ignore:the ")
def test_doubts_are_told():
    score = Score(table(0))
    with pytest.warns(UserWarning, match="worth .* independent ones"):
        posterior(score, rng=np.random.default_rng(0), n_samples=40)
    halves = np.zeros((400, 2, 2), np.uint8)
    halves[200:, 0, 1] = 1
    stuck = Posterior(
        samples=halves, log_scores=np.zeros(400), scores=np.zeros(400), chains=4, names=("a", "b"),
        candidates=np.ones((2, 2), bool), beyond=np.zeros((2, 2)), criterion="bge", burn_in=0, thin=1,
        stopped="samples", seconds=0.0,
    )  # fmt: skip
    assert any("R-hat is inf" in sentence for sentence in stuck.doubts())


def test_files_hold_what_the_object_says(tmp_path):
    names = ["=SUM(A1)", "b,c", "über", "d"]
    found = posterior(Score(table(5), names=names), rng=np.random.default_rng(0), n_samples=400)
    written = {file.name for file in found.save(tmp_path / "out")}
    assert written == {
        "edges.csv", "edge_probabilities.csv", "path_probabilities.csv", "markov_blanket_probabilities.csv",
        "samples.npz", "posterior.json",
    }  # fmt: skip
    with np.load(tmp_path / "out" / "samples.npz", allow_pickle=False) as stored:
        assert np.array_equal(stored["samples"], found.samples)
        assert np.array_equal(stored["log_scores"], found.log_scores)
        assert stored["names"].tolist() == names
        assert np.bincount(stored["chain"]).tolist() == [100] * 4
    rows = list(csv.reader((tmp_path / "out" / "path_probabilities.csv").open(encoding="utf-8")))
    assert rows[0][2:] == names[1:]
    assert np.allclose(np.array([row[1:] for row in rows[1:]], float), found.path_probabilities, atol=1e-6)
    found.to_csv(tmp_path / "edges.csv")
    lines = list(csv.DictReader((tmp_path / "edges.csv").open(encoding="utf-8")))
    assert len(lines) == 12
    shares = [float(line["probability"]) for line in lines]
    assert shares == sorted(shares, reverse=True)
    first = found.edges(least=0.3)
    assert first["probability"] == [p for p in found.edges()["probability"] if p >= 0.3]
    i, j = names.index(first["source"][0]), names.index(first["target"][0])
    assert first["probability"][0] == found.edge_probabilities[i, j]
    assert first["reverse"][0] == found.edge_probabilities[j, i]
    about = json.loads((tmp_path / "out" / "posterior.json").read_text())
    assert about["samples"] == 400
    assert about["r_hat"] == pytest.approx(found.r_hat)


@pytest.mark.filterwarnings("ignore:the ")
def test_time_callback_and_interrupt_leave_what_there_is():
    score = Score(table(0, d=6))
    with pytest.warns(UserWarning, match="ended early"):
        timed = posterior(score, rng=np.random.default_rng(0), n_samples=10**8, time_budget=0.5)
    assert timed.stopped == "time"
    assert len(timed) >= 4
    told = []

    def stop(progress):
        told.append(progress)
        return progress.step >= 20

    with pytest.warns(UserWarning, match="ended early"):
        stopped = posterior(score, rng=np.random.default_rng(0), callback=stop)
    assert stopped.stopped == "callback"
    assert told[-1].n_steps == 1500
    assert acyclic(told[-1].mode)

    def interrupt(progress):
        if progress.step >= 20:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="ended early"):
        assert posterior(score, rng=np.random.default_rng(0), callback=interrupt).stopped == "interrupted"

    def at_once(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        posterior(score, rng=np.random.default_rng(0), callback=at_once)


@pytest.mark.parametrize(
    ("score", "settings", "message"),
    [
        (lambda X: Score(X, "linear", "bic-ev"), {}, "sum over nodes .* got 'bic-ev'"),
        (lambda X: lambda A: 0.0, {}, "d is needed"),
        (lambda X: ALIAS(), {}, "fitted model"),
        (Score, {"n_samples": 0}, "n_samples"),
        (Score, {"chains": 1.5}, "chains"),
        (Score, {"burn_in": -1}, "burn_in"),
        (Score, {"thin": 0}, "thin"),
        (Score, {"candidates": 40}, "candidates"),
        (Score, {"rng": 3}, "rng must be"),
        (Score, {"time_budget": -1}, "time_budget"),
        (Score, {"knowledge": Knowledge(required=[("x0", "nobody")])}, "nobody"),
    ],
)
def test_what_is_impossible_is_refused(score, settings, message):
    with pytest.raises(ValueError, match=message):
        posterior(score(table(0)), **({"rng": np.random.default_rng(0)} | settings))


def test_one_chain_two_columns_and_few_rows_are_enough():
    X = np.random.default_rng(0).standard_normal((6, 2))
    found = posterior(bge(X), rng=np.random.default_rng(0), n_samples=600, chains=1)
    graphs, weights = enumerated(bge(X))
    assert found.edge_probabilities[0, 1] == pytest.approx(weights[graphs[:, 0, 1] == 1].sum(), abs=0.08)


def test_uniform_dags_are_uniform(rng):
    assert [sum(benchmark._dags_with_outpoints(d)) for d in (3, 4, 5)] == [25, 543, 29281]
    drawn = [benchmark.uniform_dag(3, rng).tobytes() for _ in range(5000)]
    counts = np.unique(drawn, return_counts=True)[1]
    assert len(counts) == 25
    assert ((counts - 200) ** 2 / 200).sum() < 24 + 4 * np.sqrt(48)


def test_probabilities_are_shares_on_tables_drawn_from_the_prior(rng):
    p, y, others = [], [], ~np.eye(5, dtype=bool)
    for _ in range(40):
        A = benchmark.uniform_dag(5, rng)
        score = bge(benchmark.from_prior(A, 200, rng), mean=0.0)
        found = posterior(score, rng=rng, n_samples=400)
        p.append(found.edge_probabilities[others])
        y.append(A[others])
    p, y = np.concatenate(p), np.concatenate(y)
    for low, high in [(0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 1.0)]:
        within = (p >= low) & (p < high)
        error = np.sqrt(p[within].mean() * (1 - p[within].mean()) / within.sum())
        assert abs(y[within].mean() - p[within].mean()) < 4 * error
    assert within.sum() > 20


def test_edges_of_a_simulated_graph_are_found():
    data = simulate.linear_gaussian(d=10, k=2, n=100, rng=np.random.default_rng(3)).standardise()
    found = posterior(bge(data.X), rng=np.random.default_rng(0), n_samples=1000)
    measures = benchmark.edge_measures(data.A, found.edge_probabilities)
    prevalence = data.A.sum() / 90
    assert measures["auprc"] > 2 * prevalence
    assert measures["brier"] < 0.7 * prevalence * (1 - prevalence)
