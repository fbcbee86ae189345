"""Cholesky factorisation and solution while other threads run: scipy's own wrappers hold the interpreter's lock.

The routines are those that ``scipy.linalg.cython_lapack`` offers to compiled code. ctypes lets go of the lock.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

__all__ = ["positive_solve"]


@cache
def _routine(name: str, arguments: int) -> Any:
    """A LAPACK routine as a function of ``arguments`` addresses."""
    capsule, api = cython_lapack.__pyx_capi__[name], ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


def positive_solve(K: NDArray[Any], y: NDArray[Any]) -> tuple[float, NDArray[np.float64]] | None:
    """``ln det K`` and ``K^-1 y`` (n,) for a symmetric ``K`` (n, n); None if that is not positive definite.

    ``K`` is overwritten. It is contiguous and has the type of ``y``, float32 or float64.
    """
    n = len(y)
    if K.shape != (n, n) or not K.flags.c_contiguous or K.dtype != y.dtype or K.dtype not in (np.float32, np.float64):
        raise ValueError(f"K {K.shape} {K.dtype} and y {y.shape} {y.dtype} do not fit, or K is not contiguous")
    kind = "s" if K.dtype == np.float32 else "d"
    x = np.array(y, order="C")
    lower, size, one, info = ctypes.c_char(b"L"), ctypes.c_int(n), ctypes.c_int(1), ctypes.c_int(0)
    uplo, order, columns, failed = (ctypes.addressof(value) for value in (lower, size, one, info))
    # LAPACK stores columns: its lower triangle is the upper one of a matrix stored by rows.
    _routine(f"{kind}potrf", 5)(uplo, order, K.ctypes.data, order, failed)
    if info.value:
        return None
    _routine(f"{kind}potrs", 8)(uplo, order, columns, K.ctypes.data, order, x.ctypes.data, order, failed)
    return 2.0 * float(np.log(np.diagonal(K).astype(np.float64)).sum()), x.astype(np.float64)
