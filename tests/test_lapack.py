"""Cholesky solutions and inverses of triangles against numpy."""

import numpy as np
import pytest

from vec2dag.scores.lapack import positive_solve


@pytest.mark.parametrize(("kind", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-10)])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_equals_numpy(rng, kind, tolerance, n):
    B = rng.standard_normal((n, n))
    K, y = (B @ B.T + n * np.eye(n)).astype(kind), rng.standard_normal(n).astype(kind)
    before = y.copy()
    log_determinant, x = positive_solve(K.copy(), y)
    np.testing.assert_allclose(x, np.linalg.solve(K.astype(float), y), rtol=tolerance, atol=tolerance)
    assert log_determinant == pytest.approx(np.linalg.slogdet(K.astype(float))[1], rel=tolerance)
    assert x.dtype == np.float64
    np.testing.assert_array_equal(y, before)


def test_what_is_not_positive_definite_has_no_solution():
    assert positive_solve(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2)) is None
    assert positive_solve(np.zeros((3, 3), np.float32), np.ones(3, np.float32)) is None


@pytest.mark.parametrize(
    ("K", "y"),
    [
        (np.eye(3), np.ones(2)),
        (np.eye(3), np.ones(3, np.float32)),
        (np.eye(3, dtype=int), np.ones(3, int)),
        (np.eye(6)[::2, ::2], np.ones(3)),
    ],
)
def test_what_lapack_would_misread_is_refused(K, y):
    with pytest.raises(ValueError, match="do not fit"):
        positive_solve(K, y)
