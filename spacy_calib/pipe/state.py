"""All that a pipe keeps of its fit, and its saved form: the one schema of what `calibration.msgpack` holds. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..calibration.cutoffs import CUTOFFS, Cutoffs
from ..calibration.spans import SPAN_MAP, SpanRecalibrator
from ..calibration.tokens import TOKENS, TokenCalibration
from ..expect.record import RECORD, FitRecord
from ..expect.seen import SEEN, SeenTexts
from ..schema import listed, maybe, optional, record, text
from ..types import GROUPS, Groups
from .fit_info import FIT_INFO, FitInfo


def _fit_info(value: Any, where: str) -> dict[str, Any]:
    """{} before the fit."""
    return {} if value == {} else FIT_INFO(value, where)


def _parts_agree(held: dict[str, Any]) -> str:
    maps, spans = held["maps"], held["span_maps"]
    if maps is None:
        given = [name for name in (*TOKENS, "span_maps", "cutoffs", "record", "seen") if held[name] is not None]
        return f"'{given[0]}' is there and 'maps' is not" if given else ""
    if held["judged_by"] is not None and len(held["judged_by"]["of_tag"]) != len(held["labels"]):
        return f"{len(held['judged_by']['of_tag'])} tags are judged by groups, there are {len(held['labels'])} labels"
    if len(maps["groups"]["of_tag"]) != len(held["labels"]):
        return f"{len(maps['groups']['of_tag'])} tags have groups, there are {len(held['labels'])} labels"
    if not held["fit_info"]:
        return "'fit_info' is empty"
    if spans is None:
        return "" if held["cutoffs"] is None else "'cutoffs' is there and 'span_maps' is not"
    labels = (held["fit_info"]["spans"] or {"labels": ()})["labels"]
    sizes = {len(labels), *(len(one["groups"]["of_tag"]) for one in spans)}
    return "the labels of spans and their groups are as many" if len(sizes) > 1 else ""


STATE = record(
    {
        "labels": listed(text),
        "kind": text,
        "fit_info": _fit_info,
        **TOKENS,
        "span_maps": optional(maybe(listed(SPAN_MAP, 2, 2))),
        "cutoffs": optional(maybe(CUTOFFS)),
        "record": optional(maybe(RECORD)),
        "seen": optional(maybe(SEEN)),
        "fault": optional(text, ""),
        "kept_labels": optional(listed(text), ()),
        "weights": optional(text, ""),
        "judged_by": optional(maybe(GROUPS)),
    },
    _parts_agree,
)


@dataclass(frozen=True, eq=False)
class PipeState:
    """What a fit learned.

    calibration (TokenCalibration): Of tokens. labels (tuple[str, ...]), kind (str): Of the component, when it was fitted.
    span_maps, cutoffs, record, seen, fit_info, judged_by: See `component.Calibrator`. fault (str): Why the pipe could not read its component where it was
        saved, "" if it could: see `lookup.look_for_fault`. weights (str): See `fingerprint`, "" where none was taken.
    """

    calibration: TokenCalibration
    labels: tuple[str, ...] = ()
    kind: str = ""
    span_maps: tuple[SpanRecalibrator, SpanRecalibrator] | None = None
    cutoffs: Cutoffs | None = None
    record: FitRecord | None = None
    seen: SeenTexts | None = None
    fit_info: FitInfo = field(default_factory=FitInfo)
    fault: str = ""
    weights: str = ""
    judged_by: Groups | None = None
    kept_labels: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data and arrays, of STATE."""
        return {
            "labels": list(self.labels),
            "kind": self.kind,
            "fit_info": {} if self.calibration.maps is None else self.fit_info.to_dict(),
            **self.calibration.state(),
            "span_maps": None if self.span_maps is None else [one.state() for one in self.span_maps],
            "cutoffs": None if self.cutoffs is None else self.cutoffs.to_dict(),
            "record": None if self.record is None else self.record.state(),
            "seen": None if self.seen is None else self.seen.state(),
            "fault": self.fault,
            "kept_labels": list(self.kept_labels),
            "weights": self.weights,
            "judged_by": None if self.judged_by is None else self.judged_by.state(),
        }

    @classmethod
    def from_dict(cls, data: Any, normalize: bool | str, load: Callable[[dict[str, Any]], Any]) -> PipeState:
        """Check all of it, then make it.

        normalize (bool | str): The pipe's setting. load (Callable): Rebuilds a part by its registered name.
        RAISES Misfit: it is not of the form STATE, or a part is not of its own. C001: a cut-off out of range.
        """
        held = STATE(data, "state")
        spans, cutoffs, fitted, seen = held["span_maps"], held["cutoffs"], held["record"], held["seen"]
        return cls(
            TokenCalibration.from_state(held, normalize, load),
            tuple(held["labels"]),
            held["kind"],
            None if spans is None else (SpanRecalibrator.from_state(spans[0]), SpanRecalibrator.from_state(spans[1])),
            None if cutoffs is None else Cutoffs.from_dict(cutoffs),
            None if fitted is None else FitRecord.from_state(fitted),
            None if seen is None else SeenTexts.from_state(seen),
            FitInfo.from_dict(held["fit_info"]) if held["fit_info"] else FitInfo(),
            held["fault"],
            held["weights"],
            None if held["judged_by"] is None else Groups.from_state(held["judged_by"]),
            tuple(held["kept_labels"]),
        )
