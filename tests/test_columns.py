"""What columns are: numbers, categories, their levels and codes."""

import warnings
from functools import partial

import numpy as np
import pytest

from vec2dag import ALIAS, bootstrap
from vec2dag.columns import Coded, Columns, coded, has_categories

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")


def frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "number": rng.standard_normal(n),
            "text": rng.choice(["u", "v", "w"], n),
            "declared": pandas.Categorical(rng.choice([3, 1], n), categories=[3, 2, 1]),
            "truth": rng.random(n) < 0.5,
            "numbers as text": rng.choice(["1", "2.5"], n),
        }
    )


def test_types_say_what_a_column_is():
    table = coded(frame())
    assert table.columns.levels == (None, ("u", "v", "w"), (3, 1), (False, True), None)
    assert table.columns.categorical.tolist() == [False, True, True, True, False]
    assert table.columns.by_name == {"text": ["u", "v", "w"], "declared": [3, 1], "truth": [False, True]}
    assert set(table.values[:, 4]) == {1.0, 2.5}


def test_codes_are_places_of_levels():
    X = frame()
    table = coded(X)
    cells = table.decoded()
    assert cells["text"] == X["text"].tolist()
    assert cells["declared"] == X["declared"].tolist()
    assert cells["truth"] == X["truth"].tolist()
    np.testing.assert_array_equal(table.columns.encode(X), table.values)
    # another order of columns, and other rows, mean the same
    np.testing.assert_array_equal(table.columns.encode(X[X.columns[::-1]].iloc[5:]), table.values[5:])


def test_polars_frames_mean_the_same():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(
        {
            "number": [1.0, 2.0, 3.0],
            "enum": polars.Series(["x", "y", "x"], dtype=polars.Enum(["y", "x", "z"])),
            "categorical": polars.Series(["b", "a", "b"], dtype=polars.Categorical),
            "text": ["p", None, "q"],
            "truth": [True, None, False],
        }
    )
    table = coded(X)
    assert table.columns.levels == (None, ("y", "x"), ("a", "b"), ("p", "q"), (False, True))
    np.testing.assert_array_equal(table.values[:, 1:3], [[1, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(np.isnan(table.values).sum(axis=0), [0, 0, 0, 1, 1])


def test_missing_cells_are_nan_and_no_level():
    X = pandas.DataFrame({"a": ["x", None, "y", np.nan], "b": pandas.array([True, None, False, True], dtype="boolean")})
    table = coded(X)
    assert table.columns.levels == (("x", "y"), (False, True))
    np.testing.assert_array_equal(table.values, [[0, 1], [np.nan, np.nan], [1, 0], [np.nan, 1]])
    assert table.decoded()["a"] == ["x", None, "y", None]


def test_arrays_of_objects_have_columns_of_their_own_kind():
    table = coded(np.array([[1, "a"], [2.5, "b"], [3, "a"]], dtype=object))
    assert table.columns == Columns(("x0", "x1"), (None, ("a", "b")))
    assert coded([[1, "a"], [2, "b"]]).columns.levels == (None, ("a", "b"))
    assert not has_categories(np.array([[1, 2.5], [3, 4]], dtype=object))
    assert has_categories(np.ones((3, 2), dtype=bool))


@pytest.mark.parametrize("categorical", [["k"], [1], (np.int64(1),)])
def test_columns_of_whole_numbers_can_be_listed(categorical):
    table = coded(np.array([[0.5, 7], [1.5, 3], [2.5, 7]]), categorical, names=["x", "k"])
    assert table.columns.levels == (None, (3, 7))
    assert table.values[:, 1].tolist() == [1, 0, 1]


@pytest.mark.parametrize("categorical", ["all", 3, ["z"], [2], [-1], [True], [1.0]])
def test_columns_that_do_not_exist_cannot_be_listed(categorical):
    with pytest.raises(ValueError, match="categorical"):
        coded(np.array([[0.5, 7], [1.5, 3]]), categorical, names=["x", "k"])


def test_text_that_names_rows_is_no_category():
    n = 30
    X = frame(n).assign(id=[f"row {k}" for k in range(n)])
    with pytest.raises(ValueError, match=r"differs from row to row in 'id' \(30, such as 'row 0'\)"):
        coded(X)
    assert len(coded(X, ["id"]).columns.by_name["id"]) == n
    days = [f"2020-01-{1 + k % 12:02}" for k in range(n)]
    with pytest.raises(ValueError, match="'day'"):
        coded(frame(n).assign(day=days))


def test_what_is_neither_is_refused_by_name():
    X = frame(3).assign(when=pandas.date_range("2020-01-01", periods=3), what=[[1], [2], [3]])
    with pytest.raises(
        ValueError,
        match=r"not numbers or categories: 'when' \(datetime64.*; days since the first are numbers\), 'what' \(list, ",
    ):
        coded(X)
    X = frame(3).assign(long=pandas.to_timedelta([1, 2, 3], unit="s"), plane=[1j, 2j, 3j])
    with pytest.raises(ValueError, match=r"'long' \(timedelta64.*seconds.*'plane' \(complex128; give real and imag"):
        coded(X)


def test_intervals_and_other_objects_are_levels_where_the_type_says_so():
    x = np.array([1.0, 9.0, 5.0, 2.0, np.nan])
    X = pandas.DataFrame({"cut": pandas.cut(x, [0, 3, 6, 10]), "y": x})
    X["day"] = pandas.Categorical(pandas.to_datetime(["2020-01-02", None, "2020-01-01", "2020-01-02", "2020-01-01"]))
    table = coded(X)
    assert table.columns.levels[0] == tuple(map(str, X["cut"].cat.categories))
    np.testing.assert_array_equal(table.values[:, 0], [0, 2, 1, 0, np.nan])
    np.testing.assert_array_equal(table.values[:, 2], [1, np.nan, 0, 1, 0])
    np.testing.assert_array_equal(table.columns.encode(X), table.values)


def test_a_word_among_numbers_is_a_mistake():
    ages = [20 + k % 50 for k in range(400)]
    for cells in ([*ages[:7], "unknown", *ages[8:]], [*map(str, ages[:7]), "unknown", *map(str, ages[8:])]):
        X = frame(400).assign(age=pandas.Series(cells, dtype=object))
        with pytest.raises(ValueError, match=r"'age' \(399 of 400; row 7: 'unknown'\); give None or NaN"):
            coded(X)
        assert "unknown" in coded(X, ["age"]).columns.by_name["age"]
        assert "unknown" in coded(X.astype({"age": "category"})).columns.by_name["age"]


def test_a_lazy_frame_is_told_to_become_a_table():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"X\.collect\(\)"):
        ALIAS().fit(polars.LazyFrame({"a": [1.0, 2.0, 4.0], "b": [2.0, 1.0, 0.0]}))


def test_text_is_not_numeric():
    with pytest.raises(ValueError, match="not numeric: 'text'"):
        coded(frame(), None)


def test_levels_that_are_not_known_are_refused():
    known = coded(frame()).columns
    with pytest.raises(ValueError, match=r"column 'text' has the level\(s\) 'z'.*it had 'u', 'v', 'w'"):
        known.encode(frame().assign(text="z"))
    with pytest.raises(ValueError, match="no column 'text'"):
        known.encode(frame().drop(columns="text"))


def test_numbers_and_categories_become_each_other():
    table = coded(frame()[["declared", "truth"]])
    numbers = table.as_numbers()
    assert set(numbers.values[:, 0]) == {1.0, 3.0}
    assert set(numbers.values[:, 1]) == {0.0, 1.0}
    assert not numbers.columns.categorical.any()
    assert coded(frame()).as_numbers() is None
    again = numbers.as_categories(5)
    assert again.columns.levels == ((1, 3), (0, 1))
    with pytest.raises(ValueError, match=r"more than 5 different numbers in 'number' \(40\)"):
        coded(frame()[["number"]]).as_categories(5)


def test_missing_numbers_stay_missing():
    table = Coded(np.array([[0.0], [np.nan], [1.0]]), Columns(("a",), ((False, True),)))
    np.testing.assert_array_equal(table.as_numbers().values, [[0.0], [np.nan], [1.0]])
    np.testing.assert_array_equal(table.as_numbers().as_categories(2).values, [[0.0], [np.nan], [1.0]])


def test_a_table_is_not_modified():
    X = frame()
    before = X.copy(deep=True)
    coded(X, ["number"])
    pandas.testing.assert_frame_equal(X, before)


LONG = [10**17 * (1 + k % 7) + k for k in range(40)]


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(LONG),
        pandas.Series([-k for k in LONG]),
        pandas.Series([None, *LONG[1:]], dtype="Int64"),
        pandas.Series(LONG, dtype="uint64"),
        pandas.Series([*LONG[:-1], None], dtype=object),
        polars.Series([None, *LONG[1:]]),
    ],
)
def test_whole_numbers_that_floats_cannot_hold_are_warned_of_once(column):
    x = np.random.default_rng(0).standard_normal((2, 40))
    frame = (polars if isinstance(column, polars.Series) else pandas).DataFrame(
        {"x": x[0], "id": column, "y": 1e20 * x[1]}
    )
    for fit in (ALIAS(missing="drop").fit, partial(bootstrap, ALIAS(missing="drop"), n_samples=2, n_jobs=1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(frame)
        told = [str(w.message) for w in caught if "rounded to float64" in str(w.message)]
        assert len(told) == 1
        assert "or more in 'id' are rounded" in told[0]


def test_whole_numbers_that_floats_can_hold_are_not_warned_of():
    x = np.random.default_rng(0).standard_normal((2, 40))
    frame = pandas.DataFrame({"x": x[0], "id": [2**53 - 1 - 10**14 * k for k in range(40)], "y": 1e20 * x[1]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ALIAS().fit(frame)
        ALIAS(categorical=["id"]).fit(frame.assign(id=[LONG[k % 2] for k in range(40)]))
    assert not any("rounded" in str(w.message) for w in caught)
