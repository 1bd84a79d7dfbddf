import numpy as np

from spacy_calib.calibration.solvers import log_odds, sigmoid
from spacy_calib.context.words import Words
from spacy_calib.types import Pairs


def words_of(forms: list[list[int]]) -> Words:
    """Docs whose forms are these numbers; a form below 0 is white space."""
    flat = np.array([form for doc in forms for form in doc], dtype=np.int64)
    starts, digests = np.cumsum([0, *map(len, forms)]), np.abs(flat).astype(np.uint64)
    return Words(starts, digests, digests % np.uint64(7), np.zeros(len(flat), dtype=np.intp), flat >= 0)


def words_and_pairs(n_docs: int = 60, seed: int = 0) -> tuple[Words, Pairs, np.ndarray]:
    """Docs of 30 tokens with two tags each; words above 100 have a likeliest tag that is right far less often than its score says."""
    rng = np.random.default_rng(seed)
    n = 30 * n_docs
    hard = rng.random(n) < 0.5
    top = np.where(hard, rng.uniform(0.5, 0.9, n), rng.uniform(0.7, 0.99, n))
    right = rng.random(n) < sigmoid(log_odds(top) - 1.5 * hard)
    rows = np.repeat(np.arange(n), 2)
    scores = np.column_stack([top, 1 - top]).ravel()
    hits = np.column_stack([right, ~right]).ravel()
    forms = rng.integers(1, 20, n) + 100 * hard
    words = words_of(forms.reshape(n_docs, 30).tolist())
    return words, Pairs(rows, np.tile([0, 1], n), scores, hits, n), np.repeat(np.arange(n_docs), 60)
