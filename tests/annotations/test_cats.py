"""Text categories: a Doc is one unit, with one row of scores."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.strings import get_string_id
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_calib.annotations import CatsAnnotation, MappedAnnotation, get_annotation, label_hashes, plain_name
from spacy_calib.calibration.tokens import CalibratedEntries
from spacy_calib.doc.attributes import doc_view, token_score
from spacy_calib.doc.store import add_block
from spacy_calib.doc.write import Batch, build_blocks
from spacy_calib.errors import CalibError
from spacy_calib.gold.scored_corpora import scored_corpus
from spacy_calib.pairs.scored_corpus import RIGHT, UNKNOWN, WRONG
from spacy_calib.types import Marginals

OWN = ("neg", "pos")
EXCLUSIVE, SEVERAL = CatsAnnotation(OWN), CatsAnnotation(OWN, overlapping=True)
NLP = spacy.blank("xx")


def doc_with_cats(text: str = "a good film", **cats) -> Doc:
    doc = NLP.make_doc(text)
    doc.cats = cats
    return doc


def write(doc: Doc, layer: str, labels: tuple[str, ...], raw: list[float], calibrated: list[float]) -> Doc:
    """Put a block with one row on a Doc, as a pipe does."""
    n = len(raw)
    marginals = Marginals(np.zeros(n, dtype=np.intp), np.arange(n), np.array(raw), 1)
    carried = get_annotation(layer).hashes(doc)
    batch = Batch([], CalibratedEntries(marginals, np.array(calibrated)), get_annotation(layer), labels, carried)
    add_block(doc.user_data, "calib", build_blocks([doc], batch)[0])
    return doc


def doc_with_scores(text: str = "a good film", **cats) -> Doc:
    return write(doc_with_cats(text, **(cats or {"neg": 0.2, "pos": 0.8})), EXCLUSIVE.name, OWN, [0.2, 0.8], [0.3, 0.7])


@given(st.lists(st.text('aé{}", :', min_size=1), unique=True), st.booleans())
def test_a_name_says_which_categories_count(labels, overlapping):
    annotation = CatsAnnotation(labels, overlapping)
    again = get_annotation(annotation.name)
    assert (again.labels, again.kind.overlapping, again.kind.unit) == (tuple(labels), overlapping, "document")
    assert plain_name(annotation.name) == ("cats:multi" if overlapping else "cats")
    mapped = get_annotation(MappedAnnotation(annotation, {"x": "y {"}).name)
    assert (mapped.inner.labels, mapped.table) == (tuple(labels), {"x": "y {"})


def test_a_doc_carries_its_likeliest_category():
    assert EXCLUSIVE.label_at(doc_with_cats(neg=0.2, pos=0.7, sport=0.9), 0) == "pos"
    assert EXCLUSIVE.label_at(doc_with_cats(neg=0.5, pos=0.5), 0) == "neg"  # of equals the first, as argmax
    assert CatsAnnotation().label_at(doc_with_cats(neg=0.2, pos=0.7, sport=0.9), 0) == "sport"
    assert EXCLUSIVE.hashes(doc_with_cats(neg=0.2, pos=0.7)).tolist() == [get_string_id("pos")]
    assert EXCLUSIVE.hashes(doc_with_cats(sport=0.9)).tolist() == [0]
    assert EXCLUSIVE.hashes(doc_with_cats("", neg=0.9)).shape == EXCLUSIVE.unit_texts(doc_with_cats("")).shape[:1] == (0,)


@pytest.mark.parametrize(
    ("cats", "gold"),
    [
        ({"neg": 0, "pos": 1}, "pos"),
        ({"neg": 0.6, "pos": 0.4}, "neg"),
        ({"pos": True}, "pos"),
        ({}, ""),
        ({"sport": 1}, ""),  # another component's
        ({"neg": 0, "pos": 1, "sport": 1}, "pos"),
        ({"neg": 0, "pos": 0, "sport": 1}, "sport"),  # which this one does not know
        ({"neg": 0, "pos": 0, "sport": 1, "music": 1}, ""),  # of one that gives several
        ({"neg": 0, "pos": 0}, ""),
        ({"neg": "yes", "pos": 1}, "pos"),
        ({"neg": float("nan"), "pos": None}, ""),
    ],
)
def test_the_gold_of_exclusive_classes_is_the_one_with_the_highest_value(cats, gold):
    doc = doc_with_cats(**cats)
    assert EXCLUSIVE.gold_hashes(doc).tolist() == [get_string_id(gold) if gold else 0]
    assert EXCLUSIVE.count_gold([doc]) == ({gold: 1} if gold else {})


def test_gold_with_two_exclusive_categories_is_refused():
    with pytest.raises(CalibError, match=r"C261.*begins 'a good film' has several.*\(neg, pos\).*mutually exclusive"):
        EXCLUSIVE.gold_hashes(doc_with_cats(neg=1, pos=1))


def test_labels_that_a_gold_doc_leaves_out_are_unknown_one_by_one():
    predicted, hashes = doc_with_cats(), label_hashes([*OWN, "sport"])
    rows = np.zeros(3, dtype=np.intp)
    for cats, known, right, gold in [
        ({"neg": 0, "pos": 1}, [1, 1, 0], [0, 1, 0], "pos"),
        ({"pos": 0}, [0, 1, 0], [0, 0, 0], "(none)"),
        ({"neg": 1, "pos": 1}, [1, 1, 0], [1, 1, 0], "neg"),
        ({"sport": 1}, [0, 0, 0], [0, 0, 0], ""),
    ]:
        example = Example(predicted, doc_with_cats(**cats))
        assert SEVERAL.is_known(example, rows, hashes).tolist() == [bool(one) for one in known]
        assert SEVERAL.is_gold(example, rows, hashes).tolist() == [bool(one) for one in right]
        assert SEVERAL.aligned_gold(example).tolist() == [get_string_id(gold) if gold else 0]


def test_mapped_categories_are_compared_with_gold_of_other_names():
    mapped = get_annotation(MappedAnnotation(EXCLUSIVE, {"neg": "bad", "pos": "good"}).name)
    example = Example(doc_with_cats(neg=0.2, pos=0.8), doc_with_cats(bad=0, good=1))
    assert mapped.hashes(example.predicted).tolist() == mapped.aligned_gold(example).tolist() == [get_string_id("good")]
    assert mapped.count_gold([example.reference]) == {"good": 1}


def test_attributes_are_those_of_the_document():
    doc = doc_with_scores()
    assert doc._.calib_cats == {"pos": 0.7, "neg": 0.3}
    assert list(doc._.calib_cats) == ["pos", "neg"]
    assert doc._.calib_cats_raw == {"pos": 0.8, "neg": 0.2}
    assert (doc._.calib_score, doc._.calib_raw) == (0.7, 0.8)
    view = doc_view(doc, "calib")
    assert (view.rows.tolist(), view.tags.tolist(), view.scored.tolist()) == ([0, 0], ["neg", "pos"], [True])
    assert repr(view) == "<DocCalib: 1 of 1 document scored (cats), 2 entries>"
    assert view.to_dense(["pos"]).tolist() == [[0.7]]
    assert [token_score(token, "calib") for token in doc] == [None] * 3


def test_the_score_is_of_the_category_that_the_doc_has_now():
    doc = doc_with_scores()
    doc.cats["neg"] = 1.0
    assert (doc._.calib_score, doc._.calib_raw) == (0.3, 0.2)
    doc.cats = {}
    assert doc._.calib_score is None
    assert doc._.calib_cats == {"pos": 0.7, "neg": 0.3}


def test_a_doc_of_one_word_and_its_token_are_two_things():
    document, token = doc_with_scores("film"), doc_with_cats("film")
    token[0].tag_ = "NN"
    write(token, "tag", ("NN",), [0.9], [0.6])
    assert (document._.calib_score, document[0]._.calib_score) == (0.7, None)
    assert (token._.calib_score, token._.calib_cats, token[0]._.calib_score) == (None, None, 0.6)
    assert doc_view(document, "calib").layer == EXCLUSIVE.name
    assert doc_view(token, "calib").layer == "tag"


def test_no_part_and_no_sum_of_docs_takes_the_scores_of_a_document():
    doc, other = doc_with_scores("a good film"), doc_with_scores("a good film too")
    for part in (doc[:2].as_doc(copy_user_data=True), doc[1:].as_doc(copy_user_data=True)):
        part.cats = doc.cats
        assert part._.calib is part._.calib_score is None
    joined = Doc.from_docs([doc, other])
    joined.cats = doc.cats
    assert joined._.calib is None
    for whole in (doc[:].as_doc(copy_user_data=True), Doc.from_docs([doc])):
        whole.cats = doc.cats
        assert whole._.calib_score == 0.7
    saved = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (again,) = DocBin().from_bytes(saved).get_docs(NLP.vocab)
    assert again._.calib_cats == doc._.calib_cats
    again.user_data.update(other.user_data)
    assert again._.calib_score is None  # two blocks on one stretch
    with doc.retokenize() as retokenizer:  # its text stays
        retokenizer.merge(doc[0:2])
    assert doc._.calib_score == 0.7


def test_in_a_corpus_a_document_is_a_row():
    examples = [
        Example(doc_with_scores("a good film"), doc_with_cats("a good film", neg=0, pos=1)),
        Example(doc_with_scores("a bad film"), doc_with_cats("a bad film", neg=1, pos=0)),
        Example(doc_with_cats("no scores"), doc_with_cats("no scores", neg=1)),
        Example(doc_with_scores("no gold"), doc_with_cats("no gold")),
    ]
    corpus = scored_corpus(examples, "calib", EXCLUSIVE, OWN)
    assert corpus.words.tolist() == ["a good film", "a bad film", "no scores", "no gold"]
    assert (corpus.row_unit, len(corpus), corpus.doc_starts.tolist()) == ("document", 4, [0, 1, 2, 3, 4])
    assert corpus.starts.all()
    assert not corpus.spaces.any()
    assert [corpus.names[label] if label >= 0 else "" for label in corpus.labels] == ["pos", "pos", "", "pos"]
    assert [corpus.names[label] if label >= 0 else "" for label in corpus.gold] == ["pos", "neg", "neg", ""]
    assert corpus.right.tolist() == [RIGHT, WRONG, UNKNOWN, UNKNOWN]
    assert corpus.is_counted.tolist() == [True, True, False, True]
    judged = corpus.pairs()
    assert judged.pairs.hits.tolist() == [False, True, True, False]
    assert judged.calibrated.tolist() == [0.3, 0.7, 0.3, 0.7]
    assert judged.pairs.n_units == 2


def test_pairs_of_several_categories_are_known_one_by_one():
    doc = write(doc_with_cats(neg=0.2, pos=0.8), SEVERAL.name, OWN, [0.2, 0.8], [0.3, 0.7])
    corpus = scored_corpus([Example(doc, doc_with_cats(neg=1))], "calib", SEVERAL, OWN)
    assert corpus.hits.tolist() == [RIGHT, UNKNOWN]
    assert corpus.right.tolist() == [UNKNOWN]
    assert corpus.pairs().pairs.scores.tolist() == [0.2]
