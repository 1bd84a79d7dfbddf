"""Refuse texts that would need more memory than there is, before the machine stops the command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from spacy.training import Example

from .messages import calib_error

# Bytes that a token takes at most: its scores; its task in a queue of all tokens; a Doc with gold and one with scores.
SCORES, TASKS, DOCS = 400, 7_000, 4_500
# If the size of the memory is unknown.
_USUAL_MEMORY = 8 << 30


def machine_memory() -> int:
    """Return the number of bytes of memory of this machine, or of its container."""
    sizes = []
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # "max"
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf8")))
    return min(sizes, default=_USUAL_MEMORY)


def check_size(examples: Iterable[Example], path: Path, bytes_per_token: int) -> Iterator[Example]:
    """Yield the examples. bytes_per_token: Needed memory. RAISES C093: the tokens need more than half of the machine's."""
    n_tokens, max_tokens = 0, machine_memory() // 2 // bytes_per_token
    for example in examples:
        n_tokens += len(example.reference)
        if n_tokens > max_tokens:
            raise calib_error("C093", path=path, most=f"{max_tokens:,}")
        yield example
