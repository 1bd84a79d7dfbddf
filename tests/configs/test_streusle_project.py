"""The spaCy project for STREUSLE's lextags: its corpora, its configs for two heads each, and how its steps fit together."""

from __future__ import annotations

import gzip
import runpy
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import srsly
import streusle_pictures
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from streusle_pictures import NONE, TECHNIQUES

from tests.configs import CONFIGS, check_config_learns
from tests.configs.test_configs import minilm

PROJECT = CONFIGS / "streusle_lsr"
SENTENCES = [
    ("reviews-1-0001", "They\tO-PRON fish\tO-V-v.social .\tO-PUNCT"),
    ("reviews-1-0002", "Bye\tO-INTJ"),
    ("reviews-2-0001", "#\tO-SYM 1\tO-NUM"),
]


def project() -> dict:
    return srsly.read_yaml(PROJECT / "project.yml")


def write_lextags(folder: Path) -> None:
    blocks = [
        f"# sent_id = {name}\n" + "\n".join(f"{w.split(chr(9))[0]}\tX\tY\t{w.split(chr(9))[1]}" for w in words.split(" "))
        for name, words in SENTENCES
    ]
    for split in ("train", "dev", "test"):
        path = folder / "streusle_lsr" / f"{split}.tsv.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(("\n\n".join(blocks) + "\n").encode()))


def test_a_doc_is_a_review(tmp_path, monkeypatch):
    write_lextags(tmp_path)
    monkeypatch.setenv("SPACY_CALIB_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "argv", ["convert.py", str(tmp_path / "corpus")])
    runpy.run_path(str(PROJECT / "scripts" / "convert.py"), run_name="__main__")
    docs = list(DocBin().from_disk(tmp_path / "corpus" / "dev.spacy").get_docs(Vocab()))
    assert [" ".join(token.tag_ for token in doc) for doc in docs] == ["O-PRON O-V-v.social O-PUNCT O-INTJ", "O-SYM O-NUM"]
    assert [len(list(doc.sents)) for doc in docs] == [2, 1]
    assert docs[1][0].text == "#"


def pipelines() -> list[tuple[str, list[str]]]:
    """(config, pipeline) of each `spacy train` in the project."""
    lines = [shlex.split(line) for command in project()["commands"] for line in command["script"] if " spacy train " in line]
    return [(words[4], srsly.json_loads(words[words.index("--nlp.pipeline") + 1])) for words in lines]


@pytest.mark.filterwarnings("ignore")  # torch and transformers warn about each other
@pytest.mark.parametrize(("name", "pipeline"), [one for one in pipelines() if one != ("minilm.cfg", ["transformer", "tagger"])])
def test_heads_of_a_config_learn(tmp_path, monkeypatch, name, pipeline):
    """The MiniLM's tagger is that of train_transformer.cfg."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    vocab = Vocab()
    gold = [
        Doc(vocab, words=words, tags=tags)
        for words, tags in ((["They", "fish", "."], ["O-PRON", "O-V", "O-PUNCT"]), (["Bye"], ["O-INTJ"]))
    ]
    DocBin(docs=gold * 5).to_disk(tmp_path / "gold.spacy")
    paths = {"paths.train": str(tmp_path / "gold.spacy"), "paths.dev": str(tmp_path / "gold.spacy"), "nlp.pipeline": pipeline}
    if name == "minilm.cfg":
        paths["paths.transformer"] = str(minilm())
    nlp = check_config_learns(PROJECT / name, paths, pipeline[1])
    assert nlp.pipe_names == pipeline


def test_the_pictures_show_all_of_each_model_whichever_comes_first(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    kept = []
    monkeypatch.setattr(streusle_pictures, "save_figure", lambda path, figure, dpi: kept.append(figure))
    models = [SimpleNamespace(name=name, groups=[0]) for name in ("small", "large")]
    rows = [
        SimpleNamespace(model=model.name, method=method, smce=SimpleNamespace(error=error, floor=0.01))
        for model, error in zip(models, (0.02, 0.09), strict=True)
        for method in (NONE, *(f"{kind} {name}" for kind in ("SCW", "TFG") for name in TECHNIQUES))
    ]
    streusle_pictures.draw(tmp_path / "smce.png", models, rows, by_group=False)
    (figure,) = kept
    for ax in figure.axes:
        assert ax.get_xlim()[0] == 0
        assert ax.get_xlim()[1] > 0.09
