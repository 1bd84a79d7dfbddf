"""Count distinct digests among very many, in little memory."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...pairs.keyed import Digests
from .messages import calib_error

# Number of digests in memory at once.
_BLOCK_SIZE = 1 << 20


@contextmanager
def report_file_errors(code: str) -> Iterator[None]:
    """Raise a CalibError with this code (C399 or C468) if the temporary file cannot be written or read."""
    try:
        yield
    except OSError as error:
        raise calib_error(code, why=error.strerror or error) from None


class DistinctCounter:
    """Count distinct digests in a temporary file of eight bytes each. RAISES C399: the file cannot be written."""

    def __init__(self) -> None:
        self._n = 0
        with report_file_errors("C399"):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as this object is there)
        weakref.finalize(self, self._file.close)

    def add(self, digests: Digests) -> None:
        with report_file_errors("C399"):
            self._file.write(digests.astype("<u8").tobytes())
        self._n += len(digests)

    def count(self) -> int:
        """Return how many different digests were added, part by part so that memory stays bounded."""
        n_parts = -(-self._n // _BLOCK_SIZE)
        return sum(
            len(np.unique(np.concatenate([block[block % np.uint64(n_parts) == part] for block in self._blocks()])))
            for part in range(n_parts)
        )

    def _blocks(self) -> Iterator[Digests]:
        self._file.seek(0)
        while block := self._file.read(8 * _BLOCK_SIZE):
            yield np.frombuffer(block, dtype="<u8")
