"""What pipes and Docs say of themselves: repr and `Doc.to_json`."""

import json

import pytest
import spacy
import srsly

from spacy_calib.doc.doc_calib import DocCalib

TEXT = "the old dog saw a duck ."


def test_a_pipe_says_in_a_line_what_it_is(fitted):
    shown = repr(fitted.get_pipe("calib"))
    assert shown.startswith("<Calibrator 'calib' of tagger (tag), fitted on ")
    assert "\n" not in shown
    assert "not fitted" in repr(spacy.blank("xx").add_pipe("calib"))


def test_a_doc_says_what_is_scored(fitted):
    view = fitted(TEXT)._.calib
    assert isinstance(view, DocCalib)
    assert repr(view) == f"<DocCalib: 7 of 7 tokens scored (tag), {len(view.rows)} entries>"


@pytest.mark.parametrize("dumps", [json.dumps, srsly.json_dumps, lambda data: json.dumps(data, indent=1)])
def test_a_doc_goes_to_json_with_its_scores(fitted, dumps):
    doc = fitted(TEXT)
    data = json.loads(dumps(doc.to_json(underscore=["calib"])))["_"]["calib"]
    assert set(data) == {"layer", "rows", "tags", "raw", "calibrated", "ents", "candidates"}
    scores: list[dict[str, float]] = [{} for _ in doc]
    for row, tag, score in zip(data["rows"], data["tags"], data["calibrated"], strict=True):
        scores[row][tag] = score
    for token, found in zip(doc, scores, strict=True):
        assert found == pytest.approx(token._.calib_scores)
    assert data["layer"] == "tag"


def test_a_doc_without_scores_goes_to_json(fitted):
    assert fitted.make_doc(TEXT).to_json(underscore=["calib"])["_"]["calib"] is None
