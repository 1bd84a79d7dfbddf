"""Saved state as bytes: msgpack with a format version and a checksum, never pickle; and parts rebuilt from it."""

from __future__ import annotations

import copy
import zlib
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..errors import brief
from ..schema import Form, InvalidState, as_saved, floats, record, registered_part

# The version of all saved state. A change of any form raises it; state of another version is refused.
FORMAT_VERSION = 4
# Registries whose parts are saved by name, settings and learned arrays.
KINDS = ("@calib_recalibrators", "@calib_scalings", "@calib_contexts")
_PART_FORMS = {kind: registered_part(kind) for kind in KINDS}

_AnyPart = TypeVar("_AnyPart", bound="Part")


class Part(ABC):
    """A registered estimator. Constructor arguments are its settings; learned attributes end in an underscore.

    kind (str): Its registry, one of KINDS. registered (str): Its name there, by which a saved part finds its class.
    _learned (tuple[str, ...]): Names of the learned attributes. learned_form (Form | None): Checks their values, a dict by
        name; None if each is an array of finite numbers.
    """

    kind: ClassVar[str]
    registered: ClassVar[str]
    _learned: ClassVar[tuple[str, ...]] = ()
    learned_form: ClassVar[Form | None] = None

    @property
    def fitted(self) -> bool:
        return all(hasattr(self, name) for name in self._learned)

    def clone(self: _AnyPart) -> _AnyPart:
        """Return a part with the same settings, not fitted."""
        fresh = copy.copy(self)
        for name in self._learned:
            fresh.__dict__.pop(name, None)
        return fresh

    def settings(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, Any]:
        """Return registered name, settings and copies of learned attributes (None if not fitted), for `make_part`."""
        values = {name: copy.copy(as_saved(getattr(self, name, None))) for name in self._learned}
        return {self.kind: self.registered, "settings": self.settings(), "learned": values}

    def load_learned(self: _AnyPart, values: dict[str, Any]) -> _AnyPart:
        """Set the learned attributes to these values, unless all are None. RAISES InvalidState: they lack the declared form."""
        if any(value is not None for value in values.values()):
            form = type(self).learned_form or record({name: floats() for name in self._learned})
            for name, value in form(values, "learned").items():
                setattr(self, name, value)
        return self


class UnreadableState(ValueError):
    """Saved bytes are damaged, or not a state of the expected format; `str()` gives the reason."""


class OtherVersion(ValueError):
    """A saved state is of a format version that this package does not read. version (int): That version."""

    def __init__(self, version: int):
        super().__init__(f"format version {version}")
        self.version = version


class MissingPart(ValueError):
    """No installed package registers the name of a saved part. name (str): That name."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


def pack(state: dict[str, Any], format: str, version: int = FORMAT_VERSION) -> bytes:
    """Return plain data and arrays as bytes with a checksum. `unpack` checks `format`, the kind of state, and `version`."""
    import srsly

    body = srsly.msgpack_dumps(state)
    return srsly.msgpack_dumps({"format": format, "version": version, "crc": zlib.crc32(body), "body": body})


def unpack(data: bytes, format: str) -> Any:
    """Return the state in bytes of `pack`. RAISES UnreadableState: damaged, or not of `format`. OtherVersion: other version."""
    try:
        outer = _decode(data)
        if outer["format"] != format:
            raise ValueError(f"format {outer['format']!r}")
        version, body, crc = outer["version"], bytes(memoryview(outer["body"])), outer["crc"]  # memoryview refuses other types
        if type(version) is not int:
            raise ValueError(f"format version {version!r}")
    except Exception as error:
        raise UnreadableState(f"not a whole file of ours: {brief(error, 160)}") from None
    if version != FORMAT_VERSION:
        raise OtherVersion(version)
    if zlib.crc32(body) != crc:
        raise UnreadableState("the checksum does not match")
    try:
        return _decode(body)
    except Exception as error:
        raise UnreadableState(f"not a whole file of ours: {brief(error, 160)}") from None


def _decode(data: bytes) -> Any:
    import srsly

    # Not `srsly.msgpack_loads`: it turns the garbage collector off, and leaves it off if it fails.
    return srsly.msgpack.loads(data, raw=False, use_list=True)


def make_part(state: dict[str, Any], find: Callable[[str, str], Callable[..., Any] | None]) -> Any:
    """Rebuild a registered object of a pipe (recalibrator, scaling, context ...), here called a part, from its `state()`.

    find (Callable): (kind, name) -> the registered function, which makes the part; None if no function has this name.
    RETURNS: The part, not fitted if the state has no learned values. RAISES MissingPart: the function of the part, or of one
        among its settings, is not found. InvalidState: it refuses the settings or the learned values.
    """
    kind = next((key for key in KINDS if key in state), None)
    if kind is None:
        raise InvalidState("a part", "there by its registered name")
    saved_part = _PART_FORMS[kind](state, kind)  # checked
    make = find(kind, saved_part[kind])
    if make is None:
        raise MissingPart(saved_part[kind])
    # A setting may be another part of the same kind: the map within a ScalingBinning, for instance.
    settings = {
        key: make_part(value, find) if isinstance(value, dict) and kind in value else value
        for key, value in saved_part["settings"].items()
    }
    try:
        part = make(**settings)
    except MissingPart:  # of a registered function that rebuilds parts itself
        raise
    except Exception as error:  # whatever a registered function raises for settings that it does not know
        raise InvalidState("settings", f"what {saved_part[kind]} takes ({brief(error, 160)})") from None
    return part.load_learned(saved_part["learned"]) if saved_part["learned"] else part
