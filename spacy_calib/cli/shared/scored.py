"""What a command judges, ranks or draws: what a calib pipe says of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import calib_error
from ...pairs.documents import DOCUMENT

if TYPE_CHECKING:
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...types import Groups


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """The scored data, and what is to be known of who scored it.

    name (str): Of the pipe. attr (str): Its prefix. component (str): Whose scores they are.
    layer (str): Which annotation the labels are of. about (str): How it was fitted, in a line. counted_on (str): Where tag counts come from.
    labels (Sequence[str]), groups (Groups): Of tokens. span_labels, span_groups: Of entities; None without any. event (str): When one is right.
    called (tuple[str, str]): What entities are called, one and several. spans_first, spans_are_units (bool): See Annotation.
    threshold (float): Scores below it take no part. scorer (Any): Bins and groups to judge by.
    row_unit (str): See ScoredCorpus. corpus (ScoredCorpus): The data, once they are read. seen (dict | None), weights_changed (bool | None): See `shared.evidence`.
    """

    name: str
    attr: str
    component: str
    layer: str
    about: str
    counted_on: str
    labels: Sequence[str]
    groups: Groups
    threshold: float
    row_unit: str
    corpus: Any = None
    span_labels: Sequence[str] = ()
    span_groups: Groups | None = None
    event: str = ""
    called: tuple[str, str] = ("entity", "entities")
    spans_first: bool = True
    spans_are_units: bool = False
    scorer: Any = None
    seen: dict[str, Any] | None = None
    weights_changed: bool | None = None

    def unit_of(self, unit: str | None, whole: bool = False) -> str:
        """The unit that is asked for; without one entities where the pipe scores them, else what has labels.

        whole (bool): Whether sentences and documents may hold several labels. RAISES C065: entities are asked of what finds none. C265: what has labels is
        another unit.
        """
        told = {"name": self.name, "component": self.component or "the source"}
        # A table of rows is judged as one of tokens; what people look at is the whole entity.
        has_entities = self.span_groups is not None or (whole and self.spans_are_units)
        if unit == "entity" and not has_entities:
            raise calib_error("C065", **told)
        own = (self.row_unit, *(("sentence", DOCUMENT) if whole and self.row_unit != DOCUMENT else ()))
        if unit not in (None, "entity", *own):
            raise calib_error("C265", **told, own=self.row_unit, given=unit)
        if whole and self.spans_are_units and unit == self.row_unit:  # the first word of an entity is no question
            return "entity"
        return unit or ("entity" if has_entities and self.spans_first else self.row_unit)


def of_pipe(pipe: Calibrator, corpus: ScoredCorpus | None = None, seen: dict[str, Any] | None = None) -> ScoredModel:
    """What a fitted pipe says."""
    from ...doc.annotations import get_annotation, plain_name

    assert pipe.groups is not None
    annotation = get_annotation(pipe.fit_info.layer)
    return ScoredModel(
        name=pipe.name,
        attr=pipe.attr,
        component=pipe.source.component,
        layer=plain_name(pipe.fit_info.layer),
        about=_about(pipe),
        counted_on=Path(pipe.fit_info.counted_on).name,
        labels=pipe.lookup.labels(),
        groups=pipe.groups,
        threshold=pipe.threshold,
        row_unit=pipe.fit_info.row_unit,
        corpus=corpus,
        span_labels=pipe.lookup.span_labels(),
        span_groups=pipe.spans.groups,
        event=pipe.fit_info.span_event,
        called=annotation.span_words,
        spans_first=annotation.spans_first,
        spans_are_units=annotation.spans_are_units,
        scorer=pipe.scorer,
        seen=seen,
        weights_changed=pipe.lookup.weights_changed(),
    )


def _about(pipe: Calibrator) -> str:
    from ...doc.annotations import get_annotation
    from ...pages.verdict import with_article
    from ...pairs.documents import extent

    info = pipe.fit_info
    parts = [
        f"calibrates {info.component or 'scores on the Doc'}",
        f"method {info.steps}",
        f"fitted on {extent(info.unit, info.docs, info.row_unit, info.tokens)}",
        f"scores from {info.threshold:g}",
    ]
    if pipe.spans.groups is not None:
        one = get_annotation(info.layer).span_words[0]
        parts.append(f"{with_article(one)} is right by the event {pipe.fit_info.span_event}")
    return "; ".join(parts)
