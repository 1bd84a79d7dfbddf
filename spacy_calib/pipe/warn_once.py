"""Warnings of a pipe, each said once."""

from __future__ import annotations

import warnings
from typing import Any

from ..errors import WARNINGS


class WarnOnce:
    """Warns by code; the same code with the same values only once. pipe: In whose name. said (set): What was said already."""

    def __init__(self, pipe: Any):
        self.pipe = pipe
        self.said: set[str] = set()

    def __call__(self, code: str, **values: object) -> None:
        key = f"{code}{values}"
        if key not in self.said:
            self.said.add(key)
            warnings.warn(WARNINGS[code].format(name=self.pipe.name, **values), stacklevel=3)
