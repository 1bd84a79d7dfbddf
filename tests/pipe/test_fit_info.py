"""What a pipe says of its fit: attributes, and the plain form that is saved and written to JSON."""

import numpy as np
import pytest

from spacy_calib.calibration.fit_summaries import HeldOut
from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.metrics import calibration_error
from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.pipe.fitting import summarize_fit
from spacy_calib.pipe.state import FitInfo, FitRow, SpanFitInfo
from spacy_calib.types import Groups, Pairs

ROW = FitRow("all", 3, 1.0, 10, 7, 0.125, 0.0625, "")
ENTITIES = SpanFitInfo(
    "exact", ["PER"], 4, 3, 1, "", [FitRow("1", 1, None, 0, 0, None, None, "too few pairs")], None,
    HeldOut(0.5, 0.4, 0.3, 4, 0.2, 0.1, 0.0),
)  # fmt: skip
INFO = FitInfo(
    component="ner", layer="ner", threshold=0.01, docs=2, tokens=12, pairs=10, counted_on="train.spacy",
    method="spacy-calib.Isotonic.v1", table=[ROW], held_out=HeldOut(0.5, 0.25, 0.0625, 200, 0.25, 0.125, -0.25), spans=ENTITIES,
    versions={"spacy": "3"},
)  # fmt: skip


def test_the_plain_form_has_verdicts_and_rows():
    plain = INFO.state()
    off = {"off_raw": 0.25, "off": 0.125, "excess": -0.25}
    assert plain["held_out"] == {"raw": 0.5, "calibrated": 0.25, "error": 0.0625, "tokens": 200, **off, "verdict": "better"}
    assert plain["spans"]["held_out"]["verdict"] == "unclear"
    assert list(plain["table"][0].items()) == [
        ("group", "all"), ("tags", 3), ("share", 1.0), ("pairs", 10), ("hits", 7), ("raw", 0.125), ("calibrated", 0.0625), ("fallback", ""),
    ]  # fmt: skip
    assert plain["spans"]["table"][0]["fallback"] == "too few pairs"


@pytest.mark.parametrize("info", [INFO, FitInfo()])
def test_what_was_written_is_read_as_the_same(info):
    assert FitInfo.read(info.state()) == info


def test_groups_that_share_a_map_count_their_own_pairs():
    rng = np.random.default_rng(0)
    tags, scores = rng.integers(0, 3, 300), rng.random(300)
    hits = rng.random(300) < scores
    pairs = Pairs(np.arange(300), tags, scores, hits, 300)
    maps = GroupedRecalibrator(IsotonicRegression(), Groups(("all",), np.zeros(3, dtype=int))).fit(pairs)
    judged = JudgedPairs(pairs, scores**2, np.arange(300))
    rows = summarize_fit(judged, maps, Groups(("1", "2"), np.array([0, 0, 1])))
    assert rows[0].calibrated == pytest.approx(calibration_error(scores**2, hits))
    assert [(row.pairs, row.hits) for row in rows] == [
        (300, hits.sum()),
        ((tags < 2).sum(), hits[tags < 2].sum()),
        ((tags == 2).sum(), hits[tags == 2].sum()),
    ]
    assert {row.fallback for row in rows[1:]} == {"one for all tags"}
