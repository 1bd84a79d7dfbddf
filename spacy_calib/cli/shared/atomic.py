"""Writing a file or a folder so that a killed run leaves either the old or the new one, never half."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from ...errors import calib_error
from .outputs import check_folder, is_stream, standard_stream

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_LONGEST_NAME = 255  # in bytes, on every usual file system


def write_file(path: Path, content: bytes) -> None:
    """Write a file; see `write_chunks`."""
    write_chunks(path, (content,))


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file piece by piece, as they come. An older one stays until the new one is whole; a link stays, and what it names is
    replaced; into a device, a FIFO or the standard output the content is written as it is.

    RAISES C055: the file cannot be written.
    """
    try:
        if is_stream(path):
            _write_through(path, chunks)
        else:
            _replace_file(Path(os.path.realpath(path)), chunks)
    except OSError as error:
        raise calib_error("C055", path=path, why=error.strerror or error) from None


def _replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    partial = _partial_of(path)
    try:
        with partial.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the rename is
        if path.exists():
            shutil.copymode(path, partial)
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _write_through(path: Path, chunks: Iterable[bytes]) -> None:
    """Write into an open stream. Where the path is the file that the standard output goes to, its content stands between what is printed before
    and after.
    """
    number = standard_stream(path.stat())
    if number is not None:
        (sys.stdout if number == 1 else sys.stderr).flush()
    with open(path if number is None else os.dup(number), "wb") as stream:
        stream.writelines(chunks)


def write_folder(target: Path, write: Callable[[Path], None], force: bool = False) -> None:
    """Let `write` fill a new folder beside the target, then put it in the target's place in one step.

    target (Path): The folder to make. write (Callable): Gets the path of an existing empty folder.
    force (bool): Replace a pipeline that is there.
    RAISES C054, C055, C100: see `outputs.check_folder`; or the disk is full, or the place not writable.
    """
    check_folder(target, force)
    target = target.resolve()  # a link stays, and what it names is replaced; "." gets a name
    partial = _partial_of(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        partial.mkdir()
        write(partial)
        _sync(partial)
        if force and target.exists():
            check_folder(target, force)
            _exchange(partial, target)
        else:
            partial.rename(target)  # fails on a folder that somebody filled meanwhile
    except OSError as error:
        raise calib_error("C055", path=target, why=error.strerror or error) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Bring the files to the disk before the rename does."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as handle:
                os.fsync(handle.fileno())


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders: in one step where the system can (Linux), else by two renames."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None, use_errno=True)
            paths = (_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old))
            if libc.renameat2(*paths, _RENAME_EXCHANGE) == 0:
                return
    aside = beside(old, f".{uuid.uuid4().hex[:8]}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


# What is written until it is whole


def remove_leftovers(target: Path) -> None:
    """Remove the partial files and folders that killed runs left beside this target: those whose process ran on this machine and is gone."""
    hidden = _hidden_name(target, room=len(_ending()))
    mark = re.compile(re.escape(hidden) + rf"\.(\d+)-{_host()}[0-9a-f]{{6}}\.partial")
    for found in target.parent.iterdir():
        match = mark.fullmatch(found.name)
        if match and not _is_alive(int(match[1])):
            if found.is_dir() and not found.is_symlink():
                shutil.rmtree(found, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    found.unlink()


def _partial_of(target: Path) -> Path:
    return beside(target, _ending())


def _ending() -> str:
    """The ending of a partial name: process and machine, as other machines that share the folder have processes of the same number."""
    return f".{os.getpid():010}-{_host()}{uuid.uuid4().hex[:6]}.partial"


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def beside(target: Path, ending: str) -> Path:
    """A hidden name beside the target, which is cut where the whole would be too long."""
    return target.with_name(_hidden_name(target, room=len(ending)) + ending)


def _hidden_name(target: Path, room: int) -> str:
    """room (int): Bytes that are to follow."""
    name = f".{target.name}"
    while len(os.fsencode(name)) + room > _LONGEST_NAME:
        name = name[:-1]
    return name


def _is_alive(process: int) -> bool:
    """Whether a process of this number runs. True where the system has no harmless way to ask."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
