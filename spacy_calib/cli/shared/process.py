"""The process of a command: it ends cleanly on SIGTERM, and prints warnings of this package as sentences."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from ...errors.visible import visible
from .screen import Screen, user_errors

# The code before a warning of this package, and the printer that formats it like other warnings of commands.
_WARNING_CODE, _PRINTER = re.compile(r"\[CW\d+\] "), Screen(no_print=True)


@contextlib.contextmanager
def command_process() -> Iterator[None]:
    """Run a command in a block."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace", newline="")  # CSV keeps its line ends on Windows
    handles = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if handles:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # partial output is removed
    try:
        with _readable_warnings(), user_errors():
            yield
    finally:
        if handles:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
