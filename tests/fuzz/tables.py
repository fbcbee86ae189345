"""Tables given to the estimator."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from vec2dag import (
    A2C,
    ALIAS,
    BIC,
    PPO,
    REINFORCE,
    Conditional,
    GaussianProcess,
    LeastSquares,
    Linear,
    LocalSearch,
    Moments,
    NodeCredit,
    Orders,
    SklearnRegression,
    prune,
)
from vec2dag.files.graphs import read_graph

from .known import check_known, random_knowledge
from .properties import Broken, check_model, refused, snapshot, unchanged

__all__ = ["fit", "random_names", "random_values", "settings"]

SCALES = (1e-320, 1e-300, 1e-200, 1e-150, 1e-100, 1e-12, 1e-3, 1.0, 1e3, 1e12, 1e100, 1e149, 1e200, 1e300, 1e308)
PIECES = (
    "a",
    "b",
    "x1",
    "Größe",
    "名前",
    " ",
    "\t",
    "\n",
    "\r",
    "\x00",
    "\x1b[31m",
    "‮",
    '"',
    "'",
    ",",
    ";",
    "\\",
    "->",
)
FAIR = ("a", "Größe", "名", "x y", 'q"', "b,c", "x->y", "é", "=1+")
# What a refusal of a table may name: the table, what it is made of, its columns, or a setting.
NAMES = (
    "X",
    "column",
    "names",
    "rows",
    "sample",
    "feature",
    "array",
    "data",
    "prune",
    "criterion",
    "regression",
    "algo",
    "required",
    "forbidden",
    "tiers",
    "max_parents",
    "exogenous",
    "sinks",
)


def fit(rng: Generator, folder: Path) -> tuple[str, str]:
    """A table into ``ALIAS(...).fit``: refused with one sentence, or a DAG, the same one every time."""
    values, what = random_values(rng)
    X, kind = dressed(values, rng)
    parameters = settings(rng, *values.shape)
    names = random_names(values.shape[1], rng) if rng.random() < 0.2 else None
    described = f"{what} as {kind}, {values.shape}, names={names!r}, ALIAS({parameters!r})"
    if rng.random() < 0.2:
        parameters["knowledge"] = random_knowledge(labels_of(X, values.shape[1]) if names is None else names, rng)
        described += f" with {parameters['knowledge']}"
    before = snapshot(X)
    outcome, model = refused(lambda: ALIAS(**parameters).fit(X, names=names), NAMES)
    unchanged(before, X)
    if outcome == "result":
        check_model(model)
        for graph in (model.adjacency_raw_, model.adjacency_matrix_) if "knowledge" in parameters else ():
            check_known(parameters["knowledge"], graph, list(model.graph_.nodes))
        if rng.random() < 0.3 and parameters["time_budget"] is None:
            repeated(parameters, X, names, model)
        if rng.random() < 0.2:
            saved(model, folder)
    return outcome, described


def labels_of(X: Any, d: int) -> list[str]:
    """Names of the columns, as a result has them."""
    if isinstance(X, Moments):
        return list(X.names)
    return [str(label) for label in getattr(X, "columns", [f"x{i}" for i in range(d)])]


def repeated(parameters: dict[str, Any], X: Any, names: Any, model: ALIAS) -> None:
    """The same seed gives the same answer."""
    _, again = refused(lambda: ALIAS(**parameters).fit(X, names=names), NAMES)
    if not isinstance(again, ALIAS) or again.score_ != model.score_:
        raise Broken(f"the same seed gave {model.score_!r} and then {getattr(again, 'score_', again)!r}")
    if not np.array_equal(again.adjacency_matrix_, model.adjacency_matrix_):
        raise Broken("the same seed gave another graph")


def saved(model: ALIAS, folder: Path) -> None:
    """What is written can be read, with every name."""
    for file in model.save(folder / "saved"):
        if file.name not in ("run.json", "cpdag.csv", "edges.csv"):
            A, nodes = read_graph(file)
            if not np.array_equal(A, model.adjacency_matrix_) or list(nodes or ()) != list(model.graph_.nodes):
                raise Broken(f"{file.name} is read as {A.tolist()} of {nodes}")


# --- values -------------------------------------------------------------------------------------------------------


def random_values(rng: Generator) -> tuple[np.ndarray, str]:
    """Numbers (n, d) with something wrong with them, or nothing, and what."""
    d = int(rng.choice([0, 1, 2, 3, 4, 5, 6], p=[0.01, 0.02, 0.21, 0.26, 0.2, 0.2, 0.1]))
    n = int(rng.choice([0, 1, 2, 3, d + 1, 10, 30, 60], p=[0.01, 0.02, 0.06, 0.08, 0.13, 0.2, 0.25, 0.25]))
    mixing = np.eye(d) + np.triu(rng.normal(size=(d, d)), 1) * (rng.random((d, d)) < 0.5)
    X = rng.normal(size=(n, d)) @ mixing
    done = []
    for _ in range(int(rng.choice([0, 1, 2], p=[0.4, 0.45, 0.15]))):
        if X.size:
            change = CHANGES[int(rng.integers(len(CHANGES)))]
            with np.errstate(all="ignore"):
                X = change(X, rng)
            done.append(change.__name__)
    return X, "+".join(done) or "plain"


def constant(X: np.ndarray, rng: Generator) -> np.ndarray:
    X[:, column(X, rng)] = rng.choice([0.0, 1.0, -7.5, 1e300])
    return X


def nearly_constant(X: np.ndarray, rng: Generator) -> np.ndarray:
    X[:, column(X, rng)] = 1.0 + rng.choice([1e-16, 1e-15, 1e-13, 1e-9]) * rng.normal(size=len(X))
    return X


def duplicated(X: np.ndarray, rng: Generator) -> np.ndarray:
    X[:, column(X, rng)] = rng.choice([1.0, -1.0, 3.0]) * X[:, column(X, rng)]
    return X


def collinear(X: np.ndarray, rng: Generator) -> np.ndarray:
    j = column(X, rng)
    others = np.delete(X, j, axis=1)
    X[:, j] = others @ rng.normal(size=others.shape[1]) + rng.choice([0.0, 1e-14, 1e-8]) * rng.normal(size=len(X))
    return X


def scaled(X: np.ndarray, rng: Generator) -> np.ndarray:
    return X * rng.choice(SCALES, size=X.shape[1])


def scaled_alike(X: np.ndarray, rng: Generator) -> np.ndarray:
    return X * rng.choice(SCALES)


def shifted(X: np.ndarray, rng: Generator) -> np.ndarray:
    return X + rng.choice([1e3, 1e8, 1e15, -1e100], size=X.shape[1])


def outlier(X: np.ndarray, rng: Generator) -> np.ndarray:
    X[row(X, rng), column(X, rng)] = rng.choice([1e6, -1e12, 1e100, 1e155, 1.7e308, 5e-324])
    return X


def missing(X: np.ndarray, rng: Generator) -> np.ndarray:
    X[row(X, rng), column(X, rng)] = rng.choice([np.nan, np.inf, -np.inf])
    return X


def all_missing(X: np.ndarray, rng: Generator) -> np.ndarray:
    X[:, column(X, rng)] = np.nan
    return X


def few_valued(X: np.ndarray, rng: Generator) -> np.ndarray:
    return np.sign(X) + (rng.random() < 0.5)


def rounded(X: np.ndarray, rng: Generator) -> np.ndarray:
    return np.round(X, int(rng.integers(0, 3)))


def repeated_rows(X: np.ndarray, rng: Generator) -> np.ndarray:
    return X[rng.integers(max(1, len(X) // 4), size=len(X))]


def heavy_tails(X: np.ndarray, rng: Generator) -> np.ndarray:
    return np.sign(X) * np.abs(X) ** rng.choice([7, 60])


CHANGES = (
    constant, nearly_constant, duplicated, collinear, scaled, scaled_alike, shifted, outlier, missing, all_missing,
    few_valued, rounded, repeated_rows, heavy_tails,
)  # fmt: skip


def column(X: np.ndarray, rng: Generator) -> int:
    return int(rng.integers(X.shape[1]))


def row(X: np.ndarray, rng: Generator) -> int:
    return int(rng.integers(len(X)))


# --- what holds them ----------------------------------------------------------------------------------------------


def dressed(X: np.ndarray, rng: Generator) -> tuple[Any, str]:
    """The numbers as users hold them: arrays of every kind and layout, frames, lists, moments."""
    make = DRESSES[int(rng.integers(len(DRESSES)))] if rng.random() < 0.8 else as_it_is
    with np.errstate(all="ignore"):
        return make(X, rng), make.__name__


def as_it_is(X: np.ndarray, rng: Generator) -> Any:
    return X


def fortran(X: np.ndarray, rng: Generator) -> Any:
    return np.asfortranarray(X)


def strided(X: np.ndarray, rng: Generator) -> Any:
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    return wide[::2, ::3]


def backwards(X: np.ndarray, rng: Generator) -> Any:
    return X[::-1, ::-1]


def read_only(X: np.ndarray, rng: Generator) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def other_bytes(X: np.ndarray, rng: Generator) -> Any:
    return X.astype(X.dtype.newbyteorder())


def of_type(X: np.ndarray, rng: Generator) -> Any:
    kinds = ("int64", "int8", "uint8", "bool", "float16", "float32", "longdouble", "complex128", "datetime64[s]")
    kind = str(rng.choice(kinds))
    finite = np.nan_to_num(X, nan=0.0, posinf=9.0, neginf=-9.0)
    whole = np.clip(finite * 3, -100, 100)
    return whole.astype("int64").astype(kind) if kind[0] in "iubd" else X.astype(kind)


def masked(X: np.ndarray, rng: Generator) -> Any:
    return np.ma.masked_array(X, mask=rng.random(X.shape) < rng.choice([0.0, 0.1]))


def objects(X: np.ndarray, rng: Generator) -> Any:
    Y = X.astype(object)
    if Y.size:
        strange = [None, "3.5", "text", "1e999", True, 10**400, [1], pd.NA, pd.NaT, 1j, b"1", "\x1b[2J"]
        Y[row(X, rng), column(X, rng)] = strange[int(rng.integers(len(strange)))]
    return Y


def strings(X: np.ndarray, rng: Generator) -> Any:
    return X.astype(str)


def lists(X: np.ndarray, rng: Generator) -> Any:
    rows = X.tolist()
    if rows and rng.random() < 0.3:
        rows[-1] = rows[-1][:-1]
    return rows


def other_shape(X: np.ndarray, rng: Generator) -> Any:
    return (X.ravel(), X[None], X[:, :, None], np.float64(3.0), None, "table.csv", {"a": 1}, X[:6].T)[
        int(rng.integers(8))
    ]


def pandas_frame(X: np.ndarray, rng: Generator) -> Any:
    d = X.shape[1]
    labels = (random_names(d, rng), list(range(d)), [f"c{i}" for i in range(d)], [("a", i) for i in range(d)])
    frame = pd.DataFrame(X, columns=pd.Index(labels[int(rng.integers(4))], tupleize_cols=False))
    if frame.size and rng.random() < 0.4:
        position = column(X, rng)
        series = frame.iloc[:, position]
        extra = (
            pd.Series(pd.Categorical(["u"] * len(X))),
            pd.Series(pd.date_range("2020", periods=len(X))),
            pd.Series(["text"] * len(X)),
            pd.Series(np.arange(len(X)), dtype="Int64"),
            pd.Series([pd.NA] * len(X), dtype="Float64"),
            pd.Series(np.arange(len(X)) % 2 == 0),
            pd.Series(pd.to_timedelta(np.arange(len(X)), unit="s")),
            series.astype(object),
        )[int(rng.integers(8))]
        columns = [frame.iloc[:, j] for j in range(d)]
        columns[position] = extra
        frame = pd.concat(columns, axis=1)
        frame.columns = pd.Index(labels[2])
    return frame


def polars_frame(X: np.ndarray, rng: Generator) -> Any:
    pl = __import__("polars")
    names = dict.fromkeys(random_names(X.shape[1], rng))
    frame = pl.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    if frame.width and rng.random() < 0.3:
        frame = frame.with_columns(pl.Series(frame.columns[0], [None] * len(X), dtype=pl.Float64))
    return frame


def moments(X: np.ndarray, rng: Generator) -> Any:
    try:
        return Moments.of(X)
    except ValueError:
        return X


DRESSES = (
    as_it_is, fortran, strided, backwards, read_only, other_bytes, of_type, of_type, masked, objects, strings, lists,
    other_shape, pandas_frame, pandas_frame, polars_frame, moments,
)  # fmt: skip


def random_names(d: int, rng: Generator) -> list[str]:
    """Names of columns: some strange, some twice."""
    if rng.random() < 0.8:
        return [str(rng.choice(FAIR)) + str(i) for i in range(d)]
    return ["".join(rng.choice(PIECES, size=int(rng.integers(0, 4)))) for _ in range(d)]


# --- settings -----------------------------------------------------------------------------------------------------


def settings(rng: Generator, n: int, d: int) -> dict[str, Any]:
    """Valid settings of the estimator, and budgets so small that a fit takes some hundredths of a second."""
    small = n <= 30 and d <= 4
    regression = pick(
        rng,
        *["linear"] * 6,
        Linear(reference=True),
        *[
            GaussianProcess(alpha=float(rng.choice([1.0, 0.1])), median_scale=bool(rng.random() < 0.5)),
            GaussianProcess(max_rows=10, inducing=5),
            SklearnRegression(LinearRegression()),
            SklearnRegression(DecisionTreeRegressor(max_depth=1), cv=2),
        ]
        * small,
    )
    names = ["auto", "ppo", "a2c", "reinforce", "conditional", "credit", "orders"]
    names += ["local"] * (regression == "linear")
    algorithm = pick(rng, *names, "settings")
    steps, batch = int(rng.integers(1, 6)), int(rng.integers(2, 6))
    if algorithm != "auto":
        algorithm = {
            "ppo": PPO(n_steps=steps, batch_size=batch, n_epochs=2, minibatches=2),
            "a2c": A2C(n_steps=steps, batch_size=batch, max_grad_norm=None),
            "reinforce": REINFORCE(n_steps=steps, batch_size=batch, entropy=0.1, learning_rate=10.0),
            "conditional": Conditional(n_steps=steps, batch_size=batch, bound=0.5),
            "credit": NodeCredit(n_steps=steps, batch_size=batch),
            "orders": Orders(n_steps=steps, batch_size=batch, stall=1, agree=1),
            "local": LocalSearch(n_steps=steps, chains=2, agree=1, patience=5),
            "settings": Conditional(n_steps=1, batch_size=1, patience=1, learning_rate=1e3),
        }[algorithm]
    return {
        "criterion": pick(rng, *CRITERIA),
        "regression": regression,
        "algorithm": algorithm,
        "prune": pick(rng, *PRUNERS),
        "init": pick(rng, "auto", "random"),
        "refine": bool(rng.random() < 0.7),
        "standardize": bool(rng.random() < 0.3),
        "time_budget": 0.05 if rng.random() < 0.05 else None,
        "n_jobs": int(rng.choice([1, 1, 1, 2])),
        "random_state": int(rng.integers(100)),
    }


CRITERIA = (
    "bic-nv", "ebic-nv", "bic-ev", "ebic-ev", "ls", BIC(discount=0.0), BIC(offset=1e-8),
    BIC("equal", gamma=0.5, multiplicity="constant"), LeastSquares(0.0), LeastSquares(1e6),
)  # fmt: skip
PRUNERS = (
    "auto", "linear", "bic", "cam", "ci", None, prune.CAM(alpha=0.5), prune.CI(alpha=0.2),
    prune.Threshold(0.0, standardised=True),
)  # fmt: skip


def pick(rng: Generator, *options: Any) -> Any:
    """One of several."""
    return options[int(rng.integers(len(options)))]
