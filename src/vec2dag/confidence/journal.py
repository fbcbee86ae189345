"""The checkpoint of a bootstrap: a file to which every sample is added as a line when it is finished.

The first line says what the samples are of. A line counts once it is whole, so that a file whose writer was killed has
all samples but the last; each has its index, so that neither their order nor a second run on the same file matters.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import brief
from ..files.atomic import write_atomically
from .shares import Sample

__all__ = ["Journal"]

FORMAT = "vec2dag-bootstrap"


class Journal:
    """A file of finished samples.

    Parameters
    ----------
    file : path
        Read now, and written now: after an hour is not the time to find out that it cannot be.
    about : dict of str
        What the samples are of; a file of something else is refused.
    entropy : int
        Of the random numbers.
    any_seed : bool
        Take the entropy of the file, whatever it is.

    Attributes
    ----------
    samples : dict
        By index, those that the file had.
    entropy : int
    trouble : str or None
        Why a sample could not be written.
    """

    def __init__(self, file: Any, about: dict[str, str], entropy: int, *, any_seed: bool) -> None:
        if not isinstance(file, str | os.PathLike):
            raise ValueError(f"checkpoint must be a path, got {brief(file)}")
        self.file, self.about, self.entropy = Path(file), about, entropy
        self.samples: dict[int, Sample] = {}
        self.trouble: str | None = None
        lines = self._lines()
        if lines:
            self._check(lines[0], any_seed)
            self.samples = {sample.index: sample for sample in map(_read, lines[1:])}
        header = {"format": FORMAT, "about": about, "entropy": str(self.entropy)}
        whole = [_line(header), *(_line(_record(sample)) for sample in self.samples.values())]
        try:
            write_atomically(self.file, b"".join(whole))
        except OSError as error:
            raise OSError(f"the checkpoint {error}") from error

    def add(self, sample: Sample) -> None:
        """Write a sample. A full disk, say, is no reason to lose the run: ``trouble`` says it."""
        try:
            # One write at the end of the file, which no other writer divides.
            descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND)
            try:
                # A line of a run that was killed, or of a full disk, may have no end.
                os.write(descriptor, b"\n" + _line(_record(sample)))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.trouble = f"the checkpoint {self.file} could not be written: {error.strerror}"

    def _lines(self) -> list[Any]:
        """What is whole in the file."""
        try:
            if self.file.exists() and not self.file.is_file():
                raise OSError(f"the checkpoint {self.file} is no regular file")
            content = self.file.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OSError(f"the checkpoint {self.file} cannot be read: {error.strerror}") from error
        found = [value for value in map(_parsed, content.split(b"\n")) if value is not None]
        if content.strip() and not (found and isinstance(found[0], dict) and found[0].get("format") == FORMAT):
            raise ValueError(f"{self.file} is not a checkpoint of a bootstrap")
        return found

    def _check(self, header: dict[str, Any], any_seed: bool) -> None:
        theirs = header.get("about", {})
        other = [what for what in self.about if theirs.get(what) != self.about[what]]
        if not any_seed and header.get("entropy") != str(self.entropy):
            other.append("random_state")
        if other:
            raise ValueError(
                f"{self.file} is the checkpoint of another bootstrap (different: {', '.join(other)}); remove it, or "
                "name another file"
            )
        self.entropy = int(header["entropy"])


def _line(value: Any) -> bytes:
    text = json.dumps(value).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes) -> Any:
    """What a line says; None unless it is whole."""
    checksum, _, text = line.partition(b" ")
    return json.loads(text) if checksum == b"%08x" % zlib.crc32(text) and text else None


def _record(sample: Sample) -> dict[str, Any]:
    return {
        "index": sample.index,
        "edges": sample.edges.tolist(),
        "weights": sample.weights.tolist(),
        "free": np.flatnonzero(sample.free).tolist(),
        "score": sample.score,
    }


def _read(record: dict[str, Any]) -> Sample:
    edges = np.array(record["edges"], np.int32).reshape(-1, 2)
    free = np.zeros(len(edges), bool)
    free[record["free"]] = True
    return Sample(record["index"], edges, np.array(record["weights"], np.float64), free, record["score"])
