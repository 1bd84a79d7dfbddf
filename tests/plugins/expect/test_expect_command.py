"""`spacy calib expect`: through the real command, on texts with gold and without, like the fit data and not."""

import json
import re
import warnings
from dataclasses import replace

import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin

from spacy_calib.pipe.record.drift import DIFFERENT, LIKE, TOO_FEW
from spacy_calib.pipe.record.fit_record import read_record
from spacy_calib.plugins.expect.expect_command import expect, is_failure
from tests.cli.conftest import CONTEXT, annotated, bare_docs, calib, docs_in, fitted_to, in_pairs, ok, refuses, save_docs
from tests.conftest import made_up_sentences
from tests.sentences import says


def run_expect(model, data, tmp_path, *options):
    path = tmp_path / "expected.json"
    outcome = ok(calib("expect", model, data, "--output", path, "--force", *options))
    return outcome, json.loads(path.read_text())


def without_record(model, tmp_path):
    """The pipeline as a fit on a single document leaves it."""
    nlp = spacy.load(model)
    calib = nlp.get_pipe("calib")
    calib.learned = replace(calib.learned, record=None)
    nlp.to_disk(tmp_path / "old")
    return tmp_path / "old"


def true_accuracy(model, data):
    pairs = zip(annotated(model, data), docs_in(data), strict=True)
    hits = [token.tag_ == gold.tag_ for doc, gold_doc in pairs for token, gold in zip(doc, gold_doc, strict=True)]
    return sum(hits) / len(hits)


def bare_file(data, path):
    return save_docs(path, bare_docs(spacy.blank("xx"), docs_in(data)))


def test_accuracy_of_documents_like_the_fit_data(calibrated, test_file, tmp_path):
    outcome, result = run_expect(calibrated, test_file, tmp_path)
    accuracy = result["accuracy"]
    assert accuracy["low"] < accuracy["expected"] < accuracy["high"]
    assert accuracy["low"] <= true_accuracy(calibrated, test_file) <= accuracy["high"]
    assert result["entities"] is None
    assert result["trusted"] is (result["drift"]["verdict"] == "like the fit data")
    assert result["drift"]["verdict"] != "differs from the fit data"
    assert (result["documents"], result["tokens"]) == (80, sum(map(len, docs_in(test_file))))
    assert f"Accuracy {100 * accuracy['expected']:.2f} % " in outcome.text


def test_scores_in_context_are_summed_and_were_held_out_in_context(model, calibrated, dev, test_file, tmp_path):
    fitted = fitted_to(tmp_path / "in-context", model, dev, CONTEXT)
    _, result = run_expect(fitted, test_file, tmp_path)
    scores = [token._.calib_score for doc in annotated(fitted, test_file) for token in doc]
    assert result["accuracy"]["mean_score"] == pytest.approx(sum(scores) / len(scores), abs=1e-6)
    assert result["accuracy"]["low"] <= true_accuracy(fitted, test_file) <= result["accuracy"]["high"]
    assert (loaded_record(fitted).tokens.residual != loaded_record(calibrated).tokens.residual).all()


def test_gold_changes_nothing(calibrated, test_file, tmp_path):
    bare = bare_file(test_file, tmp_path / "bare.spacy")
    _, with_gold = run_expect(calibrated, test_file, tmp_path)
    _, without = run_expect(calibrated, bare, tmp_path)
    # What a Doc is a part of is read from the file: the gold tells where sentences begin.
    assert (with_gold.pop("by"), without.pop("by")) == ("sentence", "Doc of the file")
    assert with_gold == without


def test_plain_texts(calibrated, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("the dog saw a duck .\nthe old duck saw the dog .\n")
    _, result = run_expect(calibrated, file, tmp_path, "--confidence", 0.8)
    assert (result["documents"], result["confidence"]) == (2, 0.8)
    # Two sentences tell nothing of a drift.
    assert (result["drift"]["verdict"], result["trusted"]) == ("too few texts to tell", False)
    assert "Too few texts to tell" in calib("expect", calibrated, file).text


def test_a_pipe_without_a_record_has_neither_interval_nor_drift_check(calibrated, test_file, tmp_path):
    old = without_record(calibrated, tmp_path)
    outcome, result = run_expect(old, test_file, tmp_path)
    assert result["accuracy"]["low"] is None
    assert (result["drift"], result["trusted"]) == (None, False)
    assert "run `python -m spacy calib fit` again" in outcome.text


def test_a_pipeline_with_two_pipes_expects_something_of_both(two_pipes, entity_test, tmp_path):
    outcome, result = run_expect(two_pipes, entity_test, tmp_path)
    assert outcome.text.index("Expected quality of tagger (tag)") < outcome.text.index("Expected quality of ner (ner)")
    assert (result["pipe"], list(result["others"]), result["skipped"]) == ("calib", ["calib_ent"], [])
    _, alone = run_expect(two_pipes, entity_test, tmp_path, "-C", "calib_ent")
    assert "others" not in alone
    assert alone == result["others"]["calib_ent"]
    # The recognizer is disabled: of entities there is nothing to expect, and that is said.
    nlp = spacy.load(two_pipes)
    nlp.disable_pipe("ner")
    nlp.to_disk(tmp_path / "disabled")
    outcome, result = run_expect(tmp_path / "disabled", entity_test, tmp_path)
    assert (result["pipe"], result["others"]) == ("calib", {})
    assert "Nothing is expected by pipe calib_ent. " in outcome.text


@pytest.mark.parametrize(
    ("verdict", "fail_on", "fails"),
    [(DIFFERENT, "drift", True), (DIFFERENT, None, False), (DIFFERENT, "unclear", False), (TOO_FEW, "drift", False), (TOO_FEW, "drift,unclear", True)],
)  # fmt: skip
def test_a_verdict_about_any_pipe_can_be_a_failure(verdict, fail_on, fails):
    result = {"drift": {"verdict": LIKE}, "others": {"calib_ent": {"drift": {"verdict": verdict}}}}
    assert is_failure(fail_on, result) is fails


def test_precision_recall_and_f_of_entities(calibrated_ner, entity_test, tmp_path):
    outcome, result = run_expect(calibrated_ner, entity_test, tmp_path)
    gold, docs = docs_in(entity_test), annotated(calibrated_ner, entity_test)
    predicted = {(i, ent.start, ent.end, ent.label_) for i, doc in enumerate(docs) for ent in doc.ents}
    wanted = {(i, ent.start, ent.end, ent.label_) for i, doc in enumerate(gold) for ent in doc.ents}
    right, entities = len(predicted & wanted), result["entities"]
    assert entities["predicted"] == len(predicted)
    true = {"precision": right / len(predicted), "recall": right / len(wanted)}
    true["f"] = 2 * right / (len(predicted) + len(wanted))
    assert all(entities[name]["low"] <= value <= entities[name]["high"] for name, value in true.items())
    assert entities["gold"] == pytest.approx(len(wanted), rel=0.1)
    assert "entity scores" in {check["name"] for check in result["drift"]["checks"]}
    assert f"F of entities {100 * entities['f']['expected']:.2f} %" in outcome.text


def test_other_events_have_a_precision_alone(ner_model, entity_dev, entity_test, tmp_path):
    fitted = fitted_to(tmp_path / "fitted", ner_model, entity_dev, "-C", "ner", "--event", "overlap")
    entities = expect(str(fitted), entity_test)["entities"]
    assert entities["precision"] is not None
    assert (entities["event"], entities["gold"], entities["recall"], entities["f"]) == ("overlap", None, None, None)


def test_a_confidence_out_of_range_is_named(calibrated, test_file):
    sentence = "Option --confidence must be between 0.001 and 0.99999, but 1e-17 was given"
    refuses(calib("expect", calibrated, test_file, "--confidence", 1e-17), sentence)


def test_each_slice_is_expected_as_its_texts_alone(calibrated, calibrated_ner, gold, tmp_path):
    texts = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(60, seed=8)]
    lines = [{"text": text, "kind": "a"} for text in texts[:25]] + [
        {"text": text, "meta": {"kind": "b"}} for text in texts[25:]
    ]
    lines[0].pop("kind")
    srsly.write_jsonl(tmp_path / "all.jsonl", lines)
    for kind, own in (("a", lines[1:25]), ("b", lines[25:])):
        srsly.write_jsonl(tmp_path / f"{kind}.jsonl", own)
    for model in (calibrated, calibrated_ner):
        outcome, result = run_expect(model, tmp_path / "all.jsonl", tmp_path, "--by", "kind")
        told = result["slices"]
        assert told["by"] == "kind"
        assert sorted((row["slice"], row["documents"]) for row in told["rows"]) == [("a", 24), ("b", 35)]
        expected = [row["accuracy"]["expected"] for row in told["rows"]]
        assert expected == sorted(expected)
        assert "By kind, the worst to be expected first" in outcome.text
        for row in told["rows"]:
            _, alone = run_expect(model, tmp_path / f"{row['slice']}.jsonl", tmp_path)
            for key in ("tokens", "accuracy", "entities", "drift", "trusted"):
                assert row[key] == alone[key], (row["slice"], key)


def test_each_month_of_a_stream_has_its_own_verdict(calibrated, tmp_path):
    texts = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(600, seed=2)]
    months = {"2026-01": texts, "2026-02": ["xqzjk wxq . . . the the the a a a"] * 60, "2026-03": texts[:2]}
    lines = [{"text": text, "month": month} for month, own in months.items() for text in own]
    srsly.write_jsonl(tmp_path / "stream.jsonl", lines)
    outcome, result = run_expect(calibrated, tmp_path / "stream.jsonl", tmp_path, "--by", "month")
    rows = result["slices"]["rows"]
    verdicts = {row["slice"]: row["drift"]["verdict"] for row in rows}
    assert verdicts == {"2026-01": LIKE, "2026-02": DIFFERENT, "2026-03": TOO_FEW}
    assert [row["trusted"] for row in rows] == [row["drift"]["verdict"] == LIKE for row in rows]
    for month, verdict in verdicts.items():
        assert re.search(rf"{month} [^a-z]*to[^a-z]* {verdict}", outcome.text), outcome.text


def test_a_key_whose_values_are_all_different_is_refused(calibrated, tmp_path):
    srsly.write_jsonl(tmp_path / "texts.jsonl", [{"text": "a dog", "own": n} for n in range(4)])
    refuses(calib("expect", calibrated, tmp_path / "texts.jsonl", "--by", "own"), says("C602", n=4))


@pytest.mark.parametrize("component", ["trainable_lemmatizer", "senter", "morphologizer"])
def test_the_fit_data_itself_is_like_the_fit_data(component, model, dev, tmp_path):
    """Labels are compared as the fit saw them (edit trees, not lemmas), and tokens that nobody labelled take no part."""
    dev = in_pairs(dev, tmp_path / "dev.spacy") if component == "senter" else dev
    result = expect(str(fitted_to(tmp_path / "m", model, dev, "-C", component)), dev)
    assert result["drift"]["verdict"] != DIFFERENT
    assert max(one["value"] for one in result["drift"]["checks"] if one["name"] == "labels") < 0.05


def test_documents_of_one_word_have_no_sentence_to_split(model, dev, tmp_path):
    dev = in_pairs(dev, tmp_path / "dev.spacy")
    nlp = spacy.load(fitted_to(tmp_path / "m", model, dev, "-C", "senter"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nlp("Yes")[0]._.calib_score is None
    docs = [*DocBin().from_disk(dev).get_docs(nlp.vocab), Doc(nlp.vocab, words=["Yes"], sent_starts=[True])]
    _, result = run_expect(tmp_path / "m", save_docs(tmp_path / "more.spacy", docs), tmp_path)
    # The first word of a document begins a sentence in any case, so it has no score.
    assert (result["documents"], result["tokens"]) == (61, sum(len(doc) - 1 for doc in docs))


def test_scripts_can_fail_on_the_verdict(calibrated, tmp_path):
    (tmp_path / "other.txt").write_text("the the the the a a a .\n" * 300)
    for options, code in ((["--fail-on", "drift"], 1), ([], 0)):
        outcome = calib("expect", calibrated, tmp_path / "other.txt", *options)
        assert outcome.code == code, outcome.text
        assert "DO NOT TRUST" in outcome.text


def test_gold_of_some_tags_is_no_other_kind_of_text(model, dev, test_file, tmp_path):
    """Of a gold of nouns and verbs alone only these took part in the fit, and all new texts seemed to be of another kind."""
    docs = docs_in(dev)
    for doc in docs:
        for token in doc:
            if token.tag_ in ("DET", "PUNCT"):
                token.tag_ = ""
    ok(calib("fit", model, save_docs(tmp_path / "some.spacy", docs), tmp_path / "out", "--silent"))
    assert loaded_record(tmp_path / "out").accuracy > 0
    assert "DO NOT TRUST" not in calib("expect", tmp_path / "out", test_file).text


def loaded_record(path):
    return read_record(spacy.load(path).get_pipe("calib"))
