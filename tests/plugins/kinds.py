"""A small fitted pipeline of every kind of thing that can be calibrated, with gold to judge it on."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import load_model_from_config

from tests.asked import asking, gold_docs
from tests.cli.conftest import calib, entity_docs, revive_recognizer, save_docs
from tests.conftest import WORDS, gold_doc, made_once, made_up_sentences, train_pipeline
from tests.made import CATEGORY_WORDS as CATEGORIES
from tests.made import category_docs, revive_categorizer
from tests.plugins.links_made import link_docs, linking
from tests.sources.parser import gold_doc as tree_doc
from tests.sources.parser import trained as trained_parser

N_FIT, N_TEST = 40, 14
TAGS = tuple(WORDS)
GUESSED = "guessed"


class Guesser:
    """What somebody's component leaves on a Doc: names with a score each, a number and probabilities for each token, scores of categories."""

    def __call__(self, doc: Doc) -> Doc:
        rng = random.Random(doc.text)
        names = [token.i for token in doc if token.text[:1].isupper()]
        spans = [Span(doc, i, i + 1, rng.choice(["PER", "LOC", "ORG"])) for i in names]
        doc.spans[GUESSED] = spans
        doc.spans[GUESSED].attrs["scores"] = [rng.uniform(0.4, 1.0) for _ in spans]
        rows = np.array([[4.0 * (token.text in WORDS[tag]) + rng.random() for tag in TAGS] for token in doc])
        doc.user_data["rows"] = rows / rows.sum(axis=1, keepdims=True)
        doc.user_data["numbers"] = [rng.uniform(0.4, 1.0) for _ in doc]
        found = [3.0 ** sum(token.text in words for token in doc) for words in CATEGORIES.values()]
        doc.user_data["categories"] = {name: n / sum(found) for name, n in zip(CATEGORIES, found, strict=True)}
        return doc


@Language.factory("kinds_guesser")
def make_guesser(nlp: Language, name: str) -> Guesser:
    return Guesser()


def guessing() -> Language:
    nlp = tagger()
    nlp.add_pipe("kinds_guesser", last=True)
    return nlp


def source(name: str, **settings: Any) -> str:
    """The block of a source in a config."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"@calib_sources": f"spacy-calib.{name}.v1", **settings}.items()]
    return "\n".join(lines) + "\n"


def tagger() -> Language:
    saved = made_once("kinds_tagger", lambda: pack(train_pipeline(["tagger"])))
    return load_model_from_config(saved["config"]).from_bytes(saved["bytes"])


def pack(nlp: Language) -> dict[str, Any]:
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


def tag_docs(n: int, seed: int) -> list[Doc]:
    vocab = Language().vocab
    return [gold_doc(vocab, sentence) for sentence in made_up_sentences(n, seed)]


def guessed_docs(n: int, seed: int) -> list[Doc]:
    """Documents whose names are the spans of the group of the guesser."""
    docs = entity_docs(n, seed)
    for doc in docs:
        doc.spans[GUESSED] = [Span(doc, token.i, token.i + 1, token.ent_type_) for token in doc if token.ent_type_]
    return docs


def tree_docs(n: int, seed: int) -> list[Doc]:
    rng, vocab = np.random.default_rng(seed), Language().vocab
    return [tree_doc(vocab, rng) for _ in range(n)]


@dataclass(frozen=True)
class Kind:
    """pipeline (Callable): With the component. docs (Callable): (n, seed) -> gold. component (str): For --component; "" takes `source`.
    source (str): The block of the source in the config. method (str): Of the fit.
    """

    pipeline: Callable[[], Language]
    docs: Callable[[int, int], list[Doc]]
    component: str = ""
    source: str = ""
    method: str = "isotonic"


_SEVERAL = "textcat_multilabel"
KINDS = {
    "tags": Kind(tagger, tag_docs, "tagger"),
    "entities": Kind(lambda: revive_recognizer("ner"), entity_docs, "ner"),
    "spans": Kind(partial(revive_recognizer, "spancat"), partial(entity_docs, spans=True), "spancat"),
    "categories": Kind(revive_categorizer, category_docs, "textcat"),
    "several categories": Kind(partial(revive_categorizer, _SEVERAL), partial(category_docs, several=True), _SEVERAL),
    # The source learns the weights of its features itself; a map behind them is worse than none for so few links, and is refused.
    "links": Kind(linking, lambda n, seed: link_docs(2 * n, seed), "entity_linker", method="identity"),
    # Of fewer trees a fit is worse than the raw scores where training took other turns, and is refused.
    "arcs": Kind(trained_parser, lambda n, seed: tree_docs(3 * n if n == N_FIT else n, seed), "parser"),
    "span scores": Kind(guessing, guessed_docs, source=source("SpanScores", spans_key=GUESSED, labels=["PER", "LOC", "ORG"])),
    "answers": Kind(asking, lambda n, seed: gold_docs(8 * n if n == N_FIT else n, seed), "names"),
    "token scores": Kind(guessing, tag_docs, source=source("TokenScores", score="numbers", labels=TAGS)),
    "document scores": Kind(guessing, category_docs, source=source("DocScores", score="categories", labels=list(CATEGORIES))),
    "arrays": Kind(guessing, tag_docs, source=source("DocTensor", key="rows", labels=TAGS)),
}


@dataclass
class Made:
    """A kind in a folder: its pipeline before and after the fit, and gold. read_by (list): Options that say what is calibrated. method (str): See Kind."""

    folder: Path
    read_by: list[str] = field(default_factory=list)
    method: str = "isotonic"

    @property
    def how(self) -> list[str]:
        """What `calib fit` needs to be told."""
        return ["--method", self.method, "--groups", "1", *self.read_by]

    def __getattr__(self, name: str) -> Path:
        return self.folder / (f"{name}.spacy" if name in ("dev", "test", "few") else name)


def make(kind: Kind, folder: Path) -> Made:
    """Everything but `fitted`, which the first call of a command makes."""
    made = Made(folder, [], kind.method)
    kind.pipeline().to_disk(folder / "model")
    for name, n, seed in (("dev", N_FIT, 61), ("test", N_TEST, 62), ("few", 5, 63)):
        save_docs(folder / f"{name}.spacy", kind.docs(n, seed))
    if kind.component:
        made.read_by += ["--component", kind.component]
    else:
        config = f'[components]\n[components.calib]\nfactory = "calib"\n[components.calib.source]\n{kind.source}'
        (folder / "own.cfg").write_text(config)
        made.read_by += ["--config", str(folder / "own.cfg")]
    return made


def fit(made: Made, output: str, *options: str) -> Any:
    return calib("fit", made.model, made.dev, made.folder / output, *made.how, *options)
