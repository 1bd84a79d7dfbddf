"""Convert the arguments of `TagCalibrator`: scores, labels and documents to core types, parameters to calibration steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...calibration.grouping.tag_frequency import tag_frequency_groups
from ...calibration.recalibrators import IsotonicRegression, Recalibrator
from ...calibration.scaling import Scaling
from ...calibration.selector import Selector, make_selector
from ...calibration.token_fit import FitData
from ...pairs.bins import check_count
from ...pairs.label_map import shorten_list
from ...pairs.pairing import find_top, pair_up
from ...pairs.scores import DenseScores, Scores, SparseScores, check_threshold, from_sparse
from ...registry import recalibrators, scalings
from ...types import ROUNDING, Floats, Grouping, Ints, Marginals
from .messages import calib_error

if TYPE_CHECKING:
    from .tag_calibrator import TagCalibrator


def is_triple(P: Any) -> bool:
    """Return whether the scores P are given as a tuple (rows, tags, scores), not as a matrix."""
    return isinstance(P, tuple) and len(P) == 3


def check_range(values: NDArray[Any]) -> None:
    """Check that scores are numbers in [0, 1], up to rounding. RAISES C001: they are not."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # NaN fails this too
        actual = "NaN" if np.isnan(values).any() else f"a range of {low:g} to {high:g}"
        raise calib_error("C001", name="P", wanted="numbers in [0, 1]", given=actual)


def read_matrix(matrix: Any) -> Scores:
    """Convert an array or a scipy sparse matrix (n_units, n_tags) into `Scores`. RAISES C001: values not in [0, 1]."""
    from scipy.sparse import issparse

    if not issparse(matrix):
        check_range(matrix)
        has_rounding_errors = matrix.size and (matrix.min() < 0 or matrix.max() > 1)
        return DenseScores(np.clip(matrix, 0.0, 1.0) if has_rounding_errors else matrix)
    check_range(matrix.data)
    entries = from_sparse(matrix, 0.0)  # all stored entries
    check_range(entries.scores)  # duplicate entries are summed, which may exceed 1
    return SparseScores(Marginals(entries.rows, entries.tags, np.clip(entries.scores, 0.0, 1.0), entries.n_tokens))


def read_triple(P: tuple[Any, Any, Any], labels: Sequence[Any], n_units: int | None) -> SparseScores:
    """Convert a tuple (rows, tags, scores) of the unit, tag and score of each entry into `Scores`; other scores are 0.

    labels (Sequence): Label of each column; tags are labels or column numbers. n_units (int | None): Number of units; None
    takes the highest unit + 1. RAISES C001: rows are no unit numbers, scores no probabilities, or a tag occurs twice in a unit.
    C002: lengths differ. C294: an unknown tag.
    """
    rows, tags, scores = (np.asarray(part) for part in P)
    for name, array in (("row", rows), ("tag", tags)):
        if array.shape != scores.shape or array.ndim != 1:
            raise calib_error("C002", what="P", first=name, second="score", n_first=array.size, n_second=scores.size)
    scores = scores.astype(np.float64)
    check_range(scores)
    n = int(rows.max(initial=-1)) + 1 if n_units is None else n_units
    is_whole = rows.dtype.kind in "iu"
    if rows.size and not (is_whole and rows.min() >= 0 and rows.max() < n):
        expected = f"numbers of units from 0 to {n - 1}" if is_whole else "numbers of units"
        raise calib_error("C001", name="rows", wanted=expected, given=f"{rows.min()} to {rows.max()}")
    column_by_label = index_labels(labels)
    columns = np.array([column_by_label.get(tag, -1) for tag in tags.tolist()], dtype=np.intp)
    if (columns < 0).any():
        raise calib_error("C294", given=repr(tags[columns < 0][0].item()), known=", ".join(map(str, labels)))
    order = np.lexsort((columns, rows))
    rows, columns, scores = rows[order].astype(np.intp), columns[order], scores[order]
    duplicates = np.flatnonzero((np.diff(rows) == 0) & (np.diff(columns) == 0))
    if len(duplicates):
        entry = f"{labels[columns[duplicates[0]]]!r} twice for unit {rows[duplicates[0]]}"
        raise calib_error("C001", name="P", wanted="one score for each unit and tag", given=entry)
    return SparseScores(Marginals(rows, columns, np.clip(scores, 0.0, 1.0), n))


def index_labels(labels: Sequence[Any]) -> dict[Any, int]:
    """Return a dict label -> column, in which column numbers are keys, too, unless some label is a number itself."""
    by_label = {label: column for column, label in enumerate(labels)}
    has_numbers = any(isinstance(label, (int, float)) for label in labels)
    return by_label if has_numbers else {**{column: column for column in range(len(labels))}, **by_label}


def is_missing(value: Any) -> bool:
    """Return whether a gold label means "no gold": None, NaN, pandas' NA, an empty text, or a negative number."""
    if isinstance(value, (int, float)):
        return not value >= 0  # True for NaN
    return value is None or type(value).__name__ == "NAType" or value == "" or value != value  # pandas' NaT


def infer_classes(y: NDArray[Any], n_tags: int) -> list[Any]:
    """Return labels for columns without names: the sorted labels of y if there are n_tags of these, else column numbers.

    y (NDArray): Gold label of each unit, or a missing value, shape (n_units,). RAISES C295: the labels of y are neither.
    """
    values = set(y.tolist())
    labels = {value for value in values if not is_missing(value)}
    if labels == {1} and -1 in values and n_tags == 2:  # scikit-learn's binary labels: -1 is a class here, not "no gold"
        return [-1, 1]
    if len(labels) == n_tags and len({type(value) for value in labels}) == 1:
        return sorted(labels)
    if all(isinstance(value, (int, float)) and 0 <= value < n_tags for value in labels):
        return list(range(n_tags))
    raise calib_error("C295", n_labels=len(labels), n_tags=n_tags)


def infer_classes_from_tags(tags: NDArray[Any]) -> list[Any]:
    """Return the label of each column, from all tags that occur: 0 to the greatest if tags are integers, else sorted tags."""
    if tags.dtype.kind in "iu":
        return list(range(int(tags.max(initial=-1)) + 1))
    return sorted(set(tags.tolist()))


@dataclass(frozen=True, eq=False)
class Gold:
    """The gold labels of n units. columns (Ints): Column of each unit's label, -1 if no column has it, -2 without gold.

    counts (Counter): Label -> number of units, for all labels. unknown (Counter): Only labels that no column has.
    """

    columns: Ints
    counts: Counter[str]
    unknown: Counter[str]

    def describe_unknown(self) -> dict[str, str]:
        """Return the values for warning CW21: number and percentage of units with an unknown label, and these labels."""
        n = self.unknown.total()
        names = [label for label, _ in self.unknown.most_common()]
        return {"n": f"{n:,}", "share": f"{100 * n / self.counts.total():.1f}", "unknown": shorten_list(names)}


def read_gold(y: NDArray[Any], labels: Sequence[Any], n_units: int) -> Gold:
    """Convert gold labels into columns, and count them. RAISES C071: no unit has gold. C296: no gold label has a column.

    y (NDArray): Gold label of each unit, or a missing value, shape (n_units,). labels (Sequence): Label of each column.
    n_units (int): Number of units with scores. RAISES C002: y has another length.
    """
    if len(y) != n_units:
        raise calib_error("C002", what="TagCalibrator", first="unit", second="label", n_first=n_units, n_second=len(y))
    values, known = y.tolist(), index_labels(labels)  # known: label -> column
    # -2: no gold, -1: a label without a column. Known labels come first, as they may look like a missing value (such as -1).
    columns = np.array([known[v] if v in known else (-2 if is_missing(v) else -1) for v in values], dtype=np.intp)
    frequencies = np.bincount(columns[columns >= 0], minlength=len(labels))
    counts = Counter({str(label): n for label, n in zip(labels, frequencies.tolist(), strict=True) if n})
    unknown = Counter(str(values[unit]) for unit in np.flatnonzero(columns == -1).tolist())
    if not counts and not unknown:
        raise calib_error("C071", what="TagCalibrator")
    if not counts:
        raise calib_error("C296", gold=shorten_list(list(unknown)), known=shorten_list([str(label) for label in labels]))
    return Gold(columns, counts + unknown, unknown)


def find_top_columns(marginals: Marginals, scores: NDArray[Any]) -> Ints:
    """Return the column of each unit's highest score (the first of equal ones); -1 without any. scores: One for each entry."""
    columns = np.full(marginals.n_tokens, -1, dtype=np.intp)
    top = find_top(marginals.rows, scores)
    columns[marginals.rows[top]] = marginals.tags[top]
    return columns


def with_zeros(scores: Scores, n_tags: int) -> DenseScores:
    """Return sparse scores as a dense array (n_units, n_tags) with 0 for missing entries; return dense scores unchanged."""
    if isinstance(scores, DenseScores):
        return scores
    entries = scores.marginals_above(0.0)
    return DenseScores(to_array(entries, entries.scores, n_tags))


def to_array(entries: Marginals, scores: Floats, n_tags: int) -> Floats:
    """Return an array (n_units, n_tags) with the score of each of the sparse entries at its unit and tag, and 0 elsewhere."""
    array = np.zeros((entries.n_tokens, n_tags))
    array[entries.rows, entries.tags] = scores
    return array


def normalize_rows(dense: Floats, scores: Scores, lowest: float, threshold: float) -> Floats:
    """Raise calibrated scores to a minimum, and divide each row by its sum.

    A row of zeros gets its raw scores instead, or equal scores if it has none. dense (Floats): Calibrated scores, shape
    (n_units, n_tags); overwritten. scores (Scores): Raw scores; a tag without an entry in them is not raised. lowest: The
    minimum. threshold (float): Threshold of the calibration; if it is not 0, no score is raised to more than its raw score.
    """
    entries = scores.marginals_above(0.0)
    is_in_zero_row = (dense.sum(axis=1) == 0)[entries.rows]
    minimum = np.minimum(entries.scores, lowest) if threshold else lowest
    floors = np.where(is_in_zero_row, entries.scores, minimum)
    dense[entries.rows, entries.tags] = np.maximum(dense[entries.rows, entries.tags], floors)
    dense[dense.sum(axis=1) == 0] = 1.0  # equal shares for a row without raw scores
    return dense / dense.sum(axis=1, keepdims=True)


def number_documents(groups: Any, n_units: int) -> Ints:
    """Number documents by first occurrence. groups: Each unit's document; None: each unit is one. RAISES C002: wrong length."""
    if groups is None:
        return np.arange(n_units)
    names = np.asarray(groups)
    if names.shape != (n_units,):
        raise calib_error("C002", what="TagCalibrator", first="unit", second="group", n_first=n_units, n_second=names.size)
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names.tolist()], dtype=np.intp)


def make_fit_data(scores: Scores, gold: Ints, documents: Ints, n_tags: int, threshold: float, minimum: float) -> FitData:
    """Make the pairs to fit on from scores and gold, with the units sorted by document.

    gold (Ints): Column of each unit's gold label, -1 if no column has it, -2 without gold, (n_units,). documents (Ints): Number
    of each unit's document, (n_units,). n_tags (int): Number of columns. threshold (float): Lower scores get no map, but a
    scaling may read them. minimum (float): Lower scores are left out.
    """
    entries = scores.marginals_above(minimum)
    if (np.diff(documents) < 0).any():  # FitData takes ascending documents: renumber the units
        order = np.argsort(documents, kind="stable")
        gold, documents = gold[order], documents[order]
        rows = np.argsort(order)[entries.rows]  # the new number of each entry's unit
        entry_order = np.argsort(rows, kind="stable")
        entries = Marginals(rows[entry_order], entries.tags[entry_order], entries.scores[entry_order], entries.n_tokens)
    pairs = pair_up(entries, gold)
    return FitData(pairs, gold, documents[pairs.rows], n_tags, threshold)


Step = TypeVar("Step", Recalibrator, Scaling)
AUTO = "auto"


@dataclass(eq=False, kw_only=True)
class ArraySteps:
    """The unfitted calibration steps that the parameters of a `TagCalibrator` select; scores below `threshold` get no map."""

    threshold: float
    grouping: Grouping  # (labels, their gold frequencies) -> groups of labels that share a map
    scaling: Scaling | None  # of all scores of a unit, before the maps
    recalibrator: Recalibrator  # the unfitted map of each group
    tag_offsets: bool  # a correction for each tag, after the maps
    selector: Selector | None  # for method "auto": compares methods, and chooses the steps


def make_steps(calibrator: TagCalibrator, threshold: float) -> ArraySteps:
    """Build a `TagCalibrator`'s steps with this threshold. RAISES C001: bad parameter. C293: "auto" with scaling or offsets."""
    is_auto = isinstance(calibrator.method, str) and calibrator.method == AUTO
    for name in ("scaling", "tag_offsets"):
        if is_auto and getattr(calibrator, name):
            raise calib_error("C293", setting=name)
    method = IsotonicRegression() if is_auto else calibrator.method  # not used for "auto": the selector chooses
    return ArraySteps(
        threshold=check_threshold(threshold),
        grouping=partial(tag_frequency_groups, n_groups=check_count("n_groups", calibrator.n_groups)),
        scaling=None if calibrator.scaling is None else _get_step("scaling", calibrator.scaling, Scaling, scalings()),
        recalibrator=_get_step("method", method, Recalibrator, recalibrators(), (AUTO,)),  # type: ignore[type-abstract]
        tag_offsets=bool(calibrator.tag_offsets),
        selector=make_selector() if is_auto else None,
    )


def _get_step(
    setting: str, value: Any, kind: type[Step], by_short_name: Mapping[str, Step], special_names: tuple[str, ...] = ()
) -> Step:
    """Return the step that a parameter names by its short or registered name, or an unfitted copy of the step given.

    setting, value: Name and value of the parameter. kind (type): Recalibrator or Scaling. by_short_name (Mapping): Short name
    -> step. special_names (tuple): Further values of the parameter, such as "auto", which the caller has handled; only for the
    list of names in the error. RAISES C001: neither a name nor an instance of this kind.
    """
    by_name = {**{step.registered: step for step in by_short_name.values()}, **by_short_name}
    if isinstance(value, str) and value in by_name:
        return by_name[value]
    if not isinstance(value, kind):
        names = ", ".join((*special_names, *by_short_name))
        raise calib_error("C001", name=setting, wanted=f"one of {names}, or a {kind.__name__}", given=repr(value))
    return value.clone()
