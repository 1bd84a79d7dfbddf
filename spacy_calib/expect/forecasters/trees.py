"""One decision tree, and many small ones that correct one another; decision trees as arrays of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...calibration.recalibrators.logistic import log_odds, sigmoid
from ...errors import calib_error
from ...pairs.bins import check_count
from ...schema import Saved, floats, kept, lengths, number, record, whole, wholes
from ...types import Floats, Ints
from .base import Forecaster

_LEAF = -1


@dataclass(frozen=True, eq=False)
class Nodes(Saved):
    """Trees whose m nodes follow one another.

    n_features (int): Features to look at. roots (Ints): First node of each tree. left, right (Ints): Its children, -1
    for a leaf. feature (Ints), threshold (Floats): A row with at most this goes left. value (Floats): Of leaves.
    """

    n_features: int = kept(whole(1))
    roots: Ints = kept(wholes())
    left: Ints = kept(wholes(_LEAF))
    right: Ints = kept(wholes(_LEAF))
    feature: Ints = kept(wholes())
    threshold: Floats = kept(floats())
    value: Floats = kept(floats())

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        """Children stand behind their parents, so that no walk is endless."""
        left, right, roots = held["left"], held["right"], held["roots"]
        n = len(left)
        wrong = lengths(dict.fromkeys(("right", "feature", "threshold", "value"), n), held)
        if wrong:
            return wrong
        inner = np.flatnonzero(left != _LEAF)
        if not len(roots) or (roots >= n).any() or ((left == _LEAF) != (right == _LEAF)).any():
            return "each tree begins at a node, and each node has two children or none"
        children = np.concatenate([left[inner], right[inner]])
        if (children <= np.tile(inner, 2)).any() or (children >= n).any():
            return "children stand behind their parents"
        return "" if (held["feature"][inner] < held["n_features"]).all() else f"there are {held['n_features']} features"

    @classmethod
    def of(cls, trees: Sequence[Any], n_features: int) -> Nodes:
        """trees: `tree_` of scikit-learn's regression trees."""
        sizes = np.array([tree.node_count for tree in trees], dtype=np.intp)
        roots = np.cumsum(sizes) - sizes
        starts = np.repeat(roots, sizes)

        def joined(name: str, kind: Any) -> Any:
            return np.concatenate([np.zeros(0, dtype=kind), *(getattr(tree, name).reshape(-1) for tree in trees)]).astype(kind)

        left, right = joined("children_left", np.intp), joined("children_right", np.intp)
        leaf = left == _LEAF
        feature, threshold = joined("feature", np.intp), joined("threshold", np.float64)
        return cls(
            n_features,
            roots,
            np.where(leaf, _LEAF, left + starts),
            np.where(leaf, _LEAF, right + starts),
            np.where(leaf, 0, feature),
            np.where(leaf, 0.0, threshold),
            joined("value", np.float64),
        )

    def values_of(self, features: Floats) -> Floats:
        """The value of each tree for each of n rows, shape (n, number of trees)."""
        rows = features.astype(np.float32)  # as scikit-learn compares them
        at = np.tile(self.roots, (len(rows), 1))
        inner = self.left[at] != _LEAF
        while inner.any():
            row, _ = np.nonzero(inner)
            node = at[inner]
            goes_left = rows[row, self.feature[node]] <= self.threshold[node]
            at[inner] = np.where(goes_left, self.left[node], self.right[node])
            inner = self.left[at] != _LEAF
        return self.value[at]


class _OfTrees(Forecaster):
    """nodes_ (Nodes): Of all trees."""

    nodes_: Nodes

    @property
    def width(self) -> int:
        return self.nodes_.n_features

    @abstractmethod
    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None: ...


class Tree(_OfTrees):
    """A decision tree by squared error; a leaf gives its rows' share of yes (Kuleshov and Liang 2015, section 4)."""

    registered = "spacy-calib.Tree.v1"
    short = "tree"
    size_name = "min_leaf"
    _learned = ("nodes_",)
    learned_form = record({"nodes_": Nodes.read})

    def __init__(self, min_leaf: int = 25):
        """min_leaf (int): Least number of fit rows in a leaf. RAISES C001: below 1."""
        self.min_leaf = check_count("min_leaf", min_leaf)

    def settings(self) -> dict[str, Any]:
        return {"min_leaf": self.min_leaf}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        from sklearn.tree import DecisionTreeRegressor

        found = DecisionTreeRegressor(min_samples_leaf=self.min_leaf, random_state=0).fit(features, hits.astype(np.float64))
        self.nodes_ = Nodes.of([found.tree_], features.shape[1])

    def _predict(self, features: Floats) -> Floats:
        return np.clip(self.nodes_.values_of(features)[:, 0], 0.0, 1.0)


class Boosting(_OfTrees):
    """Gradient boosting of small trees by log loss: sigmoid(start + rate * sum of the trees' values).

    start_ (float): Log-odds of yes in the fit data. nodes_ (Nodes): No trees if all of it is yes, or all no.
    """

    registered = "spacy-calib.Boosting.v1"
    short = "boosting"
    size_name = "n_trees"
    _learned = ("nodes_", "start_")
    learned_form = record({"nodes_": Nodes.read, "start_": number()})
    start_: float

    def __init__(self, n_trees: int = 60, depth: int = 2, rate: float = 0.1, min_leaf: int = 25):
        """n_trees, depth, rate, min_leaf: scikit-learn's `n_estimators`, `max_depth`, `learning_rate` and
        `min_samples_leaf`. RAISES C001: a count below 1, or a rate outside of (0, 1].
        """
        self.n_trees, self.depth = check_count("n_trees", n_trees), check_count("depth", depth)
        self.min_leaf = check_count("min_leaf", min_leaf)
        if not 0 < rate <= 1:
            raise calib_error("C001", name="rate", wanted="above 0 and at most 1", given=repr(rate))
        self.rate = float(rate)

    def settings(self) -> dict[str, Any]:
        return {"n_trees": self.n_trees, "depth": self.depth, "rate": self.rate, "min_leaf": self.min_leaf}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        from sklearn.ensemble import GradientBoostingClassifier

        trees: list[Any] = []
        if hits.any() and not hits.all():
            found = GradientBoostingClassifier(
                n_estimators=self.n_trees,
                max_depth=self.depth,
                learning_rate=self.rate,
                min_samples_leaf=self.min_leaf,
                random_state=0,
            ).fit(features, hits)
            trees = [tree.tree_ for tree in found.estimators_[:, 0]]
        self.start_ = float(log_odds(np.array([hits.mean()]))[0])
        self.nodes_ = Nodes.of(trees, features.shape[1])

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], asked: Floats, sizes: Sequence[int]) -> Floats:
        """See `Forecaster`; one fit for all sizes, as the first trees of many are those of a fit of few."""
        made = Boosting(max(sizes), self.depth, self.rate, self.min_leaf)
        made._fit(features, hits)
        sums = made.nodes_.values_of(asked).cumsum(axis=1)
        if not sums.shape[1]:
            return np.tile(made._predict(asked), (len(sizes), 1))
        return sigmoid(made.start_ + self.rate * sums[:, np.asarray(sizes) - 1]).T

    def _predict(self, features: Floats) -> Floats:
        return sigmoid(self.start_ + self.rate * self.nodes_.values_of(features).sum(axis=1))
