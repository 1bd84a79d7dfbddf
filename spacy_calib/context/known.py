"""The forms and endings that a context knows: those that it met often enough, kept as salted digests, not as words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..pairs.keyed import keyed
from ..schema import Saved, digests, kept, text
from ..types import Ints
from .words import Flags, Hashes, Words

# What was met less often says much of the texts that it was met in, and little of new ones.
FEWEST = 3
# How many digests of either kind are remembered from one text to the next.
_MOST_REMEMBERED = 1 << 18


class _Places:
    """Finds digests in a list, and remembers what it found. held (Hashes): The list, rising."""

    def __init__(self, held: Hashes):
        self.held = held
        # What was asked for so far, rising, and the place of each; one object, so that threads never see half of it.
        self._found = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.intp)

    def of(self, values: Hashes, salt: str) -> Ints:
        """The place of the salted digest of each value; -1 where it is not in the list."""
        if not len(self.held):
            return np.full(len(values), -1, dtype=np.intp)
        asked, places = self._found
        at = np.searchsorted(asked, values)
        new = asked.take(at, mode="clip") != values if len(asked) else np.ones(len(values), dtype=bool)
        if new.any():
            asked, places = self._found = self._with(np.unique(values[new]), np.unique(values), salt)
            at = np.searchsorted(asked, values)
        return places[at]

    def _with(self, new: Hashes, every: Hashes, salt: str) -> tuple[Hashes, Ints]:
        """All that is remembered with the new ones; the last ones alone where these are too many."""
        asked, places = self._found
        if len(asked) + len(new) > _MOST_REMEMBERED:
            asked, places, new = asked[:0], places[:0], every
        made = keyed(new, salt)
        place = np.minimum(np.searchsorted(self.held, made), len(self.held) - 1)
        asked, places = np.concatenate([asked, new]), np.concatenate([places, np.where(self.held[place] == made, place, -1)])
        order = np.argsort(asked)
        return asked[order], places[order]


@dataclass(eq=False)
class KnownWords(Saved):
    """forms, endings (Hashes): Salted digests, rising. salt (str): Theirs."""

    forms: Hashes = kept(digests)
    endings: Hashes = kept(digests)
    salt: str = kept(text, "")

    def __post_init__(self) -> None:
        self._forms, self._endings = _Places(self.forms), _Places(self.endings)

    @classmethod
    def of(cls, words: Words) -> KnownWords:
        """The words that stand in these tokens often enough, by digests without salt."""
        return cls(_frequent(words.forms[words.counts]), _frequent(words.endings[words.counts]))

    def salted(self, salt: str) -> tuple[KnownWords, dict[str, Ints]]:
        """(the same by salted digests, the new place of each "form" and "ending"). The salt changes places alone."""
        made = {"form": keyed(self.forms, salt), "ending": keyed(self.endings, salt)}
        orders = {name: np.argsort(held) for name, held in made.items()}
        forms, endings = (made[name][orders[name]] for name in ("form", "ending"))
        return KnownWords(forms, endings, salt), {name: np.argsort(order) for name, order in orders.items()}

    def places(self, words: Words) -> tuple[Ints, Ints]:
        """(the place of each token's form among the known ones, that of its ending); -1 for what is not known."""
        return self._forms.of(words.forms, self.salt), self._endings.of(words.endings, self.salt)


def no_words() -> KnownWords:
    """No words: they were hidden, or there are none."""
    return KnownWords(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64))


def unusual_words(words: Words) -> Flags:
    """Of each token, whether its form would be too rare to be known, were it not for this token."""
    _, place, counts = np.unique(words.forms, return_inverse=True, return_counts=True)
    return counts[place] - 1 < FEWEST


def _frequent(values: Hashes) -> Hashes:
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts >= FEWEST]
