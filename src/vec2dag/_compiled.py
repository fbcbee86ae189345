"""Compiled functions whose cache may be missing, damaged or full: they are compiled again, and somebody is told."""

import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core import caching
from numba.core.serialize import dumps

__all__ = ["compiled"]

_said: set[str] = set()


def compiled(*, cache: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator like numba's ``njit(cache=True)`` that never fails for want of a place for the cache.

    The cache is where numba puts it: in ``NUMBA_CACHE_DIR``, beside the package, or in the home directory. Where none
    of these can be written it is in a temporary folder of the user's own; where that is not safe there is none.

    Parameters
    ----------
    cache : bool, default True
        Whether to keep the compiled function for later processes.
    **options
        Of ``njit``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        if cache:
            try:
                dispatcher._cache = _KernelCache(function)
            # numba's word for "no place can be written", and whatever an unreadable source leads to
            except (RuntimeError, OSError):
                dispatcher._cache = _NoCache()
        return dispatcher

    return decorate


def _say(sentence: str) -> None:
    """On stderr, once in a process, where the announcement of the compilation is too."""
    if sentence not in _said and sys.stderr is not None:
        _said.add(sentence)
        with suppress(OSError):
            print(f"vec2dag: warning: {sentence}", file=sys.stderr)


def _private_folder() -> str:
    """A folder for temporary files that only this user can have made, and only this user can write or read.

    What lies in a cache is run: a folder that somebody else has made, or could exchange, is refused.
    """
    user = os.geteuid() if hasattr(os, "geteuid") else None
    parent = tempfile.gettempdir()
    folder = os.path.join(parent, "vec2dag-cache" if user is None else f"vec2dag-cache-{user}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if user is None:  # Windows has temporary folders of every user's own
        return folder
    found, above = os.lstat(folder), os.stat(parent)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user alone")
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX and above.st_uid != user:
        raise PermissionError(f"{parent} lets others exchange {folder}")
    return folder


class _TemporaryLocator(caching.UserWideCacheLocator):
    """The last of the places for a cache."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        self._cache_path = os.path.join(_private_folder(), self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        try:
            return super().from_function(function, file)
        except OSError:
            return None


class _CheckedResult(caching.CompileResultCacheImpl):
    """Compiled code with a checksum: a damaged file is found out before it is run.

    The checksum covers the source too. numba writes the index before the code; should the machine stop in between, a
    new index leads to the code of an older source.
    """

    _locator_classes = [*caching.CacheImpl._locator_classes, _TemporaryLocator]  # noqa: RUF012 (as numba has it)

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(repr(self.locator.get_source_stamp()).encode() + content).digest()

    def reduce(self, result: Any) -> tuple[bytes, bytes]:
        content = dumps(super().reduce(result))
        return self._checksum(content), content

    def rebuild(self, target_context: Any, stored: Any) -> Any:
        checksum, content = stored
        if self._checksum(content) != checksum:
            raise ValueError("the compiled code is damaged, or of another source")
        return super().rebuild(target_context, pickle.loads(content))


class _KernelCache(caching.FunctionCache):
    """A cache that is a convenience: nothing that is wrong with it reaches the caller."""

    _impl_class = _CheckedResult

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(signature, target_context)
        # a damaged pickle raises anything
        except Exception:
            self._forget()
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except Exception as error:
            self._forget()
            self.disable()
            reason = getattr(error, "strerror", None) or error
            _say(f"compiled kernels cannot be kept in {self.cache_path} ({reason}): the next run compiles them again")
        else:
            if self._enabled and isinstance(self._impl.locator, _TemporaryLocator):
                _say(
                    f"compiled kernels are kept in {self.cache_path}: neither the folder of the package nor the home "
                    "directory can be written (NUMBA_CACHE_DIR names another place)"
                )

    def _forget(self) -> None:
        """Without its index no file of the cache is read again."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


class _NoCache(caching.NullCache):
    """Says once that every process has to compile anew."""

    def save_overload(self, signature: Any, result: Any) -> None:
        _say(
            "compiled kernels cannot be kept, as no folder for them can be written: every run compiles them again "
            "(NUMBA_CACHE_DIR names a place)"
        )
