"""A method in a process of its own, within limits of time and memory."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .hosts import Hosts
from .methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
PEERS_PYTHON = ROOT / ".venv-peers" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
NOT_INSTALLED = "not installed: make peers"
TAIL = 2**16  # bytes of a log that are looked at
CAN_LIMIT = os.name == "posix"  # processor time of a process
# A process that uses no processor time (or shares the machine with many) ends after so many limits on the wall.
PATIENCE, GRACE = 10.0, 60.0


@dataclass(frozen=True)
class Outcome:
    """What a process left.

    Attributes
    ----------
    status : str
        ``"ok"``, ``"timeout"`` or ``"failed"``.
    found : dict
        What the method returned.
    facts : dict
        Seconds, peak memory, versions, machine.
    said : str
        The last line of its output, unless it ended well.
    """

    status: str
    found: dict[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    said: str = ""


def execute(
    method: str,
    settings: dict[str, Any],
    seed: int,
    X: NDArray[np.float64],
    *,
    timeout: float,
    memory: float = 8.0,
    peers: Path = PEERS_PYTHON,
    paths: Sequence[Path] = (),
    careful: bool = False,
    hosts: Hosts | None = None,
) -> Outcome:
    """Run a method on a table with one thread; its problems are told and not raised.

    Parameters
    ----------
    method : str
        A name of :data:`experiments.methods.METHODS`.
    settings : dict
        Its keyword arguments; anything that JSON can hold.
    seed : int
    X : array of shape (n, d)
    timeout : float
        Seconds of processor time from the call of the method on; where the system cannot limit them, seconds on the
        wall, the start of the process included.
    memory : float
        Gigabytes.
    peers : Path
        Python that has the other packages.
    paths : sequence of Path
        Folders in which a peer is looked for besides.
    careful : bool, default False
        Whether a method of this library runs on a part of the table first, so that its kernels are loaded before the
        clock starts.
    hosts : Hosts, optional
        What the process is forked from; a new interpreter without.
    """
    peer = METHODS[method].peer
    python = peers if peer else Path(sys.executable)
    if not python.exists():
        return Outcome("failed", said=NOT_INSTALLED)
    with tempfile.TemporaryDirectory(prefix="vec2dag-run-") as name:
        folder = Path(name)
        np.save(folder / "X.npy", X)
        wall = PATIENCE * timeout + GRACE
        job = {"method": method, "settings": settings, "seed": seed, "careful": careful}
        job |= {"memory": memory, "timeout": timeout, "patience": wall + GRACE}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        (folder / "log.txt").touch()
        try:
            if hosts is None:
                code = _run(python, folder, _environment(peer, paths), wall if CAN_LIMIT else timeout)
            else:
                with hosts.host(python, _environment(peer, paths), METHODS[method].imports) as host:
                    code = host.run(folder, wall)
        except subprocess.TimeoutExpired:
            return Outcome("timeout", said=_last_line(folder / "log.txt"))
        if CAN_LIMIT and code == -signal.SIGXCPU:
            return Outcome("timeout", said=_last_line(folder / "log.txt"))
        if code != 0 or not (folder / "out.json").exists():
            return Outcome("failed", said=_reason(code, _last_line(folder / "log.txt")))
        with np.load(folder / "out.npz") as file:
            found = dict(file)
        return Outcome("ok", found, json.loads((folder / "out.json").read_text(encoding="utf-8")))


def _run(python: Path, folder: Path, environment: dict[str, str], seconds: float) -> int:
    """The exit code of a process for the job of a folder, which is ended after so many seconds on the wall."""
    with (folder / "log.txt").open("wb") as log:
        child = subprocess.Popen(
            [str(python), "-m", "experiments.worker", str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=os.name != "nt",
        )
    try:
        return child.wait(seconds)
    except BaseException:
        if os.name == "nt":
            child.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise


def _environment(peer: bool, more: Sequence[Path] = ()) -> dict[str, str]:
    """One thread; environments of the peers see nothing of this one but the adapters."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
    paths = [str(ROOT), *map(str, more)] if peer else [str(ROOT), *filter(None, sys.path)]
    # Warnings would hide the last line of progress.
    fixed = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore", **dict.fromkeys(names, "1")}
    return os.environ | fixed


def _last_line(log: Path) -> str:
    """The last thing a process said, without the time and place that a logger puts in front.

    A progress bar rewrites its line; folders are cut from paths.
    """
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - TAIL))
        text = stream.read().decode(errors="replace").replace("\r", "\n")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = re.sub(r"^.* - [A-Z]+: ", "", lines[-1]) if lines else ""
    return re.sub(r"(?<!\w)/(?:[^/\s]+/)+", "", message)[-300:]


def _reason(code: int, said: str) -> str:
    """Why a process failed: its last words are the reason only if it ended by itself."""
    if code >= 0:
        return said or f"ended with code {code}"
    return f"ended by {signal.Signals(-code).name}" + (f" after: {said}" if said else "")
