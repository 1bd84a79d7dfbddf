"""The range of every option that is a whole number."""

from __future__ import annotations

from ..pairs.bins import MOST_COUNTED
from ._common import check_option

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
