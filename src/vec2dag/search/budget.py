"""One budget for a search: the clock, the callback, the interrupt, and what is kept for a later run."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._checks import function, number
from .._parallel import OutOfTime
from ..scores import GraphScore
from .checkpoint import Memory

__all__ = ["Budget", "Callback", "Progress", "Work"]


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every step; return True from it to stop the search.

    ``n_steps`` is None where nobody can know how many there will be. ``mode`` (d, d) is the DAG that the mean of the
    policy decodes to; the best so far, for searches over orders.
    """

    step: int
    n_steps: int | None
    best_score: float
    mean_reward: float
    seconds: float
    mode: NDArray[np.uint8]


@dataclass(frozen=True)
class Work:
    """How many regressions a search has made where they take their time: a step may be hundreds of them.

    Attributes
    ----------
    made : int
        Regressions so far.
    known : int
        Look-ups that memory has answered.
    to_come : int
        About how many more the present pass over the order will need, at the rate of those before.
    role : str
        ``"simpler"`` or ``"approximate"`` if they only guide those of the score, which has none.
    """

    made: int
    known: int
    to_come: int
    role: str


Callback = Callable[[Progress], bool | None]


class Budget:
    """Why and when a search ends early: its time is over, its callback has said so, or somebody interrupts it.

    Parameters
    ----------
    seconds : float, optional
        From now on; None is without end.
    callback : callable, optional
        Told of every step with a :class:`.Progress`; returning True ends the search.
    watch : callable, optional
        Told of regressions with a :class:`.Work`.
    outer : Budget, optional
        The budget that this one is a part of. It is never exceeded, and a callback or an interrupt ends it too.

    Attributes
    ----------
    stopped : str or None
        ``"time"``, ``"callback"`` or ``"interrupted"`` once the search has to end.
    memory : Memory
        Where the search is kept, so that a later run continues it.
    """

    def __init__(
        self,
        seconds: float | None = None,
        callback: Callback | None = None,
        outer: "Budget | None" = None,
        watch: Callable[[Work], None] | None = None,
    ) -> None:
        if seconds is not None:
            number("time_budget", seconds, above=0)
        if callback is not None:
            function("callback", callback, "of a Progress")
        self.start = time.perf_counter()
        self.deadline = math.inf if seconds is None else self.start + seconds
        if outer is not None:
            self.deadline = min(self.deadline, outer.deadline)
        if watch is not None:
            function("watch", watch, "of a Work")
        self.callback, self.outer = callback, outer
        self.watch: Callable[[Work], None] | None = outer.watch if outer is not None and watch is None else watch
        self.stopped: str | None = None
        self.memory: Memory = Memory() if outer is None else outer.memory

    @property
    def limited(self) -> bool:
        """Whether there is an end at all."""
        return self.deadline < math.inf

    @property
    def over(self) -> bool:
        """Whether the search has to end now."""
        if self.stopped is None and self.outer is not None and self.outer.cancelled:
            self.stopped = self.outer.stopped
        if self.stopped is None and time.perf_counter() >= self.deadline:
            self.stopped = "time"
        return self.stopped is not None

    @property
    def cancelled(self) -> bool:
        """Whether somebody has said that the search has to end, and not the clock."""
        return self.stopped in ("callback", "interrupted")

    def part(self, share: float) -> "Budget":
        """A budget of a share of the time that is left."""
        left = max(share * (self.deadline - time.perf_counter()), 1e-3) if self.limited else None
        return Budget(left, self.callback, self)

    def tell(self, progress: Progress) -> None:
        """Tell the callback, which may end the search."""
        if self.callback is not None and self.callback(progress):
            self._cancel("callback")

    def working(self, work: Work) -> None:
        """Tell whoever watches the regressions."""
        if self.watch is not None:
            self.watch(work)

    @contextmanager
    def guard(self, score: GraphScore) -> Iterator[None]:
        """Context that ends quietly, with ``stopped`` set, when time is over or somebody interrupts.

        Whoever uses it keeps the best so far outside of it. Regressions that take their time look at the clock too.
        """
        try:
            with score.until(self.deadline):
                yield
        except OutOfTime:
            self.stopped = self.stopped or "time"
        except KeyboardInterrupt:
            self._cancel("interrupted")

    def _cancel(self, reason: str) -> None:
        self.stopped = reason
        if self.outer is not None:
            self.outer._cancel(reason)
