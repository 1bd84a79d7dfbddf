"""A stock pipeline with its cards: scores, what is refused, and that the result is an ordinary fitted pipeline."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.training import Example

from spacy_calib import CalibError, pretrained
from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.plugins.pretrained import card as cards
from spacy_calib.plugins.pretrained.applying import learned_state
from spacy_calib.plugins.pretrained.matching import Match, check_scores, find_matches, probe, run_upstream
from spacy_calib.sources.find import fingerprint
from tests.docstrings import run_examples
from tests.plugins.pretrained.conftest import MODEL
from tests.sentences import says

TEXT = "Maria Gonzales of Siemens moved from Lisbon to the Amazon on Tuesday. She paid 40 euros to Toyota."


def entity_scores(nlp: Any, text: str = TEXT, **options: Any) -> list[tuple[str, float | None]]:
    (doc,) = nlp.pipe([text], **options)
    return [(entity.label_, entity._.calib_ent_score) for entity in doc.ents]


def stock() -> Any:
    pytest.importorskip(MODEL)
    return spacy.load(MODEL, exclude=["lemmatizer", "attribute_ruler"])


def test_entities_and_tags_get_calibrated_scores_and_labels_without_gold_get_none(calibrated):
    doc = calibrated(TEXT)
    scored = {entity.text: (entity.label_, entity._.calib_ent_score, entity._.calib_ent_raw) for entity in doc.ents}
    assert "Tuesday" in scored
    without = {label for label, score, _ in scored.values() if score is None}
    assert "DATE" in without
    assert not without & {"PERSON", "GPE", "ORG", "LOC", "FAC"}
    known = [(score, raw) for _, score, raw in scored.values() if score is not None]
    assert len(known) >= 3
    assert all(0 < score < 1 and abs(score - raw) > 1e-3 for score, raw in known)
    tags = [(token._.calib_score, token._.calib_raw) for token in doc]
    assert all(score is not None and 0 < score < 1 for score, _ in tags)
    assert np.mean([score < raw for score, raw in tags]) > 0.5  # stock pipelines are overconfident


def test_a_loaded_pipeline_is_changed_in_place_and_gives_the_same_scores(calibrated):
    nlp = stock()
    assert pretrained(nlp, components=["ner"]) is nlp
    assert nlp.get_pipe_meta("ner").factory == "ner"  # a second pass, in place of the recognizer that keeps its probabilities
    assert calibrated.get_pipe_meta("ner").factory == "calib_ner"
    assert "calib" not in nlp.pipe_names
    pairs = zip(entity_scores(nlp), entity_scores(calibrated), strict=True)
    assert all(one == other or one[1] == pytest.approx(other[1], abs=1e-6) for one, other in pairs)


def test_the_example_runs(calibrated):
    def load(name: str) -> Any:
        assert name == "en_core_web_sm"
        return calibrated

    run_examples(pretrained, pretrained=load)


def test_calling_it_twice_is_harmless(calibrated):
    before = calibrated.pipe_names, entity_scores(calibrated)
    assert pretrained(calibrated) is calibrated
    assert (calibrated.pipe_names, entity_scores(calibrated)) == before


def test_a_calibrated_pipeline_is_saved_and_loaded_without_the_card(calibrated, tmp_path, monkeypatch):
    calibrated.to_disk(tmp_path / "saved")
    monkeypatch.setattr(cards, "all_cards", lambda: iter(()))
    monkeypatch.setattr(cards, "card_folder", lambda: Path("gone"))
    again = spacy.load(tmp_path / "saved")
    assert entity_scores(again) == entity_scores(calibrated)
    assert again.get_pipe("calib_ent").fit_info.pretrained["card"] == "en_core_web_sm-ner"
    assert again.get_pipe("calib").fit_info.pretrained["card"] == "en_core_web_sm-tagger"


@pytest.mark.parametrize(
    ("disabled", "needs"),
    [(["parser"], "ner, tagger, lists"), (["tagger"], "ner, lists"), (["tagger", "parser"], "ner, lists")],
)
def test_without_a_component_the_smaller_map_is_used(calibrated, disabled, needs):
    found = entity_scores(calibrated, disable=[*disabled, "calib", "attribute_ruler", "lemmatizer"])
    assert found != entity_scores(calibrated)
    step = calibrated.get_pipe("calib_ent").spans.context
    alone = dict(step.maps_)
    try:
        step.maps_ = {needs: alone[needs]}
        assert found == entity_scores(calibrated, disable=[*disabled, "calib", "attribute_ruler", "lemmatizer"])
    finally:
        step.maps_ = alone


def test_a_fitted_pipe_is_not_replaced_and_an_unfitted_one_makes_way():
    nlp = stock()
    nlp.add_pipe("calib", after="tagger")
    pipe = pretrained(nlp, components=["tagger"]).get_pipe("calib")
    assert pipe.fitted
    pipe.learned = replace(pipe.learned, info=replace(pipe.fit_info, pretrained=None))
    with pytest.raises(CalibError, match=r"\[C837\].*'calib'"):
        pretrained(nlp, components=["tagger"])


def test_a_name_that_belongs_to_another_component_is_refused():
    nlp = stock()
    nlp.add_pipe("sentencizer", "calib_ent")
    with pytest.raises(CalibError, match=r"\[C837\].*'calib_ent'"):
        pretrained(nlp, components=["ner"])


def test_a_card_by_name_and_one_that_is_not_for_the_pipeline():
    nlp = stock()
    with pytest.raises(CalibError, match=r"\[C833\].*'nothing'.*en_core_web_sm-ner"):
        pretrained(nlp, card="nothing")
    with pytest.raises(CalibError, match=r"\[C835\]"):
        pretrained(spacy.blank("en"), card="en_core_web_sm-ner")
    assert pretrained(nlp, card="en_core_web_sm-tagger").pipe_names.count("calib") == 1


def test_a_card_in_a_file_of_ones_own(tmp_path):
    file = Path(cards.__file__).parent / "cards" / "en_core_web_sm-ner.json"
    assert pretrained(stock(), card=file).has_pipe("calib_ent")
    assert pretrained(stock(), card=str(file)).has_pipe("calib_ent")
    with pytest.raises(CalibError, match=r"\[C831\].*'mine'.*No such file"):
        pretrained(stock(), card=tmp_path / "mine.json")


def test_a_chosen_card_does_not_replace_another_one():
    nlp = pretrained(stock(), card="en_core_web_sm-tagger")
    assert pretrained(nlp, card="en_core_web_sm-tagger") is nlp
    with pytest.raises(CalibError, match=says("C837", name="calib", origin="the card 'en_core_web_sm-tagger'")):
        pretrained(nlp, card="en_core_web_md-tagger")


def test_without_the_tagger_the_card_of_these_weights_is_found_and_nothing_is_transferred():
    pytest.importorskip(MODEL)
    nlp = spacy.load(MODEL, exclude=["tagger", "parser", "lemmatizer", "attribute_ruler"])
    assert pretrained(nlp).get_pipe("calib_ent").fit_info.pretrained["card"] == "en_core_web_sm-ner"
    assert not nlp.get_pipe("calib_ent").fit_info.pretrained["transferred"]
    assert "calib" not in nlp.component_names


def test_a_disabled_component_is_passed_over_and_refused_where_it_is_named():
    nlp = stock()
    nlp.disable_pipe("ner")
    assert pretrained(nlp).pipe_names.count("calib") == 1
    assert "calib_ent" not in nlp.component_names
    with pytest.raises(CalibError, match=r"\[C069\].*'ner'"):
        pretrained(nlp, components=["ner"])
    nlp.disable_pipe("tagger")
    with pytest.raises(CalibError, match=r"\[C069\]"):
        pretrained(nlp)


def test_what_is_refused_names_the_components():
    nlp = stock()
    with pytest.raises(CalibError, match=r"\[C834\].*component 'nerr', which is not in the pipeline"):
        pretrained(nlp, components="nerr")
    with pytest.raises(CalibError, match=r"\[C834\].*a pipeline without components of language 'de'"):
        pretrained(spacy.blank("de"))
    nlp.remove_pipe("ner")
    nlp.remove_pipe("tagger")
    with pytest.raises(CalibError, match=r"\[C834\].*any component of the pipeline \(tok2vec, parser, senter\)"):
        pretrained(nlp)


def disturbed(component: str, size: float, seed: int = 0) -> Any:
    """The stock pipeline with random numbers added to, or (size 0) in the place of, the weights of a component's last layers."""
    nlp, draw = stock(), np.random.default_rng(seed)
    model = nlp.get_pipe(component).model
    for node in model.walk():
        for name in node.param_names:
            if node.has_param(name) and "tok2vec" not in node.name:
                held = node.get_param(name)
                noise = draw.normal(size=held.shape).astype(held.dtype)
                node.set_param(name, noise * 0.1 if not size else held + noise * size * held.std())
    return nlp


@pytest.mark.parametrize(("random", "components"), [("tagger", ["ner", "tagger"]), ("tagger", ["tagger"]), ("ner", ["ner"])])
def test_random_weights_are_refused_and_the_pipeline_stays_as_it_was(random, components):
    nlp = disturbed(random, 0)
    before = nlp.pipe_names
    with pytest.raises(CalibError, match=rf"\[C836\](?=.*'{random}').*calib fit"):
        pretrained(nlp, components=components)
    assert nlp.pipe_names == before


def test_a_refusal_keeps_the_unfitted_pipe_that_a_card_would_replace():
    nlp = disturbed("tagger", 0)
    reader = nlp.add_pipe("calib", name="mine", after="tagger")
    before = nlp.pipe_names
    with pytest.raises(CalibError, match=r"\[C836\]"):
        pretrained(nlp, components=["tagger"])
    assert (nlp.pipe_names, nlp.get_pipe("mine"), nlp.get_pipe_meta("mine").factory) == (before, reader, "calib")
    assert "mine" in nlp.config["components"]


GOLD = {"tags": ["NNP", "VBD", "IN", "NNP", "."], "entities": ["U-PERSON", "O", "O", "U-GPE", "O"]}


@pytest.mark.parametrize(("component", "attr"), [("tagger", "calib"), ("ner", "calib_ent")])
def test_further_trained_weights_are_transferred_with_one_warning(component, attr):
    nlp = stock()
    gold = [Example.from_dict(nlp.make_doc("Ann went to Oslo ."), GOLD)]
    before = fingerprint(nlp, nlp.get_pipe(component))
    others = [name for name in nlp.pipe_names if name not in ("tok2vec", component)]
    for _ in range(3):
        nlp.update(gold, sgd=nlp.resume_training(), exclude=others)
    assert fingerprint(nlp, nlp.get_pipe(component)) != before
    with pytest.warns(UserWarning, match=r"\[CW75\]") as caught:
        pretrained(nlp, components=[component])
    assert len([one for one in caught if "CW75" in str(one.message)]) == 1
    assert nlp.get_pipe(attr).fit_info.pretrained["transferred"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = nlp("Ann went to Oslo.")
    scored = doc.ents if component == "ner" else doc
    assert len(scored) >= 2
    assert all(0 < getattr(unit._, f"{attr}_score") < 1 for unit in scored)


def test_scores_that_are_too_few_or_too_far_are_refused():
    match, nlp = Match(cards.find_card("en_core_web_sm-ner"), "ner"), spacy.blank("en")
    nlp.add_pipe("ner")
    held = match.card.data["probe"]
    near = np.full(held["n"], held["mean"])
    check_scores(match, near, nlp)
    for found in (near[: held["n"] // 3], np.repeat(near, 3), near + held["spread"], near - held["spread"], near[:0]):
        with pytest.raises(CalibError, match=r"\[C836\]"):
            check_scores(match, found, nlp)


def test_the_probe_is_what_the_card_says(calibrated):
    for name, attr in (("en_core_web_sm-ner", "calib_ent"), ("en_core_web_sm-tagger", "calib")):
        held = cards.find_card(name).data["probe"]
        pipe = calibrated.get_pipe(attr)
        found = probe(pipe, run_upstream(calibrated, pipe, held["sentences"]))
        assert len(found) == pytest.approx(held["n"], abs=3)
        assert found.mean() == pytest.approx(held["mean"], abs=0.1)


def test_the_state_is_what_a_fit_would_save():
    match = Match(cards.find_card("en_core_web_sm-ner"), "entities", changed_components=("entities",))
    state = learned_state(match, "weights", unlike=["parser"])
    assert state["record"] is None
    assert state["seen"] is None
    assert state["fit_info"]["component"] == "entities"
    assert state["fit_info"]["pretrained"]["transferred"]
    assert "Evidence of parser is not used" in state["fit_info"]["pretrained"]["trust"]
    assert list(state["span_context"]["learned"]["maps_"]) == ["ner, tagger, lists", "ner, lists", "ner, tagger", "ner"]
    assert state["cutoffs"] is None


def test_entities_are_accepted_from_one_cutoff(calibrated):
    pipe = calibrated.get_pipe("calib_ent")
    assert pipe.spans.cutoffs == Cutoffs(0.8, 0.5, "all", {"all": 0.75})
    assert pipe.fit_info.is_of_card(pipe.spans.cutoffs)
    assert not pipe.fit_info.is_of_card(None)
    scored = [entity for entity in calibrated(TEXT).ents if entity._.calib_ent_score is not None]
    assert [entity._.calib_ent_accept for entity in scored] == [entity._.calib_ent_score >= 0.75 for entity in scored]


def test_a_precision_chooses_another_cutoff_once():
    nlp = pretrained(stock(), components="ner", precision=0.9)
    strict = nlp.get_pipe("calib_ent").spans.cutoffs
    assert (strict.precision, strict.values["all"]) == (0.9, nlp.get_pipe("calib_ent").fit_info.pretrained["cutoff"]["cutoff"])
    assert strict.values["all"] > 0.75
    assert pretrained(nlp, components="ner").get_pipe("calib_ent").spans.cutoffs == strict
    with pytest.raises(CalibError, match=r"\[C837\].*'calib_ent'.*en_core_web_sm-ner"):
        pretrained(nlp, components="ner", precision=0.8)


@pytest.mark.parametrize(
    ("precision", "components", "code"), [(80, None, "C001"), (0.999, None, "C839"), (0.9, ["tagger"], "C840")]
)
def test_a_precision_that_cannot_be_had_is_refused_before_anything_changes(precision, components, code):
    nlp = stock()
    before = nlp.pipe_names
    with pytest.raises(CalibError, match=rf"\[{code}\]"):
        pretrained(nlp, components=components, precision=precision)
    assert nlp.pipe_names == before


MERKEL = "Angela Merkel spoke in Ghana, and Maria Gonzales of Siemens in the Amazon."


def test_evidence_of_a_random_tagger_is_not_used_and_the_warning_names_it(calibrated):
    nlp = disturbed("tagger", 0)
    with pytest.warns(UserWarning, match=r"\[CW76\].*output of 'tagger' differs.*'ner'") as caught:
        pretrained(nlp, components="ner")
    assert not any("CW75" in str(one.message) for one in caught)  # the weights that are used are those of the card
    pipe = nlp.get_pipe("calib_ent")
    assert list(pipe.spans.context.maps_) == ["ner, lists", "ner"]
    assert not pipe.fit_info.pretrained["transferred"]
    assert "Evidence of tagger is not used" in pipe.fit_info.pretrained["trust"]
    without = entity_scores(calibrated, MERKEL, disable=["tagger", "parser", "calib", "attribute_ruler", "lemmatizer"])
    for (label, score), (expected_label, expected) in zip(entity_scores(nlp, MERKEL), without, strict=True):
        assert (label, score) == (expected_label, None if expected is None else pytest.approx(expected, abs=1e-6))


def test_evidence_of_a_random_parser_alone_leaves_that_of_the_tagger():
    nlp = disturbed("parser", 0)
    with pytest.warns(UserWarning, match=r"\[CW76\].*'parser'"):
        pretrained(nlp, components="ner")
    assert list(nlp.get_pipe("calib_ent").spans.context.maps_) == ["ner, tagger, lists", "ner, lists", "ner, tagger", "ner"]


def test_a_tagger_without_proper_nouns_gives_no_evidence():
    nlp = stock()
    nlp.remove_pipe("tagger")
    tagger = nlp.add_pipe("tagger", before="parser")
    for label in ("A", "B"):
        tagger.add_label(label)
    tagger.initialize(lambda: [Example.from_dict(nlp.make_doc("a b"), {"tags": ["A", "B"]})])
    with pytest.warns(UserWarning, match=r"\[CW76\].*'tagger'"):
        pretrained(nlp)
    assert all(0 < score < 1 for label, score in entity_scores(nlp, MERKEL) if label in {"PERSON", "GPE", "ORG"})


def test_a_renamed_component_is_found_by_its_labels(calibrated):
    nlp = stock()
    nlp.rename_pipe("ner", "entities")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pretrained(nlp) is pretrained(nlp)
    assert nlp.pipe_names.count("calib_ent") == 1
    assert nlp.get_pipe("calib_ent").fit_info.component == "entities"
    assert [score for _, score in entity_scores(nlp, MERKEL)] == pytest.approx(
        [score for _, score in entity_scores(calibrated, MERKEL)], abs=1e-6
    )
    assert pretrained(nlp.from_bytes(nlp.to_bytes()), components="entities").has_pipe("calib_ent")


def test_a_sourced_recognizer_beside_one_of_ones_own_is_calibrated_from_a_folder(tmp_path):
    nlp, other = stock(), spacy.blank("en")
    own = other.add_pipe("ner")
    own.add_label("DRUG")
    other.initialize()
    for name in ("tok2vec", "tagger", "parser"):
        other.add_pipe(name, source=nlp, **({"first": True} if name == "tok2vec" else {}))
    other.add_pipe("ner", "stock_ner", source=nlp)
    with pytest.raises(CalibError, match=r"\[C034\] Component 'stock_ner'.*'ner' sets entities.*from its folder"):
        pretrained(other)
    other.to_disk(tmp_path / "both")
    assert pretrained(tmp_path / "both").get_pipe("calib_ent").source.component == "stock_ner"


@pytest.mark.parametrize("factory", ["textcat", "tagger", "ner", "entity_linker"])
def test_a_component_before_that_was_never_trained_is_named(factory, tmp_path):
    nlp = stock()
    nlp.add_pipe(factory, "untrained", before="ner")
    nlp.to_disk(tmp_path / "untrained")
    with pytest.raises(CalibError, match=r"\[C086\] Component 'untrained' is in the pipeline and not trained"):
        pretrained(tmp_path / "untrained", components="ner")
    with pytest.raises(CalibError, match=r"\[C034\]" if factory == "ner" else r"\[C086\]"):
        pretrained(nlp, components="ner")
    assert "calib_ent" not in nlp.component_names


def test_one_label_more_is_named(calibrated):
    nlp = stock()
    nlp.get_pipe("ner").add_label("DRUG")
    with pytest.raises(CalibError, match=r"\[C834\].*component 'ner' of language 'en' \(it has also DRUG\)"):
        pretrained(nlp, components="ner")
    with pytest.warns(UserWarning, match=r"\[CW77\] Component 'ner'.*it has also DRUG"):
        pretrained(nlp)
    assert nlp.has_pipe("calib")
    assert not nlp.has_pipe("calib_ent")


@pytest.mark.parametrize(
    ("name", "expected"), [("core_web_sm", "sm"), ("core_web_md", "md"), ("en_core_web_sm_copy", "sm"), ("mine", "md")]
)
def test_of_cards_that_fit_equally_well_the_name_of_the_pipeline_decides(name, expected):
    nlp = disturbed("ner", 0.1)
    nlp.remove_pipe("tagger")
    nlp.remove_pipe("parser")
    nlp.meta["name"] = name
    (match,), _ = find_matches(nlp, "ner", None)
    assert (match.card.name, match.changed_components) == (f"en_core_web_{expected}-ner", ("ner",))


def test_a_component_that_changes_the_tokens_before_is_named_in_the_refusal():
    pytest.importorskip(MODEL)
    nlp = spacy.load(MODEL)
    nlp.add_pipe("token_splitter", first=True, config={"min_length": 6, "split_length": 3})
    with pytest.raises(CalibError, match=r"C836.*'tagger' \('token_splitter' changes the tokens before it\) differ"):
        pretrained(nlp, components=["tagger"])
