"""The monitor of a running pipeline: counts what `calib` writes, window by window, and keeps no text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timezone
from hashlib import blake2b
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..doc.carried import CarriedReader
from ..errors import calib_error
from ..expect.alarms import Judge
from ..expect.periods import named, period_of
from ..expect.windows import (
    MARK,
    MONITOR,
    VERSION,
    Batch,
    Counts,
    Key,
    Layout,
    Window,
    check_window,
    line_of,
    read_line,
    with_gaps,
    words_of,
)
from ..schema import Misfit
from .component import Calibrator, pipes_named

# Docs that are counted in one go.
_BUFFER = 128


class Monitor:
    """Watches the texts that a calibrated pipeline reads: what accuracy to expect in each window of them, and an alarm where they are no more
    like those that the pipe was fitted on. It keeps counts, no text and no word. Several threads may use it.

    pipeline (Language | Calibrator): The calibrated pipeline, or its pipe. window (int | str): Documents of a window, or the period that is
        one: "day", "week", "month", "year" or "decade". rate (float): One false alarm in so many windows at most, while texts stay like those
        of the fit. part (str): Name of the stream, where monitors of several are merged: windows of one name and number (or period) are added
        up. attr (str | None): Prefix of the pipe's attributes, where the pipeline has several. confidence (float): Of the intervals.
    RAISES C027, C068: the pipeline has no fitted pipe, or none of this prefix. C236: the pipe keeps no record of its fit. C001: a setting
        out of range.
    """

    def __init__(
        self,
        pipeline: Language | Calibrator,
        window: Window = 200,
        rate: float = 1000,
        part: str = "",
        attr: str | None = None,
        confidence: float = 0.95,
    ):
        pipe = pipeline if isinstance(pipeline, Calibrator) else pipes_named(pipeline, attr)[0]
        check_window(window)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 1 <= rate < np.inf:
            raise calib_error("C001", name="rate", wanted="a number of windows, 1 or more", given=rate)
        if not 0 < confidence < 1:
            raise calib_error("C001", name="confidence", wanted="a number between 0 and 1", given=confidence)
        kept, labels = pipe.learned.record, pipe.lookup.labels()
        if kept is None or pipe.groups is None:
            raise calib_error("C236", name=pipe.name)
        self.window, self.part = window, part
        self.judge = Judge(
            kept, rate, confidence, pipe.fit_info.span_event in ("", "exact"), bool(pipe.lookup.weights_changed())
        )
        self._fingerprint = fingerprint_of(pipe)
        self._layout = Layout.of(kept.profile, labels, pipe.groups)
        self._reader = CarriedReader(pipe.attr, labels)
        self._windows: dict[Key, Counts] = {}
        self._buffer: list[Any] = []
        self._key = Key(part, 1)
        self._lock = threading.RLock()

    # Counting

    def update(self, doc: Doc, when: date | str | int | None = None) -> None:
        """Count a Doc that the pipeline has read.

        when (date | str | int | None): Its date, where windows are periods: see `expect.periods.period_of`; None is today (UTC).
        RAISES C240: this is no date.
        """
        prepared = self._reader.prepare(doc)
        key = None if isinstance(self.window, int) else Key(self.part, _period(when, self.window))
        with self._lock:
            if key is not None and key != self._key:
                self._count()
                self._key = key
            self._buffer.append(prepared)
            if len(self._buffer) >= self._room():
                self._count()

    def _room(self) -> int:
        """Docs that the buffer takes until they are counted."""
        if isinstance(self.window, str):
            return _BUFFER
        held = self._windows.get(self._key)
        return min(_BUFFER, self.window - (0 if held is None else held.documents))

    def _count(self) -> None:
        """Count what is in the buffer, and go on to the next window where this one is full."""
        if self._buffer:
            read = self._reader.read(self._buffer)
            counts = self._layout.count(Batch(read.documents, len(self._buffer), *read[1:]))
            self._windows[self._key] = self._at(self._key) + counts
            self._buffer = []
        while isinstance(self.window, int) and self._at(self._key).documents >= self.window:
            self._key = Key(self.part, self._key.at + 1)

    def _at(self, key: Key) -> Counts:
        return self._windows.get(key) or self._layout.nothing()

    def _add(self, windows: Mapping[Key, Counts]) -> None:
        with self._lock:
            self._count()
            for key, counts in windows.items():
                self._windows[key] = self._at(key) + counts
            self._count()

    def _counted(self) -> dict[Key, Counts]:
        with self._lock:
            self._count()
            return dict(sorted(self._windows.items(), key=lambda item: item[0]))

    # Reading

    def snapshot(self, closing: bool = False) -> dict[str, Any]:
        """All windows so far.

        closing (bool): Whether the stream has ended: windows that are not full, and the last period, are judged, too.
        RETURNS (dict): "windows": what `lines` gives; "alarms": how many of them give one; "documents", "tokens" of all; "rate"; "pipe":
            a fingerprint.
        """
        lines = self.lines(closing)
        totals = {name: sum(line[name] for line in lines) for name in ("documents", "tokens")}
        alarms = sum(line["alarm"] for line in lines)
        return {"pipe": self._fingerprint, "rate": self.judge.every, **totals, "alarms": alarms, "windows": lines}

    def lines(self, closing: bool = True) -> list[dict[str, Any]]:
        """Each window as `spacy calib watch` writes it: "part", "at" (its number or period), "documents", "tokens", what `Judgement.to_dict`
        says, and "counts" (see `Counts`), by which it can be added to others. Periods without texts between others are there, too.

        closing (bool): See `snapshot`.
        """
        windows, nothing = self._counted(), self._layout.nothing()
        last = {key.part: key for key in windows}
        held = {key: windows.get(key, nothing) for key in with_gaps(windows, self.window)}
        is_open = [
            not closing and (key == last[key.part] if isinstance(self.window, str) else counts.documents < self.window)
            for key, counts in held.items()
        ]
        judged = self.judge.judge(zip(held.values(), is_open, strict=True))
        return [
            {**self._line(key, counts), "documents": counts.documents, "tokens": counts.tokens, **found.to_dict()}
            for (key, counts), found in zip(held.items(), judged, strict=True)
        ]

    def _line(self, key: Key, counts: Counts) -> dict[str, Any]:
        return line_of(self._fingerprint, self.window, key, counts.to_dict())

    # Merging and saving

    def merge(self, other: Monitor) -> Monitor:
        """Add the windows of another monitor: those of the same part and number (or period) are added up. In whatever order monitors are
        merged, the numbers are the same.

        RETURNS (Monitor): This one. RAISES C237, C238: the other one watches another pipe, or has other windows.
        """
        windows = other._counted()
        self._check_same(other._fingerprint, other.window)
        self._add(windows)
        return self

    def add_lines(self, lines: Iterable[Any], where: Callable[[int], str] = "line {}".format) -> Monitor:
        """Add windows that `lines` gave, as `merge` does.

        where (Callable): Number of a line, from 1 -> how a message calls it.
        RETURNS (Monitor): This one. RAISES C237, C238: see `merge`. C239: a line is no window.
        """
        added: dict[Key, Counts] = {}
        for number, data in enumerate(lines, 1):
            try:
                line = read_line(data)
                self._check_same(line.pipe, line.window)
                counts = self._layout.read(line.counts, "counts")
            except Misfit as why:
                raise calib_error("C239", where=where(number), why=why) from None
            added[line.key] = added[line.key] + counts if line.key in added else counts
        self._add(added)
        return self

    def _check_same(self, fingerprint: str, window: Window) -> None:
        if fingerprint != self._fingerprint:
            raise calib_error("C237")
        if window != self.window:
            raise calib_error("C238", given=words_of(window), wanted=words_of(self.window))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which `from_dict` reads: the counts, and how windows are made."""
        settings = {"window": self.window, "part": self.part, "rate": self.judge.every, "confidence": self.judge.confidence}
        windows = [self._line(key, counts) for key, counts in self._counted().items()]
        return {MARK: VERSION, "pipe": self._fingerprint, **settings, "windows": windows}

    @classmethod
    def from_dict(cls, pipeline: Language | Calibrator, data: Any, attr: str | None = None) -> Monitor:
        """The monitor that `to_dict` gave the data of.

        RAISES C237: it watched another pipe. C239: the data is none of a monitor. C027, C068, C236: see the class.
        """
        try:
            held = MONITOR(data, "monitor")
        except Misfit as why:
            raise calib_error("C239", where="the data", why=why) from None
        made = cls(pipeline, held["window"], held["rate"], held["part"], attr, held["confidence"])
        made._check_same(held["pipe"], held["window"])
        return made.add_lines(held["windows"], "window {} of the data".format)

    def take(self) -> dict[str, Any]:
        """What `to_dict` gives; here its windows are forgotten, and those that follow go on behind them. A service that runs for long hands
        its windows over from time to time.
        """
        with self._lock:
            held = self.to_dict()
            if isinstance(self.window, int) and self._key in self._windows:
                self._key = Key(self.part, self._key.at + 1)
            self._windows = {}
        return held


def _period(when: date | str | int | None, every: str) -> str:
    if when is None:
        return named(datetime.now(timezone.utc).date(), every)
    try:
        return period_of(when.isoformat() if isinstance(when, date) else when, every)
    except ValueError as why:
        raise calib_error("C240", given=repr(when), every=every, why=why) from None


def fingerprint_of(pipe: Calibrator) -> str:
    """Digest of all that counts of a pipe depend on: what it was fitted on, its groups, the labels and weights of its component."""
    found, learned = blake2b(digest_size=16), pipe.learned
    assert learned.record is not None
    assert pipe.groups is not None
    profile = learned.record.profile
    for array in (*profile.held.values(), profile.edges, profile.span_edges, pipe.groups.of_tag):
        found.update(repr(array.shape).encode() + np.asarray(array, dtype=np.float64).tobytes())
    found.update("\0".join([learned.weights, *profile.labels, "", *pipe.labels]).encode("utf-8", "surrogatepass"))
    return found.hexdigest()
