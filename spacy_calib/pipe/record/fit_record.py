"""What a fitted pipe keeps of its fit documents: what to expect of others, and salted digests of their texts, no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...calibration.span_fit import SpanData, SpanFit
from ...pairs.build import JudgedPairs, interleave, top_pairs
from ...schema import Serializable, dict_of, maybe, number, saved_field
from ...types import OUTSIDE, Floats, Ints
from ..saved import FITTED, dump, read
from .drift import DriftProfile, Labelled
from .effects import (
    Effects,
    LabelCells,
    learn_effects,
    source_sums,
    variance_between_sources,
    widening,
    with_missed,
    with_widths,
)
from .estimates import EntityModel, EntitySums, Residuals, Sums, sum_by, token_sums

if TYPE_CHECKING:
    from ..calibrating import CalibratingPipe

_SAVED = FITTED._replace(format="spacy-calib record")


@dataclass(frozen=True)
class FitRecord(Serializable):
    """What is kept of the fit documents.

    tokens (Residuals): Of right tokens. accuracy (float): Of the fit tokens. entities (EntityModel | None): None for a source
    without spans. profile (DriftProfile): What new documents are compared with. effects (dict): Label -> how its numbers vary.
    source_variance (float): Variance of the shift of log-odds of right tokens in an unknown source; 0 for a fit on one source.
    """

    tokens: Residuals = saved_field(Residuals.of_kinds(1))
    accuracy: float = saved_field(number(0.0, 1.0))
    entities: EntityModel | None = saved_field(maybe(EntityModel.read))
    profile: DriftProfile = saved_field(DriftProfile.read)
    effects: dict[str, Effects] = saved_field(dict_of(Effects.read), dict)
    source_variance: float = saved_field(number(0.0), 0.0)

    def to_bytes(self) -> bytes:
        """The record as a pipe keeps it, for `read_record`."""
        return dump(self.state(), _SAVED)


def read_record(pipe: CalibratingPipe) -> FitRecord | None:
    """Read what a pipe keeps of its fit documents; None for a pipe that was fitted without. RAISES C010, C011: it cannot be read."""
    return None if pipe.learned.record is None else _read(pipe.learned.record, pipe.name)


@lru_cache(maxsize=8)
def _read(data: bytes, name: str) -> FitRecord:
    return read(data, lambda state: FitRecord.read(state, "record"), name=name, path="the record of its fit", kept=_SAVED)


def _labelled(judged: JudgedPairs, n_docs: int, labels: Sequence[str]) -> tuple[Labelled, Ints]:
    """(the likeliest pair of each token, in the order of the text; the index of these pairs)."""
    top = np.sort(top_pairs(judged.pairs))
    names = np.array([*labels, ""], dtype=object)[:-1][judged.pairs.tags[top]]
    raw, calibrated = judged.pairs.scores[top], judged.calibrated[top]
    return Labelled(judged.documents[top], n_docs, names.tolist(), raw, calibrated), top


def record_fit(
    judged: JudgedPairs,
    n_docs: int,
    labels: Sequence[str],
    found_spans: SpanFit | None = None,
    unjudged: JudgedPairs | None = None,
    gold: Ints | None = None,
    of_sources: Ints | None = None,
) -> FitRecord | None:
    """Learn from the tokens of the fit data, scored by maps that did not see their documents.

    judged (JudgedPairs): Tokens with gold. n_docs (int): Documents, with tokens or without. labels (Sequence[str]): Of
        the tags. found_spans (SpanFit | None): None for a source without spans. unjudged (JudgedPairs | None): Tokens without
        gold, for the comparison with new documents, where all tokens count. gold (Ints | None): Column of each token's
        gold label, negative for none; None leaves out tokens without a score of it. of_sources (Ints | None): Source of
        each document's gold, -1 without a name; None for one source.
    RETURNS (FitRecord | None): None where fewer than two documents have tokens, so that their differences are unknown.
    """
    tokens, top = _labelled(judged, n_docs, labels)
    if len(np.unique(tokens.documents)) < 2:
        return None
    sums = token_sums(tokens.calibrated, tokens.documents, n_docs)
    right = sum_by(tokens.documents, judged.pairs.hits[top], n_docs)[:, None]
    residuals = Residuals.of(right, sums)
    all_tokens = tokens if unjudged is None else _labelled(_all_pairs(judged, unjudged), n_docs, labels)[0]
    return FitRecord(
        tokens=residuals,
        accuracy=float(judged.pairs.hits[top].mean()),
        entities=None if found_spans is None else _fit_entities(tokens, found_spans, n_docs),
        profile=DriftProfile.of(all_tokens, None if found_spans is None else _all_spans(found_spans.data, n_docs)),
        effects=_learn_effects(
            judged, top, labels, gold, np.zeros(n_docs, dtype=np.intp) if of_sources is None else of_sources
        ),
        source_variance=0.0 if of_sources is None else _source_variance(residuals, right[:, 0], sums, of_sources),
    )


def _fit_entities(tokens: Labelled, found_spans: SpanFit, n_docs: int) -> EntityModel:
    """Learn from the spans whose gold is known."""
    documents, pairs = found_spans.data.known_documents, found_spans.data.pairs
    spans = Labelled(documents, n_docs, None, pairs.scores, found_spans.held_out)
    n_right = sum_by(documents, pairs.hits, n_docs)
    return EntityModel.fit(entity_sums(tokens, spans), n_right, found_spans.data.gold.astype(np.float64))


def _all_pairs(judged: JudgedPairs, unjudged: JudgedPairs) -> JudgedPairs:
    """The pairs of both, in the order of the text."""
    pairs, order = interleave(judged.pairs, unjudged.pairs)
    scores = np.concatenate([judged.calibrated, unjudged.calibrated])[order]
    return JudgedPairs(pairs, scores, np.concatenate([judged.documents, unjudged.documents])[order])


def _learn_effects(
    judged: JudgedPairs, top: Ints, labels: Sequence[str], gold: Ints | None, of_sources: Ints
) -> dict[str, Effects]:
    """`FitRecord.effects`. top (Ints): The likeliest pair of each token. of_sources (Ints): Source of each document."""
    pairs = judged.pairs
    cells = LabelCells.from_pairs(judged.calibrated, pairs.hits.astype(np.float64), judged.documents, pairs.tags)
    effects = learn_effects(cells, labels)
    if gold is None:
        return effects
    rows, first = np.unique(pairs.rows, return_index=True)
    documents, columns = judged.documents[first], gold[rows]
    has_label = (columns >= 0) & (columns < len(labels))
    is_missed = has_label & ~np.isin(rows, pairs.rows[pairs.hits])
    sizes = sum_by(documents, None, len(of_sources))
    effects = with_missed(effects, columns[is_missed], documents[is_missed], sizes, labels)
    predicted, in_gold = (judged.documents[top], pairs.tags[top]), (documents[has_label], columns[has_label])
    return with_widths(effects, source_sums(cells, predicted, in_gold, of_sources, len(labels)), labels)


def _source_variance(residuals: Residuals, right: Floats, sums: Sums, of_sources: Ints) -> float:
    """`FitRecord.source_variance`. right (Floats): Right tokens of each document. of_sources (Ints): Its source."""
    names, places = np.unique(of_sources, return_inverse=True)
    columns = (right - sums.expected[:, 0], sums.independent[:, 0], np.square(sums.units))
    errors, variances, squares = (sum_by(places, values, len(names)) for values in columns)
    noise = variances + residuals.shift_variance(np.ones(1)) * squares
    return variance_between_sources(errors, variances, noise) * widening(len(names)) ** 2


def _all_spans(data: SpanData, n_docs: int) -> Labelled:
    """All spans on the Docs, with gold or without, to be compared by their raw scores."""
    index = np.flatnonzero(data.spans.on_doc)
    return Labelled(data.documents[index], n_docs, None, data.raw[index], data.raw[index])


def entity_sums(tokens: Labelled, spans: Labelled) -> EntitySums:
    """For each document the sums that give the expected numbers of entities."""
    n_docs = tokens.n_docs
    is_outside: NDArray[np.bool_] = np.array(tokens.labels or (), dtype=object) == OUTSIDE
    p = spans.calibrated
    return EntitySums(
        sum_by(spans.documents, None, n_docs),
        sum_by(spans.documents, p, n_docs),
        sum_by(spans.documents, p * (1 - p), n_docs),
        sum_by(tokens.documents[is_outside], 1 - tokens.calibrated[is_outside], n_docs),
        sum_by(tokens.documents, None, n_docs),
    )
