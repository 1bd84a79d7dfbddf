"""What tools export is read as it was answered, whole, and what is no export of one project is refused in a sentence."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from spacy_calib.errors import CalibError
from spacy_calib.gold.answer_files import read_answers
from spacy_calib.gold.tool_exports import Mark, TextAnswers
from spacy_calib.plugins.review.queue.formats import WRITERS
from spacy_calib.plugins.review.queue.tasks import TaskSpan
from tests.answers import ARRAYS, EXPORTS, answer, parts_of, records_in, write
from tests.plugins.review.queue.corpora import small
from tests.plugins.review.queue.test_tasks import tasks as tasks_in

N = 1000


def many_tasks(kind, labels="PQ", each_asked=False):
    """Tasks of N texts, of one entity each, or of a sentence with several."""
    rng, (task, *_) = random.Random(0), tasks_in(small(), kind)
    for number in range(N):
        words = [rng.choice(["Ünï", "a", "code😀", "red"]) for _ in range(rng.randint(2, 9))] + [str(number)]
        starts = [sum(len(word) + 1 for word in words[:i]) for i in range(len(words))]
        places = [rng.randrange(len(words))] if kind == "entity" else sorted(rng.sample(range(len(words)), rng.randint(0, 2)))
        spans = [TaskSpan(i, i, starts[i], starts[i] + len(words[i]), rng.choice(labels), 0.5) for i in places]
        tokens = [(start, start + len(word), True) for start, word in zip(starts, words, strict=True)]
        yield replace(
            task,
            text=" ".join(words),
            focus=words[places[0]] if places else "",
            tokens=tokens,
            spans=spans,
            doc=number // 2,
            rank=number + 1,
            drawn="random",
            each_asked=each_asked,
        )


@pytest.mark.parametrize("tool", EXPORTS)
@pytest.mark.parametrize("kind", ["entity", "sentence"])
def test_no_span_is_lost_on_the_way(tool, kind, tmp_path):
    tasks = list(many_tasks(kind))
    queue = tmp_path / "queue"
    queue.write_text("".join(WRITERS[tool](tasks)), encoding="utf8")
    answers = read_answers(
        answer(tool, queue, lambda record: json.dumps(record).count("P") % 3 > 0 or kind == "sentence", tmp_path / "a.json")
    )
    assert len(answers) == N
    rejected = 0
    for task, found in zip(tasks, answers, strict=True):
        assert found.text == task.text
        assert list(found.spans) == [Mark(one.start, one.end, one.label) for one in task.spans]
        assert found.whole is (kind == "sentence")
        assert (found.meta["drawn"], found.meta["doc"]) == ("random", task.doc)
        rejected += not all(found.spans.values())
    assert rejected > N / 10 if kind == "entity" else rejected == 0


@pytest.mark.parametrize("tool", EXPORTS)
def test_no_category_is_lost_on_the_way(tool, tmp_path):
    """Prodigy asks about one of them; what the others export says what it is."""
    tasks = []
    for number, task in enumerate(many_tasks("sentence")):
        span = TaskSpan(0, 0, 0, len(task.text), "film" if number % 3 else "food", 0.5)
        tasks.append(replace(task, unit="document", labelled=True, spans=[span], sentence=None))
    queue = tmp_path / "queue"
    queue.write_text("".join(WRITERS[tool](tasks)), encoding="utf8")
    answers = read_answers(answer(tool, queue, lambda record: True, tmp_path / "a.json"))
    assert [one.text for one in answers] == [task.text for task in tasks]
    assert [{name for name, has in one.cats.items() if has} for one in answers] == [{task.spans[0].label} for task in tasks]
    assert {one.whole for one in answers} == {tool != "prodigy"}
    assert {one.meta["drawn"] for one in answers} == {"random"}


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_whole_text_of_links_names_those_that_are_gone(tool, tmp_path):
    tasks = list(many_tasks("sentence", ["Q42", "New Rome (band)"], each_asked=True))
    queue = tmp_path / "queue"
    queue.write_text("".join(WRITERS[tool](tasks)), encoding="utf8")
    # Of Prodigy the spans are taken out: a rejected text does not say which of several is wrong.
    given = [
        {**record, "spans": []} if "spans" in record and number % 2 else record
        for number, record in enumerate(records_in(queue))
    ]
    gone = {parts_of(record)[0] for record in given[1::2]}
    write(queue, given, array=tool in ARRAYS)
    found = read_answers(
        answer(tool, queue, lambda record: tool == "prodigy" or parts_of(record)[0] not in gone, tmp_path / "a.json")
    )
    assert len(found) == N
    for task, one in zip(tasks, found, strict=True):
        assert one.spans == {Mark(span.start, span.end, span.label): task.text not in gone for span in task.spans}
        assert one.whole
    assert sum(len(one.spans) for one in found if one.text in gone) > N / 3


def test_argilla_of_version_1_loses_no_span_either(tmp_path):
    tasks = list(many_tasks("sentence"))
    old = [
        {
            "id": i,
            "text": task.text,
            "status": "Validated",
            "annotation": [[one.label, one.start, one.end] for one in task.spans],
            "metadata": {},
        }
        for i, task in enumerate(tasks)
    ]
    found = read_answers(write(tmp_path / "a.json", old, array=True))
    assert [list(one.spans) for one in found] == [[Mark(one.start, one.end, one.label) for one in task.spans] for task in tasks]
    assert all(one.whole for one in found)


TEXT = "Anna met Bob in Rome"
ANNA, BOB = {"start": 0, "end": 4, "label": "P"}, {"start": 9, "end": 12, "label": "P"}


CHOSEN = {"type": "choices", "value": {"choices": ["b"]}}
TOKENS = [
    {"text": text, "start": start, "end": start + len(text)} for text, start in (("Hi", 0), ("Anna", 4), ("Lee", 9))
]  # fmt: skip


def region(start, end, labels, text=None):
    """A marked stretch of Label Studio."""
    return {"type": "labels", "value": {"start": start, "end": end, "text": text or TEXT[start:end], "labels": labels}}


def studio(result, data=None):
    return {"data": data or {"text": TEXT}, "annotations": [{"result": result}]}


def argilla(text, value):
    return {"fields": {"text": text}, "metadata": {}, "responses": {"label": [{"value": value, "status": "submitted"}]}}


@pytest.mark.parametrize(
    ("records", "spans", "cats", "whole"),
    [
        # Of one span at a time, as `ner.teach` asks; old exports name no view, and are told by their rejects.
        ([{"text": TEXT, "spans": [ANNA], "answer": "accept", "_view_id": "ner"}], {"Anna": True}, {}, False),
        (
            [{"text": TEXT, "spans": [ANNA], "answer": "reject"}, {"text": TEXT, "spans": [BOB], "answer": "accept"}],
            {"Anna": False, "Bob": True},
            {},
            False,
        ),
        (
            [{"text": TEXT, "spans": [ANNA, BOB], "answer": "accept", "_view_id": "ner_manual"}],
            {"Anna": True, "Bob": True},
            {},
            True,
        ),
        # The entity that our queue asked for was given another end.
        (
            [{"text": TEXT, "spans": [{**ANNA, "end": 8}], "answer": "accept", "meta": {"unit": "entity", "asked": "0 4 P"}}],
            {"Anna met": True, "Anna": False},
            {},
            False,
        ),
        ([{"text": TEXT, "label": "sport", "answer": "reject"}], {}, {"sport": False}, False),
        (
            [{"text": TEXT, "options": [{"id": 1, "text": "x"}, {"id": 2, "text": "y"}], "accept": [2], "answer": "accept"}],
            {},
            {"1": False, "2": True},
            True,
        ),
        (
            [
                {
                    "id": 1,
                    "text": TEXT,
                    "entities": [{"id": 3, "label": "P", "start_offset": 0, "end_offset": 4}],
                    "relations": [],
                }
            ],
            {"Anna": True},
            {},
            True,
        ),
        ([{"id": 1, "text": TEXT, "labels": [[0, 4, "P"]]}], {"Anna": True}, {}, True),
        (
            [{"id": 1, "text": TEXT, "label": ["a"]}, {"id": 2, "text": "else", "label": ["b"]}],
            {},
            {"a": True, "b": False},
            True,
        ),
        ([{"id": 1, "text": TEXT, "annotation": "a", "status": "Validated"}], {}, {"a": True}, True),
        # One label as a text is one label.
        ([{"id": 1, "text": TEXT, "label": "sport"}], {}, {"sport": True}, True),
        ([{"text": TEXT, "options": [{"id": "ab"}], "accept": "ab", "answer": "accept"}], {}, {"ab": True}, True),
        ([studio([region(0, 4, "ORG")])], {"Anna": True}, {}, True),
        ([studio([{"type": "choices", "value": {"choices": "sport"}}])], {}, {"sport": True}, True),
        # In a file of categories an empty list says that the text has none.
        ([{"id": 1, "text": TEXT, "label": []}, {"id": 2, "text": "else", "label": ["b"]}], {}, {"b": False}, True),
        ([studio([]), studio([{"type": "choices", "value": {"choices": ["b"]}}], {"text": "else"})], {}, {"b": False}, True),
        ([argilla(TEXT, []), argilla("else", ["b", "c"])], {}, {"b": False, "c": False}, True),
        # Label Studio shows the field that has the marked words, or whose name the interface says.
        ([studio([region(0, 4, ["P"])], {"id": "Ann", "body": TEXT})], {"Anna": True}, {}, True),
        ([studio([region(0, 4, ["P"])], {"text": "Title", "body": TEXT})], {"Anna": True}, {}, True),
        ([{**studio([{**CHOSEN, "to_name": "body"}], {"id": "x", "body": TEXT})}], {}, {"b": True}, True),
        # The words of Prodigy's tokens are where they were before the line end changed.
        (
            [{"text": "Hi\nAnna Lee", "tokens": TOKENS, "spans": [{"start": 4, "end": 12, "label": "P"}], "answer": "accept"}],
            {"Anna Lee": True},
            {},
            True,
        ),
    ],
)
def test_forms_of_the_tools(records, spans, cats, whole, tmp_path):
    found = read_answers(write(tmp_path / "a.jsonl", records))[0]
    assert {found.text[mark.start : mark.end]: right for mark, right in found.spans.items()} == spans
    assert (found.cats, found.whole) == (cats, whole)


def test_label_studio_takes_the_last_annotation_that_stands_and_counts_as_a_browser_does(tmp_path):
    def told(*names, cancelled=False):
        bounds = {"😀 Anna": (0, 7), "Bob": (12, 15)}
        result = [
            {"type": "labels", "value": {"start": bounds[n][0], "end": bounds[n][1], "text": n, "labels": ["P"]}} for n in names
        ]
        return {"result": result, "was_cancelled": cancelled}

    task = {"data": {"text": "😀 Anna met Bob"}, "annotations": [told("Bob"), told("😀 Anna", "Bob"), told(cancelled=True)]}
    found = read_answers(write(tmp_path / "a.json", [task], array=True))[0]
    assert list(found.spans) == [Mark(0, 6, "P"), Mark(11, 14, "P")]


RIGHT = {"text": TEXT, "spans": [ANNA], "answer": "accept", "_view_id": "ner_manual"}
STUDIO = {"data": {"text": TEXT}, "annotations": [{"result": []}]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (json.dumps(RIGHT) + "\n" + json.dumps(RIGHT)[:40], "line 2 is no JSON, or cut off"),
        (json.dumps([STUDIO, STUDIO])[:-9], "it is no JSON, or cut off"),
        ('{"text": "only a text"}', "Line 1 of .* is no answer that Prodigy"),
        ('{"text": "a queue of ours", "label": [[0, 1, "P"]], "meta": {}}', "Line 1 of .* is no answer that Prodigy"),
        (json.dumps(RIGHT) + "\n" + json.dumps(STUDIO), "line 2 of .* is of Label Studio, not of Prodigy"),
        (json.dumps([{**STUDIO, "project": 1}, {**STUDIO, "project": 2}]), r"of two projects: numbers \[1, 2\]"),
        (
            json.dumps(RIGHT) + "\n" + json.dumps({"text": "b", "label": "x", "answer": "accept"}),
            r"two projects: spans \(line 1\) and categories \(line 2\)",
        ),
        (json.dumps({**RIGHT, "spans": [{**ANNA, "end": 99}]}), "goes from character 0 to 99, but its text has 20"),
        (json.dumps({**RIGHT, "spans": [{**ANNA, "start": 4, "end": 5}]}), "nothing but white space"),
        (json.dumps({**RIGHT, "spans": [{"start": 0, "end": 4}]}), r"line 1 is not as Prodigy writes it \(KeyError: 'label'\)"),
        (json.dumps({**RIGHT, "answer": "ignore"}), "Nobody answered anything"),
        (json.dumps([{**STUDIO, "annotations": []}]), "Nobody answered anything"),
        ("[1]", "is no JSON, or cut off"),
        (json.dumps({"text": 5, "label": "x", "answer": "accept"}), "line 1 is not as Prodigy writes it"),
        (json.dumps({"text": ["x"], "label": "x", "answer": "accept"}), "line 1 is not as Prodigy writes it"),
        (json.dumps({"text": "a \ud800", "label": "x", "answer": "accept"}), "line 1 is not as Prodigy writes it"),
        (json.dumps({"text": "a", "label": "x\ud800", "answer": "accept"}), "line 1 is not as Prodigy writes it"),
        (json.dumps({"text": "a", "label": "x", "answer": "accept", "meta": 2}), "line 1 is not as Prodigy writes it"),
        (json.dumps({**RIGHT, "spans": [{**ANNA, "label": "\udc80"}]}), "line 1 is not as Prodigy writes it"),
        (json.dumps({**RIGHT, "meta": {"drawn": "\ud800"}}), "line 1 is not as Prodigy writes it"),
        (json.dumps({**RIGHT, "meta": {"drawn": 1 << 63}}), "neither a text nor a number of at most 64 bits"),
        (json.dumps({**RIGHT, "meta": {"drawn": [0.5]}}), "neither a text nor a number of at most 64 bits"),
        (
            json.dumps([studio([region(0, 4, ["P"], "Bob")])]),
            r"\[C785\].*marked 'Bob' in record 1, but characters 0 to 4 of its text are 'Anna'",
        ),
        (json.dumps([studio([CHOSEN], {"title": "a", "body": TEXT})]), r"\[C786\].*several fields with text \(title, body\)"),
        (
            json.dumps([{"fields": {"title": "a", "body": TEXT}, "responses": {"label": [{"value": "x"}]}}]),
            r"\[C786\].*several fields with text \(title, body\)",
        ),
    ],
)
def test_bad_files_are_refused_in_a_sentence(text, sentence, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CalibError, match=sentence) as told:
        read_answers(tmp_path / "a.json")
    assert "\n" not in str(told.value)


def test_what_was_said_later_counts():
    first, second = (
        TextAnswers("a b", {Mark(0, 1, "P"): True}),
        TextAnswers("a b", {Mark(0, 1, "P"): False, Mark(2, 3, "Q"): True}),
    )
    assert first.joined(second).spans == {Mark(0, 1, "P"): False, Mark(2, 3, "Q"): True}
    assert first.joined(TextAnswers("a b", whole=True)).spans == {}
    doubtful, random = (replace(first, meta={"drawn": drawn}) for drawn in ("doubt", "random"))
    assert [one.joined(other).meta["drawn"] for one, other in ((doubtful, random), (random, doubtful), (random, first))] == [
        *["doubt"] * 2, "random",
    ]  # fmt: skip


def test_texts_whose_marks_are_elsewhere_are_left_out_and_counted(tmp_path):
    moved = studio([region(0, 4, ["P"]), region(5, 8, ["P"], "Bob")], {"text": "Anna saw Bob"})
    file = write(tmp_path / "a.json", [studio([region(0, 4, ["P"])]), moved], array=True)
    with pytest.warns(
        UserWarning, match=r"\[CW61\] 1 of the 2 answered texts .*record 2 the tool marked 'Bob', but .* are 'saw'"
    ):
        assert [one.text for one in read_answers(file)] == [TEXT]


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_queue_whose_line_ends_the_tool_changed_is_answered_as_it_was_asked(tool, tmp_path):
    """The text comes back with "\n", and with the place of the entity there."""
    (task, *_) = many_tasks("entity")
    text = "Hi\r\nAnna Lee"
    task = replace(task, text=text, focus="Anna Lee", tokens=[], spans=[TaskSpan(1, 2, 4, 12, "P", 0.5)])
    (tmp_path / "queue").write_text("".join(WRITERS[tool]([task])), encoding="utf8")
    changed = json.dumps(records_in(tmp_path / "queue")[0]).replace("\\r", "").replace('"start": 4', '"start": 3')
    record = json.loads(changed.replace('"end": 12', '"end": 11').replace("[4, 12", "[3, 11"))
    file = write(tmp_path / "a.json", [EXPORTS[tool](1, record, True)], array=tool in ARRAYS)
    assert read_answers(file)[0].spans == {Mark(3, 11, "P"): True}
