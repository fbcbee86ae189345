"""What is refused, what is warned about and where, and that both name the columns or the parameter."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LinearRegression

from vec2dag import ALIAS, DataWarning, Moments, Score, prune, simulate
from vec2dag._checks import (
    brief,
    check_names,
    check_values,
    choose,
    data_warnings,
    default_names,
    drop_constant,
    flag,
    function,
    is_constant,
    is_constant_by_moments,
    listing,
    number,
    quoted,
    share,
    shown,
    warn,
    whole_number,
    width,
)
from vec2dag.files.tables import read_table


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
    assert "standardize=True" in scales
    assert data_warnings(X, NAMES, reads_units=False) == [few]
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


# --- constant columns: one definition -------------------------------------------------------------------------


def pair(value, share_of_it):
    """A column of two values that differ by a share of their size, each in half of the rows."""
    return np.where(np.arange(40) % 2, value, value * (1 + share_of_it))


STILL = [pair(value, share_of_it) for value in (0.1, -3e8, 1e-100) for share_of_it in (0.0, 2.0**-52, 5e-15)]
STILL.append(np.zeros(40))
MOVING = [pair(value, share_of_it) for value in (0.1, -3e8, 1e-100) for share_of_it in (1e-13, 1e-9, 1.0)]
MOVING.append(pair(0.0, 1.0) + np.arange(40) * 1e-100)


@pytest.mark.parametrize(("columns", "constant"), [(STILL, True), (MOVING, False)], ids=["still", "moving"])
def test_everybody_agrees_on_what_is_constant(columns, constant):
    good = np.sin(np.arange(40.0))
    for column in columns:
        X = np.column_stack([good, column])
        assert is_constant(X).tolist() == [False, constant]
        assert (drop_constant(X, ("a", "b"))[2] == ("b",)) == constant
        moments = Moments.of(X)
        by_moments = is_constant_by_moments(moments.mean, (moments.factor**2).sum(axis=0) / 40)
        assert by_moments.tolist() == [False, constant]
        edge = np.array([[0, 1], [0, 0]])
        for refusal in (
            partial(check_values, X),
            moments.standardised,
            partial(Score, X),
            simulate.Dataset(X, edge).standardise,
        ):
            if constant:
                with pytest.raises(ValueError, match=r"constant.*'x1'|'x1' constant"):
                    refusal()
            else:
                refusal()
        (verdict,) = prune.explain_cam(X, edge)
        assert (verdict.reason == "node 1 does not vary") == constant


@given(st.floats(1e-100, 1e100), st.integers(-30, 30), st.integers(0, 40), st.integers(2, 6))
def test_what_is_constant_does_not_depend_on_the_unit(value, power, ulps, n):
    column = np.full((n, 1), value)
    column[0] += ulps * np.spacing(value)
    assert is_constant(column) == is_constant(column * 2.0**power) == is_constant(-column)
    assert is_constant(np.full((n, 1), value))


def test_what_is_infinite_is_not_constant_and_what_is_missing_does_not_count():
    first = [np.nan, np.inf, -np.inf, -np.inf, np.inf, 1.0, np.nan]
    second = [np.nan, np.inf, -np.inf, np.inf, np.nan, 1.0, 1.0]
    assert is_constant(np.array([first, second])).tolist() == [False] * 5 + [True] * 2


# --- warnings point to the caller -----------------------------------------------------------------------------

LIBRARY = """
from contextlib import contextmanager, ExitStack
from functools import lru_cache, partial
from vec2dag._checks import warn

def deep(levels):
    if levels == 0:
        warn("deep inside")
    else:
        deep(levels - 1)

@contextmanager
def leaving():
    try:
        yield
    finally:
        deep(2)

def with_contexts():
    with ExitStack() as stack:
        stack.enter_context(leaving())

@lru_cache
def decorated():
    partial(deep, 2)()

def calling_back(function):
    return function()
"""


@pytest.fixture
def inside():
    """Functions of a module that belongs to the library."""
    module = {"__name__": "vec2dag.somewhere.deep"}
    exec(LIBRARY, module)
    return module


@contextmanager
def one_warning_here(line, category=UserWarning):
    """Context in which one warning is given, at that line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    (found,) = caught
    assert issubclass(found.category, category)
    assert (found.filename, found.lineno) == (__file__, line)


def here(offset):
    """The line of the caller, and so many more."""
    return sys._getframe(1).f_lineno + offset


@pytest.mark.parametrize("levels", [0, 1, 30])
def test_warnings_name_the_line_of_the_caller_however_deep(inside, levels):
    with one_warning_here(here(+1)):
        inside["deep"](levels)


def test_warnings_see_through_context_managers_and_decorators(inside):
    with one_warning_here(here(+1)):
        inside["with_contexts"]()
    with one_warning_here(here(+1)):
        inside["decorated"]()


def test_the_caller_is_the_nearest_one(inside):
    """A function of ours that the library calls back is a caller too."""

    def mine():
        inside["deep"](3)

    with one_warning_here(mine.__code__.co_firstlineno + 1):
        inside["calling_back"](mine)
    with one_warning_here(here(+1)):
        warn("from outside of the library")


def test_names_that_begin_alike_are_not_the_library():
    module = {"__name__": "vec2dagger", "warn": warn}
    exec(compile("def f():\n    warn('from a neighbour')\n", "neighbour.py", "exec"), module)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module["f"]()
    assert [(found.filename, found.lineno) for found in caught] == [("neighbour.py", 2)]


def test_warnings_of_the_library_name_this_file(tmp_path, X):
    X[:, 1] = X[:, 0]
    with one_warning_here(here(+1), DataWarning):
        ALIAS(random_state=0).fit(X)
    file = tmp_path / "t.csv"
    file.write_text(",a,b\n0,1.5,2\n1,3.5,4\n")
    with one_warning_here(here(+1)):
        read_table(file)


def test_a_warning_on_leaving_a_context_names_this_file(tmp_path, X, monkeypatch):
    local = Score(X, LinearRegression()).local

    def fails(*_):
        raise OSError("the disk is full")

    with one_warning_here(here(0)), local.stored(tmp_path / "scores.npz"):
        monkeypatch.setattr(type(local.cache), "save", fails)


# --- parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [True, "1", None, np.nan, np.inf, -np.inf, 1j, [1.0], pytest.param(10**400, id="huge")]
)
def test_what_is_no_number_is_refused_by_name(value):
    for check in (number, share, whole_number):
        if check is not whole_number or value != 10**400:
            with pytest.raises(ValueError, match=r"^rate must be"):
                check("rate", value)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.float64, np.int16])
def test_numbers_of_any_kind_are_numbers(kind):
    assert number("rate", kind(3)) == 3.0
    assert type(number("rate", kind(3))) is float


def test_bounds_of_numbers():
    assert number("rate", 0.0, least=0) == 0
    assert share("rate", 0.5) == 0.5
    assert whole_number("steps", np.int64(1)) == 1
    for refusal, message in (
        (lambda: number("rate", 0.0, above=0), "rate must be a positive number, got 0.0"),
        (lambda: number("rate", 5, above=5), "rate must be a finite number above 5, got 5"),
        (lambda: number("rate", -1, least=0), "rate must be a finite number of at least 0, got -1"),
        (lambda: share("rate", 0), "rate must be between 0 and 1, got 0"),
        (lambda: share("rate", 1.0), "rate must be between 0 and 1, got 1.0"),
        (lambda: whole_number("steps", 0), "steps must be a whole number of at least 1, got 0"),
        (lambda: whole_number("steps", 1.0), "steps must be a whole number of at least 1, got 1.0"),
        (lambda: whole_number("steps", 10**9, 1, 10), "steps must be a whole number from 1 to 10, got 1000000000"),
        (lambda: flag("kind", 1), "kind must be True or False, got 1"),
        (lambda: function("kind", int, "x -> y"), "kind must be a function x -> y, got <class 'int'>"),
        (lambda: choose("kind", "c", {"a": 1, "b": 2}), "kind='c' is unknown; allowed: 'a', 'b'"),
        (lambda: choose("kind", ["a"], {"a": 1}), r"kind=['a'] is unknown; allowed: 'a'"),
    ):
        with pytest.raises(ValueError, match=r"(rate|steps|kind)") as caught:
            refusal()
        assert str(caught.value) == message
    assert choose("kind", "b", {"a": 1, "b": 2}) == 2


class Unspeakable:
    """An object that cannot even say what it is."""

    def __repr__(self):
        raise RuntimeError


def test_values_are_shown_on_one_short_line():
    assert brief("a") == "'a'"
    assert brief(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert brief("two\nlines") == "'two\\nlines'"
    assert brief("9" * 5000) == "'" + "9" * 95 + " ..."
    assert brief(10**5000) == "an object of type int"
    assert brief(Unspeakable()) == "an object of type Unspeakable"


def test_names_are_shown_safely():
    assert shown("größe, cm") == "größe, cm"
    assert shown("a\x9bb\r\u202ec") == "a\\x9bb\\r\\u202ec"
    assert len(shown("n" * 5000)) == 60
    assert quoted(["a\x1b"]) == "'a\\x1b'"


def test_the_width_of_a_text_is_that_in_a_terminal():
    assert width("age") == 3
    assert width("größe") == 5
    assert width("gro\u0308ße") == 5, "an accent of its own takes no cell"
    assert width("\u8840\u5727 \uff21") == 7


# --- what is no table of numbers ---

MISSING = pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": [1.0, 2.0, 4.0]})
NO_NUMBERS = {
    "no columns": (np.zeros((5, 0)), r"\(5, 0\)"),
    "no rows": (np.zeros((0, 3)), r"\(0, 3\)"),
    "one axis": (np.arange(5.0), r"\(5,\)"),
    "dates": (np.arange(6).reshape(3, 2).astype("datetime64[D]"), r"dates or times \(datetime64\[D\]\)"),
    "durations": (np.arange(6).reshape(3, 2).astype("timedelta64[s]"), "dates or times"),
    "complex": (np.ones((3, 2)) * 1j, "Complex data not supported"),
    "masked": (np.ma.array(np.arange(6.0).reshape(3, 2), mask=[[0, 1], [0, 0], [1, 0]]), "2 masked value"),
    "missing in a frame": (MISSING, "X contains NaN"),
    "missing in an array of pandas": (np.array([[1, pd.NA], [2, 3], [4, 5]], dtype=object), "X contains NaN"),
    "no columns in a frame": (pd.DataFrame(index=range(3)), "a data frame without any"),
    "missing in an array": (np.array([[1, None], [2, 3], [4, 5]], dtype=object), "X contains NaN"),
    "text": (np.array([["a", "1"], ["2", "3"]]), r"got 'a' \(row 0, column 0\)"),
    "text in a frame": (pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]}), "not numeric: 'a'"),
    "ragged": ([[1, 2], [3]], "rows of different lengths"),
    "too large": ([[10**400, 1], [2, 3]], r"row 0, column 0"),
    "too large for squares": (np.array([[1e150, 1.0], [2.0, 4.0], [3.0, 3.0]]), "too large"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_table_of_numbers_is_refused_alike(kind):
    X, sentence = NO_NUMBERS[kind]
    entrances = [Moments.of, Score, partial(Score, regression="gp")]
    # scikit-learn says it in its own words where there is nothing at all.
    # Text is categories to the estimator.
    entrances += [] if kind in ("no columns", "no rows", "text", "text in a frame") else [ALIAS().fit]
    for entrance in entrances:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=sentence) as caught:
                entrance(X)
        assert len(str(caught.value)) < 300
        assert "\n" not in str(caught.value)


def test_a_mask_that_hides_nothing_is_no_mask(X):
    assert Moments.of(np.ma.array(X, mask=False)).mean.tolist() == Moments.of(X).mean.tolist()


@pytest.mark.parametrize("size", [1e59, 1e-110])
@pytest.mark.parametrize("criterion", ["bic-nv", "bic-ev", "ls"])
def test_scores_are_finite_up_to_the_limits(X, size, criterion):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = ALIAS(criterion, random_state=0).fit(X / np.abs(X).max() * size)
    assert np.isfinite(model.score_)
