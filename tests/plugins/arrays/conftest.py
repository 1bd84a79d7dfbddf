import pytest

from tests.made import TagScores, overconfident_scores


@pytest.fixture(scope="session")
def made() -> TagScores:
    return overconfident_scores()
