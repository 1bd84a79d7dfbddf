"""`spacy calib fit` on a pipeline that has a calibration: which of the two is written, and what is printed of it; ticks of `fit` and `adapt`."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import spacy

import spacy_calib
from spacy_calib.metrics import log_loss
from tests.cli.conftest import calib, entity_docs, json_of, ok, save_docs, save_gold
from tests.cli.test_adapt_command import odd_docs

ISOTONIC = ("--method", "isotonic")


def compared(model, gold, output, *options):
    """The part of the JSON output that is about the comparison."""
    return json_of("fit", model, gold, output, *ISOTONIC, *options)["comparison"]


def state_of(folder, name="calib"):
    return spacy.load(folder).get_pipe(name).to_bytes()


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Twelve sentences of the kind that the pipeline was calibrated on."""
    return save_gold(tmp_path_factory.mktemp("few") / "few.spacy", 12, 77)


@pytest.fixture(scope="module")
def same_kind(tmp_path_factory):
    return save_gold(tmp_path_factory.mktemp("same") / "same.spacy", 80, 78)


@pytest.fixture(scope="module")
def other_kind(tmp_path_factory):
    """Documents in which four of ten tags are drawn at random."""
    return save_docs(tmp_path_factory.mktemp("other") / "other.spacy", odd_docs(20, 9))


def test_the_calibration_that_was_there_stays_if_nothing_gains(calibrated, few, tmp_path):
    result = compared(calibrated, few, tmp_path / "out")
    assert result["winner"] == result["written"] == "present"
    assert result["present"] < min(result["adapted"], result["fit"])
    assert (result["units"], result["unit"], result["why"]) == (63, "token", "")
    assert state_of(tmp_path / "out") == state_of(calibrated)
    assert (tmp_path / "out" / "meta.json").read_text() == (calibrated / "meta.json").read_text()
    outcome = ok(calib("fit", calibrated, few, tmp_path / "out", "--force", *ISOTONIC))
    assert f"Held-out log loss of the same 63 tokens: {result['present']:.4f} with the old calibration" in outcome.text
    assert "Written: the old calibration, unchanged; --always writes the new fit." in outcome.text
    assert "✔" not in outcome.text


def test_it_is_adapted_if_a_fit_gains_nothing_beyond_that(calibrated, same_kind, tmp_path):
    result = compared(calibrated, same_kind, tmp_path / "out")
    assert result["written"] == "adapted"
    assert result["adapted"] < min(result["present"], result["fit"])
    adapted = spacy_calib.adapt(calibrated, same_kind, tmp_path / "adapted")
    assert state_of(tmp_path / "out") == adapted.to_bytes()
    # Both losses are those of the table of `adapt`.
    figures = adapted.fit_info.adaptations[-1]["tokens"]
    assert (result["present"], result["adapted"]) == (
        pytest.approx(figures["before"]["log_loss"]), pytest.approx(figures["after"]["log_loss"]),
    )  # fmt: skip
    performance = [json.loads((tmp_path / name / "meta.json").read_text())["performance"] for name in ("out", "adapted")]
    assert performance[0] == performance[1]
    outcome = ok(calib("fit", calibrated, same_kind, tmp_path / "out", "--force", *ISOTONIC))
    assert "✔ Held-out log loss of the same 395 tokens" in outcome.text
    assert "Written: the old calibration, adapted to these documents" in outcome.text


def test_a_fit_that_is_clearly_better_is_written(calibrated, other_kind, tmp_path):
    result = compared(calibrated, other_kind, tmp_path / "out")
    assert result["written"] == "fit"
    assert result["adapted"] - result["fit"] > result["error"] > 0
    pipe = spacy.load(tmp_path / "out").get_pipe("calib")
    assert pipe.fit_info.adaptations == []
    assert pipe.fit_info.tokens == sum(map(len, odd_docs(20, 9)))
    outcome = ok(calib("fit", calibrated, other_kind, tmp_path / "out", "--force", *ISOTONIC))
    assert "✔ Calibrated tagger" in outcome.text
    assert "Written: the new fit. Next, evaluate it" in outcome.text


def test_always_takes_the_fit_and_still_tells(calibrated, few, same_kind, tmp_path):
    result = compared(calibrated, same_kind, tmp_path / "out", "--always")
    assert (result["winner"], result["written"]) == ("adapted", "fit")
    pipe = spacy_calib.fit(calibrated, same_kind, tmp_path / "python", always=True, method="isotonic")
    assert pipe.fit_info.tokens == spacy.load(tmp_path / "out").get_pipe("calib").fit_info.tokens == 395
    assert spacy_calib.fit(calibrated, same_kind, tmp_path / "kept", method="isotonic").fit_info.adaptations
    outcome = ok(calib("fit", calibrated, same_kind, tmp_path / "out", "--force", "--always", *ISOTONIC))
    assert "Written: the new fit, as requested; the comparison favours the old calibration, adapted" in outcome.text
    assert "✔" not in outcome.text


def test_texts_of_the_older_fit_are_no_fair_comparison(calibrated, dev, tmp_path):
    result = compared(calibrated, dev, tmp_path / "out")
    assert result == {
        "winner": "fit",
        "written": "fit",
        "why": "it was fitted on 100 % of the words of these texts, so its scores look too good there",
    }
    outcome = ok(calib("fit", calibrated, dev, tmp_path / "out", "--force", *ISOTONIC))
    assert "⚠ The new fit is not compared with the old calibration 'calib': it was fitted on 100 %" in outcome.text


def test_a_pipe_of_another_name_is_not_replaced(calibrated, few, tmp_path):
    assert "comparison" not in json_of("fit", calibrated, few, tmp_path / "out", "--attr", "second")
    assert spacy.load(tmp_path / "out").pipe_names[-2:] != ["calib", "calib"]


@pytest.fixture(scope="module")
def without_texts(calibrated_ner, tmp_path_factory):
    """A calibrated recognizer that, like one from a card, does not know which texts it was fitted on: made-up ones recur."""
    path = tmp_path_factory.mktemp("unseen") / "model"
    nlp = spacy.load(calibrated_ner)
    pipe = nlp.get_pipe("calib_ent")
    pipe.learned = replace(pipe.learned, seen_state=None)
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def entities(tmp_path_factory):
    return save_docs(tmp_path_factory.mktemp("entities") / "entities.spacy", entity_docs(60, 91))


def test_entities_are_compared_by_what_the_pipeline_says_of_them(without_texts, entities, tmp_path):
    result = compared(without_texts, entities, tmp_path / "out", "-C", "ner", "--method", "auto")
    assert result["unit"] == "entity"
    # Present: the scores on the Docs of the pipeline itself, by exact spans.
    nlp, losses = spacy.load(without_texts), []
    for gold in entity_docs(60, 91, nlp.vocab):
        doc = nlp(spacy.tokens.Doc(nlp.vocab, [token.text for token in gold], [bool(token.whitespace_) for token in gold]))
        right = {(entity.start, entity.end, entity.label_) for entity in gold.ents}
        losses += [log_loss([e._.calib_ent_score], [(e.start, e.end, e.label_) in right]) for e in doc.ents]
    assert result["units"] == len(losses)
    assert result["present"] == pytest.approx(sum(losses) / len(losses))
    # Adapted: as the table of `adapt` has it.
    after = spacy_calib.adapt(without_texts, entities, tmp_path / "adapted").fit_info.adaptations[-1]["spans"]["after"]
    assert result["adapted"] == pytest.approx(after["log_loss"])


def test_another_event_that_was_asked_for_is_fitted(without_texts, entities, tmp_path):
    options = ("-C", "ner", "--method", "auto", "--event", "overlap")
    assert compared(without_texts, entities, tmp_path / "out", *options)["written"] == "fit"
    assert spacy.load(tmp_path / "out").get_pipe("calib_ent").event == "overlap"


def test_little_gold_gets_no_tick(model, few, tmp_path):
    outcome = ok(calib("fit", model, few, tmp_path / "out"))
    assert "✔" not in outcome.text
    assert "Too little gold to show that scores improved: 63 tokens, but 200 are needed; label more" in outcome.text


def test_an_adaptation_that_gains_nothing_gets_no_tick(calibrated, few, other_kind, tmp_path):
    outcome = ok(calib("adapt", calibrated, few, tmp_path / "few"))
    assert "✔" not in outcome.text
    assert "Held-out log loss of 63 tokens: 0.4878 before, 0.4925 adapted. Too little gold" in outcome.text
    outcome = ok(calib("adapt", calibrated, other_kind, tmp_path / "other"))
    assert "✔ Adapted tagger" in outcome.text
    assert "✔ Held-out log loss of" in outcome.text


@pytest.mark.parametrize(
    ("card", "is_named"), [("en_made_up-tagger", True), ("en_made_up-ner", False), ("en_made_upper-tagger", False)]
)
def test_a_card_for_a_stock_pipeline_is_named(changed_model, dev, calibrated, tmp_path, monkeypatch, card, is_named):
    def rename(nlp):
        nlp.meta["lang"], nlp.meta["name"] = "en", "made_up_copy"

    monkeypatch.setattr("spacy_calib.plugins.pretrained.card.all_cards", lambda: [SimpleNamespace(name=card)])
    outcome = ok(calib("fit", changed_model(rename), dev, tmp_path / "out", *ISOTONIC))
    assert (f"There is a calibration of 'tagger' that needs no gold (card {card})" in outcome.text) == is_named
