"""Files of tools with planted faults are read, or refused in one sentence: never a traceback, never called a DocBin.

    SPACY_CALIB_MUTATIONS=2000 python -m pytest tests/gold/test_mutated_files.py

tries so many in place of the few of the suite.
"""

import copy
import json
import os
import random
import warnings

import pytest
import spacy

from spacy_calib.cli.shared.examples import read_examples
from spacy_calib.errors import CalibError
from tests.gold.test_tool_files import EXPECTED, TOOLS

N_MUTATIONS = int(os.environ.get("SPACY_CALIB_MUTATIONS", "160"))
VALUES = (None, True, -1, 3, 10**30, 0.5, "", "x", "\ud800", [], [[]], {}, [None], {"start": 1}, [1, 2, "x"], "0 4 P")
JSON_FILES = [name for name in EXPECTED if name.endswith((".json", ".jsonl")) and not name.startswith(("utf16", "latin1"))]
OTHERS = [name for name in EXPECTED if name.endswith(".conllu")]


def places_in(value, path=()):
    """Paths to all parts of a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from places_in(part, (*path, key))


def mutated_json(rng, value):
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        places = list(places_in(value))
        if not places:
            break
        *path, last = rng.choice(places)
        parent = value
        for key in path:
            parent = parent[key]
        change = rng.choice(("drop", "replace", "replace", "double", "rename"))
        if change == "drop":
            del parent[last]
        elif change == "replace":
            parent[last] = copy.deepcopy(rng.choice(VALUES))
        elif change == "double" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        elif change == "rename" and isinstance(parent, dict):
            parent[f"{last}x"] = parent.pop(last)
    return value


def mutated(rng, name, fuzz):
    data = (TOOLS / name).read_bytes()
    if name in OTHERS or rng.random() < 0.25:
        return fuzz.damaged_bytes(data, rng)
    text = data.decode()
    if name.endswith(".json"):
        return json.dumps(mutated_json(rng, json.loads(text))).encode()
    return "\n".join(json.dumps(mutated_json(rng, json.loads(line))) for line in text.splitlines()).encode()


def test_mutated_files_are_read_or_refused_in_a_sentence(fuzz, tmp_path):
    rng, nlp, n_read = random.Random(0), spacy.blank("en"), 0
    for number in range(N_MUTATIONS):
        name = rng.choice((*JSON_FILES, *OTHERS))
        data = mutated(rng, name, fuzz)
        file = tmp_path / f"{number}{(TOOLS / name).suffix}"
        file.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                examples = read_examples(nlp, file, False)
        except CalibError as error:
            sentence, code = str(error), error.code
        except Exception as error:
            raise AssertionError(f"{name}: {data!r}") from error
        else:
            sentence, code = "", ""
            n_read += 1
            written = data.decode("utf-8-sig")
            if name.endswith(".json"):  # with letters as they are, not as escapes
                written += json.dumps(json.loads(data), ensure_ascii=False)
            for example in examples:
                doc = example.reference
                assert all(ent.label_ in written or json.dumps(ent.label_)[1:-1] in written for ent in doc.ents), data
        assert "\n" not in sentence, data
        assert code != "C053", (name, data, sentence)
        file.unlink()
    assert 0 < n_read < N_MUTATIONS


TEXT = "Anna left"
FAULTS = {
    "an end that is true": ({"text": TEXT, "entities": [[0, True, "PER"]]}, "a span does not begin and end at whole numbers"),
    "a category that is null": ({"id": 1, "text": TEXT, "label": [[0, 4, "PER"]], "cats": [None]}, "a label or a text is none"),
    "a category that is a number": ({"text": TEXT, "cats": 3}, "a label or a text is none"),
    "a tag that is a list": ({"tokens": ["Anna", "left"], "ner_tags": [[], "O"]}, "its tags are numbers, .* or no names"),
    "a category without a name": ({"text": TEXT, "cats": {"": 1}}, "a label is empty"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_label_or_offset_is_refused(fault, tmp_path):
    """Each of these was read as a label or an offset of its own."""
    record, why = FAULTS[fault]
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps(record))
    with pytest.raises(CalibError, match=f"C692.*{why}"):
        read_examples(spacy.blank("en"), file, False)
