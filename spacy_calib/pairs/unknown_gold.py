"""Gold labels that a component does not know: how many, which, and what it says instead. Knows names, never Docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..types import OUTSIDE

_NAMED = 8


@dataclass(frozen=True)
class UnknownGold:
    """n (int): Tokens whose gold label the component does not know. share (float): Of those with gold, tokens outside of entities left out.
    labels (Sequence[str]): That it knows. pairs (Sequence[tuple]): (its likeliest label, the gold label, tokens), the most frequent first.
    counterparts (Mapping): Each of its labels that the gold has not -> the gold label that it most often stands for.
    """

    n: int
    share: float
    labels: Sequence[str]
    pairs: Sequence[tuple[str, str, int]]
    counterparts: Mapping[str, str]

    @classmethod
    def of(cls, found: Mapping[tuple[str, str], int], n: int, gold: Mapping[str, int], labels: Sequence[str]) -> UnknownGold:
        """found (Mapping): (likeliest label, gold label) -> tokens. n (int): Those of gold labels that are unknown. gold (Mapping): Frequency of
        the gold labels.
        """
        named = sum(count for label, count in gold.items() if label != OUTSIDE)
        every = [(said, wanted, count) for (said, wanted), count in Counter(found).most_common()]
        counterparts: dict[str, str] = {}
        for said, wanted, _ in every:
            if said not in ("", OUTSIDE) and said not in gold:
                counterparts.setdefault(said, wanted)
        known = set(labels)
        pairs = [pair for pair in every if pair[1] not in known]
        return cls(n, min(1.0, n / named) if named else 0.0, list(labels), pairs, counterparts)

    @property
    def unknown(self) -> list[str]:
        """The gold labels, the most frequent first."""
        counts: Counter[str] = Counter()
        for _, wanted, n in self.pairs:
            counts[wanted] += n
        return [label for label, _ in counts.most_common()]

    def suggestion(self) -> str:
        """A map of each label to the gold label that it most often stands for: "PERSON=PER,GPE=LOC,DATE="."""
        pairs = ((said, "" if wanted == OUTSIDE else wanted) for said, wanted in self.counterparts.items())
        return ",".join(f"{said}={wanted}" for said, wanted in pairs) or "LABEL=GOLD"

    def words(self) -> dict[str, Any]:
        """What the sentences about it name."""
        pairs = ", ".join(f"{said or 'nothing'} for {wanted} ({n:,})" for said, wanted, n in self.pairs[:_NAMED])
        return {
            "n": f"{self.n:,}",
            "share": f"{100 * self.share:.1f}",
            "unknown": shorter(self.unknown),
            "known": shorter(self.labels),
            "pairs": pairs or "-",
            "map": self.suggestion(),
        }


def shorter(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
