"""Statistics of one shard, read as a fit reads its examples, with the memory of a part of the shard at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from spacy.training import Example

from ..calibration.plan import lowest_taken
from ..calibration.registered import scalings
from ..calibration.tokens import lowest_score
from ..context.surroundings import FromDocs
from ..context.tokens import TokenContext
from ..context.words import Words
from ..doc.annotations import Annotation
from ..doc.reading import TextWatch
from ..doc.words import words_of
from ..errors import calib_error
from ..expect.record import SeenTexts
from ..pairs.documents import TOKEN
from ..pairs.keyed import Key, hasher
from ..sources.base import labels_of_the_moment
from ..sources.fingerprint import fingerprint
from ..sources.left_scores import LeftScoresSource
from ..sources.mapped import map_of, with_map
from ..sources.unit_scores import UnitScoresSource
from ..statistics.collected import MOST_PAIRS, FitStatistics
from ..statistics.identity import WHOLE, Identity, Shard, reading_of
from ..statistics.readings import Readings
from .calibrating import CalibratingPipe
from .fit_data import Reader
from .upstream import learn_labels

# So many entries are read before they are added up.
_AT_ONCE = 2_000_000


def collect_statistics(
    pipe: CalibratingPipe,
    examples: Iterable[Example],
    shard: str,
    *,
    sample: int = MOST_PAIRS,
    gold_preproc: bool = False,
    key: Key | None = None,
    at_once: int = _AT_ONCE,
) -> FitStatistics:
    """What a fit of a calib pipe needs of one shard; the pipe itself is not changed, and may be fitted or not.

    pipe (CalibratingPipe): In its pipeline; its source, threshold and event say what is read. examples (Iterable[Example]): As for `Calibrator.fit`.
    shard (str): A name that no other shard has; "2/7" is the second of seven, which are all wanted then. sample (int): Pairs of whole
        documents that are kept as they are.
    gold_preproc (bool): Whether the examples are sentences with gold tokens, whose statistics are not added to those of documents.
    key (Key | None): Of all digests. Without one there are none of words and texts: a document that stands in two shards counts as two, a fit does not know
        its texts again, and its context does not look at how often forms were met.
    at_once (int): Entries that are held before they are added up.
    RAISES C021 to C024, C028, C033 to C035, C040, C041: the component, or what it gives. C431: a setting was left to the fit.
    """
    source = with_map(pipe.source, None)
    if source.unsettled:
        raise calib_error("C431", component=pipe.source.component)
    with labels_of_the_moment(source):
        return _collected(pipe, examples, shard, sample, reading_of(gold_preproc), key, at_once)


def _collected(
    pipe: CalibratingPipe, examples: Iterable[Example], shard: str, sample: int, reading: str, key: Key | None,
    at_once: int,
) -> FitStatistics:  # fmt: skip
    """The statistics, by a source that has the labels of the shard, where it learns them."""
    first, examples = with_first(examples)
    examples = learn_labels(pipe, examples)
    component = pipe.lookup.to_fit(None if first is None else first.predicted.vocab)
    annotation = pipe.source.annotation(component)
    reader = Reader(pipe.source, component, lowest_of_all(pipe, annotation), pipe.event, read_words(pipe, annotation))
    content = hasher(key)
    parts: list[FitStatistics] = []
    held: list[Readings] = []
    watch = TextWatch(annotation)

    def add_up() -> None:
        texts = watch.take().digests
        identity = identity_of(pipe, component, sample, reading, key)
        known = SeenTexts.of(texts[:0] if key is None else texts, "" if key is None else key.salt)
        made = FitStatistics.of(identity, Readings.joined(held).hidden(key, shard), known.digests)
        parts[:] = [FitStatistics.merged([*parts, made])]
        held.clear()

    for readings in reader.batches(watch.over(examples)):
        for name, array in readings.arrays().items():
            if name != "digests" or key is not None:
                content.update(np.ascontiguousarray(array).tobytes())
        held.append(readings)
        if sum(len(part.rows) for part in held) >= at_once:
            add_up()
    add_up()
    found = parts[0]
    return found.named(Shard(shard, content.hexdigest(), found.n_documents), reader.totals())


def identity_of(
    pipe: CalibratingPipe, component: Any, sample: int = MOST_PAIRS, reading: str = WHOLE, key: Key | None = None
) -> Identity:
    """Whose statistics those of a pipe are, as it stands. sample (int), reading (str), key (Key | None): See Identity."""
    source = pipe.source
    annotation = source.annotation(component)
    return Identity(
        weights=fingerprint(pipe.lookup.nlp, component),
        component=source.component,
        kind=source.kind(component),
        layer=annotation.name,
        labels=tuple(source.labels(component)),
        span_labels=tuple(source.span_labels(component)),
        threshold=pipe.threshold,
        lowest=lowest_of_all(pipe, annotation),
        event=annotation.span_event or pipe.event,
        source=settings_of(source),
        label_map=json.dumps(map_of(source) or {}, sort_keys=True, ensure_ascii=False),
        features=tuple(one.registered for one in _functions(pipe)) if annotation.unit == TOKEN else (),
        sample=sample,
        reading=reading,
        key="" if key is None else key.fingerprint,
    )


def settings_of(source: Any) -> str:
    """The settings of a source, as far as they are plain."""
    inner = with_map(source, None)
    plain = {key: held for key, held in vars(inner).items() if isinstance(held, (str, int, float, bool)) and key != "component"}
    beside = {"beside": inner.beside} if inner.beside else {}
    return json.dumps({"class": type(inner).__name__, **plain, **beside}, sort_keys=True, ensure_ascii=False)


def restore_source(source: Any, identity: Identity) -> None:
    """What a source learns of the examples of a fit, it takes from statistics of them: labels, and whether units had the scores of several."""
    inner = with_map(source, None)
    if isinstance(inner, LeftScoresSource):
        inner.restore_labels(identity.labels)
    if isinstance(inner, UnitScoresSource):
        inner.distributions = '"distributions": false' not in identity.source


def lowest_of_all(pipe: CalibratingPipe, annotation: Annotation) -> float:
    """The lowest score that any fit of the pipe looks at, whichever scaling it is told to take."""
    if not pipe.source.distributions or annotation.overlapping:
        return pipe.threshold
    return min(lowest_taken(pipe), lowest_score(pipe.threshold, *scalings().values()))


def read_words(pipe: CalibratingPipe, annotation: Annotation) -> Any:
    """What a context is to know of tokens, whether the pipe has one or not; of documents, where the source has further scores of them."""
    if annotation.unit != TOKEN:
        return (lambda docs: Words.of_documents(len(docs))) if pipe.source.beside else None
    return partial(words_of, functions=_functions(pipe), first=annotation.first)


def _functions(pipe: CalibratingPipe) -> Sequence[FromDocs]:
    """The features of users that ask Docs, of the context that the pipe has or is to have."""
    context = pipe.context or pipe.tokens.context
    return context.functions if isinstance(context, TokenContext) else ()


def with_first(examples: Iterable[Example]) -> tuple[Example | None, Iterable[Example]]:
    """(the first example, all of them)."""
    rest: Iterator[Example] = iter(examples)
    first = next(rest, None)
    return first, rest if first is None else chain([first], rest)
