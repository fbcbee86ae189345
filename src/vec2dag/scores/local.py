"""Local scores: mean squared residuals of single nodes, computed in parallel, remembered, and kept between runs."""

import io
import math
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from .._checks import brief, shown, warn, whole_number
from .._parallel import OutOfTime, effective_jobs, one_blas_thread, run_lazily
from ..files.atomic import write_atomically

if TYPE_CHECKING:
    from .criteria import Criterion
    from .regression import Regression

__all__ = ["LocalCache", "LocalScores", "Store"]

# Seconds between writes of a file; the first follow each other in parts of it, from 1 / EARLY on.
SAVE_EVERY, EARLY = 30.0, 32
# Seconds that a write may take; those that take longer are made less often, so that they are 1 / 200 of the time.
LONG_SAVE = 0.15
# The arrays of a file that are local scores, and of what.
MEMBERS = ("fingerprint", "nodes", "parents", "residuals")
# A key, its two numbers, a value, and their place in the dictionary, for up to 30 nodes; every 30 nodes more add 4.
BYTES = 280


class LocalCache:
    """Mean squared residuals by (node, bits of the parents), the least recently used dropped first.

    Parameters
    ----------
    max_bytes : int, default 256 MiB
        About a million local scores.

    Attributes
    ----------
    hits, misses : int
        Look-ups that were answered and that were not.
    """

    def __init__(self, max_bytes: int = 256 * 2**20) -> None:
        self.max_bytes = whole_number("max_bytes", max_bytes, BYTES)
        self.hits = self.misses = self.bytes = 0
        self._owner: object = None
        self._values: OrderedDict[tuple[int, int], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def belong_to(self, regression: "Regression") -> None:
        """Hold residuals of this regression, and of no other."""
        try:
            owner: object = regression.fingerprint() or regression
        except ValueError:
            owner = regression
        if self._owner is not None and self._owner != owner:
            raise ValueError("cache holds residuals of other data or of another regression: every score needs its own")
        self._owner = owner

    def get(self, key: tuple[int, int]) -> float | None:
        """The residual, or None; counted."""
        value = self._values.get(key)
        if value is None:
            self.misses += 1
            return None
        self.hits += 1
        self._values.move_to_end(key)
        return value

    def put(self, key: tuple[int, int], value: float) -> None:
        """Remember, and forget the least recently used beyond ``max_bytes``."""
        if key not in self._values:
            self.bytes += _size(key)
        self._values[key] = value
        while self.bytes > self.max_bytes:
            old, _ = self._values.popitem(last=False)
            self.bytes -= _size(old)

    @property
    def hit_rate(self) -> float:
        """Share of look-ups that were answered; nan before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else float("nan")

    def save(self, file: Path, fingerprint: str, more: Mapping[str, Any] | None = None) -> None:
        """Write all values, in place of a file that was there; ``fingerprint`` says what they are values of.

        The file also takes the arrays ``more``, by name.
        """
        arrays = {"fingerprint": np.array(fingerprint)} | self.arrays()
        content = io.BytesIO()
        # An NPZ file as numpy writes it but for the level: numbers hardly shrink any further in three times the time.
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, array in (arrays | dict(more or {})).items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        write_atomically(file, content.getvalue())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All values as arrays: nodes (m,), sets of parents as bits (m, size), residuals (m,)."""
        width = max([1, *(mask.bit_length() for _, mask in self._values)])
        size = (width + 7) // 8
        bits = b"".join(mask.to_bytes(size, "little") for _, mask in self._values)
        return {
            "nodes": np.array([node for node, _ in self._values], np.int64),
            "parents": np.frombuffer(bits, np.uint8).reshape(-1, size),
            "residuals": np.array(list(self._values.values())),
        }

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> int:
        """Add the values of :meth:`arrays`, and return how many."""
        nodes, parents, residuals = (arrays[name] for name in MEMBERS[1:])
        masks = [int.from_bytes(row.tobytes(), "little") for row in parents]
        known = dict(zip(zip(nodes.tolist(), masks, strict=True), residuals.tolist(), strict=True))
        for key, value in known.items():
            self.put(key, value)
        return len(known)

    def load(self, file: Path, fingerprint: str) -> int:
        """Add the values of a file, if there is one, and return how many; refuse those of other data."""
        if not (arrays := _arrays_of(file)):
            return 0
        if str(arrays["fingerprint"]) != fingerprint:
            raise ValueError(
                f"{file} is a checkpoint of other data or of another regression or function; take another file, or "
                "remove it"
            )
        try:
            return self.take(arrays)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file} is not a checkpoint, or is damaged: {error}") from error


def _arrays_of(file: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a file by name, none if there is no file; refuses what is not one of ours."""
    if not file.exists():
        return {}
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in dict.fromkeys((*MEMBERS, *stored.files))}
    # damaged files raise a dozen types, from EOFError to zlib.error and NotImplementedError
    except Exception as error:
        raise ValueError(f"{file} is not a checkpoint, or is damaged: {error}") from error


class Store:
    """A file in which local scores, and arrays of whoever searches, outlive the process.

    Parameters
    ----------
    file : path
        Read now, and written now: after an hour is not the time to find out that it cannot be.
    cache : LocalCache
        Takes the local scores of the file.
    fingerprint : str
        What they are scores of; a file of something else is refused.

    Attributes
    ----------
    known : int
        Local scores that the file had.
    others : dict of arrays
        What else it had.
    more : callable
        Returns what else to write, by default the same again.
    """

    def __init__(self, file: str | Path, cache: LocalCache, fingerprint: str) -> None:
        if not isinstance(file, str | Path):
            raise ValueError(f"checkpoint must be a path, got {brief(file)}")
        self.file, self.cache, self.fingerprint = Path(file), cache, fingerprint
        self.known = cache.load(self.file, fingerprint)
        self.others = {name: array for name, array in _arrays_of(self.file).items() if name not in MEMBERS}
        self.more: Callable[[], Mapping[str, NDArray[Any]]] = lambda: self.others
        self._saves, self._saved, self._took, self._warned = 0, 0.0, 0.0, False
        try:
            self._save()
        except OSError as error:
            raise OSError(f"the checkpoint {error}") from error

    def save(self) -> None:
        """Write. A full disk, say, is no reason to lose the run: it is told once, and tried again."""
        try:
            self._save()
        except OSError as error:
            if not self._warned:
                warn(f"the checkpoint could not be written, and the run goes on without: {error}")
            self._warned = True

    def save_if_due(self) -> None:
        """Write if the last time is long enough ago."""
        share = max(min(2.0**self._saves / EARLY, 1.0), self._took / LONG_SAVE)
        if time.monotonic() > self._saved + SAVE_EVERY * share:
            self.save()

    def _save(self) -> None:
        begin = time.monotonic()
        try:
            self.cache.save(self.file, self.fingerprint, self.more())
        finally:
            self._saved = time.monotonic()
            self._took = self._saved - begin
            self._saves += 1


def _size(key: tuple[int, int]) -> int:
    return BYTES + key[1].bit_length() // 30 * 4


class LocalScores:
    """Mean squared residuals of a regression: each fitted once, on several workers, within a time.

    Parameters
    ----------
    regression : Regression
    cache : LocalCache, optional
        Where residuals are remembered; the default holds 256 MiB.
    n_jobs : int or None, default None
        Workers; None uses every core. They are threads, or whatever ``joblib.parallel_config`` asks for.

    Attributes
    ----------
    fits : int
        Regressions made so far: what a search costs.
    deadline : float
        Of ``time.perf_counter``, after which the next regression ends in :class:`OutOfTime`.
    """

    def __init__(self, regression: "Regression", cache: LocalCache | None = None, n_jobs: int | None = None) -> None:
        effective_jobs(n_jobs)
        self.regression, self.n_jobs = regression, n_jobs
        self.cache = LocalCache() if cache is None else cache
        if not isinstance(self.cache, LocalCache):
            raise ValueError(f"cache must be a LocalCache, got {brief(cache)}")
        if cache is not None:
            cache.belong_to(regression)
        self.fits = 0
        self.deadline = math.inf
        self._store: Store | None = None

    @property
    def cheap(self) -> bool:
        """Whether a residual takes microseconds, so that nobody has to be sparing with them."""
        return self.regression.cheap

    def __call__(self, node: int, parents: Iterable[int]) -> float:
        """Mean squared residual of ``node`` after regression on ``parents``: the unit a criterion combines."""
        return float(self.batch([(node, parents)])[0])

    def batch(self, wanted: Sequence[tuple[int, Iterable[int]]]) -> NDArray[np.float64]:
        """Mean squared residuals of several (node, parents); those not yet known are computed in parallel."""
        keys = [self._key(node, parents) for node, parents in wanted]
        known = {key: self.cache.get(key) for key in keys}
        missing = [key for key, value in known.items() if value is None]
        if missing:
            # As results arrive, so that neither an interrupt nor the end of the time loses any of them.
            for key, value in zip(missing, self._evaluate(missing), strict=True):
                known[key] = value
                self.fits += 1
                self.cache.put(key, value)
                if self._store is not None:
                    self._store.save_if_due()
                if time.perf_counter() > self.deadline:
                    raise OutOfTime
        return np.array([known[key] for key in keys], dtype=np.float64)

    def residuals(self, A: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Mean squared residuals (B, d) of every node of every graph ``A`` (B, d, d)."""
        d = self.regression.d
        return self.batch([(j, np.flatnonzero(a[:, j])) for a in A for j in range(d)]).reshape(len(A), d)

    def of_sets(self, node: int, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Mean squared residuals (m,) of ``node`` given the sets of parents that are the rows of ``members`` (m, d)."""
        return self.batch([(node, np.flatnonzero(row)) for row in members])

    def toggles(self, A: NDArray[np.uint8], criterion: "Criterion") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Links (d,) of the nodes of ``A`` (d, d) and ``table[i, j]``, the change of link i when j -> i is toggled."""
        d, weights = len(A), self.regression.weights
        links = weights * criterion.link(self.residuals(A[None])[0])
        wanted: list[tuple[int, set[int]]] = []
        for i in range(d):
            parents = set(np.flatnonzero(A[:, i]).tolist())
            wanted += [(i, parents ^ {j}) for j in range(d) if j != i]
        table = np.zeros((d, d))
        others = np.repeat(weights, d - 1) * criterion.link(self.batch(wanted))
        table[~np.eye(d, dtype=bool)] = others - np.repeat(links, d - 1)
        return links, table

    def _key(self, node: int, parents: Iterable[int]) -> tuple[int, int]:
        sources = {int(p) for p in parents}
        if node in sources:
            raise ValueError(f"node {node} cannot be its own parent")
        strange = [k for k in (int(node), *sorted(sources)) if not 0 <= k < self.regression.d]
        if strange:
            raise ValueError(f"there is no node {strange[0]}; nodes are 0 to {self.regression.d - 1}")
        return int(node), sum(1 << p for p in sources)

    def _evaluate(self, keys: list[tuple[int, int]]) -> Iterator[float]:
        backend, _ = get_active_backend(prefer="threads")
        if getattr(backend, "supports_sharedmem", False):
            # Threads of our own: joblib's take 10 to 30 ms a batch to start, as long as ten fits to a few hundred rows.
            with one_blas_thread():
                yield from run_lazily(lambda k: _fit_alone(self.regression, keys[k]), len(keys), self.n_jobs)
        else:
            parallel = joblib.Parallel(self.n_jobs, return_as="generator")
            yield from parallel(joblib.delayed(_fit)(self.regression, key) for key in keys)

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Context in which regressions end with :class:`OutOfTime` after ``deadline``; an outer, earlier one stays."""
        outer = self.deadline
        self.deadline = min(outer, deadline)
        try:
            yield
        finally:
            self.deadline = outer

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Context without a deadline: for the few regressions that a result cannot do without."""
        outer, self.deadline = self.deadline, math.inf
        try:
            yield
        finally:
            self.deadline = outer

    @contextmanager
    def stored(self, file: str | Path) -> Iterator[int]:
        """Context in which residuals are kept in ``file``: read at first, written every half minute and at the end.

        Yields the number of residuals that the file had. It must be one of the same data and regression. Residuals that
        ``cache`` has no room for are not kept.
        """
        fingerprint = self.regression.fingerprint()
        if fingerprint is None:
            reason = (
                "those that take microseconds are not"
                if self.cheap
                else "a regression without a fingerprint cannot be told from another"
            )
            raise ValueError(f"local scores in {brief(str(file))} are for regressions that are worth keeping: {reason}")
        store = Store(file, self.cache, fingerprint)
        with self.kept_in(store):
            yield store.known

    @contextmanager
    def kept_in(self, store: Store) -> Iterator[None]:
        """Context in which residuals are written to a file as they come, and at the end."""
        if self._store is not None:
            raise ValueError(f"local scores are kept in {self._store.file} already, and cannot be in {store.file} too")
        self._store = store
        try:
            yield
        finally:
            self._store = None
            store.save()


def _members(mask: int) -> list[int]:
    return [p for p in range(mask.bit_length()) if mask >> p & 1]


def _fit_alone(regression: "Regression", key: tuple[int, int]) -> float:
    """One local regression, which BLAS does not divide among threads even if nobody waits for it any more."""
    with one_blas_thread():
        return _fit(regression, key)


def _fit(regression: "Regression", key: tuple[int, int]) -> float:
    """One local regression; whatever goes wrong names the node and its parents."""
    node, parents = key[0], _members(key[1])
    what = f"the regression of {brief(regression.names[node])} on {brief([regression.names[p] for p in parents])}"
    try:
        value = float(regression.residual(node, parents))
    except Exception as error:
        raise ValueError(f"{what} failed: {type(error).__name__}: {shown(str(error), 300)}") from error
    if not 0 < value < math.inf:
        hint = "; a regressor that fits every row needs SklearnRegression(..., cv=)" if value == 0 and parents else ""
        raise ValueError(f"{what} gave a mean squared residual of {value}; a positive number is needed{hint}")
    return value
