"""Labels of tokens, predicted and gold."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.layers import LAYERS, columns_of, get_layer, label_hashes


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("en").vocab


def full_doc(vocab):
    return Doc(
        vocab, words=["dogs", "run"], tags=["NNS", "NUM"], pos=["NOUN", "VERB"], morphs=["Number=Plur", ""],
        lemmas=["dog", "run"], deps=["nsubj", "ROOT"], heads=[1, 1], ents=["B-ANIMAL", "O"], sent_starts=[True, False],
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_hash_is_that_of_the_label(vocab, name):
    doc = full_doc(vocab)
    layer = get_layer(name)
    labels = [layer.label(token) for token in doc]
    assert layer.hashes(doc).tolist() == [get_string_id(label) if label else 0 for label in labels]
    assert layer.count([doc, doc]) == {label: 2 * labels.count(label) for label in labels if label}


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_no_annotation_is_no_label(vocab, name):
    doc = Doc(vocab, words=["a", "b"])
    layer = get_layer(name)
    assert not layer.gold_hashes(doc).any()
    assert layer.count([doc]) == {}
    assert layer.hashes(Doc(vocab)).shape == (0,)


def test_labels(vocab):
    doc = full_doc(vocab)
    assert [get_layer("morph").label(t) for t in doc] == ["Number=Plur|POS=NOUN", "POS=VERB"]
    assert [get_layer("sent").label(t) for t in doc] == ["S", "I"]


def test_unset_sentence_start_in_annotated_gold_counts_as_inside(vocab):
    doc = Doc(vocab, words=["a", "b", "c"], sent_starts=[True, None, False])
    assert get_layer("sent").gold_hashes(doc).tolist() == [get_string_id("S"), get_string_id("I"), get_string_id("I")]


def test_aligned_gold_leaves_out_what_spacys_scorer_leaves_out(vocab):
    predicted = Doc(vocab, words=["can", "not", " ", "go", "on"], spaces=[False, True, False, True, False])
    reference = Doc(vocab, words=["cannot", "go", "o", "n"], spaces=[True, True, False, False], tags=["MD", "", "X", "X"])
    gold = get_layer("tag").aligned_gold(Example(predicted, reference))
    # both parts of "cannot" align with it alone; the space, the token without gold and the one with two gold tokens are left out
    assert gold.tolist() == [get_string_id("MD"), get_string_id("MD"), 0, 0, 0]


def test_columns_of():
    of_labels = label_hashes(["B", "A", "NUM"])
    hashes = np.array([get_string_id("A"), get_string_id("NUM"), get_string_id("Z"), 0], dtype=np.uint64)
    assert columns_of(hashes, of_labels).tolist() == [1, 2, -1, -2]
    assert columns_of(hashes, of_labels[:0]).tolist() == [-1, -1, -1, -2]


def test_unknown_layer():
    with pytest.raises(CalibError, match="C001.*layer must be one of"):
        get_layer("nope")
