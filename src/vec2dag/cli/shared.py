"""What the commands share."""

import argparse
import sys

__all__ = ["BAD_INPUT", "DONE", "INTERRUPTED", "say", "seed"]

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def say(sentence: str) -> None:
    """One sentence for the person at the terminal."""
    print(f"vec2dag: {sentence}", file=sys.stderr)


def seed(text: str) -> int:
    """The value of ``--seed``."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)
