"""Whole annotations of a Doc, drawn by their calibrated probabilities: what a program makes of the draws is a sample of
what the truth would give (Nguyen and O'Connor 2015, section 6). `Doc._.<attr>.sample(n, seed)` gives them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup

from ..errors import calib_error
from ..expect.draws import REST, draw_apart, draw_each, draw_entries, generator
from ..types import Floats, Ints
from .annotations import (
    ARC_EVENTS,
    SPANS_PREFIX,
    Annotation,
    CatsAnnotation,
    MappedAnnotation,
    SpanAnnotation,
    get_annotation,
    is_space,
    plain_name,
)
from .top_labels import erase_label, write_labels

if TYPE_CHECKING:
    from .view import DocCalib, ScoredSpan


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Sequence["Draw"]):
    """n annotations of a Doc, drawn independently: a sequence of Draw; the subclasses hold them as arrays.

    of (Doc): The Doc, which is not changed. scale (Floats): The factor of each unit's or span's probability: 1, or less
        where events that exclude each other have probabilities with a sum above 1. words: Hashes of its words when they were drawn.
    """

    of: Doc
    scale: Floats
    words: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", self.of.to_array("ORTH"))

    @abstractmethod
    def __len__(self) -> int:
        """How many draws there are."""

    @overload
    def __getitem__(self, number: int) -> Draw: ...
    @overload
    def __getitem__(self, number: slice) -> list[Draw]: ...
    def __getitem__(self, number: int | slice) -> Draw | list[Draw]:
        if isinstance(number, slice):
            return [Draw(self, i) for i in range(*number.indices(len(self)))]
        return Draw(self, range(len(self))[number])

    def __iter__(self) -> Iterator[Draw]:
        return (Draw(self, number) for number in range(len(self)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} of '{self.of.text[:40].strip()}'>"

    def docs(self) -> Iterator[Doc]:
        """A copy of the Doc for each draw, made when it is asked for."""
        return (draw.doc() for draw in self)

    @abstractmethod
    def write(self, doc: Doc, number: int) -> None:
        """Put a draw on a Doc with the same tokens."""


class Draw(NamedTuple):
    """One of the draws. draws (Draws): All of them. number (int): Its place among them."""

    draws: Draws
    number: int

    def doc(self, onto: Doc | None = None) -> Doc:
        """The Doc with what was drawn in place of what was predicted.

        onto (Doc | None): A Doc with the same tokens to write on, as another annotation's draw; None for a copy.
        RAISES C411: sentence starts, on a Doc with a parse. C414: the Doc has other words than those that were drawn for.
        """
        onto = self.draws.of.copy() if onto is None else onto
        if not np.array_equal(onto.to_array("ORTH"), self.draws.words):
            raise calib_error("C414", text=onto.text[:40].strip())
        self.draws.write(onto, self.number)
        return onto


@dataclass(frozen=True, eq=False, repr=False)
class LabelDraws(Draws):
    """Labels of tokens.

    layer (str): Name of the annotation. labels (tuple[str, ...]): The labels drawn from. codes (Ints): Place of each
        token's label among them in each draw, -1 for none, (n, n_tokens). scored (NDArray[bool]): Which tokens have
        scores; the others keep their labels. gap (float): Largest error of a label's share; 0 but for chains.
    """

    layer: str
    labels: tuple[str, ...]
    codes: Ints
    scored: NDArray[np.bool_]
    gap: float = 0.0

    def __len__(self) -> int:
        return len(self.codes)

    def write(self, doc: Doc, number: int) -> None:
        layer = plain_name(self.layer)
        if layer == "sent" and doc.has_annotation("DEP"):
            raise calib_error("C411")
        names = (*self.labels, "")  # code -1
        own = self.codes[number].tolist()
        for i in np.flatnonzero(self.scored & (self.codes[number] == REST)).tolist():
            erase_label(doc[i], layer)
        write_labels(doc, layer, [names[code] if scored else "" for code, scored in zip(own, self.scored, strict=True)])


@dataclass(frozen=True, eq=False, repr=False)
class SpanDraws(Draws):
    """Entities, or spans of a span group.

    layer (str): Name of the annotation. spans (tuple[ScoredSpan, ...]): The spans drawn from, on the Doc or candidates.
        held (NDArray[bool]): Whether each is in each draw, shape (n, n_spans). Spans without a score stay on the Doc.
    """

    layer: str
    spans: tuple[ScoredSpan, ...]
    held: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.held)

    def write(self, doc: Doc, number: int) -> None:
        known = {(one.start, one.end, one.label) for one in self.spans}
        on_doc = {(span.start, span.end, span.label_): span for span in get_annotation(self.layer).spans_on(self.of)}
        kept = [key for key in on_doc if key not in known]
        drawn = [self.spans[i][:3] for i in np.flatnonzero(self.held[number]).tolist()]
        made = [_span_like(doc, key, on_doc.get(key)) for key in sorted([*kept, *drawn])]
        inner = plain_name(self.layer)
        if inner.startswith(SPANS_PREFIX):
            name = inner.removeprefix(SPANS_PREFIX)
            doc.spans[name] = SpanGroup(doc, name=name, spans=made)
        else:
            covered = {i for span in made for i in range(span.start, span.end)}
            missing = [doc[i : i + 1] for i, token in enumerate(self.of) if not token.ent_iob and i not in covered]
            doc.set_ents(made, missing=missing)


def _span_like(doc: Doc, key: tuple[int, int, str], span: Span | None) -> Span:
    """A span on another Doc, with the identifiers of `span`, which is the one like it on the first Doc."""
    start, end, label = key
    return Span(doc, start, end, label) if span is None else Span(doc, start, end, label, kb_id=span.kb_id, span_id=span.id)


@dataclass(frozen=True, eq=False, repr=False)
class CategoryDraws(Draws):
    """Text categories.

    layer (str): Name of the annotation. labels (tuple[str, ...]): The categories drawn from. held (NDArray[bool]):
        Whether each is in each draw, (n, n_labels). Where categories exclude each other and sum to less than 1, some
        draws have none.
    """

    layer: str
    labels: tuple[str, ...]
    held: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.held)

    def write(self, doc: Doc, number: int) -> None:
        inner = _inner(self.layer)
        own = inner.values(doc) if isinstance(inner, CatsAnnotation) else {}
        doc.cats.update(dict.fromkeys((*own, *self.labels), 0.0))
        doc.cats.update({self.labels[i]: 1.0 for i in np.flatnonzero(self.held[number]).tolist()})


class Tree(NamedTuple):
    """One of the distinct trees that were drawn. draw (Draw): The likeliest draw of it. share (float): Of the draws. log_probability (float): Of that draw."""

    draw: Draw
    share: float
    log_probability: float


@dataclass(frozen=True, eq=False, repr=False)
class TreeDraws(Draws):
    """Whole parses, drawn as the parser itself would decide, not by calibrated scores: heads of one token and another go together.

    layer (str): "head" or "arc", what the scores are of. labels (tuple[str, ...]): Those that were drawn. heads (Ints): Place of each token's
    head in each draw, itself without one, (n, n_tokens). codes (Ints): Place of its label among `labels`, (n, n_tokens). log_probability
    (Floats): Of all transitions of each draw, (n,).
    """

    layer: str
    labels: tuple[str, ...]
    heads: Ints
    codes: Ints
    log_probability: Floats

    def __len__(self) -> int:
        return len(self.heads)

    def write(self, doc: Doc, number: int) -> None:
        labels = np.array([doc.vocab.strings.add(label) for label in self.labels], dtype=np.uint64)
        heads = (self.heads[number] - np.arange(len(doc))).astype(np.int64).view(np.uint64)
        doc.from_array(["HEAD", "DEP"], np.column_stack([heads, labels[self.codes[number]]]))  # type: ignore[arg-type]

    def same_heads(self) -> NDArray[np.bool_]:
        """Which tokens have the head (with scores of arcs: and label) in each draw that they have on the Doc, shape (n, n_tokens)."""
        own = self.of.to_array(["HEAD", "DEP"]).astype(np.uint64).reshape(-1, 2)
        same = self.heads == np.arange(len(own)) + own[:, 0].view(np.int64)
        if self.layer == "arc":
            same &= np.array([get_string_id(label) for label in self.labels], dtype=np.uint64)[self.codes] == own[:, 1]
        return same

    def same(self, span: Span | None = None) -> NDArray[np.bool_]:
        """Which draws have the tree that stands on the Doc, white space aside, shape (n,). span (Span | None): Of its tokens alone, a sentence's say."""
        start, end = (0, len(self.of)) if span is None else (span.start, span.end)
        return np.asarray((self.same_heads() | is_space(self.of))[:, start:end].all(axis=1))

    def best(self, n: int = 10, span: Span | None = None) -> list[Tree]:
        """The n distinct trees (heads and labels) with the largest shares of the draws, of equal ones the likelier. span (Span | None): As in `same`."""
        start, end = (0, len(self.of)) if span is None else (span.start, span.end)
        trees = np.concatenate([self.heads[:, start:end], self.codes[:, start:end]], axis=1)
        order = np.argsort(-self.log_probability, kind="stable")
        _, first, counts = np.unique(trees[order], axis=0, return_index=True, return_counts=True)
        chosen = sorted(zip((-counts).tolist(), first.tolist(), strict=True))[:n]
        return [Tree(self[int(order[at])], -count / len(self), float(self.log_probability[order[at]])) for count, at in chosen]

    def head_shares(self) -> Floats:
        """In which share of the draws token h is the head of token i: row i, column h, shape (n_tokens, n_tokens); roots on the diagonal."""
        n_tokens = self.heads.shape[1]
        places = np.arange(n_tokens) * n_tokens + self.heads
        return np.bincount(places.ravel(), minlength=n_tokens**2).reshape(n_tokens, n_tokens) / max(1, len(self))


# What draws trees of each Doc, (view, n, seed) -> TreeDraws, as long as the Doc lives: left by what read the scores of its arcs.
DRAWERS: MutableMapping[Doc, Callable[[DocCalib, int, int], TreeDraws]] = WeakKeyDictionary()


def sample_view(view: DocCalib, n: int, seed: int) -> Draws:
    """n annotations, drawn by calibrated probabilities; trees by the parser's own.

    Tokens are drawn one by one; entities as sets without overlap, from those on the Doc and candidates; spans of a span
    group, and categories that may go together, each by itself; of other categories one. Text, scores and seed decide
    the draws, wherever they are made. RAISES C001: n or seed is negative. C410: arcs of a Doc whose parser is not known.
    And see `sources.parser.trees.sample_trees`.
    """
    annotation = _inner(view.layer)
    if annotation.name in ARC_EVENTS:
        if view.doc not in DRAWERS:
            raise calib_error("C410", text=view.doc.text[:40].strip())
        return DRAWERS[view.doc](view, n, seed)
    rng = generator(n, seed, get_string_id(view.doc.text))
    if annotation.name in ("ner", "biluo") or isinstance(annotation, SpanAnnotation):
        return _sample_spans(view, n, rng)
    names = np.array([*dict.fromkeys(view.tags.tolist()), None], dtype=object)[:-1]
    number = {name: code for code, name in enumerate(names.tolist())}
    codes = np.array([number[tag] for tag in view.tags], dtype=np.intp)
    if isinstance(annotation, CatsAnnotation):
        return _sample_categories(view, annotation.overlapping, tuple(names), codes, n, rng)
    chosen, scale = draw_entries(view.rows, view.calibrated, len(view.scored), n, rng)
    return LabelDraws(view.doc, scale, view.layer, tuple(names), np.append(codes, REST)[chosen], view.scored)


def _inner(layer: str) -> Annotation:
    """The annotation that the Doc itself carries, before any map of labels."""
    annotation = get_annotation(layer)
    return annotation.inner if isinstance(annotation, MappedAnnotation) else annotation


def _sample_spans(view: DocCalib, n: int, rng: np.random.Generator) -> SpanDraws:
    annotation = get_annotation(view.layer)
    spans = (*view.ents, *view.candidates)
    apart = not view.layer.startswith(SPANS_PREFIX)
    if apart:  # what stands there without a score stays, and leaves no place
        scored = {(span.start, span.end, span.label) for span in view.ents}
        taken = np.zeros(len(view.doc), dtype=bool)
        for span in annotation.spans_on(view.doc):
            taken[span.start : span.end] |= (span.start, span.end, span.label_) not in scored
        spans = tuple(span for span in spans if not taken[span.start : span.end].any())
    scores = np.array([span.score for span in spans], dtype=np.float64)
    starts, ends = (np.array([getattr(span, name) for span in spans], dtype=np.intp) for name in ("start", "end"))
    held, scale = draw_apart(starts, ends, scores, n, rng) if apart else (draw_each(scores, n, rng), np.ones(len(spans)))
    return SpanDraws(view.doc, scale, view.layer, spans, held)


def _sample_categories(
    view: DocCalib, several: bool, names: tuple[str, ...], codes: Ints, n: int, rng: np.random.Generator
) -> CategoryDraws:
    scores = np.zeros(len(names))
    scores[codes] = view.calibrated
    if several:
        return CategoryDraws(view.doc, np.ones(1), view.layer, names, draw_each(scores, n, rng))
    chosen, scale = draw_entries(np.zeros(len(names), dtype=np.intp), scores, 1, n, rng)
    return CategoryDraws(view.doc, scale, view.layer, names, chosen == np.arange(len(names)))
