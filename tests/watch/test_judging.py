"""Windows in their order: verdicts, and slow change that no window shows by itself."""

from __future__ import annotations

import pytest

from spacy_calib.expect.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW, Check, Drift
from spacy_calib.watch.alarms import QUIET
from spacy_calib.watch.judging import EMPTY, NO_SCORES, OPEN, SLOW, Judge
from spacy_calib.watch.window import Counts
from tests.watch.streams import few_draws, layout_of, made_batch, made_record, windows  # noqa: F401


@pytest.fixture(scope="module")
def record():
    return made_record()


@pytest.fixture(scope="module")
def layout(record):
    return layout_of(record)


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
