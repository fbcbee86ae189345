"""Files that are written whole or not at all, one alone and several together, whatever fails on the way."""

import contextlib
import errno
import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import vec2dag
from vec2dag.files import atomic
from vec2dag.files.atomic import InputError, WriteError, check_writable, write_atomically, write_together
from vec2dag.files.graphs import read_graph, write_graph

OLD = {"a.json": b"old a", "below/b.csv": b"old b", "stale.csv": b"old stale", "last.json": b"old last"}
NEW = {"a.json": b"new a", "fresh.txt": b"new fresh", "below/b.csv": b"new b", "last.json": b"new last"}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(vec2dag.__file__).parents[1])}


def content(folder):
    """All files below a folder, temporary ones too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def restore(folder):
    """The files of an earlier result, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in OLD.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)


@pytest.fixture
def folder(tmp_path):
    restore(tmp_path / "out")
    return tmp_path / "out"


# --- one file ---


def test_a_file_is_replaced_and_not_written_over(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"old content")
    with open(file, "rb") as reader:
        write_atomically(file, b"new")
        assert reader.read() == b"old content", "whoever reads the old file reads it to its end"
    assert content(tmp_path) == {"file": b"new"}


def test_writers_and_readers_at_once_see_whole_files(tmp_path):
    file, texts = tmp_path / "file", [bytes([letter]) * 200_000 for letter in b"abc"]
    write_atomically(file, texts[0])
    errors = []

    def write(text):
        try:
            for _ in range(15):
                write_atomically(file, text)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    seen = 0
    while any(thread.is_alive() for thread in threads) or not seen:
        assert file.read_bytes() in texts
        seen += 1
    for thread in threads:
        thread.join()
    assert not errors
    assert [name.name for name in tmp_path.iterdir()] == ["file"]


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    (tmp_path / ".vec2dag-0000000000000000.tmp").symlink_to(victim)
    with pytest.raises(WriteError, match="file cannot be written: File exists"):
        write_atomically(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "file").exists()


def test_temporary_names_cannot_be_guessed(tmp_path, monkeypatch):
    names = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: names.append(Path(a).name) or replace(a, b))
    for _ in range(20):
        write_atomically(tmp_path / "file", b"")
    assert len(set(names)) == 20
    assert not any(str(os.getpid()) == part for name in names for part in name.replace(".", "-").split("-"))


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_permissions_are_the_usual_ones_and_are_kept(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", b"")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
        for mode in (0o600, 0o664, 0o444):
            (tmp_path / "old").touch()
            (tmp_path / "old").chmod(mode)
            write_atomically(tmp_path / "old", b"new")
            assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == mode
    finally:
        os.umask(before)


def test_a_link_of_ones_own_still_leads_to_the_file(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in (b"into the void", b"over it"):
        write_atomically(link, text)
        assert link.is_symlink()
        assert target.read_bytes() == text
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners")
def test_the_link_of_somebody_else_is_replaced(tmp_path, monkeypatch):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    write_atomically(link, b"new")
    assert not link.is_symlink()
    assert (link.read_bytes(), victim.read_bytes()) == (b"new", b"precious")


def test_what_is_no_file_is_left_alone(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("folder", "Is a directory"), ("loop", "Too many levels"), ("pipe", "is no file")):
        with pytest.raises(WriteError, match=f"{name} cannot be written: .*{reason}"):
            write_atomically(tmp_path / name, b"")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "loop", "pipe"]


def test_leftovers_of_killed_runs_are_removed(tmp_path, monkeypatch):
    ours = ".vec2dag-0123456789abcdef.tmp"
    kept = (".vec2dag-0123.tmp", f"{ours}.txt", "vec2dag-0123456789abcdef.tmp", ".other-0123456789abcdef.tmp")
    for name in (ours, *kept):
        (tmp_path / name).touch()
    (tmp_path / "victim").touch()
    (tmp_path / ".vec2dag-00000000000000aa.tmp").symlink_to(tmp_path / "victim")
    (tmp_path / ".vec2dag-00000000000000bb.tmp").mkdir()
    before = {file.name for file in tmp_path.iterdir()} | {"file"}
    write_atomically(tmp_path / "file", b"")
    assert {file.name for file in tmp_path.iterdir()} == before, "it may be in use"
    now = atomic.time.time()
    monkeypatch.setattr(atomic.time, "time", lambda: now + 3601)
    write_atomically(tmp_path / "file", b"")
    assert {file.name for file in tmp_path.iterdir()} == before - {ours}


def test_the_proof_that_a_folder_can_be_written_leaves_nothing(folder):
    before = content(folder)
    check_writable(folder)
    assert content(folder) == before


# --- several together ---


def test_files_change_together(folder):
    files = write_together(folder, NEW, ["stale.csv"])
    assert files == [folder / name for name in NEW]
    assert content(folder) == NEW


FAULTS = {"open": os.open, "fsync": os.fsync, "replace": os.replace, "link": os.link, "unlink": os.unlink}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_whatever_fails_at_any_time_changes_nothing(folder, monkeypatch, name, error):
    interrupted, failures = isinstance(error, KeyboardInterrupt), 0
    for at in itertools.count():
        restore(folder)
        calls = itertools.count()

        def fault(*arguments, at=at, calls=calls, **options):
            if next(calls) == at:
                raise error
            return FAULTS[name](*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, fault)
            with contextlib.suppress(KeyboardInterrupt if interrupted else InputError):
                write_together(folder, NEW, ["stale.csv"])
                break
        failures += 1
        # a temporary file that could not be removed is left for later
        left = {file: text for file, text in content(folder).items() if name != "unlink" or ".tmp" not in file}
        # an interrupt may come when all is done
        assert left == OLD or (interrupted and left == NEW)
    assert content(folder) == NEW
    assert failures >= {"unlink": 4, "link": 4 if interrupted else 0}.get(name, len(NEW))


def test_the_error_names_the_file_and_what_became_of_the_others(folder, monkeypatch):
    replace = os.replace

    def fault(a, b):
        if Path(b).name == "b.csv" and b"new" in Path(a).read_bytes():
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        replace(a, b)

    monkeypatch.setattr(os, "replace", fault)
    with pytest.raises(WriteError) as caught:
        write_together(folder, NEW)
    place = folder / "below"
    assert str(caught.value) == (
        f"{place / 'b.csv'} cannot be written: Operation not permitted; the files in {place} are untouched"
    )
    assert isinstance(caught.value, OSError)
    assert content(folder) == OLD


def test_without_second_names_copies_are_put_back(folder, monkeypatch):
    def no_links(*_, **__):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    calls, replace = itertools.count(), os.replace

    def fault(a, b):
        if next(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(a, b)

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "replace", fault)
    with pytest.raises(WriteError, match=r"Input/output error; the files in .* are untouched"):
        write_together(folder, NEW, ["stale.csv"])
    assert content(folder) == OLD


def test_what_cannot_be_put_back_is_kept_and_named(folder, monkeypatch):
    calls, replace = itertools.count(), os.replace

    def fault(a, b):
        if next(calls) >= 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(a, b)

    monkeypatch.setattr(os, "replace", fault)
    with pytest.raises(WriteError) as caught:
        write_together(folder, NEW)
    sentence = str(caught.value)
    assert f"what was in {folder / 'a.json'} could not be put back and is in " in sentence
    kept = {text for name, text in content(folder).items() if ".tmp" in name}
    assert {b"old a", b"old last"} <= kept


KILLED = """\
import os, sys
from vec2dag.files.atomic import write_together
left = [int(sys.argv[2])]
def deadly(function):
    def call(*arguments, **options):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return function(*arguments, **options)
    return call
for name in ("open", "fsync", "link", "unlink", "replace"):
    setattr(os, name, deadly(getattr(os, name)))
write_together(sys.argv[1], {new!r}, ["stale.csv"])
"""


def test_a_process_killed_between_any_two_steps_leaves_whole_files(folder):
    program = KILLED.replace("{new!r}", repr(NEW))
    states = set()
    for step in itertools.count(12):  # the proof that the folders can be written changes nothing
        restore(folder)
        command = [sys.executable, "-S", "-c", program, str(folder), str(step)]
        code = subprocess.run(command, env=ENVIRONMENT, check=False).returncode
        found = {name: text for name, text in content(folder).items() if ".tmp" not in name}
        assert all(text in (OLD.get(name), NEW.get(name)) for name, text in found.items())
        if found == OLD:
            states.add("old")
        elif found == NEW:
            states.add("new")
        else:
            assert "last.json" not in found, "its absence says that the set is not complete"
            states.add("between")
        if code == 0:
            break
        assert code == 9
    assert states == {"old", "between", "new"}


# --- graphs ---


def test_the_class_of_an_earlier_graph_does_not_stay_beside_another(tmp_path):
    A, free = np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]])
    write_graph(tmp_path, A, ["=a", "b"], free=free)
    assert read_graph(tmp_path / "cpdag.csv")[0].tolist() == [[0, 1], [1, 0]]
    write_graph(tmp_path, A, ["=a", "b"])
    assert not (tmp_path / "cpdag.csv").exists()
    assert len(content(tmp_path)) == 4


@pytest.mark.parametrize("beside", [None, b"{}", b"\xff", b'{"nodes": ["a", "b"], "edges": []}'])
def test_a_class_of_somebody_else_is_not_removed(tmp_path, beside):
    text = b",a,b\na,0,1\nb,1,0\n"
    (tmp_path / "cpdag.csv").write_bytes(text)
    if beside is not None:
        (tmp_path / "graph.json").write_bytes(beside)
    write_graph(tmp_path, np.array([[0, 1], [0, 0]]), "ab")
    assert (tmp_path / "cpdag.csv").read_bytes() == text


def test_a_graph_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    write_graph(tmp_path, np.zeros((2, 2)), "ab")
    before = content(tmp_path)
    (tmp_path / "graph.graphml").unlink()
    (tmp_path / "graph.graphml").mkdir()
    with pytest.raises(InputError, match=r"graph\.graphml cannot be written: Is a directory"):
        write_graph(tmp_path, np.array([[0, 1], [0, 0]]), "ab")
    assert content(tmp_path) == {name: text for name, text in before.items() if name != "graph.graphml"}
    assert json.loads(before["graph.json"])["edges"] == []
