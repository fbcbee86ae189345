"""Tables that are read piece by piece: the same statistics to the last bit, and the same understanding of files."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vec2dag
from vec2dag import ALIAS, Moments, bootstrap, simulate
from vec2dag.cli import main
from vec2dag.confidence.resampling import Blocks
from vec2dag.files import streams, tables
from vec2dag.files.atomic import InputError
from vec2dag.files.streams import TableFile, rechunked
from vec2dag.files.tables import read_table

SMALL = ("--max-memory", "1e-9")  # so that every file is large


def same(a, b):
    """To the last bit."""
    assert a.names == b.names
    assert a.n == b.n
    assert np.array_equal(a.mean, b.mean)
    assert np.array_equal(a.factor, b.factor)


def close(a, b, tolerance=1e-12):
    """Up to rounding, in units of the columns."""
    size = np.sqrt((b.factor**2).sum(axis=0))
    assert a.n == pytest.approx(b.n, rel=1e-14)
    assert np.abs((a.factor.T @ a.factor - b.factor.T @ b.factor) / np.outer(size, size)).max() < tolerance
    assert np.abs(a.mean - b.mean).max() <= 4e-16 * np.abs(b.mean).max() + tolerance * size.max()


@pytest.fixture
def X(rng):
    return rng.standard_normal((9001, 4)) @ rng.standard_normal((4, 4)) + [0.0, 1.0, -5.0, 100.0]


@pytest.fixture
def parquet(tmp_path):
    """Write columns by name to a Parquet file."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    def write(columns, **options):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet", **options)
        return tmp_path / "t.parquet"

    return write


@pytest.fixture
def put(tmp_path):
    def write(content, name="t.csv"):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / name

    return write


def text(X, names="abcd", **options):
    return "\n".join([",".join(names), *(",".join(map(repr, row)) for row in np.asarray(X).tolist())]) + "\n"


@pytest.fixture
def run(capsys):
    def run_main(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run_main


# --- statistics -----------------------------------------------------------------------------------------------


def test_moments_are_those_of_the_definition(X):
    m = Moments.of(X, list("abcd"))
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(m.factor.T @ m.factor, centred.T @ centred, rtol=1e-11, atol=1e-8)
    np.testing.assert_allclose(m.mean, X.mean(axis=0), rtol=1e-13, atol=1e-13)
    assert np.array_equal(m.factor, np.triu(m.factor))
    assert (np.diagonal(m.factor) >= 0).all()
    assert repr(m) == "<Moments of 9,001 rows and 4 columns: 'a', 'b', 'c', 'd'>"


def test_digits_survive_means_that_are_1e8_times_the_deviations(rng):
    # Multiples of 2^-20 about 2^27: sums of them and of their products are exact in integers.
    steps = rng.integers(-(2**21), 2**21, (20_000, 3))
    X = 2.0**27 + steps / 2.0**20
    exact = [[int(a) for a in row] for row in steps.T @ steps]
    sums = [int(a) for a in steps.sum(axis=0)]
    n = len(X)
    scatter = np.array([[(n * exact[i][j] - sums[i] * sums[j]) / n / 2.0**40 for j in range(3)] for i in range(3)])
    m = Moments.of(X)
    assert np.abs(m.factor.T @ m.factor - scatter).max() < 1e-12 * scatter.max()


def test_nearly_dependent_columns_keep_what_a_covariance_loses(rng):
    a, b = rng.standard_normal((2, 50_000))
    m = Moments.of(np.column_stack([a, a + 1e-10 * b]))
    # The residual deviation, 1e-10 of the column: its square is below the rounding of a covariance.
    assert m.factor[1, 1] / np.sqrt(m.n) == pytest.approx(1e-10 * b.std(), rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_pieces_of_any_size_make_the_same_chunks(seed, cuts):
    rows = np.random.default_rng(seed).standard_normal((300, 3))
    whole = np.split(rows, sorted(cuts))
    for size in (1, 7, 300, 1000):
        chunks = [chunk.copy() for chunk in rechunked(iter(whole), size)]
        assert np.array_equal(np.vstack(chunks), rows)
        assert {len(chunk) for chunk in chunks[:-1]} <= {size}


@pytest.mark.parametrize("chunk", [1, 5000, 2**14])
def test_chunks_of_other_sizes_differ_by_rounding(X, chunk, monkeypatch):
    whole = Moments.of(X + 1e8)
    monkeypatch.setattr("vec2dag.moments.BLOCK", 7)
    monkeypatch.setattr("vec2dag.moments.CHUNK", chunk)
    close(Moments.of(X + 1e8), whole)


@pytest.mark.parametrize("kind", ["f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "f2"])
def test_every_real_type_is_summed_in_double_precision(rng, kind):
    X = (rng.integers(0, 2 if kind == "?" else 100, (6000, 3))).astype(kind)
    before = X.copy()
    same(Moments.of(X), Moments.of(X.astype(np.float64)))
    same(Moments.of(np.asfortranarray(X)), Moments.of(X))
    assert np.array_equal(X, before)
    assert X.dtype == before.dtype


def test_large_tables_are_not_copied_whole(rng):
    import tracemalloc

    X = np.zeros((1_000_000, 8), np.float32)
    X[:] = rng.standard_normal((1000, 8)).repeat(1000, axis=0)
    tracemalloc.start()
    try:
        Moments.of(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * X.size / 4


def test_any_number_of_threads_gives_the_same_bits(rng, monkeypatch):
    X = rng.standard_normal((60_000, 6))
    monkeypatch.setattr("vec2dag.moments.CHUNK", 2**14)
    same(Moments.of(X, n_jobs=1), Moments.of(X, n_jobs=2))
    same(Moments.of(X, n_jobs=1), Moments.of(X, n_jobs=5))


def test_a_float32_table_and_moments_can_be_fitted(rng):
    X = simulate.linear_gaussian(d=4, k=1, n=500, rng=rng).X
    small = X.astype(np.float32)
    fits = [ALIAS(random_state=0).fit(data) for data in (small, small.astype(float), Moments.of(small))]
    assert all(np.array_equal(fit.adjacency_matrix_, fits[0].adjacency_matrix_) for fit in fits)
    assert ALIAS(random_state=0).fit((10 * X).astype(int)).n_samples_ == 500


# --- weights --------------------------------------------------------------------------------------------------


def test_a_weight_is_a_number_of_rows(X, rng):
    w = rng.integers(0, 4, len(X))
    close(Moments.of(X, weights=w), Moments.of(X.repeat(w, axis=0)))
    assert isinstance(Moments.of(X, weights=w).n, int)
    half = Moments.of(X, weights=w / 4)
    assert half.n == w.sum() / 4
    np.testing.assert_allclose(half.covariance, Moments.of(X, weights=w).covariance, rtol=1e-12)
    same(Moments.of(X, weights=np.ones(len(X), bool)), Moments.of(X, weights=np.ones(len(X))))


def test_ones_as_weights_change_nothing_but_rounding(X):
    close(Moments.of(X, weights=np.ones(len(X))), Moments.of(X))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0], r"weights must be from 0 to 1e\+15, got -2\.0"),
        ([1.0, np.nan, 1.0], r"from 0 to 1e\+15, got nan"),
        ([1.0, np.inf, 1.0], r"from 0 to 1e\+15, got inf"),
        ([1.0, 1.0], r"shape \(3,\), one for every row of X, got \(2,\)"),
        ([0.0, 0.0, 0.0], "no row, or none of positive weight"),
        (["a", "b", "c"], "weights must hold numbers"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        Moments.of([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]], weights=weights)


def test_weights_are_a_column_of_a_file(X, put, parquet):
    w = np.arange(len(X)) % 3
    expected = Moments.of(X, list("abcd"), weights=w)
    table = np.column_stack([X[:, :2], w, X[:, 2:]])
    path = put(text(table, ["a", "b", "w", "c", "d"]))
    same(Moments.from_csv(path, weights="w"), expected)
    same(Moments.from_csv(path, columns=["a", "c"], weights="w"), Moments.of(X[:, [0, 2]], ["a", "c"], weights=w))
    same(Moments.from_csv(path, columns=["w", "a", "c"], weights="w"), Moments.of(X[:, [0, 2]], ["a", "c"], weights=w))
    same(Moments.from_parquet(parquet(dict(zip("abwcd", table.T, strict=True))), weights="w"), expected)
    with pytest.raises(ValueError, match="weights='v'"):
        Moments.from_csv(path, weights="v")
    with pytest.raises(InputError, match="only one"):
        Moments.from_csv(path, columns=["w"], weights="w")
    with pytest.raises(InputError, match=r"weights must be from 0 to 1e\+15, got -"):
        Moments.from_csv(path, weights="a")


# --- files ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["pyarrow", "own"])
def parser(request, monkeypatch):
    """Either parser of text."""
    if request.param == "own":
        monkeypatch.setattr(streams, "_start", lambda file, table: None)
    else:
        pytest.importorskip("pyarrow")
    return request.param


def test_a_file_has_the_moments_of_its_table(X, put, parquet, parser, monkeypatch):
    monkeypatch.setattr(streams, "_BYTES", 1 << 14)
    monkeypatch.setattr(streams, "_ROWS", 100)
    path, expected = put(text(X)), Moments.of(X, list("abcd"))
    same(Moments.from_csv(path), expected)
    same(Moments.from_csv(path, n_jobs=1), expected)
    same(Moments.from_csv(put(gzip.compress(text(X).encode()), "t.csv.gz")), expected)
    same(Moments.from_csv(path, columns=["d", "a"]), Moments.of(X[:, [3, 0]], ["d", "a"]))
    same(Moments.from_csv(path, exclude=["b"]), Moments.of(X[:, [0, 2, 3]], list("acd")))
    same(Moments.from_parquet(parquet(dict(zip("abcd", X.T, strict=True)), row_group_size=777)), expected)


def test_parquet_of_other_types(parquet):
    pa = pytest.importorskip("pyarrow")
    i = np.arange(6000)
    columns = {
        "f": (i % 7).astype(np.float32),
        "i": (i % 5).astype(np.int8),
        "u": (i % 3).astype(np.uint64),
        "b": i % 2 == 0,
        "d": pa.array(i % 11).cast(pa.decimal128(21, 1)),
    }
    X = np.column_stack([i % 7, i % 5, i % 3, i % 2 == 0, i % 11])
    same(Moments.from_parquet(parquet(columns)), Moments.of(X, list("fiubd")))
    same(Moments.from_parquet(parquet(columns), columns=["u", "f"]), Moments.of(X[:, [2, 0]], ["u", "f"]))


# Every one is a table of at least two columns, and means something to our own reader.
MESSY = {
    "plain": "a,b\n1,2\n3,5\n4,4\n",
    "no header": "1.5,2\n3.5,5\n4.5,4\n",
    "byte order mark": "\ufeffa,b\n1,2\n3,5\n4,4\n",
    "carriage returns": "a,b\r\n1,2\r\n3,5\r\n4,4\r\n",
    "old line ends": "a,b\r1,2\r3,5\r4,4\r",
    "semicolons and commas": "a;b\n1,5;2\n3,5;5\n4,25;4\n",
    "tabs": "a\tb\n1\t2\n3\t5\n4\t4\n",
    "bars": "a|b\n1|2\n3|5\n4|4\n",
    "announced separator": "sep=;\na;b\n1;2\n3;5\n4;4\n",
    "blanks": "a b\n1 2\n3  5\n4 4\n",
    "blanks around": "a, b\n 1 , 2\n3,5 \n4, 4\n",
    "quotes": '"a","b"\n"1","2"\n3,"5"\n4,4\n',
    "a name with a line end": '"a\nx",b\n1,2\n3,5\n4,4\n',
    "comments": "# made by hand\n#\na,b\n1,2\n# and\n3,5\n4,4\n",
    "names in a comment": "# a,b\n1,2\n3,5\n4,4\n",
    "empty lines": "\na,b\n\n1,2\n\n3,5\n   \n4,4\n\n",
    "delimiters at the ends": "a,b\n1,2,\n3,5,\n4,4,\n",
    "an unnamed empty column": "a,b,\n1,2,\n3,5,\n4,4,\n",
    "row names": "id,a,b\nx,1,2\ny,3,5\nz,4,4\n",
    "an index as by pandas": ",a,b\n0,1,2\n1,3,5\n2,4,4\n",
    "row numbers as by R": "a,b\n1,1,2\n2,3,5\n3,4,4\n",
    "true and false": "a,b\n1,true\n3,False\n4,TRUE\n",
    "thousands": 'a,b\n"1,000,000",2\n3,5\n4,4\n',
    "blank thousands": "a,b\n1 000,2\n3,5\n4,4\n",
    "a typographic minus": "a,b\n\u22121,2\n3,5\n4,4\n",
    "a plus": "a,b\n+1,2\n3,5\n4,4\n",
    "points alone": "a,b\n1.,.2\n3,5\n4,4\n",
    "exponents": "a,b\n1e-3,2E5\n3,5\n4,4\n",
    "long numbers": "a,b\n0.1000000000000000055511151231257827,123456789012345678901234567890\n3,5\n4,4\n",
    "years": "2001,2002\n1.5,2.5\n3.5,5.5\n4.5,4.5\n",
    "another alphabet": "größe,b\n1,2\n3,5\n4,4\n",
}
GAPS = {
    f"missing: {word or 'nothing'}": f"a,b\n1,2\n{word},5\n4,4\n7,1\n"
    for word in ("", "NA", "na", "N/A", "#N/A", "<NA>", "NULL", "Null", "None", "NaN", "nan", "?", ".", " NA ", '""')
}


def understood(read):
    """Numbers and names, and what was said, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            X, names = read()
        except InputError as error:
            return str(error)
    return X.tolist(), names, sorted(str(w.message) for w in caught)


def whole(path, **options):
    """All rows of a file that is read piece by piece, as `read_table` returns them."""
    options, missing = {k: v for k, v in options.items() if k != "missing"}, options.get("missing", "refuse")
    with TableFile(path, tables.Options(**options), missing).opened() as stream:
        X = np.vstack([np.empty((0, len(stream.names))), *stream.chunks()])
        for note in stream.notes:
            warnings.warn(f"{stream.name}: {note}", UserWarning, stacklevel=1)
    return X, stream.names


@pytest.mark.parametrize("case", [*MESSY, *GAPS])
@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_text_is_understood_as_by_read_table(case, missing, put, parser):
    path = put({**MESSY, **GAPS}[case])
    expected = understood(lambda: read_table(path, missing=missing))
    assert understood(lambda: whole(path, missing=missing)) == expected
    assert case in MESSY or missing == "drop" or isinstance(expected, str)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig", "latin-1"])
def test_encodings(encoding, put, parser):
    path = put("größe,b\n1,2\n3,5\n4,4\n".encode(encoding))
    assert understood(lambda: whole(path)) == understood(lambda: read_table(path))
    assert understood(lambda: whole(path, encoding=encoding)) == understood(lambda: read_table(path, encoding=encoding))


@pytest.mark.parametrize(
    "options",
    [
        {"header": False},
        {"header": True},
        {"delimiter": ";"},
        {"decimal": ","},
        {"comment": "%"},
        {"columns": ["b", "a"]},
        {"exclude": ["a"]},
        {"columns": ["c"]},
        {"exclude": ["a", "b"]},
    ],
)
def test_options(options, put, parser):
    path = put("a,b\n1,2\n3,5\n% 7,7\n4,4\n" if "comment" in options else "a,b\n1,2\n3,5\n4,4\n")
    assert understood(lambda: whole(path, **options)) == understood(lambda: read_table(path, **options))


STRANGE = {
    "text": "word,2",
    "another number of cells": "1,2,3",
    "too few": "1",
    "a comment": "# 1",
    "a word for no value": "nUlL,2",
    "thousands": "1 000,2",
    "an underscore": "1_000,2",
    "a quote left open": '"1,2',
    "a line end in quotes": '"1\n",2',
    "hexadecimal": "0x10,2",
    "infinite": "inf,2",
    "beyond float64": "1e999,2",
}


@pytest.mark.parametrize("case", STRANGE)
@pytest.mark.parametrize("at", [0, 150, 2999])
def test_what_is_strange_anywhere_is_understood_as_by_read_table(case, at, put, parser, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(streams, "_BYTES", 1 << 12)
    lines = [f"{i % 17}.5,{i % 13}" for i in range(3000)]
    lines.insert(at, STRANGE[case])
    path = put("\n".join(["a,b", *lines]) + "\n")
    expected = understood(lambda: read_table(path, missing="refuse"))
    found = understood(lambda: whole(path))
    if not isinstance(expected, str) and np.isinf(expected[0]).any():
        assert "values that are infinite or beyond 1e+60 in 'a' (1)" in found
    else:
        assert found == expected


def test_plain_text_goes_through_pyarrow(X, put, monkeypatch):
    pytest.importorskip("pyarrow")

    def forbidden(*arguments):
        raise AssertionError("our own parser was asked")

    monkeypatch.setattr(streams, "_BYTES", 1 << 14)  # several pieces
    path = put(text(X))
    index = put("\n".join([",a,b", *(f"{i},{a},{b}" for i, (a, b) in enumerate(X[:, :2].tolist()))]), "index.csv")
    monkeypatch.setattr(tables.Parser, "pieces", forbidden)
    same(Moments.from_csv(path), Moments.of(X, list("abcd")))
    with pytest.warns(UserWarning, match="only counts the rows"):
        same(Moments.from_csv(index), Moments.of(X[:, :2], ["a", "b"]))


def test_a_count_of_rows_that_goes_wrong_late_is_refused(put, parser, monkeypatch):
    monkeypatch.setattr(streams, "_BYTES", 1 << 12)
    monkeypatch.setattr(streams, "_ROWS", 100)
    rows = [f"{i},{i % 7},{i % 5}" for i in range(2000)]
    rows[1999] = "7,1,1"
    with pytest.raises(InputError, match="column 1 has an empty name and is no count of the rows"):
        Moments.from_csv(put("\n".join([",a,b", *rows])))


def test_missing_values_are_counted_over_the_whole_file(X, put, parquet, monkeypatch):
    monkeypatch.setattr(streams, "_BATCH", 1000)
    gaps = X.copy()
    gaps[[10, 5000, 8999], 1] = np.nan
    gaps[5000, 3] = np.nan
    complete = ~np.isnan(gaps).any(axis=1)
    expected = Moments.of(X[complete], list("abcd"))
    columns = dict(zip("abcd", gaps.T, strict=True))
    for path, read in (
        (put(text(gaps)), Moments.from_csv),
        (parquet(columns), Moments.from_parquet),
    ):
        where = r"missing values in 'b' \(3 NaN\), 'd' \(1 NaN\)"
        with pytest.raises(InputError, match=rf"{where}; --missing drop leaves out the 3 row\(s\) of 9001"):
            read(path)
        with pytest.warns(UserWarning, match=rf"left out 3 of 9001 rows, with {where}"):
            same(read(path, missing="drop"), expected)
        with pytest.raises(ValueError, match="missing='keep' is unknown; allowed: 'refuse', 'drop'"):
            read(path, missing="keep")


@pytest.mark.parametrize("end", [10, 5_000, -10])
def test_damaged_files_are_refused(end, X, put, parquet):
    path = parquet(dict(zip("abcd", X.T, strict=True)))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        Moments.from_parquet(put(path.read_bytes()[:end], "cut.parquet"))
    with pytest.raises(InputError, match="damaged, or cut off"):
        Moments.from_csv(put(gzip.compress(text(X).encode())[:end], "cut.csv.gz"))


def test_pages_that_are_damaged_inside_are_refused(X, put, parquet):
    columns = {name: np.round(x) for name, x in zip("abcd", X.T, strict=True)}
    content = bytearray(parquet(columns, compression="zstd", use_dictionary=False).read_bytes())
    content[1000:3000] = bytes(2000)
    with pytest.raises(InputError, match="not a readable Parquet file"):
        Moments.from_parquet(put(bytes(content), "t2.parquet"))


def test_other_files_are_refused_by_name(put, parquet, tmp_path):
    with pytest.raises(InputError, match=r"unknown suffix '\.parquet'"):
        Moments.from_csv(parquet({"a": [1.0]}))
    with pytest.raises(InputError, match=r"unknown suffix '\.csv'"):
        Moments.from_parquet(put("a,b\n1,2\n"))
    with pytest.raises(InputError, match="no such file"):
        Moments.from_csv(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"non-numeric column\(s\) 't' \(.*string\); --exclude 't'"):
        Moments.from_parquet(parquet({"a": [1.0], "t": ["x"]}))


def test_a_missing_pyarrow_is_named(put, monkeypatch):
    for name in ("pyarrow", "pyarrow.csv"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=re.escape('pip install "vec2dag[data]"')):
        Moments.from_parquet(put(b"PAR1", "t.parquet"))
    assert Moments.from_csv(put("a,b\n1,2\n3,5\n4,4\n")).n == 3


# --- Dask -----------------------------------------------------------------------------------------------------


def test_dask_frames_and_arrays(X):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    expected = Moments.of(X, list("abcd"))
    for parts in (1, 2, 7):
        frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=parts)
        close(Moments.from_dask(frame), expected)
        close(Moments.from_dask(frame + 1e8), Moments.of(X + 1e8, list("abcd")))
    close(Moments.from_dask(da.from_array(X, chunks=(1000, 3)), list("abcd")), expected)
    assert Moments.from_dask(da.from_array(X, chunks=1000)).names == ("x0", "x1", "x2", "x3")
    empty = frame[frame.a > X[:, 0].max() - 1e-9]
    assert Moments.from_dask(empty).n == 1
    with pytest.raises(ValueError, match="there is no row"):
        Moments.from_dask(frame[frame.a > 1e9])


def test_dask_with_weights_and_what_is_refused(X):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    w = np.arange(len(X)) % 3
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(w=w), npartitions=3)
    close(Moments.from_dask(frame, weights="w"), Moments.of(X, list("abcd"), weights=w))
    with pytest.raises(ValueError, match="weights='v' is unknown; allowed: 'a', 'b', 'c', 'd', 'w'"):
        Moments.from_dask(frame, weights="v")
    with pytest.raises(ValueError, match=r"in one partition in 'b' \(1\)"):
        Moments.from_dask(dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 1.0]}), npartitions=1))
    with pytest.raises(ValueError, match="not numeric: 't'"):
        Moments.from_dask(dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "t": ["x", "y"]}), npartitions=1))
    with pytest.raises(ValueError, match="X must be a Dask data frame"):
        Moments.from_dask(X)


def test_a_missing_dask_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=re.escape('pip install "vec2dag[cluster]"')):
        Moments.from_dask(None)


# --- the command line -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return simulate.linear_gaussian(d=6, k=2, n=25_000, rng=np.random.default_rng(3)).X


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_streamed_file_gives_the_same_graph(suffix, model, run, put, parquet, tmp_path):
    if suffix == ".parquet":
        path = parquet(dict(zip("abcdef", model.T, strict=True)))
    else:
        content = text(model, "abcdef").encode()
        path = put(gzip.compress(content) if suffix.endswith("gz") else content, f"t{suffix}")
    for options in ((), ("--criterion", "bic-ev"), ("--standardize",)):
        memory = run("discover", path, "-o", tmp_path / "memory", "-q", *options)
        streamed = run("discover", path, "-o", tmp_path / "streamed", "-q", *options, *SMALL)
        assert (memory.code, streamed.code) == (0, 0), streamed.err
        assert "piece by piece" not in memory.err
        assert "read piece by piece, and only means and covariances are kept" in streamed.err
        for name in ("adjacency.csv", "cpdag.csv", "graph.json"):
            assert (tmp_path / "memory" / name).read_text() == (tmp_path / "streamed" / name).read_text()
        found = json.loads((tmp_path / "streamed" / "run.json").read_text())
        assert found["rows"] == 25_000
        assert [f"vec2dag: warning: {note}" for note in found["warnings"]] == streamed.err.splitlines()


@pytest.mark.parametrize("method", ["resample", "subsample", "parametric"])
def test_a_streamed_bootstrap_is_the_same(method, model, run, put, tmp_path):
    path, options = put(text(model, "abcdef")), ("--samples", 4, "--method", method, "-q")
    assert run("bootstrap", path, "-o", tmp_path / "memory", *options).code == 0
    assert run("bootstrap", path, "-o", tmp_path / "streamed", *options, *SMALL).code == 0
    assert (tmp_path / "memory/bootstrap.csv").read_text() == (tmp_path / "streamed/bootstrap.csv").read_text()


def test_sorted_files_do_no_harm_to_a_bootstrap(model, put, rng):
    table = model[np.argsort(model[:, 0])]
    file = TableFile(put(text(table, "abcdef")))
    blocks = Blocks.of(file, Moments.of_file(file), rng)
    means = np.array([blocks.draw("resample", rng).mean for _ in range(400)])
    # As of samples of rows, sd / sqrt(n); with blocks of neighbours that of the first column would be 5 times as much.
    np.testing.assert_allclose(means.std(axis=0), model.std(axis=0) / np.sqrt(len(model)), rtol=0.15)


def test_a_file_that_changes_while_it_is_read_is_refused(model, put, rng):
    file = TableFile(put(text(model, "abcdef")))
    moments = Moments.of_file(file)
    put(text(model[:-1], "abcdef"))
    with pytest.raises(ValueError, match="25000 rows, and then 24999"):
        Blocks.of(file, moments, rng)


def test_a_bootstrap_of_a_file_says_what_it_cannot_do(model, put):
    file = TableFile(put(text(model[:50], "abcdef")))
    with pytest.raises(ValueError, match="needs all rows in memory, X is a TableFile"):
        bootstrap(ALIAS(prune="ci"), file, 2)
    columns = [f"v{k}" for k in range(401)]
    wide = TableFile(put(text(np.random.default_rng(0).standard_normal((5, 401)), columns), "wide.csv"))
    with pytest.raises(ValueError, match="400 columns at most, it has 401: method='parametric'"):
        bootstrap(ALIAS(), wide, 2)
    assert len(bootstrap(ALIAS(), file, 3, random_state=0).samples) == 3


def test_constant_and_dependent_columns_are_told_from_moments(model, run, put, tmp_path):
    table = np.column_stack([model[:, :3], model[:, 0] + model[:, 1], np.full(len(model), 0.1)])
    path, out = put(text(table, ["a", "b", "c", "sum", "same"])), ("-o", tmp_path / "out", "-q", *SMALL)
    refused = run("discover", path, *out)
    assert (refused.code, refused.out) == (2, "")
    assert "'same' constant" in refused.err
    done = run("discover", path, *out, "--drop-constant")
    assert done.code == 0
    assert "left out because constant: 'same'" in done.err
    assert "Linearly dependent columns: " in done.err
    assert "'sum'" in done.err
    assert run("bootstrap", path, *out, "--drop-constant", "--samples", 2).code == 0


def test_what_needs_rows_is_refused_with_what_to_do(model, run, put, tmp_path):
    path, out = put(text(model, "abcdef")), ("-o", tmp_path / "out", *SMALL)
    for option in (
        ("--prune", "ci"),
        ("--prune", "cam"),
        ("--regression", "gp"),
        ("--init", "score"),
        ("--lags", "1"),
    ):
        for command in ("discover", "bootstrap"):
            result = run(command, path, *out, *option)
            assert (result.code, result.out) == (2, "")
            named = option[0] if option[0] == "--lags" else " ".join(option)
            assert f"{named} needs all rows in memory" in result.err
    assert not any((tmp_path / "out").iterdir())


def test_missing_values_of_a_streamed_file(model, run, put, tmp_path):
    gaps = model.copy()
    gaps[7, 2] = np.nan
    path, out = put(text(gaps, "abcdef")), ("-o", tmp_path / "out", "-q", *SMALL)
    result = run("discover", path, *out)
    assert result.code == 2
    assert "missing values in 'c' (1 NaN); --missing drop leaves out the 1 row(s) of 25000" in result.err
    result = run("discover", path, *out, "--missing", "drop")
    assert result.code == 0
    assert "left out 1 of 25000 rows, with missing values in 'c' (1 NaN)" in result.err


def test_a_pipe_that_is_too_large_is_refused_with_what_to_do(model, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "vec2dag.cli", "discover", "-", "-o", str(tmp_path / "out"), "--max-memory", "1e-4"],
        input=text(model, "abcdef").encode(),
        env=os.environ | {"PYTHONPATH": str(Path(vec2dag.__file__).parents[1])},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert b"CSV and Parquet files, but no pipes, may have any size" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_interrupt_while_reading_writes_nothing(suffix, number, model, put, parquet, tmp_path):
    # Large enough that it is still being read when the signal comes.
    table = np.tile(model, (40, 1)) if suffix == ".parquet" else np.tile(model, (8, 1))
    path = parquet(dict(zip("abcdef", table.T, strict=True))) if suffix == ".parquet" else put(text(table, "abcdef"))
    slow = (
        "import sys, time, vec2dag.files.streams as s\n"
        "chunks = s.Stream.chunks\n"
        "def slowly(self):\n"
        "    for chunk in chunks(self):\n"
        "        print('reading', flush=True); time.sleep(0.2); yield chunk\n"
        "s.Stream.chunks = slowly\n"
        "from vec2dag.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow, "discover", str(path), "-o", str(tmp_path / "out"), *SMALL],
        env=os.environ | {"PYTHONPATH": str(Path(vec2dag.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout.readline() == b"reading\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert b"interrupted; nothing written" in err
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path):
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "benchmarks.streaming", "--rows", "20000", "--results", str(tmp_path)]
    subprocess.run(command, cwd=root, check=True, timeout=300, env=os.environ | {"PYTHONPATH": str(root / "src")})
    records = json.loads((tmp_path / "streaming.json").read_text())["streaming"]["records"]
    assert [r["rows"] for r in records] == [20_000, 20_000]
    assert all(r["gb"] > 0 and r["seconds"] > 0 for r in records)
