"""Spans that any tool found, by characters, as a span group of a Doc, with their scores."""

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

    The group has `attrs["scores"]`, an attribute for each score beside it, and `attrs["counts"]`: how many spans were "found", "mended", "misaligned"
    (left out) and the "same" as another (of one place and one label, which the better one stands for). Two labels at one place are two spans.

    found (Iterable[Mapping]): Of each span its characters (start, end), label and score, as GLiNER, flair, SpanMarker or a pipeline of Hugging Face calls
        them. White space at either end is no part of it. A score of None says that there is none.
    key (str): Of the group; one that was there is replaced. threshold (float): Those with a lower score are candidates alone. misaligned (str): "expand" mends
        a span that does not begin and end with tokens to whole ones, "contract" to those inside, "strict" leaves it out.
    ents (bool): Whether entities are set: of spans that overlap the one with the higher score, then the longer one. beside (Sequence[str]): Names of more scores.
    RAISES C001: misaligned is another word. C640: something that is no such mapping.
    """
    if misaligned not in MENDING:
        raise calib_error("C001", name="misaligned", wanted=" or ".join(MENDING), given=repr(misaligned))
    counts: Counter[str] = Counter()
    kept: dict[tuple[int, int, str], tuple[Span, list[Any]]] = {}
    text = doc.text  # which spaCy joins anew each time
    for one in found:
        start, end, label, *scores = _read(one, text, beside)
        counts["found"] += 1
        span = doc.char_span(start, end, label=label, alignment_mode=misaligned)
        if span is None or not len(span):
            counts["misaligned"] += 1
            continue
        counts["mended"] += (span.start_char, span.end_char) != (start, end)
        place = (span.start, span.end, label)
        counts["same"] += place in kept
        if place not in kept or _rank(scores) > _rank(kept[place][1]):
            kept[place] = span, scores
    spans = [span for span, _ in kept.values()]
    attrs: dict[str, Any] = {
        name: [scores[place] for _, scores in kept.values()] for place, name in enumerate(("scores", *beside))
    }
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs={**attrs, "counts": dict(+counts)})
    if ents:
        ranked = sorted(kept.values(), key=lambda held: (-_rank(held[1]), -len(held[0]), held[0].start))
        doc.set_ents(_apart([span for span, scores in ranked if _rank(scores) >= threshold]), default="outside")
    return doc.spans[key]


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Of spans that overlap the first one."""
    taken: set[int] = set()
    kept = []
    for span in spans:
        if taken.isdisjoint(range(span.start, span.end)):
            taken.update(range(span.start, span.end))
            kept.append(span)
    return kept


def _rank(scores: Sequence[Any]) -> float:
    """The first score; that of a span without one is the lowest."""
    return 0.0 if scores[0] is None else float(scores[0])


def _read(one: Any, text: str, beside: Sequence[str]) -> tuple[Any, ...]:
    """First character, the one behind the last, label, scores. RAISES C640: they are not there, or no such things."""
    held = one if isinstance(one, Mapping) else {}
    labels = held.get("labels")  # of flair: those of one span, the likeliest first
    if isinstance(labels, Sequence) and labels and isinstance(labels[0], Mapping):
        held = {**held, "label": labels[0].get("value"), "score": labels[0].get("confidence")}
    given = [next((held[key] for key in keys if key in held), None) for keys in _CALLED.values()]
    values: list[Any] = [*given, *map(held.get, beside)]
    start, end, label, *scores = (one.item() if hasattr(one, "item") else one for one in values)
    whole = all(isinstance(place, int) and not isinstance(place, bool) for place in (start, end))
    numbers = all(one is None or (isinstance(one, (int, float)) and -ROUNDED <= one <= 1 + ROUNDED) for one in scores)
    if not (whole and numbers and isinstance(label, str) and label and 0 <= start < end <= len(text)):
        raise calib_error("C640", given=brief(repr(one)), text=text[:40], n=len(text))
    inside = text[start:end]
    inner = inside.strip() or inside
    start += inside.index(inner)
    return start, start + len(inner), label, *(None if one is None else min(1.0, max(0.0, float(one))) for one in scores)
