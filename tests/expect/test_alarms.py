"""The rate of false alarms, and what gives an alarm."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.expect.alarms import EMPTY, NO_SCORES, OPEN, QUIET, SLOW, Alarms, Judge, beyond
from spacy_calib.expect.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW, Check, Drift
from spacy_calib.expect.windows import Counts
from tests.expect.streams import few_draws, layout_of, made_batch, made_record, windows  # noqa: F401


@pytest.fixture(scope="module")
def alarms():
    return Alarms(made_record().profile, 0.05)


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


def judged(judge, found):
    return list(judge.judge((counts, False) for counts in found))


def test_verdicts_and_expectations(record, layout):
    quiet, other = windows(layout, 1, 1)[0], windows(layout, 1, 1, power=1.5)[0]
    few = layout.count(made_batch(9, 1))
    without_tokens = layout.count(made_batch(9, 0)._replace(n_docs=3))
    found = judged(Judge(record), [quiet, layout.nothing(), other, few, without_tokens])
    assert [one.verdict for one in found] == [QUIET, EMPTY, DIFFERENT, TOO_FEW, NO_SCORES]
    assert [one.alarm for one in found] == [False, False, True, False, False]
    estimate = found[0].accuracy
    assert estimate.low < estimate.expected < estimate.high
    assert found[1].accuracy is None
    assert found[0].to_dict()["expected"] == estimate.expected
    assert [check["name"] for check in found[2].to_dict()["checks"] if check["differs"]][:1] == ["scores"]


def test_a_window_that_is_still_filled_has_no_verdict(record, layout):
    (one,) = Judge(record).judge([(windows(layout, 1, 1, power=1.5)[0], True)])
    assert (one.verdict, one.alarm, one.drift) == (OPEN, False, None)
    assert one.accuracy is not None


def test_other_weights_are_no_alarm_and_no_verdict(record, layout):
    (one,) = judged(Judge(record, other_weights=True), windows(layout, 1, 1, power=1.5))
    assert (one.verdict, one.alarm) == (OTHER_WEIGHTS, False)


def test_a_slow_change_shows_in_windows_together(record, layout):
    """Windows of ten documents are too small for so small a change."""
    changed = windows(layout, 4, 32, n_docs=10, power=0.42)
    found = judged(Judge(record), changed)
    slow = [one.together.windows for one in found if one.verdict == SLOW]
    assert slow
    assert set(slow) <= {2, 4, 8, 16, 32}
    assert found[0].verdict == TOO_FEW
    assert not any(one.alarm for one in judged(Judge(record), windows(layout, 5, 32, n_docs=10)))


class _Limit:
    """Differs where the tokens of a block are this many or more."""

    def __init__(self, limit):
        self.limit, self.sizes = limit, []

    def compare(self, counts):
        self.sizes.append(counts.tokens)
        check = Check("scores", float(counts.tokens), self.limit, 0.0)
        return Drift(DIFFERENT if check.differs else QUIET, (check,))


@pytest.mark.parametrize(
    ("limit", "sizes", "slow"),
    [
        (99, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2], []),
        # The alarm of the first four begins anew: the next two are a pair of their own.
        (3, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2], [4]),
        (1, [1, 1, 2, 1, 1, 2, 1, 1, 2], [2, 2, 2]),
    ],
)
def test_blocks_are_pairs_fours_and_so_on(record, layout, limit, sizes, slow):
    judge = Judge(record)
    vars(judge)["alarms"] = _Limit(limit)
    one = Counts(**{**vars(layout.nothing()), "documents": 1, "scored": 1, "tokens": 1, "squares": 1})
    found = judged(judge, [one] * 6)
    assert judge.alarms.sizes == sizes
    assert [each.together.windows for each in found if each.verdict == SLOW] == slow


def test_a_window_with_an_alarm_is_in_no_block(record, layout):
    judge = Judge(record)
    vars(judge)["alarms"] = _Limit(5)
    small, large = (
        Counts(**{**vars(layout.nothing()), "documents": 1, "scored": 1, "tokens": n, "squares": 1}) for n in (1, 9)
    )
    found = judged(judge, [small, large, small])
    assert [one.verdict for one in found] == [QUIET, DIFFERENT, QUIET]
    assert judge.alarms.sizes == [1, 9, 1, 2]
