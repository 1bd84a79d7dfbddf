"""Numbers made random, and digests of words, texts and documents that cannot be guessed without their key.

A *salt* is a key kept beside its digests: its owner can still try words one by one, but no table made beforehand
helps. A `Key` makes the salt of two fits the same. Knows numbers, never texts.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error

Digests = NDArray[np.uint64]
_BYTES = 32
# What splitmix64 counts by: an odd number near 2^64 divided by the golden ratio.
STEP = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele et al. 2014): another number for each, far apart even for neighbours."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def draw_salt() -> str:
    """A new salt."""
    return secrets.token_hex(16)


def keyed(values: Digests, salt: str) -> Digests:
    """Digests of each value with the salt; without one ("") the values themselves."""
    if not salt:
        return values
    distinct, place = np.unique(values, return_inverse=True)
    key, held = blake2b(salt.encode()).digest(), distinct.astype("<u8").tobytes()
    made = b"".join(blake2b(held[i : i + 8], digest_size=8, key=key).digest() for i in range(0, len(held), 8))
    return np.frombuffer(made, dtype="<u8").astype(np.uint64)[place.reshape(-1)]


@dataclass(frozen=True)
class Key:
    """A secret, from which the salt is made; it does not lead back. secret: Random."""

    secret: bytes = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> Key:
        """The key in a file. RAISES C480: there is no file, or something else is in it."""
        wanted = f"{2 * _BYTES} hexadecimal digits are wanted"
        try:
            secret = bytes.fromhex(Path(path).read_text("ascii"))
        except OSError as error:
            raise calib_error("C480", path=path, why=error.strerror or error) from None
        except ValueError:
            raise calib_error("C480", path=path, why=wanted) from None
        if len(secret) != _BYTES:
            raise calib_error("C480", path=path, why=wanted)
        return cls(secret)

    @property
    def salt(self) -> str:
        """The salt of pipes fitted with it."""
        return blake2b(b"salt", digest_size=16, key=self.secret).hexdigest()
