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
from spacy.morphology import Morphology
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ...errors import calib_error
from ...pairs.documents import TOKEN

Hashes = NDArray[np.uint64]


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
    spans_are_units (bool): Whether what carries a label is one of its spans, as its first token.
    partners (Callable | None): How many characters behind each token of a Doc its `partner` begins; None where labels are of tokens alone.
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
    spans_are_units: bool = False
    judges: bool = False
    any_label: bool = False
    accuracy_name: str = "accuracy"
    span_words: tuple[str, str] = ("entity", "entities")
    spans_first: bool = True
    span_event: str = ""
    partners: Callable[[Doc], NDArray[np.int32]] | None = None
    judge_spans: Callable[[Example, Sequence[tuple[int, int, int]]], NDArray[np.intp]] | None = None

    # Units

    def n_units(self, doc: Doc) -> int:
        """How many units a Doc has: rows of probabilities, of labels, of gold."""
        return len(doc)

    def places(self, doc: Doc) -> Hashes:
        """First character and hash of the text of each unit, shape (n_units, 2)."""
        return doc.to_array(["IDX", "ORTH"]).astype(np.uint64, copy=False).reshape(-1, 2)

    def texts(self, doc: Doc) -> list[str]:
        """The text of each unit."""
        return [token.text for token in doc]

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
        for white space, and where the token does not align with exactly one gold token.
        """
        partners = example.alignment.x2y  # asked once: it looks at all words
        lengths = _lengths(example, partners)
        single = (lengths == 1) & ~is_space(example.predicted)
        gold = np.zeros(len(lengths), dtype=np.uint64)
        starts = np.cumsum(lengths) - lengths
        gold[single] = self.gold_hashes(example.reference)[np.asarray(partners.data)[starts[single]]]
        return gold

    def is_gold(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Whether labels are right for predicted units.

        rows: Units of the predicted Doc. hashes (Hashes): Hash of a label for each.
        """
        return self.aligned_gold(example)[rows] == hashes

    def is_known(self, example: Example, rows: NDArray[np.intp], hashes: Hashes) -> NDArray[np.bool_]:
        """Whether the gold says if these labels are right at these units. Arguments: those of `is_gold`."""
        return self.aligned_gold(example)[rows] != 0

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


def _lengths(example: Example, partners: Any) -> NDArray[np.intp]:
    """With how many gold tokens each predicted token aligns. partners: `example.alignment.x2y`."""
    # Where only one of the two ends in white space, spaCy's alignment has a row behind the last token.
    return np.asarray(partners.lengths)[: len(example.predicted)]


def count_misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int]:
    """How many predicted "tokens" are no white space; how many of these align with no single gold one ("left_out")."""
    counts = {"tokens": 0, "left_out": 0}
    for example in examples:
        if annotation.gold_hashes(example.reference).any():
            words = ~is_space(example.predicted)
            counts["tokens"] += int(words.sum())
            counts["left_out"] += int((words & (_lengths(example, example.alignment.x2y) != 1)).sum())
    return counts


def is_blank(annotation: Annotation, doc: Doc) -> NDArray[np.bool_]:
    """Whether each unit of a Doc is white space alone."""
    return (
        is_space(doc) if annotation.unit == TOKEN else np.array([text.isspace() for text in annotation.texts(doc)], dtype=bool)
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


# The name of the annotation that an extension of Token holds: this, then the name of the extension.
EXTENSION_PREFIX = "_."


class AttributeAnnotation(Annotation):
    """A label that stands in one attribute of the token: TAG, LEMMA, POS, ENT_TYPE, DEP."""

    def __init__(self, name: str, attribute: str):
        self.name = name
        self.attribute = attribute
        self._of_token = f"{attribute.lower()}_"

    def hashes(self, doc: Doc) -> Hashes:
        return doc.to_array([self.attribute]).astype(np.uint64, copy=False).reshape(-1)

    def label(self, token: Token) -> str:
        return getattr(token, self._of_token)


class PosAnnotation(AttributeAnnotation):
    """UPOS: spaCy keeps it as a small number, not as a hash."""

    def __init__(self) -> None:
        super().__init__("pos", "POS")

    def hashes(self, doc: Doc) -> Hashes:
        codes = super().hashes(doc)
        return map_unique(codes, lambda code: get_string_id(doc.vocab.strings[code]) if code else 0)


class MorphAnnotation(Annotation):
    """UPOS and features as the morphologizer joins them: "Number=Sing|POS=NOUN"."""

    name = "morph"

    def hashes(self, doc: Doc) -> Hashes:
        if not len(doc):
            return np.zeros(0, dtype=np.uint64)
        both = doc.to_array(["POS", "MORPH"]).astype(np.uint64)
        kinds, inverse = np.unique(both, axis=0, return_inverse=True)
        strings = doc.vocab.strings
        known = [self._joined(doc.vocab, strings[int(pos)], strings[int(morph)]) for pos, morph in kinds]
        return np.array([get_string_id(label) if label else 0 for label in known], dtype=np.uint64)[inverse.reshape(-1)]

    def label(self, token: Token) -> str:
        return self._joined(token.vocab, token.pos_, str(token.morph) if token.has_morph() else "", token.has_morph())

    @staticmethod
    def _joined(vocab: object, pos: str, morph: str, has_morph: bool = False) -> str:
        if not pos and not morph and not has_morph:
            return ""
        feats = Morphology.feats_to_dict(morph)
        if pos:
            feats["POS"] = pos
        return vocab.strings[vocab.morphology.add(feats)]  # type: ignore[attr-defined]


class SentAnnotation(Annotation):
    """ "S" where a sentence starts, "I" inside it; no label for the first token of a Doc, which always starts one."""

    name = "sent"
    starts = {1: "S", -1: "I"}
    first = 1

    def hashes(self, doc: Doc) -> Hashes:
        signs = doc.to_array(["SENT_START"]).astype(np.uint64, copy=False).view(np.int64).reshape(-1)
        hashes = map_unique(signs, lambda sign: get_string_id(self.starts[sign]) if sign in self.starts else 0)
        hashes[: self.first] = 0
        return hashes

    def gold_hashes(self, doc: Doc) -> Hashes:
        if not doc.has_annotation("SENT_START"):
            return np.zeros(len(doc), dtype=np.uint64)
        hashes = self.hashes(doc)
        hashes[hashes == 0] = get_string_id("I")
        hashes[: self.first] = 0
        return hashes

    def label(self, token: Token) -> str:
        is_start = token.is_sent_start if token.i >= self.first else None
        return "" if is_start is None else self.starts[1 if is_start else -1]

    def _string(self, key: int, strings: object) -> str:
        return "S" if key == get_string_id("S") else "I"


class ExtensionAnnotation(Annotation):
    """The text in an extension attribute of the user's, Token._.<extension>."""

    def __init__(self, extension: str):
        self.name = f"{EXTENSION_PREFIX}{extension}"
        self.extension = extension

    def hashes(self, doc: Doc) -> Hashes:
        strings = doc.vocab.strings  # which learn the labels: nothing else puts them there
        return np.array([strings.add(label) if (label := self.label(token)) else 0 for token in doc], dtype=np.uint64)

    def label(self, token: Token) -> str:
        """RAISES C324: there is no such extension."""
        if not Token.has_extension(self.extension):
            raise calib_error("C324", name=self.extension)
        return token._.get(self.extension) or ""
