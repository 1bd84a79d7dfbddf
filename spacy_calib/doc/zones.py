"""Memory zones: strings that a pipeline adds to its vocab for some Docs are freed with the Docs.

Otherwise every new word stays in the StringStore and the Vocab, and its lemma in the cache of a rule lemmatizer: most of the
memory after a million texts. `Language.memory_zone` exists since spaCy 3.8; before, nothing is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, islice
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import spacy
from spacy.language import Language
from spacy.pipeline import Lemmatizer
from spacy.tokens import Doc
from spacy.util import is_compatible_version

Item = TypeVar("Item")
Result = TypeVar("Result")

# In earlier versions zones free too much and may crash (spaCy's pull request 13713).
_ZONE_VERSIONS = ">=3.8.4"
# The first texts fill the tokenizer's cache, without a zone. A zone adds nothing to it: a new word then takes 20 times as long.
LEARNED_FROM = 10_000
# Texts per zone, and the factor with worker processes, which start anew, with empty caches, in each zone.
IN_ZONE, _TIMES_FOR_WORKERS = 1000, 16
# Number of texts that each pipeline has read.
_TEXTS_READ: WeakKeyDictionary[Language, int] = WeakKeyDictionary()
# Maximum size of the cache of a rule lemmatizer.
_MAX_LEMMAS = 100_000


@contextmanager
def memory_zone(nlp: Language) -> Iterator[None]:
    """Open a zone: at its end its Docs and their new words are freed. Keep only strings and numbers. Zones do not nest."""
    if (
        not is_compatible_version(spacy.__version__, _ZONE_VERSIONS)
        or not hasattr(nlp, "memory_zone")
        or cast(Any, nlp.vocab).in_memory_zone
    ):
        yield
        return
    exception: BaseException | None = None
    with nlp.memory_zone():
        try:
            yield
        except BaseException as error:
            exception = error
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, Lemmatizer) and len(pipe.cache) > _MAX_LEMMAS:
            pipe.cache.clear()
    if exception is not None:
        raise exception


def zone_size(nlp: Language, n_process: int = 1) -> int:
    """Return the number of texts per zone: whole batches, as a score's last digit may depend on the rest of its batch."""
    return nlp.batch_size * max(1, IN_ZONE // nlp.batch_size) * (1 if n_process == 1 else _TIMES_FOR_WORKERS)


def in_zones(
    nlp: Language, items: Iterable[Item], read: Callable[[Iterator[Item]], Result], *, n_process: int = 1, whole: bool = False
) -> Iterator[Result]:
    """Yield the result of `read` for some texts at a time, each time in a new memory zone.

    items (Iterable): Texts, or objects that make Docs when iterated. read (Callable): Runs the pipeline; its result must hold
        no part of a Doc. n_process (int): Its worker processes. whole (bool): All at once without zones, for existing Docs.
    """
    size, remaining, any_read = zone_size(nlp, n_process), iter(items), False
    if whole:
        yield read(remaining)
        return
    while True:
        with _zone_of(nlp, size):
            first = list(islice(remaining, 1))
            if not first and any_read:
                return
            result = read(chain(first, islice(remaining, size - 1)))
            del first
        any_read = True
        yield result


def pipe_in_zones(
    nlp: Language, items: Iterable[tuple[str | Doc, Item]], *, in_zone: int | None = None
) -> Iterator[tuple[Doc, Item]]:
    """Run `nlp.pipe(items, as_tuples=True)` in zones of `in_zone` texts. Use each Doc before you ask for the next one."""
    source, size = iter(items), in_zone or zone_size(nlp)
    while batch := list(islice(source, size)):
        with _zone_of(nlp, len(batch)):
            yield from nlp.pipe(batch, as_tuples=True)


def _zone_of(nlp: Language, n_texts: int) -> AbstractContextManager[None]:
    """Return a zone for n texts, but none for the first texts: their words fill the tokenizer's cache."""
    n_read = _TEXTS_READ.get(nlp, 0)
    _TEXTS_READ[nlp] = n_read + n_texts
    return memory_zone(nlp) if n_read >= LEARNED_FROM else nullcontext()
