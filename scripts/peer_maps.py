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
from quality.peer_worker import Fit, estimator, netcal, of_hits, pass_through_classifier, scikit_learn_binary, two_columns

NETCAL = ("IsotonicRegression", "HistogramBinning", "BBQ", "LogisticCalibration", "BetaCalibration", "TemperatureScaling")


def mapie(method: str) -> Fit:
    """Venn-Abers, or a calibrator of the top label; what it says of a miss is read as 1 - its probability."""
    from mapie.calibration import TopLabelCalibrator, VennAbersCalibrator

    given: dict[str, Any] = {"estimator": pass_through_classifier("predict_proba", 2), "cv": "prefit"}
    if method == "Venn-Abers":
        return estimator(lambda n: VennAbersCalibrator(**given, precision=4), two_columns, of_hits)
    make = partial(TopLabelCalibrator, calibrator=method, **given)
    return estimator(lambda n: make(), two_columns, lambda both: np.where(np.isnan(both[:, 1]), 1 - both[:, 0], both[:, 1]))


def peer_maps(slow: bool = False) -> dict[str, Fit]:
    """Package, version and method -> fit, for the packages that are here: fit(scores, hits) -> predict(scores).

    slow (bool): With netcal's ENIR, which takes half a minute for 15,000 scores.
    """
    methods = {
        "scikit-learn": (scikit_learn_binary, ("isotonic",)),
        "netcal": (netcal, (*NETCAL, *(["ENIR"] if slow else []))),
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
    return lambda scores: np.clip(predict(scores), 0.0, 1.0)
