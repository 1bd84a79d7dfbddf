"""The spaCy project for STREUSLE's lextags: its corpora, its configs for two heads each, and how its steps fit together."""

import gzip
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from papers import streusle_crf
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from tests.configs import CONFIGS, check_config_learns
from tests.configs.test_configs import minilm
from tests.forked import in_own_process

PROJECT = CONFIGS / "streusle_lsr"
SENTENCES = [
    ("reviews-1-0001", "They\tO-PRON fish\tO-V-v.social .\tO-PUNCT"),
    ("reviews-1-0002", "Bye\tO-INTJ"),
    ("reviews-2-0001", "#\tO-SYM 1\tO-NUM"),
]


def write_lextags(folder: Path) -> None:
    blocks = [
        f"# sent_id = {name}\n" + "\n".join(f"{w.split(chr(9))[0]}\tX\tY\t{w.split(chr(9))[1]}" for w in words.split(" "))
        for name, words in SENTENCES
    ]
    for split in ("train", "dev", "test"):
        path = folder / "streusle_lsr" / f"{split}.tsv.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(("\n\n".join(blocks) + "\n").encode()))


@in_own_process
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


def test_the_tagger_over_tok2vec_learns(tmp_path):
    """That over the MiniLM is the tagger of train_transformer.cfg."""
    vocab = Vocab()
    gold = [
        Doc(vocab, words=words, tags=tags)
        for words, tags in ((["They", "fish", "."], ["O-PRON", "O-V", "O-PUNCT"]), (["Bye"], ["O-INTJ"]))
    ]
    DocBin(docs=gold * 5).to_disk(tmp_path / "gold.spacy")
    paths = {"paths.train": str(tmp_path / "gold.spacy"), "paths.dev": str(tmp_path / "gold.spacy")}
    check_config_learns(PROJECT / "tok2vec.cfg", paths, "tagger")


@pytest.mark.filterwarnings("ignore")  # torch and transformers warn about each other
@pytest.mark.parametrize("name", ["tok2vec", "minilm"])
def test_the_crf_learns_over_the_encoder_of_a_config(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    vocab = Vocab()
    for split in ("train", "dev", "test"):
        gold = Doc(vocab, words=["They", "fish", ".", "Bye"], tags=["O-PRON", "O-V", "O-PUNCT", "O-INTJ"])
        DocBin(docs=[gold] * 5).to_disk(tmp_path / f"{split}.spacy")
    more = ["--transformer", str(minilm())] if name == "minilm" else []
    output = tmp_path / "training" / "crf.npz"
    streusle_crf.main([str(PROJECT / f"{name}.cfg"), str(output), "--corpus", str(tmp_path), "--steps", "30", *more])
    with np.load(output) as found:
        assert found["labels"].tolist() == ["O-INTJ", "O-PRON", "O-PUNCT", "O-V"]
        assert found["chances_test"].shape == (20, 4)
        assert found["chances_test"].sum(axis=1) == pytest.approx(np.ones(20), abs=1e-5)
        assert found["best_dev"].tolist() == [1, 3, 2, 0] * 5
