"""Sample whole annotations of a Doc by their calibrated probabilities: `Doc._.<attr>.sample(n, seed)`.

The results of a program on the samples show how uncertain its result is (Nguyen and O'Connor 2015, section 6).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, SpanGroup

from ...annotations import (
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
from ...doc.top_labels import erase_label, write_labels
from ...sources.base import PARSERS
from ...types import Floats, Ints
from .draws import REST, draw_apart, draw_each, draw_entries, make_rng
from .messages import calib_error

if TYPE_CHECKING:
    from ...doc.view import DocCalib, ScoredSpan


@dataclass(frozen=True, eq=False, repr=False)
class AnnotationDraws(Sequence["Draw"]):
    """n sampled annotations of a Doc, a sequence of Draw; subclasses have them as arrays.

    doc (Doc): The Doc, which is not changed.
    scale (Floats): Factor of the probabilities of each unit or span, below 1 if those of exclusive events sum to more than 1.
    words (NDArray[uint64]): Hashes of the Doc's words when it was sampled.
    """

    doc: Doc
    scale: Floats
    words: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", self.doc.to_array("ORTH"))

    @abstractmethod
    def __len__(self) -> int: ...

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
        return f"<{type(self).__name__}: {len(self)} of '{self.doc.text[:40].strip()}'>"

    def docs(self) -> Iterator[Doc]:
        """Iterate over a copy of the Doc for each draw."""
        return (draw.doc() for draw in self)

    @abstractmethod
    def write(self, doc: Doc, number: int) -> None:
        """Write a draw on a Doc with the same tokens. number (int): Index of the draw."""


class Draw(NamedTuple):
    """One sampled annotation of a Doc. draws (AnnotationDraws): All samples. number (int): Index of this one."""

    draws: AnnotationDraws
    number: int

    def doc(self, onto: Doc | None = None) -> Doc:
        """Return a Doc with the sampled annotation in place of the predicted one.

        onto (Doc | None): Doc with the same tokens to write on, such as a draw of another annotation; None for a copy of the
            sampled Doc.
        RAISES C411: sentence starts cannot be written on a Doc with a parse. C414: the Doc has other words.
        """
        onto = self.draws.doc.copy() if onto is None else onto
        if not np.array_equal(onto.to_array("ORTH"), self.draws.words):
            raise calib_error("C414", text=onto.text[:40].strip())
        self.draws.write(onto, self.number)
        return onto


@dataclass(frozen=True, eq=False, repr=False)
class LabelDraws(AnnotationDraws):
    """n samples of the labels of all tokens.

    layer (str): Name of the annotation. labels (tuple[str, ...]): The sampled labels.
    codes (Ints): Index of each token's label in `labels`, -1 for none, shape (n, n_tokens).
    has_scores (NDArray[bool]): Which tokens have scores, shape (n_tokens,); the others keep their labels.
    gap (float): Maximum distance of a sampling probability from the calibrated score; above 0 only for sequence models.
    """

    layer: str
    labels: tuple[str, ...]
    codes: Ints
    has_scores: NDArray[np.bool_]
    gap: float = 0.0

    def __len__(self) -> int:
        return len(self.codes)

    def write(self, doc: Doc, number: int) -> None:
        """Set the labels of sample `number` on a copy of the Doc."""
        layer = plain_name(self.layer)
        if layer == "sent" and doc.has_annotation("DEP"):
            raise calib_error("C411")
        names = (*self.labels, "")  # code -1
        codes = self.codes[number].tolist()
        for i in np.flatnonzero(self.has_scores & (self.codes[number] == REST)).tolist():
            erase_label(doc[i], layer)
        write_labels(
            doc, layer, [names[code] if has_score else "" for code, has_score in zip(codes, self.has_scores, strict=True)]
        )


@dataclass(frozen=True, eq=False, repr=False)
class SpanDraws(AnnotationDraws):
    """n samples of the entities, or of the spans of a span group; spans without a score are in each of them.

    layer (str): Name of the annotation. spans (tuple[ScoredSpan, ...]): The spans with a score.
    in_draw (NDArray[bool]): Whether each span is in each draw, shape (n, n_spans).
    """

    layer: str
    spans: tuple[ScoredSpan, ...]
    in_draw: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.in_draw)

    def write(self, doc: Doc, number: int) -> None:
        """Set the spans of sample `number` on a copy of the Doc; spans without a score stay."""
        scored_keys = {(scored_span.start, scored_span.end, scored_span.label) for scored_span in self.spans}
        on_doc = {(span.start, span.end, span.label_): span for span in get_annotation(self.layer).spans_on(self.doc)}
        keys_without_score = [key for key in on_doc if key not in scored_keys]
        sampled_keys = [self.spans[i][:3] for i in np.flatnonzero(self.in_draw[number]).tolist()]
        spans = [_span_like(doc, key, on_doc.get(key)) for key in sorted([*keys_without_score, *sampled_keys])]
        inner = plain_name(self.layer)
        if inner.startswith(SPANS_PREFIX):
            name = inner.removeprefix(SPANS_PREFIX)
            doc.spans[name] = SpanGroup(doc, name=name, spans=spans)
        else:
            tokens = {i for span in spans for i in range(span.start, span.end)}
            missing = [doc[i : i + 1] for i, token in enumerate(self.doc) if not token.ent_iob and i not in tokens]
            doc.set_ents(spans, missing=missing)


def _span_like(doc: Doc, key: tuple[int, int, str], span: Span | None) -> Span:
    """Make a span (start, end, label) on a Doc, with the identifiers of `span` if it is not None."""
    start, end, label = key
    return Span(doc, start, end, label) if span is None else Span(doc, start, end, label, kb_id=span.kb_id, span_id=span.id)


@dataclass(frozen=True, eq=False, repr=False)
class CategoryDraws(AnnotationDraws):
    """n samples of the text categories of a Doc.

    layer (str): Name of the annotation. labels (tuple[str, ...]): The categories.
    in_draw (NDArray[bool]): Whether each category is in each draw, shape (n, n_labels). If exclusive categories sum to less than
    1, some draws have none.
    """

    layer: str
    labels: tuple[str, ...]
    in_draw: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.in_draw)

    def write(self, doc: Doc, number: int) -> None:
        inner = _get_doc_annotation(self.layer)
        values = inner.values(doc) if isinstance(inner, CatsAnnotation) else {}
        doc.cats.update(dict.fromkeys((*values, *self.labels), 0.0))
        doc.cats.update({self.labels[i]: 1.0 for i in np.flatnonzero(self.in_draw[number]).tolist()})


class SampledTree(NamedTuple):
    """A distinct tree among draws.

    draw (Draw): The draw of the tree with the highest probability. share (float): Share of draws with this tree.
    log_probability (float): By the parser, of that draw's transitions.
    """

    draw: Draw
    share: float
    log_probability: float


@dataclass(frozen=True, eq=False, repr=False)
class TreeDraws(AnnotationDraws):
    """n whole parses, sampled from the parser's own distribution and not by calibrated scores, as heads depend on each other.

    layer (str): "head" or "arc". labels (tuple[str, ...]): Labels of arcs.
    heads (Ints): Index of each token's head, its own for a root, shape (n, n_tokens).
    codes (Ints): Index of the arc's label in `labels`, (n, n_tokens). log_probability (Floats): Of each draw, (n,).
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
        """Return which tokens have the same head as on the Doc, and label if layer is "arc", shape (n, n_tokens)."""
        arcs = self.doc.to_array(["HEAD", "DEP"]).astype(np.uint64).reshape(-1, 2)
        is_same = self.heads == np.arange(len(arcs)) + arcs[:, 0].view(np.int64)
        if self.layer == "arc":
            is_same &= np.array([get_string_id(label) for label in self.labels], dtype=np.uint64)[self.codes] == arcs[:, 1]
        return is_same

    def same(self, span: Span | None = None) -> NDArray[np.bool_]:
        """Return which draws have the tree of the Doc, shape (n,); white space is ignored. span: Compare only its tokens."""
        start, end = (0, len(self.doc)) if span is None else (span.start, span.end)
        return np.asarray((self.same_heads() | is_space(self.doc))[:, start:end].all(axis=1))

    def best(self, n: int = 10, span: Span | None = None) -> list[SampledTree]:
        """Return the n most frequent trees (heads and labels), of equal ones the most probable first.

        span (Span | None): Compare only its tokens; None compares the whole Doc.
        """
        start, end = (0, len(self.doc)) if span is None else (span.start, span.end)
        trees = np.concatenate([self.heads[:, start:end], self.codes[:, start:end]], axis=1)
        order = np.argsort(-self.log_probability, kind="stable")
        _, first, counts = np.unique(trees[order], axis=0, return_index=True, return_counts=True)
        top = sorted(zip((-counts).tolist(), first.tolist(), strict=True))[:n]
        return [
            SampledTree(self[int(order[index])], -count / len(self), float(self.log_probability[order[index]]))
            for count, index in top
        ]

    def head_shares(self) -> Floats:
        """Return at [i, h] the share of draws in which h is the head of token i (i of a root), shape (n_tokens, n_tokens)."""
        n_tokens = self.heads.shape[1]
        cells = np.arange(n_tokens) * n_tokens + self.heads
        return np.bincount(cells.ravel(), minlength=n_tokens**2).reshape(n_tokens, n_tokens) / max(1, len(self))


def sample_view(view: DocCalib, n: int = 100, seed: int = 0) -> AnnotationDraws:
    """Sample n annotations of the Doc of a view, by calibrated probabilities; trees by the parser's own.

    Tokens are sampled independently; entities as sets without overlap, from those on the Doc and the candidates; spans of a
    span group and categories that do not exclude each other independently; at most one of exclusive categories. Text, scores
    and seed determine the samples.
    RAISES C001: n or seed is negative. C410: the parser of the arcs is not known in this process. C680, C681, C024, C271: trees,
    as `plugins.events.trees.sample_trees`.
    """
    annotation = _get_doc_annotation(view.layer)
    if annotation.name in ARC_EVENTS:
        from .trees import draw_trees

        if view.doc not in PARSERS:
            raise calib_error("C410", text=view.doc.text[:40].strip())
        return draw_trees(PARSERS[view.doc], view, n, seed)
    rng = make_rng(n, seed, get_string_id(view.doc.text))
    if annotation.name in ("ner", "biluo") or isinstance(annotation, SpanAnnotation):
        return _sample_spans(view, n, rng)
    names = np.array([*dict.fromkeys(view.tags.tolist()), None], dtype=object)[:-1]
    number = {name: code for code, name in enumerate(names.tolist())}
    codes = np.array([number[tag] for tag in view.tags], dtype=np.intp)
    if isinstance(annotation, CatsAnnotation):
        return _sample_categories(view, annotation.overlapping, tuple(names), codes, n, rng)
    entries, scale = draw_entries(view.rows, view.calibrated, len(view.scored), n, rng)
    return LabelDraws(view.doc, scale, view.layer, tuple(names), np.append(codes, REST)[entries], view.scored)


def _get_doc_annotation(layer: str) -> Annotation:
    """Return the annotation of the Doc itself, without a map of labels."""
    annotation = get_annotation(layer)
    return annotation.inner if isinstance(annotation, MappedAnnotation) else annotation


def _sample_spans(view: DocCalib, n: int, rng: np.random.Generator) -> SpanDraws:
    """Sample spans: one at a time where they may overlap, else sets of spans without overlap."""
    annotation = get_annotation(view.layer)
    spans = (*view.ents, *view.candidates)
    exclusive = not view.layer.startswith(SPANS_PREFIX)
    if exclusive:  # spans without a score stay on the Doc, and exclude those that overlap them
        scored_keys = {(span.start, span.end, span.label) for span in view.ents}
        is_taken = np.zeros(len(view.doc), dtype=bool)
        for span in annotation.spans_on(view.doc):
            is_taken[span.start : span.end] |= (span.start, span.end, span.label_) not in scored_keys
        spans = tuple(span for span in spans if not is_taken[span.start : span.end].any())
    scores = np.array([span.score for span in spans], dtype=np.float64)
    starts, ends = (np.array([getattr(span, name) for span in spans], dtype=np.intp) for name in ("start", "end"))
    in_sample, scale = (
        draw_apart(starts, ends, scores, n, rng) if exclusive else (draw_each(scores, n, rng), np.ones(len(spans)))
    )
    return SpanDraws(view.doc, scale, view.layer, spans, in_sample)


def _sample_categories(
    view: DocCalib, overlapping: bool, names: tuple[str, ...], codes: Ints, n: int, rng: np.random.Generator
) -> CategoryDraws:
    """Sample categories: each independently if several may be right, else at most one of all."""
    scores = np.zeros(len(names))
    scores[codes] = view.calibrated
    if overlapping:
        return CategoryDraws(view.doc, np.ones(1), view.layer, names, draw_each(scores, n, rng))
    category, scale = draw_entries(np.zeros(len(names), dtype=np.intp), scores, 1, n, rng)
    return CategoryDraws(view.doc, scale, view.layer, names, category == np.arange(len(names)))
