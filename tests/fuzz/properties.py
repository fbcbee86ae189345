"""What must hold whatever the input: how things are refused, warnings, and what a result is."""

import dis
import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

import vec2dag

__all__ = ["Broken", "Hang", "check_message", "check_model", "quietly", "refused", "snapshot", "unchanged"]

LONGEST = 1000
# Whoever raises one of these on a line of its own has thought of it; scikit-learn's checks are a part of the estimator.
SPEAKERS = (str(Path(vec2dag.__file__).parent), "sklearn")


class Broken(Exception):
    """A property that does not hold."""


class Hang(BaseException):
    """A case that takes too long; no Exception, so that nobody on the way takes it for an error of a file."""


@contextmanager
def quietly() -> Iterator[None]:
    """Context that records warnings and breaks on numpy's: they are results that nobody has checked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning):
            raise Broken(f"{warning.category.__name__} at {warning.filename}:{warning.lineno}: {warning.message}")
        if issubclass(warning.category, UserWarning):
            check_printable(str(warning.message), "a warning")


def refused(call: Callable[[], Any], names: Iterable[str]) -> tuple[str, Any]:
    """``("result", value)`` of a call, or ``("refused", sentence)`` if it was refused as it should be."""
    try:
        with quietly():
            return "result", call()
    except (Broken, Hang, KeyboardInterrupt):
        raise
    except (ValueError, TypeError) as error:
        if not deliberate(error):
            raise Broken(f"{type(error).__name__} that nobody has raised on purpose: {short(error)}") from error
        check_message(str(error), names)
        return "refused", str(error)
    # panics of extension modules are no Exception
    except BaseException as error:
        raise Broken(f"{type(error).__name__} and neither ValueError nor TypeError: {short(error)}") from error


def deliberate(error: BaseException) -> bool:
    """Whether the error comes from a ``raise`` of the library, and not from the depths of something it called."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    code = place.tb_frame.f_code
    # the instruction and not the line, which somebody may edit in the meantime
    raised = dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"
    return raised and any(speaker in code.co_filename for speaker in SPEAKERS)


def check_message(sentence: str, names: Iterable[str]) -> None:
    """One sentence, not long, without control characters, that names one of ``names``."""
    check_printable(sentence, "the error")
    if not 10 <= len(sentence) < LONGEST:
        raise Broken(f"the error has {len(sentence)} characters: {sentence[:200]!r}")
    if not any(name in sentence for name in names):
        raise Broken(f"the error names none of {', '.join(map(repr, names))}: {sentence!r}")


def check_printable(text: str, what: str) -> None:
    """No characters that could move the cursor of a terminal, or end a line of a log."""
    if not text.isprintable():
        strange = next(c for c in text if not c.isprintable())
        raise Broken(f"{what} holds {strange!r}: {text[:300]!r}")


def short(error: BaseException) -> str:
    """An error on one line, with the place where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = re.sub(r"\s+", " ", str(error))[:200]
    return f"{text!r} at {Path(last.filename).name}:{last.lineno}"


def snapshot(value: Any) -> Any:
    """A copy to compare with later; read-only arrays and views keep their values, not their memory."""
    return deepcopy(value)


def unchanged(before: Any, after: Any) -> None:
    """Break if an input has been modified."""
    if not same(before, after):
        raise Broken(f"the input was modified: {type(after).__name__}")


def same(a: Any, b: Any) -> bool:
    """Whether two inputs hold the same, missing values included."""
    if hasattr(a, "equals"):
        return bool(a.equals(b))
    if isinstance(a, np.ma.MaskedArray):
        return same(a.data, b.data) and bool(np.array_equal(a.mask, b.mask))
    if isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.hasobject:
            return all(repr(x) == repr(y) for x, y in zip(a.flat, b.flat, strict=True))
        return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    return repr(a) == repr(b)


def check_model(model: Any) -> None:
    """A fitted estimator holds a DAG, finite numbers, and text that a terminal may show."""
    A, raw, d = model.adjacency_matrix_, model.adjacency_raw_, model.n_features_in_
    for name, graph in (("adjacency_matrix_", A), ("adjacency_raw_", raw)):
        if graph.shape != (d, d) or graph.dtype != np.uint8 or graph.max(initial=0) > 1 or not vec2dag.is_dag(graph):
            raise Broken(f"{name} is no DAG: {graph.tolist()}")
    if (raw < A).any():
        raise Broken("pruning has added an edge")
    if not np.isfinite(model.score_):
        raise Broken(f"score_ is {model.score_}")
    category = model.columns_.categorical
    # Edges from and to categories have no coefficient.
    weights = np.where(A.astype(bool) & (category[:, None] | category), 0.0, model.weights_)
    if not np.isfinite(weights).all() or (weights[A == 0] != 0).any():
        raise Broken(f"weights_ are {model.weights_.tolist()} for {A.tolist()}")
    place = np.argsort(model.causal_order_)
    if sorted(model.causal_order_) != list(range(d)) or any(place[i] > place[j] for i, j in np.argwhere(A)):
        raise Broken(f"causal_order_ {model.causal_order_.tolist()} does not fit {A.tolist()}")
    if hasattr(model, "cpdag_") and not np.array_equal(model.cpdag_ | model.cpdag_.T, A | A.T):
        raise Broken("cpdag_ has another skeleton")
    if len(model.edges_["source"]) != A.sum() or model.graph_.number_of_edges() != A.sum():
        raise Broken("edges_ or graph_ have other edges")
    for line in model.summary().split("\n"):
        check_printable(line, "the summary")
