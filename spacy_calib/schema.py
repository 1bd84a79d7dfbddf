"""Forms of saved data (plain data and arrays), which are checked before anything is built from the data.

A *form* is a function of a value and its path in the state. It returns the value in the declared type (arrays as copies, of
float64 or intp), or raises InvalidState. A class with learned parameters is a `Serializable` dataclass whose fields declare
their forms: `slope: float = saved_field(number(0.0))`. Its `read`, itself a form, checks a state and builds the object. Every
declared key is required, other keys are ignored. A release that changes a form needs a new `FORMAT_VERSION`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import brief

Form = Callable[[Any, str], Any]
# The largest integer that a float holds exactly; the bound of learned numbers, so that their sums and products are finite.
MAX_WHOLE = 1 << 53
MAX_NUMBER = 1e12


class InvalidState(ValueError):
    """Saved data does not have its declared form. where (str): Path in the state. expected (str): What the form accepts."""

    def __init__(self, where: str, expected: str):
        super().__init__(f"'{where}' is not {expected}")
        self.where, self.expected = where, expected


def anything(value: Any, where: str) -> Any:
    """Return any value unchanged: the Form of values that are checked later. where (str): Path in the state, not used."""
    return value


def instance(kind: type, expected: str) -> Form:
    """Return a checking function (Form) that accepts only values of this type. expected (str): What they are, for the error."""

    def form(value: Any, where: str) -> Any:
        if not isinstance(value, kind):
            raise InvalidState(where, expected)
        return value

    return form


text = instance(str, "a text")
blob = instance(bytes, "bytes")
flag = instance(bool, "true or false")


def choice(*values: Any) -> Form:
    """Return a checking function (Form) that accepts only these strings."""

    def form(value: Any, where: str) -> Any:
        if not isinstance(value, str) or value not in values:
            raise InvalidState(where, f"one of {', '.join(values)}")
        return value

    return form


def whole(minimum: int = 0, maximum: int = MAX_WHOLE) -> Form:
    """Return a checking function (Form) that accepts an integer in [minimum, maximum], and returns it as an int."""

    def form(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not minimum <= value <= maximum:
            raise InvalidState(where, f"a whole number from {minimum} to {maximum}")
        return int(value)

    return form


def number(low: float = -MAX_NUMBER, high: float = MAX_NUMBER) -> Form:
    """Return a checking function (Form) that accepts a number from `low` to `high`, but neither NaN nor a boolean."""

    def form(value: Any, where: str) -> float:
        is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            raise InvalidState(where, f"a number from {low:g} to {high:g}")
        return value if type(value) in (int, float) else float(value)

    return form


def maybe(item_form: Form) -> Form:
    """Return a checking function (Form) that accepts None, or a value that `item_form` accepts."""

    def form(value: Any, where: str) -> Any:
        return None if value is None else item_form(value, where)

    return form


def list_of(item_form: Form, minimum: int = 0, maximum: int = MAX_WHOLE) -> Form:
    """Return a checking function (Form) of a list (or tuple) of `minimum` to `maximum` items of a form; it returns a list."""

    def form(value: Any, where: str) -> list[Any]:
        if not isinstance(value, (list, tuple)) or not minimum <= len(value) <= maximum:
            size = f" of {minimum}" if minimum == maximum else f" of {minimum} to {maximum}"
            raise InvalidState(where, "a list" + ("" if maximum == MAX_WHOLE else size))
        return [item_form(item, f"{where}[{i}]") for i, item in enumerate(value)]

    return form


def tuple_of(item_form: Form, minimum: int = 0, maximum: int = MAX_WHOLE) -> Form:
    """Return a checking function (Form) that accepts what `list_of` accepts, and returns a tuple."""
    list_form = list_of(item_form, minimum, maximum)

    def form(value: Any, where: str) -> tuple[Any, ...]:
        return tuple(list_form(value, where))

    return form


def dict_of(item_form: Form) -> Form:
    """Return a checking function (Form) that accepts a dict from strings to values that `item_form` accepts."""

    def form(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise InvalidState(where, "a table")
        return {key: item_form(item, f"{where}.{brief(key)}") for key, item in value.items()}

    return form


def record(fields: Mapping[str, Form], find_contradiction: Callable[[dict[str, Any]], str] = lambda values: "") -> Form:
    """Return a checking function (Form) that accepts a dict with all of these keys, and returns it without other keys.

    fields (Mapping): Key -> form of its value. find_contradiction (Callable): Takes the checked dict, and returns why its
    values contradict each other, or "".
    """

    def form(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidState(where, "a table")
        values = {}
        for key, field_form in fields.items():
            if key not in value:
                raise InvalidState(f"{where}.{key}", "there")
            values[key] = field_form(value[key], f"{where}.{key}")
        if contradiction := find_contradiction(values):
            raise InvalidState(where, f"consistent: {contradiction}")
        return values

    return form


_Instance = TypeVar("_Instance", bound="Serializable")


class Serializable:
    """Base class of dataclasses that can be saved: `state()` returns the fields declared by `saved_field`, as plain data."""

    @classmethod
    def find_contradiction(cls, values: dict[str, Any]) -> str:
        """Return why the values of a state contradict each other, or "". Subclasses define it."""
        return ""

    @classmethod
    def read(cls: type[_Instance], value: Any, where: str = "state") -> _Instance:
        """Check a state and build the object from it. where (str): Its path, for errors. RAISES InvalidState: another form."""
        kind: Any = cls
        saved_fields, form = _saved_form(kind)
        values = form(value, where)
        return cls(**{field_.name: values[key] for key, field_ in saved_fields.items()})

    def state(self) -> dict[str, Any]:
        """Return the saved fields as plain data and arrays, for `read`."""
        kind: Any = type(self)
        return {key: as_saved(getattr(self, field_.name)) for key, field_ in _saved_form(kind)[0].items()}


def plain(kind: type[Serializable]) -> Form:
    """Return a checking function (Form) for the state of an object of the class `kind`; it returns a state, no object."""

    def form(value: Any, where: str) -> dict[str, Any]:
        return kind.read(value, where).state()

    return form


def saved_field(form: Form, default: Any = MISSING, *, key: str = "") -> Any:
    """Declare a dataclass field that is saved. form (Form): Checks the saved value, and returns the value of the field.

    default (Any): Default value, or a function that makes it. key (str): Key in saved states; "" for the name of the field.
    """
    default_options: Any = {"default_factory": default} if callable(default) else {"default": default}
    return field(**default_options, metadata={"form": form, "key": key})


@cache
def _saved_form(cls: Any) -> tuple[dict[str, Any], Form]:
    """Return (key in states -> dataclass field, form of the states) for a `Serializable` class."""
    saved_fields = {field_.metadata["key"] or field_.name: field_ for field_ in fields(cls) if "form" in field_.metadata}
    return saved_fields, record({key: field_.metadata["form"] for key, field_ in saved_fields.items()}, cls.find_contradiction)


def as_saved(value: Any) -> Any:
    """Return the value as plain data and arrays, with each `Serializable` object as its state."""
    if isinstance(value, Serializable):
        return value.state()
    if isinstance(value, Mapping):
        return {key: as_saved(item) for key, item in value.items()}
    return [as_saved(item) for item in value] if isinstance(value, (list, tuple)) else value


def registered_part(kind: str) -> Form:
    """Return a checking function (Form) for a registered object's state: `kind` -> name, "settings" and "learned" -> dict."""
    return record({kind: text, "settings": dict_of(anything), "learned": dict_of(anything)})


def floats(low: float = -MAX_NUMBER, high: float = MAX_NUMBER, *, ndim: int = 1, rising: str = "") -> Form:
    """Return a checking function (Form) that accepts an array of numbers from `low` to `high`, and returns a float64 copy.

    ndim (int): Its number of dimensions. rising (str): "never falls", "rises" (no two are equal) or "" (in any order).
    """

    def form(value: Any, where: str) -> NDArray[np.float64]:
        description = f"an array of numbers from {low:g} to {high:g}"
        array = _array(value, where, "fiu", ndim, description)
        with np.errstate(over="ignore"):  # too large numbers become infinite, which fails below
            result = np.array(array, dtype=np.float64)
        if result.size and not (result.min() >= low and result.max() <= high):  # NaN fails this too
            raise InvalidState(where, description)
        violations = {"": False, "never falls": (result[1:] < result[:-1]).any(), "rises": (result[1:] <= result[:-1]).any()}
        if violations[rising]:
            raise InvalidState(where, f"an array that {rising}")
        return result

    return form


def wholes(minimum: int = 0, *, rising: bool = False) -> Form:
    """Return a checking function (Form) for 1-D arrays of integers >= minimum. rising: Each must exceed the one before."""

    def form(value: Any, where: str) -> NDArray[np.intp]:
        description = f"an array of whole numbers from {minimum} to {MAX_WHOLE}"
        array = _array(value, where, "iu", 1, description)
        if array.size and not (int(array.min()) >= minimum and int(array.max()) <= MAX_WHOLE):
            raise InvalidState(where, description)
        result = np.array(array, dtype=np.intp)
        if rising and (result[1:] <= result[:-1]).any():
            raise InvalidState(where, "an array that rises")
        return result

    return form


def digests(value: Any, where: str) -> NDArray[np.uint64]:
    """Return a copy of saved digests (strictly rising unsigned integers). where: Their path. RAISES InvalidState: invalid."""
    result = np.array(_array(value, where, "u", 1, "an array of digests"), dtype=np.uint64)
    if (result[1:] <= result[:-1]).any():
        raise InvalidState(where, "an array that rises")
    return result


def _array(value: Any, where: str, kinds: str, ndim: int, description: str) -> NDArray[Any]:
    """Return the value if it is an array with ndim dimensions and a dtype.kind in kinds. RAISES InvalidState: it is not."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.ndim != ndim:
        raise InvalidState(where, description if ndim == 1 else f"{description}, with {ndim} dimensions")
    return value


def lengths(expected: Mapping[str, int | tuple[int, ...]], values: Mapping[str, Any]) -> str:
    """Compare lengths (or shapes) of values with the expected ones; return a sentence on the first difference, "" for none.

    expected (Mapping): Key -> length of its value, or shape, if a tuple. values (Mapping): Key -> array or list.
    """
    for key, size in expected.items():
        actual = values[key].shape if isinstance(size, tuple) else len(values[key])
        if actual != size:
            return f"'{key}' has {actual} values, not {size}"
    return ""


MAX_DEPTH = 100


def nested_values(data: Any) -> Iterator[tuple[Any, int]]:
    """Yield (value, depth) for the data itself (depth 0) and for all keys, values and items nested in it, in any order."""
    stack = [(data, 0)]
    while stack:
        value, depth = stack.pop()
        yield value, depth
        if isinstance(value, dict):
            stack += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            stack += [(part, depth + 1) for part in value]
