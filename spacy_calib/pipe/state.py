"""The learned state of a calib pipe and its saved form: the one schema of `calibration.msgpack`. For arrays, never Docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..calibration.spans import SPANS, SpanCalibration
from ..calibration.tokens import TOKENS, TokenCalibration
from ..context.tokens import FurtherScores, SpanContextModel
from ..schema import InvalidState, blob, digests, list_of, maybe, record, registered_part, text
from ..sources.find import ComponentIdentity
from ..types import Groups
from .fit_info import FitInfo

if TYPE_CHECKING:
    from ..pairs.seen_texts import FitTextDigests


def _span_context(value: Any, where: str) -> Any:
    """Read the span context that a fit learns; or check a registered part, which is rebuilt later."""
    is_part = isinstance(value, dict) and "@calib_contexts" in value
    return registered_part("@calib_contexts")(value, where) if is_part else SpanContextModel.read(value, where)


def _contradiction(fields: dict[str, Any]) -> str:
    """Return why the parts of a state contradict each other, or ""."""
    maps, spans, info = fields["maps"], fields["span_maps"], fields["fit_info"]
    if maps is None:
        learned_keys = [name for name in (*TOKENS, *SPANS, "record", "seen") if fields[name] is not None]
        return f"'{learned_keys[0]}' is there and 'maps' is not" if learned_keys else ""
    n = len(fields["labels"])
    if fields["judged_by"] is not None and len(fields["judged_by"].of_tag) != n:
        return f"{len(fields['judged_by'].of_tag)} tags are judged by groups, there are {n} labels"
    if len(maps["groups"].of_tag) != n:
        return f"{len(maps['groups'].of_tag)} tags have groups, there are {n} labels"
    if info is None:
        return "'fit_info' is empty"
    if fields["span_context"] is not None and None in (fields["context"], spans):
        return "'span_context' is there and 'context' or 'span_maps' is not"
    if spans is None:
        return "" if fields["cutoffs"] is None else "'cutoffs' is there and 'span_maps' is not"
    labels = () if info.spans is None else info.spans.labels
    sizes = {len(labels), *(len(span_map.groups.of_tag) for span_map in spans)}
    return "span labels and their groups differ in number" if len(sizes) > 1 else ""


STATE = record(
    {
        "labels": list_of(text),
        "kind": text,
        "fit_info": lambda value, where: None if value == {} else FitInfo.read(value, where),  # {} before the fit
        **TOKENS,
        **SPANS,
        "span_context": maybe(_span_context),
        "record": maybe(blob),  # checked by `record.fit_record.read_record` when it is needed
        "seen": maybe(record({"digests": digests, "salt": text})),
        "kept_labels": list_of(text),
        "weights": text,
        "judged_by": maybe(Groups.read),
    },
    _contradiction,
)


@dataclass(frozen=True, eq=False)
class PipeState:
    """What a fit learned; the default values are those of an unfitted pipe, which returns raw scores.

    tokens (TokenCalibration), spans (SpanCalibration): Calibration steps. component (ComponentIdentity): Type and labels of the component.
    judged_by (Groups | None): Groups of the setting `grouping`; a selection may have chosen others for the recalibrators.
    record (bytes | None): Saved `FitRecord`, or None. seen_state (dict | None): Saved `seen_texts`, or None.
    info (FitInfo): Summary of the fit. weights (str): Fingerprint of the component's weights, "" if unknown.
    kept_labels (tuple[str, ...]): Labels of `Source.kept_labels`.
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
        """Origin of the calibration: "stock" (unfitted), "pretrained" or "fitted"."""
        return "stock" if self.tokens.maps is None else "fitted" if self.info.pretrained is None else "pretrained"

    @cached_property
    def seen_texts(self) -> FitTextDigests | None:
        """Digests of the fit documents, to recognize them in other data; built when needed, None for a pipe fitted without."""
        from ..pairs.seen_texts import FitTextDigests  # scoring does not need it

        return None if self.seen_state is None else FitTextDigests.read(self.seen_state)

    def state(self) -> dict[str, Any]:
        """Return plain data and arrays, in the form STATE."""
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
        """Check a whole state, then build the object; `load` rebuilds registered parts. RAISES InvalidState; C001: a cut-off."""
        fields = STATE(data, "state")
        tokens = TokenCalibration.from_state(fields, normalize, load)
        if isinstance(fields["span_context"], dict):
            fields["span_context"] = load(fields["span_context"])
        if isinstance(tokens.context, FurtherScores) and tokens.context.n_labels != len(fields["labels"]):
            raise InvalidState("context", f"fitted to {len(fields['labels'])} labels")
        return cls(
            tokens=tokens,
            spans=SpanCalibration.from_state(fields),
            component=ComponentIdentity(fields["kind"], tuple(fields["labels"])),
            judged_by=fields["judged_by"],
            record=fields["record"],
            seen_state=fields["seen"],
            info=fields["fit_info"] or FitInfo(),
            weights=fields["weights"],
            kept_labels=tuple(fields["kept_labels"]),
        )
