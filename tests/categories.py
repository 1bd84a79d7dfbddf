"""Made-up texts with categories, and categorizers that were trained on them for a moment."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config, registry

from tests.conftest import made_once

# Before spaCy 3.7.5 the table of a bag of words has 262,144 rows.
SMALL_TABLE = registry.has("architectures", "spacy.TextCatBOW.v3")
WORDS = {"film": ["actor", "scene", "plot"], "music": ["song", "band", "tune"], "food": ["bread", "soup", "wine"]}
EVERYWHERE = ["the", "a", "was", "good", "bad", "long", "new"]


def category_docs(n: int, seed: int, several: bool = False, vocab: object = None) -> list[Doc]:
    """n short texts with gold categories that their words tell nearly always. several (bool): Whether a text may have some of them, or none.

    Where a text has one, every twentieth has another than its words tell: a categorizer that is unsure must be wrong now and then.
    """
    rng = random.Random(seed)
    vocab = Language().vocab if vocab is None else vocab
    docs = []
    for _ in range(n):
        own = [name for name in WORDS if rng.random() < 0.4] if several else [rng.choice(list(WORDS))]
        words = [word for name in own for word in rng.sample(WORDS[name], 2)] + rng.sample(EVERYWHERE, 3)
        words += [rng.choice(WORDS[name]) for name in WORDS if rng.random() < 0.3]
        rng.shuffle(words)
        doc = Doc(vocab, words=words)
        if not several and len(docs) % 20 == 9:
            own = [next(name for name in WORDS if name not in own)]
        doc.cats = {name: float(name in own) for name in WORDS}
        docs.append(doc)
    return docs


def bare(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Examples whose predicted Docs hold the same words and nothing else."""
    return [Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in docs]


def model_of(factory: str) -> dict[str, Any]:
    """A bag of words, with a small table where spaCy lets one choose."""
    bow = {"exclusive_classes": factory == "textcat", "ngram_size": 1, "no_output_layer": False}
    table = {"length": 1024} if SMALL_TABLE else {}
    return {"model": {"@architectures": f"spacy.TextCatBOW.v{3 if SMALL_TABLE else 2}", **bow, **table}}


@cache
def trained_categorizer(factory: str) -> dict[str, Any]:
    """A pipeline of one `textcat` or `textcat_multilabel`, with labels film, music, food: config and bytes."""
    return made_once(factory, lambda: _train(factory))


def _train(factory: str) -> dict[str, Any]:
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory, config=model_of(factory))
    examples = bare(nlp, category_docs(100, 31, factory != "textcat", nlp.vocab))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(12):
        nlp.update(examples, sgd=optimizer)
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


def revive_categorizer(factory: str = "textcat") -> Language:
    saved = trained_categorizer(factory)
    return load_model_from_config(saved["config"]).from_bytes(saved["bytes"])


def fitted_categorizer(factory: str = "textcat", n: int = 120, **settings: Any) -> Language:
    """The same with a calib pipe fitted on n texts."""
    nlp = revive_categorizer(factory)
    source = {"@calib_sources": "spacy-calib.Textcat.v1", "component": factory}
    grouping = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 1}
    calib = nlp.add_pipe("calib", config={"source": source, "grouping": grouping, **settings})
    calib.fit(categorized(nlp, category_docs(n, 32, factory != "textcat", nlp.vocab)))
    return nlp


def categorized(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Examples whose predicted Docs have passed the pipes before `calib`."""
    examples = bare(nlp, docs)
    with nlp.select_pipes(disable=["calib"] if "calib" in nlp.pipe_names else []):
        for example in examples:
            example.predicted = nlp(example.predicted)
    return examples
