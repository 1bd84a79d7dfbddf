"""Calibration figures for `spacy evaluate`, and of a fit for meta.json, which `spacy package` copies into a README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.language import Language
from spacy.training import Example

from ..annotations import get_annotation
from ..calibration.grouping.tag_frequency import regroup_by_frequency
from ..doc.doc_calib import doc_view
from ..metrics.calibration_errors import calibration_error, ece, group_slices, mean_of
from ..metrics.metric import check_short_names, figure_of
from ..pairs.bins import check_count
from ..pairs.pairing import JudgedPairs
from ..registry import by_short
from ..types import Groups

if TYPE_CHECKING:
    from ..pairs.scored_corpus import ScoredCorpus


def corpus_of(examples: Sequence[Example], attr: str, labels: Sequence[str]) -> ScoredCorpus:
    """Collect the scores that the calib pipe with prefix `attr` wrote on predicted Docs, and gold. labels: Label by column."""
    from ..gold.scored_corpora import scored_corpus  # only evaluation needs it

    views = (doc_view(example.predicted, attr) for example in examples)
    first_view = next((view for view in views if view is not None), None)
    if first_view is None:  # an empty corpus, which any annotation fits
        return scored_corpus([], attr, get_annotation("tag"), labels)
    return scored_corpus(examples, attr, get_annotation(first_view.layer), labels)


def calib_scores(judged_pairs: JudgedPairs, groups: Groups | None, attr: str = "calib", n_bins: int = 10) -> dict[str, Any]:
    """Return the calibration errors and all registered metrics of scores. Keys that end in "_raw" are those of raw scores.

    groups (Groups | None): Tag groups for GMCE; None gives no GMCE. attr (str): Prefix of keys. n_bins (int): Adaptive bins.
    RETURNS (dict): "<attr>_<figure>" -> value (None without pairs). Figures are "smce" (error over all pairs), "gmce" (mean of
        the errors of groups), "ece" (error of top labels) and the short names of metrics. "<attr>_gmce_per_group": None, or
        group -> its "gmce", "gmce_raw" and numbers of "pairs" and "tags".
    RAISES C185: two metrics have the same short name. C190: a metric has the short name of another figure.
    """
    pairs, metrics = judged_pairs.pairs, check_short_names(by_short("calib_metrics"))
    values_by_suffix = {"": judged_pairs.calibrated, "_raw": pairs.scores}
    per_group: dict[str, dict[str, Any]] = {}
    if groups is not None:
        for number, (name, index) in enumerate(zip(groups.names, group_slices(pairs, groups), strict=True)):
            hits, n_tags = pairs.hits[index], int(np.count_nonzero(groups.of_tag == number))
            errors = {suffix: calibration_error(values[index], hits, n_bins) for suffix, values in values_by_suffix.items()}
            per_group[name] = {"gmce": errors[""], "gmce_raw": errors["_raw"], "pairs": len(index), "tags": n_tags}
    scores: dict[str, Any] = {}
    for suffix, values in values_by_suffix.items():
        scores[f"smce{suffix}"] = calibration_error(values, pairs.hits, n_bins)
        scores[f"gmce{suffix}"] = mean_of([row[f"gmce{suffix}"] for row in per_group.values()])
        scores[f"ece{suffix}"] = ece(pairs, values, n_bins)
        scores |= {f"{short}{suffix}": figure_of(metric, values, pairs.hits) for short, metric in metrics.items()}
    scores["gmce_per_group"] = per_group if len(pairs) and groups is not None else None
    return {f"{attr}_{key}": value for key, value in scores.items()}


def score_prefixes(attr: str, of_entities: bool, token_scores: bool) -> tuple[str, str]:
    """Return (prefix of the figures of tokens, that of spans) of the pipe `attr`. The first is "" if only spans are scored."""
    if of_entities:  # the main figures, which have the plain prefix, are those of entities
        return f"{attr}_token" if token_scores else "", attr
    return attr, f"{attr}_span"


def score_names() -> list[str]:
    """Return the names of all figures that are single numbers. RAISES C185, C190: two figures have the same short name."""
    return ["smce", "gmce", "ece", *check_short_names(by_short("calib_metrics"))]


class CalibScorer:
    """The scorer of a calib pipe: called on examples, it returns the result of `calib_scores` for tokens, spans or both.

    n_bins (int): Adaptive bins. n_groups (int | None): Tag frequency groups for GMCE; None takes the groups of the fit.
    RAISES C001: n_bins or n_groups is not a whole number of at least 1.
    """

    def __init__(self, n_bins: int = 10, n_groups: int | None = None):
        self.n_bins = check_count("n_bins", n_bins)
        self.n_groups = None if n_groups is None else check_count("n_groups", n_groups)

    def __call__(
        self,
        examples: Iterable[Example],
        *,
        attr: str = "calib",
        labels: Sequence[str] = (),
        groups: Groups | None = None,
        span_labels: Sequence[str] = (),
        span_groups: Groups | None = None,
        of_entities: bool = False,
        token_scores: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the figures of `calib_scores` for the scores that a calib pipe wrote on the predicted Docs of the examples.

        attr (str): Prefix of the pipe. labels, span_labels (Sequence[str]): Its labels by column. groups, span_groups (Groups |
        None): Groups of these; None before a fit. of_entities, token_scores (bool): Whether it scores entities, and tokens too.
        """
        corpus = corpus_of(list(examples), attr, labels)
        tag_groups = groups and self.groups_to_evaluate(groups, labels)
        token_prefix, span_prefix = score_prefixes(attr, of_entities, token_scores)
        scores = calib_scores(corpus.pairs(), tag_groups, token_prefix, self.n_bins) if token_prefix else {}
        if span_labels:
            entity_groups = span_groups and self.groups_to_evaluate(span_groups, span_labels)
            scores |= calib_scores(corpus.span_pairs(span_labels), entity_groups, span_prefix, self.n_bins)
        return scores

    def groups_to_evaluate(self, groups: Groups, labels: Sequence[str]) -> Groups:
        """Return the groups for GMCE: `groups`, those of the fit, or if `n_groups` is set, this many frequency groups."""
        return groups if self.n_groups is None else regroup_by_frequency(groups, labels, self.n_groups)


def scorer_like(scorer: Any, n_groups: int | None = None) -> CalibScorer:
    """Return a CalibScorer with the settings of a pipe's scorer, or defaults; n_groups replaces its setting if not None."""
    scorer_groups = getattr(scorer, "n_groups", None)
    return CalibScorer(getattr(scorer, "n_bins", 10), scorer_groups if n_groups is None else n_groups)


def set_performance(nlp: Language, attr: str, figures: dict[str, Any]) -> None:
    """Replace the calibration figures (name -> value) of the pipe with prefix `attr` in nlp.meta["performance"]."""
    drop_performance(nlp, attr)
    nlp.meta.setdefault("performance", {}).update(figures)


def drop_performance(nlp: Language, attr: str) -> None:
    """Remove the figures of the pipe with prefix `attr` from nlp.meta["performance"], and this entry if it is then empty."""
    performance = nlp.meta.get("performance", {})
    figures = ["gmce_per_group", *(f"{name}{suffix}" for name in score_names() for suffix in ("", "_raw"))]
    keys = [f"{prefix}_{figure}" for prefix in (attr, f"{attr}_token", f"{attr}_span") for figure in figures]
    present_keys = [key for key in keys if key in performance]
    for key in present_keys:
        del performance[key]
    if present_keys and not performance:
        del nlp.meta["performance"]
