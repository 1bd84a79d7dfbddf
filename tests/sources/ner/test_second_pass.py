"""Decoding with the model of spaCy's own recognizer, beside what it did, without touching the Docs."""

from typing import Any

import numpy as np
import pytest
from spacy.lang.en.tokenizer_exceptions import TOKENIZER_EXCEPTIONS

from spacy_calib.sources.ner.source import decode_docs, search_beam
from spacy_calib.sources.transitions import clear_copy
from tests.sources.ner import (
    PRESETS,
    TEXTS,
    docs_of,
    entity_keys,
    entity_tokens,
    gold_examples,
    keys_of,
    path_probabilities,
    random_drafts,
    recognize,
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


@pytest.mark.parametrize("presets", PRESETS)
def test_docs_are_not_touched(presets):
    ner, _ = twins()
    docs = [doc for doc in docs_of(random_drafts(20, 31, presets), ner.vocab) if len(doc)]
    before = [doc.to_bytes() for doc in docs]
    readings = decode_docs(ner, docs)
    decode_docs(ner, docs, ignore_entities=True)
    if presets != "wild":
        search_beam(ner, docs, readings, 2, 0.0)
    assert [doc.to_bytes() for doc in docs] == before


def test_second_pass_sees_what_the_first_saw():
    """Over Docs that hold the recognizer's own entities: the same probabilities as before it ran."""
    ner, _ = twins()
    docs = [doc for doc in docs_of(random_drafts(40, 32), ner.vocab) if len(doc)]
    before = decode_docs(ner, docs)
    recognize(ner, docs)
    assert any(doc.ents for doc in docs)
    for first, second, doc in zip(before, decode_docs(ner, docs, ignore_entities=True), docs, strict=True):
        assert second.type_marginals() == pytest.approx(first.type_marginals(), abs=1e-6)
        assert [(start, end) for start, end, _ in keys_of(second.entities)] == [(e.start, e.end) for e in doc.ents]
        assert not second.preset.tokens.any()


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


def test_listener_reads_the_same_vectors():
    nlp = trained_once(listener=True)
    ner = nlp.get_pipe("ner")
    examples = gold_examples(nlp, 12, 3)
    docs = [*nlp.pipe([eg.predicted for eg in examples]), *(nlp(text) for text in TEXTS if text)]
    greedy = decode_docs(ner, docs, ignore_entities=True)
    for doc, reading in zip(docs, greedy, strict=True):
        assert [(s, e, reading.types[kind]) for s, e, kind in keys_of(reading.entities)] == entity_keys(doc)
    beams: list[Any] = search_beam(ner, docs, greedy, 1, 0.0)
    for doc, reading in zip(docs, beams, strict=True):
        assert {key[:2] for key in keys_of(reading.all_entities)} >= {key[:2] for key in entity_keys(doc)}
