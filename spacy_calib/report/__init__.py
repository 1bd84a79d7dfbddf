"""Pairs -> rows -> tables and pictures. Knows arrays and rows, never Docs.

The package can be called: `spacy_calib.report(model, data, output)` is `cli.api.report`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module that can be called. The package `report` is the attribute `spacy_calib.report`, where a function of that name would have to stand."""

    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        from ..cli.api import report

        return report(*args, **options)


sys.modules[__name__].__class__ = _Callable
