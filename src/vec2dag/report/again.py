"""The command, or else the code, that makes a graph again; where there is none, why."""

import ast
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .._checks import default_names, listing, shown
from ..estimator import ALIAS
from ..knowledge import Knowledge
from ..prune import PRUNERS
from ..scores import CRITERIA, REGRESSIONS
from ..search import ALGORITHMS, STARTS
from .sources import Source

__all__ = ["again", "obstacle", "settings", "stated"]

# Parameters that change how long a run takes or where it keeps things, but not its result.
WITHOUT_EFFECT = {"verbose", "n_jobs", "checkpoint"}
# By parameter: the names that stand for settings, and the module that settings are imported from.
NAMED: dict[str, tuple[Mapping[str, Callable[[], Any]], str]] = {
    "criterion": (CRITERIA, "vec2dag"),
    "regression": (REGRESSIONS, "vec2dag"),
    "algorithm": (ALGORITHMS, "vec2dag"),
    "prune": (PRUNERS, "vec2dag.prune"),
}
# Characters of code at most: a page is no place for more.
MOST = 20_000


def again(source: Source) -> str:
    """The command, or else the code, that makes the same graph again; empty if there is none (:func:`obstacle`)."""
    command = source.run.get("command")
    return command if isinstance(command, str) else _composed(source)[0]


def obstacle(source: Source) -> str:
    """Why there is no code that makes the graph again, in a sentence."""
    return _composed(source)[1]


def settings(parameter: str, value: Any) -> Any:
    """The object that a parameter of ``run.json`` stands for, a name or the text of settings; None if unknown."""
    names, home = NAMED[parameter]
    if not isinstance(value, str):
        return None
    if value in names:
        return names[value]()
    name, given = _call(value)
    module = import_module(home)
    kind = getattr(module, name) if name in module.__all__ else None
    try:
        return kind(**given) if isinstance(kind, type) else None
    except (TypeError, ValueError):
        return None


def stated(value: Any) -> Mapping[str, Any] | None:
    """The parameter ``knowledge`` of ``run.json``, a mapping or its text, as a mapping; None if that cannot be told."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    try:
        name, given = _call(str(value))
        said = given if name == "Knowledge" else ast.literal_eval(str(value))
        return said if isinstance(said, dict) and Knowledge(**said) is not None else None
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return None


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call by keyword, such as ``CAM(alpha=0.01)``; no name if it is none."""
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            return call.func.id, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    return "", {}


def _composed(source: Source) -> tuple[str, str]:
    """The code and, if it is empty, why."""
    parameters = source.parameters
    if not parameters:
        return "", "What was run is not recorded here."
    defaults = inspect.signature(ALIAS).parameters
    imports = {"ALIAS", "bootstrap"} if source.consensus else {"ALIAS"}
    given, unknown = [], []
    for name, value in parameters.items():
        if name not in defaults or name in WITHOUT_EFFECT or value == defaults[name].default:
            continue
        if name == "knowledge" and stated(value) == {}:
            continue
        code = _argument(name, value, imports)
        if code is None:
            unknown.append(f"{name} ({shown(str(value), 60)})")
        given.append(f"{name}={code}")
    names = ""
    if stated(parameters.get("knowledge")) and source.nodes != default_names(len(source.nodes)):
        # knowledge is by name, and an array has none
        names = f", names={list(source.nodes)!r}"
    fit = f"ALIAS({', '.join(given)})"
    if source.consensus:
        run = source.run
        for key, kind in (("wanted", int), ("method", str), ("seed", int), ("threshold", float)):
            if not isinstance(run.get(key), kind):
                unknown.append(f"{key} ({shown(str(run.get(key)), 60)})")
        sampling = f"X, {run.get('wanted')!r}, {run.get('method')!r}{names}, random_state={run.get('seed')!r}"
        lines = [f"result = bootstrap({fit}, {sampling})", f"A = result.consensus({run.get('threshold')!r})"]
    else:
        lines = [f"model = {fit}.fit(X{names})"]
        if parameters.get("random_state") is None:
            lines.insert(0, "# The seed was not fixed: another run may find another graph.")
    if unknown:
        return "", f"Code that makes it again cannot be given here: only whoever ran it has {listing(unknown)}."
    text = "\n".join([f"from vec2dag import {', '.join(sorted(imports))}", "", *lines])
    if len(text) > MOST:
        return "", f"The code that makes it again has {len(text):,} characters, too many for a page."
    return text, ""


def _argument(name: str, value: Any, imports: set[str]) -> str | None:
    """The code of a parameter, adding the names of vec2dag that it needs; None if nobody can tell."""
    if name == "knowledge":
        said = stated(value)
        return None if said is None else repr(dict(said))
    if not isinstance(value, str):
        return repr(value) if value is None or isinstance(value, bool | int | float) else None
    if name not in NAMED:
        return repr(value) if name == "init" and value in STARTS else None
    names, home = NAMED[name]
    if value in names:
        return repr(value)
    kind, given = _call(value)
    if settings(name, value) is not None:
        module = home.partition(".")[2]
    elif name == "algorithm" and kind in ("A2C", "PPO") and "device" in given:
        module = "sb3"
    else:
        return None
    # by module, for two are called BIC and two PPO
    imports.add(module or kind)
    return f"{module}.{value}" if module else value
