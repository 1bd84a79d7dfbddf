"""Are pairs of tags on two consecutive tokens calibrated? By the product of the two marginals, or by a joint probability.

A *place* is a token and the one after it. Pairs of tags are held as `Pairs` whose units are places (row: the first token) and whose
tags are codes: first column * n_tags + second column. So every metric of single tags takes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_calib.errors import calib_error
from spacy_calib.metrics.calibration_error import calibration_error
from spacy_calib.pairs.bins import check_count
from spacy_calib.pairs.build import check_threshold, from_dense, from_sparse, pair_up
from spacy_calib.types import Floats, Ints, Marginals, Pairs, as_probabilities

Bools = NDArray[np.bool_]
# Products that are formed together: keeps a corpus with hundreds of tags a token in bounds.
_PRODUCTS = 1 << 21


@dataclass(frozen=True, eq=False)
class TagPairs:
    """Pairs of tags whose score is the product of two marginals.

    pairs (Pairs): Places, codes, products, and whether both tags are right.
    first, second (Ints): The entry of each factor in the single tags.
    """

    pairs: Pairs
    first: Ints
    second: Ints

    def of(self, scores: ArrayLike) -> Floats:
        """The products of other scores of the same single tags (calibrated ones), shape (len(pairs),).

        RAISES C001: values out of range.
        """
        given = as_probabilities("scores", scores)
        return given[self.first] * given[self.second]


def product_pairs(singles: Pairs, joined: ArrayLike, n_tags: int, threshold: float = 0.01) -> TagPairs:
    """Pairs of tags as if neighbouring tags were independent (after Nguyen & O'Connor 2015, section 4.2.3, who use the joint).

    Where the single tags reach a threshold no higher than this one, no pair is missed: a product is at most its factors. A place has at
    most 1 / threshold pairs if the scores of a token sum to 1; nothing of size n_tags x n_tags is made.

    singles (Pairs): Scores of tokens; their rows number the tokens of the whole text, ascending.
    joined: Whether token i and token i + 1 make a place (one sentence, gold known for both), for i = 0 .. n_tokens - 2, as booleans.
    n_tags (int): Columns of the single tags. threshold (float): Products below it take no part.
    RETURNS (TagPairs): By place, then by the entries of its tokens.
    RAISES C001: threshold or n_tags out of range, rows that are not ascending, or a tag that is not in 0 .. n_tags - 1.
        C002: fewer places than the rows need.
    """
    check_threshold(threshold)
    places = _check_places(singles, joined, check_count("n_tags", n_tags))
    parts = list(_products(singles, places, threshold))
    none = np.zeros(0, dtype=np.intp)
    first = np.concatenate([none, *(part[0] for part in parts)])
    second = np.concatenate([none, *(part[1] for part in parts)])
    codes = singles.tags[first] * n_tags + singles.tags[second]
    scores, hits = singles.scores[first] * singles.scores[second], singles.hits[first] & singles.hits[second]
    return TagPairs(Pairs(singles.rows[first], codes, scores, hits, int(places.sum())), first, second)


def _check_places(singles: Pairs, joined: ArrayLike, n_tags: int) -> Bools:
    places = np.asarray(joined, dtype=bool)
    if len(singles):
        if (np.diff(singles.rows) < 0).any():
            raise calib_error("C001", name="rows", wanted="ascending", given="another order")
        low, high = int(singles.tags.min()), int(singles.tags.max())
        if low < 0 or high >= n_tags:
            raise calib_error("C001", name="tags", wanted=f"columns in 0 .. {n_tags - 1}", given=f"a range of {low} to {high}")
        needed = int(singles.rows[-1])
        if places.ndim != 1 or len(places) < needed:
            raise calib_error(
                "C002",
                what="The list of places",
                first="entry",
                second="token but the last",
                n_first=places.size,
                n_second=needed,
            )
    return places


def _products(singles: Pairs, places: Bools, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """(entry of the first factor, entry of the second) of the products that reach the threshold, some first entries at a time."""
    able = np.flatnonzero(singles.scores >= threshold)
    rows, scores = singles.rows[able], singles.scores[able]
    opens = np.flatnonzero(np.append(places, [False])[np.minimum(rows, len(places))])
    begins, ends = np.searchsorted(rows, rows[opens] + 1), np.searchsorted(rows, rows[opens] + 2)
    lengths = ends - begins
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // _PRODUCTS)) + 1
    for own in np.split(np.arange(len(opens)), cuts):
        wanted = lengths[own]
        first = np.repeat(opens[own], wanted)
        second = np.repeat(begins[own] - (np.cumsum(wanted) - wanted), wanted) + np.arange(wanted.sum())
        keep = scores[first] * scores[second] >= threshold
        yield able[first[keep]], able[second[keep]]


def joint_pairs(joint: Any, gold: ArrayLike, n_tags: int, joined: ArrayLike | None = None, threshold: float = 0.01) -> Pairs:
    """Pairs of tags by the joint probability that a model gives them (Nguyen & O'Connor 2015, section 4.2.3).

    joint: P(tags of token i and i + 1 | sentence) for i = 0 .. n - 2: an array (n - 1, n_tags, n_tags), a scipy sparse matrix
        (n - 1, n_tags * n_tags) whose columns are codes, or `Marginals` of such codes.
    gold: Column of the gold tag of each token, shape (n,): -1 where the model does not know it, -2 where there is none.
    n_tags (int): Columns of the tags.
    joined: Which places count, shape (n - 1,), as in `product_pairs`; None takes all whose two tokens have gold.
    threshold (float): Probabilities below it take no part; of `Marginals` all do.
    RETURNS (Pairs): See above.
    RAISES C001: threshold or shape out of range. C002: gold or joined of another length.
    """
    held = _held(joint, check_count("n_tags", n_tags), threshold)
    columns = np.asarray(gold, dtype=np.intp)
    if len(columns) != held.n_tokens + 1:
        raise calib_error(
            "C002",
            what="A joint of n - 1 places",
            first="gold tag",
            second="token",
            n_first=columns.size,
            n_second=held.n_tokens + 1,
        )
    codes = pair_gold(columns, n_tags)
    if joined is not None:
        places = np.asarray(joined, dtype=bool)
        if places.shape != codes.shape:
            raise calib_error(
                "C002", what="The list of places", first="entry", second="place", n_first=places.size, n_second=len(codes)
            )
        codes[~places] = -2
    return pair_up(held, codes)


def pair_gold(gold: ArrayLike, n_tags: int) -> Ints:
    """The gold code of each place, shape (n - 1,): -1 where a gold tag is unknown to the model, -2 where one is missing."""
    columns = np.asarray(gold, dtype=np.intp)
    first, second = columns[:-1], columns[1:]
    lower = np.minimum(first, second)
    return np.where(lower < 0, lower, first * n_tags + second)


def _held(joint: Any, n_tags: int, threshold: float) -> Marginals:
    """The probabilities that reach the threshold, with codes as tags."""
    if isinstance(joint, Marginals):
        return joint
    if hasattr(joint, "tocsr"):
        if joint.shape[1] != n_tags**2:
            raise calib_error("C001", name="joint", wanted=f"a matrix of {n_tags**2} columns", given=f"shape {joint.shape}")
        return from_sparse(joint, threshold)
    dense = np.asarray(joint)
    if dense.ndim != 3 or dense.shape[1:] != (n_tags, n_tags):
        raise calib_error("C001", name="joint", wanted=f"an array (places, {n_tags}, {n_tags})", given=f"shape {dense.shape}")
    return from_dense(dense.reshape(len(dense), n_tags**2), threshold)


def frequent_errors(
    pairs: Pairs, scores: ArrayLike | None = None, most: int = 5, n_bins: int = 10, bin_size: int | None = None
) -> dict[int, float]:
    """Calibration error of each of the tags, or pairs of tags, that are right most often (Nguyen & O'Connor 2015, figure 4).

    scores: Replace the raw ones. most (int): How many. n_bins, bin_size: See `calibration_error`.
    RETURNS (dict[int, float]): Column or code -> error, most frequent first; of equals the lower one.
    RAISES C001: most below 1, or values out of range.
    """
    judged = pairs.scores if scores is None else as_probabilities("scores", scores)
    found, counts = np.unique(pairs.tags[pairs.hits], return_counts=True)
    wanted = found[np.argsort(-counts, kind="stable")][: check_count("most", most)]
    order = np.argsort(pairs.tags, kind="stable")
    bounds = np.searchsorted(pairs.tags[order], [wanted, wanted + 1]).T
    errors = {}
    for tag, (begin, end) in zip(wanted.tolist(), bounds.tolist(), strict=True):
        own = order[begin:end]
        error = calibration_error(judged[own], pairs.hits[own], n_bins, bin_size)
        assert error is not None
        errors[tag] = error
    return errors
