"""What cut-offs of recall find, counted: the rows of the tokens themselves, from any shards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.calibration.cutoffs import EntityScores, EntityTypes, RecallCutoffs
from spacy_calib.corpus.missed import EntityTokens, GoldEntities, rows_of
from spacy_calib.statistics.further_tables import FlagCounts, flagged_rows

from .test_tables import merged_in_a_tree

TYPES = EntityTypes(("PER", "LOC"), np.array([-1, 0, 1]))  # O, PER, LOC
CUTOFFS = {
    "all": RecallCutoffs(0.9, 0.8, "all", {"all": 0.4}),
    "label": RecallCutoffs(0.9, 0.8, "label", {"PER": 0.3, "GONE": 0.1, "LOC": None}),
}


def tokens_of(seed: int, n: int = 60) -> EntityTokens:
    """n tokens of documents of five; each tenth has no score, and gold entities are single tokens."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([2, 1, 1], n)
    scored = np.arange(n) % 10 > 0
    rows, labels = np.nonzero((probabilities >= 0.2) & scored[:, None])
    gold, said = rng.integers(-1, 2, n), probabilities.argmax(axis=1) - 1
    inside = np.flatnonzero(gold >= 0)
    entities = GoldEntities(inside, inside + 1, [TYPES.names[kind] for kind in gold[inside]])
    scores = EntityScores(rows, labels - 1, probabilities[rows, labels], n, 0.2)
    return EntityTokens(TYPES, 2, scores, scored, gold, said, np.arange(n) // 5, entities)


def counts_of(tokens: EntityTokens, cutoffs: RecallCutoffs, first: int) -> FlagCounts:
    """first (int): Digest of the first document."""
    digests = (first + np.arange(len(tokens.gold))).astype(np.uint64)
    return FlagCounts.of(tokens.caught(cutoffs), list(cutoffs.values), digests)


@pytest.mark.parametrize("per", ["all", "label"])
def test_the_rows_are_those_of_the_tokens(per):
    tokens, cutoffs = tokens_of(1), CUTOFFS[per]
    counts = counts_of(tokens, cutoffs, 0)
    assert FlagCounts.from_arrays(counts.arrays()).arrays().keys() == counts.arrays().keys()
    rows = flagged_rows(counts, cutoffs)
    assert rows == [{"wanted": 0.9, **row} for row in rows_of(tokens, cutoffs)]
    assert [row["key"] for row in rows] == (["all"] if per == "all" else ["PER", "LOC"])
    # Counted by hand, one token after the other.
    for row in rows:
        wanted = [
            i
            for i in range(60)
            if tokens.scored[i] and (per == "all" or TYPES.names[tokens.gold[i]] == row["key"]) and tokens.gold[i] >= 0
        ]
        assert (row["tokens"], row["entities"]) == (len(wanted), len(wanted))
        assert row["found"] == row["touched"]
        said = [
            i
            for i in range(60)
            if tokens.scored[i] and tokens.said[i] >= 0 and (per == "all" or TYPES.names[tokens.said[i]] == row["key"])
        ]
        assert (row["predicted"]["flagged"], row["predicted"]["found"]) == (len(said), len({*said} & {*wanted}))


def test_a_type_that_no_gold_has_keeps_its_row():
    tokens = tokens_of(1)
    tokens = replace(tokens, gold=np.full(60, -1), entities=GoldEntities(*np.zeros((2, 0), dtype=np.intp), []))
    rows = flagged_rows(counts_of(tokens, CUTOFFS["label"], 0), CUTOFFS["label"])
    assert rows == [{"wanted": 0.9, **row} for row in rows_of(tokens, CUTOFFS["label"])]
    assert [(row["key"], row["predicted"]["found"]) for row in rows] == [("PER", 0), ("LOC", 0)]
    assert rows[0]["predicted"]["flagged"] > 0


def test_any_tree_of_shards_gives_the_same_bits():
    parts = [counts_of(tokens_of(i), CUTOFFS["label"], 100 * i) for i in range(7)]
    trees = [merged_in_a_tree(list(parts), np.random.default_rng(seed)) for seed in range(3)]
    assert len({b"".join(array.tobytes() for array in tree.arrays().values()) for tree in trees}) == 1
    assert flagged_rows(trees[0], CUTOFFS["label"])[0]["flagged"] == sum(
        flagged_rows(part, CUTOFFS["label"])[0]["flagged"] for part in parts
    )


def test_nothing_has_a_score():
    none = FlagCounts.of({}, ["all"], np.zeros(0, np.uint64))
    assert flagged_rows(none, CUTOFFS["all"]) == []
    assert flagged_rows(FlagCounts.merged([none, none]), CUTOFFS["all"]) == []
