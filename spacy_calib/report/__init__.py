"""Pairs -> rows -> tables and pictures. Sees arrays and rows, never Docs. The package can be called: `spacy_calib.report(model, data, output)` is `cli.api.report`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package is an attribute of the one that it stands in, under its name: a function of this name could not stand there beside it."""

    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        from ..cli.api import report

        return report(*args, **options)


sys.modules[__name__].__class__ = _Callable
