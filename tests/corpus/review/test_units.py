"""Tokens, sentences and entities as units of review."""

import numpy as np
import pytest

from spacy_calib.corpus.doubt import DOUBTS, doubts
from spacy_calib.corpus.review.units import UNIT_KINDS, unit_doubts, units_of
from spacy_calib.errors import CalibError
from tests.corpora import corpus_of
from tests.corpus.review.corpora import DOCS, small


def test_tokens_are_the_counted_ones():
    units = units_of(small(), "token")
    assert units.firsts.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert (units.lasts - units.firsts == 1).all()
    assert units.right.tolist() == [1, 0, 1, -1, 1, 0, 1]


def test_a_sentence_is_right_if_all_of_it_is():
    units = units_of(small(), "sentence")
    assert units.firsts.tolist() == [0, 3, 5]
    assert units.lasts.tolist() == [3, 5, 8]
    np.testing.assert_allclose(units.calibrated, [0.9 * 0.6 * 0.8, 0.5, 0.95 * 0.3 * 0.7])
    np.testing.assert_allclose(units.raw, units.calibrated**2)
    assert units.right.tolist() == [0, -1, 0]


def test_a_sentence_of_known_and_unknown_tokens_is_unknown_unless_one_is_wrong():
    from tests.corpus.review.corpora import with_gold

    corpus = with_gold(corpus_of(DOCS), [1, -1, 1, -1, 1, 1, 0, -1], ())
    assert units_of(corpus, "sentence").right.tolist() == [-1, 1, 0]


def test_entities_stand_at_their_tokens():
    units = units_of(small(), "entity")
    assert list(zip(units.firsts.tolist(), units.lasts.tolist(), strict=True)) == [(5, 6), (1, 3)]
    assert units.calibrated.tolist() == [0.8, 0.4]
    assert units.right.tolist() == [1, 0]


def test_doubt_of_a_sentence_is_that_of_an_error_in_it_or_of_its_worst_token():
    corpus = small()
    units = units_of(corpus, "sentence")
    np.testing.assert_allclose(unit_doubts(corpus, units, "calibrated"), 1 - units.calibrated)
    of_tokens = doubts(corpus, "margin")
    assert unit_doubts(corpus, units, "margin").tolist() == [of_tokens[1], of_tokens[4], of_tokens[6]]


def test_doubt_of_an_entity_is_that_of_its_own_score_or_its_worst_token():
    corpus = small()
    units = units_of(corpus, "entity")
    np.testing.assert_allclose(unit_doubts(corpus, units, "calibrated"), [0.2, 0.6])
    np.testing.assert_allclose(unit_doubts(corpus, units, "raw"), [1 - 0.64, 1 - 0.16])
    assert unit_doubts(corpus, units, "entropy").tolist() == [doubts(corpus, "entropy")[5], doubts(corpus, "entropy")[1]]


@pytest.mark.parametrize("kind", UNIT_KINDS)
@pytest.mark.parametrize("by", DOUBTS)
def test_every_unit_has_a_doubt_by_every_signal(kind, by):
    corpus = small()
    units = units_of(corpus, kind)
    assert np.isfinite(unit_doubts(corpus, units, by)).all()


@pytest.mark.parametrize("kind", UNIT_KINDS)
def test_nothing_to_rank(kind):
    corpus = corpus_of([[[("x", "", {"A": 0.5})]]])
    units = units_of(corpus, kind)
    assert len(units) == 0
    assert all(len(unit_doubts(corpus, units, by)) == 0 for by in DOUBTS)


def test_an_unknown_kind_is_refused():
    with pytest.raises(CalibError, match="unit must be one of token, sentence, entity"):
        units_of(small(), "paragraph")
