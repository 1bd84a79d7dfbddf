"""Forecasters by one decision tree, and by gradient boosting of many small ones; trees are saved as arrays of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_calib.calibration.recalibrators.logistic import log_odds, sigmoid
from spacy_calib.pairs.bins import check_count
from spacy_calib.schema import Serializable, floats, lengths, number, record, saved_field, whole, wholes
from spacy_calib.types import Floats, Ints

from .forecasters import Forecaster

_LEAF = -1


@dataclass(frozen=True, eq=False)
class TreeNodes(Serializable):
    """Binary trees with m nodes in all, as arrays of shape (m,); roots are the indices of each tree's first node.

    left, right (Ints): Index of each child, -1 for a leaf. feature, threshold: Rows go left if the feature is at most the
    threshold. value (Floats): Value of each leaf.
    """

    n_features: int = saved_field(whole(1))
    roots: Ints = saved_field(wholes())
    left: Ints = saved_field(wholes(_LEAF))
    right: Ints = saved_field(wholes(_LEAF))
    feature: Ints = saved_field(wholes())
    threshold: Floats = saved_field(floats())
    value: Floats = saved_field(floats())

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        """Return why the arrays are no trees, or "". Children must follow their parents, so that every path ends in a leaf."""
        left_children, right_children, roots = fields["left"], fields["right"], fields["roots"]
        n = len(left_children)
        wrong = lengths(dict.fromkeys(("right", "feature", "threshold", "value"), n), fields)
        if wrong:
            return wrong
        inner = np.flatnonzero(left_children != _LEAF)
        if not len(roots) or (roots >= n).any() or ((left_children == _LEAF) != (right_children == _LEAF)).any():
            return "each tree begins at a node, and each node has two children or none"
        children = np.concatenate([left_children[inner], right_children[inner]])
        if (children <= np.tile(inner, 2)).any() or (children >= n).any():
            return "children follow their parents"
        return "" if (fields["feature"][inner] < fields["n_features"]).all() else f"there are {fields['n_features']} features"

    @classmethod
    def from_sklearn(cls, trees: Sequence[Any], n_features: int) -> TreeNodes:
        """Copy the nodes of scikit-learn's trees. trees (Sequence): `tree_` of each regressor."""
        sizes = np.array([tree.node_count for tree in trees], dtype=np.intp)
        roots = np.cumsum(sizes) - sizes
        starts = np.repeat(roots, sizes)

        def concatenate(name: str, kind: Any) -> Any:
            return np.concatenate([np.zeros(0, dtype=kind), *(getattr(tree, name).reshape(-1) for tree in trees)]).astype(kind)

        left_children, right_children = concatenate("children_left", np.intp), concatenate("children_right", np.intp)
        leaf = left_children == _LEAF
        feature, threshold = concatenate("feature", np.intp), concatenate("threshold", np.float64)
        return cls(
            n_features,
            roots,
            np.where(leaf, _LEAF, left_children + starts),
            np.where(leaf, _LEAF, right_children + starts),
            np.where(leaf, 0, feature),
            np.where(leaf, 0.0, threshold),
            concatenate("value", np.float64),
        )

    def values_of(self, features: Floats) -> Floats:
        """Return the value of each tree for each of n rows, shape (n, n_trees). features (Floats): Shape (n, n_features)."""
        rows = features.astype(np.float32)  # scikit-learn's precision
        nodes = np.tile(self.roots, (len(rows), 1))
        inner = self.left[nodes] != _LEAF
        while inner.any():
            row, _ = np.nonzero(inner)
            node = nodes[inner]
            goes_left = rows[row, self.feature[node]] <= self.threshold[node]
            nodes[inner] = np.where(goes_left, self.left[node], self.right[node])
            inner = self.left[nodes] != _LEAF
        return self.value[nodes]


class _TreeForecaster(Forecaster):
    nodes_: TreeNodes

    @property
    def width(self) -> int:
        return self.nodes_.n_features

    @abstractmethod
    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None: ...


class DecisionTree(_TreeForecaster):
    """A decision tree by squared error, which predicts the share of yes in a leaf (Kuleshov and Liang 2015, section 4)."""

    registered = "spacy-calib.Tree.v1"
    short = "tree"
    size_name = "min_leaf"
    _learned = ("nodes_",)
    learned_form = record({"nodes_": TreeNodes.read})

    def __init__(self, min_leaf: int = 25):
        """min_leaf (int): Minimum number of fit rows in a leaf. RAISES C001: below 1."""
        self.min_leaf = check_count("min_leaf", min_leaf)

    def settings(self) -> dict[str, Any]:
        return {"min_leaf": self.min_leaf}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        from sklearn.tree import DecisionTreeRegressor

        model = DecisionTreeRegressor(min_samples_leaf=self.min_leaf, random_state=0).fit(features, hits.astype(np.float64))
        self.nodes_ = TreeNodes.from_sklearn([model.tree_], features.shape[1])

    def _predict(self, features: Floats) -> Floats:
        return np.clip(self.nodes_.values_of(features)[:, 0], 0.0, 1.0)


class Boosting(_TreeForecaster):
    """Gradient boosting of small trees by log loss: sigmoid(start_ + rate * sum of values); no trees if all answers agree."""

    registered = "spacy-calib.Boosting.v1"
    short = "boosting"
    size_name = "n_trees"
    _learned = ("nodes_", "start_")
    learned_form = record({"nodes_": TreeNodes.read, "start_": number()})
    start_: float

    def __init__(self, n_trees: int = 60, depth: int = 2, rate: float = 0.1, min_leaf: int = 25):
        """n_trees, depth, rate, min_leaf: Number of trees, their depth, learning rate, minimum rows of a leaf. RAISES C001."""
        self.n_trees, self.depth = check_count("n_trees", n_trees), check_count("depth", depth)
        self.min_leaf = check_count("min_leaf", min_leaf)
        if not 0 < rate <= 1:
            raise ValueError("a setting is out of range")
        self.rate = float(rate)

    def settings(self) -> dict[str, Any]:
        return {"n_trees": self.n_trees, "depth": self.depth, "rate": self.rate, "min_leaf": self.min_leaf}

    def _fit(self, features: Floats, hits: NDArray[np.bool_]) -> None:
        """Fit gradient boosting and keep its trees as plain arrays."""
        from sklearn.ensemble import GradientBoostingClassifier

        trees: list[Any] = []
        if hits.any() and not hits.all():
            model = GradientBoostingClassifier(
                n_estimators=self.n_trees,
                max_depth=self.depth,
                learning_rate=self.rate,
                min_samples_leaf=self.min_leaf,
                random_state=0,
            ).fit(features, hits)
            trees = [tree.tree_ for tree in model.estimators_[:, 0]]
        self.start_ = float(log_odds(np.array([hits.mean()]))[0])
        self.nodes_ = TreeNodes.from_sklearn(trees, features.shape[1])

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[int]) -> Floats:
        """Predict for several numbers of trees, with one fit of the largest: the first trees are the same.

        features, new_features (Floats): Of the fit and of new units, shapes (m, k) and (n, k). hits: Answers of the fit, (m,).
        RETURNS (Floats): Shape (len(sizes), n).
        """
        largest = Boosting(max(sizes), self.depth, self.rate, self.min_leaf)
        largest._fit(features, hits)
        sums = largest.nodes_.values_of(new_features).cumsum(axis=1)
        if not sums.shape[1]:
            return np.tile(largest._predict(new_features), (len(sizes), 1))
        return sigmoid(largest.start_ + self.rate * sums[:, np.asarray(sizes) - 1]).T

    def _predict(self, features: Floats) -> Floats:
        return sigmoid(self.start_ + self.rate * self.nodes_.values_of(features).sum(axis=1))
