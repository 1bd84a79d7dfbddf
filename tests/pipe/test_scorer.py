import sys

import numpy as np
import pytest
import spacy
import spacy.cli.package

from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.pipe.scorer import calib_scores, drop_performance, set_performance
from spacy_calib.types import Groups, Pairs
from tests.made import examples_before_calib


def test_the_figures_are_those_of_held_out_scores():
    """Two pairs of score .8, one of them a hit; held out they had .5: nothing is left of the error."""
    pairs = Pairs(np.array([0, 1]), np.array([0, 0]), np.array([0.8, 0.8]), np.array([True, False]), 2)
    judged = JudgedPairs(pairs, np.array([0.5, 0.5]), np.array([0, 1]), "document")
    figures = calib_scores(judged, Groups(("1",), np.array([0])), n_bins=1)
    assert figures["calib_smce_raw"] == pytest.approx(0.3)
    assert figures["calib_smce"] == pytest.approx(0.0)
    assert figures["calib_brier"] == pytest.approx(0.25)
    assert figures["calib_brier_raw"] == pytest.approx((0.04 + 0.64) / 2)
    assert figures["calib_gmce_per_group"]["1"]["pairs"] == 2


def test_older_figures_of_the_pipe_go_and_those_of_others_stay():
    nlp = spacy.blank("xx")
    set_performance(nlp, "calib", {"calib_smce": 1.0, "calib_span_smce": 2.0})
    set_performance(nlp, "calib_ent", {"calib_ent_smce": 2.5, "calib_ent_token_smce": 2.6})
    set_performance(nlp, "calib_ent", {"calib_ent_smce": 2.7})
    set_performance(nlp, "calib_two", {"calib_two_smce": 3.0})
    nlp.meta["performance"]["tag_acc"] = 0.9
    set_performance(nlp, "calib", {"calib_smce": 4.0})
    assert nlp.meta["performance"] == {"calib_smce": 4.0, "calib_ent_smce": 2.7, "calib_two_smce": 3.0, "tag_acc": 0.9}
    drop_performance(nlp, "calib")
    assert nlp.meta["performance"] == {"calib_ent_smce": 2.7, "calib_two_smce": 3.0, "tag_acc": 0.9}


def test_a_fit_tells_the_pipeline_which_tells_the_readme_of_its_package(fitted, tmp_path):
    fitted.to_disk(tmp_path / "calibrated")
    meta = spacy.util.load_meta(tmp_path / "calibrated" / "meta.json")
    performance = meta["performance"]
    assert performance["calib_smce"] < performance["calib_smce_raw"]
    assert sum(row["pairs"] for row in performance["calib_gmce_per_group"].values()) == fitted.get_pipe("calib").fit_info.pairs
    readme = sys.modules["spacy.cli.package"].generate_readme(meta)
    assert f"| `CALIB_SMCE` | {100 * performance['calib_smce']:.2f} |" in readme


def test_without_documents_to_hold_out_nothing_is_said(nlp):
    calib = nlp.add_pipe("calib", after="tagger")
    calib.fit(examples_before_calib(nlp, 1, 2))
    assert not nlp.meta.get("performance")
