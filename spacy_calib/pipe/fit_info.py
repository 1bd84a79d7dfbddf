"""What a fitted pipe reports of its fit: the data, the steps, and the errors before and after, as `info` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..annotations import unit_of
from ..calibration.cutoffs import Cutoffs
from ..calibration.fit_summaries import ADAPTED, SELECTION, HeldOut
from ..pairs.documents import DOCUMENT
from ..schema import MAX_NUMBER, Serializable, dict_of, flag, list_of, maybe, number, record, saved_field, text, whole

_SHARE = maybe(number(0.0, 1.0))
_SCALING = record(
    {
        "name": text,
        "biased": flag,
        "temperature": maybe(number(0.0, MAX_NUMBER)),
        "ridge": maybe(number()),
        "size": whole(),
    }
)
_OFFSETS = record({"strength": maybe(number(0.0)), "group_strength": maybe(number(0.0))})
_SETS = record(
    {
        "alpha": number(0.0, 1.0), "coverage": text, "nonempty": flag, "tokens": whole(),
        "tags": whole(), "out_of_reach": number(0.0, 1.0), "empty": number(0.0, 1.0),
        "unreached": list_of(text),
    }
)  # fmt: skip
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
        "docs": whole(), "unit": text, "seen": maybe(_SEEN), "sets_dropped": flag, "cutoffs_dropped": flag,
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
    """The cut-offs of a card; None for one without. cutoff (Mapping | None): What the card chose, in the form _CARD_CUTOFF."""
    return None if cutoff is None else Cutoffs(cutoff["precision"], 0.5, "all", {"all": cutoff["cutoff"]})


@dataclass(frozen=True)
class FitRow(Serializable):
    """A row of the fit table: all pairs, or those of one group.

    group (str): Its name, or "all". tags (int): How many. share (float | None): Of the gold labels; None where none was counted.
    pairs, hits (int): That its map was fitted on. raw, calibrated (float | None): Calibration error on these same pairs; None without pairs.
    fallback (str): Which map takes the place of its own, and why; "" where it has one.
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
    """The same of spans (entities).

    event (str): When one counts as right. labels (list[str]): Of the spans. spans, right, candidates (int): Spans on the Docs whose gold
    is known, right ones among them, candidates besides. fallback (str): Why raw scores are passed through, "" if they are not.
    context (Mapping | None): What the step that looks at their surroundings says of itself, None without it. held_out (HeldOut | None): As of
    `FitInfo`, a span in the place of a token.
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
    """What a pipe was fitted on, and with which steps; the default values are those of a pipe that is not fitted.

    component, layer (str): What was calibrated, and which annotation its labels are of. threshold (float): Of the pipe.
    docs (int), unit (str): Documents, and what they are. tokens (int): With gold; documents, where these have the labels. unknown_gold (int): Those whose gold label the component
        does not know. unknown (Mapping | None): These in words. label_map (Mapping | None): Component's label -> the gold's.
    pairs (int): That reach the threshold. counted_on (str): Where the tag counts come from.
    method (str): Registered name of the recalibrator. scaling, pooling, context, sets (Mapping | None): What these steps say of themselves, None
        without the step. selection (Mapping | None): What the steps were chosen from.
    table (list[FitRow]): All pairs, then each group. held_out (HeldOut | None): Calibrated against raw scores on held-out parts.
    spans (SpanFitInfo | None): None for a source of token labels alone. adaptations (list[Mapping]): What each says of itself, see
        `adapting.adapt_calibrator`. versions (Mapping): Package -> version. conventions (list[Mapping]): Tags of the
        component ("said") that the gold of a "file" (a number, from 0) often calls otherwise ("gold") though the component
        is sure: in "tokens" "of" so many. pretrained (Mapping | None): The card that it comes from; None after a fit.
    """

    component: str = saved_field(text, "")
    layer: str = saved_field(text, "")
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
    sets: Mapping[str, Any] | None = saved_field(maybe(_SETS), None)
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
        """What has labels: "token" or "document"."""
        return unit_of(self.layer)

    @property
    def steps(self) -> str:
        """The recalibrator, and what stands before and behind it, in a few words."""
        after = f" after {self.scaling['name']}" if self.scaling else ""
        return self.method + after + (", in context" if self.context and self.context["kept"] else "")

    def is_of_card(self, cutoffs: Cutoffs | None) -> bool:
        """Whether these are the cut-offs of the card that it comes from."""
        return cutoffs is not None and self.pretrained is not None and cutoffs == card_cutoffs(self.pretrained["cutoff"])

    @property
    def span_event(self) -> str:
        """When a span counts as right; "" for a source of token labels alone."""
        return "" if self.spans is None else self.spans.event
