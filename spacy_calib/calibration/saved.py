"""What was learned as bytes: msgpack with a format version and a checksum, never pickle; and parts made from it."""

from __future__ import annotations

import copy
import zlib
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..errors import brief
from ..schema import Form, InvalidState, as_saved, floats, record, registered_part

# Of all that is saved. A change of any form raises it, and what another version saved is refused.
FORMAT_VERSION = 4
# Registries whose things are saved by name, settings and learned arrays.
KINDS = ("@calib_recalibrators", "@calib_poolings", "@calib_scalings", "@calib_sets", "@calib_contexts", "@calib_forecasters")
_PART_FORMS = {kind: registered_part(kind) for kind in KINDS}


_Made = TypeVar("_Made", bound="Part")


class Part(ABC):
    """Something that a registry makes of settings, and that learns; what it learned ends in an underscore.

    kind (str): Its registry, of KINDS. registered (str): Its name there, by which a saved one finds its class.
    learned_form (Form | None): The form of what was learned, by attribute; None for one array of finite numbers each.
    """

    kind: ClassVar[str]
    registered: ClassVar[str]
    _learned: ClassVar[tuple[str, ...]] = ()
    learned_form: ClassVar[Form | None] = None

    @property
    def fitted(self) -> bool:
        return all(hasattr(self, name) for name in self._learned)

    def clone(self: _Made) -> _Made:
        """A part with the same settings, not fitted."""
        fresh = copy.copy(self)
        for name in self._learned:
            fresh.__dict__.pop(name, None)
        return fresh

    def settings(self) -> dict[str, Any]:
        """The constructor arguments, as plain data."""
        return {}

    def state(self) -> dict[str, Any]:
        """Name, settings and what was arrays (None where it is not fitted), for `make_part`."""
        arrays = {name: as_saved(getattr(self, name, None)) for name in self._learned}
        return {self.kind: self.registered, "settings": self.settings(), "learned": arrays}

    def load_learned(self: _Made, arrays: dict[str, Any]) -> _Made:
        """Take over what was learned, if anything, from a state. RAISES Misfit: it is not of the form declared."""
        if any(value is not None for value in arrays.values()):
            form = type(self).learned_form or record({name: floats() for name in self._learned})
            for name, value in form(arrays, "learned").items():
                setattr(self, name, value)
        return self


class Unreadable(ValueError):
    """The bytes are damaged, or of something else; `str()` says why."""


class OtherVersion(ValueError):
    """The bytes are of another format version. given (int): Which."""

    def __init__(self, given: int):
        super().__init__(f"format version {given}")
        self.given = given


class NotInstalled(ValueError):
    """A saved part has a name that nothing here answers to. given (str): The name."""

    def __init__(self, given: str):
        super().__init__(given)
        self.given = given


def pack(state: dict[str, Any], format: str, version: int = FORMAT_VERSION) -> bytes:
    """Plain data and numpy arrays as bytes. format (str), version (int): What `unpack` is to know them by."""
    import srsly

    body = srsly.msgpack_dumps(state)
    return srsly.msgpack_dumps({"format": format, "version": version, "crc": zlib.crc32(body), "body": body})


def unpack(data: bytes, format: str) -> Any:
    """The state that `pack` wrote. RAISES Unreadable: not such bytes, or damaged. OtherVersion: of another version."""
    try:
        outer = _read(data)
        if outer["format"] != format:
            raise ValueError(f"format {outer['format']!r}")
        version, body, crc = outer["version"], bytes(memoryview(outer["body"])), outer["crc"]
        if type(version) is not int:
            raise ValueError(f"format version {version!r}")
    except Exception as error:
        raise Unreadable(f"not a whole file of ours: {brief(error, 160)}") from None
    if version != FORMAT_VERSION:
        raise OtherVersion(version)
    if zlib.crc32(body) != crc:
        raise Unreadable("the checksum does not match")
    try:
        return _read(body)
    except Exception as error:
        raise Unreadable(f"not a whole file of ours: {brief(error, 160)}") from None


def _read(data: bytes) -> Any:
    import srsly

    # Not `srsly.msgpack_loads`: it turns the garbage collector off, and leaves it off where it fails.
    return srsly.msgpack.loads(data, raw=False, use_list=True)


def make_part(state: dict[str, Any], find: Callable[[str, str], Callable[..., Any] | None]) -> Any:
    """Rebuild a part from its `state()`; without what it learned, not fitted.

    find (Callable): (kind, name) -> what makes it from its settings; None where nothing has this name.
    RAISES NotInstalled: a part, or one that it holds, is not found. Misfit: it does not take the settings or the rest.
    """
    kind = next((key for key in KINDS if key in state), None)
    if kind is None:
        raise InvalidState("a part", "there by its registered name")
    form = _PART_FORMS[kind](state, kind)
    make = find(kind, form[kind])
    if make is None:
        raise NotInstalled(form[kind])
    # A part may hold another of its kind, as a prototype.
    settings = {
        key: make_part(value, find) if isinstance(value, dict) and kind in value else value
        for key, value in form["settings"].items()
    }
    try:
        part = make(**settings)
    except NotInstalled:
        raise
    except Exception as error:  # whatever a registered function says of settings that it does not know
        raise InvalidState("settings", f"what {form[kind]} takes ({brief(error, 160)})") from None
    return part.load_learned(form["learned"]) if form["learned"] else part
