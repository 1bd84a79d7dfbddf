"""A calib pipe reads the pipeline that runs it, wherever the pipe came from; what cannot be told gives None, never another pipeline's scores."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from tests.conftest import examples_for, revive, run_upstream

# That the maps belong to other weights is another matter: see test_fingerprint.py.
pytestmark = pytest.mark.filterwarnings("ignore:.*CW04")
TEXT = "the old dog saw a duck ."


def raw(doc: Doc) -> list[float | None]:
    return [token._.calib_raw for token in doc]


def of_tagger(nlp: Language, name: str = "tagger") -> list[float]:
    """The highest probability of each token by this pipeline's own tagger."""
    with nlp.select_pipes(disable=[pipe for pipe in nlp.pipe_names if pipe not in ("tok2vec", name)]):
        logits = nlp.get_pipe(name).model.predict([nlp(TEXT)])[0].astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return pytest.approx((odds / odds.sum(axis=1, keepdims=True)).max(axis=1).tolist())


def tempered(nlp: Language) -> Language:
    """With a tagger that finds the same tags and is less sure of them."""
    head = nlp.get_pipe("tagger").model.get_ref("output_layer")
    for param in ("W", "b"):
        head.set_param(param, head.get_param(param) * 0.5)
    return nlp


@pytest.fixture
def other(trained_bytes) -> Language:
    """tok2vec and another tagger."""
    return tempered(revive(trained_bytes, exclude=["morphologizer", "senter", "trainable_lemmatizer"]))


@pytest.fixture
def sourced(other, fitted) -> Language:
    """The other pipeline with the calib pipe of the fitted one, which lives on."""
    other.add_pipe("calib", source=fitted)
    assert raw(other(TEXT)) != raw(fitted(TEXT))
    return other


def test_a_sourced_pipe_reads_the_tagger_of_its_new_pipeline_and_the_old_one_keeps_its_own(sourced, fitted, tmp_path):
    """It went on with the other pipeline's tagger: .9928 became 1.4e-18, without a word."""
    for _ in range(2):
        assert raw(sourced(TEXT)) == of_tagger(sourced)
        assert raw(next(fitted.pipe([TEXT]))) == of_tagger(fitted)
    sourced.to_disk(tmp_path / "sourced")
    assert raw(spacy.load(tmp_path / "sourced")(TEXT)) == of_tagger(sourced)


@pytest.mark.parametrize("change", ["tagger renamed", "calib renamed", "listeners replaced"])
def test_after_changes_of_the_new_pipeline(sourced, fitted, change):
    if change == "tagger renamed":
        sourced.rename_pipe("tagger", "tags")
    elif change == "calib renamed":
        sourced.rename_pipe("calib", "scores")
    else:
        sourced.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])
    assert raw(sourced(TEXT)) == of_tagger(sourced, "tags" if change == "tagger renamed" else "tagger")
    assert raw(fitted(TEXT)) == of_tagger(fitted)


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_a_copy_of_the_new_pipeline_reads_the_copy(sourced, fitted, how):
    copied = copy.deepcopy(sourced) if how == "deepcopy" else pickle.loads(pickle.dumps(sourced))
    tempered(copied)
    assert raw(copied(TEXT)) == of_tagger(copied)
    assert raw(sourced(TEXT)) == of_tagger(sourced)


def test_worker_processes_read_the_pipeline_that_started_them(sourced, fitted):
    assert [raw(doc) for doc in sourced.pipe([TEXT] * 2, n_process=2)] == [of_tagger(sourced)] * 2


def test_a_pickled_pipe_takes_its_only_pipeline_along(fitted):
    doc = fitted(TEXT)
    alone = pickle.loads(pickle.dumps(fitted.get_pipe("calib")))
    expected = raw(doc)
    doc.user_data.clear()
    assert raw(alone(doc)) == expected


def test_a_pickled_pipe_of_two_pipelines_has_none(sourced, fitted):
    doc = fitted(TEXT)
    alone = pickle.loads(pickle.dumps(sourced.get_pipe("calib")))
    with pytest.warns(UserWarning, match="CW02.*stands in no pipeline"):
        assert set(raw(alone(doc))) == {None}


def test_the_pipe_stays_where_the_new_pipeline_is_gone(fitted, other):
    other.add_pipe("calib", source=fitted)
    del other
    gc.collect()
    assert raw(fitted(TEXT)) == of_tagger(fitted)


def assembled(calibrated: Path, tagger: Path) -> Language:
    """As `spacy assemble` makes it: all pipes are sourced, and share the new pipeline's vocab."""
    components = {"tok2vec": {"source": str(tagger)}, "tagger": {"source": str(tagger)}, "calib": {"source": str(calibrated)}}
    return spacy.blank("xx").from_config({"nlp": {"lang": "xx", "pipeline": list(components)}, "components": components})


def test_an_assembled_pipeline_reads_its_own_tagger(fitted, other, tmp_path):
    fitted.to_disk(tmp_path / "calibrated")
    other.to_disk(tmp_path / "other")
    made = assembled(tmp_path / "calibrated", tmp_path / "other")
    assert raw(made(TEXT)) == of_tagger(other)
    made.to_disk(tmp_path / "made")
    assert raw(spacy.load(tmp_path / "made")(TEXT)) == of_tagger(other)


def test_two_pipelines_with_one_vocab_cannot_be_told_apart(fitted, other, tmp_path):
    other.to_disk(tmp_path / "other")
    other = spacy.load(tmp_path / "other", vocab=fitted.vocab)
    other.add_pipe("calib", source=fitted)
    with pytest.warns(UserWarning, match="CW02.*several with one vocab") as told:
        assert [set(raw(doc)) for doc in other.pipe([TEXT, TEXT])] == [{None}, {None}]
    assert len(told) == 1


def test_a_tagger_with_other_labels_gives_none_and_one_warning_and_the_pipeline_loads(fitted, other, tmp_path):
    first, second, *rest = other.get_pipe("tagger").labels
    other.get_pipe("tagger").cfg["labels"] = [second, first, *rest]
    other.add_pipe("calib", source=fitted)
    with pytest.warns(UserWarning, match="CW02.*fitted in another pipeline.*order") as told:
        assert [set(raw(doc)) for doc in other.pipe([TEXT, TEXT])] == [{None}, {None}]
    assert len(told) == 1
    with warnings.catch_warnings():  # the other pipeline is as it was
        warnings.simplefilter("error")
        assert raw(fitted(TEXT)) == of_tagger(fitted)
    other.to_disk(tmp_path / "sourced")
    spacy.load(tmp_path / "sourced").to_disk(tmp_path / "again")
    loaded = spacy.load(tmp_path / "again")
    with pytest.warns(UserWarning, match="CW02"):
        assert set(raw(loaded(TEXT))) == {None}
    with pytest.raises(CalibError, match="C120.*'tagger'.*order"):
        loaded.get_pipe("calib").lookup.check()


def test_a_pipeline_without_the_component_gives_none(fitted):
    empty = spacy.blank("xx")
    empty.add_pipe("calib", source=fitted)
    with pytest.warns(UserWarning, match="CW02.*no component 'tagger'"):
        assert set(raw(empty(TEXT))) == {None}


def test_fitting_a_sourced_pipe_fits_it_to_its_new_pipeline(sourced, fitted):
    with sourced.select_pipes(disable=["calib"]):
        examples = run_upstream(sourced, examples_for(sourced, 40, seed=3))
    sourced.get_pipe("calib").fit(iter(examples))
    assert raw(sourced(TEXT)) == of_tagger(sourced)
