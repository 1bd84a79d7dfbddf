"""The learned state of a calib pipe: the fitted steps, the summary of the fit, and the form in which both are saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ..annotations import Kind, kind_of
from ..calibration.cutoffs import Cutoffs
from ..calibration.fit_summaries import ADAPTED, SELECTION, HeldOut
from ..calibration.recalibrators.identity import Identity
from ..calibration.saved import pack
from ..calibration.spans import SPANS, SpanCalibration
from ..calibration.tokens import TOKENS, TokenCalibration
from ..context.tokens import FurtherScores, SpanContextModel
from ..pairs.documents import DOCUMENT
from ..schema import (
    MAX_NUMBER,
    InvalidState,
    Serializable,
    blob,
    dict_of,
    digests,
    flag,
    list_of,
    maybe,
    number,
    record,
    registered_part,
    saved_field,
    text,
    whole,
)
from ..sources.find import ComponentIdentity
from ..types import Groups

if TYPE_CHECKING:
    from ..pairs.seen_texts import FitTextDigests, TextUnits

HERE = "the fit data"  # source of the tag counts if none were given: the fit counts the labels of its own data


def _layer(value: Any, where: str) -> str:
    """Read the name of an annotation in a saved state. where: Its place there, for messages."""
    layer: str = text(value, where)
    kind_of(layer)  # raises C001 for an unknown annotation
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
        "when": text, "kept": flag, "why": text, "comparison": maybe(_COMPARISON), "slope": maybe(number()),
        "ridge": maybe(number()), "weights": list_of(record({"what": text, "weight": number()})),
    }
)  # fmt: skip
_SEEN = record({"documents": whole(), "seen": whole(), "share": number(0.0, 1.0), "many": flag})
_ADAPTATION = record({"docs": whole(), "unit": text, "seen": maybe(_SEEN), "tokens": ADAPTED, "spans": maybe(ADAPTED)})
_CARD_CUTOFF = record({name: number(0.0, 1.0) for name in ("precision", "cutoff", "mean", "worst", "kept")})
_PRETRAINED = record(
    {
        "card": text, "pipeline": text, "licence": text, "transferred": flag, "sources": whole(),
        "lowest_bias": number(-1.0, 1.0), "highest_bias": number(-1.0, 1.0), "trust": text, "cutoff": maybe(_CARD_CUTOFF),
    }
)  # fmt: skip
_CONVENTION = record({"file": whole(), "said": text, "gold": text, "tokens": whole(), "of": whole(), "in_gold": whole()})


def card_cutoffs(cutoff: Mapping[str, float] | None) -> Cutoffs | None:
    """Convert a pretrained calibration's "cutoff" to Cutoffs. It reaches a "precision" on average, with a confidence of 0.5."""
    return None if cutoff is None else Cutoffs(cutoff["precision"], 0.5, "all", {"all": cutoff["cutoff"]})


@dataclass(frozen=True)
class FitRow(Serializable):
    """A row of the fit table: all pairs, or those of one group.

    group (str): Name of the group, or "all". tags (int): Number of its tags. share (float | None): Share of the gold labels
        with these tags; None if none was counted. pairs, hits (int): Number of its pairs, and of hits among them.
    raw, calibrated (float | None): Calibration error of raw and of cross-validated scores; None without pairs.
    fallback (str): The recalibrator that the group uses in place of its own, and why; "" if it has its own.
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

    event (str): When a span counts as right. labels (list[str]): Labels of the spans. spans, right (int): Number of predicted
        spans with known gold, and of right ones among them. candidates (int): Number of other spans with scores and gold.
    fallback (str): Why raw scores are returned, "" if they are not. table (list[FitRow]): A row for all spans, then by group.
    context (Mapping | None): Summary of the span context, if any. held_out (HeldOut | None): Losses of the raw and of the
        out-of-fold scores of the spans; None for a single document.
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

    component, layer (str): Component, and annotation of its labels. threshold (float): Raw score below which pairs are dropped.
    docs (int), unit (str): Number of documents, and their kind. tokens (int): Number of tokens (or documents) with gold.
    unknown_gold (int): Tokens whose gold label the component does not know. unknown (Mapping | None): Texts about them for
        messages. label_map (Mapping | None): Component's label -> gold label. pairs (int): Pairs that reach the threshold.
    counted_on (str): Source of the tag counts. method (str): Registered name of the recalibrator.
    scaling, tag_offsets, context (Mapping | None): Summary of each step, None without the step.
    selection (Mapping | None): The candidates that the setting `selection` compared, and the chosen one.
    table (list[FitRow]): For all pairs, then by group. held_out (HeldOut | None): Losses of raw and of out-of-fold scores.
    spans (SpanFitInfo | None): None for a source of token labels alone. adaptations (list[Mapping]): For each adaptation the
        number of "docs", their "unit", "seen" (overlap with the fit data), and summaries for "tokens" and "spans".
    versions (Mapping): Package -> version. pretrained (Mapping | None): The card that the maps come from; None after a fit.
    conventions (list[Mapping]): Tags that component and gold use differently. In the gold file with the index "file" the
        component is confident of its tag "said" for "of" tokens, and the gold has the tag "gold" for "tokens" of them.
        "in_gold": Number of tokens with the tag "said" in the gold of all files.
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
    tag_offsets: Mapping[str, Any] | None = saved_field(maybe(_OFFSETS), None)
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
    def kind(self) -> Kind:
        """Kind of the labels."""
        return kind_of(self.layer)

    def is_of_card(self, cutoffs: Cutoffs | None) -> bool:
        """Return whether `cutoffs` are those of the pretrained calibration (card), not ones that were chosen later."""
        return cutoffs is not None and self.pretrained is not None and cutoffs == card_cutoffs(self.pretrained["cutoff"])

    @property
    def card_bias(self) -> tuple[float, float] | None:
        """The card's 95 % interval of (mean score - share right) on new texts, for pretrained maps; None once adapted."""
        card = None if self.adaptations else self.pretrained
        return None if card is None else (card["lowest_bias"], card["highest_bias"])

    @property
    def span_event(self) -> str:
        """When a span counts as right, such as "exact"; "" for a source of token labels alone."""
        return "" if self.spans is None else self.spans.event


def _span_context(value: Any, where: str) -> Any:
    """Check a saved span context at `where`. Return a SpanContextModel, or a dict from which `PipeState.read` loads a part."""
    is_part = isinstance(value, dict) and "@calib_contexts" in value
    return registered_part("@calib_contexts")(value, where) if is_part else SpanContextModel.read(value, where)


def _contradiction(fields: dict[str, Any]) -> str:
    """Return why the fields of a saved pipe state contradict each other, or "". fields: The keys of STATE, with values."""
    maps, span_maps, info, error_groups = (fields[name] for name in ("maps", "span_maps", "fit_info", "judged_by"))
    if maps is None:  # an unfitted pipe has learned nothing
        names = (*TOKENS, *SPANS, "record", "seen", "judged_by", "fit_info")
        learned_keys = [name for name in names if fields[name] is not None]
        return f"'{learned_keys[0]}' is there and 'maps' is not" if learned_keys else ""
    n_labels = len(fields["labels"])
    if error_groups is not None and len(error_groups.of_tag) != n_labels:
        return f"{len(error_groups.of_tag)} tags are judged by groups, there are {n_labels} labels"
    if len(maps["groups"].of_tag) != n_labels:
        return f"{len(maps['groups'].of_tag)} tags have groups, there are {n_labels} labels"
    if info is None:
        return "'fit_info' is empty"
    if fields["span_context"] is not None and None in (fields["context"], span_maps):
        return "'span_context' is there and 'context' or 'span_maps' is not"
    if span_maps is None:
        span_keys = [name for name in ("cutoffs", "span_adaptations") if fields[name] is not None]
        return f"'{span_keys[0]}' is there and 'span_maps' is not" if span_keys else ""
    n_span_labels = 0 if info.spans is None else len(info.spans.labels)
    steps_of_spans = (*span_maps, *(fields["span_adaptations"] or ()))
    is_consistent = all(len(step.groups.of_tag) == n_span_labels for step in steps_of_spans)
    return "" if is_consistent else "span labels and their groups differ in number"


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

    tokens (TokenCalibration), spans (SpanCalibration): Calibration steps. component (ComponentIdentity): Type and labels of the
    component. judged_by (Groups | None): Groups by which errors are computed, those of the setting `grouping`; a selection may
    have chosen others for the recalibrators. record (bytes | None): Saved FitRecord, from which accuracies on new texts are
    estimated. seen_state (dict | None): Saved `seen_texts`. info (FitInfo): Summary of the fit. weights (str): Fingerprint of
    the component's weights, "" if unknown. kept_labels (tuple[str, ...]): Labels to save if no component has them.
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

    @property
    def method(self) -> str:
        """The steps and their maps in words, as in "isotonic (one map for each of 5 frequency groups)"; "" before a fit."""
        maps, info = self.tokens.maps, self.info
        if maps is None or not info.method:
            return ""
        # The steps in words, the last one first. Only a recalibrator has a map for each group; other steps are one model.
        recalibrator = type(maps.prototype)
        short_name = vars(recalibrator).get("short")  # an inherited one is that of another class
        steps = [] if recalibrator is Identity else [short_name or info.method]
        noun = "one map" if steps else "one model"
        if info.context and info.context["kept"]:
            steps.append("context")
        if info.scaling:  # "spacy-calib.VectorScaling.v1" -> "vector scaling"
            steps.append(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", info.scaling["name"].split(".")[-2]).lower())
        if not steps:
            return "raw scores, unchanged"
        # Groups that hold a single label whatever its frequency, such as "O", do not count.
        n_maps, n_groups = (len(groups) - groups.n_singletons for groups in (maps.groups, self.judged_by or maps.groups))
        extent = f"each of {n_maps} frequency groups" if n_maps > 1 else f"all {info.kind.label_words[1]}"
        errors = f"; errors by {n_groups} frequency groups" if n_groups != n_maps else ""
        return f"{' after '.join(steps)} ({noun} for {extent}{errors})"

    @cached_property
    def seen_texts(self) -> FitTextDigests | None:
        """Digests of the fit documents, to recognize these in other data; None for a pipe that has none."""
        from ..pairs.seen_texts import FitTextDigests  # scoring does not need it

        return None if self.seen_state is None else FitTextDigests.read(self.seen_state)

    @property
    def identity(self) -> str:
        """Digest of the learned state that scores depend on: all but cut-offs, summaries and records of the fit data."""
        excluded = ("cutoffs", "label_cutoffs", "recall_cutoffs", "fit_info", "record", "seen", "kept_labels", "judged_by")
        state = {key: value for key, value in self.state().items() if key not in excluded}
        return blake2b(pack(state, ""), digest_size=6).hexdigest()

    def overlap_with(self, texts: TextUnits) -> dict[str, Any] | None:
        """Return the fields of the TrainTestOverlap of some texts with the fit data; None if it cannot be computed."""
        overlap = None if self.seen_texts is None else self.seen_texts.overlap_with(texts)
        return None if overlap is None else overlap.to_dict()

    def state(self) -> dict[str, Any]:
        """Return the state as plain data and arrays, in the form STATE, for `read`."""
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
    def read(cls, data: Any, normalize: bool, load: Callable[[dict[str, Any]], Any]) -> PipeState:
        """Check a saved state, and build the object. data (Any): From `state`, as read from bytes.

        normalize (bool): The setting of this name, which is not saved. load (Callable): Rebuilds a registered part.
        RAISES InvalidState: the data is not in the form STATE. C001: a cut-off is out of range.
        """
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
