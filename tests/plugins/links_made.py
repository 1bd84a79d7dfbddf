"""A small pipeline that links entities, and gold for it: names of three identities each, which the words around tell apart more or less."""

from typing import Any

import numpy as np
from spacy import blank
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config

from tests.conftest import made_once

TOPICS = {"place": ("river", "town", "coast"), "band": ("song", "stage", "drum"), "firm": ("share", "boss", "trade")}
NAMES = ("Georgia", "Amazon", "Dakota")
PRIORS = (0.5, 0.3, 0.1)
UNKNOWN = "Zorb"
_TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 8, "depth": 1, "embed_size": 200, "window_size": 1,
    "maxout_pieces": 2, "subword_features": False,
}  # fmt: skip


def identity(name: str, topic: str) -> str:
    return f"{name}-{topic}"


def link_docs(n: int, seed: int) -> list[Doc]:
    """Documents of two sentences with a name each; one name of eight is in no knowledge base, and one of eight of the others means nothing there."""
    rng, docs, vocab, topics = np.random.default_rng([seed, 7]), [], Language().vocab, list(TOPICS)
    for _ in range(n):
        words: list[str] = []
        links: list[tuple[int, str]] = []
        starts: list[bool] = []
        for _ in range(2):
            topic = topics[rng.choice(3, p=np.array(PRIORS) / sum(PRIORS))]
            about = [str(rng.choice(TOPICS[topic if rng.random() < 0.7 else topics[rng.integers(3)]])) for _ in range(3)]
            name = UNKNOWN if rng.random() < 1 / 8 else str(rng.choice(NAMES))
            known = name != UNKNOWN and rng.random() < 7 / 8
            links.append((len(words) + 2, identity(name, topic) if known else "NIL" if rng.random() < 0.8 else "elsewhere"))
            words += ["the", about[0], name, "and", about[1], about[2], "."]
            starts += [True, *[False] * 6]
        doc = Doc(vocab, words=words, sent_starts=starts)
        doc.ents = [Span(doc, place, place + 1, label="NAME", kb_id=link) for place, link in links]
        docs.append(doc)
    return docs


def knowledge(vocab: Any) -> InMemoryLookupKB:
    kb = InMemoryLookupKB(vocab, entity_vector_length=3)
    for name in NAMES:
        own = [identity(name, topic) for topic in TOPICS]
        for link, vector in zip(own, np.eye(3).tolist(), strict=True):
            kb.add_entity(link, 10, vector)
        kb.add_alias(name, own, PRIORS)
    return kb


def linking(**settings: Any) -> Language:
    """Sentences, entities by their words, and a trained linker. settings: Of the linker."""

    def train() -> dict[str, Any]:
        fix_random_seed(0)
        nlp = blank("xx")
        nlp.add_pipe("sentencizer")
        nlp.add_pipe("entity_ruler").add_patterns(
            [{"label": "NAME", "pattern": [{"ORTH": name}]} for name in (*NAMES, UNKNOWN)]
        )
        model = {"@architectures": "spacy.EntityLinker.v2", "tok2vec": _TOK2VEC}
        linker: Any = nlp.add_pipe("entity_linker", config={"model": model, "entity_vector_length": 3, "use_gold_ents": False})
        gold = link_docs(40, 60)
        examples = [
            Example(nlp.get_pipe("entity_ruler")(nlp.get_pipe("sentencizer")(nlp.make_doc(doc.text))), doc) for doc in gold
        ]
        linker.initialize(lambda: examples, nlp=nlp, kb_loader=knowledge)
        optimizer = nlp.create_optimizer()
        for _ in range(15):
            linker.update(examples, sgd=optimizer)
        return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}

    saved = made_once("linking", train)
    nlp = load_model_from_config(saved["config"]).from_bytes(saved["bytes"])
    linker: Any = nlp.get_pipe("entity_linker")
    for name, value in settings.items():
        setattr(linker, name, value)
    return nlp
