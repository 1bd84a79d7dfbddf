"""The contract of an annotation.

A *unit* is what carries a label: a token, or in `cats` a whole document. Labels are spaCy's string hashes (uint64), the
same in every vocab; 0 is no label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ...pairs.documents import TOKEN

Hashes = NDArray[np.uint64]
# Keys of span groups on gold Docs, with what people rejected, under the component's labels: spans, labels of single tokens, categories (of the whole
# Doc), identities of entities. A Doc that has such a group, even an empty one, was asked about what was accepted and rejected alone; all else is unknown.
REJECTED = "calib_rejected"
REJECTED_TOKENS, REJECTED_CATS, REJECTED_LINKS = (f"{REJECTED}:{what}" for what in ("token", "document", "link"))
# The gold of a unit of which no more is known than that some labels are wrong.
NOT_THOSE = np.uint64(get_string_id("(rejected)"))


class Annotation(ABC):
    """One kind of label that the units of a Doc carry.

    name (str): Its name in configs and in blocks. unit (str): What carries a label, "token" or "document".
    overlapping (bool): Whether a unit may have several gold labels.
    none (tuple[str, ...]): The gold of a unit that is known to have no label; () where there is no such unit.
    first (int): The first unit of a Doc that may carry a label.
    arcs (bool): Whether the label is that of the arc from the token's head. judges (bool): Whether `is_gold` compares
        more than labels. any_label (bool): Whether it compares no labels, so the gold may be of another scheme.
    accuracy_name (str): The name of the share of right labels.
    span_words (tuple[str, str]): What one of its spans is called, and several. spans_first (bool): Whether commands
        show spans by default, not units. span_event (str): When a span is right; "" where a setting of the pipe says.
    of_entities (bool): Whether its spans are the entities of a Doc: a pipe of it has a prefix of its own.
    spans_are_units (bool): Whether what carries a label is one of its spans, as its first token.
    partners (Callable | None): How many characters behind each token of a Doc its `partner` begins; None where labels are of tokens alone.
    rejected_key (str): Of the span group with rejected labels.
    judge_spans (Callable | None): Given with `span_event`: (example, (start, end, label hash) of predicted spans) ->
        for each 1 or 0, whether it is right; -1 where its gold is missing.
    """

    name: str
    unit: str = TOKEN
    overlapping: bool = False
    none: tuple[str, ...] = ()
    first: int = 0
    prefixed: bool = False
    arcs: bool = False
    of_entities: bool = False
    spans_are_units: bool = False
    judges: bool = False
    any_label: bool = False
    accuracy_name: str = "accuracy"
    span_words: tuple[str, str] = ("entity", "entities")
    spans_first: bool = True
    span_event: str = ""
    partners: Callable[[Doc], NDArray[np.int32]] | None = None
    rejected_key: str = REJECTED_TOKENS
    judge_spans: Callable[[Example, Sequence[tuple[int, int, int]]], NDArray[np.intp]] | None = None

    # Units

    def n_units(self, doc: Doc) -> int:
        """How many units a Doc has: rows of probabilities, of labels, of gold."""
        return len(doc)

    def places(self, doc: Doc) -> Hashes:
        """First character and hash of the text of each unit, shape (n_units, 2)."""
        return doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)

    def partner(self, token: Token) -> Token:
        """The other token that a token's label is of: its head, or the last one of its entity; else the token itself."""
        return token

    # Labels

    @abstractmethod
    def hashes(self, doc: Doc) -> Hashes:
        """The hash of each unit's label, 0 where it carries none; shape (n_units,)."""

    @abstractmethod
    def label(self, token: Token) -> str:
        """The label that the token carries, "" where it carries none."""

    def label_at(self, doc: Doc, row: int) -> str:
        """The label of one unit of a Doc, "" where it carries none."""
        return self.label(doc[row])

    def gold_hashes(self, doc: Doc) -> Hashes:
        """The hash of each unit's label in a gold Doc, 0 where the annotation is missing; shape (n_units,)."""
        return self.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        """The gold hash of each predicted unit; for tokens as in spaCy's token scorers: 0 where the gold is missing,
        for white space, and where the token does not align with exactly one gold token. That of units whose labels were
        rejected, and that have no other, is no label's.
        """
        rows, partners = _aligned(example)
        gold = np.zeros(len(example.predicted), dtype=np.uint64)
        gold[rows] = self.gold_hashes(example.reference)[partners]
        return or_refused(self, gold, example)

    def refused(self, example: Example) -> set[tuple[int, int]] | None:
        """(predicted unit, hash of a label) that people rejected; None where the gold is not of such answers alone."""
        spans = rejected_in(self, example.reference)
        if spans is None:
            return None
        labels: dict[int, list[int]] = {}
        for start, _, label in spans:
            labels.setdefault(start, []).append(label)
        pairs = zip(*(one.tolist() for one in _aligned(example)), strict=True)
        return {(row, label) for row, partner in pairs for label in labels.get(partner, ())}

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Whether labels are right for predicted units.

        rows: Units of the predicted Doc. hashes (Hashes): Hash of a label for each.
        """
        return self.aligned_gold(example)[rows] == hashes

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Whether the gold says if these labels are right at these units. Arguments: those of `is_gold`.

        Beside rejected labels of tokens without another in their stead, of the label that was asked about alone: what a person put in its place would
        be known only where it is right. Categories are asked about one by one.
        """
        gold, refused = self.aligned_gold(example)[rows], self.refused(example)
        if refused is None:
            return gold != 0
        asked = {row for row, _ in refused} if self.unit == TOKEN else set()
        units = zip(rows.tolist(), hashes.tolist(), gold.tolist(), strict=True)
        return np.array([(row, key) in refused or (row not in asked and key == right) for row, key, right in units], dtype=bool)

    @property
    def gold(self) -> Annotation:
        """The annotation of the gold Docs, which may have labels of another scheme."""
        return self

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        """The annotation of Docs that carry the counterparts of these labels; "" is no counterpart."""
        return self

    # Spans, for annotations that have them

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """The spans that a Doc carries."""
        return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        """For which tokens of a gold Doc the spans are known, shape (len(doc),)."""
        return np.zeros(len(doc), dtype=bool)

    def gold_span_label(self, label: int) -> int:
        """The hash of the gold label that makes a predicted span with this label right."""
        return label

    def foreign(self, docs: Iterable[Doc]) -> list[str]:
        """Gold labels that are left out, since they belong to another component or scheme."""
        return []

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of the span labels."""
        return Counter(span.label_ for doc in docs for span in self.spans_on(doc))

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Gold frequency of each label; units without one do not count."""
        counts: Counter[int] = Counter()
        strings = None
        for doc in docs:
            strings = doc.vocab.strings
            found, n = np.unique(self.gold_hashes(doc), return_counts=True)
            counts.update(dict(zip(found.tolist(), n.tolist(), strict=True)))
        counts.pop(0, None)
        return Counter({self._string(key, strings): n for key, n in counts.items()})

    def _string(self, key: int, strings: object) -> str:
        return strings[key]  # type: ignore[index]


def _aligned(example: Example) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(the predicted words that align with one gold token; the number of that)."""
    partners = example.alignment.x2y  # asked once: it looks at all words
    lengths = _lengths(example, partners)
    rows = np.flatnonzero((lengths == 1) & ~is_space(example.predicted))
    return rows, np.asarray(partners.data)[(np.cumsum(lengths) - lengths)[rows]]


def _lengths(example: Example, partners: Any) -> NDArray[np.intp]:
    """With how many gold tokens each predicted token aligns. partners: `example.alignment.x2y`."""
    # Where only one of the two ends in white space, spaCy's alignment has a row behind the last token.
    return np.asarray(partners.lengths)[: len(example.predicted)]


def or_refused(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """The gold of predicted units, in place; that of those without any, whose labels were rejected, is no label's."""
    refused = [row for row, _ in annotation.refused(example) or ()]
    gold[refused] = np.where(gold[refused] == 0, NOT_THOSE, gold[refused])
    return gold


def count_misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int]:
    """How many predicted "tokens" are no white space; how many of these align with no single gold one ("left_out")."""
    counts = {"tokens": 0, "left_out": 0}
    for example in examples:
        if annotation.gold_hashes(example.reference).any():
            words = ~is_space(example.predicted)
            counts["tokens"] += int(words.sum())
            counts["left_out"] += int((words & (_lengths(example, example.alignment.x2y) != 1)).sum())
    return counts


def rejected_in(annotation: Annotation, doc: Doc) -> list[tuple[int, int, int]] | None:
    """(start, end, hash of the label) of what was rejected in a gold Doc; None where it is not of answers alone."""
    if annotation.rejected_key not in doc.spans:
        return None
    return [(span.start, span.end, span.label) for span in doc.spans[annotation.rejected_key]]


def has_gold(annotation: Annotation, doc: Doc) -> bool:
    """Whether a gold Doc says anything."""
    return bool(annotation.gold_hashes(doc).any() or len(annotation.spans_on(doc)) or rejected_in(annotation, doc))


def texts_of(annotation: Annotation, doc: Doc) -> list[str]:
    """The text of each unit."""
    return [token.text for token in doc] if annotation.unit == TOKEN else [doc.text][: annotation.n_units(doc)]


def is_blank(annotation: Annotation, doc: Doc) -> NDArray[np.bool_]:
    """Whether each unit of a Doc is white space alone."""
    return (
        is_space(doc)
        if annotation.unit == TOKEN
        else np.array([text.isspace() for text in texts_of(annotation, doc)], dtype=bool)
    )


def is_space(doc: Doc) -> NDArray[np.bool_]:
    """Which tokens are white space by their text: without a Language a vocab does not set the flag IS_SPACE."""
    strings = doc.vocab.strings
    return map_unique(doc.to_array(["ORTH"]), lambda key: strings[key].isspace()).astype(bool)


def map_unique(codes: NDArray[Any], to_hash: Callable[[Any], int]) -> Hashes:
    """A function's value for each code; it is called once for each distinct code."""
    listed = codes.tolist()
    found = {code: to_hash(code) for code in dict.fromkeys(listed)}
    return np.array([found[code] for code in listed], dtype=np.uint64)


def label_hashes(labels: Iterable[str]) -> Hashes:
    """The hash of each label."""
    return np.array([get_string_id(label) for label in labels], dtype=np.uint64)


@lru_cache(maxsize=64)
def sorted_hashes(labels: tuple[str, ...]) -> tuple[Hashes, NDArray[np.intp]]:
    """(the hashes of labels, rising; the column of each), worked out once."""
    hashes = label_hashes(labels)
    order = np.argsort(hashes)
    return hashes[order], order


def columns_of(hashes: Hashes, labels: Sequence[str]) -> NDArray[np.intp]:
    """Column of each label hash: -1 where no label has it, -2 where the hash is 0 (no label)."""
    columns = np.full(len(hashes), -1, dtype=np.intp)
    if len(labels):
        held, column = sorted_hashes(tuple(labels))
        place = np.minimum(np.searchsorted(held, hashes), len(held) - 1)
        np.copyto(columns, column[place], where=held[place] == hashes)
    columns[hashes == 0] = -2
    return columns


def column_of(doc: Doc, attribute: str) -> NDArray[Any]:
    """One attribute of all tokens, as signed numbers."""
    return doc.to_array([attribute]).astype(np.uint64, copy=False).reshape(-1).view(np.int64)
