"""Simulated data: graph x mechanism x noise, each a small function with an explicit ``rng``.

>>> rng = np.random.default_rng(0)
>>> data = linear_gaussian(d=10, k=2, n=1000, rng=rng)
>>> data = simulate(erdos_renyi(10, 4, rng), mlp, laplace, n=500, rng=rng)
>>> data = preset("dense-er8", seed=0)

A graph is an array (d, d), weighted for linear models, ``A[i, j] != 0`` meaning ``i -> j``. A noise is any
``(n, d, rng) -> E`` and a mechanism any ``(A, E, rng) -> X`` with ``E`` and ``X`` of shape (n, d); options
are set with :func:`functools.partial`, and :func:`ancestral` turns a random function of the parents into a
mechanism.

The same seed gives the same bytes on every run, whatever the number of threads. Linear data use only
elementwise arithmetic; Gaussian processes and networks can differ in the last digits between processors.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist
from scipy.special import expit
from threadpoolctl import threadpool_limits

from ._checks import (
    LARGEST,
    as_numbers,
    as_real,
    brief,
    check_names,
    choose,
    default_names,
    flag,
    function,
    generator,
    is_constant,
    number,
    quoted,
    whole_number,
)
from .graph import as_adjacency, topological_order
from .interventions import Interventions

# fmt: off
__all__ = [
    "Dataset", "additive_gaussian_process", "ancestral", "erdos_renyi", "exponential", "gaussian",
    "gaussian_process", "gumbel", "laplace", "linear", "linear_gaussian", "mlp", "post_nonlinear", "preset",
    "presets", "scale_free", "simulate", "unequal_gaussian", "uniform", "uniform_weights",
]
# fmt: on

Array = NDArray[np.float64]
Noise = Callable[[int, int, Generator], Array]
Draw = Callable[[Array, Generator], Array]
Link = Callable[[Array], Array]
Mechanism = Callable[..., Array]
# More rows, or nodes, than this no memory holds.
MOST = 10**9


def _count(name: str, value: Any, least: int) -> int:
    return whole_number(name, value, least, MOST)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with the graph that made it.

    Attributes
    ----------
    X : array of shape (n, d), float64
    A : array of shape (d, d), uint8
        True DAG, ``A[i, j] = 1`` for ``i -> j``.
    names : tuple of d str
        Column names, ``x0, x1, ...`` unless given.
    meta : dict
        How the data were made; ``meta["weights"]`` (d, d) holds the coefficients of linear models.
    """

    X: Array
    A: NDArray[np.uint8]
    names: tuple[str, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        X, A = as_numbers(self.X), as_adjacency(self.A)
        d = len(A)
        if A.ndim != 2 or X.ndim != 2 or X.shape[1] != d:
            raise ValueError(f"X must have shape (n, d) and A (d, d), got {X.shape} and {A.shape}")
        unnamed = isinstance(self.names, tuple | list) and not self.names
        names = default_names(d) if unnamed else check_names(self.names, d)
        for key, value in (("X", X), ("A", A), ("names", names)):
            object.__setattr__(self, key, value)

    def hide(self, k: int, rng: Generator) -> "Dataset":
        """Remove ``k`` random variables: hidden confounders where they had several children.

        ``A`` becomes the induced subgraph; a path through a removed variable does not become an edge.
        ``meta["hidden"]`` names the removed variables.
        """
        generator(rng)
        d = len(self.names)
        if _count("k", k, 0) >= d:
            raise ValueError(f"k must be less than the number of variables {d}, got {k}")
        hidden = np.sort(rng.choice(d, size=k, replace=False))
        kept = np.delete(np.arange(d), hidden)
        meta = self.meta | {"hidden": tuple(self.names[i] for i in hidden)}
        if "weights" in meta:
            meta["weights"] = meta["weights"][np.ix_(kept, kept)]
        names = tuple(self.names[i] for i in kept)
        if "interventions" in meta:
            targets = meta["interventions"]
            meta["interventions"] = Interventions.of(targets.is_set[targets.rows][:, kept], names)
        return Dataset(self.X[:, kept], self.A[np.ix_(kept, kept)], names, meta)

    def corrupt(self, p: float, rng: Generator, variance: float = 0.1) -> "Dataset":
        """Add Gaussian noise to a random fraction ``p`` of the entries (exactly ``round(p n d)`` of them).

        The variance of the noise is 0.1 in the paper and 1 in the code released with it.
        """
        generator(rng)
        if number("p", p, least=0) > 1:
            raise ValueError(f"p must be in [0, 1], got {p}")
        deviation = np.sqrt(number("variance", variance, least=0))
        X = self.X.copy()
        entries = rng.choice(X.size, size=round(p * X.size), replace=False)
        X.flat[entries] += deviation * rng.standard_normal(len(entries))
        return replace(self, X=X, meta=self.meta | {"corrupted": p, "corruption_variance": variance})

    def standardise(self) -> "Dataset":
        """Every column with mean 0 and variance 1 (divisor n); ``meta["weights"]`` stay in the old units."""
        constant = np.flatnonzero(is_constant(self.X))
        if constant.size:
            raise ValueError(f"constant columns cannot be standardised: {quoted(self.names[i] for i in constant)}")
        X = (self.X - self.X.mean(axis=0)) / self.X.std(axis=0)
        return replace(self, X=X, meta=self.meta | {"standardised": True})


def erdos_renyi(d: int, k: float, rng: Generator, *, exact: bool = False) -> NDArray[np.uint8]:
    """Erdos-Renyi DAG "ER-k" over a uniformly random order: every node has ``k`` parents on average.

    gCastle joins two nodes with probability 2 k / d, which gives k (d - 1) edges; here it is 2 k / (d - 1).

    Parameters
    ----------
    d : int
        Number of nodes.
    k : float in [0, (d - 1) / 2]
        Expected in-degree: ``k d`` edges are expected.
    rng : numpy Generator
    exact : bool, default False
        Exactly ``round(k d)`` edges instead of independent ones.

    Returns
    -------
    A : array of shape (d, d), uint8
    """
    generator(rng)
    flag("exact", exact)
    if number("k", k, least=0) > (_count("d", d, 1) - 1) / 2:
        raise ValueError(f"k must be between 0 and (d - 1) / 2 = {(d - 1) / 2} for {d} nodes, got {k}")
    rows, columns = np.triu_indices(d, k=1)
    if exact:
        edges = np.sort(rng.choice(len(rows), size=round(k * d), replace=False))
    else:
        edges = np.flatnonzero(rng.random(len(rows)) < (2 * k / (d - 1) if d > 1 else 0))
    order = rng.permutation(d)
    A = np.zeros((d, d), dtype=np.uint8)
    A[order[rows[edges]], order[columns[edges]]] = 1
    return A


def scale_free(d: int, k: int, rng: Generator, *, orient: str = "random") -> NDArray[np.uint8]:
    """Scale-free DAG "SF-k" by preferential attachment (Barabasi and Albert, 1999): ``k (d - k)`` edges.

    Nodes 0 to k - 1 are joined to the first newcomer; every later newcomer is joined to ``k`` different nodes
    chosen with probability proportional to their degree.

    Parameters
    ----------
    d, k : int
        Numbers of nodes and of edges per newcomer, ``1 <= k < d``.
    rng : numpy Generator
    orient : {"random", "attachment"}, default "random"
        Direct the edges along a random order, as the paper's generator does (hubs are causes and effects), or
        from older to newer nodes (hubs are causes, and every newcomer has exactly ``k`` parents).

    Returns
    -------
    A : array of shape (d, d), uint8
        Labels are shuffled in both cases.
    """
    generator(rng)
    if _count("k", k, 1) >= _count("d", d, 2):
        raise ValueError(f"k must be less than d = {d}, got {k}")
    choose("orient", orient, dict.fromkeys(("random", "attachment")))
    ends: list[int] = []  # every node as often as its degree
    A = np.zeros((d, d), dtype=np.uint8)
    chosen = list(range(k))
    for newcomer in range(k, d):
        A[chosen, newcomer] = 1
        ends += chosen + [newcomer] * k
        distinct: dict[int, None] = {}
        while len(distinct) < k:
            distinct[ends[int(rng.integers(len(ends)))]] = None
        chosen = list(distinct)
    if orient == "random":
        age = rng.permutation(d)
        linked = (A | A.T)[np.ix_(age, age)]
        A = np.triu(linked, k=1)
    order = rng.permutation(d)
    return A[np.ix_(order, order)]


def _check_range(low: Any, high: Any, first: str = "<") -> None:
    """Refuse what are no bounds of positive numbers (or, with ``first="<="``, of those that may be 0)."""
    if not number("low", low, least=0) <= number("high", high, least=0) <= LARGEST or (first == "<" and low == 0):
        raise ValueError(
            f"low and high must satisfy 0 {first} low <= high <= {LARGEST:g}, got {brief(low)} and {brief(high)}"
        )


def _signed_uniform(shape: tuple[int, ...], rng: Generator, low: float, high: float) -> Array:
    magnitude = rng.uniform(low, high, size=shape)
    return np.where(rng.random(shape) < 0.5, -magnitude, magnitude)


def uniform_weights(A: ArrayLike, rng: Generator, low: float = 0.5, high: float = 2.0) -> Array:
    """Independent weights from U([-high, -low] u [low, high]) on the edges of ``A`` (d, d); 0 elsewhere."""
    generator(rng)
    _check_range(low, high)
    edges = as_adjacency(A).astype(bool)
    W = np.zeros(edges.shape)
    W[edges] = _signed_uniform((int(edges.sum()),), rng, low, high)
    return W


def _noise(n: Any, d: Any, rng: Any, scale: Any = 1.0) -> tuple[tuple[int, int], Array]:
    """Shape and scale, a number or one per variable (d,), of a noise that can be drawn."""
    generator(rng)
    shape, values = (_count("n", n, 1), _count("d", d, 1)), as_numbers(scale, "scale")
    if values.shape not in ((), shape[1:]) or not ((values >= 0) & (values <= LARGEST)).all():
        raise ValueError(f"scale must be a number from 0 to {LARGEST:g}, or {d} of them, got {brief(scale)}")
    return shape, values


def gaussian(n: int, d: int, rng: Generator, scale: ArrayLike = 1.0) -> Array:
    """Normal noise (n, d) of mean 0 and standard deviation ``scale``, a number or one per variable (d,)."""
    shape, deviations = _noise(n, d, rng, scale)
    return rng.standard_normal(shape) * deviations


def unequal_gaussian(n: int, d: int, rng: Generator, low: float = 1.0, high: float = 2.0) -> Array:
    """Normal noise (n, d) with a variance from U(low, high) for every variable."""
    _noise(n, d, rng)
    _check_range(low, high, "<=")
    return gaussian(n, d, rng, scale=np.sqrt(rng.uniform(low, high, size=d)))


def exponential(n: int, d: int, rng: Generator, scale: ArrayLike = 1.0) -> Array:
    """Exponential noise (n, d): mean ``scale``, variance ``scale^2``; not centred. ``scale`` as in :func:`gaussian`."""
    shape, means = _noise(n, d, rng, scale)
    return means * rng.standard_exponential(shape)


def gumbel(n: int, d: int, rng: Generator, scale: ArrayLike = 1.0) -> Array:
    """Gumbel(0, scale) noise (n, d): mean 0.5772 ``scale``, variance ``pi^2 scale^2 / 6``; not centred."""
    shape, scales = _noise(n, d, rng, scale)
    return rng.gumbel(0.0, scales, size=shape)


def laplace(n: int, d: int, rng: Generator, scale: ArrayLike = 1.0) -> Array:
    """Laplace(0, scale) noise (n, d): mean 0, variance ``2 scale^2``; ``scale`` a number or one each (d,)."""
    shape, scales = _noise(n, d, rng, scale)
    return rng.laplace(size=shape) * scales


def uniform(n: int, d: int, rng: Generator, scale: ArrayLike = 1.0) -> Array:
    """Uniform(-scale, scale) noise (n, d): mean 0, variance ``scale^2 / 3``; ``scale`` as in :func:`gaussian`."""
    shape, half = _noise(n, d, rng, scale)
    return rng.uniform(-half, half, size=shape)


def _noise_of(A: NDArray[Any], E: ArrayLike) -> Array:
    noise = as_numbers(E, "E")
    if noise.ndim != 2 or noise.shape[1] != len(A):
        raise ValueError(f"E must have shape (n, d) with d = {len(A)} nodes, got {noise.shape}")
    if not (np.abs(noise) <= LARGEST).all():
        raise ValueError(f"E must hold finite numbers of at most {LARGEST:g} in size")
    return noise.copy()


def _weights(W: Any, name: str) -> Array:
    """Coefficients (d, d); those that are not finite are no coefficients."""
    weights = as_numbers(W, name)
    if not (np.abs(weights) <= LARGEST).all():
        raise ValueError(f"{name} must hold finite numbers of at most {LARGEST:g} in size")
    return weights


def linear(W: ArrayLike, E: ArrayLike, rng: Generator | None = None, *, fixed: Array | None = None) -> Array:
    """Linear model ``X_j = sum_i W_ij X_i + E_j``, that is ``X = E (I - W)^-1``.

    Parameters
    ----------
    W : array of shape (d, d)
        Coefficients; an unweighted graph has coefficients 1.
    E : array of shape (n, d)
    rng : ignored
        Present because mechanisms take one.
    fixed : array of shape (n, d), optional
        Values that somebody sets, in place of what parents and noise would make, before children read them; NaN where
        nothing is set.

    Returns
    -------
    X : array of shape (n, d)
    """
    weights = _weights(W, "W")
    order = topological_order(as_adjacency(weights, "W"))
    columns = np.array(_noise_of(weights, E).T, order="C")
    fixed = _fixed(fixed, columns.T.shape)
    # One addition per edge in index order and no BLAS: the bytes depend neither on threads nor on the order.
    for j in order:
        for i in np.flatnonzero(weights[:, j]):
            columns[j] += weights[i, j] * columns[i]
        if fixed is not None:
            columns[j] = _set(columns[j], fixed[:, j])
    return np.ascontiguousarray(columns.T)


def _set(values: Array, fixed: Array) -> Array:
    """Values (n,) with those that are set in place of the others."""
    return np.where(np.isnan(fixed), values, fixed)


def _fixed(fixed: Any, shape: tuple[int, ...]) -> Array | None:
    """Values that were set, refused unless they are numbers, or nan, of the shape of the table."""
    if fixed is None:
        return None
    values = as_real(fixed, "fixed")
    if values.shape != shape:
        raise ValueError(f"fixed must have shape {shape}, nan where nothing was set, got {values.shape}")
    return values.astype(np.float64)


def ancestral(
    A: ArrayLike, E: ArrayLike, rng: Generator, draw: Draw, link: Link | None = None, *, fixed: Array | None = None
) -> Array:
    """Model ``X_j = link(f_j(X_parents) + E_j)`` with a random function ``f_j`` for every node.

    Parameters
    ----------
    A : array of shape (d, d)
        DAG; only the pattern of nonzeros matters.
    E : array of shape (n, d)
    rng : numpy Generator
    draw : callable (parents (n, p), rng) -> (n,)
        Draws a function and evaluates it at the rows of ``parents``; not called for nodes without parents,
        whose function is 0. Every node has its own ``rng``.
    link : callable, optional
        Elementwise; the identity if not given.
    fixed : array of shape (n, d), optional
        As in :func:`linear`.

    Returns
    -------
    X : array of shape (n, d)
    """
    generator(rng)
    function("draw", draw, "(parents, rng) -> values")
    if link is not None:
        function("link", link, "of values")
    adjacency = as_adjacency(A)
    X = _noise_of(adjacency, E)
    fixed = _fixed(fixed, X.shape)
    seeds = rng.integers(2**63, size=len(adjacency))
    for j in topological_order(adjacency):
        parents = np.flatnonzero(adjacency[:, j])
        if len(parents):
            X[:, j] += draw(X[:, parents], np.random.default_rng(seeds[j]))
        if link is not None:
            X[:, j] = link(X[:, j])
        if fixed is not None:
            X[:, j] = _set(X[:, j], fixed[:, j])
    return X


def _draw_gp(parents: Array, rng: Generator, additive: bool = False) -> Array:
    # Kernel exp(-|x - y|^2 / 2); independent functions of one parent each add up to the sum of their kernels.
    blocks = parents.T[:, :, None] if additive else parents[None]
    K = np.zeros((len(parents), len(parents)))
    for block in blocks:
        K += np.exp(-cdist(block, block, "sqeuclidean") / 2)
    # Kernel matrices are singular to rounding; a variance of 1e-8 is far below that of any noise here.
    K.flat[:: len(K) + 1] += 1e-8
    return cholesky(K, lower=True, overwrite_a=True, check_finite=False) @ rng.standard_normal(len(K))


def _processes(
    A: ArrayLike, E: ArrayLike, rng: Generator, draw: Draw, link: Link | None = None, *, fixed: Array | None = None
) -> Array:
    with threadpool_limits(limits=1, user_api="blas"):  # threads change the order of sums, hence the bytes
        return ancestral(A, E, rng, draw, link, fixed=fixed)


def _draw_mlp(parents: Array, rng: Generator, hidden: int, low: float, high: float) -> Array:
    inner = _signed_uniform((parents.shape[1], hidden), rng, low, high)
    outer = _signed_uniform((hidden,), rng, low, high)
    # einsum and not @: no BLAS, for the same reason as above
    return np.einsum("nh,h->n", expit(np.einsum("np,ph->nh", parents, inner)), outer)


def gaussian_process(A: ArrayLike, E: ArrayLike, rng: Generator, *, fixed: Array | None = None) -> Array:
    """Model ``X_j = f_j(X_parents) + E_j``, ``f_j`` from a Gaussian process with kernel ``exp(-|x - y|^2 / 2)``.

    Parameters and result as in :func:`ancestral`. Time n^3 and memory n^2 per node.
    """
    return _processes(A, E, rng, _draw_gp, fixed=fixed)


def additive_gaussian_process(A: ArrayLike, E: ArrayLike, rng: Generator, *, fixed: Array | None = None) -> Array:
    """Model ``X_j = sum_i f_ij(X_i) + E_j``: as :func:`gaussian_process`, with one process per parent."""
    return _processes(A, E, rng, partial(_draw_gp, additive=True), fixed=fixed)


def _standardised_expit(values: Array) -> Array:
    squashed = expit(values)
    spread = squashed.std()
    # What does not vary cannot be given a variance of 1.
    return (squashed - squashed.mean()) / spread if spread > 0 else np.zeros_like(squashed)


def post_nonlinear(
    A: ArrayLike, E: ArrayLike, rng: Generator, *, rescale: bool = False, fixed: Array | None = None
) -> Array:
    """Model ``X_j = sigmoid(f_j(X_parents) + E_j)`` with ``f_j`` as in :func:`gaussian_process`.

    Functions of unit bandwidth hardly vary over (0, 1), the range of the parents; ``rescale=True`` gives
    every variable mean 0 and variance 1 before its children read it.
    """
    link = _standardised_expit if flag("rescale", rescale) else expit
    return _processes(A, E, rng, _draw_gp, link, fixed=fixed)


def mlp(
    A: ArrayLike,
    E: ArrayLike,
    rng: Generator,
    *,
    hidden: int = 100,
    low: float = 0.5,
    high: float = 2.0,
    fixed: Array | None = None,
) -> Array:
    """Model ``X_j = w' sigmoid(V' X_parents) + E_j``: one hidden layer, no biases, as in NOTEARS and DAGMA.

    Parameters as in :func:`ancestral`; the entries of ``V`` (p, hidden) and ``w`` (hidden,) are drawn from
    U([-high, -low] u [low, high]).
    """
    _check_range(low, high)
    draw = partial(_draw_mlp, hidden=_count("hidden", hidden, 1), low=low, high=high)
    return ancestral(A, E, rng, draw, fixed=fixed)


def _name(function: Any) -> str:
    return getattr(getattr(function, "func", function), "__name__", type(function).__name__)


def simulate(
    graph: ArrayLike | Callable[[Generator], ArrayLike],
    mechanism: Mechanism = linear,
    noise: Noise = gaussian,
    *,
    n: int = 1000,
    rng: Generator,
    names: tuple[str, ...] = (),
    interventions: Any = None,
    do: Noise = gaussian,
) -> Dataset:
    """Draw a table of ``n`` rows from a graph, a mechanism and a noise.

    Parameters
    ----------
    graph : array of shape (d, d) or callable rng -> array
        DAG; its entries are the coefficients of the mechanism :func:`linear` (see :func:`uniform_weights`).
    mechanism : callable (A, E, rng) -> X, default :func:`linear`
    noise : callable (n, d, rng) -> E, default :func:`gaussian`
    n : int, default 1000
    rng : numpy Generator
    names : tuple of d str, optional
    interventions : sequence of n entries, or Interventions, optional
        Which variables are set in every row, as :meth:`vec2dag.Interventions.of` takes it; ``meta`` then holds them.
        The mechanism must take ``fixed``, as those here do.
    do : callable (n, d, rng) -> values, default :func:`gaussian`
        What variables are set to, independently of everything else.
    """
    generator(rng)
    _count("n", n, 1)
    function("mechanism", mechanism, "(A, E, rng) -> X")
    function("noise", noise, "(n, d, rng) -> E")
    A = _weights(graph(rng) if callable(graph) and not isinstance(graph, type) else graph, "graph").copy()
    topological_order(as_adjacency(A, "graph"))
    meta: dict[str, Any] = {"mechanism": _name(mechanism), "noise": _name(noise)}
    if mechanism is linear:
        meta["weights"] = A
    E = as_numbers(noise(n, len(A), rng), "the result of noise")
    more: dict[str, Any] = {}
    if interventions is not None:
        function("do", do, "(n, d, rng) -> values")
        targets = meta["interventions"] = Interventions.of(interventions, names or default_names(len(A)), n)
        values = as_numbers(do(n, len(A), rng), "the result of do")
        more["fixed"] = np.where(targets.is_set[targets.rows], values, np.nan)
    X = as_numbers(mechanism(A, E, rng, **more), "the result of mechanism")
    return Dataset(X, as_adjacency(A), names, meta)


def linear_gaussian(
    d: int,
    k: float,
    n: int,
    rng: Generator,
    *,
    low: float = 0.5,
    high: float = 2.0,
    noise: Noise = gaussian,
    interventions: Any = None,
    do: Noise = gaussian,
) -> Dataset:
    """The paper's linear data: an ER-k graph, weights from U([-high, -low] u [low, high]), noise N(0, 1).

    Parameters
    ----------
    d, n : int
        Numbers of variables and of rows.
    k : float
        Expected in-degree.
    rng : numpy Generator
    low, high : float
        Range of the absolute weights: 0.5 to 2 as is usual, 2 to 5 in the paper's first experiment.
    noise : callable (n, d, rng) -> E, default :func:`gaussian`
    interventions, do
        As in :func:`simulate`.
    """
    W = uniform_weights(erdos_renyi(d, k, rng), rng, low, high)
    return simulate(W, linear, noise, n=n, rng=rng, interventions=interventions, do=do)


def _scale_free(d: int, k: int, n: int, rng: Generator) -> Dataset:
    return simulate(uniform_weights(scale_free(d, k, rng), rng), n=n, rng=rng)


def _mlp_er4(rng: Generator) -> Dataset:
    return simulate(erdos_renyi(10, 4, rng), mlp, rng=rng)


def _pnl_er4(rng: Generator) -> Dataset:
    # As measured in the paper's sets: standardised variables, noise of very different scales.
    noise = partial(laplace, scale=rng.uniform(size=10))
    return simulate(erdos_renyi(10, 4, rng), partial(post_nonlinear, rescale=True), noise, rng=rng)


def _gp_er4(rng: Generator) -> Dataset:
    # Noise variances as measured in the paper's GP sets: U(1, 2) for sources, U(0.04, 0.08) for other nodes.
    A = erdos_renyi(10, 4, rng)
    u = rng.uniform(1, 2, size=10)
    scale = np.sqrt(np.where(A.any(axis=0), 0.04 * u, u))
    return simulate(A, gaussian_process, partial(gaussian, scale=scale), rng=rng)


def _noisy_er8(p: float, variance: float, rng: Generator) -> Dataset:
    return linear_gaussian(30, 8, 1000, rng).corrupt(p, rng, variance)


def _hidden_er8(k: int, rng: Generator) -> Dataset:
    return linear_gaussian(30 + k, 8, 1000, rng).hide(k, rng)


def _standardised(build: Callable[..., Dataset], rng: Generator) -> Dataset:
    return build(rng=rng).standardise()


_wide = partial(linear_gaussian, low=2.0, high=5.0)
_PRESETS: dict[str, Callable[..., Dataset]] = {
    "dense-er8": partial(linear_gaussian, 30, 8, 1000),
    "highdim-er2": partial(linear_gaussian, 200, 2, 1000),
    "sparse-er2": partial(linear_gaussian, 30, 2, 1000),
    "gp-er4": _gp_er4,
    "pnl-er4": _pnl_er4,
    "mlp-er4": _mlp_er4,
    "standardised-er2": partial(_standardised, partial(_wide, 10, 2, 1000)),
    "standardised-gp-er4": partial(_standardised, _gp_er4),
    **{f"linear-er{k}-d{d}": partial(_wide, d, k, 1000) for k in (1, 2) for d in (10, 30, 50, 100)},
    **{f"regular-er{k}-d{d}": partial(linear_gaussian, d, k, 1000) for k in (1, 2) for d in (10, 30, 50, 100)},
    **{
        f"samples-{name}8-d{d}-n{n}": partial(build, d, 8, n)
        for name, build in (("er", linear_gaussian), ("sf", _scale_free))
        for d in (20, 30, 50)
        for n in (100, 500, 1000, 2000, 5000)
    },
    **{f"noise-{f.__name__}": partial(_wide, 30, 2, 1000, noise=f) for f in (exponential, gumbel, laplace, uniform)},
    **{f"noisy-er8-p{p}": partial(_noisy_er8, p / 100, 0.1) for p in (1, 3, 5, 10)},
    **{f"noisy-er8-p{p}-v1": partial(_noisy_er8, p / 100, 1.0) for p in (1, 3, 5, 10)},
    **{f"hidden-er8-k{k}": partial(_hidden_er8, k) for k in (1, 2, 3, 4)},
    **{f"varsortability-er{k}": partial(linear_gaussian, 30, k, 1000) for k in (1, 2, 4, 6, 8)},
}


def presets() -> list[str]:
    """Names of the settings of the paper's tables and figures, for :func:`preset`.

    Weights are 0.5 to 2 in ``dense-er8``, ``highdim-er2``, ``sparse-er2``, ``regular-er{k}-d{d}``,
    ``samples-{er8|sf8}-d{d}-n{n}``, ``noisy-er8-p{percent}`` (noise of variance 0.1 on some entries; 1 with
    the suffix ``-v1``), ``hidden-er8-k{k}`` and ``varsortability-er{k}``, and 2 to 5 in
    ``linear-er{k}-d{d}``, ``noise-{name}`` and ``standardised-er2``. Nonlinear: ``gp-er4``, ``pnl-er4``,
    ``mlp-er4`` and ``standardised-gp-er4``.
    """
    return sorted(_PRESETS)


def preset(name: str, seed: int = 0) -> Dataset:
    """Data of one of the paper's settings (:func:`presets`); the same name and seed give the same bytes.

    Different seeds, and different names, give independent data. ``meta`` also holds ``preset`` and ``seed``.
    """
    build = choose("name", name, _PRESETS)
    whole_number("seed", seed, 0)
    data = build(rng=np.random.default_rng([seed, zlib.crc32(name.encode())]))
    return replace(data, meta=data.meta | {"preset": name, "seed": int(seed)})
