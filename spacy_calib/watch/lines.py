"""Windows as plain data: what names them, how they are written and read, which have no texts. Knows JSON, never Docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import calib_error
from ..schema import Form, Misfit, anything, listed, number, record, text, whole
from .periods import EVERY, first_day, periods_between

# Version of the lines, under the key that tells them from texts.
MARK, VERSION = "calib_watch", 1
# Windows of a number of documents, or the name of a period.
Window = int | str
# Periods without texts are listed where the stream has so many periods in all.
_MOST_PERIODS = 10_000


class Key(NamedTuple):
    """Names a window. part (str): Of which stream. at (int | str): Its number there, from 1, or its period."""

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
    """The keys in their order; between the periods of a part those that had no texts, too, unless there are very many."""
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
    """A window that was read. pipe (str): Fingerprint of its pipe. counts (Any): As `Layout.read` wants them."""

    pipe: str
    window: Window
    key: Key
    counts: Any


def read_line(data: Any) -> Line:
    """RAISES Misfit: it is no window."""
    held = _LINE(data, "window")
    return Line(held["pipe"], held["window"], Key(held["part"], _one_of(held["window"])(held["at"], "at")), held["counts"])


def line_of(pipe: str, window: Window, key: Key, counts: Any) -> dict[str, Any]:
    """What `read_line` reads."""
    return {MARK: VERSION, "pipe": pipe, "window": window, **key._asdict(), "counts": counts}


def differs_in(line: Mapping[str, Any]) -> str:
    """What differs in a window with an alarm, and in how many windows together; "" without an alarm. line (Mapping): Of `Monitor.lines`."""
    if not line["alarm"]:
        return ""
    names = ", ".join(check["name"] for check in line["checks"] if check["differs"])
    return names if line["together"] is None else f"{names}, in {line['together']:,} windows together"
