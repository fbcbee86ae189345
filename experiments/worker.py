"""One run in its own process: ``python -m experiments.worker FOLDER``.

FOLDER holds ``X.npy`` and ``job.json`` (method, settings, seed, limits), and nothing of the truth. It receives
``out.npz``, what the method returned, and ``out.json``: seconds, peak memory, versions, machine.

``python -m experiments.worker --host`` reads the names of folders, imports what each method needs and forks for the run
(see :mod:`experiments.hosts`).
"""

import contextlib
import importlib
import importlib.metadata
import json
import math
import os
import platform
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .methods import METHODS, Function, Method

# Distribution and the module that shows that it took part.
VERSIONS = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "numba": "numba",
    "torch": "torch",
    "stable-baselines3": "stable_baselines3",
    "gcastle": "castle",
    "dagma": "dagma",
    "causal-learn": "causallearn",
    "flopsearch": "flopsearch",
    "rcd": "rcd",
    "lingam": "lingam",
}
LOG_LIMIT = 2**30  # bytes of one file


def _limit(**limits: float) -> None:
    """Limits of the process, by the names of the system without ``RLIMIT_``, where it has them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, limit in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        wanted = math.ceil(limit)
        resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def set_limits(gigabytes: float, seconds: float) -> None:
    """Limit memory, files and processor time from now on.

    Processor time, because a machine that does other work too would stop a run that has hardly begun.
    """
    _limit(DATA=gigabytes * 2**30, FSIZE=LOG_LIMIT, CPU=time.process_time() + seconds)


def peak_megabytes() -> float | None:
    """Largest resident size of the process so far."""
    try:
        import resource
    except ImportError:
        return None
    # Kilobytes on Linux, bytes on macOS.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def versions() -> dict[str, str]:
    """Of Python and of the packages that took part."""
    found = {"python": sys.version.split()[0]}
    if "vec2dag" in sys.modules:
        found["vec2dag"] = sys.modules["vec2dag"].__version__
    return found | {d: importlib.metadata.version(d) for d, module in VERSIONS.items() if module in sys.modules}


def machine() -> str:
    """Number of cores and name of the processor."""
    name = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{os.cpu_count()} x {name or platform.processor() or platform.machine()}"


def _loaded(method: Method) -> Function:
    """The function of a method, with the modules that it needs imported."""
    for module in method.imports:
        importlib.import_module(module)
    return method.function()


def host() -> None:
    """Fork for every folder that is named on stdin; the number of the process and its exit code go to stdout."""
    answers = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)  # what an import prints is no answer
    warm: set[str] = set()
    for line in sys.stdin:
        folder = Path(line.rstrip("\n"))
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        method, settings = METHODS[job["method"]], job["settings"]
        kind = json.dumps([job["method"], settings], sort_keys=True)
        # What is wrong with an import or a setting is told by the run, which has a log.
        with contextlib.suppress(Exception):
            function = _loaded(method)
            if method.library and kind not in warm:
                # Compiled kernels are loaded once, as other packages have theirs when they are imported.
                _limit(DATA=job["memory"] * 2**30)
                function(np.load(folder / "X.npy")[:100, :5], np.random.default_rng(0), **settings | method.toy)
        warm.add(kind)
        pid = os.fork()
        if pid == 0:
            _forked(folder)
        print(pid, file=answers, flush=True)
        ended, status = os.waitpid(pid, os.WNOHANG)
        while not ended:
            # Nothing is said to a host that works: its ear is free only when whoever asked has gone.
            if select.select([sys.stdin], [], [], 0.01)[0]:
                for end in (os.kill, os.killpg):  # it may not lead a group yet
                    with contextlib.suppress(ProcessLookupError):
                        end(pid, signal.SIGKILL)
                return
            ended, status = os.waitpid(pid, os.WNOHANG)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _forked(folder: Path) -> NoReturn:
    """The run of a folder in a process that has just been forked."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        main(folder)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(folder: Path) -> None:
    """Run the job of a folder."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    if hasattr(signal, "alarm"):
        signal.alarm(math.ceil(job["patience"]))  # whoever waits may have gone
    method = METHODS[job["method"]]
    function = _loaded(method)
    X = np.load(folder / "X.npy")
    set_limits(job["memory"], job["timeout"])
    if job.get("careful") and method.own:
        function(X[:200, :30], np.random.default_rng(job["seed"]), **job["settings"])
    start, used = time.perf_counter(), time.process_time()
    found: Any = function(X, np.random.default_rng(job["seed"]), **job["settings"])
    seconds, used = time.perf_counter() - start, time.process_time() - used
    np.savez(folder / "out.npz", **(found if isinstance(found, dict) else {"A": found}))
    facts = {
        "seconds": round(seconds, 4),
        "cpu_seconds": round(used, 4),
        "peak_mb": peak_megabytes(),
        "machine": machine(),
        "versions": versions(),
    }
    (folder / "out.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--host":
        host()
    else:
        main(Path(sys.argv[1]))
