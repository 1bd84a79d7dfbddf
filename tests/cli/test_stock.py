"""`spacy calib stock`: the pipeline as it was before it was calibrated."""

from __future__ import annotations

import shutil

import spacy
from spacy.pipeline import EntityRecognizer
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from tests.cli.conftest import bare_docs, calib, entity_docs, files_of, refuses, save_docs, save_recognizer


def docs_of(path, data):
    nlp = spacy.load(path)
    return list(nlp.pipe(bare_docs(nlp, list(DocBin().from_disk(data).get_docs(Vocab())))))


def same_but_for_strings(one, other):
    """Both folders hold the same files with the same bytes; the words that were seen may have joined the vocab's strings."""
    before, after = files_of(one), files_of(other)
    assert set(before) == set(after)
    assert {name for name in before if before[name] != after[name]} <= {"vocab/strings.json"}


def test_the_original_comes_back_byte_for_byte(ner_model, calibrated_ner, entity_test, tmp_path):
    outcome = calib("stock", calibrated_ner, tmp_path / "stock")
    assert outcome.code == 0
    assert "'ner' is spaCy's ner again; 'calib_ent' is gone:" in outcome.text
    same_but_for_strings(ner_model, tmp_path / "stock")
    assert type(spacy.load(tmp_path / "stock").get_pipe("ner")) is EntityRecognizer
    for one, other in zip(docs_of(ner_model, entity_test), docs_of(tmp_path / "stock", entity_test), strict=True):
        assert one.to_bytes() == other.to_bytes()


def test_it_needs_this_package_no_more(calibrated_ner, tmp_path):
    assert calib("stock", calibrated_ner, tmp_path / "stock", "--silent").code == 0
    config = (tmp_path / "stock" / "config.cfg").read_text()
    assert "calib" not in config
    assert "spacy-calib" not in (tmp_path / "stock" / "meta.json").read_text()


def test_two_calib_pipes_and_cut_offs_go_too(two_pipes, ner_model, entity_test, tmp_path):
    assert calib("threshold", two_pipes, entity_test, "-p", 0.8, "-a", tmp_path / "applied", "--silent").code == 0
    outcome = calib("stock", tmp_path / "applied", tmp_path / "stock")
    assert outcome.code == 0
    assert "'calib' is gone" in outcome.text
    assert "'calib_ent' is gone" in outcome.text
    same_but_for_strings(ner_model, tmp_path / "stock")


def test_a_beam_recognizer(tmp_path):
    model = save_recognizer("beam_ner", tmp_path / "model")
    data = save_docs(tmp_path / "few.spacy", entity_docs(20, 36))
    assert calib("fit", model, data, tmp_path / "calibrated", "-C", "beam_ner", "--silent").code == 0
    outcome = calib("stock", tmp_path / "calibrated", tmp_path / "stock")
    assert "'beam_ner' is spaCy's beam_ner again" in outcome.text
    same_but_for_strings(model, tmp_path / "stock")


def test_a_tagger_a_span_categorizer_and_a_second_pass(
    calibrated, model, calibrated_spancat, spancat_model, ner_model, entity_dev, tmp_path
):
    """No recognizer of ours is in them: the calib pipe alone goes."""
    twice = tmp_path / "twice"
    assert calib("fit", ner_model, entity_dev, twice, "-C", "ner", "--second-pass", "-m", "isotonic", "--silent").code == 0
    for name, before, after in (("a", model, calibrated), ("b", spancat_model, calibrated_spancat), ("c", ner_model, twice)):
        outcome = calib("stock", after, tmp_path / name)
        assert outcome.code == 0
        assert f"'{'calib_ent' if after == twice else 'calib'}' is gone" in outcome.text
        same_but_for_strings(before, tmp_path / name)


def test_a_calibrated_pipeline_can_be_made_stock_and_fitted_again(ner_model, entity_dev, tmp_path, one_salt):
    options = ["-C", "ner", "--method", "isotonic", "--silent"]
    assert calib("fit", ner_model, entity_dev, tmp_path / "once", *options).code == 0
    assert calib("stock", tmp_path / "once", tmp_path / "stock", "--silent").code == 0
    assert calib("fit", tmp_path / "stock", entity_dev, tmp_path / "again", *options).code == 0
    same_but_for_strings(tmp_path / "once", tmp_path / "again")


def test_silent_prints_nothing_and_the_help_names_every_option(calibrated_ner, tmp_path):
    assert calib("stock", calibrated_ner, tmp_path / "stock", "--silent").printed == ""
    words = calib("stock", "--help").text.replace(",", " ").split()
    assert {"--code", "--force", "-F", "--silent"} <= set(words)


def test_the_pipeline_can_be_replaced_in_place(calibrated_ner, ner_model, tmp_path):
    place = tmp_path / "place"
    shutil.copytree(calibrated_ner, place)
    before = files_of(place)
    refuses(calib("stock", place, place), "exists already; choose another path or add --force.")
    assert files_of(place) == before
    assert calib("stock", place, place, "--force", "--silent").code == 0
    same_but_for_strings(ner_model, place)
    assert [file.name for file in tmp_path.iterdir()] == ["place"]


# Faults


def test_a_stock_pipeline_is_refused(ner_model, tmp_path):
    outcome = calib("stock", ner_model, tmp_path / "out")
    refuses(outcome, "it has: tok2vec, tagger, ner.")
    assert str(ner_model).split("/")[-1] in outcome.text
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_missing(tmp_path):
    refuses(calib("stock", "no_such_model", tmp_path / "out"), "Cannot load the pipeline 'no_such_model'")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_pipeline_stays(calibrated_ner, tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "a.txt").write_text("years of work")
    refuses(calib("stock", calibrated_ner, folder), "exists already")
    refuses(calib("stock", calibrated_ner, folder, "--force"), "it holds something that is not a spaCy pipeline")
    assert files_of(folder) == {"a.txt": b"years of work"}
