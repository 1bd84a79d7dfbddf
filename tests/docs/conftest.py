"""What a reader of the pages has: a pipeline in the place of en_core_web_sm, gold data, and what was fitted on it."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import catalogue
import pytest
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from tests.cli.conftest import calib
from tests.conftest import TOK2VEC, examples_for, gold_doc, made_up_sentences, revive
from tests.sources.parser import gold_examples, trained
from tests.tiny_transformers import save_token_model

NAMES = {"dog": "ANIMAL", "cat": "ANIMAL", "duck": "ANIMAL", "light": "THING", "saw": "THING"}
FITTED = {
    "calibrated": ("fit", "en_core_web_sm", "dev.spacy", "calibrated", "--method", "isotonic"),
    "sure": ("fit", "en_core_web_sm", "dev.spacy", "sure", "--component", "ner", "--method", "isotonic"),
    "accepting": ("threshold", "sure", "cutoffs.spacy", "--precision", "0.6", "--apply", "accepting"),
}


def with_entities(doc: Doc) -> Doc:
    """Some nouns are entities; which type the others would be of, nobody knows."""
    doc.set_ents(
        [Span(doc, t.i, t.i + 1, NAMES[t.text]) for t in doc if t.tag_ == "NOUN" and t.text in NAMES], default="outside"
    )
    return doc


def add_recognizer(nlp: Language) -> None:
    """A recognizer with an embedding of its own, trained for a moment."""
    recognizer = nlp.add_pipe("ner", config={"model": {"tok2vec": TOK2VEC}})
    examples = examples_for(nlp, 60, seed=1)
    for example in examples:
        with_entities(example.reference)
    recognizer.initialize(lambda: examples, nlp=nlp)
    optimizer = nlp.create_optimizer()
    for _ in range(12):
        recognizer.update(examples, sgd=optimizer)


@pytest.fixture(autouse=True)
def registered_here() -> Iterator[None]:
    """What a page registers is forgotten behind it."""
    before = dict(catalogue.REGISTRY)
    yield
    catalogue.REGISTRY.clear()
    catalogue.REGISTRY.update(before)


@pytest.fixture(scope="session")
def workplace(trained_bytes, tmp_path_factory) -> Path:
    """A folder where the names of README.md and of the how-to pages exist. Not to be changed."""
    folder = tmp_path_factory.mktemp("readme")
    nlp = revive(trained_bytes)
    add_recognizer(nlp)
    nlp.to_disk(folder / "en_core_web_sm")
    for name, n, seed in (("dev", 80, 2), ("test", 60, 3), ("train", 100, 4), ("cutoffs", 80, 5), ("few", 12, 6)):
        docs = [with_entities(gold_doc(nlp.vocab, sentence)) for sentence in made_up_sentences(n, seed)]
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")
    return folder


@pytest.fixture
def provide(workplace, tmp_path, monkeypatch) -> Callable[[list[str]], Path]:
    """A function that makes a folder with gold, the pipeline and these of FITTED, and goes there."""

    def fitted(name: str) -> Path:
        path = workplace / name
        if not path.exists():
            if name == "accepting":
                fitted("sure")
            monkeypatch.chdir(workplace)
            outcome = calib(*FITTED[name], "--silent")
            assert outcome.code == 0, outcome.text
        return path

    def place(names: list[str]) -> Path:
        for file in workplace.glob("*.spacy"):
            (tmp_path / file.name).symlink_to(file)
        if "my-token-model" in names and importlib.util.find_spec("spacy_huggingface_pipelines"):
            sentences = made_up_sentences(100, 4)
            tags = [[f"B-{NAMES[w]}" if tag == "NOUN" and w in NAMES else "O" for w, tag in one] for one in sentences]
            save_token_model(tmp_path / "my-token-model", [[word for word, _ in one] for one in sentences], tags)
        (tmp_path / "en_core_web_sm").symlink_to(workplace / "en_core_web_sm")
        for name in set(names) & set(FITTED):
            shutil.copytree(fitted(name), tmp_path / name)
        if "my_parser" in names:
            nlp = trained()
            nlp.to_disk(tmp_path / "my_parser")
            for part, n, seed in (("dev", 60, 2), ("test", 40, 3)):
                trees = [example.reference for example in gold_examples(nlp, n, seed)]
                DocBin(docs=trees).to_disk(tmp_path / f"{part}_trees.spacy")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return place
