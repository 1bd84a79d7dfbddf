"""Statistics of one shard on which a fitted pipeline is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..doc.annotations import get_annotation, plain_name
from ..doc.reading import document_of
from ..doc.texts import TextWatch, document_digest
from ..pairs.documents import DocumentNumbers
from ..statistics.identity import Identity, Shard
from ..statistics.judged import JudgedStatistics, count_judged
from .collecting import identity_of
from .scorer import corpus_of, scorer_like

if TYPE_CHECKING:
    from ..corpus.scored import ScoredSpans
    from .component import Calibrator


def judged_statistics(pipe: Calibrator, examples: Sequence[Example], shard: str) -> JudgedStatistics:
    """What the figures of a fitted pipe are made of.

    examples: Their predicted Docs hold what the pipe wrote, `reference` the gold. shard (str): As for `collect_statistics`.
    """
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    corpus = corpus_of(examples, pipe.attr, labels)
    numbers = DocumentNumbers()
    digests: list[int] = []
    for example in examples:
        document = document_of(example)
        if numbers.number(document) == len(digests):
            digests.append(document_digest(document, example.reference))
    of_document = np.array(digests, dtype=np.uint64)
    watch = TextWatch(get_annotation(pipe.fit_info.layer))
    for _ in watch.over(examples):
        pass
    tokens = count_judged(corpus.pairs(), of_document, len(labels))
    spans = None
    if pipe.spans.groups is not None:
        spans = count_judged(corpus.span_pairs(span_labels), of_document, len(span_labels))
    about = about_pipe(pipe)
    content = blake2b(digest_size=16)
    for array in (
        of_document,
        corpus.doc_documents,
        *tokens.arrays().values(),
        *({} if spans is None else spans.arrays()).values(),
    ):
        content.update(np.ascontiguousarray(array).tobytes())
    return JudgedStatistics(
        _identity(pipe, labels, span_labels, about),
        about,
        (Shard(shard, content.hexdigest(), len(set(digests))),),
        tokens,
        spans,
        numbers.units,
        None if pipe.learned.seen is None else pipe.learned.seen.sums_of(watch.units()),
        _accepted(corpus.spans),
    )


def about_pipe(pipe: Calibrator) -> dict[str, Any]:
    """What is to be known of a fitted pipe, of the form `judged.ABOUT`."""
    assert pipe.groups is not None
    annotation, scorer, cutoffs = get_annotation(pipe.fit_info.layer), scorer_like(pipe.scorer), pipe.spans.cutoffs
    return {
        "name": pipe.name,
        "attr": pipe.attr,
        "layer": plain_name(pipe.fit_info.layer),
        "accuracy_is": annotation.accuracy_name,
        "event": pipe.fit_info.span_event,
        "called": list(annotation.span_words),
        "groups": pipe.groups.state(),
        "span_groups": None if pipe.spans.groups is None else pipe.spans.groups.state(),
        "bins": scorer.n_bins,
        "n_groups": scorer.n_groups,
        "precision": None if cutoffs is None else cutoffs.precision,
        "weights_changed": pipe.lookup.weights_changed(),
    }


def _identity(pipe: Calibrator, labels: tuple[str, ...], span_labels: tuple[str, ...], about: dict[str, Any]) -> Identity:
    """That of the pipe's statistics of a fit, with what a judgement is of: the fitted labels and maps, and no sample."""
    found = pipe.lookup.find()
    learned = blake2b(pipe.to_bytes() + repr(sorted(about.items())).encode(), digest_size=16)
    return replace(
        identity_of(pipe, None if found.component is None else found.nlp, found.component, sample=1),
        layer=pipe.fit_info.layer,
        labels=labels,
        span_labels=span_labels,
        lowest=pipe.threshold,
        event=pipe.fit_info.span_event,
        features=(),
        fit=learned.hexdigest(),
    )


def check_pipe(pipe: Calibrator, statistics: JudgedStatistics) -> None:
    """RAISES C425: the statistics are those of another pipe."""
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    statistics.identity.check_same(_identity(pipe, labels, span_labels, about_pipe(pipe)), statistics.name, "the pipeline")


def _accepted(spans: ScoredSpans) -> dict[str, int]:
    """See JudgedStatistics."""
    with_gold = spans.right >= 0
    kept = spans.right[with_gold][spans.accept[with_gold] == 1]
    return {"judged": int(with_gold.sum()), "kept": len(kept), "right": int(kept.sum())}
