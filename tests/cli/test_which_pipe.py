"""Commands on a pipeline with two calib pipes: which one they read, and fits of two components in one run."""

import json
from dataclasses import replace

import pytest
import spacy

import spacy_calib
from spacy_calib.cli.fitting import new_calib
from tests.sentences import says

from .conftest import calib, copy_with, docs_in, fitted_to, json_of, ok, refuses, save_docs

CHOICE = "choose one: --component tagger (tag) or --component ner (ner)."


@pytest.fixture(scope="module")
def tags(entity_test, tmp_path_factory):
    """Gold with tags alone."""
    path = tmp_path_factory.mktemp("gold") / "tags.spacy"
    return save_docs(path, [copy_with(doc, "tags") for doc in docs_in(entity_test)])


@pytest.fixture(scope="module")
def entities(entity_test, tmp_path_factory):
    """Gold with entities alone."""
    path = tmp_path_factory.mktemp("gold") / "entities.spacy"
    return save_docs(path, [copy_with(doc, "ents") for doc in docs_in(entity_test)])


@pytest.fixture(scope="module")
def texts(entity_test, tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(doc.text for doc in docs_in(entity_test)[:20]), encoding="utf8")
    return path


@pytest.mark.parametrize(("kind", "component", "attr"), [("tags", "tagger", "calib"), ("ents", "ner", "calib_ent")])
def test_adapt_and_evaluate_read_the_pipe_that_the_gold_is_of(two_pipes, tags, entities, tmp_path, kind, component, attr):
    gold = tags if kind == "tags" else entities
    outcome = ok(calib("adapt", two_pipes, gold, tmp_path / "adapted"))
    assert f"The gold is for '{component}', so the pipe is '{attr}'" in outcome.text
    assert f"Adapted {component} to" in outcome.text
    outcome = ok(calib("evaluate", two_pipes, gold, "-o", tmp_path / "numbers.json"))
    assert "Left out, as the data has no gold for it" in outcome.text
    assert "Nothing to judge" not in outcome.text
    assert list(json.loads((tmp_path / "numbers.json").read_text())) == [attr]


def test_gold_of_both_is_evaluated_for_both_and_adapt_asks_for_one(two_pipes, entity_test, tmp_path):
    assert "left out" not in ok(calib("evaluate", two_pipes, entity_test, "-o", tmp_path / "numbers.json")).text
    assert sorted(json.loads((tmp_path / "numbers.json").read_text())) == ["calib", "calib_ent"]
    refuses(calib("adapt", two_pipes, entity_test, tmp_path / "adapted"), CHOICE)
    assert "Adapted tagger" in ok(calib("adapt", two_pipes, entity_test, tmp_path / "adapted", "-C", "tagger")).text


def test_threshold_takes_what_has_entities(two_pipes, entities, tags, tmp_path):
    outcome = ok(calib("threshold", two_pipes, entities, "--precision", 0.5, "-o", tmp_path / "cutoffs.json"))
    assert json.loads((tmp_path / "cutoffs.json").read_text())["pipe"] == "calib_ent"
    assert "left out" not in outcome.text
    refuses(
        calib("threshold", two_pipes, tags, "--precision", 0.5), says("C080", layer="ner", component="ner", others="'tagger'")
    )
    refused = calib("threshold", two_pipes, entities, "--precision", 0.5, "-C", "tagger")
    refuses(refused, says("C065", name="calib", component="tagger"))


def test_info_expect_and_view_take_one_by_component(two_pipes, texts, monkeypatch):
    assert "calib_ent" not in ok(calib("info", two_pipes, "-C", "tagger")).text
    assert "calib_ent" in ok(calib("info", two_pipes)).text
    assert "Expected quality of ner" not in ok(calib("expect", two_pipes, texts, "-C", "tagger")).text
    both = ok(calib("expect", two_pipes, texts)).text
    assert "Expected quality of ner" in both
    assert "Expected quality of tagger" in both
    refuses(calib("view", two_pipes, "-C", "parser"), "no fitted calib pipe for the component or prefix 'parser'")


def test_two_components_are_fitted_in_one_run_as_one_after_the_other(ner_model, two_pipes, entity_dev, tmp_path):
    both = tmp_path / "both"
    outcome = ok(calib("fit", ner_model, entity_dev, both, "-C", "tagger", "-C", "ner", "-m", "isotonic"))
    assert "Calibrated tagger on" in outcome.text
    assert "Calibrated ner on" in outcome.text
    nlp, one_by_one = spacy.load(both), spacy.load(two_pipes)
    assert nlp.pipe_names == one_by_one.pipe_names
    texts = [doc.text for doc in docs_in(entity_dev)[:10]]
    for doc, other in zip(nlp.pipe(texts), one_by_one.pipe(texts), strict=True):
        assert [token._.calib_score for token in doc] == [token._.calib_score for token in other]
        assert [entity._.calib_ent_score for entity in doc.ents] == [entity._.calib_ent_score for entity in other.ents]


def test_each_pipe_runs_once_where_two_are_fitted(ner_model, entity_dev, tmp_path, monkeypatch):
    runs: list[str] = []
    run_pipes = new_calib.run_pipes

    def noted(nlp, examples, names, **options):
        runs.extend(names)
        return run_pipes(nlp, examples, names, **options)

    monkeypatch.setattr(new_calib, "run_pipes", noted)
    calibs = spacy_calib.fit_all(ner_model, entity_dev, tmp_path / "both", ["ner", "tagger"])
    assert [pipe.name for pipe in calibs] == ["calib", "calib_ent"]
    assert len(runs) == len(set(runs))
    assert {"tok2vec", "tagger", "ner"} <= set(runs)


def test_fit_takes_the_calibrated_component_that_the_gold_is_of(
    calibrated_ner, ner_model, entities, tags, entity_test, tmp_path
):
    """Without --component; gold of the default component, or of both, is fitted to that, and a stock pipeline is asked."""
    options = ("-m", "isotonic", "--always")
    outcome = ok(calib("fit", calibrated_ner, entities, tmp_path / "a", *options))
    assert "The gold is for 'ner', so that is calibrated (--component tagger for 'tagger')." in outcome.text
    assert "Calibrated ner on" in outcome.text
    for gold in (tags, entity_test):
        outcome = ok(calib("fit", calibrated_ner, gold, tmp_path / gold.stem, *options))
        assert "The gold is for" not in outcome.text
        assert "Calibrated tagger on" in outcome.text
    refuses(calib("fit", ner_model, entities, tmp_path / "b", *options), "or calibrate that (--component ner)")
    setting = "--components.calib.source.component=tagger"
    refuses(calib("fit", calibrated_ner, entities, tmp_path / "b", *options, setting), "no gold tag annotation")


@pytest.mark.filterwarnings("ignore:.*CW14")
def test_each_of_two_is_compared_with_what_was_there(two_pipes, entity_test, tmp_path):
    """On gold too little for a fit each keeps its maps, as they were or adapted, and the figures of its scores."""
    few = save_docs(tmp_path / "few.spacy", docs_in(entity_test)[:15])
    nlp = spacy.load(two_pipes)
    for name in ("calib", "calib_ent"):  # made-up texts recur: the pipes do not know that they saw them
        nlp.get_pipe(name).learned = replace(nlp.get_pipe(name).learned, seen_state=None)
    unseen = tmp_path / "unseen"
    nlp.to_disk(unseen)
    outcome = ok(calib("fit", unseen, few, tmp_path / "both", "-C", "tagger", "-C", "ner"))
    assert outcome.text.count("--always writes the new fit") == 2
    before, nlp = spacy.load(unseen), spacy.load(tmp_path / "both")
    for name in ("calib", "calib_ent"):
        old, new = before.get_pipe(name).fit_info, nlp.get_pipe(name).fit_info
        assert (new.tokens, new.pairs) == (old.tokens, old.pairs)
        if not new.adaptations:
            assert nlp.get_pipe(name).to_bytes() == before.get_pipe(name).to_bytes()
    options = ("-C", "tagger", "-C", "ner", "--always", "-m", "identity")
    result = json_of("fit", unseen, few, tmp_path / "new", *options)
    assert {pipe["comparison"]["written"] for pipe in result["pipes"].values()} == {"fit"}


@pytest.mark.parametrize(("options", "given"), [
    (["--attr", "mine"], "--attr"),
    (["--second-pass"], "--second-pass"),
    (["--components.calib.threshold", "0.02"], "--components.calib.threshold"),
])  # fmt: skip
def test_what_belongs_to_one_component_is_refused_beside_two(ner_model, entity_dev, tmp_path, options, given):
    outcome = calib("fit", ner_model, entity_dev, tmp_path / "both", "-C", "tagger", "-C", "ner", *options)
    refuses(outcome, f"Option {given} must be left out with several --component")


def test_each_component_takes_its_labels_of_a_map(ner_model, entity_dev, tmp_path):
    renamed = []
    for doc in docs_in(entity_dev):
        doc.set_ents(
            [spacy.tokens.Span(doc, ent.start, ent.end, {"PER": "PERSON"}.get(ent.label_, ent.label_)) for ent in doc.ents]
        )
        renamed.append(doc)
    gold = save_docs(tmp_path / "gold.spacy", renamed)
    both = fitted_to(tmp_path / "both", ner_model, gold, "-C", "tagger", "-C", "ner", "--map", "PER=PERSON")
    nlp = spacy.load(both)
    assert nlp.get_pipe("calib_ent").fit_info.label_map == {"PER": "PERSON"}
    assert not nlp.get_pipe("calib").fit_info.label_map
    unknown = calib("fit", ner_model, gold, tmp_path / "x", "-C", "tagger", "-C", "ner", "--map", "PERSONS=PERSON")
    refuses(unknown, "The map names 'PERSONS', which is no label of component 'ner'")
