"""Adds spans that any tool found, by characters, to a Doc as a span group, with their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

from ..errors import brief, calib_error

# What tools call a span's first character, the one behind its last, its label and its score.
_CALLED = {
    "start": ("start", "start_char", "start_pos", "start_position", "char_start_index"),
    "end": ("end", "end_char", "end_pos", "end_position", "char_end_index"),
    "label": ("label", "entity_group", "tag", "type"),
    "score": ("score", "probability", "confidence"),
}
# What is done with a span that does not begin and end with tokens: it grows to whole ones, shrinks to those inside, or is left out.
MENDING = ("expand", "contract", "strict")
# A probability that was computed in single precision may pass 0 or 1 by this.
ROUNDED = 1e-6


def spans_from(
    doc: Doc,
    found: Iterable[Mapping[str, Any]],
    key: str = "found",
    *,
    threshold: float = 0.0,
    misaligned: str = "expand",
    ents: bool = True,
    beside: Sequence[str] = (),
) -> SpanGroup:
    """Put what a tool found into `doc.spans[key]`, and the best of it into `doc.ents`.

    The group has `attrs["scores"]`, an attribute for each further score, and `attrs["counts"]`: how many spans were "found",
    "mended", "misaligned" (left out) and the "same" as a better one. Spans are the same if place and label are.

    found (Iterable[Mapping]): Characters (start, end), label and score of each span, as GLiNER, flair, SpanMarker or a pipeline
    of Hugging Face calls them. White space at either end is dropped. A score of None is no score.
    key (str): Of the group, which is replaced. threshold (float): Spans with a lower score are only candidates. misaligned
    (str): "expand" extends a span that does not begin and end with tokens to whole ones, "contract" shrinks it, "strict" leaves
    it out.
    ents (bool): Whether entities are set: of overlapping ones the higher score, then the longer one. beside (Sequence[str]):
    Names of further scores.
    RAISES C001: misaligned is another word. C640: something that is no such mapping.
    """
    if misaligned not in MENDING:
        raise calib_error("C001", name="misaligned", wanted=" or ".join(MENDING), given=repr(misaligned))
    counts: Counter[str] = Counter()
    best: dict[tuple[int, int, str], tuple[Span, list[Any]]] = {}
    text = doc.text  # which spaCy joins anew each time
    for item in found:
        start, end, label, *scores = _read(item, text, beside)
        counts["found"] += 1
        span = doc.char_span(start, end, label=label, alignment_mode=misaligned)
        if span is None or not len(span):
            counts["misaligned"] += 1
            continue
        counts["mended"] += (span.start_char, span.end_char) != (start, end)
        place = (span.start, span.end, label)
        counts["same"] += place in best
        if place not in best or _rank(scores) > _rank(best[place][1]):
            best[place] = span, scores
    spans = [span for span, _ in best.values()]
    attrs: dict[str, Any] = {
        name: [scores[place] for _, scores in best.values()] for place, name in enumerate(("scores", *beside))
    }
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs={**attrs, "counts": dict(+counts)})
    if ents:
        by_score = sorted(best.values(), key=lambda pair: (-_rank(pair[1]), -len(pair[0]), pair[0].start))
        doc.set_ents(_drop_overlaps([span for span, scores in by_score if _rank(scores) >= threshold]), default="outside")
    return doc.spans[key]


def _drop_overlaps(spans: Sequence[Span]) -> list[Span]:
    """Keep the first of spans that overlap."""
    tokens: set[int] = set()
    result = []
    for span in spans:
        if tokens.isdisjoint(range(span.start, span.end)):
            tokens.update(range(span.start, span.end))
            result.append(span)
    return result


def _rank(scores: Sequence[Any]) -> float:
    """Return the first score; the lowest if there is none."""
    return 0.0 if scores[0] is None else float(scores[0])


def _read(item: Any, text: str, score_names: Sequence[str]) -> tuple[Any, ...]:
    """Return (start, end, label, scores). RAISES C640: they are missing or of another kind."""
    fields = item if isinstance(item, Mapping) else {}
    labels = fields.get("labels")  # of flair: those of one span, the likeliest first
    if isinstance(labels, Sequence) and labels and isinstance(labels[0], Mapping):
        fields = {**fields, "label": labels[0].get("value"), "score": labels[0].get("confidence")}
    columns = [next((fields[key] for key in keys if key in fields), None) for keys in _CALLED.values()]
    values: list[Any] = [*columns, *map(fields.get, score_names)]
    start, end, label, *scores = (item.item() if hasattr(item, "item") else item for item in values)
    whole = all(isinstance(place, int) and not isinstance(place, bool) for place in (start, end))
    numbers = all(item is None or (isinstance(item, (int, float)) and -ROUNDED <= item <= 1 + ROUNDED) for item in scores)
    if not (whole and numbers and isinstance(label, str) and label and 0 <= start < end <= len(text)):
        raise calib_error("C640", given=brief(repr(item)), text=text[:40], n=len(text))
    stretch = text[start:end]
    inner = stretch.strip() or stretch
    start += stretch.index(inner)
    return start, start + len(inner), label, *(None if item is None else min(1.0, max(0.0, float(item))) for item in scores)
