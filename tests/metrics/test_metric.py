"""Names of metrics, losses, and what stands of metrics that are not this package's."""

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics.metric import check_short_names, figure_of, losses, title_of
from spacy_calib.metrics.proper import Brier, LogLoss


class WorstGap:
    """A metric that knows nothing of this package."""

    short = "worst"
    title = "Worst gap"

    def __call__(self, scores, hits):
        return np.float32(np.max(np.abs(np.asarray(scores) - hits))) if len(scores) else None


METRICS = {"brier": Brier(), "nll": LogLoss(), "worst": WorstGap(), "else.Bare.v1": max}


def test_losses_are_those_of_means_and_log_loss_leads():
    assert list(losses(METRICS)) == ["nll", "brier"]


def test_a_metric_of_elsewhere_gives_a_plain_number_and_a_title():
    assert figure_of(WorstGap(), [0.25, 0.5], [0, 0]) == 0.5
    assert type(figure_of(WorstGap(), [0.25], [0])) is float
    assert figure_of(WorstGap(), [], []) is None
    assert [title_of(metric, short) for short, metric in METRICS.items()][-2:] == ["Worst gap", "else.Bare.v1"]


@pytest.mark.parametrize("short", ["smce", "gmce", "ece"])
def test_the_name_of_another_figure_is_refused(short):
    with pytest.raises(CalibError, match=rf"\[C190\] The metric 'WorstGap' has the short name '{short}'"):
        check_short_names({short: WorstGap()})
