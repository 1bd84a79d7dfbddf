import json

import pytest

from spacy_calib.cli.shared.records import MAX_DEPTH, fault_of


def nested(depth):
    held = 1
    for level in range(depth):
        held = [held] if level % 2 else {"part": held}
    return held


@pytest.mark.parametrize(("data", "fault"), [
    (float("inf"), "not finite"), ({"a": [1, {"b": float("nan")}]}, "not finite"), (["\ud800"], "surrogate"),
    ({"\udfff": 1}, "surrogate"), (nested(MAX_DEPTH + 1), "nested more than 100 deep"),
    (nested(100_000), "nested more than 100 deep"),
])  # fmt: skip
def test_what_cannot_is_named(data, fault):
    assert fault in fault_of(data)


@pytest.mark.parametrize("data", [None, True, 0, -1.5, "💻\0", [], {}, {"a": [10**30, None]}, nested(MAX_DEPTH)])
def test_what_can_is_fine(data):
    assert fault_of(data) is None
    json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
