"""The probabilities that sources read from Docs, and marginals: those of them that reach a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..types import ROUNDING, Floats, Ints, Marginals, Spans

_BLOCK_CELLS = 1 << 22  # cells of a dense block that are read together: limits the memory for 100,000 tokens and 600 tags
_SAFE_EXPONENT = 600.0  # logits no farther from 0 have exponentials that neither overflow, in sums of any length, nor vanish


def check_threshold(threshold: float) -> float:
    """Return the threshold as a float. RAISES C001: it is not a number in [0, 1)."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not 0 <= threshold < 1:
        raise calib_error("C001", name="threshold", wanted="a number in [0, 1)", given=repr(threshold))
    return float(threshold)


def from_dense(scores: NDArray[Any], threshold: float = 0.01) -> Marginals:
    """Make marginals of the entries of a dense array that reach the threshold.

    scores: Probabilities, (n_tokens, n_tags). threshold: Entries below are dropped (Kranzlein et al. 2021, section 3.1).
    RAISES C001: the array is not two-dimensional, or the threshold out of range.
    """
    if scores.ndim != 2:
        raise calib_error("C001", name="marginals", wanted="an array (tokens, tags)", given=f"shape {scores.shape}")
    check_threshold(threshold)
    parts, n_tags = [], scores.shape[1]
    step = max(1, _BLOCK_CELLS // max(1, n_tags))  # number of tokens in a block
    for start in range(0, max(1, len(scores)), step):
        block = scores[start : start + step]
        cells = block.ravel()
        # flatnonzero on the flat view is several times as fast as nonzero in two dimensions; the threshold is an array,
        # so that every numpy compares float32 scores with it in float64
        flat = np.flatnonzero(cells >= np.array([threshold]))
        rows = flat // max(1, n_tags)  # by one number: several times as fast as divmod
        parts.append(Marginals(rows, flat - rows * n_tags, cells[flat].astype(np.float64), len(block)))
    return stack(parts)


def from_sparse(matrix: Any, threshold: float = 0.01) -> Marginals:
    """Make marginals of the entries of a scipy sparse matrix (tokens, tags) that reach the threshold; duplicates are summed.

    RAISES C001: the threshold is not in [0, 1).
    """
    check_threshold(threshold)
    csr = matrix.tocsr(copy=True)
    csr.sum_duplicates()
    coo = csr.tocoo()
    keep = coo.data >= np.array([threshold])  # an array, so that every numpy compares float32 scores in float64
    rows, tags = coo.row[keep].astype(np.intp), coo.col[keep].astype(np.intp)
    return Marginals(rows, tags, coo.data[keep].astype(np.float64), matrix.shape[0])


class Scores(Protocol):
    """Probabilities that a source read from a batch of Docs: of all n_tokens tokens, one Doc after the other.

    spans (Spans | None): The spans that the source predicts; None for a source of token labels alone.
    further_scores (Mapping): More features of each token that a calibration may use: description -> numbers, (n_tokens,).
    """

    n_tokens: int
    spans: Spans | None
    further_scores: Mapping[str, Floats]

    def marginals_above(self, threshold: float) -> Marginals:
        """Return the entries (token, label and probability) whose probability reaches the threshold."""

    def scores_at(self, rows: Ints, columns: Ints) -> Floats:
        """Return the probability of each label columns[i] at token rows[i]; 0 if absent, NaN if the token was not read."""


class DenseScores:
    """The `Scores` of a source that gives a dense array of probabilities.

    probabilities: Shape (n_tokens, n_labels); NaN for tokens without any. spans (Spans | None): Spans that the source predicts.
    """

    further_scores: Mapping[str, Floats] = {}

    def __init__(self, probabilities: NDArray[Any], spans: Spans | None = None):
        self.probabilities = probabilities
        self.n_tokens = len(probabilities)
        self.spans = spans

    def marginals_above(self, threshold: float) -> Marginals:
        return from_dense(self.probabilities, threshold)

    def scores_at(self, rows: Ints, columns: Ints) -> Floats:
        return self.probabilities[rows, columns].astype(np.float64)


class LogitScores:
    """The `Scores` of a source that gives a dense array of logits; the softmax is taken in float64, some rows at a time.

    logits: Shape (n_tokens, n_labels), any float type. temperature (float): Divides the logits.
    """

    _CELLS = 1 << 21  # maximum number of logits that are converted together
    spans: Spans | None = None
    further_scores: Mapping[str, Floats] = {}

    def __init__(self, logits: NDArray[Any], temperature: float = 1.0):
        self.logits = logits
        self.temperature = temperature
        self.n_tokens = len(logits)

    def _odds(self, logits: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return for logits (n, n_labels): (numbers in proportion to the probabilities, same shape; the sum of each row)."""
        logits = logits if self.temperature == 1.0 else np.divide(logits, self.temperature, dtype=np.float64)
        lowest = np.minimum.reduce(logits, axis=None, initial=0.0)
        highest = np.maximum.reduce(logits, axis=None, initial=0.0)
        is_safe = lowest > -_SAFE_EXPONENT and highest < _SAFE_EXPONENT  # exponentials neither overflow nor vanish
        if not is_safe:
            logits = logits.astype(np.float64)
            logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits, dtype=np.float64)
        return odds, np.einsum("ij->i", odds)  # the sum of each row

    def marginals_above(self, threshold: float) -> Marginals:
        """Return the entries whose softmax score reaches the threshold, computed for some tokens at a time to save memory."""
        step = max(1, self._CELLS // max(1, self.logits.shape[1]))
        starts = range(0, max(1, self.n_tokens), step)
        return stack([self._above(self.logits[start : start + step], threshold) for start in starts])

    def _above(self, logits: NDArray[Any], threshold: float) -> Marginals:
        """Return the softmax scores of some rows of logits that reach the threshold."""
        n_labels = max(1, logits.shape[1])
        odds, sums = self._odds(logits)
        # To save time only what may reach the threshold is divided by the sum of its row. `flat`: indices in the flat array.
        flat = (odds >= (sums * (threshold * (1 - ROUNDING)))[:, None]).ravel().nonzero()[0]
        rows = flat // n_labels
        scores = odds.ravel()[flat] / sums[rows]
        is_kept = scores >= threshold
        if np.count_nonzero(is_kept) < len(flat):
            flat, rows, scores = flat[is_kept], rows[is_kept], scores[is_kept]
        return Marginals(rows, flat - rows * n_labels, scores, len(logits))

    def scores_at(self, rows: Ints, columns: Ints) -> Floats:
        odds, sums = self._odds(self.logits[rows])
        return odds[np.arange(len(rows)), columns] / sums


class SparseScores:
    """The `Scores` of a source that gives sparse probabilities, such as those of lemmas.

    marginals (Marginals): The probabilities. spans (Spans | None): The spans that the source predicts. absent (float): Score of
        a label without an entry; NaN if it is not known. further_scores (Mapping | None): Description -> numbers, (n_tokens,).
    """

    def __init__(
        self,
        marginals: Marginals,
        spans: Spans | None = None,
        absent: float = 0.0,
        further_scores: Mapping[str, Floats] | None = None,
    ):
        self.marginals = marginals
        self.n_tokens = marginals.n_tokens
        self.spans = spans
        self.absent = absent
        self.further_scores = further_scores or {}

    def marginals_above(self, threshold: float) -> Marginals:
        return self.marginals.take(np.flatnonzero(self.marginals.scores >= threshold))

    def scores_at(self, rows: Ints, columns: Ints) -> Floats:
        entries = zip(self.marginals.rows.tolist(), self.marginals.tags.tolist(), strict=True)
        score_of = dict(zip(entries, self.marginals.scores.tolist(), strict=True))
        requested = zip(rows.tolist(), columns.tolist(), strict=True)
        return np.array([score_of.get(entry, self.absent) for entry in requested])


def stack(parts: Sequence[Marginals]) -> Marginals:
    """Join the marginals of consecutive runs of tokens, numbered from 0 in each; also `names`, if the first part has any."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        empty = np.zeros(0, dtype=np.intp)
        return Marginals(empty, empty, np.zeros(0), 0)
    offsets = np.cumsum([0, *(part.n_tokens for part in parts)])
    names = None if parts[0].names is None else [name for part in parts for name in part.names or ()]
    rows = np.concatenate([part.rows + offset for part, offset in zip(parts, offsets[:-1], strict=True)])
    tags, scores = (np.concatenate([getattr(part, name) for part in parts]) for name in ("tags", "scores"))
    return Marginals(rows, tags, scores, int(offsets[-1]), names)
