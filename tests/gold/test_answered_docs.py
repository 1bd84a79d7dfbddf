"""Answers of people as gold: what was asked is known, and nothing else."""

import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.annotations import CatsAnnotation, get_annotation, has_gold
from spacy_calib.annotations.kinds import REJECTED, REJECTED_CATS, REJECTED_TOKENS
from spacy_calib.annotations.span_events import span_hits
from spacy_calib.errors import CalibError
from spacy_calib.gold.answered_docs import _resolve_overlaps, answered_doc, answered_docs
from spacy_calib.gold.example_reader import _hits_of
from spacy_calib.gold.tool_exports import QUEUE_MARK, TextAnswers, TextSpan
from spacy_calib.types import Marginals
from tests.answers import write
from tests.gold.test_reading import examples_in
from tests.sentences import says

TEXT = "Anna Lee met Bob in New Rome ."
ANNA, LEE, BOB, ROME = TextSpan(0, 4, "P"), TextSpan(0, 8, "P"), TextSpan(13, 16, "P"), TextSpan(20, 28, "L")


def through_docbin(doc):
    held = DocBin(docs=[doc], store_user_data=True).to_bytes()
    return next(DocBin().from_bytes(held).get_docs(Vocab()))


def asked_about(spans, whole=False, keys=("sc",)):
    return through_docbin(answered_doc(spacy.blank("en"), TextAnswers(TEXT, spans, whole=whole), keys=keys))


def predicted(gold, *marks):
    doc = Doc(gold.vocab, words=[token.text for token in gold], spaces=[bool(token.whitespace_) for token in gold])
    doc.ents = [doc.char_span(mark.start, mark.end, label=mark.label) for mark in marks]
    return Example(doc, gold)


def hits(example, annotation, event="exact"):
    return span_hits(example, annotation, [(one.start, one.end, one.label) for one in example.predicted.ents], event).tolist()


def test_what_was_accepted_and_rejected_is_known_and_nothing_else():
    gold = asked_about({LEE: True, BOB: False})
    ner, group = get_annotation("ner"), get_annotation("spans:sc")
    found = predicted(gold, LEE, BOB, ROME)
    for annotation in (ner, group, get_annotation("biluo")):
        assert hits(found, annotation) == [1, 0, -1]
        assert not annotation.aligned_gold(found).any()  # of tokens nothing is
        assert has_gold(annotation, gold)
    # Entities do not overlap, so that what overlaps an accepted one is wrong; spans of a group may.
    other = predicted(gold, ANNA)
    assert (hits(other, ner), hits(other, group)) == ([0], [-1])
    # Less than the same tokens was not asked about.
    assert hits(found, ner, "overlap") == [1, -1, -1]
    assert hits(other, ner, "type") == [1]
    assert [group in gold.spans for group in (REJECTED, REJECTED_TOKENS)] == [True, False]


def test_whole_answers_are_full_gold():
    gold = asked_about({LEE: True}, whole=True)
    found = predicted(gold, LEE, BOB)
    assert hits(found, get_annotation("ner")) == [1, 0]
    assert get_annotation("ner").aligned_gold(found).all()
    assert not any(key.startswith(REJECTED) for key in gold.spans)


def test_an_answer_may_begin_or_end_in_a_token():
    gold = asked_about({TextSpan(1, 9, "P"): True, TextSpan(13, 15, "X"): False})  # white space goes with a mouse
    assert [token.text for token in gold] == ["A", "nna", "Lee", "met", "Bo", "b", "in", "New", "Rome", "."]
    rejected = [span.text for span in gold.spans[REJECTED]]
    assert (gold.text, [span.text for span in gold.ents], rejected) == (TEXT, ["nna Lee"], ["Bo"])


@pytest.mark.parametrize("outside", [False, True])
def test_tokens_that_a_prediction_chose_are_no_gold(outside):
    gold = Doc(Vocab(), words=TEXT.split())
    accepted, rejected = [Span(gold, 0, 2, label="P")], [Span(gold, 3, 4, label="P")]
    gold.set_ents(accepted, outside=rejected if outside else [], default="missing")
    found, ner = predicted(gold, LEE, BOB, ROME), get_annotation("ner")
    assert not ner.aligned_gold(found).any()
    assert hits(found, ner) == [1, 0 if outside else -1, -1]


def test_a_sentence_without_gold_leaves_the_other_one_known():
    gold = Doc(Vocab(), words=[*TEXT.split(), *TEXT.split()])
    gold.set_ents([Span(gold, 0, 2, label="P")], outside=[Span(gold, 2, 8)], missing=[Span(gold, 8, 16)], default="outside")
    found = predicted(gold, LEE, BOB)
    found.predicted.ents = [*found.predicted.ents, Span(found.predicted, 8, 10, label="P")]
    assert (get_annotation("ner").aligned_gold(found) != 0).tolist() == [True] * 8 + [False] * 8


def test_of_tags_only_what_was_asked_is_known():
    gold = asked_about({TextSpan(9, 12, "V"): True, TextSpan(13, 16, "V"): False})
    example, tag = predicted(gold), get_annotation("tag")
    rows = np.array([2, 2, 3, 3, 4])
    hashes = np.array([get_string_id(label) for label in "VNVNV"], dtype=np.uint64)
    assert tag.is_known(example, rows, hashes).tolist() == [True, False, True, False, False]
    assert tag.is_gold(example, rows, hashes).tolist() == [True, False, False, False, False]
    # As the fit has it: the columns of gold are that of V, none, and no gold.
    marginals = Marginals(rows, np.array([0, 1, 0, 1, 0]), np.full(5, 0.5), len(gold))
    found = _hits_of(tag, [example], marginals, np.array([-2, -2, 0, -1, -2, -2, -2, -2]), ("V", "N"))
    assert [flags.tolist() for flags in found] == [[True, False, False, False, False], [True, False, True, False, False]]
    # And where the columns are edit trees, or places of candidates, and the entries have names.
    named = Marginals(rows, np.array([0, 1, 0, 1, 0]), np.full(5, 0.5), len(gold), ["V", "N", "V", "N", "V"])
    again = _hits_of(tag, [example], named, np.array([-2, -2, 0, -1, -2, -2, -2, -2]), ("tree 1", "tree 2"))
    assert [flags.tolist() for flags in again] == [flags.tolist() for flags in found]


def tags_of(gold, *labels):
    """Of each label at *met* and *Bob*: whether it is right, "" where that is not known."""
    example, tag = predicted(gold), get_annotation("tag")
    rows, hashes = np.repeat([2, 3], len(labels)), np.array([get_string_id(label) for label in labels] * 2, dtype=np.uint64)
    known, right = tag.is_known(example, rows, hashes), tag.is_gold(example, rows, hashes)
    return ["" if not known[i] else bool(right[i]) for i in range(len(rows))]


MET, V, BOB_V = (9, 12), TextSpan(9, 12, "V"), TextSpan(13, 16, "V")


def gold_of_answers(file, *records):
    """The gold of Prodigy's records of one text. records: (the label asked about at *met* or *Bob*, (place, label) that stand there then, answer)."""

    def task(asked, left, answer):
        spans = [{"start": start, "end": end, "label": label} for (start, end), label in left]
        meta = {**QUEUE_MARK, "unit": "token", "asked": f"{asked.start} {asked.end} {asked.label}"}
        return {"text": TEXT, "spans": spans, "answer": answer, "meta": meta}

    (gold,) = answered_docs(spacy.blank("en"), write(file, [task(*record) for record in records]))
    return through_docbin(gold)


def test_a_corrected_tag_is_known_like_any_gold_where_none_is_left_open(tmp_path):
    accepted = (BOB_V, [((13, 16), "V")], "accept")
    gold = gold_of_answers(tmp_path / "a.jsonl", (V, [(MET, "N")], "accept"), accepted)
    assert tags_of(gold, *"VNX") == [False, True, False, True, False, False]
    # One that the component does not know, too: all its own are wrong then.
    gold = gold_of_answers(tmp_path / "b.jsonl", (V, [(MET, "new")], "accept"), accepted)
    assert (gold[2].tag_, tags_of(gold, *"VN")) == ("new", [False, False, True, False])


def test_beside_rejected_tags_a_corrected_one_tells_of_the_one_that_was_asked_about(tmp_path):
    rejected = (BOB_V, [((13, 16), "V")], "reject")
    gold = gold_of_answers(tmp_path / "a.jsonl", (V, [(MET, "N")], "accept"), rejected)
    assert tags_of(gold, *"VNX") == [False, "", "", False, "", ""]


def test_two_labels_of_one_token_are_none_and_are_counted(tmp_path):
    with pytest.warns(UserWarning, match=says("CW55", n=1)):
        gold = gold_of_answers(
            tmp_path / "a.jsonl", (V, [(MET, "V"), (MET, "N")], "accept"), (BOB_V, [((13, 16), "V")], "accept")
        )
    assert tags_of(gold, *"VN") == ["", "", True, False]


def test_a_label_of_more_or_less_than_one_token_is_none_of_a_token(tmp_path):
    accepted = (BOB_V, [((13, 16), "V")], "accept")
    gold = gold_of_answers(tmp_path / "a.jsonl", (V, [((9, 16), "N")], "accept"), accepted)
    assert tags_of(gold, *"VN") == [False, "", True, ""]  # the tag that was asked about has no other in its stead
    gold = gold_of_answers(tmp_path / "b.jsonl", (V, [((9, 11), "N")], "accept"), accepted)
    found = Example(Doc(gold.vocab, words=TEXT.split()), gold)
    assert get_annotation("tag").aligned_gold(found).nonzero()[0].tolist() == [3]


def test_an_empty_label_is_refused(tmp_path):
    with pytest.raises(CalibError, match="a label is empty"):
        gold_of_answers(tmp_path / "a.jsonl", (V, [(MET, "")], "accept"))


@pytest.mark.parametrize(("labels", "known"), [("ABC", [True, False, False]), ("AB", [True, True])])
def test_a_rejected_category_leaves_the_others_open_unless_one_is_left(labels, known):
    gold = through_docbin(answered_doc(spacy.blank("en"), TextAnswers(TEXT, cats={"A": False})))
    assert [span.label_ for span in gold.spans[REJECTED_CATS]] == ["A"]
    example, rows = predicted(gold), np.zeros(len(labels), dtype=np.intp)
    hashes = np.array([get_string_id(label) for label in labels], dtype=np.uint64)
    cats = CatsAnnotation(labels)
    assert cats.is_known(example, rows, hashes).tolist() == known
    assert cats.is_gold(example, rows, hashes).tolist() == [False, labels == "AB", False][: len(labels)]
    several = CatsAnnotation(labels, overlapping=True)
    assert several.is_known(example, rows, hashes).tolist() == [True, False, False][: len(labels)]


def test_sentences_of_answers_are_not_taken_apart(tmp_path):
    gold = asked_about({LEE: True, BOB: False})
    for token in gold:
        token.is_sent_start = token.i in (0, 4)
    DocBin(docs=[gold], store_user_data=True).to_disk(tmp_path / "a.spacy")
    (example,) = examples_in(tmp_path / "a.spacy", True)
    assert [span.text for span in example.reference.spans[REJECTED]] == ["Bob"]


@pytest.mark.parametrize("label", ["a=b=c", "|=|", "=|", "x|y=z", "_"])
def test_a_label_with_the_signs_of_features_is_one_all_the_same(label):
    doc = answered_doc(spacy.blank("xx"), TextAnswers("Anna", {TextSpan(0, 4, label): True}, whole=True))
    assert (doc[0].tag_, doc.ents[0].label_) == (label, label)


def test_of_spans_that_overlap_the_one_that_the_pipeline_knows_is_taken():
    """By the rule itself: of each span all that overlap it."""
    doc, rng = spacy.blank("en").make_doc("a b c d e f"), np.random.default_rng(0)
    for _ in range(300):
        keys = rng.integers([0, 1, 0], [6, 4, 3], (4, 3)).tolist()
        places = {(start, min(6, start + length), "PQR"[label]) for start, length, label in keys}
        spans = [Span(doc, *place) for place in sorted(places)]
        entities, doubtful = _resolve_overlaps(doc, spans, {"P"})
        for span in spans:
            overlapping = (other for other in spans if other.start < span.end and span.start < other.end)
            others = [other.label_ for other in overlapping if other is not span]
            taken = not others or (span.label_ == "P" and "P" not in others)
            assert (span in entities, span in doubtful) == (taken, not taken and ("P" not in others or span.label_ == "P"))
