"""All that a pipe keeps of its fit, and its saved form: the one schema of what `calibration.msgpack` holds. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..calibration.spans import SPANS, SpanCalibration
from ..calibration.tokens import TOKENS, TokenCalibration
from ..context.tokens import FurtherScores, SpanContext
from ..schema import Misfit, blob, digests, listed, maybe, record, registered, text
from ..sources.find import ComponentIdentity
from ..types import Groups
from .fit_info import FitInfo

if TYPE_CHECKING:
    from ..pairs.seen_texts import SeenTexts


def _span_context(value: Any, where: str) -> Any:
    """The context of spans that a fit learns, or a part that a registry makes, which is rebuilt later."""
    is_part = isinstance(value, dict) and "@calib_contexts" in value
    return registered("@calib_contexts")(value, where) if is_part else SpanContext.read(value, where)


def _parts_agree(held: dict[str, Any]) -> str:
    maps, spans, info = held["maps"], held["span_maps"], held["fit_info"]
    if maps is None:
        given = [name for name in (*TOKENS, *SPANS, "record", "seen") if held[name] is not None]
        return f"'{given[0]}' is there and 'maps' is not" if given else ""
    n = len(held["labels"])
    if held["judged_by"] is not None and len(held["judged_by"].of_tag) != n:
        return f"{len(held['judged_by'].of_tag)} tags are judged by groups, there are {n} labels"
    if len(maps["groups"].of_tag) != n:
        return f"{len(maps['groups'].of_tag)} tags have groups, there are {n} labels"
    if info is None:
        return "'fit_info' is empty"
    if held["span_context"] is not None and None in (held["context"], spans):
        return "'span_context' is there and 'context' or 'span_maps' is not"
    if spans is None:
        return "" if held["cutoffs"] is None else "'cutoffs' is there and 'span_maps' is not"
    labels = () if info.spans is None else info.spans.labels
    sizes = {len(labels), *(len(one.groups.of_tag) for one in spans)}
    return "the labels of spans and their groups are as many" if len(sizes) > 1 else ""


STATE = record(
    {
        "labels": listed(text),
        "kind": text,
        "fit_info": lambda value, where: None if value == {} else FitInfo.read(value, where),  # {} before the fit
        **TOKENS,
        **SPANS,
        "span_context": maybe(_span_context),
        "record": maybe(blob),  # checked by `record.fit_record.read_record`, when a command asks for it
        "seen": maybe(record({"digests": digests, "salt": text})),
        "kept_labels": listed(text),
        "weights": text,
        "judged_by": maybe(Groups.read),
    },
    _parts_agree,
)


@dataclass(frozen=True, eq=False)
class PipeState:
    """What a fit learned; the default values are those of a pipe that is not fitted, which passes raw scores through.

    tokens (TokenCalibration), spans (SpanCalibration): The maps. component (ComponentIdentity): What they belong to, and by which it is told from others.
    judged_by (Groups | None): Groups of the setting `grouping`, where the maps may have others because a selection chose those.
    record (bytes | None): What new documents are compared with, see `read_record`; None for a pipe that was fitted without.
    seen_state (dict | None): The state of `seen`, which is built when a command asks for it.
    info (FitInfo): What it was fitted on, with which steps, and the errors. weights (str): See `fingerprint`, "" where none was taken.
    kept_labels (tuple[str, ...]): See `Source.kept_labels`.
    """

    tokens: TokenCalibration = field(default_factory=TokenCalibration)
    spans: SpanCalibration = field(default_factory=SpanCalibration)
    component: ComponentIdentity = field(default_factory=ComponentIdentity)
    judged_by: Groups | None = None
    record: bytes | None = None
    seen_state: dict[str, Any] | None = None
    info: FitInfo = field(default_factory=FitInfo)
    weights: str = ""
    kept_labels: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """STOCK, PRETRAINED or FITTED: where the maps come from."""
        from ..errors.advice import FITTED, PRETRAINED, STOCK  # scoring does not need it

        return STOCK if self.tokens.maps is None else FITTED if self.info.pretrained is None else PRETRAINED

    @cached_property
    def seen(self) -> SeenTexts | None:
        """Digests of the fit documents, to recognize them in other data; None for a pipe that was fitted without."""
        from ..pairs.seen_texts import SeenTexts  # scoring does not need it

        return None if self.seen_state is None else SeenTexts.read(self.seen_state)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays, of STATE."""
        return {
            "labels": list(self.component.labels),
            "kind": self.component.kind,
            "fit_info": {} if self.tokens.maps is None else self.info.state(),
            **self.tokens.state(),
            **self.spans.state(),
            "record": self.record,
            "seen": self.seen_state,
            "kept_labels": list(self.kept_labels),
            "weights": self.weights,
            "judged_by": None if self.judged_by is None else self.judged_by.state(),
        }

    @classmethod
    def read(cls, data: Any, normalize: bool | str, load: Callable[[dict[str, Any]], Any]) -> PipeState:
        """Check all of it, then make it. load: Rebuilds a part. RAISES Misfit: not of the form STATE. C001: a cut-off."""
        held = STATE(data, "state")
        tokens = TokenCalibration.from_state(held, normalize, load)
        if isinstance(held["span_context"], dict):
            held["span_context"] = load(held["span_context"])
        if isinstance(tokens.context, FurtherScores) and tokens.context.n_labels != len(held["labels"]):
            raise Misfit("context", f"fitted to {len(held['labels'])} labels")
        return cls(
            tokens=tokens,
            spans=SpanCalibration.from_state(held),
            component=ComponentIdentity(held["kind"], tuple(held["labels"])),
            judged_by=held["judged_by"],
            record=held["record"],
            seen_state=held["seen"],
            info=held["fit_info"] or FitInfo(),
            weights=held["weights"],
            kept_labels=tuple(held["kept_labels"]),
        )
