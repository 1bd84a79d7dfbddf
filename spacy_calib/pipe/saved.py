"""The saved form of a fitted pipe: see `calibration.saved`; its parts are found in the registries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..calibration.saved import LaterVersion, NotInstalled, Unreadable, make_part, pack, unpack
from ..errors import CalibError, calib_error
from ..registry import registry
from ..schema import Misfit
from .state import PipeState

FORMAT = "spacy-calib"
FORMAT_VERSION = 1


def dump(state: dict[str, Any]) -> bytes:
    """Plain data and numpy arrays as bytes."""
    return pack(state, FORMAT, FORMAT_VERSION)


def read(data: bytes, *, name: str, path: str, normalize: bool | str) -> PipeState:
    """What a pipe learned, from the bytes that `dump` wrote of it; all of it is checked before anything is made.

    name, path: As for `load`. normalize (bool | str): The setting of the pipe.
    RAISES C010, C011: see `load`; or the state is not of the form declared (`state.STATE`). C012: a part is not installed.
    """
    state = load(data, name=name, path=path)
    try:
        return PipeState.from_dict(state, normalize, lambda one: load_part(one, name=name))
    except CalibError as error:
        if error.code == "C012":
            raise
        why = error.message
    except Misfit as error:
        why = str(error)
    except Exception as error:  # whatever the class of a part from elsewhere says of what it learned
        why = f"a part cannot be made of what it learned: {error!r}"
    raise calib_error("C010", name=name, path=path, why=why)


def load(data: bytes, *, name: str, path: str) -> Any:
    """The state that `dump` wrote.

    name (str): The pipe, for the message. path (str): Where the bytes come from, likewise.
    RAISES C010: not such bytes, truncated or changed. C011: of a later format.
    """
    try:
        return unpack(data, FORMAT, FORMAT_VERSION)
    except Unreadable as error:
        raise calib_error("C010", name=name, path=path, why=error) from None
    except LaterVersion as error:
        raise calib_error("C011", name=name, given=error.given, wanted=FORMAT_VERSION) from None


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a part from its `state()` through the registry, see `make_part`.

    RAISES C012: nothing of that name is registered. Misfit: what is registered does not take these settings, or what it learned.
    """
    try:
        return make_part(state, registered_maker)
    except NotInstalled as error:
        raise calib_error("C012", name=name, given=error.given) from None


def registered_maker(kind: str, name: str) -> Callable[..., Any] | None:
    """The registered function of this name; None where there is none. kind (str): As in a config: "@calib_scalings"."""
    held = getattr(registry, kind.removeprefix("@"))
    if name not in held:
        return None
    return _with_features(held.get(name)) if kind == "@calib_contexts" else held.get(name)


def _with_features(make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a context, but not without the features that its settings name."""

    def checked(**settings: Any) -> Any:
        for feature in settings.get("features", ()):
            if feature not in registry.calib_features:
                raise NotInstalled(feature)
        return make(**settings)

    return checked
