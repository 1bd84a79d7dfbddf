"""Temperature, vector and matrix scaling: logistic regression on the log-probabilities of a token's tags."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...schema import floats, number, record, whole, wholes
from ...types import Floats, Ints, Pairs
from .entries import PairwiseScaler
from .objective import DEFAULT_RIDGE, Objective, ScalingWeights, choose_ridge
from .scaling import Scaling

# The search ends with a step that lowers the loss by less than this share of it: for the final scaling, and for those of
# cross-validation.
_TOLERANCE = 1e-8
_FOLD_TOLERANCE = 1e-6


def _find_contradiction(fields: dict[str, Any]) -> str:
    """Return why the sizes of the learned arrays contradict each other, or ""."""
    size = fields["n_tags_"] + 2  # a bias for each tag, for the rest, and for tags past the end
    if len(fields["factor_"]) != 1 or len(fields["biases_"]) != size or len(fields["weights_"]) != len(fields["codes_"]):
        return f"one factor, {size} biases and a weight for each pair of tags are wanted"
    return "a pair names a tag that there is not" if fields["codes_"].max(initial=-1) >= size * size else ""


# The form of the learned values; its bounds keep all sums finite.
_LEARNED_FORM = record(
    {
        "ridge_": number(0.0), "n_tags_": whole(0, 1 << 30), "factor_": floats(), "biases_": floats(),
        "codes_": wholes(rising=True), "weights_": floats(),
    },
    _find_contradiction,
)  # fmt: skip


class LogLinearScaling(Scaling):
    """Base class of temperature, vector and matrix scaling: multinomial logistic regression on a token's log-probabilities.

    The probability of a tag is the softmax of factor * log p + bias of the tag + weighted log p of the token's tags: Dirichlet
    calibration (Kull et al. 2019, section 3.2; Guo et al. 2017, section 4.2). Only tags that reach the floor have a term; the
    others of a token are one more outcome, its rest. The weights minimize the penalized log loss, a convex problem. A weak
    penalty shrinks the inverse temperature towards 1, for data that do not determine it (every top tag is right).

    pairwise (str): Which tags influence a tag: "none", "self" (vector scaling), "all" (matrix scaling).
    ridge (float | None): L2 penalty on each weight between tags, ridge / 2 times its square: the inverse variance of a Gaussian
        prior, so that one value suits few data and many. None lets `cross_fit` choose among RIDGES.
    bias_ridge (float | None): L2 penalty on each bias; None is a hundredth of the ridge.
    ridge_ (float): The penalty that was used. factor_ (Floats): The inverse temperature, shape (1,).
    biases_ (Floats): Bias of each tag, of the rest, and of all tags past the end, shape (n_tags + 2,).
    codes_ (Ints), weights_ (Floats): Pairs of tags, as source * (n_tags + 2) + target, and weights. RAISES C001: penalty <= 0.
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
        self._scaler_cache: tuple[Floats, PairwiseScaler] | None = None

    @property
    def fitted(self) -> bool:
        return len(self.factor_) > 0

    @property
    def n_tags(self) -> int:
        return self.n_tags_

    def settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge, "bias_ridge": self.bias_ridge}

    def size(self) -> int:
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        return 1 + int(np.count_nonzero(self.biases_)) + len(self.weights_)

    def describe(self) -> dict[str, Any]:
        size = self.size()
        temperature = float(1.0 / max(self.factor_[0], 1e-12))
        description = {"name": self.registered, "biased": self.biased}
        return {**description, "temperature": temperature, "ridge": self.ridge_, "size": size}

    # Fitting

    def fit(
        self, pairs: Pairs, n_tags: int, start: LogLinearScaling | None = None, tolerance: float = _TOLERANCE
    ) -> LogLinearScaling:
        """Fit the weights.

        pairs (Pairs): Pairs below the floor are ignored; a token without a hit above the floor has its gold tag in the rest.
        n_tags (int): Number of tags. start (LogLinearScaling | None): A fitted scaling that gives the initial weights.
        tolerance (float): The search ends with a step that lowers the loss by less than this share of it.
        RAISES C003: no pairs.
        """
        pairs_above = pairs.take(np.flatnonzero(pairs.scores >= self.floor))
        if not len(pairs_above):
            raise calib_error("C003", what=type(self).__name__, threshold=self.floor)
        initial = None
        if start is not None and start.fitted and start.n_tags_ == n_tags:
            initial = ScalingWeights(start.factor_, start.biases_, start.codes_, start.weights_)
        self.n_tags_ = n_tags
        weights = Objective(self, pairs_above, n_tags).minimize(initial, tolerance)
        self.factor_, self.biases_, self.codes_, self.weights_ = weights
        return self

    def fit_documents(self, pairs: Pairs, documents: Ints, n_tags: int) -> None:
        """Fit with the setting `ridge`; if that is None, with the ridge of lowest loss in cross-validation over documents."""
        start = None
        if self.ridge is None and len(np.unique(documents)) > 1:
            start = choose_ridge(self, pairs, documents, n_tags)
        self.ridge_ = (self.ridge or DEFAULT_RIDGE) if start is None else start.ridge_
        self.fit(pairs, n_tags, start)

    def refit(self, pairs: Pairs, n_tags: int, tolerance: float = _FOLD_TOLERANCE) -> LogLinearScaling:
        """Return a new scaling with this one's L2 penalty, fitted to these pairs with this one's weights as initial ones."""
        return copy.copy(self).fit(pairs, n_tags, self, tolerance)

    # Applying

    def _scale(self, rows: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None) -> Floats:
        cache = self._scaler_cache
        if cache is None or cache[0] is not self.weights_:  # made once for these weights
            is_diagonal = self.pairwise == "self"
            scaler = PairwiseScaler(float(self.factor_[0]), self.biases_, self.codes_, self.weights_, self.floor, is_diagonal)
            self._scaler_cache = cache = self.weights_, scaler
        return cache[1].scale(rows, tags, scores, is_input)

    # Saving

    def _learned_state(self) -> dict[str, Any]:
        names = ("ridge_", "n_tags_", "factor_", "biases_", "codes_", "weights_")
        return {name: copy.copy(getattr(self, name)) for name in names}

    def load_learned(self, values: dict[str, Any]) -> Scaling:
        for name, value in _LEARNED_FORM(values, "learned").items():
            if value is not None:
                setattr(self, name, value)
        return self


class TemperatureScaling(LogLinearScaling):
    """Temperature scaling: one factor for all log-probabilities (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.TemperatureScaling.v1"
    short = "temperature"
    growth = 0
    biased = False

    def __init__(self) -> None:
        super().__init__()

    def settings(self) -> dict[str, Any]:
        return {}


class VectorScaling(LogLinearScaling):
    """Vector scaling: a factor and a bias for each tag, shrunk towards one factor for all (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.VectorScaling.v1"
    short = "vector"
    growth = 1
    pairwise = "self"


class MatrixScaling(LogLinearScaling):
    """Matrix scaling: in addition to a factor and a bias for each tag, each of a token's top tags influences all others.

    It learns which tags the model confuses (Kull et al. 2019, section 3.2, with the L2 penalty of their section 4 on the
    whole matrix except for one common factor).
    """

    registered = "spacy-calib.MatrixScaling.v1"
    short = "matrix"
    growth = 2
    pairwise = "all"

    def __init__(self, ridge: float | None = None, bias_ridge: float | None = None):
        super().__init__(ridge, bias_ridge)
