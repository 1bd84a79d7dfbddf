"""Made-up scores."""

from __future__ import annotations

import pytest

from tests.scores import Made, made_scores


@pytest.fixture(scope="session")
def made() -> Made:
    return made_scores()
