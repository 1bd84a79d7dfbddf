"""What people answer to a queue, in the form of each tool, is read as gold, and becomes gold Docs."""

import json
import random
from dataclasses import replace

import pytest
from spacy.strings import get_string_id
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_calib.annotations import get_annotation
from spacy_calib.annotations.span_events import span_hits
from spacy_calib.gold.answer_files import read_answers
from spacy_calib.gold.answered_docs import answered_docs
from spacy_calib.gold.tool_exports import TextSpan
from spacy_calib.plugins.review.queue.formats import WRITERS
from spacy_calib.plugins.review.queue.tasks import TaskSpan
from tests.answers import ARRAYS, EXPORTS, answer, parts_of, records_in, write
from tests.gold.test_answered_docs import predicted
from tests.plugins.links_made import linking
from tests.plugins.review.queue.corpora import small
from tests.plugins.review.queue.test_tasks import tasks as tasks_in

N = 1000


def many_tasks(kind, labels="PQ", asks_each_span=False):
    """Tasks of N texts, of one entity each, or of a sentence with several."""
    rng, (task, *_) = random.Random(0), tasks_in(small(), kind)
    for number in range(N):
        words = [rng.choice(["Ünï", "a", "code😀", "red"]) for _ in range(rng.randint(2, 9))] + [str(number)]
        starts = [sum(len(word) + 1 for word in words[:i]) for i in range(len(words))]
        places = [rng.randrange(len(words))] if kind == "entity" else sorted(rng.sample(range(len(words)), rng.randint(0, 2)))
        spans = [TaskSpan(i, i, starts[i], starts[i] + len(words[i]), rng.choice(labels), 0.5) for i in places]
        tokens = [(start, start + len(word), True) for start, word in zip(starts, words, strict=True)]
        yield replace(
            task, text=" ".join(words), focus=words[places[0]] if places else "", tokens=tokens, spans=spans, doc=number // 2,
            rank=number + 1, sampling="random", asks_each_span=asks_each_span,
        )  # fmt: skip


def answers_to(tool, tasks, right, folder):
    """The file of answers to a queue of these tasks, in the form of a tool."""
    (folder / "queue").write_text("".join(WRITERS[tool](tasks)), encoding="utf8")
    return answer(tool, folder / "queue", right, folder / "a.json")


@pytest.mark.parametrize("tool", EXPORTS)
@pytest.mark.parametrize("kind", ["entity", "sentence"])
def test_no_span_is_lost_on_the_way(tool, kind, tmp_path):
    tasks = list(many_tasks(kind))
    right = lambda record: json.dumps(record).count("P") % 3 > 0 or kind == "sentence"  # noqa: E731
    answers = read_answers(answers_to(tool, tasks, right, tmp_path))
    assert len(answers) == N
    rejected = 0
    for task, found in zip(tasks, answers, strict=True):
        assert found.text == task.text
        assert list(found.spans) == [TextSpan(one.start, one.end, one.label) for one in task.spans]
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
        tasks.append(replace(task, unit="document", has_one_label=True, spans=[span], sentence=None))
    answers = read_answers(answers_to(tool, tasks, lambda record: True, tmp_path))
    assert [one.text for one in answers] == [task.text for task in tasks]
    assert [{name for name, has in one.cats.items() if has} for one in answers] == [{task.spans[0].label} for task in tasks]
    assert {one.whole for one in answers} == {tool != "prodigy"}
    assert {one.meta["drawn"] for one in answers} == {"random"}


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_whole_text_of_links_names_those_that_are_gone(tool, tmp_path):
    tasks = list(many_tasks("sentence", ["Q42", "New Rome (band)"], asks_each_span=True))
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
        assert one.spans == {TextSpan(span.start, span.end, span.label): task.text not in gone for span in task.spans}
        assert one.whole
    assert sum(len(one.spans) for one in found if one.text in gone) > N / 3


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
    assert read_answers(file)[0].spans == {TextSpan(3, 11, "P"): True}


@pytest.mark.parametrize("tool", EXPORTS)
def test_no_link_is_lost_on_the_way(tool, tmp_path):
    names = ["Georgia-place", "Amazon-firm", "NIL", "New Rome (band)"]
    tasks = list(many_tasks("entity", names))
    right = {task.text: number % 3 > 0 for number, task in enumerate(tasks)}
    file = answers_to(tool, tasks, lambda record: right[parts_of(record)[0]], tmp_path)
    held = DocBin(docs=answered_docs(linking(), file), store_user_data=True).to_bytes()
    docs = list(DocBin().from_bytes(held).get_docs(Vocab()))
    link = get_annotation("link")
    assert len(docs) == len(tasks) == 1000
    for task, gold in zip(tasks, docs, strict=True):
        (asked,) = task.spans
        (entity,) = predicted(gold, TextSpan(asked.start, asked.end, "NAME")).predicted.ents[:1]
        found = predicted(gold, TextSpan(asked.start, asked.end, "NAME"))
        spans = [(entity.start, entity.end, get_string_id(asked.label))]
        assert span_hits(found, link, spans, "link").tolist() == [int(right[task.text])]
        assert [one.kb_id_ for one in gold.ents] == ([asked.label] if right[task.text] else [])
