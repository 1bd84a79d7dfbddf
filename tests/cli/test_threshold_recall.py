"""`spacy calib threshold --recall`: what is missed, the pipeline that flags it, and the review beside `--precision`."""

import json

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_calib.calibration.recall_threshold import find_recall_threshold
from spacy_calib.calibration.thresholds import round_down
from tests.cli.conftest import annotated, bare_docs, calib, docs_in, entity_docs, json_of, ok, refuses, save_docs, token_scores
from tests.sentences import says

RECALL = 0.9


def run_recall(model, data, tmp_path, *options, recall=RECALL):
    path = tmp_path / "cutoffs.json"
    outcome = ok(calib("threshold", model, data, "--recall", recall, "--output", path, "--force", *options))
    return outcome, json.loads(path.read_text())


@pytest.fixture(scope="module")
def applied(calibrated_ner, entity_test, tmp_path_factory):
    """(the pipeline with cut-offs for all, what the command said and wrote)."""
    folder = tmp_path_factory.mktemp("applied")
    outcome, result = run_recall(calibrated_ner, entity_test, folder, "--apply", folder / "model")
    return folder / "model", outcome, result


@pytest.fixture(scope="module")
def scored(applied, entity_test):
    """The Docs of the test data from the pipeline with cut-offs, and their gold."""
    return annotated(applied[0], entity_test), docs_in(entity_test)


def test_the_cut_off_is_that_of_the_tokens_of_gold_entities(applied, scored):
    _, outcome, result = applied
    misses = result["misses"]
    (row,) = misses["rows"]
    docs, gold = scored
    inside = [1 - scores.get("O", 0.0) for doc in docs for scores in token_scores(doc)]
    wanted = np.array([token.ent_type_ != "" for doc in gold for token in doc])
    documents = np.repeat(np.arange(len(docs)), [len(doc) for doc in docs])
    scores = round_down(np.array(inside)[wanted])
    cutoff = find_recall_threshold(scores, documents[wanted], RECALL, 0.95)
    found = np.count_nonzero(scores >= cutoff)
    assert (misses["recall"], misses["confidence"], misses["per"]) == (RECALL, 0.95, "all")
    assert misses["cutoffs"] == {"all": row["cutoff"]}
    assert row["cutoff"] == pytest.approx(cutoff, abs=1e-6)
    assert (row["tokens"], row["found"], row["recall"]) == (len(scores), found, pytest.approx(found / len(scores)))
    assert row["recall"] >= RECALL
    assert misses["scored"] == len(wanted)
    assert row["low"] <= row["share"] <= row["high"] < 1
    # The naive rule beside it: the tokens of the entities that were found.
    said = np.array([token.ent_type_ != "" for doc in docs for token in doc])
    assert row["predicted"]["found"] == (said & wanted).sum()
    assert row["predicted"]["flagged"] == said.sum()
    assert row["predicted"]["recall"] < row["recall"]
    touched = [any(docs[i][k].ent_type_ for k in range(ent.start, ent.end)) for i, one in enumerate(gold) for ent in one.ents]
    assert (row["predicted"]["entities"], row["predicted"]["touched"]) == (len(touched), sum(touched))
    # The table says the same.
    assert "Cut-offs for a recall of 90 % (tokens of gold entities)" in outcome.text
    assert (
        f"all {row['cutoff']:.3g} {row['tokens']} {row['found']} {row['recall']:.4f} {100 * row['share']:.1f}" in outcome.text
    )
    assert "At most 10 % of the tokens of gold entities in other texts of the same source are not flagged" in outcome.text
    assert "(Token._.calib_ent_flag, doc.spans['calib_ent_doubtful'])" in outcome.text


def test_the_applied_cut_off_flags_what_reaches_it(applied, scored, entity_test):
    model, _, result = applied
    docs, _ = scored
    cutoff = result["misses"]["cutoffs"]["all"]
    flags = [token._.calib_ent_flag for doc in docs for token in doc]
    assert flags == [1 - scores.get("O", 0.0) >= cutoff for doc in docs for scores in token_scores(doc)]
    assert sum(flags) == pytest.approx(result["misses"]["rows"][0]["flagged"], abs=2)
    assert any(token._.calib_ent_flag and not token.ent_type_ for doc in docs for token in doc)
    for doc in docs:
        group, inside = doc.spans["calib_ent_doubtful"], [1 - scores.get("O", 0.0) for scores in token_scores(doc)]
        assert [token.i for span in group for token in span] == [token.i for token in doc if token._.calib_ent_flag]
        for span, score in zip(group, group.attrs["scores"], strict=True):
            assert score == pytest.approx(max(inside[span.start : span.end]))
            assert span.label_ in ("PER", "LOC", "ORG")
        # Entities that were found stand there as themselves, and so with their own score.
        wholly = [ent for ent in doc.ents if all(token._.calib_ent_flag for token in ent)]
        assert {(ent.start, ent.end, ent.label_) for ent in wholly} <= {(span.start, span.end, span.label_) for span in group}
        assert [span._.calib_score for span in group if span in wholly] == [ent._.calib_score for ent in wholly]
    # Saved and loaded, in worker processes, and as Docs: the same answers.
    stored = list(DocBin(store_user_data=True, docs=docs).get_docs(Vocab()))
    assert [token._.calib_ent_flag for doc in stored for token in doc] == flags
    assert [len(doc.spans["calib_ent_doubtful"]) for doc in stored] == [len(doc.spans["calib_ent_doubtful"]) for doc in docs]


def test_info_and_evaluate_show_it(applied, entity_test, tmp_path):
    model, _, result = applied
    (row,) = result["misses"]["rows"]
    outcome = calib("info", model)
    assert f"Flagged from all {row['cutoff']:.3g} (recall 0.9, confidence 0.95)" in outcome.text
    held = json_of("info", model)["calib_ent"]
    assert held["recall_cutoffs"]["cutoffs"] == result["misses"]["cutoffs"]
    outcome = calib("evaluate", model, entity_test, "--output", tmp_path / "table.json")
    (judged,) = json.loads((tmp_path / "table.json").read_text())["calib_ent"]["entities"]["flagged"]
    assert judged == {**row, "wanted": 0.9}
    assert (
        f"tokens ({100 * row['share']:.1f} %) are flagged; recall {row['recall']:.4f} of {row['tokens']} tokens" in outcome.text
    )


def test_a_pipeline_without_cut_offs_flags_nothing_and_forgets_what_was_flagged(applied, calibrated_ner, scored):
    docs, _ = scored
    nlp = spacy.load(calibrated_ner)
    (doc,) = nlp.pipe(bare_docs(nlp, docs[:1]))
    assert {token._.calib_ent_flag for token in doc} == {None}
    assert "calib_ent_doubtful" not in doc.spans
    assert spacy.load(applied[0]).get_pipe("calib_ent").tokens.recall_cutoffs.recall == RECALL
    with_cutoffs = spacy.load(applied[0])
    (doc,) = with_cutoffs.pipe(bare_docs(with_cutoffs, docs[:1]))
    assert "calib_ent_doubtful" in doc.spans
    with_cutoffs.get_pipe("calib_ent").tokens.recall_cutoffs = None
    doc = with_cutoffs.get_pipe("calib_ent")(doc)
    assert "calib_ent_doubtful" not in doc.spans
    assert {token._.calib_ent_flag for token in doc} == {None}


def test_a_cut_off_for_each_label(calibrated_ner, entity_test, tmp_path):
    outcome, result = run_recall(calibrated_ner, entity_test, tmp_path, "--per", "label", "--apply", tmp_path / "m", recall=0.8)
    cutoffs = result["misses"]["cutoffs"]
    assert set(cutoffs) == {"PER", "LOC", "ORG"}
    assert None not in cutoffs.values()
    docs, gold = annotated(tmp_path / "m", entity_test), docs_in(entity_test)
    for row in result["misses"]["rows"]:
        label, found, wanted = row["key"], 0, 0
        for doc, reference in zip(docs, gold, strict=True):
            for token, truth, scores in zip(doc, reference, token_scores(doc), strict=True):
                left = 1 - scores["O"] if "O" in scores else max(0.0, 1 - sum(scores.values()))
                reaches = scores.get(label, 0.01 * left) >= row["cutoff"]
                assert token._.calib_ent_flag or not reaches
                wanted += truth.ent_type_ == label
                found += reaches and truth.ent_type_ == label
        assert (row["tokens"], row["found"]) == (wanted, pytest.approx(found, abs=2))
        assert row["recall"] >= 0.8
    assert "P(label) reaches the cut-off" in outcome.text
    assert "(for each label separately)" in outcome.text


def test_what_cannot_be_reached_flags_every_token(calibrated_ner, entity_test, tmp_path):
    outcome, result = run_recall(calibrated_ner, entity_test, tmp_path, "--apply", tmp_path / "model", recall=0.9999)
    assert result["misses"]["cutoffs"] == {"all": None}
    assert (result["misses"]["rows"][0]["recall"], result["misses"]["rows"][0]["share"]) == (1.0, 1.0)
    assert "all not reached" in outcome.text
    assert "No cut-off reaches 99.99 % with this confidence: ask for less, or give more gold." in outcome.text
    assert "flags every token without it" in outcome.text
    assert {token._.calib_ent_flag for doc in annotated(tmp_path / "model", entity_test) for token in doc} == {True}


def test_accept_look_drop(calibrated_ner, entity_test, tmp_path):
    options = ["--precision", 0.8, "--apply", tmp_path / "model"]
    outcome, result = run_recall(calibrated_ner, entity_test, tmp_path, *options)
    parts = result["review"]
    docs, gold = annotated(tmp_path / "model", entity_test), docs_in(entity_test)
    counted = {"accept": [0, 0], "look": [0, 0], "drop": [0, 0]}
    for doc, reference in zip(docs, gold, strict=True):
        accepted = {token.i for ent in doc.ents if ent._.calib_accept for token in ent}
        for token, truth in zip(doc, reference, strict=True):
            part = counted["accept" if token.i in accepted else "look" if token._.calib_ent_flag else "drop"]
            part[0] += 1
            part[1] += truth.ent_type_ != ""
    for name, (n, inside) in counted.items():
        assert parts[name]["tokens"] == pytest.approx(n, abs=4)
        assert parts[name]["inside"] == pytest.approx(inside, abs=4)
    assert sum(part["share"] for part in parts.values()) == pytest.approx(1)
    assert (parts["accept"]["entities"], parts["accept"]["right"]) == (
        result["rows"][0]["kept"],
        round(result["rows"][0]["kept"] * result["rows"][0]["precision"]),
    )
    # What both promise is what each finds alone.
    assert result["cutoffs"] == json_of("threshold", calibrated_ner, entity_test, "--precision", 0.8)["cutoffs"]
    assert result["misses"]["cutoffs"] == run_recall(calibrated_ner, entity_test, tmp_path)[1]["misses"]["cutoffs"]
    assert "hold with 95 % confidence each, and together with at least 90 %" in outcome.text
    assert "(Span._.calib_ent_accept, Token._.calib_ent_flag, doc.spans['calib_ent_doubtful'])" in outcome.text


def test_a_fit_forgets_the_cut_offs_and_adapting_keeps_them(applied, entity_dev, tmp_path):
    ok(calib("fit", applied[0], entity_dev, tmp_path / "again", "-C", "ner", "--silent"))
    assert spacy.load(tmp_path / "again").get_pipe("calib_ent").tokens.recall_cutoffs is None
    few = save_docs(tmp_path / "few.spacy", entity_docs(8, 91))
    assert "The cut-offs stay" in calib("adapt", applied[0], few, tmp_path / "adapted").text
    pipes = [spacy.load(folder).get_pipe("calib_ent") for folder in (applied[0], tmp_path / "adapted")]
    assert pipes[0].tokens.recall_cutoffs == pipes[1].tokens.recall_cutoffs


def test_gold_without_entities(calibrated_ner, tmp_path):
    docs = [Doc(Vocab(), words=["nobody", "lives", "there"], ents=["O", "O", "O"]) for _ in range(3)]
    data = save_docs(tmp_path / "none.spacy", docs)
    refuses(calib("threshold", calibrated_ner, data, "-r", 0.9), says("C800", what="The gold has no entities (9 tokens)"))
