"""Lists of names: which words and phrases of a text are listed, and what that says of an entity."""

from __future__ import annotations

import hashlib
import unicodedata
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ...types import Floats

# What a file of each kind lists. Files are never changed: a better list gets a new name, as saved pipelines name theirs.
KINDS = (
    "places", "large_places", "companies", "first_names", "surnames", "ordinary_words", "organization_first", "organization_last",
)  # fmt: skip
# Which kinds are about phrases, the rest are about words.
PHRASES = KINDS[:3]
# What the lists say of each token. listed: whether there are lists. A phrase column holds the numbers of tokens that listed
# phrases which begin there have, as bits: 5 = 1 + 4 is for phrases of one and of three tokens.
COLUMNS = ("listed", *KINDS)
# Letters that Unicode does not take apart.
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i", "ħ": "h", "’": "'", "ʻ": "'"})  # fmt: skip
_MOST_TOKENS = 8
# What supports a type: a name that is listed; and what contradicts it.
SUPPORTS = (
    "place", "large place", "first name, several words", "first name alone", "surname, several words", "surname alone", "company",
    "organization word",
)  # fmt: skip
CONTRADICTIONS = (
    "person, but a place", "organization, but a place", "person, but an organization", "place, but an organization",
    "no person, but a person's name", "person, but an ordinary word", "organization, but ordinary words", "place, but ordinary words",
)  # fmt: skip
# The types that the lists are about.
PERSONS, PLACES, ORGANIZATIONS = ("PERSON",), ("GPE", "LOC", "FAC"), ("ORG",)


def list_folder() -> Path:
    """The lists of this package."""
    return Path(__file__).parent / "lists"


def checksum(text: str) -> str:
    """16 hexadecimal digits of SHA-256, by which a pipe's state knows a list."""
    return hashlib.sha256(text.encode("utf8")).hexdigest()[:16]


def read_list(file: Path) -> str:
    """The entries of a list, one a line."""
    return zlib.decompress(file.read_bytes()).decode("utf8")


def current_lists() -> dict[str, str]:
    """Name of the newest list of each kind -> its checksum."""
    files = sorted(list_folder().glob("*.txt.z"), key=lambda file: int(file.name.split(".")[1]))
    newest = {file.name.split(".")[0]: file for file in files}
    return {newest[kind].name.removesuffix(".txt.z"): checksum(read_list(newest[kind])) for kind in KINDS}


@lru_cache(1 << 16)
def fold(text: str) -> str:
    """The text in lower case without accents."""
    lower = text.lower()
    if lower.isascii():
        return lower
    letters = unicodedata.normalize("NFKD", lower.translate(_LETTERS))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


class NameLists:
    """Lists of folded names. entries (Mapping): Kind -> its words or phrases; kinds may be missing."""

    def __init__(self, entries: Mapping[str, Collection[str]]):
        self.entries = {kind: frozenset(entries.get(kind, ())) for kind in KINDS}
        # First word of phrases -> how many tokens the longest may have; and first words with what follows: "new y", "saint-".
        self._lengths: dict[str, int] = {}
        self._begins: set[str] = set()
        for phrase in frozenset().union(*(self.entries[kind] for kind in PHRASES)):
            pieces = phrase.replace("-", " - ").replace("'", " '").split()
            for first in {pieces[0], phrase.split()[0]} if pieces else ():
                self._lengths[first] = min(max(self._lengths.get(first, 0), len(pieces)), _MOST_TOKENS)
                self._begins.add(phrase[: len(first) + (2 if phrase[len(first) :].startswith(" ") else 1)])

    def describe(self, word: str) -> list[float]:
        """COLUMNS of one word by itself, and how many tokens a phrase that begins with it may have. What has no letter is ordinary."""
        folded = fold(word)
        values = {kind: float(folded in self.entries[kind]) for kind in KINDS}
        if not any(map(str.isalpha, word)):
            values["ordinary_words"] = 1.0
        return [1.0, *values.values(), self._lengths.get(folded, 0)]

    def read(self, words: Sequence[str], spaces: Sequence[Any], described: Floats) -> Floats:
        """COLUMNS of the tokens of one Doc. spaces: Whether a space follows each. described (Floats): By `describe`."""
        columns = described[:, :-1].copy()
        for start in np.flatnonzero(described[:-1, -1] > 1).tolist():
            if fold(words[start]) + " " * bool(spaces[start]) + fold(words[start + 1])[:1] not in self._begins:
                continue
            end = min(start + int(described[start, -1]), len(words))
            pieces = [fold(words[i]) + " " * bool(spaces[i]) for i in range(start, end)]
            for i, phrase in enumerate(accumulate(pieces)):
                if i:
                    columns[start, 1 : 1 + len(PHRASES)] += [(phrase.strip() in self.entries[kind]) << i for kind in PHRASES]
        return columns


@cache
def load_lists(checksums: tuple[tuple[str, str], ...]) -> NameLists | None:
    """The lists of these files, (name, checksum) each; None, with a warning, if one of them is missing or is another."""
    entries: dict[str, set[str]] = {}
    for name, expected in checksums:
        try:
            text = read_list(list_folder() / f"{name}.txt.z")
        except (OSError, zlib.error, ValueError):
            text = ""
        if checksum(text) != expected:
            from .messages import WARNINGS

            warnings.warn(WARNINGS["CW87"].format(name=name, checksum=expected), stacklevel=2)
            return None
        entries.setdefault(name.partition(".")[0], set()).update(text.split("\n"))
    return NameLists(entries) if entries else None


def name_flags(labels: Any, columns: Mapping[str, Floats], starts: Any, ends: Any) -> dict[str, Any]:
    """What the lists say of n entities: SUPPORTS and CONTRADICTIONS, each for the types that it is about.

    labels: The type of each. columns (Mapping): COLUMNS of all tokens. starts, ends: Of each entity, without article and possessive.
    """
    person, is_place, organization = (np.isin(labels, types) for types in (PERSONS, PLACES, ORGANIZATIONS))
    lengths = ends - starts
    several = lengths > 1
    place, large, company = (
        (columns[kind][starts].astype(np.int64) >> np.minimum(lengths - 1, 60)) & 1 > 0 for kind in PHRASES
    )
    first, last = columns["first_names"][starts] > 0, columns["surnames"][ends - 1] > 0
    sums = {kind: np.append(0.0, np.cumsum(columns[kind])) for kind in ("first_names", "ordinary_words")}
    n_first, n_ordinary = (sums[kind][ends] - sums[kind][starts] for kind in ("first_names", "ordinary_words"))
    ordinary, all_ordinary = columns["ordinary_words"][ends - 1] > 0, n_ordinary == lengths
    word = several & ((columns["organization_first"][starts] > 0) | (columns["organization_last"][ends - 1] > 0))
    business = company | word
    alone = ~several & ~ordinary
    return {
        "place": is_place & place, "large place": is_place & large,
        "first name, several words": person & first & several, "first name alone": person & first & alone,
        "surname, several words": person & last & several, "surname alone": person & last & alone,
        "company": organization & company, "organization word": organization & word,
        "person, but a place": person & place & ~first, "organization, but a place": organization & place,
        "person, but an organization": person & business & ~first, "place, but an organization": is_place & business,
        "no person, but a person's name": ~person & first & last & several & ~place & ~business,
        "person, but an ordinary word": person & ordinary & ~last & (n_first == 0),
        "organization, but ordinary words": organization & all_ordinary & ~company,
        "place, but ordinary words": is_place & all_ordinary & ~place,
    }  # fmt: skip
