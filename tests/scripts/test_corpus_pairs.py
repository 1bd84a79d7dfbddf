"""Pairs of tags of scored documents, against the attributes of their tokens."""

from __future__ import annotations

import numpy as np
import pytest
from spacy.tokens import Doc
from spacy.training import Example
from study_tag_pairs import corpus_pairs, places_of

from spacy_calib.doc.annotations import get_annotation
from spacy_calib.doc.collect import scored_corpus
from spacy_calib.errors import CalibError
from tests.conftest import gold_doc, made_up_sentences


def gold_of_two(vocab, seed: int) -> Doc:
    """A gold Doc of two sentences."""
    return Doc.from_docs([gold_doc(vocab, sentence) for sentence in made_up_sentences(2, seed)])


@pytest.fixture
def examples(fitted) -> list[Example]:
    """30 Docs of two sentences as the tagger sees them; the first one lacks the gold tag of its second token."""
    made = []
    with fitted.select_pipes(disable=["senter"]):
        for seed in range(30):
            gold = gold_of_two(fitted.vocab, seed)
            if not seed:
                gold[1].tag_ = ""
            made.append(Example(fitted(Doc(fitted.vocab, words=[token.text for token in gold])), gold))
    return made


def expected_pairs(examples: list[Example], threshold: float) -> list[tuple]:
    """(text of the two tags, raw product, calibrated product, both right), token by token."""
    found = []
    for example in examples:
        view = example.predicted._.calib
        of_token = [[] for _ in example.predicted]
        for row, tag, raw, calibrated in zip(view.rows, view.tags, view.raw, view.calibrated, strict=True):
            of_token[row].append((tag, raw, calibrated))
        gold = example.reference
        for i in range(len(gold) - 1):
            if gold[i + 1].is_sent_start or not gold[i].tag_ or not gold[i + 1].tag_:
                continue
            for one, raw_one, calibrated_one in of_token[i]:
                for two, raw_two, calibrated_two in of_token[i + 1]:
                    if raw_one * raw_two >= threshold:
                        right = (one, two) == (gold[i].tag_, gold[i + 1].tag_)
                        found.append((f"{one} {two}", raw_one * raw_two, calibrated_one * calibrated_two, right))
    return found


@pytest.mark.parametrize("threshold", [0.01, 0.05])
def test_pairs_are_those_of_neighbours_in_a_sentence(fitted, examples, threshold):
    pipe = fitted.get_pipe("calib")
    corpus = scored_corpus(examples, "calib", get_annotation("tag"), pipe.lookup.labels())
    found = corpus_pairs(corpus, threshold)
    pairs, n = found.pairs, len(corpus.names)
    names = [f"{corpus.names[code // n]} {corpus.names[code % n]}" for code in pairs.tags.tolist()]
    calibrated = found.of(corpus.pairs().calibrated)
    expected = expected_pairs(examples, threshold)
    assert len(expected) > 10
    assert list(zip(names, pairs.scores, calibrated, pairs.hits, strict=True)) == expected
    # Five or so tokens a sentence: a place less than tokens in each, and two less where a gold tag is missing.
    n_tokens = sum(len(example.reference) for example in examples)
    assert pairs.n_units == n_tokens - 2 * len(examples) - 2
    assert np.array_equal(np.flatnonzero(~places_of(corpus))[:1], [0])


def test_no_gold_is_refused(fitted, examples):
    bare = [Example(one.predicted, Doc(fitted.vocab, words=[token.text for token in one.predicted])) for one in examples[:2]]
    corpus = scored_corpus(bare, "calib", get_annotation("tag"), fitted.get_pipe("calib").lookup.labels())
    with pytest.raises(CalibError, match=r"No two consecutive tokens .* at least 0.01; give annotated documents"):
        corpus_pairs(corpus)
    with pytest.raises(CalibError, match="No two"):
        corpus_pairs(scored_corpus([], "calib", get_annotation("tag")))
