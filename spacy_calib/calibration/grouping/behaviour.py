"""Grouping by score behaviour: tags whose scores are wrong in the same way share a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import numpy as np

from ...errors import calib_error
from ...pairs.bins import adaptive_edges, assign, check_count
from ...types import Floats, Groups, Ints, Pairs
from ..recalibrators.isotonic import IsotonicRegression
from ..recalibrators.logistic import log_odds
from ..tag_offsets import fit_offsets

# K-means is started this often, and the best result is taken; curves that agree to so many digits are taken as equal.
_STARTS = 20
_DIGITS = 6


def tag_curves(pairs: Pairs, n_tags: int, n_bins: int = 3) -> Floats:
    """How far the reliability curve of each tag lies from that of all pairs, in log-odds, in a few bins of the score.

    The curve of all pairs is an isotonic regression. Each tag adds an offset to its log-odds, and each bin of a tag
    another one; both are shrunk towards 0 as far as the pairs say (`tag_offsets.fit_offsets`), so that a bin without
    pairs has the offset of its tag, and a tag without pairs the curve of all.

    n_bins (int): Adaptive bins over the scores of all pairs.
    RETURNS (Floats): Shape (n_tags, n_bins): above 0 where the tag hits more often than its scores say of all tags.
    RAISES C001: n_bins is not a whole number of at least 1.
    """
    check_count("n_bins", n_bins)
    if not len(pairs):
        return np.zeros((n_tags, n_bins))
    margins = log_odds(IsotonicRegression().fit(pairs.scores, pairs.hits).predict(pairs.scores))
    of_tag = fit_offsets(margins, pairs.hits, pairs.tags, n_tags).values
    bins = assign(pairs.scores, adaptive_edges(pairs.scores, n_bins))
    of_bin = fit_offsets(margins + of_tag[pairs.tags], pairs.hits, pairs.tags * n_bins + bins, n_tags * n_bins).values
    return of_tag[:, None] + of_bin.reshape(n_tags, n_bins)


def cluster_curves(curves: Floats, weights: Floats, n_groups: int) -> tuple[Ints, Floats]:
    """K-means of curves (scikit-learn's, several starts), whatever the order of curves and the number of cores.

    curves (Floats): Shape (n, n_bins), n > 0. weights (Floats): Above 0, shape (n,). n_groups (int): At least 1.
    RETURNS (tuple): Cluster of each curve; mean curve of each cluster, shape (at most n_groups, n_bins), highest first.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    points = np.round(curves, _DIGITS)
    order = np.lexsort((weights, *points.T))
    model = KMeans(min(n_groups, len(np.unique(points, axis=0))), n_init=_STARTS, tol=0.0, random_state=0)
    # Several threads would add up in any order, and change the last digits.
    with threadpool_limits(1):
        model.fit(points[order], sample_weight=weights[order])
    found = np.empty(len(points), dtype=np.intp)
    found[order], means = model.labels_, model.cluster_centers_
    rank = np.lexsort((*(-means.T), -means.mean(axis=1)))
    return np.argsort(rank)[found], means[rank]


def behaviour_groups(
    labels: Sequence[str],
    counts: Mapping[str, int],
    pairs: Pairs,
    names: Sequence[str] | None = None,
    n_groups: int = 5,
    min_pairs: int = 20,
    n_bins: int = 3,
) -> Groups:
    """Group tags by k-means of their `tag_curves`, each weighted by its pairs.

    After the clustered conformal prediction of Ding et al. (2023, "Class-Conditional Conformal Prediction with Many
    Classes"), who cluster classes by quantiles of conformity scores; classes with few examples share the quantile of
    all. Here such tags go to the group whose mean curve is nearest to that of all pairs, so that one group is SCW.

    labels (Sequence[str]): As columns. counts (Mapping[str, int]): Gold frequency, kept but without effect.
    pairs (Pairs): To learn from: those that the maps are fitted on, never those on which they are judged.
    names (Sequence[str] | None): The label of each column of the pairs, where those are not the labels. Several columns
        may have one name; names that are no labels take no part.
    n_groups (int): At most that many. min_pairs (int): Tags with fewer form no groups. n_bins (int): Of the curves.
    RETURNS (Groups): Named "1", "2", ...: "1" hits most often for its scores, the last least often.
    RAISES C001: a number that is not a whole number of at least 1, or a pair whose tag is past the labels (or names).
    """
    for setting, value in (("n_groups", n_groups), ("min_pairs", min_pairs), ("n_bins", n_bins)):
        check_count(setting, value)
    known = _in_columns(pairs, labels, labels if names is None else names)
    frequency = np.array([counts.get(label, 0) for label in labels], dtype=np.intp)
    held = np.bincount(known.tags, minlength=len(labels))
    many = np.flatnonzero(held >= min_pairs)
    if n_groups == 1 or not len(many):
        return Groups(("1",), np.zeros(len(labels), dtype=np.intp), frequency)
    found, centers = cluster_curves(tag_curves(known, len(labels), n_bins)[many], held[many].astype(np.float64), n_groups)
    of_tag = np.full(len(labels), np.argmin(np.sum(centers**2, axis=1)), dtype=np.intp)
    of_tag[many] = found
    return Groups(tuple(str(i + 1) for i in range(len(centers))), of_tag, frequency)


def _in_columns(pairs: Pairs, labels: Sequence[str], names: Sequence[str]) -> Pairs:
    """The pairs whose tag is one of the labels, with its column among them.

    RAISES C001: a tag past the names.
    """
    if len(pairs) and pairs.tags.max() >= len(names):
        wanted = f"columns of the {len(names)} labels that were given"
        raise calib_error("C001", name="The tags of the pairs", wanted=wanted, given=f"column {pairs.tags.max()}")
    if names is labels:
        return pairs
    column = {label: i for i, label in enumerate(labels)}
    tags = np.array([column.get(name, -1) for name in names], dtype=np.intp)[pairs.tags]
    keep = np.flatnonzero(tags >= 0)
    return Pairs(pairs.rows[keep], tags[keep], pairs.scores[keep], pairs.hits[keep], pairs.n_units)


@dataclass(frozen=True)
class BehaviourGrouping:
    """A grouping that needs pairs: `with_pairs` gives the function (labels, counts) -> Groups.

    n_groups, min_pairs, n_bins (int): As of `behaviour_groups`.
    RAISES C001: one of them is not a whole number of at least 1.
    """

    n_groups: int = 5
    min_pairs: int = 20
    n_bins: int = 3

    def __post_init__(self) -> None:
        for setting, value in vars(self).items():
            check_count(setting, value)

    def with_pairs(
        self, pairs: Pairs, names: Sequence[str] | None = None
    ) -> Callable[[Sequence[str], Mapping[str, int]], Groups]:
        """The grouping that these pairs make; it can be pickled, with the pairs.

        pairs (Pairs), names (Sequence[str] | None): As of `behaviour_groups`. Labels grouped by a key have
            the keys as names.
        """
        return partial(behaviour_groups, pairs=pairs, names=names, **vars(self))

    def __call__(self, labels: Sequence[str], counts: Mapping[str, int]) -> NoReturn:
        """RAISES C070: always."""
        raise calib_error("C070", name="spacy-calib.Behaviour.v1")
