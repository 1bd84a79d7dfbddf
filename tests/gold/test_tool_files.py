"""Each file of tests/data/tools is read as tests/data/tools/expected.json says, or refused with the sentence there."""

import json
import re
import warnings
from pathlib import Path

import pytest
import spacy

from spacy_calib.cli.shared.examples import read_examples
from spacy_calib.errors import CalibError

TOOLS = Path(__file__).parent.parent / "data" / "tools"
EXPECTED = json.loads((TOOLS / "expected.json").read_text(encoding="utf8"))


def test_each_file_has_an_expected_reading():
    assert {file.name for file in TOOLS.iterdir()} - {"expected.json"} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_is_read_as_expected_or_refused_in_a_sentence(name):
    expected, nlp = EXPECTED[name], spacy.blank("en")
    if "refused" in expected:
        pattern = ".*".join(map(re.escape, expected["refused"].split(" .* ")))
        with pytest.raises(CalibError, match=pattern) as error:
            read_examples(nlp, TOOLS / name, False)
        assert "\n" not in str(error.value)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (example,) = read_examples(nlp, TOOLS / name, False)
    doc = example.reference
    assert [f"{ent.text} {ent.label_}" for ent in doc.ents] == expected.get("ents", [])
    assert doc.cats == expected.get("cats", {})
    if "ents" in expected:
        assert [token.text for token in doc if not token.ent_iob_] == expected.get("unknown", [])
    if "groups" in expected:
        assert sorted(f"{span.text} {span.label_}" for span in doc.spans["sc"]) == sorted(expected["groups"])
    texts = " ".join(str(warning.message) for warning in caught)
    assert expected.get("warns", "") in texts
    assert bool(texts) == ("warns" in expected)
