"""Lists of names of places, organizations and persons: find them in a text, as evidence for or against entities."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...types import Floats
from .messages import WARNINGS

# Kinds of lists. Files are never changed: a better list gets a new name, as saved pipelines name theirs.
KINDS = (
    "places", "large_places", "organizations", "first_names", "surnames", "ordinary_words", "organization_first",
    "organization_last",
)  # fmt: skip
PHRASES = KINDS[:3]  # the kinds that list phrases; the others list words
# Columns for each token. listed: whether there are lists. A phrase column has the lengths of the listed phrases that begin at
# the token, as bits: 5 = 1 + 4 stands for phrases of one and of three tokens. JOINERS are not counted.
COLUMNS = ("listed", *KINDS)
# Letters that Unicode does not decompose.
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "æ": "ae", "œ": "oe",
    "þ": "th", "ı": "i", "ħ": "h", "’": "'", "ʻ": "'"})  # fmt: skip
JOINERS = frozenset("&.'’/-‐‑–")  # tokens that join the words of a name, which are ignored inside an entity
_WORDS = re.compile(r"[^\W_]+")
PERSONS, LOCATIONS, ORGANIZATIONS = ("PERSON",), ("GPE", "LOC", "FAC"), ("ORG",)  # entity types that the lists are about


def list_folder() -> Path:
    """Return the folder with the lists of this package."""
    return Path(__file__).parent / "lists"


def checksum(text: str) -> str:
    """Return 16 hexadecimal digits of SHA-256, by which the state of a pipe identifies a list."""
    return hashlib.sha256(text.encode("utf8")).hexdigest()[:16]


def read_list(file: Path) -> str:
    """Return the entries of a compressed list as one text, an entry per line."""
    return zlib.decompress(file.read_bytes()).decode("utf8")


def fold(text: str) -> str:
    """Return the text in lower case without accents."""
    lower = text.lower()
    if lower.isascii():
        return lower
    letters = unicodedata.normalize("NFKD", lower.translate(_LETTERS))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@lru_cache(1 << 16)
def words_of(text: str) -> str:
    """Return the folded words of a text, as in lists: letters and digits, one space between words. "T-Mobile" -> "t mobile"."""
    return " ".join(_WORDS.findall(fold(text)))


class NameLists:
    """Lists of names to look up words and phrases in. entries (Mapping): Kind -> its words or phrases, by `words_of`."""

    def __init__(self, entries: Mapping[str, Collection[str]]):
        """Index the beginnings of phrases, so that a text is searched only where a phrase may begin."""
        self.entries = {kind: frozenset(entries.get(kind, ())) for kind in KINDS}
        self._beginnings: set[str] = set()
        for phrase in frozenset().union(*(self.entries[kind] for kind in PHRASES)):
            self._beginnings.update(phrase[: space.start()] for space in re.finditer(" ", phrase))

    def describe(self, word: str) -> list[float]:
        """Return the COLUMNS of a token (1 for "listed", 0 or 1 for a kind), and whether it begins a longer listed phrase."""
        entry = words_of(word)  # one string, such as "t mobile" for the token "T-Mobile"
        is_listed = {kind: float(entry in self.entries[kind]) for kind in KINDS}
        if not any(map(str.isalpha, entry)):  # no letters: numbers and signs count as ordinary words
            is_listed["ordinary_words"] = 1.0
        return [1.0, *is_listed.values(), entry in self._beginnings]

    def read(self, words: Sequence[str], word_rows: Floats) -> Floats:
        """Return the COLUMNS of one Doc, (n_tokens, n_columns). words: Its tokens. word_rows: `describe` of each, stacked.

        In the columns of phrases, bit k - 1 is set if a listed phrase of k words begins at the token; JOINERS are skipped.
        """
        columns = word_rows[:, :-1].copy()  # without the last value of `describe`
        for start in np.flatnonzero(word_rows[:-1, -1]).tolist():  # tokens, except the last, at which a longer phrase may begin
            phrase, n_words = words_of(words[start]), 1
            for word in (words[i] for i in range(start + 1, len(words)) if words[i] not in JOINERS):
                phrase, n_words = f"{phrase} {words_of(word)}", n_words + 1
                # Set bit n_words - 1 of the kinds that list the phrase; the columns of phrases follow "listed".
                columns[start, 1 : 1 + len(PHRASES)] += [(phrase in self.entries[kind]) << (n_words - 1) for kind in PHRASES]
                if phrase not in self._beginnings:
                    break
        return columns


@cache
def load_lists(checksums: tuple[tuple[str, str], ...]) -> NameLists | None:
    """Load the lists in `checksums`, (name, checksum) of each. RETURNS: None without lists, or if one changed (WARNS CW87)."""
    entries: dict[str, set[str]] = {}
    for name, list_checksum in checksums:
        try:
            text = read_list(list_folder() / f"{name}.txt.z")
        except (OSError, zlib.error, ValueError):
            text = ""
        if checksum(text) != list_checksum:
            warnings.warn(WARNINGS["CW87"].format(name=name, checksum=list_checksum), stacklevel=2)
            return None
        entries.setdefault(name.partition(".")[0], set()).update(text.split("\n"))  # the name begins with the kind
    return NameLists(entries) if entries else None


def match_lists(types: Any, columns: Mapping[str, Floats], starts: Any, ends: Any, firsts: Any, lasts: Any) -> dict[str, Any]:
    """Compare n entities with the lists of names: return name of each piece of evidence -> whether an entity has it, (n,).

    types: Type of each entity, such as "ORG". columns (Mapping): COLUMNS by name, for the tokens of all entities, one entity
    after the other. Other arguments: indices in the columns, (n,). `firsts` and `lasts`: first and last token of the entity.
    `starts` and `ends`: first token without the article, and the token after the last one without the possessive. All are
    compared, as "The Guardian" and "McDonald's" may be listed. RETURNS (dict): Evidence for the type ("place"), and against it
    ("..., but ...").
    """
    is_person, is_location, is_organization = (np.isin(types, names) for names in (PERSONS, LOCATIONS, ORGANIZATIONS))
    lengths, is_long = ends - starts, ends - starts > 1
    # (first token, number of tokens): of the entity without article and possessive, with its article, with its possessive
    ranges = [(starts, lengths), (firsts, ends - firsts), (starts, lasts + 1 - starts)]

    def is_listed(kind: str) -> Any:
        # Bit n - 1 at a token: a listed phrase of n tokens begins there. 60: an int64 has 64 bits, and no phrase has as many.
        return np.any([(columns[kind][first].astype(np.int64) >> np.minimum(n - 1, 60)) & 1 for first, n in ranges], axis=0)

    def count_words(kind: str) -> Any:  # number of words of each entity that are in a list
        sums = np.append(0.0, np.cumsum(columns[kind]))
        return sums[ends] - sums[starts]

    in_places, in_large_places, in_organizations = map(is_listed, ("places", "large_places", "organizations"))
    has_first_name, has_surname = columns["first_names"][starts] > 0, columns["surnames"][ends - 1] > 0
    is_last_ordinary, is_all_ordinary = columns["ordinary_words"][ends - 1] > 0, count_words("ordinary_words") == lengths
    has_business_word = is_long & ((columns["organization_first"][starts] > 0) | (columns["organization_last"][ends - 1] > 0))
    is_business = in_organizations | has_business_word
    is_rare_word = ~is_long & ~is_last_ordinary  # one word, which is no ordinary one
    return {
        "place": is_location & in_places, "large place": is_location & in_large_places,
        "first name, several words": is_person & has_first_name & is_long,
        "first name alone": is_person & has_first_name & is_rare_word,
        "surname, several words": is_person & has_surname & is_long, "surname alone": is_person & has_surname & is_rare_word,
        "organization": is_organization & in_organizations, "organization word": is_organization & has_business_word,
        "person, but a place": is_person & in_places & ~has_first_name,
        "organization, but a place": is_organization & in_places,
        "person, but an organization": is_person & is_business & ~has_first_name,
        "place, but an organization": is_location & is_business,
        "no person, but a person's name": ~is_person & has_first_name & has_surname & is_long & ~in_places & ~is_business,
        "person, but an ordinary word": is_person & is_last_ordinary & ~has_surname & (count_words("first_names") == 0),
        "organization, but ordinary words": is_organization & is_all_ordinary & ~in_organizations,
        "place, but ordinary words": is_location & is_all_ordinary & ~in_places,
    }  # fmt: skip
