"""Spans that tools found, by characters: the forms that each tool documents, what does not fit tokens, and what stands twice."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_calib import spans_from
from spacy_calib.errors import CalibError
from tests.docstrings import run_examples
from tests.sentences import says

TEXT = "Ann Lee met Bob in New York."
NLP = spacy.blank("en")
# What each tool gives for "Ann Lee" (PER, .9) and "New York" (LOC, .8), as its documentation shows it.
TOOLS = {
    "GLiNER": [
        {"start": 0, "end": 7, "text": "Ann Lee", "label": "PER", "score": 0.9},
        {"start": 19, "end": 27, "text": "New York", "label": "LOC", "score": 0.8},
    ],
    "Hugging Face": [
        {"entity_group": "PER", "score": np.float32(0.9), "word": "Ann Lee", "start": 0, "end": 7},
        {"entity_group": "LOC", "score": np.float32(0.8), "word": " New York", "start": np.int64(18), "end": np.int64(27)},
    ],
    "flair": [
        {"text": "Ann Lee", "start_pos": 0, "end_pos": 7, "labels": [{"value": "PER", "confidence": 0.9}]},
        {"text": "New York", "start_pos": 19, "end_pos": 27, "labels": [{"value": "LOC", "confidence": 0.8}]},
    ],
    "SpanMarker": [
        {"span": "Ann Lee", "label": "PER", "score": 0.9, "char_start_index": 0, "char_end_index": 7},
        {"span": "New York", "label": "LOC", "score": 0.8, "char_start_index": 19, "char_end_index": 27},
    ],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_documented_forms(tool):
    doc = NLP(TEXT)
    group = spans_from(doc, TOOLS[tool])
    assert [(span.text, span.label_) for span in group] == [("Ann Lee", "PER"), ("New York", "LOC")]
    assert group.attrs["scores"] == pytest.approx([0.9, 0.8])
    assert list(doc.ents) == list(group)
    assert group.attrs["counts"] == {"found": 2}


def one(start: int, end: int, label: str = "PER", score: float | None = 0.5, **more: float) -> dict:
    return {"start": start, "end": end, "label": label, "score": score, **more}


@pytest.mark.parametrize(
    ("way", "place", "expected"),
    [("expand", (0, 5), ["Ann Lee"]), ("contract", (0, 5), ["Ann"]), ("strict", (0, 5), []), ("contract", (1, 2), [])],
)
def test_what_does_not_begin_and_end_with_tokens(way, place, expected):
    doc = NLP(TEXT)  # a group does not keep its Doc alive
    group = spans_from(doc, [one(*place)], misaligned=way)
    assert [span.text for span in group] == expected
    assert group.attrs["counts"] == {"found": 1, "mended" if expected else "misaligned": 1}


def test_two_labels_at_one_place_and_one_label_twice():
    doc = NLP(TEXT)
    group = spans_from(doc, [one(0, 7), one(0, 7, "ORG", 0.6), one(0, 6, score=0.7)])
    assert [span.label_ for span in group] == ["PER", "ORG"]
    assert group.attrs["scores"] == [0.7, 0.6]
    assert group.attrs["counts"] == {"found": 3, "mended": 1, "same": 1}
    assert [ent.label_ for ent in doc.ents] == ["PER"]


def test_of_spans_that_overlap_the_best_are_entities_and_those_below_the_threshold_none():
    doc = NLP(TEXT)
    found = [one(0, 3, score=0.5), one(0, 7, score=0.5), one(4, 11, score=0.4), one(12, 15, score=0.2)]
    group = spans_from(doc, found, threshold=0.3)
    assert [ent.text for ent in doc.ents] == ["Ann Lee"]
    assert len(group) == 4


def test_entities_stay_where_spans_alone_are_wanted():
    doc = NLP(TEXT)
    spans_from(doc, [one(0, 7, beside=0.1, other=None)], "mine", ents=False, beside=("beside", "other"))
    assert not doc.has_annotation("ENT_IOB")
    kept = next(DocBin(docs=[doc]).get_docs(NLP.vocab)).spans["mine"]
    expected = {"scores": [0.5], "beside": [0.1], "other": [None], "counts": {"found": 1}}
    assert {**kept.attrs, "counts": dict(kept.attrs["counts"])} == expected


@pytest.mark.parametrize(
    "given",
    [3, {}, one(0, 0), one(5, 2), one(0, 99), one(-1, 3), one(0, 3, ""), one(0, 3, score=1.5), one(0, 3, score=float("nan")), one(0, 3, score="high"),
     {"entity": "B-PER", "score": 0.9, "index": 1, "word": "Ann", "start": 0, "end": 3}, {**one(0, 3), "start": None}, {**one(0, 3), "start": 0.0}],
)  # fmt: skip
def test_no_such_span(given):
    doc = NLP(TEXT)
    with pytest.raises(CalibError, match=says("C640")):
        spans_from(doc, [given])
    assert "found" not in doc.spans


def test_no_such_mending():
    with pytest.raises(CalibError, match=r"\[C001\] misaligned must be expand or contract or strict"):
        spans_from(NLP(TEXT), [], misaligned="shrink")


def test_the_text_is_joined_once_whatever_was_found():
    class Counted(Doc):
        joined = 0

        @property
        def text(self) -> str:
            Counted.joined += 1
            return super().text

    doc = Counted(NLP.vocab, words=["Ann", "met", "Bob"])
    spans_from(doc, [one(0, 3), one(8, 11), one(4, 7, "X")])
    assert len(doc.spans["found"]) == 3
    assert Counted.joined == 1


def test_the_example_of_the_docstring():
    run_examples(spans_from)
