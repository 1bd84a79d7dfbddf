"""Generator of pairs of gold files with planted contradictions, and of what their merged gold is by the rules."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

# What the second file says of a text of the first one, or one record by itself.
ALONE = ("two labels", "overlap", "two people", "ground truth", "changed mind")
KINDS = ("single", "agrees", "label", "boundary", "absent", "without", "category", "tag", *ALONE)
LABELS = ("PERSON", "ORG", "GPE")
Entity = tuple[int, int, str]  # first word, the one after the last, label


@dataclass
class PlannedText:
    """kind (str): Of KINDS. words (list): One token each. entities (set): What is right. unknown (set): Words of which nothing is known. differing (int):
    Entities on which annotators differ. untagged (set): Words whose tag is unknown. cats (dict): What is left of the categories.
    """

    kind: str
    words: list[str]
    entities: set[Entity]
    unknown: set[int] = field(default_factory=set)
    differing: int = 0
    untagged: set[int] = field(default_factory=set)
    cats: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def write_pair(folder: Path, seed: int) -> tuple[list[Path], list[PlannedText]]:
    """Write two .spacy files and a Label Studio export; return them with what is expected of each text."""
    rng = random.Random(seed)
    vocab, texts = Vocab(), []
    docs: tuple[list[Doc], list[Doc]] = ([], [])
    tasks = []
    for number in range(26):
        kind = KINDS[number % len(KINDS)]
        words = ["".join(rng.choices("bcfghjkpqz", k=rng.randint(3, 7))) for _ in range(rng.randint(8, 14))]
        first, second = rng.sample(range(0, len(words) - 2, 3), 2)
        gold = {(first, first + rng.randint(1, 2), rng.choice(LABELS)), (second, second + 1, rng.choice(LABELS))}
        planned = PlannedText(kind, words, set(gold), cats={} if kind in ALONE else {"a": 1.0, "b": 0.0})
        other = set(gold)
        target = (first, *next((end, label) for start, end, label in gold if start == first))
        start, end, label = target
        if kind in ("label", "two labels"):
            replaced = (start, end, rng.choice([name for name in LABELS if name != label]))
        else:
            replaced = (start, end + 1, label)
        if kind in ("label", "boundary"):
            other = other - {target} | {replaced}
            planned.differing = 2
        elif kind in ("absent", "two people"):
            other = other - {target}
            planned.differing = 1
        if kind in ("label", "boundary", "absent", "two people", "two labels", "overlap"):
            planned.entities -= {target}
            planned.unknown = set(range(start, replaced[1] if kind in ("boundary", "overlap") else end))
        if kind in ("two labels", "overlap"):
            tasks.append(_task(words, [(1, sorted(gold | {replaced}), False)]))
        elif kind == "two people":
            tasks.append(_task(words, [(1, sorted(gold), False), (2, sorted(other), False)]))
        elif kind == "ground truth":
            tasks.append(_task(words, [(1, sorted(gold), True), (2, [], False)]))
        elif kind == "changed mind":
            tasks.append(_task(words, [(1, [], False), (1, sorted(gold), False)]))
        else:
            tags = [rng.choice("NV") for _ in words]
            docs[0].append(_doc(vocab, words, gold, tags, planned.cats))
            if kind == "tag":
                place = rng.randrange(len(words))
                tags = [*tags[:place], "X", *tags[place + 1 :]]
                planned.untagged = {place}
            cats = {"a": 0.0, "b": 1.0} if kind == "category" else planned.cats
            if kind != "single":
                docs[1].append(_doc(vocab, words, None if kind == "without" else other, tags, cats))
            if kind == "category":
                planned.cats = {}
        texts.append(planned)
    for of_file in docs:
        rng.shuffle(of_file)
    files = [folder / name for name in ("a.spacy", "b.spacy", "c.json")]
    for file, of_file in zip(files, docs, strict=False):
        DocBin(docs=of_file, store_user_data=True).to_disk(file)
    files[2].write_text(json.dumps(tasks), encoding="utf8")
    return files, texts


def _doc(vocab: Vocab, words: list[str], entities: set[Entity] | None, tags: list[str], cats: dict[str, float]) -> Doc:
    doc = Doc(vocab, words=words, tags=tags)
    doc.cats = dict(cats)
    if entities is not None:
        doc.set_ents([Span(doc, start, end, label=label) for start, end, label in sorted(entities)], default="outside")
    return doc


def _task(words: list[str], annotations: list[tuple[int, list[Entity], bool]]) -> dict[str, object]:
    """A task of Label Studio. annotations (list): (person, entities, whether they are ground truth)."""
    starts = [sum(len(word) + 1 for word in words[:i]) for i in range(len(words) + 1)]
    text = " ".join(words)

    def region(first: int, end: int, label: str) -> dict[str, object]:
        place = {"start": starts[first], "end": starts[end] - 1}
        value = {**place, "text": text[place["start"] : place["end"]], "labels": [label]}
        return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}

    answers = [
        {"completed_by": person, "was_cancelled": False, "ground_truth": agreed, "result": [region(*one) for one in entities]}
        for person, entities, agreed in annotations
    ]
    return {"data": {"text": text}, "annotations": answers}
