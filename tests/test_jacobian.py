"""The order from the score of the density: closed forms, known leaves, knowledge, units."""

import itertools
import time

import numpy as np
import pytest

from vec2dag import ALIAS, PPO, Knowledge, Moments, Score, discover, score_order, simulate
from vec2dag.jacobian import hessian_diagonal


def chain(n=400, seed=0):
    """x0 -> x1 -> x2 with bends that no straight line follows, and equal noise."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, 3))
    x = E[:, 0]
    y = np.sin(2 * x) + 0.5 * x**2 + 0.5 * E[:, 1]
    z = np.cos(2 * y) + 0.5 * y + 0.5 * E[:, 2]
    return np.column_stack([x, y, z])


def stein(Z, ridge):
    """The estimator term by term, from its definition."""
    n, d = Z.shape
    pairs = [np.sum((Z[a] - Z[b]) ** 2) for a, b in itertools.combinations(range(n), 2)]
    s2 = np.median(np.sqrt(pairs)) ** 2
    K, first, second = np.empty((n, n)), np.zeros((n, d)), np.zeros((n, d))
    for a, b in itertools.product(range(n), repeat=2):
        away = Z[a] - Z[b]
        K[a, b] = np.exp(-np.sum(away**2) / (2 * s2))
        first[a] += K[a, b] * away / s2  # derivative by x_b
        second[a] += K[a, b] * (away**2 / s2**2 - 1 / s2)
    inverse = np.linalg.inv(K + ridge * np.eye(n))
    return -((-inverse @ first) ** 2) + inverse @ second


def test_formula_term_by_term():
    # an odd number of pairs: its median is one of them, squared or not
    Z = np.random.default_rng(1).standard_normal((15, 3))
    assert np.allclose(hessian_diagonal(Z, ridge=0.01), stein(Z, 0.01), rtol=1e-8)


def test_of_a_gaussian_it_is_minus_the_precision():
    rng = np.random.default_rng(0)
    precision = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, -0.5], [0.0, -0.5, 1.0]])
    X = rng.multivariate_normal(np.zeros(3), np.linalg.inv(precision), size=1500)
    found = hessian_diagonal(X, ridge=0.1)
    # Where there are rows: in the tails nothing is known of the density.
    inner = np.einsum("ni,ij,nj->n", X, precision, X) < 3.0
    assert np.allclose(found[inner].mean(axis=0), -np.diag(precision), rtol=0.15)
    assert (found[inner].std(axis=0) < 0.35 * np.diag(precision)).all()


def test_other_units():
    X = chain(200)
    assert np.allclose(hessian_diagonal(X * 7.0), hessian_diagonal(X) / 49.0)
    assert np.array_equal(score_order(X + 1000.0), score_order(X))


@pytest.mark.parametrize("standardize", ["auto", False])
def test_units_of_the_estimator_do_not_matter_unless_it_is_told_so(standardize, monkeypatch):
    tables = []

    def spy(X, before, over):
        tables.append(X)
        return np.arange(3)

    monkeypatch.setattr("vec2dag.estimator.score_order", spy)
    X, units = chain(100), np.array([1.0, 1000.0, 0.001])
    for table in (X, X * units):
        ALIAS(regression="additive", init="score", standardize=standardize, random_state=0).fit(table)
    assert np.allclose(sorted(tables[0].std(axis=0)), sorted(tables[1].std(axis=0))) is (standardize == "auto")


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_in_any_order_of_columns(seed):
    X = chain(seed=seed)
    for labels in itertools.permutations(range(3)):
        labels = np.array(labels)
        # column k of the table is node labels[k]
        assert labels[score_order(X[:, labels])].tolist() == [0, 1, 2]


def test_additive_noise_data():
    reversed_edges = edges = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data = simulate.simulate(simulate.erdos_renyi(8, 2, rng), simulate.gaussian_process, n=500, rng=rng)
        place = np.argsort(score_order(data.X))
        reversed_edges += np.sum(data.A * (place[:, None] > place))
        edges += data.A.sum()
    # A random order reverses half of them.
    assert reversed_edges < 0.1 * edges


def test_known_precedence_holds_whatever_the_data_say():
    X = chain()
    for i, j in itertools.permutations(range(3), 2):
        before = np.zeros((3, 3), bool)
        before[i, j] = True
        place = np.argsort(score_order(X, before))
        assert place[i] < place[j]
    with pytest.raises(ValueError, match="cycle"):
        score_order(X, np.eye(3)[[1, 2, 0]])
    with pytest.raises(ValueError, match=r"before must have shape \(3, 3\)"):
        score_order(X, np.eye(2))


def test_copies_keep_their_order_and_few_values_are_no_problem():
    X = chain(200)
    assert score_order(np.column_stack([X[:, 0]] * 3)).tolist() == [0, 1, 2]
    rng = np.random.default_rng(0)
    coins = rng.integers(2, size=(100, 3)).astype(float)
    assert sorted(score_order(coins)) == [0, 1, 2]
    assert np.isfinite(hessian_diagonal(coins[:, :1])).all()
    assert score_order(X[:, :1]).tolist() == [0]


def test_the_table_is_not_changed_and_its_layout_does_not_matter():
    X = chain(200)
    kept = X.copy()
    assert np.array_equal(score_order(X), score_order(np.asfortranarray(X)))
    assert np.array_equal(X, kept)


def test_rows_are_spread():
    X = chain(900)
    assert np.array_equal(score_order(X, max_rows=300), score_order(X[np.linspace(0, 899, 300).astype(int)]))


def test_it_ends_when_time_is_over():
    X, asked = chain(100), []

    def over():
        asked.append(True)
        return len(asked) > 1

    after_one = score_order(X, over=over)
    assert np.array_equal(after_one, np.argsort(-hessian_diagonal(X).var(axis=0)))
    assert score_order(X, over=lambda: True).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"X": np.ones((5, 2))}, "do not vary"),
        ({"X": np.zeros((2, 2))}, "n >= 3"),
        ({"ridge": 0.0}, "ridge"),
        ({"max_rows": 2}, "max_rows"),
    ],
)
def test_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        score_order(**{"X": chain(20)} | settings)


def test_as_a_start():
    X = chain()
    model = ALIAS(regression="additive", criterion="bic-nv", algorithm="orders", init="score", random_state=0).fit(X)
    assert model.search_.init == "score order"
    assert model.adjacency_matrix_.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert model.parameters_["init"] == "score"


def test_the_start_is_where_the_search_begins():
    """A policy that hardly moves stays at its start."""
    X = chain()[:, [2, 0, 1]]
    settings = PPO(n_steps=1, learning_rate=1e-9)
    found = ALIAS(regression="additive", init="score", algorithm=settings, refine=False, random_state=0).fit(X)
    assert np.argsort(found.search_.policy.mu[:3]).tolist() == [1, 2, 0]


def test_what_is_known_comes_first():
    X = chain()
    model = ALIAS(
        regression="additive", init="score", knowledge=Knowledge(required=[("x2", "x0")]), random_state=0
    ).fit(X)
    assert model.adjacency_matrix_[2, 0] == 1


def test_it_needs_rows_and_says_so():
    X = chain(50)
    with pytest.raises(ValueError, match="init='score' needs the rows of the table"):
        ALIAS(init="score").fit(Moments.of(X))
    with pytest.raises(ValueError, match=r"init=score_order\(X\)"):
        discover(Score(X), rng=np.random.default_rng(0), init="score")
    found = discover(Score(X, "additive"), rng=np.random.default_rng(0), init=score_order(X))
    assert found.init == "given"


@pytest.mark.filterwarnings("ignore:the search had to end", "ignore:the time was over")
def test_half_of_the_time_is_left_to_the_search(monkeypatch):
    waited = []

    def slow(X, before, over):
        start = time.perf_counter()
        while not over() and time.perf_counter() < start + 20:
            time.sleep(0.01)
        waited.append(time.perf_counter() - start)
        return np.arange(3)

    monkeypatch.setattr("vec2dag.estimator.score_order", slow)
    ALIAS(regression="additive", init="score", prune=None, time_budget=1.0, random_state=0).fit(chain(100))
    assert waited[0] < 0.7
