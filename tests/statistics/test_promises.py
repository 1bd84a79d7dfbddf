"""Conformal cuts from tables: those of the tokens themselves."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import IsotonicRegression, Platt
from spacy_calib.calibration.sets import ConformalSets
from spacy_calib.calibration.token_fit import Chosen, TokenData, fit_tokens
from spacy_calib.errors import CalibError
from spacy_calib.pairs.build import pair_up
from spacy_calib.statistics.promises import fit_sets, held_out_scores
from spacy_calib.statistics.tables import PairCounts
from spacy_calib.types import Groups, Marginals

from .test_maps import shards_of

GROUPS = Groups(("a", "b"), np.array([0, 1, 1]))
N = 300


@pytest.fixture(scope="module")
def data() -> TokenData:
    """300 tokens of 30 documents with three tags; the gold tag of some is unknown, of some below the threshold, of some there is none."""
    rng = np.random.default_rng(4)
    probabilities = rng.dirichlet([0.4] * 3, N).round(3)
    probabilities[:, 2] = 1 - probabilities[:, 0] - probabilities[:, 1]
    rows, tags = np.nonzero(probabilities >= 0.05)
    gold = np.array([rng.choice(3, p=one / one.sum()) for one in np.clip(probabilities, 0, 1) ** 0.7])
    gold[::40], gold[7::50] = -1, -2
    pairs = pair_up(Marginals(rows, tags, np.clip(probabilities[rows, tags], 0, 1), N), gold)
    return TokenData(pairs, gold, pairs.rows // 10, 3, 0.05)


def table_of(data: TokenData, n_shards: int = 1) -> PairCounts:
    return shards_of(data.pairs, data.documents.astype(np.uint64), n_shards, np.random.default_rng(n_shards))


@pytest.mark.parametrize("coverage", ["marginal", "tag"])
@pytest.mark.parametrize("prototype", [IsotonicRegression(), Platt()], ids=["isotonic", "platt"])
@pytest.mark.parametrize("min_tokens", [20, 100])
def test_cuts_of_counts_are_those_of_the_tokens(data, coverage, prototype, min_tokens):
    sets = ConformalSets(0.1, coverage, min_tokens)
    chosen = Chosen(lambda labels, counts: GROUPS, prototype, None, None, data.pairs.scores)
    theirs = fit_tokens(data, chosen, GROUPS, sets=sets).calibration.sets
    assert theirs is not None
    gold, unknown = np.bincount(data.gold[data.gold >= 0], minlength=3), int((data.gold == -1).sum())
    for n_shards in (1, 7):
        counts = table_of(data, n_shards)
        maps = GroupedRecalibrator(prototype, GROUPS).fit_counts(counts)
        ours = fit_sets(sets, counts, held_out_scores(counts, maps), gold, unknown, GROUPS)
        names = ["of_all_", "of_tag_", *(["of_group_"] if coverage == "tag" else [])]
        for one, other in ((getattr(ours, name), getattr(theirs, name)) for name in names):
            assert np.array_equal(one.values, other.values)
            assert np.array_equal(one.tokens, other.tokens)
        assert ours.out_of_reach_ == theirs.out_of_reach_
        assert ours.describe(list("abc"))["tokens"] == theirs.describe(list("abc"))["tokens"]
        assert np.array_equal(
            ours.predict(data.pairs.rows, data.pairs.tags, data.pairs.scores, N)[0],
            theirs.predict(data.pairs.rows, data.pairs.tags, data.pairs.scores, N)[0],
        )


def test_what_counts_do_not_tell_is_refused(data):
    counts, gold = table_of(data), np.array([9, 9, 9])
    with pytest.raises(CalibError, match="C423.*likeliest tag"):
        fit_sets(ConformalSets(0.1, "group"), counts, counts.scores, gold, 0, GROUPS)
    one = PairCounts.of([0, 0], [0.1, 0.5], [True, False], np.zeros(2, np.uint64))
    with pytest.raises(CalibError, match="C424.*1 was counted"):
        held_out_scores(one, GroupedRecalibrator(Platt(), GROUPS).fit_counts(one))
    with pytest.raises(CalibError, match="C071"):
        fit_sets(ConformalSets(), counts.take(counts.hits > 9), np.zeros(0), np.zeros(3, int), 0, GROUPS)
