"""What must not matter: units, origins, the order of columns and rows, and the type that holds the numbers.

Linear ``bic-nv`` is the same for all members of a Markov equivalence class, so classes are compared. Two classes may
share the best score to the last digits; such ties are counted, and are few.
"""

from functools import cache

import numpy as np
import pytest

from vec2dag import ALIAS, Score, cpdag, simulate

pytestmark = pytest.mark.filterwarnings("ignore::vec2dag.DataWarning")

# Scores this close, relative to their size, are a tie; the share of tables that may have one.
TIE, TIES = 1e-9, 0.02
SHIFT = 1e6
NOISES = (simulate.gaussian, simulate.laplace, simulate.unequal_gaussian, simulate.exponential)


@pytest.fixture(params=[20, pytest.param(200, marks=pytest.mark.slow)], ids=lambda count: f"{count} tables")
def seeds(request):
    return range(request.param)


def stream(seed, purpose):
    return np.random.default_rng([11, seed, purpose])


def table(seed):
    """Linear data of 4 to 20 columns: up to 12 are searched exactly, more by iterated local search."""
    rng = stream(seed, 0)
    d, k, n = int(rng.choice([4, 6, 9, 12, 15, 20])), float(rng.choice([1, 1.5])), int(rng.choice([40, 100, 400]))
    X = simulate.linear_gaussian(d, k, n, rng, noise=NOISES[seed % len(NOISES)]).X
    # With the digits that are left beside the shift, which then moves every number without rounding it.
    return (X + SHIFT) - SHIFT


@cache
def found_once(seed, criterion):
    return found(table(seed), criterion)


def found(X, criterion="bic-nv"):
    """The best graph, before pruning."""
    return ALIAS(criterion, random_state=0).fit(X).adjacency_raw_


def back(A, order):
    """A graph of the columns ``X[:, order]`` as one of the columns of ``X``."""
    place = np.argsort(order)
    return A[np.ix_(place, place)]


def differing(seeds, change, criterion="bic-nv", class_of=cpdag):
    """Tables whose graph another version of them changes, and how far the two scores are apart, relatively."""
    apart = {}
    for seed in seeds:
        X, A = table(seed), found_once(seed, criterion)
        B = change(X, stream(seed, 1), criterion)
        if not np.array_equal(class_of(A), class_of(B)):
            score = Score(X, criterion=criterion)
            apart[seed] = float(abs(score(A) - score(B)) / abs(score(A)))
    return apart


def other_units(X, rng, criterion):
    return found(X * 10.0 ** rng.uniform(-6, 6, size=X.shape[1]), criterion)


def other_origins(X, rng, criterion):
    shifted = X + SHIFT
    assert np.array_equal(shifted - SHIFT, X)
    return found(shifted, criterion)


def other_rows(X, rng, criterion):
    return found(X[rng.permutation(len(X))], criterion)


def other_columns(X, rng, criterion):
    order = rng.permutation(X.shape[1])
    return back(found(X[:, order], criterion), order)


@pytest.mark.parametrize("change", [other_units, other_origins, other_rows, other_columns])
def test_the_equivalence_class_does_not_change(seeds, change):
    apart = differing(seeds, change)
    assert {seed: gap for seed, gap in apart.items() if gap > TIE} == {}
    assert len(apart) <= TIES * len(seeds)


def test_the_order_of_columns_does_not_matter_under_equal_variances(seeds):
    assert differing(seeds, other_columns, "bic-ev", class_of=np.asarray) == {}


def test_the_order_of_rows_does_not_matter_under_equal_variances(seeds):
    assert differing(seeds, other_rows, "bic-ev", class_of=np.asarray) == {}


@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev"])
def test_single_precision_is_read_as_the_numbers_that_it_holds(seeds, criterion):
    for seed in seeds:
        X = table(seed).astype(np.float32)
        assert np.array_equal(found(X, criterion), found(X.astype(np.float64), criterion)), seed


def test_large_shifts_cost_the_score_no_more_than_the_digits_that_they_hide():
    # A column of scale 1 that is moved by s keeps its values to s 2^-53, and variances to about that.
    for seed in range(20):
        X = stream(seed, 2).standard_normal((200, 4)) @ np.triu(np.ones((4, 4)))
        A = np.triu(np.ones((4, 4)), 1)
        for shift in (1e3, 1e6, 1e9):
            assert float(Score(X + shift)(A)) == pytest.approx(float(Score(X)(A)), abs=50 * shift * 2.0**-53)
