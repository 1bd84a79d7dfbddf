"""Features of a mention that begins a cluster, and of a mention with an antecedent, as hashes (Durrett & Klein 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from spacy_calib.types import Ints

from ..chains.features import MIX, SHIFT, FeatureIndex, Hashes
from .antecedents import Candidates
from .calibration import KINDS
from .mentions import PRONOUNS, Mentions

_NONE = np.uint64(0)
# Edges of the bins of distances.
_STEPS = np.array([0, 1, 2, 3, 4, 5, 8, 16, 32, 64])


def hash_columns(*columns: Any) -> Hashes:
    """Hash several columns of whole numbers, in their order."""
    with np.errstate(over="ignore"):
        hashes: Any = MIX
        for column in columns:
            hashes = (hashes ^ np.asarray(column).astype(np.uint64)) * MIX
            hashes = hashes ^ (hashes >> SHIFT)
    return hashes


def candidates_of(mentions: Mentions, words: Hashes, window: int) -> Candidates:
    """Return the last `window` mentions, and as many before them with the same head. words (Hashes): Heads of the mentions."""
    by_word: dict[int, list[int]] = {}
    earlier = []
    for mention, word in enumerate(words.tolist()):
        first = max(0, mention - window)
        mentions_before = by_word.setdefault(word, [])
        earlier.append([*[candidate for candidate in mentions_before if candidate < first][-window:], *range(first, mention)])
        mentions_before.append(mention)
    flat = [candidate for group in earlier for candidate in group]
    return Candidates(np.cumsum([0, *map(len, earlier)]), np.array(flat, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class MentionWords:
    """Properties and words of n mentions."""

    mentions: Mentions
    columns: dict[str, Hashes]  # name of a property -> its value for each mention, (n,)
    words: Any  # csr matrix (n, n_words): 1 if a mention contains a word
    of_head: Ints  # column of the head's word in `words`, (n,)

    @classmethod
    def from_doc(cls, doc: Doc, mentions: Mentions, speakers: Hashes) -> MentionWords:
        """Collect the properties of the mentions of a Doc. speakers (Hashes): Hash of each token's speaker, 0 for none."""
        from scipy.sparse import csr_matrix

        lower = doc.to_array(["LOWER"]).astype(np.uint64, copy=False).reshape(-1)
        entity, relation = (doc.to_array([name]).astype(np.uint64, copy=False).reshape(-1) for name in ("ENT_TYPE", "DEP"))
        padded_words = np.concatenate([lower, [_NONE]])  # the last is the word before the first token and after the last one
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
            "before": padded_words[starts - 1],
            "after": padded_words[ends],
            "length": _bucket(ends - starts),
            "entity": entity[heads],
            "relation": relation[heads],
            "number": agreement[:, 0],
            "person": agreement[:, 1],
            "gender": agreement[:, 2],
            "speaker": speakers[starts],
        }
        distinct, word_index = np.unique(lower, return_inverse=True)
        word_columns = np.concatenate([np.zeros(0, dtype=np.intp), *(np.unique(word_index[a:b]) for a, b in bounds)])
        lengths = [len(np.unique(word_index[a:b])) for a, b in bounds]
        rows = np.repeat(np.arange(len(bounds)), lengths)
        words = csr_matrix((np.ones(len(word_columns)), (rows, word_columns)), shape=(len(bounds), len(distinct)))
        return cls(mentions, columns, words, word_index[heads])

    def new_hashes(self) -> Hashes:
        """Return the features of each mention as the first of a new cluster, shape (n, n_templates)."""
        columns = self.columns
        met_head, met_text = _occurred_before(columns["head"]), _occurred_before(columns["text"])
        simple = [
            columns[name]
            for name in ("head", "text", "first", "last", "before", "after", "length", "entity", "relation", "number", "gender")
        ]
        simple += [
            met_head,
            met_text,
            hash_columns(columns["first"], met_head),
            _bucket(self.mentions.sentences),
            np.zeros(len(met_head), dtype=np.uint64),
        ]
        # The numbers from 1000, 2000 ... on keep equal values of different templates apart.
        return np.stack(
            [hash_columns(np.full(len(met_head), 1000 + i), columns["type"], column) for i, column in enumerate(simple)], axis=1
        )

    def link_hashes(self, candidates: Candidates) -> Hashes:
        """Return the features of each candidate as antecedent, shape (n_candidates, n_templates)."""
        later, earlier = candidates.mentions, candidates.earlier
        columns = self.columns
        kinds = hash_columns(columns["kind"][earlier], columns["kind"][later])
        types = hash_columns(columns["type"][earlier], columns["type"][later])
        hashes = []
        for i, column in enumerate(self._link_columns(later, earlier)):
            hashes += [
                hash_columns(np.full(len(later), 2000 + i), kinds, column),
                hash_columns(np.full(len(later), 3000 + i), types, column),
            ]
        of_antecedent = ("head", "first", "last", "before", "after", "length", "entity", "relation", "number")
        hashes += [
            hash_columns(np.full(len(later), 4000 + i), columns["type"][later], columns[name][earlier])
            for i, name in enumerate(of_antecedent)
        ]
        hashes.append(hash_columns(np.full(len(later), 5000), columns["head"][earlier], columns["head"][later]))
        return np.stack(hashes, axis=1)

    def _link_columns(self, later: Ints, earlier: Ints) -> Iterator[Hashes]:
        """Yield properties of pairs of mentions, each a column of numbers."""
        columns, mentions = self.columns, self.mentions

        def pair(name: str) -> Hashes:
            return hash_columns(columns[name][earlier], columns[name][later])

        same_text, same_head = (columns[name][earlier] == columns[name][later] for name in ("text", "head"))
        sentences = _bucket(mentions.sentences[later] - mentions.sentences[earlier])
        distance = _bucket(later - earlier)
        n_shared = np.asarray(self.words[earlier].multiply(self.words[later]).sum(axis=1)).reshape(-1)
        sizes = np.asarray(self.words.sum(axis=1)).reshape(-1)
        head_there, head_here = self._contains(earlier, self.of_head[later]), self._contains(later, self.of_head[earlier])
        nesting = 2 * (
            (mentions.starts[earlier] >= mentions.starts[later]) & (mentions.ends[earlier] <= mentions.ends[later])
        ).astype(np.intp)
        nesting += (mentions.starts[later] >= mentions.starts[earlier]) & (mentions.ends[later] <= mentions.ends[earlier])
        overlapping = mentions.ends[earlier] > mentions.starts[later]
        yield np.zeros(len(later), dtype=np.uint64)
        yield same_text
        yield same_head
        yield hash_columns(same_head, np.minimum(3, np.floor(4 * n_shared / sizes[later])))
        yield hash_columns(head_there, head_here)
        yield distance
        yield sentences
        yield hash_columns(same_head, sentences)
        yield hash_columns(nesting, overlapping)
        yield hash_columns(np.where(sentences <= 1, 1 + sentences, 0), pair("relation"))
        yield pair("number")
        yield hash_columns(pair("gender"), pair("person"))
        yield pair("entity")
        yield hash_columns(same_head, columns["first"][later])
        a, b = columns["speaker"][later], columns["speaker"][earlier]
        yield np.where((a == _NONE) | (b == _NONE), 0, np.where(a == b, 1, 2)).astype(np.uint64)

    def _contains(self, mentions: Ints, words: Ints) -> NDArray[np.bool_]:
        """Return whether each mention contains a word. words (Ints): Its column in `self.words`, for each mention."""
        n_words = self.words.shape[1]
        cells = np.repeat(np.arange(self.words.shape[0]), np.diff(self.words.indptr)) * n_words + self.words.indices
        return np.isin(mentions * n_words + words, cells)


def _bucket(distances: Ints) -> Hashes:
    return np.searchsorted(_STEPS, distances, side="right").astype(np.uint64)


def _occurred_before(words: Hashes) -> Hashes:
    """Return whether an earlier mention has the same word."""
    _, firsts = np.unique(words, return_index=True)
    result = np.ones(len(words), dtype=np.uint64)
    result[firsts] = 0
    return result


def _type(token: Token, kind: int) -> int:
    """Return the type of a mention: a pronoun's word, whatever its case; else its kind."""
    if KINDS[kind] != "pronoun":
        return kind
    return get_string_id(PRONOUNS.get(token.lower_, token.lower_))


def _agreement(head: Token, span: Any) -> tuple[int, int, int]:
    """Return number, person and gender by the features of the head; plural for "A and B"."""
    is_conjunction = any(token.dep_ == "conj" and token.head == head for token in span)
    features = head.morph.to_dict()
    number, person, gender = (features.get(name, "") for name in ("Number", "Person", "Gender"))
    return get_string_id("Plur" if is_conjunction else number), get_string_id(person), get_string_id(gender)


def option_rows(index: FeatureIndex, new: Hashes, links: Hashes, candidates: Candidates) -> Any:
    """Return the known features of each mention's options as a csr matrix: NEW (hashes `new`), then the candidates (`links`)."""
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
