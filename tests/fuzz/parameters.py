"""Wrong values for every parameter of the public functions and settings."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import vec2dag
from vec2dag import ALIAS, Moments, Score, metrics, prune, simulate

from .properties import Broken, check_model, refused, snapshot, unchanged

__all__ = ["STRANGE", "TARGETS", "attempt", "open_to_change", "parameters"]

BASE = np.random.default_rng(0)
X = BASE.normal(size=(30, 3)) @ (np.eye(3) + np.triu(np.ones((3, 3)), 1))
A = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.uint8)
CYCLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])

MEASURES = (
    "shd", "fdr", "tpr", "fpr", "precision", "recall", "f1", "nnz", "skeleton_shd", "cpdag_shd", "evaluate", "sid",
)  # fmt: skip
SETTINGS = (
    "PPO", "A2C", "REINFORCE", "Conditional", "NodeCredit", "Orders", "LocalSearch", "BIC", "LeastSquares", "Linear",
    "GaussianProcess",
)  # fmt: skip
# Parameters for which no value is wrong, or whose errors are not about the value: files, terminals, what is to come.
LEFT_OUT = {"checkpoint", "verbose", "y"}


# As a report shows them: the text is what reproduces a value.
_STRANGE = r"""
None True -1 0 1 2 2.5 -0.5 float('nan') float('inf') -float('inf') 10**400 -10**400 2**70 1e-320 1e308 '' 'auto' 'bic'
'x'*5000 'a\nb\x1b[2J' b'linear' [] {} () (1,2,3) [[0,1],[0,0]] [[0,1],[0]] [['a','b'],['c','d']] object() 1j int set()
np.array([]) np.array(3) np.zeros((3,3)) np.ones((3,3)) CYCLE np.eye(3) np.float32(0.5) np.zeros((2,3,3)) np.int64(3)
np.full((3,3),np.nan) np.full((30,3),np.inf) np.zeros((0,3)) np.zeros((3,0)) np.zeros((3,3),complex) np.bool_(True)
range(3) np.array([['a']*3]*3) np.array([[None]*3]*3) np.array(['1970']*3,'M8[D]')
['a','a','b'] ['a','b','\x00'] [1,2,3]
A X BASE Moments.of(X) CONSTANT NOT_A_NUMBER TEXT NOTHING (lambda*a:A)
np.ma.masked_all((3,3)) np.random.RandomState(0) simulate
"""
STRANGE = _STRANGE.split()


def CONSTANT(*_: Any) -> float:
    return 0.0


def NOT_A_NUMBER(*_: Any) -> float:
    return float("nan")


def TEXT(*_: Any) -> str:
    return "text"


def NOTHING(*_: Any) -> None:
    return None


def rng_of() -> np.random.Generator:
    return np.random.default_rng(0)


def quick(**given: Any) -> ALIAS:
    """A fit of some milliseconds."""
    return ALIAS(**({"random_state": 0, "n_jobs": 1} | given)).fit(X)


def named(**given: Any) -> ALIAS:
    """A fit with names."""
    return ALIAS(random_state=0, n_jobs=1).fit(**({"X": X} | given))


def merged(**given: Any) -> Moments:
    """Moments of two tables."""
    return Moments.of(X).merge(**given)


def scored(**given: Any) -> Any:
    return Score(X)(**given)


def combined(**given: Any) -> Any:
    return Score(X).combine(**given)


def dataset(method: str, **given: Any) -> Any:
    return getattr(simulate.Dataset(X, A), method)(**given)


def score_and_rng(function: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    return function, {"score": Score(X, n_jobs=1), "rng": rng_of()}


def _targets() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Functions with valid values of the parameters that have no default."""
    graphs, tables = {"true": A, "pred": A}, {"X": X, "A": A}
    noise, edges = {"n": 20, "d": 3, "rng": rng_of()}, {"A": A, "E": np.ones((20, 3)), "rng": rng_of()}
    short = vec2dag.PPO(n_steps=2)
    targets: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "ALIAS": (quick, dict.fromkeys(inspect.signature(ALIAS).parameters, inspect.Parameter.empty)),
        "ALIAS.fit": (named, {"X": X, "names": ["a", "b", "c"]}),
        "Score": (Score, {"X": X}),
        "Score()": (scored, {"A": A}),
        "Score.combine": (combined, {"residuals": np.ones(3), "parents": np.zeros(3)}),
        "Moments.of": (Moments.of, {"X": X, "names": ["a", "b", "c"]}),
        "Moments.merge": (merged, {"other": Moments.of(X)}),
        "simulate.linear": (simulate.linear, {"W": A, "E": np.ones((20, 3))}),
        "simulate.Dataset": (simulate.Dataset, {"X": X, "A": A, "names": ("a", "b", "c")}),
        "simulate.Dataset.hide": (partial(dataset, "hide"), {"k": 1, "rng": rng_of()}),
        "simulate.Dataset.corrupt": (partial(dataset, "corrupt"), {"p": 0.1, "rng": rng_of(), "variance": 1.0}),
        "simulate.erdos_renyi": (simulate.erdos_renyi, {"d": 4, "k": 1, "rng": rng_of()}),
        "simulate.scale_free": (simulate.scale_free, {"d": 4, "k": 1, "rng": rng_of(), "orient": "random"}),
        "simulate.uniform_weights": (simulate.uniform_weights, {"A": A, "rng": rng_of(), "low": 1.0, "high": 2.0}),
        "simulate.linear_gaussian": (simulate.linear_gaussian, {"d": 4, "k": 1, "n": 20, "rng": rng_of()}),
        "simulate.simulate": (simulate.simulate, {"graph": A, "rng": rng_of(), "n": 20}),
        "simulate.preset": (simulate.preset, {"name": "sparse-er2", "seed": 0}),
        "metrics.sortability": (metrics.sortability, {"scores": np.arange(3.0), "A": A}),
        "metrics.order_divergence": (metrics.order_divergence, {"order": [0, 1, 2], "A": A}),
        "metrics.sortnregress": (metrics.sortnregress, {"X": X}),
        "vec2dag": (vec2dag.vec2dag, {"z": np.ones(6)}),
        "discover": score_and_rng(vec2dag.discover),
        "policy_gradient": (vec2dag.policy_gradient, {"score": Score(X), "rng": rng_of(), "algorithm": short}),
        "exact_search": (vec2dag.exact_search, {"score": Score(X)}),
        "insertion_search": (vec2dag.insertion_search, {"score": Score(X), "start": A}),
        "SklearnRegression": (vec2dag.SklearnRegression, {"estimator": LeastSquaresLike()}),
        "LocalCache": (vec2dag.LocalCache, {}),
    }
    targets |= {f"metrics.{name}": (getattr(metrics, name), graphs) for name in MEASURES}
    targets |= {f"metrics.{name}": (getattr(metrics, name), tables) for name in ("varsortability", "r2_sortability")}
    noises = ("gaussian", "unequal_gaussian", "exponential", "gumbel", "laplace", "uniform")
    targets |= {f"simulate.{name}": (getattr(simulate, name), noise) for name in noises}
    mechanisms = ("gaussian_process", "additive_gaussian_process", "post_nonlinear", "mlp")
    targets |= {f"simulate.{name}": (getattr(simulate, name), edges) for name in mechanisms}
    kinds = ("linear", "bic", "cam", "ci")
    targets |= {f"prune.prune_{name}": (getattr(prune, f"prune_{name}"), tables) for name in kinds}
    targets |= {f"prune.{name}": (getattr(prune, name), {}) for name in ("Threshold", "BIC", "CAM", "CI")}
    of_graph = ("dag2vec", "is_dag", "topological_order", "skeleton", "cpdag")
    targets |= {name: (getattr(vec2dag, name), {"A": A}) for name in of_graph}

    targets |= {name: (getattr(vec2dag, name), {}) for name in SETTINGS}
    return targets


class LeastSquaresLike:
    """What SklearnRegression takes."""

    def fit(self, Z: Any, y: Any) -> Any:
        return self

    def predict(self, Z: Any) -> Any:
        return np.zeros(len(Z))


TARGETS = _targets()


def parameters(rng: Generator, folder: Path) -> tuple[str, str]:
    """One or two parameters of a function, or of a setting, replaced by strange values."""
    target = list(TARGETS)[int(rng.integers(len(TARGETS)))] if rng.random() < 0.8 else "ALIAS"
    names = open_to_change(target)
    if not names:
        return "result", f"{target} has no parameters"
    chosen = rng.choice(names, size=min(len(names), 1 + (rng.random() < 0.1)), replace=False)
    return attempt(target, {str(name): STRANGE[int(rng.integers(len(STRANGE)))] for name in chosen})


def open_to_change(target: str) -> list[str]:
    """Parameters of a function or a setting that may be replaced."""
    return [name for name in _known(target) if name not in LEFT_OUT]


def attempt(target: str, changed: dict[str, str]) -> tuple[str, str]:
    """What a function, or a setting, makes of strange values of some parameters."""
    function, valid = TARGETS[target]
    given = {name: value for name, value in valid.items() if value is not inspect.Parameter.empty}
    if "rng" in given:
        given["rng"] = rng_of()
    given |= {name: eval(text, globals()) for name, text in changed.items()}
    # what a callback does is its own affair
    if callable(given.get("callback")):
        given["callback"] = None
    described = f"{target}({', '.join(f'{name}={text}' for name, text in changed.items())})"
    arrays = {name: snapshot(value) for name, value in given.items() if isinstance(value, np.ndarray)}
    outcome, value = refused(lambda: function(**given), (*_known(target), *SYNONYMS))
    for name, before in arrays.items():
        unchanged(before, given[name])
    if isinstance(value, ALIAS):
        check_model(value)
    if outcome == "result" and isinstance(value, np.ndarray) and value.dtype.kind == "c":
        raise Broken(f"a complex result of {described}")
    return outcome, described


# What the message may name in place of the parameter: what the value stands for.
SYNONYMS = ("score", "Score", "column", "estimator", "node", "graph", "shape")


def _known(target: str) -> list[str]:
    """Parameters of a function, those of a wrapper being the valid ones."""
    function, valid = TARGETS[target]
    if target in ("ALIAS", "ALIAS.fit"):
        return list(valid)
    own = inspect.signature(function).parameters.values()
    names = [p.name for p in own if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if function is simulate.linear:
        names.remove("rng")
    return list(dict.fromkeys([*names, *valid]))
