"""NumPy's files, whose headers are looked at before any array is made; nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .._checks import listing, quoted, shown
from .atomic import InputError
from .opening import Opened, check_memory, checked_names, reason

Header = tuple[tuple[int, ...], np.dtype[Any]]


def load_matrix(
    file: Opened, keys: Sequence[str], *, square: bool = False
) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """A numeric 2-D array, and its column names if there are any, from an NPY or NPZ file.

    In an NPZ file it is the array under the first of `keys` that exists, or else its only numeric 2-D array
    (square, if asked).
    """
    labels = None
    try:
        if file.head.startswith(b"PK"):
            with zipfile.ZipFile(file.seekable()) as archive:
                headers = _headers(archive)
                key = next((key for key in keys if key in headers), None)
                values = _member(file, archive, key or _only_matrix(file, headers, keys, square), square)
                if "names" in headers:
                    labels = _strings(file, archive)
        else:
            stream = file.seekable()
            _check(file, _header(stream), square)
            stream.seek(0)
            values = _read(stream)
    except InputError:
        raise
    # damaged files raise a dozen types, from EOFError to zlib.error and tokenize.TokenError
    except Exception as error:
        kind = file.suffix[1:].upper() or "NumPy"
        raise InputError(f"{file.name}: not a readable {kind} file ({reason(error)})") from error
    # beyond float64 is infinite, and a NaN that signals, as damaged bytes may, is a NaN
    with np.errstate(over="ignore", invalid="ignore"):
        X = np.array(values, dtype=np.float64, order="C")
    if labels is None:
        return X, None
    if len(labels) != X.shape[1]:
        raise InputError(f"{file.name}: {len(labels)} names for {X.shape[1]} columns")
    return X, checked_names(file.name, labels)


def _header(stream: Any) -> Header:
    """Shape and type of an array."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(stream)
    if version not in read:  # later ones are for types with named fields
        return (), np.dtype(object)
    shape, _, dtype = read[version](stream)
    return shape, dtype


def _headers(archive: zipfile.ZipFile) -> dict[str, Header]:
    """Shape and type of every array in an archive, by its key."""
    headers = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            with archive.open(name) as stream:
                headers[name.removesuffix(".npy")] = _header(stream)
    return headers


def _check(file: Opened, header: Header, square: bool) -> None:
    """Refuse what is no matrix of numbers, or too large a one."""
    shape, dtype = header
    if dtype.hasobject:
        raise ValueError("Python objects, which could run programs, are not loaded")
    if not _is_matrix(header, square):
        kind = "square 2-D array of numbers" if square else "2-D array of numbers (rows, columns)"
        raise InputError(f"{file.name}: a {kind} is needed, got {_kind(header)}")
    if not prod(shape):
        raise InputError(f"{file.name}: the array is empty, shape {shape}")
    check_memory(file.name, f"its array of shape {shape}", prod(shape) * max(dtype.itemsize, 8), file.max_memory)


def _member(file: Opened, archive: zipfile.ZipFile, key: str, square: bool) -> NDArray[Any]:
    with archive.open(f"{key}.npy") as stream:
        _check(file, _header(stream), square)
    with archive.open(f"{key}.npy") as stream:
        return _read(stream)


def _read(stream: Any) -> NDArray[Any]:
    array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array


def _strings(file: Opened, archive: zipfile.ZipFile) -> list[str]:
    """The array `names` of an archive."""
    with archive.open("names.npy") as stream:
        shape, dtype = header = _header(stream)
    if len(shape) != 1 or dtype.kind not in "SU":
        raise InputError(f"{file.name}: names must be a 1-D array of strings, got {_kind(header)}")
    check_memory(file.name, f"its names, {dtype} of shape {shape},", prod(shape) * dtype.itemsize, file.max_memory)
    with archive.open("names.npy") as stream:
        try:
            return [str(name) for name in _read(stream).astype(str).tolist()]
        except UnicodeDecodeError as error:
            raise InputError(f"{file.name}: names must be text, got bytes beyond ASCII") from error


def _is_matrix(header: Header, square: bool) -> bool:
    shape, dtype = header
    shape_fits = len(shape) == 2 and (not square or shape[0] == shape[1])
    return shape_fits and dtype.kind in "buif"


def _kind(header: Header) -> str:
    return f"{shown(str(header[1]))} of shape {shown(str(header[0]))}"


def _only_matrix(file: Opened, headers: dict[str, Header], keys: Sequence[str], square: bool) -> str:
    found = [key for key, header in headers.items() if _is_matrix(header, square)]
    if len(found) == 1:
        return found[0]
    inside = listing(f"'{shown(key)}' ({_kind(header)})" for key, header in headers.items()) or "nothing"
    kind = "square 2-D" if square else "2-D"
    raise InputError(f"{file.name}: needs a key {quoted(keys)} or exactly one numeric {kind} array; it holds {inside}")
