"""Worker processes that are killed, and those of a command that is ended."""

import multiprocessing
import os
import signal
import time
from functools import partial

import pytest

from spacy_calib import CalibError
from spacy_calib.cli.shared.session import end_workers, session, watched
from tests.forked import fork

pytestmark = pytest.mark.skipif(not hasattr(os, "waitid"), reason="the system has no waitid")


def start(act):
    worker = multiprocessing.get_context("fork").Process(target=act)
    worker.start()
    return worker


def killed(told):
    told.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def sleep():
    time.sleep(600)


def sleep_after(tell):
    tell.send("now")
    sleep()


def test_a_worker_that_was_killed_ends_the_command_and_the_others():
    told, tell = multiprocessing.Pipe(duplex=False)
    with watched(2):
        other = start(sleep)
        start(partial(killed, told))
        with pytest.raises(CalibError, match=r"A worker process was killed \(SIGKILL\)"):
            sleep_after(tell)
    other.join(600)
    assert other.exitcode is not None
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


def deaf(tell):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep_after(tell)


def test_a_worker_that_does_not_end_when_it_is_told_to_is_killed(monkeypatch):
    """As one that was only just forked does not, if the signal comes before Python is ready for it."""
    monkeypatch.setattr("spacy_calib.cli.shared.session.PATIENCE", 0.1)
    told, tell = multiprocessing.Pipe(duplex=False)
    worker = start(partial(deaf, tell))
    told.recv()
    end_workers()
    worker.join(600)
    assert worker.exitcode == -signal.SIGKILL


def test_a_worker_that_ends_is_none_that_was_killed():
    with watched(2):
        worker = start(int)
        worker.join(600)
    assert worker.exitcode == 0


def test_nobody_looks_where_there_are_no_workers_or_somebody_else_does():
    with watched(1):
        assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
    own = lambda *_: None  # noqa: E731
    signal.signal(signal.SIGCHLD, own)
    try:
        with watched(2):
            assert signal.getsignal(signal.SIGCHLD) is own
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("reach", [os.kill, os.killpg])
def test_workers_end_with_the_command_without_a_word(number, code, reach):
    """Ctrl-C reaches all processes of a terminal, a signal by number one."""

    def run():
        os.setsid()
        try:
            with session(), watched(2):
                told, tell = multiprocessing.Pipe(duplex=False)
                worker = start(partial(sleep_after, tell))
                told.recv()
                reach(os.getpid(), number)
                sleep()
        except KeyboardInterrupt:
            worker.join(600)
            raise SystemExit(130) from None

    ended, _, said = fork(run).end()
    assert (ended, said) == (code, "")
