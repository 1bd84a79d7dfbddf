"""Examples -> the pairs and spans to fit on, with gold."""

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
from ..annotations.base import ONLY_REJECTED
from ..annotations.label_schemes import has_types, likely_names, span_confusions
from ..annotations.span_events import span_hits
from ..calibration.span_fit import SpanData
from ..calibration.token_fit import FitData
from ..calibration.tokens import find_silent
from ..context.words import Words
from ..pairs.build import Scores, concatenate, get_further_scores
from ..pairs.documents import RUN, TOKEN, DocumentNumbers, runs_of
from ..pairs.label_map import UnknownGold, map_label
from ..sources.bound import BoundSource
from ..types import Ints, Marginals, Pairs, Spans, stack_spans
from .reading import document_of

_BATCH = 128


@dataclass(frozen=True, eq=False)
class _Batch:
    """What a batch of Docs gave.

    n_rows (list[int]): Rows of each Doc.
    n_spans (Ints), starts (NDArray[bool]): Number of gold spans that begin at each row, and whether a sentence does.
    gold (Ints), unlabelled (NDArray[bool]): Gold column of each row, and whether it could have gold and has none.
    pairs (Pairs): The entries, with gold or without. known (NDArray[bool]): Whether it is known that each hits or misses.
    spans (Spans | None), span_hits (Ints): Those found, with 1, 0 or -1 for each. words (Words | None): The words of the tokens.
    """

    n_rows: list[int]
    n_spans: Ints
    starts: NDArray[np.bool_]
    gold: Ints
    unlabelled: NDArray[np.bool_]
    pairs: Pairs
    known: NDArray[np.bool_]
    spans: Spans | None
    span_hits: Ints
    words: Words | None


class ExampleReader:
    """Reads the marginals of predicted Docs and pairs them with gold, batch by batch; no Doc is kept.

    source (BoundSource): With the labels of now. lowest (float): Entries below this score are left out.
    event (str): When a span counts as right, see `annotations.span_events`.
    words_of (Callable | None): What to keep of the tokens of some predicted Docs; None keeps nothing.
    in_runs (bool): Whether few long documents are cut into runs of sentences, each a document then.
    counts, span_counts (Counter): Gold frequency of each label. documents (list[int]): The document of each Doc.
    unit (str), files (Sequence[int]): What a document is, and the number of the gold file of each, once `data` is made.
    n_gold, n_unknown, n_with_gold (int): Tokens with gold, those whose label the component does not know, those with a column.
    why_missing (str): Why the last document that could not be read could not; "" where all were read.
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
        self.documents: list[int] = []
        self.files: Sequence[int] = []
        self.unit = ""
        self._numbers = DocumentNumbers()
        self._files: list[int] = []
        self.counts: Counter[str] = Counter()
        self.span_counts: Counter[str] = Counter()
        self.n_unknown = self.n_gold = self.n_with_gold = 0
        self.why_missing = ""
        self._batches: list[_Batch] = []
        self._confusions: Counter[tuple[int, int]] = Counter()
        self._span_confusions: Counter[tuple[str, str]] = Counter()

    def read_all(self, examples: Iterable[Example]) -> ExampleReader:
        """Read examples; itself. RAISES C024, C040, C041: what the source found is no probability."""
        for batch in util.minibatch(examples, size=_BATCH):
            self._read(batch)
        return self

    def _read(self, batch: Sequence[Example]) -> None:
        examples = [eg for eg in batch if self.annotation.n_units(eg.predicted)]
        docs_to_count = (eg.predicted if self.annotation.any_label else eg.reference for eg in examples)
        self.counts.update(self.source.count(docs_to_count))
        self.span_counts.update(self.annotation.count_spans(eg.reference for eg in examples))
        reasons = self.source.missing([eg.predicted for eg in examples])
        self.why_missing = next(filter(None, reasons), self.why_missing)
        examples = [eg for eg, why in zip(examples, reasons, strict=True) if not why]
        if not examples:
            return
        docs = [eg.predicted for eg in examples]
        scores = self.source.read(docs)
        self.source = self.source.with_current_labels()
        words = None if self.words_of is None else replace(self.words_of(docs), further_scores=get_further_scores(scores))
        span_hits = np.zeros(0, dtype=np.intp)
        if scores.spans is not None:
            span_hits = hits_of_spans(self.annotation, examples, scores.spans, self.source.span_labels, self.event)
            self._count_confusions(examples, scores.spans)
        starts = []
        for example in examples:
            gold, document = example.reference, document_of(example)
            self.documents.append(self._numbers.number(document))
            if self.documents[-1] == len(self._files):
                self._files.append(document.file)
            # Without known sentences the whole Doc is one.
            sentences = gold.sents if gold.has_annotation("SENT_START") else [gold[:]]
            starts.append(count_begins(self.annotation, example, sentences) > 0)
        batch_data = _Batch(
            n_rows=[self.annotation.n_units(doc) for doc in docs],
            n_spans=np.concatenate(
                [count_begins(self.annotation, eg, self.annotation.spans_on(eg.reference)) for eg in examples]
            ),
            starts=np.concatenate(starts),
            spans=scores.spans,
            span_hits=span_hits,
            words=words,
            **self._entries(examples, scores),
        )
        self._batches.append(batch_data)

    def _count_confusions(self, examples: Sequence[Example], spans: Spans) -> None:
        """Count which gold labels the predicted spans stand for. spans (Spans): Of these examples."""
        chosen, labels = spans.take(np.flatnonzero(spans.on_doc)), self.source.span_labels
        keys = list(zip(chosen.starts.tolist(), chosen.ends.tolist(), chosen.labels.tolist(), strict=True))
        offset = 0
        for example in examples if has_types(self.annotation) else ():
            end = offset + len(example.predicted)
            inside = [(start - offset, last - offset, labels[label]) for start, last, label in keys if offset <= start < end]
            self._span_confusions.update(span_confusions(self.annotation, example, inside))
            offset = end

    def _entries(self, examples: Sequence[Example], scores: Scores) -> dict[str, Any]:
        """The fields of a batch that are about its rows and entries."""
        marginals = scores.marginals_above(self.lowest)
        hashes = np.concatenate([self.annotation.aligned_gold(eg) for eg in examples])
        gold = gold_columns(marginals, hashes, (*self.source.labels, *self.annotation.no_label_names))
        self._confusions.update(confusions(marginals, gold.columns, hashes))
        self.n_gold += gold.n_gold
        n_unknown = gold.n_unknown - int(np.count_nonzero(hashes == ONLY_REJECTED))
        self.n_unknown += 0 if self.annotation.any_label else n_unknown
        self.n_with_gold += int(np.count_nonzero(gold.columns != -2))
        # Tokens to which the source gives no score are left out, as if they had no gold.
        silent = find_silent(scores, marginals.rows)
        columns = gold.columns.copy()
        columns[silent] = -2
        # White space, and units before the first one that may carry a label, have no gold to be missing.
        n_units, first = self.annotation.n_units, self.annotation.first
        may_have_gold = [
            ~is_blank(self.annotation, eg.predicted) & (np.arange(n_units(eg.predicted)) >= first) for eg in examples
        ]
        without_gold = (gold.columns == -2) & np.concatenate(may_have_gold)
        without_gold[silent] = False
        hits, is_known = _hits_of(self.annotation, examples, marginals, columns, self.source.labels)
        pairs = Pairs(marginals.rows, marginals.tags, marginals.scores, hits, len(columns))
        return {"gold": columns, "unlabelled": without_gold, "pairs": pairs, "known": is_known}

    def data(self, threshold: float) -> tuple[FitData, SpanData | None]:
        """All tokens that were read, and all spans; None for a source of token labels alone. threshold (float): See FitData.

        Where few long documents are cut into runs of sentences, each run is a document; sets `unit` and `files`.
        """
        gold, without_gold, is_known = (self._joined(name) for name in ("gold", "unlabelled", "known"))
        pairs = concatenate([batch.pairs for batch in self._batches])
        documents = np.repeat(np.array(self.documents, dtype=np.intp), self._joined("n_rows"))
        self.unit, self.files = self._numbers.unit, self._files
        runs = runs_of(documents, self._joined("starts")) if self.in_runs and self.annotation.unit == TOKEN else None
        if runs is not None:
            self.unit, firsts = RUN, np.unique(runs, return_index=True)[1]
            self.files = [self._files[document] for document in documents[firsts].tolist()]
            documents = runs
        with_gold, without = pairs.take(np.flatnonzero(is_known)), pairs.take(np.flatnonzero(without_gold[pairs.rows]))
        words = [batch.words for batch in self._batches if batch.words is not None]
        data = FitData(
            pairs=replace(with_gold, n_units=self.n_with_gold),
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
        """All spans. documents (Ints): The document of each row."""
        batches = [batch for batch in self._batches if batch.spans is not None]
        spans = stack_spans(
            [batch.spans for batch in batches if batch.spans is not None], [len(batch.gold) for batch in self._batches]
        )
        n_gold = np.bincount(documents, self._joined("n_spans"), len(self.files)).astype(np.intp)
        raw = self.source.source.raw_span_scores(spans)
        return SpanData(spans, raw, self._joined("span_hits"), documents[spans.starts], n_gold)

    def unknown_gold(self) -> UnknownGold:
        """The gold labels that the component does not know, and what it predicts for them."""
        labels = self.source.labels
        # Hashes of other things than labels (lemmas, where edit trees are counted) are left out.
        names = {get_string_id(label): label for label in self.counts}
        confusions_by_name = {
            (labels[column] if column >= 0 else "", names[key]): n
            for (column, key), n in self._confusions.items()
            if key in names
        }
        unknown = UnknownGold.from_confusions(confusions_by_name, self.n_unknown, self.counts, labels)
        return unknown_spans(self.annotation, self.source.span_labels, self._span_confusions, unknown)

    def _joined(self, name: str) -> NDArray[Any]:
        """A field of all batches as one array."""
        kind = np.bool_ if name in ("unlabelled", "known", "starts") else np.intp
        return np.concatenate([np.zeros(0, dtype=kind), *(getattr(batch, name) for batch in self._batches)]).astype(kind)


def unknown_spans(
    annotation: Annotation, labels: Sequence[str], confusions: Mapping[tuple[str, str], int], of_tokens: UnknownGold
) -> UnknownGold:
    """What is known of gold labels that a component does not know, with the names that its spans show for its labels.

    labels (Sequence[str]): Of the component's spans. confusions (Mapping): See `span_confusions`. of_tokens (UnknownGold): Of tokens, if these have gold.
    """
    if not has_types(annotation) or not confusions:
        return of_tokens
    table = annotation.table if isinstance(annotation, MappedAnnotation) else {}
    names = {label: map_label(table, label) for label in labels}
    gold, unknown = Counter[str](), Counter[tuple[str, str]]()
    for (label, name), n in confusions.items():
        gold[name] += n
        if name not in names.values():
            unknown[label, name] += n
    unmatched = [label for label in labels if names[label] not in gold]
    pairs = likely_names(unmatched, list(dict.fromkeys(name for _, name in unknown)), confusions)
    if of_tokens.n:
        return replace(of_tokens, counterparts=pairs)
    of_spans = UnknownGold.from_confusions(unknown, unknown.total(), gold, list(names))
    return replace(of_spans, counterparts=pairs, unit=annotation.span_words[0] if of_spans.n else "")


def confusions(marginals: Marginals, gold: Ints, hashes: Hashes) -> Counter[tuple[int, int]]:
    """(column of the top label or -1, gold hash) -> number of tokens. gold, hashes: Of each token's gold label."""
    order = np.argsort(marginals.scores, kind="stable")
    likeliest = np.full(len(gold), -1)
    likeliest[marginals.rows[order]] = marginals.tags[order]  # the last one stays
    has_gold = gold != -2
    return Counter(zip(likeliest[has_gold].tolist(), hashes[has_gold].tolist(), strict=True))


def _hits_of(
    annotation: Annotation, examples: Sequence[Example], marginals: Marginals, gold: Ints, labels: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(whether each entry's tag is gold, whether that is known). gold (Ints): Column of each unit, -2 for one left out."""
    takes_part = gold[marginals.rows] != -2
    answers = any(annotation.rejected_labels(eg) is not None for eg in examples)
    if not (annotation.overlapping or annotation.compares_arcs or answers):
        return gold[marginals.rows] == marginals.tags, takes_part
    hashes = label_hashes(labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
    starts = np.cumsum([0, *(annotation.n_units(eg.predicted) for eg in examples)])
    bounds = np.searchsorted(marginals.rows, starts)
    parts = [
        (eg, marginals.rows[first:last] - start, hashes[first:last])
        for eg, start, first, last in zip(examples, starts[:-1], bounds[:-1], bounds[1:], strict=True)
    ]
    hits, is_known = (np.concatenate([ask(*part) for part in parts]) for ask in (annotation.is_gold, annotation.is_known))
    return hits, is_known & takes_part


def hits_of_spans(annotation: Annotation, examples: Sequence[Example], spans: Spans, labels: Sequence[str], event: str) -> Ints:
    """Whether each span is right: 1 or 0, and -1 where its gold is not known.

    spans (Spans): In the tokens of the predicted Docs, one example after the other; candidates of a Doc follow its chosen spans.
    labels (Sequence[str]): Of the spans.
    """
    hashes = label_hashes(labels).tolist()
    bounds = np.cumsum([0, *(len(eg.predicted) for eg in examples)])
    of_example = np.searchsorted(bounds, spans.starts, side="right") - 1
    hits = np.full(len(spans), -1, dtype=np.intp)
    for number in np.unique(of_example).tolist():
        indices = np.flatnonzero(of_example == number)
        start = int(bounds[number])
        keys = zip(
            (spans.starts[indices] - start).tolist(),
            (spans.ends[indices] - start).tolist(),
            spans.labels[indices].tolist(),
            strict=True,
        )
        hits[indices] = span_hits(
            examples[number], annotation, [(first, last, hashes[label]) for first, last, label in keys], event
        )
    return hits


@dataclass(frozen=True)
class GoldColumns:
    """columns (Ints): For `pair_up`. n_gold, n_unknown (int): Tokens with gold, and with unknown gold labels."""

    columns: Ints
    n_gold: int
    n_unknown: int


def gold_columns(marginals: Marginals, gold: Hashes, labels: Sequence[str]) -> GoldColumns:
    """Return the gold column of each token: -1 if no column is the gold label, -2 without gold.

    gold (Hashes): Gold hash of each token, 0 for none. Where marginals have their own names (lemmas), the column is that of the
    entry with the gold name.
    """
    has_gold = gold != 0
    if marginals.names is None:
        columns = columns_of(gold, labels)
    else:
        columns = np.where(has_gold, -1, -2)
        is_gold = (label_hashes(marginals.names) == gold[marginals.rows]) & has_gold[marginals.rows]
        columns[marginals.rows[is_gold]] = marginals.tags[is_gold]
    return GoldColumns(columns, int(has_gold.sum()), int(np.count_nonzero(columns == -1)))


def count_begins(annotation: Annotation, example: Example, spans: Iterable[Span]) -> Ints:
    """Return how many of these gold spans begin in each predicted unit."""
    n_units = annotation.n_units(example.predicted)
    places = [token.idx for token in example.predicted][:n_units]
    rows = np.searchsorted(places, [span.start_char for span in spans], side="right") - 1
    return np.bincount(np.maximum(rows, 0), minlength=n_units).astype(np.intp)
