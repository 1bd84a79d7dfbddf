"""A child of the process that runs the tests, with an output and signals of its own: a new Python would import everything anew, for seconds.

And what a new Python is given, where a test is of one.
"""

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

import pytest

ROOT = Path(__file__).parents[1]


def alone(*paths: object, **more: str) -> dict[str, str]:
    """The environment of a new Python that finds what is on these paths."""
    known = [*paths, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **({"PYTHONPATH": os.pathsep.join(map(str, known))} if known else {}), **more}


@dataclass(frozen=True)
class Child:
    """pid (int): Its process. out, err (TextIO): What it prints, to be read."""

    pid: int
    out: TextIO
    err: TextIO

    def end(self) -> tuple[int, str, str]:
        """Waits. RETURNS (tuple): Its exit status (less than 0 for a signal), and what it printed that was not read yet."""
        with self.out, self.err:
            printed = self.out.read(), self.err.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), *printed


# A child that takes longer, on a busy machine too, hangs: it is ended by SIGALRM.
_SECONDS = 600


def fork(act: Callable[[], object]) -> Child:
    """Run this in a child, which ends as a program would that does nothing else: by Ctrl-C too, whatever the process that runs the tests makes of it."""
    if not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        _be_a_program(act, to_out, to_err)
    os.close(to_out)
    os.close(to_err)
    return Child(pid, open(out, encoding="utf8"), open(err, encoding="utf8"))


def in_own_process(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in a child: what it replaces there (a part of spaCy, of Python, a package) stays as it is for all others."""

    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        code, _, printed = fork(lambda: test(**fixtures)).end()
        assert code == 0, printed

    return run


def _be_a_program(act: Callable[[], object], out: int, err: int) -> NoReturn:
    code = 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(_SECONDS)
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf8", closefd=False)
        sys.stderr = sys.__stderr__ = os.fdopen(2, "w", encoding="utf8", closefd=False)
        act()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(_flushed(code))


def _flushed(code: int) -> int:
    """The exit status; that of Python where what is left cannot be printed."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return 120
    return code
