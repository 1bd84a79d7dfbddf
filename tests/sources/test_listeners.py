"""Heads that read doc.tensor or transformer data: whether it is there, and still what their embedding component wrote."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc
from thinc.api import Model

from spacy_calib.errors import CalibError
from spacy_calib.sources.source import overwriting_pipe, reasons_not_to_run
from tests.sources.ner import TEXTS, TOK2VEC, add_calib, entity_tokens, fit_on, gold_examples, trained, trained_once

WORDS = "she saw Ann Lee ."


def embedded(nlp: Any, text: str = WORDS) -> Doc:
    return nlp.get_pipe("tok2vec")(nlp.make_doc(text))


def test_missing_token_vectors():
    """Each Doc by itself; a shape that is not (tokens, width) is somebody else's."""
    nlp = trained("ner", listener=True)
    pipe = nlp.get_pipe("ner")
    docs = [embedded(nlp), nlp.make_doc(WORDS), embedded(nlp), embedded(nlp), embedded(nlp, "she"), embedded(nlp)]
    docs[2].tensor = docs[2].tensor[:, :8]
    docs[3].tensor = docs[3].tensor[:3]
    docs[5].tensor = np.zeros(5, dtype="f")
    why = reasons_not_to_run(pipe, docs)
    assert [bool(one) for one in why] == [False, True, True, True, False, True]
    assert why[1] == "doc.tensor does not hold the token vectors; run the tok2vec component on the Doc first"
    assert reasons_not_to_run(pipe, []) == []


def test_component_with_its_own_embedding_misses_nothing():
    nlp = trained("ner")
    assert reasons_not_to_run(nlp.get_pipe("ner"), [nlp.make_doc(WORDS), nlp.make_doc("")]) == ["", ""]


@pytest.mark.parametrize(
    "name",
    ["transformer-listener", "transformer_layers_listener", "last_transformer_layer_listener", "scalar_weighting_listener"],
)
def test_missing_transformer_data(name):
    """By the name of the node, so that spacy-transformers need not be installed."""
    pipe = SimpleNamespace(model=Model(name, lambda model, X, is_train: (X, lambda dY: dY)))
    docs: list[Any] = [SimpleNamespace(_=SimpleNamespace(trf_data=data)) for data in (None, object())]
    assert reasons_not_to_run(pipe, docs) == ["doc._.trf_data is None; run the transformer on the Doc first", ""]


def test_scores_are_none_where_the_vectors_are_gone():
    nlp = trained("ner", listener=True)
    fit_on(nlp, calib := add_calib(nlp))
    whole, bare = nlp(WORDS), nlp(WORDS)
    bare = Doc(nlp.vocab).from_bytes(bare.to_bytes(exclude=["tensor", "user_data"]))
    assert bare.ents
    docs = [whole, bare, nlp("")]
    with pytest.warns(UserWarning, match="CW02.*doc.tensor does not hold the token vectors"):
        calib.set_annotations(docs, calib.predict(docs))
    assert all(token._.calib_score is None for token in bare)
    assert bare.ents[0]._.calib_score is None
    assert all(token._.calib_score is not None for token in whole)


def test_inline_recognizer_needs_no_vectors_afterwards():
    """It read them when it ran: nothing is run again."""
    nlp = trained("calib_ner", listener=True)
    fit_on(nlp, calib := add_calib(nlp))
    doc = nlp.get_pipe("ner")(embedded(nlp))
    wanted = [token._.calib_score for token in nlp(WORDS)]
    doc.tensor = np.zeros((0,), dtype="f")
    assert [token._.calib_score for token in calib(doc)] == pytest.approx(wanted)


def with_second_embedding(factory: str, **where: str) -> Any:
    """Two embedding components of the same width; the recognizer listens to the first."""
    nlp = trained(factory, listener=True)
    fit_on(nlp, add_calib(nlp))
    nlp.add_pipe("tok2vec", name="second", config={"model": TOK2VEC}, **where)
    nlp.get_pipe("second").initialize(lambda: gold_examples(nlp, 2, 0), nlp=nlp)
    return nlp


def test_second_embedding_between_the_head_and_the_pipe():
    nlp = with_second_embedding("ner", after="ner")
    pipe, calib = nlp.get_pipe("ner"), nlp.get_pipe("calib")
    assert overwriting_pipe(nlp, "calib", pipe) == "'second' stands between 'ner' and it and overwrites the token vectors"
    with pytest.warns(UserWarning, match="CW02.*'second' stands between"):
        doc = nlp(WORDS)
    assert doc.ents
    assert [token._.calib_score for token in doc] == [None] * 5
    with pytest.raises(CalibError, match="C034.*'ner'.*'second' stands between"):
        calib.fit(gold_examples(nlp, 4, 1))


def test_second_embedding_does_not_harm_the_inline_recognizer():
    nlp = with_second_embedding("calib_ner", after="ner")
    wanted = trained_once("ner", listener=True)
    for text in TEXTS:
        doc = nlp(text)
        assert entity_tokens([doc]) == entity_tokens([wanted(text)])
        assert all(token._.calib_score is not None for token in doc)


def test_second_embedding_behind_the_pipe_is_no_obstacle():
    nlp = with_second_embedding("ner", after="calib")
    assert overwriting_pipe(nlp, "calib", nlp.get_pipe("ner")) == ""
    assert all(token._.calib_score is not None for token in nlp(WORDS))


def test_order_that_is_not_known_is_no_obstacle():
    """The pipe is not in the pipeline, or its component is not; and a head of its own embedding has nothing to lose."""
    nlp = trained("ner", listener=True)
    other = trained_once("ner", listener=True).get_pipe("ner")
    add_calib(nlp)
    assert overwriting_pipe(nlp, "nobody", nlp.get_pipe("ner")) == ""
    assert overwriting_pipe(nlp, "calib", None) == ""
    assert overwriting_pipe(nlp, "calib", other) == ""
    alone = trained("ner")
    add_calib(alone)
    alone.add_pipe("tok2vec", after="ner", config={"model": TOK2VEC})
    assert overwriting_pipe(alone, "calib", alone.get_pipe("ner")) == ""
