"""Values of units and scores of arcs hold for the labels and heads that they were computed for, or are None, after random operations."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

pytestmark = pytest.mark.filterwarnings("ignore:.*CW(01|23)", "ignore:.*W10[12]")
LABELS = {"tag": ["DET", "NOUN", "VERB"], "ner": ["O", "PER", "LOC"], "head": ["ROOT", "nsubj", "obj"]}
EVENTS = {
    "sentence": {"@calib_events": "spacy-calib.Sentence.v1"},
    "group": {"@calib_events": "spacy-calib.Spans.v1", "key": "units"},
    "entity": {"@calib_events": "spacy-calib.Entity.v1"},
    "arc": {"@calib_events": "spacy-calib.Arc.v1"},
}
CASES = [("tag", "sentence"), ("ner", "sentence"), ("head", "sentence"), ("tag", "group"), ("ner", "entity"), ("head", "arc")]


class Chains:
    """A pipeline whose scores are drawn, and what it said of each unit and token: by their words, of which each is met once, and what these carry."""

    def __init__(self, layer: str, event: str):
        self.layer, self.event = layer, event
        self.nlp = spacy.blank("xx")
        source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": LABELS[layer], "key": "tensor", "layer": layer}
        self.nlp.add_pipe("calib", config={"source": source})
        self.nlp.add_pipe("calib_event", config={"event": EVENTS[event]})
        self.truth: dict[tuple, float] = {}

    def draw(self, rng: random.Random) -> Doc:
        """Two or three sentences, whose first token is the head of the others."""
        lengths = [rng.randint(2, 5) for _ in range(rng.randint(2, 3))]
        first = [sum(lengths[:k]) for k, n in enumerate(lengths) for _ in range(n)]
        labels = [rng.choice(LABELS[self.layer]) for _ in first]
        words = [f"w{rng.randrange(10**6)}" for _ in first]
        doc = Doc(self.nlp.vocab, words=words, tags=labels, heads=first, deps=labels)
        if self.layer == "ner":
            doc.set_ents([Span(doc, i, i + 1, label) for i, label in enumerate(labels) if label != "O"], default="outside")
        doc.spans["units"] = [doc[i : i + 2] for i in range(0, len(doc) - 1, 2)]
        doc.tensor = np.random.default_rng(rng.randrange(1 << 30)).dirichlet(np.ones(3), len(doc))
        doc = self.nlp(doc)
        for key, value in self.shown(doc):
            assert value is not None
            self.truth[key] = value
        for token in doc:  # another label at the same head has a score of its own
            scores = token._.calib_scores or {}
            self.truth |= {(token.text, token.head.text, label): score for label, score in scores.items()}
        return doc

    def units(self, doc: Doc) -> list[Span]:
        of = {"sentence": doc.sents, "group": doc.spans.get("units", ()), "entity": doc.ents}
        return list(of[self.event]) if self.event in of else [doc[i : i + 1] for i in range(len(doc))]

    def shown(self, doc: Doc) -> Iterator[tuple[tuple, float | None]]:
        """(words and what they carry, value) of each unit, and of each token where labels are of arcs."""
        for unit in self.units(doc):
            yield (unit.text, unit.label_, *self.carried(unit)), unit._.calib_right
        for token in doc if self.layer == "head" else ():
            yield (token.text, token.head.text, token.dep_), token._.calib_score

    def carried(self, unit: Span) -> list[object]:
        if self.layer == "tag":
            return [token.tag_ for token in unit]
        if self.layer == "ner":
            return [token.ent_type_ for token in unit]
        return [(token.dep_, token.head.text) for token in unit]

    def check(self, doc: Doc) -> tuple[int, int]:
        """(values shown, values lost by units that are what they were); none is another one's."""
        shown = lost = 0
        for key, value in self.shown(doc):
            own = self.truth.get(key)
            assert value is None or value == own, (key, value, own)
            shown, lost = shown + (value is not None), lost + (value is None and own is not None)
        return shown, lost


def relabelled(rng: random.Random, doc: Doc, chains: Chains) -> Doc:
    for i in rng.choice([range(len(doc)), [rng.randrange(len(doc))]]):
        label = rng.choice(LABELS[chains.layer])
        if chains.layer == "tag":
            doc[i].tag_ = label
        elif chains.layer == "head":
            doc[i].dep_ = label
        elif label == "O":
            doc.ents = [ent for ent in doc.ents if ent.start != i]
        else:
            doc.ents = [*(ent for ent in doc.ents if not ent.start <= i < ent.end), Span(doc, i, i + 1, label)]
    return doc


def new_head(rng: random.Random, doc: Doc, chains: Chains) -> Doc:
    sentence = rng.choice(list(doc.sents))
    child, head = rng.choice(list(sentence)), rng.choice(list(sentence))
    if chains.layer == "head" and child.head.i != child.i and not head.is_ancestor(child) and child not in head.ancestors:
        child.head = head
    return doc


def stored(rng: random.Random, doc: Doc, chains: Chains) -> Doc:
    if rng.random() < 0.5:
        return Doc(doc.vocab).from_bytes(doc.to_bytes())
    return next(iter(DocBin(store_user_data=True, docs=[doc]).get_docs(doc.vocab)))


def cut(rng: random.Random, doc: Doc, chains: Chains | None = None) -> Doc:
    start = rng.randrange(len(doc))
    if rng.random() < 0.5:
        part = rng.choice(list(doc.sents))
    else:
        part = doc[start : rng.randint(start + 1, len(doc))]
    return part.as_doc(copy_user_data=True)


def joined(rng: random.Random, doc: Doc, chains: Chains) -> Doc:
    parts = [doc, chains.draw(rng)]
    rng.shuffle(parts)
    return Doc.from_docs(parts, exclude=["tensor"])


def merged(rng: random.Random, doc: Doc, chains: Chains | None = None) -> Doc:
    start = rng.randrange(len(doc))
    doc.spans.clear()  # which spaCy does not move along
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[start : start + 2])
    return doc


@pytest.mark.parametrize(("layer", "event"), CASES)
def test_no_unit_shows_a_value_of_other_labels_after_random_operations(layer, event):
    """A value is that of the labels and heads that stand there, or None; fewer than a quarter as many are lost as shown."""
    chains = Chains(layer, event)
    shown = lost = 0
    for number in range(60):
        rng = random.Random(number)
        doc = chains.draw(rng)
        for _ in range(rng.randint(1, 4)):
            doc = rng.choice([relabelled, new_head, stored, cut, joined, merged])(rng, doc, chains)
            counts = chains.check(doc)
            shown, lost = shown + counts[0], lost + counts[1]
    assert shown > 150
    assert lost < shown / 4


def test_a_sentence_with_all_labels_changed_or_a_false_entity_says_nothing():
    for layer in ("tag", "ner"):
        chains = Chains(layer, "sentence")
        doc = chains.draw(random.Random(1))
        first, second = list(doc.sents)[:2]
        before = second._.calib_right
        if layer == "tag":
            for token in first:
                token.tag_ = "UH"
        else:
            doc.ents = [*(ent for ent in doc.ents if ent.start > 0), Span(doc, 0, 1, "FALSE")]
        assert (first._.calib_right, second._.calib_right) == (None, before)


def test_the_score_of_an_arc_is_of_the_head_that_it_had():
    chains = Chains("head", "sentence")
    doc = chains.draw(random.Random(3))
    sentence = max(doc.sents, key=len)
    child, others = sentence[-1], sentence[1:-1]
    before, head = child._.calib_score, child.head
    assert before is not None
    assert sentence._.calib_right is not None
    for other in others:
        child.head = other
        assert (child._.calib_score, child._.calib_raw, child._.calib_scores) == (None, None, None)
        assert sentence._.calib_right is None
        assert child.i not in doc._.calib.rows
        assert set(doc._.calib.rows.tolist()) == {token.i for token in doc if token._.calib_scores}
    child.head = head
    assert child._.calib_score == before
    assert sentence._.calib_right is not None
