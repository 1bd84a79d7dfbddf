"""What all commands need of the process: a clean end at SIGTERM, and a standard output that may be closed, full, or read no further."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO

from typer.core import TyperGroup

from ...corpus.visible import visible
from ...errors import calib_error
from .command import check_gone
from .screen import user_errors
from .workers import end_workers

# As shells tell of a process that a signal ended.
_ENDED_BY = 128
_SIGPIPE = 13


class CalibGroup(TyperGroup):
    """The group of our commands; their help is printed inside it too."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with session():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with session():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """RAISES C105: the command is gone."""
        check_gone(*args[:1])
        return super().resolve_command(ctx, args)


@contextlib.contextmanager
def session() -> Iterator[None]:
    """The context in which a command runs. Output that cannot be written ends it with a sentence and exit code 1; a closed pipe (`| head`) ends it
    quietly.
    """
    with _signals_end(), _visible_warnings(), user_errors():
        guarded = GuardedOutput(sys.stdout)
        with contextlib.redirect_stdout(guarded):
            try:
                yield
            finally:
                if not guarded.failed:
                    guarded.flush()


class GuardedOutput:
    """The standard output, whose system errors become errors of this package.

    stream (TextIO | None): None where it was closed before Python started.
    """

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
        """Turn a system error into one of ours, and raise it again at each later write: typer swallows the first, as it tries a stream before it
        prints.
        """
        if self._fault is not None:
            raise self._fault
        try:
            yield
        except BrokenPipeError:
            self._fault = SystemExit(_ENDED_BY + _SIGPIPE)
        except OSError as error:
            self._fault = calib_error("C103", why=error.strerror or error)
        if self._fault is not None:
            self._give_up()
            raise self._fault

    def _give_up(self) -> None:
        """Send what is still in the buffer to the null device; Python would report it as an error when it ends."""
        if self._stream is sys.__stdout__ and self._stream is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _encodable(text: str, encoding: str | None) -> str:
    """The text with characters escaped that the encoding lacks, at which Python would fail."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextlib.contextmanager
def _signals_end() -> Iterator[None]:
    """SIGTERM ends the command as SystemExit does, so that what it was writing is removed, and SIGINT (Ctrl-C) as it does without us. Worker processes end
    at once, without a word; where somebody else handles a signal, that stays.
    """
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            stack.enter_context(_handled(signal.SIGTERM, signal.SIG_DFL, SystemExit(_ENDED_BY + signal.SIGTERM)))
            stack.enter_context(_handled(signal.SIGINT, signal.default_int_handler, KeyboardInterrupt()))
        yield


@contextlib.contextmanager
def _handled(number: signal.Signals, usual: Any, end: BaseException) -> Iterator[None]:
    """Begin a block that a signal ends by an exception. usual (Any): Its usual handler; beside another one nothing changes."""
    if signal.getsignal(number) != usual:
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
        signal.signal(number, usual)


@contextlib.contextmanager
def _visible_warnings() -> Iterator[None]:
    """Make control characters visible in warnings, which may name labels and texts."""
    before = warnings.formatwarning

    def formatted(*args: Any, **kwargs: Any) -> str:
        return visible(before(*args, **kwargs), keep="\n")

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = before
