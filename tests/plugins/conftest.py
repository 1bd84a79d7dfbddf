"""Fixtures of the command line for the tests of commands of plug-ins, and packages that are not there."""

import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import *  # noqa: F403
from tests.cli.test_documents import articles  # noqa: F401


@pytest.fixture
def hide_package(monkeypatch) -> Callable[..., None]:
    """A function that hides a package, as if it were not installed, and forgets a module of ours that imports it."""

    def hide(package: str, module: str = "") -> None:
        for name in [*sys.modules]:
            if name.split(".")[0] == package or module and f"{name}.".startswith(f"{module}."):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)

    return hide
