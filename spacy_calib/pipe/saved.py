"""Reads and writes the saved state of pipes; registered parts are looked up in the registries."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from ..calibration.saved import FORMAT_VERSION, MissingPart, OtherVersion, UnreadableState, make_part, pack, unpack
from ..errors import CalibError, brief, calib_error
from ..registry import registered_maker
from ..schema import InvalidState

_Result = TypeVar("_Result")


class StateFormat(NamedTuple):
    """A kind of saved state: its name in files, and the codes of the errors that `error` makes (unreadable, other version)."""

    format: str
    unreadable: str
    other_version: str
    error: Callable[..., CalibError] = calib_error


FITTED = StateFormat("spacy-calib", "C010", "C011")


def dump(state: dict[str, Any], state_format: StateFormat = FITTED) -> bytes:
    """Return plain data and numpy arrays as bytes, for `read`."""
    return pack(state, state_format.format)


def read(data: bytes, make: Callable[[Any], _Result], *, name: str, path: str, state_format: StateFormat = FITTED) -> _Result:
    """Read a state from the bytes of `dump`, and build an object from it.

    make (Callable): Checks the state and builds the object. name, path (str): Pipe and origin of the bytes, for messages.
    RAISES As `refuse_unreadable`.
    """
    with refuse_unreadable(name, path, state_format):
        return make(unpack(data, state_format.format))


def load(data: bytes, *, name: str, path: str) -> Any:
    """Return the state that `dump` wrote. RAISES As `refuse_unreadable`."""
    return read(data, lambda state: state, name=name, path=path)


@contextmanager
def refuse_unreadable(name: str, path: str, state_format: StateFormat = FITTED) -> Iterator[None]:
    """Report any exception in this context as one error about a state: the pipe's name, and the origin of the state (path).

    RAISES C010, C335 (`unreadable`): not the declared form. C011, C336 (`other_version`). C012: a part is not installed.
    """
    is_collecting = gc.isenabled()
    try:
        yield
        return
    except OtherVersion as error:
        raise state_format.error(state_format.other_version, name=name, given=error.version, wanted=FORMAT_VERSION) from None
    except CalibError as error:
        if error.code in ("C012", "C500"):
            raise
        why = error.message
    except (UnreadableState, InvalidState) as error:
        why = str(error)
    except Exception as error:  # parts from other packages, spaCy, thinc or json may raise anything
        why = f"{type(error).__name__}: {brief(error, 160)}"
        if is_collecting:
            gc.enable()  # srsly's msgpack_loads, by which spaCy loads, turns it off, and leaves it off where it fails
    raise state_format.error(state_format.unreadable, name=name, path=path, why=why)


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a registered part from its state. RAISES C012: it is not registered. InvalidState: the state has another form."""
    try:
        return make_part(state, registered_maker)
    except MissingPart as error:
        raise calib_error("C012", name=name, given=error.name) from None
