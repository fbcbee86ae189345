"""What the commands share."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["BAD_INPUT", "DONE", "INTERRUPTED", "say", "seed", "write_json"]

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def say(sentence: str) -> None:
    """One sentence for the person at the terminal."""
    print(f"vec2dag: {sentence}", file=sys.stderr)


def seed(text: str) -> int:
    """The value of ``--seed``."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write a file of JSON, whole or not at all."""
    from ..files.atomic import write_atomically

    write_atomically(file, (json.dumps(content, indent=2, default=str) + "\n").encode())
