"""Processes that have imported the modules of a method and fork for every run: an import may take longer than a run.

Each run still has a process of its own, with its own limits, and nothing of one run is left for the next.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Host:
    """One such process, which makes one run at a time.

    Parameters
    ----------
    python : Path
        Its interpreter.
    environment : dict
    """

    def __init__(self, python: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(python), "-m", "experiments.worker", "--host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self.run_pid = 0

    def run(self, folder: Path, seconds: float) -> int:
        """Run the job of a folder; its exit code, minus the signal if one ended it.

        Raises
        ------
        subprocess.TimeoutExpired
            After so many seconds on the wall; the run has been ended.
        """
        assert self.process.stdin is not None
        until = time.monotonic() + seconds
        try:
            self.process.stdin.write(f"{folder}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return self.process.wait() or 1
        pid = self._answer(until)
        if pid is None:
            return self.process.wait() or 1
        self.run_pid = pid
        code = self._answer(until)
        self.run_pid = 0
        return self.process.wait() or 1 if code is None else code

    def _answer(self, until: float) -> int | None:
        """The next number that the host says, or None if it has ended."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            self.kill()
            raise subprocess.TimeoutExpired("experiments.worker", until)
        line = self.process.stdout.readline()
        return int(line) if line else None

    def kill(self) -> None:
        """End it, the run that it makes, and what that has started."""
        for group in (self.run_pid, self.process.pid):
            if group:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Hosts:
    """Hosts by what they have imported, kept until all are ended together."""

    def __init__(self) -> None:
        self.idle: dict[tuple[str, ...], list[Host]] = {}
        self.all: set[Host] = set()
        self.lock = threading.Lock()
        self.closed = False

    @contextmanager
    def host(self, python: Path, environment: dict[str, str], imports: tuple[str, ...]) -> Iterator[Host]:
        """Context with a host that nobody else uses."""
        key = (str(python), *imports)
        with self.lock:
            if self.closed:
                raise RuntimeError("the runs have been ended")
            waiting = self.idle.setdefault(key, [])
            host = waiting.pop() if waiting else Host(python, environment)
            self.all.add(host)
        try:
            yield host
        except BaseException:
            host.kill()
            with self.lock:
                self.all.discard(host)
            raise
        with self.lock:
            if host.process.poll() is None:
                self.idle[key].append(host)
            else:
                self.all.discard(host)

    def kill(self) -> None:
        """End them all and their runs, and start no more."""
        with self.lock:
            self.closed = True
            for host in self.all:
                host.kill()
            self.all.clear()
            self.idle.clear()
