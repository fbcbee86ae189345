"""Descents where regressions take their time: what a quick look at places saves, and where it ends all the same."""

import numpy as np
import pytest
from oracles import OnStatistics

from vec2dag import Knowledge, Score, simulate
from vec2dag.search.descent import LocalDescent


def costly(seed, criterion="bic-nv", d=9, k=4):
    """A score of linear regressions that claim to take their time."""
    X = simulate.linear_gaussian(d=d, k=k, n=300, rng=np.random.default_rng(seed)).X
    return Score(None, OnStatistics(Score(X).regression), criterion, n_jobs=1)


@pytest.mark.parametrize("criterion", ["bic-nv", "ls"])
@pytest.mark.parametrize("seed", range(6))
def test_a_quick_descent_ends_with_parents_that_no_single_change_improves(criterion, seed):
    score = costly(seed, criterion)
    found, _ = LocalDescent(score).descend(np.random.default_rng(seed).permutation(9))
    assert found.score == pytest.approx(float(score(found.A)))
    place = np.argsort(found.order)
    assert not found.A[place[:, None] > place].any()
    for j, i in zip(*np.nonzero(place[:, None] < place), strict=True):
        changed = found.A.copy()
        changed[j, i] ^= 1
        assert score(changed) <= found.score + 1e-9


def test_a_quick_descent_makes_fewer_regressions():
    fits = []
    for thorough in (False, True):
        searched = [costly(seed) for seed in range(6)]
        for seed, score in enumerate(searched):
            LocalDescent(score).descend(np.random.default_rng(seed).permutation(9), thorough=thorough)
        fits.append(sum(score.local.fits for score in searched))
    assert fits[0] < 0.8 * fits[1]


def test_a_quick_descent_keeps_to_what_is_known():
    known = Knowledge(required=[("x3", "x0")], forbidden=[("x1", "x2")], max_parents=2)
    score = costly(0).under(known)
    found, _ = LocalDescent(score).descend(np.arange(9))
    assert score.constraints.permits(found.A)
    assert found.A[3, 0] == 1
    assert found.A.sum(axis=0).max() == 2
