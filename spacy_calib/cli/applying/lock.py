"""One run at a time in a folder: a lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ...errors import calib_error
from ..shared.outputs import as_sentence

# Programs that read a folder of Parquet leave out names that begin so.
LOCK = "_lock"


@contextlib.contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Begin a block in which no other run writes into the folder, which is made where it is not there, and removed where it is empty in the end. The file of a
    run that was killed is taken over: the system let go of its lock.

    RAISES C055: it cannot be written. C470: another run writes into it.
    """
    path = folder / LOCK
    with as_sentence(folder):
        file = _held(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while it is held: who opened it meanwhile sees that it is gone
        file.close()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _held(path: Path) -> BinaryIO:
    """The open file, locked. RAISES C470."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the folder is removed by the run that is just ending
            file = path.open("ab")
            if not _lock(file):
                file.close()
                raise calib_error("C470", path=path.parent)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
            file.close()


def _lock(file: BinaryIO) -> bool:
    """Whether nobody else holds it. (A lock of this kind is not the worker processes', which may outlive a run that was killed.) Where the file system knows no
    locks, nobody does.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
