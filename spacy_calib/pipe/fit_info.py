"""The summary of a fit that `info` prints: its data, its steps, and the errors before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..annotations import unit_of
from ..calibration.cutoffs import Cutoffs
from ..calibration.fit_summaries import ADAPTED, SELECTION, HeldOut
from ..pairs.documents import DOCUMENT
from ..schema import MAX_NUMBER, Serializable, dict_of, flag, list_of, maybe, number, record, saved_field, text, whole


def _layer(value: Any, where: str) -> str:
    layer: str = text(value, where)
    unit_of(layer)  # refuses an unknown one
    return layer


_SHARE = maybe(number(0.0, 1.0))
_SCALING = record(
    {"name": text, "biased": flag, "temperature": maybe(number(0.0, MAX_NUMBER)), "ridge": maybe(number()), "size": whole()}
)
_OFFSETS = record({"strength": maybe(number(0.0)), "group_strength": maybe(number(0.0))})
_COMPARISON = record({"without": number(), "with_context": number(), "error": number()})
_CONTEXT = record(
    {
        "when": text, "kept": flag, "why": text, "forms": whole(), "endings": whole(), "ridge": maybe(number()),
        "size": whole(), "columns": list_of(text), "comparison": maybe(_COMPARISON), "reordered": number(0.0, 1.0),
    }
)  # fmt: skip
_SPAN_CONTEXT = record(
    {
        "when": text, "kept": flag, "why": text, "comparison": maybe(_COMPARISON), "slope": maybe(number()), "ridge": maybe(number()),
        "weights": list_of(record({"what": text, "weight": number()})),
    }
)  # fmt: skip
_SEEN = record({"documents": whole(), "seen": whole(), "share": number(0.0, 1.0), "many": flag})
_ADAPTATION = record(
    {
        "docs": whole(), "unit": text, "seen": maybe(_SEEN), "cutoffs_dropped": flag,
        "tokens": ADAPTED, "spans": maybe(ADAPTED),
    }
)  # fmt: skip
_CARD_CUTOFF = record({name: number(0.0, 1.0) for name in ("precision", "cutoff", "mean", "worst", "kept")})
_PRETRAINED = record(
    {
        "card": text, "pipeline": text, "licence": text, "transferred": flag, "sources": whole(),
        "lowest_bias": number(-1.0, 1.0), "highest_bias": number(-1.0, 1.0), "trust": text, "cutoff": maybe(_CARD_CUTOFF),
    }
)  # fmt: skip
_CONVENTION = record({"file": whole(), "said": text, "gold": text, "tokens": whole(), "of": whole(), "in_gold": whole()})


def card_cutoffs(cutoff: Mapping[str, float] | None) -> Cutoffs | None:
    """Return the cut-offs of a card with pretrained maps, or None. cutoff (Mapping | None): In the form _CARD_CUTOFF."""
    return None if cutoff is None else Cutoffs(cutoff["precision"], 0.5, "all", {"all": cutoff["cutoff"]})


@dataclass(frozen=True)
class FitRow(Serializable):
    """A row of the fit table: all pairs, or those of one group.

    group (str): Name of the group, or "all". tags (int): Number of its tags.
    share (float | None): Share of the gold labels; None if none was counted. pairs, hits (int): Pairs of its fit, and hits.
    raw, calibrated (float | None): Calibration error on these same pairs; None without pairs.
    fallback (str): Recalibrator used instead of its own, and why; "" if it has its own.
    """

    group: str = saved_field(text)
    tags: int = saved_field(whole())
    share: float | None = saved_field(_SHARE)
    pairs: int = saved_field(whole())
    hits: int = saved_field(whole())
    raw: float | None = saved_field(_SHARE)
    calibrated: float | None = saved_field(_SHARE)
    fallback: str = saved_field(text)


@dataclass(frozen=True)
class SpanFitInfo(Serializable):
    """Summary of the fit of spans (entities).

    event (str): When a span counts as right. labels (list[str]): Labels of the spans.
    spans, right, candidates (int): Spans on the Docs with known gold, right ones among them, other candidates.
    fallback (str): Why raw scores are returned, "" if they are not. table (list[FitRow]): All spans, then each group.
    context (Mapping | None): Summary of the span context, None without it. held_out (HeldOut | None): As in FitInfo, by span.
    """

    event: str = saved_field(text)
    labels: list[str] = saved_field(list_of(text))
    spans: int = saved_field(whole())
    right: int = saved_field(whole())
    candidates: int = saved_field(whole())
    fallback: str = saved_field(text)
    table: list[FitRow] = saved_field(list_of(FitRow.read))
    context: Mapping[str, Any] | None = saved_field(maybe(_SPAN_CONTEXT), None)
    held_out: HeldOut | None = saved_field(maybe(HeldOut.read), None)


@dataclass(frozen=True)
class FitInfo(Serializable):
    """Summary of a fit: data and steps; the default values are those of a pipe that is not fitted.

    component, layer (str): Component, and annotation of its labels. threshold (float): Of the pipe.
    docs (int), unit (str): Number of documents, and their kind. tokens (int): Tokens (or documents) with gold.
    unknown_gold (int): Tokens whose gold label the component does not know. unknown (Mapping | None): What is printed of them.
    label_map (Mapping | None): Component's label -> gold label. pairs (int): Pairs that reach the threshold.
    counted_on (str): Source of the tag counts. method (str): Registered name of the recalibrator.
    scaling, pooling, context, sets (Mapping | None): Summary of each step, None without the step.
    selection (Mapping | None): The candidates of the selection.
    table (list[FitRow]): All pairs, then each group. held_out (HeldOut | None): Calibrated and raw scores on held-out folds.
    spans (SpanFitInfo | None): None for a source of token labels alone. adaptations (list[Mapping]): Summary of each.
    versions (Mapping): Package -> version. pretrained (Mapping | None): The card that the maps come from; None after a fit.
    conventions (list[Mapping]): Tags of the component ("said") that the gold of a "file" (an index) often labels otherwise
        ("gold") although their scores are high: in "tokens" of "of" cases.
    """

    component: str = saved_field(text, "")
    layer: str = saved_field(_layer, "")
    threshold: float = saved_field(number(0.0, 1.0), 0.0)
    docs: int = saved_field(whole(), 0)
    unit: str = saved_field(text, DOCUMENT)
    tokens: int = saved_field(whole(), 0)
    unknown_gold: int = saved_field(whole(), 0)
    unknown: Mapping[str, str] | None = saved_field(maybe(dict_of(text)), None)
    label_map: Mapping[str, str] | None = saved_field(maybe(dict_of(text)), None)
    pairs: int = saved_field(whole(), 0)
    counted_on: str = saved_field(text, "")
    scaling: Mapping[str, Any] | None = saved_field(maybe(_SCALING), None)
    method: str = saved_field(text, "")
    pooling: Mapping[str, Any] | None = saved_field(maybe(_OFFSETS), None)
    context: Mapping[str, Any] | None = saved_field(maybe(_CONTEXT), None)
    selection: Mapping[str, Any] | None = saved_field(maybe(SELECTION), None)
    table: list[FitRow] = saved_field(list_of(FitRow.read), list)
    held_out: HeldOut | None = saved_field(maybe(HeldOut.read), None)
    spans: SpanFitInfo | None = saved_field(maybe(SpanFitInfo.read), None)
    adaptations: list[Mapping[str, Any]] = saved_field(list_of(_ADAPTATION), list)
    versions: Mapping[str, str] = saved_field(dict_of(text), dict)
    conventions: list[Mapping[str, Any]] = saved_field(list_of(_CONVENTION), list)
    pretrained: Mapping[str, Any] | None = saved_field(maybe(_PRETRAINED), None)

    @property
    def row_unit(self) -> str:
        """Kind of unit that has the labels: "token" or "document"."""
        return unit_of(self.layer)

    @property
    def steps(self) -> str:
        """The recalibrator, and the steps before and after it, in a few words."""
        after = f" after {self.scaling['name']}" if self.scaling else ""
        return self.method + after + (", in context" if self.context and self.context["kept"] else "")

    def is_of_card(self, cutoffs: Cutoffs | None) -> bool:
        """Return whether these are the cut-offs of the card that the maps come from."""
        return cutoffs is not None and self.pretrained is not None and cutoffs == card_cutoffs(self.pretrained["cutoff"])

    @property
    def span_event(self) -> str:
        """When a span counts as right; "" for a source of token labels alone."""
        return "" if self.spans is None else self.spans.event
