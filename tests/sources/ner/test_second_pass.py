"""Decoding with the model of spaCy's own recognizer, beside what it did."""

from typing import Any

import numpy as np
import pytest
from spacy.lang.en.tokenizer_exceptions import TOKENIZER_EXCEPTIONS

from spacy_calib.sources.ner.source import decode_docs, search_beam
from spacy_calib.sources.transitions import clear_copy
from tests.sources.ner import (
    docs_of,
    entity_tokens,
    keys_of,
    path_probabilities,
    random_drafts,
    trained,
    trained_once,
    twins,
)

CONTRACTIONS = "I can't see Ann , don't ya think ? She's gonna visit Bob Lee in Lima 'cause y'all've seen Rome"


@pytest.fixture(scope="module")
def english() -> Any:
    """The trained pipeline, with a tokenizer that knows English contractions."""
    nlp = trained()
    nlp.tokenizer.rules = TOKENIZER_EXCEPTIONS
    return nlp


def test_clear_copy_holds_what_the_model_reads():
    nlp = trained_once(listener=True)
    doc = nlp(CONTRACTIONS)
    doc[0].is_sent_start, doc[6].is_sent_start, doc[7].is_sent_start = True, True, False
    copy = clear_copy(doc)
    assert copy.text == doc.text
    assert [token.text for token in copy] == [token.text for token in doc]
    starts = [doc.to_array(["SENT_START"]).tolist(), copy.to_array(["SENT_START"]).tolist()]
    assert starts[0] == starts[1]
    assert np.array_equal(copy.tensor, doc.tensor)
    assert not copy.has_annotation("ENT_IOB")
    assert copy.vocab is doc.vocab
    before = entity_tokens([doc])
    copy.set_ents([])
    assert doc.ents
    assert entity_tokens([doc]) == before


def test_clear_copy_keeps_the_norms_of_tokens(english):
    """The tokenizer's exceptions set them ("n't" is "not"), and spaCy's embedding layers read them."""
    doc = english.make_doc(CONTRACTIONS)
    norms = [token.norm_ for token in doc]
    assert norms != [token.lower_ for token in doc]
    assert [token.norm_ for token in clear_copy(doc)] == norms


def test_beam_of_contractions(english):
    """The beam search sees the words as the recognizer does: the same probabilities as spaCy's `beam_parse` on the Doc."""
    ner = english.get_pipe("ner")
    doc = english.make_doc(CONTRACTIONS)
    (wanted,) = ner.scored_ents(ner.beam_parse([doc], beam_width=8, beam_density=0.0))
    (reading,) = search_beam(ner, [doc], decode_docs(ner, [doc]), 8, 0.0)
    found = path_probabilities(reading)
    assert {key: found.get(key) for key in wanted} == pytest.approx(dict(wanted), abs=1e-6)


@pytest.mark.parametrize("presets", ["none", "whole"])
@pytest.mark.parametrize("density", [0.0, 0.1])
def test_beam_probabilities_are_those_of_scored_ents(presets, density):
    ner, _ = twins()
    drafts = random_drafts(12, 33, presets, longest=8)
    docs = docs_of(drafts, ner.vocab)
    held = [doc for doc in docs_of(drafts, ner.vocab) if len(doc)]
    scored = iter(ner.scored_ents(ner.beam_parse(held, beam_width=6, drop=0.0, beam_density=density)))
    greedy = decode_docs(ner, docs)
    n_candidates = 0
    for doc, first, reading in zip(docs, greedy, search_beam(ner, docs, greedy, 6, density), strict=True):
        if not len(doc):
            assert reading is first
            continue
        wanted = {key: p for key, p in next(scored).items() if p > 1e-9 and key[2]}  # a blocked token is an entity without type
        found = {key: p for key, p in path_probabilities(reading).items() if p > 1e-9}
        assert found == pytest.approx(wanted, abs=1e-6)
        assert keys_of(reading.entities) == keys_of(first.entities)
        assert not set(keys_of(reading.candidates)) & set(keys_of(reading.entities))
        n_candidates += len(reading.candidates)
        for marginals in (reading.type_marginals(), reading.biluo_marginals()):
            assert ((marginals >= 0) & (marginals <= 1)).all()
            assert marginals.sum(axis=1) == pytest.approx(np.ones(len(doc)), abs=1e-6)
    assert n_candidates > 10 or density > 0
