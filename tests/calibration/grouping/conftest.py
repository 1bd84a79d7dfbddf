import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def counts_of(shared_data: Path) -> Callable[[str], dict[str, int]]:
    """A function that reads the frequency of each tag in the training data of "ccg" or "lsr"."""
    folder = shared_data / "calibration_tfg"
    return lambda task: json.loads((folder / task / "training_tag_frequencies.json").read_text(encoding="utf8"))
