"""The three parts of the experiments, fold by fold; what is in the folder already is not run again."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from papers.chains.best import best_through
from sklearn.metrics import average_precision_score

from spacy_calib.cli.shared.writing import write_file
from spacy_calib.types import Floats, Ints

from .data import Sentences
from .learning import (
    RULES,
    Tuning,
    answers,
    chains_of,
    choose_scale,
    choose_settings,
    confidences,
    counts_of,
    crf_marginals,
    train,
    train_crf,
)


@dataclass(frozen=True)
class Plan:
    """folder (Path): Of the answers. folds (int): Of the learners. quarters (int): Parts for confidence, each is judged by models of the
    others. rounds (int): Passes over training data. run (int | None): No more folds, quarters than these."""

    folder: Path
    folds: int = 10
    quarters: int = 4
    rounds: int = 10
    seed: int = 0
    run: int | None = None
    tuning: Tuning = field(default_factory=Tuning)


@dataclass(frozen=True)
class Job:
    """One file of a part."""

    part: str
    corpus: str
    number: int

    def path(self, folder: Path) -> Path:
        return folder / f"{self.part}-{self.corpus}-{self.number}.npz"


def jobs_of(plan: Plan, corpora: Sequence[str]) -> Iterator[Job]:
    """In the order in which they are run: each part of all corpora, a fold of one after a fold of the other."""
    numbers = {"confidence": plan.quarters, "learners": plan.folds, "pa": plan.folds}
    for part, n in numbers.items():
        for number in range(min(n, plan.run or n)):
            for corpus in corpora:
                yield Job(part, corpus, number)


def run_job(job: Job, data: Sentences, plan: Plan) -> None:
    """Run it and write its file, unless it is there."""
    path = job.path(plan.folder)
    if path.exists():
        return
    began = time.process_time()
    arrays, notes = (run_quarter if job.part == "confidence" else run_fold)(data, plan, job)
    notes["seconds"] = round(time.process_time() - began, 1)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, notes=np.array(json.dumps(notes)), **arrays)
    write_file(path, buffer.getvalue())


def read_job(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arrays, notes) of a file."""
    with np.load(path) as buffer:
        arrays = {name: buffer[name] for name in buffer.files}
    return arrays, json.loads(str(arrays.pop("notes")))


def parts_of(n: int, count: int, number: int, seed: int) -> tuple[Ints, Ints]:
    """(training, judged) sentences of part `number` of `count`."""
    fold = np.random.default_rng(seed).permutation(n) % count
    return np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def run_fold(data: Sentences, plan: Plan, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Table 2: COUNTS of each sentence of the fold by each learner, settings chosen on its training part. PA, which takes longest, has files of
    its own."""
    training, test = parts_of(len(data), plan.folds, job.number, plan.seed)
    arrays: dict[str, Any] = {"sentences": test}
    notes: dict[str, Any] = {"settings": {}}
    for rule in RULES:
        if (rule == "pa") != (job.part == "pa"):
            continue
        settings = choose_settings(data, training, rule, plan.seed, plan.tuning)
        learner = train(data, training, rule, plan.rounds, plan.seed, settings)
        arrays[f"counts_{rule}"] = counts_of(data, answers(data, learner, test), test)
        notes["settings"][rule] = settings
    return arrays, notes


def run_quarter(data: Sentences, plan: Plan, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Table 3 and figures 2 to 4: each way's confidence in each word of the quarter, by CW, and of CRFsuite."""
    training, test = parts_of(len(data), plan.quarters, job.number, plan.seed + 1)
    settings = choose_settings(data, training, "cw", plan.seed, plan.tuning)
    precision = choose_scale(data, training, "cw", plan.rounds, plan.seed, settings, plan.tuning)
    learner, crf = train(data, training, "cw", plan.rounds, plan.seed, settings), train_crf(data, training)
    scales = {way: max(of_way, key=of_way.__getitem__) for way, of_way in precision.items()}
    gold = data.gold_of(test)
    arrays: dict[str, Any] = {"sentences": test}
    for name, part in (("cw", learner), ("crf", crf)):
        labels = answers(data, part, test)
        flat_labels = np.concatenate(labels)
        arrays |= {f"counts_{name}": counts_of(data, labels, test), f"right_{name}": flat_labels == gold}
        if part is crf:
            arrays["sure_crf_crf"] = crf_marginals(data, crf, test, flat_labels)
        else:
            scores = confidences(data, learner, test, flat_labels, scales, plan.seed)
            arrays |= {"lengths": np.array([len(words) for words in labels])} | {
                f"sure_cw_{way}": fold for way, fold in scores.items()
            }
    return arrays, {"settings": {"cw": settings}, "precision_by_scale": precision}


# Two readings of the paper's formula of Delta: how far below the best labelling is one with another label at a word? Of all labellings with another
# label there the best one counts (`Confidence.v1`, way delta), or only those that agree with the best labelling at all other words.


class Readings(NamedTuple):
    """words (int): That were judged. differ (float): The share of them whose gap is another one. best, alone (float): Average precision of
    finding wrong words by the gap, of each reading."""

    words: int
    differ: float
    best: float
    alone: float


def gaps_alone(scores: Floats, transitions: Floats, labels: Ints) -> Floats:
    """How much a labelling loses at least where the label of one word alone is changed, of each word."""
    unary = np.array(scores, dtype=np.float64)
    unary[1:] += transitions[labels[:-1]]
    unary[:-1] += transitions[:, labels[1:]].T
    return gap_of(unary, labels)


def gap_of(unary: Floats, labels: Ints) -> Floats:
    """How far the highest score of another label lies below that of the label that was said, of each row."""
    rows, rest = np.arange(len(labels)), np.array(unary, dtype=np.float64)
    rest[rows, labels] = -np.inf
    return np.asarray(unary[rows, labels] - rest.max(axis=1))


def compare_readings(data: Sentences, plan: Plan, quarter: int) -> Readings:
    """Of a quarter of the sentences, by CW of the others, as `run` has it."""
    training, test = parts_of(len(data), plan.quarters, quarter, plan.seed + 1)
    learner = train(data, training, "cw", plan.rounds, plan.seed, choose_settings(data, training, "cw", plan.seed, plan.tuning))
    labels = answers(data, learner, test)
    flat_labels = np.concatenate(labels)
    chains = chains_of(data, learner, test)
    through = chains.unpack(best_through(chains))  # the best labelling with each label at each word
    best = np.concatenate([gap_of(part, of_words) for part, of_words in zip(through, labels, strict=True)])
    transitions = learner.transitions(learner.mean)
    gaps = np.concatenate([
        gaps_alone(learner.scores(learner.mean, data.rows[i]), transitions, part)
        for i, part in zip(test.tolist(), labels, strict=True)
    ])  # fmt: skip
    wrong = flat_labels != data.gold_of(test)
    return Readings(
        len(flat_labels),
        float(np.mean(~np.isclose(best, gaps))),
        float(average_precision_score(wrong, -best)),
        float(average_precision_score(wrong, -gaps)),
    )
