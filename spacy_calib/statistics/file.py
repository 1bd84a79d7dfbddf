"""The file of statistics: a zip of numpy arrays (.npz) with a header of JSON in front, which people can read (`unzip -p FILE header.json`)."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error

VERSION = 1
_HEADER = "header.json"
# Of the zip's members: equal content makes equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a file. header (Mapping): Plain data; "version" is put in front."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as held:
        held.writestr(_member(_HEADER), json.dumps({"version": VERSION, **header}, indent=1, ensure_ascii=False))
        for name, array in arrays.items():
            with held.open(_member(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def unpack(data: bytes, path: object) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(header, arrays) of such bytes. path: Where they come from, for the message.

    RAISES C427: they are no file of statistics, cut short or damaged. C429: a file of another version.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as held:
            header = json.loads(held.read(_HEADER).decode("utf-8"))
            version = header.get("version") if isinstance(header, dict) else None
            if version != VERSION:
                raise calib_error("C429", path=path, given=version, wanted=VERSION)
            arrays = {name.removesuffix(".npy"): _array(held, name) for name in held.namelist() if name.endswith(".npy")}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise calib_error("C427", path=path, why=_why(error)) from None
    except ValueError as error:  # of numpy: no array, or one that would need pickle
        if hasattr(error, "code"):
            raise
        raise calib_error("C427", path=path, why=_why(error)) from None
    return header, arrays


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _array(held: zipfile.ZipFile, name: str) -> NDArray[Any]:
    return np.lib.format.read_array(io.BytesIO(held.read(name)), allow_pickle=False)


def _why(error: Exception) -> str:
    if isinstance(error, zipfile.BadZipFile):
        return "it is no such file, or cut short"
    if isinstance(error, KeyError):
        return f"it has no {_HEADER}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
