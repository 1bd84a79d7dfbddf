"""Numbers made random, and digests of words, texts and documents that cannot be guessed without their key.

A *salt* is a key kept beside its digests: its owner can still try words one by one, but no table made beforehand
helps. A `Key` is kept by those who collect statistics, and is in none of their files. Knows numbers, never texts.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from hashlib import blake2b, shake_256
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
    """Digests of each value with the salt; without one ("", in older pipelines) the values themselves."""
    if not salt:
        return values
    distinct, place = np.unique(values, return_inverse=True)
    key, held = blake2b(salt.encode()).digest(), distinct.astype("<u8").tobytes()
    made = b"".join(blake2b(held[i : i + 8], digest_size=8, key=key).digest() for i in range(0, len(held), 8))
    return np.frombuffer(made, dtype="<u8").astype(np.uint64)[place.reshape(-1)]


def hasher(key: Key | None) -> blake2b:
    """What makes the digest of a shard's content."""
    return blake2b(digest_size=16, key=b"" if key is None else key.of_documents.encode())


@dataclass(frozen=True)
class Key:
    """A collector's secret. What is derived does not lead back to it, nor to anything else derived. secret: Random."""

    secret: bytes = field(repr=False)

    @classmethod
    def draw(cls) -> Key:
        """A new one."""
        return cls(secrets.token_bytes(_BYTES))

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

    def write(self, path: str | Path) -> None:
        """Write a new file that only its owner may read. RAISES OSError: it is there already, or cannot be written."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{self.secret.hex()}\n")

    @property
    def fingerprint(self) -> str:
        """The name of the key in files."""
        return self._derived("fingerprint")[:16]

    @property
    def salt(self) -> str:
        """The salt of pipes fitted with it, and of texts in files."""
        return self._derived("salt")

    @property
    def of_documents(self) -> str:
        """The salt of documents' digests, which is in no file."""
        return self._derived("documents")

    def seal(self, words: Digests) -> np.uint64:
        """A digest of a Doc's words, under which they are hidden. words (Digests): Shape (k, n)."""
        made = blake2b(words.astype("<u8").tobytes(), digest_size=8, key=bytes.fromhex(self._derived("seal"))).digest()
        return np.uint64(int.from_bytes(made, "little"))

    def hide(self, words: Digests, seal: np.uint64) -> Digests:
        """The words as random-looking numbers, no two equal ones alike; applied again, the words."""
        begin = bytes.fromhex(self._derived("stream")) + int(seal).to_bytes(8, "little")
        return words ^ np.frombuffer(shake_256(begin).digest(8 * words.size), dtype="<u8").reshape(words.shape)

    def _derived(self, purpose: str) -> str:
        return blake2b(purpose.encode(), digest_size=16, key=self.secret).hexdigest()
