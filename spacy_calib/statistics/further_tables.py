"""Tables that add up besides those of pairs: totals of a fit, what cut-offs flag, forecasts of whole units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..calibration.cutoffs import RecallCutoffs
from ..corpus.missed import ByDocument, Caught, Finds
from ..expect.forecasts import split_loss
from ..metrics.calibration_error import calibration_error
from ..metrics.noise_floor import noise_floor
from ..metrics.proper import squared_losses
from ..metrics.resampling import resample_mean
from ..pairs.label_map import UnknownGold
from ..schema import keyed, listed, record, text, whole
from ..types import Floats
from .blocks import Blocks, Digests, Numbers, collapse_rows, smallest
from .tables import BlockCounts

# About an event: its pipe, the question, words for one and several, and what its forecasts stand beside.
EVENT = record({"name": text, "event": text, "called": listed(text, 2, 2), "rivals": listed(text, 2, 2)})


@dataclass(frozen=True, eq=False)
class EventCounts(BlockCounts):
    """What an event pipe forecasts, beside the product of token scores, and how often the answer is yes (a hit)."""

    KEYS: ClassVar[tuple[str, ...]] = ("raw", "product", "forecast")

    @classmethod
    def of(cls, raw: ArrayLike, product: ArrayLike, forecast: ArrayLike, hits: ArrayLike, blocks: ArrayLike) -> EventCounts:
        """The table of n forecasts. raw, product: The product of the tokens' scores, before and after calibration.

        blocks: Digest of each one's document, uint64. RAISES C001: values out of range. C002: lengths differ.
        """
        return cls._counted(np.zeros(np.size(raw), dtype=np.uint8), [raw, product, forecast], hits, blocks)


def event_table(counts: EventCounts, event: Mapping[str, Any], n_bins: int = 10, seed: int = 0) -> dict[str, Any]:
    """Forecasts beside the product of the tokens' scores, raw and calibrated, as plain data.

    event (Mapping): Of the form EVENT.
    RETURNS (dict): event, and "units", "right" (their share), "rows" (of each forecast: name, squared loss, its parts
        calibration and sharpness, SMCE, floor and floor95), and "change": the loss of the forecasts less that of the
        calibrated product, with its interval by document.
    """
    table = {**event, "units": counts.total, "right": None, "rows": [], "change": None}
    if not len(counts):
        return table
    rows, hits, weights = counts.by_hit()
    forecasts = {name: key[rows].astype(np.float64) for name, key in zip(EventCounts.KEYS, counts.keys, strict=True)}
    forecast, product = (squared_losses(forecasts[name], hits) for name in ("forecast", "product"))
    change = resample_mean(forecast - product, counts.blocks[rows], seed=seed, weights=weights)
    return {
        **table,
        "right": counts.total_hits / counts.total,
        "rows": [_forecast_row(name, scores, hits, weights, n_bins, seed) for name, scores in forecasts.items()],
        "change": change and change.interval().to_dict(),
    }


def _forecast_row(name: str, scores: Floats, hits: Any, weights: Floats, n_bins: int, seed: int) -> dict[str, Any]:
    parts, floor = split_loss(scores, hits, weights=weights), noise_floor(scores, n_bins, seed=seed, weights=weights)
    assert parts is not None
    assert floor is not None
    of_parts = {"loss": parts.loss, "calibration": parts.calibration, "sharpness": parts.sharpness}
    smce = calibration_error(scores, hits, n_bins, weights=weights)
    return {"name": name, **of_parts, "smce": smce, "floor": floor.mean, "floor95": floor.q95}


_NAMES = tuple(field.name for field in fields(Finds))
# How many pairs of arrays, units and hits, belong to one cut-off.
PARTS = len(Caught._fields) * len(_NAMES)


@dataclass(frozen=True, eq=False)
class FlagCounts(BlockCounts):
    """Tokens or gold entities, and hits, by block. Tag i is part i % PARTS of `Caught`, of cut-off i // PARTS."""

    @classmethod
    def of(cls, caught: Mapping[str, Caught], keys: Sequence[str], digests: Digests) -> FlagCounts:
        """The table of what cut-offs find. keys (Sequence[str]): Of all of them. digests: Of each document."""
        rows = [_flag_row(tag, part, digests) for key, one in caught.items() for tag, part in _numbered(keys.index(key), one)]
        columns = zip([np.zeros(0, dtype=np.uint64)] * 4, *rows, strict=True)
        tags, of_row, units, hits = (np.concatenate(column) for column in columns)
        documents = Blocks.of(of_row)
        counted = collapse_rows([smallest(tags), documents.numbers(of_row).astype(np.uint16)], units, hits)
        return cls._joined([counted], len(tags), [], documents)

    def caught(self, keys: Sequence[str]) -> Iterator[tuple[str, Caught]]:
        """(key, what its cut-off finds, block by block), for keys with a token that has a score."""
        for number, key in enumerate(keys):
            parts = [self._part(number * PARTS + i) for i in range(PARTS)]
            if len(parts[0].units):
                n = len(_NAMES)
                yield key, Caught(Finds(*parts[:n]), Finds(*parts[n:]))

    def _part(self, tag: int) -> ByDocument:
        own = self.tags == tag
        return ByDocument(self.pairs[own].astype(np.intp), self.hits[own].astype(np.intp))


def flagged_rows(counts: FlagCounts, cutoffs: RecallCutoffs) -> list[dict[str, Any]]:
    """What each cut-off finds (`Caught.row`), and the recall that was "wanted"."""
    caught = counts.caught(list(cutoffs.values))
    return [{"wanted": cutoffs.recall, **one.row(key, cutoffs)} for key, one in caught]


def _numbered(key: int, caught: Caught) -> Iterator[tuple[int, ByDocument]]:
    """(tag, part) of the cut-off with this number."""
    parts = [getattr(finds, name) for finds in caught for name in _NAMES]
    return zip(range(key * PARTS, (key + 1) * PARTS), parts, strict=True)


def _flag_row(tag: int, part: ByDocument, digests: Digests) -> tuple[Numbers, ...]:
    """(tag, digest, units, hits) of each document that has any, all unsigned."""
    own = np.flatnonzero(part.units)
    return (
        np.full(len(own), tag, dtype=np.uint64),
        digests[own],
        part.units[own].astype(np.uint64),
        part.hits[own].astype(np.uint64),
    )


_CONFUSION = record({"said": text, "gold": text, "tokens": whole(1)})
# The form in which files hold Totals.
TOTALS = record(
    {
        "rows_with_gold": whole(), "gold_labels": whole(), "unknown_labels": whole(), "labels": keyed(whole()),
        "span_labels": keyed(whole()), "confusions": listed(_CONFUSION), "units": listed(text), "why_missing": text,
    },
    lambda held: "there are more unknown labels than labels" if held["unknown_labels"] > held["gold_labels"] else "",
)  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """n_with_gold (int): Rows (tokens) with gold. n_gold, n_unknown (int): Gold labels, and those not known.
    counts, span_counts (Counter): Gold frequency of each label, and of each label of spans.
    confusions (Counter): (likeliest label or "", gold label) -> tokens. units (frozenset): What documents are.
    why_missing (str): Why a document that could not be read could not; "" where all were read.
    """

    n_with_gold: int = 0
    n_gold: int = 0
    n_unknown: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    span_counts: Counter[str] = field(default_factory=Counter)
    confusions: Counter[tuple[str, str]] = field(default_factory=Counter)
    units: frozenset[str] = frozenset()
    why_missing: str = ""

    @classmethod
    def merged(cls, parts: Sequence[Totals]) -> Totals:
        """The sums, their keys in the order of names."""
        sums: dict[str, Any] = {
            key: sum(getattr(part, key) for part in parts) for key in ("n_with_gold", "n_gold", "n_unknown")
        }
        sums |= {key: _sum([getattr(part, key) for part in parts]) for key in ("counts", "span_counts", "confusions")}
        units = frozenset(unit for part in parts for unit in part.units)
        return cls(**sums, units=units, why_missing=min(filter(None, (part.why_missing for part in parts)), default=""))

    def unknown(self, labels: Sequence[str]) -> UnknownGold:
        """The gold labels that the component does not know. labels (Sequence[str]): Those that it knows."""
        return UnknownGold.of(self.confusions, self.n_unknown, self.counts, labels)

    def state(self) -> dict[str, Any]:
        """Plain data of the form TOTALS."""
        confusions = [{"said": said, "gold": gold, "tokens": n} for (said, gold), n in self.confusions.items()]
        return {
            "rows_with_gold": self.n_with_gold,
            "gold_labels": self.n_gold,
            "unknown_labels": self.n_unknown,
            "labels": dict(self.counts),
            "span_labels": dict(self.span_counts),
            "confusions": confusions,
            "units": sorted(self.units),
            "why_missing": self.why_missing,
        }

    @classmethod
    def from_state(cls, held: dict[str, Any]) -> Totals:
        """The totals of plain data that TOTALS has checked."""
        return cls(
            held["rows_with_gold"],
            held["gold_labels"],
            held["unknown_labels"],
            Counter(held["labels"]),
            Counter(held["span_labels"]),
            Counter({(one["said"], one["gold"]): one["tokens"] for one in held["confusions"]}),
            frozenset(held["units"]),
            held["why_missing"],
        )


def _sum(parts: Sequence[Counter[Any]]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for part in parts:
        counts.update(part)
    return Counter({key: counts[key] for key in sorted(counts)})
