"""The engines: conditional rewards against brute force, every gradient against the enumerated one."""

import numpy as np
import pytest
from oracles import OnStatistics, all_dags, expected_reward

from vec2dag import BIC, Conditional, GaussianPolicy, LeastSquares, Linear, NodeCredit, Score, vec2dag
from vec2dag.search.engines import CompiledConditional, CreditEngine, LocalConditional
from vec2dag.search.orders import _Chain

CRITERIA = ["bic-ev", "bic-nv", "ls"]


class Plain:
    """An optimiser that stays where it is and shows the gradient that it was given."""

    def step(self, gradient):
        self.gradient = gradient.copy()
        return np.zeros_like(gradient)


class Progressive(BIC):
    """A price that falls with every further parent: what moving a node changes then is also what its edges cost."""

    def prices(self, n, d):
        return np.sqrt(np.arange(d + 1.0))


def make(criterion, d, rng, reference=False):
    X = rng.standard_normal((80, d)) @ (np.eye(d) + np.triu(rng.normal(size=(d, d)), 1)) + 0.3
    score = Score(X, Linear(reference=reference), criterion)
    policy = GaussianPolicy(0.7 * rng.normal(size=d * (d + 1) // 2), 0.3 * rng.normal(size=d * (d + 1) // 2))
    return score, policy


def general(score):
    return Score(None, OnStatistics(score.regression), score.criterion)


def orient(p, skeleton):
    return (skeleton.astype(bool) & (p[:, None] < p[None, :])).astype(np.uint8)


def brute_force(score, policy, p, A):
    """``R_on - R_off`` of every pair and the conditional node gradients of one graph, by rescoring everything."""
    d = len(A)
    skeleton = A | A.T
    edge, node = np.zeros((d, d)), np.zeros((2, d))
    for i in range(d):
        for j in range(i + 1, d):
            value = []
            for state in (1, 0):
                changed = skeleton.copy()
                changed[i, j] = changed[j, i] = state
                value.append(float(score(orient(p, changed))))
            edge[i, j] = value[0] - value[1]
        near = sorted(np.flatnonzero(skeleton[i]), key=lambda j: p[j])
        cuts = np.concatenate([[-100.0], p[near], [100.0]])
        places = np.repeat(p[None], len(near) + 1, axis=0)
        places[:, i] = (cuts[1:] + cuts[:-1]) / 2
        rewards = np.array([float(score(orient(place, skeleton))) for place in places])
        x = (p[near] - policy.mu[i]) / policy.sigma[i]
        step = np.diff(rewards) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        node[:, i] = step.sum() / policy.sigma[i], step @ x
    return edge, node


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("criterion", [*CRITERIA, Progressive(), Progressive("equal"), BIC("equal", offset=0.3)])
@pytest.mark.parametrize("engine", [CompiledConditional, LocalConditional])
def test_conditional_rewards_equal_brute_force(engine, criterion, reference, rng):
    score, policy = make(criterion, 5, rng, reference)
    used = score if engine is CompiledConditional else general(score)
    conditional = engine(used, policy, Conditional(batch_size=1))
    draw = conditional._draw()
    for seed in range(12):
        seeds = np.array([seed], np.uint64)
        edge, node, rewards, edges = conditional._advantages(seeds, draw)
        sample = conditional._graph(seeds[0], draw)
        p, A = sample.p, sample.A
        expected_edge, expected_node = brute_force(score, policy, p, A)
        assert np.triu(edge, 1) == pytest.approx(expected_edge, abs=1e-10)
        assert node == pytest.approx(expected_node, abs=1e-10)
        assert rewards[0] == pytest.approx(float(score(A)), abs=1e-12)
        assert edges[0] == A.sum()


@pytest.mark.parametrize(
    ("engine", "criterion"),
    [
        (e, c)
        for e in (CompiledConditional, LocalConditional, CreditEngine)
        for c in CRITERIA
        if (e, c) != (CreditEngine, "bic-ev")
    ],
)
def test_gradients_are_unbiased(engine, criterion, rng):
    """For d = 3 the mean over many samples is the gradient of the exactly enumerated expected reward."""
    score, policy = make(criterion, 3, rng)
    values = {A.tobytes(): float(score(A)) for A in all_dags(3)}
    exact = np.empty((2, 6))
    for row in range(2):
        for k in range(6):
            j = []
            for h in (1e-3, -1e-3):
                parts = [policy.mu.copy(), policy.log_sigma.copy()]
                parts[row][k] += h
                j.append(expected_reward(3, parts[0], np.exp(parts[1]), lambda A: values[A.tobytes()]))
            exact[row, k] = (j[0] - j[1]) / 2e-3

    repeats, batch = (150, 8) if engine is LocalConditional else (3000, 16)
    settings = NodeCredit(batch_size=batch) if engine is CreditEngine else Conditional(batch_size=batch)
    used = engine(score if engine is not LocalConditional else general(score), policy, settings)
    used.optimiser = Plain()
    seen = []
    for _ in range(repeats):
        used.step(rng)
        seen.append(used.optimiser.gradient)
    error = np.std(seen, axis=0) / np.sqrt(repeats)
    assert np.all(np.abs(np.mean(seen, axis=0) - exact) < 4.5 * error + 1e-5)


def test_conditional_gradient_has_a_fraction_of_the_variance(rng):
    """Against per-node credit on the same policy: the point of conditioning."""
    score, policy = make("bic-nv", 4, rng)

    variance = []
    for kind, settings in ((CompiledConditional, Conditional), (CreditEngine, NodeCredit)):
        engine = kind(score, policy, settings(batch_size=16))
        engine.optimiser = Plain()
        seen = []
        for _ in range(400):
            engine.step(rng)
            seen.append(engine.optimiser.gradient)
        variance.append(np.var(seen, axis=0).mean())
    assert variance[0] < 0.2 * variance[1]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_toggle_tables_agree(criterion, rng):
    score, _ = make(criterion, 6, rng)
    for A in vec2dag(rng.standard_normal((5, 21))):
        fast, slow = score.toggles(A), general(score).toggles(A)
        assert fast[0] == pytest.approx(slow[0], abs=1e-12)
        assert fast[1] == pytest.approx(slow[1], abs=1e-10)


def test_sampled_graphs_have_the_policy_s_probabilities(rng):
    score, policy = make("ls", 4, rng)
    engine = CompiledConditional(score, policy, Conditional(batch_size=1))
    draw = engine._draw()
    graphs = np.array([engine._graph(s, draw).A for s in rng.integers(2**64, size=20_000, dtype=np.uint64)])
    expected = vec2dag(policy.sample(20_000, rng))
    assert graphs.mean(axis=0) == pytest.approx(expected.mean(axis=0), abs=0.02)


def test_conditional_does_not_depend_on_threads(rng):
    X = rng.standard_normal((100, 12))
    steps = []
    for jobs in (1, 2, 5):
        policy = GaussianPolicy.sparse(12, np.random.default_rng(1))
        engine = CompiledConditional(Score(X, n_jobs=jobs), policy, Conditional())
        engine.step(np.random.default_rng(2))
        steps.append(policy.mu)
    assert all(np.array_equal(step, steps[0]) for step in steps)


def test_sparse_start_has_few_parents(rng):
    for d in (10, 100, 400):
        mean = GaussianPolicy.sparse(d, rng).sample(5, rng)[:, d:]
        assert (mean > 0).mean() * (d - 1) / 2 < 5


def test_credit_refuses_scores_that_are_not_sums(rng):
    score, policy = make("bic-ev", 3, rng)
    with pytest.raises(ValueError, match="sum over nodes"):
        NodeCredit().engine(score, policy)


@pytest.mark.parametrize("engine", [CompiledConditional, LocalConditional, CreditEngine])
def test_entropy_widens_the_policy(engine, rng):
    """Its weight is added to the gradient by every log sigma, with the sign that makes them grow."""
    score, policy = make("ls", 4, rng)
    score = general(score) if engine is LocalConditional else score
    settings = NodeCredit if engine is CreditEngine else Conditional
    gradients = []
    for entropy in (0.0, 0.7):
        used = engine(score, policy, settings(batch_size=4, entropy=entropy))
        used.optimiser = Plain()
        used.step(np.random.default_rng(1))
        gradients.append(used.optimiser.gradient)
    assert gradients[1][0] == pytest.approx(gradients[0][0], abs=1e-12)
    assert gradients[1][1] - gradients[0][1] == pytest.approx(np.full(10, 0.7), abs=1e-12)


def test_compiled_samples_are_clipped_to_the_bound(rng):
    """Potentials beyond the bound are tied there, and ties have no edge."""
    score, _ = make("ls", 4, rng)
    policy = GaussianPolicy(np.concatenate([[5.0, 6.0, 7.0, 8.0], np.full(6, 9.0)]), np.full(10, -9.0))
    for bound, edges in ((10.0, 6), (6.5, 5), (4.0, 0)):
        engine = CompiledConditional(score, policy, Conditional(batch_size=1, bound=bound))
        sample = engine._graph(np.uint64(3), engine._draw())
        p, A = sample.p, sample.A
        assert A.sum() == edges
        assert p == pytest.approx(np.minimum([5.0, 6.0, 7.0, 8.0], bound), abs=1e-2)


@pytest.mark.parametrize("better", [1, -1])
def test_the_spread_of_orders_follows_the_rewards(better):
    """Large deviations that are rewarded make the policy over orders wider, small ones narrower."""
    from vec2dag.search.descent import Candidate

    chain = _Chain(20, 1e-9, Candidate(np.zeros((20, 20), np.uint8), 0.0, np.arange(20)))
    before = chain.log_sigma
    chain.sample(8, np.random.default_rng(0))
    chain.learn(
        [Candidate(np.zeros((20, 20), np.uint8), better * float(tried), np.arange(20)) for tried in chain.tried]
    )
    assert np.sign(chain.log_sigma - before) == better


@pytest.mark.parametrize("criterion", [*CRITERIA, LeastSquares(0.0)])
def test_ill_conditioned_toggles_equal_regressions_on_the_data(criterion, rng):
    """Columns that are nearly copies: pivots of correlations lose their digits, and the factor of the data does not."""
    x = rng.standard_normal((200, 5))
    x[:, 1] = x[:, 0] + 3e-6 * x[:, 1]
    x[:, 4] += x[:, 0] - x[:, 1]
    score = Score(x, "linear", criterion)
    centred = x - x.mean(axis=0)
    A = np.zeros((5, 5), np.uint8)
    A[[0, 1, 2], 4] = A[0, 1] = A[1, 3] = 1
    links, table = score.toggles(A)

    def residual(node, parents):
        fitted = centred[:, parents] @ np.linalg.lstsq(centred[:, parents], centred[:, node], rcond=1e-14)[0]
        return np.mean((centred[:, node] - fitted) ** 2)

    for i in range(5):
        parents = np.flatnonzero(A[:, i]).tolist()
        assert links[i] == pytest.approx(float(score.link(residual(i, parents))), rel=1e-7, abs=1e-9)
        for j in range(5):
            if j != i:
                other = float(score.link(residual(i, sorted({*parents} ^ {j}))))
                assert table[i, j] == pytest.approx(other - links[i], rel=1e-5, abs=1e-8), (i, j)
