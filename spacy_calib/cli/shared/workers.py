"""Worker processes of a pipeline: one that was killed is told of. (spaCy waits for what it will never send.)"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from ...errors import calib_error

# Seconds that workers have to end.
PATIENCE = 5.0
_KNOWN = hasattr(signal, "SIGCHLD") and hasattr(os, "waitid")


@contextlib.contextmanager
def watched(n_process: int) -> Iterator[None]:
    """Begin a block in which a pipeline runs with so many worker processes. Where the system has no signal for it, or somebody else handles it, nobody looks.

    RAISES C471: one was killed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if n_process == 1 or not _KNOWN or not is_main or signal.getsignal(signal.SIGCHLD) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGCHLD, _look)
    try:
        yield
    finally:
        _look_no_more()


def _look(number: int, frame: FrameType | None) -> None:
    """RAISES C471: the child that has just ended was killed."""
    if multiprocessing.parent_process() is not None:
        return
    with contextlib.suppress(ChildProcessError):
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_code != os.CLD_EXITED:
            end_workers()
            raise calib_error("C471", signal=signal.Signals(ended.si_status).name)


def _look_no_more() -> None:
    if _KNOWN and signal.getsignal(signal.SIGCHLD) is _look:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def end_workers() -> None:
    """End those that run, before an exception leaves the pipeline: it would wait for them, and they for somebody who reads what they send.

    One that has only just been forked may lose the signal, since Python forgets those that came before it was ready: it is killed after a while.
    """
    _look_no_more()
    workers, until = multiprocessing.active_children(), time.monotonic() + PATIENCE
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        if worker.exitcode is None:
            worker.kill()
