"""Figures from tables: those of the pairs, and the same bits from any number of shards."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.metrics.calibration_error import gmce, mean_of, smce
from spacy_calib.metrics.noise_floor import noise_floor
from spacy_calib.metrics.proper import PROPER, brier, log_loss
from spacy_calib.metrics.smooth_error import SmoothCalibrationError
from spacy_calib.metrics.table import calibration_table
from spacy_calib.pairs.build import top_pairs
from spacy_calib.pairs.documents import by_unit
from spacy_calib.statistics.cells import PairCells
from spacy_calib.statistics.figures import raw_figures, table_of_counts
from spacy_calib.statistics.tables import JudgedCounts
from spacy_calib.types import Groups, Pairs

from .test_tables import merged_in_a_tree

GROUPS = Groups(("a", "b", "empty"), np.array([0, 1, 1]))
METRICS = {**PROPER, "smece": SmoothCalibrationError(), "n": lambda scores, hits: float(len(scores))}


def judged_pairs(n: int = 400, seed: int = 0) -> tuple[Pairs, np.ndarray, np.ndarray]:
    """(n pairs of n / 2 tokens, what a map says of them, documents of them)."""
    rng = np.random.default_rng(seed)
    rows, tags = np.repeat(np.arange(n // 2), 2), np.tile([0, 1], n // 2) + (rng.random(n) < 0.1)
    scores = rng.random(n).round(2)
    pairs = Pairs(rows, tags, scores, rng.random(n) < scores, n // 2 + 3)
    return pairs, (scores**1.2).round(3), rows // 5


def counted(pairs: Pairs, calibrated: np.ndarray, documents: np.ndarray, own: np.ndarray, units: int) -> JudgedCounts:
    likeliest = np.isin(np.arange(len(pairs)), top_pairs(pairs))
    columns = (pairs.tags, pairs.scores, calibrated, pairs.hits, likeliest, documents.astype(np.uint64))
    return JudgedCounts.of(*(column[own] for column in columns), units=units)


def flat(table) -> list:
    if isinstance(table, dict):
        return [number for value in table.values() for number in flat(value)]
    return [number for value in table for number in flat(value)] if isinstance(table, list) else [table]


def test_a_table_of_counts_is_that_of_the_pairs():
    pairs, calibrated, documents = judged_pairs()
    theirs = calibration_table(pairs, calibrated, GROUPS, 4, 1, documents, metrics=METRICS)
    ours = table_of_counts(counted(pairs, calibrated, documents, np.arange(400), pairs.n_units), GROUPS, 4, 1, metrics=METRICS)
    for one, other in zip(flat(ours), flat(theirs), strict=True):
        assert one == (pytest.approx(other, rel=1e-12, abs=1e-12) if isinstance(other, float) else other)


@pytest.mark.parametrize("n_shards", [2, 7, 100])
def test_any_tree_of_shards_gives_the_same_bits(n_shards):
    pairs, calibrated, documents = judged_pairs()
    rng = np.random.default_rng(n_shards)
    of_pair = rng.integers(0, n_shards, len(pairs))
    units = [pairs.n_units, *[0] * (n_shards - 1)]
    parts = [counted(pairs, calibrated, documents, np.flatnonzero(of_pair == i), units[i]) for i in range(n_shards)]
    whole = counted(pairs, calibrated, documents, np.arange(len(pairs)), pairs.n_units)
    assert table_of_counts(merged_in_a_tree(parts, rng), GROUPS, 4) == table_of_counts(whole, GROUPS, 4)


def test_a_metric_that_takes_no_weights_says_why_it_is_none(monkeypatch):
    monkeypatch.setattr("spacy_calib.metrics.metric.MOST_REPEATED", 399)
    pairs, calibrated, documents = judged_pairs()
    once, thrice = (
        table_of_counts(counted(pairs, calibrated, documents, own, 200), GROUPS, unit=None, metrics=METRICS)
        for own in (np.arange(400), np.repeat(np.arange(400), 3))
    )
    assert once["scores"]["n"] == {"raw": 400, "calibrated": 400}  # to repeat them takes no more memory than they do
    found = thrice
    assert found["by"] is None
    assert found["scores"]["n"]["raw"] is None
    assert "takes no weights" in found["scores"]["n"]["reason"]
    assert found["scores"]["brier"]["raw"] is not None


def test_blocks_of_documents_are_called_so(monkeypatch):
    pairs, calibrated, documents = judged_pairs()
    few = counted(pairs, calibrated, documents, np.arange(400), 200)
    monkeypatch.setattr("spacy_calib.statistics.blocks.MOST_BLOCKS", 10)
    blocks = counted(pairs, calibrated, documents, np.arange(400), 200)
    by, of_blocks = (table_of_counts(counts, GROUPS, 4)["by"] for counts in (few, blocks))
    assert (by, of_blocks) == ({"unit": "document", "n": 40}, {"unit": "block of documents", "n": 10})
    assert by_unit(**of_blocks) == "by block of documents (10)"


def test_a_table_of_no_pairs_says_nothing():
    none = JudgedCounts.of([], [], [], [], [], np.zeros(0, np.uint64), units=0)
    found = table_of_counts(none, GROUPS)
    assert (found["pairs"], found["accuracy"], found["errors"][0]["raw"]) == (0, None, None)


def test_figures_of_raw_scores_are_those_of_the_pairs():
    pairs, _, _ = judged_pairs()
    found = raw_figures(PairCells.of(pairs.tags, pairs.scores, pairs.hits, 3), GROUPS, 4)
    floor = noise_floor(pairs.scores, 4)
    wanted = {
        "pairs": 400,
        "groups": 3,
        "smce": smce(pairs, n_bins=4),
        "mean_gmce": mean_of(gmce(pairs, GROUPS, n_bins=4)),
        "floor": None if floor is None else floor.mean,
        "brier": brier(pairs.scores, pairs.hits),
        "nll": log_loss(pairs.scores, pairs.hits),
    }
    assert found == pytest.approx(wanted, rel=1e-4)
