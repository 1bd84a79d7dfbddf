"""The codec of saved state: a class declares the forms of its fields once, and is read, checked and written by them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from spacy_calib.schema import (
    InvalidState,
    Serializable,
    dict_of,
    floats,
    list_of,
    maybe,
    number,
    plain,
    saved_field,
    text,
    tuple_of,
    whole,
)


@dataclass(frozen=True)
class Inner(Serializable):
    n: int = saved_field(whole(), 3)
    names: tuple[str, ...] = saved_field(tuple_of(text), ())


@dataclass(frozen=True, eq=False)
class Outer(Serializable):
    values: np.ndarray = saved_field(floats(0.0, 1.0))
    inner: Inner = saved_field(Inner.read)
    width_: float = saved_field(number(), 1.0, key="width")
    by_name: dict[str, Inner] = saved_field(dict_of(Inner.read), dict)
    others: list[Inner] = saved_field(list_of(Inner.read), list)
    perhaps: Inner | None = saved_field(maybe(Inner.read), None)
    unsaved: str = "as it is made"

    @classmethod
    def find_contradiction(cls, values: dict[str, Any]) -> str:
        return "" if len(values["values"]) == values["inner"].n else f"{values['inner'].n} values"


MADE = Outer(np.array([0.0, 0.5, 1.0]), Inner(), 2.0, {"a": Inner(1, ("x",))}, [Inner(4)], Inner(5), "otherwise")
STATE = {
    "values": MADE.values, "inner": {"n": 3, "names": []}, "width": 2.0, "by_name": {"a": {"n": 1, "names": ["x"]}},
    "others": [{"n": 4, "names": []}], "perhaps": {"n": 5, "names": []},
}  # fmt: skip


def test_a_state_has_the_keys_of_the_fields_in_their_order():
    assert MADE.state() == STATE
    assert list(MADE.state()) == list(STATE)


def test_what_is_read_is_built_down_to_the_innermost():
    again = Outer.read(STATE)
    assert (again.inner, again.width_, again.by_name, again.others, again.perhaps) == (
        MADE.inner, MADE.width_, MADE.by_name, MADE.others, MADE.perhaps,
    )  # fmt: skip
    assert again.values is not MADE.values  # a copy
    assert again.unsaved == "as it is made"


def test_nothing_may_be_left_out():
    for key in STATE:  # a default of the class is none of the state
        with pytest.raises(InvalidState, match=f"'state.{key}' is not there"):
            Outer.read({name: value for name, value in STATE.items() if name != key})


def test_a_default_that_a_function_makes_is_made_anew():
    made = [Outer(MADE.values, MADE.inner) for _ in range(2)]
    assert (made[0].by_name, made[0].others, made[0].perhaps) == ({}, [], None)
    assert made[0].by_name is not made[1].by_name


@pytest.mark.parametrize(("change", "sentence"), [
    ({"values": np.array([2.0, 0.0, 0.0])}, "'here.values' is not an array of numbers from 0 to 1"),
    ({"values": np.zeros(2)}, "'here' is not consistent: 3 values"),
    ({"inner": {"n": -1}}, "'here.inner.n' is not a whole number"),
    ({"by_name": {"a": 3}}, "'here.by_name.a' is not a table"),
    ({"others": [{"n": 1, "names": []}, {}]}, r"'here.others\[1\].n' is not there"),
    ({"perhaps": {"n": 1, "names": ["x", 2]}}, r"'here.perhaps.names\[1\]' is not a text"),
])  # fmt: skip
def test_what_is_not_of_its_form_is_named_by_its_place(change, sentence):
    with pytest.raises(InvalidState, match=sentence):
        Outer.read({**STATE, **change}, "here")


def test_numbers_of_numpy_are_numbers_and_what_is_not_declared_is_left_out():
    given = {"n": np.int64(7), "names": ("x",), "other": object()}
    assert Inner.read(given) == Inner(7, ("x",))
    assert type(Inner.read(given).n) is int
    assert plain(Inner)(given, "here") == {"n": 7, "names": ["x"]}
