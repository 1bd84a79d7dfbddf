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
from ..calibration.tokens import silent_tokens
from ..context.words import Words
from ..doc.annotations import Annotation, Hashes, is_blank, label_hashes
from ..doc.annotations.base import NOT_THOSE
from ..doc.events import span_hits
from ..doc.gold import begins_of_sentences, begins_of_spans, gold_columns
from ..doc.reading import document_of
from ..errors import calib_error
from ..pairs.build import Scores, hints_of
from ..pairs.documents import TOKEN, DocumentNumbers, joint_unit
from ..pairs.label_map import UnknownGold, shorter
from ..pairs.runs import RUN, runs_of
from ..sources.bound import BoundSource
from ..types import Floats, Ints, Marginals, Pairs, Spans, stack_spans

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
    complete (bool): Whether all pairs of a unit with gold are known to hit or miss. files (Ints): Number of the gold file
        of each document, shape (n_docs,).
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
    files: Ints
    complete: bool

    @property
    def of_spans_alone(self) -> bool:
        """Whether spans have gold and no token has: people answered about spans."""
        return not self.n_gold and self.spans is not None and bool((self.spans.hits >= 0).any())

    def check(
        self, layer: str, component: str, threshold: float, min_pairs: int, max_unknown: float, span_labels: Sequence[str] = ()
    ) -> None:
        """RAISES C032: nothing could be read. C030: no gold. C031: all gold labels unknown. C164: more than the share max_unknown of them.
        C003, C005: too few pairs. Where spans alone have gold, tokens need none. C697: none of these has a label of the component.
        """
        if not self.n_docs:
            raise calib_error("C032", component=component, why=self.why_missing or "there are no tokens")
        if not self.n_gold and span_labels and self.span_counts and self.span_counts.keys().isdisjoint(span_labels):
            given, known = (shorter(list(of)) for of in (self.span_counts, span_labels))
            raise calib_error("C697", component=component, given=given, known=known)
        if self.of_spans_alone:
            return
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


def collect_fit_data(
    source: BoundSource,
    examples: Iterable[Example],
    lowest: float,
    event: str = "exact",
    words_of: Callable[[Sequence[Doc]], Words] | None = None,
    in_runs: bool = False,
) -> FitData:
    """Read the marginals of the predicted Docs and pair them with gold, batch by batch; no Doc is kept.

    lowest (float): Entries below this score are left out. event (str): When a span counts as right, see `doc/events.py`.
    words_of (Callable | None): What to keep of the tokens of some predicted Docs; None keeps nothing.
    in_runs (bool): Whether few long documents are cut into runs of sentences, each a document then.
    RAISES C024, C040, C041: what the source found is no probability.
    """
    reader = _Reader(source, lowest, event, words_of)
    for batch in util.minibatch(examples, size=_BATCH):
        reader.read(batch)
    return reader.data(in_runs)


@dataclass(frozen=True, eq=False)
class _Part:
    """What a batch of Docs gave: of each Doc its document; of each row its gold column, whether it could have gold and has none, whether it begins a
    sentence, and how many gold spans begin there; the entries, with whether each hits and whether that is known; the spans, with 1, 0 or -1 for each; what stands in the tokens.
    """

    documents: list[int]
    n_rows: list[int]
    n_spans: Ints
    starts: NDArray[np.bool_]
    gold: Ints
    unjudged: NDArray[np.bool_]
    rows: Ints
    tags: Ints
    scores: Floats
    hits: NDArray[np.bool_]
    known: NDArray[np.bool_]
    spans: Spans | None
    span_hits: Ints
    words: Words | None


class _Reader:
    """Reads batches of examples, and adds up what is counted over all of them; the arguments are those of `collect_fit_data`."""

    def __init__(
        self,
        source: BoundSource,
        lowest: float,
        event: str,
        words_of: Callable[[Sequence[Doc]], Words] | None,
    ):
        self.source, self.annotation, self.lowest, self.event, self.words_of = (
            source,
            source.annotation,
            lowest,
            event,
            words_of,
        )
        self.parts: list[_Part] = []
        self.files: list[int] = []  # of each document
        self.counts: Counter[str] = Counter()
        self.span_counts: Counter[str] = Counter()
        self.confusions: Counter[tuple[int, int]] = Counter()
        self.numbers = DocumentNumbers()
        self.n_unknown = self.n_gold = self.n_with_gold = 0
        self.why_missing = ""

    def read(self, batch: Sequence[Example]) -> None:
        given = [eg for eg in batch if self.annotation.n_units(eg.predicted)]
        counted = (eg.predicted if self.annotation.any_label else eg.reference for eg in given)
        self.counts.update(self.source.count(counted))
        self.span_counts.update(self.annotation.count_spans(eg.reference for eg in given))
        reasons = self.source.missing([eg.predicted for eg in given])
        self.why_missing = next(filter(None, reasons), self.why_missing)
        read = [eg for eg, why in zip(given, reasons, strict=True) if not why]
        if not read:
            return
        docs = [eg.predicted for eg in read]
        scores = self.source.read(docs)
        self.source = self.source.with_current_labels()
        words = None if self.words_of is None else replace(self.words_of(docs), hints=hints_of(scores))
        span_hits = np.zeros(0, dtype=np.intp)
        if scores.spans is not None:
            span_hits = hits_of_spans(self.annotation, read, scores.spans, self.source.span_labels, self.event)
        part = _Part(
            documents=[self._number(eg) for eg in read],
            n_rows=[self.annotation.n_units(doc) for doc in docs],
            n_spans=np.concatenate([begins_of_spans(self.annotation, eg) for eg in read]),
            starts=np.concatenate([begins_of_sentences(self.annotation, eg) > 0 for eg in read]),
            spans=scores.spans,
            span_hits=span_hits,
            words=words,
            **self._entries(read, scores),
        )
        self.parts.append(part)

    def _number(self, example: Example) -> int:
        """The number of the example's document."""
        document = document_of(example)
        number = self.numbers.number(document)
        if number == len(self.files):
            self.files.append(document.file)
        return number

    def _entries(self, examples: Sequence[Example], scores: Scores) -> dict[str, NDArray[Any]]:
        """Of the rows and the entries, see `_Part`."""
        marginals = scores.above(self.lowest)
        wanted = np.concatenate([self.annotation.aligned_gold(eg) for eg in examples])
        gold = gold_columns(marginals, wanted, (*self.source.labels, *self.annotation.none))
        self.confusions.update(confusions(marginals, gold.columns, wanted))
        self.n_gold += gold.n_gold
        n_unknown = gold.n_unknown - int(np.count_nonzero(wanted == NOT_THOSE))
        self.n_unknown += 0 if self.annotation.any_label else n_unknown
        self.n_with_gold += int(np.count_nonzero(gold.columns != -2))
        # Tokens to which the source gives no score are left out, as if they had no gold.
        unscored = silent_tokens(scores, marginals.rows)
        columns = gold.columns.copy()
        columns[unscored] = -2
        unjudged = (gold.columns == -2) & np.concatenate([_may_have_gold(eg.predicted, self.annotation) for eg in examples])
        unjudged[unscored] = False
        hits, known = _hits_of(self.annotation, examples, marginals, columns, self.source.labels)
        entries = {"rows": marginals.rows, "tags": marginals.tags, "scores": marginals.scores, "hits": hits, "known": known}
        return {"gold": columns, "unjudged": unjudged, **entries}

    def data(self, in_runs: bool) -> FitData:
        """All that was read."""
        parts, spans = self.parts, None
        lengths = [len(part.gold) for part in parts]
        offsets = np.cumsum([0, *lengths])
        documents = self._joined("documents", np.intp)
        gold, unjudged, known = (
            self._joined("gold", np.intp),
            self._joined("unjudged", np.bool_),
            self._joined("known", np.bool_),
        )
        rows = _join([part.rows + offset for part, offset in zip(parts, offsets, strict=False)], np.intp)
        every = Pairs(
            rows, self._joined("tags", np.intp), self._joined("scores", np.float64), self._joined("hits", np.bool_), len(gold)
        )
        of_rows = np.repeat(documents, self._joined("n_rows", np.intp))
        with_gold, without = every.take(np.flatnonzero(known)), every.take(np.flatnonzero(unjudged[rows]))
        files, unit = np.array(self.files, dtype=np.intp), joint_unit(self.numbers.units)
        runs = runs_of(of_rows, self._joined("starts", np.bool_)) if in_runs and self.annotation.unit == TOKEN else None
        if runs is not None:
            files, of_rows, unit = files[of_rows[np.unique(runs, return_index=True)[1]]], runs, RUN
        n_documents = len(files)
        if self.source.span_labels:
            found = stack_spans([part.spans for part in parts if part.spans is not None], lengths)
            of_documents = np.bincount(of_rows, self._joined("n_spans", np.intp), n_documents).astype(np.intp)
            hits = self._joined("span_hits", np.intp)
            spans = SpanData(found, self.source.source.raw_span_scores(found), hits, of_rows[found.starts], of_documents)
        read = [part.words for part in parts if part.words is not None]
        labels = self.source.labels
        named = _named(self.confusions, labels, self.counts)
        return FitData(
            pairs=replace(with_gold, n_units=self.n_with_gold),
            gold=gold,
            documents=of_rows[with_gold.rows],
            counts=self.counts,
            n_docs=n_documents,
            n_unknown=self.n_unknown,
            n_gold=self.n_gold,
            why_missing=self.why_missing,
            spans=spans,
            span_counts=self.span_counts,
            unit=unit,
            unknown=UnknownGold.of(named, self.n_unknown, self.counts, labels),
            unjudged=without,
            unjudged_documents=of_rows[without.rows],
            words=Words.joined(read) if read else None,
            doc_documents=documents,
            files=files,
            complete=len(with_gold) == int(np.count_nonzero(gold[rows] != -2)),
        )

    def _joined(self, name: str, kind: Any) -> NDArray[Any]:
        return _join([getattr(part, name) for part in self.parts], kind)


def _join(parts: Iterable[Any], kind: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts]).astype(kind, copy=False)


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
    answers = any(annotation.refused(eg) is not None for eg in examples)
    if not (annotation.overlapping or annotation.judges or answers):
        return gold[marginals.rows] == marginals.tags, judged
    hashes = label_hashes(labels)[marginals.tags] if marginals.names is None else label_hashes(marginals.names)
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
    of_example = np.searchsorted(bounds, spans.starts, side="right") - 1
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
