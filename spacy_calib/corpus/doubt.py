"""How doubtful a token's label is, by several signals; the relative confidence of Mejer & Crammer (2010, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import calib_error
from ..types import Floats

if TYPE_CHECKING:
    from .scored import ScoredCorpus

DOUBTS = ("calibrated", "raw", "margin", "raw_margin", "entropy", "raw_entropy", "random")


def check_doubt(by: str) -> str:
    """The name of a signal, as it is. RAISES C001: there is no such signal."""
    if by not in DOUBTS:
        raise calib_error("C001", name="by", wanted=f"one of {', '.join(DOUBTS)}", given=repr(by))
    return by


def doubts(corpus: ScoredCorpus, by: str = "calibrated", seed: int = 0) -> Floats:
    """How doubtful the label of each token is.

    corpus (ScoredCorpus): n tokens. by (str): The signal: "calibrated" or "raw" (1 minus the label's probability), "margin" or
        "raw_margin" (the best other tag's probability minus the label's), "entropy" or "raw_entropy" (of the token's scores, in nats),
        "random". seed (int): Of the random order.
    RETURNS (Floats): Higher is more doubtful, shape (n,); NaN for tokens that are not counted.
    RAISES C001: no signal has this name.
    """
    kind, raw = check_doubt(by).removeprefix("raw_"), by.startswith("raw")
    label_scores, tag_scores = (corpus.raw, corpus.tag_raw) if raw else (corpus.calibrated, corpus.tag_calibrated)
    if kind == "random":
        found = np.random.default_rng(seed).permutation(len(corpus)) / max(1, len(corpus))
    elif kind == "margin":
        found = best_other(corpus, tag_scores) - label_scores
    elif kind == "entropy":
        found = entropies(corpus, tag_scores)
    else:
        found = 1 - label_scores
    return np.where(corpus.counted, found, np.nan)


def best_other(corpus: ScoredCorpus, tag_scores: Floats) -> Floats:
    """The highest score of a tag that is not the label of its token, 0 where no other reaches the threshold; shape (n,)."""
    other = corpus.tags != corpus.labels[corpus.rows]
    best = np.zeros(len(corpus))
    np.maximum.at(best, corpus.rows[other], tag_scores[other])
    return best


def entropies(corpus: ScoredCorpus, tag_scores: Floats) -> Floats:
    """The entropy of each token's scores in nats, shape (n,). What they leave of 1 counts as one more outcome; where they sum to more
    than 1, which scores calibrated one by one may do, they are divided by their sum.
    """
    total = np.bincount(corpus.rows, tag_scores, minlength=len(corpus))
    scale = np.maximum(1.0, total)
    summed = np.bincount(corpus.rows, _surprise(tag_scores / scale[corpus.rows]), minlength=len(corpus))
    return summed + _surprise(np.maximum(0.0, 1 - total / scale))


def _surprise(scores: Floats) -> Floats:
    """-p log p, 0 at 0."""
    return -scores * np.log(np.where(scores > 0, scores, 1.0))
