"""Compares a new fit with the calibration that the pipeline had, on the fit data, by out-of-fold scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example

from ..annotations import get_annotation
from ..calibration.adaptation.adaptation import NO_CHANGE
from ..calibration.replacement import ADAPTED, FIT, PRESENT, Replacement, align_scores, compare_scores
from ..calibration.span_fit import SpanFit
from ..errors import CalibError
from ..gold.reading import texts_of
from ..pairs.build import JudgedPairs, top_pairs
from ..types import Floats, Ints
from .calibrator_adaptation import adapt_spans, adapt_tokens, learn_adaptation
from .component import Calibrator
from .fit_inputs import FitArguments, read_fit_inputs
from .lookup import SourceLookup


@dataclass(frozen=True, eq=False)
class FitComparison:
    """A new fit compared with the calibration that was there.

    winner (str): PRESENT, ADAPTED or FIT. replacement (Replacement | None): The losses; None if they cannot be compared.
    why (str): Why they cannot be compared, or "". performance (Mapping | None): Figures of the pipeline's meta with the former
        pipe, adapted; None if they cannot be compared.
    """

    winner: str
    replacement: Replacement | None = None
    why: str = ""
    performance: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """Out-of-fold scores of n entities, or of labels of tokens or documents, with hits and documents.

    keys (Ints): Identity of each, shape (n, 2): start and end, or row and column of the label.
    """

    keys: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    documents: Ints

    @classmethod
    def from_spans(cls, fit: SpanFit | None) -> ScoredUnits | None:
        """Take the spans on the Docs."""
        if fit is None:
            return None
        spans, data = fit.data.known_spans, fit.data
        return cls(np.column_stack([spans.starts, spans.ends]), fit.held_out, data.pairs.hits, data.known_documents)

    @classmethod
    def from_labels(cls, judged_pairs: JudgedPairs | None, columns: Ints, overlapping: bool) -> ScoredUnits | None:
        """Take the top labels, or all if a unit may have several (`overlapping`).

        columns (Ints): New column of each label, shape (n_labels,).
        """
        if judged_pairs is None:
            return None
        pairs = judged_pairs.pairs
        index = np.arange(len(pairs)) if overlapping else np.sort(top_pairs(pairs))
        keys = np.column_stack([pairs.rows, columns[pairs.tags]])
        return cls(keys[index], judged_pairs.calibrated[index], pairs.hits[index], judged_pairs.documents[index])


def compare_with_present(fit: Calibrator, present: Calibrator, examples: Sequence[Example]) -> FitComparison:
    """Compare a new fit with the pipe that it replaces, as it was and adapted; `present` is adapted here, in the fit's pipeline.

    examples (Sequence): Examples of the fit, after the pipes before the source, with the labels of the present pipe.
    """
    annotation, present.lookup = get_annotation(fit.fit_info.layer), SourceLookup(present, fit.lookup.nlp)
    present_texts = present.learned.seen_texts
    overlap = None if present_texts is None else present_texts.overlap_with(texts_of(annotation, examples))
    if overlap is not None and overlap.is_fit_data:
        why = f"it was fitted on {100 * overlap.share:.0f} % of the words of these texts, so its scores look too good there"
        return FitComparison(FIT, why=why)
    is_of_spans = fit.held_out_spans is not None and annotation.spans_first

    def units_of(pipe: Calibrator, judged_pairs: JudgedPairs | None, spans: SpanFit | None) -> ScoredUnits | None:
        if is_of_spans:
            return ScoredUnits.from_spans(spans)
        columns_by_label = {label: i for i, label in enumerate(fit.labels)}
        columns = np.array([columns_by_label.get(label, -1) for label in pipe.labels], dtype=np.intp)
        return ScoredUnits.from_labels(judged_pairs, columns, annotation.overlapping)

    units = units_of(fit, fit.held_out, fit.held_out_spans)
    if units is None or len(np.unique(units.documents)) < 2:
        return FitComparison(PRESENT, why="all labels are in one document, so there are no held-out ones")
    try:
        former, performance = _adapt_detached(present, examples)
    except CalibError as error:
        return FitComparison(FIT, why=f"it cannot read this gold ({error.message})")
    rivals = {PRESENT: units_of(present, *former), ADAPTED: units_of(present, present.held_out, present.held_out_spans)}
    scores = {name: align_scores(units.keys, rival.keys, rival.scores) for name, rival in rivals.items() if rival is not None}
    scores[FIT] = units.scores
    unit = annotation.span_words[0] if is_of_spans else fit.fit_info.row_unit
    replacement = compare_scores(scores, units.hits, units.documents, unit) if PRESENT in scores else None
    if replacement is None:
        return FitComparison(FIT, why="it scores none of the labels that the new fit scores")
    return FitComparison(replacement.winner, replacement, performance=performance)


def _adapt_detached(
    pipe: Calibrator, examples: Sequence[Example]
) -> tuple[tuple[JudgedPairs | None, SpanFit | None], Mapping[str, Any]]:
    """Adapt a pipe that is in no pipeline.

    RETURNS (tuple): Labels and spans of the examples with their scores before; the figures that the adaptation wrote into the
        pipeline's meta, which is restored.
    RAISES As `Calibrator.adapt`.
    """
    nlp, groups = pipe.lookup.nlp, pipe.groups
    assert groups is not None
    meta = deepcopy(nlp.meta)
    with warnings.catch_warnings():  # these were given for the fit
        warnings.filterwarnings("ignore", message=r"\[CW(04|13|14|65)\]")
        inputs = read_fit_inputs(pipe, examples, FitArguments(), in_runs=True)
        _, _, judged_pairs, _, view = adapt_tokens(inputs, pipe.tokens, groups, NO_CHANGE)
        spans = None if inputs.spans is None else adapt_spans(inputs.spans, pipe.spans, view, NO_CHANGE)[0]
        pipe.learned, pipe.held_out, pipe.held_out_spans = learn_adaptation(pipe, inputs)
    performance, nlp.meta = dict(nlp.meta.get("performance", {})), meta
    return (judged_pairs, spans), performance
