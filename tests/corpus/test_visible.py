"""Characters that steer a terminal are shown."""

import json
import os
from pathlib import Path

import pytest

from spacy_calib.corpus.visible import shown_path, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\0b\x9b\x7f", "a\\x00b\\x9b\\x7f"),
        ("line\r\n", "line\\r\\n"),
        ("\u202eright to left", "\\u202eright to left"),
        ("half \ud800", "half \\ud800"),
        ("\uffff", "\\uffff"),
        ("Grüße, 日本語, 👩\u200d💻, ‌می\u200cخواهم", "Grüße, 日本語, 👩\u200d💻, ‌می\u200cخواهم"),
    ],
)
def test_control_characters_are_shown_and_letters_stay(text, shown):
    assert visible(text) == shown
    assert json.loads(visible(json.dumps(text, ensure_ascii=False), json=True)) == text


def test_what_is_to_be_kept_stays():
    assert visible("a\tb\n\x1b", keep="\n") == "a\\tb\n\\x1b"
    assert visible(12) == "12"


def test_paths_become_text_that_can_be_written():
    assert shown_path(Path("folder", os.fsdecode(b"caf\xe9 \xc3\xbc"))) == os.path.join("folder", "caf\\xe9 ü")
