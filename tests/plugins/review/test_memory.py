"""What does not fit into memory is refused, in words, before the machine ends the command."""

import re

import pytest

from spacy_calib.plugins.review import memory
from tests.cli.conftest import calib, json_of, refuses


def test_the_memory_of_this_machine_is_known():
    assert 1 << 28 < memory.machine_memory() < 1 << 50


@pytest.mark.parametrize(("command", "bytes_per_token"), [("rank", memory.SCORE_BYTES), ("audit", memory.DOC_BYTES)])
def test_what_does_not_fit_is_refused_with_a_number_of_tokens(
    calibrated, test_file, tmp_path, monkeypatch, command, bytes_per_token
):
    queue = ("--top", 5, "--output", tmp_path / "queue.jsonl")
    monkeypatch.setattr(memory, "machine_memory", lambda: 2 * 123 * bytes_per_token)
    outcome = calib(command, calibrated, test_file, *queue)
    refuses(outcome, "has more than 123 tokens, the most that fit into half of this machine's memory")
    assert "score them with Spark" in outcome.text
    assert not list(tmp_path.iterdir())


def test_a_queue_of_all_tokens_takes_more_than_one_of_some(calibrated, test_file, tmp_path, monkeypatch):
    n_tokens = json_of("rank", calibrated, test_file, "--repeats")["units"]
    monkeypatch.setattr(memory, "machine_memory", lambda: 2 * n_tokens * memory.SCORE_BYTES)
    assert json_of("rank", calibrated, test_file, "--repeats", "--top", 5)["units"] == n_tokens
    path = tmp_path / "queue.jsonl"
    outcome = calib("rank", calibrated, test_file, "--output", path)
    assert re.search(r"has more than [\d,]+ tokens", outcome.text)
    assert not path.exists()
