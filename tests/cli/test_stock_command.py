"""`spacy calib stock`: the pipeline as it was before it was calibrated."""

import spacy
from spacy.pipeline import EntityRecognizer

from tests.cli.conftest import (
    annotated,
    calib,
    docs_in,
    entity_docs,
    files_of,
    fitted_to,
    ok,
    refuses,
    save_docs,
    save_recognizer,
)
from tests.sentences import says


def same_but_for_strings(one, other):
    """Both folders hold the same files with the same bytes; the words that were seen may have joined the vocab's strings."""
    before, after = files_of(one), files_of(other)
    assert set(before) == set(after)
    assert {name for name in before if before[name] != after[name]} <= {"vocab/strings.json"}


def test_the_original_comes_back_byte_for_byte(ner_model, calibrated_ner, entity_test, tmp_path):
    outcome = ok(calib("stock", calibrated_ner, tmp_path / "stock"))
    assert "'ner' is spaCy's ner again; 'calib_ent' was removed:" in outcome.text
    same_but_for_strings(ner_model, tmp_path / "stock")
    assert type(spacy.load(tmp_path / "stock").get_pipe("ner")) is EntityRecognizer
    for one, other in zip(annotated(ner_model, entity_test), annotated(tmp_path / "stock", entity_test), strict=True):
        assert one.to_bytes() == other.to_bytes()


def test_two_calib_pipes_and_cut_offs_go_too(two_pipes, ner_model, entity_test, tmp_path):
    ok(calib("threshold", two_pipes, entity_test, "-p", 0.8, "-a", tmp_path / "applied", "--silent"))
    outcome = ok(calib("stock", tmp_path / "applied", tmp_path / "stock"))
    assert "'calib' was removed" in outcome.text
    assert "'calib_ent' was removed" in outcome.text
    same_but_for_strings(ner_model, tmp_path / "stock")


def test_a_beam_recognizer(tmp_path):
    model = save_recognizer("beam_ner", tmp_path / "model")
    data = save_docs(tmp_path / "few.spacy", entity_docs(20, 36))
    fitted_to(tmp_path / "calibrated", model, data, "-C", "beam_ner", "--method", "platt")
    nlp = spacy.load(tmp_path / "calibrated")
    assert nlp.get_pipe_meta("beam_ner").factory == "calib_beam_ner"
    docs = [nlp(doc.text) for doc in docs_in(data)]
    assert all(ent._.calib_score is not None for doc in docs for ent in doc.ents)
    assert any(doc._.calib_ent.candidates for doc in docs)
    assert "'beam_ner' is spaCy's beam_ner again" in calib("stock", tmp_path / "calibrated", tmp_path / "stock").text
    same_but_for_strings(model, tmp_path / "stock")


def test_a_tagger_a_span_categorizer_and_a_second_pass(
    calibrated, model, spancat_model, span_gold, ner_model, entity_dev, tmp_path
):
    """No recognizer of ours is in them: the calib pipe alone goes."""
    twice = fitted_to(tmp_path / "twice", ner_model, entity_dev, "-C", "ner", "--second-pass")
    spans = fitted_to(tmp_path / "spans", spancat_model, span_gold / "dev.spacy", "-C", "spancat")
    for name, before, after in (("a", model, calibrated), ("b", spancat_model, spans), ("c", ner_model, twice)):
        outcome = ok(calib("stock", after, tmp_path / name))
        assert f"'{'calib_ent' if after == twice else 'calib'}' was removed" in outcome.text
        same_but_for_strings(before, tmp_path / name)


def test_a_stock_pipeline_is_refused(ner_model, tmp_path):
    outcome = calib("stock", ner_model, tmp_path / "out")
    refuses(outcome, says("C067", available="tok2vec, tagger, ner"))
    assert str(ner_model).split("/")[-1] in outcome.text
    assert not list(tmp_path.iterdir())
