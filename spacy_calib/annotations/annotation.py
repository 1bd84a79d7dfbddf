"""The base class of annotations, and helpers that read and align labels of Docs.

A *unit* is what has one label: a token, or for `cats` a whole document. Arrays of labels contain spaCy's hashes of strings
(uint64), which are the same in every vocab; 0 is no label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, LENGTH, ORTH
from spacy.pipeline import EntityLinker
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from .kinds import ATTRIBUTE, Kind

if TYPE_CHECKING:
    from .label_schemes import LabelComparison

Hashes = NDArray[np.uint64]
_TEXT_ATTRS = [IDX, LENGTH, ORTH]  # numbers, because `Doc.to_array` is slower by name
# Key of a span group of a gold Doc: spans that no source of the gold decides, or about which sources disagree. Spans that
# overlap them have no gold.
UNKNOWN = "calib_unknown"
ONLY_REJECTED = np.uint64(get_string_id("(rejected)"))  # gold of a unit for which only wrong labels are known
GOLD_LABELS = "calib_gold_labels"  # key in `Doc.user_data` of a gold Doc: name of an annotation -> LabelComparison
NO_PARTNER = -1  # the offset of a token without a partner; annotations with such tokens have no negative offsets
NIL = EntityLinker.NIL  # the identity of an entity that matches no candidate


class Annotation(ABC):
    """One kind of labels of Docs, such as tags or entities: reads predicted and gold labels, and compares them.

    A unit is what has one label: a token or, for text categories, the document. name (str): The annotation's name in configs
    and saved scores. kind (Kind): Properties of its labels. partners (Callable | None): Takes a Doc; returns for each token how
    many characters later (earlier: below 0) its `partner` (the head of an arc, for instance) starts, or NO_PARTNER. None if
    each label concerns one token. evaluate_spans (Callable | None): Takes an example and (start, end, label hash) of each
    predicted span; returns for each span 1 (right), 0 (wrong) or -1 (no gold). None if the pipe's setting `event` decides when
    a span is right.
    """

    name: str
    kind: Kind = ATTRIBUTE
    partners: Callable[[Doc], NDArray[np.int32]] | None = None
    evaluate_spans: Callable[[Example, Sequence[tuple[int, int, int]]], NDArray[np.intp]] | None = None

    # Units

    def n_units(self, doc: Doc) -> int:
        """Return the number of units of a Doc, which have one label each: its tokens or, for categories, the document."""
        return len(doc)

    def has_units(self, doc: Doc) -> bool:
        """Return whether any token (or the document) may have a label. Sentence starts have none for a Doc's first token."""
        return self.n_units(doc) > self.kind.first_unit

    def unit_texts(self, doc: Doc) -> Hashes:
        """Return (offset of the first character, number of characters, hash of the text) of each unit, shape (n_units, 3)."""
        return cast(Hashes, doc.to_array(_TEXT_ATTRS))

    def partner(self, token: Token) -> Token | None:
        """Return the other token that the label of `token` concerns; `token` itself if there is no other.

        For arcs it is the head. For entity links it is the entity's last token, or None if `token` begins no entity.
        """
        return token

    # Labels

    @abstractmethod
    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of the label of each unit (token, or document) of a Doc, 0 for no label, shape (n_units,)."""

    @abstractmethod
    def label(self, token: Token) -> str:
        """Return the label of a token as text, "" for none."""

    def label_at(self, doc: Doc, unit: int) -> str:
        """Return the label of a unit of a Doc, given by its index (0 for a document), as text; "" for none."""
        return self.label(doc[unit])

    def gold_hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each unit's label in a gold Doc, 0 for a unit that the gold does not annotate."""
        return self.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        """Return the hash of the gold label of each unit of the predicted Doc; ONLY_REJECTED if only wrong labels are known.

        As in spaCy's scorers, the hash is 0 for tokens without gold, white space, and tokens not aligned with one gold token.
        """
        tokens, gold_tokens = _align(example)
        gold = np.zeros(len(example.predicted), dtype=np.uint64)
        gold[tokens] = self.gold_hashes(example.reference)[gold_tokens]
        return mark_rejected(self, gold, example)

    def rejected_labels(self, example: Example) -> set[tuple[int, int]] | None:
        """Return the (predicted unit, label hash) pairs that annotators rejected; None if the gold has no yes/no answers."""
        spans = rejected_in(self, example.reference)
        if spans is None:
            return None
        labels_by_gold_token: dict[int, list[int]] = {}
        for start, _, label in spans:  # each span is one gold token
            labels_by_gold_token.setdefault(start, []).append(label)
        tokens, gold_tokens = _align(example)
        aligned = zip(tokens.tolist(), gold_tokens.tolist(), strict=True)
        return {(token, label) for token, gold_token in aligned for label in labels_by_gold_token.get(gold_token, ())}

    def is_gold(self, example: Example, units: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return for each of n labels whether it is right, (n,). units, hashes: Unit index and hash of each label."""
        return self.aligned_gold(example)[units] == hashes

    def is_known(self, example: Example, units: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return for each of n labels whether the gold decides if it is right, shape (n,).

        units, hashes: Unit index (0 for a document) and hash of each label. Without yes/no answers the gold decides about all
        labels of a unit that has a gold label. With yes/no answers it decides only about rejected labels, and about the gold
        label of a document, or of a token without rejected labels.
        """
        gold, rejections = self.aligned_gold(example)[units], self.rejected_labels(example)
        if rejections is None:
            return gold != 0
        # The gold label of a token with rejected labels corrects these. It is left out, as only corrections that the component
        # scored would count, always as right. A document has a separate answer to each category.
        corrected_tokens = set() if self.kind.of_documents else {token for token, _ in rejections}
        is_known = []
        for unit, label, gold_label in zip(units.tolist(), hashes.tolist(), gold.tolist(), strict=True):
            is_gold_label = label == gold_label and unit not in corrected_tokens
            is_known.append(is_gold_label or (unit, label) in rejections)
        return np.array(is_known, dtype=bool)

    @property
    def gold(self) -> Annotation:
        """The annotation that reads the gold Docs: this one, unless gold Docs have other labels or store them elsewhere."""
        return self

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        """Return the annotation for gold Docs whose labels have other names. counterpart: Label -> gold label, "" for none."""
        return self

    # Spans, for annotations that have them

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of a Doc that have labels of this annotation, such as its entities; () without spans."""
        return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        """Return for each token of a gold Doc whether the gold decides which spans cover it, shape (n_tokens,)."""
        return np.zeros(len(doc), dtype=bool)

    def gold_span_label(self, label: int) -> int:
        """Return the hash of the gold label that corresponds to the label of a predicted span, given as a hash."""
        return label

    def foreign_labels(self, docs: Iterable[Doc]) -> list[str]:
        """Return the labels in gold Docs that are left out because they belong to another component or scheme."""
        return []

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return label -> number of its spans in gold Docs."""
        return Counter(span.label_ for doc in docs for span in self.spans_on(doc))

    def count_gold(self, docs: Iterable[Doc]) -> Counter[str]:
        """Return label -> number of its units in gold Docs. Units without a label are not counted."""
        counts: Counter[int] = Counter()
        strings = None
        for doc in docs:
            strings = doc.vocab.strings  # all Docs have one vocab
            keys, n = np.unique(self.gold_hashes(doc), return_counts=True)
            counts.update(dict(zip(keys.tolist(), n.tolist(), strict=True)))
        counts.pop(0, None)  # the hash of no label
        return Counter({self._string(key, strings): n for key, n in counts.items()})

    def _string(self, key: int, strings: object) -> str:
        """Return the label whose hash is `key`. strings: The StringStore of the Docs that the label was read from."""
        return strings[key]  # type: ignore[index]


def _align(example: Example) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the predicted words that align with one gold token, and for each the index of this gold token."""
    gold_tokens = single_gold_tokens(example)
    tokens = np.flatnonzero((gold_tokens >= 0) & ~is_space(example.predicted))
    return tokens, gold_tokens[tokens]


def single_gold_tokens(example: Example) -> NDArray[np.intp]:
    """Return for each predicted token the index of its only aligned gold token, shape (n_tokens,); -1 for none or several."""
    alignment = example.alignment.x2y  # computed at each access; `data` has the gold tokens of all predicted tokens in a row
    n_aligned = _count_aligned(example, alignment)
    first_in_data = np.cumsum(n_aligned) - n_aligned  # index in `data` of each predicted token's first gold token
    is_single = n_aligned == 1
    gold_tokens = np.full(len(n_aligned), -1, dtype=np.intp)
    gold_tokens[is_single] = np.asarray(alignment.data)[first_in_data[is_single]]
    return gold_tokens


def _count_aligned(example: Example, alignment: Any) -> NDArray[np.intp]:
    """Return the number of gold tokens that each predicted token aligns with. alignment: `example.alignment.x2y`."""
    # If only one of the two Docs ends in white space, spaCy's alignment has a row after the last token.
    return np.asarray(alignment.lengths)[: len(example.predicted)]


def mark_rejected(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """Return `gold`, each unit's gold label hash, changed in place: 0 becomes ONLY_REJECTED if the unit has rejected labels."""
    units = [unit for unit, _ in annotation.rejected_labels(example) or ()]
    gold[units] = np.where(gold[units] == 0, ONLY_REJECTED, gold[units])
    return gold


def count_misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int]:
    """Count words in Docs with gold: {"tokens": all of them, "left_out": those that align with no or several gold tokens}."""
    counts = {"tokens": 0, "left_out": 0}
    for example in examples:
        if annotation.gold_hashes(example.reference).any():
            words = ~is_space(example.predicted)
            counts["tokens"] += int(words.sum())
            counts["left_out"] += int((words & (_count_aligned(example, example.alignment.x2y) != 1)).sum())
    return counts


def rejected_in(annotation: Annotation, doc: Doc) -> list[tuple[int, int, int]] | None:
    """Return (start, end, label hash) of labels that annotators rejected in a gold Doc; None if it has no yes/no answers."""
    if annotation.kind.rejected_key not in doc.spans:
        return None
    return [(span.start, span.end, span.label) for span in doc.spans[annotation.kind.rejected_key]]


def has_gold(annotation: Annotation, doc: Doc) -> bool:
    """Return whether a gold Doc has any label, span or rejected label of this annotation."""
    return bool(annotation.gold_hashes(doc).any() or len(annotation.spans_on(doc)) or rejected_in(annotation, doc))


def texts_of(annotation: Annotation, doc: Doc) -> list[str]:
    """Return the text of each unit of a Doc: of its tokens, or of the document; [] for an empty Doc."""
    return [doc.text] * annotation.n_units(doc) if annotation.kind.of_documents else [token.text for token in doc]


def is_blank(annotation: Annotation, doc: Doc) -> NDArray[np.bool_]:
    """Return for each unit of a Doc whether its text is white space, shape (n_units,)."""
    if not annotation.kind.of_documents:
        return is_space(doc)
    return np.array([text.isspace() for text in texts_of(annotation, doc)], dtype=bool)


def is_space(doc: Doc) -> NDArray[np.bool_]:
    """Return for each token of a Doc whether its text is white space, shape (n_tokens,)."""
    strings = doc.vocab.strings  # read the texts, since a vocab without a Language lacks the flag IS_SPACE
    return map_unique(doc.to_array(["ORTH"]), lambda key: strings[key].isspace()).astype(bool)


def map_unique(codes: NDArray[Any], to_hash: Callable[[Any], int]) -> Hashes:
    """Return the hash that `to_hash` gives for each of n numbers (`codes`), (n,). It is called once per distinct number."""
    code_list = codes.tolist()
    values = {code: to_hash(code) for code in dict.fromkeys(code_list)}
    return np.array([values[code] for code in code_list], dtype=np.uint64)


def label_hashes(labels: Iterable[str]) -> Hashes:
    return np.array([get_string_id(label) for label in labels], dtype=np.uint64)


@lru_cache(maxsize=64)
def sorted_hashes(labels: tuple[str, ...]) -> tuple[Hashes, NDArray[np.intp]]:
    """Return (the hashes of the labels in ascending order, the index in `labels` of each)."""
    hashes = label_hashes(labels)
    order = np.argsort(hashes)
    return hashes[order], order


def columns_of(hashes: Hashes, labels: Sequence[str]) -> NDArray[np.intp]:
    """Return the index in `labels` of each of n label hashes, (n,): -1 for a label that is not there, -2 for none (hash 0)."""
    columns = np.full(len(hashes), -1, dtype=np.intp)
    if len(labels):
        sorted_keys, order = sorted_hashes(tuple(labels))
        position = np.minimum(np.searchsorted(sorted_keys, hashes), len(sorted_keys) - 1)  # in the sorted hashes
        np.copyto(columns, order[position], where=sorted_keys[position] == hashes)
    columns[hashes == 0] = -2
    return columns


def values_of_tokens(doc: Doc, attribute: str) -> NDArray[Any]:
    """Return one attribute of all tokens of a Doc, such as "HEAD", as signed 64-bit integers, shape (n_tokens,)."""
    return doc.to_array([attribute]).astype(np.uint64, copy=False).reshape(-1).view(np.int64)


def get_label_comparison(doc: Doc, annotation_name: str) -> LabelComparison | None:
    """Return how a component's labels are compared with a gold Doc of another label scheme; None if the scheme is the same."""
    return cast("LabelComparison | None", doc.user_data.get(GOLD_LABELS, {}).get(annotation_name))


def resolve_gold(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """Return `gold` (label hash of each predicted token), translated to predicted labels if the gold has another scheme."""
    comparison = get_label_comparison(example.reference, annotation.name)
    return gold if comparison is None or not len(example.predicted) else comparison.resolve(annotation, gold, example)
