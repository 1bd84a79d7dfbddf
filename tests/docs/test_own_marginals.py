"""docs/components/other-tools.md is run, and what it promises of scores on Docs holds."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.doc.top_labels import write_labels
from spacy_calib.errors import CalibError
from spacy_calib.sources.left_scores import DocTensorSource
from tests.docs.pages import DOCS, blocks_of

PAGE = DOCS / "components" / "other-tools.md"
NLP = spacy.blank("xx")
(CONFIG,) = (block.text for block in blocks_of(PAGE) if block.title == "own.cfg")


def test_the_page_runs(reader):
    run = reader(PAGE)
    for block in blocks_of(PAGE):
        run.block(block)
        if "./blank" in block.text and block.language == "bash":
            assert "by document (50)" in " ".join(run.printed.split())
    assert spacy.load("./calibrated").get_pipe("calib").labels == ("DET", "NOUN", "VERB")
    doc = run.names["doc"]
    for token, row in zip(doc, doc.user_data["my_probabilities"], strict=True):
        assert token.tag_ == ("DET", "NOUN", "VERB")[int(row.argmax())]
        assert token._.calib_raw == row.max()
        assert 0 <= token._.calib_score <= 1
    # The tagging that the page makes up is right less often than it says.
    assert all(token._.calib_score < token._.calib_raw for token in doc if token._.calib_raw > 0.95)


@pytest.mark.parametrize("content", ["{}", "[1]", "nope", "[" * 99_999, None])
def test_a_file_without_a_list_of_labels_is_refused(tmp_path, content):
    (tmp_path / "own.cfg").write_text(CONFIG)
    if content is not None:
        (tmp_path / "labels.json").write_text(content)
    from spacy_calib.cli.fitting.settings import settings_from_file

    with pytest.raises(CalibError, match=r"\[C167\].*labels\.json"):
        settings_from_file(tmp_path / "own.cfg")


def test_rows_that_do_not_sum_to_one_are_refused_unless_that_is_said():
    doc = Doc(NLP.vocab, words=["x", "y"])
    doc.user_data["p"] = np.array([[0.5, 0.5], [0.3, 0.2]])
    with pytest.raises(CalibError, match=r"\[C166\].*sum to 0\.5 up to 1\b.*subprobabilities = true"):
        DocTensorSource(["A", "B"], "p").read(None, [doc])
    assert DocTensorSource(["A", "B"], "p", subprobabilities=True).read(None, [doc]).n_tokens == 2
    doc.user_data["p"] = np.array([[0.5, 0.5], [0.9, 0.2]])
    for allowed in (False, True):
        with pytest.raises(CalibError, match=r"\[C166\].*up to 1\.1"):
            DocTensorSource(["A", "B"], "p", subprobabilities=allowed).read(None, [doc])


@pytest.mark.parametrize(("layer", "labels", "attribute"), [
    ("tag", ["A", ""], "tag_"), ("lemma", ["a", "b"], "lemma_"), ("pos", ["NOUN", "X"], "pos_"), ("ent_type", ["P", ""], "ent_type_"),
    ("morph", ["Number=Sing|POS=NOUN", "POS=X"], None), ("sent", ["I", "S"], None), ("dep", ["nsubj", "obj"], "dep_"),
])  # fmt: skip
def test_labels_are_written_on_every_layer(layer, labels, attribute):
    from spacy_calib.annotations import get_annotation

    doc = Doc(NLP.vocab, words=["x", "y"])
    write_labels(doc, layer, labels)
    if attribute:
        assert [getattr(token, attribute) for token in doc] == labels
    else:
        assert [get_annotation(layer).label(token) for token in doc] == (labels if layer == "morph" else ["", "S"])


def test_labels_of_a_doc_that_has_some_stay(tmp_path):
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": ["A", "B"], "key": "p"}
    nlp = spacy.blank("xx")
    calib = nlp.add_pipe("calib", config={"source": source})
    calib.warn.warned_keys.add("CW01{}")
    doc = Doc(nlp.vocab, words=["x", "y"], tags=["B", ""])
    doc.user_data["p"] = np.array([[0.9, 0.1], [0.8, 0.2]])
    calib(doc)
    assert [(token.tag_, token._.calib_score) for token in doc] == [("B", 0.1), ("", None)]
