"""What stands in the tokens of some Docs, as arrays; and the forms and endings that a context knows, as salted digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pairs.keyed import keyed
from ..schema import Saved, digests, kept, text
from ..types import Floats, Ints

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]

# What is known of the shape of a token; `doc/words.py` says which attribute of a lexeme each is.
SHAPES = ("title", "number")


@dataclass(frozen=True, eq=False)
class Words:
    """The tokens of Docs that follow one another.

    starts (Ints): First token of each Doc, and the end of the last, shape (n_docs + 1,).
    forms, endings (Hashes): Of each token's form in lower case, and of its last characters.
    shapes (Mapping[str, Flags]): One of SHAPES -> whether each token has it. counts (Flags): Whether a token is more
        than white space: others have no part in the means of a Doc.
    hints (Mapping[str, Floats]): Description -> what the source says of each token, shape (n_tokens,).
    columns (Mapping[str, Floats]): Name of a feature that asks Docs -> what it says of each token, shape (n_tokens, k).
    """

    starts: Ints
    forms: Hashes
    endings: Hashes
    shapes: Mapping[str, Flags]
    counts: Flags
    columns: Mapping[str, Floats] = field(default_factory=dict)
    hints: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.forms)

    @cached_property
    def docs(self) -> Ints:
        """The number of each token's Doc."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @classmethod
    def joined(cls, parts: Sequence[Words]) -> Words:
        """The words of batches that follow one another."""
        if len(parts) == 1:
            return parts[0]
        lengths = [np.diff(part.starts) for part in parts]
        return cls(
            np.cumsum(np.concatenate([np.zeros(1, dtype=np.intp), *lengths])),
            _joined([part.forms for part in parts], np.uint64),
            _joined([part.endings for part in parts], np.uint64),
            {name: _joined([part.shapes[name] for part in parts], np.bool_) for name in SHAPES},
            _joined([part.counts for part in parts], np.bool_),
            _joined_columns([part.columns for part in parts]),
            _joined_columns([part.hints for part in parts]),
        )

    @classmethod
    def of_documents(cls, n: int, hints: Mapping[str, Floats] | None = None) -> Words:
        """n documents, each as one token, of which nothing is known but what the source says of it."""
        nothing = np.zeros(n, dtype=np.uint64)
        shapes = {name: np.zeros(n, dtype=np.bool_) for name in SHAPES}
        return cls(np.arange(n + 1), nothing, nothing, shapes, np.ones(n, dtype=np.bool_), hints=hints or {})


def _joined_columns(parts: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *arrays])


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
    """Return the words of a context that is not fitted: none."""
    return KnownWords(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64))


def _frequent(values: Hashes) -> Hashes:
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts >= FEWEST]
