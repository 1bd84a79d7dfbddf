"""Documents whose pairs are alike, and how often an interval holds the truth."""

import numpy as np


def texts(n_documents, seed, spread=0.0, slope=1.0, longest=40):
    """(scores, hits, documents): documents of 1 to `longest` pairs; each has a mood of its own, which cancels out over documents.

    A pair's chance of a hit is (score bent towards 1/2 by the slope) plus mood times spread times its distance from 0 or 1.
    """
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_documents), rng.integers(1, longest + 1, n_documents))
    scores = rng.random(len(documents))
    chance = 0.5 + slope * (scores - 0.5)
    mood = rng.choice([-1.0, 1.0], n_documents)[documents]
    chance = chance + spread * mood * np.minimum(chance, 1 - chance)
    return scores, rng.random(len(documents)) < chance, documents


def sample_documents(documents, n, seed):
    """(rows, documents of these rows): n documents of a pool, with replacement; each copy is a document of its own."""
    sampled = np.random.default_rng(seed).integers(documents[-1] + 1, size=n)
    first, end = np.searchsorted(documents, sampled), np.searchsorted(documents, sampled + 1)
    return np.concatenate([np.arange(*bounds) for bounds in zip(first, end, strict=True)]), np.repeat(np.arange(n), end - first)


def shares_covered(n, simulate):
    """How often each of the truths that `simulate(seed)` gives was covered."""
    return np.mean([simulate(seed) for seed in range(n)], axis=0)
