"""Made-up command lines end in a sentence, never in a traceback: a sample of scripts/fuzz_cli.py, and those that once did not."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_made_up_command_lines(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    fuzz_cli = importlib.import_module("fuzz_cli")
    seen, bad, n_called = fuzz_cli.fuzz(range(30), tmp_path / "fuzz")
    assert bad == {}
    assert (sum(seen.values()), n_called >= 15) == (30, True)


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_root_is_no_output(force, tmp_path):
    from spacy_calib.cli.shared.outputs import check_folder
    from spacy_calib.errors import CalibError

    with pytest.raises(CalibError, match=r"\[C054\] The output / exists|\[C055\] Cannot write the output /"):
        check_folder(Path("/"), bool(force))


def test_a_closed_standard_output_is_a_sentence():
    """`calib info MODEL --format json >&-`."""
    code = "import sys; sys.stdout = None; from spacy_calib.cli.shared.session import session\nwith session(): print(sys.stdout.encoding, file=sys.stderr)"
    outcome = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert "AttributeError" not in outcome.stderr
    assert "utf-8" in outcome.stderr.lower()


def test_a_query_of_an_attribute_that_nobody_registered():
    import spacy

    from spacy_calib.plugins.counts.queries.patterns import single_matcher

    with pytest.raises(ValueError, match="there is no attribute Token._.nobodys"):
        single_matcher(spacy.blank("xx").vocab, {"_": {"nobodys": 1}})
