"""The event of a pair of mentions: whether a mention and its likeliest antecedent name the same thing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...calibration.spans import logit
from ...types import Ints
from ..events.forecasts import UnitEvidence
from ..events.questions import NO, UNKNOWN, YES, Event
from .inference.antecedents import NEW
from .inference.calibration import KINDS, expected_sizes
from .mentions import aligned_gold
from .view import DocCoref, coref_view

# The features of a pair, column by column.
PAIR_FEATURES = (
    "raw probability", "calibrated probability", "mentions between", "sentences between", "size of the later's cluster", "size of the earlier's cluster",
    *(f"later is {kind}" for kind in KINDS), *(f"earlier is {kind}" for kind in KINDS),
)  # fmt: skip


class PairEvent(Event):
    """Whether a mention and its top antecedent name the same entity. prefix, mentions (str): Settings of `calib_coref`."""

    registered = "spacy-calib.Pair.v1"
    unit_words = ("pair", "pairs")
    features = PAIR_FEATURES
    rivals = ("raw probability", "calibrated probability")

    def __init__(self, prefix: str = "coref_clusters", mentions: str = "coref_mentions"):
        self.prefix, self.mentions = prefix, mentions

    @property
    def condition(self) -> str:
        return "a mention and its antecedent name the same"

    def units(self, doc: Doc) -> Sequence[Span]:
        view = coref_view(doc)
        return () if view is None else [view.mentions[mention] for mention in links_of(view)[0].tolist()]

    def evidence(self, doc: Doc, units: Sequence[Span]) -> UnitEvidence:
        """Return the features of each pair of mentions: scores, distances, sizes of clusters and kinds of mentions."""
        view = coref_view(doc)
        assert view is not None
        later, earlier = links_of(view)
        pairs = list(zip(later.tolist(), earlier.tolist(), strict=True))
        raw, calibrated = np.array([view.raw(*pair) for pair in pairs]), np.array([view.probability(*pair) for pair in pairs])
        sizes, mentions = np.log(expected_sizes(view.pairs)), view.mention_arrays
        kinds = [(mentions.kinds[ends] == kind).astype(np.float64) for ends in (later, earlier) for kind in range(len(KINDS))]
        distances = [
            np.log1p(later - earlier),
            np.log1p(np.maximum(mentions.sentences[later] - mentions.sentences[earlier], 0)),
        ]
        features = [logit(raw), logit(calibrated), *distances, sizes[later], sizes[earlier], *kinds]
        return UnitEvidence(np.column_stack(features), raw, calibrated)

    def judge(self, example: Example, units: Sequence[Span], right: Ints) -> Ints:
        """Return (pairs,): YES if both mentions are in one gold cluster, else NO; UNKNOWN without gold."""
        view, gold = coref_view(example.predicted), aligned_gold(example, self.prefix, self.mentions)
        if view is None or not gold:
            return np.full(len(units), UNKNOWN)
        later, earlier = links_of(view)
        clusters = [gold.get((span.start, span.end), -1 - number) for number, span in enumerate(view.mentions)]
        is_same = [clusters[a] == clusters[b] for a, b in zip(later.tolist(), earlier.tolist(), strict=True)]
        return np.where(is_same, YES, NO).astype(np.intp)


def links_of(view: DocCoref) -> tuple[Ints, Ints]:
    """Return (the mentions whose top option is an antecedent, that antecedent)."""
    best = view.antecedents.best()
    later = np.flatnonzero(best != NEW)
    return later, best[later]
