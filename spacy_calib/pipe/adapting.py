"""Adapts a fitted calib pipe to a few labelled documents of another domain, and compares a new fit with the former pipe."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example

from ..annotations import get_annotation
from ..calibration.adaptation.adaptation import (
    NO_CHANGE,
    PRETRAINED_SPAN_PRIOR,
    PRETRAINED_TOKEN_PRIOR,
    SPAN_PRIOR,
    TOKEN_PRIOR,
    GoldEntries,
    Prior,
)
from ..calibration.adaptation.fitting import AdaptationFit
from ..calibration.replacement import ADAPTED, FIT, PRESENT, Replacement, align_scores, compare_scores
from ..calibration.span_fit import SpanData, SpanFit
from ..calibration.spans import SpanCalibration
from ..calibration.steps import Predictions, apply_steps
from ..calibration.tokens import Normalization, TokenCalibration
from ..errors import CalibError
from ..gold.reading import texts_of
from ..pairs.pairing import JudgedPairs, interleave, top_pairs
from ..types import Floats, Groups, Ints
from .component import Calibrator
from .fitting import FitArguments, FitInputs, read_fit_inputs, save_errors
from .lookup import SourceLookup
from .record.fit_record import record_fit
from .state import PipeState


def learn_adaptation(pipe: Calibrator, inputs: FitInputs) -> tuple[PipeState, JudgedPairs | None, SpanFit | None]:
    """Adapt the calibration of a fitted pipe to another domain. The pipe is not changed: the caller gives it the new state.

    In the pipeline's meta, errors of the adapted scores replace the former ones, but of a single document there are none.
    inputs (FitInputs): Labelled documents of the other domain. Cut-offs stay, as adapted scores are still probabilities.
    RETURNS (tuple): The new state; the (token, tag) pairs with out-of-fold adapted scores, None for a single document; the
        adapted span steps with out-of-fold adapted scores of the spans, None if the pipe calibrates no spans.
    """
    state_before, groups = pipe.learned, pipe.groups
    assert groups is not None  # the pipe is fitted
    # A prior: how far off the scores of a fit, or of a pretrained calibration, are expected to be in another domain.
    token_prior, span_prior = TOKEN_PRIOR, SPAN_PRIOR
    if pipe.fit_info.pretrained is not None:
        token_prior, span_prior = PRETRAINED_TOKEN_PRIOR, PRETRAINED_SPAN_PRIOR
    token_results = adapt_tokens(inputs, state_before.tokens, groups, token_prior)
    tokens, token_step, judged_pairs, unlabelled_pairs, token_features = token_results
    span_fit, span_step = adapt_spans(inputs.spans, state_before.spans, token_features, span_prior)
    texts_before, overlap = state_before.seen_texts, state_before.overlap_with(inputs.texts)
    summary = {
        "docs": inputs.n_docs,
        "unit": inputs.unit,
        "seen": overlap,
        "tokens": token_step.describe(inputs.source.labels),
        "spans": None if span_step is None else span_step.describe(inputs.source.span_labels),
    }
    seen_texts = inputs.seen_texts if texts_before is None else texts_before.with_texts(inputs.texts)
    record = None  # statistics of the documents; None for a single one
    if judged_pairs is not None:
        record = record_fit(judged_pairs, inputs.n_docs, inputs.source.labels, span_fit, unlabelled_pairs)
    state = replace(
        state_before,
        tokens=tokens,
        spans=state_before.spans if span_fit is None else span_fit.calibration,
        record=None if record is None else record.to_bytes(),
        seen_state=seen_texts.state(),
        info=replace(state_before.info, adaptations=[*state_before.info.adaptations, summary]),
    )
    warn_of_adaptation(pipe, inputs.n_docs, overlap)
    save_errors(pipe, inputs, judged_pairs, groups, span_fit, state_before.spans.groups)
    return state, judged_pairs, span_fit


def warn_of_adaptation(pipe: Calibrator, n_docs: int, overlap: Mapping[str, Any] | None) -> None:
    """Warn of a single document, of texts that the fit has seen, and of a component that has other weights than at the fit.

    n_docs (int): Number of documents. overlap (Mapping | None): Fields of the TrainTestOverlap with the fit; None if unknown.
    """
    if n_docs < 2:
        pipe.warn("CW13")
    if overlap is not None and overlap["many"]:
        pipe.warn("CW14", share=round(100 * overlap["share"]))
    if pipe.lookup.weights_changed():
        pipe.warn("CW04", component=pipe.source.component)


def adapt_tokens(
    inputs: FitInputs, calibration_before: TokenCalibration, groups: Groups, prior: Prior = TOKEN_PRIOR
) -> tuple[TokenCalibration, AdaptationFit, JudgedPairs | None, JudgedPairs, Any]:
    """Fit an adaptation step to the calibrated scores (before normalization) of the token pairs with gold.

    inputs (FitInputs): The labelled documents. groups (Groups): Of the tags. prior (Prior): How far off scores may be.
    RETURNS (tuple): The calibration with the adaptation added; the fitted adaptation; the pairs with gold and their out-of-fold
        adapted scores, None for a single document; the pairs without gold and their adapted scores; the view (features that
        the context computed from all tokens), for `adapt_spans`.
    """
    data, threshold = inputs.data, inputs.settings.threshold
    # All pairs in text order, as a context looks at all tokens. `order`: index of each in data.pairs, then unlabelled_pairs.
    all_pairs, order = interleave(data.pairs, data.unlabelled_pairs)
    all_documents = np.concatenate([data.documents, data.unlabelled_documents])[order]
    steps = [step for step in calibration_before.steps if not isinstance(step, Normalization)]
    predictions = apply_steps(steps, Predictions.of_pairs(all_pairs, threshold, data.words))  # of pairs above the threshold
    above = np.flatnonzero(all_pairs.scores >= threshold)
    pairs, documents, has_gold = all_pairs.take(above), all_documents[above], (order < len(data.pairs))[above]
    with_gold, without_gold = np.flatnonzero(has_gold), np.flatnonzero(~has_gold)  # indices into `pairs` and `predictions`
    entries = GoldEntries(predictions.scores, pairs.hits, predictions.is_top, pairs.tags, documents)
    fit = AdaptationFit.from_entries(entries.take(with_gold), groups, prior)
    calibration = copy(calibration_before)
    calibration.adaptations = (*calibration_before.adaptations, fit.adaptation)
    last_steps = calibration.steps_after(fit.adaptation)
    judged_pairs = None
    if fit.held_out is not None:  # scores by adaptations that were fitted to the other documents
        adapted = predictions.take(with_gold).replace_unchecked(scores=fit.held_out)
        scores = apply_steps(last_steps, adapted).scores
        judged_pairs = JudgedPairs(pairs.take(with_gold), scores, documents[with_gold], inputs.unit)
    unlabelled_scores = apply_steps((fit.adaptation, *last_steps), predictions.take(without_gold)).scores
    unlabelled_pairs = JudgedPairs(pairs.take(without_gold), unlabelled_scores, documents[without_gold])
    return calibration, fit, judged_pairs, unlabelled_pairs, predictions.view


def adapt_spans(
    data: SpanData | None, calibration_before: SpanCalibration, view: Any = None, prior: Prior = SPAN_PRIOR
) -> tuple[SpanFit, AdaptationFit] | tuple[None, None]:
    """Fit an adaptation step to the calibrated scores of the spans with known gold.

    data (SpanData | None): The spans. calibration_before (SpanCalibration): Their fitted steps. prior (Prior): How far off
        scores may be. view (Any): Features of all tokens, which a span context uses; from `adapt_tokens`.
    RETURNS (tuple): The adapted steps with out-of-fold scores of the spans on the Docs, or their scores before the adaptation
        if there is a single document; the fitted adaptation. (None, None) if the pipe does not calibrate spans.
    """
    if data is None or calibration_before.groups is None:
        return None, None
    calibration = copy(calibration_before)
    calibration.cutoffs = None  # only scores are needed here, so the labels given below are ()
    candidate_indices = np.flatnonzero((data.hits >= 0) & ~data.spans.on_doc)  # other spans with known gold
    index = np.concatenate([data.known_indices, candidate_indices])
    spans = data.spans.take(index)
    raw = np.where(spans.on_doc, data.raw[index], spans.scores)  # as `Calibrator` takes them: of candidates their own scores
    scores, _ = calibration.calibrate(spans, raw, (), view)
    entries = GoldEntries(scores, data.hits[index] == 1, spans.on_doc, spans.labels, data.documents[index])
    fit = AdaptationFit.from_entries(entries, calibration_before.groups, prior)
    calibration.adaptations = (*calibration_before.adaptations, fit.adaptation)
    if (cutoffs := calibration_before.cutoffs) is not None:
        calibration.cutoffs = replace(cutoffs, sample=None)  # its sample shows the precision of other scores only
    new_scores = scores if fit.held_out is None else fit.held_out
    return SpanFit(calibration, data, new_scores[: len(data.known_indices)]), fit  # spans on the Docs come first


@dataclass(frozen=True, eq=False)
class FitComparison:
    """The result of comparing a new fit with the former pipe, as it was and adapted to the same gold.

    winner (str): What to keep: PRESENT (the former pipe), ADAPTED (that pipe, adapted) or FIT. why (str): Why they cannot be
        compared, or "". replacement (Replacement | None): The cross-validated losses; None if they cannot be compared.
    performance (Mapping | None): Calibration errors of the adapted pipe, for the pipeline's meta; None without a comparison.
    """

    winner: str
    replacement: Replacement | None = None
    why: str = ""
    performance: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """Out-of-fold scores of n units: entities, or (token, label) or (document, label) pairs.

    keys (Ints): Key of each unit, shape (n, 2): start and end of the entity, or row and label column.
    scores (Floats), hits (NDArray[bool]), documents (Ints): Score, whether the label is right, and document of each unit, (n,).
    """

    keys: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    documents: Ints

    @classmethod
    def from_spans(cls, fit: SpanFit | None) -> ScoredUnits | None:
        """Take the spans on the Docs whose gold is known, with the out-of-fold scores of a fit; None without a fit of spans."""
        if fit is None:
            return None
        spans, data = fit.data.known_spans, fit.data
        return cls(np.column_stack([spans.starts, spans.ends]), fit.held_out, data.pairs.hits, data.known_documents)

    @classmethod
    def from_labels(cls, judged_pairs: JudgedPairs | None, columns: Ints, overlapping: bool) -> ScoredUnits | None:
        """Take the highest-scored label of each token or document, or all its labels if it may have several (`overlapping`).

        judged_pairs (JudgedPairs | None): Labels with out-of-fold scores; None returns None. columns (Ints): For each label
            of the pipe that gave the scores its column in the new fit, which keys contain; -1 if the fit lacks it.
        """
        if judged_pairs is None:
            return None
        pairs = judged_pairs.pairs
        index = np.arange(len(pairs)) if overlapping else np.sort(top_pairs(pairs))
        keys = np.column_stack([pairs.rows, columns[pairs.tags]])  # (token or document, label)
        return cls(keys[index], judged_pairs.calibrated[index], pairs.hits[index], judged_pairs.documents[index])


def compare_with_present(fit: Calibrator, present: Calibrator, examples: Sequence[Example]) -> FitComparison:
    """Compare log losses of a new fit and of the former pipe, as it was and adapted to the same gold.

    fit, present (Calibrator): The new and the former pipe; `present` is adapted by this call. examples (Sequence): The gold of
        the fit under the label names of `present`, with Docs that the pipes before the source have processed.
    RETURNS (FitComparison): Which one has the lowest loss, or, if they cannot be compared, which one is kept and why.
    """
    annotation, present_texts = get_annotation(fit.fit_info.layer), present.learned.seen_texts
    present.lookup = SourceLookup(present, fit.lookup.nlp)  # the former pipe is in no pipeline any more
    overlap = None if present_texts is None else present_texts.overlap_with(texts_of(annotation, examples))
    if overlap is not None and overlap.is_fit_data:
        why = f"it was fitted on {100 * overlap.share:.0f} % of the words of these texts, so its scores look too good there"
        return FitComparison(FIT, why=why)
    units = _units_to_compare(fit, fit, fit.held_out, fit.held_out_spans)
    if units is None or len(np.unique(units.documents)) < 2:
        return FitComparison(PRESENT, why="all labels are in one document, so there are no held-out ones")
    try:
        present_scores, performance = _adapt_detached(present, examples)
    except CalibError as error:
        return FitComparison(FIT, why=f"it cannot read this gold ({error.message})")
    rivals = {
        PRESENT: _units_to_compare(fit, present, *present_scores),
        ADAPTED: _units_to_compare(fit, present, present.held_out, present.held_out_spans),  # as `_adapt_detached` left them
    }
    scores = {name: align_scores(units.keys, rival.keys, rival.scores) for name, rival in rivals.items() if rival is not None}
    scores[FIT] = units.scores
    unit = annotation.kind.span_words[0] if _compares_spans(fit) else fit.fit_info.kind.unit
    replacement = compare_scores(scores, units.hits, units.documents, unit) if PRESENT in scores else None
    if replacement is None:
        return FitComparison(FIT, why="it scores none of the labels that the new fit scores")
    return FitComparison(replacement.winner, replacement, performance=performance)


def _compares_spans(fit: Calibrator) -> bool:
    """Return whether to compare fits by scores of spans, such as entities, not of tokens; a parser's sentences do not count."""
    return fit.held_out_spans is not None and not fit.fit_info.kind.of_arcs


def _units_to_compare(
    fit: Calibrator, pipe: Calibrator, judged_pairs: JudgedPairs | None, spans: SpanFit | None
) -> ScoredUnits | None:
    """Return the scored units by which a pipe is compared with a new fit: spans or labels; None without scores.

    judged_pairs (JudgedPairs | None), spans (SpanFit | None): Labels, and spans, with out-of-fold scores of `pipe`.
    """
    if _compares_spans(fit):
        return ScoredUnits.from_spans(spans)
    columns_by_label = {label: i for i, label in enumerate(fit.labels)}
    columns = np.array([columns_by_label.get(label, -1) for label in pipe.labels], dtype=np.intp)
    return ScoredUnits.from_labels(judged_pairs, columns, fit.fit_info.kind.overlapping)


def _adapt_detached(
    pipe: Calibrator, examples: Sequence[Example]
) -> tuple[tuple[JudgedPairs | None, SpanFit | None], Mapping[str, Any]]:
    """Adapt a former pipe, which is in no pipeline any more, to gold, and leave the meta of `pipe.lookup.nlp` as it was.

    RETURNS (tuple): (token pairs, spans) with the scores before the adaptation, None for a kind that the pipe does not score;
        the calibration errors of the adapted scores, for the meta. RAISES CalibError: the pipe cannot read this gold.
    """
    nlp, groups = pipe.lookup.nlp, pipe.groups
    assert groups is not None
    meta = deepcopy(nlp.meta)
    with warnings.catch_warnings():  # the fit to the same gold has given these warnings
        warnings.filterwarnings("ignore", message=r"\[CW(04|13|14|65)\]")
        inputs = read_fit_inputs(pipe, examples, FitArguments(), in_runs=True)
        # An adaptation with the prior NO_CHANGE changes nothing: it gives the present scores, of the same units.
        _, _, judged_pairs, _, view = adapt_tokens(inputs, pipe.tokens, groups, NO_CHANGE)
        span_fit, _ = adapt_spans(inputs.spans, pipe.spans, view, NO_CHANGE)
        pipe.learned, pipe.held_out, pipe.held_out_spans = learn_adaptation(pipe, inputs)
    performance, nlp.meta = dict(nlp.meta.get("performance", {})), meta
    return (judged_pairs, span_fit), performance
