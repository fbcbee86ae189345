"""Cases, one after the other, each a function of the seed and its number, with a watchdog."""

import faulthandler
import re
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import files, parameters, tables
from .properties import Broken, Hang

__all__ = ["KINDS", "Failure", "Summary", "run", "run_case"]

Kind = Callable[[np.random.Generator, Path], tuple[str, str]]
# Each takes a generator and a folder, raises Broken, and returns "result" or "refused" and what the case was.
KINDS: dict[str, tuple[Kind, float]] = {
    "fit a table": (tables.fit, 0.35),
    "read a table": (files.table, 0.15),
    "read a graph": (files.graph, 0.15),
    "command line": (files.command, 0.1),
    "parameters": (parameters.parameters, 0.25),
}
# Seconds after which a case counts as hanging; and after which the process ends, should even that not stop it.
HANGS, ENDS = 20.0, 120.0


@dataclass(frozen=True)
class Failure:
    """A case in which a property does not hold."""

    case: int
    kind: str
    reason: str
    trace: str

    @property
    def group(self) -> str:
        """What failures of one cause share: the reason without values."""
        return (
            self.kind
            + re.sub(r"'.*|\".*|[\d.]+|/\S*", "", self.reason)
            + "".join(re.findall(r"\w+\.py\w?:\d+", self.reason))
        )


@dataclass
class Summary:
    """Counts of outcomes by kind, and the failures."""

    seed: int
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{'kind':<14}  {'cases':>6}  {'results':>7}  {'refused':>7}  {'failed':>6}"]
        for kind in KINDS:
            found = [self.counts[kind, outcome] for outcome in ("result", "refused", "failed")]
            lines.append(f"{kind:<14}  {sum(found):>6}  {found[0]:>7}  {found[1]:>7}  {found[2]:>6}")
        groups: dict[str, list[Failure]] = {}
        for failure in self.failures:
            groups.setdefault(failure.group, []).append(failure)
        for alike in sorted(groups.values(), key=len, reverse=True):
            first = alike[0]
            others = ", ".join(str(failure.case) for failure in alike[1:4]) + (", ..." if len(alike) > 4 else "")
            lines.append(f"{first.kind}: {first.reason[:400]}\n    {command(self.seed, first.case)}")
            lines += [f"    {len(alike) - 1} more like it: {others}"] if others else []
        return "\n".join(lines)


def command(seed: int, case: int) -> str:
    """What runs one case again."""
    return f"python -m tests.fuzz --seed {seed} --case {case}"


def run(n: int, seed: int, tell: Callable[[int], None] = lambda case: None) -> Summary:
    """The first ``n`` cases of a seed."""
    summary = Summary(seed)
    for case in range(n):
        tell(case)
        kind, outcome, found = run_case(seed, case)
        summary.counts[kind, outcome] += 1
        if isinstance(found, Failure):
            summary.failures.append(found)
    return summary


def run_case(seed: int, case: int, tries: int = 2) -> tuple[str, str, str | Failure]:
    """Kind, outcome, and what the case was, or how it failed.

    What takes too long has a second try: the first may have compiled kernels, or had no processor to itself.
    """
    rng = np.random.default_rng([seed, case])
    weights = np.array([weight for _, weight in KINDS.values()])
    kind = list(KINDS)[int(rng.choice(len(KINDS), p=weights / weights.sum()))]
    try:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, watched():
            outcome, described = KINDS[kind][0](rng, Path(folder))
        return kind, outcome, described
    except Broken as error:
        return kind, "failed", Failure(case, kind, str(error), traceback.format_exc())
    except Hang:
        place = traceback.format_exc()
    if tries > 1:
        return run_case(seed, case, tries - 1)
    return kind, "failed", Failure(case, kind, f"took more than {HANGS:g} s, twice", place)


@contextmanager
def watched() -> Iterator[None]:
    """Context that ends with :class:`Hang`, or with the process, if it takes too long."""

    def bark(*_: object) -> None:
        raise Hang

    # A thread may hold what pytest has put in place of stderr.
    faulthandler.dump_traceback_later(ENDS, exit=True, file=sys.__stderr__)
    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
