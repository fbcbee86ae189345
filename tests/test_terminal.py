"""What a person sees on a terminal: the table, warnings after it, what a fit does, colours where they are wanted."""

import json
import os
import re
import sys

import numpy as np
import pytest

from vec2dag.cli import main
from vec2dag.progress import ProgressLine
from vec2dag.search import Progress

pty = pytest.importorskip("pty", reason="needs a terminal")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def table(tmp_path, rng):
    """a -> b, a column with two values, and names that would steer a terminal."""
    a = rng.standard_normal(300)
    X = np.column_stack([a, a + rng.standard_normal(300), rng.integers(0, 2, 300)])
    np.savetxt(tmp_path / "table.csv", X, delimiter=",", header="a\u202e,b,c", comments="", encoding="utf-8")
    return str(tmp_path / "table.csv")


def on_terminal(*arguments, **environment):
    """All that a command prints on a terminal of 40 lines of 120 characters."""
    import fcntl
    import struct
    import termios

    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.environ.pop("NO_COLOR", None)
        os.environ.update({"TERM": "xterm"} | environment)
        os.execv(sys.executable, [sys.executable, "-m", "vec2dag.cli", *map(str, arguments)])
    said = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return said.decode()


def test_a_terminal_has_colours_and_warnings_come_last(table, tmp_path):
    said = on_terminal("discover", table, "-o", tmp_path / "out")
    assert "\x1b[1mcause" in said
    assert "\x1b[33mwarning:\x1b[0m Columns with very few distinct values: 'c' (2)" in said
    assert said.index("written to") < said.index("warning:")
    assert "\u202e" not in said, "a name does not turn the line around"
    assert r"a\u202e" in said


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_declined(table, tmp_path, environment):
    assert not ESCAPE.search(on_terminal("discover", table, "-o", tmp_path / "out", **environment))


def test_no_colours_in_a_pipe(table, tmp_path, capfd):
    assert main(["discover", table, "-o", str(tmp_path / "out")]) == 0
    out, err = capfd.readouterr()
    assert not ESCAPE.search(out + err)
    assert err.startswith("vec2dag: warning: ")


def test_what_a_fit_is_doing_is_shown_on_a_terminal(table, tmp_path):
    options = ("--algorithm", "ppo", "--n-steps", 50, "--prune", "cam", "--no-refine")
    said = on_terminal("discover", table, "-o", tmp_path / "out", *options)
    assert re.search(r"searching: step \d+ of 50, score -?\d+\.\d+, \d+ edges, \d+ s, \d+ s left at most", said)
    assert re.search(r"pruning \d+ edges", said)
    assert "searching" not in on_terminal("discover", table, "-o", tmp_path / "out", *options, "-q")


@pytest.mark.parametrize(
    ("step", "n_steps", "budget", "left"),
    [(5, 20, None, ", 30 s left at most"), (5, 20, 15.0, ", 5 s left at most"), (5, None, None, ""), (0, 20, None, "")],
)
def test_the_time_left(step, n_steps, budget, left):
    progress = Progress(step, n_steps, -1.0, -1.0, 10.0, np.zeros((2, 2), np.uint8))
    with ProgressLine(False, budget) as line:
        assert line._left(progress) == left


def test_json(table, tmp_path, capsys):
    assert main(["discover", table, "-o", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [set(edge) >= {"source", "target", "coefficient", "error", "standardised"} for edge in found["edges"]] == [
        True
    ]
    assert found["run"] == json.loads((tmp_path / "out" / "run.json").read_text())
    assert main(["bootstrap", table, "-o", str(tmp_path / "out"), "--json", "--samples", "4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"][0]["adjacent"] == 1
    assert found["run"]["samples"] == 4


def test_what_is_no_number_is_null_in_json(tmp_path, capsys):
    """With three rows and two columns there is one degree of freedom; with two there is none, and no error."""
    np.savetxt(tmp_path / "t.csv", [[0.0, 1.0], [1.0, 3.1]], delimiter=",", header="a,b", comments="")
    assert (
        main(["discover", str(tmp_path / "t.csv"), "-o", str(tmp_path / "out"), "--require", "a -> b", "--json"]) == 0
    )
    (edge,) = json.loads(capsys.readouterr().out)["edges"]
    assert edge["error"] is None


def test_warnings_are_said_even_if_the_fit_fails(table, tmp_path, capsys):
    text = "a;b\n1,5;2,5\n2,5;2,5\n3,5;2,5\n"
    (tmp_path / "t.csv").write_text(text)
    assert main(["discover", str(tmp_path / "t.csv"), "-o", str(tmp_path / "out")]) == 2
    warning, error = capsys.readouterr().err.splitlines()
    assert "warning" in warning
    assert "constant" in error
