import numpy as np
import pytest

from spacy_calib.plugins.review.queue.choosing import Queue
from spacy_calib.plugins.review.queue.formats import to_record
from spacy_calib.plugins.review.queue.orders import token_doubts, unit_doubts
from spacy_calib.plugins.review.queue.tasks import tasks_of
from spacy_calib.plugins.review.queue.units import units_of
from tests.made import SMALL_CORPUS, corpus_of
from tests.plugins.review.queue.corpora import DOCS, SPANS, small


def queue_in(corpus, kind, order=None):
    units, values = units_of(corpus, kind), token_doubts(corpus, "calibrated")
    places = np.arange(len(units)) if order is None else np.array(order)
    return Queue(corpus, units, values, unit_doubts(corpus, units, "calibrated"), places, places, {})


def tasks(corpus, kind, order=None):
    return list(tasks_of(queue_in(corpus, kind, order)))


def test_a_token_in_its_sentence():
    task = tasks(small(), "token")[1]
    assert task.text == "My fish swim"
    assert task.tokens == [(0, 2, True), (3, 7, True), (8, 12, True)]
    assert [tuple(mark) for mark in task.spans] == [(1, 1, 3, 7, "N", 0.6)]
    assert (task.focus, task.doc, task.sentence, task.rank) == ("fish", 0, 0, 2)
    assert task.alternatives == {"N": 0.6, "V": 0.4}
    assert (task.gold, task.right) == ("V", False)
    assert task.priority == pytest.approx(0.4)


def test_white_space_around_a_sentence_is_no_part_of_its_text():
    task = tasks(small(), "token")[3]
    assert (task.text, task.tokens, task.spans[0].start) == ("Yes", [(0, 3, True)], 0)
    assert task.right is None


def test_white_space_at_the_ends_of_an_entity_is_no_part_of_its_mark():
    words = [("\n", "O", {"O": 0.9}), ("Ann", "O", {"O": 0.5}), ("Lee", "O", {"O": 0.5}), ("\n", "O", {"O": 0.9})]
    corpus = corpus_of(
        [[words], [[("\n", "O", {"O": 0.9})]]], [(0, 0, 2, "PER", 0.8), (0, 2, 4, "PER", 0.7), (1, 0, 1, "PER", 0.6)]
    )
    first, second, blank = tasks(corpus, "entity")
    assert (first.text, second.text, blank.text) == ("Ann Lee", "Ann Lee", "")
    assert [tuple(one) for one in (*first.spans, *second.spans)] == [(0, 0, 0, 3, "PER", 0.8), (1, 1, 4, 7, "PER", 0.7)]


def test_ranks_follow_the_order():
    assert [(task.rank, task.focus) for task in tasks(small(), "token", [5, 0])] == [(1, "can"), (2, "My")]


def test_a_sentence_is_marked_with_its_entities():
    first, _, last = tasks(corpus_of(DOCS, SPANS[::-1]), "sentence")
    assert [(mark.label, first.text[mark.start : mark.end]) for mark in first.spans] == [("ORG", "fish swim")]
    assert [(mark.label, last.text[mark.start : mark.end], mark.score) for mark in last.spans] == [("PER", "Ann", 0.8)]


def test_a_sentence_without_entities_is_marked_with_its_labels_other_than_outside():
    first, *_ = tasks(corpus_of(DOCS), "sentence")
    marks = [(mark.label, first.text[mark.start : mark.end]) for mark in first.spans]
    assert marks == [("D", "My"), ("N", "fish"), ("V", "swim")]
    (only,) = tasks(corpus_of([[[("a", "O", {"O": 0.9}), ("b", "PER", {"PER": 0.5})]]]), "sentence")
    assert [mark.label for mark in only.spans] == ["PER"]


def test_an_entity_over_two_sentences_has_both_as_its_text():
    sentences = [[("a", "X", {"X": 0.9}), ("b", "X", {"X": 0.9})], [("c", "X", {"X": 0.9}), ("d", "X", {"X": 0.9})]]
    (only,) = tasks(corpus_of([sentences], [(0, 1, 3, "PER", 0.5)]), "entity")
    assert only.text == "a b c d"
    assert only.focus == "b c"
    assert only.spans[0][:4] == (1, 2, 2, 5)


def rows_of(corpus, chosen, unit="sentence"):
    return [to_record(task) for task in tasks_of(queue_in(corpus, unit, chosen))]


def test_a_record_says_where_and_why():
    first, second = rows_of(corpus_of(SMALL_CORPUS), [2, 1])
    assert first == {
        "drawn": "doubt", "rank": 1, "unit": "sentence", "text": "w0 w1 \n x", "focus": "w0", "doc": 2, "origin": {}, "sentence": 0,
        "start": 0, "end": 4, "words": 3, "score": pytest.approx(0.6 * 0.6), "raw": pytest.approx(0.6**4), "priority": pytest.approx(0.64),
        "alternatives": {"A": 0.6, "B": pytest.approx(0.4)}, "gold": None, "right": None,
        "marks": [{"start": 0, "end": 2, "label": "A", "score": 0.6}, {"start": 3, "end": 5, "label": "A", "score": 0.6}],
    }  # fmt: skip
    assert (second["rank"], second["doc"], second["sentence"], second["start"], second["end"]) == (2, 0, 1, 2, 3)


def test_whole_docs_have_no_sentence():
    (row,) = rows_of(corpus_of(SMALL_CORPUS), [1], "document")
    assert (row["doc"], row["sentence"], row["start"], row["end"]) == (2, None, 0, 5)


def test_the_entities_of_a_sentence():
    corpus = corpus_of(SMALL_CORPUS, spans=[(0, 0, 2, "B", 0.3), (0, 2, 3, "A", 0.9), (2, 1, 2, "B", 0.5)])
    second, third = rows_of(corpus, [1, 2])
    assert second["marks"] == [{"start": 0, "end": 2, "label": "A", "score": 0.9}]
    assert [third["text"][one["start"] : one["end"]] for one in third["marks"]] == ["w1"]
