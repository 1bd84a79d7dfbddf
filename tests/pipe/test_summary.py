"""What pipes and Docs say of themselves: repr, notebooks, `nlp.analyze_pipes()`, and `Doc.to_json`."""

import json

import pytest
import spacy
import srsly

from spacy_calib.doc.view import DocCalib

TEXT = "the old dog saw a duck ."


def test_a_pipe_says_in_a_line_what_it_is(fitted):
    shown = repr(fitted.get_pipe("calib"))
    assert shown.startswith("<Calibrator 'calib' of tagger (tag), fitted on ")
    assert "\n" not in shown
    assert "not fitted" in repr(spacy.blank("xx").add_pipe("calib"))


def test_a_notebook_shows_an_escaped_table(fitted):
    fitted.rename_pipe("calib", "<b>&calib")
    html = fitted.get_pipe("<b>&calib")._repr_html_()
    assert html.count("<tr>") == 5
    assert "&lt;b&gt;&amp;calib" in html
    assert "<b>" not in html


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


@pytest.mark.parametrize(("component", "needs"), [
    ("tagger", ["token.tag"]), ("morphologizer", ["token.pos", "token.morph"]), ("senter", ["token.is_sent_start"]),
    ("trainable_lemmatizer", ["token.lemma"]), ("ner", ["doc.ents"]), ("spancat", ["doc.spans"]),
])  # fmt: skip
def test_analyze_pipes_knows_what_each_pipe_reads(component, needs):
    source = {"ner": "Ner", "spancat": "Spancat"}.get(component, "Softmax")
    nlp = spacy.blank("xx")
    nlp.add_pipe(component)
    config = {"source": {"@calib_sources": f"spacy-calib.{source}.v1", "component": component}}
    nlp.add_pipe("calib", config=config)
    found = nlp.analyze_pipes()
    assert found["problems"]["calib"] == []
    assert found["summary"]["calib"]["requires"] == needs
    nlp.remove_pipe(component)
    nlp.add_pipe(component)
    assert nlp.analyze_pipes()["problems"]["calib"] == needs  # behind it now


def test_analyze_pipes_knows_the_prefix_and_the_scores():
    nlp = spacy.blank("xx")
    nlp.add_pipe("tagger")
    nlp.add_pipe("calib", name="second", config={"attr": "mine"})
    held = nlp.analyze_pipes()["summary"]["second"]
    assert "token._.mine_score" in held["assigns"]
    assert "doc._.mine" in held["assigns"]
    assert not [name for name in held["assigns"] if "calib" in name]
    assert {"mine_smce", "mine_gmce_raw", "mine_nll"} <= set(held["scores"])
