"""What labels are: those of the predicted and of the gold Doc, and when a span is right.

Configs, saved pipelines and `DocCalib` call the name of an annotation ("tag", "ner", "spans:sc", "cats") `layer`.
"""

from __future__ import annotations

from functools import cache

from ..errors import calib_error
from ..pairs.documents import TOKEN
from .arcs import ARC_EVENTS, ArcAnnotation, head_places
from .attributes import (
    EXTENSION_PREFIX,
    AttributeAnnotation,
    ExtensionAnnotation,
    MorphAnnotation,
    PosAnnotation,
    SentAnnotation,
)
from .base import (
    REJECTED,
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
from .cats import CATS, MAPPED, CatsAnnotation, DocumentAnnotation, MappedAnnotation, named_cats, named_map
from .spans import (
    FOUND_PREFIX,
    LINK,
    SPANS_PREFIX,
    BiluoAnnotation,
    EntityAnnotation,
    FoundAnnotation,
    LinkAnnotation,
    SpanAnnotation,
    span_scores,
)

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
    """RAISES C001: no annotation has this name."""
    if MAPPED in name:
        return _mapped_annotation(name)
    if name.startswith(SPANS_PREFIX):
        return SpanAnnotation(name.removeprefix(SPANS_PREFIX))
    if name.startswith(FOUND_PREFIX):
        return FoundAnnotation(name.removeprefix(FOUND_PREFIX))
    if name.startswith(EXTENSION_PREFIX):
        return ExtensionAnnotation(name.removeprefix(EXTENSION_PREFIX))
    if (cats := named_cats(name)) is not None:
        return cats
    if name not in ANNOTATIONS:
        raise calib_error("C001", name="layer", wanted=f"one of {', '.join(sorted(ANNOTATIONS))}", given=repr(name))
    return ANNOTATIONS[name]


@cache
def _mapped_annotation(name: str) -> MappedAnnotation:
    inner, table = named_map(name)
    return MappedAnnotation(get_annotation(inner), table)


def plain_name(name: str) -> str:
    """Return the name of an annotation without its map of labels and its categories."""
    inner = name.partition(MAPPED)[0]
    return inner.partition(" ")[0] if inner.startswith(CATS) else inner


def unit_of(layer: str) -> str:
    """Return what a row of an annotation's scores is of, "token" or "document". layer (str): Its name, or ""."""
    return get_annotation(layer).unit if layer else TOKEN


__all__ = [
    "ANNOTATIONS", "ARC_EVENTS", "EXTENSION_PREFIX", "FOUND_PREFIX", "LINK", "REJECTED", "SPANS_PREFIX", "Annotation",
    "CatsAnnotation", "DocumentAnnotation", "Hashes", "MappedAnnotation", "SpanAnnotation", "columns_of",
    "count_misaligned", "get_annotation", "has_gold", "head_places", "is_blank", "is_space", "label_hashes",
    "plain_name", "rejected_in", "span_scores", "texts_of", "unit_of",
]  # fmt: skip
