"""What is refused, what is warned about, and that both name the columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vec2dag.table import check_names, check_values, data_warnings, default_names, drop_constant, listing


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(100, 4))


NAMES = ("a", "b", "c", "d")


def test_a_good_table_passes_in_silence(X):
    before = X.copy()
    check_values(X)
    check_values(X, NAMES)
    assert data_warnings(X, NAMES) == []
    np.testing.assert_array_equal(X, before)


def test_listing_shortens():
    assert listing("abc") == "a, b, c"
    assert listing((f"v{i}" for i in range(20)), 8) == "v0, v1, v2, v3, v4, v5, v6, v7 and 12 more"
    assert listing("abc", 2) == "a, b, c", "hiding one item saves nothing"


def test_nan_and_infinity_are_counted_by_column(X):
    X[:3, 1] = np.nan
    X[5, 1] = np.inf
    X[7, 3] = -np.inf
    with pytest.raises(ValueError, match=r"NaN or inf.*'b' \(3 NaN, 1 inf\), 'd' \(1 inf\)") as caught:
        check_values(X, NAMES)
    assert "'a'" not in str(caught.value)
    with pytest.raises(ValueError, match="'x1'"):
        check_values(X)


def test_long_lists_of_columns_are_shortened():
    with pytest.raises(ValueError, match=r"'x7' \(5 NaN\) and 12 more"):
        check_values(np.full((5, 20), np.nan))


def test_constant_columns_are_named(X):
    X[:, 2] = 0.1
    with pytest.raises(ValueError, match=r"constant.*'c'"):
        check_values(X, NAMES)
    X[0, 2] = np.nextafter(0.1, 1)
    with pytest.raises(ValueError, match=r"constant.*'c'"):
        check_values(X, NAMES)
    X[0, 2] = 0.1001
    check_values(X, NAMES)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_values_whose_variance_leaves_float64_are_refused(X, factor):
    X[:, 1] *= factor
    with pytest.raises(ValueError, match=r"variance.*'b'.*rescale"):
        check_values(X, NAMES)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 4), "1 sample"),
        ((0, 4), "0 sample"),
        ((9, 1), r"1 feature\(s\)"),
        ((9, 0), r"0 feature\(s\)"),
        ((9,), "2-D"),
    ],
)
def test_too_small_tables_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        check_values(np.ones(shape))


def test_names():
    assert check_names(list("abc"), 3) == ("a", "b", "c")
    assert default_names(2) == ("x0", "x1")
    with pytest.raises(ValueError, match=r"duplicate column names: 'a' \(2 times\)"):
        check_names(["a", "b", "a"], 3)
    with pytest.raises(ValueError, match="column 2 has an empty name"):
        check_names(["a", " "], 2)
    with pytest.raises(ValueError, match=r"per column \(3\), got 2"):
        check_names(["a", "b"], 3)
    with pytest.raises(ValueError, match="strings, got 5 for column 1"):
        check_names([5, "b"], 2)
    with pytest.raises(ValueError, match="control character"):
        check_names(["a\x00", "b"], 2)


def test_drop_constant(X):
    X[:, 1] = 3.0
    before = X.copy()
    kept, names, dropped = drop_constant(X, NAMES)
    np.testing.assert_array_equal(kept, before[:, [0, 2, 3]])
    np.testing.assert_array_equal(X, before)
    assert (names, dropped) == (("a", "c", "d"), ("b",))


def test_duplicates_and_dependences_are_named():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 8)) * [1, 2, 3, 1, 1, 1, 1, 1]
    X[:, 3] = X[:, 0]
    X[:, 4] = np.float32(2 * X[:, 1] - X[:, 2] + 7)
    duplicated, dependent = data_warnings(X, list("abcdefgh"))
    assert "'a' = 'd'" in duplicated
    # which of the three is called the dependent one is a matter of pivoting
    assert "dependent" in dependent
    assert all(f"'{name}'" in dependent for name in "bce")
    assert not any(f"'{name}'" in dependent for name in "adfgh")


def test_a_multiple_is_a_dependence_and_a_strong_correlation_is_not(X):
    X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    assert data_warnings(X, NAMES) == []
    X[:, 1] = 3 * X[:, 0] + 5
    (sentence,) = data_warnings(X, NAMES)
    assert "'b' (from 'a')" in sentence or "'a' (from 'b')" in sentence


@pytest.mark.parametrize("noise", [1e-4, 1e-5])
def test_near_dependence_is_judged_by_residuals_not_by_the_covariance(noise):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 30))
    for j in range(1, 30):
        X[:, j] = X[:, :j].mean(axis=1) + noise * X[:, j]
    assert not any("dependent" in sentence for sentence in data_warnings(X, default_names(30)))


def test_no_more_rows_than_columns():
    X = np.random.default_rng(0).normal(size=(5, 8))
    (sentence,) = data_warnings(X, default_names(8))
    assert "5 rows for 8 columns" in sentence


def test_scales_and_few_values(X):
    X[:, 0] *= 1e5
    X[:, 2] = X[:, 2] > 0
    scales, few = data_warnings(X, NAMES)
    assert "'a'" in scales
    assert "'c'" in scales
    assert "equal-variance" in scales
    assert "'c' (2)" in few


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=8),
        elements=st.floats(width=64) | st.sampled_from([0.0, -0.0, 1.0, 2.0]),
    )
)
def test_any_table_is_refused_with_a_value_error_or_can_be_described(X):
    before = X.copy()
    try:
        check_values(X)
    except ValueError:
        return
    assert all(sentence.endswith(".") for sentence in data_warnings(X, default_names(X.shape[1])))
    np.testing.assert_array_equal(X, before)
