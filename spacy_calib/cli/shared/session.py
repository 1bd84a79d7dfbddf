"""The process of a command: a clean end, also of its workers, and a standard output that may be closed or full."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO

from ...errors import calib_error
from ...errors.visible import visible
from .screen import Screen, user_errors

# Seconds that workers have to end.
PATIENCE = 5.0
# The code of a warning of ours, and what writes it as commands write theirs.
_OURS, _SENTENCES = re.compile(r"\[CW\d+\] "), Screen(no_print=True)
_KNOWN = hasattr(signal, "SIGCHLD") and hasattr(os, "waitid")


@contextlib.contextmanager
def watched(n_process: int) -> Iterator[None]:
    """Watch worker processes in a block, where the system has a free signal for it. RAISES C471: one was killed."""
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
        status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if status is not None and status.si_code != os.CLD_EXITED:
            end_workers()
            raise calib_error("C471", signal=signal.Signals(status.si_status).name)


def _look_no_more() -> None:
    if _KNOWN and signal.getsignal(signal.SIGCHLD) is _look:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def end_workers() -> None:
    """End the workers, before an exception waits for them; one that loses the signal, just forked, is killed after a while."""
    _look_no_more()
    workers, until = multiprocessing.active_children(), time.monotonic() + PATIENCE
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        if worker.exitcode is None:
            worker.kill()


# As shells tell of a process that a signal ended.
_ENDED_BY = 128
_SIGPIPE = 13


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Run a command. Output that cannot be written ends it with a sentence and exit code 1; a closed pipe ends it quietly."""
    with _signals_end(), _readable_warnings(), user_errors():
        output = GuardedOutput(sys.stdout)
        with contextlib.redirect_stdout(output):
            try:
                yield
            finally:
                if not output.failed:
                    output.flush()


class GuardedOutput:
    """The standard output, whose system errors become errors of this package. stream (TextIO | None): None if it was closed."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream
        self._fault: BaseException | None = calib_error("C103", why="it is closed") if stream is None else None

    def write(self, text: str) -> int:
        """RAISES C103: it is closed or full. SystemExit: nobody reads on."""
        with self._sentence():
            assert self._stream is not None
            return self._stream.write(_encodable(text, self._stream.encoding))

    def flush(self) -> None:
        """RAISES C103, SystemExit: as `write`."""
        with self._sentence():
            assert self._stream is not None
            self._stream.flush()

    @property
    def failed(self) -> bool:
        """Whether writing has failed."""
        return self._fault is not None

    @contextlib.contextmanager
    def _sentence(self) -> Iterator[None]:
        """Turn a system error into one of ours, and raise it at each later write: typer swallows the first."""
        if self._fault is not None:
            raise self._fault
        try:
            yield
        except BrokenPipeError:
            self._fault = SystemExit(_ENDED_BY + _SIGPIPE)
        except OSError as error:
            self._fault = calib_error("C103", why=error.strerror or error)
        if self._fault is not None:
            if self._stream is sys.__stdout__ and self._stream is not None:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            raise self._fault

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return "utf-8" if self._stream is None and name == "encoding" else getattr(self._stream, name)  # closed: >&-


def _encodable(text: str, encoding: str | None) -> str:
    """Escape characters that the encoding lacks, at which Python would fail."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextlib.contextmanager
def _signals_end() -> Iterator[None]:
    """Let SIGTERM end the command as SystemExit does, so that partial output is removed, and SIGINT as usual."""
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            stack.enter_context(_handle_signal(signal.SIGTERM, signal.SIG_DFL, SystemExit(_ENDED_BY + signal.SIGTERM)))
            stack.enter_context(_handle_signal(signal.SIGINT, signal.default_int_handler, KeyboardInterrupt()))
        yield


@contextlib.contextmanager
def _handle_signal(number: signal.Signals, usual_handler: Any, end: BaseException) -> Iterator[None]:
    """Begin a block that a signal ends by an exception. usual_handler (Any): Another handler stays."""
    if signal.getsignal(number) != usual_handler:
        yield
        return
    owner = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == owner:
            end_workers()
            raise end
        os._exit(0)  # its parent, which the signal reaches too, says what is to be said

    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, usual_handler)


@contextlib.contextmanager
def _readable_warnings() -> Iterator[None]:
    """Show warnings of this package as sentences, whatever Python's filters say, and make control characters visible in all:
    they may name labels and texts."""
    format_warning = warnings.formatwarning

    def format_readable(message: Any, *args: Any, **kwargs: Any) -> str:
        if ours := _OURS.match(str(message)):
            return f"{_SENTENCES.warn(str(message)[ours.end() :])}\n"
        return visible(format_warning(message, *args, **kwargs), keep="\n")

    warnings.formatwarning = format_readable
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("default", message=_OURS.pattern)
            yield
    finally:
        warnings.formatwarning = format_warning
