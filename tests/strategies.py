"""Hypothesis strategies for scores, hits, weights and pairs."""

import numpy as np
from hypothesis import strategies as st

from spacy_calib.types import Pairs

# The ends, the default threshold, numbers without an exact binary form, neighbours one ulp apart, float32 numbers, denormals, minus zero.
SPECIAL = [
    0.0, -0.0, 1.0, 0.01, 0.1, 0.25, 0.5, float(np.nextafter(0.5, 1)), float(np.nextafter(0.5, 0)), 1 / 3,
    float(np.float32(1 / 3)), float(np.nextafter(np.float32(1 / 3), np.float32(1))), 5e-324, 1e-310, float(np.nextafter(1, 0)),
]  # fmt: skip

any_score = st.one_of(st.sampled_from(SPECIAL), st.floats(0.0, 1.0), st.floats(0.0, 1.0, width=32))
# Few distinct values: nearly every score is tied.
tied_score = st.integers(0, 8).map(lambda i: i / 8)
score = st.one_of(any_score, tied_score)


def arrays(elements: st.SearchStrategy, min_size: int = 1, max_size: int = 60) -> st.SearchStrategy:
    """One-dimensional arrays of these elements."""
    return st.lists(elements, min_size=min_size, max_size=max_size).map(np.array)


def score_arrays(min_size: int = 1, max_size: int = 60) -> st.SearchStrategy:
    """Float64 arrays of n scores; some with ties everywhere."""
    return st.one_of(arrays(score, min_size, max_size), arrays(tied_score, min_size, max_size))


@st.composite
def scored_hits(draw, min_size: int = 1, max_size: int = 60):
    """(scores, hits): float64 and bool arrays of one length."""
    scores = draw(score_arrays(min_size, max_size))
    hits = draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    return scores, np.array(hits, dtype=bool)


@st.composite
def scored_hits_with_order(draw, min_size: int = 1, max_size: int = 60):
    """(scores, hits, order): `order` permutes the rows."""
    scores, hits = draw(scored_hits(min_size, max_size))
    return scores, hits, np.array(draw(st.permutations(range(len(scores)))))


@st.composite
def pairs_of_tokens(draw, n_tags: int = 6, max_tokens: int = 20):
    """Pairs of some tokens: 0 to n_tags pairs each, at most one hit a token."""
    rows, tags, scores, hits = [], [], [], []
    n_tokens = draw(st.integers(1, max_tokens))
    for row in range(n_tokens):
        of_token = sorted(draw(st.sets(st.integers(0, n_tags - 1), max_size=n_tags)))
        gold = draw(st.integers(-1, n_tags - 1))
        for tag in of_token:
            rows.append(row)
            tags.append(tag)
            scores.append(draw(score))
            hits.append(tag == gold)
    return Pairs(np.array(rows, np.intp), np.array(tags, np.intp), np.array(scores), np.array(hits, bool), n_tokens)


def make_pairs(scores, hits, tags=None, rows=None, n_units: int | None = None) -> Pairs:
    """Pairs from lists; one token a pair and tag 0 where nothing else is said."""
    n = len(scores)
    rows = np.arange(n) if rows is None else np.array(rows, dtype=np.intp)
    tags = np.zeros(n, dtype=np.intp) if tags is None else np.array(tags, dtype=np.intp)
    units = (int(rows[-1]) + 1 if n else 0) if n_units is None else n_units
    return Pairs(rows, tags, np.array(scores, dtype=np.float64), np.array(hits, dtype=bool), units)


def bernoulli(n: int, seed: int, power: float = 1.0, decimals: int | None = None):
    """(scores, hits): n uniform scores and hits drawn with probability score ** power; power 1 is perfect calibration."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    if decimals is not None:
        scores = scores.round(decimals)
    return scores, rng.random(n) < scores**power
