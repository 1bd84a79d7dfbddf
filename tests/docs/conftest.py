"""What a reader of the pages has: a pipeline in the place of en_core_web_sm, gold data, and what was fitted on it."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import catalogue
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from tests.conftest import TOK2VEC, examples_for, gold_doc, made_up_sentences, revive
from tests.docs.pages import Run, blocks_of
from tests.tiny_transformers import save_token_model

NAMES = {"dog": "ANIMAL", "cat": "ANIMAL", "duck": "ANIMAL", "light": "THING", "saw": "THING"}


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
    for _ in range(40):
        recognizer.update(examples, sgd=optimizer)


@pytest.fixture(autouse=True)
def registered_here() -> Iterator[None]:
    """What a page registers is forgotten behind it; what spaCy registers when it is first needed stays."""
    spacy.blank("xx")
    before = dict(catalogue.REGISTRY)
    yield
    catalogue.REGISTRY.clear()
    catalogue.REGISTRY.update(before)


@pytest.fixture(scope="session")
def workplace(trained_bytes, tmp_path_factory) -> Path:
    """A folder where the names of README.md exist. Not to be changed."""
    folder = tmp_path_factory.mktemp("readme")
    nlp = revive(trained_bytes)
    add_recognizer(nlp)
    nlp.to_disk(folder / "en_core_web_sm")
    for name, n, seed in (("dev", 80, 2), ("test", 60, 3), ("train", 100, 4), ("cutoffs", 240, 5), ("few", 12, 6)):
        docs = [with_entities(gold_doc(nlp.vocab, sentence)) for sentence in made_up_sentences(n, seed)]
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")
    return folder


@pytest.fixture
def provide(workplace, tmp_path, monkeypatch) -> Callable[[], Path]:
    """A function that makes a folder with gold and a pipeline in the place of en_core_web_sm, and goes there."""

    def place() -> Path:
        for given in workplace.iterdir():
            (tmp_path / given.name).symlink_to(given)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return place


@pytest.fixture(scope="session")
def components() -> None:
    """Of all packages, before `registered_here` forgets what a page registers."""


@pytest.fixture
def reader(components, tmp_path, monkeypatch) -> Callable[[Path], Run]:
    """A function that goes to an empty folder and begins a session there."""

    def begin(page: Path) -> Run:
        run = Run()
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)  # a reader's files can be imported
        if any(block.noted("needs extra") == "transformers" for block in blocks_of(page)):
            make_token_model(tmp_path / "my-token-model")
        return run

    return begin


def make_token_model(folder: Path) -> None:
    """A token classifier of Hugging Face, in the place of a reader's own; none where the package that loads it is not installed."""
    if importlib.util.find_spec("transformers"):
        sentences = made_up_sentences(100, 4)
        tags = [[f"B-{NAMES[w]}" if tag == "NOUN" and w in NAMES else "O" for w, tag in one] for one in sentences]
        save_token_model(folder, [[word for word, _ in one] for one in sentences], tags)
