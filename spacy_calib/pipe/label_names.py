"""The names of labels: those of gold, matched to those of pipes, and those that people are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import SPANS_PREFIX, Annotation, MappedAnnotation, plain_name, rejected_in
from ..annotations.label_schemes import LabelComparison, LabelScheme, has_types, read_scheme
from ..doc.top_labels import write_labels
from ..pairs.documents import DOCUMENT
from ..sources.mapped import check_map_labels, map_of, with_map
from .calibrating import CalibratingPipe

# Annotations whose gold is renamed label by label; that of spans by its scheme.
_RENAMED = ("tag", "pos", "cats")


def match_labels(
    pipe: CalibratingPipe,
    examples: Iterable[Example],
    *,
    given: Mapping[str, str] | None = None,
    others: Iterable[Mapping[str, str]] = (),
    all_types: bool = False,
) -> LabelScheme | None:
    """Give gold entities, or spans, the names that they have in a pipe; their Docs remember what the gold does not tell.

    The gold may have the pipeline's names, those of the pipe's map, or those of a card. A pipe that is not fitted gets a map of the
    types that the gold never uses: they have no counterpart.

    examples: All of the gold, as it decides together. given (Mapping | None): Label of the component -> its name in this gold.
    others (Iterable): Further names of labels. all_types (bool): Whether types that the gold never uses are judged, as wrong.
    RETURNS (LabelScheme | None): None where there are no spans with labels, or no gold.
    RAISES C165: `given` names a label that the component does not have.
    """
    references = [example.reference for example in examples]
    scheme = _find_scheme(pipe, references, given, others)
    if scheme is None:
        _rename_labels(references, pipe, _own_names(pipe, given))
        return None
    scheme = replace(scheme, unused_labels=()) if all_types else scheme
    if scheme.unused_labels and not pipe.fitted:
        pipe.source = with_map(pipe.source, {**scheme.table, **dict.fromkeys(scheme.unused_labels, "")})
    _match_docs(references, scheme, pipe)
    return scheme


def with_matched_copies(pipe: CalibratingPipe, examples: list[Example]) -> list[Example]:
    """The examples, with copies of the gold where `match_labels` would change it: other pipes compare themselves with it, too."""
    scheme, own_names = _find_scheme(pipe, [example.reference for example in examples]), _own_names(pipe)
    if not own_names if scheme is None else scheme.is_plain and not scheme.renamed_labels:
        return examples
    copies = [Example(example.predicted, example.reference.copy()) for example in examples]
    if scheme is None:
        _rename_labels([example.reference for example in copies], pipe, own_names)
    else:
        _match_docs([example.reference for example in copies], scheme, pipe)
    return copies


def _find_scheme(
    pipe: CalibratingPipe,
    references: Sequence[Doc],
    given: Mapping[str, str] | None = None,
    others: Iterable[Mapping[str, str]] = (),
) -> LabelScheme | None:
    component, source = pipe.lookup.component(), with_map(pipe.source, None)
    if given is not None:
        check_map_labels(source, component, given)
    labels, annotation = source.span_labels(component), source.annotation(component)
    if not labels or not has_types(annotation):
        return None
    counts = Counter(span.label_ for doc in references for span in annotation.spans_on(doc))
    rejected = [
        span.label_
        for doc in references
        if rejected_in(annotation, doc) is not None
        for span in doc.spans[annotation.rejected_key]
    ]
    return read_scheme(labels, counts, map_of(pipe.source) or {}, others, given, rejected)


def _own_names(pipe: CalibratingPipe, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Name of a tag, part of speech or category in gold -> its name in a pipe, where that is another one, and only one.

    given (Mapping | None): Label of the component -> its name in the gold; without it gold may have the component's names where a map has others.
    """
    component, table = pipe.lookup.component(), map_of(pipe.source) or {}
    source = with_map(pipe.source, None)
    if plain_name(source.annotation(component).gold.name) not in _RENAMED or not (table or given):
        return {}
    labels, names = source.labels(component), dict[str, set[str]]()
    for label in labels:
        names.setdefault((given or {}).get(label, label), set()).add(table.get(label, label))
    is_kept = {} if given else {table.get(label, label): True for label in labels}  # the pipe's own names come first
    return {
        name: other
        for name, others in names.items()
        if len(others) == 1 and (other := min(others)) not in ("", name) and name not in is_kept
    }


def _rename_labels(docs: Iterable[Doc], pipe: CalibratingPipe, names: Mapping[str, str]) -> None:
    """Rename the gold tags, parts of speech or categories of Docs. names (Mapping): See `_own_names`."""
    annotation = with_map(pipe.source, None).annotation(pipe.lookup.component()).gold
    for doc in docs if names else ():
        if annotation.unit == DOCUMENT:
            doc.cats = {names.get(name, name): value for name, value in doc.cats.items()}
        else:
            write_labels(doc, plain_name(annotation.name), [names.get(annotation.label(token), "") for token in doc])


def _match_docs(references: Iterable[Doc], scheme: LabelScheme, pipe: CalibratingPipe) -> None:
    component = pipe.lookup.component()
    annotation, name = with_map(pipe.source, None).annotation(component), pipe.source.annotation(component).name
    for doc in () if scheme.is_plain and not scheme.renamed_labels else references:
        _match_doc(doc, scheme, annotation, name)


def _match_doc(doc: Doc, scheme: LabelScheme, annotation: Annotation, name: str) -> None:
    """Rename the gold spans of a Doc. annotation (Annotation): Of the component. name (str): Of the pipe's annotation."""
    renamed, strings = scheme.renamed_labels, doc.vocab.strings
    spans = list(annotation.spans_on(doc))
    if not scheme.is_plain:
        keys = [(span.start, span.end, strings.add(scheme.gold.get(span.label_, span.label_))) for span in spans]
        LabelComparison.from_scheme(scheme, keys).write(doc, name)
    if annotation.rejected_key in doc.spans:
        rejected = doc.spans[annotation.rejected_key]
        table = renamed if scheme.is_plain else scheme.gold
        doc.spans[annotation.rejected_key] = [_renamed(span, table.get(span.label_) or span.label_) for span in rejected]
    changed = [span for span in spans if span.label_ in renamed]
    if not changed:
        return
    if annotation.of_entities:
        entities = [_renamed(span, new) for span in changed if (new := renamed[span.label_])]
        outside = [span for span in changed if not renamed[span.label_]]
        doc.set_ents(entities, outside=outside, default="unmodified")
    else:
        new_spans = [_renamed(span, new) for span in spans if (new := renamed.get(span.label_, span.label_))]
        doc.spans[annotation.name.removeprefix(SPANS_PREFIX)] = new_spans


def _renamed(span: Span, label: str) -> Span:
    return Span(span.doc, span.start, span.end, label, kb_id=span.kb_id, span_id=span.id)


def maps_on(nlp: Language, component: str) -> list[Mapping[str, str]]:
    """The names that fitted pipes have for the labels of a component."""
    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, CalibratingPipe) and pipe.source.component == component]
    return [pipe.fit_info.label_map for pipe in pipes if pipe.fit_info.label_map]


def shown_names(pipe: CalibratingPipe) -> dict[str, str]:
    """Label of the component -> its name on screens and in queues, "" for one without scores; the others keep their name.

    Names are those of the pipeline, unless the user fitted with a map: then the gold's.
    """
    table = map_of(pipe.source) or {}
    return table if pipe.fit_info.pretrained is None else {label: label if name else "" for label, name in table.items()}


def shown_columns(pipe: CalibratingPipe) -> dict[str, str]:
    """Label of a token score -> its name on screens, where it is another one: the only label of the component that it stands for."""
    table, owners = {} if pipe.fit_info.pretrained is None else map_of(pipe.source) or {}, dict[str, list[str]]()
    for label, name in table.items():
        owners.setdefault(name, []).append(label)
    return {name: labels[0] for name, labels in owners.items() if name and len(labels) == 1 and labels[0] != name}


def merged_labels(pipe: CalibratingPipe) -> dict[str, str]:
    """Label of the component -> the label of a token score that stands for several, it among them."""
    table = map_of(pipe.source) or {}
    n_owners = Counter(table.values())
    return {label: name for label, name in table.items() if name and n_owners[name] > 1}


def with_shown_names(pipe: CalibratingPipe, result: dict[str, Any]) -> dict[str, Any]:
    """A result whose rows have the names that people are shown; where labels share one, the label stands behind it."""
    names = shown_names(pipe)
    n_owners = Counter(names.values())
    keys = {label: name if n_owners[name] == 1 else f"{name} ({label})" for label, name in names.items() if name != label}
    keys |= shown_columns(pipe)

    def renamed(table: dict[str, Any]) -> dict[str, Any]:
        rows = [{**row, "key": keys.get(row["key"]) or row["key"]} for row in table.get("rows", ())]
        cutoffs = {keys.get(key) or key: cutoff for key, cutoff in table.get("cutoffs", {}).items()}
        return {**table, **({"cutoffs": cutoffs} if "cutoffs" in table else {}), **({"rows": rows} if "rows" in table else {})}

    return {**renamed(result), **({"misses": renamed(result["misses"])} if "misses" in result else {})}


def shown_annotation(pipe: CalibratingPipe) -> Annotation:
    """The annotation of Docs with the names that people are shown."""
    annotation, table = with_map(pipe.source, None).annotation(pipe.lookup.component()), shown_names(pipe)
    return MappedAnnotation(annotation, table) if table else annotation
