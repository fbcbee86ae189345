"""What a person sees while waiting: what a fit is doing, and that kernels are being compiled."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .search import Progress, Work

__all__ = ["ProgressLine", "announce_compilation"]


class ProgressLine:
    """A line on a terminal that says what a fit is doing; nothing where there is no terminal, or nobody asks.

    Parameters
    ----------
    shown : bool
    seconds : float, optional
        Of the time budget.
    """

    def __init__(self, shown: bool, seconds: float | None = None) -> None:
        self.seconds: float | None = seconds
        self.bar: Any = None
        if shown:
            from tqdm import tqdm

            # disable=None: nothing where stderr is no terminal
            self.bar = tqdm(disable=None, leave=False, bar_format="{desc}")

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    @property
    def callback(self) -> Callable[[Progress], None] | None:
        """What a search should tell of its steps; None if nobody would see it."""
        return None if self.bar is None or self.bar.disable else self.searching

    @property
    def watch(self) -> Callable[[Work], None] | None:
        """What a search should tell of regressions that take their time; None if nobody would see it."""
        return None if self.bar is None or self.bar.disable else self.regressing

    def regressing(self, work: Work) -> None:
        """Show how many regressions have been made."""
        kind = f"{work.role} regressions".lstrip()
        made = f"{work.made:,} {kind} made, {work.known:,} looked up"
        self.doing(f"searching: {made}, about {work.to_come:,} to come in this pass")

    def searching(self, progress: Progress) -> None:
        """Show how far a search has come."""
        of = "" if progress.n_steps is None else f" of {progress.n_steps}"
        self.doing(
            f"searching: step {progress.step}{of}, score {progress.best_score:.5f}, {int(progress.mode.sum())} edges, "
            f"{progress.seconds:.0f} s{self._left(progress)}"
        )

    def _left(self, progress: Progress) -> str:
        """How long it may still take: what is left of the budget, or at the same pace if the steps are known."""
        left = math.inf if self.seconds is None else max(0.0, self.seconds - progress.seconds)
        if progress.n_steps is not None and progress.step:
            left = min(left, progress.seconds * (progress.n_steps - progress.step) / progress.step)
        return "" if math.isinf(left) else f", {left:.0f} s left at most"

    def doing(self, what: str) -> None:
        """Show what is being done."""
        if self.bar is not None:
            self.bar.set_description_str(what)


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Say so on stderr, once, when a kernel has to be compiled while the context is open."""
    from numba.core import event

    class Announce(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                sentence = (
                    "compiling the kernels, which takes about half a minute: only the first run on a machine does"
                )
                print(f"vec2dag: {sentence}", file=sys.stderr)
                self.said = True

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Announce()):
        yield
