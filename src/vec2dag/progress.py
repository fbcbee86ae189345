"""What a person sees while waiting: a progress bar, and that kernels are being compiled."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .search import Progress

__all__ = ["announce_compilation", "progress_bar"]


@contextmanager
def progress_bar(verbose: int) -> Iterator[Callable[[Progress], None] | None]:
    """A progress bar on a terminal, or nothing."""
    if not verbose:
        yield None
        return
    from tqdm import tqdm

    with tqdm(disable=None, unit="step", leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.total = progress.n_steps
            bar.set_postfix_str(f"score {progress.best_score:.5f}", refresh=False)
            bar.n = progress.step
            bar.refresh()

        yield show


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
