"""Many fits in one process leave nothing behind: memory, threads and open files stay where they were."""

import gc
import os
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from vec2dag import ALIAS

from .tables import settings

FITS, WARM_UP = 1000, 300
# 6 kB a fit, about what a table of 60 x 6 numbers and a result take; 0.3 MB in all were measured.
GROWTH = 4 * 2**20
PROC = Path("/proc/self")


def level() -> tuple[int, int, int]:
    """Bytes of memory, threads and open files of this process."""
    gc.collect()
    pages = int((PROC / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), threading.active_count(), len(os.listdir(PROC / "fd"))


@pytest.mark.slow
@pytest.mark.skipif(not (PROC / "statm").exists(), reason="memory is read from /proc")
def test_a_thousand_fits_leave_nothing_behind():
    before = (0, 0, 0)
    refusals = 0
    for k in range(FITS):
        if k == WARM_UP:
            before = level()
        rng = np.random.default_rng([7, k])
        n, d = (30, 4) if k % 3 else (60, 6)
        X = rng.normal(size=(n, d)) @ (np.eye(d) + np.triu(rng.normal(size=(d, d)), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ALIAS(**settings(rng, n, d)).fit(X)
            except ValueError:
                # settings that do not go together are a part of the life of a process too
                refusals += 1
    memory, threads, files = level()
    assert refusals < FITS / 10
    assert memory - before[0] < GROWTH
    assert threads <= before[1]
    assert files <= before[2]
