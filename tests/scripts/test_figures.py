"""scripts/figures.py: the record of which command, version and code the figures of each page are of."""

from __future__ import annotations

import json
from pathlib import Path

import code_digest
import figures
import pytest

from tests.docs.pages import ROOT

SOURCE = '''"""About."""

import os  # a comment


def f(x):
    """Doc
    string."""
    text = "# no comment"
    return x, text
'''


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package of one room, and a page with figures of it."""
    (tmp_path / "spacy_calib" / "room").mkdir(parents=True)
    (tmp_path / "spacy_calib" / "room" / "one.py").write_text(SOURCE)
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text("# Page\n\nBy `python scripts/made.py`.\n")
    return tmp_path


def entry(**changes):
    return {
        "name": "made", "page": "page.md", "command": "python scripts/made.py", "measures": ["room"],
        "version": "9.9", "made": "2026-01-02", "code": "", **changes,
    }  # fmt: skip


def test_code_without_words_is_what_is_left_of_a_module():
    assert code_digest.bare_code(SOURCE) == 'import os\ndef f(x):\n    text = "# no comment"\n    return x, text'


def test_words_leave_the_digest_and_code_changes_it(house):
    file = house / "spacy_calib" / "room" / "one.py"
    before = figures.digest_of(["room"], house)
    file.write_text(SOURCE.replace("About", "Other words").replace("# a comment", "# another"))
    assert figures.digest_of(["room"], house) == before == figures.digest_of(["room"], house)
    file.write_text(SOURCE.replace("return x, text", "return text, x"))
    assert figures.digest_of(["room"], house) != before
    other = house / "spacy_calib" / "room" / "two.py"
    without = figures.digest_of(["room"], house)
    other.write_text("X = 1\n")
    assert figures.digest_of(["room", "-room/two.py"], house) == without != figures.digest_of(["room"], house)


def test_figures_of_another_code_are_listed_and_are_no_fault(house, capsys):
    now = figures.digest_of(["room"], house)
    figures.save([entry(code=now), entry(name="other", code=now, version="9.8")], house)
    for change, older in (("", "-"), ("\n\nX = 1\n", "yes")):
        (house / "spacy_calib" / "room" / "one.py").write_text(SOURCE + change)
        assert figures.main(["--check"], house) == 0
        assert capsys.readouterr().out.splitlines()[-2:] == [
            f"| page.md | made | 9.9 | 2026-01-02 | {older} |",
            f"| page.md | other | 9.8 | 2026-01-02 | {older} |",
        ]
        assert list(figures.faults(figures.entries(house), house)) == []


def test_a_program_that_the_record_does_not_have_is_a_fault(house):
    (house / "docs" / "how-to" / "other.md").write_text("`python scripts/unknown.py` shows it\n")
    assert ["unknown.py" in fault for fault in figures.faults([entry()], house)] == [True]


def test_a_command_runs_once_for_one_code_and_its_output_makes_a_part_of_the_page(house, tmp_path, monkeypatch):
    docs = house / "docs"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (docs / "figures.json").write_text(json.dumps([entry(command="echo '# Written'; echo run >> runs.txt", writes="page.md")]))
    (docs / "page.md").write_text("# By hand\n\n<!-- written: made -->\nold\n<!-- end: made -->\n\nThe end\n")
    assert figures.main([], house) == 0
    written = "# By hand\n\n<!-- written: made -->\n\n# Written\n\n<!-- end: made -->\n\nThe end\n"
    assert (docs / "page.md").read_text() == written
    (made,) = figures.entries(house)
    assert made["code"] == figures.digest_of(["room"], house)
    assert figures.main(["made"], house) == 0
    assert (house / "runs.txt").read_text() == "run\n"
    with pytest.raises(SystemExit, match="knows no figures or page nobody; it has made, page.md"):
        figures.main(["nobody"], house)


def test_a_command_that_names_what_is_yours_is_not_run(house, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SystemExit, match=r"made: put what is yours for MODEL, DATA into 'echo MODEL DATA'"):
        figures.printed(entry(command="echo MODEL DATA"), house)


def test_the_record_of_this_project_names_rooms_and_programs_that_there_are():
    found = figures.entries(ROOT)
    assert len({one["name"] for one in found}) == len(found)
    assert [room for one in found for room in one["measures"] if not (ROOT / "spacy_calib" / room.lstrip("-")).exists()] == []
    named = {program for one in found for program in figures.SHOWS.findall(one["command"])}
    assert [program for program in sorted(named) if not (ROOT / program).is_file()] == []
    assert [one["page"] for one in found if not (ROOT / "docs" / one["page"]).is_file()] == []


def test_each_program_that_a_page_names_is_in_the_record():
    found = figures.entries(ROOT)
    assert {key for one in found for key in one} <= {
        "name", "page", "command", "first", "measures", "writes", "version", "made", "code",
    }  # fmt: skip
    assert list(figures.faults(found, ROOT)) == []
