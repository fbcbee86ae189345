"""What a search knows, kept in a file so that another run continues it and ends in the same result.

The state of a search is that of the objects it changes. A search names them once, to :meth:`Memory.follow`, which puts
them where the file left them, and tells when they are at rest; nothing else has to know what is in the file. It is an
NPZ archive with a text in JSON, and without pickle.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._checks import brief, warn
from ..scores import GraphScore, LocalCache, LocalScores
from ..scores.local import Store

if TYPE_CHECKING:
    from .gradient import SearchResult

__all__ = ["Checkpoint", "Memory", "Stateful", "storable"]

# Seconds between two looks at the state of a search, and the share of the time that they may take.
LOOK_EVERY, SHARE = 0.1, 0.005
# The array of a file that is the text; others are called by a number behind it.
TEXT = "search"
# Key of the local scores of an approximation, before their fingerprint.
APPROXIMATION = "approximation"
# Keys of the text that stand for an array, and for an object of a kind.
ARRAY, KIND = "$array", "$kind"

T = TypeVar("T")
VALUES: dict[str, type] = {}


def storable(kind: type[T]) -> type[T]:
    """Decorator of dataclasses that are values: a file holds all of their fields."""
    VALUES[kind.__name__] = kind
    return kind


class Stateful:
    """What a search changes as it goes on.

    Attributes
    ----------
    STATE : tuple of str
        The attributes that another run needs to go on from here.
    """

    STATE: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Any]:
        """A copy of the state, made of what a file can hold."""
        return {name: freeze(getattr(self, name)) for name in self.STATE}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Take up a state."""
        for name in self.STATE:
            setattr(self, name, resumed(getattr(self, name), snapshot[name]))


def freeze(value: Any) -> Any:
    """A copy that later changes do not reach: dictionaries, lists, arrays, numbers, texts, None."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.Generator):
        return freeze(value.bit_generator.state)
    if type(value) in VALUES.values():
        return {KIND: type(value).__name__} | {f.name: freeze(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Stateful):
        return value.snapshot()
    if isinstance(value, Mapping):
        return {name: freeze(part) for name, part in value.items()}
    return [freeze(part) for part in value] if isinstance(value, list | tuple) else value


def thaw(frozen: Any) -> Any:
    """The value that a copy is of, as far as it does not stand for an object that changes."""
    if isinstance(frozen, np.ndarray):
        return frozen.copy()
    if isinstance(frozen, list):
        return [thaw(part) for part in frozen]
    if isinstance(frozen, dict):
        parts = {name: thaw(part) for name, part in frozen.items()}
        return VALUES[parts.pop(KIND)](**parts) if KIND in parts else parts
    return frozen


def resumed(current: Any, frozen: Any) -> Any:
    """``current`` as it was when the copy was made: itself where it can be changed, so that who shares it sees it."""
    if isinstance(current, Stateful):
        current.resume(frozen)
    elif isinstance(current, np.random.Generator):
        current.bit_generator.state = thaw(frozen)
    elif isinstance(current, np.ndarray):
        current[...] = frozen
    elif isinstance(current, tuple):
        return tuple(resumed(part, other) for part, other in zip(current, frozen, strict=True))
    else:
        return thaw(frozen)
    return current


def pack(frozen: Any) -> dict[str, NDArray[Any]]:
    """Arrays by name that a file can hold."""
    arrays: list[NDArray[Any]] = []

    def stand_in(value: NDArray[Any]) -> dict[str, int]:
        arrays.append(value)
        return {ARRAY: len(arrays) - 1}

    text = json.dumps(frozen, default=stand_in)
    return {TEXT: np.frombuffer(text.encode(), np.uint8)} | {f"{TEXT}.{k}": a for k, a in enumerate(arrays)}


def unpack(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """What was packed."""
    text = arrays[TEXT].tobytes().decode()
    return json.loads(text, object_hook=lambda o: arrays[f"{TEXT}.{o[ARRAY]}"] if ARRAY in o else o)


def digest(value: Any) -> str:
    """A text that is equal for equal values."""
    content = hashlib.sha256()
    for name, array in pack(freeze(value)).items():
        content.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return content.hexdigest()


class Memory:
    """What is kept of the searches of one run, by name; without a file nothing is.

    Parameters
    ----------
    store : Store, optional
    sections : dict
        What the file has of this run.
    """

    def __init__(self, store: Store | None = None, sections: dict[str, Any] | None = None) -> None:
        self.store, self.sections = store, sections or {}
        self._inside: list[str] = []
        self._closed = False

    def close(self) -> None:
        """Keep no more: something was cut short, and what follows would be another search in a whole run."""
        self._closed = True

    def follow(self, name: str, **parts: Any) -> Callable[[], None]:
        """Put objects into the state that the file has of them, if any, and follow them from now on.

        Parameters
        ----------
        name : str
        **parts : Stateful or numpy Generator
            All that the search changes.

        Returns
        -------
        callable
            To be called whenever a search that starts from their present state would go on as this one does.
        """
        store, place = self.store, self._place(name)
        if store is None:
            return lambda: None
        if place in self.sections:
            with _readable(store):
                for part, value in parts.items():
                    resumed(value, self.sections[place][part])
        looked, took = time.perf_counter(), 0.0

        def pause() -> None:
            nonlocal looked, took
            begin = time.perf_counter()
            if self._closed or begin < looked + max(LOOK_EVERY, took / SHARE):
                return
            self.sections[place] = freeze(parts)
            looked = time.perf_counter()
            took = looked - begin
            store.save_if_due()

        return pause

    def once(self, name: str, rng: np.random.Generator, search: Callable[[], "SearchResult"]) -> "SearchResult":
        """What a search finds, from the file if it came to its end there; ``rng`` is left as the search leaves it."""
        store, place = self.store, self._place(name)
        if store is None:
            return search()
        if place in self.sections:
            with _readable(store):
                resumed(rng, self.sections[place]["rng"])
                return thaw(self.sections[place]["found"])
        self._inside.append(name)
        try:
            found = search()
        finally:
            self._inside.pop()
        if found.cut_short:
            self.close()
        if not self._closed:
            others = {key: part for key, part in self.sections.items() if not key.startswith(f"{place}/")}
            self.sections = others | {place: freeze({"found": found, "rng": rng})}
            store.save_if_due()
        return found

    def _place(self, name: str) -> str:
        return "/".join((*self._inside, name))


@dataclass(frozen=True)
class Checkpoint:
    """A file from which a search continues.

    Parameters
    ----------
    file : path
    any_seed : bool, default False
        Continue what the file has also if it was started with other random numbers, and take those of the file.
    """

    file: str | Path
    any_seed: bool = False

    @contextmanager
    def opened(
        self, score: GraphScore, plan: Mapping[str, Any], rng: np.random.Generator, *, continues: bool
    ) -> Iterator[Memory]:
        """Context in which the searches of a run are kept.

        Parameters
        ----------
        score : GraphScore
            A file of another one is refused.
        plan : dict
            What else decides the result: the state of a search with another plan is not used, only local scores are.
        rng : numpy Generator
            As it is before the search.
        continues : bool
            Whether the algorithm can; otherwise there must be local scores worth keeping.
        """
        fingerprint, local = _fingerprint(score)
        if local is None and not continues:
            raise ValueError(
                f"checkpoint={brief(str(self.file))} cannot be used: a search by {plan['algorithm']} cannot be "
                "continued, as the state of its training is not ours to read, and the local scores of this score are "
                "not worth keeping; the algorithms that have a name can be continued"
            )
        store = Store(self.file, LocalCache() if local is None else local.cache, fingerprint)
        about = {
            "plan": digest({"version": version("vec2dag"), **plan}),
            "seed": digest(rng),
            "generator": type(rng.bit_generator).__name__,
        }
        memory = Memory(store, self._sections(store, about))
        others = {} if local is None else _approximation(score, store)
        store.more = lambda: pack(
            {"about": about, "sections": memory.sections}
            | {f"{APPROXIMATION} {own}": part.cache.arrays() for own, part in others.items()}
        )
        with ExitStack() as stack:
            for part in others.values():
                stack.enter_context(part.kept_in(store))
            if local is not None:
                stack.enter_context(local.kept_in(store))
            try:
                yield memory
            finally:
                if local is None:
                    store.save()

    def _sections(self, store: Store, about: Mapping[str, str]) -> dict[str, Any]:
        """What a file has of a run."""
        if TEXT not in store.others:
            return {}
        with _readable(store):
            stored = unpack(store.others)
            theirs, sections = stored["about"], dict(stored["sections"])
            same = ["plan", "generator"] if self.any_seed else ["plan", "seed"]
            if all(theirs[name] == about[name] for name in same):
                return sections
        if sections and "search" not in sections:
            warn(
                f"{store.file} holds an unfinished search with other settings, another seed or by another version, "
                "which this one does not continue but replaces"
            )
        return {}


def _approximation(score: GraphScore, store: Store) -> dict[str, LocalScores]:
    """Local scores of an approximation of the score, by their fingerprint, with those that the file has of them."""
    near = score.approximation
    own = None if near is None else near.regression.fingerprint()
    if near is None or own is None:
        return {}
    if TEXT in store.others:
        with _readable(store):
            if (arrays := unpack(store.others).get(f"{APPROXIMATION} {own}")) is not None:
                near.local.cache.take(arrays)
    return {own: near.local}


@contextmanager
def _readable(store: Store) -> Iterator[None]:
    """Context in which whatever goes wrong is the fault of the file."""
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{store.file} is not a checkpoint, or is damaged: {brief(error)}") from error


def _fingerprint(score: GraphScore) -> tuple[str, Any]:
    """A text that is equal for equal scores, and the local scores that are worth keeping, if there are any."""
    if score.local is None:
        return _probe(score), None
    regression = score.local.regression
    own = regression.fingerprint()
    if own is not None:
        return own, score.local
    if regression.statistics is not None:
        return digest({"rows": regression.n, "statistics": regression.statistics}), None
    if not regression.cheap:
        raise ValueError(
            f"checkpoint needs a regression with a fingerprint, to tell it from another; {brief(regression)} has none"
        )
    return _probe(score), None


def _probe(score: GraphScore) -> str:
    """Nobody can tell two functions apart by looking at them: their values at three sparse graphs do."""
    chain = np.eye(score.d, k=1, dtype=np.uint8)
    return digest(np.asarray(score(np.stack([np.zeros_like(chain), chain, chain.T]))))
