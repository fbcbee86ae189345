"""From a score to a DAG: choose the algorithm and the start, search, refine."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._checks import flag, generator
from ..graph import topological_order
from ..scores import GraphScore, Score, as_score, needs_local
from .budget import Budget, Callback, Work
from .certify import certify
from .checkpoint import Checkpoint, Memory
from .descent import MANY, Candidate, descend_all, descent_of, resolution
from .engines import GRADIENTS, PPO, Conditional, as_algorithm
from .exact import exact_search
from .gradient import SearchResult, told
from .local import LocalSearch
from .orders import Orders
from .start import Start, find_start

__all__ = ["ALGORITHMS", "Algorithm", "discover"]

# Up to so many nodes the best of all DAGs is computed where the score is a sum over nodes: tenths of a second where
# regressions are cheap, and elsewhere, with d 2^(d-1) regressions, no more of them than a search would make.
EXACT_CHEAP, EXACT_COSTLY = 12, 7
# Up to so many nodes restarts go on until independent chains agree, which costs milliseconds.
SMALL = 20


class Algorithm(Protocol):
    """What searches: settings that can be given a score."""

    name: str
    descends: bool
    reports_mean: bool
    takes_start: bool

    def search(self, score: GraphScore, *, rng: np.random.Generator, start: Start, budget: Budget) -> SearchResult:
        """Search for the DAG with the highest score, from a start, until it has settled or the budget is over."""
        ...


ALGORITHMS: dict[str, Callable[[], Any]] = {"local": LocalSearch, "orders": Orders, **GRADIENTS}


def discover(
    score: Any,
    *,
    rng: np.random.Generator,
    d: int | None = None,
    algorithm: str | Algorithm = "auto",
    init: str | ArrayLike = "auto",
    refine: bool = True,
    knowledge: Any = None,
    time_budget: float | None = None,
    callback: Callback | None = None,
    watch: Callable[[Work], None] | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> SearchResult:
    """Find the DAG with the highest score.

    Parameters
    ----------
    score : Score or callable
        A :class:`Score`, or any function of one adjacency matrix (d, d) that returns a number.
    rng : numpy Generator
    d : int, optional
        Number of nodes; needed unless ``score`` has an attribute ``d``.
    algorithm : {"auto", "local", "orders", "conditional", "credit", "ppo", "a2c", "reinforce"}, or settings
        Settings are ``PPO(n_steps=...)`` and so on, or those of :mod:`vec2dag.sb3`. ``"auto"``, the default, is PPO for
        arbitrary callables. With linear regression it is the conditional gradient for criteria with equal variances,
        and iterated local search for others; with other regressions the policy over orders. Without ``refine`` it is
        the conditional gradient.
    init : {"auto", "random"}, adjacency matrix (d, d), or order (d,), default "auto"
        ``"auto"`` is the greedy equal-variance order for criteria with equal variances and linear regression, random
        otherwise. ``vec2dag.score_order(X)`` is an order for functions that are not linear.
    refine : bool, default True
        Continue with insertion search to a certified local optimum, or, up to 12 nodes (7 for regressions other than
        linear) and for ``bic-nv`` and ``ls``, with the exact search for the best of all DAGs; arbitrary callables are
        not refined.
    knowledge : Knowledge, optional
        What is known of the graph, by the names of the score: only graphs that agree with it are searched.
    time_budget : float, optional
        Seconds after which the best DAG so far is taken.
    callback : callable, optional
        Called with a :class:`.Progress` after every step; returning True ends the search, the refinement included.
    watch : callable, optional
        Called with a :class:`.Work` while regressions that take their time are made, which may be hundreds in a step.
    checkpoint : path or Checkpoint, optional
        A file in which the search is kept as it goes on. Started again with the same score, settings and ``rng`` in the
        same state, it goes on from there and ends in the same result as if it had never stopped, up to the seconds;
        :class:`.Checkpoint` also continues with any other ``rng``. A file of another score is refused, and of a search
        with other settings only local scores are taken. Algorithms of :mod:`vec2dag.sb3` cannot be continued, and are
        refused unless local scores are worth keeping.

    Returns
    -------
    SearchResult
        Also after ``KeyboardInterrupt``, with a warning, or with ``ready`` False if there was no graph yet.
    """
    score, rng, refine = as_score(score, d), generator(rng), flag("refine", refine)
    if knowledge is not None:
        score = score.under(knowledge)
    budget = Budget(time_budget, callback, watch=watch)
    fits = 0 if score.local is None else score.local.fits
    chosen = _algorithm(algorithm, score, refine)
    start = find_start(init, score, greedy=score.has_greedy_order and chosen.takes_start)
    with _opened(checkpoint, score, chosen, start, rng) as budget.memory:
        found = budget.memory.once("search", rng, lambda: chosen.search(score, rng=rng, start=start, budget=budget))
        if not refine and chosen.reports_mean:
            found = replace(found, A=found.mode, score=found.mode_score)
        if refine and score.local is not None and not budget.cancelled:
            found = _refine(needs_local(score, "refine"), found, chosen, start, rng, budget)
    return told(found if score.local is None else replace(found, fits=score.local.fits - fits))


def _algorithm(algorithm: Any, score: GraphScore, refine: bool) -> Algorithm:
    """The algorithm that a name stands for."""
    if score.local is None:
        best: Algorithm = PPO()
    else:
        compiled = needs_local(score, "algorithm='auto'").regression.has_costing
        gradient = score.has_greedy_order or not refine
        best = Conditional() if gradient else LocalSearch() if compiled else Orders()
    return as_algorithm(algorithm, {"auto": lambda: best, **ALGORITHMS})


def _opened(
    checkpoint: Any, score: GraphScore, algorithm: Any, start: Start, rng: np.random.Generator
) -> AbstractContextManager[Memory]:
    """Where the search is kept, if anywhere."""
    if checkpoint is None:
        return nullcontext(Memory())
    settings = algorithm.get_params(deep=False) if hasattr(algorithm, "get_params") else vars(algorithm)
    plan = {
        "algorithm": f"{type(algorithm).__module__}.{type(algorithm).__qualname__}",
        "settings": {name: repr(value) for name, value in settings.items()},
        "start": start,
        "criterion": None if score.local is None else needs_local(score, "checkpoint").compiled,
        "known": None if score.constraints.trivial else score.constraints.arrays,
    }
    file = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    return file.opened(score, plan, rng, continues=getattr(algorithm, "continues", False))


def _refine(
    score: Score, found: SearchResult, algorithm: Algorithm, start: Start, rng: np.random.Generator, budget: Budget
) -> SearchResult:
    """Descend from what the search found and from orders around it, then certify."""
    best = Candidate(found.A, found.score, topological_order(found.A))
    certificate, cheap = None, score.local.cheap
    few = score.d <= (EXACT_CHEAP if cheap else EXACT_COSTLY)
    # Exact search cannot stop half way, so that it is not for expensive regressions within a budget.
    exact = few and score.criterion.decomposable and not (budget.over if cheap else budget.limited)
    with budget.guard(score):
        if exact:
            # Among equivalent optima the one that the search found stays.
            optimum = exact_search(score)
            certificate = optimum.certificate
            best = optimum if optimum.score > best.score + resolution(score) else best
        else:
            descent = descent_of(score, best.A, budget)
            if not algorithm.descends and not budget.over:
                mean = np.argsort(found.policy.mu[: score.d], kind="stable")
                second = start.order if start.near and start.order is not None else mean
                starts = [best.order, second] if score.d <= MANY else [best.order]
                ends = descend_all(descent, starts, score.local.n_jobs, budget)
                best = _best(best, *ends)
                if cheap and score.d <= MANY and not budget.over:
                    best = _best(best, *(certify(score, descent, end, budget) for end in ends))
                    best = _restarts(score, best, rng, budget)
            if not budget.cancelled:
                refined = certify(score, descent, best, budget)
                best, certificate = refined, refined.certificate
    stopped = found.stopped if certificate is not None or not budget.over else str(budget.stopped)
    ready = found.ready or certificate is not None
    return replace(found, A=best.A, score=best.score, stopped=stopped, ready=ready, certificate=certificate)


def _best(*candidates: Candidate) -> Candidate:
    """The first of those with the highest score."""
    return max(candidates, key=lambda candidate: candidate.score)


def _restarts(score: Score, best: Candidate, rng: np.random.Generator, budget: Budget) -> Candidate:
    """What chains of the policy over orders make of a local optimum; on few nodes, until independent ones agree."""
    small = score.d <= SMALL
    chains = Orders(batch_size=8, stall=5 if small else 1, agree=2 if small else 1)
    part = Budget(outer=budget)
    found = budget.memory.once("restarts", rng, lambda: chains.climb(score, rng, best, part))
    return Candidate(found.A, found.score, topological_order(found.A))
