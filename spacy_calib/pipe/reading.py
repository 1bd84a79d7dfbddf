"""What a pipe reads of Docs before it writes on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.tokens import Doc

from ..calibration.spans import SpanCalibration
from ..doc.annotations import Annotation, Hashes
from ..doc.likeliest import Likeliest
from ..doc.write import CalibratedBatch, CalibratedSpans
from ..sources.base import Source
from ..types import Spans

if TYPE_CHECKING:
    from .lookup import SourceLookup


@dataclass(frozen=True)
class Reading:
    """What predict found: the Docs that could be read, by their place in the batch, and their scores; batch is None where none could.

    likeliest (Likeliest | None): What those of them get that carry no label (sources with `sets_labels`).
    """

    places: list[int] = field(default_factory=list)
    batch: CalibratedBatch | None = None
    likeliest: Likeliest | None = None


@dataclass(frozen=True)
class Readable:
    """The Docs with input and annotation, by their place in the batch, and the hash of the label that each of their units (tokens) carries.

    reasons (list[str]): Why others could not be read. Docs without tokens are not named.
    """

    places: list[int]
    hashes: list[Hashes]
    reasons: list[str]


def readable(lookup: SourceLookup, component: Any, annotation: Annotation, docs: Sequence[Doc]) -> Readable:
    """Which Docs the source can read. component: What it reads in its pipeline."""
    readable, source = Readable([], [], []), lookup.pipe.source
    blocker = source.obstacle(lookup.nlp, lookup.name, component)
    reasons = [blocker] * len(docs) if blocker else source.missing(component, docs)
    for i, (doc, why) in enumerate(zip(docs, reasons, strict=True)):
        if annotation.n_units(doc) <= annotation.first:
            continue
        carried = annotation.hashes(doc)
        if not why and not carried.any() and not source.sets_labels:
            why = f"no {annotation.unit} carries a {annotation.gold.name} annotation; put the pipe after the component that sets it, and enable that"
        if why:
            readable.reasons.append(why)
            continue
        readable.places.append(i)
        readable.hashes.append(carried)
    return readable


def calibrated_spans(
    calibration: SpanCalibration, source: Source, spans: Spans, labels: tuple[str, ...], event: str, layer: str, view: Any
) -> CalibratedSpans:
    """The spans that a source found, with the probability that each is right. event (str): When it is. layer (str): See CalibratedSpans. view (Any):
    See Calibrated.
    """
    raw = np.where(spans.chosen, source.raw_span_scores(spans), spans.own)
    return CalibratedSpans(spans, labels, raw, *calibration.calibrate(spans, raw, labels, view), event, layer)
