"""What another package, or a file given as --code, may bring: one of each kind that is registered. Nothing of it is named in `spacy_calib`."""

from collections.abc import Mapping, Sequence

import numpy as np

from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.calibration.recalibrators import Recalibrator
from spacy_calib.calibration.scaling import TemperatureScaling
from spacy_calib.registry import registry
from spacy_calib.types import Groups


@registry.calib_recalibrators("garden.Level.v1")
class Level(Recalibrator):
    """Scores times one number, so that their mean is the share of hits."""

    registered = "garden.Level.v1"
    short = "level"
    n_parameters = 1
    _learned = ("ratio_",)

    def _fit(self, scores, hits, weights):
        weights = np.ones(len(scores)) if weights is None else weights
        self.ratio_ = np.array([np.average(hits, weights=weights) / max(np.average(scores, weights=weights), 1e-9)])

    def _predict(self, scores):
        return np.clip(scores * self.ratio_[0], 0, 1)


@registry.calib_scalings("garden.Mild.v1")
class Mild(TemperatureScaling):
    registered = "garden.Mild.v1"
    short = "mild"


def halves(labels: Sequence[str], counts: Mapping[str, int]) -> Groups:
    return tag_frequency_groups(labels, counts, n_groups=2)


@registry.calib_groupings("garden.Halves.v1")
def make_halves():
    return halves
