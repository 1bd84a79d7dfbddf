"""What a command does when its output cannot be printed, when it is asked to end, and with texts that steer terminals; its workers end with it."""

import ast
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

from spacy.cli._util import app
from spacy.language import Language

import spacy_calib.cli
from spacy_calib.cli.shared.process import command_process
from tests.cli.conftest import calib, ok, refuses
from tests.forked import fork

EVIL = "\x1b]0;owned\x07"


def half_written(nlp, path, **kwargs):
    (Path(path) / "half").touch()
    os.write(1, b"half written\n")
    time.sleep(600)


def test_sigterm_removes_what_is_half_written(model, test_file, tmp_path):
    def fit():
        Language.to_disk = half_written  # of the child alone
        app(["calib", "fit", str(model), str(test_file), str(tmp_path / "out"), "-m", "isotonic", "--silent"])

    child = fork(fit)
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
    with command_process():
        seen.append(signal.getsignal(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) == before == signal.SIG_DFL
    assert seen != [before]
    own = lambda *_: None  # noqa: E731
    signal.signal(signal.SIGTERM, own)
    try:
        with command_process():
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_thread_has_no_handler_to_set():
    faults = []

    def run():
        try:
            with command_process():
                pass
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert faults == []


def test_warnings_are_made_visible(capsys):
    with command_process():
        shown = warnings.formatwarning(f"label {EVIL}", UserWarning, "file.py", 1, "")
    assert EVIL not in shown
    assert "\\x1b]0;owned\\x07" in shown


def test_a_warning_of_ours_is_a_sentence_and_no_filter_hides_it():
    """Also with `python -W ignore`, which people type against the warnings of others."""
    program = "import warnings\nfrom spacy_calib.cli.shared.process import command_process\nwith command_process():\n    "
    program += f"for text in ({'[CW62] Joined ' + EVIL!r}, 'of others'): warnings.warn(text)"
    plain = {**os.environ, "ANSI_COLORS_DISABLED": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, encoding="utf-8", check=True, env=plain
    )
    assert done.stderr.split() == ["⚠", "Joined", "\\x1b]0;owned\\x07"]


def test_no_text_steers_the_terminal(calibrated, tmp_path):
    (tmp_path / "texts.txt").write_text(f"the {EVIL} dog saw a duck .\n")
    for options in ([], ["--unit", "sentence"]):
        outcome = ok(calib("rank", calibrated, tmp_path / "texts.txt", *options))
        assert EVIL not in outcome.printed
        assert "\\x1b]0;owned\\x07" in outcome.printed
    outcome = calib("rank", calibrated, tmp_path / "texts.txt", "--component", EVIL)
    refuses(outcome, "\\x1b]0;owned\\x07")
    assert EVIL not in outcome.printed


def test_files_get_texts_as_they_are_and_terminals_do_not(calibrated, tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text(f"the {EVIL} dog .\n")
    given = ["rank", calibrated, tmp_path / "texts.txt", "--format", "csv"]
    assert EVIL in calib(*given).printed
    monkeypatch.setattr("spacy_calib.cli.shared.writing.is_terminal", lambda: True)
    assert EVIL not in calib(*given).printed


def test_only_the_screen_prints():
    folder = Path(spacy_calib.cli.__file__).parent
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf8"))
        names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert path.name == "screen.py" or ("wasabi" not in names and "print" not in calls), path.name
