"""The posterior of DAGs given a table: samples, and what they say about edges, paths and Markov blankets."""

import io
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .. import _sampling
from .._checks import brief, generator, warn, whole_number
from .._parallel import effective_jobs, run_each, until
from ..files.atomic import PathLike, as_json, write_atomically, write_together
from ..files.tables import columns_file, csv_cell
from ..graph import reachable
from ..scores import GraphScore, Score, as_score, needs_local
from ..search import Budget, LocalSearch, Progress, discover
from ..search.budget import Callback

__all__ = ["Posterior", "posterior"]

# Local scores in all tables together, where one takes microseconds and where it takes its time; bits of one table.
MOST_SETS, MOST_FITS, MOST_BITS = 2**20, 2**11, 20
# Entries of adjacency matrices that a piece of a table may have, and numbers in a batch of samples.
PIECE = 2**22
# Seconds between two looks at the clock.
PAUSE = 0.1
# Candidates are chosen at most so many times, around so many samples of each chain, in so many contexts of each node.
CHOICES, PILOT, CONTEXTS = 4, 25, 16
# Samples of each chain in which edges beyond the candidates are looked for, and the share of them that is too much.
LOOKED_AT, MISSED = 2, 0.05
# Shares of the time for the first DAG of each chain, and for tables, which may be made more than once.
START, TABLES = 0.05, 0.1
# Share of the time after which candidates are not chosen again.
BEFORE = 0.3
# Chains that disagree by more are not to be trusted, nor are fewer independent samples.
R_HAT, ESS = 1.1, 100
# Edges between these probabilities count for the effective sample size: of rarer ones nobody can tell.
UNSURE = (0.05, 0.95)

Array = NDArray[np.float64]
Tables = tuple[NDArray[np.int64], NDArray[np.bool_], Array, Array, NDArray[np.int32]]


def posterior(
    score: Any,
    *,
    rng: np.random.Generator,
    n_samples: int = 4000,
    chains: int = 4,
    burn_in: int | None = None,
    thin: int = 2,
    candidates: int | None = None,
    knowledge: Any = None,
    n_jobs: int | None = None,
    time_budget: float | None = None,
    callback: Callback | None = None,
) -> "Posterior":
    """Sample DAGs from their posterior distribution given a table.

    The weight of a DAG is ``exp(n d score / 2)``: its marginal likelihood for :class:`vec2dag.scores.BGe`, and for
    ``bic-nv`` and ``ls`` the approximation of it that BIC is. All DAGs that are permitted have the same probability
    beforehand, but for what the criterion says itself: ``ebic-nv`` makes all numbers of parents up to half of the
    columns equally probable, in place of all sets. The chains go over the partitions of DAGs into levels (Kuipers &
    Moffa 2017), which, unlike orders, favour no DAG, with the weights of sets of parents in tables, and redraw the
    parents of pairs of nodes.

    Parameters
    ----------
    score : Score or fitted ALIAS
        Of a criterion that is a sum over nodes.
    rng : numpy Generator
    n_samples : int, default 4000
        Samples to keep, of all chains together; rounded up to the same number in each.
    chains : int, default 4
        Independent chains, from different orders. Two or more tell whether they have come to the same end.
    burn_in : int, optional
        Samples at the beginning of each chain that are dropped; None is half as many as it keeps.
    thin : int, default 2
        Steps for each sample. A step moves d nodes and redraws the parents of d pairs.
    candidates : int, optional
        Possible parents of each node, beside those that are required: all, or the most promising so many. None is as
        many as tables of a million sets have room for (all up to 16 columns, 15 for 20 columns, 13 for 100), or of two
        thousand where regressions take their time. ``beyond`` of the result says what the others would have added.
    knowledge : Knowledge, optional
        What is known of the graph, in place of what the score knows.
    n_jobs : int, optional
        Threads; None uses every core. The result does not depend on it.
    time_budget : float, optional
        Seconds after which there is what there is; at least half of the samples then count as burn-in.
    callback : callable, optional
        Called with a :class:`vec2dag.search.Progress` every tenth of a second; returning True ends the sampling.

    Returns
    -------
    Posterior
        Also after ``KeyboardInterrupt``, with a warning, if there are samples.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(200)
    >>> X = np.column_stack([x, x + rng.standard_normal(200), rng.standard_normal(200)])
    >>> found = posterior(Score(X), rng=rng, n_samples=400)
    >>> bool(found.edge_probabilities[0, 1] + found.edge_probabilities[1, 0] > 0.99)
    True
    """
    start = time.perf_counter()
    rng, problem = generator(rng), _score_of(score)
    if knowledge is not None:
        problem = problem.under(knowledge)
    chains, thin = whole_number("chains", chains), whole_number("thin", thin)
    length = -(-whole_number("n_samples", n_samples) // chains)
    burn = length // 2 if burn_in is None else whole_number("burn_in", burn_in, 0)
    most = _most_candidates(problem) if candidates is None else whole_number("candidates", candidates, 1, MOST_BITS)
    effective_jobs(n_jobs)
    budget = Budget(time_budget, callback)
    run = _Chains(problem, thin, [np.random.default_rng(seed) for seed in rng.integers(2**63, size=(chains, 4))])
    with budget.guard(problem), until(budget.deadline):
        run.start(most, n_jobs, budget)
        run.advance(length + burn, n_jobs, budget)
    if run.length < 2 and (budget.stopped or not run.length):
        if budget.stopped == "interrupted":
            raise KeyboardInterrupt("interrupted before there were samples")
        raise ValueError(f"time_budget={brief(time_budget)} was over before there were samples: more time is needed")
    found = run.result(length, budget.stopped or "samples", start)
    if (names := getattr(score, "feature_names_in_", None)) is not None and set(names) == set(found.names):
        found = found.taken(names)
    for sentence in found.doubts():
        warn(sentence)
    return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """Samples of DAGs from their posterior distribution.

    Attributes
    ----------
    samples : array of shape (m, d, d), uint8
        The DAGs, chain after chain.
    log_scores : array of shape (m,)
        Logarithms of their weights, ``n d score / 2``: of the marginal likelihood for BGe.
    scores : array of shape (m,)
        Their scores.
    chains : int
        Number of chains, of ``m / chains`` samples each.
    names : tuple of str
        Of the columns.
    candidates : array of shape (d, d), bool
        ``[i, j]``: i was a possible parent of j, or may not be one by what is known. Where not, a probability of 0 is
        no finding.
    beyond : array of shape (d, d)
        Where i was no candidate, how probable it would be as one more parent of j in some of the samples: a first
        estimate of what is missing.
    criterion : str
    burn_in, thin : int
        Samples dropped at the beginning of each chain, and steps for each.
    stopped : str
        ``"samples"``, or ``"time"``, ``"callback"`` or ``"interrupted"`` where there are fewer than asked for.
    seconds : float
    """

    samples: NDArray[np.uint8]
    log_scores: Array
    scores: Array
    chains: int
    names: tuple[str, ...]
    candidates: NDArray[np.bool_]
    beyond: Array
    criterion: str
    burn_in: int
    thin: int
    stopped: str
    seconds: float

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return (
            f"Posterior({len(self)} DAGs of {len(self.names)} columns, {self.criterion}, {self.chains} chains, "
            f"R-hat {self.r_hat:.3f}, effective sample size {self.ess:.0f})"
        )

    @cached_property
    def edge_probabilities(self) -> Array:
        """``[i, j]`` (d, d): the probability of the edge ``i -> j``."""
        return self.samples.mean(axis=0, dtype=np.float64)

    @cached_property
    def path_probabilities(self) -> Array:
        """``[i, j]`` (d, d): the probability of a directed path from ``i`` to ``j``."""
        return self._mean_of(_reachable)

    @cached_property
    def markov_blanket_probabilities(self) -> Array:
        """``[i, j]`` (d, d), symmetric: the probability that ``i`` is in the Markov blanket of ``j``."""
        return self._mean_of(_blankets)

    @cached_property
    def edge_ess(self) -> Array:
        """Effective sample sizes (d, d) of the edges; the number of samples where they all agree."""
        return _by_edge(self._series, _effective_size)

    @cached_property
    def edge_r_hat(self) -> Array:
        """R-hat (d, d) of the edges; 1 where all samples agree, nan if chains are too short."""
        return _by_edge(self._series, _split_r_hat)

    @cached_property
    def edge_errors(self) -> Array:
        """Monte Carlo standard errors (d, d) of the edge probabilities; not 0 where all samples agree."""
        size, p = self.edge_ess, self.edge_probabilities
        p = (size * p + 1.0) / (size + 2.0)
        return np.sqrt(p * (1.0 - p) / size) * (1.0 - np.eye(len(p)))

    @cached_property
    def r_hat(self) -> float:
        """The largest R-hat, of all edges and of the score: near 1 if chains agree; nan if nobody can tell."""
        return float(max(_split_r_hat(self._logs)[0], self.edge_r_hat.max()))

    @cached_property
    def ess(self) -> float:
        """The smallest effective sample size, of edges with probabilities from 0.05 to 0.95 and of the score."""
        p = self.edge_probabilities
        unsure = (p >= UNSURE[0]) & (p <= UNSURE[1])
        return float(min(_effective_size(self._logs)[0], *self.edge_ess[unsure], math.inf))

    @property
    def best(self) -> NDArray[np.uint8]:
        """The sampled DAG (d, d) with the highest score."""
        return self.samples[int(np.argmax(self.log_scores))]

    def taken(self, names: Sequence[str]) -> "Posterior":
        """The same with the columns in the order of ``names``, which are all of them."""
        order = [self.names.index(name) for name in names]
        cells = np.ix_(order, order)
        return replace(
            self,
            samples=np.ascontiguousarray(self.samples[:, order][:, :, order]),
            names=tuple(names),
            candidates=self.candidates[cells],
            beyond=self.beyond[cells],
        )

    def edges(self, least: float = 0.0) -> dict[str, list[Any]]:
        """The edges as columns for a data frame, the most probable first.

        Parameters
        ----------
        least : float, default 0.0
            Leave out edges that are less probable.

        Returns
        -------
        dict
            ``source``, ``target``, ``probability``, ``error`` (its Monte Carlo standard error), ``reverse`` (the
            probability of the opposite direction) and ``path`` (that of a directed path).
        """
        p, d = self.edge_probabilities, len(self.names)
        pairs = [(i, j) for i in range(d) for j in range(d) if i != j and p[i, j] >= least]
        pairs.sort(key=lambda pair: -p[pair])
        return {
            "source": [self.names[i] for i, _ in pairs],
            "target": [self.names[j] for _, j in pairs],
            "probability": [float(p[pair]) for pair in pairs],
            "error": [float(self.edge_errors[pair]) for pair in pairs],
            "reverse": [float(p[j, i]) for i, j in pairs],
            "path": [float(self.path_probabilities[pair]) for pair in pairs],
        }

    def doubts(self) -> list[str]:
        """What speaks against trusting the probabilities, a sentence each."""
        found = []
        if self.stopped != "samples":
            why = {"time": "the time was over"}.get(self.stopped, self.stopped)
            found.append(f"sampling ended early ({why}): there are {len(self)} samples")
        more = "more samples, or a longer burn_in, are needed"
        if math.isnan(self.r_hat):
            found.append(f"chains of {len(self) // self.chains} samples are too short to be compared: {more}")
        elif self.r_hat > R_HAT:
            found.append(f"the chains have not come to the same end, R-hat is {self.r_hat:.2f} (above {R_HAT}): {more}")
        if (missed := float(self.beyond.sum())) > MISSED * float(self.edge_probabilities.sum()):
            found.append(
                f"there would be {missed:.1f} edges more on average from columns that were no candidates: more of them "
                "(candidates=), or a higher price of parents, would help"
            )
        if self.ess < ESS:
            found.append(f"the samples are worth {self.ess:.0f} independent ones (below {ESS}): {more}")
        return found

    def to_csv(self, file: PathLike) -> None:
        """Write :meth:`edges` as a CSV file."""
        write_atomically(Path(file), columns_file(self.edges()))

    def save(self, folder: PathLike) -> list[Path]:
        """Write the probabilities and the samples to a folder, which is made if needed: all files or none.

        Parameters
        ----------
        folder : path
            Receives ``edges.csv``, ``edge_probabilities.csv``, ``path_probabilities.csv``,
            ``markov_blanket_probabilities.csv`` (rows are sources), ``samples.npz`` (``samples``, ``log_scores``,
            ``chain`` and ``names``, without pickled objects) and ``posterior.json``.

        Returns
        -------
        list of Path
            The files.
        """
        content = {"edges.csv": columns_file(self.edges())}
        for name in ("edge_probabilities", "path_probabilities", "markov_blanket_probabilities"):
            content[f"{name}.csv"] = _matrix(getattr(self, name), self.names)
        arrays = io.BytesIO()
        chain = np.repeat(np.arange(self.chains), len(self) // self.chains)
        np.savez_compressed(
            arrays, samples=self.samples, log_scores=self.log_scores, chain=chain, names=np.array(self.names)
        )
        content["samples.npz"] = arrays.getvalue()
        content["posterior.json"] = as_json(
            {
                "criterion": self.criterion,
                "samples": len(self),
                "chains": self.chains,
                "burn_in": self.burn_in,
                "thin": self.thin,
                "r_hat": self.r_hat,
                "effective_sample_size": self.ess,
                "best_score": float(self.scores.max()),
                "edges": float(self.edge_probabilities.sum()),
                "edges_beyond_candidates": float(self.beyond.sum()),
                "stopped": self.stopped,
                "seconds": round(self.seconds, 3),
                "warnings": self.doubts(),
            }
        )
        return write_together(folder, content)

    @property
    def _series(self) -> NDArray[np.uint8]:
        """(chains, samples of each, d, d)."""
        return self.samples.reshape(self.chains, -1, *self.samples.shape[1:])

    @property
    def _logs(self) -> Array:
        """(chains, samples of each, 1)."""
        return self.log_scores.reshape(self.chains, -1, 1)

    def _mean_of(self, property_of: Any) -> Array:
        """Mean (d, d) of a property of DAGs, computed once for each different one."""
        d = len(self.names)
        different, counts = np.unique(
            np.packbits(self.samples.reshape(len(self), -1), axis=1), axis=0, return_counts=True
        )
        total, step = np.zeros((d, d)), max(1, PIECE // (d * d))
        for first in range(0, len(different), step):
            part = np.unpackbits(different[first : first + step], axis=1, count=d * d).reshape(-1, d, d)
            total += np.einsum("k,kij->ij", counts[first : first + step].astype(np.float64), property_of(part))
        return total / len(self)


class _Chains:
    """Chains over DAGs in tables of weights, advanced together; the same for any division into calls."""

    def __init__(self, score: Score, thin: int, generators: list[np.random.Generator]) -> None:
        self.score, self.thin, self.generators = score, thin, generators
        self.samples: list[list[NDArray[np.uint8]]] = []
        self.logs: list[list[Array]] = []
        self._forget()

    def start(self, most: int, n_jobs: int | None, budget: Budget) -> None:
        """Find a first DAG for every chain, and make the tables.

        Where nodes cannot have all others as candidates, these are chosen around the first DAGs, and once more around
        those that the chains come to from there.
        """
        score, guide = self.score, _guide(self.score)
        self.states = [_start(score, guide, rng, budget) for rng in self.generators]
        graphs = np.array(self.states)
        if budget.limited:
            most = min(most, _affordable(score, budget))
        # Regressions that take their time are divided among workers themselves.
        jobs = n_jobs if score.local.cheap else 1
        before: list[NDArray[np.int64]] | None = None
        for _ in range(CHOICES):

            def choose(i: int, graphs: NDArray[np.uint8] = graphs) -> NDArray[np.int64]:
                return _choose_candidates(score, i, most, graphs)

            chosen = run_each(choose, score.d, jobs)
            if before is not None and all(map(np.array_equal, chosen, before)):
                break
            before = chosen
            self.tables = _tabulate(score, chosen, jobs)
            permitted = score.constraints.required.astype(np.uint8)
            for i, members in enumerate(chosen):
                permitted[members, i] = 1
            for A in self.states:
                A &= permitted
            # Samples come first where time is short.
            if self._complete(chosen) or (budget.limited and _used(budget) > BEFORE):
                break
            self.advance(PILOT, n_jobs, budget)
            if budget.over:
                break
            graphs = np.concatenate([np.concatenate(chain) for chain in self.samples])
            self._forget()

    def _complete(self, chosen: list[NDArray[np.int64]]) -> bool:
        """Whether every node has all permitted candidates."""
        known = self.score.constraints
        optional = known.allowed & ~known.required & ~np.eye(self.score.d, dtype=bool)
        return sum(map(len, chosen)) == optional.sum()

    def _forget(self) -> None:
        """Drop all samples so far."""
        self.samples = [[] for _ in self.generators]
        self.logs = [[] for _ in self.generators]
        self.length = 0

    def advance(self, total: int, n_jobs: int | None, budget: Budget) -> None:
        """Go on until every chain has ``total`` samples, or the budget is over."""
        d, part = self.score.d, 1
        while self.length < total and not budget.over:
            begin, part = time.perf_counter(), min(part, total - self.length)

            def one(k: int, part: int = part) -> tuple[NDArray[np.uint8], Array]:
                samples, logs = np.empty((part, d, d), np.uint8), np.empty(part)
                u = self.generators[k].random((part * self.thin, _sampling.PER_NODE * d))
                _sampling.sample_dags(self.states[k], u, self.thin, self.tables, samples, logs)
                return samples, logs

            for k, (samples, logs) in enumerate(run_each(one, len(self.states), n_jobs)):
                self.samples[k].append(samples)
                self.logs[k].append(logs)
            self.length += part
            pace = PAUSE / max(time.perf_counter() - begin, 1e-6)
            part = int(np.clip(part * pace, 1, min(4 * part, max(1, PIECE // (_sampling.PER_NODE * d * self.thin)))))
            self._tell(total, budget)

    def _tell(self, total: int, budget: Budget) -> None:
        if budget.callback is None:
            return
        scale = 2.0 / self.score.values
        ends = [logs[-1][-1] for logs in self.logs]
        best = int(np.argmax(ends))
        seconds = time.perf_counter() - budget.start
        budget.tell(
            Progress(
                self.length, total, scale * ends[best], scale * float(np.mean(ends)), seconds, self.states[best].copy()
            )
        )

    def result(self, length: int, stopped: str, start: float) -> Posterior:
        """The last ``length`` samples of every chain; of chains that had to end early, half of what there is."""
        # An interrupt may come between two chains.
        kept = min(length, self.length - self.length // 2) if stopped != "samples" else length
        ends = slice(self.length - kept, self.length)
        samples = np.concatenate([np.concatenate(chain)[ends] for chain in self.samples])
        logs = np.concatenate([np.concatenate(chain)[ends] for chain in self.logs])
        candidates, d = (
            self.tables[1] | ~self.score.constraints.allowed | np.eye(self.score.d, dtype=bool),
            self.score.d,
        )
        for i in range(d):
            candidates[self.tables[0][i][self.tables[0][i] >= 0], i] = True
        looked = np.linspace(0, len(samples) - 1, LOOKED_AT * len(self.states)).astype(int)
        with self.score.local.unhurried():
            beyond = np.mean([_beyond(self.score, A, candidates) for A in samples[looked]], axis=0)
        return Posterior(
            samples=samples,
            log_scores=logs,
            scores=2.0 * logs / self.score.values,
            chains=len(self.states),
            names=self.score.names,
            candidates=candidates,
            beyond=beyond,
            criterion=self.score.name,
            burn_in=self.length - kept,
            thin=self.thin,
            stopped=stopped,
            seconds=time.perf_counter() - start,
        )


def _score_of(score: Any) -> Score:
    """The score itself, or that of a fitted model with what it knows; refuses what is no sum over nodes."""
    if not isinstance(score, GraphScore) and hasattr(score, "get_params"):
        score = _score_of_model(score)
    problem = needs_local(as_score(score), "posterior")
    if not problem.criterion.decomposable:
        raise ValueError(
            "posterior needs a score that is a sum over nodes ('bge', 'bic-nv', 'ebic-nv' or 'ls'), got "
            f"{problem.criterion.name!r}"
        )
    return problem


def _score_of_model(model: Any) -> Any:
    """The score that a fitted model has maximised, with the columns as they are in its table."""
    if not hasattr(model, "parameters_"):
        raise ValueError(f"posterior needs a fitted model: call fit first, got {brief(model)}")
    criterion, knowledge = model.criterion_, model.parameters_["knowledge"]
    bound = getattr(model, "regression_", None)
    score = as_score(criterion, model.n_features_in_) if bound is None else Score(None, bound, criterion)
    return score if knowledge is None else score.under(knowledge)


def _most_candidates(score: Score) -> int:
    """Candidates for which all tables together are of a size that can be made."""
    room = (MOST_SETS if score.local.cheap else MOST_FITS) / max(score.d, 1)
    return int(np.clip(math.log2(room), 1, MOST_BITS))


def _used(budget: Budget) -> float:
    """The share of the time that is over."""
    return (time.perf_counter() - budget.start) / (budget.deadline - budget.start)


def _affordable(score: Score, budget: Budget) -> int:
    """Candidates for which tables take a share of the time that is left, from the time that a few sets take."""
    d, few = score.d, 64 if score.local.cheap else 2
    sets = np.zeros((few, d), np.uint8)
    sets[np.arange(few)[:, None], 1 + (np.arange(few)[:, None] + np.arange(min(6, d - 1))) % max(d - 1, 1)] = 1
    begin = time.perf_counter()
    _costs(score, 0, sets)
    now = time.perf_counter()
    room = TABLES * max(budget.deadline - now, 1e-3) / (d * (now - begin) / few)
    return int(np.clip(math.log2(max(room, 2.0)), 1, MOST_BITS))


def _costs(score: Score, node: int, members: NDArray[np.uint8]) -> Array:
    """Minus the log weight (m,) of sets of parents (m, d) of a node: half of what ``score`` is divided by per node."""
    price = score.penalty * score.d * score.prices[members.sum(axis=1, dtype=np.int64)]
    step = max(1, PIECE // score.d**2)
    links = [score.link(score.local.of_sets(node, members[k : k + step]), node) for k in range(0, len(members), step)]
    return 0.5 * score.values / score.d * (np.concatenate(links) + price)


def _guide(score: Score) -> Score | None:
    """A score that the compiled searches know, whose good graphs are good ones here too; None if there is none."""
    if score.regression.has_costing:
        return score
    moments = getattr(score.regression, "moments", None)
    return None if moments is None else Score(moments, n_jobs=score.local.n_jobs).under(score.constraints)


def _start(score: Score, guide: Score | None, rng: np.random.Generator, budget: Budget) -> NDArray[np.uint8]:
    """A good DAG (d, d): from a local search from a random order, or by adding parents to the nodes of one."""
    known = score.constraints
    if guide is not None:
        left = max(START * (budget.deadline - time.perf_counter()), 1e-3) if budget.limited else None
        search = LocalSearch(chains=1)
        with warnings.catch_warnings():
            # of the search; an interrupt of it is one of the sampling, which has nothing to return yet
            warnings.filterwarnings("ignore", "interrupted: the best DAG so far is returned")
            found = discover(guide, rng=rng, algorithm=search, init="random", refine=False, time_budget=left)
        if found.stopped == "interrupted":
            raise KeyboardInterrupt
        return found.A
    A, order = known.required.astype(np.uint8), known.extend(rng.permutation(score.d))
    for t, node in enumerate(order):
        optional = known.allowed[order[:t], node] & ~known.required[order[:t], node]
        others = order[:t][optional]
        gains = np.zeros(1)
        while len(others) and gains.max() >= 0 and A[:, node].sum() < known.max_parents[node]:
            gains = _gains(score, node, A[:, node], others)
            if gains.max() > 0:
                A[others[np.argmax(gains)], node] = 1
                others = np.delete(others, np.argmax(gains))
            else:
                break
    return A


def _gains(score: Score, node: int, parents: NDArray[np.uint8], others: NDArray[np.int64]) -> Array:
    """What each of ``others`` (k,) adds, or would add, to the log weight of ``parents`` (d,) of a node: (k,)."""
    sets = np.repeat(parents[None], 2 * len(others), axis=0)
    first = np.arange(len(others))
    sets[first, others], sets[first + len(others), others] = 0, 1
    different, inverse = np.unique(sets, axis=0, return_inverse=True)
    costs = _costs(score, node, different)[inverse.ravel()]
    return costs[: len(others)] - costs[len(others) :]


def _choose_candidates(score: Score, node: int, most: int, graphs: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The ``most`` promising optional parents of a node, by how often they are or would be parents in ``graphs``.

    How often they are, in good graphs (m, d, d), and how probable they are as parents given the others; and the same
    where the children are parents too, as then edges are there that could have the other direction.
    """
    known = score.constraints
    required, allowed = known.required[:, node], known.allowed[:, node]
    others = np.flatnonzero(allowed & ~required & (np.arange(score.d) != node))
    if len(others) <= most:
        return others
    parents = graphs[:, :, node]
    promise = np.zeros(len(others))
    for sets in (parents, (parents | graphs[:, node, :]) & allowed):
        contexts, counts = np.unique(sets | required, axis=0, return_counts=True)
        likely = np.argsort(-counts, kind="stable")[:CONTEXTS]
        promise += sets[:, others].mean(axis=0)
        for context, count in zip(contexts[likely], counts[likely] / counts[likely].sum(), strict=True):
            promise += count * expit(_gains(score, node, context, others))
    return np.sort(others[np.argsort(-promise, kind="stable")[:most]])


def _beyond(score: Score, A: NDArray[np.uint8], candidates: NDArray[np.bool_]) -> Array:
    """How probable each edge (d, d) that is no candidate would be in the DAG ``A`` (d, d), given all others."""
    found, known = np.zeros(A.shape), score.constraints
    # Where a path leads from the node to the other one, the edge would make a cycle.
    possible = ~candidates & ~reachable(A).T & (A.sum(axis=0) < known.max_parents)
    for node in np.flatnonzero(possible.any(axis=0)):
        others = np.flatnonzero(possible[:, node])
        found[others, node] = expit(_gains(score, int(node), A[:, node], others))
    return found


def _tabulate(score: Score, chosen: list[NDArray[np.int64]], n_jobs: int | None) -> Tables:
    """The weights of all sets of the chosen candidates, as :mod:`vec2dag._sampling` takes them."""
    d, known = score.d, score.constraints
    width = max(map(len, chosen))
    # Beyond n - 2 parents least squares leave nothing to explain, and any such graph would outweigh all others.
    least = known.required.sum(axis=0, dtype=np.int64)
    limits = known.max_parents if score.statistics is None else np.clip(score.rows - 2, least, known.max_parents)
    candidates = np.full((d, max(width, 1)), -1, np.int64)
    weights = np.full((d, 1 << width), -np.inf)

    def fill(i: int) -> None:
        count = len(chosen[i])
        candidates[i, :count] = chosen[i]
        sets = np.repeat(known.required[:, i].astype(np.uint8)[None], 1 << count, axis=0)
        sets[:, chosen[i]] = np.arange(1 << count)[:, None] >> np.arange(count) & 1
        permitted = np.flatnonzero(sets.sum(axis=1, dtype=np.int64) <= limits[i])
        weights[i, permitted] = -_costs(score, i, sets[permitted])

    run_each(fill, d, n_jobs)
    sums = weights.copy()
    for b in range(width):
        halves = sums.reshape(d, -1, 2, 1 << b)
        np.logaddexp(halves[:, :, 0], halves[:, :, 1], out=halves[:, :, 1])
    ranked = np.argsort(-weights, axis=1, kind="stable").astype(np.int32)
    return candidates, known.required, weights, sums, ranked


def _reachable(A: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where there are directed paths in DAGs (m, d, d)."""
    paths = A.astype(np.float32)
    for _ in range(max(1, (A.shape[-1] - 1).bit_length())):
        paths = np.minimum(paths + paths @ paths, 1.0)
    return paths > 0


def _blankets(A: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Who is in whose Markov blanket in DAGs (m, d, d): parents, children, and other parents of children."""
    edges = A.astype(np.float32)
    back = np.swapaxes(edges, -1, -2)
    return ((edges + back + edges @ back) > 0) & ~np.eye(A.shape[-1], dtype=bool)


def _by_edge(series: NDArray[np.uint8], statistic: Any) -> Array:
    """A statistic (d, d) of series (chains, n, d, d), a row of edges at a time."""
    return np.array([statistic(series[:, :, i].astype(np.float64)) for i in range(series.shape[2])])


def _split_r_hat(x: Array) -> Array:
    """R-hat (k,) of series (chains, n, k), each chain in two halves (Gelman & Rubin 1992; Gelman et al. 2013)."""
    half = x.shape[1] // 2
    if half < 2:
        return np.full(x.shape[2], np.nan)
    parts = np.concatenate([x[:, :half], x[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    same = parts.max(axis=(0, 1)) == parts.min(axis=(0, 1))
    stuck = (within <= 0) & ~same
    ratio = (half - 1) / half + between / np.where(within > 0, within, 1.0)
    return np.where(same, 1.0, np.where(stuck, np.inf, np.sqrt(ratio)))


def _effective_size(x: Array) -> Array:
    """Effective sample size (k,) of series (chains, n, k): Geyer's initial monotone sequence; at most chains n."""
    chains, n, _ = x.shape
    if n < 4:
        return np.full(x.shape[2], float(chains * n))
    centred = x - x.mean(axis=1, keepdims=True)
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    pooled = covariance[0] + (x.mean(axis=1).var(axis=0, ddof=1) if chains > 1 else 0.0)
    same = x.max(axis=(0, 1)) == x.min(axis=(0, 1))
    rho = 1.0 - (within - covariance) / np.where(pooled > 0, pooled, 1.0)
    rho[0] = 1.0
    pairs = rho[0 : n - n % 2 : 2] + rho[1::2][: n // 2]
    # The first sum of a pair that is not positive ends the sequence; sums must not grow.
    pairs = np.where(np.cumprod(pairs > 0, axis=0) > 0, pairs, 0.0)
    time_ = 2.0 * np.minimum.accumulate(pairs, axis=0).sum(axis=0) - 1.0
    total = float(chains * n)
    return np.where(same, total, total / np.maximum(time_, 1.0))


def _matrix(values: Array, names: Sequence[str]) -> bytes:
    """A matrix as CSV, with the names of rows and columns."""
    cells = [csv_cell(name) for name in names]
    lines = [",".join(["", *cells])]
    lines += [",".join([name, *(f"{value:.6g}" for value in row)]) for name, row in zip(cells, values, strict=True)]
    return ("\n".join(lines) + "\n").encode()
