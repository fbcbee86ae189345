"""The theorem and the lemmas of the paper, and the graph functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import acyclic, all_dags, markov_equivalent

from vec2dag import cpdag, dag2vec, is_dag, skeleton, topological_order, vec2dag, vec_dim
from vec2dag.graph import maximally_oriented, reachable

COUNTS = {1: 1, 2: 3, 3: 25, 4: 543}  # number of labelled DAGs, Robinson (1977)


def random_dag(d: int, seed: int) -> np.ndarray:
    return vec2dag(np.random.default_rng(seed).standard_normal(vec_dim(d)))


@pytest.mark.parametrize(("d", "count"), COUNTS.items())
def test_image_is_the_space_of_dags(d, count):
    """Theorem: Im(Vec2DAG) is exactly the set of DAGs."""
    dags = all_dags(d)
    assert len(dags) == count
    reached = {vec2dag(dag2vec(A)).tobytes() for A in dags}
    assert reached == {A.tobytes() for A in dags}
    sampled = vec2dag(np.random.default_rng(0).standard_normal((30_000, vec_dim(d))))
    assert {A.tobytes() for A in sampled} == reached


@given(st.integers(1, 9), st.integers(0, 10_000))
def test_every_vector_is_a_dag(d, seed):
    z = np.random.default_rng(seed).choice([-2.0, -1.0, 0.0, 1.0, 2.0], vec_dim(d))  # with many ties
    assert acyclic(vec2dag(z))


@given(st.integers(2, 8), st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_invariance_to_scaling_and_translation(d, seed, alpha):
    """Lemma 2: Vec2DAG(z) = Vec2DAG(alpha (z + beta)) for admissible beta."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(vec_dim(d))
    p, e = z[:d], z[d:]
    gap = np.array([np.abs(np.delete(p, i) - p[i]).min() for i in range(d)])
    beta = np.concatenate([0.499 * gap, 0.999 * np.abs(e)]) * rng.uniform(-1, 1, vec_dim(d))
    assert np.array_equal(vec2dag(z), vec2dag(alpha * (z + beta)))


@given(st.integers(1, 8), st.integers(0, 10_000), st.floats(1e-6, 1e3))
def test_preimage_inside_any_box(d, seed, epsilon):
    """Lemma 3: within |z|_inf + epsilon of any z there is a vector of any DAG."""
    rng = np.random.default_rng(seed)
    A, z = random_dag(d, seed), 5 * rng.standard_normal(vec_dim(d))
    found = dag2vec(A, epsilon)
    assert np.array_equal(vec2dag(found), A)
    assert np.abs(found).max() < epsilon
    assert np.abs(found - z).max() < np.abs(z).max() + epsilon


def test_direction_follows_increasing_potential():
    z = np.array([0.0, 1.0, 2.0, 1.0, -1.0, 1.0])  # p, then the pairs (0,1), (0,2), (1,2)
    assert vec2dag(z).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_leading_dimensions_and_dtype(rng):
    z = rng.standard_normal((2, 3, vec_dim(4)))
    A = vec2dag(z)
    assert A.shape == (2, 3, 4, 4)
    assert A.dtype == np.uint8
    assert np.array_equal(A[1, 2], vec2dag(z[1, 2]))
    assert vec2dag(z, dtype=bool).dtype == bool
    assert vec2dag(np.empty((0, 3))).shape == (0, 2, 2)


@pytest.mark.parametrize("length", [0, 2, 4, 5, 7])
def test_impossible_lengths_are_named(length):
    with pytest.raises(ValueError, match=f"length {length}"):
        vec2dag(np.zeros(length))


@given(st.integers(1, 7), st.integers(0, 10_000))
def test_is_dag_equals_the_oracle(d, seed):
    A = (np.random.default_rng(seed).random((d, d)) < 0.25).astype(int)
    assert is_dag(A) == acyclic(A)


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_topological_order_puts_parents_first(d, seed):
    A = random_dag(d, seed)
    order = topological_order(A)
    assert sorted(order) == list(range(d))
    position = np.argsort(order)
    assert all(position[i] < position[j] for i, j in np.argwhere(A))


def test_cycles_and_loops_are_refused():
    with pytest.raises(ValueError, match=r"cycle among the nodes \[0, 1\]"):
        topological_order([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="self-loops"):
        dag2vec([[1]])
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        dag2vec([[0]], epsilon=0)
    with pytest.raises(ValueError, match=r"shape \(\.\.\., d, d\)"):
        skeleton([0, 1])


def test_skeleton_is_symmetric():
    assert skeleton([[0, 1], [0, 0]]).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("d", [2, 3, 4])
def test_cpdag_is_the_union_of_the_class(d):
    """By definition: an edge keeps its direction in the CPDAG if every member of the class has that direction."""
    dags = all_dags(d)
    rng = np.random.default_rng(d)
    for A in dags if d < 4 else dags[rng.choice(len(dags), 60, replace=False)]:
        members = [B for B in dags if markov_equivalent(A, B)]
        assert np.array_equal(cpdag(A), np.max(members, axis=0))


@settings(max_examples=30)
@given(st.integers(5, 25), st.integers(0, 10_000))
def test_cpdag_is_constant_under_covered_reversals(d, seed):
    """Reversing an edge i -> j with pa(j) = pa(i) + {i} stays in the class (Chickering 1995)."""
    A = random_dag(d, seed)
    before = cpdag(A)
    for i, j in np.argwhere(A):
        parents = A[:, i].copy()
        parents[i] = 1
        if np.array_equal(parents, A[:, j]):
            B = A.copy()
            B[i, j], B[j, i] = 0, 1
            assert np.array_equal(cpdag(B), before)


@pytest.mark.parametrize("d", [3, 4])
def test_maximal_orientation_is_the_union_of_the_members_that_agree(d):
    """By definition, for every class: directed where all members that agree with the knowledge have that direction."""
    classes: dict[bytes, list[np.ndarray]] = {}
    for A in all_dags(d):
        classes.setdefault(cpdag(A).tobytes(), []).append(A)
    rng = np.random.default_rng(d)
    oriented = refused = 0
    for members in classes.values():
        C = np.max(members, axis=0)
        assert np.array_equal(maximally_oriented(C), C)
        for _ in range(8):
            required = (rng.random((d, d)) < 0.12) & ((C > 0) | (rng.random((d, d)) < 0.05)) & ~np.eye(d, dtype=bool)
            allowed = required | (rng.random((d, d)) > 0.15)
            agreeing = [B for B in members if not (required & (B == 0)).any() and not (~allowed & (B == 1)).any()]
            if not agreeing:
                refused += 1
                with pytest.raises(ValueError, match="no member of the class C agrees"):
                    maximally_oriented(C, required, allowed)
                continue
            M = maximally_oriented(C, required, allowed)
            assert np.array_equal(M, np.max(agreeing, axis=0))
            oriented += (M != C).any()
    assert oriented > d
    assert refused > d


def test_the_fourth_rule_of_meek():
    """a - b, a - c, a - e, c -> e -> b with b and c apart: nothing but the fourth rule gives a -> b."""
    a, b, c, e = range(4)
    C = skeleton(np.array([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]))
    known = np.zeros((4, 4))
    known[c, e] = known[e, b] = 1
    M = maximally_oriented(C, known)
    assert (M[a, b], M[b, a]) == (1, 0)
    assert M[a, c] == M[c, a] == 1


def test_what_maximal_orientation_refuses():
    path = skeleton([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="0 -> 1 becomes part of a v-structure that C does not have"):
        maximally_oriented(path, [[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="a directed cycle follows"):
        maximally_oriented(1 - np.eye(3), [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    with pytest.raises(ValueError, match="0 -> 2 is required and its ends are not adjacent"):
        maximally_oriented(path, [[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"allowed must have the shape of C, \(3, 3\), got \(2, 2\)"):
        maximally_oriented(path, allowed=np.ones((2, 2)))


@given(st.integers(1, 8), st.integers(0, 10_000))
def test_reachable_is_the_sum_of_powers(d, seed):
    A = random_dag(d, seed).astype(float)
    walks = np.linalg.matrix_power(np.eye(d) + A, d) > 0
    assert np.array_equal(reachable(A), walks & ~np.eye(d, dtype=bool))


def test_inputs_are_not_modified(rng):
    z = rng.standard_normal(vec_dim(5))
    A = vec2dag(z).astype(float)
    z_before, A_before = z.copy(), A.copy()
    for function in (dag2vec, is_dag, topological_order, skeleton, cpdag, maximally_oriented, reachable):
        function(A)
    vec2dag(z)
    assert np.array_equal(A, A_before)
    assert np.array_equal(z, z_before)
