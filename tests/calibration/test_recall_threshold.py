"""Cut-offs that bound what is missed: values by hand, plain versions to compare with, and simulations with known truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from spacy_calib.calibration.recall_threshold import (
    design_effects,
    effective_size,
    find_recall_threshold,
    miss_p_values,
)
from spacy_calib.errors import CalibError
from tests import strategies


def find(scores, recall, confidence=0.95, documents=None) -> float | None:
    scores = np.asarray(scores, dtype=np.float64)
    return find_recall_threshold(
        scores, np.arange(len(scores)) if documents is None else np.asarray(documents), recall, confidence
    )


def rising(n) -> np.ndarray:
    """n different scores, lowest first."""
    return np.linspace(0.001, 0.999, n)


@given(st.integers(1, 20), st.integers(0, 20), st.sampled_from([0.05, 0.2, 0.5]))
def test_chance_is_that_of_drawing_the_first_one_too_many(n, missed, share):
    """Of 2 n units in order, n are seen and n are new, at random. More new ones than allowed lie below the cut-off if the first new one too many
    does: if there are no more than `missed` seen ones below it.
    """
    missed = min(missed, n - 1)
    too_many = math.floor(share * n + 1e-9) + 1
    # k seen ones before the r-th new one: the r-th new is at place k + r.
    before = sum(
        hypergeom(2 * n, n, k + too_many - 1).pmf(too_many - 1) * (n - too_many + 1) / (2 * n - k - too_many + 1)
        for k in range(missed + 1)
    )
    expected = before if too_many <= n else 0.0
    assert miss_p_values(np.array([missed]), n, np.ones(1), share)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("n", "found"), [(5, False), (6, True)])
def test_as_many_units_as_the_first_step_needs(n, found):
    # Half may be missed, none is. More than half of n new ones lie below all n seen ones: of 10 units the first three, with a chance of
    # 7 C 5 / 10 C 5 = 21 / 252 = .083; of 12 the first four: 8 C 6 / 12 C 6 = 28 / 924 = .030.
    assert find(rising(n), 0.5, 0.95) == (rising(n)[0] if found else None)


def test_the_highest_cut_off_that_is_sure():
    n = 2000
    missed = np.count_nonzero(rising(n) < find(rising(n), 0.95))
    at, beyond = (miss_p_values(np.array([k]), n, np.ones(1), 0.05)[0] for k in (missed, missed + 1))
    assert at <= 0.05 < beyond
    # Seen must be better than asked for by what both samples may differ: 1.645 sqrt(2 * .05 * .95 / 2000) = .0113.
    assert 1 - missed / n == pytest.approx(0.9613, abs=0.001)


def test_equal_scores_are_found_or_missed_together():
    scores = np.repeat([0.1, 0.5, 0.9], [10, 30, 960])
    assert find(scores, 0.95) == 0.5
    for seed in range(3):
        assert find(np.random.default_rng(seed).permutation(scores), 0.95) == 0.5
    assert find(np.full(500, 0.7), 0.95) == 0.7


def test_what_cannot_be_sure():
    assert find([], 0.9) is None
    assert find([0.4], 0.9) is None
    assert find(rising(500), 0.95, documents=np.zeros(500, dtype=int)) is None


@given(strategies.scored_hits_with_order(max_size=60), st.integers(2, 20), st.sampled_from([0.5, 0.7]))
def test_neither_the_order_nor_the_names_of_documents_matter(given_, n_documents, recall):
    scores, _, order = given_
    documents = np.arange(len(scores)) % n_documents
    expected = find(scores, recall, 0.6, documents)
    ties = len(np.unique(scores)) < len(scores)
    again = find(scores[order], recall, 0.6, documents[order])
    assert ties or again == expected
    assert find(scores, recall, 0.6, 1000 - 7 * documents) == expected


@given(strategies.scored_hits(max_size=60))
def test_more_recall_or_confidence_never_misses_more(given_):
    scores, _ = given_
    found = [-(find(scores, recall, 0.7) or 0.0) for recall in (0.5, 0.7, 0.9)]
    assert found == sorted(found)
    found = [-(find(scores, 0.6, confidence) or 0.0) for confidence in (0.5, 0.8, 0.95)]
    assert found == sorted(found)


@pytest.mark.parametrize("name", ["recall", "confidence"])
@pytest.mark.parametrize("value", [0, 1, -0.5, 95, math.nan])
def test_numbers_out_of_range_are_refused(name, value):
    with pytest.raises(CalibError, match=rf"\[C001\] {name} must be a number between 0 and 1"):
        find([0.5], **{"recall": 0.9, name: value})


def test_unequal_lengths_are_refused():
    with pytest.raises(CalibError, match=r"\[C002\] A threshold needs one score for every document, but got 2 and 3"):
        find([0.5, 0.6], 0.9, documents=[1, 2, 3])


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40))
def test_design_effects_by_the_direct_formula(listed):
    documents = np.array(listed)
    n, distinct = len(documents), sorted(set(listed))
    effects = design_effects(documents)
    for i in range(n + 1):
        share, expected = i / n, 1.0
        if len(distinct) == 1:
            expected = n
        elif 0 < i < n and len(distinct) < n:
            parts = [((documents[:i] == d).sum(), (documents == d).sum()) for d in distinct]
            residual = sum((k - share * size) ** 2 for k, size in parts) * len(distinct) / (len(distinct) - 1)
            expected = max(1.0, residual / (n * share * (1 - share)))
        assert effects[i] == pytest.approx(expected)


def test_documents_that_are_missed_as_wholes_need_more_data():
    # Every document of ten tokens has one score: 200 tokens are worth 20 and a little more, from which no recall of .95 can be told.
    scores = np.repeat(rising(20), 10)
    documents = np.repeat(np.arange(20), 10)
    assert find(scores, 0.95, documents=documents) is None
    assert find(scores, 0.95) is not None
    # Though nothing is missed at the lowest cut-off, which shows no effect of documents.
    assert design_effects(documents)[0] == 1.0


def test_effective_size_by_hand():
    # Two documents of two, one flagged and one not: share 1/2, residuals (1 + 1) * 2 / 1 = 4, independent 4 / 4 = 1: 4 are worth 1.
    assert effective_size(np.array([2, 2]), np.array([2, 0])) == 1.0
    assert effective_size(np.array([2, 0, 2]), np.array([1, 0, 1])) == 4.0
    assert effective_size(np.zeros(0, int), np.zeros(0, int)) == 0.0
    assert effective_size(np.array([3]), np.array([2])) == 1.0
    assert effective_size(np.array([1, 1, 1]), np.array([1, 0, 1])) == 3.0


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=40))
def test_effective_size_is_that_of_the_design_effect(listed):
    documents, found = np.array([one for one, _ in listed]), np.array([hit for _, hit in listed])
    order = np.argsort(~found, kind="stable")
    expected = len(found) / design_effects(documents[order])[found.sum()]
    sizes = np.bincount(documents)
    assert effective_size(sizes, np.bincount(documents[found], minlength=len(sizes))) == expected


# Simulations: a score is uniform, so that the recall of a cut-off c is truly 1 - c. Tokens of an entity, and of a document, share luck.

N_REPETITIONS = 200


def drawn(rng, n_documents, of_document, of_entity):
    from scipy.special import ndtr

    entities = np.repeat(np.arange(n_documents), 1 + rng.poisson(1.5, n_documents))
    tokens = np.repeat(np.arange(len(entities)), 1 + rng.geometric(0.6, len(entities)))
    shared = math.sqrt(of_document) * rng.normal(size=n_documents)[entities] + math.sqrt(of_entity) * rng.normal(
        size=len(entities)
    )
    return ndtr(shared[tokens] + math.sqrt(1 - of_document - of_entity) * rng.normal(size=len(tokens))), entities[tokens]


@pytest.mark.parametrize(("of_document", "of_entity"), [(0.0, 0.0), (0.0, 0.8), (0.4, 0.5)])
def test_as_little_is_missed_elsewhere_as_promised(of_document, of_entity):
    """Truly, and among as many tokens of other documents."""
    rng = np.random.default_rng(1)
    true = elsewhere = found = 0
    for _ in range(N_REPETITIONS):
        cutoff = find_recall_threshold(*drawn(rng, 200, of_document, of_entity), 0.95, 0.9)
        found += cutoff is not None
        true += 1 - (cutoff or 0.0) >= 0.95
        elsewhere += (drawn(rng, 200, of_document, of_entity)[0] >= (cutoff or 0.0)).mean() >= 0.95
    least = binom.ppf(0.001, N_REPETITIONS, 0.9)
    assert found == N_REPETITIONS
    assert true >= elsewhere >= least
