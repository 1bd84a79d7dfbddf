"""Examples -> the pairs and spans to fit on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy import util
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..calibration.token_fit import TokenData
from ..calibration.tokens import silent_tokens
from ..doc.annotations import Annotation, Hashes, is_space, label_hashes
from ..doc.events import span_hits
from ..doc.gold import gold_columns
from ..doc.reading import document_of
from ..errors import calib_error
from ..pairs.documents import DocumentNumbers
from ..pairs.marginals import stack
from ..pairs.unknown_gold import UnknownGold
from ..sources.base import Source
from ..types import Floats, Ints, Marginals, Pairs, Spans, stack_spans

_BATCH = 128


@dataclass(frozen=True)
class FitData:
    """What the examples gave.

    pairs (Pairs): Those that reach the lowest score asked for; rows are tokens. gold (Ints): Column of each token's gold label, as
        `pair_up` wants it. documents (Ints): The document of each pair. counts (Counter): Gold frequency of each label.
    n_docs (int): Documents with scores. unit (str): What they are, see `documents`. n_unknown (int): Tokens whose gold label the component does not know.
    n_gold (int): Tokens with gold. why_missing (str): Why the last unread document could not be read.
    spans (Spans | None): Spans found, None for a source of token labels alone. span_hits (Ints): For each, whether the event holds: 1, 0,
        or -1 where the gold is not known. span_counts (Counter): Gold frequency of each span label.
    unjudged (Pairs), unjudged_documents (Ints): As pairs and documents, of tokens without gold, which take no part in the fit; hits say nothing.
    span_documents (Ints): The document of each span. gold_spans (Ints): Gold spans of each document, shape (n_docs,).
    """

    pairs: Pairs
    gold: Ints
    documents: Ints
    counts: Counter[str]
    n_docs: int
    n_unknown: int
    n_gold: int
    why_missing: str
    spans: Spans | None
    span_hits: Ints
    span_counts: Counter[str]
    span_documents: Ints
    gold_spans: Ints
    unit: str
    unknown: UnknownGold
    unjudged: Pairs
    unjudged_documents: Ints

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

    def tokens(self, n_tags: int, threshold: float) -> TokenData:
        """What a token calibration is fitted on."""
        return TokenData(self.pairs, self.gold, self.documents, n_tags, threshold)


def collect_fit_data(source: Source, pipe: Any, examples: Iterable[Example], lowest: float, event: str = "exact") -> FitData:
    """Read the marginals of the predicted Docs and pair them with gold, batch by batch; no Doc is kept.

    lowest (float): Entries below this score are left out. event (str): When a span counts as right, see `entities.events`.
    RAISES C024, C040, C041: what the source found is no probability.
    """
    annotation = source.annotation(pipe)
    parts: list[Marginals] = []
    golds: list[Ints] = [np.zeros(0, dtype=np.intp)]
    token_hits: list[NDArray[np.bool_]] = [np.zeros(0, dtype=bool)]
    counts: Counter[str] = Counter()
    span_counts: Counter[str] = Counter()
    unjudged: list[NDArray[np.bool_]] = [np.zeros(0, dtype=bool)]
    documents: list[Ints] = [np.zeros(0, dtype=np.intp)]
    found: list[Spans] = []
    hits: list[Ints] = []
    span_documents: list[Ints] = [np.zeros(0, dtype=np.intp)]
    labels: Sequence[str] = ()
    gold_spans: Counter[int] = Counter()
    numbers = DocumentNumbers()
    paired: Counter[tuple[int, int]] = Counter()
    n_unknown = n_gold = n_with_gold = 0
    why_missing = ""
    for batch in util.minibatch(examples, size=_BATCH):
        given = [eg for eg in batch if len(eg.predicted)]
        counts.update(source.count(pipe, (eg.reference for eg in given)))
        span_counts.update(annotation.count_spans(eg.reference for eg in given))
        reasons = source.missing(pipe, [eg.predicted for eg in given])
        why_missing = next(filter(None, reasons), why_missing)
        readable = [eg for eg, why in zip(given, reasons, strict=True) if not why]
        if not readable:
            continue
        scores = source.read(pipe, [eg.predicted for eg in readable])
        labels = source.labels(pipe)  # a recognizer may have met new ones while it ran
        marginals = scores.above(lowest)
        wanted = np.concatenate([annotation.aligned_gold(eg) for eg in readable])
        gold = gold_columns(marginals, wanted, labels)
        paired.update(stands_for(marginals, gold.columns, wanted))
        parts.append(replace(marginals, names=None))
        # For what is said of tokens, those of which the source says nothing are as if they had no gold.
        spoken_of = gold.columns.copy()
        silent = silent_tokens(scores, marginals.rows)
        spoken_of[silent] = -2
        bare = (gold.columns == -2) & np.concatenate([_may_have_gold(eg.predicted, annotation) for eg in readable])
        bare[silent] = False
        unjudged.append(bare)
        golds.append(spoken_of)
        n_with_gold += int(np.count_nonzero(gold.columns != -2))
        token_hits.append(_hits_of(annotation, readable, marginals, gold.columns, labels))
        of_example = np.array([numbers.number(document_of(eg)) for eg in readable], dtype=np.intp)
        documents.append(np.repeat(of_example, [len(eg.predicted) for eg in readable]))
        if scores.spans is not None:
            found.append(scores.spans)
            hits.append(hits_of_spans(annotation, readable, scores.spans, source.span_labels(pipe), event))
            span_documents.append(of_example[_example_of(readable, scores.spans)])
            for document, eg in zip(of_example.tolist(), readable, strict=True):
                gold_spans[document] += len(annotation.spans_on(eg.reference))
        n_gold += gold.n_gold
        n_unknown += gold.n_unknown
    every, gold_of = stack(parts), np.concatenate(golds)
    has_gold = np.flatnonzero(gold_of[every.rows] != -2)
    rows = every.rows[has_gold]
    hit = np.concatenate(token_hits)[has_gold]
    bare = np.flatnonzero(np.concatenate(unjudged)[every.rows])
    no_hits = np.zeros(len(bare), dtype=bool)
    of_token = np.concatenate(documents)
    return FitData(
        Pairs(rows, every.tags[has_gold], every.scores[has_gold], hit, n_with_gold),
        gold_of,
        of_token[rows],
        counts,
        len(numbers),
        n_unknown,
        n_gold,
        why_missing,
        stack_spans(found, [0] * len(found)) if source.span_labels(pipe) else None,
        np.concatenate([np.zeros(0, dtype=np.intp), *hits]),
        span_counts,
        np.concatenate(span_documents),
        np.array([gold_spans[document] for document in range(len(numbers))] if found else [], dtype=np.intp),
        numbers.unit,
        UnknownGold.of(_named(paired, labels, counts), n_unknown, counts, labels),
        Pairs(every.rows[bare], every.tags[bare], every.scores[bare], no_hits, len(gold_of)),
        of_token[every.rows[bare]],
    )


def stands_for(marginals: Marginals, gold: Ints, hashes: Hashes) -> Counter[tuple[int, int]]:
    """(column of the likeliest label, -1 for none; hash of the gold label) of the tokens with gold -> tokens.

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
    """Tokens that are not white space, and not before the first one that may carry a label."""
    return ~is_space(doc) & (np.arange(len(doc)) >= annotation.first)


def _hits_of(
    annotation: Annotation, examples: Sequence[Example], marginals: Marginals, gold: Ints, labels: Sequence[str]
) -> NDArray[np.bool_]:
    """Whether each entry's tag is a gold one; the tokens of the examples follow one another."""
    if not annotation.overlapping:
        return gold[marginals.rows] == marginals.tags
    hashes = label_hashes(labels)[marginals.tags]
    starts = np.cumsum([0, *(len(eg.predicted) for eg in examples)])
    bounds = np.searchsorted(marginals.rows, starts)
    hits = [
        annotation.is_gold(eg, marginals.rows[first:last] - start, hashes[first:last])
        for eg, start, first, last in zip(examples, starts[:-1], bounds[:-1], bounds[1:], strict=True)
    ]
    return np.concatenate(hits)


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


def span_pairs(spans: Spans, raw: Floats, hits: Ints) -> tuple[Pairs, Ints]:
    """(pairs, index of each): the chosen spans with known gold as pairs, each its own unit, its label as the tag."""
    index = np.flatnonzero(spans.chosen & (hits >= 0))
    return Pairs(np.arange(len(index)), spans.labels[index], raw[index], hits[index] == 1, len(index)), index
