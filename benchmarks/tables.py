"""Tables for people (Markdown) and for programs (JSON), and the machine they were measured on."""

import json
import os
import platform
import resource
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Table:
    """A table whose cells are text already."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """Padded, so that it reads as well on a terminal."""
        lines = [list(self.columns), *[list(row) for row in self.rows]]
        widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(self.columns))]
        text = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        text.insert(1, " | ".join("-" * width for width in widths))
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([f"### {self.title}\n", *[f"| {line} |" for line in text], *notes]) + "\n"


@dataclass
class Part:
    """What one part of a benchmark found: tables to read and the records that they summarise."""

    tables: list[Table]
    records: list[dict[str, Any]]
    command: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    date: str = ""

    def __post_init__(self) -> None:
        self.machine = self.machine or machine()
        self.date = self.date or datetime.now(UTC).strftime("%Y-%m-%d")


def machine() -> dict[str, str]:
    """Processor, cores, memory and versions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    described = {"cpu": _cpu(), "cores": str(cores), "memory": f"{_memory_gb():.0f} GB"}
    described |= {"system": f"{platform.system()} {platform.machine()}", "python": platform.python_version()}
    for package in ("vec2dag", "numpy", "scipy", "numba"):
        try:
            described[package] = version(package)
        except PackageNotFoundError:
            described[package] = getattr(sys.modules.get(package), "__version__", "unknown")
    return described


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _memory_gb() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):
        return float("nan")


def peak_memory_mb() -> float:
    """The most memory this process has had resident so far, in MB (10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage of a child includes what its parent had resident when it was started; this does not.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def write(name: str, parts: dict[str, Part], order: Iterable[str], folder: Path, heading: str) -> None:
    """Replace these parts of ``folder/name.json`` and write ``folder/name.md`` from all that it holds."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.json"
    kept = json.loads(source.read_text()) if source.exists() else {}
    kept |= {key: asdict(part) for key, part in parts.items()}
    kept = {key: kept[key] for key in order if key in kept}
    source.write_text(json.dumps(kept, indent=1, default=_plain) + "\n")
    text = [f"# {heading}\n"]
    for key, part in kept.items():
        described = ", ".join(f"{what} {value}" for what, value in part["machine"].items())
        text.append(f"## {key}\n\n`{part['command']}`, {part['date']}; {described}.\n")
        text += [Table(**table).markdown() for table in part["tables"]]
    (folder / f"{name}.md").write_text("\n".join(text))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def say(text: str) -> None:
    """Progress, apart from the tables."""
    print(text, file=sys.stderr, flush=True)
