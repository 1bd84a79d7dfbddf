"""`spacy calib evaluate` before any fit ("how bad is mine?"), and what it leaves out of the gold."""

import re

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from tests.cli.conftest import calib, docs_in, json_of, ok, refuses, save_docs
from tests.made import category_docs, revive_categorizer
from tests.sentences import says

CALIBRATED = ("calibrated", "debiased", "true_low", "true_high")


def evaluated(*arguments):
    """(what is printed, the JSON of the one pipe)."""
    outcome = ok(calib("evaluate", *arguments))
    (table,) = json_of("evaluate", *arguments).values()
    return outcome.text, table


def check_raw(table, fitted):
    """The raw figures are those that a fitted pipe shows; no calibrated ones are there."""
    assert table["errors"][0]["raw"] == pytest.approx(fitted["errors"][0]["raw"], abs=1e-6)
    assert table["pairs"] == fitted["pairs"]
    assert table["accuracy"] == pytest.approx(fitted["accuracy"])
    assert {key: row["raw"] for key, row in table["scores"].items()} == pytest.approx(
        {key: row["raw"] for key, row in fitted["scores"].items()}, abs=1e-6
    )
    assert all(row[key] is None for row in table["errors"] for key in CALIBRATED)
    assert all(row["calibrated"] is None for row in table["scores"].values())
    assert all(value is None for row in table["change"].values() for value in row.values())
    assert set(fitted) <= set(table)


def test_a_tagger_without_a_fit_shows_its_raw_scores_and_the_fit_command(model, calibrated, test_file):
    text, table = evaluated(model, test_file)
    check_raw(table, evaluated(calibrated, test_file)[1])
    off = table["scores"]["ece"]["raw"]
    assert f"The scores of 'tagger' are off by {off:.3f} on average, mostly too low (the top label of each token" in text
    assert f"python -m spacy calib fit {model} dev.spacy ./calibrated" in text
    assert "--component" not in text
    assert "Group Tags Pairs Raw Floor -" in text
    assert text.index("A pair is one token") < text.index("This command calibrates them")
    assert "Score Raw " in text
    assert "Calibrated " not in text
    assert table["unfitted"]["fit"] in text


def test_a_recognizer_without_a_fit(ner_model, calibrated_ner, entity_test):
    text, table = evaluated(ner_model, entity_test, "--component", "ner")
    fitted = evaluated(calibrated_ner, entity_test)[1]
    check_raw(table, fitted)
    check_raw(table["entities"], fitted["entities"])
    assert f"off by {table['entities']['scores']['ece']['raw']:.3f} on average" in text
    assert "predicted entities" in text
    assert f"python -m spacy calib fit {ner_model} dev.spacy ./calibrated --component ner" in text
    assert "whole entities (event: exact)" in text


@pytest.fixture(scope="module")
def categories(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw_categories")
    revive_categorizer().to_disk(folder / "model")
    return folder / "model", save_docs(folder / "test.spacy", category_docs(80, 42))


def test_the_only_component_that_can_be_calibrated_is_taken(categories):
    text, table = evaluated(*categories)
    assert table["component"] == "textcat"
    assert "The scores of 'textcat' are off by" in text
    assert "--component textcat" in text
    assert not re.search(r"\btags?\b", text, flags=re.I)


def test_another_component_than_the_fitted_one(calibrated_ner, entity_test, two_pipes):
    text, table = evaluated(calibrated_ner, entity_test, "--component", "tagger")
    assert "The scores of 'tagger' are off by" in text
    fitted = json_of("evaluate", two_pipes, entity_test, "-C", "tagger")
    assert list(fitted) == ["calib"]
    check_raw(table, fitted["calib"])


def test_a_calib_pipe_that_was_never_fitted(changed_model, model, test_file):
    path = changed_model(lambda nlp: nlp.add_pipe("calib", after="tagger", config={"threshold": 0.2}))
    text, table = evaluated(path, test_file)
    assert "The scores of 'tagger' are off by" in text
    assert table["pairs"] < evaluated(model, test_file)[1]["pairs"]
    assert spacy.load(path).get_pipe("calib").fitted is False


def test_what_cannot_be_judged_is_refused(model, calibrated, test_file, entity_test, ner_model, tmp_path):
    refuses(calib("evaluate", model, test_file, "--component", "ner"), says("C317", component="ner"))
    spacy.blank("xx").to_disk(tmp_path / "blank")
    refuses(calib("evaluate", tmp_path / "blank", test_file), says("C318", available="no components"))
    refuses(calib("evaluate", ner_model, test_file, "-C", "ner"), "no gold ner annotation for component 'ner'")
    for output in (("-o", tmp_path / "out.html"), ("-k", "top", "-o", tmp_path / "out.svg")):
        refuses(calib("evaluate", model, test_file, *output), "The pipeline has no fitted calib pipe")


# What raw scores have in common with those of a fitted pipe, which the same steps evaluate


def test_a_source_of_a_second_pass_reads_what_the_recognizer_says(ner_model, entity_test, tmp_path):
    """Also behind a component that sets entities: these have no score, and take no part."""

    def save(name, *, ruler=False, source=False):
        nlp = spacy.load(ner_model)
        if ruler:
            nlp.add_pipe("entity_ruler", before="ner").add_patterns([{"label": "PER", "pattern": "Ann"}])
        if source:
            settings = {"source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}}
            nlp.add_pipe("calib", "calib_ent", after="ner", config={"attr": "calib_ent", **settings})
        nlp.to_disk(tmp_path / name)
        return tmp_path / name

    def figures(model):
        (table,) = json_of("evaluate", model, entity_test, "-C", "ner").values()
        table.pop("unfitted")
        return table

    plain = figures(ner_model)
    assert figures(save("second", source=True)) == plain
    ruled = figures(save("ruled", ruler=True))
    assert figures(save("ruled_second", ruler=True, source=True)) == ruled
    assert 0 < ruled["tokens"] < plain["tokens"]


def test_a_map_of_labels_gives_the_figures_of_the_gold_with_the_names_of_the_component(ner_model, entity_test, tmp_path):
    docs = docs_in(entity_test)
    for doc in docs:
        spans = [Span(doc, span.start, span.end, f"{span.label_}X") for span in doc.ents]
        doc.set_ents(spans, default="outside")
    renamed, names = save_docs(tmp_path / "renamed.spacy", docs), "PER=PERX,LOC=LOCX,ORG=ORGX"
    mapped = json_of("evaluate", ner_model, renamed, "-C", "ner", "--map", names)
    assert mapped == json_of("evaluate", ner_model, entity_test, "-C", "ner")
    refuses(calib("evaluate", ner_model, renamed, "-C", "ner", "--map", "XX=PERX"), says("C165", component="ner"))


def test_a_threshold_that_no_score_reaches(changed_model, test_file):
    path = changed_model(lambda nlp: nlp.add_pipe("calib", after="tagger", config={"threshold": 0.9999}))
    refuses(calib("evaluate", path, test_file), says("C005", n_pairs="0", threshold="0.9999"))


@pytest.fixture(scope="module")
def merged(test_file, tmp_path_factory):
    """The gold with the first two words of every tenth sentence as three tokens in a row of which the tokenizer of "xx" makes two."""
    docs = []
    for number, doc in enumerate(DocBin().from_disk(test_file).get_docs(Vocab())):
        words, tags = [token.text for token in doc], [token.tag_ for token in doc]
        spaces = [True] * len(words)
        if number % 10 == 0 and len(words[0]) > 1:
            words[0:1], tags[0:1], spaces[0:1] = [words[0][:1], words[0][1:]], [tags[0]] * 2, [False, True]
        docs.append(Doc(Vocab(), words=words, tags=tags, spaces=spaces))
    return save_docs(tmp_path_factory.mktemp("merged") / "merged.spacy", docs)


@pytest.mark.parametrize("which", ["model", "calibrated"])
def test_misaligned_tokens_are_counted_aloud(which, merged, request):
    path = request.getfixturevalue(which)
    text, table = evaluated(path, merged)
    held = table["misaligned"]
    assert held["left_out"] >= 5
    assert held["tokens"] == table["tokens"] + held["left_out"]
    share = 100 * held["left_out"] / held["tokens"]
    assert f"{held['left_out']} of {held['tokens']} tokens ({share:.1f} %) are left out" in text
    assert "--gold-preproc" in text
    text, table = evaluated(path, merged, "--gold-preproc")
    assert table["misaligned"]["left_out"] == 0
    assert "are left out" not in text
