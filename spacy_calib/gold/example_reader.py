"""Reads a component's scores on the Docs of Examples, and pairs them with the gold, as the data of a fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy import util
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import Annotation, Hashes, MappedAnnotation, columns_of, is_blank, label_hashes
from ..annotations.annotation import ONLY_REJECTED
from ..annotations.label_schemes import propose_gold_labels, span_confusions
from ..annotations.span_events import span_hits
from ..calibration.span_fit import SpanData
from ..calibration.token_fit import FitData
from ..calibration.tokens import find_silent
from ..context.words import Words
from ..pairs.documents import RUN, DocumentNumbers, runs_of
from ..pairs.label_map import UnknownGold, map_label
from ..pairs.pairing import concatenate
from ..pairs.scores import Scores
from ..sources.find import BoundSource
from ..types import Ints, Marginals, Pairs, Spans, stack_spans
from .reading import document_of

_BATCH = 128


@dataclass(frozen=True, eq=False)
class _Batch:
    """The scores and gold of a batch of Docs, as rows: one for each token, or one for a whole document.

    n_rows (list[int]): Number of rows of each Doc. n_spans (Ints): Number of gold spans that begin at each row.
    is_start (NDArray[bool]): Whether a sentence begins at each row. gold (Ints): Gold label of each row, as a column of the
    source's labels; -1 if the component does not know it, -2 without gold or score. lacks_gold (NDArray[bool]): Whether each
    row could have gold and has none. pairs (Pairs): The scores of labels. is_known (NDArray[bool]): Whether gold shows for
    each pair if it is right. spans (Spans | None): Spans with a score; None if the source has none. span_hits (Ints): 1 for
    each right span, 0 for a wrong one, -1 without gold. words (Words | None): Words of the tokens if a context needs them.
    """

    n_rows: list[int]
    n_spans: Ints
    is_start: NDArray[np.bool_]
    gold: Ints
    lacks_gold: NDArray[np.bool_]
    pairs: Pairs
    is_known: NDArray[np.bool_]
    spans: Spans | None
    span_hits: Ints
    words: Words | None


class ExampleReader:
    """Pairs the scores of predicted Docs with gold, batch by batch, without keeping Docs in memory.

    source (BoundSource): Reads the scores from Docs; replaced by a new one if the component gets new labels. lowest (float):
    Lower scores are left out. event (str): Rule by which a span counts as right: "exact" asks for the same tokens and label.
    words_of (Callable | None): Predicted Docs -> the words of their tokens, for contexts. in_runs (bool): Whether `data` cuts
    the documents, if they are few and long, into runs of sentences, which then count as documents.
    """

    def __init__(
        self,
        source: BoundSource,
        lowest: float,
        event: str = "exact",
        words_of: Callable[[Sequence[Doc]], Words] | None = None,
        in_runs: bool = False,
    ):
        self.source, self.annotation = source, source.annotation
        self.lowest, self.event, self.words_of, self.in_runs = lowest, event, words_of, in_runs
        self._numbers = DocumentNumbers()
        self.documents: list[int] = []  # number of each Doc's source document, by `_numbers`
        self._files: list[int] = []  # number of each source document's gold file
        self.files: Sequence[int] = []  # the same, or that of each run of sentences; set by `data`
        self.unit = ""  # what these documents are, such as "sentence"; set by `data`
        self.counts: Counter[str] = Counter()  # gold label -> number of tokens
        self.span_counts: Counter[str] = Counter()  # label -> number of gold spans
        self.n_unknown = self.n_gold = 0  # tokens with an unknown gold label, and with gold
        self.why_missing = ""  # why the last unreadable Doc could not be read; "" if all were read
        self._batches: list[_Batch] = []  # the scores and gold that were read
        self._confusions: Counter[tuple[int, int]] = Counter()  # (column of predicted label, gold hash) -> tokens
        self._span_confusions: Counter[tuple[str, str]] = Counter()  # (predicted label, gold label) -> gold spans

    def read_all(self, examples: Iterable[Example]) -> ExampleReader:
        """Read examples, and return the reader. RAISES C024, C040, C041: the scores are not probabilities."""
        for batch in util.minibatch(examples, size=_BATCH):
            self._read_batch(batch)
        return self

    def _read_batch(self, batch: Sequence[Example]) -> None:
        """Score the Docs of a batch, compare them with their gold, and count the tokens with and without known gold labels."""
        examples = self._count_and_select([eg for eg in batch if self.annotation.n_units(eg.predicted)])
        if not examples:
            return
        docs = [eg.predicted for eg in examples]
        scores = self.source.read(docs)
        self.source = self.source.with_current_labels()  # a component may have got new labels when it ran
        span_hits = np.zeros(0, dtype=np.intp)
        if scores.spans is not None:
            span_hits = hits_of_spans(self.annotation, examples, scores.spans, self.source.span_labels, self.event)
            self._count_confusions(examples, scores.spans)
        n_sentences, n_spans = [], []  # for each Doc: the number of sentences, and of gold spans, that begin at each row
        for example in examples:
            gold, document = example.reference, document_of(example)
            self.documents.append(self._numbers.number(document))
            if self.documents[-1] == len(self._files):  # the first Doc of this document
                self._files.append(document.file)
            # A Doc without sentence annotation is one sentence.
            sentences = gold.sents if gold.has_annotation("SENT_START") else [gold[:]]
            n_sentences.append(count_gold_begins(self.annotation, example, sentences))
            n_spans.append(count_gold_begins(self.annotation, example, self.annotation.spans_on(gold)))
        batch_data = _Batch(
            n_rows=[self.annotation.n_units(doc) for doc in docs],
            n_spans=np.concatenate(n_spans),
            is_start=np.concatenate(n_sentences) > 0,
            spans=scores.spans,
            span_hits=span_hits,
            words=None if self.words_of is None else replace(self.words_of(docs), further_scores=scores.further_scores),
            **self._compare_with_gold(examples, scores),
        )
        self._batches.append(batch_data)

    def _count_and_select(self, examples: list[Example]) -> list[Example]:
        """Count the gold labels of examples, and return the examples from whose predicted Docs the source can read scores."""
        # If only heads are compared, arcs have their predicted labels whatever the gold labels are.
        docs_to_count = (eg.predicted if self.annotation.kind.any_label else eg.reference for eg in examples)
        self.counts.update(self.source.count_gold(docs_to_count))
        self.span_counts.update(self.annotation.count_spans(eg.reference for eg in examples))
        reasons = self.source.missing([eg.predicted for eg in examples])
        self.why_missing = next(filter(None, reasons), self.why_missing)
        return [eg for eg, why in zip(examples, reasons, strict=True) if not why]

    def _count_confusions(self, examples: Sequence[Example], spans: Spans) -> None:
        """Count (predicted, gold) labels of spans that overlap. spans: Scored spans, of which those on the Docs count."""
        if not self.annotation.kind.has_types:
            return
        predicted, labels = spans.take(np.flatnonzero(spans.on_doc)), self.source.span_labels
        keys = list(zip(predicted.starts.tolist(), predicted.ends.tolist(), predicted.labels.tolist(), strict=True))
        offset = 0  # row of the Doc's first token in the batch
        for example in examples:
            next_offset = offset + len(example.predicted)
            in_doc = [key for key in keys if offset <= key[0] < next_offset]
            doc_spans = [(start - offset, end - offset, labels[column]) for start, end, column in in_doc]
            self._span_confusions.update(span_confusions(self.annotation, example, doc_spans))
            offset = next_offset

    def _compare_with_gold(self, examples: Sequence[Example], scores: Scores) -> dict[str, Any]:
        """Compare the scores of a batch with its gold, and count the gold.

        RETURNS (dict): The fields "gold", "lacks_gold", "pairs" and "is_known" of its `_Batch`, which describes them.
        """
        annotation, marginals = self.annotation, scores.marginals_above(self.lowest)
        hashes = np.concatenate([annotation.aligned_gold(eg) for eg in examples])  # of each unit's gold label, 0 without gold
        gold = gold_columns(marginals, hashes, (*self.source.labels, *annotation.kind.no_label_names))
        self._confusions.update(confusions(marginals, gold, hashes))
        self.n_gold += int(np.count_nonzero(hashes))
        if not annotation.kind.any_label:  # if only heads are compared, no label is unknown
            self.n_unknown += int(np.count_nonzero((gold == -1) & (hashes != ONLY_REJECTED)))
        # White space, and units before the first one that can have a label, do not count as lacking gold.
        blank = np.concatenate([is_blank(annotation, eg.predicted) for eg in examples])
        unit_numbers = np.concatenate([np.arange(annotation.n_units(eg.predicted)) for eg in examples])
        without_gold = (gold == -2) & ~blank & (unit_numbers >= annotation.kind.first_unit)
        # Tokens without a score are left out, as if they had no gold.
        silent = find_silent(scores, marginals.rows)
        gold[silent] = -2
        without_gold[silent] = False
        hits, is_known = _hits_of(annotation, examples, marginals, gold, self.source.labels)
        pairs = Pairs(marginals.rows, marginals.tags, marginals.scores, hits, len(gold))
        return {"gold": gold, "lacks_gold": without_gold, "pairs": pairs, "is_known": is_known}

    def data(self, threshold: float) -> tuple[FitData, SpanData | None]:
        """Return (fit data of tokens, that of spans or None), and set `unit` and `files`. threshold: Lowest score to fit on."""
        gold, without_gold, is_known = (self._concatenate(name) for name in ("gold", "lacks_gold", "is_known"))
        pairs = concatenate([batch.pairs for batch in self._batches])
        documents = np.repeat(np.array(self.documents, dtype=np.intp), self._concatenate("n_rows"))
        self.unit, self.files = self._numbers.unit, self._files
        may_cut = self.in_runs and not self.annotation.kind.of_documents
        runs = runs_of(documents, self._concatenate("is_start")) if may_cut else None  # number of each row's run of sentences
        if runs is not None:
            first_rows = np.unique(runs, return_index=True)[1]  # the first row of each run
            self.unit, self.files = RUN, [self._files[document] for document in documents[first_rows].tolist()]
            documents = runs
        known_pairs = pairs.take(np.flatnonzero(is_known))
        unlabelled_pairs = pairs.take(np.flatnonzero(without_gold[pairs.rows]))
        words = [batch.words for batch in self._batches if batch.words is not None]
        data = FitData(
            pairs=replace(known_pairs, n_units=self.n_gold),
            gold=gold,
            documents=documents[known_pairs.rows],
            n_tags=len(self.source.labels),
            threshold=threshold,
            unlabelled_pairs=unlabelled_pairs,
            unlabelled_documents=documents[unlabelled_pairs.rows],
            words=Words.concatenate(words) if words else None,
            is_complete=len(known_pairs) == int(np.count_nonzero(gold[pairs.rows] != -2)),
        )
        return data, self._spans(documents) if self.source.span_labels else None

    def _spans(self, documents: Ints) -> SpanData:
        """Return the data of the spans of all batches. documents (Ints): The document of each row (token) of all batches."""
        spans_by_batch = [batch.spans for batch in self._batches if batch.spans is not None]
        spans = stack_spans(spans_by_batch, [len(batch.gold) for batch in self._batches])
        raw = self.source.source.raw_span_scores(spans)
        # Number of gold spans of each document: the sum of `n_spans` over its rows.
        n_gold = np.bincount(documents, weights=self._concatenate("n_spans"), minlength=len(self.files)).astype(np.intp)
        return SpanData(spans, raw, self._concatenate("span_hits"), documents[spans.starts], n_gold)

    def unknown_gold(self) -> UnknownGold:
        """Return the gold labels that the component does not know, and its predictions for them."""
        labels = self.source.labels
        label_by_hash = {get_string_id(label): label for label in self.counts}
        token_confusions = {
            (labels[column] if column >= 0 else "", label_by_hash[gold_hash]): n
            for (column, gold_hash), n in self._confusions.items()
            if gold_hash in label_by_hash  # others are hashes of lemmas, if the labels are edit trees
        }
        unknown = UnknownGold.from_confusions(token_confusions, self.n_unknown, self.counts, labels)
        return unknown_spans(self.annotation, self.source.span_labels, self._span_confusions, unknown)

    def _concatenate(self, name: str) -> NDArray[Any]:
        """Return one field of all batches, such as "gold": its arrays or lists one after the other."""
        dtype = np.bool_ if name in ("lacks_gold", "is_known", "is_start") else np.intp
        return np.concatenate([np.zeros(0, dtype=dtype), *(getattr(batch, name) for batch in self._batches)]).astype(dtype)


def unknown_spans(
    annotation: Annotation, labels: Sequence[str], confusions: Mapping[tuple[str, str], int], of_tokens: UnknownGold
) -> UnknownGold:
    """Return the gold labels that a component does not know, and propose which of its labels they may be other names of.

    annotation, labels: The component's annotation, and its span labels. confusions (Mapping): (predicted, gold) label -> number
        of overlapping gold spans, for the proposals. of_tokens (UnknownGold): The unknown gold labels of tokens.
    RETURNS (UnknownGold): The unknown labels of tokens, or if there are none, those of spans. The proposals are added to both.
    """
    if not annotation.kind.has_types or not confusions:
        return of_tokens
    table = annotation.table if isinstance(annotation, MappedAnnotation) else {}
    mapped = {label: map_label(table, label) for label in labels}  # label of the component -> gold label
    gold_counts, unknown = Counter[str](), Counter[tuple[str, str]]()
    for (predicted, gold), n in confusions.items():
        gold_counts[gold] += n
        if gold not in mapped.values():
            unknown[predicted, gold] += n
    absent_labels = [label for label in labels if mapped[label] not in gold_counts]
    counterparts = propose_gold_labels(absent_labels, list(dict.fromkeys(gold for _, gold in unknown)), confusions)
    if of_tokens.n:
        return replace(of_tokens, counterparts=counterparts)
    of_spans = UnknownGold.from_confusions(unknown, unknown.total(), gold_counts, list(mapped))
    return replace(of_spans, counterparts=counterparts, unit=annotation.kind.span_words[0] if of_spans.n else "")


def confusions(marginals: Marginals, gold: Ints, hashes: Hashes) -> Counter[tuple[int, int]]:
    """Count tokens with gold by (column of the label with the highest score, -1 if none has a score; hash of the gold label).

    marginals (Marginals): The scores. gold (Ints): Column of each token's gold label, -2 for none. hashes: Hash of this label.
    """
    order = np.argsort(marginals.scores, kind="stable")
    top_columns = np.full(len(gold), -1)
    top_columns[marginals.rows[order]] = marginals.tags[order]  # ascending scores: the highest one of a token is written last
    has_gold = gold != -2
    return Counter(zip(top_columns[has_gold].tolist(), hashes[has_gold].tolist(), strict=True))


def _hits_of(
    annotation: Annotation, examples: Sequence[Example], marginals: Marginals, gold: Ints, labels: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (hits, is_known) for the entries of marginals: whether the label is right, and whether the gold shows this.

    marginals (Marginals): Of all examples; their rows are tokens or documents. gold (Ints): Column of each row's gold label; -2
    for rows to leave out. labels (Sequence[str]): Label of each column; for lemmas a column is an edit tree, and the label is
    in `marginals.names`.
    """
    takes_part = gold[marginals.rows] != -2
    # Columns alone do not decide on arcs (heads count), units with several right labels, and gold of yes/no answers.
    has_answers = any(annotation.rejected_labels(eg) is not None for eg in examples)
    if not (annotation.kind.overlapping or annotation.kind.of_arcs or has_answers):
        return gold[marginals.rows] == marginals.tags, takes_part
    hashes = label_hashes(labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    offsets = np.cumsum([0, *(annotation.n_units(eg.predicted) for eg in examples)])  # first row of each example
    bounds = np.searchsorted(marginals.rows, offsets)  # first entry of each example, as rows ascend
    hits, is_known = [], []
    for example, offset, start, end in zip(examples, offsets[:-1], bounds[:-1], bounds[1:], strict=True):
        units = marginals.rows[start:end] - offset  # numbered within the example
        hits.append(annotation.is_gold(example, units, hashes[start:end]))
        is_known.append(annotation.is_known(example, units, hashes[start:end]))
    return np.concatenate(hits), np.concatenate(is_known) & takes_part


def hits_of_spans(annotation: Annotation, examples: Sequence[Example], spans: Spans, labels: Sequence[str], event: str) -> Ints:
    """Return for each span whether it is right by the gold: 1 or 0, -1 without gold.

    spans (Spans): Spans of the predicted Docs; their rows count tokens through all examples. labels (Sequence[str]): Labels
        of the columns of spans. event (str): When a span counts as right, such as "exact".
    """
    hashes = label_hashes(labels).tolist()
    offsets = np.cumsum([0, *(len(eg.predicted) for eg in examples)])  # first row of each example
    example_of_span = np.searchsorted(offsets, spans.starts, side="right") - 1
    hits = np.full(len(spans), -1, dtype=np.intp)
    for number in np.unique(example_of_span).tolist():
        indices, offset = np.flatnonzero(example_of_span == number), int(offsets[number])
        starts, ends = (spans.starts[indices] - offset).tolist(), (spans.ends[indices] - offset).tolist()
        columns = spans.labels[indices].tolist()
        keys = [(start, end, hashes[column]) for start, end, column in zip(starts, ends, columns, strict=True)]
        hits[indices] = span_hits(examples[number], annotation, keys, event)
    return hits


def gold_columns(marginals: Marginals, gold: Hashes, labels: Sequence[str]) -> Ints:
    """Return the column of each token's gold label in the scores: -1 if no column has this label, -2 without gold.

    gold (Hashes): Hash of each token's gold label, 0 for none. labels (Sequence[str]): Label of each column. If the marginals
        have names (lemmas, as columns are edit trees), the gold is compared with the names of a token's entries instead.
    """
    if marginals.names is None:
        return columns_of(gold, labels)
    columns = np.where(gold != 0, -1, -2)
    is_gold = (label_hashes(marginals.names) == gold[marginals.rows]) & (gold[marginals.rows] != 0)
    columns[marginals.rows[is_gold]] = marginals.tags[is_gold]
    return columns


def count_gold_begins(annotation: Annotation, example: Example, spans: Iterable[Span]) -> Ints:
    """Count the gold spans that begin in each token of the predicted Doc; for categories, in all of it. spans: Of the gold."""
    n_units = annotation.n_units(example.predicted)
    offsets = [token.idx for token in example.predicted][:n_units]  # in characters; only the first token of a document unit
    rows = np.searchsorted(offsets, [span.start_char for span in spans], side="right") - 1  # last unit that begins before it
    return np.bincount(np.maximum(rows, 0), minlength=n_units).astype(np.intp)
