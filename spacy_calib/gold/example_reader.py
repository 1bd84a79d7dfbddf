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

    n_rows (list[int]): Number of rows of each Doc.
    n_spans (Ints), starts (NDArray[bool]): Number of gold spans that begin at each row; whether a sentence begins there.
    gold (Ints), lacks_gold (NDArray[bool]): Column of each row's gold label, -1 if unknown to the component, -2 without gold or
        score; whether the row could have gold and has none.
    pairs (Pairs): All scores of labels. is_known (NDArray[bool]): For each, whether gold shows if the label is right.
    spans (Spans | None), span_hits (Ints): Predicted spans; 1 for each right one, 0 for a wrong one, -1 without gold.
    words (Words | None): Words of the tokens; None if no context needs them.
    """

    n_rows: list[int]
    n_spans: Ints
    starts: NDArray[np.bool_]
    gold: Ints
    lacks_gold: NDArray[np.bool_]
    pairs: Pairs
    is_known: NDArray[np.bool_]
    spans: Spans | None
    span_hits: Ints
    words: Words | None


class ExampleReader:
    """Pairs the scores of predicted Docs with gold, batch by batch, without keeping Docs in memory.

    source (BoundSource): The source, updated if the component gets new labels. lowest (float): Minimum score of entries. event
    (str): When a span is right, such as "exact". words_of (Callable | None): Predicted Docs -> the words of their tokens.
    in_runs (bool): Whether few long documents are cut into runs of sentences, which then are the documents. counts, span_counts
    (Counter): Gold frequency of each label. documents (list[int]): The document of each Doc. unit (str), files (Sequence[int]):
    What a document is, and the number of each document's gold file; set by `data`. n_gold, n_unknown (int): Tokens with gold,
    and with an unknown gold label. why_missing (str): Why the last unreadable Doc could not be read; "" if all were read.
    """

    def __init__(
        self,
        source: BoundSource,
        lowest: float,
        event: str = "exact",
        words_of: Callable[[Sequence[Doc]], Words] | None = None,
        in_runs: bool = False,
    ):
        """Begin empty. lowest: Lower scores are left out. in_runs: Whether few, long documents are cut into runs of sentences.

        words_of: Predicted Docs -> the words of their tokens, for contexts. event: When a span is right, such as "exact".
        """
        self.source, self.annotation = source, source.annotation
        self.lowest, self.event, self.words_of, self.in_runs = lowest, event, words_of, in_runs
        self._numbers = DocumentNumbers()
        self.documents: list[int] = []  # number of each Doc's source document, by `_numbers`
        self._files: list[int] = []  # number of each source document's gold file
        self.files: Sequence[int] = []  # the same, or that of each run of sentences; set by `data`
        self.unit = ""  # what these documents are, such as "sentence"; set by `data`
        self.counts: Counter[str] = Counter()  # gold label -> frequency
        self.span_counts: Counter[str] = Counter()  # label -> number of gold spans
        self.n_unknown = self.n_gold = 0  # tokens with an unknown gold label, and with gold
        self.why_missing = ""  # why the last unreadable Doc could not be read
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
        self.source = self.source.with_current_labels()
        span_hits = np.zeros(0, dtype=np.intp)
        if scores.spans is not None:
            span_hits = hits_of_spans(self.annotation, examples, scores.spans, self.source.span_labels, self.event)
            self._count_confusions(examples, scores.spans)
        n_starts, n_spans = [], []  # for each Doc: the number of sentences, and of gold spans, that begin at each row
        for example in examples:
            gold, document = example.reference, document_of(example)
            self.documents.append(self._numbers.number(document))
            if self.documents[-1] == len(self._files):
                self._files.append(document.file)
            # A Doc without sentence annotation is one sentence.
            sentences = gold.sents if gold.has_annotation("SENT_START") else [gold[:]]
            n_starts.append(count_gold_begins(self.annotation, example, sentences))
            n_spans.append(count_gold_begins(self.annotation, example, self.annotation.spans_on(gold)))
        batch_data = _Batch(
            n_rows=[self.annotation.n_units(doc) for doc in docs],
            n_spans=np.concatenate(n_spans),
            starts=np.concatenate(n_starts) > 0,
            spans=scores.spans,
            span_hits=span_hits,
            words=None if self.words_of is None else replace(self.words_of(docs), further_scores=scores.further_scores),
            **self._entries(examples, scores),
        )
        self._batches.append(batch_data)

    def _count_and_select(self, examples: list[Example]) -> list[Example]:
        """Count the gold labels of examples, and return those whose predicted Docs have what the source reads."""
        # If only heads are compared, arcs have their predicted labels whatever the gold labels are.
        docs_to_count = (eg.predicted if self.annotation.kind.any_label else eg.reference for eg in examples)
        self.counts.update(self.source.count_gold(docs_to_count))
        self.span_counts.update(self.annotation.count_spans(eg.reference for eg in examples))
        reasons = self.source.missing([eg.predicted for eg in examples])
        self.why_missing = next(filter(None, reasons), self.why_missing)
        return [eg for eg, why in zip(examples, reasons, strict=True) if not why]

    def _count_confusions(self, examples: Sequence[Example], spans: Spans) -> None:
        """Count (predicted, gold) label pairs of overlapping spans. spans (Spans): Of the batch; those on the Docs count."""
        spans_on_docs, labels = spans.take(np.flatnonzero(spans.on_doc)), self.source.span_labels
        keys = list(zip(spans_on_docs.starts.tolist(), spans_on_docs.ends.tolist(), spans_on_docs.labels.tolist(), strict=True))
        offset = 0  # first row of the Doc in the batch
        for example in examples if self.annotation.kind.has_types else ():
            end = offset + len(example.predicted)
            doc_spans = [(start - offset, last - offset, labels[label]) for start, last, label in keys if offset <= start < end]
            self._span_confusions.update(span_confusions(self.annotation, example, doc_spans))
            offset = end

    def _entries(self, examples: Sequence[Example], scores: Scores) -> dict[str, Any]:
        """Compare scores with gold, and add to the counts of gold. RETURNS (dict): Fields of a `_Batch`, with units as rows.

        "gold": Column of each unit's gold label, -1 if the component does not know it, -2 without gold or score. "lacks_gold":
        Whether each unit could have gold and has none. "pairs": Scores of labels. "is_known": Whether gold decides on each.
        """
        annotation, marginals = self.annotation, scores.marginals_above(self.lowest)
        hashes = np.concatenate([annotation.aligned_gold(eg) for eg in examples])
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
        """Return the fit data of tokens and of spans (None for a source without spans), and set `unit` and `files`.

        threshold (float): Minimum score of pairs, as in FitData.
        """
        gold, without_gold, is_known = (self._concatenate(name) for name in ("gold", "lacks_gold", "is_known"))
        pairs = concatenate([batch.pairs for batch in self._batches])
        documents = np.repeat(np.array(self.documents, dtype=np.intp), self._concatenate("n_rows"))
        self.unit, self.files = self._numbers.unit, self._files
        may_cut = self.in_runs and not self.annotation.kind.of_documents
        runs = runs_of(documents, self._concatenate("starts")) if may_cut else None
        if runs is not None:
            self.unit, firsts = RUN, np.unique(runs, return_index=True)[1]
            self.files = [self._files[document] for document in documents[firsts].tolist()]
            documents = runs
        with_gold, without = pairs.take(np.flatnonzero(is_known)), pairs.take(np.flatnonzero(without_gold[pairs.rows]))
        words = [batch.words for batch in self._batches if batch.words is not None]
        data = FitData(
            pairs=replace(with_gold, n_units=self.n_gold),
            gold=gold,
            documents=documents[with_gold.rows],
            n_tags=len(self.source.labels),
            threshold=threshold,
            unlabelled_pairs=without,
            unlabelled_documents=documents[without.rows],
            words=Words.concatenate(words) if words else None,
            is_complete=len(with_gold) == int(np.count_nonzero(gold[pairs.rows] != -2)),
        )
        return data, self._spans(documents) if self.source.span_labels else None

    def _spans(self, documents: Ints) -> SpanData:
        """Return the data of the spans of all batches. documents (Ints): The document of each row (token) of all batches."""
        spans_by_batch = [batch.spans for batch in self._batches if batch.spans is not None]
        spans = stack_spans(spans_by_batch, [len(batch.gold) for batch in self._batches])
        n_gold = np.bincount(documents, self._concatenate("n_spans"), len(self.files)).astype(np.intp)
        raw = self.source.source.raw_span_scores(spans)
        return SpanData(spans, raw, self._concatenate("span_hits"), documents[spans.starts], n_gold)

    def unknown_gold(self) -> UnknownGold:
        """Return the gold labels that the component does not know, and its predictions for them."""
        labels = self.source.labels
        # Hashes that are not labels are left out: lemmas, if edit trees are counted.
        names = {get_string_id(label): label for label in self.counts}
        known = {pair: n for pair, n in self._confusions.items() if pair[1] in names}
        by_name = {(labels[column] if column >= 0 else "", names[key]): n for (column, key), n in known.items()}
        unknown = UnknownGold.from_confusions(by_name, self.n_unknown, self.counts, labels)
        return unknown_spans(self.annotation, self.source.span_labels, self._span_confusions, unknown)

    def _concatenate(self, name: str) -> NDArray[Any]:
        """Return one field of all batches, such as "gold": its arrays or lists one after the other."""
        kind = np.bool_ if name in ("lacks_gold", "is_known", "starts") else np.intp
        return np.concatenate([np.zeros(0, dtype=kind), *(getattr(batch, name) for batch in self._batches)]).astype(kind)


def unknown_spans(
    annotation: Annotation, labels: Sequence[str], confusions: Mapping[tuple[str, str], int], of_tokens: UnknownGold
) -> UnknownGold:
    """Return the gold labels that a component does not know, and propose which of its labels they may be other names of.

    labels (Sequence[str]): The component's span labels. confusions (Mapping): (predicted, gold) label -> number of gold spans,
        by overlap. of_tokens (UnknownGold): The unknown gold labels of tokens; if there are none, those of spans are returned.
    """
    if not annotation.kind.has_types or not confusions:
        return of_tokens
    table = annotation.table if isinstance(annotation, MappedAnnotation) else {}
    names = {label: map_label(table, label) for label in labels}  # label of the component -> gold label
    gold, unknown = Counter[str](), Counter[tuple[str, str]]()
    for (label, name), n in confusions.items():
        gold[name] += n
        if name not in names.values():
            unknown[label, name] += n
    absent_labels = [label for label in labels if names[label] not in gold]
    counterparts = propose_gold_labels(absent_labels, list(dict.fromkeys(name for _, name in unknown)), confusions)
    if of_tokens.n:
        return replace(of_tokens, counterparts=counterparts)
    of_spans = UnknownGold.from_confusions(unknown, unknown.total(), gold, list(names))
    return replace(of_spans, counterparts=counterparts, unit=annotation.kind.span_words[0] if of_spans.n else "")


def confusions(marginals: Marginals, gold: Ints, hashes: Hashes) -> Counter[tuple[int, int]]:
    """Count tokens with gold by (column of the label with the highest score, -1 if none has a score; hash of the gold label).

    gold (Ints): Column of each token's gold label, -2 for a token without gold. hashes (Hashes): Hash of each gold label.
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

    gold (Ints): Column of each row's gold label; -2 for rows to leave out.
    """
    takes_part = gold[marginals.rows] != -2
    # Columns alone do not decide on arcs (heads count), units with several right labels, and gold of yes/no answers.
    has_answers = any(annotation.rejected_labels(eg) is not None for eg in examples)
    if not (annotation.kind.overlapping or annotation.kind.of_arcs or has_answers):
        return gold[marginals.rows] == marginals.tags, takes_part
    hashes = label_hashes(labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    starts = np.cumsum([0, *(annotation.n_units(eg.predicted) for eg in examples)])
    bounds = np.searchsorted(marginals.rows, starts)
    parts = [
        (eg, marginals.rows[first:last] - start, hashes[first:last])
        for eg, start, first, last in zip(examples, starts[:-1], bounds[:-1], bounds[1:], strict=True)
    ]
    hits, is_known = (np.concatenate([compare(*p) for p in parts]) for compare in (annotation.is_gold, annotation.is_known))
    return hits, is_known & takes_part


def hits_of_spans(annotation: Annotation, examples: Sequence[Example], spans: Spans, labels: Sequence[str], event: str) -> Ints:
    """Return for each span whether it is right by the gold: 1 or 0, -1 without gold.

    spans (Spans): Spans of the predicted Docs; their rows count tokens through all examples. labels (Sequence[str]): Labels
        of the columns of spans. event (str): When a span counts as right, such as "exact".
    """
    hashes = label_hashes(labels).tolist()
    bounds = np.cumsum([0, *(len(eg.predicted) for eg in examples)])
    example_of_span = np.searchsorted(bounds, spans.starts, side="right") - 1
    hits = np.full(len(spans), -1, dtype=np.intp)
    for number in np.unique(example_of_span).tolist():
        indices = np.flatnonzero(example_of_span == number)
        start = int(bounds[number])
        firsts, ends = (spans.starts[indices] - start).tolist(), (spans.ends[indices] - start).tolist()
        columns = spans.labels[indices].tolist()
        keys = [(first, end, hashes[column]) for first, end, column in zip(firsts, ends, columns, strict=True)]
        hits[indices] = span_hits(examples[number], annotation, keys, event)
    return hits


def gold_columns(marginals: Marginals, gold: Hashes, labels: Sequence[str]) -> Ints:
    """Return the column of each token's gold label: -1 if no column has this label, -2 without gold.

    gold (Hashes): Hash of each token's gold label, 0 for none. If marginals have names (lemmas of edit trees), the gold is
        compared with the names of its entries, else with `labels`.
    """
    if marginals.names is None:
        return columns_of(gold, labels)
    columns = np.where(gold != 0, -1, -2)
    is_gold = (label_hashes(marginals.names) == gold[marginals.rows]) & (gold[marginals.rows] != 0)
    columns[marginals.rows[is_gold]] = marginals.tags[is_gold]
    return columns


def count_gold_begins(annotation: Annotation, example: Example, spans: Iterable[Span]) -> Ints:
    """Return for each unit of the predicted Doc the number of gold spans that begin in it. spans: Of the gold Doc."""
    n_units = annotation.n_units(example.predicted)
    offsets = [token.idx for token in example.predicted][:n_units]
    rows = np.searchsorted(offsets, [span.start_char for span in spans], side="right") - 1
    return np.bincount(np.maximum(rows, 0), minlength=n_units).astype(np.intp)
