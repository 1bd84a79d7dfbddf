"""Confidence in what sequence learners say: the experiments of Mejer & Crammer (2010), with calibration on top.

    python scripts/sequence_confidence.py np --folds 10 --rounds 10 --output np.json --plot np.png
    python scripts/sequence_confidence.py spanish

Reads conll2000 (noun phrases; train and test together) or conll2002_es (named entities; train and dev together) in $SPACY_CALIB_DATA. Each
fold is labelled by learners trained on the others. Printed beside the paper's numbers: F of each learner (table 2), words that are wrong
(table 3), average precision of finding them and RMSE over 20 bins (figure 2), wrong words among the first ones looked at (figure 3), and log
loss and ECE of each confidence before and after isotonic regression fitted on the other folds.

What differs: features are those of `spacy_calib.sequence.features.templates`, not the authors' own; the scale of the draws is chosen on a part
of the training data; the corpora are split by sentence in the order of a seed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from sklearn.metrics import average_precision_score
from spacy.tokens import Doc
from tqdm import tqdm

from spacy_calib.calibration.recalibrators.isotonic import IsotonicRegression
from spacy_calib.metrics.calibration_error import calibration_error
from spacy_calib.sequence.confidence import draw_shares, gaps, k_best_shares
from spacy_calib.sequence.confidence_source import SCALES
from spacy_calib.sequence.crfsuite import read_weights, train_crfsuite
from spacy_calib.sequence.draws import learner_draws
from spacy_calib.sequence.features.index import FeatureIndex, Sparse
from spacy_calib.sequence.features.templates import feature_hashes, read_templates
from spacy_calib.sequence.inference.chains import Chains, Potentials
from spacy_calib.sequence.inference.sums import sum_chains
from spacy_calib.sequence.online.learner import OnlineLearner, learn, viterbi_one
from spacy_calib.sequence.online.rules import RULES, make_rule
from spacy_calib.types import Floats, Ints

WAYS = ("kd_pc", "kd_fixed", "delta", "wkbv", "kbv", "crf")
# (F of arow, cw, pa, perceptron), (F and percent of wrong words of cw, of crf); see the head of this file.
PAPER: dict[str, Any] = {
    "np": {"f": {"arow": 0.946, "cw": 0.947, "pa": 0.946, "perceptron": 0.944}, "cw": (0.943, 2.34), "crf": (0.936, 2.66)},
    "spanish": {"f": {"arow": 0.775, "cw": 0.774, "pa": 0.773, "perceptron": 0.756}, "cw": (0.729, None), "crf": (0.740, None)},
}
_FILES = {"np": ("conll2000", ("train", "test"), "chunking"), "spanish": ("conll2002_es", ("train", "dev"), "spelling")}
_BINS = 20
_DRAWS = 50
_FIRST = 5000


@dataclass(frozen=True, eq=False)
class Sentences:
    """hashes (list): The features of each sentence. gold (list[Ints]): Columns of its labels. labels (tuple[str, ...]): BIO."""

    hashes: list[Any]
    gold: list[Ints]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.gold)


@dataclass(eq=False)
class Judged:
    """What a way says of the words of all folds: sure (its number for the predicted label), right, and the fold of each."""

    sure: list[Floats] = field(default_factory=list)
    right: list[Any] = field(default_factory=list)
    folds: list[Ints] = field(default_factory=list)

    def add(self, sure: Floats, right: Any, fold: int) -> None:
        self.sure.append(sure)
        self.right.append(right)
        self.folds.append(np.full(len(sure), fold))

    def joined(self) -> tuple[Floats, Any, Ints]:
        return np.concatenate(self.sure), np.concatenate(self.right), np.concatenate(self.folds)


def read_sentences(corpus: str, most: int | None) -> Sentences:
    """most (int | None): Read no more sentences."""
    folder, splits, features = _FILES[corpus]
    templates, nlp = read_templates(features), spacy.blank("en")
    rows = [row for split in splits for row in _read(Path(os.environ["SPACY_CALIB_DATA"]) / folder / f"{split}.txt.gz")][:most]
    tags = [[_bio(corpus, label) for _, _, label in sentence] for sentence in rows]
    labels = ("O", *sorted({tag for sentence in tags for tag in sentence} - {"O"}))
    column = {label: i for i, label in enumerate(labels)}
    docs = (Doc(nlp.vocab, words=[row[0] for row in one], tags=[row[1] for row in one]) for one in rows)
    hashes = [feature_hashes(doc, [(0, len(doc))], templates) for doc in docs]
    return Sentences(hashes, [np.array([column[tag] for tag in sentence]) for sentence in tags], labels)


def _read(path: Path) -> Iterator[list[list[str]]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        sentence: list[list[str]] = []
        for line in lines:
            if line.strip():
                sentence.append(line.split())
            elif sentence:
                yield sentence
                sentence = []
        if sentence:
            yield sentence


def _bio(corpus: str, label: str) -> str:
    return label if corpus != "np" or label.endswith("-NP") else "O"


def spans_of(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(start, end, type) of the spans of BIO tags, as the evaluation of CoNLL reads them."""
    found, start, kind = set(), None, ""
    for i, tag in enumerate([*tags, "O"]):
        letter, _, own = tag.partition("-")
        if start is not None and (letter != "I" or own != kind):
            found.add((start, i, kind))
            start = None
        if letter == "B" or (letter == "I" and start is None):
            start, kind = i, own
    return found


@dataclass
class Fold:
    """Learners trained on the rest of the sentences, and the sentences of the fold as features of theirs."""

    data: Sentences
    train: Ints
    test: Ints
    rounds: int
    seed: int

    def __post_init__(self) -> None:
        self.index = FeatureIndex.of([self.data.hashes[i] for i in self.train])
        self.rows: dict[int, Sparse] = {}

    def sparse(self, i: int) -> Sparse:
        if i not in self.rows:
            self.rows[i] = self.index.rows(self.data.hashes[i])
        return self.rows[i]

    def learner(self, rule: str) -> OnlineLearner:
        made = OnlineLearner(len(self.index), len(self.data.labels), make_rule(rule))
        learn(made, [(self.sparse(i), self.data.gold[i]) for i in self.train.tolist()], self.rounds, self.seed)
        return made

    def crf(self) -> OnlineLearner:
        """CRFsuite's weights in the form of a learner."""
        made = OnlineLearner(len(self.index), len(self.data.labels), make_rule("perceptron"))
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            train_crfsuite([(self.sparse(i), self.data.gold[i]) for i in self.train.tolist()], model, 1.0, 100)
            made.mu[:] = read_weights(model, len(self.index), len(self.data.labels))
        return made

    def answers(self, learner: OnlineLearner, sentences: Ints) -> list[Ints]:
        weights = learner.mean
        transitions = learner.transitions(weights)
        return [viterbi_one(learner.scores(weights, self.sparse(i)), transitions) for i in sentences.tolist()]

    def chains(self, learner: OnlineLearner, sentences: Ints) -> Chains:
        weights, none = learner.mean, np.zeros(learner.n_labels)
        scores = [learner.scores(weights, self.sparse(i)) for i in sentences.tolist()]
        return Chains.of(scores, Potentials(learner.transitions(weights), none, none))

    def draws(self, learner: OnlineLearner, sentences: Ints, scale: float, learned: bool, k: int = _DRAWS) -> list[Floats]:
        sequences = [self.sparse(i) for i in sentences.tolist()]
        return draw_shares(list(learner_draws(learner, sequences, k, scale, learned, self.seed)), learner.n_labels)

    def scale(self, learner: OnlineLearner, learned: bool, most: int = 200, k: int = 20) -> float:
        """The scale that finds the wrong words of some training sentences best."""
        some = np.random.default_rng(self.seed).choice(self.train, min(most, len(self.train)), replace=False)
        answers = self.answers(learner, some)
        wrong = np.concatenate([answer != self.data.gold[i] for answer, i in zip(answers, some.tolist(), strict=True)])
        if not wrong.any():
            return 0.1
        own = np.concatenate(answers)
        precision = {}
        for scale in SCALES:
            shares = np.concatenate(self.draws(learner, some, scale, learned, k))
            precision[scale] = average_precision_score(wrong, 1 - shares[np.arange(len(own)), own])
        return max(precision, key=precision.__getitem__)


def run_fold(fold: Fold, number: int, rules: Sequence[str], judged: dict[str, Judged], counts: dict[str, Any]) -> None:
    """Train, label the fold, and keep what each way says."""
    gold = [fold.data.gold[i] for i in fold.test.tolist()]

    def count(name: str, answers: Sequence[Ints]) -> None:
        held = counts.setdefault(name, np.zeros(5))
        for answer, own in zip(answers, gold, strict=True):
            said, wanted = (spans_of([fold.data.labels[c] for c in columns.tolist()]) for columns in (answer, own))
            held += [len(said & wanted), len(said), len(wanted), (answer != own).sum(), len(own)]

    for rule in rules:
        learner = fold.learner(rule)
        answers = fold.answers(learner, fold.test)
        count(rule, answers)
        if rule == "cw":
            said = confidences(fold, learner)
            own = np.concatenate(answers)
            for way, given in said.items():
                sure = np.concatenate(given)[np.arange(len(own)), own]
                judged[way].add(sure, own == np.concatenate(gold), number)
    crf = fold.crf()
    answers = fold.answers(crf, fold.test)
    count("crf", answers)
    own = np.concatenate(answers)
    sure = np.concatenate(sum_chains(fold.chains(crf, fold.test)).by_sequence())[np.arange(len(own)), own]
    judged["crf"].add(sure, own == np.concatenate(gold), number)


def confidences(fold: Fold, learner: OnlineLearner) -> dict[str, list[Floats]]:
    """What each way says of the fold."""
    chains = fold.chains(learner, fold.test)
    ways: dict[str, Callable[[], list[Floats]]] = {
        "kd_pc": lambda: fold.draws(learner, fold.test, fold.scale(learner, True), True),
        "kd_fixed": lambda: fold.draws(learner, fold.test, fold.scale(learner, False), False),
        "delta": lambda: gaps(chains),
        "wkbv": lambda: k_best_shares(chains, 30, weighted=True),
        "kbv": lambda: k_best_shares(chains, 30, weighted=False),
    }
    return {name: ask() for name, ask in ways.items()}


def rmse_of(sure: Floats, right: Any) -> float:
    """Root mean square error of the bins' centres, 20 bins of equal width (section 5)."""
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    share = np.bincount(bins, weights=right, minlength=_BINS) / np.maximum(counts, 1)
    centres = (np.arange(_BINS) + 0.5) / _BINS
    return float(np.sqrt((counts * (centres - share) ** 2).sum() / counts.sum()))


def repaired(sure: Floats, right: Any, folds: Ints) -> Floats:
    """Isotonic regression of right on sure, fitted on the other folds."""
    found = np.empty_like(sure)
    for fold in np.unique(folds).tolist():
        inside = folds == fold
        found[inside] = IsotonicRegression().fit(sure[~inside], right[~inside]).predict(sure[inside])
    return found


def log_loss(sure: Floats, right: Any) -> float:
    clipped = np.clip(sure, 1e-4, 1 - 1e-4)
    return float(-np.mean(np.where(right, np.log(clipped), np.log(1 - clipped))))


def summarize(judged: dict[str, Judged], counts: dict[str, Any]) -> dict[str, Any]:
    learners = {
        name: {"f": 2 * hit / (said + wanted), "wrong": wrong, "percent": 100 * wrong / words}
        for name, (hit, said, wanted, wrong, words) in counts.items()
    }
    ways = {}
    for way, one in judged.items():
        sure, right, folds = one.joined()
        order = np.argsort(sure, kind="stable")
        made = repaired(sure, right, folds)
        ways[way] = {
            "average_precision": float(average_precision_score(~right, 1 - sure)),
            "random": float(np.mean(~right)),
            "rmse": rmse_of(sure, right),
            "rmse_calibrated": rmse_of(made, right),
            "too_sure": float(np.mean(sure) - np.mean(right)),
            "found_in_first": int((~right[order[:_FIRST]]).sum()),
            "log_loss": log_loss(sure, right),
            "log_loss_calibrated": log_loss(made, right),
            "ece": calibration_error(sure, right, 10),
            "ece_calibrated": calibration_error(made, right, 10),
        }
    return {"learners": learners, "ways": ways}


def show(corpus: str, found: dict[str, Any]) -> None:
    paper = PAPER[corpus]
    print("| learner | F | paper | wrong words |\n| --- | --- | --- | --- |")
    for name, row in found["learners"].items():
        said = paper["f"].get(name, paper.get(name, (None,))[0] if name == "crf" else None)
        print(f"| {name} | {row['f']:.3f} | {'-' if said is None else f'{said:.3f}'} | {row['percent']:.2f} % |")
    print(
        f"\n| confidence | average precision | wrong of first {_FIRST:,} | RMSE | calibrated | sure - right | log loss | calibrated | ECE | calibrated |"
    )
    print("| --- " * 10 + "|")
    for way, row in found["ways"].items():
        print(
            f"| {way} | {row['average_precision']:.3f} | {row['found_in_first']:,} | {row['rmse']:.3f} | {row['rmse_calibrated']:.3f} | "
            f"{row['too_sure']:+.3f} | {row['log_loss']:.4f} | {row['log_loss_calibrated']:.4f} | {row['ece']:.4f} | {row['ece_calibrated']:.4f} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=sorted(PAPER))
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--run", type=int, help="label only so many of the folds (at least 2)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--most", type=int, help="read no more sentences")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="JSON file for the numbers")
    given = parser.parse_args(arguments)
    data = read_sentences(given.corpus, given.most)
    of_fold = np.random.default_rng(given.seed).permutation(len(data)) % given.folds
    judged, counts = {way: Judged() for way in WAYS}, dict[str, Any]()
    for number in tqdm(range(given.run or given.folds), disable=None):
        fold = Fold(data, np.flatnonzero(of_fold != number), np.flatnonzero(of_fold == number), given.rounds, given.seed)
        run_fold(fold, number, given.rules, judged, counts)
    found = summarize({way: one for way, one in judged.items() if one.sure}, counts)
    show(given.corpus, found)
    if given.output is not None:
        given.output.write_text(
            json.dumps({"arguments": {k: str(v) for k, v in vars(given).items()}, **found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
