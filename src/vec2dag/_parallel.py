"""Threads over pieces of work, the same results for any number of them; and the threads of BLAS."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from ._checks import brief

__all__ = [
    "OutOfTime",
    "dask_client",
    "effective_jobs",
    "one_blas_thread",
    "out_of_time",
    "run_chunks",
    "run_each",
    "run_lazily",
    "until",
]

T = TypeVar("T")

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTime(Exception):
    """The time is over; what was finished before may be kept."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Context in which no piece of work begins after ``deadline`` (of ``time.perf_counter``): :class:`OutOfTime`."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def out_of_time() -> bool:
    """Whether the time of :func:`until` is over."""
    return time.perf_counter() >= _deadline.get()


def effective_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None is every core, negative counts back from the number of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be None (every core), a positive whole number, or -1, -2, ..., got {brief(n_jobs)}"
        )
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@lru_cache(maxsize=4)
def _pool(pid: int, workers: int) -> ThreadPoolExecutor:
    # Keyed by process: threads do not survive a fork, and an inherited pool would wait for ever.
    return ThreadPoolExecutor(workers, thread_name_prefix="vec2dag")


def run_lazily(work: Callable[[int], T], total: int, n_jobs: int | None) -> Iterator[T]:
    """``work(0), ..., work(total - 1)`` as they are finished by threads, in this order; errors propagate."""
    workers, deadline = min(effective_jobs(n_jobs), total), _deadline.get()

    def timely(k: int) -> T:
        if time.perf_counter() >= deadline:
            raise OutOfTime
        return work(k)

    return map(timely, range(total)) if workers <= 1 else _pool(os.getpid(), workers).map(timely, range(total))


def run_each(work: Callable[[int], T], total: int, n_jobs: int | None) -> list[T]:
    """``[work(0), ..., work(total - 1)]`` on threads; errors propagate."""
    return list(run_lazily(work, total, n_jobs))


def run_chunks(work: Callable[[int, int], None], total: int, n_jobs: int | None) -> None:
    """Call ``work(start, stop)`` on contiguous chunks of ``range(total)``, one a thread."""
    chunks = max(1, min(effective_jobs(n_jobs), total))
    bounds = np.linspace(0, total, chunks + 1).astype(int).tolist()
    run_each(lambda k: work(bounds[k], bounds[k + 1]), chunks, n_jobs)


def dask_client(address: str) -> Any:
    """A client of the Dask cluster whose scheduler has this address, as given to ``--scheduler``."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('--scheduler needs Dask: pip install "vec2dag[cluster]"') from error
    try:
        return Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ValueError(f"--scheduler {address}: no Dask scheduler answers there ({error})") from error


_lock = threading.Lock()
_inside: list[threadpool_limits] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS does not start threads; contexts of several threads may overlap.

    On matrices of a few hundred columns they bring nothing, and on a busy machine they wait for each other: a QR of
    1000 x 200 numbers takes 7 ms with one thread and has been seen to take 1.5 s with two.
    """
    with _lock:
        # The limit belongs to the process: the first to come sets it, the last to leave restores what was before.
        _inside.append(_inside[0] if _inside else threadpool_limits(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limits = _inside.pop()
            if not _inside:
                limits.restore_original_limits()
