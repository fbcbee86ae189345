"""One run in its own process: ``python -m experiments.worker FOLDER``.

FOLDER holds ``X.npy`` and ``job.json`` (method, settings, seed, limits), and nothing of the truth. It receives
``out.npz``, what the method returned, and ``out.json``: seconds, peak memory, versions, machine.
"""

import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .methods import METHODS

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


def set_limits(gigabytes: float, seconds: float) -> None:
    """Limit memory and files, where the system can; end alone if whoever waits has gone."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_DATA, int(gigabytes * 2**30)), (resource.RLIMIT_FSIZE, LOG_LIMIT)):
        _, hard = resource.getrlimit(kind)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, hard))
    signal.alarm(int(seconds) + 60)


def peak_megabytes() -> float | None:
    """Largest resident size of the process so far."""
    try:
        import resource
    except ImportError:
        return None
    # Kilobytes on Linux, bytes on macOS.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def digest(*folders: Path) -> str:
    """Of the code in folders and those inside them, the names of the files included."""
    code = hashlib.sha256()
    for folder in folders:
        # By parts: Windows sorts paths without regard to case.
        for parts in sorted(file.relative_to(folder).parts for file in folder.rglob("*.py")):
            content = folder.joinpath(*parts).read_bytes()
            code.update(f"{'/'.join(parts)} {len(content)}\n".encode() + content)
    return code.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Of Python and of the packages that took part; of this library also a digest of its code."""
    found = {"python": sys.version.split()[0]}
    if "vec2dag" in sys.modules:
        package = sys.modules["vec2dag"]
        assert package.__file__ is not None
        code = digest(Path(package.__file__).parent, Path(__file__).parent / "baselines")
        found["vec2dag"] = f"{package.__version__}+{code}"
    return found | {d: importlib.metadata.version(d) for d, module in VERSIONS.items() if module in sys.modules}


def machine() -> str:
    """Number of cores and name of the processor."""
    name = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{os.cpu_count()} x {name or platform.processor() or platform.machine()}"


def main(folder: Path) -> None:
    """Run the job of a folder."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    set_limits(job["memory"], job["timeout"])
    method = METHODS[job["method"]]
    for module in method.imports:
        importlib.import_module(module)
    function = method.function()
    X = np.load(folder / "X.npy")
    if job.get("careful") and method.own:
        function(X[:200, :30], np.random.default_rng(job["seed"]), **job["settings"])
    start, used = time.perf_counter(), time.process_time()
    found: Any = function(X, np.random.default_rng(job["seed"]), **job["settings"])
    seconds, used = time.perf_counter() - start, time.process_time() - used
    np.savez(folder / "out.npz", **(found if isinstance(found, dict) else {"A": found}))
    facts = {
        "seconds": round(seconds, 4),
        "peak_mb": peak_megabytes(),
        "machine": machine(),
        "versions": versions(),
    }
    if job.get("careful"):
        facts["cpu_seconds"] = round(used, 4)
    (folder / "out.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
