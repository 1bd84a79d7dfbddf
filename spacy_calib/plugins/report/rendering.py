"""Docs with scores -> HTML, much as displaCy shows Docs: `spacy_calib.render(doc)`."""

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
from .marked_text import Look, Mark, Passage, Word, to_html
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
    """Show the confidence of a pipeline in every word, its entities, or whole documents, as HTML without scripts.

    Words are shaded by doubt, 1 - `Token._.<attr>_score`, entities by 1 - `Span._.<attr>_score`. Alternatives open on hover,
    tap and focus. A Doc's `user_data["title"]` becomes its heading.

    docs (Doc | Span | Iterable): What to show; only the scores on the Docs are read, no pipeline is needed.
    style (str): "tokens", or "ents" for entities (or the spans of a span categorizer). attr (str | None): Prefix of
    the calib pipe's attributes; None takes "calib", and "calib_ent" for "ents" or where no Doc has others.
    page (bool): Return a whole HTML page. minify (bool): Without line breaks that are not text. jupyter (bool | None): Display
    it in the notebook; None finds out.
    options (Mapping | None): "doubtful" (float, 0.9): the tab key reaches words with a lower score. "tags" (str, "doubtful"):
    which words show their tag; or "all", "none". "alternatives" (int, 5): maximum on hover. "legend" (bool, True).
    RETURNS (str | None): The markup; None in a notebook, where it is displayed.
    RAISES C001: an unknown style or option, a wrong value, other things than Docs and Spans. C095: no scores. C096: "ents", but
    no spans have scores.
    """
    if style not in STYLES:
        raise calib_error("C001", name="style", wanted="'tokens' or 'ents'", given=repr(style))
    parts = _parts(docs)
    attr = attr or _default_attr(parts, style)
    look = Look(**_check_options(options or {}), what=_legend_word(parts, style, attr))
    read = read_words if style == "tokens" else read_marks
    html = to_html([read(part, attr) for part in parts], look, page, minify)
    if jupyter or (jupyter is None and is_in_jupyter()):
        from IPython.display import HTML, display

        # The class keeps MathJax away from dollar signs in the text.
        display(HTML(f'<div class="tex2jax_ignore">{html}</div>'))
        return None
    return html


def _default_attr(parts: list[Doc | Span], style: str) -> str:
    """The prefix of the scores to show: "calib", or "calib_ent" where the Docs have none, or no spans, under that one."""
    views = [doc_view(part.doc, DEFAULT_ATTR) for part in parts]
    found = [view for view in views if view is not None and (style == "tokens" or view.ents)]
    entities = any(doc_view(part.doc, ENTITY_ATTR) is not None for part in parts)
    return ENTITY_ATTR if entities and not found else DEFAULT_ATTR


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _legend_word(parts: list[Doc | Span], style: str, attr: str) -> str:
    """Return the name of the labels in the legend."""
    if style == "ents":
        return "entity"
    views = [doc_view(part.doc, attr) for part in parts]
    return "tag" if all(view is None or view.unit == TOKEN for view in views) else "category"


def _check_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options. RAISES C001: an unknown option, or a wrong value."""
    for name, value in options.items():
        if name not in _OPTIONS:
            raise calib_error("C001", name="options", wanted=f"a dict with {', '.join(_OPTIONS)}", given=repr(name))
        expected, is_right = _OPTIONS[name]
        if not is_right(value):
            raise calib_error("C001", name=f"options[{name!r}]", wanted=expected, given=repr(value))
    return options


def _parts(docs: Any) -> list[Doc | Span]:
    """Return the Docs and Spans to show. RAISES C001: something that is neither a Doc nor a Span."""
    parts = [docs] if isinstance(docs, (Doc, Span)) or not isinstance(docs, Iterable) else list(docs)
    for part in parts:
        if not isinstance(part, (Doc, Span)):
            raise calib_error("C001", name="docs", wanted="a Doc, a Span, or several of them", given=f"a {type(part).__name__}")
    return parts


def _view(doc: Doc, attr: str) -> DocCalib | None:
    """Return the scores of a Doc; None without tokens. RAISES C095: it has tokens and no scores."""
    view = doc_view(doc, attr)
    if view is None and len(doc):
        raise calib_error("C095", text=doc.text[:40], attr=attr)
    return view


def _frame(doc: Doc) -> dict[str, Any]:
    direction = doc.vocab.writing_system.get("direction", "ltr")
    lang = "mul" if doc.lang_ == "xx" else doc.lang_  # as HTML calls several languages
    return {"lang": lang, "direction": direction, "title": str(doc.user_data.get("title") or "")}


def read_words(part: Doc | Span, attr: str, raw: bool = False) -> Passage:
    """Return the tokens of a Doc or Span with their scores; or a scored document, marked as a whole.

    raw (bool): Whether shades are probabilities before calibration. RAISES C095: no scores.
    """
    doc = part.doc
    view = _view(doc, attr)
    if view is not None and view.unit != TOKEN:
        return Passage(**_frame(doc), text=part.text, marks=_of_whole(part, attr, view, raw))
    return Passage(**_frame(doc), words=[] if view is None else [_word(token, attr, view, raw) for token in part])


def _of_whole(part: Doc | Span, attr: str, view: DocCalib, raw: bool) -> list[Mark]:
    """Return the mark of a whole document: its category, with its score. A part of a document has none."""
    values = doc_values(part, attr) if isinstance(part, Doc) else None
    if values is None:
        return []
    doc_label = get_annotation(view.layer).label_at(part.doc, 0)
    scores = _best_first((doc_cats_raw if raw else doc_cats)(part.doc, attr))
    alternatives = tuple(("", label, score) for label, score in scores if label != doc_label)
    return [Mark(0, len(part.text), doc_label, *_order_scores(values.raw, values.calibrated, raw), None, alternatives)]


def _order_scores(raw_score: float, calibrated_score: float, raw: bool) -> tuple[float, float]:
    """Return (further score, shading score)."""
    return (calibrated_score, raw_score) if raw else (raw_score, calibrated_score)


def _best_first(scores: dict[str, float] | None) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((scores or {}).items(), key=lambda item: -item[1]))


def _word(token: Token, attr: str, view: DocCalib, raw: bool) -> Word:
    values = token_values(token, attr) if view.scored[token.i] else None
    if values is None:
        return Word(token.text, token.whitespace_, "", None, None, ())
    scores = _best_first(token_scores(token, attr, raw))
    label, shown_scores = get_annotation(view.layer).label(token), _order_scores(values.raw, values.calibrated, raw)
    return Word(token.text, token.whitespace_, label, *shown_scores, scores)


def read_marks(part: Doc | Span, attr: str, raw: bool = False) -> Passage:
    """Return the text and its entities or categorized spans. RAISES C095: no scores. C096: of tokens or documents alone."""
    doc = part.doc
    view = _view(doc, attr)
    if view is None:
        return Passage(**_frame(doc))
    if not marks_spans(view.layer):
        raise calib_error("C096", attr=attr, unit=view.unit, layer=plain_name(view.layer))
    first, last = (part.start, part.end) if isinstance(part, Span) else (0, len(doc))
    scored_spans = {(span.start, span.end, span.label): span for span in view.ents}
    on_doc = dict.fromkeys((span.start, span.end, span.label_) for span in get_annotation(view.layer).spans_on(doc))
    keys = [key for key in on_doc if first <= key[0] and key[1] <= last]
    offset = doc[first].idx if first < len(doc) else 0
    marks = [
        _mark(doc[start:end], label, scored_spans.get((start, end, label)), view, offset, attr, raw)
        for start, end, label in keys
    ]
    return Passage(**_frame(doc), text=part.text, marks=marks)


def marks_spans(layer: str) -> bool:
    """Return whether the scores of an annotation are of entities or categorized spans."""
    return plain_name(layer) in ("ner", "biluo") or layer.startswith(SPANS_PREFIX)


def read_units(doc: Doc, units: Callable[[Doc], Iterable[Span]], attr: str, called: str, raw: bool = False) -> Passage:
    """Return the text with its scored units marked. called (str): Name of a unit. raw (bool): See `read_words`."""
    marks = [
        Mark(unit.start_char, unit.end_char, called, *_order_scores(values.raw, values.calibrated, raw), None, ())
        for unit in units(doc)
        if (values := span_values(unit, attr)) is not None
    ]
    return Passage(**_frame(doc), text=doc.text, marks=marks)


def _mark(span: Span, label: str, scored_span: ScoredSpan | None, view: DocCalib, offset: int, attr: str, raw: bool) -> Mark:
    place = (span.start_char - offset, span.end_char - offset)
    if scored_span is None:
        return Mark(*place, label, None, None, None, ())
    candidates = [candidate for candidate in view.candidates if candidate.start < span.end and span.start < candidate.end]
    alternatives = [
        (span.doc[candidate.start : candidate.end].text, candidate.label, candidate.raw if raw else candidate.score)
        for candidate in candidates
    ]
    if not alternatives and not view.layer.startswith(SPANS_PREFIX):
        alternatives = _others_of_words(span, label, attr, view.layer, raw)
    alternatives.sort(key=lambda candidate: -candidate[2])
    return Mark(
        *place,
        label,
        *_order_scores(scored_span.raw, scored_span.score, raw),
        None if raw else scored_span.accept,
        tuple(alternatives),
    )


def _others_of_words(span: Span, label: str, attr: str, layer: str, raw: bool) -> list[tuple[str, str, float]]:
    """Return (word, label, probability) of what else an entity's words could be, for an entity without candidates."""
    biluo, label_of_first = plain_name(layer) == "biluo", get_annotation(layer).label(span[0])
    label = label_of_first.partition("-")[2] if biluo else label_of_first or label  # mapped, as those of the scores
    alternatives = [
        (token.text, _NO_ENTITY if tag == OUTSIDE else tag.partition("-")[2] if biluo else tag, score)
        for token in span
        for tag, score in (token_scores(token, attr, raw) or {}).items()
    ]
    return [item for item in alternatives if item[1] != label]
