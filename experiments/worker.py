"""One run in its own process: ``python -m experiments.worker FOLDER``.

FOLDER holds ``X.npy`` and ``job.json`` (method, settings, seed), and nothing of the truth. It receives ``out.npz``,
what the method returned, and ``out.json``: seconds, peak memory, versions.
"""

import importlib
import importlib.metadata
import json
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
    "rcd": "rcd",
    "lingam": "lingam",
}


def cap_memory(gigabytes: float) -> None:
    """Limit what the process can allocate, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


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


def main(folder: Path) -> None:
    """Run the job of a folder."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    cap_memory(job["memory"])
    method = METHODS[job["method"]]
    for module in method.imports:
        importlib.import_module(module)
    function = method.function()
    X = np.load(folder / "X.npy")
    start = time.perf_counter()
    found: Any = function(X, np.random.default_rng(job["seed"]), **job["settings"])
    seconds = time.perf_counter() - start
    np.savez(folder / "out.npz", **(found if isinstance(found, dict) else {"A": found}))
    facts = {"seconds": round(seconds, 4), "peak_mb": peak_megabytes(), "versions": versions()}
    (folder / "out.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
