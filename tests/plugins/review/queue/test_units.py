import numpy as np
import pytest

from spacy_calib.pairs.keyed import digest
from spacy_calib.plugins.review.queue.orders import ORDERS, token_doubts, unit_doubts
from spacy_calib.plugins.review.queue.units import KINDS, find_labelled, unit_keys, units_of
from tests.made import SMALL_CORPUS, corpus_of
from tests.plugins.review.queue.corpora import DOCS, small, with_gold


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
    of_tokens = token_doubts(corpus, "margin")
    assert unit_doubts(corpus, units, "margin").tolist() == [of_tokens[1], of_tokens[4], of_tokens[6]]


def test_doubt_of_an_entity_is_that_of_its_own_score_or_its_worst_token():
    corpus = small()
    units = units_of(corpus, "entity")
    np.testing.assert_allclose(unit_doubts(corpus, units, "calibrated"), [0.2, 0.6])
    np.testing.assert_allclose(unit_doubts(corpus, units, "raw"), [1 - 0.64, 1 - 0.16])
    assert unit_doubts(corpus, units, "margin").tolist() == token_doubts(corpus, "margin")[[5, 1]].tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ORDERS)
def test_every_unit_has_a_doubt_by_every_signal(kind, by):
    corpus = small()
    units = units_of(corpus, kind)
    assert np.isfinite(unit_doubts(corpus, units, by)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_rank(kind):
    corpus = corpus_of([[[("x", "", {"A": 0.5})]]])
    units = units_of(corpus, kind)
    assert units.sums(np.zeros(1)).shape == units.maxima(np.zeros(1)).shape == units.counts(np.zeros(1)).shape == (0,)
    assert all(len(unit_doubts(corpus, units, by)) == 0 for by in ORDERS)


def test_sentences_and_documents_with_a_score():
    corpus = corpus_of(SMALL_CORPUS)
    units = units_of(corpus, "sentence")
    assert (units.firsts.tolist(), units.lasts.tolist()) == ([0, 2, 3], [2, 3, 7])
    assert units.counts(corpus.lengths).tolist() == [2, 1, 3]
    assert units.counts(corpus.is_counted).tolist() == [2, 1, 2]
    units = units_of(corpus, "document")
    assert (units.firsts.tolist(), units.lasts.tolist(), units.labels.tolist()) == ([0, 3], [3, 8], [-1, -1])
    np.testing.assert_allclose(units.calibrated, [0.9 * 0.6 * 0.75, 0.6 * 0.6])
    assert units_of(corpus_of([*SMALL_CORPUS, []]), "document").firsts.tolist() == [0, 3]


def test_sums_and_maxima_count_nan_as_nothing():
    units = units_of(corpus_of(SMALL_CORPUS), "sentence")
    values = np.array([1.0, np.nan, 3, 4, np.nan, 5, np.nan, np.nan])
    assert units.sums(values).tolist() == [1, 3, 9]
    assert units.maxima(values).tolist() == [1, 3, 5]
    assert units.maxima(np.full(8, np.nan)).tolist() == [-np.inf] * 3
    # They overlap, and end at different places.
    entities = units_of(corpus_of(SMALL_CORPUS, [(0, 1, 3, "B", 0.3), (0, 0, 2, "B", 0.5)]), "entity")
    assert entities.sums(values).tolist() == [3, 1]


TALK = [("Fish", "N", {"N": 0.6}), ("swim", "V", {"V": 0.8}), (".", "P", {"P": 0.9})]
OTHER = [("Fish", "N", {"N": 0.7}), ("fly", "V", {"V": 0.8}), (".", "P", {"P": 0.9})]
TWICE = corpus_of([[TALK, OTHER], [TALK]], [(0, 0, 1, "B", 0.5), (1, 0, 1, "B", 0.4), (0, 3, 4, "B", 0.3)])


def test_a_text_has_one_key_wherever_it_stands():
    keys = unit_keys(TWICE, units_of(TWICE, "sentence"))
    assert keys.tolist() == [digest("Fish swim ."), digest("Fish fly ."), digest("Fish swim .")]


def test_a_token_or_entity_is_where_the_same_place_of_the_same_sentence_is():
    keys = unit_keys(TWICE, units_of(TWICE, "token"))
    assert len(set(keys.tolist())) == 6
    assert keys[:3].tolist() == keys[6:].tolist()
    first, second, again = unit_keys(TWICE, units_of(TWICE, "entity"))
    assert (first == second, first == again) == (True, False)  # "Fish" of another sentence is another case


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_a_labelled_sentence_is_labelled(kind):
    units = units_of(TWICE, kind)
    found = find_labelled(TWICE, units, unit_keys(TWICE, units), np.array([digest("Fish fly .")], dtype=np.uint64))
    in_sentence = (units.firsts >= 3) & (units.lasts <= 6)
    assert found.tolist() == in_sentence.tolist()
    assert found.any() == (kind != "document")
