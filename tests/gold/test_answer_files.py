"""What tools export is read as it was answered, whole, and what is no export of one project is refused in a sentence."""

import gzip
import json
import warnings
from dataclasses import replace

import pytest

from spacy_calib.errors import CalibError
from spacy_calib.gold.answer_files import read_answers
from spacy_calib.gold.tool_exports import QUEUE_MARK, TextAnswers, TextSpan
from tests.answers import write
from tests.sentences import says

TEXT = "Anna met Bob in Rome"
ANNA, BOB = {"start": 0, "end": 4, "label": "P"}, {"start": 9, "end": 12, "label": "P"}


CHOSEN = {"type": "choices", "value": {"choices": ["b"]}}
WORDS = (("Hi", 0), ("Anna", 4), ("Lee", 9))
TOKENS = [{"text": text, "start": start, "end": start + len(text)} for text, start in WORDS]


def region(start, end, labels, text=None):
    """A marked stretch of Label Studio."""
    return {"type": "labels", "value": {"start": start, "end": end, "text": text or TEXT[start:end], "labels": labels}}


def studio(result, data=None):
    return {"data": data or {"text": TEXT}, "annotations": [{"result": result}]}


def argilla(text, value):
    return {"fields": {"text": text}, "metadata": {}, "responses": {"label": [{"value": value, "status": "submitted"}]}}


@pytest.mark.parametrize(("records", "spans", "cats", "whole"), [
    # Of one span at a time, as `ner.teach` asks; old exports name no view, and are told by their rejects.
    ([{"text": TEXT, "spans": [ANNA], "answer": "accept", "_view_id": "ner"}], {"Anna": True}, {}, False),
    ([{"text": TEXT, "spans": [ANNA], "answer": "reject"}, {"text": TEXT, "spans": [BOB], "answer": "accept"}],
     {"Anna": False, "Bob": True}, {}, False),
    ([{"text": TEXT, "spans": [ANNA, BOB], "answer": "accept", "_view_id": "ner_manual"}], {"Anna": True, "Bob": True}, {}, True),
    # The entity that our queue asked for was given another end.
    ([{"text": TEXT, "spans": [{**ANNA, "end": 8}], "answer": "accept", "meta": {**QUEUE_MARK, "unit": "entity", "asked": "0 4 P"}}],
     {"Anna met": True, "Anna": False}, {}, False),
    ([{"text": TEXT, "label": "sport", "answer": "reject"}], {}, {"sport": False}, False),
    ([{"text": TEXT, "options": [{"id": 1, "text": "x"}, {"id": 2, "text": "y"}], "accept": [2], "answer": "accept"}],
     {}, {"1": False, "2": True}, True),
    ([{"id": 1, "text": TEXT, "entities": [{"id": 3, "label": "P", "start_offset": 0, "end_offset": 4}], "relations": []}],
     {"Anna": True}, {}, True),
    ([{"id": 1, "text": TEXT, "labels": [[0, 4, "P"]]}], {"Anna": True}, {}, True),
    ([{"id": 1, "text": TEXT, "label": ["a"]}, {"id": 2, "text": "else", "label": ["b"]}], {}, {"a": True, "b": False}, True),
    # One label as a text is one label.
    ([{"id": 1, "text": TEXT, "label": "sport"}], {}, {"sport": True}, True),
    ([{"text": TEXT, "options": [{"id": "ab"}], "accept": "ab", "answer": "accept"}], {}, {"ab": True}, True),
    ([studio([region(0, 4, "ORG")])], {"Anna": True}, {}, True),
    ([studio([{"type": "choices", "value": {"choices": "sport"}}])], {}, {"sport": True}, True),
    # In a file of categories an empty list says that the text has none.
    ([{"id": 1, "text": TEXT, "label": []}, {"id": 2, "text": "else", "label": ["b"]}], {}, {"b": False}, True),
    ([studio([]), studio([CHOSEN], {"text": "else"})], {}, {"b": False}, True),
    ([argilla(TEXT, []), argilla("else", ["b", "c"])], {}, {"b": False, "c": False}, True),
    # Label Studio shows the field that has the marked words, or whose name the interface says.
    ([studio([region(0, 4, ["P"])], {"id": "Ann", "body": TEXT})], {"Anna": True}, {}, True),
    ([studio([region(0, 4, ["P"])], {"text": "Title", "body": TEXT})], {"Anna": True}, {}, True),
    ([studio([{**CHOSEN, "to_name": "body"}], {"text": "x", "body": TEXT})], {}, {"b": True}, True),
    # The words of Prodigy's tokens are where they were before the line end changed.
    ([{"text": "Hi\nAnna Lee", "tokens": TOKENS, "spans": [{"start": 4, "end": 12, "label": "P"}], "answer": "accept"}],
     {"Anna Lee": True}, {}, True),
])  # fmt: skip
def test_forms_of_the_tools(records, spans, cats, whole, tmp_path):
    found = read_answers(write(tmp_path / "a.jsonl", records))[0]
    assert {found.text[mark.start : mark.end]: right for mark, right in found.spans.items()} == spans
    assert (found.cats, found.whole) == (cats, whole)


@pytest.mark.parametrize(("start", "end"), [(3, 3), (2, 1)])
def test_a_span_of_prodigy_without_a_character_is_refused(start, end, tmp_path):
    tokens = [{"text": "ab."[i], "start": at, "end": at + 1} for i, at in enumerate((0, 2, 3))]
    record = {"text": "a b.", "tokens": tokens, "spans": [{"start": start, "end": end, "label": "X"}], "answer": "accept"}
    with pytest.raises(CalibError, match=rf"C695.*from character {start} to {end}"):
        read_answers(write(tmp_path / "a.jsonl", [record]))


def test_label_studio_takes_the_last_annotation_that_stands_and_counts_as_a_browser_does(tmp_path):
    anna, bob = region(0, 7, ["P"], "😀 Anna"), region(12, 15, ["P"], "Bob")
    annotations = [
        {"result": result, "was_cancelled": cancelled, "completed_by": 1}
        for result, cancelled in (([bob], False), ([anna, bob], False), ([], True))
    ]
    task = {"data": {"text": "😀 Anna met Bob"}, "annotations": annotations}
    found = read_answers(write(tmp_path / "a.json", [task], array=True))[0]
    assert list(found.spans) == [TextSpan(0, 6, "P"), TextSpan(11, 14, "P")]


RIGHT = {"text": TEXT, "spans": [ANNA], "answer": "accept", "_view_id": "ner_manual"}
STUDIO = studio([])


@pytest.mark.parametrize(("text", "sentence"), [
    (json.dumps(RIGHT) + "\n" + json.dumps(RIGHT)[:40], "line 2 is no JSON, or cut off"),
    (json.dumps([STUDIO, STUDIO])[:-9], "it is no JSON, or cut off"),
    ('{"text": "only a text"}', says("C082")),
    ('{"text": "a queue of ours", "label": [[0, 1, "P"]], "meta": {}}', says("C082")),
    (json.dumps(RIGHT) + "\n" + json.dumps(STUDIO), "line 2 of .* is of Label Studio, not of Prodigy"),
    (json.dumps([{**STUDIO, "project": 1}, {**STUDIO, "project": 2}]), r"to two projects: numbers \[1, 2\]"),
    (json.dumps(RIGHT) + "\n" + json.dumps({"text": "b", "label": "x", "answer": "accept"}),
     r"two projects: spans \(line 1\) and categories \(line 2\)"),
    (json.dumps({**RIGHT, "spans": [{**ANNA, "end": 99}]}), "goes from character 0 to 99, but its text has 20"),
    (json.dumps({**RIGHT, "spans": [{**ANNA, "start": 4, "end": 5}]}), says("C695", start=4, end=5)),
    (json.dumps({**RIGHT, "spans": [{"start": 0, "end": 4}]}), r"line 1 is not as Prodigy writes it \(KeyError: 'label'\)"),
    (json.dumps({**RIGHT, "answer": "ignore"}), "Nobody answered anything"),
    (json.dumps([{**STUDIO, "annotations": []}]), "Nobody answered anything"),
    ("[1]", r"\[C788\] Record 1 of .* is 1, which is no record"),
    *((json.dumps({"label": "x", "answer": "accept", **fields}), "line 1 is not as Prodigy writes it")
      for fields in ({"text": 5}, {"text": ["x"]}, {"text": "a \ud800"}, {"text": "a", "label": "x\ud800"})),
    (json.dumps({**RIGHT, "spans": [{**ANNA, "label": "\udc80"}]}), "line 1 is not as Prodigy writes it"),
    (json.dumps([studio([region(0, 4, ["P"], "Bob")])]), says("C785", where="record 1", words="Bob", start=0, end=4, actual="Anna")),
    (json.dumps([studio([CHOSEN], {"title": "a", "body": TEXT})]), says("C786", fields="title, body")),
    (json.dumps([{"fields": {"title": "a", "body": TEXT}, "responses": {"label": [{"value": "x"}]}}]), says("C786", fields="title, body")),
])  # fmt: skip
def test_bad_files_are_refused_in_a_sentence(text, sentence, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CalibError, match=sentence) as told:
        read_answers(tmp_path / "a.json")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "meta",
    [{"drawn": "doubt", "asked": "0 4 P", "focus": "Anna", "unit": "token", "doc": 3}, {"asked": 7, "drawn": [1]}, "a note", 2],
)
def test_meta_of_others_is_left_alone(meta, tmp_path):
    """What a user keeps beside a text may be called as what our queues write there; only theirs has the mark."""
    doccano = {"id": 1, "text": TEXT, "label": [[9, 12, "P"]]}
    by_tool = [
        {"text": TEXT, "spans": [BOB], "answer": "accept", "meta": meta},
        {**doccano, "meta": meta},
        {**doccano, **(meta if isinstance(meta, dict) else {})},
        studio([region(9, 12, ["P"])], {"text": TEXT, "meta": meta}),
        {**argilla(TEXT, [{"start": 9, "end": 12, "label": "P"}]), "metadata": meta},
    ]
    for record in by_tool:
        (answer,) = read_answers(write(tmp_path / "a.json", [record], array=True))
        assert (answer.spans, answer.whole, answer.meta) == ({TextSpan(9, 12, "P"): True}, True, {})


@pytest.mark.parametrize(("extra", "cats"), [
    ({"note": "clear"}, {}),  # a comment
    ({"topics": ["news"]}, {"news": True}),
    ({"kind": "GPE"}, {"GPE": True}),  # a label of the pipeline
])  # fmt: skip
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.filterwarnings("ignore:.*CW56")
def test_other_questions_do_not_say_that_spans_nobody_was_asked_about_are_wrong(extra, cats, is_last, tmp_path):
    asked = {**argilla(TEXT, [ANNA]), "metadata": {**QUEUE_MARK, "unit": "entity", "asked": "0 4 P"}}
    others = {question: [{"value": value, "status": "submitted"}] for question, value in extra.items()}
    asked["responses"] = {**asked["responses"], **others} if is_last else {**others, **asked["responses"]}
    (answer,) = read_answers(write(tmp_path / "a.json", [asked], array=True), {"P", "GPE"})
    assert (answer.spans, answer.cats, answer.whole) == ({TextSpan(0, 4, "P"): True}, cats, False)
    assert answer.skipped == ({"answers to 'note'": 1} if "note" in extra else {})


def test_an_unanswered_question_about_spans_makes_no_span_wrong(tmp_path):
    both, categories, none = argilla(TEXT, [ANNA]), argilla("other", []), argilla("third", [])
    both["responses"]["topics"] = [{"value": ["news"], "status": "submitted"}]
    categories["responses"] = {"topics": [{"value": ["news"], "status": "submitted"}]}
    none["responses"]["topics"] = [{"value": [], "status": "submitted"}]  # of no topic, and no span
    answers = read_answers(write(tmp_path / "a.json", [both, categories, none], array=True), {"P"})
    assert [answer.whole for answer in answers] == [True, False, True]
    asked = {**argilla(TEXT, [ANNA]), "metadata": {**QUEUE_MARK, "unit": "entity", "asked": "0 4 P"}}
    asked["responses"]["topics"] = [{"value": [], "status": "submitted"}]
    answers = read_answers(write(tmp_path / "b.json", [both, asked], array=True), {"P"})
    assert answers[1].spans == {TextSpan(0, 4, "P"): True}


def test_of_very_many_categories_a_text_lacks_those_that_the_pipeline_knows(tmp_path, monkeypatch):
    """As many categories as texts would else make a value for each of them in each text."""
    records = [{"id": i, "text": f"text {i}", "label": [f"c{i}"]} for i in range(4)]
    for most, lacks in ((4, {f"c{i}": False for i in range(4)}), (3, {"c2": False})):
        monkeypatch.setattr("spacy_calib.gold.answer_files._MANY_CATEGORIES", most)
        answers = read_answers(write(tmp_path / "a.jsonl", records), {"c2", "other"})
        assert [answer.cats for answer in answers] == [{**lacks, f"c{i}": True} for i in range(4)]


def test_what_was_said_later_counts():
    first = TextAnswers("a b", {TextSpan(0, 1, "P"): True})
    second = TextAnswers("a b", {TextSpan(0, 1, "P"): False, TextSpan(2, 3, "Q"): True})
    assert first.add(second).spans == {TextSpan(0, 1, "P"): False, TextSpan(2, 3, "Q"): True}
    assert first.add(TextAnswers("a b", whole=True)).spans == {}
    doubtful, random = (replace(first, meta={"drawn": drawn}) for drawn in ("doubt", "random"))
    for one, other, drawn in ((doubtful, random, "doubt"), (random, doubtful, "doubt"), (random, first, "random")):
        assert one.add(other).meta["drawn"] == drawn


BAD = {
    "a span of length 0": ({**RIGHT, "spans": [{**ANNA, "end": 0}]}, "there is no word from 0 to 0"),
    "a span outside": ({**RIGHT, "spans": [{**ANNA, "end": 99}]}, "there is no word from 0 to 99"),
    "other words": ({**RIGHT, "spans": [{**ANNA, "text": "Bob"}]}, "the text has other words than 'Bob' from 0 to 4"),
    "no label": ({**RIGHT, "spans": [{"start": 0, "end": 4}]}, "it is not as Prodigy writes it (KeyError: 'label')"),
    "no object": (5, "it is no object"),
    "no JSON": ("oops", "it is no JSON"),
}


def bad_lines(n, *records):
    """JSON Lines with these records after each other, then right ones, n in all."""
    lines = [record if record == "oops" else json.dumps(record) for record in records]
    return "\n".join([*lines, *[json.dumps({**RIGHT, "text": f"{TEXT} {i}"}) for i in range(n - len(records))]])


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_one_record_in_twenty_that_cannot_be_used_is_skipped_and_named(tmp_path, suffix, kind):
    record, why = BAD[kind]
    file = tmp_path / f"a{suffix}"
    content = bad_lines(20, record).encode()
    file.write_bytes(gzip.compress(content) if suffix == ".jsonl.gz" else content)
    with pytest.warns(UserWarning, match=says("CW61", n="1", of="20", reasons=f"line 1: {why}")):
        answers = read_answers(file)
    assert [answer.where for answer in answers] == [f"line {number}" for number in range(2, 21)]


def test_more_than_one_bad_record_in_twenty_are_refused_and_the_first_three_named(tmp_path):
    (tmp_path / "a.jsonl").write_text(bad_lines(79, *[BAD["a span of length 0"][0]] * 4))
    reasons = "; ".join(f"line {number}: there is no word from 0 to 0" for number in (1, 2, 3))
    with pytest.raises(CalibError, match=says("C790", n="4", of="79", reasons=reasons)):
        read_answers(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text(bad_lines(80, *[BAD["a span of length 0"][0]] * 4))
    with pytest.warns(UserWarning, match=says("CW61", n="4", of="80", reasons=reasons)):
        assert len(read_answers(tmp_path / "a.jsonl")) == 76


LINES = ["Minutes\r\nAnna Kovac met Acme Corp\r\nin Paris.", "\U0001f600 Bob Lee\r\nleft \U0001f680 Rome, Italy."]
NAMES = [["Anna Kovac", "Acme Corp", "Paris"], ["Bob Lee", "Rome", "Italy"]]
COUNTS = {
    "characters": str,
    "UTF-16 units": lambda text: "".join(c * (1 + (c > "\uffff")) for c in text),
    "characters, and each line end as one": lambda text: text.replace("\r\n", "\n"),
    "UTF-16 units, and each line end as one": lambda text: "".join(
        c * (1 + (c > "\uffff")) for c in text.replace("\r\n", "\n")
    ),
}


def studio_of(text, spans):
    regions = [{"type": "labels", "value": {"start": start, "end": end, "labels": ["X"]}} for start, end in spans]
    return studio(regions, {"text": text})


WITHOUT_WORDS = {
    "Label Studio": studio_of,
    "doccano": lambda text, spans: {"id": 1, "text": text, "label": [[start, end, "X"] for start, end in spans]},
    "Argilla": lambda text, spans: argilla(text, [{"start": start, "end": end, "label": "X"} for start, end in spans]),
}


def counted(text, names, count):
    """The places of names as a tool counts the text before them."""
    places = [(text.index(name), text.index(name) + len(name)) for name in names]
    return [tuple(len(count(text[:offset])) for offset in place) for place in places]


@pytest.mark.parametrize("tool", WITHOUT_WORDS)
@pytest.mark.parametrize("reading", COUNTS)
def test_offsets_are_read_as_they_put_the_spans_on_words(tmp_path, reading, tool):
    records = [
        WITHOUT_WORDS[tool](text, counted(text, names, COUNTS[reading])) for text, names in zip(LINES, NAMES, strict=True)
    ]
    file = write(tmp_path / "x.jsonl", records)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = read_answers(file)
    assert [[answer.text[start:end] for start, end, _ in answer.spans] for answer in answers] == NAMES
    expected = [] if reading == "characters" else [says("CW63", path=file, reading=reading)]
    assert len(caught) == len(expected)
    assert all(pattern.search(str(warning.message)) for pattern, warning in zip(expected, caught, strict=True))


def test_offsets_that_fit_in_no_way_are_refused_with_two_examples(tmp_path):
    text = "\U0001f600 Anna Kovac met Acme Corp"
    file = write(tmp_path / "x.jsonl", [WITHOUT_WORDS["doccano"](text, [(5, 9), (16, 20), (2, 8)])])
    examples = "line 1: 'a Ko' or 'na K'; line 1: ' Acm' or 't Ac'"
    with pytest.raises(CalibError, match=says("C789", path=file, many="no", examples=examples)):
        read_answers(file)


def test_offsets_that_fit_in_two_ways_are_refused(tmp_path):
    file = write(tmp_path / "x.jsonl", [WITHOUT_WORDS["doccano"]("\U0001f600 a-b", [(3, 4)])])
    with pytest.raises(CalibError, match=says("C789", path=file, many="several", examples="line 1: '-' or 'a'")):
        read_answers(file)


def test_where_all_ways_of_counting_agree_spans_may_cut_words(tmp_path):
    file = write(tmp_path / "x.jsonl", [WITHOUT_WORDS["doccano"]("Anna \U0001f600", [(1, 3)])])
    assert [*read_answers(file)[0].spans] == [TextSpan(1, 3, "X")]


@pytest.mark.parametrize("key", ["entities", "spans"])
def test_what_counts_characters_by_its_own_words_is_not_read_anew(tmp_path, key):
    text = "\U0001f600 Anna Kovac left"
    record = {"text": text, key: [{"start": 3, "end": 13, "label": "X"}], **({"answer": "accept"} if key == "spans" else {})}
    assert [*read_answers(write(tmp_path / "x.jsonl", [record]))[0].spans] == [TextSpan(3, 13, "X")]


def test_categories_do_not_make_a_later_answer_about_one_span_one_about_all():
    categories, one_span = TextAnswers("a b", cats={"news": True}, whole=True), TextAnswers("a b", {TextSpan(0, 1, "P"): True})
    assert replace(categories, cats={"news": True}).add(one_span).whole is False
    all_spans = TextAnswers("a b", {TextSpan(0, 1, "P"): True}, whole=True)
    assert replace(all_spans, spans=dict(all_spans.spans)).add(one_span).whole is True  # it corrects one of them
    assert replace(all_spans, spans=dict(all_spans.spans)).add(categories).whole is True


def test_an_accepted_entity_that_ends_with_a_line_break_is_the_one_that_was_asked_for(tmp_path):
    span = {"start": 0, "end": 6, "label": "P", "text": "Tweed\n"}
    meta = {**QUEUE_MARK, "unit": "entity", "asked": "0 6 P", "focus": "Tweed"}
    record = {"text": "Tweed\n03/26", "spans": [span], "answer": "accept", "meta": meta}
    (answer,) = read_answers(write(tmp_path / "x.jsonl", [record]))
    assert answer.spans == {TextSpan(0, 6, "P"): True}
