"""Examples -> the pairs and spans to fit on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy import util
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..calibration.span_fit import SpanData
from ..calibration.token_fit import TokenData
from ..calibration.tokens import silent_tokens
from ..context.fit import FitWords
from ..context.words import Words
from ..doc.annotations import Annotation, Hashes, is_blank, label_hashes
from ..doc.events import span_hits
from ..doc.gold import gold_columns
from ..doc.reading import document_of
from ..errors import calib_error
from ..pairs.documents import TOKEN, DocumentNumbers
from ..pairs.marginals import Scores, hints_of, stack
from ..pairs.unknown_gold import UnknownGold
from ..sources.base import Source
from ..types import Ints, Marginals, Pairs, Spans, stack_spans

_BATCH = 128


@dataclass(frozen=True, eq=False)
class FitData:
    """What the examples gave.

    pairs (Pairs): Those that reach the lowest score asked for; rows are tokens (or documents, where each has one row). documents (Ints): The document of each pair.
    gold (Ints): Column of each token's gold label: -1 where the component does not know the label, -2 where there is no gold.
    counts (Counter): Gold frequency of each label. n_docs (int): Documents with scores. unit (str): What they are, see `DocumentNumbers`.
    n_unknown (int): Tokens whose gold label the component does not know. n_gold (int): Tokens with gold.
    why_missing (str): Why the last document that could not be read could not; "" where all were read.
    spans (SpanData | None): Spans found, None for a source of token labels alone. span_counts (Counter): Gold frequency of each span label.
    unknown (UnknownGold): The gold labels that the component does not know, and what it says for them.
    unjudged (Pairs), unjudged_documents (Ints): The same of tokens without gold, which take no part in the fit; their hits mean nothing.
    words (Words | None): All tokens that were read; None where they were not asked for. doc_documents (Ints): The document of each of its Docs.
    """

    pairs: Pairs
    gold: Ints
    documents: Ints
    counts: Counter[str]
    n_docs: int
    n_unknown: int
    n_gold: int
    why_missing: str
    spans: SpanData | None
    span_counts: Counter[str]
    unit: str
    unknown: UnknownGold
    unjudged: Pairs
    unjudged_documents: Ints
    words: Words | None
    doc_documents: Ints

    def check(self, layer: str, component: str, threshold: float, min_pairs: int, max_unknown: float) -> None:
        """RAISES C032: nothing could be read. C030: no gold. C031: all gold labels unknown. C164: more than the share max_unknown of them.
        C003, C005: too few pairs.
        """
        if not self.n_docs:
            raise calib_error("C032", component=component, why=self.why_missing or "there are no tokens")
        if not self.n_gold:
            raise calib_error("C030", layer=layer, component=component)
        if self.n_unknown == self.n_gold:
            raise calib_error("C031", n_tags=len(self.counts), component=component, **self.unknown.words())
        if self.unknown.share > max_unknown:
            raise calib_error("C164", component=component, **self.unknown.words())
        n_pairs = int(np.count_nonzero(self.pairs.scores >= threshold))
        if not n_pairs:
            raise calib_error("C003", what="calibrator", threshold=threshold)
        if n_pairs < min_pairs:
            raise calib_error("C005", n_pairs=n_pairs, threshold=threshold, n_bins=min_pairs)

    def tokens(self, n_tags: int, threshold: float, words: FitWords | None = None, unit: str = TOKEN) -> TokenData:
        """What a token calibration is fitted on. words (FitWords | None): What a context looks at. unit (str): What a row is."""
        return TokenData(self.pairs, self.gold, self.documents, n_tags, threshold, self.unjudged, words, unit)


def collect_fit_data(
    source: Source,
    pipe: Any,
    examples: Iterable[Example],
    lowest: float,
    event: str = "exact",
    words_of: Callable[[Sequence[Doc]], Words] | None = None,
) -> FitData:
    """Read the marginals of the predicted Docs and pair them with gold, batch by batch; no Doc is kept.

    lowest (float): Entries below this score are left out. event (str): When a span counts as right, see `doc/events.py`.
    words_of (Callable | None): What to keep of the tokens of some predicted Docs; None keeps nothing.
    RAISES C024, C040, C041: what the source found is no probability.
    """
    reader = _Reader(source, pipe, lowest, event, words_of)
    parts = [part for batch in util.minibatch(examples, size=_BATCH) if (part := reader.read(batch)) is not None]
    return reader.joined(parts)


@dataclass(frozen=True, eq=False)
class _Tokens:
    """The tokens of a batch, or of all: what the source and the gold say of them.

    marginals (Marginals): Entries above the lowest score. hits (NDArray[bool]): Whether the label of each entry is a gold one.
    known (NDArray[bool]): Whether the gold says so. gold (Ints): Column of each token's gold label, as in FitData; -2 also where the source gives no score. unjudged (NDArray[bool]):
        Whether a token could have gold and has none. documents (Ints): The document of each token.
    """

    marginals: Marginals
    hits: NDArray[np.bool_]
    known: NDArray[np.bool_]
    gold: Ints
    unjudged: NDArray[np.bool_]
    documents: Ints

    @classmethod
    def joined(cls, parts: Sequence[_Tokens]) -> _Tokens:
        return cls(
            stack([part.marginals for part in parts]),
            _joined((part.hits for part in parts), bool),
            _joined((part.known for part in parts), bool),
            _joined((part.gold for part in parts), np.intp),
            _joined((part.unjudged for part in parts), bool),
            _joined((part.documents for part in parts), np.intp),
        )


@dataclass(frozen=True, eq=False)
class _FoundSpans:
    """The spans of a batch. hits (Ints): Of each, see SpanData. documents (Ints): Of each."""

    spans: Spans
    hits: Ints
    documents: Ints


@dataclass(frozen=True, eq=False)
class _Part:
    """What a batch gave. doc_documents (Ints): The document of each Doc. words (Words | None): See FitData."""

    tokens: _Tokens
    spans: _FoundSpans | None
    doc_documents: Ints
    words: Words | None


class _Reader:
    """Reads batches of examples, and adds up what is counted over all of them; the arguments are those of `collect_fit_data`."""

    def __init__(self, source: Source, pipe: Any, lowest: float, event: str, words_of: Callable[[Sequence[Doc]], Words] | None):
        self.source, self.pipe, self.lowest, self.event, self.words_of = source, pipe, lowest, event, words_of
        self.annotation = source.annotation(pipe)
        self.labels: Sequence[str] = ()
        self.counts: Counter[str] = Counter()
        self.span_counts: Counter[str] = Counter()
        self.gold_spans: Counter[int] = Counter()
        self.confusions: Counter[tuple[int, int]] = Counter()
        self.numbers = DocumentNumbers()
        self.n_unknown = self.n_gold = self.n_with_gold = 0
        self.why_missing = ""

    def read(self, batch: Sequence[Example]) -> _Part | None:
        """None where no Doc of the batch can be read."""
        given = [eg for eg in batch if self.annotation.n_units(eg.predicted)]
        counted = (eg.predicted if self.annotation.any_label else eg.reference for eg in given)
        self.counts.update(self.source.count(self.pipe, counted))
        self.span_counts.update(self.annotation.count_spans(eg.reference for eg in given))
        reasons = self.source.missing(self.pipe, [eg.predicted for eg in given])
        self.why_missing = next(filter(None, reasons), self.why_missing)
        readable = [eg for eg, why in zip(given, reasons, strict=True) if not why]
        if not readable:
            return None
        scores = self.source.read(self.pipe, [eg.predicted for eg in readable])
        self.labels = self.source.labels(self.pipe)  # a recognizer may have met new ones while it ran
        documents = np.array([self.numbers.number(document_of(eg)) for eg in readable], dtype=np.intp)
        spans = None if scores.spans is None else self._spans(readable, scores.spans, documents)
        words = (
            None if self.words_of is None else replace(self.words_of([eg.predicted for eg in readable]), hints=hints_of(scores))
        )
        return _Part(self._tokens(readable, scores, documents), spans, documents, words)

    def _tokens(self, examples: Sequence[Example], scores: Scores, documents: Ints) -> _Tokens:
        marginals = scores.above(self.lowest)
        wanted = np.concatenate([self.annotation.aligned_gold(eg) for eg in examples])
        gold = gold_columns(marginals, wanted, (*self.labels, *self.annotation.none))
        self.confusions.update(confusions(marginals, gold.columns, wanted))
        self.n_gold += gold.n_gold
        self.n_unknown += 0 if self.annotation.any_label else gold.n_unknown
        self.n_with_gold += int(np.count_nonzero(gold.columns != -2))
        # Tokens to which the source gives no score are left out, as if they had no gold.
        unscored = silent_tokens(scores, marginals.rows)
        columns = gold.columns.copy()
        columns[unscored] = -2
        unjudged = (gold.columns == -2) & np.concatenate([_may_have_gold(eg.predicted, self.annotation) for eg in examples])
        unjudged[unscored] = False
        hits, known = _hits_of(self.annotation, examples, marginals, columns, self.labels)
        of_token = np.repeat(documents, [self.annotation.n_units(eg.predicted) for eg in examples])
        return _Tokens(replace(marginals, names=None), hits, known, columns, unjudged, of_token)

    def _spans(self, examples: Sequence[Example], spans: Spans, documents: Ints) -> _FoundSpans:
        hits = hits_of_spans(self.annotation, examples, spans, self.source.span_labels(self.pipe), self.event)
        for document, eg in zip(documents.tolist(), examples, strict=True):
            self.gold_spans[document] += len(self.annotation.spans_on(eg.reference))
        return _FoundSpans(spans, hits, documents[_example_of(examples, spans)])

    def joined(self, parts: Sequence[_Part]) -> FitData:
        """All that was read. parts: Of each batch."""
        tokens = _Tokens.joined([part.tokens for part in parts])
        found = [part.spans for part in parts if part.spans is not None]
        every = tokens.marginals
        has_gold = np.flatnonzero(tokens.known)
        rows = every.rows[has_gold]
        unjudged = np.flatnonzero(tokens.unjudged[every.rows])
        no_hits = np.zeros(len(unjudged), dtype=bool)
        return FitData(
            pairs=Pairs(rows, every.tags[has_gold], every.scores[has_gold], tokens.hits[has_gold], self.n_with_gold),
            gold=tokens.gold,
            documents=tokens.documents[rows],
            counts=self.counts,
            n_docs=len(self.numbers),
            n_unknown=self.n_unknown,
            n_gold=self.n_gold,
            why_missing=self.why_missing,
            spans=self._span_data(found, parts) if self.source.span_labels(self.pipe) else None,
            span_counts=self.span_counts,
            unit=self.numbers.unit,
            unknown=UnknownGold.of(_named(self.confusions, self.labels, self.counts), self.n_unknown, self.counts, self.labels),
            unjudged=Pairs(every.rows[unjudged], every.tags[unjudged], every.scores[unjudged], no_hits, len(tokens.gold)),
            unjudged_documents=tokens.documents[every.rows[unjudged]],
            words=None if self.words_of is None else Words.joined([part.words for part in parts if part.words is not None]),
            doc_documents=_joined((part.doc_documents for part in parts), np.intp),
        )

    def _span_data(self, found: Sequence[_FoundSpans], parts: Sequence[_Part]) -> SpanData:
        spans = stack_spans([one.spans for one in found], [len(part.tokens.gold) for part in parts])
        return SpanData(
            spans,
            self.source.raw_span_scores(spans),
            _joined((one.hits for one in found), np.intp),
            _joined((one.documents for one in found), np.intp),
            np.array([self.gold_spans[document] for document in range(len(self.numbers))] if found else [], dtype=np.intp),
        )


def _joined(arrays: Iterable[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *arrays])


def confusions(marginals: Marginals, gold: Ints, hashes: Hashes) -> Counter[tuple[int, int]]:
    """(column of the likeliest label, -1 for none; hash of the gold label) -> number of tokens, among those with gold.

    gold (Ints), hashes (Hashes): Column and hash of each token's gold label.
    """
    order = np.argsort(marginals.scores, kind="stable")
    likeliest = np.full(len(gold), -1)
    likeliest[marginals.rows[order]] = marginals.tags[order]  # the last one stays
    has_gold = gold != -2
    return Counter(zip(likeliest[has_gold].tolist(), hashes[has_gold].tolist(), strict=True))


def _named(found: Mapping[tuple[int, int], int], labels: Sequence[str], gold: Iterable[str]) -> dict[tuple[str, str], int]:
    """The same by names. Hashes of other things than labels (lemmas, where edit trees are counted) are left out."""
    names = {get_string_id(label): label for label in gold}
    return {(labels[column] if column >= 0 else "", names[key]): n for (column, key), n in found.items() if key in names}


def _may_have_gold(doc: Doc, annotation: Annotation) -> NDArray[np.bool_]:
    """Units that are not white space, and not before the first one that may carry a label."""
    return ~is_blank(annotation, doc) & (np.arange(annotation.n_units(doc)) >= annotation.first)


def _hits_of(
    annotation: Annotation, examples: Sequence[Example], marginals: Marginals, gold: Ints, labels: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(whether each entry's tag is a gold one, whether the gold says so); the units of the examples follow one another. gold (Ints): Column
    of each unit's gold label, -2 for one that takes no part.
    """
    judged = gold[marginals.rows] != -2
    if not (annotation.overlapping or annotation.judges):
        return gold[marginals.rows] == marginals.tags, judged
    hashes = label_hashes(labels)[marginals.tags]
    starts = np.cumsum([0, *(annotation.n_units(eg.predicted) for eg in examples)])
    bounds = np.searchsorted(marginals.rows, starts)
    parts = [
        (eg, marginals.rows[first:last] - start, hashes[first:last])
        for eg, start, first, last in zip(examples, starts[:-1], bounds[:-1], bounds[1:], strict=True)
    ]
    hits, known = (np.concatenate([ask(*part) for part in parts]) for ask in (annotation.is_gold, annotation.is_known))
    return hits, known & judged


def hits_of_spans(annotation: Annotation, examples: Sequence[Example], spans: Spans, labels: Sequence[str], event: str) -> Ints:
    """Whether each span is right: 1 or 0, and -1 where its gold is not known.

    spans (Spans): In the tokens of the predicted Docs, one example after the other; candidates of a Doc follow its chosen spans.
    labels (Sequence[str]): Of the spans.
    """
    hashes = label_hashes(labels).tolist()
    bounds = np.cumsum([0, *(len(eg.predicted) for eg in examples)])
    of_example = _example_of(examples, spans)
    hits = np.full(len(spans), -1, dtype=np.intp)
    for number in np.unique(of_example).tolist():
        own = np.flatnonzero(of_example == number)
        start = int(bounds[number])
        keys = zip(
            (spans.starts[own] - start).tolist(), (spans.ends[own] - start).tolist(), spans.labels[own].tolist(), strict=True
        )
        hits[own] = span_hits(
            examples[number], annotation, [(first, last, hashes[label]) for first, last, label in keys], event
        )
    return hits


def _example_of(examples: Sequence[Example], spans: Spans) -> Ints:
    """Number of each span's example; the tokens of the examples follow one another."""
    bounds = np.cumsum([0, *(len(eg.predicted) for eg in examples)])
    return np.searchsorted(bounds, spans.starts, side="right") - 1
