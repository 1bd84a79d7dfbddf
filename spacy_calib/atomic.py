"""Writing a file or a folder so that a killed run leaves either the old or the new one, never half."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

from .errors import calib_error

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def check_target(target: Path, force: bool) -> None:
    """RAISES C054: the target exists and may not be replaced. C055: it is not a pipeline, which --force would lose, or lies below a file."""
    if not os.path.lexists(target):
        above = next(folder for folder in target.absolute().parents if folder.exists())
        if not above.is_dir():
            raise calib_error("C055", path=target, why=f"{above} is not a folder")
        return
    if not force:
        raise calib_error("C054", path=target)
    is_empty = target.is_dir() and not any(target.iterdir())
    if not is_empty and not (target / "meta.json").is_file():
        raise calib_error(
            "C055", path=target, why="it holds something that is not a spaCy pipeline, which --force would delete"
        )


def write_file(path: Path, content: bytes) -> None:
    """RAISES C055: the file cannot be written. An older file stays until the new one is whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise calib_error("C055", path=path, why=error.strerror or error) from None


def write_folder(target: Path, write: Callable[[Path], None], force: bool = False) -> None:
    """Let `write` fill a new folder beside the target, then put it in the target's place in one step.

    target (Path): The folder to make. write (Callable): Gets the path of an existing empty folder.
    force (bool): Replace a pipeline that is there.
    RAISES C054, C055: see `check_target`; or the disk is full, or the place not writable.
    """
    check_target(target, force)
    target = target.resolve()  # a link stays, and what it names is replaced; "." gets a name
    partial = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.partial"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        write(partial)
        _sync(partial)
        if force and target.exists():
            check_target(target, force)
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
    aside = old.with_name(f".{old.name}.{uuid.uuid4().hex[:8]}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)
