"""Text categories from fit to every command: a document is a row."""

import json

import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.calibration.cutoffs import Cutoffs
from tests.cli.conftest import calib, docs_in, fitted_to, ok, refuses, save_docs
from tests.made import category_docs, revive_categorizer
from tests.sentences import says


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A categorizer (model), one of several labels (several), and gold for them. Not to be changed."""
    path = tmp_path_factory.mktemp("categories")
    revive_categorizer().to_disk(path / "model")
    revive_categorizer("textcat_multilabel").to_disk(path / "several")
    for name, seed in (("dev", 41), ("test", 42)):
        save_docs(path / f"{name}.spacy", category_docs(120, seed))
        save_docs(path / f"{name}_several.spacy", category_docs(120, seed, several=True))
    return path


@pytest.fixture(scope="module")
def fitted(folder):
    return fitted_to(folder / "fitted", folder / "model", folder / "dev.spacy", "--component", "textcat")


def test_gold_of_other_categories_is_refused(folder, tmp_path):
    docs = docs_in(folder / "dev.spacy")
    for doc in docs:
        doc.cats = {"cinema": 1.0}
    foreign = save_docs(tmp_path / "foreign.spacy", docs)
    refuses(
        calib("fit", folder / "model", foreign, tmp_path / "out", "--component", "textcat"),
        says("C263", unknown="cinema", component="textcat"),
    )


def test_units_that_there_are_not_are_refused(fitted, folder, tmp_path):
    refuses(calib("rank", fitted, folder / "test.spacy", "--unit", "token"), says("C265", own="document", given="token"))
    refuses(calib("evaluate", fitted, folder / "test.spacy", "--gold-preproc"), "labels whole documents")
    fit = ("fit", folder / "model", folder / "dev.spacy", tmp_path / "out", "--component", "textcat", "--gold-preproc")
    refuses(calib(*fit), "must be left out for a component that labels whole")


def test_auto(folder, tmp_path):
    outcome = ok(calib("fit", folder / "model", folder / "dev.spacy", tmp_path / "out", "--component", "textcat"))
    assert "Calibrated textcat on 120 documents (" in outcome.text
    assert "token" not in outcome.text
    shown = calib("info", tmp_path / "out").text
    assert "Doc._.calib_score, _raw, _cats, _cats_raw" in shown
    assert "Fitted on 120 documents, " in shown


def test_several_labels_are_fitted_one_by_one(folder, tmp_path):
    given = ("--component", "textcat_multilabel", "--groups", "3", "--method", "isotonic")
    ok(calib("fit", folder / "several", folder / "dev_several.spacy", tmp_path / "out", *given))
    outcome = calib("evaluate", tmp_path / "out", folder / "test_several.spacy")
    assert "calib (textcat_multilabel)" in outcome.text
    assert "120 documents, " in outcome.text
    doc = spacy.load(tmp_path / "out")("an actor in a scene")
    assert set(doc._.calib_cats) <= set(doc.cats) == {"film", "music", "food"}


@pytest.mark.parametrize(("arguments", "said"), [
    (("evaluate",), "120 documents, 360 pairs"),
    (("rank", "-n", "2"), "120 documents, most doubtful first (by calibrated)"),
    (("expect",), "120 documents Expected"),
])  # fmt: skip
def test_every_table_says_documents(fitted, folder, arguments, said):
    command, *options = arguments
    outcome = ok(calib(command, fitted, folder / "test.spacy", *options))
    assert said in outcome.text
    assert "token" not in outcome.text.lower()


def test_queues_hold_documents_with_their_category(fitted, folder, tmp_path):
    def queue(form):
        path = tmp_path / f"{form}.json"
        ok(calib("rank", fitted, folder / "test.spacy", "-n", "1", "--format", form, "-o", path, "--silent"))
        return json.loads(path.read_text())

    record = json.loads(calib("rank", fitted, folder / "test.spacy", "-n", "1", "--format", "jsonl").printed)
    label, text = record["marks"][0]["label"], record["text"]
    assert record["unit"] == "document"
    assert record["alternatives"][label] == record["score"]
    assert record["gold"] in {"film", "music", "food"}
    prodigy = queue("prodigy")
    assert (prodigy["label"], prodigy["text"]) == (label, text)
    assert queue("doccano")["label"] == [label]
    assert queue("label-studio")[0]["predictions"][0]["result"][0]["value"] == {"choices": [label]}


def test_adapt_page_and_picture(fitted, folder, tmp_path):
    outcome = calib("adapt", fitted, folder / "test.spacy", tmp_path / "adapted")
    assert "Adapted textcat to 120 Docs of the file (120 documents)" in outcome.text
    assert "the top label of a document had a mean score" in outcome.text
    assert "token" not in outcome.text
    outcome = calib("evaluate", fitted, folder / "test.spacy", "--kind", "top", "--format", "json")
    table = next(iter(json.JSONDecoder().raw_decode(outcome.printed)[0].values()))  # a warning follows
    assert table["pictures"]["unit"] == "document"
    assert "textcat: documents" in calib("evaluate", fitted, folder / "test.spacy", "-o", tmp_path / "page.html").text
    page = (tmp_path / "page.html").read_text()
    assert "on 120 documents" in page
    assert "one document and one label with its score" in page
    assert "textcat: documents" in page


def test_a_cut_off_of_documents_accepts_what_reaches_it(folder, fitted, tmp_path):
    given = ("--precision", 0.8, "--output", tmp_path / "cutoffs.json", "--apply", tmp_path / "applied")
    outcome = ok(calib("threshold", fitted, folder / "test.spacy", *given))
    (row,) = json.loads((tmp_path / "cutoffs.json").read_text())["rows"]
    assert "Cut-offs for a precision of 80 % (categories of documents)" in outcome.text
    assert "At least 80 % of the accepted documents are right" in outcome.text
    assert "Doc._.calib_accept" in outcome.text
    nlp = spacy.load(tmp_path / "applied")
    gold = docs_in(folder / "test.spacy")
    docs = list(nlp.pipe(Doc(nlp.vocab, words=[token.text for token in doc]) for doc in gold))
    assert row["documents"] == len(docs)
    assert row["kept"] > 0
    assert [doc._.calib_accept for doc in docs] == [doc._.calib_score >= row["cutoff"] for doc in docs]
    kept = [(doc, one) for doc, one in zip(docs, gold, strict=True) if doc._.calib_accept]
    right = sum(max(doc.cats, key=doc.cats.get) == max(one.cats, key=one.cats.get) for doc, one in kept)
    assert (row["kept"], row["precision"]) == (len(kept), pytest.approx(right / len(kept)))
    assert f"{row['cutoff']:.4f} (precision 0.8, confidence 0.95)" in calib("info", tmp_path / "applied").text
    # With a higher one, some are not accepted.
    middle = sorted(doc._.calib_score for doc in docs)[len(docs) // 2]
    nlp.get_pipe("calib").tokens.label_cutoffs = Cutoffs(0.9, 0.95, "all", {"all": middle})
    again = [nlp.get_pipe("calib")(doc)._.calib_accept for doc in docs]
    assert again == [doc._.calib_score >= middle for doc in docs]
    assert set(again) == {True, False}
    # Of the category that it had: of another one nothing is known.
    doc = docs[0]
    other = min(doc.cats, key=doc.cats.get)
    doc.cats[other] = 2.0
    assert doc._.calib_accept is None
    assert spacy.load(fitted)("the film")._.calib_accept is None


def test_categories_have_no_outside(folder, fitted):
    refuses(calib("threshold", fitted, folder / "test.spacy", "--recall", 0.9), says("C310"))
