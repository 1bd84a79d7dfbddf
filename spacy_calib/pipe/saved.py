"""The one way in which pipes read what they saved: see `calibration.saved`; parts are found in the registries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from ..calibration.registered import registered_maker
from ..calibration.saved import FORMAT_VERSION, MissingPart, OtherVersion, UnreadableState, make_part, pack, unpack
from ..errors import CalibError, brief, calib_error
from ..schema import Misfit

_Made = TypeVar("_Made")


class Kept(NamedTuple):
    """A kind of saved state.

    format (str): What it is known by, see `pack`. unreadable, other (str): Codes of the errors for a state that cannot be read, or
    is of another version. error (Callable): Builds errors by these codes; a plug-in has its own.
    """

    format: str
    unreadable: str
    other: str
    error: Callable[..., CalibError] = calib_error


FITTED = Kept("spacy-calib", "C010", "C011")


def dump(state: dict[str, Any], kept: Kept = FITTED) -> bytes:
    """Plain data and numpy arrays as bytes."""
    return pack(state, kept.format)


def read(data: bytes, make: Callable[[Any], _Made], *, name: str, path: str, kept: Kept = FITTED) -> _Made:
    """What a pipe learned, from the bytes of `dump`. make: Checks the state and builds it. name, path: See `refused_whole`."""
    with refused_whole(name, path, kept):
        return make(unpack(data, kept.format))


def load(data: bytes, *, name: str, path: str) -> Any:
    """The state that `dump` wrote, as it is. name, path: As for `refused_whole`. RAISES C010, C011: As there."""
    return read(data, lambda state: state, name=name, path=path)


@contextmanager
def refused_whole(name: str, path: str, kept: Kept = FITTED) -> Iterator[None]:
    """Say of any fault in here that the saved state cannot be read.

    name (str): The pipe, for the message. path (str): Where the state comes from, likewise.
    RAISES C010, C335 (`kept.unreadable`): not whole, changed, or not of the form declared. C011, C336 (`kept.other`): of
        another version. C012: a part is not installed.
    """
    try:
        yield
        return
    except OtherVersion as error:
        raise kept.error(kept.other, name=name, given=error.version, wanted=FORMAT_VERSION) from None
    except CalibError as error:
        if error.code in ("C012", "C500"):
            raise
        why = error.message
    except (UnreadableState, Misfit) as error:
        why = str(error)
    except Exception as error:  # whatever the class of a part from elsewhere, spaCy, thinc or json say of what is not whole
        why = f"{type(error).__name__}: {brief(error, 160)}"
    raise kept.error(kept.unreadable, name=name, path=path, why=why)


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a part from its `state()`, see `make_part`. RAISES C012: it is not registered. Misfit: it does not fit."""
    try:
        return make_part(state, registered_maker)
    except MissingPart as error:
        raise calib_error("C012", name=name, given=error.name) from None
