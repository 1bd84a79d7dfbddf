"""Features of a mention as new, and of it with an antecedent, as hashes (after Durrett & Klein 2013, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from ..sequence.features import FeatureIndex
from ..types import Ints
from .inference.antecedents import Candidates
from .inference.calibration import KINDS
from .mentions import PRONOUNS, Mentions

Hashes = NDArray[np.uint64]
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
_NONE = np.uint64(0)
# Edges of the bins of distances.
_STEPS = np.array([0, 1, 2, 3, 4, 5, 8, 16, 32, 64])


def mixed(*columns: Any) -> Hashes:
    """One hash of several columns of whole numbers, in their order."""
    with np.errstate(over="ignore"):
        found: Any = _MIX
        for column in columns:
            found = (found ^ np.asarray(column).astype(np.uint64)) * _MIX
            found = found ^ (found >> _SHIFT)
    return found


def candidates_of(mentions: Mentions, words: Hashes, window: int) -> Candidates:
    """The last `window` mentions, and as many before them with the same head. words (Hashes): Heads of the mentions."""
    same: dict[int, list[int]] = {}
    earlier = []
    for mention, word in enumerate(words.tolist()):
        first = max(0, mention - window)
        held = same.setdefault(word, [])
        earlier.append([*[one for one in held if one < first][-window:], *range(first, mention)])
        held.append(mention)
    flat = [one for own in earlier for one in own]
    return Candidates(np.cumsum([0, *map(len, earlier)]), np.array(flat, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class MentionWords:
    """What the features of a Doc's n mentions are made of. columns (dict): Name -> numbers, shape (n,).

    words (csr_matrix): Which words each holds, shape (n, n_words). of_head (Ints): Column of its head's word.
    """

    mentions: Mentions
    columns: dict[str, Hashes]
    words: Any
    of_head: Ints

    @classmethod
    def of(cls, doc: Doc, mentions: Mentions, speakers: Hashes) -> MentionWords:
        """speakers (Hashes): Of each token, see `mentions.speakers_of`."""
        from scipy.sparse import csr_matrix

        lower = doc.to_array(["LOWER"]).astype(np.uint64, copy=False).reshape(-1)
        entity, relation = (doc.to_array([name]).astype(np.uint64, copy=False).reshape(-1) for name in ("ENT_TYPE", "DEP"))
        padded = np.concatenate([lower, [_NONE]])  # the last stands before the first and behind the last token
        starts, ends, heads = mentions.starts, mentions.ends, mentions.heads
        bounds = list(zip(starts.tolist(), ends.tolist(), strict=True))
        agreement = np.array(
            [_agreement(doc[i], doc[a:b]) for i, (a, b) in zip(heads.tolist(), bounds, strict=True)], dtype=np.uint64
        )
        agreement = agreement.reshape(-1, 3)
        columns = {
            "kind": mentions.kinds.astype(np.uint64),
            "type": np.array(
                [_type(doc[i], kind) for i, kind in zip(heads.tolist(), mentions.kinds.tolist(), strict=True)], dtype=np.uint64
            ),
            "head": lower[heads],
            "text": np.array([get_string_id(doc[a:b].text.lower()) for a, b in bounds], dtype=np.uint64),
            "first": lower[starts],
            "last": lower[ends - 1],
            "before": padded[starts - 1],
            "after": padded[ends],
            "length": _bucket(ends - starts),
            "entity": entity[heads],
            "relation": relation[heads],
            "number": agreement[:, 0],
            "person": agreement[:, 1],
            "gender": agreement[:, 2],
            "speaker": speakers[starts],
        }
        distinct, place = np.unique(lower, return_inverse=True)
        inside = np.concatenate([np.zeros(0, dtype=np.intp), *(np.unique(place[a:b]) for a, b in bounds)])
        lengths = [len(np.unique(place[a:b])) for a, b in bounds]
        rows = np.repeat(np.arange(len(bounds)), lengths)
        words = csr_matrix((np.ones(len(inside)), (rows, inside)), shape=(len(bounds), len(distinct)))
        return cls(mentions, columns, words, place[heads])

    def new_hashes(self) -> Hashes:
        """The features of each mention as new, shape (n, n_templates)."""
        own = self.columns
        met_head, met_text = _met(own["head"]), _met(own["text"])
        simple = [
            own[name]
            for name in ("head", "text", "first", "last", "before", "after", "length", "entity", "relation", "number", "gender")
        ]
        simple += [
            met_head,
            met_text,
            mixed(own["first"], met_head),
            _bucket(self.mentions.sentences),
            np.zeros(len(met_head), dtype=np.uint64),
        ]
        return np.stack(
            [mixed(np.full(len(met_head), 1000 + i), own["type"], column) for i, column in enumerate(simple)], axis=1
        )

    def link_hashes(self, candidates: Candidates) -> Hashes:
        """The features of each candidate as antecedent, shape (n_candidates, n_templates)."""
        late, early = candidates.mentions, candidates.earlier
        own = self.columns
        kinds = mixed(own["kind"][early], own["kind"][late])
        types = mixed(own["type"][early], own["type"][late])
        found = []
        for i, column in enumerate(self._link_columns(late, early)):
            found += [mixed(np.full(len(late), 2000 + i), kinds, column), mixed(np.full(len(late), 3000 + i), types, column)]
        of_antecedent = ("head", "first", "last", "before", "after", "length", "entity", "relation", "number")
        found += [
            mixed(np.full(len(late), 4000 + i), own["type"][late], own[name][early]) for i, name in enumerate(of_antecedent)
        ]
        found.append(mixed(np.full(len(late), 5000), own["head"][early], own["head"][late]))
        return np.stack(found, axis=1)

    def _link_columns(self, late: Ints, early: Ints) -> Iterator[Hashes]:
        """Properties of pairs of mentions, each a column of numbers."""
        own, at = self.columns, self.mentions

        def pair(name: str) -> Hashes:
            return mixed(own[name][early], own[name][late])

        same_text, same_head = (own[name][early] == own[name][late] for name in ("text", "head"))
        sentences = _bucket(at.sentences[late] - at.sentences[early])
        distance = _bucket(late - early)
        shared = np.asarray(self.words[early].multiply(self.words[late]).sum(axis=1)).reshape(-1)
        sizes = np.asarray(self.words.sum(axis=1)).reshape(-1)
        head_there, head_here = self._holds(early, self.of_head[late]), self._holds(late, self.of_head[early])
        inside = 2 * ((at.starts[early] >= at.starts[late]) & (at.ends[early] <= at.ends[late])).astype(np.intp)
        inside += (at.starts[late] >= at.starts[early]) & (at.ends[late] <= at.ends[early])
        overlapping = at.ends[early] > at.starts[late]
        yield np.zeros(len(late), dtype=np.uint64)
        yield same_text
        yield same_head
        yield mixed(same_head, np.minimum(3, np.floor(4 * shared / sizes[late])))
        yield mixed(head_there, head_here)
        yield distance
        yield sentences
        yield mixed(same_head, sentences)
        yield mixed(inside, overlapping)
        yield mixed(np.where(sentences <= 1, 1 + sentences, 0), pair("relation"))
        yield pair("number")
        yield mixed(pair("gender"), pair("person"))
        yield pair("entity")
        yield mixed(same_head, own["first"][late])
        yield _same_speaker(own["speaker"][late], own["speaker"][early])

    def _holds(self, mentions: Ints, words: Ints) -> NDArray[np.bool_]:
        """Whether each of these mentions holds a word. words (Ints): Columns."""
        n_words = self.words.shape[1]
        held = np.repeat(np.arange(self.words.shape[0]), np.diff(self.words.indptr)) * n_words + self.words.indices
        return np.isin(mentions * n_words + words, held)


def _bucket(distances: Ints) -> Hashes:
    return np.searchsorted(_STEPS, distances, side="right").astype(np.uint64)


def _same_speaker(one: Hashes, other: Hashes) -> Hashes:
    """1 where one person says both, 2 where two do, 0 where that is unknown."""
    return np.where((one == _NONE) | (other == _NONE), 0, np.where(one == other, 1, 2)).astype(np.uint64)


def _met(words: Hashes) -> Hashes:
    """Whether an earlier mention has the same word."""
    _, firsts = np.unique(words, return_index=True)
    met = np.ones(len(words), dtype=np.uint64)
    met[firsts] = 0
    return met


def _type(token: Token, kind: int) -> int:
    """The type of a mention: a pronoun's word, whatever its case; else its kind."""
    if KINDS[kind] != "pronoun":
        return kind
    return get_string_id(PRONOUNS.get(token.lower_, token.lower_))


def _agreement(head: Token, span: Any) -> tuple[int, int, int]:
    """Number, person and gender by the features of the head; plural for "A and B"."""
    joined = any(token.dep_ == "conj" and token.head == head for token in span)
    told = head.morph.to_dict()
    number, person, gender = (told.get(name, "") for name in ("Number", "Person", "Gender"))
    return get_string_id("Plur" if joined else number), get_string_id(person), get_string_id(gender)


def option_rows(index: FeatureIndex, new: Hashes, links: Hashes, candidates: Candidates) -> Any:
    """The known features of each option as a csr matrix: NEW, then the candidates, mention after mention."""
    from scipy.sparse import csr_matrix

    is_new = np.zeros(len(new) + len(links), dtype=bool)
    is_new[candidates.options[:-1]] = True
    parts = [index.rows(new), index.rows(links)]
    lengths = np.empty(len(is_new), dtype=np.intp)
    lengths[is_new], lengths[~is_new] = np.diff(parts[0].starts), np.diff(parts[1].starts)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.empty(int(starts[-1]), dtype=np.int32)
    of_new = np.repeat(is_new, lengths)
    columns[of_new], columns[~of_new] = parts[0].rows, parts[1].rows
    return csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(is_new), len(index)))
