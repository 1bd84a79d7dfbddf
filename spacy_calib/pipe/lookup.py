"""Finds the component that a calib pipe reads in its pipeline, the Docs that it can read, and features of their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..annotations import Annotation, Hashes
from ..annotations.annotation import is_blank
from ..context.features import DocFunction
from ..context.words import Words
from ..errors import calib_error
from ..sources.find import BoundSource, WeightWatch, count_new_labels, find_component, fingerprint
from ..sources.mapped import map_of
from ..types import Floats, Spans

if TYPE_CHECKING:
    from ..doc.top_labels import TopLabels
    from .component import Calibrator

_ATTRIBUTES = [attrs.LOWER, attrs.SUFFIX, attrs.IS_SPACE, attrs.IS_TITLE, attrs.LIKE_NUM]


def words_of(
    docs: Sequence[Doc],
    functions: Sequence[DocFunction] = (),
    first: int = 0,
    further_scores: Mapping[str, Floats] | None = None,
) -> Words:
    """Collect the features of the tokens of consecutive Docs that a context uses: word forms, endings, shapes and others.

    functions (Sequence[DocFunction]): Features to compute from the Docs. first (int): Index in each Doc of the first token that
        counts (may have a label). further_scores (Mapping | None): Name -> a score of each token that the source also reads.
    """
    starts = np.array([0, *accumulate(map(len, docs))])  # number of each Doc's first token, and of all tokens
    tables = [doc.to_array(_ATTRIBUTES) for doc in docs]
    no_tokens = np.zeros((0, len(_ATTRIBUTES)), dtype=np.uint64)  # an empty list of Docs has no table
    table = tables[0] if len(tables) == 1 else np.concatenate([no_tokens, *tables])
    forms, endings, is_space, is_title, like_number = table.T
    is_counted = is_space == 0
    if first:
        is_counted &= np.arange(len(is_counted)) >= np.repeat(starts[:-1] + first, np.diff(starts))
    columns: dict[str, Floats] = {}  # name of a feature -> its values, (n_tokens, k)
    for feature in functions:
        columns[feature.name] = np.asarray(feature.function(docs), dtype=np.float64)
        assert columns[feature.name].ndim == 2
        assert len(columns[feature.name]) == len(table)
    shapes = (is_title + 2 * like_number).view(np.intp)  # 1: title case, 2: like a number, 3: both
    return Words(starts, forms, endings, shapes, is_counted, columns, further_scores or {})


def read_words(
    nlp: Language, context: Any, annotation: Annotation, docs: Sequence[Doc], further_scores: Mapping[str, Floats] | None = None
) -> Words:
    """Collect the features of the tokens (or documents) of consecutive Docs that a context uses.

    context (Any): A context with features of its own, or None. further_scores (Mapping | None): Name -> a score of each unit.
    """
    if annotation.kind.of_documents:
        return Words.of_documents(len(docs), further_scores)
    functions: Sequence[DocFunction] = ()
    if context is not None:  # some contexts need the pipeline to make their functions
        functions = context.functions_in(nlp) if hasattr(context, "functions_in") else context.functions
    return words_of(docs, functions, annotation.kind.first_unit, further_scores)


class SourceLookup:
    """Looks up the component that a calib pipe reads, anew whenever it is needed, since components may be replaced.

    pipe (Calibrator): The calib pipe. nlp (Language): Its pipeline: where it was created, or which it was attached to;
    `add_pipe(source=...)` alone does not change it.
    """

    def __init__(self, pipe: Calibrator, nlp: Language):
        self.pipe = pipe
        self.nlp = nlp
        self._watch = WeightWatch()
        self._bound_parts: tuple[Any, ...] = ()  # the parts of the pipeline with which `_bound` was found
        self._bound: BoundSource | None = None  # the source with its component; None before `bind` finds it
        self._obstacle = ""  # why the pipe could not read the bound component from its place in the pipeline, or ""

    @property
    def name(self) -> str:
        """Name of the pipe in its pipeline; a pipeline that took it with `add_pipe(source=...)` may have renamed it."""
        return next((name for name, pipe in self.nlp.components if pipe is self.pipe), "") or self.pipe.name

    def bind(self, vocab: Vocab | None = None) -> tuple[BoundSource | None, str]:
        """Return (the source with its component, "") or (None, why not). The result is kept until the pipeline changes.

        It is None if the component is missing, or the Docs are of another pipeline; `readable_docs` finds other obstacles. The
        component of a source that reads only Docs is None. vocab (Vocab | None): Vocab of the Docs; None is not checked.
        RAISES C020: labels of the component were removed or reordered since the fit. C022: the source cannot read it.
        """
        nlp, source, fitted_component, bound = self.nlp, self.pipe.source, self.pipe.learned.component, self._bound
        if why := self._why_foreign(vocab):
            return None, why
        # The result is used again while the pipeline has the same active pipes, and this one the same labels and span group.
        span_group = bound and getattr(bound.component, "key", None)
        parts = (*nlp.pipeline, source, source.component, fitted_component, span_group)
        if bound is not None and parts == self._bound_parts and source.labels(bound.component) == bound.labels:
            return bound, ""
        self._bound = None
        component = find_component(nlp, source, fitted_component)
        if component is None and source.component:  # without a name, the source needs no component
            return None, f"the pipeline has no component '{source.component}'"
        if component is not None:
            count_new_labels(source, component, fitted_component, self.pipe.name)  # raises C020
        bound = BoundSource.from_component(source, component)
        self._obstacle = self.obstacle(component)  # for `readable_docs`, so that not every batch looks for one
        if (source.component, component) in nlp.pipeline:  # `parts` do not show if a disabled or renamed one was replaced
            self._bound_parts, self._bound = parts, bound
        return bound, ""

    def _why_foreign(self, vocab: Vocab | None) -> str:
        """Return why Docs with this vocab cannot be read, or ""; None, and the vocab of this pipeline, can always be read."""
        source = self.pipe.source
        if vocab is None or vocab is self.nlp.vocab or not source.component or source.reads_doc_only:
            return ""
        return (
            "the vocab of the Docs is another pipeline's; make Docs by nlp.make_doc, and after add_pipe(source=...) call "
            f"nlp.get_pipe('{self.pipe.name}').attach(nlp), or save the pipeline and load it"
        )

    def in_pipeline(self, nlp: Language) -> SourceLookup:
        """Return a lookup for the same pipe in another pipeline. RAISES C120: the pipe is not there, or cannot read there."""
        pipe = self.pipe
        new_lookup, component = SourceLookup(pipe, nlp), pipe.source.component
        _, why = new_lookup.bind()
        if all(other_pipe is not pipe for _, other_pipe in nlp.components):
            why = "the pipe is not there; call add_pipe(source=...) first"
        elif not why and new_lookup.weights_changed():
            why = f"the component '{component}' has other weights there than at the fit"
        if why:
            raise calib_error("C120", name=pipe.name, why=why)
        return new_lookup

    def component(self) -> Any:
        """Return the component, None if missing or not needed. RAISES C020: it lost or moved labels. C022: it is unreadable."""
        bound, _ = self.bind()
        return None if bound is None else bound.component

    def labels(self) -> tuple[str, ...]:
        """Return the current labels of the source; those of the fit if its component is missing."""
        component = self.component()
        is_missing = component is None and self.pipe.source.component
        return self.pipe.learned.component.labels if is_missing else self.pipe.source.labels(component)

    def span_labels(self) -> tuple[str, ...]:
        """Return the current span labels of the source, or of the fit if its component is missing; () without spans."""
        component = self.component()
        if component is None and self.pipe.source.component:
            spans = self.pipe.learned.info.spans
            return () if spans is None else tuple(spans.labels)
        return self.pipe.source.span_labels(component)

    def component_to_fit(self, vocab: Vocab | None = None) -> Any:
        """Return the component that a fit reads, after checks that it can be calibrated; None if the source needs none.

        vocab (Vocab | None): Vocab of the Docs of the fit; None checks no vocab.
        RAISES C120: the vocab is another pipeline's. C021: the component is missing. C022, C023, C035: it cannot be calibrated.
            C028: it comes after this pipe. C034: the input of the pipe is not the output of the component.
        """
        nlp, source, component_name = self.nlp, self.pipe.source, self.pipe.source.component
        if why := self._why_foreign(vocab):
            raise calib_error("C120", name=self.pipe.name, why=why)
        if not component_name:
            return None
        component = find_component(nlp, source, self.pipe.learned.component)
        if component is None:
            raise calib_error("C021", component=component_name, available=", ".join(nlp.component_names) or "none")
        order, name = nlp.component_names, self.name
        if name in order and component_name in order and order.index(name) < order.index(component_name):
            raise calib_error("C028", name=name, component=component_name)
        if not source.is_trained(component):
            raise calib_error("C023", component=component_name)
        if not source.has_finite_weights(component):
            raise calib_error("C035", component=component_name)
        if obstacle := self.obstacle(component):
            raise calib_error("C034", component=component_name, why=obstacle)
        return component

    def obstacle(self, component: Any) -> str:
        """Return why the pipe, at its position, cannot read the component, or "". component: None if it reads only Docs."""
        return self.pipe.source.obstacle(self.nlp, self.name, component)

    def save_setting(self, setting: str, value: Any) -> None:
        """Write a setting of the source into the pipeline's config, so that it is saved."""
        config = self.nlp.get_pipe_config(self.name)
        if isinstance(config.get("source"), dict):
            config["source"][setting] = value

    def changes(self, component: Any, labels: tuple[str, ...]) -> tuple[str, dict[str, object]] | None:
        """Return (code, values) of a warning: since the fit labels were added (CW03) or weights changed (CW04); else None."""
        source, state = self.pipe.source, self.pipe.learned
        fitted_labels = state.component.labels
        n_added = len(labels) - len(fitted_labels)
        if source.component and fitted_labels and n_added > 0:
            return "CW03", {"n": n_added, "component": source.component}
        if state.weights and self._watch.has_changed(state.weights, self.nlp, component):
            return "CW04", {"component": source.component}
        return None

    def weights_changed(self) -> bool | None:
        """Return whether the component has other weights than at the fit; None if unknown (new labels, or no weights)."""
        (bound, _), state = self.bind(), self.pipe.learned
        if not state.weights or bound is None or bound.component is None:
            return None
        has_new_labels = len(bound.labels) > len(state.component.labels)  # then the weights cannot be compared
        return None if has_new_labels else fingerprint(self.nlp, bound.component) != state.weights

    def readable_docs(self, bound: BoundSource, docs: Sequence[Doc]) -> ReadableDocs:
        """Select the Docs whose labels the source (bound) can score. The result also has the reasons for the other Docs."""
        annotation, source = bound.annotation, bound.source
        obstacle = self._obstacle and self.obstacle(bound.component)  # found again, as it may have been removed since
        reasons = [obstacle] * len(docs) if obstacle else source.missing(bound.component, docs)
        readable = ReadableDocs(bound)
        for index, (doc, why) in enumerate(zip(docs, reasons, strict=True)):
            if not annotation.has_units(doc):
                continue
            hashes = annotation.hashes(doc)
            why_unreadable = why or _why_unlabelled(bound, doc, hashes)
            if not why_unreadable:
                readable.indices.append(index)
                readable.docs.append(doc)
                readable.hashes.append(hashes)
            elif not is_blank(annotation, doc).all():  # white space needs no scores, and no reason
                readable.reasons.append(why_unreadable)
        return readable


def _why_unlabelled(bound: BoundSource, doc: Doc, hashes: Hashes) -> str:
    """Return why a Doc has no labels that a source (bound) could score, or "". hashes: Of each unit's label, 0 for none."""
    annotation = bound.annotation
    if np.count_nonzero(hashes) or bound.source.sets_labels:  # a source may set the labels that a Doc lacks
        return ""
    if annotation.kind.of_links and not annotation.spans_on(doc):  # there is no entity to link
        return ""
    why = f"no {annotation.kind.unit} carries a {annotation.gold.name} annotation; "
    return why + "put the pipe after the component that sets it, and enable that"


@dataclass
class ReadableDocs:
    """The Docs of a batch that a source can read.

    source (BoundSource): The source. docs (list[Doc]), indices (list[int]): The Docs, and the position of each in the batch.
    hashes (list[Hashes]): For each Doc the hash of the label of each token (or of the document).
    reasons (list[str]): For each other Doc, except those of white space only, why it cannot be read.
    top_labels (TopLabels | None): Labels for Docs without labels, if the source sets labels.
    """

    source: BoundSource
    indices: list[int] = field(default_factory=list)
    docs: list[Doc] = field(default_factory=list)
    hashes: list[Hashes] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    top_labels: TopLabels | None = None


def has_foreign_entities(readable: ReadableDocs, spans: Spans | None) -> bool:
    """Return whether one of the readable Docs has entities with scored labels that the recognizer did not set.

    spans (Spans | None): The spans that the source read from the recognizer; their tokens are counted through all Docs.
    """
    source = readable.source.source
    if spans is None or getattr(source, "output_name", "") != "entities":  # only sources of recognizers have this output
        return False
    recognized = {*zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)}
    gold_names = map_of(source) or {}  # label -> its gold label, "" for a label that is not scored
    doc_start = 0  # number of the Doc's first token
    for doc in readable.docs:
        scored_ents = [ent for ent in doc.ents if gold_names.get(ent.label_, ent.label_)]
        if any((doc_start + ent.start, doc_start + ent.end) not in recognized for ent in scored_ents):
            return True
        doc_start += len(doc)
    return False
