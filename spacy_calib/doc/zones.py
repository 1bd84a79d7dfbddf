"""Zones of spaCy's memory: what a pipeline added to its vocab for some Docs is let go with them.

Every word that is new to a pipeline stays in its StringStore and Vocab, and what a lemmatizer of rules made of it in a table: over a million texts
that is most of the memory. spaCy has `Language.memory_zone` for that since 3.8; before, everything stays.
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

# Zones of earlier versions lose what was to stay, and may crash (spaCy's pull request 13713).
_ZONES_SINCE = ">=3.8.4"
# Inside of a zone the tokenizer remembers no word, and takes 20 times as long for one that it does not know: it learns those of the first texts.
LEARNED_FROM = 10_000
# Texts of a zone, and how many times that where there are worker processes: they begin anew with each zone, and so keep no words either.
IN_ZONE, _TIMES_FOR_WORKERS = 1000, 16
# How many texts each pipeline has read here.
_READ: WeakKeyDictionary[Language, int] = WeakKeyDictionary()
# Forms whose lemma a lemmatizer of rules may remember.
_MOST_LEMMAS = 100_000


@contextmanager
def memory_zone(nlp: Language) -> Iterator[None]:
    """Begin a block whose Docs, and the words that only they brought, are let go at its end: nothing of a Doc, a token or a lexeme may be used after
    it, and no hash be looked up that came with them; strings and numbers may. Zones are not to be nested: inside of one nothing begins. An exception
    leaves the block when the zone is cleaned up, which not every spaCy does itself.
    """
    if (
        not is_compatible_version(spacy.__version__, _ZONES_SINCE)
        or not hasattr(nlp, "memory_zone")
        or cast(Any, nlp.vocab).in_memory_zone
    ):
        yield
        return
    raised: BaseException | None = None
    with nlp.memory_zone():
        try:
            yield
        except BaseException as error:
            raised = error
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, Lemmatizer) and len(pipe.cache) > _MOST_LEMMAS:
            pipe.cache.clear()
    if raised is not None:
        raise raised


def zone_size(nlp: Language, n_process: int = 1) -> int:
    """Texts of a zone: whole batches, as they are without zones, since the last digit of a score may depend on what stands beside a text."""
    return nlp.batch_size * max(1, IN_ZONE // nlp.batch_size) * (1 if n_process == 1 else _TIMES_FOR_WORKERS)


def in_zones(
    nlp: Language, items: Iterable[Item], read: Callable[[Iterator[Item]], Read], *, n_process: int = 1, whole: bool = False
) -> Iterator[Read]:
    """What is read of some texts after the others, each time in a zone of its own: see `memory_zone`.

    items (Iterable): Texts, or what makes their Docs when it is asked for them. read (Callable): Runs the pipeline over some of them; what it gives
        may hold nothing of a Doc. n_process (int): Its worker processes. whole (bool): All at once, without zones: of Docs that were made, or whose
        words were read, before.
    """
    size, left, any_read = zone_size(nlp, n_process), iter(items), False
    if whole:
        yield read(left)
        return
    while True:
        with _zone_of(nlp, size):
            first = list(islice(left, 1))
            if not first and any_read:
                return
            found = read(chain(first, islice(left, size - 1)))
            del first
        any_read = True
        yield found


def pipe_in_zones(
    nlp: Language,
    items: Iterable[tuple[str | Doc, Item]],
    *,
    batch_size: int | None = None,
    n_process: int = 1,
    in_zone: int | None = None,
) -> Iterator[tuple[Doc, Item]]:
    """`nlp.pipe(items, as_tuples=True)` in zones: what is wanted of a Doc has to be taken from it before the next one is asked for.

    items: A text, or a Doc without annotation, each with anything that goes with it. batch_size (int | None): As for `nlp.pipe`.
    in_zone (int | None): How many texts in a zone, see `zone_size`. With n_process workers a call of `nlp.pipe` starts them anew.
    """
    source, size = iter(items), in_zone or zone_size(nlp, n_process)
    while some := list(islice(source, size)):
        with _zone_of(nlp, len(some)):
            yield from nlp.pipe(some, as_tuples=True, batch_size=batch_size, n_process=n_process)


def _zone_of(nlp: Language, n_texts: int) -> AbstractContextManager[None]:
    """A zone for so many texts; none for those that the tokenizer learns from."""
    read = _READ.get(nlp, 0)
    _READ[nlp] = read + n_texts
    return memory_zone(nlp) if read >= LEARNED_FROM else nullcontext()
