"""What tests of saved states share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="session")
def fuzz() -> Iterator[ModuleType]:
    """scripts/tools/fuzz_state.py."""
    sys.path.insert(0, str(SCRIPTS))
    from tools import fuzz_state

    yield fuzz_state
    sys.path.remove(str(SCRIPTS))
    sys.modules.pop("tools.fuzz_state", None)
