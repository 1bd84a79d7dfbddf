"""Made-up documents with gold clusters: Anna and Tom are she and he, and things are met again by their heads."""

from __future__ import annotations

import random

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

PEOPLE = {"Anna": "she", "Mary": "she", "Tom": "he", "Paul": "he"}
THINGS = ("house", "dog", "book", "car")


def gold_doc(nlp: Language, seed: int, sentences: int = 4) -> Doc:
    """ "Anna saw a house . she liked the house ." and so on; mentions in one cluster where they are the same person or thing."""
    rng = random.Random(seed)
    words: list[str] = []
    starts: list[bool] = []
    mentions: list[tuple[int, int, str]] = []
    for _ in range(sentences):
        person, thing = rng.choice(list(PEOPLE)), rng.choice(THINGS)
        for subject, verb, article in ((person, "saw", "a"), (PEOPLE[person], "liked", "the")):
            first = len(words)
            words += [subject, verb, article, thing, "."]
            starts += [True, False, False, False, False]
            mentions += [(first, first + 1, person), (first + 2, first + 4, thing)]
    doc = Doc(nlp.vocab, words=words, sent_starts=starts)
    clusters: dict[str, list[tuple[int, int]]] = {}
    for start, end, name in mentions:
        clusters.setdefault(name, []).append((start, end))
    for number, own in enumerate(clusters.values(), start=1):
        doc.spans[f"coref_clusters_{number}"] = [doc[a:b] for a, b in own]
    doc.spans["coref_mentions"] = [doc[a:b] for a, b, _ in sorted(mentions)]
    return doc


def example(nlp: Language, seed: int, sentences: int = 4) -> Example:
    """Its predicted Doc has sentences and mentions, and no clusters."""
    gold = gold_doc(nlp, seed, sentences)
    predicted = Doc(nlp.vocab, words=[token.text for token in gold], sent_starts=[bool(token.is_sent_start) for token in gold])
    predicted.spans["coref_mentions"] = [predicted[span.start : span.end] for span in gold.spans["coref_mentions"]]
    return Example(predicted, gold)


def trained(n: int = 12, **config: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("calib_coref", config={"penalty": 1.0, **config})
    nlp.initialize(lambda: [example(nlp, seed) for seed in range(n)])
    return nlp
