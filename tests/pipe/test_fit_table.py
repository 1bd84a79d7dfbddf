"""Rows of the table that `fit` prints, where maps were fitted on more pairs than are looked at."""

from __future__ import annotations

import numpy as np

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.pipe.fit_table import summarize_fit
from spacy_calib.statistics.cells import PairCells
from spacy_calib.types import Groups, Pairs


def test_groups_that_share_a_map_count_the_pairs_that_it_was_fitted_on():
    rng = np.random.default_rng(0)
    tags, scores = rng.integers(0, 3, 300), rng.random(300)
    hits = rng.random(300) < scores
    counted = PairCells.of(tags, scores, hits, 3)
    maps = GroupedRecalibrator(IsotonicRegression(), Groups(("all",), np.zeros(3, dtype=int))).fit_counts(counted)
    sample = Pairs(np.arange(40), tags[:40], scores[:40], hits[:40], 40)
    judged = Groups(("1", "2"), np.array([0, 0, 1]))
    rows = summarize_fit(sample, sample.scores, maps, judged, counted=counted)
    assert [(row.pairs, row.hits) for row in rows] == [
        (300, hits.sum()),
        ((tags < 2).sum(), hits[tags < 2].sum()),
        ((tags == 2).sum(), hits[tags == 2].sum()),
    ]
    assert {row.fallback for row in rows[1:]} == {"one for all tags"}
    assert [row.pairs for row in summarize_fit(sample, sample.scores, maps, judged)[1:]] == [
        (sample.tags < 2).sum(),
        (sample.tags == 2).sum(),
    ]
