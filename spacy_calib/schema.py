"""Declared forms of saved data, checked before anything is made of it. Knows plain data and arrays, never pipes.

A *form* takes a value and where it stands, and gives the value back in the type that is wanted (arrays as copies, of
float64 or intp), or raises Misfit. What is learned is a dataclass of `Saved`, whose fields declare their forms:
`slope: float = kept(number(0.0))`. Its `read` checks a state and builds the object; it is a form itself, which fields
of other classes declare. No key may be missing: a change of any form raises `FORMAT_VERSION` of `calibration.saved`.
Keys that no form declares are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import brief

Form = Callable[[Any, str], Any]

# Whole numbers that a float holds exactly; and a bound of all that is learned, so that sums and products are finite.
MOST = 1 << 53
FAR = 1e12


class Misfit(ValueError):
    """Saved data is not of the form declared for it; `str()` says where, and what is wanted."""

    def __init__(self, where: str, wanted: str):
        super().__init__(f"'{where}' is not {wanted}")
        self.where, self.wanted = where, wanted


def anything(value: Any, where: str) -> Any:
    """Any value: another form looks at it later."""
    return value


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise Misfit(where, "a text")
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


def whole(least: int = 0, most: int = MOST) -> Form:
    """A whole number in [least, most]."""

    def form(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
            raise Misfit(where, f"a whole number from {least} to {most}")
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
        held: float = number(1 / FAR)(value, where)
    except Misfit:
        raise Misfit(where, "greater than 0") from None
    return held


def maybe(held: Form) -> Form:
    """None, or a value of this form."""

    def form(value: Any, where: str) -> Any:
        return None if value is None else held(value, where)

    return form


def listed(held: Form, least: int = 0, most: int = MOST) -> Form:
    """A list of `least` to `most` values of one form."""

    def form(value: Any, where: str) -> list[Any]:
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= most:
            size = f" of {least}" if least == most else f" of {least} to {most}"
            raise Misfit(where, "a list" + ("" if most == MOST else size))
        return [held(one, f"{where}[{i}]") for i, one in enumerate(value)]

    return form


def several(held: Form, least: int = 0, most: int = MOST) -> Form:
    """As `listed`, but a tuple."""

    def form(value: Any, where: str) -> tuple[Any, ...]:
        return tuple(listed(held, least, most)(value, where))

    return form


def keyed(held: Form) -> Form:
    """A dict of values of one form, by texts."""

    def form(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise Misfit(where, "a table")
        return {key: held(one, f"{where}.{brief(key)}") for key, one in value.items()}

    return form


def record(fields: Mapping[str, Form], agree: Callable[[dict[str, Any]], str] = lambda held: "") -> Form:
    """A dict with these keys; others are left out.

    fields (Mapping): Key -> form. agree (Callable): Says what is wrong with all values together; "" if nothing is.
    """

    def form(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Misfit(where, "a table")
        held = {}
        for key, wanted in fields.items():
            if key not in value:
                raise Misfit(f"{where}.{key}", "there")
            held[key] = wanted(value[key], f"{where}.{key}")
        wrong = agree(held)
        if wrong:
            raise Misfit(where, f"consistent: {wrong}")
        return held

    return form


_Made = TypeVar("_Made", bound="Saved")


class Saved:
    """A dataclass that is saved: fields made by `kept` declare the form in which they are written and read.

    A state has the keys in the order of the fields.
    """

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        """What is wrong with the values of a state together, each of its form; "" if nothing is."""
        return ""

    @classmethod
    def read(cls: type[_Made], value: Any, where: str = "state") -> _Made:
        """Check a state and build the object. RAISES Misfit: the state is not of the form declared."""
        declared = _kept(cls)
        held = record({key: one.metadata["form"] for key, one in declared.items()}, cls.agree)(value, where)
        return cls(**{one.name: held[key] for key, one in declared.items()})

    def state(self) -> dict[str, Any]:
        """Plain data and arrays, which `read` takes."""
        return {key: as_saved(getattr(self, one.name)) for key, one in _kept(type(self)).items()}


def plain(kind: type[Saved]) -> Form:
    """A state of this class, checked, that stays plain data."""

    def form(value: Any, where: str) -> dict[str, Any]:
        return kind.read(value, where).state()

    return form


def kept(form: Form, default: Any = MISSING, *, key: str = "") -> Any:
    """A field of a `Saved` class.

    form (Form): Of its value in a state. default (Any): Of the field, none if left out; a class or a function makes it.
    key (str): Its name in a state, where that is another.
    """
    made: Any = {"default_factory": default} if callable(default) else {"default": default}
    return field(**made, metadata={"form": form, "key": key})


def _kept(kind: Any) -> dict[str, Any]:
    """Key in a state -> field, of the fields that are saved."""
    return {one.metadata["key"] or one.name: one for one in fields(kind) if "form" in one.metadata}


def as_saved(value: Any) -> Any:
    """The value as plain data and arrays, with saved objects in it as their states."""
    if isinstance(value, Saved):
        return value.state()
    if isinstance(value, Mapping):
        return {key: as_saved(one) for key, one in value.items()}
    return [as_saved(one) for one in value] if isinstance(value, (list, tuple)) else value


def registered(kind: str) -> Form:
    """The state of an object that a registry makes: its registered name, its settings, and what it learned.

    kind (str): As in a config: "@calib_recalibrators".
    """
    return record({kind: text, "settings": keyed(anything), "learned": keyed(anything)})


def floats(low: float = -FAR, high: float = FAR, *, ndim: int = 1, rising: str = "") -> Form:
    """An array of numbers in [low, high] with so many dimensions, without NaN.

    rising (str): "never falls", or "rises" from each to the next one; "" for any order.
    """

    def form(value: Any, where: str) -> NDArray[np.float64]:
        wanted = f"an array of numbers from {low:g} to {high:g}"
        array = _array(value, where, "fiu", ndim, wanted)
        with np.errstate(over="ignore"):
            given = np.array(array, dtype=np.float64)
        if given.size and not (given.min() >= low and given.max() <= high):  # NaN fails this too
            raise Misfit(where, wanted)
        falls = {"": False, "never falls": (given[1:] < given[:-1]).any(), "rises": (given[1:] <= given[:-1]).any()}
        if falls[rising]:
            raise Misfit(where, f"an array that {rising}")
        return given

    return form


def wholes(least: int = 0, *, rising: bool = False) -> Form:
    """An array of whole numbers from `least` to MOST. rising (bool): Each greater than the one before."""

    def form(value: Any, where: str) -> NDArray[np.intp]:
        wanted = f"an array of whole numbers from {least} to {MOST}"
        array = _array(value, where, "iu", 1, wanted)
        if array.size and not (int(array.min()) >= least and int(array.max()) <= MOST):
            raise Misfit(where, wanted)
        given = np.array(array, dtype=np.intp)
        if rising and (given[1:] <= given[:-1]).any():
            raise Misfit(where, "an array that rises")
        return given

    return form


def digests(value: Any, where: str) -> NDArray[np.uint64]:
    """An array of distinct 64-bit numbers, ascending."""
    given = np.array(_array(value, where, "u", 1, "an array of digests"), dtype=np.uint64)
    if (given[1:] <= given[:-1]).any():
        raise Misfit(where, "an array that rises")
    return given


def _array(value: Any, where: str, kinds: str, ndim: int, wanted: str) -> NDArray[Any]:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.ndim != ndim:
        raise Misfit(where, wanted if ndim == 1 else f"{wanted}, with {ndim} dimensions")
    return value


def lengths(wanted: Mapping[str, int | tuple[int, ...]], held: Mapping[str, Any]) -> str:
    """Which of these values has another length than wanted, for `agree`; "" if none.

    wanted (Mapping): Key -> length, or shape. held (Mapping): Key -> array or list.
    """
    for key, size in wanted.items():
        given = held[key]
        if (given.shape if isinstance(size, tuple) else len(given)) != size:
            return f"'{key}' has {given.shape if isinstance(size, tuple) else len(given)} values, {size} are wanted"
    return ""
