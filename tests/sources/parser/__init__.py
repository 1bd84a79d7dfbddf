"""Parsers with random weights, and a trained one, over a made-up language in which some attachments cannot be known."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import spacy
from spacy.lang.xx import MultiLanguage
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from spacy.vocab import Vocab

from tests.conftest import train_briefly
from tests.sources.ner import TOK2VEC, Shape, randomize

# One of them was lifted from a head with the label "obj", to make its tree projective.
LABELS = ("nsubj", "obj", "case", "obl||obj", "punct")


def random_parser(shape: Shape = Shape(), seed: int = 0) -> Any:
    """A pipeline with a parser of LABELS whose weights are random, so that odd trees occur."""
    nlp: Any = spacy.blank("xx")
    parser = nlp.add_pipe("parser", config={"model": shape.model(state_type="parser")})
    examples = gold_examples(nlp, 4, seed=1)
    parser.initialize(lambda: examples, nlp=nlp, labels=label_data())
    randomize(parser, seed)
    return nlp


def label_data() -> dict[str, dict[str, int]]:
    """What a parser of LABELS is initialized with: move -> label -> frequency. Labels that are added later are not saved in their order."""
    arcs = {label: 50 - i for i, label in enumerate(LABELS)}
    return {"0": {"": 100}, "1": {"": 100}, "2": {**arcs, "dep": 1}, "3": {**arcs, "dep": 1}, "4": {"ROOT": 50}}


def with_ours(nlp: Language) -> Any:
    """The same pipeline and weights; the parser keeps its probabilities."""
    config = nlp.config.copy()
    config["components"]["parser"]["factory"] = "calib_parser"
    return MultiLanguage.from_config(config).from_bytes(nlp.to_bytes(), exclude=["tokenizer"])


@cache
def twins(shape: Shape = Shape(), seed: int = 0) -> tuple[Any, Any]:
    """(spaCy's parser, ours) with the same random weights; made once, so they must not be changed."""
    stock = random_parser(shape, seed)
    return stock.get_pipe("parser"), with_ours(stock).get_pipe("parser")


def arcs_of(docs: Sequence[Doc]) -> list[list[tuple[int, str, bool]]]:
    return [[(token.head.i, token.dep_, token.is_sent_start) for token in doc] for doc in docs]


def parse(parser: Any, docs: Sequence[Doc]) -> list[list[tuple[int, str, bool]]]:
    """Run a parser; (head, label, sentence start) of every token of every Doc."""
    parser.set_annotations(docs, parser.predict(docs))
    return arcs_of(docs)


NOUNS, VERBS = ["dog", "duck", "king"], ["saw", "met"]


def gold_doc(vocab: Vocab, rng: np.random.Generator) -> Doc:
    """Two sentences like "dog saw king with duck .", where nobody can know what "with duck" depends on."""
    words, heads, deps, starts = [], [], [], []
    for _ in range(2):
        first = len(words)
        sentence = [rng.choice(NOUNS), rng.choice(VERBS), rng.choice(NOUNS)]
        own_heads, own_deps = [1, 1, 1], ["nsubj", "ROOT", "obj"]
        if rng.random() < 0.6:
            to_verb = rng.random() < 0.5
            sentence += ["with", rng.choice(NOUNS)]
            own_heads, own_deps = [*own_heads, 4, 1 if to_verb else 2], [*own_deps, "case", "obl" if to_verb else "nmod"]
        if rng.random() < 0.7:
            sentence, own_heads, own_deps = [*sentence, "."], [*own_heads, 1], [*own_deps, "punct"]
        words += map(str, sentence)
        heads += [first + head for head in own_heads]
        deps += own_deps
        starts += [True] + [False] * (len(sentence) - 1)
    return Doc(vocab, words=words, heads=heads, deps=deps, sent_starts=starts)


def gold_examples(nlp: Language, n: int, seed: int) -> list[Example]:
    """Examples with an unannotated predicted Doc."""
    rng = np.random.default_rng(seed)
    golds = [gold_doc(nlp.vocab, rng) for _ in range(n)]
    return [Example(Doc(nlp.vocab, words=[token.text for token in gold]), gold) for gold in golds]


@cache
def _train_parser() -> Any:
    """Trained for a moment, so that scores are neither 0 nor 1."""
    fix_random_seed(0)
    nlp: Any = spacy.blank("xx")
    nlp.add_pipe("parser", config={"model": Shape().model(TOK2VEC, "parser"), "min_action_freq": 1})
    return train_briefly(nlp, gold_examples(nlp, 40, seed=1), 20, 0.01)


def trained(factory: str = "parser") -> Any:
    """A copy of the trained pipeline, with spaCy's parser or ours."""
    saved = _train_parser()
    config = saved["config"].copy()
    config["components"]["parser"]["factory"] = factory
    return MultiLanguage.from_config(config).from_bytes(saved["bytes"], exclude=["tokenizer"])
