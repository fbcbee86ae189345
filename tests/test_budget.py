"""The budget of a search: clock, callback and interrupt, nested."""

import math

import numpy as np
import pytest

from vec2dag import Score
from vec2dag.scores import as_score
from vec2dag.search import Budget, Progress
from vec2dag.search import budget as module

PROGRESS = Progress(1, 10, 0.0, 0.0, 0.0, np.zeros((2, 2), np.uint8))


class Clock:
    """A clock that goes only when it is told to."""

    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_time_is_over_when_the_clock_says_so(clock):
    budget = Budget(5.0)
    clock.now += 4.9
    assert not budget.over
    assert budget.stopped is None
    clock.now += 0.1
    assert budget.over
    assert budget.stopped == "time"
    assert not budget.cancelled
    endless = Budget()
    clock.now = 1e12
    assert not endless.over
    assert not endless.limited


def test_a_part_never_outlives_the_whole(clock):
    whole = Budget(10.0)
    clock.now += 2.0
    quarter = whole.part(0.25)
    assert quarter.deadline == pytest.approx(clock.now + 2.0)
    assert Budget(100.0, outer=whole).deadline == whole.deadline
    clock.now += 3.0
    assert quarter.over
    assert not whole.over, "the end of a part is not the end of the whole"
    clock.now += 100.0
    assert whole.part(0.5).deadline <= clock.now + 1e-3
    assert not Budget().part(0.25).limited


@pytest.mark.parametrize("reason", ["callback", "interrupted"])
def test_cancelling_a_part_cancels_the_whole(reason):
    whole = Budget(callback=lambda progress: True)
    part = whole.part(0.5).part(0.5)
    if reason == "callback":
        part.tell(PROGRESS)
    else:
        with part.guard(as_score(lambda A: 0.0, 2)):
            raise KeyboardInterrupt
    assert (whole.stopped, part.stopped) == (reason, reason)
    assert whole.cancelled
    assert whole.over


def test_callbacks_go_on_until_they_say_otherwise():
    seen = []
    budget = Budget(callback=seen.append)
    budget.tell(PROGRESS)
    assert (seen, budget.stopped) == ([PROGRESS], None)


def test_other_errors_are_not_swallowed():
    with pytest.raises(RuntimeError, match="from inside"), Budget().guard(as_score(lambda A: 0.0, 2)):
        raise RuntimeError("from inside")


def test_costly_regressions_end_at_the_deadline_and_cheap_ones_do_not_ask(rng, monkeypatch):
    class Costly:
        n, d = 50, 4

        def residual(self, node, parents):
            return 1.0

    score = Score(None, Costly())
    budget = Budget(1e-9)
    reached = []
    with budget.guard(score):
        reached.append(score.local(0, [1]))
        reached.append("not reached")
    assert reached == []
    assert budget.stopped == "time"
    assert score.local.deadline == math.inf, "what comes after has its time"
    assert score.local.fits == 1, "and what was paid for is remembered"
    linear = Score(rng.standard_normal((20, 3)))
    with Budget(1e-9).guard(linear):
        reached.append(linear.local(0, [1]))
    assert len(reached) == 1


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf, "5", True])
def test_impossible_times_are_refused(seconds):
    with pytest.raises(ValueError, match="time_budget must be a positive number"):
        Budget(seconds)
