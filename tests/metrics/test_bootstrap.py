"""Intervals of any figure: the resamples are those of the means."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics import brier, log_loss, smce
from spacy_calib.metrics.bootstrap import document_bootstrap
from spacy_calib.metrics.error_interval import error_interval
from spacy_calib.metrics.proper import log_losses, squared_losses
from spacy_calib.metrics.resampling import (
    mean_interval,
    resamples,
)

from ..strategies import make_pairs
from .simulated import texts


def test_figures_with_sums_take_the_short_way():
    scores, hits, documents = texts(30, seed=5)
    pairs, judged = make_pairs(scores, hits), scores**1.5
    assert document_bootstrap(log_loss, pairs, documents, judged) == mean_interval(log_losses(judged, hits), documents)
    assert document_bootstrap(brier, pairs, documents) == mean_interval(squared_losses(scores, hits), documents)
    assert document_bootstrap(smce, pairs, documents, judged) == error_interval(judged, hits, documents)


def test_any_figure_is_drawn_with_the_weights_of_its_documents():
    scores, hits, documents = texts(200, seed=5)
    pairs = make_pairs(scores, hits)
    seen = []

    def share_of_hits(given, judged, weights):
        assert given is pairs
        seen.append(weights)
        return float(np.average(given.hits, weights=weights))

    found = document_bootstrap(share_of_hits, pairs, documents, n_samples=400, seed=7)
    assert found.estimate == pytest.approx(hits.mean())
    expected = np.concatenate(list(resamples(200, 400, seed=7)), axis=1)[documents].T
    assert np.array_equal(np.array(seen), np.concatenate([np.ones((1, len(hits))), expected]))
    # With so many documents the two kinds of interval of a mean hardly differ.
    closed = mean_interval(hits.astype(float), documents)
    assert (found.low, found.high, found.upper) == pytest.approx((closed.low, closed.high, closed.upper), abs=0.01)


def test_resamples_without_a_value_are_left_out():
    scores, hits, documents = texts(12, seed=5)
    pairs = make_pairs(scores, hits)

    def of_first_document(given, judged, weights):
        inside = (documents == 0) & (weights > 0)
        return float(judged[inside].mean()) if inside.any() else None

    found = document_bootstrap(of_first_document, pairs, documents, n_samples=100)
    mean = scores[documents == 0].mean()
    assert (found.estimate, found.low, found.high) == pytest.approx((mean, mean, mean))
    calls = iter([0.5])
    nothing = document_bootstrap(lambda *_: next(calls, None), pairs, documents, n_samples=100)
    assert (nothing.estimate, nothing.low, nothing.upper) == (0.5, None, None)
    assert nothing.reason == "no resample has a value"


@pytest.mark.parametrize(
    "statistic", [log_loss, smce, lambda pairs, scores, weights: float(np.average(scores, weights=weights))]
)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(statistic):
    scores, hits, documents = texts(30, seed=5, slope=0.3)
    pairs = make_pairs(scores, hits)
    found = document_bootstrap(statistic, pairs, documents, seed=3)
    assert document_bootstrap(statistic, pairs, documents, seed=3) == found
    assert document_bootstrap(statistic, pairs, documents, seed=4) != found


def test_an_interval_is_plain_data():
    scores, hits, documents = texts(30, seed=5)
    found = error_interval(scores, hits, documents)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert set(found.to_dict()) == {
        "estimate", "low", "high", "upper", "coverage", "documents", "corrected", "reason"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: document_bootstrap(log_loss, make_pairs([0.5], [1]), [0], [0.5, 0.5]), r"\[C002\]"),
        (lambda: document_bootstrap(lambda *_: 1.0, make_pairs([0.5], [1]), [0, 1]), r"\[C002\]"),
        (lambda: document_bootstrap(lambda *_: 1.0, make_pairs([0.5], [1]), [0], n_samples=5), r"\[C001\] n_samples"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, match):
    with pytest.raises(CalibError, match=match):
        call()
