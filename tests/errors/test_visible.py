import csv
import io
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.errors.visible import csv_lines, guard_cell, shown_path, unguard_cell, visible


@pytest.mark.parametrize(("text", "shown"), [
    ("\x1b[31mred", "\\x1b[31mred"),
    ("a\0b\x9b\x7f", "a\\x00b\\x9b\\x7f"),
    ("line\r\n", "line\\r\\n"),
    ("\u202eright to left", "\\u202eright to left"),
    ("half \ud800", "half \\ud800"),
    ("\uffff", "\\uffff"),
    ("Grüße, 日本語, 👩\u200d💻, ‌می\u200cخواهم", "Grüße, 日本語, 👩\u200d💻, ‌می\u200cخواهم"),
])  # fmt: skip
def test_control_characters_are_shown_and_letters_stay(text, shown):
    assert visible(text) == shown
    assert json.loads(visible(json.dumps(text, ensure_ascii=False), json=True)) == text


def test_what_is_to_be_kept_stays():
    assert visible("a\tb\n\x1b", keep="\n") == "a\\tb\n\\x1b"
    assert visible(12) == "12"


def test_paths_become_text_that_can_be_written():
    assert shown_path(Path("folder", os.fsdecode(b"caf\xe9 \xc3\xbc"))) == os.path.join("folder", "caf\\xe9 ü")


NEGATIVE = re.compile(r"-[0-9.]+(e[0-9]+)?|-inf", re.IGNORECASE)
READABLE = st.text("aé＝=+-@'\",;.1 \t\r\n\x1b\u2028😀")


def csv_text(header, rows):
    return "".join(csv_lines(header, rows))


def cells(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(st.tuples(READABLE, READABLE), max_size=5))
def test_what_was_written_is_read(rows):
    found = cells(csv_text(("a", "b"), rows))
    assert [tuple(map(unguard_cell, row)) for row in found[1:]] == rows
    for row in found[1:]:
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row if not NEGATIVE.fullmatch(cell))


def test_a_bare_return_is_quoted():
    # Readers that take it for the end of a line would see two rows.
    assert csv_text(("a", "b"), [("one\rtwo", 1)]) == 'a,b\r\n"one\rtwo",1\r\n'


@pytest.mark.parametrize(
    "cell", ["=1+1", "-LRB-", "-", "-1+1", "-5 %", "-1\n", "'-1", "+49", "@SUM(A1)", "\tx", "\rx", "＝1", "'=1", "''-x"]
)
def test_formulas_are_guarded(cell):
    assert guard_cell(cell) == f"'{cell}"
    assert unguard_cell(guard_cell(cell)) == cell


@pytest.mark.parametrize("cell", ["", "-1", "-1.5e-3", "-.5", "-inf", "a=b", "'s", "''", "'quoted'"])
def test_other_cells_stay(cell):
    assert guard_cell(cell) == unguard_cell(cell) == cell


def test_numbers_are_no_formulas_and_a_nul_does_not_end_a_cell():
    assert cells(csv_text(("a", "b"), [(-0.5, "x\0y")])) == [["a", "b"], ["-0.5", "x\ufffdy"]]
