"""Statistics of one shard on which a fitted pipeline is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..calibration.recall_cutoffs import RecallCutoffs
from ..corpus.scored import ScoredCorpus, ScoredSpans
from ..doc.annotations import get_annotation, plain_name
from ..doc.reading import document_of
from ..doc.texts import TextWatch, document_digest
from ..pairs.documents import DocumentNumbers
from ..statistics.blocks import Digests
from ..statistics.distinct import lowest
from ..statistics.flags import FlagCounts
from ..statistics.identity import Identity, Shard, reading_of
from ..statistics.judged import JudgedStatistics, count_judged
from .collecting import identity_of
from .event import EventPipe
from .event_table import count_event, event_of
from .flagging import entity_tokens
from .scorer import corpus_of, scorer_like

if TYPE_CHECKING:
    from .component import Calibrator


def judged_statistics(
    pipe: Calibrator,
    events: Sequence[EventPipe],
    examples: Sequence[Example],
    shard: str | None = None,
    *,
    gold_preproc: bool = False,
) -> JudgedStatistics:
    """What the figures of a fitted pipe are made of.

    events (Sequence[EventPipe]): Those that look at its scores. examples: Their predicted Docs hold what all of them wrote, `reference` the gold.
    shard (str | None), gold_preproc (bool): As for `collect_statistics`. A shard of None where they are not added to others: documents are told apart by number then.
    RAISES C308: the pipe has cut-offs that bound misses, and its component gives no P(O) any more.
    """
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    corpus = corpus_of(examples, pipe.attr, labels)
    digests, units = _documents(examples, named=shard is not None)
    watch = TextWatch(get_annotation(pipe.fit_info.layer))
    for _ in watch.over(examples):
        pass
    spans, cutoffs = pipe.spans.groups, pipe.tokens.recall_cutoffs
    about = about_pipe(pipe, events)
    found = JudgedStatistics(
        _identity(pipe, events, labels, span_labels, about, reading_of(gold_preproc)),
        about,
        (),
        count_judged(corpus.pairs(), len(labels), digests),
        None if spans is None else count_judged(corpus.span_pairs(span_labels), len(span_labels), digests),
        units,
        lowest([digests]),
        None if pipe.learned.seen is None else pipe.learned.seen.sums_of(watch.units()),
        _accepted(corpus.spans),
        tuple(count_event(one, examples, digests) for one in events),
        None if cutoffs is None else _flags(pipe, examples, corpus, cutoffs, digests),
    )
    content = blake2b(digest_size=16)
    for array in (digests, corpus.doc_documents, *found.arrays().values()):
        content.update(np.ascontiguousarray(array).tobytes())
    return replace(found, shards=(Shard(shard or "", content.hexdigest(), len(np.unique(digests))),))


def _documents(examples: Iterable[Example], named: bool) -> tuple[Digests, frozenset[str]]:
    """(the digest of each document in the order in which they are met, what they are). named (bool): False takes its number in the place of a digest."""
    numbers = DocumentNumbers()
    digests: list[int] = []
    for example in examples:
        document = document_of(example)
        number = numbers.number(document)
        if number == len(digests):
            digests.append(document_digest(document, example.reference) if named else number)
    return np.array(digests, dtype=np.uint64), numbers.units


def _flags(
    pipe: Calibrator, examples: Sequence[Example], corpus: ScoredCorpus, cutoffs: RecallCutoffs, digests: Digests
) -> FlagCounts:
    """What the cut-offs find, nothing where the pipe said nothing."""
    caught = entity_tokens(pipe, examples, corpus).caught(cutoffs) if len(corpus) else {}
    return FlagCounts.of(caught, list(cutoffs.values), digests)


def about_pipe(pipe: Calibrator, events: Sequence[EventPipe]) -> dict[str, Any]:
    """What is to be known of a fitted pipe, of the form `judged.ABOUT`."""
    assert pipe.groups is not None
    annotation, scorer, cutoffs = get_annotation(pipe.fit_info.layer), scorer_like(pipe.scorer), pipe.spans.cutoffs
    recall = pipe.tokens.recall_cutoffs
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
        "recall": None if recall is None else recall.to_dict(),
        "events": [event_of(one) for one in events],
    }


def _identity(
    pipe: Calibrator,
    events: Sequence[EventPipe],
    labels: tuple[str, ...],
    span_labels: tuple[str, ...],
    about: dict[str, Any],
    reading: str,
) -> Identity:
    """That of the pipe's statistics of a fit, with what a judgement is of: the fitted labels and maps, and no sample."""
    found = pipe.lookup.find()
    fitted = b"".join(one.to_bytes() for one in (pipe, *events))
    learned = blake2b(fitted + repr(sorted(about.items())).encode(), digest_size=16)
    return replace(
        identity_of(pipe, None if found.component is None else found.nlp, found.component, sample=1, reading=reading),
        layer=pipe.fit_info.layer,
        labels=labels,
        span_labels=span_labels,
        lowest=pipe.threshold,
        event=pipe.fit_info.span_event,
        features=(),
        fit=learned.hexdigest(),
    )


def check_pipe(pipe: Calibrator, events: Sequence[EventPipe], statistics: JudgedStatistics) -> None:
    """RAISES C425: the statistics are those of another pipe, or of other event pipes behind it."""
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    own = _identity(pipe, events, labels, span_labels, about_pipe(pipe, events), statistics.identity.reading)
    statistics.identity.check_same(own, statistics.name, "the pipeline")


def _accepted(spans: ScoredSpans) -> dict[str, int]:
    """See JudgedStatistics."""
    with_gold = spans.right >= 0
    kept = spans.right[with_gold][spans.accept[with_gold] == 1]
    return {"judged": int(with_gold.sum()), "kept": len(kept), "right": int(kept.sum())}
