"""Statistics of a judgement: they add up, and damaged files of them are one sentence."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.corpus.missed import ByDocument, Caught, Finds
from spacy_calib.errors import CalibError
from spacy_calib.expect.record import SeenSums
from spacy_calib.metrics.calibration_error import gmce, mean_of, smce
from spacy_calib.metrics.noise_floor import noise_floor
from spacy_calib.metrics.proper import PROPER, brier, log_loss
from spacy_calib.metrics.smooth_error import SmoothCalibrationError
from spacy_calib.metrics.table import calibration_table
from spacy_calib.pairs.build import JudgedPairs, top_pairs
from spacy_calib.pairs.documents import by_unit
from spacy_calib.statistics.blocks import lowest
from spacy_calib.statistics.cells import PairCells
from spacy_calib.statistics.file import VERSION
from spacy_calib.statistics.further_tables import EventCounts, FlagCounts
from spacy_calib.statistics.identity import Shard
from spacy_calib.statistics.judged import JudgedStatistics, count_judged, raw_figures, table_of_counts
from spacy_calib.statistics.tables import JudgedCounts
from spacy_calib.types import Groups, Pairs
from tests.statistics.test_collected import LABELS, changed_header, identity, with_array

from .test_tables import merged_in_a_tree

ABOUT = {
    "name": "calib", "attr": "calib", "layer": "tag", "accuracy_is": "accuracy", "event": "exact", "called": ["entity", "entities"],
    "groups": Groups(("all",), np.zeros(3, dtype=int), np.array([5, 4, 3])).state(), "span_groups": None, "bins": 10, "n_groups": None,
    "precision": None, "weights_changed": False, "recall": {"recall": 0.9, "confidence": 0.95, "per": "all", "cutoffs": {"all": 0.2}},
    "events": [{"name": "calib_event", "event": "all right", "called": ["sentence", "sentences"], "rivals": ["raw", "calibrated"]}],
}  # fmt: skip


def judged(name: str, seed: int = 1) -> JudgedStatistics:
    """Of two documents of two tokens, each with a pair of every label."""
    rng = np.random.default_rng(seed)
    tags = np.tile(np.arange(3), 4)
    pairs = Pairs(np.repeat(np.arange(4), 3), tags, rng.random(12), tags == 1, 4)
    documents = np.repeat([0, 1], 6)
    digests = rng.integers(0, 1 << 63, 2).astype(np.uint64)
    tokens = count_judged(JudgedPairs(pairs, rng.random(12), documents, "document"), len(LABELS), digests)
    held = {"judged": 3, "kept": 2, "right": 1}
    shards = (Shard(name, name, 2),)
    units, seen = frozenset({"document"}), SeenSums(2, 0, 40, 1)
    event = EventCounts.of(*rng.random((3, 4)).round(1), hits=[1, 0, 0, 1], blocks=digests[[0, 0, 1, 1]])
    finds = Finds(*(ByDocument(np.array([3, 0]), np.array([one, 0])) for one in (2, 1, 0)))
    flags = FlagCounts.of({"all": Caught(finds, finds)}, ["all"], digests)
    return JudgedStatistics(
        identity(fit="f"), ABOUT, shards, tokens, None, units, lowest([digests]), seen, held, (event,), flags
    )


def test_shards_add_up_in_any_order_and_survive_saving():
    one, two, three = (judged(name, seed) for seed, name in enumerate("abc"))
    whole = JudgedStatistics.merged([one, two, three])
    assert JudgedStatistics.merged([three, JudgedStatistics.merged([two, one])]).to_bytes() == whole.to_bytes()
    assert JudgedStatistics.from_bytes(whole.to_bytes()).to_bytes() == whole.to_bytes()
    assert (whole.n_documents, whole.tokens.total, whole.tokens.units) == (6, 36, 12)
    assert (whole.accepted, whole.seen) == ({"judged": 9, "kept": 6, "right": 3}, SeenSums(6, 0, 120, 3))
    assert (whole.events[0].total, whole.events[0].total_hits) == (12, 6)
    ((key, caught),) = whole.flags.caught(["all"])
    assert (key, caught.predicted.flagged.totals(), caught.flagged.touched.totals()) == ("all", (9, 6), (9, 0))
    twice = JudgedStatistics.merged([one, replace(one, shards=(Shard("again", "again", 2),))])
    assert (twice.n_documents, twice.tokens.total) == (2, 24)
    with pytest.raises(CalibError, match=r"C425.*they differ in the fit of the calib pipe \(f; g\)"):
        JudgedStatistics.merged([one, replace(two, identity=identity(fit="g"))])


def without(data: bytes, member: str) -> bytes:
    """The file without one of its arrays."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as held, zipfile.ZipFile(made, "w") as copy:
        for name in set(held.namelist()) - {member}:
            copy.writestr(name, held.read(name))
    return made.getvalue()


def test_damaged_files_are_one_sentence():
    data = judged("a").to_bytes()
    broken = {
        "cut short": data[: len(data) // 2],
        f"C429.*version 1, but this spacy-calib reads version {VERSION}": changed_header(
            data, f'"version": {VERSION}', '"version": 1'
        ),
        "C430.*collected for `calib fit`": changed_header(data, '"statistics_for": "evaluate"', '"statistics_for": "fit"'),
        "'header.about.layer' is not there": changed_header(
            data, '"layer": "tag",\n  "accuracy', '"lair": "tag",\n  "accuracy'
        ),
        "'header.about.groups' is not": changed_header(data, '"groups": {', '"groups": [], "others": {'),
        "'header.accepted.kept' is not": changed_header(data, '"kept": 2', '"kept": -2'),
        "'tokens.units' is not there": without(data, "tokens.units.npy"),
        "'header.accepted' is not consistent: 'right' is above 'kept'": changed_header(data, '"right": 1', '"right": 3'),
        "'header.seen' is not consistent: 'known' is above 'compared'": changed_header(data, '"known": 1', '"known": 99'),
        "'tokens.tags' is not an array of 3 labels": with_array(data, "tokens.tags", np.arange(12, dtype=np.uint8)),
        "'tokens.calibrated' is not an array of numbers from 0 to 1": with_array(
            data, "tokens.calibrated", np.full(12, np.nan)
        ),
        "'tokens.hits' is not an array of numbers up to": with_array(data, "tokens.hits", np.full(12, 9, dtype=np.uint8)),
        "'events.0.forecast' is not there": without(data, "events.0.forecast.npy"),
        "'flags.blocks' is not there": without(data, "flags.blocks.npy"),
        "'flags.tags' is not an array of the 6 parts of 1 cut-offs": with_array(
            data, "flags.tags", np.arange(1, 7, dtype=np.uint8)
        ),
        "'header.about.recall.per' is not": changed_header(data, '"per": "all"', '"per": "each"'),
    }
    for sentence, content in broken.items():
        with pytest.raises(CalibError, match=sentence):
            JudgedStatistics.from_bytes(content, "some.npz")


def test_a_flipped_bit_changes_nothing_or_is_one_sentence():
    data = judged("a").to_bytes()
    known, told = b"", set()
    for at in range(len(data) - 500, len(data)):  # the directory of the zip, which no checksum covers
        flipped = b"".join([data[:at], bytes([data[at] ^ 1 << at % 8]), data[at + 1 :]])
        try:
            known = JudgedStatistics.from_bytes(flipped).to_bytes()
        except CalibError as error:
            told.add(error.code)
        assert known in (b"", data)
    assert told == {"C427"}


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
