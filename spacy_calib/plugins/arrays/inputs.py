"""Scores, labels and documents as people hold them in arrays -> types of the core; parameters -> steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...calibration.grouping.tag_frequency import tag_frequency_groups
from ...calibration.recalibrators import IsotonicRegression, Recalibrator
from ...calibration.registered import recalibrators, scalings
from ...calibration.scaling import Scaling
from ...calibration.selector import Selector
from ...calibration.sets import ConformalSets
from ...calibration.tag_offsets import TagOffsets
from ...calibration.token_fit import FitData
from ...pairs.bins import check_count
from ...pairs.build import DenseScores, Scores, SparseScores, check_threshold, find_top, from_sparse, pair_up
from ...pairs.label_map import shorten_list
from ...types import ROUNDING, Floats, Grouping, Ints, Marginals
from .messages import calib_error


def is_triple(P: Any) -> bool:
    """Whether scores are given as (rows, tags, scores)."""
    return isinstance(P, tuple) and len(P) == 3


def check_probabilities(values: NDArray[Any]) -> None:
    """RAISES C001: a score that is no number from 0 to 1."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # NaN fails this too
        given = "NaN" if np.isnan(values).any() else f"a range of {low:g} to {high:g}"
        raise calib_error("C001", name="P", wanted="numbers in [0, 1]", given=given)


def dense_scores(array: NDArray[Any]) -> DenseScores:
    """The scores in an array (units, tags). RAISES C001: no probabilities."""
    check_probabilities(array)
    return DenseScores(np.clip(array, 0.0, 1.0) if array.size and (array.min() < 0 or array.max() > 1) else array)


def sparse_scores(matrix: Any) -> SparseScores:
    """The scores in a scipy sparse matrix (units, tags), 0 where not stored. RAISES C001: no probabilities."""
    check_probabilities(matrix.data)
    every = from_sparse(matrix, 0.0)
    check_probabilities(every.scores)  # entries that are stored twice are added up
    return SparseScores(Marginals(every.rows, every.tags, np.clip(every.scores, 0.0, 1.0), every.n_tokens))


def triple_scores(P: tuple[Any, Any, Any], labels: Sequence[Any], n_units: int | None) -> SparseScores:
    """The scores in (rows, tags, scores): unit number, tag and score of each entry; 0 for all others.

    labels (Sequence): Of the columns; tags are labels, or columns. n_units (int | None): None: up to the last row.
    RAISES C001: no unit numbers, no probabilities, or a tag twice. C002: lengths differ. C294: an unknown tag.
    """
    rows, tags, scores = (np.asarray(part) for part in P)
    for name, array in (("row", rows), ("tag", tags)):
        if array.shape != scores.shape or array.ndim != 1:
            raise calib_error("C002", what="P", first=name, second="score", n_first=array.size, n_second=scores.size)
    scores = scores.astype(np.float64)
    check_probabilities(scores)
    n = int(rows.max(initial=-1)) + 1 if n_units is None else n_units
    if rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n):
        wanted = "numbers of units" if rows.dtype.kind not in "iu" else f"numbers of units from 0 to {n - 1}"
        raise calib_error("C001", name="rows", wanted=wanted, given=f"{rows.min()} to {rows.max()}")
    columns = columns_of(tags, labels)
    unknown = np.flatnonzero(columns < 0)
    if len(unknown):
        raise calib_error("C294", given=repr(tags[unknown[0]].item()), known=", ".join(map(str, labels)))
    order = np.lexsort((columns, rows))
    rows, columns = rows[order].astype(np.intp), columns[order]
    twice = np.flatnonzero((np.diff(rows) == 0) & (np.diff(columns) == 0))
    if len(twice):
        what = f"{labels[columns[twice[0]]]!r} twice for unit {rows[twice[0]]}"
        raise calib_error("C001", name="P", wanted="one score for each unit and tag", given=what)
    return SparseScores(Marginals(rows, columns, np.clip(scores[order], 0.0, 1.0), n))


def lookup_of(labels: Sequence[Any]) -> dict[Any, int]:
    """Label -> column; also column -> column if no label is a number."""
    by_label = {label: column for column, label in enumerate(labels)}
    numbers = any(isinstance(label, (int, float)) for label in labels)
    return by_label if numbers else {**{column: column for column in range(len(labels))}, **by_label}


def columns_of(values: NDArray[Any], labels: Sequence[Any]) -> Ints:
    """The column of each value, which is a label or a column; -1 for neither."""
    lookup = lookup_of(labels)
    return np.array([lookup.get(value, -1) for value in values.tolist()], dtype=np.intp)


def is_missing(value: Any) -> bool:
    """Whether a gold label stands for none: None, NaN (or that of pandas), an empty text, or a negative number."""
    if isinstance(value, (int, float)):
        return not value >= 0  # NaN is not
    return value is None or type(value).__name__ == "NAType" or value == "" or value != value


def classes_of(y: NDArray[Any], n_tags: int) -> list[Any]:
    """The label of each column without names: the sorted labels of y, if as many, else numbers. RAISES C295: neither works."""
    values = set(y.tolist())
    met = {value for value in values if not is_missing(value)}
    if met == {1} and -1 in values and n_tags == 2:
        return [-1, 1]
    if len(met) == n_tags and len({type(value) for value in met}) == 1:
        return sorted(met)
    if all(isinstance(value, (int, float)) and 0 <= value < n_tags for value in met):
        return list(range(n_tags))
    raise calib_error("C295", n_labels=len(met), n_tags=n_tags)


def classes_of_tags(tags: NDArray[Any]) -> list[Any]:
    """The labels of tags without names: the sorted tags, or for columns the numbers up to the greatest."""
    if tags.dtype.kind in "iu":
        return list(range(int(tags.max(initial=-1)) + 1))
    return sorted(set(tags.tolist()))


@dataclass(frozen=True, eq=False)
class Gold:
    """Column of each unit's gold label (-1: no column has it, -2: no gold), frequencies of labels, and of unknown ones."""

    columns: Ints
    counts: Counter[str]
    unknown: Counter[str]

    def unknown_words(self) -> dict[str, str]:
        """The words for a sentence about unknown gold."""
        n = self.unknown.total()
        names = [label for label, _ in self.unknown.most_common()]
        return {"n": f"{n:,}", "share": f"{100 * n / self.counts.total():.1f}", "unknown": shorten_list(names)}


def read_gold(y: NDArray[Any], labels: Sequence[Any]) -> Gold:
    """The gold labels as columns. RAISES C071: no unit has gold. C296: no gold label is one of the columns'."""
    values = y.tolist()
    lookup = lookup_of(labels)
    columns = np.array([lookup[v] if v in lookup else -2 if is_missing(v) else -1 for v in values], dtype=np.intp)
    known = np.bincount(columns[columns >= 0], minlength=len(labels))
    counts = Counter({str(label): n for label, n in zip(labels, known.tolist(), strict=True) if n})
    unknown = Counter(str(values[place]) for place in np.flatnonzero(columns == -1).tolist())
    if not counts and not unknown:
        raise calib_error("C071", what="TagCalibrator")
    if not counts:
        raise calib_error("C296", gold=shorten_list(list(unknown)), known=shorten_list([str(label) for label in labels]))
    return Gold(columns, counts + unknown, unknown)


def likeliest(marginals: Marginals, scores: NDArray[Any]) -> Ints:
    """The column of each unit's highest score (the first of equals); -1 without entries. scores: One per entry."""
    found = np.full(marginals.n_tokens, -1, dtype=np.intp)
    best = find_top(marginals.rows, scores)
    found[marginals.rows[best]] = marginals.tags[best]
    return found


def rescaled(dense: Floats, scores: Scores) -> Floats:
    """Rows divided by their sums. dense (Floats): New scores; a row of zeros gets its old ones, or equal shares."""
    silent = dense.sum(axis=1) == 0
    if silent.any():
        every = scores.marginals_above(0.0)
        own = silent[every.rows]
        dense[every.rows[own], every.tags[own]] = every.scores[own]
        dense[dense.sum(axis=1) == 0] = 1.0
    return dense / dense.sum(axis=1, keepdims=True)


def document_numbers(groups: Any, n_units: int) -> Ints:
    """The document of each unit as a number, in order of occurrence; None: each unit its own. RAISES C002: wrong length."""
    if groups is None:
        return np.arange(n_units)
    given = np.asarray(groups)
    if given.shape != (n_units,):
        raise calib_error("C002", what="TagCalibrator", first="unit", second="group", n_first=n_units, n_second=given.size)
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in given.tolist()], dtype=np.intp)


def token_data(scores: Scores, gold: Ints, documents: Ints, n_tags: int, threshold: float, lowest: float) -> FitData:
    """The fit data, units of a document side by side. gold, documents (Ints): Per unit. lowest (float): Least score kept."""
    every = scores.marginals_above(lowest)
    if (np.diff(documents) < 0).any():
        order = np.argsort(documents, kind="stable")
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        rows = place[every.rows]
        by_row = np.argsort(rows, kind="stable")
        every = Marginals(rows[by_row], every.tags[by_row], every.scores[by_row], every.n_tokens)
        gold, documents = gold[order], documents[order]
    pairs = pair_up(every, gold)
    return FitData(pairs, gold, documents[pairs.rows], n_tags, threshold)


Part = TypeVar("Part", Recalibrator, Scaling)

AUTO = "auto"


@dataclass(frozen=True, eq=False, kw_only=True)
class ArraySteps:
    """The steps that an estimator's parameters ask for, like `StepSettings`, and sets."""

    threshold: float
    grouping: Grouping
    scaling: Scaling | None
    recalibrator: Recalibrator
    pooling: TagOffsets | None
    selection: Selector | None
    sets: ConformalSets | None


def steps_of(*, method: Any, n_groups: int, scaling: Any, tag_offsets: Any, threshold: float, sets: Any) -> ArraySteps:
    """Parameters of `TagCalibrator` as steps. RAISES C001: out of range. C293: scaling or offsets with "auto"."""
    grouping = partial(tag_frequency_groups, n_groups=check_count("n_groups", n_groups))
    pooling = tag_offsets if isinstance(tag_offsets, TagOffsets) else TagOffsets() if tag_offsets else None
    before = None if scaling is None else _named("scaling", scaling, scalings())
    selection = None
    if isinstance(method, str) and method == AUTO:
        for name, given in (("scaling", before), ("tag_offsets", pooling)):
            if given is not None:
                raise calib_error("C293", setting=name)
        selection = Selector({IsotonicRegression.short: IsotonicRegression()})
        method = IsotonicRegression()
    return ArraySteps(
        threshold=check_threshold(threshold),
        grouping=grouping,
        scaling=before,
        recalibrator=_named("method", method, recalibrators(), (AUTO,)),
        pooling=pooling,
        selection=selection,
        sets=sets if sets is None or isinstance(sets, ConformalSets) else ConformalSets(sets, nonempty=True),
    )


def _named(setting: str, given: Any, known: Mapping[str, Part], others: tuple[str, ...] = ()) -> Part:
    """A part by its short or registered name; an instance not fitted. RAISES C001: none of this name."""
    found = {**{one.registered: one for one in known.values()}, **known}
    if isinstance(given, str) and given in found:
        return found[given]
    if not isinstance(given, (Recalibrator, Scaling)) or not isinstance(given, Recalibrator if others else Scaling):
        kind = "a Recalibrator" if others else "a Scaling"
        raise calib_error("C001", name=setting, wanted=f"one of {', '.join((*others, *known))}, or {kind}", given=repr(given))
    return given.clone()  # type: ignore[return-value]
