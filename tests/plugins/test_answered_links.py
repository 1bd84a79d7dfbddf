"""Answers about identities become gold of a linker."""

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.annotations import get_annotation, has_gold
from spacy_calib.annotations.kinds import REJECTED, REJECTED_LINKS
from spacy_calib.annotations.span_events import span_hits
from spacy_calib.gold.answered_docs import answered_docs
from spacy_calib.gold.scored_corpora import scored_corpus
from spacy_calib.gold.tool_exports import TextSpan
from tests.answers import write
from tests.gold.test_answered_docs import hits, through_docbin
from tests.plugins.links_made import linking

LINKED = "Georgia met Amazon beside Dakota Zorb ."


GEORGIA, AMAZON = TextSpan(0, 7, "Georgia-place"), TextSpan(12, 18, "Amazon-firm")
DAKOTA, ZORB = TextSpan(26, 32, "Dakota-band"), TextSpan(33, 37, "NIL")


def answers_about_links(tmp_path, *answered):
    """The gold Doc of answers, and an example with these links. answered: (mark, whether it is right)."""
    spans = [[{"start": mark.start, "end": mark.end, "label": mark.label}] for mark, _ in answered]
    told = [
        {"text": LINKED, "spans": one, "answer": "accept" if right else "reject", "_view_id": "ner"}
        for one, (_, right) in zip(spans, answered, strict=True)
    ]
    gold = through_docbin(next(answered_docs(linking(), write(tmp_path / "a.jsonl", told))))
    doc = Doc(gold.vocab, words=LINKED.split())
    doc.ents = [doc.char_span(mark.start, mark.end, label="NAME", kb_id=mark.label) for mark in (GEORGIA, AMAZON, DAKOTA, ZORB)]
    return Example(doc, gold)


def known_of(example, *labels):
    """Of each label at the first words of Georgia, Amazon, Dakota and Zorb: right, wrong or "" where it is not known."""
    link, rows = get_annotation("link"), np.repeat([0, 2, 4, 5], len(labels))
    hashes = np.array([get_string_id(label) for label in labels] * 4, dtype=np.uint64)
    known, right = link.is_known(example, rows, hashes), link.is_gold(example, rows, hashes)
    return np.where(known, np.where(right, "right", "wrong"), "").reshape(4, -1).tolist()


def test_a_rejected_link_is_wrong_and_no_more(tmp_path):
    example = answers_about_links(tmp_path, (GEORGIA, True), (AMAZON, False))
    assert [(one.text, one.kb_id_) for one in example.reference.ents] == [("Georgia", "Georgia-place")]
    known = known_of(example, "Georgia-place", "Amazon-firm", "NIL")
    assert known == [["right", "", ""], ["", "wrong", ""], [""] * 3, [""] * 3]
    link = get_annotation("link")
    assert hits(example, link) == [-1] * 4  # by types, which nobody asked about
    spans = [(one.start, one.end, one.kb_id) for one in example.predicted.ents]
    assert span_hits(example, link, spans, "link").tolist() == [1, 0, -1, -1]
    assert has_gold(link, example.reference)
    corpus = scored_corpus([example], "calib", link)
    assert corpus.right.tolist() == [1, -1, 0, -1, -1, -1, -1]


def test_where_nothing_is_open_accepted_links_are_gold_like_any_other(tmp_path):
    corrected = AMAZON._replace(label="Amazon-place")
    example = answers_about_links(tmp_path, (GEORGIA, True), (AMAZON, False), (corrected, True), (ZORB, True))
    assert REJECTED_LINKS not in example.reference.spans
    every = ["wrong", "wrong", "wrong"]
    assert known_of(example, "Georgia-place", "Amazon-place", "NIL") == [
        ["right", *every[1:]], ["wrong", "right", "wrong"], [""] * 3, [*every[:2], "right"],
    ]  # fmt: skip


def test_beside_open_ones_a_corrected_link_tells_of_the_one_that_was_asked_about(tmp_path):
    corrected = AMAZON._replace(label="Amazon-place")
    example = answers_about_links(tmp_path, (AMAZON, False), (corrected, True), (DAKOTA, False))
    known = known_of(example, "Amazon-firm", "Amazon-place", "Dakota-band")
    assert known == [[""] * 3, ["wrong", "", ""], ["", "", "wrong"], [""] * 3]


def test_of_two_accepted_links_none_is_known(tmp_path):
    example = answers_about_links(tmp_path, (GEORGIA, True), (GEORGIA._replace(label="NIL"), True), (ZORB, True))
    assert [one.kb_id_ for one in example.reference.ents] == ["NIL"]


def test_answers_about_types_are_no_links(tmp_path):
    example = answers_about_links(tmp_path, (GEORGIA._replace(label="GPE"), True), (AMAZON._replace(label="ORG"), False))
    link = get_annotation("link")
    assert (has_gold(link, example.reference), REJECTED_LINKS in example.reference.spans) == (True, False)
    assert not link.aligned_gold(example).any()
    assert [one.text for one in example.reference.spans[REJECTED]] == ["Amazon"]
