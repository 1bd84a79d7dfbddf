"""Temperature, vector and matrix scaling: logistic regression on the log-probabilities of all tags of a token."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...pairs.documents import cross_fit, folds_of, thin_out
from ...pairs.progress import UNREPORTED, Progress
from ...schema import floats, number, record, whole, wholes
from ...types import Floats, Ints, Pairs, as_probabilities, check_lengths
from ..saved import Part
from ..steps import OUTPUT_ONLY, Predictions
from .entries import FLOOR, LEAST, PairwiseScaler
from .objective import Objective, ScalingWeights, descend

# A fit uses at most so many pairs; of more, whole documents at equal distances are kept.
MOST_PAIRS = 500_000
_FOLDS = 5
# The search ends with a step that lowers the loss by less than this share of it.
_TOLERANCE = 1e-8

DEFAULT_RIDGE = 100.0
# Candidates, the strongest first: with the first, little but the temperature is learned.
RIDGES = (10_000.0, 3000.0, 1000.0, 300.0, DEFAULT_RIDGE, 30.0)
# Ridges are compared on at most so many pairs, in so many folds, with a tolerance that is enough to rank them.
_RIDGE_PAIRS, _RIDGE_FOLDS, _RIDGE_TOLERANCE = 40_000, 3, 1e-5


def _find_contradiction(fields: dict[str, Any]) -> str:
    """Return why the sizes of learned arrays contradict each other, or "". fields: Name of a learned attribute -> value."""
    size = fields["n_tags_"] + 2  # a bias for each tag, for the rest, and for labels that the component got after the fit
    if len(fields["factor_"]) != 1 or len(fields["biases_"]) != size or len(fields["weights_"]) != len(fields["codes_"]):
        return f"one factor, {size} biases and a weight for each pair of tags are wanted"
    return "a pair names a tag that there is not" if fields["codes_"].max(initial=-1) >= size * size else ""


class Scaling(Part):
    """Rescales the probabilities of all tags of a token together, before the threshold cuts them off.

    This is multinomial logistic regression on a token's log-probabilities. The probability of a tag is the softmax of
    factor * log p + bias of the tag + weighted log p of the token's tags: Dirichlet calibration (Kull et al. 2019, section 3.2;
    Guo et al. 2017, section 4.2). Only tags that reach FLOOR have a term; the others of a token are one more outcome, its rest.
    The weights minimize the penalized log loss, a convex problem. A weak penalty shrinks the inverse temperature towards 1, for
    data that do not determine it (every top tag is right).

    short (str): Name on the command line; "" if that is the registered name.
    growth (int): The number of parameters grows with this power of the number of tags; lists show the slowest growth first.
    biased (bool): Whether each tag has a bias.
    pairwise (str): Which tags influence a tag: "none", "self" (vector scaling), "all" (matrix scaling).
    ridge (float | None): L2 penalty on each weight between tags, ridge / 2 times its square: the inverse variance of a Gaussian
        prior, so that one value suits few data and many. None lets `cross_fit` choose among RIDGES.
    ridge_ (float): The penalty that was used. n_tags_ (int): Number of tags in the fit. factor_ (Floats): The inverse
        temperature, (1,). biases_ (Floats): Bias of each tag, the rest, labels that the component got later, (n_tags + 2,).
    codes_ (Ints), weights_ (Floats): Pairs of tags, as source * (n_tags + 2) + target, and weights. RAISES C001: ridge <= 0.
    """

    kind = "@calib_scalings"
    short: ClassVar[str] = ""
    growth: ClassVar[int] = 2
    biased: ClassVar[bool] = True
    pairwise: ClassVar[str] = "none"
    _learned = ("ridge_", "n_tags_", "factor_", "biases_", "codes_", "weights_")
    # The bounds of these forms keep all sums finite.
    learned_form = record(
        {
            "ridge_": number(0.0), "n_tags_": whole(0, 1 << 30), "factor_": floats(), "biases_": floats(),
            "codes_": wholes(rising=True), "weights_": floats(),
        },
        _find_contradiction,
    )  # fmt: skip
    ridge_: float
    n_tags_: int
    factor_: Floats
    biases_: Floats
    codes_: Ints
    weights_: Floats

    def __init__(self, ridge: float | None = DEFAULT_RIDGE):
        is_number = isinstance(ridge, (int, float, np.number)) and not isinstance(ridge, bool)
        if ridge is not None and not (is_number and 0 < ridge < np.inf):
            raise calib_error("C001", name="ridge", wanted="a number above 0", given=repr(ridge))
        self.ridge = None if ridge is None else float(ridge)
        self._scaler_cache: tuple[Floats, PairwiseScaler] | None = None

    @property
    def n_tags(self) -> int:
        """Number of tags that the scaling was fitted to; 0 if it is not fitted."""
        return self.n_tags_ if self.fitted else 0

    def settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge}

    def size(self) -> int:
        """Return the number of fitted parameters. RAISES C004: not fitted."""
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        return 1 + int(np.count_nonzero(self.biases_)) + len(self.weights_)

    def describe(self) -> dict[str, Any]:
        """Return "name", "biased", "temperature", "ridge" and "size" (number of parameters) for `calib info`."""
        size = self.size()
        temperature = float(1.0 / max(self.factor_[0], 1e-12))
        return {"name": self.registered, "biased": self.biased, "temperature": temperature, "ridge": self.ridge_, "size": size}

    def fit(
        self, pairs: Pairs, n_tags: int, start: Scaling | None = None, ridge: float | None = None, tolerance: float = _TOLERANCE
    ) -> Scaling:
        """Fit the weights.

        pairs (Pairs): Pairs below FLOOR are ignored; a token without a hit above it has its gold tag in the rest.
        n_tags (int): Number of tags. start (Scaling | None): A scaling, fitted to as many tags, that gives the initial weights.
        ridge (float | None): L2 penalty; None takes the setting, or 100. tolerance (float): The search ends with a step that
            lowers the loss by less than this share of it. RETURNS (Scaling): This scaling. RAISES C003: no pairs.
        """
        pairs_above = pairs.take(np.flatnonzero(pairs.scores >= FLOOR))
        if not len(pairs_above):
            raise calib_error("C003", what=type(self).__name__, threshold=FLOOR)
        initial = None if start is None else ScalingWeights(start.factor_, start.biases_, start.codes_, start.weights_)
        self.n_tags_, self.ridge_ = n_tags, ridge or self.ridge or DEFAULT_RIDGE
        weights = Objective(self, pairs_above, n_tags).minimize(initial, tolerance)
        self.factor_, self.biases_, self.codes_, self.weights_ = weights
        return self

    def cross_fit(self, pairs: Pairs, documents: Ints, n_tags: int, progress: Progress = UNREPORTED) -> Floats:
        """Fit this scaling on all pairs, and return out-of-fold scores, by cross-validation over documents.

        With a single document no fold can be held out, and the scores are those of this scaling, which has seen the pairs.
        documents (Ints): Document of each pair, ascending, shape (n,). n_tags (int): Number of tags.
        RETURNS (Floats): The scaled score of each pair, (n,). RAISES C003: no pairs.
        """
        fitting, cross_fitting = progress.parts(2, 1)
        fitting.update(0.0)  # report the start
        index, has_folds = thin_out(documents, MOST_PAIRS), len(np.unique(documents)) > 1
        if self.ridge is None and has_folds:
            start = self._fit_best_ridge(pairs.take(index), documents[index], n_tags)
            self.fit(pairs.take(index), n_tags, start, start.ridge_)
        else:
            self.fit(pairs.take(index), n_tags)
        if not has_folds:
            return self.scale_pairs(pairs)

        def score(train: Ints, test: Ints) -> Floats:
            train_pairs = pairs.take(train[thin_out(documents[train], MOST_PAIRS)])
            return self._refit(train_pairs, n_tags, _TOLERANCE).scale_pairs(pairs.take(test))

        return cross_fit(folds_of(documents, _FOLDS), score, cross_fitting)  # the function, not this method

    def _fit_best_ridge(self, pairs: Pairs, documents: Ints, n_tags: int) -> Scaling:
        """Return a copy fitted on a sample of the pairs with the L2 penalty of minimum cross-validated log loss.

        The search begins at the default ridge and goes where the loss falls; of ridges with equal loss the strongest is taken.
        documents (Ints): Document of each pair, at least two documents. n_tags (int): Number of tags.
        """
        index = thin_out(documents, _RIDGE_PAIRS)
        sample, folds = pairs.take(index), folds_of(documents[index], _RIDGE_FOLDS)
        default_index = RIDGES.index(DEFAULT_RIDGE)
        scalings: dict[int, Scaling] = {}

        def loss(i: int) -> float:
            """Return the out-of-fold log loss with the i-th ridge, and keep the scaling fitted on the whole sample."""
            start = scalings.get(default_index)  # None for the default ridge, which is fitted first
            scalings[i] = candidate = self.clone().fit(sample, n_tags, start, RIDGES[i], _RIDGE_TOLERANCE)

            def score(train: Ints, test: Ints) -> Floats:
                return candidate._refit(sample.take(train), n_tags, _RIDGE_TOLERANCE).scale_pairs(sample.take(test))

            scores = cross_fit(folds, score)
            likelihoods = np.where(sample.hits, scores, 1.0 - scores)  # P(right) of hits, P(wrong) of other pairs
            return -float(np.log(np.maximum(likelihoods, LEAST)).sum())

        return scalings[descend(default_index, len(RIDGES), loss)]

    def _refit(self, pairs: Pairs, n_tags: int, tolerance: float) -> Scaling:
        """Return a copy with this L2 penalty, fitted to pairs from these weights on. tolerance: Relative gain to stop at."""
        return self.clone().fit(pairs, n_tags, self, self.ridge_, tolerance)

    def scale_pairs(self, pairs: Pairs) -> Floats:
        """Return the scaled score of each pair. pairs (Pairs): All pairs of each token that reach FLOOR, perhaps others."""
        return self.scale(pairs.rows, pairs.tags, pairs.scores, pairs.scores >= FLOOR)

    def apply(self, predictions: Predictions) -> Predictions:
        """Replace the scores of each token's labels by scaled ones. Predicted labels below the threshold influence no other."""
        if not len(predictions):
            return predictions
        is_input = (predictions.raw >= FLOOR) & (predictions.levels != OUTPUT_ONLY)  # True for levels None: all are KEPT
        flags = None if is_input.all() else is_input
        scores = as_probabilities("scores", predictions.scores)  # again: a source of another package may not check
        return predictions.replace_unchecked(scores=self._scale(predictions.rows, predictions.tags, scores, flags))

    def scale(self, rows: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None = None) -> Floats:
        """Return the scaled probabilities of n entries; those of a token depend on all its entries and on no other token.

        rows, tags (Ints), scores (Floats): Token, tag and score of each entry, (n,): all tags of a token that reach FLOOR, and
        perhaps lower ones. is_input (NDArray[bool] | None): Whether an entry influences the others of its token, as lower ones
        must not; None if all do. RAISES C001: scores out of range. C002: arrays of unequal length. C004: not fitted.
        """
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)
        probabilities = as_probabilities("scores", scores)
        flags_to_check = {} if is_input is None else {"flag": is_input}
        check_lengths(type(self).__name__, "score", len(probabilities), {"row": rows, "tag": tags, **flags_to_check})
        if not len(probabilities):
            return np.zeros(0)
        ascending = bool((rows[1:] >= rows[:-1]).all())
        order = slice(None) if ascending else np.argsort(rows, kind="stable")
        flags = None if is_input is None else np.asarray(is_input)[order]
        scaled_scores = np.empty(len(probabilities))
        scaled_scores[order] = self._scale(rows[order], tags[order], probabilities[order], flags)
        return scaled_scores

    def _scale(self, rows: Ints, tags: Ints, scores: Floats, is_input: NDArray[np.bool_] | None) -> Floats:
        """Return the scaled probabilities of n > 0 valid entries. rows: Ascending. is_input: As for `scale`."""
        cache = self._scaler_cache
        if cache is None or cache[0] is not self.weights_:  # made once for these weights
            scaler = PairwiseScaler(float(self.factor_[0]), self.biases_, self.codes_, self.weights_, self.pairwise == "self")
            self._scaler_cache = cache = self.weights_, scaler
        return cache[1].scale(rows, tags, scores, is_input)


class TemperatureScaling(Scaling):
    """Temperature scaling: one factor for all log-probabilities (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.TemperatureScaling.v1"
    short = "temperature"
    growth = 0
    biased = False

    def __init__(self) -> None:
        super().__init__()

    def settings(self) -> dict[str, Any]:
        return {}


class VectorScaling(Scaling):
    """Vector scaling: a factor and a bias for each tag, shrunk towards one factor for all (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.VectorScaling.v1"
    short = "vector"
    growth = 1
    pairwise = "self"


class MatrixScaling(Scaling):
    """Matrix scaling: in addition to a factor and a bias for each tag, each of a token's top tags influences all others.

    It learns which tags the model confuses (Kull et al. 2019, section 3.2, with the L2 penalty of their section 4 on the
    whole matrix except for one common factor).
    """

    registered = "spacy-calib.MatrixScaling.v1"
    short = "matrix"
    pairwise = "all"

    def __init__(self, ridge: float | None = None):
        super().__init__(ridge)
