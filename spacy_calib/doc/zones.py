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
    """Open a zone: at its end its Docs and their new words are freed. Keep strings and numbers. A zone in a zone is none."""
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
