"""Compare a new fit with the calibration that the pipeline had, on the documents of the fit: neither is scored by what saw their gold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy import util
from spacy.training import Example

from ..calibration.replacement import ADAPTED, FIT, PRESENT, Replacement, align_scores, compare_scores
from ..doc.annotations import get_annotation
from ..doc.reading import texts_of
from ..errors import CalibError
from ..pairs.build import top_pairs
from ..types import Floats, Ints
from .component import Calibrator
from .lookup import SourceLookup

_BATCH = 128


@dataclass(frozen=True, eq=False)
class Comparison:
    """A new fit beside the calibration that was there.

    winner (str): PRESENT, ADAPTED or FIT. replacement (Replacement | None): The losses; None where they cannot be compared.
    why (str): Why they cannot be compared; "" where they can. adapted (Calibrator | None): The present pipe with what it learned of the
        documents, in no pipeline. performance (Mapping): The figures of a pipeline's meta with that pipe.
    """

    winner: str
    replacement: Replacement | None = None
    why: str = ""
    adapted: Calibrator | None = None
    performance: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """n entities, or labels of tokens or documents, of the documents of a fit.

    keys (Ints): What tells them apart, shape (n, 2): start and end, or row and column of the label. scores (Floats): Of each.
    hits (NDArray[bool]), documents (Ints): Whether each is right, and its document.
    """

    keys: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    documents: Ints


def compare_with_present(
    fit: Calibrator, present: Calibrator, examples: Sequence[Example], gold: Sequence[Example]
) -> Comparison:
    """Compare a fit with a pipe for the same component that it took the place of. That reads the fit's pipeline from now on, and is adapted.

    examples (Sequence): Those of the fit, which have been through the pipes before the
        source. gold (Sequence): The same with the labels of the present pipe.
    """
    annotation, present.lookup = get_annotation(fit.fit_info.layer), SourceLookup(present, fit.lookup.nlp)
    seen = None if present.learned.seen is None else present.learned.seen.share_of(texts_of(annotation, gold))
    if seen is not None and seen.many:
        return Comparison(
            FIT, why=f"it was fitted on {100 * seen.share:.0f} % of the words of these texts, where it looks too good"
        )
    of_spans = fit.held_out_spans is not None and annotation.spans_first
    units = _held_out_units(fit, fit.labels, of_spans)
    if units is None or len(np.unique(units.documents)) < 2:
        return Comparison(PRESENT, why="all labels are of one document, so that none can be held out")
    scores = {PRESENT: align_scores(units.keys, *_present_scores(present, examples, fit.labels, of_spans)), FIT: units.scores}
    performance = _adapt_apart(present, gold)
    adapted = None if performance is None else _held_out_units(present, fit.labels, of_spans)
    if adapted is not None:
        scores[ADAPTED] = align_scores(units.keys, adapted.keys, adapted.scores)
    unit = annotation.span_words[0] if of_spans else fit.fit_info.row_unit
    replacement = compare_scores(scores, units.hits, units.documents, unit)
    if replacement is None:
        return Comparison(FIT, why="it scores none of the labels that the fit scores")
    return Comparison(replacement.winner, replacement, adapted=present, performance=performance)


def _adapt_apart(pipe: Calibrator, examples: Sequence[Example]) -> Mapping[str, Any] | None:
    """Adapt a pipe that stands in no pipeline, whose figures go elsewhere. RETURNS (Mapping | None): These; None if it cannot be adapted."""
    nlp = pipe.lookup.nlp
    meta = deepcopy(nlp.meta)
    try:
        with warnings.catch_warnings():  # of texts that are known, and of gold that is checked
            warnings.filterwarnings("ignore", message=r"\[CW(04|13|14|65)\]")
            pipe.adapt(examples, max_unknown=1.0)
        return dict(nlp.meta.get("performance", {}))
    except CalibError:
        return None
    finally:
        nlp.meta = meta


def _held_out_units(pipe: Calibrator, labels: Sequence[str], of_spans: bool) -> ScoredUnits | None:
    """The units that a pipe learned from, with scores by what did not see their document; None where nothing was held out."""
    adaptations = pipe.fit_info.adaptations
    if of_spans and pipe.held_out_spans is not None:
        if adaptations and (adaptations[-1]["spans"] is None or adaptations[-1]["spans"]["after"] is None):
            return None
        data, held_out = pipe.held_out_spans.data, pipe.held_out_spans.held_out
        spans = data.known_spans
        return ScoredUnits(np.column_stack([spans.starts, spans.ends]), held_out, data.pairs.hits, data.known_documents)
    judged = pipe.held_out
    if of_spans or judged is None:
        return None
    pairs, overlapping = judged.pairs, get_annotation(pipe.fit_info.layer).overlapping
    index = np.arange(len(pairs)) if overlapping else np.sort(top_pairs(pairs))
    keys = np.column_stack([pairs.rows, _columns_among(labels, pipe.labels)[pairs.tags]])
    return ScoredUnits(keys[index], judged.calibrated[index], pairs.hits[index], judged.documents[index])


def _columns_among(labels: Sequence[str], pipe_labels: Sequence[str]) -> Ints:
    """The place of each label of a pipe among other labels; -1 where it is none of them."""
    places = {label: i for i, label in enumerate(labels)}
    return np.array([places.get(label, -1) for label in pipe_labels], dtype=np.intp)


def _present_scores(
    pipe: Calibrator, examples: Sequence[Example], labels: Sequence[str], of_spans: bool
) -> tuple[Ints, Floats]:
    """(keys, scores) of all that a pipe scores in some examples."""
    keys, scores, n_rows = [np.zeros((0, 2), dtype=np.intp)], [np.zeros(0)], 0
    for batch in util.minibatch((example.predicted for example in examples), _BATCH):
        calibrated = pipe.predict(batch).batch
        if calibrated is None:
            continue
        marginals = calibrated.calibrated.marginals
        if of_spans and calibrated.spans is not None:
            index = np.flatnonzero(calibrated.spans.spans.chosen)
            spans = calibrated.spans.spans.take(index)
            keys.append(np.column_stack([spans.starts, spans.ends]) + n_rows)
            scores.append(calibrated.spans.calibrated[index])
        elif not of_spans:
            columns = _columns_among(labels, calibrated.labels)[marginals.tags]
            keys.append(np.column_stack([marginals.rows + n_rows, columns]))
            scores.append(calibrated.calibrated.scores)
        n_rows += marginals.n_tokens
    return np.concatenate(keys), np.concatenate(scores)
