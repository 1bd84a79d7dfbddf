"""The number of distinct digests among very many, in little memory."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...pairs.keyed import Digests
from .messages import calib_error

# How many digests are held at once.
_MOST = 1 << 20


@contextmanager
def file_faults(code: str) -> Iterator[None]:
    """RAISES C399, C468: a temporary file cannot be written."""
    try:
        yield
    except OSError as error:
        raise calib_error(code, why=error.strerror or error) from None


class Distinct:
    """Counts distinct digests in a temporary file, eight bytes each. RAISES C399: no folder or room for it."""

    def __init__(self) -> None:
        self._n = 0
        with file_faults("C399"):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as this object is there)
        weakref.finalize(self, self._file.close)

    def add(self, digests: Digests) -> None:
        """Add some more."""
        with file_faults("C399"):
            self._file.write(digests.astype("<u8").tobytes())
        self._n += len(digests)

    def count(self) -> int:
        """How many distinct ones were added."""
        n_parts = -(-self._n // _MOST)
        return sum(
            len(np.unique(np.concatenate([block[block % np.uint64(n_parts) == part] for block in self._blocks()])))
            for part in range(n_parts)
        )

    def _blocks(self) -> Iterator[Digests]:
        self._file.seek(0)
        while block := self._file.read(8 * _MOST):
            yield np.frombuffer(block, dtype="<u8")
