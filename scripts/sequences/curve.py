"""How the two parts of the squared loss move with the size of the recalibration set (Kuleshov and Liang 2015, section 5.3, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_calib.expect.forecasters.base import Forecaster
from spacy_calib.expect.forecasts import SIZES, Parts, split_loss, tune
from spacy_calib.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows: features (Floats), shape (n, k); hits, (n,); units (Ints), the unit of each row (word, document), (n,)."""

    features: Floats
    hits: NDArray[np.bool_]
    units: Ints

    def __len__(self) -> int:
        return len(self.hits)

    def of_units(self, wanted: Ints) -> Rows:
        """The rows of some units."""
        keep = np.isin(self.units, wanted)
        return Rows(self.features[keep], self.hits[keep], self.units[keep])


@dataclass(frozen=True)
class Point:
    """One draw. units (int): Of the recalibration set. size (int | None): Chosen by cross-validation on it. parts (Parts): On the test rows."""

    units: int
    size: int | None
    parts: Parts


def size_curve(
    prototype: Forecaster,
    fit: Rows,
    test: Rows,
    n_units: Sequence[int],
    draws: int,
    rng: np.random.Generator,
    sizes: Sequence[int] = SIZES,
) -> list[Point]:
    """Draw recalibration sets of so many units from `fit`, tune a forecaster on each, and judge it on `test`.

    n_units: How many units, for each point of the curve. draws (int): Sets for each. RAISES ValueError: more units are asked for than there are.
    """  # fmt: skip
    known = np.unique(fit.units)
    if max(n_units) > len(known):
        raise ValueError(f"{max(n_units)} units are asked for, but there are {len(known)}")
    found = []
    for n in n_units:
        for _ in range(draws):
            own = fit.of_units(rng.choice(known, n, replace=False))
            made = tune(prototype, own.features, own.hits, own.units, sizes).forecaster
            parts = split_loss(np.clip(made.predict(test.features), 0.0, 1.0), test.hits)
            assert parts is not None
            found.append(Point(n, made.settings().get(made.size_name), parts))
    return found
