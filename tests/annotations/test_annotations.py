"""Labels of tokens, predicted and gold."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.annotations import ANNOTATIONS, SpanAnnotation, columns_of, get_annotation, label_hashes, span_scores
from spacy_calib.errors import CalibError
from tests import strategies  # noqa: F401  (the settings of hypothesis)

BLANK = spacy.blank("en")


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("xx").vocab


def full_doc(vocab):
    return Doc(
        vocab, words=["dogs", "run", "Stop"], tags=["NNS", "NUM", "VB"], pos=["NOUN", "VERB", "VERB"], morphs=["Number=Plur", "", ""],
        lemmas=["dog", "run", "stop"], deps=["nsubj", "ROOT", "ROOT"], heads=[1, 1, 2], ents=["B-ANIMAL", "O", "O"],
        sent_starts=[True, False, True],
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(ANNOTATIONS))
def test_hash_is_that_of_the_label(vocab, name):
    doc = full_doc(vocab)
    annotation = get_annotation(name)
    labels = [annotation.label(token) for token in doc]
    assert annotation.hashes(doc).tolist() == [get_string_id(label) if label else 0 for label in labels]
    assert annotation.count_gold([doc, doc]) == {label: 2 * labels.count(label) for label in labels if label}


@pytest.mark.parametrize("name", sorted(ANNOTATIONS))
def test_no_annotation_is_no_label(vocab, name):
    doc = Doc(vocab, words=["a", "b"])
    annotation = get_annotation(name)
    assert not annotation.gold_hashes(doc).any()
    assert annotation.count_gold([doc]) == {}
    assert annotation.hashes(Doc(vocab)).shape == (0,)


def test_labels(vocab):
    doc = full_doc(vocab)
    assert [get_annotation("morph").label(t) for t in doc] == ["Number=Plur|POS=NOUN", "POS=VERB", "POS=VERB"]
    assert [get_annotation("sent").label(t) for t in doc] == ["", "I", "S"]


def test_unset_sentence_start_in_annotated_gold_counts_as_inside(vocab):
    doc = Doc(vocab, words=["a", "b", "c", "d"], sent_starts=[True, None, False, True])
    assert get_annotation("sent").gold_hashes(doc).tolist() == [0, get_string_id("I"), get_string_id("I"), get_string_id("S")]


def test_the_first_token_of_a_doc_starts_a_sentence_without_being_asked(vocab):
    """The tokenizer's Doc says so already, before any senter: it is no prediction, so it has no label and no gold."""
    doc = Doc(vocab, words=["a", "b"])
    assert doc.to_array(["SENT_START"])[0] == 1
    annotation = get_annotation("sent")
    assert annotation.hashes(doc).tolist() == [0, 0]
    assert annotation.label(doc[0]) == ""


def test_aligned_gold_leaves_out_what_spacys_scorer_leaves_out(vocab):
    predicted = Doc(vocab, words=["can", "not", " ", "go", "on"], spaces=[False, True, False, True, False])
    reference = Doc(vocab, words=["cannot", "go", "o", "n"], spaces=[True, True, False, False], tags=["MD", "", "X", "X"])
    gold = get_annotation("tag").aligned_gold(Example(predicted, reference))
    # both parts of "cannot" align with it alone; the space, the token without gold and the one with two gold tokens are left out
    assert gold.tolist() == [get_string_id("MD"), get_string_id("MD"), 0, 0, 0]


@st.composite
def aligned_docs(draw):
    """(predicted, reference): two tokenizations of one text, with spaces and white-space tokens anywhere, and tags on the second."""
    words = draw(st.lists(st.sampled_from(["a", "bc", "def", "\n", " ", "\t\n", "\u0130x"]), min_size=1, max_size=8))
    spaces = draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    strings = Vocab() if draw(st.booleans()) else BLANK.vocab
    tags = draw(st.lists(st.sampled_from(["X", "Y", ""]), min_size=len(words), max_size=len(words)))
    reference = Doc(strings, words=words, spaces=spaces, tags=tags)
    text = reference.text
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=6)) | {len(text)})
    other = [part for part in (text[a:b] for a, b in zip([0, *cuts], cuts, strict=False)) if part]
    return Doc(strings, words=other, spaces=[False] * len(other)), reference


@given(aligned_docs())
def test_aligned_gold_is_that_of_spacys_own_alignment(docs):
    predicted, reference = docs
    example = Example(predicted, reference)
    theirs = example.get_aligned("TAG")
    single = [len(example.alignment.x2y[i]) == 1 for i in range(len(predicted))]
    wanted = [
        (tag or 0) if alone and not token.text.isspace() else 0
        for tag, alone, token in zip(theirs, single, predicted, strict=True)
    ]
    assert get_annotation("tag").aligned_gold(example).tolist() == wanted


@pytest.mark.parametrize("words", [["Hello", "world", "\n"], ["Hello", "\n"], ["\n"]])
def test_gold_that_ends_in_white_space_with_a_space_behind(words):
    """The tokenizer makes one token of the white space, and spaCy's alignment has one row more than there are tokens."""
    reference = Doc(BLANK.vocab, words=words, tags=["T"] * len(words))
    example = Example(BLANK.make_doc(reference.text), reference)
    assert len(example.alignment.x2y.lengths) > len(example.predicted)
    wanted = [get_string_id("T") if word != "\n" else 0 for word in words]
    assert get_annotation("tag").aligned_gold(example).tolist() == wanted


def test_white_space_has_no_gold_in_a_vocab_without_flags():
    """IS_SPACE is unset there; spaCy's scorers look at the text."""
    words, vocab = ["a", "\n", "b"], Vocab()
    example = Example(Doc(vocab, words=words), Doc(vocab, words=words, tags=["T"] * 3))
    assert get_annotation("tag").aligned_gold(example).tolist() == [get_string_id("T"), 0, get_string_id("T")]


def labels_of(annotation, doc):
    """By single tokens and by hashes, which must agree."""
    labels = [annotation.label(token) for token in doc]
    assert annotation.hashes(doc).tolist() == [get_string_id(label) if label else 0 for label in labels]
    return labels


def test_entity_layers(vocab):
    ents = ["B-PER", "I-PER", "I-PER", "O", "B-LOC", "B-PER", "B-PER", "I-PER"]
    doc = Doc(vocab, words=list("abcdefgh"), ents=ents)
    doc.set_ents([], missing=[doc[3:4]], default="unmodified")
    assert labels_of(get_annotation("ner"), doc) == ["PER", "PER", "PER", "", "LOC", "PER", "PER", "PER"]
    assert labels_of(get_annotation("biluo"), doc) == ["B-PER", "I-PER", "L-PER", "", "U-LOC", "U-PER", "B-PER", "L-PER"]
    for name in ("ner", "biluo"):
        annotation = get_annotation(name)
        assert [(span.start, span.end, span.label_) for span in annotation.spans_on(doc)] == [
            (0, 3, "PER"), (4, 5, "LOC"), (5, 6, "PER"), (6, 8, "PER"),
        ]  # fmt: skip
        assert annotation.known_tokens(doc).tolist() == [True, True, True, False, True, True, True, True]
        assert annotation.count_spans([doc, doc]) == {"PER": 6, "LOC": 2}
        assert not annotation.known_tokens(Doc(vocab, words=["a"])).any()
    assert get_annotation("biluo").count_gold([doc]) == {"B-PER": 2, "I-PER": 1, "L-PER": 2, "U-LOC": 1, "U-PER": 1}
    assert get_annotation("ner").count_gold([doc]) == {"PER": 6, "LOC": 1}


def test_layers_without_spans_have_none(vocab):
    annotation, doc = get_annotation("tag"), full_doc(vocab)
    assert list(annotation.spans_on(doc)) == []
    assert not annotation.known_tokens(doc).any()
    assert annotation.count_spans([doc]) == {}


def doc_with_spans(vocab, spans, scores=None, n=5):
    doc = Doc(vocab, words=["w"] * n)
    doc.spans["sc"] = [Span(doc, *span) for span in spans]
    if scores is not None:
        doc.spans["sc"].attrs["scores"] = np.array(scores, dtype=np.float32)
    return doc


SPANS = [(0, 2, "A"), (1, 4, "B"), (1, 2, "C")]


def test_a_token_carries_the_label_of_the_best_span_that_covers_it(vocab):
    annotation = get_annotation("spans:sc")
    assert isinstance(annotation, SpanAnnotation)
    assert (annotation.name, annotation.key, annotation.kind.overlapping) == ("spans:sc", "sc", True)
    assert labels_of(annotation, doc_with_spans(vocab, SPANS, [0.5, 0.9, 0.7])) == ["A", "B", "B", "B", "O"]
    assert labels_of(annotation, doc_with_spans(vocab, SPANS, [0.9, 0.5, 0.95])) == ["A", "C", "B", "B", "O"]
    # Equal, missing, or of another number: the first of the group.
    assert labels_of(annotation, doc_with_spans(vocab, SPANS, [0.5, 0.5, 0.5])) == ["A", "A", "B", "B", "O"]
    assert labels_of(annotation, doc_with_spans(vocab, SPANS)) == ["A", "A", "B", "B", "O"]
    assert labels_of(annotation, doc_with_spans(vocab, SPANS, [0.1, 0.2])) == ["A", "A", "B", "B", "O"]


def test_empty_and_absent_span_groups(vocab):
    annotation = SpanAnnotation("sc")
    empty = doc_with_spans(vocab, [])
    assert labels_of(annotation, empty) == ["O"] * 5
    assert annotation.known_tokens(empty).all()
    assert annotation.count_gold([empty]) == {"O": 5}
    absent = Doc(vocab, words=["a", "b"])
    assert labels_of(annotation, absent) == ["", ""]
    assert not annotation.known_tokens(absent).any()
    assert list(annotation.spans_on(absent)) == []
    assert annotation.count_gold([absent]) == {}


def test_spans_of_a_group(vocab):
    annotation, doc = SpanAnnotation("sc"), doc_with_spans(vocab, SPANS)
    assert [(span.start, span.end, span.label_) for span in annotation.spans_on(doc)] == SPANS
    assert annotation.count_spans([doc, doc]) == {"A": 2, "B": 2, "C": 2}


def test_scores_of_a_group(vocab):
    assert span_scores(doc_with_spans(vocab, SPANS).spans["sc"]) is None
    assert span_scores(doc_with_spans(vocab, SPANS, [0.1, 0.2]).spans["sc"]) is None
    scores = span_scores(doc_with_spans(vocab, SPANS, [0.25, 0.5, 1.0]).spans["sc"])
    assert scores.dtype == np.float64
    assert scores.tolist() == [0.25, 0.5, 1.0]
    # A single-label categorizer keeps a column.
    assert span_scores(doc_with_spans(vocab, SPANS, [[0.25], [0.5], [1.0]]).spans["sc"]).tolist() == [0.25, 0.5, 1.0]


def test_each_gold_label_of_a_token_is_right(vocab):
    example = Example(Doc(vocab, words=["w"] * 5), doc_with_spans(vocab, SPANS))
    annotation = SpanAnnotation("sc")
    labels = ["A", "B", "C", "O", "D"]
    right = [[annotation.is_gold(example, np.array([row]), label_hashes([label]))[0] for label in labels] for row in range(5)]
    assert np.array(right, dtype=int).tolist() == [
        [1, 0, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0],
    ]  # fmt: skip
    # All at once gives the same.
    rows, hashes = np.repeat(np.arange(5), 5), np.tile(label_hashes(labels), 5)
    assert annotation.is_gold(example, rows, hashes).reshape(5, 5).tolist() == right


def test_gold_labels_of_tokens_with_another_tokenisation(vocab):
    predicted = Doc(vocab, words=["can", "not", "go", "on"], spaces=[False, True, True, False])
    reference = Doc(vocab, words=["cannot", "go", "o", "n"], spaces=[True, True, False, False])
    reference.spans["sc"] = [Span(reference, 0, 2, "A"), Span(reference, 0, 1, "B"), Span(reference, 2, 4, "C")]
    example, annotation = Example(predicted, reference), SpanAnnotation("sc")
    rows, hashes = np.repeat(np.arange(4), 3), np.tile(label_hashes(["A", "B", "C"]), 4)
    # Both parts of "cannot" align with it alone; "on" aligns with two gold tokens and has no gold.
    expected = [[True, True, False], [True, True, False], [True, False, False], [False] * 3]
    assert annotation.is_gold(example, rows, hashes).reshape(4, 3).tolist() == expected
    assert annotation.aligned_gold(example).tolist() == [get_string_id("A")] * 3 + [0]


def test_columns_of():
    of_labels = ["B", "A", "NUM"]
    hashes = np.array([get_string_id("A"), get_string_id("NUM"), get_string_id("Z"), 0], dtype=np.uint64)
    assert columns_of(hashes, of_labels).tolist() == [1, 2, -1, -2]
    assert columns_of(hashes, of_labels[:0]).tolist() == [-1, -1, -1, -2]


def test_unknown_layer():
    with pytest.raises(CalibError, match="C001.*layer must be one of"):
        get_annotation("nope")
