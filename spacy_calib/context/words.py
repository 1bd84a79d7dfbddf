"""Words of Docs as arrays, and the vocabulary of a context as salted digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..pairs.keyed import salt_digests
from ..schema import Serializable, digests, saved_field, text
from ..types import Floats, Ints

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]


@dataclass(eq=False)
class Words:
    """The tokens of consecutive Docs, as arrays.

    starts (Ints): First token of each Doc, then the number of tokens, (n_docs + 1,). forms, endings (Hashes): Hash of each
    token's lower-case form, and of its last characters. shapes (Ints): 1 if title-cased, plus 2 if like a number. counts
    (Flags): Whether a token is more than white space. columns (Mapping): Name of a DocFunction -> its values, (n_tokens, k).
    further_scores (Mapping[str, Floats]): Description -> a further score of each token from the source, shape (n_tokens,).
    """

    starts: Ints
    forms: Hashes
    endings: Hashes
    shapes: Ints
    counts: Flags
    columns: Mapping[str, Floats] = field(default_factory=dict)
    further_scores: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.forms)

    @property
    def docs(self) -> Ints:
        """Index of each token's Doc."""
        return np.arange(len(self.starts) - 1).repeat(self.starts[1:] - self.starts[:-1])

    @classmethod
    def concatenate(cls, batches: Sequence[Words]) -> Words:
        """Concatenate the words of consecutive batches."""
        if len(batches) < 2:
            return batches[0] if batches else cls.of_documents(0)
        doc_lengths = np.concatenate([np.diff(batch.starts) for batch in batches])
        names = ("forms", "endings", "shapes", "counts")
        forms, endings, shapes, counts = (np.concatenate([getattr(batch, name) for batch in batches]) for name in names)
        columns = {key: np.concatenate([batch.columns[key] for batch in batches]) for key in batches[0].columns}
        further = {key: np.concatenate([batch.further_scores[key] for batch in batches]) for key in batches[0].further_scores}
        return cls(np.append(0, np.cumsum(doc_lengths)), forms, endings, shapes, counts, columns, further)

    @classmethod
    def of_documents(cls, n: int, further_scores: Mapping[str, Floats] | None = None) -> Words:
        """Represent n documents as one token each, without forms. further_scores: Description -> a score of each, (n,)."""
        no_hashes, shapes = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.intp)
        counts = np.ones(n, dtype=np.bool_)
        return cls(np.arange(n + 1), no_hashes, no_hashes, shapes, counts, further_scores=further_scores or {})


# Rarer forms and endings are left out of the vocabulary: their weights would fit only the texts of the fit.
MIN_COUNT = 3
_MAX_CACHED = 1 << 17  # maximum size of each cache of digests


class _DigestIndex:
    """Finds the index of each value's digest (with the salt) in the ascending array `digests`; caches the indices by value."""

    def __init__(self, digests: Hashes, salt: str):
        self.digests, self.salt = digests, salt
        self._index_by_value: dict[int, int] = {}  # of the values looked up so far

    def find(self, values: Hashes) -> Ints:
        """Return the index of the salted digest of each value; -1 if it is absent."""
        plain_values = values.tolist()
        try:
            return np.fromiter(map(self._index_by_value.__getitem__, plain_values), np.intp, len(plain_values))
        except KeyError:  # some values are not cached
            self._cache_indices(set(plain_values))
            return self.find(values)

    def _cache_indices(self, values: set[int]) -> None:
        """Cache the index of each value; if the cache would grow too large, keep only these values in it."""
        new = [value for value in values if value not in self._index_by_value]
        if len(self._index_by_value) + len(new) > _MAX_CACHED:
            self._index_by_value, new = {}, list(values)
        digests = salt_digests(np.array(new, dtype=np.uint64), self.salt)
        # The first index not below a digest, and the first above it, are the same if the digest is absent.
        first, last = self.digests.searchsorted(digests), self.digests.searchsorted(digests, side="right")
        self._index_by_value.update(zip(new, np.where(first < last, first, -1).tolist(), strict=True))


@dataclass(eq=False)
class KnownWords(Serializable):
    """The vocabulary of a context: salted digests of its forms and endings (Hashes), ascending, and their salt."""

    forms: Hashes = saved_field(digests, lambda: np.zeros(0, dtype=np.uint64))
    endings: Hashes = saved_field(digests, lambda: np.zeros(0, dtype=np.uint64))
    salt: str = saved_field(text, "")

    def __post_init__(self) -> None:
        self._forms, self._endings = _DigestIndex(self.forms, self.salt), _DigestIndex(self.endings, self.salt)

    @classmethod
    def from_words(cls, words: Words) -> KnownWords:
        """Collect the forms and endings that occur at least MIN_COUNT times, as unsalted digests."""
        is_word = words.counts
        return cls(_frequent(words.forms[is_word]), _frequent(words.endings[is_word]))

    def with_salt(self, salt: str) -> tuple[KnownWords, dict[str, Ints]]:
        """Return (this unsalted vocabulary, salted with `salt`; "form" or "ending" -> the new index of each old index)."""
        digests = {"form": salt_digests(self.forms, salt), "ending": salt_digests(self.endings, salt)}
        orders = {name: np.argsort(values) for name, values in digests.items()}
        forms, endings = (digests[name][orders[name]] for name in ("form", "ending"))
        new_indices = {name: np.argsort(order) for name, order in orders.items()}  # the inverse of the order
        return KnownWords(forms, endings, salt), new_indices

    def find_indices(self, words: Words) -> tuple[Ints, Ints]:
        """Return the index of each token's form, and of its ending; -1 for unknown ones."""
        return self._forms.find(words.forms), self._endings.find(words.endings)


def _frequent(values: Hashes) -> Hashes:
    """Return the distinct values that occur at least MIN_COUNT times, ascending."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts >= MIN_COUNT]
