"""Pages of the documentation as programs: their Python and their commands run, and print what the page shows.

On a page, blocks are run from top to bottom, in one folder and with one set of variables:

- ```` ```python ```` is run; a block ```` ```output ```` after it is what it prints, warnings included;
- in ```` ```console ```` lines that begin with ``$`` are commands, run if they are ``vec2dag`` (or what makes and shows
  files), and the lines after a command are what it prints.

``<!-- not run: REASON -->`` before a block, or ``<!-- needs: PACKAGE -->``, leaves it out, always or where the package
is not installed. Shown text has to be as it is printed, but for whole lines ``...``, which stand for any lines, and
numbers with a decimal point, which may differ by a hundredth and, where seconds follow, by anything.
``python -m tests.pages PAGE ...`` writes what pages show anew.
"""

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(
    r"(?:^<!-- *(?P<remark>[^\n]*?) *-->\n+)?^(?P<fence>```+)(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=fence) *$",
    flags=re.DOTALL | re.MULTILINE,
)
# What a page may ask a shell to do here; the rest installs, or takes long.
COMMANDS = ("vec2dag ", "head ", "cat ", "ls ", "python -c ")
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:,\d{3})*\.\d+(?:e[-+]?\d+)?(?![\w.]*\w)")
SECONDS = re.compile(r"\d+(?:\.\d+)?(?= (?:s|seconds|ms)\b)")


class Block(NamedTuple):
    """A fenced block: its language and text, where in the page the text begins, and the remark before it."""

    language: str
    text: str
    start: int
    remark: str


class Difference(NamedTuple):
    """What is shown on a page, from where on, and what is printed instead."""

    start: int
    shown: str
    printed: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for found in FENCE.finditer(text):
        yield Block(found["language"], found["text"], found.start("text"), found["remark"] or "")


def left_out(remark: str) -> bool:
    """Whether the remark before a block says that it is not run, or that it needs a package that is not here."""
    if remark.startswith("needs: "):
        return importlib.util.find_spec(remark.removeprefix("needs: ")) is None
    return remark.startswith("not run: ")


def session(block: Block) -> Iterator[tuple[str, int, str]]:
    """Commands of a console block, with where what is shown after them begins, and that; continued lines are joined."""
    for found in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.text, flags=re.MULTILINE):
        yield re.sub(r"\\\n\s*", "", found[1]), block.start + found.start(2), found[2]


def agree(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, up to the digits that may differ."""
    shown, printed = SECONDS.sub("?", shown), SECONDS.sub("?", printed)
    wanted = [line.rstrip() for line in shown.strip("\n").splitlines()]
    got = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return _lines_agree(wanted, got)


def _lines_agree(wanted: list[str], got: list[str]) -> bool:
    if not wanted:
        return not got
    if wanted[0].strip() == "...":
        return any(_lines_agree(wanted[1:], got[skipped:]) for skipped in range(len(got) + 1))
    return bool(got) and _line_agrees(wanted[0], got[0]) and _lines_agree(wanted[1:], got[1:])


def _line_agrees(wanted: str, got: str) -> bool:
    # Columns are as wide as their numbers are long.
    if re.sub(r"\s+", " ", NUMBER.sub("#", wanted)) != re.sub(r"\s+", " ", NUMBER.sub("#", got)):
        return False
    pairs = zip(NUMBER.findall(wanted), NUMBER.findall(got), strict=True)
    return all(_close(float(a.replace(",", "").replace("−", "-")), float(b.replace(",", ""))) for a, b in pairs)


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * max(abs(a), abs(b), 0.1)


def run_python(code: str, namespace: dict) -> str:
    """Run a block among the variables of those before; returns what it prints and warns of."""

    def show(message: object, category: type[Warning], *_: object) -> None:
        print(f"{category.__name__}: {message}")

    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        exec(compile(code, "page", "exec"), namespace)
    return printed.getvalue()


def run_command(command: str, folder: Path) -> str:
    """Run a command line in the folder; returns what it prints, errors among it."""
    program = f'"{sys.executable}" -W ignore::RuntimeWarning:runpy -m vec2dag.cli'
    done = subprocess.run(
        f'python() {{ \'{sys.executable}\' "$@"; }}; vec2dag() {{ {program} "$@"; }}; {command}',
        shell=True,
        executable="/bin/bash",
        cwd=folder,
        # Unbuffered, as otherwise what is printed and what is warned of would not come in their order.
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    # Of the first run on a machine.
    return re.sub(r"^vec2dag: compiling[^\n]*\n", "", done.stdout, flags=re.MULTILINE)


def run_page(text: str, folder: Path) -> tuple[int, list[Difference]]:
    """Run the text of a page in a folder: the number of blocks that ran, and where they print other than is shown."""
    namespace: dict = {"__name__": "__main__"}
    found = list(blocks(text))
    results = []
    for block, after in zip(found, [*found[1:], None], strict=True):
        if left_out(block.remark):
            continue
        if block.language == "python":
            printed = run_python(block.text, namespace)
            shown = after if after is not None and after.language == "output" else None
            results.append((shown.start, shown.text, printed) if shown else (0, "", ""))
        elif block.language == "console":
            for command, start, text_after in session(block):
                if command.startswith(COMMANDS):
                    printed = run_command(command, folder)
                    results.append((start, text_after, printed if text_after else ""))
    return len(results), [Difference(*result) for result in results if not agree(*result[1:])]


def renewed(text: str, folder: Path) -> str:
    """The text of a page with what its blocks print now."""
    for start, shown, printed in reversed(run_page(text, folder)[1]):
        text = text[:start] + printed.strip("\n") + "\n" + text[start + len(shown) :]
    return text


if __name__ == "__main__":
    import tempfile

    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
            page.write_text(renewed(page.read_text(encoding="utf-8"), Path(scratch)), encoding="utf-8")
