"""What a pipe reads of Docs before it writes on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.tokens import Doc

from ..calibration.spans import SpanCalibration
from ..calibration.tokens import Calibrated, CalibratedEntries, TokenCalibration
from ..doc.annotations import Annotation, Hashes, columns_of, label_hashes
from ..doc.likeliest import Likeliest
from ..doc.write import CalibratedBatch, CalibratedSpans, CarriedLabels
from ..pairs.marginals import Scores
from ..sources.base import Source
from ..sources.find import Found
from ..types import Ints, Marginals, Spans


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


def readable(source: Source, found: Found, name: str, annotation: Annotation, docs: Sequence[Doc]) -> Readable:
    """Which Docs the source can read. name (str): Of the calib pipe, in the pipeline that was found."""
    readable = Readable([], [], [])
    assert found.nlp is not None
    blocker = source.obstacle(found.nlp, name, found.component)
    reasons = [blocker] * len(docs) if blocker else source.missing(found.component, docs)
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


def _carried_columns(marginals: Marginals, hashes: Any, labels: tuple[str, ...]) -> Ints:
    if marginals.names is None:
        return columns_of(hashes, label_hashes(labels))
    columns = np.full(len(hashes), -1, dtype=np.intp)
    own = label_hashes(marginals.names) == hashes[marginals.rows]
    columns[marginals.rows[own]] = marginals.tags[own]
    return columns


def carried_below_threshold(
    tokens: TokenCalibration, threshold: float, scores: Scores, calibrated: Calibrated, hashes: Any, labels: tuple[str, ...]
) -> CarriedLabels:
    """Tokens whose label the model knows but did not give the threshold's score (set by somebody else, or kept from before).

    calibrated (Calibrated): The entries of `scores` above the threshold. hashes: Hash of the label that each token carries.
    """
    marginals = calibrated.marginals
    carried = _carried_columns(marginals, hashes, labels)
    held = np.zeros(marginals.n_tokens, dtype=bool)
    held[marginals.rows[carried[marginals.rows] == marginals.tags]] = True
    rows = np.flatnonzero(~held & (carried >= 0))
    if not len(rows):
        return CarriedLabels(rows, [], np.zeros(0), CalibratedEntries(np.zeros(0)))
    raw = scores.at(rows, carried[rows])
    rows, raw = rows[~np.isnan(raw)], raw[~np.isnan(raw)]
    columns = carried[rows]
    below = tokens.calibrate_entries(scores, threshold, rows, columns, raw, calibrated.view, calibrated.away)
    return CarriedLabels(rows, [labels[column] for column in columns.tolist()], raw, below)


def calibrated_spans(
    calibration: SpanCalibration, source: Source, spans: Spans, labels: tuple[str, ...], event: str, layer: str, view: Any
) -> CalibratedSpans:
    """The spans that a source found, with the probability that each is right. event (str): When it is. layer (str): See CalibratedSpans. view (Any):
    See Calibrated.
    """
    raw = np.where(spans.chosen, source.raw_span_scores(spans), spans.own)
    return CalibratedSpans(spans, labels, raw, *calibration.calibrate(spans, raw, labels, view), event, layer)
