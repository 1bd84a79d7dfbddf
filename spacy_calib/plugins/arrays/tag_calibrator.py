"""`TagCalibrator`: the calibration of token scores as a scikit-learn estimator over arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ...calibration.choice import lowest_taken, make_plan
from ...calibration.fit_summaries import HeldOut
from ...calibration.grouping.tag_frequency import regroup_by_frequency
from ...calibration.sufficiency import evaluate_held_out
from ...calibration.token_fit import fit_tokens, score_held_out
from ...calibration.tokens import CalibratedEntries, TokenCalibration, check_normalize
from ...metrics.proper import PROPER
from ...metrics.smooth_error import SmoothCalibrationError
from ...metrics.table import calibration_table
from ...pairs.documents import DOCUMENT
from ...pairs.pairing import JudgedPairs, pair_up
from ...pairs.scores import Scores
from ...types import Floats, Groups
from . import inputs, saved
from .inputs import make_steps
from .messages import WARNINGS, calib_error

if TYPE_CHECKING:
    from ...calibration.recalibrators import Recalibrator
    from ...calibration.scaling import Scaling

# Name of what the intervals of a report resample if no documents are given.
UNIT = "unit"


class TagCalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Calibrate the tag probabilities of a tagger, or the class probabilities of any classifier, with held-out gold labels.

    P, in all methods: the probabilities of n units (tokens, documents) for k tags. An array (n, k), whose rows need not sum
    to 1; a scipy sparse matrix of that shape; or a tuple (rows, tags, scores): unit, tag (label or column) and score.

    method (str | Recalibrator): "auto" chooses between vector scaling and isotonic maps by cross-validation over documents;
        otherwise a recalibrator, or the name of one: identity, temperature, platt, beta, histogram, scaling-binning,
        isotonic, or another registered one.
    n_groups (int): Number of tag frequency groups, each with its own map; with "auto" only for the evaluation.
    scaling (str | Scaling | None): Scaling of a unit's scores before the maps: temperature, vector or matrix.
    tag_offsets (bool): Whether each tag gets a correction of its own, shrunk towards that of its group.
    threshold (float | None): Lower scores take no part in the calibration. None is 0 for at most 20 classes, else .01, which
        Kranzlein et al. (2021, section 3.1) take for hundreds of tags.
    normalize (bool): Whether a unit's scores are divided by their sum.
    classes (Sequence | None): Label of each column. None takes a data frame's column names, or y's k sorted labels, or numbers.
    tag_counts (Mapping | None): Tag frequencies of the training data, for the groups; None counts them in y.

    classes_ (NDArray): Label of each column. calibration_ (TokenCalibration): The fitted steps. groups_ (Groups): Tag frequency
    groups of the evaluation. selection_ (dict): The methods that "auto" compared, else {}. held_out_ (HeldOut): Cross-validated
    log loss, raw and calibrated. threshold_ (float): The threshold used. unknown_gold_ (dict): Gold label without a column ->
    frequency. n_features_in_ (int), feature_names_in_ (NDArray): As in scikit-learn.

    >>> import numpy as np
    >>> P = np.array([[0.95, 0.05], [0.05, 0.95]] * 10)  # overconfident: of ten predictions with 0.95 eight are right
    >>> y = ["NOUN", "VERB"] * 8 + ["VERB", "NOUN"] * 2
    >>> calibrator = TagCalibrator(method="isotonic", n_groups=1, classes=["NOUN", "VERB"]).fit(P, y)
    >>> calibrator.predict_proba([[0.95, 0.05]]).round(2).tolist()
    [[0.8, 0.2]]
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    def __init__(
        self,
        method: str | Recalibrator = "auto",
        n_groups: int = 5,
        scaling: str | Scaling | None = None,
        tag_offsets: bool = False,
        threshold: float | None = None,
        normalize: bool = False,
        classes: Sequence[Any] | None = None,
        tag_counts: Mapping[Any, int] | None = None,
    ):
        self.method = method
        self.n_groups = n_groups
        self.scaling = scaling
        self.tag_offsets = tag_offsets
        self.threshold = threshold
        self.normalize = normalize
        self.classes = classes
        self.tag_counts = tag_counts

    def fit(self, P: Any, y: ArrayLike, groups: ArrayLike | None = None) -> TagCalibrator:
        """Fit the calibration on units with gold labels.

        P: Probabilities of n units for k tags, in a form that the class lists.
        y (ArrayLike): Gold label of each unit, or its column, shape (n,); None, NaN, "" or a negative number (-100) means no
            gold, unless a class has that label. If no column has the label, all tags of the unit are wrong.
        groups (ArrayLike | None): Document of each unit, which cross-validation does not split; None splits by unit.
        RAISES C001: a parameter or a score is out of range. C002: lengths differ. C003, C006: too few pairs. C071: no unit has
            gold. C293: "auto" with `scaling` or `tag_offsets`. C294: P has a tag that is not in `classes`. C295: y does not
            show the labels of the columns. C296: no gold label has a column.
        """
        gold_labels = _as_labels(y)
        scores, labels = _read_fit_scores(self, P, gold_labels)
        # With hundreds of tags, those scored below .01 are practically ruled out; with few classes every score counts.
        self.threshold_ = (0.0 if len(labels) <= 20 else 0.01) if self.threshold is None else self.threshold
        steps = make_steps(self, self.threshold_)
        scores = inputs.with_zeros(scores, len(labels)) if steps.threshold == 0 else scores  # 0 where a sparse P has no entry
        self.classes_ = np.array(labels)
        gold = inputs.read_gold(gold_labels, labels, scores.n_tokens)
        if gold.unknown:
            warnings.warn(WARNINGS["CW21"].format(**gold.describe_unknown()), stacklevel=2)
        documents = inputs.number_documents(groups, scores.n_tokens)
        data = inputs.make_fit_data(scores, gold.columns, documents, len(labels), steps.threshold, lowest_taken(steps))
        names = [str(label) for label in labels]
        counts = gold.counts if self.tag_counts is None else {str(tag): int(n) for tag, n in self.tag_counts.items()}
        plan = make_plan(steps, data, lambda grouping: grouping(names, counts))  # with "auto" it compares methods
        self.calibration_: TokenCalibration = fit_tokens(data, plan, check_normalize(self.normalize))
        held_out_scores = score_held_out(data, plan, self.calibration_)  # of each fold by a fit on the others
        predictions = JudgedPairs(data.kept_pairs, held_out_scores, data.kept_documents)
        self.groups_: Groups = plan.evaluation_groups
        self.selection_: dict[str, Any] = plan.table
        self.held_out_: HeldOut = evaluate_held_out(predictions)
        self.unknown_gold_: dict[str, int] = dict(gold.unknown.most_common())
        self.n_units_: int = int(np.count_nonzero(gold.columns != -2))  # -2: without gold
        return self

    def predict_proba(self, P: Any) -> Floats:
        """Return the calibrated probability of each tag, shape (n, k), columns as in `classes_`; rows sum to 1.

        P: As for `fit`. A gold tag at 0 would have an infinite log loss, so scores are raised to at least 0.5 / number of fit
        units (but at most to the raw score if `threshold_` is above 0) before rows are divided by their sums. `transform` gives
        the scores without these changes. RAISES C001: scores out of range. C294: an unknown tag.
        """
        scores, entries = self._calibrate(P)
        calibrated = inputs.to_array(entries.marginals, entries.scores, len(self.classes_))
        return inputs.normalize_rows(calibrated, scores, 0.5 / self.n_units_, self.threshold_)

    def transform(self, P: Any) -> Any:
        """Return the calibrated scores, shape (n, k): a sparse matrix if P (as for `fit`) is one or a tuple, else an array.

        Scores below the threshold are 0, and rows sum to 1 only if the parameter `normalize` is True.
        RAISES C001: scores out of range. C294: an unknown tag.
        """
        from scipy.sparse import csr_matrix, issparse

        _, entries = self._calibrate(P)
        if not (issparse(P) or inputs.is_triple(P)):
            return inputs.to_array(entries.marginals, entries.scores, len(self.classes_))
        rows, columns = entries.marginals.rows, entries.marginals.tags
        return csr_matrix((entries.scores, (rows, columns)), shape=(entries.marginals.n_tokens, len(self.classes_)))

    def predict(self, P: Any) -> NDArray[Any]:
        """Return each unit's top calibrated label, shape (n,); its top raw label if all scores become 0. P: As for `fit`."""
        scores, entries = self._calibrate(P)
        columns = inputs.find_top_columns(entries.marginals, entries.scores)
        sums = np.bincount(entries.marginals.rows, entries.scores, entries.marginals.n_tokens)
        without_score = np.flatnonzero(sums == 0)  # units whose calibrated scores are all 0
        if len(without_score):
            raw = scores.marginals_above(0.0)
            columns[without_score] = inputs.find_top_columns(raw, raw.scores)[without_score]
        return self.classes_[np.maximum(columns, 0)]  # a unit without any entry gets the first class

    def _calibrate(self, P: Any) -> tuple[Scores, CalibratedEntries]:
        """Return (raw scores of P, calibrated scores of the entries that reach the threshold). P, RAISES: as in `transform`."""
        check_is_fitted(self)
        if inputs.is_triple(P):
            scores: Scores = inputs.read_triple(P, self.classes_.tolist(), None)
        else:
            scores = inputs.read_matrix(_validate(self, P, reset=False))
        if self.threshold_ == 0:
            scores = inputs.with_zeros(scores, len(self.classes_))
        return scores, self.calibration_.calibrate(scores, self.threshold_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the labels as strings, the column names of data frames (see `set_output`). input_features: Not used."""
        check_is_fitted(self)
        return np.array([str(label) for label in self.classes_.tolist()], dtype=object)

    def score(self, P: Any, y: ArrayLike) -> float:
        """Return minus the log loss of `predict_proba`: the mean log probability of the gold labels; higher is better.

        It replaces the accuracy, which calibration hardly changes. y: As in `fit`, units without gold left out. Probabilities
        below 1e-6, as of gold labels without a column, count as 1e-6. RAISES C001, C002, C071, C294, C296: as `fit`.
        """
        probabilities = self.predict_proba(P)
        columns = inputs.read_gold(_as_labels(y), self.classes_.tolist(), len(probabilities)).columns
        units = np.flatnonzero(columns != -2)  # those with gold; -1: of a label without a column
        gold = np.where(columns[units] < 0, 0.0, probabilities[units, columns[units]])  # 0 for labels without a column
        return float(np.log(np.maximum(gold, 1e-6)).mean())

    def calibration_report(
        self,
        P: Any,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        n_bins: int = 10,
        n_groups: int | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Return raw and calibrated errors over all tags (SMCE) and by tag frequency group (GMCE), and further metrics.

        Each calibrated SMCE and GMCE has a noise floor, which perfectly calibrated scores would show here, and a 95 % interval.
        P, y, groups: As in `fit`; intervals resample documents. n_bins (int): Number of adaptive bins. n_groups (int | None):
        Number of tag frequency groups; None takes the groups of the fit. seed (int): Seed of floors and intervals.
        RETURNS (dict): "tokens" (number of units), "pairs" (number), "accuracy"; "errors": a row for all tags, one for each
        group, and their mean; "scores": raw and calibrated value of each metric; "change" of the losses, with intervals; "by":
        {"unit": what the intervals resample, "n": number of these}. RAISES C001, C002, C071, C294, C296: as `fit`.
        """
        predictions = self.judge(P, y, groups)
        names = [str(label) for label in self.classes_.tolist()]
        tag_groups = self.groups_ if n_groups is None else regroup_by_frequency(self.groups_, names, n_groups)
        smooth = SmoothCalibrationError()
        return calibration_table(
            predictions.pairs, predictions.calibrated, tag_groups, n_bins, seed, predictions.documents, predictions.unit,
            {**PROPER, smooth.short: smooth},
        )  # fmt: skip

    def judge(self, P: Any, y: ArrayLike, groups: ArrayLike | None = None) -> JudgedPairs:
        """Return the (unit, tag) pairs with gold: raw score, calibrated score, and whether the tag is right.

        P, y, groups: As in `fit`. RAISES C001, C002, C071, C294, C296: as `fit`.
        """
        _, entries = self._calibrate(P)
        gold = inputs.read_gold(_as_labels(y), self.classes_.tolist(), entries.marginals.n_tokens).columns
        documents = inputs.number_documents(groups, entries.marginals.n_tokens)
        pairs = pair_up(entries.marginals, gold)
        has_gold = gold[entries.marginals.rows] != -2  # of each entry
        return JudgedPairs(pairs, entries.scores[has_gold], documents[pairs.rows], UNIT if groups is None else DOCUMENT)

    def to_bytes(self) -> bytes:
        """Return the parameters and everything learned as msgpack with a format version and a checksum."""
        check_is_fitted(self)
        return saved.dump(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> TagCalibrator:
        """Rebuild the estimator from `to_bytes`. RAISES C298: other bytes. C299: another format version, or a missing step."""
        return saved.read(cls, data, "the bytes given")

    def to_disk(self, path: str | Path) -> None:
        """Save the estimator as one file."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def from_disk(cls, path: str | Path) -> TagCalibrator:
        """Load what `to_disk` saved. RAISES C298: unreadable, or another file. C299: another format, or a missing step."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise calib_error("C298", path=path, why=error.strerror or error) from None
        return saved.read(cls, data, str(path))

    # Methods that scikit-learn calls

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of the estimator: P may be sparse, and is not negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """Return scikit-learn's tags of the estimator as a dict, for versions before 1.6."""
        return {"requires_positive_X": True, "X_types": ["2darray", "sparse"]}


def _read_fit_scores(calibrator: TagCalibrator, P: Any, y: NDArray[Any]) -> tuple[Scores, list[Any]]:
    """Return (scores of P to fit on, label of each column), and set n_features_in_ and feature_names_in_ of the calibrator.

    P: Matrix or DataFrame (n, k), or a triple (rows, tags, scores). Labels are `classes`, else the column names or the triple's
    tags, else those of y.
    """
    labels = None if calibrator.classes is None else np.asarray(calibrator.classes).tolist()
    if labels is not None and len({str(label) for label in labels}) != len(labels):
        raise calib_error("C001", name="classes", wanted="distinct labels, one for each column", given=labels)
    if inputs.is_triple(P):
        labels = inputs.infer_classes_from_tags(np.asarray(P[1])) if labels is None else labels
        calibrator.n_features_in_ = len(labels)
        return inputs.read_triple(P, labels, len(y)), labels
    array = _validate(calibrator, P, reset=True)
    if labels is not None and len(labels) != array.shape[1]:
        expected = f"an array of {len(labels)} columns, one for each of the classes"
        raise calib_error("C001", name="P", wanted=expected, given=f"one of shape {array.shape}")
    if labels is None:
        columns = getattr(calibrator, "feature_names_in_", None)
        labels = inputs.infer_classes(y, array.shape[1]) if columns is None else list(columns)
    return inputs.read_matrix(array), labels


def _as_labels(y: Any) -> NDArray[Any]:
    """Return y as a 1-D array. RAISES C071: it is None. ValueError: scikit-learn's, for other shapes and continuous numbers."""
    if y is None:  # with words that the checks of scikit-learn's estimators look for
        raise calib_error("C071", what="TagCalibrator (requires y to be passed, but the target y is None)")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f" and not np.isnan(labels).any():  # NaN means "no gold"
        check_classification_targets(labels)
    return labels


def _validate(estimator: TagCalibrator, P: Any, reset: bool) -> Any:
    """Return P as an array or CSR matrix. reset: Record columns in the estimator, else check. RAISES ValueError: wrong P."""
    options: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": reset}
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        return estimator._validate_data(P, force_all_finite=False, **options)
    return validate_data(estimator, P, ensure_all_finite=False, **options)
