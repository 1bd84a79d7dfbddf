"""Hidden Markov models and conditional random fields of about equal accuracy, trained once into a cache: what hmm_crf_table.py judges.

Everything is chosen by accuracy on dev, as in Nguyen & O'Connor (2015, section 4.2.1): the pseudocount, the L2 penalty, and how much of train
the CRF of words alone sees: the smallest part that makes it as accurate as the HMM, within half a point. Test is read once, by the models chosen.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import say
from quality import readers
from spacy.tokens import Doc
from spacy.util import minibatch

from papers.chains.sums import ChainSums, sum_chains
from papers.chains.taggers import Crf, Hmm, Tagger

HMM, CLASSES, CRF, CRF_ALL, SPELLING = "HMM", "HMM, word classes", "CRF", "CRF, all of train", "CRF, spelling"
PSEUDOCOUNTS = (0.001, 0.01, 0.1, 1.0)
PENALTIES = {"words": (0.01, 0.1), "spelling": (0.1, 1.0)}
WORDS = ["ORTH[0]"]
NEAR = 0.005
MOST_ITERATIONS = 400  # L-BFGS stops by itself before


@dataclass(frozen=True)
class Corpus:
    """One data set.

    about (str): Its splits. read (Callable): Split -> documents. query (str): The tag that is asked for by itself. bin_size (int): Pairs in a bin.
    shares (Sequence[float]): Of train, that the CRF of words is tried with, ascending. thesis (bool): Whether a CRF of words on all of train is asked
    for, as in the thesis; the CRF with full features sees all of it then, else as much as the CRF of words. tests (tuple[str, ...]): What is judged, home first.
    """

    about: str
    read: Callable[[str], readers.Documents]
    query: str
    bin_size: int
    shares: Sequence[float]
    thesis: bool = False
    tests: tuple[str, ...] = ("test",)


def _ptb(split: str) -> readers.Documents:
    return readers.ptb()["fit" if split == "dev" else split]


CORPORA = {
    "ewt": Corpus("UD English EWT, XPOS, its own splits", lambda split: readers.ewt(split, "tags"), "NN", 5000, (0.25, 0.4)),
    "ptb": Corpus("PTB sample; of the files' numbers modulo 5, 1 to 3 train, 4 dev, 0 test", _ptb, "NN", 5000, (0.4, 0.6)),
    "ark": Corpus("ARK tweets, the splits of Oct27", readers.ark, "V", 200, (0.4, 0.5, 0.6), True, ("test", "daily547")),
}


@dataclass(frozen=True, eq=False)
class Split:
    """docs (list[Doc]): Gold. numbers (list[int]): The document of each. columns (Mapping): Tag -> column."""

    docs: list[Doc]
    numbers: list[int]
    columns: Mapping[str, int]

    @cached_property
    def gold(self) -> np.ndarray:
        """The column of each token's tag; -1 for one that train does not have."""
        return np.array([self.columns.get(token.tag_, -1) for doc in self.docs for token in doc])

    @cached_property
    def documents(self) -> np.ndarray:
        """The document of each token."""
        return np.repeat(self.numbers, [len(doc) for doc in self.docs])

    @cached_property
    def joined(self) -> np.ndarray:
        """Whether token i and i + 1 stand in one sentence, shape (n_tokens - 1,)."""
        return ~np.array([token.is_sent_start for doc in self.docs for token in doc], dtype=bool)[1:]


@dataclass(frozen=True, eq=False)
class Model:
    """tagger (Tagger): Trained. chosen (str): What dev chose."""

    pipe: Tagger
    chosen: str

    def sums(self, split: Split) -> list[ChainSums]:
        """Forward-backward over the Docs, some at a time, in order."""
        return [sum_chains(self.pipe.chains(docs)) for docs in minibatch(split.docs, 64)]

    def marginals(self, split: Split) -> np.ndarray:
        """P(tag | sentence), shape (n_tokens, n_tags); 0 for a tag that the model never met."""
        marginals = np.zeros((len(split.gold), len(split.columns)))
        parts = np.concatenate([part for sums in self.sums(split) for part in sums.by_sequence()])
        marginals[:, [split.columns[label] for label in self.pipe.labels]] = np.clip(parts, 0.0, 1.0)
        return marginals

    def accuracy(self, split: Split) -> float:
        """Of the best sequence of tags."""
        column = np.array([split.columns[label] for label in self.pipe.labels])
        return float(np.mean(column[self.pipe.predict(split.docs)] == split.gold))


class Workshop:
    """Trains the models of a corpus, and keeps them. cache (Path): Folder. most (int | None): Read no more documents of a split."""

    def __init__(self, name: str, cache: Path, most: int | None = None):
        self.corpus, self.folder, self.nlp = CORPORA[name], cache / "hmm_crf" / name, spacy.blank("en")
        self.most = most
        train = list(readers.make_docs(self.corpus.read("train")[:most], self.nlp.vocab))
        names = sorted({token.tag_ for _, doc in train for token in doc})
        self.columns = {tag: column for column, tag in enumerate(names)}
        self.train = [sentence.as_doc() for _, doc in train for sentence in doc.sents]
        self.dev = self.split("dev")

    def split(self, name: str) -> Split:
        numbers, docs = zip(*readers.make_docs(self.corpus.read(name)[: self.most], self.nlp.vocab), strict=True)
        return Split(list(docs), list(numbers), self.columns)

    def models(self) -> dict[str, Model]:
        """The models that dev chose."""
        hmm = self.hmm(rare=0)
        penalty, spelling = (self.penalty(kind, features) for kind, features in (("words", WORDS), ("spelling", "spelling")))
        shares = (*self.corpus.shares, 1.0)
        enough = (share for share in shares if self.trained(*self.crf_settings(WORDS, penalty, share))[1] >= hmm[1] - NEAR)
        share = next(enough, shares[-1])
        return {
            HMM: self.model(*hmm[0]),
            CRF: self.model(*self.crf_settings(WORDS, penalty, share)),
            CLASSES: self.model(*self.hmm(rare=1)[0]),
            **({CRF_ALL: self.model(*self.crf_settings(WORDS, penalty, 1.0))} if self.corpus.thesis else {}),
            SPELLING: self.model(*self.crf_settings("spelling", spelling, 1.0 if self.corpus.thesis else share)),
        }

    def hmm(self, rare: int) -> tuple[tuple[str, dict[str, Any], float], float]:
        """(settings of the most accurate HMM, its accuracy on dev). rare (int): See HiddenMarkovModel."""
        candidates = [("hmm", {"pseudocount": value, "rare": rare}, 1.0) for value in PSEUDOCOUNTS]
        accuracies = [self.trained(*arguments)[1] for arguments in candidates]
        best = int(np.argmax(accuracies))
        return candidates[best], accuracies[best]

    def penalty(self, kind: str, features: str | list[str]) -> float:
        """The one that is best on dev, of the smallest share of train."""
        return max(PENALTIES[kind], key=lambda c2: self.trained(*self.crf_settings(features, c2, self.corpus.shares[0]))[1])

    @staticmethod
    def crf_settings(features: str | list[str], c2: float, share: float) -> tuple[str, dict[str, Any], float]:
        return "crf", {"features": features, "c2": c2, "max_iterations": MOST_ITERATIONS}, share

    def model(self, factory: str, settings: dict[str, Any], share: float) -> Model:
        shown_values = {key: value for key, value in settings.items() if key in ("pseudocount", "c2")}
        text = ", ".join(f"{key} {value:g}" for key, value in shown_values.items())
        n = len(self.part(share))
        return Model(self.trained(factory, settings, share)[0], f"{text}, {n:,} sentences")

    def part(self, share: float) -> list[Doc]:
        """A share of the sentences of train, at equal distances."""
        n = len(self.train)
        return [self.train[i] for i in np.unique(np.linspace(0, n - 1, round(share * n)).astype(int))]

    def trained(self, kind: str, settings: dict[str, Any], share: float) -> tuple[Tagger, float]:
        """A tagger and its accuracy on dev; trained once."""
        values = (str(value) if isinstance(value, (str, int, float)) else "words" for value in settings.values())
        name = "-".join([kind, *values, f"{share:g}"])
        file = self.folder / f"{name}.pickle"
        if not file.exists():
            tagger = {"hmm": Hmm, "crf": Crf}[kind](**settings).fit(self.part(share))
            accuracy = Model(tagger, "").accuracy(self.dev)
            say(f"{name}: accuracy on dev {accuracy:.4f}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps((tagger, accuracy)))
        return pickle.loads(file.read_bytes())
