"""From a score to a DAG: choose the algorithm and the start, search, refine."""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .engines import ALGORITHMS, GraphScore
from .graph import as_adjacency, is_dag, topological_order
from .nonlinear import BoundRegression
from .orders import LinearOrders, Refined, descend_all, orders_of
from .policy import GaussianPolicy
from .refine import certify, equal_variance_order, exact_search, order_search, policy_at
from .scores import Linear, OutOfTime, Score, choose
from .search import Callback, SearchResult, check_options, policy_gradient

__all__ = ["discover"]

# Up to EXACT nodes the best of all DAGs is computed where the score is a sum over nodes: tenths of a second.
EXACT = 12
# Up to SMALL nodes restarts go on until independent chains agree, which costs milliseconds; beyond MANY there are
# none, as a descent takes seconds.
SMALL, MANY = 20, 300
# Regressions that are not linear are searched on one row of THIN first, if that leaves FEWEST rows.
THIN, FEWEST = 4, 100
RESTARTS = {"batch_size": 2, "stall": 2, "agree": 2}
ONE_CHAIN = {"batch_size": 2, "stall": 3, "agree": 1}
# Up to so many nodes all of their d 2^(d-1) regressions are no more than a search would make.
EXACT_FITS = 7
# Steps without improvement after which a policy that started at a good order has settled.
WARM_PATIENCE = 20


def discover(
    score: GraphScore,
    *,
    rng: np.random.Generator,
    d: int | None = None,
    algorithm: str | type = "auto",
    search: Callable[..., SearchResult] = policy_gradient,
    init: str | ArrayLike = "auto",
    refine: bool = True,
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    entropy: float = 0.0,
    bound: float = 10.0,
    time_budget: float | None = None,
    callback: Callback | None = None,
) -> SearchResult:
    """Find the DAG with the highest score.

    Parameters
    ----------
    score : Score or callable
        A :class:`Score`, or any function of one adjacency matrix (d, d) that returns a number.
    rng : numpy Generator
    d : int, optional
        Number of nodes; needed unless ``score`` has an attribute ``d``.
    algorithm : {"auto", "conditional", "credit", "ppo", "a2c", "reinforce"}, default "auto"
        ``"auto"`` is the conditional gradient for equal-variance scores with linear regression (``bic-ev``,
        ``ls``), the policy over orders (:func:`vec2dag.refine.order_search`) for other scores with local parts
        when ``refine`` is on, and PPO for arbitrary callables.
    search : callable, default policy_gradient
        What runs the algorithm; :func:`vec2dag.sb3.train` is the other one. With it ``"auto"`` is PPO from a random
        start, and without ``refine`` the result is the decoded mean, as in the paper.
    init : {"auto", "random"}, adjacency matrix (d, d), or order (d,), default "auto"
        ``"auto"`` is the greedy equal-variance order for equal-variance linear scores, random otherwise.
    refine : bool, default True
        Continue with insertion search to a certified local optimum, or, up to 12 nodes (7 for regressions other than
        linear) and for ``bic-nv`` and ``ls``, with the exact search for the best of all DAGs; arbitrary callables are
        not refined.
    n_steps, batch_size, learning_rate, entropy, bound, time_budget, callback
        As in :func:`policy_gradient`; the policy over orders has no use for the learning rate, entropy and bound. The
        clock is looked at between regressions that are not linear, and otherwise between descents, of which one can
        take seconds on hundreds of nodes. A callback that ends the search also ends the refinement.

    Returns
    -------
    SearchResult
    """
    d = d if d is not None else getattr(score, "d", None)
    if d is None:
        raise ValueError("d is needed: the score has no attribute d")
    native = search is policy_gradient
    if native:
        choose("algorithm", str(algorithm), {"auto": None, **dict.fromkeys(ALGORITHMS)})
    check_options(bound, entropy, time_budget)
    if learning_rate is not None and not learning_rate > 0:
        raise ValueError(f"learning_rate must be positive, got {learning_rate!r}")
    local = score if isinstance(score, Score) else None
    equal_variances = local is not None and local.criterion.name in ("bic-ev", "ls")
    greedy = native and equal_variances and isinstance(getattr(score, "regression", None), Linear)
    before = 0 if local is None else local.fits
    policy, name = _start(score, d, init, greedy)
    deadline = np.inf if time_budget is None else time.perf_counter() + time_budget
    options: dict[str, Any] = {"n_steps": n_steps, "batch_size": batch_size, "callback": callback}
    if native and algorithm == "auto" and local is not None and refine and not greedy and policy is None:
        if isinstance(local.regression, BoundRegression):
            found, name = _frugal(local, rng, deadline, options)
        else:
            found = order_search(local, rng=rng, time_budget=time_budget, **options)
    else:
        if algorithm == "auto":
            algorithm = "ppo" if local is None or not native else "conditional"
        warm = name == "equal-variance order" and algorithm == "conditional"
        found = search(
            score,
            d=d,
            rng=rng,
            algorithm=algorithm,
            learning_rate=learning_rate,
            entropy=entropy,
            bound=bound,
            init=policy,
            patience=WARM_PATIENCE if warm else None,
            time_budget=time_budget,
            **options,
        )
    found = replace(found, init=name)
    if not native and not refine:
        found = replace(found, A=found.mode, score=found.mode_score)
    if refine and local is not None and found.stopped not in ("interrupted", "callback"):
        found = _refine(local, found, rng, deadline)
    return found if local is None else replace(found, fits=local.fits - before)


def _start(score: Any, d: int, init: str | ArrayLike, greedy: bool) -> tuple[GaussianPolicy | None, str]:
    """The policy to start from (None is the algorithm's own cold start), and what it is called."""
    if isinstance(init, str):
        choose("init", init, {"auto": None, "random": None})
        if init == "random" or not greedy:
            return None, "random"
        order = equal_variance_order(score)
        A = LinearOrders(score).select(order)
        return policy_at(A, order, sigma=2.0 / d), "equal-variance order"
    values = np.asarray(init)
    if values.shape == (d, d):
        A = as_adjacency(values, "init")
        if not is_dag(A):
            raise ValueError("init has a directed cycle: it must be a DAG or an order")
        return policy_at(A, topological_order(A), sigma=2.0 / d), "given"
    if values.shape == (d,) and sorted(values.tolist()) == list(range(d)):
        policy = policy_at(np.zeros((d, d), np.uint8), values.astype(np.int64), sigma=2.0 / d)
        policy.mu[d:] = 0.0  # an order says nothing about edges
        return policy, "given"
    raise ValueError(
        f"init must be 'auto', 'random', an adjacency matrix {(d, d)}, or an order of {d} columns, got {init!r}"
    )


def _frugal(
    score: Score, rng: np.random.Generator, deadline: float, options: dict[str, Any]
) -> tuple[SearchResult, str]:
    """The policy over orders where a regression takes its time: restarts on a part of the rows, one chain on all."""

    def search(score: Score, share: float = 1.0, **settings: Any) -> SearchResult:
        left = None if np.isinf(deadline) else max(share * (deadline - time.perf_counter()), 1e-3)
        given = {name: value for name, value in options.items() if value is not None}
        return order_search(score, rng=rng, time_budget=left, **settings | given)

    assert isinstance(score.regression, BoundRegression)
    guide = None
    if score.n >= THIN * FEWEST:
        thinned = Score(None, score.regression.thinned(THIN), score.criterion, n_jobs=score.n_jobs)
        # What cannot be regressed on a part, a dummy variable for instance, may well be on the whole.
        with suppress(ValueError):
            guide = search(thinned, share=0.25, **RESTARTS)
    if guide is None:
        return search(score, **RESTARTS), "random"
    stopped, start = guide.stopped, None
    if stopped not in ("interrupted", "callback"):
        try:
            start = Refined(guide.A, float(score(guide.A)), topological_order(guide.A))
            orders = orders_of(score, guide.A, deadline)
            start = max([start, *descend_all(orders, [start.order], 1)], key=lambda r: r.score)
            return search(score, start=start, **ONE_CHAIN), "a quarter of the rows"
        except KeyboardInterrupt:
            stopped = "interrupted"
            warnings.warn("interrupted: returning the best DAG so far", stacklevel=4)
    start = start or Refined(guide.A, float(score(guide.A)), topological_order(guide.A))
    found = replace(guide, A=start.A, score=start.score, mode=start.A, mode_score=start.score, stopped=stopped)
    return found, "a quarter of the rows"


def _refine(score: Score, found: SearchResult, rng: np.random.Generator, deadline: float) -> SearchResult:
    """Descend from what the search found and from orders around it, then certify."""

    def left() -> float:
        return deadline - time.perf_counter()

    best = Refined(found.A, found.score, topological_order(found.A))
    stopped, certified = found.stopped, False
    linear = isinstance(score.regression, Linear)
    few = score.d <= (EXACT if linear else EXACT_FITS)
    # Exact search cannot stop half way, so that it is not for expensive regressions within a budget.
    exact = few and score.criterion.decomposable and (left() > 0 if linear else np.isinf(deadline))
    try:
        if exact:
            # Among equivalent optima the one that the search found stays.
            optimum = exact_search(score)
            best = optimum if optimum.score > best.score + score.resolution else best
            return replace(found, A=best.A, score=best.score, certified=True, exact=True)
        orders = orders_of(score, best.A, deadline)
        if found.algorithm != "orders" and left() > 0:
            mean = np.argsort(found.policy.mu[: score.d], kind="stable")
            second = equal_variance_order(score) if found.init == "equal-variance order" else mean
            starts = [best.order, second] if score.d <= MANY else [best.order]
            ends = descend_all(orders, starts, score.n_jobs, deadline)
            best = max([best, *ends], key=lambda r: r.score)
            if isinstance(orders, LinearOrders) and score.d <= MANY and left() > 0:
                best = max([best, *(certify(score, orders, end, deadline) for end in ends)], key=lambda r: r.score)
                small, budget = score.d <= SMALL, max(left(), 1e-3)
                restarts = order_search(
                    score,
                    rng=rng,
                    start=best,
                    stall=5 if small else 1,
                    agree=2 if small else 1,
                    time_budget=None if np.isinf(deadline) else budget,
                )
                best = Refined(restarts.A, restarts.score, topological_order(restarts.A))
                if restarts.stopped == "interrupted":
                    return replace(found, A=best.A, score=best.score, stopped="interrupted")
        with score.until(deadline):
            best = certify(score, orders, best, deadline)
        certified = best.certified
        stopped = stopped if certified else "time"
    except OutOfTime:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        warnings.warn("interrupted while refining: returning the best DAG so far", stacklevel=3)
    return replace(found, A=best.A, score=best.score, stopped=stopped, certified=certified)
