"""What queries answer of one Doc, with scores made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_calib.plugins.counts.queries import LabelScores, make_query

VOCAB = spacy.blank("en").vocab


@dataclass(frozen=True)
class Fixed(LabelScores):
    """Scores by label: of each token; raw ones are the halves."""

    held: dict[str, list[float]] = field(default_factory=dict)

    def sum_scores(self, doc, test, view_of=None):
        kept = [np.array(row) for label, row in self.held.items() if test(label)]
        total = np.sum(kept, axis=0) if kept else np.zeros(len(doc))
        return total / 2, total


TAGS = Fixed("calib", "tag", ["NNP", "MD", "VB"], {
    "NNP": [0.9, 0.3, 0.0, 0.6], "MD": [0.0, 0.7, 0.0, 0.0], "VB": [0.1, 0.0, 1.0, 0.4],
})  # fmt: skip
TYPES = Fixed("ents", "ner", ["O", "PER"], {"O": [0.1, 0.6, 1.0, 0.5], "PER": [0.9, 0.4, 0.0, 0.5]})


@pytest.fixture
def doc():
    doc = Doc(VOCAB, words=["May", "may", "leave", "May"], tags=["NNP", "MD", "VB", "NNP"])
    doc.set_ents([Span(doc, 0, 1, "PER")], default="outside")
    return doc


def ask(text, unit=None, label_scores=(TAGS, TYPES)):
    return make_query(text, label_scores, unit)


def test_a_tag(doc):
    answer = ask("NNP").answer(doc)
    assert answer.calibrated.tolist() == [0.9, 0.3, 0.6]
    assert answer.raw.tolist() == [0.45, 0.15, 0.3]
    assert (answer.n_found, ask("NNP", "document").answer(doc).n_found) == (2, 1)


def test_entities_begin_where_their_chance_rises(doc):
    answer = ask("PER").answer(doc)
    assert (answer.calibrated.tolist(), answer.n_found) == ([0.9, 0.5], 1)  # the 0.4 may be the rest of the first one
    tokens = ask("PER", "token").answer(doc)
    assert tokens.calibrated.tolist() == [0.9, 0.4, 0.5]
    doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 1, 2, "PER")], default="outside")
    assert ask("PER").answer(doc).calibrated.tolist() == [0.9, 0.4, 0.5]
    assert ask("PER").count_gold(doc) == 2


def test_entities_in_prefixed_labels(doc):
    scores = {"B-PER": [0.2, 0, 0, 0], "L-PER": [0, 0.2, 0, 0], "U-PER": [0.5, 0, 0, 0.1]}
    biluo = Fixed("ents", "biluo", ["O", *scores], scores)
    assert ask("PER", label_scores=[biluo]).answer(doc).calibrated.tolist() == pytest.approx([0.7, 0.1])
    assert ask("PER", "token", [biluo]).answer(doc).calibrated.tolist() == pytest.approx([0.7, 0.2, 0.1])
