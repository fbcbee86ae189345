"""Finished runs, one JSON line each, in a file for every method."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Kind = tuple[str, str, str]
Key = tuple[Kind, int]

RESULTS = Path(__file__).parent / "results"


def kind(row: Row) -> Kind:
    """What runs on different sets have in common: data, method and settings."""
    return row["data"], row["method"], json.dumps(row["settings"], sort_keys=True)


def key(row: Row) -> Key:
    """What makes two runs the same."""
    return kind(row), row["seed"]


def renamed(row: Row) -> Row:
    """A row under the names of today: rows of version 0.1 call the criterion of the estimator ``score``.

    Methods of other packages have settings of that name, which stay.
    """
    if row["method"] != "vec2dag":
        return row
    settings = {"criterion" if name == "score" else name: value for name, value in row["settings"].items()}
    return row | {"settings": settings}


class Store:
    """Rows of a folder, the latest for every run.

    Parameters
    ----------
    folder : Path
        Made with the first row.
    """

    def __init__(self, folder: Path = RESULTS) -> None:
        self.folder = folder
        self.rows: dict[Key, Row] = {}
        self._by_kind: dict[Kind, dict[int, Row]] = {}
        self.added = 0
        for file in sorted(folder.glob("*.jsonl")):
            for row in _read(file):
                self.keep(row)

    def keep(self, row: Row) -> None:
        """Take a row in, in memory alone (see :meth:`compact`)."""
        self.added += 1
        self.rows[key(row)] = row
        self._by_kind.setdefault(kind(row), {})[row["seed"]] = row

    def add(self, row: Row) -> None:
        """Append a row, to the disk as well."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{row['method']}.jsonl"
        # A process that was killed while writing leaves half a line: the next one starts on its own.
        torn = file.exists() and not _ends_with_newline(file)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(("\n" if torn else "") + json.dumps(row, separators=(",", ":")) + "\n")
        self.keep(row)

    def get(self, data: str, seed: int, method: str, settings: dict[str, Any]) -> Row | None:
        """The row of a run, if there is one."""
        return self.rows.get(key({"data": data, "seed": seed, "method": method, "settings": settings}))

    def series(self, data: str, method: str, settings: dict[str, Any]) -> list[Row]:
        """Rows of a method on all sets of a kind, in the order of the sets."""
        found = self._by_kind.get(kind({"data": data, "method": method, "settings": settings}), {})
        return [found[seed] for seed in sorted(found)]

    def of(self, method: str, settings: dict[str, Any]) -> list[Row]:
        """Rows of a method with its settings on any data."""
        wanted = json.dumps(settings, sort_keys=True)
        return [row for ((_, name, chosen), _), row in self.rows.items() if (name, chosen) == (method, wanted)]

    def compact(self) -> None:
        """Rewrite the files with the rows that count, one for every run."""
        by_file: dict[str, list[Row]] = {}
        for row in self.rows.values():
            by_file.setdefault(f"{row['method']}.jsonl", []).append(row)
        for name, rows in by_file.items():
            text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
            beside = self.folder / f"{name}.new"
            beside.write_text(text, encoding="utf-8")
            beside.replace(self.folder / name)


def problem(row: Row) -> str:
    """What kept a run from ending well, or nothing."""
    if row["status"] == "timeout":
        return f"stopped at {row['limit']:g} s" + (f" ({row['progress']})" if row["progress"] else "")
    return f"failed: {row['error']}" if row["status"] == "failed" else ""


def _ends_with_newline(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(0, 2)
        if stream.tell() == 0:
            return True
        stream.seek(-1, 2)
        return stream.read() == b"\n"


def _read(file: Path) -> Iterator[Row]:
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            yield renamed(json.loads(line))
        except json.JSONDecodeError:
            continue
