"""`spacy_calib.render`: show Docs with their scores as HTML, by displaCy's manual mode."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...annotations import SPANS_PREFIX, get_annotation, plain_name
from ...doc.attributes import DEFAULT_ATTR, ENTITY_ATTR, doc_values, span_values, token_values
from ...doc.doc_calib import DocCalib, doc_view
from ...errors.visible import visible
from .messages import calib_error
from .page import format_score

STYLES = ("tokens", "ents")
# Scores from the last edge on have the last, lightest colour; text on all of them is black.
SCORE_EDGES = (0.5, 0.75, 0.9, 0.95, 0.99)
COLORS = ("#e58a1f", "#f3ab43", "#fbcb78", "#fee3b1", "#fff3dc", "#f1f2f4")
NO_SCORE, NO_SCORE_COLOR = "no score", "#ffffff"


class Mark(NamedTuple):
    """A part of a Doc with a `label`: tokens from `start` to before `end`. raw, calibrated (float | None): Scores, if any."""

    start: int
    end: int
    label: str
    raw: float | None = None
    calibrated: float | None = None


def render(
    docs: Doc | Span | Iterable[Doc | Span],
    *,
    style: str = "tokens",
    attr: str | None = None,
    page: bool = False,
    minify: bool = False,
    jupyter: bool | None = None,
) -> str | None:
    """Render Docs as HTML by `displacy.render`, with the score of each label beside it.

    The stronger the colour, the lower is `Token._.<attr>_score` or `Span._.<attr>_score`. A Doc's `user_data["title"]` becomes
    its heading. If the scores are of the whole text, all of it is marked with its category.
    docs (Doc | Span | Iterable): Docs or Spans to show. Only the scores on them are read; no pipeline is needed. style (str):
    "tokens", or "ents" for entities (or the spans of a span categorizer). attr (str | None): Prefix of the calib pipe's
    attributes; None takes "calib", or "calib_ent" if only that has scores. page, minify, jupyter: As for `displacy.render`.
    RETURNS (str | None): The HTML; None in a notebook, where it is displayed. RAISES C001: an unknown style, other objects than
    Docs and Spans. C095: a Doc has no scores. C096: style "ents", but no spans have scores.

        >>> html = render(doc, page=True)
        >>> html.splitlines()[0]
        '<!DOCTYPE html>'
    """
    from spacy import displacy

    if style not in STYLES:
        raise calib_error("C001", name="style", wanted="'tokens' or 'ents'", given=repr(style))
    parts = _as_docs_or_spans(docs)
    attr = attr or _find_pipe_attr(parts, style)
    read = read_words if style == "tokens" else read_spans
    texts = [to_displacy(part, read(part.doc, attr)) for part in parts]
    options = displacy_options(texts)
    html: str | None = displacy.render(
        texts, style=displacy_style(texts), page=page, minify=minify, jupyter=jupyter, options=options, manual=True
    )
    return html


def _as_docs_or_spans(docs: Any) -> list[Doc | Span]:
    """Return the argument of `render` as a list of Docs and Spans. RAISES C001: another kind of object."""
    parts = [docs] if isinstance(docs, (Doc, Span)) or not isinstance(docs, Iterable) else list(docs)
    for part in parts:
        if not isinstance(part, (Doc, Span)):
            raise calib_error("C001", name="docs", wanted="a Doc, a Span, or several of them", given=f"a {type(part).__name__}")
    return parts


def _find_pipe_attr(parts: list[Doc | Span], style: str) -> str:
    """Return the attribute prefix for `parts`: "calib", or "calib_ent" if only it has scores (of spans, for style "ents")."""
    views = [doc_view(part.doc, DEFAULT_ATTR) for part in parts]
    has_default = any(view is not None and (style == "tokens" or view.ents) for view in views)  # style "ents" needs spans
    has_entity_pipe = any(doc_view(part.doc, ENTITY_ATTR) is not None for part in parts)
    return ENTITY_ATTR if has_entity_pipe and not has_default else DEFAULT_ATTR


def _get_view(doc: Doc, attr: str) -> DocCalib | None:
    """Return the scores of a Doc under the prefix `attr`; None if it has no tokens. RAISES C095: it has tokens, no scores."""
    view = doc_view(doc, attr)
    if view is None and len(doc):
        raise calib_error("C095", text=doc.text[:40], attr=attr)
    return view


def marks_spans(layer: str) -> bool:
    """Return whether an annotation has scores of entities or other spans. layer: Its name, such as "ner" or "spans:sc"."""
    return plain_name(layer) in ("ner", "biluo") or layer.startswith(SPANS_PREFIX)


def read_words(doc: Doc, attr: str) -> list[Mark]:
    """Return a Mark for each word (label "" without a score), or one Mark for the category of a Doc. RAISES C095: no scores."""
    view = _get_view(doc, attr)
    if view is None:
        return []
    annotation = get_annotation(view.layer)
    if annotation.kind.of_documents:
        values = doc_values(doc, attr)
        return [] if values is None else [Mark(0, len(doc), annotation.label_at(doc, 0), values.raw, values.calibrated)]
    words = []
    for token in doc:
        values = token_values(token, attr) if view.scored[token.i] else None
        if values is not None:
            words.append(Mark(token.i, token.i + 1, annotation.label(token), values.raw, values.calibrated))
        elif not token.is_space:
            words.append(Mark(token.i, token.i + 1, ""))
    return words


def read_spans(doc: Doc, attr: str) -> list[Mark]:
    """Return a Mark for each entity or labelled span, with its scores if any. RAISES C095: no scores. C096: none of spans."""
    view = _get_view(doc, attr)
    if view is None:
        return []
    if not marks_spans(view.layer):
        raise calib_error("C096", attr=attr, unit=view.unit, layer=plain_name(view.layer))
    scores = {(span.start, span.end, span.label): (span.raw, span.score) for span in view.ents}
    spans = dict.fromkeys((span.start, span.end, span.label_) for span in get_annotation(view.layer).spans_on(doc))
    return [Mark(*span, *scores.get(span, (None, None))) for span in spans]


def read_units(doc: Doc, attr: str, units: Callable[[Doc], Iterable[Span]], unit_word: str) -> list[Mark]:
    """Return a Mark for each unit (sentence or link) with a score. units: Doc -> its units. unit_word: Label of the Marks."""
    return [
        Mark(unit.start, unit.end, unit_word, values.raw, values.calibrated)
        for unit in units(doc)
        if (values := span_values(unit, attr)) is not None
    ]


def to_displacy(part: Doc | Span, marks: Iterable[Mark], kind: str = "calibrated") -> dict[str, Any]:
    """Return a text with its marks as displaCy's manual mode takes it, for the styles "ent" and "span".

    marks (Iterable[Mark]): Marks of the Doc; those outside of `part` are left out. kind (str): "calibrated" or "raw": the
    scores in the labels. RETURNS (dict): "text", "ents", "tokens", "spans", "title", "settings", and "colors": label in
    capitals -> its colour. displaCy escapes the text; labels and title are escaped here.
    """
    doc = part.doc
    first, last, offset = (part.start, part.end, part.start_char) if isinstance(part, Span) else (0, len(part), 0)
    spans, colors = [], {}
    for mark in marks:
        if first <= mark.start and mark.end <= last:
            value = getattr(mark, kind)
            label = _escape(f"{mark.label} {NO_SCORE if value is None else format_score(value)}".strip())
            chars = doc[mark.start : mark.end]
            bounds = {"start": chars.start_char - offset, "end": chars.end_char - offset}
            spans.append({**bounds, "start_token": mark.start - first, "end_token": mark.end - first, "label": label})
            colors[label.upper()] = NO_SCORE_COLOR if value is None else COLORS[bisect_right(SCORE_EDGES, value)]
    return {
        "text": _without_controls(part.text),
        "ents": spans,
        "tokens": [_without_controls(token.text) for token in part],
        "spans": spans,
        "title": _escape(str(doc.user_data.get("title") or "")),
        "settings": {"lang": doc.lang_, "direction": doc.vocab.writing_system.get("direction", "ltr")},
        "colors": colors,
    }


def displacy_style(texts: Sequence[Mapping[str, Any]]) -> str:
    """Return displaCy's style "span" if marks of a text overlap, which its style "ent" cannot show, else "ent"."""
    bounds_by_text = [sorted((span["start"], span["end"]) for span in text["ents"]) for text in texts]
    neighbours = (pair for bounds in bounds_by_text for pair in pairwise(bounds))
    return "span" if any(end > next_start for (_, end), (next_start, _) in neighbours) else "ent"


def displacy_options(texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return displaCy's options for texts of `to_displacy`: the colours of their labels."""
    return {"colors": {label: color for text in texts for label, color in text["colors"].items()}}


def _escape(text: str) -> str:
    """Escape a text for HTML, with control characters made visible."""
    return escape(visible(text))


def _without_controls(text: str) -> str:
    """Replace each control character by one U+FFFD, so that character offsets stay valid."""
    return "".join(char if char.isprintable() or visible(char, keep="\n\t\r") == char else "\ufffd" for char in text)
