"""Made-up scores."""

from __future__ import annotations

import pytest

from tests.made import TagScores, overconfident_scores


@pytest.fixture(scope="session")
def made() -> TagScores:
    return overconfident_scores()
