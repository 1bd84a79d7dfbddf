"""The figures of a fit in the pipeline's meta.json, among its performance, from where `spacy package` takes them into a README."""

from __future__ import annotations

from typing import Any

from spacy.language import Language

from ..pairs.judged import no_pairs
from .scorer import calib_scores


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
