"""The saved form of a fitted pipe: msgpack with a format version and a checksum. Never pickle."""

from __future__ import annotations

import zlib
from typing import Any

import srsly

from .errors import calib_error
from .registry import registry

FORMAT = "spacy-calib"
FORMAT_VERSION = 1

# Registries whose things are saved by name, settings and learned arrays.
_KINDS = ("@calib_recalibrators", "@calib_poolings", "@calib_scalings", "@calib_sets")


def dump(state: dict[str, Any]) -> bytes:
    """Plain data and numpy arrays as bytes."""
    body = srsly.msgpack_dumps(state)
    return srsly.msgpack_dumps({"format": FORMAT, "version": FORMAT_VERSION, "crc": zlib.crc32(body), "body": body})


def load(data: bytes, *, name: str, path: str) -> dict[str, Any]:
    """The state that `dump` wrote.

    name (str): The pipe, for the message. path (str): Where the bytes come from, likewise.
    RAISES C010: not such bytes, truncated or changed. C011: of a later format.
    """
    try:
        outer = srsly.msgpack_loads(data)
        if outer["format"] != FORMAT:
            raise ValueError(f"format {outer['format']!r}")
        version, body, crc = outer["version"], bytes(memoryview(outer["body"])), outer["crc"]
    except Exception as error:
        raise calib_error("C010", name=name, path=path, why=f"not a whole file of ours: {error}") from None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise calib_error("C011", name=name, given=version, wanted=FORMAT_VERSION)
    if zlib.crc32(body) != crc:
        raise calib_error("C010", name=name, path=path, why="the checksum does not match")
    try:
        return srsly.msgpack_loads(body)
    except Exception as error:
        raise calib_error("C010", name=name, path=path, why=f"not a whole file of ours: {error}") from None


def load_part(state: dict[str, Any], *, name: str) -> Any:
    """Rebuild a recalibrator, a pooling, a scaling or sets from its `state()` through the registry.

    RAISES C012: nothing of that name is registered.
    """
    kind = next((key for key in _KINDS if key in state), _KINDS[0])  # a KeyError where there is none
    registered = state[kind]
    held = getattr(registry, kind.removeprefix("@"))
    if registered not in held:
        raise calib_error("C012", name=name, given=registered)
    settings = {
        key: load_part(value, name=name) if isinstance(value, dict) and any(kind in value for kind in _KINDS) else value
        for key, value in state["settings"].items()
    }
    return held.get(registered)(**settings).load_learned(state["learned"])
