"""Files that are written whole or not at all, and together, in folders proved writable before any work is done."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PathLike = str | os.PathLike[str]

_TEMPORARY = re.compile(r"\.vec2dag-[0-9a-f]{16}\.tmp")
# Seconds after which whoever made a temporary file must be dead: it lives for a moment. Process numbers would not
# tell, as folders are shared between machines.
_FORGOTTEN = 3600.0


class InputError(ValueError):
    """A file or folder that cannot be used; the message is one sentence for the person who named it."""


class WriteError(InputError, OSError):
    """A file that cannot be written; the message names it, says why, and what became of the files before it."""


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
        _temporary(folder, b"writable").unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write to the folder {folder}: {_reason(error)}") from error
    return folder


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, finds the old content or the new, never a part.

    A file that was there keeps its permissions, and a link of one's own still leads to it; anybody else's link is
    replaced, not followed.

    Raises
    ------
    WriteError
        It cannot be written; what was there is untouched.
    """
    _exchange({file: content})


def write_together(directory: PathLike, content: Mapping[str, bytes], stale: Collection[str] = ()) -> list[Path]:
    """Write the files of one result so that all of them change or none does.

    All are on the disk before the first takes its place, and if one cannot, the others are put back. Should the machine
    stop between two of them, the last is missing: it is taken away first and comes last.

    Parameters
    ----------
    directory : str or path-like
        The folder, created if needed.
    content : mapping of str to bytes
        By name, or by path below the folder.
    stale : collection of str
        Files of an earlier result that would contradict this one: removed with the same care.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        The folder cannot be written.
    WriteError
        One of the files cannot be; all are as they were.
    """
    folder = Path(directory)
    files = {folder / name: text for name, text in content.items()}
    for parent in dict.fromkeys((folder, *(file.parent for file in files))):
        check_writable(parent)
    _exchange(files, [folder / name for name in stale])
    return list(files)


def as_json(content: Any) -> bytes:
    """JSON for people to read; what it does not know is written as text, and what is no number as null."""
    return (json.dumps(_with_nulls(content), indent=2, default=str, allow_nan=False) + "\n").encode()


def _with_nulls(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _with_nulls(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_with_nulls(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _exchange(content: Mapping[Path, bytes], stale: Collection[Path] = ()) -> None:
    """Put all files in their places, and remove those that are stale, or leave everything as it was."""
    for folder in {file.parent for file in content}:
        _sweep(folder)
    file = next(iter(content))
    new: list[tuple[Path, Path]] = []
    kept: dict[Path, Path | None] = {}
    try:
        for file, text in content.items():
            target = _target(file)
            new.append((target, _temporary(target.parent, text, _permissions(target))))
        if len(new) > 1 or stale:
            for file in (*(target for target, _ in new), *stale):
                kept[file] = _second_name(file)
            for file in (new[-1][0], *stale):
                file.unlink(missing_ok=True)
        for file, temporary in new:
            os.replace(temporary, file)
    except BaseException as error:
        lost = _put_back(kept)
        if not isinstance(error, OSError):
            raise
        fate = (
            "; ".join(f"what was in {place} could not be put back and is in {spare}" for place, spare in lost.items())
            or f"the files in {file.parent} are untouched"
        )
        raise WriteError(f"{file} cannot be written: {_reason(error)}; {fate}") from error
    finally:
        for spare in (*(temporary for _, temporary in new), *kept.values()):
            if spare is not None:
                with suppress(OSError):
                    spare.unlink(missing_ok=True)
    for folder in {target.parent for target, _ in new}:
        _sync_folder(folder)


def _put_back(kept: dict[Path, Path | None]) -> dict[Path, Path]:
    """Undo: returns, and leaves in place, the second names of files for which even that fails."""
    lost = {}
    for file, spare in list(kept.items()):
        try:
            if spare is None:
                file.unlink(missing_ok=True)
            else:
                os.replace(spare, file)
        except OSError:
            if spare is not None:
                lost[file] = spare
                kept[file] = None
    return lost


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _target(file: Path) -> Path:
    """Where content for ``file`` belongs: at the end of a link of one's own, and only where a file is or can be."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.lstat(file).st_mode):
            if not _is_ours(os.lstat(file)):
                return file
            file = Path(os.path.realpath(file))
            if file.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        mode = os.lstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "there is something that is no file")
    return file


def _permissions(file: Path) -> int | None:
    """Of the file that is there; None where there is none, or a link."""
    try:
        mode = os.lstat(file).st_mode
    except FileNotFoundError:
        return None
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else None


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _unused(folder: Path) -> Path:
    """A name that nobody can guess and so nobody can have taken."""
    return folder / f".vec2dag-{secrets.token_hex(8)}.tmp"


def _temporary(folder: Path, content: bytes, permissions: int | None = None) -> Path:
    """A new file, on the disk; with the permissions that new files have here, unlike those of ``tempfile``."""
    file = _unused(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(file, flags, 0o666)
    try:
        with open(descriptor, "wb") as stream:
            if permissions is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, permissions)
            stream.write(content)
            stream.flush()
            _sync(descriptor)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file


def _second_name(file: Path) -> Path | None:
    """The same file under a name of its own, to be put back from; None if there is no file."""
    if not os.path.lexists(file):
        return None
    spare = _unused(file.parent)
    try:
        os.link(file, spare, follow_symlinks=False)
    except (OSError, NotImplementedError):
        # not every file system has second names
        shutil.copy2(file, spare, follow_symlinks=False)
    return spare


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some file systems have nothing to synchronise
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _sync_folder(folder: Path) -> None:
    """Make the new names last; where folders cannot be opened, as on Windows, the system does so in its own time."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Remove what killed runs have left: our own temporary files that nobody can be writing any more."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not _TEMPORARY.fullmatch(entry.name):
                continue
            found = entry.stat(follow_symlinks=False)
            # a second name has the time of the file's content: the time of its last change of name is that of st_ctime
            old = time.time() - found.st_ctime > _FORGOTTEN
            if stat.S_ISREG(found.st_mode) and _is_ours(found) and old:
                os.unlink(entry.path)
