"""What is counted over all documents of a fit, whether they are sampled or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..pairs.unknown_gold import UnknownGold
from ..schema import keyed, listed, record, text, whole

_CONFUSION = record({"said": text, "gold": text, "tokens": whole(1)})
# The saved form of Totals.
TOTALS = record(
    {
        "rows_with_gold": whole(), "gold_labels": whole(), "unknown_labels": whole(), "labels": keyed(whole()),
        "span_labels": keyed(whole()), "confusions": listed(_CONFUSION), "units": listed(text), "why_missing": text,
    },
    lambda held: "there are more unknown labels than labels" if held["unknown_labels"] > held["gold_labels"] else "",
)  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """n_with_gold (int): Rows (tokens) with gold. n_gold (int): Gold labels; n_unknown (int): Those that the component does not know.
    counts, span_counts (Counter): Gold frequency of each label, and of each label of spans.
    confusions (Counter): (likeliest label, "" for none; gold label) -> tokens. units (frozenset): What the documents are, see `documents`.
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
        """The sums, in an order that is that of the names."""
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
        """Plain data, of the form TOTALS."""
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
        """Rebuild from a state that TOTALS has read."""
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
