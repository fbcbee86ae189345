"""Tables from files: what is understood, and what is refused in which words."""

from __future__ import annotations

import os
import sys
import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vec2dag._checks import check_values
from vec2dag.files.atomic import InputError, check_writable
from vec2dag.files.tables import read_table, write_table


@pytest.fixture
def put(tmp_path):
    """Write a file and return its path."""

    def put_file(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put_file


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("a,b\n1,2\n3,4.5\n", "t.csv"),
        ("a,b\r\n1,2\r\n3,4.5\r\n", "t.csv"),
        ("a,b\r1,2\r3,4.5", "t.csv"),
        (b"\xef\xbb\xbfa,b\n1,2\n3,4.5", "t.csv"),
        ('"a","b"\n"1","2"\n"3","4.5"\n', "t.csv"),
        ("a, b\n\n1, 2\n3, 4.5\n\n", "t.CSV"),
        ("a;b\n1;2\n3;4.5\n", "t.csv"),
        ("a\tb\n1\t2\n3\t4.5\n", "t.tsv"),
        ("a\tb\n1\t2\n3\t4.5\n", "t.txt"),
        ("a,b\n1,2\n3,4.5\n", "t.txt"),
        (" a  b\n 1  2\n 3  4.5 \n", "t.txt"),
    ],
)
def test_text_dialects(put, content, name):
    X, names = read_table(put(content, name))
    assert names == ("a", "b")
    assert X.dtype == np.float64
    assert X.tolist() == [[1, 2], [3, 4.5]]


def test_first_row_of_numbers_is_data(put):
    X, names = read_table(put("1,2\n3,4\n"))
    assert names == ("x0", "x1")
    assert X.tolist() == [[1, 2], [3, 4]]
    assert read_table(put("0,1,2\n3,4,5\n"))[0].shape == (2, 3), "integers above integers may be data"


def test_names_as_pandas_numbers_them(put):
    X, names = read_table(put("0,1,2\n0.5,1.5,2\n"))
    assert (X.tolist(), names) == ([[0.5, 1.5, 2]], ("0", "1", "2"))
    with pytest.warns(UserWarning, match="unnamed first column"):
        X, names = read_table(put(",0,1\n0,7,8\n1,9,10\n"))
    assert (X.tolist(), names) == ([[7, 8], [9, 10]], ("0", "1"))


@pytest.mark.parametrize("start", [0, 1])
def test_unnamed_index_is_dropped_with_a_warning(put, start):
    path = put(f",a,b\n{start},1.5,2\n{start + 1},3,4\n")
    with pytest.warns(UserWarning, match="dropped the unnamed first column"):
        X, names = read_table(path)
    assert (X.tolist(), names) == ([[1.5, 2], [3, 4]], ("a", "b"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, columns=["b"])[0].tolist() == [[2], [4]]


def test_other_unnamed_columns_are_refused(put):
    with pytest.raises(InputError, match="column 1 has an empty name"):
        read_table(put(",a\n5,1\n7,2\n"))
    with pytest.raises(InputError, match="column 2 has an empty name"):
        read_table(put("a,,b\n5,1,2\n"))


def test_quoted_names_keep_commas_and_quotes(put):
    assert read_table(put('"income, net","say ""hi""",größe\n1,2,3\n'))[1] == (
        "income, net",
        'say "hi"',
        "größe",
    )


def test_missing_cells_become_nan_and_are_then_named(put):
    X, names = read_table(put("a,b,c\n1,,NA\n2,3,null\n4,nan,5\n"))
    assert np.isnan(X).tolist() == [[False, True, True], [False, False, True], [False, True, False]]
    with pytest.raises(ValueError, match=r"'b' \(2 NaN\), 'c' \(2 NaN\)"):
        check_values(X, names)


def test_booleans_are_numbers(put):
    assert read_table(put("a,b\nTrue,1\nFALSE,2\n"))[0].tolist() == [[1, 1], [0, 2]]


def test_columns_are_selected_in_the_order_asked(put):
    path = put("id,a,b\nfoo,1,2\nbar,3,4\n")
    X, names = read_table(path, columns=["b", "a"])
    assert (X.tolist(), names) == ([[2, 1], [4, 3]], ("b", "a"))
    with pytest.raises(InputError, match="no column 'z'; the file has 'id', 'a', 'b'"):
        read_table(path, columns=["a", "z"])
    with pytest.raises(InputError, match="duplicate column names: 'a'"):
        read_table(path, columns=["a", "a"])
    with pytest.raises(InputError, match="list of names"):
        read_table(path, columns="ab")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "only column names, no rows"),
        ("a,b\n1,2\n3\n", r"line 3 has 1 cell\(s\), the first line 2"),
        ("a,b\n1,2\n\n3,4,5\n", r"line 4 has 3 cell\(s\)"),
        ("a,b,c\n1,2,x\n3,male,4\n", r"'b' \(line 3: 'male'\), 'c' \(line 2: 'x'\)"),
        ("a,b\n1,2_000\n", r"'b' \(line 2: '2_000'\)"),
        ("a;b\n1;2,5\n", r"'b' \(line 2: '2,5'\)"),
        ("a,b,a\n1,2,3\n", r"duplicate column names: 'a' \(2 times\)"),
        (b"a,b\n1,\xff\n", "not UTF-8 text"),
        ('a,b\n1,"' + "2" * 200_000, "line 2 cannot be read"),
    ],
)
def test_bad_text_is_refused_in_one_sentence(put, content, message):
    path = put(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_bad_paths(tmp_path, put):
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(InputError, match=r"unknown suffix '.xlsx'; allowed are .csv, .tsv, .txt, .npy, .npz, .parquet"):
        read_table(put("a", "t.xlsx"))


def test_npy_and_npz(tmp_path):
    X = np.arange(6).reshape(3, 2)
    np.save(tmp_path / "t.npy", X)
    loaded, names = read_table(tmp_path / "t.npy")
    np.testing.assert_array_equal(loaded, X)
    assert (loaded.dtype, names) == (np.float64, ("x0", "x1"))
    assert read_table(tmp_path / "t.npy", columns=["x1"])[0].tolist() == [[1], [3], [5]]

    path = tmp_path / "t.npz"
    np.savez(path, X=X, B=np.eye(2), names=["u", "v"])
    loaded, names = read_table(path)
    np.testing.assert_array_equal(loaded, X)
    assert names == ("u", "v")
    np.savez(path, table=X, seed=3)
    np.testing.assert_array_equal(read_table(path)[0], X)
    np.savez(path, P=X, Q=X)
    with pytest.raises(InputError, match=r"needs a key 'X' or exactly one .*'P' \(int64 of shape \(3, 2\)\)"):
        read_table(path)
    np.savez(path, X=X, names=["u"])
    with pytest.raises(InputError, match="1 names for 2 columns"):
        read_table(path)


@pytest.mark.parametrize(
    "bad", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 2), complex), np.array([["a"]]), np.zeros((0, 3))]
)
def test_other_arrays_are_refused(tmp_path, bad):
    np.save(tmp_path / "t.npy", bad)
    with pytest.raises(InputError, match="array"):
        read_table(tmp_path / "t.npy")


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a readable NPY"):
        read_table(tmp_path / "t.npy")


def test_parquet_without_its_library_names_the_extra(put, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r'pip install "vec2dag\[data\]"'):
        read_table(put("PAR1", "t.parquet"))


def test_parquet(tmp_path, put):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "t.parquet"
    frame = pandas.DataFrame({"a": [1, 2], "b.c": [0.5, None], "d": [True, False], "s": ["x", "y"]})
    frame.index = pandas.Index([7, 9], name="row")
    frame.to_parquet(path)
    X, names = read_table(path, columns=["d", "a", "b.c"])
    np.testing.assert_array_equal(X, [[1, 1, 0.5], [0, 2, np.nan]])
    assert names == ("d", "a", "b.c")
    with pytest.raises(InputError, match=r"non-numeric column\(s\) 's' \("):
        read_table(path)
    frame.drop(columns="s").to_parquet(path)
    assert read_table(path)[1] == ("a", "b.c", "d"), "the index is no variable"
    with pytest.raises(InputError, match="not a readable Parquet"):
        read_table(put("PAR1PAR1", "bad.parquet"))


CELLS = st.sampled_from(
    ["1", "2.5", "-3e400", "", "NA", "a", "b", '"', '"x,y"', "inf", " ", "1_0", "\ufeff", "0", "\x00"]
)
TEXTS = st.lists(st.lists(CELLS, max_size=4).map(",".join), max_size=5).map(lambda rows: "\n".join(rows).encode())


def _damaged(content: bytes, start: int, junk: bytes) -> bytes:
    return content[:start] + junk + content[start + len(junk) :]


def _array_bytes() -> list[bytes]:
    from io import BytesIO

    contents = []
    for save in (
        np.save,
        lambda f, X: np.savez(f, X=X),
        lambda f, X: np.savez_compressed(f, Y=X, names=["a", "b"]),
    ):
        save(file := BytesIO(), np.arange(6.0).reshape(3, 2))
        contents.append(file.getvalue())
    return contents


DAMAGED = st.builds(_damaged, st.sampled_from(_array_bytes()), st.integers(0, 400), st.binary(max_size=4))


@given(
    content=st.binary(max_size=200) | TEXTS | DAMAGED,
    suffix=st.sampled_from(["csv", "tsv", "txt", "npy", "npz"]),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_table_or_an_input_error(tmp_path, content, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            X, names = read_table(path)
        except InputError:
            return
    assert X.dtype == np.float64
    assert X.ndim == 2
    assert min(X.shape) > 0
    assert len(names) == X.shape[1] == len(set(names))


def test_a_large_csv_takes_seconds(tmp_path):
    path = tmp_path / "big.csv"
    block = "\n".join(",".join(f"{v:.6f}" for v in row) for row in np.random.default_rng(0).normal(size=(500, 50)))
    path.write_text("\n".join([",".join(f"v{i}" for i in range(50)), *[block] * 40]))
    start = time.perf_counter()
    X, _ = read_table(path)
    # a fifth of 100,000 rows; the bound is generous, for loaded machines
    assert time.perf_counter() - start < 3
    assert X.shape == (20_000, 50)
    assert X.flags.c_contiguous
    assert X.flags.writeable


def test_reading_text_needs_no_data_frame_library(put, monkeypatch):
    for library in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, library, None)
    assert read_table(put("a,b\n1,2\n"))[0].tolist() == [[1, 2]]


def test_check_writable(tmp_path, put):
    folder = check_writable(tmp_path / "new" / "deeper")
    assert folder.is_dir()
    assert list(folder.iterdir()) == []
    file = put("x", "file")
    for bad in (file, file / "below"):
        with pytest.raises(InputError, match="cannot write to the folder"):
            check_writable(bad)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_check_writable_finds_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        check_writable(tmp_path)


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.just(3)), elements=st.floats(width=64)),
    st.lists(
        st.sampled_from(["a", "b c", 'q"uote', "x,y", "größe", "line\nbreak", "cr\rhere"]),
        min_size=3,
        max_size=3,
        unique=True,
    ),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tables_come_back_to_the_last_bit(tmp_path, X, names):
    write_table(tmp_path / "t.csv", X, names)
    values, found = read_table(tmp_path / "t.csv")
    assert found == tuple(names)
    np.testing.assert_array_equal(values, X)
    np.testing.assert_array_equal(np.signbit(values[~np.isnan(X)]), np.signbit(X[~np.isnan(X)]))
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"], "no temporary file is left"


def test_tables_need_good_names(tmp_path):
    with pytest.raises(ValueError, match="duplicate column names: 'a'"):
        write_table(tmp_path / "t.csv", np.zeros((2, 2)), "aa")
    assert not list(tmp_path.iterdir())
