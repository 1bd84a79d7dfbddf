"""scripts/bench_smoke.py: it forgets no script, and sees one that fails."""

from __future__ import annotations

import re
from pathlib import Path

import bench_smoke as smoke
import made_up
import pytest
from quality import readers

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"


def test_every_program_is_run_or_skipped_with_a_reason():
    files = {file.relative_to(SCRIPTS).as_posix(): file for file in SCRIPTS.rglob("*.py")}
    assert {*smoke.RUNS, *smoke.SKIPPED} <= set(files)
    assert all(smoke.SKIPPED.values())
    for name in smoke.parts():
        assert "__main__" not in files[name].read_text(encoding="utf8"), name


def test_make_and_ci_call_it():
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    assert re.search(r"^bench-smoke: .*\n\t.*scripts/bench_smoke\.py$", makefile, re.MULTILINE)
    assert "make bench-smoke" in (ROOT / ".ci" / "run").read_text(encoding="utf8").splitlines()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('a table')", ""),
        ("print('a table')\nraise SystemExit(1)", ""),
        ("print('a table')\nraise SystemExit(2)", "ended with 2"),
        ("print('a table')\nraise SystemExit('no data')", "ended with no data"),
        ("print('a table')\nraise TypeError('no such argument')", "TypeError: no such argument"),
        ("print('nothing')", "does not show 'a table'"),
        ("import sys\nprint('a table' if sys.argv[1:] == ['--small'] and __name__ == '__main__' else sys.argv)", ""),
    ],
)
def test_a_script_that_fails_is_seen(code, why, tmp_path, capsys):
    (tmp_path / "script.py").write_text(code, encoding="utf8")
    said = smoke.run(tmp_path / "script.py", ["--small"], "a table")
    assert why in said
    assert bool(why) == bool(said)
    assert capsys.readouterr().out == ""


def test_the_made_up_treebanks_are_read_as_the_real_ones_are(monkeypatch, tmp_path):
    made_up.write_treebanks(tmp_path)
    monkeypatch.setenv("SPACY_CALIB_DATA", str(tmp_path / "data"))
    documents = readers.ewt("dev", "tags")
    assert len(documents) == 240
    assert readers.count_tokens(documents) > 2500
