"""The rate of false alarms, and what gives an alarm."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.expect.drift import DIFFERENT, TOO_FEW
from spacy_calib.watch.alarms import QUIET, Alarms, beyond
from tests.watch.streams import layout_of, made_record, windows


@pytest.fixture(scope="module")
def alarms():
    return Alarms(made_record().profile, 0.05)


@pytest.fixture(scope="module")
def layout():
    return layout_of(made_record())


def test_texts_like_those_of_the_fit_give_no_more_alarms_than_stated(alarms, layout):
    found = [alarms.compare(counts).verdict for counts in windows(layout, 1, 200)]
    # Limits and shared levels make it far less than one in twenty.
    assert found.count(DIFFERENT) <= 10
    assert found.count(QUIET) >= 190


def test_the_level_alone_holds_the_rate_where_every_difference_matters(layout):
    """Without a least difference that matters, chance alone decides."""
    alarms = Alarms(made_record().profile, 0.05)
    vars(alarms)["limits"] = dict.fromkeys(alarms.limits, 0.0)
    found = [alarms.compare(counts).verdict for counts in windows(layout, 2, 200)]
    assert found.count(DIFFERENT) <= 18  # of 10; 18 has probability .01 by chance


def test_other_texts_give_an_alarm(alarms, layout):
    assert all(alarms.compare(counts).verdict == DIFFERENT for counts in windows(layout, 1, 3, power=1.5))


def test_one_document_is_too_few(alarms, layout):
    (counts,) = windows(layout, 1, 1, n_docs=1)
    assert alarms.compare(counts).verdict == TOO_FEW


def test_thresholds_fall_with_the_size_and_with_the_level():
    profile = made_record().profile
    small, large = (Alarms(profile, 0.01).thresholds(size) for size in (40, 160))
    rare = Alarms(profile, 0.0001).thresholds(160)
    assert list(small) == ["scores", "labels", "expected accuracy"]
    for name in small:
        assert large[name] < small[name]
        assert large[name] < rare[name]


def test_few_long_documents_are_judged_by_their_stretches(alarms, layout):
    (counts,) = windows(layout, 3, 1, n_docs=12, length=200)
    drift = alarms.compare(counts)
    assert drift.stretch == layout.profile.usual
    assert drift.verdict == QUIET


def test_beyond_small_levels_the_tail_is_exponential():
    values = np.random.default_rng(0).exponential(size=20_000)
    assert beyond(values, 0.1) == pytest.approx(-np.log(0.1), rel=0.05)
    assert beyond(values, 1e-5) == pytest.approx(-np.log(1e-5), rel=0.1)
    assert beyond(np.ones(10), 1e-5) == 1.0
