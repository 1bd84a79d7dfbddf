"""Tables of counts: exact, and the same bytes however they were merged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_calib.errors import CalibError
from spacy_calib.schema import Misfit
from spacy_calib.statistics import blocks
from spacy_calib.statistics.blocks import Blocks
from spacy_calib.statistics.tables import JudgedCounts

SCORES = [0.0, -0.0, 0.25, float(np.float32(0.1)), 0.1, 0.5, 1.0]
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(SCORES), st.booleans(), st.sampled_from([0, 1, 7, 1 << 40, 2**64 - 1])),
    max_size=30,
)


def table(rows) -> JudgedCounts:
    tags, scores, hits, digests = zip(*rows, strict=True) if rows else ((), (), (), ())
    given = np.array(scores, dtype=float)
    of = np.array(digests, dtype=np.uint64)
    return JudgedCounts.of(
        np.array(tags, dtype=int), given, given**2, np.array(hits, dtype=bool), np.zeros(len(given)), of, len(rows)
    )


def bytes_of(counts) -> dict[str, tuple]:
    return {name: (column.dtype.str, column.tobytes()) for name, column in counts.arrays().items()}


def merged_in_a_tree(parts: list, rng: np.random.Generator):
    """Any two or three of them, again and again, until one is left."""
    while len(parts) > 1:
        rng.shuffle(parts)
        some = int(rng.integers(2, 4))
        parts = [type(parts[0]).merged(parts[:some]), *parts[some:]]
    return parts[0]


@settings(deadline=None)
@given(ROWS, st.integers(1, 7), st.integers(0, 2**32), st.sampled_from([1, 3, 1 << 14]), st.sampled_from([1, 4, 1 << 22]))
def test_any_tree_of_shards_gives_the_bytes_of_one_pass(rows, n_shards, seed, most_blocks, piece):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_calib.statistics.blocks.MOST_BLOCKS", most_blocks)
        patch.setattr("spacy_calib.statistics.blocks._PIECE", piece)
        whole = table(rows)
        of_row = rng.integers(0, n_shards, len(rows))
        shards = [table([row for row, own in zip(rows, of_row, strict=True) if own == shard]) for shard in range(n_shards)]
        assert bytes_of(merged_in_a_tree(shards, rng)) == bytes_of(whole)
        assert len(whole.documents) <= most_blocks


@settings(deadline=None)
@given(ROWS)
def test_rows_by_hit_are_the_distinct_pairs_with_their_number(rows):
    counts = table(rows)
    at, hits, weights = counts.by_hit()
    found = zip(counts.tags[at].tolist(), counts.keys[0][at].tolist(), hits.tolist(), counts.blocks[at].tolist(), strict=True)
    numbers = counts.documents.numbers(np.array([row[3] for row in rows], dtype=np.uint64)).tolist()
    assert dict(zip(found, weights, strict=True)) == Counter((*row[:3], n) for row, n in zip(rows, numbers, strict=True))
    assert counts.total == len(rows)
    assert counts.total_hits == sum(row[2] for row in rows)


def test_scores_are_kept_to_the_last_bit():
    single = table([(0, 0.5, True, 0), (0, float(np.float32(0.1)), False, 0)])
    double = table([(0, 0.1, True, 0)])
    assert single.keys[0].dtype == np.float32
    assert double.keys[0].dtype == np.float64
    assert JudgedCounts.merged([single, double]).keys[0].tolist() == [0.1, float(np.float32(0.1)), 0.5]


def test_blocks_are_the_longest_prefixes_that_are_few_enough():
    # 0b00..., 0b01..., 0b10...1, 0b10...0: three prefixes of two bits, four documents
    digests = np.array([0, 1 << 62, 1 << 63, (1 << 63) + 1], dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_calib.statistics.blocks.MOST_BLOCKS", 3)
        found = Blocks.of(digests)
        assert found.bits == 63
        assert found.prefixes.tolist() == [0, 1 << 62, 1 << 63]
        assert found.numbers(digests).tolist() == [0, 1, 2, 2]
    assert Blocks.of(digests).bits == 64


def test_ten_thousand_documents_make_no_more_blocks_than_are_kept():
    digests = np.random.default_rng(0).integers(0, 2**63, 40_000, dtype=np.uint64) * np.uint64(2)
    whole = Blocks.of(digests)
    assert 1 << 13 < len(whole) <= blocks.MOST_BLOCKS
    parts = Blocks.merged([Blocks.of(digests[:100]), Blocks.of(digests[100:])])
    assert (parts.bits, parts.prefixes.tolist()) == (whole.bits, whole.prefixes.tolist())


def test_arrays_come_back_and_others_are_refused():
    counts = table([(1, 0.5, True, 7), (0, 0.1, False, 9)])
    assert bytes_of(JudgedCounts.from_arrays(counts.arrays())) == bytes_of(counts)
    arrays = counts.arrays()
    for name, value, why in (
        ("raw", None, "there"),
        ("hits", arrays["hits"][:1], r"as long as the others \(2\)"),
        ("hits", arrays["hits"] + np.uint8(2), "numbers up to those of the pairs"),
        ("hits", arrays["hits"].astype(np.int8) - 1, "whole numbers from 0 on"),
        ("pairs", arrays["pairs"].astype(float), "array of whole numbers"),
        ("pairs", arrays["pairs"] * 0, "numbers from 1 to"),
        ("pairs", np.full(2, 1 << 53, dtype=np.uint64), "pairs at most"),
        ("raw", arrays["raw"] + 1, "numbers from 0 to 1"),
        ("raw", np.array([0.5, np.nan]), "numbers from 0 to 1"),
        ("raw", np.array([0.5, np.inf]), "numbers from 0 to 1"),
        ("raw", np.array([-0.1, 0.5]), "numbers from 0 to 1"),
        ("raw", np.array([-0.0, 0.5]), "without -0.0"),
        ("raw", np.array([0.1, 0.5], dtype=np.float16), "single or double precision"),
        ("tags", arrays["tags"][::-1], "ascending rows"),
        ("tags", np.zeros((2, 1), dtype=np.uint8), "one-dimensional"),
        ("blocks", arrays["blocks"] + 1, "numbers from 0 to 1"),
        ("bits", np.array([65], dtype=np.uint8), "as many bits"),
        ("prefixes", arrays["prefixes"][::-1], "ascending"),
    ):
        changed = {key: held for key, held in {**arrays, name: value}.items() if held is not None}
        with pytest.raises(Misfit, match=f"'({name}|prefixes)' is not .*{why}"):
            JudgedCounts.from_arrays(changed)


def test_judged_tables_know_the_likeliest_pair_of_each_unit():
    columns = ([0, 1], [0.5, 0.1], [0.4, 0.2], [True, False], [True, False], np.zeros(2, np.uint64))
    arrays = JudgedCounts.of(*columns, units=1).arrays()
    for name, value in (
        ("likeliest", np.array([0.5, 0], dtype=np.float32)),
        ("likeliest", np.ones(2, dtype=np.float32)),
        ("raw", np.array([np.nan, 0.1])),
        ("calibrated", np.array([2, 0.1])),
        ("units", np.array([0], dtype=np.uint64)),
        ("units", np.array([1.0])),
    ):
        with pytest.raises(Misfit, match="'(likeliest|raw|calibrated|units)' is not an? .*"):
            JudgedCounts.from_arrays({**arrays, name: value})


def test_tables_of_judged_pairs_add_up():
    def judged(rows, units):
        return JudgedCounts.of(*(np.array(column) for column in zip(*rows, strict=True)), units=units)

    rows = [(0, 0.5, 0.4, True, True, 7), (0, 0.5, 0.4, False, True, 7), (1, 0.1, 0.2, False, False, 8)]
    whole, parts = judged(rows, 3), [judged(rows[:1], 1), judged(rows[1:], 2)]
    assert bytes_of(JudgedCounts.merged(parts)) == bytes_of(whole) == bytes_of(JudgedCounts.from_arrays(whole.arrays()))
    assert (len(whole), whole.total, whole.total_hits, whole.units) == (2, 3, 1, 3)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tags": [-1, 0]}, "C001"),
        ({"tags": [0]}, "C002"),
        ({"blocks": np.zeros(3, np.uint64)}, "C002"),
        ({"raw": [2, 0]}, "C001"),
        ({"calibrated": [0.5]}, "C002"),
    ],
)
def test_bad_pairs_are_refused(change, code):
    given = {"tags": [0, 1], "raw": [0.5, 0.5], "calibrated": [0.5, 0.5], "hits": [True, False], "likeliest": [0, 0]}
    with pytest.raises(CalibError, match=code):
        JudgedCounts.of(**{**given, "blocks": np.zeros(2, np.uint64), "units": 2, **change})
