"""Hashes of numbers, and keyed digests of words, texts and documents, which nobody without the key can look up.

A *salt* is a key that is saved with its digests: who has both can still try words one by one, but no precomputed table helps.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
# Increment of the counter that splitmix64 hashes: an odd number near 2^64 divided by the golden ratio.
STEP = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash each number by the finalizer of splitmix64 (Steele et al. 2014), which makes hashes of neighbours unrelated."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def digest(text: str) -> int:
    """Return a 64-bit digest of a text without its white space, so that tokenization does not matter."""
    plain = "".join(text.split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(plain, digest_size=8).digest(), "little")


def salt_digests(values: Digests, salt: str) -> Digests:
    """Return the digest of each value under the salt as key; the values themselves if the salt is ""."""
    if not salt:
        return values
    distinct, indices = np.unique(values, return_inverse=True)
    key, blocks = blake2b(salt.encode()).digest(), distinct.astype("<u8").tobytes()  # 8 bytes for each value
    digest_bytes = b"".join(blake2b(blocks[i : i + 8], digest_size=8, key=key).digest() for i in range(0, len(blocks), 8))
    return np.frombuffer(digest_bytes, dtype="<u8").astype(np.uint64)[indices.reshape(-1)]
