"""The subject of a command that evaluates, ranks or selects: a calib pipe and the data that it scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import calib_error
from ...pairs.documents import DOCUMENT

if TYPE_CHECKING:
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator


class ScoredPipe(NamedTuple):
    """A fitted pipe and the data with its scores. seen (dict | None): See `expect.record.SeenShare`."""

    pipe: Calibrator
    corpus: ScoredCorpus
    seen: dict[str, Any] | None


def unit_of(pipe: Calibrator, unit: str | None, whole: bool = False) -> str:
    """Return the requested unit, else entities if scored, else that of the labels. RAISES C065, C265: no such unit."""
    from ...doc.annotations import get_annotation

    annotation, row_unit = get_annotation(pipe.fit_info.layer), pipe.fit_info.row_unit
    names = {"name": pipe.name, "component": pipe.source.component or "the source"}
    # A table of rows is evaluated as one of tokens; what people look at is the whole entity.
    has_entities = pipe.spans.groups is not None or (whole and annotation.spans_are_units)
    if unit == "entity" and not has_entities:
        raise calib_error("C065", **names)
    units = (row_unit, *(("sentence", DOCUMENT) if whole and row_unit != DOCUMENT else ()))
    if unit not in (None, "entity", *units):
        raise calib_error("C265", **names, own=row_unit, given=unit)
    if whole and annotation.spans_are_units and unit == row_unit:  # the first word of an entity is no question
        return "entity"
    return unit or ("entity" if has_entities and annotation.spans_first else row_unit)


def fit_in_words(pipe: Calibrator) -> str:
    """Describe how a pipe was fitted, in a line."""
    from ...doc.annotations import get_annotation
    from ...pages.verdict import with_article
    from ...pairs.documents import extent

    info = pipe.fit_info
    parts = [
        f"calibrates {info.component or 'scores on the Doc'}",
        f"method {info.steps}",
        f"fitted on {extent(info.unit, info.docs, info.row_unit, info.tokens)}",
        f"scores from {info.threshold:g}",
    ]
    if pipe.spans.groups is not None:
        entity = get_annotation(info.layer).span_words[0]
        parts.append(f"{with_article(entity)} is right by the event {info.span_event}")
    return "; ".join(parts)
