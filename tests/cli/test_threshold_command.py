"""`spacy calib threshold`: its table and JSON, and the pipeline that applies the cut-offs."""

import json

import numpy as np
import pytest
import spacy
from spacy.training import Corpus

from spacy_calib.calibration.thresholds import find_threshold, round_down
from spacy_calib.pipe.scorer import corpus_of
from tests.cli.conftest import annotated, calib, files_of, ok, refuses

KEYS = {"key", "cutoff", "entities", "kept", "share", "precision", "low", "high"}


def run_threshold(model, data, tmp_path, *options, precision=0.8):
    path = tmp_path / "cutoffs.json"
    outcome = ok(calib("threshold", model, data, "--precision", precision, "--output", path, "--force", *options))
    return outcome, json.loads(path.read_text())


def judged(model, data, gold_preproc=False, attr="calib_ent"):
    """(pipe, labels, what it says of the gold's documents): what the command works on, by the functions of Python."""
    nlp = spacy.load(model)
    examples = list(Corpus(data, gold_preproc=gold_preproc)(nlp))
    for example, doc in zip(examples, nlp.pipe([eg.predicted for eg in examples]), strict=True):
        example.predicted = doc
    (pipe,) = [pipe for _, pipe in nlp.components if getattr(pipe, "attr", "") == attr]
    labels = pipe.lookup.span_labels()
    return pipe, labels, corpus_of(examples, attr, pipe.lookup.labels()).span_pairs(labels)


def check_row(row, scores, hits):
    """The figures of a row are those of the spans at or above its cut-off."""
    assert set(row) == KEYS
    assert row["entities"] == len(scores)
    if row["cutoff"] is None:
        assert (row["kept"], row["precision"], row["low"], row["high"]) == (0, None, None, None)
        return
    kept = scores >= row["cutoff"]
    assert row["kept"] == int(kept.sum())
    assert row["share"] == pytest.approx(kept.mean())
    assert row["precision"] == pytest.approx(hits[kept].mean())
    assert 0 <= row["low"] <= row["precision"] <= row["high"] <= 1


def test_one_cut_off_for_all(calibrated_ner, entity_test, tmp_path):
    outcome, result = run_threshold(calibrated_ner, entity_test, tmp_path)
    assert {key: result[key] for key in ("pipe", "event", "precision", "confidence", "per")} == {
        "pipe": "calib_ent", "event": "exact", "precision": 0.8, "confidence": 0.95, "per": "all",
    }  # fmt: skip
    pipe, _, found = judged(calibrated_ner, entity_test)
    expected = find_threshold(round_down(found.calibrated), found.pairs.hits, found.documents, 0.8, 0.95)
    (row,) = result["rows"]
    assert row["key"] == "all"
    assert expected.cutoff is not None
    assert 0 < expected.kept < expected.spans
    assert result["cutoffs"] == {"all": row["cutoff"]}
    assert row["cutoff"] == pytest.approx(expected.cutoff, abs=1e-6)
    assert (row["entities"], row["kept"]) == (expected.spans, expected.kept)
    assert (row["precision"], row["share"]) == (pytest.approx(expected.precision), pytest.approx(expected.share))
    assert (row["low"], row["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))
    check_row(row, found.calibrated, found.pairs.hits)
    assert row["precision"] >= 0.8
    # The table says the same.
    assert "Cut-offs for a precision of 80 % (event: exact)" in outcome.text
    assert (
        f"all {row['cutoff']:.4f} {row['entities']} {row['kept']} {100 * row['share']:.1f} {row['precision']:.4f}"
        in outcome.text
    )
    assert f"{row['low']:.4f} to {row['high']:.4f}" in outcome.text
    assert "At least 80 % of the accepted entities are right" in outcome.text
    assert pipe.spans.cutoffs is None


@pytest.mark.parametrize("per", ["label", "group"])
def test_a_cut_off_for_each_label_or_group(per, calibrated_ner, entity_test, tmp_path):
    _, result = run_threshold(calibrated_ner, entity_test, tmp_path, "--per", per, precision=0.6)
    pipe, labels, found = judged(calibrated_ner, entity_test)
    groups = pipe.spans.groups
    keys = np.array(labels)[found.pairs.tags] if per == "label" else np.array(groups.names)[groups.find(found.pairs.tags)]
    assert [row["key"] for row in result["rows"]] == list(labels if per == "label" else groups.names)
    assert result["cutoffs"] == {row["key"]: row["cutoff"] for row in result["rows"]}
    for row in result["rows"]:
        own = keys == row["key"]
        check_row(row, found.calibrated[own], found.pairs.hits[own])
    assert sum(row["entities"] for row in result["rows"]) == len(found.pairs)
    assert any(row["cutoff"] is not None for row in result["rows"])


def test_no_pipeline_is_written_that_would_accept_nothing(calibrated_ner, entity_test, tmp_path):
    applied, path = tmp_path / "applied", tmp_path / "cutoffs.json"
    given = ("--precision", 0.9999, "--recall", 0.5)
    refuses(
        calib("threshold", calibrated_ner, entity_test, *given, "--apply", applied, "--output", path),
        "would accept nothing, so it was not written; ask for less",
    )
    assert not applied.exists()
    assert json.loads(path.read_text())["cutoffs"] == {"all": None}
    ok(calib("threshold", calibrated_ner, entity_test, *given, "--apply", applied, "--allow-empty"))
    assert applied.exists()


def test_labels_without_a_cut_off_are_named_and_do_not_stop_the_others(calibrated_ner, entity_test, tmp_path):
    applied = tmp_path / "applied"
    outcome, result = run_threshold(calibrated_ner, entity_test, tmp_path, "--apply", applied, "--per", "label", precision=0.78)
    rows = {row["key"]: row for row in result["rows"]}
    missed = [key for key, row in rows.items() if row["cutoff"] is None]
    assert 0 < len(missed) < len(rows)
    for key in missed:
        assert f"{key} not reached" in outcome.text
    accepted = {ent.label_ for doc in annotated(applied, entity_test) for ent in doc.ents if ent._.calib_accept}
    assert accepted == set(rows) - set(missed)


@pytest.mark.parametrize("per", ["all", "label", "group"])
def test_the_applied_cut_offs_accept_what_reaches_them(per, calibrated_ner, entity_test, tmp_path):
    applied = tmp_path / "applied"
    outcome, result = run_threshold(calibrated_ner, entity_test, tmp_path, "--apply", applied, "--per", per, precision=0.6)
    assert "The pipeline with these cut-offs (Span._.calib_ent_accept)" in outcome.text
    pipe = spacy.load(applied).get_pipe("calib_ent")
    assert pipe.spans.cutoffs.state() == {
        key: result[key] for key in ("precision", "confidence", "per", "cutoffs", "targets", "sample")
    }
    groups, labels = pipe.spans.groups, pipe.lookup.span_labels()
    key_of = {
        "all": lambda label: "all",
        "label": lambda label: label,
        "group": lambda label: groups.names[groups.of_tag[labels.index(label)]],
    }[per]
    accepted = 0
    for doc in annotated(applied, entity_test):
        for ent, one in zip(doc.ents, doc._.calib_ent.ents, strict=True):
            cutoff = result["cutoffs"][key_of(ent.label_)]
            expected = cutoff is not None and ent._.calib_score >= cutoff
            assert ent._.calib_accept is expected
            assert one.accept is expected
            accepted += expected
    assert accepted > 0
    # In the same batches as the command ran them, exactly those that it says it kept.
    if per == "all":
        assert accepted == pytest.approx(result["rows"][0]["kept"], abs=1)


def test_nothing_but_the_calibration_file_changes(calibrated_ner, entity_test, tmp_path):
    run_threshold(calibrated_ner, entity_test, tmp_path, "--apply", tmp_path / "applied", "--silent")
    before, after = files_of(calibrated_ner), files_of(tmp_path / "applied")
    assert set(before) == set(after)
    assert {name for name in before if before[name] != after[name]} - {"vocab/strings.json"} == {
        "calib_ent/calibration.msgpack"
    }


def test_gold_preproc_judges_sentences(calibrated_ner, entity_test, tmp_path):
    """Sentences are then the units whose entities may be right or wrong together, not documents."""
    _, result = run_threshold(calibrated_ner, entity_test, tmp_path, "--gold-preproc")
    _, _, found = judged(calibrated_ner, entity_test, gold_preproc=True)
    assert result["rows"][0]["entities"] == len(found.pairs)
    assert found.documents.max() > judged(calibrated_ner, entity_test)[2].documents.max()
    check_row(result["rows"][0], found.calibrated, found.pairs.hits)


CONFIG = """
[components]

[components.sure_pipe]
factory = "calib"
attr = "sure"

[components.sure_pipe.source]
@calib_sources = "spacy-calib.Ner.v1"
component = "ner"
"""


def test_the_attribute_that_is_named_is_the_one_that_exists(ner_model, entity_dev, entity_test, tmp_path):
    """A config may give the pipe another name than its attributes."""
    (tmp_path / "fit.cfg").write_text(CONFIG)
    options = ["--config", tmp_path / "fit.cfg", "-m", "isotonic", "--silent"]
    ok(calib("fit", ner_model, entity_dev, tmp_path / "model", *options))
    outcome, _ = run_threshold(tmp_path / "model", entity_test, tmp_path, "-C", "sure", "--apply", tmp_path / "applied")
    assert {ent._.sure_accept for doc in annotated(tmp_path / "applied", entity_test) for ent in doc.ents} == {True, False}
    assert "Span._.sure_accept" in outcome.text


@pytest.mark.parametrize(("options", "sentence"), [
    (["-p", "nan"], "Option --precision must be between 0 and 1, but nan was given."),
    (["-p", 0.8, "--confidence", 1], "Option --confidence must be between 0.001 and 0.99999, but 1.0 was given."),
    (["-p", 0.8, "--confidence", -0.1], "Option --confidence must be between 0.001 and 0.99999, but -0.1 was given."),
    (["-p", 0.8, "--per", "token"], "Option --per must be one of all, group, label, but 'token' was given."),
    (["-r", 99], "Option --recall must be between 0 and 1, but 99.0 was given."),
    (["-r", 0.9, "-p", 1], "Option --precision must be between 0 and 1, but 1.0 was given."),
    (["-r", 0.9, "--per", "group"], "Option --per must be all or label with --recall, but 'group' was given."),
    (["-p", "PER=.9", "-r", 0.8], "Option --recall must be left out with a precision of each label, but 0.8 was given."),
    (["-p", "PER=.9", "--per", "group"], "Option --per must be all or label with a precision of each label, but 'group' was given."),
])  # fmt: skip
def test_an_option_is_out_of_range(options, sentence, calibrated_ner, entity_test, tmp_path):
    outcome = calib("threshold", calibrated_ner, entity_test, *options, "-a", tmp_path / "out", "-o", tmp_path / "out.json")
    refuses(outcome, sentence)
    assert not list(tmp_path.iterdir())
