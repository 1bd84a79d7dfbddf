"""The experiments with sequence learners: what spans are, how wrong words are found, and what is left after a run that stopped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.chains.features import SparseFeatures
from papers.sequences.data import Sentences, spans_of
from papers.sequences.judge import Way, rmse_of, weights_of
from papers.sequences.learning import Tuning, choose_scale, choose_settings, counts_of, train
from papers.sequences.runs import gaps_alone, parts_of
from sklearn.metrics import average_precision_score
from spacy.training import iob_to_biluo
from spacy.training.iob_utils import biluo_tags_to_spans
from spacy.vocab import Vocab

TAGS = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])


@settings(deadline=None)
@given(st.lists(TAGS, min_size=1, max_size=12))
def test_spans_are_those_of_spacy_where_tags_are_whole(tags):
    from spacy.tokens import Doc

    whole = [
        tag if tag[0] != "I" or (i and tags[i - 1][1:] == tag[1:] and tags[i - 1] != "O") else f"B{tag[1:]}"
        for i, tag in enumerate(tags)
    ]
    doc = Doc(Vocab(), words=["x"] * len(whole))
    assert spans_of(whole) == {(s.start, s.end, s.label_) for s in biluo_tags_to_spans(doc, iob_to_biluo(whole))}


def test_rmse_by_hand():
    # Bins [.5, .55) with one of two right and [.95, 1] with both: (.525 - .5) and (.975 - 1), two words each.
    sure = np.array([0.5, 0.54, 0.96, 1.0])
    assert rmse_of(sure, np.array([True, False, True, True])) == pytest.approx(0.025)
    # Only the words of weight: one in the first bin, right.
    assert rmse_of(sure, np.array([True, False, True, True]), np.array([1.0, 0, 0, 0])) == pytest.approx(0.475)


def way(seed: int, n_sentences: int = 30) -> Way:
    rng = np.random.default_rng(seed)
    sentences = np.repeat(np.arange(n_sentences), rng.integers(1, 6, n_sentences))
    sure = rng.integers(1, 11, len(sentences)) / 10
    return Way(sure, rng.random(len(sure)) < sure, sentences)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_weights_are_repeated_sentences(seed):
    one = way(seed)
    weights = weights_of([30], 1, seed)[0][0]
    places = np.concatenate([np.repeat(np.flatnonzero(one.sentences == i), int(times)) for i, times in enumerate(weights)])
    again = Way(one.sure[places], one.right[places], one.sentences[places])
    assert one.figures(weights) == pytest.approx(again.figures())
    if (~one.right).any():
        assert one.figures()["average_precision"] == pytest.approx(average_precision_score(~one.right, 1 - one.sure))


@pytest.fixture(scope="module")
def data():
    """Two labels that the first feature tells most of the time; a feature of its own for each word, so that there are unseen ones."""
    rng = np.random.default_rng(3)
    rows, gold = [], []
    for sentence in range(60):
        labels = rng.integers(0, 2, 4)
        first = 1 + np.where(rng.random(4) < 0.85, labels, 1 - labels)
        features = np.stack([np.zeros(4, dtype=int), first, 3 + 4 * sentence + np.arange(4)], axis=1)
        rows.append(SparseFeatures(features.reshape(-1), np.arange(5) * 3))
        gold.append(labels)
    return Sentences(rows, gold, ("O", "B-A"), 3 + 4 * 60)


def test_nothing_is_chosen_on_what_is_judged(data, monkeypatch):
    """Gold of the judged sentences is not read before the answers are there."""
    training, judged = parts_of(len(data), 3, 0, 0)
    read: set[int] = set()

    def read_and_train(data, sentences, *rest):
        read.update(sentences.tolist())
        return train(data, sentences, *rest)

    def read_and_count(data, labels, sentences):
        read.update(sentences.tolist())
        return counts_of(data, labels, sentences)

    monkeypatch.setattr("papers.sequences.learning.train", read_and_train)
    monkeypatch.setattr("papers.sequences.learning.counts_of", read_and_count)
    tuning = Tuning(30, 10, 1, (0.01, 1.0), 4)
    chosen = choose_settings(data, training, "cw", 0, tuning)
    assert set(chosen) == {"phi"}
    assert set(choose_scale(data, training, "cw", 1, 0, chosen, tuning)) == {"kd_pc", "kd_fixed"}
    assert set(choose_scale(data, training, "pa", 1, 0, {}, tuning)) == {"kd_fixed"}
    assert read
    assert not read & set(judged.tolist())


def test_within_the_labelling_one_label_alone_is_changed():
    # Labels 0, 0 score 1 + 2 + 3 (from 0 to 0); 1 at the first word alone: 4 + 0 + 2; at the second alone: 1 + 0 + 0.
    scores, transitions = np.array([[1.0, 4.0], [2.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 5.0]])
    assert gaps_alone(scores, transitions, np.array([0, 0])) == pytest.approx([0.0, 5.0])
    assert gaps_alone(scores[:1], transitions, np.array([1])) == pytest.approx([3.0])
