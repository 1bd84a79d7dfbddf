"""What a pipe reads: the component of its source, in the pipeline that the pipe belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ..calibration.cutoffs import Cutoffs, EntityScores, EntityTypes, RecallCutoffs
from ..calibration.spans import SpanCalibration
from ..calibration.tokens import Calibrated, silent_tokens
from ..corpus.missed import EntityTokens, GoldEntities
from ..corpus.scored import ScoredCorpus
from ..doc.annotations import Annotation, Hashes, get_annotation, label_hashes
from ..doc.likeliest import Likeliest
from ..doc.write import CalibratedBatch, CalibratedSpans, Flags
from ..errors import calib_error
from ..pairs.build import Scores
from ..sources.base import Source
from ..sources.find import Found, find_component, look_up
from ..sources.fingerprint import WeightWatch, fingerprint
from ..types import OUTSIDE, Floats, Groups, Ints, Spans
from .state import PipeState

if TYPE_CHECKING:
    from .calibrating import CalibratingPipe


class Reader(Protocol):
    """What is to be known of a pipe that reads a component."""

    name: str
    source: Source
    learned: PipeState


class SourceLookup:
    """Asks a pipe's pipeline for the component that its source reads.

    pipe (Reader): Whose source, and whose component at the fit.
    nlp (Language): The pipeline that its factory was given, or that it was attached to: `add_pipe(source=...)` lets
        another one run the pipe and tells it nothing.
    """

    def __init__(self, pipe: Reader, nlp: Language):
        self.pipe = pipe
        self.nlp = nlp
        self._watch = WeightWatch()
        self._asked: tuple[Any, ...] | None = None
        self._found = Found(None)
        self._labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The pipe's name in its pipeline: another pipeline that took the pipe may have given it a name since."""
        return next((name for name, own in self.nlp.components if own is self.pipe), "") or self.pipe.name

    def find(self, vocab: Vocab | None = None) -> Found:
        """The component, looked up where the pipeline has changed; nothing where the vocab, that of Docs, is another's."""
        if vocab is not None and vocab is not self.nlp.vocab and (why := self._why_foreign()):
            return Found(None, why)
        source, fitted = self.pipe.source, self.pipe.learned.component
        # As long as the pipeline has the same components, and this one the same labels, what was found is still there.
        asked = (tuple(self.nlp.components), source, source.component, fitted)
        if asked != self._asked or source.labels(self._found.component) != self._labels:
            self._asked = None
            self._found = look_up(self.nlp, source, fitted, self.pipe.name)
            if self._found.component is not None:
                self._asked, self._labels = asked, source.labels(self._found.component)
        return self._found

    def _why_foreign(self) -> str:
        """Why Docs of another vocab cannot be read; "" where they can."""
        if not self.pipe.source.component or self.pipe.source.doc_alone:
            return ""
        return (
            "the vocab of the Docs is another pipeline's; make Docs by nlp.make_doc, and after add_pipe(source=...) call "
            f"nlp.get_pipe('{self.pipe.name}').attach(nlp), or save the pipeline and load it"
        )

    def attached(self, nlp: Language) -> SourceLookup:
        """The same in another pipeline, which stands for it from now on. RAISES C020, C022, C120: see `attach`."""
        pipe = self.pipe
        attached = SourceLookup(pipe, nlp)
        found, component = attached.find(), pipe.source.component
        why = found.why
        if all(own is not pipe for _, own in nlp.components):
            why = "it does not stand there; call add_pipe(source=...) first"
        elif not why and attached.weights_changed():
            why = f"the component '{component}' has other weights there than at the fit"
        if why:
            raise calib_error("C120", name=pipe.name, why=why)
        return attached

    def component(self) -> Any:
        """The component that the source reads, or None where the pipeline has it no more (or the source needs none).

        RAISES C020: its labels were removed or reordered since the fit. C022: the source cannot read it.
        """
        return self.find().component

    def labels(self) -> tuple[str, ...]:
        """The labels that the source has now; those fitted where its component is missing."""
        component = self.component()
        missing = component is None and self.pipe.source.component
        return self.pipe.learned.labels if missing else self.pipe.source.labels(component)

    def span_labels(self) -> tuple[str, ...]:
        """The labels of the spans that the source has now; those fitted where its component is missing; () for a source without."""
        component = self.component()
        if component is None and self.pipe.source.component:
            spans = self.pipe.learned.info.spans
            return () if spans is None else tuple(spans.labels)
        return self.pipe.source.span_labels(component)

    def to_fit(self, vocab: Vocab | None = None) -> Any:
        """The component that a fit would read; None where its source needs none.

        vocab (Vocab | None): Of the Docs.
        RAISES C120: the vocab is another pipeline's. C021: the component is missing. C022, C023, C035: it cannot be
            calibrated. C028: it stands behind this pipe. C034: what it reads is not what the component gave.
        """
        nlp, source, component = self.nlp, self.pipe.source, self.pipe.source.component
        if vocab is not None and vocab is not nlp.vocab and (why := self._why_foreign()):
            raise calib_error("C120", name=self.pipe.name, why=why)
        if not component:
            return None
        fitted = self.pipe.learned.component
        found = find_component(nlp, source, fitted.kind, fitted.labels)
        if found is None:
            raise calib_error("C021", component=component, available=", ".join(nlp.component_names) or "none")
        order, name = nlp.component_names, self.name
        if name in order and component in order and order.index(name) < order.index(component):
            raise calib_error("C028", name=name, component=component)
        if not source.is_trained(found):
            raise calib_error("C023", component=component)
        if not source.has_finite_weights(found):
            raise calib_error("C035", component=component)
        obstacle = source.obstacle(nlp, name, found)
        if obstacle:
            raise calib_error("C034", component=component, why=obstacle)
        return found

    def restore_setting(self, setting: str, value: Any) -> None:
        """Write a setting of the source into the pipeline's config, so that it is saved as it was given."""
        config = self.nlp.get_pipe_config(self.name)
        if isinstance(config.get("source"), dict):
            config["source"][setting] = value

    def changes(self, component: Any, labels: tuple[str, ...]) -> tuple[str, dict[str, object]] | None:
        """(code, values) of what to warn of: new labels, which bring new weights, or else other weights for the same labels."""
        source, learned = self.pipe.source, self.pipe.learned
        fitted = learned.component.labels
        added = len(labels) - len(fitted)
        if source.component and fitted and added > 0:
            return "CW03", {"n": added, "component": source.component}
        if learned.weights and self._watch.changed(learned.weights, self.nlp, component):
            return "CW04", {"component": source.component}
        return None

    def weights_changed(self) -> bool | None:
        """Whether the component has other weights than at the fit: the maps belong to the scores that it gave with those.

        RETURNS: None where that is not known: labels added since, or no component with weights.
        """
        found, learned = self.find(), self.pipe.learned
        if not learned.weights or found.component is None:
            return None
        if len(self.pipe.source.labels(found.component)) > len(learned.labels):
            return None
        return fingerprint(self.nlp, found.component) != learned.weights


@dataclass(frozen=True)
class Reading:
    """What predict found: the Docs that could be read, by their place in the batch, and their scores; batch is None where none could.

    likeliest (Likeliest | None): What those of them get that carry no label (sources with `sets_labels`).
    """

    places: list[int] = field(default_factory=list)
    batch: CalibratedBatch | None = None
    likeliest: Likeliest | None = None


@dataclass(frozen=True)
class Readable:
    """The Docs with input and annotation, by their place in the batch, and the hash of the label that each of their units (tokens) carries.

    reasons (list[str]): Why others could not be read. Docs without tokens are not named.
    """

    places: list[int]
    hashes: list[Hashes]
    reasons: list[str]


def readable(lookup: SourceLookup, component: Any, annotation: Annotation, docs: Sequence[Doc]) -> Readable:
    """Which Docs the source can read. component: What it reads in its pipeline."""
    readable, source = Readable([], [], []), lookup.pipe.source
    blocker = source.obstacle(lookup.nlp, lookup.name, component)
    reasons = [blocker] * len(docs) if blocker else source.missing(component, docs)
    for i, (doc, why) in enumerate(zip(docs, reasons, strict=True)):
        if annotation.n_units(doc) <= annotation.first:
            continue
        carried = annotation.hashes(doc)
        nothing_found = annotation.spans_are_units and not annotation.spans_on(doc)  # says all that there is to say
        if not why and not carried.any() and not source.sets_labels and not nothing_found:
            why = f"no {annotation.unit} carries a {annotation.gold.name} annotation; put the pipe after the component that sets it, and enable that"
        if why:
            readable.reasons.append(why)
            continue
        readable.places.append(i)
        readable.hashes.append(carried)
    return readable


def calibrated_spans(
    calibration: SpanCalibration, source: Source, spans: Spans, labels: tuple[str, ...], event: str, layer: str, view: Any
) -> CalibratedSpans:
    """The spans that a source found, with the probability that each is right. event (str): When it is. layer (str): See CalibratedSpans. view (Any):
    See Calibrated.
    """
    raw = np.where(spans.chosen, source.raw_span_scores(spans), spans.own)
    return CalibratedSpans(spans, labels, raw, *calibration.calibrate(spans, raw, labels, view), event, layer)


def flags_of(
    cutoffs: RecallCutoffs | None,
    scores: Scores,
    calibrated: Calibrated,
    labels: Sequence[str],
    annotation: Annotation,
    threshold: float,
) -> Flags | None:
    """The flags of all tokens that a source read; None without cut-offs.

    scores (Scores): Of the source. calibrated (Calibrated): Its entries above the threshold. labels (Sequence[str]): Of the columns.
    """
    if cutoffs is None:
        return None
    types, marginals = EntityTypes.of(labels, annotation.prefixed), calibrated.marginals
    n = marginals.n_tokens
    entries = EntityScores(marginals.rows, types.of_label[marginals.tags], calibrated.scores, n, threshold)
    by_key = cutoffs.flags(entries, types)
    flagged = np.any([np.zeros(n, dtype=bool), *by_key.values()], axis=0)
    flagged[silent_tokens(scores, marginals.rows)] = False
    rows = np.flatnonzero(flagged)
    likelihood = _likelihoods(scores, entries, types, rows)
    if cutoffs.per == "label":  # as one of those whose own cut-off says so
        likelihood[~np.array([by_key.get(name, np.zeros(n, dtype=bool))[rows] for name in types.names])] = -1.0
    kinds = likelihood.argmax(axis=0)
    certainty = entries.inside[rows] if cutoffs.per == "all" else likelihood[kinds, np.arange(len(rows))]
    column = flagged.astype(np.int8)
    column[silent_tokens(scores, marginals.rows)] = -1
    return Flags(column, rows, types.names, kinds, certainty)


def _likelihoods(scores: Scores, entries: EntityScores, types: EntityTypes, rows: Ints) -> Floats:
    """P(type) of each type at some tokens, shape (n_types, len(rows)): calibrated where the type has an entry, else the raw one, which is below the
    threshold.
    """
    found = np.zeros((len(types.names), len(rows)))
    for column, kind in enumerate(types.of_label.tolist()):
        if kind >= 0:
            found[kind] += scores.at(rows, np.full(len(rows), column))
    for kind in range(len(types.names)):
        found[kind] = np.where(entries.has(kind)[rows], entries.of_type(kind)[rows], found[kind])
    return found


def entity_tokens(pipe: CalibratingPipe, examples: Sequence[Example], corpus: ScoredCorpus) -> EntityTokens:
    """The tokens of gold examples as to entities. corpus (ScoredCorpus): What the pipe said of them. RAISES C308: the pipe gives no P(O)."""
    labels = pipe.lookup.labels()
    if OUTSIDE not in labels or not pipe.source.distributions:
        raise calib_error("C308", name=pipe.name, component=pipe.source.component or "the source")
    annotation = get_annotation(pipe.fit_info.layer)
    return EntityTokens.of(corpus, labels, annotation.prefixed, pipe.threshold, gold_entities(examples, annotation))


def accepted_labels(cutoffs: Cutoffs, batch: CalibratedBatch, groups: Groups) -> NDArray[np.int8]:
    """Whether the label that each unit carries reaches its cut-off: 1 or 0, -1 where it has no score. groups (Groups): Of the labels."""
    calibrated, below = batch.calibrated, batch.calibrated.below
    marginals = calibrated.marginals
    scores, columns = np.full(marginals.n_tokens, np.nan), np.zeros(marginals.n_tokens, dtype=np.intp)
    hashes = label_hashes(batch.labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    own = hashes == batch.carried[marginals.rows]
    scores[marginals.rows[own]], columns[marginals.rows[own]] = calibrated.scores[own], marginals.tags[own]
    if below is not None:
        scores[below.marginals.rows], columns[below.marginals.rows] = below.scores, below.marginals.tags
    accepted = cutoffs.accepts(scores, columns, batch.labels, groups)  # False where there is no score
    return np.where(np.isnan(scores), -1, accepted).astype(np.int8)


def gold_entities(examples: Iterable[Example], annotation: Annotation) -> GoldEntities:
    """The gold entities (or spans) of all examples, by tokens of the predicted Docs, numbered on from Doc to Doc; those
    without a token there are left out.
    """
    starts, ends, labels, first = [], [], [], 0
    for example in examples:
        alignment = example.alignment.y2x
        for span in annotation.gold.spans_on(example.reference):
            tokens = alignment[span.start : span.end]
            if len(tokens):
                starts.append(first + int(tokens.min()))
                ends.append(first + int(tokens.max()) + 1)
                labels.append(span.label_)
        first += len(example.predicted)
    return GoldEntities(np.array(starts, dtype=np.intp), np.array(ends, dtype=np.intp), labels)
