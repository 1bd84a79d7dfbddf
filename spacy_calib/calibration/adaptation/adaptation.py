"""Adaptation of calibrated scores to a new domain, fitted to a few labelled documents.

An adaptation has two maps, for top entries (the highest-scored tag of a token, or a span on the Doc) and for the others. Each
is a line in log-odds, then offsets of groups and tags.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...metrics.proper import log_losses
from ...pairs.documents import cross_fit, folds_of
from ...schema import Serializable, maybe, number, saved_field, whole
from ...types import Floats, Groups, Ints, check_lengths
from ..solvers import fit_logistic, log_odds, sigmoid, softplus
from ..steps import Predictions
from ..tag_offsets import Offsets, TagOffsets, average_offsets, look_up_offsets

LEAST_SLOPE = 0.05  # a flatter line would make all scores alike; this slope keeps their order
_SLOPE_SHARE = 0.5  # the prior standard deviation of a line's slope around 1, as a share of that of its intercept around 0
_DOCUMENT_SPREAD = 0.3  # standard deviation, in log-odds, of a shift of all tokens of one document
FOLDS = 10  # of cross-validation over documents; with fewer documents each is a fold
_FIXED = 1e9  # the prior precision that fixes a slope


@dataclass(frozen=True)
class Prior:
    """The prior distribution of an adaptation: how far calibrated scores are expected to be off in a new domain.

    spreads (tuple[float, ...]): Standard deviations, in log-odds, of a shift of all scores (the intercept of a Line). Its prior
        is an even mixture of Gaussians around 0 with these deviations; 0 is "no change".
    tag_spread (float): Standard deviation, in log-odds, of a shift of the tokens of one tag, or group, in one document: a tag
        that is wrong once is often wrong throughout.
    further_spread (float | None): Added to `spreads` if that lowers the cross-validated log loss.
    offsets (bool): Whether groups and tags also have shifts (offsets). outliers (bool): Whether a few offsets may be large.
    """

    spreads: tuple[float, ...] = (0.0, 0.2, 0.5)
    tag_spread: float = 1.0
    offsets: bool = True
    outliers: bool = True
    further_spread: float | None = None


NO_CHANGE = Prior(spreads=(0.0,), offsets=False)  # an adaptation with this prior changes nothing
TOKEN_PRIOR = Prior()
# Out of domain, scores of entities are off by more than those of tokens: a recognizer predicts names where there are none.
# Entities are fewer, and of few labels, none of which is an outlier.
SPAN_PRIOR = Prior(spreads=(0.0, 0.2, 0.5, 1.0), outliers=False)
# Pretrained calibrations are fitted on several corpora. On a corpus left out, lines through their scores have intercepts of -.3
# to .3 and slopes of .92 to 1.08: new texts are assumed to differ by as much.
PRETRAINED_TOKEN_PRIOR = Prior(spreads=(0.0, 0.2), outliers=False)
# A few dozen entities are of few documents, and one name occurs in many of them. On 15 other corpora they were off by more.
PRETRAINED_SPAN_PRIOR = Prior(spreads=(0.0, 0.2), tag_spread=3.0, outliers=False, further_spread=0.8)


@dataclass(frozen=True)
class Line(Serializable):
    """A map of log-odds: slope * log-odds + intercept, with a slope of at least LEAST_SLOPE. The default changes nothing."""

    slope: float = saved_field(number(LEAST_SLOPE), 1.0)
    intercept: float = saved_field(number(), 0.0)

    def adjust(self, margins: Floats) -> Floats:
        return self.slope * margins + self.intercept


def document_weights(scores: Floats, documents: Ints, spread: float, hits: NDArray[np.bool_] | None = None) -> Floats:
    """Return weights of n entries, smaller where one document has many, as these are alike: 1 / (1 + spread^2 * information).

    A document's information about a shift of all its entries is the sum of p (1 - p). The document also has a shift of its own,
    of variance spread^2, so it estimates the common shift with variance 1 / information + spread^2, as in a random-effects
    meta-analysis: even a long document counts at most 1 / spread^2.
    scores (Floats): Probability of each entry. documents (Ints): Its document, or a number for its document and tag.
    spread (float): Standard deviation of the documents' shifts, in log-odds.
    hits (NDArray | None): If given, the information is at least the sum of squared differences of scores and hits:
        confident scores that are wrong together count once.
    """
    _, codes = np.unique(documents, return_inverse=True)
    information = np.bincount(codes, weights=scores * (1.0 - scores))
    if hits is not None:
        information = np.maximum(information, np.bincount(codes, weights=(hits - scores) ** 2))
    return np.asarray(1.0 / (1.0 + spread**2 * information))[codes]


def fit_line(margins: Floats, hits: NDArray[np.bool_], weights: Floats, prior: Prior) -> Line:
    """Fit a line to log-odds for each spread of the prior; return the mean of the lines, weighted by evidence.

    margins, hits, weights: Log-odds to map, whether it is right, and weight of each entry, (n,).
    """
    if not len(margins):
        return Line()
    fits = [_fit_line_with_spread(margins, hits, weights, spread) for spread in prior.spreads]
    log_evidence = np.array([evidence for _, evidence in fits])
    shares = np.exp(log_evidence - log_evidence.max())
    shares /= shares.sum()
    return Line(float(shares @ [line.slope for line, _ in fits]), float(shares @ [line.intercept for line, _ in fits]))


def _fit_line_with_spread(margins: Floats, hits: NDArray[np.bool_], weights: Floats, spread: float) -> tuple[Line, float]:
    """Return (line of maximum posterior density, its log evidence by Laplace's approximation).

    spread (float): Standard deviation of the intercept's prior around 0; 0 for no change. That of the slope's prior around 1
        is _SLOPE_SHARE * spread. margins, hits, weights: Log-odds to map, whether it is right, and weight of each entry, (n,).
    """
    if not spread:
        return Line(), -_loss(margins, hits, weights)
    columns = np.column_stack([margins, np.ones(len(margins))])  # the coefficients are (slope, intercept)
    mean, precision = np.array([1.0, 0.0]), np.array([_SLOPE_SHARE**-2, 1.0]) / spread**2
    coefficients = fit_logistic(columns, hits, weights, mean, precision)
    if coefficients[0] < LEAST_SLOPE:  # fix the slope by a very precise prior, and fit the intercept again
        precision_fixed = np.array([_FIXED, precision[1]])
        coefficients = fit_logistic(columns, hits, weights, np.array([LEAST_SLOPE, 0.0]), precision_fixed)
        coefficients[0] = LEAST_SLOPE
    slope, intercept = coefficients.tolist()
    adjusted_margins = slope * margins + intercept
    # Laplace's approximation: the posterior is taken for a Gaussian around its maximum; the curvature gives its volume.
    probabilities = sigmoid(adjusted_margins)
    curvature = (columns * (weights * probabilities * (1.0 - probabilities))[:, None]).T @ columns + np.diag(precision)
    log_volume = 0.5 * (float(np.log(precision).sum()) - float(np.linalg.slogdet(curvature)[1]))
    penalty = 0.5 * float(np.sum(precision * (coefficients - mean) ** 2))
    return Line(slope, intercept), log_volume - _loss(adjusted_margins, hits, weights) - penalty


def _loss(margins: Floats, hits: NDArray[np.bool_], weights: Floats) -> float:
    """Return the sum of weight * log loss. margins, hits, weights: Log-odds, whether it is right, and weight of each entry."""
    return float((weights * (softplus(margins) - hits * margins)).sum())


@dataclass(frozen=True, eq=False)
class GoldEntries:
    """n scored entries with gold: (token, tag) pairs, or spans.

    scores (Floats): Calibrated score of each entry. hits (NDArray[bool]): Whether it is right. tags (Ints): Its label's index.
    is_top (NDArray[bool]): Whether it has the highest raw score of its token (of a span: whether it is on the Doc). A model
        that is overconfident about top entries is underconfident about the others, so the two have different maps.
    documents (Ints): The document of each entry. RAISES C002: lengths differ.
    """

    scores: Floats
    hits: NDArray[np.bool_]
    is_top: NDArray[np.bool_]
    tags: Ints
    documents: Ints

    def __post_init__(self) -> None:
        columns = {"hit": self.hits, "top flag": self.is_top, "tag": self.tags, "document": self.documents}
        check_lengths("Adapting", "score", len(self.scores), columns)

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, index: Ints) -> GoldEntries:
        return GoldEntries(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class AdaptationMap(Serializable):
    """Maps scores by a `line` in log-odds, then by `offsets` of groups and tags. entries: Number of entries in the fit."""

    line: Line = saved_field(Line.read, Line())
    offsets: TagOffsets | None = saved_field(maybe(TagOffsets.read), None)
    entries: int = saved_field(whole(), 0)

    @classmethod
    def fit(cls, entries: GoldEntries, groups: Groups, prior: Prior) -> AdaptationMap:
        """Fit a line in log-odds, then (if `prior.offsets`) offsets of groups and tags. All are shrunk towards no change."""
        if not len(entries):
            return cls()
        prior = _choose_spreads(entries, groups, prior)
        margins = log_odds(entries.scores)
        weights = document_weights(entries.scores, entries.documents, _DOCUMENT_SPREAD)
        line = fit_line(margins, entries.hits, weights, prior)
        if not prior.offsets:
            return cls(line, None, len(entries))
        adjusted_margins = line.adjust(margins)
        group_indices, n_tags = groups.find(entries.tags).astype(np.intp), len(groups.of_tag)
        group_offsets = _fit_offsets(adjusted_margins, entries, group_indices, len(groups), prior)
        adjusted_margins = adjusted_margins + look_up_offsets(group_offsets.values, group_indices)
        tags = np.where(entries.tags < n_tags, entries.tags, -1)  # -1: a tag added after the fit of the groups, without offset
        tag_offsets = _fit_offsets(adjusted_margins, entries, tags, n_tags, prior)
        return cls(line, TagOffsets(tag_offsets, group_offsets), len(entries))

    def adjust(self, scores: Floats, tags: Ints, groups: Groups) -> Floats:
        """Return the scores after the line and the offsets of their tags and groups."""
        # The line that changes nothing is left out, since log-odds would clip the scores.
        adjusted_scores = scores if self.line == Line() else sigmoid(self.line.adjust(log_odds(scores)))
        if self.offsets is None:
            return adjusted_scores
        return self.offsets.predict(adjusted_scores, tags, groups.find(tags).astype(np.intp))


def _choose_spreads(entries: GoldEntries, groups: Groups, prior: Prior) -> Prior:
    """Put the prior's `further_spread` into `spreads` if this lowers the cross-validated loss of the entries, else drop it."""
    narrow_prior = replace(prior, further_spread=None)
    if prior.further_spread is None or len(np.unique(entries.documents)) < 2:
        return narrow_prior
    folds = folds_of(entries.documents, FOLDS)

    def cross_fitted_loss(candidate: Prior) -> float:
        def score(train: Ints, test: Ints) -> Floats:
            fold_map = AdaptationMap.fit(entries.take(train), groups, candidate)
            return fold_map.adjust(entries.scores[test], entries.tags[test], groups)

        return float(log_losses(cross_fit(folds, score), entries.hits).sum())

    wide_prior = replace(narrow_prior, spreads=(*prior.spreads, prior.further_spread))
    return min((narrow_prior, wide_prior), key=cross_fitted_loss)


def _fit_offsets(margins: Floats, entries: GoldEntries, units: Ints, n_units: int, prior: Prior) -> Offsets:
    """Fit offsets of n_units groups (or tags) to log-odds (`margins`) of entries. units: Group of each entry, -1 for none."""
    _, documents = np.unique(entries.documents, return_inverse=True)
    # (document, unit) as one number; unit -1 (none) counts as 0.
    probabilities, clusters = sigmoid(margins), documents * (n_units + 1) + units + 1
    weights = document_weights(probabilities, clusters, prior.tag_spread)
    outlier_weights = document_weights(probabilities, clusters, prior.tag_spread, entries.hits) if prior.outliers else None
    return average_offsets(margins, entries.hits, units, n_units, weights, outlier_weights)


@dataclass(frozen=True, eq=False)
class Adaptation(Serializable):
    """A step from scores calibrated in-domain to scores calibrated in the new domain, monotone for each tag.

    groups (Groups): Groups of the tags. leading (AdaptationMap): Map of top entries. other (AdaptationMap): Map of the others.
    """

    groups: Groups = saved_field(Groups.read)
    leading: AdaptationMap = saved_field(AdaptationMap.read)
    other: AdaptationMap = saved_field(AdaptationMap.read)

    @classmethod
    def fit(cls, entries: GoldEntries, groups: Groups, prior: Prior = TOKEN_PRIOR) -> Adaptation:
        """Fit one map to the top entries and another to the others. groups: Of the tags. prior: How far scores may be off."""
        subsets = (entries.take(np.flatnonzero(entries.is_top == is_top)) for is_top in (True, False))
        return cls(groups, *(AdaptationMap.fit(subset, groups, prior) for subset in subsets))

    def apply(self, predictions: Predictions) -> Predictions:
        scores = self.adjust(predictions.scores, predictions.is_top, predictions.tags)
        return predictions.replace_unchecked(scores=scores)

    def adjust(self, scores: Floats, is_top: NDArray[np.bool_], tags: Ints) -> Floats:
        """Return the adapted probabilities of n entries.

        scores (Floats): Calibrated score of each entry. is_top (NDArray[bool]): Whether it has the highest raw score of its
            token, or is a span on the Doc. tags (Ints): Column of its label.
        """
        adjusted_scores = np.empty(len(scores))
        for adaptation_map, mask in ((self.leading, is_top), (self.other, ~is_top)):
            adjusted_scores[mask] = adaptation_map.adjust(scores[mask], tags[mask], self.groups)
        return adjusted_scores

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        sizes = (len(fields["groups"].of_tag), len(fields["groups"]))
        offsets_of_maps = (fields["leading"].offsets, fields["other"].offsets)
        is_consistent = all(offsets is None or offsets.sizes == sizes for offsets in offsets_of_maps)
        return "" if is_consistent else "'offsets' are fitted to these tags and groups"
