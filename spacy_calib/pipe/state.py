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
from ..pairs.documents import DOCUMENT
from ..schema import FAR, flag, keyed, listed, maybe, number, optional, record, text, whole
from ..types import GROUPS, Groups

_SHARE = maybe(number(0.0, 1.0))
_ROW = record(
    {
        "group": text, "tags": whole(), "share": _SHARE, "pairs": whole(), "hits": whole(), "raw": _SHARE, "calibrated": _SHARE,
        "fallback": text,
    }
)  # fmt: skip
_TRIAL = record(
    {
        "candidate": text, "scaling": text, "groups": maybe(whole(1)), "method": text, "pooled": flag, "loss": number(),
        "difference": number(), "error": number(), "size": whole(),
    }
)  # fmt: skip
_SELECTION = record(
    {
        "chosen": text, "too_few": optional(text, ""), "dropped": optional(whole(), 0), "folds": whole(), "pairs": whole(),
        "documents": whole(), "trials": listed(_TRIAL),
    }
)  # fmt: skip
_SCALING = record(
    {
        "name": text,
        "biased": optional(maybe(flag)),
        "temperature": number(0.0, FAR),
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
_SPANS = record(
    {
        "event": text, "labels": listed(text), "spans": whole(), "right": whole(), "candidates": whole(), "fallback": text,
        "table": listed(_ROW),
    }
)  # fmt: skip
_HELD_OUT = record({"raw": number(), "calibrated": number(), "error": number(), "tokens": whole(), "verdict": text})
# What `info` shows of the fit.
_FIT_INFO = record(
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
        "intervals": optional(flag, False),
        "sets": optional(maybe(_SETS)),
        "selection": optional(maybe(_SELECTION)),
        "table": listed(_ROW),
        "held_out": optional(maybe(_HELD_OUT)),
        "spans": optional(maybe(_SPANS)),
        "versions": keyed(text),
    }
)


def _fit_info(value: Any, where: str) -> dict[str, Any]:
    """{} before the fit."""
    return {} if value == {} else _FIT_INFO(value, where)


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
    fit_info: dict[str, Any] = field(default_factory=dict)
    fault: str = ""
    weights: str = ""
    judged_by: Groups | None = None
    kept_labels: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data and arrays, of STATE."""
        return {
            "labels": list(self.labels),
            "kind": self.kind,
            "fit_info": self.fit_info,
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
            held["fit_info"],
            held["fault"],
            held["weights"],
            None if held["judged_by"] is None else Groups.from_state(held["judged_by"]),
            tuple(held["kept_labels"]),
        )
