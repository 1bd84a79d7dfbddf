"""The evaluation of calib pipes on documents with gold, as data from which all tables, pages and pictures are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from spacy.training import Example

from ..annotations import Annotation, count_misaligned, plain_name
from ..calibration.conventions import find_conventions
from ..calibration.grouping.tag_frequency import group_with_singletons
from ..errors import calib_error
from ..gold.checks import EXPECTED
from ..gold.reading import texts_of
from ..metrics.judged_view import JudgedView, judged_entities, judged_tokens, never_right, predicted_indices
from ..metrics.slices import judge_slices, slices_by
from ..metrics.table import calibration_table
from ..pairs.scored_corpus import ScoredCorpus, ScoredSpans
from ..registry import metrics
from ..sources.mapped import map_of, with_map
from ..types import OPEN, Groups
from .cutoffs import entity_tokens
from .fitting import may_differ
from .gold_checks import check_outcomes_of, watch_all
from .label_names import shown_keys
from .scorer import scorer_like
from .silence import check_scored

if TYPE_CHECKING:
    from .component import Calibrator

ENTITIES = "entities"
_SEED = 0  # seed of the simulated noise floor and of intervals
_CALIBRATED_KEYS = ("calibrated", "debiased", "true_low", "true_high")  # of a row of errors: figures of calibrated scores


class UnitTable(NamedTuple):
    """The evaluation of the entities, tokens or documents of a pipe.

    view (JudgedView): The pairs with gold. figures (Mapping): Their `calibration_table` ("errors", "scores" ...), the number of
        "bins", "never_right" (a dict for each label that is often predicted and never right), and if the Docs were divided into
        slices, "slices": "by" (name of the key) and "rows" (a dict per slice).
    """

    view: JudgedView
    figures: Mapping[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class PipeTable:
    """The evaluation of one calib pipe, fitted or not; without a fit raw scores take the place of calibrated ones.

    pipe (Calibrator), corpus (ScoredCorpus): The pipe, and its scores with gold. annotation (Annotation): Layer of its labels.
    units (Mapping): Table of "entities", if the pipe scores these, then of "tokens" or "documents".
    seen (Mapping | None): Overlap of the texts with the fit data. weights_changed (bool | None): Whether the component has
        other weights than at the fit. Both are None if unknown. misaligned (Mapping | None): Numbers of "tokens", and of those
        "left_out" as they align with no single gold token; None for documents.
    accepted (Mapping | None): Number and precision of the spans that precision cut-offs accept; None without cut-offs.
    flagged (Sequence | None): For each recall cut-off its "key", "cutoff", "wanted" recall, and counts of the flagged tokens.
    without_map (Mapping[str, int]): Label that the label map gives no gold label -> number of its predictions. conventions
        (Sequence | None): Labels that gold and component seem to use differently; None if unknown.
    obstacle (str): Why the component gives no new scores (missing or disabled), or "". unfitted (Mapping | None): For an
        unfitted pipe a "verdict" on the raw scores, and the command that would "fit" it.
    """

    pipe: Calibrator
    corpus: ScoredCorpus
    annotation: Annotation
    units: Mapping[str, UnitTable]
    seen: Mapping[str, Any] | None = None
    weights_changed: bool | None = None
    misaligned: Mapping[str, int] | None = None
    accepted: Mapping[str, Any] | None = None
    flagged: Sequence[Mapping[str, Any]] | None = None
    without_map: Mapping[str, int] = field(default_factory=dict)
    conventions: Sequence[Mapping[str, Any]] | None = None
    obstacle: str = ""
    unfitted: Mapping[str, Any] | None = None

    @property
    def component(self) -> str:
        """Name of the component whose scores are calibrated."""
        return self.pipe.source.component

    @property
    def layer(self) -> str:
        """Name of the annotation without a label map, such as "tag", "ner" or "cats"."""
        return plain_name(self.annotation.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, as `evaluate` returns it; without a fit the calibrated figures are None."""
        *span_tables, row_table = self.units.values()  # of entities, if the pipe scores these; of tokens or documents
        table = {
            "component": self.component,
            "layer": self.layer,
            "accuracy_is": self.annotation.kind.accuracy_name,
            "seen": self.seen,
            "weights_changed": self.weights_changed,
            "misaligned": self.misaligned,
            **({"without_map": dict(self.without_map)} if self.without_map else {}),
            **row_table.figures,
        }
        for span_table in span_tables:
            fields = {"called": list(span_table.view.span_words), "event": self.pipe.span_event}
            table[ENTITIES] = {**fields, "accepted": self.accepted, "flagged": self.flagged, **span_table.figures}
        if self.unfitted is not None:
            table = {**_without_calibrated(table), "unfitted": self.unfitted}
        return {**table, "conventions": self.conventions}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of a pipeline on gold.

    name, version, given_as (str): Name and version of the pipeline, and the name or path under which it was loaded. data (str):
    Name of the gold. pipes (Sequence[PipeTable]): The evaluated pipes. notes (Sequence[str]): Why some pipes are not evaluated.
    """

    name: str
    version: str
    given_as: str
    data: str
    pipes: Sequence[PipeTable]
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return pipe name -> its table, as `evaluate` returns them."""
        return {table.pipe.name: table.to_dict() for table in self.pipes}

    @property
    def shown(self) -> list[PipeTable]:
        """The tables to show in pages and pictures: of the pipes whose component gave scores, without an obstacle."""
        return [table for table in self.pipes if not table.obstacle]


def check_evaluable(
    pipes: Sequence[Calibrator], corpora: Sequence[ScoredCorpus], examples: Sequence[Example], silent: bool
) -> None:
    """Check that at least one of the pipes has scores with gold. A single pipe must also have right and wrong predictions.

    corpora (Sequence): Scored corpus of each pipe. examples (Sequence): Predicted Docs with gold. silent (bool): Do not warn
        (CW65) that hardly any prediction of a single pipe is wrong. If no pipe passes, the error is about the first one.
    RAISES C800 to C804: the gold shows no errors of a single pipe, or only errors, or has the same label everywhere. C075,
        C745: no Doc has scores. C030: no Doc with scores has gold. C005: no score of a token with gold reaches the threshold.
    """
    if len(pipes) == 1:
        check_outcomes_of(pipes[0], watch_all(pipes[0], examples), corpora[0], silent, min_expected=EXPECTED)
    if any(len(corpus.pairs()) or (corpus.spans.right >= 0).any() for corpus in corpora):  # pairs, or spans, with gold
        return
    pipe = pipes[0]
    check_scored(pipe, examples)
    if (corpora[0].gold >= 0).any():  # scores and gold, but no score above the threshold is of a token with gold
        raise calib_error("C005", n_pairs=0, threshold=pipe.threshold, minimum=scorer_like(pipe.scorer).n_bins)
    raise calib_error("C030", layer=plain_name(pipe.annotation.name), component=pipe.source.component or "the source")


def evaluate_pipe(
    pipe: Calibrator,
    examples: Sequence[Example],
    corpus: ScoredCorpus,
    n_groups: int | None = None,
    *,
    by: tuple[str, Sequence[str | None]] | None = None,
    obstacle: str = "",
) -> PipeTable:
    """Evaluate the scores that a calib pipe, fitted or not, wrote on predicted Docs.

    corpus (ScoredCorpus): The pipe's scores on `examples`, with gold. n_groups (int | None): Number of tag frequency groups;
        None takes the pipe's groups. by (tuple | None): Name of a key, and its value for each Doc (None: in no slice). The
        Docs of each value are also evaluated as a slice. obstacle (str): Why the component gave no new scores, or "".
    RETURNS (PipeTable): Errors and metrics by unit, effects of cut-offs, and what may explain errors, such as other weights.
    RAISES C308: the pipe has recall cut-offs, but its component gives no P(O) any more.
    """
    annotation, recall_cutoffs, flagged = pipe.annotation, pipe.tokens.recall_cutoffs, None
    if recall_cutoffs is not None:
        flagged_rows = entity_tokens(pipe, examples, corpus).rows_of(recall_cutoffs) if len(corpus) else []
        flagged = [{"wanted": recall_cutoffs.recall, **row} for row in flagged_rows]
    units = {}
    for view in judged_views(pipe, examples, corpus, n_groups):
        figures = unit_figures(view, plain_name(annotation.name))
        if by is not None and not obstacle:
            key, slice_of_doc = by
            figures["slices"] = {"by": key, **_evaluate_slices(corpus, view, slice_of_doc)}
        units[view.kind] = UnitTable(view, figures)
    return PipeTable(
        pipe=pipe,
        corpus=corpus,
        annotation=annotation,
        units=units,
        seen=pipe.learned.overlap_with(texts_of(annotation, examples)),
        weights_changed=pipe.lookup.weights_changed(),
        misaligned=count_misaligned(annotation.gold, examples) if not annotation.kind.of_documents else None,
        accepted=None if pipe.spans.cutoffs is None else _accepted_spans(corpus.spans, pipe),
        flagged=flagged,
        without_map=count_unmapped_predictions(pipe, examples) if pipe.fitted else {},
        conventions=None if obstacle else find_gold_conventions(pipe, corpus),
        obstacle=obstacle,
    )


def _evaluate_slices(corpus: ScoredCorpus, view: JudgedView, slice_of_doc: Sequence[str | None]) -> dict[str, Any]:
    """Return errors of predicted labels in each slice of the Docs, from `judge_slices`. slice_of_doc: Slice of each or None."""
    indices = predicted_indices(corpus, view)
    docs = corpus.docs[view.starts[indices]]  # a unit belongs to the Doc of its first token
    return judge_slices(view, slices_by(slice_of_doc, docs, indices), indices, view.n_bins, view.seed)


def judged_views(
    pipe: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus, n_groups: int | None = None
) -> list[JudgedView]:
    """Return views of the pairs with gold: first of entities, if the pipe scores these, then of tokens or documents.

    corpus (ScoredCorpus): Scores on `examples`. n_groups (int | None): Number of frequency groups; None: the pipe's groups.
    """
    scorer, (groups, span_groups) = scorer_like(pipe.scorer, n_groups), _groups_of(pipe, examples)
    options: dict[str, Any] = {"n_bins": scorer.n_bins, "seed": _SEED, "metrics": metrics()}
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    row_view = judged_tokens(corpus, labels, groups=scorer.groups_to_evaluate(groups, labels), **options)
    if span_groups is None:
        return [row_view]
    options |= {"groups": scorer.groups_to_evaluate(span_groups, span_labels), "span_words": pipe.annotation.kind.span_words}
    return [judged_entities(corpus, span_labels, **options), row_view]


def _groups_of(pipe: Calibrator, examples: Sequence[Example]) -> tuple[Groups, Groups | None]:
    """Return (groups of the labels, groups of the span labels or None): those of the fit, else by frequency in this gold."""
    if pipe.groups is not None:
        return pipe.groups, pipe.spans.groups
    annotation, source, labels, span_labels = pipe.annotation, pipe.source, pipe.lookup.labels(), pipe.lookup.span_labels()
    examples = [example for example in examples if annotation.n_units(example.predicted)]
    references = [example.reference for example in examples]
    # If an arc is right by its head alone (any_label), the gold may have other labels: those of the component are counted.
    docs_to_count = [example.predicted for example in examples] if annotation.kind.any_label else references
    counts = source.count_gold(pipe.lookup.component(), docs_to_count)
    groups = group_with_singletons(pipe.grouping, labels, counts, source.singleton_labels, source.frequency_label)
    span_counts = annotation.count_spans(references)
    return groups, group_with_singletons(pipe.grouping, span_labels, span_counts) if span_labels else None


def unit_figures(view: JudgedView, layer: str) -> dict[str, Any]:
    """Return the `calibration_table` of pairs with gold ("errors", "scores" ...), the number of "bins", and "never_right".

    view (JudgedView): The pairs. layer (str): Their annotation. "never_right": labels that are often predicted and never right;
        [] for lemmas and links, whose labels are not fixed.
    """
    documents = view.documents if view.unit else None  # without a unit nobody knows which pairs are of one document
    figures = calibration_table(
        view.pairs, view.calibrated, view.groups, view.n_bins, view.seed, documents, view.unit, view.metrics
    )
    return {"bins": view.n_bins, **figures, "never_right": [] if layer in OPEN else never_right(view, view.labels)}


def _without_calibrated(table: dict[str, Any]) -> dict[str, Any]:
    """Return the dict of an unfitted pipe (`PipeTable.to_dict`) with all figures of calibrated scores set to None."""
    raw_table = {
        **table,
        "errors": [{**row, **dict.fromkeys(_CALIBRATED_KEYS)} for row in table["errors"]],
        "scores": {key: {**row, "calibrated": None} for key, row in table["scores"].items()},
        "change": {key: dict.fromkeys(row) for key, row in table["change"].items()},
    }
    return {**raw_table, ENTITIES: _without_calibrated(table[ENTITIES])} if ENTITIES in table else raw_table


def count_unmapped_predictions(pipe: Calibrator, examples: Iterable[Example]) -> dict[str, int]:
    """Return label -> number of predictions, for labels that the pipe's label map gives no gold label; most frequent first."""
    annotation = with_map(pipe.source, None).annotation(pipe.lookup.component())  # without the label map
    unmapped = {label for label, gold_label in (map_of(pipe.source) or {}).items() if not gold_label}
    docs = [example.predicted for example in examples] if unmapped else []
    if annotation.kind.of_entities:
        counts = Counter(span.label_ for doc in docs for span in annotation.spans_on(doc))
    else:
        counts = Counter(annotation.label_at(doc, row) for doc in docs for row in range(annotation.n_units(doc)))
    return {label: n for label, n in counts.most_common() if label in unmapped}


def find_gold_conventions(pipe: Calibrator, corpus: ScoredCorpus) -> list[dict[str, Any]]:
    """Find labels that a component and the gold of `corpus` use differently; [] unless each token has one right label.

    RETURNS (list): A dict for each: the component gives "of" tokens the label "said" with a high score, and the gold label of
        "tokens" of them is "gold". "in_gold": number of tokens whose gold label is "said". "file": always 0 here.
    """
    if not may_differ(pipe, pipe.annotation):
        return []
    labels, pairs = pipe.lookup.labels(), corpus.pairs().pairs
    gold = np.where(corpus.gold < len(labels), corpus.gold, -1)  # higher numbers: names that are no label of the component
    gold[corpus.gold < 0] = -2  # tokens without gold
    files = np.zeros(len(pairs), dtype=np.intp)  # all gold counts as one file
    return [convention.to_dict(labels) for convention in find_conventions(pairs, gold, files)]


def _accepted_spans(spans: ScoredSpans, pipe: Calibrator) -> dict[str, Any]:
    """Count the spans with gold that the precision cut-offs of a pipe accept.

    RETURNS (dict): "wanted" precision, "promise" (sentences on how it was ensured), number "kept" (accepted), "share" (kept /
        spans with gold) and "precision" (right / kept); a share is None if it is 0 / 0.
    """
    assert pipe.spans.cutoffs is not None
    has_gold, is_accepted = spans.right >= 0, spans.accept == 1
    hits = spans.right[has_gold & is_accepted]
    n_kept, n_spans = len(hits), int(has_gold.sum())
    return {
        "wanted": pipe.spans.cutoffs.precision,
        "promise": pipe.spans.cutoffs.promise(shown_keys(pipe)),
        "kept": n_kept,
        "share": n_kept / n_spans if n_spans else None,
        "precision": int(hits.sum()) / n_kept if n_kept else None,
    }
