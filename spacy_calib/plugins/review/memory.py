"""Refuse texts that would need more memory than there is, before the machine stops the command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from spacy.training import Example

from .messages import calib_error

# Maximum bytes per token: of its scores; of its task in a queue of all tokens; of a Doc with gold and one with scores.
SCORE_BYTES, TASK_BYTES, DOC_BYTES = 400, 7_000, 4_500
_USUAL_MEMORY = 8 << 30  # if the size of the memory is unknown


def machine_memory() -> int:
    """Return the number of bytes of memory of this machine, or of its container."""
    sizes = []
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # no such file, or it contains "max": there is no limit
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf8")))
    return min(sizes, default=_USUAL_MEMORY)


def check_size(examples: Iterable[Example], path: Path, bytes_per_token: int) -> Iterator[Example]:
    """Yield the examples. RAISES C093: their tokens, of bytes_per_token each, need more than half of this machine's memory."""
    n_tokens, max_tokens = 0, machine_memory() // 2 // bytes_per_token
    for example in examples:
        n_tokens += len(example.reference)
        if n_tokens > max_tokens:
            raise calib_error("C093", path=path, most=f"{max_tokens:,}")
        yield example
