"""Full disks, killed processes, closed pipes, places that cannot be written: true sentences and whole files."""

import csv
import errno
import importlib.util
import io
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import vec2dag
from vec2dag import ALIAS, LocalCache, Score, _compiled
from vec2dag.cli import main
from vec2dag.files.graphs import read_graph, write_graph
from vec2dag.files.tables import cell_text, csv_cell, read_table, write_table
from vec2dag.progress import ProgressLine

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals, limits and permissions of POSIX")

SOURCE = Path(vec2dag.__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE)}
GRAPHS = ("graph.json", "adjacency.csv", "cpdag.csv", "graph.dot", "graph.graphml")


# Runs command lines in children of a process that has everything in its memory: seconds for all instead of for each.
SERVER = """
import json, os, sys, tempfile
import numpy as np
import vec2dag.scores.local
from vec2dag.cli import main
with tempfile.TemporaryDirectory() as folder:
    np.save(folder + "/table.npy", np.random.default_rng(0).standard_normal((40, 5)).cumsum(axis=1))
    for options in ([], ["--regression", "gp"]):
        main(["discover", folder + "/table.npy", "-o", folder, "--quiet", "--jobs", "1", *options])
    main(["simulate", "linear-er2-d10", "-o", folder, "--quiet"])
for line in sys.stdin:
    request = json.loads(line)
    if "wait" in request:
        flags = 0 if request["block"] else os.WNOHANG
        pid, status = os.waitpid(request["wait"], flags)
        answer = os.waitstatus_to_exitcode(status) if pid else None
    else:
        answer = os.fork()
        if answer == 0:
            for number, file in enumerate(request["streams"], start=1):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o666), number)
            exec(request["before"])
            sys.exit(main(request["arguments"]))
    print(json.dumps(answer), flush=True)
"""


class Job:
    """A command line that runs: its exit code, standard output and standard error once it has ended."""

    def __init__(self, ask, arguments, before, streams):
        self._ask, self.streams = ask, streams
        self.pid = ask({"arguments": [str(a) for a in arguments], "before": before, "streams": list(map(str, streams))})
        self.code = None

    def wait(self, block=True):
        if self.code is None:
            self.code = self._ask({"wait": self.pid, "block": block})
        return self.code

    @property
    def out(self):
        return self.streams[0].read_text()

    @property
    def err(self):
        return said(self.streams[1].read_text())


@pytest.fixture(scope="module")
def server():
    command = [sys.executable, "-c", SERVER]
    environment = ENVIRONMENT | {"PYTHONUNBUFFERED": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:

        def ask(request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.fixture
def start(server, tmp_path):
    """Start a command line in a process of its own; ``before`` is run there first."""
    jobs = []

    def start_job(*arguments, before="", stdout=None):
        streams = (stdout or tmp_path / f"stdout-{len(jobs)}", tmp_path / f"stderr-{len(jobs)}")
        jobs.append(Job(server, arguments, before, streams))
        return jobs[-1]

    yield start_job
    for job in jobs:
        if job.code is None:
            os.kill(job.pid, signal.SIGKILL)
            job.wait()


@pytest.fixture
def program(start):
    """Run a command line in a process of its own to its end."""

    def run(*arguments, **options):
        job = start(*arguments, **options)
        job.wait()
        return job

    return run


def said(text):
    """What was said, but for the announcement of the first run ever."""
    return "".join(line for line in text.splitlines(True) if "compiling the kernels" not in line)


def content(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def X(rng):
    a, b = rng.standard_normal((2, 200))
    c = a - b + 0.5 * rng.standard_normal(200)
    return np.column_stack([a, b, c, c + 0.5 * rng.standard_normal(200)])


@pytest.fixture
def table(X, tmp_path):
    write_table(tmp_path / "table.csv", X, "abcd")
    return tmp_path / "table.csv"


@pytest.fixture
def earlier(tmp_path, capsys):
    """A folder with the result of an earlier run, of other columns."""
    X = np.random.default_rng(1).standard_normal((50, 3)).cumsum(axis=1)
    write_table(tmp_path / "earlier.csv", X, "xyz")
    assert main(["discover", str(tmp_path / "earlier.csv"), "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    return tmp_path / "out"


def belong_together(folder):
    """The names of the nodes that all files of a folder agree on."""
    files = {name: text for name, text in content(folder).items() if not name.endswith(".tmp")}
    assert sorted(files) == sorted([*GRAPHS, "edges.csv", "run.json", "summary.json"])
    names = {read_graph(folder / name)[1] for name in GRAPHS}
    assert len(names) == 1
    run = json.loads(files["run.json"])
    assert run["edges"] == len(json.loads(files["graph.json"])["edges"])
    assert run["columns"] == len(next(iter(names)))
    return names.pop()


# --- full disks ---


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_full_disk_loses_neither_the_result_nor_the_one_before(table, earlier, monkeypatch, capsys, quiet):
    before, calls = content(earlier), []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    code = main(["discover", str(table), "-o", str(earlier), *quiet])
    out, err = capsys.readouterr()
    assert code == 2
    assert "a      --> c" in out
    assert out.rstrip().endswith("; not written")
    assert re.fullmatch(
        r"vec2dag: .*out/\S+ cannot be written: No space left on device; the files in .*out are untouched\n", said(err)
    )
    assert content(earlier) == before


def test_a_limit_on_the_size_of_files(program, table, earlier):
    before = content(earlier)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"
    done = program("discover", table, "-o", earlier, before=limit.format(len(before["graph.graphml"])))
    assert done.code == 2
    assert "--> c" in done.out
    assert re.fullmatch(
        r"vec2dag: .*out/\S+ cannot be written: File too large; the files in .*out are untouched\n", done.err
    )
    assert content(earlier) == before
    simulated = program("simulate", "linear-er2-d10", "-o", earlier.parent / "s", before=limit.format(2000))
    assert (simulated.code, simulated.out) == (2, "")
    assert "data.csv cannot be written: File too large" in simulated.err
    assert content(earlier.parent / "s") == {}


def test_a_disk_that_is_really_full(table, tmp_path, capsys):
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=128k", "none", disk], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("a small disk can only be mounted with the right to do so")
    try:
        assert main(["discover", str(table), "-o", str(disk / "out")]) == 0
        before = content(disk)
        (disk / "filler").write_bytes(bytes(4096 * 8))
        with open(disk / "more", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass
            filler.truncate(filler.tell() - 4096)  # room for the proof that the folder can be written
        capsys.readouterr()
        assert main(["discover", str(table), "-o", str(disk / "out"), "--seed", "1"]) == 2
        out, err = capsys.readouterr()
        assert "--> c" in out
        assert "cannot be written: No space left on device" in err
        assert {name: text for name, text in content(disk).items() if name.startswith("out")} == before
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_checkpoint_that_cannot_be_saved_is_told_once_and_the_run_goes_on(X, tmp_path, monkeypatch):
    monkeypatch.setattr("vec2dag.scores.local.SAVE_EVERY", -1.0)
    file, replace = tmp_path / "scores.npz", os.replace
    calls = []

    def full(a, b):
        calls.append(b)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(a, b)

    def fit(**options):
        return ALIAS(regression=LinearRegression(), prune=None, random_state=0, **options).fit(X)

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match="could not be written, and the run goes on") as caught:
        model = fit(checkpoint=file)
    assert len(calls) > 5
    sentences = [str(w.message) for w in caught if "the run goes on" in str(w.message)]
    assert len(sentences) == 1
    assert f"{file} cannot be written: No space left on device" in sentences[0]
    np.testing.assert_array_equal(model.adjacency_matrix_, fit().adjacency_matrix_)
    assert [name.name for name in tmp_path.iterdir()] == ["scores.npz"], "the last that could be saved"
    monkeypatch.setattr(os, "replace", replace)
    assert 0 < fit(checkpoint=file).search_.fits < fit().search_.fits


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "folder", "short"])
def test_a_damaged_checkpoint_is_named(X, tmp_path, damage):
    file = tmp_path / "scores.npz"
    score = Score(X, LinearRegression())
    with score.local.stored(file):
        score.local.batch([(0, [1]), (0, [2]), (1, [2, 3])])
    whole = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "short":
        with np.load(file) as stored:
            np.savez(file, **{key: stored[key][:1] if key == "residuals" else stored[key] for key in stored})
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes(255 - byte for byte in whole[middle:])
        file.write_bytes({"cut": whole[:middle], "empty": b"", "flipped": flipped}[damage])
    cache = LocalCache()
    with pytest.raises(ValueError, match=r"scores\.npz is not .* or is damaged"):
        cache.load(file, Score(X, LinearRegression()).regression.fingerprint())
    assert len(cache) == 0


# --- places that are not what they seem ---


def test_a_folder_that_is_deleted_during_the_run_is_made_again(table, tmp_path, monkeypatch, capsys):
    fit = ALIAS.fit

    def deleting(self, *arguments, **options):
        shutil.rmtree(tmp_path / "out")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(ALIAS, "fit", deleting)
    assert main(["discover", str(table), "-o", str(tmp_path / "out")]) == 0
    assert belong_together(tmp_path / "out") == tuple("abcd")


def test_a_folder_that_becomes_a_file_during_the_run_loses_no_result(table, tmp_path, monkeypatch, capsys):
    fit = ALIAS.fit

    def replacing(self, *arguments, **options):
        (tmp_path / "out").rmdir()
        (tmp_path / "out").touch()
        return fit(self, *arguments, **options)

    monkeypatch.setattr(ALIAS, "fit", replacing)
    assert main(["discover", str(table), "-o", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert "--> c" in out
    assert f"cannot write to the folder {tmp_path / 'out'}: File exists" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become somebody else")
def test_somebody_without_the_right_to_write_is_told_so(program, table, earlier):
    before = content(earlier)
    done = program("discover", table, "-o", earlier, before="os.setgroups([]); os.setgid(65534); os.setuid(65534)")
    assert done.code == 2
    assert done.err == f"vec2dag: cannot write to the folder {earlier}: Permission denied\n"
    assert content(earlier) == before


def test_an_output_folder_that_is_a_file_is_refused_before_the_run(table, tmp_path, capsys):
    (tmp_path / "out").write_text("something")
    assert main(["discover", str(table), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"vec2dag: cannot write to the folder {tmp_path / 'out'}: File exists\n"
    assert (tmp_path / "out").read_text() == "something"


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", ["discover", "simulate", "--help"])
def test_standard_output_that_cannot_be_written(program, table, tmp_path, command):
    options = {"discover": (table, "-o", tmp_path / "out"), "simulate": ("linear-er2-d10", "-o", tmp_path / "out")}
    done = program(command, *options.get(command, ()), stdout=FULL)
    assert done.code == 2
    where = f"; written to {tmp_path / 'out'}" if command in options else ""
    assert done.err == f"vec2dag: standard output cannot be written: No space left on device{where}\n"
    assert command not in options or content(tmp_path / "out")


def test_closed_streams_are_no_error(program, table, tmp_path):
    for closed in ("stdout", "stderr"):
        # as Python begins where they are closed
        number = 1 + (closed == "stderr")
        done = program("discover", table, "-o", tmp_path / closed, before=f"os.close({number}); sys.{closed} = None")
        assert done.code == 0
        assert done.err == ""
        assert ("--> c" in done.out) == (closed == "stderr")
        assert belong_together(tmp_path / closed) == tuple("abcd")


NO_READER = "ours, theirs = os.pipe(); os.close(ours); os.dup2(theirs, 1)"


def test_a_reader_that_leaves_early_is_no_error(program, table, tmp_path):
    done = program("discover", table, "-o", tmp_path / "out", before=NO_READER)
    assert (done.code, done.err) == (0, "")
    assert belong_together(tmp_path / "out") == tuple("abcd")


def test_a_reader_that_leaves_early_does_not_hide_that_nothing_is_written(program, table, earlier):
    (earlier / "graph.dot").unlink()
    (earlier / "graph.dot").mkdir()
    done = program("discover", table, "-o", earlier, before=NO_READER)
    assert done.code == 2
    assert re.fullmatch(r"vec2dag: .*graph.dot cannot be written: Is a directory; .* untouched\n", done.err)


# --- signals ---


# Checkpoints after every local score; and processes that do not tidy up before they end, which takes long.
AT_ONCE = "vec2dag.scores.local.SAVE_EVERY = -1.0; sys.exit = os._exit"


def whole_discover(folder):
    """Which table the files of a folder are of; a checkpoint beside them must be readable."""
    for checkpoint in folder.parent.glob("*.npz"):
        with np.load(checkpoint) as stored:
            assert len(stored["nodes"]) == len(stored["residuals"])
    if not (folder / "run.json").exists():
        return between(folder)
    return "".join(belong_together(folder))


def whole_simulate(folder):
    """Which seed the files of a folder are of."""
    names = [name for name in GRAPHS if name != "cpdag.csv"]
    if not (folder / "meta.json").exists():
        read_table(folder / "data.csv")
        return between(folder / "truth")
    files = {name for name in content(folder) if not name.endswith(".tmp")}
    assert files == {"data.csv", "meta.json", *(f"truth/{name}" for name in names)}
    meta = json.loads((folder / "meta.json").read_text())
    X, columns = read_table(folder / "data.csv")
    assert X.shape == (meta["rows"], meta["columns"])
    graphs = [read_graph(folder / "truth" / name) for name in names]
    for A, found in graphs:
        assert found == columns
        np.testing.assert_array_equal(A, graphs[0][0])
    assert graphs[0][0].sum() == meta["edges"]
    return meta["seed"]


def between(folder):
    """Killed in the moment in which files take their places: the last is missing, and all others are whole."""
    assert {len(read_graph(folder / name)[0]) for name in GRAPHS if (folder / name).exists()} <= {5, 10}
    return "between"


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", ["discover", "simulate", "checkpoint"])
def test_killed_at_any_moment(start, tmp_path, command, kills):
    rng, out = np.random.default_rng(kills), tmp_path / "out"
    commands = {}
    for names, seed in (("abcde", 1), ("vwxyz", 2)):
        write_table(tmp_path / f"{names}.csv", rng.standard_normal((40, 5)).cumsum(axis=1), names)
        if command == "simulate":
            commands[seed] = ("simulate", "linear-er2-d10", "-o", out, "--seed", seed)
        else:
            commands[names] = ("discover", tmp_path / f"{names}.csv", "-o", out, "--jobs", 1)
        if command == "checkpoint":
            commands[names] += ("--regression", "gp", "--checkpoint", tmp_path / f"{names}.npz")
    whole = whole_simulate if command == "simulate" else whole_discover

    def begin(which):
        return start(*commands[which], before=AT_ONCE)

    begun = time.monotonic()
    for which in commands:
        assert begin(which).wait() == 0
        assert whole(out) == which
    seconds, killed = (time.monotonic() - begun) / 2, 0
    for k in itertools.count():
        which = list(commands)[k % 2]
        for file in tmp_path.glob("*.npz"):
            file.unlink()
        job = begin(which)
        # half of them where files are written, at the end
        time.sleep(seconds * (rng.uniform(0, 1) if k % 2 else rng.uniform(0.7, 1)))
        os.kill(job.pid, signal.SIGKILL)
        job.wait()
        assert whole(out) in (*commands, "between")
        assert begin(which).wait() == 0, "and it can be started again"
        assert whole(out) == which
        if job.code == 0:
            seconds *= 0.8
            continue
        assert job.code == -signal.SIGKILL
        killed += 1
        if killed == kills:
            break


def test_termination_writes_the_best_graph_so_far(table, tmp_path, monkeypatch, capsys):
    def terminating(_, progress):
        if progress.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(ProgressLine, "callback", property(lambda line: partial(terminating, line)))
    arguments = ["discover", str(table), "-o", str(tmp_path / "out"), "--algorithm", "ppo", "--n-steps", "100000"]
    assert main(arguments) == 143
    assert "interrupted, not converged" in capsys.readouterr().out
    assert belong_together(tmp_path / "out") == tuple("abcd")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["stopped"] == "interrupted"


def test_termination_before_a_first_graph_writes_nothing(earlier, tmp_path, monkeypatch, capsys):
    before, handler = content(earlier), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("vec2dag.datasets.load", lambda _: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(5))
    assert main(["discover", "sachs", "-o", str(earlier)]) == 143
    out, err = capsys.readouterr()
    assert (out, err) == ("", "vec2dag: interrupted; nothing written\n")
    assert content(earlier) == before
    assert signal.getsignal(signal.SIGTERM) is handler, "the process has its own handler back"


STUBBORN = """
import signal, time, vec2dag.datasets
def stubborn(_):
    for _ in range(2):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except KeyboardInterrupt:
            pass
vec2dag.datasets.load = stubborn
"""


def test_a_second_termination_ends_at_once(program, earlier):
    before = content(earlier)
    assert program("discover", "sachs", "-o", earlier, before=STUBBORN).code == -signal.SIGTERM
    assert content(earlier) == before


def test_an_interrupt_while_files_are_written_changes_nothing(table, earlier, monkeypatch, capsys):
    before, replace = content(earlier), os.replace

    def interrupted(a, b):
        if str(b).endswith("graph.dot") and b"digraph" in Path(a).read_bytes() and b'"d"' in Path(a).read_bytes():
            os.kill(os.getpid(), signal.SIGINT)
        replace(a, b)

    monkeypatch.setattr(os, "replace", interrupted)
    # A shell has those that it starts in the background ignore it.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["discover", str(table), "-o", str(earlier)]) == 130
    finally:
        signal.signal(signal.SIGINT, handler)
    assert "interrupted; nothing written" in capsys.readouterr().err
    assert content(earlier) == before


def test_two_processes_may_share_a_checkpoint(start, tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 6)).cumsum(axis=1)
    write_table(tmp_path / "table.csv", X, "abcdef")
    checkpoint = tmp_path / "scores.npz"
    arguments = ("discover", tmp_path / "table.csv", "--regression", "gp", "--jobs", 1, "--checkpoint", checkpoint)
    jobs = [start(*arguments, "-o", tmp_path / f"out{k}", before=AT_ONCE) for k in range(2)]
    loads = 0
    while any(job.wait(block=False) is None for job in jobs):
        if checkpoint.exists():
            with np.load(checkpoint) as stored:
                assert len(stored["nodes"]) == len(stored["residuals"])
            loads += 1
    assert loads > 10
    assert [(job.code, "could not be written" in job.err) for job in jobs] == [(0, False)] * 2
    graphs = [json.loads((tmp_path / f"out{k}" / "graph.json").read_text()) for k in range(2)]
    assert graphs[0] == graphs[1]


# --- the cache of compiled kernels ---

KERNEL = """
from vec2dag._compiled import compiled

@compiled(nogil=True)
def kernel(x):
    return x + {number}
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Load a kernel as a new process would, from a folder in which nothing can be written."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", os.devnull)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__pycache__").touch()

    def load(number=1):
        monkeypatch.setattr(_compiled, "_said", set())
        file = tmp_path / "package" / "kernels.py"
        file.write_text(KERNEL.replace("{number}", str(number)))
        spec = importlib.util.spec_from_file_location("kernels", file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        spec.loader.exec_module(module)
        return module.kernel

    return load


def cache_of(tmp_path):
    return tmp_path / "temporary" / f"vec2dag-cache-{os.geteuid()}"


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_where_nothing_can_be_written_kernels_are_kept_in_a_folder_of_ones_own(kernel, tmp_path, capsys):
    first = kernel()
    assert (first(1), hits(first)) == (2, 0)
    assert first(1.0) == 2.0
    err = capsys.readouterr().err
    assert err.count("\n") == 1, "said once"
    assert f"vec2dag: warning: compiled kernels are kept in {cache_of(tmp_path)}" in err
    assert stat.S_IMODE(cache_of(tmp_path).stat().st_mode) == 0o700
    second = kernel()
    assert (second(1), hits(second)) == (2, 1)
    assert capsys.readouterr().err == "", "nothing was compiled"


def planted_open(folder):
    folder.mkdir()
    folder.chmod(0o777)


def planted_link(folder):
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def planted_file(folder):
    folder.touch()


def exchangeable(folder):
    folder.mkdir(mode=0o700)
    folder.parent.chmod(0o777)


@pytest.mark.parametrize("plant", [planted_open, planted_link, planted_file, exchangeable, None])
def test_a_folder_that_somebody_else_may_have_made_is_not_used(kernel, tmp_path, capsys, monkeypatch, plant):
    if plant is exchangeable:
        lstat, found = os.stat, os.stat(tmp_path / "temporary")
        parent = os.stat_result((found.st_mode | 0o777, *found[1:4], os.geteuid() + 1, *found[5:10]))
        monkeypatch.setattr(os, "stat", lambda path, **options: (
            parent if str(path) == tempfile.tempdir else lstat(path, **options)
        ))  # fmt: skip
    if plant is not None:
        plant(cache_of(tmp_path))
    else:
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    before = content(tmp_path / "temporary")
    function = kernel()
    assert [function(1), function(1.5)] == [2, 2.5]
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "compiled kernels cannot be kept" in err
    assert content(tmp_path / "temporary") == before


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "zeros", "flipped", "garbage", "folder"])
def test_a_damaged_cache_is_compiled_again(kernel, tmp_path, suffix, damage):
    assert kernel()(1) == 2
    (file,) = cache_of(tmp_path).rglob(f"*{suffix}")
    whole = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    else:
        part = len(whole) * 3 // 4
        file.write_bytes(
            {
                "empty": b"",
                "cut": whole[:part],
                "zeros": whole[:part] + bytes(len(whole) - part),
                "flipped": whole[:part] + bytes([whole[part] ^ 1]) + whole[part + 1 :],
                "garbage": b"garbage" * 100,
            }[damage]
        )
    again = kernel()
    assert (again(1), hits(again)) == (2, 0)
    if damage != "folder":
        renewed = kernel()
        assert (renewed(1), hits(renewed)) == (2, 1)


def test_the_code_of_an_older_source_is_never_run(kernel, tmp_path):
    assert kernel(1)(1) == 2
    (code,) = cache_of(tmp_path).rglob("*.nbc")
    older = code.read_bytes()
    assert kernel(2)(1) == 3
    code.write_bytes(older)  # as if the machine had stopped between the new index and the new code
    assert kernel(2)(1) == 3


def test_a_full_cache_is_no_error(kernel, tmp_path, capsys, monkeypatch):
    replace = os.replace

    def full(a, b):
        if str(b).endswith(".nbc"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(a, b)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        function = kernel()
        assert [function(1), function(1.5)] == [2, 2.5]
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "cannot be kept" in err
    assert "No space left on device" in err
    assert kernel()(1) == 2
    later = kernel()
    assert (later(1), hits(later)) == (2, 1)


def test_the_package_can_be_imported_where_nothing_can_be_written(tmp_path):
    shutil.copytree(SOURCE / "vec2dag", tmp_path / "vec2dag", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "vec2dag" / "__pycache__").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    environment |= {"HOME": os.devnull, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    code = "import vec2dag; vec2dag.ALIAS; print(vec2dag.__file__, vec2dag.vec2dag([1, 2, -1]).tolist())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/vec2dag/__init__.py [[0, 0], [0, 0]]\n"
    assert "Traceback" not in done.stderr
    assert "compiled kernels are kept in" in done.stderr or done.stderr == ""


# --- spreadsheets ---

DANGEROUS = "=+-@\t\r\n"


def test_no_cell_of_a_matrix_is_a_formula(tmp_path):
    names = ["=1+1", "+x", "-log10(p)", "@SUM(A1)", "'=quoted", "''-twice", "'plain", "a=1", "b"]
    A = np.triu(np.ones((9, 9)), 1)
    write_graph(tmp_path, A, names, free=np.ones((9, 9)) - np.eye(9))
    for file in ("adjacency.csv", "cpdag.csv"):
        with open(tmp_path / file, newline="") as lines:
            cells = [cell for row in csv.reader(lines) for cell in row]
        assert not any(cell.startswith(tuple(DANGEROUS)) for cell in cells)
        assert read_graph(tmp_path / file)[1] == tuple(names)
    np.testing.assert_array_equal(read_graph(tmp_path / "adjacency.csv")[0], A)
    assert list(nx.read_graphml(tmp_path / "graph.graphml")) == names, "elsewhere names stand as they are"


@given(st.text(st.sampled_from([*DANGEROUS, "'", '"', ",", ";", "a", " "]), max_size=6))
@example("'=")
@settings(deadline=None)
def test_every_cell_comes_back_and_none_is_a_formula(text):
    # with another cell beside it: a line of nothing but an empty cell is a blank line
    ((cell, _),) = csv.reader(io.StringIO(csv_cell(text) + ",x\n", newline=""))
    assert cell_text(cell) == text
    assert not cell.startswith(tuple(DANGEROUS))


def test_edge_lists_come_back_too(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("source,target\n" + ",".join(map(csv_cell, ["=a", "'-b"])) + "\n")
    assert read_graph(file)[1] == ("=a", "'-b")


def test_numbers_and_names_of_tables_stay_as_they_are(tmp_path):
    write_table(tmp_path / "t.csv", np.array([[-1.5, 2.0]]), ["-x", "b"])
    assert (tmp_path / "t.csv").read_text() == "-x,b\n-1.5,2.0\n"
    assert read_table(tmp_path / "t.csv")[1] == ("-x", "b")
