"""The corpora of Mejer & Crammer (2010) that are at hand, as features and columns of labels; and how CoNLL counts spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import spacy
from frame import blocks, data_lines
from papers.chains.features import CHUNKING, SPELLING, FeatureIndex, SparseFeatures, batch_hashes, read_templates
from spacy.tokens import Doc

from spacy_calib.types import Ints


class Corpus(NamedTuple):
    """folder (str): In $SPACY_CALIB_DATA. splits (tuple): Its files, read together. features (tuple): Templates. sentences, words (int): Of the paper."""

    folder: str
    splits: tuple[str, ...]
    features: tuple[str, ...]
    sentences: int
    words: int


CORPORA = {
    "np": Corpus("conll2000", ("train", "test"), CHUNKING, 10_948, 259_104),
    "spanish": Corpus("conll2002_es", ("train", "dev"), SPELLING, 10_238, 317_638),
}


@dataclass(frozen=True, eq=False)
class Sentences:
    """rows (list[SparseFeatures]): The features of each sentence. gold (list[Ints]): Columns of its labels. labels (tuple[str, ...]): BIO.
    n_features (int): Of all sentences, as the paper's table 1 counts them."""

    rows: list[SparseFeatures]
    gold: list[Ints]
    labels: tuple[str, ...]
    n_features: int

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def n_words(self) -> int:
        return sum(map(len, self.gold))

    def gold_of(self, sentences: Ints) -> Ints:
        """Of the words of some sentences, one after the other."""
        return np.concatenate([self.gold[i] for i in sentences.tolist()])

    def spans(self, columns: Ints) -> set[tuple[int, int, str]]:
        return spans_of([self.labels[column] for column in columns.tolist()])


def read_sentences(name: str, n: int | None = None) -> Sentences:
    """most (int | None): Read no more sentences."""
    corpus, nlp = CORPORA[name], spacy.blank("en")
    templates = read_templates(corpus.features)
    block_list = [block for split in corpus.splits for block in blocks(data_lines(corpus.folder, f"{split}.txt"))][:n]
    rows = [[line.split() for line in block] for block in block_list]
    tags = [[label if name != "np" or label.endswith("-NP") else "O" for _, _, label in sentence] for sentence in rows]
    labels = ("O", *sorted({tag for sentence in tags for tag in sentence} - {"O"}))
    column = {label: i for i, label in enumerate(labels)}
    docs = (
        Doc(nlp.vocab, words=[row[0] for row in sentence_rows], tags=[row[1] for row in sentence_rows])
        for sentence_rows in rows
    )
    hashes = [batch_hashes([doc], [[(0, len(doc))]], templates) for doc in docs]
    index = FeatureIndex.from_hashes(hashes)
    gold = [np.array([column[tag] for tag in sentence]) for sentence in tags]
    return Sentences([index.rows(sentence_rows) for sentence_rows in hashes], gold, labels, len(index))


def spans_of(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(start, end, type) of the spans of BIO tags as conlleval reads them: an I of another type, or after O, begins a span."""
    spans, start, kind = set(), None, ""
    for i, tag in enumerate([*tags, "O"]):
        letter, _, tag_kind = tag.partition("-")
        if start is not None and (letter != "I" or tag_kind != kind):
            spans.add((start, i, kind))
            start = None
        if letter != "O" and start is None:
            start, kind = i, tag_kind
    return spans
