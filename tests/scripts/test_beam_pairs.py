"""Pairs of entity types by a beam's own parses, counted here parse by parse."""

from __future__ import annotations

import numpy as np
import pytest
from beam_pairs import beam_marginals, beam_pairs
from spacy.training import Example

from spacy_calib.sources.copies import clear_copy
from spacy_calib.sources.ner.source import NerSource
from tests.cli.conftest import bare_docs, entity_docs, revive_recognizer

WIDTH = 4


@pytest.fixture(scope="module")
def given():
    """(recognizer, examples whose predicted Docs the tok2vec has read and which know their sentences)."""
    nlp = revive_recognizer("ner")
    gold = entity_docs(8, 5, nlp.vocab)
    with nlp.select_pipes(enable=["tok2vec"]):
        docs = list(nlp.pipe(bare_docs(nlp, gold)))
    for doc, reference in zip(docs, gold, strict=True):
        for token in reference[1:]:
            doc[token.i].is_sent_start = token.is_sent_start
    return nlp.get_pipe("ner"), [Example(doc, reference) for doc, reference in zip(docs, gold, strict=True)]


def parses_of(recognizer, doc, names) -> list[tuple[float, list[str]]]:
    (beam,) = recognizer.beam_parse([clear_copy(doc)], beam_width=WIDTH, drop=0.0, beam_density=0.0)
    found = []
    for mass, entities in recognizer.moves.get_beam_parses(beam):
        types = ["O"] * len(doc)
        for start, end, label in entities:
            types[start:end] = [label] * (end - start)
        found.append((mass, types))
    return found


def test_shares_of_one_token_are_those_of_the_source(given):
    recognizer, examples = given
    docs = [example.predicted for example in examples]
    single, double = beam_marginals(recognizer, docs, WIDTH)
    dense = np.zeros((single.n_tokens, 1 + len(recognizer.labels)))
    dense[single.rows, single.tags] = single.scores
    assert dense == pytest.approx(NerSource("ner", beam_width=WIDTH).read(recognizer, docs).probabilities, abs=1e-6)
    assert double.n_tokens == single.n_tokens - 1


def test_the_joint_sums_to_the_shares_of_its_tokens(given):
    recognizer, examples = given
    docs = [example.predicted for example in examples]
    single, double = beam_marginals(recognizer, docs, WIDTH)
    n_tags = 1 + len(recognizer.labels)
    marginals, joint = np.zeros((single.n_tokens, n_tags)), np.zeros((double.n_tokens, n_tags**2))
    marginals[single.rows, single.tags] = single.scores
    joint[double.rows, double.tags] = double.scores
    joint = joint.reshape(-1, n_tags, n_tags)
    inside = np.ones(double.n_tokens, dtype=bool)
    inside[np.cumsum([len(doc) for doc in docs])[:-1] - 1] = False
    assert joint[inside].sum(axis=2) == pytest.approx(marginals[:-1][inside])
    assert joint[inside].sum(axis=1) == pytest.approx(marginals[1:][inside])
    assert not joint[~inside].any()


def test_pairs_are_counted_parse_by_parse(given):
    recognizer, examples = given
    found = beam_pairs(recognizer, [examples[:3], examples[3:]], WIDTH, threshold=0.05)
    expected = []
    for example in examples:
        parses = parses_of(recognizer, example.predicted, found.names)
        total = sum(mass for mass, _ in parses)
        gold = [token.ent_type_ or "O" for token in example.reference]
        for i in range(len(gold) - 1):
            shares = {}
            for mass, types in parses:
                key = (types[i], types[i + 1])
                shares[key] = shares.get(key, 0.0) + mass / total
            if not example.reference[i + 1].is_sent_start:
                codes = {found.names.index(one) * len(found.names) + found.names.index(two): (one, two) for one, two in shares}
                expected += [
                    (code, shares[codes[code]], codes[code] == (gold[i], gold[i + 1]))
                    for code in sorted(codes)
                    if shares[codes[code]] >= 0.05
                ]
    assert found.joint.tags.tolist() == [code for code, _, _ in expected]
    assert found.joint.scores == pytest.approx([share for _, share, _ in expected])
    assert found.joint.hits.tolist() == [right for _, _, right in expected]
    n_tokens = sum(len(example.reference) for example in examples)
    assert found.singles.n_units == n_tokens
    assert found.joint.n_units == found.products.n_units == n_tokens - 2 * len(examples)
    # Inside of an entity the second type goes with the first: the product says less than the two together.
    same = [i * len(found.names) + i for i in range(1, len(found.names))]
    by_joint, by_product = (pairs.scores[np.isin(pairs.tags, same)] for pairs in (found.joint, found.products))
    assert len(by_joint) > 5
    assert by_joint.sum() > by_product.sum()
