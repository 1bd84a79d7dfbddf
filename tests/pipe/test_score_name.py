"""The setting score_name: calibrated scores under the names that other tools read."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span, Token

from spacy_calib import spans_from
from spacy_calib.errors import CalibError

SOURCE = {"@calib_sources": "spacy-calib.SpanScores.v1", "score": "found", "labels": ["X"]}


@pytest.fixture(autouse=True)
def forget():
    """Extensions are registered in the whole process."""
    yield
    for owner in (Token, Span):
        for name in ("tool_score", "taken"):
            if owner.has_extension(name):
                owner.remove_extension(name)


def tool_pipeline(score_name):
    """A pipeline whose tool finds dogs, and a calib pipe that is not fitted: its scores are the raw ones."""
    nlp = spacy.blank("xx")
    calib = nlp.add_pipe("calib", name="calib_ent", config={"source": SOURCE, "attr": "calib_ent", "score_name": score_name})
    calib.warn.silence("CW01")
    return nlp, calib


def found(nlp, scores=(0.75, 0.5)):
    doc = Doc(nlp.vocab, words=["dog", "sees", "dogs"])
    ends = [(0, 3), (9, 13)]
    spans = [{"start": a, "end": b, "label": "X", "score": score} for (a, b), score in zip(ends, scores, strict=True)]
    return spans_from(doc, spans).doc


def test_entities_have_their_scores_under_the_name():
    nlp, calib = tool_pipeline("tool_score")
    doc = calib(found(nlp))
    assert [ent._.tool_score for ent in doc.ents] == [ent._.calib_ent_score for ent in doc.ents] == [0.75, 0.5]
    group = doc.spans["tool_score"]
    assert [(span.text, span.label_) for span in group] == [("dog", "X"), ("dogs", "X")]
    assert group.attrs["scores"].tolist() == [0.75, 0.5]
    assert doc.spans["found"].attrs["scores"] == [0.75, 0.5]  # the raw scores stay
    doc.ents = [Span(doc, 0, 2, "X")]
    assert doc.ents[0]._.tool_score is None  # a getter: nothing is stored


def test_a_second_run_reads_raw_scores_again_and_replaces_the_group():
    nlp, calib = tool_pipeline("tool_score")
    doc = calib(found(nlp))
    doc.spans["found"].attrs["scores"] = [0.25, 0.5]
    assert calib(doc).spans["tool_score"].attrs["scores"].tolist() == [0.25, 0.5]
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert calib(again).spans["tool_score"].attrs["scores"].tolist() == [0.25, 0.5]


def test_the_setting_is_saved(tmp_path):
    tool_pipeline("tool_score")[0].to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved").get_pipe("calib_ent").score_name == "tool_score"


def test_a_group_of_another_component_is_not_replaced():
    nlp, calib = tool_pipeline("found")
    with pytest.raises(CalibError, match=r"C289.*doc\.spans\['found'\]"):
        calib(found(nlp))
    doc = found(nlp)
    assert np.allclose(doc.spans["found"].attrs["scores"], [0.75, 0.5])


def test_an_extension_of_another_component_is_not_replaced():
    Span.set_extension("taken", default=None)
    with pytest.raises(CalibError, match=r"C289.*Span\._\.taken"):
        tool_pipeline("taken")
    with pytest.raises(CalibError, match="C001.*score_name"):
        tool_pipeline("a b")


def test_a_source_that_reads_the_name_is_refused():
    """It would take calibrated scores for raw ones."""
    nlp, calib = tool_pipeline("tool_score")
    doc = calib(found(nlp))
    reader = nlp.add_pipe("calib", config={"source": {**SOURCE, "score": "_.tool_score"}, "attr": "second"})
    reader.warn.silence("CW01")
    with pytest.raises(CalibError, match=r"C290.*Span\._\.tool_score"):
        reader(doc)


def test_tags_have_no_group_but_the_name():
    nlp = spacy.blank("xx")
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": ["A", "B"], "key": "p"}
    calib = nlp.add_pipe("calib", config={"source": source, "score_name": "tool_score"})
    calib.warn.silence("CW01")
    doc = Doc(nlp.vocab, words=["x"], tags=["B"])
    doc.user_data["p"] = np.array([[0.25, 0.75]])
    assert calib(doc)[0]._.tool_score == 0.75
    assert "tool_score" not in doc.spans
