"""Gold in the labels of a pipeline whose pretrained calibration has other names for them: PERSON is PER."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .component import Calibrator

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example


def rename_gold(nlp: Language, examples: list[Example], pipes: Iterable[Any] | None = None) -> list[Example]:
    """Rename gold entities that have the pipeline's own labels as its pretrained calibration names them.

    A label without counterpart (DATE) is no entity then. Gold that has the names already (PER, LOC) stays as it is.
    pipes (Iterable | None): Whose calibration it is; None takes those of the pipeline.
    """
    table = _renamed_labels([pipe for _, pipe in nlp.components] if pipes is None else pipes)
    for example in examples if table else ():
        _rename_entities(example.reference, table)
    return examples


def _renamed_labels(pipes: Iterable[Any]) -> dict[str, str]:
    """The labels of the recognizer that are no names of the gold -> the gold's names, "" for none."""
    table: dict[str, str] = {}
    for pipe in pipes:
        if isinstance(pipe, Calibrator) and pipe.fitted and pipe.fit_info.pretrained is not None and pipe.lookup.span_labels():
            table |= pipe.fit_info.label_map or {}
    return {label: name for label, name in table.items() if label not in table.values()}


def _rename_entities(doc: Doc, table: Mapping[str, str]) -> None:
    from spacy.tokens import Span

    changed = [entity for entity in doc.ents if entity.label_ in table]
    named = [(entity, table[entity.label_]) for entity in changed]
    entities = [
        Span(doc, entity.start, entity.end, name, kb_id=entity.kb_id, span_id=entity.id) for entity, name in named if name
    ]
    if changed:
        doc.set_ents(entities, outside=[entity for entity, name in named if not name], default="unmodified")
