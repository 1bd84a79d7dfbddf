"""Conformal cuts from tables: those of the tokens themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.calibration.counted_sets import CountedTokens, fit_counted_sets, held_out_hits
from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import IsotonicRegression, Platt
from spacy_calib.calibration.sets import ConformalSets
from spacy_calib.calibration.token_fit import Chosen, TokenData, fit_tokens
from spacy_calib.errors import CalibError
from spacy_calib.pairs.build import pair_up
from spacy_calib.statistics.cells import PairCells
from spacy_calib.statistics.tables import PairCounts
from spacy_calib.types import Groups, Marginals
from tests.statistics.test_maps import shards_of

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


def counted(data: TokenData, table) -> CountedTokens:
    return CountedTokens(table, np.bincount(data.gold[data.gold >= 0], minlength=3), int((data.gold == -1).sum()))


def chosen(data: TokenData, prototype, offsets=None) -> Chosen:
    return Chosen(lambda labels, counts: GROUPS, prototype, offsets, None, data.pairs.scores)


def sample_of(data: TokenData, n_documents: int) -> TokenData:
    """The first of its documents."""
    n, rows = int(np.searchsorted(data.documents, n_documents)), 10 * n_documents
    return replace(
        data, pairs=replace(data.pairs.take(np.arange(n)), n_units=rows), gold=data.gold[:rows], documents=data.documents[:n]
    )


def same_cuts(one: ConformalSets, other: ConformalSets) -> bool:
    names = ["of_all_", "of_tag_", *(["of_group_"] if one.coverage == "tag" else [])]
    return all(
        np.array_equal(getattr(getattr(one, name), part), getattr(getattr(other, name), part))
        for name in names
        for part in ("values", "tokens")
    )


@pytest.mark.parametrize("coverage", ["marginal", "tag"])
@pytest.mark.parametrize("prototype", [IsotonicRegression(), Platt()], ids=["isotonic", "platt"])
@pytest.mark.parametrize("min_tokens", [20, 100])
def test_cuts_of_counts_are_those_of_the_tokens(data, coverage, prototype, min_tokens):
    sets = ConformalSets(0.1, coverage, min_tokens)
    theirs = fit_tokens(data, chosen(data, prototype), GROUPS, sets=sets).calibration.sets
    assert theirs is not None
    for n_shards in (1, 7):
        table = table_of(data, n_shards)
        maps = GroupedRecalibrator(prototype, GROUPS).fit_counts(table)
        ours = fit_counted_sets(sets, counted(data, table), maps, GROUPS, 5)
        assert ours is not None
        assert same_cuts(ours, theirs)
        assert ours.out_of_reach_ == theirs.out_of_reach_
        assert ours.describe(list("abc"))["tokens"] == theirs.describe(list("abc"))["tokens"]
        assert np.array_equal(
            ours.predict(data.pairs.rows, data.pairs.tags, data.pairs.scores, N)[0],
            theirs.predict(data.pairs.rows, data.pairs.tags, data.pairs.scores, N)[0],
        )


@pytest.mark.parametrize("coverage", ["marginal", "tag"])
def test_of_a_sample_the_cuts_are_those_of_all_tokens_from_any_shards(data, coverage):
    sets, sample = ConformalSets(0.5, coverage), sample_of(data, 5)
    of_all = fit_tokens(data, chosen(data, IsotonicRegression()), GROUPS, sets=sets).calibration.sets
    of_sample = fit_tokens(sample, chosen(sample, IsotonicRegression()), GROUPS, sets=sets)
    found = [
        fit_tokens(sample, chosen(sample, IsotonicRegression()), GROUPS, sets=sets, counted=counted(data, table_of(data, n)))
        for n in (1, 2, 7)
    ]
    for one in found:
        assert same_cuts(one.calibration.sets, of_all)
        assert not same_cuts(one.calibration.sets, of_sample.calibration.sets)
        assert one.of_all == ["maps", "sets"]
        # How many sets are empty says the sample, by the cuts of all.
        cut = one.calibration.sets.tag_cuts() if coverage == "tag" else np.full(4, one.calibration.sets.of_all_.values[0])
        within = 1 - one.held_out <= cut[sample.pairs.tags]
        none = np.bincount(sample.pairs.rows[within], minlength=50) == 0
        assert one.calibration.sets.empty_ == none[sample.gold != -2].mean() > 0
    assert of_sample.of_all == []


def test_other_steps_and_tables_without_documents_leave_the_cuts_to_the_sample(data):
    sample = sample_of(data, 5)
    table, pairs = counted(data, table_of(data)), data.pairs
    cells = counted(data, PairCells.of(pairs.tags, pairs.scores, pairs.hits, 3))
    one_document = PairCounts.of(pairs.tags, pairs.scores, pairs.hits, np.zeros(len(pairs), np.uint64))
    cases = [
        (ConformalSets(0.3, "group"), table, {}),
        (ConformalSets(0.3), table, {"normalize": True}),
        (ConformalSets(0.3), cells, {}),
        (ConformalSets(0.3), counted(data, one_document), {}),
    ]
    for sets, tables, settings in cases:
        fitted = fit_tokens(sample, chosen(sample, Platt()), GROUPS, sets=sets, counted=tables, intervals=True, **settings)
        theirs = fit_tokens(sample, chosen(sample, Platt()), GROUPS, sets=sets, **settings).calibration.sets
        assert fitted.of_all == ["maps", "intervals"]
        assert fitted.calibration.sets.of_all_.tokens == theirs.of_all_.tokens == (sample.gold != -2).sum()


def test_what_counts_do_not_tell_is_refused(data):
    table = table_of(data)
    maps = GroupedRecalibrator(Platt(), GROUPS).fit_counts(table)
    with pytest.raises(CalibError, match="C423.*likeliest tag"):
        ConformalSets(0.1, "group").fit_counts(*np.zeros((3, 0)), np.array([9, 9, 9]), 0, GROUPS)
    with pytest.raises(CalibError, match="gold must be as many tokens as hit at least, but 1 fewer was given"):
        ConformalSets().fit_counts(np.array([0]), np.array([0.5]), np.array([10]), np.array([9, 9, 9]), 0, GROUPS)
    none = table.take(table.hits > 9)
    with pytest.raises(CalibError, match="C071"):
        ConformalSets().fit_counts(none.tags.astype(int), np.zeros(0), np.zeros(0, int), np.zeros(3, int), 0, GROUPS)
    assert held_out_hits(none, maps, 5) == []
