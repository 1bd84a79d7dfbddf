"""`spacy calib view`: the command as it is run, its faults, and what it offers of each pipeline."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import spacy

from spacy_calib.plugins.report.view_server import list_views
from tests.cli.conftest import calib, refuses
from tests.forked import alone

SECRET = "Wolpertinger"


def hears_ctrl_c():
    """Also where the process that runs the tests ignores it, as in the background of a script."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(process, calibrated):
    """Ask it, then press Ctrl-C. RETURNS (str): What it prints after its address."""
    first = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+", first)
    assert address is not None, first + process.stdout.read()
    port = int(address[0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as idle:  # as a browser opens one that it does not use yet
        request = urllib.request.Request(address[0], data=f"text={SECRET}+saw+a+duck&view=0".encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert SECRET in answer.read().decode()
        idle.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.0 403"
    refuses(calib("view", calibrated, "--port", port), f"The port {port} of 127.0.0.1 cannot be opened: Address already in use")
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=60)[0]


def test_the_command_serves_until_ctrl_c_and_prints_no_text(calibrated, tmp_path):
    command = [sys.executable, "-m", "spacy", "calib", "view", str(calibrated)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=alone(PYTHONIOENCODING="utf8"), text=True,
        preexec_fn=hears_ctrl_c,
    ) as process:  # fmt: skip
        try:
            left = interrupted(process, calibrated)
        finally:
            process.kill()
    assert process.returncode == 0
    assert left == "Ended; no text was kept.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_that_was_not_fitted_or_lacks_its_component_is_refused(model, calibrated_copy):
    refuses(calib("view", model), "has no fitted calib pipe; it has: ")
    refuses(calib("view", model), "with gold run `python -m spacy calib fit MODEL DATA OUTPUT` first")
    nlp = spacy.load(calibrated_copy, exclude=["tagger"])
    nlp.to_disk(calibrated_copy)
    refuses(calib("view", calibrated_copy), "tagger")


def test_all_that_two_pipes_say_can_be_chosen_entities_first(two_pipes):
    assert [way.name for way in list_views(spacy.load(two_pipes))] == [
        "ner: entities (calib_ent)",
        "ner: ner of each word (calib_ent)",
        "tagger: tag of each word (calib)",
    ]
