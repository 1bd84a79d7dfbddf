"""Conversion of the spans that a tool found, given by character offsets, to a span group of a Doc, with their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

from ..errors import brief, calib_error
from ..types import SINGLE_PRECISION

# Keys that tools use for a span's first character, the end of its last, its label and its score.
_KEYS = {
    "start": ("start", "start_char", "start_pos", "start_position", "char_start_index"),
    "end": ("end", "end_char", "end_pos", "end_position", "char_end_index"),
    "label": ("label", "entity_group", "tag", "type"),
    "score": ("score", "probability", "confidence"),
}
# How a span that does not begin and end at token boundaries is aligned, as in `Doc.char_span`.
ALIGNMENT_MODES = ("expand", "contract", "strict")


def spans_from(
    doc: Doc,
    found: Iterable[Mapping[str, object]],
    key: str = "found",
    *,
    threshold: float = 0.0,
    misaligned: str = "expand",
    ents: bool = True,
    beside: Sequence[str] = (),
) -> SpanGroup:
    """Put the spans that a tool found into `doc.spans[key]`, and the best ones, without overlaps, into `doc.ents`.

    The group has `attrs["scores"]`, an attribute for each further score, and `attrs["counts"]`: how many spans were "found",
    "mended" (moved to token boundaries), "misaligned" (left out) and "same" (left out for an equal span that scores as high or
        higher).
    found (Iterable[Mapping]): Character offsets (start, end), label and score of each span, under the keys of GLiNER, flair,
        SpanMarker or a pipeline of Hugging Face. White space at either end is dropped. A score may be None.
    key (str): Key of the group, which is replaced. threshold (float): Minimum score of entities. misaligned (str): What happens
        to a span that does not begin and end at token boundaries: "expand", "contract", or "strict", which leaves it out.
    ents (bool): Whether to set `doc.ents`; of overlapping spans the one with the higher score counts, then the longer one.
    beside (Sequence[str]): Keys of further scores of each span. RETURNS (SpanGroup): `doc.spans[key]`.
    RAISES C001: another value of misaligned. C640: an item without offsets, label or score.

    >>> import spacy
    >>> doc = spacy.blank("en")("Anna lives in Rome.")
    >>> group = spans_from(doc, [{"start": 0, "end": 4, "label": "PER", "score": 0.9}])
    >>> [(ent.text, ent.label_) for ent in doc.ents], group.attrs["scores"]
    ([('Anna', 'PER')], [0.9])
    """
    if misaligned not in ALIGNMENT_MODES:
        raise calib_error("C001", name="misaligned", wanted=" or ".join(ALIGNMENT_MODES), given=repr(misaligned))
    counts: Counter[str] = Counter()
    best: dict[tuple[int, int, str], tuple[Span, list[Any]]] = {}  # (start, end, label) -> the span, its highest scores
    text = doc.text  # spaCy joins it anew each time
    for item in found:
        start, end, label, *scores = _read_item(item, text, beside)
        counts["found"] += 1
        span = doc.char_span(start, end, label=label, alignment_mode=misaligned)
        if span is None or not len(span):
            counts["misaligned"] += 1
            continue
        counts["mended"] += (span.start_char, span.end_char) != (start, end)
        span_key = (span.start, span.end, label)
        counts["same"] += span_key in best
        if span_key not in best or _first_score(scores) > _first_score(best[span_key][1]):
            best[span_key] = span, scores
    spans = [span for span, _ in best.values()]
    attrs: dict[str, Any] = {name: [scores[i] for _, scores in best.values()] for i, name in enumerate(("scores", *beside))}
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs={**attrs, "counts": dict(+counts)})  # +: without 0
    if ents:
        # The highest score first, of equal scores the longest span, of equally long spans the first one.
        by_score = sorted(best.values(), key=lambda pair: (-_first_score(pair[1]), -len(pair[0]), pair[0].start))
        entities = [span for span, scores in by_score if _first_score(scores) >= threshold]
        doc.set_ents(_drop_overlaps(entities), default="outside")
    return doc.spans[key]


def _drop_overlaps(spans: Sequence[Span]) -> list[Span]:
    """Go through the spans in order, and keep each that overlaps none of those kept before it."""
    covered: set[int] = set()  # tokens of the spans in `result`
    result = []
    for span in spans:
        if covered.isdisjoint(range(span.start, span.end)):
            covered.update(range(span.start, span.end))
            result.append(span)
    return result


def _first_score(scores: Sequence[Any]) -> float:
    """Return the first of a span's scores, by which spans are compared; 0 for None."""
    return 0.0 if scores[0] is None else float(scores[0])


def _read_item(item: Any, text: str, score_names: Sequence[str]) -> tuple[Any, ...]:
    """Return (start, end, label, *scores) of an item, trimmed. score_names: Keys of further scores. RAISES C640: invalid."""
    fields = item if isinstance(item, Mapping) else {}
    labels = fields.get("labels")  # of flair: the labels of a span, the top one first
    if isinstance(labels, Sequence) and labels and isinstance(labels[0], Mapping):
        fields = {**fields, "label": labels[0].get("value"), "score": labels[0].get("confidence")}
    # The values of start, end, label and score, each under the first known key that the item has.
    standard_values = [next((fields[key] for key in keys if key in fields), None) for keys in _KEYS.values()]
    values: list[Any] = [*standard_values, *map(fields.get, score_names)]
    # Numbers of numpy and torch become those of Python.
    start, end, label, *scores = (value.item() if hasattr(value, "item") else value for value in values)
    are_offsets = all(isinstance(offset, int) and not isinstance(offset, bool) for offset in (start, end))
    numbers = [score for score in scores if score is not None]
    are_scores = all(isinstance(n, (int, float)) and -SINGLE_PRECISION <= n <= 1 + SINGLE_PRECISION for n in numbers)
    if not (are_offsets and are_scores and isinstance(label, str) and label and 0 <= start < end <= len(text)):
        raise calib_error("C640", given=brief(repr(item)), text=text[:40], n=len(text))
    stretch = text[start:end]
    inner = stretch.strip() or stretch  # a span of white space only is kept
    start += stretch.index(inner)
    clipped_scores = (None if score is None else min(1.0, max(0.0, float(score))) for score in scores)
    return start, start + len(inner), label, *clipped_scores
