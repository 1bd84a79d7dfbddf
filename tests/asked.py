"""A language model that is none: its answers are made of the text, with numbers that a seed makes of it, and are right as often as some of them say."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_calib.registry import registry

ASK = "tests.Asked.v1"
TYPES = {"person": "PER", "place": "LOC"}
WORDS = ["Ann", "Rome", "Kim", "Oslo", "tree", "house", "of", "lights"]


RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> dict[str, Any]:
    """What a real tool returned, see recorded/README.md: its "response", and the "text" that was asked about."""
    held: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf8"))
    return held


def say(text: str) -> list[tuple[str, str, float, float]]:
    """Of each name its type, the probability of its tokens, and that of the type, which alone says how often it is right."""
    rng = random.Random(text)
    names = re.findall(r"[A-Z]\w+", text)
    return [(name, rng.choice(list(TYPES)), rng.uniform(0.2, 1.0), rng.uniform(0.5, 1.0)) for name in names]


def respond(text: str) -> dict[str, Any]:
    """A response of a chat, as a server would give it."""
    content = []
    for name, kind, own, of_type in say(text):
        other = next(other for other in TYPES if other != kind)
        tops = [
            {"token": f" {kind}", "logprob": math.log(of_type)},
            {"token": f" {other}", "logprob": math.log(max(1e-9, 1 - of_type))},
        ]
        content += [{"token": name, "logprob": math.log(own)}, {"token": " ->", "logprob": 0.0}]
        content += [{"token": f" {kind}", "logprob": math.log(of_type), "top_logprobs": tops}, {"token": "\n", "logprob": 0.0}]
    return {"choices": [{"message": {"content": "".join(one["token"] for one in content)}, "logprobs": {"content": content}}]}


def make_asked(log: str = "") -> Any:
    """log (str): A file that gets a line for each text that is asked for."""

    def ask(text: str) -> dict[str, Any]:
        if log:
            with open(log, "a", encoding="utf8") as file:
                file.write("asked\n")
        return respond(text)

    return ask


def register() -> None:
    registry.calib_asks(ASK, func=make_asked)


def asking(**settings: Any) -> Language:
    """A pipeline that asks."""
    register()
    nlp = spacy.blank("xx")
    nlp.add_pipe("calib_answers", name="names", config={"ask": {"@calib_asks": ASK}, "types": TYPES, **settings})
    return nlp


def gold_docs(n: int, seed: int, key: str = "") -> list[Doc]:
    """Sentences with gold for such answers: a name is right as often as the probability of its type, from .5 to 1, goes from 0 to 1."""
    rng, vocab = random.Random(seed), spacy.blank("xx").vocab
    docs = []
    for at in range(n):
        words = [*(rng.choice(WORDS) for _ in range(rng.randint(4, 8))), str(at), str(seed)]
        doc = Doc(vocab, words=words)
        found = [(i, token.text) for i, token in enumerate(doc) if token.text[0].isupper()]
        right = [
            Span(doc, i, i + 1, TYPES[kind])
            for (i, _), (_, kind, _, sure) in zip(found, say(doc.text), strict=True)
            if rng.random() < 2 * sure - 1
        ]
        if key:
            doc.spans[key] = right
        doc.set_ents(right, default="outside")
        docs.append(doc)
    return docs


def n_asked(log: Path) -> int:
    return len(log.read_text(encoding="utf8").splitlines()) if log.exists() else 0
