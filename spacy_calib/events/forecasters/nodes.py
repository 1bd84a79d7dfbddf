"""Decision trees as arrays of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...schema import floats, lengths, record, whole, wholes
from ...types import Floats, Ints

_LEAF = -1


def _agree(held: dict[str, Any]) -> str:
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


# The saved form of Nodes.
NODES = record(
    {
        "n_features": whole(1), "roots": wholes(), "left": wholes(_LEAF), "right": wholes(_LEAF), "feature": wholes(),
        "threshold": floats(), "value": floats(),
    },
    _agree,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Nodes:
    """Trees whose m nodes follow one another.

    n_features (int): Columns that they look at. roots (Ints): The first node of each tree. left, right (Ints): Children of each node, -1 of a
    leaf. feature (Ints), threshold (Floats): A row goes left where this feature is at most this. value (Floats): What a leaf says.
    """

    n_features: int
    roots: Ints
    left: Ints
    right: Ints
    feature: Ints
    threshold: Floats
    value: Floats

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
        """What each tree says of each of n rows, shape (n, number of trees)."""
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

    def state(self) -> dict[str, Any]:
        """Plain data and arrays, of NODES."""
        return dict(vars(self))
