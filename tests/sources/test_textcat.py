"""Scores that `textcat` and `textcat_multilabel` leave in `doc.cats`."""

import numpy as np
import pytest
import spacy
from spacy.util import load_model_from_config

from spacy_calib.errors import CalibError
from spacy_calib.sources.scores_on_doc import TextcatSource
from tests.made import (
    categorized,
    categorizer_model,
    category_docs,
    fitted_categorizer,
    revive_categorizer,
    unannotated_examples,
)
from tests.sentences import says

SOURCE = {"@calib_sources": "spacy-calib.Textcat.v1"}
FACTORIES = ("textcat", "textcat_multilabel")


@pytest.fixture
def nlp():
    return revive_categorizer()


def calib_of(nlp, component="textcat", **settings):
    return nlp.add_pipe("calib", config={"source": {**SOURCE, "component": component}, **settings})


@pytest.mark.parametrize("factory", FACTORIES)
def test_scores_are_those_of_the_component_and_its_categories_stay(factory):
    nlp = fitted_categorizer(factory)
    doc = nlp("the actor saw a scene with a band")
    before = revive_categorizer(factory)(doc.text).cats
    assert doc.cats == before
    assert doc._.calib_cats_raw == {name: before[name] for name in doc._.calib_cats}
    assert doc._.calib_raw == max(before.values())
    assert doc._.calib_score == doc._.calib_cats[max(before, key=before.get)] != doc._.calib_raw
    assert nlp.get_pipe("calib").fit_info.layer.startswith("cats ") == (factory == "textcat")
    again = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert again(doc.text)._.calib_cats == doc._.calib_cats


def test_two_categorizers_keep_their_own_labels(nlp):
    nlp.add_pipe("textcat_multilabel", source=revive_categorizer("textcat_multilabel"))
    second = nlp.get_pipe("textcat_multilabel")
    second.cfg["labels"] = [f"also {label}" for label in second.labels]
    docs = category_docs(60, 32, vocab=nlp.vocab)
    for doc in docs:
        doc.cats |= {f"also {label}": 1.0 - value for label, value in doc.cats.items()}
    examples = categorized(nlp, docs)
    first = calib_of(nlp, grouping={"@calib_groupings": "spacy-calib.SCW.v1"})
    other = nlp.add_pipe(
        "calib", name="several", config={"attr": "several", "source": {**SOURCE, "component": "textcat_multilabel"}}
    )
    first.fit(examples)
    other.fit(examples)
    doc = nlp("the band sang a song")
    assert set(doc._.calib_cats) <= set(first.labels) == {"film", "music", "food"}
    assert set(doc._.several_cats) == {"also film", "also music", "also food"} == set(other.labels)
    assert doc._.calib_raw == max(doc.cats[label] for label in first.labels)
    scores = nlp.evaluate(unannotated_examples(nlp, category_docs(20, 33, vocab=nlp.vocab)))
    assert scores["calib_smce"] is not None
    assert scores["several_smce"] is None  # nothing in this gold is about its labels
    assert "cats_score" in scores


def test_gold_that_leaves_labels_out_takes_no_part_there():
    nlp = revive_categorizer("textcat_multilabel")
    docs = category_docs(60, 34, several=True, vocab=nlp.vocab)
    for doc in docs[:30]:
        del doc.cats["film"]
    calib = calib_of(nlp, "textcat_multilabel", threshold=0.0)
    calib.fit(categorized(nlp, docs))
    assert calib.fit_info.pairs == 60 * 3 - 30
    assert calib.fit_info.tokens == 60
    assert calib.fit_info.unknown_gold == 0


def test_binary_classes_sum_to_one():
    nlp = spacy.blank("xx")
    nlp.add_pipe("textcat", config=categorizer_model("textcat"))
    docs = category_docs(80, 35, vocab=nlp.vocab)
    for doc in docs:
        doc.cats = {"film": doc.cats["film"], "other": 1 - doc.cats["film"]}
    nlp.initialize(lambda: unannotated_examples(nlp, docs))
    calib = calib_of(nlp, normalize=True)
    calib.fit(categorized(nlp, docs))
    doc = nlp("an actor")
    assert sum(doc._.calib_cats.values()) == pytest.approx(1)
    assert set(doc._.calib_cats) <= {"film", "other"}


@pytest.mark.parametrize(
    ("cats", "sentence"),
    [({}, "has no category 'film'; run the component 'textcat'"), ({"film": 0.5, "music": 0.5}, "has no category 'food'")],
)
def test_docs_that_the_component_has_not_read_have_no_scores(nlp, cats, sentence):
    calib = calib_of(nlp)
    (example,) = unannotated_examples(nlp, category_docs(1, 1, vocab=nlp.vocab))
    example.predicted.cats = cats
    assert sentence in calib.source.missing(nlp.get_pipe("textcat"), [example.predicted])[0]
    with pytest.raises(CalibError, match=f"C032.*{sentence}"):
        calib.fit([example])


@pytest.mark.parametrize("value", [np.nan, 1.5, -0.25, "x" * 100, "0.5", None, [0.5, 0.5], {}])
def test_values_that_are_no_probabilities_are_refused_in_one_sentence(nlp, value):
    """What another component wrote over the category between the categorizer and the pipe."""
    doc = nlp("a song")
    doc.cats["music"] = value
    with pytest.raises(CalibError, match=r"C262.*'textcat'.*music = .* on the Doc that begins 'a song'.*\[0, 1\]") as refused:
        TextcatSource().read(nlp.get_pipe("textcat"), [doc])
    assert repr(value)[:25] in str(refused.value)
    assert repr(value)[:41] not in str(refused.value) or len(repr(value)) <= 40


@pytest.mark.parametrize("setting", [{"scaling": {"@calib_scalings": "spacy-calib.MatrixScaling.v1"}}, {"normalize": True}])
def test_what_is_about_one_right_label_is_refused_for_several(setting):
    nlp = revive_categorizer("textcat_multilabel")
    examples = categorized(nlp, category_docs(20, 36, several=True, vocab=nlp.vocab))
    (name,) = setting
    with pytest.raises(CalibError, match=says("C072", setting=name, unit="document", layer="cats:multi")):
        calib_of(nlp, "textcat_multilabel", **setting).fit(examples)
