"""Sentences of the library in the words of the command line: ``--missing em`` for ``missing='em'``."""

import re

__all__ = ["OPTIONS", "in_options"]

# Of parameters, and of settings that only one kind of object has: an alpha may be of a regression or of a pruning.
_PARAMETERS = (
    *("algorithm", "categorical", "checkpoint", "comment", "criterion", "decimal", "delimiter", "encoding", "header"),
    *("init", "lags", "max_memory", "max_parents", "method", "missing", "prune", "regression", "standardize", "time"),
    *("time_budget", "n_jobs", "n_samples", "random_state"),
)
_SETTINGS = ("batch_size", "discount", "gamma", "learning_rate", "n_steps")
_OTHERWISE = {"n_jobs": "--jobs", "n_samples": "--samples", "random_state": "--seed"}
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in (*_PARAMETERS, *_SETTINGS)} | _OTHERWISE

# What begins otherwise is an option already, or the name of a column, which stands in quotes.
_START = r"(?<![\w'-])"
_TEXT = r"'[^']+'"
_VALUE = rf"(?P<value>{_TEXT}|True|False|None|\[\.\.\.\]|\d+)(?![\w(])"
_MORE = rf"(?P<more>(?:(?:, {_TEXT})*,? (?:and|or) {_TEXT})?)"
# Settings among those of an object, as in BIC(gamma=0.5), stay with it.
_SET = re.compile(rf"{_START}(?P<name>{'|'.join(_PARAMETERS)})={_VALUE}{_MORE}")
_CHECKED = re.compile(rf"{_START}(?P<name>{'|'.join(OPTIONS)})(?= must be | is for text)")


def in_options(sentence: str) -> str:
    """A sentence with options in place of parameters; settings that are objects stay as they are."""
    return _CHECKED.sub(lambda found: OPTIONS[found["name"]], _SET.sub(_option, sentence))


def _option(found: re.Match[str]) -> str:
    option, value = OPTIONS[found["name"]], found["value"]
    if value == "None" and found["name"] != "prune":
        return found[0]
    more = found["more"].replace("'", "")
    if value in ("True", "False"):
        return (option if value == "True" else option.replace("--", "--no-", 1)) + more
    # The name of a column stays in quotes: it may read as a part of the sentence.
    plain = value if found["name"] == "time" else value.strip("'")
    said = {"None": "none", "[...]": "NAME ..."}.get(value, plain)
    return f"{option} {said}{more}"
