"""Set up the process of a command: it ends cleanly on SIGTERM, and prints warnings and errors of this package as sentences."""

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
    """Run the block as a command: SIGTERM exits cleanly, and warnings and CalibErrors are printed as sentences."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace", newline="")  # CSV keeps its line ends on Windows
    sets_handler = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if sets_handler:  # `sys.exit` runs the `finally` blocks that remove partial output
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with _readable_warnings(), user_errors():
            yield
    finally:
        if sets_handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _readable_warnings() -> Iterator[None]:
    """Print warnings of this package in the block as sentences, whatever the filters, and escape control characters in all."""
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
