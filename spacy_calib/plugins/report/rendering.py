"""`spacy_calib.render`: show Docs with their scores as HTML, as displaCy shows annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spacy.tokens import Doc, Span, Token
from spacy.util import is_in_jupyter

from ...annotations import SPANS_PREFIX, get_annotation, plain_name
from ...annotations.base import TOKEN
from ...doc.attributes import (
    DEFAULT_ATTR,
    ENTITY_ATTR,
    doc_cats,
    doc_cats_raw,
    doc_values,
    span_values,
    token_scores,
    token_values,
)
from ...doc.view import DocCalib, ScoredSpan, doc_view
from ...types import OUTSIDE
from .marked_text import DisplayOptions, MarkedText, TextMark, Word, to_html
from .messages import calib_error

STYLES = ("tokens", "ents")
_NO_ENTITY = "no entity"
TAGS = ("doubtful", "all", "none")
_OPTIONS: dict[str, tuple[str, Any]] = {
    "doubtful": ("a number in [0, 1]", lambda value: _is_number(value) and 0 <= value <= 1),
    "tags": (f"one of {', '.join(TAGS)}", lambda value: value in TAGS),
    "alternatives": ("a whole number of at least 0", lambda value: type(value) is int and value >= 0),
    "legend": ("true or false", lambda value: isinstance(value, bool)),
}


def render(
    docs: Doc | Span | Iterable[Doc | Span],
    *,
    style: str = "tokens",
    attr: str | None = None,
    page: bool = False,
    minify: bool = False,
    jupyter: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> str | None:
    """Render Docs as HTML without scripts, with words, entities or whole documents shaded by their scores.

    The darker, the lower is `Token._.<attr>_score` or `Span._.<attr>_score`. Alternatives open on hover, tap and focus. A Doc's
    `user_data["title"]` becomes its heading.

    docs (Doc | Span | Iterable): Docs or Spans to show. Only the scores on them are read; no pipeline is needed.
    style (str): "tokens", or "ents" for entities (or the spans of a span categorizer).
    attr (str | None): Prefix of the calib pipe's attributes; None takes "calib", or "calib_ent" for "ents" or if no Doc has
    others.
    page (bool): Return a whole HTML page. minify (bool): Leave out line breaks between elements.
    jupyter (bool | None): Display the HTML in a notebook; None detects one.
    options (Mapping | None): "doubtful" (float, 0.9): the tab key stops at words with a lower score. "tags" (str, "doubtful"):
    words that show their tag; or "all", "none". "alternatives" (int, 5): maximum on hover. "legend" (bool, True).
    RETURNS (str | None): The HTML; None in a notebook, where it is displayed.
    RAISES C001: an unknown style or option, a wrong value, other objects than Docs and Spans. C095: a Doc has no scores. C096:
    style "ents", but no spans have scores.

        >>> html = render(doc, page=True, options={"tags": "all"})
        >>> html.splitlines()[0]
        '<!DOCTYPE html>'
    """
    if style not in STYLES:
        raise calib_error("C001", name="style", wanted="'tokens' or 'ents'", given=repr(style))
    parts = _list_parts(docs)
    attr = attr or _default_attr(parts, style)
    display_options = DisplayOptions(**_check_options(options or {}), label_word=_legend_word(parts, style, attr))
    read = read_words if style == "tokens" else read_marks
    html = to_html([read(part, attr) for part in parts], display_options, page, minify)
    if jupyter or (jupyter is None and is_in_jupyter()):
        from IPython.display import HTML, display

        # This class makes MathJax ignore dollar signs in the text.
        display(HTML(f'<div class="tex2jax_ignore">{html}</div>'))
        return None
    return html


def _default_attr(parts: list[Doc | Span], style: str) -> str:
    """Return "calib"; or "calib_ent" if only that pipe has scores, or scores of spans for the style "ents"."""
    views = [doc_view(part.doc, DEFAULT_ATTR) for part in parts]
    has_default = [view for view in views if view is not None and (style == "tokens" or view.ents)]
    has_entities = any(doc_view(part.doc, ENTITY_ATTR) is not None for part in parts)
    return ENTITY_ATTR if has_entities and not has_default else DEFAULT_ATTR


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _legend_word(parts: list[Doc | Span], style: str, attr: str) -> str:
    """Return the word of the legend for what has scores."""
    if style == "ents":
        return "entity"
    views = [doc_view(part.doc, attr) for part in parts]
    return "tag" if all(view is None or view.unit == TOKEN for view in views) else "category"


def _check_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options unchanged. RAISES C001: an unknown option, or a wrong value."""
    for name, value in options.items():
        if name not in _OPTIONS:
            raise calib_error("C001", name="options", wanted=f"a dict with {', '.join(_OPTIONS)}", given=repr(name))
        allowed_values, is_allowed = _OPTIONS[name]
        if not is_allowed(value):
            raise calib_error("C001", name=f"options[{name!r}]", wanted=allowed_values, given=repr(value))
    return options


def _list_parts(docs: Any) -> list[Doc | Span]:
    """Return a list of the Docs and Spans to show. RAISES C001: another kind of object."""
    parts = [docs] if isinstance(docs, (Doc, Span)) or not isinstance(docs, Iterable) else list(docs)
    for part in parts:
        if not isinstance(part, (Doc, Span)):
            raise calib_error("C001", name="docs", wanted="a Doc, a Span, or several of them", given=f"a {type(part).__name__}")
    return parts


def _get_view(doc: Doc, attr: str) -> DocCalib | None:
    """Return the scores of a Doc; None if it has no tokens. RAISES C095: it has tokens and no scores."""
    view = doc_view(doc, attr)
    if view is None and len(doc):
        raise calib_error("C095", text=doc.text[:40], attr=attr)
    return view


def _frame(doc: Doc) -> dict[str, Any]:
    """Return the fields of a MarkedText that do not depend on scores: language, direction and title."""
    direction = doc.vocab.writing_system.get("direction", "ltr")
    lang = "mul" if doc.lang_ == "xx" else doc.lang_  # the HTML code of multiple languages
    return {"lang": lang, "direction": direction, "title": str(doc.user_data.get("title") or "")}


def read_words(part: Doc | Span, attr: str, raw: bool = False) -> MarkedText:
    """Return the tokens with their scores; or a document with a category, marked as a whole. RAISES C095. raw: Shade by raw scores."""
    doc = part.doc
    view = _get_view(doc, attr)
    if view is not None and view.unit != TOKEN:
        return MarkedText(**_frame(doc), text=part.text, marks=_mark_document(part, attr, view, raw))
    return MarkedText(**_frame(doc), words=[] if view is None else [_read_word(token, attr, view, raw) for token in part])


def _mark_document(part: Doc | Span, attr: str, view: DocCalib, raw: bool) -> list[TextMark]:
    """Return a mark over a whole document, with its category; none for a part of a document."""
    values = doc_values(part, attr) if isinstance(part, Doc) else None
    if values is None:
        return []
    doc_label = get_annotation(view.layer).label_at(part.doc, 0)
    scores = _best_first((doc_cats_raw if raw else doc_cats)(part.doc, attr))
    alternatives = tuple(("", label, score) for label, score in scores if label != doc_label)
    return [TextMark(0, len(part.text), doc_label, *_order_scores(values.raw, values.calibrated, raw), None, alternatives)]


def _order_scores(raw_score: float, calibrated_score: float, raw: bool) -> tuple[float, float]:
    """Return (score in the tip, score that decides the shade). raw (bool): Shade by the raw score."""
    return (calibrated_score, raw_score) if raw else (raw_score, calibrated_score)


def _best_first(scores: dict[str, float] | None) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((scores or {}).items(), key=lambda item: -item[1]))


def _read_word(token: Token, attr: str, view: DocCalib, raw: bool) -> Word:
    values = token_values(token, attr) if view.scored[token.i] else None
    if values is None:
        return Word(token.text, token.whitespace_, "", None, None, ())
    scores = _best_first(token_scores(token, attr, raw))
    label, shown_scores = get_annotation(view.layer).label(token), _order_scores(values.raw, values.calibrated, raw)
    return Word(token.text, token.whitespace_, label, *shown_scores, scores)


def read_marks(part: Doc | Span, attr: str, raw: bool = False) -> MarkedText:
    """Return the text with its entities or categorized spans marked. raw: Shade by raw scores. RAISES C095, C096: no scores of spans."""
    doc = part.doc
    view = _get_view(doc, attr)
    if view is None:
        return MarkedText(**_frame(doc))
    if not marks_spans(view.layer):
        raise calib_error("C096", attr=attr, unit=view.unit, layer=plain_name(view.layer))
    first, last = (part.start, part.end) if isinstance(part, Span) else (0, len(doc))
    scored_spans = {(span.start, span.end, span.label): span for span in view.ents}
    doc_spans = dict.fromkeys((span.start, span.end, span.label_) for span in get_annotation(view.layer).spans_on(doc))
    keys = [key for key in doc_spans if first <= key[0] and key[1] <= last]
    offset = doc[first].idx if first < len(doc) else 0
    marks = [
        _read_mark(doc[start:end], label, scored_spans.get((start, end, label)), view, offset, attr, raw)
        for start, end, label in keys
    ]
    return MarkedText(**_frame(doc), text=part.text, marks=marks)


def marks_spans(layer: str) -> bool:
    """Return whether the scores of an annotation are of entities or categorized spans."""
    return plain_name(layer) in ("ner", "biluo") or layer.startswith(SPANS_PREFIX)


def read_units(doc: Doc, units: Callable[[Doc], Iterable[Span]], attr: str, unit_word: str, raw: bool = False) -> MarkedText:
    """Return the text with its scored units marked. units (Callable): (doc) -> its units. unit_word (str): Their label."""
    marks = [
        TextMark(unit.start_char, unit.end_char, unit_word, *_order_scores(values.raw, values.calibrated, raw), None, ())
        for unit in units(doc)
        if (values := span_values(unit, attr)) is not None
    ]
    return MarkedText(**_frame(doc), text=doc.text, marks=marks)


def _read_mark(
    span: Span, label: str, scored_span: ScoredSpan | None, view: DocCalib, offset: int, attr: str, raw: bool
) -> TextMark:
    """Return a predicted span as a mark in the text, with the candidates that overlap it."""
    bounds = (span.start_char - offset, span.end_char - offset)
    if scored_span is None:
        return TextMark(*bounds, label, None, None, None, ())
    candidates = [candidate for candidate in view.candidates if candidate.start < span.end and span.start < candidate.end]
    alternatives = [
        (span.doc[candidate.start : candidate.end].text, candidate.label, candidate.raw if raw else candidate.score)
        for candidate in candidates
    ]
    if not alternatives and not view.layer.startswith(SPANS_PREFIX):
        alternatives = _word_alternatives(span, label, attr, view.layer, raw)
    alternatives.sort(key=lambda candidate: -candidate[2])
    scores = _order_scores(scored_span.raw, scored_span.score, raw)
    return TextMark(*bounds, label, *scores, None if raw else scored_span.accept, tuple(alternatives))


def _word_alternatives(span: Span, label: str, attr: str, layer: str, raw: bool) -> list[tuple[str, str, float]]:
    """Return (word, other label, probability) for the words of an entity that has no alternative spans."""
    biluo, label_of_first = plain_name(layer) == "biluo", get_annotation(layer).label(span[0])
    label = label_of_first.partition("-")[2] if biluo else label_of_first or label  # by the name that the scores use
    alternatives = [
        (token.text, _NO_ENTITY if tag == OUTSIDE else tag.partition("-")[2] if biluo else tag, score)
        for token in span
        for tag, score in (token_scores(token, attr, raw) or {}).items()
    ]
    return [item for item in alternatives if item[1] != label]
