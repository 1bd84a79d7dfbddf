"""Maps of other packages from a raw score to a probability, fitted on scores and hits: scikit-learn, and netcal and MAPIE where they are installed.

pip install netcal mapie
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from quality.peer_worker import Fit, estimator, netcal, of_hits, scikit_learn_binary, two_columns

NETCAL = (
    "IsotonicRegression",
    "HistogramBinning",
    "BBQ",
    "ENIR",
    "LogisticCalibration",
    "BetaCalibration",
    "TemperatureScaling",
)


def mapie(method: str) -> Fit:
    """Venn-Abers, or a calibrator of the top label; what it says of a miss is read as 1 - its probability."""
    from mapie.calibration import TopLabelCalibrator, VennAbersCalibrator
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        """A classifier whose input is its output."""

        classes_, n_features_in_ = np.arange(2), 2

        def fit(self, X: Any, y: Any) -> None:
            raise NotImplementedError("It is given, not fitted.")

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict_proba(self, X: Any) -> Any:
            return X

        def predict(self, X: Any) -> Any:
            return X.argmax(axis=1)

    if method == "Venn-Abers":
        return estimator(lambda n: VennAbersCalibrator(Given(), cv="prefit", precision=4), two_columns, of_hits)
    make: Callable[[int], Any] = lambda n: TopLabelCalibrator(Given(), calibrator=method, cv="prefit")  # noqa: E731
    return estimator(make, two_columns, lambda both: np.where(np.isnan(both[:, 1]), 1 - both[:, 0], both[:, 1]))


def peer_maps() -> dict[str, Fit]:
    """Package, version and method -> fit, for the packages that are here: fit(scores, hits) -> predict(scores)."""
    methods = {
        "scikit-learn": (scikit_learn_binary, ("isotonic",)),
        "netcal": (netcal, NETCAL),
        "mapie": (mapie, ("isotonic", "sigmoid", "Venn-Abers")),
    }
    fits: dict[str, Fit] = {}
    for package, (make, names) in methods.items():
        try:
            fits |= {f"{package} {version(package)}, {name}": partial(_quiet, make, name) for name in names}
        except PackageNotFoundError:
            print(f"{package} is not installed; pip install {package} adds its rows.")
    return fits


def _quiet(make: Callable[[str], Fit], method: str, scores: Any, hits: Any) -> Callable[[Any], Any]:
    """Fit without the warnings and bars of the package, and keep its probabilities in [0, 1]."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        predict = make(method)(scores, hits)

    def clipped(scores: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.clip(predict(scores), 0.0, 1.0)

    return clipped
