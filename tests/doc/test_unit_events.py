"""Questions about units of a Doc, asked of made-up Docs with gold."""

from __future__ import annotations

import numpy as np
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.doc.events import (
    ArcEvent,
    EntityEvent,
    OwnEvent,
    SentenceEvent,
    SpansEvent,
    check_is_event,
)
from spacy_calib.errors import CalibError
from spacy_calib.registry import registry

WORDS = ["a", "b", "\n", "c", "d", "e"]
STARTS = [True, False, False, True, False, False]


@pytest.fixture
def example() -> Example:
    vocab = Vocab()
    heads = [1, 1, 1, 3, 3, 4]
    said = Doc(vocab, words=WORDS, sent_starts=STARTS, heads=heads, deps=["dep"] * 6)
    said.ents = [Span(said, 0, 2, "X"), Span(said, 4, 5, "Y")]
    said.spans["key"] = [Span(said, 3, 5, "S")]
    gold = Doc(vocab, words=WORDS, sent_starts=STARTS, heads=[1, 1, 1, 3, 5, 5], deps=["dep"] * 6)
    gold.ents = [Span(gold, 0, 2, "X"), Span(gold, 3, 5, "Y")]
    return Example(said, gold)


def asked(event, example, right=(1, 1, -1, 1, 0, 0)) -> list[int]:
    return event.judge(example, event.units(example.predicted), np.array(right)).tolist()


def test_a_sentence_is_right_where_all_its_labels_are(example):
    # The white space at the end of the first sentence has no gold, and does not matter.
    assert asked(SentenceEvent(), example) == [1, 0]
    assert asked(SentenceEvent(1), example) == [1, 0]
    assert asked(SentenceEvent(2), example) == [1, 1]


def test_a_word_without_gold_leaves_the_sentence_open(example):
    assert asked(SentenceEvent(), example, (1, -1, -1, 1, 1, 1)) == [-1, 1]


def test_what_is_asked_in_words():
    assert [SentenceEvent(k).what for k in (0, 1, 2)] == ["all labels right", "at most 1 label wrong", "at most 2 labels wrong"]


def test_of_spans_entities_and_arcs(example):
    assert asked(SpansEvent("key"), example) == [0]
    assert asked(SpansEvent("key", 1), example) == [1]
    assert asked(EntityEvent(), example) == [1, 0]
    assert asked(EntityEvent("overlap"), example) == [1, 1]
    # Heads as in the gold, but for the last two words.
    assert [one for i, one in enumerate(asked(ArcEvent(), example)) if i != 2] == [1, 1, 1, 0, 0]


def test_a_docs_own_function(example):
    first = OwnEvent(lambda doc: [doc[:1]], lambda eg, span: eg.reference[span.start].text == "a", "begins with a")
    assert asked(first, example) == [1]
    unknown = OwnEvent(lambda doc: [doc[:1]], lambda eg, span: None)
    assert asked(unknown, example) == [-1]


def test_docs_without_what_is_asked_about():
    bare = Doc(Vocab(), words=["a", "b"])
    events = (SentenceEvent(), SpansEvent("key"), EntityEvent(), ArcEvent())
    assert [len(event.units(bare)) for event in events] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("Sentence", {"max_errors": -1}), ("Entity", {"event": "nearly"}), ("Arc", {"event": "exact"})],
)
def test_a_setting_out_of_range(name, settings):
    with pytest.raises(CalibError, match="C001"):
        registry.resolve({"one": {"@calib_events": f"spacy-calib.{name}.v1", **settings}})


def test_a_function_that_makes_no_event():
    with pytest.raises(CalibError, match="C380.*str was given"):
        check_is_event("sentence")
