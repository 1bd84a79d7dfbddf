"""Scores of tokens that look at the rest of their Doc, on made-up arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.context.familiarity import Counts, WordCounts, met_elsewhere
from spacy_calib.context.features import Document, Entropy, Familiarity, Neighbours, Shape, Unfamiliar
from spacy_calib.context.fit import Comparison, FitWords, fit_token_context
from spacy_calib.context.surroundings import Entries, Surroundings
from spacy_calib.context.tokens import TokenContext
from spacy_calib.context.words import SHAPES, Words
from spacy_calib.errors import CalibError
from spacy_calib.pairs.keyed import keyed
from spacy_calib.schema import Misfit
from spacy_calib.types import Pairs

EVERY = (Document(), Entropy(), Familiarity(), Neighbours(), Shape(), Unfamiliar())


def words_of(forms: list[list[int]]) -> Words:
    """Docs whose forms are these numbers; a form below 0 is white space."""
    flat = np.array([form for doc in forms for form in doc], dtype=np.int64)
    shapes = {name: np.zeros(len(flat), dtype=bool) for name in SHAPES}
    return Words(
        np.cumsum([0, *map(len, forms)]),
        np.abs(flat).astype(np.uint64),
        (np.abs(flat) % 7).astype(np.uint64),
        shapes,
        flat >= 0,
    )


def made_up(n_docs: int = 60, seed: int = 0) -> tuple[Words, Pairs, np.ndarray]:
    """Docs of 30 tokens with two tags each; in every other Doc the likeliest tag is right far less often than its score says."""
    rng = np.random.default_rng(seed)
    n = 30 * n_docs
    hard = np.repeat(np.arange(n_docs) % 2 == 1, 30)
    top = np.where(hard, rng.uniform(0.5, 0.9, n), rng.uniform(0.7, 0.99, n))
    right = rng.random(n) < sigmoid(log_odds(top) - 1.5 * hard)
    rows = np.repeat(np.arange(n), 2)
    scores = np.column_stack([top, 1 - top]).ravel()
    hits = np.column_stack([right, ~right]).ravel()
    words = words_of([list(rng.integers(1, 40, 30) + 100 * (doc % 2)) for doc in range(n_docs)])
    return words, Pairs(rows, np.tile([0, 1], n), scores, hits, n), np.repeat(np.arange(n_docs), 60)


def fitted(when: str = "always"):
    words, pairs, documents = made_up()
    data = FitWords(words, np.arange(len(words.starts) - 1))
    return fit_token_context(TokenContext(EVERY, when), pairs, Pairs.none(), documents, data), words, pairs


def test_document_means_are_shrunk_towards_those_of_the_fit():
    entries = Entries(np.array([0, 1]), np.array([0.6, 0.8]))
    words = words_of([[1, 2]])
    around = Surroundings(words, entries, WordCounts.of(words).look_up(words), {"confidence": 0.9}, shrinkage=2.0)
    # (.6 + .8 + 2 * .9) / (2 + 2)
    assert around.document_mean(around.confidence, "confidence") == pytest.approx([0.8, 0.8])


def test_entropy_counts_what_the_scores_leave_to_all_other_tags():
    words = words_of([[1]])
    around = Surroundings(words, Entries(np.array([0, 0]), np.array([0.5, 0.25])), WordCounts.of(words).look_up(words))
    # .5 log 2 + 2 * .25 log 4 = 1.5 log 2
    assert around.entropy == pytest.approx([1.5 * np.log(2)])


def test_a_neighbour_is_of_the_same_doc_and_no_white_space():
    words = words_of([[1, 2], [3, -4, 5]])
    entries = Entries(np.arange(5), np.array([0.5, 0.6, 0.7, 0.8, 0.9]))
    around = Surroundings(words, entries, WordCounts.of(words).look_up(words), {"confidence": 0.0})
    assert around.neighbour(around.confidence, -1, "confidence").tolist() == [0.0, 0.5, 0.0, 0.7, 0.0]
    assert around.neighbour(around.confidence, 1, "confidence").tolist() == [0.6, 0.0, 0.0, 0.9, 0.0]


def test_the_rival_is_the_second_likeliest_entry():
    words = words_of([[1, 2]])
    around = Surroundings(
        words, Entries(np.array([0, 0, 0, 1]), np.array([0.1, 0.6, 0.2, 0.9])), WordCounts.of(words).look_up(words)
    )
    assert around.leading == pytest.approx(log_odds(np.array([0.6, 0.9])))
    assert around.rival == pytest.approx(log_odds(np.array([0.2, 1e-4])))


def test_a_document_does_not_make_its_own_words_familiar():
    words = words_of([[1, 1, 2], [1], [2, 2, 2, 3]])
    # Docs 0 and 1 are one document: form 1 is met nowhere else, form 2 three times for it, once for Doc 2, which counts as never.
    met = met_elsewhere(words, np.array([0, 0, 1])[words.docs])
    assert met.forms.tolist() == [0, 0, 3, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("salt", ["", "a salt"])
def test_the_most_frequent_forms_are_kept_and_what_was_met_twice_is_not(salt):
    counts = Counts.of(np.repeat([5, 3, 9, 1], [2, 3, 4, 3]).astype(np.uint64))
    asked = np.array([1, 3, 5, 9], dtype=np.uint64)
    assert counts.frequent().salted(salt).look_up(keyed(asked, salt)).tolist() == [3, 3, 0, 4]
    assert counts.frequent(2).salted(salt).look_up(keyed(asked, salt)).tolist() == [3, 0, 0, 4]


def test_context_tells_documents_apart_where_the_maps_cannot():
    found, _, pairs = fitted()
    assert found.kept
    assert (
        found.about["comparison"]["with_context"]
        < found.about["comparison"]["without"] - 2 * found.about["comparison"]["error"]
    )
    hard = (pairs.rows // 30) % 2 == 1
    lead = pairs.scores >= 0.5
    raised = found.held_out - pairs.scores
    assert raised[hard & lead].mean() < -0.1 < 0.1 < raised[hard & ~lead].mean()


def test_scores_of_a_doc_depend_on_no_other_doc():
    found, words, pairs = fitted()
    whole = found.context.calibrate(found.context.view(words, pairs.rows, pairs.scores))
    starts = words.starts[[0, 7, 8, 60]]
    for first, end in zip(starts[:-1], starts[1:], strict=True):
        mine = np.flatnonzero((pairs.rows >= first) & (pairs.rows < end))
        docs = [
            list(words.forms[a:b].astype(int))
            for a, b in zip(words.starts[:-1], words.starts[1:], strict=True)
            if first <= a < end
        ]
        part = found.context.calibrate(found.context.view(words_of(docs), pairs.rows[mine] - first, pairs.scores[mine]))
        assert np.array_equal(part, whole[mine])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_higher_score_in_the_same_surroundings_stays_the_higher(seed):
    rng = np.random.default_rng(seed)
    words, pairs, documents = made_up(20, seed)
    pairs = pairs.with_scores(rng.permutation(pairs.scores))  # scores that say nothing, or the contrary
    data = FitWords(words, np.arange(20))
    found = fit_token_context(TokenContext([Entropy(), Document()]), pairs, Pairs.none(), documents, data)
    assert found.context.models_ is not None
    assert min(found.context.models_.leading.slope, found.context.models_.others.slope) >= 0
    assert ((found.held_out >= 0) & (found.held_out <= 1)).all()


def test_tokens_without_entries_and_empty_docs():
    found, _, _ = fitted()
    words = words_of([[], [1, -2, 3], []])
    view = found.context.view(words, np.array([2]), np.array([0.7]))
    assert 0 < found.context.calibrate(view)[0] < 1
    assert np.isfinite(found.context.calibrate_below(view, np.array([0, 1]), np.array([0.001, 0.002]))).all()
    nothing = found.context.view(words_of([]), np.zeros(0, dtype=np.intp), np.zeros(0))
    assert len(found.context.calibrate(nothing)) == 0


def test_too_little_data_or_overlapping_labels_leave_scores_as_they_are():
    words, pairs, documents = made_up(3)
    data = FitWords(words, np.arange(3))
    few = fit_token_context(TokenContext(EVERY), pairs, Pairs.none(), documents, data)
    assert not few.kept
    assert few.about["why"] == "3 documents, and 10 are wanted"
    assert np.array_equal(few.held_out, pairs.scores)
    assert few.context.calibrate(few.view) is None
    assert few.context.calibrate_below(few.view, np.array([0]), np.array([0.001])) is None
    words, pairs, documents = made_up(12)
    several = fit_token_context(
        TokenContext(EVERY), pairs, Pairs.none(), documents, FitWords(words, np.arange(12)), overlapping=True
    )
    assert not several.kept
    assert several.about["why"] == "a token may have several labels"


def test_no_worse_is_one_standard_error_by_document():
    hits = np.array([True, True, False, False])
    documents = np.array([0, 0, 1, 1])
    without = np.array([0.8, 0.8, 0.2, 0.2])
    # Log loss falls by log(.9/.8) in one document and rises by log(.8/.7) in the other.
    compared = Comparison.of(without, np.array([0.9, 0.9, 0.3, 0.3]), hits, documents)
    fall, rise = np.log(0.9 / 0.8), np.log(0.8 / 0.7)
    mean = (rise - fall) / 2
    assert compared.with_context - compared.without == pytest.approx(mean)
    assert compared.error == pytest.approx(np.sqrt(2 * (2 * rise - 2 * mean) ** 2) / 4)
    assert compared.no_worse
    assert not Comparison.of(without, np.full(4, 0.5), hits, documents).no_worse


def test_what_was_learned_survives_saving():
    found, words, pairs = fitted()
    state = found.context.state()
    again = TokenContext(EVERY, **{key: value for key, value in state["settings"].items() if key != "features"})
    again.load_learned(state["learned"])
    assert np.array_equal(
        again.calibrate(again.view(words, pairs.rows, pairs.scores)),
        found.context.calibrate(found.context.view(words, pairs.rows, pairs.scores)),
    )
    assert state["settings"]["features"][0] == "spacy-calib.Document.v1"


def test_what_was_saved_without_a_salt_says_what_it_said():
    """Forms were kept as they are then, those that were met once too."""
    found, words, pairs = fitted()
    state, every = found.context.state()["learned"], WordCounts.of(words)
    older = {name: getattr(every, name).state() for name in ("forms", "endings")}
    again = TokenContext(EVERY).load_learned({**state, "known": older})
    assert again.known_.look_up(words_of([[1, 1000]])).forms.tolist() == [every.look_up(words_of([[1]])).forms[0], 0]
    one, other = (context.calibrate(context.view(words, pairs.rows, pairs.scores)) for context in (found.context, again))
    assert np.array_equal(one, other)  # all forms here are frequent


@pytest.mark.parametrize("change", [{"averages": {}}, {"columns": [["entropy", "x"]]}, {"models": 3}])
def test_a_state_that_does_not_fit_together_is_refused(change):
    state = fitted()[0].context.state()["learned"]
    with pytest.raises(Misfit):
        TokenContext(EVERY).load_learned({**state, **change})


@pytest.mark.parametrize("wrong", [{"when": "sometimes"}, {"shrinkage": 0}, {"shrinkage": True}, {"features": ()}])
def test_settings_out_of_range(wrong):
    with pytest.raises(CalibError, match="C001"):
        TokenContext(**{"features": EVERY, **wrong})
