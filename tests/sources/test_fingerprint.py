"""Maps belong to the weights that they were fitted with: training and other weights are noticed once, all else changes nothing."""

import copy
import re
import warnings

import pytest
import spacy
from spacy.language import Language

from spacy_calib.sources.find import WeightWatch, fingerprint
from tests.conftest import examples_for, fit_calib, train_pipeline

TEXT = "the old dog saw a duck ."


def warnings_of(nlp: Language, n: int = 1) -> list[str]:
    """The warnings of a run over n texts."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        list(nlp.pipe([TEXT] * n, batch_size=1))
    return [str(one.message) for one in told if "[CW" in str(one.message)]


def train_on(nlp: Language, *components: str) -> Language:
    with nlp.select_pipes(enable=["tok2vec", *components]):
        nlp.update(examples_for(nlp, 4, seed=5), sgd=nlp.resume_training())
    return nlp


def test_nothing_is_said_where_nothing_changed(fitted, tmp_path):
    calib = fitted.get_pipe("calib")
    fitted.to_disk(tmp_path / "m")
    loaded = spacy.load(tmp_path / "m")
    renamed = copy.deepcopy(fitted)
    renamed.rename_pipe("tagger", "tags")
    replaced = copy.deepcopy(fitted)
    replaced.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])
    replaced.to_disk(tmp_path / "replaced")
    for nlp in (fitted, loaded, renamed, replaced, spacy.load(tmp_path / "replaced"), copy.deepcopy(fitted)):
        assert warnings_of(nlp) == []
        assert nlp.get_pipe("calib").learned.weights == calib.learned.weights != ""
        assert nlp.get_pipe("calib").lookup.weights_changed() is False


def test_training_is_said_once_and_after_loading_again(fitted, tmp_path):
    """After nlp.update nothing warned that the scores are not calibrated."""
    fitted(TEXT)
    train_on(fitted, "tagger")
    (warning,) = warnings_of(fitted, 3)
    assert re.search("CW04.*'tagger'", warning)
    assert fitted.get_pipe("calib").lookup.weights_changed() is True
    fitted.to_disk(tmp_path / "m")
    assert len(warnings_of(spacy.load(tmp_path / "m"), 3)) == 1


def test_training_the_embedding_alone_is_noticed(fitted):
    """The tagger's own weights stay: its listener hands on what other components teach the shared embedding."""
    fitted(TEXT)
    node = [node for node in fitted.get_pipe("tok2vec").model.walk() if node.name == "maxout"][-1]
    node.set_param("b", node.get_param("b") + 0.01)
    assert "CW04" in warnings_of(fitted)[0]


def test_a_sourced_pipe_says_that_the_tagger_is_another_one(fitted, tmp_path):
    other = train_pipeline(["tagger"], steps=1)
    other.add_pipe("calib", source=fitted)
    other.to_disk(tmp_path / "other")
    assert ["CW04" in warning for warning in warnings_of(spacy.load(tmp_path / "other"), 2)] == [True]
    assert warnings_of(fitted) == []


def test_fitting_again_ends_it(fitted):
    train_on(fitted, "tagger")
    assert fitted.get_pipe("calib").lookup.weights_changed() is True
    fit_calib(fitted, examples_for(fitted, 40, seed=6))
    assert fitted.get_pipe("calib").lookup.weights_changed() is False
    assert warnings_of(fitted) == []


def test_the_whole_is_hashed_only_when_the_sample_changed(fitted, monkeypatch):
    calls = []
    monkeypatch.setattr("spacy_calib.sources.find.fingerprint", lambda *given: calls.append(given) or fingerprint(*given))
    tagger, expected = fitted.get_pipe("tagger"), fitted.get_pipe("calib").learned.weights
    watch = WeightWatch()
    assert [watch.has_changed(expected, fitted, tagger) for _ in range(5)] == [False] * 5
    assert len(calls) == 1
    train_on(fitted, "tagger")
    assert [watch.has_changed(expected, fitted, tagger) for _ in range(5)] == [True] * 5
    assert len(calls) == 2


@pytest.mark.parametrize("component", ["tagger", "morphologizer", "trainable_lemmatizer", "senter"])
def test_each_component_has_its_own(fitted, component):
    others = {fingerprint(fitted, pipe) for name, pipe in fitted.components if name not in (component, "calib")}
    assert fingerprint(fitted, fitted.get_pipe(component)) not in others


def test_a_component_without_a_model_has_none(fitted):
    assert fingerprint(fitted, object()) == ""
