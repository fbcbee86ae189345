"""What is known of the columns: random statements, as settings and as options, and that results agree with them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from vec2dag import Knowledge
from vec2dag.knowledge import lagged

from .properties import Broken

__all__ = ["check_known", "check_options", "known_options", "random_knowledge"]

# Neither of these is often a column.
STRANGERS = ("nowhere", "*", "x?", "[", "a\nb", "\x1b[2J", "-> b")


def random_knowledge(names: Sequence[str], rng: Generator) -> dict[str, Any]:
    """What ``Knowledge`` takes, about these names; it may contradict itself, or speak of columns that are not there."""
    order = [names[int(k)] for k in rng.permutation(len(names))]
    if rng.random() < 0.1:
        order.insert(int(rng.integers(len(order) + 1)), str(rng.choice(STRANGERS)))
    along = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :]]
    against = [(b, a) for a, b in along]

    def some(of: list[Any], most: int) -> list[Any]:
        return [of[int(k)] for k in rng.permutation(len(of))[: int(rng.integers(1, most + 1))]]

    said: dict[str, Any] = {}
    if rng.random() < 0.5:
        said["required"] = some(along, 2)
    if rng.random() < 0.5:
        said["forbidden"] = some(against + along * (rng.random() < 0.2), 3)
    if rng.random() < 0.3:
        cut = int(rng.integers(len(order) + 1))
        said["tiers"] = [order[:cut], order[cut:]][:: -1 if rng.random() < 0.1 else 1]
        said["within_tiers"] = bool(rng.random() < 0.8)
    if rng.random() < 0.3:
        said["max_parents"] = int(rng.integers(-1, 3)) if rng.random() < 0.5 else {name: 1 for name in order[-2:]}
    if rng.random() < 0.1:
        said["exogenous"], said["sinks"] = order[:1], order[-1:]
    return said


def check_known(said: dict[str, Any], A: np.ndarray, names: Sequence[str]) -> None:
    """Break if a graph with these nodes does not agree with what was said."""
    try:
        wrong = Knowledge.of(said).bind(names).violations(A)
    except ValueError as error:
        wrong = f"it cannot be true, {error}"
    if wrong is not None:
        raise Broken(f"the result contradicts what is known, {said}: {wrong}")


def known_options(names: Sequence[str], rng: Generator) -> tuple[list[str], dict[str, Any], int]:
    """Options of ``discover``, what they say of the columns, and the number of lags."""
    plain = [name for name in names if name == name.strip() and name.isprintable()]
    said = random_knowledge(plain, rng)
    options = []
    for option, key in (("--require", "required"), ("--forbid", "forbidden")):
        # as text, which has a meaning of its own where names have arrows
        said[key] = [f"{a} -> {b}" for a, b in said.get(key, ())]
        options += [f"{option}={edge}" for edge in said[key]]
    options += [f"--tier={_csv(tier)}" for tier in said.get("tiers", ()) if tier]
    options += [f"--exogenous={_csv(said['exogenous'])}"] if said.get("exogenous") else []
    if not isinstance(said.get("max_parents"), int):
        said["max_parents"] = None
    else:
        options.append(f"--max-parents={said['max_parents']}")
    lags = int(rng.integers(1, 4)) if rng.random() < 0.3 else 0
    if lags:
        options.append(f"--lags={lags}")
    without = ("within_tiers", "sinks")
    return options, {key: value for key, value in said.items() if key not in without}, lags


def check_options(said: dict[str, Any], lags: int, A: np.ndarray, nodes: Sequence[str]) -> None:
    """Break if a graph contradicts what options said, or leads from the present to the past."""
    check_known(said, A, nodes)
    if lags:
        present = nodes[: len(nodes) // (lags + 1)]
        series = lagged(np.zeros((lags + 1, len(present))), lags, names=present)
        wrong = series.knowledge.bind(series.names).violations(A) if series.names == tuple(nodes) else "other columns"
        if wrong is not None:
            raise Broken(f"the result of {lags} lags of {present} contradicts time: {wrong}")


def _csv(names: Sequence[str]) -> str:
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)
