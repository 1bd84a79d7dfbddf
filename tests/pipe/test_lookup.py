"""A calib pipe reads the pipeline that it was made for, or attached to; Docs of another one get None."""

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from tests.conftest import revive
from tests.made import examples_before_calib

TEXT = "the old dog saw a duck ."
FOREIGN = r"CW02.*another pipeline.*nlp.get_pipe\('calib'\).attach\(nlp\), or save"


def raw(doc: Doc) -> list[float | None]:
    return [token._.calib_raw for token in doc]


def scores(doc: Doc) -> list[float | None]:
    return [token._.calib_score for token in doc]


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
    """tok2vec and tagger, with the weights of the fitted pipeline."""
    return revive(trained_bytes, exclude=["morphologizer", "senter", "trainable_lemmatizer"])


@pytest.fixture
def sourced(other, fitted) -> Language:
    """The other pipeline with the calib pipe of the fitted one, which lives on."""
    other.add_pipe("calib", source=fitted)
    return other


@pytest.fixture
def attached(sourced) -> Language:
    sourced.get_pipe("calib").attach(sourced)
    return sourced


def gives_none_and_one_warning(nlp: Language, why: str = FOREIGN) -> None:
    with pytest.warns(UserWarning, match=why) as told:
        assert [set(raw(doc)) for doc in nlp.pipe([TEXT] * 3, batch_size=1)] == [{None}] * 3
    assert len(told) == 1


def test_a_sourced_pipe_gives_none_and_one_warning_and_the_old_pipeline_its_scores(sourced, fitted):
    gives_none_and_one_warning(sourced)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert raw(fitted(TEXT)) == of_tagger(fitted)


def test_an_attached_pipe_gives_the_scores_of_the_saved_and_loaded_pipeline(attached, fitted, tmp_path):
    expected = scores(attached(TEXT))
    assert None not in expected
    assert raw(attached(TEXT)) == of_tagger(attached)
    attached.to_disk(tmp_path / "attached")
    assert scores(spacy.load(tmp_path / "attached")(TEXT)) == expected
    gives_none_and_one_warning(fitted)
    fitted.get_pipe("calib").attach(fitted)
    assert raw(fitted(TEXT)) == of_tagger(fitted)


@pytest.mark.parametrize("change", ["tagger renamed", "calib renamed", "listeners replaced", "others disabled"])
def test_after_changes_of_the_pipeline(attached, change):
    if change == "tagger renamed":
        attached.rename_pipe("tagger", "tags")
    elif change == "calib renamed":
        attached.rename_pipe("calib", "scores")
    elif change == "listeners replaced":
        attached.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])
    else:
        attached.add_pipe("sentencizer", first=True)
        attached.select_pipes(enable=["tok2vec", "tagger", "calib"])
    assert raw(attached(TEXT)) == of_tagger(attached, "tags" if change == "tagger renamed" else "tagger")


def test_a_disabled_component_that_is_removed_has_no_scores_any_more(attached):
    """The active pipes stay the same, by which a change of the pipeline is noticed."""
    doc, calib = attached(TEXT), attached.get_pipe("calib")
    attached.disable_pipe("tagger")
    assert raw(calib(doc)) == of_tagger(attached)  # its head runs again
    attached.remove_pipe("tagger")
    with pytest.warns(UserWarning, match="CW02.*no component 'tagger'"):
        assert raw(calib(doc)) == [None] * len(doc)


@pytest.mark.filterwarnings("ignore:.*CW04")
@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_a_copy_of_a_pipeline_reads_the_copy(attached, how):
    copied = copy.deepcopy(attached) if how == "deepcopy" else pickle.loads(pickle.dumps(attached))
    assert copied.get_pipe("calib").lookup.nlp is copied
    tempered(copied)
    assert raw(copied(TEXT)) == of_tagger(copied) != of_tagger(attached)
    assert raw(attached(TEXT)) == of_tagger(attached)


def test_a_pickled_pipe_takes_its_pipeline_along(fitted):
    alone = pickle.loads(pickle.dumps(fitted.get_pipe("calib")))
    nlp = alone.lookup.nlp
    assert nlp is not fitted
    assert nlp.get_pipe("calib") is alone
    assert raw(nlp(TEXT)) == of_tagger(fitted)


def test_a_pipe_keeps_the_pipeline_that_it_was_made_for(trained_bytes, fitted, tmp_path):
    """What was loaded only to take its pipes lives on in the pipe: nothing depends on when garbage is collected."""
    fitted.to_disk(tmp_path / "calibrated")
    made = assembled(tmp_path / "calibrated", tmp_path / "calibrated")
    assert raw(made(TEXT)) == of_tagger(made)
    made.to_disk(tmp_path / "made")
    assert scores(spacy.load(tmp_path / "made")(TEXT)) == scores(fitted(TEXT))


def assembled(calibrated: Path, tagger: Path) -> Language:
    """As `spacy assemble` makes it: all pipes are sourced, and share the new pipeline's vocab."""
    sources = {"tok2vec": tagger, "tagger": tagger, "calib": calibrated}
    components = {name: {"source": str(path)} for name, path in sources.items()}
    config = {"nlp": {"lang": "xx", "pipeline": list(sources)}, "components": components}
    return spacy.blank("xx").from_config(config)


@pytest.mark.filterwarnings("ignore:.*CW04")
def test_an_assembled_pipeline_with_another_tagger_is_not_attached_and_says_so_once_loaded(fitted, other, tmp_path):
    """Both pipelines have one vocab, by which they cannot be told apart: see docs/questions.md."""
    fitted.to_disk(tmp_path / "calibrated")
    tempered(other).to_disk(tmp_path / "other")
    made = assembled(tmp_path / "calibrated", tmp_path / "other")
    with pytest.raises(CalibError, match="C120.*'tagger' has other weights"):
        made.get_pipe("calib").attach(made)
    made.to_disk(tmp_path / "made")
    assert raw(spacy.load(tmp_path / "made")(TEXT)) == of_tagger(other)


def reordered(nlp: Language) -> None:
    first, second, *rest = nlp.get_pipe("tagger").labels
    nlp.get_pipe("tagger").cfg["labels"] = [second, first, *rest]


WRONG = [
    (tempered, "C120.*'tagger' has other weights there than at the fit"),
    (reordered, "C020.*order is another one"),
    (lambda nlp: nlp.remove_pipe("tagger"), "C120.*has no component 'tagger'"),
    (lambda nlp: nlp.replace_pipe("tagger", "sentencizer"), r"C022.*'tagger' \(Sentencizer\)"),
    (lambda nlp: nlp.remove_pipe("calib"), "C120.*the pipe is not there"),
]


@pytest.mark.parametrize(("change", "why"), WRONG)
def test_a_wrong_pipeline_is_refused_and_the_pipe_reads_its_own(sourced, fitted, change, why):
    change(sourced)
    with pytest.raises(CalibError, match=why):
        fitted.get_pipe("calib").attach(sourced)
    assert raw(fitted(TEXT)) == of_tagger(fitted)


def test_a_prefix_that_is_taken_there_is_refused(other, fitted):
    other.add_pipe("calib", name="second")
    other.add_pipe("calib", source=fitted)
    with pytest.raises(CalibError, match="C025.*'second'"):
        fitted.get_pipe("calib").attach(other)


def test_labels_appended_since_the_fit_do_not_keep_a_pipe_from_being_attached(sourced):
    tagger = sourced.get_pipe("tagger")
    tagger.cfg["labels"] = [*tagger.labels, "NEW"]
    sourced.get_pipe("calib").attach(sourced)
    assert sourced.get_pipe("calib").labels == tagger.labels[:-1]
    with pytest.warns(UserWarning, match="CW03.*1 labels"):
        assert raw(sourced(TEXT)) == of_tagger(sourced)


def test_a_pipeline_without_the_component_gives_none(fitted):
    empty = spacy.blank("xx")
    empty.add_pipe("calib", source=fitted)
    gives_none_and_one_warning(empty)


def test_examples_of_another_pipeline_are_refused_and_fit_the_pipe_of_their_own(fitted, other):
    nlp = tempered(other)
    nlp.add_pipe("calib", config={"attr": "calib"})
    examples = examples_before_calib(nlp, 40, 3)
    with pytest.raises(CalibError, match="C120.*another pipeline.*attach"):
        fitted.get_pipe("calib").fit(iter(examples))
    nlp.get_pipe("calib").fit(iter(examples))
    assert raw(nlp(TEXT)) == of_tagger(nlp)


def test_an_attached_pipe_is_fitted_to_its_new_pipeline(sourced):
    pipe = sourced.get_pipe("calib")
    examples = examples_before_calib(sourced, 40, 3)
    with pytest.raises(CalibError, match="C120.*another pipeline.*attach"):
        pipe.fit(iter(examples))
    pipe.attach(sourced).fit(iter(examples))
    assert pipe.fit_info.docs == len(examples)
    assert raw(sourced(TEXT)) == of_tagger(sourced)
