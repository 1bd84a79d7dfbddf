"""A hidden Markov model, by counting, and CRFsuite's CRF over sparse features, both with our sums over labellings (Nguyen & O'Connor 2015, 4.2)."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc

from spacy_calib.types import Floats, Ints

from .best import viterbi
from .chains import Chains, Potentials
from .crfsuite import read_weights, train_crfsuite
from .features import FeatureIndex, Hashes, SparseFeatures, batch_hashes, cut, read_templates, row_sums


def bounds_of(doc: Doc) -> list[tuple[int, int]]:
    """Return (first token, the one after the last) of each sentence."""
    if doc.has_annotation("SENT_START"):
        return [(sentence.start, sentence.end) for sentence in doc.sents]
    return [(0, len(doc))] if len(doc) else []


@dataclass(eq=False, kw_only=True)
class Tagger(ABC):
    """Tags sentences as chains. labels: Of the columns."""

    labels: tuple[str, ...] = ()

    def fit(self, docs: Sequence[Doc]) -> Tagger:
        """Learn from gold tags; each token has one."""
        self.labels = tuple(sorted({token.tag_ for doc in docs for token in doc}))
        column = {label: i for i, label in enumerate(self.labels)}
        self.learn(docs, [np.array([column[token.tag_] for token in doc]) for doc in docs])
        return self

    @abstractmethod
    def learn(self, docs: Sequence[Doc], gold: Sequence[Ints]) -> None:
        """Learn. gold: Column of each token's tag."""

    @abstractmethod
    def potentials(self) -> Potentials:
        """Return the weights that do not depend on words."""

    @abstractmethod
    def label_scores(self, docs: Sequence[Doc]) -> list[Floats]:
        """Return the score of each label at each token of each Doc."""

    def chains(self, docs: Sequence[Doc]) -> Chains:
        """Return a chain for each sentence."""
        scores = zip(docs, self.label_scores(docs), strict=True)
        return Chains.from_scores([part[start:end] for doc, part in scores for start, end in bounds_of(doc)], self.potentials())

    def predict(self, docs: Sequence[Doc]) -> Ints:
        """Return the column of each token's label in the best labellings, of all Docs."""
        return np.concatenate(viterbi(self.chains(docs)))


@dataclass(eq=False, kw_only=True)
class Hmm(Tagger):
    """P(first label) P(word | label) P(next label | label) ..., from counts plus `pseudocount`.

    rare (int): Words that occur at most so often also count for their class, which represents unknown words.
    """

    pseudocount: float
    rare: int
    follow: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    first: Floats = field(default_factory=lambda: np.zeros(0))
    last: Floats = field(default_factory=lambda: np.zeros(0))
    words: dict[str, int] = field(default_factory=dict)
    word_logs: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def learn(self, docs: Sequence[Doc], gold: Sequence[Ints]) -> None:
        n, frequency = len(self.labels), Counter(token.text for doc in docs for token in doc)
        names = [word for word, count in frequency.items() if count > self.rare]
        names += sorted({word_class(word) for word, count in frequency.items() if count <= self.rare})
        self.words = {name: i for i, name in enumerate(names)}
        self.follow, self.first, self.last = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        of_word = np.zeros((n, len(names) + 1))  # the last column: classes that do not occur
        for doc, columns in zip(docs, gold, strict=True):
            np.add.at(of_word, (columns, self._columns(token.text for token in doc)), 1)
            for start, end in bounds_of(doc):
                self.first[columns[start]] += 1
                self.last[columns[end - 1]] += 1
                np.add.at(self.follow, (columns[start : end - 1], columns[start + 1 : end]), 1)
        table = of_word + self.pseudocount
        self.word_logs = np.ascontiguousarray(np.log(table / table.sum(axis=1, keepdims=True)).T)

    def _columns(self, words: Iterable[str]) -> Ints:
        unknown, known = len(self.words), self.words
        return np.array([known[w] if w in known else known.get(word_class(w), unknown) for w in words], dtype=np.intp)

    def potentials(self) -> Potentials:
        table = np.column_stack([self.follow, self.last]) + self.pseudocount
        logs = np.log(table / table.sum(axis=1, keepdims=True))
        first = self.first + self.pseudocount
        return Potentials(logs[:, :-1], np.log(first / first.sum()), logs[:, -1])

    def label_scores(self, docs: Sequence[Doc]) -> list[Floats]:
        return [self.word_logs[self._columns(token.text for token in doc)] for doc in docs]


@dataclass(eq=False, kw_only=True)
class Crf(Tagger):
    """CRFsuite's CRF. features: A name or templates. c2 (float): Coefficient of the L2 penalty. max_iterations (int): Of L-BFGS."""

    features: str | list[str]
    c2: float
    max_iterations: int
    index: FeatureIndex = field(default_factory=lambda: FeatureIndex(np.zeros(0, dtype=np.uint64)))
    weights: Any = None

    def learn(self, docs: Sequence[Doc], gold: Sequence[Ints]) -> None:
        hashes = np.split(self._hashes(docs), np.cumsum([len(doc) for doc in docs])[:-1])
        self.index = FeatureIndex.from_hashes(hashes)
        rows = [self.index.rows(part) for part in hashes]
        data = [(cut(row, a, b), own[a:b]) for doc, row, own in zip(docs, rows, gold, strict=True) for a, b in bounds_of(doc)]
        with tempfile.TemporaryDirectory() as folder:
            train_crfsuite(data, Path(folder) / "model", self.c2, self.max_iterations)
            self.weights = read_weights(Path(folder) / "model", len(self.index), len(self.labels)).reshape(-1, len(self.labels))

    def _hashes(self, docs: Sequence[Doc]) -> Hashes:
        return batch_hashes(docs, [bounds_of(doc) for doc in docs], read_templates(self.features))

    def potentials(self) -> Potentials:
        n = len(self.labels)
        return Potentials(self.weights[len(self.index) :], np.zeros(n), np.zeros(n))

    def label_scores(self, docs: Sequence[Doc]) -> list[Floats]:
        tokens = self.index.rows(self._hashes(docs))
        rows, inverse = np.unique(tokens.rows, return_inverse=True)
        scores = row_sums(self.weights[rows], SparseFeatures(inverse.reshape(-1), tokens.starts))
        return np.split(scores, np.cumsum([len(doc) for doc in docs])[:-1])


def word_class(word: str) -> str:
    """Return the class of a rare or unknown word: its digits, capitals or hyphen, and its last three letters."""
    kind = "".join(
        mark
        for mark, holds in (
            ("9", any(map(str.isdigit, word))),
            ("A", word[:1].isupper()),
            ("a", word.islower()),
            ("-", "-" in word),
            (".", not any(map(str.isalnum, word))),
        )
        if holds
    )
    ending = word[-3:].lower() if len(word) > 3 and word.isalpha() else ""
    return f"<{kind}|{ending}>"
