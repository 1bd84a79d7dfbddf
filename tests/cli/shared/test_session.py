"""What a command does when its output cannot be printed, when it is asked to end, and with texts that steer terminals."""

import ast
import errno
import io
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import spacy_calib.cli
from spacy_calib import CalibError
from spacy_calib.cli.shared.session import GuardedOutput, session
from tests.cli.conftest import calib, quiet_environment, refuses

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
    assert GuardedOutput(None).failed


def test_a_reader_that_went_away_ends_the_command_quietly():
    with pytest.raises(SystemExit) as ended:
        GuardedOutput(Broken(errno.EPIPE)).write("x")
    assert ended.value.code == 141


def test_what_an_encoding_lacks_is_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    GuardedOutput(stream).write("1 · 2 \udce9")
    stream.flush()
    assert stream.buffer.getvalue() == b"1 \\xb7 2 \\udce9"


# One process that has imported all and forks for each case; what has no standard output has None there, as Python starts without one.
FORKED = """
import os, sys
import spacy
from spacy.cli import setup_cli
from spacy.util import registry

registry.cli.get_all()
spacy.blank("xx")

def run(prepare):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    prepare()
    sys.argv = ["spacy", "calib", "info", model]
    setup_cli()

def full():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)

def closed():
    os.close(1)
    sys.stdout = None

def unread():
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)

model = sys.argv[1]
print([run(full), run(closed), run(unread)])
"""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_outputs_that_are_full_closed_or_no_longer_read(calibrated):
    done = subprocess.run([sys.executable, "-c", FORKED, calibrated], capture_output=True, text=True, env=quiet_environment())
    assert done.stdout.strip() == "[1, 1, 141]", done.stderr
    assert "Cannot write to the standard output: No space left on device." in done.stderr
    assert "Cannot write to the standard output: it is closed." in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2  # no traceback, and nothing of the reader that went away


TERMINATED = """
import sys, time
from pathlib import Path
from spacy.language import Language
from spacy.cli._util import app
import spacy_calib.cli

def half(nlp, path, **kwargs):
    (Path(path) / "half").touch()
    print("half written", flush=True)
    time.sleep(600)

Language.to_disk = half
app(["calib", "fit", *sys.argv[1:], "--silent"])
"""


def test_sigterm_removes_what_is_half_written(model, test_file, tmp_path):
    command = [sys.executable, "-c", TERMINATED, model, test_file, tmp_path / "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet_environment())
    assert process.stdout.readline().strip() == "half written"
    assert len(list(tmp_path.iterdir())) == 1
    process.terminate()
    printed = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Traceback" not in printed[1]
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


def test_no_text_steers_the_terminal(calibrated, tmp_path):
    (tmp_path / "texts.txt").write_text(f"the {EVIL} dog saw a duck .\n")
    for command, options in (("rank", []), ("rank", ["--unit", "sentence"]), ("select", []), ("expect", ["--per-doc"])):
        outcome = calib(command, calibrated, tmp_path / "texts.txt", *options)
        assert outcome.code == 0, outcome.text
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
