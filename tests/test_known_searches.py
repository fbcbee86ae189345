"""Knowledge in every search, pruning and output: against all DAGs of few nodes, and by its definition elsewhere."""

import json
import pickle
import re
import shlex
from collections import Counter
from contextlib import nullcontext, redirect_stdout
from functools import lru_cache
from io import StringIO
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from oracles import OnStatistics, all_dags, markov_class, sine
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from test_knowledge import NAMES, agrees, random_statement

from vec2dag import (
    A2C,
    ALIAS,
    PPO,
    REINFORCE,
    Conditional,
    GaussianPolicy,
    Knowledge,
    LocalSearch,
    Moments,
    NodeCredit,
    Orders,
    Score,
    cpdag,
    datasets,
    discover,
    lagged,
    prune,
    vec2dag,
)
from vec2dag.cli import main
from vec2dag.search.engines import CompiledConditional, CreditEngine, LocalConditional, Update, WholeGraph

# Every algorithm by name, with few steps: what holds by construction holds after one.
ALGORITHMS = {
    "auto": "auto",
    "local": LocalSearch(chains=2),
    "orders": Orders(n_steps=4),
    "conditional": Conditional(n_steps=20),
    "credit": NodeCredit(n_steps=15),
    "ppo": PPO(n_steps=15),
    "a2c": A2C(n_steps=15),
    "reinforce": REINFORCE(n_steps=15),
}
CRITERIA = ("bic-nv", "ebic-nv", "bic-ev", "ebic-ev", "ls")
SUMS = ("bic-nv", "ebic-nv", "ls")


def some_knowledge(d, rng):
    """What was said, and the constraints; what contradicts itself is drawn again."""
    while True:
        said = random_statement(d, rng)
        try:
            return said, Knowledge(**said).bind(NAMES[:d])
        except ValueError:
            continue


def some_table(d, rng, n=None):
    """Linear, with columns in any order."""
    n = int(rng.integers(20, 200)) if n is None else n
    X = rng.standard_normal((n, d)) @ (np.eye(d) + np.triu(rng.normal(size=(d, d)), 1))
    return X[:, rng.permutation(d)]


def takes(name, criterion):
    return name != "credit" or criterion in SUMS


# --- searches, against all DAGs ---------------------------------------------------------------------------------


def searches(cases, seed, names=tuple(ALGORITHMS)):
    """Searches with sampled knowledge: how often each reaches the best of all permitted DAGs."""
    rng, found, made = np.random.default_rng(seed), Counter(), Counter()
    for _ in range(cases):
        d = int(rng.integers(2, 5))
        said, known = some_knowledge(d, rng)
        permitted = np.array([A for A in all_dags(d) if agrees(A, said)])
        X = some_table(d, rng)
        for criterion, name, refine in product(CRITERIA, names, (True, False)):
            if not takes(name, criterion):
                continue
            score = Score(X, "linear", criterion, names=NAMES[:d])
            best = score(permitted).max()
            result = discover(score, rng=rng, algorithm=ALGORITHMS[name], refine=refine, knowledge=known)
            assert agrees(result.A, said), (name, criterion, refine, said)
            assert agrees(result.mode, said), (name, criterion, refine, said)
            assert result.score == pytest.approx(float(score(result.A)), abs=1e-9)
            assert result.score <= best + 1e-9
            assert result.exact == (refine and criterion in SUMS)
            if result.exact:
                assert result.score >= best - 1e-9, (name, criterion, said)
            made[criterion, refine] += 1
            found[criterion, refine] += result.score >= best - 1e-9
    return {key: found[key] / made[key] for key in made}


def test_searches_stay_within_what_is_permitted_and_find_the_best():
    shares = searches(2, seed=3)
    assert all(shares[criterion, True] == 1 for criterion in SUMS)
    assert min(shares.values()) > 0.5


@pytest.mark.slow
def test_how_often_searches_find_the_best():
    """Without exact search too; equal variances are not a sum over nodes and are never searched exactly."""
    shares = searches(60, seed=4)
    print(shares)
    assert all(shares[criterion, True] == 1 for criterion in SUMS)
    assert min(shares[criterion, True] for criterion in CRITERIA) > 0.97
    assert min(shares.values()) > 0.9


def test_exact_search_with_knowledge_equals_a_recursion_over_last_nodes(rng):
    """More nodes than can be enumerated, against best(S) = max over the last node of S, sets of parents one by one."""
    d = 6
    X = some_table(d, rng, 60)
    names = tuple(f"x{k}" for k in range(d))
    known = Knowledge(
        required=["x0 -> x3"], forbidden=["x1 -> x*"], tiers=[["x5"], ["x0", "x4"]], max_parents={"*": 2, "x3": 3}
    ).bind(names)
    score = Score(X, names=names)

    @lru_cache
    def own(i, before):
        """The least cost of node i with parents among ``before``."""
        costs = []
        for bits in range(1 << d):
            parents = [j for j in range(d) if bits >> j & 1]
            if not set(parents) <= before or len(parents) > known.max_parents[i]:
                continue
            if known.allowed[parents, i].all() and set(np.flatnonzero(known.required[:, i])) <= set(parents):
                residual = float(score.local(i, parents))
                costs.append(np.log(residual) / d + score.penalty * len(parents))
        return min(costs, default=np.inf)

    @lru_cache
    def best(nodes):
        return min((best(nodes - {i}) + own(i, nodes - {i}) for i in nodes), default=0.0)

    result = discover(score, rng=rng, knowledge=known)
    assert result.exact
    assert result.score == pytest.approx(-best(frozenset(range(d))), abs=1e-9)


# --- whole fits ---------------------------------------------------------------------------------------------------


PRUNINGS = {
    "none": None,
    "linear": prune.Threshold(0.8),
    "bic": prune.BIC(discount=3.0),
    "cam": prune.CAM(),
    "ci": "ci",
    "callable": lambda X, A: np.zeros_like(A),
}


def edges_against(A):
    """A score that prefers graphs with few edges, and then those with low numbers first."""
    return -float(A.sum()) - 0.1 * float(np.tril(A).sum())


def trial(seed):
    """Fit with sampled knowledge and settings, and look at everything that holds a graph."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    said, known = some_knowledge(d, rng)
    criterion = str(rng.choice([*CRITERIA, "callable"]))
    name = str(rng.choice([name for name in ALGORITHMS if takes(name, criterion)]))
    regression = str(rng.choice(["linear"] * 4 + ["sklearn"] * 2 + ["gp"]))
    pruning = str(rng.choice(list(PRUNINGS)))
    if criterion == "callable":
        name, regression = str(rng.choice(["auto", "ppo", "a2c", "reinforce"])), "linear"
    if regression != "linear" and name == "local":
        name = "orders"
    permitted = [A for A in all_dags(d) if known.permits(A)]
    start = permitted[rng.integers(len(permitted))]
    init = [("auto", "random"), (start, known.extend(rng.permutation(d)))][rng.integers(2)][rng.integers(2)]
    model = ALIAS(
        criterion=edges_against if criterion == "callable" else criterion,
        regression={"sklearn": LinearRegression()}.get(regression, regression),
        algorithm=PPO(n_steps=5) if criterion == "callable" and name == "auto" else ALGORITHMS[name],
        prune=PRUNINGS[pruning],
        init=init,
        refine=bool(rng.random() < 0.6),
        knowledge=Knowledge(**said),
        random_state=int(seed),
        n_jobs=1,
    ).fit(some_table(d, rng, 24 if regression == "gp" else None), names=NAMES[:d])
    told = (seed, criterion, name, regression, pruning, said)
    for A in (model.adjacency_raw_, model.search_.mode, model.adjacency_matrix_):
        assert agrees(A, said), told
    assert (model.adjacency_matrix_ <= model.adjacency_raw_).all(), told
    required = known.required
    assert model.known_[required].all(), told
    for verdict in model.prune_table_:
        needed = bool(required[verdict.source, verdict.target])
        assert (verdict.reason == "required") == needed, told
        assert verdict.kept or not needed, told
    if pruning == "callable":
        assert np.array_equal(model.adjacency_matrix_, required), told


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_keep_to_what_is_known():
    for seed in range(40):
        trial(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_thousand_fits_keep_to_what_is_known():
    for seed in range(1000):
        trial(seed)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_more_columns_than_enumeration_takes(rng):
    """Heuristic search on 15 columns: edges, tiers and limits by their definition."""
    d = 15
    X = some_table(d, rng, 300)
    names = [f"x{k}" for k in range(d)]
    tiers = [names[:5], names[5:10]]
    said = Knowledge(
        required=["x0 -> x9", "x14 -> x2"], forbidden=["x12 -> x*", "x3 -> x4"], tiers=tiers, max_parents=3
    )
    for criterion, name in (("ebic-nv", "auto"), ("bic-ev", "auto"), ("bic-nv", "conditional"), ("ls", "orders")):
        for refine in (True, False):
            model = ALIAS(
                criterion, algorithm=ALGORITHMS[name], refine=refine, prune=None, knowledge=said, random_state=0
            ).fit(X)
            A = model.adjacency_matrix_
            assert A[0, 9]
            assert A[14, 2]
            assert not A[12].any()
            assert not A[3, 4]
            assert not A[5:10, :5].any()
            assert A.sum(axis=0).max() <= 3


@pytest.mark.parametrize("most", [0, 1])
def test_no_parents_or_one(most, rng):
    X = some_table(8, rng, 80)
    for criterion, name in product(("bic-nv", "bic-ev"), ALGORITHMS):
        if takes(name, criterion):
            known = Knowledge(max_parents=most)
            result = discover(Score(X, "linear", criterion), rng=rng, algorithm=ALGORITHMS[name], knowledge=known)
            assert result.A.sum(axis=0).max() <= most
            assert result.mode.sum(axis=0).max() <= most


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("criterion", ["ebic-nv", "bic-ev", "ls"])
def test_required_parents_that_say_the_same(criterion, rng):
    """Sums and copies of columns, and more required parents than rows can tell apart."""
    X = some_table(4, rng, 100)
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2]])
    for edges in (["x0 -> x3", "x1 -> x3", "x4 -> x3"], ["x2 -> x5"], ["x5 -> x2", "x0 -> x4", "x1 -> x4"]):
        model = ALIAS(criterion, prune=None, knowledge={"required": edges}, random_state=0).fit(X)
        assert np.isfinite(model.score_)
        assert {tuple(edge.split(" -> ")) for edge in edges} <= set(
            zip(model.edges_["source"], model.edges_["target"], strict=True)
        )
    few = rng.standard_normal((5, 9))
    known = Knowledge(required=[(f"x{k}", "x8") for k in range(7)])
    assert ALIAS(criterion, prune=None, knowledge=known, random_state=0).fit(few).adjacency_raw_[:7, 8].all()


@pytest.mark.slow
def test_stable_baselines_keeps_to_what_is_known(rng):
    pytest.importorskip("stable_baselines3")
    from vec2dag import sb3

    said, known = some_knowledge(4, rng)
    score = Score(some_table(4, rng), names=NAMES)
    for kind in (sb3.PPO, sb3.A2C):
        for refine in (True, False):
            result = discover(score, rng=rng, algorithm=kind(n_steps=3), refine=refine, knowledge=known)
            assert agrees(result.A, said)
            assert agrees(result.mode, said)


def test_knowing_nothing_is_the_same_as_no_knowledge(rng):
    """Also where potentials are tied at the bound, which leaves both nodes without an edge."""
    X = some_table(6, rng, 60)
    assert Score(X).constraints.trivial
    for algorithm in (PPO(n_steps=3, bound=0.5), Conditional(n_steps=3, bound=0.5), NodeCredit(n_steps=3, bound=0.5)):
        plain, nothing = (
            discover(Score(X), rng=np.random.default_rng(0), algorithm=algorithm, refine=False, knowledge=known)
            for known in (None, Knowledge())
        )
        assert np.array_equal(plain.history["edges"], nothing.history["edges"])
        assert np.array_equal(plain.policy.mu, nothing.policy.mu)


def test_a_score_brings_its_knowledge_along(rng):
    """To pruning too; and a second knowledge does not silently take the place of the first."""
    X = rng.standard_normal((300, 4))
    score = Score(X, "linear", "bic-ev").under(Knowledge(required=["x3 -> x0"]))
    model = ALIAS(score, prune="linear", random_state=0).fit(X)
    assert model.adjacency_matrix_[3, 0]
    assert model.known_[3, 0]
    try:
        found = discover(score, rng=rng, knowledge=Knowledge(required=["x2 -> x1"]))
    except ValueError:
        return
    assert found.A[3, 0]
    assert found.A[2, 1]


def test_pruning_by_bic_knows_which_parents_stay():
    """A parent that is worth nothing beside a required one goes, though it would be worth its price alone."""
    rng = np.random.default_rng(0)
    c = rng.standard_normal(200)
    a = c + 0.6 * rng.standard_normal(200)
    b = 0.35 * c + rng.standard_normal(200)
    X = np.column_stack([a, b, c])
    known = Knowledge(required=["a -> b"], tiers=[["a", "c"], ["b"]])
    model = ALIAS("ls", knowledge=known, prune=prune.BIC(discount=3.0), random_state=0).fit(X, names=["a", "b", "c"])
    assert model.adjacency_raw_[[0, 2], 1].all()
    assert model.adjacency_matrix_[:, 1].tolist() == [1, 0, 0]


def test_what_is_known_is_written_in_full(tmp_path, rng):
    edges = [f"x{k} -> x{k + 1}" for k in range(12)]
    ALIAS(knowledge=Knowledge(required=edges), random_state=0).fit(rng.standard_normal((50, 13))).save(tmp_path)
    written = json.dumps(json.loads((tmp_path / "run.json").read_text())["parameters"]["knowledge"])
    assert all(edge in written for edge in edges)


# --- gradients, against the enumerated expectation ------------------------------------------------------------


class Plain:
    """An optimiser that stays where it is and shows the gradient that it was given."""

    def step(self, gradient):
        self.gradient = gradient.copy()
        return np.zeros_like(gradient)


GRID = (np.arange(2000) + 0.5) / 125 - 8  # zero lies between two points


def rankings(mu, sigma, signed):
    """Probability of every order of three Gaussian numbers and, if signed, of their signs: iterated integrals."""
    spread = 1.3 * max(1.0, float(np.abs(mu).max()), float(sigma.max()))
    x = spread * GRID
    density = np.exp(-0.5 * ((x - mu[:, None]) / sigma[:, None]) ** 2) / np.sqrt(2 * np.pi) / sigma[:, None]
    weights = []
    for order, low in product(permutations(range(3)), range(4) if signed else (0,)):
        inner = np.ones_like(x)
        for place, k in enumerate(order):
            inside = ((x < 0) == (place < low)) if signed else np.ones_like(x, dtype=bool)
            piece = density[k] * inside * inner * (x[1] - x[0])
            inner = np.cumsum(piece) - piece / 2  # of all that is below each point; the last sum is the probability
        weights.append(float(piece.sum()))
    return np.array(weights)


def enumerated_rewards(score):
    """Of every order of three nodes (6) and every order of edge potentials with their signs (24)."""
    values = np.empty((6, 24))
    for a, order in enumerate(permutations(range(3))):
        for b, (ranks, low) in enumerate(product(permutations(range(3)), range(4))):
            z = np.empty(6)
            z[list(order)] = np.arange(3)
            z[3 + np.array(ranks)] = np.arange(3) - low + 0.5
            values[a, b] = float(score(vec2dag(z, constraints=score.constraints)))
    return values


def exact_gradient(score, policy):
    """Derivatives (2, 6) of the expected reward of the decoder for three nodes, by finite differences."""
    values = enumerated_rewards(score)

    def chances(part, row=0, k=0, h=0.0):
        """Of node potentials (part 0) or edge potentials (part 1), with one parameter of them moved by h."""
        moved = np.stack([policy.mu, policy.log_sigma])[:, 3 * part : 3 * part + 3]
        moved[row, k] += h
        return rankings(moved[0], np.exp(moved[1]), part == 1)

    gradient = np.empty((2, 6))
    of_edges, of_nodes = values @ chances(1), chances(0) @ values
    for row, k in product(range(2), range(3)):
        for part, rewards in enumerate((of_edges, of_nodes)):
            change = chances(part, row, k, 1e-3) - chances(part, row, k, -1e-3)
            gradient[row, 3 * part + k] = change @ rewards / 2e-3
    return gradient


def three_nodes(said, criterion, rng):
    score = Score(some_table(3, rng, 80) + 0.3, "linear", criterion).under(Knowledge(**said))
    return score, GaussianPolicy(0.7 * rng.normal(size=6), 0.3 * rng.normal(size=6))


def sampled_gradient(engine, score, policy, repeats, batch, rng):
    """Mean and standard error (2, 6) of what an engine takes for the gradient."""
    if engine is WholeGraph:
        used = WholeGraph(score, policy, REINFORCE(batch_size=batch), Update(), Plain())
    else:
        used = engine(score, policy, (NodeCredit if engine is CreditEngine else Conditional)(batch_size=batch))
    used.optimiser = Plain()
    seen = []
    for _ in range(repeats):
        used.step(rng)
        seen.append(used.optimiser.gradient)
    return np.mean(seen, axis=0), np.std(seen, axis=0) / np.sqrt(repeats)


# Where it is exact: edges that are forbidden one by one, tiers, nodes without parents or children.
EXACT = {
    "nothing": {},
    "an edge": {"forbidden": ["x0 -> x1"]},
    "two edges": {"forbidden": ["x0 -> x1", "x2 -> x0"]},
    "tiers": {"tiers": [["x2"], ["x0", "x1"]]},
    "closed tiers": {"tiers": [["x1", "x2"], ["x0"]], "within_tiers": False},
    "all in tiers": {"tiers": [["x1"], ["x2"], ["x0"]]},
    "a free column": {"tiers": [["x0"], ["x1"]]},
    "exogenous": {"exogenous": ["x1"]},
    "sink": {"sinks": ["x1"]},
    "required for all others": {"required": ["x0 -> x1", "x0 -> x2"]},
}
# Where the conditional gradient takes nodes that would move along to stay, or lets the most probable parents stay.
APPROXIMATE = {
    "required": {"required": ["x0 -> x1"]},
    "limit": {"max_parents": 1},
    "a limit": {"max_parents": {"x2": 1}},
    "required and limit": {"required": ["x0 -> x1"], "max_parents": 1},
}


def test_the_enumerated_expectation_is_that_of_the_decoder(rng):
    for said in (*EXACT.values(), *APPROXIMATE.values()):
        score, policy = three_nodes(said, "bic-nv", rng)
        assert rankings(policy.mu[:3], policy.sigma[:3], False).sum() == pytest.approx(1, abs=1e-4)
        assert rankings(policy.mu[3:], policy.sigma[3:], True).sum() == pytest.approx(1, abs=1e-4)
        sampled = score(vec2dag(policy.sample(20_000, rng), constraints=score.constraints))
        values = enumerated_rewards(score)
        expected = rankings(policy.mu[:3], policy.sigma[:3], False) @ values
        expected = expected @ rankings(policy.mu[3:], policy.sigma[3:], True)
        assert expected == pytest.approx(sampled.mean(), abs=5 * sampled.std() / np.sqrt(20_000) + 1e-4)


@pytest.mark.parametrize("said", EXACT.values(), ids=EXACT)
def test_conditional_gradients_are_unbiased_where_edges_are_forbidden(said, rng):
    for criterion in ("bic-nv", "bic-ev"):
        score, policy = three_nodes(said, criterion, rng)
        exact = exact_gradient(score, policy)
        mean, error = sampled_gradient(CompiledConditional, score, policy, 250, 32, rng)
        assert (np.abs(mean - exact) < 5 * error + 1e-4).all(), criterion


@pytest.mark.parametrize("said", [*EXACT.values(), *APPROXIMATE.values()], ids=[*EXACT, *APPROXIMATE])
def test_gradients_of_sampled_rewards_are_unbiased_with_any_knowledge(said, rng):
    score, policy = three_nodes(said, "bic-nv", rng)
    exact = exact_gradient(score, policy)
    for engine in (CreditEngine, WholeGraph):
        mean, error = sampled_gradient(engine, score, policy, 250, 64, rng)
        assert (np.abs(mean - exact) < 5 * error + 1e-4).all(), engine


def cosine(a, b):
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("said", APPROXIMATE.values(), ids=APPROXIMATE)
def test_conditional_gradients_are_mostly_near_where_they_are_approximate(said):
    """Required edges and limits: docs/knowledge.md has the cosines of 25 policies each, the least of them 0.3."""
    near = []
    for seed in range(7):
        rng = np.random.default_rng(seed)
        score, policy = three_nodes(said, ("bic-nv", "bic-ev")[seed % 2], rng)
        mean, _ = sampled_gradient(CompiledConditional, score, policy, 40, 64, rng)
        near.append(cosine(mean, exact_gradient(score, policy)))
    assert np.median(near) > 0.85
    assert min(near) > 0


def test_both_conditional_engines_say_the_same_with_knowledge(rng):
    """Graph by graph: they share the samples, and differ only in how regressions are made."""
    for _ in range(10):
        _, known = some_knowledge(4, rng)
        score = Score(some_table(4, rng), "linear", str(rng.choice(["bic-nv", "bic-ev", "ls"]))).under(known)
        general = Score(None, OnStatistics(score.regression), score.criterion).under(known)
        policy = GaussianPolicy(rng.normal(size=10), 0.3 * rng.normal(size=10))
        fast, slow = (
            kind(one, policy, Conditional())
            for kind, one in ((CompiledConditional, score), (LocalConditional, general))
        )
        seeds = rng.integers(2**64, size=6, dtype=np.uint64)
        for left, right in zip(
            fast._advantages(seeds, fast._draw()), slow._advantages(seeds, slow._draw()), strict=True
        ):
            assert left == pytest.approx(right, abs=1e-9)


# --- what a fit says about directions ---------------------------------------------------------------------------


def directions(model, known):
    """By enumeration of the class: edge -> free (both directions are permitted), known, or oriented."""
    raw = model.adjacency_raw_
    members = [A for A in all_dags(len(raw)) if markov_class(A) == markov_class(raw)]
    permitted = [A for A in members if not (A & ~known.allowed).any() and A[known.required].all()]
    told = {}
    for i, j in np.argwhere(model.adjacency_matrix_).tolist():
        if any(A[j, i] for A in permitted):
            told[i, j] = "free"
        elif known.required[i, j] or any(A[j, i] for A in members):
            told[i, j] = "known"
        else:
            told[i, j] = "oriented"
    return told


def test_directions_are_those_of_all_permitted_members_of_the_class(rng):
    seen = Counter()
    for _ in range(40):
        said, known = some_knowledge(4, rng)
        model = ALIAS(knowledge=Knowledge(**said), random_state=0).fit(some_table(4, rng), names=NAMES)
        expected = directions(model, known)
        index = {name: k for k, name in enumerate(NAMES)}
        rows = {(index[row["source"]], index[row["target"]]): row["direction"] for row in model.edges_.rows}
        assert rows == expected, said
        seen.update(rows.values())
        both = {(i, j) for i, j in np.argwhere(model.cpdag_ & model.cpdag_.T)}
        assert both == {e for (i, j), how in expected.items() if how == "free" for e in ((i, j), (j, i))}
    assert min(seen["free"], seen["known"], seen["oriented"]) > 5


def test_a_tier_directs_what_the_data_do_not(rng):
    """A chain: its class has no direction; that x0 comes first settles all of them (Meek's first rule)."""
    X = rng.standard_normal((500, 3)).cumsum(axis=1)
    plain, known = (ALIAS(knowledge=k, random_state=0).fit(X) for k in (None, Knowledge(tiers=[["x0"], ["*"]])))
    assert np.array_equal(plain.cpdag_, plain.cpdag_.T)
    assert np.argwhere(known.cpdag_).tolist() == [[0, 1], [1, 2]]
    assert known.edges_["direction"] == ["known", "known"]
    assert np.array_equal(cpdag(known.adjacency_raw_), plain.cpdag_)
    assert "==> : " in known.summary()
    assert "==>" not in plain.summary()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_equal_variances_know_what_could_not_be_otherwise(rng):
    X = rng.standard_normal((500, 3)).cumsum(axis=1)
    model = ALIAS("bic-ev", knowledge=Knowledge(forbidden=["x1 -> x0"]), random_state=0).fit(X)
    assert dict(zip(model.edges_["target"], model.edges_["direction"], strict=True)) == {
        "x1": "known",
        "x2": "oriented",
    }


def test_files_carry_what_is_known(tmp_path, rng):
    X = rng.standard_normal((500, 4))
    X[:, 1] += X[:, 0]
    X[:, 3] += X[:, 2]
    model = ALIAS(knowledge=Knowledge(required=["x1 -> x0"]), random_state=0).fit(X)
    model.save(tmp_path)
    edges = json.loads((tmp_path / "graph.json").read_text())["edges"]
    told = {(edge["source"], edge["target"]): edge["direction"] for edge in edges}
    assert told["x1", "x0"] == "known"
    assert "free" in told.values()
    graph = nx.read_graphml(tmp_path / "graph.graphml")
    assert {(a, b): how for a, b, how in graph.edges(data="direction")} == told
    assert {(a, b): how for a, b, how in model.graph_.edges(data="direction")} == told
    drawn = (tmp_path / "graph.dot").read_text().splitlines()
    line = next(line for line in drawn if "x1" in line and "->" in line)
    assert "bold" in line
    assert sum("bold" in line for line in drawn) == 1


# --- as people use it ------------------------------------------------------------------------------------------


def test_moments_take_knowledge(rng):
    X = some_table(4, rng)
    known = Knowledge(required=["b -> a"], forbidden=["c -> d"])
    table, moments = (
        ALIAS(knowledge=known, random_state=0).fit(data, names=NAMES) for data in (X, Moments.of(X, NAMES))
    )
    assert np.array_equal(table.adjacency_matrix_, moments.adjacency_matrix_)
    assert table.adjacency_matrix_[1, 0]


def test_labels_that_are_no_plain_names(rng):
    pandas = pytest.importorskip("pandas")
    X = some_table(4, rng)
    labels = ["a -> b", "x*", "with, comma", "two words"]
    frame = pandas.DataFrame(X, columns=labels)
    known = Knowledge(required=[("x*", "a -> b"), ("with, comma", "two words")], forbidden=["x* -> two words"])
    assert Knowledge.from_json(known.to_json()) == known
    A = ALIAS(knowledge=known, random_state=0).fit(frame).adjacency_matrix_
    assert A[1, 0]
    assert A[2, 3]
    assert not A[1, 3]
    numbered = ALIAS(knowledge={"required": ["3 -> 0"]}, random_state=0).fit(pandas.DataFrame(X))
    assert numbered.adjacency_matrix_[3, 0]


def test_estimator_with_knowledge_is_a_scikit_learn_estimator(rng, tmp_path):
    X = some_table(4, rng)
    known = Knowledge(required=["x3 -> x0"])
    (tmp_path / "known.json").write_text(known.to_json())
    graphs = [
        ALIAS(knowledge=given, random_state=0).fit(X).adjacency_matrix_
        for given in (known, {"required": ["x3 -> x0"]}, tmp_path / "known.json", str(tmp_path / "known.json"))
    ]
    assert all(np.array_equal(A, graphs[0]) for A in graphs)
    model = ALIAS(knowledge=known, random_state=0)
    assert clone(model).knowledge == known
    again = pickle.loads(pickle.dumps(model.fit(X)))
    assert again.edges_ == model.edges_
    assert again.knowledge == known
    with pytest.raises(ValueError, match="'nobody'"):
        model.set_params(knowledge={"required": ["nobody -> x0"]}).fit(X)
    assert model.adjacency_matrix_[3, 0], "a fit that fails leaves what was fitted"
    assert not ALIAS(knowledge=known).set_params(knowledge={"exogenous": ["x0"]}).fit(X).adjacency_matrix_[:, 0].any()
    choices = [None, Knowledge(max_parents=0)]
    chain = rng.standard_normal((100, 3)).cumsum(axis=1)
    search = GridSearchCV(ALIAS(random_state=0), {"knowledge": choices}, cv=2).fit(chain)
    assert search.best_params_["knowledge"] is None, "edges that are there predict other rows better"


@pytest.mark.parametrize(
    ("init", "known", "sentence"),
    [
        ([[0, 1, 0], [0, 0, 0], [0, 0, 0]], {"forbidden": ["x0 -> x1"]}, "x0 -> x1 is not allowed"),
        (np.zeros((3, 3)), {"required": ["x2 -> x1"]}, "x2 -> x1 is missing"),
        ([[0, 0, 1], [0, 0, 1], [0, 0, 0]], {"max_parents": 1}, "'x2' has 2 parents and may have 1"),
        ([0, 1, 2], {"required": ["x2 -> x1"]}, "it has 'x1' before 'x2'"),
        ([2, 1, 0], {"tiers": [["x0"], ["x1", "x2"]]}, "before 'x0'"),
    ],
)
def test_a_start_that_contradicts_is_refused(init, known, sentence, rng):
    with pytest.raises(ValueError, match=f"init contradicts what is known: .*{re.escape(sentence)}"):
        ALIAS(init=np.array(init), knowledge=known).fit(some_table(3, rng))


@pytest.mark.parametrize("how", ["time", "interrupted", "callback"])
def test_what_is_cut_short_keeps_to_what_is_known(how, rng):
    d = 30
    X = some_table(d, rng, 100)
    known = Knowledge(required=["x0 -> x1", "x29 -> x0"], exogenous=["x29"], max_parents=2).bind(
        [f"x{k}" for k in range(d)]
    )

    def callback(progress):
        if how == "interrupted":
            raise KeyboardInterrupt
        return how == "callback"

    for criterion, name in (("bic-nv", "auto"), ("bic-ev", "auto"), ("bic-nv", "ppo"), ("bic-nv", "orders")):
        options = {"time_budget": 1e-3} if how == "time" else {"callback": callback}
        with pytest.warns(UserWarning, match="interrupted") if how == "interrupted" else nullcontext():
            result = discover(
                Score(X, "linear", criterion), rng=rng, algorithm=ALGORITHMS[name], knowledge=known, **options
            )
        assert result.cut_short or result.certified
        assert known.permits(result.A)
        assert known.permits(result.mode)


def test_a_checkpoint_of_other_knowledge_is_not_continued(tmp_path, rng):
    X = some_table(14, rng, 100)
    file = tmp_path / "search.ckpt"
    fits = [
        ALIAS(knowledge=known, checkpoint=file, random_state=0).fit(X)
        for known in (None, Knowledge(required=["x13 -> x0"]), Knowledge(forbidden=["x13 -> x0", "x0 -> x13"]))
    ]
    assert fits[1].adjacency_matrix_[13, 0]
    assert not fits[2].adjacency_matrix_[[13, 0], [0, 13]].any()
    plain = ALIAS(knowledge=Knowledge(forbidden=["x13 -> x0", "x0 -> x13"]), random_state=0).fit(X)
    assert np.array_equal(plain.adjacency_matrix_, fits[2].adjacency_matrix_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gaussian_processes_with_knowledge(rng):
    """Nonlinear chain: required against the direction of the data, and CAM pruning keeps it."""
    X = sine(60, 3)
    model = ALIAS(regression="gp", knowledge=Knowledge(required=["x2 -> x0"], max_parents=1), random_state=0).fit(X)
    assert model.adjacency_matrix_[2, 0]
    assert model.adjacency_raw_.sum(axis=0).max() <= 1
    verdict = next(v for v in model.prune_table_ if (v.source, v.target) == (2, 0))
    assert verdict.kept
    assert verdict.reason == "required"


# --- the command line -------------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run_main(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run_main


def edges_of(folder):
    edges = json.loads((folder / "graph.json").read_text())["edges"]
    return {(edge["source"], edge["target"]): edge["direction"] for edge in edges}


def test_sachs_with_three_known_edges(run, tmp_path):
    known = ["PKC -> Raf", "Raf -> Mek", "Mek -> Erk"]
    done = run("discover", "sachs", "-o", tmp_path, *(word for edge in known for word in ("--require", edge)))
    assert done.code == 0
    told = edges_of(tmp_path)
    for edge in known:
        assert told[tuple(edge.split(" -> "))] == "known"
    assert "==> : " in done.out


def test_options_and_files_say_the_same(run, tmp_path):
    said = Knowledge(
        required=["Raf -> Mek"], forbidden=["Erk -> *"], tiers=[["PKC", "PKA"], ["Raf", "Mek"]], exogenous=["Plcg"]
    )
    said.write(tmp_path / "known.json")
    said.write(tmp_path / "known.txt", names=datasets.load("sachs").names)
    options = ["--require", "Raf -> Mek", "--forbid", "Erk -> *", "--tier", "PKC,PKA", "--tier", "Raf, Mek"]
    ways = {
        "options": [*options, "--exogenous", "Plcg"],
        "json": ["--knowledge", tmp_path / "known.json"],
        "tetrad": ["--knowledge", tmp_path / "known.txt"],
    }
    graphs = []
    for way, arguments in ways.items():
        assert run("discover", "sachs", "-q", "-o", tmp_path / way, *arguments).code == 0
        graphs.append(edges_of(tmp_path / way))
    assert graphs[0] == graphs[1] == graphs[2]
    assert graphs[0]["Raf", "Mek"] == "known"
    assert not any(source == "Erk" or target == "Plcg" for source, target in graphs[0])
    both = ["--knowledge", tmp_path / "known.json", "--max-parents", 1]
    assert run("discover", "sachs", "-q", "-o", tmp_path / "both", *both).code == 0
    assert max(Counter(target for _, target in edges_of(tmp_path / "both")).values()) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--require", "Raf -> Meck"], "'Meck', which is not there (closest: 'Mek')"),
        (["--require", "Raf Mek"], "'Raf Mek', which is not an edge"),
        (["--require", "Raf -> Raf"], "'Raf' to itself"),
        (["--forbid", "gene* -> Raf"], "'gene*', which matches no column"),
        (["--tier", "Raf", "--tier", "Mek,Raf"], "'Raf' twice, in tier 1 and tier 2"),
        (["--exogenous", "Rav"], "'Rav', which is not there"),
        (["--max-parents", "-1"], "--max-parents must be a whole number of at least 0"),
        (["--require", "Raf -> Mek", "--forbid", "* -> Mek"], "Raf -> Mek is required, but it is forbidden"),
        (["--require", "Raf -> Mek", "--max-parents", "0"], "max_parents of 'Mek' is 0, but 1 are required"),
        (["--require", "Mek -> Raf", "--tier", "Raf", "--tier", "Mek"], "the tiers have 'Raf' before 'Mek'"),
        (["--require", "Mek -> Raf", "--exogenous", "Raf"], "'Raf' is exogenous"),
        (
            ["--require", "Raf -> Mek", "--require", "Mek -> Erk", "--require", "Erk -> Raf"],
            "make a cycle: Erk -> Raf -> Mek -> Erk",
        ),
        (["--knowledge", "nowhere.json"], "nowhere.json cannot be read"),
        (["--time", "Raf"], "--time has no effect without --lags"),
        (["--lags", "0"], "lags"),
        (["--lags", "1", "--time", "when"], "'when'"),
    ],
)
def test_what_the_command_line_refuses(options, sentence, run, tmp_path):
    done = run("discover", "sachs", "-o", tmp_path / "out", *options)
    assert done.code == 2
    assert sentence in done.err
    assert not done.out
    assert not list(tmp_path.glob("out/*"))


# --- time -------------------------------------------------------------------------------------------------------


def autoregression(n, rng):
    """x drives y two rows later, y drives z at once, x depends on its past."""
    x, y, z = np.zeros((3, n + 50))
    noise = rng.standard_normal((3, n + 50))
    for t in range(2, n + 50):
        x[t] = 0.6 * x[t - 1] + noise[0, t]
        y[t] = 0.9 * x[t - 2] + noise[1, t]
        z[t] = 0.9 * y[t] + noise[2, t]
    return np.column_stack([x, y, z])[50:]


def test_a_series_is_found_by_variable_and_lag(rng):
    series = lagged(autoregression(600, rng), lags=2, names=["x", "y", "z"])
    model = ALIAS(knowledge=series.knowledge, random_state=0).fit(series.X, names=series.names)
    found = {(row["source"], row["lag"], row["target"]) for row in series.edges(model.adjacency_matrix_)}
    assert {("x", 1, "x"), ("x", 2, "y")} <= found
    assert ("y", 0, "z") in found
    assert len(found) <= 4
    assert not model.adjacency_matrix_[:, 3:].any(), "nothing leads into the past"
    alone = lagged(autoregression(600, rng), lags=2, contemporaneous=False)
    model = ALIAS(knowledge=alone.knowledge, random_state=0).fit(alone.X, names=alone.names)
    assert not model.adjacency_matrix_[:3].any()


def test_the_command_line_takes_series(run, tmp_path, rng):
    X = autoregression(400, rng)
    when = np.arange(400)
    mixed = rng.permutation(400)
    lines = [f"{when[k]},{X[k, 0]},{X[k, 1]},{X[k, 2]}" for k in mixed]
    (tmp_path / "series.csv").write_text("\n".join(["when,x,y,z", *lines]) + "\n")
    done = run("discover", tmp_path / "series.csv", "-o", tmp_path / "out", "--lags", 2, "--time", "when")
    assert done.code == 0, done.err
    told = edges_of(tmp_path / "out")
    assert told["x[t-1]", "x"] == "known"
    assert told["x[t-2]", "y"] == "known"
    assert {("y", "z"), ("z", "y")} & set(told)
    assert not any("when" in edge[0] or "[t-" in edge[1] for edge in told)
    extra = ["--lags", 1, "--time", "when", "--no-contemporaneous", "--forbid", "x[[]t-1] -> y"]
    assert run("discover", tmp_path / "series.csv", "-q", "-o", tmp_path / "two", *extra).code == 0
    assert all("[t-1]" in source for source, _ in edges_of(tmp_path / "two"))


def test_times_on_the_command_line(run, tmp_path, rng):
    """Dates order rows, and unequal steps of time are said in the words of the program."""
    X = autoregression(200, rng)
    days = np.datetime64("2024-01-01") + np.arange(200)
    hours = np.where(np.arange(200) < 100, np.arange(200), np.arange(200) + 5)
    for name, when in (("days", days), ("hours", hours)):
        lines = [",".join([str(w), *(str(v) for v in row)]) for w, row in zip(when, X, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["when,x,y,z", *lines]) + "\n")
        done = run("discover", tmp_path / f"{name}.csv", "-o", tmp_path / name, "--lags", 2, "--time", "when")
        assert done.code == 0, done.err
        assert ("x[t-2]", "y") in edges_of(tmp_path / name)
    assert "vec2dag: warning: The steps of time are unequal" in done.err
    assert "unequal" in " ".join(json.loads((tmp_path / "hours" / "run.json").read_text())["warnings"])


# --- the page ---------------------------------------------------------------------------------------------------


def arrows(table):
    """The edges of a printed table; which end of a free one stands first means nothing."""
    rows = re.findall(r"^(\w+) +(---|-->|==>) (\w+) ", table, flags=re.MULTILINE)
    return {(arrow, frozenset((a, b)) if arrow == "---" else (a, b)) for a, arrow, b in rows}


def test_the_code_and_commands_of_the_page_run(run, tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[1] / "docs" / "knowledge.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    blocks = dict.fromkeys(("python", "bash"))
    for language in blocks:
        blocks[language] = re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
        assert blocks[language]
    with redirect_stdout(StringIO()):
        exec("\n".join(blocks["python"]), {})
    for line in "".join(blocks["bash"]).splitlines():
        done = run(*shlex.split(line)[1:])
        assert done.code == 0
        shown = re.search(r"^```\n(cause .*?)^```", page, flags=re.DOTALL | re.MULTILINE)
        assert arrows(shown[1]) == arrows(done.out), "the table of the page is the one that the command prints"
