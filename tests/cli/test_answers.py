"""From a queue through an annotation tool to a fit and an estimate: `rank|select --format TOOL`, answers, `fit`, `adapt`, `evaluate`."""

import json

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin, Span
from spacy.vocab import Vocab

import spacy_calib
from spacy_calib.annotations import REJECTED
from tests.answers import ARRAYS, EXPORTS, answer, parts_of, records_in, relabelled, write
from tests.cli.conftest import bare_docs, calib, json_of, ok, refuses, save_docs
from tests.sentences import says


def gold_of(file):
    """Text -> its gold Doc."""
    return {doc.text.strip(): doc for doc in DocBin().from_disk(file).get_docs(Vocab())}


def is_right(gold):
    """Whether all entities that a record of a queue shows are gold ones, and for whole texts no other is missing."""

    def right(record):
        text, meta = parts_of(record)
        start, end, label = meta["asked"].split(" ", 2)
        whole = next(one for one in gold if text in one)  # a queue shows sentences
        moved = whole.index(text) - len(gold[whole].text) + len(gold[whole].text.lstrip())
        return (int(start) + moved, int(end) + moved, label) in {
            (one.start_char, one.end_char, one.label_) for one in gold[whole].ents
        }

    return right


@pytest.mark.parametrize("tool", EXPORTS)
def test_answers_about_entities_are_fitted(tool, calibrated_ner, entity_dev, entity_test, tmp_path):
    queue = tmp_path / ("queue.json" if tool in ARRAYS else "queue.jsonl")
    ok(calib("rank", calibrated_ner, entity_dev, "--unit", "entity", "--order", "random", "--format", tool, "--output", queue))
    gold = gold_of(entity_dev)
    data = answer(tool, queue, is_right(gold), tmp_path / f"answers{queue.suffix}")
    method = () if tool == "prodigy" else ("--method", "isotonic")  # the choice is slow
    outcome = ok(calib("fit", calibrated_ner, data, tmp_path / "fitted", "--component", "ner", *method))
    assert "Answers about entities have no gold for tokens, whose scores stay raw" in outcome.text
    info = spacy.load(tmp_path / "fitted").get_pipe("calib_ent").fit_info
    assert info.tokens == 0
    # A sentence that is read alone has now and then another entity than in its document; one that occurs again counts once.
    n_asked = len({(text, meta["asked"]) for text, meta in map(parts_of, records_in(queue))})
    assert 0.95 * n_asked <= info.spans.spans <= n_asked
    assert 0 < info.spans.right < info.spans.spans
    doc = spacy.load(tmp_path / "fitted")(next(iter(gold)))
    assert all(token._.calib_score == token._.calib_raw for token in doc)
    outcome = ok(calib("evaluate", tmp_path / "fitted", data))
    assert f"{info.spans.spans} predicted entities" in outcome.text
    assert "by document (0)" not in outcome.text
    refuses(calib("threshold", tmp_path / "fitted", data, "--precision", 0.5), says("C533"))  # the sample has other scores
    outcome = ok(calib("adapt", tmp_path / "fitted", data, tmp_path / "adapted"))
    assert "A single document cannot show how documents differ" not in outcome.text
    assert "on other texts of this domain the mean score of an entity is off by" in outcome.text
    assert "Answers about entities have no gold for tokens, so `calib expect` has no record of this domain" in outcome.text
    ok(calib("evaluate", tmp_path / "adapted", entity_test))


def test_entities_are_those_of_full_gold(calibrated_ner, entity_dev, entity_test, tmp_path):
    nlp = spacy.load(calibrated_ner)
    docs = list(DocBin().from_disk(entity_dev).get_docs(nlp.vocab))
    for gold, found in zip(docs, list(nlp.pipe(bare_docs(nlp, docs))), strict=True):
        right = {(one.start, one.end, one.label) for one in gold.ents}
        asked = [Span(gold, one.start, one.end, label=one.label) for one in found.ents]
        accepted = [one for one in asked if (one.start, one.end, one.label) in right]
        gold.set_ents(accepted, default="missing")
        gold.spans[REJECTED] = [one for one in asked if one not in accepted]
    scores, no_context = [], {"components.calib.context": None}
    for data in (entity_dev, save_docs(tmp_path / "answers.spacy", docs)):
        spacy_calib.fit(str(calibrated_ner), data, tmp_path / "out", component="ner", overrides=no_context, force=True)
        made = spacy.load(tmp_path / "out")
        held = list(made.pipe(bare_docs(made, list(DocBin().from_disk(entity_test).get_docs(made.vocab)))))
        scores.append([one._.calib_score for doc in held for one in doc.ents])
    assert len(scores[0]) > 50
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-12)


def test_rejected_tags_are_judged_by_what_was_asked(calibrated, test_file, tmp_path):
    queue, gold = tmp_path / "queue.jsonl", gold_of(test_file)
    ok(calib("rank", calibrated, test_file, "--order", "random", "--top", 40, "--format", "prodigy", "--output", queue))

    def right(record):
        asked = record["spans"][0]
        text = next(one for one in gold if record["text"] in one)
        start = gold[text][0].idx + text.index(record["text"]) + asked["start"]
        return gold[text].char_span(start, start + asked["end"] - asked["start"])[0].tag_ == asked["label"]

    data = answer("prodigy", queue, right, tmp_path / "answers.jsonl")
    n_rejected = sum(record["answer"] == "reject" for record in records_in(data))
    outcome = ok(calib("evaluate", calibrated, data, "--format", "json"))
    assert "does not know" not in outcome.text
    assert 0 < n_rejected < 40
    assert json.loads(outcome.printed)["calib"]["accuracy"] == pytest.approx(1 - n_rejected / 40, abs=0.1)


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_corrected_tag_is_gold_like_any_other(tool, calibrated, test_file, tmp_path):
    queue, docs = tmp_path / ("queue.json" if tool in ARRAYS else "queue.jsonl"), gold_of(test_file)
    ok(calib("rank", calibrated, test_file, "--order", "random", "--top", 60, "--format", tool, "--output", queue))
    made, gold, wrong = [], {}, 0
    for number, record in enumerate(records_in(queue)):
        text, meta = parts_of(record)
        start, end, shown = meta["asked"].split(" ", 2)
        whole = next(doc for whole, doc in docs.items() if text in whole)  # a queue shows sentences
        doc = gold.setdefault(text, spacy.blank("en")(text))
        place = len(whole.text) - len(whole.text.lstrip()) + whole.text.strip().index(text) + int(start)
        (token,) = doc.char_span(int(start), int(end))
        token.tag_ = whole.char_span(place, place + int(end) - int(start))[0].tag_
        wrong += shown != token.tag_
        record = relabelled(tool, record, lambda *_: token.tag_)  # noqa: B023
        made.append(EXPORTS[tool](number, record, True))
    assert 0 < wrong < 55
    data = write(tmp_path / f"answers{queue.suffix}", made, array=tool in ARRAYS)
    found = [
        json_of("evaluate", calibrated, one)["calib"] for one in (data, save_docs(tmp_path / "gold.spacy", list(gold.values())))
    ]
    assert [found[0][key] for key in ("tokens", "pairs", "accuracy")] == [
        found[1][key] for key in ("tokens", "pairs", "accuracy")
    ]
    for metric, wanted in found[1]["scores"].items():  # sums of the same numbers in another order
        assert found[0]["scores"][metric] == pytest.approx(wanted, abs=1e-12)
    assert found[0]["accuracy"] < 1


@pytest.mark.parametrize(("text", "sentence"), [
    ("", "a.jsonl cannot be read: it is empty; give gold as"),
    (json.dumps({"text": "a dog", "spans": [{"start": 2, "end": 5, "label": "X"}], "answer": "accept", "_view_id": "ner"}),
     "No accepted span has a label of component 'ner' (X; it knows"),
])  # fmt: skip
def test_bad_answers_are_refused_in_a_sentence(calibrated_ner, tmp_path, text, sentence):
    (tmp_path / "a.jsonl").write_text(text)
    refuses(calib("fit", calibrated_ner, tmp_path / "a.jsonl", tmp_path / "out", "--component", "ner"), sentence)
    assert calib("evaluate", calibrated_ner, tmp_path / "a.jsonl").code == 1
