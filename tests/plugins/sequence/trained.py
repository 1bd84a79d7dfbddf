"""Small trained labellers, one of each factory, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from tests.conftest import revive

FACTORIES = ("calib_crf", "calib_hmm", "calib_online", "calib_crfsuite")
# Words whose tag only the word before tells: "a" after "x" is an N, else a V.
WORDS = ["x", "a", "y", "a", "x", "a", "a", "y"]
TAGS = ["X", "N", "Y", "V", "X", "N", "V", "Y"]
SMALL = {
    "@architectures": "spacy-calib.Chain.v1",
    "tok2vec": {
        "@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 16, "depth": 1, "embed_size": 50,
        "window_size": 1, "maxout_pieces": 2, "subword_features": False,
    },
}  # fmt: skip


def tagged(nlp: Language, words: list[str] = WORDS, tags: list[str] = TAGS) -> Example:
    return Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags))


def with_entities(nlp: Language) -> list[Example]:
    doc = Doc(nlp.vocab, words=["in", "New", "York", "Ann", "ran"])
    doc.set_ents([Span(doc, 1, 3, "LOC"), Span(doc, 3, 4, "PER")])
    return [Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc)]


def train_labeller(factory: str, examples_of: Callable[[Language], list[Example]], target: str, rounds: int) -> Language:
    """A pipeline of one labeller, trained on the examples that `examples_of` makes for it."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory, config={**({"model": SMALL} if factory == "calib_crf" else {}), "target": target})
    examples = examples_of(nlp)
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(rounds):
        nlp.update(examples, sgd=optimizer)
    return nlp


@cache
def _trained_once(factory: str, target: str) -> dict[str, object]:
    examples_of = with_entities if target == "ents" else lambda nlp: [tagged(nlp)]
    nlp = train_labeller(factory, examples_of, target, 15 if factory in ("calib_crf", "calib_online") else 0)
    return {"config": nlp.config, "bytes": nlp.to_bytes()}


def trained_labeller(factory: str, target: str = "tag") -> Language:
    """A pipeline of one labeller, as if it had just been loaded."""
    skip_without_crfsuite(factory)
    return revive(_trained_once(factory, target))


def skip_without_crfsuite(factory: str) -> None:
    if factory == "calib_crfsuite":
        pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")


def online_learner(rounds: int = 5, tags: list[str] = TAGS, **config):
    """(a pipeline of `calib_online`, the component, the loss of each round), trained on three equal texts."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("calib_online", config={"features": ["ORTH[0]", "ORTH[-1] ORTH[0]"], **config})
    examples = [tagged(nlp, tags=tags) for _ in range(3)]
    nlp.initialize(lambda: examples)
    return nlp, pipe, [nlp.update(examples)["calib_online"] for _ in range(rounds)]
