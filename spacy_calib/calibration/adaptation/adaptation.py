"""What a few labelled documents of a new kind say of calibrated scores there: a line in log-odds for leading entries,
one for the others, and offsets of groups and tags; for tags of tokens and labels of spans alike.
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
from ..recalibrators.logistic import fit_logistic, log_odds, sigmoid, softplus
from ..steps import Predictions
from ..tag_offsets import Offsets, TagOffsets, average_offsets, learned_offsets, offsets_of

# A flatter line would make all scores alike; this slope keeps their order.
LEAST_SLOPE = 0.05
# With fewer documents each is left out by itself.
_FOLDS = 10
# The prior precision of a slope that is held fixed.
_HELD = 1e9


@dataclass(frozen=True)
class Prior:
    """What is believed of new texts before any is labelled; scripts/study_adapt.py compares beliefs about tokens.

    spreads (tuple[float, ...]): Standard deviations of the intercept around 0, in log-odds: an even mixture of
        Gaussians, which the labelled documents weigh; 0 is "no change". slope (float): Standard deviation of the slope
        around 1, as a share of the spread. between (float): That of what all tokens of one document share, in log-odds.
    within (float): That of what tokens of one tag, or group, share in one document: a tag wrong once is often wrong
        throughout. offsets (bool): Whether groups and tags may differ. far (bool): Whether one may be far off.
    wide (float | None): A further spread, which joins the mixture where that has a lower log loss on documents held out.
    """

    spreads: tuple[float, ...] = (0.0, 0.2, 0.5)
    slope: float = 0.5
    between: float = 0.3
    within: float = 1.0
    offsets: bool = True
    far: bool = True
    wide: float | None = None


# Nothing changes: what is adapted by it stays as it is.
NO_CHANGE = Prior(spreads=(0.0,), offsets=False)
OF_TOKENS = Prior()
# Whole entities are fewer, and elsewhere their scores are off by more: a recognizer finds names where there are none.
# They have few labels, none of which stands out by itself.
OF_SPANS = Prior(spreads=(0.0, 0.2, 0.5, 1.0), far=False)
# Pretrained calibrations are of several sources. On one that was left out lines through their scores have intercepts of
# -.3 to .3 and slopes of .92 to 1.08: new texts are believed to differ by as much.
OF_PRETRAINED = Prior(spreads=(0.0, 0.2), far=False)
# A few dozen entities are of few documents, and one name stands in many of them. On 15 further sources entities were off by more.
OF_PRETRAINED_SPANS = Prior(spreads=(0.0, 0.2), within=3.0, far=False, wide=0.8)


@dataclass(frozen=True)
class Line(Serializable):
    """log-odds -> slope * log-odds + intercept; slope above 0."""

    slope: float = saved_field(number(LEAST_SLOPE), 1.0)
    intercept: float = saved_field(number(), 0.0)

    def move(self, margins: Floats) -> Floats:
        return self.slope * margins + self.intercept


def document_weights(scores: Floats, documents: Ints, between: float, hits: NDArray[np.bool_] | None = None) -> Floats:
    """How much each of n entries counts, where those of one document are alike: 1 / (1 + between^2 * its information).

    A document's information on a shift of all its entries is the sum of p (1 - p). It also has a shift of its own, of
    variance between^2, so it tells of the common shift with variance 1 / information + between^2, as in a
    random-effects meta-analysis: even a long document counts at most 1 / between^2.

    scores (Floats), documents (Ints): Of each entry; or a number for each document and tag.
    hits (NDArray | None): Of each; where more miss than the scores say, the information is the sum of squared
        differences: sure scores that are wrong together say it once.
    """
    _, codes = np.unique(documents, return_inverse=True)
    information = np.bincount(codes, weights=scores * (1.0 - scores))
    if hits is not None:
        information = np.maximum(information, np.bincount(codes, weights=(hits - scores) ** 2))
    return np.asarray(1.0 / (1.0 + between**2 * information))[codes]


def fit_line(margins: Floats, hits: NDArray[np.bool_], weights: Floats, prior: Prior) -> Line:
    """Mean of the lines by the parts of the prior, weighted by evidence. margins (Floats): Log-odds. hits, weights: Of each."""
    if not len(margins):
        return Line()
    found = [_fit(margins, hits, weights, spread, prior.slope) for spread in prior.spreads]
    evidence = np.array([one for _, one in found])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    return Line(*(float(share @ [getattr(line, name) for line, _ in found]) for name in ("slope", "intercept")))


def _fit(margins: Floats, hits: NDArray[np.bool_], weights: Floats, spread: float, slope: float) -> tuple[Line, float]:
    """(the line of highest posterior density, its log evidence by Laplace's approximation)."""
    columns = np.column_stack([margins, np.ones(len(margins))])
    mean = np.array([1.0, 0.0])
    if not spread:
        return Line(), -_loss(margins, hits, weights)
    precision = np.array([slope**-2, 1.0]) / spread**2
    best = fit_logistic(columns, hits, weights, mean, precision)
    if best[0] < LEAST_SLOPE:
        held = np.array([_HELD, precision[1]])
        best = fit_logistic(columns, hits, weights, np.array([LEAST_SLOPE, 0.0]), held)
        best[0] = LEAST_SLOPE
    moved = best[0] * margins + best[1]
    chance = sigmoid(moved)
    curvature = (columns * (weights * chance * (1.0 - chance))[:, None]).T @ columns + np.diag(precision)
    penalty = 0.5 * float(np.sum(precision * (best - mean) ** 2))
    spare = 0.5 * (float(np.log(precision).sum()) - float(np.linalg.slogdet(curvature)[1]))
    return Line(float(best[0]), float(best[1])), spare - _loss(moved, hits, weights) - penalty


def _loss(margins: Floats, hits: NDArray[np.bool_], weights: Floats) -> float:
    """Summed log loss."""
    return float((weights * (softplus(margins) - hits * margins)).sum())


@dataclass(frozen=True, eq=False)
class GoldEntries:
    """n scored entries with gold: (token, tag) pairs, or spans.

    scores (Floats), hits (NDArray[bool]), tags (Ints): Calibrated score, whether it is right, and column of its label.
    leads (NDArray[bool]): Whether it is its token's likeliest by raw scores (a span: whether it is on the Doc). Too
        sure of what leads is too unsure of the rest, so the two have different maps.
    documents (Ints): The document of each.
    RAISES C002: lengths differ.
    """

    scores: Floats
    hits: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    tags: Ints
    documents: Ints

    def __post_init__(self) -> None:
        lengths_by_name = {"hit": self.hits, "place": self.leads, "tag": self.tags, "document": self.documents}
        check_lengths("Adapting", "score", len(self.scores), lengths_by_name)

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, index: Ints) -> GoldEntries:
        """Some of the entries."""
        return GoldEntries(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Side(Serializable):
    """What was learned of leading entries, or of others, from `entries` many: a line, then offsets of groups and tags."""

    line: Line = saved_field(Line.read, Line())
    offsets: TagOffsets | None = saved_field(maybe(learned_offsets), None)
    entries: int = saved_field(whole(), 0)

    @classmethod
    def fit(cls, entries: GoldEntries, groups: Groups, prior: Prior) -> Side:
        if not len(entries):
            return cls()
        prior = _choose_prior(entries, groups, prior)
        margins = log_odds(entries.scores)
        weights = document_weights(entries.scores, entries.documents, prior.between)
        line = fit_line(margins, entries.hits, weights, prior)
        if not prior.offsets:
            return cls(line, None, len(entries))
        moved = line.move(margins)
        of_group, n_tags = groups.find(entries.tags).astype(np.intp), len(groups.of_tag)
        of_groups = _offsets(moved, entries, of_group, len(groups), prior)
        moved = moved + offsets_of(of_groups.values, of_group)
        known = np.where(entries.tags < n_tags, entries.tags, -1)
        return cls(line, TagOffsets.of(of_groups, _offsets(moved, entries, known, n_tags, prior)), len(entries))

    def move(self, scores: Floats, tags: Ints, groups: Groups) -> Floats:
        if self.line == Line():
            moved = scores
        else:
            moved = sigmoid(self.line.move(log_odds(scores)))
        return moved if self.offsets is None else self.offsets.predict(moved, tags, groups.find(tags).astype(np.intp))

    def state(self) -> dict[str, Any]:
        """Plain data; of the offsets what they learned, without name and settings."""
        return {**super().state(), "offsets": None if self.offsets is None else self.offsets.state()["learned"]}


def _choose_prior(entries: GoldEntries, groups: Groups, prior: Prior) -> Prior:
    """Return the prior with its further spread if that has the lower log loss on documents held out, else without."""
    narrow = replace(prior, wide=None)
    if prior.wide is None or len(np.unique(entries.documents)) < 2:
        return narrow
    folds = folds_of(entries.documents, _FOLDS)

    def held_out_loss(candidate: Prior) -> float:
        def score(train: Ints, test: Ints) -> Floats:
            return Side.fit(entries.take(train), groups, candidate).move(entries.scores[test], entries.tags[test], groups)

        return float(log_losses(cross_fit(folds, score), entries.hits).sum())

    return min((narrow, replace(narrow, spreads=(*prior.spreads, prior.wide))), key=held_out_loss)


def _offsets(margins: Floats, entries: GoldEntries, units: Ints, n_units: int, prior: Prior) -> Offsets:
    """Offsets of groups or tags; entries of one in one document are alike. margins (Floats): Log-odds so far."""
    _, documents = np.unique(entries.documents, return_inverse=True)
    chances, places = sigmoid(margins), documents * (n_units + 1) + units + 1
    weights = document_weights(chances, places, prior.within)
    wary = document_weights(chances, places, prior.within, entries.hits) if prior.far else None
    return average_offsets(margins, entries.hits, units, n_units, weights, wary)


@dataclass(frozen=True, eq=False)
class Adaptation(Serializable):
    """A monotone step from scores calibrated in-domain to scores calibrated on new texts. groups (Groups): Of the tags."""

    groups: Groups = saved_field(Groups.read)
    leading: Side = saved_field(Side.read)
    other: Side = saved_field(Side.read)

    @classmethod
    def fit(cls, entries: GoldEntries, groups: Groups, prior: Prior = OF_TOKENS) -> Adaptation:
        """Learn from the entries of a few labelled documents."""
        sides = (entries.take(np.flatnonzero(entries.leads == leads)) for leads in (True, False))
        return cls(groups, *(Side.fit(side, groups, prior) for side in sides))

    def apply(self, given: Predictions) -> Predictions:
        """Move leading entries by their line and offsets, the others by theirs."""
        return given.having(scores=self.move(given.scores, given.leads, given.tags))

    def move(self, scores: Floats, leads: NDArray[np.bool_], tags: Ints) -> Floats:
        """The adapted probabilities of n entries. scores, leads, tags: As of GoldEntries."""
        moved = np.empty(len(scores))
        for side, index in ((self.leading, np.flatnonzero(leads)), (self.other, np.flatnonzero(~leads))):
            moved[index] = side.move(scores[index], tags[index], self.groups)
        return moved

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        sizes = (len(held["groups"].of_tag), len(held["groups"]))
        fitted = all(side.offsets is None or side.offsets.sizes() == sizes for side in (held["leading"], held["other"]))
        return "" if fitted else "'offsets' are fitted to these tags and groups"
