"""Names of labels: renames gold labels to the names that a calib pipe uses, and finds the names to display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import SPANS_PREFIX, Annotation, MappedAnnotation, plain_name, rejected_in
from ..annotations.annotation import GOLD_LABELS
from ..annotations.label_schemes import LabelComparison, LabelScheme, read_scheme
from ..doc.top_labels import write_labels
from ..errors import calib_error
from ..gold.contradictions import CONFLICTS
from ..pairs.label_map import shorten_list
from ..sources.mapped import check_map_labels, map_of, with_map
from .component import Calibrator


def match_labels(
    pipe: Calibrator,
    examples: Iterable[Example],
    *,
    gold_names: Mapping[str, str] | None = None,
    further_maps: Iterable[Mapping[str, str]] = (),
) -> LabelScheme | None:
    """Rename the gold labels in the Docs of examples to the names that a calib pipe uses.

    The gold may use the component's names, those of the pipe's label map, or those of a further map. Docs with gold entities or
    spans also record which types the gold never uses; an unfitted pipe gets a map that drops these types.
    examples (Iterable[Example]): All of the gold, since only all its labels together show whose names it uses.
    gold_names (Mapping | None): Component's label -> its name in this gold. further_maps (Iterable): Other such maps to try.
    RETURNS (LabelScheme | None): How the labels of spans correspond; None for annotations without types of spans.
    RAISES C165: `gold_names` has a label that the component does not know. C168: it merges labels of tokens or texts.
    """
    references = [example.reference for example in examples]
    scheme = _find_scheme(pipe, references, gold_names, further_maps)
    if scheme is None:
        names = _names_in_pipe(pipe, gold_names)
        _check_effect(pipe, gold_names or {}, names)
        _rename_labels(references, pipe, names)
        return None
    if scheme.unused_labels and not pipe.fitted:
        pipe.source = with_map(pipe.source, {**scheme.table, **dict.fromkeys(scheme.unused_labels, "")})
    _rename_spans(references, scheme, pipe)
    return scheme


def with_matched_copies(pipe: Calibrator, examples: list[Example]) -> list[Example]:
    """Return copies of examples, with gold labels renamed for a pipe; or the examples themselves if no label is renamed."""
    # Spans are renamed by a scheme; annotations without one, such as tags, by `pipe_names`.
    scheme, pipe_names = _find_scheme(pipe, [example.reference for example in examples]), _names_in_pipe(pipe)
    is_unchanged = not pipe_names if scheme is None else scheme.is_plain and not scheme.renamed_labels
    if is_unchanged:
        return examples
    copies = [Example(example.predicted, example.reference.copy()) for example in examples]
    references = [example.reference for example in copies]
    if scheme is None:
        _rename_labels(references, pipe, pipe_names)
    else:
        _rename_spans(references, scheme, pipe)
    return copies


def _find_scheme(
    pipe: Calibrator,
    references: Sequence[Doc],
    gold_names: Mapping[str, str] | None = None,
    further_maps: Iterable[Mapping[str, str]] = (),
) -> LabelScheme | None:
    """Return how the span labels of gold Docs (references) correspond to the component's; None for labels of tokens or texts.

    gold_names (Mapping | None): Component's label -> its name in this gold, from the user. further_maps: More maps to try.
    """
    component, source = pipe.lookup.component(), with_map(pipe.source, None)
    if gold_names is not None:
        check_map_labels(source, component, gold_names)
    labels, annotation = source.span_labels(component), source.annotation(component)
    if not labels or not annotation.kind.has_types:
        return None
    counts = Counter(span.label_ for doc in references for span in annotation.spans_on(doc))
    docs_with_answers = [doc for doc in references if rejected_in(annotation, doc) is not None]
    rejected_labels = [span.label_ for doc in docs_with_answers for span in doc.spans[annotation.kind.rejected_key]]
    rejected_labels += [label for doc in references for label in doc.user_data.get(CONFLICTS, {}).get("labels", ())]
    return read_scheme(labels, counts, map_of(pipe.source) or {}, further_maps, gold_names, rejected_labels)


def _names_in_pipe(pipe: Calibrator, gold_names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return gold name -> name in the pipe, for tags, parts of speech or categories; {} for others, such as spans.

    Names that are the same in both are left out, and so are gold names that would have several names in the pipe.
    gold_names (Mapping | None): Component's label -> its gold name. None: the gold has names of the component or of the pipe.
    """
    component, label_map, source = pipe.lookup.component(), map_of(pipe.source) or {}, with_map(pipe.source, None)
    # Features are renamed by `gold_names` only: a mapped annotation maps those of the gold itself.
    kinds = ("tag", "pos", "cats") if label_map else ("tag", "pos", "cats", "morph")
    if plain_name(source.annotation(component).gold.name) not in kinds or not (label_map or gold_names):
        return {}
    pipe_name_of = {label: label_map.get(label, label) for label in source.labels(component)}  # "": the label is dropped
    pipe_names_by_gold: dict[str, set[str]] = {}
    for label, pipe_name in pipe_name_of.items():
        pipe_names_by_gold.setdefault((gold_names or {}).get(label, label), set()).add(pipe_name)
    # Without `gold_names`, the gold may use the pipe's names already. They stay, even if they are labels of the component, too.
    names_that_stay = set() if gold_names else {*pipe_name_of.values()}
    unique_names = {gold: next(iter(names)) for gold, names in pipe_names_by_gold.items() if len(names) == 1}
    return {gold: name for gold, name in unique_names.items() if name not in ("", gold) and gold not in names_that_stay}


def _check_effect(pipe: Calibrator, gold_names: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Check that all of `gold_names` rename gold labels. names: From `_names_in_pipe`. RAISES C168: some have no effect."""
    label_map = map_of(pipe.source) or {}
    useless = [
        f"{label}={gold}"
        for label, gold in gold_names.items()
        if gold not in ("", label_map.get(label, label)) and gold not in names
    ]
    if useless:
        raise calib_error("C168", entries=shorten_list(useless), component=pipe.source.component)


def _rename_labels(docs: Iterable[Doc], pipe: Calibrator, names: Mapping[str, str]) -> None:
    """Rename the gold labels of tokens, or categories, of Docs. names: Gold name -> new name; labels without one stay."""
    annotation = with_map(pipe.source, None).annotation(pipe.lookup.component()).gold
    for doc in docs if names else ():
        if annotation.kind.of_documents:
            doc.cats = {names.get(name, name): value for name, value in doc.cats.items()}
        else:  # "" leaves a token's label as it is
            write_labels(doc, plain_name(annotation.name), [names.get(annotation.label(token), "") for token in doc])


def _rename_spans(references: Iterable[Doc], scheme: LabelScheme, pipe: Calibrator) -> None:
    """Rename the gold spans of Docs (references) to a pipe's names by a scheme; do nothing if no label has another name."""
    if scheme.is_plain and not scheme.renamed_labels:
        return
    component = pipe.lookup.component()
    annotation, mapped_name = with_map(pipe.source, None).annotation(component), pipe.source.annotation(component).name
    for doc in references:
        _rename_doc_spans(doc, scheme, annotation, mapped_name)


def _rename_doc_spans(doc: Doc, scheme: LabelScheme, annotation: Annotation, mapped_name: str) -> None:
    """Rename the gold spans of a Doc (of `annotation`) to a pipe's names by a scheme.

    If gold and pipe merge different labels, so that names do not suffice, a LabelComparison is also stored on the Doc, under
    the name of the pipe's annotation (mapped_name).
    """
    new_labels, strings = scheme.renamed_labels, doc.vocab.strings  # gold label -> other name, "" for labels to drop
    spans = list(annotation.spans_on(doc))
    if not scheme.is_plain:
        # (start, end, hash of the component's label) of each span
        span_keys = [(span.start, span.end, strings.add(scheme.gold.get(span.label_, span.label_))) for span in spans]
        doc.user_data[GOLD_LABELS] = {**doc.user_data.get(GOLD_LABELS, {}), mapped_name: LabelComparison(scheme, span_keys)}
    if (key := annotation.kind.rejected_key) in doc.spans:
        # Like accepted spans, they are compared by names in the pipe, or with a LabelComparison by the component's labels.
        names = new_labels if scheme.is_plain else scheme.gold
        doc.spans[key] = [_rename_span(span, names.get(span.label_) or span.label_) for span in doc.spans[key]]
    affected_spans = [span for span in spans if span.label_ in new_labels]
    if not affected_spans:
        return
    if annotation.kind.of_entities:
        entities = [_rename_span(span, new) for span in affected_spans if (new := new_labels[span.label_])]
        spans_to_drop = [span for span in affected_spans if not new_labels[span.label_]]
        doc.set_ents(entities, outside=spans_to_drop, default="unmodified")
    else:
        new_spans = [_rename_span(span, new) for span in spans if (new := new_labels.get(span.label_, span.label_))]
        doc.spans[annotation.name.removeprefix(SPANS_PREFIX)] = new_spans


def _rename_span(span: Span, label: str) -> Span:
    return Span(span.doc, span.start, span.end, label, kb_id=span.kb_id, span_id=span.id)


def maps_on(nlp: Language, component: str) -> list[Mapping[str, str]]:
    """Return the label maps of the fitted pipes that read a component."""
    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.source.component == component]
    return [pipe.fit_info.label_map for pipe in pipes if pipe.fit_info.label_map]


def shown_names(pipe: Calibrator) -> dict[str, str]:
    """Return label of the component -> name to display, "" for a label without scores; only of labels in the pipe's label map.

    The name is the gold label in the map. Users never saw the names of a pretrained calibration: there it is the label itself.
    """
    label_map = map_of(pipe.source) or {}
    if pipe.fit_info.pretrained is None:
        return label_map
    return {label: label if name else "" for label, name in label_map.items()}


def shown_columns(pipe: Calibrator) -> dict[str, str]:
    """Return name in the label map -> label to display, if another and the only one; {} unless the pipe is pretrained."""
    if pipe.fit_info.pretrained is None:
        return {}
    label_map = map_of(pipe.source) or {}
    n_labels = Counter(label_map.values())  # name -> number of labels that have it
    return {name: label for label, name in label_map.items() if name and n_labels[name] == 1 and label != name}


def shown_keys(pipe: Calibrator) -> dict[str, str]:
    """Return label of the component, or name in the label map -> text to display in its place, if that differs.

    For a label it is the name, "name (label)" if several labels share the name, or "" if the label has no scores.
    """
    names = shown_names(pipe)
    n_labels = Counter(names.values())
    is_clear = {name for name, n in n_labels.items() if n == 1 or not name}
    keys = {label: name if name in is_clear else f"{name} ({label})" for label, name in names.items() if name != label}
    return keys | shown_columns(pipe)


def with_shown_names(pipe: Calibrator, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a command, such as `threshold`, with names to display in place of labels.

    The names replace the "key" of each dict in "rows" and the keys of "cutoffs" and "targets", also in the dict "misses".
    """
    keys = shown_keys(pipe)

    def with_names(table: dict[str, Any]) -> dict[str, Any]:
        renamed = dict(table)
        if "rows" in table:
            renamed["rows"] = [{**row, "key": keys.get(row["key"]) or row["key"]} for row in table["rows"]]
        for field in ("cutoffs", "targets"):
            if table.get(field):
                renamed[field] = {keys.get(key) or key: value for key, value in table[field].items()}
        return renamed

    misses = {"misses": with_names(result["misses"])} if "misses" in result else {}
    return {**with_names(result), **misses}


def shown_annotation(pipe: Calibrator) -> Annotation:
    """Return the annotation that a pipe's component sets on Docs, with labels under the names to display."""
    annotation, names = with_map(pipe.source, None).annotation(pipe.lookup.component()), shown_names(pipe)
    return MappedAnnotation(annotation, names) if names else annotation
