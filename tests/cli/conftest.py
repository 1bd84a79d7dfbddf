"""The command line in this process or in one of its own, and small pipelines and gold files for it."""

import functools
import inspect
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import catalogue
import pytest
import spacy
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.tokens.underscore import Underscore
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config
from typer.testing import CliRunner

from spacy_calib.cli import load_command  # adds `calib` to the app of spaCy, as the entry point does for `python -m spacy`
from tests.conftest import LISTENER, TOK2VEC, gold_doc, made_once, made_up_sentences, revive
from tests.forked import alone

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    """code (int): Exit status. printed (str): All that was printed, as it was."""

    code: int
    printed: str

    @property
    def text(self) -> str:
        """What was printed, without colours and on one line: the terminal's width must not matter."""
        return " ".join(_COLOURS.sub("", self.printed).split())


def setting(path: str, value: object) -> str:
    """A dotted setting of the pipe `calib`, as `fit` takes it."""
    return f"--components.calib.{path}={value}"


CONTEXT, NO_CONTEXT = setting("context.when", "always"), setting("context", "null")
TAG_OFFSETS = setting("tag_offsets", "true")


def scaling(kind: str) -> str:
    """The setting of a scaling of this package: Temperature, Vector or Matrix."""
    return setting("scaling.@calib_scalings", f"spacy-calib.{kind}Scaling.v1")


def scores_at(kind: str, score: str = "_.score") -> tuple[str, str]:
    """The settings of a source of scores that a component left with each Span, Token or Doc."""
    return setting("source.@calib_sources", f"spacy-calib.{kind}Scores.v1"), setting("source.score", score)


def calib(*arguments: object) -> Outcome:
    """`python -m spacy calib ...` in this process; an exception that gets out (a user's traceback) fails the test."""
    return spacy_command("calib", *arguments)


@pytest.fixture(scope="module")
def registered_until_the_end() -> Iterator[None]:
    """What a command imports with --code stays in the process. Taken out again: what it put into our registries, and its extension attributes
    (no new process could import their functions, and spaCy hands all attributes to the processes that it starts)."""
    before = set(catalogue.REGISTRY)
    yield
    for key in set(catalogue.REGISTRY) - before:
        if key[1].startswith("calib_"):
            del catalogue.REGISTRY[key]
    for attributes in Underscore.get_state():
        for name, (_, _, getter, _) in list(attributes.items()):
            if getattr(getter, "__module__", None) == "python_code":
                del attributes[name]


def declared_kinds(command: str) -> dict[str, str]:
    """Parameter of a command -> the type of its value, as text."""
    run = load_command(command)
    hints = {
        name: eval(parameter.annotation, run.__globals__)
        for name, parameter in inspect.signature(run).parameters.items()
        if name != "overrides"
    }
    kinds = {name: get_args(hint)[0] for name, hint in hints.items()}
    return {name: kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind) for name, kind in kinds.items()}


def install(folder: Path, name: str, entry_points: str) -> None:
    """Write beside a package what `pip install` does: whoever has the folder on the path finds the entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf8")


def spacy_process(*arguments: object, cwd: Path, path: Path | None = None) -> Outcome:
    """`python -m spacy ...` in a process of its own. path (Path | None): A folder of more packages."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=alone(*filter(None, [path]), PYTHONIOENCODING="utf8"),
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout.decode("utf8"))


def refuses(outcome: Outcome, sentence: str | re.Pattern[str], code: int = 1) -> None:
    """The command ended with this status and this sentence, by its code (see `says`) or a part of it, and without a traceback."""
    assert re.search(re.escape(sentence) if isinstance(sentence, str) else sentence, outcome.text), (sentence, outcome.text)
    assert "Traceback" not in outcome.printed
    assert outcome.code == code


def json_of(*arguments: object) -> Any:
    """What a command prints with --format json; a progress bar may stand before it, and warnings after it."""
    printed = ok(calib(*arguments, "--format", "json")).printed
    return json.JSONDecoder().raw_decode(printed, printed.index("{"))[0]


def save_docs(path: Path, docs: list[Doc]) -> Path:
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def save_gold(path: Path, n: int, seed: int, vocab: object = None) -> Path:
    """n made-up sentences with gold of every kind."""
    vocab = Language().vocab if vocab is None else vocab
    return save_docs(path, [gold_doc(vocab, sentence) for sentence in made_up_sentences(n, seed)])


def ok(outcome: Outcome) -> Outcome:
    """The command succeeded."""
    assert outcome.code == 0, outcome.text
    return outcome


@pytest.fixture
def one_salt(monkeypatch) -> None:
    """Equal fits are equal to the byte: they take the same salt."""
    monkeypatch.setattr("spacy_calib.pipe.fitting.token_hex", lambda n: "00" * n)


@pytest.fixture(scope="session")
def model(trained_bytes, tmp_path_factory) -> Path:
    """A trained pipeline on disk: tok2vec, tagger, morphologizer, senter, trainable_lemmatizer. Not to be changed."""
    path = tmp_path_factory.mktemp("model") / "model"
    revive(trained_bytes).to_disk(path)
    return path


@pytest.fixture(scope="session")
def gold(tmp_path_factory) -> Path:
    """A folder with train.spacy (120 sentences), dev.spacy (120) and test.spacy (80). Not to be changed."""
    folder = tmp_path_factory.mktemp("gold")
    for name, n, seed in (("train", 120, 11), ("dev", 120, 12), ("test", 80, 13)):
        save_gold(folder / f"{name}.spacy", n, seed)
    return folder


def in_pairs(path: Path, output: Path) -> Path:
    """The Docs of a file, two in one: gold of sentence starts needs some inside of texts."""
    docs = docs_in(path)
    return save_docs(output, [Doc.from_docs(docs[i : i + 2]) for i in range(0, len(docs), 2)])


@pytest.fixture(scope="session")
def dev(gold) -> Path:
    return gold / "dev.spacy"


@pytest.fixture(scope="session")
def test_file(gold) -> Path:
    return gold / "test.spacy"


@pytest.fixture(scope="session")
def calibrated(model, dev, tmp_path_factory) -> Path:
    """The pipeline with a calib pipe fitted on dev.spacy. Not to be changed: see `calibrated_copy`."""
    return fitted_to(tmp_path_factory.mktemp("calibrated") / "calibrated", model, dev)


def fitted_to(path: Path, model: Path, data: Path, *options: object) -> Path:
    """Where `fit` wrote a pipeline with an isotonic map."""
    ok(calib("fit", model, data, path, "--method", "isotonic", "--silent", *options))
    return path


def token_scores(doc, attr="calib_ent") -> list[dict[str, float]]:
    """The scores of the labels of each token, which a pipe of entities has in its view alone."""
    view, scores = doc._.get(attr), [{} for _ in doc]
    for row, tag, score in zip(view.rows.tolist(), view.tags, view.calibrated.tolist(), strict=True):
        scores[row][tag] = score
    return scores


@pytest.fixture
def calibrated_copy(calibrated, tmp_path) -> Path:
    return Path(shutil.copytree(calibrated, tmp_path / "calibrated_copy"))


@pytest.fixture
def changed_model(trained_bytes, tmp_path) -> Callable[[Callable[[Language], None]], Path]:
    """A function that changes the trained pipeline and gives the path where it saved it."""

    def change(alter: Callable[[Language], None]) -> Path:
        nlp = revive(trained_bytes)
        alter(nlp)
        nlp.to_disk(tmp_path / "changed_model")
        return tmp_path / "changed_model"

    return change


NAMES = {
    "PER": ["Ann", "Bob Hill", "Kim", "Jordan", "Paris Hill", "Lee"],
    "LOC": ["Paris", "Jordan", "New York", "Rome", "Hill"],
    "ORG": ["Acme", "Bank of Rome", "Jordan", "Apple"],
}
TEMPLATES = [
    "PER lives in LOC .", "ORG bought ORG in LOC .", "PER saw the old dog .", "the old apple saw a duck .",
    "in LOC PER works for ORG .", "PER of ORG saw PER .", "in LOC PER PER bought ORG .",
]  # fmt: skip
TAG_OF = {
    "lives": "VERB", "bought": "VERB", "saw": "VERB", "works": "VERB", "in": "ADP", "of": "ADP", "for": "ADP", "the": "DET", "a": "DET",
    "old": "ADJ", ".": "PUNCT", "dog": "NOUN", "duck": "NOUN", "apple": "NOUN",
}  # fmt: skip
SPANS_KEY = "sc"
N_DOCS = 120
NER_MODEL = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner", "extra_state_tokens": False, "hidden_width": 16,
             "maxout_pieces": 2, "use_upper": True, "nO": None, "tok2vec": LISTENER}  # fmt: skip
SPANCAT = {"spans_key": SPANS_KEY, "suggester": {"@misc": "spacy.ngram_suggester.v1", "sizes": [1, 2, 3]}}


def entity_docs(n: int, seed: int, vocab: object = None, spans: bool = False) -> list[Doc]:
    """n Docs of two sentences with gold entities and tags, and span groups on request (which take long to read from a file).

    Some names are of several types, and one label in eight is drawn at random, so that no recognizer can be sure. The group "sc" holds
    the entities, and the last token of each longer one as a LOC of its own inside.
    """
    vocab = Language().vocab if vocab is None else vocab
    rng = random.Random(seed)
    return [Doc.from_docs([_entity_sentence(vocab, rng, spans) for _ in range(2)]) for _ in range(n)]


def _entity_sentence(vocab: object, rng: random.Random, with_spans: bool) -> Doc:
    words: list[str] = []
    entities: list[tuple[int, int, str]] = []
    for word in rng.choice(TEMPLATES).split():
        parts = rng.choice(NAMES[word]).split() if word in NAMES else [word]
        if word in NAMES:
            label = rng.choice(list(NAMES)) if rng.random() < 1 / 8 else word
            entities.append((len(words), len(words) + len(parts), label))
        words += parts
    tags = [TAG_OF.get(word, "PROPN") if rng.random() < 0.95 else "X" for word in words]
    doc = Doc(vocab, words=words, tags=tags, sent_starts=[i == 0 for i in range(len(words))])
    spans = [Span(doc, *entity) for entity in entities]
    doc.set_ents(spans, default="outside")
    if with_spans:
        doc.spans[SPANS_KEY] = spans + [Span(doc, span.end - 1, span.end, "LOC") for span in spans if len(span) > 1]
    return doc


@functools.cache
def trained_recognizer(factory: str) -> dict[str, Any]:
    """tok2vec, tagger, and a recognizer or span categorizer named as its factory, trained once for a moment: config and bytes.

    Its language is "xx", which loads twice as fast as English.
    """
    return made_once(factory, lambda: _train_recognizer(factory))


def _train_recognizer(factory: str) -> dict[str, Any]:
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    nlp.add_pipe("tagger", config={"model": {"tok2vec": LISTENER}})
    if factory.endswith("ner"):
        nlp.add_pipe(factory, config={"model": NER_MODEL})
    else:
        nlp.add_pipe(factory, config={**SPANCAT, "model": {"tok2vec": LISTENER}})
    examples = [
        Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in entity_docs(150, 21, nlp.vocab, spans=True)
    ]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(6):
        for start in range(0, len(examples), 25):
            nlp.update(examples[start : start + 25], sgd=optimizer)
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


def save_recognizer(factory: str, path: Path, alter: Callable[[Language], None] = lambda nlp: None) -> Path:
    """The pipeline of `trained_recognizer`, changed and saved."""
    nlp = revive_recognizer(factory)
    alter(nlp)
    nlp.to_disk(path)
    return path


def revive_recognizer(factory: str) -> Language:
    """The pipeline of `trained_recognizer`; a factory of ours, such as "calib_ner", has the weights of spaCy's."""
    name = factory.removeprefix("calib_")
    saved = trained_recognizer(name)
    config = saved["config"].copy()
    config["components"][name]["factory"] = factory
    return load_model_from_config(config).from_bytes(saved["bytes"])


def entity_examples(nlp: Language, n: int, seed: int) -> list[Example]:
    """Examples with an unannotated predicted Doc and gold entities and span groups."""
    docs = entity_docs(n, seed, nlp.vocab, spans=True)
    return [Example(doc, gold) for doc, gold in zip(bare_docs(nlp, docs), docs, strict=True)]


def copy_with(doc: Doc, kind: str, prefix: str = "") -> Doc:
    """The words of a Doc with nothing but its "tags", or its "ents". prefix (str): Of their types."""
    labels = [token.tag_ for token in doc]
    if kind == "ents":
        labels = [f"{token.ent_iob_}-{prefix}{token.ent_type_}" if token.ent_type_ else "O" for token in doc]
    words, spaces = [token.text for token in doc], [bool(token.whitespace_) for token in doc]
    return Doc(doc.vocab, words=words, spaces=spaces, **{kind: labels})


def bare_docs(nlp: Language, docs: list[Doc]) -> list[Doc]:
    """The same words without any annotation."""
    return [
        Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc]) for doc in docs
    ]


def docs_in(path: Path) -> list[Doc]:
    """The Docs of a file."""
    return list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))


def annotated(model: Path, data: Path) -> list[Doc]:
    """The Docs of a file as a pipeline annotates them."""
    nlp = spacy.load(model)
    return list(nlp.pipe(bare_docs(nlp, docs_in(data))))


def spacy_command(*arguments: object, input: str | None = None) -> Outcome:
    """`python -m spacy ...` in this process. input (str | None): What it reads from standard input."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=input)
    if not isinstance(result.exception, (SystemExit, type(None))):
        raise result.exception
    return Outcome(result.exit_code, result.output)


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture(scope="session")
def entity_gold(tmp_path_factory) -> Path:
    """A folder with train.spacy (150 documents), dev.spacy and test.spacy (N_DOCS each). Not to be changed."""
    folder = tmp_path_factory.mktemp("entity_gold")
    for name, n, seed in (("train", 150, 21), ("dev", N_DOCS, 22), ("test", N_DOCS, 23)):
        save_docs(folder / f"{name}.spacy", entity_docs(n, seed))
    return folder


@pytest.fixture(scope="session")
def span_gold(tmp_path_factory) -> Path:
    """A folder with dev.spacy and test.spacy, 60 documents with span groups each. Not to be changed."""
    folder = tmp_path_factory.mktemp("span_gold")
    for name, seed in (("dev", 24), ("test", 25)):
        save_docs(folder / f"{name}.spacy", entity_docs(60, seed, spans=True))
    return folder


@pytest.fixture(scope="session")
def entity_dev(entity_gold) -> Path:
    return entity_gold / "dev.spacy"


@pytest.fixture(scope="session")
def entity_test(entity_gold) -> Path:
    return entity_gold / "test.spacy"


@pytest.fixture(scope="session")
def ner_model(tmp_path_factory) -> Path:
    """tok2vec, tagger, ner on disk. Not to be changed."""
    return save_recognizer("ner", tmp_path_factory.mktemp("ner_model") / "model")


@pytest.fixture(scope="session")
def spancat_model(tmp_path_factory) -> Path:
    """tok2vec, tagger, spancat on disk. Not to be changed."""
    return save_recognizer("spancat", tmp_path_factory.mktemp("spancat_model") / "model")


@pytest.fixture(scope="session")
def calibrated_ner(ner_model, entity_dev, tmp_path_factory) -> Path:
    """The pipeline of `ner_model` with its recognizer calibrated on dev.spacy. Not to be changed."""
    return fitted_to(tmp_path_factory.mktemp("calibrated") / "ner", ner_model, entity_dev, "--component", "ner")


@pytest.fixture(scope="session")
def two_pipes(calibrated_ner, entity_dev, tmp_path_factory) -> Path:
    """The same with the tagger calibrated too. Not to be changed."""
    path = tmp_path_factory.mktemp("two_pipes") / "both"
    return fitted_to(path, calibrated_ner, entity_dev, "--component", "tagger")
