"""The probabilities of a pipeline's tags beside the gold, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from frame import bare
from spacy.tokens import Doc

from spacy_calib.sources.find import registered_sources, source_name_for
from spacy_calib.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class TagScores:
    """The tags of n tokens of a data set. labels (list[str]): Of the K columns. chances (Floats): P(tag | text), shape (n, K). gold (list[str]): Of
    each token. documents (Ints): Of each token. right (Floats): 1 where the predicted tag is the gold one."""

    labels: list[str]
    chances: Floats
    gold: list[str]
    documents: Ints
    right: Floats

    @classmethod
    def from_predictions(
        cls, labels: Sequence[str], chances: Floats, predicted: Sequence[str], golds: Sequence[Doc]
    ) -> TagScores:
        """golds (Sequence[Doc]): Each is a document."""
        gold = [token.tag_ for doc in golds for token in doc]
        right = np.array([ours == tag for ours, tag in zip(predicted, gold, strict=True)], dtype=float)
        return cls(list(labels), chances, gold, np.repeat(np.arange(len(golds)), [len(doc) for doc in golds]), right)

    @property
    def sureness(self) -> float:
        """Mean probability of the top tag."""
        return float(self.chances.max(axis=1).mean())


def read_tags(nlp: Any, component: str, golds: Sequence[Doc]) -> TagScores:
    """Run a pipeline over the words of gold Docs."""
    docs = list(nlp.pipe((bare(gold, nlp.vocab) for gold in golds), batch_size=32))
    pipe = nlp.get_pipe(component)
    source = registered_sources()[source_name_for(pipe)]
    found, labels = source.read(pipe, docs).marginals_above(0.0), source.labels(pipe)
    chances = np.zeros((found.n_tokens, len(labels)))
    chances[found.rows, found.tags] = found.scores
    return TagScores.from_predictions(labels, chances, [token.tag_ for doc in docs for token in doc], golds)
