"""Statistics of one shard on which a fitted pipeline is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..calibration.grouping.named import group_beside, informed
from ..calibration.portable import find_conventions
from ..corpus.scored import ScoredCorpus, ScoredSpans
from ..doc.annotations import Annotation, count_misaligned, get_annotation, plain_name
from ..doc.reading import TextWatch, document_digest, document_of
from ..pairs.build import JudgedPairs
from ..pairs.documents import TOKEN, DocumentNumbers
from ..pairs.keyed import Key, hasher, keyed
from ..statistics.blocks import Digests, lowest
from ..statistics.further_tables import EventCounts, FlagCounts
from ..statistics.identity import Identity, Shard, reading_of
from ..statistics.judged import NOTHING_ACCEPTED, JudgedStatistics, count_judged
from ..types import Groups
from .collecting import identity_of
from .event import EventPipe
from .gathering import may_differ
from .lookup import entity_tokens
from .scorer import scorer_like

if TYPE_CHECKING:
    from .component import Calibrator
    from .gathering import Gathered


def judged_statistics(
    pipe: Calibrator,
    events: Sequence[EventPipe],
    examples: Sequence[Example],
    corpus: ScoredCorpus,
    shard: str | None = None,
    *,
    gold_preproc: bool = False,
    key: Key | None = None,
) -> JudgedStatistics:
    """What the figures of a fitted pipe are made of.

    events (Sequence[EventPipe]): Those that look at its scores. examples: Their predicted Docs hold what all of them wrote, `reference` the gold.
    corpus (ScoredCorpus): What it wrote, by `corpus_of`.
    shard (str | None), gold_preproc (bool), key (Key | None): As for `collect_statistics`. A shard of None where they are not added to others.
    RAISES C308: the pipe has cut-offs that bound misses, and its component gives no P(O) any more.
    """
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    digests, units = _documents(examples, shard, key)
    watch = TextWatch(get_annotation(pipe.fit_info.layer))
    for _ in watch.over(examples):
        pass
    spans, cutoffs = pipe.spans.groups, pipe.tokens.recall_cutoffs
    about, flags = about_pipe(pipe, events), None
    if cutoffs is not None:  # they find nothing where the pipe said nothing
        caught = entity_tokens(pipe, examples, corpus).caught(cutoffs) if len(corpus) else {}
        flags = FlagCounts.of(caught, list(cutoffs.values), digests)
    found = JudgedStatistics(
        _identity(pipe, events, labels, span_labels, about, reading_of(gold_preproc), "" if key is None else key.fingerprint),
        about,
        (),
        count_judged(corpus.pairs(), len(labels), digests),
        None if spans is None else count_judged(corpus.span_pairs(span_labels), len(span_labels), digests),
        units,
        lowest([digests]),
        None if pipe.learned.seen is None else pipe.learned.seen.sums_of(watch.units()),
        _accepted(corpus.spans),
        tuple(count_event(one, examples, digests) for one in events),
        flags,
        misaligned(get_annotation(pipe.fit_info.layer), examples),
    )
    content, judged = hasher(key), corpus.pairs()
    named = () if key is None else (digests,)
    for array in (*named, corpus.doc_documents, *vars(judged.pairs).values(), judged.calibrated):
        content.update(np.ascontiguousarray(array).tobytes())
    return replace(found, shards=(Shard(shard or "", content.hexdigest(), len(np.unique(digests))),))


def misaligned(annotation: Annotation, examples: Iterable[Example]) -> dict[str, int] | None:
    """How many predicted tokens align with no single gold one; None where it is documents that have labels."""
    return count_misaligned(annotation.gold, examples) if annotation.unit == TOKEN else None


def raw_statistics(pipe: Calibrator, gathered: Gathered, examples: Sequence[Example]) -> JudgedStatistics:
    """The same of a pipe that is not fitted: raw scores stand in the place of calibrated ones.

    gathered (Gathered): What was read of the examples. They are not added to others, and documents are told apart by number.
    """
    data, annotation = gathered.data, gathered.annotation
    own = JudgedPairs(gathered.tokens.kept_pairs, gathered.tokens.kept_pairs.scores, gathered.tokens.kept_documents, data.unit)
    identity = identity_of(pipe, gathered.component, sample=1)
    groups = gathered.groups(informed(pipe.grouping, own.pairs, identity.labels))
    spans = span_groups = None
    if data.spans is not None:
        pairs, of_documents = data.spans.pairs, data.spans.documents[data.spans.known]
        spans = count_judged(JudgedPairs(pairs, pairs.scores, of_documents, data.unit), len(identity.span_labels))
        span_groups = group_beside(informed(pipe.grouping, pairs, identity.span_labels), identity.span_labels, data.span_counts)
    about = {**_about(pipe, annotation, identity.event, groups, span_groups), "precision": None, "weights_changed": None}
    return JudgedStatistics(
        identity,
        {**about, "recall": None, "events": []},
        (Shard("", "", data.n_docs),),
        count_judged(own, len(identity.labels)),
        spans,
        frozenset({data.unit}),
        np.arange(data.n_docs, dtype=np.uint64),
        None,
        NOTHING_ACCEPTED,
        misaligned=misaligned(annotation, examples),
    )


def conventions_met(pipe: Calibrator, corpus: ScoredCorpus) -> list[dict[str, Any]]:
    """Where the labels of a fitted pipe and this gold look like two conventions, by its raw scores: as `FitInfo.conventions`."""
    if not may_differ(pipe, get_annotation(pipe.fit_info.layer)):
        return []
    labels, pairs = pipe.lookup.labels(), corpus.pairs().pairs
    # The first names are the labels, by column.
    gold = np.where(corpus.gold < len(labels), np.where(corpus.gold < 0, -2, corpus.gold), -1)
    return [one.told(labels) for one in find_conventions(pairs, gold, np.full(len(pairs), -1))]


def _documents(examples: Iterable[Example], shard: str | None, key: Key | None) -> tuple[Digests, frozenset[str]]:
    """(the digest of each document in the order in which they are met, what they are); see `Readings.hidden`. shard (str | None): None takes its number."""
    numbers = DocumentNumbers()
    digests: list[int] = []
    for example in examples:
        document = document_of(example)
        number = numbers.number(document)
        if number == len(digests):
            digests.append(number if key is None else document_digest(document, example.reference))
    salt = (shard or "") if key is None else key.of_documents
    return keyed(np.array(digests, dtype=np.uint64), salt), numbers.units


def _about(pipe: Calibrator, annotation: Annotation, event: str, groups: Groups, span_groups: Groups | None) -> dict[str, Any]:
    """What is to be known of any pipe, fitted or not."""
    scorer = scorer_like(pipe.scorer)
    return {
        "name": pipe.name,
        "attr": pipe.attr,
        "layer": plain_name(annotation.name),
        "accuracy_is": annotation.accuracy_name,
        "event": event,
        "called": list(annotation.span_words),
        "groups": groups.state(),
        "span_groups": None if span_groups is None else span_groups.state(),
        "bins": scorer.n_bins,
        "n_groups": scorer.n_groups,
    }


def about_pipe(pipe: Calibrator, events: Sequence[EventPipe]) -> dict[str, Any]:
    """What is to be known of a fitted pipe, of the form `judged.ABOUT`."""
    assert pipe.groups is not None
    cutoffs, recall = pipe.spans.cutoffs, pipe.tokens.recall_cutoffs
    return {
        **_about(pipe, get_annotation(pipe.fit_info.layer), pipe.fit_info.span_event, pipe.groups, pipe.spans.groups),
        "precision": None if cutoffs is None else cutoffs.precision,
        "weights_changed": pipe.lookup.weights_changed(),
        "recall": None if recall is None else recall.state(),
        "events": [event_of(one) for one in events],
    }


def _identity(
    pipe: Calibrator,
    events: Sequence[EventPipe],
    labels: tuple[str, ...],
    span_labels: tuple[str, ...],
    about: dict[str, Any],
    reading: str,
    key: str,
) -> Identity:
    """That of the pipe's statistics of a fit, with what a judgement is of: the fitted labels and maps, and no sample."""
    fitted = b"".join(one.to_bytes() for one in (pipe, *events))
    learned = blake2b(fitted + repr(sorted(about.items())).encode(), digest_size=16)
    return replace(
        identity_of(pipe, pipe.lookup.component(), sample=1, reading=reading),
        layer=pipe.fit_info.layer,
        labels=labels,
        span_labels=span_labels,
        lowest=pipe.threshold,
        event=pipe.fit_info.span_event,
        features=(),
        fit=learned.hexdigest(),
        key=key,
    )


def check_pipe(pipe: Calibrator, events: Sequence[EventPipe], statistics: JudgedStatistics) -> None:
    """RAISES C425: the statistics are those of another pipe, or of other event pipes behind it."""
    labels, span_labels = tuple(pipe.lookup.labels()), tuple(pipe.lookup.span_labels())
    identity = statistics.identity
    own = _identity(pipe, events, labels, span_labels, about_pipe(pipe, events), identity.reading, identity.key)
    identity.check_same(own, statistics.name, "the pipeline")


def _accepted(spans: ScoredSpans) -> dict[str, int]:
    """How many spans with gold there are, what cut-offs keep of them, and how many of these are right."""
    with_gold = spans.right >= 0
    kept = spans.right[with_gold][spans.accept[with_gold] == 1]
    return {"judged": int(with_gold.sum()), "kept": len(kept), "right": int(kept.sum())}


def event_of(pipe: EventPipe) -> dict[str, Any]:
    """What is to be known of the event, of the form `statistics.further_tables.EVENT`."""
    event = pipe.event
    return {"name": pipe.name, "event": event.what, "called": list(event.called), "rivals": list(event.rivals)}


def count_event(pipe: EventPipe, examples: Sequence[Example], digests: Digests | None = None) -> EventCounts:
    """The forecasts beside the product of the tokens' scores.

    examples: Their predicted Docs have been through the pipeline. digests (Digests | None): Of each document, see `count_judged`.
    """
    found, _ = pipe.gather(examples)
    units = found.units
    raw, product, forecast = (np.clip(one, 0.0, 1.0) for one in (units.raw, units.own, pipe.learned.forecast(units)))
    return EventCounts.of(raw, product, forecast, found.hits, found.documents if digests is None else digests[found.documents])
