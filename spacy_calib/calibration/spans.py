"""The calibration of spans: the probability that a whole span is right, by logistic regression on features of the span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..schema import Form, Serializable, anything, floats, lengths, list_of, maybe, number, saved_field, text, whole
from ..types import Floats, Groups, Ints, Spans, as_hits
from .adaptation.adaptation import Adaptation
from .cutoffs import Cutoffs
from .solvers import combine, fit_logistic, log_odds, sigmoid
from .steps import KEPT, CalibrationStep, Predictions, apply_steps

NAMES = ("minimum", "product", "1 - product", "mean", "own", "1 - own", "length")
# Probabilities are clipped to [SMALLEST, 1 - SMALLEST] before their logarithm, so that extreme ones do not dominate the fit.
SMALLEST = 1e-4


def product_of(spans: Spans) -> Floats:
    """Return the product of the token probabilities of each span, shape (n_spans,)."""
    return np.multiply.reduceat(spans.token_scores, firsts_of(spans))


def span_features(spans: Spans) -> Floats:
    """Return the features of each span, shape (n_spans, 7), with columns as in NAMES.

    The features are logits of the minimum and the mean token probability, log p and log(1 - p) of the product of the token
    probabilities and of the source's own probability of the span (Kull et al. 2017), and log of the number of tokens.
    """
    lengths = spans.ends - spans.starts
    mean = np.add.reduceat(spans.token_scores, firsts_of(spans)) / lengths
    minimum = np.minimum.reduceat(spans.token_scores, firsts_of(spans))
    columns = [logit(minimum), *_logs(product_of(spans)), logit(mean), *_logs(spans.scores), np.log(lengths)]
    return np.stack(columns, axis=1)


def design(spans: Spans, groups: Ints, n_groups: int) -> Floats:
    """Return the inputs of the regression on each span, (n_spans, len(NAMES) + 2 * n_groups + k), columns as follows.

    First are the features (NAMES); then, for each group, whether the span is in it; then the same columns of groups times the
    logit of the product of the span's token scores; last the logits of its k `further_scores`. groups (Ints): Group of each
    span, -1: none.
    """
    is_member = groups[:, None] == np.arange(n_groups)
    group_logits = is_member * logit(product_of(spans))[:, None]
    return np.concatenate([span_features(spans), is_member, group_logits, logit(spans.further_scores)], axis=1)


def logit(probabilities: Floats) -> Floats:
    """Return the log-odds of probabilities clipped to [SMALLEST, 1 - SMALLEST]."""
    return log_odds(probabilities, SMALLEST)


def _logs(probabilities: Floats) -> tuple[Floats, Floats]:
    """Return (log p, log(1 - p)) of probabilities p clipped to [SMALLEST, 1 - SMALLEST]."""
    probabilities_clipped = np.clip(probabilities, SMALLEST, 1 - SMALLEST)
    return np.log(probabilities_clipped), np.log1p(-probabilities_clipped)


def firsts_of(spans: Spans) -> Ints:
    """Return the index of each span's first token in `token_scores`, shape (n_spans,)."""
    lengths = spans.ends - spans.starts
    return np.cumsum(lengths) - lengths


# With fewer spans the coefficients (eight at least) cannot be estimated, and raw scores stay as they are.
MIN_SPANS = 20
_ROUNDING = 1e-12  # a feature whose standard deviation is below this is constant: the deviation is rounding noise


@dataclass(eq=False)
class SpanRecalibrator(Serializable):
    """Maps spans to probabilities: logistic regression on features of a span, with intercept and slope per group of labels.

    An L2 penalty (half the squared norm of the coefficients of standardised features) shrinks the maps of small groups towards
    the common map. fallback_ (str): Why raw scores are returned unchanged, or "".
    groups (Groups): Groups of the span labels. n_spans_, n_hits_ (int): Number of spans of the fit, and of right ones.
    center_, scale_, weights_ (Floats), intercept_ (float): Mean, deviation and weight of each feature, and the intercept.
    n_further_ (int): Number of `further_scores` of each span that were features in the fit. If it is 0, `predict` ignores them.
    """

    groups: Groups = saved_field(Groups.read)
    n_spans_: int = saved_field(whole(), 0, key="n_spans")
    n_hits_: int = saved_field(whole(), 0, key="n_hits")
    fallback_: str = saved_field(text, "", key="fallback")
    center_: Floats = saved_field(floats(), lambda: np.zeros(0), key="center")
    scale_: Floats = saved_field(floats(1e-12), lambda: np.zeros(0), key="scale")
    weights_: Floats = saved_field(floats(), lambda: np.zeros(0), key="weights")
    intercept_: float = saved_field(number(), 0.0, key="intercept")
    n_further_: int = saved_field(whole(), 0, key="n_beside")

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        if fields["n_hits"] > fields["n_spans"]:
            return "there are more hits than spans"
        is_learned = fields["n_spans"] > 0 and not fields["fallback"]
        n_inputs = len(NAMES) + 2 * len(fields["groups"]) + fields["n_beside"] if is_learned else 0  # columns of `design`
        return lengths(dict.fromkeys(("center", "scale", "weights"), n_inputs), fields)

    def fit(self, spans: Spans, hits: ArrayLike) -> SpanRecalibrator:
        """Fit to n spans; if these do not suffice, set only their numbers and `fallback_` (the reason).

        hits (ArrayLike): n booleans, or zeros and ones. RETURNS (SpanRecalibrator): This one. RAISES C001: hits are other
            values. C002: lengths differ.
        """
        right = as_hits(hits, len(spans))
        self.n_spans_, self.n_hits_, self.n_further_ = len(spans), int(right.sum()), spans.further_scores.shape[1]
        self.fallback_ = _why_unfittable(self.n_spans_, self.n_hits_)
        if self.fallback_:
            return self
        features = self._design(spans)
        self.center_ = features.mean(axis=0)
        deviation = features.std(axis=0)
        self.scale_ = np.where(deviation > _ROUNDING, deviation, 1.0)
        columns = np.column_stack([(features - self.center_) / self.scale_, np.ones(len(features))])
        n = features.shape[1]
        penalty = np.append(np.ones(n), 0.0)  # none on the intercept
        coefficients = fit_logistic(columns, right, None, np.zeros(n + 1), penalty)
        self.weights_, self.intercept_ = coefficients[:n], float(coefficients[n])
        return self

    def predict(self, spans: Spans, raw: Floats) -> Floats:
        """Return the probability that each span is right. raw (Floats): Raw scores, returned (copied) if there is no map."""
        if self.fallback_ or not self.n_spans_:
            return raw.copy()
        columns = (self._design(spans) - self.center_) / self.scale_
        return sigmoid(combine(columns, self.weights_) + self.intercept_)

    def _design(self, spans: Spans) -> Floats:
        """Return the inputs of the regression for each span, shape (n_spans, n_features)."""
        inputs = spans if self.n_further_ else spans.without_further_scores()
        return design(inputs, self.groups.find(spans.labels).astype(np.intp), len(self.groups))


def _why_unfittable(n: int, n_hits: int) -> str:
    """Return why a map cannot be fitted to n spans, of which n_hits are right; "" if it can."""
    if n < MIN_SPANS:
        return f"{n} spans, {MIN_SPANS} needed"
    if n_hits in (0, n):
        return "no span is right" if n_hits == 0 else "every span is right"
    return ""


# The form of a saved SpanCalibration; the class of its context, in `context.tokens`, checks the context.
SPANS: dict[str, Form] = {
    "span_maps": maybe(list_of(SpanRecalibrator.read, 2, 2)), "cutoffs": maybe(Cutoffs.read), "span_context": maybe(anything),
    "span_adaptations": maybe(list_of(Adaptation.read)),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SpanMaps:
    """The step that maps raw scores of spans. chosen, candidates: Map of spans on the Doc, and of others; None for no map."""

    chosen: SpanRecalibrator | None
    candidates: SpanRecalibrator | None

    def apply(self, predictions: Predictions) -> Predictions:
        """Replace the scores of spans on the Doc (KEPT) and of the other candidates by the values of their maps."""
        assert predictions.spans is not None
        scores = predictions.scores.copy()
        for mask, span_map in ((predictions.levels == KEPT, self.chosen), (predictions.levels != KEPT, self.candidates)):
            if span_map is not None:
                index = np.flatnonzero(mask)
                scores[index] = span_map.predict(predictions.spans.take(index), predictions.scores[index])
        return predictions.replace_unchecked(scores=scores)


class SpanContextStep(CalibrationStep, Protocol):
    """A fitted step that adjusts scores of spans on the Doc by their context, such as a `SpanContextModel`."""

    def state(self) -> dict[str, Any]: ...


@dataclass(eq=False)
class SpanCalibration:
    """The steps that turn a source's probability of a span into `Span._.calib_score`, and cut-offs of these scores.

    chosen (SpanRecalibrator | None): Fitted map of the spans on the Doc; None leaves raw scores unchanged (not fitted, or
        a source without spans). candidates (SpanRecalibrator | None): Fitted map of the source's other spans.
    context (SpanContextStep | None): Fitted; adjusts scores of spans on the Doc by the tokens around them.
    cutoffs (Cutoffs | None): The scores from which spans are accepted. A new fit has none; an adaptation keeps them.
    adaptations (tuple[Adaptation, ...]): Steps after the map, in order, which calibrate scores out of domain.
    """

    chosen: SpanRecalibrator | None = None
    candidates: SpanRecalibrator | None = None
    _: KW_ONLY
    context: SpanContextStep | None = None
    cutoffs: Cutoffs | None = None
    adaptations: tuple[Adaptation, ...] = ()

    @property
    def groups(self) -> Groups | None:
        return None if self.chosen is None else self.chosen.groups

    @property
    def steps(self) -> tuple[CalibrationStep, ...]:
        """All steps in the order in which they are applied."""
        maps = SpanMaps(self.chosen, self.candidates)
        return (maps, *self.adaptations) if self.context is None else (maps, self.context, *self.adaptations)

    def calibrate(self, spans: Spans, raw: Floats, labels: Sequence[str], view: Any = None) -> tuple[Floats, NDArray[np.int8]]:
        """Return (calibrated probability of each span; 1 if it reaches its cut-off, 0 if not, -1 if there are no cut-offs).

        raw (Floats): Raw score of each span. labels (Sequence[str]): Names of labels, by column.
        view (TokenView | None): Scores and features of the tokens, which a context reads.
        """
        scores = apply_steps(self.steps, Predictions.of_spans(spans, raw, view)).scores
        if self.cutoffs is None or self.groups is None:
            return scores, np.full(len(spans), -1, dtype=np.int8)
        return scores, self.cutoffs.accepts(scores, spans.labels, labels, self.groups).astype(np.int8)

    def state(self) -> dict[str, Any]:
        """Return all parts (both maps, cut-offs, context, adaptations) as plain data and arrays, None for a missing part."""
        maps = None if self.chosen is None or self.candidates is None else [self.chosen.state(), self.candidates.state()]
        context, cutoffs = (None if part is None else part.state() for part in (self.context, self.cutoffs))
        adaptations = [part.state() for part in self.adaptations] or None
        return {"span_maps": maps, "cutoffs": cutoffs, "span_context": context, "span_adaptations": adaptations}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SpanCalibration:
        """Rebuild a calibration from a state in which maps, cut-offs, context and adaptations are objects, not plain data."""
        chosen, candidates = state["span_maps"] or (None, None)
        adaptations = tuple(state["span_adaptations"] or ())
        return cls(chosen, candidates, context=state["span_context"], cutoffs=state["cutoffs"], adaptations=adaptations)
