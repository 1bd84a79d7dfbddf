"""The file of statistics: a zip of numpy arrays (.npz), with a JSON header that `unzip -p FILE header.json` shows."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import CalibError, calib_error
from ..schema import Misfit

VERSION = 5
# What statistics are collected for.
FOR_FIT, FOR_EVALUATE = "fit", "evaluate"
Arrays = dict[str, NDArray[Any]]
Made = TypeVar("Made")
_HEADER = "header.json"
# Kinds of numbers, as numpy names them.
_CALLED = {"b": "yes and no", "f": "numbers", "i": "whole numbers", "u": "whole numbers from 0 on"}
# What zipfile, json and numpy raise of damaged bytes: RuntimeError where a member seems encrypted or packed in an
# unknown way, ValueError where it is no array or would need pickle.
_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, ValueError, RuntimeError, MemoryError)
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


def unpack(data: bytes, path: object, wanted: str, make: Callable[[dict[str, Any], Arrays], Made]) -> Made:
    """What is made of the header and the arrays of such bytes. path: Where they come from, for the message.

    wanted (str): What they are to be for. make (Callable): Raises Misfit where header and arrays do not fit.
    RAISES C427: no such file, cut short or damaged. C429: another version. C430: statistics for something else.
    """
    header, arrays = _read(data, path)
    version, given = header.get("version"), header.get("statistics_for")
    if version != VERSION:
        raise calib_error("C429", path=path, given=version, wanted=VERSION)
    if given != wanted and given in (FOR_FIT, FOR_EVALUATE):
        how = "without --judge" if wanted == FOR_FIT else "with --judge"
        raise calib_error("C430", path=path, given=given, wanted=wanted, how=how)
    try:
        return make(header, arrays)
    except (Misfit, CalibError) as error:
        raise calib_error("C427", path=path, why=getattr(error, "message", str(error))) from None


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """`prefix.name` -> array, of those called `name`."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def below(prefix: str, arrays: Arrays) -> Arrays:
    """`name` -> array, of those called `prefix.name`."""
    return {name.removeprefix(f"{prefix}."): array for name, array in arrays.items() if name.startswith(f"{prefix}.")}


def made_of(prefix: str, arrays: Arrays, make: Callable[[Arrays], Made]) -> Made:
    """What `make` makes of the arrays called `prefix.name`. RAISES Misfit: by `make`, with the name as in the file."""
    try:
        return make(below(prefix, arrays))
    except Misfit as error:
        raise Misfit(f"{prefix}.{error.where}", error.wanted) from None


def _read(data: bytes, path: object) -> tuple[dict[str, Any], Arrays]:
    """(header, arrays; none of another version, which may hold anything). RAISES C427: they cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as held:
            header = json.loads(held.read(_HEADER).decode("utf-8"))
            if not isinstance(header, dict):
                raise ValueError(f"its {_HEADER} is no table")
            names = [name for name in held.namelist() if name != _HEADER] if header.get("version") == VERSION else []
            return header, {name.removesuffix(".npy"): _array(held, name) for name in names}
    except _FAULTS as error:
        raise calib_error("C427", path=path, why=_why(error)) from None


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


# Arrays, looked at before anything is made of them


def column_of(held: Mapping[str, NDArray[Any]], name: str, kind: str, ndim: int = 1) -> NDArray[Any]:
    """One of the arrays. kind (str): Of its numbers, as numpy names it: b, f, i, or u.

    RAISES Misfit: it is not there, holds numbers of another kind, or has another number of dimensions.
    """
    if name not in held:
        raise Misfit(name, "there")
    array = np.asarray(held[name])
    if array.ndim != ndim or array.dtype.kind != kind or not array.dtype.isnative:
        raise Misfit(name, f"{'a one' if ndim == 1 else 'a two'}-dimensional array of {_CALLED[kind]}")
    return array


def check_length(arrays: Mapping[str, NDArray[Any]], n: int) -> None:
    """RAISES Misfit: an array has not this length."""
    for name, array in arrays.items():
        if len(array) != n:
            raise Misfit(name, f"as long as the others ({n})")


def check_within(name: str, array: NDArray[Any], low: float, high: float) -> None:
    """RAISES Misfit: a number is not in [low, high], or none at all (NaN)."""
    if array.size and not (array.min() >= low and array.max() <= high):
        raise Misfit(name, f"an array of numbers from {low:.12g} to {high:.12g}")
