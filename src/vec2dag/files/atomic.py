"""Files that are written whole or not at all, in folders proved writable before any work is done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

PathLike = str | os.PathLike[str]


class InputError(ValueError):
    """A file or folder that cannot be used; the message is one sentence for the person who named it."""


def check_writable(directory: PathLike) -> Path:
    """Create a folder if needed and prove, by writing, that files can be put there.

    Parameters
    ----------
    directory : str or path-like
        The folder; its parents are created too.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        The folder cannot be created or written.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".vec2dag-{os.getpid()}.tmp"
        try:
            probe.write_bytes(b"writable")
        finally:
            probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot write to the folder {folder}: {reason}") from error
    return folder


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, finds the old content or the new, never a part."""
    # a name of our own instead of tempfile's, whose files nobody else may read
    temporary = file.with_name(f".{file.name}-{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(file: Path, content: Any) -> None:
    """Write JSON, atomically; what JSON does not know is written as text."""
    write_atomically(file, as_json(content))


def as_json(content: Any) -> bytes:
    """JSON for people to read; what it does not know is written as text."""
    return (json.dumps(content, indent=2, default=str) + "\n").encode()
