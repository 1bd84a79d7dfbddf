"""Compare a new fit with the calibration that the pipeline had, on the documents of the fit: neither is scored by what saw their gold."""

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
from .fit_inputs import FitArguments, gather
from .lookup import SourceLookup


@dataclass(frozen=True, eq=False)
class Comparison:
    """A new fit beside the calibration that was there.

    winner (str): PRESENT, ADAPTED or FIT. replacement (Replacement | None): The losses; None where they cannot be compared.
    why (str): Why they cannot be compared; "" where they can. performance (Mapping | None): The figures of the pipeline's meta with the
        pipe that was there and is adapted now; None where they cannot be compared.
    """

    winner: str
    replacement: Replacement | None = None
    why: str = ""
    performance: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """n entities, or labels of tokens or documents, each scored by what did not see its document.

    keys (Ints): What tells them apart, shape (n, 2): start and end, or row and column of the label. scores (Floats): Of each.
    hits (NDArray[bool]), documents (Ints): Whether each is right, and its document.
    """

    keys: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    documents: Ints

    @classmethod
    def from_spans(cls, fit: SpanFit | None) -> ScoredUnits | None:
        """The spans on the Docs."""
        if fit is None:
            return None
        spans, data = fit.data.known_spans, fit.data
        return cls(np.column_stack([spans.starts, spans.ends]), fit.held_out, data.pairs.hits, data.known_documents)

    @classmethod
    def from_labels(cls, judged: JudgedPairs | None, columns: Ints, overlapping: bool) -> ScoredUnits | None:
        """The top labels, or all where several may be right (`overlapping`). columns (Ints): What tells each label apart."""
        if judged is None:
            return None
        pairs = judged.pairs
        index = np.arange(len(pairs)) if overlapping else np.sort(top_pairs(pairs))
        keys = np.column_stack([pairs.rows, columns[pairs.tags]])
        return cls(keys[index], judged.calibrated[index], pairs.hits[index], judged.documents[index])


def compare_with_present(fit: Calibrator, present: Calibrator, examples: Sequence[Example]) -> Comparison:
    """Compare a fit with a pipe for the same component that it took the place of. That reads the fit's pipeline from now on, and is adapted.

    examples (Sequence): Those of the fit, which have been through the pipes before the source, with the labels of the present pipe.
    """
    annotation, present.lookup = get_annotation(fit.fit_info.layer), SourceLookup(present, fit.lookup.nlp)
    seen = None if present.learned.seen is None else present.learned.seen.overlap_with(texts_of(annotation, examples))
    if seen is not None and seen.is_fit_data:
        return Comparison(
            FIT, why=f"it was fitted on {100 * seen.share:.0f} % of the words of these texts, where it looks too good"
        )
    is_of_spans = fit.held_out_spans is not None and annotation.spans_first

    def units_of(pipe: Calibrator, judged: JudgedPairs | None, spans: SpanFit | None) -> ScoredUnits | None:
        if is_of_spans:
            return ScoredUnits.from_spans(spans)
        places = {label: i for i, label in enumerate(fit.labels)}
        columns = np.array([places.get(label, -1) for label in pipe.labels], dtype=np.intp)
        return ScoredUnits.from_labels(judged, columns, annotation.overlapping)

    units = units_of(fit, fit.held_out, fit.held_out_spans)
    if units is None or len(np.unique(units.documents)) < 2:
        return Comparison(PRESENT, why="all labels are of one document, so that none can be held out")
    try:
        before, performance = _adapt_apart(present, examples)
    except CalibError as error:
        return Comparison(FIT, why=f"it cannot read this gold ({error.message})")
    rivals = {PRESENT: units_of(present, *before), ADAPTED: units_of(present, present.held_out, present.held_out_spans)}
    scores = {name: align_scores(units.keys, rival.keys, rival.scores) for name, rival in rivals.items() if rival is not None}
    scores[FIT] = units.scores
    unit = annotation.span_words[0] if is_of_spans else fit.fit_info.row_unit
    replacement = compare_scores(scores, units.hits, units.documents, unit) if PRESENT in scores else None
    if replacement is None:
        return Comparison(FIT, why="it scores none of the labels that the fit scores")
    return Comparison(replacement.winner, replacement, performance=performance)


def _adapt_apart(
    pipe: Calibrator, examples: Sequence[Example]
) -> tuple[tuple[JudgedPairs | None, SpanFit | None], Mapping[str, Any]]:
    """Adapt a pipe that stands in no pipeline.

    RETURNS (tuple): The labels and spans of the examples with the scores before; the figures of its pipeline's meta, which stays as it was.
    RAISES C030 and others: see `Calibrator.adapt`.
    """
    nlp, groups = pipe.lookup.nlp, pipe.groups
    assert groups is not None
    meta = deepcopy(nlp.meta)
    with warnings.catch_warnings():  # of texts that are known, and of gold that is checked
        warnings.filterwarnings("ignore", message=r"\[CW(04|13|14|65)\]")
        inputs = gather(pipe, examples, FitArguments(), in_runs=True)
        _, _, judged, _, view = adapt_tokens(inputs, pipe.tokens, groups, NO_CHANGE)
        spans = None if inputs.spans is None else adapt_spans(inputs.spans, pipe.spans, view, NO_CHANGE)[0]
        pipe.learned, pipe.held_out, pipe.held_out_spans = learn_adaptation(pipe, inputs)
    performance, nlp.meta = dict(nlp.meta.get("performance", {})), meta
    return (judged, spans), performance
