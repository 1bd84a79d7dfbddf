"""When a predicted span, a sentence or a Doc counts as right, by hand and against spaCy's own scorers."""

from __future__ import annotations

import random

import numpy as np
import pytest
import spacy
from spacy.scorer import Scorer, get_ner_prf
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.annotations import SpanAnnotation, get_annotation
from spacy_calib.annotations.span_events import EVENTS, GoldSpans, check_event, span_hits
from spacy_calib.errors import CalibError
from spacy_calib.plugins.events.questions import ArcEvent, EntityEvent, OwnEvent, SentenceEvent, SpansEvent, check_is_event
from spacy_calib.registry import registry
from tests.sentences import says

NER = get_annotation("ner")
SC = SpanAnnotation("sc")
VOCAB = spacy.blank("xx").vocab


def with_entities(words, entities=(), missing=(), spaces=None) -> Doc:
    """entities: (start, end, label) of each. missing: (start, end) of stretches without annotation; all others are outside."""
    doc = Doc(VOCAB, words=words, spaces=spaces)
    doc.set_ents([Span(doc, *entity) for entity in entities], missing=[Span(doc, *part) for part in missing], default="outside")
    return doc


def with_spans(words, spans, spaces=None) -> Doc:
    doc = Doc(VOCAB, words=words, spaces=spaces)
    doc.spans["sc"] = [Span(doc, *span) for span in spans]
    return doc


def keys(*spans) -> list[tuple[int, int, int]]:
    return [(start, end, get_string_id(label)) for start, end, label in spans]


def hits(example, layer, spans, event="exact") -> list[int]:
    return span_hits(example, layer, keys(*spans), event).tolist()


WORDS = ["a", "b", "c", "d", "e", "f"]


def same_words(entities, missing=()) -> Example:
    return Example(Doc(VOCAB, words=WORDS), with_entities(WORDS, entities, missing))


@pytest.mark.parametrize(
    ("span", "exact", "type_", "overlap"),
    [
        ((1, 3, "PER"), 1, 1, 1),
        ((1, 2, "PER"), 0, 1, 1),  # a part of it
        ((1, 4, "PER"), 0, 0, 1),  # beyond it
        ((0, 1, "PER"), 0, 0, 0),  # beside it
        ((1, 3, "LOC"), 0, 0, 0),  # another label
        ((1, 5, "LOC"), 0, 0, 1),  # reaches the LOC at 4
        ((4, 5, "LOC"), 1, 1, 1),
        ((0, 6, "PER"), 0, 0, 1),
        ((0, 6, "ORG"), 0, 0, 0),  # a label that the gold never has
    ],
)
def test_events_by_hand(span, exact, type_, overlap):
    example = same_words([(1, 3, "PER"), (4, 5, "LOC")])
    assert [hits(example, NER, [span], event) for event in ("exact", "type", "overlap")] == [[exact], [type_], [overlap]]


@pytest.mark.parametrize(
    ("gold", "span", "exact", "article"),
    [
        ((1, 3, "ORG"), (0, 3, "ORG"), 0, 1),  # "The European Union" where the gold has "European Union"
        ((0, 3, "ORG"), (1, 3, "ORG"), 0, 1),  # and the other way round
        ((0, 3, "ORG"), (0, 3, "ORG"), 1, 1),
        ((0, 3, "ORG"), (0, 3, "LOC"), 0, 0),  # another label
        ((0, 3, "ORG"), (0, 2, "ORG"), 0, 0),  # another end
        ((2, 3, "ORG"), (1, 3, "ORG"), 0, 0),  # another word at the beginning
        ((0, 1, "ORG"), (0, 1, "ORG"), 1, 1),  # an article alone stays
    ],
)
def test_a_leading_article_may_be_missing_or_too_much(gold, span, exact, article):
    words = ["The", "European", "Union", "met"]
    example = Example(Doc(VOCAB, words=words), with_entities(words, [gold]))
    assert [hits(example, NER, [span], event) for event in ("exact", "article")] == [[exact], [article]]


def test_adjacent_entities_of_one_label_are_two():
    example = same_words([(1, 2, "PER"), (2, 4, "PER")])
    both = [(1, 2, "PER"), (2, 4, "PER"), (1, 4, "PER"), (2, 3, "PER")]
    assert hits(example, NER, both, "exact") == [1, 1, 0, 0]
    assert hits(example, NER, both, "type") == [1, 1, 1, 1]
    assert hits(example, NER, [(0, 2, "PER"), (4, 6, "PER")], "overlap") == [1, 0]


def test_a_span_that_touches_missing_gold_takes_no_part():
    example = same_words([(1, 2, "PER")], missing=[(2, 4)])
    spans = [(1, 2, "PER"), (1, 3, "PER"), (2, 3, "PER"), (3, 5, "LOC"), (4, 6, "LOC")]
    for event in EVENTS:
        assert hits(example, NER, spans, event) == [1, -1, -1, -1, 0]


def test_gold_without_entities_is_known_but_gold_without_annotation_is_not():
    spans = [(0, 1, "PER"), (1, 6, "LOC")]
    assert hits(same_words([]), NER, spans) == [0, 0]
    assert hits(same_words([]), NER, []) == []
    assert hits(Example(Doc(VOCAB, words=WORDS), Doc(VOCAB, words=WORDS)), NER, spans) == [-1, -1]
    assert hits(Example(Doc(VOCAB, words=WORDS), Doc(VOCAB, words=WORDS)), SC, spans) == [-1, -1]
    assert hits(Example(Doc(VOCAB, words=WORDS), with_spans(WORDS, [])), SC, spans) == [0, 0]


def test_overlapping_gold_spans():
    example = Example(Doc(VOCAB, words=WORDS), with_spans(WORDS, [(0, 3, "NP"), (1, 2, "N"), (2, 5, "NP"), (1, 2, "ADJ")]))
    spans = [(0, 3, "NP"), (2, 5, "NP"), (0, 5, "NP"), (1, 2, "N"), (1, 2, "ADJ"), (1, 2, "NP"), (1, 3, "N"), (5, 6, "NP")]
    assert hits(example, SC, spans, "exact") == [1, 1, 0, 1, 1, 0, 0, 0]
    assert hits(example, SC, spans, "type") == [1, 1, 1, 1, 1, 1, 0, 0]
    assert hits(example, SC, spans, "overlap") == [1, 1, 1, 1, 1, 1, 1, 0]


def test_gold_with_other_tokens():
    # predicted: in | New York | - | City | !      gold: in | New | York-City | !
    predicted = Doc(VOCAB, words=["in", "New York", "-", "City", "!"], spaces=[True, False, False, False, False])
    reference = with_entities(
        ["in", "New", "York-City", "!"], [(1, 3, "GPE")], missing=[(3, 4)], spaces=[True, True, False, False]
    )
    example = Example(predicted, reference)
    spans = [(1, 4, "GPE"), (0, 4, "GPE"), (0, 1, "GPE"), (3, 4, "GPE"), (3, 5, "GPE")]
    assert hits(example, NER, spans, "exact") == [1, 0, 0, 0, -1]
    assert hits(example, NER, spans, "type") == [1, 0, 0, 1, -1]
    assert hits(example, NER, spans, "overlap") == [1, 1, 0, 1, -1]


def test_part_of_a_gold_token_is_not_the_span():
    """Each half of "New York" was called exactly right where the gold holds both in one token: spaCy's scorer compares the text."""
    predicted = Doc(VOCAB, words=["New", "York", "fell"], spaces=[False, True, False])
    example = Example(predicted, with_entities(["NewYork", "fell"], [(0, 1, "GPE")], spaces=[True, False]))
    spans = [(0, 1, "GPE"), (1, 2, "GPE"), (0, 2, "GPE")]
    assert hits(example, NER, spans, "exact") == [0, 0, 1]
    assert hits(example, NER, spans, "type") == [1, 1, 1]
    assert hits(example, NER, spans, "overlap") == [1, 1, 1]


def test_tokens_that_cross_each_other_are_not_the_same_span():
    """ "ab" was called exactly right where the gold span is "abc": both align with the gold tokens "a" and "bc"."""
    example = Example(
        Doc(VOCAB, words=["ab", "c"], spaces=[False, False]), with_spans(["a", "bc"], [(0, 2, "X")], spaces=[False, False])
    )
    assert hits(example, SC, [(0, 1, "X"), (0, 2, "X")], "exact") == [0, 1]


def test_a_span_that_no_gold_token_aligns_with_takes_no_part():
    example = Example(
        Doc(VOCAB, words=["a", "\n", "b"], spaces=[False, False, False]),
        with_entities(["a", "b"], [(0, 1, "PER")], spaces=[True, False]),
    )
    assert hits(example, NER, [(1, 2, "PER"), (0, 1, "PER"), (2, 3, "PER")]) == [-1, 1, 0]


def test_unknown_event():
    assert [check_event(event) for event in ("exact", "article", "type", "overlap")] == list(EVENTS)
    with pytest.raises(
        CalibError, match=r"\[C001\] event must be one of exact, article, type, overlap, but 'strict' was given"
    ):
        check_event("strict")
    with pytest.raises(CalibError, match="C001"):
        span_hits(same_words([]), NER, [], "strict")


def test_tokens_covered_by_a_label():
    gold = GoldSpans.from_doc(with_spans(WORDS, [(0, 2, "A"), (1, 3, "A"), (4, 5, "B")]), SC)
    assert gold.covered_tokens(get_string_id("A")) == {0, 1, 2}
    assert gold.covered_tokens(get_string_id("B")) == {4}
    assert gold.covered_tokens(get_string_id("C")) == set()


# Against spaCy, on texts whose tokens are drawn anew for the predicted and the gold Doc.


def draw_words(rng, text, cut) -> list[str]:
    """The text cut into words; each place is a border with probability `cut`."""
    words = [text[0]]
    for letter in text[1:]:
        if rng.random() < cut:
            words.append(letter)
        else:
            words[-1] += letter
    return words


def glue(rng, words) -> list[str]:
    """Some neighbours as one word."""
    glued = [words[0]]
    for word in words[1:]:
        if rng.random() < 0.3:
            glued[-1] += word
        else:
            glued.append(word)
    return glued


def draw_entities(rng, n) -> list[tuple[int, int, str]]:
    entities, at = [], 0
    while at < n:
        end = min(n, at + rng.randint(1, 3))
        if rng.random() < 0.6:
            entities.append((at, end, rng.choice(["PER", "LOC"])))
        at = end
    return entities


def draw_spans(rng, n) -> list[tuple[int, int, str]]:
    starts = [rng.randrange(n) for _ in range(rng.randint(0, 5))]
    return sorted({(start, min(n, start + rng.randint(1, 3)), rng.choice(["NP", "N"])) for start in starts})


def test_exact_entities_are_the_true_positives_of_spacys_ner_scorer():
    rng = random.Random(0)
    examples, found, n_gold = [], [], 0
    for _ in range(800):
        gold_words = draw_words(rng, "abcdefgh", 0.7)
        gold = with_entities(gold_words, draw_entities(rng, len(gold_words)), spaces=[False] * len(gold_words))
        if rng.random() < 0.5:
            at = rng.randrange(len(gold))
            gold.set_ents([], missing=[gold[at : at + 1]], default="unmodified")
        n_gold += len(gold.ents)
        # Words that hold several gold words: of parts of gold words spaCy's two scorers think differently, see below.
        words = glue(rng, gold_words)
        example = Example(with_entities(words, draw_entities(rng, len(words)), spaces=[False] * len(words)), gold)
        examples.append(example)
        found += span_hits(example, NER, [(e.start, e.end, e.label) for e in example.predicted.ents], "exact").tolist()
    right, wrong, ignored = found.count(1), found.count(0), found.count(-1)
    assert min(right, wrong, ignored) > 30
    scores = get_ner_prf(examples)
    assert scores["ents_p"] == pytest.approx(right / (right + wrong))
    assert scores["ents_r"] == pytest.approx(right / n_gold)


@pytest.mark.parametrize("cut", [1.0, 0.6], ids=["same words", "other words"])
def test_exact_spans_are_the_true_positives_of_spacys_span_scorer(cut):
    rng = random.Random(1)
    right = n_gold = 0
    examples = []
    for _ in range(300):
        both = [draw_words(rng, "abcdef", cut) for _ in range(2)]
        predicted, gold = (with_spans(words, draw_spans(rng, len(words)), spaces=[False] * len(words)) for words in both)
        example = Example(predicted, gold)
        examples.append(example)
        n_gold += len(gold.spans["sc"])
        own = [(s.start, s.end, s.label) for s in predicted.spans["sc"]]
        right += span_hits(example, SC, own, "exact").tolist().count(1)
    assert right > 50
    scores = Scorer.score_spans(
        examples, "spans_sc", getter=lambda doc, _: doc.spans["sc"], has_annotation=lambda doc: True, allow_overlap=True,
        labeled=True,
    )  # fmt: skip
    assert scores["spans_sc_r"] == pytest.approx(right / n_gold)


OF_UNITS = ["a", "b", "\n", "c", "d", "e"]
STARTS = [True, False, False, True, False, False]


@pytest.fixture
def example() -> Example:
    vocab = Vocab()
    heads = [1, 1, 1, 3, 3, 4]
    said = Doc(vocab, words=OF_UNITS, sent_starts=STARTS, heads=heads, deps=["dep"] * 6)
    said.ents = [Span(said, 0, 2, "X"), Span(said, 4, 5, "Y")]
    said.spans["key"] = [Span(said, 3, 5, "S")]
    gold = Doc(vocab, words=OF_UNITS, sent_starts=STARTS, heads=[1, 1, 1, 3, 5, 5], deps=["dep"] * 6)
    gold.ents = [Span(gold, 0, 2, "X"), Span(gold, 3, 5, "Y")]
    return Example(said, gold)


def asked(event, example, right=(1, 1, -1, 1, 0, 0)) -> list[int]:
    return event.judge(example, event.units(example.predicted), np.array(right)).tolist()


def test_a_sentence_is_right_where_all_its_labels_are(example):
    # The white space at the end of the first sentence has no gold, and does not matter.
    assert asked(SentenceEvent(), example) == [1, 0]
    assert asked(SentenceEvent(1), example) == [1, 0]
    assert asked(SentenceEvent(2), example) == [1, 1]
    # A word without gold leaves the sentence open.
    assert asked(SentenceEvent(), example, (1, -1, -1, 1, 1, 1)) == [-1, 1]


@pytest.mark.parametrize(("k", "words"), [(0, "all labels right"), (1, "at most 1 label wrong"), (2, "at most 2 labels wrong")])
def test_what_is_asked_in_words(k, words):
    assert SentenceEvent(k).condition == words


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
    ("name", "settings"), [("Sentence", {"max_errors": -1}), ("Entity", {"event": "nearly"}), ("Arc", {"event": "exact"})]
)
def test_a_setting_out_of_range(name, settings):
    with pytest.raises(CalibError, match="C001"):
        registry.resolve({"one": {"@calib_events": f"spacy-calib.{name}.v1", **settings}})


def test_a_function_that_makes_no_event():
    with pytest.raises(CalibError, match=says("C380", given="str")):
        check_is_event("sentence")
