import pytest

from spacy_calib import Answer
from spacy_calib.errors import CalibError
from spacy_calib.plugins.llm.paths import JsonFields

PEOPLE = (
    '{"people": [{"name": "Ann", "kind": "person"}, {"name": "Bob"}, {"kind": "place"}], "places": ["Rome", null, 3, true]}'
)


def answer(text: str) -> Answer:
    return Answer.from_response({"tokens": [text], "logprobs": [-0.1]})


@pytest.mark.parametrize(("text", "type_", "pairs"), [
    ("people[].name", "people[].kind", [("Ann", "person"), ("Bob", "")]),
    ("people[].name", "", [("Ann", "people"), ("Bob", "people")]),
    ("places[]", "", [("Rome", "places"), ("3", "places")]),
    ("*[]", "", [("Rome", "places"), ("3", "places")]),
    ("*[].name", "", [("Ann", "people"), ("Bob", "people")]),
    ("people[].*", "", [("Ann", "name"), ("person", "kind"), ("Bob", "name"), ("place", "kind")]),
    ("people.name", "", []),
    ("nothing[].name", "people[].kind", []),
])  # fmt: skip
def test_a_path_selects_texts_and_types(text, type_, pairs):
    read = JsonFields(text, type_)
    assert read(answer(PEOPLE)) == pairs


def test_a_path_into_a_list_and_lines_of_json():
    lines = 'Here:\n{"t": "Ann", "is": {"a": "person"}}\n{"t": "Rome", "is": {"a": "place"}}\nDone [sic].'
    assert JsonFields("t", "is.a")(answer(lines)) == [("Ann", "person"), ("Rome", "place")]
    assert JsonFields("[].t", "[].is")(answer('[{"t": "Ann", "is": "person"}]')) == [("Ann", "person")]


def test_all_values_of_a_repeated_key_are_read():
    """json.loads keeps the last."""
    assert JsonFields("*")(answer('{"LOC": "Rome", "LOC": "Oslo"}')) == [("Rome", "LOC"), ("Oslo", "LOC")]


@pytest.mark.parametrize("text", ["", "Sorry.", '[{"t": "Ann"', "{", "[" * 100_000])
def test_an_answer_without_complete_json_cannot_be_read(text):
    with pytest.raises((ValueError, RecursionError)):
        JsonFields("[].t")(answer(text))


@pytest.mark.parametrize("path", ["", ".", "a..b", "[a]", "a[0].b", "a[", 3, None])
def test_an_invalid_path_raises_c648(path):
    with pytest.raises(CalibError, match=r"\[C648\] A path into JSON names keys"):
        JsonFields(path)
