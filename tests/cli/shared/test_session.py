"""What a command does when its output cannot be printed, when it is asked to end, and with texts that steer terminals; its workers end with it."""

from __future__ import annotations

import ast
import errno
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import pytest
from spacy.cli._util import app
from spacy.language import Language

import spacy_calib.cli
from spacy_calib import CalibError
from spacy_calib.cli.shared.session import GuardedOutput, end_workers, session, watch_workers
from tests.cli.conftest import calib, ok, refuses
from tests.forked import fork

EVIL = "\x1b]0;owned\x07"


class Broken(io.StringIO):
    """A stream that the system says something against."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, os.strerror(self.number))


def test_what_cannot_be_printed_is_a_sentence_ever_after():
    full = GuardedOutput(Broken(errno.ENOSPC))
    for _ in range(2):
        with pytest.raises(CalibError, match="Cannot write to the standard output: No space left on device"):
            full.write("x")
    with pytest.raises(CalibError, match="it is closed"):
        GuardedOutput(None).write("x")
    assert GuardedOutput(None).has_failed


def test_a_reader_that_went_away_ends_the_command_quietly():
    with pytest.raises(SystemExit) as ended:
        GuardedOutput(Broken(errno.EPIPE)).write("x")
    assert ended.value.code == 141


def test_what_an_encoding_lacks_is_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    GuardedOutput(stream).write("1 · 2 \udce9")
    stream.flush()
    assert stream.buffer.getvalue() == b"1 \\xb7 2 \\udce9"


def full():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def closed():
    """What has no standard output has None there, as Python starts without one."""
    os.close(1)
    sys.stdout = sys.__stdout__ = None


def unread():
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize(
    ("prepare", "code", "lines"),
    [
        (full, 1, ["Cannot write to the standard output: No space left on device."]),
        (closed, 1, ["Cannot write to the standard output: it is closed."]),
        (unread, 141, []),
    ],
)
def test_outputs_that_are_full_closed_or_no_longer_read(prepare, code, lines, calibrated):
    def info():
        prepare()
        app(["calib", "info", str(calibrated)])

    ended, _, said = fork(info).end()
    assert ended == code, said
    assert len(said.strip().splitlines()) == len(lines)  # no traceback, and nothing of the reader that went away
    assert all(line in said for line in lines)


def half_written(nlp, path, **kwargs):
    (Path(path) / "half").touch()
    os.write(1, b"half written\n")
    time.sleep(600)


def test_sigterm_removes_what_is_half_written(model, test_file, tmp_path, monkeypatch):
    monkeypatch.setattr(Language, "to_disk", half_written)
    child = fork(lambda: app(["calib", "fit", str(model), str(test_file), str(tmp_path / "out"), "-m", "isotonic", "--silent"]))
    assert child.out.readline().strip() == "half written"
    assert len(list(tmp_path.iterdir())) == 1
    os.kill(child.pid, signal.SIGTERM)
    code, _, said = child.end()
    assert code == 143
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_the_handler_is_there_for_a_command_only():
    seen = []
    before = signal.getsignal(signal.SIGTERM)
    with session():
        seen.append(signal.getsignal(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) == before == signal.SIG_DFL
    assert seen != [before]
    own = lambda *_: None  # noqa: E731
    signal.signal(signal.SIGTERM, own)
    try:
        with session():
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_thread_has_no_handler_to_set():
    faults = []

    def run():
        try:
            with session():
                pass
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert faults == []


def test_warnings_are_made_visible(capsys):
    with session():
        shown = warnings.formatwarning(f"label {EVIL}", UserWarning, "file.py", 1, "")
    assert EVIL not in shown
    assert "\\x1b]0;owned\\x07" in shown


def test_a_warning_of_ours_is_a_sentence_and_no_filter_hides_it():
    """Also with `python -W ignore`, which people type against the warnings of others."""
    program = "import warnings\nfrom spacy_calib.cli.shared.session import session\nwith session():\n    "
    program += f"for text in ({'[CW62] Joined ' + EVIL!r}, 'of others'): warnings.warn(text)"
    plain = {**os.environ, "ANSI_COLORS_DISABLED": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, encoding="utf-8", check=True, env=plain
    )
    assert done.stderr.split() == ["⚠", "Joined", "\\x1b]0;owned\\x07"]


def test_no_text_steers_the_terminal(calibrated, tmp_path):
    (tmp_path / "texts.txt").write_text(f"the {EVIL} dog saw a duck .\n")
    for command, options in (("rank", []), ("rank", ["--unit", "sentence"]), ("select", []), ("expect", ["--per-doc"])):
        outcome = ok(calib(command, calibrated, tmp_path / "texts.txt", *options))
        assert EVIL not in outcome.printed
        assert "\\x1b]0;owned\\x07" in outcome.printed
    outcome = calib("rank", calibrated, tmp_path / "texts.txt", "--attr", EVIL)
    refuses(outcome, "\\x1b]0;owned\\x07")
    assert EVIL not in outcome.printed


def test_files_get_texts_as_they_are_and_terminals_do_not(calibrated, tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text(f"the {EVIL} dog .\n")
    given = ["rank", calibrated, tmp_path / "texts.txt", "--format", "csv"]
    assert EVIL in calib(*given).printed
    monkeypatch.setattr(GuardedOutput, "isatty", lambda self: True)
    assert EVIL not in calib(*given).printed


def test_only_the_screen_prints():
    folder = Path(spacy_calib.cli.__file__).parent
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf8"))
        names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert path.name == "screen.py" or ("wasabi" not in names and "print" not in calls), path.name


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
    with watch_workers(2):
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
    with watch_workers(2):
        worker = start(int)
        worker.join(600)
    assert worker.exitcode == 0


def test_nobody_looks_where_there_are_no_workers_or_somebody_else_does():
    with watch_workers(1):
        assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
    own = lambda *_: None  # noqa: E731
    signal.signal(signal.SIGCHLD, own)
    try:
        with watch_workers(2):
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
            with session(), watch_workers(2):
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
