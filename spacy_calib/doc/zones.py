"""spaCy's memory zones: words that only some Docs added to the vocab are freed with these Docs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, cast

import spacy
from spacy.language import Language
from spacy.util import is_compatible_version

# In earlier versions zones do not exist, or free too much and may crash (spaCy's pull request 13713).
_ZONE_VERSIONS = ">=3.8.4"
# The end of a zone frees the words of all threads: one thread at a time.
_LOCK = RLock()


@contextmanager
def memory_zone(nlp: Language) -> Iterator[None]:
    """Open a memory zone of spaCy: when it ends, Docs made in it and the words that they added to the vocab are freed.

    Keep only strings and numbers from it. Inside another zone, and in spaCy before 3.8.4, no zone is opened.
    """
    with _LOCK:
        if not is_compatible_version(spacy.__version__, _ZONE_VERSIONS) or cast(Any, nlp.vocab).in_memory_zone:
            yield
            return
        exception: BaseException | None = None
        with nlp.memory_zone():
            try:
                yield
            except BaseException as error:  # up to spaCy 3.8.7 it would leave the zone open
                exception = error
        if exception is not None:
            raise exception
