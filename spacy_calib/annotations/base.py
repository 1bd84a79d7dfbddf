"""The contract of an annotation.

A *unit* is what carries a label: a token, or in `cats` a whole document. Labels are spaCy's string hashes (uint64), the
same in every vocab; 0 is no label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, ORTH
from spacy.pipeline import EntityLinker
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ..pairs.documents import TOKEN

if TYPE_CHECKING:
    from .label_schemes import JudgedLabels

Hashes = NDArray[np.uint64]
# By number: `Doc.to_array` is slower by name.
_PLACE = [IDX, ORTH]
# Keys of span groups on gold Docs, with what people rejected, under the component's labels: spans, labels of single tokens, categories (of the whole
# Doc), identities of entities. A Doc that has such a group, even an empty one, was asked about what was accepted and rejected alone; all else is unknown.
REJECTED = "calib_rejected"
REJECTED_TOKENS, REJECTED_CATS, REJECTED_LINKS = (f"{REJECTED}:{unit_name}" for unit_name in ("token", "document", "link"))
# Key of the span group with spans of a gold Doc that its sources contradict: what overlaps one is neither right nor wrong.
UNKNOWN = "calib_unknown"
# The gold of a unit of which no more is known than that some labels are wrong.
NOT_THOSE = np.uint64(get_string_id("(rejected)"))
# Key of the user data of a gold Doc: annotation -> `label_schemes.JudgedLabels`.
GOLD_LABELS = "calib_gold_labels"


# In place of an offset, which is 0 or more where tokens may lack a partner.
NO_PARTNER = -1


class Annotation(ABC):
    """One kind of label that the units of a Doc have.

    name (str): In configs and in blocks. unit (str): What has a label, "token" or "document". overlapping (bool): Whether a
    unit may have several gold labels.
    none (tuple[str, ...]): Gold of a unit that is known to have no label; () without such units. first (int): First unit of a
    Doc that may have a label.
    arcs (bool): Whether the label is that of the arc from the token's head. judges (bool): Whether `is_gold` compares more than
    labels. any_label (bool): Whether it compares no labels, so the gold may be of another scheme. accuracy_name (str): The name
    of the share of right labels.
    span_words (tuple[str, str]): Name of a span, and plural. spans_first (bool): Whether commands show spans by default, not
    units. span_event (str): When a span is right; "" if a setting of the pipe decides. spans_are_units (bool): Whether a unit
    is a span, as its first token. of_entities (bool): Whether its spans are the entities of a Doc: its pipe has an own prefix.
    partners (Callable | None): How many characters after each token its `partner` begins, NO_PARTNER where it has none; None for labels of tokens alone.
    rejected_key (str): Of the span group with rejected labels. judge_spans (Callable | None): With `span_event`: (example,
    (start, end, label hash) of predicted spans) -> 1, 0, or -1 without gold, for each.
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
        """Return the number of units of a Doc: rows of probabilities, labels and gold."""
        return len(doc)

    def places(self, doc: Doc) -> Hashes:
        """Return first character and hash of the text of each unit, shape (n_units, 2)."""
        return cast(Hashes, doc.to_array(_PLACE))

    def partner(self, token: Token) -> Token | None:
        """Return the other token of a label of two: head, or last token of the entity that it begins, None if it begins none; else the token itself."""
        return token

    # Labels

    @abstractmethod
    def hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each unit's label, 0 for none."""

    @abstractmethod
    def label(self, token: Token) -> str:
        """Return the label of the token, "" for none."""

    def label_at(self, doc: Doc, row: int) -> str:
        """Return the label of one unit of a Doc, "" for none."""
        return self.label(doc[row])

    def gold_hashes(self, doc: Doc) -> Hashes:
        """Return the hash of each unit's label in a gold Doc, 0 where the annotation is missing."""
        return self.hashes(doc)

    def aligned_gold(self, example: Example) -> Hashes:
        """Return the gold hash of each predicted unit; for tokens as in spaCy's scorers: 0 without gold, for white space, and
        without a single aligned gold token. Units with only rejected labels get NOT_THOSE.
        """
        rows, partners = _align(example)
        gold = np.zeros(len(example.predicted), dtype=np.uint64)
        gold[rows] = self.gold_hashes(example.reference)[partners]
        return or_refused(self, gold, example)

    def refused(self, example: Example) -> set[tuple[int, int]] | None:
        """Return (predicted unit, hash of a label) that people rejected; None unless the gold is only such answers."""
        spans = rejected_in(self, example.reference)
        if spans is None:
            return None
        labels: dict[int, list[int]] = {}
        for start, _, label in spans:
            labels.setdefault(start, []).append(label)
        pairs = zip(*(column.tolist() for column in _align(example)), strict=True)
        return {(row, label) for row, partner in pairs for label in labels.get(partner, ())}

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether labels are right for predicted units. rows: The units. hashes (Hashes): A label for each."""
        return self.aligned_gold(example)[rows] == hashes

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether the gold decides if these labels are right at these units. Arguments: those of `is_gold`.

        Where labels of a token were rejected without another one, only these are known: the right one would be known only when
        it is predicted. Categories are asked about one by one.
        """
        gold, rejections = self.aligned_gold(example)[rows], self.refused(example)
        if rejections is None:
            return gold != 0
        asked_rows = {row for row, _ in rejections} if self.unit == TOKEN else set()
        units = zip(rows.tolist(), hashes.tolist(), gold.tolist(), strict=True)
        return np.array(
            [(row, key) in rejections or (row not in asked_rows and key == right) for row, key, right in units], dtype=bool
        )

    @property
    def gold(self) -> Annotation:
        """The annotation of the gold Docs, which may have labels of another scheme."""
        return self

    def in_scheme(self, counterpart: Callable[[str], str]) -> Annotation:
        """Return the annotation of Docs with the counterparts of these labels; "" is no counterpart."""
        return self

    # Spans, for annotations that have them

    def spans_on(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of a Doc."""
        return ()

    def known_tokens(self, doc: Doc) -> NDArray[np.bool_]:
        """Return for which tokens of a gold Doc the spans are known."""
        return np.zeros(len(doc), dtype=bool)

    def gold_span_label(self, label: int) -> int:
        """Return the hash of the gold label that makes a predicted span with this label right."""
        return label

    def foreign(self, docs: Iterable[Doc]) -> list[str]:
        """Return gold labels that are left out, as they belong to another component or scheme."""
        return []

    def count_spans(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count the span labels in gold."""
        return Counter(span.label_ for doc in docs for span in self.spans_on(doc))

    def count(self, docs: Iterable[Doc]) -> Counter[str]:
        """Count the labels in gold; units without one do not count."""
        counts: Counter[int] = Counter()
        strings = None
        for doc in docs:
            strings = doc.vocab.strings
            keys, n = np.unique(self.gold_hashes(doc), return_counts=True)
            counts.update(dict(zip(keys.tolist(), n.tolist(), strict=True)))
        counts.pop(0, None)
        return Counter({self._string(key, strings): n for key, n in counts.items()})

    def _string(self, key: int, strings: object) -> str:
        return strings[key]  # type: ignore[index]


def _align(example: Example) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (the predicted words that align with one gold token; the number of that)."""
    partners = example.alignment.x2y  # asked once: it looks at all words
    lengths = _lengths(example, partners)
    rows = np.flatnonzero((lengths == 1) & ~is_space(example.predicted))
    return rows, np.asarray(partners.data)[(np.cumsum(lengths) - lengths)[rows]]


def _lengths(example: Example, partners: Any) -> NDArray[np.intp]:
    """Return with how many gold tokens each predicted token aligns. partners: `example.alignment.x2y`."""
    # Where only one of the two ends in white space, spaCy's alignment has a row behind the last token.
    return np.asarray(partners.lengths)[: len(example.predicted)]


def or_refused(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """Set the gold of predicted units with only rejected labels to NOT_THOSE, in place."""
    rows = [row for row, _ in annotation.refused(example) or ()]
    gold[rows] = np.where(gold[rows] == 0, NOT_THOSE, gold[rows])
    return gold


def count_misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int]:
    """Count predicted "tokens" that are no white space, and those that align with no single gold one ("left_out")."""
    counts = {"tokens": 0, "left_out": 0}
    for example in examples:
        if annotation.gold_hashes(example.reference).any():
            words = ~is_space(example.predicted)
            counts["tokens"] += int(words.sum())
            counts["left_out"] += int((words & (_lengths(example, example.alignment.x2y) != 1)).sum())
    return counts


def rejected_in(annotation: Annotation, doc: Doc) -> list[tuple[int, int, int]] | None:
    """Return (start, end, hash of the label) of what was rejected in a gold Doc; None unless it has only answers."""
    if annotation.rejected_key not in doc.spans:
        return None
    return [(span.start, span.end, span.label) for span in doc.spans[annotation.rejected_key]]


def has_gold(annotation: Annotation, doc: Doc) -> bool:
    """Return whether a gold Doc has any annotation of this kind."""
    return bool(annotation.gold_hashes(doc).any() or len(annotation.spans_on(doc)) or rejected_in(annotation, doc))


def texts_of(annotation: Annotation, doc: Doc) -> list[str]:
    """Return the text of each unit."""
    return [token.text for token in doc] if annotation.unit == TOKEN else [doc.text][: annotation.n_units(doc)]


def is_blank(annotation: Annotation, doc: Doc) -> NDArray[np.bool_]:
    """Return whether each unit of a Doc is white space."""
    return (
        is_space(doc)
        if annotation.unit == TOKEN
        else np.array([text.isspace() for text in texts_of(annotation, doc)], dtype=bool)
    )


def is_space(doc: Doc) -> NDArray[np.bool_]:
    """Return which tokens are white space by their text: without a Language a vocab does not set the flag IS_SPACE."""
    strings = doc.vocab.strings
    return map_unique(doc.to_array(["ORTH"]), lambda key: strings[key].isspace()).astype(bool)


def map_unique(codes: NDArray[Any], to_hash: Callable[[Any], int]) -> Hashes:
    """Apply a function once to each distinct code."""
    code_list = codes.tolist()
    values = {code: to_hash(code) for code in dict.fromkeys(code_list)}
    return np.array([values[code] for code in code_list], dtype=np.uint64)


def label_hashes(labels: Iterable[str]) -> Hashes:
    """Return the hash of each label."""
    return np.array([get_string_id(label) for label in labels], dtype=np.uint64)


@lru_cache(maxsize=64)
def sorted_hashes(labels: tuple[str, ...]) -> tuple[Hashes, NDArray[np.intp]]:
    """Return (the hashes of labels, ascending; the column of each)."""
    hashes = label_hashes(labels)
    order = np.argsort(hashes)
    return hashes[order], order


def columns_of(hashes: Hashes, labels: Sequence[str]) -> NDArray[np.intp]:
    """Return the column of each label hash: -1 for another label, -2 for no label (0)."""
    columns = np.full(len(hashes), -1, dtype=np.intp)
    if len(labels):
        sorted_keys, column = sorted_hashes(tuple(labels))
        place = np.minimum(np.searchsorted(sorted_keys, hashes), len(sorted_keys) - 1)
        np.copyto(columns, column[place], where=sorted_keys[place] == hashes)
    columns[hashes == 0] = -2
    return columns


def column_of(doc: Doc, attribute: str) -> NDArray[Any]:
    """Return one attribute of all tokens, as signed numbers."""
    return doc.to_array([attribute]).astype(np.uint64, copy=False).reshape(-1).view(np.int64)


# The identity of an entity that none of the candidates is; its column has a group of its own, the candidates, by falling prior, share one.
NIL = EntityLinker.NIL


def judged_labels(doc: Doc, annotation_name: str) -> JudgedLabels | None:
    """What is attached to a gold Doc; None where its labels are compared as they are."""
    attached: JudgedLabels | None = doc.user_data.get(GOLD_LABELS, {}).get(annotation_name)
    return attached


def resolve_gold(annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
    """Return the gold of predicted tokens where the scheme of the gold is not that of the pipe, see `JudgedLabels.resolve`."""
    labels = judged_labels(example.reference, annotation.name)
    return gold if labels is None or not len(example.predicted) else labels.resolve(annotation, gold, example)
