"""Rows of sequence models in family tests."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.family import SourceRow
from tests.plugins.sequence.trained import trained_labeller

_CASES: list[tuple[str, dict[str, Any], str]] = [
    *(("spacy-calib.Chain.v1", {}, name) for name in ("calib_crf", "calib_hmm", "calib_crfsuite")),
    ("spacy-calib.Confidence.v1", {"k": 5}, "calib_online"),
    ("spacy-calib.Confidence.v1", {"way": "delta"}, "calib_online"),
]
ROWS = {"sources": [SourceRow(case, partial(trained_labeller, case[2])) for case in _CASES]}
