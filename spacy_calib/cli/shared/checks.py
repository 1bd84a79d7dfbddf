"""Whether the values of options are in range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import calib_error
from ...pairs.bins import MOST_COUNTED

if TYPE_CHECKING:
    pass


FORMATS = ("table", "json")
# numpy's seeds have 32 bits.
_MOST_SEED = 2**32 - 1


_MOST_PROCESSES = 1024


_MOST_GPU = 1023


_DPI = (10, 2400)


_OTHERS = (1, MOST_COUNTED)


_RANGES = {
    "seed": (0, _MOST_SEED),
    "n_process": (1, _MOST_PROCESSES),
    "gpu_id": (-1, _MOST_GPU),
    "min_words": (0, MOST_COUNTED),
    "dpi": _DPI,
}


def check_numbers(**given: int | None) -> None:
    """given: Options by the names that they have in Python; None was not given.

    RAISES C056: one of them is out of range.
    """
    for name, value in given.items():
        least, most = _RANGES.get(name, _OTHERS)
        wanted = f"at least {least}" if value is None or value < least else f"at most {most:,}"
        check_option(f"--{name.replace('_', '-')}", value is None or least <= value <= most, wanted, value)


def check_option(option: str, ok: bool, wanted: str, given: Any) -> None:
    """RAISES C056: the option's value is out of range."""
    if not ok:
        raise calib_error("C056", option=option, wanted=wanted, given=given)


def check_confidence(confidence: float) -> None:
    """RAISES C056: no interval has it; 1 less a tiny number is 1 to a computer, and nothing has an interval of no width."""
    least, most = 0.001, 0.99999
    check_option("--confidence", least <= confidence <= most, f"between {least} and {most}", confidence)


def check_format(given: str, formats: Sequence[str] = FORMATS) -> None:
    """RAISES C056: not one of them."""
    check_option("--format", given in formats, f"one of {', '.join(formats)}", repr(given))
