"""What a fitted pipe says of its fit: on what it was fitted, with which steps, and the errors before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..calibration.adaptation.fitting import ADAPTED
from ..calibration.auto import SELECTION
from ..calibration.sufficiency import HELD_OUT, HeldOut
from ..doc.annotations import unit_of
from ..pairs.documents import DOCUMENT
from ..schema import FAR, flag, keyed, listed, maybe, number, optional, record, text, whole

_SHARE = maybe(number(0.0, 1.0))
_ROW = record(
    {
        "group": text, "tags": whole(), "share": _SHARE, "pairs": whole(), "hits": whole(), "raw": _SHARE, "calibrated": _SHARE,
        "fallback": text,
    }
)  # fmt: skip
_SCALING = record(
    {
        "name": text,
        "biased": optional(maybe(flag)),
        "temperature": optional(maybe(number(0.0, FAR))),
        "ridge": optional(number()),
        "size": whole(),
    }
)
_OFFSETS = record({"strength": maybe(number(0.0)), "group_strength": maybe(number(0.0))})
_SETS = record(
    {
        "alpha": number(0.0, 1.0), "coverage": text, "nonempty": optional(flag, False), "tokens": whole(),
        "tags": optional(maybe(whole())), "out_of_reach": number(0.0, 1.0), "empty": optional(number(0.0, 1.0), 0.0),
        "unreached": listed(text),
    }
)  # fmt: skip
_COMPARISON = record({"without": number(), "with_context": number(), "error": number()})
_CONTEXT = record(
    {
        "when": text, "kept": flag, "why": text, "words": flag, "forms": whole(), "endings": whole(), "ridge": maybe(number()),
        "size": whole(), "columns": listed(text), "comparison": maybe(_COMPARISON), "reordered": number(0.0, 1.0),
    }
)  # fmt: skip
_SPAN_CONTEXT = record(
    {
        "when": text, "kept": flag, "why": text, "comparison": maybe(_COMPARISON), "slope": maybe(number()), "ridge": maybe(number()),
        "weights": listed(record({"what": text, "weight": number()})),
    }
)  # fmt: skip
_SPANS = record(
    {
        "event": text, "labels": listed(text), "spans": whole(), "right": whole(), "candidates": whole(), "fallback": text,
        "table": listed(_ROW), "context": optional(maybe(_SPAN_CONTEXT)), "held_out": optional(maybe(HELD_OUT)),
    }
)  # fmt: skip
_SEEN = record({"documents": whole(), "seen": whole(), "share": number(0.0, 1.0), "many": flag})
_ADAPTATION = record(
    {
        "docs": whole(), "unit": text, "seen": maybe(_SEEN), "sets_dropped": flag, "cutoffs_dropped": flag,
        "tokens": ADAPTED, "spans": maybe(ADAPTED),
    }
)  # fmt: skip
_SOURCE = record({"name": text, "documents": whole(), "pairs": whole()})
_CONVENTION = record({"source": text, "said": text, "gold": text, "tokens": whole(), "of": whole()})
_SAMPLED = record({"documents": whole(), "pairs": whole(), "tables": listed(text)})
# The saved form of FitInfo.
FIT_INFO = record(
    {
        "component": text,
        "layer": text,
        "threshold": number(0.0, 1.0),
        "docs": whole(),
        "unit": optional(text, DOCUMENT),
        "tokens": whole(),
        "unknown_gold": optional(whole(), 0),
        "unknown": optional(maybe(keyed(text))),
        "label_map": optional(maybe(keyed(text))),
        "pairs": whole(),
        "counted_on": text,
        "scaling": optional(maybe(_SCALING)),
        "method": text,
        "pooling": optional(maybe(_OFFSETS)),
        "context": optional(maybe(_CONTEXT)),
        "intervals": optional(flag, False),
        "sets": optional(maybe(_SETS)),
        "selection": optional(maybe(SELECTION)),
        "table": listed(_ROW),
        "held_out": optional(maybe(HELD_OUT)),
        "spans": optional(maybe(_SPANS)),
        "adaptations": optional(listed(_ADAPTATION), ()),
        "versions": keyed(text),
        "sampled": optional(maybe(_SAMPLED)),
        "sources": optional(listed(_SOURCE), ()),
        "conventions": optional(listed(_CONVENTION), ()),
    }
)


@dataclass(frozen=True)
class FitRow:
    """A row of the fit table: all pairs, or those of one group.

    group (str): Its name, or "all". tags (int): How many. share (float | None): Of the gold labels; None where none was counted.
    pairs, hits (int): That its map was fitted on. raw, calibrated (float | None): Calibration error on these same pairs; None without pairs.
    fallback (str): Which map takes the place of its own, and why; "" where it has one.
    """

    group: str
    tags: int
    share: float | None
    pairs: int
    hits: int
    raw: float | None
    calibrated: float | None
    fallback: str


@dataclass(frozen=True)
class SpanFitInfo:
    """The same of spans (entities).

    event (str): When one counts as right. labels (list[str]): Of the spans. spans, right, candidates (int): Spans on the Docs whose gold
    is known, right ones among them, candidates besides. fallback (str): Why raw scores are passed through, "" if they are not.
    context (Mapping | None): What the step that looks at their surroundings says of itself, None without it. held_out (HeldOut | None): As of
    `FitInfo`, a span in the place of a token.
    """

    event: str
    labels: list[str]
    spans: int
    right: int
    candidates: int
    fallback: str
    table: list[FitRow]
    context: Mapping[str, Any] | None = None
    held_out: HeldOut | None = None


@dataclass(frozen=True)
class FitInfo:
    """What a pipe was fitted on, and with which steps; the default values are those of a pipe that is not fitted.

    component, layer (str): What was calibrated, and which annotation its labels are of. threshold (float): Of the pipe.
    docs (int), unit (str): Documents, and what they are. tokens (int): With gold; documents, where these have the labels. unknown_gold (int): Those whose gold label the component
        does not know. unknown (Mapping | None): These in words. label_map (Mapping | None): Component's label -> the gold's.
    pairs (int): That reach the threshold. sampled (Mapping | None): Where only a sample of documents was looked at one by one, its "documents" and
        "pairs", and the steps that were fitted on "tables" of all pairs. counted_on (str): Where the tag counts come from.
    method (str): Registered name of the recalibrator. scaling, pooling, context, sets (Mapping | None): What these steps say of themselves, None
        without the step. intervals (bool): Whether tokens get one. selection (Mapping | None): What the steps were chosen from.
    table (list[FitRow]): All pairs, then each group. held_out (HeldOut | None): Calibrated against raw scores on held-out parts.
    spans (SpanFitInfo | None): None for a source of token labels alone. adaptations (list[Mapping]): What each says of itself, see
        `adapting.adapt_calibrator`. versions (Mapping): Package -> version. sources (list[Mapping]): The named sources of gold in the order of their
        numbers, "documents" and "pairs" of each; [] where none was named. conventions (list[Mapping]): Tags of the component ("said") that
        the gold of a "source" often calls otherwise ("gold") though the component is sure: in "tokens" "of" so many.
    """

    component: str = ""
    layer: str = ""
    threshold: float = 0.0
    docs: int = 0
    unit: str = DOCUMENT
    tokens: int = 0
    unknown_gold: int = 0
    unknown: Mapping[str, str] | None = None
    label_map: Mapping[str, str] | None = None
    pairs: int = 0
    counted_on: str = ""
    scaling: Mapping[str, Any] | None = None
    method: str = ""
    pooling: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    intervals: bool = False
    sets: Mapping[str, Any] | None = None
    selection: Mapping[str, Any] | None = None
    table: list[FitRow] = field(default_factory=list)
    held_out: HeldOut | None = None
    spans: SpanFitInfo | None = None
    adaptations: list[Mapping[str, Any]] = field(default_factory=list)
    versions: Mapping[str, str] = field(default_factory=dict)
    sampled: Mapping[str, Any] | None = None
    sources: list[Mapping[str, Any]] = field(default_factory=list)
    conventions: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def row_unit(self) -> str:
        """What has labels: "token" or "document"."""
        return unit_of(self.layer)

    @property
    def source_names(self) -> tuple[str, ...]:
        """The named sources of gold, by their numbers."""
        return tuple(source["name"] for source in self.sources)

    @property
    def steps(self) -> str:
        """The recalibrator, and what stands before and behind it, in a few words."""
        after = f" after {self.scaling['name']}" if self.scaling else ""
        return self.method + after + (", in context" if self.context and self.context["kept"] else "")

    @property
    def span_event(self) -> str:
        """When a span counts as right; "" for a source of token labels alone."""
        return "" if self.spans is None else self.spans.event

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the form FIT_INFO, as commands write it to JSON."""
        spans = None if self.spans is None else {**asdict(self.spans), **_judged(self.spans.held_out)}
        return {**asdict(self), **_judged(self.held_out), "spans": spans}

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> FitInfo:
        """Rebuild from what FIT_INFO has read."""
        spans = None if held["spans"] is None else SpanFitInfo(**_rebuilt(held["spans"]))
        several = {name: list(held[name]) for name in ("adaptations", "sources", "conventions")}
        return cls(**{**_rebuilt(held), "spans": spans, **several})


def _judged(held_out: HeldOut | None) -> dict[str, Any]:
    return {"held_out": None if held_out is None else held_out.to_dict()}


def _rebuilt(held: Mapping[str, Any]) -> dict[str, Any]:
    """With its table and what was held out as they were."""
    judged = held["held_out"]
    return {
        **held,
        "table": [FitRow(**row) for row in held["table"]],
        "held_out": None if judged is None else HeldOut.from_dict(judged),
    }
