"""Temperature, vector and matrix scaling: the log-probabilities of a token's tags, weighed anew before anything is cut off."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import calib_error
from ...pairs.folds import contiguous_folds, thin_out
from ...schema import floats, number, optional, record, whole, wholes
from ...types import Floats, Ints, Pairs, as_probabilities
from ..recalibrators.logistic import PRIOR
from .apply import Applied
from .entries import LEAST, Entries, lay_out, number_codes

FLOOR = 1e-4
# A fit looks at no more pairs than this; of more, whole documents are left out at equal distances.
MOST_PAIRS = 500_000
_MOST_STEPS = 300
_MEMORY = 20
DEFAULT_RIDGE = 100.0
# A bias is worth about as much as a weight of a tenth, since inputs reach from 0 to 9: its penalty is this share of the ridge.
_SHARE_OF_BIASES = 0.01
# Ridges that `cross_fit` chooses among, the strongest first: with the first, little but the temperature is learned.
RIDGES = (10_000.0, 3000.0, 1000.0, 300.0, 100.0, 30.0)
# To choose it looks at so many pairs, in so many folds, and no closer than is needed to tell ridges apart.
_MOST_TO_CHOOSE = 40_000
_FOLDS_TO_CHOOSE = 3
_ROUGHLY = 1e-5
# The search for the weights ends with a step that lowers the loss by less than this share of it; that for held-out scores sooner.
_CLOSELY = 1e-8
_FOR_HELD_OUT = 1e-6


def _learned_agrees(held: dict[str, Any]) -> str:
    size = held["n_tags_"] + 2
    if len(held["factor_"]) != 1 or len(held["biases_"]) != size or len(held["weights_"]) != len(held["codes_"]):
        return f"one factor, {size} biases and a weight for each pair of tags are wanted"
    return "a pair names a tag that there is not" if held["codes_"].max(initial=-1) >= size * size else ""


# The saved form of what a scaling learns. Weights as large as these still leave all sums finite.
_LEARNED = record(
    {
        "ridge_": optional(number(0.0)),
        "n_tags_": whole(0, 1 << 30),
        "factor_": floats(),
        "biases_": floats(),
        "codes_": wholes(rising=True),
        "weights_": floats(),
    },
    _learned_agrees,
)


class Scaling:
    """Softmax of factor * log p + bias of the tag + what the likelier tags of the token bear on it (Kull et al. 2019, section 3.2:
    Dirichlet calibration, which is logistic regression on log-probabilities; Guo et al. 2017, section 4.2).

    Only tags that reach the floor have a term of their own; the others of a token are one more outcome, its rest. The weights have
    their least penalized log loss, which is a convex problem. The inverse temperature is pulled to 1 by next to nothing, which decides
    only where the data leave it open (every likeliest tag is right).

    registered (str): Name in the registry `calib_scalings`. short (str): What it is called on the command line and in the settings of `auto`.
    tried_by_auto (bool): Whether `auto` tries it where its settings name no scalings. biased (bool): Whether each tag has a bias. pairwise (str): Which tags bear on a
        tag: "none", "self" (vector scaling), "all" (matrix scaling).
    ridge (float | None): Penalty on each weight between tags, ridge / 2 times its square: the inverse variance of the weights, which is
        much the same for few data and for many. None lets `cross_fit` choose among RIDGES. bias_ridge (float | None): That on each bias;
        None is a hundredth of the ridge, so that the ridge alone leads from a temperature to the whole matrix.
    ridge_ (float): The penalty that was used.
    factor_ (Floats): Factor of log p (the inverse temperature), shape (1,). biases_ (Floats): Per tag, the rest, and tags past the end.
    codes_ (Ints), weights_ (Floats): Pairs of tags that met in the fit, as in `Entries.codes`, ascending, and the weight of each.
    RAISES C001: a penalty that is not above 0.
    """

    registered: ClassVar[str]
    short: ClassVar[str] = ""
    tried_by_auto: ClassVar[bool] = False
    biased: ClassVar[bool] = True
    pairwise: ClassVar[str] = "none"
    floor: ClassVar[float] = FLOOR

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
        self._applied: tuple[Floats, Applied] | None = None

    @property
    def fitted(self) -> bool:
        return len(self.factor_) > 0

    @property
    def n_tags(self) -> int:
        """Number of tags that it was fitted to; 0 before."""
        return self.n_tags_

    @property
    def bias_penalty(self) -> float:
        """The penalty on each bias that goes with the ridge that was used."""
        return self.ridge_ * _SHARE_OF_BIASES if self.bias_ridge is None else self.bias_ridge

    def clone(self) -> Scaling:
        """A new one with the same settings, not fitted."""
        return type(self)(**self.settings())

    def settings(self) -> dict[str, Any]:
        """The constructor arguments, as plain data."""
        return {"ridge": self.ridge, "bias_ridge": self.bias_ridge}

    def size(self) -> int:
        """How many numbers were fitted.

        RAISES C004: not fitted.
        """
        self._check_fitted()
        return 1 + int(np.count_nonzero(self.biases_)) + len(self.weights_)

    def describe(self) -> dict[str, Any]:
        """Name, whether each tag has a bias, temperature and number of fitted numbers, for `info`.

        RAISES C004: not fitted.
        """
        self._check_fitted()
        temperature = float(1.0 / max(self.factor_[0], 1e-12))
        named = {"name": self.registered, "biased": self.biased}
        return {**named, "temperature": temperature, "ridge": self.ridge_, "size": self.size()}

    # Fitting

    def fit(self, pairs: Pairs, n_tags: int, start: Scaling | None = None, tolerance: float = _CLOSELY) -> Scaling:
        """Learn the weights.

        pairs (Pairs): Those below the floor take no part; a token without a hit above it has its gold tag in the rest.
        n_tags (int): Number of tags. start (Scaling | None): A fitted one of the same kind to begin from; it saves time.
        tolerance (float): The search ends with a step that lowers the loss by less than this share of it.
        RAISES C003: no pairs.
        """
        from scipy.optimize import minimize
        from threadpoolctl import threadpool_limits

        pairs = pairs.take(np.flatnonzero(pairs.scores >= self.floor))
        if not len(pairs):
            raise calib_error("C003", what=type(self).__name__, threshold=self.floor)
        problem = _Problem(self, self._entries(pairs.rows, pairs.tags, pairs.scores, n_tags), pairs.hits)
        given = None if start is None or not start.fitted or start.n_tags_ != n_tags else start
        # The vectors are short: threads would wait for one another for most of the time.
        with threadpool_limits(1):
            found = minimize(
                problem.loss,
                problem.start(given),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": _MOST_STEPS, "ftol": tolerance, "gtol": 1e-3, "maxcor": _MEMORY},
            )
        self.n_tags_ = n_tags
        self.factor_, self.biases_, self.codes_, self.weights_ = problem.unpack(found.x * problem.units)
        return self

    def cross_fit(self, pairs: Pairs, documents: Ints, n_tags: int, n_folds: int = 5) -> Floats:
        """Scaled scores of the pairs by scalings that did not see their documents, this one being fitted on all pairs.

        With a single document there is nothing to hold out: this one's own scores are given, and no ridge is chosen.

        documents (Ints): Of the pairs, ascending.
        RAISES C003: no pairs.
        """
        several = len(np.unique(documents)) > 1
        start: Scaling | None = None
        if self.ridge is None and several:
            start = self._choose_ridge(pairs, documents, n_tags)
        self.ridge_ = (start or self._like(self.ridge or DEFAULT_RIDGE)).ridge_
        self.fit(pairs.take(thin_out(documents, MOST_PAIRS)), n_tags, start)
        if not several:
            return self._scale_pairs(pairs)
        return self._held_out(pairs, documents, n_tags, n_folds)

    def _held_out(self, pairs: Pairs, documents: Ints, n_tags: int, n_folds: int, tolerance: float = _FOR_HELD_OUT) -> Floats:
        """Scaled scores by scalings like this one, fitted on the other folds; documents: two at least."""
        folds = contiguous_folds(documents, min(n_folds, len(np.unique(documents))))
        scaled = np.empty(len(pairs))
        for fold in range(int(folds.max()) + 1):
            inside = np.flatnonzero(folds == fold)
            outside = np.flatnonzero(folds != fold)
            outside = outside[thin_out(documents[outside], MOST_PAIRS)]
            other = self._like(self.ridge_).fit(pairs.take(outside), n_tags, self, tolerance)
            scaled[inside] = other._scale_pairs(pairs.take(inside))
        return scaled

    def _choose_ridge(self, pairs: Pairs, documents: Ints, n_tags: int) -> Scaling:
        """One like this with that of RIDGES which has the least log loss on held-out documents, fitted on some of the pairs: from the ridge
        that is usual on to the side where the loss falls, as far as it does; of equals the strongest.
        """
        some = thin_out(documents, _MOST_TO_CHOOSE)
        few, of_pair = pairs.take(some), documents[some]
        usual = RIDGES.index(DEFAULT_RIDGE)
        fitted: dict[int, Scaling] = {}

        def loss(place: int) -> float:
            fitted[place] = self._like(RIDGES[place]).fit(few, n_tags, fitted.get(usual), _ROUGHLY)
            scaled = fitted[place]._held_out(few, of_pair, n_tags, _FOLDS_TO_CHOOSE, _ROUGHLY)
            return -float(np.log(np.maximum(np.where(few.hits, scaled, 1.0 - scaled), LEAST)).sum())

        return fitted[lowest_from(usual, len(RIDGES), loss)]

    def _like(self, ridge: float) -> Scaling:
        """A new one with this ridge, not fitted."""
        made = self.clone()
        made.ridge_ = ridge
        return made

    def _scale_pairs(self, pairs: Pairs) -> Floats:
        return self.scale(pairs.rows, pairs.tags, pairs.scores, pairs.scores >= self.floor)

    # Applying

    def scale(self, rows: Ints, tags: Ints, scores: Floats, counted: NDArray[np.bool_] | None = None) -> Floats:
        """The scaled probabilities of n entries; those of a token depend on one another and on no other token.

        rows (Ints): Token of each entry. tags (Ints), scores (Floats): All tags of the token that reach the floor.
        counted (NDArray[bool] | None): False for a further entry below the floor, of which the probability is asked too.
        RAISES C001: scores out of range. C002: arrays of unequal length. C004: not fitted.
        """
        self._check_fitted()
        given = as_probabilities("scores", scores)
        for name, array in (("row", rows), ("tag", tags), ("flag", given if counted is None else counted)):
            if len(array) != len(given):
                raise calib_error(
                    "C002", what=type(self).__name__, first=name, second="score", n_first=len(array), n_second=len(given)
                )
        if not len(given):
            return np.zeros(0)
        ascending = bool((rows[1:] >= rows[:-1]).all())
        order = slice(None) if ascending else np.argsort(rows, kind="stable")
        flags = None if counted is None else np.asarray(counted)[order]
        scaled = np.empty(len(given))
        scaled[order] = self._ready().scale(rows[order], tags[order], given[order], flags)
        return scaled

    def _ready(self) -> Applied:
        """Made once for what was learned."""
        held = self._applied
        if held is None or held[0] is not self.weights_:
            codes = self.codes_
            self._applied = held = (
                self.weights_,
                Applied(float(self.factor_[0]), self.biases_, codes, self.weights_, self.floor, self.pairwise == "self"),
            )
        return held[1]

    def _entries(self, rows: Ints, tags: Ints, scores: Floats, n_tags: int) -> Entries:
        return lay_out(rows, tags, scores, n_tags, self.floor, self.pairwise == "all")

    def _weights_of(self, codes: Ints) -> Floats:
        """The weight of each pair of tags; 0 for those that never met in the fit."""
        if not len(self.codes_):
            return np.zeros(len(codes))
        at = np.minimum(np.searchsorted(self.codes_, codes), len(self.codes_) - 1)
        return np.where(self.codes_[at] == codes, self.weights_[at], 0.0)

    def _check_fitted(self) -> None:
        if not self.fitted:
            raise calib_error("C004", what=type(self).__name__)

    # Saving

    def state(self) -> dict[str, Any]:
        """Name, settings and learned arrays: what `load_learned` needs."""
        names = ("ridge_", "n_tags_", "factor_", "biases_", "codes_", "weights_")
        learned = {name: copy.copy(getattr(self, name)) for name in names}
        return {"@calib_scalings": self.registered, "settings": self.settings(), "learned": learned}

    def load_learned(self, learned: dict[str, Any]) -> Scaling:
        """Take over the learned part of a saved state. RAISES Misfit: it is not of the form declared."""
        for name, value in _LEARNED(learned, "learned").items():
            if value is not None:
                setattr(self, name, value)
        return self


def lowest_from(place: int, n: int, loss: Callable[[int], float]) -> int:
    """The place in [0, n) where walking downhill from this one ends; of equals the first."""
    losses = {place: loss(place)}

    def lower(one: int, other: int) -> bool:
        if 0 <= one < n and one not in losses:
            losses[one] = loss(one)
        return 0 <= one < n and (losses[one] < losses[other] or (losses[one] == losses[other] and one < other))

    for step in (-1, 1):
        while lower(place + step, place):
            place += step
    return place


def _log_sums(entries: Entries, margins: Floats) -> Floats:
    """Log of the summed exponentials of each token's entries, shape (n_tokens,)."""
    highest = np.maximum.reduceat(margins, entries.starts)
    return highest + np.log(np.add.reduceat(np.exp(margins - highest[entries.tokens]), entries.starts))


class _Problem:
    """Penalized log loss of a scaling as a function of one vector: factor, biases, weights; each in units of its own curvature, without
    which the search would take several times as many steps.
    """

    def __init__(self, scaling: Scaling, entries: Entries, hits: NDArray[np.bool_]):
        from scipy.sparse import csr_matrix

        self.entries = entries
        self.biased, self.pairwise = scaling.biased, scaling.pairwise
        self.n_biases = entries.n_tags + 2 if self.biased else 0
        is_hit = np.zeros(len(entries), dtype=bool)
        own = entries.origin >= 0
        is_hit[own] = hits[entries.origin[own]]
        held = np.add.reduceat(is_hit, entries.starts) > 0
        self.gold = is_hit | ((entries.origin < 0) & ~held[entries.tokens])
        codes = {"none": np.zeros(0, dtype=np.intp), "self": entries.tags * (entries.n_tags + 3), "all": entries.codes}[
            self.pairwise
        ]
        self.codes, which = number_codes(codes, (entries.n_tags + 2) ** 2)
        targets = entries.targets if self.pairwise == "all" else np.arange(len(codes))
        moving = entries.inputs[entries.sources] if self.pairwise == "all" else entries.inputs[: len(codes)]
        self.design = csr_matrix((moving, (targets, which)), (len(entries), len(self.codes)))
        self.penalty = np.concatenate(
            [np.full(1, PRIOR), np.full(self.n_biases, scaling.bias_penalty), np.full(len(self.codes), scaling.ridge_)]
        )
        chance = np.exp(entries.logs)
        spread = chance * (1.0 - chance)
        curvature = self._gather(spread, entries.logs**2, self.design.power(2)) + self.penalty
        curvature[0] += 1.0  # never 0, whatever the data are like
        self.units = 1.0 / np.sqrt(curvature)

    def start(self, given: Scaling | None) -> Floats:
        """Where the search begins: at what changes nothing, or at another fit."""
        values = np.zeros(len(self.units))
        values[0] = 1.0
        if given is not None:
            values[0] = given.factor_[0]
            values[1 : 1 + self.n_biases] = given.biases_[: self.n_biases]
            values[1 + self.n_biases :] = given._weights_of(self.codes)
        return values / self.units

    def unpack(self, values: Floats) -> tuple[Floats, Floats, Ints, Floats]:
        """(factor, biases, codes, weights)."""
        biases = values[1 : 1 + self.n_biases] if self.biased else np.zeros(self.entries.n_tags + 2)
        return values[:1].copy(), biases.copy(), self.codes, values[1 + self.n_biases :].copy()

    def _gather(self, residuals: Floats, logs: Floats, design: Any) -> Floats:
        """Sums of the residuals times what each value multiplies."""
        biases = np.bincount(self.entries.tags, residuals, self.n_biases) if self.biased else np.zeros(0)
        return np.concatenate([[float((residuals * logs).sum())], biases, design.T @ residuals])

    def loss(self, scaled: Floats) -> tuple[float, Floats]:
        """(loss, gradient) at values given in their units."""
        values = scaled * self.units
        factor, biases, _, weights = self.unpack(values)
        margins = factor[0] * self.entries.logs + biases[self.entries.tags]
        if len(weights):
            margins += self.design @ weights
        logs = margins - _log_sums(self.entries, margins)[self.entries.tokens]
        residuals = np.exp(logs) - self.gold
        moved = values.copy()
        moved[0] -= 1.0
        gradient = self._gather(residuals, self.entries.logs, self.design) + self.penalty * moved
        return float(-logs[self.gold].sum() + 0.5 * (self.penalty * moved**2).sum()), gradient * self.units


class TemperatureScaling(Scaling):
    """One factor for all log-probabilities (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.TemperatureScaling.v1"
    short = "temperature"
    biased = False

    def __init__(self) -> None:
        super().__init__()

    def settings(self) -> dict[str, Any]:
        return {}


class VectorScaling(Scaling):
    """A factor and a bias for each tag, pulled towards one factor for all and no bias (Guo et al. 2017, section 4.2, with a ridge)."""

    registered = "spacy-calib.VectorScaling.v1"
    short = "vector"
    pairwise = "self"


class MatrixScaling(Scaling):
    """Besides, each of a token's likelier tags bears on each other one: the taggings that the model confuses are told apart by how often
    they were confused (Kull et al. 2019, section 3.2, with the ridge of their section 4 on the whole matrix but for one common factor).
    """

    registered = "spacy-calib.MatrixScaling.v1"
    short = "matrix"
    tried_by_auto = True
    pairwise = "all"

    def __init__(self, ridge: float | None = None, bias_ridge: float | None = None):
        super().__init__(ridge, bias_ridge)


def make_temperature_scaling() -> TemperatureScaling:
    """Registered as spacy-calib.TemperatureScaling.v1. See TemperatureScaling."""
    return TemperatureScaling()


def make_vector_scaling(ridge: float | None = DEFAULT_RIDGE, bias_ridge: float | None = None) -> VectorScaling:
    """Registered as spacy-calib.VectorScaling.v1. See VectorScaling."""
    return VectorScaling(ridge, bias_ridge)


def make_matrix_scaling(ridge: float | None = None, bias_ridge: float | None = None) -> MatrixScaling:
    """Registered as spacy-calib.MatrixScaling.v1. See MatrixScaling."""
    return MatrixScaling(ridge, bias_ridge)
