"""Temperature, vector and matrix scaling: logistic regression on the log-probabilities of a token's tags."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...schema import floats, number, record, whole, wholes
from ...types import Floats, Ints, Pairs
from .base import Scaling
from .entries import PairwiseScaler
from .objective import DEFAULT_RIDGE, Objective, Weights, choose_ridge

# The search ends with a step that lowers the loss by less than this share of it: for the scaling that is kept, and
# for those that only give held-out scores.
_CLOSELY = 1e-8
_FOR_HELD_OUT = 1e-6


def _learned_agrees(held: dict[str, Any]) -> str:
    size = held["n_tags_"] + 2
    if len(held["factor_"]) != 1 or len(held["biases_"]) != size or len(held["weights_"]) != len(held["codes_"]):
        return f"one factor, {size} biases and a weight for each pair of tags are wanted"
    return "a pair names a tag that there is not" if held["codes_"].max(initial=-1) >= size * size else ""


# The form in which learned weights are saved: as large as these they still leave all sums finite.
_LEARNED = record(
    {
        "ridge_": number(0.0),
        "n_tags_": whole(0, 1 << 30),
        "factor_": floats(),
        "biases_": floats(),
        "codes_": wholes(rising=True),
        "weights_": floats(),
    },
    _learned_agrees,
)


class LogLinearScaling(Scaling):
    """Softmax of factor * log p + bias of the tag + what the likelier tags of the token bear on it: Dirichlet calibration (Kull
    et al. 2019, section 3.2), logistic regression on log-probabilities (Guo et al. 2017, section 4.2).

    Only tags that reach the floor have a term; the others of a token are one more outcome, its rest. The weights have least
    penalized log loss, a convex problem. The inverse temperature is pulled to 1 by next to nothing, for data that leave it open
    (every likeliest tag is right).

    pairwise (str): Which tags bear on a tag: "none", "self" (vector scaling), "all" (matrix scaling).
    ridge (float | None): Penalty on each weight between tags, ridge / 2 times its square: its inverse variance, which
        is much the same for few data and for many. None lets `cross_fit` choose among RIDGES.
    bias_ridge (float | None): Penalty on each bias; None is a hundredth of the ridge.
    ridge_ (float): The penalty that was used.
    factor_ (Floats): The inverse temperature, shape (1,). biases_ (Floats): Per tag, the rest, and tags past the end.
    codes_ (Ints), weights_ (Floats): Pairs of tags that met in the fit, as of `Entries.codes`; their weights.
    RAISES C001: a penalty that is not above 0.
    """

    pairwise: ClassVar[str] = "none"

    def __init__(self, ridge: float | None = DEFAULT_RIDGE, bias_ridge: float | None = None):
        for name, value in (("ridge", ridge), ("bias_ridge", bias_ridge)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
                raise calib_error("C001", name=name, wanted="a number above 0", given=repr(value))
        self.ridge = None if ridge is None else float(ridge)
        self.bias_ridge = None if bias_ridge is None else float(bias_ridge)
        self.ridge_ = DEFAULT_RIDGE if self.ridge is None else self.ridge
        self.n_tags_ = 0
        self.factor_ = np.ones(0)
        self.biases_ = np.zeros(0)
        self.codes_ = np.zeros(0, dtype=np.intp)
        self.weights_ = np.zeros(0)
        self._applied: tuple[Floats, PairwiseScaler] | None = None

    @property
    def fitted(self) -> bool:
        return len(self.factor_) > 0

    @property
    def n_tags(self) -> int:
        return self.n_tags_

    def settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge, "bias_ridge": self.bias_ridge}

    def size(self) -> int:
        """How many numbers were fitted. RAISES C004: not fitted."""
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        return 1 + int(np.count_nonzero(self.biases_)) + len(self.weights_)

    def describe(self) -> dict[str, Any]:
        """Name, bias or none, temperature, ridge and number of fitted numbers, for `info`. RAISES C004: not fitted."""
        size = self.size()
        temperature = float(1.0 / max(self.factor_[0], 1e-12))
        description = {"name": self.registered, "biased": self.biased}
        return {**description, "temperature": temperature, "ridge": self.ridge_, "size": size}

    # Fitting

    def fit(
        self, pairs: Pairs, n_tags: int, start: LogLinearScaling | None = None, tolerance: float = _CLOSELY
    ) -> LogLinearScaling:
        """Learn the weights.

        pairs (Pairs): Those below the floor take no part; a token without a hit above it has its gold tag in the rest.
        n_tags (int): Number of tags. start (LogLinearScaling | None): A fitted one to begin from, to save time.
        tolerance (float): The search ends with a step that lowers the loss by less than this share of it.
        RAISES C003: no pairs.
        """
        counted = pairs.take(np.flatnonzero(pairs.scores >= self.floor))
        if not len(counted):
            raise calib_error("C003", what=type(self).__name__, threshold=self.floor)
        begin = None
        if start is not None and start.fitted and start.n_tags_ == n_tags:
            begin = Weights(start.factor_, start.biases_, start.codes_, start.weights_)
        self.n_tags_ = n_tags
        self.factor_, self.biases_, self.codes_, self.weights_ = Objective(self, counted, n_tags).minimize(begin, tolerance)
        return self

    def fit_documents(self, pairs: Pairs, documents: Ints, n_tags: int) -> None:
        """Fit with the ridge of the settings, or the one that two or more held-out documents choose."""
        start = None
        if self.ridge is None and len(np.unique(documents)) > 1:
            start = choose_ridge(self, pairs, documents, n_tags)
        self.ridge_ = self.ridge or DEFAULT_RIDGE if start is None else start.ridge_
        self.fit(pairs, n_tags, start)

    def refit(self, pairs: Pairs, n_tags: int, tolerance: float = _FOR_HELD_OUT) -> LogLinearScaling:
        """Another one with the same ridge, whose search begins at this one. tolerance (float): See `fit`."""
        return copy.copy(self).fit(pairs, n_tags, self, tolerance)

    # Applying

    def _scale(self, rows: Ints, tags: Ints, scores: Floats, counted: NDArray[np.bool_] | None) -> Floats:
        cached = self._applied
        if cached is None or cached[0] is not self.weights_:  # made ready once for what was learned
            alone = self.pairwise == "self"
            ready = PairwiseScaler(float(self.factor_[0]), self.biases_, self.codes_, self.weights_, self.floor, alone)
            self._applied = cached = self.weights_, ready
        return cached[1].scale(rows, tags, scores, counted)

    # Saving

    def _learned(self) -> dict[str, Any]:
        names = ("ridge_", "n_tags_", "factor_", "biases_", "codes_", "weights_")
        return {name: copy.copy(getattr(self, name)) for name in names}

    def load_learned(self, learned: dict[str, Any]) -> Scaling:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        for name, value in _LEARNED(learned, "learned").items():
            if value is not None:
                setattr(self, name, value)
        return self


class TemperatureScaling(LogLinearScaling):
    """One factor for all log-probabilities (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.TemperatureScaling.v1"
    short = "temperature"
    growth = 0
    biased = False

    def __init__(self) -> None:
        super().__init__()

    def settings(self) -> dict[str, Any]:
        return {}


class VectorScaling(LogLinearScaling):
    """A factor and a bias for each tag, with a ridge towards one factor (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.VectorScaling.v1"
    short = "vector"
    growth = 1
    pairwise = "self"


class MatrixScaling(LogLinearScaling):
    """Besides a factor and a bias for each tag, each of a token's likelier tags bears on each other one.

    So the tags that the model confuses are told apart by how often they were confused (Kull et al. 2019, section 3.2, with the
    ridge of their section 4 on the whole matrix but for one common factor).
    """

    registered = "spacy-calib.MatrixScaling.v1"
    short = "matrix"
    growth = 2
    pairwise = "all"

    def __init__(self, ridge: float | None = None, bias_ridge: float | None = None):
        super().__init__(ridge, bias_ridge)
