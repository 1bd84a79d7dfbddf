"""The words of Docs as arrays, and the forms and endings that a context has weights for, as salted digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..pairs.keyed import salt_digests
from ..schema import Saved, digests, kept, text
from ..types import Floats, Ints

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]


@dataclass(eq=False)
class Words:
    """The tokens of consecutive Docs.

    starts (Ints): First token of each Doc, and the end of the last, shape (n_docs + 1,).
    forms, endings (Hashes): Each token's form in lower case, and its last characters.
    shapes (Ints): 0, plus 1 for a token in title case, plus 2 for one like a number.
    counts (Flags): Whether a token is more than white space; other tokens are left out of the means of a Doc.
    columns (Mapping[str, Floats]): Name of a feature that asks Docs -> its values, shape (n_tokens, k).
    hints (Mapping[str, Floats]): Description -> what the source adds about each token, shape (n_tokens,).
    """

    starts: Ints
    forms: Hashes
    endings: Hashes
    shapes: Ints
    counts: Flags
    columns: Mapping[str, Floats] = field(default_factory=dict)
    hints: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.forms)

    @property
    def docs(self) -> Ints:
        """The number of each token's Doc."""
        return np.arange(len(self.starts) - 1).repeat(self.starts[1:] - self.starts[:-1])

    @classmethod
    def joined(cls, parts: Sequence[Words]) -> Words:
        """Join the words of consecutive batches."""
        if len(parts) < 2:
            return parts[0] if parts else cls.of_documents(0)
        lengths = [np.diff(part.starts) for part in parts]
        return cls(
            np.cumsum(np.concatenate([np.zeros(1, dtype=np.intp), *lengths])),
            np.concatenate([part.forms for part in parts]),
            np.concatenate([part.endings for part in parts]),
            np.concatenate([part.shapes for part in parts]),
            np.concatenate([part.counts for part in parts]),
            {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns},
            {name: np.concatenate([part.hints[name] for part in parts]) for name in parts[0].hints},
        )

    @classmethod
    def of_documents(cls, n: int, hints: Mapping[str, Floats] | None = None) -> Words:
        """Represent n documents as one token each, known by the hints of the source alone."""
        nothing, shapes = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.intp)
        return cls(np.arange(n + 1), nothing, nothing, shapes, np.ones(n, dtype=np.bool_), hints=hints or {})


# Rarer words say much about the texts of the fit, and little about new ones.
MIN_COUNT = 3
# Capacity of the cache of digests, of forms and of endings.
_MAX_CACHED = 1 << 17


class _DigestIndex:
    """Finds digests in a list, and caches the answers. digests (Hashes): The list, ascending."""

    def __init__(self, digests: Hashes):
        self.digests = digests
        # The place of each value asked for so far.
        self._places: dict[int, int] = {}

    def find(self, values: Hashes, salt: str) -> Ints:
        """The place of the salted digest of each value; -1 where it is not in the list."""
        keys = values.tolist()
        try:
            return np.fromiter(map(self._places.__getitem__, keys), np.intp, len(keys))
        except KeyError:
            self._extend(set(keys), salt)
            return self.find(values, salt)

    def _extend(self, keys: set[int], salt: str) -> None:
        """Cache new values; these alone where the cache would grow too large."""
        new = [key for key in keys if key not in self._places]
        if len(self._places) + len(new) > _MAX_CACHED:
            self._places, new = {}, list(keys)
        digests = salt_digests(np.array(new, dtype=np.uint64), salt)
        first, last = self.digests.searchsorted(digests), self.digests.searchsorted(digests, side="right")
        self._places.update(zip(new, np.where(first < last, first, -1).tolist(), strict=True))


@dataclass(eq=False)
class KnownWords(Saved):
    """forms, endings (Hashes): Salted digests, ascending; none for a context that is not fitted. salt (str): Their salt."""

    forms: Hashes = kept(digests, lambda: np.zeros(0, dtype=np.uint64))
    endings: Hashes = kept(digests, lambda: np.zeros(0, dtype=np.uint64))
    salt: str = kept(text, "")

    def __post_init__(self) -> None:
        self._forms, self._endings = _DigestIndex(self.forms), _DigestIndex(self.endings)

    @classmethod
    def from_words(cls, words: Words) -> KnownWords:
        """Collect the frequent words of these tokens, as digests without salt."""
        return cls(_frequent(words.forms[words.counts]), _frequent(words.endings[words.counts]))

    def salted(self, salt: str) -> tuple[KnownWords, dict[str, Ints]]:
        """(the same by salted digests, the new place of each "form" and "ending"). The salt changes places alone."""
        digests = {"form": salt_digests(self.forms, salt), "ending": salt_digests(self.endings, salt)}
        orders = {name: np.argsort(values) for name, values in digests.items()}
        forms, endings = (digests[name][orders[name]] for name in ("form", "ending"))
        return KnownWords(forms, endings, salt), {name: np.argsort(order) for name, order in orders.items()}

    def places(self, words: Words) -> tuple[Ints, Ints]:
        """(the place of each token's form among the known ones, that of its ending); -1 for unknown ones."""
        return self._forms.find(words.forms, self.salt), self._endings.find(words.endings, self.salt)


def _frequent(values: Hashes) -> Hashes:
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts >= MIN_COUNT]
