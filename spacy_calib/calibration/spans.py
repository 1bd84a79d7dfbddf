"""The probability that a whole span is right: one binary event, recalibrated on features of the span. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..schema import Form, Optional, anything, floats, lengths, listed, maybe, number, optional, record, text, whole
from ..types import GROUPS, Floats, Groups, Spans, as_hits
from .adaptation.adaptation import ADAPTATIONS, Adaptation, move_all
from .cutoffs import CUTOFFS, Cutoffs
from .recalibrators.logistic import combine, fit_logistic, sigmoid
from .span_features import NAMES, design

# With fewer spans the coefficients (eight at least) cannot be estimated, and raw scores are passed through.
MIN_SPANS = 20
# A feature whose standard deviation is below this is constant: what is left is floating-point noise.
_ROUNDING = 1e-12


def _state_agrees(held: dict[str, Any]) -> str:
    if held["n_hits"] > held["n_spans"]:
        return "there are more hits than spans"
    learned = held["n_spans"] > 0 and not held["fallback"]
    size = len(NAMES) + 2 * len(held["groups"]["names"]) if learned else 0
    return lengths({"center": size, "scale": size, "weights": size}, held)


# The saved form of SpanRecalibrator.
SPAN_MAP = record(
    {
        "groups": GROUPS,
        "n_spans": whole(),
        "n_hits": whole(),
        "fallback": text,
        "center": floats(),
        "scale": floats(1e-12),
        "weights": floats(),
        "intercept": number(),
    },
    _state_agrees,
)


class SpanRecalibrator:
    """Logistic regression on the features of a span, with an intercept and a slope for each group of its labels.

    The ridge penalty (1/2 the squared norm of the coefficients of standardised features, against the summed log loss) pulls small groups
    towards what all groups share.

    groups (Groups): Of the span labels.
    n_spans_, n_hits_ (int): What it was fitted on. fallback_ (str): Why it passes raw scores through; "" if it does not.
    """

    def __init__(self, groups: Groups):
        self.groups = groups
        self.n_spans_ = self.n_hits_ = 0
        self.fallback_ = ""
        self.center_ = self.scale_ = self.weights_ = np.zeros(0)
        self.intercept_ = 0.0

    def fit(self, spans: Spans, hits: ArrayLike) -> SpanRecalibrator:
        """Learn from n spans.

        hits (ArrayLike): n booleans, or zeros and ones: whether the event holds.
        RAISES C001, C002: the hits.
        """
        right = as_hits(hits, len(spans))
        self.n_spans_, self.n_hits_ = len(spans), int(right.sum())
        self.fallback_ = _why_not(self.n_spans_, self.n_hits_)
        if not self.fallback_:
            self._fit(self._design(spans), right)
        return self

    def _fit(self, features: Floats, right: Any) -> None:
        self.center_ = features.mean(axis=0)
        deviation = features.std(axis=0)
        self.scale_ = np.where(deviation > _ROUNDING, deviation, 1.0)
        columns = np.column_stack([(features - self.center_) / self.scale_, np.ones(len(features))])
        n = features.shape[1]
        penalty = np.append(np.ones(n), 0.0)  # none on the intercept
        coefficients = fit_logistic(columns, right, None, np.zeros(n + 1), penalty)
        self.weights_, self.intercept_ = coefficients[:n], float(coefficients[n])

    def predict(self, spans: Spans, raw: Floats) -> Floats:
        """The probability that each span is right; each depends only on the span itself.

        raw (Floats): What is passed through where it is not fitted.
        """
        if self.fallback_ or not self.n_spans_:
            return raw.copy()
        columns = (self._design(spans) - self.center_) / self.scale_
        return sigmoid(combine(columns, self.weights_) + self.intercept_)

    def _design(self, spans: Spans) -> Floats:
        return design(spans, self.groups.of(spans.labels).astype(np.intp), len(self.groups))

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        return {
            "groups": self.groups.state(),
            "n_spans": self.n_spans_,
            "n_hits": self.n_hits_,
            "fallback": self.fallback_,
            "center": self.center_,
            "scale": self.scale_,
            "weights": self.weights_,
            "intercept": self.intercept_,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SpanRecalibrator:
        """Rebuild from a state that SPAN_MAP has read."""
        made = cls(Groups.from_state(state["groups"]))
        made.n_spans_, made.n_hits_, made.fallback_ = state["n_spans"], state["n_hits"], state["fallback"]
        made.center_, made.scale_, made.weights_ = state["center"], state["scale"], state["weights"]
        made.intercept_ = float(state["intercept"])
        return made


def _why_not(n: int, n_hits: int) -> str:
    """Why n spans with so many hits cannot be fitted; "" if they can."""
    if n < MIN_SPANS:
        return f"{n} spans, {MIN_SPANS} needed"
    if n_hits in (0, n):
        return "no span is right" if n_hits == 0 else "every span is right"
    return ""


# The saved form of SpanCalibration.
SPANS: dict[str, Form | Optional] = {
    "span_maps": optional(maybe(listed(SPAN_MAP, 2, 2))),
    "cutoffs": optional(maybe(CUTOFFS)),
    "span_context": optional(maybe(anything)),
    "span_adaptations": optional(maybe(ADAPTATIONS)),
}


class SpanContext(Protocol):
    """What a context learned of spans; its class stands in a later room, and reads its own state."""

    def calibrate(self, view: Any, spans: Spans, scores: Floats) -> Floats:
        """The scores of spans on the Docs. view: Their tokens, see `calibration.tokens.Context`. scores (Floats): As the map gives them."""

    def state(self) -> dict[str, Any]: ...


class SpanCalibration:
    """The steps between a source's probability of a span and `Span._.calib_score`.

    chosen (SpanRecalibrator | None): Fitted; the map of the spans on the Doc. None passes raw scores through: before the fit, and for
        a source of token labels alone. candidates (SpanRecalibrator | None): Fitted; the map of the spans that stand beside them.
    context (SpanContext | None): Fitted; moves what the map gives spans on the Doc by what surrounds them.
    cutoffs (Cutoffs | None): The scores from which spans are accepted. They belong to these maps: a new fit has none.
    adaptations (tuple[Adaptation, ...]): As in TokenCalibration; the spans on the Doc lead.
    """

    def __init__(
        self,
        chosen: SpanRecalibrator | None = None,
        candidates: SpanRecalibrator | None = None,
        *,
        context: SpanContext | None = None,
        cutoffs: Cutoffs | None = None,
        adaptations: tuple[Adaptation, ...] = (),
    ):
        self.chosen = chosen
        self.candidates = candidates
        self.context = context
        self.cutoffs = cutoffs
        self.adaptations = adaptations

    @property
    def groups(self) -> Groups | None:
        """The groups of the span labels; None where it is not fitted."""
        return None if self.chosen is None else self.chosen.groups

    def calibrate(self, spans: Spans, raw: Floats, labels: Sequence[str], view: Any = None) -> tuple[Floats, NDArray[np.int8]]:
        """(calibrated probability of each span, 1 or 0 whether it reaches its cut-off; -1 without cut-offs).

        raw (Floats): Of each span. labels (Sequence[str]): Of the columns `spans.labels`. view: The tokens that they stand in, as a context
            sees them.
        """
        calibrated = raw.copy()
        for own, fitted in ((spans.chosen, self.chosen), (~spans.chosen, self.candidates)):
            if fitted is not None:
                index = np.flatnonzero(own)
                calibrated[index] = fitted.predict(spans.take(index), raw[index])
        if self.context is not None:
            index = np.flatnonzero(spans.chosen)
            calibrated[index] = self.context.calibrate(view, spans.take(index), calibrated[index])
        calibrated = move_all(self.adaptations, calibrated, spans.chosen, spans.labels)
        if self.cutoffs is None or self.groups is None:
            return calibrated, np.full(len(spans), -1, dtype=np.int8)
        return calibrated, self.cutoffs.accepts(calibrated, spans.labels, labels, self.groups).astype(np.int8)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays: what `from_state` needs."""
        maps = None if self.chosen is None or self.candidates is None else [self.chosen.state(), self.candidates.state()]
        cutoffs = None if self.cutoffs is None else self.cutoffs.to_dict()
        context = None if self.context is None else self.context.state()
        adaptations = [one.state() for one in self.adaptations] or None
        return {"span_maps": maps, "cutoffs": cutoffs, "span_context": context, "span_adaptations": adaptations}

    @classmethod
    def from_state(cls, state: dict[str, Any], load_context: Callable[[Any], SpanContext] | None = None) -> SpanCalibration:
        """Rebuild from a state that SPANS has read.

        load_context (Callable | None): Rebuilds a context. RAISES C001: a cut-off out of range. Misfit: the context is not of its form.
        """
        maps, cutoffs, context = state["span_maps"] or (), state["cutoffs"], state["span_context"]
        return cls(
            *map(SpanRecalibrator.from_state, maps),
            context=None if context is None or load_context is None else load_context(context),
            cutoffs=None if cutoffs is None else Cutoffs.from_dict(cutoffs),
            adaptations=tuple(map(Adaptation.from_state, state["span_adaptations"] or ())),
        )
