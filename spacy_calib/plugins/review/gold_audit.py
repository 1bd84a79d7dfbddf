"""Audit gold by out-of-fold scores: each fold of documents is scored by a calibration fitted on the other folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy import util
from spacy.training import Example

from ...annotations import Annotation
from ...gold.reading import document_of
from ...pairs.documents import DocumentNumbers, folds_of
from ...pairs.scored_corpus import ScoredCorpus
from ...sources.mapped import map_of
from ...types import Floats
from .audit import Audit, Doubt, GoldSpan, audit_arcs, audit_pairs, audit_rows, audit_spans
from .messages import calib_error

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

N_FOLDS = 5
_BATCH = 128


def audit_gold(calib: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus) -> tuple[str, Audit]:
    """Audit the gold of examples by the scores in `corpus`, which are of the pipe `calib`.

    RETURNS (tuple): Unit of the doubted labels: "token", "entity" or "document"; the audit.
    """
    annotation = calib.source.annotation(calib.lookup.component())
    if annotation.kind.of_arcs:
        return corpus.row_unit, audit_arcs(corpus)
    if calib.lookup.span_labels():
        return "entity", audit_spans(corpus, list(_gold_spans(annotation, examples)), map_of(calib.source))
    if annotation.kind.overlapping:  # a unit may have several labels
        return corpus.row_unit, audit_pairs(corpus)
    return corpus.row_unit, audit_rows(corpus, _read_raw_gold(calib, examples, corpus))


def _read_raw_gold(calib: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus) -> Floats:
    """Return the raw score of the gold label of each row in `corpus`, (n,); NaN if the component lacks it or did not run."""
    component, raw_gold = calib.lookup.component(), np.full(len(corpus), np.nan)
    column = {label: i for i, label in enumerate(calib.source.labels(component))}
    columns_of_names = np.array([*(column.get(name, -1) for name in corpus.names), -1])
    gold_columns = columns_of_names[corpus.gold]  # of each row; -1 in corpus.gold (without gold) takes the -1 at the end
    for indices in util.minibatch(range(len(examples)), _BATCH):
        reasons = calib.source.missing(component, [examples[i].predicted for i in indices])
        readable = [i for i, reason in zip(indices, reasons, strict=True) if not reason]
        if not readable:
            continue
        rows = np.concatenate([np.arange(*corpus.doc_starts[i : i + 2]) for i in readable])  # rows of the corpus that are read
        raw_gold[rows] = 0.0  # of labels that are not among the marginals
        marginals = calib.source.read(component, [examples[i].predicted for i in readable]).marginals_above(0.0)
        is_gold = gold_columns[rows[marginals.rows]] == marginals.tags
        raw_gold[rows[marginals.rows[is_gold]]] = marginals.scores[is_gold]
    raw_gold[gold_columns < 0] = np.nan
    return raw_gold


def _gold_spans(annotation: Annotation, examples: Sequence[Example]) -> Iterator[GoldSpan]:
    """Yield the gold spans that begin and end at borders of predicted tokens."""
    for number, example in enumerate(examples):
        spans = annotation.gold.spans_on(example.reference)
        for span in example.get_aligned_spans_y2x(list(spans), allow_overlap=True):
            yield GoldSpan(number, span.start, span.end, span.label_)


def find_heads(doubt: Doubt, corpus: ScoredCorpus, examples: Sequence[Example]) -> dict[str, Any]:
    """Return a dict with the words of the gold head ("head") and of the predicted head ("suggested_head") of a doubted arc."""
    doc = int(corpus.docs[doubt.first])
    example, token = examples[doc], doubt.first - int(corpus.doc_starts[doc])
    gold_token = example.reference[int(example.alignment.x2y[token][0])]  # the first that is aligned
    return {"head": gold_token.head.text, "suggested_head": example.predicted[token].head.text}


def score_out_of_fold(
    calib: Calibrator,
    examples: Sequence[Example],
    progress: Callable[[Iterable[Any], str], Iterable[Any]] = lambda steps, title: steps,
) -> None:
    """Score each predicted Doc by a fit on the other folds of documents. Afterwards the pipe is fitted as for the last fold.

    examples (Sequence[Example]): `predicted` has what the source reads and the predicted labels, `reference` the gold.
    progress (Callable): (steps, title) -> steps, with a progress bar. RAISES C625: one document only. Others: `Calibrator.fit`.
    """
    numbers = DocumentNumbers()
    documents = np.array([numbers.number(document_of(example)) for example in examples], dtype=np.intp)
    if len(numbers) < 2:
        raise calib_error("C625")
    # Folds have about equally many words, so each word is a row for `folds_of`; an empty Doc counts as one word.
    example_of_word = np.repeat(np.arange(len(examples)), [max(1, len(example.predicted)) for example in examples])
    fold_of = np.zeros(len(examples), dtype=np.intp)
    fold_of[example_of_word] = folds_of(documents[example_of_word], N_FOLDS)
    for fold in progress(range(int(fold_of.max()) + 1), "Fitting and scoring"):
        calib.fit([examples[i] for i in np.flatnonzero(fold_of != fold).tolist()])
        fold_docs = (examples[i].predicted for i in np.flatnonzero(fold_of == fold).tolist())
        for batch in util.minibatch(fold_docs, _BATCH):
            calib.set_annotations(batch, calib.predict(batch))
