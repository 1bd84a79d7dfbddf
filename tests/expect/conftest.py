"""A fit, and how windows of texts are counted beside it."""

from __future__ import annotations

import pytest

from tests.expect.streams import layout_of, made_record


@pytest.fixture(scope="module")
def record():
    return made_record()


@pytest.fixture(scope="module")
def layout(record):
    return layout_of(record)
