"""What is counted of the texts of a window: whole numbers that add up the same in any order.

No text, word or digest is kept: tags are those of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from ..errors import calib_error
from ..schema import Form, Misfit, anything, listed, number, record, text, whole
from ..types import OUTSIDE, Adds, Floats, Groups, Ints
from .drift import DriftProfile
from .estimates import EntitySums, Sums
from .periods import EVERY, first_day, periods_between

# Scores are added up as whole parts of this size, as sums of floats depend on their order.
ONE = 1 << 20
# Inner edges of the bins of calibrated scores.
CALIBRATED_EDGES = np.linspace(0, 1, 21)[1:-1]


class Batch(NamedTuple):
    """The n tokens of D Docs that carry a label with a score, and their m entities.

    documents (Ints): Of each token, shape (n,). n_docs (int): D, those without tokens too.
    columns (Ints): Place of each token's label among the labels of the source, -1 for another one.
    raw, calibrated (Floats): Its scores. span_raw, span_calibrated (Floats): Those of the entities, shape (m,).
    """

    documents: Ints
    n_docs: int
    columns: Ints
    raw: Floats
    calibrated: Floats
    span_raw: Floats
    span_calibrated: Floats


@dataclass(frozen=True, eq=False)
class Counts(Adds):
    """The counts of one window, or of several.

    documents (int): Docs looked at. scored (int): Those with scored tokens. stretches (int): Pieces as long as a usual
        fit document in these, at least one each. tokens, squares (int): Scored tokens, and the sum of their squares by
        document. expected, independent (int): Sums over tokens of the calibrated score p, and of p (1 - p), in parts of
        ONE. outside (int): Of 1 - p over tokens outside of entities.
    raw, calibrated (Ints): Tokens by group of tags and bin of the score, (groups + 1, bins); last row: tags without a
        group. labels (Ints): Tokens by label of the drift profile, and all others, (labels + 1,).
    spans, spans_expected, spans_independent (int): Entities, and sums of scores as above. span_raw, span_calibrated
        (Ints): Entities by bin.
    """

    documents: int
    scored: int
    stretches: int
    tokens: int
    squares: int
    expected: int
    independent: int
    outside: int
    raw: Ints
    calibrated: Ints
    labels: Ints
    spans: int
    spans_expected: int
    spans_independent: int
    span_raw: Ints
    span_calibrated: Ints

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    @property
    def sums(self) -> Sums:
        """What the scores of the tokens say of the right ones: a single row."""
        units, squares = np.array([float(self.tokens)]), np.array([float(self.squares)])
        return Sums(np.array([[self.expected / ONE]]), np.array([[self.independent / ONE]]), units, squares)

    @property
    def entity_sums(self) -> EntitySums:
        """What the scores say of the entities: a single row."""
        numbers = (
            self.spans,
            self.spans_expected / ONE,
            self.spans_independent / ONE,
            self.outside / ONE,
            self.tokens,
            self.squares,
        )
        return EntitySums(*(np.array([float(number)]) for number in numbers))

    @property
    def tables(self) -> dict[str, Floats]:
        """The totals that are compared with those of the fit documents, see `DriftProfile.held`."""
        return {
            "scores": self.raw.sum(axis=0, keepdims=True).astype(np.float64),
            "label_counts": self.labels[None].astype(np.float64),
            "calibrated": np.array([self.expected / ONE]),
            "spans": self.span_raw[None].astype(np.float64),
        }


@dataclass(frozen=True, eq=False)
class Layout:
    """How the tokens of one pipe are counted.

    profile (DriftProfile): Of its fit, whose edges and labels are used. n_groups (int): Groups of tags. For each label
    of the source, others last: group_of, label_of (Ints): row in the tables by group, place in the profile's labels;
    is_outside (NDArray[bool]): whether it says "outside of entities".
    """

    profile: DriftProfile
    n_groups: int
    group_of: Ints
    label_of: Ints
    is_outside: Any

    @classmethod
    def of(cls, profile: DriftProfile, labels: Sequence[str], groups: Groups) -> Layout:
        """labels (Sequence[str]): Of the source. groups (Groups): Its tags' groups."""
        place = {label: i for i, label in enumerate(profile.labels)}
        of_tag = groups.of(np.append(np.arange(len(labels)), -1)).astype(np.intp)
        of_tag[-1] = -1
        return cls(
            profile,
            len(groups),
            np.where(of_tag < 0, len(groups), of_tag),
            np.array([*(place.get(label, len(place)) for label in labels), len(place)], dtype=np.intp),
            np.array([*(label == OUTSIDE for label in labels), False]),
        )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays in Counts."""
        rows, bins, span_bins = self.n_groups + 1, len(CALIBRATED_EDGES) + 1, len(self.profile.span_edges)
        return {
            "raw": (rows, len(self.profile.edges) + 1),
            "calibrated": (rows, bins),
            "labels": (len(self.profile.labels) + 1,),
            "span_raw": (span_bins + 1 if span_bins else 0,),
            "span_calibrated": (bins,),
        }

    def nothing(self) -> Counts:
        """The counts of no texts."""
        arrays: dict[str, Any] = {name: np.zeros(shape, dtype=np.int64) for name, shape in self.shapes.items()}
        return Counts(**{field.name: arrays.get(field.name, 0) for field in fields(Counts)})

    def count(self, batch: Batch) -> Counts:
        """The counts of some Docs."""
        units = np.bincount(batch.documents, minlength=batch.n_docs)
        groups, labels = self.group_of[batch.columns], self.label_of[batch.columns]
        p, q = batch.calibrated, batch.span_calibrated
        shapes = self.shapes
        span_bins = shapes["span_raw"][0]
        return Counts(
            documents=batch.n_docs,
            scored=int((units > 0).sum()),
            stretches=int(np.maximum(1, units[units > 0] // self.profile.usual).sum()),
            tokens=len(p),
            squares=int(np.square(units).sum()),
            expected=_whole_sum(p),
            independent=_whole_sum(p * (1 - p)),
            outside=_whole_sum(1 - p[self.is_outside[batch.columns]]),
            raw=_table(groups, _bins(self.profile.edges, batch.raw), shapes["raw"]),
            calibrated=_table(groups, _bins(CALIBRATED_EDGES, p), shapes["calibrated"]),
            labels=np.bincount(labels, minlength=shapes["labels"][0]),
            spans=len(q),
            spans_expected=_whole_sum(q),
            spans_independent=_whole_sum(q * (1 - q)),
            span_raw=np.bincount(_bins(self.profile.span_edges, batch.span_raw), minlength=span_bins)[:span_bins],
            span_calibrated=np.bincount(_bins(CALIBRATED_EDGES, q), minlength=shapes["span_calibrated"][0]),
        )

    @property
    def form(self) -> Form:
        """The form of `Counts.to_dict`, as JSON gives it back."""
        forms: dict[str, Form] = {field.name: whole() for field in fields(Counts)}
        for name, shape in self.shapes.items():
            for size in reversed(shape):
                forms[name] = listed(forms[name], size, size)
        return record(forms)

    def read(self, data: Any, where: str) -> Counts:
        """The counts in data. RAISES Misfit: it is not of the form."""
        held = self.form(data, where)
        arrays = {name: np.array(held[name], dtype=np.int64).reshape(shape) for name, shape in self.shapes.items()}
        return Counts(**{**held, **arrays})


def _bins(edges: Floats, scores: Floats) -> Ints:
    return np.searchsorted(edges, scores, side="right")


def _whole_sum(values: Floats) -> int:
    return int(np.rint(values * ONE).astype(np.int64).sum())


def _table(rows: Ints, columns: Ints, shape: tuple[int, ...]) -> Ints:
    return np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)


# Version of the lines, under the key that marks a line as a window, not a text.
MARK, VERSION = "calib_watch", 1
# Windows of a number of documents, or the name of a period.
Window = int | str
# Periods without texts are listed in streams of at most so many periods.
_MOST_PERIODS = 10_000


class Key(NamedTuple):
    """Names a window. part (str): Its stream. at (int | str): Its number there, from 1, or its period."""

    part: str
    at: Any


def check_window(window: Any) -> None:
    """RAISES C001: it is neither a number of documents nor a period."""
    is_size = isinstance(window, int) and not isinstance(window, bool) and window >= 1
    if not is_size and window not in EVERY:
        raise calib_error("C001", name="window", wanted=f"a number of documents, or {', '.join(EVERY)}", given=repr(window))


def words_of(window: Window) -> str:
    """What a window is: "200 documents", "a week"."""
    return f"{window:,} documents" if isinstance(window, int) else f"a {window}"


def with_gaps(keys: Iterable[Key], window: Window) -> list[Key]:
    """The keys in order, with the periods of a part between its first and last that had no texts, unless too many."""
    held = sorted(keys)
    if isinstance(window, int):
        return held
    parts: dict[str, list[str]] = {}
    for key in held:
        parts.setdefault(key.part, []).append(key.at)
    found = []
    for part, periods in parts.items():
        between = list(periods_between(periods[0], periods[-1], window, _MOST_PERIODS))
        found += [Key(part, period) for period in (between if between[-1] == periods[-1] else periods)]
    return found


def _window(value: Any, where: str) -> Window:
    if value in EVERY:
        return str(value)
    return whole(1)(value, where)


def _one_of(window: Window) -> Form:
    """The form of a window's name."""

    def form(value: Any, where: str) -> Window:
        if isinstance(window, int):
            return whole(1)(value, where)
        try:
            first_day(text(value, where), window)
        except ValueError:
            raise Misfit(where, f"a {window}") from None
        return str(value)

    return form


_VERSION = {MARK: whole(VERSION, VERSION), "pipe": text, "window": _window}
_LINE = record({**_VERSION, "part": text, "at": anything, "counts": anything})
# The form of `Monitor.to_dict`.
MONITOR = record({**_VERSION, "part": text, "rate": number(1.0), "confidence": number(0.0, 1.0), "windows": listed(anything)})


class Line(NamedTuple):
    """A window as read. pipe (str): Fingerprint of its pipe. counts (Any): As `Layout.read` wants them."""

    pipe: str
    window: Window
    key: Key
    counts: Any


def read_line(data: Any) -> Line:
    """A window from a line of a file. RAISES Misfit: it is no window."""
    held = _LINE(data, "window")
    return Line(held["pipe"], held["window"], Key(held["part"], _one_of(held["window"])(held["at"], "at")), held["counts"])


def line_of(pipe: str, window: Window, key: Key, counts: Any) -> dict[str, Any]:
    """The line that `read_line` reads."""
    return {MARK: VERSION, "pipe": pipe, "window": window, **key._asdict(), "counts": counts}


def differs_in(line: Mapping[str, Any]) -> str:
    """What differs in a window with an alarm, and in how many together; "" without. line: Of `Monitor.lines`."""
    if not line["alarm"]:
        return ""
    names = ", ".join(check["name"] for check in line["checks"] if check["differs"])
    return names if line["together"] is None else f"{names}, in {line['together']:,} windows together"
