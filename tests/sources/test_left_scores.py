import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.sources.left_scores import DocTensorSource

LABELS = ["A", "B"]


def blank_with_calib(key: str):
    nlp = spacy.blank("xx")
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": LABELS, "key": key, "layer": "tag"}
    return nlp, nlp.add_pipe("calib", config={"source": source})


def doc_with_array(nlp, key, array, tags):
    doc = Doc(nlp.vocab, words=["x"] * len(tags), tags=tags)
    if key == "tensor":
        doc.tensor = array
    else:
        doc.user_data[key] = array
    return doc


@pytest.mark.parametrize("key", ["tensor", "probs"])
def test_fit_and_read(key):
    nlp, calib = blank_with_calib(key)
    rng = np.random.default_rng(0)
    examples = []
    for _ in range(200):
        p = rng.uniform(0.05, 0.95, size=4)
        array = np.column_stack([p, 1 - p])
        gold = ["A" if rng.random() < q**2 else "B" for q in p]
        predicted = doc_with_array(nlp, key, array, ["A" if q > 0.5 else "B" for q in p])
        examples.append(Example(predicted, Doc(nlp.vocab, words=["x"] * 4, tags=gold)))
    calib.fit(examples)
    doc = calib(doc_with_array(nlp, key, np.array([[0.9, 0.1], [0.3, 0.7]]), ["A", "B"]))
    assert [t._.calib_raw for t in doc] == [0.9, 0.7]
    assert [t._.calib_score for t in doc] == pytest.approx([0.9**2, 1 - 0.3**2], abs=0.15)  # a bin around what the gold says


@pytest.mark.parametrize(("array", "sentence"), [
    *((np.full(shape, 0.5), r"C040.*shape") for shape in [(3, 2), (2, 3), (4,)]),
    *((np.array([[0.5, value]] * 2), r"C041.*\[0, 1\]") for value in [1.5, -0.1, np.nan, np.inf]),
])  # fmt: skip
def test_what_is_no_table_of_probabilities_is_refused(array, sentence):
    nlp, calib = blank_with_calib("probs")
    with pytest.warns(UserWarning, match="CW01"), pytest.raises(CalibError, match=sentence):
        calib(doc_with_array(nlp, "probs", array, ["A", "B"]))


def test_missing_array_gives_none_and_a_warning():
    nlp, calib = blank_with_calib("probs")
    calib.warn.warned_keys.add("CW01{}")
    with pytest.warns(UserWarning, match="no array at doc.user_data"):
        doc = calib(Doc(nlp.vocab, words=["x"], tags=["A"]))
    assert doc[0]._.calib_score is None


@pytest.mark.parametrize("labels", [[], ["A", "A"]])
def test_labels_must_be_distinct(labels):
    with pytest.raises(CalibError, match="C001.*distinct labels"):
        DocTensorSource(labels)


def test_unknown_layer():
    with pytest.raises(CalibError, match="C001.*layer must be one of"):
        DocTensorSource(["A"], layer="nope")
