"""The one way in which pipes read what they saved: see `calibration.saved`; parts are found in the registries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from ..calibration.registered import registered_maker
from ..calibration.saved import FORMAT_VERSION, NotInstalled, OtherVersion, Unreadable, make_part, pack, unpack
from ..errors import CalibError, brief, calib_error
from ..schema import InvalidState

_Result = TypeVar("_Result")


class StateFormat(NamedTuple):
    """A kind of saved state.

    format (str): What it is known by, see `pack`. unreadable, other (str): Codes of the errors for a state that cannot be read, or
    is of another version. error (Callable): Builds errors by these codes; a plug-in has its own.
    """

    format: str
    unreadable: str
    other_version: str
    error: Callable[..., CalibError] = calib_error


FITTED = StateFormat("spacy-calib", "C010", "C011")


def dump(state: dict[str, Any], state_format: StateFormat = FITTED) -> bytes:
    """Plain data and numpy arrays as bytes."""
    return pack(state, state_format.format)


def read(data: bytes, make: Callable[[Any], _Result], *, name: str, path: str, state_format: StateFormat = FITTED) -> _Result:
    """What a pipe learned, from the bytes of `dump`. make: Checks the state and builds it. name, path: See `refused_whole`."""
    with refuse_unreadable(name, path, state_format):
        return make(unpack(data, state_format.format))


def load(data: bytes, *, name: str, path: str) -> Any:
    """The state that `dump` wrote, as it is. name, path: As for `refused_whole`. RAISES C010, C011: As there."""
    return read(data, lambda state: state, name=name, path=path)


@contextmanager
def refuse_unreadable(name: str, path: str, state_format: StateFormat = FITTED) -> Iterator[None]:
    """Say of any fault in here that the saved state cannot be read.

    name (str): The pipe, for the message. path (str): Where the state comes from, likewise.
    RAISES C010, C335 (`kept.unreadable`): not whole, changed, or not of the form declared. C011, C336 (`kept.other`): of
        another version. C012: a part is not installed.
    """
    try:
        yield
        return
    except OtherVersion as error:
        raise state_format.error(state_format.other_version, name=name, given=error.given, wanted=FORMAT_VERSION) from None
    except CalibError as error:
        if error.code in ("C012", "C500"):
            raise
        why = error.message
    except (Unreadable, InvalidState) as error:
        why = str(error)
    except Exception as error:  # whatever the class of a part from elsewhere, spaCy, thinc or json say of what is not whole
        why = f"{type(error).__name__}: {brief(error, 160)}"
    raise state_format.error(state_format.unreadable, name=name, path=path, why=why)


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a part from its `state()`, see `make_part`. RAISES C012: it is not registered. Misfit: it does not fit."""
    try:
        return make_part(state, registered_maker)
    except NotInstalled as error:
        raise calib_error("C012", name=name, given=error.given) from None
