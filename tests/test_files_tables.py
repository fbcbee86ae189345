"""Tables from files: what is understood, and what is refused in which words."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
import time
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vec2dag import Moments
from vec2dag._checks import check_values
from vec2dag.columns import Columns
from vec2dag.files.atomic import InputError, check_writable
from vec2dag.files.streams import TableFile
from vec2dag.files.tables import read_coded, read_table, write_table


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
    with pytest.warns(UserWarning, match="--header reads it as names"):
        assert read_table(put("0,1,2\n3,4,5\n"))[0].shape == (2, 3), "integers above integers may be data"


def test_names_as_pandas_numbers_them(put):
    X, names = read_table(put("0,1,2\n0.5,1.5,2\n"))
    assert (X.tolist(), names) == ([[0.5, 1.5, 2]], ("0", "1", "2"))
    with pytest.warns(UserWarning, match="unnamed first column"):
        X, names = read_table(put(",0,1\n0,7,8\n1,9,10\n"))
    assert (X.tolist(), names) == ([[7, 8], [9, 10]], ("0", "1"))


def _read_noting(path, **options):
    """Values, names, and what the warnings say after the name of the file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, names = read_table(path, **options)
    notes = [str(w.message) for w in caught]
    assert all(note.startswith(f"{path}: ") for note in notes)
    return X.tolist(), names, " ".join(note.removeprefix(f"{path}: ") for note in notes)


@pytest.mark.parametrize(
    ("content", "names", "note"),
    [
        ("2001,2002,2003\n1.5,2,3\n4,5,6.5\n", ("2001", "2002", "2003"), "read as names; --no-header"),
        ("1990,2000\n10,20\n4,5\n", ("1990", "2000"), "read as names; --no-header"),
        ("1,2,3\n0.5,2.5,3\n4.5,5,6\n", ("1", "2", "3"), "read as names; --no-header"),
        ("id,2001,2002\nDE,1.5,2.5\nFR,3.5,2\n", ("2001", "2002"), "read as names; --no-header"),
        ("2001,2002,2003\n2004,20,30\n4,5,6\n", None, "read as values; --header"),
        ("7,2,3\n1.5,2.5,3\n4,5,6.5\n", None, "read as values; --header"),
        ("10,20,35\n1,2,3\n4,5,6\n", None, "read as values; --header"),
        ("3,1,2\n1,2,3\n", None, ""),
        ("1.5,2,3\n1,2.5,3\n", None, ""),
    ],
)
def test_headers_of_numbers(put, content, names, note):
    path = put(content)
    rows = content.count("\n")
    X, found, said = _read_noting(path)
    assert found == (names or ("x0", "x1", "x2"))
    assert len(X) == rows - (names is not None)
    assert note in said
    assert bool(note) == bool(said)
    assert len(_read_noting(path, header=True, missing="keep")[0]) == rows - 1
    if "id" not in content:
        assert len(_read_noting(path, header=False)[0]) == rows


@pytest.mark.parametrize(
    ("content", "options", "values", "note"),
    [
        ("1,5;2,3\n1,25;4\n", {}, [[1.5, 2.3], [1.25, 4]], "commas are read as decimal marks; --decimal ."),
        ("a;b\n1,5;2,3\n1,250;4e-1\n", {}, [[1.5, 2.3], [1.25, 0.4]], "commas are read as decimal marks"),
        ("a;b\n0,125;2\n", {}, [[0.125, 2]], "commas are read as decimal marks"),
        ("a\tb\n1.234,5\t1\n", {}, [[1234.5, 1]], "points as separators of thousands"),
        ('a,b\n"1,234.5","1,234"\n', {}, [[1234.5, 1234]], "commas are read as separators of thousands; --decimal ,"),
        ('a,b\n"1,234,567",2\n', {}, [[1234567, 2]], "commas are read as separators of thousands"),
        ("a;b\n1,234;1.234\n", {"decimal": ","}, [[1.234, 1234]], ""),
        ("a;b\n1,234;1.234\n", {"decimal": "."}, [[1234, 1.234]], ""),
        ("a;b\n1 234;1\u202f234,5\n", {"decimal": ","}, [[1234, 1234.5]], ""),
        ("a;b\n\u22121,5;,5\n", {"decimal": ","}, [[-1.5, 0.5]], ""),
    ],
)
def test_decimal_marks_and_thousands(put, content, options, values, note):
    X, _, said = _read_noting(put(content, "t.tsv" if "\t" in content else "t.csv"), **options)
    assert values == X
    assert note in said
    assert bool(note) == bool(said)


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_any_delimiter_with_either_decimal_mark(put, name, decimal, delimiter):
    values = [[1.5, -22.25, 3.125], [0.5, 4.0, -7.75], [100.5, 2.25, 6.0]]
    cells = [[f"{v}".replace(".", decimal) for v in row] for row in values]
    if decimal == delimiter:
        cells = [[f'"{cell}"' for cell in row] for row in cells]
    body = "\n".join(delimiter.join(row) for row in cells)
    for header in ("", delimiter.join(["a, b" if delimiter != "," else "a", "c", "d"]) + "\n"):
        X, names, _ = _read_noting(put(header + body, name))
        assert values == X
        assert names[1:] == (("c", "d") if header else ("x1", "x2"))


def test_delimiters_can_be_told(put):
    path = put("a:b\n1:2\n")
    assert read_table(path, delimiter=":")[1] == ("a", "b")
    assert read_table(put("a,b c\n1,2 3\n"), delimiter="space", decimal=",")[0].tolist() == [[1.2, 3]]
    assert read_table(put("a\tb\n1\t2\n"), delimiter="tab")[0].tolist() == [[1, 2]]
    assert read_table(put("sep=;\na;b\n1;2\n"))[0].tolist() == [[1, 2]]
    for bad in ("::", "", "\n", '"'):
        with pytest.raises(InputError, match="delimiter must be one character"):
            read_table(path, delimiter=bad)
    with pytest.raises(ValueError, match="decimal='x' is unknown"):
        read_table(path, decimal="x")


def test_comments(put):
    X, names, said = _read_noting(put("# by hand\n#\na,b\n1,2\n"))
    assert (X, names, said) == ([[1, 2]], ("a", "b"), "left out 2 line(s) that begin with #")
    X, names, said = _read_noting(put("# by hand\n# a b\n1 2\n3 4\n", "t.txt"))
    assert (X, names) == ([[1, 2], [3, 4]], ("a", "b"))
    assert "names of the columns from the line above" in said
    assert _read_noting(put("#a,b\n1,2\n")) == ([[1, 2]], ("#a", "b"), ""), "a name may begin so"
    assert _read_noting(put("a,b\n1,2\n# pause\n3,4\n"))[0] == [[1, 2], [3, 4]]
    assert _read_noting(put("a,b\n1,2\n#9,9\n3,4\n"), comment="#")[0] == [[1, 2], [3, 4]]
    assert _read_noting(put("% x\na,b\n1,2\n%9,9\n"), comment="%") == ([[1, 2]], ("a", "b"), "")
    assert np.isnan(_read_noting(put("#N/A,2\n3,4\n"))[0][0][0])
    with pytest.raises(InputError, match="line 5"):
        read_table(put("# x\n\na,b\n1,2\n3\n"))
    with pytest.raises(InputError, match="comment must be one character"):
        read_table(put("a,b\n1,2\n"), comment="//")


@pytest.mark.parametrize(
    ("encoding", "option", "note"),
    [
        ("utf-8-sig", None, ""),
        ("utf-16", None, ""),
        ("utf-32", None, ""),
        ("latin-1", None, "read as cp1252; --encoding"),
        ("utf-16-le", "utf-16-le", ""),
        ("utf-8-sig", "utf-8", ""),
        ("cp1251", "cp1251", ""),
    ],
)
def test_encodings(put, encoding, option, note):
    label = "größe" if encoding != "cp1251" else "рост"
    X, names, said = _read_noting(put(f"{label},b\r\n1,2\r\n".encode(encoding)), encoding=option)
    assert (X, names) == ([[1, 2]], (label, "b"))
    assert note in said
    assert bool(note) == bool(said)


def test_unknown_encodings_are_refused(put):
    for bad in ("nope", "rot13", "hex"):
        with pytest.raises(InputError, match=f"encoding='{bad}' is unknown"):
            read_table(put("a,b\n1,2\n"), encoding=bad)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt"])
def test_packed_text(put, suffix):
    text = b"a\tb\n1\t2\n" if suffix == "tsv" else b"a,b\n1,2\n"
    packed = gzip.compress(text)
    assert _read_noting(put(packed, f"t.{suffix}.gz")) == ([[1, 2]], ("a", "b"), "")
    assert _read_noting(put(packed, f"t.{suffix}")) == ([[1, 2]], ("a", "b"), ""), "its first bytes say what it is"
    with pytest.raises(InputError, match="damaged, or cut off"):
        read_table(put(packed[:-9], f"t.{suffix}.gz"))


def test_row_names_are_left_out_with_a_note(put):
    X, names, said = _read_noting(put("day,a,b\n2020-01-01,1,2\n2020-01-02,3,4\n"))
    assert (X, names) == ([[1, 2], [3, 4]], ("a", "b"))
    assert said.startswith("took 'day', in which no text comes twice, for row names")
    assert _read_noting(put(",a,b\nx,1,2\ny,3,4\n"))[:2] == ([[1, 2], [3, 4]], ("a", "b"))
    assert _read_noting(put("x,1,2\ny,3,4\n"))[:2] == ([[1, 2], [3, 4]], ("x1", "x2")), "no header, row names"
    for quote in ("", '"'):  # as R writes them
        rows = [("a", "b"), ("1", "5", "6"), ("2", "7", "8")]
        text = "\n".join(" ".join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
        assert _read_noting(put(text, "t.txt"))[:2] == ([[5, 6], [7, 8]], ("a", "b"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(put("day,a,b\nx,1,2\ny,3,4\n"), exclude=["day"])[0].tolist() == [[1, 2], [3, 4]]


def test_trailing_delimiters(put):
    assert _read_noting(put("a,b\n1,2,\n2,4,\n"))[:2] == ([[1, 2], [2, 4]], ("a", "b"))
    X, names, said = _read_noting(put("a,b,\n1,2,\n2,4,\n"))
    assert (X, names) == ([[1, 2], [2, 4]], ("a", "b"))
    assert "left out column 3" in said


def test_columns_can_be_excluded(put, tmp_path):
    path = put("a,b,c\n1,x,4\n3,y,5\n")
    X, names = read_table(path, exclude=["b"])
    assert (X.tolist(), names) == ([[1, 4], [3, 5]], ("a", "c"))
    np.savez(tmp_path / "t.npz", X=X, names=names)
    assert read_table(tmp_path / "t.npz", exclude=["a"])[1] == ("c",)
    for options, message in (
        ({"exclude": ["z"]}, "no column 'z'; it has 'a', 'b', 'c'"),
        ({"exclude": ["a", "b", "c"]}, "no column is left"),
        ({"exclude": "a"}, "exclude must be a list of names"),
        ({"exclude": ["a"], "columns": ["a", "c"]}, "'a' both wanted and excluded"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(path, **options)
    with pytest.raises(InputError, match="header is for text"):
        read_table(tmp_path / "t.npz", header=True)


def test_rows_with_missing_values(put, tmp_path):
    path = put("a,b,c\n1,,3\n4,5,6\nNA,?,9\n7,8,inf\n")
    X, _, said = _read_noting(path, missing="drop")
    assert X[0] == [4, 5, 6]
    assert X[1] == [7, 8, np.inf]
    assert len(X) == 2
    assert said == "left out 2 of 4 rows, with missing values in 'a' (1 NaN), 'b' (2 NaN)"
    with pytest.raises(InputError, match=r"'b' \(2 NaN\); --missing drop leaves out the 2 row\(s\) of 4"):
        read_table(path, missing="refuse")
    with pytest.raises(InputError, match=r"no value in any row of 'b'; --exclude 'b' leaves them out"):
        read_table(put("a,b\n1,\n2,\n"), missing="drop")
    with pytest.raises(ValueError, match="missing='guess' is unknown"):
        read_table(path, missing="guess")
    np.save(tmp_path / "t.npy", [[1, np.nan], [2, 3]])
    assert _read_noting(tmp_path / "t.npy", missing="drop")[0] == [[2, 3]]


def _npz_of(path, shape, *, key="X", dtype="|u1"):
    """An archive whose header promises much, with little behind it."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{key}.npy", header.getvalue() + bytes(1000))
    return header.getvalue() + bytes(1000)


def test_sizes_are_looked_at_before_anything_is_unpacked(tmp_path, put):
    message = r"its array of shape \(10000000, 800\) would take 64 GB, more than the 4 GB allowed; --max-memory 64"
    (tmp_path / "t.npy").write_bytes(_npz_of(tmp_path / "t.npz", (10**7, 800)))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(InputError, match=message):
            read_table(tmp_path / name)
    _npz_of(tmp_path / "t.npz", (10**7, 800), key="other")
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "t.npz")
    small = put("a,b\n" + "1,2\n" * 500)
    assert read_table(small)[0].shape == (500, 2)
    with pytest.raises(InputError, match=r"the first 376 rows would take .* the 6e-06 GB allowed; --max-memory"):
        read_table(small, max_memory=6e-6)
    with pytest.raises(InputError, match=r"the file would take .* --max-memory"):
        read_table(small, max_memory=1e-6)
    with pytest.raises(InputError, match=r"more than the 0.001 GB allowed come out of it; --max-memory 0.002"):
        read_table(put(gzip.compress(b"\n" * 2_000_000), "t.csv.gz"), max_memory=1e-3)
    with pytest.raises(ValueError, match="max_memory must be a positive number"):
        read_table(small, max_memory=0)


def test_parquet_is_measured_before_it_is_read(tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": np.zeros(10_000), "b": np.zeros(10_000)}).to_parquet(path)
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match=r"its table of shape \(10000, 2\) would take"):
        read_table(path, max_memory=1e-4)


def test_names_cannot_steer_a_terminal(put):
    evil = "\x1b[31m\x9b\u202e" + "n" * 5000
    for content in (f"a,b\n1,{evil}\n", f"a,{evil}\n1,2\n", f"{evil[1:]},b\nx,1\nx,2\n", f"a,b\n1,2\n{evil}\n"):
        with pytest.raises(InputError) as caught:
            read_table(put(content))
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1500
    with pytest.raises(InputError) as caught:
        read_table(put("a\n", "e\x1b[31m\u202e.csv"))
    assert "e\\x1b[31m\\u202e.csv: only column names" in str(caught.value)
    *_, said = _read_noting(put("a\u202e,b\nx,1\ny,2\n"))
    assert said.isprintable()
    assert read_table(put("a\u202e,b\n1,1\n2,2\n"))[1][0] == "a\u202e", "names stay exact"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_is_read_once(tmp_path, pack):
    text = pack(b"a;b\n1;2\n")
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(text,), daemon=True)
    writer.start()
    assert read_table(tmp_path / "pipe")[0].tolist() == [[1, 2]]
    writer.join(10)
    assert not writer.is_alive()


def test_descriptors_have_no_suffix(tmp_path):
    if not os.path.isdir("/dev/fd"):
        pytest.skip("no /dev/fd here")
    np.save(tmp_path / "t.npy", np.eye(2))
    np.savez(tmp_path / "t.npz", X=np.eye(2))
    (tmp_path / "t.csv").write_text("1 0\n0 1\n")
    for name in ("t.npy", "t.npz", "t.csv"):
        with open(tmp_path / name, "rb") as file:
            assert read_table(f"/dev/fd/{file.fileno()}")[0].tolist() == [[1, 0], [0, 1]]
        ours, theirs = os.pipe()
        os.write(theirs, (tmp_path / name).read_bytes())
        os.close(theirs)
        try:
            assert read_table(f"/dev/fd/{ours}")[0].tolist() == [[1, 0], [0, 1]]
        finally:
            os.close(ours)


def test_the_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert read_table("-")[0].tolist() == [[1, 2]]
    with pytest.raises(InputError, match="the standard input: the file is empty"):
        read_table("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="the standard input is closed"):
        read_table("-")


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
    with pytest.raises(InputError, match="no column 'z'; it has 'id', 'a', 'b'"):
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
        ("a,b,a\n1,2,3\n", r"duplicate column names: 'a' \(2 times\)"),
        (b"a,b\n1,\xff\n", r"'b' \(line 2: '.'\).*not UTF-8 text \(byte 0xff\), read as cp1252; --encoding"),
        (b"a,b\n1,\x81\n", r"not UTF-8 text \(byte 0x81\); --encoding"),
        (b"a,b\n1,2" + b"3" * 70_000 + b"\n\xe9,1\n", r"not UTF-8 text \(byte 0xe9\); --encoding latin-1"),
        ("a,b\n1,2\x00\n", "NUL bytes.*--encoding utf-16-le"),
        ("a,b\n1,male\n", "--exclude 'b' leaves out what is no number"),
        ("id,a\nx,1\nx,2\n", r"'id' \(line 3: 'x'\), which are no row names as they repeat; --exclude 'id'"),
        ("a,day\n1,2020-01-01\n2,2020-01-02\n", r"'day' \(line 2: '2020-01-01'\); --exclude 'day'"),
        ("a;b\n1,234;2\n5,678;3\n", r"'a' \(line 2: '1,234'\).*--decimal"),
        ("a;b\n1,5;0.25\n2,5;3\n", r"'b' \(line 2: '0.25'\).*--decimal"),
        ("a,b\n1,2\n#x,3\n", "--comment '#'"),
        ("My table\na,b\n1,2\n", "line 2 has 2 cell.*is the first line a title"),
        ("a,b\n5,2,3\n9,4,5\n", r"line 2 has 3 cell\(s\), the first line 2"),
        ('a,b\n1,"2\n3,4\n', r"'b' \(line 3: '2\\n3,4\\n'\)"),
        ("a,b\n1,5%\n2,7%\n", r"'b' \(line 2: '5%'\)"),
        (b"PK\x03\x04..[Content_Types].xml", "this is an Excel workbook"),
        (b"%PDF-1.7\n", "this is a PDF document"),
        ("\n<!DOCTYPE html><html>404</html>", "this is an HTML page"),
        ('{"a": [1, 2]}', "this is JSON"),
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


def test_feather(tmp_path, put):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, None], "s": ["x", "y"]})
    for name in ("t.feather", "t.arrow"):
        frame.to_feather(tmp_path / name)
        X, names = read_table(tmp_path / name, exclude=["s"])
        np.testing.assert_array_equal(X, [[1, 0.5], [2, np.nan]])
        assert names == ("a", "b")
    with pytest.raises(InputError, match=r"non-numeric column\(s\) 's' \("):
        read_table(tmp_path / "t.feather")
    with pytest.raises(InputError, match="not a readable Feather file"):
        read_table(put("ARROW1", "bad.feather"))
    with pytest.raises(InputError, match="allowed"):
        read_table(tmp_path / "t.feather", exclude=["s"], max_memory=1e-9)


def test_parquet(tmp_path, put):
    parquet = pytest.importorskip("pyarrow.parquet")
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
    table = pytest.importorskip("pyarrow").table({"a": [1.0, 2.0]})
    for damaged in (b"\xff", b"{,", b"[1]"):
        parquet.write_table(table.replace_schema_metadata({b"pandas": damaged}), tmp_path / "damaged.parquet")
        with pytest.raises(InputError, match=r"damaged\.parquet: not a readable Parquet"):
            read_table(tmp_path / "damaged.parquet")


def test_a_nan_that_signals_is_a_nan(tmp_path):
    # quiet NaNs have the first bit of the fraction, signalling ones others
    np.save(tmp_path / "t.npy", np.array([[0x7F800001, 0x3F800000]], np.uint32).view(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, _ = read_table(tmp_path / "t.npy")
    np.testing.assert_array_equal(X, [[np.nan, 1.0]])


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
        except InputError as error:
            refusal = str(error)
        else:
            refusal = ""
    assert refusal.isprintable()
    assert len(refusal) < 2000
    if refusal:
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


# --- categories -----------------------------------------------------------------------------------------------


def coded_csv(tmp_path, text, **options):
    (tmp_path / "t.csv").write_text(text)
    return read_coded(tmp_path / "t.csv", **options)


def test_text_is_a_category_and_numbers_are_numbers(tmp_path):
    rows = "".join(f"{k},{['low', 'high'][k % 2]},{'True' if k % 3 else 'false'},{k % 4}\n" for k in range(24))
    table = coded_csv(tmp_path, "a,kind,truth,whole\n" + rows)
    assert table.columns.levels == (None, ("high", "low"), (False, True), None)
    assert table.values[:4].tolist() == [[0, 1, 0, 0], [1, 0, 1, 1], [2, 1, 1, 2], [3, 0, 0, 3]]
    named = read_coded(tmp_path / "t.csv", categorical=["whole"])
    assert named.columns.levels == (None, ("high", "low"), (False, True), (0, 1, 2, 3))
    with pytest.raises(InputError, match="no column 'hole'"):
        read_coded(tmp_path / "t.csv", categorical=["hole"])
    with pytest.raises(InputError, match="non-numeric values in 'kind'"):
        read_table(tmp_path / "t.csv")


def test_missing_cells_are_no_levels_and_levels_that_are_lost_are_gone(tmp_path):
    text = "a,kind\n" + "".join(f"{k},{['u', 'v', '', 'NA'][k % 4]}\n" for k in range(12)) + ",w\n"
    table = coded_csv(tmp_path, text)
    assert table.columns.levels == (None, ("u", "v", "w"))
    assert np.isnan(table.values).sum(axis=0).tolist() == [1, 6]
    with pytest.warns(UserWarning, match="left out 7 of 13 rows"):
        complete = read_coded(tmp_path / "t.csv", missing="drop")
    assert complete.columns.levels == (None, ("u", "v"))
    assert complete.values[:, 1].tolist() == [0, 1] * 3


def test_numbers_among_text_are_levels_like_others(tmp_path):
    table = coded_csv(tmp_path, "a,kind\n" + "".join(f"{k},{['7', 'seven'][k % 2]}\n" for k in range(8)))
    assert table.columns.levels == (None, ("7", "seven"))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_types_of_arrow_say_what_is_a_category(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    content = pa.table(
        {
            "a": [0.5, 1.5, 2.5],
            "text": ["1", "2", None],
            "truth": [True, False, True],
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    file = tmp_path / f"t.{suffix}"
    parquet.write_table(content, file) if suffix == "parquet" else feather.write_feather(content, file)
    table = read_coded(file)
    assert table.columns.levels == (None, ("1", "2"), (False, True), ("u", "v"))
    np.testing.assert_array_equal(table.values, [[0.5, 0, 1, 0], [1.5, 1, 0, 1], [2.5, np.nan, 1, 0]])


def column_csv(tmp_path, cells, **options):
    return coded_csv(tmp_path, "a,t\n" + "".join(f"{k % 7},{cell}\n" for k, cell in enumerate(cells)), **options)


@pytest.mark.parametrize("listed", ["auto", ["sex"]])
def test_a_first_column_of_text_is_a_category_unless_it_names_rows(tmp_path, listed):
    rows = [f"{'fm'[k % 2]},{k % 5}\n" for k in range(300)]
    table = coded_csv(tmp_path, "sex,bp\n" + "".join(rows), categorical=listed)
    assert table.columns == Columns(("sex", "bp"), (("f", "m"), None))
    words = coded_csv(tmp_path, "sex,cough\n" + "".join(f"{'fm'[k % 2]},{'yn'[k % 3 % 2]}\n" for k in range(30)))
    assert words.columns.levels == (("f", "m"), ("n", "y"))
    late = "".join(f"place {k % 250},{k}\n" for k in range(900))
    assert len(coded_csv(tmp_path, "where,bp\n" + late).columns.by_name["where"]) == 250
    names = "sex,bp\n" + "".join(f"row {k},{k % 5}\n" for k in range(30))
    if listed == "auto":
        with pytest.warns(UserWarning, match="took 'sex'.*for row names"):
            assert coded_csv(tmp_path, names).columns.names == ("bp",)
    else:
        assert len(coded_csv(tmp_path, names, categorical=listed).columns.by_name["sex"]) == 30


@pytest.mark.parametrize("word", ["unknown", "-", "<20"])
@pytest.mark.parametrize("row", [3, 350])
@pytest.mark.parametrize("step", [1, 0.001])
def test_a_word_among_numbers_is_a_mistake(tmp_path, word, row, step):
    ages = [word if k == row else str(20 + step * (k * 7 % 397)) for k in range(400)]
    with pytest.raises(InputError, match=rf"'t' \(399 of 400; line {row + 2}: '{word}'\).*--categorical 't'"):
        column_csv(tmp_path, ages)
    assert word in read_coded(tmp_path / "t.csv", categorical=["t"]).columns.by_name["t"]
    few = [word if k < 90 else str(k % 3) for k in range(400)]
    assert column_csv(tmp_path, few).columns.levels[1] == tuple(sorted(["0", "1", "2", word]))


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        ([""] * 220 + ["b"] * 100 + ["c"] * 100, ("b", "c")),
        ([""] * 220 + ["True"] * 100 + ["false"] * 100, (False, True)),
        (["007"] * 210 + ["b"] * 100, ("007", "b")),
        (["1"] * 210 + ["0"] * 20 + ["True", "TRUE", "false"], (False, True)),
        (["1", "2"] * 110, None),
    ],
)
def test_the_order_of_rows_decides_nothing(tmp_path, cells, levels):
    for order in (cells, cells[::-1]):
        table = column_csv(tmp_path, order)
        assert table.columns.levels == (None, levels)
        decoded = [{"true": True, "false": False, "1": True, "0": False}.get(c.lower()) for c in order]
        if levels == (False, True):
            assert table.decoded()["t"] == decoded


def test_a_pipe_is_not_read_again(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = "a,t\n" + "1,\n" * 300 + "2,word\n"
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    with pytest.raises(InputError, match=r"'t' \(line 302: 'word'\).*--categorical 't' reads it as categories"):
        read_coded(tmp_path / "pipe")
    writer.join()


LONG = [10**17 + k // 20 for k in range(40)]


@pytest.fixture(params=["csv", "parquet", "feather"])
def with_long_numbers(request, tmp_path):
    """A file with the columns id, of whole numbers of 18 digits, and others that are as large or whole, not both."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    large = 1e20 * np.random.default_rng(0).standard_normal(40)
    frame = pandas.DataFrame({"id": LONG, "large": large, "count": range(40)})
    file = tmp_path / f"long.{request.param}"
    if request.param == "csv":
        frame.to_csv(file, index=False)
    else:
        getattr(frame, f"to_{request.param}")(file)
    return file


def test_whole_numbers_that_floats_cannot_hold_are_named(with_long_numbers):
    file = with_long_numbers
    with pytest.warns(UserWarning, match=f"{file.name}: whole numbers .* or more in 'id' are rounded") as caught:
        read_table(file)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(file, exclude=["id"])
    if file.suffix != ".feather":
        with pytest.warns(UserWarning, match=f"{file.name}: whole numbers .* or more in 'id' are rounded") as caught:
            Moments.of_file(TableFile(file))
        assert len(caught) == 1


def test_levels_are_exact(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("\n".join(["ward,x", *(f"{ward},{k}" for k, ward in enumerate(LONG))]))
    assert len({float(level) for level in LONG}) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_coded(file, categorical=["ward"])
    assert table.columns.by_name == {"ward": [10**17, 10**17 + 1]}
