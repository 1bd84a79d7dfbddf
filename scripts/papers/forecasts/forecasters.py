"""Forecasters: scikit-learn's models that predict P(yes) from features, for several values of the setting that cross-validation chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spacy_calib.types import Floats


class Forecaster:
    """Predicts P(yes | features). short: Name in tables. size_name: The setting that `tune` chooses."""

    short: ClassVar[str]
    size_name: ClassVar[str]

    @property
    def size(self) -> Any:
        return getattr(self, self.size_name)

    def with_size(self, size: Any) -> Forecaster:
        """Return a copy with this value of the setting `size_name`."""
        return replace(self, **{self.size_name: size})  # type: ignore[type-var]

    def fit(self, features: Floats, hits: NDArray[np.bool_]) -> Forecaster:
        """Fit on features (n, k) and answers (n,)."""
        raise NotImplementedError

    def predict(self, features: Floats) -> Floats:
        """Return P(yes) of each row, shape (n,)."""
        raise NotImplementedError

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[Any]) -> Floats:
        """Fit forecasters of several sizes; return their predictions for new_features, shape (n_sizes, n_new)."""
        return np.stack([self.with_size(size).fit(features, hits).predict(new_features) for size in sizes])


@dataclass
class NearestNeighbours(Forecaster):
    """k nearest neighbours on standardized features (Kuleshov and Liang 2015, section 5.1: k = 100)."""

    short, size_name = "k-NN", "k"
    k: int = 100

    def fit(self, features: Floats, hits: NDArray[np.bool_]) -> Forecaster:
        from sklearn.neighbors import NearestNeighbors

        spread = features.std(axis=0)
        self.centre_, self.spread_ = features.mean(axis=0), np.where(spread > 1e-12, spread, 1.0)
        self.search_ = NearestNeighbors(n_neighbors=min(self.k, len(hits))).fit((features - self.centre_) / self.spread_)
        self.hits_ = hits.astype(np.float64)
        return self

    def predict(self, features: Floats) -> Floats:
        means: Floats = self._nearest_hits(features).mean(axis=1)
        return means

    def predict_sizes(self, features: Floats, hits: NDArray[np.bool_], new_features: Floats, sizes: Sequence[Any]) -> Floats:
        """Predict for several sizes, with one search for the largest."""
        largest = NearestNeighbours(max(sizes))
        largest.fit(features, hits)
        sums = largest._nearest_hits(new_features).cumsum(axis=1)
        last = np.minimum(sizes, sums.shape[1])
        return (sums[:, last - 1] / last).T

    def _nearest_hits(self, features: Floats) -> Floats:
        """Return the answers of the nearest rows, nearest first, shape (n, at most k)."""
        return self.hits_[self.search_.kneighbors((features - self.centre_) / self.spread_, return_distance=False)]


@dataclass
class DecisionTree(Forecaster):
    """A decision tree by squared error, which predicts the share of yes in a leaf (Kuleshov and Liang 2015, section 4)."""

    short, size_name = "tree", "min_leaf"
    min_leaf: int = 25

    def fit(self, features: Floats, hits: NDArray[np.bool_]) -> Forecaster:
        from sklearn.tree import DecisionTreeRegressor

        self.tree_ = DecisionTreeRegressor(min_samples_leaf=self.min_leaf, random_state=0).fit(features, hits.astype(float))
        return self

    def predict(self, features: Floats) -> Floats:
        return np.clip(self.tree_.predict(features), 0.0, 1.0)


@dataclass
class Logistic(Forecaster):
    """Logistic regression on standardized features. c (float): Inverse of the strength of the L2 penalty."""

    short, size_name = "logistic", "c"
    c: float = 1.0

    def fit(self, features: Floats, hits: NDArray[np.bool_]) -> Forecaster:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        self.model_ = make_pipeline(StandardScaler(), LogisticRegression(C=self.c, max_iter=1000)).fit(features, hits)
        return self

    def predict(self, features: Floats) -> Floats:
        chances: Floats = self.model_.predict_proba(features)[:, list(self.model_.classes_).index(True)]
        return chances
