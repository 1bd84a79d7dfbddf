"""A stand-in for cupy that runs on numpy: arrays that mix with those of numpy nowhere, and functions that take what cupy's take.

An array of this kind is made by `asarray` and fetched by `get`, and by nothing else; `uploads` counts the arrays that were sent. Functions and
keywords that cupy (before 13: `max` without `initial`, `argsort` without `kind`) does not have are not there.
"""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import thinc.compat
import thinc.util

uploads: list[int] = []


class DeviceArray:
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, held: np.ndarray):
        self.held = held

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    shape, dtype, ndim, size = (property(operator.attrgetter(f"held.{name}")) for name in ("shape", "dtype", "ndim", "size"))
    T = property(lambda self: DeviceArray(self.held.T))

    def get(self) -> np.ndarray:
        return self.held.copy()

    def tolist(self) -> Any:
        return self.held.tolist()

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Any:
        return map(wrap, self.held)

    def __bool__(self) -> bool:
        return bool(self.held)

    def __int__(self) -> int:
        return int(self.held)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.held)

    def __getitem__(self, at: Any) -> Any:
        return wrap(self.held[inside(at)])

    def __setitem__(self, at: Any, value: Any) -> None:
        self.held[inside(at)] = inside(value)


def _operator(name: str) -> Any:
    def apply(self: Any, other: Any = None) -> Any:
        made = getattr(self.held, name)(*([] if other is None else [inside(other)]))
        return self if name.startswith("__i") and name not in ("__invert__",) else wrap(made)

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or"):
    for _form in ("__{}__", "__r{}__", "__i{}__"):
        setattr(DeviceArray, _form.format(_name), _operator(_form.format(_name)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "matmul", "neg", "invert"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))


def _method(name: str, *keywords: str) -> Any:
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert set(kwargs) <= set(keywords), f"{name} of an array of cupy has no {sorted(set(kwargs) - set(keywords))}"
        return wrap(getattr(self.held, name)(*args, **kwargs))

    return apply


_METHODS = {
    **dict.fromkeys(("max", "min", "sum"), ("axis", "keepdims")), **dict.fromkeys(("all", "any", "argmax", "argmin"), ("axis",)),
    "astype": ("copy",), "reshape": (), "swapaxes": (), "copy": (),
}  # fmt: skip
for _name, _keywords in _METHODS.items():
    setattr(DeviceArray, _name, _method(_name, *_keywords))


def wrap(made: Any) -> Any:
    return DeviceArray(np.asarray(made))


def inside(given: Any) -> Any:
    """What stands on the device, for numpy. RAISES TypeError: an array of numpy among it."""
    if isinstance(given, DeviceArray):
        return given.held
    if isinstance(given, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(given, (tuple, list)):
        return type(given)(map(inside, given))
    return given


def _function(name: str, *keywords: str) -> Any:
    def apply(*args: Any, **kwargs: Any) -> Any:
        assert set(kwargs) <= set(keywords), f"cupy.{name} has no {sorted(set(kwargs) - set(keywords))}"
        made = getattr(np, name)(*map(inside, args), **{key: inside(value) for key, value in kwargs.items()})
        return type(made)(map(wrap, made)) if isinstance(made, (tuple, list)) else wrap(made)

    return apply


def asarray(given: Any, dtype: Any = None) -> DeviceArray:
    if isinstance(given, DeviceArray):
        return given if dtype is None else given.astype(dtype, copy=False)
    uploads.append(np.size(given))
    return DeviceArray(np.array(given, dtype=dtype))


class RandomState:
    def __init__(self, seed: int):
        self.rng = np.random.RandomState(seed)

    def random_sample(self, size: Any) -> DeviceArray:
        return wrap(self.rng.random_sample(size))


_FUNCTIONS = {
    "zeros": ("dtype",), "ones": ("dtype",), "empty": ("dtype",), "arange": ("dtype",), "zeros_like": (), "empty_like": (), "eye": (),
    "concatenate": ("axis",), "exp": ("out",), "log": ("out",), "isfinite": (), "isnan": (), "where": (), "matmul": ("out",),
    "maximum": ("out",), "minimum": ("out",), "take_along_axis": ("axis",), "argsort": ("axis",), "argpartition": ("axis",),
    "cumsum": ("axis",), "bincount": ("weights", "minlength"), "unique": ("return_inverse",), "repeat": ("axis",), "split": ("axis",),
}  # fmt: skip
module = SimpleNamespace(
    asarray=asarray,
    random=SimpleNamespace(RandomState=RandomState),
    **{name: _function(name, *keywords) for name, keywords in _FUNCTIONS.items()},
)


@pytest.fixture(params=["stand-in", "cupy"])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of arrays of a device: the stand-in, which thinc takes for cupy, or cupy itself."""
    if request.param == "cupy":
        if not thinc.compat.has_cupy_gpu:
            pytest.skip("there is no GPU that cupy can use")
        return thinc.util.cupy
    monkeypatch.setattr(thinc.util, "cupy", module)
    monkeypatch.setattr(thinc.util, "is_cupy_array", lambda array: isinstance(array, DeviceArray))
    uploads.clear()
    return module
