"""The process of a command: it ends cleanly on signals, with its workers, and copes with a closed or full output."""

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

# Seconds that workers get to end by themselves.
PATIENCE = 5.0
# The code before a warning of this package, and the printer that formats it like other warnings of commands.
_WARNING_CODE, _PRINTER = re.compile(r"\[CW\d+\] "), Screen(no_print=True)
_HAS_CHILD_SIGNAL = hasattr(signal, "SIGCHLD") and hasattr(os, "waitid")


@contextlib.contextmanager
def watch_workers(n_process: int) -> Iterator[None]:
    """Notice in a block when a worker process is killed, if SIGCHLD exists and has no handler. RAISES C471: one was killed."""
    is_main = threading.current_thread() is threading.main_thread()
    if n_process == 1 or not _HAS_CHILD_SIGNAL or not is_main or signal.getsignal(signal.SIGCHLD) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGCHLD, _check_child)
    try:
        yield
    finally:
        _stop_watching()


def _check_child(number: int, frame: FrameType | None) -> None:
    """Handle SIGCHLD. RAISES C471: the child process that has just ended was killed."""
    if multiprocessing.parent_process() is not None:
        return
    with contextlib.suppress(ChildProcessError):
        status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if status is not None and status.si_code != os.CLD_EXITED:
            end_workers()
            raise calib_error("C471", signal=signal.Signals(status.si_status).name)


def _stop_watching() -> None:
    if _HAS_CHILD_SIGNAL and signal.getsignal(signal.SIGCHLD) is _check_child:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def end_workers() -> None:
    """Terminate all workers, so that exceptions do not wait for them; kill one that misses the signal, as just after a fork."""
    _stop_watching()
    workers, deadline = multiprocessing.active_children(), time.monotonic() + PATIENCE
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        if worker.exitcode is None:
            worker.kill()


# Exit code of a process that a signal ended, as in shells: 128 + its number.
_SIGNAL_BASE = 128
_SIGPIPE = 13


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Run a command in a block. Output that cannot be written ends it with a sentence and code 1; a closed pipe silently."""
    with _signals_end(), _readable_warnings(), user_errors():
        output = GuardedOutput(sys.stdout)
        with contextlib.redirect_stdout(output):
            try:
                yield
            finally:
                if not output.has_failed:
                    output.flush()


class GuardedOutput:
    """The standard output, with its system errors turned into C103. stream (TextIO | None): None if it was closed."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream
        self._fault: BaseException | None = calib_error("C103", why="it is closed") if stream is None else None

    def write(self, text: str) -> int:
        """Write text. RAISES C103: the output is closed or full. SystemExit: the reader of the pipe has ended."""
        with self._system_errors():
            assert self._stream is not None
            return self._stream.write(_encodable(text, self._stream.encoding))

    def flush(self) -> None:
        """Flush the output. RAISES C103, SystemExit: as `write`."""
        with self._system_errors():
            assert self._stream is not None
            self._stream.flush()

    @property
    def has_failed(self) -> bool:
        return self._fault is not None

    @contextlib.contextmanager
    def _system_errors(self) -> Iterator[None]:
        """Turn system errors in a block into C103 or SystemExit, raised again at each later write: typer swallows the first."""
        if self._fault is not None:
            raise self._fault
        try:
            yield
        except BrokenPipeError:
            self._fault = SystemExit(_SIGNAL_BASE + _SIGPIPE)
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
    """Escape characters that the encoding lacks, on which Python would fail."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextlib.contextmanager
def _signals_end() -> Iterator[None]:
    """Turn SIGTERM and SIGINT in a block into SystemExit and KeyboardInterrupt, so that partial output is removed."""
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            stack.enter_context(_handle_signal(signal.SIGTERM, signal.SIG_DFL, SystemExit(_SIGNAL_BASE + signal.SIGTERM)))
            stack.enter_context(_handle_signal(signal.SIGINT, signal.default_int_handler, KeyboardInterrupt()))
        yield


@contextlib.contextmanager
def _handle_signal(number: signal.Signals, usual_handler: Any, end: BaseException) -> Iterator[None]:
    """Raise `end` in a block when the signal arrives. usual_handler (Any): The only handler that is replaced."""
    if signal.getsignal(number) != usual_handler:
        yield
        return
    owner = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == owner:
            end_workers()
            raise end
        os._exit(0)  # a worker: the signal reaches its parent too, which reports it

    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, usual_handler)


@contextlib.contextmanager
def _readable_warnings() -> Iterator[None]:
    """Print warnings of this package as sentences, whatever Python's filters are; escape control characters in all warnings."""
    format_warning = warnings.formatwarning

    def format_readable(message: Any, *args: Any, **kwargs: Any) -> str:
        if code := _WARNING_CODE.match(str(message)):
            return f"{_PRINTER.warn(str(message)[code.end() :])}\n"
        return visible(format_warning(message, *args, **kwargs), keep="\n")

    warnings.formatwarning = format_readable
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("default", message=_WARNING_CODE.pattern)
            yield
    finally:
        warnings.formatwarning = format_warning
