import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_calib.cli.shared.examples import read_examples, stream_examples
from tests.cli.conftest import calib, docs_in, json_of, ok

N_ARTICLES = 7


@pytest.fixture(scope="module")
def articles(test_file, tmp_path_factory):
    """The Docs of test.spacy as parts of a few articles, not one after the other."""
    docs = docs_in(test_file)
    for number, doc in enumerate(docs):
        doc.user_data["calib_document"] = f"a{number % N_ARTICLES}"
    path = tmp_path_factory.mktemp("articles") / "articles.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def test_evaluate_resamples_the_documents_that_the_docs_name(calibrated, test_file, articles, tmp_path):
    tables = {}
    for name, data in (("sentences", test_file), ("articles", articles)):
        path = tmp_path / f"{name}.json"
        outcome = ok(calib("evaluate", calibrated, data, "--output", path))
        tables[name] = next(iter(json.loads(path.read_text()).values()))
        by = tables[name]["by"]
        assert f"by {by['unit']} ({by['n']:,})" in outcome.text
    assert tables["articles"]["by"] == {"unit": "document", "n": N_ARTICLES}
    assert tables["sentences"]["by"]["unit"] == "sentence"
    assert tables["sentences"]["by"]["n"] > N_ARTICLES
    # The same pairs and errors, other intervals.
    whole = {name: table["errors"][0] for name, table in tables.items()}
    assert whole["articles"]["calibrated"] == pytest.approx(whole["sentences"]["calibrated"], abs=1e-12)
    assert whole["articles"]["true_high"] != whole["sentences"]["true_high"]


def test_the_other_commands_count_them_too(calibrated, articles, model, tmp_path):
    found = json_of("expect", calibrated, articles)
    assert (found["documents"], found["by"]) == (N_ARTICLES, "document")

    ok(calib("fit", model, articles, tmp_path / "fitted", "--method", "isotonic", "--silent"))
    pipe = spacy.load(tmp_path / "fitted").get_pipe("calib")
    assert (pipe.fit_info.docs, pipe.fit_info.unit) == (N_ARTICLES, "document")
    assert f"{N_ARTICLES} documents" in calib("info", tmp_path / "fitted").text


def test_texts_of_a_conllu_file(calibrated, tmp_path):
    file = tmp_path / "a.conllu"
    row = "{0}\t{1}\t_\t{2}\t{2}\t_\t{3}\tdep\t_\t_\n"
    sentence = row.format(1, "the", "DET", 2) + row.format(2, "dog", "NOUN", 3) + row.format(3, "eats", "VERB", 0)
    file.write_text(f"# newdoc id = a\n{sentence}\n{sentence}\n# newdoc id = b\n{sentence}", encoding="utf-8")
    outcome = ok(calib("evaluate", calibrated, file))
    assert "9 tokens" in outcome.text
    assert "by document (2)" in outcome.text
    nlp = spacy.blank("xx")
    assert len(read_examples(nlp, tmp_path, gold_preproc=True)) == 3
    assert len(list(stream_examples(nlp, tmp_path))) == 2
