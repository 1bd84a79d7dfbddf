"""Few long documents, cut into runs of sentences."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.pairs.runs import runs_of


def rows(*lengths: int) -> np.ndarray:
    """The document of each token of documents of these lengths."""
    return np.repeat(np.arange(len(lengths)), lengths)


def sentences(n: int, every: int) -> np.ndarray:
    return np.arange(n) % every == 0


def test_runs_begin_where_a_sentence_does_and_end_with_their_document():
    documents = rows(1400, 1000)
    starts = sentences(2400, 35)
    starts[1400] = True
    runs = runs_of(documents, starts)
    first = np.flatnonzero(np.diff(runs, prepend=-1))
    # 1,400 tokens are seven runs of 200, at 200, 400 ...: the next sentences begin at 210, 420, 600 (no: 630), ...
    assert first[:8].tolist() == [0, 210, 420, 630, 805, 1015, 1225, 1400]
    assert starts[first].all()
    assert len(first) == 12
    assert runs.max() == 11


@pytest.mark.parametrize(("n", "found"), [(1999, None), (2000, 10), (50_000, 100)])
def test_runs_are_of_200_tokens_or_more_and_at_most_a_hundred(n, found):
    runs = runs_of(rows(n), sentences(n, 1))
    assert (None if runs is None else len(np.unique(runs))) == found


def test_enough_documents_stay_whole():
    assert runs_of(rows(*[1000] * 10), sentences(10_000, 20)) is None
    assert runs_of(rows(*[1000] * 9), sentences(9000, 20)) is not None


def test_a_document_without_known_sentences_is_cut_anywhere_and_a_short_one_not_at_all():
    starts = np.zeros(4100, dtype=bool)
    starts[[0, 4000]] = True
    runs = runs_of(rows(4000, 100), starts)
    assert np.bincount(runs).tolist() == [200] * 20 + [100]


def test_parts_of_a_document_may_stand_apart():
    documents = np.concatenate([rows(1000, 1000), rows(1000, 1000)])
    runs = runs_of(documents, sentences(4000, 10))
    of_run = [set(documents[runs == run].tolist()) for run in range(runs.max() + 1)]
    assert all(len(names) == 1 for names in of_run)
    assert len(of_run) == 20
