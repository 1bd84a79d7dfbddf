"""Memory zones: what a pipeline adds to its vocab for some Docs is freed with them.

Otherwise every new word stays in the StringStore and the Vocab, and its lemma in the table of a rule lemmatizer: most of the
memory after a million texts. `Language.memory_zone` exists since spaCy 3.8; before, everything stays.
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
Read = TypeVar("Read")

# In earlier versions zones lose what should stay, and may crash (spaCy's pull request 13713).
_ZONES_SINCE = ">=3.8.4"
# In a zone the tokenizer remembers no new word and takes 20 times as long for it: the first texts teach it theirs.
LEARNED_FROM = 10_000
# Texts per zone, and how many times as many with worker processes: these start anew with each zone, without words.
IN_ZONE, _TIMES_FOR_WORKERS = 1000, 16
# How many texts each pipeline has read here.
_READ: WeakKeyDictionary[Language, int] = WeakKeyDictionary()
# Forms whose lemma a lemmatizer of rules may remember.
_MOST_LEMMAS = 100_000


@contextmanager
def memory_zone(nlp: Language) -> Iterator[None]:
    """Begin a block at whose end its Docs, and their new words, are freed; only strings and numbers may be used afterwards.

    Zones do not nest. An exception leaves the block after the clean-up, which not every spaCy does itself.
    """
    if (
        not is_compatible_version(spacy.__version__, _ZONES_SINCE)
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
        if isinstance(pipe, Lemmatizer) and len(pipe.cache) > _MOST_LEMMAS:
            pipe.cache.clear()
    if exception is not None:
        raise exception


def zone_size(nlp: Language, n_process: int = 1) -> int:
    """Return the number of texts per zone: whole batches, as a score's last digit may depend on the rest of its batch."""
    return nlp.batch_size * max(1, IN_ZONE // nlp.batch_size) * (1 if n_process == 1 else _TIMES_FOR_WORKERS)


def in_zones(
    nlp: Language, items: Iterable[Item], read: Callable[[Iterator[Item]], Read], *, n_process: int = 1, whole: bool = False
) -> Iterator[Read]:
    """Yield the result of `read` for some texts at a time, each time in a new memory zone.

    items (Iterable): Texts, or what makes Docs when iterated. read (Callable): Runs the pipeline; its result must hold nothing
    of a Doc. n_process (int): Its worker processes. whole (bool): All at once without zones, for existing Docs.
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
    """Run `nlp.pipe(items, as_tuples=True)` in zones: read a Doc before you ask for the next one.

    items: (text, or Doc without annotation; anything that goes with it). in_zone (int | None): Texts per zone.
    """
    source, size = iter(items), in_zone or zone_size(nlp)
    while batch := list(islice(source, size)):
        with _zone_of(nlp, len(batch)):
            yield from nlp.pipe(batch, as_tuples=True)


def _zone_of(nlp: Language, n_texts: int) -> AbstractContextManager[None]:
    """Return a zone for so many texts; none for the first texts, from which the tokenizer learns."""
    read = _READ.get(nlp, 0)
    _READ[nlp] = read + n_texts
    return memory_zone(nlp) if read >= LEARNED_FROM else nullcontext()
