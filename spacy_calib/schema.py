"""Declared forms of saved data, checked before anything is built from it. Knows plain data and arrays, never pipes.

A *form* takes a value and its place and returns the value in the declared type (arrays as copies, of float64 or intp), or
raises Misfit. A learned class is a dataclass of `Saved`, whose fields declare their forms: `slope: float = kept(number(0.0))`.
Its `read`, itself a form, checks a state and builds the object. Every declared key is required, others are left out; a changed
form raises `FORMAT_VERSION` of `calibration.saved`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import brief

Form = Callable[[Any, str], Any]

# Whole numbers that a float holds exactly; and a bound of all that is learned, so that sums and products are finite.
MOST = 1 << 53
FAR = 1e12


class Misfit(ValueError):
    """Saved data is not of the form declared for it."""

    def __init__(self, where: str, expected: str):
        super().__init__(f"'{where}' is not {expected}")
        self.where, self.expected = where, expected


def anything(value: Any, where: str) -> Any:
    """Accept any value; another form checks it later."""
    return value


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise Misfit(where, "a text")
    return value


def blob(value: Any, where: str) -> bytes:
    if not isinstance(value, bytes):
        raise Misfit(where, "bytes")
    return value


def flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise Misfit(where, "true or false")
    return value


def choice(*values: Any) -> Form:
    """One of these texts."""

    def form(value: Any, where: str) -> Any:
        if not isinstance(value, str) or value not in values:
            raise Misfit(where, f"one of {', '.join(values)}")
        return value

    return form


def whole(minimum: int = 0, maximum: int = MOST) -> Form:
    """A whole number in [least, most]."""

    def form(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not minimum <= value <= maximum:
            raise Misfit(where, f"a whole number from {minimum} to {maximum}")
        return int(value)

    return form


def number(low: float = -FAR, high: float = FAR) -> Form:
    """A number in [low, high]; never NaN."""

    def form(value: Any, where: str) -> float:
        is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            raise Misfit(where, f"a number from {low:g} to {high:g}")
        return value if type(value) in (int, float) else float(value)

    return form


def above_zero(value: Any, where: str) -> float:
    """A number that 1 can be divided by."""
    try:
        result: float = number(1 / FAR)(value, where)
    except Misfit:
        raise Misfit(where, "greater than 0") from None
    return result


def maybe(item_form: Form) -> Form:
    """None, or a value of this form."""

    def form(value: Any, where: str) -> Any:
        return None if value is None else item_form(value, where)

    return form


def listed(item_form: Form, minimum: int = 0, maximum: int = MOST) -> Form:
    """A list of `minimum` to `maximum` values of one form."""

    def form(value: Any, where: str) -> list[Any]:
        if not isinstance(value, (list, tuple)) or not minimum <= len(value) <= maximum:
            size = f" of {minimum}" if minimum == maximum else f" of {minimum} to {maximum}"
            raise Misfit(where, "a list" + ("" if maximum == MOST else size))
        return [item_form(item, f"{where}[{i}]") for i, item in enumerate(value)]

    return form


def several(item_form: Form, minimum: int = 0, maximum: int = MOST) -> Form:
    """As `listed`, but a tuple."""

    list_form = listed(item_form, minimum, maximum)

    def form(value: Any, where: str) -> tuple[Any, ...]:
        return tuple(list_form(value, where))

    return form


def keyed(item_form: Form) -> Form:
    """A dict of values of one form, by texts."""

    def form(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise Misfit(where, "a table")
        return {key: item_form(item, f"{where}.{brief(key)}") for key, item in value.items()}

    return form


def record(fields: Mapping[str, Form], agree: Callable[[dict[str, Any]], str] = lambda values: "") -> Form:
    """A dict with these keys; others are left out. agree (Callable): Returns what is wrong with all values together, or ""."""

    def form(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Misfit(where, "a table")
        values = {}
        for key, field_form in fields.items():
            if key not in value:
                raise Misfit(f"{where}.{key}", "there")
            values[key] = field_form(value[key], f"{where}.{key}")
        wrong = agree(values)
        if wrong:
            raise Misfit(where, f"consistent: {wrong}")
        return values

    return form


_Made = TypeVar("_Made", bound="Saved")


class Saved:
    """A dataclass whose fields, made by `kept`, declare the form in which they are saved, in their order."""

    @classmethod
    def agree(cls, values: dict[str, Any]) -> str:
        """Return what is wrong with the values of a state together, or ""."""
        return ""

    @classmethod
    def read(cls: type[_Made], value: Any, where: str = "state") -> _Made:
        """Check a state and build the object. RAISES Misfit: the state is not of the form declared."""
        kind: Any = cls
        saved_fields, form = _saved_form(kind)
        values = form(value, where)
        return cls(**{field_.name: values[key] for key, field_ in saved_fields.items()})

    def state(self) -> dict[str, Any]:
        """Return plain data and arrays, which `read` takes."""
        kind: Any = type(self)
        return {key: as_saved(getattr(self, field_.name)) for key, field_ in _saved_form(kind)[0].items()}


def plain(kind: type[Saved]) -> Form:
    """The state of an object of this class, checked, that stays plain data."""

    def form(value: Any, where: str) -> dict[str, Any]:
        return kind.read(value, where).state()

    return form


def kept(form: Form, default: Any = MISSING, *, key: str = "") -> Any:
    """Declare a field of a `Saved` class. default (Any): A class or function makes it. key (str): Its key in a state."""
    settings: Any = {"default_factory": default} if callable(default) else {"default": default}
    return field(**settings, metadata={"form": form, "key": key})


@cache
def _saved_form(kind: Any) -> tuple[dict[str, Any], Form]:
    """Return the saved fields of a `Saved` class by their key in a state, and the form of a state."""
    saved_fields = {field_.metadata["key"] or field_.name: field_ for field_ in fields(kind) if "form" in field_.metadata}
    return saved_fields, record({key: field_.metadata["form"] for key, field_ in saved_fields.items()}, kind.agree)


def as_saved(value: Any) -> Any:
    """Return the value as plain data and arrays, with saved objects as their states."""
    if isinstance(value, Saved):
        return value.state()
    if isinstance(value, Mapping):
        return {key: as_saved(item) for key, item in value.items()}
    return [as_saved(item) for item in value] if isinstance(value, (list, tuple)) else value


def registered(kind: str) -> Form:
    """The state of a registered object: name, settings, what it learned. kind (str): As in a config: "@calib_recalibrators"."""
    return record({kind: text, "settings": keyed(anything), "learned": keyed(anything)})


def floats(low: float = -FAR, high: float = FAR, *, ndim: int = 1, rising: str = "") -> Form:
    """An array of numbers in [low, high], without NaN. rising (str): "never falls", "rises", or "" for any order."""

    def form(value: Any, where: str) -> NDArray[np.float64]:
        expected = f"an array of numbers from {low:g} to {high:g}"
        array = _array(value, where, "fiu", ndim, expected)
        with np.errstate(over="ignore"):
            result = np.array(array, dtype=np.float64)
        if result.size and not (result.min() >= low and result.max() <= high):  # NaN fails this too
            raise Misfit(where, expected)
        falls = {"": False, "never falls": (result[1:] < result[:-1]).any(), "rises": (result[1:] <= result[:-1]).any()}
        if falls[rising]:
            raise Misfit(where, f"an array that {rising}")
        return result

    return form


def wholes(minimum: int = 0, *, rising: bool = False) -> Form:
    """An array of whole numbers from the minimum to MOST. rising (bool): Each greater than the one before."""

    def form(value: Any, where: str) -> NDArray[np.intp]:
        expected = f"an array of whole numbers from {minimum} to {MOST}"
        array = _array(value, where, "iu", 1, expected)
        if array.size and not (int(array.min()) >= minimum and int(array.max()) <= MOST):
            raise Misfit(where, expected)
        result = np.array(array, dtype=np.intp)
        if rising and (result[1:] <= result[:-1]).any():
            raise Misfit(where, "an array that rises")
        return result

    return form


def digests(value: Any, where: str) -> NDArray[np.uint64]:
    """An array of distinct 64-bit numbers, ascending."""
    result = np.array(_array(value, where, "u", 1, "an array of digests"), dtype=np.uint64)
    if (result[1:] <= result[:-1]).any():
        raise Misfit(where, "an array that rises")
    return result


def _array(value: Any, where: str, kinds: str, ndim: int, expected: str) -> NDArray[Any]:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.ndim != ndim:
        raise Misfit(where, expected if ndim == 1 else f"{expected}, with {ndim} dimensions")
    return value


def lengths(expected: Mapping[str, int | tuple[int, ...]], values: Mapping[str, Any]) -> str:
    """Return which value has another length, or shape, than expected, for `agree`; "" if none."""
    for key, size in expected.items():
        value = values[key]
        if (value.shape if isinstance(size, tuple) else len(value)) != size:
            return f"'{key}' has {value.shape if isinstance(size, tuple) else len(value)} values, {size} are wanted"
    return ""
