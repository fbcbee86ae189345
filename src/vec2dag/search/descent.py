"""Descent over orders: a node goes to another place, and parents are selected anew among the predecessors.

Moving one node changes order and skeleton together, which single edges and the gradient cannot do.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _kernels
from .._parallel import OutOfTime, run_each
from ..scores import Score
from .budget import Budget, Work
from .checkpoint import Stateful, storable

__all__ = ["Candidate", "CompiledDescent", "Descent", "LocalDescent", "descend_all", "descent_of", "resolution"]

# Improvements of a score up to this are rounding.
ROUNDING = 1e-9
# On more nodes than this improvements below a share of the price of an edge are not pursued: there are very many.
MANY, NEGLIGIBLE = 300, 0.05
# Nodes whose places are tried at the same time where regressions are not cheap: enough for many workers.
TOGETHER = 2
# Places in a row without improvement after which such a direction is given up on more nodes than this.
WORSE, FEW_PLACES = 2, 15
# What an approximation has cost a smaller part of the price of an edge than this is tried wherever it is exact.
CLOSE = 0.2
# A climb between sets of parents ends at improvements below this; sums of links have this precision.
SAME_COST = 1e-12


def resolution(score: Score) -> float:
    """Improvements up to this are not made."""
    return ROUNDING if score.d <= MANY else max(ROUNDING, NEGLIGIBLE * score.penalty)


@storable
@dataclass(frozen=True, eq=False)
class Candidate:
    """A DAG that a search holds.

    Attributes
    ----------
    A : array of shape (d, d), uint8
    score : float
    order : array of shape (d,)
        An order that ``A`` agrees with.
    """

    A: NDArray[np.uint8]
    score: float
    order: NDArray[np.int64]


class Descent(Protocol):
    """Goes from an order to one that no insertion improves."""

    threads: bool

    def descend(
        self,
        order: NDArray[np.int64],
        floor: float = -np.inf,
        full: bool = False,
        A: NDArray[np.uint8] | None = None,
        thorough: bool = False,
    ) -> tuple[Candidate, int]:
        """The local optimum and the number of moves; every move must lead above the score ``floor``.

        With ``full`` all places are tried, without it a direction is given up where there is little hope. Parents are
        selected starting from those in ``A`` (d, d) that the order allows, and with ``thorough`` anew for every place.
        """
        ...


def descent_of(score: Score, hint: NDArray[np.uint8] | None = None, budget: Budget | None = None) -> Descent:
    """The compiled descent where the kernels can compute the score, the general one otherwise."""
    return CompiledDescent(score, budget) if score.regression.has_costing else LocalDescent(score, hint, budget)


class CompiledDescent(Stateful):
    """Descents in the kernels, where linear regressions, or counts of categories, cost microseconds.

    A selection of parents starts from the one for the neighbouring order and is improved by single additions, removals
    and exchanges, so that a move never loses parents that the new order still allows. It is always thorough.

    Parameters
    ----------
    score : Score
    budget : Budget, optional
        When it is over, what has been reached is returned as it is.
    """

    threads = True

    def __init__(self, score: Score, budget: Budget | None = None) -> None:
        self.score, self.budget, self.resolution = score, budget or Budget(), resolution(score)
        self.bound = np.full(score.d, np.nan)
        self.costings = _Costings(score)

    def walk(self, order: NDArray[np.int64], A: NDArray[np.uint8] | None = None, seed: int = 0) -> "Walk":
        """A descent from an order and, if given, the parents in ``A`` (d, d) that it allows; to be advanced."""
        order = self.score.constraints.extend(order)
        # Under equal variances what a node can gain at most depends on the others, and thus on the walk.
        bound = self.bound if self.score.criterion.decomposable else np.full(self.score.d, np.nan)
        return Walk(self.score, self.costings, order, A, seed, bound, self.resolution)

    def select(self, order: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The graph (d, d) with the parents that are selected for an order as it is."""
        walk = self.walk(order)
        walk.advance(sweeps=0, budget=self.budget)
        return walk.A

    def blankets(self) -> NDArray[np.uint8]:
        """``[j, i] = 1`` if j is selected for node i where all others are allowed."""
        walk = self.walk(np.arange(self.score.d))
        walk.limits = np.full(self.score.d, self.score.d)
        walk.advance(sweeps=0, budget=self.budget)
        return walk.A

    def descend(
        self,
        order: NDArray[np.int64],
        floor: float = -np.inf,
        full: bool = False,
        A: NDArray[np.uint8] | None = None,
        thorough: bool = False,
    ) -> tuple[Candidate, int]:
        """See :class:`Descent`."""
        walk = self.walk(order, A)
        walk.advance(floor=floor, full=full, budget=self.budget)
        return walk.candidate(), walk.moves


class _Costings:
    """What walks compute costs from: lent to one of them at a time, so that the next finds what it has remembered."""

    def __init__(self, score: Score) -> None:
        self.score = score
        self._idle: list[Any] = []

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Context with one that nobody else has."""
        try:
            costing = self._idle.pop()
        except IndexError:
            costing = self.score.regression.costing()
        try:
            yield costing
        finally:
            self._idle.append(costing)


class Walk(Stateful):
    """One search over orders: a descent, and then perturbations of it, each with a descent of its own.

    The same for any division into calls of :meth:`advance`. ``goal`` is the number of perturbations to make next.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "state", "kept", "marks", "counts", "sums", "stream", "worth", "bound", "goal",
    )  # fmt: skip
    # Seconds between two looks at the clock.
    PAUSE = 0.05

    def __init__(
        self,
        score: Score,
        costings: _Costings,
        order: NDArray[np.int64],
        A: NDArray[np.uint8] | None,
        seed: int,
        bound: NDArray[np.float64],
        least: float,
    ) -> None:
        d = score.d
        groups, _, r = (1, d, 1) if score.statistics is None else score.statistics[1].shape
        self.costings = costings
        self.score, self.resolution, self.quota, self.goal = score, least, 10, 0
        self._lock = threading.Lock()
        self.worth, self.bound = np.zeros((groups, d)), bound
        known = score.constraints
        # Beyond n - 2 parents there is nothing left to explain.
        most = np.minimum(known.max_parents, np.maximum(score.rows - 2, 0))
        required, allowed, *rest = known.arrays
        parents = np.ascontiguousarray(required.T), np.ascontiguousarray(allowed.T), *rest
        weight = np.ones(1) if score.statistics is None else score.statistics[5]
        self.problem = (score.compiled, self.worth, self.bound, most, parents, weight)
        place = np.empty(d, np.int64)
        place[order] = np.arange(d)
        self.limits = place
        table, sizes = np.zeros((d, d), np.int64), np.zeros(d, np.int64)
        if A is not None or known.required.any():
            first = known.required if A is None else known.required | A.astype(bool)
            sizes[:] = first.sum(axis=0, dtype=np.int64)
            for i in range(d):
                table[i, : sizes[i]] = np.flatnonzero(first[:, i])
        self.state = (order.astype(np.int64), place, np.zeros(d), sizes, np.zeros((d, d)), table)
        self.kept = tuple(part.copy() for part in self.state)
        self.space = (
            np.empty((d + 1, d)), np.empty((d, d)), np.empty((d + 1, r)),
            np.empty((8, d)), np.empty((2, d), np.uint8), np.empty((6, d + 1), np.int64),
        )  # fmt: skip
        self.marks = np.ones(d, np.uint8), np.ones(d, np.uint8)
        self.counts = np.zeros(11, np.int64)
        self.counts[_kernels.ROUNDS] = 1 if score.criterion.decomposable else 4
        self.sums = np.zeros(4)
        if score.statistics is not None:
            self.sums[_kernels.TOTAL] = float(score.link(score.statistics[3]).sum())
        self.stream = np.array([seed], np.uint64)

    def advance(
        self,
        steps: int = 0,
        *,
        sweeps: int | None = None,
        floor: float = -np.inf,
        full: bool = False,
        budget: Budget | None = None,
    ) -> bool:
        """Go on until the descent has ended and ``steps`` perturbations have been made since the start.

        Returns False if the budget was over before.
        """
        sweeps = 10 * self.score.d if sweeps is None else sweeps
        while True:
            begin = time.perf_counter()
            rules = (sweeps, steps, full, floor, self.resolution, self.quota)
            with self._lock, self.costings.lent() as costing:
                done = _kernels.search_orders(
                    (costing, *self.problem), self.limits, self.state, self.kept, self.space, self.marks, self.counts,
                    self.sums, self.stream, rules,
                )  # fmt: skip
            if done:
                return True
            if budget is not None and budget.over:
                return False
            pace = self.PAUSE / max(time.perf_counter() - begin, 1e-6)
            self.quota = int(np.clip(self.quota * pace, 1, 10 * self.quota))

    @property
    def steps(self) -> int:
        """Perturbations that were made."""
        return int(self.counts[_kernels.STEPS])

    @property
    def stale(self) -> int:
        """Perturbations since the last that led to something better."""
        return int(self.counts[_kernels.STALE])

    @property
    def moves(self) -> int:
        """Nodes that were moved to better places."""
        return int(self.counts[_kernels.MOVES])

    @property
    def ended(self) -> bool:
        """Whether the first descent has come to its end."""
        return bool(self.counts[_kernels.STEPS] > 0 or self.counts[_kernels.RESTING] > 0)

    @property
    def best(self) -> tuple[NDArray[Any], ...]:
        """The best state: the one that is kept once a descent has ended, what has been reached before."""
        return self.kept if self.ended else self.state

    @property
    def A(self) -> NDArray[np.uint8]:
        """The graph (d, d) of the best state."""
        _, _, _, sizes, _, table = self.best
        A = np.zeros((self.score.d, self.score.d), np.uint8)
        for i, size in enumerate(sizes):
            A[table[i, :size], i] = 1
        return A

    def candidate(self) -> Candidate:
        """The best so far. Scored anew: a walk works to the precision of correlations where that is enough."""
        # After an interrupt a thread may still be at work.
        with self._lock:
            A, order = self.A, self.best[0].copy()
        return Candidate(A, float(self.score(A)), order)


@dataclass(frozen=True)
class _Choice:
    """Parents selected for a node, the link of the residual that they leave, and the price of their edges.

    Apart: under equal variances the price of an edge follows the total, and next to it a small link has no digits left.
    """

    parents: frozenset[int]
    link: float
    price: float

    @property
    def cost(self) -> float:
        return self.link + self.price


_cost = attrgetter("cost")
# A node and those that may be its parents; these and where a selection starts; a node, its place, and the selections
# that change there.
_Key = tuple[int, frozenset[int]]
_Wanted = tuple[int, frozenset[int], frozenset[int]]
_Move = tuple[int, int, dict[int, _Choice]]


class _Passage:
    """A node on its way through the order, in one direction, with the selections that differ where it is."""

    def __init__(
        self, order: list[int], choices: dict[int, _Choice], node: int, direction: int, fixed: NDArray[np.bool_]
    ) -> None:
        self.order, self.choices, self.node, self.direction = order, choices, node, direction
        # What the node cannot go past.
        self.fixed = fixed[:, node] if direction < 0 else fixed[node]
        self.place = order.index(node)
        self.before = frozenset(order[: self.place])
        self.changed = {node: choices[node]}
        self.worse = 0

    @property
    def goes_on(self) -> bool:
        following = self.place + self.direction
        return 0 <= following < len(self.order) and not self.fixed[self.order[following]]

    def step(self) -> "list[_Wanted]":
        """Go past the next node; the two change sides, and nobody else notices: what to select for them."""
        self.place += self.direction
        self.passed = self.order[self.place]
        ahead = frozenset(self.order[: self.place])
        if self.direction == 1:
            self.before, behind = self.before | {self.passed}, ahead - {self.node}
        else:
            self.before, behind = self.before - {self.passed}, ahead | {self.node}
        return [
            (self.node, self.before, self.changed[self.node].parents & self.before),
            (self.passed, behind, self.choices[self.passed].parents & behind),
        ]

    @property
    def newcomers(self) -> tuple[int | None, int | None]:
        """The candidate that the node, and the one that it has just passed, has had for this step only."""
        return (self.passed, None) if self.direction == 1 else (None, self.node)

    def arrive(self, own: _Choice, others: _Choice) -> None:
        """Take the selections that were asked for."""
        self.changed[self.node], self.changed[self.passed] = own, others


class LocalDescent(Stateful):
    """For any score with local residuals: few regressions, and those that are needed together in one batch.

    A selection is a set of parents that no single addition or removal improves. It starts from the selection for
    the neighbouring place in the order, so that where that is still the best only one new regression is needed.

    Parameters
    ----------
    score : Score
    hint : array of shape (d, d), optional
        A graph that is thought to be near the best: selections that have no neighbour start from its parents.
    budget : Budget, optional
        When it is over, what has been reached is returned as it is.
    """

    threads = False

    def __init__(self, score: Score, hint: NDArray[np.uint8] | None = None, budget: Budget | None = None) -> None:
        self.score, self.budget, self.resolution = score, budget or Budget(), resolution(score)
        self.hint = np.zeros((score.d, score.d), np.uint8) if hint is None else hint
        self.known = score.constraints
        self.allowed, self.required = (
            [frozenset(np.flatnonzero(column).tolist()) for column in edges.T]
            for edges in (self.known.allowed, self.known.required)
        )
        self.selected: dict[tuple[int, frozenset[int]], _Choice] = {}
        # The price of an edge in units of links; under equal variances it follows the total.
        self.price = score.penalty * score.d
        near = score.approximation
        self.guide = None if near is None else LocalDescent(near, hint, budget)

    def snapshot(self) -> dict[str, Any]:
        """The state, with the selections, which depend on where they started, as arrays."""
        sets = np.zeros((2, len(self.selected), self.score.d), np.uint8)
        for k, ((_, allowed), choice) in enumerate(self.selected.items()):
            sets[0, k, list(allowed)] = sets[1, k, list(choice.parents)] = 1
        nodes = np.array([node for node, _ in self.selected], np.int64)
        parts = np.array([(choice.link, choice.price) for choice in self.selected.values()]).reshape(-1, 2)
        own = {"price": self.price, "selected": [nodes, np.packbits(sets, axis=2), parts]}
        return own if self.guide is None else own | {"guide": self.guide.snapshot()}

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Take up a state."""
        nodes, packed, parts = snapshot["selected"]
        sets = np.unpackbits(packed, axis=2, count=self.score.d)
        allowed, parents = ([frozenset(np.flatnonzero(row).tolist()) for row in part] for part in sets)
        keys = zip(nodes.tolist(), allowed, strict=True)
        self.price = snapshot["price"]
        if self.guide is not None:
            self.guide.resume(snapshot["guide"])
        self.selected = dict(zip(keys, map(_Choice, parents, *parts.T.tolist()), strict=True))

    def select(self, wanted: list[_Wanted]) -> list[_Choice]:
        """The parents of each node among those allowed, climbing from given ones: ``(node, allowed, start)``."""
        wanted = [self._permitted(*one) for one in wanted]
        climbs = {(node, allowed): start for node, allowed, start in wanted if (node, allowed) not in self.selected}
        at = dict(zip(climbs, self._choices([(node, start) for (node, _), start in climbs.items()]), strict=True))
        while at:
            options = [(key, option) for key in at for option in self._options(*key, at[key].parents)]
            try:
                options = self._hopeful(at, options)
                found = self._choices([(node, parents) for (node, _), parents in options])
            except OutOfTime:
                # What has been climbed so far is a selection too.
                return [at.get((node, allowed)) or self.selected[node, allowed] for node, allowed, _ in wanted]
            best: dict[tuple[int, frozenset[int]], _Choice] = dict(at)
            for (key, _), choice in zip(options, found, strict=True):
                if choice.cost < best[key].cost:
                    best[key] = choice
            done = [key for key in at if best[key].cost >= at[key].cost - SAME_COST]
            self.selected.update((key, at[key]) for key in done)
            at = {key: best[key] for key in at if key not in done}
        return [self.selected[node, allowed] for node, allowed, _ in wanted]

    def _adjust(self, wanted: list[_Wanted], newcomers: list[int | None]) -> list[_Choice]:
        """Selections that are known, and for others the start itself, with the newcomer if that is better."""
        sets: list[tuple[int, frozenset[int]]] = []
        parts: list[tuple[_Key, slice]] = []
        for (node, allowed, start), new in zip(starmap(self._permitted, wanted), newcomers, strict=True):
            begin = len(sets)
            if (node, allowed) not in self.selected:
                sets.append((node, start))
                if new in allowed and len(start) < self.known.max_parents[node]:
                    sets.append((node, start | {new}))
            parts.append(((node, allowed), slice(begin, len(sets))))
        found = self._choices(sets)
        return [min(found[part], key=_cost) if found[part] else self.selected[key] for key, part in parts]

    def _hopeful(
        self, at: "dict[_Key, _Choice]", options: "list[tuple[_Key, frozenset[int]]]"
    ) -> "list[tuple[_Key, frozenset[int]]]":
        """Sets of parents that an approximation does not rule out, compared with those ``at`` hand.

        It may be wrong about a change by as much as it is about the present set, and by a part of the price of an edge.
        """
        if self.guide is None:
            return options
        guide = self.guide
        now = guide._choices([(node, choice.parents) for (node, _), choice in at.items()])
        bound = {
            key: guess.cost + CLOSE * self.price + abs(guess.link - at[key].link)
            for key, guess in zip(at, now, strict=True)
        }
        then = guide._choices([(node, parents) for (node, _), parents in options])
        return [option for option, choice in zip(options, then, strict=True) if choice.cost < bound[option[0]]]

    def _permitted(
        self, node: int, allowed: frozenset[int], start: frozenset[int]
    ) -> tuple[int, frozenset[int], frozenset[int]]:
        """What to select, within what is known."""
        allowed, needed = allowed & self.allowed[node], self.required[node]
        start = (start & allowed) | needed
        room = int(self.known.max_parents[node]) - len(needed)
        return node, allowed, needed | frozenset(sorted(start - needed)[:room]) if len(start - needed) > room else start

    def _options(self, node: int, allowed: frozenset[int], parents: frozenset[int]) -> Iterator[frozenset[int]]:
        """Sets of parents with one more or one less; where there is no room for more, with another in place of one."""
        open_ = sorted(allowed - self.required[node])
        full = len(parents) >= self.known.max_parents[node]
        for j in open_:
            if j in parents or not full:
                yield parents ^ {j}
            else:
                yield from (parents - {k} | {j} for k in open_ if k in parents)

    def _choices(self, sets: list[tuple[int, frozenset[int]]]) -> list[_Choice]:
        links = self.score.link(self.score.local.batch(sets), [node for node, _ in sets])
        prices = self.score.prices
        return [
            _Choice(parents, float(link), float(self.price * prices[len(parents)]))
            for link, (_, parents) in zip(links, sets, strict=True)
        ]

    def descend(
        self,
        order: NDArray[np.int64],
        floor: float = -np.inf,
        full: bool = False,
        A: NDArray[np.uint8] | None = None,
        thorough: bool = False,
    ) -> tuple[Candidate, int]:
        """See :class:`Descent`; unless ``full``, a direction ends after two places in a row without improvement.

        Unless ``thorough``, a place is judged by the parents at hand, less those that it forbids and with those that it
        is the first to allow: two regressions in place of dozens. They are selected anew where no move is left.
        """
        full = full or self.score.d <= FEW_PLACES
        current = [int(node) for node in self.known.extend(order)]
        near = self.hint if A is None else A
        wanted = [self._permitted(*one) for one in self._wanted(current, near)]
        choices = {node: _Choice(start, math.nan, math.nan) for node, _, start in wanted}
        moves = 0
        # What has been reached when the time is over is returned as it is.
        with suppress(OutOfTime):
            choices = self._choose(current, near)
            if not self.score.criterion.decomposable:
                choices = self._reprice(current, choices, near)
            best, unmoved, turn = self._value(choices), 0, 0
            begun, seen = self.score.local.fits, 0
            while not self.budget.over:
                if unmoved >= self.score.d:
                    if thorough:
                        break
                    choices = self._settle(current, choices)
                    if (settled := self._value(choices)) <= best + self.resolution:
                        break
                    best, unmoved = settled, 0
                nodes = [(turn + k) % self.score.d for k in range(min(TOGETHER, self.score.d - unmoved))]
                turn, unmoved = turn + len(nodes), unmoved + len(nodes)
                for move, value in self._moves(current, choices, nodes, best, full, thorough):
                    if value > max(best, floor) + self.resolution:
                        best, unmoved, target = value, 0, move
                if unmoved == 0:
                    node, place, changed = target
                    current.remove(node)
                    current.insert(place, node)
                    choices |= changed
                    moves += 1
                seen += len(nodes)
                local = self.score.local
                to_come = (local.fits - begun) * (self.score.d - unmoved) // seen
                self.budget.working(Work(local.fits, local.cache.hits, to_come, self.score.role))
        A = self._graph(choices)
        with self.score.local.unhurried():
            return Candidate(A, float(self.score(A)), np.array(current)), moves

    def _graph(self, choices: dict[int, _Choice]) -> NDArray[np.uint8]:
        A = np.zeros((self.score.d, self.score.d), np.uint8)
        for i, choice in choices.items():
            A[sorted(choice.parents), i] = 1
        return A

    def _wanted(self, order: list[int], near: NDArray[np.uint8]) -> list[_Wanted]:
        """What to select for an order: every node, its predecessors, and those that are parents in ``near`` (d, d)."""
        wanted = []
        for t, node in enumerate(order):
            allowed = frozenset(order[:t])
            wanted.append((node, allowed, allowed & set(np.flatnonzero(near[:, node]).tolist())))
        return wanted

    def _choose(self, order: list[int], near: NDArray[np.uint8]) -> dict[int, _Choice]:
        """Selections for an order as it is."""
        return dict(zip(order, self.select(self._wanted(order, near)), strict=True))

    def _settle(self, order: list[int], choices: dict[int, _Choice]) -> dict[int, _Choice]:
        """Selections for an order that start from those at hand, where they are not worse than what is known."""
        near = self._graph(choices)
        for node, allowed, _ in starmap(self._permitted, self._wanted(order, near)):
            if (node, allowed) in self.selected and self.selected[node, allowed].cost > choices[node].cost:
                del self.selected[node, allowed]
        return self._choose(order, near)

    def _moves(
        self, order: list[int], choices: dict[int, _Choice], nodes: list[int], best: float, full: bool, thorough: bool
    ) -> "Iterator[tuple[_Move, float]]":
        """Nodes at other places of the order, with the selections that change, and the score of each."""
        if self.guide is None:
            for walk, value in self._explore(self._walks(order, choices, nodes), best, full, thorough):
                yield (walk.node, walk.place, dict(walk.changed)), value
            return
        guide = self.guide
        guess = guide._choose(order, self._graph(choices))
        total, level = guide._total(guess), guide._value(guess)
        off = np.mean([abs(choice.link - guess[node].link) for node, choice in choices.items()])
        lost = -float(self.score.change(off + CLOSE * self.price, total))
        places = [
            (walk.node, walk.place)
            for walk, value in guide._explore(guide._walks(order, guess, nodes), level, full, thorough)
            if value > level - lost
        ]
        jumps = [list(self._jump(order, choices, *place)) for place in places]
        found = iter(self.select([one for jump in jumps for one in jump]))
        for (node, place), jump in zip(places, jumps, strict=True):
            changed = {one[0]: next(found) for one in jump}
            yield (node, place, changed), self._value(choices | changed)

    def _walks(self, order: list[int], choices: dict[int, _Choice], nodes: list[int]) -> list["_Passage"]:
        return [_Passage(order, choices, v, s, self.known.before) for v in nodes for s in (1, -1)]

    def _jump(self, order: list[int], choices: dict[int, _Choice], node: int, place: int) -> Iterator[_Wanted]:
        """What to select if a node goes to a place: its parents, and those of the nodes that it passes."""
        moved = [v for v in order if v != node]
        moved.insert(place, node)
        old = order.index(node)
        for t in range(min(old, place), max(old, place) + 1):
            allowed = frozenset(moved[:t])
            yield moved[t], allowed, choices[moved[t]].parents & allowed

    def _explore(
        self, walks: list["_Passage"], best: float, full: bool, thorough: bool
    ) -> Iterator[tuple["_Passage", float]]:
        """Step by step, all walks at once, and the score after every step of each."""
        while walks := [walk for walk in walks if walk.goes_on and (full or walk.worse < WORSE)]:
            if self.budget.over:
                return
            wanted = [one for walk in walks for one in walk.step()]
            newcomers = [new for walk in walks for new in walk.newcomers]
            found = iter(self.select(wanted) if thorough else self._adjust(wanted, newcomers))
            for walk in walks:
                walk.arrive(next(found), next(found))
                value = self._value(walk.choices | walk.changed)
                walk.worse = 0 if value > best + self.resolution else walk.worse + 1
                yield walk, value

    def _paid(self, choices: dict[int, _Choice]) -> float:
        """Price of all parents, in edges."""
        return float(sum(self.score.prices[len(choice.parents)] for choice in choices.values()))

    def _total(self, choices: dict[int, _Choice]) -> float:
        """Sum of the links."""
        return sum(choice.link for choice in choices.values())

    def _value(self, choices: dict[int, _Choice]) -> float:
        """Score of the selected graph."""
        fit = self.score.criterion.unpriced(self._total(choices), self.score.d)
        return fit - self.score.penalty * self._paid(choices)

    def _reprice(self, order: list[int], choices: dict[int, _Choice], near: NDArray[np.uint8]) -> dict[int, _Choice]:
        """Make an edge cost its penalty at the present total: ``ln((T - gain) / T) = -penalty``."""
        for _ in range(4):
            self.price = self._total(choices) * (1.0 - math.exp(-self.score.penalty))
            self.selected.clear()
            if self.guide is not None:
                self.guide.price = self.price
                self.guide.selected.clear()
            choices = self._choose(order, near)
        return choices


def descend_all(
    descent: Descent, starts: list[NDArray[np.int64]], n_jobs: int | None, budget: Budget
) -> list[Candidate]:
    """The local optima of several orders, on threads where the descent is compiled.

    Descents that have not begun when the budget is over are left out, except the first.
    """

    def one(k: int) -> Candidate | None:
        return descent.descend(starts[k])[0] if k == 0 or not budget.over else None

    return [found for found in run_each(one, len(starts), n_jobs if descent.threads else 1) if found is not None]
