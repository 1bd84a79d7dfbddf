"""Maps from tables alone: those of the pairs, to the bit, from any number of shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.intervals import GroupedVennAbers
from spacy_calib.calibration.recalibrators import (
    Beta,
    HistogramBinning,
    IsotonicRegression,
    Platt,
    ScalingBinning,
    Temperature,
)
from spacy_calib.calibration.recalibrators.venn_abers import VennAbers
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.errors import CalibError
from spacy_calib.statistics.tables import PairCounts
from spacy_calib.types import Groups, Pairs

from .test_tables import bytes_of, merged_in_a_tree

METHODS = [
    HistogramBinning(n_bins=4),
    HistogramBinning(bin_size=3),
    IsotonicRegression(),
    ScalingBinning(n_bins=3),
    Platt(),
    Beta(),
    Temperature(),
    VennAbers(),
]
GROUPS = Groups(("a", "b"), np.array([0, 0, 1, -1]))


def make_pairs(n: int, seed: int, digits: int, n_tags: int = 4) -> tuple[Pairs, np.ndarray]:
    """(n pairs whose tags need maps of their own, the digest of each pair's document)."""
    rng = np.random.default_rng(seed)
    tags, scores = rng.integers(0, n_tags, n), rng.random(n).round(digits)
    hits = rng.random(n) < scores ** (1 + tags)
    digests = (np.arange(n, dtype=np.uint64) // np.uint64(9)) * np.uint64(0x9E3779B97F4A7C15)
    return Pairs(np.arange(n), tags, scores, hits, n), digests


def shards_of(pairs: Pairs, digests: np.ndarray, n_shards: int, rng: np.random.Generator) -> PairCounts:
    """The pairs in so many shards, merged in a random tree."""
    of_pair = rng.integers(0, n_shards, len(pairs))
    parts = [
        PairCounts.of(pairs.tags[own], pairs.scores[own], pairs.hits[own], digests[own])
        for own in (np.flatnonzero(of_pair == shard) for shard in range(n_shards))
    ]
    return merged_in_a_tree(parts, rng)


def learned(maps: GroupedRecalibrator) -> list:
    """Everything that was learned, as bytes."""
    state = maps.state()
    arrays = [one["learned"] for one in (state["pooled"], *state["maps"]) if one is not None]
    pooling = [] if state["pooling"] is None else [state["pooling"]["learned"][name] for name in ("tags", "groups")]
    numbers = [(name, np.asarray(value).tobytes()) for one in [*arrays, *pooling] for name, value in one.items()]
    return [*numbers, state["fits"], state["pooled_fit"]]


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 7, 100]), st.sampled_from([1, 2, 9]))
@settings(max_examples=8, deadline=None)
def test_every_method_learns_the_same_bits_from_any_shards(seed, n_shards, digits):
    pairs, digests = make_pairs(120, seed, digits)
    counts = shards_of(pairs, digests, n_shards, np.random.default_rng(seed))
    whole = PairCounts.of(pairs.tags, pairs.scores, pairs.hits, digests)
    for method in METHODS:
        ours = GroupedRecalibrator(method, GROUPS).fit_counts(counts)
        assert learned(ours) == learned(GroupedRecalibrator(method, GROUPS).fit(pairs))
    scores = np.linspace(0, 1, 40)
    ours, theirs = GroupedVennAbers(GROUPS).fit_counts(counts), GroupedVennAbers(GROUPS).fit(pairs)
    assert np.array_equal(ours.interval(scores, pairs.tags[:40]), theirs.interval(scores, pairs.tags[:40]))
    shifted = [GroupedRecalibrator(Platt(), GROUPS, TagOffsets()).fit_counts(one) for one in (counts, whole)]
    assert learned(shifted[0]) == learned(shifted[1])


def test_pairs_like_a_taggers_from_any_shards():
    # As of a tagger: most scores near 0 or 1, tags of very unlike frequency, documents of unlike length, shards of whole documents.
    rng = np.random.default_rng(1)
    n, documents = 8_000, np.sort(rng.integers(0, 300, 8_000) ** 2 // 300)
    scores = 1 / (1 + np.exp(-rng.normal(3, 5, n)))
    tags = np.minimum(rng.geometric(0.3, n) - 1, 3)
    hits = rng.random(n) < 1 / (1 + np.exp(-0.8 * (np.log(scores) - np.log1p(-scores)) + 0.2 * tags))
    columns = (tags, scores, hits, documents.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    whole = PairCounts.of(*columns)
    for n_shards in (2, 7, 100):
        parts = [PairCounts.of(*(column[documents % n_shards == shard] for column in columns)) for shard in range(n_shards)]
        assert bytes_of(merged_in_a_tree(parts, rng)) == bytes_of(whole)
    pairs = Pairs(np.arange(n), tags, scores, hits, n)
    for method in METHODS:
        ours, theirs = GroupedRecalibrator(method, GROUPS).fit_counts(whole), GroupedRecalibrator(method, GROUPS).fit(pairs)
        assert learned(ours) == learned(theirs)


def test_offsets_of_counts_are_those_of_pairs_to_rounding():
    pairs, digests = make_pairs(600, 3, 2)
    counts = PairCounts.of(pairs.tags, pairs.scores, pairs.hits, digests)
    for offsets in (TagOffsets(1.0, 4.0), TagOffsets()):
        ours, theirs = (
            GroupedRecalibrator(Beta(), GROUPS, offsets).fit_counts(counts),
            GroupedRecalibrator(Beta(), GROUPS, offsets).fit(pairs),
        )
        assert ours.offsets is not None
        assert theirs.offsets is not None
        assert np.allclose(ours.offsets.tags_.values, theirs.offsets.tags_.values, rtol=0, atol=1e-9)
        assert np.abs(theirs.offsets.tags_.values).max() > 0.1
        assert ours.offsets.describe() == theirs.offsets.describe()


def test_no_pairs_and_too_few_are_refused():
    none = PairCounts.of([], [], [], np.zeros(0, np.uint64))
    with pytest.raises(CalibError, match="C003"):
        GroupedRecalibrator(Platt(), GROUPS).fit_counts(none)
    one = PairCounts.of([0], [0.5], [True], np.zeros(1, np.uint64))
    with pytest.raises(CalibError, match="C006"):
        GroupedRecalibrator(Platt(), GROUPS).fit_counts(one)
