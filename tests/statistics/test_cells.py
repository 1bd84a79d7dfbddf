"""Pairs in cells: exact sums, and how far maps of them may lie from those of the pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
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
from spacy_calib.schema import Misfit
from spacy_calib.statistics import cells
from spacy_calib.statistics.cells import PairCells, cells_of, edges_of_cells
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
ONE = Groups(("all",), np.array([0]))
PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40)


def make_pairs(n: int, seed: int, digits: int, n_tags: int = 4) -> Pairs:
    """n pairs whose tags need maps of their own."""
    rng = np.random.default_rng(seed)
    tags, scores = rng.integers(0, n_tags, n), rng.random(n).round(digits)
    return Pairs(np.arange(n), tags, scores, rng.random(n) < scores ** (1 + tags), n)


def learned(maps: GroupedRecalibrator) -> list:
    """Everything that was learned, as bytes."""
    state = maps.state()
    arrays = [one["learned"] for one in (state["pooled"], *state["maps"]) if one is not None]
    pooling = [] if state["pooling"] is None else [state["pooling"]["learned"][name] for name in ("tags", "groups")]
    numbers = [(name, np.asarray(value).tobytes()) for one in [*arrays, *pooling] for name, value in one.items()]
    return [*numbers, state["fits"], state["pooled_fit"]]


@given(st.integers(0, 2**32), st.sampled_from([2, 7, 100]))
@settings(max_examples=10, deadline=None)
def test_any_tree_of_shards_gives_the_bytes_of_one_pass(seed, n_shards):
    pairs = make_pairs(150, seed, 9)
    rng = np.random.default_rng(seed)
    of_pair = rng.integers(0, n_shards, len(pairs))
    parts = [
        PairCells.of(pairs.tags[own], pairs.scores[own], pairs.hits[own], 4, 64)
        for own in (of_pair == shard for shard in range(n_shards))
    ]
    whole = PairCells.of(pairs.tags, pairs.scores, pairs.hits, 4, 64)
    merged = merged_in_a_tree(parts, rng)
    assert bytes_of(merged) == bytes_of(whole) == bytes_of(PairCells.from_arrays(whole.arrays()))
    for method in METHODS:
        ours, theirs = (GroupedRecalibrator(method, GROUPS, TagOffsets(1.0, 1.0)).fit_counts(one) for one in (merged, whole))
        assert learned(ours) == learned(theirs)


def test_a_cell_stands_for_its_pairs_by_their_mean():
    # .5 and .5001 share a cell of 64 (each is 40 / 64 wide in log-odds from 0 on), .9 has one of its own
    held = PairCells.of([1, 1, 1], [0.5, 0.5001, 0.9], [True, False, True], 3, 64)
    assert (held.total, held.total_hits, held.nbytes) == (3, 2, 3 * 64 * 24)
    tagged = held.tagged()
    assert tagged.tags.tolist() == [1, 1, 1]
    assert tagged.scores.tolist() == pytest.approx([0.50005, 0.50005, 0.9], abs=2**-32)
    assert tagged.hits.tolist() == [False, True, True]
    assert tagged.weights.tolist() == [1, 1, 1]


def test_maps_of_pairs_alone_in_their_cells_are_those_of_the_pairs():
    # sixteenths, each in a cell of its own, and whole multiples of the unit of the sums
    pairs = make_pairs(600, 3, 12)
    pairs = replace(pairs, scores=np.round(pairs.scores * 16) / 16)
    held = PairCells.of(pairs.tags, pairs.scores, pairs.hits, 4)
    for method in METHODS:
        ours, theirs = GroupedRecalibrator(method, GROUPS).fit_counts(held), GroupedRecalibrator(method, GROUPS).fit(pairs)
        assert learned(ours) == learned(theirs)
    scores = np.linspace(0, 1, 40)
    of_cells, of_pairs = GroupedVennAbers(GROUPS).fit_counts(held), GroupedVennAbers(GROUPS).fit(pairs)
    assert np.array_equal(of_cells.interval(scores, pairs.tags[:40]), of_pairs.interval(scores, pairs.tags[:40]))
    for offsets in (
        TagOffsets(1.0, 4.0),
        TagOffsets(),
    ):  # whose sums are taken over distinct pairs, so that they agree to rounding
        one, other = GroupedRecalibrator(Beta(), GROUPS, offsets), GroupedRecalibrator(Beta(), GROUPS, offsets)
        ours, theirs = one.fit_counts(held).offsets, other.fit(pairs).offsets
        assert np.allclose(ours.tags_.values, theirs.tags_.values, rtol=0, atol=1e-9)
        assert np.abs(theirs.tags_.values).max() > 0.1
        assert ours.describe() == theirs.describe()


def test_no_pairs_and_too_few_are_refused():
    with pytest.raises(CalibError, match="C003"):
        GroupedRecalibrator(Platt(), GROUPS).fit_counts(PairCells.of([], [], [], 4))
    with pytest.raises(CalibError, match="C006"):
        GroupedRecalibrator(Platt(), GROUPS).fit_counts(PairCells.of([0], [0.5], [True], 4))


def test_memory_is_bounded_whatever_the_number_of_labels():
    assert [cells_of(n) for n in (1, 50, 170, 171, 5000)] == [16384, 16384, 16384, 8192, 512]
    assert all(cells_of(n) * n * 24 <= 64 << 20 for n in (1, 170, 171, 5000, 100_000))


def test_cells_cover_scores_without_moving_any_between_processors():
    edges = edges_of_cells(1 << 14)
    assert (np.diff(edges) > 2 * cells._GRID).all()
    assert 0 < edges[0] < 1e-8
    assert 1 - 1e-8 < edges[-1] < 1


# The bound on isotonic regression: docs/statistics.md has the proof.


def excess_of_cells(scores, hits, n_cells: int) -> tuple[float, float, float]:
    """(training Brier of the steps on cells less that of exact isotonic regression, the same of the map, largest share of a mixed cell)."""
    given, tags, n = np.asarray(scores), np.zeros(len(scores), int), len(scores)
    exact = IsotonicRegression().fit(given, hits).predict(given)
    held = PairCells.of(tags, given, hits, 1, n_cells)
    fitted = IsotonicRegression().fit(*held.weighted(ONE)[0])
    at = np.searchsorted(edges_of_cells(n_cells), given, side="right")
    means = held.sums[0][at] * cells.UNIT / held.pairs[0][at]
    mixed = np.bincount(at, means != given) > 0
    share = np.bincount(at)[mixed].max(initial=0) / n

    def brier(said):
        return float(np.mean((said - hits) ** 2))

    return brier(fitted.predict(means)) - brier(exact), brier(fitted.predict(given)) - brier(exact), share


@given(PAIRS, st.sampled_from([2, 3, 8, 32]))
@settings(max_examples=150, deadline=None)
@example([(0.45, False), (0.55, True)], 2)
def test_isotonic_on_cells_is_no_worse_than_the_bound(pairs, n_cells):
    scores, hits = (np.array(column) for column in zip(*pairs, strict=True))
    scores = np.round(scores / cells.UNIT) * cells.UNIT  # as a table holds them
    steps, mapped, share = excess_of_cells(scores, hits, n_cells)
    assert -1e-12 <= steps <= share / 3 + 1e-12
    assert mapped <= 11 / 6 * share + 1e-12


def test_the_bound_of_steps_is_the_best_possible():
    # Cell i of 62 holds i hits above 64 - i misses: what the cells hide comes to a third of a cell as they grow in number and size.
    n, edges = 64, edges_of_cells(64)
    scores = np.concatenate([np.linspace(a, b, n + 2)[1:-1] for a, b in zip(edges[:-1], edges[1:], strict=True)])
    hits = np.concatenate([np.arange(n) >= n - i for i in range(1, n - 1)])
    steps, mapped, share = excess_of_cells(np.round(scores / cells.UNIT) * cells.UNIT, hits, n)
    assert 0.32 * share < steps <= share / 3
    assert mapped <= 11 / 6 * share


@pytest.mark.parametrize("n_cells", [1024, 16384])
def test_the_bound_holds_with_room_on_many_pairs(n_cells):
    pairs = make_pairs(20_000, 0, 12, 1)
    _, mapped, share = excess_of_cells(pairs.scores, pairs.hits, n_cells)
    assert mapped <= 0.2 * share


def test_what_does_not_add_up_is_refused(monkeypatch):
    few, many = PairCells.of([0], [0.5], [True], 1, 4), PairCells.of([0], [0.5], [True], 1, 8)
    with pytest.raises(CalibError, match="C421.*1 tags with 4 cells each.*1 tags with 8 cells each"):
        PairCells.merged([few, many])
    monkeypatch.setattr(cells, "_MOST_PAIRS", 1)
    with pytest.raises(CalibError, match="C422"):
        PairCells.merged([few, few])
    with pytest.raises(CalibError, match="C001.*below 1"):
        PairCells.of([1], [0.5], [True], 1)
    arrays = few.arrays()
    for name, value, why in (
        ("sums", None, "there"),
        ("hits", arrays["hits"][:, :2], r"of the shape of the pairs \(1, 4\)"),
        ("pairs", arrays["pairs"].astype(float), "whole numbers from 0 on"),
        ("pairs", arrays["pairs"][0], "a two-dimensional array"),
        ("pairs", arrays["pairs"] + np.uint64(9), "numbers from 0 to 1"),
        ("every", np.zeros((1, 0), dtype=np.uint64), "one cell at least"),
        ("hits", arrays["hits"] + np.uint64(9), "up to those of the pairs"),
        ("sums", arrays["sums"] + np.uint64(9), "means lie in their cells"),
        ("sums", arrays["sums"] * np.uint64(0), "means lie in their cells"),
    ):
        changed = {key: held for key, held in {**arrays, name: value}.items() if held is not None}
        changed = changed if name != "every" else dict.fromkeys(arrays, value)
        with pytest.raises(Misfit, match=f"'({name}|pairs)' is not .*{why}"):
            PairCells.from_arrays(changed)
