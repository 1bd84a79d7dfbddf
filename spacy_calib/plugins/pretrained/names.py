"""Lists of names: find their words and phrases in a text, as evidence for or against entities."""

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

# Kinds of lists. Files are never changed: a better list gets a new name, as saved pipelines name theirs.
KINDS = (
    "places", "large_places", "companies", "first_names", "surnames", "ordinary_words", "organization_first", "organization_last",
)  # fmt: skip
# The kinds that list phrases; the others list words.
PHRASES = KINDS[:3]
# Columns for each token. listed: whether there are lists. A phrase column has the lengths of the listed phrases that begin at the token,
# as bits: 5 = 1 + 4 stands for phrases of one and of three tokens.
COLUMNS = ("listed", *KINDS)
# Letters that Unicode does not decompose.
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i", "ħ": "h", "’": "'", "ʻ": "'"})  # fmt: skip
_MOST_TOKENS = 8
# Evidence that supports the type of an entity, and evidence that contradicts it.
SUPPORTS = (
    "place", "large place", "first name, several words", "first name alone", "surname, several words", "surname alone", "company",
    "organization word",
)  # fmt: skip
CONTRADICTIONS = (
    "person, but a place", "organization, but a place", "person, but an organization", "place, but an organization",
    "no person, but a person's name", "person, but an ordinary word", "organization, but ordinary words", "place, but ordinary words",
)  # fmt: skip
# Entity types that the lists are about.
PERSONS, LOCATIONS, ORGANIZATIONS = ("PERSON",), ("GPE", "LOC", "FAC"), ("ORG",)


def list_folder() -> Path:
    """Return the folder with the lists of this package."""
    return Path(__file__).parent / "lists"


def checksum(text: str) -> str:
    """Return 16 hexadecimal digits of SHA-256, by which the state of a pipe identifies a list."""
    return hashlib.sha256(text.encode("utf8")).hexdigest()[:16]


def read_list(file: Path) -> str:
    """Return the entries of a list, one per line."""
    return zlib.decompress(file.read_bytes()).decode("utf8")


def current_lists() -> dict[str, str]:
    """Return name -> checksum of the newest list of each kind."""
    files = sorted(list_folder().glob("*.txt.z"), key=lambda file: int(file.name.split(".")[1]))
    newest = {file.name.split(".")[0]: file for file in files}
    return {newest[kind].name.removesuffix(".txt.z"): checksum(read_list(newest[kind])) for kind in KINDS}


@lru_cache(1 << 16)
def fold(text: str) -> str:
    """Return the text in lower case without accents."""
    lower = text.lower()
    if lower.isascii():
        return lower
    letters = unicodedata.normalize("NFKD", lower.translate(_LETTERS))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


class NameLists:
    """Lists of names in the form of `fold`. entries (Mapping): Kind -> its words or phrases; kinds may be missing."""

    def __init__(self, entries: Mapping[str, Collection[str]]):
        """Index phrases by their first word, so that a text is searched only where a phrase may begin."""
        self.entries = {kind: frozenset(entries.get(kind, ())) for kind in KINDS}
        # First word of phrases -> maximum number of tokens; and first words with the next character: "new y", "saint-".
        self._lengths: dict[str, int] = {}
        self._prefixes: set[str] = set()
        for phrase in frozenset().union(*(self.entries[kind] for kind in PHRASES)):
            pieces = phrase.replace("-", " - ").replace("'", " '").split()
            for first in {pieces[0], phrase.split()[0]} if pieces else ():
                self._lengths[first] = min(max(self._lengths.get(first, 0), len(pieces)), _MOST_TOKENS)
                self._prefixes.add(phrase[: len(first) + (2 if phrase[len(first) :].startswith(" ") else 1)])

    def describe(self, word: str) -> list[float]:
        """Return COLUMNS of one word, and the maximum number of tokens of a phrase that begins with it; a word without letters is ordinary."""
        key = fold(word)
        values = {kind: float(key in self.entries[kind]) for kind in KINDS}
        if not any(map(str.isalpha, word)):
            values["ordinary_words"] = 1.0
        return [1.0, *values.values(), self._lengths.get(key, 0)]

    def read(self, words: Sequence[str], spaces: Sequence[Any], word_rows: Floats) -> Floats:
        """Return COLUMNS of the tokens of one Doc, (n_tokens, n_columns). spaces: Whether a space follows each. word_rows: What `describe` returns for each, stacked."""
        columns = word_rows[:, :-1].copy()
        for start in np.flatnonzero(word_rows[:-1, -1] > 1).tolist():
            if fold(words[start]) + " " * bool(spaces[start]) + fold(words[start + 1])[:1] not in self._prefixes:
                continue
            end = min(start + int(word_rows[start, -1]), len(words))
            pieces = [fold(words[i]) + " " * bool(spaces[i]) for i in range(start, end)]
            for i, phrase in enumerate(accumulate(pieces)):
                if i:
                    columns[start, 1 : 1 + len(PHRASES)] += [(phrase.strip() in self.entries[kind]) << i for kind in PHRASES]
        return columns


@cache
def load_lists(checksums: tuple[tuple[str, str], ...]) -> NameLists | None:
    """Load lists. checksums: (name, checksum) of each. RETURNS (NameLists | None): None for no lists, or, with CW87, if one is missing or differs."""
    entries: dict[str, set[str]] = {}
    for name, list_checksum in checksums:
        try:
            text = read_list(list_folder() / f"{name}.txt.z")
        except (OSError, zlib.error, ValueError):
            text = ""
        if checksum(text) != list_checksum:
            from .messages import WARNINGS

            warnings.warn(WARNINGS["CW87"].format(name=name, checksum=list_checksum), stacklevel=2)
            return None
        entries.setdefault(name.partition(".")[0], set()).update(text.split("\n"))
    return NameLists(entries) if entries else None


def name_flags(labels: Any, columns: Mapping[str, Floats], starts: Any, ends: Any) -> dict[str, Any]:
    """Return the evidence of the lists for n entities: a flag for each of SUPPORTS and CONTRADICTIONS, (n,).

    labels: Type of each entity. columns (Mapping): COLUMNS of all tokens. starts, ends: Tokens of each entity, without article
    and possessive.
    """
    is_person, is_location, is_organization = (np.isin(labels, types) for types in (PERSONS, LOCATIONS, ORGANIZATIONS))
    lengths = ends - starts
    is_long = lengths > 1
    in_gazetteer, in_large, in_companies = (
        (columns[kind][starts].astype(np.int64) >> np.minimum(lengths - 1, 60)) & 1 > 0 for kind in PHRASES
    )
    has_first, has_last = columns["first_names"][starts] > 0, columns["surnames"][ends - 1] > 0
    sums = {kind: np.append(0.0, np.cumsum(columns[kind])) for kind in ("first_names", "ordinary_words")}
    n_first, n_ordinary = (sums[kind][ends] - sums[kind][starts] for kind in ("first_names", "ordinary_words"))
    last_ordinary, all_ordinary = columns["ordinary_words"][ends - 1] > 0, n_ordinary == lengths
    has_word = is_long & ((columns["organization_first"][starts] > 0) | (columns["organization_last"][ends - 1] > 0))
    is_business = in_companies | has_word
    is_single = ~is_long & ~last_ordinary
    return {
        "place": is_location & in_gazetteer, "large place": is_location & in_large,
        "first name, several words": is_person & has_first & is_long, "first name alone": is_person & has_first & is_single,
        "surname, several words": is_person & has_last & is_long, "surname alone": is_person & has_last & is_single,
        "company": is_organization & in_companies, "organization word": is_organization & has_word,
        "person, but a place": is_person & in_gazetteer & ~has_first, "organization, but a place": is_organization & in_gazetteer,
        "person, but an organization": is_person & is_business & ~has_first, "place, but an organization": is_location & is_business,
        "no person, but a person's name": ~is_person & has_first & has_last & is_long & ~in_gazetteer & ~is_business,
        "person, but an ordinary word": is_person & last_ordinary & ~has_last & (n_first == 0),
        "organization, but ordinary words": is_organization & all_ordinary & ~in_companies,
        "place, but ordinary words": is_location & all_ordinary & ~in_gazetteer,
    }  # fmt: skip
