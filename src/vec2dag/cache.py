"""Local scores that have been paid for: bounded in bytes, counted, and kept in a file between runs."""

import io
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path

import numpy as np

from .io import write_atomically

__all__ = ["LocalCache"]

# A key, its two numbers, a value, and their place in the dictionary, for up to 30 nodes; every 30 nodes more add 4.
BYTES = 280


class LocalCache:
    """Mean squared residuals by (node, bits of the parents), the least recently used dropped first.

    Parameters
    ----------
    max_bytes : int, default 256 MiB
        About a million local scores.

    Attributes
    ----------
    hits, misses : int
        Look-ups that were answered and that were not.
    """

    def __init__(self, max_bytes: int = 256 * 2**20) -> None:
        if max_bytes < BYTES:
            raise ValueError(f"max_bytes must be at least {BYTES}, got {max_bytes!r}")
        self.max_bytes = max_bytes
        self.hits = self.misses = self.bytes = 0
        self._values: OrderedDict[tuple[int, int], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: tuple[int, int]) -> float | None:
        """The residual, or None; counted."""
        value = self._values.get(key)
        if value is None:
            self.misses += 1
            return None
        self.hits += 1
        self._values.move_to_end(key)
        return value

    def put(self, key: tuple[int, int], value: float) -> None:
        """Remember, and forget the least recently used beyond ``max_bytes``."""
        if key not in self._values:
            self.bytes += _size(key)
        self._values[key] = value
        while self.bytes > self.max_bytes:
            old, _ = self._values.popitem(last=False)
            self.bytes -= _size(old)

    @property
    def hit_rate(self) -> float:
        """Share of look-ups that were answered; nan before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else float("nan")

    def save(self, file: Path, fingerprint: str) -> None:
        """Write all values, in place of a file that was there; ``fingerprint`` says what they are values of."""
        width = max([1, *(mask.bit_length() for _, mask in self._values)])
        size = (width + 7) // 8
        bits = b"".join(mask.to_bytes(size, "little") for _, mask in self._values)

        content = io.BytesIO()
        np.savez_compressed(
            content,
            fingerprint=np.array(fingerprint),
            nodes=np.array([node for node, _ in self._values], np.int64),
            parents=np.frombuffer(bits, np.uint8).reshape(-1, size),
            residuals=np.array(list(self._values.values())),
        )
        write_atomically(file, content.getvalue())

    def load(self, file: Path, fingerprint: str) -> int:
        """Add the values of a file, if there is one, and return how many; refuse those of other data."""
        if not file.exists():
            return 0
        try:
            with np.load(file, allow_pickle=False) as stored:
                theirs, nodes, parents, residuals = (
                    stored[name] for name in ("fingerprint", "nodes", "parents", "residuals")
                )
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{file} is not a file of local scores, or is damaged: {error}") from error
        if str(theirs) != fingerprint:
            raise ValueError(
                f"{file} holds local scores of other data or of another regression; take another file, or remove it"
            )
        for node, row, value in zip(nodes.tolist(), parents, residuals.tolist(), strict=True):
            self.put((node, int.from_bytes(row.tobytes(), "little")), value)
        return len(nodes)


def _size(key: tuple[int, int]) -> int:
    return BYTES + key[1].bit_length() // 30 * 4
