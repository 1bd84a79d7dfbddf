"""Checks of option values and of registered names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import calib_error
from ...pairs.bins import MOST_COUNTED

# Least and greatest value of the options that are whole numbers, by the name of the field; the others are counts of at least 1.
RANGES = {
    "seed": (0, 2**32 - 1),  # numpy's seeds have 32 bits
    "n_process": (1, 1024),
    "gpu_id": (-1, 1023),
    "port": (1, 65535),
    "min_words": (0, MOST_COUNTED),
}
COUNT = (1, MOST_COUNTED)


def check_option(option: str, ok: bool, wanted: str, given: Any) -> None:
    """RAISES C056: the option's value is out of range."""
    if not ok:
        raise calib_error("C056", option=option, wanted=wanted, given=given)


def check_raw_cells(raw_cells: bool, as_csv: bool) -> None:
    """RAISES C056: cells of CSV are requested, but something else is written."""
    check_option("--raw-cells", as_csv or not raw_cells, "left out where no CSV is written", "it")


def check_path(option: str, path: Path | str | None) -> None:
    """RAISES C056: the system refuses the path: a name in it is too long, or a folder may not be entered."""
    try:
        Path(path or "").stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:
        check_option(option, False, f"a path that the system takes ({error.strerror})", Path(path or ""))


def check_confidence(confidence: float) -> None:
    """RAISES C056: out of range. The bounds exclude values that floating-point numbers cannot tell from 0 and 1."""
    minimum, maximum = 0.001, 0.99999
    check_option("--confidence", minimum <= confidence <= maximum, f"between {minimum} and {maximum}", confidence)


def check_registered(setting: str, registry: str, given: object) -> None:
    """RAISES C195: the registry has no function of this name."""
    from ...calibration.registered import REGISTRIES

    if given not in REGISTRIES[registry]:
        names = ", ".join(sorted(REGISTRIES[registry].get_all()))
        raise calib_error("C195", setting=setting, registry=registry, given=given, names=names)


# Stands in the help of an option for the short names of all recalibrators.
METHODS = "{methods}"


def with_methods(help: str) -> str:
    """Return the help of an option with the short names of recalibrators, read when the help is shown."""
    from ...calibration.registered import recalibrators

    return help.replace(METHODS, ", ".join(recalibrators())) if METHODS in help else help


def method_name(method: str) -> str:
    """Return the registered name of a recalibrator or short name. RAISES C056: there is none. C185: two with one short name."""
    from ...calibration.registered import REGISTRIES, recalibrators

    by_short_name, registry = recalibrators(), REGISTRIES["calib_recalibrators"]
    if method in by_short_name and method not in registry:
        return str(by_short_name[method].registered)
    names = ", ".join(("auto", *by_short_name))
    check_option("--method", method in registry, f"one of {names} or a registered recalibrator", repr(method))
    return method
