"""Many texts through a pipeline with memory that does not grow: what spaCy learns of words in a batch is forgotten behind it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from spacy.language import Language
from spacy.tokens import Doc

Item = TypeVar("Item")

# So many texts go through the pipeline in one memory zone of this process. (Worker processes, which cannot have any, end with each call.)
IN_ZONE = 1_000


@contextlib.contextmanager
def memory_zone(nlp: Language) -> Iterator[None]:
    """`nlp.memory_zone`, where spaCy has it (from 3.8 on) and none is open already: Docs made inside are invalid behind it, and strings of words
    that the vocab did not know are gone. An older spaCy goes on without.
    """
    if not hasattr(nlp, "memory_zone") or getattr(nlp.vocab, "in_memory_zone", False):
        yield
        return
    with nlp.memory_zone():
        yield


def pipe_in_zones(
    nlp: Language,
    items: Iterable[tuple[str | Doc, Item]],
    *,
    batch_size: int | None = None,
    n_process: int = 1,
    in_zone: int = IN_ZONE,
) -> Iterator[tuple[Doc, Item]]:
    """`nlp.pipe(items, as_tuples=True)`, some items in a zone: what is wanted of a Doc has to be taken from it before the next one is asked for.

    items: A text, or a Doc without annotation, each with anything that goes with it. batch_size (int | None): As for `nlp.pipe`.
    in_zone (int): How many texts in a zone. With n_process workers a call of `nlp.pipe` starts them anew.
    """
    source = iter(items)
    while some := list(islice(source, in_zone)):
        with memory_zone(nlp):
            yield from nlp.pipe(some, as_tuples=True, batch_size=batch_size, n_process=n_process)
