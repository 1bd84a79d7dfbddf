"""Statistics of a judgement: they add up, and damaged files of them are one sentence."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from spacy_calib.corpus.missed import ByDocument, Caught, Finds
from spacy_calib.errors import CalibError
from spacy_calib.expect.seen import SeenSums
from spacy_calib.pairs.judged import JudgedPairs
from spacy_calib.statistics.blocks import lowest
from spacy_calib.statistics.events import EventCounts
from spacy_calib.statistics.file import VERSION
from spacy_calib.statistics.flags import FlagCounts
from spacy_calib.statistics.identity import Shard
from spacy_calib.statistics.judged import JudgedStatistics, count_judged
from spacy_calib.types import Groups, Pairs
from tests.statistics.test_collected import LABELS, changed_header, identity, with_array

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
