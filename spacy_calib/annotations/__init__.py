"""Annotations: each reads one kind of label from Docs, aligns gold labels with predicted ones, and finds which are right.

In configs, saved pipelines and `DocCalib` the name of an annotation ("tag", "ner", "spans:sc", "cats") is called `layer`.
"""

from __future__ import annotations

import json
from functools import cache

from ..errors import calib_error
from .annotation import (
    Annotation,
    Hashes,
    columns_of,
    count_misaligned,
    has_gold,
    is_blank,
    is_space,
    label_hashes,
    rejected_in,
    texts_of,
)
from .arcs import ARC_EVENTS, ArcAnnotation, head_offsets
from .attributes import (
    EXTENSION_PREFIX,
    AttributeAnnotation,
    ExtensionAnnotation,
    MorphAnnotation,
    PosAnnotation,
    SentAnnotation,
)
from .cats import CATS, CatsAnnotation, DocumentAnnotation, cats_from_name
from .kinds import ATTRIBUTE, REJECTED, Kind
from .mapped import MAPPED, MappedAnnotation
from .spans import LINK, SPANS_PREFIX, BiluoAnnotation, EntityAnnotation, LinkAnnotation, SpanAnnotation, span_scores

ANNOTATIONS: dict[str, Annotation] = {
    annotation.name: annotation
    for annotation in (
        AttributeAnnotation("tag", "TAG"),
        AttributeAnnotation("lemma", "LEMMA"),
        AttributeAnnotation("ent_type", "ENT_TYPE"),
        AttributeAnnotation("dep", "DEP"),
        PosAnnotation(),
        MorphAnnotation(),
        SentAnnotation(),
        EntityAnnotation(),
        BiluoAnnotation(),
        LinkAnnotation(),
        *map(ArcAnnotation, ARC_EVENTS),
    )
}


def get_annotation(name: str) -> Annotation:
    """Return the annotation with this name, such as "tag", "spans:sc" or "_.sense". RAISES C001: there is none."""
    if MAPPED in name:  # the name ends with a label map as JSON
        return _mapped_annotation(name)
    if name.startswith(SPANS_PREFIX):
        return SpanAnnotation(name.removeprefix(SPANS_PREFIX))
    if name.startswith(EXTENSION_PREFIX):
        return ExtensionAnnotation(name.removeprefix(EXTENSION_PREFIX))
    if (cats := cats_from_name(name)) is not None:
        return cats
    if name not in ANNOTATIONS:
        raise calib_error("C001", name="layer", wanted=f"one of {', '.join(sorted(ANNOTATIONS))}", given=repr(name))
    return ANNOTATIONS[name]


@cache
def _mapped_annotation(name: str) -> MappedAnnotation:
    """Return the annotation whose name contains a label map, such as 'ner {"PERSON": "PER"}'."""
    inner, _, json_ending = name.partition(MAPPED)  # MAPPED, ' {"', is also the beginning of the JSON
    return MappedAnnotation(get_annotation(inner), json.loads(MAPPED.lstrip() + json_ending))


def plain_name(name: str) -> str:
    """Return an annotation's name without label map and list of categories: "ner" for 'ner {"PERSON": "PER"}'."""
    inner = name.partition(MAPPED)[0]
    return inner.partition(" ")[0] if inner.startswith(CATS) else inner


def kind_of(layer: str) -> Kind:
    """Return the Kind (properties of labels) of the annotation `layer`, ATTRIBUTE if this is "". RAISES C001: no such name."""
    return get_annotation(layer).kind if layer else ATTRIBUTE


__all__ = [
    "ANNOTATIONS", "ARC_EVENTS", "EXTENSION_PREFIX", "LINK", "REJECTED", "SPANS_PREFIX", "Annotation",
    "CatsAnnotation", "DocumentAnnotation", "Hashes", "Kind", "MappedAnnotation", "SpanAnnotation", "columns_of",
    "count_misaligned", "get_annotation", "has_gold", "head_offsets", "is_blank", "is_space", "kind_of", "label_hashes",
    "plain_name", "rejected_in", "span_scores", "texts_of",
]  # fmt: skip
