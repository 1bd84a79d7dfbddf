"""The figures of a fit in the pipeline's meta.json, among its performance, from where `spacy package` takes them into a README."""

from __future__ import annotations

from typing import Any

import numpy as np
from spacy.language import Language

from ..expect.record import SpanFit
from ..pairs.judged import JudgedPairs, no_pairs
from ..types import Groups, Pairs
from .scorer import calib_scores


def held_out_performance(
    attr: str, tokens: JudgedPairs, groups: Groups, found: SpanFit | None = None, n_bins: int = 10
) -> dict[str, Any]:
    """The figures of `spacy evaluate` for the fit data, each pair judged by maps that did not see its document.

    attr (str): Prefix of the pipe. tokens (JudgedPairs): With held-out scores. groups (Groups): Of their tags. found (SpanFit | None): None for a
        source without spans. n_bins (int): Adaptive bins of the errors.
    """
    figures = calib_scores(tokens, groups, attr, n_bins)
    if found is not None:
        figures |= calib_scores(_judged_spans(found, tokens.unit), found.groups, f"{attr}_ent", n_bins)
    return figures


def _judged_spans(found: SpanFit, unit: str) -> JudgedPairs:
    known = found.known
    n = len(known)
    pairs = Pairs(np.arange(n), found.spans.labels[known], found.raw[known], found.hits[known] == 1, n)
    return JudgedPairs(pairs, found.held_out, found.documents[known], unit)


def set_performance(nlp: Language, attr: str, figures: dict[str, Any]) -> None:
    """Put the figures of a pipe in the place of those that it had."""
    drop_performance(nlp, attr)
    nlp.meta.setdefault("performance", {}).update(figures)


def drop_performance(nlp: Language, attr: str) -> None:
    """Take out the figures of a pipe, and what held nothing else."""
    performance = nlp.meta.get("performance", {})
    own = [name for prefix in (attr, f"{attr}_ent") for name in calib_scores(no_pairs(), None, prefix) if name in performance]
    for name in own:
        del performance[name]
    if own and not performance:
        del nlp.meta["performance"]
