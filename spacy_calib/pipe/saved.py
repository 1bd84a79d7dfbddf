"""The saved form of a fitted pipe: msgpack with a format version and a checksum. Never pickle."""

from __future__ import annotations

import contextlib
import gc
import zlib
from collections.abc import Iterator
from typing import Any

import srsly

from ..errors import CalibError, calib_error
from ..registry import registry
from ..schema import Misfit, registered
from .state import PipeState

FORMAT = "spacy-calib"
FORMAT_VERSION = 1

# Registries whose things are saved by name, settings and learned arrays.
_KINDS = ("@calib_recalibrators", "@calib_poolings", "@calib_scalings", "@calib_sets", "@calib_contexts")


def dump(state: dict[str, Any]) -> bytes:
    """Plain data and numpy arrays as bytes."""
    body = srsly.msgpack_dumps(state)
    return srsly.msgpack_dumps({"format": FORMAT, "version": FORMAT_VERSION, "crc": zlib.crc32(body), "body": body})


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
        outer = _unpack(data)
        if outer["format"] != FORMAT:
            raise ValueError(f"format {outer['format']!r}")
        version, body, crc = outer["version"], bytes(memoryview(outer["body"])), outer["crc"]
        if type(version) is not int or version < 1:
            raise ValueError(f"format version {version!r}")
    except Exception as error:
        raise calib_error("C010", name=name, path=path, why=f"not a whole file of ours: {error}") from None
    if version > FORMAT_VERSION:
        raise calib_error("C011", name=name, given=version, wanted=FORMAT_VERSION)
    if zlib.crc32(body) != crc:
        raise calib_error("C010", name=name, path=path, why="the checksum does not match")
    try:
        return _unpack(body)
    except Exception as error:
        raise calib_error("C010", name=name, path=path, why=f"not a whole file of ours: {error}") from None


def _unpack(data: bytes) -> Any:
    with collector_kept():
        return srsly.msgpack_loads(data)


@contextlib.contextmanager
def collector_kept() -> Iterator[None]:
    """Leave the garbage collector as it was: srsly turns it off while it reads, and leaves it off where that fails."""
    enabled = gc.isenabled()
    try:
        yield
    finally:
        (gc.enable if enabled else gc.disable)()


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a recalibrator, a pooling, a scaling, a context or sets from its `state()` through the registry.

    RAISES C012: nothing of that name is registered. Misfit: what is registered does not take these settings, or what it learned.
    """
    kind = next((key for key in _KINDS if key in state), None)
    if kind is None:
        raise Misfit("a part", "there by its registered name")
    form = registered(kind)(state, kind)
    given = form[kind]
    held = getattr(registry, kind.removeprefix("@"))
    if given not in held:
        raise calib_error("C012", name=name, given=given)
    # A part may hold another one of its own kind, as a prototype.
    settings = {
        key: load_part(value, name=name) if isinstance(value, dict) and kind in value else value
        for key, value in form["settings"].items()
    }
    features = settings.get("features", ()) if kind == "@calib_contexts" else ()
    for feature in features:
        if feature not in registry.calib_features:
            raise calib_error("C012", name=name, given=feature)
    try:
        made = held.get(given)(**settings)
    except Exception as error:  # whatever a registered function says of settings that it does not know
        raise Misfit("settings", f"what {given} takes ({error})") from None
    return made.load_learned(form["learned"])
