"""What a calibration table needs of any number of shards, in a form that adds up; and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..calibration.cutoffs import RecallCutoffs
from ..calibration.grouped import Countable
from ..calibration.grouping.named import group_beside
from ..calibration.grouping.tag_frequency import tag_frequency_groups
from ..expect.record import SeenSums
from ..metrics.calibration_error import gmce, mean_of, smce
from ..metrics.noise_floor import noise_floor
from ..metrics.proper import PROPER, brier, log_loss
from ..metrics.table import calibration_table
from ..pairs.build import JudgedPairs, top_pairs
from ..pairs.documents import DOCUMENT, block_of, joint_unit
from ..schema import Misfit, choice, digests, flag, listed, maybe, number, optional, plain, record, text, whole
from ..types import OUTSIDE, Groups, Pairs
from .blocks import count_distinct, lowest
from .collected import FitStatistics
from .file import FOR_EVALUATE, Arrays, below, column_of, made_of, pack, unpack, with_prefix
from .further_tables import EVENT, PARTS, EventCounts, FlagCounts
from .identity import Identity, Shard, called, check_complete, joined_shards
from .tables import BlockCounts, JudgedCounts

Digests = NDArray[np.uint64]
Table = TypeVar("Table", bound=BlockCounts)

# What is to be known of the pipe; the same of all shards.
ABOUT = record(
    {
        "name": text, "attr": text, "layer": text, "accuracy_is": text, "event": text, "called": listed(text, 2, 2), "groups": plain(Groups),
        "span_groups": maybe(plain(Groups)), "bins": whole(1), "n_groups": maybe(whole(1)), "precision": maybe(number(0.0, 1.0)),
        "weights_changed": maybe(flag), "recall": maybe(plain(RecallCutoffs)), "events": listed(EVENT),
    }
)  # fmt: skip
_SEEN = record(
    {"documents": whole(), "seen": whole(), "compared": whole(), "known": whole()},
    lambda held: _falls(held, "compared", "known"),
)
_ACCEPTED = record({"judged": whole(), "kept": whole(), "right": whole()}, lambda held: _falls(held, "judged", "kept", "right"))
_MISALIGNED = record({"tokens": whole(), "left_out": whole()}, lambda held: _falls(held, "tokens", "left_out"))
_HEADER = record(
    {
        "statistics_for": choice(FOR_EVALUATE), "identity": Identity.read, "about": ABOUT, "shards": listed(Shard.read), "units": listed(text),
        "documents": whole(), "seen": optional(maybe(_SEEN)), "accepted": _ACCEPTED, "misaligned": optional(maybe(_MISALIGNED)),
    }
)  # fmt: skip
# The arrays of plain groups.
_OF_GROUPS = ("of_tag", "counts")
NOTHING_ACCEPTED = {"judged": 0, "kept": 0, "right": 0}


def count_judged(judged: JudgedPairs, n_labels: int, digests: Digests | None = None) -> JudgedCounts:
    """The table of pairs with gold. n_labels (int): Labels that have columns; others share the one behind.

    digests (Digests | None): Of each document; None numbers documents, for a table that is not added to others.
    """
    pairs = judged.pairs
    likeliest = np.zeros(len(pairs), dtype=bool)
    likeliest[top_pairs(pairs)] = True
    tags = np.where(pairs.tags < 0, n_labels, pairs.tags)
    of_pair = judged.documents if digests is None else digests[judged.documents]
    return JudgedCounts.of(tags, pairs.scores, judged.calibrated, pairs.hits, likeliest, of_pair, pairs.n_units)


def _falls(held: dict[str, int], *keys: str) -> str:
    """For `record`: says which number is above the one that it is a part of."""
    wrong = [f"'{part}' is above '{whole}'" for whole, part in pairwise(keys) if held[part] > held[whole]]
    return wrong[0] if wrong else ""


@dataclass(frozen=True, eq=False)
class JudgedStatistics:
    """identity (Identity): Whose they are. about (dict): The pipe, in the form ABOUT. shards (tuple): Of the data.
    tokens (JudgedCounts): Pairs of tokens (or documents) with gold. spans (JudgedCounts | None): Entities; None for a
        pipe of token labels alone. units (frozenset): What documents are. documents (Digests): Their lowest digests.
    seen (SeenSums | None): How much of it the fit saw; None where not known.
    accepted (dict): Entities with gold that are "judged", those "kept" by the cut-offs, and the "right" ones of these.
    events (tuple[EventCounts, ...]): What event pipes say, one for each of about["events"].
    flags (FlagCounts | None): What cut-offs that bound misses find; None where about["recall"] is.
    misaligned (dict | None): Of `count_misaligned`; None where not known, or documents have the labels.
    """

    identity: Identity
    about: dict[str, Any]
    shards: tuple[Shard, ...]
    tokens: JudgedCounts
    spans: JudgedCounts | None
    units: frozenset[str]
    documents: Digests
    seen: SeenSums | None
    accepted: dict[str, int]
    events: tuple[EventCounts, ...] = ()
    flags: FlagCounts | None = None
    misaligned: dict[str, int] | None = None

    @property
    def n_documents(self) -> int:
        """Documents of all shards; exact for a million."""
        return count_distinct(self.documents)

    @property
    def unit(self) -> str:
        """What a document is."""
        return joint_unit(self.units)

    @property
    def name(self) -> str:
        """How messages call them."""
        return called(self.shards)

    @classmethod
    def merged(cls, parts: Sequence[JudgedStatistics]) -> JudgedStatistics:
        """All parts (at least one) as one: the same bytes in whatever order they are merged.

        RAISES C425: statistics of different models, labels or fits. C426: a shard is there twice.
        """
        first = parts[0]
        for part in parts[1:]:
            first.identity.check_same(part.identity, first.name, part.name)
        spans = [part.spans for part in parts if part.spans is not None]
        flags = [part.flags for part in parts if part.flags is not None]
        seen = [part.seen for part in parts if part.seen is not None]
        misaligned = [part.misaligned for part in parts if part.misaligned is not None]
        return replace(
            first,
            shards=joined_shards([part.shards for part in parts]),
            tokens=JudgedCounts.merged([part.tokens for part in parts]),
            spans=JudgedCounts.merged(spans) if spans else None,
            units=frozenset(unit for part in parts for unit in part.units),
            documents=lowest(part.documents for part in parts),
            seen=sum(seen, SeenSums()) if seen else None,
            accepted={key: sum(part.accepted[key] for part in parts) for key in NOTHING_ACCEPTED},
            events=tuple(map(EventCounts.merged, zip(*(part.events for part in parts), strict=True))),
            flags=FlagCounts.merged(flags) if flags else None,
            misaligned={key: sum(one[key] for one in misaligned) for key in misaligned[0]} if misaligned else None,
        )

    def check_complete(self) -> None:
        """RAISES C428: shards are missing, by the names of the others."""
        check_complete(self.shards)

    def arrays(self) -> Arrays:
        """The arrays of all tables, by name."""
        tables: dict[str, BlockCounts | None] = {"tokens": self.tokens, "spans": self.spans, "flags": self.flags}
        tables |= {f"events.{i}": counts for i, counts in enumerate(self.events)}
        held = (with_prefix(name, counts.arrays()) for name, counts in tables.items() if counts is not None)
        return {name: array for arrays in held for name, array in arrays.items()}

    def to_bytes(self) -> bytes:
        """The content of a file."""
        header = {
            "statistics_for": FOR_EVALUATE,
            "identity": self.identity.state(),
            "about": {key: _plain(held) for key, held in self.about.items()},
            "shards": [shard.state() for shard in self.shards],
            "units": sorted(self.units),
            "documents": self.n_documents,
            "seen": None if self.seen is None else vars(self.seen),
            "accepted": self.accepted,
            "misaligned": self.misaligned,
        }
        arrays = {**self.arrays(), "documents": self.documents}
        for name in ("groups", "span_groups"):
            if self.about[name] is not None:
                arrays |= with_prefix(name, {key: self.about[name][key] for key in _OF_GROUPS})
        return pack(header, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, path: object = "these bytes") -> JudgedStatistics:
        """What `to_bytes` wrote. RAISES C427: it cannot be read. C429: another version. C430: statistics for a fit."""
        return unpack(data, path, FOR_EVALUATE, cls._from_parts)

    @classmethod
    def _from_parts(cls, header: dict[str, Any], arrays: Arrays) -> JudgedStatistics:
        """The statistics in a file's parts. RAISES Misfit: they do not fit one another."""
        held = _HEADER(_with_groups(header, arrays), "header")
        identity = held["identity"]
        about, labels, span_labels = held["about"], identity.labels, identity.span_labels
        keys = None if about["recall"] is None else about["recall"]["cutoffs"]
        return cls(
            identity,
            about,
            joined_shards([held["shards"]]),
            _of_labels("tokens", arrays, labels),
            _of_labels("spans", arrays, span_labels) if below("spans", arrays) else None,
            frozenset(held["units"]),
            digests(column_of(arrays, "documents", "u"), "documents"),
            None if held["seen"] is None else SeenSums(**held["seen"]),
            held["accepted"],
            tuple(_table(f"events.{i}", arrays, EventCounts, 1, "the tag 0") for i in range(len(about["events"]))),
            None
            if keys is None
            else _table("flags", arrays, FlagCounts, len(keys) * PARTS, f"the {PARTS} parts of {len(keys)} cut-offs"),
            held["misaligned"],
        )


def _of_labels(name: str, arrays: Arrays, labels: Sequence[str]) -> JudgedCounts:
    """A table of pairs; the tag behind those of the labels stands for all others. RAISES Misfit: it is none."""
    return _table(name, arrays, JudgedCounts, len(labels) + 1, f"{len(labels)} labels")


def _table(name: str, arrays: Arrays, kind: type[Table], n_tags: int, of: str) -> Table:
    """One of the tables. of (str): What its n_tags tags are. RAISES Misfit: it is not of this kind, or of more tags."""
    table = made_of(name, arrays, kind.from_arrays)
    if table.n_tags > n_tags:
        raise Misfit(f"{name}.tags", f"an array of {of}")
    return table


def _plain(held: Any) -> Any:
    """Without the arrays of groups, which stand beside the header."""
    return {key: value for key, value in held.items() if not isinstance(value, np.ndarray)} if isinstance(held, dict) else held


def _with_groups(header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """The header with the arrays of groups in their places, where both are there."""
    about = header.get("about")
    if not isinstance(about, dict):
        return header
    made = dict(about)
    for name in ("groups", "span_groups"):
        if isinstance(about.get(name), dict):
            made[name] = {**about[name], **below(name, arrays)}
    return {**header, "about": made}


def table_of_counts(
    counts: JudgedCounts,
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    unit: str | None = DOCUMENT,
    metrics: Mapping[str, Any] = PROPER,
) -> dict[str, Any]:
    """What `calibration_table` gives of the pairs that were counted; blocks of documents stand for documents.

    n_bins, seed, metrics: As there. unit (str | None): What a document is; None where documents are not known.
    RAISES C190: a metric has the name of a figure that is not a metric.
    """
    rows, hits, weights = counts.by_hit()
    raw, calibrated, likeliest = (key[rows].astype(np.float64) for key in counts.keys)
    pairs = Pairs(np.zeros(len(rows), dtype=np.intp), counts.tags[rows].astype(np.intp), raw, hits, counts.units)
    what = unit or DOCUMENT
    return calibration_table(
        pairs,
        calibrated,
        groups,
        n_bins,
        seed,
        None if unit is None else counts.blocks[rows].astype(np.intp),
        what if counts.documents.single else block_of(what),
        metrics,
        weights,
        np.flatnonzero(likeliest),
    )


def frequency_groups(statistics: FitStatistics) -> Groups:
    """The default groups: labels by gold frequency; for entities and spans "O" is a group of its own."""
    alone = (OUTSIDE,) if statistics.identity.span_labels else ()
    return group_beside(tag_frequency_groups, statistics.identity.labels, statistics.totals.counts, alone)


def raw_figures(counts: Countable, groups: Groups, n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """How true the scores of a fit are before calibration, from the mean scores of the cells of its pairs.

    n_bins, seed: Adaptive bins, and of the simulated floor. RETURNS (dict): "pairs", "groups" (their number), "smce",
        "mean_gmce", "floor" (mean, of SMCE), "brier", "nll"; None without pairs.
    """
    scores, hits, weights, tags = counts.tagged()
    pairs = Pairs(np.zeros(len(scores), dtype=np.intp), tags, scores, hits, 0)
    floor = noise_floor(scores, n_bins, seed=seed, weights=weights)
    return {
        "pairs": int(weights.sum()),
        "groups": len(groups),
        "smce": smce(pairs, None, n_bins, weights=weights),
        "mean_gmce": mean_of(gmce(pairs, groups, None, n_bins, weights=weights)),
        "floor": floor.mean if floor else None,
        "brier": brier(scores, hits, weights),
        "nll": log_loss(scores, hits, weights),
    }
