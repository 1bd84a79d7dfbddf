"""The calibration of tokens as a scikit-learn estimator over arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ...calibration.choice import lowest_taken, make_plan
from ...calibration.fit_summaries import HeldOut
from ...calibration.grouping.tag_frequency import regroup_by_frequency
from ...calibration.sufficiency import evaluate_held_out
from ...calibration.token_fit import fit_sets, fit_tokens, score_held_out
from ...calibration.tokens import CalibratedEntries, TokenCalibration, check_normalize
from ...metrics.proper import PROPER, log_losses
from ...metrics.smooth_error import SmoothCalibrationError
from ...metrics.table import calibration_table
from ...pairs.build import JudgedPairs, Scores, pair_up
from ...pairs.documents import DOCUMENT
from ...types import Floats, Groups, Marginals
from . import inputs, saved
from .inputs import steps_of
from .messages import WARNINGS, calib_error

# What the intervals of a report resample where no documents are given.
UNIT = "unit"


class TagCalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Learns on held-out gold how true the probabilities of a tagger (or any classifier) are, and gives true ones.

    P, everywhere: the probabilities of n units (tokens, documents) for k tags. An array (n, k), whose rows need not sum
    to 1; a scipy sparse matrix of that shape; or a tuple (rows, tags, scores): unit, tag (label or column) and score.

    method (str | Recalibrator): "auto" chooses between vector scaling and isotonic maps by cross-validation over documents;
        else a recalibrator, or the name of one: identity, temperature, platt, beta, histogram, scaling-binning,
        isotonic, or another registered one.
    n_groups (int): Tag frequency groups, each with its own map; with "auto" the groups of promises and figures.
    scaling (str | Scaling | None): First weighs the tags of a unit anew: temperature, vector, matrix.
    tag_offsets (bool | TagOffsets): Whether each tag is also corrected by itself, pooled towards its group.
    threshold (float): Lower scores are 0 after calibration. Kranzlein et al. (2021, section 3.1) take .01.
    normalize (bool | str): True divides a unit's scores by their sum; "other" leaves room for tags below the threshold.
    sets (float | ConformalSets | None): Allows `predict_set`; a number is the share of units whose set may miss the
        gold tag.
    classes (Sequence | None): Label of each column. None takes a data frame's names; else the sorted labels of y, if
        they are as many as columns; else numbers.
    tag_counts (Mapping | None): Tag frequencies of the training data, for the groups; None counts them in y.

    classes_ (NDArray): Label of each column. calibration_ (TokenCalibration): The fitted steps. groups_ (Groups): Those
    of the figures. selection_ (dict): What "auto" chose from, else {}. held_out_ (HeldOut): Log loss raw and
    calibrated, each document by a fit on the others. unknown_gold_ (dict): Gold labels without column -> number.
    n_features_in_ (int), feature_names_in_ (NDArray): As everywhere in scikit-learn.
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    def __init__(
        self,
        method: Any = "auto",
        n_groups: int = 5,
        scaling: Any = None,
        tag_offsets: Any = False,
        threshold: float = 0.01,
        normalize: bool | str = False,
        sets: Any = None,
        classes: Sequence[Any] | None = None,
        tag_counts: Mapping[Any, int] | None = None,
    ):
        self.method = method
        self.n_groups = n_groups
        self.scaling = scaling
        self.tag_offsets = tag_offsets
        self.threshold = threshold
        self.normalize = normalize
        self.sets = sets
        self.classes = classes
        self.tag_counts = tag_counts

    # Fitting

    def fit(self, P: Any, y: ArrayLike, groups: ArrayLike | None = None) -> TagCalibrator:
        """Learn from units with gold.

        y (ArrayLike): The gold label of each unit, or its column; None, NaN, "" or a negative number (-100) for none,
            unless a class is called so. With a label that no column has, all tags of the unit are wrong.
        groups (ArrayLike | None): Document of each unit, which cross-validation does not split; None: a unit each.
        RAISES C001: a parameter, or scores, out of range. C002: lengths differ. C003, C006: too few pairs. C071: no
            gold. C293: a parameter with "auto". C294: an unknown tag. C295: columns without names. C296: no known gold.
        """
        steps = steps_of(
            method=self.method,
            n_groups=self.n_groups,
            scaling=self.scaling,
            tag_offsets=self.tag_offsets,
            threshold=self.threshold,
            sets=self.sets,
        )
        gold_of = _labels_of(y)
        scores, labels = _read_first(self, P, gold_of)
        self.classes_ = np.array(labels)
        gold = inputs.read_gold(_as_long_as(gold_of, scores), labels)
        if gold.unknown:
            warnings.warn(WARNINGS["CW21"].format(**gold.unknown_words()), stacklevel=2)
        documents = inputs.document_numbers(groups, scores.n_tokens)
        data = inputs.token_data(scores, gold.columns, documents, len(labels), steps.threshold, lowest_taken(steps))
        names = [str(label) for label in labels]
        counts = gold.counts if self.tag_counts is None else {str(tag): int(n) for tag, n in self.tag_counts.items()}
        plan = make_plan(steps, data, lambda grouping: grouping(names, counts))
        self.calibration_: TokenCalibration = fit_tokens(data, plan, check_normalize(self.normalize))
        judged = JudgedPairs(data.kept_pairs, score_held_out(data, plan, self.calibration_), data.kept_documents)
        if steps.sets is not None:
            self.calibration_.sets = fit_sets(steps.sets, data, plan, judged.calibrated)
        self.groups_: Groups = plan.evaluation_groups
        self.selection_: dict[str, Any] = plan.table
        self.held_out_: HeldOut = evaluate_held_out(judged)
        self.unknown_gold_: dict[str, int] = dict(gold.unknown.most_common())
        return self

    # Applying

    def predict_proba(self, P: Any, normalize: bool = True) -> Floats:
        """The calibrated probability of each tag, shape (n, k) in the order of `classes_`; 0 below the threshold.

        normalize (bool): Whether rows are divided by their sums, as scikit-learn expects (a row of zeros gets its
            scores before calibration). False gives what `transform` does, by which figures go. RAISES C001: scores out
            of range. C294: an unknown tag.
        """
        scores = self._read(P)
        found = self.calibration_.calibrate(scores, self.threshold)
        dense = _dense(self, found, found.scores)
        return inputs.rescaled(dense, scores) if normalize else dense

    def transform(self, P: Any) -> Any:
        """The calibrated scores; rows sum to 1 if the parameter `normalize` says so. A sparse matrix if P is one, or a
        tuple."""
        from scipy.sparse import csr_matrix, issparse

        found = self.calibrated(P)
        if not (issparse(P) or inputs.is_triple(P)):
            return _dense(self, found, found.scores)
        rows, columns = found.marginals.rows, found.marginals.tags
        return csr_matrix((found.scores, (rows, columns)), shape=(found.marginals.n_tokens, len(self.classes_)))

    def predict(self, P: Any) -> NDArray[Any]:
        """The likeliest label of each unit after calibration; before it where all calibrated scores are 0."""
        scores = self._read(P)
        found = self.calibration_.calibrate(scores, self.threshold)
        best = inputs.likeliest(found.marginals, found.scores)
        silent = np.flatnonzero(np.bincount(found.marginals.rows, found.scores, found.marginals.n_tokens) == 0)
        if len(silent):
            every = scores.marginals_above(0.0)
            best[silent] = inputs.likeliest(every, every.scores)[silent]
        return self.classes_[np.maximum(best, 0)]

    def predict_set(self, P: Any) -> NDArray[np.bool_]:
        """Whether each tag is in the unit's set, shape (n, k). RAISES C297: fitted without `sets`. C001, C294: bad input."""
        found = self.calibrated(P)
        if found.in_set is None or found.out_of_reach is None:
            raise calib_error("C297")
        return _dense(self, found, found.in_set).astype(bool) | found.out_of_reach[:, None]

    def _read(self, P: Any) -> Scores:
        check_is_fitted(self)
        if inputs.is_triple(P):
            return inputs.triple_scores(P, self.classes_.tolist(), None)
        return _scores_of(_validated(self, P, reset=False))

    def calibrated(self, P: Any) -> CalibratedEntries:
        """The entries that reach the threshold, after all steps. RAISES C001, C294: see `predict_proba`."""
        scores = self._read(P)
        return self.calibration_.calibrate(scores, self.threshold)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The labels, by which `set_output` names columns."""
        check_is_fitted(self)
        return np.array([str(label) for label in self.classes_.tolist()], dtype=object)

    # Judging

    def score(self, P: Any, y: ArrayLike) -> float:
        """Minus the mean log loss of the calibrated pairs of unit and tag: higher is truer, for a search over methods.
        (Calibration hardly changes accuracy: `sklearn.metrics.accuracy_score(y, predict(P))`.)

        RAISES C003: no pair reaches the threshold. C001, C071, C294, C296: see `fit`.
        """
        judged = self.judge(P, y)
        if not len(judged):
            raise calib_error("C003", what="TagCalibrator", threshold=self.threshold)
        return -float(log_losses(judged.calibrated, judged.pairs.hits).mean())

    def calibration_report(
        self,
        P: Any,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        n_bins: int = 10,
        n_groups: int | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """The figures of `spacy calib evaluate`: calibration errors raw and calibrated, over all tags (SMCE) and by tag
        frequency group (GMCE), with noise floors and 95 % intervals.

        y, groups: See `fit`; intervals resample documents. n_bins (int): Adaptive bins. n_groups (int | None): Number
        of groups; None takes those of the fit. seed (int): Of all random numbers.
        RETURNS (dict): See `metrics.table.calibration_table`. RAISES C001, C002, C071, C294, C296: see `fit`.
        """
        judged = self.judge(P, y, groups)
        names = [str(label) for label in self.classes_.tolist()]
        by = self.groups_ if n_groups is None else regroup_by_frequency(self.groups_, names, n_groups)
        smooth = SmoothCalibrationError()
        metrics = {**PROPER, smooth.short: smooth}
        return calibration_table(judged.pairs, judged.calibrated, by, n_bins, seed, judged.documents, judged.unit, metrics)

    def judge(self, P: Any, y: ArrayLike, groups: ArrayLike | None = None) -> JudgedPairs:
        """The pairs of units with gold, raw and calibrated. y, groups, RAISES: See `fit`."""
        found = self.calibrated(P)
        gold = inputs.read_gold(_as_long_as(_labels_of(y), found.marginals), self.classes_.tolist()).columns
        documents = inputs.document_numbers(groups, found.marginals.n_tokens)
        pairs = pair_up(found.marginals, gold)
        kept = gold[found.marginals.rows] != -2
        return JudgedPairs(pairs, found.scores[kept], documents[pairs.rows], UNIT if groups is None else DOCUMENT)

    # Saving

    def to_bytes(self) -> bytes:
        """Parameters and what was learned: msgpack with a format version and a checksum."""
        check_is_fitted(self)
        return saved.dump(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> TagCalibrator:
        """The estimator from `to_bytes`. RAISES C298: not such bytes. C299: another format version, or an unknown part."""
        return saved.read(cls, data, "the bytes given")

    def to_disk(self, path: str | Path) -> None:
        """Write the estimator into a file."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def from_disk(cls, path: str | Path) -> TagCalibrator:
        """The estimator from `to_disk`. RAISES C298, C299: see `from_bytes`; or the file cannot be read."""
        return saved.read(cls, saved.file_bytes(Path(path)), str(path))

    # What scikit-learn asks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """`__sklearn_tags__` for scikit-learn before 1.6."""
        return {"requires_positive_X": True, "X_types": ["2darray", "sparse"]}


def _read_first(made: TagCalibrator, P: Any, y: NDArray[Any]) -> tuple[Scores, list[Any]]:
    """(the scores of a fit, the label of each column)."""
    given = None if made.classes is None else np.asarray(made.classes).tolist()
    if given is not None and len({str(label) for label in given}) != len(given):
        raise calib_error("C001", name="classes", wanted="distinct labels, one for each column", given=given)
    if inputs.is_triple(P):
        labels = inputs.classes_of_tags(np.asarray(P[1])) if given is None else given
        made.n_features_in_ = len(labels)
        return inputs.triple_scores(P, labels, len(y)), labels
    array = _validated(made, P, reset=True)
    if given is not None and len(given) != array.shape[1]:
        wanted = f"an array of {len(given)} columns, one for each of the classes"
        raise calib_error("C001", name="P", wanted=wanted, given=f"one of shape {array.shape}")
    if given is None:
        columns = getattr(made, "feature_names_in_", None)
        given = inputs.classes_of(y, array.shape[1]) if columns is None else list(columns)
    return _scores_of(array), given


def _labels_of(y: Any) -> NDArray[Any]:
    """y as one column. RAISES ValueError: scikit-learn's, for other shapes, and numbers that are no labels."""
    if y is None:
        raise calib_error("C071", what="TagCalibrator (requires y to be passed, but the target y is None)")
    given = column_or_1d(y, warn=True)
    if given.dtype.kind == "f" and not np.isnan(given).any():
        check_classification_targets(given)
    return given


def _as_long_as(y: NDArray[Any], scores: Scores | Marginals) -> NDArray[Any]:
    """y, as it is. RAISES C002: not one label for each unit."""
    if len(y) != scores.n_tokens:
        raise calib_error("C002", what="TagCalibrator", first="unit", second="label", n_first=scores.n_tokens, n_second=len(y))
    return y


def _validated(estimator: TagCalibrator, P: Any, reset: bool) -> Any:
    """P as an array or CSR matrix of numbers, with the fit's columns and names. RAISES ValueError: scikit-learn's."""
    wanted: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": reset}
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        return estimator._validate_data(P, force_all_finite=False, **wanted)
    return validate_data(estimator, P, ensure_all_finite=False, **wanted)


def _scores_of(array: Any) -> Scores:
    from scipy.sparse import issparse

    return inputs.sparse_scores(array) if issparse(array) else inputs.dense_scores(array)


def _dense(made: TagCalibrator, found: CalibratedEntries, values: NDArray[Any]) -> Floats:
    dense = np.zeros((found.marginals.n_tokens, len(made.classes_)))
    dense[found.marginals.rows, found.marginals.tags] = values
    return dense
