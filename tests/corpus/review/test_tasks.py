"""Units as tasks: text, marks, reasons."""

import numpy as np
import pytest

from spacy_calib.corpus.review.tasks import tasks_of
from spacy_calib.corpus.review.units import unit_doubts, units_of
from tests.corpora import corpus_of
from tests.corpus.review.corpora import DOCS, small


def tasks(corpus, kind, order=None):
    units = units_of(corpus, kind)
    doubt = unit_doubts(corpus, units)
    return list(tasks_of(corpus, units, doubt, np.arange(len(units)) if order is None else np.array(order)))


def test_a_token_in_its_sentence():
    task = tasks(small(), "token")[1]
    assert task.text == "My fish swim"
    assert task.tokens == [(0, 2, True), (3, 7, True), (8, 12, True)]
    assert [tuple(mark) for mark in task.spans] == [(1, 1, 3, 7, "N", 0.6)]
    assert (task.focus, task.doc, task.sentence, task.rank) == ("fish", 0, 0, 2)
    assert task.alternatives == {"N": 0.6, "V": 0.4}
    assert (task.gold, task.right) == ("V", False)
    assert task.doubt == pytest.approx(0.4)


def test_white_space_around_a_sentence_is_no_part_of_its_text():
    task = tasks(small(), "token")[3]
    assert (task.text, task.tokens, task.spans[0].start) == ("Yes", [(0, 3, True)], 0)
    assert task.right is None


def test_ranks_follow_the_order():
    assert [(task.rank, task.focus) for task in tasks(small(), "token", [5, 0])] == [(1, "can"), (2, "My")]


def test_a_sentence_is_marked_with_its_entities():
    first, _, last = tasks(small(), "sentence")
    assert [(mark.label, first.text[mark.start : mark.end]) for mark in first.spans] == [("ORG", "fish swim")]
    assert [(mark.label, last.text[mark.start : mark.end], mark.score) for mark in last.spans] == [("PER", "Ann", 0.8)]


def test_a_sentence_without_entities_is_marked_with_its_labels():
    first, *_ = tasks(corpus_of(DOCS), "sentence")
    assert [(mark.label, first.text[mark.start : mark.end]) for mark in first.spans] == [
        ("D", "My"),
        ("N", "fish"),
        ("V", "swim"),
    ]


def test_tokens_outside_of_entities_are_not_marked():
    (only,) = tasks(corpus_of([[[("a", "O", {"O": 0.9}), ("b", "PER", {"PER": 0.5})]]]), "sentence")
    assert [mark.label for mark in only.spans] == ["PER"]


def test_an_entity_over_two_sentences_has_both_as_its_text():
    sentences = [[("a", "X", {"X": 0.9}), ("b", "X", {"X": 0.9})], [("c", "X", {"X": 0.9}), ("d", "X", {"X": 0.9})]]
    (only,) = tasks(corpus_of([sentences], [(0, 1, 3, "PER", 0.5)]), "entity")
    assert only.text == "a b c d"
    assert only.focus == "b c"
    assert only.spans[0][:4] == (1, 2, 2, 5)


@pytest.mark.parametrize("kind", ["token", "sentence", "entity"])
def test_offsets_cut_the_text_into_its_tokens(kind):
    for task in tasks(small(), kind):
        assert task.text == "".join(task.text[start:end] + " " * space for start, end, space in task.tokens).rstrip()
        for mark in task.spans:
            assert (task.tokens[mark.first][0], task.tokens[mark.last][1]) == (mark.start, mark.end)
