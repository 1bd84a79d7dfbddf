"""Reads and writes the saved state of calib pipes; registered parts of it are looked up in the registries."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

from ..calibration.saved import FORMAT_VERSION, MissingPart, OtherVersion, UnreadableState, make_part, pack, unpack
from ..errors import CalibError, brief, calib_error
from ..registry import registered_maker
from ..schema import InvalidState

_Result = TypeVar("_Result")
FITTED = "spacy-calib"  # name of the form of a fitted state in its file


def dump(state: dict[str, Any], form: str = FITTED) -> bytes:
    """Pack a state, which is plain data and numpy arrays, into bytes. form (str): Name of its kind, which `read` checks."""
    return pack(state, form)


def read(data: bytes, make: Callable[[Any], _Result], *, name: str, path: str, form: str = FITTED) -> _Result:
    """Read a state from the bytes of `dump`, and build an object from it.

    make (Callable): Checks the state and builds the object. name, path (str): Pipe and origin of the bytes, for messages.
    form (str): As for `dump`. RAISES C010: another form, damaged bytes. C011: another version. C012, C500: a part is missing.
    """
    is_collecting = gc.isenabled()
    try:
        return make(unpack(data, form))
    except OtherVersion as error:
        raise calib_error("C011", name=name, given=error.version, wanted=FORMAT_VERSION) from None
    except CalibError as error:
        if error.code in ("C012", "C500"):  # a part is not registered, or its import fails
            raise
        why = error.message
    except (UnreadableState, InvalidState) as error:
        why = str(error)
    except Exception as error:  # parts from other packages, spaCy, thinc or json may raise anything
        why = f"{type(error).__name__}: {brief(error, 160)}"
        if is_collecting:
            gc.enable()  # srsly's msgpack_loads, which spaCy calls, disables the garbage collector, and leaves it so on failure
    raise calib_error("C010", name=name, path=path, why=why)


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a part of the pipe `name`, such as a recalibrator. RAISES C012: it is not registered. InvalidState: bad state."""
    try:
        return make_part(state, registered_maker)
    except MissingPart as error:
        raise calib_error("C012", name=name, given=error.name) from None
